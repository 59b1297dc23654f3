"""Alignments: links between two sequences that do not cross, with gaps on both sides."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count
from consistruct.protocols import IntArray, LabelArray
from consistruct.structures._derivation_kernels import Used
from consistruct.structures._drawings import line, svg, text
from consistruct.structures._recursions import Edge
from consistruct.structures.derivations import Derivations

__all__ = ["Alignments"]

TOKEN_WIDTH, GAP = 60, 70  # pixels of a drawing: between tokens, between the two sequences


@dataclass(frozen=True, eq=False, repr=False)
class Alignments(Derivations):
    """Score monotone alignments by links and gaps: f(y) = Σ θ[i, j] + Σ θ[i, −1] + Σ θ[−1, j].

    Token i of the source is linked with token j of the target, or has no partner, and so has j.
    Links do not cross. A label has the partner of each source token, (n,): j, or `n_targets`
    without one. Every program takes O(n n_targets).

    Alignments that differ only in the order of gaps between two links are one label: gaps of the
    source come first.

    Parameters
    ----------
    n : int or None
        Source tokens; None is the family of all sources for targets of one length.
    n_targets : int
        Target tokens.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Alignments
    >>> space = Alignments(3, 2)
    >>> space.n_labels, space.width  # (3 + 2)! / (3! 2!); 6 links and 5 gaps
    (10, 11)
    >>> link = (space.parts >= 0).all(axis=1) & (space.parts[:, 0] > space.parts[:, 1])
    >>> space.decode([link.astype(float)])  # sources 1 and 2 with targets 0 and 1
    array([[2, 0, 1]])

    References
    ----------
    Needleman and Wunsch, *A general method applicable to the search for similarities in the amino
    acid sequence of two proteins*, 1970; Durbin et al., *Biological sequence analysis*, 1998.
    """

    n_targets: int = 1
    columns: ClassVar[tuple[str, ...]] = ("source", "target")
    spec: ClassVar[str] = r"(?P<n>\d+)x(?P<n_targets>\d+)"
    written: ClassVar[str] = "alignments:12x10"
    contract: ClassVar[str] = "partners must increase from one linked source token to the next"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(n_targets=check_count(self.n_targets, "n_targets"))

    def nodes(self, end: int) -> Iterator[tuple[Hashable, Iterable[Edge]]]:
        """Yield the alignments of the first `end` source tokens with the first 0, 1, … targets."""
        i = end
        for j in range(self.n_targets + 1):
            # "no target gap last": a source gap may follow, so that gaps have one order only
            closed: list[Edge] = list(self.AXIOM) if i == j == 0 else []
            if i and j:
                closed.append(((("any", i - 1, j - 1),), (i - 1, j - 1)))
            if i:
                closed.append(((("closed", i - 1, j),), (i - 1, -1)))
            yield ("closed", i, j), closed
            gap: list[Edge] = [((("any", i, j - 1),), (-1, j - 1))] if j else []
            yield ("any", i, j), [((("closed", i, j),), None), *gap]

    @property
    def label_shape(self) -> tuple[int, ...]:
        return (self._size("give the shape of a label"),)

    def sizes_of(self, lengths: IntArray) -> IntArray:
        return lengths

    def labels_of(self, used: Used) -> LabelArray:
        labels = np.full((len(used), *self.label_shape), self.n_targets, dtype=np.int64)
        rows, parts = np.nonzero(used * self.counted)
        labels[rows, self.parts[parts, 0]] = self.parts[parts, 1]
        return labels

    def parts_of(self, labels: LabelArray) -> Used:
        n, m = labels.shape[1], self.n_targets
        partner = np.where(labels == m, -1, labels)
        rows = np.repeat(np.arange(len(labels)), n)
        used = self._marks(len(labels), rows, np.tile(np.arange(n), len(labels)), partner.ravel())
        linked = (partner[:, :, None] == np.arange(m)).any(axis=1)
        row, free = np.nonzero(~linked)
        gaps = self._marks(len(labels), row, -1, free)
        return np.where(used < 0, used, used + gaps).astype(np.int8)

    @property
    def counted(self) -> IntArray:
        """Count links, not gaps."""
        return np.asarray((self.parts >= 0).all(axis=1), dtype=np.int64)

    @property
    def max_errors(self) -> float:
        """Return min(n, m); of equal lengths only one alignment links every token, hence − ½."""
        n, m = self._size("have a largest loss"), self.n_targets
        return min(n, m) - 0.5 * (n == m)

    def draw(
        self, label: ArrayLike, source: list[str] | None = None, target: list[str] | None = None
    ) -> str:
        """Draw one alignment as lines between two rows of tokens, as SVG.

        Parameters
        ----------
        label : (n,) array
        source, target : list of str, optional
            Tokens; their numbers if not given.
        """
        partners = self.predictions.check(np.asarray(label)[None])[0].tolist()
        n, m = len(partners), self.n_targets
        above = [str(i) for i in range(n)] if source is None else source
        below = [str(j) for j in range(m)] if target is None else target
        x = [TOKEN_WIDTH * (t + 0.5) for t in range(max(n, m))]
        shapes = [text(x[i], 18, above[i]) for i in range(n)]
        shapes += [text(x[j], 18 + GAP, below[j]) for j in range(m)]
        linked = [(i, j) for i, j in enumerate(partners) if j < m]
        shapes += [line(x[i], 24, x[j], GAP + 2) for i, j in linked]
        return svg(TOKEN_WIDTH * len(x), GAP + 28, shapes)
