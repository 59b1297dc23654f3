"""Check a claim about 0-1, block and mixed losses of any size.

The loss is eta [y' != y] + (1 - eta) [block of y' != block of y] for blocks of the given sizes
(the 0-1 loss is eta = 1). The claim: lower <= H(eps) / scale <= upper for the quadratic surrogate
under the uniform measure, with one score per label ("full", scale 1/k) or one score per block
("blocks", scale = smallest block / k), H as in listed.py.

Why few numbers are enough. Fix a pair (i, j). Labels that the pair cannot tell apart form a cell:
i, j, the rest of i's block, the rest of j's block, all other blocks of one size. Averaging a
distribution and scores over a cell keeps them feasible and does not raise the surrogate risk (it is
convex), so one number per cell will do; and pairs whose blocks have the same sizes have the same
cells: they form an orbit. With block scores only the first label of each block can be predicted,
the score of a block is that label's, and true labels are firsts of blocks or others.

With n_c the weight of cell c (its number of labels; with block scores over the smallest block),
L its average losses and P their projections on the scores (P = L with full scores):

* Upper end: a distribution q over cells with (Lq)_j - (Lq)_i >= eps and a level t, scores f_j = t
  and f_c = min(-(Pq)_c, t): the value is 1/2 [n_j (t + (Pq)_j)^2 + sum_c n_c min(t + (Pq)_c, 0)^2].
* Lower end of every orbit: any w >= 0 over cells and nu >= 0 give (nu eps + h)^2 / 2n with
  h = min_y [-sum_c w_c (P_c - P_j) - nu (L_j - L_i)]_y and n = (sum w)^2/n_j + sum w_c^2/n_c;
  w = e_i, nu = 1 is always tried; an orbit with max_y (L_j - L_i)_y < eps is infeasible.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

from consistruct.certificates.exact import Refused, distribution, ends, exact_text, number, vector
from consistruct.certificates.statement import Statement, scores_words

Key = tuple[Any, ...]


def orbits(sizes: list[int], scores: str) -> list[Key]:
    """Return every kind of pair: ("same", s) in a block of s labels, ("two", s, t) across blocks.

    Pairs of blocks of the same sizes are images of each other under permutations of labels that
    leave the loss alone, so one of each kind is enough.
    """
    counts = Counter(sizes)
    found: list[Key] = []
    if scores == "full":
        found += [("same", s) for s in counts if s > 1]
    found += [("two", s, t) for s in counts for t in counts if s != t or counts[s] > 1]
    return found


class Orbit:
    """Hold the cells of one orbit: weights n, mean losses L and their projections P.

    Rows of L and P are cells of predictions, i and j first; columns are cells of true labels.
    Their number depends on how many different block sizes there are, not on how many labels.
    """

    def __init__(self, sizes: list[int], eta: Fraction, scores: str, key: Key) -> None:
        self.names: list[str] = []
        self.counts: list[int] = []
        counts = Counter(sizes)
        used = list(key[1:])
        left = counts - Counter(used)
        if scores == "blocks":
            self._blocks(left, eta, used, min(sizes))
        else:
            self._labels(left, eta, key)

    def _labels(self, left: Counter[int], eta: Fraction, key: Key) -> None:
        # A cell keeps i, j and what shares a block with them apart; all other blocks of one size
        # are one cell. Each has a name, its number of labels, its block (0 of i, 1 of j, None of
        # others) and the size of its blocks.
        cells: list[tuple[str, int, int | None, int]]
        if key[0] == "same":
            s = key[1]
            cells = [("i", 1, 0, s), ("j", 1, 0, s)]
            cells += [("their block", s - 2, 0, s)] if s > 2 else []
        else:
            s, t = key[1:]
            cells = [("i", 1, 0, s), ("j", 1, 1, t)]
            cells += [("block of i", s - 1, 0, s)] if s > 1 else []
            cells += [("block of j", t - 1, 1, t)] if t > 1 else []
        cells += [(f"other blocks of size {s}", s * n, None, s) for s, n in left.items() if n > 0]

        def average(row: Any, column: Any) -> Fraction:
            same_label = Fraction(1, column[1]) if row == column else Fraction(0)
            if row[2] is not None and column[2] is not None:
                same_block = Fraction(int(row[2] == column[2]))
            else:
                same_block = Fraction(column[3], column[1]) if row == column else Fraction(0)
            return eta * (1 - same_label) + (1 - eta) * (1 - same_block)

        self.names, self.counts = [cell[0] for cell in cells], [cell[1] for cell in cells]
        self.weights = [Fraction(n) for _, n, _, _ in cells]
        self.loss = [[average(row, column) for column in cells] for row in cells]
        self.projected = self.loss

    def _blocks(self, left: Counter[int], eta: Fraction, used: list[int], smallest: int) -> None:
        # Only the first label of a block can be predicted, so that a block is one row; as true
        # labels, the first one and the others cost differently.
        # rows: blocks in a cell (number, size); true labels: (row, first label or another one)
        cells = [(1, s) for s in used] + [(n, s) for s, n in left.items() if n > 0]
        names = ["block of i", "block of j"]
        names += [f"other blocks of size {s}" for _, s in cells[2:]]
        self.weights = [Fraction(n * s, smallest) for n, s in cells]
        self.loss, self.projected = [[] for _ in cells], [[] for _ in cells]
        for true_label, (n, s) in enumerate(cells):
            for other in range(1 + (s > 1)):
                self.names.append(
                    f"{names[true_label]}, {'other labels' if other else 'first label'}"
                )
                self.counts.append(n * (s - 1) if other else n)
                for row in range(len(cells)):
                    same = Fraction(1, n) if row == true_label else Fraction(0)
                    self.loss[row].append(same * eta * other + 1 - same)
                    self.projected[row].append(same * eta * (1 - Fraction(1, s)) + 1 - same)

    def gap(self) -> list[Fraction]:
        """L_j - L_i."""
        return [b - a for a, b in zip(self.loss[0], self.loss[1])]

    def bound(self, w: list[Fraction], nu: Fraction, eps: Fraction) -> Fraction:
        """Return the lower bound of a dual point, w a list over cells; w_j is not used."""
        P, gap = self.projected, self.gap()
        others = [c for c in range(len(w)) if c != 1 and w[c]]
        least = min(
            -sum(w[c] * (P[c][y] - P[1][y]) for c in others) - nu * gap[y] for y in range(len(gap))
        )
        height = nu * eps + least
        if height <= 0 or not others:
            return Fraction(0)
        total = sum(w[c] for c in others)
        norm = total**2 / self.weights[1] + sum(w[c] ** 2 / self.weights[c] for c in others)
        return height**2 / (2 * norm)

    def value(self, q: list[Fraction], level: Fraction, eps: Fraction) -> Fraction:
        """Return 1/2 |excess|^2 of a distribution and a level; refuse if they are not feasible."""
        if sum(x * g for x, g in zip(q, self.gap())) < eps:
            raise Refused("j is not worse than i by eps under this distribution")
        lacking = [level + sum(x * p for x, p in zip(q, row)) for row in self.projected]
        counted = [(n, x) for c, (n, x) in enumerate(zip(self.weights, lacking)) if c == 1 or x < 0]
        return sum((n * x * x for n, x in counted), Fraction(0)) / 2


def block_sizes(document: dict[str, Any]) -> tuple[list[int], Any, Any]:
    """Return the sizes of the blocks, the block of a label, and the first label of a block.

    The last two are functions: with 2^300 labels nothing may be listed.
    """
    sizes = document["sizes"]
    if not isinstance(sizes, list) or not sizes:
        raise Refused("sizes must be a list of positive integers")
    if any(type(s) is not int or s < 1 for s in sizes):
        raise Refused("sizes must be positive integers")
    assignment = document.get("assignment")
    if assignment is not None:
        if [assignment.count(block) for block in range(len(sizes))] != sizes:
            raise Refused("the assignment does not have blocks of these sizes")
        return sizes, lambda label: assignment[label], assignment.index

    def block(label: int) -> int:
        for number_of_block, size in enumerate(sizes):
            if label < size:
                return number_of_block
            label -= size
        raise Refused("a label that does not exist")

    return sizes, block, lambda number_of_block: sum(sizes[:number_of_block])


def orbit_of(document: dict[str, Any], sizes: list[int], block: Any, first: Any) -> Key:
    """Return the orbit that the two labels of the certificate belong to."""
    i, j = document["pair"]
    if type(i) is not int or type(j) is not int or min(i, j) < 0 or i == j:
        raise Refused(f"({i}, {j}) is not a pair of labels")
    if max(i, j) >= sum(sizes):
        raise Refused("a label that does not exist")
    one, other = block(i), block(j)
    if document["scores"] == "blocks" and not (first(one) == i and first(other) == j):
        raise Refused("with block scores only the first label of a block can be predicted")
    if one == other:
        return ("same", sizes[one])
    return ("two", sizes[one], sizes[other])


def scale(document: dict[str, Any]) -> Fraction:
    """Return what lower and upper are multiplied by to be bounds on H."""
    sizes = document["sizes"]
    return Fraction(1 if document["scores"] == "full" else min(sizes), sum(sizes))


def statement(document: dict[str, Any]) -> Statement:
    """State the problem of a document."""
    sizes, eta = document["sizes"], number(document["eta"], "eta")
    if eta == 1 or max(sizes) == 1:
        words = f"the 0-1 loss of {sum(sizes)} labels"
    else:
        words = (
            f"{exact_text(eta)} times the 0-1 loss of {sum(sizes)} labels, the rest of one times "
            f"whether the block is wrong, with {len(sizes)} blocks of {min(sizes)} to "
            f"{max(sizes)} labels"
        )
    full = document["scores"] == "full"
    return Statement(
        loss=words,
        scores=scores_words(None) if full else "one free score per block",
        data={name: document[name] for name in ("sizes", "assignment", "eta", "scores")},
    )


def verify(document: dict[str, Any]) -> None:
    """Raise Refused unless the document proves its claim."""
    sizes, block, first = block_sizes(document)
    eps, lower, upper = ends(document)
    eta, scores = number(document["eta"], "eta"), document["scores"]
    if not 0 <= eta <= 1 or scores not in ("full", "blocks"):
        raise Refused("needs 0 <= eta <= 1 and scores 'full' or 'blocks'")
    known = orbits(sizes, scores)
    key = orbit_of(document, sizes, block, first)
    if key not in known:
        raise Refused("the two labels of the pair cannot both be predicted")
    orbit = Orbit(sizes, eta, scores, key)
    q = distribution(document["distribution"], len(orbit.loss[0]))
    value = orbit.value(q, number(document["level"], "level"), eps)
    if value > upper:
        raise Refused(f"the point has the value {float(value)!r}, above the upper end")
    points = document["points"]
    for key in known:
        orbit = Orbit(sizes, eta, scores, key)
        n = len(orbit.weights)
        if max(orbit.gap()) < eps:
            continue
        best = orbit.bound([Fraction(int(c == 0)) for c in range(n)], Fraction(1), eps)
        given = points.get(":".join(map(str, key)))
        if given is not None:
            w, nu = vector(given["w"], n, "w"), number(given["nu"], "nu")
            if nu < 0 or any(x < 0 for x in w):
                raise Refused("a multiplier is negative")
            best = max(best, orbit.bound(w, nu, eps))
        if best < lower:
            raise Refused(f"the orbit {key} is bounded below by {float(best)!r} only")
