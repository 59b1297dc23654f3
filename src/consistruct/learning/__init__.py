"""Learning: models of the expected target, estimators, metrics, data and model files."""

from consistruct.learning.classifier import TaskLossClassifier
from consistruct.learning.encoding.orders import orders_from_ranks
from consistruct.learning.evaluation.comparison import compare
from consistruct.learning.files.data import read_data
from consistruct.learning.files.known_types import register_type
from consistruct.learning.files.persistence import load, save
from consistruct.learning.structured import StructuredPredictor

__all__ = [
    "StructuredPredictor",
    "TaskLossClassifier",
    "compare",
    "load",
    "orders_from_ranks",
    "read_data",
    "register_type",
    "save",
]


def __dir__() -> list[str]:
    return sorted(__all__)
