"""A stored audit reads back as it was, from its folder, from one document, or from its cube."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairweight as fw
from fairweight import cli
from fairweight.auditing import archive
from fairweight.auditing.columns import DIVISORS, SOME_DIVISORS
from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import AUDIT_TABLES
from fairweight.errors import InputError

N = 300
QUICK: dict[str, Any] = {"n_boot": 60, "random_state": 3}
FIXTURES = Path(__file__).parents[1] / "fixtures" / "audits-0.1.0"
LEFT_TO_THE_CUBE = frozenset(
    {"accuracy", "recall", "precision", "cev", "sde", "group_gap", "flips", "worst_group_shift"}
    | {"heterogeneity", "selection_rate"}
)
MORE_METRICS = tuple(LEFT_TO_THE_CUBE)
pytestmark = pytest.mark.usefixtures("few_metrics")
KEYS = ["variant", "metric", "by", "group", "class", "task", "scope"]


def people(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    label = rng.choice(["a", "b", "c"], N)
    dense = np.where(rng.random(N) < 0.9, label, "a")
    return {
        "example_id": np.arange(N),
        "label": label,
        "sex": rng.choice(["F", "M"], N),
        "age": rng.choice(["old", "young"], N),
        "person": rng.integers(0, 50, N),
        "sampled": rng.integers(1, 5, N) / 2,
        "pred_dense": dense,
        "pred_int8": np.where(rng.random(N) < 0.85, dense, "b"),
    }


@pytest.fixture(scope="module", autouse=True)
def no_page() -> Iterator[None]:
    """No page is drawn beside an audit: nothing here looks at it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
        yield


# An audit never changes, so that tests may share it.


@cache
def pair(**more: Any) -> fw.Audit:
    groups = ["sex", "age", "sex*age"]
    return fw.audit_table(people(), baseline="dense", groups=groups, **(QUICK | more))


@cache
def population() -> fw.Audit:
    rng = np.random.default_rng(1)
    label = np.asarray(people()["label"])
    sides = {
        name: np.stack([np.where(rng.random(N) < right, label, "a") for _ in range(3)], axis=1)
        for name, right in (("dense", 0.9), ("pruned", 0.8))
    }
    return fw.audit(label, sides, sensitive_features={"sex": people()["sex"]}, **QUICK)


@cache
def tasks(**more: Any) -> fw.Audit:
    held = pd.DataFrame(people()).drop(columns=["person", "sampled"])
    parts = [held.assign(task=name) for name in ("hat", "glasses")]
    return fw.audit_table(
        pd.concat(parts), baseline="dense", task="task", groups=["sex"], **(QUICK | more)
    )


@cache
def scores() -> fw.Audit:
    rng = np.random.default_rng(2)
    label = rng.integers(0, 2, N)
    sure = {name: np.round(0.6 * label + 0.4 * rng.random(N), 3) for name in ("dense", "small")}
    answers = {name: (value > 0.5).astype(int) for name, value in sure.items()}
    return fw.audit(
        label, answers, y_score=sure, sensitive_features={"sex": people()["sex"]}, **QUICK
    )


AUDITS: dict[str, Callable[[], fw.Audit]] = {
    "pair": pair,
    "explained": lambda: pair(explain=("slices", "properties")),
    "clusters": lambda: pair(cluster="person"),
    "weights": lambda: pair(weight="sampled"),
    "group error": lambda: pair(group_error=0.05),
    "population": population,
    "tasks": tasks,
    "scores": scores,
}


def same(left: AuditResult, right: AuditResult) -> None:
    """Every frame with its types, and every other field."""
    for name in AUDIT_TABLES:
        pd.testing.assert_frame_equal(getattr(left, name), getattr(right, name))
    assert list(left.explanations) == list(right.explanations)
    for name, frame in left.explanations.items():
        pd.testing.assert_frame_equal(frame, right.explanations[name])
    assert (left.variants_table is None) == (right.variants_table is None)
    if left.variants_table is not None and right.variants_table is not None:
        pd.testing.assert_frame_equal(left.variants_table, right.variants_table)
    for name in ("baseline", "variants", "classes", "positive", "tasks", "groupings", "pairing",
                 "single_columns", "n_examples", "test_set", "notes", "absent"):  # fmt: skip
        assert getattr(left, name) == getattr(right, name), name
    assert json.loads(json.dumps(left.provenance.options)) == right.provenance.options
    # Where it was saved is known only of what was read.
    asked = [{**p.request, "out": None} for p in (left.provenance, right.provenance)]
    assert asked[0] == asked[1]


