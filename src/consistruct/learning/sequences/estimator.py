"""The estimator for sequences: features in, tag sequences out."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Hashable, Iterable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from consistruct._validation import check_count, check_number
from consistruct.decoding import Viterbi
from consistruct.learning.sequences.chain_model import ChainModel
from consistruct.learning.sequences.checkpoints import load_checkpoint, save_checkpoint
from consistruct.learning.sequences.constraints import (
    refuse_broken_constraints,
    refuse_too_many_weights,
    transition_mask,
)
from consistruct.learning.sequences.lbfgs import minimise_lbfgs
from consistruct.learning.sequences.prediction import ChainPredictor
from consistruct.learning.sequences.sgd import AveragedSGD, TrainingState
from consistruct.learning.sequences.tags import TagSet, pack_tags
from consistruct.learning.sequences.token_maps import TokenMap
from consistruct.learning.sequences.tokens import PackedTokens
from consistruct.learning.sequences.training_set import TrainingSet, check_weights, hold_out
from consistruct.learning.weights import generator
from consistruct.surrogates import chain_surrogate
from consistruct.surrogates.chain import ChainSurrogate

__all__ = ["SequencePredictor"]

logger = logging.getLogger(__name__)


class SequencePredictor(ChainPredictor):
    """Tags for sequences, by a linear chain trained for the Hamming loss.

    The score of tags y for x is Σ_t ⟨w_{y_t}, φ(x_t)⟩ + Σ_t transition(y_t, y_{t+1}) plus start
    and end scores; weights are shared along the sequence, and transitions may look at the features
    too. Time per epoch is linear in tokens
    and non-zero features and quadratic in tags.

    Parameters
    ----------
    surrogate : {"log", "hinge", "softmax_margin", "quadratic"}
        "log" is a conditional random field: probabilities, the usual choice. "softmax_margin" and
        "hinge" (a structured support vector machine) put the loss into training and are often a
        little better in error, without probabilities. "quadratic" regresses on the loss.
    decoding : {"viterbi", "marginals"}
        "viterbi" gives the sequence of largest score: with "log" the most probable one, consistent
        for the 0-1 loss on sequences; with "quadratic" consistent for the Hamming loss; with the
        margin surrogates it bounds the loss but is not consistent in general. "marginals" (with
        "log" only) gives the most probable tag of each token, consistent for the Hamming loss; the
        sequence as a whole may then hold a forbidden transition.
    window : int
        Features of so many neighbours on each side are added to those of a token.
    random_features : int or None
        Number of random Fourier features per token (dense features): a nonlinear model.
    bandwidth : float or "median"
        Width of the Gaussian kernel that they stand for; "median" takes 0.6 of the median distance.
    hash_bits : int or None
        Feature names are hashed into 2^hash_bits columns; None indexes them exactly.
    boundaries : bool
        Learn scores of the first and the last tag.
    transitions : {"shared", "features"}
        "shared": one matrix for all edges. "features": the edge into token t adds ⟨v_{ab}, φ(x_t)⟩,
        so each edge has a matrix of its own, at n_outputs · s² weights: for few features and tags.
    tag_scheme : {None, "bio", "iobes"}
        Forbid transitions that break the scheme.
    forbidden_transitions : iterable of (tag, tag), optional
        Further transitions that never happen.
    solver : {"sgd", "lbfgs"}
        Averaged stochastic gradient, or L-BFGS as a (slow) reference.
    step : float or "auto"
        c of the step c / mean‖φ‖² / √epoch; "auto" is 1 for dense and 4 for sparse features
        ("quadratic": 1). Halved if training explodes, so that nothing has to be tuned.
    transition_step : float
    batch_size : int or "auto"
        Sequences per step; "auto" is 8, and 1 for sparse features with shared transitions.
    max_epochs : int
        Passes over the data (iterations of L-BFGS: 25 times as many).
    alpha : float
        Penalty (alpha/2)‖W‖², W all weights on features, against the sum over sequences.
    early_stopping : bool
        Hold out `validation_fraction` of the sequences; stop when their token error has not
        improved for `n_iter_no_change` epochs and keep the best average.
    checkpoint : path, optional
        File that is written after each epoch and continued from if it exists.
    cache_bytes : int
        Random features of the training data are kept if they fit, else computed in each epoch.
    random_state : int, Generator or None
    verbose : int
        1 logs each epoch at level INFO.

    Attributes
    ----------
    classes_ : array of tags, in the order of the columns of marginals
    coef_, intercept_ : (n_outputs, s) and (s,) arrays
    transitions_ : (s, s) array
    start_, end_ : (s,) arrays
    transition_coef_ : (n_outputs, s, s) array, (0, s, s) where transitions are shared
    n_iter_ : int
    history_ : list of float, mean surrogate per token in each epoch

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.learning.sequences import SequencePredictor
    >>> X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"], ["w=sleeps"]]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> model = SequencePredictor(random_state=0).fit(X, y)
    >>> [tags.tolist() for tags in model.predict([[["w=a"], ["w=cat"], ["w=sleeps"]]])]
    [['DET', 'NOUN', 'VERB']]
    """

    def __init__(
        self,
        surrogate: str = "log",
        decoding: str = "viterbi",
        *,
        window: int = 0,
        random_features: int | None = None,
        bandwidth: float | str = "median",
        hash_bits: int | None = None,
        boundaries: bool = True,
        transitions: str = "shared",
        tag_scheme: str | None = None,
        forbidden_transitions: Iterable[tuple[Any, Any]] | None = None,
        solver: str = "sgd",
        step: float | str = "auto",
        transition_step: float = 0.1,
        batch_size: int | str = "auto",
        max_epochs: int = 8,
        alpha: float = 0.0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        checkpoint: str | PathLike[str] | None = None,
        cache_bytes: int = 2**30,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.surrogate = surrogate
        self.decoding = decoding
        self.window = window
        self.random_features = random_features
        self.bandwidth = bandwidth
        self.hash_bits = hash_bits
        self.boundaries = boundaries
        self.transitions = transitions
        self.tag_scheme = tag_scheme
        self.forbidden_transitions = forbidden_transitions
        self.solver = solver
        self.step = step
        self.transition_step = transition_step
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.alpha = alpha
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.cache_bytes = cache_bytes
        self.random_state = random_state
        self.verbose = verbose

    # --- learning ---

    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from sequences X with tags y.

        X is a list of (T_i, d) arrays, a list of lists of feature dicts or string lists,
        `PackedTokens` (array or CSR with offsets), or an (N, d) array or CSR with `groups`. y is a
        list of tag sequences, or one flat array of tags. `sample_weight` counts sequences.
        """
        surrogate = self._check_parameters()
        rng = generator(self.random_state)
        tokens = self._encode(X, groups, fit=True)
        tags = pack_tags(y, tokens.offsets)
        self._set_tags(tags)
        data = self._training_set(tokens, tags, sample_weight, rng)
        mask = self._mask(surrogate, data)
        if self.solver == "lbfgs":
            model, self.n_iter_, value = minimise_lbfgs(
                surrogate,
                data,
                mask,
                alpha=self.alpha,
                boundaries=self.boundaries,
                per_edge=self.transitions == "features",
                max_iter=25 * self.max_epochs,
            )
            self.history_ = [value / tokens.n_tokens]
            self._finish(model)
            return self
        self._fit_sgd(surrogate, data, mask, rng)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        classes: Iterable[Hashable] | None = None,
    ) -> Self:
        """One epoch over these sequences, from where training stands.

        The first call needs all tags as `classes`, and fixes the features: names that appear later
        are dropped unless ``hash_bits`` is set.
        """
        surrogate = self._check_parameters()
        if self.solver != "sgd":
            raise ValueError(f"partial_fit needs solver='sgd', got {self.solver!r}")
        first = not hasattr(self, "state_")
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs classes=, all tags of the task")
        if first:
            self.rng_ = generator(self.random_state)
        rng: np.random.Generator = self.rng_
        tokens = self._encode(X, groups, fit=first)
        tags = pack_tags(y, tokens.offsets)
        if first and classes is not None:
            self._set_tags(classes)
        data = self._training_set(tokens, tags, sample_weight, rng, fit_map=first)
        mask = self._mask(surrogate, data)
        if first:
            self.state_ = self._initial_state(data, mask)
        self.state_ = self._sgd(surrogate, data).run_epoch(self.state_, data, rng)
        self.history_, self.n_iter_ = self.state_.history, self.state_.epoch
        self._finish(self.state_.average)
        return self

    def _fit_sgd(
        self,
        surrogate: ChainSurrogate,
        data: TrainingSet,
        mask: ChainModel,
        rng: np.random.Generator,
    ) -> None:
        held_out = None
        if self.early_stopping:
            data, held_out = hold_out(data, self.validation_fraction, rng)
        solver = self._sgd(surrogate, data)
        fingerprint = self._fingerprint(data) if self.checkpoint is not None else ""
        state = None
        if self.checkpoint is not None:
            state = load_checkpoint(self.checkpoint, rng, fingerprint)
        if state is None:
            state = self._initial_state(data, mask)
        level = logging.INFO if self.verbose else logging.DEBUG
        while state.epoch < self.max_epochs and state.epochs_since_best < self.n_iter_no_change:
            state = solver.run_epoch(state, data, rng)
            logger.log(level, "epoch %d: surrogate %.5f", state.epoch, state.history[-1])
            if held_out is not None:
                error = self._error(state.average, held_out)
                logger.log(level, "epoch %d: held-out token error %.4f", state.epoch, error)
                state.epochs_since_best += 1
                if error < state.best_error:
                    state.best, state.best_error = state.average, error
                    state.epochs_since_best = 0
            if self.checkpoint is not None:
                save_checkpoint(self.checkpoint, state, rng, fingerprint)
        self.state_, self.rng_ = state, rng
        self.history_, self.n_iter_ = state.history, state.epoch
        self._finish(state.average if state.best is None else state.best)

    # --- the steps in between ---

    def _check_parameters(self) -> ChainSurrogate:
        surrogate = chain_surrogate(self.surrogate)
        self._check_decoding(surrogate)
        if self.solver not in ("sgd", "lbfgs"):
            raise ValueError(f"solver must be 'sgd' or 'lbfgs', got {self.solver!r}")
        if self.transitions not in ("shared", "features"):
            raise ValueError(
                f"transitions must be 'shared' or 'features', got {self.transitions!r}"
            )
        check_count(self.max_epochs, "max_epochs")
        check_number(self.alpha, "alpha", low=0.0)
        check_number(self.transition_step, "transition_step", low=0.0)
        for name, value in (("step", self.step), ("batch_size", self.batch_size)):
            if isinstance(value, str) and value != "auto":
                raise ValueError(f"{name} must be 'auto' or a number, got {value!r}")
        return surrogate

    def _set_tags(self, tags: Iterable[Hashable]) -> None:
        self.tag_set_ = TagSet(tags)
        self.classes_ = self.tag_set_.decode(np.arange(len(self.tag_set_)))

    def _training_set(
        self,
        tokens: PackedTokens,
        tags: Sequence[Hashable],
        sample_weight: ArrayLike | None,
        rng: np.random.Generator,
        *,
        fit_map: bool = True,
    ) -> TrainingSet:
        states = self.tag_set_.encode(tags, tokens.offsets)
        weights = check_weights(sample_weight, len(tokens))
        if fit_map:
            self.token_map_ = TokenMap.fit(
                tokens,
                window=self.window,
                random_features=self.random_features,
                bandwidth=self.bandwidth,
                rng=rng,
            )
        token_map = self.token_map_
        if tokens.is_sparse:
            wide = token_map.transform(tokens.features, tokens.offsets)
            tokens, token_map = PackedTokens(wide, tokens.offsets), TokenMap(wide.shape[1])
        size = 4 * tokens.n_tokens * (token_map.n_random + token_map.n_features)
        if token_map.n_random and size <= self.cache_bytes:
            tokens = PackedTokens(token_map.local(tokens.features), tokens.offsets)
            return TrainingSet(tokens, states, weights, token_map, cached=True)
        return TrainingSet(tokens, states, weights, token_map)

    def _mask(self, surrogate: ChainSurrogate, data: TrainingSet) -> ChainModel:
        """0 where scores are learnt, −inf where they are forbidden (always in `decoding_mask_`)."""
        refuse_too_many_weights(data.n_features, len(self.tag_set_), self.transitions)
        mask = transition_mask(self.tag_set_, self.tag_scheme, self.forbidden_transitions)
        self.decoding_mask_ = mask
        refuse_broken_constraints(mask, data.states, data.tokens.offsets, self.tag_set_)
        if surrogate.name == "quadratic":  # needs finite scores
            return ChainModel.zeros(0, len(self.tag_set_))
        return mask

    def _initial_state(self, data: TrainingSet, mask: ChainModel) -> TrainingState:
        per_edge = self.transitions == "features"
        state = TrainingState.zeros(data.n_features, len(self.tag_set_), per_edge=per_edge)
        state.model = state.model.forbid(mask.edges, mask.start, mask.end)
        state.average = state.average.forbid(mask.edges, mask.start, mask.end)
        return state

    def _sgd(self, surrogate: ChainSurrogate, data: TrainingSet) -> AveragedSGD:
        sparse = data.tokens.is_sparse
        long_steps = sparse and surrogate.flattens
        step = (4.0 if long_steps else 1.0) if isinstance(self.step, str) else self.step
        one_by_one = sparse and self.transitions == "shared"
        batch = (1 if one_by_one else 8) if isinstance(self.batch_size, str) else self.batch_size
        return AveragedSGD(
            surrogate,
            step=check_number(step, "step", low=0.0, open_low=True),
            transition_step=self.transition_step,
            batch_size=check_count(batch, "batch_size"),
            boundaries=self.boundaries,
            alpha=self.alpha,
        )

    def _finish(self, model: ChainModel) -> None:
        mask = self.decoding_mask_
        self.model_ = model.forbid(mask.edges, mask.start, mask.end)
        self.coef_, self.intercept_ = self.model_.weights, self.model_.bias
        self.transitions_ = self.model_.edges
        self.start_, self.end_ = self.model_.start, self.model_.end

    def _error(self, model: ChainModel, held_out: TrainingSet) -> float:
        tokens = held_out.tokens
        phi = held_out.features(tokens.features, tokens.offsets)
        scores = model.scores(phi, tokens.offsets)
        states = Viterbi(None, model.n_states).decode_packed(scores).values
        return float((states != held_out.states).mean())

    def _fingerprint(self, data: TrainingSet) -> str:
        settings = {
            name: repr(value)
            for name, value in self.get_params().items()
            if name not in ("max_epochs", "checkpoint", "verbose", "cache_bytes")
        }
        digest = hashlib.sha256(repr(sorted(settings.items())).encode())
        digest.update(repr(self.tag_set_.tags).encode())
        digest.update(data.tokens.offsets.tobytes())
        digest.update(data.states.tobytes())
        digest.update(repr(data.n_features).encode())
        return digest.hexdigest()
