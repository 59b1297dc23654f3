"""What an example is: a row of a table, a sequence of tokens, a query with its items.

A kind turns what users hold (X, y, groups) into packed inputs and codes of true labels, and codes
of predictions back into what users expect. Estimators ask it; models never see raw labels. Inputs
of any magnitude, weights, groups and random states are checked here too, as scikit-learn users give
them.
"""

from __future__ import annotations

import copy
import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import (
    check_array,
    validate_data,
)

from consistruct._frames import as_array, is_table, refuse_inexact_integers, unmasked
from consistruct._validation import is_sparse, is_tensor, on_host, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.encoding.fitted_classes import encoding_for
from consistruct.learning.encoding.labels import LabelEncoding, takes_any_labels
from consistruct.learning.encoding.named_inputs import named_columns, named_frame
from consistruct.learning.statistics import finest_statistic
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = [
    "Examples",
    "Kind",
    "Rows",
    "check_magnitude",
    "check_sample_weight",
    "checked_groups",
    "column_units",
    "combined_weight",
    "generator",
    "input_scale",
    "known_finite",
    "refuse_groups",
    "scale_for",
    "scaled_inputs",
    "table_inputs",
    "take_codes",
]


class Kind(ABC):
    """Required: `inputs`, `take`, `codes`, `losses`, `present`; `code_losses` but for rows."""

    name: ClassVar[str]  # as models list it in `kinds`
    loss: Loss
    labels: Any  # LabelEncoding

    @abstractmethod
    def inputs(self, estimator: Any, X: Any, groups: Any = None) -> Any:
        """Packed inputs for prediction, checked against those of `fit`; len() counts examples."""

    @abstractmethod
    def take(self, inputs: Any, rows: Any) -> Any:
        """The packed inputs of some examples, by number."""

    @abstractmethod
    def codes(self, inputs: Any, y: Any) -> Any:
        """Codes of the true labels, (n, …) or `Ragged`; −1 for labels never seen in training."""

    @abstractmethod
    def losses(self, inputs: Any, codes: Any, y: Any) -> FloatArray:
        """Task loss of each example, (n,); a true label never seen in training counts as wrong."""

    @abstractmethod
    def present(self, inputs: Any, codes: Any) -> Any:
        """Predictions as users expect them."""

    def code_losses(self, codes: Any, true_codes: Any) -> FloatArray:
        """Task loss of predictions against true labels that are codes too, (n,)."""
        return np.asarray(self.loss(codes, true_codes))

    def statistic(self) -> Statistic:
        """What models average unless they say otherwise."""
        return finest_statistic(self.loss)

    def with_loss(self, loss: Loss) -> Self:
        """The same examples, judged by another loss."""
        other = copy.copy(self)
        other.loss = loss
        other.labels = encoding_for(loss, self.labels)
        return other


@dataclass(frozen=True, eq=False)
class Examples:
    """Training data, ready for a model.

    Attributes
    ----------
    kind : Kind
    inputs : packed inputs
    codes : codes, (n, …) array or `Ragged`
    weight : (n,) array, positive
    groups : (n,) array or None
        Examples of one group are left out together.
    """

    kind: Kind
    inputs: Any
    codes: Any
    weight: FloatArray
    groups: Any = None

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, rows: Any) -> Examples:
        """Some of the examples, by sorted numbers."""
        return Examples(
            self.kind,
            self.kind.take(self.inputs, rows),
            take_codes(self.codes, rows),
            self.weight[rows],
            None if self.groups is None else np.asarray(self.groups)[rows],
        )


def take_codes(codes: Any, rows: Any) -> Any:
    """Codes of some examples: rows of an array, or rows of a packed batch."""
    return codes.take(rows) if hasattr(codes, "offsets") else codes[rows]


class Rows(Kind):
    """One row of features per example; labels of any fixed shape."""

    name = "rows"

    def __init__(self, loss: Loss, labels: LabelEncoding) -> None:
        self.loss = loss
        self.labels = labels

    def inputs(self, estimator: Any, X: Any, groups: Any = None) -> Any:
        refuse_groups(groups)
        return table_inputs(estimator, X, estimator.model_, reset=False)

    def take(self, inputs: Any, rows: Any) -> Any:
        if is_tensor(inputs):
            from consistruct.learning.encoding.tensors import take_tensor

            return take_tensor(inputs, rows)
        return _safe_indexing(inputs, rows)

    def codes(self, inputs: Any, y: Any) -> Any:
        read = getattr(self.labels, "known", self.labels.encode)
        return read(np.asarray(self._labels(y)), self.loss)

    def losses(self, inputs: Any, codes: Any, y: Any) -> FloatArray:
        return self.labels.losses(self.loss, codes, self._labels(y))

    def _labels(self, y: Any) -> Any:
        """True labels as an array, complete but for those that may have gaps, such as ranks."""
        return as_array(y, complete=not takes_any_labels(self.loss))

    def present(self, inputs: Any, codes: Any) -> Any:
        return self.labels.decode(codes)


