"""Queries as examples."""

from typing import Any


def takes_queries(loss: Any, X: Any, y: Any, groups: Any = None) -> bool:
    return False


def read_queries(*arguments: Any) -> Any:
    raise AssertionError
