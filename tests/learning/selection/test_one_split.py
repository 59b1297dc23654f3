"""Above 5,000 rows some validate, and fits to the others are nearly as large as those on all."""

from __future__ import annotations

import numpy as np
import pytest

import consistruct as cs
from consistruct.decisions.statistics import ClassProbabilities
from consistruct.learning.encoding.kinds import Examples, Rows
from consistruct.learning.selection.columns import Columns
from consistruct.learning.selection.portfolio import portfolio
from consistruct.learning.selection.trials import compared_rows, one_split


def split_of(n, width=3, groups=None):
    codes = np.arange(n) % 3
    examples = Examples(
        Rows(cs.losses.ZeroOne(3), None), np.zeros((n, 1)), codes, np.ones(n), groups
    )
    sample, (fitted, validation) = one_split(examples, width, np.random.default_rng(0))
    assert not np.intersect1d(fitted, validation).size
    assert len(sample.examples) == len(fitted) + len(validation) == n
    return sample, fitted, validation


@pytest.mark.parametrize(
    ("n", "compared", "validation"),
    [
        (5001, 4001, 1000),  # a fifth validates
        (8000, 6400, 1600),
        (20_000, 10_000, 4000),
        (60_000, 10_000, 6000),  # a tenth
        (600_000, 38_667, 20_000),  # a fifteenth of the others are compared
    ],
)
def test_sizes(n, compared, validation):
    _, fit, left = split_of(n)
    assert len(left) == pytest.approx(validation, rel=0.01)
    rows = compared_rows(fit, np.random.default_rng(0))
    assert len(rows) == pytest.approx(compared, rel=0.01)
    assert np.isin(rows, fit).all()
    assert (np.diff(rows) > 0).all()


def test_wide_estimates_are_validated_on_fewer_rows():
    assert len(split_of(60_000, width=500)[2]) == pytest.approx(4000, rel=0.1)
    assert len(split_of(60_000, width=100_000)[2]) == pytest.approx(2000, rel=0.1)


def test_classes_are_spread_evenly():
    sample, fit, left = split_of(20_000)
    for part in (fit, left):
        shares = np.bincount(sample.examples.codes[part]) / len(part)
        np.testing.assert_allclose(shares, 1 / 3, atol=0.005)


def test_groups_stay_whole():
    groups = np.repeat(np.arange(2000), 10)
    sample, fit, left = split_of(20_000, groups=groups)
    whole = np.asarray(sample.examples.groups)
    assert not np.intersect1d(whole[fit], whole[left]).size


@pytest.mark.parametrize(
    ("classes", "n", "tried"), [(2, 5000, True), (2, 5001, False), (3, 5001, True)]
)
def test_a_forest_of_two_classes_is_skipped_where_boosting_is_faster(classes, n, tried):
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
