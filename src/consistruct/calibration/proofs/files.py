"""Certificates as JSON text."""

from __future__ import annotations

import json

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

__all__ = ["KINDS", "from_json"]

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
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CertificateError(f"not a JSON text: {error}") from None
    if not isinstance(document, dict) or document.get("kind") not in KINDS:
        given = document.get("kind") if isinstance(document, dict) else type(document).__name__
        raise CertificateError(
            f"not a certificate: its kind must be one of {', '.join(sorted(KINDS))}, got {given!r}"
        )
    if document.get("schema") != SCHEMA:
        raise CertificateError(
            f"certificates of schema {document.get('schema')!r} are not known, only {SCHEMA}"
        )
    try:
        return KINDS[document["kind"]].read(document)
    except REFUSALS as reason:
        raise CertificateError(
            f"a certificate with missing or malformed data: {reason!r}"
        ) from None
