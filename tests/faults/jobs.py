"""Commands that write, each with what it leaves when nobody disturbs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.fuzzing.server import ForkServer

__all__ = ["JOBS", "Job", "Undisturbed", "undisturbed"]

RIDGE = ["--learner", "ridge", "--set", "features=linear", "--set", "alpha=0.1"]


@dataclass(frozen=True)
class Job:
    """A command, the files that it writes, and how it is taken up again after a fault.

    `prepare` makes the inputs, and older versions of some outputs, in a folder.
    """

    name: str
    words: list[str]
    outputs: tuple[str, ...]
    prepare: Callable[[Path], None]
    resume: Callable[[Path], list[str]] = field(default=lambda _: [])


def _data(folder: Path) -> None:
    """A table with names so long that the model takes a while to write."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    lines = ["a,b,y", *(f"{u!r},{v!r},{'pq'[int(u + v > 0)]}" for u, v in X.tolist())]
    (folder / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _kernel(folder: Path) -> None:
    """Many rows for a kernel: a model of some hundred kilobytes."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 40))
    lines = [",".join([*(f"x{j}" for j in range(40)), "y"])]
    lines += [",".join([*map(repr, row), str(int(sum(row) > 0))]) for row in X.tolist()]
    (folder / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "m.safetensors").write_bytes(b"an older model")


def _shards(folder: Path) -> None:
    rng = np.random.default_rng(7)
    (folder / "shards").mkdir()
    for part in range(8):
        X = rng.normal(size=(300, 6))
        lines = ["a,b,c,d,e,f,y"]
        lines += [",".join([*map(repr, row), str(int(sum(row) > 0))]) for row in X.tolist()]
        (folder / "shards" / f"{part}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _go_on(folder: Path) -> list[str]:
    return ["--resume"] if (folder / "m.safetensors.checkpoint").exists() else []


def _fitted(folder: Path) -> None:
    """A model and data to report on, with an older report."""
    from consistruct.learning import TaskLossClassifier, models, save

    _data(folder)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    y = np.array(["p", "q"])[(X.sum(axis=1) > 0).astype(int)]
    model = TaskLossClassifier("zero_one", models.Ridge(features="linear", alpha=0.1)).fit(X, y)
    layout = {"format": "csv", "n_features": 2, "feature_names": ["a", "b"], "target": ["y"],
              "label_names": None, "groups": None, "zero_based": None, "multilabel": False,
              "label_kind": "str", "kinds": None}  # fmt: skip
    save(model, folder / "m.safetensors", notes={"layout": layout})
    (folder / "report.html").write_text("an older report", encoding="utf-8")


def _older_picture(folder: Path) -> None:
    (folder / "regions.png").write_bytes(b"an older picture")


SGD = ["--learner", "linear", "--set", "solver=sgd", "--set", "alpha=0.01", "--epochs", "40"]
JOBS = (
    Job(
        "fit",
        ["consistruct", "fit", "data.csv", "--target", "y", *RIDGE, "--model", "m.safetensors"],
        ("m.safetensors",),
        _data,
    ),
    Job(
        "save",
        ["consistruct", "fit", "data.csv", "--target", "y", "--learner", "ridge", "--set",
         "alpha=0.1", "--set", "bandwidth=5.0", "--set", "kernel=rbf", "--model", "m.safetensors"],
        ("m.safetensors",),
        _kernel,
    ),
    Job(
        "checkpoint",
        ["consistruct", "fit", "data.csv", "--target", "y", *SGD, "--model", "m.safetensors",
         "--checkpoint", "state"],
        ("m.safetensors",),
        _data,
    ),
    Job(
        "stream",
        ["consistruct", "fit", "shards", "--target", "y", *RIDGE, "--model", "m.safetensors",
         "--every", "0"],
        ("m.safetensors",),
        _shards,
        _go_on,
    ),
    Job(
        "report",
        ["consistruct", "report", "m.safetensors", "data.csv", "--quick", "--html", "report.html",
         "--csv", "report.csv"],
        ("report.html", "report.csv"),
        _fitted,
    ),
    Job(
        "predict",
        ["consistruct", "predict", "m.safetensors", "data.csv", "--expected-loss", "--out",
         "p.csv"],
        ("p.csv",),
        _fitted,
    ),
    Job(
        "lint",
        ["consistruct", "lint", "abstain:3:0.3", "--plot", "regions.png"],
        ("regions.png",),
        _older_picture,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Undisturbed:
    """What a job leaves, and how long it takes, when nothing happens to it."""

    outputs: dict[str, bytes]
    seconds: float


def undisturbed(job: Job, server: ForkServer, folder: Path) -> Undisturbed:
    """Run a job in peace; twice, because what differs from run to run could not be compared."""
    found = []
    for turn in ("first", "second"):
        work = folder / f"{job.name}-{turn}" / "work"
        work.mkdir(parents=True)
        job.prepare(work)
        outcome = server.run(job.words, work.parent)
        assert outcome.code == 0, outcome.stderr
        outputs = {name: (work / name).read_bytes() for name in job.outputs}
        found.append(Undisturbed(outputs, outcome.seconds))
    assert found[0].outputs == found[1].outputs, f"{job.name} does not repeat itself"
    return found[1]
