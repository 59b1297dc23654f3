"""What every certificate is: plain data, a JSON text, a check that trusts arithmetic alone.

And how its exact numbers become floats: outward.
"""

from __future__ import annotations

import dataclasses
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from consistruct._plain_data import dump, load
from consistruct.calibration.proofs.checkers import listed
from consistruct.exceptions import CertificateError, ConsistructError
from consistruct.losses.base import Loss
from consistruct.protocols import FloatArray, LabelArray

__all__ = [
    "REFUSALS",
    "Certificate",
    "Exact",
    "LawCertificate",
    "PlainCertificate",
    "WorstLaw",
    "down",
    "encode",
    "law_of_numbers",
    "log_down",
    "log_up",
    "plain",
    "probabilities",
    "up",
]

Exact = int | float | str | Fraction  # a number without rounding: strings are "p/q"

SCHEMA = 1
LOG_ERROR = 8 * 2.0**-52  # of math.log of an integer ratio, relative to |log| + 1
DECIMAL_BITS = 600  # longer integers are written in hexadecimal, which Python reads at any length
# raised by a checker, or by Python on data of the wrong form
REFUSALS = (
    listed.Refused, KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class WorstLaw:
    """The distribution of the truth that makes a loss hard.

    Attributes
    ----------
    pair : (better, predicted), as labels
    truths : the truths that have probability; or groups of them in words, {i} and {j} for the pair
    law : (m,) their probabilities
    """

    pair: tuple[Any, Any]
    truths: LabelArray | list[str]
    law: FloatArray


class Certificate(Protocol):
    """Proof of lower ≤ H(ε)·exp(−log_scale) ≤ upper."""

    @property
    def eps(self) -> Any: ...

    @property
    def lower(self) -> Any: ...

    @property
    def upper(self) -> Any: ...

    @property
    def scale(self) -> Fraction | None:
        """exp(log_scale) where both bounds are exact; None where they are floats."""

    @property
    def log_scale(self) -> float: ...

    @property
    def pair(self) -> tuple[Any, Any]:
        """The labels (i, j): j is predicted though i is better."""

    def check(self) -> None:
        """Recompute both bounds; raise CertificateError if they fail."""

    def worst_law(self, loss: Loss) -> WorstLaw:
        """The distribution of the truth under which the upper end is attained."""


class PlainCertificate(ABC):
    """A certificate that is plain data and goes through JSON: lower ≤ H(ε)/scale ≤ upper.

    Numbers are exact: integers, floats (dyadic rationals), fractions.
    """

    kind: ClassVar[str]
    eps: Any
    lower: Any
    upper: Any

    @property
    def scale(self) -> Fraction:
        """H(ε) lies between lower · scale and upper · scale; follows from the data."""
        return Fraction(1)

    @property
    def log_scale(self) -> float:
        """log of `scale`."""
        return math.log(self.scale.numerator) - math.log(self.scale.denominator)

    def document(self) -> dict[str, Any]:
        """The fields as plain JSON data, without kind and schema."""
        found: dict[str, Any] = dump(self, encode)
        return found

    @classmethod
    def read(cls, document: dict[str, Any]) -> Self:
        """From what `document` gives, with or without kind and schema."""
        names = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if unknown := set(document) - names - {"kind", "schema"}:
            raise CertificateError(f"unknown fields {sorted(unknown)}")
        found: Self = load(cls, document)
        return found

    @staticmethod
    @abstractmethod
    def verify(document: dict[str, Any]) -> None:
        """Raise `Refused` unless the data prove the claim."""

    def check(self) -> None:
        """Recompute both ends exactly; raise CertificateError unless they are proved."""
        try:
            self.verify({"kind": self.kind, **self.document()})
        except REFUSALS as reason:
            refused = type(reason).__name__ == "Refused"  # every checker has its own
            said = str(reason) if refused else f"malformed: {reason!r}"
            raise CertificateError(f"this certificate proves nothing: {said}") from None

    def to_json(self) -> str:
        """One JSON object: everything that a check needs, nothing else."""
        document = {"schema": SCHEMA, "kind": self.kind, **self.document()}
        return json.dumps(document, allow_nan=False)

    def worst_law(self, loss: Loss) -> WorstLaw:
        """The distribution of the truth under which the upper end is attained."""
        raise ConsistructError(
            f"a {type(self).__name__} does not say under which distribution of the truth it holds"
        )


class LawCertificate(PlainCertificate):
    """A certificate whose pair and distribution are numbers of listed labels."""

    pair: Any
    law: Any

    @property
    def probabilities(self) -> list[float]:
        """`law` as probabilities, rounded."""
        return probabilities(self.law)

    def worst_law(self, loss: Loss) -> WorstLaw:
        return law_of_numbers(loss, self.pair, np.array(self.probabilities))


def law_of_numbers(loss: Loss, pair: tuple[int, int], law: FloatArray) -> WorstLaw:
    """Where labels are listed: from the numbers of the pair and the probability of every truth."""
    better, predicted = loss.predictions.unindex(np.array(pair)).tolist()
    return WorstLaw((better, predicted), loss.truths.enumerate(), law)


def encode(value: Any) -> Any:
    """A number or text for JSON: fractions become strings "p/q"."""
    if isinstance(value, Fraction):
        if value.denominator == 1 and abs(value.numerator) < 2**53:
            return value.numerator
        top, bottom = value.numerator, value.denominator
        if max(top.bit_length(), bottom.bit_length()) > DECIMAL_BITS:
            return f"{top:#x}/{bottom:#x}"
        return f"{top}/{bottom}"
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"a certificate contains plain data, not {type(value).__name__}")


def probabilities(law: Sequence[Exact]) -> list[float]:
    """Exact weights, normalised and rounded."""
    weights = [listed.number(x) for x in law]
    total = sum(weights, Fraction(0))
    return [float(x / total) for x in weights]


def plain(value: Fraction) -> Exact:
    """A float where that is exact, else the fraction."""
    found = float(value)
    return found if Fraction(found) == value else value


# --- from rationals to floats, outward ---


def down(x: Fraction) -> float:
    """The largest float that is at most x ≥ 0 or so: one comparison after rounding to nearest."""
    try:
        found = float(x)
    except OverflowError:
        return math.copysign(math.nextafter(math.inf, 0.0), 1) if x > 0 else -math.inf
    return found if found <= x else math.nextafter(found, -math.inf)


def up(x: Fraction) -> float:
    """The smallest float that is at least x."""
    try:
        found = float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.nextafter(math.inf, 0.0)
    return found if found >= x else math.nextafter(found, math.inf)


def _log(x: Fraction) -> float:
    """log x for x > 0 of any size."""
    shift = x.numerator.bit_length() - x.denominator.bit_length()
    mantissa = x / Fraction(2) ** shift
    return math.log(float(mantissa)) + shift * math.log(2.0)


def log_down(x: Fraction) -> float:
    """A float below log x; −inf at 0."""
    if x <= 0:
        return -math.inf
    value = _log(x)
    return value - LOG_ERROR * (abs(value) + 1)


def log_up(x: Fraction) -> float:
    """A float above log x; −inf at 0."""
    if x <= 0:
        return -math.inf
    value = _log(x)
    return value + LOG_ERROR * (abs(value) + 1)
