"""The rules of every model of the expected target, for Items."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.preprocessing import PolynomialFeatures

from consistruct.learning.encoding.kinds import Examples
from consistruct.learning.encoding.queries import pack_queries
from consistruct.learning.encoding.rankings import Queries
from consistruct.learning.models.items.model import Items
from consistruct.losses import NDCG, PrecisionAt
from consistruct.testing import check_target_model


def query_examples(loss, n=24):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(n), rng.integers(3, 6, size=n))
    X = rng.normal(size=(len(ids), 3))
    grades = np.clip(np.round(X[:, 0] + rng.normal(size=len(ids))), 0, loss.n_grades - 1)
    batch = pack_queries(X, ids)
    return Examples(Queries(loss), batch, batch.pack(grades.astype(int)), np.ones(n))


EXAMPLES = query_examples(NDCG(None, n_grades=3))
NO_RIDGE = {
    "features": "linear",
    "kernel": "rbf",
    "bandwidth": 2.0,
    "degree": 2,
    "coef0": 0.5,
    "n_components": 5,
    "standardize": True,
    "alpha": 0.3,
    "selection": "surrogate",
}
GENERAL = {"scores": "pairs", "time_limit": -1.0, "n_jobs": 2}


def test_ridge_with_linear_features():
    settings = {**NO_RIDGE, **GENERAL, "features": PolynomialFeatures(2), "model": "trees"}
    check_target_model(
        Items("ridge", features="linear", alpha=0.1),
        examples=EXAMPLES,
        settings={**settings, "cv": 3},
        exact_out_of_fold=True,
        tolerance=1e-7,
    )


def test_ridge_with_a_kernel():
    settings = {**NO_RIDGE, **GENERAL, "model": LinearRegression(), "standardize": False}
    check_target_model(
        Items("ridge", features="nystroem", n_components=8, kernel="poly", bandwidth="median"),
        examples=EXAMPLES,
        settings={**settings, "cv": 3},
        exact_weights=False,  # landmarks are drawn from the items
        exact_out_of_fold=False,  # the penalty is chosen by the same queries
    )


@pytest.mark.parametrize("loss", [NDCG(None, n_grades=3), PrecisionAt(None, 2)], ids=repr)
def test_a_regressor(loss):
    check_target_model(
        Items(LinearRegression(), cv=3),
        examples=query_examples(loss),
        settings={**NO_RIDGE, **GENERAL, "model": PlainRidge(10.0), "cv": 1},
        exact_out_of_fold=True,
        tolerance=1e-7,
    )


@pytest.mark.parametrize("model", ["trees", "auto"])
def test_several_models(model):
    settings = {**NO_RIDGE, **GENERAL, "model": LinearRegression(), "cv": 3, "degree": 4}
    check_target_model(
        Items(model),
        examples=EXAMPLES,
        settings=None if model == "auto" else settings,
        exact_weights=False,  # folds and trees draw
        exact_out_of_fold=False,  # weights of the members are chosen by the same queries
    )
