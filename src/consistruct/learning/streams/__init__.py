"""Learning from batches: survey them, plan, sum in one pass, finish. Engines only move data."""

from consistruct.learning.streams.fit import fit_stream
from consistruct.learning.streams.plan import Plan, make_plan
from consistruct.learning.streams.sample import RowSample
from consistruct.learning.streams.source import Batch, Source
from consistruct.learning.streams.summary import Summary
from consistruct.learning.streams.survey import Survey, survey_batch

__all__ = [
    "Batch",
    "Plan",
    "RowSample",
    "Source",
    "Summary",
    "Survey",
    "fit_stream",
    "make_plan",
    "survey_batch",
]
