"""Checks of user input: each message states what was given, what is allowed and what to do.

At the end what an array may be: sparse, or a tensor.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike, NDArray

from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "check_alpha",
    "check_choice",
    "check_cost_scale",
    "check_count",
    "check_counts",
    "check_csr",
    "check_embedding",
    "check_jobs",
    "check_loss_matrix",
    "check_measure",
    "check_number",
    "check_rows",
    "check_scores",
    "check_settings",
    "check_theta",
    "check_unused_params",
    "check_weights",
    "integer_labels",
    "is_sparse",
    "is_tensor",
    "on_host",
    "read_integer",
    "read_number",
    "refuse_all_forbidden",
    "single_alpha",
    "to_dense",
]


SMALLEST_COST, LARGEST_COST = 1e-150, 1e150
SHOWN = 60  # characters of a value that a message repeats


def check_count(value: object, name: str, *, minimum: int = 1) -> int:
    """Return `value` as a Python int of at least `minimum` (bools are refused)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(
            f"{name} must be an integer of at least {minimum}, got {value!r} "
            f"of type {type(value).__name__}"
        )
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_counts(values: object, name: str, *, minimum: int = 1) -> tuple[int, ...]:
    """Return a non-empty sequence of integers as a tuple of Python ints."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise TypeError(f"{name} must be a sequence of integers, got {values!r}")
    if len(values) == 0:
        raise ValueError(f"{name} must not be empty; pass at least one integer")
    return tuple(
        check_count(value, f"{name}[{position}]", minimum=minimum)
        for position, value in enumerate(values)
    )


def check_choice(value: object, name: str, choices: Sequence[object]) -> None:
    """Refuse a value that is none of a few.

    >>> check_choice("mean", "reduce", ("infimum", "average"))
    Traceback (most recent call last):
    ValueError: reduce must be 'infimum' or 'average', got 'mean'
    """
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")


def check_jobs(n_jobs: object) -> None:
    """Refuse what is no number of workers: None, 1, 2, …, or −1 for every processor.

    >>> check_jobs(-1)
    """
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be None, a number of workers such as 2, or -1 for every processor, got "
            f"{n_jobs!r}"
        )


def check_number(
    value: object,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
) -> float:
    """Return `value` as a finite float in [low, high] (or (low, high] with `open_low`)."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond all floats
        number = math.inf
    inside = low < number <= high if open_low else low <= number <= high
    if not math.isfinite(number) or not inside:
        bracket = "(" if open_low else "["
        raise ValueError(f"{name} must be a finite number in {bracket}{low}, {high}], got {value}")
    return number


# what a word of an annotation takes; a bool is no number here
PLAIN: dict[str, tuple[type, ...]] = {
    "None": (type(None),),
    "PathLike[str]": (PathLike,),
    "bool": (bool, np.bool_),
    "float": (Real,),
    "int": (Integral,),
    "str": (str,),
}
IN_WORDS = {
    "None": "None",
    "bool": "True or False",
    "float": "a number",
    "int": "an integer",
    "str": "a string",
}


def check_settings(model: Any) -> None:
    """Refuse parameters whose types are not those that the constructor is annotated with.

    Compiled loops fail on them with a page of text, and ``fit_intercept="no"`` would mean yes.
    Annotations that are more than plain types are left to `fit`.
    """
    given = model.get_params(deep=False)
    for name, parameter in inspect.signature(type(model)).parameters.items():
        words = str(parameter.annotation).split(" | ")
        if name not in given or not set(words) <= set(PLAIN):
            continue
        value = given[name]
        if name == "n_jobs":
            check_jobs(value)
        boolean = isinstance(value, bool | np.bool_)
        if not any(
            isinstance(value, PLAIN[word]) and (not boolean or word == "bool") for word in words
        ):
            allowed = " or ".join(IN_WORDS[word] for word in words if word in IN_WORDS)
            shown = repr(value)
            raise TypeError(
                f"{name} of {type(model).__name__} must be {allowed}, got "
                f"{shown if len(shown) <= SHOWN else shown[:SHOWN] + '…'} of type "
                f"{type(value).__name__}"
            )


