"""
What is a surrogate?
====================

The 0-1 loss of two classes as a function of the margin (score of the true label minus score of
the other) is a staircase. Surrogates are convex functions that can be minimized in its place.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs
from consistruct.surrogates import make_surrogate

loss = cs.losses.ZeroOne(2)
margin = np.linspace(-2, 2, 401)
theta = np.column_stack([margin / 2, -margin / 2])  # the true label is 0
true = np.zeros(len(margin), dtype=int)
predicted = loss.score_space.decode(theta)

# %%
# Each surrogate is shown as the distance above its smallest value, scaled to 1 at margin 0: only
# shapes compare.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.step(margin, loss(predicted, true), color="black", lw=2, label="0-1 loss: judged by this")
for name, color, line in (
    ("quadratic", "#0072B2", "-"),
    ("logistic", "#D55E00", "--"),
    ("log", "#009E73", "-."),
    ("exponential", "#CC79A7", ":"),
):
    surrogate = make_surrogate(name, loss)
    value, _ = surrogate.value_and_gradient(theta, true)
    best, _ = surrogate.value_and_gradient(theta[[200]], true[:1])
    floor = value.min()
    ax.plot(margin, (value - floor) / (best[0] - floor), line, color=color, label=name)
    print(f"{name:12s} at margins −1, 0, 1: {value[[100, 200, 300]].round(3)}")
ax.set(
    xlabel="margin: score of the true label minus score of the other",
    ylabel="loss, scaled",
    ylim=(-0.05, 3),
)
ax.legend(frameon=False)
plt.show()
