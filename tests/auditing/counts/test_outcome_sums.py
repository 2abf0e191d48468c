"""Sums in place of numbers: on paper, against rows, in parts, far from 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest

import fairweight as fw
from fairweight.auditing.counts.cube import add
from fairweight.auditing.counts.cube_file import read_cubes
from fairweight.auditing.counts.group_by import count as count_view
from fairweight.auditing.counts.outcome_sums import EXPONENTS, PER_MODEL, OutcomeSums, terms_of
from fairweight.auditing.intervals.ratio import RatioSums
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

# What random signs decide; all else is from sums.
SIGNED = ("sim_low", "sim_high", "excess_sim_low", "excess_sim_high", "excess_p_adjusted",
          "equivalent", "loss_ruled_out")  # fmt: skip
OWN = {"dense": "words", "int8": "more", "int4": "words"}


def world(n: int = 800, seed: int = 0, mean: float = 0.0) -> pd.DataFrame:
    """Three models' sums over words, two group columns, clusters that cross them, weights."""
    rng = np.random.default_rng(seed)
    size = rng.integers(5, 40, n).astype(float)
    dense = size * (mean + rng.gamma(1, 0.1, n))
    int8 = dense + (rng.random(n) < 0.3) * rng.normal(0.02, 0.1, n) * size
    return pd.DataFrame({
        "example_id": np.arange(n), "words": size, "more": size + (rng.random(n) < 0.2),
        "dense": dense, "int8": int8, "int4": int8 + rng.normal(0.1, 0.2, n),
        "site": rng.choice(list("abc"), n, p=[0.2, 0.3, 0.5]), "age": rng.choice(list("yo"), n),
        "person": np.arange(n) // 10, "w": rng.choice([1.0, 2.0, 3.0], n),
        "part": rng.choice(["north", "south"], n),
    })  # fmt: skip


def asked(**more: Any) -> dict[str, Any]:
    return {
        "outcome": {"dense": "dense", "int8": "int8", "int4": "int4"},
        "better": "lower",
        "groups": ["site", "age", "site*age"],
        **more,
    }


def counted(table: pd.DataFrame, out: Path, **more: Any) -> fw.api.CountedCube:
    return fw.api.count(TableSpec(sources_of(table), **asked(**more)), out)


def same(rows: fw.Audit, cube: fw.Audit, *, signs: bool = False) -> None:
    """Equal to a relative 1e-9, but for what random signs decide."""
    left, right = rows.results, cube.results
    if not signs:
        left, right = (r[r["metric"] != "heterogeneity"].drop(columns=[*SIGNED])
                       for r in (left, right))  # fmt: skip
    # Of two levels either is the largest: rounding decides.
    left, right = left.drop(columns="level"), right.drop(columns="level")
    pd.testing.assert_frame_equal(left, right, rtol=1e-9, atol=1e-12)


def test_sums_on_paper() -> None:
    """Values 1, 2 and 4 become 1, 3 and 3, about 2: numerators −1, 0, 2, changes 0, 1, −1."""
    before, after = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0])
    ones, everyone = np.ones(3), np.zeros(3, dtype=np.intp)
    made = OutcomeSums.of_values(
        "dense", [(before, ones), (after, ones)], first=0, higher=True, terms=terms_of(2, 3),
        centre=np.full(3, 2.0), count=ones, weight=None, place=everyone, size=1,
    )  # fmt: skip
    sums = {e: float(made.product(e)[0, 1]) for e in EXPONENTS}
    assert sums[1, 0, 0, 0] == 1  # −1 + 0 + 2
    assert sums[2, 0, 0, 0] == 5
    assert sums[3, 0, 0, 0] == 7
    assert sums[1, 1, 0, 0] == -2  # 2 × −1
    assert sums[2, 1, 0, 0] == -4
    assert sums[1, 2, 0, 0] == 2
    assert sums[0, 3, 0, 0] == 0  # 1 − 1
    assert sums[0, 0, 2, 0] == 3  # denominators are 1
    assert sums[1, 0, 1, 0] == 1
    assert sums[0, 1, 0, 1] == 0
    found = [float(getattr(made, name)[0, 1]) for name in PER_MODEL]
    assert found == [1, 1, 2, 2, 1, 1, 1]  # better, worse, changed (and weight), gains, losses
    assert float(made.product((0, 1, 0, 0))[0, 0]) == 0  # the baseline against itself


