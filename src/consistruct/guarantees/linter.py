"""What a loss should be checked for before anybody trains with it: one sentence per finding."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import describe_count
from consistruct.calibration import calibration_function
from consistruct.certificates.exact import fraction_text
from consistruct.charts.model import Chart, Series
from consistruct.decisions import decide
from consistruct.decisions.classes import ClassLabels, class_labels, distinct_labels
from consistruct.decisions.reading import check_distributions, columns_by_class, read_given
from consistruct.exceptions import CapabilityError, TooManyLabelsError
from consistruct.guarantees.recipes import (
    DENOMINATOR,
    NEAR,
    WorstCase,
    advantage,
    argmax_worst_case,
    break_even,
    matched_weights,
    outline,
    region,
    region_share,
    rounding_worst_case,
    threshold_worst_case,
)
from consistruct.learning.evaluation.intervals import mean_interval
from consistruct.losses.base import Loss, as_loss
from consistruct.protocols import FloatArray, IntArray, LabelSet

__all__ = ["Finding", "Lint", "lint"]

# labels of either kind that are listed: 256 × 256 costs take 8 seconds, and nobody reads findings
# about more
LISTED = 256
# labels for which every class is tried as the one with a threshold: m³ sorted rows
THRESHOLDS = 32
# predictions that need a linear program to see whether they are ever best, 0.2 s each for 100 true
# labels, nearly all of it in exact arithmetic
PROGRAMS = 64
SHOWN = 5  # names in a sentence; all of them are in the numbers
ENTRIES = 400  # of a normal form that is shown as a table
ROUNDING = 1e-12  # shares of a triangle and losses in [0, 1] up to this are zero

DECIDE = "decide by least expected cost: consistruct.decide(loss, probabilities)"

# surrogate, decoding, in words, and the labels up to which its level is computed here: of the hinge
# 0.7 s at 5 labels and half a minute at 10, of the conic programs a second at 20
SURROGATE_CHECKS = (
    ("logistic", "argmax", "one-vs-all logistic, weighted by costs", 20),
    ("log", "bayes", "cross-entropy, then least expected cost", 30),
    ("log", "argmax", "cross-entropy, then argmax", 30),
    ("hinge", "argmax", "multiclass hinge", 6),
)


@dataclass(frozen=True)
class Finding:
    """One fact about a loss.

    Attributes
    ----------
    kind : str
        Short name, such as "never-optimal".
    sentence : str
    advice : str
        What to do about it; empty where it is only good to know.
    numbers : dict
        Plain data behind the sentence.
    """

    kind: str
    sentence: str
    advice: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Lint:
    """Hold the findings about a loss, and what was not examined and why.

    Attributes
    ----------
    findings : tuple of Finding
    not_examined : tuple of (check, reason)
    """

    loss: Loss
    findings: tuple[Finding, ...]
    not_examined: tuple[tuple[str, str], ...]

    def __getitem__(self, kind: str) -> Finding:
        """Return the first finding of a kind; a KeyError lists the kinds that there are."""
        match = next((finding for finding in self.findings if finding.kind == kind), None)
        if match is None:
            raise KeyError(f"no finding {kind!r}; there are {', '.join(self.kinds)}")
        return match

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, in their order."""
        return tuple(dict.fromkeys(finding.kind for finding in self.findings))

    def __str__(self) -> str:
        lines = [repr(self.loss)]
        for finding in self.findings:
            lines.append(f"{finding.kind}: {finding.sentence}")
            lines += [f"  → {finding.advice}"] if finding.advice else []
        return "\n".join([*lines, *(f"not examined: {a}: {why}" for a, why in self.not_examined)])

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "loss": repr(self.loss),
            "findings": [vars(finding) for finding in self.findings],
            "not_examined": [{"check": what, "reason": why} for what, why in self.not_examined],
        }

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per finding."""
        import pandas as pd  # half a second, which only those wait for who want a frame

        return pd.DataFrame([vars(finding) for finding in self.findings])

    def chart(self) -> Chart | None:
        """Return the regions of three true labels as a picture; None for other numbers of them."""
        if "regions" not in self.kinds:
            return None
        numbers = self["regions"].numbers
        series = []
        for style, (name, corners) in enumerate(numbers["corners"].items()):
            x, low, high = outline(corners)
            series.append(Series(name, x, low, "band", upper=high, style=style))
        a, b, c = numbers["true_labels"]
        return Chart(
            key="decision_regions",
            title="Best prediction for each distribution of the true label",
            caption=f"What is left to one is P({a}): the corner at the origin is certainty of {a}.",
            x_label=f"P({b})",
            y_label=f"P({c})",
            series=tuple(series),
        )


def lint(loss: Loss | str, y: ArrayLike | None = None, probabilities: Any = None) -> Lint:
    """Check a loss before training: mistakes in its costs, and what usual recipes lose with it.

    The excess of a recipe at p is its expected loss minus the least, (Lp)_r − min_b (Lp)_b; stated
    is the largest over all distributions p, exactly, with a p that attains it (Elkan 2001 has the
    case of two classes).

    Parameters
    ----------
    loss : Loss or spec such as "cost:costs.csv"
    y : (n,) labels, optional
        True labels of some rows, as codes or names; label sets are (n, T) of 0 and 1. Of two
        classes, their frequencies help to judge the orientation of costs.
    probabilities : (n, m) array, optional
        Predicted probabilities of the same rows: of each class, or of each label of a set. With
        both, every recipe is charged on these rows, with 95 % intervals of paired differences.

    Returns
    -------
    result : Lint
        Prints as text; `findings`, `not_examined`, `as_dict()`, `to_frame()`, `chart()`.

    Examples
    --------
    >>> from consistruct.guarantees import lint
    >>> from consistruct.losses import CostMatrix
    >>> result = lint(CostMatrix([[0, 10], [1, 0]], rows="pred"))
    >>> result["break-even"].sentence
    'predict 0 while P(1) is at most 1/11, 1 above.'
    >>> result["argmax"].numbers["excess"]
    4.5
    """
    loss = as_loss(loss)
    if probabilities is not None and y is None:
        raise ValueError("lint takes probabilities together with y; pass the true labels too")
    notes = _Notes(loss)
    sizes = [loss.n_labels, None]
    with suppress(TooManyLabelsError):  # candidate sets of very many labels have no list at all
        sizes[1] = loss.true_labels.size
    if all(size is not None and size <= LISTED for size in sizes):
        problem = _Problem(loss)
        _check_entries(notes, problem)
        _check_orientation(notes, problem, y)
        _check_predictions(notes, problem)
        _describe_costs(notes, problem)
        rules = _check_recipes(notes, problem)
        if y is not None and probabilities is not None and problem.single:
            _charge_recipes(notes, problem, rules, y, probabilities)
    else:
        number = [describe_count(size) for size in sizes]
        notes.skip(
            "costs entry by entry, predictions that are never best, recipes",
            f"{number[0]} predictions, {number[1]} true labels; up to {LISTED} of each are listed",
        )
    _check_label_sets(notes, loss, y, probabilities)
    if probabilities is not None and "on-data" not in {finding.kind for finding in notes.findings}:
        notes.skip("y and probabilities", "only classes and label sets are charged on data")
    _check_surrogates(notes, loss)
    return Lint(loss, tuple(notes.findings), tuple(notes.skipped))


class _Notes:
    """Collect findings, and what was not examined."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.findings: list[Finding] = []
        self.skipped: list[tuple[str, str]] = []

    def add(self, kind: str, sentence: str, advice: str = "", **numbers: Any) -> None:
        self.findings.append(Finding(kind, sentence, advice, numbers))

    def skip(self, what: str, why: str) -> None:
        self.skipped.append((what, why))


