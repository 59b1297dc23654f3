"""Labels of recursions listed by definition, each as the parts that it uses."""

from __future__ import annotations

import itertools

import numpy as np

from consistruct.structures import Derivations


def tree_arcs(n, n_types=1, single_root=True, arcs_cross=False):
    """Every head of every word; kept if all words reach the root and no arcs cross."""
    for heads in itertools.product(range(n + 1), repeat=n):
        if single_root and heads.count(0) != 1:
            continue
        reached = True
        for word in range(1, n + 1):
            seen, head = 0, word
            while head and seen <= n:
                head, seen = heads[head - 1], seen + 1
            reached &= head == 0
        ends = [(min(h, m), max(h, m)) for m, h in enumerate(heads, start=1)]
        crossing = any(a < c < b < d for a, b in ends for c, d in ends)
        if reached and (arcs_cross or not crossing):
            for kinds in itertools.product(range(n_types), repeat=n):
                typed = [(kind,) if n_types > 1 else () for kind in kinds]
                yield [(h, m, *typed[m - 1]) for m, h in enumerate(heads, start=1)]


def segment_parts(n, n_types=1, max_length=None, transitions=False):
    """Every set of cuts, every type of each piece."""
    for cuts in itertools.product((False, True), repeat=n - 1):
        ends = [0, *(t + 1 for t in range(n - 1) if cuts[t]), n]
        pieces = list(itertools.pairwise(ends))
        if max_length is not None and any(b - a > max_length for a, b in pieces):
            continue
        for kinds in itertools.product(range(n_types), repeat=len(pieces)):
            parts = [(a, b, kind) for (a, b), kind in zip(pieces, kinds, strict=True)]
            if transitions:
                later = zip(pieces[1:], kinds[1:], kinds[:-1], strict=True)
                parts = [(*part, -1) for part in parts]
                parts += [(a, a, kind, before) for (a, _), kind, before in later]
            yield parts


def span_parts(n, n_types=1):
    """Every binary tree, every type of each of its spans."""

    def trees(start, end):
        if end - start == 1:
            return [[(start, end)]]
        return [
            [(start, end), *left, *right]
            for cut in range(start + 1, end)
            for left in trees(start, cut)
            for right in trees(cut, end)
        ]

    for spans in trees(0, n):
        for kinds in itertools.product(range(n_types), repeat=len(spans)):
            yield [(*span, kind) for span, kind in zip(spans, kinds, strict=True)]


def alignment_parts(n, n_targets):
    """Every pair of equally large subsets, linked in order; the rest are gaps."""
    for size in range(min(n, n_targets) + 1):
        for sources in itertools.combinations(range(n), size):
            for targets in itertools.combinations(range(n_targets), size):
                links = list(zip(sources, targets, strict=True))
                gaps = [(i, -1) for i in range(n) if i not in sources]
                yield links + gaps + [(-1, j) for j in range(n_targets) if j not in targets]


class ChainRecursion(Derivations):
    """Three states, neighbors scored together: the recursion behind `Chain`, per edge."""

    columns = ("position", "state", "next")
    n_states = 3

    def nodes(self, end):
        for s in range(self.n_states):
            if end > 1:
                before = [(((end - 1, r),), (end - 2, r, s)) for r in range(self.n_states)]
                yield ("arrived", end, s), before
                yield (end, s), [((("arrived", end, s),), (end - 1, s, -1))]
            elif end == 1:
                yield (end, s), [((), (0, s, -1))]
        if end:
            yield ("all", end), [(((end, s),), None) for s in range(self.n_states)]


class SiblingTrees(Derivations):
    """Projective trees of second order: parts (head, sibling, modifier); arcs have sibling −1.

    A sibling is the next word between head and modifier with the same head, or the head itself.
    """

    columns = ("head", "sibling", "modifier")

    def nodes(self, end):
        j = end
        if j == 0:
            return
        yield ("L", j, j), self.AXIOM
        yield ("R", j, j), self.AXIOM
        for i in range(j - 1, 0, -1):
            inside = range(i + 1, j)
            yield ("S", i, j), [((("R", i, r), ("L", r + 1, j)), None) for r in range(i, j)]
            left = [((("S", i, r), ("l", r, j)), (j, r, i)) for r in inside]
            yield ("l2", i, j), [((("R", i, j - 1),), (j, j, i)), *left]
            right = [((("r", i, r), ("S", r, j)), (i, r, j)) for r in inside]
            yield ("r2", i, j), [((("L", i + 1, j),), (i, i, j)), *right]
            yield ("l", i, j), [((("l2", i, j),), (j, -1, i))]
            yield ("r", i, j), [((("r2", i, j),), (i, -1, j))]
            yield ("L", i, j), [((("L", i, r), ("l", r, j)), None) for r in range(i, j)]
            yield ("R", i, j), [((("r", i, r), ("R", r, j)), None) for r in range(i + 1, j + 1)]
        whole = [((("L", 1, r), ("R", r, j)), (0, -1, r)) for r in range(1, j + 1)]
        yield ("tree", j), whole


def sibling_parts(n):
    """Arcs and siblings of every projective tree."""
    for arcs in tree_arcs(n):
        heads = {m: h for h, m in arcs}
        parts = [(h, -1, m) for h, m in arcs]
        for m, h in heads.items():
            if h:
                between = [c for c in heads if heads[c] == h and min(h, m) < c < max(h, m)]
                closest = max(between, default=h) if h < m else min(between, default=h)
                parts.append((h, closest, m))
        yield parts


def chain_parts(n, n_states=3):
    for states in itertools.product(range(n_states), repeat=n):
        parts = [(t, s, -1) for t, s in enumerate(states)]
        yield parts + [(t, states[t], states[t + 1]) for t in range(n - 1)]


def listed(structure, labels):
    """Rows of 0 and 1, (k, width), of labels given by their parts."""
    place = {tuple(part): p for p, part in enumerate(structure.parts.tolist())}
    rows = []
    for parts in labels:
        row = np.zeros(len(place))
        for part in parts:
            row[place[part]] += 1
        rows.append(row)
    return np.array(rows)
