"""A Parquet file takes no more memory than its budget, which the message states."""

import pytest

from consistruct._budgets import FILES
from consistruct.distributed import Folder
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def repeated(path, word, n):
    """A column with one word in n rows: a dictionary of one entry, and a run of zeros."""
    places = pyarrow.array([0] * n, type=pyarrow.int32())
    words = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array([word]))
    table = pyarrow.table({"a": words, "y": pyarrow.array([0] * n, type=pyarrow.int8())})
    plain = table.schema.set(0, pyarrow.field("a", pyarrow.string()))
    parquet.write_table(table, path, store_schema=False)
    assert parquet.read_schema(path).field("a").type == plain.field("a").type


@pytest.mark.parametrize("role", ["feature", "target"])
def test_words_that_inflate_beyond_the_budget_are_refused(tmp_path, role):
    path = tmp_path / "d.parquet"
    repeated(path, "x" * 20_000, 200_000)  # 4 GB of text
    assert path.stat().st_size < 40_000
    target = "y" if role == "feature" else "a"
    with pytest.raises(DataFileError, match=f"more than {FILES.inflated(1)} bytes of memory"):
        read_data(path, target=target, columns={"a": "category"} if role == "feature" else None)


def test_lists_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({"a": [[1], [2]], "y": [0, 1]}), path)
    with pytest.raises(DataFileError, match="column 'a' has type list"):
        read_data(path, target="y")


def test_words_within_the_budget_are_read(tmp_path):
    path = tmp_path / "d.parquet"
    repeated(path, "x" * 20, 100)
    found = read_data(path, target="y", columns={"a": "category"}).X
    assert set(found.ravel().tolist()) == {"x" * 20}


@pytest.mark.parametrize("role", ["feature", "target"])
def test_folders_have_the_same_budget(tmp_path, role):
    repeated(tmp_path / "d.parquet", "x" * 100_000, 30_000)  # 3 GB of text in one batch
    folder = Folder(tmp_path, target=["y" if role == "feature" else "a"], hash_bits=10)
    with pytest.raises(DataFileError, match=f"more than {FILES.inflated(1)} bytes of memory"):
        list(folder)


def test_folders_read_words_within_the_budget(tmp_path):
    repeated(tmp_path / "d.parquet", "x" * 20, 100)
    (batch,) = Folder(tmp_path, target=["a"])
    assert set(batch.y.tolist()) == {"x" * 20}
