"""Settings that others make meaningless are refused, not ignored."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from sklearn.base import BaseEstimator

from consistruct.learning.models.features.kernels import KERNELS

__all__ = ["refuse_idle", "refuse_idle_features"]


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
            raise ValueError(f"{name}={given!r} has an effect only with {where}; omit it")


def refuse_idle_features(model: BaseEstimator) -> None:
    """Refuse settings of kernels where there is none; the model has those of `FeatureOptions`."""
    name = model.features if isinstance(model.features, str) else "transformer"
    chosen = name in ("auto", "nystroem", "random")
    poly = name == "poly" or (chosen and model.kernel == "poly")
    approximated = "features 'auto', 'nystroem' or 'random'"
    refuse_idle(model, approximated, chosen, ("kernel", "n_components"))
    refuse_idle(model, "a kernel", chosen or name in KERNELS, ("bandwidth",))
    refuse_idle(model, "the polynomial kernel", poly, ("degree", "coef0"))
    refuse_idle(model, "built-in features", name != "transformer", ("standardize",))
