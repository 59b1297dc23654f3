"""consistruct: train for the loss you are judged by, and know beforehand how hard it is."""

from consistruct import calibration, decoding, exceptions, labels, losses, scores
from consistruct.calibration import calibration_function

__version__ = "0.1.0.dev0"

__all__ = [
    "__version__",
    "calibration",
    "calibration_function",
    "decoding",
    "exceptions",
    "labels",
    "losses",
    "scores",
]
