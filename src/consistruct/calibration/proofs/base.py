"""Certificates as objects: plain data that a search found, and what they are compared with.

What a claim means and how it is checked is in `consistruct.certificates`, which trusts nothing
here. This file holds what all kinds share, and how their exact numbers become floats: outward.
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

from consistruct import certificates
from consistruct._plain_data import dump, load
from consistruct.calibration.proofs.comparing import check_space, different_matrix, different_scores
from consistruct.certificates import MALFORMED, SCHEMA, Refused, Statement
from consistruct.certificates.exact import fraction_text, number
from consistruct.exceptions import CertificateError, ConsistructError
from consistruct.losses.base import Loss, as_loss
from consistruct.protocols import FloatArray, LabelArray
from consistruct.structures import Structure

__all__ = [
    "Certificate",
    "DistributionCertificate",
    "Exact",
    "MatrixCertificate",
    "PlainCertificate",
    "WorstDistribution",
    "distribution_of_numbers",
    "down",
    "encode",
    "log_down",
    "log_up",
    "plain",
    "probabilities",
    "short_text",
    "up",
]

Exact = int | float | str | Fraction  # a number without rounding: strings are "p/q"

LOG_ERROR = 8 * 2.0**-52  # of math.log of an integer ratio, relative to |log| + 1


@dataclass(frozen=True, eq=False)
class WorstDistribution:
    """The distribution of the true label that makes a loss hard.

    Attributes
    ----------
    pair : (better, predicted), as labels
    true_labels : the true labels that have probability; or groups of them in words, {i} and {j} for
    the pair
    distribution : (m,) their probabilities
    """

    pair: tuple[Any, Any]
    true_labels: LabelArray | list[str]
    distribution: FloatArray


class Certificate(Protocol):
    """Plain data that prove lower ≤ H(ε)·exp(−log_scale) ≤ upper."""

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

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        """The distribution of the true label under which the upper end is attained."""


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

    @property
    def faster(self) -> dict[str, Any]:
        """Programs that decide a part of the check in less time; see `certificates.verify`."""
        return {}

    @property
    def exact_eps(self) -> Fraction:
        """ε without rounding."""
        return number(self.eps)

    @property
    def exact_interval(self) -> tuple[Fraction, Fraction]:
        """H(ε) is between these, without rounding."""
        return number(self.lower) * self.scale, number(self.upper) * self.scale

    @property
    def statement(self) -> Statement:
        """The problem that the claim is about, in words and as a hash."""
        return certificates.statement({"kind": self.kind, **self.document()})

    @abstractmethod
    def different_loss(self, loss: Loss) -> str | None:
        """How the loss of the claim differs from another one; None where it does not."""

    @abstractmethod
    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        """How the scores of the claim differ from others on a loss; None where they do not."""

    def check(self, loss: Loss | str | None = None, scores: Structure | str | None = None) -> None:
        """Recompute both ends exactly; raise CertificateError unless they are proved.

        Parameters
        ----------
        loss : Loss or str, optional
            The loss that the claim should be about: another one is refused.
        scores : ScoreSpace or str, optional
            Its scores, such as "own" or "full"; they need the loss.
        """
        self._check_problem(loss, scores)
        try:
            document = {"kind": self.kind, **self.document()}
            certificates.verify(document, **self.faster)
        except MALFORMED as reason:  # Refused among them; or data that cannot be written down
            message = str(reason) if isinstance(reason, Refused) else f"malformed: {reason!r}"
            raise CertificateError(f"this certificate proves nothing: {message}") from None

    def _check_problem(self, loss: Loss | str | None, scores: Structure | str | None) -> None:
        """Refuse a claim about something else than the loss and the scores that a user names."""
        if loss is None:
            if scores is not None:
                raise ConsistructError("to compare the scores, pass the loss that they are for too")
            return
        own = as_loss(loss)
        try:
            different = self.different_loss(own)
            if different is None and scores is not None:
                different = self.different_scores(own, check_space(own, scores))
        except MALFORMED as reason:
            raise CertificateError(
                f"this certificate could not be compared with {own!r}: {reason}"
            ) from None
        if different is not None:
            raise CertificateError(f"this certificate is about another problem: {different}")

    def to_json(self) -> str:
        """One JSON object: everything that a check needs, nothing else."""
        document = {"schema": SCHEMA, "kind": self.kind, **self.document()}
        return json.dumps(document, allow_nan=False)

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        """The distribution of the true label under which the upper end is attained."""
        raise ConsistructError(
            f"a {type(self).__name__} does not state under which distribution of the true label it "
            "holds"
        )


class DistributionCertificate(PlainCertificate):
    """A certificate whose pair and distribution are numbers of listed labels."""

    pair: Any
    distribution: Any

    @property
    def probabilities(self) -> list[float]:
        """`distribution` as probabilities, rounded."""
        return probabilities(self.distribution)

    def worst_distribution(self, loss: Loss) -> WorstDistribution:
        return distribution_of_numbers(loss, self.pair, np.array(self.probabilities))


class MatrixCertificate(DistributionCertificate):
    """A certificate about a loss matrix whose scores are listed, or one for each prediction."""

    loss: Any

    def different_loss(self, loss: Loss) -> str | None:
        return different_matrix(self.loss, loss)

    def different_scores(self, loss: Loss, space: Structure) -> str | None:
        return different_scores(None, None, loss, space)


def distribution_of_numbers(
    loss: Loss, pair: tuple[int, int], distribution: FloatArray
) -> WorstDistribution:
    """Where labels are listed: from the numbers of the pair and the probability of every label."""
    better, predicted = loss.predictions.unindex(np.array(pair)).tolist()
    return WorstDistribution((better, predicted), loss.true_labels.enumerate(), distribution)


def encode(value: Any) -> Any:
    """A number or text for JSON: fractions become strings "p/q"."""
    if isinstance(value, Fraction):
        if value.denominator == 1 and abs(value.numerator) < 2**53:
            return value.numerator
        return fraction_text(value)
    if value is None or isinstance(value, int | float | str):
        return value
    raise TypeError(f"a certificate contains plain data, not {type(value).__name__}")


def probabilities(distribution: Sequence[Exact]) -> list[float]:
    """Exact weights, normalized and rounded."""
    weights = [number(x) for x in distribution]
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


def short_text(x: float) -> str:
    """Return six digits of a number, marked where they are not all of it.

    >>> short_text(0.1), short_text(1 / 3), short_text(0.30000000000000004)
    ('0.1', '≈ 0.333333', '0.3')
    """
    text = f"{x:g}"
    return text if abs(float(text) - x) <= 4 * math.ulp(x) else f"≈ {text}"
