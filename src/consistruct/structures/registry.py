"""List the structures and oracles: examples for the checks, and how strings name them.

One line here is all that connects a structure with the rest: the conformance tests take its
examples and huge members, and command lines, the explorer and `parse_scores` find it by its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from consistruct._budgets import SPECS
from consistruct.exceptions import LossSpecError
from consistruct.protocols import TaskLoss
from consistruct.structures.alignments import Alignments
from consistruct.structures.base import Structure
from consistruct.structures.chains import Chain
from consistruct.structures.classes import Blocks, Classes, Full
from consistruct.structures.decisions import Decisions, Oracle
from consistruct.structures.dense import Dense
from consistruct.structures.dependency_trees import DependencyTrees
from consistruct.structures.graphs import Graph
from consistruct.structures.matchings import Matchings
from consistruct.structures.orders import Positions
from consistruct.structures.pair_orders import PairDiscount, PairOrder
from consistruct.structures.parts import Product, Separable
from consistruct.structures.paths import GraphPath, GridPath, Path
from consistruct.structures.segments import Segments
from consistruct.structures.selections import Intervals, Knapsack, MixedInteger, TopK
from consistruct.structures.sets import SetSizes
from consistruct.structures.spans import Spans
from consistruct.structures.trees import Arborescence, Assignments, SpanningTree, Tour

__all__ = ["ORACLES", "STRUCTURES", "StructureEntry", "parse_scores"]


@dataclass(frozen=True)
class StructureEntry:
    """Register a structure.

    Attributes
    ----------
    cls : type
        The class.
    examples : tuple of Structure
        Members with few labels, the awkward ones included. `consistruct.testing.check_structure`
        compares each with dense linear algebra, also centered and orthonormalized.
    huge : tuple of Structure
        Members with more labels than anybody can list, which need their closed forms.
    """

    cls: type[Structure]
    examples: tuple[Structure, ...]
    huge: tuple[Structure, ...] = ()


# One line for each structure, by the name that strings use. Decisions have no examples of labels
# that can be listed: tests/losses/test_decision.py compares them with brute force.
STRUCTURES: dict[str, StructureEntry] = {
    "full": StructureEntry(
        Full, (Full(1), Full(5), Full(Product(3)), Full(Classes(3, reference=(1, 2, 5))))
    ),
    "blocks": StructureEntry(
        Blocks,
        (
            Blocks((4,)),
            Blocks((1, 4, 2)),
            Blocks(assignment=(2, 0, 1, 0, 2)),
            Blocks((1, 3), reference=(4, 1, 2, 1)),
        ),
        (Blocks((2**201, 2**202)),),
    ),
    "matrix": StructureEntry(
        Dense,
        (
            Dense([[1, 0], [0, 1], [0.5, 0.5], [0.25, 0.25]]),  # rows that are no vertices
            Dense([[1, 2, 3]]),
            Dense([[1, 1], [1, 1], [1, 1]]),  # merged labels
            Dense([[0, 0], [0, 0]]),
            Dense([[1, 0], [1, 1], [1, 4]], reference=(1, 2, 3)),
        ),
    ),
    "separable": StructureEntry(
        Separable,
        (Separable(1), Separable(4), Separable(2, 4)),
        (Separable(1000), Separable(201, 5)),
    ),
    "chain": StructureEntry(
        Chain,
        (Chain(1, 3), Chain(2, 2), Chain(4, 2), Chain(3, 3)),
        (Chain(210, 2), Chain(100, 7)),
    ),
    "graph": StructureEntry(
        Graph,
        (
            Graph([[0, 1]], 3),
            Graph([[2, 0], [1, 0]], 2, n_nodes=4),  # a tree whose edges point up, a lone node
            Graph([[0, 1], [1, 2], [2, 0]], 2),
            Graph.grid(2, 3, 2),
        ),
        (Graph.grid(15, 14, 2), Graph([[t, t + 1] for t in range(99)], 5)),
    ),
    "positions": StructureEntry(
        Positions,
        (
            Positions([1]),
            Positions([3, 2, 1]),
            Positions([1, 1, 0, 0]),  # merged orders
            Positions([1, 0.6, 0.5, 0.4]),
            Positions([0.1, 0.1, 0.1]),  # every order is alike
        ),
        (Positions(range(70, 0, -1)), Positions([1] * 5 + [0] * 50)),
    ),
    "pair-order": StructureEntry(
        PairOrder, (PairOrder(1), PairOrder(2), PairOrder(4)), (PairOrder(60),)
    ),
    "pair-discount": StructureEntry(
        PairDiscount, (PairDiscount(1), PairDiscount(2), PairDiscount(4)), (PairDiscount(48),)
    ),
    "matchings": StructureEntry(
        Matchings, (Matchings(1), Matchings(2), Matchings(4)), (Matchings(50),)
    ),
    "set-sizes": StructureEntry(
        SetSizes,
        (
            SetSizes(1),
            SetSizes(3, 2.0),
            SetSizes(4),
            SetSizes(1, sizes=(1,)),
            SetSizes(3, sizes=(3,)),  # sets of one size are alike
            SetSizes(3, sizes=(0, 3)),
            SetSizes(4, sizes=(2, 4)),
            SetSizes(4, 0.5, sizes=(0, 2)),
            SetSizes(5, sizes=(1, 3)),
        ),
        (SetSizes(250, 2.0, sizes=(1, 4)),),
    ),
    "segments": StructureEntry(
        Segments,
        (
            Segments(1),
            Segments(5),
            Segments(4, 2, max_length=2),
            Segments(3, 2, transitions=True),
            Segments(1, 3, transitions=True),
            Segments(4, 1, max_length=1),  # one label
        ),
    ),
    "trees": StructureEntry(
        DependencyTrees,
        (
            DependencyTrees(1),
            DependencyTrees(4),
            DependencyTrees(3, 2),
            DependencyTrees(3, single_root=False),
            DependencyTrees(2, 2, single_root=False),
            DependencyTrees(1, projective=False),
            DependencyTrees(4, projective=False),
            DependencyTrees(2, 3, projective=False),
            DependencyTrees(3, single_root=False, projective=False),
        ),
    ),
    "spans": StructureEntry(Spans, (Spans(1), Spans(1, 3), Spans(5), Spans(3, 2))),
    "alignments": StructureEntry(
        Alignments, (Alignments(1, 1), Alignments(1, 3), Alignments(3, 2), Alignments(2, 3))
    ),
    "decisions": StructureEntry(Decisions, ()),
}

# Every ready-made oracle, by the name that specs and files use; `losses.Decision` reads it.
ORACLES: dict[str, type[Oracle]] = {
    cls.name: cls
    for cls in (
        GridPath,
        Path,
        GraphPath,
        Assignments,
        SpanningTree,
        Arborescence,
        Knapsack,
        TopK,
        Intervals,
        MixedInteger,
        Tour,
    )
}

KNOWN = (
    "own, full, blocks:3,5,2 or blocks:4x25, separable, chain, graph:4x5, sortable, "
    "matrix:FILE.csv, segments:20x5:8, trees:12, spans:20x5, alignments:12x10"
)


def parse_scores(spec: str, loss: TaskLoss) -> Structure:
    """Return the structure that a string names, over the predictions of a loss.

    ``own`` is the loss's own structure and ``sortable`` an easier one that some losses offer; the
    other names are those of `STRUCTURES`, with an argument behind a colon where one is needed.

    Parameters
    ----------
    spec : str
        Such as ``own``, ``full``, ``chain``, ``blocks:3,5,2`` or ``matrix:F.csv``.
    loss : TaskLoss
        Whose predictions are scored.

    Raises
    ------
    LossSpecError
        If the name is unknown, or if the loss has no predictions of this kind.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> from consistruct.structures.registry import parse_scores
    >>> parse_scores("chain", Hamming(5, 3))
    Chain(5, 3)
    """
    # text from a command line or a web form: limited before anything is made of it
    if len(spec) > SPECS.characters:
        raise LossSpecError(
            f"a spec of scores may have at most {SPECS.characters} characters, got {len(spec)}"
        )
    name, _, argument = spec.partition(":")
    name = name.strip().lower()
    own = loss.score_space
    assert isinstance(own, Structure)
    if name == "own" and not argument:
        return own
    # an oracle cannot list its decisions, so no other structure can be built over them
    if isinstance(own, Decisions):
        if name == "uniform" and not argument:
            return Decisions(own.oracle, "uniform")
        raise LossSpecError(
            f"decisions have scores own (any oracle) or uniform (paths, knapsacks), not {spec!r}"
        )
    if name == "sortable" and not argument:
        offered = getattr(loss, "sortable_scores", None)
        if offered is None:
            raise LossSpecError(
                "sortable scores are an alternative that only map offers; use own, which is "
                "sortable where that is consistent"
            )
        space = offered()
        assert isinstance(space, Structure)
        return space
    space = STRUCTURES[name].cls.from_spec(argument, loss) if name in STRUCTURES else None
    if space is None:
        raise LossSpecError(f"unknown scores {spec!r}; the known ones are {KNOWN}")
    return space
