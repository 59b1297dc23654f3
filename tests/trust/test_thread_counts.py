"""No more threads than cores, none within a worker, and one for small tables."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from threadpoolctl import threadpool_info, threadpool_limits

import consistruct as cs
from consistruct.models import Probabilities, Regressor

ALLOWED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
RNG = np.random.default_rng(0)
X = RNG.normal(size=(265, 4))
Y = np.where(X[:, 0] > 0, "a", "b")
WIDE = RNG.normal(size=(1500, 4))
WIDE_Y = np.where(WIDE[:, 0] > 0, "a", "b")


def libraries():
    found = threadpool_info()
    return {
        api: max((entry["num_threads"] for entry in found if entry["user_api"] == api), default=1)
        for api in ("blas", "openmp")
    }


class Spy(BaseEstimator):
    """Writes down where it runs and how many threads and workers it could start there."""

    def __init__(self, log=None, wait=None, n_jobs=None):
        self.log = log
        self.wait = wait
        self.n_jobs = n_jobs

    def note(self, doing):
        if self.wait is not None:
            self.wait(doing)
        entry = {
            "doing": doing,
            "process": os.getpid(),
            "workers": joblib.effective_n_jobs(-1),
            "own": joblib.effective_n_jobs(self.n_jobs),
            **libraries(),
        }
        with Path(self.log).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def fit(self, X, y):
        self.note("fit")
        self.classes_ = np.unique(y)
        return self


class SpyClassifier(ClassifierMixin, Spy):
    def predict_proba(self, X):
        self.note("predict")
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class SpyRegressor(RegressorMixin, Spy):
    def predict(self, X):
        return np.zeros(len(X))


class Held:
    """Stays itself when an estimator is cloned."""

    def __init__(self, function):
        self.function = function

    def __call__(self, doing):
        self.function(doing)

    def __deepcopy__(self, memo):
        return self


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


def entries(log):
    return [json.loads(line) for line in Path(log).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(autouse=True)
def two_threads_in_every_library():
    with threadpool_limits(2):
        yield


def test_small_tables_use_one_thread_of_every_library(log):
    model = cs.TaskLossClassifier(model=Probabilities(SpyClassifier(log))).fit(X, Y)
    model.predict(X)
    model.task_losses(X, Y)
    model.predict_expected_loss(X)
    seen = entries(log)
    assert {entry["doing"] for entry in seen} == {"fit", "predict"}
    assert {(entry["blas"], entry["openmp"]) for entry in seen} == {(1, 1)}
    assert libraries() == {"blas": 2, "openmp": 2}  # as before


def test_libraries_get_no_more_threads_than_the_cores_that_are_allowed(log, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # as the limit of a container is
    model = cs.TaskLossClassifier(model=Probabilities(SpyClassifier(log))).fit(WIDE, WIDE_Y)
    model.predict(WIDE)
    assert {(entry["blas"], entry["openmp"]) for entry in entries(log)} == {(1, 1)}


def test_a_library_that_stays_at_one_thread_does_not_hide_the_others():
    """The BLAS that SCS brings stays at the number of threads that it was started with."""
    pytest.importorskip("scs")
    program = """
import numpy, scipy.linalg, scs
from threadpoolctl import threadpool_info, threadpool_limits
from consistruct import TaskLossClassifier
from consistruct.models import Probabilities
from sklearn.naive_bayes import GaussianNB

class Spy(GaussianNB):
    def fit(self, X, y):
        print({entry["num_threads"] for entry in threadpool_info()})
        return super().fit(X, y)

X = numpy.random.default_rng(0).normal(size=(60, 3))
with threadpool_limits(2):
    TaskLossClassifier(model=Probabilities(Spy())).fit(X, X[:, 0] > 0)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == {"{1}"}


