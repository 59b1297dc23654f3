"""Marginals of structures against torch-struct: one processor thread, both in one run.

python -m benchmarks.structures            # print the table
python -m benchmarks.structures --write    # and write benchmarks/results/structures.md

Needs ``pip install torch==2.13.0 torch-struct==0.5``. Each problem is torch-struct's own, with its
parts, written as a recursion where it differs from ours; all marginals of both are compared before the
clock starts.
"""

from __future__ import annotations

import argparse
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch_struct

from benchmarks.measure import RESULTS, machine, table, taking_turns
from consistruct.structures import Alignments, Chain, DependencyTrees, Derivations, Segments, Spans

ROUNDS = 3
BATCH = 16  # examples of one call
CALLS = 5  # of each in a round
REQUIRED = {"chain": 40, "segments": 40, "trees": 10, "spans": 3}


class Edges(Derivations):
    """A chain of n states with a score for each pair of neighbors and nothing else."""

    columns = ("position", "next", "state")
    n_states = 26

    def nodes(self, end):
        states = range(self.n_states)
        if end == 0:
            return
        for s in states:
            before = [(((end - 1, r),), (end - 2, s, r)) for r in states]
            yield (end, s), before if end > 1 else self.AXIOM
        if end > 1:  # a single place has no pair: its states cannot be told apart
            yield ("all", end), [(((end, s),), None) for s in states]


class PairedSegments(Derivations):
    """Segments scored with the type before: one part for each start, length, type and type before."""

    columns = ("start", "length", "type", "before")
    n_types, max_length = 12, 8

    def nodes(self, end):
        types = range(self.n_types)
        starts = range(max(0, end - self.max_length), end)
        for s in types:
            edges = [(((i, r),), (i, end - i, s, r)) for i in starts for r in types]
            yield (end, s), edges if end else self.AXIOM
        if end:
            yield ("all", end), [(((end, s),), None) for s in types]


@dataclass(frozen=True)
class Problem:
    """A problem of both: sizes in words, our structure, torch-struct's distribution."""

    name: str
    sizes: str
    structure: Derivations
    shape: tuple[int, ...]  # of torch-struct's scores of one example
    places: tuple[Any, ...]  # of our parts in them
    distribution: Callable[[torch.Tensor], Any]
    batch: int = BATCH


def problems() -> list[Problem]:
    """Chains, segments, parses and labeled spans, in torch-struct's own parts."""
    chain, segments = Edges(50), PairedSegments(60)
    trees, spans = DependencyTrees(30), Spans(30, 20)
    head, modifier = trees.parts.T
    start, end, kind = spans.parts.T
    return [
        Problem(
            "chain",
            "50 × 26 states",
            chain,
            (49, 26, 26),
            tuple(chain.parts.T),
            torch_struct.LinearChainCRF,
        ),
        Problem(
            "segments",
            "60 tokens, 12 types, length ≤ 8",
            segments,
            (60, 9, 12, 12),
            tuple(segments.parts.T),
            torch_struct.SemiMarkovCRF,
            1,  # its scan holds a gigabyte for each example and takes seconds
        ),
        Problem(
            "trees",
            "30 words",
            trees,
            (30, 30),
            # torch-struct keeps the root's arcs on the diagonal
            (np.where(head == 0, modifier - 1, head - 1), modifier - 1),
            lambda scores: torch_struct.DependencyCRF(scores, multiroot=False),
        ),
        Problem(
            "spans",
            "30 words, 20 types",
            spans,
            (30, 30, 20),
            (start, end - 1, kind),
            torch_struct.TreeCRF,
        ),
    ]


def compare(problem: Problem, batch: int) -> dict[str, float]:
    """Return milliseconds per example of both, and how far their marginals are apart."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((batch, *problem.shape))
    theta = scores[(slice(None), *problem.places)]
    peer_scores = torch.tensor(scores, dtype=torch.float32)

    def peer() -> Any:
        # scores with a gradient, as those of a network: parses do not run without
        return problem.distribution(peer_scores.clone().requires_grad_()).marginals

    marginals = problem.structure.marginals(theta)
    theirs = peer().detach().numpy()[(slice(None), *problem.places)]
    apart = float(np.abs(theirs - marginals).max())
    assert apart < 1e-3, f"{problem.name}: marginals differ by {apart}"
    # several calls in a turn, so that neither finds the caches full of the other's numbers
    calls = 1 if problem.batch == 1 else CALLS

    def repeated(call: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: [call() for _ in range(calls)]

    jobs = [repeated(lambda: problem.structure.marginals(theta)), repeated(peer)]
    times = taking_turns(jobs, ROUNDS) / calls
    ours, other = 1000 * times[:, 1] / batch  # processor time
    return {"ours": ours, "peer": other, "ratio": other / ours, "apart": apart}


def own_chain() -> float:
    """Return milliseconds per example of the chain kernels on unary scores and each edge."""
    theta = np.random.default_rng(0).standard_normal((BATCH, Chain(50, 26).width))
    return float(
        1000 * taking_turns([lambda: Chain(50, 26).marginals(theta)], ROUNDS)[0, 1] / BATCH
    )


def own_structure(structure: Derivations) -> float:
    """Return milliseconds per example of a structure that torch-struct does not have."""
    theta = np.random.default_rng(0).standard_normal((BATCH, structure.width))
    structure.marginals(theta)
    return float(1000 * taking_turns([lambda: structure.marginals(theta)], ROUNDS)[0, 1] / BATCH)


def page() -> str:
    """Measure everything and return the page."""
    torch.set_num_threads(1)
    rows = []
    for problem in problems():
        for batch in sorted({1, problem.batch}):
            found = compare(problem, batch)
            rows.append(
                (
                    problem.name,
                    problem.sizes,
                    batch,
                    f"{found['ours']:.3f}",
                    f"{found['peer']:.2f}",
                    f"{found['ratio']:.1f}",
                    REQUIRED[problem.name],
                    f"{found['apart']:.0e}",
                )
            )
    header = (
        "",
        "size",
        "batch",
        "consistruct, ms",
        "torch-struct, ms",
        "ratio",
        "required",
        "apart",
    )
    alone = [
        ("`Chain(50, 26)` kernels, unary and edge scores", f"{own_chain():.3f}"),
        *(
            (f"`{structure!r}`", f"{own_structure(structure):.3f}")
            for structure in (
                Segments(60, 12, 8, transitions=True),
                DependencyTrees(30, 40),
                Alignments(60, 60),
            )
        ),
    ]
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("torch", "numba")
    )
    return f"""# Structures: marginals against torch-struct

`python -m benchmarks.structures --write`; processor time per example on one thread, least of {ROUNDS}
alternating rounds of {CALLS} calls, examples one by one and in batches of {BATCH} (segments one by one: torch-struct's
scan takes a second for each). Scores are those of torch-struct's own problems (a score for
each pair of neighbors in chains; for each start, length, type and type before in segments), double
precision here, single there. `apart` is the largest difference of two marginals.

{table(header, rows)}

torch-struct 0.5 does not run its alignments without the extension `genbmm`, which it does not
install, so they are not compared. What its problems do not have, alone:

{table(("", "ms"), alone)}

Lists of hyperedges are made once for each family (tens of milliseconds at these sizes) and are not
in the figures. {machine()}, {versions}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    text = page()
    print(text)
    if parser.parse_args().write:
        (RESULTS / "structures.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
