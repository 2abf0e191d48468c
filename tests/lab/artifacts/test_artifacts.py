"""Models come back from disk as they were, and what cannot be loaded says why."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from fairweight.errors import InputError, OutputError
from fairweight.lab.artifacts import ZEROS_NOTE, Card, load, read_card, save
from fairweight.lab.batches import Scaling
from fairweight.lab.masks import masks, set_masks
from fairweight.lab.models.registry import architecture, unregister

FULL = Card(
    architecture="tiny",
    options={"classes": 4, "channels": 1, "size": 8, "width": 1.0},
    classes=("a", "b", "c", "d"),
    preprocessing=Scaling((0.1,), (0.3,)),
    variant="gmp-50",
    seed=3,
    parent="dense:3",
    dataset="digits",
    training={"epochs": 2, "lr": 0.1},
    compression={"method": "gmp", "sparsity": 0.5},
    measured={"size_bytes": 10},
    notes=("Made by hand.",),
)


def tiny(*, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 6, 3, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 6, 3, groups=6, padding=1),
        nn.Flatten(),
        nn.Linear(6 * size * size, classes),
    )


@pytest.fixture(autouse=True)
def registered() -> object:
    architecture("tiny", summary="for tests", source="tests")(tiny)
    yield
    unregister("tiny")


def made() -> nn.Module:
    model = tiny(classes=4, channels=1, size=8)
    model(torch.randn(8, 1, 8, 8))  # moves the norm's averages
    return model.eval()


def same_answers(first: nn.Module, second: nn.Module, images: Tensor) -> bool:
    with torch.inference_mode():
        return torch.equal(first(images), second(images))


def test_round_trip(images: Tensor, tmp_path: Path) -> None:
    model = made()
    written = save(model, tmp_path / "m", FULL)
    state = torch.random.get_rng_state()
    loaded, card = load(tmp_path / "m")
    assert card == written == FULL
    assert same_answers(model, loaded, images)
    assert not loaded.training
    assert torch.equal(torch.random.get_rng_state(), state)  # building drew no random numbers
    names = sorted(f.name for f in (tmp_path / "m").iterdir() if not f.name.startswith("."))
    assert names == ["model.json", "weights.safetensors"]


def test_masks_come_back(images: Tensor, tmp_path: Path) -> None:
    model = made()
    keep = torch.rand(4, 384, generator=torch.Generator().manual_seed(0)) > 0.5
    set_masks(model, {"5.weight": keep, "0.weight": torch.ones(6, 1, 3, 3, dtype=torch.bool)})
    card = save(model, tmp_path, replace(FULL, notes=()))
    assert card.notes == (ZEROS_NOTE,)
    loaded, _ = load(tmp_path)
    assert torch.equal(masks(loaded)["5.weight"], keep)
    assert masks(loaded).keys() == {"5.weight", "0.weight"}
    assert same_answers(model, loaded, images)
    # Weights are stored once: 6*9 + 5 values of the norm * 6 + 6*9 + 6 + 4*384 + 4 numbers.
    plain = (tmp_path / "weights.safetensors").stat().st_size
    assert plain < 4 * (54 + 24 + 60 + 1536 + 4) + 1500


def test_without_masks_the_old_ones_disappear(tmp_path: Path) -> None:
    model = made()
    set_masks(model, {"0.weight": torch.ones(6, 1, 3, 3, dtype=torch.bool)})
    save(model, tmp_path, FULL)
    assert (tmp_path / "masks.safetensors").is_file()
    save(made(), tmp_path, FULL)
    assert not (tmp_path / "masks.safetensors").exists()
    assert masks(load(tmp_path)[0]) == {}


def test_channels_really_removed(images: Tensor, tmp_path: Path) -> None:
    """Four of six channels: convolution, norm, depthwise convolution and linear layer shrink."""
    smaller = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 4, 3, groups=4, padding=1),
        nn.Flatten(),
        nn.Linear(4 * 64, 4),
    ).eval()
    card = save(smaller, tmp_path, FULL)
    assert card.channels_removed
    loaded, _ = load(tmp_path)
    assert loaded[3].groups == 4
    assert same_answers(smaller, loaded, images)


def test_a_module_without_a_name(images: Tensor, tmp_path: Path) -> None:
    model = made()
    save(model, tmp_path, Card())
    with pytest.raises(InputError, match="names no architecture"):
        load(tmp_path)
    loaded, _ = load(tmp_path, model=tiny(classes=4, channels=1, size=8))
    assert same_answers(model, loaded, images)


def test_a_card_that_is_not_the_models(tmp_path: Path) -> None:
    wrong = replace(FULL, architecture="lenet", options={"classes": 4, "channels": 1, "size": 28})
    with pytest.raises(InputError, match="The model is not what its card says"):
        save(made(), tmp_path / "m", wrong)
    assert not (tmp_path / "m").exists()


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    save(made(), tmp_path, Card())
    other = nn.Sequential(nn.Linear(3, 2))
    with pytest.raises(InputError, match="do not fit the given module"):
        load(tmp_path, model=other)


def test_a_card_that_is_no_json_can_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written as JSON"):
        save(made(), tmp_path / "m", replace(FULL, training={"lr": float("nan")}))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "not a model card of this version"),
        ('{"schema": 99}', "not a model card of this version"),
        ('{"schema": 1, "clases": []}', "'clases'"),
        ('{"schema": 1, "seed": -1}', "'seed'"),
    ],
)
def test_bad_cards(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(InputError, match=told):
        read_card(tmp_path)


def test_unreadable_weights(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a saved model: it has no model\.json"):
        load(tmp_path / "nothing")
    save(made(), tmp_path, FULL)
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        load(tmp_path)
    weights.unlink()
    with pytest.raises(InputError, match=r"has no weights\.safetensors"):
        load(tmp_path)


def test_a_full_disk_leaves_the_old_model(
    images: Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made()
    save(model, tmp_path / "m", FULL)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fairweight.lab.artifacts.write_tensors", full)
    with pytest.raises(OutputError, match="no space left on that disk"):
        save(made(), tmp_path / "m", FULL)
    assert same_answers(load(tmp_path / "m")[0], model, images)


def test_the_card_is_plain_json(tmp_path: Path) -> None:
    save(made(), tmp_path, FULL)
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["schema"] == 1
    assert document["preprocessing"] == {"mean": [0.1], "std": [0.3]}
    assert document["parent"] == "dense:3"
