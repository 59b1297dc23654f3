"""What all decoders share."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct.protocols import FloatArray, LabelArray

__all__ = ["SMALLEST_INDEX", "BaseDecoder", "refuse_all_forbidden"]

SMALLEST_INDEX = "smallest index"


class BaseDecoder(Member, ABC):
    """argmax over predictions of ⟨embed(ŷ), θ⟩; exact, ties to the smallest index unless stated."""

    exact: bool = True
    tie_rule: str = SMALLEST_INDEX
    forbids: bool = True  # whether −inf in θ forbids labels; a decoder that differs says how

    @abstractmethod
    def __call__(self, theta: ArrayLike) -> LabelArray: ...


def refuse_all_forbidden(best: FloatArray) -> None:
    """Raise if some example has no label with a finite score."""
    empty = np.isneginf(best)
    if empty.any():
        raise ValueError(
            f"every label is forbidden (score −inf) for example {int(np.argmax(empty))}; "
            f"leave at least one label possible"
        )
