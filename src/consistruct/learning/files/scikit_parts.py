"""scikit-learn objects inside a model file: skops, a closed list of types, checked content.

skops writes an object as a description in JSON and plain arrays, and builds it again from types
that it is set to trust. Here the list is our own and explicit: types whose content cannot make
compiled code read outside its arrays, or whose content `scikit_checks` verifies first. The
description is looked through before anything is built, the object before it is used.

Not on the list, on purpose: support vector machines, nearest neighbors, Gaussian processes and
anything else that hands unchecked numbers to compiled code; functions; other packages.
"""

from __future__ import annotations

import functools
import io
import json
import zipfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consistruct.exceptions import ModelFileError
from consistruct.learning.files.scikit_checks import check_content, check_settings

__all__ = ["join_parts", "split_parts", "stored_by_skops"]

PUBLIC = {
    "consistruct.learning.selection.columns": ["TreeNumbers"],
    "sklearn.calibration": ["CalibratedClassifierCV"],
    "sklearn.compose": ["ColumnTransformer", "TransformedTargetRegressor"],
    "sklearn.decomposition": ["PCA", "TruncatedSVD"],
    "sklearn.discriminant_analysis": [
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ],
    "sklearn.dummy": ["DummyClassifier", "DummyRegressor"],
    "sklearn.ensemble": [
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
    ],
    "sklearn.impute": ["MissingIndicator", "SimpleImputer"],
    "sklearn.isotonic": ["IsotonicRegression"],
    "sklearn.kernel_approximation": ["Nystroem", "RBFSampler"],
    "sklearn.linear_model": [
        "BayesianRidge",
        "ElasticNet",
        "ElasticNetCV",
        "HuberRegressor",
        "Lasso",
        "LassoCV",
        "LinearRegression",
        "LogisticRegression",
        "LogisticRegressionCV",
        "Ridge",
        "RidgeCV",
        "SGDClassifier",
        "SGDRegressor",
    ],
    "sklearn.multioutput": ["MultiOutputClassifier", "MultiOutputRegressor"],
    "sklearn.naive_bayes": ["BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"],
    "sklearn.neural_network": ["MLPClassifier", "MLPRegressor"],
    "sklearn.pipeline": ["Pipeline"],
    "sklearn.preprocessing": [
        "FunctionTransformer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
    ],
    "sklearn.svm": ["LinearSVC", "LinearSVR"],
    "sklearn.tree": [
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ExtraTreeClassifier",
        "ExtraTreeRegressor",
    ],
}
# what the classes above keep inside
INNER = {
    "sklearn._loss._loss": [
        "CyAbsoluteError",
        "CyHalfBinomialLoss",
        "CyHalfMultinomialLoss",
        "CyHalfPoissonLoss",
        "CyHalfSquaredError",
    ],
    "sklearn._loss.link": [
        "HalfLogitLink",
        "IdentityLink",
        "Interval",
        "LogLink",
        "LogitLink",
        "MultinomialLogit",
    ],
    "sklearn._loss.loss": [
        "AbsoluteError",
        "HalfBinomialLoss",
        "HalfMultinomialLoss",
        "HalfPoissonLoss",
        "HalfSquaredError",
    ],
    "sklearn.calibration": ["_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"],
    "sklearn.ensemble._hist_gradient_boosting.binning": ["_BinMapper"],
    "sklearn.ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
    "sklearn.neural_network._stochastic_optimizers": ["AdamOptimizer", "SGDOptimizer"],
    "sklearn.tree._tree": ["Tree"],
}
PLAIN = {
    "builtins": ["bool", "dict", "float", "int", "list", "set", "slice", "str", "tuple"],
    "numpy": [
        "bool",
        "bool_",
        "dtype",
        "float32",
        "float64",
        "int32",
        "int64",
        "ndarray",
        "str_",
        "uint32",
        "uint64",
        "uint8",
    ],
    "numpy.random._generator": ["Generator"],
    "numpy.random.mtrand": ["RandomState"],
    "functools": ["partial"],
}
# functions by name: they change nothing and read no files
FUNCTIONS = {
    "sklearn.utils.validation.check_array",
    "consistruct.learning.selection.columns.days",
    "consistruct.learning.selection.columns.words",
}
LOADERS = {
    "CachedNode",
    "DTypeNode",
    "DictNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "LossNode",
    "NdArrayNode",
    "ObjectNode",
    "PartialNode",
    "RandomGeneratorNode",
    "RandomStateNode",
    "SetNode",
    "SliceNode",
    "TreeNode",
    "TupleNode",
    "TypeNode",
}
KNOWINGLY = (
    "joblib.dump saves any estimator, but whoever loads such a file runs the code in it: load "
    "only files that you trust"
)


