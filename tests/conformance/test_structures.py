"""Structures and label sets against the public conformance checks."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from consistruct import structures
from consistruct.structures import Chain, Dense, Orthonormalized, Separable
from consistruct.structures.registry import STRUCTURES
from consistruct.testing import check_huge_structure, check_structure
from consistruct.testing.labels import check_label_set
from tests.conformance.catalog import DEFINED, LABEL_SETS, RELATED, SPACES

HUGE = [space for entry in STRUCTURES.values() for space in entry.huge]


@pytest.mark.parametrize("label_set", LABEL_SETS, ids=repr)
def test_label_set(label_set):
    check_label_set(label_set)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space)[:70])
def test_structure(space):
    check_structure(space)


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space)[:70])
def test_what_a_structure_states_of_itself(space):
    F = space.matrix()
    if space.one_per_label:
        assert np.array_equal(F, np.eye(len(F)))
    if space.separate_states is not None:  # a one for the state of each part
        parts = F.reshape(len(F), -1, space.separate_states)
        assert np.array_equal(parts.argmax(axis=2), space.predictions.enumerate())
        assert np.array_equal(parts.sum(axis=2), np.ones(parts.shape[:2]))


@pytest.mark.parametrize(("space", "rows"), DEFINED, ids=lambda value: repr(value)[:40])
def test_embedding_by_definition(space, rows):
    np.testing.assert_allclose(space.matrix(), rows, rtol=1e-14)


@pytest.mark.parametrize(("space", "others"), RELATED, ids=lambda value: repr(value)[:40])
def test_maps_between_structures(space, others):
    check_structure(space, others=others)


@pytest.mark.parametrize("space", HUGE, ids=lambda space: repr(space)[:40])
def test_huge_structure(space):
    check_huge_structure(space)


def test_every_public_label_set_and_structure_is_checked():
    members = {type(member).__name__ for member in (*LABEL_SETS, *SPACES)}
    # decisions are not listed: compared with brute force in tests/structures and tests/losses
    members |= {"Decisions"}
    public = {
        name
        for name in structures.__all__
        if inspect.isclass(cls := getattr(structures, name))
        and issubclass(cls, structures.Structure | structures.FiniteLabels)
        and not inspect.isabstract(cls)
    }
    assert public <= members


integer_matrices = hnp.arrays(
    np.int64,
    st.tuples(st.integers(1, 7), st.integers(1, 4)),
    elements=st.integers(-2, 2),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(integer_matrices, st.integers(0, 2**32 - 1))
def test_any_dense_structure(F, seed):
    check_structure(Dense(F), random_state=seed)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(integer_matrices, st.data())
def test_any_measure(F, data):
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(F), max_size=len(F)))
    check_structure(Dense(F, reference=weights))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(1, 4), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_any_chain(T, n_states, seed):
    check_structure(Chain(T, n_states), others=(Separable(T, n_states),), random_state=seed)


def test_orthonormal_chain_never_builds_a_square_matrix():
    # width 21,900: a dense Gram or basis would take 3.8 GB
    space = Orthonormalized(Chain(200, 10))
    z = np.random.default_rng(0).standard_normal((1, space.width))
    label = space.decode(z)
    assert label.shape == (1, 200)
    assert np.isfinite(space.embed(label)).all()
