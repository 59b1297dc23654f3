"""Moments merge: any partition, any order, any tree of additions gives the sums of all rows."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from consistruct.exceptions import ConsistructError
from consistruct.learning.models.ridge.moments import Moments, MomentSums

N, D, K = 60, 4, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 1e4, 5.0, -3.0]
Y = np.eye(K)[RNG.integers(K, size=N)]
WEIGHT = RNG.uniform(0.5, 3.0, size=N)


def by_hand(rows):
    """The sums by their definition, in long doubles."""
    x, y, w = X[rows].astype(np.longdouble), Y[rows].astype(np.longdouble), WEIGHT[rows]
    total = w.sum()
    mean_x, mean_y = w @ x / total, w @ y / total
    xc, yc = x - mean_x, y - mean_y
    return {
        "second_moment": (xc * w[:, None]).T @ xc,
        "cross_moment": (xc * w[:, None]).T @ yc,
        "mean_feature": mean_x,
        "mean_target": mean_y,
        "target_squares": w @ (yc**2).sum(axis=1),
        "total_weight": total,
    }


def of(rows):
    return Moments.of(X[rows], Y[rows], WEIGHT[rows])


def assert_same(found, rows, digits=1e-11):
    expected = by_hand(rows)
    deviation = np.sqrt(np.diag(expected["second_moment"]).astype(float))
    scale = {"second_moment": np.outer(deviation, deviation), "cross_moment": deviation[:, None]}
    for name, value in expected.items():
        gap = np.abs(np.asarray(getattr(found, name) - value, dtype=float))
        size = scale.get(name, np.maximum(np.abs(np.asarray(value, dtype=float)), 1.0))
        assert (gap <= digits * size).all(), name
    assert found.n_rows == len(rows)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_partition_and_any_tree_of_additions(data):
    order = data.draw(st.permutations(range(N)))
    cuts = sorted(data.draw(st.sets(st.integers(1, N - 1), max_size=8)))
    parts = [of(np.array(part)) for part in np.split(np.array(order), cuts)]
    while len(parts) > 1:
        first = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        second = parts.pop(data.draw(st.integers(0, len(parts) - 1)))
        parts.append(first + second)
    assert_same(parts[0], np.arange(N))


@given(st.sets(st.integers(0, N - 1), min_size=1, max_size=N - 2))
@settings(max_examples=40, deadline=None)
def test_what_was_added_can_be_taken_out(rows):
    out = np.array(sorted(rows))
    left = np.setdiff1d(np.arange(N), out)
    assert_same(of(np.arange(N)) - of(out), left, digits=1e-9)


@pytest.mark.parametrize("form", ["float32", "fortran", "sparse", "sparse target", "equal weights"])
def test_every_form_of_rows(form):
    rows = np.arange(N)
    features: Any = X
    target: Any = Y
    weight: Any = WEIGHT
    if form == "float32":
        features = X.astype(np.float32)
        expected = Moments.of(features.astype(np.float64), target, weight)
    elif form == "fortran":
        features, expected = np.asfortranarray(X), of(rows)
    elif form == "sparse":
        features, expected = sp.csr_array(X), of(rows)
    elif form == "sparse target":
        target, expected = sp.csr_array(Y), of(rows)
    else:
        weight, expected = None, Moments.of(X, Y, np.ones(N))
    found = Moments.of(features, target, weight)
    scale = np.sqrt(np.outer(np.diag(expected.second_moment), np.diag(expected.second_moment)))
    tolerance = 1e-6 if form == "sparse" else 1e-12  # a sparse matrix is not shifted
    assert (np.abs(found.second_moment - expected.second_moment) <= tolerance * scale).all()
    np.testing.assert_allclose(found.cross_moment, expected.cross_moment, rtol=1e-6, atol=1e-6)


def test_batches_of_one_pass_are_the_same_as_one_batch():
    sums = MomentSums(D, K)
    for part in np.array_split(np.arange(N), 7):
        sums.add(X[part], Y[part], WEIGHT[part])
    assert_same(Moments.from_sums(sums), np.arange(N))


def test_a_pass_goes_on_from_its_state_bit_by_bit():
    whole, first = MomentSums(D, K), MomentSums(D, K)
    for sums in (whole, first):
        sums.add(X[:30], Y[:30])
    second = MomentSums(D, K)
    second.restore(first.arrays())
    for sums in (whole, second):
        sums.add(X[30:], Y[30:])
    for name in ("second_moment", "cross_moment", "mean_feature"):
        np.testing.assert_array_equal(
            getattr(Moments.from_sums(whole), name), getattr(Moments.from_sums(second), name)
        )


def test_saved_moments_are_the_same_numbers(tmp_path):
    path = tmp_path / "monday.moments"
    before = Moments.of(X, Y, WEIGHT, key="linear")
    before.save(path)
    after = Moments.load(path)
    assert after.key == "linear"
    for name in ("second_moment", "cross_moment", "mean_target", "target_squares", "n_rows"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="damaged"):
        Moments.load(path)
    with pytest.raises(ValueError, match="no file"):
        Moments.load(tmp_path / "tuesday")


def test_about_zero_is_the_sum_of_raw_products():
    moments = of(np.arange(N)).about_zero()
    np.testing.assert_allclose(moments.second_moment, (X * WEIGHT[:, None]).T @ X, rtol=1e-10)
    np.testing.assert_allclose(moments.cross_moment, (X * WEIGHT[:, None]).T @ Y, rtol=1e-9)


def test_mapped_moments_are_those_of_mapped_features():
    matrix = RNG.normal(size=(D, 2))
    found, expected = of(np.arange(N)).mapped(matrix), Moments.of(X @ matrix, Y, WEIGHT)
    np.testing.assert_allclose(found.second_moment, expected.second_moment, rtol=1e-9)
    np.testing.assert_allclose(found.cross_moment, expected.cross_moment, rtol=1e-8)


def test_what_does_not_mix_is_refused():
    with pytest.raises(ConsistructError, match="4 features and 3 targets"):
        of(np.arange(N)) + Moments.of(X[:, :2], Y)
    with pytest.raises(ConsistructError, match="different features"):
        of(np.arange(N)) + Moments.of(X, Y, key="other")
    with pytest.raises(ConsistructError, match="some rows must remain"):
        of(np.arange(5)) - of(np.arange(5))
    with pytest.raises(ConsistructError, match="not among those summed"):
        Moments.of(X[:20], Y[:20]) - Moments.of(50.0 * X[20:30], Y[20:30])
    assert of(np.arange(5)) + Moments.of(X[:0], Y[:0]) is not None
