"""Criteria, chains and the closed form on a GPU, against what people use there now.

    python -m benchmarks.gpu --write                 # all but "quality": one NVIDIA H200, minutes
    python -m benchmarks.gpu --only quality --write  # networks on three data sets, any machine
    python -m benchmarks.gpu --quick                 # small sizes on the host, to see that it runs

Parts: criteria, chains, nystroem, billion, quality. Each part that ran replaces its section of
benchmarks/results/gpu.md and leaves the others.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import consistruct as cs
from benchmarks.gpu_quality import SETS, TITLE, quality
from benchmarks.measure import machine, table
from consistruct.decisions.statistics import ClassProbabilities
from consistruct.learning.models.features.approximations import KernelCenters, RandomFeatures
from consistruct.learning.models.features.feature_maps import Kernel, ScoreMap
from consistruct.learning.models.ridge.device import DeviceClosedForm, predict_on
from consistruct.learning.models.ridge.device_sums import DeviceFeatures, single_products
from consistruct.structures.chains import ChainScores
from consistruct.structures.chains import chain_marginals as host_marginals
from consistruct.torch import TaskLoss
from consistruct.torch.chain import chain_log_partition, chain_marginals

RESULT = Path(__file__).parent / "results" / "gpu.md"
PARTS = ("criteria", "chains", "nystroem", "billion")
GPU = torch.cuda.is_available()
CURVED = 1.5  # radians over a standard deviation
TOGETHER = 20  # steps between synchronizations
DEVICE = torch.device("cuda" if GPU else "cpu")


def wait() -> None:
    if GPU:
        torch.cuda.synchronize()


def median_ms(work: Callable[[], Any], rounds: int) -> float:
    """Median milliseconds of a call, between synchronizations, after three to warm up."""
    for _ in range(3):
        work()
    times = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        work()
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    wait()
    start = time.perf_counter()
    found = work()
    wait()
    return time.perf_counter() - start, found


def verdict(value: float, bound: float, *, least: bool = False) -> str:
    met = value >= bound if least else value <= bound
    requested = f"{'at least' if least else 'at most'} {bound:g}"
    return f"{value:.2f} ({requested}: {'met' if met else 'not met'})"


# --- criteria -----------------------------------------------------------------------------------


def criteria(quick: bool) -> str:
    """Forward and backward passes beside the criteria of PyTorch."""
    n, k = (256, 50) if quick else (4096, 1000)
    rng = np.random.default_rng(0)
    costs = rng.random((k, k))
    np.fill_diagonal(costs, 0.0)
    scores = torch.randn(n, k, device=DEVICE, requires_grad=True)
    classes = torch.randint(k, (n,), device=DEVICE)
    sets = (torch.rand(n, k, device=DEVICE) < 0.1).float()
    rows = []
    for name, ours, peer, true, bound in (
        (
            "dense cost matrix / CrossEntropyLoss",
            TaskLoss(cs.losses.CostMatrix(costs, rows="pred")),
            nn.CrossEntropyLoss(),
            classes,
            1.5,
        ),
        (
            "label sets / BCEWithLogitsLoss",
            TaskLoss(cs.losses.Hamming(k), scores="logits"),
            nn.BCEWithLogitsLoss(),
            sets,
            1.2,
        ),
    ):
        both = (ours.to(DEVICE), peer)
        spent: tuple[list[float], list[float]] = ([], [])
        for _ in range(6 if quick else 60):  # in turns: the clock of the host drifts
            for criterion, each in zip(both, spent, strict=True):
                wait()
                start = time.perf_counter()
                for _ in range(TOGETHER):  # training does not wait for each step
                    torch.autograd.grad(criterion(scores, true), scores)
                wait()
                each.append(1e3 * (time.perf_counter() - start) / TOGETHER)
        times = [float(np.median(each[len(each) // 6 :])) for each in spent]
        rows.append([name, *(f"{ms:.3f}" for ms in times), verdict(times[0] / times[1], bound)])
    header = ["criterion / peer", "ours, ms", "peer, ms", "ratio"]
    return (
        f"{n} x {k} scores in float32, forward and backward; medians of runs of {TOGETHER} steps "
        f"in turns. At these sizes most of the time is the host's, which calls the kernels."
        f"\n\n{table(header, rows)}"
    )


# --- chains -------------------------------------------------------------------------------------


def loop_over_time(unary: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """The usual forward recursion, one log-sum-exp per step, as autograd likes it."""
    alpha = unary[:, 0]
    for t in range(1, unary.shape[1]):
        alpha = torch.logsumexp(alpha[:, :, None] + edges, 1) + unary[:, t]
    return torch.logsumexp(alpha, 1)


def chains(quick: bool) -> str:
    """log Z with gradients, marginals, and the kernels of the host."""
    n, T, s = (8, 32, 5) if quick else (256, 512, 26)
    unary = torch.randn(n, T, s, device=DEVICE, requires_grad=True)
    edges = torch.randn(s, s, device=DEVICE, requires_grad=True)

    def gradient(value: Callable[..., torch.Tensor]) -> Any:
        return torch.autograd.grad(value(unary, edges).sum(), (unary, edges))

    rounds = 5 if quick else 20
    ours = median_ms(lambda: gradient(chain_log_partition), rounds)
    loop = median_ms(lambda: gradient(loop_over_time), 3)
    rows = [
        ["consistruct", f"{ours:.3f}", ""],
        ["loop over time", f"{loop:.1f}", verdict(loop / ours, 30, least=True)],
    ]
    try:
        from torchcrf import CRF
    except ImportError:
        rows.append(["pytorch-crf", "not installed here", "its algorithm is the loop over time"])
    else:
        crf = CRF(s, batch_first=True).to(DEVICE)
        tags = torch.randint(s, (n, T), device=DEVICE)
        peer = median_ms(
            lambda: torch.autograd.grad(-crf(unary, tags), (unary, crf.transitions)), 3
        )
        rows.append(["pytorch-crf", f"{peer:.1f}", verdict(peer / ours, 30, least=True)])
    packed = ChainScores(
        unary.detach().double().cpu().numpy().reshape(n * T, s),
        edges.detach().double().cpu().numpy(),
        np.arange(n + 1) * T,
    )
    host_marginals(packed)  # compiled before the clock starts
    numba_seconds, distribution = seconds(lambda: host_marginals(packed))
    states = chain_marginals(unary, edges)[0].detach().double().cpu().numpy().reshape(n * T, s)
    apart = float(np.abs(states - distribution.unary).max())
    single = torch.get_num_threads()
    torch.set_num_threads(1)
    here, there = (t.detach().cpu().requires_grad_() for t in (unary, edges))
    steps = median_ms(
        lambda: torch.autograd.grad(chain_log_partition(here, there).sum(), (here, there)), 3
    )
    torch.set_num_threads(single)
    return (
        f"Batch {n}, length {T}, {s} tags, log-partition with gradients in float32.\n\n"
        + table(["method", "ms", "times slower than ours"], rows)
        + f"\n\nMarginals differ from those of the Numba kernels by at most {apart:.1e} (1e-5 "
        f"requested). On one core of the host: {steps:.0f} ms, Numba {1e3 * numba_seconds:.0f} ms, "
        f"ratio {verdict(steps / (1e3 * numba_seconds), 2.0)}."
    )


# --- the closed form ----------------------------------------------------------------------------


def classification(n: int, d: int, n_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and classes on the device: the largest of some curved functions and noise."""
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    X = torch.randn(n, d, device=DEVICE, generator=generator)
    weights = torch.randn(d, n_classes, device=DEVICE, generator=generator)
    y = torch.empty(n, dtype=torch.int64, device=DEVICE)
    for start in range(0, n, 2**22):
        part = X[start : start + 2**22]
        noise = torch.randn(len(part), n_classes, device=DEVICE, generator=generator)
        y[start : start + 2**22] = (
            torch.sin(part @ weights / d**0.5 * CURVED) + 0.5 * noise
        ).argmax(1)
    return X, y


