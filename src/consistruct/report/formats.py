"""Losses, scores, labels and numbers of any size as reports write them: in words, and in JSON.

For readers a loss is described in words, where `repr` is Python, and a number takes a few
characters; JSON, which holds no infinities, has each number with its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Annotated, Any

import numpy as np

from consistruct import losses, structures
from consistruct._members import describe_count
from consistruct._plain_data import Form, finite, form
from consistruct.charts.plotly_figures import shortened
from consistruct.losses.algebra import Combination

__all__ = [
    "N_STATES_SHOWN",
    "TITLES",
    "Count",
    "Label",
    "LogOrZero",
    "OrInfinite",
    "Texts",
    "count_text",
    "dump_log",
    "dump_magnitude",
    "label_text",
    "load_log",
    "load_magnitude",
    "log_text",
    "loss_title",
    "null_as",
    "pair_difference",
    "scores_title",
    "shown_label",
]

Label = str | int | tuple[int, ...]  # a name, a class number, or the states of all parts

N_STATES_SHOWN = 16
N_RUNS_SHOWN = 4
N_CHARACTERS = 40
LARGEST_INTEGER = 2**53  # above it JSON readers round
N_NAMES = 6
LENGTH = 90
LARGEST = 308.2  # 10^308.2 is still a float


# --- labels, losses and scores ---


def shown_label(labels: Any, label: Any) -> Label:
    """A label as plain data: its name if it has one, its states, or its number.

    >>> from consistruct.structures import Classes
    >>> shown_label(Classes(2, ("ham", "spam")), 1), shown_label(Classes(2), 1)
    ('spam', 1)
    >>> shown_label(None, [0, 1, 1])
    (0, 1, 1)
    """
    if isinstance(label, list | tuple):
        return tuple(int(state) for state in np.ravel(label))  # of parses with types, pairs
    names = getattr(labels, "names", None)
    if names is not None:
        return str(names[label])
    return int(label) if abs(label) < LARGEST_INTEGER else str(label)


def label_text(label: Label, n_characters: int = N_CHARACTERS) -> str:
    r"""A label in one line, cut where it is long.

    >>> label_text((0, 1, 1)), label_text((3, 12, 4)), label_text((0,) * 500 + (1,) * 500)
    ('011', '3 12 4', '0×500 1×500')
    >>> label_text((0, 1) * 500)
    '0101010101010101… (1000 parts)'
    >>> label_text("beep \x07 and\nred \x1b[31m")   # terminals and SVG files take no control codes
    'beep � and red �[31m'
    >>> label_text("a name that goes on and on and on and on and on")
    'a name that goes on and on…and on and on'
    """
    if isinstance(label, tuple):
        runs = [(state, len(list(run))) for state, run in groupby(label)]
        if len(label) > N_STATES_SHOWN and len(runs) <= N_RUNS_SHOWN:
            return " ".join(f"{state}×{length}" for state, length in runs)
        between = "" if all(0 <= state < 10 for state in label) else " "
        text = between.join(str(state) for state in label[:N_STATES_SHOWN])
        return text if len(label) <= N_STATES_SHOWN else f"{text}… ({len(label)} parts)"
    words = " ".join(str(label).split())
    text = "".join(letter if letter.isprintable() else "�" for letter in words)
    return shortened(text, n_characters)


def pair_difference(pair: tuple[Label, Label]) -> str | None:
    """In how many parts two labels differ, where they have parts.

    >>> pair_difference(((0, 0, 0), (0, 1, 1)))
    'they differ in 2 of 3 parts'
    """
    one, other = pair
    if not (isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)):
        return None
    number = sum(a != b for a, b in zip(one, other, strict=True))
    return f"they differ in {number} of {len(one)} parts"


def loss_title(loss: Any) -> str:
    """The loss in a few words; a loss of the user's own by its `repr`, cut where it is long.

    >>> from consistruct import losses
    >>> loss_title(losses.CostMatrix(
    ...     [[0, 1], [10, 0]], ("ham", "spam"), ("ham", "spam"), rows="pred"))
    'costs of mistakes between 2 classes: ham, spam'
    >>> loss_title(losses.Ordinal(5)), loss_title(losses.Hamming(None, 23))
    ('distance between 5 ordered classes', 'share of wrong tags, of 23')
    """
    words = TITLES.get(type(loss))
    return label_text(repr(loss), LENGTH) if words is None else words(loss)


def scores_title(space: Any) -> str:
    """What the scores are attached to.

    >>> from consistruct import losses
    >>> scores_title(losses.Hamming(1000).score_space)
    'one score for each state of each part'
    """
    name = type(space).__name__
    if name == "Dense":
        return f"scores of {describe_count(space.predictions.size)} labels, of rank {space.rank}"
    words = _SCORES.get(name)
    return label_text(repr(space), LENGTH) if words is None else words


def _costs(loss: Any) -> str:
    names = loss.true_labels.names
    listed = "" if names is None else f": {_listed(names)}"
    if loss.true_labels.size == loss.n_labels:
        return f"costs of mistakes between {loss.n_labels} classes{listed}"
    return f"costs of {loss.n_labels} decisions for {loss.true_labels.size} classes{listed}"


def _listed(names: Any) -> str:
    shown = ", ".join(label_text(name, 24) for name in names[:N_NAMES])
    return shown if len(names) <= N_NAMES else f"{shown}, …"


def _hamming(loss: Any) -> str:
    if loss.T is None:
        return f"share of wrong tags, of {loss.n_states}"
    states = "" if loss.n_states == 2 else f" with {loss.n_states} states each"
    return f"share of wrong labels, of {describe_count(loss.T)}{states}"


def _ordinal(loss: Any) -> str:
    power = "" if loss.power == 1 else f", to the power {loss.power:g}"
    return f"distance between {describe_count(loss.k)} ordered classes{power}"


def _mixed(loss: Any) -> str:
    classes = f"{describe_count(loss.n_labels)} classes"
    return f"errors between blocks and, at {loss.eta:g}, all errors over {classes}"


def _tree(loss: Any) -> str:
    kind = "distance in a label tree" if loss.kind == "path" else "height of the common ancestor"
    return f"{kind} with {len(loss.parents)} nodes"


# what a wrong part of a structure is, in words
_PARTS: dict[type, str] = {
    structures.DependencyTrees: "words with a wrong head",
    structures.Segments: "wrong segments",
    structures.Spans: "wrong spans",
    structures.Alignments: "wrong links",
}


def _part_errors(loss: Any) -> str:
    what = _PARTS.get(type(loss.structure), "wrong parts")
    labels = loss.structure.n_labels
    return what if labels is None else f"{what}, of {describe_count(labels)} labels"


def _matching(loss: Any) -> str:
    items = "items" if loss.n is None else f"{describe_count(loss.n)} items"
    return f"share of wrong pairs in a matching of {items}"


def _ranking(name: str) -> Callable[[Any], str]:
    def title(loss: Any) -> str:
        items = "items of a query" if loss.n is None else f"{loss.n} items"
        q = getattr(loss, "q", None)
        return f"{name} of a ranking of {items}" + ("" if q is None else f", first {q}")

    return title


# one line per class of losses; tests/report/test_wording.py holds it against the registry
TITLES: dict[type, Callable[[Any], str]] = {
    losses.ZeroOne: lambda loss: f"share of errors over {describe_count(loss.k)} classes",
    losses.Block: lambda loss: (
        f"share of errors between blocks of {describe_count(loss.n_labels)} classes"
    ),
    losses.Mixed: _mixed,
    losses.Hamming: _hamming,
    losses.LabelCosts: lambda loss: f"costs of missed and spurious labels, of {len(loss.miss)}",
    losses.Ordinal: _ordinal,
    losses.Abstain: lambda loss: (
        f"errors over {describe_count(loss.k)} classes; no answer costs {loss.cost:g}"
    ),
    losses.CostMatrix: _costs,
    losses.CostVectors: lambda loss: (
        f"costs of each example for {describe_count(loss.k)} decisions"
    ),
    losses.Decision: lambda loss: f"regret of {loss.name or 'decisions'}",
    losses.FBeta: lambda loss: f"1 − F{loss.beta:g} of sets of {describe_count(loss.T)} labels",
    losses.PrecisionAt: _ranking("1 − precision"),
    losses.NDCG: _ranking("1 − NDCG"),
    losses.ExpectedRankUtility: _ranking("lost expected rank utility"),
    losses.PairwiseDisagreement: _ranking("share of wrong pairs"),
    losses.MeanAveragePrecision: _ranking("1 − average precision"),
    losses.Kendall: _ranking("Kendall's distance"),
    losses.SpearmanFootrule: _ranking("Spearman's footrule"),
    losses.SpearmanRho: _ranking("Spearman's squared distance"),
    losses.Matching: _matching,
    losses.PartErrors: _part_errors,
    losses.PartialLabels: lambda loss: (
        f"{loss_title(loss.loss)}; true labels are sets of candidates"
    ),
    losses.Tree: _tree,
    Combination: lambda loss: " + ".join(
        f"{weight:g} · ({loss_title(part)})" for weight, part in loss.terms
    ),
}

_SCORES = {
    "Full": "one score for each label",
    "Blocks": "one score for each block of labels",
    "Separable": "one score for each state of each part",
    "Chain": "scores of states and of neighboring pairs, as in a chain",
    "Segments": "one score for each segment and its type",
    "DependencyTrees": "one score for each head of each word",
    "Spans": "one score for each span and its type",
    "Alignments": "one score for each link and each gap",
    "SetSizes": "scores of labels, by the size of the set",
    "Positions": "one score for each item, discounted by position",
    "PairOrder": "one score for each pair of items",
    "PairDiscount": "one score for each pair of items, discounted by position",
    "Matchings": "one score for each pair of a matching",
    "Decisions": "one score for each cost of a decision",
}


# --- numbers for readers ---


def count_text(log: float, *, up: bool = False) -> str:
    """A count, rounded to three digits; up where fewer would not do.

    >>> count_text(math.log(2000)), count_text(math.log(123456)), count_text(1000 * math.log(2))
    ('2,000', '123,000', 'about 10^301')
    >>> count_text(-math.inf), count_text(math.log(2.5))
    ('0', '2.5')
    >>> count_text(math.log(123456), up=True)
    '124,000'
    """
    if log == -math.inf:
        return "0"
    log10 = log / math.log(10)
    if log10 >= 12:
        return f"about 10^{log10:.0f}" if log10 >= 100 else f"about 10^{log10:.1f}"
    exact = math.exp(log)
    value = float(f"{exact:.3g}")
    if up and value < exact * (1 - 1e-12):  # the logarithm is as good as that
        value = float(f"{value + 10.0 ** (math.floor(log10) - 2):.3g}")
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def log_text(log: float) -> str:
    """A positive number by its logarithm.

    >>> log_text(math.log(0.00125)), log_text(-2000.0), log_text(-math.inf)
    ('0.00125', '10^-868.6', '0')
    """
    if log == -math.inf:
        return "0"
    if log > -600:
        return f"{math.exp(log):.4g}"
    return f"10^{log / math.log(10):.1f}"


# --- numbers in JSON, see consistruct._plain_data ---


def dump_log(name: str, log: float | None) -> dict[str, float | None]:
    """A quantity given by its logarithm, as value and logarithm.

    >>> dump_log("bound", 0.0), dump_log("bound", None)
    ({'bound': 1.0, 'bound_log': 0.0}, {'bound': None, 'bound_log': None})
    """
    value = None if log is None or log > 709 else math.exp(log)
    return {name: value, f"{name}_log": log}


def load_log(data: Mapping[str, Any], name: str) -> float | None:
    """The inverse of `dump_log`, for quantities that are finite or not known; null beside 0: −inf.

    >>> load_log({"bound": 0.0, "bound_log": None}, "bound")
    -inf
    """
    value, log = data[name], data[f"{name}_log"]
    if log is not None:
        return float(log)
    return None if value is None else -math.inf


def dump_magnitude(name: str, log10: float | None) -> dict[str, float | None]:
    """A count given by log₁₀: 0 for −inf; null beside a logarithm if too large, beside null: inf.

    >>> dump_magnitude("n", 3.0), dump_magnitude("n", 1000.0)
    ({'n': 1000.0, 'n_log10': 3.0}, {'n': None, 'n_log10': 1000.0})
    """
    value = None if log10 is None or log10 > LARGEST else 10.0**log10
    return {name: value, f"{name}_log10": log10}


def load_magnitude(data: Mapping[str, Any], name: str) -> float:
    """The inverse of `dump_magnitude`."""
    value, log10 = data[name], data[f"{name}_log10"]
    if log10 is not None:
        return float(log10)
    return math.inf if value is None else -math.inf


def null_as(infinity: float, name: str = "") -> Form:
    """A number whose null stands for this infinity."""
    return form(finite, lambda data: infinity if data is None else data, name)


Count = Annotated[int, form(str, int)]  # of any size: a decimal string
OrInfinite = Annotated[float, null_as(math.inf)]
LogOrZero = Annotated[float, null_as(-math.inf)]  # log 0
Texts = Annotated[tuple[tuple[str, str], ...], form(dict, lambda data: tuple(data.items()))]
