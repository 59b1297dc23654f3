"""
A calibration function with its bounds
======================================

H(ε) is the excess surrogate risk that an excess task risk of ε forces. It may jump and need not
be convex; what a learning bound uses is the convex envelope below it.
"""

import matplotlib.pyplot as plt
import numpy as np

import consistruct as cs
from consistruct.calibration import lower_bound, upper_bound

loss = cs.losses.Ordinal(5)  # |prediction − true label| over five grades
H = cs.calibration_function(loss)
eps = np.linspace(0, H.max_eps, 201)[1:]
lower, upper = H.interval(eps)
print("consistency level:", H.consistency_level, " effective classes:", float(H.effective_classes))
print("pieces end at", [round(float(piece.high), 3) for piece in H.pieces])

# %%
# The value is certified at every ε: a worst distribution of the true label, scores under which the
# wrong label wins, and multipliers that prove that nothing is worse. ``check`` recomputes all of
# it.

certificate = H.certificate(2.5)
certificate.check()
pair, q = certificate.pair, np.round(certificate.probabilities, 3)
print("worst pair (better, predicted):", pair, " q:", q)

# %%
envelope = H.envelope()
theorem_7 = [lower_bound(loss, eps=e).value for e in eps]
theorem_8 = [upper_bound(loss, eps=e).value for e in eps]
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.fill_between(eps, theorem_7, theorem_8, color="#56B4E9", alpha=0.2, lw=0, label="between bounds")
ax.plot(eps, lower, color="#0072B2", lw=2, label="H(ε), certified")
ax.plot(eps, [envelope(e) for e in eps], "--", color="#D55E00", label="convex envelope")
ax.set(
    xlabel="ε, excess task risk (grades)",
    ylabel="H(ε), excess surrogate risk",
    xlim=(0, H.max_eps),
    ylim=(0, None),
    title="Distance between five grades, quadratic surrogate",
)
ax.legend(frameon=False, loc="upper left")
plt.show()
