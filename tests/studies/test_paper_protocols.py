"""The paper presets say what the papers say: epochs, batches, rates, levels, populations.

Numbers are those of the papers and of their authors' configurations.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairweight.specs.study import Copy, Experiment
from fairweight.specs.training import Training
from fairweight.studies.library import study


def experiments(name: str) -> dict[str, Experiment]:
    return {experiment.name: experiment for experiment in study(name, "paper").experiment}


def finetuned(copy: Copy) -> Training:
    assert copy.finetune is not None
    return copy.finetune


def levels(copy: Copy) -> Sequence[float]:
    found: Sequence[float] = copy.grid["sparsity"]
    return found


def test_simon_says() -> None:
    """One teacher and four students, 240 epochs, pruned over the first half (AGP's own default)."""
    found = experiments("simon-says")
    assert set(found) == {"cifar100", "cifar100-imbalanced", "vgg16"}
    (copy,) = found["cifar100"].copies
    assert (found["cifar100"].members, copy.members) == (1, 4)
    assert finetuned(copy).epochs == found["cifar100"].training.epochs == 240
    assert (copy.method, levels(copy)) == ("agp-filters", (0.3, 0.45, 0.6, 0.75))
    losses = {"kd", "at", "sp", "fsp", "hint", "pkt", "crd", "at+kd", "sp+kd", "pkt+kd", "hint+kd"}
    assert set(copy.grid["distill"]) == {"plain", *losses}
    assert found["vgg16"].grid["data.name"] == ("cifar10", "imagenette", "imagewoof")


def test_pruned_vision_bias() -> None:
    found = experiments("pruned-vision-bias")
    assert {experiment.members for experiment in found.values()} == {5}
    joint = found["joint"]
    scratch, pretrained, *patterns = joint.copies
    assert (joint.training.epochs, finetuned(pretrained).epochs) == (100, 80)
    assert found["single"].training.epochs == found["pair"].training.epochs == 20
    assert levels(scratch) == levels(pretrained) == (0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
    assert [(copy.fields["n"], copy.fields["m"]) for copy in patterns] == [(2, 4), (1, 4), (1, 8)]
    assert (joint.training.lr, joint.training.momentum, joint.training.batch_size) == (
        0.256, 0.875, 256,
    )  # fmt: skip
    # The published configuration of the dense network has no weight decay, those of sparse ones do.
    assert scratch.finetune is None
    assert joint.training.weight_decay == 3.05e-5
    assert (finetuned(pretrained).optimizer, finetuned(pretrained).lr) == ("adam", 1e-4)
    assert joint.training.keep_best  # on validation examples
    assert len(found["single"].grid["data.tasks"]) == 7
    assert all(identity == "Male" for _, identity in found["pair"].grid["data.tasks"])
    marked = [e for e in found.values() if e.data.backdoor is not None]
    assert len(marked) == 2 * 4  # both marks on four attributes
    architectures = {e.model.architecture for e in found.values()}
    assert architectures == {"resnet18", "resnet50", "mobilenet"}


def test_characterising_bias() -> None:
    """10,000 steps of 256 are 15.7 epochs of 162,770 images; whole epochs are trained."""
    (experiment,) = experiments("characterising-bias").values()
    assert experiment.members == 30
    training = experiment.training
    assert training.batch_size == 256
    assert training.epochs == -(-10_000 * 256 // 162_770)
    pruned, *quantised = experiment.copies
    assert (pruned.method, levels(pruned)) == ("zhu-gupta", (0.3, 0.5, 0.7, 0.9, 0.95, 0.99))
    assert [copy.method for copy in quantised] == ["int8-static", "int8-dynamic"]
    assert experiment.groups == ("Male", "Young", "Male*Young")


@pytest.mark.parametrize("name", ["lenet", "larger"])
def test_prune_responsibly(name: str) -> None:
    experiment = experiments("prune-responsibly")[name]
    assert (experiment.members, experiment.first_seed) == (6, 0)
    for training in (experiment.training, *(finetuned(copy) for copy in experiment.copies)):
        assert (training.epochs, training.batch_size, training.lr) == (30, 32, 0.01)
        assert training.optimizer == "sgd"
        assert training.augment.crop
        assert training.augment.flip
    assert experiment.data.validation == 0.2
    assert len(experiment.grid["data.name"]) == 8
    methods = [method for copy in experiment.copies for method in copy.grid["method"]]
    assert len(methods) == 7
    for copy in experiment.copies:
        assert (copy.rounds, copy.fields["sparsity"]) == (19, 0.2)  # nineteen between 20 trainings
        assert copy.grid["rewind"] == (True, False)


def test_prune_responsibly_has_four_networks() -> None:
    found = experiments("prune-responsibly")
    larger = found["larger"].grid["model.architecture"]
    assert {found["lenet"].model.architecture, *larger} == {
        "lenet", "alexnet", "vgg11", "resnet18",
    }  # fmt: skip


def test_resource_efficient() -> None:
    found = experiments("resource-efficient")
    first, second = found["cifar10"], found["fairface"]
    assert (first.model.architecture, second.model.architecture) == ("resnet34", "vgg16")
    (one_layer,) = first.copies
    assert (first.training.epochs, finetuned(one_layer).epochs) == (140, 80)
    assert (first.training.lr, first.training.batch_size) == (0.01, 128)
    assert (one_layer.method, levels(one_layer)) == ("l2-structured", (0.5, 0.8))
    assert len(one_layer.fields["layers"]) == 1
    assert not second.data.own_parts
    assert (second.data.validation, second.data.test) == (0.15, 0.15)
    (decayed,) = second.copies
    assert (second.training.epochs, second.training.optimizer, second.training.lr) == (
        30 + 20, "adam", 0.01,
    )  # fmt: skip
    assert (finetuned(decayed).epochs, finetuned(decayed).lr) == (20 + 10, 1e-4)
    assert levels(decayed) == (0.5, 0.6, 0.7, 0.8, 0.9)
    assert decayed.fields["schedule"]["kind"] == "polynomial"
