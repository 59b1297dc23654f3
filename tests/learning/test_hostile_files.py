"""Data files that lie about themselves: read exactly, or refused in one line, in little memory."""

from __future__ import annotations

import io
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from consistruct.exceptions import DataFileError, LossSpecError
from consistruct.learning.files.data import read_data
from consistruct.losses import Tree, read_cost_csv, read_tree_csv

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 2, 2])
CSR = {
    "X_data": np.ones(2),
    "X_indices": np.array([0, 1]),
    "X_indptr": np.array([0, 1, 2]),
    "X_shape": np.array([2, 3]),
    "y": np.array([0, 1]),
}


def npz(folder, **members):
    np.savez(folder / "d.npz", **members)
    return folder / "d.npz"


def y_true(path, **options):
    found = read_data(path, **options).y
    assert found is not None
    return found


def refused(path, fault, **options):
    with pytest.raises(DataFileError) as raised:
        read_data(path, **options)
    message = str(raised.value)
    assert fault in message
    assert str(path) in message
    assert "\n" not in message


# --- read wrongly --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [
        [2**63 - 1, 2**63 - 1, 8],  # sums to 6 where sums wrap around
        [2**62, 2**62, 2**62, 2**62, 6],
        [-2, 8],
        [3, 2],
    ],
)
def test_group_sizes_are_checked_one_by_one(tmp_path, sizes):
    path = npz(tmp_path, X=X, y=Y, group=np.array(sizes))
    refused(path, "group must contain group sizes that sum to 6")


def test_group_sizes_beyond_int64(tmp_path):
    path = npz(tmp_path, X=X, y=Y, group=np.array([2**64 - 1, 7], dtype=np.uint64))
    refused(
        path, "group contains 18446744073709551615, which does not fit into a signed 64-bit integer"
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"X_indices": np.array([2**32, 1])}, "the CSR parts do not fit together"),
        ({"X_indices": np.array([0, 1.9])}, "X_indices must contain whole numbers, got 1.9"),
        ({"X_indices": np.array([0, 1 + 0j])}, "X_indices must contain whole numbers, got dtype"),
        ({"X_indices": np.array([0, np.inf])}, "X_indices must contain whole numbers, got inf"),
        ({"X_indices": np.array([0, -1])}, "the CSR parts do not fit together"),
        ({"X_indptr": np.array([0, 2**32 + 1, 2])}, "the CSR parts do not fit together"),
        ({"X_indptr": np.array([0.0, 1.5, 2.0])}, "X_indptr must contain whole numbers, got 1.5"),
        (
            {"X_data": np.array([1 + 2j, 1])},
            "X_data must contain real numbers, got dtype complex128",
        ),
        ({"X_data": np.array(["1", "2"])}, "X_data must contain real numbers"),
        (
            {"X_shape": np.array([2, 2**40])},
            "1099511627776 features, but at most 134217728 are read",
        ),
        ({"X_shape": np.array([2, 3.5])}, "X_shape must contain whole numbers, got 3.5"),
        ({"X_shape": np.array([2])}, "the CSR parts do not fit together"),
        ({"X_shape": np.array([-2, 3])}, "the CSR parts do not fit together"),
    ],
)
def test_sparse_parts_are_read_exactly_or_not_at_all(tmp_path, change, fault):
    refused(npz(tmp_path, **{**CSR, **change}), fault)


def test_whole_numbers_may_be_floats(tmp_path):
    sparse = {**CSR, "X_indices": np.array([0.0, 2.0]), "X_shape": np.array([2.0, 3.0])}
    found = read_data(npz(tmp_path, **sparse)).X
    assert found.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert found.indices.dtype == np.int32


def test_true_labels_beyond_int64(tmp_path):
    y = np.array([0, 1, 0, 1, 2, 2**64 - 1], dtype=np.uint64)
    refused(npz(tmp_path, X=X, y=y), "y contains 18446744073709551615")


