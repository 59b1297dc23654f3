"""Sequences: linear chains over token features, trained by averaged stochastic gradient."""

from consistruct.learning.sequences.estimator import SequencePredictor
from consistruct.learning.sequences.sequence_metrics import (
    SEQUENCE_SCORERS,
    chunk_f1,
    chunk_score,
    chunks,
    sequence_error,
    token_error,
)
from consistruct.learning.sequences.tags import TagSet, scheme_transitions
from consistruct.learning.sequences.token_maps import TokenMap
from consistruct.learning.sequences.tokens import FeatureHash, FeatureIndex, PackedTokens

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
