"""The conformance checks themselves: each deliberately broken member must be caught, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest

from consistruct._members import ArrayField
from consistruct.losses import Block, CostMatrix, Hamming, LabelCosts, PartialLabels, ZeroOne
from consistruct.losses.base import dense_target
from consistruct.structures import Chain, Classes, Dense, Full, Product, Separable
from consistruct.structures.base import EffectiveClasses, Predictable
from consistruct.structures.classes import Partition
from consistruct.structures.operators import DiagonalGram, FunctionMap, MatrixMap
from consistruct.testing import check_huge_loss, check_huge_structure, check_loss, check_structure
from consistruct.testing.labels import check_label_set
from consistruct.testing.members import check_member


class WrongTarget(ZeroOne):
    def target(self, true):
        return 0.99 * super().target(true)


class SingleTarget(ZeroOne):
    def target(self, true):
        return dense_target(super().target(true)).astype(np.float32)


class WrongOffset(Hamming):
    def offset(self, true):
        return super().offset(true) + 1e-3


class WrongMaximum(ZeroOne):
    @property
    def max_value(self):
        return 2.0


class WrongWorstTrueLabel(Block):
    def worst_true_label(self, direction, offset_weight=0.0):
        values, true_labels = super().worst_true_label(direction, offset_weight)
        return values, (true_labels + 1) % self.n_labels


class NegativeLoss(ZeroOne):
    def _value(self, pred, true):
        return super()._value(pred, true) - 1.0


class TooLargeSpan(Block):
    """Right values and targets, but one score per label where one per block is enough."""

    @cached_property
    def score_space(self):
        return Full(self.partition.n_labels)

    @property
    def partition(self):
        return Block(self.sizes).score_space.partition

    def target(self, true):
        every = self.partition.block_of(np.arange(self.partition.n_labels))
        return -(every[np.asarray(true)][:, None] == every[None, :]).astype(np.float64)

    def worst_true_label(self, direction, offset_weight=0.0):
        return super(Block, self).worst_true_label(direction, offset_weight)


class OverlappingGroups(Hamming):
    def target_groups(self):
        return (np.arange(4), np.arange(3, 6))


class CarelessGroups(Hamming):
    def target_groups(self):
        found = super().target_groups()
        assert found is not None
        return found[1:]


class UnevenCandidates(PartialLabels):
    def single_true_labels(self, true):
        single, rows, share = super().single_true_labels(true)
        return single, rows, np.ones_like(share)


class ClaimsParts(CostMatrix):
    @property
    def hamming_shape(self):
        return 1, 3


class ClaimsShare(LabelCosts):
    @property
    def hamming_shape(self):
        return 2, 2


class ClaimsBlocks(Hamming):
    @property
    def block_mixture(self):
        return Partition(sizes=(4, 4)), 0.5


class ClaimsOneCost(CostMatrix):
    is_zero_one = True


class ClaimsCosts(ZeroOne):
    takes_cost_vectors = True


class ClaimsAnswer(ZeroOne):
    abstain_index = 3


class Mutating(CostMatrix):
    def target(self, true):
        if isinstance(true, np.ndarray) and len(true) > 1:
            true[0] = 0
        return super().target(true)


@pytest.mark.parametrize(
    ("loss", "contract"),
    [
        (WrongTarget(3), "offset .* equals the direct formula"),
        (ClaimsParts([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), "hamming_shape names"),
        (ClaimsShare([4.0, 1.0], [1.0, 1.0]), "share of wrong parts"),
        (ClaimsBlocks(3), "block_mixture"),
        (ClaimsOneCost([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), "is_zero_one"),
        (ClaimsCosts(3), "takes_cost_vectors"),
        (ClaimsAnswer(3), "abstain_index"),
        (SingleTarget(3), "target is float64"),
        (WrongOffset(2), "offset .* equals the direct formula"),
        (WrongMaximum(3), "max_value is the largest loss"),
        (WrongWorstTrueLabel((1, 2)), "worst_true_label names a true label"),
        (NegativeLoss(3), "finite and non-negative"),
        (TooLargeSpan((2, 3)), "smallest with the constant"),
        (OverlappingGroups(3), "disjoint columns"),
        (CarelessGroups(3), "columns in no group"),
        (UnevenCandidates(ZeroOne(3), "average"), "weighted mean over single_true_labels"),
    ],
)
def test_broken_losses_are_caught(loss, contract):
    with pytest.raises(AssertionError, match=contract):
        check_loss(loss)


def test_writing_into_the_input_is_caught():
    with pytest.raises(AssertionError, match=r"valid input; ValueError: .* read-only"):
        check_loss(Mutating([[0, 1], [1, 0]]))


class WrongRank(Separable):
    @property
    def rank(self):
        return self.width


class WrongGram(Full):
    def gram(self):
        return DiagonalGram(np.linspace(0.5, 1.5, self.width) / self.width)


class NoiseGram(DiagonalGram):
    def solve(self, theta):
        return super().solve(theta) * 1.001


class WrongSolve(Full):
    def gram(self):
        return NoiseGram(np.full(self.width, 1 / self.width))


class WrongSpectrum(DiagonalGram):
    def eigenvalues(self):
        return np.array([2 / self.width, 1 / self.width]), (1, self.width - 1)


class SpectrumSpace(Full):
    def gram(self):
        return WrongSpectrum(np.full(self.width, 1 / self.width))


class WrongDecoder(Chain):
    """Ignores the edges."""

    def decode(self, theta):
        parts = Separable(self.T, self.n_states)
        return parts.decode(np.asarray(theta)[:, : parts.width])


class WrongPredictable(Dense):
    def predictable(self):
        return Predictable(len(self.F))


class WrongEffective(Separable):
    def effective_classes(self):
        return EffectiveClasses(4.0, exact=True, measure="uniform")


class WrongCoordinates(Chain):
    def coordinates(self, other):
        found = super().coordinates(other)
        return FunctionMap(lambda theta: 2 * found(theta), found.transpose)


class WrongTranspose(Chain):
    def coordinates(self, other):
        found = super().coordinates(other)
        return FunctionMap(found, lambda theta: 2 * found.transpose(theta))


class WrongCrossGram(Full):
    def cross_gram(self, other):
        return MatrixMap(np.zeros((self.width, other.width)))


class WrongConstant(Dense):
    @property
    def contains_constant(self):
        return True


class WrongMean(Full):
    def mean_embedding(self):
        return np.zeros(self.width)


@pytest.mark.parametrize(
    ("space", "contract"),
    [
        (WrongRank(3), "rank is the rank of F"),
        (WrongGram(4), "gram.dense is E_c"),
        (WrongSolve(4), "pseudo-inverse"),
        (SpectrumSpace(4), "eigenvalues are those"),
        (WrongDecoder(2, 2), "wrong shape|largest score"),
        (WrongPredictable([[0, 1], [0.5, 0.5], [1, 0], [0.4, 0.4]]), "predictable is pred"),
        (WrongEffective(3), "effective_classes is half"),
        (WrongCoordinates(3, 2), "preserve all scores|cross_gram"),
        (WrongTranspose(3, 2), "right transpose"),
        (WrongCrossGram(3), "cross_gram"),
        (WrongConstant([[0.0], [1.0]]), "contains_constant"),
        (WrongMean(3), "mean_embedding"),
    ],
)
def test_broken_spaces_are_caught(space, contract):
    with pytest.raises(AssertionError, match=contract):
        check_structure(space)


class LastTie(Full):
    def decode(self, theta):
        flipped = np.asarray(super().decode(np.asarray(theta)[:, ::-1]))
        return len(np.asarray(theta)[0]) - 1 - flipped if len(flipped) else flipped


class AllowsForbidden(Full):
    def decode(self, theta):
        return super().decode(np.where(np.isneginf(theta), 0.0, theta))


class AllowsNan(Full):
    def decode(self, theta):
        return super().decode(np.nan_to_num(theta, nan=0.0, posinf=1e9, neginf=-np.inf))


class NoEmptyBatch(Full):
    def decode(self, theta):
        return super().decode(np.asarray(theta).reshape(-1, len(theta[0])))


class Sorts(Full):
    def decode(self, theta):
        found = super().decode(theta)
        np.asarray(theta).sort(axis=1)
        return found


class GreedyViterbi(Chain):
    """Best first state, then the best next state: not the best sequence."""

    def decode(self, theta):
        T, s = self.T, self.n_states
        assert T is not None
        scores = super().decode(theta)  # checks the input
        theta = np.asarray(theta, dtype=np.float64)
        for row, values in enumerate(theta):
            unary, edges = values[: T * s].reshape(T, s), values[T * s :].reshape(T - 1, s, s)
            scores[row, 0] = unary[0].argmax()
            for t in range(1, T):
                scores[row, t] = (unary[t] + edges[t - 1, scores[row, t - 1]]).argmax()
        return scores


@pytest.mark.parametrize(
    ("space", "contract"),
    [
        (LastTie(4), "smallest index"),
        (AllowsForbidden(4), "no label left|forbids"),
        (AllowsNan(4), "nan raises ValueError"),
    ],
)
def test_broken_decoders_are_caught(space, contract):
    with pytest.raises(AssertionError, match=contract):
        check_structure(space)


def test_other_broken_decoders():
    with pytest.raises(AssertionError, match="every method runs on valid input; IndexError"):
        check_structure(NoEmptyBatch(4))
    with pytest.raises(AssertionError, match="decoding is deterministic"):
        check_structure(Sorts(4))
    with pytest.raises(AssertionError, match="largest score"):
        check_structure(GreedyViterbi(4, 2))


class WrongIndex(Product):
    def index(self, labels):
        return super().index(np.asarray(labels)[:, ::-1])


class BiasedSample(Classes):
    def sample(self, n, rng):
        return rng.integers(self.size, size=n) // 2


class NoLimit(Classes):
    def enumerate(self, *, limit=4096):
        return np.arange(self.size)


class Accepting(Classes):
    def check(self, labels, name="labels"):
        return super().check(np.clip(labels, 0, self.size - 1), name)


@pytest.mark.parametrize(
    ("labels", "contract"),
    [
        (WrongIndex(3), "index order"),
        (BiasedSample(6), "draws from the reference measure"),
        (NoLimit(4), "enumerate raises above its limit"),
        (Accepting(4), "out of range"),
    ],
)
def test_broken_label_sets_are_caught(labels, contract):
    with pytest.raises(AssertionError, match=contract):
        check_label_set(labels)


@dataclass(eq=False, repr=False)
class Thawed:
    k: int


@dataclass(frozen=True)
class ByIdentity:
    values: ArrayField = field(default_factory=lambda: np.zeros(2))


class BadRepr(ZeroOne):
    def __repr__(self):
        return "ZeroOne(99)"


def test_broken_members_are_caught():
    with pytest.raises(AssertionError, match="members are frozen"):
        check_member(Thawed(3))
    with pytest.raises(AssertionError, match="read-only"):
        check_member(ByIdentity())
    with pytest.raises(AssertionError, match="repr is code"):
        check_member(BadRepr(3))


class HugeWrongTarget(Hamming):
    def target(self, true):
        return 0.5 * super().target(true)


class Densifying(ZeroOne):
    def target(self, true):
        return np.zeros((len(true), 5))


class HugeWrongRank(Separable):
    @property
    def rank(self):
        return super().rank - 1


def test_broken_huge_members_are_caught():
    with pytest.raises(AssertionError, match="equals the direct formula"):
        check_huge_loss(HugeWrongTarget(300))
    with pytest.raises(AssertionError, match="target over too many labels"):
        check_huge_loss(Densifying(2**300))
    with pytest.raises(AssertionError, match="above 2\\^200"):
        check_huge_loss(Hamming(10))
    with pytest.raises(AssertionError, match="add up to the rank"):
        check_huge_structure(HugeWrongRank(300))
