"""What held-out sequences say: the penalty to take, and how good weights are."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from consistruct.learning.models.chain.chain_weights import ChainWeights
from consistruct.learning.models.chain.sgd import ChainSGD, Steps, TrainingState
from consistruct.learning.models.chain.training_set import TrainingSet, hold_out
from consistruct.structures import Ragged
from consistruct.structures.chains import viterbi
from consistruct.surrogates.chains import ChainSurrogate

__all__ = [
    "FEWEST_SEQUENCES",
    "STRENGTHS",
    "choose_penalty",
    "held_out_risk",
    "search_epochs",
    "token_error",
]

logger = logging.getLogger(__name__)

# N·α, the weight of the penalty against one sequence: it carries over from a part to the whole
STRENGTHS = (1.0, 0.3, 0.1, 0.03)
FEWEST_SEQUENCES = 100  # fewer rank nothing
SEARCH_SEQUENCES = 2000
SEARCH_EPOCHS = 5
HELD_OUT = 0.25


def search_epochs(n: int) -> float:
    """What `choose_penalty` takes, in epochs over all of n sequences."""
    if n < FEWEST_SEQUENCES:
        return 0.0
    return len(STRENGTHS) * SEARCH_EPOCHS * min(1.0, SEARCH_SEQUENCES / n)


def choose_penalty(
    surrogate: ChainSurrogate,
    data: TrainingSet,
    start: TrainingState,
    steps: Steps,
    rng: np.random.Generator,
) -> tuple[float, dict[str, np.ndarray]]:
    """α of the least surrogate on held-out sequences, and what was compared.

    Each candidate is fitted by a few epochs on three quarters of (at most `SEARCH_SEQUENCES` of)
    the sequences. Fewer than `FEWEST_SEQUENCES` are not split: N·α is then the smallest candidate.
    """
    n = len(data.tokens)
    if n < FEWEST_SEQUENCES:
        return STRENGTHS[-1] / n, {}
    if n > SEARCH_SEQUENCES:
        data = data.take(np.sort(rng.choice(n, size=SEARCH_SEQUENCES, replace=False)))
    used, held_out = hold_out(data, HELD_OUT, rng)
    order = int(rng.integers(2**63))  # every candidate meets the sequences in the same order
    risks = []
    for strength in STRENGTHS:
        state = replace(start.copy(), alpha=strength / len(used.tokens))
        problem = ChainSGD(surrogate, used, state, steps)
        shuffle = np.random.default_rng(order)
        for _ in range(SEARCH_EPOCHS):
            problem.epoch(shuffle)
        risks.append(held_out_risk(surrogate, problem.state.average, held_out))
    best = STRENGTHS[int(np.argmin(risks))]
    logger.info("penalty: %g/N, held-out surrogate %.4f per token", best, min(risks))
    return best / n, {"alphas": np.array(STRENGTHS) / n, "held_out_risk": np.array(risks)}


def held_out_risk(surrogate: ChainSurrogate, weights: ChainWeights, data: TrainingSet) -> float:
    """Mean surrogate per token."""
    total = 0.0
    for first, last in data.tokens.runs(weights.tokens_at_once):
        begin, stop = data.tokens.offsets[first], data.tokens.offsets[last]
        offsets = data.tokens.offsets[first : last + 1] - begin
        phi = data.features(data.tokens.features[begin:stop], offsets)
        result = surrogate.value_and_gradient(
            weights.scores(phi, offsets), Ragged(data.states[begin:stop], offsets)
        )
        total += float(data.weights[first:last] @ result.values)
    return total / float(data.weights @ np.diff(data.tokens.offsets))


def token_error(weights: ChainWeights, data: TrainingSet) -> float:
    """Share of the tokens that Viterbi tags wrongly."""
    tokens = data.tokens
    phi = data.features(tokens.features, tokens.offsets)
    scores = weights.scores(phi, tokens.offsets)
    states = viterbi(scores).values
    return float((states != data.states).mean())