def table_inputs(estimator: Any, X: Any, model: Any, *, reset: bool) -> Any:
    """X as the model takes it: numbers, checked and within range, or a table as the user holds it.

    Extreme magnitudes are divided by a power of two, the same one for fit and prediction.
    """
    if is_tensor(X):
        if model.takes_tensors:
            from consistruct.learning.encoding.tensors import device_inputs

            return device_inputs(estimator, X, reset=reset)
        if X.device.type != "cpu":
            raise ValueError(
                f"X is on {X.device}, and {type(model).__name__} computes on the processor: pass "
                f"X.cpu(), or a model with device=, such as Ridge(device={X.device.type!r})"
            )
        X = on_host(X)
    if not is_table(X):
        refuse_inexact_integers(X)
    X = unmasked(X)
    if is_table(X) and not hasattr(X, "sparse"):  # which pandas has if all columns are sparse
        if model.wants_frames and not _fitted_on_arrays(estimator, reset):
            frame = named_frame(estimator, X, model, reset=reset)
            if frame is not None:
                return frame
        X, check = named_columns(estimator, X, reset=reset), check_array
    else:
        check = functools.partial(validate_data, estimator, reset=reset)
    if model.raw_inputs and _is_mixed(X):
        if check is not check_array:
            check(X, skip_check_array=True)
        return X
    finite = "allow-nan" if model.takes_missing else not (reset and known_finite(X))
    try:
        values = check(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",  # products add in this order: equal tables give equal models, bit for bit
            ensure_all_finite=finite,
            **({"input_name": "X", "estimator": estimator} if check is check_array else {}),
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X contains words ({error}), and {type(model).__name__} takes numbers; use "
            f"model='auto', which reads tables, or Prepared(transformer, {type(model).__name__}())"
        ) from None
    if reset:
        estimator.input_scale_ = input_scale(values)
    return scaled_inputs(values, estimator.input_scale_)


def _fitted_on_arrays(estimator: Any, reset: bool) -> bool:
    """Whether a fitted estimator got arrays, of a file say, and so has steps for arrays."""
    return not reset and not hasattr(estimator, "feature_names_in_")


def _is_mixed(X: Any) -> bool:
    """Whether X is an array with columns of several types, which only some models take."""
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return False
    if X.dtype.kind == "O":  # numbers alone are numbers, whatever the array is called
        return any(isinstance(value, str) or value is None for value in X.ravel())
    return X.dtype.kind in "US"


# --- inputs of any magnitude: finite, and extreme ones divided by a power of two ---

SMALLEST, LARGEST = 1e-150, 1e150  # of the entry with the greatest magnitude
ORDINARY = 2.0**300  # up to here, and from its inverse, squares and their sums are safe
# scikit-learn's trees take single precision, and columns of a spread below 1e-7 for constant
LEAST_UNIT, GREATEST_UNIT = 2.0**-20, 2.0**100
LONG = 2**22  # entries; above, a product of the library is faster than a serial pass


