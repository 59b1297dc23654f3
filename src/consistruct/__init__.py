"""consistruct: train for the loss you are judged by, and know beforehand how hard it is."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from consistruct import decoding, exceptions, labels, losses, scores, surrogates

if TYPE_CHECKING:
    from consistruct import learning
    from consistruct.learning import StructuredPredictor, TaskLossClassifier, metrics

__version__ = "0.1.0.dev0"

__all__ = [
    "StructuredPredictor",
    "TaskLossClassifier",
    "__version__",
    "decoding",
    "exceptions",
    "labels",
    "learning",
    "losses",
    "metrics",
    "scores",
    "surrogates",
]

# Learning needs scikit-learn, which takes longer to import than everything else: only on use.
_LAZY = {
    "learning": ("consistruct.learning", None),
    "metrics": ("consistruct.learning.metrics", None),
    "StructuredPredictor": ("consistruct.learning", "StructuredPredictor"),
    "TaskLossClassifier": ("consistruct.learning", "TaskLossClassifier"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LAZY[name]
    found = import_module(module)
    return found if attribute is None else getattr(found, attribute)
