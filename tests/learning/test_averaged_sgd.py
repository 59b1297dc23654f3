"""Averaged SGD: against a naive loop, the closed form, L-BFGS; checkpoints, early stopping."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.decisions.statistics import ClassProbabilities
from consistruct.exceptions import CapabilityError
from consistruct.learning.files.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from consistruct.learning.models.features.feature_maps import LinearFeatures, ScoreMap
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.learning.models.solvers.lbfgs import LBFGS
from consistruct.learning.models.solvers.paper_sgd import PaperSGD
from consistruct.learning.models.solvers.sgd_run import SGDRun
from consistruct.learning.statistics import TargetValues
from consistruct.losses import NDCG, Abstain, Hamming, Mixed, Ordinal, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.surrogates import QuadraticSurrogate, make_surrogate


def problem(loss, n=60, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    true = loss.true_labels.sample(n, rng)
    return X, true, rng.integers(1, 3, size=n).astype(float)


def ridge(X, values, weight, alpha, *, intercept=True):
    """min (1/N) Σ w ½‖Wᵀx + b − τ‖² + (α/2)‖W‖² by the normal equations, (d (+ 1), width)."""
    design = np.column_stack([X, np.ones(len(X))]) if intercept else X
    penalty = alpha * weight.sum() * np.eye(design.shape[1])
    if intercept:
        penalty[-1, -1] = 0.0
    weighted = design * weight[:, None]
    return np.linalg.solve(weighted.T @ design + penalty, weighted.T @ values)


def naive_average(run, X, values, rng, epochs):
    """The same steps with dense weights and a running mean over the averaged iterates."""
    state = run.state
    U = -values
    shift = np.zeros(X.shape[1]) if run.design.sparse else run.weight @ X / run.weight.sum()
    Z = X - shift
    W, b = np.zeros((X.shape[1], U.shape[1])), -(run.weight @ U) / len(U)
    kept: list[np.ndarray] = []
    for epoch in range(epochs):
        if epoch in (0, 1, 2, 4, 8):
            kept = []
        order = rng.permutation(len(X))
        for start in range(0, len(X), run.solver.batch_size):
            batch = order[start : start + run.solver.batch_size]
            residual = (Z[batch] @ W + b + U[batch]) * run.weight[batch][:, None]
            W = (1 - state.step * state.alpha) * W - state.step / len(batch) * Z[batch].T @ residual
            b = b - state.step / len(batch) * residual.sum(axis=0)
            if epoch > 0:
                kept.append(np.vstack([W, b - shift @ W]))
    return np.mean(kept, axis=0)


@pytest.mark.parametrize(
    "statistic",
    [
        TargetValues(ZeroOne(3)),
        TargetValues(Hamming(4)),
        TargetValues(Hamming(2, 3)),
        TargetValues(Mixed((2, 2), 0.4)),
        ClassProbabilities(Ordinal(4, 2.0)),
        ClassProbabilities(ZeroOne(2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("alpha", ["auto", 5.0])  # with 5, W shrinks by a half a step
def test_lazy_averages_and_dependent_columns_are_the_naive_loop(statistic, sparse, alpha):
    X, true, weight = problem(statistic.loss)
    inputs = sp.csr_array(X) if sparse else X
    rng = np.random.default_rng(1)
    run = SGDRun(
        AveragedSGD(batch_size=7),
        statistic,
        ScoreMap(LinearFeatures(6)),
        inputs,
        true,
        weight,
        rng,
        alpha=alpha,
    )
    dependent = isinstance(statistic, ClassProbabilities) or isinstance(statistic.loss, Hamming)
    assert (run.objective.width < statistic.width) == dependent
    copy = np.random.default_rng()
    copy.bit_generator.state = rng.bit_generator.state
    for _ in range(4):
        run.epoch(rng)
    values = dense_target(statistic.values(true))
    expected = naive_average(run, X, values, copy, 4)
    # sparse steps are of float32: some hundred roundings of weights up to one
    np.testing.assert_allclose(run.weights(), expected, atol=2e-6 if sparse else 1e-10)


@pytest.mark.parametrize(
    "statistic",
    [
        TargetValues(ZeroOne(3)),
        ClassProbabilities(ZeroOne(3)),
        TargetValues(Hamming(4)),
        TargetValues(NDCG(3)),  # its offset is one more column
    ],
    ids=repr,
)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["sgd", "lbfgs"])
def test_a_statistic_is_fitted_by_least_squares(statistic, sparse, intercept, name):
    X, true, weight = problem(statistic.loss)
    inputs = sp.csr_array(X) if sparse else X
    score_map = ScoreMap(LinearFeatures(6), fit_intercept=intercept)
    values = dense_target(statistic.values(true))
    expected = ridge(X, values, weight, 0.05, intercept=intercept)
    solver = (
        LBFGS(tol=1e-10) if name == "lbfgs" else AveragedSGD(batch_size=4, max_epochs=512, tol=-1.0)
    )
    found = solver.solve(
        statistic,
        score_map,
        inputs,
        true,
        alpha=0.05,
        sample_weight=weight,
        rng=np.random.default_rng(2),
    )
    assert found.weights.shape == expected.shape
    close = 1e-6 if name == "lbfgs" else 8e-3
    np.testing.assert_allclose(found.weights, expected, atol=close)


@pytest.mark.parametrize("name", ["logistic", "log", "square", "quadratic"])
def test_sgd_reaches_lbfgs_on_surrogates(name):
    loss = Ordinal(3)
    X, true, weight = problem(loss)
    surrogate, score_map = make_surrogate(name, loss), ScoreMap(LinearFeatures(6))
    common = {"alpha": 0.1, "sample_weight": weight, "rng": np.random.default_rng(3)}
    exact = LBFGS(tol=1e-9).solve(surrogate, score_map, X, true, **common)
    found = AveragedSGD(max_epochs=1000, tol=-1.0).solve(surrogate, score_map, X, true, **common)
    F = loss.score_space.matrix()
    scores = [score_map.apply(result.weights, X) @ F.T for result in (exact, found)]
    scores = [value - value.mean(axis=1, keepdims=True) for value in scores]
    np.testing.assert_allclose(scores[0], scores[1], atol=0.03)


def test_lbfgs_on_the_quadratic_surrogate_has_no_slope_left():
    """Normal equations of (1/N) Σ w ½ rᵀḠr + (α/2)‖W‖² with r = Wᵀx + b + u."""
    loss = Hamming(3)
    X, true, weight = problem(loss)
    found = LBFGS(tol=1e-10).solve(
        QuadraticSurrogate(loss),
        ScoreMap(LinearFeatures(6)),
        X,
        true,
        alpha=0.1,
        sample_weight=weight,
        rng=np.random.default_rng(3),
    )
    F, mu = loss.score_space.matrix(), loss.predictions.weights()
    gram = F.T @ (F * mu[:, None])
    residual = X @ found.weights[:-1] + found.weights[-1] + dense_target(loss.target(true))
    slope = (residual @ gram) * (weight / weight.sum())[:, None]
    np.testing.assert_allclose(X.T @ slope + 0.1 * found.weights[:-1], 0.0, atol=1e-7)
    np.testing.assert_allclose(slope.sum(axis=0), 0.0, atol=1e-7)


def test_sampled_labels_learn_the_same_decisions():
    loss = ZeroOne(3)
    rng = np.random.default_rng(4)
    true = rng.integers(3, size=600)
    X = np.eye(3)[true] + 0.1 * rng.normal(size=(600, 3))
    solver = AveragedSGD(label_sampling=True, max_epochs=20, tol=-1.0)
    surrogate, score_map = make_surrogate("square", loss), ScoreMap(LinearFeatures(3))
    found = solver.solve(surrogate, score_map, X, true, alpha=1e-3, rng=rng)
    assert (surrogate.decode(score_map.apply(found.weights, X)) == true).mean() > 0.98


def held_out_losses(loss, X, true, weight, shares, seed):
    """The search of alpha="auto", with fits that start from nothing for every candidate."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(true))
    held_out, used = np.sort(rows[: len(rows) // 4]), np.sort(rows[len(rows) // 4 :])
    score_map, statistic = ScoreMap(LinearFeatures(X.shape[1])), TargetValues(loss)
    mean_square = float(weight @ ((X**2).sum(axis=1) + 1.0)) / weight.sum()
    losses = []
    inputs = sp.csr_array(X)
    for share in shares:
        alpha = share * mean_square / len(used)
        solver = AveragedSGD(max_epochs=8, patience=8)
        part = inputs[used], true[used]
        found = solver.solve(
            statistic, score_map, *part, alpha=alpha, sample_weight=weight[used], rng=rng
        )
        pred = statistic.decode(score_map.apply(found.weights, inputs[held_out]))
        losses.append(np.average(loss(pred, true[held_out]), weights=weight[held_out]))
    return losses, mean_square


def test_automatic_penalty_does_best_on_held_out_rows():
    """Few informative columns among hundreds of noisy ones: the largest penalty is the best."""
    loss = ZeroOne(2)
    rng = np.random.default_rng(0)
    true = rng.integers(2, size=400)
    X = rng.normal(size=(400, 300)) * (rng.random((400, 300)) < 0.3)
    X[:, 0] += 2.0 * (2 * true - 1)
    weight = np.ones(400)
    shares = (1.0, 0.1, 0.01, 0.001)
    found = AveragedSGD(max_epochs=1).solve(
        TargetValues(loss),
        ScoreMap(LinearFeatures(300)),
        sp.csr_array(X),
        true,
        sample_weight=weight,
        rng=np.random.default_rng(3),
    )
    losses, mean_square = held_out_losses(loss, X, true, weight, shares, seed=3)
    chosen = shares[
        int(np.argmin(np.abs(np.log(shares) - np.log(found.alpha * 400 / mean_square))))
    ]
    assert found.alpha == pytest.approx(chosen * mean_square / 400)
    # orders of the rows differ between the two searches: a row of a hundred either way
    assert losses[shares.index(chosen)] <= min(losses) + 0.02


def test_few_rows_take_the_largest_penalty():
    loss = ZeroOne(3)
    X, true, weight = problem(loss)
    found = AveragedSGD(max_epochs=1).solve(
        TargetValues(loss),
        ScoreMap(LinearFeatures(6)),
        sp.csr_array(X),
        true,
        sample_weight=weight,
        rng=np.random.default_rng(3),
    )
    expected = float(weight @ ((X**2).sum(axis=1) + 1.0)) / weight.sum() / len(true)
    assert found.alpha == pytest.approx(expected)


@pytest.mark.parametrize(("sparse", "expected"), [(True, 1), (False, 16)])
def test_automatic_batches(sparse, expected):
    loss = Ordinal(3)
    X, true, weight = problem(loss)
    inputs = sp.csr_array(X) if sparse else X
    for objective, size in ((TargetValues(loss), expected), (make_surrogate("log", loss), 16)):
        run = SGDRun(
            AveragedSGD(),
            objective,
            ScoreMap(LinearFeatures(6)),
            inputs,
            true,
            weight,
            np.random.default_rng(0),
        )
        assert run.batch_size == size


def test_early_stopping_keeps_the_best_average():
    loss = ZeroOne(3)
    X, true, _ = problem(loss, n=200)
    solver = AveragedSGD(early_stopping=True, max_epochs=60, patience=3)
    statistic, score_map = TargetValues(loss), ScoreMap(LinearFeatures(6))
    found = solver.solve(statistic, score_map, X, true, rng=np.random.default_rng(5))
    held_out = np.sort(np.random.default_rng(5).permutation(200)[:20])
    losses = loss(statistic.decode(score_map.apply(found.weights, X[held_out])), true[held_out])
    assert losses.mean() == pytest.approx(found.path["risk"].min())
    assert found.n_iter < 60
    with pytest.raises(ValueError, match="early_stopping needs rows to train on"):
        solver.solve(statistic, score_map, X[:1], true[:1], rng=np.random.default_rng(5))


PROGRAM = """
    import os, signal, sys
    import numpy as np, scipy.sparse as sp
    from consistruct.learning.files import checkpoint
    from consistruct.learning.models.features.feature_maps import LinearFeatures
    from consistruct.learning.models.solvers import sgd_loop
    from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
    from consistruct.learning.models.solvers.base import ScoreMap
    from consistruct.learning.statistics import TargetValues
    from consistruct.losses import Hamming

    path, kill_at, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    written = 0
    def write(*arguments):
        global written
        checkpoint.write_checkpoint(*arguments)
        written += 1
        if written == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    sgd_loop.write_checkpoint = write
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(50, 8)) * (rng.random((50, 8)) < 0.5))
    true = rng.integers(2, size=(50, 4))
    solver = AveragedSGD(max_epochs=12, tol=-1.0, early_stopping=True, patience=20,
                         checkpoint=path or None)
    found = solver.solve(TargetValues(Hamming(4)), ScoreMap(LinearFeatures(8)), X, true,
                         rng=np.random.default_rng(7))
    np.save(out, np.vstack([found.weights, np.full((1, 8), found.n_iter)]))
"""


def test_a_killed_fit_resumes_to_the_identical_result(tmp_path):
    program = tmp_path / "fit.py"
    program.write_text(textwrap.dedent(PROGRAM))

    def run(checkpoint, kill_at, out):
        return subprocess.run(
            [sys.executable, str(program), str(checkpoint), str(kill_at), str(tmp_path / out)],
            check=False,
            env=os.environ.copy(),
        ).returncode

    assert run("", 0, "plain.npy") == 0
    state = tmp_path / "state.safetensors"
    assert run(state, 5, "never.npy") == -signal.SIGKILL
    assert not (tmp_path / "never.npy").exists()
    assert run(state, 0, "resumed.npy") == 0
    plain, resumed = np.load(tmp_path / "plain.npy"), np.load(tmp_path / "resumed.npy")
    np.testing.assert_array_equal(plain, resumed)
    assert not list(tmp_path.glob(".state.safetensors.*"))  # no temporary file is left


def test_checkpoints_of_other_fits_and_damaged_ones_are_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    assert read_checkpoint(path, "a") is None
    write_checkpoint(path, Checkpoint({"V": np.ones((2, 2))}, {"epoch": 3}, "a"))
    found = read_checkpoint(path, "a")
    assert found is not None
    assert found.numbers == {"epoch": 3}
    np.testing.assert_array_equal(found.arrays["V"], np.ones((2, 2)))
    with pytest.raises(ValueError, match="belongs to a fit with other data or parameters"):
        read_checkpoint(path, "b")
    content = path.read_bytes()
    for length in (0, 40, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"checkpoint state.safetensors is damaged.*delete it"):
            read_checkpoint(path, "a")
    flipped = bytearray(content)
    flipped[-3] ^= 1  # within the last number: the file as such is still well formed
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match="its checksum does not match"):
        read_checkpoint(path, "a")
    path.write_bytes(content.replace(b'"version":"2"', b'"version":"1"'))
    with pytest.raises(ValueError, match="is not a checkpoint of version 2 of this package"):
        read_checkpoint(path, "a")


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_checkpoints_are_ordinary_files(tmp_path):
    path, other = tmp_path / "state.safetensors", tmp_path / "other"
    other.write_bytes(b"")
    write_checkpoint(path, Checkpoint({"V": np.ones(2)}, {}, "a"))
    assert path.stat().st_mode == other.stat().st_mode
    assert sorted(tmp_path.iterdir()) == [other, path]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a finite number"),
        ({"step_factor": 0.0}, "step_factor must be a finite number"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        AveragedSGD(**arguments)


@pytest.mark.parametrize("solver", [AveragedSGD(), LBFGS(), PaperSGD()], ids=repr)
def test_penalties_are_checked(solver):
    loss, score_map = ZeroOne(2), ScoreMap(LinearFeatures(1))
    given = (TargetValues(loss), score_map, np.zeros((2, 1)), [0, 1])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="only the closed form chooses among several"):
        solver.solve(*given, alpha=[0.1, 1.0], rng=rng)
    with pytest.raises(ValueError, match="alpha must be 'auto', a non-negative number"):
        solver.solve(*given, alpha="large", rng=rng)


def test_objectives_are_checked():
    score_map, rng = ScoreMap(LinearFeatures(1)), np.random.default_rng(0)
    with pytest.raises(TypeError, match="a solver minimizes a Statistic"):
        LBFGS().solve(ZeroOne(2), score_map, np.zeros((2, 1)), [0, 1], rng=rng)
    with pytest.raises(CapabilityError, match="label_sampling"):
        AveragedSGD(label_sampling=True).solve(
            TargetValues(ZeroOne(2)), score_map, np.zeros((2, 1)), [0, 1], rng=rng
        )


@pytest.mark.parametrize("n", [200, 600])
def test_automatic_penalty_of_lbfgs_is_validated_on_held_out_rows(n):
    """Classes far apart, so that the strongest penalty leaves probabilities too near 1/3."""
    rng = np.random.default_rng(0)
    true = rng.integers(3, size=n)
    X = np.eye(3)[true] + 0.25 * rng.normal(size=(n, 3))
    loss, score_map = Abstain(3, 0.1), ScoreMap(LinearFeatures(3))
    surrogate = make_surrogate("log", loss)
    found = LBFGS().solve(surrogate, score_map, X, true, rng=np.random.default_rng(3))
    whole = ((X - X.mean(axis=0)) ** 2).sum() / n + 1.0  # centered, and the intercept's one
    share = found.alpha * n / whole
    if n < 256:  # fewer rows rank nothing
        assert share == pytest.approx(1.0)
        return
    rows = np.random.default_rng(3).permutation(n)
    held_out, used = np.sort(rows[: n // 4]), np.sort(rows[n // 4 :])
    losses = {}
    for candidate in (1.0, 0.1, 0.01, 0.001):  # each from nothing, to the end
        alpha = candidate * whole / len(used)
        fit = LBFGS().solve(surrogate, score_map, X[used], true[used], alpha=alpha, rng=rng)
        theta = score_map.apply(fit.weights, X[held_out])
        losses[candidate] = surrogate.value_and_gradient(theta, true[held_out])[0].mean()
    chosen = min(losses, key=lambda candidate: abs(np.log(candidate / share)))
    assert share == pytest.approx(chosen)
    assert losses[chosen] == min(losses.values())
    assert losses[1.0] > losses[chosen]