def read_number(text: str) -> float:
    """A decimal number as files and options write it; ValueError for anything else.

    Python's own `float` also takes ``1_000`` and the digits of every script.

    >>> read_number(" -1.5e3 ")
    -1500.0
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text!r}")
    return float(text)


def read_integer(text: str, most_digits: int = 18) -> int:
    """An integer in ASCII digits, with a sign or without; ValueError for anything else.

    The default number of digits keeps it within 64 bits.
    """
    word = text.strip()
    if not word.isascii() or not word.removeprefix("-").removeprefix("+").isdigit():
        raise ValueError(f"not an integer: {text!r}")
    if len(word.lstrip("+-0")) > most_digits:
        raise ValueError(f"an integer of more than {most_digits} digits: {text[:24]!r}…")
    return int(word)


def check_cost_scale(largest: float) -> None:
    """Refuse costs whose squares no float holds; `largest` is the greatest cost of a loss.

    >>> check_cost_scale(20.0)
    """
    if largest != 0.0 and not SMALLEST_COST <= largest <= LARGEST_COST:
        raise ValueError(
            f"the largest of the costs must be between {SMALLEST_COST:g} and {LARGEST_COST:g}, "
            f"got {largest:g}; divide all costs by a common factor, which changes no decision"
        )


def check_loss_matrix(
    values: ArrayLike, name: str = "M", *, copy: bool = True, true_labels: str = "column"
) -> FloatArray:
    """Return a cost matrix as float64: two-dimensional, non-empty, finite, non-negative.

    Without `copy` it may be the given array, which then must not be changed.
    """
    try:
        matrix = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            f"{name} must be a rectangular matrix; its rows have different lengths ({error})"
        ) from None
    if matrix.dtype == object:
        try:
            if any(isinstance(entry, str | bytes) for entry in matrix.ravel()):
                raise TypeError  # "1" would be read as 1
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} must contain only numbers, got an entry that is not a number; convert or "
                "drop such cells first"
            ) from None
    if matrix.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must contain real numbers, got dtype {matrix.dtype}; convert strings and "
            "dates to costs first"
        )
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (predictions x true labels), got shape {matrix.shape}"
        )
    if matrix.size == 0:
        raise ValueError(
            f"{name} must have at least one row and one column, got shape {matrix.shape}"
        )
    matrix = matrix.astype(np.float64, copy=copy)
    if matrix.min() >= 0.0 and matrix.max() < np.inf:  # NaN is neither
        return matrix
    for bad, fault, remedy in (
        (np.isnan(matrix), "NaN", "fill or drop the missing costs"),
        (np.isinf(matrix), "an infinite cost", "forbid a prediction by leaving its row out"),
        (
            matrix < 0,
            "a negative cost",
            f"add a constant to that {true_labels}, which changes no decision",
        ),
    ):
        if bad.any():
            row, column = (int(position) for position in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} must be finite and non-negative, got {fault} at row {row}, "
                f"column {column}; {remedy}"
            )
    raise AssertionError("the quick test and the slow one disagree")


def check_embedding(values: ArrayLike, name: str = "F") -> FloatArray:
    """Return F as float64 of shape (labels, width): a finite matrix that is not empty."""
    try:
        matrix = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} must be a matrix (labels x width), got rows of different lengths"
        ) from None
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain real numbers, got dtype {matrix.dtype}")
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"{name} must be a matrix (labels x width), got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return matrix.astype(np.float64)


def check_measure(values: ArrayLike, n_labels: int) -> FloatArray:
    """Return a reference measure: one positive weight per label, normalized to sum to one."""
    weights = np.asarray(values)
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"measure must contain numbers, got dtype {weights.dtype}")
    if weights.shape != (n_labels,):
        raise ValueError(
            f"measure must have one weight per prediction, shape ({n_labels},), "
            f"got shape {weights.shape}"
        )
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all() or (weights <= 0).any():
        raise ValueError(
            "measure must be finite and positive on every label: consistency needs full support"
        )
    total = float(weights.sum())
    # a normalized measure stays as it is, bit for bit: members are rebuilt from their own fields
    if abs(total - 1.0) <= n_labels * float(np.finfo(np.float64).eps):
        return weights
    return np.asarray(weights / total)


def check_weights(values: ArrayLike, size: int, name: str, per: str) -> FloatArray:
    """Return one finite, non-negative weight for each of `size` things, called `per`."""
    try:
        weights = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be one flat sequence of numbers") from None
    if weights.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain real numbers, got dtype {weights.dtype}")
    if weights.shape != (size,):
        raise ValueError(
            f"{name} must have one entry per {per}, shape ({size},), got shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"{name} must be finite and non-negative, got {weights.tolist()}")
    return weights.astype(np.float64)


def single_alpha(alpha: object) -> float | None:
    """A penalty of an iterative solver: None for "auto", or one number."""
    checked = check_alpha(alpha)
    if isinstance(checked, np.ndarray):
        raise ValueError(
            "alpha must be one number or 'auto' for iterative solvers; only the closed form "
            "chooses among several (use GridSearchCV for the others)"
        )
    return checked


def check_alpha(alpha: object) -> float | FloatArray | None:
    """A penalty: None for "auto", one number, or several to choose from."""
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ValueError(
                f"alpha must be 'auto', a non-negative number or a list of them, got {alpha!r}"
            )
        return None
    if isinstance(alpha, list | tuple | np.ndarray):
        values = np.array([check_number(value, "alpha", low=0.0) for value in alpha])
        if len(values) == 0:
            raise ValueError("alpha must not be an empty list; pass numbers or 'auto'")
        return values
    return check_number(alpha, "alpha", low=0.0)


def check_unused_params(model: object, where: str, used: bool, names: Iterable[str]) -> None:
    """Raise if settings differ from their defaults though nothing uses them: none is ignored.

    Parameters
    ----------
    model : model or estimator
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


