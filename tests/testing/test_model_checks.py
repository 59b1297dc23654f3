"""The checks of models: good ones pass, each deliberately broken one is caught, by name."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from consistruct.exceptions import CapabilityError
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.learning.models.probabilities import Probabilities
from consistruct.learning.models.regressor import Regressor
from consistruct.learning.statistics import TargetValues
from consistruct.losses import FBeta, Hamming, Kendall, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.testing import check_target_model, table_examples


class Smoother(TargetModel):
    """Kernel smoother with exact leave-one-out: small, honest, and easy to break."""

    def __init__(self, width=1.0, power=2.0, n_jobs=None):
        self.width = width
        self.power = power
        self.n_jobs = n_jobs

    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        self.statistic_ = statistic
        self.X_ = np.asarray(X)
        self.values_ = dense_target(statistic.values(codes))
        self.weight_ = np.ones(len(X)) if sample_weight is None else np.array(sample_weight)
        return self

    def _kernel(self, X):
        apart = np.abs(np.asarray(X)[:, None] - self.X_).sum(axis=2)
        return np.exp(-((apart / self.width) ** self.power)) * self.weight_

    def expected(self, X):
        check_is_fitted(self)
        kernel = self._kernel(X)
        return kernel @ self.values_ / kernel.sum(axis=1, keepdims=True)

    def out_of_fold(self):
        kernel = self._kernel(self.X_)
        np.fill_diagonal(kernel, 0.0)
        estimates = kernel @ self.values_ / kernel.sum(axis=1, keepdims=True)
        return OutOfFold(np.arange(len(self.X_)), estimates)


SETTINGS = {"width": 2.0, "power": 1.0, "n_jobs": 2}
LOSSES = [ZeroOne(4), Hamming(3), Hamming(2, 3), FBeta(3), Kendall(3)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_smoother_passes(loss):
    check_target_model(Smoother(), examples=table_examples(loss), settings=SETTINGS)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(
    ("estimator", "exact", "other"),
    [
        (LinearRegression(), True, PlainRidge()),
        (DecisionTreeRegressor(max_depth=3), False, LinearRegression()),  # draws at ties
        (LinearSVR(C=0.1, max_iter=100_000), False, LinearRegression()),
    ],
    ids=["linear", "tree", "svr"],
)
def test_regressor_passes(loss, estimator, exact, other):
    check_target_model(
        Regressor(estimator),
        examples=table_examples(loss),
        settings={"estimator": other, "n_jobs": 2},
        exact_weights=exact,
    )


@pytest.mark.parametrize("loss", LOSSES[:-1], ids=repr)
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(tol=1e-10), DecisionTreeClassifier(max_depth=3)], ids=repr
)
def test_probabilities_pass(loss, estimator):
    check_target_model(
        Probabilities(estimator),
        examples=table_examples(loss),
        settings={"estimator": GaussianNB(), "n_jobs": 2},
        exact_weights=isinstance(estimator, LogisticRegression),
        tolerance=1e-6,
    )


# --- broken on purpose --------------------------------------------------------------------------


class ChangesParameters(Smoother):
    def __init__(self, width=1.0, power=2.0, n_jobs=None):
        super().__init__(2 * width, power, n_jobs)


class OtherKind(Smoother):
    kinds = ("sequences",)


class AnswersUnfitted(Smoother):
    def expected(self, X):
        return super().expected(X) if hasattr(self, "X_") else np.zeros((len(X), 4))


class ReturnsNothing(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)


class TunesItself(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        self.width = 0.5
        return super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)


class GlobalRandomness(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        np.random.random()  # noqa: NPY002
        return super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)


class WritesIntoWeights(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        sample_weight /= sample_weight.sum()
        return super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)


class NoStatistic(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)
        del self.statistic_
        return self


class OtherLoss(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)
        self.statistic_ = TargetValues(Hamming(2))
        return self


class TooNarrow(Smoother):
    def expected(self, X):
        return super().expected(X)[:, :-1]


class Single(Smoother):
    def expected(self, X):
        return super().expected(X).astype(np.float32)


class NotFinite(Smoother):
    def expected(self, X):
        return super().expected(X) * np.nan


class OwnDecisions(Smoother):
    def decisions(self, X):
        return np.zeros(len(X), dtype=int)


class OutsideDecisions(Smoother):
    def decisions(self, X):
        return np.full(len(X), 17)


class DependsOnOrder(Smoother):
    def expected(self, X):
        return super().expected(X) + np.arange(len(X))[:, None] * 1e-3


class DependsOnOthers(Smoother):
    def expected(self, X):
        found = super().expected(X)
        return found + found.mean(axis=0)


class Unseeded(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)
        self.values_ = self.values_ + 1e-3 * np.random.default_rng().random(self.values_.shape)
        return self


class LosesState(Smoother):
    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "values_": state["values_"] * 0} if "values_" in state else state


class Remembers(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        shift = getattr(self, "shift_", 0.0)
        super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)
        self.values_ = self.values_ + shift
        self.shift_ = 0.1
        return self


class IgnoresWeights(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        return super().fit(X, codes, statistic, rng=rng)


class SeesItself(Smoother):
    def out_of_fold(self):
        return OutOfFold(np.arange(len(self.X_)), self.expected(self.X_))


class Unsorted(Smoother):
    def out_of_fold(self):
        left = super().out_of_fold()
        return OutOfFold(left.rows[::-1], left.expected[::-1])


class TooFewOutOfFold(Smoother):
    def out_of_fold(self):
        left = super().out_of_fold()
        return OutOfFold(left.rows, left.expected[1:])


class BlindOutOfFold(Smoother):
    def out_of_fold(self):
        left = super().out_of_fold()
        return OutOfFold(left.rows, np.zeros_like(left.expected))


class IgnoresSetting(Smoother):
    def _kernel(self, X):
        apart = np.abs(np.asarray(X)[:, None] - self.X_).sum(axis=2)
        return np.exp(-((apart / self.width) ** 2)) * self.weight_


class WorkersMatter(Smoother):
    def expected(self, X):
        return super().expected(X) * (1.0 + 1e-9 * (self.n_jobs or 0))


class LongRefusal(Smoother):
    def fit(self, X, codes, statistic, *, sample_weight=None, groups=None, rng):
        if self.power != 2.0:
            raise ValueError("one line\nand another")
        return super().fit(X, codes, statistic, sample_weight=sample_weight, rng=rng)


@pytest.mark.parametrize(
    ("model", "contract"),
    [
        (ChangesParameters(), "every method runs|unchanged"),
        (OtherKind(), "kinds lists"),
        (AnswersUnfitted(), "expected before fit"),
        (ReturnsNothing(), "fit returns the model itself"),
        (TunesItself(), "leaves the parameters"),
        (GlobalRandomness(), "from rng only"),
        (WritesIntoWeights(), "read-only"),
        (NoStatistic(), "fit sets statistic_"),
        (OtherLoss(), "about the loss given"),
        (TooNarrow(), "one row per example; shape"),
        (Single(), "estimates are float64"),
        (NotFinite(), "estimates are finite"),
        (OwnDecisions(), "decisions decode the estimates"),
        (OutsideDecisions(), "decisions are predictions"),
        (DependsOnOrder(), "order of rows"),
        (DependsOnOthers(), "the other rows"),
        (Unseeded(), "the same seed"),
        (LosesState(), "pickle keeps"),
        (Remembers(), "forgets what an earlier fit"),
        (IgnoresWeights(), "two copies of a row"),
        (SeesItself(), "own label does not reach"),
        (Unsorted(), "sorted numbers"),
        (TooFewOutOfFold(), "out_of_fold estimates each row"),
        (BlindOutOfFold(), "labels of other rows do reach"),
        (IgnoresSetting(), "no setting is ignored; power=1.0"),
        (WorkersMatter(), "workers leave the estimates"),
        (LongRefusal(), "refused in one line"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, TargetModel) else "",
)
def test_broken_models_are_caught(model, contract):
    with pytest.raises(AssertionError, match=contract):
        check_target_model(model, examples=table_examples(ZeroOne(4)), settings=SETTINGS)


def test_settings_must_name_every_parameter():
    examples = table_examples(ZeroOne(4))
    for settings, contract in (
        ({"width": 2.0}, "settings lack \\['power'\\]"),
        ({"width": 2.0, "power": 2.0}, "differ from the present ones"),
        ({**SETTINGS, "depth": 2}, "not 'depth'"),
    ):
        with pytest.raises(AssertionError, match=contract):
            check_target_model(Smoother(), examples=examples, settings=settings)


class RanksOnly(Smoother):
    estimates = False
    decides = True

    def expected(self, X):
        check_is_fitted(self)
        raise CapabilityError(self, "expected", "estimates", "it only ranks")

    def decisions(self, X):
        return np.zeros(len(X), dtype=int)


class RanksQuietly(RanksOnly):
    def expected(self, X):
        check_is_fitted(self)
        return np.zeros((len(X), 4))


class RanksUndecided(RanksOnly):
    decides = False


def test_models_that_only_rank():
    check_target_model(RanksOnly(), examples=table_examples(ZeroOne(4)))
    with pytest.raises(AssertionError, match="only ranks states it"):
        check_target_model(RanksQuietly(), examples=table_examples(ZeroOne(4)))
    with pytest.raises(AssertionError, match="only ranks decides by itself"):
        check_target_model(RanksUndecided(), examples=table_examples(ZeroOne(4)))
