"""Decisions against enumeration: every prediction, every true label, the direct formula."""

import inspect
from itertools import product

import numpy as np
import pandas as pd
import pytest

import consistruct as cs
from consistruct.decisions import CostRanges
from consistruct.exceptions import ConsistructError
from consistruct.losses import (
    NDCG,
    Abstain,
    Block,
    CostMatrix,
    CostVectors,
    Decision,
    ExpectedRankUtility,
    FBeta,
    Hamming,
    Kendall,
    LabelCosts,
    Ordinal,
    PairwiseDisagreement,
    PrecisionAt,
    Tree,
    ZeroOne,
)
from consistruct.losses.independent import joint_with_count
from consistruct.structures import GridPath, Ragged


def distributions(n, k, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.6), n)


def enumerated(loss, p):
    """Expected loss of every prediction, by the direct formula and plain sums."""
    return p @ loss.matrix().T


def check_best_two(found, losses, indices):
    """Decision, runner-up and gap are those of the listed losses."""
    each = np.arange(len(losses))
    ordered = np.sort(losses, axis=1)
    np.testing.assert_allclose(found.expected_loss, ordered[:, 0], atol=1e-12)
    np.testing.assert_allclose(losses[each, indices(found.labels)], ordered[:, 0], atol=1e-12)
    np.testing.assert_allclose(found.gap, ordered[:, 1] - ordered[:, 0], atol=1e-12)
    second = indices(found.runner_up)
    np.testing.assert_allclose(losses[each, second], ordered[:, 1], atol=1e-12)
    assert (second != indices(found.labels)).all()


CLASSES = [
    ZeroOne(4),
    CostMatrix([[0, 10, 2], [1, 0, 7], [4, 3, 0]], rows="pred"),
    CostMatrix([[0, 5, 9], [2, 2, 2]], rows="pred"),
    Ordinal(5),
    Ordinal(4, 2.0),
    Tree((-1, 0, 0, 1, 1, 2, 2)),
    Abstain(4, 0.3),
    Block((2, 3)),
]


@pytest.mark.parametrize("loss", CLASSES, ids=repr)
def test_classes_as_enumerated(loss):
    p = distributions(200, loss.true_labels.size)
    check_best_two(cs.decide(loss, p), enumerated(loss, p), np.asarray)


def label_probabilities(n, T, seed=1):
    return np.random.default_rng(seed).beta(0.7, 0.9, (n, T))


def joint_of_independent(p, states):
    """P(y) of every listed label, from marginals (n, T, s)."""
    T = p.shape[1]
    return np.stack(
        [
            np.prod([p[:, t, y[t]] for t in range(T)], axis=0)
            for y in product(range(states), repeat=T)
        ],
        axis=1,
    )


SETS = [
    Hamming(3),
    LabelCosts([4.0, 1.0, 0.3], [1.0, 0.5, 1.0]),
    FBeta(4),
    FBeta(3, 2.0, empty=0.0),
    FBeta(4, sizes=(1, 2)),
    PrecisionAt(4, 2),
    PrecisionAt(3, 1, empty=0.25),
    PrecisionAt(3, 1, n_grades=3),
    NDCG(4),
    NDCG(4, 2, discount="reciprocal", empty=0.5),
    ExpectedRankUtility(3, n_grades=3, neutral=1.0),
    ExpectedRankUtility(3),
]


@pytest.mark.parametrize("loss", SETS, ids=repr)
def test_independent_parts_as_enumerated(loss):
    states = getattr(loss, "n_grades", 2)
    T = loss.true_labels.shape[0]
    marginals = distributions(60 * T, states).reshape(60, T, states)
    every = FBeta(4, loss.beta) if isinstance(loss, FBeta) and loss.sizes else loss
    losses = enumerated(every, joint_of_independent(marginals, states))
    check_best_two(cs.decide(loss, marginals), losses, loss.predictions.index)
    if states == 2 and loss.labels_as != "relevance":  # one number per label says the same
        same = cs.decide(loss, marginals[:, :, 1])
        np.testing.assert_allclose(same.expected_loss, losses.min(axis=1), atol=1e-12)
        lists = cs.decide(loss, list(marginals.transpose(1, 0, 2)))
        np.testing.assert_array_equal(lists.labels, cs.decide(loss, marginals).labels)


@pytest.mark.parametrize(
    "loss", [ExpectedRankUtility(3, n_grades=3), Kendall(3), PairwiseDisagreement(3)], ids=repr
)
def test_marginals_that_are_not_enough_are_refused(loss):
    states = getattr(loss, "n_grades", 2)
    with pytest.raises(ConsistructError, match="samples"):
        cs.decide(loss, distributions(12, states).reshape(4, 3, states))


