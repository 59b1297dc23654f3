"""Sequences: linear chains over token features, trained by averaged stochastic gradient."""

from consistruct.learning.sequences.tags import TagSet, scheme_transitions
from consistruct.learning.sequences.token_maps import TokenMap
from consistruct.learning.sequences.tokens import FeatureHash, FeatureIndex, PackedTokens

__all__ = [
    "FeatureHash",
    "FeatureIndex",
    "PackedTokens",
    "TagSet",
    "TokenMap",
    "scheme_transitions",
]
