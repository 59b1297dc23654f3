"""What a scikit-learn object from a file must satisfy before compiled code sees it.

Compiled tree traversal follows child and feature numbers without looking: one number out of range
reads foreign memory. These checks make a file that was tampered with an error and not a crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.exceptions import ModelFileError

__all__ = [
    "check_boosted_tree",
    "check_content",
    "check_generator",
    "check_settings",
    "check_tree",
]

LEAF = -1  # the child of a leaf in a Tree


# Workers that a file may request of joblib, which starts as many processes as it is set to: more
# than any single machine has processors, fewer than a machine fails at.
MOST_JOBS = 1024
# modules of types that are values (of `dtype`) and not something to call
_DTYPE_MODULES = frozenset({"builtins", "numpy"})


def check_settings(value: Any) -> None:
    """Refuse attributes that name a folder, a callable or a number of processes.

    A later fit obeys them: joblib unpickles what it finds in the folder of `Pipeline.memory`, and
    calls what stands where a callable may. So a model file has neither, and whoever fits sets them.
    """
    for part in _parts(value):
        if isinstance(part, partial):
            _check_callable("partial", "func", part.func)
        for name, entry in getattr(part, "__dict__", {}).items():
            _check_setting(type(part).__name__, str(name), entry)


def _check_setting(owner: str, name: str, entry: Any) -> None:
    if name in ("memory", "checkpoint") and entry is not None:
        raise ModelFileError(
            f"{owner} has {name}={entry!r:.100}, a place on disk that a later fit would use; "
            f"set {name}=None"
        )
    if name == "n_jobs" and not (entry is None or _is_job_count(entry)):
        raise ModelFileError(
            f"{owner} has n_jobs={entry!r:.100}; a model file may have None or an integer between "
            f"{-MOST_JOBS} and {MOST_JOBS}"
        )
    _check_callable(owner, name, entry)


def _is_job_count(entry: Any) -> bool:
    whole = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
    return whole and 0 < abs(entry) <= MOST_JOBS


def _check_callable(owner: str, name: str, entry: Any) -> None:
    """A type is a value of `dtype` at most: elsewhere scikit-learn would call it."""
    plain = isinstance(entry, type) and entry.__module__ in _DTYPE_MODULES
    if isinstance(entry, type) and not (plain and "dtype" in name):
        raise ModelFileError(f"{owner} has the type {entry.__name__} as {name!r}; set it to None")


def check_content(value: Any) -> None:
    """Check every part of a loaded object that compiled code or a later fit relies on."""
    check_settings(value)
    for part in _parts(value):
        name = type(part).__name__
        if name in _CHECKS:
            _CHECKS[name](part)
        _no_hidden_methods(part)


def _parts(value: Any) -> Iterator[Any]:
    """The object and all objects inside, each once."""
    pending, seen = [value], set()
    while pending:
        part = pending.pop()
        if part is None or isinstance(part, str | bytes | bool | int | float | type):
            continue
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            pending.extend(part)
        elif isinstance(part, np.ndarray):
            if part.dtype == object:
                pending.extend(part.ravel().tolist())
        else:
            yield part
            if isinstance(part, partial):
                pending.extend([part.func, part.args, part.keywords])
            pending.extend(getattr(part, "__dict__", {}).values())


def _require(condition: Any, message: str) -> None:
    if not condition:
        raise ModelFileError(f"its scikit-learn part is damaged: {message}")


def _no_hidden_methods(part: Any) -> None:
    for name in getattr(part, "__dict__", {}):
        found = getattr(type(part), str(name), None)
        _require(not callable(found), f"it sets the method {name!r} of {type(part).__name__}")


# --- random numbers -----------------------------------------------------------------------------


def check_generator(generator: Any) -> None:
    """Refuse a position outside the buffer of a generator of random numbers.

    NumPy stores what it is given, and the next draw reads at that place in memory.

    Parameters
    ----------
    generator : numpy.random.Generator or numpy.random.RandomState
    """
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state(legacy=False)
    else:
        state = generator.bit_generator.state
    # the other bit generators have no buffer: all of their states are numbers
    if state["bit_generator"] == "MT19937":
        position, size = state["state"]["pos"], len(state["state"]["key"])
    elif state["bit_generator"] == "Philox":
        position, size = state["buffer_pos"], len(state["buffer"])
    else:
        return
    # equal to the size: all numbers are used up, and the next draw makes new ones
    if not 0 <= position <= size:
        raise ModelFileError(
            f"it has a generator of random numbers at position {position} of a buffer of {size}"
        )


# --- trees --------------------------------------------------------------------------------------


def check_tree(tree: Any, n_features: int) -> None:
    """Children after their parent and in range (so no cycle), features in range, no NaN.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree
    n_features : int
        Columns of the inputs that the tree will be given.
    """
    # the count is a plain number in the file, the capacity that of the array that came with it
    _require(0 < tree.node_count <= tree.capacity, "a tree has a wrong number of nodes")
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    inner = left != LEAF
    _check_children(left, right, inner)
    features = np.asarray(tree.feature)[inner]
    _require(
        tree.n_features == n_features and _within(features, n_features),
        f"a tree uses a feature that {n_features} columns do not have",
    )
    _require(not np.isnan(np.asarray(tree.threshold)[inner]).any(), "a threshold is not a number")
    _require(np.isfinite(np.asarray(tree.value)).all(), "a leaf is not finite")


def _check_children(left: NDArray[Any], right: NDArray[Any], inner: NDArray[Any]) -> None:
    here, n = np.flatnonzero(inner), len(left)
    for child in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        _require(
            (child > here).all() and (child < n).all(), "the children of a node are out of order"
        )


def _within(numbers: NDArray[Any], stop: int) -> bool:
    return bool((numbers >= 0).all() and (numbers < stop).all())


def _check_tree_estimator(estimator: Any) -> None:
    if "tree_" in vars(estimator):
        _require(type(estimator.tree_).__name__ == "Tree", "a tree is something else")
        check_tree(estimator.tree_, _n_features(estimator))


def _n_features(estimator: Any) -> int:
    found: Any = vars(estimator).get("n_features_in_")
    _require(isinstance(found, int | np.integer) and found > 0, "n_features_in_ is not a number")
    return int(found)


def _check_forest(forest: Any) -> None:
    if "estimators_" not in vars(forest):
        return
    n_features = _n_features(forest)
    _require(isinstance(forest.estimators_, list), "a forest contains no list of trees")
    for tree in forest.estimators_:
        known = type(tree).__name__ in _TREES and "tree_" in vars(tree)
        _require(known and _n_features(tree) == n_features, "a forest contains something else")


# --- boosting by histograms ---------------------------------------------------------------------


def check_boosted_tree(predictor: Any, categorical: NDArray[np.bool_]) -> None:
    """The same for a tree of HistGradientBoosting.

    Parameters
    ----------
    predictor : TreePredictor
    categorical : (n_features,) bool array
        Which columns hold categories, as the bins know them.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = predictor.nodes
    _require(
        isinstance(nodes, np.ndarray)
        and nodes.dtype == PREDICTOR_RECORD_DTYPE
        and nodes.ndim == 1
        and len(nodes) > 0,
        "the nodes of a tree are not written as this version does",
    )
    inner = nodes["is_leaf"] == 0
    _check_children(nodes["left"], nodes["right"], inner)
    split = nodes[inner]
    _require(
        _within(split["feature_idx"], len(categorical)),
        f"a tree uses a feature that {len(categorical)} columns do not have",
    )
    # +inf sends every number left and missing values right
    _require(not np.isnan(split["num_threshold"]).any(), "a threshold is not a number")
    _require(np.isfinite(nodes["value"]).all(), "a leaf is not finite")
    by_category = split[split["is_categorical"] != 0]
    _require(categorical[by_category["feature_idx"]].all(), "a tree takes numbers for categories")
    for sets in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
        _require(
            isinstance(sets, np.ndarray)
            and sets.dtype == np.uint32
            and sets.ndim == 2
            and sets.shape[1] == 8
            and _within(by_category["bitset_idx"], len(sets)),
            "the categories of a tree are out of range",
        )


