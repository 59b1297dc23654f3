"""Reports on sequences, rankings and costs of each example: numbers against independent ones."""

from __future__ import annotations

import io

import jsonschema
import numpy as np
import pytest
from rich.console import Console

import consistruct as cs
from consistruct.metrics import chunk_f1, task_losses, token_error
from consistruct.report import LearningReport, learning_report, report_schema
from consistruct.report.learning.charts import learning_charts
from consistruct.report.learning.output import learning_html, learning_text
from consistruct.report.learning.wording import learning_sections

QUICK = {"learning_curve": False, "bandwidths": False}
TOWNS, NAMES = ["Paris", "Ulm", "Bonn"], ["Ada Lovelace", "Alan Turing", "Emmy Noether"]


def sentences(n, seed):
    """Words and tags: a name, sometimes a town, and words that say nothing."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        first, last = str(rng.choice(NAMES)).split()
        words = [first, last, "lived", "in", str(rng.choice(TOWNS))]
        tags = ["B-PER", "I-PER", "O", "O", "B-LOC"]
        if rng.random() < 0.3:
            words, tags = words[:3], tags[:3]
        seen = [word if rng.random() < 0.8 else "?" for word in words]
        before = ["^", *seen[:-1]]
        X.append([[f"w={w}", f"b={b}"] for w, b in zip(seen, before, strict=True)])
        y.append(tags)
    return X, y


@pytest.fixture(scope="module")
def tagged():
    X, y = sentences(60, 0)
    model = cs.StructuredPredictor("hamming", cs.models.Chain(alpha=0.01), random_state=0)
    model.fit(X, y)
    X_test, y_test = sentences(40, 1)
    report = learning_report(model, X_test, y_test, X_train=X, y_train=y, repeats=1)
    return model, (X, y), (X_test, y_test), report


def queries(n, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 7, size=n)
    X = rng.normal(size=(sizes.sum(), 3))
    y = np.clip(np.round(1 + X[:, 1] + 0.3 * rng.normal(size=len(X))), 0, 2).astype(int)
    return X, y, np.repeat([f"q{number}" for number in range(n)], sizes)


@pytest.fixture(scope="module")
def ranked():
    train, test = queries(40, 0), queries(30, 1)
    model = cs.StructuredPredictor("ndcg", cs.models.Items("ridge"), random_state=0)
    model.fit(train[0], train[1], groups=train[2])
    report = learning_report(
        model, *test[:2], groups=test[2], X_train=train[0], y_train=train[1],
        groups_train=train[2], repeats=1,
    )  # fmt: skip
    return model, train, test, report


def shown(report):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(learning_text(report))
    return console.export_text()


@pytest.mark.parametrize("kind", ["tagged", "ranked"])
def test_schema_pages_and_the_way_back(kind, request):
    report = request.getfixturevalue(kind)[-1]
    jsonschema.Draft202012Validator(report_schema("learning")).validate(report.as_dict())
    assert LearningReport.from_dict(report.as_dict()) == report
    page = learning_html(report)
    for section in learning_sections(report):
        assert section.question in page
    assert "example" not in shown(report).replace("for example", "")


def test_tags_are_counted_as_the_metrics_do(tagged):
    model, _, (X, y), report = tagged
    pred = [tags.tolist() for tags in model.predict(X)]
    measures = {measure.name: measure.value for measure in report.measures}
    assert measures["token error"] == pytest.approx(token_error(y, pred))
    assert measures["F1 of chunks"] == pytest.approx(chunk_f1(y, pred))
    wrong = [
        np.mean([a != b for a, b in zip(*pair, strict=True)]) for pair in zip(y, pred, strict=True)
    ]
    assert report.scores[0].mean == pytest.approx(np.mean(wrong))
    table = report.confusion
    assert sum(map(sum, table.counts)) == sum(map(len, y))
    assert sum(map(sum, table.cost)) == pytest.approx(report.scores[0].mean)
    place = table.true_labels.index("B-LOC"), table.predictions.index("O")
    pairs = [p for true, tags in zip(y, pred, strict=True) for p in zip(true, tags, strict=True)]
    assert table.counts[place[1]][place[0]] == pairs.count(("B-LOC", "O"))


def test_a_tag_that_training_never_saw_has_its_own_column(tagged):
    model, _, (X, y), _ = tagged
    strange = [["B-ORG" if tag == "B-LOC" else tag for tag in tags] for tags in y]
    report = learning_report(model, X, strange)
    assert report.confusion.true_labels[-1] == "not seen in training"
    assert report.scores[0].mean == pytest.approx(-model.score(X, strange))


def test_baselines_of_tags(tagged):
    _, (_, y_train), (_, y), report = tagged
    scores = {score.name: score for score in report.scores}
    share = {
        tag: np.mean([np.mean([t != tag for t in tags]) for tags in y_train])
        for tag in {tag for tags in y_train for tag in tags}
    }
    best = min(share, key=lambda tag: share[tag])
    expected = np.mean([np.mean([t != best for t in tags]) for tags in y])
    assert scores["commonest tag"].mean == pytest.approx(expected)
    tokenwise = scores["logistic, each token by itself"]
    assert tokenwise.mean < scores["commonest tag"].mean
    assert tokenwise.difference > 0  # the chain sees the tag beside an unreadable word


def test_dense_tokens_with_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 4)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    model = cs.StructuredPredictor("hamming", cs.models.Chain(alpha=0.1), random_state=0)
    model.fit(X, y, groups=groups)
    report = learning_report(
        model, X, y, groups=groups, X_train=X, y_train=y, groups_train=groups, **QUICK
    )
    assert (report.n_train, report.n_test, report.overlap) == (20, 20, 20)
    assert [measure.name for measure in report.measures] == [
        "token error", "sequences with an error",
    ]  # fmt: skip


def test_rankings_against_their_own_metric(ranked):
    model, _, (X, y, groups), report = ranked
    losses = task_losses(y, model.predict(X, groups), loss="ndcg", groups=groups)
    assert report.scores[0].mean == pytest.approx(losses.mean())
    assert report.n_test == 30
    worst = report.costliest[0]
    names = np.unique(groups)
    by_name = {
        name: task_losses(
            y[groups == name], model.predict(X[groups == name]), loss="ndcg",
            groups=np.zeros((groups == name).sum()),
        )[0]
        for name in names
    }  # fmt: skip
    assert worst.loss == pytest.approx(max(by_name.values()))
    assert by_name[worst.name] == pytest.approx(worst.loss)
    assert worst.size == (groups == worst.name).sum()


def test_baselines_of_rankings(ranked):
    _, train, (X, y, groups), report = ranked
    scores = {score.name: score.mean for score in report.scores}
    # by hand: every column either way on the training queries, then the best on the others
    tried = {
        (column, sign): task_losses(
            train[1], _ranks(sign * train[0][:, column], train[2]), loss="ndcg", groups=train[2]
        ).mean()
        for column in range(3)
        for sign in (1, -1)
    }
    column, sign = min(tried, key=lambda place: tried[place])
    assert column == 1
    own = task_losses(y, _ranks(sign * X[:, column], groups), loss="ndcg", groups=groups).mean()
    assert scores["best single column"] == pytest.approx(own)
    assert {"linear regression of the relevance", "boosting of the relevance"} <= set(scores)


def _ranks(values, groups):
    ranks = np.empty(len(values), dtype=int)
    for name in np.unique(groups):
        rows = np.flatnonzero(groups == name)
        ranks[rows[np.argsort(-values[rows], kind="stable")]] = np.arange(1, len(rows) + 1)
    return ranks


@pytest.mark.parametrize("kind", ["tagged", "ranked"])
def test_learning_curves_end_at_the_model_and_its_baselines(kind, request):
    report = request.getfixturevalue(kind)[-1]
    ends = {fit.model: fit.mean for fit in report.learning_curve if fit.n_train == report.n_train}
    scores = {score.name: score.mean for score in report.scores}
    assert ends == {name: scores[name] for name in ends}
    assert len(ends) >= 2
    assert "learning_curve" in {chart.key for chart in learning_charts(report)}


# --- costs of each example ---


def priced(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 2))
    offer = np.where(X[:, 0] > 0.5, -2.0, 1.0) + 0.2 * rng.normal(size=80)
    return X, np.column_stack([np.full(80, 3.0), 3.0 + offer])


@pytest.mark.parametrize("face", ["classifier", "predictor"])
def test_costs_of_each_example_have_a_profit_curve(face):
    X, costs = priced(0)
    X_test, costs_test = priced(1)
    ridge = cs.models.Ridge(alpha=0.1, bandwidth=1.0)
    if face == "classifier":
        model = cs.TaskLossClassifier(model=ridge).fit(X, costs=costs)
    else:
        model = cs.StructuredPredictor("cost-vectors", ridge).fit(X, costs)  # sizes from y
    names = ("nothing", "offer")
    report = learning_report(
        model, X_test, costs_test, X_train=X, y_train=costs, label_names=names, repeats=1
    )
    decided = np.asarray(model.predict(X_test)).astype(int)
    mean = costs_test[np.arange(80), decided].mean()
    assert report.scores[0].mean == pytest.approx(mean)
    profit = report.profit
    assert profit.base == "nothing"
    # offers are worth it as far as the expected losses say so, which decisions may differ from
    worth = model.expected_losses(X_test).argmin(axis=1)
    chosen = profit.points[profit.chosen]
    gained = costs_test[:, 0].mean() - costs_test[np.arange(80), worth].mean()
    assert chosen.profit == pytest.approx(gained)
    assert chosen.share == pytest.approx((worth == 1).mean())
    assert [score.name for score in report.scores][1:] == [
        "best constant", "linear regression of the costs", "forest of the costs",
    ]  # fmt: skip
    assert len({fit.model for fit in report.learning_curve}) == 3
    assert "profit" in {chart.key for chart in learning_charts(report)}
    assert "gains" in shown(report)


def test_cost_vectors_take_their_size_and_largest_cost_from_y():
    X, costs = priced(0)
    model = cs.StructuredPredictor("cost-vectors", cs.models.Ridge(alpha=0.1, bandwidth=1.0))
    model.fit(X, 10 * costs)
    assert model.loss_ == cs.losses.CostVectors(2, max_cost=10 * costs.max())
    assert model.predict_expected_loss(X).max() > 1


def test_label_sets_of_sizes_that_training_never_saw():
    """They are evaluated like all others, by the model and by the baselines."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X > 0.4).astype(int)
    Y[:40][Y[:40].sum(axis=1) == 3] = [1, 0, 0]
    Y[40:42] = 1
    model = cs.TaskLossClassifier("fbeta", cs.models.Ridge(alpha=0.1, bandwidth=1.0))
    model.fit(X[:40], Y[:40])
    assert model.loss_.sizes == (0, 1, 2)
    report = learning_report(model, X[40:], Y[40:], X_train=X[:40], y_train=Y[:40], **QUICK)
    expected = cs.losses.FBeta(3)(model.predict(X[40:]), Y[40:]).mean()
    assert report.scores[0].mean == pytest.approx(expected)
    assert len(report.scores) == 4
