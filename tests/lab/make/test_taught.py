"""Copies with a teacher: what their cards say, and what they should not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairweight.errors import InputError
from fairweight.lab.artifacts import load, save
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.masks import sparsity
from fairweight.lab.partition import prepare
from fairweight.lab.training import distil, load_teacher, train
from fairweight.lab.variants import compress
from fairweight.specs.data import Data
from fairweight.specs.training import Distillation, Model, Training

DATA = Data(name="digits", test=0.3)
FINETUNE = Training(epochs=1, batch_size=64, lr=0.01, seed=1)
METHOD = "global-magnitude"
PRUNED = spec_of(METHOD, sparsity=0.8)
REDUCED = replace(DATA, shares={"3": 0.25})


def test_pruned_beside_its_teacher(model: Path, tmp_path: Path) -> None:
    lesson = Distillation(losses="at+kd")
    made = compress(model, PRUNED, out=tmp_path / "taught", training=FINETUNE, distillation=lesson)
    alone = compress(model, PRUNED, out=tmp_path / "alone", training=FINETUNE)
    assert made.card.variant == "global-magnitude-80-at-kd"
    assert made.card.measured["distillation"] == "at+kd"
    assert made.card.measured["teacher"] == "dense:1"
    assert "leak" not in made.card.measured
    network, _ = load(made.path)
    assert sparsity(network) == pytest.approx(0.8, abs=1e-3)
    other = load(alone.path)[0].state_dict()
    assert any(not torch.equal(value, other[name]) for name, value in network.state_dict().items())
    assert "distillation" not in alone.card.measured


def test_examples_that_a_teacher_saw_and_its_student_may_not(model: Path, tmp_path: Path) -> None:
    lesson = Distillation(losses="kd")
    made = compress(
        model, PRUNED, out=tmp_path / "a", training=FINETUNE, distillation=lesson, data=REDUCED
    )
    hidden = len(prepare(DATA).train) - len(prepare(REDUCED).train)
    assert hidden > 50
    told = (
        f"The teacher saw {hidden:,} training examples that this model's training set leaves out."
    )
    assert made.card.measured["leak"] == told
    assert made.card.data["shares"] == {"3": 0.25}
    plain = compress(model, PRUNED, out=tmp_path / "b", training=FINETUNE, data=REDUCED)
    assert plain.card.measured["leak"] == told.replace("teacher", "model that it starts from")
    child = compress(made.path, PRUNED, out=tmp_path / "c", training=FINETUNE)
    assert child.card.measured["leak"] == told


def test_a_teacher_of_the_reduced_data_leaks_nothing(tmp_path: Path) -> None:
    network = Model(architecture="lenet")
    dense = train(REDUCED, network, FINETUNE, tmp_path / "dense")
    made = train(
        REDUCED,
        network,
        replace(FINETUNE, seed=2),
        tmp_path / "student",
        distillation=Distillation(losses="kd"),
        teacher=dense.path,
    )
    assert made.card.variant == "dense-kd"
    assert made.card.measured["teacher"] == "dense:1"
    assert "leak" not in made.card.measured


def test_what_is_refused(model: Path, tmp_path: Path) -> None:
    lesson = Distillation(losses="kd")
    with pytest.raises(InputError, match="acts while a model trains"):
        compress(model, PRUNED, out=tmp_path / "m", distillation=lesson)
    with pytest.raises(InputError, match="no teacher"):
        compress(model, spec_of("int8-dynamic"), out=tmp_path / "m.onnx", distillation=lesson)
    with pytest.raises(InputError, match="give both or neither"):
        train(DATA, Model(architecture="lenet"), FINETUNE, tmp_path, distillation=lesson)
    with pytest.raises(InputError, match=r"knows 10 classes \(0, 1, 2, …\), and the student 2"):
        load_teacher(model, ("cat", "dog"))
    assert not (tmp_path / "m").exists()


def test_distil_trains_a_smaller_network_on_the_teachers_data(model: Path, tmp_path: Path) -> None:
    made = distil(
        model, "kd", {"architecture": "lenet", "width": 0.5}, FINETUNE, tmp_path / "student"
    )
    assert made.card.variant == "dense-kd"
    assert made.card.measured["teacher"] == "dense:1"
    assert load(made.path)[1].data == load(model)[1].data
    assert made.card.measured["n_params"] < load(model)[1].measured["n_params"]
    network, card = load(model)
    save(network, tmp_path / "own", replace(card, data={}))
    with pytest.raises(InputError, match="does not say what data it was trained on; give data"):
        distil(tmp_path / "own", "kd", "lenet", FINETUNE, tmp_path / "m")
