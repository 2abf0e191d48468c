"""Prediction tables from models and batches of every form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from fairweight.errors import InputError
from fairweight.lab import prediction_file
from fairweight.lab.batches import batches_of
from fairweight.lab.prediction import predict

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]


def halves(pixels: Floats, labels: Whole) -> list[tuple[Floats, Whole]]:
    return [(pixels[:3], labels[:3]), (pixels[3:], labels[3:])]


def test_the_table(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    table = predict(
        {"dense": pick, "shifted": lambda x: -x.reshape(len(x), -1)[:, :3]},
        halves(pixels, labels),
        groups={"side": ["l", "r", "l", "r", None]},
        ids=["e0", "e1", "e2", "e3", "e4"],
        ranks=True,
    )
    assert table.column_names == [
        *("example_id", "variant", "seed", "label", "prediction", "score", "label_rank", "side")
    ]
    frame = table.to_pandas()
    dense = frame[frame["variant"] == "dense"]
    assert dense["example_id"].tolist() == ["e0", "e1", "e2", "e3", "e4"]
    assert dense["label"].tolist() == [0, 1, 0, 2, 1]
    assert dense["prediction"].tolist() == [0, 1, 2, 2, 0]  # of the tie in e4 the first
    assert dense["label_rank"].tolist() == [1, 1, 2, 1, 2]
    assert dense["side"].tolist()[:4] == ["l", "r", "l", "r"]
    assert dense["side"].isna().tolist() == [False] * 4 + [True]
    assert dense["seed"].tolist() == [0] * 5
    # e1: exp(2) / (1 + exp(2) + exp(1))
    assert dense["score"].iloc[1] == pytest.approx(np.e**2 / (1 + np.e**2 + np.e))
    assert frame[frame["variant"] == "shifted"]["prediction"].tolist() == [2, 0, 1, 0, 2]


def test_forms_of_batches(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    ids = np.arange(10, 15)
    plain = predict({"dense": pick}, [(pixels, labels)], ids=ids)
    named = {"image": pixels, "label": labels, "example_id": ids}
    tensors = [torch.from_numpy(pixels), torch.from_numpy(labels), torch.from_numpy(ids)]
    for batches in ([named], [tensors], iter([(pixels, labels.astype(float), ids)])):
        assert predict({"dense": pick}, batches).equals(plain)
    assert predict({"d": pick}, [(pixels, labels)])["example_id"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_data_loader(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    data = torch.utils.data.TensorDataset(torch.from_numpy(pixels), torch.from_numpy(labels))
    table = predict({"dense": pick}, torch.utils.data.DataLoader(data, batch_size=2))
    assert table["prediction"].to_pylist() == [0, 1, 2, 2, 0]


def test_populations(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    table = predict(
        {"dense": [pick, pick], "int8": {7: pick}, "one": pick}, [(pixels, labels)], seed=3
    )
    frame = table.to_pandas()[["variant", "seed"]].drop_duplicates()
    assert frame.to_numpy().tolist() == [["dense", 0], ["dense", 1], ["int8", 7], ["one", 3]]


def test_names_of_classes(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    names = ("cat", "dog", "emu")
    by_place = predict({"d": pick}, [(pixels, labels)], classes=names, scores=True)
    assert by_place["prediction"].to_pylist() == ["cat", "dog", "emu", "emu", "cat"]
    by_name = predict({"d": pick}, [(pixels, np.array(names)[labels])], classes=names, scores=True)
    assert by_name.equals(by_place)
    assert by_place.schema.metadata == {b"fairweight_classes": b'["cat", "dog", "emu"]'}
    assert len(by_place["scores"][0]) == 3


def test_models_with_orders_of_their_own(
    pixels: Floats, labels: Whole, onnx_file: Callable[..., Path]
) -> None:
    """One file has its classes the other way round: answers are compared by name."""
    from fairweight.lab.artifacts import Card

    matrix = np.eye(4, dtype=np.float32)[:3]
    first = onnx_file("1.onnx", card=Card(classes=("a", "b", "c")))
    second = onnx_file("2.onnx", matrix=matrix[::-1], card=Card(classes=("c", "b", "a")))
    table = predict({"1": first, "2": second}, [(pixels[:4], labels[:4])], scores=True)
    rows = table.to_pylist()
    for one, two in zip(rows[:4], rows[4:], strict=True):
        assert (one["prediction"], one["label"]) == (two["prediction"], two["label"])
        np.testing.assert_allclose(one["scores"], two["scores"])
    third = onnx_file("3.onnx", card=Card(classes=("a", "b", "x")))
    with pytest.raises(InputError, match="has other classes than the rest, such as 'c'"):
        predict({"1": first, "3": third}, [(pixels, labels)])


def test_tasks(pixels: Floats) -> None:
    labels = np.array([[1, 0, 0], [0, 1, 1]])
    table = predict(
        {"m": lambda x: x.reshape(len(x), -1)[:, :3] - 1.5},
        [(pixels[:2], labels)],
        classes=("round", "red", "old"),
        groups={"g": ["x", "y"]},
        scores=True,
        ranks=True,
    )
    frame = table.to_pandas()
    assert frame["task"].tolist() == ["round", "red", "old"] * 2
    assert frame["example_id"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["label"].tolist() == [1, 0, 0, 0, 1, 1]
    assert frame["prediction"].tolist() == [1, 0, 0, 0, 1, 0]  # pixels 5 1 0 and 0 2 1
    assert frame["score"].iloc[0] == pytest.approx(1 / (1 + np.exp(-3.5)))
    assert frame["label_rank"].tolist() == [1, 1, 1, 1, 1, 2]
    assert frame["g"].tolist() == ["x"] * 3 + ["y"] * 3
    np.testing.assert_allclose(frame["scores"].iloc[0][1], frame["score"].iloc[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("classes", "place"), [(None, 1), (("no", "yes"), 1), (("yes", "no"), 0), (("a", "b"), 1)]
)
def test_the_score_of_two_classes(classes: tuple[str, str] | None, place: int) -> None:
    outputs = np.array([[0.0, np.log(3)], [np.log(3), 0.0]])
    table = predict({"m": lambda x: x}, [(outputs, np.array([0, 1]))], classes=classes)
    wanted = [[0.25, 0.75], [0.75, 0.25]]
    np.testing.assert_allclose(table["score"].to_pylist(), [row[place] for row in wanted])


def test_functions_that_decide(pixels: Floats, labels: Whole) -> None:
    table = predict(
        {"m": lambda x: np.full(len(x), 2)}, [(pixels, labels)], ranks=True, scores=True
    )
    assert table["prediction"].to_pylist() == [2] * 5
    for column in ("score", "scores", "label_rank"):
        assert table[column].null_count == 5
    texts = predict({"m": lambda x: np.full(len(x), "a")}, [(pixels, np.array(list("abcab")))])
    assert texts["prediction"].to_pylist() == ["a"] * 5


def test_a_module_is_left_as_it_was(pixels: Floats, labels: Whole) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.9), nn.Linear(4, 3)).train()
    first = predict({"m": model}, [(pixels, labels)])
    assert model.training
    assert predict({"m": model}, [(pixels, labels)]).equals(first)  # no dropout


def test_a_file(pick: nn.Module, pixels: Floats, labels: Whole, tmp_path: Path) -> None:
    done: list[int] = []
    out = predict(
        {"dense": pick},
        halves(pixels, labels),
        out=tmp_path / "new" / "p.parquet",
        scores=True,
        progress=done.append,
    )
    assert done == [3, 5]
    assert out == tmp_path / "new" / "p.parquet"
    assert [f.name for f in out.parent.iterdir()] == ["p.parquet"]
    memory = predict({"dense": pick}, halves(pixels, labels), scores=True)
    assert pq.read_table(out).equals(memory)
    assert pq.read_schema(out).metadata[b"fairweight_classes"] == b'["0", "1", "2"]'


def test_a_data_set(pick: nn.Module) -> None:
    from fairweight.data.dataset import Images
    from fairweight.lab.batches import Scaling

    data = Images(
        name="four",
        images=np.array([[0, 255, 0, 9], [0, 0, 255, 9]], dtype=np.uint8).reshape(2, 2, 2, 1),
        labels=np.array([1, 2]),
        classes=("a", "b", "c"),
        groups={"side": np.array(["l", ""])},
        example_id=np.array(["x", "y"]),
        split=np.array(["test", "test"]),
    )
    table = predict(
        {"dense": pick},
        batches_of(data, size=1),
        classes=data.classes,
        scaling=Scaling((0.5,), (0.5,)),
    )
    rows = table.to_pylist()
    assert [row["prediction"] for row in rows] == ["b", "c"]
    assert [row["side"] for row in rows] == ["l", None]
    # Scaled to -1 and 1: exp(1) / (exp(1) + 2 exp(-1))
    assert rows[0]["score"] == pytest.approx(np.e / (np.e + 2 / np.e))


def test_outputs_that_do_not_fit_the_labels(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    with pytest.raises(InputError, match="gives 3 outputs, but there are labels up to 7"):
        predict({"dense": pick}, [(pixels, labels + 6 * (labels == 1))])
    with pytest.raises(InputError, match="gives 3 outputs, but there are 5 classes"):
        predict({"dense": pick}, [(pixels, labels)], classes=list("abcde"))
    with pytest.raises(InputError, match=r"'other'.* gives 4 outputs, but there are 3 classes"):
        predict({"dense": pick, "other": lambda x: x.reshape(len(x), -1)}, [(pixels, labels)])
    with pytest.raises(InputError, match="The label 'x' is not among the models' classes"):
        predict({"dense": pick}, [(pixels, np.array(list("abcax")))], classes=list("abc"))
    with pytest.raises(InputError, match="classes' names are not known; give classes="):
        predict({"dense": pick}, [(pixels, np.array(list("abcab")))])
    with pytest.raises(InputError, match="value -1"):
        predict({"dense": pick}, [(pixels, labels - 1)])
    with pytest.raises(InputError, match=r"cannot take a batch of shape \(5, 1, 2, 1\)"):
        predict({"dense": pick}, [(pixels[..., :1], labels)])


def test_types_that_change_between_batches(
    pick: nn.Module, pixels: Floats, labels: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch without values, or with whole numbers among fractions, is no other kind of column."""
    monkeypatch.setattr(prediction_file, "PART_SECONDS", 0.0)
    groups = [np.array([None] * 3, dtype=object), np.array(["a", "b"], dtype=object)]
    numbers = [np.array([1, 2, 3]), np.array([0.5, 2])]
    batches = [
        {"image": images, "label": truth, "side": side, "size": size}
        for (images, truth), side, size in zip(halves(pixels, labels), groups, numbers, strict=True)
    ]
    table = predict({"dense": pick}, batches)
    assert table["side"].to_pylist() == [None, None, None, "a", "b"]
    assert table["size"].to_pylist() == [1, 2, 3, 0.5, 2]
    out = predict({"dense": pick}, batches, out=tmp_path / "p.parquet")
    assert pq.read_table(out).equals(table)
    batches[0]["side"] = np.array([1, 2, 3])
    for place in (None, tmp_path / "q.parquet"):
        with pytest.raises(InputError, match="'side' holds int64 in one place and string in"):
            predict({"dense": pick}, batches, out=place)
    batches[0]["side"] = np.array([1, "x", 3], dtype=object)
    with pytest.raises(InputError, match="group column 'side' holds values of different types"):
        predict({"dense": pick}, batches)


