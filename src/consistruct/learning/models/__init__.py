"""Models of the expected target, one file or folder each, all interchangeable.

A model estimates E[τ(y) | x] for a statistic τ of the true label; the estimators turn that into
decisions. `consistruct.models` is this package. Each model has one line in `MODELS`: what names,
tests and docs know it by.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from consistruct._validation import check_jobs, check_settings
from consistruct.learning.models.base import OutOfFold, TargetModel

if TYPE_CHECKING:
    from consistruct.learning.models.boosting.model import Boosting
    from consistruct.learning.models.chain.model import Chain
    from consistruct.learning.models.costs.model import Costs
    from consistruct.learning.models.items.model import Items
    from consistruct.learning.models.linear import Linear
    from consistruct.learning.models.prepared import Prepared
    from consistruct.learning.models.probabilities import Probabilities
    from consistruct.learning.models.regressor import Regressor
    from consistruct.learning.models.ridge.model import Ridge
    from consistruct.learning.models.stack import Stack
    from consistruct.learning.models.torch import Torch

__all__ = [
    "Boosting",
    "Chain",
    "Costs",
    "Items",
    "Linear",
    "OutOfFold",
    "Prepared",
    "Probabilities",
    "Regressor",
    "Ridge",
    "Stack",
    "TargetModel",
    "Torch",
]

# name: (module, class), imported on use
MODELS: dict[str, tuple[str, str]] = {
    "ridge": ("consistruct.learning.models.ridge.model", "Ridge"),
    "regressor": ("consistruct.learning.models.regressor", "Regressor"),
    "probabilities": ("consistruct.learning.models.probabilities", "Probabilities"),
    "boosting": ("consistruct.learning.models.boosting.model", "Boosting"),
    "linear": ("consistruct.learning.models.linear", "Linear"),
    "costs": ("consistruct.learning.models.costs.model", "Costs"),
    "chain": ("consistruct.learning.models.chain.model", "Chain"),
    "items": ("consistruct.learning.models.items.model", "Items"),
    "prepared": ("consistruct.learning.models.prepared", "Prepared"),
    "torch": ("consistruct.learning.models.torch", "Torch"),
    "stack": ("consistruct.learning.models.stack", "Stack"),
}
# what "auto" means for each kind of example
AUTOMATIC = {"rows": "stack", "sequences": "chain", "queries": "items", "decisions": "costs"}


def __getattr__(name: str) -> Any:
    for model, (_, attribute) in MODELS.items():
        if name == attribute:  # imported on use: no model needs the others
            return model_class(model)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def model_class(name: str) -> type[TargetModel]:
    """The class of a registered model."""
    module, attribute = MODELS[name]
    found: type[TargetModel] = getattr(import_module(module), attribute)
    return found


def set_names() -> list[str]:
    """Names that stand for a model with its defaults; `Prepared` has none."""
    return sorted(set(MODELS) - {"prepared"})


def make_model(
    model: Any, kind: str, *, cv: Any = None, time_limit: float | None = None, n_jobs: Any = None
) -> TargetModel:
    """The unfitted model for a kind of example, from a name or an object.

    Decisions are rows for every model; only what "auto" means differs.

    `cv`, `time_limit` and `n_jobs` are the estimator's: a model with folds of its own ("auto",
    `Stack`, `Items`) takes them over. For other models the estimator itself uses `cv` and `n_jobs`;
    `time_limit` is for those that have one (`Chain`, `Costs`) and has no meaning for others.
    """
    if isinstance(model, str):
        name = AUTOMATIC[kind] if model == "auto" else model
        if name not in set_names():
            raise ValueError(
                f"model must be 'auto', one of {', '.join(set_names())} or a model of "
                f"consistruct.models, got {model!r}"
            )
        found = model_class(name)()
    elif isinstance(model, TargetModel):
        found = model
    else:
        if isinstance(model, type) and issubclass(model, TargetModel):
            raise TypeError(f"model is the class {model.__name__}; pass {model.__name__}(…)")
        raise TypeError(
            f"model must be 'auto' or a model of consistruct.models, got "
            f"{type(model).__name__}; wrap a classifier as Probabilities(classifier), a regressor "
            f"as Regressor(regressor)"
        )
    check_settings(found)
    check_jobs(n_jobs)
    if isinstance(cv, Iterator):
        raise TypeError("cv is an iterator, which can be read only once; pass list(cv)")
    kind = "rows" if kind == "decisions" else kind
    if kind not in found.kinds:
        raise ValueError(
            f"{type(found).__name__} is for {' and '.join(found.kinds)}, but X and the loss are "
            f"{kind}; use model='auto'"
        )
    if found.uses_cv:
        return _taking_over(found, cv=cv, time_limit=time_limit, n_jobs=n_jobs)
    if "time_limit" in found.get_params(deep=False):
        return _taking_over(found, time_limit=time_limit)
    if time_limit is not None:
        raise ValueError(
            f"time_limit ends the trial of several models, but {type(found).__name__} is one; omit "
            "it, or use Stack (for rows, model='auto' is one)"
        )
    return found


def _taking_over(model: TargetModel, **given: Any) -> TargetModel:
    """A copy with the settings of the estimator, each of which may be given in one place only."""
    own = model.get_params(deep=False)
    changes = {name: value for name, value in given.items() if value is not None}
    for name in changes:
        if own[name] is not None:
            raise ValueError(
                f"{name} is set on the estimator and on {type(model).__name__}; set it once"
            )
    if not changes:
        return model
    copied: TargetModel = clone(model).set_params(**changes)
    return copied
