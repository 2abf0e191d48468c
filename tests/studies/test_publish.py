"""Publishing replaces what was published, and nothing of anybody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairweight.base.files import MANIFEST
from fairweight.errors import OutputError
from fairweight.runs.store import Store
from fairweight.studies import publication as module
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation

NEW = {"audit/audit.json": "{}", "audit/report.html": "new", "predictions/a/0.parquet": "p"}


def published(folder: Path, files: dict[str, str], **options: bool) -> list[str]:
    """Publish a folder with these files; what was said."""
    said: list[str] = []

    def make(place: Path) -> None:
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)

    overwrite = options.get("overwrite", False)
    module.publish_folder(folder, make, overwrite=overwrite, tell=said.append)
    return said


def contents(folder: Path) -> dict[str, str]:
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: p.read_text() for name, p in sorted(found.items()) if name != MANIFEST}


def test_notes_of_people_stay_and_stale_files_go(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    assert published(folder, {**NEW, "audit/old.csv": "stale"}) == []
    (folder / "notes.txt").write_text("mine")
    (folder / "audit" / "figure.png").write_text("mine too")
    assert published(folder, {**NEW, "audit/report.html": "newer"}) == []
    mine = {"notes.txt": "mine", "audit/figure.png": "mine too"}
    assert contents(folder) == {**NEW, **mine, "audit/report.html": "newer"}


def test_a_changed_file_is_kept_unless_it_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    published(folder, NEW)
    (folder / "audit" / "report.html").write_text("annotated by hand")
    with pytest.raises(OutputError, match=r"report\.html' was changed since fairweight wrote it"):
        published(folder, {**NEW, "audit/report.html": "newer"})
    assert contents(folder) == {**NEW, "audit/report.html": "annotated by hand"}
    published(folder, {**NEW, "audit/report.html": "newer"}, overwrite=True)
    assert contents(folder) == {**NEW, "audit/report.html": "newer"}


def test_results_of_the_first_version_are_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    old = {**NEW, "audit/report.html": "old", "notes.txt": "mine"}
    for number in ("", "-2"):
        for name, text in old.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        aside = tmp_path / f"digits.earlier{number}"
        (said,) = published(folder, NEW)
        assert said == f"'{folder}' was published by an earlier version; it is '{aside}' now."
        assert contents(aside) == old
        assert contents(folder) == NEW
        (folder / MANIFEST).unlink()


def test_results_of_the_first_version_that_are_the_same_stay(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    published(folder, NEW)
    (folder / MANIFEST).unlink()
    (folder / "notes.txt").write_text("mine")
    assert published(folder, NEW) == []
    assert contents(folder) == {**NEW, "notes.txt": "mine"}
    assert set(json.loads((folder / MANIFEST).read_text())["files"]) == set(NEW)


@pytest.mark.parametrize("inside", [".", "audit"])
def test_annotations_of_the_first_version_move_beside(tmp_path: Path, inside: str) -> None:
    folder = tmp_path / "digits"
    published(folder, NEW)
    with AnnotationStore(folder / inside / "annotations.sqlite") as store:
        store.add(Annotation("7", "fine", note="kept"), "digits")
    (said,) = published(folder, {"audit/report.html": "newer"})
    assert "was moved to" in said
    assert contents(folder) == {"audit/report.html": "newer"}
    with AnnotationStore(tmp_path / "digits.annotations.sqlite", read_only=True) as store:
        assert [row.note for row in store.current("digits")] == ["kept"]


def test_annotations_in_use_stay_where_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "digits"
    published(folder, NEW)
    with AnnotationStore(folder / "annotations.sqlite") as store:
        store.add(Annotation("7", "fine"), "digits")
        (said,) = published(folder, {**NEW, "audit/report.html": "newer"})
        assert "close other viewers" in said
        store.add(Annotation("8", "fine"), "digits")
        assert len(store.current("digits")) == 2
    assert len(published(folder, NEW)) == 1
    with AnnotationStore(tmp_path / "digits.annotations.sqlite", read_only=True) as store:
        assert len(store.current("digits")) == 2


def test_one_folder_that_is_refused_keeps_no_other_back(tmp_path: Path) -> None:
    class Plan:
        experiments: dict[str, object] = {}  # noqa: RUF012
        classes, settings = "c" * 64, "s" * 64

    class Done(Store):
        def done(self) -> set[str]:
            return {Plan.classes, Plan.settings}

    store = Done(tmp_path / "store")
    for key in store.done():
        store.folder(key).mkdir(parents=True)
        (store.folder(key) / "table.csv").write_text("1")
        (store.folder(key) / "stage.json").write_text("{}")
    out = tmp_path / "results"
    module.publish(Plan(), store, out)
    (out / "classes" / "table.csv").write_text("by hand")
    (store.folder(Plan.settings) / "table.csv").write_text("2")
    with pytest.raises(OutputError, match=r"classes/table\.csv' was changed"):
        module.publish(Plan(), store, out)
    assert (out / "settings" / "table.csv").read_text() == "2"
    assert (out / "classes" / "table.csv").read_text() == "by hand"
    assert not (out / "settings" / "stage.json").exists()