def known_finite(X: Any) -> bool:
    """Whether X is certainly finite; False only states that scikit-learn has to look.

    NaN and infinities stay in a sum. That pass is serial, and on a long array takes a tenth of the
    time of all products.

    >>> X = np.ones((2**20, 4))
    >>> known_finite(X)
    True
    >>> X[5, 1] = np.inf
    >>> known_finite(X)
    False
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.size < LONG:
        return False
    if X.dtype not in (np.float32, np.float64):
        return False
    values = np.asarray(X)  # not a masked array, whose products are not
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.ones(len(values), values.dtype) @ values).all())


def input_scale(X: Any) -> float:
    """What the inputs of a fit are divided by: a power of two, 1 unless they are extreme.

    The greatest magnitude is about 1 afterwards. Kernels and penalties are relative to the inputs,
    and a power of two changes no digit, so the model is the same in other units.

    >>> input_scale(np.array([[3.0, -5.0]])), input_scale(np.array([[2.0**400]])) == 2.0**400
    (1.0, True)
    """
    return 1.0 if _surely_ordinary(X) else scale_for(_greatest_magnitude(X))


def scale_for(largest: float) -> float:
    """The same from the greatest magnitude."""
    if largest == 0.0:
        return 1.0
    if largest < SMALLEST or largest > LARGEST:
        raise ValueError(
            f"the largest magnitude in X must be between {SMALLEST:g} and {LARGEST:g}, got "
            f"{largest:g}; use other units, for example divide X by {largest:.1g}"
        )
    if LEAST_UNIT <= largest <= GREATEST_UNIT:
        return 1.0
    return 2.0 ** math.floor(math.log2(largest))


def scaled_inputs(X: Any, scale: float) -> Any:
    """Inputs divided like those of the fit; what is beyond all of these in a prediction stays so.

    >>> scaled_inputs(np.array([[3.0, 1e140]]), 1.0).tolist() == [[3.0, 2.0**100]]
    True
    """
    largest = 0.0
    if not _surely_ordinary(X):
        largest = _greatest_magnitude(X)
        check_magnitude(largest)
    X = X if scale == 1.0 else X / scale
    if largest <= scale * GREATEST_UNIT:
        return X
    if is_sparse(X):
        X = X.copy()
        X.data = np.clip(X.data, -GREATEST_UNIT, GREATEST_UNIT)
        return X
    return np.clip(X, -GREATEST_UNIT, GREATEST_UNIT)


def check_magnitude(largest: float) -> None:
    """Refuse inputs of a prediction that are out of range."""
    if largest > LARGEST:
        raise ValueError(
            f"the largest magnitude in X must be at most {LARGEST:g}, got {largest:g}; is it in "
            f"the units of the training data?"
        )


def column_units(X: Any) -> FloatArray | None:
    """Powers of two, (d,), that bring extreme columns near 1; None if no column is extreme.

    Beside a huge column a tiny one may remain extreme when all are divided alike.
    """
    if _surely_ordinary_columns(X):
        return None
    magnitudes = abs(X).max(axis=0) if is_sparse(X) else np.maximum(X.max(axis=0), -X.min(axis=0))
    largest = np.asarray(to_dense(magnitudes), dtype=np.float64).ravel()
    extreme = (largest > 0) & ((largest > ORDINARY) | (largest < 1.0 / ORDINARY))
    if not extreme.any():
        return None
    powers = np.floor(np.log2(largest, where=extreme, out=np.zeros(len(largest))))
    return np.asarray(2.0 ** np.where(extreme, powers, 0.0))


def _surely_ordinary_columns(X: Any) -> bool:
    values = X.data if is_sparse(X) else X
    if values.dtype == np.float32 or values.size == 0:
        return True
    if not is_sparse(X):
        return False
    sizes = np.abs(values)  # stored entries only: cheaper than a maximum of each column
    return bool(sizes.max() <= ORDINARY and sizes[sizes > 0].min(initial=1.0) >= 1.0 / ORDINARY)


def _surely_ordinary(X: Any) -> bool:
    """Whether a long array is ordinary by its sum of squares; if not, it must be searched."""
    values = X.data if is_sparse(X) else X
    if values.dtype == np.float32 or values.size == 0:  # its range is narrower than ours
        return True
    if values.size < LONG or not (values.flags.c_contiguous or values.flags.f_contiguous):
        return False
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", under="ignore"):
        squares = float(np.dot(flat, flat))
    return (values.size * LEAST_UNIT) ** 2 < squares < GREATEST_UNIT**2


def _greatest_magnitude(X: Any) -> float:
    """Of the entries that are there: a missing one (NaN) has no magnitude."""
    values = X.data if is_sparse(X) else X
    low = float(np.fmin.reduce(values, axis=None, initial=0.0))
    return max(float(np.fmax.reduce(values, axis=None, initial=0.0)), -low)


# --- groups, weights, random states ---


def checked_groups(groups: Any, n: int) -> Any:
    """Groups of the rows, (n,), or None."""
    if groups is None:
        return None
    array = np.asarray(as_array(groups, "groups", complete=False))
    if array.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), one per row, got {array.shape}")
    if array.dtype == object:
        try:
            np.unique(array)
        except TypeError:
            types = sorted({type(group).__name__ for group in array})
            raise ValueError(
                f"groups must be all words or all numbers, got {' and '.join(types)}; give rows "
                "without a group one of their own"
            ) from None
    return array


def refuse_groups(groups: Any) -> None:
    """Raise if groups are given where rows are predicted one by one."""
    if groups is not None:
        raise ValueError(
            "groups mark the sequences of a Hamming loss without a fixed length (loss='hamming' "
            "or Hamming(None, n_states)) or the queries of a ranking loss (loss='ndcg'); omit "
            "groups when predicting single rows"
        )


def check_sample_weight(sample_weight: Any, n: int) -> FloatArray:
    """Weights (n,) of float64: finite, non-negative, not all zero; ones if None."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(as_array(sample_weight, "sample_weight"), dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim} dimensions")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one per row, got {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
        raise ValueError(f"sample_weight must be finite and non-negative, got {bad:g}")
    if not weight.any():
        raise ValueError("sample_weight is zero on every row; at least one weight must be positive")
    return weight


def combined_weight(sample_weight: Any, class_weight: Any, y: Any) -> FloatArray:
    """Sample weights times class weights."""
    weight = check_sample_weight(sample_weight, len(y))
    if class_weight is None:
        return weight
    weight = weight * compute_sample_weight(class_weight, y)
    if not weight.any():
        raise ValueError("class_weight leaves no row with a positive weight")
    return weight


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from None, an int, a RandomState or a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
