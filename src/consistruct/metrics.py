"""Metrics: what predictions cost, called as scikit-learn's metrics with (y_true, y_pred).

============================ ====================================================================
what decisions cost          `task_loss`, `task_losses`, `example_losses`, `savings`, `profit_curve`
metrics of the whole data    `metric_value`
against the best decisions   `regret`, `normalized_regret`
for model selection          `TaskLossScorer`, `SEQUENCE_SCORERS`
how sure is it               `mean_interval`, `bootstrap_interval`, `selective_curve`
which columns matter         `permutation_importance`
sequences                    `token_error`, `sequence_error`, `chunk_f1`, `sequence_intervals`
============================ ====================================================================

Examples
--------
>>> from consistruct.metrics import task_loss
>>> task_loss([0, 1, 4], [0, 2, 1], loss="ordinal:5")
1.3333333333333333
"""

from consistruct.learning.evaluation.cost_metrics import example_losses, profit_curve, savings
from consistruct.learning.evaluation.importance import permutation_importance
from consistruct.learning.evaluation.intervals import bootstrap_interval, mean_interval
from consistruct.learning.evaluation.regret import normalized_regret, regret
from consistruct.learning.evaluation.selective import selective_curve
from consistruct.learning.evaluation.sequence_metrics import (
    SEQUENCE_SCORERS,
    chunk_f1,
    sequence_error,
    sequence_intervals,
    token_error,
)
from consistruct.learning.evaluation.task_losses import (
    TaskLossScorer,
    metric_value,
    task_loss,
    task_losses,
)

__all__ = [
    "SEQUENCE_SCORERS",
    "TaskLossScorer",
    "bootstrap_interval",
    "chunk_f1",
    "example_losses",
    "mean_interval",
    "metric_value",
    "normalized_regret",
    "permutation_importance",
    "profit_curve",
    "regret",
    "savings",
    "selective_curve",
    "sequence_error",
    "sequence_intervals",
    "task_loss",
    "task_losses",
    "token_error",
]


def __dir__() -> list[str]:
    return sorted(__all__)
