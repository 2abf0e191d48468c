"""The order of stages: worked out by hand on small graphs."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from fairweight.runs.schedule import Schedule, State
from fairweight.runs.stage import Stage


def stage(key: str, *inputs: str, work: float = 0.0) -> Stage:
    return Stage(key, "made", "none:none", {}, inputs, key.upper(), work)


def given_out(schedule: Schedule) -> list[str]:
    """All that is ready."""
    keys = []
    while (found := schedule.next()) is not None:
        keys.append(found.key)
    return keys


def emptied(schedule: Schedule) -> list[str]:
    """The order of one worker to whom nothing goes wrong."""
    order = []
    while (found := schedule.next()) is not None:
        order.append(found.key)
        schedule.finish(found.key)
    return order


DIAMOND = [stage("a"), stage("b", "a", work=1), stage("c", "a", work=2), stage("d", "b", "c")]


def test_a_stage_comes_after_its_inputs_and_the_longest_path_first() -> None:
    # c begins a path of 2 and more, b one of 1 and more.
    assert emptied(Schedule(DIAMOND, done=())) == ["a", "c", "b", "d"]
    assert emptied(Schedule(reversed(DIAMOND), done=())) == ["a", "c", "b", "d"]


def test_the_order_given_decides_between_equals() -> None:
    equal = [stage(key) for key in "hbxa"]
    assert emptied(Schedule(equal, done=())) == list("hbxa")


def test_one_member_is_whole_before_the_next_begins() -> None:
    """Dense 0, its copies and their predictions, then dense 1; what needs all comes last."""
    stages = [
        replace(stage(f"{name}{member}", *inputs, work=work), member=member)
        for member in (0, 1)
        for name, inputs, work in (
            ("dense", (), 9.0),
            ("long", (f"dense{member}",), 99.0),
            ("short", (f"dense{member}",), 1.0),
        )
    ]
    stages.append(replace(stage("audit", "long0", "short1"), member=10**9))
    order = ["dense0", "long0", "short0", "dense1", "long1", "short1", "audit"]
    assert emptied(Schedule(reversed(stages), done=())) == order


def test_a_long_chain_of_unknown_cost_comes_before_single_stages() -> None:
    stages = [stage("single"), stage("x"), stage("y", "x"), stage("z", "y")]
    assert emptied(Schedule(stages, done=())) == ["x", "y", "single", "z"]


def test_work_behind_a_stage_that_is_done_waits_for_nobody() -> None:
    # Behind b lies a long stage, but b is done already, so a is not urgent.
    stages = [stage("a"), stage("b", "a"), stage("long", "b", work=99), stage("e", work=1)]
    assert emptied(Schedule(stages, done={"b"})) == ["long", "e", "a"]


def test_what_is_done_or_failed_is_not_given_out() -> None:
    schedule = Schedule(DIAMOND, done={"a"}, failed={"c"})
    assert emptied(schedule) == ["b"]
    assert schedule.keys(State.DONE) == ["a", "b"]
    assert schedule.keys(State.WAITING) == ["d"]


def test_a_key_that_comes_twice_is_one_stage() -> None:
    schedule = Schedule([*DIAMOND, *DIAMOND], done=())
    assert len(schedule) == 4
    assert emptied(schedule) == ["a", "c", "b", "d"]


def test_an_input_may_be_done_outside_the_study_but_not_missing() -> None:
    assert emptied(Schedule([stage("b", "a")], done={"a"})) == ["b"]
    with pytest.raises(ValueError, match="Stage 'B' needs a, which nothing makes"):
        Schedule([stage("b", "a")], done=())
    with pytest.raises(ValueError, match="circle"):
        Schedule([stage("a", "b"), stage("b", "a")], done=())


def test_dependants_of_a_failure_are_not_given_out() -> None:
    schedule = Schedule([*DIAMOND, stage("e")], done={"a"})
    assert given_out(schedule) == ["c", "b", "e"]
    schedule.fail("c")
    schedule.finish("b")
    schedule.leave("e")
    assert given_out(schedule) == []
    found = [schedule.keys(s)[-1] for s in (State.DONE, State.FAILED, State.WAITING, State.LEFT)]
    assert found == ["b", "c", "d", "e"]


def test_a_stage_that_is_not_done_after_all_comes_before_those_that_need_it() -> None:
    schedule = Schedule([*DIAMOND, stage("e", "a")], done={"a"})
    assert schedule.next() == DIAMOND[2]  # c finds that its input a is damaged
    schedule.redo("a")
    schedule.redo("a")  # so does somebody else
    schedule.again("c")
    assert given_out(schedule) == ["a"]
    schedule.finish("a")
    assert emptied(schedule) == ["c", "b", "d", "e"]


def test_twenty_thousand_stages_are_scheduled_in_seconds() -> None:
    stages = [stage(f"{i}", *([f"{i - 1}"] if i % 4 else [])) for i in range(20_000)]
    stages.append(stage("all", *(f"{i}" for i in range(3, 20_000, 4))))
    begun = time.process_time()
    assert emptied(Schedule(stages, done=()))[-1] == "all"
    assert time.process_time() - begun < 5
