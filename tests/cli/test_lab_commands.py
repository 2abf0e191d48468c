"""`train`, `compress`, `predict` as a user types them, through to an audit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fairweight import cli
from fairweight.cli.lab import place_of

from .conftest import FEW, Outcome, Run, value

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

pytestmark = pytest.mark.usefixtures("exported_once")

QUICK = ("--epochs", "2", "--optimizer", "adam", "--lr", "0.003", "--batch-size", "64")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`models/dense-0` and what `train` printed, made once."""
    room = tmp_path_factory.mktemp("trained")
    out = room / "models" / "dense-0"
    assert cli.run(["train", *QUICK, "--out", str(out)]) == cli.DONE
    return room / "models"


@pytest.fixture
def models(trained: Path, folder: Path) -> Path:
    """A copy of it in the current folder."""
    shutil.copytree(trained, folder / "models")
    return folder / "models"


def card(folder: Path) -> dict[str, object]:
    read: dict[str, object] = json.loads((folder / "model.json").read_text())
    return read


def test_train_compress_predict_audit(run: Run, models: Path, no_page: None) -> None:
    for words in (
        ("--method", "global-magnitude", "--sparsity", "0.9"),
        ("--method", "n-of-m", "--method-option", "n=1", "--layers", "fc2,fc3"),
        ("--method", "int8-static"),
    ):
        told = run("compress", "models/dense-0", *words).done().out
        assert "accurate on the held-out examples" in told
        assert "Written to models" in told
    assert sorted(path.name for path in models.iterdir()) == [
        "1-of-4-0", "dense-0", "global-magnitude-90-0", "int8-static-0.onnx",
    ]  # fmt: skip
    told = (
        run(
            "predict", *sorted(models.iterdir()), "--variants", "variants.parquet",
            "--train-table", "train.parquet", "--scores", "--ranks",
        )
        .done()
        .out
    )  # fmt: skip
    assert told == (
        "4 models on 539 examples, written to predictions.parquet, variants.parquet, "
        "train.parquet\n"
    )
    table = pd.read_parquet("predictions.parquet")
    assert set(table["variant"]) == {"1-of-4", "dense", "global-magnitude-90", "int8-static"}
    assert {"slant", "ink", "scores", "label_rank"} <= set(table.columns)
    variants = pd.read_parquet("variants.parquet").set_index("variant")
    assert variants["sparsity"]["global-magnitude-90"] == pytest.approx(0.9, abs=1e-3)
    assert variants["parent"]["int8-static"] == "dense:0"
    train = pd.read_parquet("train.parquet")
    assert len(train) == 1797 - 539 - 180  # 30 % held out, 10 % for validation
    run(
        "audit", "predictions.parquet", "--variants", "variants.parquet", "--train",
        "train.parquet", "--baseline", "dense", *FEW,
    ).done()  # fmt: skip
    accuracy = value(
        "fairweight-audit", "compressed", variant="int8-static", metric="accuracy", scope="model"
    )
    told_accuracy = variants_accuracy(table, "int8-static")
    assert accuracy == pytest.approx(told_accuracy)


def variants_accuracy(table: pd.DataFrame, variant: str) -> float:
    rows = table[table["variant"] == variant]
    return float((rows["label"] == rows["prediction"]).mean())


def test_the_default_place_is_named_by_variant_and_seed(run: Run, folder: Path) -> None:
    told = run("train", "--epochs", "1", "--seed", "3").done().out
    assert told.startswith("dense, seed 3: ")
    assert "Written to models/dense-3" in told
    assert (folder / "models" / "dense-3" / "weights.safetensors").is_file()


def test_training_from_a_file_and_options_decide(run: Run, folder: Path) -> None:
    (folder / "run.toml").write_text(
        "epochs = 9\nmomentum = 0.5\n[augment]\nshift = 0.1\nrotate = 10.0\n"
    )
    run(
        "train", "--training", "run.toml", "--epochs", "1", "--set", "weight_decay=0.01",
        "--augment", "rotate=5", "--share", "7=0.5", "--validation", "0", "--out", "m",
    ).done()  # fmt: skip
    training = card(folder / "m")["training"]
    assert isinstance(training, dict)
    chosen = {n: training[n] for n in ("epochs", "momentum", "weight_decay")}
    assert chosen == {"epochs": 1, "momentum": 0.5, "weight_decay": 0.01}
    assert training["augment"] == {
        "crop": 0, "flip": False, "rotate": 5.0, "shift": 0.1, "zoom": 0.0,
    }  # fmt: skip
    data = card(folder / "m")["data"]
    assert isinstance(data, dict)
    assert data["shares"] == {"7": 0.5}


