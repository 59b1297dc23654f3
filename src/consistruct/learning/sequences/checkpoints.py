"""Checkpoints of training: written whole or not at all, continued bit for bit."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from consistruct.learning.sequences.chain_model import ChainModel
from consistruct.learning.sequences.sgd import TrainingState

__all__ = ["load_checkpoint", "save_checkpoint"]

COUNTERS = ("epoch", "n_snapshots", "step_factor", "history", "best_error", "epochs_since_best")
NAMES = ("weights", "bias", "edges", "start", "end")


def save_checkpoint(
    path: str | os.PathLike[str],
    state: TrainingState,
    rng: np.random.Generator,
    fingerprint: str,
) -> None:
    """Write to a temporary file in the same folder, then rename: a reader never sees half of it."""
    target = Path(path)
    arrays: dict[str, Any] = {}
    models = {"model": state.model, "average": state.average, "best": state.best}
    for prefix, model in models.items():
        if model is None:
            continue
        for name, array in zip(NAMES, model.arrays(), strict=True):
            arrays[f"{prefix}_{name}"] = array
    header = {
        "fingerprint": fingerprint,
        **{name: getattr(state, name) for name in COUNTERS},
        "rng": rng.bit_generator.state,
    }
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load_checkpoint(
    path: str | os.PathLike[str], rng: np.random.Generator, fingerprint: str
) -> TrainingState | None:
    """The state in the file, with `rng` set back to that moment; None if there is no file."""
    if not Path(path).exists():
        return None
    with np.load(path, allow_pickle=False) as archive:
        header = json.loads(str(archive["header"]))
        if header["fingerprint"] != fingerprint:
            raise ValueError(
                f"the checkpoint {path} was made with other data or settings; "
                f"remove it or give another path"
            )
        models = {
            prefix: ChainModel(*(archive[f"{prefix}_{name}"] for name in NAMES))
            for prefix in ("model", "average", "best")
            if f"{prefix}_bias" in archive
        }
    rng.bit_generator.state = header["rng"]
    return TrainingState(
        model=models["model"],
        average=models["average"],
        best=models.get("best"),
        **{name: header[name] for name in COUNTERS},
    )
