"""Slow references for chains: enumeration and a log-space recursion, written in plain NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np


def all_states(T: int, s: int) -> np.ndarray:
    """(s^T, T), in lexicographic order."""
    return np.array(list(product(range(s), repeat=T)), dtype=np.int64).reshape(-1, T)


def score_all(unary: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every sequence of states with its score; edges (T, s, s), the last entry unread."""
    T, s = unary.shape
    states = all_states(T, s)
    scores = np.zeros(len(states))
    for t in range(T):
        scores = scores + unary[t, states[:, t]]
        if t < T - 1:
            scores = scores + edges[t, states[:, t], states[:, t + 1]]
    return states, scores


def enumerate_posterior(
    unary: np.ndarray, edges: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """log Z, P(y_t = a) and P(y_t = a, y_{t+1} = b) by listing all s^T sequences."""
    T, s = unary.shape
    states, scores = score_all(unary, edges)
    top = scores.max()
    weight = np.exp(scores - top)
    log_partition = top + np.log(weight.sum())
    p = weight / weight.sum()
    single, pair = np.zeros((T, s)), np.zeros((T, s, s))
    for t in range(T):
        np.add.at(single[t], states[:, t], p)
        if t < T - 1:
            np.add.at(pair[t], (states[:, t], states[:, t + 1]), p)
    return float(log_partition), single, pair


def log_space_posterior(
    unary: np.ndarray, edges: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """The same by forward-backward in logarithms, for sequences too long to list."""
    T, s = unary.shape
    forward, backward = np.empty((T, s)), np.zeros((T, s))
    forward[0] = unary[0]
    for t in range(1, T):
        forward[t] = np.logaddexp.reduce(forward[t - 1][:, None] + edges[t - 1], axis=0) + unary[t]
    for t in range(T - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(edges[t] + unary[t + 1] + backward[t + 1], axis=1)
    log_partition = np.logaddexp.reduce(forward[-1])
    single = np.exp(forward + backward - log_partition)
    pair = np.zeros((T, s, s))
    for t in range(T - 1):
        pair[t] = np.exp(
            forward[t][:, None] + edges[t] + unary[t + 1] + backward[t + 1] - log_partition
        )
    return float(log_partition), single, pair
