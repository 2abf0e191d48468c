"""Images beside explanations: which are chosen, and that they are joined by identity."""

from __future__ import annotations

import base64
import io
import sys

import numpy as np
import pytest

import fairweight as fw
from fairweight.auditing.explain.explanations import ExplainRequest
from fairweight.auditing.explain.images import measure_dataset, places, training_covariates
from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.data import Images
from fairweight.data.dataset import ALL
from fairweight.errors import InputError

N = 8


@pytest.fixture
def images() -> Images:
    """Eight images of 4 × 4 whose brightness is their number, stored in reverse."""
    order = np.arange(N)[::-1]
    pixels = np.zeros((N, 4, 4, 1), dtype=np.uint8)
    pixels[:, 1:3, 1:3, 0] = (100 + 10 * order)[:, None, None]
    return Images(
        name="made",
        images=pixels,
        labels=(order % 2).astype(np.int64),
        classes=("0", "1"),
        groups={},
        example_id=np.array([f"e{i}" for i in order]),
        split=np.array(["test"] * 6 + ["train"] * 2),
    )


def test_properties_are_joined_by_identity(images: Images) -> None:
    answers = from_arrays([0, 1, 0], {"dense": [0, 1, 0]}, ids=["e2", "e5", "e4"])
    assert places(answers, images).tolist() == [5, 2, 3]
    found = measure_dataset(images)(answers)
    np.testing.assert_allclose(found["ink"], [120 / 4, 150 / 4, 140 / 4])
    # Training images are e0 and e1: pixels of 100 and 110; four pixels differ by 20 or 40.
    np.testing.assert_allclose(found["distance"], [40.0, 80.0, 80.0])
    other = from_arrays([0], {"dense": [0]}, ids=["x"])
    with pytest.raises(InputError, match="'x', are not in the data set 'made'"):
        places(other, images)


def test_training_images_are_those_that_nobody_was_asked_about(images: Images) -> None:
    answers = from_arrays([0, 1, 0], {"dense": [0, 1, 0]}, ids=["e2", "e5", "e4"])
    covariates = training_covariates(images)(answers)["made"].set_index("class")
    assert covariates["imbalance"].tolist() == [0.0, 0.0]  # e0 and e1, one of each class
    # Without parts of its own, everything else is the training: e1, e3, e7 against e0 and e6.
    undivided = Images(**{**images.__dict__, "split": np.array([ALL] * N)})
    covariates = training_covariates(undivided)(answers)["made"].set_index("class")
    assert covariates["imbalance"].tolist() == pytest.approx([2 / 5 - 1 / 2, 3 / 5 - 1 / 2])
    everything = from_arrays(
        np.arange(N) % 2, {"dense": np.arange(N) % 2}, ids=[f"e{i}" for i in range(N)]
    )
    with pytest.raises(InputError, match="'made' has no training images beside those"):
        training_covariates(undivided)(everything)


def test_exemplars_are_shown_beside_others_of_their_class(images: Images) -> None:
    truth = np.arange(N) % 2
    changed = truth.copy()
    changed[[3, 5]] = 0
    also = truth.copy()
    also[[3, 7]] = 0
    table = {
        "example_id": [f"e{i}" for i in range(N)], "label": truth, "pred_dense": truth,
        "pred_a": changed, "pred_b": also,
    }  # fmt: skip
    made = fw.audit_table(
        table, explain=ExplainRequest(parts=("exemplars",), images=images), n_boot=20
    )
    shown = made.explanations["exemplar_images"]
    of_a = shown[shown["variant"] == "a"].groupby("part")["example_id"].apply(list).to_dict()
    assert sorted(of_a["exemplar"]) == ["e3", "e5"]
    assert set(of_a["non-exemplar"]) <= {"e1", "e7"}
    assert of_a["shared"] == ["e3"]
    assert of_a["one-only"] == ["e5"]
    # Variants in turn, each example once: those of a come in its order, e7 is b's own.
    looked_at = shown[shown["part"] == "gallery"]
    assert sorted(looked_at["example_id"]) == ["e3", "e5", "e7"]
    assert looked_at.set_index("example_id")["variant"].to_dict()["e7"] == "b"
    row = shown[shown["example_id"] == "e5"].iloc[0]
    assert (row["label"], row["modal_baseline"], row["modal_compressed"]) == ("1", "1", "0")
    from PIL import Image

    held = base64.b64decode(row["image"].partition(",")[2])
    assert np.asarray(Image.open(io.BytesIO(held))).max() == 150


def test_a_tilted_image_with_its_line(images: Images) -> None:
    pixels = images.images.copy()
    pixels[:] = 0
    for row in range(4):
        pixels[:, row, 3 - row, 0] = 255  # a slash: one column less with every row
    slashes = Images(**{**images.__dict__, "images": pixels})
    table = {
        "example_id": [f"e{i}" for i in range(N)], "label": [0, 1] * 4, "pred_dense": [0, 1] * 4,
        "pred_a": [0, 0] * 4, "who": ["p", "q"] * 4,
    }  # fmt: skip
    asked = ExplainRequest(parts=("individuals",), images=slashes, measure=measure_dataset(slashes))
    made = fw.audit_table(table, explain=asked, cluster="who", n_boot=20)
    row = made.explanations["tilt_example"].iloc[0]
    assert (row["slope"], row["intercept"]) == (-1.0, 3.0)


def test_a_published_result_has_no_explanations(images: Images) -> None:
    table = {
        "example_id": [f"e{i}" for i in range(N)], "label": [0, 1] * 4, "pred_dense": [0, 1] * 4,
        "pred_a": [0, 0] * 4,
    }  # fmt: skip
    made = fw.audit_table(table, explain=["exemplars"], n_boot=20)
    assert len(made.exemplars) == 4
    assert made.suppressed().explanations == {}
    assert "exemplars and explanations" in " ".join(made.suppressed().notes)


def test_without_pillow_everything_is_there(
    images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    truth = np.arange(N) % 2
    changed = truth.copy()
    changed[3] = 0
    table = {
        "example_id": [f"e{i}" for i in range(N)], "label": truth, "pred_dense": truth,
        "pred_a": changed, "who": np.arange(N) // 2,
    }  # fmt: skip
    asked = ExplainRequest(
        parts=("exemplars", "individuals"), images=images, measure=measure_dataset(images)
    )
    made = fw.audit_table(table, cluster="who", explain=asked, n_boot=20)
    assert len(made.result.explanations["exemplars"]) == 1
    assert len(made.result.explanations["individuals"]) == 4
    for name in ("exemplar_images", "tilt_example"):
        encoded = made.result.explanations[name]["image"].tolist()
        assert encoded
        assert all(text.startswith("data:image/png;base64,") for text in encoded)
