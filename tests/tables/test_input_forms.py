"""Tables and arrays as people have them: one meaning each, or both meanings in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.spec import TableSpec

N = 40
LABELS = ["a", "b"] * (N // 2)


def row(audit: fw.Audit) -> tuple[float, float]:
    found = audit.overall.query("metric == 'accuracy'").iloc[0]
    return float(found["baseline"]), float(found["compressed"])


def wide(**columns: Any) -> pd.DataFrame:
    held = {"example_id": range(N), "label": LABELS, "pred_dense": LABELS, "pred_int8": LABELS}
    return pd.DataFrame({**held, **columns})


# `--prediction yhat` where every model has a table of its own.


def test_one_name_of_a_column_is_that_of_every_file() -> None:
    asked = TableSpec.from_words(["dense.csv", "int8.csv", "--prediction", "yhat", "--score", "p"])
    assert (asked.prediction, asked.predictions, asked.score, asked.scores) == (
        "yhat", None, "p", None,
    )  # fmt: skip
    assert TableSpec.from_words(asked.arguments()) == asked
    frames = {n: pd.DataFrame({"example_id": range(N), "label": LABELS, "yhat": LABELS})
              for n in ("dense", "int8")}  # fmt: skip
    assert row(fw.audit_table(frames, predictions="yhat", n_boot=20)) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prediction", "a", "--prediction", "b"], "give one column"),
        (["--prediction", "a", "--prediction", "int8=b"], "wide table .--prediction NAME=COL."),
        (["--prediction", "a="], "not of the form NAME=COLUMN"),
        (["--prediction", "a", "--prediction-column", "b"], "says 'b'; give one"),
    ],
)
def test_names_of_columns_that_could_mean_two_things_are_refused(
    words: list[str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        TableSpec.from_words(["p.csv", *words])


def test_a_wide_table_with_one_name_says_what_is_missing() -> None:
    with pytest.raises(InputError, match="predictions of one model only"):
        fw.audit_table(wide(), predictions="pred_dense", n_boot=20)


# Pairs of predictions and probabilities in wide tables.


@pytest.mark.parametrize("stem", ["prob", "proba", "probability", "score"])
def test_probabilities_beside_predictions_are_scores(stem: str) -> None:
    scores = np.linspace(0.01, 0.99, N)
    table = wide(**{f"{stem}_dense": scores, f"{stem}_int8": scores[::-1]})
    audit = fw.audit_table(table, pos_label="b", n_boot=20)
    auc = audit.overall.query("metric == 'auc'").iloc[0]
    positive, negative = scores[1::2], scores[::2]
    by_hand = float((positive[:, None] > negative).mean())
    assert float(auc["baseline"]) == pytest.approx(by_hand)
    assert float(auc["compressed"]) == pytest.approx(1 - by_hand)


def test_two_columns_of_scores_for_one_model_are_refused() -> None:
    table = wide(prob_int8=0.5, score_int8=0.5)
    with pytest.raises(InputError, match="'prob_int8' and 'score_int8'; say which with --score"):
        fw.audit_table(table, n_boot=20)


# The text `nan`.


@pytest.mark.parametrize("source", ["csv", "pandas", "pandas of text", "dict", "numpy"])
def test_nan_beside_numbers_is_missing_from_everywhere(tmp_path: Path, source: str) -> None:
    group = ["1", "nan", "2", "NaN"] * (N // 4)
    table: Any = wide(group=group)
    if source == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
        table = tmp_path / "t.csv"
    elif source == "pandas":
        table.to_csv(tmp_path / "t.csv", index=False)
        table = pd.read_csv(tmp_path / "t.csv")
    elif source == "dict":
        table = {name: list(table[name]) for name in table}
    elif source == "numpy":
        table = {**{name: list(table[name]) for name in table}, "group": np.array(group)}
    audit = fw.audit_table(table, groups="group", n_boot=20)
    groups = audit.by_group.query("metric == 'accuracy'")[["group", "n"]].values.tolist()
    assert sorted(groups) == [["group=(missing)", 20], ["group=1", 10], ["group=2", 10]]


@pytest.mark.parametrize("column", ["label", "pred_int8", "group"])
@pytest.mark.parametrize("source", ["csv", "parquet", "pandas"])
def test_nan_beside_names_is_refused_with_both_remedies(
    tmp_path: Path, column: str, source: str
) -> None:
    table: Any = wide(group=["x", "y"] * (N // 2))
    table[column] = ["nan", *table[column][1:]]
    if source == "csv":
        table.to_csv(tmp_path / "t.csv", index=False)
        table = tmp_path / "t.csv"
    elif source == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
        table = tmp_path / "t.parquet"
    with pytest.raises(InputError, match=f"'{column}' has the text 'nan' in 1 row") as raised:
        fw.audit_table(table, groups="group", n_boot=20)
    assert "leave the cell empty" in str(raised.value)
    assert "--force" in str(raised.value)
    audit = fw.audit_table(table, groups="group", n_boot=20, force=True)
    assert audit.result.n_examples == N


# Every wrong column in one message.


def test_all_columns_that_do_not_exist_are_named_at_once() -> None:
    frames = {"dense": wide(), "int8": wide()}
    with pytest.raises(InputError) as raised:
        fw.audit_table(
            frames, id="exmple_id", label="labels", prediction="yhat", groups=["sex", "sex*label"],
            cluster="writer", n_boot=20,
        )  # fmt: skip
    said = str(raised.value)
    assert "5 columns do not exist" in said
    for words in (
        "--id 'exmple_id' (did you mean 'example_id'?)", "--label 'labels' (did you mean 'label'?)",
        "--prediction-column 'yhat'", "--groups 'sex'", "--cluster 'writer'",
    ):  # fmt: skip
        assert words in said
    with pytest.raises(InputError, match=r"'labels' does not exist.*--label"):
        fw.audit_table(wide(), label="labels", n_boot=20)  # one: as before


# Hints look at values.


def test_a_column_of_two_values_is_no_cluster() -> None:
    by_name = {"person": [0, 1] * (N // 2)}
    audit = fw.audit_table(wide(site=["x", "y"] * 20, **by_name), groups="site", n_boot=20)
    assert "--cluster" not in " ".join(audit.notes)
    shared = {"person": [i // 2 for i in range(N)]}
    audit = fw.audit_table(wide(site=["x", "y"] * 20, **shared), groups="site", n_boot=20)
    assert "use --cluster person" in " ".join(audit.notes)
    single = {"person": list(range(N))}  # an example each: nothing belongs together
    audit = fw.audit_table(wide(site=["x", "y"] * 20, **single), groups="site", n_boot=20)
    assert "--cluster" not in " ".join(audit.notes)


# `predict_proba` as y_pred.

ROWS = np.random.default_rng(3).normal(size=(90, 4))


@pytest.mark.parametrize("names", [[0, 1, 2], ["x", "y", "z"], [10, 9, 30]])
@pytest.mark.parametrize("framed", [False, True])
def test_probabilities_given_as_predictions_are_read_by_name(
    names: list[Any], framed: bool
) -> None:
    y = np.array(names)[(ROWS[:, 0] > 0).astype(int) + (ROWS[:, 1] > 0)]
    models = {"dense": LogisticRegression(C=9).fit(ROWS, y), "tiny": LogisticRegression(C=0.01)}
    models["tiny"].fit(ROWS[:, :4], y)
    given: dict[str, Any] = {name: model.predict_proba(ROWS) for name, model in models.items()}
    if framed:  # another order of columns, said by their names
        turned = list(models["dense"].classes_[::-1])
        given = {name: pd.DataFrame(held[:, ::-1], columns=turned) for name, held in given.items()}
    audit = fw.audit(y, given, n_boot=20)
    assert row(audit) == pytest.approx(tuple(model.score(ROWS, y) for model in models.values()))
    assert "holds class probabilities" in audit.notes[0]
    shares = models["dense"].predict_proba(ROWS)
    hits = y[:, None] == models["dense"].classes_
    brier = audit.overall.query("metric == 'brier'").iloc[0]
    assert float(brier["baseline"]) == pytest.approx(((shares - hits) ** 2).sum(1).mean())


def test_probabilities_whose_classes_are_not_known_are_refused() -> None:
    shares = np.full((4, 3), 1 / 3)
    with pytest.raises(InputError, match=r"score_classes=\[...\]"):
        fw.audit(["a", "b", "a", "b"], {"dense": shares, "int8": shares}, n_boot=20)
    audit = fw.audit(["a", "b"] * 20, {"dense": np.tile([[0.6, 0.3, 0.1]], (40, 1)),
                                       "int8": np.tile([[0.1, 0.8, 0.1]], (40, 1))},
                     score_classes=["b", "a", "c"], n_boot=20)  # fmt: skip
    assert row(audit) == (0.5, 0.5)
    two = np.tile([[0.4, 0.6]], (4, 1))
    with pytest.raises(InputError, match=r"as numbers .* or as text"):
        fw.audit(["9", "10", "9", "10"], {"dense": two, "int8": two}, n_boot=20)
    one_hot = np.array([[0.0, 1.0], [1.0, 0.0]] * 2)
    with pytest.raises(InputError, match="one-hot, or the predictions of 2 seeds"):
        fw.audit([0, 1, 0, 1], {"dense": one_hot, "int8": one_hot}, n_boot=20)
    seeds = fw.audit(
        [0, 1] * 20,
        {"dense": np.tile([[0, 1], [1, 0]], (20, 1)), "int8": np.tile([[0, 1], [1, 0]], (20, 1))},
        n_boot=20,
    )
    assert row(seeds) == (0.5, 0.5)


def test_the_positive_class_has_two_names_and_one_value() -> None:
    y, predicted = ["a", "b"] * 20, {"dense": ["a", "b"] * 20, "int8": ["a", "a"] * 20}
    rows = [
        fw.audit(y, predicted, n_boot=20, **{name: "b"}).overall.query("metric == 'fnr'")
        for name in ("pos_label", "positive")
    ]  # type: ignore[arg-type]
    assert rows[0]["compressed"].tolist() == rows[1]["compressed"].tolist() == [1.0]
    with pytest.raises(InputError, match="two positive classes"):
        fw.audit(y, predicted, pos_label="a", positive="b", n_boot=20)
