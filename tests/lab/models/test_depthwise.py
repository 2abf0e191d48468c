"""Quick gradients of depthwise convolutions are those of torch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fairweight.lab.batches import arithmetic
from fairweight.lab.models.depthwise import QuickConv2d, _Depthwise

SHAPES = [
    (kernel, stride, size, padding)
    for kernel in (1, 3, 5, 7)
    for stride in (1, 2, 3)
    for size in (7, 8, 12)
    for padding in {0, kernel // 2}
]


def depthwise(channels: int, kernel: int, stride: int = 1, padding: int = 0) -> QuickConv2d:
    options = {"stride": stride, "padding": padding, "groups": channels, "bias": False}
    return QuickConv2d(channels, channels, kernel, **options)


@pytest.mark.parametrize(("kernel", "stride", "size", "padding"), SHAPES)
def test_gradients_are_those_of_torch(kernel: int, stride: int, size: int, padding: int) -> None:
    torch.manual_seed(kernel * 100 + stride * 10 + size)
    x = torch.randn(3, 4, size, size, dtype=torch.double, requires_grad=True)
    weight = torch.randn(4, 1, kernel, kernel, dtype=torch.double, requires_grad=True)
    wanted = nn.functional.conv2d(x, weight, None, stride, padding, 1, 4)
    made = _Depthwise.apply(x, weight, stride, padding)
    assert torch.equal(made, wanted)
    back = torch.randn_like(wanted)
    for ours, torchs in zip(
        torch.autograd.grad(made, (x, weight), back),
        torch.autograd.grad(wanted, (x, weight), back),
        strict=True,
    ):
        torch.testing.assert_close(ours, torchs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (3, 2), (5, 1), (5, 2)])
def test_in_bfloat16_gradients_are_near_those_of_float32(kernel: int, stride: int) -> None:
    torch.manual_seed(0)
    layer = depthwise(8, kernel, stride, kernel // 2)
    x = torch.randn(4, 8, 12, 12, requires_grad=True)
    exact = torch.autograd.grad(layer(x).square().sum(), (x, layer.weight))
    with arithmetic("bfloat16", "cpu"):
        made = layer(x)
    assert made.dtype == torch.bfloat16
    for ours, float32 in zip(
        torch.autograd.grad(made.float().square().sum(), (x, layer.weight)), exact, strict=True
    ):
        assert ours.dtype == torch.float32
        assert (ours - float32).norm() < 0.02 * float32.norm()


@pytest.mark.parametrize(("kernel", "stride"), [(5, 1), (7, 2)])
def test_large_images_take_another_way_to_the_same_gradients(
    monkeypatch: pytest.MonkeyPatch, kernel: int, stride: int
) -> None:
    torch.manual_seed(1)
    layer = depthwise(8, kernel, stride, kernel // 2)
    x = torch.randn(4, 8, 12, 12).contiguous(memory_format=torch.channels_last)

    def of_weight() -> torch.Tensor:
        with arithmetic("bfloat16", "cpu"):
            made = layer(x)
        return torch.autograd.grad(made.float().square().sum(), layer.weight)[0]

    of_pairs = of_weight()
    monkeypatch.setattr("fairweight.lab.models.depthwise.MOST_PAIRS", 0)
    by_onednn = of_weight()
    assert not torch.equal(of_pairs, by_onednn)
    assert (of_pairs - by_onednn).norm() < 0.02 * by_onednn.norm()


def test_only_training_in_bfloat16_takes_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[torch.dtype] = []

    def apply(x: torch.Tensor, *_: object) -> torch.Tensor:
        taken.append(x.dtype)
        return x

    monkeypatch.setattr(_Depthwise, "apply", apply)
    layer, x = depthwise(4, 3), torch.randn(1, 4, 8, 8)
    layer(x)
    with torch.no_grad(), arithmetic("bfloat16", "cpu"):
        layer(x)
    with arithmetic("bfloat16", "cpu"):
        QuickConv2d(4, 4, 3, bias=False)(x)  # of all channels together
    assert taken == []
    with arithmetic("bfloat16", "cpu"):
        layer(x)
    assert taken == [torch.bfloat16]
