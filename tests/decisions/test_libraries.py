"""24 combinations of library and loss: `decide` is what our estimators do, bit for bit.

The estimator and `decide` get the same probabilities: those of the classifier that was fitted
inside of the estimator. Libraries that are not installed are skipped.
"""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import consistruct as cs
from consistruct.losses import NDCG, Abstain, CostMatrix, FBeta, Ordinal, Tree
from consistruct.models import Probabilities, Regressor

NAMES = ("ant", "bee", "cat", "dog")
COSTS = np.array([[0, 5, 9, 2], [1, 0, 4, 3], [2, 7, 0, 1], [8, 1, 6, 0]], dtype=float)
LOSSES = {
    "costs": CostMatrix(COSTS, NAMES[::-1], NAMES[::-1], rows="pred"),
    "ordinal": Ordinal(4),
    "tree": Tree((-1, 0, 0, 1, 1, 2, 2)),
    "abstain": Abstain(4, 0.5),
    "fbeta": FBeta(5),
    "ndcg": NDCG(5, n_grades=3),
}


class Network(BaseEstimator):
    """One linear layer in single precision, as networks hand over their outputs."""

    def _fitted(self, X, targets, criterion):
        import torch

        torch.manual_seed(0)
        self.layer_ = torch.nn.Linear(X.shape[1], self.n_outputs_)
        optimizer = torch.optim.Adam(self.layer_.parameters(), lr=0.1)
        inputs = torch.tensor(np.asarray(X, dtype=np.float32))
        for _ in range(40):
            optimizer.zero_grad()
            criterion(self.layer_(inputs), torch.tensor(targets)).backward()
            optimizer.step()
        return self

    def _outputs(self, X):
        import torch

        with torch.no_grad():
            return self.layer_(torch.tensor(np.asarray(X, dtype=np.float32)))


class NetworkClassifier(ClassifierMixin, Network):
    def fit(self, X, y):
        import torch

        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_outputs_ = len(self.classes_)
        return self._fitted(X, codes, torch.nn.CrossEntropyLoss())

    def predict_proba(self, X):
        return self._outputs(X).softmax(dim=1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class NetworkRegressor(RegressorMixin, Network):
    def fit(self, X, y):
        import torch

        self.n_outputs_ = 1
        targets = np.asarray(y, dtype=np.float32).reshape(-1, 1)
        return self._fitted(X, targets, torch.nn.MSELoss())

    def predict(self, X):
        return self._outputs(X).numpy().ravel()


def models(library):
    """A classifier and a regressor."""
    if library == "scikit-learn":
        options = {"n_estimators": 10, "max_depth": 4, "random_state": 0}
        return RandomForestClassifier(**options), RandomForestRegressor(**options)
    if library == "torch":
        pytest.importorskip("torch")
        return NetworkClassifier(), NetworkRegressor()
    module = pytest.importorskip(library)
    if library == "lightgbm":
        options = {"n_estimators": 20, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
        return module.LGBMClassifier(**options), module.LGBMRegressor(**options)
    if library == "xgboost":
        options = {"n_estimators": 5, "max_depth": 3, "n_jobs": 1}
        return module.XGBClassifier(**options), module.XGBRegressor(**options)
    options = {"iterations": 5, "depth": 3, "thread_count": 1, "verbose": False}
    options["allow_writing_files"] = False
    return module.CatBoostClassifier(**options), module.CatBoostRegressor(**options)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 4))
    scores = X @ rng.normal(size=(4, 5)) + rng.gumbel(size=(160, 5))
    return X, scores


def of_classes(name, classifier, X, scores):
    loss, codes = LOSSES[name], scores[:, :4].argmax(axis=1)
    y = np.array(NAMES)[codes] if name == "costs" else codes
    estimator = cs.TaskLossClassifier(loss, Probabilities(classifier)).fit(X[:100], y[:100])
    (fitted,) = estimator.model_.estimators_
    codes = estimator.label_encoding_.classes  # the classifier was fitted on codes 0, 1, …
    given = fitted.predict_proba(X[100:])
    return estimator, cs.decide(loss, given, classes=codes[fitted.classes_])


def of_sets(classifier, X, scores):
    # between one and four labels: the classifier tells for each label the size of the set with it
    order, sizes = np.argsort(-scores, axis=1), np.clip((scores > 0.5).sum(axis=1), 1, 4)
    sets = np.zeros(scores.shape, dtype=int)
    np.put_along_axis(sets, order, (np.arange(5) < sizes[:, None]).astype(int), axis=1)
    loss = FBeta(5, sizes=(1, 2, 3, 4))
    estimator = cs.TaskLossClassifier(loss, Probabilities(classifier)).fit(X[:100], sets[:100])
    model, joint = estimator.model_, np.zeros((60, 5, 5))
    for label, (question, given) in enumerate(
        zip(model.questions_, model._probabilities(X[100:]), strict=True)
    ):
        for answer, p in zip(question.answers.toarray(), np.asarray(given).T, strict=True):
            joint[:, label, 1 + answer.argmin() if answer.any() else 0] = p
    return estimator, cs.decide(loss, joint)


def of_rankings(regressor, X, scores):
    grades = np.digitize(scores, [0.0, 1.5])
    estimator = cs.StructuredPredictor(LOSSES["ndcg"], Regressor(regressor))
    estimator.fit(X[:100], grades[:100])
    gains = -estimator.model_.expected(X[100:])[:, :5]
    return estimator, cs.decide(LOSSES["ndcg"], gains)


@pytest.mark.filterwarnings("ignore")  # of the libraries about their own arguments
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("library", ["scikit-learn", "lightgbm", "catboost", "xgboost", "torch"])
def test_decide_is_what_estimators_do(library, name, rows):
    classifier, regressor = models(library)
    X, scores = rows
    if name == "fbeta":
        estimator, found = of_sets(classifier, X, scores)
    elif name == "ndcg":
        estimator, found = of_rankings(regressor, X, scores)
    else:
        estimator, found = of_classes(name, classifier, X, scores)
    expected = estimator.predict(X[100:])
    np.testing.assert_array_equal(found.labels, expected)
    assert len(np.unique(expected, axis=0)) > 1
    losses = estimator.predict_expected_loss(X[100:])
    np.testing.assert_allclose(
        found.expected_loss.clip(*estimator.loss_.value_range), losses, atol=1e-9
    )
