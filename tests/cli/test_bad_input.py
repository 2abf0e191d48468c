"""Bad input: exit code 2, one line that names the thing and the remedy, and nothing written.

Every case of refusal runs beside an earlier report in `--out`, which must stay as it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import FEW, Outcome, Run, document, long_frame, model_frames, same, wide_frame

OUT = "out"
pytestmark = pytest.mark.usefixtures("few_metrics", "no_page")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def refuse(run: Run, folder: Path) -> Callable[..., str]:
    """Run a command that must be refused; returns its sentence."""
    earlier = {"report.html": "an earlier report", "audit.json": '{"schema": 1}'}
    earlier["tables/results.csv"] = "variant,metric\n"
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in earlier.items()}
    earlier[".fairweight-files.json"] = json.dumps({"format": 2, "files": files})
    for name, text in earlier.items():
        path = folder / OUT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def refused(*arguments: Any, out: str = OUT) -> str:
        before = contents(folder)
        outcome: Outcome = run(*arguments, "--out", out)
        assert contents(folder) == before
        return outcome.refused()

    return refused


def said(sentence: str, *parts: str) -> None:
    for part in parts:
        assert part in sentence, sentence


def csv(frame: pd.DataFrame, name: str = "preds.csv") -> str:
    frame.to_csv(name, index=False)
    return name


# --- columns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "wrong", "nearest"),
    [
        (["--label", "lable"], "lable", "label"),
        (["--id", "exmaple_id"], "exmaple_id", "example_id"),
        (["--groups", "sexx,age"], "sexx", "sex"),
        (["--groups", "sex*agee"], "agee", "age"),
        (["--cluster", "persn"], "persn", "person"),
        (["--prediction", "dense=pred_dnse", "--prediction", "int8=pred_int8"],
         "pred_dnse", "pred_dense"),
        (["--score", "dense=scor_dense"], "scor_dense", "score_dense"),
        (["--score", "desne=score_dense"], "desne", "dense"),
        (["--weight", "wt"], "wt", None),
        (["--task", "attribute"], "attribute", None),
    ],
)  # fmt: skip
def test_a_misspelt_column_is_named_with_the_nearest(
    refuse: Callable[..., str], flags: list[str], wrong: str, nearest: str | None
) -> None:
    sentence = refuse("audit", csv(wide_frame()), *flags)
    said(sentence, f"'{wrong}' does not exist")
    if nearest is not None:
        said(sentence, f"Did you mean '{nearest}'?")


def test_a_misspelt_column_of_a_long_table(refuse: Callable[..., str]) -> None:
    long = long_frame()
    name = csv(long.rename(columns={"prediction": "predicton"}))
    said(refuse("audit", name), "'prediction' does not exist", "Did you mean 'predicton'?")
    name = csv(long)
    said(refuse("audit", name, "--variant-column", "variants"), "Did you mean 'variant'?")
    said(refuse("audit", name, "--prediction-column", "predicted"), "'predicted' does not exist")


def test_a_misspelt_column_of_one_of_two_files(refuse: Callable[..., str]) -> None:
    frames = model_frames()
    dense = csv(frames["dense"], "dense.csv")
    int8 = csv(frames["int8"].rename(columns={"prediction": "pred"}), "int8.csv")
    said(refuse("audit", dense, int8), "'int8.csv'", "'prediction' does not exist")
    said(refuse("audit", dense, int8), "Did you mean 'pred'?")
    int8 = csv(frames["int8"].rename(columns={"example_id": "id"}), "int8.csv")
    said(refuse("audit", dense, int8), "'int8.csv'", "'example_id' does not exist", "--id")


@pytest.mark.parametrize(
    ("flag", "lacks", "names"),
    [
        ("--examples", "example_id", "beside.csv"),
        ("--train", "label", "beside.csv"),
        ("--variants", "variant", "beside.csv"),
    ],
)
def test_a_table_beside_lacks_its_key(
    refuse: Callable[..., str], flag: str, lacks: str, names: str
) -> None:
    beside = csv(pd.DataFrame({"shade": ["dark", "light"], "n": [1, 2]}), "beside.csv")
    said(refuse("audit", csv(wide_frame()), flag, beside), lacks, names)


@pytest.mark.parametrize("flag", ["--examples", "--train", "--variants"])
def test_a_table_beside_that_is_not_there(refuse: Callable[..., str], flag: str) -> None:
    said(refuse("audit", csv(wide_frame()), flag, "nowhere.csv"), "nowhere.csv")


@pytest.mark.parametrize("given", ["dense", "dense=", "=pred_dense"])
def test_a_prediction_without_its_column(refuse: Callable[..., str], given: str) -> None:
    said(refuse("audit", csv(wide_frame()), "--prediction", given), "--prediction", "NAME=COLUMN")


def test_groups_that_name_nothing(refuse: Callable[..., str]) -> None:
    said(refuse("audit", csv(wide_frame()), "--groups", " , "), "--groups", "names nothing")


# --- rows --------------------------------------------------------------------------------------


def test_duplicates(refuse: Callable[..., str]) -> None:
    wide, long = wide_frame(), long_frame()
    twice = pd.concat([long, long.iloc[[3]]])
    said(refuse("audit", csv(twice)), "1 duplicate key", "example 1003", "keep one row")
    twice = pd.concat([wide, wide.iloc[[0, 7]]])
    said(refuse("audit", csv(twice)), "2 duplicate keys", "example 1000", "example 1007")
    frames = model_frames()
    dense = csv(pd.concat([frames["dense"], frames["dense"].iloc[[5]]]), "dense.csv")
    said(refuse("audit", dense, csv(frames["int8"], "int8.csv")), "duplicate", "example 1005")


def test_duplicates_are_of_example_variant_seed_and_task(refuse: Callable[..., str]) -> None:
    long = long_frame(scores=False)
    both = pd.concat([long.assign(task="smiling"), long.assign(task="young")])
    twice = pd.concat([both, both.iloc[[1]]])
    said(refuse("audit", csv(twice)), "1 duplicate key", "example 1001", "task")
    seeds = pd.concat([long.assign(seed=0), long.assign(seed=1), long.assign(seed=1).iloc[[2]]])
    said(refuse("audit", csv(seeds)), "1 duplicate key", "example 1002")


def test_examples_missing_from_a_variant(refuse: Callable[..., str], run: Run) -> None:
    long = long_frame()
    holes = csv(long.drop(index=long.index[long["variant"] == "int8"][:12]))
    sentence = refuse("audit", holes)
    said(sentence, "12 examples", "'dense'", "'int8'", "example 1000", "--missing drop")

    run("audit", holes, "--missing", "drop", *FEW, "--out", "kept").done()
    kept = document("kept")
    assert kept["n_examples"] == 240 - 12
    assert [n for n in kept["notes"] if "12 examples" in n]


def test_labels_that_differ_between_variants(refuse: Callable[..., str]) -> None:
    frames = model_frames()
    frames["int8"].loc[4, "label"] = 1
    files = [csv(frame, f"{name}.csv") for name, frame in frames.items()]
    sentence = refuse("audit", *files)
    said(sentence, "'label' differs", "1 example", "example 1004", "'int8'", "correct")
    assert "1 examples" not in sentence
    long = long_frame()
    long.loc[long.index[-1], "label"] = 0
    said(refuse("audit", csv(long)), "'label' differs", "1239")


def test_an_unknown_baseline(refuse: Callable[..., str]) -> None:
    for frame in (wide_frame(), long_frame()):
        sentence = refuse("audit", csv(frame), "--baseline", "dens")
        said(sentence, "baseline 'dens' does not exist", "'int8'", "Did you mean 'dense'?")


def test_no_compressed_variant(refuse: Callable[..., str]) -> None:
    only = csv(model_frames()["dense"], "dense.csv")
    said(refuse("audit", only), "'dense.csv'", "one model only", "int8=int8.csv")
    long = long_frame()
    said(refuse("audit", csv(long[long["variant"] == "dense"])), "only 'dense'", "at least two")
    one = csv(wide_frame().drop(columns="pred_int8"), "wide.csv")
    said(refuse("audit", one), "dense", "at least two")


def test_no_prediction_column_at_all(refuse: Callable[..., str]) -> None:
    bare = csv(wide_frame()[["example_id", "label", "sex"]], "bare.csv")
    said(refuse("audit", bare), "bare.csv", "prediction")


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "feather", "duckdb", "sqlite"])
def test_an_empty_file(refuse: Callable[..., str], ending: str) -> None:
    Path(f"nothing.{ending}").touch()
    said(refuse("audit", f"nothing.{ending}"), f"'nothing.{ending}' is empty")


def test_zero_rows(refuse: Callable[..., str]) -> None:
    none = wide_frame().iloc[:0]
    none.to_parquet("none.parquet")
    for name in (csv(none, "none.csv"), "none.parquet"):
        said(refuse("audit", name), f"'{name}' has no rows")
    frames = model_frames()
    files = [csv(frames["dense"], "dense.csv"), csv(frames["int8"].iloc[:0], "int8.csv")]
    said(refuse("audit", *files), "'int8.csv' has no rows")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_labels(refuse: Callable[..., str], missing: float | None) -> None:
    wide = wide_frame().astype({"label": "float64" if missing else object})
    wide.loc[[2, 9], "label"] = missing
    wide.to_parquet("preds.parquet")
    for name in ("preds.parquet", csv(wide)):
        sentence = refuse("audit", name)
        said(sentence, "2 rows have no label", "'label'", "example 1002", "example 1009", "fill")


def test_rows_without_an_example_id(refuse: Callable[..., str]) -> None:
    wide = wide_frame().astype({"example_id": "Int64"})
    wide.loc[3, "example_id"] = pd.NA
    said(refuse("audit", csv(wide)), "1 row", "example id")


def test_no_example_in_common(refuse: Callable[..., str]) -> None:
    frames = model_frames()
    frames["int8"]["example_id"] += 10_000
    files = [csv(frame, f"{name}.csv") for name, frame in frames.items()]
    said(refuse("audit", *files), "240 examples", "missing", "example 1000")
    said(refuse("audit", *files, "--missing", "drop"), "No example is left", "example ids")


def test_no_prediction_equal_to_any_label_shows_both(refuse: Callable[..., str]) -> None:
    long = long_frame()
    named = long.assign(label=long["label"].map({0: "cat", 1: "dog"}))
    sentence = refuse("audit", csv(named))
    said(sentence, "'cat', 'dog'", "'0', '1'", "equal to any label", "Map")


def test_types_that_differ_are_one_class(run: Run, no_page: None) -> None:
    frames = model_frames()
    frames["int8"]["prediction"] = frames["int8"]["prediction"].astype(float)  # 1.0 is 1
    files = [csv(frame, f"{name}.csv") for name, frame in frames.items()]
    run("audit", *files, *FEW).done()
    assert document()["classes"] == ["0", "1"]


def test_predictions_outside_the_label_set_are_allowed_and_reported(
    run: Run, no_page: None
) -> None:
    wide = wide_frame()
    wide.loc[[1, 2, 3], "pred_int8"] = 7
    run("audit", csv(wide), *FEW).done()
    audit = document()
    notes = " ".join(audit["notes"])
    said(notes, "3 predictions of 'int8'", "'7'", "count as wrong")
    assert audit["classes"] == ["0", "1"]


@pytest.mark.parametrize("score", [1.5, -0.25, 17.0, float("inf")])
def test_scores_outside_the_unit_interval(refuse: Callable[..., str], score: float) -> None:
    wide = wide_frame()
    wide.loc[6, "score_int8"] = score
    sentence = refuse("audit", csv(wide))
    said(sentence, "'score_int8'", "1 value", "outside [0, 1]", "example 1006", "probabilities")
    assert "1 values" not in sentence


def test_scores_missing_for_some_predictions(refuse: Callable[..., str]) -> None:
    wide = wide_frame()
    wide.loc[[6, 8], "score_dense"] = np.nan
    said(refuse("audit", csv(wide)), "'score_dense'", "2 predictions", "example 1006", "leave")


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_that_weigh_nothing(refuse: Callable[..., str], weight: float) -> None:
    wide = wide_frame()
    wide.loc[4, "w"] = weight
    said(refuse("audit", csv(wide), "--weight", "w"), "'w'", "1 row", "example 1004", "at least 0")


def test_a_weight_that_is_no_number(refuse: Callable[..., str]) -> None:
    said(refuse("audit", csv(wide_frame()), "--weight", "sex"), "'sex'", "number")


# --- what is allowed, and said -------------------------------------------------------------------


def test_binary_metrics_on_a_multiclass_table_are_not_estimable(run: Run, no_page: None) -> None:
    wide = wide_frame().drop(columns=["score_dense", "score_int8"])
    three = wide.assign(label=wide["example_id"] % 3, pred_dense=wide["person"] % 3)
    run("audit", csv(three), "--groups", "sex", *FEW).done()
    rows = document()["results"]
    told = [r for r in rows if r["metric"] == "disparate_impact"]
    assert told
    for row in told:
        assert row["compressed"] is None
        assert row["status"].startswith("not_estimable: "), row["status"]
        assert "binary" in row["status"] or "positive" in row["status"] or "two" in row["status"]


def test_two_classes_without_a_positive_one(run: Run, no_page: None) -> None:
    words = {0: "cat", 1: "dog"}
    wide = wide_frame().drop(columns=["score_dense", "score_int8"])
    wide[["label", "pred_dense", "pred_int8"]] = wide[["label", "pred_dense", "pred_int8"]].replace(
        words
    )
    run("audit", csv(wide), "--groups", "sex", *FEW).done()
    notes = " ".join(document()["notes"])
    said(notes, "'cat', 'dog'", "positive")


def test_an_unknown_positive_class(refuse: Callable[..., str]) -> None:
    sentence = refuse("audit", csv(wide_frame()), "--positive", "dog")
    said(sentence, "Positive class 'dog' does not exist", "'0', '1'")


def test_missing_group_values_are_a_group_of_their_own(run: Run, no_page: None) -> None:
    wide = wide_frame().astype({"sex": object})
    wide.loc[:19, "sex"] = None
    wide.to_parquet("preds.parquet")
    run("audit", "preds.parquet", "--groups", "sex", *FEW).done()
    audit = document()
    said(" ".join(audit["notes"]), "20 rows have no value in 'sex'")
    accuracy = [r for r in audit["results"] if r["metric"] == "accuracy" and r["by"] == "group"]
    by_group = {r["group"]: r for r in accuracy}
    assert len(by_group) == 3
    (missing,) = set(by_group) - {"sex=F", "sex=M"}
    assert by_group[missing]["n"] == 20
    gap = [r for r in audit["results"] if r["metric"] == "group_gap" and r["group"] == "sex"]
    levels = [by_group[g]["baseline"] for g in ("sex=F", "sex=M")]
    assert gap[0]["baseline"] == pytest.approx(max(levels) - min(levels))


def test_group_columns_with_thousands_of_values(run: Run, no_page: None) -> None:
    wide = wide_frame(2200).drop(columns=["score_dense", "score_int8", "person", "w", "age"])
    wide["town"] = [f"town {i % 1100}" for i in range(len(wide))]
    name = csv(wide)
    run("audit", name, *FEW).done()
    audit = document()
    assert audit["groupings"] == ["sex"]
    said(" ".join(audit["notes"]), "'town'", "1,000 values", "--groups")

    run("audit", name, "--groups", "town", *FEW).done()
    audit = document()
    said(" ".join(audit["notes"]), "'town' has 1,100 values", "tables")
    table = pd.read_parquet("fairweight-audit/tables/results.parquet")
    accuracy = table[(table["metric"] == "accuracy") & (table["by"] == "group")]
    assert accuracy["group"].nunique() == 1100
    assert accuracy["status"].str.startswith("small_group: ").all()  # two examples each


NASTY = ["<script>alert(1)</script>", 'comma, "quoted"', "line\nbreak", "a & b", "{{ 7*7 }}", "é—✓"]


def test_html_commas_and_newlines_in_names(run: Run, page: Callable[[], str]) -> None:
    wide = wide_frame().drop(columns=["score_dense", "score_int8", "age", "person", "w"])
    wide["<b>site</b>"] = [NASTY[i % len(NASTY)] for i in range(len(wide))]
    wide = wide.rename(columns={"pred_int8": "pred_<img src=x onerror=alert(2)>"})
    named = {0: "<i>no</i>", 1: "yes, \n& more"}
    predictions = [c for c in wide.columns if c.startswith("pred_")]
    wide[["label", *predictions]] = wide[["label", *predictions]].replace(named)
    wide.to_parquet("preds.parquet")
    run("audit", "preds.parquet", "--n-boot", "40", "--csv").done()

    drawn = page()
    for raw in ("<script>alert(1)", "<img src=x", "<b>site</b>", "<i>no</i>"):
        assert raw not in drawn
    assert "&lt;script&gt;alert(1)" in drawn
    assert ">49<" not in drawn  # the braces are text, not a template

    table = pd.read_csv(
        "fairweight-audit/tables/by_group.csv", keep_default_na=False, low_memory=False
    )
    groups = set(table["group"])
    assert {f"<b>site</b>={name}" for name in NASTY} <= groups
    exact = document()
    assert exact["classes"] == sorted(named.values())
    assert exact["variants"] == ["<img src=x onerror=alert(2)>"]
    assert {r["group"] for r in exact["results"] if r["by"] == "group"} <= groups


def test_markup_in_names_has_no_effect_on_the_terminal(run: Run, no_page: None) -> None:
    wide = wide_frame().drop(columns=["score_dense", "score_int8"])
    wide["age"] = wide["age"].map({"old": "[red]old[/red]", "young": "\x1b[2Jyoung"})
    wide.loc[wide["age"] == "[red]old[/red]", "pred_int8"] = 0
    wide.to_parquet("preds.parquet")
    told = run("audit", "preds.parquet", "--groups", "age", "--n-boot", "40").done().out
    assert "age=[red]old[/red]" in told
    assert "\x1b[2J" not in told


# --- files -------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(refuse: Callable[..., str]) -> None:
    csv(wide_frame(), "predictions.csv")
    sentence = refuse("audit", "prediction.csv")
    said(sentence, "'prediction.csv'", "predictions.csv")
    said(refuse("audit", "nothing-*.csv"), "nothing-*.csv")


def test_a_csv_that_is_not_utf8(refuse: Callable[..., str]) -> None:
    text = wide_frame().assign(sex="Müller").to_csv(index=False)
    Path("latin.csv").write_bytes(text.encode("latin-1"))
    said(refuse("audit", "latin.csv"), "'latin.csv' is not UTF-8", "iconv")
    Path("wide16.csv").write_bytes(text.encode("utf-16"))
    said(refuse("audit", "wide16.csv"), "'wide16.csv' is not UTF-8", "save it as UTF-8")


@pytest.mark.parametrize("kept", [6, 400, -20])
def test_a_truncated_parquet(refuse: Callable[..., str], kept: int) -> None:
    wide_frame().to_parquet("whole.parquet")
    Path("cut.parquet").write_bytes(Path("whole.parquet").read_bytes()[:kept])
    said(refuse("audit", "cut.parquet"), "'cut.parquet'", "cut off")


def test_a_parquet_with_damaged_pages(refuse: Callable[..., str]) -> None:
    wide_frame().to_parquet("preds.parquet")
    data = bytearray(Path("preds.parquet").read_bytes())
    data[40:400] = bytes(360)
    Path("preds.parquet").write_bytes(bytes(data))
    said(refuse("audit", "preds.parquet"), "preds.parquet")


def test_a_csv_whose_lines_differ_in_length(refuse: Callable[..., str]) -> None:
    text = wide_frame().to_csv(index=False)
    Path("ragged.csv").write_text(text + "9999,1,1,1\n")
    said(refuse("audit", "ragged.csv"), "'ragged.csv'", "242")


def test_files_of_another_kind(refuse: Callable[..., str]) -> None:
    Path("model.bin").write_bytes(bytes(range(256)))
    said(refuse("audit", "model.bin"), "'model.bin'", "Parquet", "CSV")
    Path("preds.jsonl").write_text('{"example_id": 1, "label": \n')
    said(refuse("audit", "preds.jsonl"), "'preds.jsonl'")
    Path("preds.feather").write_bytes(b"ARROW1\0\0 and then nothing")
    said(refuse("audit", "preds.feather"), "'preds.feather'", "cut off")
    Path("preds.duckdb").write_bytes(b"no database " * 400)
    said(refuse("audit", "preds.duckdb"), "preds.duckdb")
    said(refuse("audit", f"{csv(wide_frame())}::SELECT 1"), "'::'")


def test_a_folder_without_tables(refuse: Callable[..., str]) -> None:
    Path("folder").mkdir()
    said(refuse("audit", "folder"), "'folder'")


def test_a_query_with_a_mistake(refuse: Callable[..., str]) -> None:
    import duckdb

    with duckdb.connect("preds.duckdb") as connection:
        frame = wide_frame()
        connection.register("frame", frame)
        connection.execute("CREATE TABLE preds AS FROM frame")
    said(refuse("audit", "preds.duckdb::SELECT * FROM pred"), "pred", "preds")
    said(refuse("audit", "preds.duckdb::SELEC 1"), "SELEC")
    writing = refuse("audit", "preds.duckdb::DROP TABLE preds")
    said(writing, "preds.duckdb")


# --- populations -------------------------------------------------------------------------------


def population(dense: int = 3, int8: int = 2) -> pd.DataFrame:
    """A long table with so many members per variant; member k errs on every (10 + k)-th example."""
    wide = wide_frame()[["example_id", "label", "sex"]]
    i = np.arange(len(wide))
    parts = []
    for variant, seeds in (("dense", dense), ("int8", int8)):
        for seed in range(seeds):
            wrong = i % (10 + seed - (variant == "int8") * 4) == 0
            answer = np.where(wrong, 1 - wide["label"], wide["label"])
            parts.append(wide.assign(variant=variant, seed=seed, prediction=answer))
    return pd.concat(parts, ignore_index=True)


def side_by_side(long: pd.DataFrame) -> pd.DataFrame:
    """The same as a wide table."""
    wide = wide_frame()[["example_id", "label", "sex"]]
    for (variant, seed), part in long.groupby(["variant", "seed"]):
        answers = part.set_index("example_id")["prediction"]
        wide[f"prediction:{variant}:{seed}"] = wide["example_id"].map(answers)
    return wide


def one_file_each(long: pd.DataFrame) -> list[str]:
    """The same as one file per member, without a seed column."""
    return [
        f"{variant}=" + csv(part.drop(columns=["variant", "seed"]), f"{variant}-{seed}.csv")
        for (variant, seed), part in long.groupby(["variant", "seed"])
    ]


@pytest.mark.parametrize(
    ("dense", "int8"),
    [(3, 2), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((1, 4), (2, 1)))],
)
def test_unequal_populations_in_every_layout(
    run: Run, no_page: None, dense: int, int8: int
) -> None:
    long = population(dense, int8)
    sources = {
        "long": [csv(long.sample(frac=1, random_state=0), "long.csv")],
        "wide": [csv(side_by_side(long), "wide.csv")],
        "files": one_file_each(long),
    }
    for layout, files in sources.items():
        run("audit", *files, "--groups", "sex", *FEW, "--out", layout).done()
    found = {layout: document(layout)["results"] for layout in sources}
    overall = [
        row
        for row in found["long"]
        if (row["metric"], row["by"], row["scope"]) == ("accuracy", "overall", "model")
    ]
    assert [row["n_seeds_baseline"] for row in overall] == [dense]
    assert [row["n_seeds_compressed"] for row in overall] == [int8]
    right = long.assign(right=long["prediction"] == long["label"]).groupby("variant")["right"]
    assert overall[0]["shift"] == pytest.approx(right.mean()["int8"] - right.mean()["dense"])
    same(found["wide"], found["long"])
    same(found["files"], found["long"])


def test_a_member_that_lacks_examples(refuse: Callable[..., str], run: Run, no_page: None) -> None:
    long = population()
    of_member = (long["variant"] == "int8") & (long["seed"] == 1)
    holes = csv(long[~(of_member & long["example_id"].between(1003, 1008))], "holes.csv")
    sentence = refuse("audit", holes)
    said(sentence, "6 examples", "'dense' (seed 0)", "missing from 'int8' (seed 1)")
    said(sentence, "example 1003, example 1004, example 1005;", "--missing drop")

    run("audit", holes, "--missing", "drop", *FEW, "--out", "kept").done()
    assert document("kept")["n_examples"] == 240 - 6

    # The first member, which the others are laid beside, is named as plainly.
    of_first = (long["variant"] == "dense") & (long["seed"] == 0) & (long["example_id"] == 1003)
    sentence = refuse("audit", csv(long[~of_first], "hole.csv"))
    said(sentence, "1 example of 'dense' (seed 1) is missing from 'dense' (seed 0)", "example 1003")
    files = [f for f in one_file_each(long) if "int8-1" not in f]
    short = csv(long[of_member].head(100).drop(columns=["variant", "seed"]), "short.csv")
    said(refuse("audit", *files, f"int8={short}"), "140 examples", "'int8' (seed 1)")


def test_seeds_that_repeat(refuse: Callable[..., str]) -> None:
    long = population()
    again = long[(long["variant"] == "int8") & (long["seed"] == 1)].head(2)
    sentence = refuse("audit", csv(pd.concat([long, again])))
    said(sentence, "variant 'int8', seed 1", "2 duplicate keys", "example 1000, example 1001")
    merged = long.assign(seed=long["seed"].replace({2: 1}))
    said(refuse("audit", csv(merged)), "variant 'dense', seed 1", "240 duplicate keys")
    said(refuse("audit", csv(merged)), "give every member a seed of its own")
    said(refuse("audit", csv(long.drop(columns="seed"))), "variant 'dense'", "--seed-column")


def test_members_given_twice_as_files(refuse: Callable[..., str]) -> None:
    long = population()
    files = one_file_each(long)
    said(refuse("audit", *files, files[0]), "'dense-0.csv' was given twice for 'dense'")
    roundabout = files[0].replace("dense-0", "./dense-0")
    said(refuse("audit", *files, roundabout), "given twice for 'dense'")
    seeded = {
        (v, s): csv(part.drop(columns="variant"), f"{v}-{s}-seeded.csv")
        for (v, s), part in long.groupby(["variant", "seed"])
    }
    again = csv(pd.read_csv(seeded["dense", 1]), "again.csv")
    words = [f"{v}={file}" for (v, _), file in seeded.items()]
    sentence = refuse("audit", *words, f"dense={again}")
    said(sentence, "Seed 1 of 'dense' is in 'dense-1-seeded.csv' and in 'again.csv'")
    mixed = refuse("audit", f"dense={seeded['dense', 1]}", *files)
    said(mixed, "'dense-1-seeded.csv' and 'dense-0.csv', only one has a column 'seed'")
    said(refuse("audit", "dense=dense-?.csv", files[-1]), "240 duplicate keys", "dense=a.csv")


def test_columns_that_stand_for_two_seeds(refuse: Callable[..., str]) -> None:
    wide = side_by_side(population())
    columns = ["dense=prediction:dense:0", "dense=prediction:dense:0", "int8=prediction:int8:0"]
    flags = [word for column in columns for word in ("--prediction", column)]
    sentence = refuse("audit", csv(wide), *flags)
    said(sentence, "'prediction:dense:0' for two seeds of 'dense'", "a column of its own")
    twice = wide.rename(columns={"prediction:dense:1": "pred:dense:0"})
    said(refuse("audit", csv(twice)), "two columns for the prediction of 'dense' (seed 0)")
    twice.columns = twice.columns.str.replace("pred:dense:0", "prediction:dense:0")
    said(refuse("audit", csv(twice)), "two columns named 'prediction:dense:0'; rename")


@pytest.mark.parametrize(
    ("rows", "parts"),
    [
        ({"parent": ["", "dense:"]}, ["parent 'dense:'", "VARIANT:SEED", "dense:3"]),
        ({"parent": ["int8:0", "dense:0"]}, ["circle", "'dense' (seed 0)", "'int8' (seed 0)"]),
        ({"variant": ["int8", "int8"]}, ["two rows for 'int8' (seed 0)", "keep one row"]),
        ({"parent_seed": [None, 2]}, ["'parent_seed'", "'parent_variant'"]),
    ],
)
def test_parents_that_make_no_sense(
    refuse: Callable[..., str], rows: dict[str, list[Any]], parts: list[str]
) -> None:
    models = pd.DataFrame({"variant": ["dense", "int8"], "seed": [0, 0]} | rows)
    flags = ("--variants", csv(models, "variants.csv"))
    said(refuse("audit", csv(wide_frame()), *flags), *parts)


# --- options -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--alpha", "2"], ["alpha", "2", "between 0 and 1"]),
        (["--alpha", "0"], ["alpha", "between 0 and 1"]),
        (["--alpha", "nan"], ["alpha", "nan", "between 0 and 1"]),
        (["--n-boot", "3"], ["n-boot", "3", "at least 20"]),
        (["--missing", "maybe"], ["missing", "maybe", "error", "drop"]),
        (["--correction", "foo"], ["correction", "foo", "holm", "bh", "none"]),
        (["--random-state", "-1"], ["random-state", "-1", "at least 0"]),
        (["--min-group", "0"], ["min-group", "0", "at least 1"]),
        (["--zero-baseline", "ignore"], ["zero-baseline", "ignore", "drop", "absolute"]),
        (["--margin", "2"], ["margin", "2", "did you mean 0.02?"]),
        (["--group-error", "0.7"], ["group-error", "0.7", "below 0.5"]),
        (["--group-error", "-0.1"], ["group-error", "-0.1"]),
        (["--fixed-side", "sex=X"], ["fixed-side", "sex=X", "sex=F"]),
        (["--fixed-side", "nothing"], ["fixed-side", "nothing"]),
    ],
)  # fmt: skip
def test_wrong_values_of_options(
    refuse: Callable[..., str], flags: list[str], parts: list[str]
) -> None:
    sentence = refuse("audit", csv(wide_frame()), "--groups", "sex", *flags)
    said(sentence.replace("_", "-"), *parts)  # Python writes n_boot, the shell --n-boot


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["audit", "preds.csv", "--alpha", "two"], ["--alpha", "number"]),
        (["audit", "preds.csv", "--alhpa", "0.1"], ["--alhpa", "--alpha"]),
        (["audit"], ["FILE"]),
        (["count", "preds.csv"], ["--out"]),
        (["aduit", "preds.csv"], ["aduit", "audit"]),
        (["demo", "--seed", "-3"], ["--seed", "-3", "at least 0"]),
        (["demo", "--seed", "x"], ["--seed", "integer"]),
    ],
)  # fmt: skip
def test_words_that_the_parser_does_not_know(
    run: Run, folder: Path, words: list[str], parts: list[str]
) -> None:
    csv(wide_frame())
    before = contents(folder)
    sentence = run(*words).refused()
    assert contents(folder) == before
    said(sentence, *parts)


# --- cubes -------------------------------------------------------------------------------------


@pytest.fixture
def cube(run: Run) -> str:
    wide_frame().to_parquet("preds.parquet")
    run("count", "preds.parquet", "--groups", "sex,age", "--out", "cube.parquet").done()
    return "cube.parquet"


def changed_metadata(cube: str, **changes: Any) -> str:
    table = pq.read_table(cube)
    meta = json.loads(table.schema.metadata[b"fairweight_cube"]) | changes
    changed = table.replace_schema_metadata({b"fairweight_cube": json.dumps(meta)})
    pq.write_table(changed, "changed.parquet")
    return "changed.parquet"


def test_a_cube_of_another_schema(cube: str, refuse: Callable[..., str]) -> None:
    sentence = refuse("audit", changed_metadata(cube, schema=2))
    said(sentence, "'changed.parquet'", "schema 2", "reads 1", "count")


def test_a_cube_that_was_tampered_with(cube: str, refuse: Callable[..., str]) -> None:
    meta = json.loads(pq.read_schema(cube).metadata[b"fairweight_cube"])
    del meta["members"]
    table = pq.read_table(cube).replace_schema_metadata({b"fairweight_cube": json.dumps(meta)})
    pq.write_table(table, "changed.parquet")
    said(refuse("audit", "changed.parquet"), "'changed.parquet'", "cube")
    negative = pq.read_table(cube)
    place = negative.schema.get_field_index("count")
    fewer = pa.array([-1] * negative.num_rows, pa.int64())
    pq.write_table(negative.set_column(place, "count", fewer), "negative.parquet")
    said(refuse("audit", "negative.parquet"), "'negative.parquet'", "count")


def test_cubes_mixed_with_tables(cube: str, refuse: Callable[..., str]) -> None:
    sentence = refuse("audit", cube, "preds.parquet")
    said(sentence, "Cubes and prediction tables", "fairweight count")


def test_cubes_with_different_groups(cube: str, refuse: Callable[..., str], run: Run) -> None:
    run("count", "preds.parquet", "--groups", "sex", "--out", "other.parquet").done()
    said(refuse("audit", cube, "other.parquet"), f"'{cube}'", "'other.parquet'", "same --groups")


def test_cubes_with_different_baselines_and_variants(
    cube: str, refuse: Callable[..., str], run: Run
) -> None:
    words = ("count", "preds.parquet", "--groups", "sex,age")
    run(*words, "--baseline", "int8", "--out", "other.parquet").done()
    said(refuse("audit", cube, "other.parquet"), "dense", "int8", "same --baseline")
    renamed = wide_frame().rename(columns={"pred_int8": "pred_int4", "score_int8": "score_int4"})
    renamed.to_parquet("int4.parquet")
    run("count", "int4.parquet", "--groups", "sex,age", "--out", "int4-cube.parquet").done()
    said(refuse("audit", cube, "int4-cube.parquet"), "int4", "int8")


def test_a_cube_asked_for_what_it_does_not_have(cube: str, refuse: Callable[..., str]) -> None:
    said(refuse("audit", cube, "--groups", "sexx"), "'sexx' does not exist", "Did you mean 'sex'?")
    said(refuse("audit", cube, "--baseline", "dens"), "Did you mean 'dense'?")


@pytest.mark.parametrize(
    "flags",
    [
        ["--cluster", "person"],
        ["--weight", "w"],
        ["--examples", "preds.parquet"],
        ["--task", "sex"],
        ["--prediction", "dense=pred_dense"],
        ["--train", "preds.parquet"],
    ],
)
def test_flags_that_a_cube_cannot_follow_are_not_ignored(
    cube: str, refuse: Callable[..., str], flags: list[str]
) -> None:
    """An audit that looks clustered or weighted and is not would mislead."""
    said(refuse("audit", cube, *flags), flags[0])


def test_a_variants_table_goes_with_cubes(
    cube: str, refuse: Callable[..., str], run: Run, no_page: None
) -> None:
    """It speaks of models, not of columns that were counted."""
    models = pd.DataFrame({"variant": ["dense", "int8"], "seed": 0, "parent": [None, "dense:0"]})
    run("audit", cube, "--variants", csv(models, "variants.csv"), *FEW, "--out", "kept").done()
    assert [held["name"] for held in document("kept")["provenance"]["inputs"]] == [
        cube,
        "variants.csv",
    ]
    assert not [note for note in document("kept")["notes"] if "descends" in note]
    models.loc[1, "parent"] = "dnese:0"
    run("audit", cube, "--variants", csv(models, "variants.csv"), *FEW, "--out", "kept").done()
    assert [note for note in document("kept")["notes"] if "descends from 'dnese' (seed 0)" in note]
    models["parent"] = ["int8", "dense"]
    said(refuse("audit", cube, "--variants", csv(models, "variants.csv")), "circle")


def test_a_cube_is_not_counted_again(cube: str, run: Run) -> None:
    said(run("count", cube, "--out", "again.parquet").refused(), "cube")
    assert not Path("again.parquet").exists()


def test_a_count_that_is_refused_writes_nothing(run: Run) -> None:
    said(
        run("count", csv(wide_frame()), "--label", "lable", "--out", "c.parquet").refused(), "lable"
    )
    assert not list(Path().glob("*c.parquet*"))


def test_empty_names(refuse: Callable[..., str]) -> None:
    """What a script passes when its variable is not set."""
    name = csv(wide_frame())
    said(refuse("audit", ""), "empty")
    said(refuse("audit", name, out=""), "--out")


@pytest.mark.parametrize(
    "command",
    [("preflight",), ("choose", "--objective", "accuracy")],
)
def test_numbers_are_refused_where_right_and_wrong_are_needed(
    refuse: Callable[..., str], command: tuple[str, ...]
) -> None:
    frame = pd.DataFrame(
        {
            "example_id": np.arange(60),
            "sex": np.tile(["f", "m"], 30),
            "dense": np.linspace(0.0, 1.0, 60),
            "int8": np.linspace(0.1, 1.1, 60),
        }
    )
    models = ("--outcome", "dense=dense", "--outcome", "int8=int8", "--better", "lower")
    sentence = refuse(command[0], csv(frame), *models, "--groups", "sex", *command[1:])
    remedy = "labels and predictions" if command == ("preflight",) else "outcome@GROUP=VALUE"
    said(sentence, "which predictions are right", "is a number", remedy)
