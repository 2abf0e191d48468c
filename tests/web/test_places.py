"""What is found at a path, and what an audit says it was made of."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.data import Data
from fairweight.studies.publication import write_experiment
from fairweight.tables.spec import SourceRef, TableSpec, sources_of
from fairweight.web.items import find_items, requested

from .published import EXPERIMENT


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit_folder(folder: Path, command: str | None = None, tables: TableSpec | None = None) -> Path:
    """By its request, or as version 0.1.0 wrote it: by its command alone."""
    folder.mkdir(parents=True)
    notes = ['about "provenance": {"command": "fairweight audit stolen.csv"}']
    held = {"schema": 1, "notes": notes, "provenance": {"command": command}, "results": [1] * 99}
    if tables is not None:
        held |= {"schema": 2, "request": {"tables": tables.to_json()}}
    (folder / "audit.json").write_text(json.dumps(held))
    (folder / "report.html").write_text("<p>")
    return folder


def table(path: Path, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = pd.DataFrame({"example_id": [1], "label": [1], **columns})
    made.to_csv(path, index=False) if path.suffix == ".csv" else made.to_parquet(path)
    return path


def published(folder: Path) -> Path:
    for variant in ("dense", "small"):
        table(folder / "predictions" / variant / "0.parquet", prediction=[1])
    table(folder / "variants.parquet", variant=["dense"], dataset=["mnist"])
    audit_folder(folder / "audit")
    return folder


def test_a_demo(at: Path) -> None:
    demo = at / "My demo"
    for name in ("predictions", "examples", "variants"):
        table(demo / f"{name}.parquet")
    command = "fairweight audit old/predictions.parquet --examples old/examples.parquet"
    command += " --variants old/variants.parquet --baseline big"  # before the folder was renamed
    audit_folder(demo / "audit", command)
    for path in (demo, demo / "audit", demo / "audit/audit.json", demo / "audit/report.html"):
        (item,) = find_items(path)
        assert (item.title, item.folder) == ("My demo", demo)
        assert item.audit_json == demo / "audit/audit.json"
        assert item.report == demo / "audit/report.html"
        assert item.tables == TableSpec(
            sources_of(str(demo / "predictions.parquet")),
            baseline="big",
            examples=SourceRef(str(demo / "examples.parquet")),
            variants=SourceRef(str(demo / "variants.parquet")),
        )
        assert item.key == "my-demo"


def test_a_published_study_knows_its_data(at: Path) -> None:
    write_experiment("faces", EXPERIMENT, published(at / "results/faces/celeba"))
    published(at / "results/faces/older")
    (at / "results/faces/classes/tables").mkdir(parents=True)
    new, old = find_items(at / "results", data=at)
    assert (new.key, new.title) == ("faces-celeba", "blond (faces)")
    assert new.tables == TableSpec(
        sources_of(str(at / "results/faces/celeba/predictions/*/*.parquet")),
        baseline="dense",
        variants=SourceRef(str(at / "results/faces/celeba/variants.parquet")),
        groups=["Male"],
        cluster="identity",
        positive="1",
    )
    assert (new.dataset, new.data) == (EXPERIMENT.data, at)
    assert (old.key, old.title, old.dataset) == ("faces-older", "older", Data(name="mnist"))
    named = find_items(at / "results/faces/older", dataset="cifar10", options={"size": 8})
    assert named[0].dataset == Data(name="cifar10", options={"size": 8})
    assert named[0].key == "older"


@pytest.mark.parametrize("old", [True, False], ids=["command", "request"])
def test_an_audit_finds_the_tables_that_it_was_made_of(old: bool, at: Path) -> None:
    table(at / "runs/preds.csv")
    table(at / "people.csv")
    table(at / "runs/variants.csv")  # of something else: the request names none
    words = ["preds.csv", "--examples", "../people.csv", "--groups", "a,b", "--weight", "w"]
    asked = TableSpec.from_words(words)
    if old:
        audit_folder(at / "runs/out", shlex.join(["fairweight", "audit", *words, "--quiet"]))
    else:
        audit_folder(at / "runs/out", tables=asked)
    (item,) = find_items("runs/out")
    assert item.tables == TableSpec(
        sources_of(str(at / "runs/preds.csv")),
        examples=SourceRef(str(at / "people.csv")),  # not below the audit, but where we are
        groups=["a", "b"],
        weight="w",
    )


@pytest.mark.parametrize("name", ["/etc/passwd", "../../secret.csv", "gone.csv"])
def test_files_of_others_are_not_taken(
    name: str, at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends an audit decides about the names in it."""
    table(at / "secret.csv")
    inner = at / "a/b"
    inner.mkdir(parents=True)
    audit_folder(inner / "audit", f"fairweight audit {name}")
    monkeypatch.chdir(inner)
    (item,) = find_items("audit")
    assert item.audit_json is not None
    assert item.tables is None


def test_a_table_alone(at: Path) -> None:
    (item,) = find_items(table(at / "preds.csv"))
    assert (item.key, item.title, item.audit_json) == ("preds-csv", "preds.csv", None)
    assert item.tables == TableSpec(sources_of(str(at / "preds.csv")))
    shutil.copytree(published(at / "one"), at / "two")
    assert [item.key for item in find_items(at)] == ["one", "two"]


def test_a_folder_of_tables_is_one_table(at: Path) -> None:
    table(at / "parts/a.parquet")
    assert find_items(at / "parts")[0].tables == TableSpec(sources_of(str(at / "parts")))


def test_keys_differ(at: Path) -> None:
    for name in ("a b", "a-b", "A_b", "…"):
        audit_folder(at / name)
    keys = [item.key for item in find_items(at)]
    assert sorted(keys) == ["a-b", "a-b-2", "a-b-3", "item"]


def test_what_is_not_there_is_told(at: Path) -> None:
    (at / "empty").mkdir()
    with pytest.raises(InputError, match="holds no audit"):
        find_items(at / "empty")
    with pytest.raises(InputError, match="does not exist"):
        find_items(at / "nowhere")
    with pytest.raises(UnknownNameError, match="Data set 'minst'"):
        find_items(table(at / "p.csv"), dataset="minst")


def test_only_the_provenance_itself_is_read(at: Path) -> None:
    folder = audit_folder(at / "audit", "fairweight audit a.csv")
    assert requested(folder / "audit.json") == TableSpec(sources_of("a.csv"))
    (folder / "audit.json").write_text("{")
    assert requested(folder / "audit.json") is None
