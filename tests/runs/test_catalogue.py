"""The table of all stages says what their manifests say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fairweight.errors import InputError
from fairweight.runs import store_layout
from fairweight.runs.catalogue import COLUMNS, catalogue, export
from fairweight.runs.stage import Stage, key_of
from fairweight.runs.store import Store


def made(store: Store, kind: str, spec: dict[str, Any], *inputs: str, size: int = 10) -> str:
    stage = Stage(key_of(kind, spec, inputs), kind, "", spec, inputs, f"{kind} {len(inputs)}")

    def write(room: Path) -> None:
        (room / "a.b.bin").write_bytes(b"x" * size)
        (room / "note").write_bytes(b"12")

    store.write(stage, write)
    return stage.key


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s")


def study(store: Store) -> dict[str, str]:
    """A dense model, two rounds of pruning, its int8 copy, what they answer, and the audit."""
    base = {"data": {"name": "digits"}, "model": {"architecture": "lenet"}}
    dense = made(store, "train", {**base, "training": {"seed": 3}, "pruning": None})
    half = {"method": {"method": "global-l1", "sparsity": 0.5}, "finetune": {"seed": 3}}
    first = made(store, "compress", half, dense)
    second = made(store, "compress", half, first)
    int8 = made(store, "compress", {"method": {"method": "int8-static"}, "finetune": None}, second)
    asked = [
        made(store, "predict", {"variant": name}, key, size=1000)
        for name, key in (("dense", dense), ("int8", int8))
    ]
    audit = made(store, "audit", {"models": [["dense", 3, None]]}, *asked)
    return {"dense": dense, "second": second, "int8": int8, "asked": asked[1], "audit": audit}


def test_rows_say_what_was_made_of_what(store: Store) -> None:
    keys = study(store)
    frame = catalogue(store).set_index("key", drop=False)
    assert tuple(frame.columns) == COLUMNS
    assert set(frame.index) == store.done()
    shown = ["kind", "dataset", "model", "method", "sparsity", "variant", "seed", "size_bytes"]
    expected = {
        "dense": ["train", "digits", "lenet", None, None, None, 3, 12],
        "second": ["compress", "digits", "lenet", "global-l1", 0.5, None, 3, 12],
        "int8": ["compress", "digits", "lenet", "int8-static", 0.5, None, 3, 12],
        "asked": ["predict", "digits", "lenet", "int8-static", 0.5, "int8", 3, 1002],
        "audit": ["audit", None, None, None, None, None, None, 12],
    }
    for name, values in expected.items():
        row = frame.loc[keys[name]]
        assert [None if pd.isna(row[c]) else row[c] for c in shown] == values, name
    dense = frame.loc[keys["dense"]]
    manifest = store.manifest(keys["dense"])
    assert json.loads(dense["spec"]) == manifest.spec
    assert json.loads(dense["versions"]) == manifest.versions
    assert dense["seconds"] == manifest.seconds
    assert dense["finished"].isoformat() + "+00:00" == manifest.finished
    assert dense["label"] == "train 0"
    assert dense["inputs"] == ""
    assert frame.loc[keys["audit"], "inputs"].count(",") == 1


def test_an_empty_store_has_the_same_columns(store: Store) -> None:
    empty = catalogue(store)
    assert len(empty) == 0
    assert not store.root.exists()
    study(store)
    full = catalogue(store)
    assert list(empty.dtypes) == list(full.dtypes)


def test_only_new_stages_are_read_and_removed_ones_go(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(store)
    before = catalogue(store)
    read: list[str] = []
    manifest = store_layout.manifest

    def watched(root: Path, key: str) -> Any:
        read.append(key)
        return manifest(root, key)

    monkeypatch.setattr(store_layout, "manifest", watched)
    pd.testing.assert_frame_equal(catalogue(store), before)
    assert read == []
    new = made(store, "train", {"data": {"name": "mnist"}})
    read.clear()
    assert set(catalogue(store)["key"]) == {*before["key"], new}
    assert read == [new]
    store.remove([new])
    pd.testing.assert_frame_equal(catalogue(store), before)


def test_a_stage_done_again_is_read_again(store: Store) -> None:
    key = made(store, "train", {"a": 1}, size=10)
    assert list(catalogue(store)["size_bytes"]) == [12]
    store.remove([key])
    made(store, "train", {"a": 1}, size=20)
    assert list(catalogue(store)["size_bytes"]) == [22]


def test_the_kept_part_can_be_rebuilt(store: Store) -> None:
    study(store)
    before = catalogue(store)
    kept = store.root / store_layout.CATALOGUE
    changes = (
        kept.unlink,
        lambda: kept.write_bytes(kept.read_bytes()[:100]),
        lambda: pd.DataFrame({"key": ["a"], "stamp": [1]}).to_parquet(kept),
    )
    for change in changes:
        change()
        pd.testing.assert_frame_equal(catalogue(store), before)
        assert len(pd.read_parquet(kept)) == len(before)


def test_broken_manifests_are_left_out(store: Store) -> None:
    whole = made(store, "train", {"a": 0})
    for content in (b"", b"{", b"\xff\xfe", b"[]", b'{"key": "another"}'):
        key = made(store, "train", {"a": repr(content)})
        store_layout.manifest(store.root, key).write_bytes(content)
    for _ in range(2):
        assert list(catalogue(store)["key"]) == [whole]


def test_a_store_that_cannot_be_written_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(store)

    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr("fairweight.base.files.tempfile.mkstemp", refuse)
    assert set(catalogue(store)["key"]) == store.done()
    assert not (store.root / store_layout.CATALOGUE).exists()


@pytest.mark.parametrize("name", ["runs.parquet", "runs.csv"])
def test_export(store: Store, tmp_path: Path, name: str) -> None:
    study(store)
    path = tmp_path / "out" / name
    export(store, path)
    if name.endswith("csv"):
        written = pd.read_csv(path, keep_default_na=False)
        assert list(written["seed"].astype(str)) == [
            "" if pd.isna(seed) else str(seed) for seed in catalogue(store)["seed"]
        ]
    else:
        written = pd.read_parquet(path)
        pd.testing.assert_frame_equal(written, catalogue(store))
    assert tuple(written.columns) == COLUMNS
    assert set(written["key"]) == store.done()


def test_export_knows_two_kinds(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'runs\.xlsx'; end it in \.parquet or \.csv"):
        export(store, "runs.xlsx")
