"""
Say "an animal" where the species is not sure
=============================================

In a tree of labels a model that is unsure of the leaf can stop at an inner node. Risk control
states when: the path length between what it states and the true label, counted from the best leaf
below its node, is at most a level on average. Beside it the risk against coverage if it may abstain
instead.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs

names = ("thing", "animal", "vehicle", "cat", "dog", "bird", "car", "truck")
tree = cs.losses.Tree([-1, 0, 0, 1, 1, 1, 2, 2], names=names)
places = np.array([[0, 0], [1, 0], [0.5, 1], [4, 0], [5, 0]])  # of the five leaves

rng = np.random.default_rng(0)
leaf = rng.integers(5, size=2400)
X = places[leaf] + rng.normal(0, 0.55, size=(2400, 2))
y = np.array(names[3:])[leaf]
train, calibrate, test = slice(0, 400), slice(400, 1400), slice(1400, None)

model = cs.TaskLossClassifier(tree, cs.models.Ridge()).fit(X[train], y[train])
print(f"always a leaf: mean path length {-model.score(X[test], y[test]):.3f}")

# %%
# The lowest ancestor that is sure enough, for a mean path length of at most 0.2.

safe = cs.RiskControl(model, level=0.2).fit(X[calibrate], y[calibrate])
answers = safe.predict(X[test])
print(safe.evaluate(X[test], y[test]))
for name in names:
    print(f"{name:8} {np.mean(answers == name):.1%}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-1.5, 6.5, 160), np.linspace(-1.5, 2.5, 80)), axis=-1)
stated = safe.predict(grid.reshape(-1, 2))
colors = dict(zip(names, plt.get_cmap("tab10").colors, strict=False))
image = np.array([colors[name] for name in stated]).reshape(80, 160, 3)
left.imshow(image, origin="lower", extent=(-1.5, 6.5, -1.5, 2.5), aspect="auto", alpha=0.6)
for name, place in zip(names[3:], places, strict=True):
    left.text(*place, name, ha="center", va="center")
left.set(title='Leaves, and "animal" or "thing" between them')

curve = cs.metrics.selective_curve(
    model.task_losses(X[test], y[test]), model.predict_expected_loss(X[test])
)
right.fill_between(curve.coverage, curve.low, curve.high, color="#0072B2", alpha=0.2)
right.plot(curve.coverage, curve.risk, color="#0072B2", label="surest first")
right.axhline(curve.random_area, ls="-.", color="#6b6b6b", label="at random")
right.set(
    xlabel="share of rows answered by a leaf",
    ylabel="mean path length",
    title=f"Abstaining instead: area {curve.area.estimate:.3f}",
    ylim=(0, None),
)
right.legend(frameon=False)
plt.show()
