"""Chain: tags of sequences from linear scores of tokens and of neighboring tags."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np

from consistruct._clock import Deadline
from consistruct._validation import check_count, check_number, check_unused_params, single_alpha
from consistruct.decisions.statistics import Statistic, TokenStates
from consistruct.learning.encoding.tokens import (
    NamedTokens,
    PackedTokens,
)
from consistruct.learning.files.checkpoint import read_checkpoint
from consistruct.learning.models.base import OutOfFold
from consistruct.learning.models.chain.chain_weights import (
    ChainWeights,
    broken_constraint,
    mask_of_training,
    refuse_too_many_weights,
)
from consistruct.learning.models.chain.held_out import (
    STRENGTHS,
    choose_penalty,
    search_epochs,
    token_error,
)
from consistruct.learning.models.chain.prediction import ChainPredictor
from consistruct.learning.models.chain.risk import ChainRisk, minimize
from consistruct.learning.models.chain.sgd import ChainSGD, Steps, TrainingState
from consistruct.learning.models.chain.time_plan import Plan, plan_epochs
from consistruct.learning.models.chain.token_maps import TokenMap
from consistruct.learning.models.chain.training_set import TrainingSet, fit_identity, hold_out
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.learning.models.solvers.sgd_loop import Arrays, run_epochs
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged
from consistruct.surrogates.chain import ChainSurrogate
from consistruct.surrogates.registry import chain_surrogate

__all__ = ["Chain"]

CACHE_BYTES = 2**30  # random features of the training data are kept if they fit
DEFAULT_COMPONENTS = 2000
LBFGS_DECREASE = 1e-8
FOLDS = 10  # of sequences that are left out, one fold after the other (fits to four fifths of the
# sequences err more: with them chunks were expected to cost 10 % more than they did),
ENOUGH_OUT_OF_FOLD = 2500  # until so many were: their error is known to a few per cent
FEWEST_OUT_OF_FOLD = 20  # sequences; fewer say nothing


class Chain(ChainPredictor):
    """Tags for sequences, by a linear chain.

    The score of tags y for x is Σ_t ⟨w_{y_t}, φ(x_t)⟩ + Σ_t transition(y_t, y_{t+1}) plus start
    and end scores; weights are shared along the sequence, and transitions may look at the features
    too. It minimizes (1/N) Σ_i w_i Φ_i + (α/2)‖W‖² over N sequences, W all weights on features.
    Time per epoch is linear in tokens and non-zero features and quadratic in tags.

    Parameters
    ----------
    surrogate : {"log", "hinge", "softmax_margin", "quadratic"}
        "log" is a conditional random field: probabilities, the usual choice. "softmax_margin" and
        "hinge" (a structured support vector machine) put the loss into training and are often a
        little better in error, without probabilities: they only rank. "quadratic" regresses on the
        loss.
    decoding : {"argmax", "bayes"}
        "argmax" (Viterbi) gives the sequence of largest score: with "log" the most probable one,
        consistent for the 0-1 loss on sequences; with "quadratic" consistent for the Hamming loss;
        with the margin surrogates it bounds the loss but is not consistent in general. "bayes"
        ("log" and "quadratic") takes the most probable tag of each token, consistent for the
        Hamming loss; the sequence as a whole may then hold a forbidden transition.
    features : {"linear", "random"}
        The features of the tokens as they are, or random Fourier features of them (dense ones): a
        nonlinear model.
    n_components : int, optional
        How many random features; 2000 if not given.
    bandwidth : float or "median"
        Width of the Gaussian kernel that they stand for; "median" takes 0.6 of the median distance.
    hash_bits : int, optional
        Feature names are hashed into 2^hash_bits columns; None indexes them exactly.
    window : int
        Features of so many neighbors on each side are added to those of a token.
    boundaries : bool
        Learn scores of the first and the last tag.
    transitions : {"shared", "features"}
        "shared": one matrix for all edges. "features": the edge into token t adds ⟨v_{ab}, φ(x_t)⟩,
        so each edge has a matrix of its own, at n_outputs · s² weights: for few features and tags.
    tag_scheme : {None, "bio", "iob1", "iobes"}
        Forbid transitions that break the scheme. "bio" recognizes by the training sequences whether
        chunks begin with B-X throughout, or with I-X except behind a chunk of the same type as in
        the original CoNLL-2003 ("iob1"); predictions follow the same variant.
    forbidden_transitions : iterable of (tag, tag), optional
        Further transitions that never happen.
    solver : {"sgd", "lbfgs"}
        Averaged stochastic gradient, or L-BFGS (differentiable surrogates; slower, exact).
    alpha : "auto" or float
        The penalty. "auto" takes the one with the least surrogate on held-out sequences.
    step : "auto" or float
        c of the step c / mean‖φ‖² / √epoch of SGD; "auto" is 1 for dense and 4 for sparse features
        ("quadratic": 1). Halved if training explodes.
    batch_size : "auto" or int
        Sequences per step of SGD; "auto" is 8, and 1 for sparse features with shared transitions.
    max_epochs : int
        Passes over the data; for L-BFGS 25 iterations count as one.
    early_stopping : bool
        Hold out `validation_fraction` of the sequences; stop when their token error has not
        improved for `patience` epochs and keep the best average (SGD).
    validation_fraction : float
    patience : int
    checkpoint : path, optional
        File that is written after each epoch of SGD and continued from if it exists.
    time_limit : float, optional
        Seconds that SGD may take. What does not end in time by an epoch over few sequences is left
        out, with a warning in the log: first the fits that recalibrate probabilities, then the
        choice of the penalty, then epochs, of which there is always one.

    Attributes
    ----------
    coef_, intercept_ : (n_outputs, s) and (s,) arrays
    transitions_ : (s, s) array
    start_, end_ : (s,) arrays
    transition_coef_ : (n_outputs, s, s) array, (0, s, s) where transitions are shared
    states_ : (s,) array
        Codes of the tags that training showed, in the order of the columns above.
    alpha_ : float
    path_ : dict
        Penalties that were compared, risks of the epochs.
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> import consistruct as cs
    >>> X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=cat"], ["w=sleeps"]]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    >>> model = cs.StructuredPredictor("hamming", cs.models.Chain(), random_state=0).fit(X, y)
    >>> [tags.tolist() for tags in model.predict([[["w=a"], ["w=cat"], ["w=sleeps"]]])]
    [['DET', 'NOUN', 'VERB']]
    """

    state_: TrainingState
    path_: dict[str, FloatArray]
    _out_of_fold: OutOfFold | None = None

    def __init__(
        self,
        surrogate: str = "log",
        *,
        decoding: str = "argmax",
        features: str = "linear",
        n_components: int | None = None,
        bandwidth: float | str = "median",
        hash_bits: int | None = None,
        window: int = 0,
        boundaries: bool = True,
        transitions: str = "shared",
        tag_scheme: str | None = None,
        forbidden_transitions: Iterable[tuple[Any, Any]] | None = None,
        solver: str = "sgd",
        alpha: Any = "auto",
        step: float | str = "auto",
        batch_size: int | str = "auto",
        max_epochs: int = 12,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.surrogate = surrogate
        self.decoding = decoding
        self.features = features
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.hash_bits = hash_bits
        self.window = window
        self.boundaries = boundaries
        self.transitions = transitions
        self.tag_scheme = tag_scheme
        self.forbidden_transitions = forbidden_transitions
        self.solver = solver
        self.alpha = alpha
        self.step = step
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.checkpoint = checkpoint
        self.time_limit = time_limit

    def _file(self) -> str | None:
        return None if self.checkpoint is None else os.fspath(self.checkpoint)

    # --- learning ---

    def fit(
        self,
        X: PackedTokens | NamedTokens,
        codes: Ragged,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        surrogate = self._check_settings()
        deadline = None if self.time_limit is None else Deadline(self.time_limit)
        self.statistic_ = _token_states(statistic)
        self.states_ = np.unique(codes.values)
        file, identity = self._file(), ""
        if file is not None:
            identity = fit_identity(self.get_params(deep=False), X, codes, sample_weight, rng)
        data = self._training_set(self._encode(X, fit=True), codes, sample_weight, rng, fit=True)
        mask = self._mask(surrogate, data)
        state, steps = self._start(data, mask), self._steps(surrogate, data)
        alpha, everything = single_alpha(self.alpha), data
        held_out = None
        if self.early_stopping:
            data, held_out = hold_out(data, self.validation_fraction, rng)
        self.path_ = {}
        plan = Plan(self.max_epochs)
        if deadline is not None:
            folds = min(FOLDS, math.ceil(FOLDS * ENOUGH_OUT_OF_FOLD / len(data.tokens)))
            plan = plan_epochs(
                ChainSGD(surrogate, data, state, steps),
                deadline,
                self.max_epochs,
                searched=search_epochs(len(data.tokens)) if alpha is None else 0.0,
                out_of_fold=self.max_epochs * folds * (1.0 - 1.0 / FOLDS)
                if self.estimates
                else 0.0,
            )
        found = None if file is None else read_checkpoint(file, identity)
        if found is not None:  # its penalty was chosen already
            alpha = float(found.numbers["state"]["alpha"])
        elif alpha is None and not plan.penalty:
            alpha = STRENGTHS[-1] / len(data.tokens)
        elif alpha is None:
            alpha, self.path_ = choose_penalty(surrogate, data, state, steps, rng)
        self.alpha_ = state.alpha = alpha
        if self.solver == "lbfgs":
            weights, self.n_iter_, value = self._minimize(surrogate, data, mask, alpha)
            self.path_["risk"] = np.array([value])
        else:
            problem = ChainSGD(surrogate, data, state.copy(), steps)
            weights = self._run(problem, held_out, identity, rng, plan.epochs)
        self.weights_ = weights
        self._out_of_fold = None
        if self.estimates and plan.out_of_fold and len(X) >= FEWEST_OUT_OF_FOLD:
            self._leave_out(surrogate, everything, mask, state, steps, rng)
        return self

    def _minimize(
        self, surrogate: ChainSurrogate, data: TrainingSet, mask: ChainWeights, alpha: float
    ) -> tuple[ChainWeights, int, float]:
        risk = ChainRisk(
            surrogate,
            data,
            mask,
            alpha=alpha,
            boundaries=self.boundaries,
            per_edge=self.transitions == "features",
        )
        return minimize(risk, LBFGS(max_iter=25 * self.max_epochs, decrease=LBFGS_DECREASE))

    def _leave_out(
        self,
        surrogate: ChainSurrogate,
        data: TrainingSet,
        mask: ChainWeights,
        start: TrainingState,
        steps: Steps,
        rng: np.random.Generator,
    ) -> None:
        """Fits without a tenth of the sequences each, until enough of them were left out."""
        n = len(data.tokens)
        drawn, rows, estimates, codes = rng.permutation(n), [], [], []
        for part in np.array_split(drawn, FOLDS):
            left = np.sort(part)
            used = data.take(np.setdiff1d(drawn, part))
            alpha = self.alpha_ * n / len(used.tokens)  # N·α carries over
            if self.solver == "lbfgs":
                weights = self._minimize(surrogate, used, mask, alpha)[0]
            else:
                problem = ChainSGD(surrogate, used, replace(start.copy(), alpha=alpha), steps)
                for _ in range(self.n_iter_):
                    problem.epoch(rng)
                weights = problem.state.average
            fold = data.take(left)
            rows.append(left)
            for scores in fold.scores(weights):
                estimates.append(self._estimates(scores))
            if self.decides:
                for scores in fold.scores(weights.forbid(*self._forbidden())):
                    codes.append(self._decoded(scores))
            if sum(map(len, rows)) >= ENOUGH_OUT_OF_FOLD:
                break
        listed = np.concatenate(rows)
        lengths = np.diff(data.tokens.offsets)[listed]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        order = np.argsort(listed)
        self._out_of_fold = OutOfFold(
            listed[order],
            Ragged(np.concatenate(estimates), offsets).take(order),
            Ragged(np.concatenate(codes), offsets).take(order) if self.decides else None,
        )

    def partial_fit(
        self,
        X: PackedTokens | NamedTokens,
        codes: Ragged,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        rng: np.random.Generator,
    ) -> Self:
        """One epoch over these sequences, from where training stands.

        The first call fixes the features: names that appear later are dropped unless ``hash_bits``
        is set. All states of the statistic are learned. ``alpha="auto"`` is 0 here: there are no
        held-out sequences.
        """
        surrogate = self._check_settings()
        if self.solver != "sgd":
            raise ValueError(f"partial_fit needs solver='sgd', got {self.solver!r}")
        first = not hasattr(self, "state_")
        if first:
            self.statistic_ = _token_states(statistic)
            self.states_ = np.arange(len(self.statistic_.names))
        tokens = self._encode(X, fit=first)
        data = self._training_set(tokens, codes, sample_weight, rng, fit=first)
        mask = self._mask(surrogate, data, first=first)
        if first:
            self.state_ = self._start(data, mask)
            self.alpha_ = self.state_.alpha = single_alpha(self.alpha) or 0.0
        problem = ChainSGD(surrogate, data, self.state_, self._steps(surrogate, data))
        problem.epoch(rng)
        self.state_ = problem.state
        self.n_iter_, self.path_ = self.state_.epoch, {"risk": np.array(self.state_.history)}
        self.weights_ = self.state_.average
        return self

    def out_of_fold(self) -> OutOfFold:
        """Estimates and tags of (some of) the training sequences by fits that did not see them."""
        return super().out_of_fold() if self._out_of_fold is None else self._out_of_fold

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_out_of_fold": None}  # training estimates are not part of the model

    @property
    def can_stream(self) -> bool:  # type: ignore[override]
        return self.solver == "sgd"

    def _run(
        self,
        problem: ChainSGD,
        held_out: TrainingSet | None,
        identity: str,
        rng: np.random.Generator,
        epochs: int,
    ) -> ChainWeights:
        """Epochs of SGD; the averaged weights, the best ones on held-out sequences if there are."""

        def validate(weights: Arrays) -> float:
            assert held_out is not None
            return token_error(ChainWeights.from_named(weights), held_out)

        done = run_epochs(
            problem,
            max_epochs=epochs,
            patience=None if held_out is None else self.patience,
            validate=None if held_out is None else validate,
            checkpoint=self._file(),
            fingerprint=identity,
            rng=rng,
        )
        self.state_, self.n_iter_ = problem.state, done.n_epochs
        self.path_["risk"] = np.array(done.risks)
        return ChainWeights.from_named(done.weights)

    # --- the steps in between ---

    def _check_settings(self) -> ChainSurrogate:
        """Refuse values that mean nothing, and settings that others make meaningless."""
        surrogate = chain_surrogate(self.surrogate)
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} must be {' or '.join(map(repr, allowed))}, got {getattr(self, name)!r}"
                )
        if self.decoding == "bayes" and not self.estimates:
            raise ValueError(
                f"decoding='bayes' needs surrogate='log' or 'quadratic', got {self.surrogate!r}, "
                f"whose scores are not probabilities; use decoding='argmax'"
            )
        single_alpha(self.alpha)
        check_count(self.max_epochs, "max_epochs")
        check_count(self.patience, "patience")
        if self.time_limit is not None:
            check_number(self.time_limit, "time_limit", low=0.0)
        for name in ("step", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto":
                raise ValueError(f"{name} must be 'auto' or a number, got {value!r}")
        random, sgd = self.features == "random", self.solver == "sgd"
        check_unused_params(self, "features='random'", random, ("n_components", "bandwidth"))
        check_unused_params(self, "solver='sgd'", sgd, SGD_SETTINGS)
        stopping = ("validation_fraction", "patience")
        check_unused_params(self, "early_stopping=True", self.early_stopping, stopping)
        return surrogate

    def _training_set(
        self,
        tokens: PackedTokens,
        codes: Ragged,
        sample_weight: FloatArray | None,
        rng: np.random.Generator,
        *,
        fit: bool,
    ) -> TrainingSet:
        states = np.searchsorted(self.states_, codes.values)
        weights = np.ones(len(tokens)) if sample_weight is None else sample_weight
        weights = weights / weights.mean()
        if fit:
            components = self.n_components or DEFAULT_COMPONENTS
            self.token_map_ = TokenMap.fit(
                tokens,
                window=self.window,
                n_components=components if self.features == "random" else None,
                bandwidth=self.bandwidth,
                rng=rng,
            )
        token_map = self.token_map_
        if tokens.is_sparse:
            wide = token_map.transform(tokens.features, tokens.offsets)
            tokens, token_map = PackedTokens(wide, tokens.offsets), TokenMap(wide.shape[1])
        size = 4 * tokens.n_tokens * (token_map.n_random + token_map.n_features)
        if token_map.n_random and size <= CACHE_BYTES:
            tokens = PackedTokens(token_map.local(tokens.features), tokens.offsets)
            return TrainingSet(tokens, states, weights, token_map, cached=True)
        return TrainingSet(tokens, states, weights, token_map)

    def _mask(
        self, surrogate: ChainSurrogate, data: TrainingSet, *, first: bool = True
    ) -> ChainWeights:
        """0 where scores are learned, −inf where they are forbidden (always so in ``mask_``)."""
        s = len(self.states_)
        refuse_too_many_weights(data.n_features, s, self.transitions)
        tags = [self.statistic_.names[state] for state in self.states_]
        sequences = data.states, data.tokens.offsets
        if first:
            forbidden = self.forbidden_transitions
            self.mask_ = mask_of_training(tags, self.tag_scheme, forbidden, *sequences)
        elif (fault := broken_constraint(self.mask_, *sequences, tags)) is not None:
            raise ValueError(fault)
        if surrogate.name == "quadratic":  # needs finite scores
            return ChainWeights.zeros(0, s)
        return self.mask_

    def _start(self, data: TrainingSet, mask: ChainWeights) -> TrainingState:
        return TrainingState.zeros(
            data.n_features, mask.n_states, per_edge=self.transitions == "features", mask=mask
        )

    def _steps(self, surrogate: ChainSurrogate, data: TrainingSet) -> Steps:
        sparse = data.tokens.is_sparse
        long_steps = sparse and surrogate.flattens
        step = (4.0 if long_steps else 1.0) if isinstance(self.step, str) else self.step
        one_by_one = sparse and self.transitions == "shared"
        batch = (1 if one_by_one else 8) if isinstance(self.batch_size, str) else self.batch_size
        return Steps(
            check_number(step, "step", low=0.0, open_low=True),
            batch_size=check_count(batch, "batch_size"),
            boundaries=self.boundaries,
        )


CHOICES = {
    "decoding": ("argmax", "bayes"),
    "features": ("linear", "random"),
    "transitions": ("shared", "features"),
    "solver": ("sgd", "lbfgs"),
}
SGD_SETTINGS = ("step", "batch_size", "early_stopping", "checkpoint", "time_limit")


def _token_states(statistic: Statistic) -> TokenStates:
    if isinstance(statistic, TokenStates):
        return statistic
    raise TypeError(f"Chain estimates states of tokens (TokenStates), got {statistic!r}")
