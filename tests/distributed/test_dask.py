"""Dask inputs: the fit in memory, by partitions; two real workers, and one that dies."""

import copy
import os
import signal

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.distributed import fit_averaged
from consistruct.exceptions import ConsistructError
from consistruct.learning.encoding.kinds import generator
from consistruct.learning.models import Probabilities, Ridge

dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 4)) + 1
Y = np.array(["cat", "dog", "eel"])[(X[:, :3] + RNG.normal(size=(N, 3))).argmax(axis=1)]
FRAME = pd.DataFrame(X, columns=list("abcd"))


def estimator(**settings):
    ridge = Ridge("linear", solver="moments", **settings)
    return cs.TaskLossClassifier("zero_one", ridge, random_state=0)


def in_memory():
    return estimator().fit_stream([(X, Y)])


def collections(kind, parts=5):
    if kind == "array":
        return da.from_array(X, chunks=(N // parts, 2)), da.from_array(Y, chunks=N // parts)
    table = dd.from_pandas(FRAME.assign(kind=Y), npartitions=parts)
    return table[list("abcd")], table["kind"]


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_fit_and_lazy_predictions(kind):
    inputs, labels = collections(kind)
    with dask.config.set(scheduler="synchronous"):
        model = estimator().fit(inputs, labels)
        np.testing.assert_allclose(
            model.model_.coef_, in_memory().model_.coef_, rtol=1e-8, atol=1e-12
        )
        lazy = model.predict(inputs)
        assert hasattr(lazy, "__dask_graph__")  # nothing is computed yet
        rows = X if kind == "array" else FRAME
        np.testing.assert_array_equal(lazy.compute(), model.predict(rows))
        for method in ("predict_proba", "expected_losses", "predict_expected_loss"):
            found = getattr(model, method)(inputs).compute()
            np.testing.assert_allclose(found, getattr(model, method)(rows), atol=1e-12)


def test_kernel_features_and_weights():
    settings = {
        "features": "nystroem", "kernel": "rbf", "bandwidth": 2.0, "n_components": 25,
        "standardize": False, "alpha": 1e-3,
    }  # fmt: skip
    model = estimator().set_params(model=Ridge(solver="moments", **settings))
    weight = RNG.integers(0, 3, size=N).astype(float)
    expected = cs.TaskLossClassifier("zero_one", model.model, random_state=0)
    expected.fit_stream([(X, Y, weight)])
    inputs, labels = collections("array")
    with dask.config.set(scheduler="synchronous"):
        model.fit(inputs, labels, sample_weight=da.from_array(weight, chunks=N // 5))
    np.testing.assert_allclose(
        model.model_.expected(X), expected.model_.expected(X), rtol=1e-6, atol=1e-8
    )


def test_columns_of_one_folder_of_files(tmp_path):
    """Dask joins small reads of one column; X and y must still have the same partitions."""
    for number, rows in enumerate(np.array_split(np.arange(N), 6)):
        part = FRAME.assign(kind=Y).iloc[rows]
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    data = dd.read_parquet(tmp_path)
    with dask.config.set(scheduler="synchronous"):
        model = estimator().fit(data[list("abcd")], data["kind"])
    np.testing.assert_allclose(model.model_.coef_, in_memory().model_.coef_, rtol=1e-8, atol=1e-12)


def test_bad_partitions_are_one_clear_line():
    inputs, labels = collections("array")
    with pytest.raises(ConsistructError, match="y must be a Dask collection"):
        estimator().fit(inputs, Y)
    with pytest.raises(ConsistructError, match="X has 5 partitions and y has 1"):
        estimator().fit(inputs, labels.rechunk(N))
    with pytest.raises(ValueError, match="groups is not supported"):
        estimator().fit(inputs, labels, groups=Y)
    with pytest.raises(ValueError, match="cannot learn from batches"):
        estimator().set_params(model=Probabilities()).fit(inputs, labels)


# --- averaged SGD ---


def by_sgd():
    return cs.TaskLossClassifier("zero_one", Ridge("linear", solver="sgd"), random_state=0)


def by_hand(passes, shards, parts=5):
    """The same by `partial_fit` and plain means, without Dask: the definition, written again."""
    rng = generator(0)
    rows = np.array_split(np.arange(N), parts)
    classes = np.unique(Y)

    def add(model, place, seed=None):
        model = copy.deepcopy(model)
        if seed is not None:
            model.stream_ = np.random.default_rng(seed)
        return model.partial_fit(X[rows[place]], Y[rows[place]], classes=classes)

    first, *others = rng.permutation(parts).tolist()
    state = add(by_sgd(), first)
    for order in [others, *(rng.permutation(parts).tolist() for _ in range(passes - 1))]:
        runs = []
        for number in range(shards):
            run, seed = state, int(rng.integers(2**31))
            for position, place in enumerate(order[number::shards]):
                run = add(run, place, None if position else seed)
            runs.append(run)
        state = copy.deepcopy(runs[0])
        inner = [run.model_.sgd_state_ for run in runs]
        steps = [one.scalars[2] for one in inner]
        joined = state.model_.sgd_state_
        joined.V = sum(one.scalars[0] * one.V for one in inner) / shards
        joined.intercept = sum(one.intercept for one in inner) / shards
        average = sum(n * one.weights() for n, one in zip(steps, inner, strict=True)) / sum(steps)
        joined.scalars[:] = (1.0, 0.0, sum(steps))
        joined.U, joined.intercept_sum = -sum(steps) * average[:-1], sum(steps) * average[-1]
        joined.n_seen = max(one.n_seen for one in inner)
        joined.epoch = max(one.epoch for one in inner)
        joined.step = min(one.step for one in inner)
        for name in ("coef_", "intercept_"):
            values = [n * getattr(r.model_, name) for n, r in zip(steps, runs, strict=True)]
            setattr(state.model_, name, sum(values) / sum(steps))
    return state


@pytest.mark.parametrize("shards", [1, 2])
def test_averaged_sgd_is_the_mean_of_its_shards(shards):
    inputs, labels = collections("array")
    with dask.config.set(scheduler="synchronous"):
        model = fit_averaged(by_sgd(), inputs, labels, passes=3, shards=shards)
    expected = by_hand(3, shards)
    np.testing.assert_allclose(model.model_.coef_, expected.model_.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.model_.intercept_, expected.model_.intercept_, rtol=1e-9)
    assert np.mean(model.predict(X) != Y) < np.mean(in_memory().predict(X) != Y) + 0.02


def test_averaging_refuses_sums():
    inputs, labels = collections("array")
    with pytest.raises(ValueError, match="trained by SGD"):
        fit_averaged(estimator(), inputs, labels)
    with pytest.raises(ValueError, match="fit_averaged"):
        by_sgd().fit(inputs, labels)
    with pytest.raises(ValueError, match="passes"):
        fit_averaged(by_sgd(), inputs, labels, passes=0)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def test_two_workers(cluster):
    inputs, labels = collections("array")
    model = estimator().fit(inputs, labels)
    np.testing.assert_allclose(model.model_.coef_, in_memory().model_.coef_, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(model.predict(inputs).compute(), model.predict(X))


def test_averaged_sgd_on_two_workers(cluster):
    """As many shards as threads, and the same model as without workers."""
    inputs, labels = collections("frame")
    model = fit_averaged(by_sgd(), inputs, labels, passes=2)
    with dask.config.set(scheduler="synchronous"):
        alone = fit_averaged(by_sgd(), inputs, labels, passes=2, shards=2)
    np.testing.assert_allclose(model.model_.coef_, alone.model_.coef_, rtol=1e-9)


def test_columns_run_through_joblibs_dask_backend(cluster):
    import joblib
    from sklearn.linear_model import LogisticRegression

    model = cs.TaskLossClassifier(
        "zero_one", Probabilities(LogisticRegression()), cv=3, n_jobs=2, random_state=0
    )
    with joblib.parallel_backend("dask"):
        found = model.fit(X[:200], Y[:200]).predict_proba(X)
    expected = model.set_params(n_jobs=None).fit(X[:200], Y[:200]).predict_proba(X)
    np.testing.assert_allclose(found, expected)


def test_a_worker_that_dies_changes_nothing(cluster, tmp_path):
    """The worker that meets a certain block first kills itself; another one does its work."""
    marker = tmp_path / "killed"

    def deadly(block):
        if block.shape[0] and block[0, 0] == X[240, 0]:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return block
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    inputs = da.from_array(X, chunks=(120, 4)).map_blocks(deadly, dtype=X.dtype, meta=X[:0])
    labels = da.from_array(Y, chunks=120)
    model = estimator().fit(inputs, labels)
    assert marker.exists()
    np.testing.assert_allclose(model.model_.coef_, in_memory().model_.coef_, rtol=1e-8, atol=1e-12)
