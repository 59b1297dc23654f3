"""What model="auto" tries: a few models that fail on different data, within a budget of time.

The rule is a function of the sizes alone, never of the clock, so that the same data and seed give
the same choices on any machine. Above `ALL_ROWS` rows candidates are compared on one split (see
`trials.one_split`), and what is too slow for the size is left out, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from consistruct.decisions.statistics import Statistic
from consistruct.learning.models.base import TargetModel
from consistruct.learning.models.boosting.model import Boosting
from consistruct.learning.models.features.feature_choice import EXACT_ROWS
from consistruct.learning.models.prepared import Prepared
from consistruct.learning.models.probabilities import Probabilities
from consistruct.learning.models.regressor import Regressor
from consistruct.learning.models.ridge.model import Ridge
from consistruct.learning.selection.columns import Columns

__all__ = ["ALL_ROWS", "Candidate", "portfolio"]

ALL_ROWS = 5000  # up to here candidates are compared by folds over all rows
KERNEL_WORK = 1e6  # rows · columns · classes that boost for longer than kernels take to choose
KERNEL_ROWS = 100_000  # of 200,000 they made a fit three times as long for 0.4 % less cost
LANDMARKS = 800  # of kernels above ALL_ROWS; other labels than classes have more to say
LANDMARKS_OF_TARGETS = 2000
EXACT_WORK = 8e4  # all rows as landmarks: rows² / (columns · outputs), about twice boosting's time
TREES = 150  # of a forest of classes, a third above ALL_ROWS, and
STOPPED_ROWS = 10_000  # above, where boosting by its defaults stops early and is that much faster,
TREES_PER_CLASS = 6  # at most so many: boosting has trees for every class, a forest has not
# boosting above ALL_ROWS or STEP_WORK: fewer and larger steps; more rows say which splits are best
FASTER = {"rounds": 600, "learning_rate": 0.1, "patience": 20}
OF_MORE_ROWS = {"row_share": 0.4, "most_rows": 12_000, "column_share": 0.5, "bins": 128}
ROUNDS_OF_TARGETS = 1500  # squares of many targets go on falling where the log loss has ended
STEP_WORK = 3e5  # rows · columns
LEAFWISE_OUTPUTS = 60  # that are boosted one by one
SECOND_BOOSTER = 100  # rounds: customers end after 40 to 80, adult, MAGIC and others go on to 200
TREE_WORK = 2e10  # rows · columns tried · outputs · trees that multi-output forests may take
BOOSTED_WORK = 1e7  # rows · columns that are boosted, ten times that when not on every fold
BOOSTED_ONCE = 10
BOOSTED_OUTPUTS = 200  # classes or targets whose leaves fit into 100 MB
SEARCHED_ROWS = 40_000  # more rows have no part in the search for splits
BOOSTED_ROWS = 300  # fewer say too little about targets


@dataclass(frozen=True)
class Candidate:
    """A model by the name that reports show, or the reason why it is not tried.

    `after_rounds`: it is tried only where boosting, tried before, went on for so many rounds.
    """

    name: str
    model: TargetModel | None
    reason: str = ""
    after_rounds: int = 0


def portfolio(
    statistic: Statistic, columns: Columns, n: int, *, n_jobs: int | None = None
) -> list[Candidate]:
    """The models to try, fast ones first, for n rows."""
    if statistic.of_classes:
        return _for_classes(columns, n, statistic.width, n_jobs)
    return _for_targets(columns, n, statistic.width, n_jobs)


def _for_classes(columns: Columns, n: int, k: int, n_jobs: int | None) -> list[Candidate]:
    # of fits alone: forests that predict with threads add their trees in any order
    threads = -1 if n_jobs is None else n_jobs
    linear, trees = columns.for_linear(), columns.for_trees()
    few = n <= ALL_ROWS
    n_trees = TREES if few else TREES // 3
    if n > STOPPED_ROWS and not columns.sparse:
        n_trees = min(n_trees, TREES_PER_CLASS * k)
    boosted = 1 if k == 2 else k  # trees per round
    faster = f"boosting is much faster on {n} rows"
    found = [
        Candidate(
            "logistic regression",
            Probabilities(make_pipeline(linear, LogisticRegression(max_iter=2000))),
        )
    ]
    if few or boosted > 1 or columns.sparse:
        larger = ExtraTreesClassifier(n_trees, min_samples_leaf=3, max_features=0.5)
        model = Probabilities(_piped(trees, larger), n_jobs=threads)
        found.append(Candidate("extra trees, larger leaves", model))
    else:  # five times its time, and no better on any of three tables
        found.append(Candidate("extra trees, larger leaves", None, faster))
    if few:
        forest = ExtraTreesClassifier(n_trees)
        found.append(Candidate("extra trees", Probabilities(_piped(trees, forest), n_jobs=threads)))
    found.append(_boosting(columns, n, k, threads))
    # of many rows and two classes little else is tried, and two boosters are better than one where
    # the first goes on learning; and where there are categories, these trees part them in any two
    # sets
    alone = boosted == 1 and not few
    if not columns.sparse and (alone or columns.coded()):
        leafwise = HistGradientBoostingClassifier(
            early_stopping=True, categorical_features=columns.coded() or None
        )
        model = Probabilities(_piped(trees, leafwise))
        least = 0 if columns.coded() else SECOND_BOOSTER
        found.append(Candidate("histogram boosting", model, after_rounds=least))
    if few or (n <= KERNEL_ROWS and n * columns.n_columns * boosted >= KERNEL_WORK):
        return [*found, *_ridges(columns, n, LANDMARKS, _exact(columns, n, boosted))]
    return [*found, Candidate("kernel ridge", None, faster)]


def _boosting(columns: Columns, n: int, outputs: int, n_jobs: int, **more: Any) -> Candidate:
    work = min(n, SEARCHED_ROWS) * columns.n_columns
    if columns.sparse:
        return Candidate("boosting", None, "it takes too long on sparse inputs")
    if outputs > BOOSTED_OUTPUTS:
        return Candidate("boosting", None, f"its trees would be too large with {outputs} outputs")
    if work > (BOOSTED_WORK if n <= ALL_ROWS else BOOSTED_WORK * BOOSTED_ONCE):
        reason = f"it would take too long on {n} rows and {columns.n_columns} columns"
        return Candidate("boosting", None, reason)
    if n <= ALL_ROWS and work <= STEP_WORK:
        return Candidate("boosting", Boosting(n_jobs=n_jobs))
    settings: dict[str, Any] = FASTER if n <= ALL_ROWS else FASTER | OF_MORE_ROWS
    return Candidate("boosting", Boosting(**(settings | more), n_jobs=n_jobs))


def _for_targets(columns: Columns, n: int, width: int, n_jobs: int | None) -> list[Candidate]:
    threads = -1 if n_jobs is None else n_jobs
    trees = columns.for_trees()
    long = f"it would take too long on {n} rows, {columns.n_columns} columns and {width} outputs"
    tried = max(1.0, columns.n_columns / 3)
    n_trees = 200
    if n * tried * width * n_trees > TREE_WORK:
        averaged = Candidate("extra trees", None, long)
    else:
        forest = ExtraTreesRegressor(n_trees, max_features=1 / 3, min_samples_leaf=2)
        averaged = Candidate("extra trees", Regressor(_piped(trees, forest), n_jobs=threads))
    if n < BOOSTED_ROWS:
        boosted = Candidate("boosting", None, f"{n} rows are too few for it")
    else:
        boosted = _boosting(columns, n, width, threads, rounds=ROUNDS_OF_TARGETS)
    ridges = _ridges(columns, n, LANDMARKS_OF_TARGETS, _exact(columns, n, width))
    found = [*ridges, averaged, boosted]
    if n > ALL_ROWS and width <= LEAFWISE_OUTPUTS and not columns.sparse:
        leafwise = HistGradientBoostingRegressor(early_stopping=True)
        model = Regressor(_piped(trees, leafwise), n_jobs=threads)
        found.append(Candidate("histogram boosting", model, after_rounds=ROUNDS_OF_TARGETS // 2))
    return found


def _exact(columns: Columns, n: int, outputs: int) -> bool:
    """Whether all rows can be landmarks in about the time that boosting takes."""
    return n <= EXACT_ROWS and n * n <= EXACT_WORK * columns.n_columns * outputs


def _ridges(columns: Columns, n: int, landmarks: int, exact: bool) -> list[Candidate]:
    """Least squares: with kernels where they are affordable, on the inputs as they are if not."""
    if columns.sparse:  # zeros stay zeros, and narrow ones get kernels by themselves
        return [Candidate("ridge", Ridge())]
    if n > ALL_ROWS and not exact:
        return [
            Candidate(
                "kernel ridge",
                Prepared(columns.for_linear(), Ridge("nystroem", n_components=landmarks)),
            )
        ]
    if columns.plain and not columns.missing:
        return [Candidate("kernel ridge", Ridge())]
    return [Candidate("kernel ridge", Prepared(columns.for_linear(), Ridge()))]


def _piped(transformer: Any, estimator: Any) -> Any:
    return estimator if transformer is None else make_pipeline(transformer, estimator)
