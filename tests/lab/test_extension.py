"""A new method of pruning is one spec and one function: here blocks of 4 × 1 weights.

It is registered by this one file, and is then known to Python, to the command line and to studies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

import fairweight as fw
from fairweight.cli import run
from fairweight.lab.compression.methods import kept_weights, magnitudes, per_layer
from fairweight.lab.compression.registry import Masks, method, unregister
from fairweight.lab.compression.schedules import Step
from fairweight.lab.masks import chosen, layer_sparsity, sparsity, weight_name
from fairweight.runs.plan import plan
from fairweight.runs.runner import run as run_stages
from fairweight.runs.store import Store
from fairweight.specs.compression import ToSparsity
from fairweight.specs.toml import read_study

NAME = "block-magnitude"


@dataclass(frozen=True, kw_only=True)
class BlockMagnitude(ToSparsity):
    """The blocks of the smallest sum of absolute weights, of each layer.

    Parameters
    ----------
    rows
        How many neighbouring outputs are a block.
    """

    rows: int = 4


def block_magnitude(model: nn.Module, spec: BlockMagnitude, step: Step | None) -> Masks:
    layers = {weight_name(path): layer for path, layer in chosen(model, spec.layers).items()}

    def blocks(values: Tensor) -> Tensor:
        """(blocks, rows): outputs that do not fill a block are padded with zeros."""
        flat = values.flatten(1)
        padded = nn.functional.pad(flat, (0, 0, 0, -len(flat) % spec.rows))
        return padded.view(-1, spec.rows, flat.shape[1]).transpose(1, 2).reshape(-1, spec.rows)

    scores = {name: blocks(magnitudes(one.weight, name)).sum(1) for name, one in layers.items()}
    kept = {name: blocks(kept_weights(one).float()).any(1) for name, one in layers.items()}
    stays = per_layer(scores, kept, step or Step(spec.sparsity))

    def spread(name: str, weight: Tensor) -> Tensor:
        columns = weight.flatten(1).shape[1]
        wide = stays[name].view(-1, 1, columns).expand(-1, spec.rows, -1).reshape(-1, columns)
        return wide[: len(weight)].reshape(weight.shape).contiguous()

    return {name: spread(name, one.weight) for name, one in layers.items()}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    method(NAME, spec=BlockMagnitude, summary="The smallest 4 × 1 blocks of weights")(
        block_magnitude
    )
    yield
    unregister(NAME)


def test_by_hand() -> None:
    """Two blocks of four outputs by two inputs are four blocks: sums 10, 6, 8, 100."""
    layer = nn.Linear(2, 8, bias=False)
    column = torch.tensor([1.0, 2, 3, 4, 2, 2, 2, 2])
    other = torch.tensor([0.0, 0, 6, 0, 25, 25, 25, 25])
    with torch.no_grad():
        layer.weight.copy_(torch.stack([column, other], dim=1))
    pruned: Any = fw.lab.compress(layer, {"method": NAME, "sparsity": 0.5})
    gone = pruned.weight == 0
    # The two smallest, 6 and 8, go: rows 0–3 of the second input, rows 4–7 of the first.
    assert gone[:, 0].tolist() == [False] * 4 + [True] * 4
    assert gone[:, 1].tolist() == [True] * 4 + [False] * 4


def test_blocks_go_as_blocks_in_convolutions() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(4, 8, 3), nn.Flatten(), nn.LazyLinear(12))
    network(torch.zeros(1, 4, 5, 5))
    pruned: Any = fw.lab.compress(network, {"method": NAME, "sparsity": 0.75})
    assert layer_sparsity(pruned) == {"0": 0.75, "2": 0.75}
    for layer in (pruned[0], pruned[2]):
        zeros = (layer.weight == 0).flatten(1).view(-1, 4, layer.weight[0].numel())
        assert torch.equal(zeros.all(1), zeros.any(1))


def test_a_gradual_schedule_and_the_command_line_know_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["methods", NAME, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert {field["name"] for field in row["fields"]} == {"sparsity", "layers", "schedule", "rows"}
    gradual = {"kind": "polynomial", "end": 15, "every": 5}
    made = fw.lab.train(
        "digits",
        "lenet",
        {"epochs": 2, "lr": 0.05},
        tmp_path / "model",
        pruning={"method": NAME, "sparsity": 0.5, "schedule": gradual},
    )
    assert made.card.variant == "block-magnitude-50"
    assert sparsity(fw.lab.load(made.path)[0]) == pytest.approx(0.5, abs=0.01)


def test_in_a_study(tmp_path: Path) -> None:
    study = read_study(
        {
            "name": "blocks",
            "experiment": [
                {
                    "name": "digits",
                    "data": {"name": "digits"},
                    "model": {"architecture": "lenet"},
                    "training": {"epochs": 1, "lr": 0.05},
                    "members": 1,
                    "audit": False,
                    "copies": [
                        {"method": NAME, "grid": {"sparsity": [0.5, 0.75]}},
                        {"method": "control", "name": "longer", "finetune": {"epochs": 1}},
                    ],
                }
            ],
        }
    )
    planned = plan(study)
    assert [one.variant for one in planned.models] == [
        "dense", "block-magnitude-50", "block-magnitude-75", "longer",
    ]  # fmt: skip
    store = Store(tmp_path / "store")
    # In this process, which alone knows the method.
    outcome = run_stages(list(planned.stages.values()), store, workers=0)
    assert not outcome.failed, store.failed()
    found = {
        one.variant: sparsity(fw.lab.load(store.read(one.made_by) / "model")[0])
        for one in planned.models
    }
    assert found == pytest.approx(
        {"dense": 0, "block-magnitude-50": 0.5, "block-magnitude-75": 0.75, "longer": 0}, abs=0.01
    )
