"""Readers: equal data whatever the format, files read alike, and one line for every bad file."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from consistruct.exceptions import ConsistructError, DataFileError
from consistruct.learning.files.data import FORMATS, Layout, read_data
from consistruct.learning.files.data.base import numbers_or_names

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(7, 3)), 3)
X[RNG.random(X.shape) < 0.3] = 0.0
X[0] = [0.5, -1.0, 2.0]  # every column occurs, the first one too
NAMES = np.array(["ant", "bee", "cow", "ant", "bee", "bee", "cow"])
CLASSES = np.array([0, 1, 2, 0, 1, 1, 2])
LABELS = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1], [1, 1]])


def dense(values: Any) -> np.ndarray:
    return np.asarray(values.todense() if hasattr(values, "todense") else values)


def listed(values: Any) -> Any:
    return values.tolist()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def csv_text(columns: list[str], *parts: np.ndarray) -> str:
    rows = zip(*(part.reshape(len(part), -1).tolist() for part in parts), strict=True)
    body = "\n".join(",".join(str(cell) for part in row for cell in part) for row in rows)
    return ",".join(columns) + "\n" + body + "\n"


# --- the same data in every format ---------------------------------------------------------------


def as_csv(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    targets = ["kind"] if y.ndim == 1 else ["u", "v"]
    return write(folder / "d.csv", csv_text(["a", "b", "c", *targets], X, y)), {"target": targets}


def as_parquet(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    targets = ["kind"] if y.ndim == 1 else ["u", "v"]
    for position, name in enumerate(targets):
        frame[name] = y.reshape(len(y), -1)[:, position]
    frame.to_parquet(folder / "d.parquet")
    return folder / "d.parquet", {"target": targets}


def as_svmlight(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    path = folder / "d.svm"
    if y.ndim == 1:
        dump_svmlight_file(X, y, str(path), zero_based=False)
    else:  # several labels per line
        lines = [
            ",".join(str(j) for j in np.flatnonzero(labels))
            + " "
            + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row) if value)
            for row, labels in zip(X.tolist(), y, strict=True)
        ]
        write(path, "\n".join(lines) + "\n")
    return path, {}


def as_arff(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    head = "% made here\n@RELATION test\n\n" + "".join(
        f"@attribute {name} numeric\n" for name in "abc"
    )
    if y.ndim == 1:
        values = ",".join(dict.fromkeys(str(label) for label in y))
        head += f"@attribute kind {{{values}}}\n@data\n"
        options: dict[str, Any] = {"target": ["kind"]}
    else:
        head += "@attribute u {0,1}\n@attribute v {0,1}\n@data\n"
        options = {"labels": 2}
    return write(folder / "d.arff", head + csv_text([], X, y).lstrip("\n")), options


def as_sparse_arff(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    path, options = as_arff(folder, y)
    head, _, body = path.read_text().partition("@data\n")
    first = str(y.ravel()[0]) if y.ndim == 1 else "0"  # the first nominal value is left out
    lines = []
    for line in body.splitlines():
        cells = enumerate(line.split(","))
        kept = [
            f"{place} {cell}" for place, cell in cells if cell != (first if place >= 3 else "0.0")
        ]
        lines.append("{" + ", ".join(kept) + "}")
    return write(path, head + "@data\n" + "\n".join(lines) + "\n"), options


def as_npz(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    np.savez(folder / "d.npz", X=X, y=y)
    return folder / "d.npz", {}


def as_sparse_npz(folder: Path, y: np.ndarray) -> tuple[Path, dict[str, Any]]:
    rows = sp.csr_array(X)
    members: dict[str, Any] = {
        "X_train_data": rows.data,
        "X_train_indices": rows.indices.astype(np.uint16),
        "X_train_indptr": rows.indptr,
        "X_train_shape": np.array(rows.shape),
    }
    if y.ndim == 2:
        members |= {"Y_train_packed": np.packbits(y.astype(bool), axis=1)}
        members |= {"Y_train_ncol": np.array(y.shape[1])}
    else:
        members |= {"y_train": y}
    np.savez(folder / "d.npz", **members)
    return folder / "d.npz", {"part": "train"}


WRITERS = [as_csv, as_parquet, as_svmlight, as_arff, as_sparse_arff, as_npz, as_sparse_npz]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("y", [NAMES, CLASSES, LABELS], ids=["names", "classes", "labels"])
def test_same_data_in_every_format(writer, y, tmp_path):
    if writer is as_svmlight and y is NAMES:
        path, options = as_svmlight(tmp_path, CLASSES)
        lines = path.read_text().splitlines()
        renamed = [f"{name} {line.partition(' ')[2]}" for name, line in zip(y, lines, strict=True)]
        write(path, "\n".join(renamed))
    else:
        path, options = writer(tmp_path, y)
    data = read_data(path, **options)
    np.testing.assert_array_equal(dense(data.X), X)
    assert data.y is not None
    np.testing.assert_array_equal(data.y, y)
    assert data.y.dtype.kind == y.dtype.kind
    assert sp.issparse(data.X) == (writer in (as_svmlight, as_sparse_arff, as_sparse_npz))
    assert Layout.from_dict(data.layout.as_dict()) == data.layout
    again = read_data(path, like=data.layout, part=options.get("part"))
    np.testing.assert_array_equal(again.y, y)
    without = read_data(path, like=data.layout, with_target=False, part=options.get("part"))
    np.testing.assert_array_equal(dense(without.X), X)
    assert without.y is None


def test_every_format_is_tested():
    tested = {"csv", "parquet", "svmlight", "arff", "npz"}
    assert set(FORMATS) == tested | {"tsv"}  # tsv is below


def test_tsv_and_format_override(tmp_path):
    path = write(tmp_path / "table.txt", "a\tb\n1\tx\n2\ty\n")
    data = read_data(path, format="tsv", target="b")
    np.testing.assert_array_equal(data.X, [[1.0], [2.0]])
    assert listed(data.y) == ["x", "y"]


@given(
    st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
        min_size=1,
        max_size=5,
    ),
)
def test_csv_keeps_every_bit_of_a_float(tmp_path_factory, rows):
    values = np.array(rows)
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    y_true = np.zeros(len(values), dtype=int)
    write(path, csv_text(["a", "b", "y"], values, y_true))
    assert read_data(path, target="y").X.tobytes() == values.tobytes()


# --- reading a second file alike -----------------------------------------------------------------


def test_columns_are_found_by_name_in_any_order(tmp_path):
    train = write(tmp_path / "train.csv", "kind,a,b\nx,1,2\ny,3,4\n")
    layout = read_data(train, target="kind").layout
    test = write(tmp_path / "test.csv", "b,extra,a\n20,zzz,10\n")
    data = read_data(test, like=layout, with_target=False)
    np.testing.assert_array_equal(data.X, [[10.0, 20.0]])
    missing = write(tmp_path / "missing.csv", "b,kind\n20,x\n")
    with pytest.raises(DataFileError, match=r"column 'a', which the model was fitted on, is miss"):
        read_data(missing, like=layout)


def test_headerless_csv_by_position(tmp_path):
    train = write(tmp_path / "train.csv", "1,2,0\n3,4,1\n")
    data = read_data(train, target="-1")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert data.layout.target == ("2",)
    features = write(tmp_path / "features.csv", "5,6\n")
    np.testing.assert_array_equal(
        read_data(features, like=data.layout, with_target=False).X, [[5, 6]]
    )
    with pytest.raises(DataFileError, match="1 feature columns, but the model was fitted on 2"):
        read_data(write(tmp_path / "one.csv", "5\n"), like=data.layout, with_target=False)


def test_true_labels_keep_the_kind_of_the_training_file(tmp_path):
    train = write(tmp_path / "train.csv", "a,y\n1,1\n2,b\n")
    layout = read_data(train, target="y").layout
    only_numbers = write(tmp_path / "test.csv", "a,y\n1,1\n")
    assert listed(read_data(only_numbers, like=layout).y) == ["1"]
    numeric = read_data(only_numbers, target="y").layout
    with pytest.raises(
        DataFileError, match=r"train\.csv, line 3: .*numbers as true labels, got 'b'"
    ):
        read_data(train, like=numeric)


def test_svmlight_keeps_index_base_width_and_labels(tmp_path):
    train = write(tmp_path / "train.svm", "1,3 2:1.5 4:2\n 1:1 # no label\n3 4:1\n")
    data = read_data(train)
    np.testing.assert_array_equal(data.X.toarray(), [[0, 1.5, 0, 2], [1, 0, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(data.y, [[1, 1], [0, 0], [0, 1]])
    assert data.label_names == ("1", "3")
    test = write(tmp_path / "test.svm", "3 2:1\n")
    again = read_data(test, like=data.layout)
    np.testing.assert_array_equal(again.X.toarray(), [[0, 1, 0, 0]])
    np.testing.assert_array_equal(again.y, [[0, 1]])
    for text, fault in [
        ("3 5:1\n", "line 1: a feature beyond the 4"),
        ("3 0:1\n", "line 1: index 0, but the model was fitted on a file that counts from 1"),
        ("1 1:1\n7 1:1\n", "line 2: label '7' did not occur"),
    ]:
        with pytest.raises(DataFileError, match=fault):
            read_data(write(test, text), like=data.layout)


def test_svmlight_zero_based_and_qid(tmp_path):
    path = write(tmp_path / "d.svm", "2 qid:7 0:1 2:3\n0 qid:7 1:1\n1 qid:9 2:1\n")
    data = read_data(path)
    np.testing.assert_array_equal(data.X.toarray(), [[1, 0, 3], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(data.y, [2, 0, 1])
    np.testing.assert_array_equal(data.groups, [7, 7, 9])
    assert data.layout.zero_based is True


def test_groups_from_a_column_and_from_sizes(tmp_path):
    path = write(tmp_path / "d.csv", "q,a,y\nu,1,0\nu,2,1\nv,3,0\n")
    data = read_data(path, target="y", groups="q")
    assert listed(data.groups) == ["u", "u", "v"]
    assert data.feature_names == ("a",)
    np.savez(tmp_path / "d.npz", X_test=np.eye(3), y_test=[0, 1, 0], group_test=[2, 1])
    np.testing.assert_array_equal(read_data(tmp_path / "d.npz", part="test").groups, [0, 0, 1])


# --- ARFF in detail ------------------------------------------------------------------------------

HEAD = "@relation r\n@attribute l {0,1}\n@attribute 'the a' real\n@attribute b INTEGER\n@data\n"


def test_arff_labels_at_the_start_and_mulan_label_file(tmp_path):
    path = write(tmp_path / "d.arff", HEAD + "1,2.5,3\n0,1,2\n")
    data = read_data(path, labels=1, labels_at="start")
    np.testing.assert_array_equal(data.X, [[2.5, 3], [1, 2]])
    assert listed(data.y) == [1, 0]
    assert data.feature_names == ("the a", "b")
    xml = write(tmp_path / "d.xml", "<labels>\n<label name=\"the a\"></label><label name='l'/>\n")
    by_file = read_data(path, labels=xml)
    assert by_file.label_names == ("the a", "l")
    np.testing.assert_array_equal(by_file.y, [[2.5, 1], [1, 0]])


@pytest.mark.parametrize(("count", "expected"), [("1", [1, 0]), ("-1", [3, 2])])
def test_arff_label_count_of_meka(tmp_path, count, expected):
    text = HEAD.replace("@relation r", f"@relation 'r: -C {count}'") + "1,2.5,3\n0,1,2\n"
    assert listed(read_data(write(tmp_path / "d.arff", text)).y) == expected


def test_arff_quotes_and_sparse_defaults(tmp_path):
    text = (
        "@relation r\n@attribute flag {1,0}\n@attribute x numeric\n"
        "@attribute kind {'big, red','it\\'s',\"small\"}\n@data\n{1 2.5}\n{0 0, 2 'it\\'s'}\n{ }\n"
    )
    data = read_data(write(tmp_path / "d.arff", text), target="kind")
    # an attribute that is left out takes its first nominal value: flag 1, kind "big, red"
    np.testing.assert_array_equal(data.X.toarray(), [[1, 2.5], [0, 0], [1, 0]])
    assert listed(data.y) == ["big, red", "it's", "big, red"]


def test_arff_attribute_names_of_words(tmp_path):
    text = "@relation r\n@attribute don't numeric\n@attribute a,b real\n@attribute tag{0, 1}\n"
    data = read_data(write(tmp_path / "d.arff", text + "@data\n1,2,0\n3,4,1\n"), labels=1)
    assert data.feature_names == ("don't", "a,b")
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4]])
    assert listed(data.y) == [0, 1]


# --- bad files: one line each --------------------------------------------------------------------

BAD_TEXT = [
    ("d.csv", "", {"target": "y"}, "the file is empty"),
    ("d.csv", "a,y\n", {"target": "y"}, "no line of data below the header"),
    ("d.csv", "a,y\n1,0\n1\n", {"target": "y"}, "line 3: 1 cells, but the first line has 2"),
    (
        "d.csv",
        "a,y\n" + 10 * "1,0\n" + "x,1\n",
        {"target": "y"},
        "line 12: column 'a' must contain a",
    ),
    ("d.csv", "a,y\n,1\n", {"target": "y"}, "no feature column is left: all are empty"),
    ("d.csv", "a,y\n1,0\n1,\n", {"target": "y"}, "the target 'y' is missing in 1 line .line 3."),
    (
        "d.csv",
        "a,y\n1e999,1\n",
        {"target": "y"},
        "line 2: column 'a' must contain a number, got '1e9",
    ),
    ("d.csv", "a,a\n1,0\n", {"target": "a"}, "two columns are called 'a'"),
    ("d.csv", "a,b\n1,0\n", {"target": "y"}, "no column 'y' for --target; columns are 'a', 'b'"),
    ("d.csv", "a,b\n1,0\n", {}, "choose the column with the true label: --target NAME"),
    ("d.csv", "1,0\n", {"target": "y"}, "no header, so --target must be a column number 0..1"),
    ("d.csv", "y\n1\n", {"target": "y"}, "no feature column is left"),
    ("d.csv", 'a,y\n"1,0\n', {"target": "y"}, "line 2: not a CSV table"),
    ("d.svm", "\n# nothing\n", {}, "the file has no examples"),
    ("d.svm", "1 1:1\n1 2:x\n", {}, "line 2: expected index:value, got '2:x'"),
    ("d.svm", "1 1:1\n1 two\n", {}, "line 2: unexpected 'two'"),
    ("d.svm", "1 3:1 2:1\n", {}, "line 1: index 2 is not above the one before it"),
    ("d.svm", "1 -1:1\n", {}, "line 1: index -1 is negative"),
    ("d.svm", "1 qid:x 1:1\n", {}, "line 1: the query number must be an integer"),
    ("d.svm", "1 qid:1 1:1\n1 1:1\n", {}, "1 of 2 lines have a qid"),
    ("d.svm", "1\n2\n", {}, "no line has a feature"),
    ("d.svm", "1 1:nan\n", {}, "a stored value is nan"),
    ("d.arff", "@relation r\n@attribute a numeric\n", {"labels": 1}, "there is no @data section"),
    ("d.arff", "hello\n", {"labels": 1}, "line 1: expected @relation, @attribute or @data"),
    ("d.arff", "@attribute a relational\n", {"labels": 1}, "line 1: attribute 'a' has type 'rel"),
    ("d.arff", "@attribute\n", {"labels": 1}, "line 1: cannot read the attribute"),
    ("d.arff", "@data\n", {"labels": 1}, "line 1: @data before any @attribute"),
    ("d.arff", HEAD, {"target": "b"}, "there is no line below @data"),
    ("d.arff", HEAD + "0,1\n", {"target": "b"}, "line 6: 2 cells, but there are 3 attributes"),
    ("d.arff", HEAD + "0,x,1\n", {"target": "b"}, "line 6: column 'the a' must contain a number"),
    ("d.arff", HEAD + "2,1,1\n", {"target": "l"}, "line 6: label 'l' must be one of 0, 1, got '2'"),
    ("d.arff", HEAD + "{0 1\n", {"target": "l"}, "line 6: a sparse row must end with }"),
    ("d.arff", HEAD + "{7 1}\n", {"target": "l"}, "line 6: attribute index 7 is above 2"),
    ("d.arff", HEAD + "{1 1, 1 2}\n", {"target": "l"}, "line 6: attribute index 1 is given twice"),
    ("d.arff", HEAD + "{x}\n", {"target": "l"}, "line 6: expected 'index value'"),
    ("d.arff", HEAD + "0,1,1\n{1 1}\n", {"target": "l"}, "line 7: sparse .* and dense rows"),
    ("d.arff", HEAD + "0,1,1\n", {"labels": 3}, "number of labels must be in 1..2, got 3"),
    ("d.arff", HEAD + "0,1,1\n", {}, "choose the column with the true label"),
    ("d.xyz", "", {}, "the suffix '.xyz' is not known"),
    ("d.npz", "no archive", {}, "not an npz archive"),
    ("d.parquet", "no table", {"target": "y"}, "not a Parquet file"),
]


@pytest.mark.parametrize(("name", "text", "options", "fault"), BAD_TEXT)
def test_bad_files_get_one_line(tmp_path, name, text, options, fault):
    path = write(tmp_path / name, text)
    with pytest.raises(DataFileError) as caught:
        read_data(path, **options)
    message = str(caught.value)
    assert re.search(fault, message), message
    assert "\n" not in message
    assert name in message
    assert isinstance(caught.value, ConsistructError)


def test_binary_and_absent_files(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"a,y\n\xff\xfe,1\n")
    with pytest.raises(DataFileError, match="not a UTF-8 text file"):
        read_data(tmp_path / "d.csv", target="y")
    with pytest.raises(DataFileError, match="there is no file"):
        read_data(tmp_path / "absent.csv", target="y")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataFileError, match="is a folder"):
        read_data(tmp_path / "folder.csv", target="y")


@pytest.mark.parametrize(
    ("members", "options", "fault"),
    [
        ({"X": np.eye(2)}, {}, "there is no member y or Y; choose the true label with --target"),
        ({"y": [0]}, {}, "there is no member 'X'; members are y"),
        ({"X": np.eye(2), "y": [0]}, {}, "y must have 2 rows like X"),
        ({"X": np.array(["a"]), "y": [0]}, {}, "X must be a matrix of numbers"),
        ({"X": np.array([[np.nan]]), "y": [0]}, {}, "row 1: column 1 contains nan"),
        ({"X_train": np.eye(2), "y_train": [0, 1]}, {}, "has parts train; choose one with --part"),
        ({"X": np.eye(2), "y": [0, 1]}, {"part": "test"}, "it has no parts; leave --part out"),
        ({"X_data": [1.0], "X_indices": [5], "X_indptr": [0, 1], "X_shape": [1, 2], "y": [0]}, {},
         "the CSR parts do not fit together"),
        ({"X_data": [1.0], "y": [0]}, {}, "there is no member 'X_indices'"),
        ({"X": np.eye(2), "Y_packed": np.zeros((2, 1), dtype=np.uint8)}, {}, "needs Y_ncol"),
        ({"X": np.eye(2), "y": [0, 1], "group": [1]}, {}, "group sizes that sum to 2"),
    ],
)  # fmt: skip
def test_bad_archives(tmp_path, members, options, fault):
    np.savez(tmp_path / "d.npz", **members)
    with pytest.raises(DataFileError, match=fault):
        read_data(tmp_path / "d.npz", **options)


def test_npz_never_unpickles(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.array([[print]], dtype=object), y=[0], allow_pickle=True)
    with pytest.raises(DataFileError, match="which are not unpickled"):
        read_data(tmp_path / "d.npz")


def test_damaged_archive(tmp_path):
    path, _ = as_npz(tmp_path, CLASSES)
    content = path.read_bytes()
    for cut in range(0, len(content) - 1, 37):
        path.write_bytes(content[:cut])
        with pytest.raises(DataFileError, match=r"d\.npz"):
            read_data(path)


def test_parquet_names_the_extra_it_needs(tmp_path, monkeypatch):
    path, options = as_parquet(tmp_path, CLASSES)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataFileError, match=r"pip install 'consistruct\[io\]'"):
        read_data(path, **options)


@pytest.mark.parametrize(
    ("column", "y_true", "fault"),
    [
        ([[1], [2]], [0, 1], "column 'a' has type list"),
        ([1.0, float("inf")], [0, 1], "column 'a' contains infinite numbers"),
        ([1.0, 2.0], [0, None], "the target 'y' is missing in 1 row .row 2."),
    ],
)
def test_bad_parquet_columns(tmp_path, column, y_true, fault):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"a": column, "y": y_true})
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet")
    with pytest.raises(DataFileError, match=fault):
        read_data(tmp_path / "d.parquet", target="y")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", "+3"], np.array([1, -2, 3])),
        (["1.0", "2.0"], np.array([1, 2])),
        (["1.5", "2"], np.array([1.5, 2.0])),
        (["007", "8"], np.array(["007", "8"])),
        (["nan", "1"], np.array(["nan", "1"])),
        # a float would change the first, and keeps the second
        (["1", "12345678901234567890123"], np.array(["1", "12345678901234567890123"])),
        (["1", "1" * 400], np.array(["1", "1" * 400])),
        (["-7", "9" * 5000], np.array(["-7", "9" * 5000])),
        (["1.5", "100000000000000000000"], np.array([1.5, 1e20])),
        ([" yes ", "no"], np.array(["yes", "no"])),
    ],
)
def test_numbers_or_names(cells, expected):
    found = numbers_or_names(cells)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind


def test_an_archive_of_an_unknown_zip_version(tmp_path):
    """The version that is needed to extract stands in the directory at the end."""
    path = tmp_path / "d.npz"
    np.savez(path, X=np.zeros((2, 1)), y=np.array([0, 1]))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 123
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"not an npz archive.*zip file version 12\.3"):
        read_data(path)


def test_an_attribute_without_a_type(tmp_path):
    path = tmp_path / "d.arff"
    path.write_text("@relation r\n@attribute x\n@attribute y {a,b}\n@data\n1,a\n")
    with pytest.raises(DataFileError, match="line 2: attribute 'x' has type ''"):
        read_data(path, target="y")
