"""What the tests of criteria run over: every registered loss, every surrogate that it has."""

from __future__ import annotations

import numpy as np
import torch

from consistruct.exceptions import CapabilityError, TooManyLabelsError
from consistruct.losses import Block, Decision, Hamming, PartErrors, PartialLabels, ZeroOne
from consistruct.losses.base import Loss
from consistruct.losses.registry import LOSSES
from consistruct.surrogates import make_surrogate
from consistruct.torch.values import LISTED

COMBINED = (
    0.4 * ZeroOne(4) + 0.6 * Block((2, 2)),
    0.5 * Hamming(3) + 0.5 * PartialLabels(Hamming(3), "average").loss,
    2.0 * LOSSES["kendall"].examples[2],
)
# decisions and derivations are solved on the host, by programs that know no tensors
ON_DEVICE = [entry for entry in LOSSES.values() if entry.cls not in (Decision, PartErrors)]
LOSSES_TRIED: list[Loss] = [
    *(member for entry in ON_DEVICE for member in entry.examples),
    *COMBINED,
]


def surrogates_of(loss: Loss) -> list[str]:
    """Names of the surrogates that the NumPy side has for a loss."""
    found = ["quadratic"]
    rng = np.random.default_rng(0)
    for name in LISTED:
        try:
            surrogate = make_surrogate(name, loss)
            width = surrogate.score_space.width
            surrogate.value_and_gradient(np.zeros((1, width)), loss.true_labels.sample(1, rng))
        except (CapabilityError, TooManyLabelsError):
            continue
        found.append(name)
    return found


def cases(losses: list[Loss]) -> list[tuple[Loss, str]]:
    """Losses with all their surrogates."""
    return [(loss, name) for loss in losses for name in surrogates_of(loss)]


# one awkward member of each loss; tests/long has them all
SOME = [entry.examples[-1] for entry in ON_DEVICE]
CASES = [*((loss, "quadratic") for loss in LOSSES_TRIED if loss not in SOME), *cases(SOME)]
# the quadratic surrogate of every loss, and every surrogate of some: what unit tests can afford
QUICK = [
    *((loss, "quadratic") for loss in SOME),
    *cases([LOSSES["abstain"].examples[1], LOSSES["fbeta"].examples[2]]),
    *((loss, "member-log") for loss in LOSSES["fbeta"].examples[:3]),
]


def named(case: object) -> str:
    return case if isinstance(case, str) else repr(case)


def batch(loss: Loss, width: int, n: int = 6, seed: int = 0, dtype=torch.float64):
    """Scores and true labels of a loss."""
    rng = np.random.default_rng(seed)
    theta = torch.as_tensor(rng.normal(size=(n, width)), dtype=dtype)
    return theta, torch.as_tensor(loss.true_labels.sample(n, rng))
