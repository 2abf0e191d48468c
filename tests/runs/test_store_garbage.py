"""What no study refers to is listed and removed, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stored_stages import numbered, outputs, writer

from fairweight.errors import InputError
from fairweight.runs import manifest, store_layout
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store


def chain(store: Store, length: int, first: int = 0) -> list[Stage]:
    """Finished stages that each build on the one before."""
    stages: list[Stage] = []
    for number in range(first, first + length):
        stages.append(numbered(number, tuple(stage.key for stage in stages[-1:])))
        store.write(stages[-1], writer(stages[-1].key))
    return stages


def test_inputs_of_inputs_are_referred_to(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept, other = chain(store, 4), chain(store, 2, first=10)
    store.register("mine", [kept[2].key, "ab" * 16])
    unused = sorted([kept[3].key, other[0].key, other[1].key])
    listed = store.garbage()
    assert [key for key, _ in listed] == unused
    for key, size in listed:
        manifest = store_layout.manifest(store.root, key).stat().st_size
        assert size == sum(map(len, outputs(key).values())) + manifest
    store.register("second@smoke", [other[1].key])
    assert [key for key, _ in store.garbage()] == [kept[3].key]


def test_what_is_referred_to_is_not_removed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second, third = chain(store, 3)
    store.register("mine", [second.key])
    with pytest.raises(InputError, match=f"1 of 2 stages .* the first is {first.key}"):
        store.remove([first.key, third.key])
    assert len(store.done()) == 3
    store.remove([third.key, "ab" * 16, "../../studies"])
    assert store.done() == {first.key, second.key}
    assert store.registered() == {"mine": [second.key]}
    assert os.listdir(store.root / store_layout.ROOMS) == []


def test_a_study_replaces_what_it_said_and_can_be_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path)
    one, two = numbered(1), numbered(2)
    for stage in (one, two):
        store.write(stage, writer(stage.key))
    store.register("mine", [one.key, two.key, one.key])
    assert store.registered() == {"mine": sorted([one.key, two.key])}
    store.register("mine", [two.key])
    assert [key for key, _ in store.garbage()] == [one.key]
    with pytest.raises(InputError, match=r"The study 'mein' does not exist; there are: 'mine'"):
        store.unregister("mein")
    store.unregister("mine")
    assert len(store.garbage()) == 2


@pytest.mark.parametrize("name", ["", "../up", ".hidden", "a/b", "x" * 200])
def test_names_of_studies_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be kept; use letters"):
        Store(tmp_path).register(name, [])


def test_an_unreadable_study_makes_nothing_garbage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (stage,) = chain(store, 1)
    store.register("mine", [stage.key])
    (store.root / store_layout.STUDIES / "mine.json").write_text('{"keys":')
    with pytest.raises(InputError, match=r"mine\.json' cannot be read"):
        store.garbage()
    with pytest.raises(InputError, match=r"mine\.json' cannot be read"):
        store.remove([stage.key])
    assert store.done() == {stage.key}


def test_leftovers_are_what_nobody_works_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    done, wanted, dropped, busy = (numbered(n) for n in range(4))
    store.write(done, writer(done.key))
    store.register("mine", [wanted.key])
    for stage in (done, wanted, dropped, busy):
        (store.work(stage.key) / "checkpoint").write_bytes(b"12345")
    with store_layout.empty_folder(store.root, "cd") as living:
        room = living.with_name(living.name + "1")  # of this machine, and nobody holds its lock
    room.mkdir()
    (room / "half").write_bytes(b"123")
    manifest.set_aside(store.root, done.key, "it was")
    with store.claim(busy.key):
        listed = dict(store.leftovers())
        aside = store.root / store_layout.DAMAGED / f"{done.key}.1"
        assert set(listed) == {
            (store.root / store_layout.WORK / dropped.key),
            (store.root / store_layout.WORK / done.key),
            room,
            aside,
        }
        assert listed[(store.root / store_layout.WORK / dropped.key)] == 5
        assert listed[room] == 3
        store.register("second", [dropped.key])  # in use by now
        store.clear(
            [
                *listed,
                (store.root / store_layout.WORK / busy.key),
                store.root / store_layout.STUDIES,
            ]
        )
    assert sorted(os.listdir(store.root / store_layout.WORK)) == sorted(
        [wanted.key, dropped.key, busy.key]
    )
    assert (
        os.listdir(store.root / store_layout.DAMAGED)
        == os.listdir(store.root / store_layout.ROOMS)
        == []
    )
    assert set(store.registered()) == {"mine", "second"}
