"""The comparison behind one fit of `Costs`: few finalists, each with out-of-fold estimates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from consistruct._validation import to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.learning.encoding.kinds import Examples, Rows
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.costs.candidates import (
    FIRST_KERNEL,
    LOG_KERNELS,
    SEARCH_ROWS,
    SELECTION_POWER,
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
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures.decisions import counted_calls

__all__ = ["MANY_ROWS", "MOST_ROWS", "Search", "one_entry", "skipped_entry"]

# compared by regret: with a compiled oracle, and with any other, where regrets are but a veto
FAST_ROWS, SLOW_ROWS = 600, 32
LANDMARKS, MORE_LANDMARKS = 384, 512
MANY_ROWS = 2000
FIRST_STEP, TRIAL_STEP = 3, 2  # every third landmark, every second
FOLDS = 3  # for models that have no out-of-fold estimates of their own
MOST_ROWS = 20_000  # on which is chosen
CLEAR = 1.5  # standard errors by which a out-of-fold regret is clearly worse


class Search:
    """The comparison behind one fit."""

    def __init__(
        self,
        X: Any,
        codes: FloatArray,
        statistic: Statistic,
        weight: FloatArray,
        groups: Any,
        rows: IntArray,
        n_landmarks: int | None,
        regret_rows: int | None,
        rng: np.random.Generator,
    ) -> None:
        self.everything = X, codes, weight, groups
        self.X = np.asarray(to_dense(X[rows]), dtype=np.float64)
        self.codes, self.weight = codes[rows], weight[rows]
        self.groups = None if groups is None else np.asarray(groups)[rows]
        self.statistic, self.rng = statistic, rng
        self.targets = np.asarray(statistic.values(self.codes), dtype=np.float64)
        self.sketch = output_sketch(self.targets, rng)
        self.trials: list[Trial] = []
        self.fits: list[Any] = []
        self.estimates: list[FloatArray] = []
        self.scaling = Scaling.standard(self.X, self.weight)
        self.inputs = self.scaling(self.X)
        n = len(self.X)
        if n_landmarks is None:
            n_landmarks = LANDMARKS if n <= MANY_ROWS else MORE_LANDMARKS
        some = min(n, n_landmarks)
        self.landmarks = np.sort(rng.choice(n, some, replace=False))
        some = min(n, max(SEARCH_ROWS[0], min(n // 5, SEARCH_ROWS[1])))
        self.sample = np.sort(rng.choice(n, some, replace=False))
        self.median = medians(self.inputs[self.sample])
        self.compared = self._compared_rows(regret_rows)
        self.known: dict[Any, tuple[FeatureMap, FloatArray]] = {}

    def _compared_rows(self, requested: int | None) -> IntArray:
        """Rows on which finalists are compared by regret."""
        if requested is None:
            solver = self.statistic.loss.solver
            fast = solver is not None and solver.fast
            requested = FAST_ROWS if fast else SLOW_ROWS
        n = len(self.X)
        return (
            np.arange(n)
            if requested >= n
            else np.sort(self.rng.choice(n, requested, replace=False))
        )

    def finalists(self, kinds: Sequence[Any], powers: Sequence[float]) -> None:
        """Fit and compare: every power with the better kernel, the best one with the others."""
        first = FIRST_KERNEL if "kernel" in kinds else None
        begun = self._fit(first, np.ones(len(self.X)), self.weight)
        self.first = self._features(first)[0], begun
        self.level = cost_level(begun.out_of_fold)
        self.criterion = self.weight * level_weight(self.level, SELECTION_POWER)
        shapes: list[Any] = []
        if "kernel" in kinds:
            targets = self.targets if self.sketch is None else self.targets @ self.sketch
            middle = self.weight * level_weight(self.level, float(np.median(powers)))
            shapes = search_kernels(
                self.inputs, targets, middle, self.criterion, self.sample, self.median
            )
        if "linear" in kinds:
            shapes.append(None)
        if shapes:
            for power in powers:
                self._try(shapes[0], power)
            leading = self.trials[self.best()].power
            for shape in shapes[1:]:  # a linear fit is fast: its own power, by squares
                self._try(shape, leading if shape else self._linear_power(powers))
        if "log" in kinds and Logarithm.fits(self.targets):
            self._try_logarithms()
        found = [self.trials[self.best()].power] if self.trials else list(powers)
        for kind in kinds:
            if isinstance(kind, TargetModel):
                for power in found:
                    self._try_model(kind, power)

    def _features(self, shape: Any) -> tuple[FeatureMap, FloatArray]:
        if shape not in self.known:
            # the first fit is there for the level of the costs alone, a trial for comparison
            step = FIRST_STEP if shape == FIRST_KERNEL else TRIAL_STEP
            self.known[shape] = self._mapped(shape, self.landmarks[::step])
        return self.known[shape]

    def _mapped(self, shape: Any, landmarks: IntArray) -> tuple[FeatureMap, FloatArray]:
        found = feature_map(shape, self.X, self.scaling, landmarks, self.median)
        return found, np.asarray(found.transform(self.X))

    def _fit(self, shape: Any, weight: FloatArray, criterion: FloatArray) -> WeightedFit:
        return self._fit_costs(self._features(shape)[1], weight, criterion)

    def _fit_costs(
        self, rows: FloatArray, weight: FloatArray, criterion: FloatArray
    ) -> WeightedFit:
        return fit_weighted(rows, self.targets, self.weight * weight, criterion, self.sketch)

    def _fit_logs(self, rows: FloatArray) -> tuple[WeightedFit, Logarithm, FloatArray]:
        """The fit, the way back from logarithms, and estimated costs of rows left out."""
        logs = np.log(np.abs(self.targets))
        found = fit_weighted(rows, logs, self.weight, self.weight, self.sketch)
        one = self.weight * level_weight(self.level, 1.0)  # costs in units of their level
        link = Logarithm.of(self.targets, found.out_of_fold, one)
        return found, link, link.back(found.out_of_fold)

    def _linear_power(self, powers: Sequence[float]) -> float:
        fits = [
            self._fit(None, level_weight(self.level, power), self.criterion) for power in powers
        ]
        return powers[int(np.argmin([fit.squares for fit in fits]))]

    def _try(self, shape: Any, power: float) -> None:
        started = time.perf_counter()
        found = self._fit(shape, level_weight(self.level, power), self.criterion)
        trial = Trial(shape_name(shape), power, found.squares, alpha=found.alpha, shape=shape)
        self._add(trial, (self._features(shape)[0], found, None), found.out_of_fold, started)

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
            found, link, estimates = self._fit_logs(rows)
            trial = Trial(f"log {shape_name(shape)}", 0.0, self._squares(estimates), shape=shape)
            trial.alpha = found.alpha
            self._add(trial, (features, found, link), estimates, started)

    def _squares(self, estimates: FloatArray) -> float:
        """Mean squared error of rows left out, in units of their level."""
        gap = estimates - self.targets
        return float(self.criterion @ np.einsum("nd,nd->n", gap, gap)) / float(self.criterion.sum())

    def _try_model(self, model: TargetModel, power: float) -> None:
        started = time.perf_counter()
        weight = self.weight * level_weight(self.level, power)
        examples = Examples(
            Rows(self.statistic.loss, None),  # type: ignore[arg-type]
            self.X,
            self.codes,
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
        rows = self.compared
        if len(rows):
            # regrets less the best values, which are alike for all: cost of what would be done
            with counted_calls() as calls:
                decisions = self.statistic.decode(estimates[rows])
            trial.costs = np.einsum("nd,nd->n", decisions, self.targets[rows])
            trial.regret = float(np.average(trial.costs, weights=self.weight[rows]))
            trial.calls = calls.n
        trial.seconds = time.perf_counter() - started

    def best(self) -> int:
        """The finalist of least squares among those whose out-of-fold regret is not clearly worse.

        Regrets of some hundred rows are too noisy to tell close finalists apart; squared errors of
        all their entries are not. Clearly worse: by more than `CLEAR` standard errors of the paired
        difference. Without regrets, squares alone decide.
        """
        squares = np.array([trial.squares for trial in self.trials])
        if len(self.compared) == 0:
            return int(squares.argmin())
        share = self.weight[self.compared] / self.weight[self.compared].sum()
        costs = np.array([trial.costs for trial in self.trials])  # (finalists, compared rows)
        means = costs @ share
        gaps = costs - costs[means.argmin()]
        spread = (gaps - (gaps @ share)[:, None]) ** 2 @ share**2
        close = gaps @ share <= CLEAR * np.sqrt(spread)
        return int(np.where(close, squares, np.inf).argmin())

    def completed(self, place: int) -> tuple[FeatureMap, WeightedFit, Logarithm | None, FloatArray]:
        """A trial once more, with all landmarks; and its estimates for the rows left out."""
        trial, (features, found, link) = self.trials[place], self.fits[place]
        if trial.shape is None:
            return features, found, link, self.estimates[place]
        features, rows = self._mapped(trial.shape, self.landmarks)
        if link is None:
            found = self._fit_costs(rows, level_weight(self.level, trial.power), self.criterion)
            return features, found, None, found.out_of_fold
        return features, *self._fit_logs(rows)

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
        X, codes, weight, _ = self.everything
        if X.shape[0] == len(self.X):
            return fitted.coef, fitted.intercept
        every = weight * level_weight(self._every_level(), power)
        values = self.statistic.values(codes)
        if link is not None:
            values = np.log(np.abs(values))
        parts = (
            (np.asarray(features.transform(to_dense(X[part]))), values[part], every[part])
            for part in _parts(X.shape[0])
        )
        return solve_in_parts(parts, fitted.alpha)

    def refit(self, model: TargetModel, power: float) -> TargetModel:
        """A model that was compared on folds, fitted on all rows."""
        X, codes, weight, groups = self.everything
        return clone(model).fit(
            X,
            codes,
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


def skipped_entry(kind: Any, limit: float | None) -> dict[str, Any]:
    """What `portfolio_` shows of models that time did not allow."""
    return {
        "name": kind if isinstance(kind, str) else type(kind).__name__,
        "status": f"time_limit of {limit} s would be exceeded",
        "weight": 0.0,
        "criterion": None,
        "task_loss": None,
        "seconds": 0.0,
        "oracle_calls": 0,
    }
