"""The lists of files in docs/design/architecture.md are those that the flows enter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import LEVEL

ROOT = Path(__file__).resolve().parents[1]
WALK = ROOT / "tools" / "walk.py"
PAGE = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
# files that a flow may enter; the aims are 30 for the analysis and 22 for the classifier. Columns
# that an estimator keeps (frames, text columns, class order) added files: to be merged with others
LIMITS = {"analysis": 30, "classifier": 27, "sequences": 32, "rankings": 32}


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(WALK), *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def walks():
    """Flow to its files in order: of a process of its own, where nothing is cached."""
    done = run()
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if ": " in line:
            files = found.setdefault(line.partition(":")[0], [])
        elif line and not line.startswith(" "):
            files.append(line)
    return found


def listed():
    """Flow to the files that the page lists."""
    walks = re.findall(r"^### (\w+): (\d+) files\n.*?```text\n(.*?)\n```", PAGE, re.M | re.S)
    found = {name: files.splitlines() for name, _, files in walks}
    assert {name: len(files) for name, files in found.items()} == {
        name: int(count) for name, count, _ in walks
    }
    return found


def test_the_page_lists_what_is_entered(walks):
    assert listed() == walks, "run: python tools/walk.py --write"


def test_walks_do_not_grow(walks):
    assert {name: len(files) for name, files in walks.items() if len(files) > LIMITS[name]} == {}
    assert set(walks) == set(LIMITS)


def test_learning_and_analysis_do_not_meet(walks):
    assert not [file for file in walks["analysis"] if file.startswith("learning/")]
    for name in ("classifier", "sequences", "rankings"):
        assert not [file for file in walks[name] if file.startswith("calibration/")]


def test_tables_sequences_and_rankings_share_the_estimator(walks):
    shared = set(walks["classifier"]) & set(walks["sequences"]) & set(walks["rankings"])
    assert {
        "learning/estimator.py",
        "learning/encoding/kinds.py",
        "learning/models/__init__.py",
    } <= shared


def test_the_picture_names_every_folder():
    picture = PAGE.partition("```text")[2].partition("```")[0]
    folders = {name for name in LEVEL if not name.startswith("_") and name != "torch"}
    assert {name for name in folders if name not in picture} == set()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(["nonsense"], "no flow nonsense"), (["--write", "analysis"], "--write takes all flows")],
)
def test_wrong_arguments_are_one_line(arguments, reason):
    done = run(*arguments)
    assert done.returncode == 2
    assert reason in done.stderr
