"""Which documents this version writes and reads.

Versions are MAJOR.MINOR: a new field raises MINOR, a field that changes its meaning or goes away
raises MAJOR. Reports are quick to write again, so a reader takes its own version and no other, and
states it in one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any, Literal

from consistruct.exceptions import ConsistructError

__all__ = [
    "CALIBRATION_SCHEMA",
    "LEARNING_SCHEMA",
    "SCHEMA_VERSION",
    "Kind",
    "check_document",
    "reading",
    "report_schema",
]

Kind = Literal["calibration", "learning"]

SCHEMA_VERSION = "1.1"  # of plans and advice; 1.1: gap and eps_reason
CALIBRATION_SCHEMA = "3.0"  # 3.0: distribution, true_label; 2.2: titles; 2.1: at_reason, gaps
LEARNING_SCHEMA = "3.0"  # 3.0: true_labels; 2.2: forecast, titles, columns, measures

VERSIONS: dict[str, str] = {"calibration": CALIBRATION_SCHEMA, "learning": LEARNING_SCHEMA}
COMMANDS = {"calibration": "consistruct analyze", "learning": "consistruct report"}


def report_schema(kind: Kind = "calibration") -> dict[str, Any]:
    """The JSON schema (draft 2020-12) that every report of this kind keeps.

    Examples
    --------
    >>> report_schema()["properties"]["schema_version"]
    {'const': '3.0'}
    """
    if kind not in VERSIONS:
        raise ValueError(f"kind must be one of {', '.join(VERSIONS)}, got {kind!r}")
    text = (resources.files("consistruct.report") / "schemas" / f"{kind}.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def check_document(data: Any, kind: Kind) -> None:
    """Raise ConsistructError, in one line, unless this version reads the document."""
    if not isinstance(data, dict) or "schema_version" not in data:
        raise ConsistructError(
            f"this is not a {kind} report: it has no schema_version; write one with "
            f"`{COMMANDS[kind]} … --json`"
        )
    version = str(data["schema_version"])
    found = data.get("kind", "calibration" if "curve" in data else None)
    if found != kind:
        raise ConsistructError(f"this is a report of kind {found!r}, not {kind!r}")
    own = VERSIONS[kind]
    if _parts(version) is None:
        raise ConsistructError(f"schema_version must look like {own!r}, got {version!r}")
    if _parts(version) != _parts(own):
        newer = (_parts(version) or (0, 0)) > (_parts(own) or (0, 0))
        remedy = (
            "read it with a newer consistruct"
            if newer
            else f"write it again with `{COMMANDS[kind]} … --json`"
        )
        raise ConsistructError(
            f"this {kind} report has schema version {version}, this version of consistruct reads "
            f"{own}; {remedy}"
        )


def _parts(version: str) -> tuple[int, int] | None:
    major, dot, minor = version.partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        return None
    return int(major), int(minor)


@contextmanager
def reading(kind: Kind) -> Iterator[None]:
    """A document of the right version that lacks a field or holds the wrong type is one line."""
    try:
        yield
    except KeyError as error:
        raise ConsistructError(
            f"the {kind} report is damaged: it lacks {error.args[0]!r}; write it again with "
            f"`{COMMANDS[kind]} … --json`"
        ) from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise ConsistructError(
            f"the {kind} report is damaged ({error}); write it again with "
            f"`{COMMANDS[kind]} … --json`"
        ) from None
