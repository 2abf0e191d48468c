"""Outputs appear whole or not at all, also when the process is killed."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fairweight.base.files as write
from fairweight.base.files import (
    MANIFEST,
    PENDING,
    STEPS,
    atomic_directory,
    atomic_file,
    check_file,
    check_folder,
    check_writable,
    checksum,
    finish,
    manifest,
)
from fairweight.errors import OutputError

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


def write_all(target: Path, content: str, *names: str, **options: Any) -> None:
    with atomic_directory(target, **options) as folder:
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)


@pytest.mark.parametrize(
    "listed",
    [
        ["../precious.txt"],
        ["kept.csv", "a\0b"],
        {"format": 2, "files": {"../precious.txt": None}},
        {"format": 2, "files": {"/etc/passwd": "0"}},
        {"format": 2, "files": {"kept.csv": 3}},
        {"format": 2, "files": []},
        {"format": 99, "files": {}},
        7,
    ],
)
def test_a_manifest_that_we_cannot_have_written_stops_everything(
    tmp_path: Path, listed: object
) -> None:
    """Nothing is gone when the error comes, whatever the place of the bad entry."""
    (tmp_path / "precious.txt").write_text("mine")
    target = tmp_path / "out"
    target.mkdir()
    (target / "kept.csv").write_text("mine")
    (target / MANIFEST).write_text(json.dumps(listed))
    with pytest.raises(OutputError, match=MANIFEST):
        write_all(target, "new", "audit.json", overwrite=True)
    assert (tmp_path / "precious.txt").read_text() == "mine"
    assert visible(target) == ["kept.csv"]


def test_only_what_has_its_checksum_is_removed_or_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    write_all(target, "old", "stale.csv", "edited.csv", "kept.csv")
    assert set(manifest(target)) == {"stale.csv", "edited.csv", "kept.csv"}
    (target / "edited.csv").write_text("mine")
    write_all(target, "new", "kept.csv")
    assert visible(target) == ["edited.csv", "kept.csv"]  # stale.csv was as we wrote it
    (target / "kept.csv").write_text("mine too")
    with pytest.raises(OutputError, match=r"kept.csv' was changed since .* --overwrite"):
        write_all(target, "newer", "kept.csv")
    assert (target / "kept.csv").read_text() == "mine too"
    write_all(target, "newer", "kept.csv", overwrite=True)
    assert (target / "kept.csv").read_text() == "newer"
    assert (target / "edited.csv").read_text() == "mine"


def test_a_file_that_no_manifest_lists_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(OutputError, match=r"report.html' exists, and fairweight did not write it"):
        write_all(tmp_path, "new", "audit.json", "report.html")
    assert visible(tmp_path) == ["report.html"]
    (tmp_path / "report.html").write_text("new")  # what is the same anyway is in nobody's way
    write_all(tmp_path, "new", "audit.json", "report.html")
    assert visible(tmp_path) == ["audit.json", "report.html"]


def test_a_manifest_without_checksums(tmp_path: Path) -> None:
    """Of the first version: nothing that it lists is removed or replaced without being asked."""
    for name in ("audit.json", "stale.csv"):
        (tmp_path / name).write_text("old")
    (tmp_path / MANIFEST).write_text('["audit.json", "stale.csv"]')
    with pytest.raises(OutputError, match=r"audit.json' exists, .* no checksums; .* --overwrite"):
        write_all(tmp_path, "new", "audit.json")
    assert (tmp_path / "audit.json").read_text() == "old"
    write_all(tmp_path, "new", "audit.json", overwrite=True)
    assert (tmp_path / "audit.json").read_text() == "new"
    assert (tmp_path / "stale.csv").read_text() == "old"
    write_all(tmp_path, "newer", "audit.json")


def test_nothing_is_written_or_removed_through_a_link(tmp_path: Path) -> None:
    others, target = tmp_path / "others", tmp_path / "out"
    others.mkdir()
    write_all(target, "old", "tables/a.csv", "tables/b.csv")
    (target / "tables").rename(others / "tables")
    (target / "tables").symlink_to(others / "tables")
    with pytest.raises(OutputError, match="is a link to another folder"):
        write_all(target, "new", "tables/a.csv", overwrite=True)
    write_all(target, "new", "audit.json")
    assert {f.name: f.read_text() for f in (others / "tables").iterdir()} == {
        "a.csv": "old",
        "b.csv": "old",
    }


def test_a_link_in_the_place_of_a_file_is_replaced_itself(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    target = tmp_path / "out"
    target.mkdir()
    (target / "audit.json").symlink_to(tmp_path / "precious.txt")
    with pytest.raises(OutputError, match="--overwrite"):
        write_all(target, "new", "audit.json")
    write_all(target, "new", "audit.json", overwrite=True)
    assert (tmp_path / "precious.txt").read_text() == "mine"
    assert not (target / "audit.json").is_symlink()


def test_inputs_are_never_replaced_or_removed(tmp_path: Path) -> None:
    write_all(tmp_path, "old", "a.parquet", "b.parquet")
    with pytest.raises(OutputError, match=r"a.parquet' is an input"):
        write_all(tmp_path, "new", "a.parquet", overwrite=True, inputs=[tmp_path / "a.parquet"])
    write_all(tmp_path, "new", "c.parquet", inputs=[tmp_path / "a.parquet"])
    assert visible(tmp_path) == ["a.parquet", "c.parquet"]


def test_a_folder_is_checked_before_the_work(tmp_path: Path) -> None:
    out = str(tmp_path)
    write_all(tmp_path, "old", "a.parquet", "tables/b.csv")
    assert check_folder(out, names=("a.parquet", "new.csv")) == ()
    given = [f"dense={tmp_path}/a.parquet"]
    with pytest.raises(OutputError, match=r"a.parquet' is an input of this command, and it would"):
        check_folder(out, inputs=given)
    with pytest.raises(OutputError, match="where --overwrite might replace it"):
        check_folder(out, inputs=given, overwrite=True)
    with pytest.raises(OutputError, match="is an input of this command"):
        check_folder(out, inputs=[out], overwrite=True)
    (tmp_path / "mine.csv").write_text("mine")
    with pytest.raises(OutputError, match=r"mine.csv' exists"):
        check_folder(out, names=("mine.csv",))
    check_folder(out, names=("mine.csv",), overwrite=True)


@pytest.mark.parametrize("given", ["{}", "a={}", "{}::SELECT 1", "{}[t]"])
def test_a_file_that_is_an_input_is_refused(tmp_path: Path, given: str) -> None:
    path = tmp_path / "q.parquet"
    path.write_text("mine")
    named = given.format(path).replace("parquet[t]", "parque[t]")
    with pytest.raises(OutputError, match=r"--out '.*q.parquet' is an input"):
        check_file(str(path), inputs=[None, named], overwrite=True)
    with pytest.raises(OutputError, match=r"q.parquet' exists; .* --overwrite"):
        check_file(str(path), inputs=["other.csv"])
    check_file(str(path), inputs=["other.csv"], overwrite=True)
    check_file(str(tmp_path / "new.parquet"), inputs=[named])


def test_a_listed_file_may_be_written_again_alone(tmp_path: Path) -> None:
    write_all(tmp_path, "old", "report.html", "tables/a.csv")
    for name in ("report.html", "tables/a.csv"):
        check_file(str(tmp_path / name))
        with atomic_file(tmp_path / name) as stream:
            stream.write("other")
    write_all(tmp_path, "new", "report.html", "tables/a.csv")
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(OutputError, match="was changed since"):
        check_file(str(tmp_path / "report.html"))


def test_a_planted_run_moves_nothing_that_it_does_not_know(tmp_path: Path) -> None:
    """What a killed run left is done only where files are as that run saw them."""
    (tmp_path / "notes.txt").write_text("mine")
    pending = tmp_path / PENDING
    pending.mkdir()
    (pending / "notes.txt").write_text("theirs")
    steps: dict[str, dict[str, str]] = {"writes": {"notes.txt": "0"}, "removes": {}}
    (pending / STEPS).write_text(json.dumps(steps))
    with pytest.raises(OutputError, match=r"notes.txt' is not as an earlier run left it"):
        finish(tmp_path)
    (pending / STEPS).write_text(json.dumps({**steps, "writes": {"../x": "0"}}))
    with pytest.raises(OutputError, match=STEPS):
        finish(tmp_path)
    (pending / STEPS).write_text(json.dumps({"removes": {"notes.txt": "0"}}))
    with pytest.raises(OutputError, match="damaged"):
        finish(tmp_path)
    # It knows what is in the file, and still it may not touch what the list does not name.
    known = checksum(tmp_path / "notes.txt")
    (pending / STEPS).write_text(json.dumps({"writes": {}, "removes": {"notes.txt": known}}))
    finish(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (pending / "notes.txt").read_text() == "theirs"
    with pytest.raises(OutputError, match="is not a folder that fairweight wrote"):
        finish(tmp_path)
    for name in (MANIFEST, f"{PENDING}/x", STEPS):
        steps = {"writes": {}, "removes": {name: known}}
        (pending / STEPS).write_text(json.dumps(steps))
        with pytest.raises(OutputError, match="is not a folder that fairweight wrote"):
            finish(tmp_path)
    (pending / STEPS).write_text(json.dumps({"writes": {}, "removes": {}}))
    (pending / MANIFEST).write_text(json.dumps({"format": 2, "files": {"notes.txt": known}}))
    with pytest.raises(OutputError, match="is not a folder that fairweight wrote"):
        finish(tmp_path)


def test_a_killed_run_may_still_replace_what_it_was_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--overwrite` lists the user's file before the new ones win, so that it can be finished."""
    (tmp_path / "report.html").write_text("mine")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("fairweight.base.files._move", killed)
        with pytest.raises(KeyboardInterrupt), atomic_directory(tmp_path, overwrite=True) as made:
            (made / "report.html").write_text("new")
    assert (tmp_path / "report.html").read_text() == "mine"
    finish(tmp_path)
    assert (tmp_path / "report.html").read_text() == "new"
    assert not (tmp_path / PENDING).exists()


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

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OutputError, match="permission denied"):
        check_writable(tmp_path / "new")


CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import fairweight.base.files as write
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
write.os.unlink = dying(os.unlink)
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
    outcomes: list[bool] = []
    while True:
        target = tmp_path / f"out{steps}"
        if existing:
            with atomic_directory(target) as folder:
                for name in ("a.csv", "c.csv", "report.html", "audit.json"):
                    (folder / name).write_text("old")
        done = subprocess.run(
            [sys.executable, str(script), str(SOURCE), str(target), str(steps)], check=False
        )
        held = {name: (target / name).read_text() for name in visible(target)}
        complete = dict.fromkeys(("a.csv", "b.csv", "report.html", "audit.json"), "new")
        untouched = dict.fromkeys(("a.csv", "c.csv", "report.html", "audit.json"), "old")
        if existing:
            finish(target)
            now = {name: (target / name).read_text() for name in visible(target)}
            assert now in (complete, untouched)
            outcomes.append(now == complete)
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
    assert outcomes == sorted(outcomes)  # once the new files have won, they stay
    assert len(set(outcomes)) == 2 * existing
