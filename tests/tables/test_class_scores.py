"""Class probabilities that stand in a column each, by a pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec

RANDOM = np.random.default_rng(0)
CLASSES = np.array(["cat", "dog", "emu"])
SHARES = {name: RANDOM.dirichlet([1, 1, 1], size=60) for name in ("dense", "int8")}
LABELS = CLASSES[RANDOM.integers(0, 3, 60)]


def one_file(name: str, **more: Any) -> pd.DataFrame:
    """A model's own table: the columns of classes in no order."""
    held = {f"p_{CLASSES[i]}": SHARES[name][:, i] for i in (2, 0, 1)}
    return pd.DataFrame({"example_id": range(60), "label": LABELS, **held, **more})


def accuracy(audit: fw.Audit) -> tuple[float, float]:
    row = audit.overall.query("metric == 'accuracy'").iloc[0]
    return float(row["baseline"]), float(row["compressed"])


def expected() -> tuple[float, float]:
    right = [float((CLASSES[s.argmax(1)] == LABELS).mean()) for s in SHARES.values()]
    return right[0], right[1]


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_the_most_probable_class_is_predicted(tmp_path: Path, kind: str) -> None:
    tables: dict[str, Any] = {}
    for name in SHARES:
        frame = one_file(name)
        place = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            frame.to_csv(place, index=False)
        elif kind == "parquet":
            frame.to_parquet(place)
        tables[name] = frame if kind == "frame" else str(place)
    audit = fw.audit_table(tables, class_scores="p_*", n_boot=20)
    assert accuracy(audit) == pytest.approx(expected())
    assert "most probable class is predicted (classes cat, dog, emu)" in " ".join(audit.notes)
    # Scores are scores: the mean of (1 - p of the label) squared and the others squared.
    brier = audit.overall.query("metric == 'brier'").iloc[0]
    hits = LABELS[:, None] == CLASSES
    by_hand = ((SHARES["dense"] - hits) ** 2).sum(axis=1).mean()
    assert float(brier["baseline"]) == pytest.approx(by_hand)
    # Columns of probabilities are no groups and need no word.
    assert not audit.result.groupings
    assert "p_cat" not in " ".join(audit.notes)


def test_a_column_of_predictions_goes_before_the_probabilities() -> None:
    others = {"prediction": np.roll(LABELS, 1)}
    tables = {name: one_file(name, **others) for name in SHARES}
    audit = fw.audit_table(tables, class_scores="p_*", n_boot=20)
    right = float((np.roll(LABELS, 1) == LABELS).mean())
    assert accuracy(audit) == pytest.approx((right, right))


def test_wide_and_long_tables() -> None:
    wide = pd.DataFrame({"example_id": range(60), "label": LABELS})
    for name, shares in SHARES.items():
        for i, of_class in enumerate(CLASSES):
            wide[f"{name}_{of_class}_p"] = shares[:, i]
    patterns = {name: f"{name}_*_p" for name in SHARES}
    audit = fw.audit_table(wide, class_scores=patterns, n_boot=20)
    assert accuracy(audit) == pytest.approx(expected())
    long = pd.concat([one_file(name, variant=name) for name in SHARES])
    assert accuracy(fw.audit_table(long, class_scores="p_*", n_boot=20)) == pytest.approx(
        expected()
    )


def test_a_missing_probability_is_a_missing_prediction() -> None:
    frame = one_file("int8")
    frame.loc[3, "p_dog"] = np.nan
    aligned = align(TableSpec({"dense": one_file("dense"), "int8": frame}, class_scores="p_*"))
    with aligned:
        missing = aligned.connection.execute(
            f'SELECT example_id FROM "{aligned.view}" WHERE p1 IS NULL'
        ).fetchall()
    assert missing == [(3,)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("p_cat", "needs one star"),
        ("q_*", "matches 0 of the columns"),
        ("p_c*", "matches 1 of the columns"),
        ("*", "which holds no numbers"),
    ],
)
def test_patterns_that_say_nothing_are_refused(given: str, words: str) -> None:
    tables = {name: one_file(name) for name in SHARES}
    with pytest.raises(InputError, match=words):
        fw.audit_table(tables, class_scores=given, n_boot=20)


def test_two_sources_of_scores_are_refused() -> None:
    tables = {n: one_file(n, scores=[list(row) for row in SHARES[n]]) for n in SHARES}
    with pytest.raises(InputError, match="has a column 'scores' beside"):
        fw.audit_table(tables, class_scores="p_*", n_boot=20)
