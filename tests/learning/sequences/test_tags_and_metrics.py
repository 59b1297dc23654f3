"""Tags of any type, tag schemes, and the scores of predicted sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistruct.learning.encoding.tags import TagSet, pack_tags, scheme_transitions
from consistruct.learning.evaluation.sequence_metrics import chunk_score, chunks
from consistruct.metrics import chunk_f1, sequence_error, token_error
from consistruct.structures import Ragged

OFFSETS = np.array([0, 2, 3])


@pytest.mark.parametrize(
    "y",
    [
        [["a", "b"], ["c"]],
        (("a", "b"), ("c",)),
        [np.array(["a", "b"]), np.array(["c"])],
        Ragged(np.array(["a", "b", "c"]), OFFSETS),
        np.array(["a", "b", "c"]),
        ["a", "b", "c"],
    ],
)
def test_tags_in_any_form(y: Any) -> None:
    assert pack_tags(y, OFFSETS) == ["a", "b", "c"]


def test_lengths_that_differ_name_the_sequence() -> None:
    with pytest.raises(ValueError, match="sequence 1 has 1 tokens in X and 2 tags in y"):
        pack_tags([["a", "b"], ["c", "d"]], OFFSETS)
    with pytest.raises(ValueError, match=r"one tag sequence per sequence of X \(2\)"):
        pack_tags([["a", "b"]], OFFSETS)
    with pytest.raises(TypeError, match="list of tag sequences, got str"):
        pack_tags("abc", OFFSETS)


@pytest.mark.parametrize(
    "tags", [["x", "y"], [3, 1, 2], [True, False], [1.5, 2.5], [("a", 1), ("a", 2)], ["a", 1, (2,)]]
)
def test_tags_of_any_type_come_back(tags: list[Any]) -> None:
    tag_set = TagSet(tags)
    states = tag_set.encode(tags)
    assert sorted(set(states.tolist())) == list(range(len(set(tags))))
    back = tag_set.decode(states).tolist()
    assert [tuple(tag) if isinstance(tag, list) else tag for tag in back] == tags


def test_unknown_tags_name_their_sequence() -> None:
    with pytest.raises(ValueError, match="tag 'z' in sequence 1 is not among the 2 known tags"):
        TagSet(["a", "b"]).encode(["a", "b", "z"], OFFSETS)
    with pytest.raises(ValueError, match="a tag is NaN"):
        TagSet(["a", float("nan")])


def spell(pieces: list[tuple[str, int]], scheme: str) -> tuple[list[str], set[Any]]:
    """Tags of a list of (type or "", length), and the chunks they mean."""
    tags: list[str] = []
    wanted = set()
    for kind, length in pieces:
        if not kind:
            tags += ["O"] * length
            continue
        wanted.add((len(tags), len(tags) + length, kind))
        if scheme == "bio":
            tags += [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
        elif length == 1:
            tags.append(f"S-{kind}")
        else:
            tags += [f"B-{kind}"] + [f"I-{kind}"] * (length - 2) + [f"E-{kind}"]
    return tags, wanted


PIECES = st.lists(
    st.tuples(st.sampled_from(["", "NP", "VP", "B-I"]), st.integers(1, 4)), max_size=6
)


@given(pieces=PIECES, scheme=st.sampled_from(["bio", "iobes"]))
def test_chunks_that_were_spelled_are_read(pieces: list[tuple[str, int]], scheme: str) -> None:
    tags, wanted = spell(pieces, scheme)
    assert chunks(tags, scheme) == wanted


@given(pieces=PIECES, scheme=st.sampled_from(["bio", "iobes"]))
def test_a_scheme_allows_whatever_can_be_spelled(
    pieces: list[tuple[str, int]], scheme: str
) -> None:
    tags, _ = spell(pieces, scheme)
    if not tags:
        return
    tag_set = TagSet(tags)
    edges, start, end = scheme_transitions(tag_set.tags, scheme)
    states = tag_set.encode(tags)
    assert start[states[0]] == 0
    assert end[states[-1]] == 0
    assert (edges[states[:-1], states[1:]] == 0).all()


def test_what_a_scheme_forbids() -> None:
    tags = ["B-X", "I-X", "B-Y", "I-Y", "O"]
    edges, start, end = scheme_transitions(tags, "bio")
    forbidden = {(tags[a], tags[b]) for a, b in np.argwhere(np.isneginf(edges))}
    assert forbidden == {
        ("B-Y", "I-X"), ("I-Y", "I-X"), ("O", "I-X"),
        ("B-X", "I-Y"), ("I-X", "I-Y"), ("O", "I-Y"),
    }  # fmt: skip
    assert [tags[i] for i in np.flatnonzero(np.isneginf(start))] == ["I-X", "I-Y"]
    assert (end == 0).all()
    tags = ["B-X", "E-X", "I-X", "O", "S-X"]
    edges, start, end = scheme_transitions(tags, "iobes")
    allowed = {(tags[a], tags[b]) for a, b in np.argwhere(edges == 0)}
    inside, outside = {"B-X", "I-X"}, {"E-X", "O", "S-X"}
    assert allowed == {(a, b) for a in inside for b in ("I-X", "E-X")} | {
        (a, b) for a in outside for b in ("B-X", "O", "S-X")
    }
    assert [tags[i] for i in np.flatnonzero(np.isneginf(end))] == ["B-X", "I-X"]
    with pytest.raises(ValueError, match="scheme must be 'bio', 'iob1' or 'iobes'"):
        scheme_transitions(tags, "bilou")
    with pytest.raises(ValueError, match="tag 'E-X' does not follow the scheme 'bio'"):
        scheme_transitions(tags, "bio")


def test_broken_sequences_are_read_as_conlleval_reads_them() -> None:
    # I-X after O or after another type begins a chunk; E-X ends one
    assert chunks(["I-NP", "I-NP", "I-VP", "O", "B-NP", "I-VP"]) == {
        (0, 2, "NP"), (2, 3, "VP"), (4, 5, "NP"), (5, 6, "VP"),
    }  # fmt: skip
    assert chunks(["E-NP", "I-NP", "S-NP", "I-NP"], "iobes") == {
        (0, 1, "NP"), (1, 2, "NP"), (2, 3, "NP"), (3, 4, "NP"),
    }  # fmt: skip
    with pytest.raises(ValueError, match="tag 'X' does not follow the scheme 'bio'"):
        chunks(["X"])
    with pytest.raises(ValueError, match="scheme must be"):
        chunks(["O"], "bilou")


def test_scores_by_hand() -> None:
    true = [["B-NP", "I-NP", "O"], ["B-VP"], ["O", "O"]]
    pred = [["B-NP", "I-NP", "B-NP"], ["B-NP"], ["O", "O"]]
    assert token_error(true, pred) == pytest.approx(2 / 6)
    assert sequence_error(true, pred) == pytest.approx(2 / 3)
    score = chunk_score(true, pred)
    assert (score.n_true, score.n_pred, score.n_correct) == (2, 3, 1)
    assert score.precision == pytest.approx(1 / 3)
    assert score.recall == 0.5
    assert chunk_f1(true, pred) == pytest.approx(2 * (1 / 3) * 0.5 / (1 / 3 + 0.5))
    assert chunk_f1([["O"]], [["O"]]) == 0.0
    with pytest.raises(ValueError, match="equally many sequences, got 3 and 1"):
        token_error(true, pred[:1])
    with pytest.raises(ValueError, match="sequence 0 has 3 true tags and 1 predicted"):
        sequence_error(true, [["O"], ["O"], ["O", "O"]])
    with pytest.raises(ValueError, match="at least one sequence"):
        token_error([], [])
