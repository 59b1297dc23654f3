"""The peers of the sequence benchmarks, behind two functions: python-crfsuite and torch-struct."""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Outcome:
    """One trained and tested model."""

    name: str
    predictions: list[Any]
    fit_seconds: float  # from feature strings or arrays to a model
    fit_cpu: float  # the same in processor time, which other load on the machine disturbs less
    predict_cpu: float


class Stopwatch:
    """Wall and processor seconds since the last look."""

    def __init__(self) -> None:
        self.look()

    def look(self) -> tuple[float, float]:
        now = time.perf_counter(), time.process_time()
        before = getattr(self, "now", now)
        self.now = now
        return now[0] - before[0], now[1] - before[1]


def run_crfsuite(
    name: str,
    algorithm: str,
    parameters: dict[str, Any],
    X: list[Any],
    y: list[list[str]],
    X_test: list[Any],
) -> Outcome:
    """Train and tag with python-crfsuite; X are sequences of lists of feature strings."""
    import pycrfsuite

    watch = Stopwatch()
    trainer = pycrfsuite.Trainer(verbose=False)
    for features, tags in zip(X, y, strict=True):
        trainer.append(features, tags)
    trainer.select(algorithm)
    trainer.set_params(parameters)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.crfsuite")
        trainer.train(path)
        fit = watch.look()
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predictions = [tagger.tag(features) for features in X_test]
        _, predict_cpu = watch.look()
        tagger.close()
    return Outcome(name, predictions, *fit, predict_cpu)


def torch_struct_posterior(
    unary: np.ndarray,  # (B, T, s)
    edges: np.ndarray,  # (s, s)
    dtype: str,
) -> tuple[np.ndarray, np.ndarray, float]:
    """log Z (B,), unary marginals (B, T, s) and the seconds that torch-struct took."""
    import torch
    import torch_struct

    torch.set_num_threads(1)
    # log-potentials [b, t, next, previous]; the first edge carries both of its unary scores
    potentials = edges.T[None, None] + unary[:, 1:, :, None]
    potentials[:, 0] += unary[:, 0, None, :]
    tensor = torch.tensor(potentials, dtype=getattr(torch, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.perf_counter()
        distribution = torch_struct.LinearChainCRF(tensor)
        log_partition = distribution.partition.detach().numpy()
        pairs = distribution.marginals.detach().numpy()
        seconds = time.perf_counter() - begin
    first = pairs[:, 0].sum(axis=1)[:, None]
    return log_partition, np.concatenate([first, pairs.sum(axis=3)], axis=1), seconds
