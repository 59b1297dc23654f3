"""Columns of tables as users hold them: what they are taken for, and what models get of them."""

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.learning import load, save
from consistruct.learning.selection.columns import Columns

N = 60
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=N)
LABELS = (NUMBERS > 0).astype(int)

ODD = {
    "nullable integers": pd.array([None if i % 7 == 0 else i for i in range(N)], dtype="Int64"),
    "nullable booleans": pd.array(
        [None if i % 7 == 0 else i % 2 == 0 for i in range(N)], "boolean"
    ),
    "nullable words": pd.array([None if i % 7 == 0 else f"x{i % 2}" for i in range(N)], "string"),
    "numbers and words": [i if i % 2 else "none" for i in range(N)],
    "booleans and gaps": np.array([None if i % 7 == 0 else i % 2 == 0 for i in range(N)], object),
    "lengths of time": pd.to_timedelta(np.arange(N), unit="h"),
    "moments with a zone": pd.date_range("2020", periods=N, tz="Europe/Paris"),
    "nothing": np.full(N, np.nan),
    "nothing at all": np.full(N, None, dtype=object),
    "one value": np.where(np.arange(N) == 3, 1.0, np.nan),
}


def table(**columns):
    words = np.array(["a", "b"])[np.arange(N) % 2]
    return pd.DataFrame({"number": NUMBERS, "word": words, **columns})


@pytest.mark.parametrize("name", ODD)
def test_no_model_is_lost_to_an_odd_column(name, tmp_path):
    X = table(odd=ODD[name])
    model = cs.TaskLossClassifier(cv=2, random_state=0).fit(X, LABELS)
    assert [entry["name"] for entry in model.portfolio_ if "fail" in entry["status"]] == []
    assert model.score(X, LABELS) > -0.2
    later = X.assign(odd=X["odd"].where(np.arange(N) != 1))  # a gap where training had none
    assert model.predict(later).shape == (N,)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors").expected_losses(X)
    np.testing.assert_array_equal(again, model.expected_losses(X))


def test_a_row_of_its_own_is_read_as_among_others():
    X = table(odd=ODD["numbers and words"])
    model = cs.TaskLossClassifier(cv=2, random_state=0).fit(X, LABELS)
    alone = [model.expected_losses(X.iloc[[i]])[0] for i in range(4)]
    np.testing.assert_allclose(alone, model.expected_losses(X.iloc[:4]))


def test_numbers_with_an_empty_column_keep_boosting():
    X = np.column_stack([NUMBERS, np.full(N, np.nan)])
    model = cs.TaskLossClassifier(cv=2, random_state=0).fit(X, LABELS)
    assert not any("fail" in entry["status"] for entry in model.portfolio_)


def test_boosting_takes_categories_as_such_unless_they_have_many_values():
    ids = [f"number {i % 299}" for i in range(300)]  # were all different, no model would take them
    X = pd.DataFrame(
        {"id": ids, "odd": [1, "a"] * 150, "number": 1.0, "town": ["Ulm", "Bonn"] * 150}
    )
    columns = Columns.of(X)
    assert columns.many == ("id",)
    assert columns.coded() == [2, 3]  # behind the number and the id: the town, then mixed cells
    found = columns.for_trees().fit_transform(X)
    np.testing.assert_array_equal(found[:, 2], [1, 0] * 150)
    np.testing.assert_array_equal(found[:, 3], [0, 1] * 150)


def test_categories_without_an_order_cost_boosting_nothing():
    """Codes in the order of the alphabet need many cuts; sets of categories need one."""
    rng = np.random.default_rng(1)
    town = rng.integers(0, 26, 6000)
    y = (np.isin(town, [0, 3, 4, 9, 11, 15, 16, 20, 24]) ^ (rng.random(6000) < 0.1)).astype(int)
    X = pd.DataFrame({"town": np.array(list("abcdefghijklmnopqrstuvwxyz"))[town]})
    for label in "noise", "more noise":
        X[label] = rng.normal(size=6000)
    model = cs.TaskLossClassifier(random_state=0).fit(X, y)
    assert model.portfolio_[2]["name"] == "boosting"
    assert model.portfolio_[2]["task_loss"] < 0.115


def test_lengths_of_time_are_numbers_of_days():
    columns = Columns.of(table(odd=ODD["lengths of time"]))
    assert columns.dates == ("odd",)
    found = columns.for_trees().fit_transform(table(odd=ODD["lengths of time"]))
    np.testing.assert_allclose(found[:, -1], np.arange(N) / 24)


def test_moments_with_a_zone_are_days_of_universal_time():
    X = table(
        plain=pd.date_range("2020", periods=N), odd=pd.date_range("2020", periods=N, tz="UTC")
    )
    found = Columns.of(X).for_trees().fit_transform(X)
    np.testing.assert_allclose(found[:, -1], found[:, -2])


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, np.ones(2)])
def test_cells_that_hold_several_values_are_refused_by_name(cell):
    cells = np.empty(N, object)
    cells[:] = [cell] * N
    with pytest.raises(ValueError, match=r"column 'odd' contains .* split it into columns or drop"):
        Columns.of(table(odd=cells))
