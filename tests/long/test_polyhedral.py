"""Hinge and max-min margin at small and large shares of the largest excess: twenty named losses."""

from __future__ import annotations

import pytest

from tests.calibration.methods.nonquadratic.test_polyhedral import NAMED, SURROGATES, check_named


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("share", [0.25, 0.5, 0.95, 1.0])
def test_named_losses_are_within_one_per_cent(name, surrogate, share):
    check_named(name, surrogate, share)
