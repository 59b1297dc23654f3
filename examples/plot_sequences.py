"""
Sequences: a chain knows what follows what
==========================================

Noisy letters of words over a small alphabet: each letter is hard to read alone, but some pairs of
letters never occur. A chain learns the transitions together with the letters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import consistruct as cs
from consistruct.metrics import sequence_error, token_error

rng = np.random.default_rng(0)
letters = np.array(list("abcde"))
# every letter is followed by one of two others
follow = np.zeros((5, 5))
for letter in range(5):
    follow[letter, (letter + 1) % 5] = 0.7
    follow[letter, (letter + 2) % 5] = 0.3


def word(length: int) -> np.ndarray:
    """One word as numbers of letters."""
    states = [rng.integers(5)]
    for _ in range(length - 1):
        states.append(rng.choice(5, p=follow[states[-1]]))
    return np.array(states)


def image(states: np.ndarray, noise: float) -> np.ndarray:
    """Five pixels per letter, (T, 5)."""
    return np.eye(5)[states] + rng.normal(0, noise, (len(states), 5))


# %%
# More noise makes single letters unreadable; the chain degrades later.

noises = [0.2, 0.5, 0.8, 1.1]
alone, chain = [], []
for noise in noises:
    words = [word(rng.integers(4, 12)) for _ in range(300)]
    X = [image(states, noise) for states in words]
    y = [letters[states] for states in words]
    model = cs.StructuredPredictor("hamming", "chain", random_state=0).fit(X[:150], y[:150])
    predicted = model.predict(X[150:])
    chain.append(token_error(y[150:], predicted))
    single = LogisticRegression(max_iter=500).fit(np.concatenate(X[:150]), np.concatenate(y[:150]))
    alone.append(np.mean(single.predict(np.concatenate(X[150:])) != np.concatenate(y[150:])))
    whole = sequence_error(y[150:], predicted)
    shown = f"{alone[-1]:.3f} alone, {chain[-1]:.3f} in a chain"
    print(f"noise {noise:.1f}: letters wrong {shown}; words wrong {whole:.3f}")


# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(noises, alone, "s--", color="#D55E00", label="each letter alone, logistic regression")
left.plot(noises, chain, "o-", color="#0072B2", label="chain, log loss")
left.set(
    xlabel="noise per pixel, standard deviation", ylabel="share of wrong letters", ylim=(0, None)
)
left.legend(frameon=False)
shown = model.model_.transitions_
picture = right.imshow(shown, cmap="cividis")
right.set(
    xlabel="next letter",
    ylabel="letter",
    xticks=range(5),
    yticks=range(5),
    xticklabels=letters,
    yticklabels=letters,
    title="learned transition scores",
)
figure.colorbar(picture, ax=right)
plt.show()
