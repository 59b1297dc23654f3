"""What PyTorch users expect of a criterion: precision, masks, copies, compilation, clear errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import consistruct as cs
from consistruct.exceptions import CapabilityError, TooManyLabelsError
from consistruct.losses.registry import LOSSES
from consistruct.structures import Ragged
from consistruct.torch import Decoder, Head, TaskLoss
from tests.torch.members import QUICK, SOME, batch, named

COMMON = [
    cs.losses.ZeroOne(5),
    cs.losses.CostMatrix([[0, 1, 2], [3, 0, 1], [1, 1, 0]], rows="pred"),
    cs.losses.Hamming(4),
    cs.losses.FBeta(4),
    cs.losses.NDCG(4, n_grades=3),
    cs.losses.Ordinal(5),
]
SMOOTH = [(loss, name) for loss, name in QUICK if name != "hinge"]


@pytest.mark.parametrize(("loss", "name"), SMOOTH, ids=named)
def test_derivatives(loss, name):
    criterion = TaskLoss(loss, name, reduction="none")
    theta, true = batch(loss, criterion.width, n=2)
    theta.requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: criterion(scores, true), theta, fast_mode=True)
    assert torch.autograd.gradgradcheck(
        lambda scores: criterion(scores, true), theta, fast_mode=True
    )


@pytest.mark.parametrize(("loss", "name"), QUICK, ids=named)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(loss, name, dtype):
    criterion = TaskLoss(loss, name)
    theta, true = batch(loss, criterion.width)
    small = (0.3 * theta).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = criterion(small, true)
    assert value.dtype == torch.float32
    value.backward()
    assert small.grad.dtype == dtype
    plain = small.detach().float().requires_grad_()
    expected = criterion(plain, true)
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)
    expected.backward()
    torch.testing.assert_close(small.grad, plain.grad.to(dtype))
    half = copy.deepcopy(criterion).half()  # constants keep their precision
    torch.testing.assert_close(half(small.double(), true), criterion(small.double(), true))


class OnHost(TorchDispatchMode):
    """Fails where an operation waits for a value or moves a tensor to another device."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = str(function)
        for forbidden in ("_local_scalar_dense", "_to_copy", "nonzero", "masked_select"):
            if forbidden in name:
                device = (options or {}).get("device")
                assert name.startswith("aten._to_copy"), f"{name} waits for the device"
                assert device is None or torch.device(device) == torch.device("meta"), name
        return function(*arguments, **(options or {}))


@pytest.mark.parametrize(("loss", "name"), QUICK, ids=named)
def test_no_operation_leaves_the_device(loss, name):
    # the meta device has no values: whatever would read one, or compute elsewhere, fails
    criterion = TaskLoss(loss, name).to("meta")
    theta, true = batch(loss, criterion.width, dtype=torch.float32)
    theta, true = theta.to("meta").requires_grad_(), true.to("meta")
    with OnHost():
        value = criterion(theta, true, weight=torch.ones(6, device="meta"))
        assert value.device.type == "meta"
        value.backward()
        assert criterion.decode(theta).device.type == "meta"


@pytest.mark.parametrize("loss", COMMON, ids=repr)
def test_masks_and_weights(loss):
    criterion = TaskLoss(loss, reduction="none")
    theta, true = batch(loss, criterion.width)
    values = criterion(theta, true)
    weight = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0, 1.0], dtype=torch.float64)
    mask = torch.tensor([True, False, True, True, False, True])
    hidden, wrong = theta.clone(), true.clone()
    hidden[~mask] = torch.nan  # what is masked is not read
    wrong[~mask] = -100
    hidden.requires_grad_()
    for reduction, expected in (
        ("none", values * weight * mask),
        ("sum", (values * weight * mask).sum()),
        ("mean", (values * weight * mask).sum() / (weight * mask).sum()),
    ):
        found = TaskLoss(loss, reduction=reduction)(hidden, wrong, mask, weight)
        torch.testing.assert_close(found, expected)
    found.backward()
    assert torch.isfinite(hidden.grad).all()
    assert not hidden.grad[~mask].any()
    empty = TaskLoss(loss)(hidden, wrong, torch.zeros(6, dtype=torch.bool))
    assert empty.item() == 0.0


