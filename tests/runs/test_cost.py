"""What a plan is expected to take: steps that were measured, times the steps that are planned."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairweight.runs import cost
from fairweight.runs.cost import asking_seconds, training_seconds
from fairweight.runs.plan import plan
from fairweight.runs.stage import Cost, ExampleCost
from fairweight.specs.study import Study
from fairweight.specs.toml import read_study
from fairweight.studies import stages as _stages  # noqa: F401  registers those of audits

UNIT = ExampleCost(
    train_s=1e-4,
    predict_s=5e-5,
    n_train=10_000,
    n_test=4_000,
    classes=10,
    n_params=1_000,
    flops=1_000_000_000,
)


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_measured", lambda experiment, data: UNIT)


def made() -> Study:
    copies = [
        {"method": "global-magnitude", "fields": {"sparsity": 0.5}, "finetune": {"epochs": 2}},
        {"method": "int8-static"},
    ]
    experiment = {
        "name": "a",
        "data": {"name": "digits"},
        "model": {"architecture": "lenet"},
        "training": {"epochs": 3},
        "members": 1,
        "scores": False,
        "copies": copies,
    }
    return read_study({"name": "s", "experiment": [experiment]})


def test_seconds_of_every_kind_of_stage() -> None:
    planned = plan(made())
    found = cost.costs(planned, None)
    seconds = {planned.stages[key].label: one.seconds for key, one in found.items()}
    assert seconds == pytest.approx(
        {
            "a: dense, seed 0": 0.8 + 3 * 1.0,
            "a: global-magnitude-50, seed 0": 0.8 + 2 * 1.0,
            "a: int8-static, seed 0": 0.8 + 6.0,
            "a: asking dense, seed 0": 0.1 + 0.2,
            "a: asking global-magnitude-50, seed 0": 0.1 + 0.2,
            "a: asking int8-static, seed 0": 0.1 + 0.2,
            "a: audit": 8.0,
        }
    )
    sizes = {planned.stages[key].label: one.bytes for key, one in found.items()}
    assert sizes["a: asking dense, seed 0"] == 12 * 4_000
    assert sizes["a: int8-static, seed 0"] == sizes["a: dense, seed 0"] / 4


def test_hours_of_a_gpu_by_hand() -> None:
    # 1e9 operations at 1e13 a second are 0.1 ms an example: an epoch of 10,000 is 1 s forwards and
    # 2 s backwards, 4,000 questions are 0.4 s.
    planned = plan(made())
    found = cost.costs(planned, None)
    seconds = {planned.stages[key].label: one.gpu_seconds for key, one in found.items()}
    assert seconds == pytest.approx(
        {
            "a: dense, seed 0": 3 * 3.0,
            "a: global-magnitude-50, seed 0": 2 * 3.0,
            "a: int8-static, seed 0": 0.0,
            "a: asking dense, seed 0": 0.4,
            "a: asking global-magnitude-50, seed 0": 0.4,
            "a: asking int8-static, seed 0": 0.4,
            "a: audit": 0.0,
        }
    )
    total = sum(found.values(), Cost(0.0, 0.0))
    assert total.gpu_seconds == pytest.approx(16.2)


def test_a_small_network_waits_for_its_kernels_and_a_teacher_answers_too() -> None:
    # 79 steps of 128 and 8 batches of 512, 5 ms each.
    assert training_seconds(10_000, epochs=2, batch_size=128, flops=10.0) == pytest.approx(0.79)
    assert asking_seconds(4_000, 10.0) == pytest.approx(0.04)
    taught = training_seconds(10_000, epochs=2, batch_size=128, flops=1e9, taught=True)
    assert taught == pytest.approx(2 * 4.0)


def test_the_stage_of_classes_grows_with_the_models() -> None:
    planned = plan(replace(made(), classes=True))
    assert planned.classes is not None
    assert cost.costs(planned, None)[planned.classes].seconds == pytest.approx(8.0 + 0.1 * 3)
