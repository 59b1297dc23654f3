"""Minimum Bayes risk by the package mbrs, for benchmarks.generated.

    PYTHON benchmarks/generated_peer.py lists.json choices.json

It needs NumPy 1.26, hence an environment of its own, and imports nothing of ours: ``pip install
mbrs "numpy<2" "setuptools<80"``.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from mbrs.decoders import DecoderProbabilisticMBR, DecoderPruningMBR
from mbrs.metrics import Metric

# references that pruning has seen after each of its steps: up to all draws
SCHEDULE = [8, 16, 32, 64, 128, 256]


class EditDistance(Metric):
    """Edits over the length of the longer list of phones; counts the pairs that it was called on."""

    HIGHER_IS_BETTER = False

    def __init__(self) -> None:
        super().__init__(Metric.Config())
        self.known: set[tuple[str, str]] = set()

    def score(self, hypothesis: str, reference: str, source: str | None = None) -> float:
        self.known.add((hypothesis, reference))
        return distance(hypothesis, reference)


@cache  # for all decoders; each counts the pairs that it calls
def distance(hypothesis: str, reference: str) -> float:
    a, b = hypothesis.split(), reference.split()
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, z in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != z))
    return row[-1] / max(len(a), len(b), 1)


def decoders(metric: EditDistance) -> dict[str, Any]:
    pruning = DecoderPruningMBR.Config(sampling_scheduler=SCHEDULE)
    strict = DecoderPruningMBR.Config(sampling_scheduler=SCHEDULE, alpha=0.9)
    return {
        "pruning, alpha 0.99": DecoderPruningMBR(pruning, metric),
        "pruning, alpha 0.9": DecoderPruningMBR(strict, metric),
        "matrix completion, rank 8": DecoderProbabilisticMBR(
            DecoderProbabilisticMBR.Config(reduction_factor=4.0), metric
        ),
        "matrix completion, rank 1": DecoderProbabilisticMBR(
            DecoderProbabilisticMBR.Config(reduction_factor=4.0, rank=1), metric
        ),
    }


def main(given: str, result: str) -> None:
    lists = json.loads(Path(given).read_text(encoding="utf-8"))
    found: dict[str, Any] = {"version": version("mbrs")}
    for name in decoders(EditDistance()):
        chosen, calls = [], 0
        for draws in lists:
            counts = Counter(draws)
            distinct = list(counts)
            if len(distinct) == 1:  # nothing to choose
                chosen.append(distinct[0])
                calls += 1
                continue
            metric = EditDistance()
            decoder = decoders(metric)[name]
            if "pruning" in name:  # its bootstrap resamples the draws
                output = decoder.decode(distinct, draws)
            else:
                weights = [math.log(counts[c] / len(draws)) for c in distinct]
                output = decoder.decode(distinct, distinct, reference_lprobs=torch.tensor(weights))
            chosen.append(distinct[output.idx[0]])
            calls += len(metric.known)
        found[name] = {"chosen": chosen, "calls": calls}
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
