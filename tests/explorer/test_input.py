"""Settings and uploads: each bad one is one clear line, and the server goes on."""

from __future__ import annotations

import re

import numpy as np
import pytest

from consistruct import calibration_function
from consistruct.exceptions import ConsistructError
from consistruct.explorer import Limits
from consistruct.explorer.catalog import (
    METRIC_SPECS,
    METRIC_TITLES,
    METRICS_NOT_OFFERED,
    OFFERS,
    SCORES,
)
from consistruct.explorer.matrices import Matrices
from consistruct.explorer.messages import MESSAGE_CHARACTERS, junk_message, page_message
from consistruct.explorer.settings import Setting
from consistruct.explorer.worker import Analyst
from consistruct.losses import CostMatrix, parse_loss, parse_metric
from consistruct.losses.metrics.registry import METRICS
from consistruct.losses.registry import LOSSES
from consistruct.surrogates import SURROGATES

GOOD = r"""true\pred,ham,spam
ham,0,10
spam,1,0
"""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "must be a JSON object"),
        ({}, "choose a loss, for example hamming:10, or drop a cost matrix"),
        ({"loss": "zero-one:3", "matrix": "a" * 64}, "choose a loss"),
        ({"loss": 3}, "loss must be a string, got int"),
        ({"loss": "zero-one:3", "extra": 1}, "got 'extra'"),
        ({"loss": "zero-one:3", "eps": "0.5"}, "eps must be a number or null, got str"),
        ({"loss": "zero-one:3", "eps": True}, "eps must be a number or null, got bool"),
        ({"loss": "zero-one:3", "eps": -1}, "finite and non-negative, got -1"),
        ({"loss": "zero-one:3", "eps": float("nan")}, "finite and non-negative, got nan"),
        ({"loss": "zero-one:3", "eps": 10**400}, "got a huge integer"),
        ({"loss": "x" * 201}, "at most 200 characters, got 201"),
        ({"loss": "zero-one:3\n"}, None),  # white space around is dropped
        ({"loss": "zero-one:<b>3</b>"}, "letters, digits and"),
        ({"loss": "zero-one:３"}, "letters, digits and"),
        ({"loss": "hamming:100001"}, "at most 100000, got 100001"),
        ({"loss": "hamming:" + "9" * 100}, "at most 100000"),
        ({"loss": "cost:costs.csv"}, "names a file, but the explorer does not read files"),
        ({"loss": "COST:costs.csv"}, "names a file"),
        ({"loss": "tree:tree.csv"}, "names a file"),
        ({"loss": "partial-labels:average:cost:costs.csv"}, "names a file"),
        ({"loss": "partial_labels:average:tree:tree.csv"}, "names a file"),
        ({"loss": "cost:/etc/passwd"}, "letters, digits and"),
        ({"loss": "zero-one:3", "scores": "matrix:F.csv"}, "names a file"),
        ({"loss": "zero-one:3", "scores": ""}, "letters, digits and"),
        ({"matrix": "../../etc/passwd"}, "identifier that the upload returned"),
        ({"loss": "zero-one:3", "metric": "macro-f1"}, "macro-f1 needs a confusion"),
        ({"matrix": "a" * 64, "metric": "<b>"}, "letters, digits and"),
    ],
)
def test_settings_are_checked(data, message):
    if message is None:
        assert Setting.from_json(data, Limits()).loss == "zero-one:3"
        return
    with pytest.raises(ConsistructError) as raised:
        Setting.from_json(data, Limits())
    assert message in str(raised.value)


def test_messages_are_one_short_line():
    assert page_message("a\n\tb") == "a b"
    assert len(page_message("x" * 10_000)) == MESSAGE_CHARACTERS


