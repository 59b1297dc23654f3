"""Model files: whatever was fitted predicts bit for bit the same after a round trip."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from consistruct import losses, structures
from consistruct.learning import (
    StructuredPredictor,
    TaskLossClassifier,
    load,
    save,
)
from consistruct.learning.files.known_types import model_types
from consistruct.learning.files.model_tree import Decoder, Encoder
from consistruct.learning.files.persistence import read_model
from consistruct.learning.models import Linear, Ridge
from consistruct.learning.models.ridge.closed_form import ClosedForm
from consistruct.learning.models.solvers.averaged_sgd import AveragedSGD
from consistruct.losses.metrics import METRICS
from consistruct.losses.registry import LOSSES
from consistruct.structures import Classes
from consistruct.surrogates import SURROGATES, BaseSurrogate, QuadraticSurrogate

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X_NEW = RNG.normal(size=(17, 3))
EXAMPLES = [
    pytest.param(loss, id=f"{name}-{position}")
    for name, entry in LOSSES.items()
    for position, loss in enumerate(entry.examples)
]


def assert_same_model(model: Any, again: Any, inputs: Any = X_NEW) -> None:
    assert type(again) is type(model)
    if model.model_.estimates:
        expected = model.expected_target(inputs)
        assert again.expected_target(inputs).tobytes() == expected.tobytes()
    before, after = model.predict(inputs), again.predict(inputs)
    assert before.dtype == after.dtype
    np.testing.assert_array_equal(before, after)
    assert set(vars(again)) == set(vars(model))


def round_trip(model: Any, tmp_path: Any, inputs: Any = X_NEW) -> Any:
    path = tmp_path / "model.safetensors"
    save(model, path)
    again = load(path)
    assert_same_model(model, again, inputs)
    return again


@pytest.mark.parametrize("loss", EXAMPLES)
def test_every_registered_loss(loss, tmp_path):
    y_true = loss.true_labels.sample(len(X), np.random.default_rng(1))
    model = StructuredPredictor(loss, Ridge("linear"), random_state=0).fit(X, y_true)
    again = round_trip(model, tmp_path)
    assert again.loss == loss
    assert again.loss_ == model.loss_  # F_β has the set sizes that were found
    assert again.score(X, y_true) == model.score(X, y_true)
    if isinstance(loss.true_labels, Classes) and len(np.unique(y_true)) > 1:
        round_trip(
            TaskLossClassifier(loss, Ridge("linear"), random_state=0).fit(X, y_true), tmp_path
        )


def test_combined_losses(tmp_path):
    together = 0.4 * losses.ZeroOne(4) + 0.6 * losses.Block((2, 2))
    # neither term's scores express the other: the span is found numerically
    odd = 1.0 * losses.Ordinal(4, 2.0) + 0.5 * losses.Block((2, 2))
    for loss in (together, odd):
        y_true = loss.true_labels.sample(len(X), np.random.default_rng(1))
        round_trip(StructuredPredictor(loss, Ridge("linear")).fit(X, y_true), tmp_path)


@pytest.mark.parametrize(
    "features", ["auto", "linear", "rbf", "laplace", "poly", "nystroem", "random"]
)
@pytest.mark.parametrize("standardize", ["auto", True])
def test_every_feature_map(features, standardize, tmp_path):
    y = RNG.integers(3, size=len(X))
    components = None if features in ("linear", "rbf", "laplace", "poly") else 16
    ridge = Ridge(features, standardize=standardize, n_components=components)
    round_trip(TaskLossClassifier(model=ridge, random_state=0).fit(X, y), tmp_path)


def decodings():
    """Every surrogate with every decoding it has: scores that only rank have no Bayes rule."""
    for name, entry in sorted(SURROGATES.items()):
        yield name, "argmax"
        if entry.cls.expected_target is not BaseSurrogate.expected_target:
            yield name, "bayes"


@pytest.mark.parametrize(("surrogate", "decoding"), list(decodings()))
def test_every_surrogate(surrogate, decoding, tmp_path):
    y = RNG.integers(3, size=len(X))
    solver = "lbfgs" if SURROGATES[surrogate].cls.smooth else "sgd"
    linear = Linear(surrogate, decoding=decoding, features="linear", solver=solver)
    model = TaskLossClassifier(model=linear, random_state=0)
    if decoding == "bayes" and surrogate in ("hinge", "max-min-margin", "softmax-margin"):
        with pytest.raises(ValueError, match="only ranks predictions"):
            model.fit(X, y)
        return
    round_trip(model.fit(X, y), tmp_path)


def test_sparse_inputs_and_sgd(tmp_path):
    inputs = sp.random_array((60, 20), density=0.2, format="csr", rng=np.random.default_rng(0))
    labels = RNG.integers(2, size=(60, 5))
    model = TaskLossClassifier(
        "hamming", Ridge("linear", solver=AveragedSGD(max_epochs=3)), random_state=0
    )
    round_trip(model.fit(inputs, labels), tmp_path, inputs)


@pytest.mark.parametrize("kind", [TaskLossClassifier, StructuredPredictor])
def test_partial_fit_goes_on_after_loading(kind, tmp_path):
    y = np.arange(len(X)) % 3
    model = kind("zero_one", Ridge("linear", solver="sgd"), random_state=0)
    model.partial_fit(X, y)
    again = round_trip(model, tmp_path)
    assert_same_model(model.partial_fit(X, y), again.partial_fit(X, y))


@pytest.mark.parametrize(
    "names",
    [
        np.array(["Kuh", "Äffin", "日本"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([-5, 7, 2**40]),
        np.array([3, 1, 2], dtype=np.int8),
        np.array([0.5, 1.5, -2.25]),
        np.array([False, True, True]),
    ],
    ids=["str", "object", "int", "int8", "float", "bool"],
)
def test_class_names_of_any_type(names, tmp_path):
    y = names[np.arange(len(X)) % 3]
    model = StructuredPredictor("zero_one", Ridge("linear")).fit(X, y)
    again = round_trip(model, tmp_path)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    if names.dtype.kind != "f":  # fractions are no classes to scikit-learn
        classifier = round_trip(TaskLossClassifier(model=Ridge("linear")).fit(X, y), tmp_path)
        np.testing.assert_array_equal(classifier.classes_, np.unique(names))
        assert classifier.classes_.dtype == np.unique(names).dtype


@pytest.mark.parametrize(
    "random_state",
    [3, np.random.RandomState(5), np.random.default_rng(5)],
    ids=["int", "RandomState", "Generator"],
)
def test_random_states(random_state, tmp_path):
    model = TaskLossClassifier(model=Ridge("random", n_components=8), random_state=random_state)
    again = round_trip(model.fit(X, RNG.integers(2, size=len(X))), tmp_path)
    kept = again.random_state
    assert type(kept) is type(random_state)
    if not isinstance(kept, int):  # it goes on where the original would
        assert kept.normal() == random_state.normal()


def test_feature_names_and_output_configuration(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["one", "two", "drei"])
    model = TaskLossClassifier(model=Ridge("linear")).fit(frame, RNG.integers(2, size=len(X)))
    again = round_trip(model, tmp_path, frame)
    np.testing.assert_array_equal(again.feature_names_in_, ["one", "two", "drei"])
    swapped = again.predict(frame[["two", "one", "drei"]])  # found by name
    np.testing.assert_array_equal(swapped, model.predict(frame))


@pytest.mark.parametrize(
    "parameters",
    [
        {"scores": structures.Full(Classes(3))},
        {"scores": structures.Orthonormalized(losses.Ordinal(3, 2.0).score_space)},
        {"scores": structures.Dense([[1.0, 0.0], [0.5, 1.0], [0.2, 0.3]])},
        {"solver": ClosedForm(selection="gcv")},
        {"alpha": [0.1, 1.0]},
        {"alpha": np.array([0.1, 1.0])},
    ],
    ids=lambda parameters: "-".join(parameters),
)
def test_parameters_that_are_objects(parameters, tmp_path):
    y = np.arange(len(X)) % 3
    model = TaskLossClassifier(losses.Ordinal(3, 2.0), Ridge("linear", **parameters))
    again = round_trip(model.fit(X, y), tmp_path)
    for name, value in parameters.items():
        np.testing.assert_equal(getattr(again.model, name), value)
    assert_same_model(again.fit(X, y), model)


def test_class_weights_and_surrogate_classes(tmp_path):
    y = np.arange(len(X)) % 3
    weights = {0: 1.0, 1: 2.0, 2: 0.5}
    model = TaskLossClassifier(model=Linear(QuadraticSurrogate), class_weight=weights)
    again = round_trip(model.fit(X, y), tmp_path)
    assert again.class_weight == weights
    assert again.model.surrogate is QuadraticSurrogate


def test_unfitted(tmp_path):
    model = TaskLossClassifier(losses.Hamming(4), Ridge(alpha=0.5), cv=3)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert repr(again.get_params()) == repr(model.get_params())
    assert not hasattr(again, "model_")


def test_a_model_keeps_its_basis(tmp_path, monkeypatch):
    """Another LAPACK may rotate the numerically chosen basis; the weights are coordinates in it."""
    loss = losses.CostMatrix([[0, 1, 2], [1, 0, 2], [1, 0, 2], [3, 1, 0]], rows="pred")
    model = StructuredPredictor(loss, Ridge("linear")).fit(X, np.arange(len(X)) % 3)
    expected = model.predict(X_NEW)
    save(model, tmp_path / "model")

    def no_svd(*_: Any, **__: Any) -> None:
        raise AssertionError("the basis was computed anew")

    monkeypatch.setattr(np.linalg, "svd", no_svd)
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X_NEW), expected)


def test_notes_and_version(tmp_path):
    notes = {"columns": ["a", "b"], "share": 0.5, "nested": {"k": (1, None, math.inf)}}
    save(TaskLossClassifier(), tmp_path / "model", notes=notes)
    stored = read_model(tmp_path / "model")
    assert stored.notes == notes
    assert stored.package_version


def test_files_are_reproducible(tmp_path):
    model = TaskLossClassifier(model=Ridge("linear")).fit(X, np.arange(len(X)) % 3)
    for name in ("one", "two"):
        save(model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    save(load(tmp_path / "one"), tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()


# --- the typed tree itself -----------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text()
    | st.floats(width=32).map(np.float32)
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.booleans().map(np.bool_)
)
ARRAYS = hnp.arrays(
    hnp.floating_dtypes(sizes=(16, 32, 64))
    | hnp.integer_dtypes()
    | hnp.unsigned_integer_dtypes()
    | hnp.boolean_dtypes()
    | hnp.unicode_string_dtypes(min_len=1),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
ORDERED = st.tuples(ARRAYS, st.booleans()).map(
    lambda pair: np.asfortranarray(pair[0]) if pair[1] else pair[0]
)
TREES = st.recursive(
    SCALARS | ORDERED,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
    ),
    max_leaves=8,
)


def assert_identical(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        native = one.dtype.newbyteorder("=")
        assert other.dtype == native
        assert one.shape == other.shape
        assert one.astype(native).tobytes() == other.tobytes()
        if one.dtype.kind != "U":  # arithmetic depends on the memory order, names do not
            assert other.flags.c_contiguous or one.flags.f_contiguous
            assert other.flags.f_contiguous == one.flags.f_contiguous
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_identical(left, right)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_identical(one[key], other[key])
    elif isinstance(one, float | np.floating):
        if np.isnan(one):  # Python floats lose the payload of a NaN in JSON, which states nothing
            assert np.isnan(other)
        else:
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    else:
        assert one == other


@given(TREES)
def test_trees_come_back_identical(tree):
    encoder = Encoder(model_types())
    text = json.dumps(encoder.encode(tree, "tree"), allow_nan=False)
    stored = safetensors.numpy.load(safetensors.numpy.save(encoder.arrays))
    assert_identical(tree, Decoder(model_types(), stored, 2**20).decode(json.loads(text)))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix])
def test_sparse_matrices(kind):
    matrix = kind(sp.random_array((5, 4), density=0.4, rng=np.random.default_rng(0)))
    encoder = Encoder(model_types())
    node = encoder.encode(matrix, "m")
    again = Decoder(model_types(), encoder.arrays, 2**20).decode(node)
    assert type(again) is kind
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


def test_every_member_of_the_registry_is_known():
    known = {entry.cls for entry in model_types()}
    assert {entry.cls for entry in LOSSES.values()} <= known
    assert {entry.cls for entry in SURROGATES.values()} <= known


def test_shared_arrays_stay_shared():
    array = np.arange(3.0)
    encoder = Encoder(model_types())
    node = encoder.encode([array, array], "pair")
    assert len(encoder.arrays) == 1
    one, two = Decoder(model_types(), encoder.arrays, 2**20).decode(node)
    assert one is two


@pytest.mark.parametrize("name", METRICS)
def test_model_files_know_every_metric(name):
    """A metric that is missing there would be found out by the first user who saves."""
    for metric in METRICS[name].examples:
        assert model_types().of_class(type(metric), name).cls is type(metric)
