"""Sums of kernel values, whitened afterwards, in float32 where K_mm allows it."""

import numpy as np
import pytest

import consistruct as cs
from consistruct.learning.models import Ridge
from consistruct.learning.models.features.approximations import NystroemFeatures
from consistruct.learning.models.features.feature_maps import Kernel, Scaling

RNG = np.random.default_rng(0)


def rows(n, d):
    return RNG.standard_normal((n, d)).astype(np.float32)


def test_single_kernel_values_are_those_of_float64():
    X, Z = rows(50, 8), rows(20, 8).astype(np.float64)
    kernel = Kernel("rbf", 2.5)
    found = kernel.single(X, Z)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, kernel(X.astype(np.float64), Z), atol=2e-6)


@pytest.mark.parametrize("scaled", [False, True])
def test_summed_times_mixing_are_the_features(scaled):
    X = rows(60, 12)
    scaling = Scaling.standard(X.astype(np.float64), np.ones(60)) if scaled else None
    features = NystroemFeatures(Kernel("rbf", 3.0), X[:25], scaling)
    assert features.mixing is not None
    assert features.n_sums == 25
    expected = features.transform(X.astype(np.float64))
    np.testing.assert_allclose(
        features.summed(X.astype(np.float64)) @ features.mixing, expected, atol=1e-9
    )
    assert features.single(np.float32)
    single = features.summed(X, single=True)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single @ features.mixing, expected, atol=2e-4)


def test_near_copies_among_the_landmarks_are_whitened_row_by_row():
    X = rows(30, 2)
    landmarks = np.concatenate([X[:10], X[:10] + np.float32(1e-6)])
    features = NystroemFeatures(Kernel("rbf", 3.0), landmarks)
    assert features.mixing is None
    assert not features.single(np.float32)
    np.testing.assert_array_equal(features.summed(X), features.transform(X))


def test_float32_and_float64_sums_decide_alike():
    X = rows(3000, 15)
    y = (np.sin(X[:, :3]) + 0.3 * RNG.normal(size=(3000, 3))).argmax(axis=1)
    ridge = Ridge(
        "nystroem", kernel="rbf", bandwidth=4.0, n_components=100, standardize=False,
        solver="moments", alpha=1e-5,
    )  # fmt: skip
    single = cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit(X, y)
    double = cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit(X.astype(float), y)
    assert single.model_.moments_.precision > 1e-8
    assert double.model_.moments_.precision < 1e-15
    gap = single.model_.expected(X) - double.model_.expected(X)
    assert np.abs(gap).max() < 2e-3
    exact = cs.TaskLossClassifier("zero_one", ridge, random_state=0)
    exact.set_params(model__solver="closed_form").fit(X.astype(float), y)
    np.testing.assert_allclose(
        double.model_.expected(X), exact.model_.expected(X), rtol=1e-6, atol=1e-8
    )
