"""Learning: models of the expected target, estimators, metrics, data and model files."""

from consistruct.learning.classifier import TaskLossClassifier
from consistruct.learning.encoding.orders import orders_from_ranks
from consistruct.learning.files.data import DataSet, read_data
from consistruct.learning.files.known_types import register_type
from consistruct.learning.files.persistence import ModelFile, load, read_model, save
from consistruct.learning.metrics import (
    ProfitCurve,
    TaskLossScorer,
    example_losses,
    metric_value,
    profit_curve,
    savings,
    task_loss,
    task_losses,
)
from consistruct.learning.structured import StructuredPredictor

__all__ = [
    "DataSet",
    "ModelFile",
    "ProfitCurve",
    "StructuredPredictor",
    "TaskLossClassifier",
    "TaskLossScorer",
    "example_losses",
    "load",
    "metric_value",
    "orders_from_ranks",
    "profit_curve",
    "read_data",
    "read_model",
    "register_type",
    "save",
    "savings",
    "task_loss",
    "task_losses",
]
