"""Outputs appear whole or not at all: full disks, locked folders, killed and interrupted runs."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import fairweight as fw
from fairweight import cli
from fairweight.base import files

from .conftest import FEW, PROGRAM, Run, document, wide_frame

pytestmark = pytest.mark.usefixtures("few_metrics")


def hears_ctrl_c() -> None:
    """A shell starts what runs in its background deaf to Ctrl-C, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def below(folder: str | Path) -> set[str]:
    root = Path(folder)
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def preds(folder: Path) -> str:
    wide_frame().to_csv("preds.csv", index=False)
    return "preds.csv"


@pytest.fixture(scope="module")
def held() -> fw.Audit:
    """The audit of those predictions, for tests that are only about how it is written."""
    return fw.audit_table(wide_frame(), n_boot=40)


@pytest.fixture(scope="module")
def held_file(held: fw.Audit, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same for another process."""
    path = tmp_path_factory.mktemp("held") / "audit.json"
    path.write_text(held.to_json(), encoding="utf-8")
    return str(path)


@pytest.fixture
def no_audit(monkeypatch: pytest.MonkeyPatch, held: fw.Audit) -> None:
    """Take the audit that is held instead of making one more."""
    monkeypatch.setattr("fairweight.api.audit_table", lambda *_, **__: held)


# --- places that cannot be written ---------------------------------------------------------------


@pytest.mark.parametrize("out", ["taken", "taken/deeper/down"])
def test_a_file_in_the_place_of_the_folder(run: Run, preds: str, out: str) -> None:
    Path("taken").write_text("mine")
    for command in (["audit", preds, *FEW], ["demo"]):
        sentence = run(*command, "--out", out).refused()
        assert "'taken' is a file" in sentence
        assert "--out" in sentence
    assert Path("taken").read_text() == "mine"
    assert "is a file" in run("count", preds, "--out", "taken/cube.parquet").refused()


def test_a_folder_in_the_place_of_the_cube(run: Run, preds: str) -> None:
    Path("cubes").mkdir()
    sentence = run("count", preds, "--out", "cubes").refused()
    assert "'cubes' is a folder" in sentence
    assert below("cubes") == set()


def test_a_pipe_is_not_replaced_by_a_file(run: Run, preds: str) -> None:
    """Nor would be a device: `--out /dev/null`, as root, must leave the system whole."""
    os.mkfifo("pipe")
    assert "'pipe'" in run("count", preds, "--out", "pipe").refused()
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "permission denied"),
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "no space left"),
    ],
)
@pytest.mark.usefixtures("no_page", "no_audit")
def test_what_the_system_refuses_while_moving_into_place(
    run: Run, preds: str, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    class Os:
        def __getattr__(self, name: str) -> Any:
            return refuse if name in ("rename", "replace") else getattr(os, name)

    monkeypatch.setattr(files, "os", Os())
    sentence = run("audit", preds, *FEW, "--out", "out").refused()
    assert "'out'" in sentence
    assert words in sentence
    assert "another place" in sentence
    assert below(".") == {"preds.csv"}
    sentence = run("count", preds, "--out", "cube.parquet").refused()
    assert words in sentence
    assert below(".") == {"preds.csv"}


def test_a_folder_that_cannot_be_written_is_told_before_the_work(
    run: Run, preds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    def work(*_: Any, **__: Any) -> None:
        raise AssertionError("the audit was begun")

    monkeypatch.setattr("fairweight.base.files.tempfile.TemporaryFile", locked)
    monkeypatch.setattr("fairweight.api.audit_table", work)
    sentence = run("audit", preds, *FEW, "--out", "out").refused()
    assert "'out'" in sentence
    assert "permission denied" in sentence


# --- no space ------------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(folder: Path) -> Iterator[Path]:
    """A disk of 256 KB: room for a cube, not for a report."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk can be mounted by root only")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(run: Run, preds: str, tiny_disk: Path) -> None:
    sentence = run("audit", preds, *FEW, "--out", "disk/out").refused()
    assert "no space left" in sentence
    assert "'disk/out'" in sentence
    assert below(tiny_disk) == set()


