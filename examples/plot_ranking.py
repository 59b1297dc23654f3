"""
Rankings: sorted by a score that was learned for NDCG
=====================================================

Queries of different lengths, items with features and relevance grades. Regressing the grades
treats a query full of junk like one with treasures; the targets of the NDCG loss weigh each item
by what its place in the order is worth. Data are made up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV

import consistruct as cs
from consistruct.structures import Ragged

rng = np.random.default_rng(0)
query = np.repeat(np.arange(160), rng.integers(5, 25, size=160))
X = rng.normal(size=(len(query), 10))
level = rng.normal(0, 2, size=160)[query]  # some queries have good items only
X[:, 0] += level
quality = X[:, 1] + 0.7 * X[:, 2] * (X[:, 0] > level) + rng.normal(0, 0.7, len(X))
grade = np.clip(np.round(quality + 0.8 * level), 0, 4).astype(int)
train, test = query < 80, query >= 80

# %%
ndcg = cs.losses.NDCG(None, n_grades=5)
found = {}
models = {
    "linear": cs.models.Items("ridge", features="linear"),
    "ridge and trees": cs.models.Items(),  # the default: weights by queries left out
}
for title, items in models.items():
    model = cs.StructuredPredictor("ndcg", items, random_state=0)
    model.fit(X[train], grade[train], groups=query[train])
    losses = model.task_losses(X[test], grade[test], groups=query[test])
    found[f"trained for NDCG, {title}"] = 1 - losses

ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(X[train], grade[train])
values = ridge.predict(X[test])
rows = [np.flatnonzero(query[test] == q) for q in range(80, 160)]
orders = Ragged.pack([np.argsort(-values[row], kind="stable") for row in rows])
y_true = Ragged.pack([grade[test][row] for row in rows])
found["ridge on grades"] = 1 - ndcg(orders, y_true)
for title, scores in found.items():
    print(f"{title:32s} mean NDCG {scores.mean():.3f}")

# %%
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
means = [scores.mean() for scores in found.values()]
errors = [1.96 * scores.std() / np.sqrt(len(scores)) for scores in found.values()]
ax.barh(list(found), means, xerr=errors, color=["#0072B2", "#D55E00", "#6b6b6b"], height=0.6)
ax.invert_yaxis()
ax.set(xlabel="mean NDCG over 80 test queries (bars: 95 %)", xlim=(0.6, 1))
plt.show()
