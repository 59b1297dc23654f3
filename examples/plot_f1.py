"""
F1 on label sets: more than a threshold at one half
===================================================

Rare labels, judged by the F1 of each example's set. Thresholding probabilities at 1/2 is right
for the Hamming loss; for F1 the best set depends on how sure the model is of all labels together,
and the decoder finds it exactly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import consistruct as cs

X, Y = make_multilabel_classification(
    n_samples=900, n_features=30, n_classes=8, n_labels=2, length=25, random_state=0
)
X_train, X_test, Y_train, Y_test = X[:450], X[450:], Y[:450], Y[450:]
f1 = cs.losses.FBeta(8)

logistic = MultiOutputClassifier(LogisticRegression(max_iter=1000)).fit(X_train, Y_train)
models = {
    "logistic regression at 1/2": logistic,
    "trained for Hamming": cs.StructuredPredictor(loss="hamming", random_state=0).fit(
        X_train, Y_train
    ),
    "trained for F1": cs.StructuredPredictor(loss=f1, random_state=0).fit(X_train, Y_train),
}
scores = {name: 1 - f1(model.predict(X_test), Y_test) for name, model in models.items()}
for name, score in scores.items():
    labels = models[name].predict(X_test).sum(axis=1).mean()
    print(f"{name:27s} mean F1 {score.mean():.3f}, labels per example {labels:.2f}")
print(f"true labels per example {Y_test.sum(axis=1).mean():.2f}")

# %%
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
means = [score.mean() for score in scores.values()]
errors = [1.96 * score.std() / np.sqrt(len(score)) for score in scores.values()]
ax.barh(list(scores), means, xerr=errors, color=["#6b6b6b", "#56B4E9", "#D55E00"], height=0.6)
ax.invert_yaxis()
ax.set(xlabel="mean F1 over 450 test examples (bars: 95 %)", xlim=(0.4, 0.8))
plt.show()

# %%
# The exact answer to "which set?" under uncertain labels. Three true labels are possible. Three of
# the four labels have probabilities below one half, and yet the best set for F1 holds all four.

small = cs.losses.FBeta(4)
true_labels = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
p = np.array([0.35, 0.35, 0.3])
theta = -(p @ small.target(true_labels).toarray())
print("marginals", p @ true_labels, " best set for F1", small.score_space.decode(theta[None])[0])
