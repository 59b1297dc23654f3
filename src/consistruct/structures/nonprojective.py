"""Non-projective dependency trees: partition function, marginals, samples, best tree.

A label is the vector of heads (n,) of n words: 0 is the root, words count from 1. An arc h → m
scores s[h, m], and p(tree) ∝ exp Σ_m s[head(m), m]. With ``single_root`` exactly one word hangs
from the root, otherwise at least one.

By the matrix-tree theorem Z is a determinant and P(h → m) a difference of two entries of an inverse
(Koo et al. 2007). Computed that way, words that want each other as heads cancel: of 30 words whose
scores have a standard deviation of 40 five digits are left, of 80 none
(`docs/design/0028-graphs-and-trees.md`). Here nodes are eliminated instead, as Grassmann,
Taksar and Heyman do in a Markov chain whose steps lead from a word to its head: with
t = Σ_{h≠k} a[h, k], eliminating k means a[h, m] += a[h, k] a[k, m] / t, and Z = Π t. Nothing is
ever subtracted, so every result has nearly full relative accuracy. Eliminating all words but m
leaves the probabilities u(h) that the walk from h reaches the root before m, and
P(h → m) ∝ a[h, m] u(h). Halving shares the work among all m: O(n³) for all marginals together.

Two things are represented exactly by numbers m·R^e with R = 2^256 and e an integer in a float:
weights of any size, and the weight ε → 0 of root arcs by which trees with one root arc win over all
others. Each word whose head is drawn keeps that head only, so the same recursion draws exact
samples, where Wilson's random walks would take e^40 steps around a cycle of weight e^40.

Trees are numbered by a variant of Prüfer's code: remove the smallest leaf again and again and write
down its head. The last head is the root; the n − 1 others are any words, or the root as well where
it may govern several, which is Cayley's formula.

Batches are flat: sentence i has its arcs at ``offsets[i]:offsets[i + 1]``, in the order of
``arcs``, whose first n² rows are the arcs among n words (`arc_table`, or any such order).

References
----------
Koo, Globerson, Carreras and Collins, *Structured prediction models via the matrix-tree theorem*,
2007. Grassmann, Taksar and Heyman, *Regenerative analysis and steady state distributions for Markov
chains*, 1985.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from consistruct._compile import compiled
from consistruct._validation import check_scores
from consistruct.exceptions import CapabilityError
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures._derivation_kernels import Used
from consistruct.structures.derivations import PartBatch
from consistruct.structures.trees import arborescences

if TYPE_CHECKING:
    from consistruct.structures.dependency_trees import DependencyTrees

__all__ = [
    "TreeBatch",
    "arc_table",
    "are_trees",
    "best_trees",
    "count_trees",
    "sample_trees",
    "tree_at",
    "tree_marginals",
    "tree_number",
]

# Mantissas stay within 2^±128 or so, so that products of two stay within the range of a double.
RADIX = 2.0**256
STEP = 256 * math.log(2.0)  # log RADIX
# The exponent that stands for one factor ε. Sums of n exponents of scores stay far below it (see
# LARGEST), and n of it below the 2^53 up to which floats count exactly.
TINY = 2.0**41
# Largest distance of two finite scores: 4,000 words times it, in steps, is below TINY / 2.
LARGEST = 1e10


def arc_table(n: int) -> IntArray:
    """List the arcs (head, modifier) among the root and n words, (n², 2), smaller sizes first.

    The order is that of the parts of projective trees: one set of features serves both.

    >>> arc_table(2).tolist()
    [[0, 1], [2, 1], [1, 2], [0, 2]]
    """
    # the 2j − 1 arcs between j and what is before it: (i, j) and (j, i) in turn, then the root
    j = np.repeat(np.arange(1, n + 1), 2 * np.arange(1, n + 1) - 1)
    turn = np.arange(n * n) - (j - 1) ** 2
    i = j - 1 - turn // 2
    leftwards = (turn % 2 == 0) & (i > 0)
    return np.column_stack([np.where(leftwards, j, i), np.where(leftwards, i, j)])


def count_trees(n: int, *, single_root: bool = True) -> int:
    """Count the head vectors of n words: n^(n−1) with one root arc, (n+1)^(n−1) in all (Cayley).

    >>> count_trees(3), count_trees(3, single_root=False)
    (9, 16)
    """
    return int(n if single_root else n + 1) ** max(n - 1, 0)


def are_trees(heads: ArrayLike, *, single_root: bool = True) -> np.ndarray:
    """Say which head vectors (b, n) are trees, (b,).

    >>> are_trees([[0, 1], [2, 1], [0, 0]])
    array([ True, False, False])
    """
    above = np.asarray(heads, dtype=np.int64)
    n = above.shape[1]
    inside = ((above >= 0) & (above <= n)).all(axis=1)
    steps = np.pad(np.where(inside[:, None], above, 0), ((0, 0), (1, 0)))
    # after i rounds `steps` leads 2^i heads up; whoever is not at the root after n is on a cycle
    for _ in range(n.bit_length()):
        steps = np.take_along_axis(steps, steps, axis=1)
    n_roots = (above == 0).sum(axis=1)
    return np.asarray(inside & (steps == 0).all(axis=1) & ((n_roots == 1) | (not single_root)))


def tree_number(heads: Sequence[int], *, single_root: bool = True) -> int:
    """Return the number of a tree among `count_trees`, the first head of its code slowest.

    >>> tree_number([2, 0, 2]), tree_at(4, 3)
    (4, [2, 0, 2])
    """
    lowest = int(single_root)
    number = 0
    for _, head in _pruned(heads, lambda _, leaf: heads[leaf - 1])[:-1]:
        number = number * (len(heads) + 1 - lowest) + head - lowest
    return number


def tree_at(number: int, n: int, *, single_root: bool = True) -> list[int]:
    """Return the heads of the tree of n words that has a number, the inverse of `tree_number`."""
    lowest = int(single_root)
    code = [0]
    for _ in range(n - 1):
        number, digit = divmod(number, n + 1 - lowest)
        code.append(digit + lowest)
    code.reverse()
    return [head for _, head in sorted(_pruned(code, lambda turn, _: code[turn]))]


def _pruned(heads: Sequence[int], head_of: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Remove the smallest leaf until none is left; return leaves and heads in this order.

    Parameters
    ----------
    heads : list of n int
        In any order: a word is a leaf once all that it is the head of are gone.
    head_of : function
        The head of the leaf that is removed at a turn.
    """
    governed = Counter(heads)
    leaves = [word for word in range(1, len(heads) + 1) if not governed[word]]
    removed = []
    for turn in range(len(heads)):
        leaf = heappop(leaves)
        head = head_of(turn, leaf)
        removed.append((leaf, head))
        governed[head] -= 1
        if head and not governed[head]:
            heappush(leaves, head)
    return removed


