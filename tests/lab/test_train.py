"""The training loop: deterministic, resumable, careful with what it keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Examples, Scaling, examples, model_input, scaling_of
from fairweight.lab.compression.pruner import Pruner
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.loop import Progress, evaluate, train
from fairweight.specs.compression import Iterative, Polynomial
from fairweight.specs.training import Augment, Training


def striped(n: int = 96, *, seed: int = 0) -> Examples:
    """Images whose class is the half that is bright: learnt in a few steps."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    images = rng.integers(0, 60, (n, 6, 6, 1))
    images[labels == 0, :3] += 150
    images[labels == 1, 3:] += 150
    return examples(images.astype(np.uint8), labels)


def network(*, dropout: float = 0.2) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
        nn.Dropout(dropout), nn.Linear(144, 2),
    )  # fmt: skip


SPEC = Training(
    epochs=3,
    batch_size=16,
    lr=0.05,
    seed=5,
    augment=Augment(crop=1, flip=True, rotate=5, shift=0.1),
)


def same(first: nn.Module, second: nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_it_learns() -> None:
    made = train(network(), striped(), striped(seed=1), SPEC)
    assert made.history[-1]["accuracy"] > 0.95
    assert len(made.history) == 3


def test_a_seed_decides_everything() -> None:
    first = train(network(), striped(), striped(seed=1), SPEC)
    model = network()
    torch.rand(7)  # whatever was drawn before
    second = train(model, striped(), striped(seed=1), SPEC)
    assert same(first.model, second.model)
    other = train(network(), striped(), None, Training(epochs=3, batch_size=16, lr=0.05, seed=6))
    assert not same(first.model, other.model)


def test_the_callers_random_numbers_stay_as_they_were() -> None:
    model = network()
    before = torch.get_rng_state()
    train(model, striped(), None, Training(epochs=1, lr=0.05))
    assert torch.equal(before, torch.get_rng_state())


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("at", [1, 5, 6, 7, 17])
@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, precision="bfloat16")], ids=["32", "16"])
def test_an_interrupted_run_goes_on_to_the_same_weights(
    spec: Training, at: int, tmp_path: Path
) -> None:
    whole = train(network(), striped(), striped(seed=1), spec)

    def stop(numbers: dict[str, float], done: int, total: int) -> None:
        assert total == 18  # three epochs of six batches
        if done == at:
            raise StoppedError

    folder = tmp_path / "run"
    with pytest.raises(StoppedError):
        train(network(), striped(), striped(seed=1), spec, checkpoint=folder, save_every=0,
              progress=stop)  # fmt: skip
    continued = train(network(), striped(), striped(seed=1), spec, checkpoint=folder)
    assert same(whole.model, continued.model)
    assert whole.history == continued.history
    assert whole.kept_epoch == continued.kept_epoch


Shown = tuple[dict[str, float], int, int]


def shown_by(pruner: Pruner | None, validation: Examples | None) -> list[Shown]:
    """What a progress bar gets: three epochs of six steps."""
    shown: list[Shown] = []
    train(network(), striped(), validation, SPEC, pruner=pruner,
          progress=lambda *given: shown.append(given))  # fmt: skip
    return shown


def test_progress_shows_loss_sparsity_and_the_last_accuracy() -> None:
    made = train(network(), striped(), striped(seed=1), SPEC)
    shown = shown_by(None, striped(seed=1))
    assert [(done, total) for _, done, total in shown] == [(i, 18) for i in range(1, 19)]
    assert all(numbers["sparsity"] == 0 for numbers, _, _ in shown)
    assert shown[0][0]["loss"] > shown[-1][0]["loss"] > 0
    accuracies = [numbers.get("accuracy") for numbers, _, _ in shown]
    first, second, _ = (epoch["accuracy"] for epoch in made.history)
    assert accuracies == [None] * 6 + [first] * 6 + [second] * 6
    assert all("accuracy" not in numbers for numbers, _, _ in shown_by(None, None))


