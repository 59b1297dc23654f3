"""Costs: weighted least squares on cost vectors, finalists chosen by left-out regret."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from consistruct._sparse import to_dense
from consistruct._validation import check_count
from consistruct.decoding.oracles import counted_calls
from consistruct.learning.encoding.kinds import Examples, Rows
from consistruct.learning.models.base import LeftOut, TargetModel
from consistruct.learning.models.costs.candidates import (
    FEW_COLUMNS,
    FIRST_KERNEL,
    JUDGE_POWER,
    LOG_KERNELS,
    SEARCH_ROWS,
    Trial,
    cost_level,
    feature_map,
    level_weight,
    medians,
    search_kernels,
    shape_name,
)
from consistruct.learning.models.costs.logarithm import Logarithm
from consistruct.learning.models.costs.weighted_ridge import (
    WeightedFit,
    fit_weighted,
    output_sketch,
    solve_in_parts,
)
from consistruct.learning.models.features.feature_maps import FeatureMap, Scaling
from consistruct.learning.selection.cross_fitting import cross_fit
from consistruct.learning.statistics import Statistic
from consistruct.losses import Decision
from consistruct.protocols import FloatArray, IntArray

__all__ = ["Costs"]

logger = logging.getLogger(__name__)

KINDS = ("linear", "kernel", "log")
POWERS = (0.0, 1.0, 2.0)
FAST_ROWS, SLOW_ROWS = 600, 120  # judged by regret: with a compiled oracle, and with any other
LANDMARKS, MORE_LANDMARKS = 384, 512
FOLDS = 3  # for models that have no left-out estimates of their own
MOST_ROWS = 20_000  # on which is chosen


class Costs(TargetModel):
    """Predict the costs of a decision, so that the decisions have little regret.

    Least squares on the cost vectors is consistent for any oracle. How well it does with few rows
    depends on which rows count: where noise grows with the costs, rows of large cost drown the
    others. So rows are weighted by 1/m̂(x)^p, m̂(x) the level of the costs at x as a first fit tells
    it (weights that depend on x alone keep consistency), and p, like linear or kernel, is chosen by
    the regret of rows left out. Where all costs have one sign, their logarithms are fitted too: exp
    of that fit, times one factor per entry (Duan 1983), is the expected cost under multiplicative
    noise. Penalties and kernels are chosen by weighted squared errors of rows left out, so that the
    oracle is called for a few finalists only.

    Parameters
    ----------
    models : "auto" or list
        Of "linear", "kernel", "log" and models such as ``Regressor(forest)``, which are
        cross-fitted. "auto" is the first three; "log" is left out where costs have both signs.
    powers : tuple of float
        Powers p that are tried.
    n_landmarks : int, optional
        Rows that a kernel is spanned by: 384 for up to 8 columns, 512 for more if None.
    regret_rows : int, optional
        Rows on which finalists are compared by regret, each of them one call of the oracle per
        finalist: 600 with a compiled oracle, 120 with any other if None; 0 compares by weighted
        squared errors alone and calls no oracle.

    Attributes
    ----------
    portfolio_ : list of dict
        Finalists: name, power, left-out regret and squared error, calls, which one was chosen.
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
    >>> loss = cs.losses.Decision(cs.oracles.GridPath(3, 3))
    >>> model = cs.StructuredPredictor(loss, cs.models.Costs(), random_state=0).fit(X, C)
    >>> model.predict(X[:1]).sum()   # four steps
    4.0
    """

    shrinks = True

    portfolio_: list[dict[str, Any]]
    n_oracle_calls_: int
    _left_out: LeftOut | None = None

    def __init__(
        self,
        models: Any = "auto",
        *,
        powers: tuple[float, ...] = POWERS,
        n_landmarks: int | None = None,
        regret_rows: int | None = None,
    ) -> None:
        self.models = models
        self.powers = powers
        self.n_landmarks = n_landmarks
        self.regret_rows = regret_rows

    # --- fitting ---

    def fit(
        self,
        X: Any,
        truths: Any,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        kinds, powers = self._checked(statistic)
        weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        with counted_calls() as calls:
            self._choose(X, truths, statistic, weight, groups, kinds, powers, rng)
        self.statistic_ = statistic
        self.n_oracle_calls_ = calls.n
        return self

    def _checked(self, statistic: Statistic) -> tuple[list[Any], list[float]]:
        if not isinstance(statistic.loss, Decision):
            raise TypeError(
                f"Costs estimates cost vectors for the loss Decision, got {statistic.loss!r}; use "
                f"Ridge or Regressor"
            )
        kinds = (
            list(KINDS) if isinstance(self.models, str) and self.models == "auto" else self.models
        )
        good = isinstance(kinds, list | tuple) and len(kinds) > 0
        if not good or not all(k in KINDS or isinstance(k, TargetModel) for k in kinds):
            raise ValueError(
                f"models must be 'auto' or a list of 'linear', 'kernel', 'log' and models such "
                f"as Regressor(forest), got {self.models!r}"
            )
        powers = [float(power) for power in self.powers]
        if not powers or not all(0.0 <= power <= 4.0 for power in powers):
            raise ValueError(f"powers must be numbers between 0 and 4, got {self.powers!r}")
        if self.n_landmarks is not None:
            check_count(self.n_landmarks, "n_landmarks")
        if self.regret_rows is not None:
            check_count(self.regret_rows, "regret_rows", minimum=0)
        return list(kinds), powers

    def _choose(
        self,
        X: Any,
        truths: FloatArray,
        statistic: Statistic,
        weight: FloatArray,
        groups: Any,
        kinds: Sequence[Any],
        powers: Sequence[float],
        rng: np.random.Generator,
    ) -> None:
        n = X.shape[0]
        rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
        search = _Search(X, truths, statistic, weight, groups, rows, self, rng)
        search.finalists(kinds, powers)
        best = search.best()
        trial, found = search.trials[best], search.fits[best]
        self.power_, self.alpha_ = trial.power, trial.alpha
        self.portfolio_ = [one_entry(t, place == best) for place, t in enumerate(search.trials)]
        if isinstance(found, TargetModel):
            self.inner_: TargetModel | None = search.refit(found, trial.power)
            self.feature_map_: FeatureMap | None = None
        else:
            features, fitted, link = found
            self.inner_, self.feature_map_ = None, features
            self.coef_, self.intercept_ = search.on_all_rows(features, fitted, link, trial.power)
            self.factors_ = None if link is None else link.factors
            self.range_ = None if link is None else link.range
        estimates = search.estimates[best]
        self._left_out = None if groups is not None else LeftOut(rows, estimates)
        logger.info(
            "costs: %s, power %g, %d finalists", trial.name, trial.power, len(search.trials)
        )

    def expected(self, X: Any) -> FloatArray:
        check_is_fitted(self, "statistic_")
        if self.inner_ is not None:
            return np.asarray(self.inner_.expected(X))
        assert self.feature_map_ is not None
        fitted = self.feature_map_.transform(to_dense(X)) @ self.coef_ + self.intercept_
        if self.factors_ is None:
            return np.asarray(fitted)
        return Logarithm(self.factors_, self.range_).back(fitted)

    def left_out(self) -> LeftOut:
        if self._left_out is None:
            return super().left_out()
        return self._left_out


class _Search:
    """The comparison behind one fit."""

    def __init__(
        self,
        X: Any,
        truths: FloatArray,
        statistic: Statistic,
        weight: FloatArray,
        groups: Any,
        rows: IntArray,
        settings: Costs,
        rng: np.random.Generator,
    ) -> None:
        self.everything = X, truths, weight, groups
        self.X = np.asarray(to_dense(X[rows]), dtype=np.float64)
        self.truths, self.weight = truths[rows], weight[rows]
        self.groups = None if groups is None else np.asarray(groups)[rows]
        self.statistic, self.settings, self.rng = statistic, settings, rng
        self.targets = np.asarray(statistic.values(self.truths), dtype=np.float64)
        self.sketch = output_sketch(self.targets, rng)
        self.trials: list[Trial] = []
        self.fits: list[Any] = []
        self.estimates: list[FloatArray] = []
        self.scaling = Scaling.standard(self.X, self.weight)
        self.inputs = self.scaling(self.X)
        n = len(self.X)
        most = settings.n_landmarks
        if most is None:
            most = LANDMARKS if self.X.shape[1] <= FEW_COLUMNS else MORE_LANDMARKS
        some = min(n, most)
        self.landmarks = np.sort(rng.choice(n, some, replace=False))
        self.sample = np.sort(rng.choice(n, min(n, SEARCH_ROWS), replace=False))
        self.median = medians(self.inputs[self.sample])
        self.judged = self._judged_rows()
        self.known: dict[Any, tuple[FeatureMap, FloatArray]] = {}

    def _judged_rows(self) -> IntArray:
        """Rows on which finalists are compared by regret."""
        asked = self.settings.regret_rows
        if asked is None:
            fast = self.statistic.loss.solver.fast  # type: ignore[attr-defined]
            asked = FAST_ROWS if fast else SLOW_ROWS
        n = len(self.X)
        return np.arange(n) if asked >= n else np.sort(self.rng.choice(n, asked, replace=False))

    def finalists(self, kinds: Sequence[Any], powers: Sequence[float]) -> None:
        """Fit and judge: every power with the better kernel, the best one with the others."""
        first = FIRST_KERNEL if "kernel" in kinds else None
        begun = self._fit(first, np.ones(len(self.X)), self.weight)
        self.first = self._features(first)[0], begun
        self.level = cost_level(begun.left_out)
        self.judge = self.weight * level_weight(self.level, JUDGE_POWER)
        shapes: list[Any] = []
        if "kernel" in kinds:
            targets = self.targets if self.sketch is None else self.targets @ self.sketch
            middle = self.weight * level_weight(self.level, float(np.median(powers)))
            shapes = search_kernels(
                self.inputs, targets, middle, self.judge, self.sample, self.median
            )
        if "linear" in kinds:
            shapes.append(None)
        if shapes:
            for power in powers:
                self._try(shapes[0], power)
            leading = self.trials[self.best()].power
            for shape in shapes[1:]:
                self._try(shape, leading)
        if "log" in kinds and Logarithm.fits(self.targets):
            self._try_logarithms()
        leading = self.trials[self.best()].power if self.trials else None
        for kind in kinds:
            if isinstance(kind, TargetModel):
                for power in powers if leading is None else [leading]:
                    self._try_model(kind, power)

    def _features(self, shape: Any) -> tuple[FeatureMap, FloatArray]:
        if shape not in self.known:
            found = feature_map(shape, self.X, self.scaling, self.landmarks, self.median)
            self.known[shape] = found, np.asarray(found.transform(self.X))
        return self.known[shape]

    def _fit(self, shape: Any, weight: FloatArray, judge: FloatArray) -> WeightedFit:
        features = self._features(shape)[1]
        return fit_weighted(features, self.targets, self.weight * weight, judge, self.sketch)

    def _try(self, shape: Any, power: float) -> None:
        started = time.perf_counter()
        found = self._fit(shape, level_weight(self.level, power), self.judge)
        trial = Trial(shape_name(shape), power, found.squares, alpha=found.alpha)
        self._add(trial, (self._features(shape)[0], found, None), found.left_out, started)

    def _try_logarithms(self) -> None:
        """Log-linear costs, and the best kernel for the logarithms."""
        logs = np.log(np.abs(self.targets))
        sketched = logs if self.sketch is None else logs @ self.sketch
        best = search_kernels(
            self.inputs, sketched, self.weight, self.weight, self.sample, self.median, LOG_KERNELS
        )
        for shape in (None, best[0]):
            started = time.perf_counter()
            features, rows = self._features(shape)
            found = fit_weighted(rows, logs, self.weight, self.weight, self.sketch)
            one = self.weight * level_weight(self.level, 1.0)  # costs in units of their level
            link = Logarithm.of(self.targets, found.left_out, one)
            estimates = link.back(found.left_out)
            trial = Trial(f"log {shape_name(shape)}", 0.0, self._squares(estimates))
            trial.alpha = found.alpha
            self._add(trial, (features, found, link), estimates, started)

    def _squares(self, estimates: FloatArray) -> float:
        """Mean squared error of rows left out, in units of their level."""
        gap = estimates - self.targets
        return float(self.judge @ np.einsum("nd,nd->n", gap, gap)) / float(self.judge.sum())

    def _try_model(self, model: TargetModel, power: float) -> None:
        started = time.perf_counter()
        weight = self.weight * level_weight(self.level, power)
        examples = Examples(
            Rows(self.statistic.loss, None),  # type: ignore[arg-type]
            self.X,
            self.truths,
            weight,
            self.groups,
        )
        left = cross_fit(model, examples, self.statistic, cv=FOLDS, rng=self.rng)
        trial = Trial(type(model).__name__, power, self._squares(left.expected))
        self._add(trial, model, np.asarray(left.expected), started)

    def _add(self, trial: Trial, fit: Any, estimates: FloatArray, started: float) -> None:
        self.trials.append(trial)
        self.fits.append(fit)
        self.estimates.append(estimates)
        rows = self.judged
        if len(rows):
            # regrets less the best values, which are alike for all: cost of what would be done
            with counted_calls() as calls:
                decisions = self.statistic.decode(estimates[rows])
            costs = np.einsum("nd,nd->n", decisions, self.targets[rows])
            trial.regret = float(np.average(costs, weights=self.weight[rows]))
            trial.calls = calls.n
        trial.seconds = time.perf_counter() - started

    def best(self) -> int:
        """The finalist of least left-out regret, or of least squares where none was compared."""
        if len(self.judged):
            return int(np.argmin([trial.regret for trial in self.trials]))
        return int(np.argmin([trial.squares for trial in self.trials]))

    def _every_level(self) -> FloatArray:
        """m̂ of all rows; of those that were not compared by the first fit."""
        X = self.everything[0]
        if X.shape[0] == len(self.level):
            return self.level
        features, begun = self.first
        return np.concatenate(
            [
                cost_level(features.transform(to_dense(X[part])) @ begun.coef + begun.intercept)
                for part in _parts(X.shape[0])
            ]
        )

    def on_all_rows(
        self, features: FeatureMap, fitted: WeightedFit, link: Logarithm | None, power: float
    ) -> tuple[FloatArray, FloatArray]:
        """Coefficients and intercept: those of the choice, or, of more rows, at its penalty."""
        X, truths, weight, _ = self.everything
        if X.shape[0] == len(self.X):
            return fitted.coef, fitted.intercept
        every = weight * level_weight(self._every_level(), power)
        values = self.statistic.values(truths)
        if link is not None:
            values = np.log(np.abs(values))
        parts = (
            (np.asarray(features.transform(to_dense(X[part]))), values[part], every[part])
            for part in _parts(X.shape[0])
        )
        return solve_in_parts(parts, fitted.alpha)

    def refit(self, model: TargetModel, power: float) -> TargetModel:
        """A model that was compared on folds, fitted on all rows."""
        X, truths, weight, groups = self.everything
        return clone(model).fit(
            X,
            truths,
            self.statistic,
            sample_weight=weight * level_weight(self._every_level(), power),
            groups=groups,
            rng=self.rng,
        )


def _parts(n: int) -> Iterator[slice]:
    for start in range(0, n, MOST_ROWS):
        yield slice(start, min(start + MOST_ROWS, n))


def one_entry(trial: Trial, chosen: bool) -> dict[str, Any]:
    """What `portfolio_` and reports show."""
    return {
        "name": f"{trial.name}, weights 1/level^{trial.power:g}" if trial.power else trial.name,
        "status": "used" if chosen else "not used",
        "weight": float(chosen),
        "criterion": trial.squares,
        "task_loss": trial.regret,
        "seconds": trial.seconds,
        "oracle_calls": trial.calls,
    }
