"""The sequence data sets of the benchmarks: OCR letters, CoNLL-2000 chunks, CoNLL-2002 entities.

The files lie in the folder that CONSISTRUCT_DATA names, by default ../shared/data beside the
repository; their README states source and conversion. The digests below make sure that a result
page speaks of the same data.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

SHA256 = {
    "ocr_letters.npz": "03a30b2a5a8440c8815c4d1aae987fe1386369af76bedc8ec797b12c90fa03e5",
    "conll2002_ned.npz": "12ceb4ca5c51381d97f7a68937d58cc0b6598b94e5a967462a066181b49c3b7c",
    "conll2000.npz": "f5841f38b83a9d6855e22d4372ed7b81216081fdc15d33da2fc6f2224b3e3cb0",
}


def data_file(name: str) -> Path:
    root = os.environ.get("CONSISTRUCT_DATA")
    folder = Path(root) if root else Path(__file__).resolve().parents[2] / "shared" / "data"
    path = folder / name
    if not path.exists():
        raise SystemExit(
            f"{name} not found in {folder}; set CONSISTRUCT_DATA to the folder that holds it"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != SHA256[name]:
        raise SystemExit(f"{path} has SHA-256 {digest}, expected {SHA256[name]}")
    return path


@dataclass
class Letters:
    """Handwritten words: images (N, 128) of 0 and 1, letters (N,), offsets, fold of each word."""

    images: np.ndarray
    letters: np.ndarray
    offsets: np.ndarray
    folds: np.ndarray

    def split(self, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Images and letters of the words `rows`, as lists of arrays."""
        spans = [slice(self.offsets[row], self.offsets[row + 1]) for row in rows]
        return [self.images[span] for span in spans], [self.letters[span] for span in spans]


def load_letters() -> Letters:
    with np.load(data_file("ocr_letters.npz"), allow_pickle=False) as archive:
        return Letters(
            np.unpackbits(archive["X_packed"], axis=1).astype(np.float32),
            archive["y"].astype(np.int64),
            archive["offsets"].astype(np.int64),
            archive["folds"].astype(np.int64),
        )


@dataclass
class Chunking:
    """Sentences of (word, part of speech) pairs and their chunk tags."""

    sentences: list[list[tuple[str, str]]]
    tags: list[list[str]]


def load_chunking(part: str) -> Chunking:
    """`part` is "train" or "test"."""
    return _load_tagged("conll2000.npz", part, "chunk")


def load_entities(part: str) -> Chunking:
    """`part` is "train", "testa" (to choose settings by) or "testb"."""
    return _load_tagged("conll2002_ned.npz", part, "ner")


def _load_tagged(name: str, part: str, tag: str) -> Chunking:
    with np.load(data_file(name), allow_pickle=False) as archive:
        vocabulary = {
            column: bytes(archive[f"vocab_{column}"]).decode().split("\n")
            for column in ("words", "pos", tag)
        }
        columns = {
            column: [vocabulary[column][code] for code in archive[f"{column}_{part}"]]
            for column in ("words", "pos", tag)
        }
        offsets = archive[f"offsets_{part}"].tolist()
    pairs = list(zip(columns["words"], columns["pos"], strict=True))
    spans = [slice(a, b) for a, b in pairwise(offsets)]
    return Chunking([pairs[span] for span in spans], [columns[tag][span] for span in spans])


# The window of the CRFsuite tutorial on chunking: (column, positions) of each feature.
TUTORIAL_TEMPLATE: list[list[tuple[int, int]]] = [
    *[[(0, shift)] for shift in (-2, -1, 0, 1, 2)],
    [(0, -1), (0, 0)],
    [(0, 0), (0, 1)],
    *[[(1, shift)] for shift in (-2, -1, 0, 1, 2)],
    *[[(1, shift), (1, shift + 1)] for shift in (-2, -1, 0, 1)],
    *[[(1, shift), (1, shift + 1), (1, shift + 2)] for shift in (-2, -1, 0)],
]


def chunking_features(sentence: list[tuple[str, str]]) -> list[list[str]]:
    """Feature strings of each token, the tutorial's; the ends are marked as it does."""
    T = len(sentence)
    tokens: list[list[str]] = []
    for t in range(T):
        features = []
        for number, parts in enumerate(TUTORIAL_TEMPLATE):
            if all(0 <= t + shift < T for _, shift in parts):
                value = "|".join(sentence[t + shift][column] for column, shift in parts)
                features.append(f"{number}={value}")
        tokens.append(features)
    tokens[0].append("__BOS__")
    tokens[-1].append("__EOS__")
    return tokens


def _shape(word: str) -> str:
    """Kinds of characters, repetitions left out: "McDonald's" is AaAa'a."""
    kinds = [
        "A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word
    ]
    return "".join(
        kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before
    )


def entity_features(sentence: list[tuple[str, str]]) -> list[list[str]]:
    """Usual features of names: words, tags and shapes around the token, its own affixes."""
    T = len(sentence)
    lower = [word.lower() for word, _ in sentence]
    shape = [_shape(word) for word, _ in sentence]
    tokens = []
    for t, (word, _) in enumerate(sentence):
        features = ["bias"]
        for shift in (-2, -1, 0, 1, 2):
            if 0 <= t + shift < T:
                features += [
                    f"w[{shift}]={lower[t + shift]}",
                    f"p[{shift}]={sentence[t + shift][1]}",
                    f"s[{shift}]={shape[t + shift]}",
                ]
        for size in range(1, min(4, len(word)) + 1):
            features += [f"prefix={lower[t][:size]}", f"suffix={lower[t][-size:]}"]
        if t > 0:
            features += [f"w-1={lower[t - 1]}|{lower[t]}", f"s-1={shape[t - 1]}|{shape[t]}"]
        else:
            features.append("__BOS__")
        if t < T - 1:
            features += [f"w+1={lower[t]}|{lower[t + 1]}", f"s+1={shape[t]}|{shape[t + 1]}"]
        else:
            features.append("__EOS__")
        tokens.append(features)
    return tokens
