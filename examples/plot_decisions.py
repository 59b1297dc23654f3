"""
Decisions: shortest paths under predicted travel times
======================================================

Costs of the edges of a grid depend on a few features and come with noise that grows with them.
Three ways to predict costs and then take the shortest path: least squares, least squares weighted
by the level of the costs, and the default, which chooses among a few by out-of-fold regret. Data
are made up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import consistruct as cs
from consistruct.structures import GridPath

SIDE = 6
rng = np.random.default_rng(4)
oracle = GridPath(SIDE, SIDE)
X = rng.normal(size=(900, 4))
mean = (X @ rng.binomial(1, 0.5, size=(4, oracle.n_costs)) / 2 + 3) ** 6 / 3.5**6 + 0.01
C = mean * rng.uniform(0.5, 1.5, size=mean.shape)
train, test = slice(0, 500), slice(500, 900)

# %%
loss = cs.losses.Decision(oracle)
models = {
    "least squares": cs.models.Regressor(LinearRegression()),
    "weighted kernel ridge": cs.models.Costs(["kernel"], powers=(2,)),
    "default": "auto",
}
found, decisions = {}, {}
for title, model in models.items():
    fitted = cs.StructuredPredictor(loss, model, random_state=0).fit(X[train], C[train])
    decisions[title] = fitted.predict(X[test])
    found[title] = cs.metrics.normalized_regret(C[test], decisions[title], loss=loss)
floor = cs.metrics.normalized_regret(C[test], oracle(mean[test]), loss=loss)
for title, regret in found.items():
    print(f"{title:24s} normalized regret {regret:.3f}")
print(f"{'true mean costs':24s} normalized regret {floor:.3f}")

# %%
# One of the test rows on which least squares loses most. Color is the true mean cost of an edge.
regrets = loss(decisions["least squares"], mean[test])
row = int(np.argmax(regrets))
shown = {
    "best in expectation": oracle(mean[test][row : row + 1])[0],
    **{title: chosen[row] for title, chosen in decisions.items()},
}
figure, axes = plt.subplots(1, len(shown), figsize=(11, 3.2), layout="constrained")
largest = mean[test][row].max()
for ax, (title, path) in zip(axes, shown.items(), strict=True):
    for edge, (tail, head) in enumerate(oracle.edges.tolist()):
        (y0, x0), (y1, x1) = divmod(tail, SIDE), divmod(head, SIDE)
        color = plt.cm.viridis(mean[test][row, edge] / largest)
        ax.plot([x0, x1], [y0, y1], color=color, lw=2)
        if path[edge]:
            ax.plot([x0, x1], [y0, y1], color="#D55E00", lw=6, alpha=0.6, zorder=0)
    ax.set_title(f"{title}\ncost {path @ mean[test][row]:.2f}", fontsize=9)
    ax.invert_yaxis()
    ax.set_axis_off()
plt.show()
