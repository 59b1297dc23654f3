"""Probabilities of three base models on out-of-fold training rows and on test rows, kept on disk.

Every recipe decides from the same probabilities: what differs is the decision alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, StratifiedShuffleSplit, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from benchmarks import data as sources
from benchmarks.tabular.measured import Job, data_key, measure_all, probabilities, versions
from benchmarks.tabular.peers import one_hot
from benchmarks.tabular.tables import Table, read_table

MODELS = ("logistic regression", "extra trees", "boosting")
TABLES = (
    "german",
    "contraceptive",
    "yeast",
    "wine_white",
    "page_blocks",
    "adult",
    "era",
    "swd",
    "bank_marketing",
    "credit_kaggle",
)
LABEL_SETS = ("yeast", "scene", "bibtex")
GRADED = ("wine_white", "diabetes")
TWO_CLASSES = ("german", "adult", "bank_marketing", "credit_kaggle")
GRADES = 5  # of scikit-learn's diabetes: fifths of the progression
MOST_ROWS = 6000  # of a table: larger ones are cut, at random and by class
SPLITS = 5
FOLDS = 5
LIBRARIES = ("numpy", "scikit-learn")


@dataclass(frozen=True, eq=False)
class Fitted:
    """What every recipe starts from.

    Attributes
    ----------
    left : (n, k) array
        Probabilities of training rows by models that did not see them.
    test : (m, k) array
        Probabilities of test rows, by the model of all training rows.
    weighted : (m, k) array
        The same by a model with class weights "balanced".
    y, y_test : codes of classes, or (n, T) label indicators
    """

    left: np.ndarray
    test: np.ndarray
    weighted: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    processor: float


def table_of(name: str) -> Table:
    """A table of at most `MOST_ROWS` rows."""
    if name == "diabetes":
        X, progression = load_diabetes(return_X_y=True)
        cuts = np.quantile(progression, np.arange(1, GRADES) / GRADES)
        found = Table(name, X, np.searchsorted(cuts, progression), np.zeros(X.shape[1], dtype=bool))
    elif name in ("era", "swd"):
        with np.load(sources.data_file(f"ordinal_{name}")) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"]
        codes = np.unique(y, return_inverse=True)[1]
        found = Table(name, X, codes, np.zeros(X.shape[1], dtype=bool))
    elif name in ("bank_marketing", "credit_kaggle"):
        with np.load(sources.data_file(f"business_{name}")) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.int64)
            found = Table(name, X, y, archive["categorical"].copy())
    else:
        found = read_table(name)
    if len(found.y) <= MOST_ROWS:
        return found
    rows, _ = train_test_split(
        np.arange(len(found.y)), train_size=MOST_ROWS, stratify=found.y, random_state=0
    )
    rows.sort()
    return Table(name, found.X[rows], found.y[rows], found.categorical)


def base_model(name: str, categorical: np.ndarray, class_weight: str | None = None) -> Any:
    """One of the three models, for a table with these categories."""
    if name == "logistic regression":
        return make_pipeline(
            one_hot(categorical), LogisticRegression(max_iter=2000, class_weight=class_weight)
        )
    if name == "extra trees":
        trees = ExtraTreesClassifier(
            300, min_samples_leaf=2, random_state=0, class_weight=class_weight
        )
        return make_pipeline(one_hot(categorical), trees)
    return HistGradientBoostingClassifier(
        max_iter=80,
        learning_rate=0.06,
        max_leaf_nodes=15,
        categorical_features=np.flatnonzero(categorical).tolist() or None,
        early_stopping=False,
        class_weight=class_weight,
        random_state=0,
    )


def fit_table(name: str, X: Any, y: Any, X_test: Any, categorical: Any) -> np.ndarray:
    """Out-of-fold, test and class-weighted test probabilities, one below the other."""
    k = int(y.max()) + 1
    left = np.zeros((len(y), k))
    for fit, out in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        model = base_model(name, categorical).fit(X[fit], y[fit])
        left[out] = probabilities(model, X[out], k)
    plain = base_model(name, categorical).fit(X, y)
    weighted = base_model(name, categorical, "balanced").fit(X, y)
    return np.vstack([left, probabilities(plain, X_test, k), probabilities(weighted, X_test, k)])


def splits(table: Table, count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds, each row tested once; more are random thirds for the test."""
    if count <= SPLITS:
        folds = StratifiedKFold(SPLITS, shuffle=True, random_state=0)
        return list(folds.split(table.X, table.y))[:count]
    halves = StratifiedShuffleSplit(count, test_size=1 / 3, random_state=seed)
    return list(halves.split(table.X, table.y))


