"""Long, wide and one table per model are three ways to say one thing."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fairweight as fw
from fairweight.tables.align import align
from fairweight.tables.names import grouping_name
from fairweight.tables.spec import TableSpec, sources_of, split_name

from .conftest import aligned_rows, long_frame, model_frames, wide_frame

# Names that break quoting, shells and pages.
NASTY = ('a"b', "a'b", "a,b", "a\nb", "<b>x</b>", "a;DROP TABLE t--", "%s", "ä b", "x*y")


@st.composite
def wide_tables(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(1, 12))
    ids = draw(
        st.one_of(
            st.lists(st.integers(-(2**60), 2**60), min_size=n, max_size=n, unique=True),
            st.lists(st.text("ab'\",<\n", min_size=1), min_size=n, max_size=n, unique=True),
        )
    )
    kinds: list[list[Any]] = [["cat", "dog", "it's"], [0, 1, 2], [True, False], [0.5, 1.0]]
    values = draw(st.sampled_from(kinds))
    column = st.lists(st.sampled_from(values), min_size=n, max_size=n)
    unit = st.lists(st.floats(0, 1), min_size=n, max_size=n)
    group = st.lists(st.sampled_from(NASTY), min_size=n, max_size=n)
    return pd.DataFrame(
        {
            "example_id": ids,
            "label": draw(column),
            "pred_dense": draw(column),
            "pred_int8": draw(column),
            "score_dense": draw(unit),
            "score_int8": draw(unit),
            "group": draw(group),
        }
    )


@given(wide_tables(), st.integers(0, 2**16))
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_three_layouts_give_the_same_rows(wide: pd.DataFrame, seed: int) -> None:
    frames = model_frames(wide)
    shuffled = long_frame(wide).sample(frac=1, random_state=seed)
    frames["int8"] = frames["int8"].sample(frac=1, random_state=seed + 1)
    with (
        align(TableSpec(sources_of(wide), groups=["group"])) as one,
        align(TableSpec(sources_of(long_frame(wide)), groups=["group"])) as two,
        align(TableSpec(sources_of(shuffled), groups=["group"], baseline="dense")) as three,
        align(TableSpec(sources_of(frames), groups=["group"])) as four,
    ):
        expected = aligned_rows(one)
        for other in (two, three, four):
            assert aligned_rows(other) == expected
            assert other.n_examples == len(wide)
            assert (other.baseline, other.variants) == ("dense", ("int8",))


def test_order_of_members() -> None:
    wide = wide_frame().rename(columns={"pred_dense": "pred_z", "pred_int8": "pred_a"})
    with align(TableSpec(sources_of(wide), baseline="a")) as found:
        assert (found.baseline, found.variants) == ("a", ("z",))
        assert [(m.variant, m.prediction) for m in found.members] == [("a", "p0"), ("z", "p1")]
    with align(TableSpec(sources_of(wide))) as found:
        assert found.baseline == "z"
        assert any("'z', is taken as the baseline" in note for note in found.notes)
    with align(TableSpec(sources_of(long_frame().iloc[::-1]))) as found:
        assert found.baseline == "dense"


def test_populations_in_every_layout(tmp_path: Path) -> None:
    wide = wide_frame()
    predictions = {"dense": ["pred_dense", "pred_int8"], "int8": "pred_int8"}
    long = pd.concat(
        [
            wide[["example_id", "label", "sex"]].assign(variant=v, seed=s, prediction=wide[c])
            for v, s, c in [
                ("dense", 0, "pred_dense"),
                ("dense", 1, "pred_int8"),
                ("int8", 0, "pred_int8"),
            ]
        ]
    )
    files = []
    for (variant, seed), part in long.groupby(["variant", "seed"]):
        path = tmp_path / f"{variant}-{seed}.csv"
        part.drop(columns=["variant", "seed"]).to_csv(path, index=False)
        files.append(f"{variant}={path}")
    expected = [("dense", 0), ("dense", 1), ("int8", 0)]
    with (
        align(
            TableSpec(sources_of(wide), predictions=predictions, groups=["sex"], scores={})
        ) as one,
        align(TableSpec(sources_of(long))) as two,
        align(TableSpec(sources_of(files))) as three,
    ):
        for found in (one, two, three):
            assert [(m.variant, m.seed) for m in found.members] == expected
            assert aligned_rows(found) == aligned_rows(one)
        assert [m.seed for m in one.members_of("dense")] == [0, 1]


def test_files_are_named_by_their_stems(tmp_path: Path) -> None:
    frames = model_frames()
    frames["dense"].to_csv(tmp_path / "dense.csv", index=False)
    frames["int8"].to_json(tmp_path / "gmp-0.95.jsonl", orient="records", lines=True)
    with align(
        TableSpec(sources_of([tmp_path / "dense.csv", tmp_path / "gmp-0.95.jsonl"]))
    ) as found:
        assert (found.baseline, found.variants) == ("dense", ("gmp-0.95",))
        assert set(found.group_columns) == {"sex", "age"}
    with align(
        TableSpec(sources_of([f"new={tmp_path / 'gmp-0.95.jsonl'}", str(tmp_path / "dense.csv")]))
    ) as found:
        assert (found.baseline, found.variants) == ("new", ("dense",))
        assert any("although one is named 'dense'" in note for note in found.notes)


def test_parts_of_one_table_are_put_together(tmp_path: Path) -> None:
    long, wide = long_frame(), wide_frame()
    for part in range(2):
        long[long.example_id % 2 == part].to_csv(tmp_path / f"long-{part}.csv", index=False)
        wide[wide.example_id % 2 == part].to_csv(tmp_path / f"wide-{part}.csv", index=False)
    with align(TableSpec(sources_of(wide))) as expected:
        for kind in ("long", "wide"):
            with align(
                TableSpec(sources_of([tmp_path / f"{kind}-{part}.csv" for part in range(2)]))
            ) as found:
                assert aligned_rows(found) == aligned_rows(expected)


def test_names_of_files_with_equals_signs(tmp_path: Path) -> None:
    assert split_name("a=b.csv::SELECT x=1") == ("a", "b.csv::SELECT x=1")
    assert split_name("b.csv::SELECT x=1") == (None, "b.csv::SELECT x=1")
    path = tmp_path / "a=b.csv"
    path.write_text("x\n1\n")
    assert split_name(str(path)) == (None, str(path))


def test_identities_written_in_different_types() -> None:
    frames = model_frames()
    frames["dense"]["example_id"] = frames["dense"]["example_id"].astype(float)
    frames["int8"]["example_id"] = frames["int8"]["example_id"].astype(str)
    with (
        align(TableSpec(sources_of(frames))) as found,
        align(TableSpec(sources_of(wide_frame()))) as expected,
    ):
        assert aligned_rows(found) == aligned_rows(expected)


def test_labels_written_in_different_types_agree() -> None:
    wide = wide_frame().replace({"cat": 0, "dog": 1}).infer_objects()
    frames = model_frames(wide)
    frames["int8"]["label"] = frames["int8"]["label"].astype(float).astype(str)
    with align(TableSpec(sources_of(frames))) as found:
        assert found.n_rows == 6


@pytest.mark.parametrize("name", NASTY)
def test_nasty_column_names(name: str) -> None:
    wide = wide_frame().rename(columns={"sex": name, "label": f"label {name}"})
    label = f"label {name}"
    with align(TableSpec(sources_of(wide), label=label, groups=[name])) as one:
        assert one.group_columns == (name,)
        assert one.groupings == (grouping_name([name]),)
        with align(TableSpec(sources_of(long_frame(wide)), label=label, groups=[name])) as two:
            assert aligned_rows(one) == aligned_rows(two)
    variant = {name: "pred_dense", "int8": "pred_int8"}
    with align(TableSpec(sources_of(wide), label=label, predictions=variant)) as found:
        assert found.baseline == name


def test_tasks() -> None:
    wide = pd.concat([wide_frame().assign(task=t) for t in ("smile", "hat")])
    with (
        align(TableSpec(sources_of(wide))) as one,
        align(TableSpec(sources_of(long_frame(wide).sample(frac=1, random_state=1)))) as two,
    ):
        for found in (one, two):
            assert found.has_task
            assert (found.n_examples, found.n_rows) == (6, 12)
        query = "SELECT example_id, task, label, p0, p1 FROM {} ORDER BY ALL"
        rows = [f.connection.execute(query.format(f.view)).fetchall() for f in (one, two)]
        assert rows[0] == rows[1]


def test_examples_table_brings_groups_and_labels() -> None:
    wide = wide_frame()
    examples = wide[["example_id", "label", "sex", "age"]].sample(frac=1, random_state=3)
    examples["image_path"] = "x.png"
    bare = wide.drop(columns=["label", "sex", "age"])
    frames = {k: f.drop(columns=["label", "sex", "age"], errors="ignore")
              for k, f in model_frames().items()}  # fmt: skip
    with align(TableSpec(sources_of(wide))) as expected:
        for source in (bare, long_frame(wide).drop(columns=["label", "sex", "age"]), frames):
            with align(TableSpec(sources_of(source), examples=examples)) as found:
                assert aligned_rows(found) == aligned_rows(expected)
                assert set(found.group_columns) == {"sex", "age"}


def test_weights_and_clusters() -> None:
    wide = wide_frame().assign(weight=[1, 2, 3, 1, 2, 3], writer=list("aabbcc"))
    for source in (wide, long_frame(wide)):
        with align(TableSpec(sources_of(source), cluster="writer")) as found:
            assert found.has_weight
            assert found.has_cluster
            rows = found.connection.execute(
                f"SELECT example_id, weight, cluster FROM {found.view} ORDER BY 1"
            ).fetchall()
            assert rows[0] == (10, 1.0, "a")
            assert "writer" not in found.group_columns
            assert not any("--cluster" in note for note in found.notes)
        with align(TableSpec(sources_of(source), groups=["sex"])) as found:
            assert any(note.endswith("use --cluster writer.") for note in found.notes)


@pytest.mark.parametrize(
    "roles",
    [
        {"groups": ["subject"]},
        {"groups": ["subject*age"]},
        {},  # a group by default
        {"groups": [], "id": "subject"},
        {"groups": [], "task": "subject"},
        {"groups": [], "label": "subject"},
        {"groups": [], "weight": "subject"},
        {"groups": [], "predictions": {"dense": "subject", "int8": "pred_int8"}},
    ],
)
def test_a_column_with_a_role_is_not_suggested_as_the_cluster(roles: dict[str, Any]) -> None:
    wide = wide_frame().assign(subject=[1, 1, 1, 2, 2, 2])
    if "id" in roles:
        wide["subject"] = range(6)
    with align(TableSpec(sources_of(wide), **roles)) as found:
        assert not any("--cluster" in note for note in found.notes)


def test_the_suggested_cluster_can_be_pasted() -> None:
    wide = wide_frame().assign(**{"person's id": [1, 1, 2, 2, 3, 3]})
    with align(TableSpec(sources_of(wide), groups=["sex"])) as found:
        (note,) = [note for note in found.notes if "--cluster" in note]
    words = shlex.split(note.partition("if so, use ")[2].removesuffix("."))
    assert words == ["--cluster", "person's id"]


def test_training_table_is_counted() -> None:
    train = pd.DataFrame({"label": ["cat", "cat", "dog"], "age": [1, 1, 2]})
    counted = pd.DataFrame({"label": ["cat", "dog"], "age": [1, 2], "count": [2, 1]})
    for given_train in (train, counted):
        with align(
            TableSpec(sources_of(wide_frame()), groups=["sex", "age"], train=given_train)
        ) as found:
            assert found.train is not None
            assert found.train.group_columns == (("age", "g1"),)
            assert found.train.n_examples == 3
            rows = found.connection.execute(
                f"SELECT label, g1, n FROM {found.train.view} ORDER BY 1"
            ).fetchall()
            assert rows == [("cat", 1, 2.0), ("dog", 2, 1.0)]
            assert len(found.inputs) == 2


def test_variants_table_is_a_frame() -> None:
    table = pd.DataFrame({"variant": ["dense", "int8"], "size_bytes": [4, 1]})
    with align(TableSpec(sources_of(wide_frame()), variants=table)) as found:
        assert found.variants_table is not None
        assert found.variants_table.to_dict("list") == table.to_dict("list")


def test_a_wide_table_without_identities() -> None:
    with align(TableSpec(sources_of(wide_frame().drop(columns="example_id")))) as found:
        assert found.n_examples == 6
        assert any("each row is taken as one example" in note for note in found.notes)
        rows = found.connection.execute(f"SELECT DISTINCT example_id FROM {found.view}").fetchall()
        assert len(rows) == 6


def test_dropping_what_some_variant_lacks() -> None:
    long = long_frame()
    lacking = long[~((long.variant == "int8") & long.example_id.isin([10, 12]))]
    lacking = lacking[~((lacking.variant == "dense") & (lacking.example_id == 15))]
    # 10 and 12 are missing from int8, 15 from dense: three of six are left out.
    with align(TableSpec(sources_of(lacking), missing="drop")) as found:
        rows = found.connection.execute(f"SELECT example_id FROM {found.view}").fetchall()
        assert sorted(row[0] for row in rows) == [11, 13, 14]
        assert found.n_examples == 3
        assert any(note.startswith("3 examples that some variant lacks") for note in found.notes)


def test_lists_of_scores_and_ranks_in_every_layout() -> None:
    wide = wide_frame()
    long = long_frame(wide)
    long["scores"] = [[1 - s, s] for s in long["score"]]
    long["label_rank"] = [1, 2] * 6
    wide["prediction:dense"], wide["prediction:int8"] = (
        wide.pop("pred_dense"),
        wide.pop("pred_int8"),
    )
    for position, name in enumerate(("dense", "int8")):
        rows = long.iloc[6 * position : 6 * position + 6].reset_index(drop=True)
        wide[f"scores:{name}"], wide[f"label_rank:{name}"] = rows["scores"], rows["label_rank"]
    with (
        align(TableSpec(sources_of(wide))) as one,
        align(TableSpec(sources_of(long.sample(frac=1, random_state=5)), baseline="dense")) as two,
    ):
        query = "SELECT example_id, p0, p1, s0, s1, v0, v1, r0, r1 FROM {} ORDER BY 1"
        rows = [f.connection.execute(query.format(f.view)).fetchall() for f in (one, two)]
        assert rows[0] == rows[1]
        assert rows[0][0][5:] == ([1 - 0.9, 0.9], [1 - 0.1, 0.1], 1, 1)
        assert [(m.scores, m.label_rank) for m in two.members] == [("v0", "r0"), ("v1", "r1")]


def test_columns_of_models_that_are_not_compared_are_no_groups() -> None:
    wide = wide_frame().assign(pred_int4="cat", credit_score=[1, 2] * 3)
    chosen = {"dense": "pred_dense", "int8": "pred_int8"}
    with align(TableSpec(sources_of(wide), predictions=chosen)) as found:
        assert set(found.group_columns) == {"sex", "age"}
        assert any("'credit_score', 'pred_int4'" in note for note in found.notes)


def test_rows_of_other_tables_that_are_not_used_are_told() -> None:
    examples = wide_frame()[["example_id", "sex"]]
    examples = pd.concat([examples, pd.DataFrame({"example_id": [99], "sex": ["F"]})])
    train = pd.DataFrame({"label": ["cat", None, "dog"]})
    with align(TableSpec(sources_of(wide_frame()), examples=examples, train=train)) as found:
        assert any(note.startswith("1 examples of the examples table") for note in found.notes)
        assert any(note.startswith("1 training rows without a label") for note in found.notes)
        assert any("taken from the first: 'sex'" in note for note in found.notes)


@pytest.mark.parametrize("name", ["rowid", "file_row_number", "fw_row_number"])
def test_columns_named_like_our_own_are_kept(name: str, tmp_path: Path) -> None:
    wide = wide_frame().drop(columns="example_id").rename(columns={"sex": name})
    wide.to_parquet(tmp_path / "t.parquet")
    wide.to_csv(tmp_path / "t.csv", index=False)
    for path in (tmp_path / "t.parquet", tmp_path / "t.csv"):
        with align(TableSpec(sources_of(path))) as found:
            assert set(found.group_columns) == {name, "age"}
            ids = found.connection.execute(f"SELECT DISTINCT example_id FROM {found.view}")
            assert len(ids.fetchall()) == 6


def test_little_memory_spills_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300_000
    random = np.random.default_rng(1)
    ids = random.permutation(n)
    frame = pd.DataFrame({"example_id": [f"a long identity of an example {i}" for i in ids]})
    frame["label"] = random.integers(0, 3, n)
    both = pd.concat(
        [
            frame.assign(variant="dense", prediction=frame["label"]),
            frame.assign(variant="int8", prediction=0).iloc[::-1],
        ]
    )
    both.to_parquet(tmp_path / "long.parquet")
    monkeypatch.setattr("fairweight.tables.connection.memory_limit_mb", lambda: 100)
    with align(TableSpec(sources_of(tmp_path / "long.parquet"))) as found:
        right = found.connection.execute(
            f"SELECT count(*) FILTER (p0 = label), count(*) FILTER (p1 = 0) FROM {found.view}"
        ).fetchall()
        assert right == [(n, n)]


def test_a_wide_parquet_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "wide.parquet"
    wide_frame().to_parquet(path)
    with align(TableSpec(sources_of(path))) as found:
        tables = found.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        assert tables == []


def test_time_for_a_million_rows(tmp_path: Path) -> None:
    n = 1_000_000
    random = np.random.default_rng(0)
    wide = pd.DataFrame(
        {
            "example_id": np.arange(n),
            "label": random.integers(0, 10, n),
            "pred_dense": random.integers(0, 10, n),
            "pred_int8": random.integers(0, 10, n),
            "score_dense": random.random(n),
            "score_int8": random.random(n),
            "group": random.integers(0, 8, n),
        }
    )
    wide.to_parquet(tmp_path / "wide.parquet")
    long_frame(wide).to_parquet(tmp_path / "long.parquet")
    for name in ("wide", "long"):
        start = time.perf_counter()
        with align(TableSpec(sources_of(tmp_path / f"{name}.parquet"))) as found:
            print(f"{name}: 1 M examples aligned in {time.perf_counter() - start:.2f} s")
            assert found.n_examples == n


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", [str.upper, str.title])
def test_columns_may_be_called_like_our_own_in_other_case(
    name: Callable[[str], str], kind: str, tmp_path: Path
) -> None:
    """`Label` is a common header, and DuckDB ignores `"Label" AS label` in tables of its own."""
    plain = {
        "example_id": [1, 2, 3, 4], "label": list("xyxy"), "task": ["t"] * 4,
        "weight": [1, 2, 1, 1], "cluster": list("aabb"),
    }  # fmt: skip
    wide = pd.DataFrame(plain).rename(columns=name)
    wide["C0"], wide["P0"], wide["P1"] = list("FMFM"), list("xyxx"), list("xxxx")
    own = {
        variant: wide.drop(columns=["P0", "P1"]).assign(**{name("prediction"): wide[column]})
        for variant, column in (("dense", "P0"), ("int8", "P1"))
    }
    long = pd.concat([frame.assign(**{name("variant"): one}) for one, frame in own.items()])
    files = {"wide": wide, **own, "long": long}
    for file, frame in files.items():
        path = tmp_path / f"{file}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    roles = {role: name(role) for role in ("label", "task", "weight", "cluster")}
    given: dict[str, Any] = {"id": name("example_id"), "groups": ["C0"], "n_boot": 20, **roles}
    of_prediction = {**given, "prediction": name("prediction")}
    columns = {"dense": "P0", "int8": "P1"}
    found = [
        fw.audit_table(tmp_path / f"wide.{kind}", predictions=columns, **given),
        fw.audit_table([tmp_path / f"{one}.{kind}" for one in own], **of_prediction),
        fw.audit_table(tmp_path / f"long.{kind}", variant=name("variant"), **of_prediction),
    ]
    shown = ["by", "level", "class", "metric", "n", "baseline", "compressed"]
    first, *others = (audit.results[shown] for audit in found)
    for other in others:
        pd.testing.assert_frame_equal(first, other)
