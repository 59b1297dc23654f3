"""The command line: exit codes and one clear line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from consistruct import __version__, cli
from consistruct.cli import showcase
from consistruct.losses import read_cost_csv


def test_demo_analyses_learns_and_draws(tmp_path):
    folder = tmp_path / "report"
    result = CliRunner().invoke(cli.app, ["demo", "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    assert "2000" in result.output  # k_eff of Hamming(1000)
    assert "certificate" in result.output
    rows = re.findall(r"│ (.+?) +│ +([0-9.]+) ", result.output)
    means = {name.strip(): float(mean) for name, mean in rows if "." in mean}
    assert means["consistruct, loss=Ordinal(10)"] < means["logistic, argmax"]
    pictures = sorted(folder.glob("*.png"))
    assert len(pictures) == 2
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    pages = sorted(folder.glob("*.html"))
    assert [page.name for page in pages] == ["calibration.html", "learning.html"]
    for page in pages:
        assert str(page) in result.output.replace("\n", "")
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_demo_matrix_is_the_one_that_ships():
    shipped = Path(__file__).parents[2] / "examples" / "kdd99_costs.csv"
    assert read_cost_csv(shipped) == showcase.INTRUSION


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
