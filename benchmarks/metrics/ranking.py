"""lightgbm_rank: NDCG and NDCG@10 of the items of queries, with the gain 2^grade − 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVC

from benchmarks import data as sources
from benchmarks.metrics.multilabel import own_features
from benchmarks.metrics.ridge import LeaveOneOutRidge
from benchmarks.metrics.rows import Outcome, Row, compare, timed
from consistruct import StructuredPredictor
from consistruct.learning.models.items.model import Items as ItemsModel
from consistruct.losses import NDCG
from consistruct.structures import Ragged

__all__ = ["LAMBDARANK_DEFAULTS", "pairwise_differences", "query_ndcg", "ranking"]

N_GRADES = 5
LAMBDARANK_DEFAULTS = "LightGBM lambdarank, defaults"
Scorer = Callable[[Any], np.ndarray]  # items -> scores (n,)


class Items(NamedTuple):
    """Items of queries; those of one query stand together."""

    X: Any
    y: np.ndarray  # (n,) grades
    groups: np.ndarray  # (n,) query of each item

    def take(self, rows: np.ndarray) -> Items:
        return Items(self.X[rows], self.y[rows], self.groups[rows])

    @property
    def offsets(self) -> np.ndarray:
        starts = np.flatnonzero(np.diff(self.groups, prepend=self.groups[0] - 1))
        return np.append(starts, len(self.groups)).astype(np.int64)


def query_ndcg(scores: np.ndarray, items: Items, cut: int | None = None) -> np.ndarray:
    """NDCG (at a cut-off) of each query when its items are sorted by score, (n_queries,).

    Of equal scores the earlier item comes first; a query without relevant items counts 1.
    """
    offsets = items.offsets
    orders = [
        np.argsort(-scores[begin:end], kind="stable") for begin, end in pairwise(offsets.tolist())
    ]
    loss = NDCG(None, cut, n_grades=N_GRADES)
    return 1.0 - loss(Ragged(np.concatenate(orders), offsets), Ragged(items.y, offsets))


def pairwise_differences(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """x_i − x_j for all pairs of a query with y_i > y_j, (n_pairs, d)."""
    parts = [np.empty((0, X.shape[1]))]
    for query in np.unique(groups):
        rows = np.flatnonzero(groups == query)
        better, worse = np.nonzero(y[rows][:, None] > y[rows])
        parts.append(X[rows[better]] - X[rows[worse]])
    return np.concatenate(parts)


class RankingPeer(ABC):
    """A model of item scores; settings are chosen by NDCG on three folds of the queries."""

    settings: tuple[Any, ...]
    cut: int | None = None  # of the NDCG that settings are chosen by

    @abstractmethod
    def fit(self, setting: Any, items: Items) -> Scorer:
        """Fit one setting."""

    def tune(self, items: Items) -> Any:
        values = np.zeros(len(self.settings))
        for train, test in _folds(items):
            part = items.take(test)
            for place, setting in enumerate(self.settings):
                scores = self.fit(setting, items.take(train))(part.X)
                values[place] += query_ndcg(scores, part, self.cut).sum()
        return self.settings[int(values.argmax())]

    def tune_and_fit(self, items: Items) -> tuple[Any, Scorer]:
        setting = self.tune(items) if len(self.settings) > 1 else self.settings[0]
        return setting, self.fit(setting, items)


def _folds(items: Items) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return GroupKFold(3, shuffle=True, random_state=0).split(items.y, groups=items.groups)


def _target(kind: str, y: np.ndarray) -> np.ndarray:
    return np.exp2(y) - 1.0 if kind == "gain" else y.astype(np.float64)


class LinearRidge(RankingPeer):
    """Ridge regression of the grade or of its gain on standardized inputs."""

    settings = tuple(product(("grade", "gain"), 10.0 ** np.arange(-2.0, 2.1, 0.5)))

    def fit(self, setting: Any, items: Items) -> Scorer:
        kind, penalty = setting  # in units of the squared norm of an item
        scaler = StandardScaler().fit(items.X)
        X = scaler.transform(items.X)
        ridge = LeaveOneOutRidge(X, _target(kind, items.y)[:, None], kernel=False)
        score = ridge.scorer(penalty * X.shape[1])
        return lambda new: score(scaler.transform(new))[:, 0]


class KernelRidge(RankingPeer):
    """Ridge regression of the grade or of its gain on kernel values between items."""

    settings = tuple(product(("grade", "gain"), 10.0 ** np.arange(-3.0, 1.6, 0.5)))

    def fit(self, setting: Any, items: Items) -> Scorer:
        kind, penalty = setting
        ridge = LeaveOneOutRidge(items.X, _target(kind, items.y)[:, None], kernel=True)
        score = ridge.scorer(penalty)
        return lambda kernel: score(kernel)[:, 0]

    def tune(self, items: Items) -> Any:
        values = np.zeros(len(self.settings))
        for train, test in _folds(items):
            kernel, part = items.X[np.ix_(train, train)], items.take(test)
            targets = np.column_stack([_target(kind, items.y[train]) for kind in ("grade", "gain")])
            ridge = LeaveOneOutRidge(kernel, targets, kernel=True)  # once for all penalties
            for place, (kind, penalty) in enumerate(self.settings):
                scores = ridge.scorer(penalty)(items.X[np.ix_(test, train)])
                values[place] += query_ndcg(scores[:, int(kind == "gain")], part).sum()
        return self.settings[int(values.argmax())]


class RankSVM(RankingPeer):
    """Linear support vectors on differences of items of one query that differ in grade."""

    settings = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # C

    def fit(self, setting: Any, items: Items) -> Scorer:
        scaler = StandardScaler().fit(items.X)
        differences = pairwise_differences(scaler.transform(items.X), items.y, items.groups)
        sign = np.where(np.arange(len(differences)) % 2, 1.0, -1.0)  # both classes, half each
        model = LinearSVC(C=setting, fit_intercept=False, random_state=0)
        model.fit(sign[:, None] * differences, sign)
        return lambda new: np.asarray(model.decision_function(scaler.transform(new)))


class SupportVectorRegression(RankingPeer):
    """RBF support vector regression of the grade."""

    settings = tuple(product((0.03, 0.1, 1.0), (0.1, 0.3, 1.0)))  # C, gamma in units of 1/d

    def fit(self, setting: Any, items: Items) -> Scorer:
        C, factor = setting
        model = SVR(C=C, gamma=factor / items.X.shape[1], cache_size=500)
        fitted = make_pipeline(StandardScaler(), model).fit(items.X, items.y)
        return lambda new: np.asarray(fitted.predict(new))


class LambdaRank(RankingPeer):
    """LightGBM's lambdarank; settings are leaves, least items per leaf, number of trees."""

    settings = tuple(product((7, 31), (20, 50), (50, 100, 200, 400, 800)))
    learning_rate = 0.05

    def __init__(self, cut: int | None = None) -> None:
        self.cut = cut

    def fit(self, setting: Any, items: Items) -> Scorer:
        leaves, least, trees = setting
        model = self._grow(leaves, least, trees, items)
        return lambda new: np.asarray(model.predict(new))

    def _grow(self, leaves: int, least: int, trees: int, items: Items) -> Any:
        import lightgbm  # the other peers do without it

        model = lightgbm.LGBMRanker(
            num_leaves=leaves,
            min_child_samples=least,
            n_estimators=trees,
            learning_rate=self.learning_rate,
            random_state=0,
            n_jobs=1,
            verbose=-1,
        )
        return model.fit(items.X, items.y, group=np.diff(items.offsets))

    def tune(self, items: Items) -> Any:
        values = dict.fromkeys(self.settings, 0.0)
        for train, test in _folds(items):
            part = items.take(test)
            for leaves, least in {setting[:2]: None for setting in self.settings}:
                counts = [trees for *shape, trees in self.settings if shape == [leaves, least]]
                model = self._grow(leaves, least, max(counts), items.take(train))
                for trees in counts:  # the first trees of a larger model
                    scores = np.asarray(model.predict(part.X, num_iteration=trees))
                    values[leaves, least, trees] += float(query_ndcg(scores, part, self.cut).sum())
        return max(values, key=values.__getitem__)


