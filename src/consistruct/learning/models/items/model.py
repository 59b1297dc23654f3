"""Items: the expected targets of the items of queries, from features of the items."""

from __future__ import annotations

import dataclasses
from time import monotonic
from typing import Any, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from consistruct._validation import check_number, check_unused_params, is_sparse
from consistruct.decisions.statistics import Statistic
from consistruct.learning.encoding.item_targets import ItemTargets, require_item_scores
from consistruct.learning.encoding.queries import QueryBatch, centered
from consistruct.learning.models.base import OutOfFold, TargetModel
from consistruct.learning.models.features.feature_maps import (
    FeatureOptions,
    check_unused_feature_params,
)
from consistruct.learning.models.items.boosted import BoostedLearner, item_bins
from consistruct.learning.models.items.landmark_ridge import LANDMARKS, LandmarkRidge
from consistruct.learning.models.items.learners import (
    ItemLearner,
    ItemScores,
    TrainingQueries,
    entry,
    training_queries,
)
from consistruct.learning.models.items.out_of_fold import (
    OutOfFoldScores,
    cross_fit_scores,
    query_folds,
)
from consistruct.learning.models.items.portfolio import fit_portfolio
from consistruct.learning.models.items.regressors import RegressorLearner, forest
from consistruct.learning.models.items.ridge import RidgeLearner, RidgeScores
from consistruct.protocols import FloatArray
from consistruct.structures import Ragged

__all__ = ["Items"]

MODELS = ("auto", "ridge", "trees")
RIDGE_SETTINGS = (
    "features",
    "kernel",
    "bandwidth",
    "degree",
    "coef0",
    "n_components",
    "standardize",
    "alpha",
    "selection",
)