def test_progress_counts_held_out_examples_without_numbers() -> None:
    shown: list[Shown] = []
    evaluate(network(), striped(1100), Scaling((0.5,), (0.5,)),
             progress=lambda *given: shown.append(given))  # fmt: skip
    assert shown == [({}, 512, 1100), ({}, 1024, 1100), ({}, 1100, 1100)]


def test_progress_counts_masked_weights_only_when_masks_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import fairweight.lab.loop as loop

    counted: list[float] = []
    zeros = loop._zeros

    def counting(model: nn.Module) -> float:
        counted.append(zeros(model))
        return counted[-1]

    monkeypatch.setattr(loop, "_zeros", counting)
    pruner = Pruner(spec_of("global-magnitude", sparsity=0.8, schedule=Polynomial(end=17, every=6)))
    sparsities = [numbers["sparsity"] for numbers, _, _ in shown_by(pruner, None)]
    assert sparsities == sorted(sparsities)
    assert sparsities[-1] == pytest.approx(0.8, abs=0.002)
    changes = sum(a != b for a, b in zip([0.0, *sparsities], sparsities, strict=False))
    assert changes >= 2
    # Once at the start, once per change, and once at the end of each of three epochs.
    assert len(counted) == 1 + changes + 3


def test_a_continued_run_shows_accuracy_and_sparsity_at_once(tmp_path: Path) -> None:
    def pruner() -> Pruner:
        schedule = Polynomial(end=17, every=6)
        return Pruner(spec_of("global-magnitude", sparsity=0.8, schedule=schedule))

    shown: list[Shown] = []

    def stop(numbers: dict[str, float], done: int, total: int) -> None:
        shown.append((numbers, done, total))
        if done == 8:
            raise StoppedError

    def run(progress: Progress) -> None:
        train(network(), striped(), striped(seed=1), SPEC, pruner=pruner(), save_every=0,
              checkpoint=tmp_path / "run", progress=progress)  # fmt: skip

    with pytest.raises(StoppedError):
        run(stop)
    # The step at which it stopped was not saved: it is made again.
    continued: list[Shown] = []
    run(lambda *given: continued.append(given))
    assert continued[0] == shown[-1]
    assert "accuracy" in continued[0][0]
    assert 0 < continued[0][0]["sparsity"] < 0.8


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    train(
        network(),
        striped(),
        None,
        Training(epochs=1, lr=0.05),
        checkpoint=tmp_path / "run",
        save_every=0,
    )
    with pytest.raises(InputError, match="of another run"):
        train(network(), striped(), None, Training(epochs=1, lr=0.04), checkpoint=tmp_path / "run")


