"""Decisions from draws of the true label: an ensemble, posterior draws, n-best lists, answers.

With a loss that we know, the mean of its targets over the draws is all that a decision needs, and
the decoder searches every label. With a metric that is only a function, the search is among
candidates: minimum Bayes risk.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import NDArray

from consistruct._validation import check_count, check_number
from consistruct.decisions.classes import (
    UNSEEN,
    ClassLabels,
    class_labels,
    distinct_labels,
    listed,
    lookup_codes,
    shown,
)
from consistruct.decisions.result import Decisions
from consistruct.exceptions import FamilyError
from consistruct.losses.base import Loss, Sizes, as_loss, dense_target
from consistruct.losses.costs.tables import is_cost_table, loss_with_rows
from consistruct.losses.registry import parse_loss
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.base import CHUNK_BYTES, ENUMERATION_LIMIT

__all__ = ["CandidateDecisions", "decide_from_samples", "is_metric"]

# Bets of the elimination, as shares of the largest one that cannot lose everything. Differences of
# real metrics fill little of their range, so that large bets find small differences sooner: on
# lists of pronunciations (benchmarks/generated.py) certificates take 0.29 of all pairs with 0.9
# alone, 0.31 with both, 0.33 with (0.2, 0.5, 0.9). A second bet costs at most a factor of two in
# evidence and keeps what 0.9 would lose where differences do fill the range.
BETS = np.array([0.5, 0.9])
# Calls left over pairs left, below which no certificate is in reach (see above), so that the rest
# of the budget is for the choice: halving. On those lists 1/2 chose the best of all a little more
# often from a quarter of the pairs, and certified nothing from half of them; 0.2 certified more
# and chose worse.
SCARCE = 1 / 3


@dataclass(frozen=True, eq=False)
class CandidateDecisions(Decisions):
    """Hold the candidates of least expected loss, and what the search for them can guarantee.

    Attributes
    ----------
    certified : (n,) bool array
        Whether the choice is, at the stated confidence, the one that all metric calls would give.
        Where it is not, it is the best estimate that the budget allowed.
    n_calls : (n,) int array
        How often the metric was called for each example.
    """

    certified: Any = field(default=None, kw_only=True)
    n_calls: Any = field(default=None, kw_only=True)

    def columns(self) -> dict[str, Any]:
        """Return the columns of `Decisions`, then `certified` and `n_calls`."""
        return super().columns() | {"certified": self.certified, "n_calls": self.n_calls}


def decide_from_samples(
    loss: Any,
    samples: Any,
    *,
    rows: Any = None,
    weights: Any = None,
    candidates: Any = None,
    budget: int | None = None,
    confidence: float = 0.95,
    rng: Any = None,
    loss_range: tuple[float, float] = (0.0, 1.0),
) -> Decisions:
    """Return argmin_c Σ_j w_ij L(c, s_ij) for each example i with draws s_ij of its true label.

    A consistruct loss is L(c, s) = offset(s) + ⟨embed(c), target(s)⟩, so that the mean target
    decides and the loss's own decoder searches *all* labels, drawn or not. For any other function
    the candidates are compared.

    Parameters
    ----------
    loss : Loss, spec such as "fbeta:14", or function
        A function ``metric(prediction, truth)`` returns a number, the less the better.
    samples : list of n lists, or (n, m, …) array
        Draws of the true label of each example, as many as there are. Of an ensemble: the
        predictions of its m members. For a loss as its label set writes them, or the names of its
        classes (sequences of different lengths: a list of (m_i, T_i) arrays); for a metric
        anything.
    rows : "pred" or "true", optional
        What the rows of a table of costs stand for.
    weights : (m,) array, or list of n such arrays, optional
        Weight of each draw, scaled to sum to 1; equal if not given.
    candidates : list of n lists, optional
        Predictions to choose among. If not given: all labels for a loss, the distinct samples
        for a metric.
    budget : int, optional
        Most metric calls for one example. If not given, or if there are no more pairs, every
        candidate is compared with every distinct sample.
    confidence : float
        Under a budget: probability, over the order in which samples are looked at, with which a
        certified choice is that of the full comparison. 1 rules out only what cannot win.
    rng : Generator, int or None
        For the order of the samples under a budget.
    loss_range : (low, high)
        Bounds of the metric, which elimination relies on; values outside are refused.

    Returns
    -------
    decisions : Decisions
        For a metric with `certified` and `n_calls` of each example. Under a budget the expected
        loss is an estimate wherever samples were left out.

    Notes
    -----
    Under a budget, samples are drawn by weight without replacement and all surviving candidates are
    called on each. Let D = Σ_j w_j (L(c, s_j) − L(b, s_j)) for candidate c and the current leader
    b. If c were best, D ≤ 0, and the mean of the next difference x_t given the past would be at
    most m_t = −(Σ_past w_j x_j) / (weight left). So Π_t (1 + λ_t (x_t − m_t)) with λ_t ≥ 0 chosen
    before x_t is a non-negative supermartingale, whichever leader each step bets against, and by
    Ville's inequality exceeds 1/(1 − confidence) with probability at most 1 − confidence: then c is
    out. What the budget does not settle is halved by estimated risk, without a certificate.

    References
    ----------
    Waudby-Smith and Ramdas, *Confidence sequences for sampling without replacement*, 2020; Shekhar,
    Xu, Lipton, Liang and Ramdas, *Risk-limiting financial audits via weighted sampling without
    replacement*, 2023; Baharav and Tse, *Ultra fast medoid identification via correlated sequential
    halving*, 2019.

    Examples
    --------
    Three draws of a label set; the F1 decision is no draw:

    >>> import consistruct as cs
    >>> draws = [[[1, 0, 0], [0, 1, 0], [1, 0, 1]]]
    >>> cs.decide(cs.losses.FBeta(3), samples=draws).labels
    array([[1, 1, 0]])
    >>> words = [["color", "colour", "colors", "collar"]]
    >>> differ = lambda a, b: sum(x != y for x, y in zip(a.ljust(8), b.ljust(8))) / 8
    >>> choice = cs.decide(differ, samples=words)
    >>> choice.labels[0], choice.expected_loss.round(3), choice.n_calls
    ('color', array([0.188]), array([16]))
    """
    drawn = _per_example(samples, "samples")
    shares = _shares(weights, drawn)
    if candidates is not None:
        candidates = _per_example(candidates, "candidates")
        if len(candidates) != len(drawn):
            raise ValueError(
                f"candidates and samples must be of the same examples, got {len(candidates)} and "
                f"{len(drawn)}"
            )
    if not is_metric(loss):
        arrays = [np.asarray(row) for row in drawn]
        known = _known_loss(loss, rows, arrays)
        draws, names = _read_names(known, arrays)
        if candidates is None:
            decisions = _over_all_labels(known, draws, shares)
        else:
            if names is not None:
                candidates = [_codes(row, names.predictions, i) for i, row in enumerate(candidates)]
            decisions = _among_candidates(known, draws, shares, candidates)
        if names is None:
            return decisions
        second = decisions.runner_up
        return replace(
            decisions,
            labels=names.decode(decisions.labels),
            runner_up=None if second is None else names.decode(second),
        )
    search = _Search.checked(budget, confidence, rng, loss_range)
    return _collect(
        [
            search.choose(_Pairs.of(loss, i, row, share, candidates[i] if candidates else row))
            for i, (row, share) in enumerate(zip(drawn, shares, strict=True))
        ]
    )


def is_metric(loss: Any) -> bool:
    """Return whether a loss is only a function, of which nothing is known but its values."""
    return callable(loss) and not isinstance(loss, Loss)


# --- what was given -------------------------------------------------------------------------------


def _per_example(values: Any, name: str) -> list[Any]:
    """Return one sequence of labels per example, none of them empty."""
    rows = list(values)
    if not rows:
        raise ValueError(f"{name} must hold at least one example, got none")
    for i, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__"):
            raise TypeError(
                f"{name} must hold a list of labels for each example, got {row!r} for example {i}; "
                f"write [['first draw', 'second draw'], …]"
            )
        if len(row) == 0:
            raise ValueError(f"{name} of example {i} are empty; every example needs at least one")
    return rows


def _shares(weights: Any, rows: list[Any]) -> list[FloatArray]:
    """Return the share of every draw, one array per example that sums to 1."""
    if weights is None:
        return [np.full(len(row), 1.0 / len(row)) for row in rows]
    given = list(weights)
    if given and all(np.ndim(weight) == 0 for weight in given):
        given = [given] * len(rows)
    if len(given) != len(rows):
        raise ValueError(
            f"weights must have one row per example or one number per draw, got {len(given)} rows "
            f"for {len(rows)} examples"
        )
    shares = []
    for i, (row, weight) in enumerate(zip(rows, given, strict=True)):
        share = np.asarray(weight, dtype=np.float64)
        if share.shape != (len(row),):
            raise ValueError(
                f"weights of example {i} must have one number per draw, {len(row)}, got shape "
                f"{share.shape}"
            )
        wrong = ~(np.isfinite(share) & (share >= 0))
        if wrong.any() or not share.any():
            given_as = f"{share[wrong][0]:g}" if wrong.any() else "only zeros"
            raise ValueError(
                f"weights must be finite, non-negative and not all zero, got {given_as} for "
                f"example {i}"
            )
        share = share / share.max()  # whose sum cannot overflow
        shares.append(share / share.sum())
    return shares


def _known_loss(loss: Any, rows: Any, draws: list[NDArray[Any]]) -> Loss:
    """Return the loss: a table of costs by `rows`, a spec with sizes that the draws show."""
    if is_cost_table(loss) or rows is not None:
        loss = loss_with_rows(loss, rows)
    if not isinstance(loss, str):
        return as_loss(loss)
    # all draws have T parts, or a size is missing: the spec then says which one
    lengths = {row.shape[1:] for row in draws}
    shape = lengths.pop() if len(lengths) == 1 else ()
    # numbers do not show how many classes there are: the last one may not have been drawn
    named = all(row.dtype.kind in "US" and row.ndim == 1 for row in draws)
    n_classes = len(distinct_labels(np.concatenate(draws))) if named else None
    return parse_loss(loss, sizes=Sizes(n_classes, shape[0] if shape else None))


def _read_names(
    loss: Loss, draws: list[NDArray[Any]]
) -> tuple[list[NDArray[Any]], ClassLabels | None]:
    """Return draws that are names of classes as codes, and the names; integers are codes.

    A loss without names is given them only if all its mistakes cost the same: then their order
    does not matter.
    """
    drawn = np.concatenate([row.ravel() for row in draws])
    if drawn.dtype.kind not in "OUS" or _is_family(loss) or loss.true_labels.shape != ():
        return draws, None
    if getattr(loss.true_labels, "names", None) is None and not loss.is_zero_one:
        raise ValueError(
            f"samples contain {shown(drawn[0])}, but the classes of {loss!r} have no names; name "
            f"them (CostMatrix.from_frame) or give codes from 0"
        )
    names = class_labels(loss, distinct_labels(drawn))
    return [_codes(row, names.classes, i) for i, row in enumerate(draws)], names


def _codes(labels: Any, classes: Any, example: int) -> IntArray:
    """Return the codes of named labels."""
    codes = lookup_codes(np.asarray(labels).ravel(), classes)
    if (codes == UNSEEN).any():
        unknown = shown(np.asarray(labels).ravel()[codes == UNSEEN][0])
        raise ValueError(f"{unknown} of example {example} is none of the classes {listed(classes)}")
    return codes


# --- a loss that is known -------------------------------------------------------------------------


def _over_all_labels(loss: Loss, draws: list[NDArray[Any]], shares: list[FloatArray]) -> Decisions:
    """Return the minimizer over all labels, by the decoder of the loss."""
    family = _is_family(loss)
    # a family of sizes decides examples of one size together, by its member of that size
    sizes = np.array([_size(row, i) if family else 0 for i, row in enumerate(draws)])
    order, parts = [], []
    for size in np.unique(sizes).tolist():
        member = loss.at(size) if family else loss  # type: ignore[attr-defined]
        group = np.flatnonzero(sizes == size)
        drawn = np.concatenate([draws[i] for i in group])
        if drawn.any():  # nothing but empty sets has no sizes
            member = member.fit_sizes(drawn)  # fewer scores: only what was drawn has a target
        width = member.score_space.width
        # so many examples that the dense targets of their draws fit into a chunk
        most = max(1, CHUNK_BYTES // (8 * width * max(len(draws[i]) for i in group)))
        for start in range(0, len(group), most):
            chunk = group[start : start + most].tolist()
            parts.append(_decode(member, [draws[i] for i in chunk], [shares[i] for i in chunk]))
            order += chunk
    back = np.argsort(order)
    labels, expected, seconds, second_expected = zip(*parts, strict=True)
    means = np.concatenate(expected)[back]
    if any(second is None for second in seconds):
        return Decisions(_joined(labels, back, family), means)
    gap = np.concatenate(second_expected)[back] - means
    return Decisions(_joined(labels, back, family), means, _joined(seconds, back, family), gap)


def _is_family(loss: Loss) -> bool:
    """Return whether the loss is one for every size, such as ``Hamming(None)``."""
    try:
        return loss.predictions.shape is None
    except FamilyError:
        return True


def _size(draws: NDArray[Any], example: int) -> int:
    """Return the number of parts that all draws of an example have."""
    if draws.ndim < 2:
        raise ValueError(
            f"draws of one example must have equal lengths, got {draws.shape} for example "
            f"{example}; give (m, T) arrays"
        )
    return int(draws.shape[1])


def _joined(parts: Any, back: IntArray, family: bool) -> Any:
    """Return the labels of all chunks in the order of the examples; a list where sizes differ."""
    if not family:
        return np.concatenate(parts)[back]
    flat = [label for part in parts for label in part]
    return [flat[i] for i in back]


def _decode(
    loss: Loss, draws: list[NDArray[Any]], shares: list[FloatArray]
) -> tuple[Any, FloatArray, Any, Any]:
    """Decode the mean targets of a chunk of examples, argmin_c ⟨embed(c), Σ_j w_ij target(s_ij)⟩.

    Returns labels, their expected losses, the best other labels and theirs. The last two are None
    where there is one label or more than 4,096, which are not listed. Expected losses come from
    the direct formula, so that they do not share an error with the decoder.
    """
    values, weights = np.concatenate(draws), np.concatenate(shares)
    counts = [len(row) for row in draws]
    starts = np.concatenate([[0], np.cumsum(counts)])
    # row i holds the shares of the draws of example i
    mean = scipy.sparse.csr_array(
        (weights, np.arange(len(values)), starts), shape=(len(draws), len(values))
    )
    target = dense_target(mean @ loss.target(values))

    def expect(labels: Any) -> FloatArray:
        # by the direct formula, draw for draw
        return np.asarray(mean @ loss(np.repeat(labels, counts, axis=0), values))

    # ⟨embed(c), E target⟩ is least where the scores −E target are largest
    labels = loss.score_space.decode(-target)
    size = loss.n_labels
    if size is None or not 1 < size <= ENUMERATION_LIMIT:
        return labels, expect(labels), None, None
    losses = target @ loss.score_space.matrix().T
    losses[np.arange(len(draws)), loss.predictions.index(labels).astype(np.int64)] = np.inf
    second = loss.predictions.unindex(losses.argmin(axis=1))
    return labels, expect(labels), second, expect(second)


def _among_candidates(
    loss: Loss, draws: list[NDArray[Any]], shares: list[FloatArray], candidates: list[Any]
) -> Decisions:
    """Return the best of the given labels of each example, by the direct formula.

    Nothing is saved by targets here: a list of candidates and draws is small, and shorter to check.
    """
    family = _is_family(loss)
    labels, expected, seconds = [], [], []
    for i, (row, share, offered) in enumerate(zip(draws, shares, candidates, strict=True)):
        some = np.asarray(offered)
        member = loss.at(_size(row, i)) if family else loss  # type: ignore[attr-defined]
        pairs = member(np.repeat(some, len(row), axis=0), np.concatenate([row] * len(some)))
        risks = pairs.reshape(len(some), len(row)) @ share
        order = np.argsort(risks, kind="stable")[:2]
        labels.append(some[order[0]])
        seconds.append(some[order[-1]])
        expected.append(risks[order])
    join: Callable[[Any], Any] = list if family else np.array
    means = np.array([risk[0] for risk in expected])
    if any(len(risk) == 1 for risk in expected):
        return Decisions(join(labels), means)
    gap = np.array([risk[1] for risk in expected]) - means
    return Decisions(join(labels), means, join(seconds), gap)


# --- a metric that is a function ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Hold the distinct candidates and samples of one example, and call the metric on pairs.

    The share of equal draws is summed. A draw of weight 0 is no sample, but may be a candidate.
    """

    metric: Callable[[Any, Any], Any]
    example: int
    candidates: list[Any]
    samples: list[Any]
    shares: FloatArray
    prior: FloatArray  # share of the draws that are this candidate

    @classmethod
    def of(cls, metric: Any, example: int, row: Any, share: FloatArray, offered: Any) -> Self:
        """Merge equal draws: what a model draws often is paid for once."""
        mass: dict[Any, float] = {}
        drawn: dict[Any, Any] = {}
        for value, part in zip(row, share.tolist(), strict=True):
            key = _key(value)
            drawn.setdefault(key, value)
            mass[key] = mass.get(key, 0.0) + part
        distinct: dict[Any, Any] = {}
        for value in offered:
            distinct.setdefault(_key(value), value)
        kept = [key for key in drawn if mass[key] > 0]
        return cls(
            metric,
            example,
            list(distinct.values()),
            [drawn[key] for key in kept],
            np.array([mass[key] for key in kept]),
            np.array([mass.get(key, 0.0) for key in distinct]),
        )

    def column(self, chosen: IntArray, sample: int) -> FloatArray:
        """Return what these candidates cost if this sample is the truth."""
        true = self.samples[sample]
        column = np.empty(len(chosen))
        for place, pred in enumerate(self.candidates[c] for c in chosen):
            value = self.metric(pred, true)
            number = float(value) if hasattr(value, "__float__") else math.nan  # tensors have it
            if not math.isfinite(number):
                raise ValueError(
                    f"the metric must return a finite number, got {value!r} for the prediction "
                    f"{pred!r} and the sample {true!r} of example {self.example}"
                )
            column[place] = number
        return column


