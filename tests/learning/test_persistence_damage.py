"""Model files that are damaged, forged or half written: one clear error, and nothing runs."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from consistruct import losses
from consistruct._atomic import atomic_write
from consistruct.exceptions import ConsistructError, ModelFileError
from consistruct.learning import TaskLossClassifier, load, save
from consistruct.learning.files.persistence import parse_model
from consistruct.learning.models import Ridge

X = np.random.default_rng(0).normal(size=(12, 2))


@pytest.fixture(scope="module")
def intact(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model"
    model = TaskLossClassifier(losses.Ordinal(3), Ridge("linear", alpha=0.1))
    save(model.fit(X, np.arange(12) % 3), path)
    load(path)
    return path.read_bytes()


def refused(path: Path, content: bytes | bytearray, match: str = "cannot be loaded") -> str:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match) as caught:
        load(path)
    assert isinstance(caught.value, ConsistructError)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


def is_refused(content: bytearray) -> bool:
    """Without a file, for thousands of variants."""
    try:
        parse_model(content, "model")
    except ModelFileError as error:
        return str(error).startswith("model cannot be loaded: ")
    return False


# --- what is not even looked at -----------------------------------------------------------------


def test_devices_and_folders_are_no_models(tmp_path):
    with pytest.raises(ModelFileError, match="/dev/zero is a device, not a model file"):
        load("/dev/zero")
    with pytest.raises(ModelFileError, match="is a folder, not a model file"):
        load(tmp_path)


def test_wide_strings_take_no_memory(intact):
    node = {"t": "strings", "width": 5 * 10**8, "shape": [1], "v": ["a"]}
    content = bytearray(forge(intact, lambda header: header.update(notes=node)))
    tracemalloc.start()
    assert is_refused(content)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


# --- damage --------------------------------------------------------------------------------------


def test_any_flipped_byte_is_found(intact):
    assert not is_refused(bytearray(intact))
    rng = np.random.default_rng(0)
    for position in range(len(intact)):
        damaged = bytearray(intact)
        damaged[position] ^= 1 << int(rng.integers(8))
        assert is_refused(damaged), position


@given(data=st.data())
def test_any_replaced_region_is_found(intact, data):
    start = data.draw(st.integers(0, len(intact) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=64))
    damaged = bytearray(intact)
    damaged[start : start + len(noise)] = noise
    if bytes(damaged) != intact:
        assert is_refused(damaged)


def test_any_truncation_is_found(intact, tmp_path):
    for length in range(len(intact)):
        assert is_refused(bytearray(intact[:length])), length
    assert "checksum" in refused(tmp_path / "model", intact[:-1])
    assert "cut off" in refused(tmp_path / "model", intact[:20])


def test_appended_bytes_are_found(intact, tmp_path):
    refused(tmp_path / "model", intact + b"\0", "checksum does not match")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        pickle.dumps({"sha256": 1}),
        safetensors.numpy.save({"a": np.ones(2)}),
        safetensors.numpy.save({"a": np.ones(2)}, {"format": "other"}),
        b"PK\x03\x04" + bytes(200),
    ],
    ids=["empty", "text", "pickle", "safetensors", "other metadata", "zip"],
)
def test_other_files_are_refused(content, tmp_path):
    refused(tmp_path / "model", content, "is not a consistruct model file")


def test_absent_file_and_folder(tmp_path):
    with pytest.raises(ModelFileError, match="there is no model file"):
        load(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="is a folder, not a model file"):
        load(tmp_path)


# --- forgery: the checksum is right, the content is not ------------------------------------------


def forge(
    content: bytes, change: Callable[[dict[str, Any]], object], swap: tuple[str, str] = ("", "")
) -> bytes:
    """The same file with a changed header and a fitting checksum."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["consistruct"])
    arrays = safetensors.numpy.load(content)
    change(header)
    header["sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).replace(*swap, 1)
    forged = safetensors.numpy.save(arrays, {"consistruct": text})
    digest = hashlib.sha256(forged).hexdigest().encode()
    return forged.replace(b"0" * 64, digest, 1)


def test_forge_itself_makes_loadable_files(intact, tmp_path):
    (tmp_path / "model").write_bytes(forge(intact, lambda header: None))
    assert load(tmp_path / "model").model.alpha == 0.1


def test_unknown_version(intact, tmp_path):
    for version in (0, 1, 2, 4, "1", None, True):
        forged = forge(intact, partial(_later_format, version))
        message = refused(tmp_path / "model", forged, "format version")
        assert repr(version) in message


def _later_format(version: object, header: dict[str, Any]) -> None:
    """Another version may lay everything else out differently."""
    header.pop("estimator")
    header.pop("notes")
    header["format_version"] = version


def test_writer_version_is_named(intact, tmp_path):
    def change(header: dict[str, Any]) -> None:
        header["package_version"] = "99.0"
        header["estimator"]["class"] = "learning.FutureModel"

    message = refused(tmp_path / "model", forge(intact, change), "learning.FutureModel")
    assert "99.0" in message


def set_estimator(node: Any) -> Callable[[dict[str, Any]], object]:
    return lambda header: header.update(estimator=node)


@pytest.mark.parametrize(
    "change",
    [
        set_estimator({"t": "object", "class": "os.system", "arguments": {"command": "false"}}),
        set_estimator({"t": "object", "class": "builtins.eval", "arguments": {}}),
        set_estimator({"t": "class", "name": "subprocess.Popen"}),
        set_estimator({"t": "reduce", "v": []}),
        set_estimator({"v": 1}),
        set_estimator({"t": ["list"], "v": 1}),
        set_estimator([1]),
        set_estimator("text"),
        set_estimator({"t": "object", "class": "losses.ZeroOne", "arguments": {"k": 3}}),
        set_estimator({"t": "array", "v": "absent", "order": "C"}),
        set_estimator({"t": "scalar", "v": {"t": "array", "v": "coef_", "order": "C"}}),
        set_estimator({"t": "sparse", "kind": "lil_array", "shape": [1, 1]}),
        set_estimator({"t": "generator", "v": {"t": "dict", "v": [["bit_generator", "Evil"]]}}),
        set_estimator({"t": "strings", "width": 1, "shape": [5], "v": ["a"]}),
        set_estimator({"t": "strings", "width": 5 * 10**8, "shape": [1], "v": ["a"]}),
        set_estimator({"t": "strings", "width": -1, "shape": [1], "v": ["a"]}),
        lambda header: header.pop("estimator"),
        lambda header: header.update(notes=1),
        lambda header: header["estimator"]["arguments"].update(unknown_parameter=1),
        lambda header: header["estimator"].update(arguments=[1]),
        lambda header: header["estimator"]["state"].update(predict=1),
        lambda header: header["estimator"]["state"]["loss_"]["arguments"].update(k=-1),
        lambda header: header["estimator"]["state"]["loss_"]["arguments"].update(k="three"),
        lambda header: header["estimator"]["state"]["loss_"].update(state={"_value": 1}),
    ],
)
def test_forged_content_is_refused(change, intact, tmp_path):
    refused(tmp_path / "model", forge(intact, change))


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_deep_nesting_is_refused(depth, intact, tmp_path):
    deep = '{"t":"list","v":[' * depth + "]}" * depth
    forged = forge(intact, set_estimator("DEEP"), ('"DEEP"', deep))
    refused(tmp_path / "model", forged)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["t", "v", "class", "arguments", "state", "name"]), inner)
    | st.fixed_dictionaries({
        "t": st.sampled_from(["object", "array", "list", "dict", "scalar", "strings", "sparse",
                              "generator", "random_state", "int", "float", "objects", "class"]),
        "v": inner,
    }),
    max_leaves=10,
))  # fmt: skip
def test_random_trees_give_the_one_error(intact, tmp_path_factory, node):
    path = tmp_path_factory.getbasetemp() / "forged"
    refused(path, forge(intact, set_estimator(node)))


