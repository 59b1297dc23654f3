"""Losses given by a matrix: its span as a score space, its columns as targets; any cost matrix."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import ArrayField, frozen_array
from consistruct._validation import check_choice, check_loss_matrix
from consistruct.exceptions import CapabilityError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray, LabelSet, Target
from consistruct.structures import Classes, Dense, Full, Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.structures.operators import dense_limit

__all__ = [
    "Axis",
    "CostMatrix",
    "MatrixLoss",
    "corner",
    "orient",
    "require_listable",
    "rows_as_predictions",
    "span_of",
]

# true labels whose largest costs differ by more than this are put on one scale before the span is
# found: a millionth is far above rounding noise, and leaves the basis of ordinary costs what it is
ALIKE = 2.0**20

Axis = Literal["pred", "true"]
AXIS_WORDS: dict[str, Axis] = {
    **dict.fromkeys(("pred", "preds", "prediction", "predictions", "predicted", "ypred"), "pred"),
    **dict.fromkeys(("true", "truth", "truths", "actual", "actuals", "target", "ytrue"), "true"),
}


class MatrixLoss(Loss):
    """Derive structure, targets and decoder of a loss from its matrix over listed labels.

    **Must be written**

    * `_columns`: L, (n predictions, n true labels), read-only. Wherever there is a formula it is
      built independently of `_value`, so that the two check each other;
    * `_prediction_set`, `true_labels`: the `Classes` of its rows and of its columns;
    * `_value(pred, true)`: the direct formula, as for any `Loss`.

    The score space follows by a singular value decomposition, see `span_of`. The shortest one is in
    CONTRIBUTING.md ("Add a loss in ten lines").
    """

    @property
    @abstractmethod
    def _columns(self) -> FloatArray:
        """Return L, (n predictions, n true labels), read-only."""

    @property
    @abstractmethod
    def _prediction_set(self) -> Classes: ...

    @property
    @abstractmethod
    def true_labels(self) -> LabelSet: ...

    @cached_property
    def _span(self) -> tuple[Structure, FloatArray, float]:
        return span_of(self._columns, self._prediction_set)

    @property
    def score_space(self) -> Structure:
        return self._span[0]

    @property
    def predictions(self) -> LabelSet:
        return self._prediction_set  # known without the span, however many there are

    @property
    def rank_tolerance(self) -> float:
        """Return the size up to which singular values of the centered matrix count as zero."""
        return self._span[2]

    @property
    def max_value(self) -> float:
        return float(self._columns.max())

    def target(self, true: ArrayLike) -> Target:
        return self._span[1][self.true_labels.check(true, "true")]


def span_of(matrix: FloatArray, predictions: LabelSet) -> tuple[Structure, FloatArray, float]:
    """Find the smallest space with the constant and all columns of L.

    With M½ = diag(√μ) and l̄ = E_c L(c, ·) decompose M½ (L − 1 l̄ᵀ) = U S Vᵀ and keep S above the
    tolerance. Then F = [1, M^−½ U] has Ḡ = E_c[F_c F_cᵀ] = I and L = F [l̄, V S]ᵀ.

    Parameters
    ----------
    matrix : (k, m) array
    predictions : LabelSet
        Those of its rows, with the measure μ.

    Returns
    -------
    space : Structure
    targets : (m, width) array
        u_y of every true label, with offset 0.
    tolerance : float
        Size up to which singular values count as zero.
    """
    # over the distinct rows: equal rows of L get exactly equal rows of F, which a decomposition of
    # all rows gives only up to rounding, and then ties between them would be decided by noise
    rows, inverse = np.unique(matrix, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    weights = np.bincount(inverse, weights=predictions.weights(limit=len(matrix)))
    root = np.sqrt(weights)[:, None]
    mean = weights @ rows  # (m,)
    largest = np.abs(rows).max(axis=0)
    # costs in cents for one true label and in millions for another: without one scale the small
    # column would fall below the tolerance and its decisions be lost
    costly = largest > 0
    apart = largest.max() > ALIKE * largest.min(initial=np.inf, where=costly)
    unit = np.where(costly & apart, largest, 1.0)
    left, singular, right = np.linalg.svd(root * ((rows - mean) / unit), full_matrices=False)
    # relative to L itself: a constant matrix leaves only rounding noise after centering
    scale = max(float(np.abs(root * rows / unit).max()), float(singular[0]))
    tolerance = max(matrix.shape) * float(np.finfo(np.float64).eps) * scale
    kept = singular > tolerance
    # all of R^k: one score per label says the same in simpler arithmetic, and decodes exactly
    if 1 + int(kept.sum()) == len(matrix):
        return Full(predictions), np.ascontiguousarray(matrix.T), tolerance
    contrasts = left[:, kept] / root
    F = np.column_stack([np.ones(len(rows)), contrasts])[inverse]
    targets = np.column_stack([mean, (singular[kept, None] * right[kept]).T * unit[:, None]])
    space = Dense(F, over=predictions)
    return space, targets, tolerance


def require_listable(n_labels: int, what: str) -> None:
    """Raise TooManyLabelsError unless a matrix over the labels may be built."""
    dense_limit(
        n_labels,
        ENUMERATION_LIMIT,
        f"the matrix of {what}",
        "merge labels, or use a loss with structure such as Block or Hamming",
    )


# --- cost matrices, with or without names ---


@dataclass(frozen=True, eq=False, repr=False)
class CostMatrix(MatrixLoss):
    """Charge a listed cost for each pair of a prediction and a true label.

    Formula: L(ŷ, y) = M[ŷ, y]. Scores: span of the columns and the constant, found by a
    rank-revealing factorization at the tolerance `rank_tolerance`. Decoder: argmax, O(k·rank).

    Parameters
    ----------
    M : (k, m) array, or (m, k) with ``rows="true"``
        Finite, non-negative costs. The attribute `M` has predictions as rows, whichever was given.
    rows : "pred" or "true"
        What the rows of `M` stand for. May be omitted only if `M` is symmetric, where it does not
        matter. scikit-learn's confusion matrices have true labels as rows.
    pred_names, true_names : sequence of str, optional
        Names of the predictions and of the true labels.

    Examples
    --------
    >>> from consistruct.losses import CostMatrix
    >>> loss = CostMatrix([[0, 5], [1, 0]], rows="pred")
    >>> loss([0, 1], [1, 0])
    array([5., 1.])
    >>> CostMatrix([[0, 1], [5, 0]], rows="true") == loss
    True
    """

    M: ArrayField
    rows: Axis | None = field(default=None, kw_only=True)
    pred_names: tuple[str, ...] | None = None
    true_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _refuse_named_axes(self.M)
        matrix = rows_as_predictions(check_loss_matrix(self.M), self.rows)
        self._set(
            M=frozen_array(matrix),
            # as `M` is kept: equal losses print alike, and what they print makes them again
            rows=None if _is_symmetric(matrix) else "pred",
            pred_names=_check_names(self.pred_names, matrix.shape[0], "pred"),
            true_names=_check_names(self.true_names, matrix.shape[1], "true"),
        )

    @classmethod
    def from_frame(cls, frame: Any, *, rows: Axis | None = None) -> Self:
        """Build from a pandas DataFrame whose index and columns hold label names.

        The orientation comes from the names of the axes (``frame.index.name`` "pred" or "true",
        or the like on the columns) or from `rows`; both must agree. It is never guessed: a matrix
        that is not symmetric in its names and states nothing of its axes is refused.
        """
        if not all(hasattr(frame, part) for part in ("to_numpy", "index", "columns")):
            raise TypeError(
                f"from_frame takes a pandas DataFrame, got {type(frame).__name__}; "
                f"CostMatrix(M, rows='pred' or 'true') takes a plain matrix"
            )
        row_axis, column_axis = corner(frame.index.name)
        matrix, pred_names, true_names = orient(
            np.asarray(frame.to_numpy()),
            [str(name) for name in frame.index],
            [str(name) for name in frame.columns],
            row_axis=row_axis,
            column_axis=frame.columns.name if column_axis is None else column_axis,
            rows=rows,
        )
        return cls(matrix, pred_names, true_names, rows="pred")

    @property
    def _columns(self) -> FloatArray:
        return self.M

    @cached_property
    def _prediction_set(self) -> Classes:
        return Classes(self.M.shape[0], self.pred_names)

    @cached_property
    def true_labels(self) -> Classes:
        return Classes(self.M.shape[1], self.true_names)

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return np.asarray(self.M[pred, true])

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        """Return the prediction of the same name, or of the same number without names."""
        if self.pred_names is None or self.true_names is None:
            return super().true_label_as_prediction(true)
        missing = [name for name in self.true_names if name not in self.pred_names]
        if missing:
            raise CapabilityError(
                self,
                "true_label_as_prediction",
                "a surrogate that scores the true label",
                f"true label {missing[0]!r} is not a prediction; use the quadratic surrogate",
            )
        positions = np.array([self.pred_names.index(name) for name in self.true_names])
        return positions[self.true_labels.check(true, "true")]


def _refuse_named_axes(table: Any) -> None:
    """Refuse tables whose names would be lost: rows may be in any order, or be the true ones."""
    if not hasattr(table, "columns"):
        return
    axes = (getattr(table, "index", range(table.shape[0])), table.columns)
    for axis, size in zip(axes, table.shape, strict=True):
        # a frame of plain numbers has the default index 0, 1, …, which says no more than a matrix
        if [*axis] != [*range(size)]:
            raise TypeError(
                "CostMatrix(M) takes a plain matrix, got a data frame with names; "
                "CostMatrix.from_frame(M) keeps those of a pandas DataFrame"
            )


def rows_as_predictions(
    costs: FloatArray, rows: object, *, interchangeable: bool = True, what: str = "cost matrix"
) -> FloatArray:
    """Return costs (…, k, m) whose rows are predictions; every matrix of costs passes here.

    Nothing is guessed: `rows` may be None only where it cannot matter, that is where all matrices
    are symmetric and the names of both axes are `interchangeable`.

    >>> rows_as_predictions(np.array([[0.0, 1.0], [5.0, 0.0]]), "true")
    array([[0., 5.],
           [1., 0.]])
    """
    if rows is not None:
        check_choice(rows, "rows", ("pred", "true"))
    if rows is None and not (interchangeable and _is_symmetric(costs)):
        fault = "is not symmetric" if interchangeable else "has other names in rows than in columns"
        raise ValueError(
            f"the {what} of shape {costs.shape} {fault} and does not say whether its rows are "
            "predictions or true labels; pass rows='pred' or rows='true' (--rows on the command "
            "line), or name the index of a DataFrame 'pred' or 'true'"
        )
    return np.swapaxes(costs, -1, -2) if rows == "true" else costs


def _is_symmetric(costs: FloatArray) -> bool:
    return np.array_equal(costs, np.swapaxes(costs, -1, -2))


def orient(
    matrix: Any,
    row_names: Sequence[str],
    column_names: Sequence[str],
    *,
    row_axis: object,
    column_axis: object,
    rows: Axis | None,
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...]]:
    """Turn a named table into rows = predictions, columns = true labels.

    Raises ValueError where what the axes are called and `rows` disagree, and where nothing tells
    and it would matter. If both axes hold the same names, columns are put in the order of the rows.
    """
    if rows is not None:
        check_choice(rows, "rows", ("pred", "true"))
    costs = check_loss_matrix(matrix)
    _check_names(row_names, costs.shape[0], "row")
    _check_names(column_names, costs.shape[1], "column")
    # what is known of the *rows*, from three sources: their own title, the other of the columns'
    stated = {axis for axis in (_axis(row_axis), _other(_axis(column_axis)), rows) if axis}
    if len(stated) > 1:
        raise ValueError(
            f"the axes contradict each other: rows are called {row_axis!r}, columns "
            f"{column_axis!r}, and rows={rows!r} was given; correct one of them"
        )
    same_names = set(row_names) == set(column_names)
    if same_names:
        # same labels on both axes: columns follow the order of the rows, else the diagonal would
        # cost
        costs = costs[:, [list(column_names).index(name) for name in row_names]]
        column_names = row_names
    stated_rows = next(iter(stated), None)
    costs = rows_as_predictions(costs, stated_rows, interchangeable=same_names)
    if stated_rows == "true":
        row_names, column_names = column_names, row_names
    return np.ascontiguousarray(costs), tuple(row_names), tuple(column_names)


def _axis(name: object) -> Axis | None:
    """Return which axis a title means, such as ``y_true`` or ``Predicted``; None if neither."""
    return AXIS_WORDS.get(re.sub(r"[^a-z]", "", str(name).lower())) if name is not None else None


def corner(name: object) -> tuple[object, object]:
    r"""Return what the corner cell of a table calls rows and columns, such as ``true\pred``.

    >>> corner("true/pred"), corner("true")
    (('true', 'pred'), ('true', None))
    """
    rows, cut, columns = re.sub(r"[/|]", r"\\", str(name)).partition("\\")
    both = cut and _axis(rows) is not None and _axis(columns) is not None
    return (rows, columns) if both else (name, None)


def _other(axis: Axis | None) -> Axis | None:
    """Return the axis across: rows are predictions where columns are true labels."""
    return None if axis is None else ("true" if axis == "pred" else "pred")


def _check_names(names: Sequence[str] | None, size: int, axis: str) -> tuple[str, ...] | None:
    """Return names as text, one for each label and no two alike; None where none are given."""
    if names is None:
        return None
    if isinstance(names, str) or len(names) != size:
        raise ValueError(f"{axis}_names must have {size} entries, got {names!r}")
    texts = tuple(str(name) for name in names)
    if len(set(texts)) != len(texts):
        double = next(name for name in texts if texts.count(name) > 1)
        raise ValueError(f"{axis}_names must be distinct, got {double!r} twice")
    return texts
