"""What the pages on tables and customers compute, on made-up rows; no data file is read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from benchmarks.business import Business, lowest_cost_threshold, parts_of, savings_of
from benchmarks.tabular.costs import Cell, figures, geometric_mean
from benchmarks.tabular.large import LargeRow, large_section
from benchmarks.tabular.page import hindsight_ratio, page, ratio_to, summarize, write_csv
from benchmarks.tabular.peers import RECIPE, bayes_decisions
from benchmarks.tabular.run import BAYES, MODELS, marked_categories
from benchmarks.tabular.tables import Split, Table, costs_of, proportional_costs, splits_of

from consistruct.metrics import savings

WHERE = ("here",) * len(MODELS)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [100, 60, 20])
    X = rng.normal(size=(180, 3))
    X[:, 2] = rng.integers(4, size=180)
    X[5, 2] = np.nan
    return Table("german", X, y, np.array([False, False, True]))


def test_every_row_is_tested_once(table):
    splits = splits_of(table, 5, held_out=False)
    assert sorted(np.concatenate([split.test for split in splits])) == list(range(180))
    for split in splits:
        assert not set(split.train) & set(split.test)


def test_held_out_rows_leave_the_first_test_part_alone(table):
    first = set(splits_of(table, 5, held_out=False)[0].test)
    again = splits_of(table, 5, held_out=True)
    assert len(again) == 5
    for split in again:
        assert not first & (set(split.train) | set(split.test))
        assert not set(split.train) & set(split.test)


def test_proportional_costs_are_uniform_up_to_their_bound():
    rows = np.array([100, 60, 20])
    drawn = np.stack([proportional_costs(rows, seed=seed) for seed in range(3000)])
    bound = 2000 * rows[:, None] / rows[None, :]  # predicting c (row) for true label t (column)
    off = ~np.eye(3, dtype=bool)
    assert (drawn[:, ~off] == 0).all()
    assert (drawn <= bound).all()
    np.testing.assert_allclose(drawn.mean(axis=0)[off], bound[off] / 2, rtol=0.05)


def test_published_and_rare_costs():
    y = np.repeat([0, 1], [70, 30])
    german = Table("german", np.zeros((100, 1)), y, np.array([False]))
    costs = costs_of(german, Split(0, np.arange(100), np.arange(0)))
    assert costs["published 5:1"].tolist() == [[0, 5], [1, 0]]  # "good" for a bad one costs 5
    assert costs["rare class 10:1"].tolist() == [[0, 10], [1, 0]]


def test_bayes_decisions_have_the_least_expected_cost():
    rng = np.random.default_rng(1)
    chance, costs = rng.dirichlet(np.ones(4), size=30), rng.uniform(size=(4, 4))
    for p, decision in zip(chance, bayes_decisions(chance, costs), strict=True):
        expected = [sum(p[t] * costs[c, t] for t in range(4)) for c in range(4)]
        assert expected[decision] == pytest.approx(min(expected))


def test_marked_categories_keep_gaps(table):
    frame = marked_categories(table)
    assert frame["x2"].isna().sum() == 1
    assert set(frame["x2"].dropna()) == {"c0", "c1", "c2", "c3"}


@pytest.fixture
def cells():
    rng = np.random.default_rng(2)
    losses = rng.uniform(1, 2, size=(400, len(MODELS)))
    losses[:, 0] = 0.5 * losses[:, MODELS.index(RECIPE)]
    spent = np.ones(len(MODELS))
    return [
        Cell("german", "proportional", losses, spent, spent, WHERE),
        Cell("german", "published 5:1", losses[::-1] * 3, spent, spent, WHERE),
        Cell("page_blocks", "proportional", losses[:300], spent, spent, WHERE),
    ]


def test_ratios_are_those_of_means(cells):
    found = figures(cells, rounds=200)
    ratio = ratio_to(found.means, RECIPE)
    np.testing.assert_allclose(ratio, 0.5)
    np.testing.assert_allclose(ratio_to(found.resampled, RECIPE), 0.5)  # paired: no spread at all
    column = [MODELS.index(name) for name in BAYES]
    best = [cell.losses.mean(axis=0)[column].min() for cell in cells]
    ours = [cell.losses[:, 0].mean() for cell in cells]
    np.testing.assert_allclose(hindsight_ratio(found.means), np.divide(ours, best))
    assert geometric_mean(np.array([1.0, 4.0])) == pytest.approx(2.0)


def test_resampled_means_have_the_standard_error_of_the_mean(cells):
    found = figures(cells, rounds=2000)
    expected = cells[0].losses.std(axis=0) / np.sqrt(400)
    np.testing.assert_allclose(found.resampled[:, 0].std(axis=0), expected, rtol=0.12)


def test_a_table_where_ours_is_worse_is_named(cells):
    worse = cells[2]
    worse.losses[:, 0] = 1.2 * worse.losses[:, MODELS.index(RECIPE)]
    summary = summarize(cells, figures(cells, rounds=200))
    assert summary.worse == ["page_blocks"]
    assert not summary.met
    assert "| no table | page_blocks | **no** |" in page(cells, [])


def test_the_page_states_where_models_were_measured(cells):
    assert "Machine: here. " in page(cells, [])
    away = ("here",) * (len(MODELS) - 1) + ("elsewhere",)
    moved = [dataclasses.replace(cell, machines=away[::-1]) for cell in cells]
    assert f"Machine: here; except for {MODELS[0]}: elsewhere. " in page(moved, [])


def test_many_rows_are_compared_by_cost_and_time():
    rows = [LargeRow("consistruct", 10.0, 1.0, 29.0), LargeRow("boosting", 9.0, 1.0, 10.0)]
    assert "2.90 times; met: yes" in large_section(rows)
    slow = [dataclasses.replace(rows[0], processor=31.0), rows[1]]
    expensive = [dataclasses.replace(rows[0], cost=13.0), rows[1]]
    assert "met: **no**" in large_section(slow)
    assert "met: **no**" in large_section(expensive)


def test_the_csv_file_has_a_line_per_cell_and_model(cells, tmp_path):
    write_csv(cells, tmp_path / "tabular.csv")
    lines = (tmp_path / "tabular.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 3 * len(MODELS)


# --- customers -----------------------------------------------------------------------------------


def test_the_lowest_cost_threshold_is_that_of_a_search():
    rng = np.random.default_rng(3)
    for _ in range(50):
        chance, y = rng.integers(6, size=20) / 5, rng.integers(2, size=20)
        costs = rng.uniform(size=(20, 2, 2))

        def total(threshold, chance=chance, y=y, costs=costs):
            return sum(costs[i, int(chance[i] >= threshold), y[i]] for i in range(20))

        least = min(total(t) for t in [*chance, np.inf])
        assert total(lowest_cost_threshold(chance, y, costs)) == pytest.approx(least)


def test_savings_of_the_page_are_those_of_the_metric():
    rng = np.random.default_rng(4)
    y, costs = rng.integers(2, size=50), rng.uniform(0.1, 1, size=(50, 2, 2))
    taken = rng.integers(2, size=50)
    real = costs[np.arange(50), :, y]
    means = np.append(real[np.arange(50), taken].mean(), real.mean(axis=0))
    assert savings_of(means)[0] == pytest.approx(savings(y, taken, costs, rows="pred"))


@pytest.mark.parametrize("quick", [False, True])
def test_held_out_customers_leave_the_first_test_part_alone(quick):
    y = np.tile([0, 1, 0], 40)
    data = Business("x", np.zeros((120, 1)), y, np.array([False]), np.zeros((120, 2, 2)))
    first = set(parts_of(data, quick=False, held_out=False)[0].test)
    for part in parts_of(data, quick=quick, held_out=not quick):
        assert not first & (set(part.train) | set(part.test))
        assert not set(part.train) & set(part.test)
