"""`fairweight gate` and `audit --policy`: exit codes that CI can rely on, with reasons."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight import cli
from fairweight.api import Audit
from fairweight.auditing.archive import to_json
from fairweight.auditing.result import DIVISORS
from fairweight.errors import InputError
from fairweight.specs.policy import read_policy

from ..auditing.decide.made_bounds import answers, line, made_audit, spread
from .conftest import FEW, Outcome, Run, value

POLICY = """
schema = 1
[[rule]]
metric = "accuracy"
by = "group"
margin = 0.02
"""
pytestmark = pytest.mark.usefixtures("no_page")
CODES = {"pass": 0, "fail": 1, "cannot tell": 3}


@pytest.fixture
def policy(folder: Path) -> str:
    Path("policy.toml").write_text(POLICY)
    return "policy.toml"


def store(*rows: dict[str, Any], name: str = "audit.json") -> str:
    Path(name).write_text(to_json(made_audit(rows)), encoding="utf-8")
    return name


def table(n: int, lost: int, *, groups: int = 2) -> pd.DataFrame:
    """A dense model that is always right; int8 loses `lost` answers of the first group."""
    i = np.arange(n)
    label = (i // groups) % 2
    first = np.flatnonzero(i % groups == 0)[:lost]
    int8 = label.copy()
    int8[first] = 1 - int8[first]
    sex = np.array(["Female", "Male", "Other"])[i % groups]
    return pd.DataFrame(
        {"example_id": i, "label": label, "pred_dense": label, "pred_int8": int8, "sex": sex}
    )


def shell(*words: str, cwd: Path) -> Outcome:
    """As a shell script runs it."""
    made = subprocess.run(
        [sys.executable, "-m", "fairweight", *words],
        cwd=cwd,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Outcome(made.returncode, made.stdout, made.stderr)


# --- the four outcomes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "lost", "rule", "code", "told"),
    [
        (1200, 0, "", 0, "Gate: PASS"),  # 600 per group, identical
        (1200, 60, "", 1, "Gate: FAIL"),  # 10 % of the women's answers lost
        (1200, 0, 'groups = ["sex=Femail"]', 2, "Did you mean 'sex=Female'?"),
        (240, 1, "", 3, "Gate: CANNOT TELL"),  # 1 of 120 lost: below 2 points, but who knows
    ],
)
def test_four_cases(
    run: Run, no_page: None, n: int, lost: int, rule: str, code: int, told: str
) -> None:
    table(n, lost).to_csv("preds.csv", index=False)
    Path("policy.toml").write_text(POLICY + rule)
    words = ("gate", "preds.csv", "--groups", "sex", "--policy", "policy.toml", "--n-boot", "40")
    made = run(*words)
    assert made.code == code, made.out + made.err
    assert told in made.out + made.err
    assert "Traceback" not in made.err


def test_stored_audits_and_the_code_that_a_shell_sees(run: Run, folder: Path, policy: str) -> None:
    cases = {
        0: answers(1000, 0, 0, group="sex=F"),
        1: answers(1000, 90, 0, group="sex=F"),
        3: answers(120, 1, 0, group="sex=F"),
    }
    for code, rows in cases.items():
        assert run("gate", store(*rows), "--policy", policy).code == code
    assert shell("gate", "audit.json", "--policy", policy, cwd=folder).code == cli.CANNOT_TELL
    Path("audit.json").write_text('{"schema": 99}')
    assert "has the schema 99" in run("gate", "audit.json", "--policy", policy).refused()


def test_point_estimates_would_have_let_the_small_sample_pass(run: Run, policy: str) -> None:
    rows = answers(120, 1, 0, group="sex=F")
    assert rows[0]["estimate"] > -0.02
    assert run("gate", store(*rows), "--policy", policy).code == cli.CANNOT_TELL


# --- one function decides ------------------------------------------------------------------------


def random_case(rng: np.random.Generator) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    """Random limits for one to three variants, and a random policy about some of them."""
    names = ["sex=F", "sex=M", "age=old", "age=(missing)"][: rng.integers(1, 5)]
    rows: list[dict[str, Any]] = []
    for variant in ["a", "b", "c"][: rng.integers(1, 4)]:
        for group in names:
            keys: dict[str, Any] = {"variant": variant, "group": group}
            n = int(rng.choice([30, 150, 600, 3000]))
            lost = int(rng.binomial(n, rng.choice([0, 0.01, 0.03, 0.1])))
            gained = int(rng.binomial(n - lost, rng.choice([0, 0.01])))
            rows += answers(n, lost, gained, right=n - gained, **keys)
            fnr = spread("shift", rng.normal(0, 0.03), rng.uniform(0.001, 0.03), n=n, **keys)
            rows.append(fnr | {"metric": "fnr"})
            if rng.random() < 0.1:
                rows[-1] |= {"status": "not_estimable: unstable"}
            if rng.random() < 0.1:
                rows[-1] |= {f"low_{j}": np.nan for j in DIVISORS}
    rules: list[dict[str, Any]] = []
    for _ in range(rng.integers(1, 4)):
        metric = str(rng.choice(["accuracy", "fnr", "cev" if rng.random() < 0.1 else "accuracy"]))
        rule: dict[str, Any] = {"metric": metric, "by": "group"}
        rule["margin"] = float(rng.choice([0.0, 0.01, 0.02, 0.05]))
        if metric == "accuracy" and rng.random() < 0.3:
            rule["min"] = float(rng.choice([0.5, 0.9, 0.97]))
        if rng.random() < 0.3:
            rule["groups"] = [str(rng.choice(["sex=F", "sex=M", "age=(missing)"]))]
        if rng.random() < 0.05:
            rule["margin"] = -1
        rules.append(rule)
    policy: dict[str, Any] = {"rule": rules, "min_group_size": int(rng.choice([20, 100, 500]))}
    if rng.random() < 0.1:
        policy["require_groups"] = ["sex=M"]
    return rows, policy, str(rng.choice(["all", "any"]))


def toml(policy: dict[str, Any]) -> str:
    """The policy as a file: JSON's numbers, texts and lists are TOML's too."""
    top = [f"{key} = {json.dumps(value)}" for key, value in policy.items() if key != "rule"]
    rules = [
        "\n".join(["[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items())])
        for rule in policy["rule"]
    ]
    return "\n".join([*top, *rules])


def in_python(audit: Audit, policy: dict[str, Any], require: Any) -> tuple[int, Any]:
    try:
        verdict = audit.gate(policy, require=require)
    except InputError as error:
        return cli.BAD_INPUT, str(error)
    return verdict.exit_code, verdict.rows[["decision", "reason"]].values.tolist()


@pytest.mark.parametrize("cases", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_python_and_the_command_line_agree_in_random_cases(run: Run, cases: int) -> None:
    rng = np.random.default_rng(3)
    seen = []
    for case in range(cases):
        rows, policy, require = random_case(rng)
        audit = Audit(made_audit(rows))
        expected, told = in_python(audit, policy, require)
        Path("policy.toml").write_text(toml(policy))
        Path("audit.json").write_text(audit.to_json(), encoding="utf-8")
        asked = ("--policy", "policy.toml", "--require", require, "--json", "verdict.json")
        made = run("gate", "audit.json", *asked, "--overwrite")
        assert made.code == expected, (case, made)
        if expected == cli.BAD_INPUT:
            # The file has a name, the dictionary none.
            assert made.refused().replace("policy 'policy.toml'", "policy") == told
        else:
            endpoints = json.loads(Path("verdict.json").read_text())["endpoints"]
            assert [[row["decision"], row["reason"]] for row in endpoints] == told
        seen.append(expected)
    # Every outcome occurs often enough for agreement to mean something.
    assert all(seen.count(code) >= cases / 20 for code in (0, 1, 2, 3)), seen


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (POLICY + "margn = 1", "rule 1: the key 'margn' does not exist"),
        (POLICY.replace("0.02", "-1"), "rule 1: margin = -1 cannot be used"),
        (POLICY + 'groups = ["sex=X"]', "the group 'sex=X' does not exist"),
        (POLICY.replace("accuracy", "cev"), "use cev_pp"),
        ("schema = 1", "the key 'rule' is missing"),
        ("schema =", "is not valid TOML"),
        ('require_groups = ["sex=X"]' + POLICY, "(require_groups) 'sex=X' does not exist"),
    ],
)
def test_policies_that_cannot_be_used(run: Run, text: str, told: str) -> None:
    stored = store(*answers(1000, 0, 0, group="sex=F"))
    Path("policy.toml").write_text(text)
    assert told in run("gate", stored, "--policy", "policy.toml").refused()


def test_a_policy_is_refused_before_the_tables_are_read(run: Run) -> None:
    Path("policy.toml").write_text(POLICY.replace("accuracy", "cev"))
    for command in (["gate"], ["audit", *FEW]):
        told = run(*command, "absent.csv", "--policy", "policy.toml").refused()
        assert "use cev_pp" in told


def test_what_is_missing_is_named(run: Run, policy: str) -> None:
    stored = store(*answers(1000, 0, 0, group="sex=F"))
    assert "--policy is missing" in run("gate", stored).refused()
    assert "No FILE was given" in run("gate", "--policy", policy).refused()
    assert "'no.toml' does not exist" in run("gate", stored, "--policy", "no.toml").refused()
    assert "audit.json" in run("gate", "nowhere/audit.json", "--policy", policy).refused()
    told = run("gate", stored, "--policy", policy, "--require", "most").refused()
    assert "'--require': 'most' is not one of 'all', 'any'" in told


@pytest.mark.parametrize("text", ['{"schema": 2}', "{}", "[]", '{"schema": 1', '{"schema": 1}'])
def test_audits_of_another_kind(run: Run, policy: str, text: str) -> None:
    Path("audit.json").write_text(text)
    assert "audit" in run("gate", "audit.json", "--policy", policy).refused()


def test_table_options_cannot_change_a_stored_audit(run: Run, policy: str) -> None:
    stored = store(*answers(1000, 0, 0, group="sex=F"))
    for option in (["--groups", "sex"], ["--n-boot", "50"], ["--id", "example_id"]):
        told = run("gate", stored, "--policy", policy, *option).refused()
        assert told.startswith(f"{option[0]} cannot change a stored audit")


def test_audits_are_known_by_what_they_hold(run: Run, policy: str) -> None:
    rows = answers(1000, 0, 0, group="sex=F")
    assert run("gate", store(*rows, name="last-week.json"), "--policy", policy).code == 0
    Path("out").mkdir()
    store(*rows, name="out/audit.json")
    assert run("gate", "out", "--policy", policy).code == 0
    told = run("gate", "out", "more.csv", "--policy", policy).refused()
    assert "is a stored audit; give it alone" in told


# --- what is printed and written -----------------------------------------------------------------


def test_reasons_are_printed(run: Run, policy: str) -> None:
    rows = [*answers(1000, 90, 0, group="sex=F"), *answers(50, 0, 0, group="sex=M")]
    made = run("gate", store(*rows), "--policy", policy)
    text = " ".join(made.out.split())
    assert made.code == cli.FAILED
    assert made.err == ""
    # 90 of 1,000 lost; the upper limit of the only endpoint that is large enough is −0.0762.
    assert "fail accuracy of sex=F (n = 1,000): loss is at least 7.6 points; limit 2." in text
    assert "(n = 50): it has too few examples: min_group_size is 100." in text
    assert "1 variant tried" in text


def test_quiet_prints_nothing_and_decides_the_same(run: Run, policy: str) -> None:
    made = run("gate", store(*answers(1000, 90, 0, group="sex=F")), "--policy", policy, "-q")
    assert (made.code, made.out) == (cli.FAILED, "")


def test_choosing_among_variants(run: Run, policy: str) -> None:
    rows = [
        line("shift", 0.0, -0.01, 0.01, n=500, group="sex=F", variant="a"),
        line("shift", -0.09, -0.1, -0.08, n=500, group="sex=F", variant="b"),
    ]
    every = run("gate", store(*rows), "--policy", policy)
    some = run("gate", store(*rows), "--policy", policy, "--require", "any")
    assert (every.code, some.code) == (1, 0)
    assert "all of 2 variants" in every.out
    assert "Selected on these data" in some.out


def test_files_on_request(run: Run, policy: str) -> None:
    rows = [*answers(1000, 90, 0, group="sex=<F> | x"), *answers(120, 1, 0, group="sex=M")]
    files = ("--json", "out/v.json", "--junit", "out/v.xml", "--markdown", "out/v.md")
    made = run("gate", store(*rows), "--policy", policy, *files)
    assert made.code == cli.FAILED
    assert json.loads(Path("out/v.json").read_text())["exit_code"] == 1
    cases = list(ElementTree.parse("out/v.xml").iter("testcase"))
    assert len(cases) == 2
    assert r"sex=\<F\> \| x" in Path("out/v.md").read_text()


def test_bad_input_writes_nothing(run: Run, policy: str) -> None:
    run("gate", "absent.csv", "--policy", policy, "--json", "v.json").refused()
    assert not Path("v.json").exists()
    stored = store(*answers(1000, 0, 0, group="sex=F"))
    Path("taken").write_text("")
    told = run("gate", stored, "--policy", policy, "--json", "taken/v.json").refused()
    assert "'taken' is a file" in told


def test_a_reader_that_leaves_does_not_change_the_verdict(folder: Path, policy: str) -> None:
    store(*answers(120, 1, 0, group="sex=F"))
    table(240, 1).to_csv("preds.csv", index=False)
    for command in ("gate audit.json", "audit preds.csv --groups sex --n-boot 40"):
        program = f"'{sys.executable}' -m fairweight {command} --policy {policy}"
        made = subprocess.run(
            ["bash", "-c", program + " | true; echo ${PIPESTATUS[0]}"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        assert made.stdout.split() == [str(cli.CANNOT_TELL)]  # not 0, not 1
        assert made.stderr == ""


def test_init_prints_a_policy_and_nothing_else(run: Run) -> None:
    text = run("gate", "--init").done().out
    Path("policy.toml").write_text(text)
    assert read_policy("policy.toml").rule[0].margin == 0.02
    (least,) = [row.split() for row in text.splitlines() if row.startswith("#   0.02 ")]
    assert least[2] == "133"


# --- nothing passes because it is absent ---------------------------------------------------------

HARMED = 320  # women, of whom 25 (7.8 %) lose their right answer: an 8-point loss


def people(n: int = 2000) -> dict[str, pd.DataFrame]:
    """A dense model that is always right; int8 loses 25 of 320 women and nobody else."""
    i = np.arange(n)
    label = i % 2
    sex = np.where(i < HARMED, "Female", "Male")
    dense = pd.DataFrame({"example_id": i, "label": label, "sex": sex, "prediction": label})
    int8 = dense.assign(prediction=np.where(i < 25, 1 - label, label))
    return {"dense": dense, "int8": int8}


def gated(run: Run, tables: dict[str, pd.DataFrame], *more: str, code: int) -> str:
    for name, frame in tables.items():
        frame.to_csv(f"{name}.csv", index=False)
    made = run(
        "gate", "dense.csv", "int8.csv", "--groups", "sex", "--policy", "policy.toml",
        "--n-boot", "40", "--json", "gate.json", "--overwrite", *more,
    )  # fmt: skip
    assert made.code == code, made.out + made.err
    return " ".join((made.out + made.err).split())


def test_the_harm_that_must_not_hide_fails_in_the_open(run: Run, policy: str) -> None:
    """25 of 320 lost is a shift of −0.078; its upper limit at 5 % / 2 is −0.053."""
    assert "accuracy of sex=Female (n = 320): loss is at least 5.3 points" in gated(
        run, people(), code=cli.FAILED
    )


def test_a_group_does_not_pass_because_its_value_is_missing(run: Run, policy: str) -> None:
    tables = {name: f.assign(sex=f["sex"].replace("Female", None)) for name, f in people().items()}
    told = gated(run, tables, code=cli.FAILED)
    assert "fail accuracy of sex=(missing) (n = 320): loss is at least 5.3 points" in told


def test_a_few_missing_values_are_no_pass_either(run: Run, policy: str) -> None:
    """Only the 25 women who lose have no value: too few to be judged, and not passed over."""
    tables = people()
    for frame in tables.values():
        frame.loc[frame["example_id"] < 25, "sex"] = None
    told = gated(run, tables, code=cli.CANNOT_TELL)
    assert "sex=(missing) (n = 25): it has too few examples" in told


def test_a_group_does_not_pass_because_its_wrong_rows_are_dropped(run: Run, policy: str) -> None:
    """Without the 25 wrong rows int8 is perfect: 295 women, at most 0.0091 lost.

    With them counted as errors: (295 × 0.0091 + 25) / 320 = 0.0865.
    """
    tables = people()
    tables["int8"] = tables["int8"][tables["int8"]["example_id"] >= 25]
    gated(run, tables, code=cli.BAD_INPUT)
    told = gated(run, tables, "--missing", "drop", code=cli.CANNOT_TELL)
    assert "sex=Female (n = 295): loss may be up to 8.7 points; limit 2; " in told
    assert "25 examples left out count as errors" in told
    female, male = json.loads(Path("gate.json").read_text())["endpoints"]
    assert (female["decision"], male["decision"]) == ("cannot tell", "pass")
    z2 = 2.705543454
    assert female["bound"] == pytest.approx(-(295 * z2 / (295 + z2) + 25) / 320)
    assert female["low"] == pytest.approx(-z2 / (295 + z2))  # the interval is of what was seen
    assert "missing from int8" in female["reason"]


def test_a_stored_audit_of_dropped_rows_is_decided_alike(run: Run, policy: str) -> None:
    tables = people()
    tables["int8"] = tables["int8"][tables["int8"]["example_id"] >= 25]
    gated(run, tables, "--missing", "drop", code=cli.CANNOT_TELL)
    direct = json.loads(Path("gate.json").read_text())
    words = ("dense.csv", "int8.csv", "--groups", "sex", "--missing", "drop")
    run("audit", *words, *FEW).done()
    stored = run("gate", "fairweight-audit", "--policy", policy, "--json", "stored.json")
    assert stored.code == cli.CANNOT_TELL
    again = json.loads(Path("stored.json").read_text())
    assert again["endpoints"] == direct["endpoints"]
    held = json.loads(Path("fairweight-audit/audit.json").read_text())
    assert {"task": None, "kind": "group", "group": "sex=Female", "class": None, "lacks": "int8",
            "n": 25, "n_weighted": 25.0} in held["left_out"]  # fmt: skip
    assert any("25 missing from 'int8'" in note for note in held["notes"])
    # and from counts without rows
    run("count", *words, "--out", "cube.parquet").done()
    counted = run("gate", "cube.parquet", "--policy", policy, "--json", "cube.json", *FEW)
    assert counted.code == cli.CANNOT_TELL
    assert json.loads(Path("cube.json").read_text())["endpoints"] == direct["endpoints"]


def test_a_group_of_which_every_row_is_dropped_is_no_pass(run: Run, policy: str) -> None:
    tables = people()
    tables["int8"] = tables["int8"][tables["int8"]["sex"] == "Male"]
    told = gated(run, tables, "--missing", "drop", code=cli.CANNOT_TELL)
    assert "sex=Female (n = 0): not estimable: all of its examples were left out" in told


def test_dropped_rows_that_cannot_matter_do_not_hold_up(run: Run, policy: str) -> None:
    """2 of 1,680 men are missing: (1,678 × 0.0016 + 2) / 1,680 = 0.0028, far below 0.02."""
    tables = people()
    tables["int8"] = tables["dense"][~tables["dense"]["example_id"].isin([500, 501])]
    told = gated(run, tables, "--missing", "drop", code=cli.DONE)
    assert "loss is at most 0.3 points; limit 2; 2 examples left out count as errors" in told


def test_dropped_rows_without_a_bound_leave_it_open(run: Run) -> None:
    """Nobody has worked out the worst that two examples more can do to kappa."""
    dense = people()["dense"]
    i, label = dense["example_id"], dense["label"]
    tables = {
        "dense": dense.assign(prediction=label.where(~i.between(600, 639), 1 - label)),
        "int8": dense.assign(prediction=label.where(~i.between(620, 659), 1 - label)),
    }
    rule = 'margin = 0.1\ngroups = ["sex=Male"]'
    Path("policy.toml").write_text(
        POLICY.replace("accuracy", "kappa").replace("margin = 0.02", rule)
    )
    assert "Gate: PASS" in gated(run, tables, code=cli.DONE)
    tables["int8"] = tables["int8"][~i.isin([500, 501])]
    gated(run, tables, "--missing", "drop", code=cli.CANNOT_TELL)
    (row,) = json.loads(Path("gate.json").read_text())["endpoints"]
    assert "what they do to kappa has no bound: give their predictions" in row["reason"]


def test_a_group_does_not_pass_because_it_is_absent(run: Run) -> None:
    """`--init` on a table writes down who must be there; later only men are in the tables."""
    for name, frame in people().items():
        frame.to_csv(f"{name}.csv", index=False)
    text = run("gate", "--init", "dense.csv", "int8.csv", "--groups", "sex").done().out
    Path("policy.toml").write_text(text)
    assert read_policy("policy.toml").require_groups == ("sex=Female", "sex=Male")
    gated(run, people(), code=cli.FAILED)
    men = {name: frame[frame["sex"] == "Male"] for name, frame in people().items()}
    told = gated(run, men, code=cli.BAD_INPUT)
    assert "(require_groups) 'sex=Female' does not exist" in told


def test_an_older_audit_that_dropped_rows_is_made_again(run: Run, policy: str) -> None:
    audit = made_audit(answers(1000, 0, 0, group="sex=F"))
    said = ("3 examples that some variant lacks were left out (--missing drop).",)
    held = json.loads(to_json(replace(audit, notes=said)))
    del held["left_out"], held["test_set"]
    Path("audit.json").write_text(json.dumps(held), encoding="utf-8")
    assert "make it again" in run("gate", "audit.json", "--policy", policy).refused()
    Path("audit.json").write_text(json.dumps(held | {"notes": []}), encoding="utf-8")
    assert run("gate", "audit.json", "--policy", policy).code == cli.DONE


# --- looks ---------------------------------------------------------------------------------------


def test_looks_through_the_command_line(run: Run, policy: str) -> None:
    """Two looks: another int8 is the second, a third finds none left; the first stays the first."""
    tables = people()
    tables["int8"] = tables["dense"]
    counted = ("--looks", "2", "--log", "looks.jsonl")
    assert "Look 1 of 2 at these examples: each bound" in gated(run, tables, *counted, code=0)
    assert "Look 1 of 2 at these examples, taken before" in gated(run, tables, *counted, code=0)
    assert json.loads(Path("gate.json").read_text())["look"] == {
        "number": 1, "of": 2, "again": True,
    }  # fmt: skip
    gated(run, people(), *counted, code=cli.FAILED)
    better = people()
    better["int8"] = better["dense"].assign(prediction=better["dense"]["prediction"] * 1.0)
    assert "all 2 looks" in gated(run, better, *counted, code=cli.CANNOT_TELL)
    # the audit that was made of the first is the first look too
    for name, frame in tables.items():
        frame.to_csv(f"{name}.csv", index=False)
    run("audit", "dense.csv", "int8.csv", "--groups", "sex", *FEW).done()
    stored = run("gate", "fairweight-audit", "--policy", policy, *counted)
    assert stored.code == cli.DONE
    assert "Look 1 of 2 at these examples, taken before" in " ".join(stored.out.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--looks", "2"), "--looks N and --log FILE belong together"),
        (("--log", "x.jsonl"), "--looks N and --log FILE belong together"),
        (("--looks", "0", "--log", "x.jsonl"), "cannot be 0; give a whole number from 1 to 1,000"),
        (("--looks", "2", "--log", "policy.toml"), "is not a log of looks"),
        (("--looks", "2", "--log", "."), "is not an ordinary file"),
    ],
)
def test_looks_that_cannot_be_counted(
    run: Run, policy: str, words: tuple[str, ...], told: str
) -> None:
    held = replace(made_audit(answers(1000, 0, 0, group="sex=F")), test_set="ids:1")
    Path("audit.json").write_text(to_json(held), encoding="utf-8")
    assert told in run("gate", "audit.json", "--policy", policy, *words).refused()
    assert Path("policy.toml").read_text() == POLICY
    assert not Path("x.jsonl").exists()


def test_a_policy_that_does_not_fit_takes_no_look(run: Run) -> None:
    held = replace(made_audit(answers(1000, 0, 0, group="sex=F")), test_set="ids:1")
    Path("audit.json").write_text(to_json(held), encoding="utf-8")
    Path("policy.toml").write_text('require_groups = ["sex=nobody"]\n' + POLICY)
    words = ("--policy", "policy.toml", "--looks", "2", "--log", "looks.jsonl")
    assert "'sex=nobody' does not exist" in run("gate", "audit.json", *words).refused()
    assert not Path("looks.jsonl").exists()


def test_init_from_a_stored_audit(run: Run) -> None:
    for name, frame in people().items():
        frame.to_csv(f"{name}.csv", index=False)
    words = ("dense.csv", "int8.csv", "--groups", "sex")
    run("audit", *words, *FEW).done()
    stored = run("gate", "--init", "fairweight-audit").done().out.splitlines()
    direct = run("gate", "--init", *words).done().out.splitlines()
    assert [a for a, b in zip(stored, direct, strict=True) if a != b] == [
        "#   fairweight gate fairweight-audit --policy policy.toml"
    ]
    assert "# Churn: int8 loses or gains 1.2 % of predictions." in direct  # 25 of 2,000


# --- from tables ---------------------------------------------------------------------------------


def test_audit_with_a_policy_and_gate_agree(run: Run, policy: str) -> None:
    table(1200, 60).to_csv("preds.csv", index=False)
    made = run("audit", "preds.csv", "--groups", "sex", "--policy", policy, "--n-boot", "40")
    assert made.code == cli.FAILED
    assert "Gate: FAIL" in made.out
    assert made.out.index("Report:") < made.out.index("Gate: FAIL")
    from_tables = run("gate", "preds.csv", "--groups", "sex", "--policy", policy, "--n-boot", "40")
    from_file = run("gate", "fairweight-audit/audit.json", "--policy", policy)
    assert from_tables.code == from_file.code == cli.FAILED
    assert from_tables.out == from_file.out
    assert from_file.out in made.out


def test_audit_with_a_policy_that_does_not_fit_writes_nothing(run: Run) -> None:
    table(1200, 0).to_csv("preds.csv", index=False)
    Path("policy.toml").write_text(POLICY + 'groups = ["sex=Other"]')
    told = run("audit", "preds.csv", "--groups", "sex", "--policy", "policy.toml", *FEW).refused()
    assert "the group 'sex=Other' does not exist" in told
    assert not Path("fairweight-audit").exists()


@pytest.mark.usefixtures("no_page")
def test_what_a_policy_names_was_declared_before_looking(run: Run) -> None:
    table(1200, 60).to_csv("preds.csv", index=False)
    Path("policy.toml").write_text(POLICY.replace("accuracy", "fnr"))
    words = ("audit", "preds.csv", "--groups", "sex", *FEW)
    run(*words)
    before = value("fairweight-audit", "family", metric="fnr", by="group", group="sex=Female")
    run(*words, "--policy", "policy.toml")
    after = value("fairweight-audit", "family", metric="fnr", by="group", group="sex=Female")
    assert before.startswith("exploratory: fnr by group")
    assert after.startswith("confirmatory: fnr by group")


def test_the_gate_of_python(folder: Path, policy: str) -> None:
    frame = table(1200, 0)
    audit = fw.audit_table(frame, groups=["sex"], n_boot=40)
    verdict = audit.gate(policy)
    assert verdict.passed
    # 600 identical answers per group: z² / (n + z²) = 2.7055 / 602.7 = 0.00449.
    assert verdict.rows["certifiable"].tolist() == pytest.approx([0.00449] * 2, abs=1e-5)
    assert audit.gate(read_policy(policy)).rows.equals(verdict.rows)


def test_every_kind_of_metric_can_be_gated_on_the_limits_of_the_engine(folder: Path) -> None:
    """None is missing, and none is beside its estimate."""
    frame = table(2400, 60)  # CEV has limits from 1,000 examples per class on
    frame.loc[frame.index % 40 == 1, "pred_int8"] ^= 1  # and the other group loses some too
    rules = [{"metric": m, "by": "group", "margin": 0.1} for m in ("accuracy", "fnr", "precision")]
    rules += [
        {"metric": "group_gap", "by": "grouping", "margin": 0.1},
        {"metric": "worst_group_shift", "by": "grouping", "margin": 0.2},
        {"metric": "cev_pp", "by": "overall", "max": 1000},
        {"metric": "recall", "by": "class", "min": 0.5},
    ]
    rows = fw.audit_table(frame, groups=["sex"], n_boot=100).gate({"rule": rules}).rows
    assert set(rows["metric"]) == {rule["metric"] for rule in rules}
    assert rows["low"].notna().all()
    assert ((rows["low"] <= rows["estimate"]) & (rows["estimate"] <= rows["high"])).all()
