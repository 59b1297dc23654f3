"""The smallest score space that expresses a loss."""

from __future__ import annotations

from consistruct.protocols import ScoreSpace, TaskLoss

__all__ = ["LossSpan"]


def LossSpan(loss: TaskLoss) -> ScoreSpace:  # noqa: N802 - a public name, used like a class
    """The loss's own score space: smallest one that holds the constant and all columns of L.

    With these scores the quadratic surrogate is consistent for the loss.

    Examples
    --------
    >>> import consistruct as cs
    >>> cs.scores.LossSpan(cs.losses.Hamming(3))
    Separable(3)
    """
    return loss.score_space
