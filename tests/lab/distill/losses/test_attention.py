"""AT by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import avg_pool2d

from fairweight.lab.distillation.losses import attention_transfer


def test_channels_are_averaged_by_hand() -> None:
    # Places: (1² + 7²) / 2 = 25 and 0, so (1, 0); the teacher's squares are 9 and 16, over 337.
    student = {"block1": torch.tensor([[[[1.0, 0.0]], [[7.0, 0.0]]]])}
    teacher = {"block1": torch.tensor([[[[3.0, 4.0]]]])}
    norm = 337**0.5
    expected = ((1 - 9 / norm) ** 2 + (16 / norm) ** 2) / 2
    assert attention_transfer(student, teacher).item() == pytest.approx(expected)


def test_blocks_are_added() -> None:
    near, far = torch.tensor([[[[3.0, 4.0]]]]), torch.tensor([[[[4.0, 3.0]]]])
    one = attention_transfer({"block1": near}, {"block1": far})
    two = attention_transfer({"block1": near, "block2": far}, {"block1": far, "block2": near})
    assert one.item() == pytest.approx(98 / 337 / 2)
    assert two.item() == pytest.approx(2 * 98 / 337 / 2)


@pytest.mark.parametrize("larger", ["student", "teacher"])
def test_the_larger_map_is_average_pooled(larger: str) -> None:
    random = torch.Generator().manual_seed(0)
    large = torch.randn(2, 3, 4, 8, generator=random)
    small = torch.randn(2, 5, 2, 4, generator=random)
    maps = ({"block1": large}, {"block1": small})
    pooled = ({"block1": avg_pool2d(large, 2)}, {"block1": small})
    if larger == "teacher":
        maps, pooled = maps[::-1], pooled[::-1]
    value = attention_transfer(*maps).item()
    assert value == pytest.approx(attention_transfer(*pooled).item())
    assert value > 0.01
