"""Models as files: safetensors with a typed header, a checksum, and nothing that runs.

The arrays of a model are stored as safetensors does; everything else (class, parameters, fitted
state) is a typed tree in JSON under the metadata key ``consistruct``. scikit-learn's own objects
are arrays of bytes that skops wrote, with types from a closed list and checked content. The first
entry of that JSON is the SHA-256 of the whole file with the digest's own place set to zeros, so
that any changed byte is found before anything else is looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy

from consistruct._atomic import atomic_write
from consistruct._budgets import irregular_file
from consistruct.exceptions import ModelFileError
from consistruct.learning.files.known_types import model_types
from consistruct.learning.files.model_tree import Decoder, Encoder

__all__ = ["FORMAT_VERSION", "ModelFile", "load", "read_model", "save"]

FORMAT_VERSION = 3  # 3: parameters are arguments only, one memory budget per file

# The file starts with the length of the header (8 bytes) and this text; the digest follows.
_MAGIC = b'{"__metadata__":{"consistruct":"{\\"sha256\\":\\"'
_DIGEST = slice(8 + len(_MAGIC), 8 + len(_MAGIC) + 64)
_NO_DIGEST = b"0" * 64
_HEADER_LIMIT = 100_000_000  # what safetensors itself allows


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a model file holds.

    Attributes
    ----------
    estimator : estimator
    notes : dict
        Plain values that were stored beside it, for example how the training file was laid out.
    package_version : str
        Version of consistruct that wrote the file.
    """

    estimator: Any
    notes: dict[str, Any] = field(default_factory=dict)
    package_version: str = ""


def save(estimator: Any, path: str | Path, *, notes: Mapping[str, Any] | None = None) -> None:
    """Write an estimator to a file, whole or not at all.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        Fitted or not, with any model of `consistruct.models`. scikit-learn's estimators inside
        them are written by skops, as far as they are on a closed list: linear models, trees,
        forests, boosting by histograms, networks, calibration, pipelines and the usual
        transformers. Other packages, nearest neighbors, support vectors and functions are refused
        with the reason; for them there is ``joblib.dump``, whose files run code when they are
        loaded. A loss or a model of your own needs `register_type`.
    path : path
        An existing file is replaced in one step.
    notes : dict, optional
        Plain values to keep beside the model.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from consistruct.learning import TaskLossClassifier, load, save
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
    >>> model = TaskLossClassifier("zero-one", "ridge").fit(X, y)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save(model, file)
    >>> load(file).predict([[0.5], [2.5]])
    array(['low', 'high'], dtype='<U4')
    """
    from consistruct import __version__

    known = model_types().of_class(type(estimator), "")
    if not hasattr(estimator, "get_params"):
        raise ModelFileError(f"only estimators can be saved, got a {known.name}")
    encoder = Encoder(model_types())
    header = {
        "sha256": _NO_DIGEST.decode(),
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "estimator": encoder.encode(estimator, ""),
        "notes": encoder.encode(dict(notes or {}), "notes"),
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":"))
    content = bytearray(safetensors.numpy.save(encoder.arrays, {"consistruct": text}))
    if int.from_bytes(content[:8], "little") > _HEADER_LIMIT:
        raise ModelFileError(
            "cannot save the model: its names and parameters take more than 100 MB of text; "
            "use integers as class names"
        )
    assert content[8 : _DIGEST.start] == _MAGIC
    content[_DIGEST] = hashlib.sha256(content).hexdigest().encode()
    try:
        with atomic_write(path) as stream:
            stream.write(content)
    except OSError as error:
        raise ModelFileError(f"cannot write {path}: {error.strerror or error}") from None


def load(path: str | Path) -> Any:
    """Read an estimator that `save` wrote; it predicts bit for bit what it did before.

    Nothing in the file is executed. A file that is damaged, cut off, of an unknown version or with
    an unknown type raises `ModelFileError`.
    """
    return read_model(path).estimator


def read_model(path: str | Path) -> ModelFile:
    """Like `load`, with what was stored beside the estimator."""
    irregular = irregular_file(path)
    if irregular is not None:
        raise ModelFileError(f"{path} is {irregular}, not a model file")
    try:
        with Path(path).open("rb") as stream:
            content = bytearray(stream.read(_DIGEST.stop))
            if content[8 : _DIGEST.start] == _MAGIC:  # nothing else is read to its end
                content += stream.read()
    except FileNotFoundError:
        raise ModelFileError(f"there is no model file {str(path)!r}") from None
    except OSError as error:
        raise ModelFileError(f"{path} could not be read: {error.strerror or error}") from None
    return parse_model(content, path)


def parse_model(content: bytearray, path: str | Path) -> ModelFile:
    """What the bytes of a model file hold; `path` is for messages only."""
    header = _checked_header(path, content)
    try:
        arrays = safetensors.numpy.load(bytes(content))
        decoder = Decoder(model_types(), arrays, len(content))
        estimator, notes = decoder.decode(header["estimator"]), decoder.decode(header["notes"])
        if not hasattr(estimator, "get_params") or not isinstance(notes, dict):
            raise ModelFileError("it does not hold an estimator")
        return ModelFile(estimator, notes, str(header["package_version"]))
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}{_hint(header)}") from None
    except Exception as error:
        # A constructor refused what the file gives it: the digest is right, so the file was made
        # by hand or by another version.
        detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ModelFileError(f"{path} cannot be loaded: {detail}{_hint(header)}") from None


def _checked_header(path: str | Path, content: bytearray) -> dict[str, Any]:
    """The header of an intact file of a known version."""
    if len(content) < _DIGEST.stop or content[8 : _DIGEST.start] != _MAGIC:
        start = bytes(content[8 : _DIGEST.start])
        cut_off = len(start) < len(_MAGIC) and _MAGIC.startswith(start) and len(content) >= 8
        reason = "it is cut off" if cut_off and start else "it is not a consistruct model file"
        raise ModelFileError(f"{path} cannot be loaded: {reason}")
    digest = bytes(content[_DIGEST])
    content[_DIGEST] = _NO_DIGEST
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise ModelFileError(
            f"{path} cannot be loaded: its checksum does not match, so it was cut off or damaged; "
            "copy it again, or save the model again"
        )
    try:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["consistruct"])
        version, written_by = header["format_version"], header["package_version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(f"{path} cannot be loaded: its header is not understood") from None
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} cannot be loaded: it has format version {version!r} and this version of "
            f"consistruct reads {FORMAT_VERSION}; fit and save the model again with this version, "
            f"or load it with consistruct {written_by}, which wrote it"
        )
    return header


def _hint(header: Mapping[str, Any]) -> str:
    from consistruct import __version__

    written = header.get("package_version")
    if written == __version__:
        return ""
    return f" (the file was written by consistruct {written}, this is {__version__})"
