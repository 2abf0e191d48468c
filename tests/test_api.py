"""What `import fairweight as fw` offers: one number, filters, files, suppression."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import fairweight as fw
from fairweight.auditing.result import RESULT_COLUMNS
from fairweight.errors import InputError

from .auditing.strategies import (
    FEW_AUDITS,
    Predictions,
    audited,
    prediction_tables,
    random_table,
    row,
)


def one_number(table: Predictions, **options: Any) -> float:
    return fw.worst_group_shift(
        list(table.label),
        {"dense": list(table.dense), "small": list(table.small)},
        sensitive_features={name: list(values) for name, values in table.groups.items()},
        **options,
    )


# ---------------------------------------------------------------- one number


@FEW_AUDITS
@given(table=prediction_tables(max_rows=150))
def test_worst_group_shift_is_the_audits(table: Predictions) -> None:
    assert one_number(table) == pytest.approx(
        audited(table).worst_group_shift(), abs=1e-12, nan_ok=True
    )


def test_worst_group_shift_by_hand() -> None:
    label = [1] * 20 + [0] * 20
    small = [0] * 3 + [1] * 17 + [1] + [0] * 19
    groups = ["x"] * 20 + ["y"] * 20
    found = fw.worst_group_shift(label, {"dense": label, "small": small}, sensitive_features=groups)
    assert found == -3 / 20


def test_worst_group_shift_of_several_variants_is_the_worst() -> None:
    label = [1, 0] * 20
    models = {"dense": label, "a": [0, *label[1:]], "b": [0, 1, *label[2:]]}
    groups = ["x"] * 20 + ["y"] * 20
    found = fw.worst_group_shift(label, models, sensitive_features=groups)
    audit = fw.audit(label, models, sensitive_features=groups, n_boot=20)
    assert found == -2 / 20
    assert audit.worst_group_shift() == pytest.approx(-2 / 20)
    assert audit.worst_group_shift("a") == pytest.approx(-1 / 20)


def test_worst_group_shift_leaves_small_and_missing_groups_out() -> None:
    label = [1, 0] * 25
    small = [0, 1] * 5 + [1, 0] * 20  # the first ten rows are lost
    groups: list[str | None] = [None] * 10 + ["x"] * 20 + ["y"] * 20
    models = {"dense": label, "small": small}
    assert fw.worst_group_shift(label, models, sensitive_features=groups) == 0.0
    audit = fw.audit(label, models, sensitive_features=groups, n_boot=20)
    assert audit.worst_group_shift() == 0.0
    groups = ["tiny"] * 5 + ["x"] * 25 + ["y"] * 20
    assert fw.worst_group_shift(label, models, sensitive_features=groups) == -5 / 25
    found = fw.worst_group_shift(label, models, sensitive_features=groups, min_group=5)
    assert found == -1.0
    nobody = fw.worst_group_shift(label, models, sensitive_features=groups, min_group=60)
    assert math.isnan(nobody)


def test_worst_group_shift_is_about_single_columns() -> None:
    table = random_table(1, 300)
    crossed = audited(table, groups=["sex", "site", "sex*site"])
    assert crossed.worst_group_shift() == pytest.approx(one_number(table), abs=1e-12)


@pytest.mark.parametrize(
    ("models", "groups", "said"),
    [
        ({"dense": [0, 1]}, ["x", "y"], "compressed"),
        ({"dense": [0, 1], "small": [0]}, ["x", "y"], "y_true has 2"),
        ({"dense": [0, 1], "small": [0, 1]}, ["x"], "sensitive_features"),
        ({"dense": [0, 1], "small": [0, 1]}, {}, "names no group"),
    ],
)
def test_worst_group_shift_refuses_in_words(models: Any, groups: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        fw.worst_group_shift([0, 1], models, sensitive_features=groups)
    assert said in str(caught.value)


# ---------------------------------------------------------------- frames


@pytest.fixture(scope="module")
def audit() -> fw.Audit:
    return audited(random_table(2, 200), groups=["sex", "site", "sex*site"])


def test_filters_have_the_same_columns_and_all_rows(audit: fw.Audit) -> None:
    for name, level in (("overall", "overall"), ("by_class", "class"), ("by_group", "group")):
        part = getattr(audit, name)
        assert tuple(part.columns) == RESULT_COLUMNS
        assert (part["by"] == level).all()
        assert len(part) == (audit.results["by"] == level).sum() > 0
        assert list(part.index) == list(range(len(part)))


def test_filters_are_copies(audit: fw.Audit) -> None:
    part = audit.overall
    part.loc[:, "baseline"] = -1.0
    assert not (audit.results["baseline"] == -1.0).any()


def test_audit_may_be_called_twice_and_shows_itself(audit: fw.Audit) -> None:
    label = [0, 1] * 10
    for _ in range(2):
        made = fw.audit(label, {"dense": label, "int8": label}, n_boot=20)
    assert repr(made).startswith("<Audit of int8 against dense, 20 examples: No loss is shown")
    assert "<" in audit._repr_html_()


def test_the_first_variant_is_the_baseline_unless_named() -> None:
    label = [0, 1] * 10
    models = {"one": label, "two": label}
    assert fw.audit(label, models, n_boot=20).result.baseline == "one"
    assert fw.audit(label, models, baseline="two", n_boot=20).result.baseline == "two"


def test_arrays_tables_and_frames_agree() -> None:
    table = random_table(3, 120)
    frame = table.frame()
    options: dict[str, Any] = {"n_boot": 20, "groups": ["sex", "site"]}
    arrays = audited(table, **options).results
    columns = {"dense": "dense", "small": "small"}
    wide = fw.audit_table(frame, baseline="dense", predictions=columns, **options).results
    pd.testing.assert_frame_equal(arrays, wide)
    long = frame.melt(
        id_vars=["example_id", "label", "sex", "site"], var_name="variant", value_name="prediction"
    )
    pd.testing.assert_frame_equal(arrays, fw.audit_table(long, baseline="dense", **options).results)


# ---------------------------------------------------------------- files


def test_save_writes_the_report_the_tables_and_the_audit(audit: fw.Audit, tmp_path: Path) -> None:
    folder = audit.save(tmp_path / "out")
    assert (folder / "report.html").stat().st_size > 1_000
    assert list((folder / "tables").iterdir())
    document = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert document["schema"] == 2
    assert document["tables"]["results"]["rows"] == len(audit.results)
    assert len(pd.read_parquet(folder / "tables" / "results.parquet")) == len(audit.results)


def test_audit_json_is_written_last(
    audit: fw.Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It marks completion: when the tables cannot be written, there is no audit.json."""
    import fairweight.auditing.archive as machine

    seen: list[bool] = []

    def fail(result: Any, folder: Path, *, csv: bool) -> None:
        seen.append((folder.parent / "audit.json").exists())
        raise OSError("no space left")

    monkeypatch.setattr(machine, "write_tables", fail)
    with pytest.raises(Exception, match="no space left"):
        audit.save(tmp_path / "out")
    assert seen == [False]
    assert not (tmp_path / "out" / "audit.json").exists()
    assert not (tmp_path / "out" / "report.html").exists()  # nothing half-written


