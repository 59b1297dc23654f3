"""Which columns of a named table are features, which are true labels: by name, never by guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consistruct._validation import read_integer
from consistruct.learning.files.data.base import Request, bad

__all__ = ["Columns", "choose_columns"]


@dataclass(frozen=True)
class Columns:
    """Positions in the file."""

    features: tuple[int, ...]
    target: tuple[int, ...]
    groups: int | None


def choose_columns(
    path: Path, names: Sequence[str] | None, width: int, request: Request
) -> Columns:
    """Split the columns of a table into features, target and groups.

    Columns without names are called "0", "1", … in `request`; negative numbers count from the end.
    With `request.like`, features are those of the earlier file, found by name; a table without
    names must have the same width, or the width of the features alone.
    """
    like = request.like
    target_names = request.target or (like.target if like else ())
    groups_name = request.groups or (like.groups if like else None)
    places = None if names is None else {name: place for place, name in enumerate(names)}
    if names is not None and places is not None and len(places) != len(names):
        double = next(name for place, name in enumerate(names) if places[name] != place)
        raise bad(path, f"two columns are called {double!r}; rename one of them")
    features_only = (
        like is not None and names is None and width == like.n_features and not request.target
    )
    if features_only and not request.with_target:
        return Columns(tuple(range(width)), (), None)

    target = tuple(
        place
        for name in target_names
        if (place := _find(path, places, width, name, request.with_target, "target")) is not None
    )
    groups = (
        None
        if groups_name is None
        else _find(path, places, width, groups_name, request.with_target, "groups")
    )
    ignored = {_find(path, places, width, name, True, "ignore") for name in request.ignore}
    if like is not None and like.feature_names is not None and places is not None:
        found = places
        missing = [name for name in like.feature_names if name not in found]
        if missing:
            raise bad(
                path,
                f"column {missing[0]!r}, which the model was fitted on, is missing "
                f"({len(missing)} of {len(like.feature_names)} are)",
            )
        features = tuple(found[name] for name in like.feature_names)
    else:
        taken = {*target, *ignored, groups}
        features = tuple(place for place in range(width) if place not in taken)
        if like is not None and len(features) != like.n_features:
            raise bad(
                path,
                f"{len(features)} feature columns, but the model was fitted on {like.n_features}",
            )
    if not target and request.with_target:
        known = f"; columns are {_listed(names)}" if names is not None else ""
        raise bad(path, f"choose the column with the true label: --target NAME{known}")
    if not features:
        raise bad(path, "no feature column is left besides target, groups and ignored columns")
    return Columns(features, target if request.with_target else (), groups)


def _find(
    path: Path, places: dict[str, int] | None, width: int, name: str, required: bool, role: str
) -> int | None:
    if places is not None and name in places:
        return places[name]
    if places is None:
        try:
            position = read_integer(name)
        except ValueError:
            raise bad(
                path,
                f"the file has no header, so --{role} must be a column number 0..{width - 1} "
                f"(or -1 for the last), got {name!r}",
            ) from None
        if -width <= position < width:
            return position % width
    if not required:
        return None
    known = _listed(list(places)) if places is not None else f"0..{width - 1}"
    raise bad(path, f"there is no column {name!r} for --{role}; columns are {known}")


def _listed(names: Sequence[str] | None, most: int = 8) -> str:
    assert names is not None
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"
