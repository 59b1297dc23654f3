"""Decisions from probabilities of the true labels: decode E[target | p], report what it costs.

    E[L(c, y)] = E[offset(y)] + ⟨embed(c), E[target(y)]⟩

What is given decides how the expected target is computed; what follows is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from consistruct._frames import as_array, labels_in_order
from consistruct.decisions.classes import ClassLabels, listed
from consistruct.decisions.limits import limited, read_limits
from consistruct.decisions.reading import (
    Given,
    check_distributions,
    check_shares,
    columns_by_class,
    loss_for,
    read_given,
    refuse_two_names,
    stacked,
)
from consistruct.decisions.recalibration import calibrated
from consistruct.decisions.result import Decisions
from consistruct.decisions.statistics import ClassProbabilities, TokenStates
from consistruct.exceptions import FamilyError
from consistruct.losses.base import Loss
from consistruct.losses.costs.tables import cost_tensor
from consistruct.protocols import FloatArray, IntArray, LabelArray
from consistruct.structures import Ragged

__all__ = ["decide_from_probabilities", "row_losses"]

# Numbers of one chunk of rows: probabilities and losses stay in the cache of a core. 2^15 to 2^17
# take 0.11 s for a million rows and ten classes, 2^21 0.14 s (benchmarks/results/decide.md).
CHUNK = 2**17
# Predictions that are listed to find the runner-up where the structure does not tell it.
MOST_LISTED = 512


def decide_from_probabilities(
    loss: Any,
    probabilities: Any,
    *,
    rows: Any = None,
    classes: Any = None,
    costs: Any = None,
    calibrate: tuple[Any, Any] | None = None,
    limits: Mapping[Any, Any] | None = None,
) -> Decisions:
    """Return argmin_c E[L(c, y) | x] for each row; `decide` documents the arguments.

    Examples
    --------
    >>> from consistruct.losses import Hamming
    >>> decide_from_probabilities(Hamming(3), [[0.9, 0.4, 0.5]]).labels
    array([[1, 0, 0]])
    """
    given = read_given(probabilities, classes)
    # `rows` speaks of the costs of each row where they are given
    task = loss_for(loss, rows if costs is None else None, given.values)
    try:
        shape = task.true_labels.shape
    except FamilyError:  # a family of all lengths has no shape
        shape = None
    of_classes = task.solver is None and (task.takes_cost_vectors or shape == ())
    if not of_classes:
        for name, value in (("costs", costs), ("limits", limits)):
            if value is not None:
                raise ValueError(f"{name}= are for predictions that are classes, not for {task!r}")
    if task.takes_cost_vectors or task.solver is not None:
        if calibrate is not None:
            raise ValueError(f"{task!r} takes predicted costs, which calibrate= does not correct")
        if classes is not None and task.solver is not None:
            raise ValueError(f"{task!r} decides about numbers without names; omit classes=")
    if of_classes:
        refuse_two_names(given, classes)
        if costs is not None and not task.is_zero_one:
            raise ValueError(f"costs= replace the loss, but loss is {task!r}; pass 'zero-one'")
    if shape is None:  # length by length, or token by token
        return _named_states(_from_families(task, given.values, calibrate), classes, task)
    if task.takes_cost_vectors or task.solver is not None:
        return _from_costs(task, given, limits)
    if shape == ():
        return _from_classes(task, given, costs, rows, calibrate, limits)
    return _named_states(_from_parts(task, given, calibrate), classes, task)


def _named_states(found: Decisions, classes: Any, loss: Loss) -> Decisions:
    """Return labels of parts in the names of their states, where `classes` are given."""
    if classes is None:
        return found
    names, states = np.asarray(as_array(classes, "classes")), getattr(loss, "n_states", 2)
    if loss.labels_as not in ("parts", "sets") or len(names) != states:
        raise ValueError(
            f"classes= of {loss!r} must be what the states of its parts are called, got "
            f"{listed(names)}; omit it"
        )

    def named(labels: Any) -> Any:
        return [names[label] for label in labels] if isinstance(labels, list) else names[labels]

    second = None if found.runner_up is None else named(found.runner_up)
    return replace(found, labels=named(found.labels), runner_up=second)


# --- classes and costs: every prediction is listed ------------------------------------------------


def row_losses(costs: FloatArray, p: FloatArray) -> FloatArray:
    """Return Σ_y p(y | x_i) C_i[c, y] for costs (n, k, m) of each row, (n, k)."""
    return np.einsum("nkm,nm->nk", costs, p)


def _from_classes(
    loss: Loss,
    given: Given,
    costs: Any,
    rows: Any,
    calibrate: tuple[Any, Any] | None,
    limits: Mapping[Any, Any] | None,
) -> Decisions:
    """Decide from P(class | x)."""
    p, labels = columns_by_class(given, loss)
    notes = []
    statistic = ClassProbabilities(loss)
    if calibrate is None:
        notes.append(check_distributions(p))
    else:
        # one class against the rest need not sum to one: the corrections divide by the sum
        p_val, y_val = calibrate
        validation, _ = columns_by_class(read_given(p_val, given.names, "p_val"), loss)
        check_shares(validation)
        check_shares(p)
        codes = labels.encode(y_val, loss)
        p, note = calibrated(p, validation, codes)
        notes.append(note)
    if costs is not None:
        # Σ_y p(y) C_i[c, y]: linear in p like a target, but with another map for each row
        tensor = cost_tensor(costs, len(p), p.shape[1], rows)
        losses = row_losses(tensor, statistic.project(p))
        named = ClassLabels(labels.classes, labels.classes)
        return _listed(iter([(losses.argmin(axis=1), losses)]), len(p), named, limits, notes)
    return _listed(_class_losses(statistic, p), len(p), labels, limits, notes)


def _class_losses(
    statistic: ClassProbabilities, p: FloatArray
) -> Iterator[tuple[LabelArray, FloatArray]]:
    """Yield decisions and expected losses of every prediction, a chunk of rows at a time."""
    space = statistic.loss.score_space
    every = None if space.one_per_label else space.matrix(limit=statistic.loss.n_labels or 0).T
    step = max(1, CHUNK // p.shape[1])
    for start in range(0, max(len(p), 1), step):
        # as an estimator does it: float32 rows are brought onto the simplex, exact ones stay
        expected = statistic.project(p[start : start + step])
        target = statistic.target(expected)
        losses = target if every is None else target @ every
        # not the argmin of the losses: the decoder breaks ties as every estimator does
        yield space.decode(-target), losses + statistic.offset(expected)[:, None]


def _from_costs(loss: Loss, given: Given, limits: Mapping[Any, Any] | None) -> Decisions:
    """Decide from predicted costs (n, d), whose target is E[target | x] itself."""
    values = given.values
    if values.ndim != 2:
        raise ValueError(f"{loss!r} takes predicted costs, (n, costs), got shape {values.shape}")
    target = np.asarray(loss.target(values), dtype=np.float64)
    codes = loss.score_space.decode(-target)
    if loss.solver is not None:
        # the regret needs E[min_z ⟨c, z⟩], which the mean of c does not tell
        cost = np.einsum("nd,nd->n", codes, target)
        note = "expected_loss is the cost of the decision (minus its value), not the regret"
        return Decisions(codes, cost, notes=(note,))
    names = np.arange(target.shape[1]) if given.names is None else np.array(given.names)
    labels = ClassLabels(names, names)
    return _listed(iter([(codes, target)]), len(target), labels, limits, [])


def _listed(
    chunks: Iterator[tuple[LabelArray, FloatArray]],
    n: int,
    labels: ClassLabels,
    limits: Mapping[Any, Any] | None,
    notes: list[str | None],
) -> Decisions:
    """Return decisions with runner-up and gap from the expected losses of every prediction."""
    if limits is not None:
        codes, losses = map(np.concatenate, zip(*chunks, strict=True))
        # a limit couples all rows, so that their losses are held at once: n·k numbers
        most = read_limits(limits, labels.predictions, n)
        within = limited(losses, codes, most)
        notes += _limit_notes(labels.predictions, most, losses, codes, within)
        chunks = iter([(within, losses)])
    codes, second = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    expected, gap = np.empty(n), np.empty(n)
    start = 0
    for chosen, losses in chunks:
        part, each = slice(start, start + len(chosen)), np.arange(len(chosen))
        codes[part], expected[part] = chosen, losses[each, chosen]
        if len(labels.predictions) > 1:
            losses[each, chosen] = np.inf
            second[part] = losses.argmin(axis=1)
            gap[part] = losses[each, second[part]] - expected[part]
        start = part.stop
    if limits is None:  # a tie may be off by rounding
        np.maximum(gap, 0.0, out=gap)
    names, kept = labels.predictions, tuple(note for note in notes if note)
    if len(names) == 1:
        return Decisions(names[codes], expected, notes=kept)
    return Decisions(names[codes], expected, names[second], gap, kept)


def _limit_notes(
    names: Any, most: IntArray, losses: FloatArray, codes: IntArray, within: IntArray
) -> list[str | None]:
    """State each limit, how many rows wanted it, and what all limits cost on average."""
    # both means are of expected losses: the limits can only raise it
    each = np.arange(len(losses))
    price = losses[each, within].mean() - losses[each, codes].mean()
    wanted = np.bincount(codes, minlength=len(names))
    found: list[str | None] = [
        f"{names[c]}: at most {most[c]} of {len(losses)} rows, {wanted[c]} without the limit"
        for c in np.flatnonzero(most < len(losses))
    ]
    return [*found, f"the limits raise the mean expected loss by {price:.4g}"]


# --- parts, sets, rankings, sequences -------------------------------------------------------------


def _from_parts(loss: Loss, given: Given, calibrate: tuple[Any, Any] | None) -> Decisions:
    """Decide from marginals (n, T, s), expected gains (n, items), or P(whole label)."""
    values = given.values
    n_parts = loss.true_labels.shape[0]
    if isinstance(values, list):
        values = stacked(values)
    if isinstance(values, Ragged):
        raise ValueError(
            f"{loss!r} has {n_parts} parts, got rows of {values.lengths.min()} to "
            f"{values.lengths.max()} parts; use the family of all lengths, such as Hamming(None)"
        )
    size = loss.true_labels.size
    notes: list[str | None] = []
    # 2^T sets, s^T sequences: as many columns as whole labels cannot be one per part (n! = n for
    # two items, but orders have no marginals)
    if values.ndim == 2 and values.shape[1] == size and calibrate is None:
        notes.append(check_distributions(values))
        statistic = ClassProbabilities(loss)
        expected = statistic.project(values)
        return _structured(loss, statistic.target(expected), statistic.offset(expected), notes)
    if values.shape[1] != n_parts:
        raise ValueError(
            f"{loss!r} needs probabilities of {n_parts} parts, (n, {n_parts}), "
            f"(n, {n_parts}, states) or a list of {n_parts} arrays, got shape {values.shape}"
        )
    if loss.labels_as == "relevance" and values.ndim == 2:
        if calibrate is not None:
            raise ValueError("expected relevance is no probability; calibrate= does not correct it")
        if not np.isfinite(values).all():
            raise ValueError("expected relevance must be finite, got NaN or infinite entries")
        if values.min(initial=0.0) < 0.0:  # regressions give such, and any scores order as well
            notes.append("some expected gains are negative, so that expected_loss is out of range")
        notes.append("each row is taken to have a relevant item, and its numbers to be mean gains")
        return _structured(loss, *loss.independent_target(values), notes)
    # label sets are two states per label, in or out
    states = getattr(loss.true_labels, "n_states", 2)
    # members by the size of their set: exact for F-beta, where marginals need independence
    if values.ndim == 3 and calibrate is None and values.shape[2] == loss.sized_columns:
        notes.append(check_distributions(values, "label"))
        return _structured(loss, *loss.independent_target(values), notes)
    marginals = _marginals(values, states, loss)
    if calibrate is not None:
        p_val, y_val = calibrate
        # label by label: another order of the columns would correct one label by another
        read = read_given(labels_in_order(p_val, given.names, "p_val"), what="p_val").values
        y_val = as_array(labels_in_order(y_val, given.names, "y_val"), "y_val")
        validation = _marginals(stacked(read) if isinstance(read, list) else read, states, loss)
        codes = loss.true_labels.check(y_val, "y_val")
        marginals, note = calibrated(marginals, validation, codes)
        notes.append(note)
    elif values.ndim == 3:
        notes.append(check_distributions(marginals, "label"))
    # a target that is a sum over parts has the same mean whatever the dependence between them
    if loss.part_targets is None:
        notes.append("the parts of a label are taken to be independent given x")
        loss = loss.without_sizes
    return _structured(loss, *loss.independent_target(marginals), notes)


def _marginals(values: FloatArray, states: int, loss: Loss) -> FloatArray:
    """Return P(part t is in state a), (n, T, s)."""
    if values.ndim == 2:
        if states != 2:
            raise ValueError(f"{loss!r} has {states} states per part; pass (n, parts, {states})")
        check_shares(values)
        return np.stack([1.0 - values, values], axis=2)
    if values.shape[2] != states:
        raise ValueError(
            f"{loss!r} has {states} states per part, got {values.shape[2]}; a classifier that saw "
            "one state only has one column: give it the other one, with probability 0"
        )
    return values


def _structured(
    loss: Loss, target: FloatArray, offset: FloatArray, notes: list[str | None]
) -> Decisions:
    """Decode expected targets (n, width); offset (n,)."""
    space, kept = loss.score_space, tuple(note for note in notes if note)
    labels = space.decode(-target)
    if space.separate_states is not None:
        # a label differs from the best one in at least one part: the cheapest single change
        prices = target.reshape(*labels.shape, -1)
        least = np.take_along_axis(prices, labels[:, :, None], axis=2)
        changes = prices - least
        np.put_along_axis(changes, labels[:, :, None], np.inf, axis=2)
        flat = changes.reshape(len(labels), -1)
        cheapest = flat.argmin(axis=1)
        second, each = labels.copy(), np.arange(len(labels))
        second[each, cheapest // prices.shape[2]] = cheapest % prices.shape[2]
        gap = np.maximum(flat[each, cheapest], 0.0)
        return Decisions(labels, least.sum(axis=(1, 2)) + offset, second, gap, kept)
    # parts interact (orders, F-beta): no part can be changed by itself
    expected = np.einsum("nw,nw->n", space.embed(labels), target) + offset
    size = space.predictions.size
    if size is None or not 1 < size <= MOST_LISTED:
        return Decisions(labels, expected, notes=kept)
    # few enough labels: the second best of all of them
    losses = target @ space.matrix(limit=MOST_LISTED).T + offset[:, None]
    losses[np.arange(len(labels)), space.predictions.index(labels)] = np.inf
    runner_up = losses.argmin(axis=1)
    gap = np.maximum(losses.min(axis=1) - expected, 0.0)
    return Decisions(labels, expected, space.predictions.unindex(runner_up), gap, kept)


def _from_families(loss: Any, values: Any, calibrate: tuple[Any, Any] | None) -> Decisions:
    """Decide about sequences or queries of several lengths, in lists where these differ."""
    if isinstance(values, np.ndarray):  # all of one length
        return _from_parts(loss.at(values.shape[1]), Given(values), calibrate)
    packed = values if isinstance(values, Ragged) else Ragged.pack(values)
    if calibrate is not None:
        raise ValueError("calibrate= takes rows of one length; pool the tokens and correct them")
    if loss.hamming_shape is not None:
        return _from_tokens(loss, packed)
    # ragged rows cannot be one array: those of one length are decided together
    labels: list[Any] = [None] * len(packed)
    expected = np.empty(len(packed))
    for length in np.unique(packed.lengths).tolist():
        places = np.flatnonzero(packed.lengths == length)
        alike = np.stack([packed[place] for place in places.tolist()])
        found = _from_parts(loss.at(length), Given(alike), None)
        expected[places] = found.expected_loss
        for place, label in zip(places.tolist(), found.labels, strict=True):
            labels[place] = label
    return Decisions(labels, expected, notes=found.notes if len(packed) else ())


def _from_tokens(loss: Any, packed: Ragged) -> Decisions:
    """Decide from token marginals: each token by itself, the loss is their mean."""
    if packed.values.ndim != 2 or packed.values.shape[1] != loss.n_states:
        raise ValueError(
            f"{loss!r} needs token marginals (tokens, {loss.n_states}) of each sequence, got "
            f"{packed.values.shape}"
        )
    if (packed.lengths == 0).any():
        raise ValueError(f"sequence {int(np.argmin(packed.lengths))} is empty; leave it out")
    note = check_distributions(packed.values, "token")
    statistic = TokenStates(loss)
    decided = statistic.decode(packed)
    each = np.arange(len(decided.values))
    behind = packed.values.copy()
    behind[each, decided.values] = -np.inf
    # the runner-up changes the one token of the sequence that it costs least to change
    loss_of_change = packed.values[each, decided.values] - behind.max(axis=1)
    order = np.lexsort((loss_of_change, packed.rows))
    token = order[packed.offsets[:-1]]
    second = decided.values.copy()
    second[token] = behind[token].argmax(axis=1)
    return Decisions(
        list(decided),
        statistic.expected_loss(packed, decided),
        list(decided.with_values(second)),
        loss_of_change[token] / packed.lengths,
        (note,) if note else (),
    )
