"""Every certificate and its exact check.

A certificate is plain data that proves lower ≤ H(ε) ≤ upper; `checkers/` has one file per kind that
checks it with Python's standard library alone, and each of them can be run by itself.
"""

from consistruct.calibration.proofs.base import Certificate, Exact, PlainCertificate
from consistruct.calibration.proofs.files import KINDS, from_json
from consistruct.calibration.proofs.hamming import HammingCertificate
from consistruct.calibration.proofs.listed import ListedCertificate
from consistruct.calibration.proofs.mixed import MixedCertificate
from consistruct.calibration.proofs.oracle import OracleCertificate
from consistruct.calibration.proofs.polyhedral import PolyhedralCertificate
from consistruct.exceptions import CertificateError

__all__ = [
    "KINDS",
    "Certificate",
    "CertificateError",
    "Exact",
    "HammingCertificate",
    "ListedCertificate",
    "MixedCertificate",
    "OracleCertificate",
    "PlainCertificate",
    "PolyhedralCertificate",
    "from_json",
]
