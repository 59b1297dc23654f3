"""Which method answers: tried in order, each says yes or why not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from consistruct.calibration.bounds import expresses
from consistruct.calibration.distributions import Distributions, parse_distributions
from consistruct.calibration.exact.mixed import MixedProver
from consistruct.calibration.exact.oracle import oracle_prover
from consistruct.calibration.hard_pairs import HardPairs, SampledPairs
from consistruct.calibration.methods.base import Method
from consistruct.calibration.methods.chain import ChainMethod
from consistruct.calibration.methods.explicit import PoolMethod
from consistruct.calibration.methods.explicit_full import ExplicitFullMethod
from consistruct.calibration.methods.oracle import BoundsMethod, OracleMethod
from consistruct.calibration.methods.restricted import RestrictedMethod
from consistruct.calibration.methods.sets import SetMethod
from consistruct.calibration.methods.structured import (
    ClosedFormMethod,
    HammingMethod,
    MixedMethod,
    SeparableHammingMethod,
)
from consistruct.calibration.oracle import OraclePair
from consistruct.calibration.problem import explicit_problem
from consistruct.calibration.structured import FORMS, HammingFull, closed_form
from consistruct.calibration.structured.chain_bounds import LONGEST
from consistruct.exceptions import ConsistructError
from consistruct.labels.base import ENUMERATION_LIMIT
from consistruct.losses.base import Loss
from consistruct.losses.fbeta import FBeta
from consistruct.losses.hamming import Hamming
from consistruct.scores import Blocks, Chain, Full
from consistruct.scores.base import BaseScoreSpace

__all__ = ["METHODS", "choose_method", "restricted_method"]

FAST_FROM = 20  # labels; compiling the fast route takes some seconds on first use
SET_LIMIT = 12  # labels of F-beta: hundreds of programs with hundreds of rows
POOL_LIMIT = 128  # predictable labels of the generic route: beyond it a quadratic program is slow

Choice = Method | str


def _try_closed_form(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    form = closed_form(loss, space) if isinstance(loss, tuple(FORMS)) else None
    if form is None:
        return "no closed form is known for this loss with these scores"
    for tries in (_try_orbits, _try_block_level):
        prover = tries(loss, space, jobs)
        if isinstance(prover, Method):
            return ClosedFormMethod(form, prover)
    assert isinstance(loss, Hamming)
    return ClosedFormMethod(form, SeparableHammingMethod(loss))


def _try_orbits(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    mixed = loss.block_mixture
    if mixed is None:
        return "the loss is not made of blocks"
    if not isinstance(space, Full) or space.measure != "uniform":
        return "orbits of labels are known for full scores and the uniform measure"
    partition, eta = mixed
    return MixedMethod(MixedProver(partition, Fraction(eta), "full"))


def _try_hamming_full(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    if not isinstance(loss, Hamming) or not isinstance(space, Full):
        return "the formula is for the Hamming loss with full scores"
    return HammingMethod(HammingFull(loss))


def _try_chain(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    if not isinstance(loss, Hamming) or not isinstance(space, Chain):
        return "flows along a chain are for the Hamming loss with chain scores"
    if loss.n_states != 2 or loss.T is None or loss.T > LONGEST:
        return f"flows along a chain are for two states and at most {LONGEST} parts"
    return ChainMethod(loss.T)


def _try_sets(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    if not isinstance(loss, FBeta) or space != loss.score_space:
        return "orbits of label sets are for F-beta with its own scores"
    if loss.sizes is not None or loss.empty == 0:
        return "orbits of label sets need all set sizes and a value for two empty sets"
    if loss.T > SET_LIMIT:
        return f"more than {SET_LIMIT} labels: the programs of orbits of label sets are slow"
    return SetMethod(loss)


def _try_block_level(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    mixed = loss.block_mixture
    if mixed is None or not isinstance(space, Blocks) or space.partition != mixed[0]:
        return "the scores are not those of the blocks of the loss"
    if space.measure != "uniform":
        return "orbits of blocks are known for the uniform measure"
    partition, eta = mixed
    return MixedMethod(MixedProver(partition, Fraction(eta), "blocks"))


def _too_many(loss: Loss) -> str | None:
    for labels in (loss.predictions, loss.truths):
        if labels.size is None:
            return f"{labels!r} is not a finite set"
        if labels.size > ENUMERATION_LIMIT:
            return f"more than {ENUMERATION_LIMIT} labels to list"
    return None


def _try_explicit_full(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    if not isinstance(space, Full):
        return "the fast route for listed labels is for full scores"
    if space.width < FAST_FROM:
        return f"fewer than {FAST_FROM} labels are solved before the fast route has been compiled"
    return _too_many(loss) or ExplicitFullMethod(loss, space, jobs)


def _try_pool(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    reason = _too_many(loss)
    if reason is not None:
        return reason
    if space.predictable().size > POOL_LIMIT:
        return f"more than {POOL_LIMIT} predictable labels"
    return PoolMethod(loss, space, explicit_problem(loss, space))


def _try_oracle(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    try:
        if not expresses(loss, space):
            return "the oracles need scores that express the loss"
        prover = oracle_prover(loss, space)
        if isinstance(loss, Hamming) and isinstance(space, Chain):
            return OracleMethod(loss, space, HardPairs(space), prover)
        guesses = SampledPairs(loss, space)
        for i, j in guesses.pairs(loss.max_value)[:1]:
            OraclePair(loss, space, i, j).solve(loss.max_value / 2)  # do all oracles answer?
    except ConsistructError as error:  # a missing capability, or labels that must be listed
        return str(error)
    return OracleMethod(loss, space, guesses, prover)


def _try_bounds(loss: Loss, space: BaseScoreSpace, jobs: int) -> Choice:
    if not expresses(loss, space):
        return "Theorem 7 needs scores that express the loss"
    return BoundsMethod(loss, space)


METHODS: tuple[Callable[[Loss, BaseScoreSpace, int], Choice], ...] = (
    _try_closed_form,
    _try_orbits,
    _try_hamming_full,
    _try_block_level,
    _try_explicit_full,
    _try_sets,
    _try_pool,
    _try_chain,
    _try_oracle,
    _try_bounds,
)


def choose_method(
    loss: Loss, space: BaseScoreSpace, jobs: int = 1
) -> tuple[Method, tuple[str, ...]]:
    """The first method that accepts, and why the earlier ones did not."""
    refusals: list[str] = []
    for tries in METHODS:
        found = tries(loss, space, jobs)
        if isinstance(found, Method):
            return found, tuple(refusals)
        refusals.append(f"{tries.__name__.removeprefix('_try_').replace('_', ' ')}: {found}")
    raise ConsistructError(
        f"no method computes the calibration function of {loss!r} with {space!r}: "
        + "; ".join(refusals)
    )


def restricted_method(
    loss: Loss, space: BaseScoreSpace, distributions: Distributions | str, jobs: int
) -> RestrictedMethod:
    """Over some distributions of the truth; raises, in one line, where labels are not listed."""
    if isinstance(distributions, str):
        distributions = parse_distributions(distributions)
    if not isinstance(distributions, Distributions):
        raise TypeError(
            "distributions must be a spec such as 'noise:0.05', or Capped, WithMargin, Noisy or "
            f"Constrained, got {type(distributions).__name__}"
        )
    reason = _too_many(loss)
    fast = isinstance(space, Full) and space.width >= FAST_FROM
    if reason is None and not fast and space.predictable().size > POOL_LIMIT:
        reason = f"more than {POOL_LIMIT} predictable labels"
    if reason is not None:
        raise ConsistructError(
            f"distributions= needs labels that can be listed: {reason}; omit it for {loss!r}"
        )
    return RestrictedMethod(loss, space, distributions, FAST_FROM, jobs)
