"""More rows than memory: folders of files, Dask; they feed the sums that `Ridge` learns from."""

from consistruct.distributed.averaging import fit_averaged
from consistruct.distributed.folder import Folder
from consistruct.distributed.jobs import evaluate_folder, fit_folder, predict_folder
from consistruct.distributed.planning import measured_rates, pass_cost
from consistruct.learning.models.ridge.moments import Moments
from consistruct.learning.streams import Batch, Summary, make_plan, survey_batch

__all__ = [
    "Batch",
    "Folder",
    "Moments",
    "Summary",
    "evaluate_folder",
    "fit_averaged",
    "fit_folder",
    "make_plan",
    "measured_rates",
    "pass_cost",
    "predict_folder",
    "survey_batch",
]


def __dir__() -> list[str]:
    return sorted(__all__)
