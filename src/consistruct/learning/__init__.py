"""Learning: models of the expected target, estimators, metrics, data and model files."""

from consistruct.learning.classifier import TaskLossClassifier
from consistruct.learning.encoding.orders import orders_from_ranks
from consistruct.learning.evaluation.comparison import Comparison, ComparisonRow, compare
from consistruct.learning.files.data import DataSet, read_data
from consistruct.learning.files.known_types import register_type
from consistruct.learning.files.persistence import ModelFile, load, read_model, save
from consistruct.learning.metrics import (
    Importance,
    Interval,
    ProfitCurve,
    SelectiveCurve,
    TaskLossScorer,
    bootstrap_interval,
    example_losses,
    mean_interval,
    metric_value,
    permutation_importance,
    profit_curve,
    savings,
    selective_curve,
    task_loss,
    task_losses,
)
from consistruct.learning.structured import StructuredPredictor

__all__ = [
    "Comparison",
    "ComparisonRow",
    "DataSet",
    "Importance",
    "Interval",
    "ModelFile",
    "ProfitCurve",
    "SelectiveCurve",
    "StructuredPredictor",
    "TaskLossClassifier",
    "TaskLossScorer",
    "bootstrap_interval",
    "compare",
    "example_losses",
    "load",
    "mean_interval",
    "metric_value",
    "orders_from_ranks",
    "permutation_importance",
    "profit_curve",
    "read_data",
    "read_model",
    "register_type",
    "save",
    "savings",
    "selective_curve",
    "task_loss",
    "task_losses",
]