def test_batches_that_cannot_be_used(pick: nn.Module, pixels: Floats, labels: Whole) -> None:
    models = {"dense": pick}
    for batches, told in (
        ([], "the batches are empty"),
        ([pixels], "Batch 0 is ndarray; give"),
        ([{"x": pixels, "label": labels}], "it needs 'image' and 'label'"),
        ([(pixels, labels[:3])], "different lengths: inputs 5, label 3"),
        ([(pixels, labels + 0.5)], "labels of batch 0 are float64"),
        ([{"image": pixels, "label": labels, "score": labels}], "cannot be called 'score'"),
        ([(pixels, np.array([[0, 2, 0]] * 5))], "several tasks must be 0 or 1"),
    ):
        with pytest.raises(InputError, match=told):
            predict(models, batches)
    good = [(pixels, labels)]
    for options, told in (
        ({"ids": [1, 2]}, "ids has 2 values, but the batches hold at least 5"),
        ({"ids": range(9)}, "ids has 9 values, but the batches hold 5"),
        ({"groups": {"g": [1] * 4}}, r"groups\['g'\] has 4 values"),
        ({"groups": {"seed": [1] * 5}}, "cannot be called 'seed'"),
        ({"classes": ["a", "a", "b"]}, "a name twice"),
        ({"outputs": "logit"}, "outputs must be"),
    ):
        with pytest.raises(InputError, match=told):
            predict(models, good, **options)
    with pytest.raises(InputError, match="There are no models"):
        predict({}, good)