@pytest.mark.parametrize(("variables", "number"), [(2, 9), (3, 19), (4, 34)])
def test_another_centre_gives_the_sums_about_it(variables: int, number: int) -> None:
    rng = np.random.default_rng(1)
    num, den = rng.normal(5, 1, (2, 50)), rng.uniform(1, 2, (2, 50))
    den = np.ones_like(den) if variables == 2 else den[:1].repeat(2, 0) if variables == 3 else den
    place = rng.integers(0, 2, 50)

    def about(centre: float) -> OutcomeSums:
        return OutcomeSums.of_values(
            "b", list(zip(num, den, strict=True)), first=0, higher=True,
            terms=terms_of(variables, 3), centre=np.full(50, centre), count=np.ones(50),
            weight=None, place=place, size=2,
        )  # fmt: skip

    assert len(about(0).terms) == number
    moved = about(4.0).recentred(np.array([5.5, 5.5]))
    np.testing.assert_allclose(moved.products, about(5.5).products, rtol=1e-11, atol=1e-10)
    # Cells about different constants are added about the first one's.
    apart = OutcomeSums.joined([about(4.0).select(np.array([0])), about(5.5).select(np.array([1]))])
    whole = apart.merged(np.array([0, 0]), np.array([0]))
    expected = RatioSums.of_units(num[0], num[1], den[0], den[1], centre=4.0)
    np.testing.assert_allclose(whole.all_products(1), expected.products, rtol=1e-11, atol=1e-10)
    assert whole.centre.tolist() == [4.0]


@pytest.mark.parametrize("denominator", [None, "words", OWN])
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_cube_gives_what_rows_give(denominator: Any, weight: str | None, tmp_path: Path) -> None:
    table = world(seed=3)
    more = {"denominator": denominator, "weight": weight}
    cube = counted(table, tmp_path / "cube.parquet", **more)
    assert cube.n_cells == 6  # sites × ages
    same(fw.audit_table(table, **asked(**more)), fw.audit_table(tmp_path / "cube.parquet"))


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("denominator", [None, OWN])
def test_clusters_keep_their_totals_and_signs(
    weight: str | None, denominator: Any, tmp_path: Path
) -> None:
    table = world(seed=4)
    more = {"denominator": denominator, "weight": weight, "cluster": "person"}
    counted(table, tmp_path / "cube.parquet", **more)
    names = parquet.read_schema(tmp_path / "cube.parquet").names
    assert "sum:1:num" in names
    assert "sum:1:num*num" not in names
    rows, cube = fw.audit_table(table, **asked(**more)), fw.audit_table(tmp_path / "cube.parquet")
    same(rows, cube, signs=True)


def test_large_cells_draw_the_same_signs(tmp_path: Path) -> None:
    table = world(n=9_000, seed=5).assign(site="a")
    more = {"groups": ["age"], "denominator": "words"}
    counted(table, tmp_path / "cube.parquet", **more)
    rows, cube = fw.audit_table(table, **asked(**more)), fw.audit_table(tmp_path / "cube.parquet")
    same(rows, cube, signs=True)


