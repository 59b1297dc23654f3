"""Settings that others make meaningless are refused, not ignored."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from sklearn.base import BaseEstimator

__all__ = ["refuse_idle"]


def refuse_idle(model: BaseEstimator, where: str, used: bool, names: Iterable[str]) -> None:
    """Raise if settings differ from their defaults though nothing uses them.

    Parameters
    ----------
    model : estimator
    where : str
        When they have an effect, as a user would write it: "solver='sgd'".
    used : bool
        Whether that is the case.
    names : names of the settings
    """
    if used:
        return
    parameters = inspect.signature(type(model)).parameters
    for name in names:
        given, default = getattr(model, name), parameters[name].default
        if given is not default and given != default:
            raise ValueError(f"{name}={given!r} has an effect with {where} only; leave it out")
