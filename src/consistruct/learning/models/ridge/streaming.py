"""What `Ridge` does with sums instead of rows: add, merge, solve."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import OutOfFold
from consistruct.learning.models.features.feature_maps import (
    KERNELS,
    FeatureMap,
    LinearFeatures,
    check_unused_feature_params,
)
from consistruct.learning.models.ridge.closed_form import output_penalty
from consistruct.learning.models.ridge.from_moments import Examined, solve_moments, standardized
from consistruct.learning.models.ridge.moments import Moments, MomentSums
from consistruct.learning.models.ridge.selection import SELECTION_ROWS
from consistruct.protocols import FloatArray

__all__ = ["FitsMoments"]


class FitsMoments:
    """The part of `Ridge` behind solver="moments"."""

    if TYPE_CHECKING:  # given by Ridge
        features: Any
        standardize: Any
        alpha: Any
        regularizer: str
        fit_intercept: bool
        _own_statistic: Any
        _choose_features: Any

    statistic_: Statistic
    feature_map_: FeatureMap
    moments_: Moments
    coef_: FloatArray
    intercept_: FloatArray
    alpha_: float
    path_: dict[str, FloatArray]
    n_iter_: int
    _out_of_fold: OutOfFold | None
    _summed: FeatureMap  # what `moments_` are sums of: inputs that are standardized afterwards

    def _add_to_moments(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> Self:
        """One more batch, exactly."""
        if not hasattr(self, "moments_"):
            self.statistic_ = self._own_statistic(statistic, None)
            self._summed = self.stream_features(X, codes, weight, self.statistic_, rng)
        part = self._moments_of(self._summed, X, codes, weight)
        before: Moments | None = getattr(self, "moments_", None)
        if before is not None:  # of a plan, perhaps, whose features these are
            part = before + dataclasses.replace(part, key=before.key)
        return self.fit_moments(part, self.statistic_, self._summed)

    def stream_features(
        self,
        X: Any,
        codes: Any,
        weight: FloatArray,
        statistic: Statistic,
        rng: np.random.Generator,
    ) -> FeatureMap:
        """The features of a pass, chosen on some rows; linear ones need none.

        Standardized inputs are made from the moments, after the pass.
        """
        if isinstance(self.features, str) and self.features in KERNELS:
            raise ValueError(
                f"features={self.features!r} is a kernel over all rows, which does not work in a "
                f"single pass; use features='nystroem' or 'random' with kernel={self.features!r}"
            )
        if self.features == "linear":
            check_unused_feature_params(self)
            return LinearFeatures(X.shape[1])
        self.statistic_ = statistic
        return self._choose_features(X, codes, weight, None, rng)

    def _moments_of(
        self,
        features: FeatureMap,
        X: Any,
        codes: Any,
        weight: FloatArray,
        *,
        fast: bool = False,
    ) -> Moments:
        single = fast and features.single(X.dtype)
        sums = MomentSums(features.n_sums, self.statistic_.width, single=single)
        for part in sums.chunks(X.shape[0]):
            rows = features.summed(X[part], single=single)
            sums.add(rows, self.statistic_.values(codes[part]), weight[part])
        return Moments.from_sums(sums)

    def _fit_by_moments(
        self,
        X: Any,
        codes: Any,
        statistic: Statistic,
        weight: FloatArray,
        groups: Any,
        rng: np.random.Generator,
    ) -> Self:
        self.statistic_ = self._own_statistic(statistic, None)
        features = self.stream_features(X, codes, weight, self.statistic_, rng)
        # nothing will be merged with these: float32 inputs may have float32 products
        moments = self._moments_of(features, X, codes, weight, fast=True)
        some = np.arange(X.shape[0])
        if len(some) > SELECTION_ROWS:
            some = np.sort(rng.choice(len(some), size=SELECTION_ROWS, replace=False))
        sample = Examined(X[some], codes[some], weight[some])
        self.fit_moments(moments, self.statistic_, features, sample=sample)
        if groups is not None:
            self._out_of_fold = None
        elif self._out_of_fold is not None:
            self._out_of_fold = OutOfFold(some, self._out_of_fold.expected)
        return self

    def fit_moments(
        self,
        moments: Moments,
        statistic: Statistic,
        features: FeatureMap,
        *,
        sample: Examined | None = None,
        held_out: Any = None,
    ) -> Self:
        """Solve from the sums of a pass over `features.summed(X)` and the values of the statistic.

        Parameters
        ----------
        moments : Moments
        statistic : Statistic
        features : FeatureMap
            Those of the pass.
        sample : Examined, optional
            Rows of the pass whose out-of-fold estimates are wanted.
        held_out : iterable of Examined, optional
            Rows that took no part, by whose task loss one of several penalties is chosen.
        """
        self.moments_, self.statistic_, self.feature_map_ = moments, statistic, features
        self._summed = features
        summed = moments if features.mixing is None else moments.mapped(features.mixing)
        if self.features == "linear" and self.standardize not in ("auto", False):
            summed, scaling = standardized(summed)
            self.feature_map_ = LinearFeatures(features.n_outputs, scaling)
        fit = solve_moments(
            summed,
            self.feature_map_,
            statistic,
            alpha=self.alpha,
            penalty=output_penalty(statistic, self.regularizer),
            fit_intercept=self.fit_intercept,
            sample=sample,
            held_out=held_out,
        )
        self.coef_, self.intercept_ = np.ascontiguousarray(fit.coef.T), fit.intercept
        self.alpha_, self.path_, self.n_iter_ = fit.choice.alpha, fit.choice.path, 1
        self._out_of_fold = None
        if fit.out_of_fold is not None:
            self._out_of_fold = OutOfFold(np.arange(len(fit.out_of_fold)), fit.out_of_fold)
        return self