def test_a_library_that_any_package_loads_later_has_one_thread_too(tmp_path):
    """Nobody can list all packages that bring a BLAS; here one is brought by a module `late`."""
    if sys.platform != "linux" or "openblas" not in {e["internal_api"] for e in threadpool_info()}:
        pytest.skip("needs a copy of a BLAS, which Linux and OpenBLAS allow")
    (tmp_path / "late.py").write_text("import ctypes; ctypes.CDLL('./libopenblas-late.so')")
    program = """
import numpy, shutil
from threadpoolctl import threadpool_info, threadpool_limits
shutil.copy(threadpool_info()[0]["filepath"], "libopenblas-late.so")
from sklearn.naive_bayes import GaussianNB
from consistruct import TaskLossClassifier
from consistruct.models import Probabilities

class Spy(GaussianNB):
    def fit(self, X, y):
        print(max(entry["num_threads"] for entry in threadpool_info()))
        return super().fit(X, y)

X = numpy.random.default_rng(0).normal(size=(60, 3))
TaskLossClassifier(model=Probabilities(Spy())).fit(X, X[:, 0] > 0)
import late
with threadpool_limits(2):
    TaskLossClassifier(model=Probabilities(Spy())).fit(X, X[:, 0] > 0)
print(sum("late" in entry["filepath"] for entry in threadpool_info()))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert set(done.stdout.split()) == {"1"}, done.stderr


def test_a_library_that_a_fit_itself_loads_has_one_thread_too():
    """PyTorch is imported by the first fit of a network, when the limit is set already."""
    pytest.importorskip("torch")
    program = """
import numpy, sys
from consistruct import TaskLossClassifier
from consistruct.models import Torch

def network(n_inputs, n_outputs):
    import torch
    class Spy(torch.nn.Linear):
        def forward(self, X):
            print(torch.get_num_threads())
            return super().forward(X)
    return Spy(n_inputs, n_outputs)

X = numpy.random.default_rng(0).normal(size=(60, 3))
assert "torch" not in sys.modules
TaskLossClassifier(model=Torch(network, max_epochs=1)).fit(X, X[:, 0] > 0)
import torch
print("afterwards", torch.get_num_threads())
"""
    # other variables of libraries (MKL's, say) would change how many threads PyTorch begins with
    environment = {key: text for key, text in os.environ.items() if not key.endswith("_THREADS")}
    environment["OMP_NUM_THREADS"] = "2"

    def printed(text):
        command = [sys.executable, "-c", text]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    at_first = printed("import torch; print(torch.get_num_threads())")[0]
    lines = printed(program)
    assert set(lines[:-1]) == {"1"}
    assert lines[-1] == f"afterwards {at_first}"


def test_a_worker_starts_no_workers_and_one_thread(log):
    model = Probabilities(SpyClassifier(log), n_jobs=2)
    cs.TaskLossClassifier(model=model, cv=3, n_jobs=2).fit(WIDE, WIDE_Y)
    folds = [entry for entry in entries(log) if entry["process"] != os.getpid()]
    assert len(folds) >= 3 or ALLOWED == 1
    limits = {(entry[key]) for entry in folds for key in ("workers", "own", "blas", "openmp")}
    assert limits <= {1}


def test_threads_of_the_same_process_are_workers_too(log):
    calls = [(WIDE, WIDE_Y)] * 2
    estimator = cs.TaskLossClassifier(model=Probabilities(SpyClassifier(log), n_jobs=-1))
    joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(estimator.fit)(*call) for call in calls
    )
    assert {entry["own"] for entry in entries(log)} == {1}


def test_no_more_workers_than_cores(log):
    model = Regressor(
        SpyRegressor(log, wait=Held(lambda doing: threading.Event().wait(0.1))), n_jobs=6
    )
    labels = (RNG.random(size=(60, 12)) < 0.5).astype(int)
    cs.StructuredPredictor("hamming", model).fit(X[:60], labels)
    assert len(entries(log)) >= 12
    assert len({entry["process"] for entry in entries(log)} - {os.getpid()}) <= ALLOWED


def test_tasks_of_dask_start_no_workers_and_no_threads_of_openmp(log):
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    model = cs.TaskLossClassifier(model=Probabilities(SpyClassifier(log))).fit(WIDE, WIDE_Y)
    Path(log).unlink()
    parts = array.from_array(np.tile(WIDE, (4, 1)), chunks=(3000, 4))
    with dask.config.set(scheduler="threads", num_workers=2):
        model.predict(parts).compute()
    seen = [entry for entry in entries(log) if entry["doing"] == "predict"]
    assert len(seen) >= 2
    assert {(entry["workers"], entry["openmp"]) for entry in seen[1:]} == {(1, 1)}


STARTERS = re.compile(
    r"\b(Parallel|ThreadPoolExecutor|ProcessPoolExecutor|effective_n_jobs|parallel_config"
    r"|parallel_backend|prange|threadpool_limits|ThreadpoolController)\("
)


def test_there_is_one_place_that_starts_threads_and_workers():
    source = Path(cs.__file__).parent
    found = {path.name for path in source.rglob("*.py") if STARTERS.search(path.read_text("utf-8"))}
    assert found == {"_threads.py"}
