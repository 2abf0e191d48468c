"""Masks: they stay, they do not grow back, and a masked model is still a model."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.masks import (
    bake,
    dense_values,
    layer_sparsity,
    load_dense_values,
    masks,
    set_masks,
    sparsity,
)


def small() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 3)
    )


def half(model: nn.Module, name: str = "0.weight") -> dict[str, torch.Tensor]:
    """Every second entry stays."""
    shape = model.get_parameter(name).shape
    return {name: torch.arange(shape.numel()).remainder(2).bool().view(shape)}


def image() -> torch.Tensor:
    return torch.randn(2, 2, 5, 5, generator=torch.Generator().manual_seed(1))


def test_masked_weights_are_zero_and_the_others_as_before() -> None:
    model, dense = small(), small()
    keep = half(model)["0.weight"]
    set_masks(model, {"0.weight": keep})
    assert torch.equal(model[0].weight, dense[0].weight * keep)
    assert list(masks(model)) == ["0.weight"]
    assert torch.equal(masks(model)["0.weight"], keep)


def test_nothing_grows_back_unless_allowed() -> None:
    model = small()
    keep = half(model)["0.weight"]
    set_masks(model, {"0.weight": keep})
    set_masks(model, {"0.weight": ~keep})
    assert not masks(model)["0.weight"].any()
    set_masks(model, {"0.weight": keep}, allow_regrowth=True)
    assert torch.equal(masks(model)["0.weight"], keep)


def test_training_does_not_revive_masked_weights() -> None:
    model = small()
    set_masks(model, half(model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    before = model[0].weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        model(image()).square().sum().backward()
        optimizer.step()
    keep = masks(model)["0.weight"]
    assert (model[0].weight[~keep] == 0).all()
    assert not torch.equal(model[0].weight, before)


def test_a_masked_model_can_be_copied_apart() -> None:
    model = small()
    set_masks(model, half(model))
    twin = copy.deepcopy(model)
    set_masks(twin, {"0.weight": torch.zeros(4, 2, 3, 3, dtype=torch.bool)})
    assert sparsity(twin, ["0"]) == 1
    assert sparsity(model, ["0"]) == 0.5


def test_changing_a_copy_leaves_the_original_whole() -> None:
    # torch's parametrizations live in a class that a deep copy shares.
    model = small().eval()
    set_masks(model, half(model))
    expected = model(image())
    baked, more = bake(copy.deepcopy(model)), copy.deepcopy(model)
    set_masks(more, {"0.bias": torch.zeros(4, dtype=torch.bool)})
    assert torch.equal(model(image()), expected)
    assert torch.equal(baked(image()), expected)
    assert not torch.equal(more(image()), expected)
    assert list(masks(model)) == ["0.weight"]
    assert torch.equal(bake(model)(image()), expected)


def test_masks_are_in_the_state() -> None:
    model, other = small(), small()
    set_masks(model, half(model))
    set_masks(other, {"0.weight": torch.ones(4, 2, 3, 3, dtype=torch.bool)})
    other.load_state_dict(model.state_dict())
    assert torch.equal(masks(other)["0.weight"], masks(model)["0.weight"])
    assert torch.equal(other.eval()(image()), model.eval()(image()))


def test_a_masked_model_can_be_exported() -> None:
    model = small().eval()
    set_masks(model, half(model))
    program = torch.export.export(model, (image(),))
    assert torch.allclose(program.module()(image()), model(image()))


def test_baking_keeps_the_answers_and_the_names() -> None:
    model = small().eval()
    names = list(model.state_dict())
    set_masks(model, half(model))
    expected = model(image())
    assert bake(model) is model
    assert torch.equal(model(image()), expected)
    assert sorted(model.state_dict()) == sorted(names)
    assert masks(model) == {}
    assert isinstance(model[0].weight, nn.Parameter)
    assert sparsity(model, ["0"]) == 0.5


def test_biases_and_norms_can_be_masked() -> None:
    model = small()
    set_masks(model, {"1.bias": torch.zeros(4, dtype=torch.bool)})
    set_masks(model, half(model, "1.weight"))
    assert (model[1].bias == 0).all()
    assert int((model[1].weight == 0).sum()) == 2


def test_sparsity_counts_the_zeros_of_all_chosen_layers_together() -> None:
    model = small()  # 72 weights in the convolution, 108 in the linear layer
    assert sparsity(model) == 0
    set_masks(model, half(model))
    assert sparsity(model) == 36 / 180
    assert layer_sparsity(model) == {"0": 0.5, "4": 0.0}
    assert layer_sparsity(model, ["@linear"]) == {"4": 0.0}


def test_a_model_that_is_one_layer_can_be_masked() -> None:
    layer = nn.Linear(2, 2)
    set_masks(layer, {"weight": torch.tensor([[True, False], [False, False]])})
    assert sparsity(layer) == 0.75
    assert list(masks(layer)) == ["weight"]


def test_a_mask_lies_in_memory_as_its_weight_does() -> None:
    model = small().to(memory_format=torch.channels_last)
    set_masks(model, half(model))
    assert model[0].parametrizations.weight[0].mask.stride() == model[0].weight.stride()


def test_rewinding_puts_values_below_the_masks() -> None:
    model = small()
    start = {name: value.clone() for name, value in model.state_dict().items()}
    set_masks(model, half(model))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    load_dense_values(model, start)
    keep = masks(model)["0.weight"]
    assert torch.equal(model[0].weight, start["0.weight"] * keep)
    assert torch.equal(model[4].bias, start["4.bias"])
    assert set(dense_values(model)) == set(start)


def test_bad_masks_get_a_sentence() -> None:
    model = small()
    with pytest.raises(UnknownNameError, match=r"'0\.weigth' does not exist.*'0\.weight'"):
        set_masks(model, {"0.weigth": torch.ones(1, dtype=torch.bool)})
    with pytest.raises(InputError, match=r"shape \(1,\).*shape \(4, 2, 3, 3\)"):
        set_masks(model, {"0.weight": torch.ones(1, dtype=torch.bool)})
    with pytest.raises(InputError, match=r"torch\.float32.*torch\.bool"):
        set_masks(model, {"0.weight": torch.ones(4, 2, 3, 3)})
    with pytest.raises(InputError, match=r"lack '0\.weight'"):
        load_dense_values(model, {})
