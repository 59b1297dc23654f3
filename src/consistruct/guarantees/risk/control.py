"""RiskControl: any fitted estimator, with a guarantee about its loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from consistruct.guarantees.risk.calibration_rows import Calibration, calibration_rows
from consistruct.guarantees.risk.guarantee import Guarantee, RiskReport, report
from consistruct.guarantees.risk.ladders import Ladder
from consistruct.guarantees.risk.policies import POLICIES, Policy
from consistruct.guarantees.risk.policies.base import Options
from consistruct.guarantees.risk.settings import (
    check_losses,
    check_settings,
    check_weights,
    choose_policy,
    per_row,
)
from consistruct.guarantees.risk.thresholds import (
    Threshold,
    always_issued,
    by_segment,
    calibrate,
    check_rows,
    choose_method,
)
from consistruct.guarantees.risk.views import View, check_estimator, fitted
from consistruct.learning.encoding.kinds import generator
from consistruct.learning.estimator import TargetEstimator
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray

__all__ = ["RiskControl"]

EVERYONE = ""  # the segment of rows that have none


class RiskControl(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions whose expected task loss is at most a level, with safer ones where needed.

    An estimator states what it would decide and how sure it is. Rows that it was not fitted on,
    with their true labels, then say how cautious it must be: where it is unsure it abstains, names
    several classes, stops at an inner node of a label tree, names more (or fewer) labels, shows a
    longer list, or hands the row over. The guarantee holds for any model and any distribution, as
    long as new rows are like the calibration rows; it is about the average row, not about each one.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        Fitted on other rows; with `cv` it is fitted here.
    level : float, or dict by segment
        The risk that is not to be exceeded, in units of the loss.
    confidence : float, optional
        None: the risk is at most the level on average over calibration sets. 0.9: at most 10 of 100
        calibration sets give a rule whose risk exceeds the level. Sets that give no rule raise
        `RiskLevelError`; where every set gives one, the same holds of the rules that are issued
        (`guarantee_.always`), elsewhere more than 10 of 100 issued rules may exceed the level.
    policy : "auto" or a name of `POLICIES`
        What safer predictions are: "abstain", "sets" (of classes), "ancestor" (inner node of a
        tree), "grow" and "shrink" (labels that may, that surely apply), "threshold" (sets of labels
        counted as they are), "list" (first items of a ranking), "defer". "auto" takes it from the
        loss.
    risk : "marginal" or "selective"
        Mean over all rows, in which an abstention counts 0, or over the answered ones; the latter
        needs `confidence`.
    method : "auto", "conformal", "monotonized", "betting", "hoeffding-bentkus" or "binomial"
        How the threshold is found. "auto": conformal risk control where safer predictions are
        proved to cost no more and no confidence is requested; otherwise tests, exact ones where
        the loss is all or nothing, by betting where it is not.
    loss : Loss, optional
        What is guaranteed, if not the estimator's own loss: for sets of labels (Hamming, F-beta).
    defer_cost : float, optional
        For policy="defer": what it costs to hand a row over.
    defer_to : fitted estimator, optional
        Who answers rows that are handed over; None is a person, whose answer is right.
    cv : None, float, int or splitter
        None: `fit` gets rows that the estimator has not seen. A share such as 0.3: the estimator is
        fitted on the other rows, these calibrate. Folds: every row is predicted by an estimator
        fitted without it, the final one is fitted on all rows; no row is given away, but the
        guarantee is no longer proved (`guarantee_`).
    max_loss : float, optional
        Largest loss that can occur, where the loss does not say (costs of each example).
    random_state : int or Generator, optional
        Splits, and the pilot rows of tests.

    Attributes
    ----------
    estimator_ : fitted estimator
    policy_ : str
    thresholds_ : dict
        Safety by segment.
    guarantee_ : Guarantee
    calibration_ : RiskReport
        Risk and coverage on the calibration rows themselves (slightly optimistic).

    Examples
    --------
    >>> import consistruct as cs
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = cs.TaskLossClassifier("zero_one", cs.models.Ridge()).fit(X[:600], y[:600])
    >>> safe = cs.RiskControl(model, level=0.02).fit(X[600:1200], y[600:1200])
    >>> print(safe.guarantee_)  # doctest: +ELLIPSIS
    mean loss at most 0.02 for rows like the calibration rows, on average ... (conformal, 600 rows)
    >>> safe.predict(X[1200:1202])
    array([(7,), (7,)], dtype=object)
    >>> bool(safe.evaluate(X[1200:], y[1200:]).risk.low < 0.02)
    True
    """

    estimator_: TargetEstimator
    thresholds_: dict[Any, Threshold]
    guarantee_: Guarantee
    calibration_: RiskReport

    def __init__(
        self,
        estimator: Any,
        level: Any = 0.1,
        *,
        confidence: float | None = None,
        policy: str = "auto",
        risk: str = "marginal",
        method: str = "auto",
        loss: Any = None,
        defer_cost: float | None = None,
        defer_to: Any = None,
        cv: Any = None,
        max_loss: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.level = level
        self.confidence = confidence
        self.policy = policy
        self.risk = risk
        self.method = method
        self.loss = loss
        self.defer_cost = defer_cost
        self.defer_to = defer_to
        self.cv = cv
        self.max_loss = max_loss
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = check_estimator(self.estimator).__sklearn_tags__()
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags = inner.target_tags
        return tags

    # --- fitting ---

    def fit(
        self, X: Any, y: Any, weights: Any = None, segments: Any = None, groups: Any = None
    ) -> Self:
        """Find how cautious to be, from rows that the estimator was not fitted on.

        Parameters
        ----------
        X, y, groups
            As the estimator takes them.
        weights : (n,) array, optional
            How much more often such rows will come than they come here (a ratio of densities, up to
            a factor); `predict` then needs the weights of new rows. With a confidence the largest
            weight given is taken for the largest that can occur.
        segments : (n,) array, optional
            A guarantee for each segment; `level` may be a dict by segment.

        Returns
        -------
        self
        """
        check_settings(self)
        rng = generator(self.random_state)
        base = check_estimator(self.estimator)
        if self.cv is None and not fitted(base):
            raise ValueError(
                "the estimator is not fitted: fit it on other rows first, or set cv= to a share "
                "of rows to calibrate on (0.3) or a number of folds (5)"
            )
        if self.cv is None:
            self.estimator_ = base
            calibration = Calibration.of(View.of(base, X, groups), y)
        else:
            self.estimator_, calibration = calibration_rows(clone(base), X, y, groups, self.cv, rng)
        self.policy_ = choose_policy(self, self.estimator_, self._options)
        ladder = calibration.ladder(self._policy, self._options)
        check_losses(ladder.losses, self._bounds)
        weights = check_weights(per_row(weights, calibration.rows, "weights", calibration.n_given))
        segments = per_row(segments, calibration.rows, "segments", calibration.n_given)
        self.weighted_ = weights is not None
        self._calibrate(ladder, weights, segments, rng)
        self._set_guarantee(len(ladder), calibration.proved)
        safety = self._safeties(len(ladder), weights, segments)
        self.calibration_ = self._report(ladder, safety)
        return self

    @property
    def _options(self) -> Options:
        second = None if self.defer_to is None else check_estimator(self.defer_to)
        if second is not None and not fitted(second):
            raise ValueError("defer_to must already be fitted")
        return Options(
            self.estimator_.loss_ if self.loss is None else self.loss,
            self.defer_cost or 0.0,
            second,
        )

    @property
    def _policy(self) -> Policy:
        return POLICIES[self.policy_]

    @property
    def _bounds(self) -> tuple[float, float]:
        low, high = self._policy.bounds(self._options)
        return low, high if self.max_loss is None else float(self.max_loss)

    def _calibrate(
        self, ladder: Ladder, weights: Any, segments: Any, rng: np.random.Generator
    ) -> None:
        options, policy = self._options, self._policy
        monotone = policy.monotone(options)
        two_values = policy.two_values(options) and self.max_loss is None
        names = [EVERYONE] if segments is None else np.unique(segments).tolist()
        if isinstance(self.level, Mapping) and segments is None:
            raise ValueError("level is a dict by segment: pass segments= to fit")
        chosen = choose_method(
            self.method,
            monotone=monotone,
            risk=self.risk,
            confidence=self.confidence,
            two_values=two_values,
            weighted=weights is not None,
        )
        self.thresholds_ = {}
        for name in names:
            rows = np.arange(len(ladder)) if segments is None else np.flatnonzero(segments == name)
            level = self._level(name)
            where = "" if segments is None else f" in segment {name!r}"
            check_rows(
                len(rows),
                level=level,
                bounds=self._bounds,
                confidence=self.confidence,
                monotone=monotone and self.risk == "marginal",
                method=chosen,
                safest=policy.safest(options),
                where=where,
            )
            self.thresholds_[name] = calibrate(
                ladder if segments is None else ladder.take(rows),
                level=level,
                bounds=self._bounds,
                confidence=self.confidence,
                monotone=monotone,
                risk=self.risk,
                method=chosen,
                two_values=two_values,
                weights=None if weights is None else weights[rows],
                rng=rng,
            )

    def _level(self, segment: Any) -> float:
        if not isinstance(self.level, Mapping):
            return float(self.level)
        if segment not in self.level:
            raise ValueError(f"level has no entry for segment {segment!r}")
        return float(self.level[segment])

    def _set_guarantee(self, n: int, proved: bool) -> None:
        segmented = EVERYONE not in self.thresholds_
        levels = {name: self._level(name) for name in self.thresholds_}
        self.guarantee_ = Guarantee(
            levels if segmented else self._level(EVERYONE),
            self.confidence,
            self.risk,
            self.policy_,
            self._policy.counts,
            next(iter(self.thresholds_.values())).method,
            n,
            proved,
            self.weighted_,
            always_issued(
                monotone=self._policy.monotone(self._options),
                risk=self.risk,
                weighted=self.weighted_,
            ),
        )

    # --- predicting ---

    def _safeties(self, n: int, weights: Any, segments: Any) -> FloatArray:
        """The safety of each of n rows."""
        if (weights is not None) != self.weighted_:
            raise ValueError(
                "calibration rows had weights: pass those of the new rows as weights="
                if self.weighted_
                else "calibration rows had no weights; fit with weights= first"
            )
        segmented = EVERYONE not in self.thresholds_
        if segmented != (segments is not None):
            raise ValueError(
                "calibration rows had segments: pass those of the new rows as segments="
                if segmented
                else "calibration rows had no segments; fit with segments= first"
            )
        weights = per_row(weights, None, "weights", n)
        segments = per_row(segments, None, "segments", n)
        if segments is None:
            return np.broadcast_to(self.thresholds_[EVERYONE].of_weights(weights), (n,))
        return by_segment(self.thresholds_, segments, weights)

    def _view(self, X: Any, groups: Any) -> View:
        check_is_fitted(self, "thresholds_")
        return View.of(self.estimator_, X, groups)

    def predict(self, X: Any, weights: Any = None, segments: Any = None, groups: Any = None) -> Any:
        """Predictions, safer ones where needed.

        Parameters
        ----------
        X, groups
            As the estimator takes them.
        weights, segments : (n,) arrays
            As in `fit`, if they were given there.

        Returns
        -------
        predictions : array or list
            abstain, defer: labels, None without an answer (or the loss's own label for it, or the
            answers of `defer_to`); sets: tuples of classes, best first; ancestor: names of nodes,
            numbers if they have none; grow, shrink, threshold: (n, T) indicators; list: orders with
            −1 after the items shown, or ranks with 0 for items that are not shown.
        """
        view = self._view(X, groups)
        safety = self._safeties(len(view), weights, segments)
        found = []
        for rows, part in view.parts():
            family = self._policy.family(part, self._options)
            found.append(family.present(family.without_losses().rungs(safety[rows])))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def predict_expected_loss(self, X: Any, groups: Any = None) -> FloatArray:
        """What the estimator expects its own answer to cost, (n,): how sure it is of each row."""
        check_is_fitted(self, "thresholds_")
        return self.estimator_.predict_expected_loss(X, groups)

    def _ladder(self, X: Any, y: Any, groups: Any) -> Ladder:
        return Calibration.of(self._view(X, groups), y).ladder(self._policy, self._options)

    def task_losses(
        self, X: Any, y: Any, weights: Any = None, segments: Any = None, groups: Any = None
    ) -> FloatArray:
        """What each prediction counts, (n,): the loss, as the policy counts safer predictions."""
        ladder = self._ladder(X, y, groups)
        return np.asarray(ladder.at(self._safeties(len(ladder), weights, segments)))

    def evaluate(
        self, X: Any, y: Any, weights: Any = None, segments: Any = None, groups: Any = None
    ) -> RiskReport:
        """Risk, selective risk and coverage on rows with true labels, beside the guarantee.

        Parameters
        ----------
        X, y, weights, segments, groups
            As in `fit`.

        Returns
        -------
        report : RiskReport
        """
        ladder = self._ladder(X, y, groups)
        return self._report(ladder, self._safeties(len(ladder), weights, segments))

    def _report(self, ladder: Ladder, safety: FloatArray) -> RiskReport:
        return report(
            ladder,
            safety,
            guarantee=str(self.guarantee_),
            bounds=self._bounds,
            size_of=self._policy.size,
        )

    def score(
        self, X: Any, y: Any, weights: Any = None, segments: Any = None, groups: Any = None
    ) -> float:
        """Minus the mean of what predictions count."""
        return -float(self.task_losses(X, y, weights, segments, groups).mean())

    def stored_parameters(self) -> dict[str, Any]:
        """Parameters as a model file keeps them: estimators themselves, not frozen ones."""
        params: dict[str, Any] = self.get_params(deep=False)
        params["estimator"] = check_estimator(self.estimator)
        if self.defer_to is not None:
            params["defer_to"] = check_estimator(self.defer_to)
        return params

    @property
    def loss_(self) -> Loss:
        """What is guaranteed."""
        check_is_fitted(self, "thresholds_")
        return self._options.loss
