"""Every certificate and its exact check.

A certificate is plain data that proves lower ≤ H(ε) ≤ upper; `checkers/` has one file per kind that
checks it with Python's standard library alone, and each of them can be run by itself.
"""

from consistruct.calibration.proofs.base import Certificate
from consistruct.calibration.proofs.files import from_json

__all__ = [
    "Certificate",
    "from_json",
]


def __dir__() -> list[str]:
    return sorted(__all__)
