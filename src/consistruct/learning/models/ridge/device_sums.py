"""Moments of features and targets, summed over chunks of rows on an accelerator.

The features of a chunk are made and multiplied on the device and never leave it. Nyström features
are left as plain kernel values k(x, z_j): whitening the sums once, through the penalty matrix
K_mm, is the same as whitening every row, which would double the work. Products use the symmetry of
what they add to: blocks of columns below the diagonal only.

Single precision is TF32 on GPUs that have it: factors with ten bits behind the point, which the
hardware cuts off. Cutting would pull every sum toward zero, so features are rounded to these ten
bits first. Products of what is left are exact, the sums are those of slightly other features, and
only the float32 additions within a product err. Tensor cores cut these off as well, so sums of
positive numbers drift: features are centered first, products are short, and what remains is
measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consistruct._validation import is_sparse, to_dense
from consistruct.decisions.statistics import Statistic
from consistruct.exceptions import CapabilityError
from consistruct.learning.models.features.approximations import KernelCenters, RandomFeatures
from consistruct.learning.models.features.feature_maps import FeatureMap, LinearFeatures
from consistruct.learning.models.ridge.moments import Moments
from consistruct.losses.base import dense_target
from consistruct.protocols import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DeviceFeatures", "DevicePass", "accumulate_on", "single_products"]

CHUNK_NUMBERS = 2**28  # features of one chunk: a gigabyte in float32
CHUNK_ROWS = 2**16  # at most
FLOAT_ROWS = 2**12  # rows summed in float32; longer sums are float64
PRODUCT_ROWS = 2**9  # rows of one product in single precision: tensor cores cut each addition off
BLOCK = 2048  # columns of one product


class DeviceFeatures:
    """φ of a fitted feature map as tensors: (n, d) inputs on the device -> (n, m) features."""

    def __init__(self, features: FeatureMap, device: Any, dtype: Any) -> None:
        import torch

        self.n_outputs, self.dtype, self.device = features.n_outputs, dtype, device

        def tensor(array: Any) -> Any:
            return None if array is None else torch.as_tensor(np.array(array)).to(device, dtype)

        self.map = features
        if not isinstance(features, LinearFeatures | KernelCenters | RandomFeatures):
            raise CapabilityError(
                features,
                "features on the device",
                "Ridge(device=…)",
                "use features='linear', 'nystroem' or 'random', or omit device",
            )
        self.shift, self.scale = tensor(features.scaling.shift), tensor(features.scaling.scale)
        if isinstance(features, KernelCenters):
            self.centers = tensor(features.landmarks)
        if isinstance(features, RandomFeatures):
            self.frequencies, self.phases = tensor(features.frequencies), tensor(features.phases)

    def __call__(self, inputs: Tensor) -> Tensor:
        import torch

        x = inputs.to(self.dtype)
        if self.shift is not None:
            x = x - self.shift
        if self.scale is not None:
            x = x / self.scale
        if isinstance(self.map, LinearFeatures):
            return x
        if isinstance(self.map, RandomFeatures):
            angles = torch.addmm(self.phases, x, self.frequencies)
            return angles.cos_().mul_((2.0 / self.n_outputs) ** 0.5)
        return self.kernel(x, self.centers)

    def kernel(self, x: Tensor, z: Tensor) -> Tensor:
        """k(x_i, z_j), (n, m), with few passes over it."""
        import torch

        assert isinstance(self.map, KernelCenters)
        kernel = self.map.kernel
        h = kernel.bandwidth
        if kernel.name == "poly":
            found = torch.addmm(x.new_full((1,), kernel.coef0), x, z.T, alpha=1.0 / h**2)
            return found.pow_(kernel.degree)
        if kernel.name == "laplace":
            return torch.cdist(x, z, p=1.0).div_(-h).exp_()
        if kernel.name != "rbf":
            raise ValueError(f"the kernel {kernel.name!r} runs on the CPU only; omit device")
        # −‖x−z‖²/2h² = (⟨x,z⟩ − ‖x‖²/2 − ‖z‖²/2)/h²
        norms = z.square().sum(1).mul_(-0.5 / h**2)
        found = torch.addmm(norms, x, z.T, alpha=1.0 / h**2)
        found.sub_(x.square().sum(1, keepdim=True), alpha=0.5 / h**2)
        return found.clamp_(max=0.0).exp_()

    def penalty(self) -> Tensor | None:
        """K_mm in float64, which makes the penalty the norm of the functions; None: ‖w‖²."""
        import torch

        if not isinstance(self.map, KernelCenters):
            return None
        exact = DeviceFeatures(self.map, self.device, torch.float64)
        return exact.kernel(exact.centers, exact.centers)


@dataclass(frozen=True, eq=False)
class DevicePass:
    """What one pass over the rows leaves on the device, in float64.

    `noise` is the size of the rounding errors in the second moment: their spectral norm in some
    rows, as if they added up over all of them.
    """

    moments: Moments  # of tensors
    noise: float
    kept_rows: Any  # (n_kept, m), about the mean

    def about_zero(self) -> DevicePass:
        """The same for a fit without intercept."""
        kept = self.kept_rows + self.moments.mean_feature
        return DevicePass(self.moments.about_zero(), self.noise, kept)


@contextmanager
def single_products(allowed: bool) -> Iterator[None]:
    """Whether float32 matrix products may round their factors to TF32, within this block."""
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def accumulate_on(
    features: DeviceFeatures,
    statistic: Statistic,
    inputs: Any,
    true: Any,
    weight: FloatArray,
    *,
    keep: IntArray,
) -> DevicePass:
    """One pass over the inputs, arrays or tensors; memory is one chunk and the sums.

    Products are in the precision of the features: float64, or float32 with TF32 factors where the
    device has them. What is added up between chunks is float64.
    """
    import torch

    device, dtype, size = features.device, features.dtype, features.n_outputs
    double = {"dtype": torch.float64, "device": device}
    second = torch.zeros((size, size), **double)
    cross = torch.zeros((size, statistic.width), **double)
    feature_sum, target_sum = torch.zeros(size, **double), torch.zeros(statistic.width, **double)
    squares, mass = torch.zeros((), **double), torch.zeros((), **double)
    kept, noise = [], 0.0
    shift: Any = None
    n = inputs.shape[0]
    uniform = weight.strides == (0,) or bool((weight == weight[0]).all())
    rows = max(1, min(CHUNK_ROWS, CHUNK_NUMBERS // size))
    for start in range(0, n, rows):
        part = slice(start, min(start + rows, n))
        with single_products(False):  # exponents of kernels need their digits
            phi = features(as_tensor(inputs[part], device, dtype))
        shift = phi.mean(0) if shift is None else shift
        phi = phi - shift if isinstance(features.map, LinearFeatures) else phi.sub_(shift)
        y = targets_on(statistic, true, part, device, dtype)
        w = torch.as_tensor(np.array(weight[part])).to(device, dtype)
        root = w.sqrt()[:, None]
        scaled = phi if uniform else phi * root
        if dtype != torch.float64:
            scaled = round_to_tf32(scaled)
            phi = scaled if uniform else scaled / root
        with single_products(True):
            short = len(scaled) if dtype == torch.float64 else FLOAT_ROWS
            for rows_of in scaled.split(short):
                _add_square(second, rows_of)
        if start == 0 and dtype != torch.float64:
            noise = _noise(scaled[:FLOAT_ROWS]) * n
        with single_products(False):
            weighted = y * w[:, None]
            cross += (phi.T @ weighted).double()
        if uniform:
            feature_sum += phi.sum(0, dtype=torch.float64) * w[0].double()
        else:  # in float64: the centering must not add errors that the products do not have
            feature_sum += scaled.double().T @ root[:, 0].double()
            mass += root.double().square().sum()
        target_sum += weighted.double().sum(0)
        squares += (weighted.double() * y.double()).sum()
        inside = keep[(keep >= part.start) & (keep < part.stop)] - part.start
        kept.append(phi[torch.as_tensor(inside).to(device)].double())
    second = second.tril_().add_(second.tril(-1).T)
    factor = float(weight[0]) if uniform else 1.0
    if uniform and factor != 1.0:
        second *= factor
    # float64 rounds too, relative to the sums before they are centered
    noise = factor * noise + torch.finfo(torch.float64).eps * float(second.diagonal().sum())
    total = n * factor if uniform else float(mass)  # of the weights as they were used
    gap, mean_target = feature_sum / total, target_sum / total
    second.addmm_(gap[:, None], gap[None, :], alpha=-total)
    cross.addmm_(gap[:, None], mean_target[None, :], alpha=-total)
    moments = Moments(
        second,
        cross,
        gap + shift.double(),
        mean_target,
        float(squares - total * mean_target.square().sum()),
        total,
        n if uniform else int(np.count_nonzero(weight)),
        float(torch.finfo(dtype).eps),
    )
    return DevicePass(moments, noise, torch.cat(kept) - gap)


def _add_square(second: Tensor, rows: Tensor) -> None:
    """second += rowsᵀ rows, blocks of rows at and below the diagonal; float32 in short products.

    The additions between the products round to nearest, which those within them do not.
    """
    import torch

    size = rows.shape[1]
    parts = torch.split(rows, len(rows) if rows.dtype == torch.float64 else PRODUCT_ROWS)
    for top in range(0, size, BLOCK):
        columns = slice(top, top + BLOCK)
        width = min(top + BLOCK, size)
        total = parts[0][:, columns].T @ parts[0][:, :width]
        for part in parts[1:]:
            total.addmm_(part[:, columns].T, part[:, :width])
        second[columns, :width] += total


def round_to_tf32(features: Tensor) -> Tensor:
    """float32 numbers with ten bits behind the point, rounded to nearest; in place."""
    import torch

    bits = features.contiguous().view(torch.int32)
    return bits.add_(1 << 12).bitwise_and_(-(1 << 13)).view(torch.float32)


def _noise(rows: Tensor) -> float:
    """‖fl(RᵀR) − RᵀR‖₂ per row, by a few power iterations on the difference."""
    exact = rows.double()
    difference = exact.new_zeros(rows.shape[1], rows.shape[1])
    with single_products(True):
        _add_square(difference, rows)
    difference = difference.tril().add_(difference.tril(-1).T).sub_(exact.T @ exact)
    vector = difference.new_ones(difference.shape[0]) / difference.shape[0] ** 0.5
    norm = 0.0
    for _ in range(8):
        moved = difference @ vector
        norm = float(moved.norm())
        if norm == 0.0:
            return 0.0
        vector = moved / norm
    return norm / len(rows)


def as_tensor(rows: Any, device: Any, dtype: Any) -> Tensor:
    """Rows of inputs, dense, on the device."""
    import torch

    if isinstance(rows, torch.Tensor):
        return rows.to(device, dtype)
    dense = to_dense(rows) if is_sparse(rows) else np.asarray(rows)
    return torch.as_tensor(np.ascontiguousarray(dense)).to(device, dtype)


def targets_on(statistic: Statistic, true: Any, part: slice, device: Any, dtype: Any) -> Tensor:
    """τ of some true labels, (n, width); class numbers that are tensors stay on the device."""
    import torch

    if isinstance(true, torch.Tensor):
        own = true[part].to(device)
        if statistic.of_classes and own.ndim == 1:
            return (own[:, None] == torch.arange(statistic.width, device=device)).to(dtype)
        return as_tensor(dense_target(statistic.values(own.cpu().numpy())), device, dtype)
    return as_tensor(dense_target(statistic.values(true[part])), device, dtype)