@pytest.mark.parametrize(
    "loss", [*SETS, Kendall(3), PairwiseDisagreement(3), Hamming(2, 3)], ids=repr
)
def test_probabilities_of_whole_labels_as_enumerated(loss):
    p = distributions(80, loss.true_labels.size)
    losses = enumerated(loss, p)
    found = cs.decide(loss, p)
    np.testing.assert_allclose(found.expected_loss, losses.min(axis=1), atol=1e-12)
    chosen = losses[np.arange(80), loss.predictions.index(found.labels)]
    np.testing.assert_allclose(chosen, losses.min(axis=1), atol=1e-12)


def test_sizes_and_members_decide_whatever_depends_on_what():
    loss = FBeta(4, sizes=(1, 2, 4))
    sets = loss.true_labels.enumerate()
    p = distributions(50, len(sets), seed=3)
    columns = [
        np.where((sets == 1) & (sets.sum(axis=1) == s)[:, None], 1.0, 0.0) for s in (1, 2, 4)
    ]
    members = np.stack([p @ column for column in columns], axis=2)
    given = np.concatenate([1.0 - members.sum(axis=2, keepdims=True), members], axis=2)
    every = FBeta(4)
    losses = p @ every.matrix()[:, every.true_labels.index(sets)].T
    check_best_two(cs.decide(loss, given), losses, loss.predictions.index)


def test_counts_of_independent_labels_near_one():
    p = np.array([[1.0, 1.0 - 1e-13, 0.5, 0.0, 1e-12]])
    sets = np.array(list(product(range(2), repeat=5)))
    weight = np.prod(np.where(sets, p[0], 1.0 - p[0]), axis=1)
    expected = [
        [weight[(sets[:, t] == 1) & (sets.sum(axis=1) == s)].sum() for s in range(1, 6)]
        for t in range(5)
    ]
    np.testing.assert_allclose(joint_with_count(p)[0], expected, rtol=1e-9, atol=1e-300)


def test_expected_gains_rank_and_cost():
    gains = np.array([[0.1, 0.7, 0.2]])
    found = cs.decide(NDCG(3), gains)
    assert found.labels.tolist() == [[1, 2, 0]]
    discount = 1.0 / np.log2([2, 3, 4])
    assert found.expected_loss[0] == pytest.approx(1.0 - discount @ [0.7, 0.2, 0.1])
    ragged = cs.decide(NDCG(None), [[0.1, 0.7, 0.2], [0.3, 0.4]])
    assert [label.tolist() for label in ragged.labels] == [[1, 2, 0], [1, 0]]
    assert ragged.expected_loss[0] == found.expected_loss[0]


def test_token_marginals_as_enumerated():
    rng = np.random.default_rng(5)
    sequences = [rng.dirichlet(np.ones(3), length) for length in (1, 3, 2)]
    found = cs.decide(Hamming(None, 3), sequences)
    packed = cs.decide(Hamming(None, 3), Ragged.pack(sequences))
    assert found.gap is not None
    for place, p in enumerate(sequences):
        loss = Hamming(len(p), 3)
        losses = enumerated(loss, joint_of_independent(p[None], 3))[0]
        ordered = np.sort(losses)
        assert losses[loss.predictions.index(found.labels[place][None])[0]] == pytest.approx(
            ordered[0]
        )
        assert found.expected_loss[place] == pytest.approx(ordered[0])
        assert found.gap[place] == pytest.approx(ordered[1] - ordered[0])
        second = loss.predictions.index(found.runner_up[place][None])[0]
        assert losses[second] == pytest.approx(ordered[1])
        np.testing.assert_array_equal(packed.labels[place], found.labels[place])


def test_states_have_names():
    found = cs.decide(Hamming(None, 2), [[[0.9, 0.1], [0.2, 0.8]]], classes=["O", "NAME"])
    assert found.labels[0].tolist() == ["O", "NAME"]
    assert found.runner_up[0].tolist() == ["O", "O"]  # 0.6 more, and 0.8 for the first token
    assert found.to_frame().label.tolist() == [("O", "NAME")]
    flags = cs.decide(Hamming(2), [[0.9, 0.1]], classes=["no", "yes"])
    assert flags.labels.tolist() == [["yes", "no"]]
    with pytest.raises(ValueError, match="states of its parts"):
        cs.decide(NDCG(2), [[0.1, 0.2]], classes=["a", "b"])


