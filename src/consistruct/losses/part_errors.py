"""Wrong parts of a structured label: heads of a parse, segments, spans, links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct.exceptions import LossSpecError
from consistruct.losses.base import Loss, Sizes
from consistruct.protocols import FloatArray, LabelArray, Target
from consistruct.structures import Derivations, DerivedLabels, Ragged
from consistruct.structures.registry import STRUCTURES

__all__ = ["PartErrors"]


@dataclass(frozen=True, eq=False, repr=False)
class PartErrors(Loss):
    """Count the wrong parts: L(ŷ, y) = ½ |ŷ Δ y|, half for a part too much, half for one missed.

    A wrong head of a word is one arc too much and one missed: 1. So L counts the words of a parse
    with a wrong head (1 − L/n is the unlabeled attachment score, or with types of arcs the labeled
    one), the wrong spans of a binary tree, and half the segments or links in one of ŷ, y only.
    Transitions and gaps do not count. Scores: one per counted part. Decoder: the dynamic program,
    with E[½ − part in y] as costs, so that the decision of least expected loss is
    `structure.minimum_risk`.

    Parameters
    ----------
    structure : Derivations
        `DependencyTrees`, `Segments`, `Spans`, `Alignments`, or your own. Its family of all sizes
        (n = None) takes packed batches (`Ragged`).

    Examples
    --------
    >>> from consistruct.losses import PartErrors
    >>> from consistruct.structures import DependencyTrees, Segments
    >>> PartErrors(DependencyTrees(3))([[2, 0, 2]], [[0, 1, 2]])  # word 3 has its head
    array([2.])
    >>> PartErrors(Segments(3))([[0, 0, 0]], [[0, 0, 1]])  # [2, 3) is wrong; [1, 3) is missed
    array([1.5])

    References
    ----------
    Goodman, *Parsing algorithms and metrics*, 1996: parse for the metric, not for the best score.
    """

    labels_as: ClassVar[str] = "codes"

    structure: Derivations

    def __post_init__(self) -> None:
        if not isinstance(self.structure, Derivations):
            raise TypeError(
                f"structure must be made of derivations, such as DependencyTrees(10), "
                f"got {type(self.structure).__name__}"
            )

    def at(self, size: int) -> Self:
        """Return the loss of labels of one size."""
        return type(self)(self.structure.at(size))

    @property
    def score_space(self) -> Derivations:
        """Return one score for each counted part: no transitions, which are not in the loss."""
        return self.structure.own_scores

    @property
    def true_labels(self) -> DerivedLabels:
        return self.structure.predictions

    @property
    def max_value(self) -> float:
        return self.structure.max_errors

    def _value(self, pred: LabelArray, true: LabelArray) -> FloatArray:
        space = self.score_space
        wrong = (space.parts_of(pred) != space.parts_of(true)) * space.counted
        return np.asarray(0.5 * wrong.sum(axis=1))

    def target(self, true: ArrayLike) -> Target:
        """Return ½ − [p in y] for every counted part p, (n, width)."""
        # ½ |ŷ Δ y| = ½ |y| + Σ_{p in ŷ} (½ − [p in y])
        return self.score_space.counted * (0.5 - self.score_space.embed(true))

    def offset(self, true: ArrayLike) -> FloatArray:
        """Return half the number of counted parts of y, (n,)."""
        return np.asarray(0.5 * (self.score_space.embed(true) @ self.score_space.counted))

    def __call__(self, pred: ArrayLike | Ragged, true: ArrayLike | Ragged) -> FloatArray:
        if not isinstance(pred, Ragged) or not isinstance(true, Ragged):
            return super().__call__(pred, true)
        if not pred.same_lengths(true):
            raise ValueError("pred and true must contain labels of the same lengths")
        values = np.empty(len(true))
        sizes = self.structure.sizes_of(true.lengths)
        for size in np.unique(sizes):
            same = np.flatnonzero(sizes == size)
            pairs = (np.stack([labels[int(row)] for row in same]) for labels in (pred, true))
            values[same] = self.at(int(size))(*pairs)
        return values

    def worst_true_label(
        self, direction: FloatArray, offset_weight: float = 0.0
    ) -> tuple[FloatArray, LabelArray]:
        """Decode the true label: target and offset are linear in its parts too."""
        space = self.score_space
        theta = space.counted * (0.5 * offset_weight - direction)
        worst = space.decode(theta)
        values = 0.5 * direction @ space.counted + (space.embed(worst) * theta).sum(axis=1)
        return values, worst

    @classmethod
    def from_spec(cls, arguments: tuple[str, ...], sizes: Sizes) -> Self:
        name, *fields = arguments or ("",)
        entry = STRUCTURES.get(name)
        if entry is None or not issubclass(entry.cls, Derivations):
            known = [key for key, one in STRUCTURES.items() if issubclass(one.cls, Derivations)]
            raise LossSpecError(
                f"part-errors is written with one of {known}, such as part-errors:trees:12, "
                f"not {name[:40]!r}"
            )
        return cls(entry.cls.parse(":".join(fields)))
