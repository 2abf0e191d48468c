"""Channels really removed: smaller, and the same answers; or a sentence that says where not."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairweight.errors import InputError
from fairweight.lab.compression.channels import ChannelGraph, norms_of, remove_channels
from fairweight.lab.compression.methods import INFINITY
from fairweight.lab.compression.pruner import prune
from fairweight.lab.masks import masks, set_masks
from fairweight.specs.compression import (
    GlobalMagnitude,
    L1Structured,
    L2Structured,
    LinfStructured,
    OneShot,
    RandomStructured,
)

IMAGE = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(2))
METHODS = [L1Structured, L2Structured, LinfStructured, RandomStructured]


def unsettled(model: nn.Module) -> nn.Module:
    """Norms as after some training: no mean is 0, no scale is 1."""
    random = torch.Generator().manual_seed(7)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for value in (module.weight, module.bias, module.running_mean, module.running_var):
                assert value is not None
                value.data = 0.5 + torch.rand(value.shape, generator=random)
    return model.eval()


def chain(**layers: nn.Module) -> nn.Module:
    """Two convolutions with biases and padding, a norm, and a linear layer after flattening."""
    torch.manual_seed(0)
    parts: dict[str, nn.Module] = {
        "a": nn.Conv2d(3, 8, 3, padding=1),
        "norm": nn.BatchNorm2d(8),
        "relu": nn.ReLU(),
        "b": nn.Conv2d(8, 6, 3, padding=1),
        "relu2": nn.ReLU(),
        "pool": nn.MaxPool2d(4),
        "flat": nn.Flatten(),
        "fc": nn.Linear(6 * 4, 5),
    }
    return unsettled(nn.Sequential(OrderedDict(parts | layers)))


class Residual(nn.Module):
    """Two branches that are summed, a depthwise convolution, and two that are concatenated."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.inner = nn.Conv2d(8, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.outer = nn.Conv2d(6, 8, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.left = nn.Conv2d(8, 4, 1)
        self.depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.right = nn.Conv2d(8, 6, 3, padding=1)
        self.fc = nn.Linear(10, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem(x))
        x = functional.relu(x + self.norm2(self.outer(functional.relu(self.norm(self.inner(x))))))
        x = torch.cat([self.depthwise(functional.relu(self.left(x))), self.right(x)], dim=1)
        return self.fc(x.mean(dim=(2, 3)))


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [chain, lambda: unsettled(Residual())])
def test_the_smaller_network_answers_as_the_masked_one(method: Any, make: Any) -> None:
    model, spec = make(), method(sparsity=0.5)
    masked, removed = prune(model, spec, IMAGE), remove_channels(model, spec, IMAGE)
    other = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(9))
    assert torch.allclose(masked(other), removed(other), atol=1e-5)
    assert not torch.allclose(model(other), removed(other), atol=1e-2)
    assert n_parameters(removed) < 0.5 * n_parameters(model)
    assert masks(removed) == {}


def test_channels_are_counted_by_hand() -> None:
    small = remove_channels(chain(), L1Structured(sparsity=0.5), IMAGE)
    assert small.a.weight.shape == (4, 3, 3, 3)
    assert small.norm.num_features == 4
    assert small.b.weight.shape == (3, 4, 3, 3)
    assert small.fc.weight.shape == (5, 3 * 4)  # 2 × 2 places of each channel


def test_in_a_chain_the_masked_filters_go() -> None:
    model, spec = chain(), L1Structured(sparsity=0.5)
    by_layer, whole = masks(prune(model, spec)), masks(prune(model, spec, IMAGE))
    assert torch.equal(by_layer["a.weight"], whole["a.weight"])
    assert torch.equal(by_layer["b.weight"], whole["b.weight"])
    assert torch.equal(whole["a.bias"], whole["norm.weight"])


@pytest.mark.parametrize("method", METHODS)
def test_inputs_can_be_removed_too(method: Any) -> None:
    model, spec = chain(), method(sparsity=0.5, dim=1)
    masked, removed = prune(model, spec, IMAGE), remove_channels(model, spec, IMAGE)
    assert removed.a.out_channels == 4
    assert removed.fc.in_features == 3 * 4
    assert torch.allclose(masked(IMAGE), removed(IMAGE), atol=1e-5)


