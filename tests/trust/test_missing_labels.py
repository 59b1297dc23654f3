"""A missing true label is refused or dropped, and never a class of its own."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from typer.testing import CliRunner

import consistruct as cs
from consistruct import StructuredPredictor, TaskLossClassifier
from consistruct.cli import app
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data
from consistruct.metrics import (
    TaskLossScorer,
    metric_value,
    permutation_importance,
    savings,
    task_loss,
)
from consistruct.models import Items, Probabilities, Ridge

GAPS = ["NA", "nan", "NaN", "", "None", "n/a", "?", "<NA>", "#N/A"]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("feature", ["1.5", "red"])
def test_csv_refuses_missing_true_labels_with_their_lines(tmp_path, gap, feature):
    path = tmp_path / "d.csv"
    path.write_text(f"a,b,y\n1,{feature},cat\n2,3,{gap}\n3,4,dog\n4,5,{gap}\n5,6,cat\n")
    with pytest.raises(DataFileError, match=r"'y' is missing in 2 lines \(line 3, 5\)") as caught:
        read_data(path, target="y")
    assert "--drop-missing-target" in str(caught.value)
    data = read_data(path, target="y", drop_missing_target=True)
    assert data.y.tolist() == ["cat", "dog", "cat"]
    assert data.X[:, 0].tolist() == [1, 3, 5]


@pytest.mark.parametrize(
    "true_labels", [["a", None, "b", "NA"], [0.0, np.nan, 1.0, None], pd.array([0, None, 1, None])]
)
def test_parquet_refuses_missing_true_labels_with_their_rows(tmp_path, true_labels):
    path = tmp_path / "d.parquet"
    pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": true_labels}).to_parquet(path)
    with pytest.raises(DataFileError, match=r"'y' is missing in 2 rows \(row 2, 4\)"):
        read_data(path, target="y")
    data = read_data(path, target="y", drop_missing_target=True)
    assert data.X.ravel().tolist() == [1.0, 3.0]
    assert len(set(data.y.tolist())) == 2


def test_the_class_none_is_a_class(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,y\n1,none\n2,mild\n")
    assert read_data(path, target="y").y.tolist() == ["none", "mild"]


@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", "nan", "b", "NA"]),
        np.array(["a", None, "b", float("nan")], dtype=object),
        pd.Series(["a", None, "b", pd.NA]),
        pd.Series(["a", None, "b", None], dtype="category"),
        pd.Series(["a", None, "b", None], dtype="string").astype(str),
        np.ma.masked_array([0, 1, 1, 0], mask=[0, 1, 0, 1]),
        ["a", "", "b", None],
    ],
)
def test_arrays_and_columns_refuse_missing_true_labels_with_their_rows(y):
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match=r"y is missing in 2 rows \(counted from 0: 1, 3\)"):
        TaskLossClassifier(model="ridge").fit(X, y)


def test_masked_cells_of_arrays_are_missing():
    """What lies below a mask is not data: it was taken as if there was no mask."""
    X = np.ma.masked_array([[0.0, 1.0], [9.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    X[1, 0] = np.ma.masked
    y = ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match="Input X contains NaN"):
        TaskLossClassifier(model="ridge").fit(X, y)
    trees = Probabilities(HistGradientBoostingClassifier(min_samples_leaf=1, max_iter=3))
    masked = TaskLossClassifier(model=trees).fit(X, y)
    plain = TaskLossClassifier(model=trees).fit(X.filled(np.nan), y)
    np.testing.assert_array_equal(masked.predict_proba(X), plain.predict_proba(X.filled(np.nan)))


def test_the_command_line_drops_rows_without_a_true_label_when_requested(tmp_path):
    data, model = tmp_path / "d.csv", tmp_path / "m.safetensors"
    lines = [f"{i % 5},{i % 3},{'NA' if i == 4 else 'ab'[i % 2]}" for i in range(30)]
    data.write_text("\n".join(["a,b,y", *lines]))
    fit = ["fit", str(data), "--target", "y", "--learner", "ridge", "--model", str(model)]
    refused = CliRunner().invoke(app, fit)
    assert refused.exit_code != 0
    assert not model.exists()
    done = CliRunner().invoke(app, [*fit, "--drop-missing-target", "--json"])
    assert done.exit_code == 0, done.output
    assert '"n_examples": 29' in done.output


def fit_arguments(data, model):
    linear = ["--learner", "ridge", "--set", "features=linear"]
    return ["fit", str(data), "--target", "y", *linear, "--model", str(model)]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("gap", ["NA", "nan", ""])
def test_folders_refuse_missing_true_labels_or_drop_them(tmp_path, kind, gap):
    folder, model = tmp_path / "data", tmp_path / "m.safetensors"
    folder.mkdir()
    for part in range(2):
        y = [gap if (part, i) == (1, 4) else "ab"[i % 2] for i in range(30)]
        frame = pd.DataFrame({"a": [i % 5 for i in range(30)], "y": y})
        if kind == "parquet":
            frame.to_parquet(folder / f"p{part}.parquet")
        else:
            separator = "," if kind == "csv" else "\t"
            frame.to_csv(folder / f"p{part}.{kind}", sep=separator, index=False)
    refused = CliRunner().invoke(app, fit_arguments(folder, model))
    assert refused.exit_code != 0
    assert f"p1.{kind}: the target 'y' is missing in 1 row (row 5)" in refused.output
    done = CliRunner().invoke(
        app, [*fit_arguments(folder, model), "--drop-missing-target", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert '"n_examples": 59' in done.output
    evaluate = ["evaluate", str(model), str(folder), "--json"]
    assert CliRunner().invoke(app, evaluate).exit_code != 0
    evaluated = CliRunner().invoke(app, [*evaluate, "--drop-missing-target"])
    assert '"n_examples": 59' in evaluated.output


def test_evaluate_and_report_drop_rows_without_a_true_label_when_requested(tmp_path):
    train, test, model = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "m.safetensors"
    lines = [f"{i % 7},{'ab'[i % 7 > 3]}" for i in range(40)]
    train.write_text("\n".join(["a,y", *lines]))
    test.write_text("\n".join(["a,y", *lines[:39], "3,NA"]))
    assert CliRunner().invoke(app, fit_arguments(train, model)).exit_code == 0
    for command in ("evaluate", "report"):
        given = [command, str(model), str(test), "--json"]
        refused = CliRunner().invoke(app, given)
        assert refused.exit_code != 0
        assert "line 41" in refused.output
        done = CliRunner().invoke(app, [*given, "--drop-missing-target"])
        assert done.exit_code == 0, done.output
        assert ": 39" in done.output


def test_words_for_missing_cells_count_in_the_true_labels_of_later_files(tmp_path):
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("a,y\n1,cat\nunknown,dog\n3,cat\n")
    second.write_text("a,y\n1,cat\n2,unknown\n")
    layout = read_data(first, target="y", missing=["unknown"]).layout
    with pytest.raises(DataFileError, match=r"missing in 1 line \(line 3\)"):
        read_data(second, like=layout)


def other_formats(folder):
    np.savez(folder / "s.npz", X=np.eye(3), y=np.array(["p", "NA", "q"]))
    np.savez(folder / "f.npz", X=np.eye(3), y=np.array([0.0, np.nan, 1.0]))
    (folder / "d.svm").write_text("0 1:1\nnan 2:1\n1 3:1\n")
    head = "@relation r\n@attribute a numeric\n@attribute y {p,q,NA}\n@data\n"
    (folder / "d.arff").write_text(head + "1,p\n2,?\n3,q\n")
    (folder / "e.arff").write_text(head + "1,p\n2,NA\n3,q\n")


@pytest.mark.parametrize("name", ["s.npz", "f.npz", "d.svm", "d.arff", "e.arff"])
def test_every_format_refuses_missing_true_labels_or_drops_them(tmp_path, name):
    other_formats(tmp_path)
    target = {"target": "y"} if name.endswith("arff") else {}
    place = r"\(row 2\)" if name.endswith("npz") else r"\(line \d\)"
    with pytest.raises(DataFileError, match=rf"is missing in 1 .* {place}.*--drop-missing-target"):
        read_data(tmp_path / name, **target)
    data = read_data(tmp_path / name, **target, drop_missing_target=True)
    assert data.X.shape[0] == 2
    assert len(set(data.y.tolist())) == 2


def test_arff_files_with_labels_read_the_notation_that_was_requested(tmp_path):
    head = "@relation r\n@attribute a string\n@attribute y {0,1}\n@attribute z {0,1}\n@data\n"
    (tmp_path / "d.arff").write_text(head + "'1,5',0,1\nunknown,1,?\n'2,25',1,1\n")
    how = {"labels": 2, "missing": ["unknown"], "decimal": ",", "drop_missing_target": True}
    data = read_data(tmp_path / "d.arff", **how)
    assert data.X.ravel().tolist() == [1.5, 2.25]
    (tmp_path / "e.arff").write_text(head + "'1,862',0,1\nunknown,1,1\n")
    again = read_data(tmp_path / "e.arff", like=data.layout, labels=2)
    assert again.X[0].tolist() == [1.862]
    assert np.isnan(again.X[1, 0])


@pytest.mark.parametrize("gap", ["NA", None, float("nan")])
def test_batches_refuse_missing_true_labels_with_their_rows(gap):
    X = np.arange(60.0).reshape(30, 2)
    y = np.array(["ab"[i % 2] if i != 3 else gap for i in range(30)], dtype=object)
    model = TaskLossClassifier("zero_one", Ridge("linear", solver="moments"))
    with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 3\)"):
        model.fit_stream([(X, y)])
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=["a", "b"])
    parts = [dask.from_pandas(part, npartitions=1) for part in (frame, pd.Series(y))]
    with pytest.raises(ValueError, match="y is missing in 1 row"):
        model.fit(*parts)


@pytest.mark.parametrize("gap", ["NA", None, float("nan")])
def test_tags_of_tables_refuse_missing_true_labels(gap):
    X = [np.eye(3)] * 4
    y = [["a", "b", "a"]] * 3 + [["a", gap, "b"]]
    with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 10\)"):
        StructuredPredictor("hamming").fit(X, y)
    words = [["x", "y", "z"]] * 4
    if gap != "NA":  # a tag may be called so
        with pytest.raises(ValueError, match=r"a tag is .*, which is missing"):
            StructuredPredictor("hamming").fit(words, y)


EVALUATIONS = {
    "score": lambda model, X, y: model.score(X, y),
    "task_losses": lambda model, X, y: model.task_losses(X, y),
    "report": lambda model, X, y: cs.learning_report(model, X, y),
    "compare": lambda model, X, y: cs.compare({"one": model, "same": model}, X, y),
    "importance": lambda model, X, y: permutation_importance(model, X, y),
    "calibration": lambda model, X, y: cs.RiskControl(model, level=0.5).fit(X, y),
    "evaluation of rules": lambda model, X, y: (
        cs.RiskControl(model, level=0.5).fit(X, model.predict(X)).evaluate(X, y)
    ),
    "scorer": lambda model, X, y: TaskLossScorer("zero_one")(model, X, y),
    "loss": lambda model, X, y: task_loss(y, model.predict(X), loss="zero_one"),
    "metric": lambda model, X, y: metric_value(y, model.predict(X), metric="macro-f1"),
    "savings": lambda model, X, y: savings(y, model.predict(X), np.tile(1 - np.eye(2), (40, 1, 1))),
}


@pytest.mark.parametrize("evaluation", EVALUATIONS)
@pytest.mark.parametrize(
    "make",
    [list, np.array, pd.Series, pl.Series, pa.array, lambda y: pd.Series(y, dtype="category")],
    ids=["list", "array", "pandas", "polars", "pyarrow", "category"],
)
@pytest.mark.parametrize("gap", [None, "NA"])
def test_evaluation_refuses_missing_true_labels(evaluation, make, gap):
    """They counted as wrong predictions, and moved thresholds of risk control."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = ["ab"[int(x > 0)] for x in X[:, 0]]
    model = TaskLossClassifier("zero_one", Ridge("linear")).fit(X, y)
    y[3] = gap
    with pytest.raises(ValueError, match=r"is missing in 1 row \(counted from 0: 3\)"):
        EVALUATIONS[evaluation](model, X, make(y))


