"""
Ask a person when it is cheaper
===============================

A wrong digit costs 1, asking a person a fixed price. The loss has one more prediction, "no
answer"; the model learns when it is worth its price, with no threshold to tune.
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
    X, y, train_size=400, random_state=0, stratify=y
)

prices = [0.1, 0.3, 0.5, 0.7]
answered, wrong, cost = [], [], []
for price in prices:
    loss = cs.losses.Abstain(10, price)
    model = cs.StructuredPredictor(loss=loss, random_state=0).fit(X_train, y_train)
    predicted = model.predict(X_test)
    given = predicted < 10  # label 10 means "no answer"
    answered.append(given.mean())
    wrong.append(np.mean(predicted[given] != y_test[given]))
    cost.append(loss(predicted, y_test).mean())
    print(f"price {price:.2f}: answers {given.mean():.0%}, of these {wrong[-1]:.1%} wrong")
model = cs.TaskLossClassifier(loss="zero_one", random_state=0).fit(X_train, y_train)
always = np.mean(model.predict(X_test) != y_test)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(answered, wrong, "o-", color="#0072B2")
for price, x, height in zip(prices, answered, wrong, strict=True):
    left.annotate(f"{price:g}", (x, height), xytext=(-4, 6), textcoords="offset points", ha="right")
left.set(
    xlabel="share of images answered",
    ylabel="share of wrong answers among these",
    title="Labels: price of asking",
    ylim=(0, None),
)
left.margins(x=0.12)
right.plot(prices, cost, "o-", color="#0072B2", label="trained with the price")
right.axhline(always, ls="--", color="#D55E00", label="always answering")
right.plot(prices, prices, ":", color="#6b6b6b", label="always asking")
right.set(xlabel="price of asking", ylabel="mean cost", ylim=(0, 0.3))
right.legend(frameon=False)
plt.show()
