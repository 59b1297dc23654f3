"""Guarantees: what learning costs before it starts, and which scores to learn with."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from consistruct.guarantees.advice import advise
from consistruct.guarantees.complexity import sample_complexity
from consistruct.guarantees.crossing import crossing_point
from consistruct.guarantees.data_constants import optimum_norm
from consistruct.guarantees.families import low_rank_truncations
from consistruct.guarantees.plan_table import plan_table
from consistruct.guarantees.surrogate_choice import choose_surrogate

if _TYPE_CHECKING:
    from consistruct.guarantees.forecasts import forecast
    from consistruct.guarantees.linter import lint

__all__ = [
    "advise",
    "choose_surrogate",
    "crossing_point",
    "forecast",
    "lint",
    "low_rank_truncations",
    "optimum_norm",
    "plan_table",
    "sample_complexity",
]


def __dir__() -> list[str]:
    return sorted(__all__)


# they load scikit-learn, which a plan without data does not need
_LATE = {"forecast": "consistruct.guarantees.forecasts", "lint": "consistruct.guarantees.linter"}


def __getattr__(name: str) -> _Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_LATE[name]), name)
