"""What deciding returns: labels, what they are expected to cost, how close the runner-up was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consistruct.protocols import FloatArray

__all__ = ["Decisions"]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Hold decisions of least expected loss, ŷ_i = argmin_c E[L(c, y)].

    Attributes
    ----------
    labels : (n,) or (n, T) array, or list of n arrays
        Decisions in the names that were given; codes where there are no names. Sequences of
        several lengths are a list.
    expected_loss : (n,) array
        E[L(labels[i], y) | x_i].
    runner_up : like `labels`, or None
        The best other label of each row; None where the structure cannot tell it.
    gap : (n,) array or None
        Expected loss of the runner-up minus that of the decision: 0 is a tie, and a decision with
        a gap below the error of the probabilities is a guess. It is negative where a limit on the
        batch took the better label away from the row.
    notes : tuple of str
        What was assumed and what was changed (independent labels, a temperature, renamed
        columns), a sentence each.

    Examples
    --------
    >>> import consistruct as cs
    >>> costs = cs.losses.CostMatrix([[0, 10], [1, 0]], rows="pred")
    >>> decisions = cs.decide(costs, [[0.8, 0.2], [0.99, 0.01]])
    >>> decisions.labels, decisions.expected_loss, decisions.gap.round(2)
    (array([1, 0]), array([0.8, 0.1]), array([1.2 , 0.89]))
    """

    labels: Any
    expected_loss: FloatArray
    runner_up: Any = None
    gap: FloatArray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.expected_loss)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per decision.

        Labels with parts (sets, sequences, orders) are tuples in the columns `label` and
        `runner_up`, so that a file has the same columns whatever the loss is.

        Returns
        -------
        frame : pandas.DataFrame
            Columns `label`, `expected_loss` and, where they are known, `runner_up` and `gap`.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas; install it with: pip install 'consistruct[io]'"
            ) from None
        return pd.DataFrame(self.columns())

    def columns(self) -> dict[str, Any]:
        """Return what `to_frame` shows, a list or array for each column."""
        found: dict[str, Any] = {
            "label": _cells(self.labels),
            "expected_loss": self.expected_loss,
        }
        if self.runner_up is not None:
            found["runner_up"] = _cells(self.runner_up)
        if self.gap is not None:
            found["gap"] = self.gap
        return found


def _cells(labels: Any) -> Any:
    """Return one cell per row: the label itself, or a tuple of its parts."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        return labels
    return [tuple(np.asarray(label).tolist()) for label in labels]
