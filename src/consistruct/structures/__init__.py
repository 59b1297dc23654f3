"""Structures: sets of labels together with their scores, Gram operators and decoders.

A structure gives every prediction ŷ a row F_ŷ and so scores ⟨F_ŷ, θ⟩. Losses are expressed in one
(`loss.score_space`), surrogates train θ, and decisions are `space.decode(theta)`.

================ ====================================================== ==========================
file             structures, their labels                               losses that they express
================ ====================================================== ==========================
base             `Structure`, `FiniteLabels`: what one must write
operators        Gram operators and linear maps
bases            `Centered`, `Orthonormalized`: any structure otherwise
classes          `Full`, `Blocks` on `Classes`                          0-1, block
dense            `Dense` on `Classes` or any small label set            any cost matrix
parts            `Separable` on `Product`                               Hamming
chains           `Chain` on `Product`, packed batches in `ragged`       Hamming, with transitions
sets             `SetSizes` on `Subsets`                                F-beta
orders           `Positions` on `Permutations`                          NDCG, precision, Spearman
pair_orders      `PairOrder`, `PairDiscount` on `Permutations`          Kendall, average precision
graphs           `Graph` on `Product`: grids, any pairwise model        Hamming, with neighbors
matchings        `Matchings` on `Permutations`                          matching, footrule
derivations      `Derivations` on `DerivedLabels`: any recursion        wrong parts
segments         `Segments`: types, lengths, transitions                wrong segments
dependency_trees `DependencyTrees`: arcs that may cross or not          wrong heads
spans            `Spans`: labeled binary trees                          wrong spans
alignments       `Alignments`: monotone, with gaps                      wrong links
decisions        `Decisions` on what an `Oracle` finds                  regret of decisions
paths, trees,    the ready-made oracles
selections
registry         `STRUCTURES`, `ORACLES`, `parse_scores`
================ ====================================================== ==========================

Examples
--------
>>> from consistruct.structures import Chain
>>> space = Chain(3, 2)  # three parts with two states each, neighbors scored together
>>> space.predictions.size, space.width, space.rank
(8, 14, 6)
>>> space.decode([[1.0, 0, 0, 0, 0, 2.0, 0, 0, 5.0, 0, 0, 0, 0, 0]])  # 0 → 1 is worth 0, 1 → 0 five
array([[1, 0, 1]])
"""

from consistruct.structures.alignments import Alignments
from consistruct.structures.base import FiniteLabels, Structure
from consistruct.structures.bases import Centered, Orthonormalized
from consistruct.structures.chains import Chain
from consistruct.structures.classes import Blocks, Classes, Full
from consistruct.structures.decisions import Decisions, Oracle
from consistruct.structures.dense import Dense
from consistruct.structures.dependency_trees import DependencyTrees
from consistruct.structures.derivations import Derivations, DerivedLabels
from consistruct.structures.graphs import Graph, decode_graphs
from consistruct.structures.matchings import Matchings
from consistruct.structures.orders import Permutations, Positions
from consistruct.structures.pair_orders import PairDiscount, PairOrder
from consistruct.structures.parts import Product, Separable
from consistruct.structures.paths import GraphPath, GridPath, Path
from consistruct.structures.ragged import Ragged
from consistruct.structures.segments import Segments
from consistruct.structures.selections import Intervals, Knapsack, MixedInteger, TopK
from consistruct.structures.sets import SetSizes, Subsets
from consistruct.structures.spans import Spans
from consistruct.structures.trees import Arborescence, Assignments, SpanningTree, Tour

__all__ = [
    "Alignments",
    "Arborescence",
    "Assignments",
    "Blocks",
    "Centered",
    "Chain",
    "Classes",
    "Decisions",
    "Dense",
    "DependencyTrees",
    "Derivations",
    "DerivedLabels",
    "FiniteLabels",
    "Full",
    "Graph",
    "GraphPath",
    "GridPath",
    "Intervals",
    "Knapsack",
    "Matchings",
    "MixedInteger",
    "Oracle",
    "Orthonormalized",
    "PairDiscount",
    "PairOrder",
    "Path",
    "Permutations",
    "Positions",
    "Product",
    "Ragged",
    "Segments",
    "Separable",
    "SetSizes",
    "SpanningTree",
    "Spans",
    "Structure",
    "Subsets",
    "TopK",
    "Tour",
    "decode_graphs",
]


def __dir__() -> list[str]:
    return sorted(__all__)
