"""Learning from batches is learning from all rows, whatever the order and the partition."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import consistruct as cs
from consistruct.learning.models import Ridge
from consistruct.learning.streams import Summary, fit_stream, make_plan, survey_batch

N = 240
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 5)) + np.array([0, 3, 0, 50, 0])
CLASSES = np.array(["ant", "bee", "cat"])
Y = CLASSES[(X[:, :3] + RNG.normal(size=(N, 3)) - [0, 3, 0]).argmax(axis=1)]
SETS = (X[:, :3] + RNG.normal(size=(N, 3)) > [0.3, 3.2, 0.1]).astype(int)
GRADES = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=N), [-0.5, 0.5])
WEIGHT = RNG.integers(0, 4, size=N).astype(float)
COSTS = RNG.uniform(size=(N, 3)) * 4
FEATURES = {
    "linear": {"features": "linear"},
    "standardized": {"features": "linear", "standardize": True},
    "random": {
        "features": "random", "kernel": "rbf", "bandwidth": 4.0, "n_components": 20,
        "standardize": False,
    },
    "nystroem": {
        "features": "nystroem", "kernel": "rbf", "bandwidth": 4.0, "n_components": 20,
        "standardize": False,
    },
}  # fmt: skip
TARGETS = {
    "classes": (cs.TaskLossClassifier, "zero_one", Y),
    "costs": (
        cs.TaskLossClassifier,
        cs.losses.CostMatrix([[0, 1, 4], [2, 0, 1], [1, 1, 0]], rows="pred"),
        Y,
    ),
    "ordinal": (cs.TaskLossClassifier, "ordinal", GRADES),
    "tree": (cs.TaskLossClassifier, cs.losses.Tree((-1, 0, 0, 1, 1)), GRADES),
    "sets": (cs.TaskLossClassifier, "hamming", SETS),
    "F1": (cs.TaskLossClassifier, "fbeta", SETS),
    "cost vectors": (cs.StructuredPredictor, cs.losses.CostVectors(3, 4.0), COSTS),
}


def cut(order, cuts, y, weight=None):
    parts = [np.array(part, dtype=int) for part in np.split(np.array(order), cuts)]
    return [(X[p], y[p]) if weight is None else (X[p], y[p], weight[p]) for p in parts]


def estimator(target="classes", features="linear", **settings_):
    face, loss, _ = TARGETS[target]
    return face(loss, Ridge(solver="moments", **FEATURES[features], **settings_), random_state=3)


def assert_same(first, second, digits=1e-8):
    one, other = first.model_, second.model_
    np.testing.assert_allclose(one.alpha_, other.alpha_, rtol=1e-9)
    scale = np.abs(one.coef_).max()
    assert np.abs(one.coef_ - other.coef_).max() <= digits * scale
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=digits, atol=digits)
    found, expected = first.recalibration_, second.recalibration_
    assert type(found) is type(expected)
    for name in ("contrast", "power", "floor"):
        one, other = getattr(found, name, None), getattr(expected, name, None)
        assert one == other or one == pytest.approx(other, rel=1e-9)  # sums in another order


@pytest.mark.parametrize("features", FEATURES)
@given(st.data())
@settings(max_examples=8, deadline=None)
def test_any_partition_any_order(features, data):
    whole = estimator(features=features, alpha=1e-3).fit_stream([(X, Y)])
    order = data.draw(st.permutations(range(N)))
    cuts = sorted(data.draw(st.sets(st.integers(1, N - 1), max_size=6)))
    parts = estimator(features=features, alpha=1e-3).fit_stream(cut(order, cuts, Y))
    assert_same(whole, parts)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_with_weights(target):
    y = TARGETS[target][2]
    batches = cut(range(N), [50, 120], y, WEIGHT)
    streamed = estimator(target).fit_stream(batches)
    repeated = np.repeat(np.arange(N), WEIGHT.astype(int))
    again = estimator(target).fit_stream(cut(repeated[::-1], [77], y))
    assert_same(streamed, again)
    fixed = estimator(target, alpha=streamed.model_.alpha_)
    in_memory = fixed.set_params(model__solver="closed_form").fit(X, y, WEIGHT)
    np.testing.assert_allclose(streamed.model_.coef_, in_memory.model_.coef_, atol=1e-9)
    assert np.shape(streamed.predict(X)) == np.shape(in_memory.predict(X))
    assert streamed.score(X, y) >= in_memory.score(X, y) - 0.05 * abs(in_memory.score(X, y))


def test_merged_summaries_are_the_fit_and_an_expired_part_leaves(tmp_path):
    parts = cut(range(N), [80, 160], Y)
    plan = make_plan(estimator(), sum(survey_batch(part, size=0) for part in parts))
    summaries = [plan.summarize(part) for part in parts]
    assert_same(plan.finish(sum(summaries)), estimator().fit_stream(parts))
    summaries[0].save(tmp_path / "monday")
    rest = sum(summaries[1:], summaries[0]) - Summary.load(tmp_path / "monday")
    kept = plan.finish(rest)
    assert_same(kept, estimator().fit_stream(parts[1:]), digits=1e-7)


def test_partial_fit_is_exact():
    model = estimator()
    for X_part, y_part in cut(RNG.permutation(N), [60, 61, 200], Y):
        model.partial_fit(X_part, y_part, classes=CLASSES)
    whole = estimator().fit_stream([(X, Y)])
    np.testing.assert_allclose(model.model_.coef_, whole.model_.coef_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.model_.alpha_, whole.model_.alpha_)


def test_partial_fit_goes_on_after_a_stream():
    model = estimator(features="standardized").fit_stream([(X[:150], Y[:150])])
    model.partial_fit(X[150:], Y[150:])
    whole = estimator(features="standardized").fit_stream([(X, Y)])
    np.testing.assert_allclose(model.model_.coef_, whole.model_.coef_, rtol=1e-8, atol=1e-12)


def test_a_model_file_goes_on_where_it_stopped(tmp_path):
    from consistruct.learning import load, save

    model = estimator().partial_fit(X[:100], Y[:100], classes=CLASSES)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model").partial_fit(X[100:], Y[100:])
    model.partial_fit(X[100:], Y[100:])
    np.testing.assert_array_equal(again.model_.coef_, model.model_.coef_)


def test_held_out_rows_choose_the_penalty_by_the_task_loss():
    grid = [1e-6, 1e-2, 10.0]
    model = estimator(alpha=grid).fit_stream([(X[:150], Y[:150])], held_out=[(X[150:], Y[150:])])
    assert model.path_["task_loss"].shape == (3,)
    for alpha, expected in zip(grid, model.path_["task_loss"], strict=True):
        single = estimator(alpha=alpha).fit_stream([(X[:150], Y[:150])])
        estimates = single.model_.expected(X[150:])
        losses = CLASSES[single.statistic_.decode(estimates)] != Y[150:]
        assert abs(losses.mean() - expected) <= 1 / 90 + 1e-12  # one tie may be decided otherwise
    best = model.path_["task_loss"].min()
    assert model.path_["task_loss"][grid.index(model.model_.alpha_)] <= best + 1e-9


def test_one_pass_is_enough_where_labels_are_known():
    source = iter(cut(range(N), [100], Y))
    once = estimator().fit_stream(source, classes=CLASSES)
    assert_same(once, estimator().fit_stream([(X, Y)]))


def test_sparse_rows_and_balanced_classes():
    batches = [(sp.csr_array(X[part]), Y[part]) for part in np.array_split(np.arange(N), 3)]
    model = estimator().set_params(class_weight="balanced").fit_stream(batches)
    dense = estimator().set_params(class_weight="balanced").fit_stream([(X, Y)])
    assert_same(model, dense, digits=1e-6)
    in_memory = estimator(alpha=dense.model_.alpha_).set_params(
        class_weight="balanced", model__solver="closed_form"
    )
    np.testing.assert_allclose(in_memory.fit(X, Y).model_.coef_, dense.model_.coef_, atol=1e-9)


def test_sgd_reads_shuffled_batches_several_times():
    ridge = Ridge("linear", solver="sgd", alpha=1e-3)
    centered = X - X.mean(axis=0)
    parts = [(centered[p], Y[p]) for p in np.array_split(np.arange(N), 4)]
    model = cs.TaskLossClassifier("zero_one", ridge, random_state=0)
    model.fit_stream(parts, passes=30)
    exact = estimator(alpha=1e-3).fit_stream([(centered, Y)])
    assert model.score(centered, Y) >= exact.score(centered, Y) - 0.03
    gap = np.abs(model.model_.expected(centered) - exact.model_.expected(centered)).mean()
    assert gap < 0.02


@pytest.mark.parametrize(
    ("change", "batches", "words"),
    [
        ({}, lambda: iter([(X, Y)]), "read once"),
        ({}, list, "no batches"),
        ({}, lambda: X, "a batch must be"),
        ({}, lambda: 3, "list of"),
        ({}, lambda: [{"X": X, "z": Y}], "entries X and y"),
        ({}, lambda: [(X, Y), (X[:, :2], Y)], "differ in their columns"),
        ({}, lambda: [(X, Y, np.zeros(N))], "no rows"),
        ({"cv": 3}, lambda: [(X, Y)], "cv="),
        ({}, lambda: [(X, Y), (np.where(X > 52, np.nan, X), Y)], "contains NaN"),
        ({}, lambda: [(X, Y), (np.where(X > 52, np.inf, X), Y)], "infinity"),
        ({"model": Ridge("rbf")}, lambda: [(X, Y)], "a kernel over all rows"),
        ({"model": "stack"}, lambda: [(X, Y)], "cannot learn from batches"),
        ({"model": Ridge("linear", solver="sgd")}, lambda: iter([(X, Y)]), "read once"),
    ],
)
def test_bad_batches_are_one_clear_line(change, batches, words):
    model = estimator().set_params(**change)
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        fit_stream(model, batches())
    assert "\n" not in str(caught.value)


def test_a_label_that_was_not_announced():
    with pytest.raises(ValueError, match="ant"):
        estimator().fit_stream([(X, Y)], classes=["bee", "cat"])
    with pytest.raises(ValueError, match="passes=2"):
        estimator().fit_stream([(X, Y)], passes=2)
