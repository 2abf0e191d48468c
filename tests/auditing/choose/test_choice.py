"""Choosing as a whole: values are the audit's, draws are shared, rows are held out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.choose.choice import Choice, Wishes, choice_from, split
from fairweight.auditing.choose.objectives import read_objective, read_requirement, read_term
from fairweight.auditing.choose.tables import confirmed_frame
from fairweight.auditing.choose.terms import ChoiceRequest, TermValues
from fairweight.auditing.compare.comparison import Options
from fairweight.auditing.counts.group_by import count
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

NAMES = ("dense", "a", "b")
WIDE: dict[str, Any] = {
    "predictions": {name: name for name in NAMES},
    "scores": {name: f"s_{name}" for name in NAMES},
    "groups": ["sex", "age"],
    "baseline": "dense",
}
FEW = Options(n_boot=60)
MODELS = pd.DataFrame(
    {"variant": NAMES, "sparsity": [0.0, 0.5, 0.9], "size_bytes": [900, 500, 100]}
)


def chosen(
    source: Any, tables: dict[str, Any], wishes: Wishes, options: Options, **more: Any
) -> Choice:
    return choice_from(TableSpec(sources_of(source), **tables), wishes, options, **more)


def people(n: int = 400, first: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(n + first)
    label = rng.integers(0, 2, n)
    frame = {
        "example_id": first + np.arange(n), "label": label,
        "sex": rng.choice(["F", "M"], n), "age": rng.choice(["o", "y"], n),
        "person": (first + np.arange(n)) // 4,
    }  # fmt: skip
    for name, errs in zip(NAMES, (0.1, 0.12, 0.3), strict=True):
        answer = np.where(rng.random(n) < errs, 1 - label, label)
        frame[name] = answer
        frame[f"s_{name}"] = np.clip(0.2 + 0.6 * answer + rng.normal(0, 0.1, n), 0, 1)
    return pd.DataFrame(frame)


def value(found: Any, variant: str, term: str, table: str = "choice_values") -> float:
    frame = found.tables[table]
    row = frame[(frame["variant"] == variant) & (frame["term"] == term)]
    return float(row["value"].iloc[0])


TERMS = {
    "accuracy": ("overall", None), "recall": ("overall", None), "kappa": ("overall", None),
    "class_gap": ("overall", None), "class_shortfall": ("overall", None),
    "cev_pp": ("overall", None), "sde": ("overall", None), "fpr": ("overall", None),
    "auc": ("overall", None), "brier": ("overall", None), "ece": ("overall", None),
    "uncertainty": ("overall", None), "tcb": ("overall", None),
    "accuracy@sex=F": ("group", "sex=F"), "auc@sex=F": ("group", "sex=F"),
    "worst_group@sex": ("grouping", "sex"), "group_gap@age": ("grouping", "age"),
    "worst_group_shift@age": ("grouping", "age"),
    "fnr_group_gap@sex": ("grouping", "sex"),
}  # fmt: skip


def test_the_values_are_those_of_the_audit() -> None:
    table = people()
    audit = fw.audit_table(table, n_boot=20, **WIDE).results
    wishes = Wishes([f"{name}:max" for name in TERMS])
    found = chosen(table, WIDE, wishes, Options(n_boot=20))
    for name, (by, group) in TERMS.items():
        rows = audit[(audit["variant"] == "a") & (audit["metric"] == name.partition("@")[0])]
        rows = rows[(rows["by"] == by) & (rows["scope"] == "model")]
        rows = rows if group is None else rows[rows["group"] == group]
        assert value(found, "a", name) == pytest.approx(rows["compressed"].iloc[0]), name


def test_without_a_place_the_worst_column_counts() -> None:
    wishes = Wishes(["worst_group", "group_gap", "worst_group@sex", "worst_group@age",
                     "group_gap@sex", "group_gap@age", "recall@class=0"])  # fmt: skip
    table = people()
    found = chosen(table, WIDE, wishes, FEW)
    for variant in NAMES:
        both = [value(found, variant, f"worst_group@{column}") for column in ("sex", "age")]
        assert value(found, variant, "worst_group") == min(both)
        gaps = [value(found, variant, f"group_gap@{column}") for column in ("sex", "age")]
        assert value(found, variant, "group_gap") == max(gaps)
    zeros = table[table["label"] == 0]
    assert value(found, "b", "recall@class=0") == pytest.approx((zeros["b"] == 0).mean())


def test_a_baseline_loses_nothing_to_itself() -> None:
    found = chosen(people(), WIDE, Wishes(["worst_group_shift", "cev_pp"]), FEW)
    assert value(found, "dense", "worst_group_shift") == 0
    assert value(found, "dense", "cev_pp") == 0
    assert found.chosen == "dense"


def test_members_are_averaged() -> None:
    table = people()
    table["a2"] = np.where(np.arange(400) % 5 == 0, 1 - table["label"], table["label"])
    given = {"predictions": {"dense": "dense", "a": ["a", "a2"]}, "groups": ["sex"],
             "baseline": "dense"}  # fmt: skip
    terms = ["accuracy", "class_gap", "worst_group_shift", "cev_pp"]
    audit = fw.audit_table(table, n_boot=20, **given).results
    found = chosen(table, given, Wishes(terms), FEW)
    for name in terms:
        rows = audit[(audit["metric"] == name) & audit["by"].isin(["overall", "grouping"])]
        rows = rows[rows["scope"] == "model"]
        assert value(found, "a", name) == pytest.approx(rows["compressed"].iloc[0]), name


def test_the_smallest_that_keeps_what_it_must() -> None:
    wishes = Wishes(["size_bytes"], ["accuracy>=0.8"])
    found = chosen(people(), WIDE | {"variants": MODELS}, wishes, FEW)
    assert found.chosen == "a"
    assert found.qualifying == ("dense", "a")
    table = found.tables["choice"].set_index("variant")
    assert table.loc["a", "p_best"] == 1
    assert table["rank"].tolist()[:2] == [1, 2]
    assert pd.isna(table.loc["b", "rank"])
    assert not table.loc["b", "qualifies"]


def test_two_objectives_without_weights_give_a_frontier_and_ranges() -> None:
    wishes = Wishes(["accuracy", "sparsity"])
    found = chosen(people(), WIDE | {"variants": MODELS}, wishes, FEW)
    table = found.tables["choice"].set_index("variant")
    assert found.chosen is None
    assert table["frontier"].to_dict()["b"] == "frontier"
    assert table["p_best"].isna().all()
    ranges = found.tables["choice_weights"]
    assert ranges["ratio_low"].iloc[0] == 0
    assert ranges["ratio_high"].iloc[-1] == np.inf


def test_copies_tie_and_are_flagged() -> None:
    table = people()
    table["b"] = table["a"]
    given = {"predictions": {n: n for n in NAMES}, "groups": ["sex"], "baseline": "dense"}
    found = chosen(table, given, Wishes(["accuracy"], excluded=["dense"]), FEW)
    rows = found.tables["choice"].set_index("variant")
    assert found.chosen == "a"
    assert rows["in_best_set"].tolist() == [True, True]
    assert rows["tied"].to_dict() == {"a": False, "b": True}
    assert rows["p_best"].tolist() == pytest.approx([0.5, 0.5], abs=0.02)
    assert rows["frontier"].tolist() == ["frontier", "frontier"]


def test_none_qualifies_and_the_nearest_is_named() -> None:
    wishes = Wishes(["size_bytes"], ["accuracy>=0.95", "size_bytes<=600"])
    found = chosen(people(), WIDE | {"variants": MODELS}, wishes, FEW)
    assert found.none_qualifies
    assert found.chosen is None
    assert found.nearest is not None
    name, missed = found.nearest
    assert name == "a"
    assert missed == {"accuracy >= 0.95": pytest.approx(0.95 - value(found, "a", "accuracy"))}


def test_numbers_do_not_depend_on_other_wishes_or_on_chance() -> None:
    one = chosen(people(), WIDE, Wishes(["accuracy"]), FEW)
    other = chosen(people(), WIDE, Wishes(["accuracy", "kappa"]), FEW)
    limits = [
        frame[frame["term"] == "accuracy"][["value", "low", "high"]].to_numpy()
        for frame in (one.tables["choice_values"], other.tables["choice_values"])
    ]
    assert np.array_equal(*limits)
    again = chosen(people(), WIDE, Wishes(["accuracy"]), FEW)
    pd.testing.assert_frame_equal(one.tables["choice"], again.tables["choice"])


def test_tasks_are_averaged_and_drawn_together() -> None:
    one, other = people(200), people(200, first=1)
    other["example_id"] = one["example_id"]
    long = pd.concat([one.assign(task="x"), other.assign(task="y")])
    given = {"predictions": {n: n for n in NAMES}, "groups": [], "baseline": "dense"}
    found = chosen(long, given, Wishes(["accuracy"]), FEW)
    means = [(part["a"] == part["label"]).mean() for part in (one, other)]
    assert value(found, "a", "accuracy") == pytest.approx(np.mean(means))
    assert found.n_examples == 200


# --- rows that were not chosen on ---------------------------------------------------------------


def test_clusters_are_held_out_whole_and_examples_once() -> None:
    table = people()
    for cluster in (None, "person"):
        with align(TableSpec(sources_of(table), cluster=cluster, **WIDE)) as aligned:
            cube = count(aligned)
        kept, held = split(cube, 0.25, np.random.default_rng(1))
        assert kept.count.sum() + held.count.sum() == 400
        assert held.count.sum() == pytest.approx(100, abs=4)
        assert not set(kept.unit_names) & set(held.unit_names)
        assert kept.n_examples == kept.count.sum()


def test_a_confirming_table_may_lack_a_class() -> None:
    """The positive class is looked up there anew: its number is another."""
    fresh = people(200, first=1000)
    fresh = fresh[fresh["label"] == 1]
    found = chosen(people(), WIDE, Wishes(["fnr"]), FEW, confirm=fresh)
    rows = found.tables["choice_confirmed"].set_index("variant")
    assert rows.loc["b", "confirmed"] == pytest.approx((fresh["b"] == 0).mean())


def test_confirmed_on_a_share_and_on_another_table() -> None:
    wishes = Wishes(["size_bytes"], ["accuracy>=0.8"])
    given = WIDE | {"variants": MODELS}
    half = chosen(people(), given, wishes, FEW, confirm_share=0.5)
    assert (half.n_examples, half.n_confirmed) == (200, 200)
    fresh = people(300, first=1000)
    other = chosen(people(), given, wishes, FEW, confirm=fresh)
    rows = other.tables["choice_confirmed"]
    row = rows[(rows["variant"] == "a") & (rows["term"] == "accuracy")].iloc[0]
    assert row["confirmed"] == pytest.approx((fresh["a"] == fresh["label"]).mean())
    assert row["standing"].startswith("met")


def test_more_examples_than_a_share_can_be_held_out_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairweight.auditing.choose.choice.MOST_DIVIDED", 399)
    with pytest.raises(InputError, match=r"400 examples, and --confirm-share .* at most 399"):
        chosen(people(), WIDE, Wishes(["fnr"]), FEW, confirm_share=0.5)


def test_of_two_requirements_the_less_sure_standing_is_confirmed() -> None:
    """4 of 5 is above 0.5 in every draw, and above 0.75 in three of four: met, within noise."""
    term = read_term("accuracy", [])
    values, draws = np.array([[0.8]]), np.array([0.8, 0.6, 0.9, 0.8]).reshape(4, 1, 1)
    known = TermValues(("a",), (term,), values, draws)
    surely, nearly = (read_requirement(f"accuracy>={limit}", []) for limit in (0.5, 0.75))
    for requirements in ((surely, nearly), (nearly, surely)):
        request = ChoiceRequest((read_objective("accuracy", []),), requirements)
        made = confirmed_frame(request, known, known, np.array([True]))
        assert made["standing"].tolist() == ["met, within noise"]


def test_rows_that_were_chosen_on_cannot_confirm() -> None:
    with pytest.raises(InputError, match="on which it was made: 100 examples are in both"):
        chosen(people(), WIDE, Wishes(["accuracy"]), FEW, confirm=people(300, first=300))
    fresh = people(300, first=1000)
    fresh["person"] = 7
    with pytest.raises(InputError, match="1 cluster is in both"):
        chosen(people(), WIDE | {"cluster": "person"}, Wishes(["accuracy"]), FEW, confirm=fresh)


def test_rows_under_other_identities_cannot_confirm() -> None:
    again = people()
    again["example_id"] += 10_000
    with pytest.raises(InputError, match="400 of 400 rows of one table are in the other"):
        chosen(people(), WIDE, Wishes(["accuracy"]), FEW, confirm=again)
    part = pd.concat([again[:120], people(280, first=1000)])
    with pytest.raises(InputError, match="120 of 400 rows of one table are in the other"):
        chosen(people(), WIDE, Wishes(["accuracy"]), FEW, confirm=part)
    bare = {key: held for key, held in WIDE.items() if key != "scores"}
    found = chosen(people(), bare, Wishes(["accuracy"]), FEW, confirm=people(300, first=1000))
    assert any("checked by identity alone" in note for note in found.notes)


def test_near_the_best_and_the_margin() -> None:
    """`dense` errs in about 10 %, `a` in 12 % and `b` in 30 %."""
    found = chosen(people(4000), WIDE, Wishes(["accuracy"]), FEW)
    assert found.asked.margin == 0.02
    rows = found.tables["choice"].set_index("variant")
    assert rows.loc["dense", "p_within_margin"] > 0.99
    assert rows.loc["b", "p_within_margin"] == 0
    wide = chosen(people(4000), WIDE, Wishes(["accuracy"], margin=0.5), FEW)
    assert wide.tables["choice"]["p_within_margin"].tolist() == [1.0, 1.0, 1.0]
    exact = chosen(people(4000), WIDE, Wishes(["accuracy"], margin=0.0), FEW).tables["choice"]
    assert (exact["p_within_margin"] >= exact["p_best"]).all()


def test_a_value_has_no_margin_of_its_own() -> None:
    given = WIDE | {"variants": MODELS}
    wishes = Wishes(weights=["accuracy=1", "sparsity=0.1"])
    found = chosen(people(), given, wishes, FEW)
    assert found.asked.margin is None
    assert found.tables["choice"]["p_within_margin"].isna().all()
    told = chosen(people(), given, replace(wishes, margin=0.05), FEW)
    assert told.tables["choice"]["p_within_margin"].notna().all()
    hundred = chosen(people(), given, Wishes(weights=["accuracy=100"]), FEW)
    assert hundred.asked.margin == 2.0  # 2 points, each worth 1
    size = chosen(people(), given, Wishes(["size_bytes"]), FEW)
    assert size.asked.margin is None


def test_a_margin_without_a_best_is_refused() -> None:
    given = WIDE | {"variants": MODELS}
    with pytest.raises(InputError, match="no single best"):
        chosen(people(), given, Wishes(["accuracy", "sparsity"], margin=0.02), FEW)
    for wrong in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="--margin"):
            chosen(people(), given, Wishes(["accuracy"], margin=wrong), FEW)


@pytest.mark.parametrize(
    ("wishes", "told"),
    [
        (Wishes(), "--objective is missing"),
        (Wishes(["accuracy", "accuracy"], [], ["kappa=1"]), "is for no objective"),
        (Wishes(["accuracy", "accuracy:min"]), "twice"),
        (Wishes(["latency_ms"]), "latency_ms' does not exist"),
        (Wishes(["accuracy@sex=X"]), "sex=X"),
        (Wishes(["accuracy"], excluded=["c"]), "variant of --exclude 'c'"),
        (Wishes(["accuracy"], excluded=list(NAMES)), "leaves no variant"),
        (Wishes(["bias"]), "no better direction"),
        (Wishes(["bias_amplification"]), "cannot be estimated"),
    ],
)
def test_what_cannot_be_wished(wishes: Wishes, told: str) -> None:
    with pytest.raises(InputError, match=told):
        chosen(people(), WIDE, wishes, FEW)


def test_scores_that_are_not_there() -> None:
    given = {key: held for key, held in WIDE.items() if key != "scores"}
    table = people().drop(columns=[f"s_{name}" for name in NAMES])
    with pytest.raises(InputError, match="needs scores"):
        chosen(table, given, Wishes(["auc"]), FEW)


def test_answers_in_another_language_are_refused() -> None:
    table = people()
    table["b"] = table["b"].map({0: "no", 1: "yes"})
    with pytest.raises(InputError, match="No prediction of 'b' is equal to any label"):
        chosen(table, {**WIDE, "scores": None}, Wishes(["accuracy"]), FEW)


def test_cubes_give_the_choice_of_the_table_they_were_counted_from(tmp_path: Path) -> None:
    from fairweight.auditing.counts.cube_file import write_cube

    wishes = Wishes(["accuracy", "sparsity"], ["worst_group_shift>=-0.5"], ["accuracy=9"])
    table, given = people(), WIDE | {"variants": MODELS}
    expected = chosen(table, given, wishes, FEW)
    path = tmp_path / "cube.parquet"
    with align(TableSpec(sources_of(table), **WIDE)) as aligned:
        write_cube(count(aligned), path, baseline="dense", groupings=aligned.groupings)
    found = chosen(str(path), {"variants": MODELS}, wishes, FEW)
    for name, frame in expected.tables.items():
        pd.testing.assert_frame_equal(found.tables[name], frame)
    half = chosen(str(path), {"variants": MODELS}, wishes, FEW, confirm_share=0.5)
    assert half.n_confirmed == 200
    refused = {
        "--confirm cannot be used with cubes": {"confirm": people(9, first=1000)},
        "and cubes have none": {"wishes": Wishes(["auc"])},
        "--cluster cannot be applied to a cube": {"tables": {"cluster": "person"}},
        "The baseline 'c' does not exist": {"tables": {"baseline": "c"}},
    }
    for told, change in refused.items():
        asked: dict[str, Any] = {"tables": {}, "wishes": wishes, **change}
        asked["tables"] |= {"variants": MODELS}
        with pytest.raises(InputError, match=told):
            chosen(str(path), options=FEW, **asked)


def test_files_keep_the_types_of_columns(tmp_path: Path) -> None:
    """Also of columns that are empty this time: without weights there is no best."""
    import json

    from fairweight.auditing.table_files import write_frames
    from fairweight.report.choice import to_json

    flags = ["is_baseline", "qualifies", "chosen", "tied", "in_best_set"]
    for wishes in (
        Wishes(["accuracy", "sparsity"], ["accuracy>=0.8"]),
        Wishes(["accuracy", "sparsity"], ["accuracy>=0.8"], ["accuracy=9"]),
    ):
        found = chosen(people(), WIDE | {"variants": MODELS}, wishes, FEW)
        frame = found.tables["choice"]
        write_frames(found.tables, tmp_path)
        again = pd.read_parquet(tmp_path / "choice.parquet")
        assert [again[name].dropna().tolist() for name in flags] == [
            frame[name].dropna().tolist() for name in flags
        ]
        assert (again["in_best_set"].isna() == frame["in_best_set"].isna()).all()
        assert again["value"].dtype == "float64"
        rows = json.loads(to_json(found))["tables"]["choice"]
        for row, able in zip(rows, frame["qualifies"], strict=True):
            best = able and found.asked.weights is not None
            assert type(row["in_best_set"]) is (bool if best else type(None))


def test_a_folder_holds_everything(tmp_path: Path) -> None:
    import json

    from fairweight.report.choice import save

    wishes = Wishes(["size_bytes", "accuracy"], ["accuracy>=0.5"], ["accuracy=1000"])
    found = chosen(people(), WIDE | {"variants": MODELS}, wishes, FEW)
    save(found, tmp_path / "out", "fairweight choose")
    document = json.loads((tmp_path / "out/choice.json").read_text())
    assert document["chosen"] == found.chosen
    assert document["selected_on_these_data"]
    assert {row["variant"] for row in document["tables"]["choice"]} == set(NAMES)
    assert (tmp_path / "out/tables/choice.csv").exists()
    assert sorted(p.name for p in (tmp_path / "out/figures").iterdir()) == [
        "FW-5.svg",
        "PA-F4a.svg",
    ]


def of_two_tasks(**answers: dict[str, list[int]]) -> pd.DataFrame:
    """Rows of eight examples, four of each label, in two tasks; answers by variant and task."""
    label = [0, 0, 0, 0, 1, 1, 1, 1] * 10
    return pd.concat(
        pd.DataFrame({"example_id": range(80), "task": task, "variant": variant, "label": label,
                      "prediction": own * 10})
        for variant, by_task in answers.items()
        for task, own in by_task.items()
    )  # fmt: skip


RIGHT, ONE_WRONG, NEVER = [0, 0, 0, 0, 1, 1, 1, 1], [1, 0, 0, 0, 1, 1, 1, 1], [0] * 8


def test_a_variant_without_a_value_takes_none_from_the_others() -> None:
    """Precision of a class that is never predicted is undefined; in the others' rows it is not."""
    table = of_two_tasks(
        dense={"x": RIGHT, "y": RIGHT}, a={"x": ONE_WRONG, "y": RIGHT}, b={"x": NEVER, "y": RIGHT}
    )
    found = chosen(table, {"task": "task"}, Wishes(["precision@class=1"]), FEW)
    assert value(found, "a", "precision@class=1") == pytest.approx((4 / 5 + 1) / 2)
    assert set(found.tables["choice"]["variant"]) == {"dense", "a"}
    assert any("undefined for them: b." in note for note in found.notes)