def test_true_labels_of_parquet_beyond_int64(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'io'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra 'io'")
    path = tmp_path / "d.parquet"
    y = np.array([2**63, 1], dtype=np.uint64)
    parquet.write_table(pyarrow.table({"a": [0.0, 1.0], "y": y}), path)
    refused(path, "column 'y' contains 9223372036854775808", target="y")
    small = pyarrow.table({"a": [0.0, 1.0], "y": np.array([5, 1], dtype=np.uint64)})
    parquet.write_table(small, path)
    assert y_true(path, target="y").tolist() == [5, 1]


@pytest.mark.parametrize("count", [17, 8, 0, -1, 3.5, np.inf, np.nan, 2**62])
def test_packed_bits_have_as_many_columns_as_they_say(tmp_path, count):
    packed = np.packbits(np.ones((6, 12), dtype=np.uint8), axis=1)
    path = npz(tmp_path, X=X, Y_packed=packed, Y_ncol=np.array(count))
    refused(path, "Y_ncol must ")


def test_packed_bits_are_bytes(tmp_path):
    path = npz(tmp_path, X=X, Y_packed=np.ones((6, 2)), Y_ncol=np.array(12))
    refused(path, "Y_packed must be a matrix of uint8")
    packed = np.packbits(np.eye(6, 12, dtype=np.uint8), axis=1)
    path = npz(tmp_path, X=X, Y_packed=packed, Y_ncol=np.array(12))
    np.testing.assert_array_equal(read_data(path).y, np.eye(6, 12))


@pytest.mark.parametrize("cell", ["1_000", "١٢", "0x10", "１"])
@pytest.mark.parametrize("kind", ["csv", "arff", "arff-sparse", "svm", "cost"])
def test_only_plain_digits_are_numbers(tmp_path, cell, kind):
    path = tmp_path / f"d.{kind.partition('-')[0]}"
    head = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y {0,1}\n@data\n"
    text = {
        "csv": f"a,b,y\n0,{cell},0\n1,2,1\n",
        "arff": f"{head}0,{cell},0\n1,2,1\n",
        "arff-sparse": f"{head}{{1 {cell}}}\n{{0 1}}\n",
        "svm": f"0 1:{cell}\n1 1:2\n",
        "cost": f"0,{cell}\n1,0\n",
    }[kind]
    path.write_text(text, encoding="utf-8")
    if kind == "cost":
        with pytest.raises(LossSpecError):
            read_cost_csv(path)
    elif kind == "csv" and cell == "0x10":  # a word like any other
        assert read_data(path, target="y").X[0, -1] == cell
    else:
        with pytest.raises(DataFileError):
            read_data(path, target=() if kind == "svm" else "y")


def test_names_may_hold_any_letters(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("größe,y_1\n1.5,class_á\n2,١\n", encoding="utf-8")
    found = read_data(path, target="y_1")
    assert y_true(path, target="y_1").tolist() == ["class_á", "١"]
    assert found.X.ravel().tolist() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("1 99999999999999999999:1", "99999999999999999999 features, but at most 134217728"),
        ("1 4000000000:1", "4000000000 features, but at most 134217728 are read"),
        ("1 qid:99999999999999999999 1:1", "query number must be an integer of at most 18 digits"),
        ("1 qid:1_0 1:1", "query number must be an integer"),
        (f"1 {'9' * 5000}:1", "expected index:value"),
    ],
)
def test_svmlight_numbers_beyond_64_bits(tmp_path, line, fault):
    path = tmp_path / "d.svm"
    path.write_text(f"0 1:1\n{line}\n" if "qid" not in line else f"{line}\n", encoding="utf-8")
    refused(path, fault)


# --- memory and time -----------------------------------------------------------------------------


def peak_of(action):
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_members_that_are_not_needed_are_not_inflated(tmp_path):
    np.savez_compressed(tmp_path / "d.npz", X=X, y=Y, junk=np.zeros(3 * 10**7))
    assert peak_of(lambda: read_data(tmp_path / "d.npz")) < 2**22


def forged(path, declared, content=b"", version=(1, 0)):
    """An archive whose X states `declared` and holds `content`."""
    np.savez(path, y=Y)
    header = io.BytesIO()
    header.write(b"\x93NUMPY" + bytes(version))
    text = repr({"descr": "<f8", "fortran_order": False, "shape": declared}).encode() + b"\n"
    header.write(len(text).to_bytes(2 if version == (1, 0) else 4, "little") + text + content)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", header.getvalue())
    return path


