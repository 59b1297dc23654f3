"""Frames of pandas, Polars and pyarrow are one table: same fits, columns found by name."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

import consistruct as cs
from consistruct._frames import as_array
from consistruct.cli import app
from consistruct.learning import load, read_data, save

FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}
N = 120
RNG = np.random.default_rng(0)
DAYS = pd.date_range("2023-01-01", periods=N, freq="3D")
MIXED = {
    "size": RNG.normal(size=N).round(2).tolist(),
    "town": [None if i % 17 == 0 else ("Bonn", "Ulm", "Kiel")[i % 3] for i in range(N)],
    "count": [None if i % 11 == 0 else i % 7 for i in range(N)],
    "old": [bool(i % 2) for i in range(N)],
    "seen": [day.to_pydatetime() for day in DAYS],
}
LABELS = ["yes" if (i % 3 == 0) or (day.month % 2 == 0) else "no" for i, day in enumerate(DAYS)]


def fast():
    return cs.TaskLossClassifier("zero_one", cs.models.Boosting(rounds=20), random_state=0)


def command(*arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


def series(kind, values):
    return {"pandas": pd.Series, "polars": pl.Series, "pyarrow": lambda v: pa.chunked_array([v])}[
        kind
    ](values)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_of_numbers_fit_bit_for_bit_like_arrays(kind):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:, :6], y.astype(int)
    frame = FRAMES[kind]({f"c{i}": X[:, i] for i in range(X.shape[1])})
    for model in (cs.models.Ridge(), cs.models.Boosting(rounds=20)):
        plain = cs.TaskLossClassifier("zero_one", model, random_state=0)
        plain.fit(X, y, groups=np.arange(569) // 2)
        ours = cs.TaskLossClassifier("zero_one", model, random_state=0)
        weight = series(kind, np.ones(len(y)))
        ours.fit(
            frame, series(kind, y), sample_weight=weight, groups=series(kind, np.arange(569) // 2)
        )
        assert np.array_equal(ours.predict_proba(frame), plain.predict_proba(X))
        assert np.array_equal(ours.predict(frame), plain.predict(X))
        assert list(ours.feature_names_in_) == [f"c{i}" for i in range(6)]


def test_mixed_frames_of_every_library_give_the_same_model():
    found = []
    for kind, make in FRAMES.items():
        frame = make(MIXED)
        model = fast().fit(frame, series(kind, LABELS))
        assert [column.kind for column in model.columns_.columns] == [
            "number",
            "category",
            "number",
            "number",
            "date",
        ]
        found.append((model.predict_proba(frame), model.predict(frame).tolist()))
    for probabilities, labels in found[1:]:
        assert np.array_equal(probabilities, found[0][0])
        assert labels == found[0][1]


def test_the_portfolio_takes_polars_like_pandas():
    X, y = load_breast_cancer(return_X_y=True)
    columns = {f"c{i}": X[:150, i] for i in range(3)}
    columns["word"] = ["a" if v > 14 else "b" for v in X[:150, 0]]
    wanted = cs.TaskLossClassifier(random_state=0, time_limit=1e-3).fit(
        pd.DataFrame(columns), y[:150]
    )
    found = cs.TaskLossClassifier(random_state=0, time_limit=1e-3).fit(
        pl.DataFrame(columns), pl.Series(y[:150])
    )
    assert np.array_equal(
        found.predict_proba(pl.DataFrame(columns)), wanted.predict_proba(pd.DataFrame(columns))
    )


def test_costs_of_every_library_are_read_by_name():
    X = np.linspace(0, 1, 60)[:, None]
    costs = {"b": np.where(X[:, 0] > 0.5, 0.0, 2.0), "a": np.where(X[:, 0] > 0.5, 1.0, 0.0)}
    for make in FRAMES.values():
        model = cs.TaskLossClassifier(model=cs.models.Ridge()).fit(X, costs=make(costs))
        assert model.classes_.tolist() == ["a", "b"]
        assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]


def test_iso_dates_as_text_are_dates_in_frames_as_in_files():
    text = [day.strftime("%Y-%m-%d") for day in DAYS]
    for make in FRAMES.values():
        model = fast().fit(make({"day": text}), LABELS)
        assert model.columns_.columns[0].kind == "date"
        dated = fast().fit(pd.DataFrame({"day": DAYS}), LABELS)
        assert np.array_equal(
            model.predict_proba(make({"day": text})),
            dated.predict_proba(pd.DataFrame({"day": DAYS})),
        )


@pytest.fixture
def fitted_by_commands(tmp_path):
    frame = pd.DataFrame(MIXED).assign(label=LABELS)
    frame.to_csv(tmp_path / "train.csv", index=False)
    arguments = ["fit", str(tmp_path / "train.csv"), "--target", "label", "--loss", "zero_one"]
    arguments += ["--learner", "boosting", "--set", "rounds=20", "--seed", "0"]
    command(*arguments, "--model", str(tmp_path / "m.safetensors"))
    return load(tmp_path / "m.safetensors"), tmp_path


def test_models_of_the_command_line_find_columns_by_name(fitted_by_commands):
    model, folder = fitted_by_commands
    frame = pd.DataFrame(MIXED)
    files = [str(folder / "m.safetensors"), str(folder / "train.csv")]
    command("predict", *files, "--out", str(folder / "p.csv"))
    wanted = pd.read_csv(folder / "p.csv").iloc[:, 0].tolist()
    swapped = frame[frame.columns[::-1]].assign(extra="x")
    assert model.predict(swapped).tolist() == wanted
    assert model.predict(pl.from_pandas(swapped)).tolist() == wanted
    assert model.predict(frame.to_dict("records")).tolist() == wanted
    with pytest.raises(ValueError, match="'town'"):
        model.predict(frame.drop(columns="town"))
    with pytest.raises(ValueError, match="'town'"):
        model.predict([{"size": 1.0, "count": 2, "old": True, "seen": "2023-01-01"}])


def test_columns_survive_a_model_file(tmp_path):
    frame = pd.DataFrame(MIXED)
    model = fast().fit(frame, LABELS)
    save(model, tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert again.columns_ == model.columns_
    assert tuple(sorted(again.columns_.columns[1].categories)) == ("Bonn", "Kiel", "Ulm")
    swapped = frame[frame.columns[::-1]]
    assert np.array_equal(again.predict_proba(swapped), model.predict_proba(frame))
    with pytest.raises(ValueError, match="'seen'"):
        again.predict(frame.drop(columns="seen"))


def test_rankings_take_text_dates_and_missing_cells():
    frame = pd.DataFrame(MIXED)
    grades = np.array([2 if town == "Ulm" else 0 for town in MIXED["town"]])
    groups = np.arange(N) // 8
    for learner in ("ridge", "trees"):
        model = cs.StructuredPredictor("ndcg", cs.models.Items(learner), random_state=0)
        model.fit(frame, grades, groups=pd.Series(groups))
        swapped = frame[frame.columns[::-1]]
        ranks = model.predict(swapped, groups=groups)
        assert np.array_equal(ranks, model.predict(pl.DataFrame(MIXED), groups=groups))
        assert model.score(frame, grades, groups=groups) > -0.1
        with pytest.raises(ValueError, match="'town'"):
            model.predict(frame.drop(columns="town"), groups=groups)


def test_sequences_of_tables_take_text_dates_and_missing_cells():
    frame = pd.DataFrame(MIXED)
    tags = np.array([town or "elsewhere" for town in MIXED["town"]])
    groups = np.arange(N) // 8
    model = cs.StructuredPredictor("hamming", random_state=0).fit(frame, tags, groups=groups)
    found = model.predict(pl.DataFrame(MIXED), groups=groups)
    assert (found == tags).mean() > 0.9
    parts = [frame.iloc[start : start + 8] for start in range(0, N, 8)]
    listed = cs.StructuredPredictor("hamming", random_state=0)
    listed.fit(parts, np.split(tags, len(parts)))
    assert np.array_equal(np.concatenate(listed.predict(parts)), found)


def test_missing_labels_double_columns_and_periods_get_one_clear_line():
    frame = pd.DataFrame(MIXED)
    with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 3\)"):
        fast().fit(frame, pd.Series([*LABELS[:3], None, *LABELS[4:]]))
    with pytest.raises(ValueError, match=r"y is missing in 1 row \(counted from 0: 3\)"):
        fast().fit(frame, pl.Series([*LABELS[:3], None, *LABELS[4:]]))
    twice = pd.concat([frame, frame[["size"]]], axis=1)
    with pytest.raises(ValueError, match=r"'size'.*rename"):
        fast().fit(twice, LABELS)
    months = frame.assign(month=pd.period_range("2020-01", periods=N, freq="M"))
    with pytest.raises(ValueError, match=r"'month'.*to_timestamp"):
        fast().fit(months, LABELS)


def test_text_in_frames_is_read_by_the_rule_of_files():
    text = {"price": ["3,7", "12,25"] * (N // 2), "day": ["07/12/2023", "25/12/2023"] * (N // 2)}
    model = fast().fit(pd.DataFrame(text), LABELS)
    assert [column.kind for column in model.columns_.columns] == ["number", "date"]
    assert model.columns_.columns[1].date_format == "%d/%m/%Y"
    assert model.columns_.columns[0].decimal == ","
    # 07/12 alone has two readings: the one of the fit counts
    later = model.columns_.read([{"day": "07/12/2023", "price": "1,5"}])
    assert later.tolist() == [[1.5, 19698.0]]
    with pytest.warns(UserWarning, match="2\\^53"):
        model = fast().fit(pd.DataFrame({"id": [2**53 + 1, 2**53 + 2] * (N // 2)}), LABELS)
    assert set(model.columns_.columns[0].categories) == {str(2**53 + 1), str(2**53 + 2)}


def test_arrays_of_every_memory_order_fit_bit_for_bit_alike():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = np.ascontiguousarray(X[:, :6]), y.astype(int)
    frame = pd.DataFrame(X, columns=list("abcdef"))  # frame.to_numpy() is in the order of columns
    for model in (cs.models.Ridge("linear"), cs.models.Linear()):
        found = [
            cs.TaskLossClassifier("zero_one", model, random_state=0).fit(table, y)
            for table in (X, np.asfortranarray(X), frame)
        ]
        for one, table in zip(found[1:], (np.asfortranarray(X), frame), strict=True):
            assert np.array_equal(one.predict_proba(table), found[0].predict_proba(X))
    costs = np.random.default_rng(0).uniform(size=(len(y), 2))
    by_place = cs.TaskLossClassifier(model=cs.models.Ridge("linear")).fit(X, y, costs=costs)
    named = pd.DataFrame(costs[:, ::-1], columns=[1, 0])
    by_name = cs.TaskLossClassifier(model=cs.models.Ridge("linear")).fit(X, y, costs=named)
    assert np.array_equal(by_place.expected_losses(X), by_name.expected_losses(X))


def test_columns_called_by_numbers_are_found_by_name():
    X, y = load_breast_cancer(return_X_y=True)
    for names in ([2021, 2022, 2023], [0, 1, 2]):
        frame = pd.DataFrame(X[:, :3], columns=names)
        model = cs.TaskLossClassifier("zero_one", cs.models.Ridge("linear")).fit(frame, y)
        assert np.array_equal(model.predict_proba(frame[names[::-1]]), model.predict_proba(frame))
        assert not hasattr(model, "feature_names_in_")  # scikit-learn knows names of text only
    with pytest.raises(ValueError, match="'2021'"):
        cs.TaskLossClassifier("zero_one", cs.models.Ridge("linear")).fit(
            pd.DataFrame(X[:, :2], columns=[2021, 2022]), y
        ).predict(pd.DataFrame(X[:, :2], columns=[2022, 2023]))


def test_tables_that_cannot_be_read_get_one_clear_line():
    frame = pl.DataFrame({"a": list(range(N))})
    with pytest.raises(TypeError, match=r"LazyFrame.*X\.collect\(\)"):
        fast().fit(frame.lazy(), LABELS)
    with pytest.raises(TypeError, match=r"RecordBatch.*Table\.from_batches"):
        fast().fit(pa.RecordBatch.from_pydict({"a": list(range(N))}), LABELS)
    twice = pa.Table.from_arrays([pa.array(range(N))] * 2, names=["a", "a"])
    with pytest.raises(ValueError, match=r"two columns of X are called 'a'; rename"):
        fast().fit(twice, LABELS)
    for cell in (np.zeros(2), 1j):
        odd = pd.DataFrame({"a": pd.Series([cell] * N, dtype=object)})
        with pytest.raises(
            ValueError, match=rf"column 'a' contains cells of type {type(cell).__name__}"
        ):
            fast().fit(odd, LABELS)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": pd.Series([2**53 + 1, 2**53 + 2] * (N // 2), dtype=object)}),
        pl.DataFrame({"id": [Decimal(2**53 + 1), Decimal(2**53 + 2)] * (N // 2)}),
        pa.table({"id": [Decimal(2**53 + 1), Decimal(2**53 + 2)] * (N // 2)}),
        [{"id": 2**53 + 1 + i % 2} for i in range(N)],
    ],
    ids=["objects", "decimals", "decimals of pyarrow", "records"],
)
def test_whole_numbers_beyond_2_53_stay_exact_in_every_table(table):
    with pytest.warns(UserWarning, match=r"2\^53"):
        model = fast().fit(table, [f"c{i % 2}" for i in range(N)])
    assert set(model.columns_.columns[0].categories) == {str(2**53 + 1), str(2**53 + 2)}
    assert model.score(table, [f"c{i % 2}" for i in range(N)]) == 0


def test_decimals_are_the_nearest_floats_in_files_and_frames(tmp_path):
    cells = [Decimal(int(x)).scaleb(-3) for x in RNG.integers(-(10**9), 10**9, N)]
    wanted = [float(cell) for cell in cells]  # correctly rounded; casts of libraries divide
    table = pa.table({"a": cells, "y": LABELS})
    pq.write_table(table, tmp_path / "d.parquet")
    assert read_data(tmp_path / "d.parquet", target="y").X[:, 0].tolist() == wanted
    for make in FRAMES.values():
        model = fast().fit(make({"a": cells}), LABELS)
        assert model.columns_.read(make({"a": cells}))[:, 0].tolist() == wanted
        costs = make({"no": cells, "yes": cells[::-1]})
        assert as_array(costs, "costs").astype(float)[:, 0].tolist() == wanted


def test_powers_of_two_are_numbers_in_frames_as_in_files():
    model = fast().fit(pd.DataFrame({"size": [2**60, 2**61] * (N // 2)}), LABELS)
    assert model.columns_.kinds == ("number",)


def test_slips_among_numbers_are_refused_in_frames_as_in_files(tmp_path):
    cells = ["x17" if i == 7 else str(i % 9) for i in range(N)]
    for make in FRAMES.values():
        with pytest.raises(
            ValueError, match=r"row 7 .*column 'a' must contain a number, got 'x17'"
        ):
            fast().fit(make({"a": cells}), LABELS)


def test_notes_on_frames_say_what_to_do_without_options():
    cases = {
        "replace 'unknown' by None": ["unknown" if i % 5 == 0 else str(i % 9) for i in range(N)],
        "convert it to numbers": ["1,862", "2,500"] * (N // 2),
        "convert it to dates, of the format '%d/%m/%Y'": ["07/12/2023", "01/02/2023"] * (N // 2),
    }
    for remedy, cells in cases.items():
        with pytest.warns(UserWarning, match="column 'a' looks like") as caught:
            fast().fit(pd.DataFrame({"a": cells}), LABELS)
        assert remedy in str(caught[0].message)
        assert "--" not in str(caught[0].message)


def test_models_of_the_command_line_read_the_notation_of_their_file(tmp_path):
    days = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2023" for i in range(N)]
    frame = pd.DataFrame(
        {
            "day": days,
            "price": [f"{i % 13},{i % 7}5" for i in range(N)],
            "count": ["unknown" if i % 7 == 0 else str(i % 5) for i in range(N)],
            "label": ["yes" if int(day[3:5]) % 2 else "no" for day in days],
        }
    )
    frame.to_csv(tmp_path / "train.tsv", sep="\t", index=False)
    arguments = ["fit", str(tmp_path / "train.tsv"), "--target", "label", "--missing", "unknown"]
    arguments += ["--learner", "boosting", "--set", "rounds=20"]
    command(*arguments, "--model", str(tmp_path / "m"))
    command(
        "predict", str(tmp_path / "m"), str(tmp_path / "train.tsv"), "--out", str(tmp_path / "p")
    )
    wanted = pd.read_csv(tmp_path / "p").iloc[:, 0].tolist()
    model = load(tmp_path / "m")
    assert model.predict(frame).tolist() == wanted
    for row in (0, 7):  # alone these days have two readings
        assert model.predict(frame.iloc[row : row + 1].to_dict("records")).tolist() == [wanted[row]]


def test_models_saved_from_python_are_used_by_the_command_line(tmp_path):
    frame = pd.DataFrame(MIXED).assign(label=LABELS)
    model = fast().fit(frame.drop(columns="label"), frame["label"])
    save(model, tmp_path / "m")
    frame[frame.columns[::-1]].to_csv(tmp_path / "d.csv", index=False)
    command("predict", str(tmp_path / "m"), str(tmp_path / "d.csv"), "--out", str(tmp_path / "p"))
    found = pd.read_csv(tmp_path / "p").iloc[:, 0].tolist()
    assert found == model.predict(frame).tolist()
    command("evaluate", str(tmp_path / "m"), str(tmp_path / "d.csv"), "--target", "label")


def test_steps_that_read_frames_take_records_and_every_library():
    pipeline = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["town"]), (StandardScaler(), ["size"])
        ),
        LogisticRegression(),
    )
    model = cs.TaskLossClassifier(model=cs.models.Probabilities(pipeline))
    model.fit(pd.DataFrame(MIXED), LABELS)
    wanted = model.predict_proba(pd.DataFrame(MIXED))
    for table in (pl.DataFrame(MIXED), pa.table(MIXED), pl.DataFrame(MIXED).to_dicts()):
        assert np.array_equal(model.predict_proba(table), wanted)


def test_lists_of_tables_are_read_by_name():
    frame = pd.DataFrame(MIXED)
    parts = [frame.iloc[start : start + 8] for start in range(0, N, 8)]
    mixed = [part[part.columns[::-1]] if i % 2 else part for i, part in enumerate(parts)]
    grades = [np.array([2 if town == "Ulm" else 0 for town in part["town"]]) for part in parts]
    tags = [pd.Series([str(value) for value in part["old"]]) for part in parts]
    ranker = cs.StructuredPredictor("ndcg", cs.models.Items("ridge"), random_state=0)
    tagger = cs.StructuredPredictor("hamming", random_state=0)
    for model, y in ((ranker, grades), (tagger, tags)):
        wanted = np.concatenate(model.fit(parts, y).predict(parts))
        assert np.array_equal(np.concatenate(model.predict(mixed)), wanted)
        assert np.array_equal(np.concatenate(model.fit(mixed, y).predict(parts)), wanted)
        lacking = [*parts[:-1], parts[-1].drop(columns="town")]
        with pytest.raises(ValueError, match="'town'"):
            model.predict(lacking)
    records = [part.to_dict("records") for part in parts]
    wanted = np.concatenate(ranker.fit(parts, grades).predict(parts))
    assert np.array_equal(np.concatenate(ranker.fit(records, grades).predict(records)), wanted)


def test_the_command_line_ranks_by_text_with_every_learner(tmp_path):
    frame = pd.DataFrame(MIXED).assign(
        query=np.arange(N) // 8, grade=[2 if town == "Ulm" else 0 for town in MIXED["town"]]
    )
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["fit", str(tmp_path / "d.csv"), "--target", "grade", "--groups", "query"]
    arguments += ["--loss", "ndcg", "--model", str(tmp_path / "m")]
    command(*arguments, "--learner", "items", "--set", "model=ridge")
    command("predict", str(tmp_path / "m"), str(tmp_path / "d.csv"), "--out", str(tmp_path / "p"))
    wanted = pd.read_csv(tmp_path / "p")["rank"].to_numpy()
    found = load(tmp_path / "m").predict(pl.from_pandas(frame), groups=frame["query"])
    assert np.array_equal(found, wanted)


def test_batches_of_every_library_are_read_by_name():
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.where(X[:, 0] > 0, "b", "a")
    starts = (0, 30, 60)
    plain = [(X[at : at + 30], y[at : at + 30]) for at in starts]
    for solver in ("moments", "sgd"):
        ridge = cs.models.Ridge("linear", solver=solver)
        wanted = cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit_stream(plain)
        for kind, make in FRAMES.items():
            batches = [
                (
                    make(
                        {"u": A[:, 0], "v": A[:, 1]}
                        if A is not plain[1][0]
                        else {"v": A[:, 1], "u": A[:, 0]}
                    ),
                    series(kind, b.tolist()),
                )
                for A, b in plain
            ]
            model = cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit_stream(batches)
            found = model.predict_proba(make({"v": X[:, 1], "u": X[:, 0]}))
            assert np.array_equal(found, wanted.predict_proba(X))
        records = pl.DataFrame({"u": X[:, 0], "v": X[:, 1]}).to_dicts()
        model = cs.TaskLossClassifier("zero_one", ridge, random_state=0).fit_stream([(records, y)])
        assert model.columns_.names == ("u", "v")


def test_cost_matrices_of_every_library_are_read_by_name():
    X = np.linspace(0, 1, 60)[:, None]
    y = np.where(X[:, 0] + np.random.default_rng(0).normal(scale=0.3, size=60) > 0.5, "b", "a")
    table = {"true\\pred": ["b", "a"], "a": [9.0, 0.0], "b": [0.0, 1.0]}
    found = [
        cs.TaskLossClassifier(frame, cs.models.Ridge()).fit(X, y).expected_losses(X)
        for frame in (
            pd.DataFrame(table).set_index("true\\pred"),
            pl.DataFrame(table),
            pa.table(table),
        )
    ]
    for losses in found[1:]:
        assert np.array_equal(losses, found[0])


def test_steps_that_choose_columns_by_name_take_frames_of_numbers():
    table = {"u": MIXED["size"], "v": list(range(N))}
    steps = make_column_transformer((StandardScaler(), ["v"]), (StandardScaler(), ["u"]))
    model = cs.models.Probabilities(make_pipeline(steps, LogisticRegression()))
    found = []
    for make in FRAMES.values():
        fitted = cs.TaskLossClassifier(model=model).fit(make(table), LABELS)
        found.append(fitted.predict_proba(make({"v": table["v"], "u": table["u"]})))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_importance_and_reports_read_every_library():
    importance, columns = [], []
    for kind, make in FRAMES.items():
        frame, y = make(MIXED), series(kind, LABELS)
        model = fast().fit(frame, y)
        found = cs.metrics.permutation_importance(model, frame, y, random_state=0)
        assert list(found.columns) == list(MIXED)
        importance.append(found.increase)
        report = cs.learning_report(model, frame, y, learning_curve=False, bandwidths=False)
        columns.append([(entry.name, entry.treatment) for entry in report.columns])
    for increase in importance[1:]:
        np.testing.assert_array_equal(increase, importance[0])
    assert columns[1] == columns[2] == columns[0]
    assert dict(columns[0])["seen"] == "date"
    records = pl.DataFrame(MIXED).to_dicts()
    found = cs.metrics.permutation_importance(model, records, LABELS, random_state=0)
    np.testing.assert_array_equal(found.increase, importance[0])


def test_reports_say_how_the_model_read_a_column():
    frame = pd.DataFrame({"day": [day.strftime("%Y-%m-%d") for day in DAYS]})
    model = fast().fit(frame, LABELS)
    report = cs.learning_report(model, frame, LABELS, learning_curve=False, bandwidths=False)
    assert [(entry.name, entry.treatment) for entry in report.columns] == [("day", "date")]


@pytest.mark.parametrize("drop", [(), ("count",), ("count", "seen")])
def test_rankings_of_the_command_line_are_the_same_in_python(tmp_path, drop):
    """Dates and missing cells without a text column: the fit saw another array than frames give."""
    frame = (
        pd.DataFrame(MIXED)
        .drop(columns=["town", "old", *drop])
        .assign(
            query=np.arange(N) // 8,
            grade=[int(size > 0) + i % 2 for i, size in enumerate(MIXED["size"])],
        )
    )
    frame.to_csv(tmp_path / "d.csv", index=False)
    arguments = ["fit", str(tmp_path / "d.csv"), "--target", "grade", "--groups", "query"]
    arguments += ["--loss", "ndcg", "--model", str(tmp_path / "m"), "--learner", "items"]
    for learner in ("ridge", "trees"):
        command(*arguments, "--set", f"model={learner}")
        files = [str(tmp_path / "m"), str(tmp_path / "d.csv")]
        command("predict", *files, "--out", str(tmp_path / "p"))
        wanted = pd.read_csv(tmp_path / "p")["rank"].to_numpy()
        found = load(tmp_path / "m").predict(frame, groups=frame["query"])
        assert np.array_equal(found, wanted)


def test_missing_cells_of_one_query_change_no_other():
    frame, groups = pd.DataFrame(MIXED)[["size", "count"]], np.arange(N) // 8
    grades = (frame["size"] > 0).astype(int)
    for learner in ("ridge", "trees"):
        model = cs.StructuredPredictor("ndcg", cs.models.Items(learner), random_state=0)
        model.fit(frame, grades, groups=groups)
        scores = model.decision_function(frame, groups=groups)
        for query in range(N // 8):
            rows = groups == query  # some queries have missing cells, others have none
            alone = model.decision_function(frame[rows])
            np.testing.assert_allclose(alone, scores[rows], atol=1e-9)
    complete = frame[["size"]].assign(place=range(N))
    model = cs.StructuredPredictor("ndcg", cs.models.Items("ridge"), random_state=0)
    model.fit(complete, grades, groups=groups)
    with pytest.raises(ValueError, match="NaN"):  # no cell was missing in the fit
        model.predict(complete.assign(place=np.nan), groups=groups)
