"""A fast certified method for explicit loss matrices with full scores.

Read `_pair` for the problem of one pair and its dual, `_search` for the order in which pairs and ε
are visited, `_dual` for lower bounds, `_exact` for upper ones, `verification` for a check of both.
"""

from __future__ import annotations

from consistruct.calibration.methods.explicit_full._dual import DualPoints
from consistruct.calibration.methods.explicit_full.curve import ExplicitCurve, explicit_curve
from consistruct.calibration.methods.explicit_full.verification import verify

__all__ = ["DualPoints", "ExplicitCurve", "explicit_curve", "verify"]
