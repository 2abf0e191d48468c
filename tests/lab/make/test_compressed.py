"""Compressed copies: their cards, what they weigh, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.artifacts import load, save
from fairweight.lab.batches import model_input
from fairweight.lab.compression.calibration import calibration_rows
from fairweight.lab.compression.registry import spec_of
from fairweight.lab.masks import sparsity
from fairweight.lab.onnx_models import card_of, read_onnx
from fairweight.lab.partition import prepare
from fairweight.lab.prediction import data_of, model_files, predict, variants_table
from fairweight.lab.training import Made
from fairweight.lab.unit_predictions import JudgedExamples, opened_network, unit_predictors
from fairweight.lab.variants import compress
from fairweight.specs.compression import Int8Static
from fairweight.specs.data import Data
from fairweight.specs.training import Training

FINETUNE = Training(epochs=1, batch_size=64, lr=0.01, seed=1)


def compressed(model: Path, out: Path, method: str, *, training: Any = None, **given: Any) -> Made:
    options = {name: given.pop(name) for name in ("remove_channels", "onnx") if name in given}
    return compress(model, {"method": method, **given}, out=out, training=training, **options)


def test_pruned_at_once(model: Path, dense: Made, tmp_path: Path) -> None:
    made = compressed(model, tmp_path / "m", "global-magnitude", sparsity=0.5, onnx=True)
    assert made.card.variant == "global-magnitude-50"
    assert (made.card.parent, made.card.seed) == ("dense:1", 1)
    assert made.card.compression["treatment"] == "none"
    assert made.card.measured["sparsity"] == pytest.approx(0.5, abs=1e-4)
    assert made.card.measured["nominal_sparsity"] == 0.5
    assert made.test_accuracy <= dense.test_accuracy + 0.05
    assert "no speed" in made.card.notes[0]
    held = card_of(read_onnx(tmp_path / "m" / "model.onnx"), "the file")
    assert held is not None
    assert held.variant == "global-magnitude-50"


def test_finetuned_masks_hold_and_help(model: Path, tmp_path: Path) -> None:
    once = compressed(model, tmp_path / "once", "global-magnitude", sparsity=0.9)
    tuned = compressed(
        model, tmp_path / "tuned", "global-magnitude", sparsity=0.9, training=FINETUNE
    )
    assert sparsity(load(tuned.path)[0]) == sparsity(load(once.path)[0])
    assert tuned.test_accuracy > once.test_accuracy
    assert tuned.card.compression["treatment"] == "finetune"
    assert tuned.card.training["after"]["epochs"] == 4


def test_channels_really_removed(model: Path, tmp_path: Path) -> None:
    made = compressed(
        model,
        tmp_path / "small",
        "l1-structured",
        sparsity=0.5,
        training=FINETUNE,
        remove_channels=True,
        onnx=True,
    )
    network, card = load(made.path)
    assert card.channels_removed
    assert network.conv2.weight.shape == (8, 3, 3, 3)  # of 16 filters with 6 inputs
    assert card.measured["sparsity"] == pytest.approx(0, abs=0.01)
    assert card.measured["n_params"] < 0.4 * load(model)[1].measured["n_params"]


def test_a_second_compression_names_both(model: Path, tmp_path: Path) -> None:
    once = compressed(model, tmp_path / "once", "global-magnitude", sparsity=0.5)
    twice = compressed(once.path, tmp_path / "twice.onnx", "int8-dynamic")
    assert twice.card.variant == "global-magnitude-50-int8-dynamic"
    assert twice.card.parent == "global-magnitude-50:1"


def test_calibration_is_drawn_unless_it_is_chosen(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders of images come class by class; a spec, as of studies, says which it means."""
    chosen: list[list[int]] = []

    def watched(images: Images, spec: Any) -> Any:
        rows = calibration_rows(images, spec)
        chosen.append(rows.tolist())
        return rows

    monkeypatch.setattr("fairweight.lab.variants.calibration_rows", watched)
    name = compress(model, "int8-static", out=tmp_path / "name.onnx")
    compress(model, "int8-static", out=tmp_path / "again.onnx")
    compressed(model, tmp_path / "fields.onnx", "int8-static", examples=100)
    compressed(model, tmp_path / "first.onnx", "int8-static", calibration="first")
    compress(model, Int8Static(), out=tmp_path / "spec.onnx")
    assert name.card.variant == "int8-static"
    drawn, again, fields, *first = chosen
    assert drawn == again == fields
    assert first == [list(range(100))] * 2
    assert len(set(drawn)) == 100
    assert max(drawn) > 200


