"""Tags of the original CoNLL-2003 (IOB1): I-X begins a chunk, B-X one behind another of type X."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from consistruct import cli
from consistruct.learning import StructuredPredictor, models

# words decide their tags, apart from the second name in a row: Rome and Oslo are two places
SENTENCES = [
    ("U.N. chief Kofi Annan met Paris officials .", "I-ORG O I-PER I-PER O I-LOC O O"),
    ("Rome Oslo and Paris Lima .", "I-LOC B-LOC O I-LOC B-LOC O"),
    ("Kofi Annan left Rome .", "I-PER I-PER O I-LOC O"),
    ("U.N. Paris officials met .", "I-ORG I-LOC O O O"),
    ("officials left .", "O O O"),
]
WORDS = [words.split() for words, _ in SENTENCES]
TAGS = [tags.split() for _, tags in SENTENCES]
X = [[[f"w={word}"] for word in words] for words in WORDS]


def chain(scheme="bio"):
    model = models.Chain(tag_scheme=scheme, max_epochs=60, alpha=1e-4)
    return StructuredPredictor("hamming", model, random_state=0)


def legal(tags):
    """Whether B-X stands only behind B-X or I-X, as the readme of the shared task states."""
    before = "O"
    for tag in tags:
        if tag.startswith("B-") and before[2:] != tag[2:]:
            return False
        before = tag
    return True


def test_they_are_learned_and_predicted_as_they_are():
    found = chain().fit(X, TAGS).predict(X)
    assert [list(tags) for tags in found] == TAGS
    # sequences that were never seen keep the rules as well
    rng = np.random.default_rng(0)
    words = sorted({word for sentence in WORDS for word in sentence})
    unseen = [[[f"w={word}"] for word in rng.choice(words, 12)] for _ in range(40)]
    assert all(legal(tags) for tags in chain().fit(X, TAGS).predict(unseen))
    neither = [*TAGS[:-1], ["B-LOC", "O", "O"]]
    with pytest.raises(ValueError, match="the forbidden transition 'O' -> 'I-PER'"):
        chain().fit(X, neither)


def test_column_files_with_them_are_fitted_and_evaluated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["-DOCSTART- -X- O O", ""]
    for words, tags in zip(WORDS, TAGS, strict=True):
        lines += [f"{word} NN I-NP {tag}" for word, tag in zip(words, tags, strict=True)]
        lines.append("")
    (tmp_path / "eng.conll").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "t").write_text("w:%x[0,0]\n", encoding="utf-8")
    words = ["fit", "eng.conll", "--template", "t", "--tag-scheme", "bio", "--model", "m"]
    settings = ["--set", "alpha=1e-4", "--epochs", "60"]
    done = CliRunner().invoke(cli.app, [*words, *settings])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(cli.app, ["evaluate", "m", "eng.conll", "--json"])
    assert done.exit_code == 0, done.output
    assert '"chunk_f1": 1.0' in done.stdout
