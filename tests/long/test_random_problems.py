"""A thousand random small problems against the definition (CONSISTRUCT_NIGHTLY=1: ten thousand)."""

from __future__ import annotations

import pytest

from tests.calibration.hard_problems import COUNT
from tests.calibration.test_random_problems import assert_contains_the_definition

pytestmark = pytest.mark.filterwarnings("ignore::consistruct.calibration.LabelOrderWarning")


BLOCKS = 20


@pytest.mark.parametrize("block", range(BLOCKS))
def test_interval_contains_the_definition(block, record_property):
    each = COUNT // BLOCKS
    for seed in range(100_000 + each * block, 100_000 + each * (block + 1)):
        assert_contains_the_definition(seed, [(0.1, 0.3, 0.5, 0.7, 0.9, 1.0)[seed % 6]])
    record_property("cases", each)  # tools/nightly.py reads it