def test_predicted_costs():
    costs = np.random.default_rng(6).random((30, 4))
    found = cs.decide(CostVectors(4), pd.DataFrame(costs, columns=["a", "b", "c", "d"]))
    assert found.labels.tolist() == np.array(list("abcd"))[costs.argmin(axis=1)].tolist()
    np.testing.assert_array_equal(found.expected_loss, costs.min(axis=1))
    grid = Decision(GridPath(2, 3))
    costs = np.random.default_rng(7).random((20, grid.n_costs))
    every = np.unique(grid.solver(np.random.default_rng(8).random((500, grid.n_costs))), axis=0)
    np.testing.assert_allclose(cs.decide(grid, costs).expected_loss, (costs @ every.T).min(axis=1))


def test_costs_of_each_row():
    rng = np.random.default_rng(9)
    costs, p = rng.random((40, 3, 3)), distributions(40, 3)
    losses = np.stack([C @ q for C, q in zip(costs, p, strict=True)])
    check_best_two(cs.decide("zero-one", p, costs=costs, rows="pred"), losses, np.asarray)
    turned = cs.decide("zero-one", p, costs=costs.transpose(0, 2, 1), rows="true")
    np.testing.assert_allclose(turned.expected_loss, losses.min(axis=1))
    with pytest.raises(ValueError, match="rows="):
        cs.decide("zero-one", p, costs=costs)


def test_names_are_matched_whatever_the_order():
    costs = {"ill": {"well": 1.0}, "well": {"ill": 9.0}}
    p = np.array([[0.2, 0.8], [0.05, 0.95]])
    frame = pd.DataFrame(p, columns=["ill", "well"])
    expected = ["ill", "well"]
    for given in (frame, frame[["well", "ill"]]):
        assert cs.decide(costs, given, rows="pred").labels.tolist() == expected
    found = cs.decide(costs, p[:, ::-1], rows="pred", classes=["well", "ill"])
    assert found.labels.tolist() == expected
    assert found.to_frame().columns.tolist() == ["label", "expected_loss", "runner_up", "gap"]
    assert found.to_frame().label.tolist() == expected


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library):
    module = pytest.importorskip(library)
    columns = {"b": [0.2, 0.9], "a": [0.8, 0.1]}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    assert cs.decide("zero-one", frame).labels.tolist() == ["a", "b"]


UNEQUAL = CostMatrix([[0, 1], [5, 0]], rows="pred")


