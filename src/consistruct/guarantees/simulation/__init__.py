"""The paper's learning theorems on problems whose risks are known exactly."""

from consistruct.guarantees.simulation.curves import (
    VARIANTS,
    LearningCurve,
    LearningPoint,
    learning_curve,
)
from consistruct.guarantees.simulation.hardness import (
    HardnessFit,
    HardnessRow,
    HardnessStudy,
    hardness_study,
)
from consistruct.guarantees.simulation.problem import SyntheticProblem, synthetic_problem

__all__ = [
    "VARIANTS",
    "HardnessFit",
    "HardnessRow",
    "HardnessStudy",
    "LearningCurve",
    "LearningPoint",
    "SyntheticProblem",
    "hardness_study",
    "learning_curve",
    "synthetic_problem",
]