class Items(TargetModel):
    """One score per item of a query, for losses on rankings: NDCG, precision, rank utility.

    Orders do not change if all scores of a query move together, so every learner estimates the
    targets less their mean in the query. Sorting by the estimates is consistent for losses that
    item scores express; average precision and graded pairs need ``scores="items"``, which accepts
    that they are not.

    Parameters
    ----------
    model : "auto", "ridge", "trees" or a scikit-learn regressor
        "ridge": closed form on linear or kernel features, everything chosen by leaving out single
        queries; best for few queries, smooth scores and sparse features. "trees": gradient
        boosting within queries and a forest, averaged with weights found on out-of-fold queries;
        for tables with thresholds and interactions, takes missing values. A regressor: fitted on
        the item targets, one item per row. "auto": ridge, linear and with a kernel on few
        landmarks, and trees, averaged likewise; ridge alone for sparse inputs, trees alone where
        values are missing.
    features, kernel, bandwidth, degree, coef0, n_components, standardize, alpha
        Of ridge, as in `Ridge`.
    selection : "task_loss" or "surrogate"
        What the penalty of ridge is chosen by.
    scores : None or "items"
        "items" sorts by item scores where the loss needs scores of pairs.
    cv : int, splitter or None
        How queries are left out. None: one by one for ridge, which is exact; five folds, three for
        larger data, for trees, whose fits on the folds are averaged. With folds of your own all
        models are judged by them and fitted again on all queries.
    time_limit : float or None
        Seconds that "auto" may take: after the first, fastest learner it tries those that, by fits
        on parts of the queries, end in time. What it skipped stands in `portfolio_`.
    n_jobs : int or None
        Folds at the same time; changes no result.

    Attributes
    ----------
    members_ : list
        Fitted scores, averaged with `weights_`.
    portfolio_ : list of dict
        What was tried: name, status, weight, out-of-fold criterion (surrogate risk times the root
        of the task loss), task loss and surrogate risk, seconds.
    path_ : dict of arrays
        Penalties that ridge compared, alone.

    Examples
    --------
    >>> import numpy as np
    >>> from consistruct.structures import Ragged
    >>> from consistruct.learning.encoding.item_targets import ItemTargets
    >>> from consistruct.learning.encoding.queries import pack_queries
    >>> from consistruct.losses import NDCG
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> queries = pack_queries(X, groups=np.arange(40) % 8)
    >>> grades = queries.pack((4 * X[:, 0]).astype(int))
    >>> statistic = ItemTargets(NDCG(None, n_grades=5))
    >>> model = Items("ridge").fit(queries, grades, statistic, rng=np.random.default_rng(0))
    >>> new = pack_queries(np.array([[0.2], [0.9], [0.5]]), one_query=True)
    >>> statistic.decode(model.expected(new)).values  # items of the query, best first
    array([1, 2, 0])
    """

    kinds = ("queries",)
    uses_cv = True

    def __init__(
        self,
        model: Any = "auto",
        *,
        features: Any = "auto",
        kernel: str = "auto",
        bandwidth: Any = "auto",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        standardize: Any = "auto",
        alpha: Any = "auto",
        selection: str = "task_loss",
        scores: str | None = None,
        cv: Any = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.features = features
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.standardize = standardize
        self.alpha = alpha
        self.selection = selection
        self.scores = scores
        self.cv = cv
        self.time_limit = time_limit
        self.n_jobs = n_jobs

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]  # depends on the settings
        if hasattr(self, "members_"):
            return all(member.takes_missing for member in self.members_)
        if isinstance(self.model, str):
            return self.model != "ridge"
        return RegressorLearner(self.model).takes_missing

    def fit(
        self,
        X: QueryBatch,
        codes: Ragged,
        statistic: Statistic,
        *,
        sample_weight: FloatArray | None = None,
        groups: Any = None,
        rng: np.random.Generator,
    ) -> Self:
        """Learn the item targets of packed queries with packed grades."""
        assert isinstance(statistic, ItemTargets)
        self._check_settings()
        require_item_scores(statistic.loss, self.scores)
        self.__dict__.pop("members_", None)
        self.statistic_ = statistic
        self.path_: dict[str, FloatArray] = {}
        self.portfolio_: list[dict[str, Any]] = []
        self._out_of_fold: OutOfFold | None = None
        queries = training_queries(X.packed_items, codes, statistic.loss, sample_weight)
        if self._is("auto") or self._is("trees"):
            self._fit_several(queries, rng)
        elif self._is("ridge"):
            self._fit_one(self._ridge(), queries, rng)
        else:
            self._fit_one(RegressorLearner(self.model), queries, rng)
        return self

    def _fit_several(self, queries: TrainingQueries, rng: np.random.Generator) -> None:
        parts = query_folds(queries, self.cv, rng)
        learners = self._learners(queries, len(parts), rng)
        found = fit_portfolio(
            learners,
            queries,
            parts,
            exact=self.cv is None,
            time_limit=self.time_limit,
            n_jobs=self.n_jobs,
            rng=rng,
        )
        self.members_: list[ItemScores] = found.members
        self.weights_ = found.weights
        self.portfolio_ = found.tried
        self._remember(queries, found.out_of_fold)

    def _fit_one(
        self, learner: ItemLearner, queries: TrainingQueries, rng: np.random.Generator
    ) -> None:
        fitted: ItemScores
        start = monotonic()
        if isinstance(learner, RidgeLearner) and self.cv is None:
            fitted, left = learner.fit_and_leave_out(queries, rng)
            self._remember(queries, left)
        else:
            fitted = learner.fit(queries, rng)
        self.members_, self.weights_ = [fitted], np.ones(1)
        self.portfolio_ = [entry(learner.name, "used", 1.0, seconds=monotonic() - start)]
        if isinstance(fitted, RidgeScores):
            self.path_ = fitted.path
        if self.cv is not None:
            parts = query_folds(queries, self.cv, rng)
            self._remember(queries, cross_fit_scores(learner, queries, parts, rng, self.n_jobs)[1])

    def _remember(self, queries: TrainingQueries, left: OutOfFoldScores) -> None:
        offsets = queries.grades.take(left.queries).offsets
        self._out_of_fold = OutOfFold(queries.numbers[left.queries], Ragged(-left.values, offsets))

    def expected(self, X: QueryBatch) -> Ragged:
        """ū of each item less the mean of its query, packed."""
        check_is_fitted(self, "members_")
        items, offsets = X.packed_items, X.offsets
        scores = sum(
            weight * member.scores(items, offsets)
            for weight, member in zip(self.weights_, self.members_, strict=True)
        )
        return Ragged(-centered(np.asarray(scores), offsets), offsets)

    def out_of_fold(self) -> OutOfFold:
        """Estimates of queries by fits that did not see them; sampled above some 8,000 items."""
        check_is_fitted(self, "members_")
        if self._out_of_fold is None:
            return super().out_of_fold()
        return self._out_of_fold

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "_out_of_fold": None}  # training estimates are not part of the model

    # --- settings ---

    def _check_settings(self) -> None:
        if isinstance(self.model, str):
            if self.model not in MODELS:
                raise ValueError(
                    f"model of Items must be {', '.join(map(repr, MODELS))} or a scikit-learn "
                    f"regressor, got {self.model!r}"
                )
        elif isinstance(self.model, type) or not is_regressor(self.model):
            raise TypeError(
                f"model of Items must be {', '.join(map(repr, MODELS))} or a scikit-learn "
                f"regressor, got {self.model!r}"
            )
        if self.selection not in ("task_loss", "surrogate"):
            raise ValueError(
                f"selection must be 'task_loss' or 'surrogate', got {self.selection!r}"
            )
        if self.time_limit is not None:
            check_number(self.time_limit, "time_limit", low=0.0)
        several_models = self._is("auto") or self._is("trees")
        check_unused_params(self, "model='auto' or 'trees'", several_models, ("time_limit",))
        fits_ridge = self._is("auto") or self._is("ridge")
        check_unused_params(self, "model='auto' or 'ridge'", fits_ridge, RIDGE_SETTINGS)
        if fits_ridge:
            check_unused_feature_params(self)
            several = isinstance(self.alpha, str) or np.size(self.alpha) > 1
            check_unused_params(self, "several penalties to choose from", several, ("selection",))

    def _is(self, name: str) -> bool:
        return isinstance(self.model, str) and self.model == name

    def _learners(
        self, queries: TrainingQueries, n_folds: int, rng: np.random.Generator
    ) -> list[ItemLearner]:
        """What is averaged: the fastest first."""
        items = queries.problem.items
        if self._is("auto") and is_sparse(items):
            return [self._ridge()]
        n_items, n_columns = items.shape
        bins = item_bins(items, rng)
        trees: list[ItemLearner] = [
            forest(n_items, n_columns, n_folds),
            BoostedLearner(n_items, bins),
            BoostedLearner(n_items, bins, of_grades=True),
        ]
        if self._is("trees") or np.isnan(items).any():
            return trees
        return [*self._ridges_beside_trees(items), *trees]

    def _ridge(self, grade_share: float = 0.0) -> RidgeLearner:
        return RidgeLearner(self._options(), self.alpha, self.selection, grade_share=grade_share)

    def _ridges_beside_trees(self, items: Any) -> list[ItemLearner]:
        """Linear, and with a kernel on few landmarks: trees know the details."""
        if not isinstance(self.features, str) or self.features != "auto":
            return [self._ridge(grade_share=0.5)]
        options = self._options()
        scaled = self.standardize in ("auto", True)
        linear = RidgeLearner(
            dataclasses.replace(options, features="linear", standardize=scaled),
            self.alpha,
            self.selection,
            name="linear",
            grade_share=0.5,
        )
        if options.name(items) == "linear":  # very wide
            return [linear]
        few = LANDMARKS if self.n_components is None else self.n_components
        kernel = dataclasses.replace(options, n_components=few, standardize=scaled)
        return [linear, LandmarkRidge(kernel, self.alpha, self.selection, grade_share=0.5)]

    def _options(self) -> FeatureOptions:
        return FeatureOptions(
            features=self.features,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            degree=self.degree,
            coef0=self.coef0,
            n_components=self.n_components,
            standardize=self.standardize,
            n_jobs=self.n_jobs,
        )
