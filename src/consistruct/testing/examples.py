"""Make training data for checks of models, and compare estimates of any kind of example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consistruct.learning.encoding.kinds import Examples, Rows
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged
from consistruct.testing.contracts import read_only

__all__ = ["flat", "frozen", "other_code", "table_examples", "take_rows"]


def table_examples(loss: Loss, n: int = 60, *, random_state: int = 0) -> Examples:
    """Return rows of three numbers with true labels that depend on them, ready for a model.

    Parameters
    ----------
    loss : Loss
        Over a finite set of true labels.
    n : int
    random_state : int

    Returns
    -------
    Examples
        Inputs (n, 3), true labels as codes, weights of one.
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n, 3))
    candidates = loss.true_labels.sample(6, rng)
    # the nearer to one of six places, the likelier its true label (Gumbel noise makes it a
    # softmax): neither pure noise, which no model learns, nor none, which hides errors in weights
    # and folds
    nearness = X @ rng.standard_normal((3, 6)) + rng.gumbel(size=(n, 6))
    return Examples(Rows(loss, None), X, candidates[nearness.argmax(axis=1)], np.ones(n))  # type: ignore[arg-type]


def flat(estimates: Any) -> FloatArray:
    """Return all numbers of estimates or decisions, packed ones too."""
    return np.asarray(estimates.values if isinstance(estimates, Ragged) else estimates)


def take_rows(estimates: Any, rows: Any) -> Any:
    """Return the estimates of some examples, by number."""
    return estimates.take(rows) if isinstance(estimates, Ragged) else estimates[np.asarray(rows)]


def frozen(examples: Examples) -> Examples:
    """Return the same data in arrays that cannot be written to, where they are arrays."""

    def fixed(values: Any) -> Any:
        return read_only(values) if isinstance(values, np.ndarray) else values

    return replace(
        examples,
        inputs=fixed(examples.inputs),
        codes=fixed(examples.codes),
        weight=fixed(examples.weight),
    )


def other_code(codes: Any, row: int) -> int | None:
    """Return the number of an example with another label of the same length, which can stand in."""
    for other in range(len(codes)):
        one, two = np.asarray(codes[row]), np.asarray(codes[other])
        if one.shape == two.shape and not np.array_equal(one, two):
            return other
    return None
