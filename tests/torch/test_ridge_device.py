"""Ridge on a device, here the host: the same fits as the closed form of NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import consistruct as cs
from consistruct.decisions.statistics import ClassProbabilities
from consistruct.learning import load, save
from consistruct.learning.models import Ridge
from consistruct.learning.models.features.approximations import (
    KernelCenters,
    NystroemFeatures,
    RandomFeatures,
)
from consistruct.learning.models.features.feature_maps import (
    Kernel,
    LinearFeatures,
    Scaling,
    ScoreMap,
)
from consistruct.learning.models.ridge import device, device_sums
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.models.ridge.device import DeviceClosedForm
from consistruct.learning.models.ridge.moments import Moments
from consistruct.learning.statistics import TargetValues
from consistruct.losses import FBeta, ZeroOne

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) + 3.0
CLASSES = (np.sin(X[:, 0]) + X[:, 1] > 3.0).astype(int) + (X[:, 2] > 3.5)
SETS = (X @ RNG.normal(size=(4, 5)) + RNG.normal(size=(300, 5)) > 0.2).astype(int)
STATISTIC = ClassProbabilities(ZeroOne(3))
WEIGHT = RNG.uniform(0.5, 2.0, 300)


def both(features, host=None, statistic=STATISTIC, true=CLASSES, weight=WEIGHT, **settings):
    """Estimates by the device and by NumPy."""
    rng = np.random.default_rng
    precision, how = settings.pop("precision", "double"), settings.pop("how", "gcv")
    solver = DeviceClosedForm("cpu", precision, how)
    intercept = settings.pop("fit_intercept", True)
    mine, theirs = (ScoreMap(f, fit_intercept=intercept) for f in (features, host or features))
    fit, _ = solver.solve(statistic, mine, X, true, sample_weight=weight, rng=rng(0), **settings)
    plain = ClosedForm(solver.selection, "primal").solve(
        statistic, theirs, X, true, sample_weight=weight, rng=rng(0), **settings
    )
    return mine.apply(fit.weights, X), theirs.apply(plain.weights, X), fit, plain


SCALING = Scaling.standard(X, WEIGHT)
KERNEL = Kernel("rbf", 1.5)


@pytest.mark.parametrize("weight", [WEIGHT, np.full(300, 2.0)], ids=["weights", "uniform"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "features",
    [
        LinearFeatures(4),
        LinearFeatures(4, SCALING),
        RandomFeatures(KERNEL, 4, 20, np.random.default_rng(1), SCALING),
    ],
    ids=["plain", "standardized", "random"],
)
def test_the_same_fit_as_on_the_host(features, fit_intercept, weight, monkeypatch):
    monkeypatch.setattr(device_sums, "CHUNK_ROWS", 64)  # several chunks, several blocks
    monkeypatch.setattr(device_sums, "BLOCK", 7)
    for alpha in (0.01, [1e-3, 1e-2, 0.1]):
        mine, theirs, fit, plain = both(
            features, weight=weight, alpha=alpha, fit_intercept=fit_intercept
        )
        assert fit.alpha == plain.alpha
        np.testing.assert_allclose(mine, theirs, atol=1e-8)
        np.testing.assert_array_equal(fit.out_of_fold.rows, plain.out_of_fold.rows)
        np.testing.assert_allclose(fit.out_of_fold.expected, plain.out_of_fold.expected, atol=1e-8)
    np.testing.assert_allclose(fit.path["gcv"], plain.path["gcv"], rtol=1e-7)


@pytest.mark.parametrize("name", ["rbf", "laplace", "poly"])
def test_nystroem_without_whitening_is_the_same_function(name):
    kernel = Kernel(name, 2.0, degree=2)
    landmarks = X[::10]
    mine, theirs, fit, plain = both(
        KernelCenters(kernel, landmarks, SCALING),
        NystroemFeatures(kernel, landmarks, SCALING),
        alpha=1e-3,
    )
    np.testing.assert_allclose(mine, theirs, atol=1e-6)
    np.testing.assert_allclose(fit.out_of_fold.expected, plain.out_of_fold.expected, atol=1e-6)


@pytest.mark.parametrize("how", ["gcv", "surrogate", "task_loss"])
def test_a_penalty_is_chosen(how):
    statistic = TargetValues(FBeta(5))
    features = RandomFeatures(KERNEL, 4, 30, np.random.default_rng(1), SCALING)
    _, _, fit, plain = both(features, statistic=statistic, true=SETS, weight=np.ones(300), how=how)
    grid, scores = fit.path["alphas"], fit.path[how]
    assert fit.alpha == grid[np.lexsort((-grid, scores))[0]]
    assert 3 <= len(grid) <= 21
    assert abs(np.log10(fit.alpha / plain.alpha)) <= 1.01


def test_out_of_fold_estimates_are_those_of_fits_without_the_row():
    features = KernelCenters(KERNEL, X[::15], SCALING)
    solver = DeviceClosedForm("cpu", "double")
    score_map = ScoreMap(features)
    rng = np.random.default_rng
    fit, _ = solver.solve(STATISTIC, score_map, X, CLASSES, alpha=0.01, rng=rng(0))
    for row in (0, 17):
        kept = np.delete(np.arange(300), row)
        # the penalty is relative to the number of rows
        other, _ = solver.solve(
            STATISTIC, score_map, X[kept], CLASSES[kept], alpha=0.01 * 300 / 299, rng=rng(0)
        )
        own = score_map.apply(other.weights, X[[row]])
        np.testing.assert_allclose(fit.out_of_fold.expected[[row]], own, atol=1e-7)


def test_tensors_need_no_copy_on_the_host():
    features = LinearFeatures(4, SCALING)
    solver = DeviceClosedForm("cpu", "double")
    rng = np.random.default_rng
    plain, _ = solver.solve(STATISTIC, ScoreMap(features), X, CLASSES, rng=rng(0))
    fit, _ = solver.solve(
        STATISTIC, ScoreMap(features), torch.as_tensor(X), torch.as_tensor(CLASSES), rng=rng(0)
    )
    np.testing.assert_allclose(fit.weights, plain.weights, atol=1e-12)


def test_single_precision_damps_what_it_cannot_resolve():
    # centers so close that their kernel matrix is singular in float32: a fit, if a smoother one
    wide = KernelCenters(Kernel("rbf", 10.0), X[:200], SCALING)
    for precision, bound in (("single", 0.35), ("double", 0.1)):
        found = both(wide, precision=precision, alpha=1e-6)[0]
        assert float((found.argmax(1) != CLASSES).mean()) < bound


def test_rounding_to_ten_bits():
    numbers = torch.as_tensor(RNG.normal(size=1000), dtype=torch.float32)
    rounded = device_sums.round_to_tf32(numbers.clone())
    np.testing.assert_allclose(rounded, numbers, rtol=2.0**-11)
    mantissa = np.frexp(rounded.numpy())[0] * 2.0**11
    np.testing.assert_array_equal(mantissa, np.rint(mantissa))
    assert abs(float((rounded - numbers).sum() / numbers.abs().sum())) < 2.0**-14  # to nearest
    assert torch.equal(device_sums.round_to_tf32(rounded.clone()), rounded)


@pytest.mark.parametrize("weight", [WEIGHT, np.ones(300)], ids=["weights", "uniform"])
def test_single_precision_is_close(weight):
    features = RandomFeatures(KERNEL, 4, 30, np.random.default_rng(1), SCALING)
    single, theirs, fit, plain = both(features, weight=weight, precision="single", alpha=1e-3)
    np.testing.assert_allclose(single, theirs, atol=5e-3)
    np.testing.assert_allclose(fit.out_of_fold.expected, plain.out_of_fold.expected, atol=5e-3)


def test_the_trial_takes_double_where_single_is_worse(monkeypatch):
    problem = device._Problem(
        STATISTIC, ScoreMap(LinearFeatures(4, SCALING)), X, CLASSES, np.ones(300), None,
        torch.device("cpu"),
    )  # fmt: skip
    solver = DeviceClosedForm("cpu", "auto")
    assert solver._tried(problem, np.random.default_rng(0)) == "single"
    monkeypatch.setattr(device_sums, "_noise", lambda rows: 1e6)  # everything is damped
    assert solver._tried(problem, np.random.default_rng(0)) == "double"


def test_in_an_estimator(tmp_path):
    for features in ("linear", "nystroem", "random", "auto"):
        model = Ridge(features, device="cpu", n_components=40 if features != "linear" else None)
        fitted = cs.TaskLossClassifier(model=model, random_state=0).fit(X, CLASSES)
        assert -fitted.score(X, CLASSES) < 0.35
        assert fitted.model_.precision_ == "double"
        host = fitted.model_.feature_map_.transform(X) @ fitted.model_.coef_.T
        np.testing.assert_allclose(
            fitted.model_.expected(X), host + fitted.model_.intercept_, atol=1e-9
        )
    save(fitted, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device": "nowhere"}, "device must be None or a device"),
        ({"device": "cpu", "solver": "sgd"}, "closed form with regularizer"),
        ({"device": "cpu", "regularizer": "weights"}, "closed form with regularizer"),
        ({"device": "cpu", "precision": "half"}, "precision must be one of"),
        ({"precision": "single"}, "has an effect only with device"),
    ],
)
def test_bad_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        cs.TaskLossClassifier(model=Ridge("linear", **settings)).fit(X, CLASSES)
    assert "\n" not in str(caught.value)


BLOCKED = """
import builtins
real = builtins.__import__
def guarded(name, *rest, **options):
    if name.split(".")[0] in {blocked!r}:
        raise ImportError(name)
    return real(name, *rest, **options)
