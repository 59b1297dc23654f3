"""Learning: score maps, solvers, estimators, metrics, data and model files."""

from consistruct.learning.averaged_sgd import AveragedSGD
from consistruct.learning.classifier import TaskLossClassifier
from consistruct.learning.closed_form import ClosedForm
from consistruct.learning.data_files import DataSet, read_data
from consistruct.learning.feature_maps import (
    FeatureMap,
    KernelFeatures,
    LinearFeatures,
    NystroemFeatures,
    RandomFeatures,
    TransformerFeatures,
)
from consistruct.learning.kernels import Kernel
from consistruct.learning.lbfgs import LBFGS
from consistruct.learning.metrics import TaskLossScorer, task_loss, task_losses
from consistruct.learning.order_labels import orders_from_ranks
from consistruct.learning.paper_sgd import PaperSGD
from consistruct.learning.persistence import ModelFile, load, read_model, save
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.solver import SolverResult
from consistruct.learning.solvers import SOLVERS
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
