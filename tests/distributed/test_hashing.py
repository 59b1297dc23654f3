"""Hashed columns: places and signs, folders of words and numbers, command line, model files."""

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import consistruct as cs
from consistruct.cli import app
from consistruct.distributed import Folder, evaluate_folder, fit_folder
from consistruct.distributed.hashing import (
    hashed_numbers,
    hashed_places,
    hashed_rows,
    hashed_words,
)
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data
from consistruct.learning.models import Ridge

RNG = np.random.default_rng(0)
N = 900
SHOP = np.array(["north", "south", "east", "west"])[RNG.integers(4, size=N)]
ITEM = np.array([f"item {i}" for i in range(60)])[RNG.integers(60, size=N)]
PRICE = RNG.normal(size=N)
KIND = np.where((SHOP == "north") | (PRICE > 1.0), "yes", "no")
TABLE = pd.DataFrame({"shop": SHOP, "item": ITEM, "price": PRICE, "kind": KIND})


def key_of(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def splitmix(key):
    """The finalizer on Python's own integers."""
    key ^= key >> 30
    key = key * 0xBF58476D1CE4E5B9 % 2**64
    key ^= key >> 27
    key = key * 0x94D049BB133111EB % 2**64
    return key ^ key >> 31


def test_every_entry_is_where_the_hash_states():
    values = np.array([2.0, 0.0, np.nan])
    words, places = ["a", "b"], np.array([1, -1, 0])
    X = hashed_rows([hashed_numbers("x", values), hashed_words("w", words, places)], 3, 5)
    expected = np.zeros((3, 32))
    entries = [(0, key_of("x"), 2.0)]
    entries += [(0, splitmix(key_of("b") ^ key_of("w")), 1.0)]
    entries += [(2, splitmix(key_of("a") ^ key_of("w")), 1.0)]
    for row, key, value in entries:
        expected[row, key % 32] += -value if key >> 63 else value
    np.testing.assert_array_equal(X.toarray(), expected)


def test_inner_products_are_kept_on_average():
    """E⟨h(x), h(y)⟩ = ⟨x, y⟩ thanks to the signs, over many column numbers."""
    rows = sp.random_array((40, 4000), density=0.02, rng=np.random.default_rng(1), format="csr")
    hashed = hashed_places(rows, 10)
    gap = (hashed @ hashed.T).toarray() - (rows @ rows.T).toarray()
    scale = float(np.abs((rows @ rows.T).diagonal()).mean())
    assert abs(gap[~np.eye(40, dtype=bool)].mean()) < 0.02 * scale
    assert hashed.shape == (40, 1024)


def written(folder, suffix, table=TABLE, parts=3):
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
        part, file = table.iloc[rows], folder / f"{number}.{suffix}"
        if suffix == "parquet":
            part.to_parquet(file, index=False)
        else:
            part.to_csv(file, index=False)
    return folder


def estimator():
    return cs.TaskLossClassifier("zero_one", Ridge("linear", solver="sgd"), random_state=0)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_words_and_numbers_from_a_folder(tmp_path, suffix):
    folder = Folder(written(tmp_path / "data", suffix), target=["kind"], hash_bits=12)
    first = next(iter(folder))
    assert first.X.shape == (300, 4096)
    assert first.X.nnz <= 900
    model = fit_folder(estimator(), folder, passes=8)
    assert evaluate_folder(model, folder).mean_loss < 0.1  # always "no": 0.63
    assert folder.layout.kinds == ("category", "category", "number")


def test_the_same_rows_whatever_the_files(tmp_path):
    one = Folder(written(tmp_path / "a", "parquet", parts=1), target=["kind"], hash_bits=8)
    two = Folder(written(tmp_path / "b", "csv", parts=4), target=["kind"], hash_bits=8)
    X = sp.vstack([batch.X for batch in one]).toarray()
    np.testing.assert_allclose(sp.vstack([batch.X for batch in two]).toarray(), X, atol=1e-12)


def test_empty_cells_are_no_entries(tmp_path):
    holes = TABLE.assign(
        shop=TABLE["shop"].where(TABLE.index > 0), price=TABLE["price"].where(TABLE.index != 1)
    )
    folder = Folder(written(tmp_path / "d", "parquet", holes, 1), target=["kind"], hash_bits=16)
    X = next(iter(folder)).X
    assert [X[[row]].nnz for row in (0, 1, 2)] == [2, 2, 3]


def test_svmlight_needs_no_number_of_columns(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.svm").write_text("1 3:1 900000000:2\n0 7:1\n" * 5)
    with pytest.raises(DataFileError, match=r"--n-features.*--hash-bits"):
        Folder(tmp_path / "d")
    assert next(iter(Folder(tmp_path / "d", hash_bits=6))).X.shape == (10, 64)


def test_the_command_line_keeps_the_bits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "sales", "csv")
    run = CliRunner().invoke
    fit = ["fit", "sales", "--target", "kind", "--learner", "ridge", "--model", "m.safetensors"]
    settings = ["--set", "features=linear", "--set", "solver=sgd", "--passes", "8"]
    done = run(app, [*fit, *settings, "--hash-bits", "12"])
    assert done.exit_code == 0, done.output
    done = run(app, ["evaluate", "m.safetensors", "sales", "--json"])
    assert json.loads(done.stdout)["mean_loss"] < 0.1
    done = run(app, ["predict", "m.safetensors", "sales", "--out", "p.csv"])
    assert done.exit_code == 0, done.output
    assert set(pd.read_csv("p.csv").iloc[:, 0]) == {"yes", "no"}
    done = run(app, ["predict", "m.safetensors", "sales/0.csv"])
    assert done.exit_code == 2
    assert "hashed columns; put the file into a folder" in done.stderr
    done = run(app, [*fit, "--set", "features=linear", "--hash-bits", "12"])
    assert done.exit_code == 2
    assert "--set solver=sgd" in done.stderr


def test_refusals(tmp_path):
    folder = written(tmp_path / "d", "csv")
    with pytest.raises(ValueError, match="hash_bits must be between 1 and 30, got 31"):
        Folder(folder, target=["kind"], hash_bits=31)
    with pytest.raises(ValueError, match="omit n_features"):
        Folder(folder, target=["kind"], hash_bits=8, n_features=3)
    layout = Folder(folder, target=["kind"], hash_bits=8).layout
    with pytest.raises(DataFileError, match="put the file into a folder"):
        read_data(folder / "0.csv", like=layout)


def test_numbers_as_true_labels_of_csv_files_stay_numbers_with_sgd(tmp_path):
    """Each file alone does not say that its cells are numbers; all of them together do."""
    grades = TABLE[["price"]].assign(grade=np.clip(np.rint(PRICE), -1, 1).astype(int) + 1)
    folder = Folder(written(tmp_path / "d", "csv", grades), target=["grade"])
    model = cs.TaskLossClassifier("ordinal", Ridge("linear", solver="sgd"), random_state=0)
    fit_folder(model, folder, passes=5)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert evaluate_folder(model, folder).mean_loss < 0.35


def test_progress_of_several_passes(tmp_path):
    folder = Folder(written(tmp_path / "d", "csv"), target=["kind"], hash_bits=8)
    seen = []
    fit_folder(estimator(), folder, passes=2, progress=lambda *now: seen.append(now))
    assert seen[-1][0] == seen[-1][1] == 3 * folder.n_bytes  # the labels, then two passes
    assert [now[0] for now in seen] == sorted(now[0] for now in seen)
