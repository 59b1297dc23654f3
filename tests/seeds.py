"""Seeds of the suites that draw their cases: CONSISTRUCT_SEED=7 gives others than every day's."""

from __future__ import annotations

import os

import numpy as np

__all__ = ["SEED", "generator"]

SEED = int(os.environ.get("CONSISTRUCT_SEED", "0"))


def generator(*words: int) -> np.random.Generator:
    """The generator of one case; seed 0, the default, is ``default_rng(words)``."""
    return np.random.default_rng([*words, SEED])
