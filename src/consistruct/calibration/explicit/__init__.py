"""A fast certified method for explicit loss matrices with full scores.

Read `_pair` for the problem of one pair and its dual, `_search` for the order in which pairs and ε
are visited, `_dual` for the lower bounds, `certificate` for the check that trusts none of them.
"""

from __future__ import annotations

from consistruct.calibration.explicit._dual import DualPoints
from consistruct.calibration.explicit.certificate import verify
from consistruct.calibration.explicit.curve import ExplicitCurve, Multipliers, explicit_curve

__all__ = ["DualPoints", "ExplicitCurve", "Multipliers", "explicit_curve", "verify"]
