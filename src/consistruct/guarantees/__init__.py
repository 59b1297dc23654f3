"""Guarantees: what learning costs before it starts, and which scores to learn with."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from consistruct.guarantees.advice import Advice, FamilyGuarantee, advise
from consistruct.guarantees.complexity import GuaranteeColumn, SampleComplexity, sample_complexity
from consistruct.guarantees.constants import Accuracy, default_accuracy
from consistruct.guarantees.crossing import crossing_point
from consistruct.guarantees.data_constants import optimum_norm
from consistruct.guarantees.families import low_rank_truncations
from consistruct.guarantees.plan_table import PlanRow, plan_table
from consistruct.guarantees.surrogate_choice import (
    SurrogateAdvice,
    SurrogateGuarantee,
    choose_surrogate,
)

if _TYPE_CHECKING:
    from consistruct.guarantees.forecasts import Forecast, PowerLaw, RowsNeeded, forecast

__all__ = [
    "Accuracy",
    "Advice",
    "FamilyGuarantee",
    "Forecast",
    "GuaranteeColumn",
    "PlanRow",
    "PowerLaw",
    "RowsNeeded",
    "SampleComplexity",
    "SurrogateAdvice",
    "SurrogateGuarantee",
    "advise",
    "choose_surrogate",
    "crossing_point",
    "default_accuracy",
    "forecast",
    "low_rank_truncations",
    "optimum_norm",
    "plan_table",
    "sample_complexity",
]

_REFITTING = ("Forecast", "PowerLaw", "RowsNeeded", "forecast")


def __getattr__(name: str) -> _Any:
    """Forecasts refit models: they load scikit-learn, which a plan without data does not need."""
    if name not in _REFITTING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_import_module("consistruct.guarantees.forecasts"), name)
    globals()[name] = found
    return found