def test_save_replaces_an_older_audit(audit: fw.Audit, tmp_path: Path) -> None:
    audit.save(tmp_path / "out")
    other = audited(random_table(4, 50))
    other.save(tmp_path / "out")
    document = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert document["n_examples"] == 50


def test_json_has_no_nan_and_every_number(audit: fw.Audit) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    document = json.loads(audit.to_json(), parse_constant=refuse)
    rows = document["results"]
    assert set(rows[0]) == set(RESULT_COLUMNS)
    for column in ("baseline", "shift", "ci_low", "p_value"):
        written = np.array([np.nan if r[column] is None else r[column] for r in rows])
        np.testing.assert_array_equal(written, audit.results[column].to_numpy())
    assert rows[0]["n"] == int(audit.results["n"].iloc[0])
    missing = [r for r in rows if r["status"].startswith("not_estimable")]
    assert missing
    assert all(r["ci_low"] is None for r in missing if r["compressed"] is None)


def test_hostile_names_reach_the_report_escaped(tmp_path: Path) -> None:
    label = ["<script>alert(1)</script>", "b"] * 20
    made = fw.audit(label, {"dense": label, "<b>int8</b>": label[::-1]},
                    sensitive_features={"<i>": ["x", "</script>"] * 20}, n_boot=20)  # fmt: skip
    page = made.save_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<b>int8</b>" not in page
    assert "<script>alert(1)" not in made._repr_html_()


# ---------------------------------------------------------------- suppression