def test_of_many_comparisons_limits_are_made_and_stored_at_some_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate then passes and fails later, never sooner; with a policy all levels are there."""
    exact = tasks().result.bounds
    monkeypatch.setattr("fairweight.auditing.pipeline.MANY_COMPARISONS", 1)
    coarse = tasks.__wrapped__()
    for j in DIVISORS:
        used = next(level for level in SOME_DIVISORS if level >= j)
        for end in ("low", "high"):
            np.testing.assert_allclose(
                coarse.result.bounds[f"{end}_{j}"], exact[f"{end}_{used}"], rtol=1e-12
            )
    coarse.save(tmp_path / "audit")
    stored = pd.read_parquet(tmp_path / "audit" / "tables" / "bounds.parquet")
    empty = [j for j in DIVISORS if stored[f"low_{j}"].isna().all()]
    assert empty == [j for j in DIVISORS if j not in SOME_DIVISORS]
    same(coarse.result, fw.load(tmp_path / "audit").result)
    shutil.rmtree(tmp_path / "audit" / "tables")
    lone = fw.load(tmp_path / "audit" / "audit.json", lone=True).result.bounds
    keys = ["metric", "by", "group", "class", "task", "quantity"]
    kept = lone[keys].merge(coarse.result.bounds, on=keys)
    assert len(lone) == len(kept) > 10
    pd.testing.assert_frame_equal(lone[list(kept)], kept)
    judged = tasks.__wrapped__(confirmatory=[("accuracy", "group")])
    pd.testing.assert_frame_equal(judged.result.bounds, exact)


@pytest.mark.parametrize("name", AUDITS)
def test_a_folder_and_a_document_read_back_as_the_same_audit(name: str, tmp_path: Path) -> None:
    made = AUDITS[name]()
    made.save(tmp_path / "audit")
    (tmp_path / "whole.json").write_text(made.to_json())
    same(made.result, fw.load(tmp_path / "whole.json").result)
    again = fw.load(tmp_path / "audit")
    same(made.result, again.result)
    again.save(tmp_path / "again")  # the cube is copied
    for file in (tmp_path / "audit" / "tables").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / "tables" / file.name).read_bytes()


def test_an_audit_is_found_in_the_folder_above_and_by_its_file(tmp_path: Path) -> None:
    pair().save(tmp_path / "audit")
    for place in (tmp_path, tmp_path / "audit" / "audit.json"):
        same(pair().result, fw.load(place).result)


@pytest.mark.parametrize("name", ["pair", "population", "tasks-clusters"])
def test_schema_1_is_read_and_written_as_schema_2(name: str, tmp_path: Path) -> None:
    old = fw.load(FIXTURES / name)
    old.save(tmp_path / "new")
    same(old.result, fw.load(tmp_path / "new").result)
    held = json.loads((tmp_path / "new" / "audit.json").read_text())
    assert held["schema"] == 2
    assert "nothing was counted" in held["cube"]["why_not"]


# ---------------------------------------------------------------- what is in audit.json


def test_audit_json_holds_the_confirmatory_rows(tmp_path: Path) -> None:
    made = pair(confirmatory=(("fnr", "group"),))
    made.save(tmp_path)
    held = json.loads((tmp_path / "audit.json").read_text())
    rows = pd.DataFrame(held["results"])
    there = made.results[["metric", "by"]].drop_duplicates().itertuples(index=False, name=None)
    assert set(zip(rows["metric"], rows["by"], strict=True)) == {
        (metric, by)
        for metric, by in there
        if metric in ("accuracy", "recall", "fnr") and by in ("overall", "group", "class")
    }
    assert held["tables"]["results"] == {"rows": len(made.results), "here": len(rows)}
    assert set(held["request"]) == {"tables", "options", "out"}
    assert set(held["finding"]) == {"headline", "beyond_retraining", "brief", "variants"}
    assert "power" not in held
    family = next(f for f in held["families"] if (f["metric"], f["by"]) == ("accuracy", "group"))
    assert family["rows"] == family["here"] == 8  # sex, age, and four intersections
    assert {f["held"] for f in held["families"]} == {"stored"}
    assert sum(f["rows"] for f in held["families"]) == len(made.results)


def test_it_stays_small_with_many_groups(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 9_000)
    other = np.where(rng.random(9_000) < 0.9, label, 0)
    site = np.arange(9_000) % 3_000  # three examples each
    made = fw.audit(
        label, {"dense": label, "int8": other}, sensitive_features={"site": site}, **QUICK
    )
    made.save(tmp_path)
    held = json.loads((tmp_path / "audit.json").read_text())
    assert len(held["results"]) == archive.MOST_ROWS
    assert len(held["bounds"]) <= archive.MOST_ROWS
    assert (tmp_path / "audit.json").stat().st_size < 4_000_000
    assert len(fw.load(tmp_path).results) == len(made.results)
    # The limits of 3,000 groups are not here, so a rule about groups needs the folder.
    lone = fw.load(_alone(tmp_path), lone=True)
    assert ("accuracy", "group") in lone.result.absent
    assert ("accuracy", "overall") not in lone.result.absent


def test_the_request_is_stored_as_it_is(tmp_path: Path) -> None:
    made = pair()
    asked = {"tables": {"sources": ["a.csv"], "groups": None}, "options": {"alpha": 0.05}}
    origin = replace(made.result.provenance, request=asked)
    fw.Audit(replace(made.result, provenance=origin)).save(tmp_path)
    stored = {**asked, "out": str(tmp_path)}
    assert json.loads((tmp_path / "audit.json").read_text())["request"] == stored
    assert fw.load(tmp_path).result.provenance.request == stored


# ---------------------------------------------------------------- a lone audit.json


def _alone(folder: Path) -> Path:
    """The audit.json of a folder, moved away from its tables."""
    place = folder / "elsewhere" / "audit.json"
    place.parent.mkdir()
    shutil.copy(folder / "audit.json", place)
    return place


def _policy(folder: Path, metric: str, by: str) -> Path:
    path = folder / f"{metric}.toml"
    rule = f'metric = "{metric}"\nby = "{by}"\nmargin = 0.9\n'
    path.write_text(f"min_group_size = 20\n[[rule]]\n{rule}")
    return path


def test_a_lone_audit_json_is_gated_where_its_rows_suffice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair().save(tmp_path)
    lone = _alone(tmp_path)
    for metric, by in (("accuracy", "group"), ("accuracy", "intersection"), ("recall", "class")):
        words = ["--policy", str(_policy(tmp_path, metric, by)), "--json"]
        assert cli.run(["gate", str(lone), *words, str(tmp_path / "lone.json")]) == cli.DONE
        assert cli.run(["gate", str(tmp_path), *words, str(tmp_path / "whole.json")]) == cli.DONE
        assert (tmp_path / "lone.json").read_text() == (tmp_path / "whole.json").read_text()
        (tmp_path / "lone.json").unlink()
        (tmp_path / "whole.json").unlink()
    capsys.readouterr()
    policy = str(_policy(tmp_path, "precision", "class"))
    assert cli.run(["gate", str(lone), "--policy", policy]) == cli.BAD_INPUT
    told = " ".join(capsys.readouterr().err.split())
    assert 'does not hold the limits of precision by = "class"; give the folder' in told
    # With its tables it is judged, class by class.
    assert cli.run(["gate", str(tmp_path), "--policy", policy]) in (cli.DONE, cli.CANNOT_TELL)


def test_everything_else_asks_for_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair().save(tmp_path)
    lone = _alone(tmp_path)
    with pytest.raises(InputError, match=r"stands without its folder tables/.*give the folder"):
        fw.load(lone)
    assert cli.run(["report", str(lone), "--format", "md"]) == cli.BAD_INPUT
    assert "give the folder" in " ".join(capsys.readouterr().err.split())
    part = fw.load(lone, lone=True)
    assert 0 < len(part.results) < len(fw.load(tmp_path).results)
    with pytest.raises(InputError, match="cannot be written again; give the folder"):
        part.to_json()


# ---------------------------------------------------------------- rows left to the cube


@pytest.mark.parametrize("name", ["pair", "clusters", "weights", "population", "tasks", "scores"])
def test_computed_families_are_made_again_from_the_cube(name: str, tmp_path: Path) -> None:
    made = AUDITS[name]().result
    there = made.results[["metric", "by"]].drop_duplicates().itertuples(index=False, name=None)
    families = {key for key in there if key[0] in LEFT_TO_THE_CUBE}
    assert len(families) > 12
    archive.write(made, tmp_path, computed=families)
    stored = pd.read_parquet(tmp_path / "tables" / "results.parquet")
    assert not archive._of_families(stored, families).any()
    held = json.loads((tmp_path / "audit.json").read_text())
    assert {(f["metric"], f["by"]) for f in held["families"] if f["held"] == "computed"} == families
    again = fw.load(tmp_path).result
    left, right = (one.results.sort_values(KEYS, ignore_index=True) for one in (made, again))
    pd.testing.assert_frame_equal(left, right, rtol=1e-12, atol=0)
    same(replace(made, results=again.results), again)


def test_what_a_cube_cannot_say_is_not_left_to_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="auc by overall cannot be computed from a cube"):
        archive.write(scores().result, tmp_path, computed=[("auc", "overall")])
    train = {"label": ["a", "b", "c"] * 9, "sex": ["F", "M", "M"] * 9}
    groups = ["sex", "age", "sex*age"]
    trained = fw.audit_table(people(), baseline="dense", groups=groups, train=train, **QUICK)
    with pytest.raises(ValueError, match="cannot be left to a cube"):
        archive.write(trained.result, tmp_path, computed=[("recall", "class")])
    hidden = pair().suppressed()
    with pytest.raises(ValueError, match="cannot be left to a cube"):
        archive.write(hidden.result, tmp_path, computed=[("recall", "class")])


def test_a_cube_of_another_audit_is_refused(tmp_path: Path) -> None:
    archive.write(pair().result, tmp_path / "one", computed=[("recall", "class")])
    cube = tmp_path / "one" / "tables" / "cube.parquet"
    cube.unlink()
    with pytest.raises(InputError, match=r"computed from tables/cube\.parquet, which is not there"):
        fw.load(tmp_path / "one")
    population().save(tmp_path / "two")
    shutil.copy(tmp_path / "two" / "tables" / "cube.parquet", cube)
    with pytest.raises(InputError, match="of other models"):
        fw.load(tmp_path / "one")
    other = {**people(), "label": np.array(["a", "b"] * (N // 2))}
    fw.audit_table(other, baseline="dense", groups=["sex", "age", "sex*age"], **QUICK).save(
        tmp_path / "three"
    )
    shutil.copy(tmp_path / "three" / "tables" / "cube.parquet", cube)
    with pytest.raises(InputError, match="of one audit"):
        fw.load(tmp_path / "one")


# ---------------------------------------------------------------- the cube and who is in it


def test_the_cube_names_no_cluster_and_no_example(tmp_path: Path) -> None:
    held = people() | {"person": np.array([f"person-{i}" for i in people()["person"]])}
    fw.audit_table(held, baseline="dense", cluster="person", groups=["sex"], **QUICK).save(tmp_path)
    cube = pq.read_table(tmp_path / "tables" / "cube.parquet")
    units = cube.column("unit").unique().to_pylist()
    assert sorted(units) == [f"{i:024x}" for i in range(len(units))]
    assert b"person-" not in (tmp_path / "tables" / "cube.parquet").read_bytes()
    same_cube = tmp_path / "tables" / "cube.parquet"
    with pytest.raises(InputError, match=r"is the cube of an audit, .* cannot be added to others"):
        fw.audit_table([str(same_cube), str(same_cube)], **QUICK)


def test_a_cube_with_small_cells_is_not_published(tmp_path: Path) -> None:
    pair().suppressed().save(tmp_path)
    assert not (tmp_path / "tables" / "cube.parquet").exists()
    held = json.loads((tmp_path / "audit.json").read_text())
    assert held["cube"]["why_not"]
    assert any("tables/cube.parquet) were left out too" in note for note in held["notes"])
    again = fw.load(tmp_path).suppressed()  # nothing is left to hide, and nothing is said twice
    assert sum("cube.parquet" in note for note in again.notes) == 1


def test_a_cube_without_small_cells_is_published(tmp_path: Path) -> None:
    label = np.repeat(["a", "b"], 100)
    other = np.where(np.arange(200) % 5 == 0, "b", label)  # 20 of 100 change
    made = fw.audit(label, {"dense": label, "int8": other}, **QUICK)
    made.save(tmp_path / "all")
    fw.load(tmp_path / "all").suppressed().save(tmp_path / "published")  # read from its file
    cube = pq.read_table(tmp_path / "published" / "tables" / "cube.parquet")
    assert sorted(cube.column("count").to_pylist()) == [20, 80, 100]
    # 11 and more: the cell of 20 would be small.
    made.suppressed(21).save(tmp_path / "less")
    assert not (tmp_path / "less" / "tables" / "cube.parquet").exists()


def test_a_cube_of_nearly_every_row_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_CELLS", 3)
    pair().save(tmp_path)
    assert not (tmp_path / "tables" / "cube.parquet").exists()
    held = json.loads((tmp_path / "audit.json").read_text())
    assert "nearly one per row" in held["cube"]["why_not"]
    assert len(fw.load(tmp_path).results) == held["tables"]["results"]["rows"]


# ---------------------------------------------------------------- files that are not as they were


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pair().save(tmp_path_factory.mktemp("stored") / "audit")


def changed(stored: Path, tmp_path: Path, **columns: Any) -> Path:
    """A copy whose results have other columns."""
    folder = tmp_path / "audit"
    shutil.copytree(stored, folder)
    path = folder / "tables" / "results.parquet"
    table = pq.read_table(path)
    for name, change in columns.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, change(table.column(name)))
    pq.write_table(table, path)
    return folder


def second(value: Any) -> Callable[[pa.ChunkedArray], pa.Array]:
    """The column with another value in its second row."""

    def change(column: pa.ChunkedArray) -> pa.Array:
        held = column.to_pylist()
        return pa.array([held[0], value, *held[2:]], type=column.type)

    return change


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"by": second("everybody")}, "'results.by' holds 'everybody', which the audit does not "
                                      "have in row 2"),
        ({"variant": second("other")}, "'results.variant' holds 'other'"),
        ({"metric": second(None)}, "'results.metric' is empty in row 2"),
        ({"n": second(-3)}, "'results.n' holds -3"),
        ({"shift": second(1e300)}, "'results.shift' holds 1e+300"),
        ({"shift": lambda c: pa.array(["x"] * len(c))}, "'results.shift' should be numbers or"),
        ({"status": lambda c: pa.array([[1]] * len(c))}, "'results.status' should be text or"),
        ({"equivalent": lambda c: pa.array([1] * len(c))}, "'results.equivalent' should be true or "
                                                           "false or empty"),
    ],
)  # fmt: skip
def test_parquet_that_does_not_fit_is_refused(
    stored: Path, tmp_path: Path, columns: Any, sentence: str
) -> None:
    with pytest.raises(InputError) as refusal:
        fw.load(changed(stored, tmp_path, **columns))
    assert sentence in str(refusal.value)


def test_tables_of_another_audit_are_refused(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(stored, folder)
    path = folder / "tables" / "power.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(InputError, match=r"'tables/power\.parquet' has \d+ rows where audit\.json"):
        fw.load(folder)
    path.write_bytes(b"PAR1 no parquet")
    with pytest.raises(InputError, match=r"'tables/power\.parquet' beside audit\.json cannot be"):
        fw.load(folder)
    path.unlink()
    with pytest.raises(InputError, match=r"without its folder tables/ \(tables/power\.parquet\)"):
        fw.load(folder)


def test_no_table_outside_the_folder_is_read(stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(stored, folder)
    path = folder / "tables" / "power.parquet"
    outside = tmp_path / "power.parquet"
    shutil.move(path, outside)
    path.symlink_to(outside)
    with pytest.raises(InputError, match="does not lie inside"):
        fw.load(folder)
    document = json.loads((stored / "audit.json").read_text())
    document["tables"]["../../power"] = {"rows": 1, "here": 0}
    (folder / "audit.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"has a table called '\.\./\.\./power'"):
        fw.load(folder)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d.pop("tables"), "tables"),
        (lambda d: d["tables"].pop("results"), "tables.results"),
        (lambda d: d["tables"]["power"].update(rows=-1), "tables.power.rows"),
        (lambda d: d.pop("families"), "families"),
        (lambda d: d["families"][0].update(held="elsewhere"), "families.0"),
        (lambda d: d["families"][0].update(by="x"), "families.0"),
        (lambda d: d["families"][0].pop("rows"), "families.0.rows"),
        (lambda d: d.update(request=[1]), "request"),
        (lambda d: d["provenance"]["options"].update(filters=3), "provenance.options.filters"),
    ],
)
def test_fields_of_another_form_are_named(
    stored: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object], field: str
) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(stored, folder)
    document = json.loads((folder / "audit.json").read_text())
    change(document)
    (folder / "audit.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=f"'{field}'"):
        fw.load(folder)


def test_rows_in_the_document_are_as_many_as_it_says() -> None:
    document = json.loads(pair().to_json())
    document["power"].pop()
    with pytest.raises(InputError, match=r"'power' has .* rows in place of"):
        archive.from_json(json.dumps(document))


def test_an_explanation_cannot_take_the_name_of_a_table() -> None:
    made = pair().result
    with pytest.raises(ValueError, match="cannot be called 'cube'"):
        archive.to_json(replace(made, explanations={"cube": made.power}))