class LambdaRankDefaults(LambdaRank):
    """LightGBM's lambdarank as it comes."""

    settings = ((31, 20, 100),)
    learning_rate = 0.1


def ranking(name: str, *, held_out: bool, rows: int | None) -> list[Row]:
    """Both metrics on the test queries; with `held_out` on a quarter of the training queries."""
    train = _items(name, "train")
    if held_out:
        split = GroupShuffleSplit(1, test_size=0.25, random_state=0)
        kept, left = next(split.split(train.y, groups=train.groups))
        train, test = train.take(kept), train.take(left)
    else:
        test = _items(name, "test")
    if rows is not None:
        train, test = train.take(np.arange(rows)), test.take(np.arange(rows))
    ours, ridge = Ours("auto"), Ours("ridge")
    outcomes = [_measured("consistruct, defaults", "ours", ours, train, test)]
    outcomes.append(_measured("consistruct, Items('ridge')", "features", ridge, train, test))
    features, features_test, kernel = own_features(ridge.feature_map, train.X, test.X)
    raw, own = (train.X, test.X), (features, features_test)
    peers: list[tuple[str, str, RankingPeer, tuple[Any, Any]]] = [
        (LAMBDARANK_DEFAULTS, "boosting", LambdaRankDefaults(), raw),
        ("linear ridge regression of the grade", "linear", LinearRidge(), raw),
        ("linear RankSVM (differences of pairs)", "linear", RankSVM(), raw),
        ("RBF support vector regression of the grade", "kernel", SupportVectorRegression(), raw),
        ("LightGBM lambdarank", "boosting", LambdaRank(), raw),
    ]
    if kernel:
        peers.insert(3, ("ridge of the grade on our features", "kernel", KernelRidge(), own))
    for title, kind, peer, inputs in peers:
        outcomes.append(_measured(title, kind, peer, train, test, inputs))
    tuned = _measured("LightGBM lambdarank", "boosting", LambdaRank(10), train, test)
    at_ten = [found for found in outcomes if found[0].model != tuned[0].model] + [tuned]
    return compare(name, "ndcg", [whole for whole, _ in outcomes]) + compare(
        name, "ndcg10", [top for _, top in at_ten if top.kind in ("ours", "features", "boosting")]
    )


