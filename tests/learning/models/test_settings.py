"""No setting is ignored: each one changes what is learned or decided, or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from consistruct._validation import check_unused_params
from consistruct.decisions.statistics import ClassProbabilities, TokenStates
from consistruct.learning.encoding.tokens import PackedTokens
from consistruct.learning.models.chain.model import Chain
from consistruct.learning.models.linear import Linear
from consistruct.losses import CostMatrix, Hamming
from consistruct.structures import Ragged

CHAIN: dict[str, Any] = {
    "surrogate": "hinge",
    "decoding": "bayes",
    "features": "random",
    "n_components": 7,
    "bandwidth": 2.0,
    "hash_bits": 8,
    "window": 1,
    "boundaries": False,
    "transitions": "features",
    "tag_scheme": "bio",
    "forbidden_transitions": [(0, 0)],
    "solver": "lbfgs",
    "alpha": 0.5,
    "step": 0.3,
    "batch_size": 2,
    "max_epochs": 3,
    "early_stopping": True,
    "validation_fraction": 0.2,
    "patience": 7,
    "checkpoint": "state",
    "time_limit": 0.0,
}
LINEAR: dict[str, Any] = {
    "surrogate": "logistic",
    "decoding": "argmax",
    "features": "rbf",
    "kernel": "laplace",
    "bandwidth": 2.0,
    "degree": 4,
    "coef0": 0.5,
    "n_components": 7,
    "solver": "sgd",
    "alpha": 0.5,
    "scores": np.eye(3)[:, :2],
    "fit_intercept": False,
    "standardize": True,
}


def sequences() -> tuple[PackedTokens, Ragged]:
    rng = np.random.default_rng(0)
    offsets = np.arange(0, 601, 5)
    states = rng.integers(3, size=600)
    states[1:][states[1:] == states[:-1]] = 0
    X = np.eye(3)[states] + rng.normal(size=(600, 3))
    return PackedTokens(X, offsets), Ragged(states, offsets)


def chain(**settings: Any) -> tuple[Any, Any]:
    X, true = sequences()
    model = Chain(**settings).fit(
        X, true, TokenStates(Hamming(None, 3)), rng=np.random.default_rng(0)
    )
    return model.coef_, model.decisions(X).values


def linear(**settings: Any) -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    statistic = ClassProbabilities(CostMatrix([[0, 1, 1], [1, 0, 1], [1, 9, 0]], rows="pred"))
    model = Linear(**settings).fit(X, y, statistic, rng=np.random.default_rng(0))
    return model.coef_, model.decisions(X)


# what the defaults of the others leave without effect, or what these data break
REFUSED = {
    chain: {
        "n_components": "has an effect only with features='random'",
        "bandwidth": "has an effect only with features='random'",
        "hash_bits": "is for feature names",
        "tag_scheme": "does not follow the scheme",
        "forbidden_transitions": "contains the forbidden transition",
        "validation_fraction": "has an effect only with early_stopping=True",
        "patience": "has an effect only with early_stopping=True",
    },
    linear: {
        "kernel": "has an effect only with features 'auto'",
        "bandwidth": "has an effect only with a kernel",
        "degree": "has an effect only with the polynomial kernel",
        "coef0": "has an effect only with the polynomial kernel",
        "n_components": "has an effect only with features 'auto'",
    },
}


@pytest.mark.parametrize(
    ("fit", "settings", "name"),
    [(chain, CHAIN, name) for name in CHAIN] + [(linear, LINEAR, name) for name in LINEAR],
)
def test_a_setting_has_an_effect_or_is_refused(
    fit: Any, settings: dict[str, Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name in REFUSED[fit]:
        with pytest.raises(ValueError, match=REFUSED[fit][name]):
            fit(**{name: settings[name]})
        return
    before, after = fit(), fit(**{name: settings[name]})
    changed = [
        one.shape != two.shape or (one != two).any() for one, two in zip(before, after, strict=True)
    ]
    assert any(changed) or (name == "checkpoint" and (tmp_path / "state").exists())


def test_every_setting_is_in_the_table() -> None:
    assert set(CHAIN) == set(Chain().get_params())
    assert set(LINEAR) == set(Linear().get_params())
    for cls, table in ((Chain, CHAIN), (Linear, LINEAR)):
        defaults = cls().get_params()
        same = [name for name in table if table[name] is defaults[name]]
        assert not same


def test_objects_as_settings_are_compared_safely() -> None:
    check_unused_params(Linear(features=StandardScaler()), "nothing", False, ())
    with pytest.raises(ValueError, match="solver='sgd' has an effect only with a test"):
        check_unused_params(Linear(solver="sgd"), "a test", False, ("solver",))
