"""A structure is one file and one registry line; CONTRIBUTING shows it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import consistruct as cs
from consistruct.structures import Classes, Orthonormalized, Structure
from consistruct.structures.registry import STRUCTURES, StructureEntry, parse_scores
from consistruct.testing import check_structure

PAGE = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"


@dataclass(frozen=True, eq=False, repr=False)
class Ring(Structure):
    """Score n places on a circle by F_j = (1, cos 2πj/n, sin 2πj/n)."""

    n: int

    @property
    def predictions(self):
        return Classes(self.n)

    @property
    def width(self):
        return 3

    def embed(self, labels):
        angle = 2 * np.pi * self.predictions.check(labels) / self.n
        return np.column_stack([np.ones(len(angle)), np.cos(angle), np.sin(angle)])


class NamedRing(Ring):
    """A ring that strings can name."""

    @classmethod
    def from_spec(cls, argument, loss):
        return None if argument else cls(loss.predictions.size)


def test_the_page_shows_this_class():
    assert inspect.getsource(Ring) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("n", [1, 2, 7])
def test_three_members_are_enough_for_every_check(n):
    check_structure(Ring(n))


def test_a_loss_that_it_expresses_is_learned_consistently_with_it():
    # ‖F_i − F_j‖² = 2 − 2 cos(difference of angles) lies in its span; k_eff = diam²/2
    F = Ring(24).matrix()
    loss = cs.losses.CostMatrix(4 - 2 * F @ F.T)
    assert Ring(24).effective_classes() == pytest.approx(4)
    # Theorem 7: H(ε) ≥ ε²/(4 k_eff), attained for some of the two labels farthest apart
    assert cs.calibration_function(loss, Ring(24))(0.5) >= 0.5**2 / 16 * (1 - 1e-9)
    assert Orthonormalized(Ring(24)).decode([[0.0, 0.0, 0.0]]).tolist() == [0]


def test_one_registry_line_lets_strings_name_it(monkeypatch):
    loss = cs.losses.ZeroOne(6)
    with pytest.raises(cs.exceptions.LossSpecError, match="unknown scores 'ring'"):
        parse_scores("ring", loss)
    monkeypatch.setitem(STRUCTURES, "ring", StructureEntry(NamedRing, (NamedRing(7),)))
    assert parse_scores("ring", loss) == NamedRing(6)
    with pytest.raises(cs.exceptions.LossSpecError, match="unknown scores 'ring:3'"):
        parse_scores("ring:3", loss)


def test_too_many_labels_are_refused_until_it_has_closed_forms():
    space = Ring(10**6)
    for action in (space.gram, lambda: space.rank, lambda: space.decode([[0.0, 1.0, 0.0]])):
        with pytest.raises(cs.exceptions.TooManyLabelsError, match=r"10000000?.* limit of 4096"):
            action()
