"""Sequence models as files: what is loaded predicts, and goes on learning, bit for bit the same."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from consistruct.exceptions import ModelFileError
from consistruct.learning import StructuredPredictor, load, save
from consistruct.learning.files.model_tree import Decoder, Encoder
from consistruct.learning.files.model_types import model_types
from consistruct.learning.files.sequence_types import join_names, split_names
from consistruct.learning.models.chain import FeatureIndex, SequencePredictor, TagSet

RNG = np.random.default_rng(0)
DENSE = [RNG.normal(size=(length, 4)) for length in RNG.integers(1, 8, size=30)]
NEW = [RNG.normal(size=(length, 4)) for length in RNG.integers(1, 8, size=12)]
TAGS = [np.array(["B-X", "I-X", "O"])[(row[:, 0] > 0) * 2] for row in DENSE]  # B-X or O
NAMES = [[[f"w={np.sign(t[0])}", f"long {t[1]:.0f}\n", "ü"] for t in row] for row in DENSE]
NEW_NAMES = [[[f"w={np.sign(t[0])}", "never seen"] for t in row] for row in NEW]
DICTS = [[{"first": float(t[0]), "sign": str(t[1] > 0)} for t in row] for row in DENSE]
NEW_DICTS = [[{"first": float(t[0]), "sign": str(t[1] > 0)} for t in row] for row in NEW]


def assert_same(model: Any, again: Any, inputs: Any) -> None:
    assert type(again) is type(model)
    before, after = model.score_parameters(inputs), again.score_parameters(inputs)
    assert after.unary.tobytes() == before.unary.tobytes()
    assert after.edges.tobytes() == before.edges.tobytes()
    for one, two in zip(model.predict(inputs), again.predict(inputs), strict=True):
        assert one.dtype == two.dtype
        assert one.tolist() == two.tolist()
    assert set(vars(again)) == set(vars(model))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()


def round_trip(model: Any, path: Path, inputs: Any) -> Any:
    save(model, path)
    again = load(path)
    assert_same(model, again, inputs)
    return again


@pytest.mark.parametrize(
    ("options", "X", "inputs"),
    [
        ({}, DENSE, NEW),
        ({"window": 1}, DENSE, NEW),
        ({"transitions": "features"}, DENSE, NEW),
        ({"transitions": "features"}, NAMES, NEW_NAMES),
        ({"random_features": 20}, DENSE, NEW),
        ({"random_features": 20, "window": 2, "bandwidth": 0.7}, DENSE, NEW),
        ({}, [sp.csr_array(row) for row in DENSE], [sp.csr_array(row) for row in NEW]),
        ({}, NAMES, NEW_NAMES),
        ({"window": 1}, NAMES, NEW_NAMES),
        ({"hash_bits": 8}, NAMES, NEW_NAMES),
        ({}, DICTS, NEW_DICTS),
        ({"hash_bits": 8}, DICTS, NEW_DICTS),
        ({"solver": "lbfgs", "alpha": 1.0}, DENSE, NEW),
        ({"early_stopping": True, "validation_fraction": 0.3}, DENSE, NEW),
        ({"boundaries": False}, DENSE, NEW),
    ],
)
def test_every_kind_of_features(options: dict[str, Any], X: Any, inputs: Any, tmp_path) -> None:
    model = SequencePredictor(random_state=0, max_epochs=2, **options).fit(X, TAGS)
    again = round_trip(model, tmp_path / "model", inputs)
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    refitted = again.fit(X, TAGS)  # an int as random state: the same again
    assert refitted.coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("surrogate", ["log", "hinge", "softmax_margin", "quadratic"])
def test_every_surrogate(surrogate: str, tmp_path) -> None:
    model = SequencePredictor(surrogate, random_state=0, max_epochs=2).fit(DENSE, TAGS)
    round_trip(model, tmp_path / "model", NEW)


def test_marginals(tmp_path) -> None:
    model = SequencePredictor("log", "marginals", random_state=0, max_epochs=2).fit(DENSE, TAGS)
    again = round_trip(model, tmp_path / "model", NEW)
    before, after = model.predict_marginals(NEW), again.predict_marginals(NEW)
    for one, two in zip(before, after, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
@pytest.mark.parametrize("surrogate", ["log", "quadratic"])
def test_forbidden_transitions_stay_forbidden(kind: Any, surrogate: str, tmp_path) -> None:
    y = [np.array(["a", "b", "c"])[np.arange(len(row)) % 3] for row in DENSE]
    forbidden = kind([("a", "c"), ("b", "a"), ("c", "b")])
    model = SequencePredictor(
        surrogate, forbidden_transitions=forbidden, random_state=0, max_epochs=1
    ).fit(DENSE, y)
    again = round_trip(model, tmp_path / "model", NEW)
    assert again.forbidden_transitions == forbidden
    assert type(again.forbidden_transitions) is kind
    assert again.transitions_[0, 2] == -np.inf
    pairs = {pair for row in again.predict(NEW) for pair in pairwise(row)}
    assert len(pairs) > 0
    assert pairs.isdisjoint(set(forbidden))


def test_tag_scheme(tmp_path) -> None:
    model = SequencePredictor(tag_scheme="bio", random_state=0, max_epochs=1).fit(DENSE, TAGS)
    assert round_trip(model, tmp_path / "model", NEW).tag_scheme == "bio"


@pytest.mark.parametrize(
    "tags",
    [(0, 1), (True, False), (0.5, 2.5), ("a", 1), (("x", 1), ("y", 2)), (None, "ü\n"), (1, (2,))],
)
def test_tags_of_any_type(tags: Any, tmp_path) -> None:
    y = [[tags[int(token[0] > 0)] for token in row] for row in DENSE]
    model = SequencePredictor(random_state=0, max_epochs=2).fit(DENSE, y)
    again = round_trip(model, tmp_path / "model", NEW)
    assert [type(tag) for tag in again.tag_set_.tags] == [type(tag) for tag in model.tag_set_.tags]
    assert {again.tag_set_.tags[0], again.tag_set_.tags[1]} == set(tags)


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.random.default_rng(3), lambda: np.random.RandomState(3)]
)
@pytest.mark.parametrize("X", [DENSE, NAMES])
def test_partial_fit_goes_on_after_loading(make: Any, X: Any, tmp_path) -> None:
    model = SequencePredictor(random_state=make())
    model.partial_fit(X, TAGS, classes=["B-X", "I-X", "O"])
    again = round_trip(model, tmp_path / "model", X)
    for _ in range(2):
        model.partial_fit(X, TAGS)
        again.partial_fit(X, TAGS)
    assert_same(model, again, X)
    assert again.history_ == model.history_
    # a new fit draws on from where the generator stands, also where it is the one of training
    assert again.fit(X, TAGS).coef_.tobytes() == model.fit(X, TAGS).coef_.tobytes()


def test_no_random_state_and_a_path_as_checkpoint(tmp_path) -> None:
    model = SequencePredictor(max_epochs=1, checkpoint=tmp_path / "state").fit(DENSE, TAGS)
    again = round_trip(model, tmp_path / "model", NEW)
    assert again.checkpoint == str(tmp_path / "state")
    assert again.random_state is None
    model.partial_fit(DENSE, TAGS)
    assert again.partial_fit(DENSE, TAGS).coef_.tobytes() == model.coef_.tobytes()


def test_unfitted(tmp_path) -> None:
    model = SequencePredictor("hinge", window=2)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "coef_")


@pytest.mark.parametrize("features", ["auto", "random"])
def test_structured_predictor_that_holds_a_chain(features: str, tmp_path) -> None:
    model = StructuredPredictor("hamming", features=features, n_components=20, random_state=0)
    model.fit(DENSE, TAGS)
    again = round_trip(model, tmp_path / "model", NEW)
    assert_same(model.sequence_predictor_, again.sequence_predictor_, NEW)
    assert repr(again.loss_) == repr(model.loss_)
    before, after = model.predict_marginals(NEW), again.predict_marginals(NEW)
    assert all(one.tobytes() == two.tobytes() for one, two in zip(before, after, strict=True))


def test_structured_predictor_with_feature_names(tmp_path) -> None:
    model = StructuredPredictor("hamming", surrogate="hinge", random_state=0).fit(NAMES, TAGS)
    round_trip(model, tmp_path / "model", NEW_NAMES)


def test_arrays_are_stored_once(tmp_path) -> None:
    model = SequencePredictor(hash_bits=14, random_state=0, max_epochs=1).fit(NAMES, TAGS)
    save(model, tmp_path / "model")
    # the last iterate and the average, which coef_, model_ and state_ share
    assert (tmp_path / "model").stat().st_size < 2.2 * model.coef_.nbytes
    again = load(tmp_path / "model")
    assert again.coef_ is again.model_.weights


def test_files_are_reproducible(tmp_path) -> None:
    for name in ("one", "two"):
        model = SequencePredictor(
            random_state=0, max_epochs=1, forbidden_transitions={("O", "I-X"), ("I-X", "O")}
        )
        y = [[*tags[:-1], "B-X"] for tags in TAGS]
        y[0] = ["I-X"] * len(DENSE[0])
        save(model.fit(DENSE, y), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_names_with_anything_in_them() -> None:
    names = ["", "a\0b", "ü\n", "\ud800", "😀"]
    assert split_names(*join_names(names)) == names
    assert split_names(*join_names([])) == []
    content, lengths = join_names(names)
    with pytest.raises(ModelFileError, match="lengths"):
        split_names(content[:-1], lengths)
    with pytest.raises(ModelFileError, match="lengths"):
        split_names(content, np.array([-1, len(content) + 1]))


def decoded(value: Any, change: Any) -> Any:
    encoder = Encoder(model_types())
    node = encoder.encode(value, "value")
    change(node, encoder.arrays)
    return Decoder(model_types(), encoder.arrays).decode(node)


def test_forged_parts_are_refused() -> None:
    def swap(node: Any, _: Any) -> None:
        node["arguments"]["tags"]["v"].reverse()

    with pytest.raises(ModelFileError, match="not distinct and in order"):
        decoded(TagSet(["a", "b"]), swap)

    index = FeatureIndex()
    index.fit_transform([[["a", "b"]]])

    def repeat(_: Any, arrays: Any) -> None:
        arrays["value.names"] = np.array([97, 97], dtype=np.uint8)

    with pytest.raises(ModelFileError, match="names a feature twice"):
        decoded(index, repeat)

    def add(node: Any, _: Any) -> None:
        node["state"]["more"] = 1

    with pytest.raises(ModelFileError, match="not understood"):
        decoded(index, add)
