"""Whatever happens to a store, in any order, it is valid."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_stages import is_whole, numbered, writer

from fairweight.errors import InputError
from fairweight.runs import manifest, store_layout
from fairweight.runs.manifest import Damaged
from fairweight.runs.store import Store

STAGES = [numbered(0), numbered(1), numbered(2)]
STAGES.append(numbered(3, (STAGES[0].key,)))
HAPPENINGS = [
    "write",
    "interrupt",
    "kill",
    "flip",
    "truncate",
    "lose",
    "read",
    "register",
    "remove",
]


def _damage(file: Path, what: str) -> None:
    if what == "truncate":
        os.truncate(file, file.stat().st_size // 2)
    elif what == "lose":
        file.unlink()
    else:
        # Added, so that a second one does not undo the first.
        content = bytearray(file.read_bytes())
        content[len(content) // 2] = (content[len(content) // 2] + 1) % 256
        file.write_bytes(content)


def _happen(store: Store, what: str, number: int, whole: set[str]) -> None:
    """Let something happen; `whole` are keys of stages that are as they were written."""
    stage = STAGES[number]
    key, folder = stage.key, store.folder(stage.key)
    if what == "write":
        if store.write(stage, writer(key)):
            whole.add(key)
    elif what == "interrupt":

        def interrupted(room: Path) -> None:
            (room / "half").touch()
            raise KeyboardInterrupt

        if not store.is_done(key):
            with pytest.raises(KeyboardInterrupt):
                store.write(stage, interrupted)
    elif what == "kill":
        store.work(key)
        with store_layout.empty_folder(store.root, key) as room:
            pass
        room.with_name(f"{room.name}.lock").touch()
        room.mkdir()
        writer(key)(room)
    elif what in ("flip", "truncate", "lose") and folder.exists():
        whole.discard(key)
        file = folder / ("small.bin" if number % 2 else "stage.json")
        if file.exists() and file.stat().st_size:
            _damage(file, what)
    elif what == "read":
        manifest._compared.clear()  # as another process would
        if key in whole:
            assert is_whole(store.read(key), key)
        else:
            with pytest.raises(Damaged):
                store.read(key)
            assert not store.is_done(key)
            assert not folder.exists()
    elif what == "register":
        store.register("study", [key])
    elif what == "remove":
        unused = {one for one, _ in store.garbage()}
        if key in unused:
            store.remove([key])
            whole.discard(key)
            assert not folder.exists()
        elif store.is_done(key):
            with pytest.raises(InputError):
                store.remove([key])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.integers(0, 3)), max_size=25))
def test_any_sequence_keeps_the_store_valid(happenings: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        store, whole = Store(place), set[str]()
        for what, number in happenings:
            _happen(store, what, number, whole)
            assert whole <= store.done()
            assert store.running() == set()
        manifest._compared.clear()
        for stage in STAGES:  # a runner would do the same
            try:
                store.read(stage.key)
            except Damaged:
                assert store.write(stage, writer(stage.key))
            assert is_whole(store.read(stage.key), stage.key)
        store.write(numbered(9), writer(numbered(9).key))
        assert os.listdir(store.root / store_layout.ROOMS) == []
