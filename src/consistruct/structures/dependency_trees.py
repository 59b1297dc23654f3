"""Dependency trees: every word has a head, and the arcs do not cross unless they may.

Trees whose arcs may cross have no recursion, and programs of their own in `nonprojective`. For
projective ones, whose arcs do not, Eisner's recursion builds half-trees instead of trees, so that
O(n³) edges suffice: for words i < j, ``right(i, j)`` is i with all that it governs up to j,
``left(i, j)`` is j with all that it governs down to i. An arc joins two half-trees that meet, and
the goal gives the root its words.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count
from consistruct.exceptions import CapabilityError
from consistruct.protocols import IntArray, LabelArray
from consistruct.structures._derivation_kernels import Used
from consistruct.structures._drawings import arc, svg, text
from consistruct.structures._recursions import Edge
from consistruct.structures.derivations import Derivations, PartBatch
from consistruct.structures.nonprojective import (
    TreeBatch,
    arc_table,
    count_trees,
    tree_at,
    tree_number,
)

__all__ = ["DependencyTrees"]

# Pixels of a drawing: between two words, and how much higher an arc is for each word it passes.
WORD_WIDTH, ARC_STEP = 70, 22


@dataclass(frozen=True, eq=False, repr=False)
class DependencyTrees(Derivations):
    """Score dependency trees by their arcs: f(y) = Σ_m θ[head y_m, modifier m].

    Words are 1..n and 0 is the root; a label is the head of each word, (n,). With `n_types` > 1 an
    arc has a type too, f(y) = Σ_m θ[head, m, type], and a tree is (n, 2): heads and types. Every
    program takes O(n³ + n² n_types), projective or not. Both have the same parts in the same order.

    Parameters
    ----------
    n : int or None
        Words; None is the family of all sentences.
    n_types : int
        Types of an arc: subject, object, …
    single_root : bool
        Whether exactly one word is governed by the root.
    projective : bool
        Whether arcs may not cross. In languages of free word order some do; these trees have no
        `k_best`.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import DependencyTrees
    >>> trees = DependencyTrees(3)
    >>> trees.n_labels, DependencyTrees(40).n_labels.bit_length(), trees.columns
    (7, 100, ('head', 'modifier'))
    >>> arcs = np.zeros((4, 4))  # a score for each head and modifier
    >>> arcs[0, 2] = arcs[2, 1] = arcs[2, 3] = 1.0
    >>> theta = arcs[tuple(trees.parts.T)][None]
    >>> trees.decode(theta), trees.log_partition(theta).round(4)
    (array([[2, 0, 2]]), array([3.3851]))
    >>> crossing = DependencyTrees(3, projective=False)
    >>> crossing.n_labels, crossing.log_partition(theta).round(4)
    (9, array([3.791]))

    References
    ----------
    Eisner, *Three new probabilistic models for dependency parsing*, 1996; McDonald, Pereira,
    Ribarov and Hajič, *Non-projective dependency parsing using spanning tree algorithms*, 2005.
    """

    n_types: int = 1
    single_root: bool = True
    projective: bool = True
    spec: ClassVar[str] = r"(?P<n>\d+)(x(?P<n_types>\d+))?"
    written: ClassVar[str] = (
        "trees:12 or, with 40 types of arcs, trees:12x40, and ends in :nonprojective if they cross"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.projective and self.n is not None:
            check_count(self.n, "n of trees that are not projective")
        self._set(n_types=check_count(self.n_types, "n_types"), single_root=bool(self.single_root))
        self._set(projective=bool(self.projective))

    @property
    def contract(self) -> str:  # type: ignore[override]
        """Say what a label must be."""
        return "heads must form one tree" + " without crossing arcs" * self.projective

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Name what a part is: head and modifier, and the type where there are several."""
        return ("head", "modifier") if self.n_types == 1 else ("head", "modifier", "type")

    def _arcs(self, head: int, modifier: int) -> Iterator[tuple[int, ...]]:
        """Yield the parts of an arc, one for each type."""
        if self.n_types == 1:
            yield head, modifier
        else:
            yield from ((head, modifier, kind) for kind in range(self.n_types))

    def nodes(self, end: int) -> Iterator[tuple[Hashable, Iterable[Edge]]]:
        """Yield the half-trees that end at word `end`, and the whole trees of words 1..end."""
        if not self.projective:
            raise CapabilityError(
                self, "projective", "a recursion", "arcs that may cross have programs of their own"
            )
        j = end
        if j == 0:
            # the root with no word yet; a sentence of no words has no tree with a single root
            if not self.single_root:
                yield ("root", 0), self.AXIOM
            return
        yield ("left", j, j), self.AXIOM
        yield ("right", j, j), self.AXIOM
        for i in range(j - 1, 0, -1):
            halves = [((("right", i, r), ("left", r + 1, j)), None) for r in range(i, j)]
            yield ("joined", i, j), halves
            joined = (("joined", i, j),)
            yield ("left arc", i, j), [(joined, arc) for arc in self._arcs(j, i)]
            yield ("right arc", i, j), [(joined, arc) for arc in self._arcs(i, j)]
            yield (
                ("left", i, j),
                [((("left", i, r), ("left arc", r, j)), None) for r in range(i, j)],
            )
            yield (
                ("right", i, j),
                [((("right arc", i, r), ("right", r, j)), None) for r in range(i + 1, j + 1)],
            )
        if self.single_root:
            # the root's only word r governs what is left and right of it
            words = [(("left", 1, r), ("right", r, j), r) for r in range(1, j + 1)]
            yield (
                ("root", j),
                [((left, right), arc) for left, right, r in words for arc in self._arcs(0, r)],
            )
        else:
            # the root is a half-tree to the right itself, one more word at a time
            before = [((("root", q), ("left", q + 1, j)), None) for q in range(j)]
            yield ("root joined", j), before
            yield ("root arc", j), [((("root joined", j),), arc) for arc in self._arcs(0, j)]
            governed = [((("root arc", r), ("right", r, j)), None) for r in range(1, j + 1)]
            yield ("root", j), governed

    # --- trees whose arcs may cross ---

    def batch(self, sizes: ArrayLike) -> PartBatch:
        return PartBatch(self, sizes) if self.projective else TreeBatch(self, sizes)

    @cached_property
    def n_derivations(self) -> int:
        if self.projective:
            return super().n_derivations
        n = self._size("count its labels")
        return count_trees(n, single_root=self.single_root) * self.n_types**n

    def ranks(self, used: Used) -> list[int]:
        if self.projective:
            return super().ranks(used)
        # the tree slowest, then the type of the arc into each word
        shape = (len(used), self._size("number its labels"), len(self.columns) - 1)
        numbers = []
        for tree in self.labels_of(used).reshape(shape).tolist():
            heads = [head for head, *_ in tree]
            number = tree_number(heads, single_root=self.single_root)
            for _, *kinds in tree:
                number = number * self.n_types + sum(kinds)
            numbers.append(number)
        return numbers

    def labels_at(self, numbers: Sequence[int]) -> LabelArray:
        if self.projective:
            return super().labels_at(numbers)
        n = self._size("list its labels")
        trees = np.zeros((len(numbers), n, 2), dtype=np.int64)
        for row, number in enumerate(numbers):
            tree = number
            for word in reversed(range(n)):
                tree, trees[row, word, 1] = divmod(tree, self.n_types)
            trees[row, :, 0] = tree_at(tree, n, single_root=self.single_root)
        return trees[:, :, 0] if self.n_types == 1 else trees

    @cached_property
    def parts(self) -> IntArray:
        if self.projective:
            return super().parts
        arcs = arc_table(self._size("list its parts"))
        rows = [part for head, modifier in arcs.tolist() for part in self._arcs(head, modifier)]
        return np.array(rows, dtype=np.int64)

    def widths_until(self, most: int) -> ArrayLike:
        if self.projective:
            return super().widths_until(most)
        return self.n_types * np.arange(math.isqrt(most // self.n_types) + 2) ** 2

    @property
    def tie_rule(self) -> str:
        return super().tie_rule if self.projective else "deterministic: order of the contractions"

    # --- labels ---

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Return (n,) for heads, (n, 2) for heads and types."""
        n = self._size("give the shape of a label")
        return (n,) if self.n_types == 1 else (n, 2)

    def sizes_of(self, lengths: IntArray) -> IntArray:
        return lengths

    def labels_of(self, used: Used) -> LabelArray:
        rows, arcs = np.nonzero(used)
        head, modifier, *kind = self.parts[arcs].T
        labels = np.zeros((len(used), *self.label_shape), dtype=np.int64)
        labels[rows, modifier - 1] = np.column_stack([head, *kind]) if kind else head
        return labels

    def parts_of(self, labels: LabelArray) -> Used:
        n = self.label_shape[0]
        modifier = np.tile(np.arange(1, n + 1), len(labels))
        columns = labels.reshape(len(labels) * n, len(self.columns) - 1).T
        rows = np.repeat(np.arange(len(labels)), n)
        return self._marks(len(labels), rows, columns[0], modifier, *columns[1:])

    @property
    def max_errors(self) -> float:
        """Return n: chains to the left and to the right share no arc; one word has one tree."""
        n = self._size("have a largest loss")
        return float(n) if n > 1 or self.n_types > 1 else 0.0

    @classmethod
    def parse(cls, argument: str) -> Self:
        sizes = argument.removesuffix(":nonprojective")
        return replace(super().parse(sizes), projective=sizes == argument)

    def draw(self, label: ArrayLike, words: list[str] | None = None) -> str:
        """Draw one tree over its words as SVG, the root's word with an arrow from above.

        Parameters
        ----------
        label : (n,) or (n, 2) array
        words : list of n str, optional
            Their numbers if not given.
        """
        tree = self.predictions.check(np.asarray(label)[None])[0].reshape(-1, len(self.columns) - 1)
        names = [str(m + 1) for m in range(len(tree))] if words is None else words
        x = WORD_WIDTH * (np.arange(len(tree) + 1) - 0.5)
        reach = np.abs(tree[:, 0] - np.arange(1, len(tree) + 1)).max(initial=1)
        base = ARC_STEP * (reach + 1.5)
        shapes = [text(x[m + 1], base + 18, names[m]) for m in range(len(tree))]
        for m, (head, *kind) in enumerate(tree.tolist(), start=1):
            # the root has no place in the sentence: its arc comes straight from above
            start, height = (x[head], abs(head - m)) if head else (x[m], reach + 1)
            shapes.append(arc(start, x[m], base, ARC_STEP * height, "".join(map(str, kind))))
        return svg(x[-1] + WORD_WIDTH / 2, base + 28, shapes)
