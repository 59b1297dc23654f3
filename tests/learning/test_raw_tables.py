"""Tables as people have them: strings, dates, missing cells, whatever the format."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data
from consistruct.learning.files.data import Layout
from consistruct.learning.selection.columns import Columns

TABLE = pd.DataFrame(
    {
        "age": [31.0, np.nan, 45.5, 20.0],
        "city": ["Rome", None, "Oslo", "Rome"],
        "since": ["2020-01-01", "2021-06-30", None, "1970-01-02"],
        "member": [True, False, True, True],
        "zip": ["00100", "75001", "00150", "00100"],
        "y": ["yes", "no", "no", "yes"],
    }
)
DAYS = [18262.0, 18808.0, np.nan, 1.0]  # counted by hand: 50 years with 12 leap days, …
EXTRA = {"columns": {"zip": "category"}}


def written(tmp_path, kind, table=TABLE):
    path = tmp_path / f"d.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "parquet":
        typed = table.assign(since=pd.to_datetime(table["since"]))
        typed.to_parquet(path)
    else:
        lines = ["@relation r", "@attribute age real", "@attribute city {Rome,Oslo}"]
        lines += ["@attribute since date 'yyyy-MM-dd'", "@attribute member {True,False}"]
        lines += ["@attribute zip string", "@attribute y {yes,no}", "@data"]
        rows = table.astype(object).where(table.notna(), "?").astype(str)
        path.write_text("\n".join([*lines, *[",".join(row) for row in rows.to_numpy()]]) + "\n")
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "arff"])
def test_columns_are_what_their_cells_say(tmp_path, kind):
    data = read_data(written(tmp_path, kind), target="y", **EXTRA)
    assert data.y is not None
    assert data.y.tolist() == ["yes", "no", "no", "yes"]
    assert data.feature_names == ("age", "city", "since", "member", "zip")
    X = data.X
    np.testing.assert_array_equal(X[:, 0].astype(float), [31.0, np.nan, 45.5, 20.0])
    assert X[:, 1].tolist() == ["Rome", None, "Oslo", "Rome"]
    np.testing.assert_array_equal(X[:, 2].astype(float), DAYS)
    assert X[:, 4].tolist() == ["00100", "75001", "00150", "00100"]
    kinds = dict(zip(data.feature_names, data.layout.kinds, strict=True))
    assert kinds["age"] == "number"
    assert kinds["city"] == kinds["zip"] == "category"
    assert kinds["since"] == "date"
    assert kinds["member"] == ("number" if kind == "parquet" else "category")
    assert {note.name: note.missing for note in data.columns}["city"] == 1


def test_a_digit_string_stays_a_category_for_models(tmp_path):
    data = read_data(written(tmp_path, "csv"), target="y", **EXTRA)
    assert 4 in Columns.of(data.X).categories


@pytest.mark.parametrize("kind", ["csv", "parquet", "arff"])
def test_another_file_is_read_alike(tmp_path, kind):
    layout = read_data(written(tmp_path, kind), target="y", **EXTRA).layout
    layout = Layout.from_dict(layout.as_dict())  # as a model file keeps it
    later = TABLE.iloc[:2].assign(city=["Berlin", "Rome"], age=[1.0, 2.0])
    if kind == "csv":  # another order, no true label, a column more
        later = later[["zip", "member", "since", "city", "age"]].assign(more=1)
    data = read_data(written(tmp_path, kind, later), like=layout, with_target=False)
    assert data.X[:, 1].tolist() == ["Berlin", "Rome"]
    np.testing.assert_array_equal(data.X[:, 0].astype(float), [1.0, 2.0])
    assert data.X[:, 4].tolist() == ["00100", "75001"]


def test_what_tells_nothing_is_dropped_and_stated(tmp_path):
    n = 30
    table = pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(n)],
            "empty": [None] * n,
            "same": ["x"] * n,
            "number": range(n),
            "y": [0, 1] * (n // 2),
        }
    )
    with pytest.warns(UserWarning, match="column 'id' is dropped: every row has a different"):
        data = read_data(written(tmp_path, "csv", table), target="y")
    assert data.feature_names == ("number",)
    assert data.X.dtype == np.float64
    stated = {note.name: str(note) for note in data.columns}
    assert stated["id"] == "dropped: every row has a different value"
    assert stated["empty"] == "dropped: it is empty"
    assert stated["same"] == "dropped: it has a single value"
    assert stated["number"] == "number"
    kept = read_data(tmp_path / "d.csv", target="y", columns={"id": "category"})
    assert kept.feature_names == ("id", "number")


def test_missing_numbers_alone_stay_numbers(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,b,y\n1,NA,0\n,2.5,1\n3,?,0\n4,null,1\n")
    data = read_data(path, target="y")
    np.testing.assert_array_equal(data.X, [[1, np.nan], [np.nan, 2.5], [3, np.nan], [4, np.nan]])
    assert [str(note) for note in data.columns] == ["number, 1 missing", "number, 3 missing"]


def test_missing_cells_of_a_later_file(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    layout = read_data(path, target="y").layout
    assert layout.kinds is None  # complete numbers
    path.write_text("a\n\n7\n?\n")
    np.testing.assert_array_equal(
        read_data(path, like=layout, with_target=False).X, [[7.0], [np.nan]]
    )


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1"] * 30 + ["1,5"], r"line 32: column 'a' must contain a number, got '1,5'"),
        (["1_000", "2"], "line 2: column 'a' must contain a number, got '1_000'"),
        (["inf", "2"], "line 2: column 'a' must contain a number, got 'inf'"),
        (["1e999", "2"], "line 2: column 'a' must contain a number, got '1e999'"),
    ],
)
def test_slips_in_numbers_do_not_become_categories(tmp_path, cells, message):
    table = pd.DataFrame({"a": cells, "b": range(len(cells)), "y": 0})
    with pytest.raises(DataFileError, match=message):
        read_data(written(tmp_path, "csv", table), target="y")
    data = read_data(tmp_path / "d.csv", target="y", columns={"a": "category"})
    assert cells[-1] in data.X[:, 0].tolist()


def test_numbers_beyond_all_floats_are_no_numbers(tmp_path):
    table = pd.DataFrame({"a": ["1", "1e999"], "b": range(2), "y": 0})
    message = "line 3: column 'a' must contain a number, got '1e999'; numbers must be finite"
    with pytest.raises(DataFileError, match=message):
        read_data(written(tmp_path, "csv", table), target="y", columns={"a": "number"})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"nothing": "number"}, "there is no feature column 'nothing' for --columns"),
        ({"city": "number"}, "line 2: column 'city' must contain a number, got 'Rome'"),
        ({"city": "date"}, "line 2: column 'city' must contain a date, got 'Rome'"),
        ({"city": "word"}, "'city' cannot be a 'word'; kinds are number, category, date, drop"),
        (
            dict.fromkeys(["age", "city", "since", "member", "zip"], "drop"),
            "no feature column is left",
        ),
    ],
)
def test_bad_requests(tmp_path, columns, message):
    with pytest.raises(DataFileError, match=message):
        read_data(written(tmp_path, "csv"), target="y", columns=columns)


def test_formats_without_such_columns(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.zeros((2, 1)), y=[0, 1])
    with pytest.raises(DataFileError, match="tables with named columns"):
        read_data(tmp_path / "d.npz", columns={"a": "drop"})


def test_impossible_dates_are_words(tmp_path):
    table = pd.DataFrame({"a": ["2021-02-30", "2021-02-28"] * 3, "y": [0, 1] * 3})
    assert read_data(written(tmp_path, "csv", table), target="y").layout.kinds == ("category",)


def test_parquet_dates_of_days_and_moments(tmp_path):
    table = pd.DataFrame(
        {
            "day": [datetime.date(1970, 1, 2), None, datetime.date(1970, 1, 4)],
            "moment": pd.to_datetime(["1970-01-01 12:00", "1970-01-02 00:00", None]),
            "y": [0, 1, 0],
        }
    )
    table.to_parquet(tmp_path / "d.parquet")
    X = read_data(tmp_path / "d.parquet", target="y").X
    np.testing.assert_array_equal(X, [[1.0, 0.5], [np.nan, 1.0], [3.0, np.nan]])


def test_the_default_learns_from_them(tmp_path):
    rng = np.random.default_rng(0)
    n = 120
    city = rng.choice(["Rome", "Oslo", "Paris"], n)
    table = pd.DataFrame(
        {"city": city, "age": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n))}
    )
    table["y"] = np.where(city == "Oslo", "no", "yes")
    data = read_data(written(tmp_path, "csv", table), target="y")
    model = cs.TaskLossClassifier(random_state=0, time_limit=0).fit(data.X, data.y)
    assert model.score(data.X, data.y) == 0.0
    table.loc[0, "city"] = "a town that was not seen in training"
    new = read_data(written(tmp_path, "csv", table), like=data.layout)
    assert len(model.predict(new.X)) == n
