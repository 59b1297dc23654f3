"""A fast certified method for explicit loss matrices with full scores."""

from __future__ import annotations

from consistruct.calibration.explicit.certificate import verify
from consistruct.calibration.explicit.curve import ExplicitCurve, Multipliers, explicit_curve

__all__ = ["ExplicitCurve", "Multipliers", "explicit_curve", "verify"]
