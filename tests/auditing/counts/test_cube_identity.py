"""One cube, whatever it is counted from: arrays, files, chunks, any order of rows and columns."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairweight.auditing.compare.comparison import Options, comparison
from fairweight.auditing.counts.counts import Tally
from fairweight.auditing.counts.cube import Cube, add
from fairweight.auditing.counts.group_by import count
from fairweight.auditing.counts.groupings import grouping, whole
from fairweight.auditing.metrics.arrays import count_arrays
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

from ..strategies import Predictions, prediction_tables, random_table

COLUMNS = {"dense": "dense", "small": "small"}


def cube_of(source: Any, **options: Any) -> Cube:
    with closing(
        align(
            TableSpec(
                sources_of(source), **{"baseline": "dense", "predictions": COLUMNS, **options}
            )
        )
    ) as view:
        return count(view)


def assert_same(first: Cube, second: Cube) -> None:
    """Every array, dictionary and number of two cubes, bit for bit."""
    assert first.members == second.members
    assert first.label_classes == second.label_classes
    assert first.other_classes == second.other_classes
    assert first.tasks == second.tasks
    assert first.n_examples == second.n_examples
    assert first.unit_names == second.unit_names
    assert first.unit_is_cluster == second.unit_is_cluster
    for name in ("label", "prediction", "count", "task", "weight", "unit"):
        mine, theirs = getattr(first, name), getattr(second, name)
        assert (mine is None) == (theirs is None), name
        if mine is not None:
            assert mine.dtype == theirs.dtype, name
            np.testing.assert_array_equal(mine, theirs, err_msg=name)
    assert [c.name for c in first.columns] == [c.name for c in second.columns]
    for mine, theirs in zip(first.columns, second.columns, strict=True):
        assert mine.values == theirs.values
        np.testing.assert_array_equal(mine.code, theirs.code)


def in_chunks(frame: pd.DataFrame, cuts: list[int], **options: Any) -> Cube:
    edges = [0, *sorted(cuts), len(frame)]
    parts = [frame.iloc[a:b] for a, b in pairwise(edges) if b > a]
    return add([cube_of(part, **options) for part in parts])


def full_frame(seed: int = 1, n: int = 200) -> pd.DataFrame:
    """Weights, clusters, missing groups, abstentions and a class that nobody has as a label."""
    rng = np.random.default_rng(1000 + seed)
    frame = random_table(seed, n).frame()
    frame.loc[rng.random(n) < 0.1, "small"] = None
    frame.loc[:2, "small"] = "9"
    frame.loc[rng.random(n) < 0.1, "sex"] = None
    return frame.assign(mass=rng.choice([0.5, 1.0, 2.0], n), person=rng.integers(0, 30, n))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "mass"},
        {"cluster": "person"},
        {"weight": "mass", "cluster": "person"},
        {"groups": ["sex", "site", "sex*site"]},
    ],
    ids=lambda o: "+".join(o) or "plain",
)
def test_arrays_files_and_chunks_give_one_cube(options: dict[str, Any], tmp_path: Path) -> None:
    options = {"groups": ["sex", "site"], **options}
    frame = full_frame()
    expected = cube_of(frame, **options)
    arrays = {name: frame[name].to_numpy() for name in frame.columns}
    assert_same(expected, cube_of(arrays, **options))
    frame.to_parquet(tmp_path / "table.parquet")
    assert_same(expected, cube_of(tmp_path / "table.parquet", **options))
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert_same(expected, cube_of(tmp_path / "table.csv", **options))
    assert_same(expected, in_chunks(frame, [1, 57, 58, 130], **options))
    shuffled = frame.sample(frac=1, random_state=3)
    assert_same(expected, cube_of(shuffled, **options))
    assert_same(expected, in_chunks(shuffled, [90], **options))
    turned = frame[frame.columns[::-1]]
    assert_same(expected, cube_of(turned, **options))
    assert expected.count.sum() == expected.n_examples == 200
    assert expected.n_cells < 200 or "weight" in options or "cluster" in options


@settings(max_examples=12)
@given(table=prediction_tables(max_rows=60), data=st.data())
def test_rows_in_any_order_and_any_chunks_give_one_cube(
    table: Predictions, data: st.DataObject
) -> None:
    frame = table.frame()
    groups = {"groups": list(table.groups)}
    expected = cube_of(frame, **groups)
    order = data.draw(st.permutations(range(len(table))))
    cut = data.draw(st.integers(1, len(table) - 1))
    assert_same(expected, in_chunks(frame.iloc[list(order)], [cut], **groups))


def test_addition_matches_by_name_not_by_position() -> None:
    """A part without class 0 and without group F must not credit others' counts to them."""
    frame = random_table(4, 120).frame().sort_values(["label", "sex"])
    expected = cube_of(frame, groups=["sex", "site"])
    parts = [cube_of(part, groups=["sex", "site"]) for _, part in frame.groupby(["label", "sex"])]
    assert {p.label_classes for p in parts} == {("0",), ("1",), ("2",)}
    assert_same(expected, add(parts))
    assert_same(expected, add(parts[::-1]))


