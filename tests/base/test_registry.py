"""Registries: names once, a helpful error, and what other packages add."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fairweight.base import registry
from fairweight.base.registry import Registry
from fairweight.errors import InputError, UnknownNameError


def test_entries_keep_their_order_and_a_name_is_given_once() -> None:
    made: Registry[int] = Registry("apple")
    made.add("b", 2)
    made.add("a", 1)
    assert dict(made) == {"b": 2, "a": 1}
    with pytest.raises(InputError, match=r"^An apple named 'a' is registered already"):
        made.add("a", 3)
    made.remove("a")
    made.add("a", 3)
    assert list(made.values()) == [2, 3]
    assert "c" not in made


def test_an_unknown_name_is_told_with_what_there_is() -> None:
    made: Registry[int] = Registry("loss", unknown="Distillation loss", remedy="Write one.")
    made.add("hint", 1)
    with pytest.raises(
        UnknownNameError,
        match=r"^Distillation loss 'hnt' does not exist; there are: 'hint'\. Did you mean 'hint'\? "
        r"Write one\.$",
    ):
        made["hnt"]


def test_other_packages_are_asked_once_and_only_for_what_is_not_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "adds_pears.py").write_text(
        "import test_of_registries\ntest_of_registries.made.add('pear', 2)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    asked: list[str] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        asked.append(group)
        return [EntryPoint("pear", "adds_pears", group)]

    made: Registry[int] = Registry("fruit", group="test.fruits")
    holder = type(registry)("test_of_registries")
    holder.made = made  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "test_of_registries", holder)
    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    made.add("apple", 1)
    assert made["apple"] == 1
    assert asked == []
    assert made["pear"] == 2
    assert list(made) == ["apple", "pear"]
    assert asked == ["test.fruits"]
