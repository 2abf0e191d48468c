"""Killed at every kind of moment: what is there afterwards is the old or the new, and whole.

Each campaign runs a command once to count what it does to files, then kills it at points that are
spread over that list, most of them in the window in which results are published. The points go to
`kills-NAME.log` in the folder of the test.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest
from tests.web.studies import rows

from fairweight import cli
from fairweight.base.files import MANIFEST, PENDING, finish, manifest
from fairweight.runs.store import Store
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation
from fairweight.web.items import find_items
from fairweight.web.votes.builder import indexed

from .killer import Done, Killer, Order, killer, read_log

KILLED = -signal.SIGKILL


def run_here(order: Order) -> None:
    """The command of an order in this process: Python is started for what is killed alone."""
    with pytest.MonkeyPatch.context() as patch, Path(order.output).open("w") as said:
        for name, given in (order.environment or {}).items():
            patch.setenv(name, given)
        with redirect_stdout(said), redirect_stderr(said):
            code = cli.run(order.arguments)
    assert code == cli.DONE, Path(order.output).read_text()


# --- campaigns -----------------------------------------------------------------------------------


@dataclass
class Campaign:
    """Kills of one command over a folder that is as before each time."""

    name: str
    room: Path
    order: Order
    check: Callable[[], None]
    results: Path
    kills: int
    inside: float  # share of the kills that fall into the window of publishing
    points: list[Done] = field(default_factory=list)
    n_published: int = 0

    def run(self) -> None:
        folder, pristine = Path(self.order.folder), self.room / "pristine"
        shutil.copytree(folder, pristine, symlinks=True)
        modules, counted = self.room / "modules", self.room / "counted"
        with killer() as first:
            made = first.run(replace(self.order, modules=str(modules), log=str(counted)))
            assert made == 0, Path(self.order.output).read_text()
        self.check()
        listed = read_log(counted)
        places = spread(listed, round(self.inside * self.kills), self.kills)
        with killer(modules.read_text()) as process:
            for number, at in enumerate(places):
                shutil.rmtree(folder)
                shutil.copytree(pristine, folder, symlinks=True)
                self._one(process, number, at)
        points = [f"{p.number}/{len(listed)} {p.what} {p.path}" for p in self.points]
        (self.room / f"kills-{self.name}.log").write_text("\n".join(points) + "\n")
        print(f"\n{self.name}: {len(points)} kills, {self.n_published} while publishing")
        assert len(points) == self.kills
        assert self.n_published >= 0.9 * self.inside * self.kills

    def _one(self, process: Killer, number: int, at: int) -> None:
        log = self.room / f"log-{number}"
        code = process.run(replace(self.order, at=at, log=str(log)))
        assert code == KILLED, (at, code, Path(self.order.output).read_text())
        (point,) = read_log(log)
        self.points.append(point)
        self.n_published += PENDING in point.path or (self.results / PENDING).exists()
        try:
            self.check()
            if number % 10 == 0:  # and the same command finishes what was begun
                again = process.run(replace(self.order, log=str(self.room / f"again-{number}")))
                assert again == 0, Path(self.order.output).read_text()
                self.check()
                assert not leftovers(Path(self.order.folder))
        except AssertionError as error:
            raise AssertionError(f"killed before {point}: {error}") from error


def spread(listed: list[Done], n_inside: int, kills: int) -> list[int]:
    """Kills in the window in which complete results are moved, the others outside it."""
    moving = [done.number for done in listed if PENDING in done.path]
    window = range(moving[0], moving[-1] + 1)
    outside = [done.number for done in listed if done.number not in window]
    draw = random.Random(0)
    chosen = []
    for numbers, n in ((list(window), n_inside), (outside, kills - n_inside)):
        whole, rest = divmod(n, len(numbers))
        chosen += numbers * whole + sorted(draw.sample(numbers, rest))
    return chosen


def contents(folder: Path) -> dict[str, str]:
    """What people see in a folder, by checksum; nothing that is hidden."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not re.search(r"(^|/)\.", name := path.relative_to(folder).as_posix())
    }


