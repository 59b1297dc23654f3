"""fit, predict and evaluate on a folder, killed and resumed."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from consistruct.cli import app
from consistruct.learning import load

RUNNER = CliRunner()
RIDGE = ["--learner", "ridge", "--set", "features=linear"]


def run(*arguments):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def write(folder, n=900, files=3, form="parquet"):
    folder.mkdir()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    kind = np.array(["cat", "dog", "eel"])[(X[:, :3] + rng.normal(size=(n, 3))).argmax(axis=1)]
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=kind)
    for number, part in enumerate(np.array_split(np.arange(n), files)):
        table = frame.iloc[part]
        if form == "parquet":
            table.to_parquet(folder / f"{number:02d}.parquet", index=False, row_group_size=100)
        else:
            table.to_csv(folder / f"{number:02d}.csv", index=False)
    return folder, frame


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_fit_predict_evaluate(tmp_path, form):
    data, frame = write(tmp_path / "data", form=form)
    model = tmp_path / "model.safetensors"
    done = run("fit", data, "--target", "kind", *RIDGE, "--model", model, "--json")
    assert done.exit_code == 0, done.output
    reported = json.loads(done.stdout)
    assert (reported["n_examples"], reported["n_files"], reported["n_features"]) == (900, 3, 5)
    assert not list(tmp_path.glob("*.checkpoint"))
    out = tmp_path / "predictions.csv"
    assert run("predict", model, data, "--out", out, "--expected-loss").exit_code == 0
    written = pd.read_csv(out)
    assert list(written.columns) == ["kind", "expected_loss"]
    X = frame[list("abcde")].to_numpy()
    np.testing.assert_array_equal(written["kind"], load(model).predict(X))
    done = run("evaluate", model, data, "--json")
    loss = json.loads(done.stdout)["mean_loss"]
    np.testing.assert_allclose(loss, (written["kind"] != frame["kind"]).mean())
    assert run("evaluate", model, data, "--at-most", loss / 2).exit_code == 1
    # one of the files, read whole, is evaluated alike
    single = run("evaluate", model, sorted(data.iterdir())[0], "--json")
    assert single.exit_code == 0, single.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--groups", "a"], "--groups does not apply to a folder"),
        (["--target", "sort"], "no column 'sort'"),
        ([], "choose the column with the true label"),
        (["--target", "kind", "--learner", "linear"], "cannot learn from batches"),
    ],
)
def test_wrong_options_are_one_line(tmp_path, arguments, words):
    data, _ = write(tmp_path / "data", n=60)
    done = run("fit", data, *arguments, "--model", tmp_path / "m")
    assert done.exit_code == 2
    assert words in done.output


def test_folder_options_are_refused_for_a_file(tmp_path):
    data, _ = write(tmp_path / "data", n=60)
    file = sorted(data.iterdir())[0]
    done = run("fit", file, "--target", "kind", "--resume", "--model", tmp_path / "m")
    assert "--resume applies only to folders" in done.output


def test_a_checkpoint_that_lies_there_is_not_overwritten(tmp_path):
    data, _ = write(tmp_path / "data", n=60)
    (tmp_path / "m.checkpoint").write_text("")
    done = run("fit", data, "--target", "kind", *RIDGE, "--model", tmp_path / "m")
    assert done.exit_code == 2
    assert "--resume" in done.output


def command(data, model, *more):
    options = ["--target", "kind", *RIDGE, "--model", str(model), "--every", "0", *more]
    return [sys.executable, "-m", "consistruct", "fit", str(data), *options]


def test_kill_and_resume(tmp_path):
    """SIGKILL in the middle of the pass; the model is the same, bit by bit."""
    data, _ = write(tmp_path / "data", n=60_000, files=30)
    quiet = tmp_path / "quiet.safetensors"
    subprocess.run(command(data, quiet), check=True, capture_output=True)
    killed = tmp_path / "killed.safetensors"
    checkpoint = tmp_path / "killed.safetensors.checkpoint"
    process = subprocess.Popen(
        command(data, killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert checkpoint.exists()
    assert not killed.exists()
    subprocess.run(command(data, killed, "--resume"), check=True, capture_output=True)
    assert killed.read_bytes() == quiet.read_bytes()
