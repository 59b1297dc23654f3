"""Lists of a recursion: nodes and hyperedges of all sizes, exact numbers of derivations.

Nodes come in the order of their right ends, so that the lists of size n are a prefix of those of a
larger one: one array serves all sizes, and grows with the largest that was requested.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from consistruct.structures._derivation_kernels import Lists

if TYPE_CHECKING:
    from consistruct.structures.derivations import Derivations

__all__ = ["Edge", "Part", "Recursion", "recursion_of"]

Part = tuple[int, ...]
Edge = tuple[tuple[Hashable, ...], Part | None]  # tails, part

# Recursions are compared with a list of their derivations at the smallest sizes, up to this many
# labels. A recursion that builds a label twice does so at once (the same cut in two orders), and
# listing 500 takes some milliseconds.
LISTED = 500
# … and of sizes up to this one: a family of few labels would be listed at every size otherwise.
LISTED_SIZE = 12
# Families whose lists are kept; those of parses of 100 words (515,100 edges) take some 20 MB.
KEPT_FAMILIES = 32


class Recursion:
    """Hold the lists of a family of structures, which grow with the largest size requested.

    Nodes come in the order of their right ends, so that the lists of size n are a prefix of those
    of a larger one; `goals[n]` is the goal of size n (−1 without one) and `n_parts[n]` counts its
    parts.
    """

    def __init__(self, family: Derivations) -> None:
        self._family = family
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self._nodes: dict[Hashable, int] = {}
        self._parts: dict[Part, int] = {}
        # typed arrays: a list of Python ints would take 8 times the memory of int32
        self._start, self._first, self._second, self._part = (array("i") for _ in range(4))
        self._start.append(0)
        self._counts: list[int] = []  # derivations of each node
        self.goals: list[int] = []
        self.n_parts: list[int] = []

    def grow(self, size: int) -> None:
        """Append the nodes of sizes that are not there yet, and check what they are."""
        with self._lock:
            if size < len(self.goals):
                return
            try:
                for end in range(len(self.goals), size + 1):
                    self._append(end)
                    self._refuse_ambiguity(end)
            except BaseException:
                self._clear()  # half a size would be taken for a whole one
                raise
            columns = (self._start, self._first, self._second, self._part)
            arrays = [np.array(column, dtype=np.int32) for column in columns]
            self.lists: Lists = (arrays[0], arrays[1], arrays[2], arrays[3])
            width = len(self._family.columns)
            self.parts = np.array(list(self._parts), dtype=np.int64).reshape(-1, width)

    def _append(self, end: int) -> None:
        """Add the nodes with right end `end`."""
        node = -1
        for key, edges in self._family.nodes(end):
            if key in self._nodes:
                raise ValueError(
                    f"{self._family!r} yields node {key!r} again at size {end}; "
                    "yield every node once, with all its edges"
                )
            for tails, part in edges:
                self._append_edge(key, tails, part)
            self._start.append(len(self._first))
            node = self._nodes[key] = len(self._nodes)
        self.goals.append(node)
        self.n_parts.append(len(self._parts))

    def _append_edge(self, key: Hashable, tails: tuple[Hashable, ...], part: Part | None) -> None:
        if not isinstance(tails, tuple) or len(tails) > 2:
            raise ValueError(
                f"{self._family!r}: tails of node {key!r} must be a tuple of at most two nodes, "
                f"got {tails!r}; build three from two with a node between"
            )
        for tail in tails:
            if tail not in self._nodes:
                raise ValueError(
                    f"{self._family!r}: node {key!r} is built from {tail!r}, which no node before "
                    "it is called; yield tails before what is built from them"
                )
        columns = self._family.columns
        if part is None:
            number = -1
        elif isinstance(part, tuple) and len(part) == len(columns):
            number = self._parts.setdefault(part, len(self._parts))
        else:
            raise ValueError(
                f"{self._family!r}: a part must be None or a tuple of integers {columns}, "
                f"got {part!r} at node {key!r}"
            )
        self._first.append(self._nodes[tails[0]] if tails else -1)
        self._second.append(self._nodes[tails[1]] if len(tails) == 2 else -1)
        self._part.append(number)

    def _refuse_ambiguity(self, end: int) -> None:
        """Raise if two derivations of a small size have the same parts, or one a part twice."""
        goal = self.goals[end]
        size = self.count(goal) if goal >= 0 and end <= LISTED_SIZE else 0
        if not 0 < size <= LISTED:
            return
        derivations = [tuple(sorted(self.unrank(goal, index))) for index in range(size)]
        distinct = len(set(derivations))
        if distinct < size:
            raise ValueError(
                f"{self._family!r} is ambiguous: {size} derivations at size {end} have only "
                f"{distinct} sets of parts, so that labels would count more than once; list each "
                "label once, or add parts that tell them apart"
            )
        if any(len(set(parts)) < len(parts) for parts in derivations):
            raise ValueError(
                f"{self._family!r} uses a part twice in one derivation at size {end}; "
                "give the two places parts of their own"
            )

    # --- exact numbers: how many derivations, and which is which ---

    def count(self, node: int) -> int:
        """Count the derivations of a node, Σ_edges Π_tails, exactly."""
        with self._lock:
            for v in range(len(self._counts), node + 1):
                self._counts.append(sum(map(self._ways, range(self._start[v], self._start[v + 1]))))
            return self._counts[node]

    def _ways(self, edge: int) -> int:
        first, second = self._first[edge], self._second[edge]
        ways = self._counts[first] if first >= 0 else 1
        return ways * self._counts[second] if second >= 0 else ways

    def unrank(self, goal: int, index: int) -> list[int]:
        """Return the parts of derivation number `index`: edges in order, the first tail slowest."""
        parts, pending = [], [(goal, index)]
        while pending:
            v, left = pending.pop()
            edge = self._start[v]
            while left >= (ways := self._ways(edge)):
                left -= ways
                edge += 1
            if self._part[edge] >= 0:
                parts.append(self._part[edge])
            if (second := self._second[edge]) >= 0:
                left, of_second = divmod(left, self._counts[second])
                pending.append((second, of_second))
            if self._first[edge] >= 0:
                pending.append((self._first[edge], left))
        return parts

    def rank(self, goal: int, back: NDArray[np.int32]) -> int:
        """Return the number of the derivation that takes edge ``back[v]`` at node v."""
        taken, pending = [], [goal]
        while pending:
            v = pending.pop()
            edge = int(back[v])
            taken.append((v, edge))
            pending.extend(u for u in (self._second[edge], self._first[edge]) if u >= 0)
        # heads come before their tails in `taken`; backwards, the ranks of tails are on the stack
        ranks: list[int] = []
        for v, edge in reversed(taken):
            before = sum(map(self._ways, range(self._start[v], edge)))
            first, second = self._first[edge], self._second[edge]
            of_first = ranks.pop() if first >= 0 else 0
            within = of_first * self._counts[second] + ranks.pop() if second >= 0 else of_first
            ranks.append(before + within)
        return ranks[0]


@lru_cache(maxsize=KEPT_FAMILIES)
def recursion_of(family: Derivations) -> Recursion:
    """Return the lists of a family, the same object for equal families."""
    return Recursion(family)
