"""Sequences: linear chains over token features, trained by averaged stochastic gradient."""

from consistruct.learning.encoding.tags import TagSet, scheme_transitions
from consistruct.learning.encoding.tokens import FeatureHash, FeatureIndex, PackedTokens
from consistruct.learning.models.chain.estimator import SequencePredictor
from consistruct.learning.models.chain.token_maps import TokenMap
from consistruct.learning.sequence_metrics import (
    SEQUENCE_SCORERS,
    chunk_f1,
    chunk_score,
    chunks,
    sequence_error,
    token_error,
)

__all__ = [
    "SEQUENCE_SCORERS",
    "FeatureHash",
    "FeatureIndex",
    "PackedTokens",
    "SequencePredictor",
    "TagSet",
    "TokenMap",
    "chunk_f1",
    "chunk_score",
    "chunks",
    "scheme_transitions",
    "sequence_error",
    "token_error",
]
