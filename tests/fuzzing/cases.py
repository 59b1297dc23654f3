"""One generator per kind of input: valid files, then damaged; and the commands that read them."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzzing import true_labels
from tests.fuzzing.mutations import mutate_bytes, mutate_json, mutate_text
from tests.seeds import generator

__all__ = ["KINDS", "Case", "make"]

RIDGE = ["--learner", "ridge", "--set", "features=linear", "--set", "alpha=0.1"]
Judge = Callable[[Path], str | None]  # the folder after the last command -> what is wrong
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """Files and the commands to run beside them; `judge` looks at what came of them."""

    kind: str
    files: dict[str, bytes]
    commands: list[list[str]]
    judge: Judge | None = None


def make(number: int) -> Case:
    """The case of a number, always the same with the same seed."""
    rng = generator(23, number)
    kind = list(KINDS)[number % len(KINDS)]
    return KINDS[kind](rng)


def _found(folder: Path) -> dict[str, Any]:
    """What a reader read."""
    found: dict[str, Any] = json.loads((folder / "read.json").read_text(encoding="utf-8"))
    return found


def _program(*words: str) -> list[str]:
    return ["consistruct", *words]


def _encoded(text: str, rng: Rng) -> bytes:
    """Mostly UTF-8; sometimes another encoding, or with a byte order mark."""
    choice = rng.random()
    if choice < 0.04:
        return text.encode("utf-16")
    if choice < 0.08:
        return text.encode("latin-1", errors="replace")
    mark = b"\xef\xbb\xbf" if choice < 0.12 else b""
    return mark + text.encode("utf-8", errors="surrogatepass")


def _number(rng: Rng) -> str:
    value = float(rng.normal()) * 10.0 ** int(rng.integers(-3, 4))
    return (repr(value), f"{value:.3g}", str(int(value)), f"{value:.6e}")[int(rng.integers(4))]


# --- tables ---


def _table(rng: Rng, separator: str) -> str:
    n, d = int(rng.integers(6, 20)), int(rng.integers(1, 5))
    words = rng.random() < 0.3
    header = [f"x{place}" for place in range(d)] + (["color"] if words else []) + ["y"]
    lines = [separator.join(header)]
    classes = ["a", "b", "c"] if rng.random() < 0.5 else ["0", "1"]
    for row in range(n):
        cells = [_number(rng) for _ in range(d)]
        if words:
            cells.append(str(rng.choice(["red", "green", "", "blue"])))
        cells.append(classes[row % len(classes)])
        lines.append(separator.join(cells))
    return "\n".join(lines) + "\n"


def _tables(rng: Rng, suffix: str, separator: str) -> Case:
    text = mutate_text(_table(rng, separator), rng)
    content = _encoded(text, rng)
    name = f"data.{suffix}"
    plain = content.decode("utf-8", errors="replace")

    def judge(folder: Path) -> str | None:
        return true_labels.table_changed(_found(folder), plain, separator, "y")

    if rng.random() < 0.5:
        return Case(suffix, {name: content}, [["read", name, '{"target": "y"}']], judge)
    options = [] if rng.random() < 0.8 else ["--columns", mutate_text("x0=number", rng)]
    fit = _program("fit", name, "--target", "y", *RIDGE, "--model", "m.safetensors", *options)
    predict = _program("predict", "m.safetensors", name, "--out", "p.csv")
    return Case(suffix, {name: content}, [fit, predict])


def _csv(rng: Rng) -> Case:
    return _tables(rng, "csv", ",")


def _tsv(rng: Rng) -> Case:
    return _tables(rng, "tsv", "\t")


def _parquet(rng: Rng) -> Case:
    import pandas as pd

    n = int(rng.integers(6, 20))
    frame = pd.DataFrame({"x0": rng.normal(size=n), "x1": rng.integers(-5, 5, n)})
    if rng.random() < 0.3:
        frame["x2"] = rng.integers(2**53 - 2, 2**53 + 3, n)
    if rng.random() < 0.3:
        frame["word"] = rng.choice(["a", "b", None], n)
    if rng.random() < 0.2:
        frame["half"] = rng.normal(size=n).astype(np.float32)
    frame["y"] = np.arange(n) % 3
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False, row_group_size=int(rng.integers(2, 30)))
    content = mutate_bytes(buffer.getvalue(), rng)

    def judge(folder: Path) -> str | None:
        return true_labels.parquet_changed(_found(folder), folder / "data.parquet", "y")

    if rng.random() < 0.5:
        read = ["read", "data.parquet", '{"target": "y"}']
        return Case("parquet", {"data.parquet": content}, [read], judge)
    fit = _program("fit", "data.parquet", "--target", "y", *RIDGE, "--model", "m.safetensors")
    return Case("parquet", {"data.parquet": content}, [fit])


def _svmlight(rng: Rng) -> Case:
    lines = []
    for row in range(int(rng.integers(4, 16))):
        places = sorted(
            rng.choice(np.arange(1, 9), int(rng.integers(1, 5)), replace=False).tolist()
        )
        lines.append(" ".join([str(row % 2), *(f"{place}:{_number(rng)}" for place in places)]))
    text = mutate_text("\n".join(lines) + "\n", rng)
    content = _encoded(text, rng)

    def judge(folder: Path) -> str | None:
        return true_labels.svmlight_changed(
            _found(folder), content.decode("utf-8", errors="replace")
        )

    if rng.random() < 0.5:
        return Case("svmlight", {"data.svm": content}, [["read", "data.svm", "{}"]], judge)
    fit = _program("fit", "data.svm", *RIDGE, "--model", "m.safetensors")
    return Case("svmlight", {"data.svm": content}, [fit])


def _arff(rng: Rng) -> Case:
    n = int(rng.integers(4, 12))
    lines = [
        "@relation r",
        "@attribute x0 numeric",
        "@attribute x1 {a,b}",
        "@attribute y {p,q}",
        "@data",
    ]
    for row in range(n):
        cells = [_number(rng), "ab"[int(rng.integers(2))], "pq"[row % 2]]
        sparse = rng.random() < 0.1
        lines.append(f"{{0 {cells[0]},2 {cells[2]}}}" if sparse else ",".join(cells))
    content = _encoded(mutate_text("\n".join(lines) + "\n", rng), rng)
    labels = mutate_text('<labels xmlns="x"><label name="y"></label></labels>', rng)
    files = {"data.arff": content, "labels.xml": labels.encode("utf-8", errors="replace")}
    many = (
        ["--labels", "labels.xml", "--loss", "hamming"] if rng.random() < 0.3 else ["--target", "y"]
    )
    fit = _program("fit", "data.arff", *many, *RIDGE, "--model", "m.safetensors")
    return Case("arff", files, [fit])


def _npz(rng: Rng) -> Case:
    n = int(rng.integers(4, 12))
    kinds = (np.float64, np.float32, np.int64, np.uint8, np.bool_)
    X = (rng.normal(size=(n, 3)) * 5).astype(kinds[int(rng.integers(len(kinds)))])
    y = np.arange(n) % 2
    buffer = io.BytesIO()
    save = np.savez if rng.random() < 0.5 else np.savez_compressed
    save(buffer, X=X, y=y if rng.random() < 0.8 else y.astype(str), extra=np.zeros(2))
    content = mutate_bytes(buffer.getvalue(), rng)

    def judge(folder: Path) -> str | None:
        return true_labels.npz_changed(_found(folder), content)

    if rng.random() < 0.6:
        return Case("npz", {"data.npz": content}, [["read", "data.npz", "{}"]], judge)
    fit = _program("fit", "data.npz", *RIDGE, "--model", "m.safetensors")
    return Case("npz", {"data.npz": content}, [fit])


TEMPLATE = "w:%x[0,0]\np:%x[-1,1]\nw|p:%x[0,0]|%x[0,1]\n"


def _conll(rng: Rng) -> Case:
    lines = []
    for _ in range(int(rng.integers(2, 6))):
        for _ in range(int(rng.integers(1, 6))):
            word = str(rng.choice(["the", "dog", "runs", "é", "1"]))
            lines.append(f"{word} {rng.choice(['N', 'V'])} {rng.choice(['O', 'B-x', 'I-x'])}")
        lines.append("")
    files = {
        "data.conll": _encoded(mutate_text("\n".join(lines) + "\n", rng), rng),
        "template.txt": _encoded(mutate_text(TEMPLATE, rng, 2), rng),
    }
    options = ["--template", "template.txt", "--epochs", "2"]
    if rng.random() < 0.3:
        options += ["--tag-scheme", str(rng.choice(["bio", "iobes", "none"]))]
    if rng.random() < 0.3:
        options += ["--hash-bits", str(rng.choice(["8", "40", "0", "x"]))]
    fit = _program("fit", "data.conll", *options, "--model", "m.safetensors")
    predict = _program("predict", "m.safetensors", "data.conll", "--out", "p.conll")
    return Case("conll", files, [fit, predict])


def _folder(rng: Rng) -> Case:
    """A folder of files that are read in one pass."""
    text = _table(rng, ",").replace("color", "x9")
    head, *rows = text.splitlines()
    files = {}
    for part in range(3):
        own = "\n".join([head, *rows[part::3]]) + "\n"
        changed = mutate_text(own, rng, 2) if rng.random() < 0.5 else own
        files[f"data/part{part}.csv"] = _encoded(changed, rng)
    fit = _program(
        "fit", "data", "--target", "y", *RIDGE, "--model", "m.safetensors", "--every", "0"
    )
    return Case("folder", files, [fit])


# --- losses, scores, metrics ---


def _costs(rng: Rng) -> Case:
    k = int(rng.integers(2, 5))
    costs = rng.integers(1, 9, (k, k)).astype(float)
    np.fill_diagonal(costs, 0.0)
    lines = [",".join(map(str, row)) for row in costs.tolist()]
    if rng.random() < 0.6:
        names = [f"c{place}" for place in range(k)]
        lines = [",".join(["pred", *names])] + [
            f"{a},{b}" for a, b in zip(names, lines, strict=True)
        ]
    text = mutate_text("\n".join(lines) + "\n", rng)
    content = _encoded(text, rng)
    if rng.random() < 0.5:

        def judge(folder: Path) -> str | None:
            return true_labels.costs_changed(
                _found(folder), content.decode("utf-8", errors="replace")
            )

        return Case("costs", {"c.csv": content}, [["costs", "c.csv"]], judge)
    what = _program("analyze", "cost:c.csv", "--rows", "pred", "--points", "3", "--json")
    if rng.random() < 0.3:
        what = _program("plan", "cost:c.csv", "--rows", "pred", "--eps", mutate_text("0.5", rng))
    return Case("costs", {"c.csv": content}, [what])


def _tree(rng: Rng) -> Case:
    n = int(rng.integers(2, 9))
    weighted = rng.random() < 0.5
    lines = ["node,parent,weight" if weighted else "node,parent"]
    for node in range(n):
        parent = "" if node == 0 else f"n{int(rng.integers(0, node))}"
        lines.append(f"n{node},{parent}" + (f",{rng.integers(1, 5)}" if weighted else ""))
    content = _encoded(mutate_text("\n".join(lines) + "\n", rng), rng)
    if rng.random() < 0.5:

        def judge(folder: Path) -> str | None:
            return true_labels.tree_changed(
                _found(folder), content.decode("utf-8", errors="replace")
            )

        return Case("tree", {"t.csv": content}, [["tree", "t.csv"]], judge)
    spec = "tree:t.csv" + ("" if rng.random() < 0.6 else ":nodes")
    return Case("tree", {"t.csv": content}, [_program("plan", spec, "--eps", "0.5")])


# spec and what Python calls the same loss
SPECS = {
    "zero-one:10": "ZeroOne(10)",
    "block:3,5,2": "Block((3, 5, 2))",
    "block:4x25": "Block((25, 25, 25, 25))",
    "mixed:4x25:0.4": "Mixed((25, 25, 25, 25), 0.4)",
    "hamming:10": "Hamming(10)",
    "hamming:4x3": "Hamming(4, 3)",
    "label-costs:10:2": "LabelCosts([2.0] * 10, [1.0] * 10)",
    "ordinal:5": "Ordinal(5)",
    "ordinal:5:2": "Ordinal(5, 2.0)",
    "abstain:5:0.3": "Abstain(5, 0.3)",
    "cost-vectors:5": "CostVectors(5)",
    "fbeta:4": "FBeta(4)",
    "fbeta:4:2": "FBeta(4, 2.0)",
    "precision-at:10:3": "PrecisionAt(10, 3)",
    "ndcg:10:5": "NDCG(10, 5)",
    "eru:10": "ExpectedRankUtility(10)",
    "pairwise:4": "PairwiseDisagreement(4)",
    "map:3": "MeanAveragePrecision(3)",
    "kendall:4": "Kendall(4)",
    "footrule:4": "SpearmanFootrule(4)",
    "spearman-rho:4": "SpearmanRho(4)",
    "matching:4": "Matching(4)",
    "partial-labels:infimum:zero-one:5": "PartialLabels(ZeroOne(5))",
    "path:5x5": None,
    "assignment:4": None,
    "tsp:5": None,
    "top-k:10:3": None,
    "spanning-tree:4": None,
    "decision:path:3x3": None,
}
SCORES = ("own", "full", "blocks:4x25", "blocks:3,5,2", "separable", "chain", "sortable", "uniform")


def _specs(rng: Rng) -> Case:
    spec = str(rng.choice(list(SPECS)))
    changed = mutate_text(spec, rng, 3)
    choice = rng.random()
    if choice < 0.4:
        python = SPECS[spec] if changed == spec else None

        def judge(folder: Path) -> str | None:
            from consistruct import losses

            found = _found(folder)
            expected = None if python is None else repr(eval(python, vars(losses)))
            wrong = expected is not None and found["repr"] != expected
            return f"{spec} was read as {found['repr']}" if wrong else None

        return Case("spec", {}, [["loss", changed]], judge)
    eps = "0.2" if rng.random() < 0.7 else mutate_text("0.2", rng)
    if choice < 0.7:
        return Case("spec", {}, [_program("plan", "--eps", eps, "--", changed)])
    scores = mutate_text(str(rng.choice(SCORES)), rng, 2) if rng.random() < 0.7 else "own"
    words = ["--scores", scores, "--points", "3", "--json", "--eps", eps]
    return Case("spec", {}, [_program("analyze", *words, "--", changed)])


def _scores(rng: Rng) -> Case:
    rows = rng.integers(-2, 3, (3, int(rng.integers(1, 4)))).tolist()
    text = mutate_text("\n".join(",".join(map(str, row)) for row in rows) + "\n", rng)
    command = _program(
        "analyze", "zero-one:3", "--scores", "matrix:f.csv", "--points", "3", "--json"
    )
    return Case("scores", {"f.csv": _encoded(text, rng)}, [command])


METRICS = ("macro-f1", "micro-f1", "qwk", "mcc", "g-mean", "balanced-accuracy", "f-beta:2",
           "precision-at-recall:0.9", "coverage:0.05:f1", "equal-recall:0.05:g")  # fmt: skip


def _metrics(rng: Rng) -> Case:
    spec = mutate_text(str(rng.choice(METRICS)), rng, 2)
    confusion = rng.integers(0, 20, (2, 2)).tolist()
    text = "\n".join(",".join(map(str, row)) for row in confusion) + "\n"
    files = {"confusion.csv": _encoded(mutate_text(text, rng, 2), rng)}
    if rng.random() < 0.5:
        words = ["--confusion", "confusion.csv", "--rows", "pred", "--points", "3", "--json"]
        return Case("metric", files, [_program("analyze", *words, "--", spec)])
    files["data.csv"] = _table(rng, ",").encode()
    fit = _program("fit", "data.csv", "--target", "y", f"--loss={spec}", *RIDGE, "--model", "m")
    return Case("metric", files, [fit])


# --- model files, checkpoints, certificates ---

LAYOUT = {
    "format": "csv", "n_features": 2, "feature_names": ["x0", "x1"], "target": ["y"],
    "label_names": None, "groups": None, "zero_based": None, "multilabel": False,
    "label_kind": "str", "kinds": None,
}  # fmt: skip
INPUTS = [[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]]


@functools.cache
def _models() -> tuple[bytes, ...]:
    """A few small models of different kinds, as files."""
    from sklearn.linear_model import LogisticRegression

    from consistruct.learning import StructuredPredictor, TaskLossClassifier, models, save

    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = np.repeat(["a", "b", "c"], 10)
    Y = (X > 0).astype(int)
    linear = models.Ridge(features="linear", alpha=0.1)
    fitted = [
        TaskLossClassifier("zero_one", linear).fit(X, y),
        TaskLossClassifier("zero_one", models.Ridge(alpha=0.1)).fit(X, y),
        TaskLossClassifier("zero_one", models.Probabilities(LogisticRegression())).fit(X, y),
        StructuredPredictor("hamming", models.Ridge(features="linear", alpha=0.1)).fit(X, Y),
    ]
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(fitted):
            save(model, Path(folder) / str(number), notes={"layout": LAYOUT})
            contents.append((Path(folder) / str(number)).read_bytes())
    return tuple(contents)


@functools.cache
def _answers() -> tuple[Any, ...]:
    """What the intact models predict."""
    from consistruct.learning import load

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for content in _models():
            path = Path(folder) / "model"
            path.write_bytes(content)
            found.append(load(path).predict(np.array(INPUTS)).tolist())
    return tuple(found)


def _model(rng: Rng) -> Case:
    """Damaged bytes: refused by the checksum, or not damaged at all."""
    which = int(rng.integers(len(_models())))
    content = mutate_bytes(_models()[which], rng)

    def judge(folder: Path) -> str | None:
        found = _found(folder)
        same = found["predictions"] == _answers()[which]
        return None if same else f"a damaged model predicts {found['predictions']}"

    return Case(
        "model",
        {"m.safetensors": content},
        [["predict", "m.safetensors", json.dumps(INPUTS)]],
        judge,
    )


def _forged(rng: Rng) -> Case:
    """A changed header, or changed arrays, with a checksum that fits."""
    content = bytearray(_models()[int(rng.integers(len(_models())))])
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), bytes(content[8 + length :])
    inner = mutate_json(json.loads(header["__metadata__"]["consistruct"]), rng)
    if not isinstance(inner, dict):
        inner = {}
    inner = {"sha256": "0" * 64, **{key: value for key, value in inner.items() if key != "sha256"}}
    tensors = {key: value for key, value in header.items() if key != "__metadata__"}
    if rng.random() < 0.3:
        tensors = mutate_json(tensors, rng)
    if rng.random() < 0.3:
        body = mutate_bytes(body, rng)
    outer = {"__metadata__": {"consistruct": json.dumps(inner, separators=(",", ":"))}, **tensors}
    text = json.dumps(outer, separators=(",", ":")).encode()
    made = bytearray(len(text).to_bytes(8, "little") + text + body)
    digest = hashlib.sha256(made).hexdigest().encode()
    made = made.replace(b"0" * 64, digest, 1)
    lines = ["x0,x1,y", *(",".join([*map(str, row), "a"]) for row in INPUTS)]
    data = ("\n".join(lines) + "\n").encode()
    files = {"m.safetensors": bytes(made), "data.csv": data}
    predict = _program("predict", "m.safetensors", "data.csv", "--expected-loss", "--out", "p.csv")
    evaluate = _program("evaluate", "m.safetensors", "data.csv")
    return Case("forged", files, [predict if rng.random() < 0.5 else evaluate])


@functools.cache
def _checkpoint_parts() -> tuple[bytes, bytes, bytes]:
    """Data, the checkpoint of a stochastic fit, and the model of the same fit undisturbed."""
    from tests.fuzzing import entry

    rng = np.random.default_rng(1)
    lines = ["a,b,y"]
    lines += [f"{u!r},{v!r},{int(u + v > 0)}" for u, v in rng.normal(size=(40, 2)).tolist()]
    data = ("\n".join(lines) + "\n").encode()
    with tempfile.TemporaryDirectory() as name:
        import contextlib

        folder = Path(name)
        with contextlib.chdir(folder):
            (folder / "data.csv").write_bytes(data)
            with contextlib.redirect_stdout(io.StringIO()):
                assert entry.run([*SGD, "--checkpoint", "state"]) == 0
            return data, (folder / "state").read_bytes(), (folder / "m.safetensors").read_bytes()


SGD = ["consistruct", "fit", "data.csv", "--target", "y", "--learner", "linear", "--set",
       "solver=sgd", "--set", "alpha=0.1", "--epochs", "3", "--model", "m.safetensors"]  # fmt: skip


def _checkpoint(rng: Rng) -> Case:
    data, state, model = _checkpoint_parts()
    files = {"data.csv": data, "state": mutate_bytes(state, rng)}

    def judge(folder: Path) -> str | None:
        same = (folder / "m.safetensors").read_bytes() == model
        return None if same else "a damaged checkpoint led to another model"

    return Case("checkpoint", files, [[*SGD, "--checkpoint", "state"]], judge)


@functools.cache
def _certificates() -> tuple[Any, ...]:
    from tests.calibration.tampering import genuine

    found = [genuine(seed) for seed in range(14)]
    return tuple(document for document in found if document is not None)


def _certificate(rng: Rng) -> Case:
    document = _certificates()[int(rng.integers(len(_certificates())))]
    if rng.random() < 0.7:
        text = json.dumps(mutate_json(document, rng))
    else:
        text = mutate_text(json.dumps(document), rng)

    def judge(folder: Path) -> str | None:
        from tests.calibration.tampering import claim_is_true

        claimed = json.loads((folder / "proof.json").read_text(encoding="utf-8-sig"))
        return None if claim_is_true(claimed) else "a false claim was called proved"

    check = _program("check", "proof.json")
    return Case("certificate", {"proof.json": _encoded(text, rng)}, [check], judge)


# --- settings ---

SETTINGS = (
    "alpha=0.1", "features=linear", "features=rbf", "standardize=true", "kernel=rbf",
    "bandwidth=1.0", "n_features=10", "solver=auto", "features=nystroem", "device=cpu",
)  # fmt: skip


def _settings(rng: Rng) -> Case:
    """Options and their values, on sound data."""
    files = {"data.csv": _table(rng, ",").encode()}
    words = ["--learner", "ridge" if rng.random() < 0.7 else mutate_text("linear", rng)]
    for _ in range(int(rng.integers(1, 4))):
        words += ["--set", mutate_text(str(rng.choice(SETTINGS)), rng, 2)]
    loss = mutate_text(str(rng.choice(["zero-one", "ordinal", "abstain::0.3", "hamming"])), rng, 2)
    fit = _program("fit", "data.csv", "--target", "y", *words, f"--loss={loss}", "--model", "m")
    return Case("settings", files, [fit])


KINDS: dict[str, Callable[[Rng], Case]] = {
    "csv": _csv,
    "spec": _specs,
    "parquet": _parquet,
    "costs": _costs,
    "svmlight": _svmlight,
    "model": _model,
    "tree": _tree,
    "arff": _arff,
    "forged": _forged,
    "npz": _npz,
    "certificate": _certificate,
    "conll": _conll,
    "metric": _metrics,
    "tsv": _tsv,
    "checkpoint": _checkpoint,
    "scores": _scores,
    "settings": _settings,
    "folder": _folder,
}
