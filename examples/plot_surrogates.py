"""
Which surrogate? Two questions and their pictures
=================================================

A surrogate stands in for the task loss. Is its optimum an optimum of the task loss, and how much
does precision buy? Here for three ordered classes and the surrogates people train with.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs
from consistruct.calibration import compare_surrogates

loss = cs.losses.Ordinal(3)
eps = np.linspace(0, 2, 21)[1:-1]
found = compare_surrogates(
    loss, ("quadratic", "logistic", ("log", "bayes"), ("log", "argmax")), eps=eps
)

# %%
# The log loss is consistent with Bayes decoding (argmin of expected cost) and not with argmax: its
# curve stays at zero up to a level.

argmax = cs.calibration_function(loss, surrogate="log")
print(f"log loss, argmax: an error of {argmax.consistency_level:.3f} may stay for ever")
print("witness distribution:", np.round(argmax.witness.distribution, 3))

# %%
# Curves of different surrogates do not compare in their own units. Divided by the noise of n draws
# they do: higher is better.

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
found.plot(ax=ax)
ax.set_title("Three ordered classes")
plt.show()
