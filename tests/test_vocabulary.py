"""Identifiers and file names use the words of the field; docs/glossary.md says which."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("src", "paper", "tests", "tools", "benchmarks", "examples")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))

# words that only this project used, wherever they stand in a name: what to write instead
COINED = {
    "law": "distribution",
    "left_out": "out_of_fold, or held_out for a single split",
    "leftout": "out_of_fold, or held_out for a single split",
    "judged_rows": "out_of_fold",
    "told": "reported",
    "said": "states",
    "settled": "projected, converged or chosen",
    "truths": "y_true, true_labels or codes",
    "learnt": "learned; fit_sizes where a loss takes sizes from y",
    "dear": "expensive",
}
# names of the first version, as a whole
RENAMED = {
    "refuse_idle": "check_unused_params",
    "wrong_parts": "hamming_shape",
    "mistakes_cost_one": "is_zero_one",
    "no_answer": "abstain_index",
    "safer": "a policy of guarantees/risk",
}
FIELD_WORDS = {"power_law", "told_apart"}  # a law of learning curves; plain English


def words(name):
    """A name in lower case with underscores between its words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def coined(name):
    """The coined word in a name and what to write instead; None if there is none."""
    if name in RENAMED:
        return name, RENAMED[name]
    text = words(name)
    for known in FIELD_WORDS:
        text = text.replace(known, "")
    for word, instead in COINED.items():
        if re.search(rf"(?<![a-z]){word}(?![a-z])", text):
            return word, instead
    return None


def names(source):
    """All identifiers of a source: what is defined, used, imported, passed by name."""
    for node in ast.walk(ast.parse(source)):
        for field in ("id", "attr", "arg", "name", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def test_identifiers_and_file_names_have_no_coined_words():
    seen = {}
    for path in FILES:
        for name in {path.stem, *names(path.read_text(encoding="utf-8"))}:
            if coined(name):
                seen[f"{path.relative_to(ROOT)}: {name}"] = "write {1} instead of {0}".format(
                    *coined(name)
                )
    assert len(FILES) > 500
    assert not seen, "docs/glossary.md lists the words of the field"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("LawSurrogate", "law"),
        ("worst_law", "law"),
        ("PowerLaw", None),
        ("flaw", None),
        ("leftOut", "left_out"),
        ("LeftOut", "left_out"),
        ("left_out_rows", "left_out"),
        ("Truths", "truths"),
        ("told", "told"),
        ("no_answer", "no_answer"),
        ("test_no_answer_is_a_label", None),
        ("deadline", None),
    ],
)
def test_the_check_sees_coined_words(name, word):
    assert (coined(name) or (None,))[0] == word
