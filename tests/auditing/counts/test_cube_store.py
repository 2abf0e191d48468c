"""Cubes on disk: what is written is read again, and an audit of them is the audit of the rows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import fairweight as fw
from fairweight.auditing.counts.cube import digest
from fairweight.auditing.counts.cube_file import read_cubes, write_cube
from fairweight.auditing.counts.group_by import count
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

from .test_cube_identity import COLUMNS, assert_same, cube_of, full_frame


def write(frame: pd.DataFrame, path: Path, *, suppress: int = 0, **options: Any) -> int:
    given = {"baseline": "dense", "predictions": COLUMNS, **options}
    with closing(align(TableSpec(sources_of(frame), **given))) as view:
        return write_cube(
            count(view), path, groupings=view.groupings, baseline=view.baseline, suppress=suppress
        )


def tasks_frame() -> pd.DataFrame:
    frames = [full_frame(seed, 90).assign(task=f"t{seed}") for seed in (1, 2)]
    groups = frames[0][["sex", "site", "person"]].to_numpy()
    for frame in frames:  # an example has one group in all its tasks
        frame[["sex", "site", "person"]] = groups
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "mass"},
        {"cluster": "person"},
        {"groups": ["sex", "sex*site"]},
        {"task": "task"},
        {"task": "task", "cluster": "person"},
    ],
    ids=lambda o: "+".join(o) or "plain",
)
def test_round_trip(options: dict[str, Any], tmp_path: Path) -> None:
    frame = tasks_frame() if "task" in options else full_frame()
    options = {"groups": ["sex", "site"], **options}
    cube = cube_of(frame, **options)
    assert write(frame, tmp_path / "cube.parquet", **options) == 0
    found, baseline, groupings = read_cubes([tmp_path / "cube.parquet"])
    # Names of people and examples stay at home; their digests keep the same order.
    assert_same(replace(cube, unit_names=tuple(digest(n) for n in cube.unit_names)), found)
    assert baseline == "dense"
    assert groupings == tuple(options["groups"])


@pytest.mark.parametrize(
    "options",
    [{}, {"weight": "mass"}, {"cluster": "person"}, {"task": "task"}],
    ids=lambda o: "+".join(o) or "plain",
)
def test_an_audit_of_cubes_is_the_audit_of_the_rows(
    options: dict[str, Any], tmp_path: Path
) -> None:
    frame = tasks_frame() if "task" in options else full_frame()
    options = {"groups": ["sex", "site", "sex*site"], **options}
    first = frame["example_id"] < 50
    write(frame[first], tmp_path / "cube-1.parquet", **options)
    write(frame[~first], tmp_path / "cube-2.parquet", **options)
    rows = fw.audit_table(frame, baseline="dense", predictions=COLUMNS, n_boot=40, **options)
    cubes = fw.audit_table(str(tmp_path / "cube-*.parquet"), n_boot=40)
    pd.testing.assert_frame_equal(rows.results, cubes.results)
    for name in ("per_seed", "confusion", "data", "power", "concentration"):
        pd.testing.assert_frame_equal(getattr(rows, name), getattr(cubes, name))
    assert cubes.result.n_examples == rows.result.n_examples


def test_other_groups_may_be_asked_of_a_cube(tmp_path: Path) -> None:
    frame = full_frame()
    write(frame, tmp_path / "cube.parquet", groups=["sex", "site"])
    cubes = fw.audit_table(tmp_path / "cube.parquet", groups=["sex*site"], n_boot=20)
    assert cubes.result.groupings == ("sex*site",)
    assert cubes.by_group["group"].str.contains(" & ").all()


def test_small_cells_can_be_left_out(tmp_path: Path) -> None:
    frame = full_frame()
    cube = cube_of(frame, groups=["sex"])
    left_out = write(frame, tmp_path / "cube.parquet", groups=["sex"], suppress=5)
    found, _, _ = read_cubes([tmp_path / "cube.parquet"])
    assert left_out == int((cube.count < 5).sum()) > 0
    assert found.count.min() >= 5
    assert found.n_examples == found.count.sum() == cube.count[cube.count >= 5].sum()
    assert any("were left out" in note for note in found.notes)


def test_what_is_no_cube_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain.parquet"
    parquet.write_table(pa.table({"a": [1]}), plain)
    text = tmp_path / "text.parquet"
    text.write_text("no parquet")
    for path in (plain, text, tmp_path / "absent.parquet"):
        with pytest.raises(InputError, match="is not a readable cube"):
            read_cubes([path])


def test_cubes_of_different_baselines_or_groups_are_refused(tmp_path: Path) -> None:
    frame = full_frame()
    write(frame, tmp_path / "a.parquet", groups=["sex"])
    write(frame, tmp_path / "b.parquet", groups=["sex"], baseline="small")
    write(frame, tmp_path / "c.parquet", groups=["site"])
    with pytest.raises(
        InputError, match=r"a.parquet' was counted with the baseline dense, .*b.parquet' with small"
    ):
        read_cubes([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    with pytest.raises(
        InputError, match=r"a.parquet' was counted with the groups sex, .*c.parquet' with site"
    ):
        read_cubes([tmp_path / "a.parquet", tmp_path / "c.parquet"])


def test_names_with_special_characters_survive(tmp_path: Path) -> None:
    frame = full_frame().replace({"sex": {"F": "a=b & c", "M": '<x>,\n"y"'}})
    frame = frame.rename(columns={"sex": "who: 'it'"})
    write(frame, tmp_path / "cube.parquet", groups=["who: 'it'"])
    found, _, _ = read_cubes([tmp_path / "cube.parquet"])
    assert_same(found, cube_of(frame, groups=["who: 'it'"]))
    assert set(found.columns[0].values) == {"a=b & c", '<x>,\n"y"', None}


def test_the_file_is_plain_parquet(tmp_path: Path) -> None:
    """Anyone can read it without this package."""
    frame = full_frame()
    write(frame, tmp_path / "cube.parquet", groups=["sex", "site"])
    table = pd.read_parquet(tmp_path / "cube.parquet")
    assert list(table.columns) == [
        "group:sex", "group:site", "label", "prediction:0", "prediction:1", "count",
    ]  # fmt: skip
    right = table["count"][table["label"] == table["prediction:1"]].sum()
    assert right == (frame["label"] == frame["small"]).sum()
    assert table["count"].to_numpy().dtype == np.int64


def _with(path: Path, **columns: Any) -> Path:
    """The cube with other values in some of its columns, and with its metadata."""
    table = parquet.read_table(path)
    for name, value in columns.items():
        held = pa.array([value] * table.num_rows)
        place = table.schema.get_field_index(name.replace("_", ":"))
        table = table.set_column(place, name.replace("_", ":"), held)
    parquet.write_table(table, path.with_name("changed.parquet"))
    return path.with_name("changed.parquet")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"label": None}, "not a readable cube|cells without a label"),
        ({"label": ["a"]}, "not a readable cube"),
        ({"prediction_1": {"a": 1}}, "not a readable cube"),
        ({"unit": ""}, None),
        ({"weight": float("nan")}, "weights that are negative, no numbers"),
        ({"weight": -1.0}, "weights that are negative"),
        ({"weight": 1e300}, "beyond what can be computed with"),
        ({"weight": 0.0}, "All weights of the cubes are 0"),
        ({"weight": "heavy"}, "not a readable cube"),
        ({"count": 0.5}, "negative or not whole"),
        ({"count": None}, "negative or not whole"),
        ({"count": 10**12}, "examples, and at most 1,000,000,000,000 can be audited"),
        ({"group_sex": 3}, None),
        ({"label": 1}, None),
    ],
    ids=str,
)
def test_a_cube_that_somebody_changed(
    tmp_path: Path, columns: dict[str, Any], sentence: str | None
) -> None:
    path = tmp_path / "c.parquet"
    frame = pd.DataFrame(
        {"example_id": range(40), "label": ["0", "1"] * 20, "pred_dense": ["0", "1"] * 20,
         "pred_int8": ["0", "0"] * 20, "sex": ["F", "M"] * 20, "w": [1.0, 2.0] * 20,
         "who": [f"p{i // 4}" for i in range(40)]}
    )  # fmt: skip
    with align(TableSpec(sources_of(frame), groups=["sex"], weight="w", cluster="who")) as aligned:
        write_cube(count(aligned), path, groupings=["sex"], baseline="dense")
    changed = _with(path, **columns)
    if sentence is None:
        assert read_cubes([changed])[0].n_examples == 40
        return
    with pytest.raises(InputError, match=sentence):
        read_cubes([changed])
