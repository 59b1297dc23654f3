"""scikit-learn's parts of model files: what comes back, what is refused, what cannot crash."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import (
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    SGDClassifier,
)
from sklearn.linear_model import Ridge as PlainRidge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import consistruct as cs
from consistruct.exceptions import ModelFileError
from consistruct.learning import TaskLossClassifier, load, register_type, save
from consistruct.learning.files.scikit_checks import check_content
from consistruct.learning.files.scikit_parts import join_parts, split_parts
from consistruct.learning.models import (
    MODELS,
    Boosting,
    Chain,
    Costs,
    Items,
    Linear,
    Prepared,
    Probabilities,
    Regressor,
    Ridge,
    Stack,
    Torch,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
SETS = (X @ RNG.normal(size=(3, 4)) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
    kind=pd.Categorical(np.where(X[:, 0] > 0, "u", "v"))
)
FRAME.loc[3, "a"] = np.nan
ROOT = Path(__file__).resolve().parents[2]


def round_trip(model: Any, tmp_path: Path, inputs: Any) -> Any:
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for before, after in zip(model.predict(inputs), again.predict(inputs), strict=True):
        np.testing.assert_array_equal(before, after)
    return again


# --- what comes back ----------------------------------------------------------------------------

CLASSIFIERS = [
    LogisticRegression(),
    make_pipeline(StandardScaler(), PCA(2), SGDClassifier(loss="log_loss")),
    make_pipeline(SimpleImputer(), QuantileTransformer(n_quantiles=5), GaussianNB()),
    make_pipeline(MinMaxScaler(), PowerTransformer(), LinearDiscriminantAnalysis()),
    make_pipeline(RobustScaler(), MaxAbsScaler(), QuadraticDiscriminantAnalysis()),
    make_pipeline(Nystroem(n_components=5), LogisticRegression()),
    make_pipeline(RBFSampler(n_components=5), TruncatedSVD(2), GaussianNB()),
    CalibratedClassifierCV(LinearSVC(), cv=3),
    CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=3),
    DecisionTreeClassifier(max_leaf_nodes=5),
    RandomForestClassifier(3),
    ExtraTreesClassifier(3),
    HistGradientBoostingClassifier(max_iter=3),
    HistGradientBoostingClassifier(max_iter=3, early_stopping=True, categorical_features=[2]),
    MLPClassifier(4, max_iter=2000, tol=0.05),
]  # fmt: skip
REGRESSORS = [
    LinearRegression(),
    ElasticNet(alpha=0.01),
    make_pipeline(StandardScaler(), PlainRidge()),
    TransformedTargetRegressor(PlainRidge()),
    MultiOutputRegressor(PlainRidge()),
    DecisionTreeRegressor(),
    RandomForestRegressor(3),
    ExtraTreesRegressor(3),
    HistGradientBoostingRegressor(max_iter=3),
    MLPRegressor(hidden_layer_sizes=4, max_iter=2000, tol=0.1),
]


def inputs_for(estimator: Any) -> Any:
    if getattr(estimator, "categorical_features", None) == [2]:
        return np.column_stack([X[:, :2], np.abs(X[:, 2]).astype(int)])
    return X


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda e: type(e).__name__)
def test_classifiers_come_back(estimator, tmp_path):
    inputs = inputs_for(estimator)
    model = TaskLossClassifier(model=Probabilities(estimator), random_state=0).fit(inputs, Y)
    again = round_trip(model, tmp_path, inputs)
    assert again.predict_proba(inputs).tobytes() == model.predict_proba(inputs).tobytes()


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_regressors_come_back(estimator, tmp_path):
    model = TaskLossClassifier("hamming", Regressor(estimator), random_state=0).fit(X, SETS)
    again = round_trip(model, tmp_path, X)
    assert again.expected_target(X).tobytes() == model.expected_target(X).tobytes()


MIXED = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b", "c"]),
    (OneHotEncoder(handle_unknown="ignore"), ["kind"]),
)


@pytest.mark.parametrize(
    "model",
    [
        Probabilities(make_pipeline(MIXED, LogisticRegression())),
        Probabilities(HistGradientBoostingClassifier(max_iter=3)),  # categories by their dtype
        Prepared(MIXED, Ridge("linear")),
        Regressor(
            make_pipeline(
                make_column_transformer((OrdinalEncoder(), ["kind"]), remainder="passthrough"),
                ExtraTreesRegressor(3),
            )
        ),
    ],
    ids=["pipeline", "boosting", "prepared", "ordinal"],
)  # fmt: skip
def test_tables_of_mixed_types_come_back(model, tmp_path):
    fitted = TaskLossClassifier(model=model, random_state=0).fit(FRAME, Y)
    again = round_trip(fitted, tmp_path, FRAME)
    assert again.predict_proba(FRAME).tobytes() == fitted.predict_proba(FRAME).tobytes()


SEQUENCES = [RNG.normal(size=(4, 3)) for _ in range(10)], [[0, 1, 1, 0] for _ in range(10)]
QUERIES = [RNG.normal(size=(5, 3)) for _ in range(12)], [RNG.integers(0, 3, 5) for _ in range(12)]
PRICES = np.abs(np.hstack([X, X]))[:, :4]
ESTIMATORS = {
    "ridge": (TaskLossClassifier(model=Ridge(StandardScaler())), (X, Y)),
    "linear": (TaskLossClassifier(model=Linear("log")), (X, Y)),
    "boosting": (TaskLossClassifier("fbeta", Boosting(5)), (X, SETS)),
    "regressor": (TaskLossClassifier("fbeta", Regressor()), (X, SETS)),
    "probabilities": (TaskLossClassifier("fbeta", Probabilities()), (X, SETS)),
    "prepared": (TaskLossClassifier(model=Prepared(StandardScaler(), Linear())), (X, Y)),
    "torch": (TaskLossClassifier("fbeta", Torch((4,), max_epochs=2, device="cpu")), (X, SETS)),
    "chain": (cs.StructuredPredictor("hamming", Chain(max_epochs=2)), SEQUENCES),
    "items": (cs.StructuredPredictor("ndcg", Items("ridge")), QUERIES),
    "costs": (cs.StructuredPredictor("path:2x2", Costs(n_landmarks=20)), (X, PRICES)),
    "stack": (
        TaskLossClassifier(
            model=Stack([Ridge("linear"), Probabilities(ExtraTreesClassifier(5))]),
        ),
        (X, Y),
    ),
}  # fmt: skip


def test_every_model_of_the_registry_is_tried():
    assert set(ESTIMATORS) == set(MODELS)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_comes_back(name, tmp_path):
    estimator, (inputs, y_true) = ESTIMATORS[name]
    model = estimator.set_params(random_state=0).fit(inputs, y_true)
    again = round_trip(model, tmp_path, inputs)
    assert again.get_params().keys() == model.get_params().keys()
    one, other = again.expected_target(inputs), model.expected_target(inputs)
    np.testing.assert_array_equal(getattr(one, "values", one), getattr(other, "values", other))


def test_the_default_comes_back(tmp_path):
    model = TaskLossClassifier(random_state=0, time_limit=0.0).fit(X, Y)
    again = round_trip(model, tmp_path, X)
    assert again.portfolio_ == model.portfolio_


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Probabilities(KNeighborsClassifier()), "KNeighborsClassifier"),
        (Regressor(SVR()), "SVR"),
        (Regressor(GradientBoostingRegressor()), "GradientBoostingRegressor"),
        (Probabilities(GridSearchCV(LogisticRegression(), {"C": [1.0]})), "GridSearchCV"),
        (Prepared(FunctionTransformer(np.log1p), Ridge()), "log1p"),
        (Prepared(FunctionTransformer(lambda values: values), Ridge()), "lambda"),
    ],
    ids=["neighbors", "support vectors", "boosting", "search", "ufunc", "lambda"],
)
def test_what_is_not_on_the_list_is_refused_with_the_reason(model, named, tmp_path):
    with pytest.raises(ModelFileError, match="joblib") as caught:
        save(TaskLossClassifier(model=model), tmp_path / "model")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_other_packages_are_refused_and_joblib_keeps_them(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=1, n_jobs=1, verbose=-1)
    model = TaskLossClassifier(model=Probabilities(booster), random_state=0).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"lightgbm.*joblib"):
        save(model, tmp_path / "model")
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


# --- forged descriptions ------------------------------------------------------------------------


def forged(value: Any, change: Any, compression: int = zipfile.ZIP_STORED) -> Any:
    """The bytes of a scikit-learn part with a changed description."""
    content = io.BytesIO(skops.io.dumps(value))
    result = io.BytesIO()
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(result, "w", compression) as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                description = json.loads(data)
                change(description)
                data = json.dumps(description).encode()
            new.writestr(name, data)
    return np.frombuffer(result.getvalue(), dtype=np.uint8)


def test_an_unchanged_description_is_loaded():
    value = LogisticRegression().fit(X, Y)
    again = join_parts(forged(value, lambda description: None))
    np.testing.assert_array_equal(again.predict(X), value.predict(X))


@pytest.mark.parametrize(
    "node",
    [
        {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "TypeNode"},
        {"__class__": "eval", "__module__": "builtins", "__loader__": "FunctionNode"},
        {"__class__": "SVC", "__module__": "sklearn.svm._classes", "__loader__": "ObjectNode"},
        {"__class__": "str", "__module__": "builtins", "__loader__": "MethodNode"},
        {"__class__": "str", "__module__": "builtins", "__loader__": "ConstructorFromReduceNode"},
        {"__class__": "Path", "__module__": "pathlib", "__loader__": "ObjectNode"},
    ],
    ids=lambda node: node["__class__"] + node["__loader__"],
)
def test_forged_types_are_refused_before_anything_is_built(node, monkeypatch):
    def no_loading(*_: Any, **__: Any) -> None:
        raise AssertionError("something was built")

    monkeypatch.setattr(skops.io, "loads", no_loading)

    def change(description: Any) -> None:
        description["content"]["content"]["coef_"] = node

    with pytest.raises(ModelFileError, match="not on the list"):
        join_parts(forged(LogisticRegression().fit(X, Y), change))


def test_damaged_parts_are_refused():
    fitted = LogisticRegression().fit(X, Y)
    with pytest.raises(ModelFileError, match="compressed"):
        join_parts(forged(fitted, lambda description: None, zipfile.ZIP_DEFLATED))
    for content in (b"", b"PK\x03\x04", skops.io.dumps(fitted)[:-30]):
        with pytest.raises(ModelFileError, match="damaged"):
            join_parts(np.frombuffer(content, dtype=np.uint8))
    with pytest.raises(ModelFileError, match="bytes"):
        join_parts(np.zeros(4))


def test_a_description_cannot_replace_methods():
    def change(description: Any) -> None:
        attributes = description["content"]["content"]
        attributes["predict_proba"] = attributes["C"]
        description["content"]["key_types"]["content"].append(
            description["content"]["key_types"]["content"][0]
        )

    with pytest.raises(ModelFileError, match="method 'predict_proba'"):
        join_parts(forged(LogisticRegression().fit(X, Y), change))


# --- forged content: compiled code follows these numbers ----------------------------------------


def change_tree(estimator: Any, field: str, position: int, value: Any) -> None:
    """Overwrite one number of a fitted tree, as a forged file would hold it."""
    state = estimator.tree_.__getstate__()
    if field == "node_count":
        state["node_count"] = value
    elif field == "values":
        state["values"] = state["values"].copy()
        state["values"][position] = value
    else:
        state["nodes"] = state["nodes"].copy()
        state["nodes"][field][position] = value
    estimator.tree_.__setstate__(state)


TREE_CHANGES = [
    ("left_child", 0, 10_000, "children"),
    ("right_child", 0, 10_000, "children"),
    ("left_child", 0, 0, "children"),  # its own child
    ("right_child", 0, -5, "children"),
    ("left_child", 1, 0, "children"),  # back to the root
    ("feature", 0, 3, "feature"),
    ("feature", 0, -2, "feature"),
    ("threshold", 0, np.nan, "threshold"),
    ("node_count", 0, 10**6, "number of nodes"),
    ("node_count", 0, 0, "number of nodes"),
    ("values", 0, np.inf, "leaf"),
]


@pytest.mark.parametrize(("field", "position", "value", "fault"), TREE_CHANGES)
@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_forged_trees_are_refused(kind, field, position, value, fault):
    if kind == "tree":
        model = tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    else:
        model = ExtraTreesRegressor(3, random_state=0).fit(X, SETS)
        tree = model.estimators_[1]
    assert (tree.tree_.children_left[:2] != -1).all()  # both are inner nodes
    check_content(model)
    change_tree(tree, field, position, value)
    with pytest.raises(ModelFileError, match=fault):
        check_content(model)


def test_trees_that_expect_other_columns_are_refused():
    forest = RandomForestClassifier(3, random_state=0).fit(X, Y)
    forest.n_features_in_ = 2  # would hand two columns to trees of three
    with pytest.raises(ModelFileError, match="forest"):
        check_content(forest)
    tree = DecisionTreeClassifier().fit(X, Y)
    tree.n_features_in_ = 2
    with pytest.raises(ModelFileError, match="feature"):
        check_content(make_pipeline(StandardScaler(), tree))
    tree.n_features_in_ = "3"
    with pytest.raises(ModelFileError, match="not a number"):
        check_content(tree)
    forest = RandomForestClassifier(3).fit(X, Y)
    forest.estimators_ = [LogisticRegression().fit(X, Y)]
    with pytest.raises(ModelFileError, match="something else"):
        check_content(forest)


def boosting() -> Any:
    kinds = np.arange(60) % 5
    inputs = np.column_stack([X[:, :2], kinds])
    estimator = HistGradientBoostingRegressor(
        max_iter=4, min_samples_leaf=2, categorical_features=[2]
    )
    return estimator.fit(inputs, np.isin(kinds, [0, 3]) + 0.1 * X[:, 0])


def boosted_tree(model: Any) -> Any:
    return model._predictors[0][0]


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("left", 10_000, "children"),
        ("right", 0, "children"),
        ("feature_idx", 3, "feature"),
        ("feature_idx", -1, "feature"),
        ("num_threshold", np.nan, "threshold"),
        ("value", np.inf, "leaf"),
        ("is_categorical", 1, "numbers for categories"),
        ("bitset_idx", 10_000, "out of range"),
    ],
)
def test_forged_boosted_trees_are_refused(field, value, fault):
    model = boosting()
    check_content(model)
    nodes = boosted_tree(model).nodes
    split = nodes["is_categorical"] == (field == "bitset_idx")
    where = np.flatnonzero((nodes["is_leaf"] == 0) & split)
    nodes[field][where[0]] = value
    with pytest.raises(ModelFileError, match=fault):
        check_content(model)


def fewer_columns(model: Any) -> None:
    model.n_features_in_ = 2


def no_bins(model: Any) -> None:
    del model._bin_mapper


def other_bins(model: Any) -> None:
    model._bin_mapper.is_categorical_ = np.ones(1, dtype=np.uint8)


def no_trees(model: Any) -> None:
    model._predictors.append([LinearRegression()])


def other_nodes(model: Any) -> None:
    boosted_tree(model).nodes = np.zeros(3)


def narrow_sets(model: Any) -> None:
    boosted_tree(model).raw_left_cat_bitsets = np.zeros((9, 1), dtype=np.uint32)


def other_inputs(model: Any) -> None:
    model._preprocessor._transformer_to_input_indices["encoder"] = [0]


def no_encoder(model: Any) -> None:
    model._preprocessor.transformers_.pop(0)


def other_encoder(model: Any) -> None:
    name, _, columns = model._preprocessor.transformers_[0]
    model._preprocessor.transformers_[0] = (name, OneHotEncoder(), columns)


def other_preprocessor(model: Any) -> None:
    model._preprocessor = PCA(1)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (fewer_columns, "columns"),
        (no_bins, "bins"),
        (other_bins, "columns"),
        (no_trees, "no trees"),
        (other_nodes, "not written"),
        (narrow_sets, "out of range"),
        (other_inputs, "unknown columns"),
        (no_encoder, "leaves columns out"),
        (other_encoder, "encoder is unknown"),
        (other_preprocessor, "encoder is unknown"),
    ],
)
def test_forged_boosting_is_refused(change, fault):
    model = boosting()
    change(model)
    with pytest.raises(ModelFileError, match=fault):
        check_content(model)


def test_forged_encoders_are_refused():
    kinds = np.array([["a"], ["b"], ["c"], ["c"]], dtype=object)
    for options in ({}, {"drop": "first"}, {"min_frequency": 2}):
        encoder = OneHotEncoder(**options).fit(kinds)
        check_content(encoder)
        encoder._n_features_outs = [1]
        with pytest.raises(ModelFileError, match="out of range"):
            check_content(encoder)
    encoder = OneHotEncoder(min_frequency=2).fit(kinds)
    encoder._default_to_infrequent_mappings = [np.array([0, 1, 10**6])]
    with pytest.raises(ModelFileError, match="out of range"):
        check_content(encoder)
    encoder = OneHotEncoder(drop="first").fit(kinds)
    encoder._drop_idx_after_grouping = np.array([7], dtype=object)
    with pytest.raises(ModelFileError, match="out of range"):
        check_content(encoder)


def test_no_noise_in_the_arrays_crashes_the_process():
    """Random bytes in the arrays of a forest and a booster: an error or predictions, no crash."""
    script = textwrap.dedent(
        """
        import io, sys, zipfile
        import numpy as np
        import skops.io
        from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingRegressor
        from consistruct.exceptions import ModelFileError
        from consistruct.learning.files.scikit_parts import join_parts

        np.seterr(all="ignore")
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 3))
        models = [
            ExtraTreesClassifier(2, random_state=0).fit(X, X[:, 0] > 0),
            HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=2).fit(X, X[:, 0]),
        ]
        refused = used = 0
        for model in models:
            with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            arrays = [name for name in members if name[-3:] == "npy" and len(members[name]) > 140]
            for _ in range(150):
                changed = dict(members)
                name = arrays[rng.integers(len(arrays))]
                data = bytearray(changed[name])
                for _ in range(rng.integers(1, 4)):
                    data[rng.integers(128, len(data))] = rng.integers(256)
                changed[name] = bytes(data)
                result = io.BytesIO()
                with zipfile.ZipFile(result, "w") as archive:
                    for key, value in changed.items():
                        archive.writestr(key, value)
                try:
                    again = join_parts(np.frombuffer(result.getvalue(), dtype=np.uint8))
                    again.predict(X)
                    used += 1
                except Exception:
                    refused += 1
        print(refused > 20 and used > 20, refused, used)
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("True"), done.stdout


