"""Tags of any type <-> states 0..s−1, and which transitions between them are allowed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from consistruct._frames import as_array, is_missing_label
from consistruct.protocols import FloatArray, IntArray
from consistruct.structures import Ragged

__all__ = ["TagSet", "pack_tags", "scheme_transitions"]


def pack_tags(y: Any, offsets: IntArray) -> list[Hashable]:
    """Tags of all tokens in order, checked against the lengths of X: (N,) as a list."""
    lengths = np.diff(offsets)
    n, n_tokens = len(lengths), int(offsets[-1])
    if isinstance(y, Ragged):
        y = list(y)
    if isinstance(y, list | tuple):
        y = [as_array(tags) for tags in y]  # columns of any library
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1 and len(y) == n_tokens:
        return list(y.tolist())  # flat, as it goes with groups=
    if not isinstance(y, Sequence | np.ndarray) or isinstance(y, str):
        raise TypeError(f"y must be a list of tag sequences, got {type(y).__name__}")
    if len(y) == n and n > 0 and _is_sequence(y[0]):
        flat: list[Hashable] = []
        for row, tags in enumerate(y):
            if len(tags) != lengths[row]:
                raise ValueError(
                    f"sequence {row} has {lengths[row]} tokens in X and {len(tags)} tags in y"
                )
            flat.extend(tags.tolist() if isinstance(tags, np.ndarray) else tags)
        return flat
    if len(y) == n_tokens and not (n_tokens > 0 and _is_sequence(y[0])):
        return list(y)
    raise ValueError(
        f"y must contain one tag sequence per sequence of X ({n}) or one tag per token "
        f"({n_tokens}), got {len(y)} entries"
    )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


class TagSet:
    """The tags that training shows, sorted where they can be, and their states.

    Examples
    --------
    >>> from consistruct.learning.encoding.tags import TagSet
    >>> tags = TagSet(["O", "B", "I", "O"])
    >>> tags.tags, tags.encode(["I", "B"]).tolist(), tags.decode([1, 2]).tolist()
    (['B', 'I', 'O'], [1, 0], ['I', 'O'])
    """

    def __init__(self, tags: Iterable[Hashable]) -> None:
        distinct = set(tags)
        _refuse_missing(distinct)
        try:
            self.tags: list[Any] = sorted(distinct)
        except TypeError:  # tags of several types: any fixed order
            self.tags = sorted(distinct, key=lambda tag: (type(tag).__name__, repr(tag)))
        self.state = {tag: state for state, tag in enumerate(self.tags)}

    def __len__(self) -> int:
        return len(self.tags)

    def known(self, tags: Sequence[Hashable]) -> IntArray:
        """States (N,), −1 for tags that training did not show; a missing one is refused."""
        get = self.state.get
        states = np.fromiter((get(tag, -1) for tag in tags), dtype=np.int64, count=len(tags))
        _refuse_missing(tags[token] for token in np.flatnonzero(states < 0).tolist())
        return states

    def encode(self, tags: Sequence[Hashable], offsets: IntArray | None = None) -> IntArray:
        """States (N,); an unknown tag raises and names its sequence."""
        states = self.known(tags)
        if (states < 0).any():
            position = int(np.argmax(states < 0))
            where = ""
            if offsets is not None:
                row = int(np.searchsorted(offsets, position, side="right")) - 1
                where = f" in sequence {row}"
            raise ValueError(
                f"tag {tags[position]!r}{where} is not among the {len(self)} known tags; pass all "
                "tags to the first partial_fit as classes="
            )
        return states

    def decode(self, states: ArrayLike) -> NDArray[Any]:
        """Tags of states, an array of strings or numbers, or of objects where they are neither."""
        kinds = {type(tag) for tag in self.tags}
        plain = len(kinds) == 1 and kinds <= {str, int, float, bool}
        table = np.array(self.tags) if plain else np.empty(len(self), dtype=object)
        if not plain:
            table[:] = self.tags
        return table[np.asarray(states, dtype=np.int64)]


def _refuse_missing(tags: Iterable[Hashable]) -> None:
    """Raise ValueError if a tag is None or NaN; in column files the text NA may be a tag."""
    for tag in tags:
        if not isinstance(tag, str) and is_missing_label(tag):
            shown = "None" if tag is None else "NaN"
            raise ValueError(
                f"a tag is {shown}, which is missing; leave out tokens without a tag, or name it"
            )


# letters that only follow a chunk of their type; B does so in the original CoNLL-2003
SCHEMES = {"bio": "I", "iob1": "B", "iobes": "IE"}


def scheme_transitions(
    tags: Sequence[Any], scheme: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Transition (s, s), start (s,) and end (s,) scores: 0 allowed, −inf forbidden by a scheme.

    "bio": I-X follows B-X or I-X. "iob1", the original CoNLL-2003: chunks begin with I-X, and with
    B-X only behind another chunk of type X. "iobes": as "bio", moreover B-X and I-X are followed by
    I-X or E-X, and S-X and E-X are not.

    >>> edges, start, end = scheme_transitions(["B-NP", "I-NP", "O"], "bio")
    >>> edges[:, 1].tolist(), start.tolist()
    ([0.0, 0.0, -inf], [0.0, -inf, 0.0])
    """
    if scheme not in SCHEMES:
        raise ValueError(f"the tag scheme must be 'bio', 'iob1' or 'iobes', got {scheme!r}")
    parsed = [("O", "") if tag == "O" else tuple(str(tag).partition("-")[::2]) for tag in tags]
    letters = set("BIOES" if scheme == "iobes" else "BIO")
    for tag, (letter, _) in zip(tags, parsed, strict=True):
        if letter not in letters:
            raise ValueError(
                f"tag {tag!r} does not follow the scheme {scheme!r}; tags are O or "
                f"{'/'.join(sorted(letters - {'O'}))} with a type, as in B-NP"
            )
    s = len(tags)
    edges, start, end = np.zeros((s, s)), np.zeros(s), np.zeros(s)
    opens = "BI"  # letters that leave a chunk open
    continues = SCHEMES[scheme]
    for b, (letter, kind) in enumerate(parsed):
        if letter in continues:
            start[b] = -np.inf
        if scheme == "iobes" and letter in opens:
            end[b] = -np.inf
        for a, (before, kind_before) in enumerate(parsed):
            follows = before in opens and kind_before == kind
            if (letter in continues and not follows) or (
                scheme == "iobes" and before in opens and not (letter in continues and follows)
            ):
                edges[a, b] = -np.inf
    return edges, start, end
