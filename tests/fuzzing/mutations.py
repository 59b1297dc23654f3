"""Damage: changes to text, bytes and JSON trees, each drawn from a seeded generator."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np

__all__ = ["mutate_bytes", "mutate_json", "mutate_text"]

# spellings that readers of numbers stumble over, sizes that overflow, words with a second meaning
NUMBERS = (
    "0", "-0", "-0.0", "1", "-1", "+3", ".5", "5.", "1e5", "1E+05", "1e-5", "1e308", "1e309",
    "-1e400", "1e-400", "nan", "NaN", "-nan", "inf", "-Infinity", "0x1F", "0b1", "1_000", "1,5",
    "1.5.2", "--1", "1e", "e5", "١٢", "１２", "½", "9007199254740993", "-9007199254740993",
    "9223372036854775808", "18446744073709551616", "340282366920938463463374607431768211456",
    "2147483648", "4294967296", "0.1000000000000000055511151231257827", "1e999999999", "00012",
    " 7 ", "7\t", "1/3", "5%", "$5", "true", "None", "null", "1d5", "1f", "1j",
    "123456789012345678901234567890", "9" * 400,
)  # fmt: skip
WORDS = (
    "", " ", "?", "NA", "N/A", "-", "=1+1", "@SUM(A1)", "a,b", 'a"b', "a'b", "a;b", "a b", "\\",
    "\\n", "{", "}", "[", "]", ":", "::", "#", "%", "%x[0,0]", "../x", "/etc/passwd", "\x00",
    "\ufeff", "\u202e", "é", "e\u0301", "😀", "\ud7ff", "<b>", "&amp;", "x" * 5000, "-DOCSTART-",
    "@data", "@attribute", "2026-02-30", "2026-01-01", "0000-00-00", "true\\pred", "pred",
    "__class__", "node", "weight",
)  # fmt: skip
SIZES = (
    "1000000",
    "100000000000",
    "99999999999999999999",
    "4096x4096",
    "1x1000000",
    "0",
    "-1",
    "1e3",
)


def mutate_text(text: str, rng: np.random.Generator, most: int = 4) -> str:
    """A few changes; about one in eight cases is left as it is."""
    for _ in range(int(rng.integers(0, most + 1))):
        text = _TEXT[int(rng.integers(len(_TEXT)))](text, rng)
        if len(text) > 2_000_000:
            return text[:2_000_000]
    return text


def _place(text: str, rng: np.random.Generator) -> int:
    return int(rng.integers(0, len(text) + 1))


def _pick(items: Any, rng: np.random.Generator) -> Any:
    return items[int(rng.integers(len(items)))]


def _replace_number(text: str, rng: np.random.Generator) -> str:
    found = list(re.finditer(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", text))
    if not found:
        return text
    one = _pick(found, rng)
    return text[: one.start()] + _pick(NUMBERS, rng) + text[one.end() :]


def _replace_word(text: str, rng: np.random.Generator) -> str:
    found = list(re.finditer(r"[^\s,:;{}\[\]\"]+", text))
    if not found:
        return text
    one = _pick(found, rng)
    return text[: one.start()] + _pick(WORDS, rng) + text[one.end() :]


def _replace_by_size(text: str, rng: np.random.Generator) -> str:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return text
    one = _pick(found, rng)
    return text[: one.start()] + _pick(SIZES, rng) + text[one.end() :]


def _insert(text: str, rng: np.random.Generator) -> str:
    place = _place(text, rng)
    return text[:place] + _pick(NUMBERS + WORDS, rng) + text[place:]


def _delete(text: str, rng: np.random.Generator) -> str:
    place = _place(text, rng)
    return text[:place] + text[place + int(rng.integers(1, 12)) :]


def _cut(text: str, rng: np.random.Generator) -> str:
    return text[: _place(text, rng)]


def _lines(text: str, rng: np.random.Generator) -> str:
    """Lines doubled, dropped, swapped, or with other ends."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    first, second = int(rng.integers(len(lines))), int(rng.integers(len(lines)))
    choice = int(rng.integers(6))
    if choice == 0:
        lines.insert(first, lines[second])
    elif choice == 1:
        del lines[first]
    elif choice == 2:
        lines[first], lines[second] = lines[second], lines[first]
    elif choice == 3:
        return text.replace("\n", _pick(("\r\n", "\r", "\n\n", " \n", "\x0b"), rng))
    elif choice == 4:
        lines[first] = lines[first] * int(rng.integers(2, 300))
    else:
        lines[first] = lines[first].rstrip("\n") * 2 + "\n"
    return "".join(lines)


