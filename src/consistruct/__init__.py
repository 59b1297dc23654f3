"""consistruct: train for the loss you are judged by, and know beforehand how hard it is."""

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from consistruct import (
        calibration,
        decisions,
        distributed,
        exceptions,
        guarantees,
        learning,
        losses,
        metrics,
        models,
        structures,
        surrogates,
    )
    from consistruct.calibration import calibration_function
    from consistruct.decisions import decide
    from consistruct.guarantees import advise, forecast, lint, sample_complexity
    from consistruct.guarantees.risk import RiskControl
    from consistruct.learning import StructuredPredictor, TaskLossClassifier, compare
    from consistruct.report import learning_report

    __version__: str

__all__ = [
    "RiskControl",
    "StructuredPredictor",
    "TaskLossClassifier",
    "__version__",
    "advise",
    "calibration",
    "calibration_function",
    "compare",
    "decide",
    "decisions",
    "distributed",
    "exceptions",
    "forecast",
    "guarantees",
    "learning",
    "learning_report",
    "lint",
    "losses",
    "metrics",
    "models",
    "sample_complexity",
    "structures",
    "surrogates",
]

# everything on first use: whoever requests a loss does not wait for scikit-learn and the solvers
_LAZY = {
    "advise": ("consistruct.guarantees", "advise"),
    "calibration": ("consistruct.calibration", None),
    "calibration_function": ("consistruct.calibration", "calibration_function"),
    "compare": ("consistruct.learning", "compare"),
    "decide": ("consistruct.decisions", "decide"),
    "decisions": ("consistruct.decisions", None),
    "distributed": ("consistruct.distributed", None),
    "exceptions": ("consistruct.exceptions", None),
    "forecast": ("consistruct.guarantees", "forecast"),
    "guarantees": ("consistruct.guarantees", None),
    "learning": ("consistruct.learning", None),
    "learning_report": ("consistruct.report", "learning_report"),
    "lint": ("consistruct.guarantees", "lint"),
    "losses": ("consistruct.losses", None),
    "metrics": ("consistruct.metrics", None),
    "models": ("consistruct.models", None),
    "RiskControl": ("consistruct.guarantees.risk", "RiskControl"),
    "sample_complexity": ("consistruct.guarantees", "sample_complexity"),
    "StructuredPredictor": ("consistruct.learning", "StructuredPredictor"),
    "structures": ("consistruct.structures", None),
    "surrogates": ("consistruct.surrogates", None),
    "TaskLossClassifier": ("consistruct.learning", "TaskLossClassifier"),
}


# packages above the model files, by the prefix of their types in files
_TYPES = {"guarantees": "consistruct.guarantees.risk"}


def _import_types(prefix: str) -> None:
    """Import the package that tells model files about types of this prefix, if there is one."""
    if prefix in _TYPES:
        _import_module(_TYPES[prefix])


def _installed_version() -> str:
    """The version that was built from the tags; a bare source tree on the path has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("consistruct")
    except PackageNotFoundError:
        return "0+unknown"


if not _typing.TYPE_CHECKING:  # type checkers know the names above, and find misspelled ones

    def __getattr__(name: str) -> _typing.Any:
        if name == "__version__":
            return _installed_version()
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _LAZY[name]
        found = _import_module(module)
        return found if attribute is None else getattr(found, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