def test_tasks_without_a_value_of_the_baseline_do_not_count() -> None:
    table = of_two_tasks(dense={"x": NEVER, "y": RIGHT}, a={"x": RIGHT, "y": ONE_WRONG})
    found = chosen(table, {"task": "task"}, Wishes(["precision@class=1"]), FEW)
    assert value(found, "a", "precision@class=1") == pytest.approx(4 / 5)
    assert any("the mean over 1 of 2 tasks" in note for note in found.notes)


def test_what_no_task_has_is_no_zero() -> None:
    table = of_two_tasks(dense={"x": NEVER, "y": NEVER}, a={"x": RIGHT, "y": ONE_WRONG})
    with pytest.raises(InputError, match="is undefined for the baseline in every task"):
        chosen(table, {"task": "task"}, Wishes(["precision@class=1"]), FEW)


# --- outcomes that are numbers


def outcomes(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    words = rng.integers(5, 30, n)
    errors = rng.poisson(words * 0.1)
    return pd.DataFrame(
        {
            "example_id": range(n),
            "sex": rng.choice(["F", "M"], n),
            "words": words,
            "dense": errors,
            "a": errors + (rng.random(n) < 0.05),
            "b": errors + rng.poisson(0.5, n),
        }
    )


NUMERIC: dict[str, Any] = {
    "outcome": {name: name for name in NAMES},
    "denominator": dict.fromkeys(NAMES, "words"),
    "better": "lower",
    "groups": ["sex"],
    "baseline": "dense",
}


def test_numbers_are_chosen_by_as_the_audit_has_them() -> None:
    table = outcomes()
    wishes = Wishes(["outcome", "outcome@sex=F"], weights=["outcome=1", "outcome@sex=F=1"])
    found = chosen(table, NUMERIC, wishes, FEW)
    assert found.chosen == "dense"  # less is better
    values = found.tables["choice_values"].set_index(["variant", "term"])["value"]
    for name in NAMES:
        assert values[name, "outcome"] == pytest.approx(table[name].sum() / table["words"].sum())
        own = table[table["sex"] == "F"]
        assert values[name, "outcome@sex=F"] == pytest.approx(own[name].sum() / own["words"].sum())
    rows = fw.audit_table(table, FEW, **NUMERIC).overall
    assert values["b", "outcome"] == pytest.approx(rows.set_index("variant").loc["b", "compressed"])


def test_the_margin_of_a_number_is_in_its_unit() -> None:
    table = outcomes().drop(columns="words")
    numeric = {k: v for k, v in NUMERIC.items() if k != "denominator"}
    assert chosen(table, numeric, Wishes(["outcome"]), FEW).asked.margin is None
    ranged = numeric | {"range": (0, 50)}
    found = chosen(table, ranged, Wishes(["outcome"]), FEW)
    assert found.asked.margin == 1.0  # 2 % of 50
    drawn = chosen(table, ranged, Wishes(["outcome"], ["outcome<=1.8"], margin=0.1), FEW)
    assert drawn.asked.margin == 0.1
    assert "b" not in drawn.qualifying


def test_a_number_per_example_of_0_and_1_is_chosen_by_too() -> None:
    table = outcomes()
    for name in NAMES:
        table[name] = (table[name] > 1).astype(int)
    lower = {k: v for k, v in NUMERIC.items() if k != "denominator"}
    for better, aim in (("lower", "min"), ("higher", "max")):
        found = chosen(table, lower | {"better": better}, Wishes(["outcome"]), FEW)
        assert found.asked.objectives[0].aim == aim
        values = found.tables["choice_values"].set_index("variant")["value"]
        assert values["b"] == pytest.approx(table["b"].mean())


def test_what_asks_for_classes_is_refused_of_numbers() -> None:
    with pytest.raises(InputError, match="'accuracy' asks which predictions are right"):
        chosen(outcomes(), NUMERIC, Wishes(["accuracy"]), FEW)
    with pytest.raises(InputError, match="'outcome' is a number per example"):
        read_term("outcome", [])
