"""Training into a folder: the card, the first weights, repetition and interruption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairweight.errors import InputError
from fairweight.lab.artifacts import load, read_card
from fairweight.lab.masks import sparsity
from fairweight.lab.training import Made, train
from fairweight.specs.data import Data
from fairweight.specs.training import Model, Training

from .conftest import DATA, MODEL, TRAINING


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load(folder)[0].state_dict()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def test_the_card_says_what_the_model_is(dense: Made) -> None:
    card = read_card(dense.path)
    assert (card.variant, card.seed, card.parent, card.dataset) == ("dense", 1, None, "digits")
    assert card.options == {"classes": 10, "channels": 1, "size": 8, "width": 1.0}
    assert card.classes == tuple("0123456789")
    assert card.data["test"] == 0.3
    assert card.training["epochs"] == 4
    assert len(card.training["history"]) == 4
    assert card.training["test_accuracy"] == dense.test_accuracy > 0.7
    assert card.measured["n_params"] == sum(w.numel() for w in weights(dense.path).values())
    assert card.measured["items_per_s"] > 0


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    dense: Made, tmp_path: Path
) -> None:
    again = train(DATA, MODEL, TRAINING, tmp_path / "again")
    other = train(DATA, MODEL, replace(TRAINING, seed=2, epochs=1), tmp_path / "other")
    assert same(weights(dense.path), weights(again.path))
    assert not same(weights(dense.path), weights(other.path))


def test_an_interrupted_training_goes_on_to_the_same_weights(
    dense: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairweight.lab.training.SAVE_EVERY", 0.0)
    out = tmp_path / "model"

    def stop(numbers: Any, done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(DATA, MODEL, TRAINING, out, progress=stop)
    assert not out.exists()
    assert (tmp_path / ".model.training").is_dir()
    steps: list[int] = []
    train(DATA, MODEL, TRAINING, out, progress=lambda n, done, total: steps.append(done))
    assert steps[0] > 1
    assert same(weights(dense.path), weights(out))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_first_weights_of_another_model(model: Path, tmp_path: Path) -> None:
    still = replace(TRAINING, epochs=0)
    for start in (model, model / "weights.safetensors"):
        made = train(DATA, MODEL, still, tmp_path / start.name, init=start)
        assert same(weights(model), weights(made.path))


def test_a_last_layer_for_other_classes_starts_afresh(model: Path, tmp_path: Path) -> None:
    from fairweight.lab.models.registry import build
    from fairweight.lab.weights import load_first_weights

    network = build("lenet", classes=3, channels=1, size=8)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    load_first_weights(network, model)
    held = weights(model)
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name] if name.startswith("fc3") else held[name])
    with pytest.raises(InputError, match=r"do not fit the network: 'conv1.weight'"):
        load_first_weights(build("lenet", classes=10, channels=3, size=8), model)
    bad = tmp_path / "weights.safetensors"
    bad.write_bytes(b"no tensors")
    with pytest.raises(InputError, match=r"cannot be read as \.safetensors"):
        load_first_weights(network, bad)
    with pytest.raises(InputError, match=r"weights are read from \.safetensors files"):
        load_first_weights(network, tmp_path / "weights.pt")


def test_pruned_from_the_first_weights_with_rewinding(tmp_path: Path) -> None:
    pruning = {
        "method": "iterative-magnitude",
        "sparsity": 0.36,
        "schedule": {"epochs": 1, "rewind_to": 0},
    }
    made = train(
        DATA,
        MODEL,
        replace(TRAINING, epochs=3),
        tmp_path / "m",
        pruning=pruning,
    )
    assert made.card.variant == "iterative-magnitude-36"
    assert sparsity(load(made.path)[0]) == pytest.approx(0.36, abs=1e-4)
    with pytest.raises(InputError, match="ends after 1 of the 2 updates"):
        train(DATA, MODEL, replace(TRAINING, epochs=2), tmp_path / "n", pruning=pruning)


def test_attributes_one_by_itself_and_a_pair(tmp_path: Path) -> None:
    """Two binary tasks of the digits, trained jointly and one alone, and asked."""
    import numpy as np
    import pandas as pd

    from fairweight.data import load as load_data
    from fairweight.data import register, unregister
    from fairweight.lab.partition import prepare
    from fairweight.lab.prediction import asked, data_of, predict

    digits = load_data("digits")
    both = np.stack([digits.labels % 2, digits.labels > 4], axis=1).astype(np.int64)

    @register("odd-large", summary="for tests", source="these tests")
    def read() -> Any:
        return replace(digits, name="odd-large", labels=both, classes=("odd", "large"))

    try:
        for tasks in ((), ("large",)):
            data = Data(name="odd-large", tasks=tasks)
            names = tasks or ("odd", "large")
            made = train(data, MODEL, replace(TRAINING, epochs=2), tmp_path / "-".join(names))
            assert made.card.tasks
            assert made.card.classes == names
            assert made.test_accuracy > 0.6
            members = asked([f"{name}={made.path}" for name in ("dense", "copy")])
            part = prepare(data_of(members)).test
            out = predict(members, part, out=tmp_path / f"{len(names)}.parquet", scores=True)
            table = pd.read_parquet(out)
            assert set(table["task"]) == set(names)
            right = (table["label"] == table["prediction"])[table["variant"] == "copy"]
            assert right.mean() == pytest.approx(made.test_accuracy)
    finally:
        unregister("odd-large")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"architecture": "lenett"}, "Architecture 'lenett' does not exist"),
        ({"options": {"padding": 2}}, "padding must be 0 or 1"),
    ],
)
def test_networks_that_cannot_be_built(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    model = Model(**({"architecture": "lenet"} | change))
    with pytest.raises(InputError, match=reason):
        train(DATA, model, Training(epochs=1), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_not_here(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="device = 'cuda:9' cannot be used here"):
        train(DATA, MODEL, TRAINING, tmp_path / "m", device="cuda:9")
