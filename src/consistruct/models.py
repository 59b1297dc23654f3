"""``from consistruct.models import Ridge``: another name of `consistruct.learning.models`."""

import sys
from typing import TYPE_CHECKING

from consistruct.learning import models

if TYPE_CHECKING:
    from consistruct.learning.models import *  # noqa: F403

sys.modules[__name__] = models  # one module under both names; its members are imported on use
