"""Policies: what safer predictions are. One line each; a test simulates every one of them."""

from consistruct.guarantees.risk.policies.abstention import Abstention, Deferral
from consistruct.guarantees.risk.policies.base import Family, Policy
from consistruct.guarantees.risk.policies.class_sets import ClassSets
from consistruct.guarantees.risk.policies.label_sets import (
    GrowingSets,
    ShrinkingSets,
    ThresholdSets,
)
from consistruct.guarantees.risk.policies.lists import Lists
from consistruct.guarantees.risk.policies.tree_nodes import TreeNodes

__all__ = ["POLICIES", "Family", "Policy"]

POLICIES: dict[str, Policy] = {
    "abstain": Abstention(),
    "sets": ClassSets(),
    "ancestor": TreeNodes(),
    "grow": GrowingSets(),
    "shrink": ShrinkingSets(),
    "threshold": ThresholdSets(),
    "list": Lists(),
    "defer": Deferral(),
}