def test_nothing_is_removed_at_0() -> None:
    model = chain()
    same = remove_channels(model, L1Structured(sparsity=0), IMAGE)
    assert n_parameters(same) == n_parameters(model)
    assert torch.equal(same(IMAGE), model(IMAGE))


def test_the_model_itself_stays_as_it_is() -> None:
    model = chain().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    removed = remove_channels(model, L1Structured(sparsity=0.5), IMAGE)
    assert removed.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_smaller_network_can_be_trained() -> None:
    small = remove_channels(chain(), L1Structured(sparsity=0.5), IMAGE).train()
    small(IMAGE).square().sum().backward()
    assert all(parameter.grad is not None for parameter in small.parameters())


def test_own_importance_of_order_infinity() -> None:
    # Two convolutions make the same two channels: the larger of their largest weights counts.
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (nn.Conv2d(*shape, 1) for shape in ((1, 2), (1, 2), (2, 1)))
            self.a.weight.data = torch.tensor([-3.0, 1.0]).view(2, 1, 1, 1)
            self.b.weight.data = torch.tensor([2.0, -4.0]).view(2, 1, 1, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.c(self.a(x) + self.b(x)).flatten(1)

    graph = ChannelGraph(Sum(), torch.randn(1, 1, 2, 2))
    shared = next(channels for channels in graph.all if len(channels.makers) == 2)
    norms = {
        order: norms_of(shared.makers, 2, dim=0, order=order).tolist() for order in (1, 2, INFINITY)
    }
    assert norms[INFINITY] == [3, 4]
    assert norms[1] == [5, 5]
    assert norms[2] == pytest.approx([13**0.5, 17**0.5])


def test_constants_of_masked_filters_go_into_the_next_bias() -> None:
    # Without padding a silent filter sends its bias everywhere alike.
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.Sigmoid(), nn.Conv2d(6, 4, 3, bias=False), nn.BatchNorm2d(4),
        nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 5),
    )  # fmt: skip
    masked = prune(unsettled(model), L1Structured(sparsity=0.5))
    small = remove_channels(masked, None, IMAGE)
    assert small[0].out_channels == 3
    assert small[2].bias is not None
    assert torch.allclose(masked(IMAGE), small(IMAGE), atol=1e-5)


def test_constants_at_a_border_of_zeros_are_refused_by_name() -> None:
    masked = prune(chain(), L1Structured(sparsity=0.5))
    with pytest.raises(InputError, match=r"channels of 'a' .* not 0 where 'b' reads them"):
        remove_channels(masked, None, IMAGE)
    small = remove_channels(masked, None, IMAGE, partial=True)
    # A silent filter sends its bias through the norm; what is then above 0 must stay.
    silent = (masked.a.weight == 0).flatten(1).all(1)
    sent = masked.norm(masked.a.bias.view(1, 8, 1, 1)).flatten()[silent]
    assert 0 < int((sent > 0).sum()) < 4
    assert small.a.out_channels == 4 + int((sent > 0).sum())
    assert small.b.out_channels == 3  # those of b go into the bias of the linear layer
    assert torch.allclose(masked(IMAGE), small(IMAGE), atol=1e-5)


def test_filters_that_are_summed_with_live_ones_are_refused_by_name() -> None:
    masked = prune(unsettled(Residual()), L1Structured(sparsity=0.5, layers=("outer",)))
    with pytest.raises(InputError, match=r"4 masked filters of 'outer' cannot be removed"):
        remove_channels(masked, None, IMAGE)
    small = remove_channels(masked, None, IMAGE, partial=True)
    assert torch.equal(masked(IMAGE), small(IMAGE))


def test_an_activation_that_makes_something_of_nothing_is_named() -> None:
    model = chain(relu=nn.Sigmoid())
    with pytest.raises(InputError, match=r"'b' reads them"):
        remove_channels(model, L1Structured(sparsity=0.5), IMAGE)


