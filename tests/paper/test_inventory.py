"""Every label, theorem and displayed formula of the paper has an entry, or a reason for none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from paper.audit import ENTRIES, NOT_CLAIMS

ROOT = Path(__file__).resolve().parents[2]
PAPER = Path(os.environ.get("CONSISTRUCT_PAPER", ROOT.parent / "shared" / "paper.tex"))
# What `paper_items` finds in the source; a copy, so that the paper itself need not be there.
ITEMS = (Path(__file__).parent / "paper_items.txt").read_text(encoding="utf-8").split()

ENVIRONMENTS = "theorem|reptheorem|lemma|proposition|definition|assumption|figure"
TOKEN = re.compile(
    r"\\begin\{(?P<display>equation\*?|align\*?)\}(?P<body>.*?)\\end\{(?P=display)\}"
    r"|(?<!\\)\\\[(?![-\d])(?P<bracket>.*?)\\\]"
    r"|\$\$(?P<dollar>.*?)\$\$"
    r"|\\label\{(?P<label>[^}]*)\}"
    r"|\\begin\{(?P<environment>" + ENVIRONMENTS + r")\}",
    re.DOTALL,
)


def paper_items(text):
    """Labels in their order; a displayed formula without one is `last label#number`.

    Environments must be followed by a label, so that a theorem cannot be missed.
    """
    text = text[text.index(r"\begin{document}") :]
    text = re.sub(r"(?<!\\)%.*", "", text)
    items: list[str] = []
    count: dict[str, int] = {}
    last, waiting = "", None
    for match in TOKEN.finditer(text):
        if match["environment"]:
            assert waiting is None, f"a {waiting} without a label"
            waiting = match["environment"]
            continue
        labels = [match["label"]] if match["label"] else []
        if not labels:
            labels = re.findall(r"\\label\{([^}]*)\}", match[0])
        if labels:
            waiting = None
            items += labels
            last = labels[-1]
        else:
            count[last] = count.get(last, 0) + 1
            items.append(f"{last}#{count[last]}")
    return items


def test_every_item_is_covered_or_excused():
    covered = {label for entry in ENTRIES.values() for label in entry.covers}
    missing = [item for item in ITEMS if item not in covered and item not in NOT_CLAIMS]
    assert not missing
    assert not covered & set(NOT_CLAIMS)


def test_entries_name_only_what_is_there():
    unknown = {
        f"{entry.name}: {label}"
        for entry in ENTRIES.values()
        for label in entry.covers
        if label not in ITEMS
    }
    assert not unknown
    assert not set(NOT_CLAIMS) - set(ITEMS)


def test_what_is_not_checked_is_rare_and_states_why():
    unchecked = [entry for entry in ENTRIES.values() if entry.check is None]
    assert len(unchecked) <= 3
    assert all(entry.reason and entry.expected == "not checked" for entry in unchecked)


def test_the_parser_sees_labels_theorems_and_formulas():
    text = r"""\begin{document} \section{A} \label{sec:a}
    \begin{lemma} \label{th:b} \begin{equation*} x \end{equation*} \[ y \] \\[2mm] $$ z $$
    \begin{align} \label{eq:c} u \\ \label{eq:d} v \end{align} \end{lemma} % \label{no}
    """
    found = paper_items(text)
    assert found == ["sec:a", "th:b", "th:b#1", "th:b#2", "th:b#3", "eq:c", "eq:d"]
    with pytest.raises(AssertionError, match="without a label"):
        paper_items(r"\begin{document} \begin{lemma} x \begin{theorem} \label{th:c}")


@pytest.mark.skipif(
    not PAPER.exists(), reason="the source of the paper is not part of the repository"
)
def test_the_copied_list_is_that_of_the_paper():
    assert paper_items(PAPER.read_text(encoding="utf-8")) == ITEMS
