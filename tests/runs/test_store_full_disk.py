"""A disk that is full at any call: one sentence, a valid store, and it goes on with room."""

from __future__ import annotations

import builtins
import errno
import io
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stored_stages import is_whole, numbered, writer

from fairweight.errors import OutputError
from fairweight.runs import manifest, store_layout
from fairweight.runs.store import Store


class FullDisk:
    """Every call that may need space fails from the n-th one on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spared: int) -> None:
        self.left = spared
        self.failed = False
        for name in ("write", "fsync", "mkdir", "rename", "replace"):
            monkeypatch.setattr(os, name, self._failing(getattr(os, name), lambda *args, **_: True))
        creates = self._failing(os.open, lambda path, flags, *args, **_: flags & os.O_CREAT)
        monkeypatch.setattr(os, "open", creates)
        opens = self._failing(io.open, lambda file, mode="r", *args, **_: mode[0] in "wxa")
        monkeypatch.setattr(builtins, "open", opens)
        monkeypatch.setattr(io, "open", opens)

    def _failing(self, function: Callable[..., Any], needs: Callable[..., Any]) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if needs(*args, **options):
                self.left -= 1
                if self.left < 0:
                    self.failed = True
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args, **options)

        return call


ACTIONS: dict[str, Callable[[Store], Any]] = {
    "write": lambda store: store.write(numbered(2), writer(numbered(2).key)),
    "work": lambda store: store.work(numbered(2).key),
    "fail": lambda store: store.fail(numbered(2).key, "Traceback"),
    "register": lambda store: store.register("study", [numbered(1).key]),
    "claim": lambda store: store.claim(numbered(2).key).__enter__(),
    "remove": lambda store: store.remove([numbered(1).key]),
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("new", [False, True])
def test_full_at_every_call(tmp_path: Path, action: str, new: bool) -> None:
    one = numbered(1)
    for spared in range(200):
        root = tmp_path / str(spared)
        if not new:
            Store(root).write(one, writer(one.key))
        before = Store(root).done()
        with pytest.MonkeyPatch.context() as patched:
            disk = FullDisk(patched, spared)
            told = None
            try:
                ACTIONS[action](Store(root))
            except OutputError as error:
                told = str(error)
        manifest._compared.clear()
        store = Store(root)
        for key in store.done():
            assert is_whole(store.read(key), key)
        assert before <= store.done() or action == "remove"
        if told is not None:
            assert "no space left on that disk; free some or choose another place" in told
            assert store.done() == before
        if (root / store_layout.ROOMS).exists():
            assert os.listdir(root / store_layout.ROOMS) == []
        ACTIONS[action](store)  # there is room again
        if not disk.failed:
            break
    assert not disk.failed
    assert spared > 2


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("I/O error: No space left on device (os error 28)"),
        OSError(errno.EDQUOT, "quota"),
    ],
)
def test_full_disks_in_words_of_libraries(tmp_path: Path, error: Exception) -> None:
    store, stage = Store(tmp_path), numbered(1)

    def failing(room: Path) -> None:
        try:
            raise error
        except Exception as inner:
            raise ValueError("could not save") from inner

    with pytest.raises(OutputError, match="no space left on that disk"):
        store.write(stage, failing)
    assert store.done() == set()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "fairweight-test", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    store, one, two = Store(small_disk / "s"), numbered(1), numbered(2)
    store.write(one, lambda room: (room / "a").write_bytes(b"a" * 150_000) and None)
    store.work(two.key).joinpath("checkpoint").write_bytes(b"c" * 10_000)
    with pytest.raises(OutputError, match="no space left on that disk"):
        store.write(two, lambda room: (room / "a").write_bytes(b"b" * 200_000) and None)
    assert store.done() == {one.key}
    assert (store.read(one.key) / "a").read_bytes() == b"a" * 150_000
    assert (store.work(two.key) / "checkpoint").exists()
    store.remove([one.key])
    store.write(two, lambda room: (room / "a").write_bytes(b"b" * 200_000) and None)
    assert (store.read(two.key) / "a").read_bytes() == b"b" * 200_000
