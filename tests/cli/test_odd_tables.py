"""Odd tables: an audit or one sentence, and never an error of ours."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import Run

FEW = ("--n-boot", "20", "--quiet")
CLASSES = ("label", "pred_dense", "pred_int8")


def wide(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "example_id": np.arange(n),
            "label": label,
            "pred_dense": np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), label),
            "pred_int8": np.where(rng.random(n) < 0.35, rng.integers(0, 3, n), label),
            "sex": rng.choice(["F", "M"], n),
            "person": np.arange(n) // 2,
            "w": 1.0 + np.arange(n) % 3,
        }
    )


BASE = wide()
TWO = BASE.assign(**{c: BASE[c] % 2 for c in CLASSES})
SCORE = np.linspace(0.05, 0.95, 60)


def long(table: pd.DataFrame, seeds: int = 1) -> pd.DataFrame:
    rest = table.drop(columns=["pred_dense", "pred_int8"])
    return pd.concat(
        rest.assign(variant=v, seed=s, prediction=np.roll(table[f"pred_{v}"], 7 * s))
        for v in ("dense", "int8")
        for s in range(seeds)
    )


def every(change: Any, table: pd.DataFrame = BASE) -> pd.DataFrame:
    """The same change made to labels and predictions."""
    return table.assign(**{c: change(table[c]) for c in CLASSES})


def day(numbers: Any) -> Any:
    return pd.Timestamp("2020-01-01") + pd.to_timedelta(numbers, unit="D")


def nested(column: str, how: str, table: pd.DataFrame = BASE) -> pa.Table:
    made = pa.Table.from_pandas(table, preserve_index=False)
    place = made.schema.get_field_index(column)
    kind, values = made.schema.field(column).type, table[column].tolist()
    held = {
        "list": lambda: pa.array([[v, v] for v in values], pa.list_(kind)),
        "struct": lambda: pa.array([{"a": v} for v in values]),
        "map": lambda: pa.array([[("k", v)] for v in values], pa.map_(pa.string(), kind)),
    }[how]()
    return made.set_column(place, column, held)


WEIGHT, CLUSTER, SEX = ("--weight", "w"), ("--cluster", "person"), ("--groups", "sex")

# What is audited.
FINE: dict[str, tuple[Any, ...]] = {
    "one row": (every(lambda c: BASE["label"]).iloc[:1],),
    "two rows, clusters": (BASE.iloc[:2], *CLUSTER),
    "one cluster": (BASE.assign(person=1), *CLUSTER),
    "one cluster, seeds": (long(BASE.assign(person=1), 3), *CLUSTER),
    "a label alone, scores": (TWO.assign(label=1, score_dense=SCORE, score_int8=SCORE), *CLUSTER),
    "a label alone, seeds and scores": (long(TWO.assign(label=1), 3).assign(score=0.3),),
    "nobody is wrong": (every(lambda c: BASE["label"]),),
    "nobody is right": (BASE.assign(**dict.fromkeys(CLASSES[1:], (BASE["label"] + 1) % 3)),),
    "one class predicted": (long(BASE.assign(pred_int8=0), 3),),
    "no prediction of int8": (BASE.assign(pred_int8=None),),
    "a class per example": (every(lambda c: np.roll(np.arange(60), len(c.name))),),
    "groups all missing": (BASE.assign(sex=None), *SEX),
    "groups all missing, seeds": (long(BASE.assign(sex=None), 3), *SEX),
    "groups missing for some": (BASE.assign(sex=BASE["sex"].where(BASE.index % 3 > 0)), *SEX),
    "one group": (BASE.assign(sex="x"), *SEX),
    "a group per example": (BASE.assign(sex=np.arange(60)), *SEX),
    "labels as groups": (long(BASE, 3), "--groups", "label,label*sex"),
    "all groups small": (long(BASE, 3), "--min-group", "1000"),
    "huge numbers": (every(lambda c: c + 2**62),),
    "huge unsigned numbers": (every(lambda c: c.astype("uint64") + np.uint64(2**63)),),
    "negative numbers": (every(lambda c: -c),),
    "infinite numbers": (every(lambda c: np.where(c > 0, np.inf, -np.inf)),),
    "days": (every(day), *SEX),
    "times": (every(lambda c: [datetime.time(v) for v in c]),),
    "durations": (every(lambda c: pd.to_timedelta(c, unit="D")),),
    "decimals": (every(lambda c: [decimal.Decimal(int(v)) / 4 for v in c]),),
    "bytes": (every(lambda c: [bytes([200 + v]) for v in c]),),
    "truth": (every(lambda c: c > 0),),
    "truth and numbers": (TWO.assign(label=TWO["label"] > 0),),
    "categories": (every(lambda c: pd.Categorical(c.astype(str), categories=list("01234567"))),),
    "categories, seeds": (long(every(lambda c: c.astype(str)), 2).astype("category"),),
    "empty text": (every(lambda c: np.where(c > 0, "", "a")),),
    "constant scores": (TWO.assign(score_dense=0.5, score_int8=0.5),),
    "scores of one model": (TWO.assign(score_dense=SCORE),),
    "scores all missing": (TWO.assign(score_dense=np.nan, score_int8=SCORE),),
    "weights of a single example": (BASE.assign(w=(BASE.index == 0) * 1.0), *WEIGHT),
    "no weight for a group": (BASE.assign(w=(BASE["sex"] == "F") * 1.0), *WEIGHT),
    "no weight for a class, seeds": (long(BASE.assign(w=(BASE["label"] > 0) * 1.0), 3), *WEIGHT),
    "decimal weights": (BASE.assign(w=[decimal.Decimal(i % 3 + 1) for i in range(60)]), *WEIGHT),
    "days as identities": (BASE.assign(example_id=day(BASE["example_id"])),),
    "fractions as identities": (BASE.assign(example_id=BASE["example_id"] + 0.5),),
    "variants by truth": (long(BASE).assign(variant=lambda t: t["variant"] == "int8"),),
    "seeds by day": (long(BASE, 3).assign(seed=lambda t: day(t["seed"])),),
    "more seeds of one": (long(BASE, 3)[lambda t: (t["variant"] == "dense") | (t["seed"] == 0)],),
    "tasks by truth": (pd.concat([BASE.assign(task=True), BASE.assign(task=False)]),),
    "a task of one row": (pd.concat([BASE.assign(task="a"), BASE.iloc[:1].assign(task="b")]),),
    "lists that are no groups": (nested("sex", "list"),),
}


# Kinds of values: odd until they are counted, so that `count` reads all that an audit would.
VALUES = {
    "huge numbers", "huge unsigned numbers", "negative numbers", "infinite numbers", "days",
    "times", "durations", "decimals", "bytes", "truth", "truth and numbers", "categories",
    "categories, seeds", "empty text", "decimal weights", "days as identities",
    "fractions as identities", "variants by truth", "seeds by day", "tasks by truth",
    "lists that are no groups", "groups missing for some",
}  # fmt: skip


def test_the_kinds_of_values_are_names_of_tables() -> None:
    assert set(FINE) >= VALUES


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in VALUES else n for n in FINE]
)
def test_what_is_audited(run: Run, no_page: None, name: str) -> None:
    table, *flags = FINE[name]
    run("audit", written(table), *flags, *FEW).done()


@pytest.mark.parametrize("name", sorted(VALUES))
def test_what_is_read(run: Run, name: str) -> None:
    table, *flags = FINE[name]
    run("count", written(table), *flags, "--out", "cube.parquet", "--quiet").done()
    assert pq.read_table("cube.parquet").num_rows > 1


# What is refused, and the words that name it.
REFUSED: dict[str, tuple[Any, ...]] = {
    "no rows": (BASE.iloc[:0], "no rows"),
    "one variant": (BASE.drop(columns="pred_int8"), "at least two"),
    "a variant twice": (pd.concat([long(BASE), long(BASE)]), "duplicate keys"),
    "labels all missing": (BASE.assign(label=np.nan), "no label ('label')"),
    "no prediction of dense": (BASE.assign(pred_dense=None), "'dense'", "it is empty"),
    "identities all missing": (BASE.assign(example_id=np.nan), "without an example id"),
    "clusters all missing": (BASE.assign(person=None), "cluster column", *CLUSTER),
    "infinite scores": (
        TWO.assign(score_dense=np.inf, score_int8=SCORE),
        "'score_dense'",
        "[0, 1]",
    ),
    "scores missing for some": (
        TWO.assign(score_dense=np.where(SCORE > 0.5, SCORE, np.nan), score_int8=SCORE),
        "'score_dense' is missing",
    ),
    "scores of text": (TWO.assign(score_dense="x", score_int8=SCORE), "'score_dense'", "text"),
    "infinite weights": (BASE.assign(w=np.inf), "'w' is negative, infinite or missing", *WEIGHT),
    "missing weights": (BASE.assign(w=np.nan), "'w' is negative, infinite or missing", *WEIGHT),
    "weights that add up to 0": (BASE.assign(w=0.0), "'w' is zero everywhere", *WEIGHT),
    "weights with signs": (BASE.assign(w=np.arange(60) % 2 * 2.0 - 1), "negative", *WEIGHT),
    "weights beyond squares": (BASE.assign(w=1e300), "from 1e+300", "by their mean", *WEIGHT),
    "weights below squares": (BASE.assign(w=1e-300), "from 1e-300", "by their mean", *WEIGHT),
    "weights of days": (BASE.assign(w=day(BASE["person"])), "'w' must hold numbers", *WEIGHT),
    "ranks of text": (
        BASE.assign(label_rank_dense="x", label_rank_int8="y"),
        "'label_rank_dense' must hold numbers",
    ),
    "ranks below the top": (
        BASE.assign(label_rank_dense=0, label_rank_int8=1),
        "'label_rank_dense' has 60 values that are no place",
    ),
    "task missing": (pd.concat([BASE.assign(task="a"), BASE.assign(task=None)]), "without a task"),
}
_FLAGS = {"sex": SEX, "person": CLUSTER, "w": WEIGHT, "task": ("--task", "task")}
_ROLES = {"pred_dense": "prediction", "pred_int8": "prediction", "sex": "group", "w": "weight",
          "person": "cluster", "example_id": "id"}  # fmt: skip
for _column in ("label", "pred_dense", "pred_int8", "sex", "person", "w", "example_id", "task"):
    _table = BASE.assign(task="a") if _column == "task" else BASE
    for _how, _word in (("list", "lists"), ("struct", "structures"), ("map", "structures")):
        REFUSED[f"{_how} as {_column}"] = (
            nested(_column, _how, _table),
            f"The {_ROLES.get(_column, _column)} column '{_column}' of 't.parquet' holds {_word}",
            "each row needs one value",
            *_FLAGS.get(_column, ()),
        )
for _column in ("label", "prediction", "variant", "seed", "example_id"):
    REFUSED[f"list as {_column}, long"] = (
        nested(_column, "list", long(BASE)),
        f"column '{_column}' of 't.parquet' holds lists",
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(run: Run, name: str) -> None:
    table, *rest = REFUSED[name]
    flags = [word for word in rest if word.startswith("--")]
    at = rest.index(flags[0]) if flags else len(rest)
    sentence = run("audit", written(table), *rest[at:], *FEW).refused()
    for part in rest[:at]:
        assert part in sentence


def written(table: Any) -> str:
    made = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, None, False)
    pq.write_table(made, "t.parquet")
    return "t.parquet"


@pytest.mark.parametrize("column", ["label", "pred_dense", "sex", "example_id"])
@pytest.mark.parametrize("value", [lambda v: [v], lambda v: {"a": v}], ids=["list", "object"])
def test_nested_json(run: Run, column: str, value: Any) -> None:
    table = BASE.assign(**{column: [value(v) for v in BASE[column].tolist()]})
    table.to_json("t.jsonl", orient="records", lines=True)
    sentence = run("audit", "t.jsonl", *(SEX if column == "sex" else ()), *FEW).refused()
    assert f"column '{column}' of 't.jsonl' holds" in sentence


@pytest.mark.parametrize(
    ("option", "table", "part"),
    [
        ("--examples", {"example_id": [[i] for i in range(60)], "site": ["a", "b"] * 30}, "lists"),
        ("--train", {"label": [[0], [1], [2]], "n": [1, 1, 1]}, "lists"),
        ("--train", {"label": [0, 1, 2], "sex": [["F"], ["M"], ["F"]]}, "lists"),
        ("--train", {"label": [0, 1, 2], "n": [1.0, np.inf, 1.0]}, "missing or infinite in 1 rows"),
        ("--train", {"label": [0, 1, 2], "n": [1.0, None, 1.0]}, "missing or infinite in 1 rows"),
        ("--variants", {"variant": [["dense"], ["int8"]]}, "lists"),
        ("--variants", {"variant": ["dense", "int8"], "parent": [["a"], ["b"]]}, "lists"),
    ],
)
def test_odd_tables_beside(run: Run, option: str, table: dict[str, Any], part: str) -> None:
    pq.write_table(pa.table(table), "beside.parquet")
    sentence = run("audit", written(BASE), option, "beside.parquet", *FEW).refused()
    assert part in sentence
    assert "'beside.parquet'" in sentence


def test_what_a_variants_table_may_hold(run: Run, no_page: None) -> None:
    held = {"variant": ["dense", "int8"], "layers": [[1, 2], [3]], "hash": [b"\xff", b"a"]}
    pq.write_table(pa.table(held), "beside.parquet")
    run("audit", written(BASE), "--variants", "beside.parquet", *FEW).done()


@pytest.mark.parametrize(
    "tasks",
    [(True, False), *(pytest.param(t, marks=pytest.mark.slow) for t in (("a", "b"), (1.5, 2.5)))],
    ids=str,
)
def test_explain_where_a_task_has_one_label(run: Run, no_page: None, tasks: Any) -> None:
    both = pd.concat([TWO.assign(task=tasks[0], label=1), TWO.assign(task=tasks[1])])
    run("explain", written(both), "--groups", "sex", *FEW).done()