class Ours(RankingPeer):
    """Our estimator with one of the models of items; nothing is tuned from outside."""

    settings = (None,)

    def __init__(self, model: str) -> None:
        self.model = model

    def fit(self, setting: Any, items: Items) -> Scorer:
        self.fitted = StructuredPredictor("ndcg", ItemsModel(self.model), random_state=0)
        self.fitted.fit(items.X, items.y, groups=items.groups)
        # scores of items do not depend on their query, up to a constant that changes no order
        return lambda new: np.asarray(self.fitted.decision_function(new))

    @property
    def feature_map(self) -> Any:
        """Of a single ridge."""
        (member,) = self.fitted.model_.members_
        return member.feature_map

    @property
    def chosen(self) -> str:
        """Weights of the members, or the penalty of a single ridge."""
        if self.model == "ridge":
            return f"alpha {self.fitted.model_.members_[0].alpha:.2g}"
        return ", ".join(
            f"{entry['name']} {entry['weight']:.2f}" for entry in self.fitted.portfolio_
        )


def _measured(
    title: str,
    kind: str,
    peer: RankingPeer,
    train: Items,
    test: Items,
    inputs: tuple[Any, Any] | None = None,
) -> tuple[Outcome, Outcome]:
    """NDCG and NDCG@10 of one fit; `inputs` in place of the items, where a peer takes others."""
    own, new = inputs or (train.X, test.X)
    seconds, (setting, scorer) = timed(lambda: peer.tune_and_fit(train._replace(X=own)))
    scores = scorer(new)
    chosen = peer.chosen if isinstance(peer, Ours) else _written(setting)
    whole, top = query_ndcg(scores, test), query_ndcg(scores, test, 10)
    print(
        f"{title}: NDCG {whole.mean():.4f}, NDCG@10 {top.mean():.4f}, {seconds:.2f} s ({chosen})",
        flush=True,
    )
    return Outcome(title, kind, whole, seconds, chosen), Outcome(title, kind, top, seconds, chosen)


def _items(name: str, part: str) -> Items:
    found = sources.load(name, part)
    assert found.y is not None
    assert found.groups is not None
    return Items(found.X, found.y, found.groups)


def _written(setting: Any) -> str:
    parts = setting if isinstance(setting, tuple) else (setting,)
    return ", ".join(part if isinstance(part, str) else f"{part:.3g}" for part in parts)