@pytest.mark.parametrize("loss", ["hamming", "fbeta", "macro-f1"])
def test_evaluation_refuses_missing_labels_of_sets(loss):
    X = np.random.default_rng(0).normal(size=(40, 2))
    Y = (X > 0).astype(int)
    model = TaskLossClassifier(loss, Ridge("linear")).fit(X, Y)
    gaps = np.where(np.arange(80).reshape(40, 2) == 7, np.nan, Y)
    for y in (gaps, gaps.tolist(), pl.DataFrame(gaps), pd.DataFrame(gaps)):
        with pytest.raises(ValueError, match=r"is missing in 1 row \(counted from 0: 3\)"):
            model.score(X, y)
        if loss != "macro-f1":
            with pytest.raises(ValueError, match=r"is missing in 1 row \(counted from 0: 3\)"):
                cs.learning_report(model, X, y)


@pytest.mark.parametrize("gap", [None, float("nan"), "NA"])
def test_evaluation_refuses_missing_tags_and_candidates(gap):
    X, y = [np.eye(3)] * 4, [["a", "b", "a"]] * 4
    tagger = StructuredPredictor("hamming").fit(X, y)
    with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 10\)"):
        tagger.score(X, [*y[:3], ["a", gap, "b"]])
    if gap != "NA":
        words = [["x", "y", "z"]] * 4
        with pytest.raises(ValueError, match=r"a tag is .*, which is missing"):
            StructuredPredictor("hamming").fit(words, y).score(words, [*y[:3], ["a", gap, "b"]])
    rows, sets = np.arange(8.0)[:, None], [{"a"}, {"b"}] * 4
    ridge = Ridge("linear")
    model = StructuredPredictor("partial-labels:infimum:zero-one", ridge).fit(rows, sets)
    for refused in (model.score, StructuredPredictor(model.loss, ridge).fit):
        with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 3\)"):
            refused(rows, [*sets[:3], {"a", gap}, *sets[4:]])


