"""Spec strings, CSV files and data frames: good and bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from consistruct.exceptions import LossSpecError
from consistruct.losses import (
    Abstain,
    Block,
    CostMatrix,
    CostVectors,
    Hamming,
    Mixed,
    Ordinal,
    Tree,
    ZeroOne,
    parse_loss,
    read_cost_csv,
    read_tree_csv,
)
from consistruct.losses.base import Sizes
from consistruct.losses.registry import LOSSES

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("spec", "loss"),
    [
        ("zero-one:10", ZeroOne(10)),
        ("zero_one:10", ZeroOne(10)),
        ("Zero-One:10", ZeroOne(10)),
        ("block:3,5,2", Block((3, 5, 2))),
        ("block:4x25", Block((25,) * 4)),
        ("hamming:10", Hamming(10)),
        ("hamming:10x26", Hamming(10, 26)),
        ("mixed:4x25:0.4", Mixed((25,) * 4, 0.4)),
        ("ordinal:5", Ordinal(5)),
        ("ordinal:5:2", Ordinal(5, 2.0)),
        ("abstain:5:0.3", Abstain(5, 0.3)),
        ("cost-vectors:5", CostVectors(5)),
    ],
)
def test_specs(spec, loss):
    assert parse_loss(spec) == loss


def test_every_registered_spec_without_a_file_parses():
    for name, entry in LOSSES.items():
        for spec in entry.spec.split(" or "):
            if "FILE" not in spec:
                assert type(parse_loss(spec)) is entry.cls
            assert spec.startswith(name)


def test_sizes_from_data():
    sizes = Sizes(n_classes=4, n_parts=7, n_states=3)
    assert parse_loss("zero-one", sizes=sizes) == ZeroOne(4)
    assert parse_loss("ordinal", sizes=sizes) == Ordinal(4)
    assert parse_loss("abstain::0.3", sizes=sizes) == Abstain(4, 0.3)
    assert parse_loss("hamming", sizes=sizes) == Hamming(7, 3)
    assert parse_loss("hamming:5", sizes=sizes) == Hamming(5, 3)
    assert parse_loss("hamming", sizes=Sizes(n_parts=7)) == Hamming(7)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "unknown loss '' in the spec ''; the losses are abstain, "),
        ("zero", "unknown loss 'zero'"),
        ("zero-one", "the spec of zero-one lacks the number of classes; write for example"),
        (
            "zero-one:0",
            "number of classes in the spec of zero-one must be a positive integer, got '0'",
        ),
        ("zero-one:-3", "must be a positive integer, got '-3'"),
        ("zero-one:3.5", "must be a positive integer, got '3.5'"),
        ("zero-one:3:4", r"takes at most 1 field\(s\), got 2; write for example zero-one:10"),
        ("cost-vectors:3:4", r"takes at most 1 field\(s\), got 2"),
        ("block", "lacks the block sizes; write block:3,5,2"),
        ("block:3;5", "must be written as 3,5,2 or as 4x25"),
        ("block:4x0", "must be written as 3,5,2 or as 4x25"),
        ("block:3,,2", "must be written as 3,5,2 or as 4x25"),
        ("hamming:10x", "must be written as hamming:10 or hamming:10x26"),
        ("hamming:x26", "must be written as hamming:10 or hamming:10x26"),
        ("hamming:10x1", "n_states must be at least 2, got 1"),
        ("mixed:4x25", "needs block sizes and eta; write mixed:4x25:0.4"),
        ("mixed:4x25:2", r"'mixed:4x25:2': eta must be a finite number in \[0.0, 1.0\]"),
        ("mixed:4x25:a", "eta in the spec of mixed must be a number, got 'a'"),
        ("ordinal:5:nan", "power must be a finite number"),
        ("ordinal:5:2:1", r"takes at most 2 field\(s\), got 3"),
        ("abstain:5", "cost in the spec of abstain must be a number, got ''"),
        ("cost", "names a CSV file; write cost:FILE.csv"),
        ("tree", "names a CSV file; write tree:FILE.csv"),
        ("cost:nothing-here.csv", "there is no file 'nothing-here.csv'"),
        ("tree:nothing-here.csv", "there is no file 'nothing-here.csv'"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(LossSpecError, match=message):
        parse_loss(spec)


def test_other_bad_specs():
    with pytest.raises(TypeError, match="a loss spec must be a string, got int"):
        parse_loss(3)
    with pytest.raises(
        LossSpecError, match="states how to read a cost file; 'zero-one:3' names none"
    ):
        parse_loss("zero-one:3", rows="pred")


def test_intrusion_costs_are_turned_the_right_way():
    loss = read_cost_csv(ROOT / "examples" / "kdd99_costs.csv")
    names = ("normal", "probe", "DoS", "U2R", "R2L")
    assert loss.pred_names == loss.true_names == names
    normal, r2l, u2r = (names.index(name) for name in ("normal", "R2L", "U2R"))
    # as published rows are actual: missing an R2L attack costs 4, a false R2L alarm 2
    assert loss([normal], [r2l]).tolist() == [4]
    assert loss([r2l], [normal]).tolist() == [2]
    assert loss([normal], [u2r]).tolist() == [3]
    assert parse_loss(f"cost:{ROOT / 'examples' / 'kdd99_costs.csv'}") == loss


def write(tmp_path, text, name="costs.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


ASYMMETRIC = np.array([[0.0, 5.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("text", "rows", "expected"),
    [
        ("0,5\n1,0\n", "pred", ASYMMETRIC),
        ("0,5\n1,0\n", "true", ASYMMETRIC.T),
        ("0,5\n5,0\n", None, [[0, 5], [5, 0]]),  # symmetric: nothing to tell
        ("pred,a,b\na,0,5\nb,1,0\n", None, ASYMMETRIC),
        ("true,a,b\na,0,5\nb,1,0\n", None, ASYMMETRIC.T),
        ("true\\pred,a,b\na,0,5\nb,1,0\n", None, ASYMMETRIC.T),
        ("pred/true,a,b\na,0,5\nb,1,0\n", None, ASYMMETRIC),
        ("actual | predicted, a, b\n a,0,5\n b,1,0\n", None, ASYMMETRIC.T),
        ("y_true,a,b\na,0,5\nb,1,0\n", None, ASYMMETRIC.T),
        (",b,a\na,5,0\nb,0,1\n", "pred", ASYMMETRIC),  # columns in another order than the rows
        ("\ufeffpred,a,b\n\na,0,5\nb,1,0\n\n", None, ASYMMETRIC),  # byte-order mark, blank lines
    ],
)
def test_cost_files(tmp_path, text, rows, expected):
    loss = read_cost_csv(write(tmp_path, text), rows=rows)
    assert np.array_equal(loss.M, expected)
    if "a" in text:
        assert loss.pred_names == loss.true_names == ("a", "b")


def test_rectangular_cost_file(tmp_path):
    path = write(tmp_path, "true\\pred,yes,no,ask\nyes,0,1,0.2\nno,1,0,0.2\n")
    loss = read_cost_csv(path)
    assert loss.pred_names == ("yes", "no", "ask")
    assert loss.true_names == ("yes", "no")
    assert loss([2, 0], [1, 1]).tolist() == [0.2, 1.0]


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        ("0,5\n1,0\n", None, r"not symmetric and does not say .* rows='pred' or rows='true'"),
        (",a,b\na,0,5\nb,1,0\n", None, "not symmetric and does not say"),
        (",a,b\nc,0,0\nd,0,0\n", None, "other names in rows than in columns and does not say"),
        ("pred,a,b\na,0,5\nb,1,0\n", "true", "the axes contradict each other"),
        ("pred\\pred,a,b\na,0,5\nb,1,0\n", None, "the axes contradict each other"),
        ("0,5\n1,0\n", "x", "rows must be 'pred' or 'true', got 'x'"),
        ("", None, "is empty"),
        ("\n , \n", None, "is empty"),
        ("0,1\n1\n", "pred", "line 2: 1 cells, but the first line has 2"),
        ("pred,a,b\na,0,x\nb,1,0\n", None, "line 2, cost 2: 'x' is not a number"),
        ("0,1\nx,0\n", "pred", "line 2, cost 1: 'x' is not a number"),
        ("0,1\n\n\nx,0\n", "pred", "line 4, cost 1: 'x' is not a number"),
        ("0,nan\n1,0\n", "pred", "got NaN at row 0, column 1"),
        ("0,inf\n1,0\n", "pred", "got an infinite cost at row 0, column 1"),
        ("0,-1\n1,0\n", "pred", "got a negative cost at row 0, column 1"),
        ("pred,a,a\na,0,5\nb,1,0\n", None, "column_names must be distinct, got 'a' twice"),
        ("pred,a,b\n", None, "M must be"),
    ],
)
def test_bad_cost_files(tmp_path, text, rows, message):
    path = write(tmp_path, text)
    with pytest.raises(LossSpecError, match=message) as raised:
        read_cost_csv(path, rows=rows)
    assert "costs.csv" in str(raised.value)


def test_unreadable_files(tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"pred,\xff\n")
    with pytest.raises(LossSpecError, match="could not be read as a CSV file"):
        read_cost_csv(tmp_path / "latin.csv")
    with pytest.raises(LossSpecError, match="could not be read as a CSV file"):
        read_cost_csv(tmp_path)


def test_tree_files(tmp_path):
    text = "node,parent\nanimal,\ncat,animal\ndog,animal\n"
    assert read_tree_csv(write(tmp_path, text)) == Tree((-1, 0, 0), names=("animal", "cat", "dog"))
    text = "node,parent,weight\ncat,animal,2\nanimal,,0\ndog,animal,0.5\n"
    path = write(tmp_path, text)
    loss = parse_loss(f"tree:{path}")
    assert loss == Tree((1, -1, 1), (2, 0, 0.5), names=("cat", "animal", "dog"))
    assert loss([0], [1]).tolist() == [2.5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "the first line of a tree must be node,parent or node,parent,weight, got 'a,b'"),
        ("node,parent\n", "the tree has no nodes"),
        ("node,parent\na,\na,\n", "node 'a' is listed twice"),
        ("node,parent\na,z\n", "line 2: parent 'z' is not listed as a node"),
        ("node,parent\na,b\nb,a\n", "some nodes form a cycle"),
        ("node,parent,weight\na,,x\n", "line 2, cost 1: 'x' is not a number"),
        ("node,parent,weight\na,,-1\n", "weights must be finite and non-negative"),
    ],
)
def test_bad_tree_files(tmp_path, text, message):
    with pytest.raises(LossSpecError, match=message):
        read_tree_csv(write(tmp_path, text))


def frame(index_name=None, column_name=None):
    return pd.DataFrame(
        ASYMMETRIC,
        index=pd.Index(["a", "b"], name=index_name),
        columns=pd.Index(["a", "b"], name=column_name),
    )


@pytest.mark.parametrize(
    ("made", "rows", "expected"),
    [
        (frame("pred"), None, ASYMMETRIC),
        (frame("Truth"), None, ASYMMETRIC.T),
        (frame(None, "predicted"), None, ASYMMETRIC.T),
        (frame(None, "true"), None, ASYMMETRIC),
        (frame("actual", "prediction"), "true", ASYMMETRIC.T),
        (frame(), "pred", ASYMMETRIC),
        (frame("pred")[["b", "a"]], None, ASYMMETRIC),
        (frame("pred").astype("float32"), None, ASYMMETRIC),
        (frame("pred").astype(object), None, ASYMMETRIC),
    ],
)
def test_frames(made, rows, expected):
    before = made.copy()
    loss = CostMatrix.from_frame(made, rows=rows)
    assert np.array_equal(loss.M, expected)
    assert loss.pred_names == loss.true_names == ("a", "b")
    pd.testing.assert_frame_equal(made, before)


def test_bad_frames():
    with pytest.raises(
        ValueError, match="does not say whether its rows are predictions or true labels"
    ):
        CostMatrix.from_frame(frame())
    with pytest.raises(ValueError, match="the axes contradict each other"):
        CostMatrix.from_frame(frame("pred", "pred"))
    with pytest.raises(ValueError, match="the axes contradict each other"):
        CostMatrix.from_frame(frame("pred"), rows="true")
    with pytest.raises(TypeError, match="from_frame takes a pandas DataFrame, got list"):
        CostMatrix.from_frame([[0, 1]])
    with pytest.raises(TypeError, match="not a number"):
        CostMatrix.from_frame(frame("pred").astype(str).replace("5.0", "x").astype(object))


def test_tree_with_inner_nodes_as_predictions(tmp_path):
    path = tmp_path / "animals:small.csv"  # file names may hold colons
    path.write_text(
        "node,parent,weight\nanimal,,0\ncat,animal,2\nlion,cat,1\ntiger,cat,1\nfish,animal,3\n"
    )
    loss = parse_loss(f"tree:{path}:nodes")
    assert loss == read_tree_csv(path, predict="nodes")
    assert isinstance(loss, Tree)
    assert loss.names == ("animal", "cat", "lion", "tiger", "fish")
    assert loss.true_labels.names == ("lion", "tiger", "fish")
    assert loss.n_labels == 5
    # stopping at "cat" costs the edge that is left; "animal" two edges; "fish" the whole way
    assert loss([1, 0, 4, 2], [0, 0, 0, 0]).tolist() == [1.0, 3.0, 6.0, 0.0]
    assert parse_loss(f"tree:{path}") == parse_loss(f"tree:{path}:leaves") == read_tree_csv(path)
    with pytest.raises(LossSpecError, match=r"write tree:FILE\.csv, or tree:FILE\.csv:nodes"):
        parse_loss("tree::nodes")
