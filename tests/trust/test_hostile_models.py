"""Model files of an attacker: a later fit obeys the user, compiled code stays in its arrays."""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import tracemalloc
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import consistruct as cs
from consistruct.exceptions import ModelFileError
from consistruct.learning import TaskLossClassifier, load, save
from consistruct.learning.files.scikit_parts import PUBLIC
from consistruct.learning.models import Chain, Probabilities, Ridge

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(int)


def saved(model: Any, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a model file."""
    save(model, path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["consistruct"])
    return header, safetensors.numpy.load(content)


def write(path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """A model file of given content with a fitting checksum."""
    text = json.dumps({**header, "sha256": "0" * 64}, separators=(",", ":"))
    content = safetensors.numpy.save(arrays, {"consistruct": text})
    digest = hashlib.sha256(content).hexdigest().encode()
    path.write_bytes(content.replace(b"0" * 64, digest, 1))


def with_part(estimator: Any, path: Path) -> None:
    """A model file whose scikit-learn part is `estimator`, written without any of our checks."""
    header, arrays = saved(TaskLossClassifier(model=Probabilities(LogisticRegression())), path)
    name = header["estimator"]["arguments"]["model"]["arguments"]["estimator"]["v"]["v"]
    arrays[name] = np.frombuffer(skops.io.dumps(estimator), dtype=np.uint8)
    write(path, header, arrays)


def refused(path: Path, match: str) -> None:
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert "\n" not in str(caught.value)


# --- attributes that name a folder, a callable or a number of processes ------------------------


def changed(estimator: Any, **attributes: Any) -> Any:
    vars(estimator).update(attributes)
    return estimator


def piped(folder: str) -> Pipeline:
    return Pipeline([("scale", StandardScaler()), ("fit", LogisticRegression())], memory=folder)


def test_a_pipeline_with_a_cache_folder_is_refused_on_loading(tmp_path, monkeypatch):
    """A refit would unpickle what lies in that folder."""
    monkeypatch.chdir(tmp_path)
    for estimator in (piped("cache"), make_pipeline(StandardScaler(), piped("cache"))):
        with_part(estimator, tmp_path / "model")
        refused(tmp_path / "model", "memory='cache'")
    assert os.listdir() == ["model"]  # noqa: PTH208 - names only


def test_a_pipeline_with_a_cache_folder_is_refused_on_saving(tmp_path):
    with pytest.raises(ModelFileError, match=r"memory='cache'.*set memory=None"):
        save(TaskLossClassifier(model=Probabilities(piped("cache"))), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (changed(LogisticRegression(), memory="cache"), "memory"),
        (changed(LogisticRegression(), checkpoint="file"), "checkpoint"),
        (changed(ExtraTreesClassifier(), n_jobs=10**6), "n_jobs"),
        (changed(ExtraTreesClassifier(), n_jobs="2"), "n_jobs"),
        (FunctionTransformer(StandardScaler), "type StandardScaler"),
        (Nystroem(kernel=np.ndarray), "type ndarray"),
    ],
    ids=["memory", "checkpoint", "jobs", "jobs text", "function", "kernel"],
)
def test_places_processes_and_types_to_call_are_refused(estimator, named, tmp_path):
    with_part(make_pipeline(estimator, LogisticRegression()), tmp_path / "model")
    refused(tmp_path / "model", named)


# Parameters that can be a path, a callable, an object or a number of workers, and what guards
# each. A new scikit-learn may add one: it must be reviewed before it is on this list.
GUARDED = {
    "memory": "refused",
    "n_jobs": "bounded",
    "cv": "splitters are on no list of types; index arrays are data",
    "covariance_estimator": "types of the closed list only",
    "estimator": "types of the closed list only",
    "regressor": "types of the closed list only",
    "transformer": "types of the closed list only",
    "remainder": "types of the closed list only",
    "steps": "types of the closed list only",
    "transformers": "types of the closed list only",
    "loss": "types of the closed list only",
    "feature_name_combiner": "three functions without effects, no types",
    "feature_names_out": "three functions without effects, no types",
    "func": "three functions without effects, no types",
    "inverse_func": "three functions without effects, no types",
    "kernel": "three functions without effects, no types",
    "oob_score": "three functions without effects, no types",
    "scoring": "three functions without effects, no types",
    "strategy": "three functions without effects, no types",
    "verbose_feature_names_out": "three functions without effects, no types",
    "dtype": "types of numbers only",
    "constant": "compared and stored, never called",
    "fill_value": "compared and stored, never called",
}


def test_every_parameter_of_a_trusted_type_that_could_act_is_guarded():
    acting = set()
    for module, names in PUBLIC.items():
        for name in names:
            cls = getattr(import_module(module), name)
            rules = getattr(cls, "_parameter_constraints", {})
            acting |= {p for p in inspect.signature(cls).parameters if can_act(rules.get(p))}
    assert acting <= set(GUARDED), f"not reviewed yet: {sorted(acting - set(GUARDED))}"
    assert {"memory", "func", "kernel", "n_jobs"} <= acting


def can_act(rules: Any) -> bool:
    """Whether scikit-learn takes a path, a callable, an object or a number of workers here."""
    if rules is None:
        return False
    if isinstance(rules, str):  # "no_validation"
        return True
    texts = [type(rule).__name__ if not isinstance(rule, str | type) else rule for rule in rules]
    objects = {"HasMethods", "builtin_function_or_method", "cv_object", str}
    workers = len(rules) == 2 and None in rules and any("Integral" in str(r) for r in rules)
    bases = [rule for rule in rules if isinstance(rule, type) and rule.__name__ == "BaseLoss"]
    return bool(objects & set(texts) or bases or workers)


# --- where a later fit writes -------------------------------------------------------------------


def test_a_checkpoint_among_learned_values_is_refused(tmp_path):
    sequences = [np.eye(2)] * 6, [[0, 1]] * 6
    model = cs.StructuredPredictor("hamming", Chain(max_epochs=1), random_state=0)
    header, arrays = saved(model.fit(*sequences), tmp_path / "model")
    header["estimator"]["arguments"]["model"]["state"] = {"checkpoint": str(tmp_path / "target")}
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", "parameter 'checkpoint'")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("name", ["loss", "n_jobs", "random_state", "cv"])
def test_no_parameter_can_hide_among_learned_values(name, tmp_path):
    header, arrays = saved(TaskLossClassifier(model=Ridge("linear")).fit(X, Y), tmp_path / "model")
    header["estimator"]["state"][name] = 7
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", f"parameter '{name}'")


# --- what a later fit reads ---------------------------------------------------------------------


def test_a_loss_from_a_file_is_stored_as_what_was_read(tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("pred\\true,0,1\n0,0,1\n1,5,0\n")
    model = TaskLossClassifier(f"cost:{costs}", Ridge("linear")).fit(X, Y)
    save(model, tmp_path / "model")
    costs.unlink()
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(clone(again).fit(X, Y).predict(X), model.predict(X))
    assert str(tmp_path).encode() not in (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    "loss", ["cost:/etc/costs.csv", "tree:t.csv:nodes", "partial-labels:infimum:cost:c.csv"]
)
def test_no_loss_of_a_model_file_names_a_file(loss, tmp_path):
    header, arrays = saved(TaskLossClassifier(model=Ridge("linear")).fit(X, Y), tmp_path / "model")
    header["estimator"]["arguments"]["loss"] = loss
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", "a file that a later fit would read")
    with pytest.raises(ModelFileError, match="a file that a later fit would read"):
        save(TaskLossClassifier(loss), tmp_path / "other")


# --- numbers that compiled code follows ---------------------------------------------------------

SPARSE = sp.csr_array(np.eye(3))


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indptr", [0, 1000, 0, 3]),
        ("indptr", [0, 1, 2, 1000]),
        ("indptr", [1, 1, 2, 3]),
        ("indptr", [0, 3]),
        ("indices", [0, 1, 1000]),
        ("indices", [0, 1, -1]),
        ("indices", [0, 1]),
    ],
)
def test_sparse_arrays_that_point_outside_are_refused(kind, part, values, tmp_path):
    notes = {"matrix": getattr(sp, f"{kind}_array")(SPARSE)}
    save(TaskLossClassifier(), tmp_path / "model", notes=notes)
    load(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["consistruct"])
    arrays = safetensors.numpy.load(content)
    arrays[f"notes.matrix.{part}"] = np.array(values, dtype=np.int32)
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", "cannot be loaded")


def test_sparse_arrays_without_entries_that_point_outside_are_refused(tmp_path):
    """SciPy's own check looks at the pointers only where an entry is stored."""
    save(TaskLossClassifier(), tmp_path / "model", notes={"matrix": sp.csr_array((2, 3))})
    content = (tmp_path / "model").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["consistruct"])
    arrays = safetensors.numpy.load(content)
    arrays["notes.matrix.indptr"] = np.array([0, 1000, 0], dtype=np.int32)
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", "cannot be loaded")