@pytest.mark.parametrize("loss", COMMON, ids=repr)
def test_copies_and_files(loss, tmp_path):
    criterion = TaskLoss(loss)
    theta, true = batch(loss, criterion.width)
    value = criterion(theta, true)
    assert dict(criterion.state_dict()) == {}
    assert not list(criterion.parameters())
    for twin in (pickle.loads(pickle.dumps(criterion)), copy.deepcopy(criterion)):
        assert torch.equal(twin(theta, true), value)
    torch.save(criterion, tmp_path / "criterion.pt")
    loaded = torch.load(tmp_path / "criterion.pt", weights_only=False)
    assert torch.equal(loaded(theta, true), value)
    assert torch.equal(loaded.decode(theta), criterion.decode(theta))


def test_the_same_numbers_each_time():
    torch.use_deterministic_algorithms(True)
    try:
        for loss in COMMON:
            criterion = TaskLoss(loss)
            theta, true = batch(loss, criterion.width)
            theta.requires_grad_()
            slopes = [torch.autograd.grad(criterion(theta, true), theta)[0] for _ in range(2)]
            assert torch.equal(*slopes)
    finally:
        torch.use_deterministic_algorithms(False)


def test_inference_can_be_exported():
    for loss in COMMON:
        decoder = Decoder(loss)
        head = Head(4, decoder)
        nn.init.normal_(head.linear.weight)
        network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), head, decoder)
        x = torch.randn(5, 3)
        exported = torch.export.export(network.eval(), (x,))
        assert torch.equal(exported.module()(x), network(x))


def test_compiled_without_a_break():
    for loss in (
        cs.losses.CostMatrix([[0, 1, 2], [3, 0, 1], [1, 1, 0]], rows="pred"),
        cs.losses.FBeta(4),
    ):
        criterion = TaskLoss(loss)
        theta, true = batch(loss, criterion.width, dtype=torch.float32)
        theta.requires_grad_()
        compiled = torch.compile(criterion, fullgraph=True, backend="aot_eager")
        value = compiled(theta, true)
        torch.testing.assert_close(value, criterion(theta, true))
        (slope,) = torch.autograd.grad(value, theta)
        torch.testing.assert_close(slope, torch.autograd.grad(criterion(theta, true), theta)[0])


