"""Checkpoints of long stochastic fits: one safetensors file, replaced atomically."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from consistruct._atomic import atomic_write

__all__ = ["Checkpoint", "read_checkpoint", "write_checkpoint"]

VERSION = 2  # 2: with a checksum


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
    """Replace the file in one step.

    A process that is killed at any moment leaves the old checkpoint or the new one, never half.
    The file gets the mode of any other file that the user makes.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()}
    numbers = json.dumps(checkpoint.numbers)
    header = {
        "format": "consistruct checkpoint",
        "version": str(VERSION),
        "fingerprint": checkpoint.fingerprint,
        "numbers": numbers,
        "sha256": _digest(arrays, numbers, checkpoint.fingerprint),
    }
    with atomic_write(path) as stream:
        stream.write(save(arrays, metadata=header))


def _digest(arrays: dict[str, NDArray[Any]], numbers: str, fingerprint: str) -> str:
    """SHA-256 of all that a checkpoint holds, whatever the order in the file."""
    digest = hashlib.sha256(json.dumps([numbers, fingerprint]).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read_checkpoint(path: str | Path, fingerprint: str | None = None) -> Checkpoint | None:
    """The checkpoint at `path`, or None if there is none yet; any fingerprint if none is given.

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
            f"checkpoint {source.name} is damaged ({error}); delete it to start again"
        ) from None
    if header.get("format") != "consistruct checkpoint" or header.get("version") != str(VERSION):
        raise ValueError(
            f"{source.name} is not a checkpoint of version {VERSION} of this package; delete it, "
            "or choose another file"
        )
    written = header.get("numbers", ""), header.get("fingerprint", "")
    if _digest(arrays, *written) != header.get("sha256"):
        raise ValueError(
            f"checkpoint {source.name} is damaged (its checksum does not match); delete it to "
            "start again"
        )
    if fingerprint is not None and header.get("fingerprint") != fingerprint:
        raise ValueError(
            f"checkpoint {source.name} belongs to a fit with other data or parameters; delete it, "
            "choose another file, or repeat the call with the same random_state"
        )
    return Checkpoint(arrays, json.loads(header["numbers"]), header["fingerprint"])
