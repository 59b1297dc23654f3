"""Decisions of least expected loss from any model's output.

decide.py              the front door: which way leads from what was given to decisions
result.py              `Decisions`, what every way returns
from_probabilities.py  probabilities, expected relevance, predicted costs
from_samples.py        draws of the true label, and candidates compared by any metric
reading.py             arrays, frames and lists; what people get wrong about them
recalibration.py       temperature and isotonic regression, by rows with known labels
limits.py              at most so many rows of a prediction
statistics.py          what a decision is computed from; `learning` averages it
classes.py             names of classes: of a loss, of columns, of decisions
uncertain.py           costs that are known up to ranges
wrapper.py             `DecideBy`, for pipelines and searches
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from consistruct.decisions.decide import decide
from consistruct.decisions.result import Decisions
from consistruct.decisions.uncertain import CostRanges

if _TYPE_CHECKING:
    from consistruct.decisions.wrapper import DecideBy

__all__ = ["CostRanges", "DecideBy", "Decisions", "decide"]


if not _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any:
        # scikit-learn takes a second to import, and only the wrapper needs it
        if name == "DecideBy":
            return _import_module("consistruct.decisions.wrapper").DecideBy
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