def check_rows(theta: ArrayLike, width: int, name: str = "theta") -> FloatArray:
    """Return a batch as float64 of shape (n, width); a wrong width never broadcasts."""
    try:
        array = np.asarray(theta)
    except ValueError:
        raise ValueError(
            f"{name} must have shape (n, {width}), got rows of different lengths"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.shape[1] != width:
        raise ValueError(
            f"{name} must have shape (n, {width}), one row per example, got {array.shape}"
        )
    return array.astype(np.float64, copy=False)


def check_theta(theta: ArrayLike, width: int, name: str = "theta") -> FloatArray:
    """Return scores as float64 of shape (n, width): −inf allowed, NaN and +inf not."""
    array = check_rows(theta, width, name)
    check_scores(array, name)
    return array


def check_scores(array: NDArray[Any], name: str, *, first_row: int = 0) -> None:
    """Refuse NaN and +inf (−inf forbids a label); fast when all is finite."""
    # A sum is finite only if every term is: one pass and no temporary in the usual case.
    with np.errstate(invalid="ignore", over="ignore"):
        if array.size == 0 or np.isfinite(array.sum()):
            return
    bad = np.isnan(array) | (array == np.inf)
    if bad.any():
        where = tuple(int(position) for position in np.argwhere(bad)[0])
        position = (where[0] + first_row, *where[1:])
        raise ValueError(
            f"{name} must not contain NaN or +inf (−inf forbids a label), got {array[where]} at "
            f"position {position}"
        )


def refuse_all_forbidden(best: FloatArray) -> None:
    """Raise if some example has no label with a finite score."""
    empty = np.isneginf(best)
    if empty.any():
        raise ValueError(
            f"every label is forbidden (score −inf) for example {int(np.argmax(empty))}; "
            f"leave at least one label possible"
        )


def integer_labels(labels: ArrayLike, shape: tuple[int, ...], name: str) -> LabelArray:
    """Return a batch of labels as an integer array of shape (n, *shape), or object for big ints."""
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a rectangular array, one row per example; use Ragged for sequences "
            f"of different lengths ({error})"
        ) from None
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)  # np.asarray([]) is float
    if array.dtype.kind == "f" and not isinstance(labels, np.ndarray):
        # NumPy reads the list [0, 2**63] as floats; Python ints keep it exact
        exact = np.asarray(labels, dtype=object)
        if all(type(entry) is int for entry in exact.ravel()):
            array = exact
    if array.dtype == object:
        if not all(
            isinstance(entry, Integral) and not isinstance(entry, bool) for entry in array.ravel()
        ):
            raise TypeError(f"{name} must contain integers, got other Python objects")
    elif array.dtype.kind == "b":
        array = array.astype(np.int64)
    elif array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must contain integer labels, got dtype {array.dtype}; map class names to "
            "0..k-1 first, or use an estimator, which does this for you"
        )
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
        expected = ", ".join(["n", *map(str, shape)]) + ("," if not shape else "")
        raise ValueError(
            f"{name} must have shape ({expected}), one row per example, got {array.shape}"
        )
    return array


