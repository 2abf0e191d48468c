"""A student beside its teacher: the sum of losses, the frozen teacher, interrupted trainings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.crosses import crossed
from torch import Tensor, nn
from torch.nn import functional

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.batches import Examples, Scaling, examples, model_input, scaling_of
from fairweight.lab.distillation.distiller import Distiller, Teacher, initial_distiller, rescaled
from fairweight.lab.distillation.registry import (
    distillation_loss,
    initial_terms_of,
    losses,
    terms_of,
    unregister,
)
from fairweight.lab.loop import train
from fairweight.lab.models import architectures
from fairweight.lab.models.registry import build
from fairweight.specs.training import Augment, Distillation, Training

SPEC = Training(epochs=2, batch_size=16, lr=0.05, seed=5)


def coloured(n: int = 64) -> Examples:
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 4
    images = rng.integers(0, 120, (n, 8, 8, 1)) + 30 * labels[:, None, None, None]
    return examples(images.astype(np.uint8), labels)


def network(seed: int = 3) -> nn.Module:
    torch.manual_seed(seed)
    return build("resnet8x4", classes=4, channels=1, size=8, width=0.125)


def teacher(data: Examples, seed: int = 9) -> Teacher:
    return Teacher(network(seed), scaling_of(data.images))


def distilled(losses: str, data: Examples, student: nn.Module, **fields: Any) -> nn.Module:
    training = fields.pop("training", SPEC)
    distiller = Distiller(Distillation(losses=losses, **fields), teacher(data))
    return train(student, data, None, training, distiller=distiller).model


def same(first: nn.Module, second: nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_the_sum_is_the_weighted_sum_of_its_terms() -> None:
    data, student = coloured(), network()
    one = teacher(data)
    distiller = Distiller(Distillation(losses="at+kd", weights={"at": 500.0, "ce": 2.0}), one)
    distiller.begin(student, data, SPEC, one.scaling)
    images = model_input(data.images[:8], one.scaling)
    student.eval()
    value = distiller.loss(student, images, data.labels[:8], torch.arange(8))

    def maps(model: nn.Module) -> list[Tensor]:
        stem = model.relu(model.bn1(model.conv1(images)))
        first = model.layer1(stem)
        second = model.layer2(first)
        return [first, second, model.layer3(second)]

    def attention(found: Tensor) -> Tensor:
        return functional.normalize(found.pow(2).mean(1).flatten(1))

    at = sum(
        (attention(a) - attention(b)).pow(2).mean()
        for a, b in zip(maps(student), maps(one.network), strict=True)
    )
    logits, theirs = student(images), one.network(images)
    kd = functional.kl_div(
        functional.log_softmax(logits / 4, 1), functional.softmax(theirs / 4, 1), reduction="sum"
    ) * (16 / 8)
    by_hand = 2 * functional.cross_entropy(logits, data.labels[:8]) + 500 * at + kd
    assert value.item() == pytest.approx(by_hand.item(), rel=1e-5)


def test_the_teacher_never_changes() -> None:
    data = coloured()
    one = teacher(data)
    before = {name: value.clone() for name, value in one.network.state_dict().items()}
    train(network(), data, None, SPEC, distiller=Distiller(Distillation(losses="at+kd"), one))
    assert not one.network.training
    for name, value in one.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_the_teacher_is_asked_once_per_batch_or_once_for_all() -> None:
    data = coloured()
    asked: list[int] = []

    def counted(cache: bool) -> nn.Module:
        asked.clear()
        one = teacher(data)
        one.network.register_forward_hook(lambda m, i, o: asked.append(len(o)))
        spec = Distillation(losses="at+kd", cache=cache)
        return train(network(), data, None, SPEC, distiller=Distiller(spec, one)).model

    each = counted(cache=False)
    assert asked == [16] * 8  # two epochs of four steps, both losses from one answer
    kept = counted(cache=True)
    assert asked == [64]
    for (name, a), b in zip(each.state_dict().items(), kept.state_dict().values(), strict=True):
        assert torch.allclose(a, b, atol=1e-4), name


def test_a_teacher_draws_its_student_near() -> None:
    data = coloured()
    one = teacher(data)
    images = model_input(data.images, one.scaling)

    def apart(student: nn.Module) -> float:
        with torch.no_grad():
            difference = student.eval()(images).softmax(1) - one.network(images).softmax(1)
        return float(difference.abs().mean())

    training = Training(epochs=12, batch_size=16, lr=0.05, seed=5)
    taught = distilled("kd", data, network(), training=training, weights={"ce": 0.0, "kd": 1.0})
    alone = train(network(), data, None, training).model
    assert apart(taught) < 0.3 * apart(alone)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("named", ["at+kd", "crd"])
def test_an_interrupted_training_ends_with_the_same_weights(named: str, tmp_path: Path) -> None:
    data = coloured()
    options = {"crd": {"negatives": 8, "dimension": 4}} if named == "crd" else {}
    spec = Distillation(losses=named, options=options)

    def run(checkpoint: Path, stop_at: int | None) -> nn.Module:
        def told(numbers: dict[str, float], done: int, total: int) -> None:
            if done == stop_at:
                raise StoppedError

        distiller = Distiller(spec, teacher(data))
        return train(
            network(), data, None, SPEC, distiller=distiller,
            checkpoint=checkpoint, save_every=0.0, progress=told,
        ).model  # fmt: skip

    whole = run(tmp_path / "whole", None)
    with pytest.raises(StoppedError):
        run(tmp_path / "halves", 6)
    assert same(run(tmp_path / "halves", None), whole)


def test_a_checkpoint_of_another_distillation_is_refused(tmp_path: Path) -> None:
    data = coloured()
    for name in ("kd", "at"):
        distiller = Distiller(Distillation(losses=name), teacher(data))
        if name == "at":
            with pytest.raises(InputError, match="is of another run"):
                train(
                    network(), data, None, SPEC, distiller=distiller,
                    checkpoint=tmp_path / "c", save_every=0.0,
                )  # fmt: skip
        else:
            train(
                network(), data, None, SPEC, distiller=distiller,
                checkpoint=tmp_path / "c", save_every=0.0,
            )  # fmt: skip


def test_images_are_scaled_as_the_teacher_takes_them() -> None:
    data = coloured()
    mine, theirs = Scaling((0.2,), (0.5,)), Scaling((0.4,), (0.25,))
    made = rescaled(model_input(data.images, mine), mine, theirs)
    assert torch.allclose(made, model_input(data.images, theirs), atol=1e-5)
    with pytest.raises(InputError, match="images of 3 channels, and the student's have 1"):
        rescaled(made, mine, Scaling((0.1,) * 3, (1.0,) * 3))


def test_a_module_of_ones_own_names_its_features() -> None:
    data = coloured()

    def own() -> nn.Module:
        torch.manual_seed(1)
        return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 4))

    one = Teacher(own(), scaling_of(data.images))
    with pytest.raises(InputError, match="reads blocks, and the network has no feature 'block1'"):
        train(own(), data, None, SPEC, distiller=Distiller(Distillation(losses="at"), one))
    spec = Distillation(losses="at", features={"block1": "1"})
    student = own()
    distiller = Distiller(spec, one)
    distiller.begin(student, data, SPEC, one.scaling)
    images = model_input(data.images[:4], one.scaling)
    plain = functional.cross_entropy(student(images), data.labels[:4])
    value = distiller.loss(student, images, data.labels[:4], torch.arange(4))
    assert value.item() == pytest.approx(plain.item(), rel=1e-6)  # the student is its teacher
    spec = Distillation(losses="at", features={"block1": "nowhere"})
    with pytest.raises(UnknownNameError, match="nowhere"):
        Distiller(spec, one).begin(student, data, SPEC, one.scaling)


def test_a_loss_of_ones_own_is_one_function() -> None:
    data = coloured()

    @distillation_loss("squares", reads="logits", weight=2.0, summary="s", source="s")
    def squares(student: Any, teacher: Any, *, power: float = 2.0) -> Tensor:
        return (student["logits"] - teacher["logits"]).abs().pow(power).mean()

    try:
        student, one = network(), teacher(data)
        spec = Distillation(losses="squares", options={"squares": {"power": 1.0}})
        distiller = Distiller(spec, one)
        distiller.begin(student, data, SPEC, one.scaling)
        images = model_input(data.images[:4], one.scaling)
        student.eval()
        value = distiller.loss(student, images, data.labels[:4], torch.arange(4))
        ce = functional.cross_entropy(student(images), data.labels[:4])
        by_hand = ce + 2 * (student(images) - one.network(images)).abs().mean()
        assert value.item() == pytest.approx(by_hand.item(), rel=1e-5)
    finally:
        unregister("squares")


def test_the_initial_stage_trains_features_only() -> None:
    data, student = coloured(), network()
    spec = Distillation(losses="fsp", initial_epochs=2)
    first = initial_distiller(spec, teacher(data))
    assert first is not None
    head = student.fc.weight.detach().clone()
    stem = student.conv1.weight.detach().clone()
    train(student, data, None, SPEC, distiller=first)
    assert torch.equal(student.fc.weight, head)
    assert not torch.equal(student.conv1.weight, stem)
    assert terms_of(spec).terms == ()  # afterwards the labels alone
    assert initial_distiller(Distillation(losses="kd"), teacher(data)) is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"losses": "ad"}, "ad"),
        ({"losses": "kd+kd"}, "names a loss twice"),
        ({"losses": "kd", "weights": {"at": 1.0}}, "at"),
        ({"losses": "kd", "options": {"kd": {"temprature": 2}}}, "temperature"),
        ({"losses": "kd", "options": {"at": {}}}, "at"),
    ],
)
def test_what_a_sum_cannot_be(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        terms_of(Distillation(**fields))


def test_kept_features_need_unchanged_images() -> None:
    data = coloured()
    training = Training(epochs=1, lr=0.05, augment=Augment(flip=True))
    with pytest.raises(InputError, match="changed at random"):
        distilled("kd", data, network(), training=training, cache=True)


def test_several_tasks_have_no_distribution_over_classes() -> None:
    data = coloured()
    several = Examples(data.images, (data.labels[:, None] == torch.arange(4)).long())
    training = Training(epochs=1, lr=0.05, loss="binary")
    with pytest.raises(InputError, match="several binary tasks"):
        distilled("kd", several, network(), training=training)
    distilled("at", several, network(), training=training)


def test_few_examples_are_not_related_to_one_another() -> None:
    """The last batch of an epoch may have four, on which SP weighs many times as much."""
    data, student = coloured(), network()
    one = teacher(data)
    student.eval()

    def value(n: int, losses: str) -> float:
        distiller = Distiller(Distillation(losses=losses, weights={"ce": 1.0, "kd": 1.0}), one)
        distiller.begin(student, data, SPEC, one.scaling)
        images = model_input(data.images[:n], one.scaling)
        return distiller.loss(student, images, data.labels[:n], torch.arange(n)).item()

    assert value(7, "sp+kd") == pytest.approx(value(7, "kd"), rel=1e-6)
    assert value(8, "sp+kd") > 1.01 * value(8, "kd")  # half of the batches of 16


def test_features_of_a_network_with_other_names_pair_by_their_order() -> None:
    data = coloured()

    def pooling(*, first: nn.Module | None = None) -> nn.Module:
        torch.manual_seed(1)
        layers = [nn.Conv2d(1, 3, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)]
        return nn.Sequential(*([] if first is None else [first]), *layers)

    student, other = pooling(), pooling(first=nn.Identity())  # "1" and "2" are their pools
    one = Teacher(other, scaling_of(data.images))
    distiller = Distiller(Distillation(losses="max-pool-hint", weights={"ce": 1.0}), one)
    distiller.begin(student, data, SPEC, one.scaling)
    images = model_input(data.images[:4], one.scaling)
    plain = functional.cross_entropy(student(images), data.labels[:4])
    value = distiller.loss(student, images, data.labels[:4], torch.arange(4))
    assert value.item() == pytest.approx(plain.item(), rel=1e-6)  # the same weights
    two = Teacher(nn.Sequential(pooling(), nn.MaxPool2d(1)), scaling_of(data.images))
    with pytest.raises(InputError, match="reads 1 features of the student and 2 of the teacher"):
        Distiller(Distillation(losses="max-pool-hint"), two).begin(student, data, SPEC, one.scaling)


@pytest.mark.parametrize("name", crossed([entry.name for entry in architectures()], every=3))
def test_every_architecture_can_be_taught_by_every_loss_that_it_has_features_for(name: str) -> None:
    rng = np.random.default_rng(0)
    data = examples(rng.integers(0, 256, (8, 32, 32, 3)).astype(np.uint8), np.arange(8) % 2)
    torch.manual_seed(0)
    student, other = (build(name, classes=2, channels=3, size=32, width=0.125) for _ in range(2))
    one = Teacher(other, scaling_of(data.images))
    named = set(student.blocks)
    pools = any(isinstance(part, nn.MaxPool2d) for part in student.modules())
    has = {"max-pools": pools, "stem-and-blocks": "stem" in named, "pooled": "pooled" in named}
    for entry in losses():
        options = {"crd": {"negatives": 4}} if entry.name == "crd" else {}
        spec = Distillation(losses=entry.name, options=options)
        distiller = Distiller(spec, one, terms=initial_terms_of(spec))
        if not has.get(entry.reads, True):
            with pytest.raises(InputError, match=r"and the network has no(ne; | feature)"):
                distiller.begin(student, data, SPEC, one.scaling)
            continue
        distiller.begin(student, data, SPEC, one.scaling)
        images = model_input(data.images, one.scaling)
        value = distiller.loss(student, images, data.labels, torch.arange(8))
        value.backward()
        assert torch.isfinite(value), (name, entry.name)


def test_losses_are_in_32_bits_where_layers_compute_in_16() -> None:
    data = coloured()
    scaling = scaling_of(data.images)
    images = model_input(data.images[:16], scaling)
    found = {}
    for precision in ("float32", "bfloat16"):
        distiller = Distiller(Distillation(losses="at+kd"), teacher(data))
        distiller.begin(network(), data, replace(SPEC, precision=precision), scaling)
        found[precision] = distiller.loss(network(), images, data.labels[:16], torch.arange(16))
    assert {loss.dtype for loss in found.values()} == {torch.float32}
    assert found["bfloat16"] != found["float32"]
    assert found["bfloat16"].item() == pytest.approx(found["float32"].item(), rel=0.05)
    made = distilled("at+kd", data, network(), training=replace(SPEC, precision="bfloat16"))
    assert all(torch.isfinite(value).all() for value in made.parameters())