def test_pruned_while_it_trains(run: Run, folder: Path) -> None:
    run(
        "train", "--epochs", "3", "--method", "iterative-magnitude", "--sparsity", "0.36",
        "--method-option", "schedule.epochs=1",
    ).done()  # fmt: skip
    held = card(folder / "models" / "iterative-magnitude-36-0")
    assert held["compression"]["schedule"]["rewind_to"] == 0
    assert held["measured"]["sparsity"] == pytest.approx(0.36, abs=1e-3)


def own_onnx(file: Path, *, channels: int, classes: int) -> None:
    """A linear classifier of 8 × 8 images without a card, as other tools write it."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).normal(size=(64 * channels, classes)).astype(np.float32)
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", channels, 8, 8])
    logits = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", classes])
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"])]
    graph = helper.make_graph(
        nodes, "own", [image], [logits], [numpy_helper.from_array(weights, "w")]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file
    )


def test_ones_own_file_on_ones_own_images(run: Run, folder: Path) -> None:
    """An ONNX file without a card, and a folder of images with one folder per class."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (9, 8, 8, 3), dtype=np.uint8)
    for row in range(9):
        place = folder / "images" / "abc"[row % 3]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[row]).save(place / f"{row}.png")
    own_onnx(folder / "mine.onnx", channels=3, classes=3)
    images = ("--dataset", "folders", "--data", "images", "--dataset-option", "size=8")
    images = (*images, "--all-examples", "--out", "p.parquet")
    scale = ("--mean", "0.5,0.5,0.5", "--std", "0.2,0.2,0.2")
    assert "give both --mean and --std" in run("predict", "a=mine.onnx", *scale[:2]).refused()
    assert "do not fit" in run("predict", "a=mine.onnx", *scale[:3], "1").refused()
    told = run("predict", "a=mine.onnx", "a=mine.onnx", *images, *scale).done().out
    assert told == "2 models on 9 examples, written to p.parquet\n"
    table = pd.read_parquet("p.parquet")
    assert sorted(set(zip(table["variant"], table["seed"], strict=True))) == [("a", 0), ("a", 1)]
    assert set(table["label"]) == {"a", "b", "c"}


@pytest.fixture
def refuse(run: Run, folder: Path, models: Path) -> object:
    def refused(*arguments: object) -> str:
        before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
        outcome: Outcome = run(*arguments)
        after = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
        assert after == before
        return outcome.refused()

    return refused