def test_a_norm_that_mixes_channels_is_named() -> None:
    model = chain(norm=nn.GroupNorm(4, 8))
    with pytest.raises(InputError, match=r"of 'a' cannot be removed: 'norm' \(GroupNorm\) mixes"):
        remove_channels(model, L1Structured(sparsity=0.5), IMAGE)
    small = remove_channels(model, L1Structured(sparsity=0.5, layers=("b",)), IMAGE)
    assert small.b.out_channels == 3


class Meeting(nn.Module):
    """Channels that meet in an operation outside of layers."""

    def __init__(self, meet: Callable[[Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3), nn.Linear(4, 5)
        self.meet = meet

    def forward(self, x: Tensor) -> Any:
        between = self.meet(self.a(x))
        return self.c(self.b(between).mean((2, 3)))


@pytest.mark.parametrize(
    ("meet", "sentence"),
    [
        # A softmax gives something to silent channels too, and not always the same.
        (
            lambda x: x.softmax(dim=1),
            r"of 'a' would change the answers: .* 'b' reads them \(something between",
        ),
        # A mean over channels counts the silent ones, which stay 0 themselves.
        (lambda x: x / (1 + x.abs().mean(1, keepdim=True)), r"not answer .*: what 'b' reads of"),
        (nn.LocalResponseNorm(3), r"'meet' \(LocalResponseNorm\) mixes them"),
    ],
)
def test_channels_that_meet_outside_of_layers_are_found(meet: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        remove_channels(Meeting(meet).eval(), L1Structured(sparsity=0.5, layers=("a",)), IMAGE)


def test_outputs_that_are_made_of_channels_are_found() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            features = self.a(x)
            return {"features": features, "answer": self.b(features).mean((2, 3))}

    with pytest.raises(InputError, match="outputs"):
        remove_channels(Both().eval(), L1Structured(sparsity=0.5), IMAGE)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (L1Structured(sparsity=1), r"No channel of 'b' would be left; .* at most 0\.833"),
        (L1Structured(sparsity=0.5, layers=("fc",)), r"of 'fc' cannot be removed: they are the"),
        (L1Structured(sparsity=0.5, dim=1, layers=("*",)), r"'a' do not read channels \(dim = 1\)"),
        (GlobalMagnitude(sparsity=0.5), r"GlobalMagnitude, which removes single weights; use l1-"),
        (None, r"no masks, so spec= must say"),
    ],
)
def test_what_cannot_be_removed_gets_a_sentence(spec: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        remove_channels(chain(), spec, IMAGE)


def test_layers_that_share_channels_are_chosen_together() -> None:
    with pytest.raises(InputError, match=r"'outer', 'stem' share .* choose all of them or none"):
        remove_channels(unsettled(Residual()), L1Structured(sparsity=0.5, layers=("stem",)), IMAGE)


def test_grouped_convolutions_are_named() -> None:
    model = chain(b=nn.Conv2d(8, 6, 3, padding=1, groups=2))
    with pytest.raises(InputError, match="'b' is a convolution in 2 groups"):
        remove_channels(model, L1Structured(sparsity=0.5), IMAGE)


def test_an_example_that_does_not_fit_gets_a_sentence() -> None:
    with pytest.raises(InputError, match=r"example of shape \(2, 1, 8, 8\)"):
        remove_channels(chain(), L1Structured(sparsity=0.5), IMAGE[:, :1])


def test_whole_channels_of_what_remains() -> None:
    spec = L1Structured(sparsity=0.5, schedule=OneShot(of="remaining"))
    once = prune(chain(), spec, IMAGE)
    twice = prune(once, spec, IMAGE)
    assert [int(masks(m)["a.bias"].sum()) for m in (once, twice)] == [4, 2]
    assert remove_channels(twice, None, IMAGE).a.out_channels == 2


def test_masks_on_single_weights_remove_no_channel() -> None:
    model = chain()
    keep = torch.ones_like(model.a.weight, dtype=torch.bool)
    keep[0, 0] = False
    set_masks(model, {"a.weight": keep})
    small = remove_channels(model, None, IMAGE)
    assert small.a.out_channels == 8
    assert torch.allclose(small(IMAGE), model(IMAGE), atol=1e-6)
