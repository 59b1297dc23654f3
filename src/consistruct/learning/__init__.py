"""Learning: score maps, solvers, estimators and metrics."""

from consistruct.learning.averaged_sgd import AveragedSGD
from consistruct.learning.classifier import TaskLossClassifier
from consistruct.learning.closed_form import ClosedForm
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
from consistruct.learning.paper_sgd import PaperSGD
from consistruct.learning.score_map import ScoreMap
from consistruct.learning.solver import SolverResult
from consistruct.learning.solvers import SOLVERS
from consistruct.learning.structured import StructuredPredictor

__all__ = [
    "LBFGS",
    "SOLVERS",
    "AveragedSGD",
    "ClosedForm",
    "FeatureMap",
    "Kernel",
    "KernelFeatures",
    "LinearFeatures",
    "NystroemFeatures",
    "PaperSGD",
    "RandomFeatures",
    "ScoreMap",
    "SolverResult",
    "StructuredPredictor",
    "TaskLossClassifier",
    "TaskLossScorer",
    "TransformerFeatures",
    "task_loss",
    "task_losses",
]