def test_values_far_from_0_keep_their_third_moments(tmp_path: Path) -> None:
    table = world(mean=1e4)  # 10⁵ deviations of a value from 0
    near = world(mean=0.0)
    counted(table, tmp_path / "cube.parquet", denominator="words")
    cube = fw.audit_table(tmp_path / "cube.parquet").results
    rows = fw.audit_table(near, **asked(denominator="words")).results
    kept = ["shift", "ci_low", "ci_high", "excess_shift", "excess_low", "excess_high", "p_value"]
    of_cost = [r[r["metric"] == "cost"][kept] for r in (rows, cube)]
    # Values near 10⁴ × 40 words are themselves rounded to a relative 1e-16 × 10⁵.
    pd.testing.assert_frame_equal(*of_cost, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("more", [{"denominator": OWN}, {"weight": "w"}, {"cluster": "person"}])
def test_parts_add_up(more: dict[str, Any], tmp_path: Path) -> None:
    table = world(seed=6)
    # The second half lies elsewhere, so its sums are about another constant; the clusters are cut.
    table["dense"] += np.where(table["example_id"] >= 405, 50.0, 0.0)
    table["int8"] += np.where(table["example_id"] >= 405, 50.0, 0.0)
    counted(table, tmp_path / "whole.parquet", **more)
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for path, half in zip(paths, (table[:405], table[405:]), strict=True):
        counted(half, path, **more)
    one, other = (read_cubes([path])[0] for path in paths)
    centres = [cube.outcome.sums.centre[0] for cube in (one, other)
               if cube.outcome is not None and cube.outcome.sums is not None]  # fmt: skip
    assert len({*centres}) == 2
    parts = fw.audit_table(list(map(str, paths)))
    same(fw.audit_table(tmp_path / "whole.parquet"), parts, signs=True)
    assert add([one, other]).n_cells == read_cubes([tmp_path / "whole.parquet"])[0].n_cells
    same(fw.audit_table(table, **asked(**more)), parts, signs="cluster" in more)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"denominator": "words"},
        {"denominator": OWN, "weight": "w"},
        {"cluster": "person"},
        {"task": "part", "denominator": "words"},
    ],
)
def test_sums_by_sql_are_those_of_the_rows(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = world(n=6_000, seed=9)
    # Two cells of sites and ages have more than 1,000 examples; one value of a group is missing.
    table.loc[table["site"] == "a", "site"] = None
    rows = fw.audit_table(table, **asked(**more)).results
    counted(table, tmp_path / "rows.parquet", **more)
    monkeypatch.setattr("fairweight.auditing.counts.group_by.SUMMED_FROM", 0)
    made = fw.audit_table(table, **asked(**more)).results
    counted(table, tmp_path / "sql.parquet", **more)
    kept = rows["task"].notna() | ("task" not in more)  # means over tasks: single precision
    left, right = (
        part[kept & (part["metric"] == "cost")].drop(columns=[*SIGNED] if "task" in more else [])
        for part in (rows, made)
    )
    pd.testing.assert_frame_equal(left, right, rtol=1e-9, atol=1e-12)
    one, other = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("rows", "sql"))
    pd.testing.assert_frame_equal(one, other, rtol=1e-9, atol=1e-9)


def test_many_small_cells_are_counted_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairweight.auditing.counts.group_by.SUMMED_FROM", 0)
    monkeypatch.setattr("fairweight.auditing.counts.group_by.MOST_SINGLE", 0)
    table = world()
    with align(TableSpec(sources_of(table), **asked())) as aligned:
        cube = count_view(aligned)
    assert cube.outcome is not None
    assert cube.outcome.sums is None


def test_counting_in_parts(tmp_path: Path) -> None:
    table = world()
    long = pd.concat([
        table[["example_id", "site", "age", "words"]].assign(variant=v, cost=table[v])
        for v in ("dense", "int8")
    ])  # fmt: skip
    long.to_parquet(tmp_path / "long.parquet")
    named = {"outcome": "cost", "better": "lower", "groups": ["site", "age"],
             "denominator": "words", "baseline": "dense"}  # fmt: skip
    spec = TableSpec(sources_of(str(tmp_path / "long.parquet")), **named)
    made = fw.api.count(spec, tmp_path / "cube.parquet", parts=3, workers=1)
    assert (made.n_examples, made.n_cells) == (800, 6)
    same(fw.audit_table(long, **named), fw.audit_table(tmp_path / "cube.parquet"))


