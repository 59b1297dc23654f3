"""Decimal commas, thousands, dates and words among numbers: read, or stated in one line."""

import warnings

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.distributed import Folder
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data
from consistruct.learning.encoding.frames import InputColumns


def written(folder, kind="tsv", **columns):
    n = len(next(iter(columns.values())))
    table = pd.DataFrame({**columns, "y": [i % 2 for i in range(n)]})
    path = folder / f"d.{kind}"
    if kind == "parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


def column(path, **options):
    """The first feature, and what was stated while it was read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read_data(path, target="y", **options)
    return data, data.X[:, 0].tolist(), [str(warning.message) for warning in caught]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3,7", "12,25", "4"], [3.7, 12.25, 4.0]),
        (["1.862,5", "3,25", "1.000,0"], [1862.5, 3.25, 1000.0]),
        (["1,862", "12,345,678", "7"], [1862.0, 12345678.0, 7.0]),
        (["1,862.50", "3.25", "7"], [1862.5, 3.25, 7.0]),
        (["1.862.000", "2.000.500", "3.000.000"], [1862000.0, 2000500.0, 3000000.0]),
        (["1 862", "12 345 678", "7"], [1862.0, 12345678.0, 7.0]),
        (["1'862", "12'345'678.5", "7"], [1862.0, 12345678.5, 7.0]),
        (["1 862,5", "3,25", "-1 000,0"], [1862.5, 3.25, -1000.0]),
        (["1\u202f862", "12\u00a0345", "7"], [1862.0, 12345.0, 7.0]),
    ],
)
def test_numbers_with_one_reading_are_read(tmp_path, kind, cells, values):
    data, found, stated = column(written(tmp_path, kind, a=cells))
    assert (found, stated, data.X.dtype) == (values, [], np.float64)
    again = read_data(tmp_path / f"d.{kind}", like=data.layout, with_target=False)
    assert again.X[:, 0].tolist() == values


@pytest.mark.parametrize(
    ("cells", "months"),
    [
        (["07/12/2023", "25/12/2023"], ["2023-12-07", "2023-12-25"]),
        (["07/12/2023", "12/25/2023"], ["2023-07-12", "2023-12-25"]),
        (["7.12.2023", "25.12.2023"], ["2023-12-07", "2023-12-25"]),
        (["2023/12/07", "2023/12/25"], ["2023-12-07", "2023-12-25"]),
        (["2023-12-07", "2023-12-25"], ["2023-12-07", "2023-12-25"]),
        (["07 Dec 2023", "1 jan 2024"], ["2023-12-07", "2024-01-01"]),
        (["07 December 2023", "1 January 2024"], ["2023-12-07", "2024-01-01"]),
        (["Dec 7, 2023", "May 25, 2023"], ["2023-12-07", "2023-05-25"]),
        (["2023-01", "2023-12", "1999-04"], ["2023-01-01", "2023-12-01", "1999-04-01"]),
    ],
)
def test_dates_with_one_reading_are_read(tmp_path, cells, months):
    data, found, stated = column(written(tmp_path, a=cells))
    assert found == np.array(months, dtype="datetime64[D]").astype(int).tolist()
    assert (stated, data.layout.kinds) == ([], ("date",))


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["07/12/2023 6:00", "25/12/2023 18:30"], "%d/%m/%Y %H:%M"),
        (["07.12.2023 06:00:00", "25.12.2023 18:30:00"], "%d.%m.%Y %H:%M:%S"),
        (["2023/12/07 06:00", "2023/12/25 18:30"], "%Y/%m/%d %H:%M"),
    ],
)
def test_local_dates_with_a_clock_time_are_read_in_files_and_frames(tmp_path, cells, form):
    _, found, stated = column(written(tmp_path, a=cells))
    first = float(np.datetime64("2023-12-07").astype(int))
    assert (found, stated) == ([first + 0.25, first + 18 + 18.5 / 24], [])
    columns, values = InputColumns.fit(pd.DataFrame({"a": cells}))
    assert columns.columns[0].date_format == form
    assert values[:, 0].tolist() == found
    with pytest.warns(UserWarning, match=r"looks like dates with the day or the month first"):
        InputColumns.fit(pd.DataFrame({"a": ["07/12/2023 6:00", "01/02/2023 18:30"]}))


def test_thousands_or_decimals_are_stated_and_read_with_an_option(tmp_path):
    path = written(tmp_path, a=["1,862", "2,500", "7,125"])
    _, found, (stated,) = column(path)
    assert found == ["1,862", "2,500", "7,125"]
    assert "column 'a' looks like numbers" in stated
    assert "--decimal . or --decimal ," in stated
    assert column(path, decimal=",")[1:] == ([1.862, 2.5, 7.125], [])
    assert column(path, decimal=".")[1:] == ([1862.0, 2500.0, 7125.0], [])


def test_day_or_month_first_is_stated_and_read_with_an_option(tmp_path):
    path = written(tmp_path, a=["07/12/2023", "01/02/2023"])
    _, found, (stated,) = column(path)
    assert found == ["07/12/2023", "01/02/2023"]
    assert "column 'a' looks like dates" in stated
    assert "--date-format '%d/%m/%Y'" in stated
    days = np.array(["2023-12-07", "2023-02-01"], dtype="datetime64[D]").astype(int).tolist()
    assert column(path, date_format="%d/%m/%Y")[1:] == (days, [])


@pytest.mark.parametrize(
    ("cells", "looks", "form", "first"),
    [
        (["25/12/23", "07/11/23"], "dates with two-digit years", "%d/%m/%y", "2023-12-25"),
        (["07-12-23", "01-02-23"], "dates with two-digit years", "%m-%d-%y", "2023-07-12"),
        (["2010-11", "2011-12"], "months or seasons", "%Y-%m", "2010-11-01"),
    ],
)
def test_short_years_and_seasons_are_stated_and_read_with_an_option(
    tmp_path, cells, looks, form, first
):
    path = written(tmp_path, a=cells)
    _, found, (stated,) = column(path)
    assert found == cells
    assert f"column 'a' looks like {looks} ('{cells[0]}')" in stated
    assert "--date-format '" in stated
    assert f"'{form}'" in stated
    assert column(path, date_format=form)[1][0] == np.datetime64(first).astype(int)
    with pytest.warns(UserWarning, match=f"column 'a' looks like {looks}.*convert it to dates"):
        InputColumns.fit(pd.DataFrame({"a": cells}))


@pytest.mark.parametrize("cells", [["020 123", "030 456"], ["12 34", "5 678"], ["1 862'000", "7"]])
def test_spaces_that_are_not_between_thousands_stay_words(tmp_path, cells):
    assert column(written(tmp_path, a=cells))[1] == cells


def test_frames_read_thousands_and_months_as_files_do():
    frame = pd.DataFrame({"a": ["1 862", "7"], "b": ["2023-01", "2023-02"]})
    columns, values = InputColumns.fit(frame)
    assert columns.kinds == ("number", "date")
    january = np.datetime64("2023-01-01").astype(int)
    assert values.tolist() == [[1862.0, january], [7.0, january + 31]]
    assert columns.read(frame).tolist() == values.tolist()


def test_words_among_numbers_are_stated_and_read_as_missing(tmp_path):
    cells = [str(i % 7) for i in range(20)] + ["unknown"] * 6
    path = written(tmp_path, a=cells)
    data, _, (stated,) = column(path)
    assert data.layout.kinds == ("category",)
    assert "looks like numbers with 'unknown'" in stated
    assert "--missing unknown" in stated
    data, found, stated = column(path, missing=["unknown"])
    assert (data.layout.kinds, stated) == (("number",), [])
    assert found[0] == 0.0
    assert np.isnan(found[-6:]).all()


@pytest.mark.parametrize("distinct", [50, 48])
def test_nearly_as_many_values_as_rows_are_stated(tmp_path, distinct):
    names = [f"name {min(i, distinct - 1)}" for i in range(50)]
    _, _, (stated,) = column(written(tmp_path, name=names, b=np.arange(50.0)))
    word = "dropped" if distinct == 50 else "48 different values in 50 rows"
    assert word in stated
    assert "'name'" in stated
    assert "--columns name=" in stated


def test_later_files_are_read_as_the_first_was(tmp_path):
    first = written(tmp_path, a=["1,25", "3,7"], b=["07/12/2023", "25/12/2023"], c=["unknown", "1"])
    layout = read_data(first, target="y", missing=["unknown"]).layout
    second = tmp_path / "e.tsv"
    # alone these cells would be thousands, or dates with the month first
    second.write_text("a\tb\tc\n1,862\t01/02/2023\tunknown\n")
    found = read_data(second, like=layout, with_target=False).X[0]
    day = np.datetime64("2023-02-01").astype(int)
    assert found[:2].tolist() == [1.862, day]
    assert np.isnan(found[2])
    second.write_text("a\tb\tc\n1,862\t2023-02-01\t1\n")
    with pytest.raises(DataFileError, match="line 2: column 'b' must contain a date like %d/%m/%Y"):
        read_data(second, like=layout, with_target=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, "--decimal must be . or ,"),
        ({"date_format": "%Q"}, "--date-format must be a format such as"),
    ],
)
def test_bad_notations_get_one_line(tmp_path, options, message):
    with pytest.raises(DataFileError, match=message):
        read_data(written(tmp_path, a=["1", "2"]), target="y", **options)


def test_notations_are_refused_where_they_have_no_effect(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:2\n0 1:3\n")
    with pytest.raises(DataFileError, match="--missing applies only to csv"):
        read_data(tmp_path / "d.svm", missing=["unknown"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_integers_beyond_2_53_stay_exact(tmp_path, kind):
    cells = [2**53 + 1, 2**53 + 2, 2**53 + 1, 5]
    data, found, (stated,) = column(written(tmp_path, kind, id=cells, b=[1.0, 2.0, 3.0, 4.0]))
    assert found == [str(cell) for cell in cells]
    assert "beyond 2^53" in stated
    assert data.layout.kinds == ("category", "number")
    with pytest.raises(DataFileError, match="'id'"):
        read_data(tmp_path / f"d.{kind}", target="y", columns={"id": "number"})
    # powers of two are floats, whatever their size
    exact = written(tmp_path, kind, id=[2**60, 2**61], b=[1.0, 2.0])
    assert column(exact)[1:] == ([2.0**60, 2.0**61], [])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folders_refuse_integers_beyond_2_53(tmp_path, kind):
    written(tmp_path, kind, id=[2**53 + 1, 2**53 + 2, 5], b=[1.0, 2.0, 3.0])
    with pytest.raises(DataFileError, match=r"column 'id' contains .*--ignore id"):
        list(Folder(tmp_path, target=["y"]))
    (batch,) = Folder(tmp_path, target=["y"], ignore=["id"])
    assert batch.X.tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize("cell", ["3,7", "07/12/2023", "unknown"])
def test_folders_name_the_column_and_the_cell_that_is_no_number(tmp_path, cell):
    written(tmp_path, "csv", b=[1.0, 2.0, 3.0], a=["1", cell, "3"])
    with pytest.raises(DataFileError, match=rf"column 'a' must contain a number, got '{cell}'"):
        list(Folder(tmp_path, target=["y"]))


def test_dates_with_offsets_are_read_in_universal_time(tmp_path):
    cells = ["2023-01-02T10:00:00+02:00", "2023-01-02 03:00-0500", "2023-01-02T08:00:00Z"]
    data, _, stated = column(written(tmp_path, b=[1.0, 2.0, 3.0], a=cells), columns={"a": "date"})
    found = data.X[:, 1].tolist()
    eight = float(np.datetime64("2023-01-02").astype(int)) + 8 / 24
    assert (found, stated) == ([eight] * 3, [])


@pytest.mark.parametrize(
    ("cells", "looks", "remedy"),
    [
        (["unknown" if i % 5 == 0 else f"2023-01-{1 + i:02d}" for i in range(30)], "dates", True),
        (["unknown" if i % 5 == 0 else f"{1 + i:02d}/01/2023" for i in range(30)], "dates", True),
        (["unknown" if i % 5 < 3 else str(i) for i in range(30)], "numbers", True),
        ([("wxyz"[i // 3 % 4] if i % 3 == 0 else str(i)) for i in range(30)], "numbers", False),
        (["2023-02-30", *(f"2023-01-{1 + i % 9:02d}" for i in range(30))], "dates", False),
    ],
    ids=["dates", "local dates", "mostly unknown", "many words", "no such day"],
)
def test_words_among_dates_and_numbers_are_stated(tmp_path, cells, looks, remedy):
    path = written(tmp_path, a=cells)
    data, _, (stated,) = column(path)
    assert data.layout.kinds == ("category",)
    assert f"column 'a' looks like {looks}" in stated
    assert ("--missing unknown reads it" in stated) == remedy
    with pytest.warns(UserWarning, match=f"column 'a' looks like {looks}"):
        InputColumns.fit(pd.DataFrame({"a": cells}))
    if remedy:
        found = read_data(path, target="y", missing=["unknown"]).layout.kinds
        assert found == (looks.removesuffix("s"),)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([f"name {i}" for i in range(50)], dtype="category"),
        pd.Series([f"name {i}" for i in range(50)]),
    ],
    ids=["category", "text"],
)
def test_categories_of_frames_with_nearly_as_many_values_as_rows_are_stated(values):
    with pytest.warns(
        UserWarning, match="column 'who' has 50 different values in 50 rows.*drop it"
    ):
        InputColumns.fit(pd.DataFrame({"who": values}))


@pytest.mark.parametrize("model", ["auto", "boosting"])
def test_words_that_all_differ_have_no_influence_in_files_and_frames(tmp_path, model):
    rng = np.random.default_rng(0)
    columns = {"who": [f"name {i}" for i in range(80)], "a": rng.normal(size=80)}
    columns["town"] = rng.choice(["Rome", "Oslo"], 80)
    frame, y = pd.DataFrame(columns), (rng.random(80) < 0.5).astype(int)

    def decided(X, later):
        fitted = cs.TaskLossClassifier("zero-one", model, random_state=0).fit(X, y)
        return fitted.expected_losses(later)

    with pytest.warns(UserWarning, match="column 'who' has 80 different .*take nothing from it"):
        kept = decided(frame, frame.assign(who="name 3"))
    without = decided(frame.drop(columns="who"), frame.drop(columns="who"))
    assert np.array_equal(kept, without)
    frame.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    with pytest.warns(UserWarning, match="column 'who' is dropped: every row has a different"):
        data = read_data(tmp_path / "d.csv", target="y")
    assert np.array_equal(decided(data.X, data.X), without)
    tokens = InputColumns.of_array(frame.to_numpy(dtype=object))
    assert tokens.as_numbers(frame.to_numpy(dtype=object)).shape == (80, 3)  # a and two towns
