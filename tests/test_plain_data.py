"""Dataclasses become JSON data and come back the same, by their fields alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import pytest

from consistruct._plain_data import Form, dump, form, load


def _dump_log(name: str, log: float) -> dict[str, float]:
    return {name: math.exp(log), f"{name}_log": log}


def _load_log(data: Mapping[str, Any], name: str) -> Any:
    return data[f"{name}_log"]


@dataclass(frozen=True)
class Inner:
    name: str
    weights: dict[int, float]


@dataclass(frozen=True)
class Outer:
    label: str | int | tuple[int, ...]
    pair: tuple[int, str]
    rows: tuple[tuple[float, ...], ...]
    inner: Inner | None
    many: list[Inner]
    size: Annotated[int, form(str, int)]
    log: Annotated[float, Form(_dump_log, _load_log, "value")]
    anything: Any = None


def outer(**changes: Any) -> Outer:
    fields: dict[str, Any] = {
        "label": (1, 2), "pair": (3, "x"), "rows": ((0.5,), (0.25, 1.0)),
        "inner": Inner("a", {4: 0.5}), "many": [Inner("b", {})], "size": 10**30, "log": 0.0,
    }  # fmt: skip
    return Outer(**{**fields, **changes})


def test_what_is_written():
    assert dump(outer()) == {
        "label": [1, 2],
        "pair": [3, "x"],
        "rows": [[0.5], [0.25, 1.0]],
        "inner": {"name": "a", "weights": {"4": 0.5}},
        "many": [{"name": "b", "weights": {}}],
        "size": "1000000000000000000000000000000",
        "value": 1.0,
        "value_log": 0.0,
        "anything": None,
    }


@pytest.mark.parametrize(
    "changes",
    [{}, {"label": "name"}, {"label": 7}, {"inner": None}, {"rows": ()}, {"anything": [1, [2]]}],
    ids=str,
)
def test_reading_undoes_writing(changes):
    value = outer(**changes)
    assert load(Outer, json.loads(json.dumps(dump(value)))) == value


def test_infinities_are_null_unless_leaves_are_written_otherwise():
    assert dump((math.inf, -math.inf, math.nan, 1)) == [None, None, None, 1]
    assert dump([Fraction(1, 3)], str) == ["1/3"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"pair": [1]}, ValueError),
        ({"pair": 3}, TypeError),
        ({"rows": "ab"}, TypeError),
        ({"inner": 3}, TypeError),
        ({"inner": {"name": "a"}}, KeyError),
        ({"size": "many"}, ValueError),
        ({"many": {}}, TypeError),
    ],
    ids=str,
)
def test_what_has_the_wrong_form_is_refused(changes, error):
    with pytest.raises(error):
        load(Outer, {**dump(outer()), **changes})
