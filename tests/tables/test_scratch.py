"""Folders of the dead are swept, folders of the living and of others are not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from fairweight.base import scratch
from fairweight.base.scratch import SPILL, Scratch, sweep
from fairweight.tables.connection import Workspace

# Makes a folder with a file in it, says its name, and lives until its input ends.
HOLDER = """
import sys
from pathlib import Path
from fairweight.base.scratch import Scratch
held = Scratch(sys.argv[1])
(held.folder / "spilled").write_bytes(b"x" * 1000)
print(held.folder.name, flush=True)
sys.stdin.read()
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, parent / process.stdout.readline().strip()


def test_a_killed_process_is_swept_and_a_living_one_is_not(tmp_path: Path) -> None:
    dead, left = holder(tmp_path)
    alive, used = holder(tmp_path)
    with dead, alive:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert left.is_dir()
        own = Scratch(tmp_path)
        assert set(tmp_path.iterdir()) == {used, own.folder}
        assert (used / "spilled").stat().st_size == 1000
        own.close()
        own.close()
        assert set(tmp_path.iterdir()) == {used}
    assert set(tmp_path.iterdir()) == {used}  # ended without `close`, too
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_lock_protects_what_a_name_does_not(tmp_path: Path) -> None:
    """In a container the number of a process says nothing about those outside."""
    held = Scratch(tmp_path)
    machine, process, start, mark = held.folder.name.removeprefix(SPILL).split("-")
    other = tmp_path / f"{SPILL}{machine}-{process}-{int(start) + 1}-{mark}"
    held.folder.rename(other)
    sweep(tmp_path)
    assert other.is_dir()
    held.close()
    sweep(tmp_path)
    assert not other.exists()


def test_what_is_not_ours_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = f"{'0' * 8}-1-1-{'0' * 8}"  # of another machine
    for name in (f"{SPILL}mine", f"{SPILL}{gone}", "fairweight-abcd1234", f"x{SPILL}{gone}"):
        (tmp_path / name).mkdir()
    target = tmp_path / "target"
    target.mkdir()
    dead = f"{scratch._machine()}-{2**22 + 1}-7-"
    (tmp_path / f"{SPILL}{dead}{'0' * 8}").symlink_to(target)
    (tmp_path / f"{SPILL}{dead}{'1' * 8}").write_text("a file")
    (tmp_path / f"{SPILL}{dead}{'2' * 8}").mkdir()
    before = set(tmp_path.iterdir())
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # somebody else sweeps
    sweep(tmp_path)
    assert set(tmp_path.iterdir()) == before
    monkeypatch.undo()
    sweep(tmp_path)
    assert before - set(tmp_path.iterdir()) == {tmp_path / f"{SPILL}{dead}{'2' * 8}"}
    monkeypatch.setattr(scratch, "PATIENCE", -1.0)  # a day later
    sweep(tmp_path)
    assert not (tmp_path / f"{SPILL}{gone}").exists()


def test_a_folder_that_is_swept_before_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = os.mkdir, []

    def swept_once(path: Path, mode: int) -> None:
        real(path, mode)
        made.append(path)

    real_open = os.open

    def opened(path: Path, flags: int, *rest: int) -> int:
        handle = real_open(path, flags, *rest)
        if len(made) == 1:
            os.rmdir(path)
        return handle

    monkeypatch.setattr(os, "mkdir", swept_once)
    monkeypatch.setattr(os, "open", opened)
    held = Scratch(tmp_path)
    monkeypatch.undo()
    assert len(made) == 2
    assert held.folder.is_dir()
    held.close()


def test_an_audit_sweeps_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    process, left = holder(tmp_path)
    with process:
        process.kill()
    workspace = Workspace()
    (folder,) = tmp_path.iterdir()
    assert folder != left
    setting = "SELECT current_setting('temp_directory')"
    assert workspace.connection.execute(setting).fetchone() == (str(folder),)
    workspace.close()
    assert not list(tmp_path.iterdir())


def test_a_database_that_spilled_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for _ in range(2):
        workspace = Workspace()
        (folder,) = tmp_path.iterdir()
        workspace.connection.execute("SET memory_limit = '60MB'")
        workspace.connection.execute("SET threads = 1")
        rows = "SELECT range, hash(range) AS h FROM range(6000000)"
        workspace.connection.execute(f"CREATE TEMP TABLE rows AS {rows}")
        assert list(folder.iterdir())
        workspace.close()
        assert not list(tmp_path.iterdir())


def test_workspaces_share_a_database_and_see_only_their_own() -> None:
    first, second = Workspace(), Workspace()
    assert first.config is second.config
    first.connection.execute("CREATE TEMP TABLE rows AS SELECT 1 AS x")
    first.connection.execute("CREATE TEMP TYPE sort AS ENUM ('a', 'b')")
    for asked in ("FROM rows", "SELECT 'a'::sort"):
        with pytest.raises(duckdb.CatalogException):
            second.connection.execute(asked)
    first.close()
    assert second.connection.execute("SELECT 1").fetchall() == [(1,)]
    second.close()


def test_an_attached_file_is_let_go(tmp_path: Path) -> None:
    place = tmp_path / "a.duckdb"
    with duckdb.connect(str(place)) as made:
        made.execute("CREATE TABLE rows AS SELECT 1 AS x")
    workspaces = Workspace(), Workspace()
    names = [workspace.attach(place) for workspace in workspaces]
    assert len(set(names)) == 2
    for workspace, name in zip(workspaces, names, strict=True):
        assert workspace.connection.execute(f"FROM {name}.rows").fetchall() == [(1,)]
        workspace.close()
    forgotten = Workspace()
    forgotten.attach(place)
    del forgotten
    with duckdb.connect(str(place)) as made:  # nobody holds it any more
        made.execute("INSERT INTO rows VALUES (2)")


def test_a_forked_process_has_a_database_of_its_own() -> None:
    workspace = Workspace()
    child = os.fork()
    if child == 0:
        own = Workspace()
        right = own.config is not workspace.config
        right &= own.connection.execute("SELECT 2").fetchall() == [(2,)]
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    workspace.close()