def leftovers(folder: Path) -> list[str]:
    """Hidden files and temporary folders that nobody will look for."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return [
        name
        for name in names
        if re.search(r"(^|/)\.|fairweight-spill", name) and not name.endswith(MANIFEST)
    ]


def check_results(folder: Path, old: dict[str, str], others: dict[str, str]) -> None:
    """Old or new results, whole: every file is as the manifest says, and nothing else is there."""
    before = {name: known for name, known in contents(folder).items() if name not in others}
    pending = folder / PENDING
    new = manifest(pending) if pending.is_dir() and (pending / MANIFEST).is_file() else {}
    listed = manifest(folder)
    for name, known in before.items():  # no half file, at any moment
        assert known in (old.get(name), new.get(name), listed.get(name)), f"{name} is half"
    finish(folder)
    after = contents(folder)
    assert {name: after.pop(name, None) for name in others} == others, "a file of others is lost"
    assert after == manifest(folder), "not what the manifest says"
    assert after, "nothing is left"


# --- audit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.slow)])
def test_audit(tmp_path: Path, kills: int) -> None:
    folder, tables = tmp_path / "work", tmp_path / "tables"
    for place in (folder / "tmp", tables):
        place.mkdir(parents=True)
    rows(60).to_parquet(tables / "old.parquet")
    rows(90).to_parquet(tables / "new.parquet")
    out = folder / "out"
    order = Order(
        ["audit", str(tables / "old.parquet"), "--out", str(out), "--n-boot", "20"],
        folder=str(folder), log=str(tmp_path / "first"), output=str(tmp_path / "said"),
        environment={"TMPDIR": str(folder / "tmp")},
    )  # fmt: skip
    run_here(order)
    (out / "notes.txt").write_text("mine")
    (out / "tables" / "mine.csv").write_text("1,2")
    old = contents(out)
    others = {name: old.pop(name) for name in ("notes.txt", "tables/mine.csv")}
    order = replace(order, arguments=[w.replace("old.p", "new.p") for w in order.arguments])
    check = lambda: check_results(out, old, others)  # noqa: E731
    Campaign("audit", tmp_path, order, check, out, kills, inside=0.5).run()


# --- study run -----------------------------------------------------------------------------------

STUDY = """
name = "tiny"
[[experiment]]
name = "digits"
members = 2
data = {{name = "digits"}}
model = {{architecture = "lenet", width = 0.5}}
training = {{epochs = 1, batch_size = 256, optimizer = "adam", lr = 0.003}}
scores = false
n_boot = {n_boot}
  [[experiment.copies]]
  method = "global-magnitude"
  name = "pruned"
  fields = {{sparsity = 0.5}}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that was run, and a second study of which the audit differs."""
    pytest.importorskip("torch")
    room = tmp_path_factory.mktemp("study")
    folder = room / "work"
    (folder / "tmp").mkdir(parents=True)
    for name, n_boot in (("old", 20), ("new", 21)):
        (room / f"{name}.toml").write_text(STUDY.format(n_boot=n_boot))
    run_here(study_order(room, "old"))
    return room


def study_order(room: Path, which: str) -> Order:
    folder = room / "work"
    words = ["study", "run", str(room / f"{which}.toml"), "--store", str(folder / "runs")]
    return Order(
        [*words, "--workers", "0"],
        folder=str(folder), log=str(room / "first"), output=str(room / "said"),
        environment={"TMPDIR": str(folder / "tmp")},
    )  # fmt: skip


def with_notes(finished: Path, room: Path) -> Path:
    """A copy of the finished study in which people left notes and annotations."""
    shutil.copytree(finished / "work", room / "work")
    for name in ("old.toml", "new.toml"):
        shutil.copy(finished / name, room / name)
    folder = room / "work" / "runs" / "results" / "tiny" / "digits"
    (folder / "notes.txt").write_text("mine")
    with AnnotationStore(folder.with_name("digits.annotations.sqlite")) as store:
        store.add(Annotation("7", "fine", note="kept"), "digits")
    return folder


def check_study(folder: Path, old: dict[str, str], others: dict[str, str]) -> None:
    check_results(folder, old, others)
    with AnnotationStore(folder.with_name("digits.annotations.sqlite"), read_only=True) as store:
        assert [row.note for row in store.current("digits")] == ["kept"]
    stages = Store(folder.parents[2])
    for key in stages.done():
        stages.read(key)  # checksums


def test_publishing_again_keeps_notes_and_annotations(finished: Path, tmp_path: Path) -> None:
    """What was deleted: annotations and notes inside results, while the viewer said 'saved'."""
    folder = with_notes(finished, tmp_path)
    folder.with_name("digits.annotations.sqlite").unlink()
    with AnnotationStore(folder / "annotations.sqlite") as store:  # of the first version
        store.add(Annotation("7", "fine", note="kept"), "digits")
    old = contents(folder)
    del old["annotations.sqlite"]
    run_here(study_order(tmp_path, "new"))
    assert "annotations.sqlite' was moved to" in " ".join((tmp_path / "said").read_text().split())
    check_study(folder, old, {"notes.txt": old["notes.txt"]})
    assert {name for name, known in contents(folder).items() if old[name] != known} >= {
        "audit/audit.json"
    }


@pytest.mark.slow
def test_study_run_while_it_makes_stages(finished: Path, tmp_path: Path) -> None:
    folder, check = study_check(finished, tmp_path)
    order = study_order(tmp_path, "new")
    Campaign("stages", tmp_path, order, check, folder, 40, inside=0.0).run()


@pytest.mark.slow  # `test_audit` kills the same publishing, and annotations have a test above
def test_study_run_while_it_publishes(finished: Path, tmp_path: Path) -> None:
    folder, check = study_check(finished, tmp_path)
    order = study_order(tmp_path, "new")
    results = folder.parents[1]
    shutil.copytree(results, tmp_path / "results")
    run_here(order)
    shutil.rmtree(results)  # all stages are made, and what was published before is there
    shutil.copytree(tmp_path / "results", results)
    Campaign("publishing", tmp_path, order, check, folder, 60, inside=0.8).run()


def study_check(finished: Path, room: Path) -> tuple[Path, Callable[[], None]]:
    folder = with_notes(finished, room)
    old = contents(folder)
    others = {"notes.txt": old.pop("notes.txt")}
    return folder, lambda: check_study(folder, old, others)


# --- view while annotating -----------------------------------------------------------------------

SERVER = """
fairweight.cli.app fairweight.cli.view fairweight.web.application fairweight.web.votes.builder
fairweight.web.votes.index fairweight.web.security fairweight.report.html uvicorn
pyarrow.feather
"""


@pytest.mark.slow  # one kill: web/test_server_killed.py
def test_view_while_annotating(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = 100
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "work"
    folder.mkdir()
    table, file = folder / "answers.parquet", folder / "annotations.sqlite"
    rows().to_parquet(table)
    (item,) = find_items(table)
    indexed(item)
    order = Order(
        ["view", str(table), "--no-token", "--port", "0", "--no-browser"],
        folder=str(folder), log=str(tmp_path / "log"), output=str(tmp_path / "said"),
    )  # fmt: skip
    draw = random.Random(1)
    acknowledged: list[str] = []
    points: list[Done] = []
    with killer(SERVER) as process:
        for number in range(kills):
            # The first statements make the file; each verdict is three of them.
            at = number + 1 if number < kills // 5 else draw.randrange(8, 60)
            delay = draw.choice([0.0, draw.uniform(0, 0.004)])
            log = tmp_path / f"log-{number}"
            given = replace(order, at=at, delay=delay, log=str(log))
            (tmp_path / "said").unlink(missing_ok=True)
            server = process.begin(given)
            try:
                acknowledged += annotate(tmp_path / "said", item.key, f"r{number}")
            except BaseException:
                os.kill(server, signal.SIGKILL)
                raise
            assert process.end() == KILLED, (tmp_path / "said").read_text()
            (point,) = read_log(log)
            points.append(replace(point, what=f"{point.what} + {1000 * delay:.2f} ms"))
            check_annotations(file, item.key, acknowledged, number + 1)
    shown = [f"{point.number} {point.what} {point.path}" for point in points]
    (tmp_path / "kills-view.log").write_text("\n".join(shown) + "\n")
    n_published = sum(point.what.startswith("sqlite") for point in points)
    print(f"\nview: {kills} kills, {n_published} within a transaction, {len(acknowledged)} saved")
    assert n_published >= 0.3 * kills


def annotate(said: Path, key: str, who: str) -> list[str]:
    """One verdict after the other until the server is gone; those it said were saved."""
    saved: list[str] = []
    until = time.monotonic() + 300
    while True:
        printed = said.read_text() if said.exists() else ""
        if (found := re.search(r"http://127\.0\.0\.1:(\d+)/", printed)) is not None:
            break
        assert time.monotonic() < until
        time.sleep(0.02)
    port = int(found[1])
    held = HTTPConnection("127.0.0.1", port, timeout=300)
    with closing(held), suppress(ConnectionError, HTTPException):
        held.request("GET", "/session.json")
        headers = {
            "Origin": f"http://127.0.0.1:{port}",
            "X-CSRF-Token": json.load(held.getresponse())["csrf"],
            "Content-Type": "application/json",
        }
        for number in range(1000):
            note = f"{who}-{number}"
            verdict = {"example_id": "id-003", "verdict": "ambiguous", "annotator": who}
            body = json.dumps({**verdict, "note": note})
            held.request("POST", f"/audit/{key}/annotate", body, headers)
            answer = held.getresponse()
            told = answer.read()
            assert answer.status == 200, told
            saved.append(note)
    return saved


def check_annotations(file: Path, key: str, acknowledged: list[str], rounds: int) -> None:
    if not acknowledged and not file.exists():
        return
    with AnnotationStore(file) as store:
        notes = [entry.annotation.note for entry in store.log(key) if entry.annotation]
    assert len(set(notes)) == len(notes)
    assert set(acknowledged) <= set(notes), "a saved verdict is lost"
    assert len(notes) - len(acknowledged) <= rounds  # one of each server was on its way
    with closing(sqlite3.connect(file)) as held:
        assert held.execute("PRAGMA integrity_check").fetchone() == ("ok",)