builtins.__import__ = guarded
import numpy as np
import consistruct as cs
import consistruct.torch
from consistruct.learning.models import Ridge, Torch
X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
ridge = Ridge("linear", device="cpu")
cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit(X, y).predict(X)
"""


def test_neither_solvers_nor_charts_are_needed():
    blocked = ("clarabel", "plotly", "dask", "matplotlib", "typer", "skops", "triton")
    script = BLOCKED.format(blocked=blocked)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_callers_tensor_is_not_rounded():
    """Linear features without an intercept are the caller's rows themselves."""
    rows = torch.as_tensor(X, dtype=torch.float32)
    before = rows.clone()
    solver = DeviceClosedForm("cpu", "single")
    score_map = ScoreMap(LinearFeatures(4), fit_intercept=False)
    solver.solve(STATISTIC, score_map, rows, CLASSES, rng=np.random.default_rng(0))
    assert torch.equal(rows, before)


@pytest.mark.parametrize("weight", [WEIGHT, np.ones(300)], ids=["weights", "uniform"])
def test_moments_of_the_device_are_those_of_the_host(weight, tmp_path):
    """The same object: they merge with each other's rows and go to the same files."""
    features = RandomFeatures(KERNEL, 4, 20, np.random.default_rng(0))
    on = device_sums.DeviceFeatures(features, torch.device("cpu"), torch.float64)
    parts = [
        device_sums.accumulate_on(
            on, STATISTIC, X[part], CLASSES[part], weight[part], keep=np.arange(0)
        ).moments
        for part in (slice(0, 170), slice(170, 300))
    ]
    whole = Moments.of(features.transform(X), np.eye(3)[CLASSES], weight)
    merged = parts[0] + parts[1]
    assert isinstance(merged.second_moment, torch.Tensor)
    (merged - parts[1]).save(tmp_path / "first")
    merged.save(tmp_path / "all")
    found = Moments.load(tmp_path / "all")
    for name in ("second_moment", "cross_moment", "mean_feature", "mean_target"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-10)
    np.testing.assert_allclose(found.target_squares, whole.target_squares)
    assert found.n_rows == 300
    first = Moments.load(tmp_path / "first")
    np.testing.assert_allclose(first.second_moment, parts[0].second_moment, atol=1e-10)


