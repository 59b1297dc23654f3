"""fit, predict, evaluate on CoNLL column files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from consistruct.cli import app
from consistruct.learning import StructuredPredictor, TaskLossClassifier, load, save
from consistruct.learning.evaluation.sequence_metrics import chunk_scheme
from consistruct.learning.files.column_layout import ColumnLayout
from consistruct.learning.files.conll import ColumnFile, FeatureTemplate, read_columns
from consistruct.learning.models.chain.model import Chain
from consistruct.learning.models.ridge.model import Ridge
from consistruct.metrics import chunk_f1, sequence_error, token_error

TRAIN = """-DOCSTART- -X- O

The DT B-NP
black JJ I-NP
cat NN I-NP
sees VBZ B-VP
a DT B-NP
bird NN I-NP
. . O

It PRP B-NP
sings VBZ B-VP
. . O

The DT B-NP
bird NN I-NP
has VBZ B-VP
seen VBN I-VP
it PRP B-NP
. . O
"""
TEST = """The DT B-NP
cat NN I-NP
has VBZ B-VP
sung VBN I-VP
. . O

It PRP B-NP
sees VBZ B-VP
Ann NNP S-NP
"""
TEMPLATE = "w:%x[0,0]\np:%x[0,1]\np-1|p:%x[-1,1]|%x[0,1]  # a pair\n"


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    if code == 2:
        assert "Traceback" not in result.output
        assert result.stderr.startswith("consistruct: ")
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""
    return result


def run_json(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.conll").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "test.conll").write_text(TEST, encoding="utf-8")
    (tmp_path / "template.txt").write_text(TEMPLATE, encoding="utf-8")
    return tmp_path


def fit(folder: Path, *options: object, data: str = "train.conll") -> Path:
    model = folder / "model"
    run("fit", folder / data, "--template", folder / "template.txt", "--model", model, *options)
    return model


def examples(path: Path) -> tuple[Any, list[list[str]]]:
    """Features and tags, by the library and not by the command line."""
    file, template = read_columns(path), FeatureTemplate.parse(TEMPLATE)
    return [template.features(sequence) for sequence in file.sequences], file.column(-1)


def tagger(**parameters: Any) -> StructuredPredictor:
    return StructuredPredictor("hamming", Chain(**parameters), random_state=0)


# --- the three commands --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ([], {}),
        (["--set", "surrogate=log", "--set", "decoding=bayes"], {"decoding": "bayes"}),
        (["--learner", "chain", "--set", "surrogate=hinge"], {"surrogate": "hinge"}),
        (["--set", "surrogate=softmax_margin"], {"surrogate": "softmax_margin"}),
        (
            ["--set", "surrogate=quadratic", "--epochs", "2"],
            {"surrogate": "quadratic", "max_epochs": 2},
        ),
        (["--tag-scheme", "bio", "--hash-bits", "10"], {"tag_scheme": "bio", "hash_bits": 10}),
        (["--transitions", "features"], {"transitions": "features"}),
        (["--set", "solver=lbfgs"], {"solver": "lbfgs"}),
        (["--set", "alpha=0.5", "--set", "solver=sgd"], {"alpha": 0.5}),
    ],
)
def test_commands_agree_with_python(folder, options, parameters):
    model = fit(folder, *options)
    expected = tagger(**parameters).fit(*examples(folder / "train.conll"))
    assert load(model).model_.coef_.tobytes() == expected.model_.coef_.tobytes()
    X, true = examples(folder / "test.conll")
    pred = [tags.tolist() for tags in expected.predict(X)]
    assert run_json("predict", model, folder / "test.conll")["predictions"] == pred
    result = run_json("evaluate", model, folder / "test.conll")
    assert result["token_error"] == token_error(true, pred)
    assert result["sequence_error"] == sequence_error(true, pred)
    assert result["chunk_f1"] == chunk_f1(true, pred, "iobes")
    assert result["tag_scheme"] == "iobes"  # the test file has an S
    assert (result["n_sequences"], result["n_tokens"]) == (2, 8)
    assert result["schema_version"] == 1


def test_fit_reports_what_it_did(folder):
    result = run_json(
        *("fit", folder / "train.conll", "--template", folder / "template.txt"),
        *("--model", folder / "m"),
    )
    assert result["estimator"] == "Chain"
    assert (result["surrogate"], result["decoding"]) == ("log", "argmax")
    assert result["alpha"] > 0
    assert (result["n_sequences"], result["n_tokens"], result["n_tags"]) == (3, 16, 5)
    words = {token[0] for row in read_columns(folder / "train.conll").sequences for token in row}
    assert result["n_features"] > len(words)
    assert result["training_token_error"] == 0.0


def test_predictions_are_a_further_column(folder):
    model, out = fit(folder), folder / "out.conll"
    printed = run("predict", model, folder / "test.conll").stdout
    text = run("predict", model, folder / "test.conll", "--out", out).stdout
    assert text == f"2 predictions written to {out}\n"
    assert out.read_text(encoding="utf-8") == printed
    before, after = read_columns(folder / "test.conll"), read_columns(out)
    assert [[token[:-1] for token in row] for row in after.sequences] == before.sequences
    # read as conlleval does: the true tag next to last, the predicted one last
    result = run_json("evaluate", model, folder / "test.conll")
    assert token_error(after.column(-2), after.column(-1)) == result["token_error"]
    assert result["token_error"] < 0.5


def test_a_failed_write_leaves_the_old_file(folder, monkeypatch):
    model, out = fit(folder), folder / "out.conll"
    out.write_text("old")

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("predict", model, folder / "test.conll", "--out", out, code=2)
    assert "No space left" in result.stderr
    assert out.read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("model", "out.conll", "template.txt", "test.conll", "train.conll"),
    ]


def test_files_without_tags_and_of_other_names(folder):
    model = fit(folder)
    with_tags = run_json("predict", model, folder / "test.conll")["predictions"]
    lines = [" ".join(line.split()[:-1]) for line in TEST.splitlines()]
    for name in ("plain.txt", "plain", "plain.conll"):
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
        assert run_json("predict", model, folder / name)["predictions"] == with_tags
    result = run("evaluate", model, folder / "plain.txt", code=2)
    assert "plain.txt: the file has 2 columns, but the model was fitted on 3" in result.stderr
    (folder / "plain.csv").write_text("\n".join(lines), encoding="utf-8")
    again = run_json("predict", model, folder / "plain.csv", "--format", "conll")
    assert again["predictions"] == with_tags


def test_the_tags_may_stand_anywhere(folder):
    def move(text: str) -> str:
        rows = [line.split() for line in text.splitlines()]
        return "\n".join(" ".join([*row[2:], *row[:2]]) for row in rows)  # tag, word, part

    expected = run_json("predict", fit(folder), folder / "test.conll")["predictions"]
    moved = "w:%x[0,1]\np:%x[0,2]\np-1|p:%x[-1,2]|%x[0,2]\n"
    (folder / "template.txt").write_text(moved)
    (folder / "train.txt").write_text(move(TRAIN.split("\n\n", 1)[1]), encoding="utf-8")
    (folder / "test.txt").write_text(move(TEST), encoding="utf-8")
    (folder / "words.txt").write_text(
        "\n".join(" ".join(line.split()[:2]) for line in TEST.splitlines()), encoding="utf-8"
    )
    model = fit(folder, "--format", "conll", "--target", "0", data="train.txt")
    assert run_json("predict", model, folder / "test.txt")["predictions"] == expected
    assert run_json("predict", model, folder / "words.txt")["predictions"] == expected


def test_at_most_judges_the_token_error(folder):
    model = fit(folder)
    (folder / "wrong.conll").write_text("It PRP O\nsings VBZ O\n", encoding="utf-8")
    run("evaluate", model, folder / "train.conll", "--at-most", "0.01")
    failed = run("evaluate", model, folder / "wrong.conll", "--at-most", "0.5", code=1)
    assert "token error 1 is above --at-most 0.5" in failed.stderr


def test_tags_that_are_no_chunks_have_no_f1(folder):
    (folder / "pos.conll").write_text("The DT\ncat NN\n\nIt PRP\n", encoding="utf-8")
    (folder / "template.txt").write_text("w:%x[0,0]\n")
    model = fit(folder, data="pos.conll")
    result = run_json("evaluate", model, folder / "pos.conll")
    assert (result["token_error"], result["chunk_f1"], result["tag_scheme"]) == (0.0, None, None)


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        (["B-NP", "I-NP", "O"], "bio"),
        (["B", "I"], "bio"),
        (["B-NP", "E-NP"], "iobes"),
        (["O", "S-NP"], "iobes"),
        (["O"], None),
        (["B-NP", "NN"], None),
        ([], None),
    ],
)
def test_chunk_schemes_are_recognized(tags, scheme):
    assert chunk_scheme(tags) == scheme


# --- bad usage and input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--loss", "hamming"], "--loss does not apply to a column file"),
        (["--jobs", "2"], "--jobs does not apply to a column file"),
        (["--time-limit", "5"], "--time-limit does not apply to a column file"),
        (["--learner", "ridge"], "column files need --learner chain"),
        (["--set", "features=rbf"], "features must be 'linear' or 'random', got 'rbf'"),
        (["--set", "n_components=5"], "n_components=5 has an effect only with features='random'"),
        (["--set", "surrogate=nonsense"], "nonsense"),
        (["--set", "surrogate=hinge", "--set", "decoding=bayes"], "needs surrogate='log'"),
        (["--set", "decoding=viterbi"], "decoding must be 'argmax' or 'bayes'"),
        (["--set", "solver=closed_form"], "solver must be 'sgd' or 'lbfgs'"),
        (["--set", "solver=lbfgs", "--checkpoint", "c"], "has an effect only with solver='sgd'"),
        (["--target", "kind"], "--target must be the number of a column"),
        (["--target", "0", "--target", "1"], "one column of tags, got --target 2 times"),
        (["--target", "7"], "column 7 does not exist: the file has 3 columns"),
        (["--target", "1"], "template.txt: the template reads column 1, which contains the tags"),
        (["--tag-scheme", "nonsense"], "must be 'bio', 'iob1' or 'iobes'"),
        (["--transitions", "own"], "transitions must be 'shared' or 'features'"),
        (["--hash-bits", "50"], "bits must be at most 30"),
    ],
)
def test_bad_options_get_one_line(folder, options, fault):
    result = run(
        *("fit", folder / "train.conll", "--template", folder / "template.txt"),
        *("--model", folder / "m", *options),
        code=2,
    )
    assert fault in result.stderr
    assert not (folder / "m").exists()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"The DT B-NP\ncat NN\n", "bad.conll, line 2: 2 columns, the lines before have 3"),
        (b"The DT O\n\ncaf\xe9 NN O\n", "bad.conll, line 3: not text in utf-8"),
        (b"a b O\n" * 5000 + b"\xff b O\n", "bad.conll, line 5001: not text in utf-8"),
        (b"\n\n", "bad.conll contains no tokens"),
    ],
)
def test_bad_files_are_named_by_line(folder, content, fault):
    bad = folder / "bad.conll"
    bad.write_bytes(content)
    options = ("--template", folder / "template.txt", "--model", folder / "m")
    assert fault in run("fit", bad, *options, code=2).stderr
    model = fit(folder)
    assert fault in run("predict", model, bad, code=2).stderr
    assert fault in run("evaluate", model, bad, code=2).stderr


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        (b"w:%x[0,0]\nB\n", "template.txt: template line 2, 'B', has no reference"),
        (b"# nothing\n", "template.txt: the template contains no feature"),
        (b"w:%x[0,5]\n", "template.txt: the template reads column 5, but the file has 3 columns"),
        (b"w:%x[0,2]\n", "template.txt: the template reads column 2, which contains the tags"),
        (b"\xff:%x[0,0]\n", "template.txt is not a template: it is not text in utf-8"),
    ],
)
def test_bad_templates_get_one_line(folder, template, fault):
    (folder / "template.txt").write_bytes(template)
    options = ("--template", folder / "template.txt", "--model", folder / "m")
    assert fault in run("fit", folder / "train.conll", *options, code=2).stderr


def test_absent_files_and_wrong_kinds(folder):
    model, train = fit(folder), folder / "train.conll"
    rows = folder / "rows.csv"
    rows.write_text("a,kind\n1,x\n2,y\n3,x\n4,y\n")
    classifier = folder / "classifier"
    run("fit", rows, "--target", "kind", "--model", classifier, "--learner", "ridge")
    save(tagger().fit(*examples(train)), folder / "from_python")
    (folder / "wide.conll").write_text("a b c d O\n")
    template = ("--template", folder / "template.txt")
    for command, fault in [
        (("fit", train, "--model", folder / "m"), "a column file needs --template FILE"),
        (("fit", train, "--model", "m", "--template", "absent"), "there is no template file"),
        (("fit", folder / "x.conll", *template, "--model", "m"), "there is no file"),
        (("fit", train, *template, "--model", folder), "is a folder"),
        (
            ("fit", rows, *template, "--target", "kind", "--model", "m"),
            "--template applies only to colu",
        ),
        (("fit", folder / "template.txt", "--model", "m"), "also conll, for column files"),
        (("fit", folder / "t.txt", *template, "--model", "m"), "(.conll, or --format conll)"),
        (("predict", model, folder / "x.conll"), "there is no file"),
        (("predict", model, folder), "is a folder; pass a column file"),
        (("predict", model, rows), "which reads column files, but"),
        (("predict", model, train, "--format", "csv"), "is read as csv; pass --format conll"),
        (
            ("predict", classifier, train),
            "contains a TaskLossClassifier, which does not read column",
        ),
        (("evaluate", classifier, rows, "--format", "conll"), "contains a TaskLossClassifier"),
        (("predict", folder / "from_python", train), "does not say which columns and template"),
        (("predict", model, folder / "wide.conll"), "wide.conll: the file has 5 columns, but"),
        (("evaluate", model, folder / "wide.conll"), "wide.conll: the file has 5 columns, but"),
        (("predict", model, train, "--expected-loss"), "--expected-loss does not apply to a sequ"),
        (("evaluate", model, train, "--target", "1"), "--target does not apply to a sequence"),
    ]:
        assert fault in run(*command, code=2).stderr


def test_a_classifier_with_the_notes_of_a_tagger_is_refused(folder):
    model = TaskLossClassifier(model=Ridge("linear")).fit([[0.0], [1.0]], [0, 1])
    layout = ColumnLayout(TEMPLATE, 2, 3)
    save(model, folder / "m", notes={"columns": layout.as_dict()})
    assert (
        "does not read column files"
        in run("predict", folder / "m", folder / "test.conll", code=2).stderr
    )


def test_layouts():
    layout = ColumnLayout("a:%x[0,0]\nb:%x[0,2]", tag_column=1, n_columns=3)
    full = ColumnFile([[("x", "TAG", "y")]], 3)
    bare = ColumnFile([[("x", "y")]], 2)
    assert layout.features(full) == layout.features(bare) == [[["a=x", "b=y"]]]
    assert layout.tags(full) == [["TAG"]]
    assert ColumnLayout.from_dict(layout.as_dict()) == layout
    with pytest.raises(ValueError, match="between 0 and 2, got 3"):
        ColumnLayout("a:%x[0,0]", tag_column=3, n_columns=3)


# --- as processes --------------------------------------------------------------------------------


def test_as_processes(folder):
    def process(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from consistruct.cli import main; main()"]
        return subprocess.run(
            [*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120
        )

    here = load(fit(folder)).predict(examples(folder / "test.conll")[0])
    made = process("fit", "train.conll", "--template", "template.txt", "--model", "m", "--json")
    assert (made.returncode, made.stderr) == (0, "")
    assert json.loads(made.stdout)["n_tokens"] == 16
    (folder / "template.txt").unlink()  # the model knows it
    done = process("predict", "m", "test.conll", "--out", "out.conll")
    assert (done.returncode, done.stderr) == (0, "")
    assert read_columns(folder / "out.conll").column(-1) == [tags.tolist() for tags in here]
    evaluated = process("evaluate", "m", "test.conll", "--json")
    assert json.loads(evaluated.stdout)["n_sequences"] == 2
    failed = process("evaluate", "m", "absent.conll")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "consistruct: there is no file 'absent.conll'\n"
