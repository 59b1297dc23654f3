"""0-1, block and mixed losses as one family: η·(0-1) + (1−η)·block."""

from __future__ import annotations

from consistruct.labels.partition import Partition
from consistruct.losses.base import Loss
from consistruct.losses.block import Block, Mixed
from consistruct.losses.zero_one import ZeroOne

__all__ = ["as_mixed"]


def as_mixed(loss: Loss) -> tuple[Partition, float] | None:
    """The loss as η·(0-1) + (1−η)·block, or None if it is no such loss."""
    if isinstance(loss, ZeroOne):
        return Partition(sizes=(loss.k,)), 1.0
    if isinstance(loss, Block):
        return loss.partition, 0.0
    if isinstance(loss, Mixed):
        return loss.partition, loss.eta
    return None
