"""``from consistruct.metrics import task_loss``: another name of `consistruct.learning.metrics`."""

import sys
from typing import TYPE_CHECKING

from consistruct.learning import metrics

if TYPE_CHECKING:
    from consistruct.learning.metrics import *  # noqa: F403

sys.modules[__name__] = metrics  # one module under both names
