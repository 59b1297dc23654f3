"""`DecideBy` in scikit-learn: pipelines, searches, scores."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from consistruct.decisions import DecideBy
from consistruct.losses import CostMatrix, Hamming

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
COSTS = CostMatrix(
    [[0, 9, 9], [1, 0, 5], [1, 1, 0]], *[("virginica", "setosa", "versicolor")] * 2, rows="pred"
)


@parametrize_with_checks([DecideBy(LogisticRegression())])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def test_pipelines_searches_and_scores():
    pipeline = make_pipeline(StandardScaler(), DecideBy(LogisticRegression(), COSTS))
    search = GridSearchCV(pipeline, {"decideby__estimator__C": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"decideby__estimator__C": 1.0}
    assert (cross_val_score(pipeline, X, Y, cv=3) > -1.0).all()


def test_scores_are_mean_costs_by_name():
    model = DecideBy(LogisticRegression(max_iter=500, C=0.02), COSTS).fit(X, Y)
    predicted, names = model.predict(X), list(COSTS.pred_names)
    costs = [COSTS.M[names.index(a), names.index(b)] for a, b in zip(predicted, Y, strict=True)]
    assert model.score(X, Y) == pytest.approx(-np.mean(costs))
    assert model.score(X, np.full(150, "unseen")) == -9.0
    weights = np.arange(150.0)
    assert model.score(X, Y, weights) == pytest.approx(-np.average(costs, weights=weights))
    losses = model.predict_proba(X) @ COSTS.M[:, [names.index(name) for name in model.classes_]].T
    np.testing.assert_array_equal(predicted, np.array(names)[losses.argmin(axis=1)])
    assert model.n_features_in_ == 4


def test_label_sets_and_limits():
    Z, sets = make_multilabel_classification(120, n_classes=4, random_state=0)
    model = DecideBy(RandomForestClassifier(20, random_state=0), Hamming(4)).fit(Z, sets)
    assert model.predict(Z).shape == (120, 4)
    assert model.score(Z, sets) == -np.mean(model.predict(Z) != sets)
    few = DecideBy(LogisticRegression(max_iter=500), "abstain:3:0.01", limits={"abstain": 4}).fit(
        X, Y
    )
    assert (few.predict(X) == "abstain").sum() == 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_that_call_labels_their_classes():
    Z, sets = make_multilabel_classification(60, n_classes=2, random_state=0)
    model = DecideBy(MLPClassifier((5,), max_iter=5, random_state=0), Hamming(2)).fit(Z, sets)
    np.testing.assert_array_equal(model.predict(Z), model.predict_proba(Z) > 0.5)


def test_classifiers_without_probabilities_are_refused():
    with pytest.raises(TypeError, match="CalibratedClassifierCV"):
        DecideBy(LinearSVC(), "zero-one").fit(X, Y)
    assert not hasattr(DecideBy(LinearSVC()), "predict_proba")
