"""Figures, read back from the CSV files that the command writes."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from paper.__main__ import app
from paper.figures import CAPTIONS, FIGURES, figure_data

# the study takes half a minute; its picture is drawn from a small one in test_simulation.py
DRAWN = [name for name in FIGURES if name != "who_is_hard"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("figures") / "new"
    only = [argument for name in DRAWN for argument in ("--only", name)]
    result = CliRunner().invoke(app, ["figures", "--folder", str(target), *only])
    assert result.exit_code == 0, result.output
    return target


def columns(folder, name):
    with (folder / f"{name}.csv").open(encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    table = np.array([[float(field) if field else np.nan for field in row] for row in rows])
    return dict(zip(header, table.T, strict=True))


def test_every_figure_has_a_picture_of_each_kind(folder):
    for name in DRAWN:
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")
    assert len(list(folder.iterdir())) == 3 * len(DRAWN)
    assert set(CAPTIONS) == set(FIGURES)  # the page of figures shows them all


def test_figure_1a_own_scores_grow_faster_and_full_scores_jump(folder):
    found = columns(folder, "figure_1a")
    eps, red, blue = found["eps"], found["full scores"], found["own scores"]
    assert (blue[eps > 0] > red[eps > 0]).all()
    np.testing.assert_allclose(blue, eps**2 / 48, rtol=1e-12)  # ε²/8T
    small = (eps > 0) & (eps <= 2 / 6)
    np.testing.assert_allclose(red[small], eps[small] ** 2 / (4 * 2**6), rtol=1e-9)  # ε²/4k
    steps = np.diff(red)
    assert steps.max() > 5 * np.median(steps)  # discontinuous


def test_figure_1b_blue_is_zero_to_a_fifth_and_crosses_red(folder):
    found = columns(folder, "figure_1b")
    eps, red, blue = found["eps"], found["full scores"], found["block scores"]
    assert (blue[eps <= 0.2] == 0).all()
    assert (blue[eps > 0.201] > 0).all()
    assert (red[eps > 0] > 0).all()
    above = blue[1:] > red[1:]
    assert not above[0]
    assert above[-1]
    assert np.count_nonzero(np.diff(above.astype(int))) == 1  # they cross once


def test_unconstrained_hamming_stays_between_the_two_theorems(folder):
    found = columns(folder, "hamming_unconstrained")
    assert "T = 1000" in found
    for name, values in found.items():
        if name != "eps":
            assert (values >= 1 - 1e-9).all()
            assert (values <= 2 + 1e-9).all()


def test_levels_end_at_zero_with_the_rank_of_the_loss(folder):
    found = columns(folder, "level_against_rank")
    for name, values in found.items():
        if name != "rank":
            seen = values[~np.isnan(values)]
            assert len(seen) >= 2
            assert seen[-1] == 0
            assert (seen[:-1] > 0).all()
    # level η/2 with the scores of the blocks, which are the leading singular vectors
    assert found["mixed, 4 blocks of 2, η = 0.4"][found["rank"] == 4] == pytest.approx(0.2)


def test_measured_learning_curves_stay_below_their_guarantees(folder):
    found = columns(folder, "learning_curves")
    bounds = [name for name in found if name.endswith(", bound")]
    assert len(bounds) == 16  # four losses, two risks, two kinds of constants
    for name in bounds:
        limit = found[name.replace(", bound", ", upper 95 % limit")]
        measured = found[name.replace(", bound", ", measured")]
        assert (measured <= limit).all()
        assert (limit <= found[name]).all()
        if "surrogate" in name:  # N^(−1/2)
            np.testing.assert_allclose(found[name] * np.sqrt(found["N"]), found[name][0] * 10**0.5)
    # what the paper's basis costs on the Hamming loss: the others learn, it does not
    last = {name: values[-1] for name, values in found.items() if ": task" in name}
    assert last["Hamming, 2^20 labels: task, paper, measured"] > 0.1
    assert last["Hamming, 2^20 labels: task, known optimum, measured"] < 0.001
    assert last["0-1, 64 labels: task, paper, measured"] < 0.001


def test_csv_holds_the_data_unrounded():
    figure = figure_data("figure_1b")
    last = figure.csv().splitlines()[-1].split(",")
    assert [float(field) for field in last] == [c[-1] for c in figure.columns.values()]


def test_unknown_figure():
    with pytest.raises(ValueError, match="unknown figure 'figure_2'; the figures are figure_1a"):
        figure_data("figure_2")
