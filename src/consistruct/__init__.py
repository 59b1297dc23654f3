"""consistruct: train for the loss you are judged by, and know beforehand how hard it is."""

from consistruct import decoding, exceptions, labels, losses, scores

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "decoding", "exceptions", "labels", "losses", "scores"]
