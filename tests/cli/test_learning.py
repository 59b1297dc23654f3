"""fit, predict, evaluate: in process, as processes, and after kill -9."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from consistruct.cli import app
from consistruct.learning import TaskLossClassifier, load, save
from consistruct.learning.files.data import Layout
from consistruct.learning.models.ridge.model import Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
KINDS = np.array(["ant", "bee", "cow"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
LABELS = (X @ RNG.normal(size=(3, 4)) > 0).astype(int)


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    if code == 2:
        assert "Traceback" not in result.output
    return result


def run_json(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def process(
    *arguments: object, cwd: Path, stderr: int = subprocess.PIPE, before: str = ""
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", f"{before}from consistruct.cli import main; main()"]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )


def write_csv(path: Path, columns: list[str], *parts: np.ndarray) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        wide = [part.reshape(len(part), -1).tolist() for part in parts]
        writer.writerows([cell for cells in row for cell in cells] for row in zip(*wide))  # noqa: B905
    return path


@pytest.fixture
def animals(tmp_path) -> Path:
    return write_csv(tmp_path / "animals.csv", ["a", "b", "c", "kind"], X, KINDS)


@pytest.fixture
def model(animals, tmp_path) -> Path:
    path = tmp_path / "animals.model"
    run("fit", animals, "--target", "kind", "--model", path)
    return path


def read_rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


# --- the three commands --------------------------------------------------------------------------


def test_fit_predict_evaluate_agree_with_python(animals, model, tmp_path):
    expected = TaskLossClassifier("zero-one", random_state=0).fit(X, KINDS)
    out = tmp_path / "predictions.csv"
    run("predict", model, animals, "--out", out, "--expected-loss")
    header, *rows = read_rows(out)
    assert header == ["kind", "expected_loss"]
    assert [row[0] for row in rows] == expected.predict(X).tolist()
    # written in full, so that reading them back gives the same bits
    assert [float(row[1]) for row in rows] == expected.predict_expected_loss(X).tolist()
    result = run_json("evaluate", model, animals)
    wrong = expected.predict(X) != KINDS
    assert result["mean_loss"] == pytest.approx(wrong.mean())
    assert result["standard_error"] == pytest.approx(wrong.std(ddof=1) / np.sqrt(len(X)))
    assert result["n_examples"] == len(X)
    assert result["schema_version"] == 1


def test_fit_reports_what_it_did(animals, tmp_path):
    result = run_json("fit", animals, "--target", "kind", "--model", tmp_path / "m")
    assert result["loss"] == "ZeroOne(3)"
    assert result["estimator"] == "TaskLossClassifier"
    assert (result["n_examples"], result["n_features"]) == (60, 3)
    assert 0 <= result["training_loss"] < 0.2
    text = run("fit", animals, "--target", "kind", "--model", tmp_path / "m").stdout
    assert "ZeroOne(3)" in text
    assert "training loss" in text


def test_predict_to_stdout_and_json(animals, model):
    printed = run("predict", model, animals).stdout.splitlines()
    assert printed[0] == "kind"
    as_json = run_json("predict", model, animals, "--expected-loss")
    assert as_json["predictions"] == printed[1:]
    assert len(as_json["expected_loss"]) == 60


def test_columns_by_name_and_without_true_label(model, tmp_path):
    shuffled = write_csv(tmp_path / "new.csv", ["c", "x", "a", "b"], X[:, [2, 0, 0, 1]])
    expected = load(model).predict(X).tolist()
    assert run("predict", model, shuffled).stdout.splitlines()[1:] == expected
    assert "no column 'kind'" in run("evaluate", model, shuffled, code=2).stderr


def test_cost_file_and_rows(animals, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("x,ant,bee,cow\nant,0,1,9\nbee,1,0,1\ncow,1,1,0\n")
    options = ("fit", animals, "--target", "kind", "--model", tmp_path / "m")
    failed = run(*options, "--loss", f"cost:{costs}", code=2)
    assert "--rows on the command line" in failed.stderr
    run(*options, "--loss", f"cost:{costs}", "--rows", "true")
    loss = load(tmp_path / "m").loss_
    assert loss.M[2, 0] == 9  # true label ant (row of the file), prediction cow
    wrong = run(*options, "--loss", f"cost:{costs}", "--rows", "columns", code=2)
    assert "--rows must be pred or true" in wrong.stderr
    unused = run(*options, "--rows", "pred", code=2)
    assert "--rows applies only to cost files" in unused.stderr


def test_label_matrix(tmp_path):
    data = write_csv(tmp_path / "d.csv", ["a", "b", "c", "p", "q", "r", "s"], X, LABELS)
    targets = [option for name in "pqrs" for option in ("--target", name)]
    result = run_json("fit", data, *targets, "--loss", "hamming", "--model", tmp_path / "m")
    assert result["loss"] == "Hamming(4)"
    header, *rows = (
        line.split(",") for line in run("predict", tmp_path / "m", data).stdout.splitlines()
    )
    assert header == ["p", "q", "r", "s"]
    np.testing.assert_array_equal(np.array(rows, dtype=int), load(tmp_path / "m").predict(X))


def test_structured_states_and_cost_vectors(tmp_path):
    states = (LABELS[:, :2] + LABELS[:, 2:]).astype(int)  # three states per part
    data = write_csv(tmp_path / "d.csv", ["a", "b", "c", "s0", "s1"], X, states)
    options = ("--target", "s0", "--target", "s1", "--model", tmp_path / "m")
    result = run_json("fit", data, *options, "--loss", "hamming")
    assert (result["loss"], result["estimator"]) == (
        "Hamming(2, n_states=3)",
        "StructuredPredictor",
    )
    np.savez(tmp_path / "costs.npz", X=X, y=np.abs(X))
    result = run_json(
        "fit", tmp_path / "costs.npz", "--loss", "cost-vectors:3", "--model", tmp_path / "m"
    )
    assert result["estimator"] == "StructuredPredictor"
    mean = run_json("evaluate", tmp_path / "m", tmp_path / "costs.npz")["mean_loss"]
    chosen = load(tmp_path / "m").predict(X)
    assert mean == pytest.approx(np.abs(X)[np.arange(len(X)), chosen].mean())


@pytest.mark.parametrize("kind", ["svm", "arff", "npz", "parquet"])
def test_other_formats_give_the_same_model(kind, animals, model, tmp_path):
    path = tmp_path / f"d.{kind}"
    codes = np.searchsorted(np.unique(KINDS), KINDS)
    options: list[object] = ["--target", "kind"]
    if kind == "svm":
        rows = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) for row in X.tolist()]
        path.write_text("\n".join(f"{name} {row}" for name, row in zip(KINDS, rows, strict=True)))
        options = ["--learner", "ridge", "--set", "features=rbf"]  # as the dense ones
    elif kind == "arff":
        head = "@relation r\n" + "".join(f"@attribute {name} numeric\n" for name in "abc")
        head += "@attribute kind {ant,bee,cow}\n@data\n"
        path.write_text(head + "\n".join(animals.read_text().splitlines()[1:]))
    elif kind == "npz":
        np.savez(path, X=X, kind=KINDS)
    else:
        import pandas as pd

        pd.read_csv(animals).to_parquet(path)
    run("fit", path, *options, "--model", tmp_path / "m")
    found = np.array(run_json("predict", tmp_path / "m", path)["predictions"])
    if kind == "svm":
        assert (found == KINDS).mean() > 0.9
    else:
        np.testing.assert_array_equal(found, load(model).predict(X))
    assert codes.max() == 2


def test_model_of_one_format_predicts_from_another(animals, model, tmp_path):
    import pandas as pd

    pd.read_csv(animals)[["c", "kind", "b", "a"]].to_parquet(tmp_path / "other.parquet")
    result = run_json("predict", model, tmp_path / "other.parquet")
    assert result["predictions"] == load(model).predict(X).tolist()
    assert run_json("evaluate", model, tmp_path / "other.parquet")["n_examples"] == 60


def test_at_most_is_a_check(animals, model):
    assert run("evaluate", model, animals, "--at-most", "0.5").exit_code == 0
    failed = run("evaluate", model, animals, "--at-most", "-0.1", code=1)
    assert "is above --at-most" in failed.stderr


def test_true_labels_never_seen_count_as_wrong(model, tmp_path):
    new = write_csv(
        tmp_path / "new.csv", ["a", "b", "c", "kind"], X, np.full(len(X), "unicorn", dtype="U7")
    )
    assert run_json("evaluate", model, new)["mean_loss"] == 1.0


# --- bad usage and input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--target", "absent"], "there is no column 'absent'"),
        ([], "choose the column with the true label"),
        (["--target", "kind", "--loss", "nonsense"], "unknown loss 'nonsense'"),
        (
            ["--target", "kind", "--learner", "ridge", "--set", "features=nonsense"],
            "features must be one of",
        ),
        (
            ["--target", "kind", "--learner", "ridge", "--set", "solver=nonsense"],
            "solver must be",
        ),
        (
            ["--target", "kind", "--learner", "linear", "--set", "surrogate=nonsense"],
            "surrogate must be one of",
        ),
        (["--target", "kind", "--learner", "nonsense"], "model must be 'auto', one of"),
        (
            ["--target", "kind", "--learner", "ridge", "--set", "alpha=much"],
            "alpha must be 'auto', a non-negative number",
        ),
        (["--target", "kind", "--learner", "ridge", "--set", "size=3"], "has no setting 'size'"),
        (["--target", "kind", "--set", "alpha=3"], "are settings of one learner; name it"),
        (
            ["--target", "kind", "--learner", "ridge", "--checkpoint", "c"],
            "--checkpoint needs --learner ridge (or linear) with --set solver=sgd",
        ),
        (
            ["--target", "kind", "--learner", "stack", "--epochs", "3"],
            "--epochs needs --learner ridge",
        ),
        (["--target", "kind", "--ignore", "zzz"], "no column 'zzz' for --ignore"),
    ],
)
def test_bad_options_get_one_line(options, fault, animals, tmp_path):
    result = run("fit", animals, *options, "--model", tmp_path / "m", code=2)
    assert fault in result.stderr
    assert result.stderr.startswith("consistruct: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert not (tmp_path / "m").exists()


def test_bad_files_get_one_line(animals, model, tmp_path):
    for arguments, fault in [
        (("fit", tmp_path / "absent.csv", "--target", "y", "--model", "m"), "there is no file"),
        (("fit", animals, "--target", "kind", "--model", tmp_path), "it is a folder"),
        (("fit", animals, "--target", "kind", "--model", tmp_path / "no" / "m"), "does not exist"),
        (("predict", animals, animals), "is not a consistruct model file"),
        (("predict", tmp_path / "absent", animals), "there is no model file"),
        (("predict", model, animals, "--out", tmp_path), "it is a folder"),
    ]:
        result = run(*arguments, code=2)
        assert fault in result.stderr
        assert result.stderr.count("\n") == 1


def test_model_from_python_lacks_a_layout(animals, tmp_path):
    save(TaskLossClassifier(model=Ridge("linear")).fit(X, KINDS), tmp_path / "m")
    result = run("predict", tmp_path / "m", animals, code=2)
    assert "does not say which columns it was fitted on" in result.stderr


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate"])
def test_help_shows_an_example(command):
    text = run(command, "--help").stdout
    assert f"Example: consistruct {command}" in text
    assert "--json" in text


# --- as processes --------------------------------------------------------------------------------


def test_as_a_process(animals, tmp_path):
    started = process("fit", animals, "--target", "kind", "--model", "m", "--json", cwd=tmp_path)
    out, error = started.communicate(timeout=120)
    assert (started.returncode, error) == (0, "")
    assert json.loads(out)["command"] == "fit"
    started = process("predict", "m", "absent.csv", cwd=tmp_path)
    out, error = started.communicate(timeout=120)
    assert (started.returncode, out) == (2, "")
    assert error == "consistruct: there is no file 'absent.csv'\n"


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are those of POSIX")
def test_progress_on_a_terminal_and_results_apart(animals, tmp_path):
    import pty

    master, slave = pty.openpty()
    arguments = ("fit", animals, "--target", "kind", "--model", "m", "--json")
    # a bar waits for two seconds, and this fit may take less
    at_once = "from consistruct import _progress; _progress.PATIENCE = 0.0; "
    started = process(*arguments, cwd=tmp_path, stderr=slave, before=at_once)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # how Linux reports that the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    out, _ = started.communicate(timeout=120)
    assert json.loads(out)["command"] == "fit"
    assert b"fitting 60 examples x 3 features" in shown


def test_help_does_not_wait_for_scikit_learn():
    script = (
        "import sys\nfrom consistruct.cli import app\n"
        "app(['--help'], standalone_mode=False)\nassert 'sklearn' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
def test_killed_fit_resumes_to_the_identical_model(tmp_path):
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(4000, 30))
    labels = inputs @ rng.normal(size=(30, 4)) + rng.normal(size=(4000, 4))
    np.savez(tmp_path / "d.npz", X=inputs, y=labels.argmax(axis=1))
    fit: tuple[object, ...] = (
        "fit",
        tmp_path / "d.npz",
        "--learner",
        "ridge",
        "--set",
        "solver=sgd",
        "--set",
        "features=linear",
        "--epochs",
        "40",
    )
    fit += ("--checkpoint", "state", "--model", "model")
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    straight.mkdir()
    killed.mkdir()

    done = process(*fit, cwd=straight)
    _, error = done.communicate(timeout=300)
    assert done.returncode == 0, error

    kills = 0
    for wanted in (1, 2):  # killed twice, each time after some progress
        before = (killed / "state").stat().st_mtime_ns if (killed / "state").exists() else 0
        started = process(*fit, cwd=killed)
        deadline = time.monotonic() + 300
        while started.poll() is None and time.monotonic() < deadline:
            state = killed / "state"
            if state.exists() and state.stat().st_mtime_ns != before:
                started.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        started.communicate()
        kills += started.returncode == -signal.SIGKILL
        assert kills == wanted
        assert not (killed / "model").exists()

    resumed = process(*fit, cwd=killed)
    _, error = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, error
    assert (killed / "model").read_bytes() == (straight / "model").read_bytes()


# --- non-decomposable metrics -------------------------------------------------------------------


def test_metrics_are_fitted_evaluated_and_analyzed(tmp_path):
    data = write_csv(tmp_path / "animals.csv", ["a", "b", "c", "kind"], X, KINDS)
    model = tmp_path / "m.safetensors"
    ridge = ("--learner", "ridge", "--set", "features=linear", "--set", "alpha=0.01")
    reported = run_json(
        "fit", data, "--target", "kind", "--loss", "macro-f1", "--model", model, *ridge
    )
    assert reported["metric"] == "FScore(average='macro')"
    assert reported["out_of_fold_rows"] == 60
    assert 0 < reported["metric_estimate"] <= 1
    evaluated = run_json("evaluate", model, data)
    value = load(model).score(X, KINDS)
    assert evaluated["metric_value"] == pytest.approx(value)
    assert run("evaluate", model, data, "--at-least", value - 0.01).exit_code == 0
    failed = run("evaluate", model, data, "--at-least", "1.01", code=1)
    assert "is below --at-least" in failed.stderr
    confusion = tmp_path / "confusion.csv"
    confusion.write_text("pred\\true,ant,bee,cow\nant,20,2,0\nbee,3,15,2\ncow,0,1,12\n")
    report = run_json("analyze", "macro-f1", "--confusion", confusion, "--points", "3")
    assert report["loss"].startswith("CostMatrix")
    assert report["consistency_level"] == 0
    assert report["curve"][-1]["lower"] > 0


def test_metrics_say_what_is_missing(tmp_path):
    reported = run("analyze", "macro-f1", code=2)
    assert "--confusion" in reported.stderr
    plain = tmp_path / "plain.csv"
    plain.write_text("20,2\n3,15\n")
    reported = run("analyze", "macro-f1", "--confusion", plain, code=2)
    assert "the confusion matrix of shape (2, 2) is not symmetric" in reported.stderr
    model = tmp_path / "m.safetensors"
    save(TaskLossClassifier("zero_one", Ridge("linear", alpha=0.1)).fit(X, KINDS), model)
    data = write_csv(tmp_path / "animals.csv", ["a", "b", "c", "kind"], X, KINDS)
    bare = run("evaluate", model, data, "--at-least", "0.5", code=2)
    assert "does not say which columns" in bare.stderr


@pytest.mark.parametrize(
    "entry", [{"feature_names": True}, {"target": "y"}, {"n_features": "3"}, {"kinds": [1]}]
)
def test_a_layout_of_other_types_is_no_layout(entry):
    layout = Layout("csv", 1, ("a",), ("y",))
    assert Layout.from_dict(layout.as_dict()) == layout
    with pytest.raises(TypeError, match="of a layout cannot be"):
        Layout.from_dict({**layout.as_dict(), **entry})
