"""Decisions of least expected loss from any model's output.

decide.py              the front door: which way leads from what was given to decisions
result.py              `Decisions`, what every way returns
from_probabilities.py  probabilities, expected relevance, predicted costs
from_samples.py        draws of the true label, and candidates compared by any metric
"""

from consistruct.decisions.decide import decide
from consistruct.decisions.result import Decisions

__all__ = ["Decisions", "decide"]


def __dir__() -> list[str]:
    return sorted(__all__)
