"""Above 5,000 rows models are compared on one split, by fits nearly as large as the last ones."""

from __future__ import annotations

import numpy as np
import pytest

import consistruct as cs
from consistruct.learning.encoding.kinds import Examples, Rows
from consistruct.learning.selection.columns import Columns
from consistruct.learning.selection.portfolio import portfolio
from consistruct.learning.selection.trials import one_split
from consistruct.learning.statistics import ClassProbabilities


def split_of(n, width=3, groups=None):
    truths = np.arange(n) % 3
    examples = Examples(
        Rows(cs.losses.ZeroOne(3), None), np.zeros((n, 1)), truths, np.ones(n), groups
    )
    sample, splits = one_split(examples, width, np.random.default_rng(0))
    (fitted, judged), *others = splits
    assert not others
    assert not np.intersect1d(fitted, judged).size
    assert len(sample.examples) == len(sample.rows) == len(fitted) + len(judged)
    np.testing.assert_array_equal(sample.examples.truths, truths[sample.rows])
    return sample, fitted, judged


@pytest.mark.parametrize(
    ("n", "fitted", "judged"),
    [
        (5001, 3334, 1667),  # two thirds and a third
        (8000, 4000, 4000),
        (12_000, 8000, 4000),
        (20_000, 10_000, 10_000),
        (60_000, 10_000, 20_000),
        (600_000, 40_000, 20_000),  # a fifteenth
    ],
)
def test_sizes(n, fitted, judged):
    _, fit, left = split_of(n)
    assert len(fit) == pytest.approx(fitted, rel=0.1)
    assert len(left) == pytest.approx(judged, rel=0.1)


def test_wide_estimates_are_judged_on_fewer_rows():
    assert len(split_of(60_000, width=200)[2]) == pytest.approx(10_000, rel=0.1)
    assert len(split_of(60_000, width=100_000)[2]) == pytest.approx(2000, rel=0.1)


def test_classes_are_spread_evenly():
    sample, fit, left = split_of(20_000)
    for part in (fit, left):
        shares = np.bincount(sample.examples.truths[part]) / len(part)
        np.testing.assert_allclose(shares, 1 / 3, atol=0.005)


def test_groups_stay_whole():
    groups = np.repeat(np.arange(2000), 10)
    sample, fit, left = split_of(20_000, groups=groups)
    whole = np.asarray(sample.examples.groups)
    assert not np.intersect1d(whole[fit], whole[left]).size


@pytest.mark.parametrize(
    ("classes", "n", "tried"), [(2, 5000, True), (2, 5001, False), (3, 5001, True)]
)
def test_a_forest_of_two_classes_is_left_out_where_boosting_is_faster(classes, n, tried):
    statistic = ClassProbabilities(cs.losses.ZeroOne(classes))
    columns = Columns.of(np.random.default_rng(0).normal(size=(50, 4)))
    found = {one.name: one for one in portfolio(statistic, columns, n)}
    forest = found["extra trees, larger leaves"]
    assert (forest.model is not None) == tried
    assert forest.reason == ("" if tried else "boosting is much faster on 5001 rows")


@pytest.mark.parametrize(
    ("classes", "n", "exact"), [(63, 10_000, True), (63, 12_289, False), (10, 10_000, False)]
)
def test_kernels_keep_all_rows_where_boosting_many_classes_takes_as_long(classes, n, exact):
    statistic = ClassProbabilities(cs.losses.ZeroOne(classes))
    columns = Columns.of(np.random.default_rng(0).normal(size=(50, 80)))
    kernel = {one.name: one.model for one in portfolio(statistic, columns, n)}["kernel ridge"]
    ridge = getattr(kernel, "model", kernel)
    assert (ridge.features == "auto") == exact
