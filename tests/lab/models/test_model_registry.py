"""Building by name: what is registered, what users bring, and what cannot be built."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.models.registry import architecture, architectures, build, unregister

MODULE = """
import torch
from torch import nn


def linear(classes, channels, size):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))


def scaled(*, classes, channels, size, width=1.0, dropout=0.0):
    hidden = round(8 * width)
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(channels * size * size, hidden),
        nn.Dropout(dropout),
        nn.Linear(hidden, classes),
    )


def anything(**options):
    return linear(options["classes"], options["channels"], options["size"])


def always_ten():
    return linear(10, 3, 32)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(3, classes)

    def forward(self, x):
        return self.fc(self.pool(x).flatten(1))


class Pair(Net):
    def forward(self, x):
        out = super().forward(x)
        return out, out


def broken(classes):
    raise RuntimeError("no weights here")


def nothing(classes):
    return [classes]


number = 3
"""


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the working folder, which is not on the path."""
    name = "networks_of_a_user"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield name
    assert sys.path == path
    sys.modules.pop(name, None)


def test_a_function_of_the_user_gets_the_shape(nets: str) -> None:
    model = build(f"{nets}:linear", classes=4, channels=1, size=8)
    assert model(torch.rand(2, 1, 8, 8)).shape == (2, 4)
    assert model.training


def test_a_function_of_the_user_gets_width_and_options_that_it_has(nets: str) -> None:
    model = build(f"{nets}:scaled", classes=4, size=8, width=2, dropout=0.25)
    assert model.get_parameter("1.weight").shape == (16, 3 * 8 * 8)
    assert isinstance(model[2], nn.Dropout)
    assert model[2].p == 0.25


@pytest.mark.parametrize("function", ["anything", "always_ten", "Net"])
def test_functions_of_any_signature_and_classes_work(nets: str, function: str) -> None:
    model = build(f"{nets}:{function}", classes=10)
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_the_trial_changes_no_weights_and_no_later_draws(nets: str) -> None:
    torch.manual_seed(5)
    built = build(f"{nets}:Net", classes=3)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    plain = sys.modules[nets].Net(classes=3)
    assert torch.equal(built.fc.weight, plain.fc.weight)
    assert torch.equal(drawn, torch.rand(3))


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("always_ten", {"classes": 2}, r"one logit per class, here of shape \(1, 2\).*\(1, 10\)"),
        ("Pair", {}, r"must give one logit per class.*not tuple"),
        ("always_ten", {"size": 28}, r"cannot take an image of 3 × 28 × 28: RuntimeError"),
        ("broken", {}, r"failed when called with \(classes=10\): RuntimeError: no weights here"),
        ("nothing", {}, r"must return a torch.nn.Module, not list"),
        ("linaer", {}, r"function 'linaer' does not exist.*Did you mean 'linear'"),
        ("number", {}, r"function 'number' does not exist"),
        ("linear", {"width": 0.5}, r"has no parameter 'width', so width=0.5 has no effect"),
        ("linear", {"depth": 3}, r"Parameter of '.*:linear' 'depth' does not exist"),
        ("", {}, r"is named 'module:function'"),
    ],
)
def test_functions_that_cannot_be_used_get_a_sentence(
    nets: str, name: str, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        build(f"{nets}:{name}", **{"classes": 10, **options})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, r"Module 'net_of_nobody' of 'net_of_nobody:f' was not found"),
        ("import package_of_nobody", r"needs 'package_of_nobody', which is not installed"),
        ("1 / 0", r"cannot be imported: ZeroDivisionError"),
    ],
)
def test_modules_that_cannot_be_imported_get_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "net_of_nobody.py").write_text(text)
        # The folder was listed before, by the case in which the module does not exist.
        sys.path_importer_cache.pop(str(tmp_path), None)
    with pytest.raises(InputError, match=sentence):
        build("net_of_nobody:f", classes=2)
    assert "net_of_nobody" not in sys.modules


def test_an_unknown_architecture_gets_the_nearest_and_the_way_out() -> None:
    with pytest.raises(InputError, match=r"Did you mean 'resnet18'\?.*module:function"):
        build("resnet81", classes=10)


def test_an_unknown_option_gets_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"Option of architecture 'resnet18' 'stm' .*'stem'"):
        build("resnet18", classes=10, stm="small")
    with pytest.raises(InputError, match=r"'padding' does not exist; there are: none"):
        build("resnet8x4", classes=10, padding=1)


@pytest.mark.parametrize("argument", ["classes", "channels", "size"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "3", True, None])
def test_numbers_that_are_not_counts_get_a_sentence(argument: str, value: object) -> None:
    options = {"classes": 10, argument: value}
    with pytest.raises(InputError, match=rf"{argument} must be a whole number of at least 1"):
        build("lenet", **options)


@pytest.mark.parametrize("value", [0, -0.5, float("nan"), float("inf"), "wide", True])
def test_widths_that_are_no_factors_get_a_sentence(value: object) -> None:
    with pytest.raises(InputError, match="width must be a number above 0"):
        build("lenet", classes=10, width=value)


def test_numbers_of_numpy_are_numbers() -> None:
    model = build("lenet", classes=np.int64(3), size=np.int32(28), width=np.float32(0.5))
    assert model.get_parameter("fc3.weight").shape == (3, 42)


def test_an_architecture_of_ones_own_is_one_registered_function() -> None:
    @architecture("test-pixel-mean", summary="mean pixel", source="this test")
    def pixel_mean(
        *, classes: int, channels: int, size: int, width: float = 1.0, bias: bool = True
    ) -> nn.Module:
        return nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes, bias=bias)
        )

    try:
        assert architectures()[-1].options == ("bias",)
        model = build("test-pixel-mean", classes=2, bias=False)
        assert model(torch.rand(3, 3, 5, 5)).shape == (3, 2)
        with pytest.raises(InputError, match="is registered already"):
            architecture("test-pixel-mean", summary="", source="")(pixel_mean)
    finally:
        unregister("test-pixel-mean")
    assert "test-pixel-mean" not in [entry.name for entry in architectures()]
