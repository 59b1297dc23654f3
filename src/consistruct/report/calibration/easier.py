"""How much easier it is over some distributions of the true label, in words."""

from __future__ import annotations

import math

from consistruct.calibration.proofs.base import short_text
from consistruct.report.calibration.model import CalibrationReport
from consistruct.report.formats import count_text, log_text

__all__ = ["easier"]


def easier(
    report: CalibrationReport,
) -> tuple[str, str, tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Question, answer, details and facts of the section."""
    all_, at = report.restriction, f"ε = {report.at:.4g}"
    assert all_ is not None
    point = next(p for p in report.curve if p.eps == report.at)
    own = None if report.sample_sizes is None else report.sample_sizes.at(point.eps).log10_sharp
    if point.log_lower == -math.inf:
        answer = f"Not at {at}: H is still zero there."
    elif all_.log_upper == -math.inf:
        answer = f"At {at} it becomes possible at all: over all distributions, H is zero there."
    else:
        factor = count_text(point.log_lower - all_.log_upper)
        answer = f"H is {factor} times as large at {at}."
        if own is not None and all_.log10_sharp is not None and math.isfinite(all_.log10_sharp):
            fewer = count_text((all_.log10_sharp - own) * math.log(10))
            answer = (
                f"It takes {fewer} times fewer examples at {at}, because H is {factor} times as "
                "large."
            )
    details = (
        "Everything above covers only these distributions of the true label; close calls that they "
        "exclude do not count. If the data violate the assumption, the guarantee no longer holds.",
    )
    facts = [
        ("distributions", all_.spec),
        ("H over them", log_text(point.log_lower)),
        ("H over all", log_text(all_.log_lower)),
        ("consistency level over all", short_text(all_.level)),
    ]
    if own is not None and all_.log10_sharp is not None:
        sizes = (("N* over them, sharp", own), ("N* over all, sharp", all_.log10_sharp))
        facts += [
            (name, "no number suffices" if n == math.inf else count_text(n * math.log(10)))
            for name, n in sizes
        ]
    return f"How much easier is it if {all_.meaning}?", answer, details, tuple(facts)
