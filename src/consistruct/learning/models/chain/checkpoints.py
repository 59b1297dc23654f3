"""Training states of chains as checkpoints: written whole or not at all, continued bit for bit."""

from __future__ import annotations

import os

import numpy as np

from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.models.chain.chain_weights import ChainModel
from consistruct.learning.models.chain.sgd import TrainingState

__all__ = ["load_checkpoint", "save_checkpoint"]

COUNTERS = ("epoch", "n_snapshots", "step_factor", "history", "best_error", "epochs_since_best")
ARRAYS = ("weights", "bias", "edges", "start", "end", "edge_weights")


def save_checkpoint(
    path: str | os.PathLike[str],
    state: TrainingState,
    rng: np.random.Generator,
    fingerprint: str,
) -> None:
    """Write the state and that of the generator."""
    models = {"model": state.model, "average": state.average, "best": state.best}
    arrays = {
        f"{prefix}.{name}": array
        for prefix, model in models.items()
        if model is not None
        for name, array in zip(ARRAYS, model.arrays(), strict=True)
    }
    numbers = {name: getattr(state, name) for name in COUNTERS}
    numbers["generator"] = rng.bit_generator.state
    write_checkpoint(os.fspath(path), Checkpoint(arrays, numbers, fingerprint))


def load_checkpoint(
    path: str | os.PathLike[str], rng: np.random.Generator, fingerprint: str
) -> TrainingState | None:
    """The state in the file, with `rng` set back to that moment; None if there is no file."""
    found = read_checkpoint(os.fspath(path), fingerprint)
    if found is None:
        return None
    models = {
        prefix: ChainModel(*(found.arrays[f"{prefix}.{name}"] for name in ARRAYS))
        for prefix in ("model", "average", "best")
        if f"{prefix}.bias" in found.arrays
    }
    rng.bit_generator.state = found.numbers["generator"]
    return TrainingState(
        model=models["model"],
        average=models["average"],
        best=models.get("best"),
        **{name: found.numbers[name] for name in COUNTERS},
    )
