"""SGD over Dask partitions: shards run side by side, and their weights are averaged every pass.

For inputs too wide for sums of products. Tasks are pure functions of a partition and of the state
before it, so that Dask repeats those of a worker that died.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from consistruct._threads import alone
from consistruct._validation import check_count
from consistruct.distributed.dask import added_surveys, dask_module, partitions, tree_reduced
from consistruct.learning.encoding.kinds import generator
from consistruct.learning.models.solvers.sgd_state import SGDState
from consistruct.learning.streams.fit import Steps
from consistruct.learning.streams.plan import stream_model
from consistruct.learning.streams.source import Batch
from consistruct.learning.streams.survey import Survey, survey_batch
from consistruct.losses.base import Loss

__all__ = ["fit_averaged"]


def fit_averaged(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    passes: int = 5,
    shards: int | None = None,
    classes: Any = None,
) -> Any:
    """Fit by averaged SGD to Dask partitions: every shard on its own, averaged after each pass.

    Parameters
    ----------
    estimator : TaskLossClassifier or StructuredPredictor
        With a model that is trained by SGD, such as Ridge(solver="sgd").
    X : dask.dataframe or dask.array
    y : dask Series, DataFrame or array, with the same partitions
    sample_weight : the same, optional
    passes : int
        How many times the partitions are read.
    shards : int, optional
        Runs side by side, each over its share of the partitions: as many as the client has threads
        if None. The model depends on their number, not on which worker does what.
    classes : array, optional
        All classes; without them, and without a loss object, the labels are read first.

    Returns
    -------
    estimator, fitted
    """
    dask = dask_module()
    check_count(passes, "passes")
    model = stream_model(estimator)
    if model.by_sums:
        raise ValueError(
            "averaging needs a model trained by SGD, such as Ridge(solver='sgd'); sums need no "
            "averaging: use fit"
        )
    batches = partitions(X, y, sample_weight)
    if shards is None:
        shards = _threads()
    check_count(shards, "shards")
    shards = min(shards, len(batches))
    survey: Survey | None = None
    if classes is None and not isinstance(estimator.loss, Loss):
        look = dask.delayed(_labels_of, pure=True)
        (survey,) = dask.compute(
            tree_reduced([look(*batch[1:2]) for batch in batches], added_surveys)
        )
    estimator._forget()
    rng = generator(estimator.random_state)
    begun = Steps(copy.deepcopy(estimator), model, survey, classes)
    step, mean = dask.delayed(_stepped, pure=True), dask.delayed(_averaged, pure=True)
    # the first partition states what rows look like, how they are scaled and how long steps are
    first, *others = (int(number) for number in rng.permutation(len(batches)))
    (state,) = dask.compute(step(begun, None, *batches[first]))
    orders = [others, *(rng.permutation(len(batches)).tolist() for _ in range(passes - 1))]
    for order in orders:
        if not order:
            continue
        shared, runs = dask.delayed(state), []
        for number in range(min(shards, len(order))):
            run, seed = shared, int(rng.integers(2**31))
            for position, place in enumerate(order[number::shards]):
                run = step(run, None if position else seed, *batches[place])
            runs.append(run)
        (state,) = dask.compute(mean(runs))
    if state.kind is None:
        raise ValueError("there are no rows to learn from")
    estimator.__dict__.update(state.estimator.__dict__)
    return estimator


def _threads() -> int:
    """Threads of the workers of the current client; 1 without one."""
    try:
        client = import_module("distributed").get_client()
        return max(1, sum(client.nthreads().values()))
    except (ImportError, ValueError):
        return 1


# --- what runs on workers ---


def _labels_of(y: Any) -> Survey | None:
    labels = np.asarray(y)
    if not len(labels):
        return None
    return survey_batch(Batch(np.zeros((len(labels), 1)), labels), size=0)


@alone()
def _stepped(steps: Steps, seed: int | None, X: Any, y: Any, *weight: Any) -> Steps:
    """A copy that has seen one more partition; `seed` begins a shard."""
    found = copy.deepcopy(steps)
    if seed is not None:
        found.estimator.stream_ = np.random.default_rng(seed)
    if len(y):
        found.add(Batch(X, np.asarray(y), *map(np.asarray, weight)))
    return found


def _averaged(runs: Sequence[Steps]) -> Steps:
    """One state from those of all shards; coefficients are linear in it."""
    found = copy.deepcopy(runs[0])
    models = [run.estimator.model_ for run in runs]
    states = [model.sgd_state_ for model in models]
    merged, model = SGDState.averaged(states), found.estimator.model_
    shares = SGDState.shares(states)
    model.sgd_state_ = merged
    model.coef_ = np.average([one.coef_ for one in models], axis=0, weights=shares)
    model.intercept_ = np.average([one.intercept_ for one in models], axis=0, weights=shares)
    model.alpha_ = merged.alpha
    return found
