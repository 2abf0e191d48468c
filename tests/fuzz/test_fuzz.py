"""The command line against random tables and options: see `python -m tests.fuzz --help`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz.__main__ import finds
from tests.fuzz.cases import COMMANDS, Case, case, options_of
from tests.fuzz.defects import DEFECTS, Defect, put_back
from tests.fuzz.harness import Outcome, command_line, run_case

CASES, CHUNK = 200, 20
MANY, MANY_CHUNK = 5_000, 250
LOOKED_AT = 4_000  # cases whose command lines are drawn, not run
LEAST_SUCCEEDING = 0.40
LEAST_SHARE = 0.01


def run(numbers: range, folder: Path) -> list[Outcome]:
    """Run cases; the first that fails says how to run it by hand."""
    outcomes = []
    for number in numbers:
        outcome = run_case(number, folder / f"case-{number}")
        if outcome.problems:
            pytest.fail(
                f"case {number} ({outcome.case.expect} {outcome.case.why}):\n"
                + "\n".join(outcome.problems)
                + f"\ncd {folder / f'case-{number}'}\n{command_line(outcome.case)}\n"
                f"again: python -m tests.fuzz --case {number}"
            )
        outcomes.append(outcome)
    return outcomes


@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_cases(start: int, tmp_path: Path) -> None:
    run(range(start, start + CHUNK), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, MANY, MANY_CHUNK))
def test_many_cases(start: int, tmp_path: Path) -> None:
    outcomes = run(range(start, start + MANY_CHUNK), tmp_path)
    succeeded = sum(outcome.succeeded for outcome in outcomes)
    # Of the whole at least 40 %; a chunk may lie below it by chance (3 standard errors).
    assert succeeded / len(outcomes) > LEAST_SUCCEEDING - 0.1


@pytest.fixture(scope="module")
def drawn() -> list[Case]:
    return [case(number) for number in range(LOOKED_AT)]


def steps_with_options(cases: list[Case]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command line, with the long names of the options on it."""
    for one in cases:
        for step in one.steps:
            names = {word.partition("=")[0] for word in step.words}
            held = options_of(step.command)
            yield (
                step.command,
                {name for name, option in held.items() if names & {*option.opts}},
            )


# Of logs, class probabilities as columns and warehouses: in refusals alone. Of one form of report.
RARELY_DRAWN = {"--scores", "--log-tasks", "--log-filter", "--allow-different",
                "--score-threshold", "--sql", "--dialect", "--dataset-id", "--task-id"}  # fmt: skip


def test_every_option_of_every_command_that_reads_tables_is_tried(drawn: list[Case]) -> None:
    """A new option without a place in the generator fails here: add it to tests/fuzz/options.py.

    At least 1 % of all cases have it, whichever the command, and of the cases of each command that
    takes it.
    """
    lines: Counter[tuple[str, ...]] = Counter()
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    cases: Counter[str] = Counter()
    for one in drawn:
        said = list(steps_with_options([one]))
        cases.update({option for _, options in said for option in options})
        for command, options in said:
            lines[command] += 1
            found.update((command, option) for option in options)
    rare = {
        f"{' '.join(command)} {option}": found[command, option]
        for command in COMMANDS
        for option in options_of(command)
        if option not in RARELY_DRAWN
        and (
            found[command, option] < LEAST_SHARE * lines[command]
            or cases[option] < LEAST_SHARE * len(drawn)
        )
    }
    assert not rare
    assert set(cases) >= RARELY_DRAWN


def test_fifteen_defects_can_be_put_back_and_taken_out() -> None:
    """A defect whose text is no longer in the source says so: then it needs another text."""
    assert len({defect.name for defect in DEFECTS}) >= 15
    for defect in DEFECTS:
        with put_back(defect):
            pass


def test_a_defect_is_there_inside_the_block_only() -> None:
    from fairweight.tables.canonical import canonical

    truth = next(defect for defect in DEFECTS if defect.name.startswith("TRUE"))
    with put_back(truth):
        assert canonical("TRUE") == "TRUE"
    assert canonical("TRUE") == "true"


KNOWN = [defect for defect in DEFECTS if defect.case is not None]


@pytest.mark.slow
@pytest.mark.parametrize("defect", [d for d in DEFECTS if d.case is None], ids=lambda d: d.name)
def test_a_defect_whose_case_is_not_known_is_found(defect: Defect, tmp_path: Path) -> None:
    """One of the first 5,000 cases finds it; write down which."""
    assert any(finds(defect, number, tmp_path / "case") for number in range(MANY))


@pytest.mark.parametrize("defect", KNOWN, ids=lambda defect: defect.name)
def test_a_defect_that_is_put_back_is_found(defect: Defect, tmp_path: Path) -> None:
    """One of the first 5,000 cases finds it: the one that stands beside the defect."""
    assert defect.case is not None
    assert defect.case < MANY
    with put_back(defect):
        found = run_case(defect.case, tmp_path / "case").problems
    assert found, f"not by case {defect.case}; look again: python -m tests.fuzz --defects"


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({defect.case for defect in KNOWN}))
def test_without_a_defect_its_case_has_no_problem(number: int, tmp_path: Path) -> None:
    assert not run_case(number, tmp_path / "case").problems


def test_a_case_is_the_same_every_time() -> None:
    one, other = case(7), case(7)
    assert one.steps == other.steps
    assert one.tables == other.tables
