"""
A cost matrix: low-cost mistakes instead of fewer mistakes
==========================================================

Patients are sorted into four levels; ``examples/triage_costs.csv`` states what each confusion
costs. A model trained for the costs is no more accurate than logistic regression, but its
mistakes cost less.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import consistruct as cs

# the file lies beside this program; on its own, give its path
folder = Path("examples") if Path("examples").is_dir() else Path()
loss = cs.losses.read_cost_csv(folder / "triage_costs.csv")
names = np.array(loss.pred_names)

X, progression = load_diabetes(return_X_y=True)
y = np.digitize(progression, [75, 140, 215])
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)

# %%
# Two models on the same 265 patients, judged on 177 others.

usual = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
model = cs.TaskLossClassifier(loss=cs.losses.CostMatrix(loss.matrix(), rows="pred"), random_state=0)
model.fit(X_train, y_train)

predictions = {
    "logistic regression": usual.predict(X_test),
    "trained for the costs": model.predict(X_test),
}
for name, predicted in predictions.items():
    cost = loss(predicted, y_test)
    print(f"{name:22s} accuracy {np.mean(predicted == y_test):.2f}, cost {cost.mean():.2f}")

# %%
# Where the money goes: number of patients times the price of the confusion.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (name, predicted) in zip(axes, predictions.items(), strict=True):
    spent = confusion_matrix(y_test, predicted, labels=range(4)) * loss.matrix().T
    image = ax.imshow(spent, cmap="cividis", vmin=0, vmax=100)
    for row, column in np.ndindex(spent.shape):
        ax.text(
            column,
            row,
            f"{spent[row, column]:.0f}",
            ha="center",
            va="center",
            color="white" if spent[row, column] < 60 else "black",
        )
    ax.set(
        title=f"{name}: {spent.sum():.0f} in all",
        xlabel="predicted level",
        xticks=range(4),
        yticks=range(4),
        xticklabels=names,
        yticklabels=names,
    )
axes[0].set_ylabel("true level")
figure.colorbar(image, ax=axes, label="cost of all test patients in the cell")
plt.show()
