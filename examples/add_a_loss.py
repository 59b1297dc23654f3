"""A new loss in ten lines, checked by the public conformance suite.

An ordinal loss whose two mistakes cost differently: predicting too high and predicting too low.
Triage is an example: sending a patient home too early costs more than a bed kept for a day.
"""

# [loss]
from dataclasses import dataclass

import numpy as np

from consistruct.losses import MatrixLoss
from consistruct.structures import Classes


@dataclass(frozen=True, eq=False, repr=False)
class Triage(MatrixLoss):
    """`up` per level that the prediction is too high, `down` per level that it is too low."""

    k: int
    up: float = 1.0
    down: float = 3.0

    @property
    def _prediction_set(self):
        return Classes(self.k)

    true_labels = _prediction_set

    def _value(self, pred, true):  # the direct formula, on checked labels
        return self.up * np.maximum(pred - true, 0) + self.down * np.maximum(true - pred, 0)

    @property
    def _columns(self):  # the same matrix by another route: the two are compared
        low = np.tril(np.ones((self.k, self.k)), -1)
        return self.up * low.cumsum(axis=0) * low + self.down * (low.cumsum(axis=0) * low).T


# [end]


def main() -> None:
    """Check the loss, then use it: the Bayes decision leans to the side that is cheaper to miss."""
    from consistruct.testing import check_loss

    loss = Triage(5)
    check_loss(loss)
    uniform = np.full(5, 0.2)  # nothing is known: the 3/4 quantile, not the median
    decision = loss.score_space.decode(-(uniform @ loss.target(np.arange(5)))[None])
    print(f"{loss!r}: rank {loss.score_space.rank}, decision if nothing is known {decision[0]}")


if __name__ == "__main__":
    main()
