"""Specs of data, network and training from plain values: what is refused, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec, read_toml
from fairweight.specs.training import Model, Training


def test_a_spec_of_plain_values_is_the_spec() -> None:
    data = read_spec(Data, {"name": "mnist", "tasks": ["a"]}, "The data")
    assert data == Data(name="mnist", tasks=("a",))
    assert (data.validation, data.test) == (0.1, 0.3)


@pytest.mark.parametrize(
    ("kind", "given", "parts"),
    [
        (Data, {"name": "x", "test": 1.0}, ("The data: test = 1.0", "less than 1")),
        (Data, {"name": "x", "test": 0.6, "validation": 0.4}, ("leave something to train on",)),
        (Data, {}, ("The data: name is missing",)),
        (Data, {"name": "x", "shares": {"cat": 2}}, ("shares.cat = 2",)),
        (Model, {"architecture": "lenet", "width": 0}, ("width = 0", "greater than 0")),
        (Training, {"epoch": 3}, ("the field 'epoch' does not exist", "Did you mean 'epochs'?")),
        (Training, {"epochs": 3, "lr": "fast"}, ("lr = 'fast'",)),
        (Training, {"epochs": 3, "schedule": "step"}, ("needs milestones",)),
        (Training, {"epochs": 3, "augment": {"crop": -1}}, ("augment.crop = -1",)),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(
    kind: type[Any], given: dict[str, Any], parts: tuple[str, ...]
) -> None:
    with pytest.raises(InputError) as refused:
        read_spec(kind, given, f"The {kind.__name__.lower()}")
    for part in parts:
        assert part in str(refused.value)
    assert "\n" not in str(refused.value)


def test_toml_files_are_read_or_named(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text("epochs = 2\n[augment]\nflip = true\n")
    assert read_toml(good, "The file") == {"epochs": 2, "augment": {"flip": True}}
    bad.write_text("epochs = ")
    for path, reason in ((bad, "not valid TOML"), (tmp_path / "none.toml", "does not exist")):
        with pytest.raises(InputError, match=reason):
            read_toml(path, "The file")
