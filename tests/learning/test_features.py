"""Feature maps against the kernels they stand for, and what `features` picks."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.preprocessing import PolynomialFeatures

from consistruct.learning.models.features.approximations import NystroemFeatures, RandomFeatures
from consistruct.learning.models.features.feature_maps import (
    Kernel,
    KernelFeatures,
    LinearFeatures,
    Scaling,
    TransformerFeatures,
    dense_rows,
    median_bandwidth,
)
from tests.learning.estimators import classifier


def inputs(n=30, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def direct(name, X, Z):
    if name == "rbf":
        return np.exp(-cdist(X, Z, "sqeuclidean") / (2 * 1.3**2))
    if name == "laplace":
        return np.exp(-cdist(X, Z, "cityblock") / 1.3)
    return (X @ Z.T / 1.3**2 + 1.0) ** 3


@pytest.mark.parametrize("name", ["rbf", "laplace", "poly"])
@pytest.mark.parametrize("sparse", [False, True])
def test_kernels_by_their_formulas(name, sparse):
    X, Z = inputs(), inputs(seed=1)
    kernel = Kernel(name, 1.3)
    found = kernel(sp.csr_array(X) if sparse else X, Z)
    np.testing.assert_allclose(found, direct(name, X, Z), atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), np.diag(direct(name, X, X)), atol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplace", "poly"])
def test_nystroem_reproduces_the_kernel_on_its_landmarks(name):
    X = inputs()
    features = NystroemFeatures(Kernel(name, 1.3), X).transform(X)
    np.testing.assert_allclose(features @ features.T, direct(name, X, X), atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "laplace"])
def test_random_features_approximate_the_kernel(name):
    X = inputs()
    features = RandomFeatures(Kernel(name, 1.3), 3, 20_000, np.random.default_rng(0)).transform(X)
    # each entry is a mean of 20,000 bounded terms: six standard errors
    np.testing.assert_allclose(features @ features.T, direct(name, X, X), atol=6 / np.sqrt(20_000))


def test_median_bandwidth_is_the_median_distance():
    X = inputs()
    upper = np.triu_indices(30, 1)
    assert median_bandwidth(X, "rbf") == pytest.approx(np.median(cdist(X, X)[upper]))
    assert median_bandwidth(X, "laplace") == pytest.approx(
        np.median(cdist(X, X, "cityblock")[upper])
    )
    assert median_bandwidth(np.zeros((3, 2)), "rbf") == 1.0


def test_standard_scaling_is_weighted_and_keeps_constant_columns():
    X = np.column_stack([inputs(), np.full(30, 7.0)]) + 1e6
    weight = np.random.default_rng(1).integers(1, 4, 30).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    scaled = Scaling.standard(X, weight)(X)
    expected = (X - repeated.mean(axis=0))[:, :3] / repeated.std(axis=0)[:3]
    np.testing.assert_allclose(scaled[:, :3], expected, rtol=1e-6)
    np.testing.assert_allclose(scaled[:, 3], 0.0, atol=1e-6)
    sparse = sp.csr_array(np.where(inputs() > 0, inputs(), 0.0))  # scaled, never shifted
    np.testing.assert_allclose(
        Scaling.standard(sparse, np.ones(30))(sparse).toarray(),
        sparse.toarray() / sparse.toarray().std(axis=0),
    )


def fitted(X, y, **arguments):
    return classifier(random_state=0, **arguments).fit(X, y).model_.feature_map_


def test_auto_picks_linear_for_sparse_and_wide_inputs_and_kernels_otherwise():
    X, y = inputs(40), np.arange(40) % 2
    wide = sp.csr_array(np.repeat(X, 500, axis=1))
    assert isinstance(fitted(wide, y), LinearFeatures)
    assert isinstance(fitted(inputs(10, 5000), np.arange(10) % 2), LinearFeatures)
    assert isinstance(fitted(X, y), KernelFeatures)
    assert isinstance(fitted(X, y, n_components=10), NystroemFeatures)
    assert isinstance(fitted(X, y, solver="sgd"), NystroemFeatures)
    assert isinstance(fitted(X, y, features="random", n_components=20), RandomFeatures)
    assert isinstance(fitted(X, y, features=PolynomialFeatures(2)), TransformerFeatures)
    for name in ("rbf", "laplace", "poly"):
        assert fitted(X, y, features=name, bandwidth="median").kernel.name == name


def test_the_kernel_fits_the_functions_that_the_data_hold():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(300, 4))
    jumps = 2 * (X[:, 0] > 0.2) + (X[:, 1] > -0.3)  # along the columns
    assert fitted(X, jumps).kernel.name == "laplace"
    waves = (np.sin(3.0 * X.sum(axis=1)) > 0).astype(int)
    assert fitted(X, waves).kernel.name == "rbf"
    assert fitted(X, jumps, kernel="rbf").kernel.name == "rbf"
    assert fitted(X, jumps, bandwidth=0.3).kernel.name == "rbf"  # a number is RBF's
    sparse = sp.csr_array(X)
    assert fitted(sparse, jumps, features="nystroem", n_components=50).kernel.name == "rbf"


def test_given_bandwidth_and_scaling_are_used():
    X, y = inputs(40), np.arange(40) % 2
    found = fitted(X, y, bandwidth=0.8, standardize=False)
    assert found.kernel.bandwidth == 0.8
    assert found.scaling.scale is None
    assert fitted(X, y, bandwidth=0.8, standardize=True).scaling.scale is not None
    assert fitted(X, y, features="linear", standardize=True).scaling.scale is not None


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_bandwidth_choice_does_not_depend_on_n_jobs(n_jobs):
    X = inputs(80)
    y = (np.linalg.norm(X, axis=1) > 1.5).astype(int)
    assert fitted(X, y, n_jobs=n_jobs).kernel == fitted(X, y).kernel


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "fourier"}, "features must be one of auto, linear, rbf"),
        ({"kernel": "sigmoid"}, "kernel must be one of auto, rbf, laplace, poly"),
        ({"features": "random", "kernel": "poly"}, "use features='nystroem' for it"),
        ({"bandwidth": -1.0}, "bandwidth must be a finite number"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"standardize": "yes"}, "standardize must be 'auto', True or False"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        fitted(inputs(), np.arange(30) % 2, **arguments)


def test_something_that_is_no_transformer():
    with pytest.raises(TypeError, match="or a scikit-learn transformer, got int"):
        fitted(inputs(), np.arange(30) % 2, features=3)


def test_landmarks_never_fill_memory():
    wide = sp.csr_array((100, 2**21))
    with pytest.raises(ValueError, match="use features='linear' for wide data"):
        dense_rows(wide)


def test_scaling_is_the_same_function_of_dense_and_sparse_inputs():
    X = np.random.default_rng(0).integers(0, 4, (12, 3)).astype(np.float64)
    weight = np.ones(len(X))
    learned_dense = Scaling.standard(X, weight)
    np.testing.assert_allclose(learned_dense(sp.csr_array(X)), learned_dense(X))
    learned_sparse = Scaling.standard(sp.csr_array(X), weight)
    np.testing.assert_allclose(learned_sparse(X), learned_sparse(sp.csr_array(X)).toarray())
