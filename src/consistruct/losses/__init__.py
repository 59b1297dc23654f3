"""The losses, each as offset + ⟨embed(pred), target(true)⟩ and by its direct formula."""

from consistruct.losses.abstain import Abstain
from consistruct.losses.algebra import mixture
from consistruct.losses.base import Loss
from consistruct.losses.classes import Block, Mixed, ZeroOne
from consistruct.losses.costs.cost_vectors import CostVectors
from consistruct.losses.costs.files import read_cost_csv, read_tree_csv
from consistruct.losses.costs.label_costs import LabelCosts
from consistruct.losses.decision import Decision
from consistruct.losses.fbeta import FBeta
from consistruct.losses.hamming import Hamming
from consistruct.losses.matrix import CostMatrix, MatrixLoss
from consistruct.losses.metrics.base import Metric
from consistruct.losses.metrics.constraints import (
    Constrained,
    EqualRecall,
    FlaggedAtMost,
    PrecisionAtLeast,
    RecallAtLeast,
)
from consistruct.losses.metrics.registry import parse_metric
from consistruct.losses.ordinal import Ordinal
from consistruct.losses.part_errors import PartErrors
from consistruct.losses.partial_labels import PartialLabels
from consistruct.losses.rankings.average_precision import MeanAveragePrecision
from consistruct.losses.rankings.gains import NDCG, ExpectedRankUtility, GainLoss, PrecisionAt
from consistruct.losses.rankings.pairwise import Kendall, PairwiseDisagreement
from consistruct.losses.rankings.permutation_distances import (
    Matching,
    SpearmanFootrule,
    SpearmanRho,
)
from consistruct.losses.registry import parse_loss
from consistruct.losses.tree import Tree

__all__ = [
    "NDCG",
    "Abstain",
    "Block",
    "Constrained",
    "CostMatrix",
    "CostVectors",
    "Decision",
    "EqualRecall",
    "ExpectedRankUtility",
    "FBeta",
    "FlaggedAtMost",
    "GainLoss",
    "Hamming",
    "Kendall",
    "LabelCosts",
    "Loss",
    "Matching",
    "MatrixLoss",
    "MeanAveragePrecision",
    "Metric",
    "Mixed",
    "Ordinal",
    "PairwiseDisagreement",
    "PartErrors",
    "PartialLabels",
    "PrecisionAt",
    "PrecisionAtLeast",
    "RecallAtLeast",
    "SpearmanFootrule",
    "SpearmanRho",
    "Tree",
    "ZeroOne",
    "mixture",
    "parse_loss",
    "parse_metric",
    "read_cost_csv",
    "read_tree_csv",
]


def __dir__() -> list[str]:
    return sorted(__all__)
