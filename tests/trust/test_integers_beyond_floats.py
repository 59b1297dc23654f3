"""Whole numbers beyond 2^53 become other numbers as floats: arrays of them are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

import consistruct as cs
from consistruct.exceptions import DataFileError
from consistruct.learning import read_data

LONG = 2**53 + 1
Y = np.array([0, 1, 0, 1])
COLUMN = np.array([[LONG], [LONG + 1], [5], [7]])


@pytest.mark.parametrize(
    "X",
    [
        COLUMN,
        COLUMN.astype(np.uint64),
        -COLUMN,
        COLUMN.astype(object),
        COLUMN.tolist(),
        sp.csr_array(COLUMN),
        np.ma.masked_equal(COLUMN, 5),
        np.array([[2**64 + 1], [1], [2], [3]], dtype=object),
        np.array([[10**400], [1], [2], [3]], dtype=object),
    ],
    ids=["int64", "uint64", "negative", "object", "list", "sparse", "masked", "2^64", "10^400"],
)
def test_arrays_of_integers_that_no_float_holds_are_refused_by_fit_and_predict(X):
    model = cs.TaskLossClassifier("zero-one", "ridge")
    with pytest.raises(ValueError, match="X contains a whole number that no float holds") as caught:
        model.fit(X, Y)
    assert "\n" not in str(caught.value)
    model.fit(np.arange(4.0)[:, None], Y)
    with pytest.raises(ValueError, match="pass a data frame, which keeps its column as a category"):
        model.predict(X)


def test_sequences_of_such_integers_are_refused():
    X = [COLUMN, COLUMN]
    with pytest.raises(ValueError, match="X contains a whole number that no float holds"):
        cs.StructuredPredictor("hamming").fit(X, [Y, Y])


def test_large_integers_that_floats_hold_are_taken():
    X = np.array([[2**60], [2**61], [-(2**53)], [2**53]])
    model = cs.TaskLossClassifier("zero-one", "ridge").fit(X, Y)
    assert model.predict(X).tolist() == model.predict(X.astype(float)).tolist()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_archives_with_such_integers_are_refused(tmp_path, kind):
    parts: dict[str, object] = {"X": COLUMN}
    if kind == "sparse":
        parts = {"X_data": COLUMN[:, 0], "X_indices": [0] * 4, "X_indptr": range(5)}
        parts["X_shape"] = [4, 1]
    np.savez(tmp_path / "d.npz", y=Y, **{name: np.asarray(part) for name, part in parts.items()})
    with pytest.raises(DataFileError, match=f"contains {LONG}, which no float holds exactly"):
        read_data(tmp_path / "d.npz")