def test_tasks_with_and_without_common_examples(tmp_path: Path) -> None:
    table = world(seed=7)
    apart = {"task": "part"}
    counted(table, tmp_path / "apart.parquet", **apart)
    rows = fw.audit_table(table, **asked(**apart)).results
    cube = fw.audit_table(tmp_path / "apart.parquet").results
    kept = rows["task"].notna() & (rows["metric"] == "cost")
    assert kept.sum() == 2 * 2 * 12
    pd.testing.assert_frame_equal(
        rows[kept].drop(columns=[*SIGNED]), cube[kept].drop(columns=[*SIGNED]), rtol=1e-9,
        atol=1e-12,
    )  # fmt: skip
    # The mean over tasks is linearised in single precision.
    mean = rows["task"].isna() & (rows["metric"] == "cost")
    values = ["shift", "ci_low", "ci_high", "p_value", "excess_shift", "excess_low", "excess_high"]
    pd.testing.assert_frame_equal(rows[mean][values], cube[mean][values], rtol=1e-5)
    # Examples with both tasks are drawn whole, so a cell is one of them.
    both = pd.concat([table.assign(part="north"), table.assign(part="south", int8=table["int4"])])
    held = counted(both, tmp_path / "both.parquet", **apart)
    assert held.n_cells == len(both)
    same(fw.audit_table(both, **asked(**apart)), fw.audit_table(tmp_path / "both.parquet"),
         signs=True)  # fmt: skip


def test_populations_keep_their_numbers(tmp_path: Path) -> None:
    table = world(n=200).assign(dense2=lambda t: t["dense"] + 1)
    outcome = {"dense": ["dense", "dense2"], "int8": ["int8", "int4"]}
    counted(table, tmp_path / "cube.parquet", outcome=outcome)
    assert "outcome:3" in parquet.read_schema(tmp_path / "cube.parquet").names
    rows = fw.audit_table(table, **asked(outcome=outcome))
    same(rows, fw.audit_table(tmp_path / "cube.parquet"), signs=True)


def test_identical_scores_of_a_range_and_the_gate(tmp_path: Path) -> None:
    scores = pd.DataFrame({"dense": np.tile([4.0, 2.0], 150), "int8": np.tile([4.0, 2.0], 150),
                           "site": ["a"] * 300})  # fmt: skip
    named = {"outcome": {"dense": "dense", "int8": "int8"}, "better": "higher", "range": (1, 5),
             "groups": ["site"]}  # fmt: skip
    fw.api.count(TableSpec(sources_of(scores), **named), tmp_path / "cube.parquet")
    row = fw.audit_table(tmp_path / "cube.parquet").results.iloc[0]
    assert (row["interval"], round(row["ci_high"], 3)) == ("range × Tango", 0.051)
    table = world(seed=8)
    counted(table, tmp_path / "worse.parquet", denominator="words")
    policy = {"rule": [{"metric": "cost", "by": "overall", "margin": 0.5},
                       {"metric": "cost", "by": "group", "recovery": 0.5}]}  # fmt: skip
    verdicts = [
        fw.gate(source, policy)
        for source in (str(tmp_path / "worse.parquet"),
                       TableSpec(sources_of(table), **asked(denominator="words")))
    ]  # fmt: skip
    assert verdicts[0].variants == verdicts[1].variants


def test_what_a_cube_of_sums_refuses(tmp_path: Path) -> None:
    counted(world(n=200), tmp_path / "cube.parquet")
    with pytest.raises(InputError, match=r"sums of changes from 'dense'.*--baseline int8"):
        fw.audit_table(tmp_path / "cube.parquet", baseline="int8")
    with pytest.raises(InputError, match="--outcome cannot be applied to a cube"):
        fw.audit_table(tmp_path / "cube.parquet", outcome="cost", better="higher")
    with pytest.raises(InputError, match=r"how they vary together .* Give the table"):
        fw.choose(tmp_path / "cube.parquet", objectives=["cost"])
    with pytest.raises(InputError, match="explain the table that it was counted from"):
        fw.explain(tmp_path / "cube.parquet", parts=["slices"])
    with pytest.raises(InputError, match=r"A plan counts predictions .* is a number"):
        fw.plan(tmp_path / "cube.parquet", margin=0.1)
    broken = parquet.read_table(tmp_path / "cube.parquet")
    at = broken.column_names.index("sum:1:num")
    parquet.write_table(broken.remove_column(at), tmp_path / "broken.parquet")
    with pytest.raises(InputError, match="not a readable cube"):
        fw.audit_table(tmp_path / "broken.parquet")
