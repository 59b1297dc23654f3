"""Learning: score maps, solvers, estimators, metrics, data and model files."""

from consistruct.learning.classifier import TaskLossClassifier
from consistruct.learning.encoding.orders import orders_from_ranks
from consistruct.learning.files.data import DataSet, read_data
from consistruct.learning.files.persistence import ModelFile, load, read_model, save
from consistruct.learning.metrics import TaskLossScorer, task_loss, task_losses
from consistruct.learning.models.features.feature_maps import (
    FeatureMap,
    KernelFeatures,
    LinearFeatures,
    NystroemFeatures,
    RandomFeatures,
    TransformerFeatures,
)
from consistruct.learning.models.features.kernels import Kernel
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.learning.models.solvers.base import SolverResult
from consistruct.learning.models.solvers.choice import SOLVERS
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.learning.models.solvers.score_map import ScoreMap
from consistruct.learning.structured import StructuredPredictor

__all__ = [
    "LBFGS",
    "SOLVERS",
    "AveragedSGD",
    "ClosedForm",
    "DataSet",
    "FeatureMap",
    "Kernel",
    "KernelFeatures",
    "LinearFeatures",
    "ModelFile",
    "NystroemFeatures",
    "PaperSGD",
    "RandomFeatures",
    "ScoreMap",
    "SolverResult",
    "StructuredPredictor",
    "TaskLossClassifier",
    "TaskLossScorer",
    "TransformerFeatures",
    "load",
    "orders_from_ranks",
    "read_data",
    "read_model",
    "save",
    "task_loss",
    "task_losses",
]
