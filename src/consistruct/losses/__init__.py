"""The loss zoo: each loss as offset + ⟨embed(pred), target(true)⟩ and by its direct formula."""

from consistruct.losses.abstain import Abstain
from consistruct.losses.algebra import Combination, mixture
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.block import Block, Mixed
from consistruct.losses.costs.cost_vectors import CostVectors
from consistruct.losses.costs.files import parse_cost_csv, read_cost_csv, read_tree_csv
from consistruct.losses.costs.label_costs import LabelCosts
from consistruct.losses.decision import Decision
from consistruct.losses.fbeta import FBeta
from consistruct.losses.hamming import Hamming
from consistruct.losses.matrix import CostMatrix, MatrixLoss
from consistruct.losses.metrics import METRICS, Metric, parse_metric
from consistruct.losses.ordinal import Ordinal
from consistruct.losses.partial_labels import PartialLabels
from consistruct.losses.rankings.average_precision import MeanAveragePrecision
from consistruct.losses.rankings.gains import NDCG, ExpectedRankUtility, GainLoss, PrecisionAt
from consistruct.losses.rankings.pairwise import Kendall, PairwiseDisagreement
from consistruct.losses.rankings.permutation_distances import (
    Matching,
    SpearmanFootrule,
    SpearmanRho,
)
from consistruct.losses.registry import LOSSES, LossEntry, parse_loss
from consistruct.losses.tree import Tree
from consistruct.losses.zero_one import ZeroOne

__all__ = [
    "LOSSES",
    "METRICS",
    "NDCG",
    "Abstain",
    "Block",
    "Combination",
    "CostMatrix",
    "CostVectors",
    "Decision",
    "ExpectedRankUtility",
    "FBeta",
    "GainLoss",
    "Hamming",
    "Kendall",
    "LabelCosts",
    "Loss",
    "LossEntry",
    "Matching",
    "MatrixLoss",
    "MeanAveragePrecision",
    "Metric",
    "Mixed",
    "Ordinal",
    "PairwiseDisagreement",
    "PartialLabels",
    "PrecisionAt",
    "Sizes",
    "SpearmanFootrule",
    "SpearmanRho",
    "Tree",
    "ZeroOne",
    "mixture",
    "parse_cost_csv",
    "parse_loss",
    "parse_metric",
    "read_cost_csv",
    "read_tree_csv",
]
