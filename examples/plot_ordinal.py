"""
Ordered classes: distance instead of right or wrong
===================================================

Eight grades of the progression of diabetes. Judged by the distance to the true grade, a model for
the 0-1 loss picks the most probable grade, a model for the distance the median one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

import consistruct as cs

X, progression = load_diabetes(return_X_y=True)
y = np.digitize(progression, np.quantile(progression, np.linspace(0, 1, 9)[1:-1]))
loss = cs.losses.Ordinal(8)

trained_for = {
    "0-1 loss": cs.losses.ZeroOne(8),
    "distance": loss,
    "squared distance": cs.losses.Ordinal(8, 2),
}
distances = {name: np.zeros(len(y)) for name in trained_for}
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    for name, target in trained_for.items():
        model = cs.StructuredPredictor(target, cs.models.Ridge("linear", standardize=True))
        model.fit(X[train], y[train])
        distances[name][test] = loss(model.predict(X[test]), y[test])
for name, found in distances.items():
    print(
        f"trained for {name:17s} mean distance {found.mean():.3f}, right {np.mean(found == 0):.2f}"
    )

# %%
# Far misses become rare; that is all that the distance requires.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
width = 0.27
for offset, (name, found), color in zip(
    (-width, 0, width), distances.items(), ("#6b6b6b", "#0072B2", "#E69F00"), strict=True
):
    share = np.bincount(found.astype(int), minlength=8) / found.size
    ax.bar(np.arange(8) + offset, share, width, color=color, label=f"{name} ({found.mean():.2f})")
ax.set(xlabel="distance between predicted and true grade", ylabel="share of patients")
ax.legend(frameon=False, title="trained for (mean distance)")
plt.show()
