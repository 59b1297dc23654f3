"""Request what models decide and expect it to lose; see `adapters`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import consistruct as cs
from consistruct import losses, models
from consistruct.exceptions import CapabilityError
from tests.frozen import data
from tests.frozen.data import TRAIN

Compute = Callable[[], dict[str, Any]]
Fitted = Any  # an estimator that was fitted


# --- what is requested of a fitted model ---


def written(labels: Any) -> list[Any]:
    """Write decisions in short: a set, an order or a sequence is one text with blanks."""
    return [_short(label) for label in labels]


def _short(label: Any) -> Any:
    if isinstance(label, tuple | list) or np.ndim(label):
        return " ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in label)
    return label


def _decided(model: Fitted, X: Any, y: Any, **about: Any) -> dict[str, Any]:
    """Decisions, what each is expected to lose (None: the model only ranks), and the score."""
    try:
        expected = model.predict_expected_loss(X, **about)
    except CapabilityError:
        expected = None
    return {
        "decisions": written(model.predict(X, **about)),
        "expected losses": expected,
        "score": model.score(X, y, **about),  # minus the mean loss, or the metric
    }


def _by_label(columns: Any, model: Fitted) -> dict[str, Any]:
    """A column per class under its name: no order of classes is part of the value."""
    return {str(name): columns[:, place] for place, name in enumerate(model.classes_)}


def _tags(model: Any) -> dict[str, Any]:
    """Fit on all sequences but the last ten, and decide about these."""
    X, y = data.sentences()
    predictor = structured("hamming", model).fit(X[:-10], y[:-10])
    return _decided(predictor, X[-10:], y[-10:])


def _ranks(model: Any, loss: str = "ndcg") -> dict[str, Any]:
    """Fit on all queries but the last eight, and rank the items of these."""
    X, y, query = data.queries()
    new = query >= query.max() - 7
    predictor = structured(loss, model).fit(X[~new], y[~new], groups=query[~new])
    return {
        **_decided(predictor, X[new], y[new], groups=query[new]),
        "scores": predictor.decision_function(X[new], groups=query[new]),
    }


def classifier(loss: Any, model: Any, **settings: Any) -> Fitted:
    if isinstance(loss, dict):  # the outer keys of `prices`
        settings = {"rows": "pred", **settings}
    return cs.TaskLossClassifier(loss, model, random_state=0, **settings)


def structured(loss: Any, model: Any, **settings: Any) -> Fitted:
    return cs.StructuredPredictor(loss, model, random_state=0, **settings)


def _fitted(estimator: Fitted, labels: str) -> Fitted:
    table = data.table()
    return estimator.fit(table.X[:TRAIN], getattr(table, labels)[:TRAIN])


def _rows(estimator: Fitted, labels: str) -> dict[str, Any]:
    """Fit to one kind of true label of the table, and decide about its last rows."""
    table = data.table()
    return _decided(_fitted(estimator, labels), table.X[TRAIN:], getattr(table, labels)[TRAIN:])


def _without_scores(model: Any) -> dict[str, Any]:
    """Ranks by trees: of scores near 0 nothing is left where splits of equal gain change places."""
    ranks = _ranks(model)
    del ranks["scores"]
    return ranks


def _sets(loss: str, model: Any) -> dict[str, Any]:
    return _rows(structured(loss, model), "sets")


def _paths(model: Any) -> dict[str, Any]:
    return _rows(structured(_grid(), model), "travel")


def _classes(model: Any, **settings: Any) -> dict[str, Any]:
    """Classes by names that are not in alphabetical order, with costs that are not symmetric."""
    table, estimator = data.table(), classifier(prices(), model, **settings)
    found = _rows(estimator, "y")
    try:
        expected = estimator.expected_losses(table.X[TRAIN:])
    except CapabilityError:
        return found
    return {**found, "expected loss of each label": _by_label(expected, estimator)}


def prices() -> dict[str, dict[str, float]]:
    """Costs by name, prices[prediction][true], and not symmetric: no axis has to be guessed."""
    costs: Any = [[0, 1, 2, 4], [3, 0, 1, 2], [5, 2, 0, 1.5], [8, 4, 2.5, 0]]
    names: list[str] = data.LABELS.tolist()
    return {p: dict(zip(names, row, strict=True)) for p, row in zip(names, costs, strict=True)}


def cost_matrix(*names: Any) -> Any:
    """The same kind of costs, in the order of the names; rows are predictions."""
    costs = [[0, 1, 2, 4], [3, 0, 1, 2], [5, 2, 0, 1], [8, 4, 3, 0]]
    return losses.CostMatrix(costs, *names, rows="pred")


def _grid() -> Any:
    return losses.Decision(cs.structures.GridPath(2, 3))


def _forest() -> Any:
    return models.Probabilities(RandomForestClassifier(20, min_samples_leaf=3, n_jobs=1))


# Every registered model by its name (before the comma), and with other settings where these are
# other algorithms. Few rounds are enough: models are compared with themselves, not judged.
# fmt: off
CLOSED_FITS: dict[str, Compute] = {
    "ridge": lambda: _classes(models.Ridge()),
    "ridge, linear": lambda: _classes(models.Ridge("linear")),
    "ridge, rbf": lambda: _classes(models.Ridge("rbf", bandwidth=2.0, alpha=0.01)),
    "ridge, laplace": lambda: _classes(models.Ridge("laplace")),
    "ridge, poly": lambda: _classes(models.Ridge("poly", degree=2)),
    "ridge, nystroem": lambda: _classes(models.Ridge("nystroem", n_components=40)),
    "ridge, random": lambda: _classes(models.Ridge("random", n_components=40)),
    "ridge, moments": lambda: _classes(models.Ridge("linear", solver="moments")),
    "ridge, on a device": lambda: _torch(lambda: _classes(models.Ridge("linear", device="cpu"))),
    "ridge, names in another order": lambda: _unsorted(models.Ridge("linear")),
    "ridge, folds": lambda: _classes(models.Ridge("linear"), cv=3),
    "ridge, balanced": lambda: _classes(models.Ridge("linear"), class_weight="balanced"),
    "regressor": lambda: _classes(models.Regressor(LinearRegression())),
    "regressor, fbeta": lambda: _sets("fbeta", models.Regressor(LinearRegression())),
    "costs, linear": lambda: _paths(models.Costs(["linear"], powers=(0.0,))),
    "items, ridge": lambda: _ranks(models.Items("ridge")),
    "items, linear ridge": lambda: _ranks(models.Items("ridge", features="linear"), "eru"),
    "items, regressor": lambda: _ranks(models.Items(LinearRegression()), "precision-at::2"),
    "prepared": lambda: _prepared(),
}
ITERATED_FITS: dict[str, Compute] = {
    "ridge, cg": lambda: _classes(
        models.Ridge("nystroem", n_components=40, alpha=0.01, solver="cg")
    ),
    "ridge, sgd": lambda: _classes(models.Ridge("linear", alpha=0.01, solver="sgd")),
    "ridge, paper_sgd": lambda: _classes(models.Ridge("linear", solver="paper_sgd")),
    "linear": lambda: _classes(models.Linear()),
    "linear, log": lambda: _classes(models.Linear("log", alpha=0.01)),
    "linear, logistic": lambda: _classes(models.Linear("logistic", alpha=0.01)),
    "linear, exponential": lambda: _classes(models.Linear("exponential", alpha=0.01)),
    "linear, quadratic": lambda: _classes(models.Linear("quadratic", alpha=0.01)),
    "linear, square": lambda: _classes(models.Linear("square", alpha=0.01)),
    "linear, sparsemax": lambda: _classes(models.Linear("sparsemax", alpha=0.01)),
    "linear, hinge": lambda: _classes(_ranking("hinge", "sgd")),
    "linear, softmax-margin": lambda: _classes(_ranking("softmax-margin", "lbfgs")),
    "linear, max-min-margin": lambda: _classes(_ranking("max-min-margin", "sgd")),
    "linear, spo-plus": lambda: _paths(_ranking("spo-plus", "sgd")),
    "linear, sgd": lambda: _classes(models.Linear(solver="sgd", alpha=0.01)),
    "linear, hamming": lambda: _sets("hamming", models.Linear()),
    "probabilities": lambda: _classes(logistic()),
    "probabilities, hamming": lambda: _sets("hamming", logistic()),
    "probabilities, fbeta": lambda: _sets("fbeta", logistic()),
    "costs": lambda: _paths(models.Costs()),
    "costs, tuned": lambda: _paths(models.Costs(["linear"], surrogate="spo-plus", n_epochs=3)),
    "chain": lambda: _tags(models.Chain()),
    "chain, marginals": lambda: _tags(models.Chain(alpha=0.01, decoding="bayes")),
    "chain, lbfgs": lambda: _tags(models.Chain(alpha=0.01, solver="lbfgs")),
    "chain, quadratic": lambda: _tags(models.Chain("quadratic", alpha=0.01)),
    "chain, hinge": lambda: _tags(models.Chain("hinge", alpha=0.01)),
    "chain, softmax-margin": lambda: _tags(models.Chain("softmax_margin", alpha=0.01)),
    "chain, random": lambda: _tags(models.Chain(features="random", n_components=20, alpha=0.01)),
    "chain, window": lambda: _tags(models.Chain(window=1, alpha=0.01)),
    "chain, own transitions": lambda: _tags(models.Chain(transitions="features", step=0.1)),
    "chain, tag scheme": lambda: _tags(models.Chain(tag_scheme="bio", alpha=0.01)),
    "stack": lambda: _classes(models.Stack([models.Ridge("linear"), logistic()])),
    "stack, geometric": lambda: _classes(
        models.Stack([models.Ridge(), logistic()], combine="geometric", weights=[0.4, 0.6])
    ),
    "torch": lambda: _torch(lambda: _classes(_network())),
    "torch, fbeta": lambda: _torch(lambda: _sets("fbeta", _network())),
}
TREE_FITS: dict[str, Compute] = {
    "probabilities, folds": lambda: _classes(_forest(), cv=3),
    "boosting": lambda: _classes(models.Boosting(40)),
    "boosting, sets": lambda: _sets("fbeta", models.Boosting(40, depth=3)),
    "boosting, raw table": lambda: _raw_table(models.Boosting(40)),
    "items": lambda: _without_scores(models.Items()),
    "items, trees": lambda: _without_scores(models.Items("trees")),
    "auto, classes": lambda: _classes("auto"),
    "auto, raw table": lambda: _raw_table("auto"),
    "auto, sets": lambda: _sets("fbeta", "auto"),
}
# fmt: on


def _torch(make: Compute) -> dict[str, Any]:
    """Raise ImportError, which skips the case, before anything else goes wrong."""
    import_module("torch")
    return make()


def _ranking(surrogate: str, solver: str) -> Any:
    return models.Linear(surrogate, decoding="argmax", solver=solver, alpha=0.01)


def logistic() -> Any:
    return models.Probabilities(LogisticRegression(tol=1e-8, max_iter=1000))


def _network() -> Any:
    return models.Torch((8,), max_epochs=8, batch_size=16, learning_rate=0.01, device="cpu")


def _unsorted(model: Any) -> dict[str, Any]:
    """A loss that names its classes in an order of its own."""
    estimator = classifier(cost_matrix(data.LABELS, data.LABELS), model)
    return {**_rows(estimator, "y"), "order of classes": estimator.classes_}


def _prepared() -> dict[str, Any]:
    X, y = data.frame()
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["size", "weight"]),
        (OneHotEncoder(), ["site"]),
    )
    model = classifier(prices(), models.Prepared(columns, models.Ridge("linear")))
    return _decided(model.fit(X[:TRAIN], y[:TRAIN]), X[TRAIN:], y[TRAIN:])


def _raw_table(model: Any) -> dict[str, Any]:
    """Words, dates, and numbers with gaps, as they are."""
    X, y = data.frame()
    estimator = classifier("zero_one", model).fit(X[:TRAIN], y[:TRAIN])
    return _decided(estimator, X[TRAIN:], y[TRAIN:])


# Every registered loss, fitted by least squares on the inputs as they are.
LEARNED: dict[str, tuple[str, Callable[[], Any]]] = {
    "zero-one": ("y", lambda: "zero_one"),
    "block": ("grades", lambda: losses.Block((2, 2))),
    "mixed": ("grades", lambda: losses.Mixed((2, 2), 0.3)),
    "hamming": ("sets", lambda: "hamming"),
    "hamming, three states": ("parts", lambda: losses.Hamming(3, 3)),
    "label-costs": ("sets", lambda: losses.LabelCosts([1, 4, 0.5, 2], [1, 0.5, 2, 1])),
    "ordinal": ("grades", lambda: "ordinal"),
    "ordinal, squared": ("grades", lambda: "ordinal::2"),
    "abstain": ("y", lambda: "abstain::0.3"),
    "cost": ("grades", cost_matrix),
    "cost, by name": ("y", prices),
    "cost-vectors": ("costs", lambda: losses.CostVectors(4, 30.0)),
    "decision": ("travel", _grid),
    "fbeta": ("sets", lambda: "fbeta"),
    "fbeta, beta 2": ("sets", lambda: losses.FBeta(4, 2.0)),
    "precision-at": ("relevance", lambda: losses.PrecisionAt(4, 2, n_grades=3)),
    "ndcg": ("relevance", lambda: losses.NDCG(4, n_grades=3)),
    "eru": ("relevance", lambda: losses.ExpectedRankUtility(4, n_grades=3)),
    "pairwise": ("relevance", lambda: losses.PairwiseDisagreement(4, 3)),
    "map": ("sets", lambda: losses.MeanAveragePrecision(4)),
    "kendall": ("orders", lambda: "kendall"),
    "footrule": ("orders", lambda: "footrule"),
    "spearman-rho": ("orders", lambda: "spearman_rho"),
    "matching": ("orders", lambda: "matching"),
    "part-errors": ("heads", lambda: "part-errors:trees:4"),
    "partial-labels": ("candidates", lambda: "partial_labels:infimum:zero_one"),
    "partial-labels, average": ("candidates", lambda: "partial_labels:average:zero_one"),
    "tree": ("grades", lambda: losses.Tree((-1, 0, 0, 1, 1, 2, 2))),
    "combination": ("grades", lambda: 0.5 * losses.ZeroOne(4) + losses.Ordinal(4)),
}


def learned(name: str) -> dict[str, Any]:
    labels, make = LEARNED[name]
    estimator = classifier if labels in ("y", "sets", "grades") else structured
    if name.startswith("map"):
        estimator = structured
    return _rows(estimator(make(), models.Ridge("linear")), labels)


def _loss_set_later(before: Any, after: Callable[[], Any], labels: str) -> dict[str, Any]:
    """Fit for one loss, decide for another."""
    table = data.table()
    loss = after()
    axis: Any = {"rows": "pred"} if isinstance(loss, dict) else {}
    model = _fitted(classifier(before, logistic()), labels).set_loss(loss, **axis)
    return _decided(model, table.X[TRAIN:], getattr(table, labels)[TRAIN:])


def _costs_of_examples() -> dict[str, Any]:
    """Costs of each decision for each true label, known when it is made."""
    table = data.table()
    model = classifier("zero_one", logistic(), rows="pred")
    model.fit(table.X[:TRAIN], table.y[:TRAIN], costs=in_class_order(table)[:TRAIN])
    new = {"costs": in_class_order(table)[TRAIN:]}
    return {
        "decisions": written(model.predict(table.X[TRAIN:], **new)),
        "score": model.score(table.X[TRAIN:], table.y[TRAIN:], **new),
        "probability of each label": _by_label(model.predict_proba(table.X[TRAIN:]), model),
    }


def in_class_order(table: data.Table) -> Any:
    """The costs of the table, in the order of the sorted classes that `fit` takes them in."""
    order = np.argsort(data.LABELS)
    return table.outcomes[:, order][:, :, order]


def _cost_vectors() -> dict[str, Any]:
    """What each label costs for each example, by a classifier."""
    table = data.table()
    model = classifier("zero_one", models.Ridge("linear"))
    costs = table.costs[:, np.argsort(data.LABELS)]
    model.fit(table.X[:TRAIN], table.y[:TRAIN], costs=costs[:TRAIN])
    return {
        "decisions": written(model.predict(table.X[TRAIN:])),
        "expected losses": model.predict_expected_loss(table.X[TRAIN:]),
        "score": model.score(table.X[TRAIN:], costs=costs[TRAIN:]),
    }


SET_LATER: dict[str, Compute] = {
    "zero-one, then costs": lambda: _loss_set_later("zero_one", prices, "y"),
    "zero-one, then abstain": lambda: _loss_set_later("zero_one", lambda: "abstain::0.3", "y"),
    "ordinal, then squared": lambda: _loss_set_later("ordinal", lambda: "ordinal::2", "grades"),
    "ordinal, then tree": lambda: _loss_set_later(
        "ordinal", lambda: losses.Tree((-1, 0, 0, 1, 1, 2, 2)), "grades"
    ),
    "costs of each decision and truth": _costs_of_examples,
    "costs of each decision": _cost_vectors,
}


# --- non-decomposable metrics: decisions are chosen on out-of-fold predictions ---

CHOSEN = {
    "f1": ("f1", "two"),
    "macro-f1": ("macro-f1", "y"),
    "micro-f1": ("micro-f1", "sets"),
    "weighted-f1": ("weighted-f1", "y"),
    "f-beta": ("f-beta:2", "two"),
    "jaccard": ("jaccard", "two"),
    "macro-jaccard": ("macro-jaccard", "sets"),
    "micro-jaccard": ("micro-jaccard", "sets"),
    "balanced-accuracy": ("balanced-accuracy", "y"),
    "g-mean": ("g-mean", "y"),
    "min-recall": ("min-recall", "two"),
    "kappa": ("kappa", "y"),
    "qwk": ("qwk", "grades"),
    "mcc": ("mcc", "two"),
    "precision-at-recall": ("precision-at-recall:0.6", "two"),
    "recall-at-precision": ("recall-at-precision:0.85", "two"),
    "coverage": ("coverage:0.4:f1", "two"),
    "equal-recall": ("equal-recall:0.5:3", "two"),
    "randomized": ("randomized:min-recall", "two"),
}


def chosen(name: str) -> dict[str, Any]:
    metric, labels = CHOSEN[name]
    table = data.table()
    X, y = table.X.copy(), table.grades > 1 if labels == "two" else getattr(table, labels)
    X[:, 3] = X[:, 3] > 0  # the groups of equal-recall
    model = classifier(metric, logistic()).fit(X[:TRAIN], y[:TRAIN])
    return {
        "decisions": written(model.predict(X[TRAIN:])),
        "score": model.score(X[TRAIN:], y[TRAIN:]),
        "to be expected": model.metric_estimate_,
        "gap to the best rule": model.optimality_gap_,
    }


# --- batches: one after the other, in any order, on several machines ---


def _batches() -> tuple[Any, list[tuple[Any, Any]]]:
    table = data.table()
    return table, [(table.X[at : at + 30], table.y[at : at + 30]) for at in range(0, TRAIN, 30)]


def _streamed(solver: str) -> Fitted:
    return classifier(prices(), models.Ridge("linear", alpha=0.01, solver=solver))


def _about_new_rows(model: Fitted) -> dict[str, Any]:
    table = data.table()
    return _decided(model, table.X[TRAIN:], table.y[TRAIN:])


def _step_by_step(solver: str) -> dict[str, Any]:
    model = _streamed(solver)
    for X, y in _batches()[1]:
        model.partial_fit(X, y, classes=np.unique(data.LABELS))
    return _about_new_rows(model)


def _tags_step_by_step() -> dict[str, Any]:
    X, y = data.sentences()
    model = structured("hamming", models.Chain(alpha=0.01))
    for at in range(0, 50, 25):
        model.partial_fit(X[at : at + 25], y[at : at + 25], classes=["B-X", "I-X", "O"])
    return _decided(model, X[-10:], y[-10:])


def _pass_by_pass(solver: str, passes: int) -> dict[str, Any]:
    return _about_new_rows(_streamed(solver).fit_stream(_batches()[1], passes=passes))


def _sums_without_the_first() -> dict[str, Any]:
    """Sums of batches, added, and one of them taken away again."""
    from consistruct.distributed import make_plan, survey_batch

    batches = _batches()[1]
    known, *more = [survey_batch(batch, size=0) for batch in batches]
    plan = make_plan(_streamed("moments"), sum(more, known))
    first, *others = [plan.summarize(batch) for batch in batches]
    return _about_new_rows(plan.finish(sum(others, first) - first))


def _partitions(kind: str) -> dict[str, Any]:
    """Dask's arrays, or its data frames, or steps that are averaged over two shards."""
    import dask.array
    import dask.dataframe

    from consistruct.distributed import fit_averaged

    table = data.table()
    X, y = table.X[:TRAIN], table.y[:TRAIN].astype(object)
    with dask.config.set(scheduler="synchronous"):
        if kind == "frame":
            pandas = import_module("pandas")
            frame = pandas.DataFrame(table.X, columns=list("abcd"))
            lazy = dask.dataframe.from_pandas(frame[:TRAIN].assign(y=y), npartitions=4)
            model = _streamed("moments").fit(lazy[list("abcd")], lazy["y"])
            return _decided(model, frame[TRAIN:], table.y[TRAIN:])
        arrays = [
            dask.array.from_array(part, chunks=(30, 4)[: part.ndim])
            for part in (X, table.y[:TRAIN])
        ]
        if kind == "averaged":
            return _about_new_rows(fit_averaged(_streamed("sgd"), *arrays, passes=2, shards=2))
        return _about_new_rows(_streamed("moments").fit(*arrays))