def _separator(text: str, rng: np.random.Generator) -> str:
    old = _pick((",", ":", " ", "\t", ";", "x", '"'), rng)
    return text.replace(
        old, _pick((",", ":", " ", "\t", ";", ",,", '"', ""), rng), int(rng.integers(1, 4))
    )


def _quote(text: str, rng: np.random.Generator) -> str:
    start, stop = sorted((_place(text, rng), _place(text, rng)))
    mark = _pick(('"', "'", "`"), rng)
    return text[:start] + mark + text[start:stop] + mark + text[stop:]


_TEXT = (
    _replace_number, _replace_number, _replace_number, _replace_word, _replace_by_size, _insert,
    _delete, _cut, _lines, _lines, _separator, _quote,
)  # fmt: skip


def mutate_bytes(content: bytes, rng: np.random.Generator, most: int = 4) -> bytes:
    """A few changes to a binary file; about one in eight cases is left as it is."""
    data = bytearray(content)
    for _ in range(int(rng.integers(0, most + 1))):
        place = int(rng.integers(0, len(data) + 1))
        choice = int(rng.integers(7))
        if choice == 0 and place < len(data):
            data[place] ^= 1 << int(rng.integers(8))
        elif choice == 1:
            del data[place:]
        elif choice == 2:
            data += bytes(rng.integers(0, 256, int(rng.integers(1, 64)), dtype=np.uint8))
        elif choice == 3:
            extreme = _pick(
                (b"\xff" * 8, b"\x00" * 8, b"\x7f" + b"\xff" * 7, b"\xff\xff\xff\x7f"), rng
            )
            data[place : place + len(extreme)] = extreme
        elif choice == 4:
            del data[place : place + int(rng.integers(1, 32))]
        elif choice == 5:
            length = int(rng.integers(1, 64))
            data[place : place + length] = bytes(rng.integers(0, 256, length, dtype=np.uint8))
        else:
            other = int(rng.integers(0, len(data) + 1))
            data[place : place + 16] = data[other : other + 16]
    return bytes(data)


VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, -(2**63), 1e308, -1e308, 5e-324, "", "nan",
    "inf", "consistruct", "__class__", "x" * 300, [], {}, [[]], [0] * 50, {"": 0}, [1, 2],
    "float64", "<f8", "O", "1/0", "0/1", "-1/3", "9" * 300, "1/" + "9" * 300,
)  # fmt: skip


def mutate_json(tree: Any, rng: np.random.Generator, most: int = 3) -> Any:
    """The tree with a few nodes replaced, dropped, doubled or renamed."""
    tree = copy.deepcopy(tree)
    for _ in range(int(rng.integers(0, most + 1))):
        _change(tree, rng)
    return tree


def _change(tree: Any, rng: np.random.Generator) -> None:
    nodes = [(parent, key) for parent, key in _walk(tree)]
    if not nodes:
        return
    parent, key = _pick(nodes, rng)
    choice = int(rng.integers(6))
    if choice <= 2:
        value = parent[key]
        if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
            parent[key] = _pick((value + 1, -value, value * 2, 0, value * 10**6), rng)
        else:
            parent[key] = copy.deepcopy(_pick(VALUES, rng))
    elif choice == 3:
        del parent[key]
    elif choice == 4:
        other, place = _pick(nodes, rng)
        try:
            parent[key] = copy.deepcopy(other[place])
        except (KeyError, IndexError):
            return
    elif isinstance(parent, dict):
        parent[f"{key}x"] = parent.pop(key)
    else:
        parent.insert(0, copy.deepcopy(parent[key]))


def _walk(tree: Any) -> list[tuple[Any, Any]]:
    """(parent, key) of every node below the root, at most a few thousand."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting and len(found) < 5000:
        node = waiting.pop()
        keys = node.keys() if isinstance(node, dict) else range(len(node))
        for key in list(keys):
            found.append((node, key))
            if isinstance(node[key], dict | list):
                waiting.append(node[key])
    return found