@pytest.mark.usefixtures("no_audit")
def test_a_full_disk_keeps_the_earlier_report(run: Run, preds: str, tiny_disk: Path) -> None:
    earlier = {"report.html": "earlier", "audit.json": "{}", "tables/results.csv": "a,b\n"}
    for name, text in earlier.items():
        (tiny_disk / name).parent.mkdir(exist_ok=True)
        (tiny_disk / name).write_text(text)
    words = ("audit", preds, *FEW, "--out", "disk")
    assert "disk/report.html' exists, and fairweight did not write it" in run(*words).refused()
    assert "no space left" in run(*words, "--overwrite").refused()
    assert {name: (tiny_disk / name).read_text() for name in below(tiny_disk)} == earlier


@pytest.mark.usefixtures("no_page", "no_audit")
def test_a_full_disk_while_the_tables_are_written(run: Run, preds: str, tiny_disk: Path) -> None:
    """Tables are written by DuckDB, which reports a full disk in its own way."""
    (tiny_disk / "filler").write_bytes(bytes(150_000))
    sentence = run("audit", preds, *FEW, "--out", "disk/out").refused()
    assert "no space left" in sentence
    assert "'disk/out'" in sentence  # and not the hidden folder beside it
    assert below(tiny_disk) == {"filler"}


def test_a_full_disk_and_a_cube(run: Run, preds: str, tiny_disk: Path) -> None:
    with Path("disk/filler").open("wb", 0) as filler, suppress(OSError):  # until nothing fits
        while True:
            filler.write(bytes(4096))
    assert "no space left" in run("count", preds, "--out", "disk/cube.parquet").refused()
    assert below(tiny_disk) == {"filler"}


