"""What a network costs on paper: operations for one example, and parameters.

Counted as by Iofinova et al. (CVPR 2023): convolutions and linear layers two per weight and output
position and one per output for the bias, batch normalisation two per element, rectifiers one per
element, pooling one per element of each window; additions of shortcuts are not counted. `sparse`
leaves out weights that are 0: what an engine could save that skips every one of them.

Operations are counted as torch performs them, not by the kinds of modules, so that functions
called in `forward` and exported programs are counted too. Beyond the papers' networks: other
activations count as rectifiers, other normalisations as batch normalisation, and products of two
activations (attention) two per multiplication.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import TorchDispatchMode

from fairweight.errors import InputError

WEIGHTED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)  # the layers that pruning acts on


@dataclass(frozen=True)
class Flops:
    """Floating-point operations for one example, with all weights and with those that are not 0."""

    dense: int
    sparse: int

    def __add__(self, other: Flops) -> Flops:
        return Flops(self.dense + other.dense, self.sparse + other.sparse)


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters; `weights` are those of convolutions and linear layers, no biases."""

    total: int
    nonzero: int
    weights: int
    nonzero_weights: int

    @property
    def sparsity(self) -> float:
        """Share of the weights that are 0; NaN without weights.

        >>> Parameters(total=110, nonzero=35, weights=100, nonzero_weights=25).sparsity
        0.75
        """
        return 1 - self.nonzero_weights / self.weights if self.weights else math.nan


def count_flops(model: nn.Module | Callable[[Tensor], Any], example: Tensor) -> Flops:
    """Operations of a forward pass in evaluation mode, for one example.

    Parameters
    ----------
    example
        A batch, of which the first example is taken.
    """
    if example.dim() < 2 or not len(example):
        raise InputError(
            "example must be a batch with at least one example, such as of shape (1, 3, 32, 32),"
            f" not of shape {tuple(example.shape)}."
        )
    counter = _Counter()
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    training = [module for module in modules if module.training]
    for module in training:
        module.training = False
    # In evaluation torch may run a whole attention layer as one operation, which hides its weights.
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), counter:
            model(example[:1])
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)
        for module in training:
            module.training = True
    return counter.total


def count_parameters(model: nn.Module) -> Parameters:
    """Parameters, and how many are not 0; masked weights count as the zeros that they act as."""
    total = nonzero = weights = nonzero_weights = 0
    seen = set()  # each parameter once, as the network uses it
    for module in model.modules():
        if isinstance(module, parametrize.ParametrizationList | nn.ParameterList):
            continue
        originals = dict(module.named_parameters(recurse=False))
        if parametrize.is_parametrized(module):
            masked: Any = module.parametrizations
            originals |= {name: masked[name].original for name in masked}
        for name, original in originals.items():
            if id(original) in seen:
                continue
            seen.add(id(original))
            tensor = getattr(module, name).detach()
            filled = _nonzero(tensor)
            total += tensor.numel()
            nonzero += filled
            if name == "weight" and isinstance(module, WEIGHTED):
                weights += tensor.numel()
                nonzero_weights += filled
    return Parameters(total, nonzero, weights, nonzero_weights)


def _nonzero(tensor: Tensor) -> int:
    """How many are not 0; all of a tensor that has a shape only (device `meta`)."""
    return tensor.numel() if tensor.is_meta else int(torch.count_nonzero(tensor))


# Kinds of operations by the names that torch gives them.
ATTENTION = (
    "scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
)  # fmt: skip
ACTIVATIONS = (
    "relu", "relu_", "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "elu", "elu_", "gelu",
    "silu", "silu_", "sigmoid", "tanh", "hardswish", "hardswish_", "hardsigmoid", "_prelu_kernel",
)  # fmt: skip
NORMALISATIONS = (
    "native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "native_layer_norm", "native_group_norm",
)  # fmt: skip
POOLING = ("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d")
ADAPTIVE_POOLING = (
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
)  # fmt: skip


def flops_of(operation: str, arguments: Sequence[Any], out: Tensor) -> Flops:
    """What one operation of torch takes; 0 for those that are not counted."""
    alike = 0  # whatever the weights are
    if operation == "convolution":
        values, weight, bias = arguments[:3]
        transposed = arguments[6]
        positions = (values if transposed else out).shape[2:].numel()
        return _per_weight(weight, positions, 0 if bias is None else out.numel())
    if operation == "addmm":  # a linear layer with a bias
        _, values, weight = arguments[:3]
        return _per_weight(weight, len(values), out.numel())
    if operation == "mm":
        values, weight = arguments[:2]
        return _per_weight(weight, len(values), 0)
    if operation in ("bmm", "baddbmm"):  # a product, or one that is added to something
        left = arguments[0 if operation == "bmm" else 1]
        alike = 2 * out.numel() * left.shape[-1]
    elif operation in ATTENTION:
        query, key, value = arguments[:3]
        pairs = query.shape[:-1].numel() * key.shape[-2]
        alike = 2 * pairs * (query.shape[-1] + value.shape[-1])
    elif operation in ACTIVATIONS:
        alike = out.numel()
    elif operation in NORMALISATIONS:
        alike = 2 * out.numel()
    elif operation in POOLING:
        kernel, sides = arguments[1], arguments[0].dim() - 2
        window = math.prod(kernel) if len(kernel) > 1 else kernel[0] ** sides
        alike = window * out.numel()
    elif operation in ADAPTIVE_POOLING:
        sides = len(arguments[1])
        alike = out.shape[:-sides].numel()
        for side, outputs in zip(arguments[0].shape[-sides:], out.shape[-sides:], strict=True):
            windows = range(outputs)  # they overlap where the side is no multiple of the outputs
            alike *= sum(-(-(i + 1) * side // outputs) - i * side // outputs for i in windows)
    elif operation == "mean":
        # torch makes adaptive pooling to one pixel a mean over the last two axes.
        values = arguments[0]
        given = (arguments[1] if len(arguments) > 1 else None) or ()
        if values.dim() == 4 and {axis % values.dim() for axis in given} == {2, 3}:
            alike = values.numel()
    return Flops(alike, alike)


def _per_weight(weight: Tensor, positions: int, bias: int) -> Flops:
    dense = 2 * weight.numel() * positions
    sparse = 2 * _nonzero(weight) * positions
    return Flops(dense + bias, sparse + bias)


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the operations that torch performs while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = Flops(0, 0)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Torch would load its compiler (seconds) only to switch it off here.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        space, _, operation = func._schema.name.partition("::")
        out = result[0] if isinstance(result, tuple | list) and result else result
        if space == "aten" and isinstance(out, Tensor):
            self.total += flops_of(operation, args, out)
        return result
