"""
A label tree: stop early when unsure
====================================

Thirty kinds in six families. A mistake costs the way between two labels in the tree: two edges
inside a family, four across. A model may also answer with a family, which costs the one edge that
is left. The data are made up: families lie apart, kinds overlap.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs

# %%
# Nodes 0 to 5 are the families and hang from a common root; then come the kinds, five in each.

families, kinds = 6, 5
parents = [-1] * families + [family for family in range(families) for _ in range(kinds)]
leaves = cs.losses.Tree(parents)
nodes = cs.losses.Tree(parents, predict="nodes")
print("kind 0 taken for kind 1:", leaves([1], [0])[0], "  for kind 7:", leaves([7], [0])[0])
print("'family 0' for kind 0:", nodes([0], [0])[0])

# %%
rng = np.random.default_rng(0)
centers = rng.normal(0, 1, (families, 1, 8)) + rng.normal(0, 0.6, (families, kinds, 8))
y = rng.integers(families * kinds, size=2200)
X = centers.reshape(-1, 8)[y] + rng.normal(size=(2200, 8))
train, test = slice(0, 200), slice(200, None)

costs = {}
for title, trained_for, judge in (
    ("0-1 loss", cs.losses.ZeroOne(families * kinds), leaves),
    ("path length, kinds only", leaves, leaves),
    ("path length, families too", nodes, nodes),
):
    model = cs.StructuredPredictor(loss=trained_for, random_state=0).fit(X[train], y[train])
    predicted = model.predict(X[test])
    costs[title] = judge(predicted, y[test])
    print(f"trained for {title:26s} mean path length {costs[title].mean():.3f}")
print(f"answers that stop at a family: {np.mean(predicted < families):.0%}")

# %%
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
means = [cost.mean() for cost in costs.values()]
errors = [1.96 * cost.std() / np.sqrt(len(cost)) for cost in costs.values()]
ax.barh(list(costs), means, xerr=errors, color=["#6b6b6b", "#0072B2", "#D55E00"], height=0.6)
ax.invert_yaxis()
ax.set(xlabel="mean path length, edges (2,000 test rows; bars: 95 %)", title="Trained for")
plt.show()
