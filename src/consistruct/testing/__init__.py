"""Public conformance checks: does your loss, structure or model keep the contracts?

Each check compares a member with an independent dense evaluation over all of its labels and raises
`AssertionError` with one line that names the broken contract. Run them in your own tests:

>>> from consistruct.losses import Hamming
>>> from consistruct.testing import check_loss
>>> check_loss(Hamming(3))

Use members with few labels (a few hundred at most), including the awkward ones: one label, merged
labels, unequal sizes. `check_huge_loss` and `check_huge_structure` then run every product on a
member with more than 2^200 labels. `check_target_model` runs every rule of a model of the expected
target, `check_metric` those of a metric of the mean confusion.
"""

from consistruct.testing.examples import table_examples
from consistruct.testing.losses import check_huge_loss, check_loss
from consistruct.testing.metrics import check_metric
from consistruct.testing.models import check_target_model
from consistruct.testing.structures import check_huge_structure, check_structure

__all__ = [
    "check_huge_loss",
    "check_huge_structure",
    "check_loss",
    "check_metric",
    "check_structure",
    "check_target_model",
    "table_examples",
]


def __dir__() -> list[str]:
    return sorted(__all__)
