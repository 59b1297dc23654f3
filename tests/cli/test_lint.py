"""``consistruct lint``: text, JSON and the picture of regions."""

from __future__ import annotations

import json
import sys

import pytest

import consistruct as cs
from consistruct import cli

COSTS = "true\\pred,wait,test,treat\nwell,0,1,6\nill,10,3,2\n"


@pytest.fixture
def lint(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costs.csv").write_text(COSTS)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["consistruct", "lint", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


def test_a_cost_file_as_text(lint):
    code, out, err = lint("cost:costs.csv")
    assert (code, err) == (0, "")
    # 10 q against (1 − q) + 3 q: 1/8; (1 − q) + 3 q against 6 (1 − q) + 2 q: 5/6
    assert "predict wait while P(ill) is at most 1/8, test up to 5/6, treat" in " ".join(
        out.split()
    )
    assert "not examined: recipes" in out


def test_json_is_what_python_returns(lint):
    code, out, _ = lint("cost:costs.csv", "--json")
    assert code == 0
    assert json.loads(out) == json.loads(json.dumps(cs.lint("cost:costs.csv").as_dict()))


def test_regions_of_three_true_labels_are_drawn(lint, tmp_path):
    code, out, _ = lint("abstain:3:0.3", "--plot", "regions.svg")
    assert code == 0
    assert "written: regions.svg" in out
    assert "no answer" in (tmp_path / "regions.svg").read_text(encoding="utf-8")
    code, _, err = lint("cost:costs.csv", "--plot", "regions.svg")
    assert code == 2
    assert "regions of three true labels" in err
