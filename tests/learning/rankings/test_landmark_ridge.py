"""Ridge on landmarks: the kernel is the one that the rule picks, what is fixed stays fixed."""

import numpy as np
import pytest

from consistruct.learning.encoding.item_targets import ItemTargets
from consistruct.learning.encoding.queries import pack_queries
from consistruct.learning.models.features.feature_maps import (
    FeatureOptions,
    Kernel,
    KernelFeatures,
    Scaling,
    median_bandwidth,
)
from consistruct.learning.models.items import landmark_ridge
from consistruct.learning.models.items.landmark_ridge import LandmarkRidge
from consistruct.learning.models.items.learners import training_queries
from consistruct.learning.models.items.model import Items
from consistruct.learning.models.items.query_ridge import QueryRidge, leave_one_query_out
from consistruct.losses import NDCG

LOSS = NDCG(None, n_grades=4)


def problem(worth, n_queries=30, length=6, columns=2, seed=0):
    """Items, uniform on a cube, with grades by `worth`."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n_queries * length, columns))
    batch = pack_queries(X, np.repeat(np.arange(n_queries), length))
    grades = batch.pack(np.clip(np.round(1.5 + worth(X)), 0, 3).astype(int))
    return batch, grades, training_queries(batch.packed_items, grades, LOSS, None)


def wave(X):
    return 1.4 * np.sin(18.0 * X[:, 0])


def slope(X):
    return 3.0 * (X[:, 0] - 0.5)


def steps(X):
    return 1.4 * np.sign(np.sin(9.0 * X[:, 0])) * np.sign(X[:, 1] - 0.5)


def learned(queries, **options):
    options = {"n_components": 512, "standardize": True} | options
    learner = LandmarkRidge(FeatureOptions(**options))
    return learner.fit_and_leave_out(queries, np.random.default_rng(1))


@pytest.mark.parametrize("worth", [wave, slope, steps])
def test_the_kernel_is_what_exact_kernels_say(worth):
    """With all items as landmarks the features are the kernel: the n × n form tells the risks."""
    _, _, queries = problem(worth)
    part = queries.problem
    scaling = Scaling.standard(part.items, part.item_weight)

    def risks(name, width):
        ridge = QueryRidge(
            part, KernelFeatures(Kernel(name, width), part.items, scaling), np.arange(len(queries))
        )
        path = leave_one_query_out(ridge, part, LOSS, queries.grades, ridge.grid())
        best = path.best("task_loss")
        return path.task_loss[best], path.surrogate_risk[best], path.task_error[best]

    def pick(pairs):
        found = {pair: risks(*pair) for pair in pairs}
        least = min(found.values())
        tied = {pair: f[1] for pair, f in found.items() if f[0] <= least[0] + least[2]}
        return min(tied, key=tied.get)

    scaled = scaling(part.items)
    medians = {name: median_bandwidth(scaled, name) for name in ("rbf", "laplace")}
    name, width = pick(medians.items())
    wider = pick([(name, width), (name, 2 * width)])
    expected = wider if wider[1] > width else pick([(name, width), (name, width / 2)])
    kernel = learned(queries)[0].feature_map.kernel
    assert (kernel.name, kernel.bandwidth) == (expected[0], pytest.approx(expected[1]))


def test_a_quick_wave_needs_less_than_the_median():
    batch, grades, queries = problem(wave, 60)
    kernel = learned(queries, kernel="rbf")[0].feature_map.kernel
    scaling = Scaling.standard(queries.problem.items, queries.problem.item_weight)
    median = median_bandwidth(scaling(queries.problem.items), "rbf")
    assert kernel.bandwidth == pytest.approx(0.5 * median, rel=1e-6)

    def ridge_of(model):
        model.fit(batch, grades, ItemTargets(LOSS), rng=np.random.default_rng(0))
        return next(line for line in model.portfolio_ if line["name"] == "ridge")

    searched, median = (
        ridge_of(Items(kernel="rbf")),
        ridge_of(Items(kernel="rbf", bandwidth="median")),
    )
    assert searched["surrogate_risk"] < 0.8 * median["surrogate_risk"]


def test_what_is_out_of_fold_was_not_seen():
    _, _, queries = problem(slope, 12)
    fitted, left = learned(queries, n_components=9)
    part, features = queries.problem, fitted.feature_map
    for query in range(len(queries)):
        others = np.delete(np.arange(len(queries)), query)
        rest = part.take(others)
        ridge = QueryRidge(rest, features, np.arange(0))
        # the penalty is per unit of weight: N of all queries
        weights = ridge.weights(fitted.alpha * part.total_weight / rest.total_weight)
        rows = slice(part.offsets[query], part.offsets[query + 1])
        scores = features.transform(part.items[rows]) @ weights
        np.testing.assert_allclose(left.values[rows], scores - scores.mean(), atol=1e-8)


def test_distances_that_are_too_many_to_keep_change_nothing(monkeypatch):
    _, _, queries = problem(wave, 12)
    kept, left = learned(queries, n_components=20)
    monkeypatch.setattr(landmark_ridge, "KNOWN_BYTES", 0)
    again, left_again = learned(queries, n_components=20)
    assert kept.feature_map.kernel == again.feature_map.kernel
    np.testing.assert_allclose(kept.weights, again.weights, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(left.values, left_again.values, atol=1e-10)


def test_what_is_given_is_not_searched():
    _, _, queries = problem(slope, 12)
    sample = queries.problem.items

    def found(**options):
        return learned(queries, **options)[0].feature_map

    given = found(bandwidth=0.7).kernel
    assert (given.name, given.bandwidth) == ("rbf", 0.7)
    median = found(kernel="laplace", bandwidth="median", standardize=False)
    assert median.kernel.bandwidth == pytest.approx(median_bandwidth(sample, "laplace"))
    assert median.scaling.scale is None
    assert found().scaling.scale is not None
    assert len(found(n_components=7).landmarks) == 7
    fitted, _ = LandmarkRidge(FeatureOptions(n_components=20), 0.01).fit_and_leave_out(
        queries, np.random.default_rng(0)
    )
    assert fitted.alpha == 0.01
    assert fitted.path == {}


def test_auto_refuses_no_landmarks_and_takes_features_of_ones_own():
    batch, grades, _ = problem(slope, 12)

    def fit(**settings):
        return Items(**settings).fit(batch, grades, ItemTargets(LOSS), rng=np.random.default_rng(0))

    with pytest.raises(ValueError, match="n_components must be"):
        fit(n_components=0)
    names = [line["name"] for line in fit(features="linear").portfolio_]
    assert names == ["ridge", "forest", "boosting", "boosting of grades"]
