"""A budget of calls: at most 5 % of the customers, judged by profit (bank marketing)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.business import SPLITS, parts_of, read_business
from consistruct.learning import TaskLossClassifier
from consistruct.structures import TopK

SHARE, ROUNDS = 0.05, 10_000
OURS, PEER = "consistruct", "boosted probabilities × value"
TEXT = """\
`business_bank_marketing`: what a subscription brings differs from customer to customer and is known
(Correa Bahnsen et al. 2014); a call costs 1. Each of three folds is one decision: which of its
customers to call, at most 5 %, `TopK(customers, budget, at_most=True)` on the expected profits
p(x)·value − cost. Ours: p by `TaskLossClassifier(model="auto")`; peer: p by scikit-learn's
histogram boosting with early stopping. *All-knowing* calls the best 5 % in hindsight. Intervals are
of the paired difference in profit, by a bootstrap of the customers."""


def gains(costs: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What calling each customer brings, given the true label: costs (n, decision, true label)."""
    rows = np.arange(len(y))
    return np.asarray(costs[rows, 0, y] - costs[rows, 1, y])


def expected_gains(costs: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """The same under probabilities (n,) of a subscription."""
    distribution = np.column_stack([1.0 - chance, chance])
    return np.asarray(np.einsum("nt,nt->n", costs[:, 0] - costs[:, 1], distribution))


def called(values: np.ndarray) -> np.ndarray:
    """The customers to call, (n,) of 0 and 1, by the oracle of a budget."""
    budget = int(SHARE * len(values))
    return TopK(len(values), budget, at_most=True)(-values[None])[0]


def measure_marketing() -> dict[str, Any]:
    data = read_business("bank_marketing")
    profits: dict[str, list[np.ndarray]] = {OURS: [], PEER: [], "all-knowing": []}
    n_called = dict.fromkeys(profits, 0)
    for part in parts_of(data, quick=False, held_out=False):
        X, y = data.X[part.train], data.y[part.train]
        X_test, costs = data.X[part.test], data.costs[part.test]
        true = gains(costs, data.y[part.test])
        ours = TaskLossClassifier(model="auto", random_state=0, n_jobs=1).fit(X, y)
        boosting = HistGradientBoostingClassifier(
            early_stopping=True, random_state=0, categorical_features=data.categorical
        ).fit(X, y)
        values = {
            OURS: expected_gains(costs, ours.predict_proba(X_test)[:, 1]),
            PEER: expected_gains(costs, boosting.predict_proba(X_test)[:, 1]),
            "all-knowing": true,
        }
        for name, value in values.items():
            chosen = called(value)
            profits[name].append(chosen * true)
            n_called[name] += int(chosen.sum())
    whole = {name: np.concatenate(parts) for name, parts in profits.items()}
    rng = np.random.default_rng(0)
    n = len(whole[OURS])
    rows = {}
    for name, profit in whole.items():
        gap = whole[OURS] - profit
        moved = gap[gap != 0]
        # customers without a difference add nothing: resample those with one, by their number
        draws = [
            moved[rng.integers(len(moved), size=rng.binomial(n, len(moved) / n))].sum()
            for _ in range(ROUNDS if len(moved) else 0)
        ]
        low, high = np.quantile(draws, [0.025, 0.975]) if draws else (0.0, 0.0)
        rows[name] = {
            "profit": float(profit.sum()),
            "gap": "" if name == OURS else f"{gap.sum():+,.0f} [{low:+,.0f}, {high:+,.0f}]",
            "called": n_called[name],
        }
    assert len(whole[OURS]) == len(data.y), f"{SPLITS} folds test every customer once"
    return {"customers": n, "rows": rows, "text": TEXT.replace("\n", " ")}
