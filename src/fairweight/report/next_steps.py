"""Commands that would tell what an audit was not asked, with the options that it was made with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from fairweight.tables.names import written_list

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

# About the tables: `audit`, `explain` and `mitigate` all take these; `choose` has a few otherwise.
SHARED = frozenset((
    "--baseline", "--examples", "--train", "--variants", "--missing", "--id", "--label",
    "--prediction", "--score", "--groups", "--task", "--cluster", "--weight", "--variant-column",
    "--seed-column", "--prediction-column", "--score-column", "--positive", "--score-classes",
    "--count", "--members",
))  # fmt: skip
IN_CHOOSE = {"--weight": "--weight-column", "--members": None}  # None: has no such option
FLAGS = frozenset(("--exact", "--no-filters", "--suppress-small", "--quiet", "-q"))  # no value
FOLDER = "fairweight-audit"  # where `audit` writes unless told


def explain_command(result: AuditResult) -> str:
    """Which examples pay, and what goes along with it."""
    return shlex.join(["fairweight", "explain", *_tables(result)])


def mitigate_commands(result: AuditResult) -> tuple[str, ...]:
    """What may help; each is audited again on rows that it was not fitted on."""
    tables = shlex.join(_tables(result))
    if "--count" in tables:  # rules are fitted on single examples, which counts do not have
        tables = "PREDICTIONS"
    return (
        f"fairweight mitigate thresholds {tables} --validation VALIDATION",
        f"fairweight mitigate cascade {tables} --validation VALIDATION",
        f"fairweight mitigate overrides {tables} --labels annotations.csv",
    )


def ship_commands(result: AuditResult) -> tuple[str, ...]:
    """A verdict by a policy; a choice where there is one to make."""
    folder = shlex.quote(_folder(result))
    gate = (
        "fairweight gate --init > policy.toml",
        f"fairweight gate {folder} --policy policy.toml",
    )
    if len(result.variants) < 2:
        return gate
    kept = ["--require", "worst_group_shift>=-0.02"] if result.groupings else []
    tables = _tables(result, IN_CHOOSE)
    chosen = ["fairweight", "choose", *tables, "--objective", "accuracy", *kept]
    return (*gate, shlex.join(chosen))


def figure_command(result: AuditResult) -> str:
    """One figure of one variant as a file."""
    return f"fairweight report figure ID {shlex.quote(_folder(result))} --variant NAME --out F.svg"


def _words(result: AuditResult) -> list[str]:
    """The words behind `fairweight audit`; none where the audit was made another way."""
    try:
        words = shlex.split(result.provenance.command or "")
    except ValueError:  # not written by us
        return []
    return words[2:] if words[:2] == ["fairweight", "audit"] else []


def _tables(
    result: AuditResult, renamed: Mapping[str, str | None] = MappingProxyType({})
) -> list[str]:
    """The files that were audited and the options that say how they are read."""
    kept: list[str] = []
    words = iter(_words(result))
    for word in words:
        name, equals, given = word.partition("=")
        if not word.startswith("-") or word == "--force":
            kept.append(word)
        elif name not in FLAGS:
            value = given if equals else next(words, "")
            option = renamed.get(name, name) if name in SHARED else None
            kept += [] if option is None else [option, value]
    if kept:
        return kept
    # Made in Python: which tables is not known, which groups is.
    return [
        "PREDICTIONS",
        *(["--groups", written_list(result.groupings)] if result.groupings else []),
    ]


def _folder(result: AuditResult) -> str:
    words = _words(result)
    for i, word in enumerate(words):
        if word.startswith("--out="):
            return word.removeprefix("--out=")
        if word == "--out" and i + 1 < len(words):
            return words[i + 1]
    return FOLDER
