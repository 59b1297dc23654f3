"""Guarantees: what learning costs before it starts, and which scores to learn with."""

from consistruct.guarantees.advice import Advice, FamilyGuarantee, advise
from consistruct.guarantees.complexity import GuaranteeColumn, SampleComplexity, sample_complexity
from consistruct.guarantees.crossing import crossing_point
from consistruct.guarantees.data import optimum_norm
from consistruct.guarantees.families import low_rank_truncations
from consistruct.guarantees.figure_data import FIGURES, Figure, figure_data
from consistruct.guarantees.plan_table import PlanRow, plan_table

__all__ = [
    "FIGURES",
    "Advice",
    "FamilyGuarantee",
    "Figure",
    "GuaranteeColumn",
    "PlanRow",
    "SampleComplexity",
    "advise",
    "crossing_point",
    "figure_data",
    "low_rank_truncations",
    "optimum_norm",
    "plan_table",
    "sample_complexity",
]
