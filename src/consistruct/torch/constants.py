"""Arrays of a loss on the device of a network, in the precision of its scores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["Constants", "autocast_off", "can_check", "ensure", "working"]


NOTHING = nullcontext()  # holds no state: one serves all


class Constants(nn.Module):
    """A module that holds arrays known from the loss and nothing that is learned.

    They move with the module and keep their precision when a network is cast to half: each is there
    in float64, for float64 scores, and in float32, for all others. They are rebuilt from the loss,
    so a state_dict has no entry for them.
    """

    def hold(self, name: str, array: Any) -> None:
        double = torch.as_tensor(np.array(array, dtype=np.float64))
        self.register_buffer(f"{name}_64", double, persistent=False)
        self.register_buffer(f"{name}_32", double.float(), persistent=False)

    def hold_index(self, name: str, array: Any) -> None:
        self.register_buffer(
            name, torch.as_tensor(np.array(array, dtype=np.int64)), persistent=False
        )

    def held(self, name: str, dtype: torch.dtype) -> Tensor:
        """A held array in the precision that goes with scores of `dtype`."""
        found = self._buffers[f"{name}_64" if dtype == torch.float64 else f"{name}_32"]
        assert found is not None
        return found

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        def keeping_precision(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        applied: Self = super()._apply(keeping_precision, recurse)
        return applied


def working(scores: Tensor) -> Tensor:
    """Scores as they are computed with: half precision is widened to float32."""
    if not scores.is_floating_point():
        raise TypeError(f"input must contain floating-point scores, got {scores.dtype}")
    return scores if scores.dtype in (torch.float32, torch.float64) else scores.float()


def autocast_off(scores: Tensor) -> AbstractContextManager[Any]:
    """Products in here are not to be rounded to half, whatever surrounds them."""
    kind = scores.device.type
    if not torch.amp.is_autocast_available(kind) or not torch.is_autocast_enabled(kind):
        return NOTHING
    return torch.autocast(device_type=kind, enabled=False)


def can_check(labels: Tensor) -> bool:
    """Whether values of labels are looked at: on the host, in plain Python.

    An accelerator would have to be waited for. There, as with PyTorch's own criteria, only a class
    number that is looked up in a table is checked, by the assertion of the look-up.
    """
    return labels.device.type == "cpu" and not torch.compiler.is_compiling()


def ensure(condition: Tensor, message: str) -> None:
    """Refuse bad labels with one line."""
    if not bool(condition):
        raise ValueError(message)
