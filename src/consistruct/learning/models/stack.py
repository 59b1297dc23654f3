"""Stack: several models, weighted by what they say about rows they have not seen."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from consistruct._clock import Deadline, now
from consistruct._progress import advance
from consistruct._validation import check_jobs, check_number
from consistruct.decisions.recalibration import Recalibration, Unchanged, recalibrate_probabilities
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.kinds import Examples, Rows, take_codes
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.learning.selection.averaging import (
    Criterion,
    combined,
    criterion_for,
    greedy_weights,
)
from consistruct.learning.selection.columns import Columns
from consistruct.learning.selection.cross_fitting import Fold, folds
from consistruct.learning.selection.portfolio import ALL_ROWS, Candidate, portfolio
from consistruct.learning.selection.trials import (
    REFIT_ROWS,
    Sample,
    Trial,
    compared_rows,
    estimate_out_of_fold,
    fit_and_hold_out,
    fit_given,
    fit_model,
    one_split,
    recalibrated,
    too_late,
    translate,
)
from consistruct.learning.statistics import TargetValues
from consistruct.protocols import FloatArray

__all__ = ["Stack"]

logger = logging.getLogger(__name__)

FOLDS = 5
COMBINE = ("average", "mean", "geometric", "best")
LEAST_WEIGHT = 0.04  # members below are not worth a fit on all rows,
FEW_MEMBERS, LEAST_OF_FEW = 2, 0.12  # nor these above ALL_ROWS, where such a fit takes the time


class Stack(TargetModel):
    """A weighted mean of several models, with weights from out-of-fold rows.

    Every model is cross-fitted once (ridge regression has its out-of-fold rows exactly), class
    probabilities that are too sure or too flat on out-of-fold rows are recalibrated, models are
    averaged greedily while that helps, and those with a weight are fitted on all rows (above
    50,000 on all but those that validate). The
    criterion is a proper loss together with the task loss (see
    `consistruct.learning.selection.averaging`), not the task loss alone, which few rows decide.

    Parameters
    ----------
    models : "auto" or list of models
        Models of `consistruct.models`. "auto" tries logistic regression, forests, boosting and
        kernel ridge for classes; ridge, extra trees and boosting for other labels, as far as the
        size allows.
    cv : int or splitter, optional
        Folds. None: five up to 5,000 rows, one split above: models are fitted on half to two
        thirds of the rows, at most 10,000 or a fifteenth, and compared on up to 20,000 others.
    combine : {"average", "mean", "geometric", "best"}
        Mean of the estimates; geometric mean of class probabilities, which trusts a model that is
        sure; "average" is whichever of the two is better on out-of-fold rows (of classes, up to
        5,000 rows; else the mean); "best" is only the best single model.
    weights : list of float, optional
        Weights of the models, where they are known: nothing is compared then.
    recalibrations : list, optional
        With `weights`: what corrects the class probabilities of each model, as in
        `recalibrations_`. Models that know their out-of-fold rows exactly find it themselves.
    time_limit : float, optional
        Seconds that a fit may take. The first model is always fitted; another one only if fits on
        a sixteenth to a quarter of the rows say that it ends in time, so that the limit is exceeded
        by at most the first, fastest one.
    n_jobs : int, optional
        Folds that are fitted at a time; the result does not depend on it.

    Attributes
    ----------
    members_ : list of fitted models
    weights_ : (members,) array
    recalibrations_ : list
        What corrects the probabilities of each member before they are averaged.
    combine_ : {"mean", "geometric"}
        How members are averaged.
    portfolio_ : list of dict
        For every model: name, out-of-fold criterion and task loss, weight, seconds, and what
        happened.

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> logistic = cs.models.Probabilities(LogisticRegression(max_iter=1000))
    >>> stack = cs.models.Stack([logistic, cs.models.Ridge()])
    >>> model = cs.TaskLossClassifier("zero_one", stack, random_state=0).fit(X, y)
    >>> [entry["name"] for entry in model.portfolio_]
    ['Probabilities', 'Ridge']
    """

    raw_inputs = True
    uses_cv = True

    def __init__(
        self,
        models: Any = "auto",
        *,
        cv: Any = None,
        combine: str = "average",
        weights: Any = None,
        recalibrations: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.models = models
        self.cv = cv
        self.combine = combine
        self.weights = weights
        self.recalibrations = recalibrations
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    members_: list[TargetModel]
    weights_: FloatArray
    combine_: str
    portfolio_: list[dict[str, Any]]
    _out_of_fold: OutOfFold | None = None

    @property
    def wants_frames(self) -> bool:  # type: ignore[override]
        given = self.models if isinstance(self.models, list | tuple) else ()
        return any(getattr(model, "wants_frames", False) for model in given)

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        if not isinstance(self.models, list | tuple):
            return True
        return all(getattr(model, "takes_missing", False) for model in self.models)

    def fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        """Compare models on rows that they did not see, weigh them, and fit those with a weight."""
        self._check()
        deadline = Deadline(self.time_limit)
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        examples = Examples(Rows(statistic.loss, None), X, codes, weight, groups)  # type: ignore[arg-type]
        if self.weights is not None:
            return self._fit_given(examples, statistic, rng)
        candidates = self._candidates(statistic, X, len(examples))
        if self.cv is None and len(examples) > ALL_ROWS:
            trials = self._hold_out(candidates, examples, statistic, deadline, rng)
        else:
            sample, splits = self._splits(examples, rng)
            trials = self._trials(candidates, sample, splits, statistic, deadline, rng)
            self._combine(trials, sample, statistic)
        self._fit_members(trials, examples, statistic, rng)
        self._keep(trials)
        return self

    def _hold_out(
        self,
        candidates: Sequence[Candidate],
        examples: Examples,
        statistic: Statistic,
        deadline: Deadline,
        rng: np.random.Generator,
    ) -> list[Trial]:
        """Of many rows some validate, and models are fitted on the others.

        They are compared by fits on at most so many; those that get a weight are fitted on all of
        the others, and weighed and recalibrated again as they then are. These fits are the ones
        that are used, unless so few rows remain that those that validate are missed.
        """
        sample, (fit, left) = one_split(examples, statistic.width, rng)
        compared = compared_rows(fit, rng)
        trials = self._trials(candidates, sample, [(compared, left)], statistic, deadline, rng)
        self._combine(trials, sample, statistic)
        if len(compared) < len(fit):
            members = [trial for trial in trials if trial.weight > 0.0]
            for trial in members:
                begun = now()
                seed = int(rng.integers(2**62))
                fit_and_hold_out(trial, sample, (fit, left), seed, statistic)
                trial.seconds += now() - begun
            self._combine(members, sample, statistic)
        if len(examples) <= REFIT_ROWS:
            for trial in trials:
                trial.fitted = None
        return trials

    def _fit_given(
        self, examples: Examples, statistic: Statistic, rng: np.random.Generator
    ) -> Self:
        """Fit the models whose weights are known."""
        shares = np.asarray(self.weights, dtype=np.float64)
        changes = self.recalibrations or [Unchanged()] * len(shares)
        trials = [
            Trial(
                type(model).__name__,
                model,
                reason="weight given",
                weight=float(share),
                recalibration=change,
            )
            for model, share, change in zip(
                self.models, shares / shares.sum(), changes, strict=True
            )
        ]
        self._out_of_fold = None
        self.combine_ = "geometric" if self.combine == "geometric" else "mean"
        fit_given(trials, examples, statistic, rng)
        self._keep(trials)
        found = {member.statistic_ for member in self.members_}
        self.statistic_ = found.pop() if len(found) == 1 else TargetValues(statistic.loss)
        self._check_geometric()
        return self

    def with_fixed_weights(self) -> Stack:
        """An unfitted stack of the members with their weights, which compares nothing again."""
        chosen = [clone(member) for member in self.members_]
        return Stack(
            chosen,
            combine=self.combine_,
            weights=self.weights_.tolist(),
            recalibrations=self.recalibrations_,
            n_jobs=self.n_jobs,
        )

    # --- what is tried ---

    def _check(self) -> None:
        if self.combine not in COMBINE:
            raise ValueError(f"combine must be one of {', '.join(COMBINE)}, got {self.combine!r}")
        if self.time_limit is not None:
            check_number(self.time_limit, "time_limit", low=0.0)
        check_jobs(self.n_jobs)
        self._check_weights()
        if isinstance(self.models, str):
            if self.models != "auto":
                raise ValueError(f"models must be 'auto' or a list of models, got {self.models!r}")
            return
        listed = isinstance(self.models, list | tuple) and len(self.models) > 0
        if not listed or not all(isinstance(one, TargetModel) for one in self.models):
            raise TypeError(
                "models must be 'auto' or a list of models of consistruct.models, such as "
                "[Ridge(), Probabilities(classifier)]"
            )

    def _check_weights(self) -> None:
        if self.weights is None:
            if self.recalibrations is not None:
                raise ValueError(
                    "recalibrations go with weights; without them they are found on out-of-fold "
                    "rows"
                )
            return
        try:
            shares = np.asarray(self.weights, dtype=np.float64)
        except (TypeError, ValueError):  # words, or lists of different lengths
            shares = np.empty(0)
        several = isinstance(self.models, list | tuple) and shares.shape == (len(self.models),)
        if not several or not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
            raise ValueError(
                f"weights must contain one non-negative number per model of a list, not all zero, "
                f"got {self.weights!r}"
            )
        if self.cv is not None or self.combine == "best" or self.time_limit is not None:
            raise ValueError(
                "with given weights there is nothing to compare: omit cv, combine='best' and "
                "time_limit"
            )
        changes = self.recalibrations
        if changes is not None and (
            not isinstance(changes, list | tuple)
            or len(changes) != len(shares)
            or not all(isinstance(one, Recalibration) for one in changes)
        ):
            raise ValueError(
                "recalibrations must contain one entry of a fitted stack's recalibrations_ for "
                f"each model, got {changes!r}"
            )

    def _candidates(self, statistic: Statistic, X: Any, n: int) -> list[Candidate]:
        if isinstance(self.models, str):
            return portfolio(statistic, Columns.of(X), n, n_jobs=self.n_jobs)
        return [Candidate(type(model).__name__, model) for model in self.models]

    def _splits(self, examples: Examples, rng: np.random.Generator) -> tuple[Sample, list[Fold]]:
        """The rows on which models are compared, and their folds."""
        if self.cv is not None:
            return Sample(examples, whole=True, exact=False), folds(examples, self.cv, rng)
        exact = examples.groups is None
        return Sample(examples, whole=True, exact=exact), folds(examples, FOLDS, rng)

    def _trials(
        self,
        candidates: Sequence[Candidate],
        sample: Sample,
        splits: list[Fold],
        statistic: Statistic,
        deadline: Deadline,
        rng: np.random.Generator,
    ) -> list[Trial]:
        trials = []
        alone = sum(candidate.model is not None for candidate in candidates) == 1
        for number, candidate in enumerate(candidates):
            advance(candidate.name, number, len(candidates))
            seed = int(rng.integers(2**62))  # drawn whatever happens: later ones do not change
            trial = Trial(candidate.name, candidate.model, candidate.reason)
            trials.append(trial)
            if candidate.model is None:
                continue
            rounds = max(one.rounds for one in trials)
            if rounds < candidate.after_rounds:
                trial.model, trial.reason = None, f"boosting ended after {rounds} rounds"
                continue
            if self.time_limit is not None and any(one.left is not None for one in trials):
                ahead = sum(one.ahead for one in trials)
                late = too_late(trial, sample, splits, statistic, deadline, ahead)
                if late:
                    trial.model, trial.reason = None, f"time_limit of {self.time_limit} s {late}"
                    continue
            begun = now()
            try:
                if sample.whole:
                    estimate_out_of_fold(
                        trial, sample, splits, statistic, seed, self.n_jobs, alone=alone
                    )
                else:
                    fit_and_hold_out(trial, sample, splits[0], seed, statistic)
            except (ValueError, TypeError, np.linalg.LinAlgError) as error:
                if not isinstance(self.models, str):  # the user's own: not ours to leave out
                    raise
                trial.model, trial.reason = None, f"failed: {' '.join(str(error).split())[:200]}"
                logger.warning("%s left out: %s", trial.name, trial.reason)
            trial.seconds = now() - begun
            logger.info("%s: %.1f s", trial.name, trial.seconds)
        if all(trial.left is None for trial in trials):
            reasons = "; ".join(f"{trial.name} {trial.reason}" for trial in trials)
            raise ValueError(f"no model could be fitted: {reasons}")
        return trials

    # --- how they are combined ---

    def _combine(self, trials: list[Trial], sample: Sample, requested: Statistic) -> None:
        """Weights of the trials by out-of-fold rows that all of them estimate."""
        used = [trial for trial in trials if trial.left is not None]
        assert used[0].left is not None
        same = all(trial.statistic == used[0].statistic for trial in used)
        self.statistic_ = used[0].statistic if same else TargetValues(requested.loss)
        rows = used[0].left.rows
        for trial in used[1:]:
            assert trial.left is not None
            rows = np.intersect1d(rows, trial.left.rows, assume_unique=True)
        codes = take_codes(sample.examples.codes, rows)
        weight = sample.examples.weight[rows]
        estimates = []
        for trial in used:
            assert trial.left is not None
            place = np.searchsorted(trial.left.rows, rows)
            expected = self._common(trial, trial.left.expected[place])
            if self.statistic_.of_classes:
                trial.recalibration, _ = recalibrate_probabilities(
                    self.statistic_, expected, codes, weight
                )
            estimates.append(recalibrated(self.statistic_, trial.recalibration, expected))
        criterion = criterion_for(self.statistic_, codes, weight, many=not sample.whole)
        self._check_geometric()
        self.combine_, weights, alone = self._weights(estimates, criterion, sample.whole)
        best = np.eye(len(used))[alone.argmin()]
        if self.combine == "best":
            weights = best
        least = LEAST_WEIGHT if sample.whole else LEAST_OF_FEW
        weights = np.where((weights < least) & (best == 0.0), 0.0, weights)
        if not sample.whole:
            weights[np.argsort(-weights, kind="stable")[FEW_MEMBERS:]] = 0.0
        weights /= weights.sum()
        if not sample.whole:  # what is left of the mixture must decide better than the best model
            mixed, single = (
                criterion.of_decisions(self._averaged(some, estimates)) for some in (weights, best)
            )
            weights = weights if mixed < single else best
        loss = self.statistic_.loss
        for trial, share, value, expected in zip(used, weights, alone, estimates, strict=True):
            trial.weight, trial.criterion = float(share), float(value)
            if loss.decodes_fast:
                losses = loss(self.statistic_.decode(expected), codes)
                trial.task_loss = float(np.average(losses, weights=weight))
        self._out_of_fold = OutOfFold(rows, self._averaged(weights, estimates))

    def _weights(
        self, estimates: Sequence[FloatArray], criterion: Criterion, few: bool
    ) -> tuple[str, FloatArray, FloatArray]:
        """How to average, the weights, and the criterion of each model alone."""
        ways = [self.combine] if self.combine in ("mean", "geometric") else ["mean"]
        if self.combine == "average" and self.statistic_.of_classes and few:
            ways = ["mean", "geometric"]
        found = [greedy_weights(estimates, criterion, way == "geometric") for way in ways]
        best = int(np.argmin([value for *_, value in found]))  # the mean, where they are alike
        weights, alone, _ = found[best]
        return ways[best], weights, alone

    def _averaged(self, weights: FloatArray, estimates: Sequence[FloatArray]) -> FloatArray:
        return combined(weights, estimates, self.combine_ == "geometric")

    def _check_geometric(self) -> None:
        if self.combine == "geometric" and not self.statistic_.of_classes:
            raise ValueError(
                "combine='geometric' averages class probabilities, and these models estimate "
                "targets; use 'mean'"
            )

    def _common(self, trial: Trial, expected: FloatArray) -> FloatArray:
        """Estimates of a trial in the coordinates of the stack's statistic."""
        return translate(trial.statistic, self.statistic_, expected)

    def _fit_members(
        self,
        trials: list[Trial],
        examples: Examples,
        statistic: Statistic,
        rng: np.random.Generator,
    ) -> None:
        """Fit on all rows what has a weight and is not fitted yet."""
        for trial in trials:
            seed = int(rng.integers(2**62))
            if trial.weight == 0.0 or trial.model is None or trial.fitted is not None:
                continue
            begun = now()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                trial.fitted = fit_model(
                    trial.model, examples, statistic, np.random.default_rng(seed)
                )
            trial.seconds += now() - begun

    def _keep(self, trials: list[Trial]) -> None:
        """What is predicted with, and what is shown of the rest."""
        members = [trial for trial in trials if trial.weight > 0.0]
        self.members_ = [trial.fitted for trial in members if trial.fitted is not None]
        self.recalibrations_ = [trial.recalibration for trial in members]
        self.weights_ = np.array([trial.weight for trial in members])
        self.portfolio_ = [trial.entry() for trial in trials]

    # --- predictions ---

    def expected(self, X: Any) -> FloatArray:
        """The weighted mean of the members' estimates, or their geometric mean, (n, width)."""
        check_is_fitted(self, "members_")
        estimates = [
            recalibrated(
                self.statistic_,
                recalibration,
                translate(member.statistic_, self.statistic_, member.expected(X)),
            )
            for member, recalibration in zip(self.members_, self.recalibrations_, strict=True)
        ]
        return self._averaged(self.weights_, estimates)

    def out_of_fold(self) -> OutOfFold:
        """The same mean of the members' out-of-fold estimates."""
        if self._out_of_fold is None:
            raise CapabilityError(
                self, "out_of_fold", "out-of-fold estimates", "files do not keep them; fit again"
            )
        return self._out_of_fold

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_out_of_fold": None}  # training estimates are not part of the model