@pytest.mark.parametrize(
    ("loss", "given", "options", "reason"),
    [
        ("zero-one", [[2.0, -1.0]], {}, "logits"),
        ("zero-one", [[3.0, 2.0]], {}, "percentages|logits"),
        ("zero-one", [[20.0, 80.0]], {}, "percentages"),
        ("zero-one", [[0.5, 0.9], [0.5, 0.1]], {}, "transpose"),
        ("zero-one", [[0.5, 0.4], [0.5, 0.2]], {}, "one class against the rest"),
        ("zero-one", [[0.5, np.nan]], {}, "finite"),
        ("zero-one", [0.5, 0.2], {}, "column_stack"),
        ("zero-one:3", [[0.5, 0.5]], {}, "3 classes"),
        ("hamming", [[1.2, 0.5]], {}, "expit"),
        ([[0, 1], [5, 0]], [[0.5, 0.5]], {}, "rows="),
        (
            CostMatrix([[0, 1], [5, 0]], rows="pred"),
            [[0.5, 0.5]],
            {"classes": ["b", "a"]},
            "sorted",
        ),
        (
            CostMatrix([[0, 1], [5, 0]], ("b", "a"), ("b", "a"), rows="pred"),
            [[0.5, 0.5]],
            {},
            "no names",
        ),
        ("zero-one", [[0.5, 0.5]], {"classes": ["a", "a"]}, "different names"),
        ("ordinal", [[0.2, 0.3, 0.5]], {"classes": ["low", "mid", "top"]}, "order of the classes"),
        (Hamming(3), [[0.5, 0.5, 0.5]], {"limits": {"x": 3}}, "limits"),
        (Hamming(3), [np.ones((2, 1)), np.ones((2, 2)), np.ones((2, 2))], {}, "one state"),
        (Hamming(3), [[0.1, 0.2]], {}, "3 parts"),
        (CostVectors(2), [[0.1, 0.2]], {"calibrate": ([[0.5, 0.5]], [0])}, "predicted costs"),
        (NDCG(2), [[0.1, np.inf]], {}, "finite"),
        (NDCG(2), [[0.1, 0.2]], {"calibrate": ([[0.5, 0.5]], [[0, 1]])}, "no probability"),
    ],
)
def test_what_people_get_wrong_is_one_line(loss, given, options, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        cs.decide(loss, given, **options)
    assert "\n" not in str(caught.value)


RANGES = CostRanges([[0, 5], [1, 0]], [[0, 20], [1, 0]], rows="pred")
OPTIONS = {
    "rows": "pred",
    "classes": ["a", "b"],
    "costs": np.zeros((1, 2, 2)),
    "calibrate": ([[0.5, 0.5]], ["a"]),
    "limits": {"a": 1},
    "weights": [1.0],
    "candidates": [["a"]],
    "budget": 1,
    "confidence": 0.9,
    "loss_range": (0, 1),
    "rng": 0,
}


@pytest.mark.parametrize(
    ("loss", "given", "taken"),
    [
        ("zero-one", {"probabilities": [[0.5, 0.5]]}, "rows classes costs calibrate limits"),
        (RANGES, {"probabilities": [[0.5, 0.5]]}, "classes"),
        ("zero-one:2", {"samples": [[0]]}, "rows weights candidates"),
        (str.__ne__, {"samples": [["a"]]}, "weights candidates budget"),
        (
            str.__ne__,
            {"samples": [["a"]], "budget": 1},
            "weights candidates budget confidence loss_range rng",
        ),
    ],
)
def test_options_apply_or_are_refused(loss, given, taken):
    for name in OPTIONS.keys() - set(taken.split()):
        with pytest.raises(ValueError, match=f"^{name}= does not apply to .*; omit it$"):
            cs.decide(loss, **given, **{name: OPTIONS[name]})
    names = list(inspect.signature(cs.decide).parameters)
    assert set(names) == {"loss", "probabilities", "samples", *OPTIONS}
    with pytest.raises(TypeError, match="limit"):
        cs.decide(loss, **given, limit={"a": 1})  # type: ignore[call-arg]


def test_nothing_given_is_ignored_for_the_loss():
    sequences = [[[0.9, 0.1], [0.2, 0.8]]]
    for option in ({"limits": {0: 1}}, {"costs": np.zeros((1, 2, 2))}):
        with pytest.raises(ValueError, match="predictions that are classes"):
            cs.decide(Hamming(None, 2), sequences, **option)
    frame = pd.DataFrame([[0.9, 0.1]], columns=["good", "bad"])
    assert cs.decide("zero-one", frame, classes=["good", "bad"]).labels.tolist() == ["good"]
    for loss in ("zero-one", CostVectors(2), RANGES):
        with pytest.raises(ValueError, match="'good', 'bad', but classes= are 'bad', 'good'"):
            cs.decide(loss, frame, classes=["bad", "good"])
    with pytest.raises(TypeError, match="takes samples="):
        cs.decide(str.__ne__, [[0.5, 0.5]])
    with pytest.raises(TypeError, match="got a dict"):
        cs.decide("zero-one", {"a": [0.5], "b": [0.5]})


def test_what_is_open_is_not_guessed():
    with pytest.raises(TypeError, match="probabilities or samples"):
        cs.decide("zero-one")
    with pytest.raises(TypeError, match="probabilities or samples"):
        cs.decide("zero-one", [[1.0, 0.0]], samples=[[0]])


def test_rounded_probabilities_are_repaired_and_reported():
    found = cs.decide("zero-one", [[0.33, 0.33, 0.33], [0.2, 0.3, 0.5]])
    assert found.labels.tolist() == [0, 2]
    assert "sum to 0.99" in found.notes[0]
    assert cs.decide("zero-one", np.float32([[0.1, 0.2, 0.7]])).notes == ()


def test_one_prediction_has_no_runner_up():
    found = cs.decide(CostMatrix([[0, 1, 2]], rows="pred"), [[0.2, 0.3, 0.5]])
    assert (found.runner_up, found.gap) == (None, None)
    assert found.expected_loss.tolist() == pytest.approx([1.3])


def test_chunks_and_no_rows(monkeypatch):
    from consistruct.decisions import from_probabilities

    p = distributions(50, 3)
    loss = CostMatrix([[0, 10, 2], [1, 0, 7], [4, 3, 0]], rows="pred")
    whole = cs.decide(loss, p)
    monkeypatch.setattr(from_probabilities, "CHUNK", 21)
    parts = cs.decide(loss, p)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_array_equal(parts.gap, whole.gap)
    assert len(cs.decide(loss, np.empty((0, 3)))) == 0
