"""What all decoders share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from numpy.typing import ArrayLike

from consistruct._members import Member
from consistruct.protocols import LabelArray

__all__ = ["SMALLEST_INDEX", "BaseDecoder"]

SMALLEST_INDEX = "smallest index"


class BaseDecoder(Member, ABC):
    """argmax over predictions of ⟨embed(ŷ), θ⟩; exact, ties to the smallest index unless stated."""

    exact: bool = True
    tie_rule: str = SMALLEST_INDEX
    forbids: bool = True  # whether −inf in θ forbids labels; a decoder that differs says how

    @abstractmethod
    def __call__(self, theta: ArrayLike) -> LabelArray: ...
