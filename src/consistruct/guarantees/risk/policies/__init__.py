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
from consistruct.losses.base import Loss
from consistruct.protocols import LabelSetLoss, LabelTreeLoss, ListLoss

__all__ = ["POLICIES", "Family", "Policy", "default_policy"]

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


def default_policy(loss: Loss) -> str:
    """Return the name of the policy that suits a loss: the safer predictions that it can score.

    Sets of classes where three classes or more are predicted as themselves, else abstaining.
    """
    if isinstance(loss, LabelTreeLoss):
        return "ancestor"
    if isinstance(loss, ListLoss):
        return "list"
    # label sets of known width: the parts of other Hamming losses have no "may apply"
    binary = loss.hamming_shape is None or (loss.hamming_shape[0] and loss.hamming_shape[1] == 2)
    if isinstance(loss, LabelSetLoss) and binary:
        return "grow"
    predictions, true_labels = loss.predictions, loss.true_labels
    # families of sizes, such as Hamming over sequences, have no size, and no shape to ask for
    several = predictions.size is not None and predictions.size > 2
    same = several and predictions.size == true_labels.size
    if same and predictions.shape == () == true_labels.shape:
        return "sets"
    return "abstain"
