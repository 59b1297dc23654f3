"""
Macro-F1, G-mean, kappa: non-decomposable metrics
=================================================

Rare classes, judged by the mean F1 of all classes. No loss of one example has that as its mean;
but the best rule for it is the decision of least expected cost for one cost matrix, and that matrix
is found on rows left out while fitting. The same model decides differently for each metric.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import consistruct as cs

X, y = make_classification(
    4000, 12, n_informative=6, n_classes=3, weights=[0.85, 0.1], flip_y=0.08, random_state=2
)
X_train, X_test, y_train, y_test = X[:2000], X[2000:], y[:2000], y[2000:]
logistic = cs.models.Probabilities(LogisticRegression(max_iter=500))

likeliest = LogisticRegression(max_iter=500).fit(X_train, y_train).predict(X_test)
balanced = LogisticRegression(max_iter=500, class_weight="balanced").fit(X_train, y_train)
rows = {}
for metric in ("macro-f1", "g-mean", "balanced-accuracy", "mcc"):
    model = cs.TaskLossClassifier(metric, logistic, random_state=0).fit(X_train, y_train)
    rows[metric] = [
        cs.metrics.metric_value(y_test, pred, metric=metric)
        for pred in (likeliest, balanced.predict(X_test), model.predict(X_test))
    ]
    print(f"{metric:18s} likeliest {rows[metric][0]:.3f}, class weights {rows[metric][1]:.3f}, "
          f"ours {rows[metric][2]:.3f} (expected {model.metric_estimate_:.3f})")  # fmt: skip

# %%
# Class weights "balanced" make every class count alike: that is balanced accuracy, for which they
# do as well. For macro-F1 and Matthews' coefficient they overshoot.
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
places = np.arange(len(rows))
names = ("likeliest class", "class weights", "chosen on out-of-fold rows")
for number, (name, color) in enumerate(zip(names, ("#6b6b6b", "#56B4E9", "#D55E00"), strict=True)):
    values = [row[number] for row in rows.values()]
    ax.barh(places + 0.27 * (number - 1), values, height=0.25, label=name, color=color)
ax.set(yticks=places, yticklabels=list(rows), xlabel="on 2000 test rows")
ax.invert_yaxis()
ax.legend(fontsize="small")
plt.show()

# %%
# What was found is a cost matrix, which explains the rule: rows are predictions, columns true
# labels.
model = cs.TaskLossClassifier("macro-f1", logistic, random_state=0).fit(X_train, y_train)
print(model.decision_costs_.round(2))
print("confusion of out-of-fold rows, the likeliest class:\n", model.rule_.before.round(3))
print("and now:\n", model.rule_.after.round(3))

# %%
# A requirement on recall holds on new rows because a margin is kept.
found = (y_train > 0).astype(int)
strict = cs.TaskLossClassifier("precision-at-recall:0.8", logistic, random_state=0)
strict.fit(X_train, found)
flagged = strict.predict(X_test) == 1
recall = flagged[y_test > 0].mean()
print(
    f"recall {recall:.3f}, precision {(y_test[flagged] > 0).mean():.3f}, slack {strict.rule_.slack}"
)
