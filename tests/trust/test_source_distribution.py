"""Files of the source distribution: those of an allow-list, nothing that a tool has left behind."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"benchmarks", "docs", "examples", "paper", "src", "tests", "tools"}
FILES = {
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
}


# of the files in these folders; what benchmarks and tools leave behind has others
PAGES = {".css", ".html", ".js", ".md", ".png", ".rst", ".svg", ".txt"}
SUFFIXES = PAGES | {".csv", ".json", ".py", ".typed"}


def shipped() -> list[str]:
    """What hatchling packs: files that are not ignored, new ones too, less the exclusions."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a clone: the distribution is made from files that git does not ignore")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    excluded = project["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"]
    omitted = tuple(name.strip("/") for name in excluded)
    return [name for name in listed if name and not name.startswith(omitted)]


def unknown(names: list[str]) -> list[str]:
    """Those that are not on the list."""
    wrong = []
    for name in names:
        folder, slash, _ = name.partition("/")
        known = folder in FOLDERS and Path(name).suffix in SUFFIXES if slash else name in FILES
        wrong += [] if known else [name]
    return wrong


def test_the_source_distribution_has_files_of_the_allow_list_only():
    assert not unknown(shipped())


def test_what_tools_leave_behind_is_not_on_the_list():
    left = ["catboost_info/learn_error.tsv", "benchmarks/catboost_info/events.out", "core", "x.py"]
    assert unknown([*left, "src/consistruct/py.typed", "README.md", "src/x.so"]) == [
        *left,
        "src/x.so",
    ]


def test_logs_of_other_packages_are_ignored():
    assert "catboost_info/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert not any("catboost_info" in name for name in shipped())
