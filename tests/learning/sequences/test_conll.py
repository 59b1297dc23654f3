"""Column files and templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from consistruct.learning import StructuredPredictor
from consistruct.learning.files.conll import (
    CHUNKING_TEMPLATE,
    FeatureTemplate,
    read_columns,
    write_columns,
)
from consistruct.metrics import token_error

TEXT = """-DOCSTART- -X- O

The DT B-NP
cat NN I-NP
sleeps\tVBZ\tB-VP


It PRP B-NP
"""


@pytest.fixture
def column_file(tmp_path: Path) -> Path:
    path = tmp_path / "chunks.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_sequences_and_columns(column_file: Path) -> None:
    file = read_columns(column_file)
    assert file.sequences == [
        [("The", "DT", "B-NP"), ("cat", "NN", "I-NP"), ("sleeps", "VBZ", "B-VP")],
        [("It", "PRP", "B-NP")],
    ]
    assert file.column(-1) == [["B-NP", "I-NP", "B-VP"], ["B-NP"]]
    assert file.column(1) == [["DT", "NN", "VBZ"], ["PRP"]]
    with pytest.raises(ValueError, match="column 3 does not exist: the file has 3 columns"):
        file.column(3)


def test_written_files_are_read_back(tmp_path: Path, column_file: Path) -> None:
    file = read_columns(column_file)
    tags = [["X", "Y", "Z"], ["X"]]
    path = tmp_path / "out.txt"
    write_columns(path, file.sequences, tags)
    again = read_columns(path)
    assert again.column(-1) == tags
    assert [[token[:3] for token in row] for row in again.sequences] == file.sequences


def test_bad_files_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("The DT B-NP\ncat NN\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2: 2 columns, the lines before have 3"):
        read_columns(path)
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(ValueError, match="contains no tokens"):
        read_columns(path)


def test_templates_read_cells_around_the_token() -> None:
    template = FeatureTemplate.parse(
        """
        # a comment line
        U05:%x[-1,0]/%x[0,0]   # and one behind
        %x[+1,1]
        a:b:<%x[ -2 , 1 ]>
        """
    )
    tokens = [("a", "X"), ("b", "Y"), ("c", "Z")]
    assert template.n_columns == 2
    assert template.features(tokens) == [
        ["U05=_B-1/a", "U4=Y", "a=b:<_B-2>"],
        ["U05=a/b", "U4=Z", "a=b:<_B-1>"],
        ["U05=b/c", "U4=_B+1", "a=b:<X>"],
    ]
    assert template.features([]) == []


def test_bad_templates_are_named() -> None:
    with pytest.raises(ValueError, match=r"template line 2, 'w:x', has no reference"):
        FeatureTemplate.parse("w:%x[0,0]\nw:x")
    with pytest.raises(ValueError, match="the template contains no feature"):
        FeatureTemplate.parse("# nothing")
    with pytest.raises(ValueError, match=r"reads column 2, but tokens have 2 columns"):
        FeatureTemplate.parse("%x[0,2]").features([("a", "b")])


def test_the_chunking_template_trains_a_model(column_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "template.txt"
    path.write_text(CHUNKING_TEMPLATE, encoding="utf-8")
    template = FeatureTemplate.read(path)
    assert len(template.lines) == 19
    file = read_columns(column_file)
    X = [template.features(sequence) for sequence in file.sequences]
    model = StructuredPredictor("hamming", random_state=0).fit(X, file.column(-1))
    assert token_error(file.column(-1), model.predict(X)) == 0.0
