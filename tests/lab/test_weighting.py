"""Weights of classes in the loss: counted by hand, resumable, and nothing where none are asked."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.batches import Examples, examples
from fairweight.lab.loop import STEP, Weighting, drawing_chances, loss_of, train
from fairweight.specs.fields import recorded
from fairweight.specs.training import Training

LABELS = torch.tensor([0, 0, 0, 1])
PAIRS = torch.tensor([[0, 1], [0, 1], [0, 0], [1, 1]])  # two attributes of four examples


def test_balanced_classes_weigh_the_same_in_all() -> None:
    """n / (classes × n_c): 4 / (2 × 3) and 4 / (2 × 1)."""
    assert Weighting("class-balanced", LABELS).weights.tolist() == [[4 / 6, 2.0]]
    both = Weighting("class-balanced", PAIRS).weights
    assert both.tolist() == [[4 / 6, 2.0], [2.0, 4 / 6]]


def test_a_class_without_examples_takes_nothing_from_the_others() -> None:
    weights = Weighting("class-balanced", torch.tensor([0, 0, 2, 2])).weights
    assert weights[0, [0, 2]].tolist() == [1.0, 1.0]


def test_the_loss_is_the_weighted_mean() -> None:
    output = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]])  # probabilities ½ ½ and ¾ ¼
    labels = torch.tensor([1, 0])
    loss = Weighting("class-balanced", LABELS).loss(output, labels)
    by_hand = (2.0 * math.log(2) + 4 / 6 * math.log(4 / 3)) / 2
    assert float(loss) == pytest.approx(by_hand)
    logits = torch.tensor([[0.0, math.log(3)]])  # probabilities ½ and ¾
    loss = Weighting("class-balanced", PAIRS).loss(logits, torch.tensor([[1, 0]]))
    assert float(loss) == pytest.approx((2.0 * math.log(2) + 2.0 * math.log(4)) / 2)


def test_equal_weights_give_the_plain_loss() -> None:
    generator = torch.Generator().manual_seed(1)
    output = torch.randn(4, 2, generator=generator)
    for labels, kind in ((LABELS, "cross-entropy"), (PAIRS, "binary")):
        weighted = Weighting("worst-class", labels).loss(output, labels)
        assert float(weighted) == pytest.approx(float(loss_of(output, labels, kind)))


def test_the_class_with_more_errors_gains() -> None:
    weighting = Weighting("worst-class", LABELS)
    weighting.before_epoch()
    assert weighting.weights.tolist() == [[1.0, 1.0]]  # nothing was seen yet
    # One of three zeros is wrong, and the only one is: errors of 1/3 and 1.
    output = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    weighting.loss(output, LABELS)
    weighting.before_epoch()
    raw = [math.exp(STEP / 3), math.exp(STEP)]
    mean = (3 * raw[0] + raw[1]) / 4
    assert weighting.weights[0].tolist() == pytest.approx([raw[0] / mean, raw[1] / mean])
    before = weighting.weights.clone()
    weighting.loss(torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]]), LABELS)
    weighting.before_epoch()
    assert torch.equal(weighting.weights, before)  # an epoch without errors changes nothing


def test_attributes_are_weighed_each_by_itself() -> None:
    weighting = Weighting("worst-class", PAIRS)
    right = torch.where(PAIRS == 1, 1.0, -1.0)
    right[3, 0] = -1.0  # the one positive of the first attribute
    weighting.loss(right, PAIRS)
    weighting.before_epoch()
    first, second = weighting.weights.tolist()
    assert second == [1.0, 1.0]
    assert first[1] / first[0] == pytest.approx(math.exp(STEP))
    assert 3 * first[0] + first[1] == pytest.approx(4)


def rare(n: int = 90) -> Examples:
    """Noisy images of which a tenth is of the second class."""
    rng = np.random.default_rng(0)
    labels = (np.arange(n) % 10 == 0).astype(np.int64)
    images = rng.integers(0, 200, (n, 4, 4, 1))
    images[labels == 1, :2] += 40
    return examples(images.astype(np.uint8), labels)


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 2))


def spec(weighting: str, epochs: int = 3) -> Training:
    return Training(epochs=epochs, batch_size=16, lr=0.05, seed=2, weighting=weighting)


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(
        torch.equal(a, b)
        for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_weights_help_the_rare_class() -> None:
    data = rare()
    found = {}
    for kind in ("none", "class-balanced", "worst-class"):
        model = train(network(), data, None, spec(kind, epochs=12)).model
        with torch.no_grad():
            pixels = (data.images.float() / 255 - data.images.float().mean() / 255) / 0.25
            answers = model(pixels.permute(0, 3, 1, 2)).argmax(dim=1)
        found[kind] = float((answers[data.labels == 1] == 1).double().mean())
    assert found["class-balanced"] > found["none"]
    assert found["worst-class"] > found["none"]


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("at", [3, 6, 7, 13])
def test_an_interrupted_run_goes_on_with_its_weights(at: int, tmp_path: Path) -> None:
    """Six steps per epoch: in an epoch, at its end, and after weights changed."""
    whole = train(network(), rare(), None, spec("worst-class"))

    def stop(numbers: dict[str, float], done: int, total: int) -> None:
        if done == at:
            raise StoppedError

    folder = tmp_path / "run"
    with pytest.raises(StoppedError):
        train(network(), rare(), None, spec("worst-class"), checkpoint=folder, save_every=0,
              progress=stop)  # fmt: skip
    continued = train(network(), rare(), None, spec("worst-class"), checkpoint=folder)
    assert same(whole.model, continued.model)
    assert not same(whole.model, train(network(), rare(), None, spec("none")).model)


def test_none_is_as_if_there_were_no_weighting() -> None:
    assert "weighting" not in recorded(spec("none"))
    assert recorded(spec("worst-class"))["weighting"] == "worst-class"


def test_weights_and_a_teacher_exclude_each_other() -> None:
    class Taught:
        def begin(self, *given: object) -> None: ...

    with pytest.raises(InputError, match='weighting = "class-balanced"'):
        train(network(), rare(), None, spec("class-balanced"), distiller=Taught())


def test_balanced_sampling_draws_levels_alike() -> None:
    """A tenth is of the second class: drawn half of the time, and none of the others more often."""
    data = rare(1000)
    balanced = Training(epochs=1, sampling="class-balanced")
    chances = drawing_chances(data, balanced)
    assert chances is not None
    assert float(chances[data.labels == 1].sum()) == pytest.approx(0.5)
    assert len(set(chances.tolist())) == 2
    assert drawing_chances(data, Training(epochs=1)) is None
    by_group = Training(epochs=1, sampling="group-balanced", sampling_group="race")
    race = np.where(np.arange(1000) < 20, "few", "many")
    grouped = Examples(data.images, data.labels, {"race": race})
    chances = drawing_chances(grouped, by_group)
    assert chances is not None
    assert float(chances[:20].sum()) == pytest.approx(0.5)
    with pytest.raises(InputError, match="sampling_group"):
        drawing_chances(data, by_group)
    with pytest.raises(InputError, match="several attributes"):
        drawing_chances(Examples(data.images, data.labels[:, None]), balanced)


def test_balanced_sampling_helps_the_rare_class() -> None:
    data, found = rare(), {}
    for kind in ("shuffled", "class-balanced"):
        how = Training(epochs=12, batch_size=16, lr=0.05, seed=2, sampling=kind)
        model = train(network(), data, None, how).model
        with torch.no_grad():
            pixels = (data.images.float() / 255 - data.images.float().mean() / 255) / 0.25
            answers = model(pixels.permute(0, 3, 1, 2)).argmax(dim=1)
        found[kind] = float((answers[data.labels == 1] == 1).double().mean())
    assert found["class-balanced"] > found["shuffled"]


def test_sampling_needs_its_group() -> None:
    with pytest.raises(ValueError, match="sampling_group is the column"):
        Training(epochs=1, sampling="group-balanced")
    assert "sampling" not in recorded(Training(epochs=1))