def _check_boosting(boosting: Any) -> None:
    state = vars(boosting)
    if "_predictors" not in state:
        return
    bins = state.get("_bin_mapper")
    _require(type(bins).__name__ == "_BinMapper", "the bins of a booster are missing")
    categorical = vars(bins).get("is_categorical_")
    width = _boosting_columns(boosting)
    _require(
        isinstance(categorical, np.ndarray)
        and categorical.dtype in (np.uint8, np.bool_)
        and categorical.shape == (width,),
        "a booster knows other columns than it was fitted on",
    )
    for iteration in state["_predictors"]:
        for predictor in iteration:
            _require(type(predictor).__name__ == "TreePredictor", "a booster contains no trees")
            check_boosted_tree(predictor, categorical != 0)


def _boosting_columns(boosting: Any) -> int:
    """Columns that the trees of a booster meet: those of its encoder of categories, if any."""
    n_features = _n_features(boosting)
    encoder = vars(boosting).get("_preprocessor")
    if encoder is None:
        return n_features
    _require(type(encoder).__name__ == "ColumnTransformer", "a booster's encoder is unknown")
    width = 0
    for name, step, columns in encoder.transformers_:
        picked = np.asarray(columns)
        found = encoder._transformer_to_input_indices.get(name)
        _require(
            picked.shape == (n_features,)
            and picked.dtype == np.bool_
            and np.array_equal(np.asarray(found, dtype=np.int64), np.flatnonzero(picked)),
            "a booster's encoder takes unknown columns",
        )
        _require(step == "drop" or _keeps_columns(step), "a booster's encoder is unknown")
        width += int(picked.sum()) if step != "drop" else 0
    _require(width == n_features, "a booster's encoder leaves columns out")
    return width