class _Samples(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Losses of random samples, computed where they are loaded."""

    def __init__(self):
        self.criterion = TaskLoss("fbeta:4", reduction="none")

    def __len__(self):
        return 4

    def __getitem__(self, row):
        theta, true = batch(self.criterion.loss, self.criterion.width, n=1, seed=row)
        return self.criterion(theta, true)[0]


def test_in_a_worker_of_a_data_loader():
    samples = _Samples()
    loader = torch.utils.data.DataLoader(samples, batch_size=2, num_workers=1)
    found = torch.cat(list(loader))
    torch.testing.assert_close(found, torch.stack([samples[row] for row in range(4)]))


# --- families: padded batches ---


def padded(lists, fill=0):
    size = max(map(len, lists))
    mask = torch.tensor([[place < len(row) for place in range(size)] for row in lists])
    rows = [np.concatenate([row, np.full(size - len(row), fill)]) for row in lists]
    return torch.as_tensor(np.stack(rows)), mask


@pytest.mark.parametrize("name", ["quadratic", "log", "hinge", "softmax-margin"])
def test_sequences_of_different_lengths(name):
    rng = np.random.default_rng(0)
    lengths = [4, 1, 3]
    true, mask = padded([rng.integers(0, 3, n) for n in lengths], fill=-100)
    theta = torch.as_tensor(rng.normal(size=(3, 4, 3)))
    family = TaskLoss(cs.losses.Hamming(None, 3), name, reduction="none")
    assert family.width == 3
    values = family(theta, true, mask)
    for row, n in enumerate(lengths):
        member = cs.losses.Hamming(n, 3)
        single = TaskLoss(member, name, reduction="none", scores=member.score_space)
        own = single(theta[row : row + 1, :n].flatten(1), true[row : row + 1, :n])
        torch.testing.assert_close(values[row : row + 1], own)
        decided = family.decode(theta, mask)[row]
        torch.testing.assert_close(decided[:n], theta[row, :n].argmax(1))
        assert (decided[n:] == -1).all()


FAMILIES = [
    cs.losses.NDCG(None, n_grades=3),
    cs.losses.NDCG(None, 2, discount="linear"),
    cs.losses.PrecisionAt(None, 2),
    cs.losses.ExpectedRankUtility(None),
    cs.losses.PairwiseDisagreement(None),
    cs.losses.SpearmanRho(None),
]


@pytest.mark.parametrize("loss", FAMILIES, ids=repr)
def test_queries_of_different_lengths(loss):
    rng = np.random.default_rng(1)
    lengths = [5, 1, 3, 4]
    true_labels = [loss.at(n).true_labels.sample(1, rng)[0] for n in lengths]
    true, mask = padded(true_labels)
    theta = torch.as_tensor(rng.normal(size=true.shape))
    family = TaskLoss(loss, reduction="none")
    values, orders = family(theta, true, mask), family.decode(theta, mask)
    for row, n in enumerate(lengths):
        member = TaskLoss(loss.at(n), reduction="none")
        own = member(theta[row : row + 1, :n], true[row : row + 1, :n])
        torch.testing.assert_close(values[row : row + 1], own)
        order = np.argsort(-theta[row, :n].numpy(), kind="stable")
        np.testing.assert_array_equal(orders[row, :n].numpy(), order)
        assert (orders[row, n:] == -1).all()
    scores = Ragged.pack([theta[row, :n].numpy() for row, n in enumerate(lengths)])
    packed = cs.structures.Positions(None).decode_packed(scores)
    np.testing.assert_array_equal(orders[mask.sum(1)[:, None] > torch.arange(5)], packed.values)


# --- errors: one clear line ---


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TaskLoss("zero-one:3", reduction="all"), "reduction must be one of"),
        (lambda: TaskLoss("zero-one:3", "maxmin"), "surrogate must be one of"),
        (lambda: TaskLoss("zero-one:3", "max_min_margin"), "linear program per example"),
        (lambda: TaskLoss(3), "loss must be a Loss or a spec"),
        (lambda: TaskLoss("zero-one:3", scores="logits"), "two-state parts"),
        (lambda: TaskLoss("hamming:3", "sparsemax", scores="logits"), "works only with"),
        (lambda: TaskLoss(cs.losses.NDCG(None), "log"), "padded batches"),
        (lambda: TaskLoss(cs.losses.MeanAveragePrecision(None)), "members of one size"),
        (lambda: TaskLoss(cs.losses.Hamming(None), scores=cs.structures.Full(3)), "omit them"),
        (lambda: TaskLoss("map:20").decode(torch.zeros(1, 210)), "exact up to 14 items"),
        (lambda: TaskLoss("zero-one:3")(torch.zeros(2, 4), torch.zeros(2).long()), "shape \\(B, 3"),
        (lambda: TaskLoss("zero-one:3")(torch.zeros(2, 3), torch.zeros(3).long()), "one row per"),
        (lambda: TaskLoss("zero-one:3")(torch.zeros(1, 3), torch.tensor([3])), "classes 0..2"),
        (lambda: TaskLoss("zero-one:3")(torch.zeros(1, 3), torch.tensor([0.0])), "integers"),
        (lambda: TaskLoss("zero-one:3")(torch.zeros(1, 3).long(), torch.tensor([0])), "floating"),
        (lambda: TaskLoss("hamming:3")(torch.zeros(1, 6), torch.zeros(1, 2).long()), "B, 3"),
        (
            lambda: TaskLoss(cs.losses.FBeta(3, sizes=(1,)))(
                torch.zeros(1, 4), torch.tensor([[1, 1, 0]])
            ),
            "size is one of",
        ),
        (
            lambda: TaskLoss("kendall:3")(torch.zeros(1, 4), torch.tensor([[0, 0, 1]])),
            "true labels of",
        ),
        (
            lambda: TaskLoss("zero-one:3")(torch.zeros(1, 3), torch.tensor([0]), torch.ones(1)),
            "mask must contain Booleans",
        ),
        (
            lambda: TaskLoss("zero-one:3")(
                torch.zeros(1, 3), torch.tensor([0]), weight=torch.ones(2)
            ),
            "one number per example",
        ),
        (
            lambda: TaskLoss(cs.losses.Hamming(None, 3))(
                torch.zeros(1, 2, 3), torch.tensor([[0, 3]])
            ),
            "states 0..2",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_what_scores_do_not_tell():
    with pytest.raises(CapabilityError, match="only rank"):
        TaskLoss("zero-one:3", "hinge").expected_losses(torch.zeros(1, 3))
    with pytest.raises(CapabilityError, match="offset depends on the true label"):
        TaskLoss(cs.losses.NDCG(3, empty=0.5)).expected_losses(torch.zeros(1, 3))
    with pytest.raises(TooManyLabelsError, match="decode"):
        TaskLoss(cs.losses.Hamming(50)).expected_losses(torch.zeros(1, 100))


def test_registry_is_covered():
    every = {entry.cls for entry in LOSSES.values()}
    assert {type(loss) for loss in SOME} == every - {cs.losses.Decision, cs.losses.PartErrors}
    with pytest.raises(CapabilityError, match="targets on the device"):
        TaskLoss("path:3x3")
