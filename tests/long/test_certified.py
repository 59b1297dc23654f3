"""A thousand hard random problems against a rational solver (CONSISTRUCT_NIGHTLY=1: ten thousand).

No interval may exclude the true value, no certificate may fail, nothing may be loose.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import consistruct as cs
from consistruct.losses import CostMatrix
from consistruct.structures import Dense
from tests.calibration.hard_problems import COUNT, exact_inputs, problem
from tests.calibration.rational import calibration_value

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")

BLOCKS = 40


def assert_certified(seed):
    """Compare with the true label; False where no ε can be lost and there is nothing to compare."""
    L, F, mu, share = problem(seed)
    loss = CostMatrix(L, rows="pred")
    if F is None and mu is not None:
        F = np.eye(len(L))
    scores = "full" if F is None else Dense(F, reference=mu)
    H = cs.calibration_function(loss, scores)
    if H.max_eps == 0:
        return False
    eps = share * H.max_eps
    (point,) = H.curve(eps)
    certificate: Any = H.certificate(eps)
    certificate.check()
    # the claim is about the columns that the certificate names, where floats have too much rank
    kept = certificate.scores
    losses, embedding, measure = exact_inputs(L, kept, mu)
    true_label = calibration_value(losses, embedding, measure, Fraction(eps))
    assert true_label is not None, f"seed {seed}: H is infinite"
    assert Fraction(point.lower) <= true_label <= Fraction(point.upper), f"seed {seed}"
    assert Fraction(certificate.lower) <= true_label <= Fraction(certificate.upper), f"seed {seed}"
    assert point.status in ("certified", "exact"), f"seed {seed}: {point.status}"
    return True


@pytest.mark.parametrize("block", range(BLOCKS))
def test_intervals_contain_the_true_value(block, record_property):
    compared = sum(assert_certified(seed) for seed in range(block, COUNT, BLOCKS))
    record_property("cases", compared)  # tools/nightly.py reads it
