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


def shipped() -> list[str]:
    """What hatchling packs: files under version control less the table of exclusions."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a clone: the distribution is made from files under version control")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    excluded = project["tool"]["hatch"]["build"]["targets"]["sdist"]["exclude"]
    omitted = tuple(name.strip("/") for name in excluded)
    return [name for name in listed if name and not name.startswith(omitted)]


def test_the_source_distribution_has_files_of_the_allow_list_only():
    wrong = {
        name
        for name in shipped()
        if not (name in FILES or (name.partition("/")[0] in FOLDERS and "/" in name))
    }
    assert not wrong, f"not on the list: {sorted(wrong)[:5]}"


def test_logs_of_other_packages_are_ignored():
    assert "catboost_info/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert not any("catboost_info" in name for name in shipped())
