"""The types that a model file may hold, and how each is taken apart and put together again.

The table is closed: a name in a file that is not in it is refused, so reading a file never imports
a module or calls anything but the constructors listed here.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from consistruct.exceptions import ModelFileError

__all__ = [
    "ModelType",
    "Parts",
    "TypeTable",
    "estimator_type",
    "model_types",
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
        entries = list(types)
        self._by_name = {entry.name: entry for entry in entries}
        self._by_class = {entry.cls: entry for entry in entries}
        assert len(self._by_name) == len(self._by_class) == len(entries)

    def __iter__(self) -> Any:
        return iter(self._by_name.values())

    def of_class(self, cls: type, where: str, value: object = None) -> ModelType:
        """The entry of exactly this class (no subclass: it could hold anything)."""
        if cls in self._by_class:
            return self._by_class[cls]
        place = f"{where!r} " if where else ""
        if cls.__module__.split(".")[0] == "sklearn":
            remedy = (
                "scikit-learn objects are not written to model files; use the built-in features "
                "('linear', 'nystroem', 'random', …), or put the transformer in front of the "
                "estimator in a Pipeline and save that with skops"
            )
        else:
            remedy = "a model file holds arrays, numbers, strings and the types of this package"
        raise ModelFileError(
            f"cannot save {place}of type {cls.__module__}.{cls.__name__}: {remedy}"
        )

    def named(self, name: object) -> ModelType:
        """The entry of a name in a file."""
        if not isinstance(name, str) or name not in self._by_name:
            raise ModelFileError(
                f"it holds an object of type {name!r}, which this version does not know"
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
        fitted = {key: entry for key, entry in vars(value).items() if key not in parameters}
        return parameters, fitted

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> Any:
        value = cls(**arguments)
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
    from consistruct.scores.linear import MatrixMap

    if isinstance(cached, MatrixMap):
        return True
    return isinstance(cached, tuple) and not isinstance(cached[1], list)


# --- the table ----------------------------------------------------------------------------------


@functools.cache
def model_types() -> TypeTable:
    """All types that a model file may hold."""
    from consistruct import decoding, labels, learning, losses, scores
    from consistruct.labels.partition import Partition
    from consistruct.learning.encoding import labels as label_encoding
    from consistruct.learning.encoding.candidates import CandidateLabels
    from consistruct.learning.encoding.orders import OrderLabels, RankLabels
    from consistruct.learning.encoding.relevance import RelevanceLabels
    from consistruct.learning.files.sequence_types import sequence_types
    from consistruct.learning.models.features.feature_maps import Scaling
    from consistruct.learning.models.solvers.sgd_state import SGDState
    from consistruct.losses.explicit import MatrixLoss
    from consistruct.scores.linear import MatrixMap
    from consistruct.surrogates import SURROGATES

    def loss_type(cls: type) -> ModelType:
        cached = ("_span",) if issubclass(cls, MatrixLoss) else ()
        return value_type(f"losses.{cls.__name__}", cls, cached)

    entries = [loss_type(entry.cls) for entry in losses.LOSSES.values()]
    entries.append(value_type("losses.Combination", losses.Combination, ("_joint",)))
    entries += [value_type(f"labels.{name}", getattr(labels, name)) for name in labels.__all__]
    entries += [
        value_type(f"decoding.{name}", getattr(decoding, name)) for name in decoding.__all__
    ]
    entries += [
        value_type(f"scores.{name}", getattr(scores, name))
        for name in ("Blocks", "Centred", "Chain", "Dense", "Full", "Separable")
    ]
    entries.append(value_type("scores.Orthonormalised", scores.Orthonormalised, ("basis",)))
    entries.append(value_type("labels.Partition", Partition))
    entries.append(value_type("scores.MatrixMap", MatrixMap))
    entries += [
        value_type(f"surrogates.{entry.cls.__name__}", entry.cls) for entry in SURROGATES.values()
    ]
    entries += [value_type(f"solvers.{cls.__name__}", cls) for cls in learning.SOLVERS.values()]
    entries.append(value_type("learning.Kernel", learning.Kernel))
    # TransformerFeatures is left out on purpose: it holds a scikit-learn object
    plain = ("KernelFeatures", "LinearFeatures", "NystroemFeatures", "RandomFeatures")
    entries += [plain_type(f"learning.{name}", getattr(learning, name)) for name in plain]
    entries += [
        plain_type(f"learning.{cls.__name__}", cls)
        for cls in (
            Scaling,
            SGDState,
            label_encoding.RawLabels,
            label_encoding.ClassLabels,
            label_encoding.CostLabels,
            label_encoding.PartLabels,
            label_encoding.SetLabels,
            CandidateLabels,
            OrderLabels,
            RankLabels,
            RelevanceLabels,
        )
    ]
    entries += [
        estimator_type(f"learning.{cls.__name__}", cls)
        for cls in (learning.TaskLossClassifier, learning.StructuredPredictor)
    ]
    entries += sequence_types()
    return TypeTable(entries)
