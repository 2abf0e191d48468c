"""What was changed after it was written is found before it is used."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stored_stages import is_whole, numbered, writer

from fairweight.errors import InputError, OutputError
from fairweight.runs import manifest, store_layout
from fairweight.runs.manifest import Damaged
from fairweight.runs.store import Store


def flip(path: Path, position: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    store.write(numbered(1), writer(numbered(1).key))
    return store


DAMAGES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "byte": (flip, "parts/large.bin", "the content of 'parts/large.bin' has changed"),
    "size": (truncate, "parts/large.bin", "'parts/large.bin' has 63999 bytes instead of 64000"),
    "gone": (Path.unlink, "small.bin", "'small.bin' is missing"),
    "manifest gone": (Path.unlink, "stage.json", "it has no 'stage.json'"),
    "manifest half": (lambda path: os.truncate(path, 100), "stage.json", "'stage.json' is damaged"),
    "manifest empty": (lambda path: os.truncate(path, 0), "stage.json", "'stage.json' is damaged"),
    "manifest other": (lambda path: path.write_text("[]"), "stage.json", "it is no JSON object"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_set_aside_and_repaired(store: Store, name: str) -> None:
    change, file, reason = DAMAGES[name]
    stage = numbered(1)
    change(store.folder(stage.key) / file)
    with pytest.raises(Damaged) as found:
        store.read(stage.key)
    assert reason in found.value.reason
    assert found.value.key == stage.key
    assert not store.is_done(stage.key)
    assert store.done() == set()
    aside = store.root / store_layout.DAMAGED / f"{stage.key}.1"
    assert json.loads((aside / "damage.json").read_text())["reason"] == found.value.reason
    assert store.write(stage, writer(stage.key))
    assert is_whole(store.read(stage.key), stage.key)
    flip(store.folder(stage.key) / "stage.json", -20)
    with pytest.raises(Damaged):
        store.read(stage.key)
    assert (store.root / store_layout.DAMAGED / f"{stage.key}.2").is_dir()


def test_every_flipped_byte_of_a_manifest_is_found(store: Store) -> None:
    key = numbered(1).key
    path = store_layout.manifest(store.root, key)
    whole = path.read_bytes()
    for position in range(0, len(whole) - 1, 7):
        flip(path, position)
        with pytest.raises(Damaged):
            store.manifest(key)
        os.rename((store.root / store_layout.DAMAGED / f"{key}.1"), store.folder(key))
        (store.folder(key) / "damage.json").unlink()
        path.write_bytes(whole)
    assert store.manifest(key).key == key


def test_a_manifest_of_another_stage_is_found(store: Store) -> None:
    one, two = numbered(1), numbered(2)
    store.write(two, writer(two.key))
    os.replace(
        store_layout.manifest(store.root, two.key), store_layout.manifest(store.root, one.key)
    )
    with pytest.raises(Damaged, match=f"is that of stage {two.key}"):
        store.read(one.key)


def test_sizes_are_compared_each_time_and_contents_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, seen = numbered(1).key, []
    whole = manifest.file_sha256

    def watched(path: Path) -> str:
        seen.append(path.name)
        return whole(path)

    monkeypatch.setattr(manifest, "file_sha256", watched)
    store.read(key)
    Store(store.root).read(key)
    assert sorted(seen) == ["empty.bin", "large.bin", "small.bin"]
    truncate(store.folder(key) / "small.bin")
    with pytest.raises(Damaged, match="31 bytes instead of 32"):
        store.read(key)
    store.write(numbered(1), writer(key))  # another folder of the same name is compared anew
    seen.clear()
    store.read(key)
    assert sorted(seen) == ["empty.bin", "large.bin", "small.bin"]


def test_an_unreadable_disk_is_damage_and_a_busy_machine_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = numbered(1).key

    def failing(number: int) -> Callable[[Path], str]:
        def fail(path: Path) -> str:
            raise OSError(number, os.strerror(number), str(path))

        return fail

    monkeypatch.setattr(manifest, "file_sha256", failing(errno.EMFILE))
    with pytest.raises(OSError, match="Too many open files"):
        store.read(key)
    monkeypatch.setattr(manifest, "file_sha256", failing(errno.EACCES))
    with pytest.raises(InputError, match="permission denied"):
        store.read(key)
    assert store.is_done(key)
    monkeypatch.setattr(manifest, "file_sha256", failing(errno.EIO))
    with pytest.raises(Damaged, match="Input/output error"):
        store.read(key)
    assert not store.is_done(key)


def test_damage_that_cannot_be_moved_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    key = numbered(1).key
    truncate(store.folder(key) / "small.bin")

    def refuse(*places: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr("fairweight.runs.manifest.os.rename", refuse)
    with pytest.raises(OutputError, match="permission denied"):
        store.read(key)


def test_a_stage_done_again_meanwhile_is_not_set_aside(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = numbered(1).key

    def overtaken(path: Path) -> str:
        monkeypatch.undo()
        os.rename(store.folder(key), (store.root / store_layout.DAMAGED / f"{key}.1"))
        store.write(numbered(1), writer(key))
        return "another"

    monkeypatch.setattr(manifest, "file_sha256", overtaken)
    with pytest.raises(Damaged):
        store.read(key)
    assert is_whole(store.read(key), key)


@pytest.mark.parametrize("rest", ["small.bin", "unknown.bin"])
def test_a_folder_without_manifest_does_not_stand_in_the_way(tmp_path: Path, rest: str) -> None:
    store, stage = Store(tmp_path), numbered(1)
    store.folder(stage.key).mkdir(parents=True)
    (store.folder(stage.key) / rest).touch()
    assert store.write(stage, writer(stage.key))
    assert is_whole(store.read(stage.key), stage.key)
    assert ((store.root / store_layout.DAMAGED / f"{stage.key}.1") / rest).exists()