@pytest.mark.parametrize("features", ["linear", "nystroem", "random"])
def test_tensors_go_through_the_estimators(features):
    """The same model as from arrays; class labels may be tensors too."""
    size = {} if features == "linear" else {"n_components": 30, "bandwidth": 1.5}
    model = Ridge(features, device="cpu", precision="double", **size)
    plain = cs.TaskLossClassifier("zero_one", model, random_state=0).fit(X, CLASSES)
    rows, labels = torch.as_tensor(X), torch.as_tensor(CLASSES)
    given = cs.TaskLossClassifier("zero_one", model, random_state=0).fit(rows, labels)
    if features == "linear":  # landmarks and frequencies are drawn after other draws
        np.testing.assert_allclose(given.expected_target(rows), plain.expected_target(X))
    np.testing.assert_allclose(given.expected_target(rows), given.expected_target(X), atol=1e-12)
    assert (given.predict(rows) == given.predict(X)).all()
    assert given.score(rows, CLASSES) > plain.score(X, CLASSES) - 0.1
    sets = cs.StructuredPredictor("fbeta", model, random_state=0).fit(rows, torch.as_tensor(SETS))
    assert sets.predict(rows).shape == SETS.shape


def test_bad_tensors_are_refused_in_one_line():
    model = Ridge("linear", device="cpu")
    estimator = cs.TaskLossClassifier("zero_one", model)
    rows = torch.as_tensor(X)
    with pytest.raises(ValueError, match="must not contain NaN or infinity"):
        estimator.fit(rows.clone().index_fill_(0, torch.tensor([3]), torch.nan), CLASSES)
    with pytest.raises(ValueError, match="must have shape"):
        estimator.fit(rows[:, 0], CLASSES)
    with pytest.raises(ValueError, match="must have rows and columns"):
        estimator.fit(rows[:0], CLASSES[:0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator.fit(rows, CLASSES[:-1])
    estimator.fit(rows, CLASSES)
    with pytest.raises(ValueError, match="expecting 4 features"):
        estimator.predict(rows[:, :2])
    with pytest.raises(ValueError, match=r"X is on meta, and Ridge computes on the processor"):
        cs.TaskLossClassifier("zero_one", Ridge("linear")).fit(rows.to("meta"), CLASSES)


def test_tensors_on_the_host_are_arrays_to_other_models():
    model = Ridge("linear", alpha=0.1)
    plain = cs.TaskLossClassifier("zero_one", model).fit(X, CLASSES)
    given = cs.TaskLossClassifier("zero_one", model).fit(torch.as_tensor(X), CLASSES)
    np.testing.assert_array_equal(given.predict(torch.as_tensor(X)), plain.predict(X))
