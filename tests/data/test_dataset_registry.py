"""Data sets are found by name, in our package and in others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fairweight.data import Images, dataset, datasets, load, register, registry, unregister
from fairweight.data.registry import Needs
from fairweight.errors import InputError


def test_every_source_of_the_papers_is_there() -> None:
    names = [entry.name for entry in datasets()]
    assert names[0] == "digits"  # the default, which needs no download
    assert set(names) >= {
        "mnist", "fashion-mnist", "kmnist", "emnist-byclass", "qmnist", "cifar10", "cifar100",
        "svhn", "celeba", "fairface", "utkface", "imagenette", "imagewoof", "folders", "awa2",
        "iwildcam", "parquet",
    }  # fmt: skip


@pytest.mark.parametrize("entry", datasets(), ids=lambda entry: entry.name)
def test_every_entry_says_what_it_is(entry: registry.Dataset) -> None:
    assert entry.summary
    assert entry.source
    assert bool(entry.layout) == (entry.name != "digits")


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"Data set 'fashon-mnist' does not exist.*'fashion-mnist'"
    ):
        load("fashon-mnist")


def test_an_unknown_option_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Option of the data set 'mnist' 'split' .*'splits'"):
        load("mnist", tmp_path, split="test")
    assert dataset("celeba").options["cropped"] is True


def test_a_folder_is_needed_and_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRWEIGHT_DATA", raising=False)
    with pytest.raises(InputError, match=r"no folder was given; name the folder .*FAIRWEIGHT_DATA"):
        load("mnist")
    with pytest.raises(InputError, match=r"folder '.*nowhere' does not exist"):
        load("mnist", tmp_path / "nowhere")
    monkeypatch.setenv("FAIRWEIGHT_DATA", str(tmp_path))
    with pytest.raises(InputError, match="needs the file 'train-images-idx3-ubyte'"):
        load("mnist")


def test_a_name_is_taken_once(small: Images) -> None:
    @register("mine", summary="my images", source="me")
    def mine(*, size: int = 1) -> Images:
        return small

    try:
        assert load("mine", size=2) is small
        with pytest.raises(InputError, match="'mine' is registered already"):
            register("mine", summary="others", source="them")(mine)
    finally:
        unregister("mine")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[EntryPoint]]:
    """Entry points of packages that a test pretends are installed."""
    points: list[EntryPoint] = []
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: points)
    registry.DATASETS._loaded = False
    yield points
    registry.DATASETS._loaded = False


def test_other_packages_add_data_sets(installed: list[EntryPoint], tmp_path: Path) -> None:
    (tmp_path / "cats_for_fairweight.py").write_text(
        "from fairweight.data import load, register\n"
        "@register('cats', summary='cats', source='a friend')\n"
        "def cats():\n"
        "    return load('digits')\n"
    )
    installed.append(EntryPoint("cats", "cats_for_fairweight", registry.ENTRY_POINTS))
    try:
        assert len(load("cats")) == 1797
        assert datasets()[-1].name == "cats"
    finally:
        unregister("cats")
        sys.modules.pop("cats_for_fairweight")


def test_a_system_package_is_read_where_the_folder_has_none_of_the_files(tmp_path: Path) -> None:
    mine, packaged = tmp_path / "mine", tmp_path / "packaged"
    for folder in (mine, packaged):
        (folder / "dots").mkdir(parents=True)
    (packaged / "dots" / "dots.bin").touch()
    needs = [Needs(("dots",), ("dots.bin",))]

    @register(
        "dots", summary="s", source="s", layout=("dots/dots.bin",), needs=needs,
        packaged=str(packaged),
    )  # fmt: skip
    def dots(root: Path) -> Images:
        return replace(load("digits"), name=root.name)

    try:
        assert load("dots", mine).name == "packaged"
        (mine / "dots" / "dots.bin").touch()
        assert load("dots", mine).name == "mine"
        (packaged / "dots" / "dots.bin").unlink()
        (mine / "dots" / "dots.bin").unlink()
        assert load("dots", mine).name == "mine"  # whose error names the missing file
    finally:
        unregister("dots")


def test_a_broken_package_is_named(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("dogs", "no_such_module_of_dogs", registry.ENTRY_POINTS))
    with pytest.warns(UserWarning, match=r"'no_such_module_of_dogs' offers .*'dogs'.*remove the"):
        names = [entry.name for entry in datasets()]
    assert "digits" in names  # our own do not suffer from it


def test_importing_the_registry_loads_nothing_heavy() -> None:
    program = (
        "import sys, fairweight.data\n"
        "print(sorted({'PIL', 'duckdb', 'pandas', 'scipy', 'sklearn', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"
