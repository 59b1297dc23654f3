"""Score spaces: which scores f = Fθ over the predictions a model may use."""

from consistruct.scores.base import EffectiveClasses, Predictable
from consistruct.scores.blocks import Blocks
from consistruct.scores.chain import Chain
from consistruct.scores.decisions import Decisions
from consistruct.scores.dense import Dense
from consistruct.scores.full import Full
from consistruct.scores.matchings import Matchings
from consistruct.scores.pairs import PairDiscount, PairOrder
from consistruct.scores.positions import Positions
from consistruct.scores.separable import Separable
from consistruct.scores.set_sizes import SetSizes
from consistruct.scores.span import LossSpan
from consistruct.scores.wrappers import Centred, Orthonormalised

__all__ = [
    "Blocks",
    "Centred",
    "Chain",
    "Decisions",
    "Dense",
    "EffectiveClasses",
    "Full",
    "LossSpan",
    "Matchings",
    "Orthonormalised",
    "PairDiscount",
    "PairOrder",
    "Positions",
    "Predictable",
    "Separable",
    "SetSizes",
]