def with_generator(generator: Any, path: Path, *, old: Any, new: Any, part: bool) -> None:
    """A model file whose generator, as a parameter or in a scikit-learn part, has a number changed.

    NumPy follows the position in the buffer without looking: it read gigabytes away.
    """
    trees = ExtraTreesClassifier(3, random_state=generator if part else None)
    model = Probabilities(trees)
    model = TaskLossClassifier(model=model, random_state=None if part else generator)
    header, arrays = saved(model, path)
    if not part:
        text = json.dumps(header["estimator"]["arguments"]["random_state"])
        assert f", {old}]" in text
        changed_text = text.replace(f", {old}]", f", {new}]")
        header["estimator"]["arguments"]["random_state"] = json.loads(changed_text)
    else:
        name = header["estimator"]["arguments"]["model"]["arguments"]["estimator"]["v"]["v"]
        content, other = io.BytesIO(arrays[name].tobytes()), io.BytesIO()
        with zipfile.ZipFile(content) as source, zipfile.ZipFile(other, "w") as target:
            for member in source.namelist():
                data = source.read(member)
                if member == "schema.json":
                    assert f'"{old}"'.encode() in data
                    data = data.replace(f'"{old}"'.encode(), f'"{new}"'.encode())
                target.writestr(member, data)
        arrays[name] = np.frombuffer(other.getvalue(), dtype=np.uint8)
    write(path, header, arrays)


