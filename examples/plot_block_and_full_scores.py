"""
Few scores or many: block against full scores
=============================================

100 labels in 4 blocks; a wrong block costs 1, a wrong label in the right block 0.4. Scores of
blocks only cannot tell labels of a block apart: an error of up to 0.2 may stay for ever. Beyond
that they are far easier to learn than one score per label.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs
from consistruct.guarantees import crossing_point

loss = cs.losses.Mixed((25,) * 4, 0.4)
full = cs.calibration_function(loss, "full")
blocks = cs.calibration_function(loss, cs.structures.Blocks((25,) * 4))
print("consistent up to:", full.consistency_level, "(full),", blocks.consistency_level, "(blocks)")
crossing = crossing_point(full, blocks)
print(f"the curves cross at ε = {crossing:.3f}")

# %%
eps = np.linspace(0, 1, 201)[1:]
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(eps, full(eps), "--", color="#D55E00", label="one score per label (100)")
ax.plot(eps, blocks(eps), color="#0072B2", label="one score per block (4)")
ax.axvspan(0, blocks.consistency_level, color="#6b6b6b", alpha=0.15, lw=0)
ax.annotate(
    "block scores:\nerror may stay",
    (0.1, 0.85),
    xycoords=("data", "axes fraction"),
    ha="center",
)
ax.set(
    xlabel="ε, excess task risk",
    ylabel="H(ε), excess surrogate risk",
    yscale="log",
    xlim=(0, 1),
    title="Mixed loss, 4 blocks of 25 labels, η = 0.4",
)
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# ``advise`` weighs the two: at a large ε the blocks win, and it states what they cost.

print(cs.advise(loss, eps=0.5).reason)
print(cs.advise(loss, eps=0.05).reason)
