"""The front door: from what is known of the true labels to decisions of least expected loss."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from consistruct.decisions.from_probabilities import decide_from_probabilities
from consistruct.decisions.result import Decisions
from consistruct.decisions.uncertain import CostRanges, decide_from_ranges

__all__ = ["decide"]


def decide(
    loss: Any, probabilities: Any = None, *, samples: Any = None, **options: Any
) -> Decisions:
    """Return the decisions of least expected loss.

    Parameters
    ----------
    loss : Loss, spec such as "abstain:3:0.2", cost matrix, or CostRanges
        For ranges of costs the decisions are those of least worst-case regret.
    probabilities : array, data frame or list
    samples : optional
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
    if isinstance(loss, CostRanges):
        if samples is not None:
            raise ValueError("ranges of costs take probabilities, got samples; average them first")
        return decide_from_ranges(loss, probabilities, **options)
    if samples is None:
        return decide_from_probabilities(loss, probabilities, **options)
    # searches over candidates bring compiled loops, which only those wait for who need them
    from_samples: Any = import_module("consistruct.decisions.from_samples")
    decided: Decisions = from_samples.decide_from_samples(loss, samples, **options)
    return decided
