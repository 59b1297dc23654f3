"""Every door that takes a loss takes a spec too, and states it of what is neither."""

from __future__ import annotations

import pytest

import consistruct as cs
from consistruct.calibration import compare_surrogates, lower_bound, upper_bound
from consistruct.guarantees import choose_surrogate

DOORS = {
    "calibration_function": lambda loss: cs.calibration_function(loss)(0.5),
    "sample_complexity": lambda loss: cs.sample_complexity(loss, eps=0.5).sharp.iterations,
    "advise": lambda loss: cs.advise(loss, eps=0.5, surrogates=False).recommended.name,
    "choose_surrogate": lambda loss: choose_surrogate(loss, eps=0.5).recommended.name,
    "compare_surrogates": lambda loss: compare_surrogates(loss, ["quadratic"]).curves[0].name,
    "lower_bound": lambda loss: lower_bound(loss, eps=0.5).value,
    "upper_bound": lambda loss: upper_bound(loss, eps=0.5).value,
}


@pytest.mark.parametrize("name", DOORS)
def test_a_spec_stands_for_its_loss(name):
    door = DOORS[name]
    assert door("zero-one:3") == door(cs.losses.ZeroOne(3))
    with pytest.raises(TypeError, match=r"a spec such as 'zero-one:3', got list; wrap a matrix"):
        door([[0, 1], [1, 0]])
