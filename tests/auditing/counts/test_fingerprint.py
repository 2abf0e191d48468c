"""Which test set it is: the same for any order, type and model; another for other examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.pipeline import FINGERPRINT_ROWS
from fairweight.tables.spec import TableSpec, sources_of

pytestmark = pytest.mark.usefixtures("few_metrics")


def frame(n: int = 60) -> pd.DataFrame:
    i = np.arange(n)
    return pd.DataFrame(
        {
            "example_id": i + 7,
            "label": i % 2,
            "pred_dense": i % 2,
            "pred_int8": np.where(i % 9 == 0, 1 - i % 2, i % 2),
            "sex": np.where(i % 3 == 0, "F", "M"),
        }
    )


def fingerprint(given: Any, **more: Any) -> str | None:
    return fw.audit_table(given, n_boot=20, **({"groups": ["sex"]} | more)).result.test_set


def files(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    rest = ["example_id", "label", "sex"]
    return {n: table[rest].assign(prediction=table[f"pred_{n}"]) for n in ("dense", "int8")}


def test_order_layout_type_and_predictions_do_not_matter(tmp_path: Path) -> None:
    known = fingerprint(frame())
    assert known is not None
    assert known.startswith("ids:")
    assert fingerprint(frame().sample(frac=1, random_state=1)) == known
    assert fingerprint(files(frame())) == known
    assert fingerprint(frame().assign(pred_int8=frame()["pred_dense"])) == known
    frame().to_csv(tmp_path / "t.csv", index=False)
    frame().astype({"example_id": float}).to_parquet(tmp_path / "t.parquet")
    assert fingerprint(str(tmp_path / "t.csv")) == known
    assert fingerprint(str(tmp_path / "t.parquet")) == known


def test_another_choice_of_groups_is_no_new_fingerprint() -> None:
    table = frame().assign(age=np.where(frame()["label"] == 0, "old", "young"))
    assert fingerprint(table, groups=["sex", "age"]) == fingerprint(table, groups=["age"])


def test_rows_that_a_model_lacks_make_no_new_fingerprint() -> None:
    given = files(frame())
    given["int8"] = given["int8"].iloc[5:]
    assert fingerprint(given, missing="drop") == fingerprint(frame())


def test_other_examples_or_labels_are_another_fingerprint() -> None:
    known = fingerprint(frame())
    other = frame()
    other.loc[3, "example_id"] = 9999
    assert fingerprint(other) != known
    swapped = frame()
    swapped["label"] = swapped["label"].to_numpy()[::-1]  # as many of each, on other examples
    assert fingerprint(swapped, missing="drop") != known
    assert fingerprint(frame(58)) != known


def test_without_ids_the_cells_stand_for_them(tmp_path: Path) -> None:
    table = frame().drop(columns="example_id")
    known = fingerprint(table)
    assert known is not None
    assert known.startswith("cells:")
    assert fingerprint(table.sample(frac=1, random_state=1)) == known
    assert fingerprint(table.assign(pred_int8=table["pred_dense"])) == known
    assert fingerprint(table.assign(sex="F")) != known


def test_a_cube_is_known_by_its_cells(tmp_path: Path) -> None:
    from fairweight.auditing.counts.cube_file import write_cube
    from fairweight.auditing.counts.group_by import count
    from fairweight.tables.align import align

    made = {}
    for name, table in {"a": frame(), "b": frame().sample(frac=1, random_state=2)}.items():
        with align(TableSpec(sources_of(table), groups=["sex"])) as aligned:
            path = tmp_path / f"{name}.parquet"
            write_cube(count(aligned), path, groupings=aligned.groupings, baseline="dense")
        made[name] = fingerprint(str(path), groups=None)
    assert made["a"] == made["b"] == fingerprint(frame().drop(columns="example_id"))


def test_tasks_are_told_apart() -> None:
    one = frame().assign(task="a")
    both = pd.concat([one, frame().assign(task="b")])
    crossed = pd.concat([one, frame().assign(task="b", label=1 - frame()["label"])])
    assert fingerprint(both, task="task") != fingerprint(crossed, task="task")


@pytest.mark.parametrize("policy", [False, True])
def test_large_tables_are_read_for_it_only_where_there_is_a_policy(
    policy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FINGERPRINT_ROWS == 200_000
    monkeypatch.setattr("fairweight.auditing.pipeline.FINGERPRINT_ROWS", 10)
    named = [("accuracy", "group")] if policy else []
    assert (fingerprint(frame(), confirmatory=named) is not None) == policy
