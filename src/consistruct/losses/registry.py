"""List the losses: what spec strings, tests, docs and scorers know them by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from consistruct._budgets import SPECS
from consistruct.exceptions import LossSpecError
from consistruct.losses.abstain import Abstain
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.classes import Block, Mixed, ZeroOne
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
from consistruct.losses.spec import check_spec, naming
from consistruct.losses.tree import Tree
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
    "LossEntry",
    "loss_name",
    "names_cost_file",
    "parse_loss",
    "unknown_loss",
]


@dataclass(frozen=True)
class LossEntry:
    """Register a loss.

    Attributes
    ----------
    spec : str
        How it is written as a string.
    examples : tuple of Loss
        Members that the conformance checks run on; include the awkward ones.
    huge : Loss or None
        A member with more than 2^200 predictions, if the class has one.
    """

    spec: str
    examples: tuple[Loss, ...]
    huge: Loss | None = None

    @property
    def cls(self) -> type[Loss]:
        """Return the class, which all examples have."""
        return type(self.examples[0])


# costs of the intrusion detection contest KDD Cup 1999, which are not symmetric; classes are
# normal, probe, denial of service, user to root, remote to local
_KDD = [[0, 1, 2, 3, 4], [1, 0, 1, 2, 2], [2, 2, 0, 2, 2], [2, 2, 2, 0, 2], [2, 2, 2, 2, 0]]
# two roots, and leaves at depths 1 and 2: at depth 2 the upper ones stand for themselves
_FOREST = (-1, -1, 0, 0, 1, 2, 2)

LOSSES: dict[str, LossEntry] = {
    "zero-one": LossEntry("zero-one:10", (ZeroOne(1), ZeroOne(2), ZeroOne(7)), ZeroOne(2**300)),
    "block": LossEntry(
        "block:3,5,2 or block:4x25",
        # one block is a loss that is always zero; an assignment need not be in order
        (Block((4,)), Block((2, 2, 2)), Block((1, 5, 3)), Block(assignment=(2, 0, 1, 0, 2))),
        Block((2**250, 3, 2**201)),
    ),
    "mixed": LossEntry(
        "mixed:4x25:0.4",
        (
            Mixed((2, 2, 2), 0.4),
            # η = 1 is the 0-1 loss and η = 0 the block loss: the rank jumps at both ends
            Mixed((1, 4), 1.0),
            Mixed((3, 2), 0.0),
            Mixed(None, 0.1, assignment=(1, 0, 1)),
        ),
        Mixed((2**250, 2**250), 0.4),
    ),
    "hamming": LossEntry(
        "hamming:10 or hamming:10x26",
        (Hamming(1), Hamming(4), Hamming(3, 3), Hamming(2, 5)),
        Hamming(1000),
    ),
    "label-costs": LossEntry(
        "label-costs:10:2",
        # missing the third label costs nothing: its threshold is 1, and it is never predicted
        (LabelCosts([2.0], [1.0]), LabelCosts([1.0, 4.0, 0.0], [1.0, 0.5, 2.0])),
        LabelCosts([2.0] * 300, [1.0] * 300),
    ),
    "ordinal": LossEntry(
        "ordinal:5 or ordinal:5:2",
        # |i − j|² has rank 3 for any number of classes, roots have full rank
        (Ordinal(1), Ordinal(5), Ordinal(6, 2.0), Ordinal(4, 0.5)),
        Ordinal(2**300),
    ),
    "abstain": LossEntry(
        "abstain:5:0.3",
        # 0.75 = (k − 1)/k: abstaining is as good as the blindest guess, and the rank is one less
        (Abstain(1, 0.2), Abstain(4, 0.3), Abstain(4, 0.75)),
        Abstain(2**300, 0.3),
    ),
    "cost": LossEntry(
        "cost:FILE.csv",
        (
            CostMatrix(_KDD, rows="pred"),
            # one prediction; one true label; a constant; two predictions that no true label tells
            # apart
            CostMatrix([[0, 1, 2]], rows="pred"),
            CostMatrix([[0], [1], [0]], rows="pred"),
            CostMatrix([[1, 1], [1, 1]]),
            CostMatrix([[0, 1], [1, 0], [0, 1], [0.3, 0.4]], rows="pred"),
        ),
    ),
    "cost-vectors": LossEntry(
        "cost-vectors:5", (CostVectors(1), CostVectors(4, 2.0)), CostVectors(2**300)
    ),
    "decision": LossEntry(
        "decision:path:5x5 or decision:top-k:10:3",
        (
            Decision(GridPath(2, 3)),
            Decision(Knapsack([2, 3, 4, 1], 5), sense="max"),
            Decision(TopK(4, 2)),
            Decision(Tour(4), name="round trips"),
        ),
    ),
    "fbeta": LossEntry(
        "fbeta:14 or fbeta:14:2",
        (
            FBeta(1),
            FBeta(2, 2.0),
            FBeta(3),
            FBeta(4),
            # with and without a column for the empty set, sizes that leave gaps, one size alone
            FBeta(3, empty=0.0),
            FBeta(3, 0.5, empty=0.5),
            FBeta(4, sizes=(1, 2)),
            FBeta(4, sizes=(0, 3)),
            FBeta(1, sizes=(1,), empty=0.0),
        ),
        FBeta(300, sizes=(0, 1, 3, 10)),
    ),
    "precision-at": LossEntry(
        "precision-at:10:3 or precision-at:10:3:5",
        (
            PrecisionAt(1, 1),
            PrecisionAt(3, 1),
            PrecisionAt(4, 2),
            # q = n: every order is alike and the rank is 1
            PrecisionAt(3, 3),
            PrecisionAt(3, 2, n_grades=3, empty=0.0),
        ),
        PrecisionAt(60, 5),
    ),
    "ndcg": LossEntry(
        "ndcg:10 or ndcg:10:5 or ndcg:10:5:3",
        (
            NDCG(1),
            NDCG(2),
            NDCG(3, n_grades=3),
            NDCG(4, 2),
            # only the first position counts: orders of the others tie
            NDCG(3, 1, gain="linear", discount="reciprocal", n_grades=3),
            NDCG(3, discount="linear", empty=1.0),
        ),
        NDCG(60, 10, n_grades=5),
    ),
    "eru": LossEntry(
        "eru:10 or eru:10:5 or eru:10:5:3",
        (
            ExpectedRankUtility(1),
            ExpectedRankUtility(4),
            ExpectedRankUtility(3, 1.5, n_grades=4, neutral=1.5, empty=0.5),
        ),
        ExpectedRankUtility(60),
    ),
    "pairwise": LossEntry(
        "pairwise:10 or pairwise:10:3",
        (
            PairwiseDisagreement(1),
            # two grades are scored by items, three by pairs
            PairwiseDisagreement(2, 3),
            PairwiseDisagreement(4),
            PairwiseDisagreement(3, 3),
            PairwiseDisagreement(4, 3, empty=0.5),
            PairwiseDisagreement(1, 3, empty=1.0),
        ),
        PairwiseDisagreement(60),
    ),
    "map": LossEntry(
        "map:5",
        (
            MeanAveragePrecision(1),
            MeanAveragePrecision(2),
            MeanAveragePrecision(3, empty=1.0),
            MeanAveragePrecision(4),
        ),
        MeanAveragePrecision(48),
    ),
    "kendall": LossEntry(
        "kendall:6",
        (
            Kendall(1),
            Kendall(2),
            Kendall(4),
            # true labels with ties are ranks, another label set than that of the predictions
            Kendall(3, ties="average"),
            Kendall(3, ties="exclude"),
            Kendall(1, ties="exclude"),
        ),
        Kendall(60),
    ),
    "footrule": LossEntry(
        "footrule:6",
        (SpearmanFootrule(1), SpearmanFootrule(2), SpearmanFootrule(3), SpearmanFootrule(4)),
        SpearmanFootrule(48),
    ),
    "spearman-rho": LossEntry(
        "spearman-rho:6",
        (SpearmanRho(1), SpearmanRho(2), SpearmanRho(4)),
        SpearmanRho(60),
    ),
    "matching": LossEntry(
        "matching:5", (Matching(1), Matching(2), Matching(3), Matching(4)), Matching(48)
    ),
    "part-errors": LossEntry(
        "part-errors:trees:12 or part-errors:segments:20x5:8",
        (
            PartErrors(DependencyTrees(1)),
            PartErrors(DependencyTrees(4)),
            PartErrors(DependencyTrees(2, 2)),
            PartErrors(DependencyTrees(3, projective=False)),
            PartErrors(Segments(5)),
            PartErrors(Segments(3, 2, 2)),
            PartErrors(Spans(4)),
            PartErrors(Spans(2, 2)),
            PartErrors(Alignments(2, 2)),
            PartErrors(Alignments(3, 2)),
        ),
    ),
    "partial-labels": LossEntry(
        "partial-labels:infimum:zero-one:5 or partial-labels:average:hamming:3",
        (
            PartialLabels(ZeroOne(1)),
            PartialLabels(ZeroOne(4)),
            PartialLabels(ZeroOne(4), "average"),
            PartialLabels(Hamming(2), "supremum"),
            PartialLabels(Hamming(3)),
            PartialLabels(Hamming(3), "average"),
            PartialLabels(NDCG(3), "average"),
            # one prediction: the span is the constant whatever the candidates
            PartialLabels(CostMatrix([[0, 1, 2]], rows="pred"), "supremum"),
            PartialLabels(FBeta(2)),
        ),
        PartialLabels(ZeroOne(2**300)),
    ),
    "tree": LossEntry(
        "tree:FILE.csv or tree:FILE.csv:nodes",
        (
            Tree((-1, 0, 0, 1, 1, 2)),
            Tree((-1, 0, 0, 1, 1), predict="nodes"),
            Tree(_FOREST, kind="level"),
            Tree(_FOREST, (1.0, 0.5, 0.25), kind="level", predict="nodes"),
            Tree((-1, 0, 0, 1, 1), (0, 1, 2, 0, 0)),
            Tree((-1,)),
        ),
    ),
}


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
    check_spec(spec, "loss")
    head, _, tail = spec.partition(":")
    name = loss_name(head)
    if name in ORACLES:  # path:5x5 is short for decision:path:5x5
        name, tail = "decision", f"{name}:{tail}" if tail else name
    if name in METRICS:
        raise LossSpecError(
            f"{name} is a metric of the whole data set, not a loss of single examples: use "
            f"TaskLossClassifier(loss={spec!r}) or `consistruct fit`{_OF_ROWS.get(name, '')}; to "
            "see how hard it is, use `consistruct analyze` with a confusion matrix (--confusion)"
        )
    if name not in LOSSES:
        raise LossSpecError(unknown_loss(head, spec, [*LOSSES, *ORACLES, *METRICS]))
    if rows is not None and not names_cost_file(spec):
        raise LossSpecError(f"rows={rows!r} states how to read a cost file; {spec!r} names none")
    if name == "cost":
        if not tail:
            raise LossSpecError("the spec of cost names a CSV file; write cost:FILE.csv")
        return read_cost_csv(tail, rows=rows)
    # counted before anything is built: each level would take a frame of the stack
    inner = tail.lower().replace("_", "-").split(":").count("partial-labels")
    if inner >= SPECS.nesting:
        raise LossSpecError(
            f"candidate sets of candidate sets may be nested {SPECS.nesting} times in a spec, "
            f"got {inner + 1} in {spec[:40]!r}…"
        )
    # a file name may hold colons; everything else is split at them
    arguments = (tail,) if name == "tree" else tuple(tail.split(":")) if tail else ()
    further: Any = {} if rows is None else {"rows": rows}  # of the base loss of partial-labels
    with naming(repr(spec)):
        return LOSSES[name].cls.from_spec(arguments, sizes or Sizes(), **further)


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
    """Return the name before the first colon of a spec, as the registry writes it.

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
    """Return what to say where there is no such loss: the nearest names, then all of them.

    >>> print(unknown_loss("zero-on", "zero-on:3", ["zero-one"]))
    unknown loss 'zero-on' in the spec 'zero-on:3'; did you mean zero-one? The losses are zero-one
    """
    names = sorted(known)
    near = get_close_matches(loss_name(head), [*names, *ALIASES], n=2, cutoff=0.7)
    meant = f"did you mean {' or '.join(near)}? The" if near else "the"
    return f"unknown loss {head!r} in the spec {spec!r}; {meant} losses are {', '.join(names)}"