COMPRESS = ("compress", "models/dense-0", "--method")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ((*COMPRESS, "globl-magnitude"), ("Method 'globl-magnitude'", "'global-magnitude'")),
        (
            (*COMPRESS, "global-magnitude", "--sparsity", "1.5"),
            ("sparsity = 1.5 cannot be used", "from 0 to 1"),
        ),
        ((*COMPRESS, "global-magnitude"), ("sparsity is missing",)),
        ((*COMPRESS, "int8-static", "--sparsity", "0.5"), ("'sparsity' does not exist",)),
        ((*COMPRESS, "l1-structured", "--sparsity", "0.5", "--lr", "0.1"), ("epochs is missing",)),
        (
            (*COMPRESS, "global-magnitude", "--sparsity", "0.5", "--layers", "conv9"),
            ("'conv9'", "'conv1'"),
        ),
        ((*COMPRESS, "int8-static", "--out", "int8.bin"), ("must end in .onnx",)),
        (("compress", "models/none", "--method", "int8-static"), ("models/none",)),
        (("train", "--dataset", "mnits"), ("Data set 'mnits'", "'mnist'")),
        (("train", "--dataset", "mnist", "--data", "nowhere"), ("'nowhere' does not exist",)),
        (("train", "--model", "lenet5"), ("Architecture 'lenet5'", "'lenet'")),
        (("train", "--epochs", "-1"), ("epochs = -1",)),
        (("train", "--set", "momentun=1"), ("'momentun'", "'momentum'")),
        (("train", "--set", "momentum"), ("NAME=VALUE",)),
        (("train", "--augment", "spin"), ("augment.spin",)),
        (("train", "--tasks", "smiling"), ("has one label",)),
        (("train", "--sparsity", "0.5"), ("no method is named",)),
        (("train", "--method", "int8-static"), ("fairweight compress",)),
        (("train", "--init", "none.safetensors"), ("'none.safetensors'",)),
        (
            ("train", "--model", "efficientnet-lite0", "--init", "imagenet", "--weights", "no.pth"),
            ("'no.pth'", "--weights"),
        ),
        (("train", "--init", "imagenet"), ("'lenet'", "efficientnet-lite0", "--init FILE")),
        (("train", "--threads", "0"), ("--threads 0",)),
        (("train", "--device", "abacus"), ("device = 'abacus'",)),
        (("train", "--epochs", "1", "--lr", "1e30"), ("The loss became", "lower learning rate")),
        (("predict", "models/none"), ("There is no model 'models/none'",)),
        (("predict", "models/dense-0", "--part", "tset"), ("'tset'", "'test'")),
        (("predict", "models/dense-0", "--dataset", "digit"), ("'digits'",)),
        (("predict", "models/dense-0", "--batch-size", "0"), ("--batch-size 0",)),
        (("predict", "models/dense-0", "--all-examples"), ("--dataset NAME",)),
    ],
)
def test_bad_input_gets_a_sentence(
    refuse: object, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    sentence = refuse(*words)
    for part in parts:
        assert part in sentence, sentence


def test_an_unreadable_checkpoint(run: Run, models: Path) -> None:
    weights = models / "dense-0" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    for words in ((*COMPRESS, "int8-static"), ("predict", "models/dense-0")):
        sentence = run(*words).refused()
        assert "weights.safetensors" in sentence
        assert "cannot be read" in sentence
    (models / "dense-0" / "model.json").write_text("{")
    assert "is not JSON" in run("predict", "models/dense-0").refused()


def test_an_onnx_file_with_two_inputs(run: Run, folder: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 1, 8, 8])
        for name in ("a", "b", "sum")
    ]
    node = helper.make_node("Add", ["a", "b"], ["sum"])
    graph = helper.make_graph([node], "two", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "two.onnx")
    sentence = run("predict", "two=two.onnx", "--dataset", "digits").refused()
    assert "two inputs" in sentence or "inputs" in sentence
    assert "'a'" in sentence or "a, b" in sentence


def test_a_model_whose_output_does_not_fit_the_labels(run: Run, folder: Path) -> None:
    own_onnx(folder / "three.onnx", channels=1, classes=3)
    words = ("predict", "three=three.onnx", "--dataset", "digits")
    assert "does not say how images are scaled" in run(*words).refused()
    sentence = run(*words, "--mean", "0.3", "--std", "0.4").refused()
    assert "3 outputs" in sentence
    assert not (folder / "predictions.parquet").exists()


def test_a_full_disk(run: Run, models: Path, folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (folder / "full").symlink_to("/dev/full")
    outcome = run("predict", "models/dense-0", "--out", "full")
    assert outcome.code == cli.BAD_INPUT
    assert "Traceback" not in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_model_is_never_replaced_unasked(run: Run, models: Path) -> None:
    before = (models / "dense-0" / "weights.safetensors").read_bytes()
    said = run("train", *QUICK, "--seed", "3", "--out", "models/dense-0").refused()
    assert "holds a model already" in said
    assert "--overwrite" in said
    # By its default name a second one gets a number, of folders and of files.
    half = ("--method", "global-magnitude", "--sparsity", "0.5")
    for words, names in (
        (half, ("global-magnitude-50-0", "global-magnitude-50-0-2")),
        (("--method", "int8-dynamic"), ("int8-dynamic-0.onnx", "int8-dynamic-0-2.onnx")),
    ):
        for name in names:
            told = run("compress", "models/dense-0", *words).done().out
            assert f"Written to models/{name}\n" in told
    assert place_of(None, "dense", 0, models, overwrite=False) == models / "dense-0-2"
    assert place_of(None, "dense", 0, models, overwrite=True) == models / "dense-0"
    assert place_of(None, "dense", 1, models, overwrite=False) == models / "dense-1"
    assert (models / "dense-0" / "weights.safetensors").read_bytes() == before
