"""One line per loss: what spec strings, tests, docs and scorers know them by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from consistruct._budgets import SPECS
from consistruct._members import describe_count
from consistruct.exceptions import LossSpecError
from consistruct.losses.abstain import Abstain
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.block import Block, Mixed
from consistruct.losses.costs.cost_vectors import CostVectors
from consistruct.losses.costs.files import read_cost_csv
from consistruct.losses.costs.label_costs import LabelCosts
from consistruct.losses.decision import Decision
from consistruct.losses.fbeta import FBeta
from consistruct.losses.hamming import Hamming
from consistruct.losses.matrix import CostMatrix
from consistruct.losses.metrics.registry import METRICS
from consistruct.losses.ordinal import Ordinal
from consistruct.losses.part_errors import PartErrors
from consistruct.losses.partial_labels import PartialLabels
from consistruct.losses.rankings.average_precision import MeanAveragePrecision
from consistruct.losses.rankings.gains import NDCG, ExpectedRankUtility, PrecisionAt
from consistruct.losses.rankings.pairwise import Kendall, PairwiseDisagreement
from consistruct.losses.rankings.permutation_distances import (
    Matching,
    SpearmanFootrule,
    SpearmanRho,
)
from consistruct.losses.tree import Tree
from consistruct.losses.zero_one import ZeroOne
from consistruct.structures import (
    Alignments,
    DependencyTrees,
    GridPath,
    Knapsack,
    Segments,
    Spans,
    TopK,
    Tour,
)
from consistruct.structures.registry import ORACLES

__all__ = [
    "ALIASES",
    "LOSSES",
    "Field",
    "LossEntry",
    "Offer",
    "loss_name",
    "names_cost_file",
    "parse_loss",
    "unknown_loss",
]


@dataclass(frozen=True)
class Field:
    """A parameter of a loss: how it is called on a page, and what it starts with."""

    label: str
    default: str
    kind: Literal["integer", "number", "sizes"] = "integer"


@dataclass(frozen=True)
class Offer:
    """A loss that a page offers to choose.

    Attributes
    ----------
    spec : str
        The spec with ``{}`` for each field, such as ``hamming:{}x{}``.
    """

    title: str
    spec: str
    fields: tuple[Field, ...]

    @property
    def default(self) -> str:
        return self.spec.format(*(field.default for field in self.fields))


@dataclass(frozen=True)
class LossEntry:
    """A registered loss.

    Attributes
    ----------
    cls : type
        The class.
    spec : str
        How it is written as a string.
    examples : tuple of Loss
        Members that the conformance checks run on; include the awkward ones.
    huge : Loss or None
        A member with more than 2^200 predictions, if the class has one.
    title : callable, optional
        A member in a few words, as reports say it; its `repr` if None.
    offer : Offer or None
        How the explorer offers it; sizes to start with are computed in a moment. None where files
        would have to be read, or true labels are not finite.
    """

    cls: type[Loss]
    spec: str
    examples: tuple[Loss, ...]
    huge: Loss | None = None
    title: Callable[[Any], str] | None = None
    offer: Offer | None = None


def _count(number: int | None, what: str) -> str:
    return what if number is None else f"{describe_count(number)} {what}"


def _hamming(loss: Any) -> str:
    if loss.T is None:
        return f"share of wrong tags, of {loss.n_states}"
    states = "" if loss.n_states == 2 else f" with {loss.n_states} states each"
    return f"share of wrong labels, of {describe_count(loss.T)}{states}"


def _parts(loss: Any) -> str:
    names: dict[type, str] = {
        DependencyTrees: "words with a wrong head",
        Segments: "wrong segments",
        Spans: "wrong spans",
        Alignments: "wrong links",
    }
    what = names.get(type(loss.structure), "wrong parts")
    labels = loss.structure.n_labels
    return what if labels is None else f"{what}, of {describe_count(labels)} labels"


def _tree(loss: Any) -> str:
    kind = "distance in a label tree" if loss.kind == "path" else "height of the common ancestor"
    return f"{kind} with {len(loss.parents)} nodes"


def _top(loss: Any, name: str) -> str:
    items = "items of a query" if loss.n is None else f"{loss.n} items"
    q = getattr(loss, "q", None)
    return f"{name} of a ranking of {items}" + ("" if q is None else f", first {q}")


_KDD = [[0, 1, 2, 3, 4], [1, 0, 1, 2, 2], [2, 2, 0, 2, 2], [2, 2, 2, 0, 2], [2, 2, 2, 2, 0]]
_FOREST = (-1, -1, 0, 0, 1, 2, 2)

# fmt: off
LOSSES: dict[str, LossEntry] = {
    "zero-one": LossEntry(ZeroOne, "zero-one:10", (ZeroOne(1), ZeroOne(2), ZeroOne(7)), ZeroOne(2**300), title=lambda loss: f'share of errors over {describe_count(loss.k)} classes', offer=Offer('0-1: right or wrong', 'zero-one:{}', (Field('classes', '10'),))),
    "block": LossEntry(Block, "block:3,5,2 or block:4x25", (Block((4,)), Block((2, 2, 2)), Block((1, 5, 3)), Block(assignment=(2, 0, 1, 0, 2))), Block((2**250, 3, 2**201)), title=lambda loss: f'share of errors between blocks of {describe_count(loss.n_labels)} classes', offer=Offer('Block: wrong group of classes', 'block:{}', (Field('group sizes', '4x25', 'sizes'),))),
    "mixed": LossEntry(Mixed, "mixed:4x25:0.4", (Mixed((2, 2, 2), 0.4), Mixed((1, 4), 1.0), Mixed((3, 2), 0.0), Mixed(None, 0.1, assignment=(1, 0, 1))), Mixed((2**250, 2**250), 0.4), title=lambda loss: f'errors between blocks and, at {loss.eta:g}, all errors over {describe_count(loss.n_labels)} classes', offer=Offer('Mixed: a wrong group is worse than a wrong class', 'mixed:{}:{}', (Field('group sizes', '4x5', 'sizes'), Field('share η of the 0-1 loss', '0.4', 'number')))),
    "hamming": LossEntry(Hamming, "hamming:10 or hamming:10x26", (Hamming(1), Hamming(4), Hamming(3, 3), Hamming(2, 5)), Hamming(1000), title=_hamming, offer=Offer('Hamming: share of wrong parts', 'hamming:{}x{}', (Field('parts', '10'), Field('states per part', '2')))),
    "label-costs": LossEntry(LabelCosts, "label-costs:10:2", (LabelCosts([2.0], [1.0]), LabelCosts([1.0, 4.0, 0.0], [1.0, 0.5, 2.0])), LabelCosts([2.0] * 300, [1.0] * 300), title=lambda loss: f'costs of missed and spurious labels, of {len(loss.miss)}', offer=Offer('Label costs: a missed label costs more than a false one', 'label-costs:{}:{}', (Field('labels', '10'), Field('cost of a missed label', '2', 'number')))),
    "ordinal": LossEntry(Ordinal, "ordinal:5 or ordinal:5:2", (Ordinal(1), Ordinal(5), Ordinal(6, 2.0), Ordinal(4, 0.5)), Ordinal(2**300), title=lambda loss: f'distance between {describe_count(loss.k)} ordered classes' + ('' if loss.power == 1 else f', to the power {loss.power:g}'), offer=Offer('Ordinal: distance between levels', 'ordinal:{}:{}', (Field('levels', '5'), Field('power', '1', 'number')))),
    "abstain": LossEntry(Abstain, "abstain:5:0.3", (Abstain(1, 0.2), Abstain(4, 0.3), Abstain(4, 0.75)), Abstain(2**300, 0.3), title=lambda loss: f'errors over {describe_count(loss.k)} classes; no answer costs {loss.cost:g}', offer=Offer("Abstain: an answer “don't know”", 'abstain:{}:{}', (Field('classes', '5'), Field('cost of abstaining', '0.3', 'number')))),
    "cost": LossEntry(CostMatrix, "cost:FILE.csv", (CostMatrix(_KDD, rows="pred"), CostMatrix([[0, 1, 2]], rows="pred"), CostMatrix([[0], [1], [0]], rows="pred"), CostMatrix([[1, 1], [1, 1]]), CostMatrix([[0, 1], [1, 0], [0, 1], [0.3, 0.4]], rows="pred"))),
    "cost-vectors": LossEntry(CostVectors, "cost-vectors:5", (CostVectors(1), CostVectors(4, 2.0)), CostVectors(2**300), title=lambda loss: f'costs of each example for {describe_count(loss.k)} decisions'),
    "decision": LossEntry(Decision, "decision:path:5x5 or decision:top-k:10:3", (Decision(GridPath(2, 3)), Decision(Knapsack([2, 3, 4, 1], 5), sense="max"), Decision(TopK(4, 2)), Decision(Tour(4), name="round trips")), title=lambda loss: f'regret of {loss.name}' if loss.name else 'regret of decisions'),
    "fbeta": LossEntry(FBeta, "fbeta:14 or fbeta:14:2", (FBeta(1), FBeta(2, 2.0), FBeta(3), FBeta(4), FBeta(3, empty=0.0), FBeta(3, 0.5, empty=0.5), FBeta(4, sizes=(1, 2)), FBeta(4, sizes=(0, 3)), FBeta(1, sizes=(1,), empty=0.0)), FBeta(300, sizes=(0, 1, 3, 10)), title=lambda loss: f'1 − F{loss.beta:g} of sets of {describe_count(loss.T)} labels', offer=Offer('F-beta on label sets', 'fbeta:{}:{}', (Field('labels', '4'), Field('beta', '1', 'number')))),
    "precision-at": LossEntry(PrecisionAt, "precision-at:10:3 or precision-at:10:3:5", (PrecisionAt(1, 1), PrecisionAt(3, 1), PrecisionAt(4, 2), PrecisionAt(3, 3), PrecisionAt(3, 2, n_grades=3, empty=0.0)), PrecisionAt(60, 5), title=lambda loss: _top(loss, '1 − precision'), offer=Offer('Precision at q', 'precision-at:{}:{}', (Field('items', '4'), Field('q', '2')))),
    "ndcg": LossEntry(NDCG, "ndcg:10 or ndcg:10:5 or ndcg:10:5:3", (NDCG(1), NDCG(2), NDCG(3, n_grades=3), NDCG(4, 2), NDCG(3, 1, gain="linear", discount="reciprocal", n_grades=3), NDCG(3, discount="linear", empty=1.0)), NDCG(60, 10, n_grades=5), title=lambda loss: _top(loss, '1 − NDCG'), offer=Offer('NDCG: gain of a ranking', 'ndcg:{}:{}', (Field('items', '4'), Field('cut-off', '4')))),
    "eru": LossEntry(ExpectedRankUtility, "eru:10 or eru:10:5 or eru:10:5:3", (ExpectedRankUtility(1), ExpectedRankUtility(4), ExpectedRankUtility(3, 1.5, n_grades=4, neutral=1.5, empty=0.5)), ExpectedRankUtility(60), title=lambda loss: _top(loss, 'lost expected rank utility'), offer=Offer('Expected rank utility', 'eru:{}', (Field('items', '4'),))),
    "pairwise": LossEntry(PairwiseDisagreement, "pairwise:10 or pairwise:10:3", (PairwiseDisagreement(1), PairwiseDisagreement(2, 3), PairwiseDisagreement(4), PairwiseDisagreement(3, 3), PairwiseDisagreement(4, 3, empty=0.5), PairwiseDisagreement(1, 3, empty=1.0)), PairwiseDisagreement(60), title=lambda loss: _top(loss, 'share of wrong pairs'), offer=Offer('Pairwise disagreement', 'pairwise:{}', (Field('items', '4'),))),
    "map": LossEntry(MeanAveragePrecision, "map:5", (MeanAveragePrecision(1), MeanAveragePrecision(2), MeanAveragePrecision(3, empty=1.0), MeanAveragePrecision(4)), MeanAveragePrecision(48), title=lambda loss: _top(loss, '1 − average precision'), offer=Offer('Mean average precision', 'map:{}', (Field('items', '3'),))),
    "kendall": LossEntry(Kendall, "kendall:6", (Kendall(1), Kendall(2), Kendall(4), Kendall(3, ties="average"), Kendall(3, ties="exclude"), Kendall(1, ties="exclude")), Kendall(60), title=lambda loss: _top(loss, "Kendall's distance"), offer=Offer('Kendall: swapped pairs', 'kendall:{}', (Field('items', '3'),))),
    "footrule": LossEntry(SpearmanFootrule, "footrule:6", (SpearmanFootrule(1), SpearmanFootrule(2), SpearmanFootrule(3), SpearmanFootrule(4)), SpearmanFootrule(48), title=lambda loss: _top(loss, "Spearman's footrule"), offer=Offer("Spearman's footrule", 'footrule:{}', (Field('items', '3'),))),
    "spearman-rho": LossEntry(SpearmanRho, "spearman-rho:6", (SpearmanRho(1), SpearmanRho(2), SpearmanRho(4)), SpearmanRho(60), title=lambda loss: _top(loss, "Spearman's squared distance"), offer=Offer("Spearman's rho", 'spearman-rho:{}', (Field('items', '3'),))),
    "matching": LossEntry(Matching, "matching:5", (Matching(1), Matching(2), Matching(3), Matching(4)), Matching(48), title=lambda loss: f"share of wrong pairs in a matching of {_count(loss.n, 'items')}", offer=Offer('Matching: wrong partners', 'matching:{}', (Field('pairs', '3'),))),
    "part-errors": LossEntry(PartErrors, "part-errors:trees:12 or part-errors:segments:20x5:8", (PartErrors(DependencyTrees(1)), PartErrors(DependencyTrees(4)), PartErrors(DependencyTrees(2, 2)), PartErrors(Segments(5)), PartErrors(Segments(3, 2, 2)), PartErrors(Spans(4)), PartErrors(Spans(2, 2)), PartErrors(Alignments(2, 2)), PartErrors(Alignments(3, 2))), title=_parts, offer=Offer('Parse: words with a wrong head', 'part-errors:trees:{}', (Field('words', '3'),))),
    "partial-labels": LossEntry(PartialLabels, "partial-labels:infimum:zero-one:5 or partial-labels:average:hamming:3", (PartialLabels(ZeroOne(1)), PartialLabels(ZeroOne(4)), PartialLabels(ZeroOne(4), "average"), PartialLabels(Hamming(2), "supremum"), PartialLabels(Hamming(3)), PartialLabels(Hamming(3), "average"), PartialLabels(NDCG(3), "average"), PartialLabels(CostMatrix([[0, 1, 2]], rows="pred"), "supremum"), PartialLabels(FBeta(2))), PartialLabels(ZeroOne(2**300)), offer=Offer('Partial labels: a set of candidates', 'partial-labels:infimum:zero-one:{}', (Field('classes', '4'),))),
    "tree": LossEntry(Tree, "tree:FILE.csv or tree:FILE.csv:nodes", (Tree((-1, 0, 0, 1, 1, 2)), Tree((-1, 0, 0, 1, 1), predict="nodes"), Tree(_FOREST, kind="level"), Tree(_FOREST, (1.0, 0.5, 0.25), kind="level", predict="nodes"), Tree((-1, 0, 0, 1, 1), (0, 1, 2, 0, 0)), Tree((-1,))), title=_tree),
}
# fmt: on


# metrics whose name also stands for a loss of label sets, row by row
_OF_ROWS = {"f1": " (for F1 of each row of a label matrix: fbeta)"}


def parse_loss(
    spec: str, *, sizes: Sizes | None = None, rows: Literal["pred", "true"] | None = None
) -> Loss:
    """Build a loss from a string such as ``hamming:10x26``, ``block:4x25`` or ``cost:FILE.csv``.

    Parameters
    ----------
    spec : str
        Name and fields, separated by colons; ``_`` and ``-`` in names are alike.
    sizes : Sizes, optional
        What data tell about sizes that the spec leaves out.
    rows : "pred" or "true", optional
        Orientation of a cost file.

    Examples
    --------
    >>> from consistruct.losses import parse_loss
    >>> parse_loss("mixed:2x3:0.4"), parse_loss("zero_one:4")
    (Mixed((3, 3), 0.4), ZeroOne(4))
    """
    if not isinstance(spec, str):
        raise TypeError(f"a loss spec must be a string, got {type(spec).__name__}")
    if len(spec) > SPECS.characters:
        raise LossSpecError(
            f"a loss spec may have at most {SPECS.characters} characters, got {len(spec)}, "
            f"{spec[:40]!r}…"
        )
    head, _, tail = spec.partition(":")
    name = loss_name(head)
    if name in ORACLES:  # path:5x5 is short for decision:path:5x5
        name, tail = "decision", f"{name}:{tail}" if tail else name
    if name in METRICS:
        raise LossSpecError(
            f"{name} is a metric of the whole data set, not a loss of single examples: use "
            f"TaskLossClassifier(loss={spec!r}) or `consistruct fit`{_OF_ROWS.get(name, '')}; to "
            "see "
            "how hard it is, use `consistruct analyze` with a confusion matrix (--confusion)"
        )
    if name not in LOSSES:
        raise LossSpecError(unknown_loss(head, spec, [*LOSSES, *ORACLES, *METRICS]))
    if rows is not None and not names_cost_file(spec):
        raise LossSpecError(f"rows={rows!r} states how to read a cost file; {spec!r} names none")
    if name == "cost":
        if not tail:
            raise LossSpecError("the spec of cost names a CSV file; write cost:FILE.csv")
        return read_cost_csv(tail, rows=rows)
    inner = tail.lower().replace("_", "-").split(":").count("partial-labels")
    if inner >= SPECS.nesting:
        raise LossSpecError(
            f"candidate sets of candidate sets may be nested {SPECS.nesting} times in a spec, "
            f"got {inner + 1} in {spec[:40]!r}…"
        )
    # a file name may hold colons; everything else is split at them
    arguments = (tail,) if name == "tree" else tuple(tail.split(":")) if tail else ()
    further: Any = {} if rows is None else {"rows": rows}  # of the base loss of partial-labels
    try:
        return LOSSES[name].cls.from_spec(arguments, sizes or Sizes(), **further)
    except LossSpecError:
        raise
    except (TypeError, ValueError) as error:
        raise LossSpecError(f"{spec!r}: {error}") from None


# --- names as people write them: other words for the same loss, and near misses ---

# what others call it: what it is called here
ALIASES = {
    "0-1": "zero-one",
    "accuracy": "zero-one",
    "error-rate": "zero-one",
    "hamming-loss": "hamming",
    "mae": "ordinal",
    "mean-average-precision": "map",
    "p-at": "precision-at",
    "spearman": "spearman-rho",
    "kendall-tau": "kendall",
}


def loss_name(head: str) -> str:
    """The name before the first colon of a spec, as the registry writes it.

    >>> loss_name("Zero_One"), loss_name("accuracy")
    ('zero-one', 'zero-one')
    """
    name = head.strip().lower().replace("_", "-").replace(" ", "-")
    return ALIASES.get(name, name)


def names_cost_file(spec: str) -> bool:
    """Return whether a spec names a file of costs, so that `rows` can say how to read it.

    >>> names_cost_file("partial-labels:average:cost:c.csv"), names_cost_file("hamming:3")
    (True, False)
    """
    head, _, tail = spec.partition(":")
    if loss_name(head) == "partial-labels":  # the base loss follows the reduction
        return names_cost_file(tail.partition(":")[2])
    return loss_name(head) == "cost"


def unknown_loss(head: str, spec: str, known: Iterable[str]) -> str:
    """What to say where there is no such loss: the nearest names, then all of them.

    >>> print(unknown_loss("zero-on", "zero-on:3", ["zero-one"]))
    unknown loss 'zero-on' in the spec 'zero-on:3'; did you mean zero-one? The losses are zero-one
    """
    names = sorted(known)
    near = get_close_matches(loss_name(head), [*names, *ALIASES], n=2, cutoff=0.7)
    meant = f"did you mean {' or '.join(near)}? The" if near else "the"
    return f"unknown loss {head!r} in the spec {spec!r}; {meant} losses are {', '.join(names)}"
