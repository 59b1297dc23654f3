"""Costs: weighted least squares on cost vectors, finalists chosen by out-of-fold regret."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from consistruct._clock import Deadline, duration
from consistruct._threads import at_most
from consistruct._validation import check_count, check_number, check_unused_params, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.learning.models.costs.logarithm import Logarithm
from consistruct.learning.models.costs.search import (
    MANY_ROWS,
    MOST_ROWS,
    Search,
    one_entry,
    skipped_entry,
)
from consistruct.learning.models.costs.tuning import tuned
from consistruct.learning.models.features.feature_maps import FeatureMap
from consistruct.protocols import FloatArray
from consistruct.structures.decisions import counted_calls
from consistruct.surrogates import make_surrogate

__all__ = ["Costs"]

logger = logging.getLogger(__name__)

KINDS = ("linear", "kernel", "log")
POWERS = (0.0, 1.0, 2.0)
FEWEST_PILOT = 20  # rows of a comparison that is only timed


class Costs(TargetModel):
    """Predict the costs of a decision, so that the decisions have little regret.

    Least squares on the cost vectors is consistent for any oracle. How well it does with few rows
    depends on which rows count: where noise grows with the costs, rows of large cost drown the
    others. So rows are weighted by 1/m̂(x)^p, m̂(x) the level of the costs at x as a first fit
    tells it (weights that depend on x alone keep consistency), and p, like linear or kernel, is
    chosen on rows left out: of the finalists whose regret is not clearly worse than the least one,
    the one of least weighted squared error (regrets alone are too noisy to tell close ones apart).
    Where all costs have one sign, their logarithms are fitted too: exp of that fit, times one
    factor per entry (Duan 1983), is the expected cost under multiplicative noise. Penalties and
    kernels are chosen by weighted squared errors of rows left out, so that the oracle is called for
    a few finalists only.

    Parameters
    ----------
    models : "auto" or list
        Of "linear", "kernel", "log" and models such as ``Regressor(forest)``, which are
        cross-fitted. "auto" is the first three; "log" is left out where costs have both signs.
    powers : tuple of float
        Powers p that are tried.
    n_landmarks : int, optional
        Rows that a kernel is spanned by: 384, or 512 for more than 2,000 rows, if None. Half of
        them are used where kernels are only compared.
    regret_rows : int, optional
        Rows on which finalists are compared by regret, each of them one call of the oracle per
        finalist: 600 with a compiled oracle, 32 with any other if None; 0 compares by weighted
        squared errors alone and calls no oracle.
    surrogate : str or surrogate, optional
        Fine-tune the chosen linear or kernel fit by a surrogate that calls the oracle at every
        step, from the closed form on: "spo-plus", "perturbed-fenchel-young".
    time_limit : float, optional
        Seconds that the comparison may take: after the first of `models` those are tried that, by
        fits on parts of the rows, end in time. What was not stands in `portfolio_`.
    n_epochs : int
        Passes of the fine-tuning over the rows, each one call of the oracle per row or more.

    Attributes
    ----------
    portfolio_ : list of dict
        Finalists: name, power, out-of-fold regret and squared error, calls, which one was chosen.
    n_oracle_calls_ : int
        Problems that the oracle solved during `fit`.
    power_ : float
    alpha_ : float

    Examples
    --------
    >>> import numpy as np, consistruct as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> C = np.exp(X @ rng.normal(size=(3, 12)) / 3) * rng.uniform(0.5, 1.5, (200, 12))
    >>> loss = cs.losses.Decision(cs.structures.GridPath(3, 3))
    >>> model = cs.StructuredPredictor(loss, cs.models.Costs(), random_state=0).fit(X, C)
    >>> float(model.predict(X[:1]).sum())  # four steps
    4.0
    """

    shrinks = True

    portfolio_: list[dict[str, Any]]
    n_oracle_calls_: int
    _out_of_fold: OutOfFold | None = None

    def __init__(
        self,
        models: Any = "auto",
        *,
        powers: tuple[float, ...] = POWERS,
        n_landmarks: int | None = None,
        regret_rows: int | None = None,
        surrogate: Any = None,
        n_epochs: int = 20,
        time_limit: float | None = None,
    ) -> None:
        self.models = models
        self.powers = powers
        self.n_landmarks = n_landmarks
        self.regret_rows = regret_rows
        self.surrogate = surrogate
        self.n_epochs = n_epochs
        self.time_limit = time_limit

    # --- fitting ---

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
        kinds, powers = self._checked(statistic)
        deadline = Deadline(self.time_limit)
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        with counted_calls() as calls, at_most(1 if X.shape[0] <= MANY_ROWS else None):
            late: list[Any] = []
            if self.time_limit is not None:
                kinds, late = self._in_time(
                    X, codes, statistic, weight, groups, kinds, powers, deadline
                )
            self._choose(X, codes, statistic, weight, groups, kinds, powers, rng)
            self.portfolio_ += [skipped_entry(kind, self.time_limit) for kind in late]
        self.statistic_ = statistic
        self.n_oracle_calls_ = calls.n
        return self

    def _checked(self, statistic: Statistic) -> tuple[list[Any], list[float]]:
        if statistic.loss.solver is None:
            raise TypeError(
                f"Costs estimates cost vectors for the loss Decision, got {statistic.loss!r}; use "
                f"Ridge or Regressor"
            )
        kinds = self.models
        if isinstance(kinds, str) and kinds == "auto":
            kinds = KINDS if self.surrogate is None else ("linear", "kernel")
        good = isinstance(kinds, list | tuple) and len(kinds) > 0
        if not good or not all(k in KINDS or isinstance(k, TargetModel) for k in kinds):
            raise ValueError(
                f"models must be 'auto' or a list of 'linear', 'kernel', 'log' and models such "
                f"as Regressor(forest), got {self.models!r}"
            )
        try:
            powers = [float(power) for power in self.powers]
        except (TypeError, ValueError, OverflowError):  # no list, or words in it
            powers = []
        if not powers or not all(0.0 <= power <= 4.0 for power in powers):
            raise ValueError(f"powers must be numbers between 0 and 4, got {self.powers!r}")
        if self.n_landmarks is not None:
            check_count(self.n_landmarks, "n_landmarks")
        if self.regret_rows is not None:
            check_count(self.regret_rows, "regret_rows", minimum=0)
        check_count(self.n_epochs, "n_epochs")
        if self.time_limit is not None:
            check_number(self.time_limit, "time_limit", low=0.0)
        check_unused_params(self, "surrogate", self.surrogate is not None, ("n_epochs",))
        if self.surrogate is not None and not set(kinds) <= {"linear", "kernel"}:
            raise ValueError(
                f"surrogate={self.surrogate!r} fine-tunes only linear and kernel fits; omit other "
                "models"
            )
        return list(kinds), powers

    def _choose(
        self,
        X: Any,
        codes: FloatArray,
        statistic: Statistic,
        weight: FloatArray,
        groups: Any,
        kinds: Sequence[Any],
        powers: Sequence[float],
        rng: np.random.Generator,
    ) -> None:
        n = X.shape[0]
        rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
        search = Search(
            X, codes, statistic, weight, groups, rows, self.n_landmarks, self.regret_rows, rng
        )
        search.finalists(kinds, powers)
        best = search.best()
        trial, found = search.trials[best], search.fits[best]
        self.power_, estimates = trial.power, search.estimates[best]
        self.portfolio_ = [one_entry(t, place == best) for place, t in enumerate(search.trials)]
        if isinstance(found, TargetModel):
            self.inner_: TargetModel | None = search.refit(found, trial.power)
            self.feature_map_: FeatureMap | None = None
            self.alpha_ = trial.alpha
        else:
            features, fitted, link, estimates = search.completed(best)
            self.inner_, self.feature_map_, self.alpha_ = None, features, fitted.alpha
            self.coef_, self.intercept_ = search.on_all_rows(features, fitted, link, trial.power)
            if self.surrogate is not None:
                self._tune(statistic, X, codes, weight, rng)
            self.factors_ = None if link is None else link.factors
            self.range_ = None if link is None else link.range
        lost = groups is not None or self.surrogate is not None
        self._out_of_fold = None if lost else OutOfFold(rows, estimates)
        logger.info(
            "costs: %s, power %g, %d finalists", trial.name, trial.power, len(search.trials)
        )

    def _in_time(
        self,
        X: Any,
        codes: FloatArray,
        statistic: Statistic,
        weight: FloatArray,
        groups: Any,
        kinds: Sequence[Any],
        powers: Sequence[float],
        deadline: Deadline,
    ) -> tuple[list[Any], list[Any]]:
        """The models whose comparison ends in time, by comparisons on parts; and the others."""
        n = X.shape[0]
        tried, late, ahead = [kinds[0]], [], 0.0
        for place, kind in enumerate(kinds):

            def compare(share: float, kind: Any = kind) -> None:
                rng = np.random.default_rng(0)
                rows = np.sort(rng.choice(n, max(FEWEST_PILOT, round(share * n)), replace=False))
                Search(
                    X, codes, statistic, weight, groups, rows, self.n_landmarks,
                    self.regret_rows, rng,
                ).finalists([kind], powers)  # fmt: skip

            time = None if n <= FEWEST_PILOT else duration(compare, deadline.before(ahead))
            if time is not None and (place == 0 or deadline.allows(ahead + time.of(1.0))):
                ahead += time.of(1.0)
                tried += [kind] * (place > 0)
            elif place > 0:
                late.append(kind)
        return tried, late

    def _tune(
        self,
        statistic: Statistic,
        X: Any,
        codes: FloatArray,
        weight: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        """Go on from the closed form, whose out-of-fold estimates hold no longer."""
        assert self.feature_map_ is not None
        features = np.asarray(self.feature_map_.transform(to_dense(X)))
        self.coef_, self.intercept_ = tuned(
            make_surrogate(self.surrogate, statistic.loss),
            features,
            codes,
            weight,
            self.coef_,
            self.intercept_,
            self.n_epochs,
            rng,
        )

    def expected(self, X: Any) -> FloatArray:
        check_is_fitted(self, "statistic_")
        if self.inner_ is not None:
            return np.asarray(self.inner_.expected(X))
        assert self.feature_map_ is not None
        fitted = self.feature_map_.transform(to_dense(X)) @ self.coef_ + self.intercept_
        if self.factors_ is None or self.range_ is None:
            return np.asarray(fitted)
        return Logarithm(self.factors_, self.range_).back(fitted)

    def out_of_fold(self) -> OutOfFold:
        if self._out_of_fold is None:
            return super().out_of_fold()
        return self._out_of_fold