def _keeps_columns(step: Any) -> bool:
    if type(step).__name__ == "OrdinalEncoder":
        return True
    check: Any = getattr(step, "func", None)
    plain = isinstance(check, partial) and getattr(check.func, "__name__", "") == "check_array"
    return plain and not check.args and set(check.keywords) <= {"dtype", "ensure_all_finite"}


# --- one column per category --------------------------------------------------------------------


def _check_one_hot(encoder: Any) -> None:
    """Columns of every category within those that the encoder states it has."""
    state = vars(encoder)
    if "categories_" not in state:
        return
    counts, dropped = list(encoder._n_features_outs), encoder._drop_idx_after_grouping
    grouped = getattr(encoder, "_default_to_infrequent_mappings", None)
    _require(len(counts) == len(encoder.categories_), "an encoder has a wrong number of columns")
    for i, categories in enumerate(encoder.categories_):
        codes = np.arange(len(categories))
        try:
            if grouped is not None and grouped[i] is not None:
                codes = np.asarray(grouped[i], dtype=np.int64)[codes]
            if dropped is not None and dropped[i] is not None:
                codes = codes[codes != dropped[i]]
                codes = np.where(codes > dropped[i], codes - 1, codes)
        except (IndexError, TypeError, ValueError):
            _require(False, "an encoder groups categories that it does not have")
        _require(_within(codes, int(counts[i])), "an encoder has categories out of range")


_TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)
_CHECKS = {
    **dict.fromkeys(_TREES, _check_tree_estimator),
    "ExtraTreesClassifier": _check_forest,
    "ExtraTreesRegressor": _check_forest,
    "RandomForestClassifier": _check_forest,
    "RandomForestRegressor": _check_forest,
    "HistGradientBoostingClassifier": _check_boosting,
    "HistGradientBoostingRegressor": _check_boosting,
    "OneHotEncoder": _check_one_hot,
    "Generator": check_generator,
    "RandomState": check_generator,
}