def test_loading_runs_nothing(tmp_path):
    """No code is executed and nothing imported while scikit-learn's parts are loaded again."""
    forest = Probabilities(make_pipeline(StandardScaler(), ExtraTreesClassifier(3)))
    save(TaskLossClassifier(model=forest, random_state=0).fit(X, Y), tmp_path / "model")
    script = textwrap.dedent(
        """
        import sys
        from consistruct.learning import load
        load(sys.argv[1])  # imports what it needs
        events = []
        watched = ("exec", "import", "os.system", "os.exec", "subprocess.Popen",
                   "pickle.find_class", "marshal.loads", "ctypes.dlopen", "socket.connect")
        armed = True
        sys.addaudithook(lambda name, _: events.append(name) if armed and name in watched else None)
        load(sys.argv[1])
        armed = False
        print(events)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"


# --- types of one's own -------------------------------------------------------------------------


def own_loss() -> Any:
    """The loss of the example, from its file."""
    spec = importlib.util.spec_from_file_location("add_a_loss", ROOT / "examples" / "add_a_loss.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["add_a_loss"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.Triage


def test_a_loss_of_ones_own_is_saved_once_registered(tmp_path):
    triage = own_loss()
    model = TaskLossClassifier(triage(3, 1.0, 5.0), Ridge("linear"), random_state=0).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"Triage.*register_type"):
        save(model, tmp_path / "model")
    register_type(triage, "example.Triage")
    again = round_trip(model, tmp_path, X)
    assert again.loss == triage(3, 1.0, 5.0)
    # a program that has not registered it states what to do
    script = "import sys; from consistruct.learning import load; load(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "'example.Triage'" in done.stderr
    assert "register_type" in done.stderr


class Constant(Ridge):
    """A model of one's own."""


def test_models_of_ones_own(tmp_path):
    register_type(Constant, "example.Constant")
    register_type(Constant, "example.Constant")  # twice the same is no conflict
    model = TaskLossClassifier(model=Constant("linear"), random_state=0).fit(X, Y)
    assert type(round_trip(model, tmp_path, X).model_) is Constant


@pytest.mark.parametrize(
    ("cls", "name", "error", "message"),
    [
        (cs.losses.Hamming, "mine.Hamming", ValueError, "called 'losses.Hamming'"),
        (Constant, "learning.Constant", ValueError, "prefix of your own"),
        (Constant, "Constant", ValueError, "prefix of your own"),
        (dict, "mine.Dict", TypeError, "must be a dataclass"),
        (Constant("linear"), "mine.Constant", TypeError, "must be a class"),
    ],
)
def test_registration_is_checked(cls, name, error, message):
    with pytest.raises(error, match=message):
        register_type(cls, name)


def test_a_name_stands_for_one_class():
    register_type(type("One", (Ridge,), {}), "example.One")
    with pytest.raises(ValueError, match=r"already taken by abc\.One"):
        register_type(type("Other", (Ridge,), {}), "example.One")


def test_parts_are_written_as_bytes():
    stored = split_parts(LogisticRegression(), "model")
    assert stored.dtype == np.uint8
    assert join_parts(stored).get_params() == LogisticRegression().get_params()