@pytest.mark.parametrize("shape", [(6, 10**12), (6, 10**30), (2**40, 2**40)])
def test_declared_sizes_are_checked_before_anything_is_read(tmp_path, shape):
    path = forged(tmp_path / "d.npz", shape)
    assert peak_of(lambda: refused(path, "the member 'X' claims to take")) < 2**22


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"x" * 95, "contains less than its shape"), (b"x" * 97, "contains more than its shape")],
)
def test_members_hold_what_they_declare(tmp_path, content, fault):
    refused(forged(tmp_path / "d.npz", (6, 2), content), fault)
    assert read_data(forged(tmp_path / "d.npz", (6, 2), X.tobytes())).X.tolist() == X.tolist()


def test_garbage_inside_an_archive(tmp_path):
    path = npz(tmp_path, y=Y)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", b"\x93NUMPY" + bytes(range(256)))
    refused(path, "the member 'X' is damaged")
    refused(forged(tmp_path / "d.npz", (6, 2), version=(2, 0)), "the member 'X' is damaged")
    content = bytearray(npz(tmp_path, X=X, y=Y).read_bytes())
    content[120:140] = bytes(20)
    (tmp_path / "d.npz").write_bytes(content)
    refused(tmp_path / "d.npz", "d.npz: ")


def test_inflated_arrays_have_a_budget(tmp_path, monkeypatch):
    from consistruct.learning.files.data import npz as reader

    class Small:
        inflated = staticmethod(lambda size: 100)

    monkeypatch.setattr(reader, "FILES", Small)
    refused(npz(tmp_path, X=X, y=Y), "the member 'y' claims to take 48 bytes, but at most 4 are")


def test_parquet_repeats_have_a_budget(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'io'")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra 'io'")
    path = tmp_path / "d.parquet"
    column = pyarrow.array(np.zeros(10**6, dtype=np.int8))
    names = [f"c{number}" for number in range(300)]  # 300 MB as int8, 2.4 GB as floats
    parquet.write_table(pyarrow.table(dict.fromkeys(names, column)), path)
    refused(path, "1000000 rows of 300 columns would take 2400000000 bytes", target="c0")


@pytest.mark.parametrize("name", ["csv", "svmlight", "arff", "npz", "parquet"])
def test_devices_are_not_read(name):
    refused("/dev/zero", "is a device; pass a data file", format=name)


def test_double_names_are_found_in_linear_time(tmp_path):
    path = tmp_path / "d.csv"
    names = [f"c{number}" for number in range(200_000)]
    path.write_text(",".join([*names, "c199999"]) + "\n", encoding="utf-8")
    start = time.process_time()
    refused(path, "two columns are called 'c199999'", target="c0")
    assert time.process_time() - start < 3


def test_many_labels_are_found_in_linear_time(tmp_path):
    path = tmp_path / "d.csv"
    names = [f"c{number}" for number in range(20_000)]
    path.write_text("\n".join([",".join(names), ",".join(["1"] * 20_000)]), encoding="utf-8")
    start = time.process_time()
    assert y_true(path, target=names[1:]).shape == (1, 19_999)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("shape", ["chain", "cycle"])
def test_trees_of_any_shape_take_little_memory(tmp_path, shape):
    path = tmp_path / "tree.csv"
    first = "19999" if shape == "cycle" else ""
    lines = ["node,parent", f"0,{first}", *(f"{node},{node - 1}" for node in range(1, 20_000))]
    path.write_text("\n".join(lines), encoding="utf-8")

    def refuse():
        with pytest.raises(LossSpecError, match="at most 8192 nodes, got 20000"):
            read_tree_csv(path)

    assert peak_of(refuse) < 2**25
    parents = [19_999 if shape == "cycle" else -1, *range(19_999)]
    with pytest.raises(ValueError, match="at most 8192 nodes"):
        Tree(parents)


def test_cycles_are_found_in_linear_time():
    start = time.process_time()
    with pytest.raises(ValueError, match="some nodes form a cycle"):
        Tree([8000, *range(8000)])
    chain = Tree([-1, *range(4000)], predict="nodes")
    assert chain.leaves.tolist() == [4000]
    assert chain([0], [0]).tolist() == [4000.0]
    assert time.process_time() - start < 5


def test_double_nodes_are_named(tmp_path):
    path = tmp_path / "tree.csv"
    path.write_text("node,parent\na,\nb,a\nb,a\n", encoding="utf-8")
    with pytest.raises(LossSpecError, match="node 'b' is listed twice"):
        read_tree_csv(path)
