"""Prediction with a fitted chain: tags, marginals, scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from consistruct.decoding import ChainScores, MarginalArgmax, Viterbi, chain_marginals
from consistruct.learning.sequences.chain_model import ChainModel
from consistruct.learning.sequences.tags import TagSet, pack_tags
from consistruct.learning.sequences.token_maps import TokenMap
from consistruct.learning.sequences.tokens import (
    FeatureHash,
    FeatureIndex,
    PackedTokens,
    is_symbolic,
    pack_tokens,
)
from consistruct.learning.sequences.training_set import check_weights
from consistruct.surrogates import chain_surrogate
from consistruct.surrogates.chain import ChainSurrogate

__all__ = ["ChainPredictor"]


class ChainPredictor(BaseEstimator):  # type: ignore[misc]
    """What needs the fitted attributes only; `SequencePredictor` adds how they are learnt."""

    surrogate: str
    decoding: str
    hash_bits: int | None
    encoder_: FeatureIndex | FeatureHash | None
    tag_set_: TagSet
    token_map_: TokenMap
    model_: ChainModel
    n_features_in_: int

    @property
    def transition_coef_(self) -> NDArray[Any]:
        """Weights of transitions on the features, (n_outputs, s, s); (0, s, s) if shared."""
        check_is_fitted(self, "model_")
        s = self.model_.n_states
        return self.model_.edge_weights.reshape(-1, s, s)

    def predict(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Tags of each sequence, a list of arrays; one flat array if `groups` is given."""
        states, tokens = [], self._encode(X, groups, fit=False)
        decoder = (
            Viterbi(None, len(self.tag_set_))
            if self.decoding == "viterbi"
            else MarginalArgmax(len(self.tag_set_))
        )
        self._check_decoding(chain_surrogate(self.surrogate))
        for scores in self._score_chunks(tokens):
            states.append(decoder.decode_packed(scores).values)
        tags = self.tag_set_.decode(np.concatenate(states))
        return tags if groups is not None else np.split(tags, tokens.offsets[1:-1])

    def predict_marginals(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """P(tag of token t) for each sequence, a list of (T_i, s) arrays; flat with `groups`.

        Columns are in the order of ``classes_``. Needs the log loss: scores of the other surrogates
        are not logarithms of probabilities.
        """
        if not chain_surrogate(self.surrogate).probabilistic:
            raise ValueError(
                f"predict_marginals needs surrogate='log', got {self.surrogate!r}, whose scores "
                f"are not probabilities"
            )
        tokens = self._encode(X, groups, fit=False)
        law = np.concatenate(
            [chain_marginals(scores).unary for scores in self._score_chunks(tokens)]
        )
        return law if groups is not None else np.split(law, tokens.offsets[1:-1])

    def score_parameters(self, X: Any, groups: ArrayLike | None = None) -> ChainScores:
        """θ: unary scores (N, s), boundary scores included, transitions and offsets.

        Transitions are (s, s) where they are shared, else (N, s, s).
        """
        tokens = self._encode(X, groups, fit=False)
        phi = self.token_map_.transform(tokens.features, tokens.offsets)
        return self.model_.scores(phi, tokens.offsets)

    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Minus the mean over sequences of the Hamming loss; tags never seen count as wrong."""
        tokens = self._encode(X, groups, fit=False)
        true = pack_tags(y, tokens.offsets)
        pred = np.concatenate(self.predict(tokens)).tolist()
        wrong = np.fromiter((a != b for a, b in zip(pred, true, strict=True)), dtype=np.float64)
        lengths = np.diff(tokens.offsets)
        loss = np.add.reduceat(wrong, tokens.offsets[:-1]) / lengths
        return -float(np.average(loss, weights=check_weights(sample_weight, len(tokens))))

    def _check_decoding(self, surrogate: ChainSurrogate) -> None:
        if self.decoding not in ("viterbi", "marginals"):
            raise ValueError(f"decoding must be 'viterbi' or 'marginals', got {self.decoding!r}")
        if self.decoding == "marginals" and not surrogate.probabilistic:
            raise ValueError(
                f"decoding='marginals' needs surrogate='log', got {self.surrogate!r}, whose scores "
                f"are not probabilities; use decoding='viterbi'"
            )

    def _encode(self, X: Any, groups: ArrayLike | None, *, fit: bool) -> PackedTokens:
        if not fit:
            check_is_fitted(self, "tag_set_")
        if is_symbolic(X):
            if groups is not None:
                raise ValueError("groups= goes with an array or CSR, not with lists of features")
            if fit:
                self.encoder_ = (
                    FeatureIndex() if self.hash_bits is None else FeatureHash(self.hash_bits)
                )
                tokens = self.encoder_.fit_transform(X)
            elif self.encoder_ is None:
                raise ValueError("X holds feature names, but the model was fitted on numbers")
            else:
                tokens = self.encoder_.transform(X)
        else:
            tokens = pack_tokens(X, groups)
            if fit:
                self.encoder_ = None
        if len(tokens) == 0:
            raise ValueError("X must hold at least one sequence, got none")
        if fit:
            self.n_features_in_ = tokens.n_features
        elif tokens.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {tokens.n_features} features per token, "
                f"but the model was fitted with {self.n_features_in_}"
            )
        return tokens

    def _score_chunks(self, tokens: PackedTokens) -> Iterator[ChainScores]:
        for first, last in tokens.runs(self.model_.tokens_at_once):
            begin, stop = tokens.offsets[first], tokens.offsets[last]
            offsets = tokens.offsets[first : last + 1] - begin
            phi = self.token_map_.transform(tokens.features[begin:stop], offsets)
            yield self.model_.scores(phi, offsets)
