"""What a classifier for a metric does besides what one for a loss does."""

from __future__ import annotations

from typing import Any

import numpy as np

from consistruct._frames import as_array, labels_by_name
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.fitted_classes import class_columns
from consistruct.learning.encoding.kinds import Examples
from consistruct.learning.estimator import TargetEstimator
from consistruct.learning.models.base import TargetModel
from consistruct.learning.rules.deciding import choose_rule, confusion_of, group_codes, rule_loss
from consistruct.learning.rules.mixtures import drawn_members
from consistruct.learning.rules.rule import MetricRule
from consistruct.learning.selection.cross_fitting import cross_fit
from consistruct.losses.metrics import Metric
from consistruct.protocols import FloatArray

__all__ = ["MetricDecisions"]

FOLDS = 5  # where the model has no out-of-fold estimates of its own and cv is None


class MetricDecisions(TargetEstimator):
    """Mixed into `TaskLossClassifier`: decisions for a metric, chosen on out-of-fold rows."""

    metric_: Metric
    rule_: MetricRule

    def _choose_rule(
        self,
        metric: Metric,
        model: TargetModel,
        examples: Examples,
        requested: Statistic,
        cv: Any,
        rng: np.random.Generator,
    ) -> None:
        """Find the decisions that make the metric large on out-of-fold rows, and decide so."""
        self._require_estimates(f"decisions for {metric!r}")
        self.path_ = dict(getattr(self.model_, "path_", {}))
        if self._recalibration_requested():
            left = cross_fit(model, examples, requested, cv=cv, rng=rng, n_jobs=self.n_jobs)
        else:
            try:
                left = self.model_.out_of_fold()
            except CapabilityError:
                left = cross_fit(model, examples, requested, cv=FOLDS, rng=rng, n_jobs=self.n_jobs)
        names = getattr(self, "feature_names_in_", None)
        groups, values = group_codes(metric, examples.inputs, names)
        self.rule_, self.recalibration_ = choose_rule(
            metric, self.statistic_, left, examples, groups, values, int(rng.integers(2**31))
        )
        sets = self.loss_.true_labels.shape != ()
        self.metric_, self.metric_estimate_ = metric, self.rule_.estimate
        costs = self.rule_.costs
        if not sets:  # by `classes_`; an ordered metric has codes from lowest to highest
            columns = class_columns(self.kind_.labels)
            costs = costs[:, columns[:, None], columns]
        several = sets or self.rule_.several
        self.decision_costs_ = costs if several else costs[0]
        self.optimality_gap_ = self.rule_.gap
        self.loss_ = rule_loss(self.rule_, labels=sets)
        self.statistic_ = self.statistic_.with_loss(self.loss_)
        self.kind_ = self.kind_.with_loss(self.loss_)

    def _codes_of_several(self, inputs: Any) -> Any:
        """Predictions by the costs of each row's group, or by those that are drawn for it."""
        rule, names = self.rule_, getattr(self, "feature_names_in_", None)
        chances = self.recalibration_.for_decisions(self.model_.expected(inputs))
        if rule.groups:
            which, _ = group_codes(rule.metric, inputs, names, rule.groups)
        else:
            which = drawn_members(rule.shares, chances, rule.seed)
        prices = np.einsum("nt,nct->nc", chances, np.asarray(rule.costs)[which])
        return prices.argmin(axis=1)

    def _metric_score(self, X: Any, y: Any, sample_weight: Any) -> float:
        """The metric of the predictions."""
        true_codes = self.label_encoding_.encode(as_array(labels_by_name(self, y)), self.loss_)
        weight = np.ones(len(true_codes)) if sample_weight is None else sample_weight
        codes, k = self._codes(self._read(X)), len(self.classes_)
        return self.metric_.value(confusion_of(self.metric_, codes, true_codes, weight, k))

    def _refuse_several(self, need: str) -> None:
        """Raise where costs differ between rows, so that one matrix cannot tell them."""
        rule: MetricRule | None = getattr(self, "rule_", None)
        if rule is not None and rule.several:
            each = "group" if rule.groups else "rule that is drawn"
            raise CapabilityError(
                rule.metric,
                "one cost matrix for all rows",
                need,
                f"decision_costs_ has one per {each}",
            )

    def expected_losses(self, X: Any) -> FloatArray:
        """Expected loss of every prediction, (n, k): the sorted classes, then other predictions.

        Of a metric: by the costs that were found for it, `decision_costs_`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame

        Returns
        -------
        prices : (n, k) array
        """
        self._refuse_several("expected losses")
        return super().expected_losses(X)

    def predict_expected_loss(self, X: Any, groups: Any = None) -> FloatArray:
        """Expected loss of each prediction, (n,), within the loss's range: how sure the model is.

        Of a metric: by the costs that were found for it, `decision_costs_`.

        Parameters
        ----------
        X : (n, n_features) array, CSR or DataFrame

        Returns
        -------
        expected : (n,) array
        """
        self._refuse_several("expected losses")
        return super().predict_expected_loss(X, groups)
