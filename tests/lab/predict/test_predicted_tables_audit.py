"""What predict writes is what the audit reads: a float network against its int8 files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fairweight as fw
from fairweight.lab.artifacts import Card
from fairweight.lab.batches import Scaling, model_input
from fairweight.lab.compression.quantisation import quantize_dynamic, quantize_static
from fairweight.lab.onnx_models import to_onnx
from fairweight.lab.prediction import predict

SCALING = Scaling((0.5,), (0.25,))
CLASSES = ("left", "right", "top")


def made(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with one half of the image a little brighter."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 190, size=(n, 8, 8, 1), dtype=np.uint8)
    labels = random.integers(0, 3, size=n)
    images[labels == 0, :, :4] += 25
    images[labels == 1, :, 4:] += 25
    images[labels == 2, :4] += 25
    return images, labels


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 3)
    )
    images, labels = made(600, 0)
    inputs = model_input(torch.from_numpy(images), SCALING)
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(40):
        loss = nn.functional.cross_entropy(model(inputs), torch.from_numpy(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def test_float_and_int8(trained: nn.Module, tmp_path: Path) -> None:
    training, _ = made(100, 0)
    calibration = model_input(torch.from_numpy(training), SCALING)
    card = Card(classes=CLASSES, preprocessing=SCALING)
    exported = to_onnx(trained, calibration[:2], tmp_path / "dense.onnx", card=card)
    static = quantize_static(exported, tmp_path / "static.onnx", [calibration.numpy()])
    dynamic = quantize_dynamic(exported, tmp_path / "dynamic.onnx")

    images, labels = made(400, 1)
    side = np.where(np.arange(400) % 4 == 0, "rare", "common")
    batches = (
        {"image": images[at : at + 64], "label": labels[at : at + 64], "side": side[at : at + 64]}
        for at in range(0, 400, 64)
    )
    out = predict(
        {"dense": exported, "int8-static": static.path, "int8-dynamic": dynamic.path},
        batches,
        out=tmp_path / "predictions.parquet",
        scores=True,
        ranks=True,
    )
    audit = fw.audit_table(out, n_boot=200, random_state=0)

    assert audit.result.baseline == "dense"
    assert audit.result.variants == ("int8-static", "int8-dynamic")
    assert audit.result.n_examples == 400
    rows = audit.overall.set_index(["variant", "metric"])
    with torch.inference_mode():
        logits = trained(model_input(torch.from_numpy(images), SCALING))
    accuracy = float((logits.argmax(1).numpy() == labels).mean())
    assert 0.6 < accuracy < 1
    assert rows.loc[("int8-static", "accuracy"), "baseline"] == pytest.approx(accuracy)
    for variant in audit.result.variants:
        # int8 costs little on a network this small, and the audit says so with an interval.
        row = rows.loc[(variant, "accuracy")]
        assert abs(row["shift"]) < 0.05
        assert row["ci_low"] <= row["shift"] <= row["ci_high"]
        assert 0 <= rows.loc[(variant, "brier"), "compressed"] < 1
    assert set(audit.by_group["group"]) == {"side=rare", "side=common"}
    assert set(audit.by_class["class"]) == set(CLASSES)


def test_several_tasks(tmp_path: Path) -> None:
    """A network with two binary heads against itself with a third of its inputs missing."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(300, 6)).astype(np.float32)
    labels = (inputs[:, :2] + inputs[:, 2:4] + random.normal(size=(300, 2)) > 0).astype(int)
    table = predict(
        {
            "dense": lambda x: x[:, :2] + x[:, 2:4],
            "cut": lambda x: x[:, :2],
        },
        [(inputs[:150], labels[:150]), (inputs[150:], labels[150:])],
        classes=("smiling", "young"),
        groups={"side": np.where(inputs[:, 4] > 0, "a", "b")},
    )
    audit = fw.audit_table(table, n_boot=100, random_state=0)
    rows = audit.overall
    found = rows[(rows["metric"] == "accuracy") & rows["task"].notna()].set_index("task")
    assert set(found.index) == {"smiling", "young"}
    wanted = ((inputs[:, :2] + inputs[:, 2:4] > 0) == labels).mean(axis=0)
    assert found.loc["smiling", "baseline"] == pytest.approx(wanted[0])
    assert (found["shift"] < 0).all()
