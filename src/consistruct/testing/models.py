"""Models of the expected target: the rules that every one keeps, on data of any kind."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from consistruct.decisions.statistics import ClassProbabilities, Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.encoding.kinds import Examples, take_codes
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.structures import Ragged
from consistruct.testing.contracts import ensure, ensure_close, ensure_raises, reports_errors
from consistruct.testing.examples import flat, frozen, other_code, take_rows

__all__ = ["check_target_model"]

N_TRIED = 5  # rows whose own label is changed, rows that are predicted alone


@reports_errors
def check_target_model(
    model: TargetModel,
    *,
    examples: Examples,
    statistic: Statistic | None = None,
    settings: Mapping[str, Any] | None = None,
    same: tuple[str, ...] = ("n_jobs",),
    exact_weights: bool = True,
    exact_out_of_fold: bool = True,
    tolerance: float = 1e-8,
    random_state: int = 0,
) -> None:
    """Run every rule of a model of the expected target.

    Parameters
    ----------
    model : TargetModel
        With fast settings; it is cloned and never fitted itself.
    examples : Examples
        Training data of a kind that the model takes; `table_examples` makes rows.
    statistic : Statistic, optional
        What to average; the kind's own if None.
    settings : dict, optional
        For every parameter of the model a value other than its present one. Each must change the
        estimates or be refused with an error: a parameter that does neither is ignored. None
        leaves this rule out.
    same : tuple of str
        Parameters that must leave the estimates as they are (workers).
    exact_weights : bool
        Whether a weight of two equals two copies of a row. False for methods whose random draws
        go by rows (bootstrap, stochastic gradients).
    exact_out_of_fold : bool
        Whether a row's own label has no influence on its out-of-fold estimate at all. False where
        settings are chosen on the very same out-of-fold rows.
    tolerance : float
        Relative to the largest estimate.
    random_state : int

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from consistruct.learning.models.regressor import Regressor
    >>> from consistruct.losses import Hamming
    >>> from consistruct.testing import check_target_model, table_examples
    >>> check_target_model(Regressor(LinearRegression()), examples=table_examples(Hamming(2)))
    """
    checks = _ModelChecks(model, examples, statistic, tolerance, random_state)
    checks.parameters()
    checks.fitting()
    if not checks.fitted.estimates:
        checks.ranking_only()
        return
    checks.estimates()
    checks.rows_are_independent()
    checks.seeds_and_copies()
    checks.forgetting()
    if exact_weights:
        checks.weights()
    checks.out_of_fold(exact_out_of_fold)
    if settings is not None:
        checks.settings(settings, same)


class _ModelChecks:
    """One fitted model and the questions put to it."""

    def __init__(
        self,
        model: TargetModel,
        examples: Examples,
        statistic: Statistic | None,
        tolerance: float,
        seed: int,
    ) -> None:
        self.model = model
        self.examples = examples
        self.statistic = examples.kind.statistic() if statistic is None else statistic
        self.tolerance = tolerance
        self.seed = seed
        self.rng = np.random.default_rng(seed)

    # --- helpers ---

    def ensure(self, condition: bool, contract: str, found: str = "") -> None:
        ensure(bool(condition), self.model, contract, found)

    def close(self, actual: Any, expected: Any, contract: str) -> None:
        ensure_close(flat(actual), flat(expected), self.model, contract, tolerance=self.tolerance)

    def fit(
        self, examples: Examples | None = None, model: TargetModel | None = None, **changes: Any
    ) -> TargetModel:
        """A clone, fitted with the same seed each time."""
        examples = self.examples if examples is None else examples
        unfitted = clone(self.model if model is None else model).set_params(**changes)
        return unfitted.fit(
            examples.inputs,
            examples.codes,
            self.statistic,
            sample_weight=examples.weight,
            groups=examples.groups,
            rng=np.random.default_rng(self.seed),
        )

    def inputs(self, rows: Any) -> Any:
        return self.examples.kind.take(self.examples.inputs, np.asarray(rows))

    # --- the rules ---

    def parameters(self) -> None:
        parameters = self.model.get_params(deep=False)
        twin = clone(self.model)
        self.ensure(type(twin) is type(self.model), "a clone has the same class")
        for name, value in parameters.items():
            self.ensure(
                repr(getattr(twin, name)) == repr(value),
                "__init__ stores each parameter under its own name, unchanged",
                name,
            )
        self.ensure(
            self.examples.kind.name in self.model.kinds,
            f"kinds lists the examples that it takes, here {self.examples.kind.name!r}",
        )
        ensure_raises(
            NotFittedError,
            lambda: clone(self.model).expected(self.examples.inputs),
            self.model,
            "expected before fit raises NotFittedError",
        )

    def fitting(self) -> None:
        unfitted = clone(self.model)
        before = repr(unfitted.get_params())
        state = repr(np.random.get_state())  # noqa: NPY002 - the one that must not be used
        examples = frozen(self.examples)
        fitted = unfitted.fit(
            examples.inputs,
            examples.codes,
            self.statistic,
            sample_weight=examples.weight,
            groups=examples.groups,
            rng=np.random.default_rng(self.seed),
        )
        self.ensure(fitted is unfitted, "fit returns the model itself")
        self.ensure(repr(fitted.get_params()) == before, "fit leaves the parameters as they are")
        self.ensure(
            repr(np.random.get_state()) == state,  # noqa: NPY002
            "random numbers come from rng only",
        )
        self.ensure(
            isinstance(getattr(fitted, "statistic_", None), Statistic),
            "fit sets statistic_, a Statistic",
        )
        self.ensure(
            fitted.statistic_.loss == self.statistic.loss, "statistic_ is about the loss given"
        )
        self.fitted = fitted

    def ranking_only(self) -> None:
        ensure_raises(
            CapabilityError,
            lambda: self.fitted.expected(self.examples.inputs),
            self.model,
            "a model that only ranks states it",
        )
        self.ensure(self.fitted.decides, "a model that only ranks decides by itself")
        self.check_decisions(self.fitted.decisions(self.examples.inputs))

    def check_decisions(self, decisions: Any) -> None:
        predictions = self.statistic.loss.predictions
        self.ensure(len(decisions) == len(self.examples), "one decision per example")
        if isinstance(decisions, Ragged):
            return
        try:
            predictions.check(decisions)
        except ValueError as error:
            self.ensure(False, "decisions are predictions of the loss", str(error))

    def estimates(self) -> None:
        expected = self.expected = self.fitted.expected(self.examples.inputs)
        statistic = self.fitted.statistic_
        self.check_form(expected, len(self.examples), "expected gives one row per example")
        projected = statistic.project(expected)
        self.check_form(projected, len(self.examples), "project keeps shapes")
        self.close(statistic.project(projected), projected, "project leaves the hull in place")
        if isinstance(statistic, ClassProbabilities):
            self.ensure(projected.min() >= 0, "probabilities are not negative")
            self.close(projected.sum(axis=1), np.ones(len(projected)), "probabilities sum to one")
        decided = self.fitted.decisions(self.examples.inputs)
        self.check_decisions(decided)
        alike = np.array_equal(flat(decided), flat(statistic.decode(expected)))
        self.ensure(
            alike or self.fitted.decides,
            "decisions decode the estimates, unless the model states that it decides by itself",
        )

    def check_form(self, expected: Any, n: int, contract: str) -> None:
        if not isinstance(expected, Ragged):
            width = self.fitted.statistic_.width
            shape = getattr(expected, "shape", None)
            self.ensure(shape == (n, width), contract, f"shape {shape}, not {(n, width)}")
        self.ensure(len(expected) == n, contract, f"{len(expected)} for {n}")
        numbers = flat(expected)
        self.ensure(numbers.dtype == np.float64, "estimates are float64", f"{numbers.dtype}")
        self.ensure(bool(np.isfinite(numbers).all()), "estimates are finite")

    def rows_are_independent(self) -> None:
        order = self.rng.permutation(len(self.examples))
        self.close(
            self.fitted.expected(self.inputs(order)),
            take_rows(self.expected, order),
            "the estimate of a row does not depend on the order of rows",
        )
        for row in order[:N_TRIED]:
            self.close(
                self.fitted.expected(self.inputs([row])),
                take_rows(self.expected, [row]),
                "the estimate of a row does not depend on the other rows",
            )

    def seeds_and_copies(self) -> None:
        again = self.fit().expected(self.examples.inputs)
        self.ensure(
            np.array_equal(flat(again), flat(self.expected)), "the same seed gives the same fit"
        )
        for how, twin in (
            ("pickle", pickle.loads(pickle.dumps(self.fitted))),
            ("deepcopy", copy.deepcopy(self.fitted)),
        ):
            found = twin.expected(self.examples.inputs)
            self.ensure(
                np.array_equal(flat(found), flat(self.expected)), f"{how} keeps the estimates"
            )

    def forgetting(self) -> None:
        """A second fit knows nothing of the first."""
        model = self.fit()
        half = self.examples.take(np.arange(0, len(self.examples), 2))
        fresh = self.fit(half)
        model.fit(
            half.inputs,
            half.codes,
            self.statistic,
            sample_weight=half.weight,
            groups=half.groups,
            rng=np.random.default_rng(self.seed),
        )
        self.ensure(
            np.array_equal(flat(model.expected(half.inputs)), flat(fresh.expected(half.inputs))),
            "fit forgets what an earlier fit learned",
        )

    def weights(self) -> None:
        n = len(self.examples)
        times = self.rng.integers(1, 4, n)
        weighted = replace(self.examples, weight=times.astype(np.float64))
        repeated = self.examples.take(np.repeat(np.arange(n), times))
        repeated = replace(repeated, weight=np.ones(len(repeated)))
        self.close(
            self.fit(weighted).expected(self.examples.inputs),
            self.fit(repeated).expected(self.examples.inputs),
            "a weight of two equals two copies of a row",
        )

    # --- rows left out ---

    def out_of_fold(self, exact: bool) -> None:
        try:
            left = self.fitted.out_of_fold()
        except CapabilityError:
            return
        self.ensure(isinstance(left, OutOfFold), "out_of_fold gives a OutOfFold")
        n, rows = len(self.examples), np.asarray(left.rows)
        self.ensure(
            rows.ndim == 1 and len(rows) > 0 and rows.dtype.kind == "i", "out_of_fold numbers rows"
        )
        self.ensure(
            bool((np.diff(rows) > 0).all() and rows[0] >= 0 and rows[-1] < n),
            "rows left out are sorted numbers of training examples, each once",
        )
        self.check_form(left.expected, len(rows), "out_of_fold estimates each row that it names")
        if exact:
            self._really_out_of_fold(left)

    def _really_out_of_fold(self, left: OutOfFold) -> None:
        """Another label of a row must not reach its own estimate, and must reach others'."""
        codes = self.examples.codes
        reached = False
        for row in self.rng.permutation(left.rows)[:N_TRIED]:
            other = other_code(codes, int(row))
            if other is None:
                continue
            order = np.arange(len(self.examples))
            order[row] = other
            changed = self.fit(replace(self.examples, codes=take_codes(codes, order)))
            found = changed.out_of_fold()
            self.ensure(np.array_equal(found.rows, left.rows), "labels do not move the folds")
            at = int(np.searchsorted(left.rows, row))
            self.close(
                take_rows(found.expected, [at]),
                take_rows(left.expected, [at]),
                "a row's own label does not reach its out-of-fold estimate",
            )
            reached |= not np.array_equal(flat(found.expected), flat(left.expected))
        self.ensure(reached, "labels of other rows do reach a out-of-fold estimate")

    # --- settings ---

    def results(self, fitted: TargetModel) -> tuple[Any, ...]:
        """All that an estimator takes from a model: estimates, left out ones too, decisions."""
        inputs = self.examples.inputs
        expected = flat(fitted.expected(inputs)) if fitted.estimates else np.zeros(0)
        try:
            left = flat(fitted.out_of_fold().expected)
        except CapabilityError:
            left = np.zeros(0)
        return expected, left, flat(fitted.decisions(inputs)), fitted.decides

    def settings(self, settings: Mapping[str, Any], same: tuple[str, ...]) -> None:
        parameters = self.model.get_params(deep=False)
        missing = sorted(set(parameters) - set(settings) - set(same))
        self.ensure(not missing, "every parameter is tried", f"settings lack {missing}")
        for name, value in settings.items():
            self.ensure(name in parameters, "settings name parameters", f"not {name!r}")
            self.ensure(
                repr(parameters[name]) != repr(value), "settings differ from the present ones", name
            )
            try:
                found = self.results(self.fit(**{name: value}))
            except (ValueError, TypeError) as error:
                self.ensure(
                    name not in same and "\n" not in str(error),
                    "a setting that is not honored is refused in one line",
                    f"{name}={value!r}: {error}",
                )
                continue
            alike = all(map(np.array_equal, found, self.results(self.fitted)))
            if name in same:
                self.ensure(alike, "workers leave the estimates as they are", f"{name}={value!r}")
            else:
                self.ensure(not alike, "no setting is ignored", f"{name}={value!r} changes nothing")