def test_ranks_with_gaps_are_evaluated_in_frames_as_in_arrays():
    rng = np.random.default_rng(0)
    X, ranks = rng.normal(size=(40, 2)), rng.permuted(np.tile(np.arange(4.0), (40, 1)), axis=1)
    ranks[3, 1] = np.nan
    model = StructuredPredictor(cs.losses.Kendall(4, ties="exclude"), Ridge("linear"))
    model.fit(X, ranks)
    for frame in (pd.DataFrame(ranks), pl.DataFrame(ranks), pl.DataFrame(ranks, nan_to_null=True)):
        assert model.score(X, frame) == model.score(X, ranks)


def test_true_labels_beside_costs_of_each_example_may_be_a_list():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(40, 2)), rng.uniform(size=(40, 2, 2))
    y = ["ab"[int(x > 0)] for x in X[:, 0]]
    model = TaskLossClassifier(model=Ridge("linear"), rows="true").fit(X, y, costs=costs)
    wanted = model.task_losses(X, np.array(y), costs=costs)
    np.testing.assert_array_equal(model.task_losses(X, y, costs=costs), wanted)
    with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 3\)"):
        model.score(X, [*y[:3], None, *y[4:]], costs=costs)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", "a", None, "b"], "got None for item 2"),
        (pd.Series([1, 1, None, 2], dtype="Int64"), "groups is missing in 1 row"),
        (np.array(["2026-01-01", "NaT", "2026-01-02", "2026-01-02"], "M8[D]"), "for item 1"),
        ([1, 1, "b", "b"], "groups must be of one type"),
    ],
    ids=["None", "NA", "NaT", "mixed"],
)
def test_items_without_a_query_get_one_line(groups, message):
    if isinstance(groups, list):
        groups = np.array(groups, dtype=object)
    with pytest.raises(ValueError, match=message):
        StructuredPredictor("ndcg").fit(np.eye(4), [0, 1, 1, 0], groups=groups)


def test_a_query_may_be_called_na():
    groups = np.array(["NA", "NA", "b", "b"], dtype=object)
    model = StructuredPredictor("ndcg", Items("ridge"))
    model.fit(np.eye(4), [0, 1, 1, 0], groups=groups)
    assert model.predict(np.eye(4), groups=groups).shape == (4,)