@functools.cache
def _allowed() -> frozenset[str]:
    """Full names of the types, where this version of scikit-learn keeps them."""
    names = {f"{module}.{name}" for module, known in PLAIN.items() for name in known}
    for module, known in (*PUBLIC.items(), *INNER.items()):
        try:
            found = import_module(module)
        except ImportError:  # an inner module of another version: its types are not on the list
            continue
        for name in known:
            cls = getattr(found, name, None)
            if cls is not None:
                names.add(f"{cls.__module__}.{cls.__name__}")
    return frozenset(names)


def stored_by_skops(value: object) -> bool:
    """Whether a value is one of those that this module takes care of, allowed or refused."""
    return type(value).__module__.split(".")[0] == "sklearn"


def split_parts(value: Any, where: str) -> NDArray[np.uint8]:
    """A scikit-learn object as bytes."""
    from skops.io import dumps  # it imports all of scikit-learn

    try:
        content = dumps(value)
    except Exception as error:  # whatever the object holds that skops cannot write
        raise ModelFileError(
            f"cannot save {where!r}: skops cannot write {type(value).__name__} "
            f"({' '.join(str(error).split())[:200]}); {KNOWINGLY}"
        ) from None
    refused = _refused(_description(content))
    if refused is not None:
        raise ModelFileError(
            f"cannot save {where!r} of type {type(value).__name__}: it contains {refused}, which "
            f"is not on the list of types that a model file may contain; {KNOWINGLY}"
        )
    try:
        check_settings(value)
    except ModelFileError as error:
        raise ModelFileError(f"cannot save {where!r}: {error}; {KNOWINGLY}") from None
    return np.frombuffer(content, dtype=np.uint8)


def join_parts(
    stored: NDArray[np.uint8], spend: Callable[[int], None] = lambda n_bytes: None
) -> Any:
    """Return the object of given bytes, with its content checked; raises ModelFileError.

    `spend` is called with the bytes of memory that the arrays will take, before they are read.
    """
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ModelFileError("its scikit-learn part is not written as bytes")
    content = stored.tobytes()
    description = _description(content)
    refused = _refused(description)
    if refused is not None:
        raise ModelFileError(f"it contains {refused}, which is not on the list of allowed types")
    spend(_array_bytes(content, description))
    from skops.io import loads

    value = loads(content, trusted=sorted(_names(description)))
    check_content(value)
    return value


def _description(content: bytes) -> Any:
    """The JSON of a skops file whose members are stored as they are."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                # a compressed member could be a thousand times its size
                stored = member.compress_type == zipfile.ZIP_STORED
                if not stored or member.file_size > len(content):
                    raise ModelFileError("its scikit-learn part is compressed")
            return json.loads(archive.read("schema.json"))
    except (zipfile.BadZipFile, KeyError, ValueError, RecursionError) as error:
        raise ModelFileError(f"its scikit-learn part is damaged: {error}") from None


def _array_bytes(content: bytes, description: Any) -> int:
    """Bytes of all arrays that a description refers to, once for each reference."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
    return sum(sizes.get(str(node.get("file")), 0) for node in _nodes(description))


def _nodes(description: Any) -> Any:
    """Every description of an object inside, without recursion: depth is the file's choice."""
    pending = [description]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if "__loader__" in value or "__module__" in value:
                yield value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _name(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _names(description: Any) -> set[str]:
    return {_name(node) for node in _nodes(description)} & (_allowed() | FUNCTIONS)


def _refused(description: Any) -> str | None:
    """The first thing that is not allowed, in words."""
    allowed = _allowed()
    for node in _nodes(description):
        loader, name = node.get("__loader__"), _name(node)
        if loader == "JsonNode":  # plain JSON: nothing is looked up by its name
            continue
        if loader not in LOADERS:
            return f"{name} ({loader})"
        known = FUNCTIONS if loader == "FunctionNode" else allowed
        if name not in known:
            return f"the function {name}" if loader == "FunctionNode" else f"the type {name}"
    return None
