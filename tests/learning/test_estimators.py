"""scikit-learn's own checks, over losses, surrogates and solvers."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import consistruct as cs
from consistruct.learning import AveragedSGD, ClosedForm

DETERMINISTIC = [
    cs.TaskLossClassifier(),
    cs.TaskLossClassifier("ordinal", features="linear"),
    cs.TaskLossClassifier("hamming", features="linear"),
    cs.TaskLossClassifier(features="laplace", regularizer="weights", bandwidth="median"),
    cs.TaskLossClassifier(surrogate="log", decoding="bayes", features="linear", alpha=1e-3),
    cs.TaskLossClassifier(solver=ClosedForm(selection="surrogate"), bandwidth="median"),
    cs.TaskLossClassifier("abstain::0.4", features="linear"),
    cs.StructuredPredictor(bandwidth="median"),
    cs.StructuredPredictor("zero_one", features="linear"),
    cs.StructuredPredictor("ordinal", features="linear", surrogate="logistic", alpha=1e-2),
]
STOCHASTIC = [
    cs.TaskLossClassifier(solver="sgd", bandwidth="median"),
    cs.TaskLossClassifier("hamming", solver=AveragedSGD(max_epochs=20), features="linear"),
    cs.StructuredPredictor(solver="sgd", features="linear"),
]
REASON = "a stochastic solver visits repeated rows apart; scikit-learn excuses its own alike"
ABSTAINING = "one answer more than there are classes: neither predictions nor scores match classes_"


def excused(estimator):
    if str(estimator.loss).startswith("abstain"):
        return {"check_classifiers_classes": ABSTAINING, "check_classifiers_train": ABSTAINING}
    if isinstance(estimator, cs.StructuredPredictor) and estimator.solver == "sgd":
        return {"check_sample_weight_equivalence_on_sparse_data": REASON}
    if estimator.solver == "sgd" or isinstance(estimator.solver, AveragedSGD):
        return {
            "check_sample_weight_equivalence_on_dense_data": REASON,
            "check_sample_weight_equivalence_on_sparse_data": REASON,
        }
    return {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    DETERMINISTIC + STOCHASTIC, expected_failed_checks=excused, xfail_strict=True
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
