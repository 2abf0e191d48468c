"""Run a case in this process and judge what happened.

Without the page, the CSV files beside it and forced writes to disk, which have tests of their own:
a case takes a fraction of a second. Everything else is the command line as people run it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.fuzz.cases import ACCEPT, REFUSE, Case, Step, case
from tests.fuzz.files import write
from tests.fuzz.judge import CHECKS
from tests.fuzz.oracle import Expected, RefusedError, expected

SECONDS, WALL_SECONDS = 30, 300  # of the processor and of the clock: a longer command hangs
DRAWS = 100  # random signs; people get 4,000
GOOD_CODES = {("gate",): (0, 1, 3), ("choose",): (0, 3)}
# A refusal tells what to do: an imperative, or the option to use.
REMEDY = re.compile(
    r"\b(give|name|use|write|rename|fill|add|keep|leave|check|correct|count|say|choose|save|see"
    r"|audit|make|set|free|drop|take|download|narrow|put|remove|convert|map|bin|did you mean"
    r"|compare|join|turn|split|start|ask|read|try|replace|tell|pick|run|install|needs|must)\b"
    r"|there are: |--[a-z]|`fairweight [a-z]+",
    re.IGNORECASE,
)


class HangError(BaseException):
    """Not an Exception: the command line would take it for an error of its own."""


@dataclass
class Outcome:
    """What a case did; `problems` is empty where all is well."""

    case: Case
    codes: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # what the commands wrote to standard error
    seconds: float = 0.0  # of the processor

    @property
    def succeeded(self) -> bool:
        """Whether the first command did what it was asked."""
        return bool(self.codes) and self.codes[0] in _good(self.case.steps[0])


def _good(step: Step) -> tuple[int, ...]:
    with_policy = step.command == ("audit",) and any(w.startswith("--policy") for w in step.words)
    return (0, 1, 3) if with_policy else GOOD_CODES.get(step.command, (0,))


def run_case(number: int, folder: Path) -> Outcome:
    """Write the tables of case `number` into a folder, run its commands there, judge them."""
    drawn = case(number)
    outcome = Outcome(drawn)
    start = time.process_time()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepare(drawn, folder)
    try:
        truth, refusal = _truth(drawn, folder)
    except Exception:
        outcome.problems = [f"the oracle failed: {traceback.format_exc(limit=-4)}"]
        return outcome
    for step in drawn.steps:
        before = _listing(folder)
        code, out, err, crash = _run(step, folder, drawn)
        if step.check == "starter" and code == 0:  # people redirect it into a file
            (folder / step.out).write_text(out, encoding="utf-8")
        outcome.codes.append(code)
        outcome.told.append(err)
        found = _judged(step, drawn, folder, (code, out, err, crash), before, truth, refusal)
        outcome.problems += [f"{' '.join(step.command)}: {sentence}" for sentence in found]
        if code not in _good(step) or found:
            break
    outcome.seconds = time.process_time() - start
    return outcome


def prepare(drawn: Case, folder: Path) -> None:
    """Write every file of a case, and a script with its commands."""
    for table in drawn.tables:
        write(table, folder)
    for name, text in {**drawn.texts, "run.sh": command_line(drawn) + "\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")


def command_line(drawn: Case) -> str:
    """The commands of a case as a person types them in its folder."""
    return "\n".join(shlex.join(["fairweight", *step.argv]) for step in drawn.steps)


def _truth(drawn: Case, folder: Path) -> tuple[Expected | None, str | None]:
    """What the oracle computes, or why it says that the input cannot be audited."""
    if drawn.without_classes is not None:
        return (None if drawn.expect == REFUSE else drawn.without_classes), None
    damaged = any(table.damage is not None for table in drawn.tables)
    if drawn.meaning is None or damaged or drawn.expect == REFUSE:
        return None, None
    try:
        return expected(drawn.meaning, folder), None
    except RefusedError as error:
        return None, str(error)


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _run(step: Step, folder: Path, drawn: Case) -> tuple[int, str, str, str]:
    from fairweight.cli import run

    out, err, crash = io.StringIO(), io.StringIO(), ""
    with (
        quick(page=drawn.page or "html" in step.words, tables=drawn.number % 16 == 0),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
        _limited(),
    ):
        warnings.simplefilter("error")
        try:
            code = run(step.argv)
        except HangError:
            code, crash = -1, "it hangs"
        except BaseException as error:
            code, crash = 70, "".join(traceback.format_exception(error)[-8:])
    told = [line for line in err.getvalue().splitlines(True) if line[:2] != "… "]  # no progress
    return code, out.getvalue(), "".join(told), crash


def _judged(
    step: Step,
    drawn: Case,
    folder: Path,
    did: tuple[int, str, str, str],
    before: dict[str, tuple[int, int]],
    truth: Expected | None,
    refusal: str | None,
) -> list[str]:
    code, out, err, crash = did
    if crash:
        return [crash]
    if "Traceback" in out + err:
        return [f"a traceback was shown: {err[-400:]}"]
    if code not in _good(step):
        doubt = truth.doubt if truth is not None else None
        return _refused(step, drawn, folder, (code, err), before, (refusal, doubt))
    if drawn.expect == REFUSE and step is drawn.steps[-1]:
        return [f"accepted, although there is {drawn.why}"]
    if refusal is not None:
        return [f"accepted, although {refusal}"]
    left = [name for name in _listing(folder) if name.endswith(".tmp") or ".parts/" in name]
    problems = [f"left behind: {left[0]}"] if left else []
    if truth is not None:
        try:
            problems += CHECKS[step.check](folder, step, truth, drawn)
        except FileNotFoundError as error:
            problems.append(f"did not write {error.filename or error}")
        except Exception:
            problems.append(f"the judge failed: {traceback.format_exc(limit=-4)}")
    return problems


def _refused(
    step: Step,
    drawn: Case,
    folder: Path,
    did: tuple[int, str],
    before: dict[str, tuple[int, int]],
    reasons: tuple[str | None, str | None],
) -> list[str]:
    code, err = did
    refusal, doubt = reasons
    sentence = err.strip()
    problems = []
    if code != 2:
        problems.append(f"exit code {code}: {sentence[-300:]}")
    if code != 70 and not sentence.startswith("fairweight: "):
        problems.append(f"no sentence: {sentence[-300:]!r}")
    elif code != 70 and not REMEDY.search(sentence.removeprefix("fairweight: ")):
        problems.append(f"does not say what to do: {sentence[-300:]!r}")
    after = _listing(folder)
    if after != before:
        changed = sorted({*after.items()} ^ {*before.items()})
        problems.append(f"wrote {changed[0][0]!r} although it refused")
    if drawn.expect == ACCEPT and refusal is None and code == 2 and doubt is None:
        problems.append(f"refused, and nothing is wrong: {sentence[:300]}")
    return problems


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """A time limit for what runs in the block."""

    def stop(*_: Any) -> None:
        raise HangError

    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, SECONDS),
        (signal.ITIMER_REAL, signal.SIGALRM, WALL_SECONDS),
    )
    held = [signal.signal(number, stop) for _, number, _ in timers]
    try:
        for timer, _, seconds in timers:
            signal.setitimer(timer, seconds)
        yield
    finally:
        for (timer, number, _), handler in zip(timers, held, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def quick(*, page: bool, tables: bool) -> Iterator[None]:
    """Few draws; no page, no CSV copies of tables, no figures."""
    import fairweight.auditing.archive
    import fairweight.auditing.compare.signs
    import fairweight.auditing.compare.simultaneous
    import fairweight.report.figures.export
    import fairweight.report.html

    with contextlib.ExitStack() as held:
        held.enter_context(patch.object(os, "fsync", lambda _: None))
        compare = fairweight.auditing.compare
        for drawing in (compare.signs, compare.simultaneous):
            held.enter_context(patch.object(drawing, "N_DRAWS", DRAWS))
        drawn = patch.object(fairweight.report.figures.export, "rendered", lambda *_: b"<svg/>")
        held.enter_context(drawn)
        if not page:
            empty = patch.object(fairweight.report.html, "render", lambda *_: "<p>not made</p>")
            held.enter_context(empty)
        if not tables:
            held.enter_context(
                patch.object(fairweight.auditing.archive, "write_csv", lambda _, __, path: path)
            )
        yield
