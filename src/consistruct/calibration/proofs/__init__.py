"""Every kind of certificate as an object, found in exact arithmetic by `provers/`.

What a certificate claims, and the check that trusts nothing here, is in `consistruct.certificates`.
"""

from consistruct.calibration.proofs.base import Certificate
from consistruct.calibration.proofs.files import from_json

__all__ = [
    "Certificate",
    "from_json",
]


def __dir__() -> list[str]:
    return sorted(__all__)
