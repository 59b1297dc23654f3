"""Scores of predicted tag sequences, called as scikit-learn's metrics: (y_true, y_pred)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from consistruct.learning.evaluation.intervals import Interval, bootstrap_interval, mean_interval

__all__ = [
    "SEQUENCE_SCORERS",
    "ChunkScore",
    "chunk_f1",
    "chunk_scheme",
    "chunk_score",
    "chunks",
    "sequence_error",
    "sequence_intervals",
    "token_error",
]

Tags = Any  # a sequence of tags: list, tuple or array


def _check_pairs(y_true: Sequence[Tags], y_pred: Sequence[Tags]) -> None:
    if len(y_true) != len(y_pred):
        raise ValueError(
            f"y_true and y_pred must contain equally many sequences, "
            f"got {len(y_true)} and {len(y_pred)}"
        )
    if len(y_true) == 0:
        raise ValueError("y_true must contain at least one sequence, got none")
    for row, (true, pred) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(true) != len(pred):
            raise ValueError(
                f"sequence {row} has {len(true)} true tags and {len(pred)} predicted ones"
            )


def token_error(y_true: Sequence[Tags], y_pred: Sequence[Tags]) -> float:
    """Share of all tokens with a wrong tag.

    >>> token_error([["O", "B"], ["O"]], [["O", "O"], ["O"]])
    0.3333333333333333
    """
    _check_pairs(y_true, y_pred)
    total = sum(len(true) for true in y_true)
    wrong = sum(
        a != b
        for true, pred in zip(y_true, y_pred, strict=True)
        for a, b in zip(true, pred, strict=True)
    )
    return wrong / total


def sequence_error(y_true: Sequence[Tags], y_pred: Sequence[Tags]) -> float:
    """Share of the sequences with at least one wrong tag: the 0-1 loss on sequences.

    >>> sequence_error([["O", "B"], ["O"]], [["O", "O"], ["O"]])
    0.5
    """
    _check_pairs(y_true, y_pred)
    wrong = sum(
        any(a != b for a, b in zip(true, pred, strict=True))
        for true, pred in zip(y_true, y_pred, strict=True)
    )
    return wrong / len(y_true)


def chunks(tags: Sequence[str], scheme: str = "bio") -> set[tuple[int, int, str]]:
    """Chunks (start, stop, type) of one sequence, read as the CoNLL evaluation does.

    A chunk begins at B-X and S-X, and at I-X or E-X that do not continue a chunk of type X; it ends
    before the next beginning, before O, after E-X and S-X. So broken sequences have a reading too.

    >>> sorted(chunks(["B-NP", "I-NP", "O", "I-VP"]))
    [(0, 2, 'NP'), (3, 4, 'VP')]
    >>> sorted(chunks(["S-NP", "B-VP", "E-VP"], scheme="iobes"))
    [(0, 1, 'NP'), (1, 3, 'VP')]
    """
    if scheme not in ("bio", "iobes"):
        raise ValueError(f"scheme must be 'bio' or 'iobes', got {scheme!r}")
    allowed = "BIO" if scheme == "bio" else "BIOES"
    found: set[tuple[int, int, str]] = set()
    start, kind = -1, ""  # start −1: no chunk is open
    for position, tag in enumerate(tags):
        letter, _, own = str(tag).partition("-")
        if letter not in allowed or letter == "":
            raise ValueError(
                f"tag {tag!r} does not follow the scheme {scheme!r}: O, or one of "
                f"{', '.join(allowed.replace('O', ''))} with a type, as in B-NP"
            )
        continues = letter in "IE" and start >= 0 and own == kind
        if start >= 0 and not continues:
            found.add((start, position, kind))
            start = -1
        if letter != "O" and not continues:
            start, kind = position, own
        if letter in "ES":
            found.add((start, position + 1, kind))
            start = -1
    if start >= 0:
        found.add((start, len(tags), kind))
    return found


def chunk_scheme(tags: Iterable[str]) -> str | None:
    """The scheme that all tags follow: "bio", "iobes", or None if they are no chunk tags.

    >>> chunk_scheme(["B-NP", "I-NP", "O"]), chunk_scheme(["S-NP", "O"]), chunk_scheme(["NN"])
    ('bio', 'iobes', None)
    """
    letters = {tag.partition("-")[0] for tag in set(tags)}
    if letters <= {"O"}:
        return None
    if letters <= set("BIO"):
        return "bio"
    return "iobes" if letters <= set("BIOES") else None


@dataclass(frozen=True)
class ChunkScore:
    """Chunks found, right and wrong; F1 is 0 where there are none at all."""

    n_true: int
    n_pred: int
    n_correct: int

    @property
    def precision(self) -> float:
        return self.n_correct / self.n_pred if self.n_pred else 0.0

    @property
    def recall(self) -> float:
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        total = self.n_true + self.n_pred
        return 2 * self.n_correct / total if total else 0.0


def chunk_score(y_true: Sequence[Tags], y_pred: Sequence[Tags], scheme: str = "bio") -> ChunkScore:
    """Counts of chunks over all sequences; a chunk is right if start, end and type are."""
    _check_pairs(y_true, y_pred)
    n_true = n_pred = n_correct = 0
    for true, pred in zip(y_true, y_pred, strict=True):
        wanted, found = chunks(true, scheme), chunks(pred, scheme)
        n_true += len(wanted)
        n_pred += len(found)
        n_correct += len(wanted & found)
    return ChunkScore(n_true, n_pred, n_correct)


def chunk_f1(y_true: Sequence[Tags], y_pred: Sequence[Tags], scheme: str = "bio") -> float:
    """F1 of the chunks, micro-averaged, as conlleval prints it (there in per cent).

    >>> chunk_f1([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "B-VP"]])
    0.6666666666666666
    """
    return chunk_score(y_true, y_pred, scheme).f1


def sequence_intervals(
    y_true: Sequence[Tags], y_pred: Sequence[Tags], scheme: str | None = None
) -> dict[str, Interval]:
    """95 % intervals of the token error, the sequence error and, with a scheme, F1 of the chunks.

    Tokens of a sequence depend on each other, so whole sequences are drawn again; the sequence
    error is a mean and has an interval for any number of sequences.

    >>> found = sequence_intervals([["A", "B"], ["B"]], [["A", "B"], ["A"]])
    >>> found["sequence_error"].estimate, sorted(found)
    (0.5, ['sequence_error', 'token_error'])
    """
    _check_pairs(y_true, y_pred)
    pairs = list(zip(y_true, y_pred, strict=True))
    wrong = np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs])
    lengths = np.array([len(true) for true, _ in pairs])
    found = {
        "token_error": bootstrap_interval(lambda w, n: w.sum() / n.sum(), wrong, lengths),
        "sequence_error": mean_interval(wrong > 0, bounds=(0.0, 1.0)),
    }
    if scheme is not None:
        scores = [chunk_score([true], [pred], scheme) for true, pred in pairs]
        right = np.array([2 * score.n_correct for score in scores])
        total = np.array([score.n_true + score.n_pred for score in scores])
        found["chunk_f1"] = bootstrap_interval(
            lambda r, t: r.sum() / t.sum() if t.any() else 0.0, right, total
        )
    return found


# For `scoring=` in scikit-learn's model selection: greater is better.
SEQUENCE_SCORERS: dict[str, Any] = {
    "neg_token_error": make_scorer(token_error, greater_is_better=False),
    "neg_sequence_error": make_scorer(sequence_error, greater_is_better=False),
    "chunk_f1_bio": make_scorer(chunk_f1, scheme="bio"),
    "chunk_f1_iobes": make_scorer(chunk_f1, scheme="iobes"),
}
