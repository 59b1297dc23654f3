"""Spans: binary trees over a sentence whose constituents are scored one by one (CKY)."""

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

__all__ = ["Spans"]

WORD_WIDTH, LEVEL = 60, 34  # pixels of a drawing: between words, between levels of the tree


@dataclass(frozen=True, eq=False, repr=False)
class Spans(Derivations):
    """Score binary trees by their spans: f(y) = Σ θ[start, end, type] over spans of y.

    A span covers the words start, …, end − 1; every word is one, and every other span is two
    neighboring ones together, so that a tree has 2n − 1 spans, each of one of `n_types` types. A
    label lists them, outer before inner and left before right, as (start, end, type): (2n − 1, 3).
    Every program takes O(n³ + n² n_types).

    Parameters
    ----------
    n : int or None
        Words; None is the family of all sentences.
    n_types : int
        Types of a span.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Spans
    >>> space = Spans(3)
    >>> space.n_labels, Spans(4, 2).n_labels, space.parts.tolist()[:3]
    (2, 640, [[0, 1, 0], [1, 2, 0], [0, 2, 0]])
    >>> good = [[1, 3, 0]]  # words 1 and 2 belong together
    >>> theta = (space.parts == good).all(axis=1).astype(float)
    >>> space.decode([theta])[0].tolist()
    [[0, 3, 0], [0, 1, 0], [1, 3, 0], [1, 2, 0], [2, 3, 0]]

    References
    ----------
    Stern, Andreas and Klein, *A minimal span-based neural constituency parser*, 2017.
    """

    n_types: int = 1
    columns: ClassVar[tuple[str, ...]] = ("start", "end", "type")
    spec: ClassVar[str] = r"(?P<n>\d+)(x(?P<n_types>\d+))?"
    written: ClassVar[str] = "spans:20 or spans:20x5"
    contract: ClassVar[str] = (
        "spans must be those of one binary tree, outer before inner, left before right"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(n_types=check_count(self.n_types, "n_types"))

    def nodes(self, end: int) -> Iterator[tuple[Hashable, Iterable[Edge]]]:
        """Yield the spans that end at `end`, shortest first; the last one covers all words."""
        j = end
        for i in range(j - 1, -1, -1):
            # the types of a span share its splits, so that types cost a term and not a factor
            tails: tuple[Hashable, ...] = ()
            if j - i > 1:
                tails = (("split", i, j),)
                yield tails[0], [(((i, r), (r, j)), None) for r in range(i + 1, j)]
            yield (i, j), [(tails, (i, j, kind)) for kind in range(self.n_types)]

    @property
    def label_shape(self) -> tuple[int, ...]:
        return (max(2 * self._size("give the shape of a label") - 1, 0), 3)

    def sizes_of(self, lengths: IntArray) -> IntArray:
        return (lengths + 1) // 2

    def labels_of(self, used: Used) -> LabelArray:
        # outer before inner, left before right: by start, then by end from the right
        order = np.lexsort((-self.parts[:, 1], self.parts[:, 0]))
        _, places = np.nonzero(used[:, order])
        return self.parts[order[places]].reshape(len(used), *self.label_shape)

    def parts_of(self, labels: LabelArray) -> Used:
        rows = np.repeat(np.arange(len(labels)), self.label_shape[0])
        return self._marks(len(labels), rows, *labels.reshape(-1, 3).T)

    @property
    def max_errors(self) -> float:
        """Return 2n − 1, by other types; with one type, n − 2 for left against right branches."""
        n = self._size("have a largest loss")
        return float(2 * n - 1) if self.n_types > 1 else max(float(n - 2), 0.0)

    def draw(self, label: ArrayLike, words: list[str] | None = None) -> str:
        """Draw one tree above its words, each span with its type, as SVG.

        Parameters
        ----------
        label : (2n − 1, 3) array
        words : list of n str, optional
            Their numbers if not given.
        """
        spans = self.predictions.check(np.asarray(label)[None])[0].tolist()
        n = self._size("be drawn")
        names = [str(t) for t in range(n)] if words is None else words
        shapes: list[str] = []
        above: list[tuple[int, int, float, float]] = []
        for start, end, kind in spans:
            # preorder: the parent is the last span before this one that still holds it
            while above and above[-1][1] < end:
                above.pop()
            x, y = WORD_WIDTH * (start + end) / 2, 16 + LEVEL * len(above)
            if above:
                shapes.append(line(above[-1][2], above[-1][3] + 4, x, y - 12))
            word = f" {names[start]}" if end - start == 1 else ""
            shapes.append(text(x, y, f"{kind}{word}"))
            above.append((start, end, x, y))
        return svg(WORD_WIDTH * n, 16 + LEVEL * n, shapes)
