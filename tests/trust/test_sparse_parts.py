"""Compressed rows in npz data are checked before a compiled loop reads them."""

import numpy as np
import pytest

from consistruct._validation import check_csr
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data

GOOD = {
    "X_data": np.array([1.0, 2.0]),
    "X_indices": np.array([0, 2]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 3]),
    "y": np.array([0, 1]),
}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"X_data": np.zeros(0), "X_indices": np.zeros(0, int), "X_indptr": [0, 1000, 0]},
            "indptr must not decrease, got 1000 before 0 in row 1",
        ),
        ({"X_indptr": [0, 1000, 2]}, "indptr must not decrease"),
        ({"X_indptr": [1, 1, 2]}, "indptr must start at 0, got 1"),
        ({"X_indptr": [0, 1, 1]}, "indptr must end with 2"),
        ({"X_indptr": [0, 1, 1000]}, "indptr must end with 2"),
        ({"X_indptr": [0, 2]}, "indptr must have 3 numbers, got 2"),
        ({"X_indices": [0, 3]}, r"indices must be in 0\.\.2, got 3"),
        ({"X_indices": [-1, 2]}, r"indices must be in 0\.\.2, got -1"),
        ({"X_indices": [0]}, "2 entries in data, but 1 in indices"),
    ],
)
def test_index_arrays_of_npz_data_are_checked(tmp_path, parts, message):
    np.savez(tmp_path / "d.npz", **{**GOOD, **{name: np.asarray(v) for name, v in parts.items()}})
    with pytest.raises(DataFileError, match=f"CSR parts do not fit together .*{message}"):
        read_data(tmp_path / "d.npz")


def test_good_compressed_rows_are_read(tmp_path):
    np.savez(tmp_path / "d.npz", **GOOD)
    assert read_data(tmp_path / "d.npz").X.toarray().tolist() == [[1, 0, 0], [0, 0, 2]]


def test_extreme_index_arrays_do_not_wrap_around():
    huge = np.array([0, 2**64 - 1, 0], dtype=np.uint64)
    with pytest.raises(ValueError, match="must not decrease"):
        check_csr(np.zeros(0), np.zeros(0, int), huge, (2, 3))
    with pytest.raises(ValueError, match="whole numbers, got dtype float64"):
        check_csr([1.0], [0.5], [0, 1], (1, 3))


def sparse_file(folder, kind, width, n_classes=2):
    """Sixty rows that use seven columns and name one far away."""
    if kind == "svm":
        lines = [f"{i % n_classes} {i % 7 + 1}:1 {width}:1" for i in range(60)]
        (folder / "d.svm").write_text("\n".join(lines) + "\n")
    else:
        np.savez(
            folder / "d.npz",
            X_data=np.ones(60),
            X_indices=np.arange(60) % 7,
            X_indptr=np.arange(61),
            X_shape=np.array([60, width]),
            y=np.arange(60) % n_classes,
        )
    return folder / f"d.{kind}"


@pytest.mark.parametrize("kind", ["svm", "npz"])
@pytest.mark.parametrize(("width", "n_classes"), [(2**27 - 1, 2), (2**24, 30)])
def test_a_width_whose_fit_exceeds_the_memory_budget_is_refused(tmp_path, kind, width, n_classes):
    """A few hundred bytes named 134,217,727 columns, and a ridge fit took over 6.5 GB."""
    needed = 32 * width * n_classes
    match = (
        f"a fit on {width} features and {n_classes} classes would take {needed} bytes, but at most "
        f"{2 * 2**30} are allowed for a file of this size; number the features"
    )
    path = sparse_file(tmp_path, kind, width, n_classes)
    with pytest.raises(DataFileError, match=match) as caught:
        read_data(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["svm", "npz"])
@pytest.mark.parametrize(("width", "n_classes"), [(2**25, 2), (2**20, 20)])
def test_millions_of_hashed_features_are_read(tmp_path, kind, width, n_classes):
    assert read_data(sparse_file(tmp_path, kind, width, n_classes)).X.shape == (60, width)
