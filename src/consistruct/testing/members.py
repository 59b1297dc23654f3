"""Check value semantics: frozen, hashable by content, picklable, copyable, printable as code."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from consistruct import losses, structures
from consistruct.testing.contracts import Contracts, reports_errors

__all__ = ["check_member"]


@reports_errors
def check_member(member: Any) -> None:
    """Check that a member is frozen, equal by content, copyable in every way, and prints as code.

    Losses are keys of caches and parameters of estimators that are cloned, pickled and sent to
    workers: each way must lead to an equal value with the same hash.

    Parameters
    ----------
    member : Member
        A loss, a structure, a label set or a metric.
    """
    contracts = Contracts(member)
    fields = dataclasses.fields(member)
    for field in fields:
        contracts.raises(
            dataclasses.FrozenInstanceError,
            partial(setattr, member, field.name, None),
            "members are frozen",
        )
        value = getattr(member, field.name)
        # frozen fields do not freeze what they hold: an array could change under the hash
        if isinstance(value, np.ndarray):
            contracts.ensure(not value.flags.writeable, f"the array {field.name} is read-only")
    for how, twin in (
        ("pickle", pickle.loads(pickle.dumps(member))),
        ("copy", copy.copy(member)),
        ("deepcopy", copy.deepcopy(member)),
        ("dataclasses.replace", dataclasses.replace(member)),
        ("scikit-learn's clone", clone(_Holder(member)).member),
    ):
        contracts.ensure(
            type(twin) is type(member) and twin == member, f"{how} gives an equal member"
        )
        contracts.ensure(hash(twin) == hash(member), f"{how} keeps the hash")
        contracts.ensure(repr(twin) == repr(member), f"{how} keeps the repr")
    # __eq__ has to return NotImplemented for other types; an error here breaks `in` and dict
    # lookups
    contracts.ensure(member != object() and member != 0, "a member differs from other objects")
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
        contracts.ensure(
            again == member, "the repr is code that makes the member", f"got {again!r}"
        )


class _Holder(BaseEstimator):  # type: ignore[misc]
    """Take the member as a parameter, as estimators do, so that scikit-learn clones it."""

    def __init__(self, member: Any = None) -> None:
        self.member = member


def _names(member: Any) -> dict[str, Any]:
    """Return the public names, and the classes of the member and of what it holds."""
    # classes of one's own are no public names: a repr names them all the same
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
