"""The command line: exit codes and one clear line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from consistruct import __version__, cli
from consistruct.cli import showcase
from consistruct.losses import read_cost_csv


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo prints in a terminal of 80 columns, and its folder."""
    folder = tmp_path_factory.mktemp("demo") / "report"
    result = CliRunner().invoke(
        cli.app, ["demo", "--folder", str(folder)], env={"COLUMNS": "80", "TERM": "dumb"}
    )
    assert result.exit_code == 0, result.output
    return result.output, folder


def test_demo_analyzes_learns_and_draws(demo):
    output, folder = demo
    assert "2^1000" in output  # labels of Hamming over 1000 bits
    assert "certificate" in output
    rows = re.findall(r"│ (.+?) +│ +([0-9.]+) ", output)
    means = {name.strip(): float(mean) for name, mean in rows if "." in mean}
    assert means["consistruct, weighted average of models"] < means["logistic, argmax"]
    # honest baselines: each of them with decisions by cost
    for name in ("logistic", "forest", "boosting"):
        assert f"{name}, Bayes decisions" in means
    pictures = sorted(folder.glob("*.png"))
    assert len(pictures) == 2
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    pages = sorted(folder.glob("*.html"))
    assert [page.name for page in pages] == ["calibration.html", "learning.html"]
    for page in pages:
        assert str(page) in output.replace("\n", "")
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_no_cell_of_the_demo_is_cut_at_80_columns(demo):
    output, _ = demo
    tables = [line for line in output.splitlines() if set("│┃┏┡└") & set(line)]
    assert len(tables) > 15
    assert all(len(line) <= 80 for line in tables)
    assert not [line for line in tables if "…" in line]


def test_the_demo_learns_from_words_dates_and_gaps(demo):
    output, _ = demo
    assert "dropped: every row has a different value" in output
    assert "category of 2 values" in output
    assert re.search(r"admitted +date", output)
    assert re.search(r"number, \d+ missing", output)
    assert "models that were compared on out-of-fold" in " ".join(output.split())


def test_the_demo_matrix_is_the_one_that_ships():
    shipped = Path(__file__).parents[2] / "examples" / "kdd99_costs.csv"
    assert read_cost_csv(shipped) == showcase.INTRUSION
    assert read_cost_csv(shipped.with_name("triage_costs.csv")) == showcase.TRIAGE


def test_version_and_module():
    result = CliRunner().invoke(cli.app, ["--version"])
    assert (result.exit_code, result.output.strip()) == (0, __version__)


def test_bad_usage_exits_with_2():
    assert CliRunner().invoke(cli.app, ["no-such-command"]).exit_code == 2


def test_importing_the_package_is_quiet_and_leaves_optional_parts_out():
    heavy = ("pandas", "torch", "plotly", "matplotlib")
    code = f"import sys, consistruct; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
