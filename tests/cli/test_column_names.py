"""Columns with commas, quotes, stars and other marks in their names, in every command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import fairweight as fw
from fairweight.auditing.gate.verdict import decide
from fairweight.report.sections import explain_command, mitigate_commands, ship_commands
from fairweight.specs.policy import read_policy
from fairweight.tables.names import grouping_name, split_grouping, written_list

from .conftest import FEW, Run, document, long_frame, value, wide_frame

pytestmark = pytest.mark.usefixtures("few_metrics", "no_page")

COLUMNS = {  # name -> the column that it stands for
    "age, years": "age",
    'the "sex"': "sex",
    '"both"': "sex",
    "a*b": "age",
    "a=b": "sex",
    "a & b": "age",
    "[x] (y)": "sex",
    "$HOME `x` 'q'": "age",
}
GROUPINGS = [grouping_name([name]) for name in COLUMNS] + [grouping_name(["a*b", "a=b"])]
LIST = written_list(GROUPINGS)
# The columns of which the policy speaks; every command reads a list in the same way.
SOME = [grouping_name([name]) for name in ("age, years", 'the "sex"', "a*b", "a=b")]
SHORT = written_list([*SOME, GROUPINGS[-1]])


@pytest.fixture
def table(folder: Path) -> str:
    """The table with every column once more under a name with marks; also with a third model."""
    wide = wide_frame(120).drop(columns=["score_dense", "score_int8"])
    for name, plain in COLUMNS.items():
        wide[name] = wide[plain]
    wide = wide.drop(columns=["sex", "age", "w"])
    wide.to_csv("names.csv", index=False)
    wide.assign(pred_pruned=wide["pred_int8"]).to_csv("three.csv", index=False)
    return "names.csv"


def test_the_list_as_a_user_types_it(run: Run, table: str, no_page: None) -> None:
    typed = '"age, years",the "sex","""both""","a*b",a=b,"a*b"*a=b'
    run("audit", table, "--groups", typed, *FEW).done()
    assert document()["groupings"] == [
        "age, years", 'the "sex"', '"""both"""', '"a*b"', '"a=b"', '"a*b"*"a=b"',
    ]  # fmt: skip
    assert value("fairweight-audit", "n", by="group", group="age, years=old", variant="int8",
                 metric="accuracy", scope="model") == 40  # fmt: skip
    assert value("fairweight-audit", "n", by="group", group='"a*b"=old & "a=b"=F', variant="int8",
                 metric="accuracy", scope="model") == 24  # fmt: skip


def test_numbers_are_those_of_plain_names(run: Run, table: str, no_page: None) -> None:
    plain = wide_frame(120).drop(columns=["score_dense", "score_int8"])
    plain.to_csv("plain.csv", index=False)
    run("audit", "plain.csv", "--groups", "age,sex,age*sex", "--out", "plain", *FEW).done()
    run("audit", table, "--groups", '"a*b","a=b","a*b"*"a=b"', "--out", "marked", *FEW).done()

    def rows(out: str, *names: tuple[str, str]) -> list[tuple[object, ...]]:
        found = []
        for row in document(out)["results"]:
            # Names order the cells, and the order decides which sign a cell gets.
            if row["variant"] != "int8" or row["metric"].startswith("heterogeneity"):
                continue
            group, level = row["group"] or "", row["level"] or ""
            for marked, plain in names:
                group, level = group.replace(marked, plain), level.replace(marked, plain)
            kept = ("metric", "by", "class", "n", "baseline", "compressed", "shift", "p_value")
            found.append((group, level, *(row[column] for column in kept)))
        return sorted(found, key=repr)

    assert rows("marked", ('"a*b"', "age"), ('"a=b"', "sex")) == rows("plain")


def test_every_command_that_takes_groups(run: Run, table: str, no_page: None) -> None:
    groups = ("--groups", SHORT)
    judged = run("gate", table, *groups, "--policy", policy(), "--n-boot", "40")
    assert judged.code in (0, 1, 3), judged.err
    run("count", table, "--groups", LIST, "--out", "cube.parquet", "--quiet").done()
    assert set(cube_columns("cube.parquet")) == set(COLUMNS)
    run("audit", "cube.parquet", "--groups", '"a*b"*"a=b"', "--out", "cube-2", *FEW).done()
    assert document("cube-2")["groupings"] == ['"a*b"*"a=b"']
    run("choose", "three.csv", *groups, "--objective", "accuracy", "--require",
        "worst_group_shift>=-0.9", "--n-boot", "40", "--quiet").done()  # fmt: skip
    run("explain", table, *groups, "--out", "explained", *FEW).done()
    run("exemplars", table, *groups, "--quiet", "--out", "exemplars").done()
    run("preflight", table, *groups, "--baseline", "dense").done()
    wide = long_frame().assign(**{"a*b": "x", "age, years": "y"})
    wide.to_parquet("long.parquet")
    run("count", "long.parquet", "--groups", '"a*b","age, years"', "--parts", "2", "--workers",
        "1", "--out", "parts.parquet", "--quiet").done()  # fmt: skip
    assert cube_columns("parts.parquet") == ["a*b", "age, years"]


def cube_columns(path: str) -> list[str]:
    """The group columns of a cube."""
    names = pq.read_schema(path).names
    return [name.removeprefix("group:") for name in names if name.startswith("group:")]


def policy(name: str = "policy.toml") -> str:
    """A policy that names columns and groups in both ways of writing them."""
    columns = ["age, years", '"age, years"', 'the "sex"', "a*b", '"a=b"']
    groups = ["age, years=old", '"a*b"=young', '"a=b"=F']
    rules = [
        f"columns = {json.dumps(columns)}",
        f"groups = {json.dumps(groups)}",
    ]
    text = "min_group_size = 10\nrequire_groups = " + json.dumps(['the "sex"=M']) + "\n"
    for rule in rules:
        text += f'[[rule]]\nmetric = "accuracy"\nby = "group"\nmargin = 0.5\n{rule}\n'
    text += '[[rule]]\nmetric = "group_gap"\nby = "grouping"\nmax = 0.9\ncolumns = ["a*b"]\n'
    text += '[[rule]]\nmetric = "accuracy"\nby = "intersection"\nmargin = 0.9\n'
    text += "columns = " + json.dumps(['"a*b"*"a=b"']) + "\n"
    Path(name).write_text(text)
    return name


def test_policies_name_columns_and_groups(run: Run, table: str, no_page: None) -> None:
    run("audit", table, "--groups", SHORT, "--out", "a", *FEW).done()
    result = fw.load("a").result
    made = decide(result, read_policy(policy()))
    judged = set(made.rows.loc[made.rows["variant"] == "int8", "group"])
    assert judged == {
        "age, years=old", "age, years=young", 'the "sex"=F', 'the "sex"=M', '"a*b"=old',
        '"a*b"=young', '"a=b"=F', '"a=b"=M', '"a*b"', '"a*b"=old & "a=b"=F',
        '"a*b"=old & "a=b"=M', '"a*b"=young & "a=b"=F', '"a*b"=young & "a=b"=M',
    }  # fmt: skip
    Path("wrong.toml").write_text(
        '[[rule]]\nmetric = "accuracy"\nby = "group"\nmargin = 0.5\ngroups = ["a*c=old"]\n'
    )
    said = run("gate", "a", "--policy", "wrong.toml").refused()
    assert "the group 'a*c=old' does not exist" in said


def test_suggested_commands_can_be_pasted(run: Run, table: str, no_page: None) -> None:
    run("audit", "three.csv", "--groups", SHORT, "--cluster", "person", "--prediction",
        '"new=model"=pred_int8', "--prediction", "dense=pred_dense", "--prediction",
        "pruned=pred_pruned", "--baseline", "dense", "--out", "my audit", *FEW).done()  # fmt: skip
    result = fw.load("my audit").result
    assert set(result.variants) == {"new=model", "pruned"}
    policy()
    suggested = [explain_command(result), *ship_commands(result)[1:]]
    for command in suggested:
        words = shlex.split(command)
        assert words[0] == "fairweight"
        options = [] if words[1] == "gate" else ["--n-boot", "40", "--out", words[1], "--quiet"]
        outcome = run(*words[1:], *options)
        assert outcome.code in (0, 1, 3), outcome.err
    assert document("explain")["groupings"] == [*SOME, GROUPINGS[-1]]
    for command in mitigate_commands(result):
        words = shlex.split(command)
        (place,) = [i for i, word in enumerate(words) if word == "--groups"]
        assert words[place + 1] == SHORT


def test_what_means_two_things_is_refused(run: Run, folder: Path) -> None:
    wide_frame().assign(**{"sex*age": "x"}).to_csv("t.csv", index=False)
    said = run("audit", "t.csv", "--groups", "sex*age").refused()
    assert 'write "sex*age" for the column, "sex"*"age" for the intersection' in said
    run("count", "t.csv", "--groups", '"sex"*"age","sex*age"', "--out", "c.parquet").done()
    run("audit", "c.parquet", *FEW).done()
    assert document()["groupings"] == ["sex*age", '"sex*age"']
    groups = {row["group"] for row in document()["results"] if row["by"] == "group"}
    assert groups == {
        "sex=F & age=old", "sex=F & age=young", "sex=M & age=old", "sex=M & age=young",
        '"sex*age"=x',
    }  # fmt: skip


def test_python_takes_the_same_names() -> None:
    wide = wide_frame().rename(columns={"sex": "a*b", "age": "age, years"})
    made = fw.audit_table(wide, groups=["age, years", '"a*b"', '"a*b"*age, years'], n_boot=40)
    assert made.result.groupings == ("age, years", '"a*b"', '"a*b"*age, years')
    assert [split_grouping(name) for name in made.result.single_columns] == [
        ("age, years",), ("a*b",),
    ]  # fmt: skip
    suppressed = made.suppressed()
    assert set(suppressed.results["group"].dropna()) == set(made.results["group"].dropna())
