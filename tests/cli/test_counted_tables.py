"""Counted tables on the command line: the numbers of single examples, or one clear refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from .conftest import FEW, Run, document, numbers, same

GROUPS = ("--groups", "sex,sex*age")
KEYS = ["label", "pred_dense", "pred_half", "pred_int8", "sex", "age", "person"]


@pytest.fixture
def tables(folder: Path) -> None:
    """rows.csv, and pairs.csv: the same 1,200 examples by `GROUP BY ..., count(*) AS n`."""
    rng = np.random.default_rng(8)
    n = 1200
    label = rng.integers(0, 3, n)
    rows = pd.DataFrame(
        {"label": label, "sex": rng.choice(["F", "M"], n), "age": rng.choice(["old", "young"], n),
         "person": rng.integers(0, 30, n)}
    )  # fmt: skip
    for name, error in (("dense", 0.1), ("half", 0.12), ("int8", 0.2)):
        rows[f"pred_{name}"] = np.where(rng.random(n) < error, (label + 1) % 3, label)
    rows = rows[KEYS]
    rows.assign(example_id=np.arange(n)).to_csv("rows.csv", index=False)
    by_person = rows.groupby(KEYS).size().reset_index(name="n")
    by_person.to_csv("persons.csv", index=False)
    counted = rows.groupby(KEYS[:-1]).size().reset_index(name="n")
    counted.to_csv("pairs.csv", index=False)


pytestmark = pytest.mark.usefixtures("few_metrics", "no_page", "tables")


def audits(out: str) -> dict[str, Any]:
    """Everything an audit wrote in numbers: audit.json and every table of `tables/`."""
    held = {
        path.name: pd.read_parquet(path) for path in sorted(Path(out, "tables").glob("*.parquet"))
    }
    held |= {p.name: pd.read_csv(p) for p in sorted(Path(out, "tables").glob("*.csv"))}
    assert "results.parquet" in held
    return held


def assert_same(one: str, other: str) -> None:
    same(numbers(one), numbers(other))
    left, right = audits(one), audits(other)
    assert left.keys() == right.keys()
    for name, table in left.items():
        pd.testing.assert_frame_equal(table, right[name], rtol=1e-12, atol=1e-12, obj=name)


def test_audit(run: Run, no_page: None) -> None:
    run("audit", "rows.csv", *GROUPS, *FEW, "--out", "rows").done()
    run("audit", "pairs.csv", "--count", "n", *GROUPS, *FEW, "--out", "pairs").done()
    assert_same("pairs", "rows")
    assert document("pairs")["n_examples"] == 1200
    assert len(pd.read_csv("pairs.csv")) < 200


@pytest.mark.slow  # in Python: auditing/counts/test_counted_tables.py
def test_audit_with_clusters(run: Run, no_page: None) -> None:
    words = (*GROUPS, "--cluster", "person", *FEW)
    run("audit", "rows.csv", *words, "--out", "rows").done()
    run("audit", "persons.csv", "--count", "n", *words, "--out", "pairs").done()
    assert_same("pairs", "rows")


def test_gate(run: Run, no_page: None) -> None:
    policy = 'schema = 1\n[[rule]]\nmetric = "accuracy"\nby = "group"\nmargin = 0.05\n'
    Path("policy.toml").write_text(policy)
    words = ("--groups", "sex", "--policy", "policy.toml", *FEW)
    rows = run("gate", "rows.csv", *words, "--json", "rows.json")
    pairs = run("gate", "pairs.csv", "--count", "n", *words, "--json", "pairs.json")
    assert rows.code == pairs.code == 1
    assert json.loads(Path("pairs.json").read_text()) == json.loads(Path("rows.json").read_text())


def test_count(run: Run, no_page: None) -> None:
    run("count", "rows.csv", *GROUPS, "--out", "rows.parquet", "-q").done()
    told = run("count", "pairs.csv", "--count", "n", *GROUPS, "--out", "pairs.parquet").done().out
    assert told.startswith("1,200 examples in ")
    left, right = pd.read_parquet("pairs.parquet"), pd.read_parquet("rows.parquet")
    pd.testing.assert_frame_equal(left, right)
    run("audit", "pairs.parquet", *FEW, "--out", "cube").done()
    run("audit", "rows.csv", *GROUPS, *FEW, "--out", "rows").done()
    same(numbers("cube"), numbers("rows"))


@pytest.mark.parametrize("share", [(), ("--confirm-share", "0.4")], ids=["", "confirmed"])
def test_choose(run: Run, share: tuple[str, ...]) -> None:
    words = ("--objective", "accuracy", "--require", "worst_group>=0.7", "--groups", "sex",
             "--n-boot", "40", *share)  # fmt: skip
    run("choose", "rows.csv", *words, "--out", "rows").done()
    run("choose", "pairs.csv", "--count", "n", *words, "--out", "pairs").done()
    left, right = (json.loads(Path(o, "choice.json").read_text()) for o in ("pairs", "rows"))
    for made in (left, right):
        made.pop("command", None)
        made.pop("created", None)
        made.pop("notes", None)
    assert left == right


def test_a_choice_is_not_confirmed_on_counts(run: Run) -> None:
    words = ("choose", "pairs.csv", "--count", "n", "--objective", "accuracy")
    sentence = run(*words, "--confirm", "pairs.csv").refused()
    assert "--confirm needs single examples" in sentence
    assert "--confirm-share" in sentence


def test_explain(run: Run, no_page: None) -> None:
    run("explain", "pairs.csv", "--count", "n", "--groups", "sex", *FEW, "--out", "why").done()
    assert document("why")["n_examples"] == 1200


# --- the table that was audited as 640 examples --------------------------------------------------


def two_million() -> pd.DataFrame:
    """640 rows that stand for 2,000,000 examples."""
    places = [(label, dense, int8, sex, age, site)
              for label in range(4) for dense in range(4) for int8 in range(4)
              for sex in "FM" for age in ("old", "young") for site in range(5)][:640]  # fmt: skip
    table = pd.DataFrame(places, columns=["label", "pred_dense", "pred_int8", "sex", "age", "site"])
    return table.assign(count=3125)


COMMANDS = [
    ("audit", "t.csv", *FEW, "--out", "out"),
    ("audit", "t.csv", *FEW, "--out", "out", "--weight", "count"),
    ("audit", "t.csv", *FEW, "--out", "out", "--groups", "sex"),
    ("gate", "t.csv", "--policy", "policy.toml"),
    ("count", "t.csv", "--out", "cube.parquet"),
    ("choose", "t.csv", "--objective", "accuracy"),
    ("choose", "t.csv", "--objective", "accuracy", "--weight", "count"),
    ("explain", "t.csv", "--out", "out"),
    ("exemplars", "t.csv", "--out", "out"),
    ("preflight", "t.csv"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_two_million_examples_are_not_640(run: Run, words: tuple[str, ...]) -> None:
    two_million().to_csv("t.csv", index=False)
    Path("policy.toml").write_text(
        'schema = 1\n[[rule]]\nmetric = "accuracy"\nby = "overall"\nmargin = 0.05\n'
    )
    sentence = run(*words).refused()
    assert "add --count count (count='count'" in sentence
    assert "--id COLUMN" in sentence
    assert not Path("out").exists()


def test_two_million_examples_are_counted(run: Run, no_page: None) -> None:
    two_million().to_csv("t.csv", index=False)
    run("audit", "t.csv", "--count", "count", "--groups", "sex", *FEW).done()
    assert document()["n_examples"] == 2_000_000
    group = next(r for r in numbers() if (r["metric"], r["group"]) == ("accuracy", "sex=F"))
    assert group["n"] == 1_000_000


@pytest.mark.parametrize(
    "cluster",
    [("--cluster", "person"), pytest.param((), marks=pytest.mark.slow)],
    ids=["clusters", ""],
)
def test_a_cube_that_lost_its_metadata(run: Run, no_page: None, cluster: tuple[str, ...]) -> None:
    groups = ("--groups", "sex,age")
    run("count", "rows.csv", *groups, *cluster, "--out", "cube.parquet", "-q").done()
    pd.read_parquet("cube.parquet").to_csv("again.csv", index=False)
    pd.read_parquet("cube.parquet").to_parquet("again.parquet")
    for name in ("again.csv", "again.parquet"):
        sentence = run("audit", name, *FEW, "--out", "again").refused()
        assert "looks like a cube" in sentence
        assert "--count count" in sentence
        assert ("--cluster unit" in sentence) == bool(cluster)
    members = [f"{name}=prediction:{i}" for i, name in enumerate(("dense", "half", "int8"))]
    named = [word for member in members for word in ("--prediction", member)]
    unit = ("--cluster", "unit") if cluster else ()
    words = ("--count", "count", *named, *groups, *unit)
    plain = pd.read_parquet("again.parquet").rename(columns=lambda c: c.removeprefix("group:"))
    plain.to_parquet("renamed.parquet")
    run("audit", "renamed.parquet", *words, *FEW, "--out", "again").done()
    run("audit", "cube.parquet", *FEW, "--out", "cube").done()
    same(numbers("again"), numbers("cube"))


def test_count_and_a_cube_exclude_each_other(run: Run) -> None:
    run("count", "rows.csv", *GROUPS, "--out", "cube.parquet", "-q").done()
    assert (
        "--count cannot be applied to a cube"
        in run("audit", "cube.parquet", "--count", "count").refused()
    )
    assert "--count cannot change a stored audit" in _gate_of_an_audit(run)


def _gate_of_an_audit(run: Run) -> str:
    Path("policy.toml").write_text(
        'schema = 1\n[[rule]]\nmetric = "accuracy"\nby = "overall"\nmargin = 0.05\n'
    )
    run("audit", "pairs.csv", "--count", "n", *FEW, "--out", "made").done()
    return run("gate", "made", "--policy", "policy.toml", "--count", "n").refused()


def test_the_report_suggests_commands_that_read_the_counts(
    run: Run, page: Callable[[], str]
) -> None:
    run("audit", "pairs.csv", "--count", "n", "--groups", "sex", "-q", "--n-boot", "40").done()
    drawn = page()
    assert "fairweight explain pairs.csv --groups sex --count n" in drawn
    assert "fairweight mitigate cascade PREDICTIONS " in drawn


# --- labels and predictions that are none --------------------------------------------------------


def test_force_on_the_command_line(run: Run, no_page: None) -> None:
    rows = pd.read_csv("rows.csv")
    for name in ("dense", "half", "int8"):
        rows[f"pred_{name}"] = (rows[f"pred_{name}"] == rows["label"]).astype(int)
    rows.to_csv("acc.csv", index=False)
    Path("policy.toml").write_text(
        'schema = 1\n[[rule]]\nmetric = "accuracy"\nby = "overall"\nmargin = 0.05\n'
    )
    commands: list[tuple[str, ...]] = [
        ("audit", "acc.csv", *FEW, "--out", "out"),
        ("gate", "acc.csv", "--policy", "policy.toml", *FEW),
        ("count", "acc.csv", "--out", "cube.parquet", "-q"),
        ("choose", "acc.csv", "--objective", "accuracy", *FEW),
        ("exemplars", "acc.csv", "--out", "out", "-q"),
        ("preflight", "acc.csv", "-q"),
        ("mitigate", "overrides", "acc.csv", "--variant", "int8", "--out", "out", "-q"),
    ]
    for words in commands:
        sentence = run(*words).refused()
        assert "looks like right and wrong" in sentence, words
        assert not Path("out").exists()
    for words in commands[:-1]:
        assert run(*words, "--force").code in (0, 1, 3), words
    assert "right and wrong" in run("audit", "cube.parquet", *FEW).refused()
    run("audit", "cube.parquet", "--force", *FEW).done()


def test_measurements_as_labels(run: Run) -> None:
    rows = pd.read_csv("rows.csv")
    for name in ("label", "pred_dense", "pred_half", "pred_int8"):
        rows[name] = rows[name] + rows["person"] / 100
    rows.to_csv("ages.csv", index=False)
    for words in (("audit", "ages.csv"), ("count", "ages.csv", "--out", "cube.parquet")):
        sentence = run(*words).refused()
        assert "labels are numbers with fractions" in sentence
        assert "bins" in sentence
