"""Decoders: argmax oracles over predictions. They know scores and labels, never losses."""

from consistruct.decoding.assignment import Assignment
from consistruct.decoding.chain_inference import (
    ChainMarginals,
    MarginalArgmax,
    augmented_scores,
    boundary_scores,
    chain_marginals,
)
from consistruct.decoding.dense import BlockArgmax, DenseArgmax, LabelArgmax
from consistruct.decoding.oracles.feasible import BestDecision
from consistruct.decoding.orders import LinearOrdering, PairDiscountOrder
from consistruct.decoding.parts import PerPart
from consistruct.decoding.sets import SetBySize
from consistruct.decoding.sort import Sort
from consistruct.decoding.viterbi import ChainScores, Viterbi

__all__ = [
    "Assignment",
    "BestDecision",
    "BlockArgmax",
    "ChainMarginals",
    "ChainScores",
    "DenseArgmax",
    "LabelArgmax",
    "LinearOrdering",
    "MarginalArgmax",
    "PairDiscountOrder",
    "PerPart",
    "SetBySize",
    "Sort",
    "Viterbi",
    "augmented_scores",
    "boundary_scores",
    "chain_marginals",
]