def test_cubes_of_different_questions_do_not_add() -> None:
    frame = full_frame()
    plain = cube_of(frame, groups=["sex"])
    for other, word in (
        (cube_of(frame, groups=["site"]), "group columns"),
        (cube_of(frame, groups=["sex"], weight="mass"), "weights"),
        (cube_of(frame, groups=["sex"], cluster="person"), "clusters"),
        (
            cube_of(frame, groups=["sex"], predictions={"dense": "dense", "tiny": "small"}),
            "members",
        ),
    ):
        with pytest.raises(InputError, match=word):
            add([plain, other])


@pytest.mark.parametrize(
    "spellings",
    [
        (1, 1.0, "1"),
        (np.int8(1), np.float32(1), "1.0"),
        (1, "1.0", "1"),
    ],
    ids=str,
)
def test_one_class_in_three_spellings(spellings: tuple[Any, Any, Any]) -> None:
    label, dense, small = spellings
    zero = {int: 0, float: 0.0, str: "0"}

    def column(one: Any) -> list[Any]:
        plain = one.item() if hasattr(one, "item") else one
        return [plain, zero[type(plain)]] * 3

    cube = cube_of({"label": column(label), "dense": column(dense), "small": column(small)})
    assert cube.classes == ("0", "1")
    assert cube.n_cells == 2
    np.testing.assert_array_equal(cube.prediction, np.stack([cube.label] * 2, axis=1))


def test_truth_values_beside_numbers_are_0_and_1() -> None:
    cube = cube_of(
        {"label": [1, 0, 1, 0], "dense": [True, False, True, True], "small": [1.0, 0.0, 1.0, 0.0]}
    )
    assert cube.classes == ("0", "1")
    right = (cube.prediction == cube.label[:, None]) * cube.count[:, None]
    assert right.sum(axis=0).tolist() == [3, 4]


def test_a_thousand_classes() -> None:
    n = 20_000
    rng = np.random.default_rng(0)
    label = rng.integers(0, 1000, n)
    dense = np.where(rng.random(n) < 0.2, rng.integers(0, 1000, n), label)
    cube = cube_of({"label": label, "dense": dense, "small": label})
    assert len(cube.label_classes) == 1000
    assert cube.label_classes[:3] == ("0", "1", "2")
    assert cube.label_classes[-1] == "999"
    counts = Tally(cube, (whole(cube),), [0], positive=None).observed()[0]
    expected = count_arrays(label, dense)
    for name in ("label", "predicted", "correct"):
        np.testing.assert_array_equal(getattr(counts, name)[0, 0], getattr(expected, name))


