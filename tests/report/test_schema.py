"""Every report keeps the published schema, comes back as it was; other versions are refused."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields, is_dataclass

import jsonschema
import pytest

from consistruct.exceptions import ConsistructError
from consistruct.report import CalibrationReport, report_schema
from tests.report.settings import SETTINGS, report_of


@pytest.mark.parametrize("name", SETTINGS)
def test_reports_keep_the_schema_and_come_back(name):
    report = report_of(name)
    text = json.dumps(report.as_dict(), allow_nan=False)
    data = json.loads(text)
    jsonschema.Draft202012Validator(report_schema("calibration")).validate(data)
    assert CalibrationReport.from_dict(data) == report


def test_the_schema_is_one_and_closed():
    schema = report_schema("calibration")
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["required"]) == set(schema["properties"])
    assert schema["additionalProperties"] is False
    for part in ("point", "worst_case", "sample_sizes"):
        assert set(schema["$defs"][part]["required"]) == set(schema["$defs"][part]["properties"])


@pytest.mark.parametrize(
    "change",
    [
        {"n_labels": 4},
        {"max_eps": -1.0},
        {"decoding": "guess"},
        {"extra": 1},
        {"curve": [{"eps": 0.0}]},
        {"schema_version": "1.0"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_is_wrong(change):
    data = report_of("named").as_dict() | change
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(report_schema("calibration")).validate(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": "1.0"}, r"version 1\.0, .* reads 3\.0; write it again with `consistr"),
        ({"schema_version": "4.0"}, r"version 4\.0, .* reads 3\.0; read it with a newer"),
        ({"schema_version": "two"}, r"must look like '3\.0', got 'two'"),
        ({"kind": "learning"}, r"kind 'learning', not 'calibration'"),
        ({"curve": None}, r"damaged"),
        ({"curve": [{}]}, r"lacks 'eps'"),
        ({"n_labels": "many"}, r"damaged"),
    ],
    ids=str,
)
def test_other_documents_are_one_clear_line(change, message):
    data = report_of("named").as_dict() | change
    with pytest.raises(ConsistructError, match=message) as raised:
        CalibrationReport.from_dict(data)
    assert "\n" not in str(raised.value)


def test_the_first_version_is_recognized_without_its_kind():
    old = {"schema_version": "1.0", "loss": "ZeroOne(3)", "curve": []}
    with pytest.raises(ConsistructError, match=r"schema version 1\.0"):
        CalibrationReport.from_dict(old)


@pytest.mark.parametrize("document", [[], {}, "text", None])
def test_what_is_no_report_is_reported(document):
    with pytest.raises(ConsistructError, match="not a calibration report"):
        CalibrationReport.from_dict(document)


def test_unknown_kinds_of_schema():
    with pytest.raises(ValueError, match="kind must be one of calibration, learning"):
        report_schema("poetry")


def test_the_model_is_frozen_all_the_way_down():
    def check(value):
        assert not isinstance(value, list | dict | set), value
        if is_dataclass(value):
            with pytest.raises(FrozenInstanceError):
                setattr(value, fields(value)[0].name, None)
            for field in fields(value):
                check(getattr(value, field.name))
        elif isinstance(value, tuple):
            for entry in value:
                check(entry)

    check(report_of("named"))
    assert hash(report_of("named")) == hash(report_of("named"))
