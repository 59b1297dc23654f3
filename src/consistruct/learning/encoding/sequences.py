"""Sequences of tokens as examples."""

from typing import Any


def takes_sequences(loss: Any, X: Any, groups: Any = None) -> bool:
    return False


def read_sequences(*arguments: Any) -> Any:
    raise AssertionError