@pytest.mark.parametrize("part", [False, True], ids=["parameter", "scikit-learn part"])
@pytest.mark.parametrize("new", [10**9, 625, -1])
def test_generators_that_read_outside_their_buffer_are_refused(new, part, tmp_path):
    generator = np.random.RandomState(0)
    with_generator(generator, tmp_path / "model", old=624, new=623, part=part)
    load(tmp_path / "model").fit(X, Y)
    with_generator(generator, tmp_path / "model", old=624, new=new, part=part)
    refused(tmp_path / "model", f"position {new} of a buffer of 624")


@pytest.mark.parametrize("new", [-(10**8), 5])
def test_generators_by_counter_are_refused_too(new, tmp_path):
    generator = np.random.Generator(np.random.Philox(0))
    with_generator(generator, tmp_path / "model", old=4, new=new, part=False)
    refused(tmp_path / "model", f"position {new} of a buffer of 4")


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["statistic_", "loss_"])
def test_a_number_of_classes_that_the_file_cannot_be_about_is_refused(place, tmp_path):
    """Seven digits, and the estimates of sixty rows took gigabytes."""
    model = TaskLossClassifier("hamming", Ridge("linear")).fit(X, np.column_stack([Y, 1 - Y]))
    header, arrays = saved(model, tmp_path / "model")
    node = header["estimator"]["state"][place]
    node = node if place == "loss_" else node["arguments"]["loss"]
    node["arguments"]["T"] = 10**7
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", r"T=10000000; a model file of \d+ bytes may name sizes of up to")


def test_the_nodes_of_a_grid_are_bounded_by_what_the_file_can_be_about(tmp_path):
    """Each side alone may pass, and sides of 60,000 list billions of edges."""
    loss = cs.losses.Decision(cs.structures.GridPath(2, 2))
    costs = np.random.default_rng(1).uniform(1, 2, (30, 4))
    header, arrays = saved(
        cs.StructuredPredictor(loss, Ridge("linear")).fit(X, costs), tmp_path / "model"
    )
    load(tmp_path / "model").predict(X)
    grid = header["estimator"]["state"]["loss_"]["arguments"]["oracle"]["arguments"]
    grid |= {"rows": 600, "columns": 600}
    write(tmp_path / "model", header, arrays)
    refused(
        tmp_path / "model",
        r"rows x columns=360000; a model file of \d+ bytes may name sizes",
    )


