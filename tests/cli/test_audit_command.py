"""`fairweight audit`: every layout and format gives the same numbers, and every flag is heard."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.result import RESULT_COLUMNS

from .conftest import (
    FEW,
    NAMES,
    Run,
    document,
    long_frame,
    model_frames,
    numbers,
    process,
    same,
    value,
    wide_frame,
)

pytestmark = pytest.mark.usefixtures("few_metrics")

GROUPS = ("--groups", "sex,age")


@pytest.fixture(scope="module")
def reference(few_metrics: None) -> list[dict[str, Any]]:
    """The rows of the same audit, made in Python."""
    from fairweight.auditing.table_files import plain_records

    made = fw.audit_table(wide_frame(), groups=["sex", "age"], n_boot=40)
    return plain_records(made.results)


# --- layouts and formats -------------------------------------------------------------------------


def wide_parquet() -> list[str]:
    wide_frame().to_parquet("wide.parquet")
    return ["wide.parquet"]


def wide_named() -> list[str]:
    renamed = {"pred_dense": "p0", "pred_int8": "p1", "score_dense": "s0", "score_int8": "s1"}
    renamed |= {"label": "y", "example_id": "key"}
    wide_frame().rename(columns=renamed).to_csv("wide.csv", index=False)
    named = ["--prediction", "dense=p0", "--prediction", "int8=p1", "--label", "y", "--id", "key"]
    return ["wide.csv", *named, "--score", "dense=s0", "--score", "int8=s1"]


def long_jsonl() -> list[str]:
    long_frame().to_json("long.jsonl", orient="records", lines=True)
    return ["long.jsonl"]


def long_renamed() -> list[str]:
    renamed = {"variant": "model", "prediction": "answer", "score": "p"}
    long_frame().rename(columns=renamed).to_csv("long.csv.gz", index=False)
    columns = ["--variant-column", "model", "--prediction-column", "answer"]
    return ["long.csv.gz", *columns, "--score-column", "p"]


def long_tabs() -> list[str]:
    long_frame().to_csv("long.tsv", index=False, sep="\t")
    return ["long.tsv"]


def long_glob() -> list[str]:
    for seven, part in long_frame().groupby(long_frame().index % 7):
        part.to_parquet(f"part-{seven}.parquet")
    return ["part-*.parquet"]


def files_feather() -> list[str]:
    for name, frame in model_frames().items():
        frame.to_feather(f"{name}.feather")
    return [f"{name}.feather" for name in NAMES]


def files_named_and_mixed() -> list[str]:
    frames = model_frames()
    frames["dense"].to_parquet("a.parquet")
    frames["int8"].sample(frac=1, random_state=0).to_csv("b.csv", index=False)
    return ["int8=b.csv", "dense=a.parquet", "--baseline", "dense"]


def files_with_examples() -> list[str]:
    people = ["example_id", "label", "sex", "age"]
    wide_frame()[people].to_csv("people.csv", index=False)
    for name, frame in model_frames().items():
        frame[["example_id", "prediction", "score"]].to_csv(f"{name}.csv", index=False)
    return ["dense.csv", "int8.csv", "--examples", "people.csv"]


def duckdb_query() -> list[str]:
    with duckdb.connect("preds.duckdb") as connection:
        frame = wide_frame()
        connection.register("frame", frame)
        connection.execute("CREATE TABLE preds AS FROM frame")
        connection.execute("CREATE TABLE others AS SELECT 1 AS one")
    return ["preds.duckdb::SELECT * FROM preds ORDER BY example_id DESC"]


def sqlite_query() -> list[str]:
    with sqlite3.connect("preds.sqlite") as connection:
        long_frame().to_sql("preds", connection, index=False)
    connection.close()
    return ["preds.sqlite::SELECT * FROM preds"]


LAYOUTS = [
    wide_parquet, wide_named, long_jsonl, long_renamed, long_tabs, long_glob, files_feather,
    files_named_and_mixed, files_with_examples, duckdb_query, sqlite_query,
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_every_layout_gives_the_same_numbers(
    run: Run, no_page: None, reference: list[dict[str, Any]], layout: Any
) -> None:
    run("audit", *layout(), *GROUPS, *FEW).done()
    same(numbers(), reference)


# --- what is written -----------------------------------------------------------------------------


def test_what_an_audit_writes_and_says(run: Run) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    told = run("audit", "wide.csv", *GROUPS, "--n-boot", "40", "--csv", "--out", "o u t").done().out
    assert "int8 against dense: 240 examples" in told
    # 24 of 240 are wrong in the dense model, 60 in int8 (see wide_frame).
    assert "accuracy 90.0 % → 75.0 %" in told
    assert "\nReport: o u t/report.html (-v for everything here)\n" in told

    made = document("o u t")
    assert made["schema"] == 2
    assert (made["baseline"], made["variants"]) == ("dense", ["int8"])
    assert made["version"] == fw.__version__
    assert made["n_examples"] == 240
    assert made["positive"] == "1"
    assert all(tuple(row) == RESULT_COLUMNS for row in made["results"])
    options = {"alpha": 0.05, "n_boot": 40, "correction": "holm", "random_state": 0}
    assert made["provenance"]["options"].items() >= options.items()
    (given,) = made["provenance"]["inputs"]
    assert (given["name"], given["rows"]) == ("wide.csv", 240)
    assert len(given["sha256"]) == 64

    page = Path("o u t/report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "int8" in page
    tables = {path.stem for path in Path("o u t/tables").glob("*.csv")}
    assert tables == {
        "bounds", "by_class", "by_group", "concentration", "confusion", "data", "group_error",
        "groupings", "lead", "left_out", "overall", "per_seed", "power", "reliability", "results",
    }  # fmt: skip
    parquet = pd.read_parquet("o u t/tables/results.parquet")
    assert list(parquet.columns) == list(RESULT_COLUMNS)
    assert len(parquet) == len(made["results"])


def test_numbers_checked_by_hand(run: Run, no_page: None) -> None:
    wide = wide_frame()
    wide.to_csv("wide.csv", index=False)
    run("audit", "wide.csv", "--groups", "sex,age,sex*age", *FEW).done()
    right = {name: wide[f"pred_{name}"] == wide["label"] for name in NAMES}
    for (sex, age), part in wide.groupby(["sex", "age"]):
        where = {"metric": "accuracy", "by": "group", "group": f"sex={sex} & age={age}"}
        at = part.index
        assert value("fairweight-audit", "n", **where) == len(part)
        shift = right["int8"][at].mean() - right["dense"][at].mean()
        assert value("fairweight-audit", "shift", **where) == pytest.approx(shift)
    old = wide["age"] == "old"
    excess = (right["int8"][old].mean() - right["dense"][old].mean()) - (
        right["int8"][~old].mean() - right["dense"][~old].mean()
    )
    where = {"metric": "accuracy", "by": "group", "group": "age=old"}
    assert value("fairweight-audit", "excess_shift", **where) == pytest.approx(excess)
    assert value("fairweight-audit", "family", **where) == (
        "confirmatory: accuracy by group (holm)"
    )
    assert value("fairweight-audit", "n_family", **where) == 4  # F, M, old, young


def test_quiet_says_nothing(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    for flag in ("--quiet", "-q"):
        assert run("audit", "wide.csv", *GROUPS, "--n-boot", "40", flag).done().out == ""


def test_the_command_of_the_provenance_gives_the_same_numbers(
    run: Run, folder: Path, no_page: None
) -> None:
    wide_frame().rename(columns={"sex": "the sex"}).to_csv("my table.csv", index=False)
    words = ["audit", "my table.csv", "--groups", "the sex,the sex*age", "--n-boot", "60"]
    run(*words, "--random-state", "5", "--out", "first").done()
    command = document("first")["provenance"]["command"]
    program, *again = shlex.split(command)
    assert program == "fairweight"
    assert again == [*words, "--random-state", "5", "--out", "first"]
    run(*again[:-1], "second").done()
    assert numbers("first") == numbers("second")


def test_the_command_is_what_was_run_and_not_the_host_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch, no_page: None
) -> None:
    from fairweight import cli

    wide_frame().to_csv("wide.csv", index=False)
    monkeypatch.setattr(sys, "argv", ["notebook.py", "--kernel"])
    words = ["audit", "wide.csv", *GROUPS, *FEW]
    assert cli.run(words) == cli.DONE
    assert shlex.split(document()["provenance"]["command"]) == ["fairweight", *words]


def test_the_random_state_is_heard(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    for state, out in (("0", "a"), ("0", "b"), ("1", "c")):
        run("audit", "wide.csv", *GROUPS, *FEW, "--random-state", state, "--out", out).done()
    assert numbers("a") == numbers("b")
    assert numbers("a") != numbers("c")


# --- flags ---------------------------------------------------------------------------------------


def test_alpha_correction_exact_and_min_group_are_heard(run: Run, no_page: None) -> None:
    wide = wide_frame()
    wide.loc[:14, "sex"] = "X"
    wide.to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--out", "plain").done()
    flags = ["--alpha", "0.2", "--correction", "bh", "--exact", "--min-group", "20"]
    run("audit", "wide.csv", *GROUPS, *FEW, *flags, "--out", "other").done()
    where = {"metric": "accuracy", "by": "group", "group": "sex=M"}

    def width(out: str) -> float:
        high, low = (value(out, end, **where) for end in ("ci_high", "ci_low"))
        return float(high - low)

    assert width("other") < width("plain")
    assert "(bh)" in value("other", "family", **where)
    assert value("other", "p_value", **where) > value("plain", "p_value", **where)
    where["group"] = "sex=X"
    assert value("plain", "status", **where) == "ok"
    assert value("other", "status", **where) == "small_group: n < 20"


def test_positive(run: Run, no_page: None) -> None:
    wide = wide_frame()
    wide.to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--positive", "0").done()
    zero = wide[wide["label"] == 0]
    recall = value("fairweight-audit", "baseline", metric="recall")
    assert recall == pytest.approx((zero["pred_dense"] == 0).mean())


def test_clusters(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--cluster", "person").done()
    assert value("fairweight-audit", "n_clusters", metric="accuracy") == 40
    assert value("fairweight-audit", "n", metric="accuracy") == 240
    assert "cluster" in value("fairweight-audit", "interval", metric="accuracy")


def test_weights(run: Run, no_page: None) -> None:
    wide = wide_frame()
    wide.to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--weight", "w").done()
    right = wide["pred_int8"] == wide["label"]
    weighted = np.average(right, weights=wide["w"])
    assert weighted != pytest.approx(right.mean())
    assert value("fairweight-audit", "compressed", metric="accuracy") == pytest.approx(weighted)
    # Tango's interval of plain counts would be too narrow.
    made = value("fairweight-audit", "interval", metric="accuracy")
    assert made.lower() == "wider of linearised t over examples and tango on n_eff"


def test_tasks(run: Run, no_page: None) -> None:
    wide = wide_frame()
    flipped = wide.assign(**{c: 1 - wide[c] for c in ("label", "pred_dense", "pred_int8")})
    flipped["pred_int8"] = flipped["pred_dense"]  # no change in the second task
    both = pd.concat([wide.assign(attribute="smiling"), flipped.assign(attribute="young")])
    both.drop(columns=["score_dense", "score_int8"]).to_csv("tasks.csv", index=False)
    run("audit", "tasks.csv", *GROUPS, *FEW, "--task", "attribute").done()
    assert document()["tasks"] == ["smiling", "young"]
    shifts = {
        task: value("fairweight-audit", "shift", metric="accuracy", task=task)
        for task in ("smiling", "young", None)
    }
    assert shifts["smiling"] == pytest.approx(-0.15)
    assert shifts["young"] == 0
    assert shifts[None] == pytest.approx(-0.075)
    assert value("fairweight-audit", "n", metric="accuracy") == 240  # examples, not rows


def test_training_table(run: Run, no_page: None) -> None:
    """In training, label 1 is commoner among M: the sign of bias amplification follows it."""
    wide_frame().to_csv("wide.csv", index=False)
    counts = {"label": [0, 1, 0, 1], "sex": ["F", "F", "M", "M"], "n": [90, 10, 20, 80]}
    pd.DataFrame(counts).to_csv("train.csv", index=False)
    run("audit", "wide.csv", "--groups", "sex", *FEW, "--train", "train.csv").done()
    made = document()
    train = [r for r in made["data"] if r["split"] == "train"]
    total = {(r["group"], r["class"]): r["n"] for r in train}
    assert total[None, None] == 200
    assert total["sex=M", "1"] == 80
    run("audit", "wide.csv", "--groups", "sex", *FEW, "--out", "without").done()
    assert not [r for r in document("without")["data"] if r["split"] == "train"]


def test_variants_table(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    about = pd.DataFrame({"variant": ["dense", "int8"], "seed": [0, 0], "size_bytes": [4000, 1000]})
    about.to_csv("variants.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--variants", "variants.csv", "--csv").done()
    assert document()["variants_table"] == about.to_dict("records")
    assert Path("fairweight-audit/tables/variants.csv").exists()


def test_suppress_small(run: Run) -> None:
    wide = wide_frame()
    wide.loc[:3, "sex"] = "rare"
    wide.to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--out", "open").done()
    run("audit", "wide.csv", *GROUPS, *FEW, "--out", "closed", "--suppress-small").done()
    where = {"metric": "accuracy", "by": "group", "group": "sex=rare"}
    assert value("open", "baseline", **where) is not None
    rare = [r for r in numbers("closed") if r["group"] == "sex=rare"]
    kept = ("baseline", "compressed", "shift", "ci_low", "ci_high", "n", "p_value")
    assert all(row[column] is None for row in rare for column in kept)
    for frame in ("per_seed", "data", "power"):
        rows = [r for r in document("closed")[frame] if r["group"] == "sex=rare"]
        assert all(r.get("n") is None for r in rows), frame
    assert any("10 examples" in note for note in document("closed")["notes"])


def test_group_error(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW).done()
    assert document()["group_error"] == []
    run("audit", "wide.csv", *GROUPS, *FEW, "--group-error", "0.05").done()
    rows = {r["group"]: r for r in document()["group_error"]}
    assert set(rows) == {"sex=F", "sex=M", "age=old", "age=young"}
    old = rows["age=old"]
    assert old["error"] == 0.05
    assert min(old["corrected_low"], old["corrected_high"]) < old["excess_shift"] < 0


def test_reference_shift_and_zero_baseline(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, *FEW, "--reference-shift", "0.1").done()
    assert {r["reference_shift"] for r in document()["power"]} == {0.1}
    two = run("audit", "wide.csv", *GROUPS, *FEW, "--reference-shift", "0.1", "--margin", "0.02")
    assert "give --margin alone" in two.refused()
    perfect = wide_frame()
    perfect["pred_dense"] = perfect["label"]
    perfect.to_csv("perfect.csv", index=False)
    run("audit", "perfect.csv", *GROUPS, *FEW, "--zero-baseline", "drop").done()
    assert value("fairweight-audit", "compressed", metric="cev") is None
    assert value("fairweight-audit", "compressed", metric="cev_pp") is not None
    flags = ["--zero-baseline", "epsilon", "--out", "epsilon"]
    run("audit", "perfect.csv", *GROUPS, *FEW, *flags).done()
    assert value("epsilon", "compressed", metric="cev") is not None


def test_groups_are_found_by_default_and_the_rest_is_said(run: Run, no_page: None) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *FEW).done()
    made = document()
    assert {"sex", "age"} <= set(made["groupings"])
    assert "w" not in made["groupings"]
    assert any("'w'" in note and "--groups" in note for note in made["notes"])


def test_no_groups_at_all(run: Run) -> None:
    bare = wide_frame()[["example_id", "label", "pred_dense", "pred_int8"]]
    bare.to_csv("bare.csv", index=False)
    told = run("audit", "bare.csv", "--n-boot", "40").done().out
    assert "accuracy 90.0 % → 75.0 %" in told
    assert document()["groupings"] == []


def test_identical_predictions(run: Run, no_page: None) -> None:
    wide = wide_frame()
    wide["pred_int8"] = wide["pred_dense"]
    wide["score_int8"] = wide["score_dense"]
    wide.to_csv("wide.csv", index=False)
    run("audit", "wide.csv", *GROUPS, "--n-boot", "40").done()
    for column, expected in (("shift", 0), ("p_value", 1)):
        assert value("fairweight-audit", column, metric="accuracy") == expected
    assert value("fairweight-audit", "ci_low", metric="accuracy") < 0


def test_ten_examples(run: Run) -> None:
    """Less than anything can be told from; said, and no error."""
    wide_frame(10).to_csv("few.csv", index=False)
    told = run("audit", "few.csv", "--groups", "sex", "--n-boot", "40").done().out
    assert "10 examples" in told


# --- as from a shell -----------------------------------------------------------------------------


def test_a_refusal_in_a_process_of_its_own(folder: Path) -> None:
    wide_frame().to_csv("wide.csv", index=False)
    outcome = process("audit", "wide.csv", "--label", "lable", cwd=folder)
    assert "Did you mean 'label'?" in outcome.refused()
    assert not Path("fairweight-audit").exists()


def test_python_m(folder: Path) -> None:
    words = [sys.executable, "-m", "fairweight", "--version"]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    assert made.stdout == f"fairweight {fw.__version__}\n", made.stderr


def test_members_that_are_runs_of_one_model(run: Run, no_page: None) -> None:
    parts = [long_frame(scores=False).assign(seed=seed) for seed in range(3)]
    pd.concat(parts).to_csv("runs.csv", index=False)
    few = ("--n-boot", "40", "--groups", "sex")
    outcome = run("audit", "runs.csv", *few, "--members", "repeated", "-v").done()
    assert document()["provenance"]["options"]["members"] == "repeated"
    assert "Members are runs of the same models" in " ".join(outcome.out.split())
    assert "retrain" not in outcome.out.lower()
    command = document()["provenance"]["command"]
    assert "--members repeated" in command
    outcome = run("audit", "runs.csv", *few).done()
    assert document()["provenance"]["options"]["members"] == "retrained"
    assert "taken to be models that were trained again" in " ".join(outcome.out.split())
    said = run("audit", "runs.csv", *few, "--members", "seeds").refused()
    assert said == "--members (members=) cannot be 'seeds'; use retrained or repeated."
