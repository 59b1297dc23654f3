"""What is lost because only some labels can be predicted."""

from __future__ import annotations

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.losses import CostMatrix, Mixed, ZeroOne
from consistruct.structures import Blocks, Dense
from tests.calibration.reference import predictable_by_definition

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


@pytest.mark.parametrize("seed", range(6))
def test_no_distribution_exceeds_it_and_one_attains_it(seed):
    rng = np.random.default_rng(seed)
    L = rng.random((6, 3))
    F = rng.integers(-1, 2, (6, 2)).astype(float)
    error = calibration_function(CostMatrix(L, rows="pred"), Dense(F)).approximation_error
    kept = predictable_by_definition(F)
    distributions = np.vstack([np.eye(3), rng.dirichlet(np.ones(3) * 0.5, 60_000)])
    expected = distributions @ L.T
    loss_of_pred = expected[:, kept].min(axis=1) - expected.min(axis=1)
    assert loss_of_pred.max() <= error + 1e-9
    assert loss_of_pred.max() >= error - 0.02


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3)])
@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
def test_mixed_loss_with_block_scores_loses_eta(sizes, eta):
    curve = calibration_function(Mixed(sizes, eta), Blocks(sizes))
    assert curve.approximation_error == pytest.approx(eta, abs=1e-9)
    dense = calibration_function(
        CostMatrix(Mixed(sizes, eta).matrix(), rows="pred"), Dense(Blocks(sizes).matrix())
    )
    assert dense.approximation_error == pytest.approx(eta, abs=1e-9)


def test_one_predictable_label_of_three():
    assert calibration_function(ZeroOne(3), np.ones((3, 1))).approximation_error == 1.0
