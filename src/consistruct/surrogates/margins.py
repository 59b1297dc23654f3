"""Margins rescaled by the loss: the true label must beat every other one by what that one costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.protocols import FloatArray
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm

__all__ = ["HingeSurrogate", "SoftmaxMarginSurrogate"]


@dataclass(frozen=True, eq=False, repr=False)
class HingeSurrogate(EnumeratedSurrogate):
    """Φ(θ, y) = max_c [L(c, y) + f_c] − f_y: Crammer–Singer, the structured support vector machine.

    An upper bound of the loss of the label with the highest score. Its scores rank the labels and
    tell no expected loss. Ask `calibration_function` for its consistency level first: it is not
    consistent for most losses (0-1 over three or more labels, for one). Piecewise linear, so the
    gradient is a subgradient: the first label that attains the maximum less the true one.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> HingeSurrogate(ZeroOne(3)).value_and_gradient(np.array([[0.0, 0.5, 0.0]]), [0])
    (array([1.5]), array([[-1.,  1.,  0.]]))
    """

    name: ClassVar[str] = "hinge"
    smooth: ClassVar[bool] = False
    excess: ClassVar[ExcessForm | None] = "hinge"

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        own = self._embedding[self._true_labels(true)]
        raised = self._losses(true) + theta @ self._embedding.T
        worst = raised.argmax(axis=1)
        values = raised[np.arange(len(raised)), worst] - np.einsum("nw,nw->n", own, theta)
        return values, self._embedding[worst] - own


@dataclass(frozen=True, eq=False, repr=False)
class SoftmaxMarginSurrogate(EnumeratedSurrogate):
    """Φ(θ, y) = log Σ_c e^{L(c, y) + f_c} − f_y: the log loss with costs, a smooth hinge.

    An upper bound of the hinge, so of the loss of the label with the highest score. Its scores
    rank the labels; like the hinge it is not consistent in general.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, _ = SoftmaxMarginSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> bool(np.allclose(value, np.log(1 + np.e)))
    True
    """

    name: ClassVar[str] = "softmax-margin"

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        own = self._embedding[self._true_labels(true)]
        raised = self._losses(true) + theta @ self._embedding.T
        values = scipy.special.logsumexp(raised, axis=1) - np.einsum("nw,nw->n", own, theta)
        return values, scipy.special.softmax(raised, axis=1) @ self._embedding - own