@pytest.mark.usefixtures("no_audit")
def test_no_space_without_a_disk_to_fill(
    run: Run, preds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fairweight.report.html.render", full)
    assert "no space left" in run("audit", preds, *FEW, "--out", "out").refused()
    assert below(".") == {"preds.csv"}


# --- killed, interrupted, broken -----------------------------------------------------------------

# Runs the command line and stops for good at the `at`-th renaming of a file into its place.
STOPS = """
import os, sys, time
from pathlib import Path
from fairweight import api, cli
from fairweight.auditing import archive
from fairweight.report import html
from fairweight.base import files
at, calls, held = int(sys.argv[1]), 0, Path(sys.argv[2])
# Auditing and drawing take longest and move nothing.
api.audit_table = lambda *_, **__: api.Audit(archive.from_json(held.read_text()))
html.render = lambda *_: "<!doctype html>"
def stop_at(rename):
    def called(*arguments):
        global calls
        calls += 1
        if calls == at and any(word in str(arguments[0]) for word in (".tmp", files.PENDING)):
            print("stopped", flush=True)
            time.sleep(600)
        return rename(*arguments)
    return called
class Os:
    def __getattr__(self, name):
        return getattr(os, name)
    replace = staticmethod(stop_at(os.replace))
    rename = staticmethod(stop_at(os.rename))
files.os = Os()
sys.argv = ["fairweight", *sys.argv[3:]]
sys.exit(cli.run(sys.argv[1:]))
"""


Stopped = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def stopped(held_file: str) -> Stopped:
    """A run that has come to its `at`-th renaming and waits there."""

    def called(at: int, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", STOPS, str(at), held_file, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=hears_ctrl_c,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n", process.communicate()[1]
        return process

    return called


def end(process: subprocess.Popen[str], how: signal.Signals) -> tuple[int, str]:
    process.send_signal(how)
    _, told = process.communicate(timeout=60)
    return process.returncode, told


def test_a_killed_run_leaves_no_new_folder(preds: str, stopped: Stopped) -> None:
    end(stopped(1, "audit", preds, *FEW, "--out", "out"), signal.SIGKILL)
    assert not Path("out").exists()
    assert all(name.startswith(".") for name in below(".") - {preds})


@pytest.mark.parametrize(
    "at", [2, 3, 16, *(pytest.param(at, marks=pytest.mark.slow) for at in (1, 10, 15))]
)
def test_a_killed_run_leaves_no_report_that_looks_finished(
    preds: str, stopped: Stopped, at: int
) -> None:
    """Files of others are listed first, because `--overwrite` says so. All files are made ready by
    one renaming; 11 tables and the manifest are moved then, the report after them, and audit.json
    last. Whoever opens the folder later moves the rest.
    """
    Path("out").mkdir()
    for name in ("report.html", "audit.json"):
        Path("out", name).write_text("earlier")
    end(stopped(at, "audit", preds, *FEW, "--out", "out", "--overwrite"), signal.SIGKILL)
    assert Path("out/audit.json").exists() == (at <= 2)
    assert Path("out/report.html").exists() == (at in (1, 2, 16))
    files.finish("out")
    if at <= 2:
        assert Path("out/audit.json").read_text() == "earlier"
    else:
        assert document("out")["n_examples"] == 240
        assert Path("out/report.html").read_text() == "<!doctype html>"
        assert len([name for name in below("out") if not name.startswith(".")]) == 13


def test_a_run_after_a_killed_one_is_whole(
    run: Run, preds: str, stopped: Stopped, no_page: None
) -> None:
    Path("out").mkdir()
    end(stopped(5, "audit", preds, *FEW, "--out", "out"), signal.SIGKILL)
    run("audit", preds, *FEW, "--out", "out").done()
    assert document("out")["n_examples"] == 240
    visible = {name for name in below("out") if not name.startswith(".")}
    assert len(visible) == 14


def test_a_killed_count_leaves_no_cube(preds: str, stopped: Stopped) -> None:
    end(stopped(1, "count", preds, "--out", "cube.parquet"), signal.SIGKILL)
    assert not Path("cube.parquet").exists()


def test_an_interrupted_run_leaves_nothing(preds: str, stopped: Stopped) -> None:
    code, told = end(stopped(1, "audit", preds, *FEW, "--out", "out"), signal.SIGINT)
    assert code == cli.INTERRUPTED
    assert told == "fairweight: interrupted; nothing was left half-written.\n"
    assert below(".") == {preds}


def test_an_interrupted_query_is_not_bad_input(folder: Path) -> None:
    """DuckDB notices Ctrl-C by itself, in the middle of reading."""
    import duckdb

    duckdb.connect("big.duckdb").close()
    # A scan comes back to Python all the time; within a product of tables DuckDB hears nothing.
    endless = "SELECT sum(hash(range)) AS label FROM range(100000000000000)"
    process = subprocess.Popen(
        [PROGRAM, "audit", f"big.duckdb::{endless}", "--out", "out"],
        stderr=subprocess.PIPE,
        preexec_fn=hears_ctrl_c,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    # On a busy machine the first one may come while modules are still imported, and be lost there.
    for _ in range(15):
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=4)
            break
    code, told = end(process, signal.SIGINT)
    assert (code, told) == (130, "fairweight: interrupted; nothing was left half-written.\n")


def test_our_own_error(run: Run, preds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr("fairweight.api.audit_table", broken)
    outcome = run("audit", preds, "--out", "out")
    assert outcome.code == cli.OUR_ERROR
    assert len(outcome.err.splitlines()) == 1
    assert "ZeroDivisionError: a mistake of ours" in outcome.err
    assert "please report" in outcome.err
    assert not Path("out").exists()
    monkeypatch.setenv("FAIRWEIGHT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("audit", preds, "--out", "out")


@pytest.mark.usefixtures("no_page", "no_audit")
def test_files_of_others_in_the_folder_are_kept(run: Run, preds: str) -> None:
    Path("out").mkdir()
    Path("out/notes.txt").write_text("mine")
    run("audit", preds, *FEW, "--out", "out").done()
    first = below("out")
    assert {"notes.txt", "audit.json", "report.html", "tables/results.parquet"} <= first
    run("audit", preds, *FEW, "--out", "out").done()
    assert below("out") == first
    assert json.loads(Path("out/.fairweight-files.json").read_text())


def test_a_reader_that_goes_away(preds: str) -> None:
    """`fairweight metrics | head -1` ends quietly."""
    line = f"{PROGRAM} metrics --json | head -c 1"
    made = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert made.stdout == "["
    assert made.stderr == ""