@pytest.mark.parametrize(
    ("text", "rows", "message"),
    [
        ("", "", "is empty"),
        ("\n\n , ,\n", "", "is empty"),
        ("0,1\n1", "", "line 2: 1 cells, but the first line has 2"),
        ("0,nan\n1,0", "", "got NaN at row 0, column 1"),
        ("0,inf\n1,0", "pred", "got an infinite cost"),
        ("0,-1\n1,0", "", "got a negative cost"),
        ("0,abc\n1,0", "", "“Its rows are”"),  # a first line with a word is a line of names
        ("a,b\nx,0,\n", "", "cells, but the first line has"),
        (",a,b\na,0,x\nb,1,0", "", "line 2, cost 2: 'x' is not a number"),
        (",a,a\na,0,1\nb,1,0", "", "distinct, got 'a' twice"),
        ("0,1\n2,0", "", "choose one in the menu “Its rows are”"),
        (f",a,{'b' * 201}\na,0,1\n{'b' * 201},1,0", "", "a label name of 201 characters"),
        ("0,1\n1,0", "both", "rows must be pred, true or empty, got 'both'"),
        ("0," * 10_000 + "0", "", "has 10001 columns, but the explorer accepts at most 200 labels"),
        (
            "0\n" * 5_000,
            "",
            "has 5000 rows, but the explorer accepts at most 200 labels; if it contains",
        ),
        ('0,"' + "x" * 200_000, "", "could not be read as a CSV file: field larger"),
        (b"\xff\xfe0,1", "", "not UTF-8 text"),
        (b"0,1\0\n1,0", "", "contains binary data"),
        (b"PK\x03\x04\x00\x00", "", "is a spreadsheet or ZIP file; save the sheet"),
        (b"\x89PNG\r\n\x1a\n", "", "is a picture"),
        (b"%PDF-1.7\n%\xe2", "", "is a PDF"),
        (b'{"costs": [[0, 1], [1, 0]]}', "", "is JSON"),
        (b"<!doctype html><p>404</p>", "", "is a web page"),
        (b"Dear Sir,\nplease find\n", "", "cells, but the first line has"),
        (b"Dear Sir\nplease find\n", "", "is not a table: its first line has one cell"),
        (b"a;b\n0;1\n1;0\n", "", "by semicolons; save it with commas"),
        (b"a\tb\n0\t1\n1\t0\n", "", "by tabs; save it with commas"),
        ("age,sex,kind\n" + "31,1,a\n" * 60, "", "looks like a table of examples"),
    ],
)
def test_bad_uploads_are_one_line(visitor, text, rows, message):
    answer = visitor.upload(text, rows)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert message in error
    assert len(error) <= MESSAGE_CHARACTERS
    # and the server goes on
    assert visitor.upload(GOOD).status_code == 200


def test_a_good_upload_is_analyzed_in_label_names(visitor):
    found = visitor.upload(GOOD).json()
    assert (found["n_predictions"], found["n_true_labels"]) == (2, 2)
    assert found["names"] == ["ham", "spam"]
    assert found["in_address"] is True
    job = visitor.analyze(matrix=found["id"])
    assert job["state"] == "done"
    case = job["result"]["report"]["worst_case"]
    assert {case["better"], case["predicted"]} == {"ham", "spam"}


def test_rows_change_the_matrix(visitor):
    texts = ("0,1\n10,0", "0,10\n1,0")
    ids = [
        visitor.upload(text, rows).json()["id"]
        for text, rows in zip(texts, ("pred", "true"), strict=True)
    ]
    assert ids[0] != ids[1]
    # the transpose of the transpose: the same costs
    reports = [visitor.analyze(matrix=name)["result"]["report"] for name in ids]
    assert reports[0]["curve"] == reports[1]["curve"]
    other = visitor.upload(texts[0], "true").json()["id"]
    assert visitor.analyze(matrix=other)["result"]["report"]["curve"] != reports[0]["curve"]


def test_names_with_markup_stay_text(visitor):
    name = "<img src=x onerror=alert(1)>"
    found = visitor.upload(f"pred,{name},b\n{name},0,1\nb,1,0").json()
    assert found["names"][0] == name
    result = visitor.analyze(matrix=found["id"])["result"]
    assert result["report"]["worst_case"]["better"] == name
    # Plotly reads markup: what goes to it is escaped
    for figure in result["figures"].values():
        for trace in figure["data"]:
            assert "<img" not in str(trace)
        assert "<img" not in str({k: v for k, v in figure["layout"].items() if k != "meta"})


def test_an_unknown_matrix(visitor):
    answer = visitor.submit(matrix="0" * 64)
    assert answer.status_code == 400
    assert "drop the CSV file again" in answer.json()["error"]


def test_uploads_are_forgotten_oldest_first():
    matrices = Matrices(Limits(matrices=2))
    ids = []
    for cost in (1, 2, 3):
        upload, shown = matrices.read(f"0,{cost}\n{cost},0".encode(), "")
        matrices.keep(upload)
        ids.append(shown["id"])
    assert matrices.get(ids[1]).text.startswith("0,2")
    assert matrices.get(ids[2]).rows is None
    with pytest.raises(ConsistructError, match="not known to the running server"):
        matrices.get(ids[0])


