"""Value semantics: frozen, hashable by content, picklable, copyable, printable as code."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from consistruct import losses, structures
from consistruct.testing.contracts import ensure, ensure_raises, reports_errors

__all__ = ["check_member"]


@reports_errors
def check_member(member: Any) -> None:
    """Frozen, equal and hashed by content, its own copy, picklable, clonable; repr is its code."""
    fields = dataclasses.fields(member)
    for field in fields:
        ensure_raises(
            dataclasses.FrozenInstanceError,
            lambda name=field.name: setattr(member, name, None),  # type: ignore[misc]
            member,
            "members are frozen",
        )
        value = getattr(member, field.name)
        if isinstance(value, np.ndarray):
            ensure(not value.flags.writeable, member, f"the array {field.name} is read-only")
    for how, twin in (
        ("pickle", pickle.loads(pickle.dumps(member))),
        ("copy", copy.copy(member)),
        ("deepcopy", copy.deepcopy(member)),
        ("dataclasses.replace", _rebuilt(member)),
        ("scikit-learn's clone", clone(_Holder(member)).member),
    ):
        ensure(
            type(twin) is type(member) and twin == member, member, f"{how} gives an equal member"
        )
        ensure(hash(twin) == hash(member), member, f"{how} keeps the hash")
        ensure(repr(twin) == repr(member), member, f"{how} keeps the repr")
    ensure(member != object() and member != 0, member, "a member differs from other objects")
    text = repr(member)
    if "sha256:" not in text:  # beyond 64 entries the repr shows shape and digest instead
        namespace = _names(member)
        try:
            again = eval(text, namespace)
        except Exception as error:
            raise AssertionError(
                f"{text} breaks a contract: the repr is code that makes the member; "
                f"{type(error).__name__}: {error}"
            ) from error
        ensure(again == member, member, "the repr is code that makes the member", f"got {again!r}")


class _Holder(BaseEstimator):  # type: ignore[misc]
    """An estimator with the member as its parameter."""

    def __init__(self, member: Any = None) -> None:
        self.member = member


def _rebuilt(member: Any) -> Any:
    values = {field.name: getattr(member, field.name) for field in dataclasses.fields(member)}
    return dataclasses.replace(member, **values)


def _names(member: Any) -> dict[str, Any]:
    """The public names, and the classes of the member and of what it holds."""
    names: dict[str, Any] = {}
    for package in (structures, losses):
        names.update({name: getattr(package, name) for name in package.__all__})
    pending = [member]
    while pending:
        value = pending.pop()
        if isinstance(value, tuple):
            pending.extend(value)
        elif dataclasses.is_dataclass(value):
            names[type(value).__name__] = type(value)
            pending.extend(getattr(value, field.name) for field in dataclasses.fields(value))
    return names
