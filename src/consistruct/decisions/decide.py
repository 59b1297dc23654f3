"""The front door: from what is known of the true labels to decisions of least expected loss."""

from __future__ import annotations

from typing import Any

from consistruct.decisions.from_probabilities import decide_from_probabilities
from consistruct.decisions.from_samples import decide_from_samples
from consistruct.decisions.result import Decisions

__all__ = ["decide"]


def decide(
    loss: Any, probabilities: Any = None, *, samples: Any = None, **options: Any
) -> Decisions:
    """Return the decisions of least expected loss.

    Parameters
    ----------
    loss : Loss, spec such as "abstain:3:0.2", or cost matrix
    probabilities : array, data frame or list
    samples : list of n lists, or (n, m, …) array
        Draws of the true label of each example, in place of probabilities.
    **options
        Those of `decide_from_probabilities` or of `decide_from_samples`.

    Returns
    -------
    decisions : Decisions

    Examples
    --------
    >>> import consistruct as cs
    >>> cs.decide([[0, 10], [1, 0]], [[0.8, 0.2]], rows="pred").labels
    array([1])
    """
    if (probabilities is None) == (samples is None):
        given = "neither" if probabilities is None else "both"
        raise TypeError(f"decide takes probabilities or samples, got {given}; pass one of them")
    if samples is None:
        return decide_from_probabilities(loss, probabilities, **options)
    return decide_from_samples(loss, samples, **options)
