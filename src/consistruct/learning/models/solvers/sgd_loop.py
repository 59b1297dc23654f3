"""The loop of averaged SGD, the same for tables and for chains.

A problem knows how to pass over its examples once and what the averaged weights are; the loop
counts epochs, stops, keeps the best weights on held-out examples, and writes checkpoints.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from consistruct._progress import advance
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint

__all__ = ["Arrays", "EpochsDone", "StochasticProblem", "run_epochs"]

logger = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


class StochasticProblem(Protocol):
    """Data, and a state that epochs over them change."""

    def epoch(self, rng: np.random.Generator) -> float:
        """One pass over the examples in random order; the mean risk met on the way."""

    def averaged(self) -> Arrays:
        """The averaged weights so far, as arrays that later epochs leave alone."""

    def arrays(self) -> Arrays:
        """All arrays of the state."""

    def numbers(self) -> dict[str, Any]:
        """All numbers of the state, as JSON holds them."""

    def restore(self, arrays: Arrays, numbers: dict[str, Any]) -> None:
        """Go back to a state that `arrays` and `numbers` hold."""


@dataclass(frozen=True, eq=False)
class EpochsDone:
    """The averaged weights, how many epochs, their risks (held-out where there are)."""

    weights: Arrays
    n_epochs: int
    risks: list[float]


def run_epochs(
    problem: StochasticProblem,
    *,
    max_epochs: int,
    rng: np.random.Generator,
    patience: int | None = None,
    tol: float = 0.0,
    validate: Callable[[Arrays], float] | None = None,
    checkpoint: str | None = None,
    fingerprint: str = "",
) -> EpochsDone:
    """Epochs until `max_epochs`, or until `patience` of them brought no progress.

    Parameters
    ----------
    problem : StochasticProblem
    patience : int, optional
        Stop when the risk improved by less than the share `tol` for so many epochs; None never
        stops early.
    validate : function of the weights, optional
        The risk on held-out examples; the weights with the least are kept. Without it the risk is
        the one met on the way, and the last weights count.
    checkpoint : str, optional
        File that is written after each epoch and continued from if it exists.
    fingerprint : str
        Identifies the fit; a checkpoint of another one is refused.
    """
    risks: list[float] = []
    best, best_risk, stale = None, np.inf, 0
    found = None if checkpoint is None else read_checkpoint(checkpoint, fingerprint)
    if found is not None:
        problem.restore(_without(found.arrays, "state."), found.numbers["state"])
        risks, stale = list(found.numbers["risks"]), int(found.numbers["stale"])
        best_risk = min(risks, default=np.inf)
        best = _without(found.arrays, "best.") or None
        rng.bit_generator.state = found.numbers["generator"]
    started = time.perf_counter()
    while len(risks) < max_epochs and (patience is None or stale < patience):
        advance(f"epoch {len(risks) + 1}", len(risks), max_epochs)
        risk = problem.epoch(rng)
        if validate is not None:
            weights = problem.averaged()
            risk = validate(weights)
            if best is None or risk < best_risk:
                best = weights
        progress = risk < best_risk - tol * abs(best_risk) if risks else True
        stale = 0 if progress else stale + 1
        best_risk = min(best_risk, risk)
        risks.append(float(risk))
        logger.info(
            "epoch %d: %s %.6g, %.1f s",
            len(risks),
            "risk" if validate is None else "held-out loss",
            risk,
            time.perf_counter() - started,
        )
        if checkpoint is not None:
            arrays = {f"state.{name}": array for name, array in problem.arrays().items()}
            arrays |= {f"best.{name}": array for name, array in (best or {}).items()}
            numbers = {
                "state": problem.numbers(),
                "risks": risks,
                "stale": stale,
                "generator": rng.bit_generator.state,
            }
            write_checkpoint(checkpoint, Checkpoint(arrays, numbers, fingerprint))
    return EpochsDone(problem.averaged() if best is None else best, len(risks), risks)


def _without(arrays: Arrays, prefix: str) -> Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
