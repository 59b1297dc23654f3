"""Every command's files are collected before it begins."""

from __future__ import annotations

import typing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from consistruct import calibration, cli, losses
from consistruct.cli.file_checks import READ, WRITTEN, FileCommand, check_files
from consistruct.report import calibration_report
from consistruct.report.calibration.output import calibration_tables


def test_every_option_that_takes_a_path_is_collected():
    named = {*READ, *WRITTEN, "folder"}
    for command in cli.app.registered_commands:
        if command.hidden:  # commands that have left the package read and write nothing
            continue
        assert command.cls is FileCommand, command.callback
        hints = typing.get_type_hints(command.callback)
        paths = {name for name, kind in hints.items() if kind in (Path, Path | None)}
        assert paths <= named, (command.callback, paths - named)


def test_all_tables_of_reports_are_known_beforehand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    curve = calibration.calibration_function(losses.ZeroOne(3))
    for name in list(calibration_tables(calibration_report(curve)))[1:]:
        with pytest.raises(ValueError, match="both name"):
            check_files("analyze", {"csv": Path("x.csv"), "html": Path(f"x.{name}.csv")})
    rows = [f"{i},{i * i % 7},{'xy'[i % 2]}" for i in range(12)]
    Path("d.csv").write_text("\n".join(["a,b,kind", *rows]), encoding="utf-8")
    ridge = ["--learner", "ridge", "--set", "features=linear", "--set", "alpha=0.1"]
    for words in (
        ["fit", "d.csv", "--target", "kind", *ridge, "--model", "m"],
        ["report", "m", "d.csv", "--train", "d.csv", "--csv", "y.csv"],
    ):
        assert CliRunner().invoke(cli.app, words).exit_code == 0
    further = sorted(path.name for path in Path().glob("y.*.csv"))
    assert len(further) >= 2
    for name in further:
        with pytest.raises(ValueError, match="both name"):
            check_files("report", {"csv": Path("y.csv"), "html": Path(name)})
