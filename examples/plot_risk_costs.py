"""
Guarantee what mistakes will cost
=================================

A cost matrix states what each mistake costs. The model gets a level for the mean cost; rows that it
was not fitted on say how many classes it has to name where it is unsure. The guarantee is kept at
every level, and the price of a lower one is a larger set.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import consistruct as cs

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = X + rng.normal(0, 4, X.shape)  # poor images
X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=600, random_state=0)
X_cal, X_test, y_cal, y_test = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0)

# %%
# Reading a 1 as a 7 costs five times as much as other mistakes, and the other way round.

costs = 1.0 - np.eye(10)
costs[7, 1] = costs[1, 7] = 5.0
model = cs.TaskLossClassifier(
    cs.losses.CostMatrix(costs, rows="pred"), cs.models.Ridge("linear", alpha=0.01)
)
model.fit(X_train, y_train)
plain = -model.score(X_test, y_test)
print(f"always one digit: mean cost {plain:.3f}")

# %%
# One threshold per level, from the calibration rows. "On average" and "with 90 %" are two
# guarantees: by the second at most 10 of 100 calibration sets give a rule that exceeds the level.
# It names a few classes more.

levels = [0.03, 0.05, 0.08, 0.12, 0.16]
reports = {}
for name, confidence in (("on average", None), ("with 90 %", 0.9)):
    reports[name] = []
    for level in levels:
        safe = cs.RiskControl(model, level, confidence=confidence).fit(X_cal, y_cal)
        reports[name].append(safe.evaluate(X_test, y_test))
print(reports["on average"][1])

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(levels, levels, ":", color="#6b6b6b", label="guaranteed")
for (name, found), (line, color) in zip(
    reports.items(), [("o-", "#0072B2"), ("s--", "#D55E00")], strict=True
):
    risk = np.array([[one.risk.estimate, one.risk.low, one.risk.high] for one in found])
    error = [risk[:, 0] - risk[:, 1], risk[:, 2] - risk[:, 0]]
    left.errorbar(levels, risk[:, 0], error, fmt=line, color=color, capsize=3, label=name)
    right.plot(levels, [one.size for one in found], line, color=color, label=name)
left.set(xlabel="level", ylabel="mean cost on test rows", title="What was guaranteed, what came")
right.set(xlabel="level", ylabel="digits named on average", title="What it takes")
left.legend(frameon=False)
right.legend(frameon=False)
plt.show()
