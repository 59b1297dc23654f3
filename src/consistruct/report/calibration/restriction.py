"""What a report over some distributions of the truth says of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

from consistruct.report.numbers import dump_magnitude, dump_number, load_magnitude

__all__ = ["Restriction"]


@dataclass(frozen=True)
class Restriction:
    """Which distributions of the truth the report is about, and what holds over all of them.

    Attributes
    ----------
    spec, meaning : str
        Such as ``noise:0.05``, and the same in words.
    level : float
        Consistency level over all distributions.
    log_lower, log_upper : float
        log of both ends of H over all distributions, at the ε of the report.
    log10_sharp : float or None
        log₁₀ of the sharp N* over all distributions there; None where the report has none.
    """

    spec: str
    meaning: str
    level: float
    log_lower: float
    log_upper: float
    log10_sharp: float | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "spec": self.spec,
            "meaning": self.meaning,
            "level": self.level,
            "log_lower": dump_number(self.log_lower),
            "log_upper": dump_number(self.log_upper),
            **(
                {"sharp": None, "sharp_log10": None}
                if self.log10_sharp is None
                else dump_magnitude("sharp", self.log10_sharp)
            ),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, sizes: bool) -> Self:
        """The inverse of `as_dict`; `sizes`: whether the report has sample sizes."""
        return cls(
            data["spec"],
            data["meaning"],
            data["level"],
            -math.inf if data["log_lower"] is None else data["log_lower"],
            -math.inf if data["log_upper"] is None else data["log_upper"],
            load_magnitude(data, "sharp") if sizes else None,
        )
