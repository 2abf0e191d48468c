"""What the commands with a policy share: reading it before work begins, leaving with its code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.specs.policy import Policy


def checked_policy(path: str) -> Policy:
    """The policy, refused now and not after a long audit if a metric cannot carry its rules."""
    from fairweight.auditing.decide.criteria import demands
    from fairweight.specs.read_policy import read_policy

    policy = read_policy(path)
    demands(policy)
    return policy


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print on although the reader (head, less) has gone: the exit code stays the verdict's.

    Without it rich would end the program with 1, which here means `fail`.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(verdict: Verdict, *, quiet: bool) -> NoReturn:
    """Print the verdict and its reasons, and end with its exit code."""
    if not quiet:
        from rich.console import Console

        from fairweight.report.gate.terminal import show_verdict

        with reader_may_leave():
            show_verdict(verdict, Console())
    raise typer.Exit(verdict.exit_code)
