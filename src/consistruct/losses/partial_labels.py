"""True labels that are sets of candidates: one of them is right, which one is not known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct._validation import check_choice
from consistruct.exceptions import CapabilityError, LossSpecError, TooManyLabelsError
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.matrix import Axis, span_of
from consistruct.protocols import FloatArray, IntArray, LabelArray, LabelSet, Target
from consistruct.structures import Full, Ragged, Structure, Subsets
from consistruct.structures.base import ENUMERATION_LIMIT

__all__ = ["PartialLabels"]

REDUCTIONS = {"infimum": np.minimum, "average": np.add, "supremum": np.maximum}
LISTED_CANDIDATES = 12  # all 2^12 candidate sets are listed to find the smallest score space


@dataclass(frozen=True, eq=False, repr=False)
class PartialLabels(Loss):
    """Judge a prediction against a set of candidates: the best, the mean or the worst of them.

    Formula: L(ŷ, A) = min, mean or max over y ∈ A of base(ŷ, y); A is never empty. Scores:
    "average" keeps those of the base (the mean target expresses it) and its decoder, for any base
    loss. "infimum" and "supremum" need listed predictions: the span of all candidate sets up to 12
    true labels, full scores above; decoder argmax over predictions.

    Choose "infimum" where any candidate is acceptable (ambiguous labels), "average" where each is
    equally likely, "supremum" to be safe against the worst.

    Parameters
    ----------
    loss : Loss
        The base loss, with finitely many true labels.
    reduce : "infimum", "average" or "supremum"

    Notes
    -----
    A true label is a 0/1 mask over the base's true labels in index order, where these can be
    listed; or, for any base, a packed list of candidates: ``Ragged`` with one sequence of base true
    labels per example.

    Examples
    --------
    >>> from consistruct.structures import Ragged
    >>> from consistruct.losses import PartialLabels, ZeroOne
    >>> loss = PartialLabels(ZeroOne(3))
    >>> loss([0, 2], [[1, 1, 0], [1, 1, 0]])
    array([0., 1.])
    >>> loss([0, 2], Ragged.pack([[0, 1], [0, 1]]))  # the same candidates, listed
    array([0., 1.])

    References
    ----------
    Cabannes, Rudi and Bach, *Structured prediction with partial labelling through the infimum
    loss*, 2020.
    """

    labels_as: ClassVar[str] = "candidates"

    loss: Loss
    reduce: Literal["infimum", "average", "supremum"] = "infimum"

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be a consistruct loss, got {type(self.loss).__name__}")
        check_choice(self.reduce, "reduce", tuple(REDUCTIONS))
        if self.loss.true_labels.size is None:
            raise ValueError(
                f"candidate sets need a base loss with finitely many true labels, which "
                f"{self.loss!r} does not have; choose a member of a family with .at(size)"
            )

    # --- labels ---

    @property
    def predictions(self) -> LabelSet:
        return self.loss.predictions

    @cached_property
    def true_labels(self) -> Subsets:
        """Return the masks over the base's true labels; packed candidates need none."""
        m = self.loss.true_labels.size
        assert m is not None
        if m > ENUMERATION_LIMIT:
            raise TooManyLabelsError(
                m,
                ENUMERATION_LIMIT,
                f"a mask over the true labels of {self.loss!r}",
                "pass the candidates of each example as a packed list, Ragged",
            )
        return Subsets(m, tuple(range(1, m + 1)))

    @cached_property
    def _every_true_label(self) -> LabelArray:
        return self.loss.true_labels.enumerate(limit=self.true_labels.n_items)

    def _candidates(self, true: ArrayLike | Ragged) -> tuple[LabelArray, IntArray]:
        """Return all candidates one after the other, and where those of each example start."""
        if not isinstance(true, Ragged):
            masks = self.true_labels.check(true, "true")
            # nonzero goes row by row, so that the candidates of one example are neighbors already
            rows, columns = np.nonzero(masks)
            return self._every_true_label[columns], np.searchsorted(rows, np.arange(len(masks)))
        if (true.lengths == 0).any():
            empty = int(np.argmax(true.lengths == 0))
            raise ValueError(
                f"example {empty} has no candidates; leave it out, or list its candidates"
            )
        return self.loss.true_labels.check(true.values, "true"), true.offsets[:-1]

    # --- the direct formula ---

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if not isinstance(true, Ragged) or isinstance(pred, Ragged):
            return super().__call__(pred, true)
        checked = self.predictions.check(pred, "pred")
        if len(checked) != len(true):
            raise ValueError(
                f"pred and true must have the same length, got {len(checked)} and {len(true)}"
            )
        return self._reduced(checked, *self._candidates(true))

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        return self._reduced(pred, *self._candidates(true))

    def _reduced(self, pred: LabelArray, candidates: LabelArray, starts: IntArray) -> FloatArray:
        if len(pred) == 0:
            return np.zeros(0)
        counts = np.diff(np.append(starts, len(candidates)))
        values = self.loss._value(np.repeat(pred, counts, axis=0), candidates)
        # one call for all candidates of all examples; reduceat needs groups that are never empty
        total = np.asarray(REDUCTIONS[self.reduce].reduceat(values, starts), dtype=np.float64)
        return total / counts if self.reduce == "average" else total

    # --- offset + ⟨embed, target⟩ ---

    @cached_property
    def _explicit(self) -> tuple[Structure, FloatArray]:
        """Return the space of the infimum or supremum, and L of the base."""
        size = self.loss.predictions.size
        if size is None or size > ENUMERATION_LIMIT:
            raise TooManyLabelsError(
                size,
                ENUMERATION_LIMIT,
                f"the {self.reduce} over candidates of {self.loss!r}",
                "use reduce='average', which keeps the scores of the base loss",
            )
        base = self.loss.matrix()
        # a minimum of columns is no combination of them: the span of all 2^m − 1 candidate sets can
        # be larger than that of the base, and from some m on it is taken to be everything
        space: Structure = Full(self.loss.predictions)
        if self.true_labels.n_items <= LISTED_CANDIDATES:
            columns = self._columns(base, self.true_labels.enumerate())
            space = span_of(columns, self.loss.predictions)[0]
        return space, base

    def _columns(self, base: FloatArray, masks: LabelArray) -> FloatArray:
        """Return L(ŷ, A) for all ŷ and the given masks, (k, n)."""
        reduction = REDUCTIONS[self.reduce]
        columns = np.empty((len(base), len(masks)))
        for position, mask in enumerate(masks):
            columns[:, position] = reduction.reduce(base[:, mask.astype(bool)], axis=1)
        return columns

    @property
    def score_space(self) -> Structure:
        return self.loss.score_space if self.reduce == "average" else self._explicit[0]

    @property
    def max_value(self) -> float:
        return self.loss.max_value  # one candidate is a candidate set

    def target(self, true: ArrayLike | Ragged) -> Target:
        if self.reduce == "average":
            candidates, starts = self._candidates(true)
            # mean of losses = offset and target averaged over the candidates: any structure of the
            # base stays
            return self._means(starts, len(candidates)) @ self.loss.target(candidates)
        space, base = self._explicit
        masks = self._masks(true)
        columns = self._columns(base, masks).T
        if isinstance(space, Full):
            return columns
        # the span is orthonormal, Ḡ = I: the coordinates of a column are u = E_c[F_c L(c, A)]
        return np.asarray(columns @ (self.predictions.weights()[:, None] * space.matrix()))

    def offset(self, true: ArrayLike | Ragged) -> FloatArray:
        candidates, starts = self._candidates(true)
        if self.reduce != "average":
            return np.zeros(len(starts))
        return np.asarray(self._means(starts, len(candidates)) @ self.loss.offset(candidates))

    def _masks(self, true: ArrayLike | Ragged) -> LabelArray:
        """Return candidates as masks, (n, m), whichever way they are given."""
        if not isinstance(true, Ragged):
            return self.true_labels.check(true, "true")
        candidates, _ = self._candidates(true)
        masks = np.zeros((len(true), self.true_labels.n_items), dtype=np.int64)
        masks[true.rows, self.loss.true_labels.index(candidates)] = 1
        return masks

    def _means(self, starts: IntArray, n_candidates: int) -> scipy.sparse.csr_array:
        """Return the (n, n_candidates) matrix that averages over the candidates of each example."""
        ends = np.append(starts, n_candidates)
        counts = np.diff(ends)
        weights = np.repeat(1.0 / np.maximum(counts, 1), counts)
        return scipy.sparse.csr_array(
            (weights, np.arange(n_candidates), ends), shape=(len(starts), n_candidates)
        )

    def true_label_as_prediction(self, true: ArrayLike) -> LabelArray:
        raise CapabilityError(
            self,
            "true_label_as_prediction",
            "a surrogate that scores the true label",
            "use the quadratic surrogate, which takes candidate sets",
        )

    def target_groups(self) -> tuple[IntArray, ...] | None:
        if self.reduce != "average":
            return None
        if self.loss.true_labels.shape == ():
            return (np.arange(self.score_space.width),)  # which class it is decides everything
        return self.loss.target_groups()

    def single_true_labels(
        self, true: ArrayLike | Ragged
    ) -> tuple[ArrayLike | Ragged, IntArray | None, FloatArray | None]:
        if self.reduce != "average":
            return super().single_true_labels(true)
        candidates, starts = self._candidates(true)
        counts = np.diff(np.append(starts, len(candidates)))
        rows = np.repeat(np.arange(len(counts)), counts)
        alone = Ragged(candidates, np.arange(len(candidates) + 1))
        return alone, rows, 1.0 / counts[rows]

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes, rows: Axis | None = None) -> Self:
        from consistruct.losses.registry import parse_loss

        if len(arguments) < 2 or arguments[0] not in REDUCTIONS:
            raise LossSpecError(
                "the spec of partial-labels names the reduction and the base loss; write for "
                "example partial-labels:infimum:zero-one:5"
            )
        reduce: Literal["infimum", "average", "supremum"] = arguments[0]  # type: ignore[assignment]
        return cls(parse_loss(":".join(arguments[1:]), sizes=sizes, rows=rows), reduce)