def jobs_of_table(
    name: str, models: Sequence[str], count: int = SPLITS, seed: int = 0
) -> list[tuple[Job, Any]]:
    """One job per split and model, with the true labels that belong to it."""
    table = table_of(name)
    source = {"diabetes": None, "era": "ordinal_era", "swd": "ordinal_swd"}.get(name, "")
    if source == "":
        source = f"business_{name}" if name.startswith(("bank", "credit")) else f"tab_{name}"
    place = f"{data_key(source) if source else name} {MOST_ROWS} of {count}"
    place += f" from {seed}" if seed else ""
    found = []
    for number, (train, test) in enumerate(splits(table, count, seed)):
        for model in models:
            made = f"{base_model(model, table.categorical)!r} {versions(LIBRARIES)}"
            work = partial(
                fit_table, model, table.X[train], table.y[train], table.X[test], table.categorical
            )
            job = Job(f"{name} {number} {model}", f"complex {place} {number} {made}", work)
            found.append((job, (model, number, table.y[train], table.y[test])))
    return found


# --- label sets ----------------------------------------------------------------------------------


def label_model(name: str, sparse: bool, class_weight: str | None = None) -> Any:
    """The base models for label indicators: trees see all labels, the others one at a time."""
    if name == "extra trees":
        return ExtraTreesClassifier(
            300 if not sparse else 100, min_samples_leaf=2, random_state=0,
            class_weight=class_weight,
        )  # fmt: skip
    if name == "boosting":
        return OneVsRestClassifier(base_model(name, np.zeros(0, dtype=bool), class_weight))
    solver = "liblinear" if sparse else "lbfgs"
    one = LogisticRegression(
        max_iter=1000, solver=solver, C=1.0 if sparse else 0.1, class_weight=class_weight
    )
    return OneVsRestClassifier(one)


def marginals(model: Any, X: Any) -> np.ndarray:
    """P(label | x), (n, T)."""
    found = model.predict_proba(X)
    if not isinstance(found, list):
        return np.asarray(found)
    return np.column_stack(
        [part[:, 1] if part.shape[1] == 2 else np.zeros(len(part)) for part in found]
    )


def fit_labels(name: str, X: Any, y: Any, X_test: Any) -> np.ndarray:
    """As `fit_table`."""
    sparse = hasattr(X, "tocsr")
    if sparse and name == "boosting":  # it takes no sparse inputs
        X, X_test = (part.toarray().astype(np.float32) for part in (X, X_test))
    left = np.zeros(y.shape)
    for fit, out in KFold(FOLDS, shuffle=True, random_state=0).split(y):
        left[out] = marginals(label_model(name, sparse).fit(X[fit], y[fit]), X[out])
    plain = marginals(label_model(name, sparse).fit(X, y), X_test)
    weighted = marginals(label_model(name, sparse, "balanced").fit(X, y), X_test)
    return np.vstack([left, plain, weighted])


def jobs_of_labels(name: str, models: Sequence[str] = MODELS) -> list[tuple[Job, Any]]:
    """One job per model, on the published split."""
    train, test = sources.load(name, "train"), sources.load(name, "test")
    found = []
    for model in models:
        made = f"{label_model(model, name == 'bibtex')!r} {versions(LIBRARIES)}"
        work = partial(fit_labels, model, train.X, np.asarray(train.y), test.X)
        job = Job(f"{name} labels {model}", f"complex labels {data_key(name)} {made}", work)
        found.append((job, (model, 0, np.asarray(train.y), np.asarray(test.y))))
    return found


# --- all of it -----------------------------------------------------------------------------------


def fitted(jobs: Sequence[tuple[Job, Any]], n_jobs: int) -> list[tuple[str, int, Fitted]]:
    """(model, split, probabilities) of each job."""
    found = []
    measured = measure_all([job for job, _ in jobs], n_jobs)
    for done, (_, (model, number, y, y_test)) in zip(measured, jobs, strict=True):
        left, test, weighted = np.split(done.values, [len(y), len(y) + len(y_test)])
        found.append((model, number, Fitted(left, test, weighted, y, y_test, done.processor)))
    return found