def tree_marginals(
    scores: ArrayLike, offsets: ArrayLike, arcs: IntArray, *, single_root: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Return log Z of each sentence, (b,), and P(h → m) of each arc, (N,). O(n³) per sentence.

    Parameters
    ----------
    scores : (N,) array
        Scores of arcs, sentence after sentence; −inf forbids an arc.
    offsets : (b + 1,) int array
    arcs : (P, 2) int array
        Head and modifier; the first n² rows are those of n words.
    single_root : bool

    Examples
    --------
    >>> import numpy as np
    >>> log_z, p = tree_marginals(np.log([1.0, 1.0, 3.0, 1.0]), [0, 4], arc_table(2))
    >>> np.exp(log_z).round(9), p.round(9)  # 0 → 1 → 2 weighs three, 0 → 2 → 1 one
    (array([4.]), array([0.75, 0.25, 0.75, 0.25]))
    """
    flat, cuts = _check_batch(scores, offsets, arcs)
    log_z = np.empty(len(cuts) - 1)
    shares = np.zeros(len(flat))
    _distributions(flat, cuts, arcs, TINY if single_root else 0.0, np.zeros(0), log_z, shares)
    _refuse_no_tree(np.isneginf(log_z))
    return log_z, shares


def sample_trees(
    scores: ArrayLike,
    offsets: ArrayLike,
    arcs: IntArray,
    rng: np.random.Generator,
    *,
    single_root: bool = True,
) -> IntArray:
    """Draw one tree from p for each sentence, exactly: heads of all words, (Σ n,).

    >>> import numpy as np
    >>> sample_trees([0.0, -np.inf, 0.0, 0.0], [0, 4], arc_table(2), np.random.default_rng(0))
    array([0, 1])
    """
    flat, cuts = _check_batch(scores, offsets, arcs)
    return _heads(_drawn_arcs(flat, cuts, arcs, rng, single_root), cuts, arcs)


def _drawn_arcs(
    flat: FloatArray, cuts: IntArray, arcs: IntArray, rng: np.random.Generator, single_root: bool
) -> FloatArray:
    """Return indicators of the arcs of drawn trees, (N,)."""
    log_z = np.empty(len(cuts) - 1)
    chosen = np.zeros(len(flat))
    uniform = rng.random(int(_sizes(cuts).sum()))
    _distributions(flat, cuts, arcs, TINY if single_root else 0.0, uniform, log_z, chosen)
    _refuse_no_tree(np.isneginf(log_z))
    return chosen


def best_trees(
    scores: ArrayLike, offsets: ArrayLike, arcs: IntArray, *, single_root: bool = True
) -> IntArray:
    """Return argmax Σ_m s[head(m), m] for each sentence (Chu–Liu, Edmonds): heads, (Σ n,). O(n³).

    One root arc is enforced by taking from each root arc more than any two
    trees differ, which is exact for integers and otherwise as exact as the sum of the scores is.

    >>> import numpy as np
    >>> best_trees([1.0, 0.0, 0.0, 2.0], [0, 4], arc_table(2))
    array([2, 0])
    >>> best_trees([1.0, 0.0, 0.0, 2.0], [0, 4], arc_table(2), single_root=False)
    array([0, 0])
    """
    flat, cuts = _check_batch(scores, offsets, arcs)
    chosen = np.zeros(len(flat))
    _refuse_no_tree(~_best(flat, cuts, arcs, single_root, chosen))
    return _heads(chosen, cuts, arcs)


class TreeBatch(PartBatch):
    """Run the programs above on a batch of sentences, arcs with types included.

    The arcs of a tree choose their types independently: an arc weighs the sum (or, for the best
    tree, the largest) of the weights of its types, and a type has its share of the arc.
    """

    structure: DependencyTrees

    def _widths(self) -> IntArray:
        if (self.sizes == 0).any():
            raise ValueError(
                f"{self.structure!r} has no label of size 0; leave out empty sentences"
            )
        self._arcs = arc_table(int(self.sizes.max(initial=0)))
        self._cuts = np.concatenate([[0], np.cumsum(self.sizes**2)])
        return self.structure.n_types * self.sizes**2

    def _by_type(self, scores: ArrayLike) -> FloatArray:
        return self._flat(scores).reshape(-1, self.structure.n_types)

    def marginals(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        typed = self._by_type(scores)
        total = np.logaddexp.reduce(typed, axis=1)
        log_z, shares = tree_marginals(
            total, self._cuts, self._arcs, single_root=self.structure.single_root
        )
        return log_z, (shares[:, None] * _type_shares(typed, total)).ravel()

    def best(self, scores: ArrayLike) -> tuple[FloatArray, Used]:
        typed = self._by_type(scores)
        largest = typed.max(axis=1)
        flat, cuts = _check_batch(largest, self._cuts, self._arcs)
        chosen = np.zeros(len(flat))
        legal = _best(flat, cuts, self._arcs, self.structure.single_root, chosen)
        taken = np.flatnonzero(chosen > 0)
        sentence = np.searchsorted(cuts, taken, side="right") - 1
        best = np.bincount(sentence, flat[taken], minlength=len(legal))
        return np.where(legal, best, -np.inf), self._marks(taken, typed.argmax(axis=1)[taken])

    def k_best(self, scores: ArrayLike, k: int) -> tuple[FloatArray, Used]:
        """Raise: no recursion lists these trees without ambiguity, so that none ranks them."""
        raise CapabilityError(
            self.structure, "projective", "k_best", "sample trees, or use projective=True"
        )

    def sample(self, scores: ArrayLike, draws: int, rng: np.random.Generator) -> Used:
        typed = self._by_type(scores)
        total = np.logaddexp.reduce(typed, axis=1)
        # the same sentences once for each draw, as one batch
        sizes = np.tile(self.sizes, draws)
        many, cuts = _check_batch(
            np.tile(total, draws), np.concatenate([[0], np.cumsum(sizes**2)]), self._arcs
        )
        chosen = _drawn_arcs(many, cuts, self._arcs, rng, self.structure.single_root)
        taken = np.flatnonzero(chosen > 0)
        below = np.cumsum(_type_shares(typed, total)[taken % max(len(total), 1)], axis=1)
        # the last sum may round to less than one; a type of share zero is never chosen
        kinds = (rng.random((len(taken), 1)) * below[:, -1:] >= below).sum(axis=1)
        marks = np.zeros((len(many), self.structure.n_types), dtype=np.int8)
        marks[taken, kinds] = 1
        return marks.reshape(draws, self.offsets[-1])

    def _marks(self, taken: IntArray, kinds: IntArray) -> Used:
        """Return marks of all parts, (N,), for arcs and their types."""
        used = np.zeros(self.offsets[-1], dtype=np.int8)
        used[taken * self.structure.n_types + kinds] = 1
        return used


def _type_shares(typed: FloatArray, total: FloatArray) -> FloatArray:
    """Return P(type | arc), (N, types); zero where every type is forbidden."""
    return np.exp(typed - np.where(np.isneginf(total), 0.0, total)[:, None])


def _sizes(cuts: IntArray) -> IntArray:
    """Return the number of words of each sentence, (b,): the root of its number of arcs."""
    return np.rint(np.sqrt(np.diff(cuts))).astype(np.int64)


def _check_batch(
    scores: ArrayLike, offsets: ArrayLike, arcs: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return scores and offsets as the loops read them, or raise with one clear line."""
    flat = np.ascontiguousarray(scores, dtype=np.float64)
    cuts = np.ascontiguousarray(offsets, dtype=np.int64)
    check_scores(flat, "scores")
    sizes = np.diff(cuts)
    square = (_sizes(cuts) ** 2 == sizes) & (sizes > 0) & (sizes <= len(arcs))
    if cuts[0] != 0 or cuts[-1] != len(flat) or not square.all():
        raise ValueError(
            "offsets must cut the scores into sentences of n² arcs each, n ≥ 1, with at most "
            f"{len(arcs)} arcs; got {len(flat)} scores and offsets {cuts[:5].tolist()} …"
        )
    finite = flat[np.isfinite(flat)]
    if len(finite) and np.ptp(finite) > LARGEST:
        raise ValueError(
            f"finite scores must lie within {LARGEST:.0e} of each other; forbid arcs by −inf"
        )
    return flat, cuts


def _refuse_no_tree(illegal: np.ndarray) -> None:
    """Raise `ValueError` if some sentence has no legal tree."""
    if illegal.any():
        raise ValueError(
            f"forbidden arcs (score −inf) leave no tree for sentence {int(np.argmax(illegal))}; "
            "allow a head for every word and a way from the root to it"
        )


def _heads(chosen: FloatArray, cuts: IntArray, arcs: IntArray) -> IntArray:
    """Read the heads of all words off indicators of arcs."""
    sizes = _sizes(cuts)
    first_word = np.repeat(np.cumsum(sizes) - sizes, np.diff(cuts))
    rows = np.arange(len(chosen)) - np.repeat(cuts[:-1], np.diff(cuts))
    taken = chosen > 0
    heads = np.empty(int(sizes.sum()), dtype=np.int64)
    heads[first_word[taken] + arcs[rows[taken], 1] - 1] = arcs[rows[taken], 0]
    return heads


@compiled
def _plus_product(
    am: float, ae: float, bm: float, be: float, cm: float, ce: float
) -> tuple[float, float]:
    """Return a + b·c of numbers m·R^e.

    Only products leave the range of mantissas, by at most one factor R; sums of up to 1,000 words
    stay within the 2^10 that the next product can bear.
    """
    m, e = bm * cm, be + ce
    if m == 0.0:
        return am, ae
    if m >= 2.0**128:
        m, e = m / RADIX, e + 1.0
    elif m < 2.0**-128:
        m, e = m * RADIX, e - 1.0
    if am == 0.0 or e > ae + 1.0:  # R² apart, the smaller one is beyond the last digit
        return m, e
    if e < ae - 1.0:
        return am, ae
    if e == ae:
        return am + m, e
    return (m + am / RADIX, e) if e > ae else (am + m / RADIX, ae)


@compiled
def _eliminate(V: FloatArray, P: FloatArray, k: int, a: int, b: int) -> tuple[float, float]:
    """Eliminate word k, leaving the root and words a..b; return t and keep the shares P[k].

    A walk that enters k leaves it to h with probability P[k, h] = a[h, k] / t. A walk that returns
    to where it came from is left out: no tree has it, and t does not count it.

    Parameters
    ----------
    V : (n + 1, n + 1, 2) array
        Weights (head, modifier) as mantissas and exponents, changed in place.
    P : (n + 1, n + 1, 2) array
        Row k is overwritten.
    """
    tm, te = V[0, k, 0], V[0, k, 1]
    for h in range(a, b + 1):
        tm, te = _plus_product(tm, te, V[h, k, 0], V[h, k, 1], 1.0, 0.0)
    if tm > 0.0:
        for row in range(a - 1, b + 1):
            h = row if row >= a else 0  # the root, then a..b
            pm, pe = V[h, k, 0] / tm, V[h, k, 1] - te
            P[k, h, 0], P[k, h, 1] = pm, pe
            if pm == 0.0:
                continue
            for m in range(a, b + 1):
                if m != h:
                    V[h, m, 0], V[h, m, 1] = _plus_product(
                        V[h, m, 0], V[h, m, 1], pm, pe, V[k, m, 0], V[k, m, 1]
                    )
    return tm, te


@compiled
def _head_shares(
    m: int, W: FloatArray, P: FloatArray, gone: IntArray, out: FloatArray
) -> tuple[float, float]:
    """Write P(h → m) to ``out[:, m]``, all other words being eliminated; return their sum.

    P(h → m) ∝ a[h, m] u(h): the head h itself must reach the root without passing m.

    Parameters
    ----------
    W : (levels, n + 1, n + 1, 2) array
        Level 0 has the weights of arcs.
    gone : (2, n + 1) int array
        The eliminated words in order.
    out : (n + 1, n + 1) array
    """
    n = len(P) - 1
    # u(k) = Σ_h P(k → h) u(h) over those left when k was eliminated: backwards, last one first
    u = np.zeros((n + 1, 2))
    u[0, 0] = 1.0
    for j in range(n - 2, -1, -1):
        k = gone[0, j]
        um, ue = P[k, 0, 0], P[k, 0, 1]
        for i in range(j + 1, n - 1):
            h = gone[0, i]
            um, ue = _plus_product(um, ue, P[k, h, 0], P[k, h, 1], u[h, 0], u[h, 1])
        u[k, 0], u[k, 1] = um, ue
    tm, te = 0.0, 0.0
    for h in range(n + 1):
        if h != m:
            tm, te = _plus_product(tm, te, W[0, h, m, 0], W[0, h, m, 1], u[h, 0], u[h, 1])
    if tm > 0.0:
        for h in range(n + 1):
            wm, we = _plus_product(0.0, 0.0, W[0, h, m, 0], W[0, h, m, 1], u[h, 0], u[h, 1])
            out[h, m] = wm / tm * RADIX ** (we - te) if h != m and wm > 0.0 else 0.0
    return tm, te


@compiled
def _draw(
    m: int, level: int, W: FloatArray, P: FloatArray, gone: IntArray, x: float, out: FloatArray
) -> None:
    """Draw the head of m from ``out[:, m]`` and keep only this arc, at every level above.

    At a level where the head is eliminated already, the arc leads to where the walk from the head
    first meets a word that is left: the shares P of the eliminated words, in order.
    """
    n = len(P) - 1
    # the last head of positive probability whose shares below it leave room for x: rounding of the
    # sum never selects an arc that is forbidden
    head, below = -1, 0.0
    for h in range(n + 1):
        if out[h, m] > 0.0 and (head < 0 or below <= x):
            head = h
        below += out[h, m]
        out[h, m] = 0.0
    out[head, m] = 1.0
    # v: where the walk from the head enters the words that are left at each level
    v = np.zeros((n + 1, 2))
    v[head, 0] = 1.0
    start = 0
    for upper in range(level + 1):
        for j in range(start, gone[1, upper]):
            k = gone[0, j]
            for h in range(n + 1):
                v[h, 0], v[h, 1] = _plus_product(
                    v[h, 0], v[h, 1], v[k, 0], v[k, 1], P[k, h, 0], P[k, h, 1]
                )
        start = gone[1, upper]
        W[upper, :, m] = v


@compiled
def _all_heads(W: FloatArray, P: FloatArray, x: FloatArray, out: FloatArray) -> tuple[float, float]:
    """Find the heads of all words by halving: others are eliminated until one word is left.

    Returns log Z as a logarithm of mantissas and a sum of exponents. The stack is explicit: Numba
    does not read recursive functions back from its cache safely.
    """
    n = len(P) - 1
    gone = np.zeros((2, n + 1), np.int64)  # order of elimination; how many are gone at a level
    lo, hi, side = np.ones(n + 1, np.int64), np.full(n + 1, n), np.zeros(n + 1, np.int64)
    log_z, exponent, first = 0.0, 0.0, True
    level = 0
    while level >= 0:
        a, b = lo[level], hi[level]
        before = n - 1 - b + a
        gone[1, level] = before
        if a == b:
            tm, te = _head_shares(a, W, P, gone, out)
            if tm == 0.0:
                return -np.inf, 0.0
            if len(x) > 0:
                _draw(a, level, W, P, gone, x[a - 1], out)
            # Z = Π t along any one order of elimination: the way to the first word
            if first:
                log_z, exponent, first = log_z + np.log(tm), exponent + te, False
        if a == b or side[level] == 2:
            level -= 1
            continue
        keep_left = side[level] == 0
        side[level] += 1
        V = W[level + 1]
        V[0, a : b + 1] = W[level, 0, a : b + 1]
        V[a : b + 1, a : b + 1] = W[level, a : b + 1, a : b + 1]
        middle = (a + b) // 2
        # from the outside inwards, so that the words that are left are a range
        for i in range(b - middle if keep_left else middle - a + 1):
            k = b if keep_left else a
            a, b = (a, b - 1) if keep_left else (a + 1, b)
            gone[0, before + i] = k
            tm, te = _eliminate(V, P, k, a, b)
            if tm == 0.0:
                return -np.inf, 0.0
            if first:
                log_z, exponent = log_z + np.log(tm), exponent + te
        level += 1
        lo[level], hi[level], side[level] = a, b, 0
    return log_z, exponent


@compiled
def _distributions(
    scores: FloatArray,
    offsets: IntArray,
    arcs: IntArray,
    tiny: float,
    uniform: FloatArray,
    log_z: FloatArray,
    shares: FloatArray,
) -> None:
    """Write log Z and marginals, or indicators of drawn arcs, of each sentence of a batch."""
    word = 0
    for i in range(len(log_z)):
        part = scores[offsets[i] : offsets[i + 1]]
        n = int(np.rint(np.sqrt(len(part))))
        # the best head of each word weighs one: every tree has one arc into it, so that this only
        # moves log Z
        top = np.full(n + 1, -np.inf)
        for j in range(len(part)):
            top[arcs[j, 1]] = max(top[arcs[j, 1]], part[j])
        W = np.zeros((int(np.ceil(np.log2(n))) + 1, n + 1, n + 1, 2))
        for j in range(len(part)):
            if part[j] > -np.inf:
                h, m = arcs[j, 0], arcs[j, 1]
                W[0, h, m, 1] = np.rint((part[j] - top[m]) / STEP)
                W[0, h, m, 0] = np.exp(part[j] - top[m] - W[0, h, m, 1] * STEP)
                W[0, h, m, 1] -= tiny * (h == 0)
        out = np.zeros((n + 1, n + 1))
        x = uniform[word : word + n] if len(uniform) > 0 else uniform
        log_z[i], exponent = _all_heads(W, np.zeros((n + 1, n + 1, 2)), x, out)
        word += n
        # one factor ε belongs to the one root arc; where two are needed no tree is legal
        if exponent < -1.5 * tiny and tiny > 0.0:
            log_z[i] = -np.inf
        log_z[i] += (exponent + tiny) * STEP + top[1:].sum()
        for j in range(len(part)):
            shares[offsets[i] + j] = out[arcs[j, 0], arcs[j, 1]]


@compiled
def _best(
    scores: FloatArray, offsets: IntArray, arcs: IntArray, single_root: bool, chosen: FloatArray
) -> np.ndarray:
    """Write indicators of the arcs of best trees; return which sentences have a legal one."""
    legal = np.ones(len(offsets) - 1, np.bool_)
    for i in range(len(legal)):
        part = scores[offsets[i] : offsets[i + 1]]
        n = int(np.rint(np.sqrt(len(part))))
        allowed = np.flatnonzero(part > -np.inf)
        edges = arcs[allowed]
        cost = -part[allowed]
        # every word must be reached from the root, or Chu–Liu's contractions run out of arcs
        reached = np.zeros(n + 1, np.bool_)
        reached[0] = True
        for _ in range(n):
            for j in range(len(edges)):
                reached[edges[j, 1]] |= reached[edges[j, 0]]
        legal[i] = reached.all()
        if not legal[i]:
            continue
        if single_root:
            low, high = np.full(n + 1, np.inf), np.full(n + 1, -np.inf)
            for j in range(len(edges)):
                m = edges[j, 1]
                low[m], high[m] = min(low[m], cost[j]), max(high[m], cost[j])
            cost[edges[:, 0] == 0] += 1.0 + (high[1:] - low[1:]).sum()
        tree = arborescences(cost.reshape(1, -1), edges, n + 1, 0)[0]
        legal[i] = not single_root or tree[edges[:, 0] == 0].sum() == 1.0
        chosen[offsets[i] + allowed] = tree
    return legal