def test_ten_thousand_groups_and_their_intersection() -> None:
    n = 30_000
    rng = np.random.default_rng(1)
    region = np.concatenate([np.arange(10_000), rng.integers(0, 10_000, n - 10_000)])
    label = rng.integers(0, 2, n)
    frame = {
        "label": label,
        "dense": label,
        "small": np.where(rng.random(n) < 0.1, 1 - label, label),
        "region": np.char.add("r", region.astype(str)),
        "sex": rng.choice(["F", "M"], n),
    }
    cube = cube_of(frame, groups=["region", "sex", "region*sex"])
    regions = grouping(cube, "region")
    assert len(regions.levels) == 10_000
    sizes = np.bincount(regions.code, weights=cube.count)
    at = regions.levels.index("region=r77")
    assert sizes[at] == (region == 77).sum()
    both = grouping(cube, "region*sex")
    # only combinations that occur are levels
    pairs = {(r, s) for r, s in zip(frame["region"], frame["sex"], strict=True)}
    assert len(both.levels) == len(pairs) < 20_000
    assert both.levels[0].startswith("region=r0 & sex=")


def test_intersections_count_what_the_rows_say() -> None:
    table = random_table(6, 150)
    cube = cube_of(table.frame(), groups=["sex", "site"])
    found = grouping(cube, "site*sex")
    sizes = np.bincount(found.code, weights=cube.count, minlength=len(found.levels))
    for level, size in zip(found.levels, sizes, strict=True):
        site, sex = (part.split("=")[1] for part in level.split(" & "))
        rows = zip(table.groups["site"], table.groups["sex"], strict=True)
        assert size == sum(pair == (site, sex) for pair in rows)
    assert not found.single


def test_a_column_whose_name_has_a_star_is_one_column() -> None:
    table = random_table(6, 60)
    frame = table.frame().rename(columns={"sex": "a*b"})
    cube = cube_of(frame, groups=['"a*b"', "site"])
    found = grouping(cube, '"a*b"')
    assert found.levels == ('"a*b"=F', '"a*b"=M')
    assert found.single


def test_tasks_are_told_apart_and_examples_stay_together() -> None:
    frame = pd.DataFrame(
        {
            "example_id": ["u", "v", "w"] * 2,
            "task": ["smile"] * 3 + ["hat"] * 3,
            "label": [1, 0, 1, 0, 0, 1],
            "dense": [1, 0, 1, 0, 0, 1],
            "small": [1, 1, 1, 0, 0, 0],
            "site": ["x", "x", "y"] * 2,
        }
    )
    cube = cube_of(frame, task="task", groups=["site"])
    assert cube.tasks == ("hat", "smile")
    assert cube.n_examples == 3
    assert sorted(cube.unit_names) == ["u", "v", "w"]
    assert not cube.unit_is_cluster
    assert cube.count.sum() == 6
    smile = cube.of_task("smile")
    assert smile.count.sum() == 3
    assert smile.task is None
    by_example = frame.sort_values("example_id")
    parts = [by_example[by_example["example_id"] == e] for e in "uvw"]
    added = add([cube_of(part, task="task", groups=["site"]) for part in parts])
    assert_same(cube, added)


def test_a_cell_of_one_weight_holds_several_examples() -> None:
    frame = pd.DataFrame(
        {"label": [1, 1, 1], "dense": [1, 1, 1], "small": [1, 1, 1], "mass": [2.0, 2.0, 0.5]}
    )
    cube = cube_of(frame, weight="mass")
    assert cube.weight is not None
    assert sorted(zip(cube.weight.tolist(), cube.count.tolist(), strict=True)) == [(0.5, 1), (2, 2)]


def test_projection_forgets_nothing_about_the_two_models_it_keeps() -> None:
    """With a third model cells split; counts of the first two stay what they are."""
    table = random_table(8, 120)
    third = random_table(9, 120).small
    three = cube_of(
        table.frame().assign(third=third),
        predictions={**COLUMNS, "third": "third"},
        groups=["sex", "site"],
    )
    two = cube_of(table.frame(), groups=["sex", "site"])
    arguments: dict[str, Any] = {
        "baseline": "dense", "variant": "small", "task": None, "positive": None,
        "grouping_names": ("sex", "site"), "options": Options(),
    }  # fmt: skip
    assert three.n_cells > two.n_cells
    assert_same(comparison(three, **arguments).cube, two)
