"""Ties go to the smallest index, so H depends on the order of labels that the scores merge."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.calibration import LabelOrderWarning
from consistruct.losses import CostMatrix, Mixed, ZeroOne
from consistruct.structures import Blocks, Dense
from tests.calibration.reference import definition_value

# Four groups of two merged labels; the second of a group errs .4 times as much as the first.
# Scores see .7 of the first label's gap, and (F_i−F_j)ᵀḠ⁺(F_i−F_j) = 8, hence H = (.7 x)²/16 where
# x = ε is the gap of the first labels if they come first, and x = ε/.4 if the second ones do.
FIRST = np.repeat(1.0 - np.eye(4), 2, axis=0) * np.tile([1.0, 0.4], 4)[:, None]
SECOND = FIRST.reshape(4, 2, 4)[:, ::-1].reshape(8, 4)
MERGING = np.repeat(np.eye(4), 2, axis=0)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [(FIRST, 0.14**2 / 16), (SECOND, 0.35**2 / 16)],
    ids=["as is", "swapped"],
)
def test_merged_labels(matrix, expected):
    with pytest.warns(LabelOrderWarning, match=r"\[0, 1\], \[2, 3\]"):
        curve = calibration_function(CostMatrix(matrix, rows="pred"), MERGING)
    assert curve.interval(0.2)[0] == pytest.approx(expected, rel=1e-8)
    assert curve.interval(0.2)[1] == pytest.approx(expected, rel=1e-8)
    by_definition = definition_value(matrix, MERGING, np.full(8, 1 / 8), 0.2)
    assert by_definition == pytest.approx(expected, rel=1e-6)


def test_the_value_of_the_example_in_numbers():
    with pytest.warns(LabelOrderWarning):
        assert calibration_function(CostMatrix(FIRST, rows="pred"), MERGING)(0.2) == pytest.approx(
            0.001225
        )


@pytest.mark.parametrize(
    ("F", "expected", "named"),
    [([[0.0], [1.0], [-1.0]], 0.0, "labels 0 "), ([[1.0], [0.0], [-1.0]], 0.0533, "labels 1 ")],
    ids=["middle label first", "middle label second"],
)
def test_a_label_between_two_others(F, expected, named):
    with pytest.warns(LabelOrderWarning, match=named):
        curve = calibration_function(ZeroOne(3), np.array(F))
    assert curve.interval(0.8)[1] == pytest.approx(expected, abs=5e-5)
    by_definition = definition_value(1.0 - np.eye(3), np.array(F), np.full(3, 1 / 3), 0.8)
    assert by_definition == pytest.approx(expected, abs=5e-5)


def test_named_labels_are_named():
    loss = CostMatrix(1.0 - np.eye(3), ("cat", "dog", "emu"), ("cat", "dog", "emu"))
    with pytest.warns(LabelOrderWarning, match=r"\[cat, emu\]"):
        calibration_function(loss, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("loss", "scores"),
    [
        (ZeroOne(3), None),
        (ZeroOne(3), "full"),
        (Mixed((2, 2), 0.3), Blocks((2, 2))),  # labels of a block are alike
        (
            CostMatrix([[0, 1], [0, 1], [1, 0]], rows="pred"),
            Dense([[1.0, 0], [1, 0], [0, 1]]),
        ),  # same loss
        (
            CostMatrix([[0, 1], [0.5, 0.5], [1, 0]], rows="pred"),
            None,
        ),  # between, in its loss as in its scores
    ],
    ids=repr,
)
def test_no_warning_where_the_order_does_not_matter(loss, scores):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelOrderWarning)
        calibration_function(loss, scores)


def test_order_is_irrelevant_where_the_scores_express_the_loss():
    matrix = np.array([[0, 1.0], [0.5, 0.5], [1.0, 0]])
    one = calibration_function(CostMatrix(matrix, rows="pred"))
    other = calibration_function(CostMatrix(matrix[[1, 0, 2]], rows="pred"))
    for eps in (0.1, 0.5, 0.9):
        assert one.interval(eps)[1] == pytest.approx(other.interval(eps)[1], rel=1e-7)
