"""Looks at one test set: counted in a log, each at its share of α, none beyond the last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairweight.auditing.gate.looks import Look, opened
from fairweight.auditing.gate.verdict import Verdict, decide
from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError, OutputError
from fairweight.specs.policy import read_policy

from .made_bounds import answers, made_audit


def policy(margin: float = 0.02) -> Any:
    return read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": margin}]})


def audit(
    *, n: int = 1000, lost: int = 0, test_set: str = "ids:1", files: str = "a"
) -> AuditResult:
    made = made_audit(answers(n, lost, 0, group="sex=F"))
    given = ({"name": "int8.csv", "sha256": files, "rows": n},)
    return replace(made, test_set=test_set, provenance=replace(made.provenance, inputs=given))


def look(log: Path, of: int = 2, margin: float = 0.02, **more: Any) -> Verdict:
    return decide(audit(**more), policy(margin), looks=of, log=log)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "looks.jsonl"


def test_looks_are_counted_and_the_one_beyond_the_last_cannot_tell(log: Path) -> None:
    first, second = look(log, files="a"), look(log, files="b")
    assert (first.look, second.look) == (Look(1, 2), Look(2, 2))
    assert first.passed
    assert second.passed
    before = log.read_bytes()
    third = look(log, files="c")
    assert (third.outcome, third.exit_code) == ("cannot tell", 3)
    assert third.rows["reason"].iloc[0].startswith("all 2 looks at these examples are used up")
    assert third.rows[["estimate", "low", "high", "bound"]].isna().all(axis=None)
    assert log.read_bytes() == before  # what was not looked at is no look
    assert "All 2 looks at these examples are used up." in third.notes


def test_the_same_files_and_policy_are_the_same_look(log: Path) -> None:
    look(log, of=1)
    again = look(log, of=1)
    assert again.look == Look(1, 1, again=True)
    assert again.passed
    assert len(log.read_text().splitlines()) == 1


def test_another_policy_is_another_look_and_another_test_set_another_count(log: Path) -> None:
    assert look(log).look == Look(1, 2)
    assert look(log, margin=0.03).look == Look(2, 2)
    assert look(log, test_set="ids:2").look == Look(1, 2)


def test_a_way_of_requiring_is_no_other_look(log: Path) -> None:
    look(log)
    again = decide(audit(), policy(), "any", looks=2, log=log)
    assert again.look == Look(1, 2, again=True)


def test_each_look_spends_its_share(log: Path) -> None:
    """200 answers, none lost: z² / (n + z²).

    At 5 % 2.7055 / 202.7 = .0133; at 5 % / 4 z = 2.2414 and 5.0239 / 205.0 = .0245: no pass.
    """
    alone = decide(audit(n=200), policy())
    shared = look(log, of=4, n=200)
    assert (alone.outcome, shared.outcome) == ("pass", "cannot tell")
    assert alone.rows["bound"].iloc[0] == pytest.approx(-2.7055 / 202.7055, rel=1e-4)
    assert shared.rows["bound"].iloc[0] == pytest.approx(-5.0239 / 205.0239, rel=1e-4)
    assert shared.rows["low"].iloc[0] == shared.rows["bound"].iloc[0]


def test_levels_between_those_that_are_stored_are_rounded_to_the_wider(log: Path) -> None:
    """5 looks take the limits at 5 % / 6, z = 2.3940, and it is said."""
    verdict = look(log, of=5, n=200)
    assert verdict.rows["bound"].iloc[0] == pytest.approx(-(2.394**2) / (200 + 2.394**2), rel=1e-4)
    (note,) = verdict.notes
    assert note.startswith("Look 1 of 5 at these examples: each bound errs with 5 % / 5; limits")
    assert note.endswith("are stored for 5 % / 6.")


def test_failures_need_the_share_of_a_look_too(log: Path) -> None:
    """30 of 1,000 lost: the upper limit is −.0223 at 5 %, and −.0173 at 5 % / 50."""
    assert decide(audit(lost=30), policy()).outcome == "fail"
    assert look(log, of=50, lost=30).outcome == "cannot tell"


def test_the_number_is_fixed_by_the_first_look(log: Path) -> None:
    look(log, of=2)
    with pytest.raises(InputError, match=r"--looks 3: the log .* counts 2 looks at this test set"):
        look(log, of=3, files="b")
    assert look(log, of=3, test_set="ids:2").look == Look(1, 3)


def test_both_or_neither(log: Path) -> None:
    for more in ({"looks": 2}, {"log": log}):
        with pytest.raises(InputError, match="belong together"):
            decide(audit(), policy(), **more)
    for wrong in (0, -1, 1001):
        with pytest.raises(InputError, match=r"--looks \(looks=\) cannot be"):
            look(log, of=wrong)
    assert not log.exists()


def test_a_policy_that_does_not_fit_is_no_look(log: Path) -> None:
    asked = read_policy({"rule": [{"metric": "accuracy", "by": "class", "margin": 0.02}]})
    with pytest.raises(InputError):
        decide(audit(), asked, looks=2, log=log)
    assert not log.exists()


def test_an_audit_that_does_not_know_its_test_set(log: Path) -> None:
    with pytest.raises(InputError, match=r"make it again with --policy"):
        decide(replace(audit(), test_set=None), policy(), looks=2, log=log)


def test_frames_are_known_by_what_is_judged(log: Path) -> None:
    def of(lost: int) -> AuditResult:
        made = audit(lost=lost)
        return replace(made, provenance=replace(made.provenance, inputs=({"sha256": None},)))

    assert decide(of(0), policy(), looks=3, log=log).look == Look(1, 3)
    assert decide(of(0), policy(), looks=3, log=log).look == Look(1, 3, again=True)
    assert decide(of(1), policy(), looks=3, log=log).look == Look(2, 3)


GOOD = {
    "fairweight": "gate look", "schema": 1, "time": "", "test_set": "ids:1", "look": "x",
    "number": 1, "looks": 2, "variants": [], "outcome": "pass",
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "not json\n",
        "[]\n",
        "null\n",
        "3\n",
        '{"a": 1}\n',
        "my precious notes",
        json.dumps(GOOD | {"number": 2}),  # there is no first
        json.dumps(GOOD | {"number": True}),
        json.dumps(GOOD | {"looks": "2"}),
        json.dumps(GOOD | {"looks": 0}),
        json.dumps(GOOD | {"schema": 2}),
        json.dumps(GOOD | {"test_set": ["ids:1"]}),
        json.dumps(GOOD | {"look": None}),
        json.dumps(GOOD) + "\n" + json.dumps(GOOD),  # one look twice
        json.dumps(GOOD) + "\n" + json.dumps(GOOD | {"number": 2, "look": "y", "looks": 5}),
        json.dumps(GOOD) + "\n" + json.dumps(GOOD | {"number": 2, "look": "y"})[:-9],  # cut off
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_as_it_is(log: Path, text: str) -> None:
    held = text.encode("utf-8", "surrogateescape")
    log.write_bytes(held)
    with pytest.raises(InputError, match=r"is not a log of looks: line \d"):
        look(log)
    assert log.read_bytes() == held


def test_a_log_can_be_empty_and_in_a_new_folder(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert look(empty).look == Look(1, 2)
    assert look(tmp_path / "new" / "looks.jsonl").look == Look(1, 2)


def test_places_where_no_log_can_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an ordinary file"):
        look(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not an ordinary file"):
        look(tmp_path / "pipe")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="was not written"):
        look(tmp_path / "file" / "looks.jsonl")


def test_two_processes_do_not_take_the_same_look(log: Path) -> None:
    """The second waits until the first has written its line."""
    code = (
        "import sys; from fairweight.auditing.gate.looks import opened, Look\n"
        "with opened(sys.argv[1]) as book:\n"
        "    found = book.look('ids:1', 'other', 2)\n"
        "    book.add('ids:1', 'other', found, 'pass', [])\n"
        "    print(found.number)\n"
    )
    with opened(log) as book:
        other = subprocess.Popen(
            [sys.executable, "-c", code, str(log)], stdout=subprocess.PIPE, text=True
        )
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=3)
        mine = book.look("ids:1", "mine", 2)
        book.add("ids:1", "mine", mine, "pass", [])
    told, _ = other.communicate(timeout=60)
    assert (mine.number, told.strip()) == (1, "2")
    assert [json.loads(line)["number"] for line in log.read_text().splitlines()] == [1, 2]
