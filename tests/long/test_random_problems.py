"""A thousand random small problems against the definition."""

from __future__ import annotations

import pytest

from tests.calibration.test_random_problems import assert_contains_the_definition

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


@pytest.mark.parametrize("block", range(20))
def test_interval_contains_the_definition(block):
    for seed in range(100_000 + 50 * block, 100_000 + 50 * (block + 1)):
        assert_contains_the_definition(seed, [(0.1, 0.3, 0.5, 0.7, 0.9, 1.0)[seed % 6]])
