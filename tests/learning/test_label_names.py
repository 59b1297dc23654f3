"""Codes of labels: the quick way for 0..k−1 against a dictionary."""

import numpy as np
import pytest

from consistruct.decisions.classes import UNSEEN, lookup_codes


@pytest.mark.parametrize("classes", [np.arange(5), np.arange(5, dtype=np.uint8), np.array([0, 3])])
@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 4, 3, 0, 7, -1]),
        np.array([0, 3, 200], dtype=np.uint8),
        np.array([-128, 127, 2], dtype=np.int8),
        np.array([2**63 + 3, 3], dtype=np.uint64),  # would wrap to a small number
        np.array([0.0, 3.0, 2.5]),
        np.array([True, False]),
    ],
)
def test_codes_are_positions(labels, classes):
    positions = {label: code for code, label in enumerate(classes.tolist())}
    expected = [positions.get(label, UNSEEN) for label in labels.tolist()]
    found = lookup_codes(labels, classes)
    assert found.tolist() == expected
    assert found.dtype == np.int64
