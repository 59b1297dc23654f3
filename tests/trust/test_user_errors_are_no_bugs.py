"""What a user got wrong ends in one line and exit code 2, never as a bug of ours (70)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from consistruct import cli
from consistruct.learning import StructuredPredictor, TaskLossClassifier, models

ROWS = "a,b,kind\n" + "\n".join(f"{i},{i * i % 7},{['x', 'ε'][i % 2]}" for i in range(12)) + "\n"
FIT = ("fit", "d.csv", "--target", "kind", "--model", "m")
RIDGE = ("--learner", "ridge", "--set", "features=linear", "--set", "alpha=0.1")
posix = pytest.mark.skipif(os.name != "posix", reason="descriptors are POSIX's")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text(ROWS, encoding="utf-8")
    Path("w.conll").write_text("a N x\nb V y\n\nb N y\na V x\n\n", encoding="utf-8")
    Path("t").write_text("w:%x[0,0]\n", encoding="utf-8")
    return tmp_path


def refused(words, *arguments):
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()[-1:]
    assert words in line
    assert len(line) < 1100
    assert not Path("m").exists()


def program(*words, **options):
    """The program in a process of its own."""
    options.setdefault("capture_output", True)
    command = [sys.executable, "-m", "consistruct", *words]
    return subprocess.run(command, text=True, encoding="utf-8", check=False, **options)


def test_settings_of_a_wrong_type_are_named(folder):
    for learner, setting, words in (
        ("linear", "fit_intercept=maybe", "fit_intercept of Linear must be True or False"),
        ("ridge", "fit_intercept=1", "fit_intercept of Ridge must be True or False"),
        ("boosting", "rounds=many", "rounds of Boosting must be an integer"),
        ("boosting", "rounds=true", "rounds of Boosting must be an integer"),
        ("boosting", 'l2={"a":1}', "l2 of Boosting must be a number"),
        ("stack", "models=1.5", "models must be 'auto' or a list of models"),
        ("stack", "weights=m", "weights must contain one non-negative number per model"),
        ("boosting", "n_jobs=1.5", "n_jobs must be None, a number of workers"),
        ("regressor", "n_jobs=0", "n_jobs must be None, a number of workers"),
    ):
        refused(words, *FIT, "--learner", learner, "--set", setting)
    chain = ("fit", "w.conll", "--template", "t", "--model", "m", "--set")
    refused("boundaries of Chain must be True or False", *chain, 'boundaries={"a":1}')
    refused("checkpoint of Chain must be a string", *chain, "checkpoint=5")
    refused("forbidden_transitions must be pairs of tags", *chain, "forbidden_transitions=x")
    refused("forbidden_transitions must be pairs of tags", *chain, "forbidden_transitions=3")


def test_layers_of_networks_that_are_no_list_are_named(folder):
    pytest.importorskip("torch")
    refused("module_factory must be a function of two sizes", *FIT, "--learner", "torch", "--set",
            "module_factory=0")  # fmt: skip


def test_a_model_for_candidate_sets_has_a_report(folder):
    loss = ("--loss", "partial-labels:infimum:zero-one:2")
    result = CliRunner().invoke(cli.app, [*FIT, *RIDGE, *loss])
    assert result.exit_code == 0, result.output
    for options in (["--quick"], ["--train", "d.csv"]):
        result = CliRunner().invoke(cli.app, ["report", "m", "d.csv", *options])
        assert result.exit_code == 0, result.output


def test_the_same_settings_are_refused_in_python():
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) % 2
    with pytest.raises(TypeError, match="fit_intercept of Linear must be True or False"):
        TaskLossClassifier("zero-one", models.Linear(fit_intercept="no")).fit(X, y)
    with pytest.raises(TypeError, match="boundaries of Chain must be True or False"):
        StructuredPredictor("hamming", models.Chain(boundaries="no")).fit([[["a"]]], [["x"]])


def test_numbers_beyond_all_floats_and_integers_are_refused(folder):
    digits = "9" * 400
    refused(
        "--set alpha: an integer of more than 18 digits", *FIT, *RIDGE, "--set", f"alpha={digits}"
    )
    refused("--set rounds: an integer", *FIT, "--learner", "boosting", "--set", f"rounds={digits}")
    refused("not nested so deeply", *FIT, *RIDGE, "--set", "alpha=" + 3000 * "[")
    with pytest.raises(ValueError, match="alpha must be a finite number"):
        TaskLossClassifier("zero-one", models.Ridge(alpha=10**400)).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_outside_32_bits_are_refused(seed, folder):
    refused("--seed", *FIT, "--seed", seed)
    refused("--seed", "plan", "d.csv", "--target", "kind", "--loss", "zero-one", "--seed", seed)
    refused("--seed", "report", "m", "d.csv", "--seed", seed)


def test_a_learner_without_its_extra_states_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    refused("pip install consistruct[torch]", *FIT, "--learner", "torch")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [0xD800, 0x110000, 2**32 - 1])
def test_strings_that_are_no_characters_are_refused_with_their_member(code, order, folder):
    y = np.array([97, 98, 97, code], dtype=f"{order}u4").view(f"{order}U1")
    np.savez("d.npz", X=np.arange(8.0).reshape(4, 2), y=y)
    refused(
        f"the member 'y' is damaged (a string contains the number {code:#x}",
        "fit",
        "d.npz",
        "--model",
        "m",
        *RIDGE,
    )
    fine = np.array(["a", "\U0010ffff", "a", "é"]).astype(f"{order}U1")
    np.savez("d.npz", X=np.arange(8.0).reshape(4, 2), y=fine)
    result = CliRunner().invoke(cli.app, ["fit", "d.npz", "--model", "m", *RIDGE])
    assert result.exit_code == 0, result.output


def test_periods_in_parquet_files_are_refused_as_they_are_in_frames(folder):
    frame = pd.DataFrame({"a": range(6), "kind": list("xyxyxy")})
    frame["month"] = pd.period_range("2020-01", periods=6, freq="M")
    frame.to_parquet("d.parquet")
    words = ("fit", "d.parquet", "--target", "kind", "--model", "m", *RIDGE)
    refused("column 'month' has the type pandas.period; convert it", *words)
    result = CliRunner().invoke(cli.app, [*words, "--ignore", "month"])
    assert result.exit_code == 0, result.output


def test_reports_are_shown_in_any_encoding_and_data_are_not_changed(folder):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = program("analyze", "zero-one:3", env=ascii_only)
    assert done.returncode == 0, done.stderr
    assert "\\u03b5" in done.stdout  # ε
    assert CliRunner().invoke(cli.app, [*FIT, *RIDGE]).exit_code == 0
    done = program("predict", "m", "d.csv", env=ascii_only)
    assert done.returncode == 2
    assert done.stderr.startswith("consistruct: standard output takes ascii")
    assert done.stdout == ""
    done = program("predict", "m", "d.csv", "--out", "p.csv", env=ascii_only)
    assert done.returncode == 0
    assert "ε" in Path("p.csv").read_text(encoding="utf-8")
    done = program("predict", "m", "d.csv", "--json", env=ascii_only)
    assert "ε" in json.loads(done.stdout)["predictions"]


def test_settings_that_keep_matplotlib_from_starting_are_named_before_the_work(folder):
    garbage = {**os.environ, "MPLBACKEND": "garbage"}
    done = program("analyze", "cost:no.csv", "--plot", "x.png", env=garbage)
    assert done.returncode == 2
    assert "matplotlib does not start" in done.stderr
    assert "MPLBACKEND" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@posix
def test_a_closed_standard_output_is_one_line(folder):
    def close(*numbers):
        def before():
            for number in numbers:
                os.close(number)

        return before

    done = program("--version", preexec_fn=close(1))
    assert done.returncode == 2
    assert done.stderr == (
        "consistruct: standard output is closed; send it to a file or to /dev/null\n"
    )
    assert program("--version", preexec_fn=close(0, 1, 2)).returncode == 2
    done = program("--version", preexec_fn=close(0, 2))
    assert done.returncode == 0
    assert done.stdout.strip()


def test_a_truncated_cache_of_compiled_code_is_made_again(folder):
    # a package of its own beside the cache: the one of this installation stays whole
    code = """
        import sys
        from consistruct._compile import cache_folder, compiled
        sys.path.insert(0, ".")
        import loops
        print(loops.total(3), cache_folder(loops.total))
    """
    Path("loops.py").write_text(
        textwrap.dedent("""
        from consistruct._compile import compiled

        @compiled
        def total(n):
            found = 0
            for i in range(n):
                found += i
            return found
        """),
        encoding="utf-8",
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}

    def run():
        words = [sys.executable, "-c", textwrap.dedent(code)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("3 ")

    run()
    files = sorted(path for path in Path("cache").rglob("*.nb*"))
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    whole = {path: path.read_bytes() for path in files}
    for path in files:
        for content in (b"", whole[path][: len(whole[path]) // 2]):
            path.write_bytes(content)
            run()
            again = sorted(path for path in Path("cache").rglob("*.nb*"))
            assert again == files
            assert all(len(path.read_bytes()) > 20 for path in files)


def test_results_for_people_do_not_hide_what_is_written(folder):
    """A name that is no text in UTF-8 is shown, not fatal."""
    name = os.fsdecode(b"\xff.html")
    done = program("analyze", "zero-one:3", "--html", name)
    assert done.returncode == 0, done.stderr
    assert Path(name).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_scores_whose_squares_are_beyond_floats_have_a_report(folder):
    """The constants of gradient descent are unknown; the calibration function is not."""
    for matrix in ("-2,1e308,-2\n2,-2,-2\n0,1,0\n", "1e-200,0,0\n0,1,0\n0,0,1\n"):
        Path("f.csv").write_text(matrix, encoding="utf-8")
        words = ("analyze", "zero-one:3", "--scores", "matrix:f.csv", "--points", "3")
        result = CliRunner().invoke(cli.app, words)
        assert result.exit_code == 0, result.output
        assert "beyond all floats" in " ".join(result.stdout.split())


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.parquet"])
def test_names_with_nul_are_refused(name, folder):
    """NumPy drops it from the end of a word: two classes became one."""
    words = ["x\0", "x", "y", "y"]
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "kind": words})
    if name.endswith("parquet"):
        table.to_parquet(name)
    else:
        separator = "," if name.endswith("csv") else "\t"
        table.to_csv(name, index=False, sep=separator)
    refused("'x\\x00' contains the character NUL", "fit", name, "--target", "kind", "--model", "m")


@posix
def test_certificates_are_plain_files(folder):
    """A device has no end, and a pipe may have no writer."""
    os.mkfifo("pipe")
    for name, kind in (("pipe", "a pipe"), ("/dev/zero", "a device"), (".", "a folder")):
        refused(f"it is {kind}", "check", name)


@posix
def test_predictions_that_do_not_fit_name_their_file(folder):
    assert CliRunner().invoke(cli.app, [*FIT, *RIDGE]).exit_code == 0
    result = CliRunner().invoke(cli.app, ["predict", "m", "d.csv", "--out", "/dev/full"])
    assert result.exit_code == 2
    assert "/dev/full cannot be written: No space left" in result.stderr
