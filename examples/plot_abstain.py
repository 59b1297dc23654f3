"""
Ask a person when it is cheaper
===============================

A wrong digit costs 1, asking a person a fixed price. The loss has one more prediction, "no answer".
Deciding when to ask takes good probabilities, so here the choice of surrogate matters: the log
loss with Bayes decoding estimates them; the quadratic surrogate is consistent too, but with linear
features and few data it does so too often.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import consistruct as cs

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = X + rng.normal(0, 4, X.shape)  # poor images, so that some are beyond reading
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=600, random_state=0, stratify=y
)

# %%
# Nothing is tuned: the penalty of the log loss is chosen on held-out training rows, that of the
# quadratic surrogate by leave-one-out.

log_loss = cs.models.Linear("log", features="linear", standardize=True)
quadratic = cs.models.Ridge("linear", standardize=True)
model = cs.TaskLossClassifier("zero_one", log_loss, random_state=0).fit(X_train, y_train)
always = -model.score(X_test, y_test)
print(f"always answering: {always:.1%} wrong")

prices = [0.05, 0.1, 0.3, 0.5, 0.7]
models = {"log loss, Bayes decoding": log_loss, "quadratic": quadratic}
answered, wrong, cost = ({name: [] for name in models} for _ in range(3))
for name, inner in models.items():
    for price in prices:
        loss = cs.losses.Abstain(10, price)
        model = cs.StructuredPredictor(loss, inner, random_state=0)
        predicted = model.fit(X_train, y_train).predict(X_test)
        given = predicted < 10  # label 10 means "no answer"
        answered[name].append(given.mean())
        wrong[name].append(np.mean(predicted[given] != y_test[given]))
        cost[name].append(loss(predicted, y_test).mean())
    shown = ", ".join(f"{value:.3f}" for value in cost[name])
    print(f"{name}: mean cost {shown}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
styles = {"log loss, Bayes decoding": ("o-", "#0072B2"), "quadratic": ("s--", "#D55E00")}
for name, (line, color) in styles.items():
    left.plot(answered[name], wrong[name], line, color=color, label=name)
    right.plot(prices, cost[name], line, color=color, label=name)
left.set(
    xlabel="share of images answered",
    ylabel="share of wrong answers among these",
    title="One point per price",
    ylim=(0, None),
)
left.legend(frameon=False)
right.axhline(always, ls="-.", color="#6b6b6b", label="always answering")
right.plot(prices, prices, ":", color="#6b6b6b", label="always asking")
right.set(xlabel="price of asking", ylabel="mean cost", ylim=(0, 0.32), title="What it costs")
right.legend(frameon=False, loc="lower right")
plt.show()
