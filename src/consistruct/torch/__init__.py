"""Criteria and decoders for neural networks: the task losses of this package as PyTorch modules.

Needs PyTorch (``pip install consistruct[torch]``); nothing else in the package imports it.
"""

from consistruct.torch.crf import ChainCRF
from consistruct.torch.criteria import Decoder, TaskLoss
from consistruct.torch.heads import Head

__all__ = [
    "ChainCRF",
    "Decoder",
    "Head",
    "TaskLoss",
]


def __dir__() -> list[str]:
    return sorted(__all__)