def bare_products(features: DeviceFeatures, X: torch.Tensor, rows: int) -> float:
    """Seconds of the products ΦᵀΦ over all rows, without symmetry, from some chunks."""
    with single_products(False):
        phi = features(X[:rows])
    with single_products(True):
        phi.T @ phi
        found, _ = seconds(lambda: [phi.T @ phi for _ in range(3)])
    return found / 3 * len(X) / len(phi)


def closed_form(
    features: Any, X: torch.Tensor, y: torch.Tensor, n_classes: int, requested: str
) -> Any:
    statistic = ClassProbabilities(cs.losses.ZeroOne(n_classes))
    score_map = ScoreMap(features)
    solver = DeviceClosedForm(str(DEVICE), requested)  # type: ignore[arg-type]
    spent, (fit, used) = seconds(
        lambda: solver.solve(statistic, score_map, X, y, rng=np.random.default_rng(0))
    )
    return spent, fit, used, score_map


def nystroem(quick: bool) -> str:
    """Kernel ridge on many rows, the penalty chosen, in both precisions."""
    n, d, m, k = (4000, 5, 60, 3) if quick else (10_000_000, 28, 20_000, 10)
    fresh = 1000 if quick else 100_000
    X, y = classification(n + fresh, d, k)
    X, y, X_test, y_test = X[:n], y[:n], X[n:], y[n:]
    landmarks = X[torch.randperm(n, device=DEVICE)[:m]].double().cpu().numpy()
    centers = KernelCenters(Kernel("rbf", float(d) ** 0.5), landmarks)
    rows, losses = [], {}
    for requested, dtype in (("single", torch.float32), ("double", torch.float64)):
        chunk = max(1, 2**28 // m)
        bare = bare_products(DeviceFeatures(centers, DEVICE, dtype), X, min(n, chunk, 2**16))
        spent, fit, _, score_map = closed_form(centers, X, y, k, requested)
        scores = predict_on(str(DEVICE), requested, score_map, fit.weights, X_test)
        losses[requested] = scores.argmax(1) != y_test.cpu().numpy()
        rows.append(
            [
                "TF32" if requested == "single" and GPU else dtype,
                f"{spent:.1f}",
                f"{bare:.1f}",
                verdict(spent / bare, 1.4),
                f"{fit.alpha:.1e} of {len(fit.path['alphas'])}",
                f"{losses[requested].mean():.4f} ± {losses[requested].std() / fresh**0.5:.4f}",
            ]
        )
    pilot = closed_form(centers, X[: 2**17], y[: 2**17], k, "auto")
    header = ["products", "s", "bare products, s", "ratio", "penalty", "0-1 loss, fresh rows"]
    return (
        f"{n:,} x {d} rows made on the device, {m:,} centers, {k} outputs; features, sums, penalty "
        f"by generalized cross-validation, 2,048 exact out-of-fold estimates. Bare products do not "
        f"use symmetry.\n\n{table(header, rows)}\n\nTF32: at most 60 s requested. "
        f'`precision="auto"` takes "{pilot[2]}" here, by its trial on {2**15:,} rows.'
    )


def billion(quick: bool) -> str:
    """A billion rows, made on the device, with random features."""
    n, d, m, k = (20_000, 4, 50, 2) if quick else (1_000_000_000, 9, 4_000, 2)
    X, y = classification(n, d, k)
    kernel = Kernel("rbf", float(d) ** 0.5)
    features = RandomFeatures(kernel, d, m, np.random.default_rng(0))
    spent, fit, used, _ = closed_form(features, X, y, k, "single")
    left = fit.out_of_fold
    true = y[torch.as_tensor(left.rows).to(DEVICE)].cpu().numpy()
    wrong = float((left.expected.argmax(1) != true).mean())
    return (
        f"{n:,} x {d} rows made on the device, {m:,} random features, {used} precision, penalty "
        f"{fit.alpha:.1e}: {spent / 60:.2f} minutes ({verdict(spent / 60, 8)}); out-of-fold 0-1 loss "
        f"{wrong:.3f} on {len(left.rows):,} rows."
    )


SECTIONS = {
    "criteria": ("Criteria", criteria),
    "chains": ("Chains", chains),
    "nystroem": ("Nyström ridge", nystroem),
    "billion": ("A billion rows", billion),
}


def heading(name: str) -> str:
    return TITLE if name == "quality" else SECTIONS[name][0]


def write(sections: dict[str, str]) -> None:
    """Replace the sections that ran."""
    text = RESULT.read_text(encoding="utf-8") if RESULT.exists() else "# Networks and GPUs\n"
    for name, body in sections.items():
        block = f"## {heading(name)}\n\n{body}\n"
        pattern = re.compile(rf"## {re.escape(heading(name))}\n.*?(?=\n## |\Z)", re.S)
        found = pattern.search(text)
        if found is None:
            text = f"{text.rstrip()}\n\n{block}"
        else:
            text = text[: found.start()] + block + text[found.end() :]
    RESULT.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="*", choices=(*PARTS, "quality"), default=PARTS)
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing is written")
    parser.add_argument("--held-out", action="store_true", help="quality: no test part is read")
    parser.add_argument("--data", nargs="*", choices=SETS, default=SETS, help="quality: which")
    parser.add_argument("--write", action="store_true", help=f"write results/{RESULT.name}")
    options = parser.parse_args()
    where = torch.cuda.get_device_name() if GPU else f"no GPU, {machine()}"
    done = {}
    for name in options.only:
        if name == "quality":
            body = quality(options.quick, options.held_out, options.data)
        else:
            body = SECTIONS[name][1](options.quick)
        chosen = (
            "" if name != "quality" or options.data == SETS else f" --data {' '.join(options.data)}"
        )
        command = f"python -m benchmarks.gpu --only {name}{chosen} --write"
        done[name] = f"{body}\n\n`{command}`; {where}, PyTorch {torch.__version__}."
        print(f"## {heading(name)}\n\n{done[name]}\n", flush=True)
        if options.write and not options.quick:
            write({name: done[name]})
        if GPU:
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