def _key(value: Any) -> Any:
    """Return what equal labels share: lists and arrays by their content, other objects by `==`.

    Types count, so that 1 and True stay apart; what cannot be hashed is equal to itself alone.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return (type(value), tuple(_key(part) for part in value))
    try:
        hash(value)
    except TypeError:
        return (type(value), id(value))
    return (type(value), value)


@dataclass(frozen=True, eq=False)
class _Choice:
    """Hold what a search found out about the candidates of one example."""

    pairs: _Pairs
    best: int
    risks: FloatArray  # (k,), exact where all samples were seen
    behind: FloatArray  # (k,) distance to the leader when the candidate was last called
    n_seen: IntArray  # (k,) samples that each candidate was called on
    certified: bool

    @property
    def runner_up(self) -> tuple[Any, float]:
        """Return the closest rival among those that stayed longest, and its distance."""
        rivals = np.lexsort((self.behind, -self.n_seen))
        rivals = rivals[rivals != self.best]
        if not len(rivals) or self.n_seen[rivals[0]] == 0:
            return None, math.nan
        return self.pairs.candidates[rivals[0]], float(self.behind[rivals[0]])


@dataclass(frozen=True, eq=False)
class _Search:
    """Choose the candidate of least expected metric within a budget of calls."""

    budget: int | None
    error: float  # 1 − confidence
    rng: np.random.Generator
    low: float
    high: float

    @classmethod
    def checked(cls, budget: Any, confidence: Any, rng: Any, loss_range: Any) -> Self:
        """Build from what the user passed; whatever is out of range is refused."""
        try:
            low, high = loss_range
        except (TypeError, ValueError):
            raise ValueError(
                f"loss_range must be (least, largest) value of the metric, got {loss_range!r}"
            ) from None
        low = check_number(low, "loss_range[0]")
        high = check_number(high, "loss_range[1]", low=low, open_low=True)
        error = 1.0 - check_number(confidence, "confidence", low=0.0, high=1.0, open_low=True)
        budget = None if budget is None else check_count(budget, "budget")
        return cls(budget, error, np.random.default_rng(rng), low, high)

    def choose(self, pairs: _Pairs) -> _Choice:
        """Return argmin_c Σ_j w_j metric(c, s_j): by all k·m calls if the budget has them."""
        k, m = len(pairs.candidates), len(pairs.samples)
        if self.budget is not None and self.budget < k * m:
            return self._eliminate(pairs, self.budget)
        everyone = np.arange(k)
        risks = np.column_stack([pairs.column(everyone, j) for j in range(m)]) @ pairs.shares
        best = int(risks.argmin())
        return _Choice(pairs, best, risks, risks - risks[best], np.full(k, m), True)

    def _eliminate(self, pairs: _Pairs, budget: int) -> _Choice:
        """Look at samples one by one; drop candidates by evidence, later the worse halves.

        For each survivor c and the leader b, x_t = L(c, s_t) − L(b, s_t) is in [−B, B] and, if c
        were best, has mean at most m_t = Σ_past w (L(b, s) − L(c, s)) / left. Then

            E_t(c) = mean over bets λ of Π_t (1 + λ (x_t − m_t) / (B + m_t)),  0 < λ < 1

        is a supermartingale: c is out when it reaches 1 / (1 − confidence). B + m_t ≤ 0 means that
        no values of the other samples can bring c back. Only the best candidate must be protected,
        so there is no union bound over candidates, and betting against the leader alone costs
        nothing either, because who leads is known before each draw.
        """
        k, m = len(pairs.candidates), len(pairs.samples)
        # sorting exponential clocks draws by share without replacement (Efraimidis, Spirakis 2006)
        order = np.argsort(self.rng.standard_exponential(m) / pairs.shares)
        shares = pairs.shares[order]
        # share left before each draw, summed from the end so that the last ones stay positive
        unseen = np.append(shares[::-1].cumsum()[::-1], 0.0)
        # with fewer calls than candidates only those that were drawn most are compared
        alive = np.sort(np.argsort(-pairs.prior, kind="stable")[:budget])
        certified = len(alive) == k
        leader = alive[pairs.prior[alive].argmax()]
        known, total = np.zeros(k), np.zeros(k)  # Σ w_j L(c, s_j) and Σ L(c, s_j) so far
        evidence = np.ones((k, len(BETS)))
        risks, behind, n_seen = np.full(k, np.inf), np.full(k, np.inf), np.zeros(k, dtype=np.int64)
        calls, halving_at = 0, None
        for t, j in enumerate(order):
            n = len(alive)
            if budget - calls < n or (n == 1 and t > 0):
                break
            if halving_at is None and budget - calls < SCARCE * n * (m - t):
                # the rest of the budget in equal parts for each halving that one winner needs
                halving_at = t + max(1, (budget - calls) // (n * math.ceil(math.log2(n + 1))))
            values = self._bounded(pairs, alive, j)
            calls += n
            # if c were best, differences to the leader would from here on have at most this mean
            mean = (known[leader] - known[alive]) / unseen[t]
            room = self.high - self.low + mean  # a difference is below its mean by at most this
            gain = values - values[alive == leader] - mean
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                growth = 1.0 + BETS * (gain / room)[:, None]
                # no room: whatever the other samples say, c stays behind
                evidence[alive] *= np.where(room[:, None] > 0, growth, np.inf)
                standing = evidence[alive].mean(axis=1) * self.error < 1.0  # ∞ · 0 is not
            # what is known, and for the rest the mean of what was drawn by share: far less noisy
            # with heavy samples than the unbiased mean of known + left · drawn (Des Raj 1956),
            # which chose wrongly nine times as often where one sample held 8/11
            total[alive] += values
            known[alive] += shares[t] * values
            risks[alive] = known[alive] + unseen[t + 1] * total[alive] / (t + 1)
            behind[alive] = risks[alive] - risks[alive].min()
            n_seen[alive] = t + 1
            alive = alive[standing]
            if halving_at == t + 1:
                halving_at = None
                if len(alive) > 1 and budget - calls < SCARCE * len(alive) * (m - t - 1):
                    better = np.argsort(risks[alive], kind="stable")[: (len(alive) + 1) // 2]
                    alive, certified = np.sort(alive[better]), False
            leader = alive[risks[alive].argmin()]
        certified = certified and (len(alive) == 1 or bool(n_seen[leader] == m))
        return _Choice(pairs, int(leader), risks, behind, n_seen, certified)

    def _bounded(self, pairs: _Pairs, chosen: IntArray, sample: int) -> FloatArray:
        """Return a column whose values are within the bounds that evidence relies on."""
        values = pairs.column(chosen, sample)
        slack = 1e-9 * (self.high - self.low)  # of metrics that round
        outside = (values < self.low - slack) | (values > self.high + slack)
        if outside.any():
            raise ValueError(
                f"the metric returned {values[outside][0]:g} in example {pairs.example}, outside "
                f"loss_range=({self.low:g}, {self.high:g}); pass its least and largest value"
            )
        return np.clip(values, self.low, self.high)


def _collect(choices: list[_Choice]) -> CandidateDecisions:
    """Return the choices of all examples as one result."""
    n = len(choices)
    labels, seconds = np.empty(n, dtype=object), np.empty(n, dtype=object)
    gap = np.empty(n)
    for i, choice in enumerate(choices):
        labels[i] = choice.pairs.candidates[choice.best]
        seconds[i], gap[i] = choice.runner_up
    certified = np.array([choice.certified for choice in choices])
    expected = np.array([choice.risks[choice.best] for choice in choices])
    n_calls = np.array([choice.n_seen.sum() for choice in choices])
    notes: tuple[str, ...] = ()
    if not certified.all():
        notes = (
            f"the budget did not certify {n - certified.sum()} of {n} choices; they are the best "
            f"estimates",
        )
    return CandidateDecisions(
        labels, expected, seconds, gap, notes, certified=certified, n_calls=n_calls
    )
