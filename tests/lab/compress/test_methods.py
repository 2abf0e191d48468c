"""Every method: exact, repeatable, on the chosen layers; and what each one chooses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import prune as reference

from fairweight.errors import InputError
from fairweight.lab.compression.pruner import prune
from fairweight.lab.compression.registry import methods, spec_of
from fairweight.lab.masks import bake, layer_sparsity, masks, sparsity
from fairweight.specs.compression import NOfM, Structured, ToSparsity

ALL = [found.name for found in methods() if found.acts_on == "weights" and found.trains != "must"]
TO_SPARSITY = [found.name for found in methods() if issubclass(found.spec, ToSparsity)]
STRUCTURED = [found.name for found in methods() if issubclass(found.spec, Structured)]
WEIGHTS = [name for name in TO_SPARSITY if name not in STRUCTURED]


def network() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(16 * 4, 24), nn.ReLU(), nn.Linear(24, 5),
    )  # fmt: skip


def constant() -> nn.Sequential:
    """All weights alike: every choice is a tie."""
    model = network()
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.5)
    return model


def test_all_methods_of_the_papers_exist() -> None:
    assert set(ALL) >= {
        "global-magnitude", "l1-unstructured", "random-unstructured", "l1-structured",
        "l2-structured", "linf-structured", "random-structured", "n-of-m",
    }  # fmt: skip
    assert all(found.summary and found.source for found in methods())


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("share", [0, 0.1, 1 / 3, 0.5, 0.985, 1])
@pytest.mark.parametrize("make", [network, constant])
def test_single_weights_reach_the_sparsity_exactly(name: str, share: float, make: Any) -> None:
    pruned = prune(make(), spec_of(name, sparsity=share))
    sizes = {path: mask.numel() for path, mask in masks(pruned).items()}
    gone = {path: int((~mask).sum()) for path, mask in masks(pruned).items()}
    if name == "global-magnitude":
        assert sum(gone.values()) == round(share * sum(sizes.values()))
        assert sparsity(pruned) == round(share * sum(sizes.values())) / sum(sizes.values())
    else:
        assert gone == {path: round(share * size) for path, size in sizes.items()}


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("share", [0, 0.3, 0.5, 1])
@pytest.mark.parametrize("make", [network, constant])
def test_slices_reach_the_sparsity_exactly(name: str, dim: int, share: float, make: Any) -> None:
    pruned = prune(make(), spec_of(name, sparsity=share, dim=dim))
    assert len(masks(pruned)) == 3
    for mask in masks(pruned).values():
        slices = mask.transpose(0, dim).flatten(1)
        assert torch.equal(slices.any(1), slices.all(1))  # whole slices only
        assert int((~slices.any(1)).sum()) == round(share * len(slices))


@pytest.mark.parametrize("name", ALL)
def test_the_same_model_is_pruned_in_the_same_way(name: str) -> None:
    fields = {} if name == "n-of-m" else {"sparsity": 0.4}
    for make in (network, constant):
        one, other = (masks(prune(make(), spec_of(name, **fields))) for _ in range(2))
        assert all(torch.equal(one[key], other[key]) for key in one | other)


@pytest.mark.parametrize("name", ALL)
def test_only_chosen_layers_are_touched_and_the_model_itself_is_not(name: str) -> None:
    fields = {} if name == "n-of-m" else {"sparsity": 0.5}
    model = network()
    pruned = prune(model, spec_of(name, layers=("2",), **fields))
    assert layer_sparsity(pruned) == {"0": 0, "2": 0.5, "5": 0, "7": 0}
    assert sparsity(model) == 0
    assert masks(model) == {}


@pytest.mark.parametrize("name", TO_SPARSITY)
def test_pruning_again_does_not_compound_unless_asked(name: str) -> None:
    once = prune(network(), spec_of(name, sparsity=0.5, layers=("2",)))
    twice = prune(once, spec_of(name, sparsity=0.5, layers=("2",)))
    assert sparsity(twice, ["2"]) == 0.5
    remaining = {"kind": "one-shot", "of": "remaining"}
    rest = prune(once, spec_of(name, sparsity=0.5, layers=("2",), schedule=remaining))
    assert sparsity(rest, ["2"]) == 0.75
    for key, mask in masks(rest).items():
        assert not (mask & ~masks(once)[key]).any()


@pytest.mark.parametrize(
    ("name", "order"), [("l1-structured", 1), ("l2-structured", 2), ("linf-structured", torch.inf)]
)
@pytest.mark.parametrize("dim", [0, 1])
def test_slices_are_those_of_torch(name: str, order: float, dim: int) -> None:
    model = network()
    pruned = prune(model, spec_of(name, sparsity=0.4, dim=dim, layers=("2",)))
    reference.ln_structured(model[2], "weight", amount=0.4, n=order, dim=dim)
    assert torch.equal(masks(pruned)["2.weight"], model[2].weight_mask.bool())


def test_single_weights_are_those_of_torch() -> None:
    model = network()
    everywhere = prune(model, spec_of("global-magnitude", sparsity=0.7))
    each = prune(model, spec_of("l1-unstructured", sparsity=0.7))
    twin = copy.deepcopy(model)
    layers = [(twin[place], "weight") for place in (0, 2, 5, 7)]
    reference.global_unstructured(layers, pruning_method=reference.L1Unstructured, amount=0.7)
    reference.l1_unstructured(model[5], "weight", amount=0.7)
    assert torch.equal(masks(each)["5.weight"], model[5].weight_mask.bool())
    for place in (0, 2, 5, 7):
        assert torch.equal(masks(everywhere)[f"{place}.weight"], twin[place].weight_mask.bool())


def test_random_choices_depend_on_the_seed() -> None:
    for name in ("random-unstructured", "random-structured"):
        one = masks(prune(network(), spec_of(name, sparsity=0.5)))
        other = masks(prune(network(), spec_of(name, sparsity=0.5, seed=1)))
        assert any(not torch.equal(one[key], other[key]) for key in one)


def test_global_pruning_can_be_repeated_as_paganini_does() -> None:
    # LeNet at 28 × 28 without its biases: 59,838 weights in the paper's count; here one layer.
    model = nn.Linear(59_838, 1, bias=False)
    spec = spec_of(
        "global-magnitude", sparsity=0.2, schedule={"kind": "one-shot", "of": "remaining"}
    )
    for _ in range(19):
        model = prune(model, spec)
    assert int(masks(model)["weight"].sum()) == 862


@pytest.mark.parametrize(("n", "m"), [(2, 4), (1, 4), (1, 8), (0, 4), (4, 4)])
def test_n_of_m_keeps_the_largest_of_each_group_of_inputs(n: int, m: int) -> None:
    model = network()
    pruned = bake(prune(model, NOfM(n=n, m=m)))
    for place in (2, 5, 7):
        before, after = model[place].weight, pruned[place].weight
        # A row per output and place of the kernel, input channels along it.
        rows = [w.detach().movedim(1, -1).reshape(-1, w.shape[1]) for w in (before, after)]
        for group, kept in zip(*(row.split(m, dim=1) for row in rows), strict=True):
            largest = torch.zeros_like(group).scatter(1, group.abs().topk(n, dim=1).indices, 1.0)
            assert torch.equal(kept, group * largest)
    assert sparsity(pruned, ["2", "5", "7"]) == 1 - n / m
    assert sparsity(pruned, ["0"]) == 0


def test_n_of_m_groups_inputs_not_places() -> None:
    layer = nn.Conv2d(4, 1, (1, 2), bias=False)
    # Inputs in rows, two places in columns; the larger two of each column stay.
    values = torch.tensor([[1.0, 8.0], [2.0, 7.0], [3.0, 6.0], [4.0, 5.0]])
    layer.weight.data = values.view(1, 4, 1, 2)
    pruned = prune(layer, NOfM(layers=("*",)))
    assert pruned.weight.view(4, 2).tolist() == [[0, 8], [0, 7], [3, 0], [4, 0]]


def test_n_of_m_names_a_layer_that_does_not_divide() -> None:
    with pytest.raises(InputError, match=r"The layer '0' has 3 input channels .* m = 4.*\"!0\""):
        prune(network(), NOfM(layers=("*",)))
    left = prune(network(), NOfM(layers=("*",), indivisible="leave"))
    assert layer_sparsity(left) == {"0": 0, "2": 0.5, "5": 0.5, "7": 0.5}


def test_gradual_schedules_need_training() -> None:
    with pytest.raises(InputError, match="'agp' prunes while a model trains"):
        prune(network(), spec_of("agp-filters", sparsity=0.5))


def test_a_model_with_hooks_of_torch_gets_a_sentence() -> None:
    model = network()
    reference.l1_unstructured(model[0], "weight", amount=0.5)
    model(torch.rand(1, 3, 6, 6))
    with pytest.raises(InputError, match=r"cannot be copied .*prune\.remove"):
        prune(model, spec_of("global-magnitude", sparsity=0.5))
