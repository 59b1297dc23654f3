"""Checkpoints of long stochastic fits: one safetensors file, replaced atomically."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

__all__ = ["Checkpoint", "read_checkpoint", "write_checkpoint"]

VERSION = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that a fit needs to go on as if it had never stopped.

    Attributes
    ----------
    arrays : dict
        Weights, averages and the like, by name.
    numbers : dict
        Scalars and lists that JSON can hold, the state of the generator among them.
    fingerprint : str
        Identifies solver, surrogate, features and data; another one is refused.
    """

    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, Any]
    fingerprint: str


def write_checkpoint(path: str | Path, checkpoint: Checkpoint) -> None:
    """Write to a temporary file beside `path`, flush it to disk, then replace `path`.

    A process that is killed at any moment leaves the old checkpoint or the new one, never half.
    """
    target = Path(path)
    header = {
        "format": "consistruct checkpoint",
        "version": str(VERSION),
        "fingerprint": checkpoint.fingerprint,
        "numbers": json.dumps(checkpoint.numbers),
    }
    arrays = {name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()}
    payload = save(arrays, metadata=header)
    descriptor, temporary = tempfile.mkstemp(prefix=target.name + ".", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_checkpoint(path: str | Path, fingerprint: str) -> Checkpoint | None:
    """The checkpoint at `path`, or None if there is none yet.

    Raises ValueError if the file is damaged, of another version, or belongs to another fit.
    """
    source = Path(path)
    if not source.exists():
        return None
    try:
        with safe_open(source, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"checkpoint {source.name} is damaged ({error}); delete it to start anew"
        ) from None
    if header.get("format") != "consistruct checkpoint" or header.get("version") != str(VERSION):
        raise ValueError(
            f"{source.name} is no checkpoint of version {VERSION} of this package; "
            f"delete it or name another file"
        )
    if header.get("fingerprint") != fingerprint:
        raise ValueError(
            f"checkpoint {source.name} belongs to a fit with other data or parameters; delete it, "
            f"name another file, or repeat the call with the same random_state"
        )
    return Checkpoint(arrays, json.loads(header["numbers"]), fingerprint)
