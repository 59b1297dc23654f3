"""The cost model against a simulated tree, and against the sums that really move."""

import pickle

import numpy as np
import pytest

from consistruct.distributed import Moments
from consistruct.distributed.dask import FAN_IN, tree_reduced
from consistruct.distributed.planning import Rates, measured_rates, pass_cost, simulated_merges

M, W = 20, 3


@pytest.mark.parametrize("workers", [1, 2, 7, 8, 9, 64, 65, 100])
@pytest.mark.parametrize("fan_in", [2, 8])
def test_the_simulated_tree_moves_what_the_model_states(workers, fan_in):
    rng = np.random.default_rng(workers)
    size = M * M + M * W + M + W
    sums = [rng.integers(100, size=size).astype(float) for _ in range(workers)]
    tree = simulated_merges(sums, fan_in)
    np.testing.assert_array_equal(tree.total, np.sum(sums, axis=0))
    cost = pass_cost(1000, M, W, workers, fan_in=fan_in)
    assert tree.bytes_moved == cost.bytes_moved == (workers - 1) * cost.bytes_of_a_sum
    rates = Rates()
    # rounds that are not full move less, never more
    spent = tree.rounds * tree.most_received / rates.network_bytes
    assert spent == pytest.approx(cost.merging)
    assert tree.most_received <= cost.memory_of_a_worker


def test_moments_have_the_size_of_the_model():
    rng = np.random.default_rng(0)
    moments = Moments.of(rng.normal(size=(50, 200)), rng.normal(size=(50, W)))
    size = len(pickle.dumps(moments, protocol=5))
    expected = pass_cost(50, 200, W, 1).bytes_of_a_sum
    assert expected <= size <= expected + 1000  # names and shapes


def test_a_tree_of_tasks_has_no_wider_node():
    widths = []

    def add(parts):
        widths.append(len(parts))
        return sum(parts)

    assert tree_reduced(list(range(100)), add).compute(scheduler="synchronous") == 4950
    assert max(widths) == FAN_IN
    assert sum(width - 1 for width in widths) == 99  # every sum moves once


def test_time_grows_as_stated():
    one, ten = pass_cost(10**6, 100, 10, 4), pass_cost(10**7, 100, 10, 4)
    assert ten.products == pytest.approx(10 * one.products)
    assert ten.merging == one.merging
    assert one.seconds == one.products + one.reading + one.merging + one.solving
    assert measured_rates(64, 2048, 1).operations > 1e7
    with pytest.raises((ValueError, TypeError), match="workers"):
        pass_cost(10, 1, 1, 0)
