"""Logs, detections and files of others, from the command's words to numbers that were published."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

ROOT = Path(__file__).parents[3]
FEW = {"n_boot": 20}


@pytest.fixture(scope="session")
def real() -> Path:
    folder = Path(os.environ.get("FAIRWEIGHT_REAL", ROOT.parent / "shared" / "real"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set FAIRWEIGHT_REAL to run this test")
    return folder


def overall(made: Any) -> dict[str, pd.Series]:
    """The confirmatory overall row of each variant."""
    first = made.overall["metric"].iloc[0]
    rows = made.overall[made.overall["metric"] == first]
    return {row["variant"]: row for _, row in rows.iterrows()}


def test_a_pair_of_lm_eval_is_audited_without_an_option(real: Path) -> None:
    """Of 360 examples 72 and 70 are right: 21 + 25 + 26 and 20 + 27 + 23, as lm-eval reports."""
    pair = real / "formats" / "lm_eval" / "pair"
    made = fw.audit_table([f"{name}={pair / name}" for name in ("dense", "int8")], **FEW)
    row = overall(made)["int8"]
    assert (row["n"], row["baseline"], row["compressed"]) == (360, 72 / 360, 70 / 360)
    by_task = made.by_group[made.by_group["group"] == "task=mymmlu_law"].iloc[0]
    assert (by_task["baseline"], by_task["compressed"]) == (0.26, 0.23)
    assert [len(one["sha256"]) for one in made.result.provenance.inputs] == [64, 64]
    assert made.result.provenance.request["tables"]["sources"][0]["path"] == str(pair / "dense")


def test_groups_tasks_and_queries_go_on_from_a_log(real: Path) -> None:
    pair = real / "formats" / "lm_eval" / "pair"
    sources = sources_of([f"{name}={pair / name}" for name in ("dense", "int8")])
    tables = TableSpec(sources, log_tasks=["mymmlu_law", "mymmlu_anatomy"], groups="subject")
    with align(tables) as aligned:
        assert (aligned.n_examples, aligned.group_columns) == (200, ("subject",))
        assert not aligned.has_task
    query = "SELECT * FROM data WHERE task LIKE 'mymmlu%' AND gold <> '0'"
    with align(TableSpec(sources, query=query, groups="task")) as aligned:
        assert aligned.n_examples < 300
    for tables, said in (
        (TableSpec(sources, label="gold"), "--label .* cannot be used with evaluation logs"),
        (TableSpec(sources[:1]), "the log of one model"),
        (TableSpec([*sources, "c=other.csv"]), "is an evaluation log, and other.csv is none"),
        (TableSpec(sources, log_tasks=["speech"]), "has no task 'speech'"),
        (TableSpec({"a": "x.csv"}, log_filter="strict"), "--log-filter .* is not for tables"),
    ):
        with pytest.raises(InputError, match=said):
            align(tables)


def test_the_folder_names_a_variant(real: Path) -> None:
    pair = real / "formats" / "lm_eval" / "pair"
    with align(TableSpec([str(pair / "dense"), str(pair / "int8")])) as aligned:
        assert (aligned.baseline, aligned.variants) == ("dense", ("int8",))


# --- real outputs, one command each: the reference numbers of their README ------------------------

ONCE = 'QUALIFY row_number() OVER (PARTITION BY arm, id ORDER BY "row") = 1'


def test_mmlu(real: Path) -> None:
    path = str(real / "mmlu_ollama_fp16_q8_q4" / "predictions.parquet")
    names = {"id": "id", "variant": "arm", "outcome": "score", "better": "higher"}
    made = fw.audit_table(
        path,
        query=f"SELECT * EXCLUDE task FROM data WHERE task = 'mmlu' {ONCE}",
        groups="subject",
        **names,
        **FEW,
    )
    rows = overall(made)
    assert rows["q8_0"]["n"] == 499
    found = [rows["q8_0"]["baseline"], rows["q8_0"]["compressed"], rows["q4_K_M"]["compressed"]]
    assert [round(value, 4) for value in found] == [0.5852, 0.5872, 0.5691]
    with pytest.raises(InputError, match=r"[a-z_]+::[0-9a-f]{8}"):  # the id that occurs twice
        fw.audit_table(path, **names, **FEW)


@pytest.mark.parametrize(
    ("folder", "task", "column", "n", "expected"),
    [
        ("mmlu_ollama_fp16_q8_q4", "extraction", "score", 300,
         {"fp16": 0.6141, "q8_0": 0.6138, "q4_K_M": 0.5637}),
        ("whisper_large_v3_ggml_librispeech", None, "wer", 2620,
         {"f16": 0.0535, "q8_0": 0.0525, "q5_0": 0.0519, "q4_0": 0.0561}),
        ("math500_r1distill_3bit", "r1d", "correct_simple", 50, {"bf16": 0.80, "3bit": 0.34}),
        ("math500_r1distill_3bit", "dsr", "correct_simple", 50, {"bf16": 0.82, "3bit": 0.54}),
    ],
)  # fmt: skip
def test_outcomes_of_others_are_read_as_published(
    real: Path, folder: str, task: str | None, column: str, n: int, expected: dict[str, float]
) -> None:
    where = "" if task is None else f" WHERE '{task}' IN (task, {'model' if n == 50 else 'task'})"
    tables = TableSpec(
        str(real / folder / "predictions.parquet"),
        query=f"SELECT * EXCLUDE task FROM data{where}",
        id="id",
        variant="arm",
        outcome=column,
        better="lower" if column == "wer" else "higher",
        groups=(),
    )
    with align(tables) as aligned:
        assert aligned.n_examples == n
        means = ", ".join(f"avg({member.prediction})" for member in aligned.members)
        found = aligned.connection.sql(f"SELECT {means} FROM {aligned.view}").fetchall()[0]
        by = {
            member.variant: round(mean, 4)
            for member, mean in zip(aligned.members, found, strict=True)
        }
    assert by == expected


def test_changes_without_labels_are_read_as_published(real: Path) -> None:
    tables = TableSpec(
        str(real / "codebert_devign_compress" / "predictions.parquet"),
        query="SELECT id, arm, pred FROM data",
        id="id",
        variant="arm",
        prediction="pred",
        baseline="base",
        unlabelled=True,
        groups=(),
    )
    with align(tables) as aligned:
        first = aligned.members[0].prediction
        changed = {
            member.variant: f"100 * avg(CAST({member.prediction} <> {first} AS INT))"
            for member in aligned.members[1:]
        }
        sql = f"SELECT {', '.join(changed.values())} FROM {aligned.view}"
        found = dict(zip(changed, aligned.connection.sql(sql).fetchall()[0], strict=True))
    shown = [round(found[name], 1) for name in ("quant_int8", "quant_int4", "distilbert")]
    assert shown == [0.8, 10.4, 29.1]


# --- detections ----------------------------------------------------------------------------------


def detections(folder: Path) -> tuple[Path, dict[str, Path]]:
    """40 images with a large cat and a small dog; the second detector misses half of the dogs."""
    big, small = [10, 10, 200, 200], [300, 300, 20, 20]
    truth: dict[str, Any] = {
        "images": [{"id": i, "camera": "night" if i % 4 == 0 else "day"} for i in range(40)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {"id": 2 * i + c - 1, "image_id": i, "category_id": c, "bbox": box, "iscrowd": 0,
             "area": box[2] * box[3], "segmentation": [[0, 0, 1, 1]]}
            for i in range(40) for c, box in ((1, big), (2, small))
        ],
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "instances.json").write_text(json.dumps(truth))
    files = {}
    for name, lost in (("dense", 0), ("int8", 2)):
        found = [
            {"image_id": one["image_id"], "category_id": one["category_id"], "bbox": one["bbox"],
             "score": 0.9}
            for one in truth["annotations"]
            if not (lost and one["category_id"] == 2 and one["image_id"] % lost)
        ]  # fmt: skip
        found.append({"image_id": 0, "category_id": 1, "bbox": [400, 1, 9, 9], "score": 0.6})
        found.append({"image_id": 0, "category_id": 1, "bbox": [500, 1, 9, 9], "score": 0.4})
        files[name] = folder / f"{name}.json"
        files[name].write_text(json.dumps(found))
    return folder / "instances.json", files


def test_detections_are_audited_by_true_object(tmp_path: Path) -> None:
    """Recall of dogs 1 → 20 of 40; small objects are the dogs."""
    truth, files = detections(tmp_path)
    sources = {name: str(path) for name, path in files.items()}
    made = fw.audit_table(sources, examples=str(truth), **FEW)
    recall = made.by_class.query("metric == 'recall'").set_index("class")
    assert recall.loc["dog", ["baseline", "compressed"]].tolist() == [1.0, 0.5]
    assert recall.loc["cat", "compressed"] == 1.0
    groups = set(made.by_group["group"])
    assert {"size=small", "size=large", "camera=night"} <= groups
    assert made.overall["n_clusters"].max() == 40
    with align(
        TableSpec(sources, examples=str(truth), outcome="false_detections", better="lower")
    ) as aligned:
        total = f"SELECT count(*), sum(p0), sum(p1) FROM {aligned.view}"
        assert aligned.connection.sql(total).fetchall() == [(40, 1.0, 1.0)]
    tables = TableSpec(sources, examples=str(truth), score_threshold=0.3)
    with align(tables) as aligned:
        assert any("score of at least 0.3" in note for note in aligned.notes)
    for bad, said in (
        (TableSpec(sources), "give the true objects too"),
        (TableSpec(sources, examples=str(truth), outcome="mAP", better="higher"), "mAP"),
        (TableSpec(sources, examples=str(truth), id="k"), "--id"),
    ):
        with pytest.raises(InputError, match=said):
            align(bad)