def test_large_matrices_are_not_put_into_the_address():
    matrices = Matrices(Limits(shared_bytes=10))
    assert matrices.read(b"0,1\n1,0", "")[1]["in_address"] is True
    assert matrices.read(b"0,1.0000\n1.0000,0", "")[1]["in_address"] is False


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"loss": "no-such-loss:3"}, "there is no loss 'no-such-loss'"),
        ({"loss": "blck:3"}, "did you mean block?; choose one in the menu"),
        ({"loss": "macro-f1"}, "choose “A metric, at a confusion”"),
        ({"loss": "zero-one"}, "the field “number of classes” of zero-one is empty"),
        ({"loss": "cost-vectors:3"}, "needs finitely many true labels"),
        ({"loss": "zero-one:3", "scores": "chain"}, "“chain” in the menu “Scores” is for losses"),
        ({"loss": "zero-one:3", "surrogate": "nothing"}, "choose one in the menu “Surrogate”"),
        ({"loss": "zero-one:3", "decoding": "bayes"}, "works only with the surrogates “log” and"),
        ({"loss": "zero-one:3", "eps": 7}, "ε must be at most 1, the largest excess risk"),
        ({"loss": "hamming:5000"}, "the explorer accepts at most 2^4096"),
        ({"loss": "zero-one:5", "scores": "blocks:2,2"}, "add up to 4, but the loss has 5"),
    ],
)
def test_what_cannot_be_analyzed_is_one_line(visitor, setting, message):
    job = visitor.analyze(**setting)
    assert job["state"] == "failed"
    assert message in job["error"]
    assert job["result"] is None


def test_every_loss_is_offered_or_excused():
    """Files are not read for a page; cost vectors and decisions have no finite set of labels."""
    assert set(LOSSES) - set(OFFERS) == {"cost", "tree", "cost-vectors", "decision"}
    for name, offer in OFFERS.items():
        assert offer.spec.count("{}") == len(offer.fields)
        assert isinstance(parse_loss(offer.default), LOSSES[name].cls)


def test_every_surrogate_has_a_name(visitor):
    offered = {entry["name"] for entry in visitor.get("/api/options").json()["surrogates"]}
    assert offered == {name for name, entry in SURROGATES.items() if entry.analyzed}


PYTHON = re.compile(r"[A-Z]\w+\(|\w+=|'\w+'|\bNone\b|capability|[a-z]_[a-z]")


def test_no_choice_of_the_menus_is_answered_in_python():
    """Every loss with all scores and those surrogates and decodings that refuse some of them."""
    analyst = Analyst(4096)
    reported = set()
    for offer in OFFERS.values():
        for scores in ["blocks:7,7" if name == "blocks" else name for name, _ in SCORES]:
            for surrogate, decoding in (
                ("quadratic", "argmax"),
                ("hinge", "argmax"),
                ("log", "bayes"),
            ):
                setting = Setting(offer.default, "", "", scores, surrogate, decoding)
                try:
                    analyst._new_curve(setting, None)
                except (ValueError, TypeError) as error:
                    reported.add(page_message(error))
    assert len(reported) > 6
    assert not {message for message in reported if PYTHON.search(message)}


def test_files_that_may_be_tables_pass():
    for content in (b"0,1\n1,0", b"0\n", b"\xef\xbb\xbfpred,a\na,0\n", b"", b"\n\n"):
        assert junk_message(content) is None


# --- metrics ---


def test_every_metric_is_offered_or_excused():
    assert set(METRIC_TITLES) | set(METRICS_NOT_OFFERED) == set(METRICS)
    for name in METRIC_TITLES:
        parse_metric(METRIC_SPECS.get(name, name))


CONFUSION = "pred,low,middle,high\nlow,40,5,1\nmiddle,6,30,4\nhigh,1,3,10\n"


@pytest.mark.parametrize("metric", ["macro-f1", "qwk", "mcc", "g-mean"])
def test_metrics_are_analyzed_as_the_costs_that_they_are_at_a_confusion(visitor, metric):
    found = visitor.upload(CONFUSION).json()
    report = visitor.analyze(matrix=found["id"], metric=metric)["result"]["report"]
    table = np.array([[40, 5, 1], [6, 30, 4], [1, 3, 10.0]])
    curve = calibration_function(
        CostMatrix(parse_metric(metric).linearized(table, rows="pred").M, rows="pred")
    )
    assert report["max_eps"] == pytest.approx(curve.max_eps)
    middle = report["curve"][10]
    assert middle["lower"] == pytest.approx(curve(middle["eps"]), rel=1e-6)
    assert "middle" in report["loss_title"]


def test_a_metric_of_two_classes_states_how_many_it_got(visitor):
    found = visitor.upload(CONFUSION).json()
    job = visitor.analyze(matrix=found["id"], metric="f1")
    assert job["error"] == "this metric is for 2 classes, but the confusion matrix has 3"


def test_advice_speaks_of_the_menus(visitor):
    result = visitor.analyze(loss="mixed:3x2:0.2", scores="blocks:3x2")["result"]
    reported = " ".join(text for s in result["sections"] for text in (s["answer"], *s["details"]))
    assert "“own” in the menu “Scores”" in reported
    assert "--scores" not in reported
    assert "--at " not in reported
