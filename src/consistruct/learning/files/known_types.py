"""The types that a model file may hold: one line each, and those that a program registers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from consistruct.exceptions import ModelFileError
from consistruct.learning.files.model_types import (
    ModelType,
    Parts,
    TypeTable,
    estimator_type,
    plain_type,
    value_type,
)

__all__ = ["add_package", "model_types", "register_type"]

# prefix of the names in files, module, classes
VALUES = [
    ("labels", "consistruct.structures.classes", ("Partition",)),
    ("structures", "consistruct.structures.decisions", ("CostVectorSet", "Feasible")),
    ("scores", "consistruct.structures.base", ("MatrixMap",)),
    ("learning", "consistruct.decisions.statistics", ("ClassProbabilities", "TokenStates")),
    ("learning", "consistruct.learning.statistics", ("TargetValues",)),
    ("learning", "consistruct.decisions.recalibration", ("Temperature", "Unchanged")),
    ("learning", "consistruct.learning.part_statistics", ("PartProbabilities",)),
    ("learning", "consistruct.learning.encoding.frames", ("Column", "InputColumns")),
    ("learning", "consistruct.learning.rules.offsets", ("Offsets",)),
    ("learning", "consistruct.learning.rules.rule", ("MetricRule",)),
    (
        "losses",
        "consistruct.losses.metrics",
        (
            "Constrained",
            "EqualRecall",
            "FScore",
            "FlaggedAtMost",
            "JaccardScore",
            "Kappa",
            "Matthews",
            "PrecisionAtLeast",
            "PrecisionScore",
            "RecallAtLeast",
            "Randomized",
            "RecallMean",
            "RecallScore",
        ),
    ),
    ("learning", "consistruct.learning.encoding.item_targets", ("ItemTargets",)),
    (
        "learning",
        "consistruct.learning.recalibration",
        ("ClassScaling", "Contrast", "Power", "Slope"),
    ),
    ("learning", "consistruct.learning.models.features.feature_maps", ("Kernel",)),
    ("learning", "consistruct.learning.models.coordinates", ("Coordinates",)),
    ("learning", "consistruct.learning.models.boosting.bins", ("Bins",)),
    ("learning", "consistruct.learning.models.boosting.trees", ("Trees",)),
    ("learning", "consistruct.learning.models.probabilities", ("Question",)),
    ("learning", "consistruct.learning.models.chain.chain_weights", ("ChainWeights",)),
    ("learning", "consistruct.learning.models.chain.sgd", ("TrainingState",)),
    ("learning", "consistruct.learning.models.ridge.moments", ("Moments",)),
    ("solvers", "consistruct.learning.models.ridge.closed_form", ("ClosedForm",)),
    ("solvers", "consistruct.learning.models.ridge.kernel_cg", ("KernelCG",)),
]
PLAIN = [
    (
        "consistruct.learning.models.features.feature_maps",
        ("KernelFeatures", "LinearFeatures", "Scaling", "ScoreMap", "TransformerFeatures"),
    ),
    (
        "consistruct.learning.models.features.approximations",
        ("KernelCenters", "NystroemFeatures", "RandomFeatures"),
    ),
    ("consistruct.learning.models.solvers.sgd_state", ("SGDState",)),
    ("consistruct.decisions.classes", ("ClassLabels",)),
    ("consistruct.learning.encoding.labels", ("PartLabels", "RawLabels")),
    ("consistruct.learning.encoding.costs", ("CostLabels",)),
    ("consistruct.learning.encoding.sets", ("SetLabels",)),
    ("consistruct.learning.encoding.candidates", ("CandidateLabels",)),
    ("consistruct.learning.encoding.orders", ("OrderLabels", "RankLabels")),
    ("consistruct.learning.encoding.queries", ("RelevanceLabels",)),
    ("consistruct.learning.encoding.kinds", ("Rows",)),
    ("consistruct.learning.encoding.sequences", ("Sequences",)),
    ("consistruct.learning.encoding.rankings", ("Queries",)),
    ("consistruct.learning.encoding.tokens", ("FeatureHash",)),
    ("consistruct.learning.models.chain.token_maps", ("TokenMap",)),
    ("consistruct.learning.models.items.boosted", ("BoostedScores",)),
    ("consistruct.learning.models.items.ridge", ("RidgeScores",)),
    ("consistruct.learning.models.items.regressors", ("RegressorScores",)),
]
OURS = frozenset(
    {
        "guarantees",
        "learning",
        "losses",
        "models",
        "solvers",
        "structures",
    }
)


@functools.cache
def model_types() -> TypeTable:
    """All types that a model file may hold."""
    from consistruct import learning, structures
    from consistruct.learning.files.sequence_types import sequence_types
    from consistruct.learning.models import MODELS, model_class
    from consistruct.learning.models.solvers.choice import SOLVERS
    from consistruct.losses.algebra import Combination
    from consistruct.losses.registry import LOSSES
    from consistruct.surrogates import SURROGATES

    entries = [_loss_type(f"losses.{e.cls.__name__}", e.cls) for e in LOSSES.values()]
    entries.append(value_type("losses.Combination", Combination, ("_joint",)))
    for name in structures.__all__:
        cls = getattr(structures, name)
        # labels, structures, oracles, packed batches
        if isinstance(cls, type) and dataclasses.is_dataclass(cls):
            basis = ("basis",) if cls is structures.Orthonormalized else ()
            entries.append(value_type(f"structures.{name}", cls, basis))
    entries += [
        value_type(f"surrogates.{entry.cls.__name__}", entry.cls) for entry in SURROGATES.values()
    ]
    entries += [value_type(f"solvers.{cls.__name__}", cls) for cls in SOLVERS.values()]
    for prefix, module, names in VALUES:
        entries += [value_type(f"{prefix}.{n}", getattr(import_module(module), n)) for n in names]
    for module, names in PLAIN:
        entries += [plain_type(f"learning.{n}", getattr(import_module(module), n)) for n in names]
    for name in MODELS:
        cls = model_class(name)
        entries.append(estimator_type(f"models.{cls.__name__}", cls))
    entries += [
        _streaming_type(f"learning.{cls.__name__}", cls)
        for cls in (learning.TaskLossClassifier, learning.StructuredPredictor)
    ]
    entries += sequence_types()
    for provider in _packages:
        entries += provider()
    return TypeTable(entries)


_packages: list[Callable[[], list[ModelType]]] = []


def add_package(provider: Callable[[], list[ModelType]]) -> None:
    """Types of a package above this one, which tells them when it is imported itself."""
    _packages.append(provider)
    if model_types.cache_info().currsize:
        for entry in provider():
            model_types().add(entry)


def register_type(cls: type, name: str) -> None:
    """Let model files hold objects of a class of your own.

    A file holds data and no code: the program that loads it must register the class first, under
    the same name.

    Parameters
    ----------
    cls : type
        A frozen dataclass (a loss, a score space, a label set), kept by its fields and rebuilt by
        its constructor; or a model of the expected target, kept by its parameters and what `fit`
        learned.
    name : str
        How files call it: a prefix of your own, a dot and a name, such as ``"clinic.Triage"``. It
        must not change while files are around.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from consistruct.learning import register_type
    >>> from consistruct.losses import ZeroOne
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class Strict(ZeroOne):
    ...     pass
    >>> register_type(Strict, "documentation.Strict")
    """
    from sklearn.base import BaseEstimator

    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, got {cls!r}")
    prefix, dot, rest = name.partition(".")
    if not dot or not rest or prefix in OURS:
        raise ValueError(
            f"name must be a prefix of your own, a dot and a name, such as 'clinic.Triage', got "
            f"{name!r}"
        )
    if dataclasses.is_dataclass(cls):
        entry = _loss_type(name, cls)
    elif issubclass(cls, BaseEstimator):
        entry = estimator_type(name, cls)
    else:
        raise TypeError(
            f"cls must be a dataclass (losses, score spaces, label sets) or a model with "
            f"get_params, got {cls.__name__}"
        )
    model_types().add(entry)


def _loss_type(name: str, cls: type) -> ModelType:
    return value_type(name, cls, ("_span",) if hasattr(cls, "_span") else ())


def _names_a_file(loss: Any) -> bool:
    """Whether a spec reads a file, also inside another one (``partial-labels:infimum:cost:…``)."""
    fields = loss.lower().replace("-", "_").split(":") if isinstance(loss, str) else []
    return any(field.strip() in ("cost", "tree") for field in fields[:-1])


def _refuse_files(loss: Any) -> None:
    if _names_a_file(loss):
        raise ModelFileError(
            f"its loss is {loss!r:.100}, a file that a later fit would read; pass the loss itself, "
            "as with consistruct.losses.parse_loss"
        )


def _streaming_type(name: str, cls: type) -> ModelType:
    """An estimator whose generator of random numbers may be the one that the user gave."""
    base = estimator_type(name, cls)

    def take_apart(value: Any) -> Parts:
        parameters, fitted = base.take_apart(value)
        if _names_a_file(parameters["loss"]) and "loss_" in fitted:
            # what was read from the file, not its name: a later fit neither needs nor reads it
            parameters |= {
                "loss": fitted["loss_"],
                **({"rows": None} if "rows" in parameters else {}),
            }
        _refuse_files(parameters["loss"])
        if "stream_" in fitted and fitted["stream_"] is value.random_state:
            fitted["stream_"] = None  # the same one, kept once
        return parameters, fitted

    def put_together(arguments: dict[str, Any], state: dict[str, Any]) -> Any:
        _refuse_files(arguments.get("loss"))
        value = base.put_together(arguments, state)
        if "stream_" in state and state["stream_"] is None:
            value.stream_ = value.random_state
        for name in ("model_", "kind_") if "model_" in state else ():
            if not hasattr(value, name):
                raise ModelFileError(f"its {type(value).__name__} has no {name}")
        return value

    return ModelType(base.name, base.cls, take_apart, put_together)
