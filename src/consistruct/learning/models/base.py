"""What every model of the expected target is: fit a conditional mean, return estimates of it.

A model is a scikit-learn estimator (parameters in ``__init__``, clonable) whose `fit` takes true
labels as codes and a `Statistic` that states what of them is averaged. It knows nothing of
decisions: the estimators decode, recalibrate and report, once for all models.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.protocols import FloatArray, IntArray, LabelArray

__all__ = ["OutOfFold", "TargetModel"]


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Estimates of training examples by models that did not see them.

    Attributes
    ----------
    rows : (m,) int array
        Sorted numbers of the training examples (rows, sequences, queries) that were left out.
    expected : (m, width) array, or `Ragged` for sequences and queries
        E[τ(y) | x] of each.
    codes : Ragged, optional
        Their predictions, by models that do not decode `expected`.
    """

    rows: IntArray
    expected: Any
    codes: Any = None


class TargetModel(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """Required: `fit`, which sets ``statistic_``, and `expected`.

    The attributes below are the class's; a model overrides those that differ for it.

    Attributes
    ----------
    kinds : tuple of str
        What examples it takes, of "rows", "sequences" and "queries".
    raw_inputs : bool
        Whether X may be an array of objects, with categories as strings; arrays and CSR matrices
        of numbers, checked, otherwise.
    wants_frames : bool
        Whether a DataFrame of several types stays one, since steps of the user's read its columns.
    takes_missing : bool
        Whether NaN in X is welcome.
    takes_tensors : bool
        Whether X may be a tensor that stays on its device.
    can_stream : bool
        Whether it has ``partial_fit(X, codes, statistic, *, sample_weight, rng)``.
    by_sums : bool
        Whether it learns from sums over rows, which merge, so that one pass is exact.
    uses_cv : bool
        Whether the estimator's ``cv`` is the model's own (`Stack`).
    shrinks : bool
        Whether a penalty pulls its estimates toward their mean, so that out-of-fold rows determine
        how far (least squares); probabilities of other models are taken as they are.
    estimates : bool
        Whether `expected` returns estimates; False for models that only rank labels, which then
        decide.
    decides : bool
        Whether predictions are the model's own (`decisions`), not decoded from `expected`.
    """

    kinds: ClassVar[tuple[str, ...]] = ("rows",)
    raw_inputs: ClassVar[bool] = False
    wants_frames: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    takes_tensors: ClassVar[bool] = False
    can_stream: ClassVar[bool] = False
    by_sums: ClassVar[bool] = False
    uses_cv: ClassVar[bool] = False
    shrinks: ClassVar[bool] = False
    estimates: ClassVar[bool] = True
    decides: ClassVar[bool] = False

    statistic_: Statistic  # what `expected` estimates: the one requested, or the model's own

    @abstractmethod
    def fit(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        """Learn E[τ(y) | x].

        Parameters
        ----------
        X : inputs as the kind of data packs them: (n, d) array, CSR or DataFrame; `PackedTokens`;
            `QueryBatch`
        codes : codes of the labels, (n, …) array or `Ragged`
        statistic : Statistic
            What to average; a model that averages something else states it as ``statistic_``.
        sample_weight : (n,) array of positive numbers, optional
        groups : (n,) array, optional
            Rows of one group belong together when examples are left out.
        rng : numpy Generator
        """

    @abstractmethod
    def expected(self, X: Any) -> Any:
        """E[τ(y) | x], (n, width) for ``statistic_``; `Ragged` for sequences and queries.

        A model that only ranks labels raises `CapabilityError` and has `decisions` instead.
        """

    # --- optional capabilities ---

    def decisions(self, X: Any) -> LabelArray | Any:
        """Predictions as codes, by the model's own rule; needed of models that only rank."""
        return self.statistic_.decode(self.expected(X))

    def out_of_fold(self) -> OutOfFold:
        """Estimates of (some of) the training examples by models that did not see them."""
        raise CapabilityError(
            self,
            "out_of_fold",
            "out-of-fold estimates without refitting",
            "pass cv= to the estimator, which then fits on folds",
        )