def test_loading_executes_nothing(intact, tmp_path):
    """No code is compiled, executed or imported while a model is loaded."""
    (tmp_path / "model").write_bytes(intact)
    script = textwrap.dedent(
        """
        import sys
        from consistruct.learning import load
        load(sys.argv[1])  # imports what it needs
        events = []
        watched = ("exec", "compile", "import", "os.system", "os.exec", "subprocess.Popen",
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


# --- what cannot be saved ------------------------------------------------------------------------


class OwnLoss(losses.ZeroOne):
    pass


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (TaskLossClassifier(OwnLoss(3)), "'loss' of type .*OwnLoss.*register_type"),
        (TaskLossClassifier(model=Ridge(alpha=len)), "'model.alpha' of type builtins"),
        (TaskLossClassifier(cv=np.array(["2020-01-01"], dtype="M8[D]")), "no arrays of dtype"),
        (TaskLossClassifier(cv=np.array([{}], dtype=object)), "other than strings and numbers"),
        (StandardScaler(), "of type sklearn"),
        (losses.ZeroOne(3), "only estimators can be saved"),
        (None, "of type builtins.NoneType"),
    ],
)
def test_what_cannot_be_saved(model, fault, tmp_path):
    with pytest.raises(ModelFileError, match=fault):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# --- atomic writing ------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(failing, intact, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(intact)

    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", no_space)
    else:
        monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(ModelFileError, match="No space left on device"):
        save(TaskLossClassifier(), path)
    monkeypatch.undo()
    assert path.read_bytes() == intact
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folder(tmp_path):
    with pytest.raises(ModelFileError, match=r"cannot write .*No such file or directory"):
        save(TaskLossClassifier(), tmp_path / "absent" / "model")


@pytest.mark.skipif(os.name != "posix", reason="file modes and links are those of POSIX")
def test_mode_and_links_are_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640
    mask = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "fresh") as stream:
            stream.write(b"x")
    finally:
        os.umask(mask)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a POSIX signal")
def test_kill_while_saving_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model"
    script = textwrap.dedent(
        """
        import sys
        import numpy as np
        from consistruct.learning import TaskLossClassifier, save
        model = TaskLossClassifier(cv=np.zeros(500_000))
        while True:
            save(model, sys.argv[1])
        """
    )
    rng = np.random.default_rng(0)
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", script, str(path)])
        try:
            deadline = time.monotonic() + 300
            before = path.stat().st_mtime_ns if path.exists() else 0
            while not path.exists() or path.stat().st_mtime_ns == before:
                assert time.monotonic() < deadline, "the process never saved"
                time.sleep(0.01)
            time.sleep(float(rng.uniform(0, 0.1)))
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert load(path).cv.shape == (500_000,)
