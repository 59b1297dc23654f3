"""When methods of estimators exist, and what is logged while they fit."""

from __future__ import annotations

import logging
from typing import Any

from sklearn.utils.metaestimators import available_if

from consistruct.learning.statistics import ClassProbabilities

__all__ = ["can_stream", "has_probabilities", "streams", "verbosity"]


def has_probabilities(estimator: Any) -> bool:
    """Whether predict_proba exists: the model estimates probabilities of classes."""
    if isinstance(getattr(estimator, "statistic_", None), ClassProbabilities):
        return True
    raise AttributeError("predict_proba needs a fitted model that estimates class probabilities")


def can_stream(estimator: Any) -> bool:
    """Whether partial_fit exists: the model has it."""
    model = getattr(estimator, "model_", estimator.model)
    if getattr(model, "can_stream", False):
        return True
    raise AttributeError(
        f"partial_fit needs a model with stochastic training, such as "
        f"consistruct.models.Ridge(solver='sgd'); got model={estimator.model!r}"
    )


streams = available_if(can_stream)


class verbosity:  # noqa: N801 - used like a function
    """Show the package's messages while fitting: 1 for progress, 2 for details."""

    def __init__(self, verbose: int) -> None:
        self._level = (
            logging.NOTSET if not verbose else logging.INFO if verbose == 1 else logging.DEBUG
        )

    def __enter__(self) -> None:
        self._logger = logging.getLogger("consistruct")
        self._before = self._logger.level
        self._handler: logging.Handler | None = None
        if self._level != logging.NOTSET:
            self._logger.setLevel(self._level)
            if not self._logger.hasHandlers():
                self._handler = logging.StreamHandler()
                self._logger.addHandler(self._handler)

    def __exit__(self, *error: object) -> None:
        self._logger.setLevel(self._before)
        if self._handler is not None:
            self._logger.removeHandler(self._handler)
