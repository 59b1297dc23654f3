"""Certificates as JSON text."""

from __future__ import annotations

from typing import Any

from consistruct import certificates
from consistruct.calibration.proofs.base import PlainCertificate
from consistruct.calibration.proofs.chain import ChainCertificate
from consistruct.calibration.proofs.hamming import HammingCertificate
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.mixed import MixedCertificate
from consistruct.calibration.proofs.oracle import ORACLE_KINDS
from consistruct.calibration.proofs.polyhedral import PolyhedralCertificate
from consistruct.calibration.proofs.restricted import RestrictedCertificate
from consistruct.calibration.proofs.sets import SetCertificate
from consistruct.calibration.proofs.smooth import (
    BregmanCertificate,
    DivergenceCertificate,
    TiesCertificate,
)
from consistruct.certificates import MALFORMED, NotACertificate
from consistruct.exceptions import CertificateError

__all__ = ["KINDS", "from_document", "from_json", "read_document"]

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
    """Return the JSON object of a certificate; raises CertificateError if there is none."""
    try:
        return certificates.read(text)
    except NotACertificate as error:
        raise CertificateError(str(error)) from None


def from_document(document: dict[str, Any]) -> PlainCertificate:
    """Return the certificate that `read_document` read; raises CertificateError if data miss."""
    try:
        return KINDS[document["kind"]].read(document)
    except MALFORMED as reason:
        raise CertificateError(
            f"a certificate with missing or malformed data: {reason!r}"
        ) from None
