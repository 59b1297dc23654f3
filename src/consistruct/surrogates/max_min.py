"""Max-min margin: the hinge of an adversary who chooses the distribution of the true label."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy  # its submodules are imported on use
from numpy.typing import ArrayLike

from consistruct.exceptions import ConsistructError
from consistruct.protocols import FloatArray
from consistruct.surrogates.base import EnumeratedSurrogate, ExcessForm

__all__ = ["MaxMinMarginSurrogate"]

ROWS_AT_ONCE = 128  # examples that share one linear program


@dataclass(frozen=True, eq=False, repr=False)
class MaxMinMarginSurrogate(EnumeratedSurrogate):
    """Φ(θ, y) = max_p [min_c (Lp)_c + ⟨f, p⟩] − f_y over probability distributions p, f = Fθ.

    Consistent for more losses than the hinge (0-1 at any number of labels, for one). A subgradient
    is p − e_y at the best p, one linear program with an unknown per label and example: for tens of
    labels and thousands of examples, not more. Its scores rank the labels and tell no expected
    loss. Reference: Nowak-Vila, Bach, Rudi, "Consistent structured prediction with max-min margin
    Markov networks", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.losses import ZeroOne
    >>> value, _ = MaxMinMarginSurrogate(ZeroOne(2)).value_and_gradient(np.zeros((1, 2)), [0])
    >>> value          # the value of the game: either label, at even odds
    array([0.5])
    """

    name: ClassVar[str] = "max-min-margin"
    smooth: ClassVar[bool] = False
    excess: ClassVar[ExcessForm | None] = "max-min"

    @cached_property
    def _matrix(self) -> FloatArray:
        """L, (k, m)."""
        return self.loss.matrix()

    def value_and_gradient(
        self, theta: FloatArray, true: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        own = self._embedding[self._true_labels(true)]
        named = self._all_true_labels[0]
        scores = (theta @ self._embedding.T)[:, named]
        values, distributions = np.empty(len(theta)), np.empty_like(scores)
        for start in range(0, len(theta), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            values[part], distributions[part] = self._games(scores[part])
        values = values - np.einsum("nw,nw->n", own, theta)
        return values, distributions @ self._embedding[named] - own

    def _games(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """max_p [min_c (Lp)_c + ⟨f, p⟩] of each row: values (n,) and distributions (n, m)."""
        k, m = self._matrix.shape
        n = len(scores)
        # variables (p, r) of each row with r ≤ (Lp)_c, Σp = 1
        game = np.hstack([-self._matrix, np.ones((k, 1))])
        total = np.append(np.ones(m), 0.0)[None]
        solve: Any = scipy.optimize.linprog  # its stubs know no sparse matrices
        found = solve(
            -np.hstack([scores, np.ones((n, 1))]).ravel(),
            A_ub=scipy.sparse.kron(scipy.sparse.eye_array(n), game, format="csr"),
            b_ub=np.zeros(n * k),
            A_eq=scipy.sparse.kron(scipy.sparse.eye_array(n), total, format="csr"),
            b_eq=np.ones(n),
            bounds=([(0.0, None)] * m + [(None, None)]) * n,
            method="highs",
        )
        if found.status != 0:
            raise ConsistructError(
                f"the linear program of the max-min margin was not solved: {found.message}; "
                f"scores must be finite and of moderate size"
            )
        distributions = np.maximum(found.x.reshape(n, m + 1)[:, :m], 0.0)
        distributions /= distributions.sum(axis=1, keepdims=True)
        values = (distributions @ self._matrix.T).min(axis=1) + np.einsum(
            "nm,nm->n", scores, distributions
        )
        return values, distributions
