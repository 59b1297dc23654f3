"""Segments: sequences cut into pieces, each scored as a whole (semi-Markov models)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count
from consistruct.protocols import IntArray, LabelArray
from consistruct.structures._derivation_kernels import Used
from consistruct.structures._drawings import box, svg, text
from consistruct.structures._recursions import Edge
from consistruct.structures.derivations import Derivations, DerivedLabels

__all__ = ["Segments"]

TOKEN_WIDTH = 60  # pixels of a drawing


@dataclass(frozen=True, eq=False, repr=False)
class Segments(Derivations):
    """Score segmentations by their segments: f(y) = Σ θ[start, end, type] over segments of y.

    A segment covers the tokens start, …, end − 1. A label has an entry for each token, (n,): the
    type of the segment that starts there, or `n_types` where one continues. With `transitions`,
    neighboring segments are scored together too, by θ[position, type, type before]. Every program
    takes O(n max_length n_types), and O(n n_types²) for transitions.

    Parameters
    ----------
    n : int or None
        Tokens; None is the family of all sequences.
    n_types : int
        Types of a segment.
    max_length : int or None
        Most tokens of a segment; None allows any number, at O(n²).
    transitions : bool

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Segments
    >>> space = Segments(5, n_types=2, max_length=3)
    >>> space.n_labels, space.width
    (152, 24)
    >>> start, end, kind = space.parts.T
    >>> pairs = (end - start == 2) & (start % 2 == 1)  # tokens 1 and 2, tokens 3 and 4
    >>> theta = np.where(pairs & (kind == 1), 1.0, 0.0)[None]
    >>> space.decode(theta)  # type 1 begins at tokens 1 and 3, and 2 means that it goes on
    array([[0, 1, 2, 1, 2]])

    References
    ----------
    Sarawagi and Cohen, *Semi-Markov conditional random fields for information extraction*, 2004.
    """

    n_types: int = 1
    max_length: int | None = None
    transitions: bool = False
    spec: ClassVar[str] = r"(?P<n>\d+)(x(?P<n_types>\d+))?(:(?P<max_length>\d+))?"
    written: ClassVar[str] = "segments:20x5 or segments:20x5:8"
    contract: ClassVar[str] = "a segment must start at the first token, and none may be too long"

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = None if self.max_length is None else check_count(self.max_length, "max_length")
        n_types = check_count(self.n_types, "n_types")
        self._set(n_types=n_types, max_length=longest, transitions=bool(self.transitions))

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Name what a part is; a transition has start = end, a segment no type before (−1)."""
        base = ("start", "end", "type")
        return (*base, "before") if self.transitions else base

    def nodes(self, end: int) -> Iterator[tuple[Hashable, Iterable[Edge]]]:
        """Yield what can end at token `end`: segments, and all segmentations of the tokens."""
        types, j = range(self.n_types), end
        starts = range(0 if self.max_length is None else max(0, j - self.max_length), j)
        if not self.transitions:
            yield j, [((i,), (i, j, s)) for s in types for i in starts] if j else self.AXIOM
        elif j:
            # a segment and the transition before it have a node between them, so that a segment is
            # not listed once for every type before: O(n (L k + k²)) edges instead of O(n L k²)
            for s in types:
                before = [((("end", j - 1, r),), (j - 1, j - 1, s, r)) for r in types]
                yield ("begin", j - 1, s), before if j > 1 else self.AXIOM
            for s in types:
                yield ("end", j, s), [((("begin", i, s),), (i, j, s, -1)) for i in starts]
            yield ("all", j), [((("end", j, s),), None) for s in types]

    @property
    def label_shape(self) -> tuple[int, ...]:
        return (self._size("give the shape of a label"),)

    @property
    def predictions(self) -> DerivedLabels:
        """Return the segmentations, with or without scores of transitions the same ones."""
        return DerivedLabels(self.own_scores)

    def sizes_of(self, lengths: IntArray) -> IntArray:
        return lengths

    def labels_of(self, used: Used) -> LabelArray:
        labels = np.full((len(used), *self.label_shape), self.n_types, dtype=np.int64)
        rows, parts = np.nonzero(used)
        start, end, kind = self.parts[parts, :3].T
        segment = end > start
        labels[rows[segment], start[segment]] = kind[segment]
        return labels

    def parts_of(self, labels: LabelArray) -> Used:
        # a token before the first segment belongs to none, so that no derivation covers it
        rows, start = np.nonzero(labels != self.n_types)
        kind = labels[rows, start]
        same = np.append(rows[1:] == rows[:-1], False) if len(rows) else np.zeros(0, dtype=np.bool_)
        end = np.where(same, np.roll(start, -1), labels.shape[1])
        if not self.transitions:
            return self._marks(len(labels), rows, start, end, kind)
        later = np.flatnonzero(same) + 1  # segments that follow another one
        columns = (
            np.concatenate([start, start[later]]),
            np.concatenate([end, start[later]]),
            np.concatenate([kind, kind[later]]),
            np.concatenate([np.full(len(start), -1), kind[later - 1]]),
        )
        return self._marks(len(labels), np.concatenate([rows, rows[later]]), *columns)

    @property
    def counted(self) -> IntArray:
        """Count segments, not transitions."""
        return (self.parts[:, 1] > self.parts[:, 0]).astype(np.int64)

    @property
    def own_scores(self) -> Segments:
        """Return the same segmentations scored by their segments alone."""
        return replace(self, transitions=False) if self.transitions else self

    @property
    def max_errors(self) -> float:
        """Return n, by other types everywhere; with one type, what other cuts can differ in."""
        n = self._size("have a largest loss")
        if self.n_types > 1:
            return float(n)
        # Between common cuts, two segmentations of L ≥ 2 tokens have at most L + 1 segments, each
        # position cut by one of them; pieces of two tokens (3 segments) are best, one of three (4)
        # is needed if n is odd.
        return 0.0 if self.max_length == 1 or n < 2 else 0.75 * n - 0.25 * (n % 2)

    def draw(self, label: ArrayLike, words: list[str] | None = None) -> str:
        """Draw one segmentation as boxes around its tokens with their types, as SVG.

        Parameters
        ----------
        label : (n,) array
        words : list of n str, optional
            Their numbers if not given.
        """
        cuts = self.predictions.check(np.asarray(label)[None])[0]
        names = [str(t) for t in range(len(cuts))] if words is None else words
        shapes = [text(TOKEN_WIDTH * (t + 0.5), 24, names[t]) for t in range(len(cuts))]
        starts = [*np.flatnonzero(cuts != self.n_types).tolist(), len(cuts)]
        for start, end in pairwise(starts):
            width = TOKEN_WIDTH * (end - start)
            shapes.append(box(TOKEN_WIDTH * start + 3, 4, width - 6, 30))
            shapes.append(text(TOKEN_WIDTH * start + width / 2, 50, cuts[start], 11))
        return svg(TOKEN_WIDTH * len(cuts), 58, shapes)
