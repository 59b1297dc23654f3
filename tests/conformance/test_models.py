"""Every registered model keeps every rule of the seam, and honors every parameter it has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from consistruct.learning import StructuredPredictor
from consistruct.learning.encoding.kinds import Examples, Rows
from consistruct.learning.encoding.rankings import read_queries
from consistruct.learning.encoding.sequences import read_sequences
from consistruct.learning.models import (
    MODELS,
    Boosting,
    Chain,
    Costs,
    Items,
    Linear,
    Prepared,
    Probabilities,
    Regressor,
    Ridge,
    Stack,
    Torch,
)
from consistruct.losses import CostMatrix, Decision, FBeta, Hamming, Kendall, Ordinal, ZeroOne
from consistruct.structures import Dense, GridPath, TopK
from consistruct.testing import check_target_model, table_examples

COSTS = CostMatrix([[0, 1, 5], [4, 0, 2], [3, 9, 0]], rows="pred")
TABLES = [ZeroOne(4), Ordinal(4), COSTS, Hamming(3), FBeta(3)]


@dataclass(frozen=True)
class Case:
    """A model with fast settings, what it is checked on, and another value of every parameter."""

    model: Any
    settings: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = "rows"


KERNEL = {"bandwidth": 1.5, "standardize": True, "alpha": 0.1}
CASES = {
    "ridge": Case(
        Ridge("nystroem", kernel="rbf", n_components=20, **KERNEL),
        {
            "features": "rbf",
            "kernel": "laplace",
            "bandwidth": 3.0,
            "degree": 2,
            "coef0": 2.0,
            "n_components": 10,
            "standardize": False,
            "alpha": 1.0,
            "solver": "sgd",
            "regularizer": "weights",
            "scores": Dense(np.eye(4)[:, :2]),
            "fit_intercept": False,
            "n_jobs": 2,
            "device": "nowhere",
            "precision": "single",
        },
        {"exact_weights": False},  # landmarks are drawn among rows
    ),
    "regressor": Case(Regressor(LinearRegression()), {"estimator": ExtraTreesRegressor(3)}),
    "probabilities": Case(
        Probabilities(LogisticRegression(tol=1e-8)),
        {"estimator": GaussianNB()},
        {"tolerance": 1e-5},
    ),
    "boosting": Case(
        Boosting(60, learning_rate=0.1, depth=3, patience=5, row_share=0.7, column_share=0.5),
        {
            "rounds": 1,
            "learning_rate": 0.3,
            "depth": 1,
            "l2": 9.0,
            "row_share": 0.3,
            "most_rows": 10,
            "column_share": 1.0,
            "bins": 3,
            "validation_fraction": 0.0,
            "patience": 1,
            "n_jobs": 2,
        },
        {"exact_weights": False},  # rows are drawn
    ),
    "linear": Case(
        Linear("log", features="nystroem", kernel="rbf", n_components=20, **KERNEL),
        {
            "surrogate": "quadratic",
            "decoding": "argmax",
            "features": "random",
            "kernel": "laplace",
            "bandwidth": 3.0,
            "degree": 2,
            "coef0": 2.0,
            "n_components": 10,
            "solver": "sgd",
            "alpha": 1.0,
            "scores": Dense(np.eye(4)[:, :2]),
            "fit_intercept": False,
            "standardize": False,
        },
        {"exact_weights": False},
    ),
    "prepared": Case(
        Prepared(StandardScaler(), Ridge("linear", alpha=0.1)),
        {"transformer": MaxAbsScaler(), "model": Ridge("linear", alpha=1.0)},
        {"exact_weights": False},  # the scaler knows no weights
    ),
    "stack": Case(
        Stack([Ridge("linear", alpha=0.1), Regressor(DecisionTreeRegressor(max_depth=2))]),
        {
            "models": [Ridge("linear", alpha=1.0)],
            "cv": 3,
            "combine": "best",
            "weights": [0.9, 0.1],
            "recalibrations": [None, None],  # refused without weights
            "time_limit": -1.0,
            "n_jobs": 2,
        },
        {
            "exact_weights": False,
            "exact_out_of_fold": False,
        },  # they choose weights
    ),
    "torch": Case(
        Torch((8,), max_epochs=5, batch_size=16, learning_rate=0.1, device="cpu"),
        {
            "module_factory": (4, 4),
            "surrogate": "quadratic",
            "standardize": False,
            "learning_rate": 0.01,
            "weight_decay": 1.0,
            "batch_size": 7,
            "max_epochs": 1,
            "validation_fraction": 0.4,
            "patience": 1,
            "device": "nowhere",
            "checkpoint": "state",
        },
        # single precision, batches drawn among rows; checkpoints have a test of their own
        {"exact_weights": False, "tolerance": 1e-5, "same": ("checkpoint",)},
    ),
    "costs": Case(
        Costs(n_landmarks=20),
        {
            "models": ["linear"],
            "powers": (3.0,),
            "n_landmarks": 5,
            "regret_rows": 0,
            "surrogate": "spo-plus",
            "n_epochs": 2,
            "time_limit": -1.0,
        },
        {"exact_weights": False, "exact_out_of_fold": False},  # landmarks and folds are drawn
        kind="decisions",
    ),
    "chain": Case(
        Chain("log", alpha=0.01, max_epochs=4),
        {
            "surrogate": "quadratic",
            "decoding": "bayes",
            "features": "random",
            "n_components": 5,
            "bandwidth": 2.0,
            "hash_bits": 4,
            "window": 1,
            "boundaries": False,
            "transitions": "features",
            "tag_scheme": "bio",
            "forbidden_transitions": [(0, 1)],
            "solver": "lbfgs",
            "alpha": 1.0,
            "step": 0.01,
            "batch_size": 2,
            "max_epochs": 1,
            "early_stopping": True,
            "validation_fraction": 0.3,
            "patience": 1,
            "checkpoint": "state",
            "time_limit": -1.0,
        },
        {"exact_weights": False, "same": ("checkpoint",)},
        kind="sequences",
    ),
    "items": Case(
        Items("ridge", features="rbf", bandwidth=1.5, standardize=True, alpha=0.1),
        {
            "model": LinearRegression(),
            "features": "linear",
            "kernel": "laplace",
            "bandwidth": 3.0,
            "degree": 2,
            "coef0": 2.0,
            "n_components": 10,
            "standardize": False,
            "alpha": 1.0,
            "selection": "surrogate",
            "scores": "items",
            "cv": 3,
            "time_limit": 1.0,
            "n_jobs": 2,
        },
        # what "items" permits, the NDCG does anyway
        {"same": ("n_jobs", "scores")},
        kind="queries",
    ),
}


def sequences() -> Examples:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 3)) for length in rng.integers(2, 6, size=20)]
    y = [(row[:, 0] + 0.5 * rng.normal(size=len(row)) > 0).astype(int) for row in X]
    return read_sequences(StructuredPredictor("hamming", Chain()), Chain(), X, y)


def queries() -> Examples:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 3)) for _ in range(24)]
    y = [np.clip(row[:, 0] + rng.normal(size=5) + 1, 0, 2).astype(int) for row in X]
    estimator = StructuredPredictor("ndcg", Items())
    return read_queries(estimator, Items(), X, y, None, None)


def test_every_registered_model_is_checked():
    assert set(CASES) == set(MODELS)


@pytest.mark.parametrize("loss", TABLES, ids=repr)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.kind == "rows"])
def test_models_of_rows(name, loss):
    case = CASES[name]
    check_target_model(case.model, examples=table_examples(loss), **case.options)


def decisions() -> Examples:
    return table_examples(Decision(GridPath(2, 3)))


def misleading_decisions() -> Examples:
    """Squared errors sit in a cost that no decision turns on, so that regrets choose otherwise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    first = X[:, 0] * X[:, 1] > 0  # which costs least is not linear in x; what costs most is
    greatest = 2000 + 400 * X[:, 2] + 100 * rng.standard_normal(60)
    costs = np.column_stack([1 + 9 * first, 10 - 9 * first, greatest])
    return Examples(Rows(Decision(TopK(3, 1)), None), X, costs, np.ones(60))


def test_models_of_decisions():
    case = CASES["costs"]
    check_target_model(case.model, examples=decisions(), **case.options)


def test_models_of_sequences():
    check_target_model(CASES["chain"].model, examples=sequences(), exact_weights=False)


def test_models_of_queries():
    check_target_model(CASES["items"].model, examples=queries())


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_parameter_is_ignored(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a checkpoint is written here
    case = CASES[name]
    made = {
        "rows": lambda: table_examples(ZeroOne(4)),
        "sequences": sequences,
        "queries": queries,
        "decisions": misleading_decisions,
    }
    check_target_model(
        case.model, examples=made[case.kind](), settings=case.settings, **case.options
    )


@pytest.mark.parametrize("name", ["ridge", "regressor"])
def test_rankings_of_labels(name):
    case = CASES[name]
    check_target_model(case.model, examples=table_examples(Kendall(3)), **case.options)
