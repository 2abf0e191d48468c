"""From tables on disk to an index that is found again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.errors import InputError
from fairweight.tables.spec import SourceRef, TableSpec, sources_of
from fairweight.web.cards import examples
from fairweight.web.items import Item
from fairweight.web.votes import builder
from fairweight.web.votes.builder import index_folder, indexed
from fairweight.web.votes.filters import Filters, select
from fairweight.web.votes.index import open_index
from fairweight.web.votes.writer import INDEX


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def item(tmp_path: Path) -> Item:
    """Two tasks, two seeds; the second seed of `small` errs on everybody old."""
    rows = [
        {
            "example_id": f"p{i}", "task": task, "variant": variant, "seed": seed,
            "label": i % 2, "prediction": (i % 2) ^ (variant == "small" and seed == 1 and i > 3),
            "score": 0.25 + 0.5 * (i % 2),
        }
        for task in ("smile", "hat") for variant in ("dense", "small")
        for seed in (0, 1) for i in range(6)
    ]  # fmt: skip
    people = {
        "example_id": [f"p{i}" for i in range(6)],
        "age": ["young"] * 4 + ["old"] * 2,
        "person": ["a", "a", "b", "b", "c", "c"],
        "height": [1.5, 1.6, 1.7, np.nan, 1.8, 1.9],
        "note": ["<b>", "", "x", "x", "y", "z"],
        "image_path": ["faces/1.png"] * 6,
    }
    pd.DataFrame(rows).to_parquet(tmp_path / "predictions.parquet")
    pd.DataFrame(people).to_parquet(tmp_path / "examples.parquet")
    return Item(
        "people",
        "People",
        tmp_path,
        tables=TableSpec(
            sources_of(str(tmp_path / "predictions.parquet")),
            examples=SourceRef(str(tmp_path / "examples.parquet")),
            groups=["age"],
            cluster="person",
        ),
    )


def paths(item: Item) -> list[str]:
    assert item.tables is not None
    return item.tables.paths


def of_tables(item: Item, **changes: Any) -> Item:
    assert item.tables is not None
    return replace(item, tables=replace(item.tables, **changes))


def test_an_index_has_tasks_groups_properties_and_identities(item: Item) -> None:
    told: list[tuple[str, int, int]] = []
    index = open_index(indexed(item, lambda *words: told.append(words)))
    assert index.task_names == ("hat", "smile")
    assert told[0] == ("reading predictions", 0, 1)
    assert told[-1] == ("indexing votes of smile", 3, 3)
    votes = index.task("smile")
    assert list(votes.groups) == ["age", "person"]
    assert select(index, Filters(groups=(("person", "b"),)), "id").places.tolist() == [2, 3]
    (shown,) = examples(index, [5], "smile")
    assert (shown.id, shown.task, shown.label) == ("p5", "smile", "1")
    assert shown.groups == {"age": "old", "person": "c"}
    assert shown.properties["height"] == 1.9
    assert "image_path" not in shown.properties
    assert examples(index, [0])[0].properties["note"] == "<b>"
    assert [(bar.answer, bar.votes) for bar in shown.baseline.bars] == [("1", 2)]
    (small,) = shown.variants
    assert [(bar.answer, bar.votes) for bar in small.bars] == [("1", 1), ("0", 1)]
    assert (votes.head.positive, votes.head.partners) == (1, (None, None, 0, 1))
    # The second member errs where its parent does not: on the two old ones.
    wanted = Filters(task="smile", seed="1", changed="lost")
    assert select(index, wanted, "id").places.tolist() == [4, 5]


def test_a_second_opening_reads_no_table(item: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = indexed(item)

    def read(*_: object) -> None:
        raise AssertionError("tables were read again")

    monkeypatch.setattr(builder, "build_index", read)
    assert indexed(item) == folder
    with pytest.raises(AssertionError, match="read again"):
        indexed(of_tables(item, groups=None))  # other groups are another index


def test_other_tables_are_indexed_anew_and_old_indexes_removed(item: Item) -> None:
    first = indexed(item)
    table = Path(paths(item)[0])
    os.utime(table, ns=(1, 1))
    second = indexed(item)
    assert second != first
    assert second == index_folder(item)
    assert not first.exists()
    assert (second / INDEX).is_file()


def test_nothing_is_left_of_an_index_that_fails(item: Item) -> None:
    broken = of_tables(item, groups=["nothing"])
    with pytest.raises(InputError, match="nothing"):
        indexed(broken)
    views = index_folder(broken).parent
    assert not views.exists() or list(views.iterdir()) == []


def test_without_predictions_there_are_no_examples(item: Item) -> None:
    with pytest.raises(InputError, match="'People' has no prediction table"):
        builder.build_index(replace(item, tables=None), Path("unused"))


def test_files_with_names_are_files(item: Item, tmp_path: Path) -> None:
    whole = pd.read_parquet(paths(item)[0]).query("task == 'hat' and seed == 0")
    for name, part in whole.groupby("variant"):
        part.drop(columns=["variant", "seed", "task"]).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [f"{name}={tmp_path / name}.csv" for name in ("dense", "small")]
    index = open_index(indexed(of_tables(item, sources=sources_of(files))))
    assert index.task().head.members == (("dense", "0"), ("small", "0"))


def test_a_damaged_index_says_what_to_do(item: Item) -> None:
    folder = indexed(item)
    (folder / INDEX).write_text('{"format": 0}')
    with pytest.raises(InputError, match="remove the folder"):
        open_index(folder)