def is_sparse(rows: Any) -> bool:
    """Whether `rows` is a SciPy sparse container."""
    return bool(scipy.sparse.issparse(rows))


def check_csr(data: Any, indices: Any, indptr: Any, shape: Any) -> None:
    """Refuse compressed rows that a compiled loop would read out of bounds.

    Row i takes the entries indptr[i]..indptr[i+1], so 0 = indptr[0] ≤ indptr[1] ≤ … ≤ indptr[n]
    must equal the number of entries, and 0 ≤ indices < width. `check_format` of SciPy looks at the
    order of `indptr` only where its last number is above 0, and takes entries beyond it.
    For compressed columns pass the shape turned around.

    Raises ValueError.

    >>> check_csr([1.0, 2.0], [0, 2], [0, 1, 2], (2, 3))
    >>> check_csr([], [], [0, 1000, 0], (2, 3))
    Traceback (most recent call last):
    ...
    ValueError: indptr must not decrease, got 1000 before 0 in row 1
    """
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    n_rows, width = (check_count(side, "a side of the shape", minimum=0) for side in shape)
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        if part.ndim != 1:
            raise ValueError(f"{name} must have one dimension, got shape {part.shape}")
        if name != "data" and part.size and part.dtype.kind not in "iu":
            raise ValueError(f"{name} must contain whole numbers, got dtype {part.dtype}")
    if len(indptr) != n_rows + 1:
        raise ValueError(f"indptr must have {n_rows + 1} numbers, got {len(indptr)}")
    if len(indices) != len(data):
        raise ValueError(f"{len(data)} entries in data, but {len(indices)} in indices")
    if indptr[0] != 0:
        raise ValueError(f"indptr must start at 0, got {indptr[0]}")
    # compared, not subtracted: differences of extreme or unsigned numbers wrap around
    decreases = np.flatnonzero(indptr[1:] < indptr[:-1])
    if decreases.size:
        row = int(decreases[0])
        pair = f"{indptr[row]} before {indptr[row + 1]}"
        raise ValueError(f"indptr must not decrease, got {pair} in row {row}")
    if indptr[-1] != len(data):
        raise ValueError(
            f"indptr must end with {len(data)}, the number of entries, got {indptr[-1]}"
        )
    if len(indices) and not (indices.min() >= 0 and indices.max() < width):
        wrong = indices[(indices < 0) | (indices >= width)][0]
        raise ValueError(f"indices must be in 0..{width - 1}, got {wrong}")


def to_dense(rows: Any) -> Any:
    """The same entries as a NumPy array; no copy if it is one."""
    return rows.toarray() if is_sparse(rows) else np.asarray(rows)


def is_tensor(values: object) -> bool:
    """Whether this is a tensor of PyTorch, which is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_host(values: Any) -> Any:
    """A tensor as a NumPy array, anything else as it is."""
    return values.detach().cpu().numpy() if is_tensor(values) else values
