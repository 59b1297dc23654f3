"""How a value of a known type is taken apart for a model file and put together again.

The table of types is closed: a name in a file that is not in it is refused, so reading a file never
imports a module or calls anything but the constructors listed there (`known_types`), and those that
the program itself has registered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import consistruct
from consistruct.exceptions import ModelFileError
from consistruct.learning.models.base import OutOfFold

__all__ = [
    "ModelType",
    "Parts",
    "TypeTable",
    "estimator_type",
    "plain_type",
    "value_type",
]

Parts = tuple[dict[str, Any], dict[str, Any]]  # constructor arguments, further state


@dataclass(frozen=True)
class ModelType:
    """A type by the name that files use for it.

    Attributes
    ----------
    name : str
        Public name such as ``losses.Tree``; it stays when a module moves.
    cls : type
    take_apart : callable
        value -> (constructor arguments, further state), both by name.
    put_together : callable
        The inverse, (arguments, state) -> value.
    """

    name: str
    cls: type
    take_apart: Callable[[Any], Parts]
    put_together: Callable[[dict[str, Any], dict[str, Any]], Any]


class TypeTable:
    """The closed table: look-up by class when writing, by name when reading."""

    def __init__(self, types: Iterable[ModelType]) -> None:
        self._by_name: dict[str, ModelType] = {}
        self._by_class: dict[type, ModelType] = {}
        for entry in types:
            self.add(entry)

    def add(self, entry: ModelType) -> None:
        """One more type; a name stands for one class and a class has one name."""
        known = self._by_name.get(entry.name)
        if known is not None and known.cls is not entry.cls:
            raise ValueError(
                f"the name {entry.name!r} is already taken by "
                f"{known.cls.__module__}.{known.cls.__name__}; choose another"
            )
        named = self._by_class.get(entry.cls)
        if named is not None and named.name != entry.name:
            raise ValueError(
                f"{entry.cls.__name__} is already called {named.name!r} in model files, not "
                f"{entry.name!r}"
            )
        self._by_name[entry.name] = self._by_class[entry.cls] = entry

    def __iter__(self) -> Any:
        return iter(self._by_name.values())

    def of_class(self, cls: type, where: str, value: object = None) -> ModelType:
        """The entry of exactly this class (no subclass: it could hold anything)."""
        if cls in self._by_class:
            return self._by_class[cls]
        place = f"{where!r} " if where else ""
        raise ModelFileError(
            f"cannot save {place}of type {cls.__module__}.{cls.__name__}: a model file can "
            "contain arrays, numbers, strings, scikit-learn's estimators and the types of this "
            "package; register a class of your own with consistruct.learning.register_type; "
            "joblib.dump saves anything, but whoever loads such a file runs the code in it"
        )

    def named(self, name: object) -> ModelType:
        """The entry of a name in a file; the package that it is of may not be imported yet."""
        if isinstance(name, str) and name not in self._by_name:
            consistruct._import_types(name.partition(".")[0])
        if not isinstance(name, str) or name not in self._by_name:
            raise ModelFileError(
                f"it contains an object of type {name!r}, which this version does not know; if it "
                "is your own, register it with consistruct.learning.register_type before loading"
            )
        return self._by_name[name]


# --- three ways to take a value apart -----------------------------------------------------------


def value_type(name: str, cls: type, cached: tuple[str, ...] = ()) -> ModelType:
    """A dataclass: its fields, through its constructor, which validates them again.

    `cached` names numerically chosen bases (left singular vectors of a loss matrix, say). Another
    LAPACK may choose another basis of the same space, and the learned weights are coordinates in
    it: so the basis is part of the model.
    """

    def take_apart(value: Any) -> Parts:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        kept = {key: vars(value)[key] for key in cached if key in vars(value)}
        return fields, {key: basis for key, basis in kept.items() if _is_chosen_basis(basis)}

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> Any:
        _only(state, cached, name)
        value = cls(**arguments)
        vars(value).update(state)
        return value

    return ModelType(name, cls, take_apart, put_together)


def plain_type(name: str, cls: type) -> ModelType:
    """An object that is its attributes, such as a fitted feature map."""

    def take_apart(value: Any) -> Parts:
        return {}, dict(vars(value))

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> Any:
        _only(arguments, (), name)
        value: Any = object.__new__(
            cls
        )  # not through __init__, which would compute the state again
        _set_state(value, state)
        return value

    return ModelType(name, cls, take_apart, put_together)


def estimator_type(name: str, cls: type) -> ModelType:
    """A scikit-learn estimator: its parameters, and what `fit` learned."""

    def take_apart(value: Any) -> Parts:
        stored = getattr(value, "stored_parameters", None)
        parameters = value.get_params(deep=False) if stored is None else stored()
        left = {*parameters, "_sklearn_version"}
        state = {key: entry for key, entry in value.__getstate__().items() if key not in left}
        # estimates of training examples are not part of a model
        return parameters, {k: None if isinstance(v, OutOfFold) else v for k, v in state.items()}

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> Any:
        value = cls(**arguments)
        # a parameter among what was learned would escape what is done to arguments: `checkpoint`
        # names a file that the next fit writes
        hidden = sorted(set(state) & set(value.get_params(deep=False)))
        if hidden:
            raise ModelFileError(
                f"it gives the parameter {hidden[0]!r} of {name} as a learned value"
            )
        _set_state(value, state)
        return value

    return ModelType(name, cls, take_apart, put_together)


def _set_state(value: Any, state: Mapping[str, Any]) -> None:
    # attributes only: a file cannot put data in the place of a method
    hidden = [key for key in state if callable(getattr(type(value), key, None))]
    if hidden:
        raise ModelFileError(f"it sets the method {hidden[0]!r} of {type(value).__name__}")
    vars(value).update(state)


def _only(given: Mapping[str, Any], allowed: Iterable[str], name: str) -> None:
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise ModelFileError(f"it gives {name} an unknown entry {unknown[0]!r}")


def _is_chosen_basis(cached: Any) -> bool:
    """Whether a cached value is plain data; one that holds maps (functions) is exact anyway."""
    from consistruct.structures.operators import MatrixMap

    if isinstance(cached, MatrixMap):
        return True
    return isinstance(cached, tuple) and not isinstance(cached[1], list)
