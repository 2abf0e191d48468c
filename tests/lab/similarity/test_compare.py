"""Two networks compared block by block; dead channels; what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import Card, save
from fairweight.lab.batches import Scaling, model_input
from fairweight.lab.models import build
from fairweight.lab.models.features import features
from fairweight.lab.partition import prepare
from fairweight.lab.representations import (
    BlockDistance,
    compare_features,
    similarity,
    similarity_row,
    svcca,
)
from fairweight.lab.representations.blocks import drawn
from fairweight.specs.data import Data
from fairweight.specs.similarity import Similarity

from .conftest import plain_svcca

POOLED = Similarity(maps="pooled")


def compare_models(*given: Any, **options: Any) -> dict[str, float]:
    """Distances alone."""
    found = compare_features(*given, **options)
    return {name: compared.distance for name, compared in found.items()}


def small(seed: int, **options: Any) -> nn.Module:
    torch.manual_seed(seed)
    return build("resnet8x4", classes=4, channels=1, size=8, width=0.125, **options)


@pytest.fixture(scope="module")
def images() -> Tensor:
    return torch.rand(120, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_a_network_is_at_distance_0_of_itself_and_not_of_another(images: Tensor) -> None:
    first, second = small(0), small(1)
    same = compare_models(first, first, images, spec=POOLED)
    assert list(same) == ["block1", "block2", "block3", "logits"]
    assert list(same.values()) == pytest.approx([0] * 4, abs=1e-6)
    assert all(
        value > 0.01 for value in compare_models(first, second, images, spec=POOLED).values()
    )


@pytest.mark.parametrize("maps", ["per-location", "pooled", "folded"])
def test_distances_are_those_of_the_features(images: Tensor, maps: str) -> None:
    first, second = small(0).eval(), small(1).eval()
    spec = Similarity(maps=maps, size=2, features=("block2", "logits"))
    batches = [(images[:50], None), (images[50:], None)]
    found = compare_features(first, second, batches, spec=spec)
    with torch.no_grad():
        x, y = (features(net, images, ["block2", "logits"]) for net in (first, second))
    assert found["logits"].distance == pytest.approx(
        plain_svcca(x["logits"].double().numpy(), y["logits"].double().numpy()), abs=1e-5
    )
    one, other = x["block2"].double(), y["block2"].double()  # (120, 16, 4, 4)
    if maps == "pooled":
        expected = svcca(one.mean((2, 3)), other.mean((2, 3))).distance
    elif maps == "folded":
        expected = svcca(
            one.permute(0, 2, 3, 1).reshape(-1, 16), other.permute(0, 2, 3, 1).reshape(-1, 16)
        ).distance
        assert found["block2"].samples == 120 * 16
    else:
        one, other = (nn.functional.avg_pool2d(side, 2) for side in (one, other))
        expected = float(
            np.mean(
                [svcca(one[:, :, i, j], other[:, :, i, j]).distance for i in (0, 1) for j in (0, 1)]
            )
        )
    assert found["block2"].distance == pytest.approx(expected, abs=1e-5)


def test_kinds_of_batches_and_scaling_of_bytes(images: Tensor) -> None:
    first, second = small(0), small(1)
    pixels = (images.permute(0, 2, 3, 1) * 255).to(torch.uint8)
    scaling, other = Scaling((0.5,), (0.2,)), Scaling((0.1,), (1.0,))
    spec = Similarity(features=("logits",))
    found = compare_models(first, second, pixels.numpy(), spec=spec, scalings=(scaling, other))
    assert found == pytest.approx(
        compare_models(first, second, [{"image": pixels}], spec=spec, scalings=(scaling, other))
    )
    with torch.no_grad():
        x = first.eval()(model_input(pixels, scaling)).double()
        y = second.eval()(model_input(pixels, other)).double()
    assert found["logits"] == pytest.approx(svcca(x, y).distance, abs=1e-5)


def test_networks_are_left_as_they_were(images: Tensor) -> None:
    first, second = small(0).train(), small(1).eval()
    before = {name: value.clone() for name, value in first.state_dict().items()}
    done: list[int] = []
    batches = [images[:70], images[70:]]
    compare_models(first, second, batches, spec=POOLED, progress=done.append)
    assert done == [70, 120]
    assert (first.training, second.training) == (True, False)
    assert all(torch.equal(before[name], value) for name, value in first.state_dict().items())
    assert all(not module._forward_hooks for module in first.modules())


@pytest.mark.parametrize("maps", ["per-location", "pooled", "folded"])
def test_dead_channels_of_pruned_networks(images: Tensor, maps: str) -> None:
    """Filters of the last normalisation of a block are 0: whole channels of its maps."""
    first, second = small(0), small(0)
    with torch.no_grad():
        for name, module in second.named_modules():
            if name.startswith("layer2") and isinstance(module, nn.BatchNorm2d):
                module.weight[:8] = 0
    for spec in (
        Similarity(maps=maps, size=2),
        Similarity(maps=maps, size=2, variant="raghu"),
        Similarity(maps=maps, size=2, measure="cka"),
    ):
        found = compare_features(first, second, images, spec=spec)
        with torch.no_grad():
            dead = features(second.eval(), images, ["block2"])["block2"]
        assert int((dead.amax((0, 2, 3)) == 0).sum()) >= 8
        assert {one.status for one in found.values()} == {"ok"}
        assert found["block1"].distance == pytest.approx(0, abs=1e-6)
        assert 0.001 < found["block2"].distance < 1


def test_a_dead_block_is_undefined_and_says_so(images: Tensor) -> None:
    first, second = small(0), small(0)
    with torch.no_grad():
        for module in second.layer2.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.zero_()
                module.bias.zero_()
    found = compare_features(first, second, images, spec=POOLED)
    assert np.isnan(found["block2"].distance)
    row = similarity_row(found)
    assert row["svcca.block2"] is None
    assert row["svcca.block1"] == pytest.approx(0, abs=1e-6)
    assert "block2: all activations of the second side are 0" in row["svcca_status"]


def test_the_row_of_the_variants_table() -> None:
    found = {"block1": BlockDistance(0.25, 10, (2, 2)), "logits": BlockDistance(0.5, 10, (2, 2))}
    assert similarity_row(found) == {
        "svcca.block1": 0.25, "svcca.logits": 0.5, "svcca_status": None,
    }  # fmt: skip
    assert list(similarity_row(found, "cka")) == ["cka.block1", "cka.logits", "cka_status"]


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 6)
        self.last = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(torch.relu(self.first(x.flatten(1))))
        return out


def test_a_users_module_through_a_mapping_of_names(images: Tensor) -> None:
    torch.manual_seed(0)
    own, lab = Own(), small(0)
    assert list(compare_models(own, own, images, names={"hidden": "first"})) == ["hidden"]
    found = compare_models(
        own, lab, images, names={"hidden": ("first", "pooled"), "out": ("last", "logits")}
    )
    assert list(found) == ["hidden", "out"]
    assert all(0 < value < 1 for value in found.values())


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["block9"], r"Feature 'block9' does not exist; there are: .*'block1'"),
        ({"x": ("block1", "blok1")}, "Feature 'blok1' does not exist.*Did you mean 'block1'"),
        ("block1", r"names must be a list of names, such as \['block1'\]"),
        ([], "names is empty"),
    ],
)
def test_layers_that_do_not_exist_get_a_sentence(images: Tensor, names: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        compare_models(small(0), small(1), images, names=names)


def test_networks_that_cannot_be_compared_get_a_sentence(images: Tensor) -> None:
    first = small(0)
    with pytest.raises(InputError, match=r"different blocks \(block1, block2, block3, logits and"):
        compare_models(first, build("lenet", classes=4, channels=1, size=8), images)
    with pytest.raises(InputError, match=r"\(Own\) does not say where its blocks end"):
        compare_models(first, Own(), images)
    colour = build("resnet8x4", classes=4, channels=3, size=8, width=0.125)
    with pytest.raises(InputError, match=r"The second network cannot take .* the same data"):
        compare_models(first, colour, images)
    with pytest.raises(InputError, match="Feature 'block3': 32 features need more than 32 samples"):
        compare_models(first, small(1), images[:30], spec=POOLED)
    with pytest.raises(InputError, match="the batches are empty"):
        compare_models(first, small(1), [])
    with pytest.raises(InputError, match=r"'far' has maps of \(8, 8\) and \(4, 4\)"):
        compare_models(
            first, first, images, spec=Similarity(maps="folded"),
            names={"far": ("block1", "block2")},
        )  # fmt: skip
    with pytest.raises(InputError, match="is a map in one network and a vector in the other"):
        compare_models(first, first, images, names={"far": ("block1", "logits")})
    with pytest.raises(InputError, match="Batch 0 has the keys 'label'"):
        compare_models(first, first, [{"label": images}])


def test_too_few_samples_are_nan_with_the_reason_where_asked(images: Tensor) -> None:
    found = compare_features(small(0), small(1), images[:30], spec=POOLED, refuse=False)
    assert np.isnan(found["block3"].distance)
    assert found["logits"].distance > 0
    assert "block3: 32 features need more than 32 samples" in similarity_row(found)["svcca_status"]


def test_models_on_disk(tmp_path: Path) -> None:
    scaling = Scaling((0.3,), (0.4,))
    options = {"classes": 10, "channels": 1, "size": 8}
    for seed in (0, 1):
        torch.manual_seed(seed)
        card = Card(architecture="lenet", options=options, preprocessing=scaling, seed=seed)
        save(build("lenet", **options), tmp_path / str(seed), card)
    part = prepare(Data(name="digits")).test
    done: list[int] = []
    spec = Similarity(maps="pooled", examples=300)
    found = similarity(
        tmp_path / "0",
        tmp_path / "1",
        part,
        spec=spec,
        batch_size=200,
        progress=lambda at, total: done.append(at),
    )
    assert list(found) == ["block1", "block2", "logits"]
    assert {one.samples for one in found.values()} == {300}
    assert done == [200, 300]
    again = similarity(tmp_path / "0", tmp_path / "1", part, spec=spec)
    assert again["logits"].distance == pytest.approx(found["logits"].distance, abs=1e-9)
    save(build("lenet", **options), tmp_path / "bare", Card(architecture="lenet", options=options))
    with pytest.raises(InputError, match="does not say how pixels are scaled"):
        similarity(tmp_path / "0", tmp_path / "bare", part)
    by_name = similarity(tmp_path / "0", tmp_path / "1", "digits", spec=spec)
    assert by_name["logits"].distance == pytest.approx(found["logits"].distance, abs=1e-9)
    with pytest.raises(InputError, match="Batches are for modules"):
        similarity(tmp_path / "0", tmp_path / "1", [part.images])
    with pytest.raises(InputError, match="No model says what data"):
        similarity(tmp_path / "0", tmp_path / "1")


def test_two_modules_on_batches(images: Tensor) -> None:
    first, second = small(0), small(1)
    found = similarity(first, second, images, spec=POOLED)
    plain = compare_models(first, second, images, spec=POOLED)
    assert {name: one.distance for name, one in found.items()} == plain
    with pytest.raises(InputError, match="give data"):
        similarity(first, second)
    with pytest.raises(InputError, match="compared with a module"):
        similarity(first, "models/dense-0")


def test_examples_are_drawn_from_all_of_them_and_the_same_every_time() -> None:
    rows = drawn(1000, 100)
    assert len(set(rows.tolist())) == 100
    assert np.array_equal(rows, drawn(1000, 100))
    assert np.array_equal(rows, np.sort(rows))
    assert rows.min() < 100 < 900 < rows.max()
    assert np.array_equal(drawn(5, 10), np.arange(5))
    assert np.array_equal(drawn(5, None), np.arange(5))
