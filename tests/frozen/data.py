"""Seeded data of every kind that models learn from; nothing here knows the library.

`jittered` moves every input number in its last digits: what changes then by more than a tolerance
would also change on another processor, and is no value to record.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LABELS", "TRAIN", "Table", "frame", "jittered", "queries", "sentences", "table"]

N, TRAIN = 136, 120  # rows in all, and those that are trained on
LABELS = np.array(["dog", "ant", "cat", "bee"])  # not in alphabetical order
TREES = np.array([[0, 1, 2, 3], [2, 0, 2, 3], [2, 3, 0, 3], [4, 1, 2, 0]])
_relative_jitter = [0.0]


@contextmanager
def jittered(size: float) -> Iterator[None]:
    """Multiply every input number by 1 ± size, at random, within the block."""
    _relative_jitter[0] = size
    try:
        yield
    finally:
        _relative_jitter[0] = 0.0


def _moved(numbers: Any) -> Any:
    rng = np.random.default_rng(99)
    return numbers * (1 + _relative_jitter[0] * rng.uniform(-1, 1, size=numbers.shape))


@dataclass(frozen=True)
class Table:
    """Rows with four numbers each, and true labels of every kind about the same rows."""

    X: Any
    y: Any  # one of LABELS
    grades: Any  # 0 … 3
    sets: Any  # (n, 4) of 0 and 1
    parts: Any  # (n, 3) of 0, 1 and 2
    orders: Any  # (n, 4) permutations, best item first
    relevance: Any  # (n, 4) grades of the items 0 … 3, 0 to 2
    costs: Any  # (n, 4): of each example, what each label costs
    outcomes: Any  # (n, 4, 4): of each example, what decision c costs if t turns out to be true
    travel: Any  # (n, 7): positive costs of the edges of a grid of 2 × 3 places
    candidates: Any  # sets of one or two LABELS
    heads: Any  # (n, 4) dependency trees: the head of each word, 0 for the root


def table(n: int = N) -> Table:
    """True labels that depend on the inputs, with noise, so that no model is perfect."""
    rng = np.random.default_rng(34)
    X = rng.standard_normal((n, 4))
    hidden = np.column_stack([X, X[:, 0] * X[:, 1]]) @ rng.standard_normal((5, 7))
    noisy = hidden + 0.7 * rng.standard_normal(hidden.shape)
    codes = noisy[:, :4].argmax(axis=1)
    relevance = np.clip(np.round(noisy[:, :4] + 0.5), 0, 2).astype(int)
    relevance[:, 0] += relevance.sum(axis=1) == 0  # every row has a relevant item
    costs = np.exp(0.5 * noisy[:, :4])
    other = rng.integers(4, size=n)
    amount = np.exp(0.5 * rng.standard_normal(n))
    return Table(
        X=_moved(X),
        y=LABELS[codes],
        grades=np.clip(np.round(noisy[:, 0] + 1.5), 0, 3).astype(int),
        sets=(noisy[:, :4] > 0).astype(int),
        parts=np.clip(np.round(noisy[:, 4:] + 1), 0, 2).astype(int),
        orders=np.argsort(-noisy[:, :4], axis=1),
        relevance=relevance,
        costs=costs - costs.min(axis=1, keepdims=True),
        outcomes=amount[:, None, None] * (1 - np.eye(4)) * [1.0, 2.0, 1.5, 0.5],
        travel=np.exp(0.6 * noisy),
        heads=TREES[codes],
        candidates=[{LABELS[a], LABELS[b]} for a, b in zip(codes, other, strict=True)],
    )


def frame(n: int = N) -> tuple[Any, Any]:
    """A raw table of words, dates, numbers with gaps; and labels that depend on all of them."""
    pandas = __import__("pandas")
    rng = np.random.default_rng(7)
    site, size = rng.integers(3, size=n), rng.standard_normal(n)
    day = rng.integers(365, size=n)
    size[::9] = np.nan
    X = pandas.DataFrame(
        {
            "site": np.array(["north", "south", "east"])[site],
            "size": _moved(size),
            "opened": pandas.Timestamp("2024-01-01") + pandas.to_timedelta(day, unit="D"),
            "weight": _moved(rng.standard_normal(n)),
        }
    )
    score = (site == 1) + np.nan_to_num(size) + (day > 180) + 0.5 * rng.standard_normal(n)
    return X, LABELS[np.clip(np.round(score), 0, 2).astype(int)]


def sentences(n: int = 60) -> tuple[list[Any], list[Any]]:
    """Sequences of 3 to 7 tokens with three numbers each, and their tags, which like to stay."""
    rng = np.random.default_rng(5)
    X, y = [], []
    for length in rng.integers(3, 8, size=n):
        tags = [int(rng.integers(2))]
        while len(tags) < length:
            tags.append(tags[-1] if rng.random() < 0.5 else int(rng.integers(3)))
            if tags[-2:] == [0, 2]:  # an inside tag follows a tag of its kind
                tags[-1] = 1
        X.append(_moved(np.eye(3)[tags] + 0.7 * rng.standard_normal((length, 3))))
        y.append(np.array(["O", "B-X", "I-X"])[tags])
    return X, y


def queries(n: int = 50) -> tuple[Any, Any, Any]:
    """Items of three numbers with grades 0 to 2, and the query of each item."""
    rng = np.random.default_rng(6)
    query = np.repeat(np.arange(n), rng.integers(3, 7, size=n))
    X = rng.standard_normal((len(query), 3))
    worth = X @ [1.0, 0.5, 0.0] + 0.4 * rng.standard_normal(len(X))
    return _moved(X), np.clip(np.round(worth + 1), 0, 2).astype(int), query