def small_cells() -> Predictions:
    """Sixty examples: site z has 4, y has 16, x has 40; sexes 30 and 30."""
    table = random_table(5, 60)
    site = ("z",) * 4 + ("y",) * 16 + ("x",) * 40
    return Predictions(
        table.label, table.dense, table.small, {"sex": ("F", "M") * 30, "site": site}
    )


NUMBERS = ["n", "baseline", "compressed", "shift", "ci_low", "ci_high", "p_value", "excess_shift"]


def test_suppression_hides_small_rows_and_keeps_them_listed() -> None:
    audit = audited(small_cells())
    hidden = audit.suppressed()
    assert len(hidden.results) == len(audit.results)
    small = (audit.results["n"] < 10).fillna(False).to_numpy()
    assert small.sum() > 0
    assert hidden.results.loc[small, NUMBERS].isna().all().all()
    assert hidden.results.loc[small, "status"].str.startswith("suppressed").all()
    assert (hidden.results["n"].dropna() >= 10).all()
    shown = hidden.results["status"] == audit.results["status"]
    rest = [c for c in RESULT_COLUMNS if c != "level"]  # a hidden level is not named either
    pd.testing.assert_frame_equal(hidden.results.loc[shown, rest], audit.results.loc[shown, rest])
    named = hidden.results["level"].dropna()
    assert (named == audit.results["level"][named.index]).all()
    for name, column in (("per_seed", "n"), ("confusion", "count"), ("data", "n"), ("power", "n")):
        assert (getattr(hidden, name)[column] >= 10).all(), name
    assert (hidden.concentration["n"] >= 10).all()
    assert "z" not in " ".join(hidden.per_seed["group"].dropna())
    json.loads(hidden.to_json())


def test_a_single_small_level_takes_the_next_smallest_with_it() -> None:
    """Else it could be found by subtraction from the total."""
    hidden = audited(small_cells()).suppressed()
    for group in ("site=z", "site=y"):
        found = row(hidden.results, "accuracy", "group", group=group)
        assert found[NUMBERS].isna().all(), group
    assert row(hidden.results, "accuracy", "group", group="site=x")["status"] == "ok"
    # sexes have no small level: nothing to protect
    assert row(hidden.results, "accuracy", "group", group="sex=F")["status"] == "ok"


def test_what_is_hidden_is_in_no_other_table() -> None:
    hidden = audited(small_cells(), group_error=0.05).suppressed()
    for frame, column in (
        (hidden.per_seed, "group"), (hidden.group_error, "group"),
        (hidden.concentration, "part"), (hidden.power, "group"), (hidden.lead, "group"),
    ):  # fmt: skip
        assert not set(frame[column].dropna()) & {"site=z", "site=y"}
    assert hidden.results["level"].isin(["site=z"]).sum() == 0


def test_intersections_are_protected_on_their_own() -> None:
    """One small level of `sex` and one of `sex*site` are two columns, each with one to protect."""
    table = random_table(6, 120)
    sex = ("F",) * 60 + ("M",) * 54 + ("D",) * 6
    site = (("x", "y") * 30) + ("x",) * 54 + ("x",) * 6
    audit = audited(
        Predictions(table.label, table.dense, table.small, {"sex": sex, "site": site}),
        groups=["sex", "sex*site"],
    )
    hidden = audit.suppressed().results
    groups = hidden[(hidden["metric"] == "accuracy") & (hidden["by"] == "group")].set_index("group")
    single = groups[~groups.index.str.contains("&")]
    crossed = groups[groups.index.str.contains("&")]
    assert single.loc[["sex=D", "sex=M"], "n"].isna().all()
    assert crossed.loc["sex=D & site=x", "n"] is pd.NA
    assert crossed["n"].isna().sum() == 2


def test_small_classes_are_protected_like_small_groups() -> None:
    """Two classes, one of 5: the other's recall and the accuracy would tell it."""
    label = ["a"] * 55 + ["b"] * 5
    small = ["a"] * 50 + ["b"] * 5 + ["a"] * 2 + ["b"] * 3
    audit = fw.audit(label, {"dense": label, "small": small}, positive="a", n_boot=20)
    hidden = audit.suppressed().results
    for cls in ("a", "b"):
        assert math.isnan(row(hidden, "recall", "class", cls=cls)["compressed"])


def test_suppression_at_another_limit() -> None:
    audit = audited(small_cells())
    hidden = audit.suppressed(least=20)
    assert (hidden.results["n"].dropna() >= 20).all()
    assert any("fewer than 20" in note for note in hidden.notes)