def test_an_unreadable_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(network(), striped(), None, Training(epochs=1, lr=0.05), checkpoint=folder, save_every=0)
    (folder / "state.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="delete it to train from the start"):
        train(network(), striped(), None, Training(epochs=1, lr=0.05), checkpoint=folder)


def test_a_loss_that_is_no_number_stops_with_a_remedy() -> None:
    with pytest.raises(InputError, match=r"The loss became .* in epoch 1, step \d+; .*lr = 1e\+30"):
        train(network(), striped(), None, Training(epochs=2, batch_size=16, lr=1e30, seed=0))


def test_the_best_epoch_is_kept_not_the_last() -> None:
    """A rate that destroys the weights at the end: the kept ones are from before."""
    spec = Training(
        epochs=4, batch_size=16, lr=0.05, schedule="step", milestones=(3,), gamma=1e4, momentum=0
    )
    made = train(network(dropout=0), striped(), striped(seed=1), spec)
    accuracies = [h["accuracy"] for h in made.history]
    assert made.kept_epoch == int(np.argmax(accuracies)) < 3
    again = evaluate(made.model, striped(seed=1), made.scaling)
    assert again["accuracy"] == max(accuracies)


def test_while_sparsity_rises_the_sparsest_is_kept() -> None:
    pruner = Pruner(spec_of("global-magnitude", sparsity=0.8, schedule=Polynomial(end=17, every=6)))
    made = train(network(), striped(), striped(seed=1), SPEC, pruner=pruner)
    sparsities = [h["sparsity"] for h in made.history]
    assert sparsities == sorted(sparsities)
    assert sparsities[0] < sparsities[-1] == pytest.approx(0.8, abs=0.002)
    assert made.kept_epoch == sparsities.index(sparsities[-1])


@pytest.mark.parametrize("at", [4, 7, 13])
def test_an_interrupted_pruning_with_rewinding_goes_on_to_the_same_weights(
    at: int, tmp_path: Path
) -> None:
    def pruner() -> Pruner:
        schedule = Iterative(share=0.3, epochs=1, rewind_to=0)
        return Pruner(spec_of("global-magnitude", sparsity=0.5, schedule=schedule))

    def stop(numbers: dict[str, float], done: int, total: int) -> None:
        if done == at:
            raise StoppedError

    whole = train(network(), striped(), striped(seed=1), SPEC, pruner=pruner())
    folder = tmp_path / "run"
    with pytest.raises(StoppedError):
        train(network(), striped(), striped(seed=1), SPEC, pruner=pruner(), checkpoint=folder,
              save_every=0, progress=stop)  # fmt: skip
    continued = train(
        network(), striped(), striped(seed=1), SPEC, pruner=pruner(), checkpoint=folder
    )
    assert same(whole.model, continued.model)
    assert whole.history == continued.history


def test_attributes_have_a_loss_each() -> None:
    data = striped()
    both = Examples(data.images, torch.stack([data.labels, 1 - data.labels], 1))
    made = train(network(), both, both, Training(epochs=3, batch_size=16, lr=0.05, loss="binary"))
    assert made.history[-1]["accuracy"] > 0.95


class SeenLayout(nn.Module):
    """A 1 × 1 convolution with a stride, and how the images that it gets lie in memory."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.narrow = nn.Conv2d(channels, 2, 1, stride=2)
        self.last = nn.Linear(2 * 3 * 3, 2)
        self.channels_last: set[bool] = set()

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        self.channels_last.add(x.stride(1) == 1)
        logits: Tensor = self.last(self.narrow(x).flatten(1))
        return logits


@pytest.mark.parametrize(("channels", "last"), [(4, False), (15, False), (16, True)])
def test_narrow_convolutions_with_a_stride_are_not_trained_channels_last(
    channels: int, last: bool
) -> None:
    """Torch's gradient of them is wrong there, or writes over other memory."""
    model = SeenLayout(channels).to(memory_format=torch.channels_last)
    train(model, striped(), None, Training(epochs=1, batch_size=32, lr=0.05))
    assert model.channels_last == {last}


def test_networks_without_them_are_trained_channels_last() -> None:
    model = SeenLayout(4)
    model.narrow.stride = (1, 1)
    model.last = nn.Linear(2 * 6 * 6, 2)
    train(model, striped(), None, Training(epochs=1, batch_size=32, lr=0.05))
    assert model.channels_last == {True}


def test_weight_decay_goes_by_name() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 2))
    with torch.no_grad():
        model[1].bias.fill_(1.0)
    dark = Examples(torch.zeros(32, 6, 6, 1, dtype=torch.uint8), torch.arange(32) % 2)
    spec = Training(epochs=1, batch_size=32, lr=0.5, momentum=0, schedule="constant",
                    weight_decay=0.1, decay_of=(("*.bias", 0.0),))  # fmt: skip
    weight = model[1].weight.detach().clone()
    train(model, dark, None, spec, scaling=Scaling((0.0,), (1.0,)))
    # Black images give no gradient of the weights: they shrink by lr · decay; biases do not.
    assert torch.allclose(model[1].weight, weight * (1 - 0.5 * 0.1))
    assert torch.allclose(model[1].bias, torch.ones(2))


def test_scaling_gives_mean_0_and_variance_1() -> None:
    data = striped()
    made = model_input(data.images, scaling_of(data.images))
    assert abs(float(made.mean())) < 1e-5
    assert abs(float(made.var(correction=0)) - 1) < 1e-4
    assert made.is_contiguous(memory_format=torch.channels_last)


