"""Every registered metric of the mean confusion against the public checks and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

from consistruct.exceptions import LossSpecError
from consistruct.losses.metrics import METRICS, Metric, RecallMean, is_metric, parse_metric
from consistruct.metrics import metric_value
from consistruct.testing import check_metric

EXAMPLES = [metric for entry in METRICS.values() for metric in entry.examples]


@pytest.mark.parametrize("metric", [*EXAMPLES, RecallMean(-1.0), RecallMean(0.5)], ids=repr)
def test_metric_keeps_the_contracts(metric):
    check_metric(metric)


def every_metric_class(cls: type = Metric) -> set[type]:
    found = set()
    for child in cls.__subclasses__():
        if child.__module__.startswith("consistruct.losses.metrics"):
            found |= ({child} if not child.__abstractmethods__ else set()) | every_metric_class(
                child
            )
    return found


def test_no_metric_is_forgotten_in_the_registry():
    inner = {type(getattr(metric, "metric", metric)) for metric in EXAMPLES}
    assert every_metric_class() <= inner | {type(metric) for metric in EXAMPLES}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_documented_specs_are_read(name):
    for spec in METRICS[name].spec.split(" or "):
        assert is_metric(spec)
        assert isinstance(parse_metric(spec), Metric)
        assert isinstance(parse_metric(spec.replace("-", "_", 1)), Metric)


def g_mean(y, pred):
    return float(np.prod(sk.recall_score(y, pred, average=None)) ** (1 / len(np.unique(y))))


BINARY = {
    "f1": sk.f1_score,
    "f-beta:2": lambda y, pred: sk.fbeta_score(y, pred, beta=2),
    "jaccard": sk.jaccard_score,
    "precision-at-recall:0.9": sk.precision_score,
    "recall-at-precision:0.9": sk.recall_score,
}
CLASSES = {
    "macro-f1": lambda y, pred: sk.f1_score(y, pred, average="macro"),
    "micro-f1": lambda y, pred: sk.f1_score(y, pred, average="micro"),
    "weighted-f1": lambda y, pred: sk.f1_score(y, pred, average="weighted"),
    "f-beta:0.5:macro": lambda y, pred: sk.fbeta_score(y, pred, beta=0.5, average="macro"),
    "macro-jaccard": lambda y, pred: sk.jaccard_score(y, pred, average="macro"),
    "micro-jaccard": lambda y, pred: sk.jaccard_score(y, pred, average="micro"),
    "balanced-accuracy": sk.balanced_accuracy_score,
    "g-mean": g_mean,
    "min-recall": lambda y, pred: sk.recall_score(y, pred, average=None).min(),
    "kappa": sk.cohen_kappa_score,
    "kappa:linear": lambda y, pred: sk.cohen_kappa_score(y, pred, weights="linear"),
    "qwk": lambda y, pred: sk.cohen_kappa_score(y, pred, weights="quadratic"),
    "mcc": sk.matthews_corrcoef,
}
LABELS = ("macro-f1", "micro-f1", "weighted-f1", "macro-jaccard", "micro-jaccard")


def drawn(k, seed, n=200):
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    return y, np.where(rng.random(n) < 0.6, y, rng.integers(k, size=n))


@pytest.mark.parametrize("spec", sorted(BINARY))
def test_values_for_two_classes_are_those_of_scikit_learn(spec):
    y, pred = drawn(2, 0)
    confusion = sk.confusion_matrix(y, pred).T  # its rows are true labels
    assert parse_metric(spec).value(confusion) == pytest.approx(BINARY[spec](y, pred), abs=1e-12)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("spec", sorted(CLASSES))
def test_values_for_classes_are_those_of_scikit_learn(spec, k):
    y, pred = drawn(k, 1)
    confusion = sk.confusion_matrix(y, pred).T
    assert parse_metric(spec).value(confusion) == pytest.approx(CLASSES[spec](y, pred), abs=1e-12)


@pytest.mark.filterwarnings("ignore:A single label was found")
@pytest.mark.parametrize("spec", sorted(set(CLASSES) - {"kappa", "kappa:linear", "qwk"}))
def test_one_class_alone_has_the_value_of_scikit_learn(spec):
    """Agreement beyond chance is undefined there; scikit-learn returns nan."""
    y = np.array([3, 3, 3])
    ours = metric_value(y, y, metric=spec)
    assert ours == pytest.approx(CLASSES[spec](y, y))


@pytest.mark.parametrize("spec", sorted(CLASSES))
def test_classes_that_do_not_occur_count_as_in_scikit_learn(spec):
    """Of four classes that are known one is neither true nor predicted."""
    y, pred = drawn(3, 4)
    confusion = sk.confusion_matrix(y, pred, labels=range(4)).T
    assert parse_metric(spec).value(confusion) == pytest.approx(CLASSES[spec](y, pred), abs=1e-12)


def test_one_class_of_two_must_say_which_it_is():
    assert metric_value([1, 1], [1, 1], metric="f1") == sk.f1_score([1, 1], [1, 1]) == 1.0
    zeros = np.zeros(3, dtype=bool)
    assert metric_value(zeros, zeros, metric="f1") == 0.0
    with pytest.raises(ValueError, match="hold only 'yes'; write classes as 0 and 1"):
        metric_value(["yes"], ["yes"], metric="f1")


@pytest.mark.parametrize("spec", LABELS)
def test_values_for_label_sets_are_those_of_scikit_learn(spec):
    rng = np.random.default_rng(2)
    y = (rng.random((150, 5)) < 0.3).astype(int)
    pred = np.where(rng.random(y.shape) < 0.8, y, 1 - y)
    counts = np.swapaxes(sk.multilabel_confusion_matrix(y, pred), 1, 2)
    assert parse_metric(spec).value(counts) == pytest.approx(CLASSES[spec](y, pred), abs=1e-12)


@pytest.mark.parametrize(
    "spec", [name for name in sorted(CLASSES) if name not in ("qwk", "kappa:linear")]
)
def test_names_of_classes_do_not_matter(spec):
    confusion = np.random.default_rng(3).random((4, 4))
    order = np.array([2, 0, 3, 1])
    metric = parse_metric(spec)
    assert metric.value(confusion[np.ix_(order, order)]) == pytest.approx(metric.value(confusion))


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ("macro-f2", "unknown metric 'macro-f2'"),
        ("macro-f1:3", "at most 0 field"),
        ("f-beta", "beta in the spec of f-beta must be a number"),
        ("f-beta:-1", "beta must be"),
        ("kappa:cubic", "weights must be None, 'linear' or 'quadratic', got 'cubic'"),
        ("precision-at-recall:1.5", "recall must be between 0 and 1"),
        ("coverage:0.05:zero-one", "unknown metric 'zero-one'"),
        ("equal-recall:0.05", "names the column of the groups"),
    ],
)
def test_bad_specs_say_what_is_wrong(spec, reported):
    with pytest.raises(LossSpecError, match=reported):
        parse_metric(spec)


@pytest.mark.parametrize(
    ("confusion", "reported"),
    [([1, 2], "shape"), ([[1, -1], [0, 1]], "non-negative"), (np.ones((3, 3)), "is for 2 classes")],
)
def test_what_is_no_confusion_is_refused(confusion, reported):
    with pytest.raises(ValueError, match=reported):
        parse_metric("f1").value(np.asarray(confusion, dtype=float))
