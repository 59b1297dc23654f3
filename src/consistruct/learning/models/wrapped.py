"""Any scikit-learn-compatible estimator inside a model: its seeds, its workers, its weights.

Estimators are described by their tags and parameters, never by their class, so that XGBoost,
LightGBM, CatBoost, skorch and pipelines of them are met on equal terms with scikit-learn's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from consistruct._threads import each, staffed
from consistruct.exceptions import CapabilityError
from consistruct.protocols import FloatArray

__all__ = [
    "check_weights",
    "fit_each",
    "fit_wrapped",
    "holds_search",
    "n_rows",
    "prepared",
    "takes_missing",
    "takes_several_outputs",
    "wants_matrix",
]

SEEDS = 2**31 - 1  # what scikit-learn and the boosters take
SEED_NAMES = ("random_state", "random_seed", "seed")


def last_step(estimator: Any) -> Any:
    """The estimator that meets the targets: the last step of a pipeline, the inside of a search."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        return last_step(steps[-1][1])
    if _is_search(estimator):
        return last_step(estimator.estimator)
    return estimator


def _is_search(estimator: Any) -> bool:
    return hasattr(estimator, "estimator") and hasattr(estimator, "refit")


def _tags(estimator: Any) -> Any:
    """scikit-learn's tags, or None of an estimator that has none."""
    try:
        return get_tags(estimator)
    except (AttributeError, TypeError, ValueError):
        return None


def takes_missing(estimator: Any) -> bool:
    """Whether NaN in X is welcome; the first step of a pipeline decides."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list):
        first = next((step for _, step in steps if step not in (None, "passthrough")), None)
        return first is not None and takes_missing(first)
    if _is_search(estimator):
        return takes_missing(estimator.estimator)
    if hasattr(estimator, "transformers"):  # its parts meet the columns, and say so themselves
        return True
    tags = _tags(estimator)
    return tags is None or bool(tags.input_tags.allow_nan)


def holds_search(estimator: Any) -> bool:
    """Whether settings are searched for inside, which needs a score of the targets."""
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        return holds_search(steps[-1][1])
    return _is_search(estimator)


def takes_several_outputs(estimator: Any) -> bool | None:
    """Whether one fit takes a matrix of targets; None if only a trial can tell.

    Tags say so for scikit-learn's own and for XGBoost. Others without the tag may still take a
    matrix: CatBoost does with a loss over several outputs, skorch always does.
    """
    inner = last_step(estimator)
    tags = _tags(inner)
    if tags is not None and tags.target_tags.multi_output:
        return True
    objective = inner.get_params().get("loss_function")
    if isinstance(objective, str):  # CatBoost: MultiRMSE, MultiLogloss, …
        return objective.startswith("Multi") and objective != "MultiClass"
    if type(inner).__module__.split(".")[0] in ("sklearn", "lightgbm"):
        return False
    return None


def wants_matrix(estimator: Any) -> bool:
    """Whether targets must be a matrix even if they have one column."""
    tags = _tags(last_step(estimator))
    return tags is not None and not tags.target_tags.single_output


def n_rows(X: Any) -> int:
    """Rows of an array, a sparse matrix, a DataFrame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def prepared(estimator: Any, rng: np.random.Generator) -> Any:
    """A clone with every open seed drawn from `rng`; a seed that the user has set stays."""
    copy = clone(estimator)
    parameters = copy.get_params(deep=True)
    changes: dict[str, Any] = {}
    for name in sorted(parameters):
        if name.rpartition("__")[2] in SEED_NAMES and parameters[name] is None:
            changes[name] = int(rng.integers(SEEDS))
    # `seed` and `random_state` are two names of one thing in some packages: one of them is enough
    for name in list(changes):
        twin = name.removesuffix("seed") + "random_state"
        if name.endswith("seed") and (twin in changes or parameters.get(twin) is not None):
            del changes[name]
    return copy.set_params(**changes) if changes else copy


def _weight_name(estimator: Any) -> str | None:
    """The keyword by which `fit` takes sample weights, or None if there is none.

    With scikit-learn's metadata routing switched on, it is the user who requests weights of each
    step, as there.
    """
    steps = getattr(estimator, "steps", None)
    if isinstance(steps, list) and steps:
        name, step = steps[-1]
        inner = _weight_name(step)
        if inner is None or get_config()["enable_metadata_routing"]:
            return inner
        return f"{name}__{inner}"
    if _is_search(estimator):
        return _weight_name(estimator.estimator)
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    regressor = getattr(estimator, "regressor", None)  # TransformedTargetRegressor
    if regressor is not None and has_fit_parameter(regressor, "sample_weight"):
        return "sample_weight"
    return None


def check_weights(estimator: Any, weight: FloatArray | None, owner: object) -> None:
    """Raise if rows have different weights and the estimator takes none."""
    if weight is None or np.ptp(weight) == 0 or _weight_name(estimator) is not None:
        return
    raise CapabilityError(
        last_step(estimator),
        "sample_weight in fit",
        f"{type(owner).__name__} with rows of different weight",
        "omit sample_weight and class_weight, or use an estimator that supports weights, such as "
        "forests or boosting",
    )


def fit_wrapped(
    estimator: Any, X: Any, y: Any, weight: FloatArray | None, n_jobs: int | None = None
) -> Any:
    """Fit in place, with weights where they are not all one and the estimator takes them.

    Estimators that ask joblib for workers and leave the number open get `n_jobs`.
    """
    name = None if weight is None or (weight == 1.0).all() else _weight_name(estimator)
    weights = {} if name is None else {name: weight}
    if n_jobs is None or not _requests_workers(estimator):
        return estimator.fit(X, y, **weights)
    with staffed(n_jobs):
        return estimator.fit(X, y, **weights)


def _requests_workers(estimator: Any) -> bool:
    """Whether it, or a step of it, has workers; others keep the threads of their libraries."""
    return any(name.rpartition("__")[2] == "n_jobs" for name in estimator.get_params())


def fit_each(
    estimator: Any,
    X: Any,
    columns: list[Any],  # of (n,) targets
    weight: FloatArray | None,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> list[Any]:
    """One fitted clone per column of targets; the same whatever `n_jobs`."""
    copies = [prepared(estimator, rng) for _ in columns]

    def fit(copy: Any, y: Any) -> Any:
        return fit_wrapped(copy, X, y, weight)

    return each(fit, zip(copies, columns, strict=True), n_jobs)