def _folder() -> dict[str, Any]:
    """Files of a folder."""
    from consistruct.distributed import Folder, fit_folder

    pandas = import_module("pandas")
    table = data.table()
    frame = pandas.DataFrame(table.X, columns=list("abcd")).assign(kind=table.y)
    with tempfile.TemporaryDirectory() as place:
        for number, at in enumerate(range(0, TRAIN, 30)):
            frame[at : at + 30].to_csv(Path(place) / f"{number}.csv", index=False)
        model = fit_folder(_streamed("moments"), Folder(place, target=["kind"]))
    return _about_new_rows(model)


CLOSED_STREAMS: dict[str, Compute] = {
    "moments, step by step": lambda: _step_by_step("moments"),
    "moments, one pass": lambda: _pass_by_pass("moments", 1),
    "sums without the first": _sums_without_the_first,
    "dask arrays": lambda: _partitions("array"),
    "dask frames": lambda: _partitions("frame"),
    "folder": _folder,
}
ITERATED_STREAMS: dict[str, Compute] = {
    "sgd, step by step": lambda: _step_by_step("sgd"),
    "chain, step by step": _tags_step_by_step,
    "sgd, three passes": lambda: _pass_by_pass("sgd", 3),
    "dask, averaged steps": lambda: _partitions("averaged"),
}