def test_units_calibrate_on_what_compress_calibrates_on(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[torch.Tensor] = []

    def watched(*given: Any, **more: Any) -> torch.Tensor:
        made.append(model_input(*given, **more))
        return made[-1]

    monkeypatch.setattr("fairweight.lab.variants.model_input", watched)
    compressed(model, tmp_path / "m.onnx", "int8-static", examples=30)
    (drawn,) = (inputs for inputs in made if len(inputs) == 30)
    prepared = prepare(Data(**load(model)[1].data))
    judged = JudgedExamples.of(prepared.test)
    given = {"calibration": prepared.train, "level": "layer", "store": None}
    with opened_network(model, judged.batches[0].inputs) as network:
        for spec in ({"method": "int8-static", "examples": 30}, Int8Static(examples=30)):
            (one,) = unit_predictors(network, spec, [judged], **given)
            same = np.allclose(one.calibration, drawn.numpy(), atol=1e-6)
            assert same == isinstance(spec, dict)  # a spec says which: the first ones
        balanced = {"method": "int8-static", "calibration": "class-balanced"}
        given["calibration"] = drawn.numpy()
        with pytest.raises(InputError, match="draws from a data set"):
            unit_predictors(network, balanced, [judged], **given)


def test_quantisation_aware_finetuning_writes_the_int8_file(
    model: Path, dense: Made, tmp_path: Path
) -> None:
    how = {"epochs": 2, "batch_size": 64, "lr": 0.01, "seed": 1, "sampling": "class-balanced"}
    made = compressed(model, tmp_path / "qat.onnx", "int8-qat", training=how)
    static = compressed(model, tmp_path / "static.onnx", "int8-static")
    assert (made.card.variant, made.card.parent, made.card.seed) == ("int8-qat", "dense:1", 1)
    assert made.card.compression["treatment"] == "quantisation-aware"
    assert made.card.training["after"]["epochs"] == 4
    assert made.card.training["sampling"] == "class-balanced"
    assert len(made.card.training["history"]) == 2
    assert made.test_accuracy > dense.test_accuracy - 0.02
    # The same kind of file: operators and size, but for what the cards say.
    files = [read_onnx(one.path) for one in (made, static)]
    kinds = [[node.op_type for node in file.graph.node] for file in files]
    assert kinds[0] == kinds[1]
    assert not list(tmp_path.glob(".*"))  # no checkpoint stays behind
    (predicted,) = model_files([str(made.path)])
    assert predicted.variant == "int8-qat"


def test_quantisation_aware_finetuning_needs_a_folder_and_epochs(
    model: Path, dense: Made, tmp_path: Path
) -> None:
    out = tmp_path / "m.onnx"
    with pytest.raises(InputError, match="how many epochs"):
        compressed(model, out, "int8-qat")
    with pytest.raises(InputError, match="ranges from min to max"):
        compressed(model, out, "int8-qat", training=FINETUNE, ranges="entropy")
    with pytest.raises(InputError, match="compressed at once"):
        compress(load(model)[0], "int8-qat", torch.zeros(10, 1, 8, 8))
    static = compressed(model, tmp_path / "static.onnx", "int8-static")
    with pytest.raises(InputError, match="use one of: int8-static, int8-dynamic, weight-bits"):
        compress(static.path, "int8-qat", None, out=out)
    assert not out.exists()


def test_int8_runs_and_is_asked_beside_its_parent(model: Path, dense: Made, tmp_path: Path) -> None:
    made = compressed(model, tmp_path / "int8-1.onnx", "int8-static", examples=50)
    assert (made.card.variant, made.card.parent) == ("int8-static", "dense:1")
    assert made.card.compression["quantisation"]["n"] == 50
    assert made.card.measured["flops"] == dense.card.measured["flops"]
    assert made.card.measured["size_bytes"] < 0.6 * dense.card.measured["size_bytes"]
    members = model_files([str(model), str(made.path)])
    assert [(one.variant, one.seed) for one in members] == [("dense", 1), ("int8-static", 1)]
    prepared = prepare(data_of(members))
    out = predict(members, prepared.test, out=tmp_path / "p.parquet")
    import pandas as pd

    table = pd.read_parquet(out)
    right = (table["label"] == table["prediction"]).groupby(table["variant"]).mean()
    assert right["int8-static"] == pytest.approx(made.test_accuracy)
    assert right["dense"] == pytest.approx(dense.test_accuracy)
    rows = variants_table(members, prepared).to_pylist()
    assert [row["parent"] for row in rows] == [None, "dense:1"]
    assert [row["engine"] for row in rows] == ["torch", "onnxruntime"]
    again = variants_table(members[1:], prepared, again=True).to_pylist()
    assert again[0]["n_params"] == rows[1]["n_params"]
    assert again[0]["flops"] == rows[1]["flops"]
    assert again[0]["latency_ms"] != rows[1]["latency_ms"]


@pytest.mark.parametrize(
    ("method", "given", "reason"),
    [
        (
            "global-magnitude",
            {"sparsity": 0.5, "remove_channels": True},
            "no channel can be removed",
        ),
        ("int8-static", {"training": FINETUNE}, "acts on a finished model"),
        ("gmp-pretrained", {"sparsity": 0.5}, "prunes while a model trains"),
        ("gmp-pretrained", {"sparsity": 0.5, "training": FINETUNE}, "1 epochs"),
        ("iterative-magnitude", {"sparsity": 0.5, "training": FINETUNE}, "Rewinding goes back"),
    ],
)
def test_what_is_refused(
    method: str, given: dict[str, Any], reason: str, model: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=reason):
        compressed(model, tmp_path / "m.onnx", method, **given)
    assert not (tmp_path / "m.onnx").exists()


def test_a_model_without_data_is_compressed_in_memory(model: Path, tmp_path: Path) -> None:
    network, card = load(model)
    save(network, tmp_path / "own", replace(card, data={}))
    with pytest.raises(InputError, match=r"compress it in Python, as a module: fairweight\.lab"):
        compressed(tmp_path / "own", tmp_path / "m", "global-magnitude", sparsity=0.5)


def test_compress_in_memory(model: Path, tmp_path: Path) -> None:
    import fairweight as fw

    network, _ = load(model)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    images = torch.rand(120, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    pruned: Any = fw.lab.compress(network, {"method": "l1-unstructured", "sparsity": 0.5})
    assert sparsity(pruned) == pytest.approx(0.5, abs=1e-3)
    int8: Any = fw.lab.compress(network, spec_of("int8-static"), [images[:60], (images[60:], 0)])
    hybrid: Any = fw.lab.compress(network, spec_of("int8-dynamic"), images)
    with torch.inference_mode():
        exact = network(images).numpy()
    for kind in (int8, hybrid):
        assert abs(kind(images) - exact).max() < 0.1 * abs(exact).max()
        assert abs(kind(images) - exact).max() > 0
    table = fw.lab.predict({"dense": network, "int8": int8}, [(images, torch.arange(120) % 10)])
    assert table.num_rows == 240
    assert int8.save(tmp_path / "int8.onnx").stat().st_size > 1000
    assert all(torch.equal(value, before[n]) for n, value in network.state_dict().items())
    with pytest.raises(InputError, match="int8-static needs data"):
        fw.lab.compress(network, spec_of("int8-static"))
    with pytest.raises(InputError, match="give floats"):
        fw.lab.compress(network, spec_of("int8-static"), [images.to(torch.uint8)])
    with pytest.raises(InputError, match="no key 'method'"):
        fw.lab.compress(network, {"sparsity": 0.5})


def test_a_control_is_trained_further_and_loses_nothing(
    model: Path, dense: Made, tmp_path: Path
) -> None:
    made = compressed(model, tmp_path / "control", "control", training=FINETUNE)
    assert (made.card.variant, made.card.parent) == ("control", "dense:1")
    assert made.card.compression["sparsity"] == 0
    assert made.card.training["epochs"] == 1
    assert made.card.training["after"]["epochs"] == 4
    assert made.test_accuracy >= dense.test_accuracy - 0.02
    before, after = load(model)[0].state_dict(), load(made.path)[0].state_dict()
    assert before.keys() == after.keys()
    assert any(not torch.equal(value, before[name]) for name, value in after.items())
    with pytest.raises(InputError, match="control trains a model further; say for how many"):
        compressed(model, tmp_path / "m", "control")


def test_places_and_modules_are_not_mixed(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a place; give out"):
        compress(model, spec_of("int8-dynamic"))
    with pytest.raises(InputError, match="its copy is returned"):
        compress(load(model)[0], spec_of("int8-dynamic"), out=tmp_path)


def test_predictions_of_a_list_of_models_on_the_data_of_their_cards(model: Path) -> None:
    table = predict([model, f"copy={model}"])
    part = prepare(load_data_of(model)).test
    assert table.num_rows == 2 * len(part)
    assert set(table["variant"].to_pylist()) == {"dense", "copy"}
    with pytest.raises(InputError, match="batches is missing"):
        predict({"dense": model})


def load_data_of(model: Path) -> Any:
    return data_of(model_files([model]))


def test_which_models_are_asked(model: Path, tmp_path: Path) -> None:
    named = model_files([f"a={model}", f"b={model}"])
    assert [(one.variant, one.seed) for one in named] == [("a", 1), ("b", 1)]
    for words, reason in (
        ([str(model), str(model)], "a second model 'dense' of seed 1"),
        ([str(tmp_path / "none")], "There is no model"),
        ([f"a={tmp_path / 'none'}"], "There is no model"),
        (["=x"], "not of the form NAME=PATH"),
    ):
        with pytest.raises(InputError, match=reason):
            model_files(words)
    nameless = tmp_path / "net.pt2"
    nameless.touch()
    with pytest.raises(InputError, match="has no variant name"):
        model_files([str(nameless)])
    (tmp_path / "net.onnx").touch()
    with pytest.raises(InputError, match=r"did you mean '.*net\.onnx'\?"):
        model_files([str(tmp_path / "net")])
    with pytest.raises(InputError, match="No model says what data"):
        data_of(model_files([f"a={nameless}"]))
