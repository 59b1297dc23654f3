"""The search of kernels: what is compared, what goes on, what wins."""

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.learning.models.features.feature_choice import SampleKernel, Trial, search_kernel
from consistruct.learning.models.features.feature_maps import FeatureOptions, Kernel, distances

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 10.0, 0.1]
WEIGHT = np.ones(len(X))


class Recorder:
    """Risks by a formula; remembers the kernels it was called with."""

    def __init__(self, task, risk=lambda kernel: 0.0, error=0.0):
        self.task, self.risk, self.error = task, risk, error
        self.requested = []

    def __call__(self, features):
        kernel = features.kernel
        self.requested.append(kernel)
        return self.task(kernel), self.risk(kernel), self.error


def searched(*risks, names=("rbf", "laplace"), **options):
    trials = [Trial(X[: 10 * (n + 1)], found) for n, found in enumerate(risks)]
    return search_kernel(names, FeatureOptions(**options), X, WEIGHT, X, trials)[:2]


def test_the_best_quarter_of_the_first_trial_goes_on():
    first = Recorder(lambda kernel: kernel.bandwidth)
    second = Recorder(lambda kernel: -kernel.bandwidth)
    kernel, _ = searched(first, second)
    requested = first.requested  # two kernels, of each both scalings, of each six bandwidths
    assert len(requested) == 24
    narrow = []
    for scaled in (requested[:6] + requested[12:18], requested[6:12] + requested[18:]):
        narrow += sorted(scaled, key=lambda kernel: kernel.bandwidth)[:3]
    assert sorted(map(repr, second.requested)) == sorted(map(repr, narrow))
    assert kernel == max(narrow, key=lambda kernel: kernel.bandwidth)


def test_ties_in_the_first_trial_go_by_the_surrogate_risk():
    """Easy data: no candidate errs, and all of them would be as good by the task loss."""
    first = Recorder(lambda kernel: 0.0, lambda kernel: kernel.name == "rbf")
    second = Recorder(lambda kernel: 0.0, lambda kernel: kernel.bandwidth)
    _, scaling = searched(first, second)
    assert {kernel.name for kernel in second.requested} == {"laplace"}
    assert scaling.scale is not None


@pytest.mark.parametrize("standardize", [np.True_, np.False_, 1, 0])
def test_scaling_given_as_any_boolean(standardize):
    _, scaling = searched(Recorder(lambda kernel: 0.0), standardize=standardize)
    assert (scaling.scale is not None) == bool(standardize)


def test_within_the_error_standardized_inputs_win_and_then_the_surrogate_risk():
    exact = Recorder(lambda kernel: 0.5, lambda kernel: kernel.bandwidth)
    kernel, scaling = searched(exact, names=("rbf",))
    assert scaling.scale is not None
    # the first six were compared on raw inputs
    assert kernel == min(exact.requested[6:], key=lambda kernel: kernel.bandwidth)
    unscaled = exact.requested[:6]
    raw = Recorder(lambda kernel: 0.4 if kernel in unscaled else 0.5)
    assert searched(raw, names=("rbf",))[1].scale is None
    raw.error = 0.2  # too close to tell
    assert searched(raw, names=("rbf",))[1].scale is not None


def test_one_candidate_is_not_tried():
    never = Recorder(lambda kernel: 1 / 0)
    kernel, scaling = searched(never, names=("poly",), bandwidth=2.5, standardize=False)
    assert (kernel, scaling.scale, never.requested) == (Kernel("poly", 2.5), None, [])


@pytest.mark.parametrize("name", ["rbf", "laplace", "poly"])
@pytest.mark.parametrize("sparse", [False, True])
def test_known_distances_give_the_kernel(name, sparse):
    inputs = sp.csr_array(X) if sparse else X
    known = distances(name, inputs, X)
    for bandwidth in (0.7, 3.0):
        kernel = Kernel(name, bandwidth)
        found = SampleKernel(kernel, known).transform(None)
        np.testing.assert_allclose(found, kernel(X, X), rtol=1e-9, atol=1e-12)
