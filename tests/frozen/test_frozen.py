"""What 0.1 computed is still computed: decisions exactly, floats to the tolerance of the case."""

from __future__ import annotations

import pytest

from tests.frozen.adapters import PARTS, compute, registered
from tests.frozen.values import TOLERANCES, differences, read

CASES = [(part, name) for part in PARTS for name in PARTS[part]]


@pytest.mark.parametrize(("part", "name"), CASES, ids=[" ".join(case) for case in CASES])
def test_recorded_values_are_computed_again(part, name):
    recorded = read(part)[name]
    try:
        computed = compute(part, name)
    except ImportError as error:
        pytest.skip(f"needs {error.name}")
    found = differences(recorded, computed, TOLERANCES[PARTS[part][name].tolerance])
    assert not found, "\n".join(found[:20])


@pytest.mark.parametrize("part", PARTS)
def test_every_recorded_case_is_computed(part):
    assert set(read(part)) == set(PARTS[part])


def test_other_values_are_noticed():
    assert differences([1, 2.0], [1, 2.0 + 1e-9], 1e-6) == []
    assert differences([1, 2.0], [2, 2.0], 1e-6) == ["[0]: 1 was recorded, 2 is computed"]
    assert differences({"a": 2.0}, {"a": 2.1}, 1e-6) == ["/a: 2.0 was recorded, 2.1 is computed"]
    assert differences([1], [1, 1], 1.0) != []
    assert differences({"a": 1}, {}, 1.0) == ["/a: recorded, not computed"]


@pytest.mark.parametrize("part", registered())
def test_each_registered_name_is_recorded(part):
    known, recorded = registered()[part]
    assert recorded == known
