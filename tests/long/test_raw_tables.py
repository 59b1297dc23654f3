"""Ten tables in their raw form go from file to report with no flag but target and loss."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from typer.testing import CliRunner

from consistruct.cli import app

RNG = np.random.default_rng(0)
N = 240


def sklearn_table(load, every=1):
    data = load(as_frame=True)
    return data.data.assign(y=np.asarray(data.target_names)[data.target])[::every]


def patients():
    """Numbers, words and dates, the true label a grade."""
    data = load_diabetes(as_frame=True, scaled=False).frame
    grade = np.array(["low", "middle", "high"])[np.digitize(data["target"], [90, 180])]
    sex = np.where(data["sex"] == 1, "female", "male")
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(data)) % 90, unit="D")
    return data.drop(columns="target").assign(sex=sex, seen=seen, y=grade)


def gaps():
    """Three cells in ten are missing."""
    table = sklearn_table(load_wine)
    for name in table.columns[:-1]:
        table.loc[RNG.random(len(table)) < 0.3, name] = np.nan
    return table


def many_categories():
    """A column of up to 10,000 categories, another that tells the true label."""
    n = 12_000
    shop = RNG.integers(10_000, size=n)
    color = RNG.choice(["red", "green", "blue"], n)
    return pd.DataFrame(
        {
            "shop": [f"shop {i}" for i in shop],
            "color": color,
            "price": RNG.normal(size=n),
            "y": np.where((color == "red") | (RNG.random(n) < 0.1), "buy", "leave"),
        }
    )


def constants():
    """A hundred columns, sixty of them constant."""
    table = pd.DataFrame(RNG.normal(size=(N, 100)), columns=[f"c{j}" for j in range(100)])
    table.iloc[:, 40:] = 7
    return table.assign(y=np.where(table["c0"] + table["c1"] > 0, 1, 0))


def words():
    answers = ["yes", "no", "maybe", "n/a"]
    table = pd.DataFrame({f"q{j}": RNG.choice(answers, N) for j in range(8)})
    return table.assign(y=np.where(table["q3"] == "yes", "agrees", "declines"))


TABLES = {
    "iris.csv": lambda: sklearn_table(load_iris),
    "wine.csv": lambda: sklearn_table(load_wine),
    "tumors.csv": lambda: sklearn_table(load_breast_cancer, 2),
    "digits.csv": lambda: sklearn_table(load_digits, 4),
    "patients.csv": patients,
    "patients.parquet": patients,
    "words.arff": words,
    "gaps.csv": gaps,
    "shops.csv": many_categories,
    "constants.csv": constants,
}


def write(path, table):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        lines = ["@relation answers"]
        for name in table.columns:
            lines.append(f"@attribute {name} {{{','.join(sorted(set(table[name]) - {'n/a'}))}}}")
        body = table.replace("n/a", "?").to_csv(index=False, header=False)
        path.write_text("\n".join([*lines, "@data", body]))


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", TABLES)
def test_from_file_to_report(name, tmp_path):
    table = TABLES[name]()
    order = np.random.default_rng(1).permutation(len(table))
    cut = 2 * len(table) // 3
    for folder, rows in (("train", order[:cut]), ("test", order[cut:])):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / name, table.iloc[rows])
    train, test = tmp_path / "train" / name, tmp_path / "test" / name
    model, page = tmp_path / "model.safetensors", tmp_path / "report.html"
    run("fit", train, "--target", "y", "--loss", "zero-one", "--model", model)
    stated = run("evaluate", model, test)
    loss = float(stated.split("mean loss")[1].split()[0])
    guess = 1 - table["y"].iloc[order[cut:]].value_counts(normalize=True).iloc[0]
    assert loss < guess  # better than the commonest answer
    run("report", model, test, "--train", train, "--html", page)
    assert page.stat().st_size > 100_000
    assert len(run("predict", model, test).splitlines()) == 1 + len(order) - cut
