"""What a fitted chain returns: probabilities of tags, decisions, scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from consistruct.decisions.statistics import TokenStates
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.tokens import (
    FeatureHash,
    FeatureIndex,
    NamedTokens,
    PackedTokens,
)
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.effects import token_effects
from consistruct.learning.models.chain.token_maps import TokenMap
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged
from consistruct.structures.chains import ChainScores, chain_marginals, viterbi
from consistruct.surrogates.registry import chain_surrogate

__all__ = ["ChainPredictor"]


def _has_marginals(model: Any) -> bool:
    """Whether scores are logarithms of probabilities."""
    return chain_surrogate(model.surrogate).probabilistic


class ChainPredictor(TargetModel):
    """What needs the fitted attributes only; `Chain` adds how they are learned."""

    kinds: ClassVar[tuple[str, ...]] = ("sequences",)

    surrogate: str
    decoding: str
    hash_bits: int | None
    encoder_: FeatureIndex | FeatureHash | None
    token_map_: TokenMap
    states_: IntArray
    statistic_: TokenStates
    weights_: ChainWeights
    mask_: ChainWeights
    n_features_in_: int

    @property
    def estimates(self) -> bool:  # type: ignore[override]
        """Probabilities under the log loss, regressions on the loss under the quadratic one."""
        return chain_surrogate(self.surrogate).name in ("log", "quadratic")

    @property
    def decides(self) -> bool:  # type: ignore[override]
        """Whether predictions are those of Viterbi rather than decoded from `expected`."""
        return self.decoding == "argmax"

    def expected(self, X: PackedTokens | NamedTokens) -> Ragged:
        """E[one-hot tag of each token | x], packed (N, width): marginals under the log loss."""
        if not self.estimates:
            raise CapabilityError(
                self,
                "expected",
                "probabilities of tags",
                f"surrogate={self.surrogate!r} only ranks sequences; use 'log' or 'quadratic'",
            )
        tokens = self._encode(X, fit=False)
        found = [self._estimates(scores) for scores in self._score_chunks(tokens, self.weights_)]
        return Ragged(np.concatenate(found), tokens.offsets)

    def _estimates(self, scores: ChainScores) -> FloatArray:
        """E[one-hot tag] of tokens with these scores, (N, width)."""
        estimates = np.zeros((len(scores.unary), self.statistic_.width))
        if self.surrogate == "log":
            estimates[:, self.states_] = chain_marginals(scores).unary
        else:
            estimates[:, self.states_] = token_effects(scores) + 1.0 / len(self.states_)
        return estimates

    def _decoded(self, scores: ChainScores) -> IntArray:
        """Codes of the tags of largest score."""
        return self.states_[viterbi(scores).values]

    @available_if(_has_marginals)  # type: ignore[untyped-decorator]
    def marginals(self, X: PackedTokens | NamedTokens) -> Ragged:
        """P(tag of each token), packed (N, width); for the log loss."""
        return self.expected(X)

    def decisions(self, X: PackedTokens | NamedTokens) -> Ragged:
        """Codes of the tags: Viterbi, or the most probable tag of each token ("bayes")."""
        if not self.decides:
            codes: Ragged = self.statistic_.decode(self.expected(X))
            return codes
        tokens = self._encode(X, fit=False)
        found = [self._decoded(scores) for scores in self._score_chunks(tokens, self._allowed())]
        return Ragged(np.concatenate(found), tokens.offsets)

    def scores(self, X: PackedTokens | NamedTokens) -> ChainScores:
        """θ: unary scores (N, s), boundary scores included, transitions and offsets.

        Transitions are (s, s) where they are shared, else (N, s, s).
        """
        tokens = self._encode(X, fit=False)
        phi = self._features(tokens.features, tokens.offsets)
        return self._allowed().scores(phi, tokens.offsets)

    def _allowed(self) -> ChainWeights:
        """The weights with −inf for what is forbidden (the quadratic surrogate learns without)."""
        check_is_fitted(self, "weights_")
        return self.weights_.forbid(*self._forbidden())

    def _forbidden(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """−inf for transitions, first and last tags that never happen, else 0."""
        return self.mask_.edges, self.mask_.start, self.mask_.end

    def _score_chunks(self, tokens: PackedTokens, weights: ChainWeights) -> Iterator[ChainScores]:
        for first, last in tokens.runs(weights.tokens_at_once):
            begin, stop = tokens.offsets[first], tokens.offsets[last]
            offsets = tokens.offsets[first : last + 1] - begin
            yield weights.scores(self._features(tokens.features[begin:stop], offsets), offsets)

    def _features(self, features: Any, offsets: IntArray) -> Any:
        """φ of tokens, (N, d) for d rows of weights."""
        given, known = self.token_map_.n_outputs, len(self.weights_.weights)
        if given != known:  # a window of ten million tokens would be laid out before it is noticed
            raise ValueError(
                f"the features of a token are {given} numbers, but there are weights for {known}; "
                "the model was changed after its fit: fit it again"
            )
        return self.token_map_.transform(features, offsets)

    # --- what was learned ---

    @property
    def coef_(self) -> NDArray[Any]:
        return self._allowed().weights

    @property
    def intercept_(self) -> FloatArray:
        return self._allowed().bias

    @property
    def transitions_(self) -> FloatArray:
        return self._allowed().edges

    @property
    def start_(self) -> FloatArray:
        return self._allowed().start

    @property
    def end_(self) -> FloatArray:
        return self._allowed().end

    @property
    def transition_coef_(self) -> NDArray[Any]:
        """Weights of transitions on the features, (n_outputs, s, s); (0, s, s) if shared."""
        weights = self._allowed()
        return weights.edge_weights.reshape(-1, weights.n_states, weights.n_states)

    def _encode(self, X: PackedTokens | NamedTokens, *, fit: bool) -> PackedTokens:
        """Tokens as numbers, with the columns of the first fit."""
        if not fit:
            check_is_fitted(self, "weights_" if hasattr(self, "weights_") else "encoder_")
        if fit:
            self.encoder_ = None
            if isinstance(X, NamedTokens):
                self.encoder_ = (
                    FeatureIndex() if self.hash_bits is None else FeatureHash(self.hash_bits)
                )
                X = self.encoder_.fit_transform(X.sequences)
            elif self.hash_bits is not None:
                raise ValueError(
                    f"hash_bits={self.hash_bits!r} is for feature names, but X contains numbers; "
                    "omit it"
                )
            self.n_features_in_ = X.n_features
            return X
        if isinstance(X, NamedTokens):
            if self.encoder_ is None:
                raise ValueError("X contains feature names, but the model was fitted on numbers")
            return self.encoder_.transform(X.sequences)
        if X.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {X.n_features} features per token, "
                f"but the model was fitted with {self.n_features_in_}"
            )
        return X
