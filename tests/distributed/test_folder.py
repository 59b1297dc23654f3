"""Folders of files: one pass, any split, resumed bit by bit, changed files refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

import consistruct as cs
from consistruct.distributed import Folder, evaluate_folder, fit_folder, predict_folder
from consistruct.distributed import jobs as jobs_module
from consistruct.distributed.batches import batches_of
from consistruct.exceptions import DataFileError
from consistruct.learning.models import Ridge

RNG = np.random.default_rng(0)
N = 500
X = (RNG.normal(size=(N, 4)) + 2).astype(np.float32)
Y = np.array(["cat", "dog"])[(X[:, 0] + 0.5 * RNG.normal(size=N) > 2).astype(int)]
FRAME = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(kind=Y)


def write(folder, cuts, form="parquet", frame=FRAME):
    folder.mkdir(exist_ok=True)
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, N], strict=True)):
        part = frame.iloc[start:stop]
        if form == "parquet":
            part.to_parquet(folder / f"part-{number}.parquet", index=False)
        else:
            part.to_csv(folder / f"part-{number}.csv", index=False)
    return folder


def estimator(**settings):
    ridge = Ridge("linear", solver="moments", **settings)
    return cs.TaskLossClassifier("zero_one", ridge, random_state=0)


def read(folder, **options):
    return Folder(folder, target=["kind"], **options)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_files_of_any_split_are_the_fit_in_memory(tmp_path, form):
    frame = FRAME.astype(dict.fromkeys("abcd", np.float64)) if form == "csv" else FRAME
    one = fit_folder(estimator(), read(write(tmp_path / "one", [], form, frame)))
    folder = write(tmp_path / "many", [7, 150, 151, 400], form, frame)
    many = fit_folder(estimator(), read(folder, batch_rows=60))
    np.testing.assert_allclose(many.model_.coef_, one.model_.coef_, rtol=1e-8, atol=1e-12)
    exact = estimator(alpha=one.model_.alpha_).set_params(model__solver="closed_form")
    exact.fit(X.astype(np.float64), Y)
    np.testing.assert_allclose(one.model_.coef_, exact.model_.coef_, rtol=1e-8, atol=1e-12)
    assert set(one.classes_) == {"cat", "dog"}
    score = evaluate_folder(many, read(folder, batch_rows=60))
    losses = many.task_losses(X, Y)
    assert score.n_rows == N
    np.testing.assert_allclose(score.mean_loss, losses.mean())
    np.testing.assert_allclose(score.standard_error, losses.std(ddof=1) / np.sqrt(N))
    parts = [p for p, _ in predict_folder(many, read(folder, batch_rows=60))]
    np.testing.assert_array_equal(np.concatenate(parts), many.predict(X))


def test_nystroem_landmarks_do_not_depend_on_the_batches(tmp_path):
    settings = {
        "features": "nystroem", "kernel": "rbf", "bandwidth": 2.0, "n_components": 30,
        "alpha": 1e-3, "standardize": False,
    }  # fmt: skip
    folder = write(tmp_path / "data", [100, 300])
    found = [
        fit_folder(estimator().set_params(model=Ridge(solver="moments", **settings)), source)
        for source in (read(folder), read(folder, batch_rows=33))
    ]
    landmarks = [model.model_.feature_map_.landmarks for model in found]
    np.testing.assert_array_equal(landmarks[0], landmarks[1])
    first, second = (model.model_.coef_ for model in found)
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-8)


class Stopped(BaseException):
    pass


@pytest.mark.parametrize("stop", [1, 3, 6])
def test_an_interrupted_pass_goes_on_bit_by_bit(tmp_path, stop, monkeypatch):
    folder, checkpoint = write(tmp_path / "data", [110, 320]), tmp_path / "pass.checkpoint"
    whole = fit_folder(estimator(), read(folder, batch_rows=50))

    def interrupt(done, total, rows, calls=[]):  # noqa: B006
        calls.append(rows)
        if len(calls) == stop:
            raise Stopped

    with pytest.raises(Stopped):
        fit_folder(
            estimator(), read(folder, batch_rows=50), checkpoint=checkpoint, every=0.0,
            progress=interrupt,
        )  # fmt: skip
    seen = []
    source = read(folder, batch_rows=50)
    resumed = fit_folder(
        estimator(), source, checkpoint=checkpoint, every=0.0, resume=True,
        progress=lambda done, total, rows: seen.append(rows),
    )  # fmt: skip
    np.testing.assert_array_equal(resumed.model_.coef_, whole.model_.coef_)
    np.testing.assert_array_equal(resumed.model_.intercept_, whole.model_.intercept_)
    assert resumed.recalibration_ == whole.recalibration_
    assert seen[0] > 50 * (stop - 1)  # it did go on, and did not start anew


def test_control_c_leaves_a_checkpoint(tmp_path):
    folder, checkpoint = write(tmp_path / "data", [110, 320]), tmp_path / "pass.checkpoint"

    def interrupt(done, total, rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_folder(estimator(), read(folder), checkpoint=checkpoint, progress=interrupt)
    assert checkpoint.exists()
    resumed = fit_folder(estimator(), read(folder), checkpoint=checkpoint, resume=True)
    whole = fit_folder(estimator(), read(folder))
    np.testing.assert_array_equal(resumed.model_.coef_, whole.model_.coef_)


@pytest.mark.parametrize("change", ["content", "gone", "new", "settings"])
def test_what_changed_in_between_is_refused(tmp_path, change):
    folder, checkpoint = write(tmp_path / "data", [110, 320]), tmp_path / "pass.checkpoint"
    fit_folder(estimator(), read(folder), checkpoint=checkpoint, every=0.0)
    words = {"content": "part-1.parquet has changed", "gone": "part-2.parquet is gone"}
    model = estimator()
    if change == "content":
        FRAME[::-1].iloc[110:320].to_parquet(folder / "part-1.parquet", index=False)
    elif change == "gone":
        (folder / "part-2.parquet").unlink()
    elif change == "new":
        FRAME[:5].to_parquet(folder / "part-3.parquet", index=False)
    else:
        model.set_params(loss=cs.losses.CostMatrix([[0, 2], [1, 0]], rows="pred"))
    with pytest.raises((DataFileError, ValueError), match=words.get(change, "is new|other labels")):
        fit_folder(model, read(folder), checkpoint=checkpoint, resume=True)


def test_a_file_that_changes_during_the_pass_is_noticed(tmp_path, monkeypatch):
    folder = write(tmp_path / "data", [110, 320])

    def meddle(done, total, rows):
        FRAME[:10].to_parquet(folder / "part-0.parquet", index=False)

    with pytest.raises(DataFileError, match=r"part-0.parquet has changed since the pass began"):
        fit_folder(estimator(), read(folder), progress=meddle)


def test_numbers_as_classes_in_csv_files(tmp_path):
    frame = FRAME.assign(kind=np.arange(N) % 3)
    model = fit_folder(estimator(), read(write(tmp_path / "data", [200], "csv", frame)))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype.kind == "i"


def test_held_out_files_choose_the_penalty(tmp_path):
    folder = write(tmp_path / "data", [300])
    train, held = read(folder, without="part-1*"), read(folder, only="part-1*")
    model = fit_folder(estimator(alpha=[1e-4, 1.0]), train, held_out=held)
    assert set(model.path_) >= {"alphas", "task_loss"}


def test_svmlight_shards_by_sgd(tmp_path):
    y = (Y == "dog").astype(int)
    for number, part in enumerate(np.array_split(np.arange(N), 3)):
        dump_svmlight_file(X[part] - 2, y[part], str(tmp_path / f"{number}.svm"), zero_based=False)
    ridge = Ridge("linear", solver="sgd", alpha=1e-3)
    model = cs.TaskLossClassifier("zero_one", ridge, random_state=0)
    fit_folder(model, Folder(tmp_path, n_features=4, batch_rows=100), passes=5)
    exact = fit_folder(estimator(alpha=1e-3), Folder(tmp_path, n_features=4))
    assert evaluate_folder(model, Folder(tmp_path, n_features=4)).mean_loss < 0.25
    gap = model.model_.expected(X - 2) - exact.model_.expected(X - 2)
    assert np.abs(gap).mean() < 0.05
    with pytest.raises(ValueError, match="omit it with SGD"):
        fit_folder(model, Folder(tmp_path, n_features=4), checkpoint=tmp_path / "c")


def bad_folders(tmp_path):
    empty, mixed = tmp_path / "empty", write(tmp_path / "mixed", [])
    empty.mkdir()
    (mixed / "readme.txt").write_text("hello")
    text = write(tmp_path / "text", [], frame=FRAME.assign(a="x"))
    null = write(tmp_path / "null", [], frame=FRAME.assign(b=FRAME["b"].where(FRAME.index != 7)))
    other = write(tmp_path / "other", [])
    FRAME.drop(columns="c").to_parquet(other / "part-1.parquet")
    broken = write(tmp_path / "broken", [])
    (broken / "part-1.parquet").write_bytes(b"PAR1")
    return {
        "empty": (empty, "contains no files"),
        "mixed": (mixed, "one format"),
        "text": (text, "feature 'a' has type"),
        "null": (null, "row 8: column 'b' is empty"),
        "other": (other, "'c', which other files have, is missing"),
        "broken": (broken, "part-1.parquet.*(cannot be read|is not a parquet)"),
        "none": (tmp_path / "none", "not a folder"),
    }


@pytest.mark.parametrize("name", ["empty", "mixed", "text", "null", "other", "broken", "none"])
def test_bad_folders_are_one_clear_line(tmp_path, name):
    folder, words = bad_folders(tmp_path)[name]
    with pytest.raises(DataFileError, match=words) as caught:
        fit_folder(estimator(), read(folder))
    assert "\n" not in str(caught.value)


def test_a_target_that_is_not_there(tmp_path):
    with pytest.raises(DataFileError, match="no column 'sort'"):
        Folder(write(tmp_path / "data", []), target=["sort"])
    assert jobs_module.EVERY == 60.0


def test_classes_beyond_64_bits_are_refused_not_wrapped(tmp_path):
    (tmp_path / "data").mkdir()
    kinds = np.array([1, 2**63 + 5] * 5, dtype=np.uint64)
    frame = pd.DataFrame({"a": np.arange(10.0), "kind": kinds})
    frame.to_parquet(tmp_path / "data" / "part.parquet", index=False)
    with pytest.raises(DataFileError, match="contains 9223372036854775813, which does not fit"):
        fit_folder(estimator(), read(tmp_path / "data"))


def test_svmlight_classes_that_are_no_whole_numbers_any_more_are_not_wrapped(tmp_path):
    file = tmp_path / "part.svm"
    file.write_text("".join(f"{label} 1:{row}\n" for row, label in enumerate(["1", "1e300"] * 5)))
    folder = Folder(tmp_path, n_features=1)
    batches = batches_of(file, "svmlight", folder.columns, 100)
    y_true = np.concatenate([y for _, y in batches])
    assert set(y_true.tolist()) == {1.0, 1e300}