def test_no_change_asked_for_changes_nothing() -> None:
    images = striped().images
    plain = model_input(images, Scaling((0.0,), (1.0,)))
    random = torch.Generator().manual_seed(0)
    assert torch.equal(
        plain, model_input(images, Scaling((0.0,), (1.0,)), augment=Augment(), random=random)
    )


def crop_of(image: Tensor, padded: Tensor) -> bool:
    """Whether an image is some crop of the padded one, mirrored or not."""
    size = image.shape[0]
    spare = padded.shape[0] - size
    return any(
        torch.equal(image, found) or torch.equal(image, found.flip(1))
        for y in range(spare + 1)
        for x in range(spare + 1)
        for found in [padded[y : y + size, x : x + size]]
    )


def test_crops_are_crops_of_the_padded_image() -> None:
    from fairweight.lab.batches import cropped

    images = striped(40).images
    random = torch.Generator().manual_seed(0)
    made = cropped(images, Augment(crop=2, flip=True), random)
    assert made.shape == images.shape
    padded = torch.nn.functional.pad(images, (0, 0, 2, 2, 2, 2))
    assert all(crop_of(a, b) for a, b in zip(made, padded, strict=True))
    assert not torch.equal(made, images)


def test_every_crop_comes_up_and_half_are_mirrored() -> None:
    from fairweight.lab.batches import cropped

    image = torch.arange(36, dtype=torch.uint8).reshape(1, 6, 6, 1) + 1
    images = image.expand(900, -1, -1, -1).contiguous()
    made = cropped(images, Augment(crop=1, flip=True), torch.Generator().manual_seed(0))
    mirrored = sum(bool((m[2, 4, 0] < m[2, 1, 0]).item()) for m in made)
    assert 405 < mirrored < 495  # 450 wanted; the standard deviation is 15
    assert len({tuple(m.flatten().tolist()) for m in made}) == 2 * 9
    flipped = cropped(images, Augment(flip=True), torch.Generator().manual_seed(0))
    assert {tuple(m.flatten().tolist()) for m in flipped} == {
        tuple(m.flatten().tolist()) for m in (image, image.flip(2))
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"epochs": -1}, "epochs"),
        ({"epochs": 3, "lr": 0.0}, "lr"),
        ({"epochs": 3, "schedule": "step"}, "milestones"),
        ({"epochs": 3, "milestones": (1,)}, "milestones"),
        ({"epochs": 3, "warmup_epochs": 3}, "warmup_epochs"),
        ({"epochs": 3, "momentun": 0.9}, "momentun"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Training(**given)


def test_shapes_are_looked_at() -> None:
    with pytest.raises(InputError, match=r"\(N, H, W, C\)"):
        examples(np.zeros((3, 4, 4), np.uint8), np.zeros(3, int))
    with pytest.raises(InputError, match="3 images and 4 labels"):
        examples(np.zeros((3, 4, 4, 1), np.uint8), np.zeros(4, int))


def test_layers_compute_in_16_bits_and_weights_stay_in_32() -> None:
    seen: set[torch.dtype] = set()
    model = network(dropout=0.0)
    model[0].register_forward_hook(lambda module, inputs, output: seen.add(output.dtype))
    short = replace(SPEC, precision="bfloat16", keep_best=False)
    made = train(model, striped(), striped(seed=1), short)
    assert seen == {torch.bfloat16, torch.float32}  # steps of the training, evaluation
    assert {value.dtype for value in made.model.parameters()} == {torch.float32}
    assert made.history[-1]["accuracy"] > 0.95
    plain = train(network(dropout=0.0), striped(), None, replace(SPEC, keep_best=False)).model
    pairs = zip(made.model.parameters(), plain.parameters(), strict=True)
    assert all(torch.allclose(a, b, atol=0.02) for a, b in pairs)
    assert not same(made.model, plain)
