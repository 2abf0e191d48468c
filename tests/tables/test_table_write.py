"""Outputs appear whole or not at all, also when the process is killed."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import fairweight.tables.write as write
from fairweight.errors import OutputError
from fairweight.tables.write import MANIFEST, atomic_directory, atomic_file, check_writable

SOURCE = Path(write.__file__).resolve().parents[2]


def visible(folder: Path) -> list[str]:
    """Files below a folder without those of hidden names."""
    found = (f.relative_to(folder) for f in folder.rglob("*") if f.is_file())
    return sorted(f.as_posix() for f in found if not any(p.startswith(".") for p in f.parts))


def test_a_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.txt"
    with atomic_file(path) as stream:
        stream.write("é\n")
        assert not path.exists()
    assert path.read_bytes() == "é\n".encode()
    assert list(path.parent.iterdir()) == [path]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_bytes(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "a", "wb") as stream:
        stream.write(b"\x00\r\n")
    assert (tmp_path / "a").read_bytes() == b"\x00\r\n"
    with pytest.raises(ValueError, match="mode must be"), atomic_file(tmp_path / "a", "a"):
        pass


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), atomic_file(path) as stream:
        stream.write("half \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_folder_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out" / "audit"
    with atomic_directory(target) as folder:
        (folder / "tables").mkdir()
        (folder / "tables" / "a.csv").write_text("1")
        (folder / "audit.json").write_text("{}")
        assert not target.exists()
    assert visible(target) == ["audit.json", "tables/a.csv"]
    assert list(target.parent.iterdir()) == [target]


def test_an_error_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError), atomic_directory(tmp_path / "out") as folder:
        (folder / "audit.json").write_text("{ \ud800")
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_output_is_replaced_and_foreign_files_stay(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with atomic_directory(target) as folder:
        for name in ("report.html", "audit.json", "stale.csv", "kept.csv"):
            (folder / name).write_text("old")
    (target / "notes.txt").write_text("mine")
    with atomic_directory(target) as folder:
        for name in ("report.html", "audit.json", "kept.csv", "tables.csv"):
            (folder / name).write_text("new")
    assert visible(target) == ["audit.json", "kept.csv", "notes.txt", "report.html", "tables.csv"]
    assert (target / "notes.txt").read_text() == "mine"
    assert {(target / n).read_text() for n in ("audit.json", "report.html", "kept.csv")} == {"new"}
    assert sorted(f.name for f in target.iterdir() if f.name.startswith(".")) == [MANIFEST]


def test_a_manifest_cannot_reach_outside(tmp_path: Path) -> None:
    outside = tmp_path / "precious.txt"
    outside.write_text("mine")
    target = tmp_path / "out"
    target.mkdir()
    (target / MANIFEST).write_text('["../precious.txt"]')
    with atomic_directory(target) as folder:
        (folder / "audit.json").write_text("{}")
    assert outside.read_text() == "mine"


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    for target in (tmp_path / "out", tmp_path / "out" / "deeper"):
        with pytest.raises(OutputError, match=r"out' is a file; give a folder"):
            check_writable(target)
        with pytest.raises(OutputError, match="is a file"), atomic_directory(target):
            pass
    with pytest.raises(OutputError, match="is a folder"), atomic_file(tmp_path):
        pass


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "there is no space left on that disk"),
        (errno.EACCES, r"cannot be written \(permission denied\)"),
        (errno.EROFS, r"cannot be written \(permission denied\)"),
        (errno.EIO, "was not written"),
    ],
)
def test_what_the_system_says_becomes_a_sentence(
    number: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match=sentence), atomic_file(tmp_path / "a") as stream:
        stream.write("x")
    with pytest.raises(OutputError, match=sentence), atomic_directory(tmp_path / "b") as folder:
        (folder / "audit.json").write_text("{}")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_writable(tmp_path / "new" / "deep")
    assert list(tmp_path.iterdir()) == []

    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(OutputError, match="permission denied"):
        check_writable(tmp_path / "new")


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import fairweight.tables.write as write
left = int(sys.argv[3])

def dying(function):
    def call(*args):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return function(*args)
    return call

write.os.replace = dying(os.replace)
write.os.rename = dying(os.rename)
write.sync = dying(write.sync)
with write.atomic_directory(sys.argv[2]) as folder:
    for name in ("a.csv", "b.csv", "report.html", "audit.json"):
        (folder / name).write_text("new")
"""


@pytest.mark.parametrize("existing", [False, True])
def test_a_killed_run_leaves_nothing_that_looks_finished(existing: bool, tmp_path: Path) -> None:
    """The process is killed before its 1st, 2nd, ... step towards the disk, until it survives."""
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    steps = 0
    while True:
        target = tmp_path / f"out{steps}"
        if existing:
            with atomic_directory(target) as folder:
                for name in ("a.csv", "report.html", "audit.json"):
                    (folder / name).write_text("old")
        done = subprocess.run(
            [sys.executable, str(script), str(SOURCE), str(target), str(steps)], check=False
        )
        held = {name: (target / name).read_text() for name in visible(target)}
        complete = dict.fromkeys(("a.csv", "b.csv", "report.html", "audit.json"), "new")
        untouched = dict.fromkeys(("a.csv", "report.html", "audit.json"), "old")
        if "audit.json" in held:
            assert held in (complete, untouched)
        if held.get("report.html") == "new":
            assert {**held, "audit.json": "new"} == complete
        if done.returncode == 0:
            assert held == complete
            break
        assert done.returncode == -signal.SIGKILL
        steps += 1
    assert steps >= 5
