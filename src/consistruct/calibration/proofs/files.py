"""Certificates as JSON text."""

from __future__ import annotations

import json
import reprlib
from typing import Any

from consistruct.calibration.proofs.base import REFUSALS, SCHEMA, PlainCertificate
from consistruct.calibration.proofs.bregman import BregmanCertificate
from consistruct.calibration.proofs.chain import ChainCertificate
from consistruct.calibration.proofs.divergence import DivergenceCertificate
from consistruct.calibration.proofs.hamming import HammingCertificate
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.mixed import MixedCertificate
from consistruct.calibration.proofs.oracle import ORACLE_KINDS
from consistruct.calibration.proofs.polyhedral import PolyhedralCertificate
from consistruct.calibration.proofs.restricted import RestrictedCertificate
from consistruct.calibration.proofs.sets import SetCertificate
from consistruct.calibration.proofs.ties import TiesCertificate
from consistruct.exceptions import CertificateError

__all__ = ["KINDS", "from_document", "from_json", "read_document"]

DEEPEST = 200  # levels of lists and objects: trees of cuts have some ten levels of two
TOO_DEEP = f"its lists and objects are nested deeper than {DEEPEST} levels"

CLASSES: tuple[type[PlainCertificate], ...] = (
    ListedCertificate,
    MixedCertificate,
    HammingCertificate,
    *ORACLE_KINDS.values(),
    ChainCertificate,
    SetCertificate,
    RestrictedCertificate,
    PolyhedralCertificate,
    DivergenceCertificate,
    BregmanCertificate,
    TiesCertificate,
)
KINDS: dict[str, type[PlainCertificate]] = {cls.kind: cls for cls in CLASSES}


def from_json(text: str) -> PlainCertificate:
    """Read a certificate that `to_json` wrote; raises CertificateError if it is none.

    Reading proves nothing: call `check`.

    Examples
    --------
    >>> import consistruct as cs
    >>> text = cs.calibration_function(cs.losses.ZeroOne(3)).certificate(0.5).to_json()
    >>> certificate = from_json(text)
    >>> certificate.check()
    >>> certificate.pair
    (0, 1)
    """
    return from_document(read_document(text))


def read_document(text: str) -> dict[str, Any]:
    """Return the JSON object of a certificate of this schema; raises CertificateError otherwise.

    An object that names a key twice states two things, and readers differ in which one they take.
    """
    try:
        document = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise CertificateError(f"not a certificate: {TOO_DEEP}") from None
    except CertificateError:
        raise
    except ValueError as error:
        raise CertificateError(f"not a JSON text: {error}") from None
    kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
    if not isinstance(document, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise CertificateError(
            f"not a certificate: its kind must be one of {', '.join(sorted(KINDS))}, "
            f"got {reprlib.repr(kind)}"
        )
    if document.get("schema") != SCHEMA:
        raise CertificateError(
            f"certificates of schema {reprlib.repr(document.get('schema'))} are not read, only of "
            f"schema {SCHEMA}; make it again with certificate(eps).to_json()"
        )
    if _is_deep(document):
        raise CertificateError(f"not a certificate: {TOO_DEEP}")
    return document


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise CertificateError(
            f"not a certificate: an object has the key {reprlib.repr(double)} twice"
        )
    return found


def _is_deep(document: Any) -> bool:
    """Whether lists and objects are nested deeper than those of any certificate."""
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


def from_document(document: dict[str, Any]) -> PlainCertificate:
    """Return the certificate that `read_document` read; raises CertificateError if data miss."""
    try:
        return KINDS[document["kind"]].read(document)
    except REFUSALS as reason:
        raise CertificateError(
            f"a certificate with missing or malformed data: {reason!r}"
        ) from None
