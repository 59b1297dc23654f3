"""Token features: every accepted form gives the same packed matrix, bad ones name the sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction import DictVectorizer

from consistruct.learning.encoding.tokens import (
    FeatureHash,
    FeatureIndex,
    PackedTokens,
    group_offsets,
    is_symbolic,
    pack_tokens,
)
from consistruct.learning.models.chain.token_maps import MEDIAN_SHARE, TokenMap, window_features
from consistruct.structures import Ragged

RNG = np.random.default_rng(0)
ROWS = [RNG.normal(size=(length, 4)).astype(np.float32) for length in (3, 1, 2)]
OFFSETS = np.array([0, 3, 4, 6])
FLAT = np.concatenate(ROWS)


@pytest.mark.parametrize(
    ("X", "groups"),
    [
        (ROWS, None),
        ([row.tolist() for row in ROWS], None),
        (tuple(ROWS), None),
        (Ragged(FLAT, OFFSETS), None),
        (PackedTokens(FLAT, OFFSETS), None),
        (FLAT, ["a", "a", "a", "b", "c", "c"]),
        (sp.csr_array(FLAT), [5, 5, 5, 2, 9, 9]),
        ([sp.csr_array(row) for row in ROWS], None),
    ],
)
def test_all_forms_pack_alike(X: Any, groups: Any) -> None:
    tokens = pack_tokens(X, groups)
    dense = tokens.features.toarray() if tokens.is_sparse else tokens.features
    np.testing.assert_allclose(dense, FLAT, rtol=1e-6)
    np.testing.assert_array_equal(tokens.offsets, OFFSETS)


def test_equal_lengths_may_be_one_array() -> None:
    tokens = pack_tokens(np.arange(24.0).reshape(2, 3, 4))
    np.testing.assert_array_equal(tokens.offsets, [0, 3, 6])
    np.testing.assert_array_equal(tokens.features[3], [12, 13, 14, 15])


def test_packed_features_are_not_copied() -> None:
    for dtype in (np.float32, np.float64):
        features = FLAT.astype(dtype)
        assert np.shares_memory(
            pack_tokens(features, OFFSETS.repeat([3, 1, 2, 0])).features, features
        )


def test_take_keeps_the_sequences_requested() -> None:
    taken = PackedTokens(FLAT, OFFSETS).take(np.array([2, 0]))
    np.testing.assert_array_equal(taken.offsets, [0, 2, 5])
    np.testing.assert_array_equal(taken.features, np.concatenate([ROWS[2], ROWS[0]]))


def test_runs_cover_all_sequences_once() -> None:
    tokens = PackedTokens(FLAT, OFFSETS)
    for size in (1, 2, 3, 4, 100):
        runs = list(tokens.runs(size))
        covered = [row for first, last in runs for row in range(first, last)]
        assert covered == [0, 1, 2]


BAD: list[tuple[Any, Any, type[Exception], str]] = [
    ([ROWS[0], np.zeros((0, 4))], None, ValueError, "sequence 1 is empty"),
    ([], None, ValueError, "at least one sequence, got none"),
    ([ROWS[0], ROWS[1][:, :2]], None, ValueError, "sequence 1 has 2 features per token"),
    ([ROWS[0][0]], None, ValueError, r"sequence 0 must have shape \(tokens, features\)"),
    (FLAT, None, ValueError, "contains rows without sequences; pass groups="),
    (FLAT, [0, 0, 0, 1, 0, 0], ValueError, "tokens of group 0 are not adjacent"),
    (FLAT, [0, 1], ValueError, r"one entry per token, shape \(6,\)"),
    ("words", None, TypeError, "list of .* arrays, got str"),
    ([np.array([["x"]])], None, TypeError, "sequence 0 must contain numbers"),
]


@pytest.mark.parametrize(("X", "groups", "error", "message"), BAD)
def test_bad_input_is_named(X: Any, groups: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pack_tokens(X, groups)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_name_sequence_and_token(sparse: bool, value: float) -> None:
    bad = FLAT.copy()
    bad[5, 2] = value
    features = sp.csr_array(bad) if sparse else bad
    with pytest.raises(
        ValueError, match=r"sequence 2 contains NaN or an infinite feature at token 1"
    ):
        PackedTokens(features, OFFSETS)


def test_a_sum_that_overflows_is_not_an_error() -> None:
    PackedTokens(np.full((6, 4), 1e308), OFFSETS)


DICTS = [
    [{"word": "cat", "length": 3, "upper": False}, {"word": "x", "length": 0.5}],
    [{"word": "cat", "upper": True}],
]


def test_dicts_are_read_as_scikit_learn_reads_them() -> None:
    index = FeatureIndex()
    ours = index.fit_transform(DICTS)
    reference = DictVectorizer()
    expected = reference.fit_transform([token for row in DICTS for token in row]).toarray()
    assert set(index.columns) == set(reference.vocabulary_)
    for name, column in index.columns.items():
        np.testing.assert_array_equal(
            ours.features.toarray()[:, column], expected[:, reference.vocabulary_[name]]
        )
    np.testing.assert_array_equal(ours.offsets, [0, 2, 3])


def test_strings_and_dicts_agree_and_unknown_names_are_dropped() -> None:
    index = FeatureIndex()
    index.fit_transform([[["word=cat", "a"], ["b"]]])
    lists = index.transform([[["word=cat", "new", "b"], ["new"]]])
    dicts = index.transform([[{"word": "cat", "new": 3, "b": True}, {"new": "x"}]])
    np.testing.assert_array_equal(lists.features.toarray(), [[1, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(dicts.features.toarray(), lists.features.toarray())


def test_hashing_is_stable_and_spreads() -> None:
    # CRC-32 of "123456789" is 0xCBF43926 by its definition; the leading 8 bits are 0xCB
    tokens = FeatureHash(8).transform([[["123456789"]]])
    assert tokens.features.indices.tolist() == [0xCB]
    names = [[f"f{i}" for i in range(2000)]]
    columns = FeatureHash(20).transform([names]).features.indices
    assert len(set(columns.tolist())) > 1990
    with pytest.raises(ValueError, match="bits must be at most 30"):
        FeatureHash(31)


def test_bad_names_are_refused() -> None:
    with pytest.raises(TypeError, match="got a list that contains int"):
        FeatureIndex().fit_transform([[["a", 1]]])
    with pytest.raises(TypeError, match="all tokens must be lists of strings, or all dicts"):
        FeatureIndex().fit_transform([[["a"], {"b": 1}]])
    with pytest.raises(TypeError, match="value of feature 'b' must be a string"):
        FeatureIndex().fit_transform([[{"b": [1]}]])
    with pytest.raises(ValueError, match="sequence 1 is empty"):
        FeatureIndex().fit_transform([[["a"]], []])


def test_symbolic_input_is_reported_from_numbers() -> None:
    assert is_symbolic([[["a"], ["b"]]])
    assert is_symbolic([[{"a": 1}]])
    assert not is_symbolic([[[1.0], [2.0]]])
    assert not is_symbolic(ROWS)
    assert not is_symbolic(FLAT)


def test_groups_become_offsets() -> None:
    np.testing.assert_array_equal(group_offsets(["x", "y", "y"], 3), [0, 1, 3])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("radius", [0, 1, 3])
def test_windows_stay_inside_their_sequence(sparse: bool, radius: int) -> None:
    expected = np.zeros((6, (2 * radius + 1) * 4), dtype=np.float32)
    for start, stop in ((0, 3), (3, 4), (4, 6)):
        for t in range(start, stop):
            for k, shift in enumerate(range(-radius, radius + 1)):
                if start <= t + shift < stop:
                    expected[t, 4 * k : 4 * k + 4] = FLAT[t + shift]
    out = window_features(sp.csr_array(FLAT) if sparse else FLAT, OFFSETS, radius)
    np.testing.assert_array_equal(out.toarray() if sparse else out, expected)


def test_random_features_approximate_the_kernel() -> None:
    rng = np.random.default_rng(1)
    tokens = PackedTokens(FLAT, OFFSETS)
    token_map = TokenMap.fit(tokens, window=0, n_components=20000, bandwidth=2.0, rng=rng)
    phi = token_map.transform(FLAT, OFFSETS)
    square = ((FLAT[:, None] - FLAT) ** 2).sum(axis=2)
    np.testing.assert_allclose(phi @ phi.T, np.exp(-square / 8.0), atol=0.04)


def test_a_window_beside_random_features_keeps_them_for_the_token_itself() -> None:
    rng = np.random.default_rng(1)
    tokens = PackedTokens(FLAT, OFFSETS)
    both = TokenMap.fit(tokens, window=1, n_components=5, bandwidth=2.0, rng=rng)
    alone = TokenMap(4, 0, both.random)
    phi = both.transform(FLAT, OFFSETS)
    assert phi.shape == (6, both.n_outputs) == (6, 5 + 3 * 4)
    np.testing.assert_array_equal(phi[:, :5], alone.transform(FLAT, OFFSETS))
    np.testing.assert_allclose(
        phi[:, 5:], both.window_scale * window_features(FLAT, OFFSETS, 1), rtol=1e-6
    )


def test_the_median_bandwidth_and_bad_maps() -> None:
    rng = np.random.default_rng(0)
    corners = PackedTokens(np.array([[0.0], [2.0]] * 20), np.array([0, 40]))
    token_map = TokenMap.fit(corners, window=0, n_components=5, bandwidth="median", rng=rng)
    assert token_map.random is not None
    assert token_map.random.kernel.bandwidth == pytest.approx(2.0 * MEDIAN_SHARE)
    same = PackedTokens(np.ones((3, 2)), np.array([0, 3]))
    token_map = TokenMap.fit(same, window=0, n_components=5, bandwidth="median", rng=rng)
    assert token_map.random is not None
    assert token_map.random.kernel.bandwidth == pytest.approx(MEDIAN_SHARE)
    tokens = PackedTokens(FLAT, OFFSETS)
    with pytest.raises(ValueError, match="bandwidth must be 'median' or a number"):
        TokenMap.fit(tokens, window=0, n_components=5, bandwidth="wide", rng=rng)
    sparse = PackedTokens(sp.csr_array(FLAT), OFFSETS)
    with pytest.raises(ValueError, match="random features need dense token features"):
        TokenMap.fit(sparse, window=0, n_components=5, bandwidth=1.0, rng=rng)
