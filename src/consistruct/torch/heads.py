"""The last layer of a network: scores of a criterion, in the units of its loss."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from consistruct.torch.criteria import Decoder, TaskLoss
from consistruct.torch.values import Quadratic

__all__ = ["Head"]


class Head(nn.Module):
    """A linear layer from features to the scores of a criterion, in the units of its loss.

    Scores of the quadratic surrogate are minus expected targets: costs of thousands, or shares of
    1/T of a part. The layer gives shift + scale · (linear function), with the mean and the spread
    of the targets, so that learning rates mean what they usually do; it starts at the shift.

    Parameters
    ----------
    in_features : int
    criterion : TaskLoss or Decoder
    target : tensor of labels, optional
        Training labels for shift and scale; labels drawn by the reference measure if not given.
    bias : bool

    Examples
    --------
    >>> import torch
    >>> Head(16, TaskLoss("ordinal:5"))(torch.zeros(2, 16)).shape
    torch.Size([2, 5])
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        in_features: int,
        criterion: TaskLoss | Decoder,
        target: Tensor | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        task = criterion.criterion if isinstance(criterion, Decoder) else criterion
        self.linear = nn.Linear(in_features, criterion.width, bias=bias)
        nn.init.zeros_(self.linear.weight)
        if bias:
            nn.init.zeros_(self.linear.bias)
        shift, scale = _units(task, target)
        self.register_buffer("shift", shift.to(self.linear.weight.dtype))
        self.register_buffer("scale", scale.to(self.linear.weight.dtype))

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        """Features (…, in_features) to scores (…, width)."""
        scores: Tensor = self.shift + self.scale * self.linear(input)
        return scores


def _units(task: TaskLoss, target: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and spread of the scores that labels request; 0 and 1 where scores are logarithms."""
    body = task.body
    if not isinstance(body, Quadratic) or body.loss.predictions.size is None:
        return torch.zeros(task.width), torch.ones(())
    if target is None:
        drawn = body.loss.true_labels.sample(512, np.random.default_rng(0))
        target = torch.as_tensor(drawn)
    wanted = body.wanted(target.cpu(), torch.float64)
    spread = wanted.var(0, correction=0).max().sqrt()
    return wanted.mean(0), torch.where(spread > 0, spread, 1.0)
