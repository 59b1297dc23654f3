"""True labels that are sets of candidates, as users write them."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from consistruct.learning import load, save
from consistruct.losses import CostMatrix, Hamming, Ordinal, PartialLabels, ZeroOne
from consistruct.metrics import TaskLossScorer, task_losses
from consistruct.structures import Ragged
from tests.learning.estimators import predictor

X, CODES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
rng = np.random.default_rng(0)
EXTRA = rng.integers(0, 3, size=len(X))  # a distractor beside the true class
SETS = [{NAMES[true], NAMES[other]} for true, other in zip(CODES, EXTRA, strict=True)]
MASKS = np.zeros((len(X), 3), dtype=int)
MASKS[np.arange(len(X)), CODES] = 1
MASKS[np.arange(len(X)), EXTRA] = 1
INFIMUM = "partial-labels:infimum:zero-one"


@pytest.mark.parametrize("reduce", ["infimum", "average", "supremum"])
def test_all_ways_to_write_sets_agree(reduce):
    spec = f"partial_labels:{reduce}:zero-one"
    by_names = predictor(spec, features="linear", random_state=0).fit(X, SETS)
    coded = [np.flatnonzero(mask) for mask in MASKS]
    for loss, y in (
        (spec, [sorted(entry) for entry in SETS]),
        (spec, [tuple(entry) for entry in SETS]),
        (PartialLabels(ZeroOne(3), reduce), MASKS),
        (spec, MASKS),
        (PartialLabels(ZeroOne(3), reduce), coded),
        (spec, Ragged.pack(coded)),
    ):
        model = predictor(loss, features="linear", random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.model_.coef_, by_names.model_.coef_)
        assert model.score(X, y) == by_names.score(X, SETS)
    assert by_names.predict(X)[0] == "setosa"


def test_the_true_class_is_found_among_candidates():
    model = predictor(INFIMUM, random_state=0).fit(X, SETS)
    assert (model.predict(X) == NAMES[CODES]).mean() > 0.9
    # single labels are sets of one
    assert -model.score(X, NAMES[CODES]) == pytest.approx((model.predict(X) != NAMES[CODES]).mean())


def test_losses_by_hand():
    model = predictor(PartialLabels(Ordinal(3), "average")).fit(X, MASKS)
    pred = model.predict(X)
    expected = [np.abs(p - np.flatnonzero(m)).mean() for p, m in zip(pred, MASKS, strict=True)]
    np.testing.assert_allclose(model.task_losses(X, MASKS), expected)
    listed = [set(np.flatnonzero(mask).tolist()) for mask in MASKS]
    np.testing.assert_allclose(model.task_losses(X, listed), expected)
    np.testing.assert_allclose(
        task_losses(listed, pred, loss="partial-labels:average:ordinal"), expected
    )


@pytest.mark.parametrize(
    ("reduce", "expected"), [("infimum", 0.0), ("average", 0.5), ("supremum", 1.0)]
)
def test_unseen_candidates_are_wrong(reduce, expected):
    loss = f"partial-labels:{reduce}:zero-one"
    model = predictor(loss, random_state=0).fit(X, SETS)
    y_true = [{model.predict(X[:1])[0], "rosa"}]
    assert model.task_losses(X[:1], y_true).tolist() == [expected]
    assert model.task_losses(X[:1], [{"rosa"}]).tolist() == [1.0]
    assert TaskLossScorer(loss)(model, X[:1], [{"rosa"}]) == -1.0


def test_base_losses_with_names_and_structure():
    costs = CostMatrix(
        [[0, 1, 1], [1, 0, 9], [1, 1, 0]], true_names=NAMES, pred_names=NAMES, rows="pred"
    )
    model = predictor(PartialLabels(costs, "average")).fit(X, SETS)
    assert set(model.predict(X)) <= set(NAMES)
    bits = PartialLabels(Hamming(2), "average")  # a mask over the four bit vectors
    masks = np.eye(4, dtype=int)[CODES]
    assert predictor(bits).fit(X, masks).predict(X).shape == (len(X), 2)


def test_cross_validation_and_model_files(tmp_path):
    scores = cross_val_score(
        predictor(INFIMUM, features="linear"), X, np.array(SETS, dtype=object), cv=3
    )
    assert len(scores) == 3
    model = predictor(INFIMUM).fit(X, SETS)
    save(model, tmp_path / "sets.safetensors")
    again = load(tmp_path / "sets.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, SETS) == model.score(X, SETS)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (
            INFIMUM,
            [set(), *SETS[1:]],
            "example 0 has no candidates; leave it out, or list its candidates",
        ),
        (INFIMUM, 2 * MASKS, "y must be a list of sets or a 0/1 matrix with a column per class"),
        (PartialLabels(ZeroOne(3)), np.ones((len(X), 4), dtype=int), "is over 3 classes, but"),
        (PartialLabels(ZeroOne(2)), SETS, "is over 2 classes, but y contains 3 different labels"),
        (INFIMUM, SETS[:-1], "inconsistent numbers of samples"),
        (INFIMUM, None, "requires y to be passed"),
        ("partial-labels:infimum", SETS, "names the reduction and the base loss"),
    ],
)
def test_bad_sets(loss, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        predictor(loss).fit(X, y)


def test_mixed_types_are_refused():
    with pytest.raises(TypeError, match="labels of one type that can be sorted"):
        predictor(INFIMUM).fit(X, [{1, "a"}] * len(X))
