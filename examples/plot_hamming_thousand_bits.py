"""
2^1000 labels: structure decides what is hard
=============================================

Hamming loss over T bits has 2^T predictions. Scored label by label it is as hard as 2^T classes;
scored bit by bit as 2T classes. Both statements are exact, and computed without listing a label.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs

sizes = np.array([1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
own, full = [], []
for T in sizes.tolist():
    loss = cs.losses.Hamming(T)
    own.append(cs.calibration_function(loss).log(0.5) / np.log(10))
    full.append(cs.calibration_function(loss, "full").log(0.5) / np.log(10))
print(f"T = 1000: log10 H(1/2) is {own[-1]:.1f} bit by bit, {full[-1]:.1f} label by label")

# %%
# The effective number of classes grows like 2T, not like 2^T.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(sizes, -np.array(full), "s--", color="#D55E00", label="one score per label, 2^T of them")
ax.plot(sizes, -np.array(own), "o-", color="#0072B2", label="one score per bit, T of them")
ax.set(
    xlabel="bits T",
    ylabel="−log₁₀ H(1/2): digits of precision needed",
    xscale="log",
    yscale="log",
    title="How precisely the surrogate must be minimized",
)
ax.legend(frameon=False)
plt.show()

# %%
# Learning a thousand bits at once is one linear regression with a thousand targets.

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 20))
bits = (X @ rng.normal(size=(20, 1000)) > 0).astype(int)
model = cs.StructuredPredictor("hamming", cs.models.Ridge("linear")).fit(X[:400], bits[:400])
print(f"share of wrong bits on 200 new rows: {-model.score(X[400:], bits[400:]):.3f}")