class _Problem:
    """The costs of a loss that can be listed, with names, and which prediction names which label.

    `right` is None where true labels are no predictions; `single` tells whether a label is a class
    and not a set, an order or several parts.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        # rows are compared by their bytes, and −0.0 has others than 0.0
        self.costs = loss.matrix(limit=LISTED) + 0.0
        self.predictions = _names(loss.predictions)
        self.true_names = _names(loss.true_labels)
        self.single = np.ndim(loss.predictions.enumerate(limit=LISTED)) == 1
        if loss.abstain_index is not None:
            self.predictions[loss.abstain_index] = "no answer"
        self.right: IntArray | None = None
        with suppress(CapabilityError):
            named = loss.true_label_as_prediction(loss.true_labels.enumerate(limit=LISTED))
            self.right = np.asarray(loss.predictions.index(named), dtype=np.int64)

    def describe(self, distribution: Sequence[Fraction]) -> str:
        """The labels of a distribution that have probability, in words."""
        pairs = zip(self.true_names, distribution, strict=True)
        return ", ".join(f"P({name}) = {_number(q)}" for name, q in pairs if q)


def _names(labels: LabelSet) -> list[str]:
    names = getattr(labels, "names", None)
    listed = np.asarray(labels.enumerate(limit=LISTED)).tolist() if names is None else names
    return [str(tuple(label) if isinstance(label, list) else label) for label in listed]


def _joined(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _number(x: Fraction) -> str:
    """A probability as a short fraction, or as a decimal."""
    return str(x) if x.denominator < DENOMINATOR else f"{float(x):.4g}"


# --- mistakes in the costs ---


def _check_entries(notes: _Notes, problem: _Problem) -> None:
    """Right predictions that do not cost least; rows that are copies of others."""
    L, right, names = problem.costs, problem.right, problem.predictions
    if right is not None:
        # "diagonal" for a square matrix; an abstention below it, or orders of classes, move it
        least, given = L.min(axis=0), L[right, np.arange(L.shape[1])]
        lost = {
            problem.true_names[y]: float(given[y] - least[y]) for y in np.flatnonzero(given > least)
        }
        if lost:
            shown = [
                f"when {name} is true, {names[L[:, y].argmin()]} costs {least[y]:g} and "
                f"{names[right[y]]} {given[y]:g}"
                for y, name in enumerate(problem.true_names)
                if name in lost
            ]
            advice = "correct these costs, or keep them if a wrong prediction really pays"
            notes.add(
                "diagonal",
                f"being right does not always cost least: {_joined(shown)}.",
                advice,
                lost=lost,
            )
    # equal bit by bit: costs that differ by rounding are tied in no sense that a decoder sees
    groups: dict[bytes, list[str]] = {}
    for name, row in zip(names, L, strict=True):
        groups.setdefault(row.tobytes(), []).append(name)
    copies = [group for group in groups.values() if len(group) > 1]
    if copies:
        shown = [" = ".join(group) for group in copies]
        advice = "nothing tells them apart, the first is predicted: merge them, or tell their costs"
        notes.add(
            "duplicates", f"predictions with equal costs: {_joined(shown)}.", advice, groups=copies
        )


def _check_orientation(notes: _Notes, problem: _Problem, y: ArrayLike | None) -> None:
    """Whether the transposed costs would make more sense."""
    L, right = problem.costs, problem.right
    k = len(L)
    if right is None or L.shape != (k, k) or (right != np.arange(k)).any() or (L == L.T).all():
        return
    advice = "check whether the rows of your matrix are true labels: rows='true'"
    given, turned = (
        (int((M.diagonal() > M.min(axis=0)).sum()), len(_dominated(M))) for M in (L, L.T)
    )
    # first the faults that are nearly always mistakes; domination alone happens in sound matrices
    if turned < given and turned[1] <= given[1]:
        notes.add(
            "orientation",
            f"{given[0]} right predictions do not cost least and {given[1]} predictions are "
            f"dominated; with rows and columns exchanged {turned[0]} and {turned[1]}.",
            advice,
            given=given,
            exchanged=turned,
        )
    if y is not None and k == 2 and problem.single:
        labels = class_labels(problem.loss, distinct_labels(y))
        counts = np.bincount(_codes(problem, y, labels), minlength=k)
        rare = int(counts.argmin())
        missed, alarm = (float(L[1 - c, c] - L[c, c]) for c in (rare, 1 - rare))
        # what people pay for is nearly always to find the rare class
        if missed < alarm and counts[rare] < counts[1 - rare]:
            notes.add(
                "orientation",
                f"missing the class {problem.true_names[rare]} ({counts[rare]} of {counts.sum()} "
                f"rows) costs {missed:g}, a false alarm {alarm:g}: usually it is the other way.",
                advice,
                missed=missed,
                false_alarm=alarm,
            )


def _dominated(costs: FloatArray) -> list[tuple[int, int]]:
    """(a, b) where prediction b never costs more than a, and once less: the first b for each a."""
    pairs = []
    for a, row in enumerate(costs):
        better = np.flatnonzero((costs <= row).all(axis=1) & (costs < row).any(axis=1))
        pairs += [(a, int(better[0]))] if len(better) else []
    return pairs


def _check_predictions(notes: _Notes, problem: _Problem) -> None:
    """Predictions that are dominated, never best, or best in ties only."""
    L, names = problem.costs, problem.predictions
    dominated = _dominated(L)
    if dominated:
        shown = [f"{names[a]} (than {names[b]})" for a, b in dominated]
        notes.add(
            "dominated",
            f"never better and sometimes worse than another prediction: {_joined(shown)}.",
            "remove them, or look for a wrong cost in their rows",
            pairs=[[names[a], names[b]] for a, b in dominated],
        )
    # whatever alone costs least for some true label is best there, without a linear program
    outright = {
        row.tobytes()
        for rows in (np.unique(L[column == column.min()], axis=0) for column in L.T)
        for row in rows
        if len(rows) == 1
    }
    unclear = [c for c, row in enumerate(L) if row.tobytes() not in outright]
    if len(unclear) > PROGRAMS:
        notes.skip(
            f"whether {len(unclear)} predictions are ever best",
            f"a linear program for each; up to {PROGRAMS} are solved",
        )
        return
    margins = {names[c]: advantage(L, c) for c in unclear if (L[c] != L).any()}
    never = {name: -margin.high for name, margin in margins.items() if margin.high < 0}
    if never:
        shown = [f"{name} (by at least {float(lost):.4g})" for name, lost in never.items()]
        notes.add(
            "never-optimal",
            f"whatever the probabilities, another prediction is better: {_joined(shown)}.",
            "remove them: no good rule returns them; or lower their costs by more than that",
            margins={name: float(lost) for name, lost in never.items()},
            nearest={name: margins[name].distribution.tolist() for name in never},
        )
    # a dominated prediction may tie, too: it has been named for a better reason
    worse = {names[a] for a, _ in dominated}
    ties = [name for name, margin in margins.items() if margin.low <= 0 <= margin.high]
    ties = [name for name in ties if name not in worse]
    if ties:
        notes.add("ties", f"best in ties only, never alone: {_joined(ties)}.", predictions=ties)


# --- the same decisions from simpler costs, and where they change ---


def _describe_costs(notes: _Notes, problem: _Problem) -> None:
    """What can be subtracted, how many numbers decide, and where decisions change."""
    L, names, true_names = problem.costs, problem.predictions, problem.true_names
    least = L.min(axis=0)
    normal = L - least
    # the span of the loss has the constant, which adds the same to every prediction
    rank = problem.loss.score_space.rank
    plural = "s" * (rank != 2)
    parts = [f"which prediction is best depends on {rank - 1} number{plural} linear in p"]
    if least.any():
        shown = [f"{true_names[y]} {least[y]:g}" for y in np.flatnonzero(least)]
        parts.append(f"what no decision avoids can be subtracted ({_joined(shown)})")
    silent = [true_names[y] for y in np.flatnonzero(normal.max(axis=0) == 0)]
    if silent:
        parts.append(f"the same is paid whatever is predicted when {_joined(silent)} is true")
    notes.add(
        "normal-form",
        "; ".join(parts) + ".",
        subtracted=least.tolist(),
        costs=normal.tolist() if normal.size <= ENTRIES else None,
        without_influence=silent,
    )
    if len(true_names) == 2:
        ranges = break_even(L)
        edges = [_number(low) for _, low, _ in ranges[1:]]
        steps = [
            f"{names[c]} up to {edge}" for (c, *_), edge in zip(ranges[1:], edges[1:], strict=False)
        ]
        last = f"{names[ranges[-1][0]]} above" if edges else "always"
        first = f"predict {names[ranges[0][0]]}"
        first += f" while P({true_names[1]}) is at most {edges[0]}" if edges else ""
        notes.add(
            "break-even",
            ", ".join([first, *steps, last]) + ".",
            ranges=[[names[c], float(low), float(high)] for c, low, high in ranges],
            exact=[fraction_text(low) for _, low, _ in ranges[1:]],
        )
    if len(true_names) == 3:
        regions = {names[c]: region(L, c) for c in range(len(L))}
        shares = {name: region_share(corners) for name, corners in regions.items()}
        # predictions that are best in ties only have a segment or a point for a region
        shares = {name: share for name, share in shares.items() if share > ROUNDING}
        shown = [f"{name} {share:.1%}" for name, share in shares.items()]
        notes.add(
            "regions",
            f"each prediction is best in this share of all distributions: {_joined(shown)}.",
            shares=shares,
            corners={name: regions[name].tolist() for name in shares},
            true_labels=true_names,
        )


# --- recipes: argmax, class weights, a threshold, a rounded mean ---

Rule = Callable[[FloatArray], IntArray]  # probabilities (n, m) -> predictions (n,)


def _check_recipes(notes: _Notes, problem: _Problem) -> dict[str, Rule]:
    """State what each recipe can lose; return the recipes for use on data."""
    L, named, true_names = problem.costs, problem.right, problem.true_names
    if named is None or len(set(named.tolist())) < len(named):
        notes.skip("recipes", "true labels are not predictions, so no argmax names one")
        return {}
    right, m = named, len(named)
    rules: dict[str, Rule] = {"argmax": lambda P: right[P.argmax(axis=1)]}
    likely = "predicting the most likely label" + " as a whole" * (not problem.single)
    _state(notes, problem, "argmax", likely, argmax_worst_case(L, right))
    if not problem.single:
        notes.skip("class weights and thresholds", "labels are sets, orders or several parts")
        return rules
    # the regret of a constant is convex in p, so that it is largest at a corner, where y is certain
    regret = (L - L.min(axis=0)).max(axis=1)
    safest = problem.predictions[int(regret.argmin())]
    sentence = (
        f"always {safest}, the safest constant, can cost {regret.min():.4g} more than the best."
    )
    notes.add("constant", sentence, excess=float(regret.min()), predicted=safest)
    _check_rejection(notes, problem, right)
    matched = matched_weights(L, right)
    # the usual choice where none is right: what mistakes cost in all (Breiman et al. 1984)
    summed = (L[right] - L[right, np.arange(m)]).sum(axis=0)
    weights = [Fraction(float(value)) for value in summed] if matched is None else matched
    # a class that nothing can be lost on has weight 0 where weights are right; sums of costs that
    # vanish, or are negative where being right does not cost least, would never predict the class
    if min(weights) <= 0 and (matched is None or max(weights) == 0):
        notes.skip("class weights", "some mistakes cost nothing, or less: weights must be positive")
    else:
        w = np.array([float(value) for value in weights])
        rules["class weights"] = lambda P: right[(P * w).argmax(axis=1)]
        shown = dict(zip(true_names, (w / w[w > 0].min()).tolist(), strict=True))
        what = "weighting classes by " + _joined([f"{name}: {x:.4g}" for name, x in shown.items()])
        what += " (sums of costs; no weights are always right)" if matched is None else ""
        worst = argmax_worst_case(L, right, weights)
        _state(notes, problem, "class-weights", what, worst, weights=shown)
    if m > THRESHOLDS:
        notes.skip("a threshold on one class", f"{m} classes, more than {THRESHOLDS}")
    elif m > 2:  # with two labels it is the break-even probability
        # the recipe may choose its class: the one whose best threshold loses least
        cases = [threshold_worst_case(L, right, label) for label in range(m)]
        label = min(range(m), key=lambda c: cases[c].excess)
        t = cases[label].threshold or Fraction(0)
        rules["threshold"] = lambda P: _thresholded(P, right, label, float(t))
        where = (
            f"where P({true_names[label]}) is at least {_number(t)}" if t else "unless impossible"
        )
        what = f"the best single threshold (predict {true_names[label]} {where}, else argmax)"
        _state(
            notes, problem, "threshold", what, cases[label], label=true_names[label], at=float(t)
        )
    if problem.loss.ordered_classes and m > 1:
        rules["rounded mean"] = lambda P: right[np.rint(P @ np.arange(m)).astype(np.int64)]
        _state(notes, problem, "rounded-mean", "rounding the mean", rounding_worst_case(L, right))
    return rules


def _thresholded(P: FloatArray, right: IntArray, label: int, t: float) -> IntArray:
    others = np.where(np.arange(P.shape[1]) == label, -1.0, P).argmax(axis=1)
    # a threshold of 0 is the limit of small ones: it predicts the label unless it is impossible
    return right[np.where((P[:, label] >= t) & (P[:, label] > 0), label, others)]


def _check_rejection(notes: _Notes, problem: _Problem, right: IntArray) -> None:
    """State the threshold on the largest probability below which no answer is best (Chow 1970).

    Where every mistake costs w more than being right, d, and no answer always costs a, answering
    costs d + w (1 − max p): more than a if and only if max p < 1 − (a − d)/w.
    """
    abstain, L = problem.loss.abstain_index, problem.costs
    weights = matched_weights(L, right)
    if abstain is None or not weights or len(set(weights)) > 1 or not weights[0]:
        return
    prices, right_costs = np.unique(L[abstain]), np.unique(L[right, np.arange(len(right))])
    if len(prices) == len(right_costs) == 1:
        t = 1 - (Fraction(float(prices[0])) - Fraction(float(right_costs[0]))) / weights[0]
        sentence = f"no answer is best where the largest probability is below {float(t):.4g}."
        if t <= Fraction(1, len(right)):
            sentence = "no answer is never worth its price."
        notes.add("rejection", sentence, threshold=float(t))


def _state(
    notes: _Notes, problem: _Problem, kind: str, what: str, worst: WorstCase, **numbers: Any
) -> None:
    """Add what a recipe can lose."""
    numbers |= {"excess": float(worst.excess), "exact": fraction_text(worst.excess)}
    if worst.excess == 0:
        notes.add(kind, f"{what} is always the best decision.", **numbers)
        return
    predicted, best = problem.predictions[worst.predicted], problem.predictions[worst.best]
    notes.add(
        kind,
        f"{what} can cost {float(worst.excess):.4g} more than the best decision: where "
        f"{problem.describe(worst.distribution)} it predicts {predicted}, but {best} is best.",
        DECIDE,
        **numbers,
        distribution=[float(q) for q in worst.distribution],
        predicted=predicted,
        best=best,
    )


def _charge_recipes(
    notes: _Notes, problem: _Problem, rules: dict[str, Rule], y: ArrayLike, probabilities: Any
) -> None:
    """State what each recipe costs on rows, minus decisions of least expected cost."""
    L = problem.costs
    P, labels = columns_by_class(read_given(probabilities), problem.loss)
    check_distributions(P)
    codes = _codes(problem, y, labels)
    if len(codes) != len(P):
        raise ValueError(f"probabilities need a row for each of y, got {len(P)} and {len(codes)}")
    best = L[(P @ L.T).argmin(axis=1), codes]
    for name, rule in rules.items():
        _charge(notes, name, L[rule(P), codes], best, float(np.ptp(L)))


def _charge(notes: _Notes, name: str, charged: FloatArray, best: FloatArray, spread: float) -> None:
    """Add the mean cost of a recipe on rows, and the interval of what it costs more."""
    # paired: what a row costs under every rule cancels
    gap = mean_interval(charged - best, bounds=(-spread, spread))
    worse = "the probabilities are not calibrated: recalibrate them before deciding with them"
    notes.add(
        "on-data",
        f"with {name} a row costs {charged.mean():.4g} on average of these {len(best)}, with "
        f"decisions of least expected cost {best.mean():.4g}: the difference is {gap}.",
        DECIDE if gap.low > 0 else worse if gap.high < 0 else "",
        recipe=name,
        mean=float(charged.mean()),
        least_expected=float(best.mean()),
        difference=gap.estimate,
        interval=gap.as_list(),
    )


def _codes(problem: _Problem, y: ArrayLike, labels: ClassLabels) -> IntArray:
    """Indices of true labels that are given as codes or names."""
    codes = np.asarray(labels.encode(y, problem.loss))
    if (codes < 0).any():
        wrong = np.asarray(y).ravel()[int(codes.argmin())]
        raise ValueError(
            f"y holds {wrong}, which is no true label of the loss; they are "
            f"{_joined([str(label) for label in labels.classes])}"
        )
    return codes


# --- label sets, and surrogates: any number of labels ---


def _check_label_sets(notes: _Notes, loss: Loss, y: ArrayLike | None, marginals: Any) -> None:
    """State what thresholds of one half can lose on label sets, from two sets at one half each."""
    if loss.hamming_shape is not None:
        notes.add("parts", "the most likely state of each part by itself is always the best.")
    if loss.labels_as != "sets":
        return
    labels: Any = loss.true_labels
    T, size = labels.shape[0], next(s for s in labels.allowed_sizes if s > 0)
    if 2 * size <= T:
        # marginals of exactly one half leave every set to the rule; the worst one is taken
        sets = np.zeros((4, T), dtype=np.int64)
        sets[1, :size] = sets[2, size : 2 * size] = sets[3, : 2 * size] = 1
        expected = (loss(sets, sets[[1] * 4]) + loss(sets, sets[[2] * 4])) / 2
        lost, chosen = float(np.ptp(expected)), int(sets[expected.argmax()].sum())
        notes.add(
            "half-thresholds",
            f"a threshold of 1/2 for each label can cost at least {lost:.4g} more than the best: "
            f"where two disjoint sets (of size {size}) have probability 1/2 each it may predict "
            f"{chosen} labels, and the best set has {sets[expected.argmin()].sum()}.",
            DECIDE,
            excess_at_least=lost,
            true_sets=sets[[1, 2]].tolist(),
            best=sets[expected.argmin()].tolist(),
        )
    if y is not None and marginals is not None:
        codes = labels.check(y, "y")
        best = loss(decide(loss, marginals).labels, codes)
        half = loss((np.asarray(marginals) >= 1 / 2).astype(np.int64), codes)
        _charge(notes, "a threshold of 1/2 for each label", half, best, loss.max_value)


def _check_surrogates(notes: _Notes, loss: Loss) -> None:
    """State which usual ways to train end at the best decisions, given enough data."""
    # the span of a loss expresses all of its expected values, so that nothing is left to err
    levels = {"least squares on the loss's span": 0.0}
    for surrogate, decoding, words, limit in SURROGATE_CHECKS:
        size = loss.n_labels
        if size is None or size > limit:
            reason = f"{describe_count(size)} predictions, more than {limit}, would take long"
            notes.skip(words, f"{reason}; calibration_function tries it all the same")
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about ties of labels, which are findings here
                curve = calibration_function(loss, None, surrogate, decoding)
                levels[words] = float(curve.consistency_level)
        except CapabilityError as error:
            notes.skip(words, f"needs '{error.capability}', which this loss does not have")
        except ValueError as error:
            notes.skip(words, str(error))
    for words in [words for words, level in levels.items() if math.isnan(level)]:
        notes.skip(words, "no method knows its consistency level for this loss")
        del levels[words]
    # conic programs return levels to nine digits
    others = {words: level for words, level in levels.items() if level > NEAR}
    parts = ["consistent: " + "; ".join(words for words in levels if words not in others)]
    parts += [f"{words} can stay {level:.4g} above the best" for words, level in others.items()]
    advice = "train with one that is consistent, whatever the amount of data" if others else ""
    notes.add("surrogates", ". ".join(parts) + ".", advice, levels=levels)
