"""From a loss and a score family to its calibration function.

The ways to compute it are tried in order; each states whether it accepts the loss and the scores,
or why not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from consistruct._validation import check_cost_scale
from consistruct.calibration.bounds import expresses
from consistruct.calibration.curve import CalibrationFunction, Method
from consistruct.calibration.methods.explicit.method import PoolMethod
from consistruct.calibration.methods.explicit.restricted import RestrictedMethod
from consistruct.calibration.methods.explicit_full.method import ExplicitFullMethod
from consistruct.calibration.methods.nonquadratic import choose
from consistruct.calibration.methods.oracle.hard_pairs import HardPairs, SampledPairs
from consistruct.calibration.methods.oracle.method import BoundsMethod, OracleMethod
from consistruct.calibration.methods.oracle.pair import OraclePair
from consistruct.calibration.methods.orbits import HammingFull, closed_form
from consistruct.calibration.methods.orbits.chain import ChainMethod
from consistruct.calibration.methods.orbits.chain_bounds import LONGEST
from consistruct.calibration.methods.orbits.method import (
    ClosedFormMethod,
    HammingMethod,
    MixedMethod,
    SeparableHammingMethod,
)
from consistruct.calibration.methods.orbits.sets import SetMethod
from consistruct.calibration.problem.distributions import Distributions, parse_distributions
from consistruct.calibration.problem.listed import explicit_problem
from consistruct.calibration.proofs.provers.mixed import MixedProver
from consistruct.calibration.proofs.provers.oracle import oracle_prover
from consistruct.exceptions import ConsistructError, FamilyError
from consistruct.losses.base import Loss, as_loss
from consistruct.losses.fbeta import FBeta
from consistruct.losses.hamming import Hamming
from consistruct.structures import Decisions, Dense, Full, Oracle, Structure
from consistruct.structures.base import ENUMERATION_LIMIT
from consistruct.structures.operators import predictable_rows
from consistruct.surrogates import SURROGATES, BaseSurrogate, make_surrogate
from consistruct.surrogates.registry import SurrogateLike, analyzed_class

__all__ = [
    "METHODS",
    "LabelOrderWarning",
    "RankWarning",
    "calibration_function",
    "choose_method",
]

FAST_FROM = 20  # labels; compiling the fast route takes some seconds on first use
SET_LIMIT = 12  # labels of F-beta: hundreds of programs with hundreds of rows
POOL_LIMIT = 128  # predictable labels of the generic route: beyond it a quadratic program is slow

Choice = Method | str


class LabelOrderWarning(UserWarning):
    """The result depends on the order of labels that the scores cannot tell apart."""


class RankWarning(UserWarning):
    """Floats cannot tell how many directions a score matrix has."""


def calibration_function(
    loss: Loss | str,
    scores: Structure | str | Any = None,
    surrogate: SurrogateLike = "quadratic",
    decoding: str = "argmax",
    *,
    distributions: Distributions | str | None = None,
    jobs: int = 1,
) -> CalibrationFunction:
    """The exact, certified calibration function of a task loss.

    H(ε) = min ½‖f + P_F Lq‖²_μ over distributions q and scores f = Fθ whose prediction is worse by
    ε than the best predictable label. It is zero up to the consistency level, and the larger it is,
    the fewer examples it takes to learn.

    Parameters
    ----------
    loss : Loss or str
        A spec such as "zero-one:3" names a loss with its sizes.
    scores : None, "full", ScoreSpace or (k, r) array
        None: what the surrogate is trained with. For the quadratic one the loss's own span (always
        consistent); for others full scores, or one score per part and state for the log loss on
        `Hamming`. "full": one score per label. An array is F itself, one row per prediction.
    surrogate : str, surrogate class or surrogate
        A name of `surrogates.SURROGATES`: "quadratic", "logistic", "exponential", "square", "log"
        (CRF), "sparsemax", "hinge" (Crammer–Singer, structured SVM), "max-min-margin"; or a class
        of your own, derived from `surrogates.ABSurrogate`.
    decoding : "argmax" or "bayes"
        "bayes" takes argmin_c (Lp)_c of the estimated distribution p; for "log" and "sparsemax".
    distributions : Distributions or str, optional
        Only these distributions of the true label, instead of all: "noise:0.05" (sure labels but
        for noise of that rate), "margin:0.3" (the likeliest true label leads the second by that
        much), "cap:0.1" (no true label is surer than 0.9), or `Constrained` linear constraints. For
        listed labels and the quadratic surrogate.
    jobs : int
        Threads for explicit cost matrices with full scores.

    Returns
    -------
    CalibrationFunction
        Evaluates lazily; see its methods.

    Examples
    --------
    >>> import consistruct as cs
    >>> H = cs.calibration_function(cs.losses.Hamming(1000))
    >>> round(H(0.5), 8), H.effective_classes, H.consistency_level   # ε²/8T
    (3.125e-05, 2000.0, 0.0)
    >>> blocks = cs.structures.Blocks((2, 2, 2))
    >>> H = cs.calibration_function(cs.losses.Mixed((2, 2, 2), 0.2), blocks)
    >>> H.consistency_level, H.approximation_error
    (0.1, 0.2)
    >>> H = cs.calibration_function(cs.losses.ZeroOne(3), distributions="noise:0.2")
    >>> round(H(0.1) / cs.calibration_function(cs.losses.ZeroOne(3))(0.1), 6)   # (1−2η)²/ε²
    36.0
    >>> H = cs.calibration_function(cs.losses.ZeroOne(3), surrogate="hinge")   # Crammer–Singer
    >>> round(H.consistency_level, 9), round(H(0.75), 9)
    (0.5, 0.5)
    """
    loss = as_loss(loss)
    cls = analyzed_class(surrogate, decoding)
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be a positive integer, got {jobs!r}")
    if loss.solver is not None:
        return _of_decisions(loss, loss.solver, scores, cls, distributions)
    if loss.n_labels is None:
        raise FamilyError(loss, "have a calibration function")
    if loss.true_labels.size is None:
        raise ConsistructError(
            f"the calibration function needs finitely many true labels, but {loss!r} has "
            "infinitely "
            "many; list those that occur as the columns of losses.CostMatrix"
        )
    check_cost_scale(loss.max_value)
    other = cls.excess != "square"
    if other and distributions is not None:
        raise ConsistructError(
            "distributions= works only with the quadratic surrogate, whose excess risk depends "
            f"on the expected losses alone; got {cls.name!r}"
        )
    if scores is not None:
        space = _as_space(loss, scores)
    elif isinstance(surrogate, BaseSurrogate):
        space = make_surrogate(surrogate, loss).score_space
    else:
        space = cls.default_scores(loss)
    if space.predictions.size is None:
        raise FamilyError(space, "be compared with a loss")
    if space.predictions.size != loss.n_labels:
        raise ValueError(
            f"scores are over {space.predictions.size} predictions, the loss over {loss.n_labels}"
        )
    _warn_of_label_order(loss, space)
    _warn_of_rank(space)
    if other:
        built = make_surrogate(surrogate, loss, None if scores is None else space)
        method, refusals = choose(built, decoding)
        return CalibrationFunction(loss, space, method, refusals, cls.name, decoding)
    if distributions is not None:
        restricted = restricted_method(loss, space, distributions, jobs)
        return CalibrationFunction(
            loss, space, restricted, (), distributions=restricted.distributions
        )
    method, refusals = choose_method(loss, space, jobs)
    return CalibrationFunction(loss, space, method, refusals)


def _of_decisions(
    loss: Loss, solver: Oracle, scores: Any, cls: type[BaseSurrogate], distributions: Any
) -> CalibrationFunction:
    """Theorem 7 from the diameter of the decisions: costs are not a finite set of true labels."""
    if cls.excess != "square":
        raise ConsistructError(
            f"of the surrogates of decisions only 'quadratic' is analyzed, got {cls.name!r}: "
            + (SURROGATES[cls.name].not_analyzed if cls.name in SURROGATES else "")
        )
    if distributions is not None:
        raise ConsistructError(
            "distributions= needs true labels that can be listed, which costs cannot"
        )
    if isinstance(scores, str) and scores == "uniform":
        scores = Decisions(solver, "uniform")
    space = loss.score_space if scores is None else scores
    if not isinstance(space, Decisions) or space.oracle != solver:
        raise ConsistructError(
            "decisions have their own scores: leave scores out, or pass 'uniform' for the "
            f"uniform measure on decisions, got {scores!r}"
        )
    return CalibrationFunction(
        loss,
        space,
        BoundsMethod(loss, space),
        ("every method but bounds: costs and decisions are not listed",),
    )


def _as_space(loss: Loss, scores: Any) -> Structure:
    if isinstance(scores, Structure):
        return scores
    if isinstance(scores, str):
        if scores == "full":
            return Full(loss)
        raise ValueError(f"scores must be None, 'full', a score space or an array, got {scores!r}")
    return Dense(np.asarray(scores), over=loss.predictions)


def _warn_of_label_order(loss: Loss, space: Structure) -> None:
    """Name the labels that only their place in the order keeps in or out of pred(F).

    Where the scores express the loss it does not matter: a label that ties with others whenever it
    wins lies between them, in its scores and in its loss.
    """
    size = space.predictions.size
    if space.partition is not None and space.partition == loss.partition:
        return  # labels of a block are alike
    if size is None or size > ENUMERATION_LIMIT or expresses(loss, space):
        return
    if not space.predictable().order_matters:
        return
    F, L = space.matrix(), loss.matrix()
    groups: dict[bytes, list[int]] = {}
    for label, row in enumerate(F):
        groups.setdefault(row.tobytes(), []).append(label)
    merged = [
        group
        for group in groups.values()
        if len(group) > 1 and len(np.unique(L[group], axis=0)) > 1
    ]
    if merged:
        warnings.warn(
            f"the scores cannot tell apart labels with different losses, {_some(loss, merged)}; "
            "only the first of a group can be predicted, so the result depends on the order of "
            "the labels",
            LabelOrderWarning,
            stacklevel=3,
        )
        return
    # a label is no vertex of conv F iff it loses its ties in this order or in the reverse one
    first = np.array([group[0] for group in groups.values()])
    rows = F[first]
    forward, _ = predictable_rows(rows)
    backward, _ = predictable_rows(rows[::-1])
    outright = np.intersect1d(forward, len(rows) - 1 - backward)
    inside = first[np.setdiff1d(np.arange(len(rows)), outright)].tolist()
    if inside:
        warnings.warn(
            f"the labels {_some(loss, inside)} cannot win outright under these scores; whether "
            "they win ties, and hence the result, depends on the order of the labels",
            LabelOrderWarning,
            stacklevel=3,
        )


def _warn_of_rank(space: Structure) -> None:
    """Say where the exact rank of a score matrix is not what floats make of it, or not known."""
    if not getattr(space, "rank_is_exact", True):
        warnings.warn(
            f"the rank of {_shape(space)} is an estimate, {space.rank}: there are too many for "
            "exact arithmetic; the result is numerical, not certified; omit dependent columns",
            RankWarning,
            stacklevel=3,
        )
    elif lost := getattr(space, "lost_directions", 0):
        warnings.warn(
            f"{_shape(space)} have rank {space.rank} exactly, but floats tell only "
            f"{space.rank - lost} directions apart; the result is about the numbers exactly as "
            "given; if these are rounded, omit dependent columns",
            RankWarning,
            stacklevel=3,
        )


def _shape(space: Structure) -> str:
    return f"scores with {space.width} columns for {space.predictions.size} labels"


def _some(loss: Loss, labels: Sequence[Any]) -> str:
    """The first few labels or groups of labels, by name where they have names."""
    names = getattr(loss.predictions, "names", None)

    def show(label: Any) -> str:
        if isinstance(label, list):
            return "[" + ", ".join(show(member) for member in label) + "]"
        return str(label) if names is None else str(names[label])

    return ", ".join(show(label) for label in labels[:5]) + (", …" if len(labels) > 5 else "")


# --- which method is used ---


def _try_closed_form(loss: Loss, space: Structure, jobs: int) -> Choice:
    structured = loss.block_mixture is not None or loss.hamming_shape is not None
    form = closed_form(loss, space) if structured else None
    if form is None:
        return "no closed form is known for this loss with these scores"
    for tries in (_try_orbits, _try_block_level):
        prover = tries(loss, space, jobs)
        if isinstance(prover, Method):
            return ClosedFormMethod(form, prover)
    assert loss.hamming_shape is not None
    return ClosedFormMethod(form, SeparableHammingMethod(Hamming(*loss.hamming_shape)))


def _try_orbits(loss: Loss, space: Structure, jobs: int) -> Choice:
    mixed = loss.block_mixture
    if mixed is None:
        return "the loss is not made of blocks"
    if not space.one_per_label or space.measure != "uniform":
        return "orbits of labels are known for full scores and the uniform measure"
    partition, eta = mixed
    return MixedMethod(MixedProver(partition, Fraction(eta), "full"))


def _try_hamming_full(loss: Loss, space: Structure, jobs: int) -> Choice:
    if loss.hamming_shape is None or not space.one_per_label:
        return "the formula is for the Hamming loss with full scores"
    return HammingMethod(HammingFull(Hamming(*loss.hamming_shape)))


def _try_chain(loss: Loss, space: Structure, jobs: int) -> Choice:
    if loss.hamming_shape is None or space.linked_states is None:
        return "flows along a chain are for the Hamming loss with chain scores"
    T, n_states = loss.hamming_shape
    if n_states != 2 or T is None or T > LONGEST:
        return f"flows along a chain are for two states and at most {LONGEST} parts"
    return ChainMethod(T)


def _try_sets(loss: Loss, space: Structure, jobs: int) -> Choice:
    if not isinstance(loss, FBeta) or space != loss.score_space:
        return "orbits of label sets are for F-beta with its own scores"
    if loss.sizes is not None or loss.empty == 0:
        return "orbits of label sets need all set sizes and a value for two empty sets"
    if loss.T > SET_LIMIT:
        return f"more than {SET_LIMIT} labels: the programs of orbits of label sets are slow"
    return SetMethod(loss)


def _try_block_level(loss: Loss, space: Structure, jobs: int) -> Choice:
    mixed = loss.block_mixture
    if mixed is None or space.partition != mixed[0]:
        return "the scores are not those of the blocks of the loss"
    if space.measure != "uniform":
        return "orbits of blocks are known for the uniform measure"
    partition, eta = mixed
    return MixedMethod(MixedProver(partition, Fraction(eta), "blocks"))


def _too_many(loss: Loss) -> str | None:
    for labels in (loss.predictions, loss.true_labels):
        if labels.size is None:
            return f"{labels!r} is not a finite set"
        if labels.size > ENUMERATION_LIMIT:
            return f"more than {ENUMERATION_LIMIT} labels to list"
    return None


def _try_explicit_full(loss: Loss, space: Structure, jobs: int) -> Choice:
    if not space.one_per_label:
        return "the fast route for listed labels is for full scores"
    if space.width < FAST_FROM:
        return f"fewer than {FAST_FROM} labels are solved before the fast route has been compiled"
    return _too_many(loss) or ExplicitFullMethod(loss, space, jobs)


def _try_pool(loss: Loss, space: Structure, jobs: int) -> Choice:
    reason = _too_many(loss)
    if reason is not None:
        return reason
    if space.predictable().size > POOL_LIMIT:
        return f"more than {POOL_LIMIT} predictable labels"
    return PoolMethod(loss, space, explicit_problem(loss, space))


def _try_oracle(loss: Loss, space: Structure, jobs: int) -> Choice:
    try:
        if not expresses(loss, space):
            return "the oracles need scores that express the loss"
        prover = oracle_prover(loss, space)
        if loss.hamming_shape is not None and space.linked_states is not None:
            return OracleMethod(loss, space, HardPairs(space), prover)
        guesses = SampledPairs(loss, space)
        for i, j in guesses.pairs(loss.max_value)[:1]:
            OraclePair(loss, space, i, j).solve(loss.max_value / 2)  # do all oracles work?
    except ConsistructError as error:  # a missing capability, or labels that must be listed
        return str(error)
    return OracleMethod(loss, space, guesses, prover)


def _try_bounds(loss: Loss, space: Structure, jobs: int) -> Choice:
    if not expresses(loss, space):
        return "Theorem 7 needs scores that express the loss"
    return BoundsMethod(loss, space)


METHODS: tuple[Callable[[Loss, Structure, int], Choice], ...] = (
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


def choose_method(loss: Loss, space: Structure, jobs: int = 1) -> tuple[Method, tuple[str, ...]]:
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
    loss: Loss, space: Structure, distributions: Distributions | str, jobs: int
) -> RestrictedMethod:
    """Over some distributions of the label; raises, in one line, where labels are not listed."""
    if isinstance(distributions, str):
        distributions = parse_distributions(distributions)
    if not isinstance(distributions, Distributions):
        raise TypeError(
            "distributions must be a spec such as 'noise:0.05', or Capped, WithMargin, Noisy or "
            f"Constrained, got {type(distributions).__name__}"
        )
    reason = _too_many(loss)
    fast = space.one_per_label and space.width >= FAST_FROM
    if reason is None and not fast and space.predictable().size > POOL_LIMIT:
        reason = f"more than {POOL_LIMIT} predictable labels"
    if reason is not None:
        raise ConsistructError(
            f"distributions= needs labels that can be listed: {reason}; omit it for {loss!r}"
        )
    return RestrictedMethod(loss, space, distributions, FAST_FROM, jobs)
