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
from consistruct.learning.encoding.sequences import Sequences, read_sequences
from consistruct.learning.encoding.tags import TagSet
from consistruct.learning.encoding.tokens import FeatureIndex
from consistruct.learning.files.known_types import model_types
from consistruct.learning.files.model_tree import Decoder, Encoder
from consistruct.learning.files.sequence_types import join_names, split_names
from consistruct.learning.models.chain.model import Chain

RNG = np.random.default_rng(0)
DENSE = [RNG.normal(size=(length, 4)) for length in RNG.integers(1, 8, size=30)]
NEW = [RNG.normal(size=(length, 4)) for length in RNG.integers(1, 8, size=12)]
TAGS = [np.array(["B-X", "I-X", "O"])[(row[:, 0] > 0) * 2] for row in DENSE]  # B-X or O
NAMES = [[[f"w={np.sign(t[0])}", f"long {t[1]:.0f}\n", "ü"] for t in row] for row in DENSE]
NEW_NAMES = [[[f"w={np.sign(t[0])}", "never seen"] for t in row] for row in NEW]
DICTS = [[{"first": float(t[0]), "sign": str(t[1] > 0)} for t in row] for row in DENSE]
NEW_DICTS = [[{"first": float(t[0]), "sign": str(t[1] > 0)} for t in row] for row in NEW]


def predictor(*arguments: Any, random_state: Any = 0, **settings: Any) -> StructuredPredictor:
    return StructuredPredictor("hamming", Chain(*arguments, **settings), random_state=random_state)


def assert_same(model: Any, again: Any, inputs: Any) -> None:
    assert type(again) is type(model)
    tokens = model.kind_.inputs(model, inputs)
    before, after = model.model_.scores(tokens), again.model_.scores(tokens)
    assert after.unary.tobytes() == before.unary.tobytes()
    assert after.edges.tobytes() == before.edges.tobytes()
    for one, two in zip(model.predict(inputs), again.predict(inputs), strict=True):
        assert one.dtype == two.dtype
        assert one.tolist() == two.tolist()
    assert set(vars(again)) == set(vars(model))
    assert set(vars(again.model_)) == set(vars(model.model_))
    assert isinstance(again.kind_, Sequences)
    assert again.statistic_ == model.statistic_


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
        ({"features": "random", "n_components": 20}, DENSE, NEW),
        ({"features": "random", "n_components": 20, "window": 2, "bandwidth": 0.7}, DENSE, NEW),
        ({}, [sp.csr_array(row) for row in DENSE], [sp.csr_array(row) for row in NEW]),
        ({}, NAMES, NEW_NAMES),
        ({"window": 1}, NAMES, NEW_NAMES),
        ({"hash_bits": 8}, NAMES, NEW_NAMES),
        ({}, DICTS, NEW_DICTS),
        ({"hash_bits": 8}, DICTS, NEW_DICTS),
        ({"solver": "lbfgs", "alpha": 1 / 30}, DENSE, NEW),
        ({"early_stopping": True, "validation_fraction": 0.3}, DENSE, NEW),
        ({"boundaries": False}, DENSE, NEW),
    ],
)
def test_every_kind_of_features(options: dict[str, Any], X: Any, inputs: Any, tmp_path) -> None:
    model = predictor(max_epochs=2, **options).fit(X, TAGS)
    again = round_trip(model, tmp_path / "model", inputs)
    assert again.model.get_params() == model.model.get_params()
    assert again.model_.path_.keys() == model.model_.path_.keys()
    refitted = again.fit(X, TAGS)  # an int as random state: the same again
    assert refitted.model_.coef_.tobytes() == model.model_.coef_.tobytes()


@pytest.mark.parametrize("surrogate", ["log", "hinge", "softmax_margin", "quadratic"])
def test_every_surrogate(surrogate: str, tmp_path) -> None:
    model = predictor(surrogate, max_epochs=2).fit(DENSE, TAGS)
    round_trip(model, tmp_path / "model", NEW)


