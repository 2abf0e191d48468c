"""From exemplars through the verdicts of people to overrides and their audit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation, to_csv

from .conftest import Run

pytestmark = pytest.mark.usefixtures("few_metrics", "no_page")

FEW = ("--n-boot", "20", "--quiet")


def table(n: int = 120) -> pd.DataFrame:
    """The small model is wrong on every tenth example, and three labels are wrong too."""
    label = np.arange(n) % 2
    right = label.copy()
    label[[13, 23, 33]] = 1 - label[[13, 23, 33]]
    small = np.where(np.arange(n) % 10 == 3, 1 - right, right)
    parts = [
        pd.DataFrame(
            {
                "example_id": [f"e{i}" for i in range(n)],
                "variant": variant,
                "label": label,
                "prediction": prediction,
                "score": np.where(prediction == 1, 0.9, 0.1),
            }
        )
        for variant, prediction in (("dense", right), ("small", small))
    ]
    return pd.concat(parts, ignore_index=True)


def judged(row: dict[str, str], who: str) -> Annotation:
    example, label = str(row["example_id"]), str(row["label"])
    if example in ("e13", "e23", "e33"):
        right = str(1 - int(label))
        return Annotation(example, "label_wrong", label=right, annotator=who)
    verdict = "fine" if who == "bo" else "model_harmful"
    return Annotation(example, verdict, label=label, annotator=who)


def test_the_loop_from_exemplars_to_an_audit_of_overrides(run: Run) -> None:
    preds = table()
    preds.to_parquet("preds.parquet")
    run("exemplars", "preds.parquet", "--out", "found", "--quiet").done()
    found = pd.read_csv("found/exemplars.csv", dtype=str)
    exemplars = found[found["modal"].str.lower() == "true"].to_dict("records")
    assert {row["example_id"] for row in exemplars} == {f"e{i}" for i in range(3, 120, 10)}
    rows = [judged(row, who) for who in ("ann", "bo") for row in exemplars]
    rows += [  # a tie, which gives no label, and one that nobody dares to judge
        Annotation("e0", "fine", label="0", annotator="ann"),
        Annotation("e0", "label_wrong", label="1", annotator="bo"),
        Annotation("e1", "ambiguous", annotator="ann"),
    ]
    Path("annotations.csv").write_text(to_csv(rows), encoding="utf-8", newline="")
    words = ("mitigate", "overrides", "preds.parquet", "--budget", "1")
    run(*words, "--labels", "annotations.csv", "--out", "fixed", *FEW).done()

    held = json.loads(Path("fixed/overrides.json").read_text())
    truth = {f"e{i}": str(i % 2) for i in range(3, 120, 10)}
    assert (held["labels"], held["overrides"]) == ("human", {"": truth})
    made = pd.read_parquet("fixed/predictions.parquet")
    new = made[made["variant"] == "small+overrides-100"].set_index("example_id")["prediction"]
    dense = preds[preds["variant"] == "dense"].set_index("example_id")["prediction"]
    assert (new.astype(int) == dense[new.index]).all()  # it was the small model that was wrong
    audit = json.loads(fw.load("fixed/audit").to_json())
    assert "small+overrides-100" in audit["variants"]
    (row,) = [
        row
        for row in audit["results"]
        if (row["variant"], row["metric"], row["by"]) == ("small+overrides-100", "flips", "overall")
        and row["scope"] == "model"
    ]
    assert row["compressed"] == 0.0
    notes = " ".join(audit["notes"])
    assert "those of 2 annotators; ties (1) and examples without a label (1) give none" in notes

    with AnnotationStore("annotations.sqlite") as store:
        store.import_rows(rows, "found")
    run(*words, "--labels", "annotations.sqlite", "--out", "again", *FEW).done()
    assert Path("again/overrides.json").read_text() == Path("fixed/overrides.json").read_text()


def test_a_budget_that_leaves_labels_out_says_so(run: Run) -> None:
    table().to_parquet("preds.parquet")
    rows = [Annotation(f"e{i}", "fine", label=str(i % 2), annotator="ann") for i in range(40)]
    Path("annotations.csv").write_text(to_csv(rows), encoding="utf-8", newline="")
    words = ("mitigate", "overrides", "preds.parquet", "--labels", "annotations.csv")
    run(*words, "--budget", "0.1", "--out", "few", *FEW).done()
    held = json.loads(Path("few/overrides.json").read_text())["overrides"][""]
    notes = json.loads(Path("few/audit/audit.json").read_text())["notes"]
    assert 0 < len(held) < 40
    assert any(f"{len(held)} of 40 labels are used" in note for note in notes)


def test_annotations_that_cannot_be_used_are_refused(run: Run) -> None:
    table().to_parquet("preds.parquet")
    words = ("mitigate", "overrides", "preds.parquet", "--labels", "a.csv", *FEW)

    def refused(*rows: Annotation) -> str:
        Path("a.csv").write_text(to_csv(rows), encoding="utf-8", newline="")
        return run(*words).refused()

    assert "no label that most annotators agree on" in refused(Annotation("e1", "ambiguous"))
    assert "is about the task 'hair', but the predictions have one task" in refused(
        Annotation("e1", "fine", label="1", task="hair")
    )
    assert "'cat', which is no class" in refused(Annotation("e1", "fine", label="cat"))
    assert "for other examples" in refused(Annotation("x", "fine", label="1"))
    Path("a.csv").write_text("example_id,verdict,label\ne1,good,1\n")
    assert "a.csv, row 1: The verdict 'good' does not exist" in run(*words).refused()
    with AnnotationStore("a.csv.sqlite") as store:
        for audit in ("one", "two"):
            store.add(Annotation("e1", "fine", label="1"), audit=audit)
    sentence = run(*words[:4], "a.csv.sqlite", *FEW).refused()
    assert "annotations of 2 audits (one, two); export those of one" in sentence
