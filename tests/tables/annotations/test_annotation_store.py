"""The log of annotations: what is kept, undone, imported, and refused."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairweight.errors import InputError, OutputError
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation, read_csv, to_csv

AUDIT = "demo"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AnnotationStore]:
    with AnnotationStore(tmp_path / "annotations.sqlite") as opened:
        yield opened


def by(who: str, example: str, verdict: str = "fine", time: str = "") -> Annotation:
    return Annotation(example, verdict, annotator=who, time=time)


def verdicts(store: AnnotationStore) -> list[tuple[str, str, str]]:
    return [(row.annotator, row.example_id, row.verdict) for row in store.current(AUDIT)]


def test_the_latest_of_everybody_counts(store: AnnotationStore) -> None:
    assert store.add(by("ann", "1"), audit=AUDIT) == 1
    store.add(by("bo", "1", "ambiguous"), audit=AUDIT)
    store.add(by("ann", "1", "label_wrong"), audit=AUDIT)
    store.add(by("ann", "2", "skip"), audit="another")
    assert verdicts(store) == [("bo", "1", "ambiguous"), ("ann", "1", "label_wrong")]
    counts = store.counts(AUDIT)
    assert counts.n_examples == 1
    assert counts.by_verdict == {"ambiguous": 1, "label_wrong": 1}
    assert counts.by_annotator == {"ann": 1, "bo": 1}
    assert store.audits() == ["another", AUDIT]


def test_undo_brings_back_what_was_said_before(store: AnnotationStore) -> None:
    for example, verdict in (("1", "fine"), ("2", "skip"), ("1", "ambiguous")):
        store.add(by("ann", example, verdict), audit=AUDIT)
    store.add(by("bo", "9"), audit=AUDIT)
    taken = store.undo("ann", AUDIT)
    assert taken is not None
    assert (taken.example_id, taken.verdict) == ("1", "ambiguous")
    assert ("ann", "1", "fine") in verdicts(store)
    store.undo("ann", AUDIT)
    store.undo("ann", AUDIT)
    assert store.undo("ann", AUDIT) is None
    assert verdicts(store) == [("bo", "9", "fine")]


def test_nothing_leaves_the_log(store: AnnotationStore, tmp_path: Path) -> None:
    store.add(by("ann", "1"), audit=AUDIT)
    store.undo("ann", AUDIT)
    entries = store.log(AUDIT)
    assert [(entry.number, entry.undoes) for entry in entries] == [(1, None), (2, 1)]
    assert entries[1].annotation is None
    assert entries[0].annotation == by("ann", "1", time=entries[0].time)
    other = sqlite3.connect(tmp_path / "annotations.sqlite")
    for statement in ("DELETE FROM log", "UPDATE log SET verdict = 'skip'"):
        with pytest.raises(sqlite3.IntegrityError, match="only added to"):
            other.execute(statement)
    other.close()


def test_what_another_process_wrote_is_seen_at_once(store: AnnotationStore) -> None:
    store.add(by("ann", "1"), audit=AUDIT)
    assert len(store.current(AUDIT)) == 1
    with AnnotationStore(store.path) as other:
        other.add(by("bo", "2"), audit=AUDIT)
        other.undo("ann", AUDIT)
    assert verdicts(store) == [("bo", "2", "fine")]


def test_importing_twice_changes_nothing(store: AnnotationStore) -> None:
    hostile = Annotation(
        "../../1", "label_wrong", label="-1", note='\x00=cmd\r\n"', annotator="<b>", time=""
    )
    rows = [hostile, by("ann", "1", time="2026-03-01T09:00:00Z")]
    assert store.import_rows(read_csv(to_csv(rows)), AUDIT) == 2
    assert store.import_rows(read_csv(to_csv(rows)), AUDIT) == 0
    assert store.current(AUDIT) == rows
    assert read_csv(to_csv(store.current(AUDIT))) == rows


def test_an_older_file_does_not_replace_newer_verdicts(store: AnnotationStore) -> None:
    store.add(by("ann", "1", time="2026-03-01T09:00:00Z"), audit=AUDIT)
    older = by("ann", "1", "skip", time="2026-02-01T09:00:00Z")
    newer = by("ann", "1", "ambiguous", time="2026-04-01T09:00:00Z")
    assert store.import_rows([older], AUDIT) == 0
    assert store.import_rows([newer, older], AUDIT) == 1
    assert store.current(AUDIT) == [newer]


def test_what_was_undone_can_be_imported_again(store: AnnotationStore) -> None:
    store.add(by("ann", "1"), audit=AUDIT)
    kept = store.current(AUDIT)
    store.undo("ann", AUDIT)
    assert store.import_rows(kept, AUDIT) == 1
    assert store.current(AUDIT) == kept


def test_a_failed_import_leaves_nothing(store: AnnotationStore) -> None:
    def rows() -> Iterator[Annotation]:
        yield by("ann", "1")
        raise InputError("row 2 is damaged.")

    with pytest.raises(InputError):
        store.import_rows(rows(), AUDIT)
    assert store.log(AUDIT) == []
    assert store.add(by("ann", "1"), audit=AUDIT) == 1


def test_threads_lose_nothing(store: AnnotationStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        added = [pool.submit(store.add, by(f"p{i % 4}", str(i)), audit=AUDIT) for i in range(80)]
        numbers = [one.result() for one in added]
    assert sorted(numbers) == list(range(1, 81))
    assert {row.example_id for row in store.current(AUDIT)} == {str(i) for i in range(80)}


def test_a_file_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE people (name TEXT)")
    theirs.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="is a database of something else"):
        AnnotationStore(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_no_database_is_refused(tmp_path: Path, read_only: bool) -> None:
    (tmp_path / "notes.sqlite").write_text("example_id,verdict\n" * 100)
    with pytest.raises(InputError, match="is no database of annotations"):
        AnnotationStore(tmp_path / "notes.sqlite", read_only=read_only)
    with pytest.raises(InputError, match="cannot be opened"):
        AnnotationStore(tmp_path)
    with pytest.raises(InputError, match="do not exist"):
        AnnotationStore(tmp_path / "none.sqlite", read_only=True)


def test_reading_only_writes_nothing(store: AnnotationStore) -> None:
    store.add(by("ann", "1"), audit=AUDIT)
    with AnnotationStore(store.path, read_only=True) as reader:
        assert len(reader.current(AUDIT)) == 1
        with pytest.raises(OutputError, match=r"was not saved in .*readonly"):
            reader.add(by("ann", "2"), audit=AUDIT)
    assert len(store.log(AUDIT)) == 1


def test_a_key_that_cannot_be_kept_is_refused(store: AnnotationStore) -> None:
    with pytest.raises(InputError, match=r"'audit' .* lone surrogate"):
        store.add(by("ann", "1"), audit="\ud800")
