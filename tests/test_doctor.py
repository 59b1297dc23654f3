"""`consistruct doctor` tells what is installed, and what is not sound."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from consistruct import _compile, cli, doctor
from consistruct._compile import cache_folder, compiled


@pytest.fixture
def quick(monkeypatch):
    """The self-test without the parts that take seconds."""
    monkeypatch.setattr(doctor, "TRIALS", {"losses and decoders": doctor._losses})


def run(*arguments):
    return CliRunner().invoke(cli.app, ["doctor", *arguments])


def test_a_sound_installation(monkeypatch):
    result = run()
    assert result.exit_code == 0, result.output
    for words in ("numpy", "processors", "compile cache", "explorer", "all is well"):
        assert words in result.output
    assert result.output.count("passed") == len(doctor.TRIALS)


def test_json_has_the_same(quick):
    found = json.loads(run("--json").output)
    assert found["command"] == "doctor"
    assert found["problems"] == []
    assert found["self_test"]["losses and decoders"]["error"] is None
    assert found["extras"]["io"]["missing"] == []


def test_what_is_missing_or_too_old_is_reported(quick, monkeypatch):
    texts = ["numpy>=2.0", "scipy>=99", "no-such>=1", "no-such-either>=1; extra == 'io'"]
    monkeypatch.setattr(doctor, "requires", lambda _: texts)
    result = run()
    assert result.exit_code == 1
    assert "scipy is 1." in result.output
    assert "but scipy>=99 is needed" in result.output
    assert "no-such is missing, but no-such>=1 is needed" in result.output
    assert "missing no-such-either: pip install 'consistruct[io]'" in result.output


def test_a_source_tree_that_is_not_installed_is_reported(quick, monkeypatch):
    def absent(_):
        raise doctor.PackageNotFoundError

    monkeypatch.setattr(doctor, "requires", absent)
    result = run()
    assert result.exit_code == 1
    assert "consistruct is not installed" in result.output


def test_a_broken_part_is_reported(monkeypatch):
    def broken():
        raise OSError("libblas is gone")

    monkeypatch.setattr(doctor, "TRIALS", {"learning": broken})
    result = run()
    assert result.exit_code == 1
    assert "self-test, learning: OSError: libblas is gone" in result.output
    assert "FAILED" in result.output


def test_nested_markers_are_read():
    found = doctor.REQUIREMENT.match('dask[dataframe,distributed]>=2025.1; extra == "dask"')
    assert found is not None
    assert (found[1], found[2].strip(), found[3]) == ("dask", ">=2025.1", "dask")
    assert doctor._meets("2.0", ">=2.0.0")
    assert doctor._meets("3", "")


def test_loops_run_where_no_cache_can_be_written():
    """Numba refuses to cache code without a file; the loop is compiled all the same."""
    names: dict = {}
    exec("def twice(x):\n    return 2 * x\n", names)
    later = compiled(names["twice"])
    assert later(4) == 8
    assert cache_folder(later) is None
    assert cache_folder(_square) is not None
    assert cache_folder(_compile._njit(names["twice"])) is None


@compiled
def _square(x):
    return x * x
