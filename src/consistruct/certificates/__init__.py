"""Certificates: plain data that prove lower ≤ H(ε) ≤ upper, and what checks them.

A calibration function H states how large the excess risk of a surrogate is at least when a decision
is worse than the best one by ε. Solvers find it; nobody needs to trust them. A certificate is a
JSON document with the problem, both ends, a point that attains the upper end and multipliers that
prove the lower one. Each file here has one kind of claim: what it means (`statement`) and the check
(`verify`), in exact arithmetic; the file begins with the argument that the check follows.

This package imports nothing but Python's standard library, so that it can be run by itself:

    python -m consistruct.certificates certificate.json
    python consistruct-check.pyz certificate.json      # one file, made by `make pyz`

>>> import consistruct as cs
>>> H = cs.calibration_function(cs.losses.ZeroOne(3))
>>> document = read(H.certificate(0.5).to_json())
>>> verify(document)
>>> statement(document).loss
'the 0-1 loss of 3 labels'
"""

from __future__ import annotations

import json
import reprlib
from fractions import Fraction
from types import ModuleType
from typing import Any

from consistruct.certificates import (
    bregman,
    chain,
    divergence,
    hamming,
    listed,
    mixed,
    orders,
    pairs,
    polyhedral,
    restricted,
    sets,
    sizes,
    states,
    ties,
)
from consistruct.certificates.exact import Refused, decimal_text, exact_text, number
from consistruct.certificates.statement import Statement

__all__ = [
    "KINDS",
    "MALFORMED",
    "SCHEMA",
    "NotACertificate",
    "Refused",
    "Statement",
    "claim",
    "read",
    "sentence",
    "statement",
    "verify",
]

SCHEMA = 2  # of the JSON documents; others are refused
DEEPEST = 200  # levels of lists and objects: trees of cuts have some ten levels of two
TOO_DEEP = f"its lists and objects are nested deeper than {DEEPEST} levels"

KINDS: dict[str, ModuleType] = {
    "listed": listed,
    "mixed": mixed,
    "hamming": hamming,
    "orders": orders,
    "pairs": pairs,
    "states": states,
    "sizes": sizes,
    "chain": chain,
    "sets": sets,
    "restricted": restricted,
    "polyhedral": polyhedral,
    "divergence": divergence,
    "bregman": bregman,
    "ties": ties,
}
# what Python raises on data of the wrong form, wherever a check happens to touch it first
MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)


class NotACertificate(ValueError):
    """Say why a text is no certificate of this schema; it proves nothing and claims nothing."""


# --- reading --------------------------------------------------------------------------------------


def read(text: str) -> dict[str, Any]:
    """Return the JSON object of a certificate, or raise `NotACertificate` in one line.

    An object that names a key twice states two things, and readers differ in which one they take;
    a text that is nested without end would exhaust the stack: both are refused.
    """
    try:
        document = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise NotACertificate(f"not a certificate: {TOO_DEEP}") from None
    except NotACertificate:
        raise
    except ValueError as error:
        raise NotACertificate(f"not a JSON text: {error}") from None
    kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
    if not isinstance(document, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise NotACertificate(
            f"not a certificate: its kind must be one of {', '.join(sorted(KINDS))}, "
            f"got {reprlib.repr(kind)}"
        )
    if document.get("schema") != SCHEMA:
        raise NotACertificate(
            f"certificates of schema {reprlib.repr(document.get('schema'))} are not read, only of "
            f"schema {SCHEMA}; make it again with certificate(eps).to_json()"
        )
    if _is_deep(document):
        raise NotACertificate(f"not a certificate: {TOO_DEEP}")
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise NotACertificate(
            f"not a certificate: an object has the key {reprlib.repr(double)} twice"
        )
    return found


def _is_deep(document: Any) -> bool:
    """Return whether lists and objects are nested deeper than those of any certificate."""
    level = [document]
    for _ in range(DEEPEST):
        level = [
            entry
            for value in level
            for entry in (value.values() if isinstance(value, dict) else value)
            if isinstance(entry, dict | list)
        ]
        if not level:
            return False
    return True


# --- the claim and its check ----------------------------------------------------------------------


def claim(document: dict[str, Any]) -> tuple[Fraction, Fraction, Fraction]:
    """Return ε and the interval that H(ε) is claimed to lie in, without rounding.

    Some kinds state the interval in units of a factor that follows from the problem, such as 1/k:
    H itself may be below all floats.
    """
    kind = KINDS[document["kind"]]
    scale = getattr(kind, "scale", None)  # most kinds need none
    factor = Fraction(1) if scale is None else scale(document)
    eps = number(document["fraction" if kind is chain else "eps"], "eps")
    lower, upper = (number(document[name], name) for name in ("lower", "upper"))
    return eps, lower * factor, upper * factor


def statement(document: dict[str, Any]) -> Statement:
    """Return the problem that the claim is about, in words and as a hash."""
    found: Statement = KINDS[document["kind"]].statement(document)
    return found


def sentence(document: dict[str, Any]) -> list[str]:
    """Return what a document claims, in lines that no rounding makes false."""
    eps, lower, upper = claim(document)
    problem = statement(document)
    return [
        f"H(ε) in [{decimal_text(lower, up=False)}, {decimal_text(upper, up=True)}] at "
        f"ε = {exact_text(eps)}",
        *(f"  {name:<14}{words}" for name, words in problem.words.items()),
        f"  {'sha-256':<14}{problem.sha256} (of this problem)",
    ]


def verify(document: dict[str, Any], **faster: Any) -> None:
    """Raise `Refused` unless the document proves its claim.

    `faster` goes to the check of the kind, some of which take a faster program for a part of their
    work (`screen`, `run`, `check_part`); without it nothing but this package is trusted.
    """
    try:
        KINDS[document["kind"]].verify(document, **faster)
        # two proved ends cannot cross: where they do, a check is wrong, whatever it returned
        _, lower, upper = claim(document)
        if lower > upper:
            raise Refused("its lower end is above its upper end")
    except Refused:
        raise
    except MALFORMED as reason:
        raise Refused(f"malformed: {reason!r}") from None
