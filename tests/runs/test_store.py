"""What a store keeps, and what it says about it."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stored_stages import is_whole, numbered, writer

import fairweight
from fairweight.errors import InputError, OutputError
from fairweight.runs import store_layout
from fairweight.runs.manifest import Damaged
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store


def test_a_stage_is_kept_with_its_description(tmp_path: Path) -> None:
    store, stage = Store(tmp_path / "new" / "s"), numbered(1, ("ab" * 16,))
    assert not store.is_done(stage.key)
    assert store.done() == set()
    before = datetime.now(UTC).replace(microsecond=0)
    assert store.write(stage, writer(stage.key))
    assert store.is_done(stage.key)
    assert store.done() == {stage.key}
    folder = store.read(stage.key)
    assert folder == store.folder(stage.key) == store.root / "stages" / stage.key[:2] / stage.key
    assert is_whole(folder, stage.key)

    told = json.loads((folder / "stage.json").read_text())
    assert told["kind"] == "made"
    assert told["label"] == "made: 1"
    assert told["spec"] == {"number": 1}
    assert told["inputs"] == ["ab" * 16]
    size, digest = told["files"]["small.bin"]
    shown = subprocess.run(["sha256sum", folder / "small.bin"], capture_output=True, text=True)
    assert (size, digest) == (32, shown.stdout.split()[0])
    assert sorted(told["files"]) == ["parts/deep/empty.bin", "parts/large.bin", "small.bin"]
    assert before <= datetime.fromisoformat(told["finished"]) <= datetime.now(UTC)
    assert told["versions"]["fairweight"] == fairweight.__version__
    assert told["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "numpy" in told["versions"]
    assert store.manifest(stage.key).files["small.bin"] == (size, digest)
    assert os.listdir(store.root / store_layout.ROOMS) == []


def test_what_is_there_is_not_done_again(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)
    store.write(stage, writer(stage.key))
    assert not store.write(stage, lambda room: pytest.fail("it was done again"))


def test_of_two_writers_the_first_one_stays(tmp_path: Path) -> None:
    # As on file systems whose locks do not reach other machines.
    store, stage = Store(tmp_path), numbered(1)

    def overtaken(room: Path) -> None:
        assert Store(tmp_path).write(stage, writer(stage.key))
        (room / "other.bin").touch()

    assert not store.write(stage, overtaken)
    assert is_whole(store.read(stage.key), stage.key)
    assert os.listdir(store.root / store_layout.ROOMS) == []


def test_nothing_is_seen_of_a_stage_before_its_end(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)

    def looking(room: Path) -> None:
        writer(stage.key)(room)
        assert not store.is_done(stage.key)
        assert store.done() == set()
        assert not store.folder(stage.key).exists()

    store.write(stage, looking)
    assert store.is_done(stage.key)


@pytest.mark.parametrize(
    "error", [RuntimeError("no"), FileNotFoundError("data"), KeyboardInterrupt()]
)
def test_errors_of_a_stage_pass_and_leave_nothing(tmp_path: Path, error: BaseException) -> None:
    store, stage = Store(tmp_path), numbered(1)

    def failing(room: Path) -> None:
        (room / "half").touch()
        raise error

    with pytest.raises(type(error)) as seen:
        store.write(stage, failing)
    assert seen.value is error
    assert store.done() == set()
    assert os.listdir(store.root / store_layout.ROOMS) == []


def test_links_and_the_name_of_the_manifest_are_refused(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)

    def linked(room: Path) -> None:
        (room / "a").mkdir()
        (room / "a/link").symlink_to("/")

    with pytest.raises(ValueError, match=r"'a/link', which is not an ordinary file"):
        store.write(stage, linked)
    with pytest.raises(ValueError, match=r"'stage\.json', a name that the store keeps"):
        store.write(stage, lambda room: (room / "stage.json").touch())
    assert store.done() == set()


def test_files_can_be_read_by_whoever_can_read_the_folder(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)

    def private(room: Path) -> None:
        (room / "a").touch(mode=0o600)

    store.write(stage, private)
    (tmp_path / "plain").touch()
    modes = [
        stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "plain", store.read(stage.key) / "a")
    ]
    assert modes[0] == modes[1]


def test_specs_are_kept_as_json_has_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    stage = Stage("ab", "made", "", {"tasks": ("a", "b")}, (), "")
    store.write(stage, lambda room: None)
    assert store.manifest("ab").spec == {"tasks": ["a", "b"]}


def test_half_done_work_survives_errors_and_goes_with_success(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)

    def interrupted(room: Path) -> None:
        (store.work(stage.key) / "checkpoint").touch()
        time.sleep(0.03)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            store.write(stage, interrupted)
    assert (store.work(stage.key) / "checkpoint").exists()
    store.write(stage, lambda room: time.sleep(0.03))
    assert not (store.root / store_layout.WORK / stage.key).exists()
    assert store.manifest(stage.key).seconds >= 0.09  # all three parts


def test_time_is_not_counted_where_its_work_was_lost(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)
    store.work(stage.key)

    def lost(room: Path) -> None:
        time.sleep(0.2)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.write(stage, lost)
    store.write(stage, lambda room: None)
    assert store.manifest(stage.key).seconds < 0.2


def test_failures_are_recorded_until_forgotten_or_done(tmp_path: Path) -> None:
    store, one, two = Store(tmp_path), numbered(1), numbered(2)
    assert store.failed() == {}
    for stage in (one, two):
        store.fail(stage.key, "Traceback: é", stage.label)
    assert store.failed()[one.key]["traceback"] == "Traceback: é"
    assert store.failed()[one.key]["label"] == "made: 1"
    store.forget_failures([one.key, "unknown"])
    assert set(store.failed()) == {two.key}
    store.write(two, writer(two.key))
    assert store.failed() == {}
    assert os.listdir(store.root / store_layout.FAILED) == []
    store.fail(two.key, "Traceback")  # as if killed before the record was removed
    assert store.failed() == {}


def test_a_broken_record_of_a_failure_is_still_a_failure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.fail("ab", "Traceback")
    (store.root / store_layout.FAILED / "ab.json").write_text("{")
    assert store.failed()["ab"]["traceback"] == "(the record cannot be read)"


def test_looking_makes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.done() == store.running() == set()
    assert store.failed() == store.registered() == {}
    assert store.garbage() == store.leftovers() == []
    with pytest.raises(Damaged, match="not in the store"):
        store.read("ab")
    assert not store.root.exists()


def test_rooms_of_the_dead_are_cleared_and_those_of_the_living_stay(tmp_path: Path) -> None:
    store, stage = Store(tmp_path), numbered(1)
    store.work("ab")
    with store_layout.empty_folder(store.root, "ab") as living:
        here = living.name.split(".")[1]
        dead, copied, early, far = (
            f"cd.{here}.1.0",
            f"01.{here}.1.0",
            f"23.{here}.1.0",
            "ef.far.1.0",
        )
        for name in (dead, copied, far):
            (store.root / store_layout.ROOMS / name).mkdir()
        for name in (dead, early, far):  # a copy of a store may lack its locks
            (store.root / store_layout.ROOMS / f"{name}.lock").touch()
        store.write(stage, writer(stage.key))
        left = {
            path.name.removesuffix(".lock") for path in (store.root / store_layout.ROOMS).iterdir()
        }
        assert left == {living.name, far}
        # Of another machine: only after a day.
        old = time.time() - store_layout.PATIENCE - 60
        os.utime((store.root / store_layout.ROOMS / f"{far}.lock"), (old, old))
        assert store_layout.abandoned(store.root) == []
        os.utime((store.root / store_layout.ROOMS / far), (old, old))
        assert store_layout.abandoned(store.root) == [far]


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).work("ab")
    (tmp_path / "store.json").write_text('{"format": 2}')
    with pytest.raises(InputError, match=r"has format 2, and this version .* up to 1; update"):
        Store(tmp_path)
    (tmp_path / "store.json").write_text("{}")
    with pytest.raises(InputError, match=r"cannot be read; write \{\"format\": 1\}"):
        Store(tmp_path)


def test_folders_of_others_and_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match=r"other files in it, such as 'thesis\.tex'"):
        Store(tmp_path).claim("ab")
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(InputError, match="is a file; give a folder"):
        Store(tmp_path / "thesis.tex")
    with pytest.raises(OutputError, match="a file is where a folder should be"):
        Store(tmp_path / "thesis.tex" / "s").work("ab")


def test_stores_travel_to_other_processes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(numbered(1), lambda room: None)
    assert pickle.loads(pickle.dumps(store)).done() == store.done()
    damaged = pickle.loads(pickle.dumps(Damaged("ab", "it is gone")))
    assert (damaged.key, str(damaged)) == ("ab", "Stage ab must be done again: it is gone.")


def test_a_store_loads_nothing_heavy() -> None:
    program = (
        "import sys, fairweight.runs.store\n"
        "print({n.partition('.')[0] for n in sys.modules} & "
        "{'duckdb', 'numpy', 'pandas', 'pyarrow', 'pydantic', 'torch'})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "set()"