def test_marginals(tmp_path) -> None:
    model = predictor("log", decoding="bayes", max_epochs=2).fit(DENSE, TAGS)
    again = round_trip(model, tmp_path / "model", NEW)
    before, after = model.predict_marginals(NEW), again.predict_marginals(NEW)
    for one, two in zip(before, after, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
@pytest.mark.parametrize("surrogate", ["log", "quadratic"])
def test_forbidden_transitions_stay_forbidden(kind: Any, surrogate: str, tmp_path) -> None:
    y = [np.array(["a", "b", "c"])[np.arange(len(row)) % 3] for row in DENSE]
    forbidden = kind([("a", "c"), ("b", "a"), ("c", "b")])
    model = predictor(surrogate, forbidden_transitions=forbidden, max_epochs=1).fit(DENSE, y)
    again = round_trip(model, tmp_path / "model", NEW)
    assert again.model.forbidden_transitions == forbidden
    assert type(again.model.forbidden_transitions) is kind
    assert again.model_.transitions_[0, 2] == -np.inf
    pairs = {pair for row in again.predict(NEW) for pair in pairwise(row)}
    assert len(pairs) > 0
    assert pairs.isdisjoint(set(forbidden))


def test_tag_scheme(tmp_path) -> None:
    model = predictor(tag_scheme="bio", max_epochs=1).fit(DENSE, TAGS)
    assert round_trip(model, tmp_path / "model", NEW).model.tag_scheme == "bio"


@pytest.mark.parametrize(
    "tags",
    [(0, 1), (True, False), (0.5, 2.5), ("a", 1), (("x", 1), ("y", 2)), ("a\t", "ü\n"), (1, (2,))],
)
def test_tags_of_any_type(tags: Any, tmp_path) -> None:
    y = [[tags[int(token[0] > 0)] for token in row] for row in DENSE]
    model = predictor(max_epochs=2).fit(DENSE, y)
    again = round_trip(model, tmp_path / "model", NEW)
    assert [type(tag) for tag in again.label_encoding_.tags] == [
        type(tag) for tag in model.label_encoding_.tags
    ]
    assert {again.label_encoding_.tags[0], again.label_encoding_.tags[1]} == set(tags)


@pytest.mark.parametrize("X", [DENSE, NAMES])
def test_partial_fit_goes_on_after_loading(X: Any, tmp_path) -> None:
    model = predictor(alpha=0.01).fit(X, TAGS)
    examples = read_sequences(model, None, X, TAGS, kind=model.kind_)
    again = round_trip(model, tmp_path / "model", X)
    for fitted in (model, again):
        rng = np.random.default_rng(5)
        for _ in range(2):
            fitted.model_.partial_fit(examples.inputs, examples.codes, fitted.statistic_, rng=rng)
    assert_same(model, again, X)
    assert again.model_.state_.history == model.model_.state_.history


def test_a_path_as_checkpoint(tmp_path) -> None:
    model = predictor(max_epochs=1, checkpoint=tmp_path / "state").fit(DENSE, TAGS)
    again = round_trip(model, tmp_path / "model", NEW)
    assert again.model.checkpoint is None  # whoever fits states where it writes


def test_unfitted(tmp_path) -> None:
    model = predictor("hinge", window=2)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model.get_params() == model.model.get_params()
    assert not hasattr(again, "model_")


def test_arrays_are_stored_once(tmp_path) -> None:
    model = predictor(hash_bits=14, max_epochs=1).fit(NAMES, TAGS)
    save(model, tmp_path / "model")
    # the last iterate, the average of training and the answer
    assert (tmp_path / "model").stat().st_size < 3.2 * model.model_.coef_.nbytes


def test_files_are_reproducible(tmp_path) -> None:
    for name in ("one", "two"):
        model = predictor(max_epochs=1, forbidden_transitions={("O", "I-X"), ("I-X", "O")})
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
    return Decoder(model_types(), encoder.arrays, 2**30).decode(node)


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