def test_what_is_not_fitted_may_have_any_number_of_labels(tmp_path):
    save(TaskLossClassifier(cs.losses.ZeroOne(10**7)), tmp_path / "model")
    assert load(tmp_path / "model").loss == cs.losses.ZeroOne(10**7)


def test_the_answers_of_a_classifier_are_as_wide_as_its_columns(tmp_path):
    model = TaskLossClassifier(model=Probabilities(LogisticRegression())).fit(X, Y)
    header, arrays = saved(model, tmp_path / "model")
    question = header["estimator"]["state"]["model_"]["state"]["questions_"]["v"][0]
    question["arguments"]["answers"]["shape"][1] = 10**7
    write(tmp_path / "model", header, arrays)
    refused(tmp_path / "model", "answers must have one column for each of the 2 columns")


def test_a_window_without_weights_is_found_before_it_is_laid_out(tmp_path):
    sequences = [np.eye(2)] * 6, [[0, 1]] * 6
    model = cs.StructuredPredictor("hamming", Chain(max_epochs=1), random_state=0)
    header, arrays = saved(model.fit(*sequences), tmp_path / "model")
    header["estimator"]["state"]["model_"]["state"]["token_map_"]["state"]["window"] = 10**7
    write(tmp_path / "model", header, arrays)
    again = load(tmp_path / "model")
    with pytest.raises(ValueError, match="there are weights for 2"):
        again.predict(sequences[0])


def test_many_wide_strings_share_one_budget(tmp_path):
    """Each within what one array may take; together they took gigabytes."""
    header, arrays = saved(TaskLossClassifier(), tmp_path / "model")
    node = {"t": "strings", "width": 2**18, "shape": [1], "v": ["a"]}
    header["notes"] = {"t": "dict", "v": [["a", {"t": "list", "v": [node] * 3000}]]}
    write(tmp_path / "model", header, arrays)
    tracemalloc.start()
    refused(tmp_path / "model", r"more than \d+ bytes of memory, the budget of a model file of \d+")
    assert tracemalloc.get_traced_memory()[1] < 2**28
    tracemalloc.stop()


def test_one_array_read_many_times_counts_each_time(tmp_path):
    """A scikit-learn part may refer to one member of its archive a thousand times."""
    fitted = LogisticRegression().fit(X, Y)
    old, new = io.BytesIO(skops.io.dumps(fitted)), io.BytesIO()
    with zipfile.ZipFile(old) as source, zipfile.ZipFile(new, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "schema.json":
                description = json.loads(data)
                coef = description["content"]["content"]["coef_"]
                big = io.BytesIO()
                np.save(big, np.zeros(40_000))
                target.writestr("big.npy", big.getvalue())
                one = {k: v for k, v in coef.items() if k != "__id__"} | {"file": "big.npy"}
                description["content"]["content"]["coef_"] = {
                    "__class__": "list", "__module__": "builtins", "__loader__": "ListNode",
                    "content": [one] * 1000,
                }  # fmt: skip
                data = json.dumps(description).encode()
            target.writestr(name, data)
    header, arrays = saved(
        TaskLossClassifier(model=Probabilities(LogisticRegression())), tmp_path / "model"
    )
    name = header["estimator"]["arguments"]["model"]["arguments"]["estimator"]["v"]["v"]
    arrays[name] = np.frombuffer(new.getvalue(), dtype=np.uint8)
    write(tmp_path / "model", header, arrays)
    tracemalloc.start()
    refused(tmp_path / "model", "bytes of memory, the budget of a model file")
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


# --- versions -----------------------------------------------------------------------------------


def test_files_of_the_last_version_are_refused_with_what_to_do(tmp_path):
    header, arrays = saved(TaskLossClassifier(), tmp_path / "model")
    write(tmp_path / "model", {**header, "format_version": 2}, arrays)
    refused(tmp_path / "model", r"format version 2 .* fit and save the model again")
