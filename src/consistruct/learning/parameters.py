"""The loss of an estimator: its fields as parameters, as files keep it, a change after fitting."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from consistruct._members import Member
from consistruct.decisions.recalibration import Recalibration
from consistruct.decisions.statistics import Statistic
from consistruct.learning.encoding.fitted_classes import loss_in_code_order
from consistruct.learning.encoding.kinds import Kind
from consistruct.losses import parse_loss
from consistruct.losses.base import Loss, Sizes
from consistruct.losses.costs.tables import loss_with_rows
from consistruct.losses.metrics import is_metric

__all__ = ["LossParameters"]

FITTED_FOR = (
    "metric_",
    "rule_",
    "decision_costs_",
    "metric_estimate_",
    "optimality_gap_",
    "example_costs_",
)


class LossParameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """An estimator with a parameter `loss`, whose fields can be searched: ``loss__beta``."""

    loss: Any
    loss_: Loss
    kind_: Kind
    statistic_: Statistic
    recalibration_: Recalibration

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, also those of the model and the fields of a loss object."""
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.loss, Member):
            for field in dataclasses.fields(self.loss):  # type: ignore[arg-type]
                params[f"loss__{field.name}"] = getattr(self.loss, field.name)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__beta=2`` replaces the frozen loss by one with that field."""
        changes = {key: params.pop(key) for key in list(params) if key.startswith("loss__")}
        super().set_params(**params)
        if not changes:
            return self
        fields = {key.removeprefix("loss__"): value for key, value in changes.items()}
        if not isinstance(self.loss, Member):
            raise ValueError(
                f"{next(iter(changes))} changes a field of a loss object, but loss is "
                f"{self.loss!r}; pass an object first"
            )
        known = [field.name for field in dataclasses.fields(self.loss)]  # type: ignore[arg-type]
        unknown = [field for field in fields if field not in known]
        if unknown:
            raise ValueError(
                f"{type(self.loss).__name__} has no field {unknown[0]!r}; "
                f"its fields are {', '.join(known)}"
            )
        self.loss = dataclasses.replace(self.loss, **fields)  # type: ignore[type-var]
        return self

    def stored_parameters(self) -> dict[str, Any]:
        """Parameters as a model file keeps them: a table of costs becomes a loss."""
        params: dict[str, Any] = super().get_params(deep=False)
        if hasattr(self, "example_costs_"):
            return params  # rows are those of the costs that come with new examples
        params["loss"] = self.loss_as_given()
        if "rows" in params:
            params["rows"] = None  # the loss has its rows where they belong
        return params

    def loss_as_given(self) -> Any:
        """Return the parameter `loss`; a table of costs, or a file of them, is read by `rows`."""
        return loss_with_rows(self.loss, getattr(self, "rows", None))

    def set_loss(self, loss: Any, *, rows: Any = None) -> Self:
        """Judge and decide by another loss from now on, without fitting again.

        Possible where the model estimates something finer than the target of its loss: class
        probabilities serve every loss over the same classes.

        Parameters
        ----------
        loss : Loss, str or table of costs
            Matched with `classes_` by the names of its classes; without names, in that order.
        rows : "pred" or "true", optional
            What the rows of a table of costs are, where it does not say so itself.

        Returns
        -------
        self
        """
        check_is_fitted(self, "model_")
        if is_metric(loss):
            raise ValueError(
                f"{loss!r} is a metric of the whole data set: its decisions are chosen on rows "
                f"out of fold during fitting; fit again with loss={loss!r}"
            )
        loss = loss_with_rows(loss, rows)
        if isinstance(loss, str):
            size = self.loss_.true_labels.size
            loss = parse_loss(loss, sizes=Sizes(n_classes=size, n_states=size))
        loss = loss_in_code_order(loss, self.kind_.labels)
        statistic, kind = self.statistic_.with_loss(loss), self.kind_.with_loss(loss)
        self.loss = self.loss_ = loss
        self.statistic_, self.kind_ = statistic, kind
        self.recalibration_ = self.recalibration_.for_another_loss()
        if "rows" in self.get_params(deep=False):
            self.set_params(rows=None)  # a new loss has its rows where they belong
        for name in FITTED_FOR:  # the loss takes the place of the metric or costs of the fit
            self.__dict__.pop(name, None)
        return self
