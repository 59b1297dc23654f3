"""consistruct: train for the loss you are judged by, and know beforehand how hard it is."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from consistruct import decoding, exceptions, labels, losses, oracles, scores, surrogates

if _TYPE_CHECKING:
    from consistruct import audit, calibration, distributed, guarantees, learning
    from consistruct.calibration import calibration_function
    from consistruct.guarantees import advise, forecast, sample_complexity
    from consistruct.guarantees.risk import RiskControl
    from consistruct.learning import (
        StructuredPredictor,
        TaskLossClassifier,
        compare,
        metrics,
        models,
    )
    from consistruct.report import learning_report

__version__ = "0.1.0.dev0"

__all__ = [
    "RiskControl",
    "StructuredPredictor",
    "TaskLossClassifier",
    "__version__",
    "advise",
    "audit",
    "calibration",
    "calibration_function",
    "compare",
    "decoding",
    "distributed",
    "exceptions",
    "forecast",
    "guarantees",
    "labels",
    "learning",
    "learning_report",
    "losses",
    "metrics",
    "models",
    "oracles",
    "sample_complexity",
    "scores",
    "surrogates",
]

# scikit-learn and the solvers take longer to import than everything else: only on use
_LAZY = {
    "advise": ("consistruct.guarantees", "advise"),
    "audit": ("consistruct.audit", None),
    "calibration": ("consistruct.calibration", None),
    "calibration_function": ("consistruct.calibration", "calibration_function"),
    "distributed": ("consistruct.distributed", None),
    "forecast": ("consistruct.guarantees", "forecast"),
    "guarantees": ("consistruct.guarantees", None),
    "learning": ("consistruct.learning", None),
    "learning_report": ("consistruct.report", "learning_report"),
    "metrics": ("consistruct.metrics", None),
    "models": ("consistruct.models", None),
    "compare": ("consistruct.learning", "compare"),
    "RiskControl": ("consistruct.guarantees.risk", "RiskControl"),
    "sample_complexity": ("consistruct.guarantees", "sample_complexity"),
    "StructuredPredictor": ("consistruct.learning", "StructuredPredictor"),
    "TaskLossClassifier": ("consistruct.learning", "TaskLossClassifier"),
}


# packages above the model files, by the prefix of their types in files
_TYPES = {"guarantees": "consistruct.guarantees.risk"}


def import_types(prefix: str) -> None:
    """Import the package that tells model files about types of this prefix, if there is one."""
    if prefix in _TYPES:
        _import_module(_TYPES[prefix])


def __getattr__(name: str) -> _Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    found = _import_module(module)
    return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
