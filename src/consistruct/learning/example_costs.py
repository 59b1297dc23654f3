"""Costs of each example in place of a loss: at fit time, and of new examples at predict time."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_consistent_length, column_or_1d

from consistruct._frames import as_array
from consistruct._validation import check_loss_matrix
from consistruct.decisions.from_probabilities import row_losses
from consistruct.learning.encoding.costs import CostLabels, example_costs
from consistruct.learning.encoding.kinds import (
    Examples,
    Rows,
    check_sample_weight,
    checked_groups,
    combined_weight,
)
from consistruct.learning.encoding.labels import loss_class
from consistruct.losses import CostVectors, ZeroOne
from consistruct.losses.costs.tables import cost_tensor
from consistruct.protocols import FloatArray

__all__ = ["ExampleCosts"]


class ExampleCosts:
    """For a classifier with a `loss`, a `class_weight` and `predict_proba`."""

    loss: Any
    class_weight: Any
    rows: Any
    classes_: Any
    predict_proba: Any

    def _cost_vectors(
        self, X: Any, y: Any, sample_weight: Any, costs: Any, groups: Any
    ) -> Examples:
        self._refuse_two_losses()
        if y is not None:
            y = column_or_1d(as_array(y), warn=True)
            check_consistent_length(X, y)
        elif self.class_weight is not None:
            raise ValueError("class_weight needs y, the classes of the rows, got y=None")
        values, classes = example_costs(costs, y)
        check_consistent_length(X, values)
        values = check_loss_matrix(values, "costs", copy=False, true_labels="row")
        loss = CostVectors(len(classes), float(values.max()) or 1.0)
        encoding = CostLabels(classes)
        codes = encoding.encode(values, loss)
        self.classes_ = encoding.class_names(loss)
        if y is None:
            weight = check_sample_weight(sample_weight, len(codes))
        else:
            weight = combined_weight(sample_weight, self.class_weight, y)
        return Examples(Rows(loss, encoding), X, codes, weight, checked_groups(groups, len(codes)))

    def _refuse_two_losses(self) -> None:
        if loss_class(self.loss) not in (ZeroOne, CostVectors):
            raise ValueError(
                f"costs= replace the loss, but loss is {self.loss!r}; omit one of them"
            )

    def _require_costs(self, costs: Any, call: str) -> None:
        """Raise if the costs of new examples are needed and not given."""
        if costs is None and getattr(self, "example_costs_", False):
            raise ValueError(
                "the model was fitted with costs per example; pass those of the new examples to "
                f"{call}, or use set_loss for costs that are the same for all"
            )

    def _prices(self, X: Any, costs: Any) -> FloatArray:
        """Σ_t p(t | x) costs[c, t] of every row, (n, k)."""
        self._require_costs(costs, "predict(X, costs=…)")
        probabilities = self.predict_proba(X)
        tensor = cost_tensor(costs, len(probabilities), probabilities.shape[1], self.rows)
        return row_losses(tensor, probabilities)
