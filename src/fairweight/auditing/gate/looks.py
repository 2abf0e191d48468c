"""Looks: how often a test set was gated, kept in a log, so that α is spent once and not each time.

Whoever compresses, gates, repairs and gates again on the same examples passes in the end by luck.
With N looks declared beforehand each is judged at α / N, and look N + 1 is not judged at all. The
same files under the same policy are the same look, however often it is run.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairweight.auditing.result import DIVISORS, AuditResult
from fairweight.base import locks
from fairweight.base.files import writing
from fairweight.errors import InputError
from fairweight.specs.policy import Policy

KIND = "gate look"  # every line of a log says that it is one
SCHEMA = 1
MOST_BYTES = 64_000_000  # a log of a hundred thousand looks is smaller
# Options of an audit that its limits depend on; the others change only other numbers.
_OF_LIMITS = ("n_boot", "min_group", "random_state", "zero_baseline", "positive")


@dataclass(frozen=True)
class Look:
    """One look at a test set."""

    number: int  # from 1
    of: int  # how many were declared
    again: bool = False  # these files were gated under this policy before

    @property
    def spent(self) -> bool:
        """Whether all looks that were declared have been taken by others."""
        return self.number > self.of


@dataclass
class LookLog:
    """The looks of an open log; nobody else can write it meanwhile."""

    path: Path
    handle: int
    lines: list[dict[str, Any]] = field(default_factory=list)

    def look(self, test_set: str, key: str, of: int) -> Look:
        """Which look this is: one that was taken before, or the next."""
        known = [line for line in self.lines if line["test_set"] == test_set]
        if known and known[0]["looks"] != of:
            raise InputError(
                f"--looks {of:,}: the log '{self.path}' counts {known[0]['looks']:,} looks at this "
                f"test set, and the first look fixes the number; use --looks "
                f"{known[0]['looks']:,}, or other examples."
            )
        for line in known:
            if line["look"] == key:
                return Look(line["number"], of, again=True)
        return Look(len(known) + 1, of)

    def add(self, test_set: str, key: str, look: Look, outcome: str, variants: list[str]) -> None:
        """Write the look down, in one piece and before anybody is told its verdict."""
        line = {
            "fairweight": KIND,
            "schema": SCHEMA,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "test_set": test_set,
            "look": key,
            "number": look.number,
            "looks": look.of,
            "variants": variants,
            "outcome": outcome,
        }
        text = (json.dumps(line) + "\n").encode()
        with writing(self.path):
            if os.write(self.handle, text) != len(text):
                raise OSError(None, "only a part of the line could be written")
            os.fsync(self.handle)


@contextmanager
def opened(path: str | Path) -> Iterator[LookLog]:
    """The log, locked; made if there is none, refused and left alone if it is anything else."""
    target = Path(path)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            raise InputError(f"--log '{target}' is not an ordinary file; name one for the looks.")
        handle = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        with writing(target):
            locks.hold(handle)
            if os.fstat(handle).st_size > MOST_BYTES:
                raise InputError(f"--log '{target}' is too large to be a log of looks.")
            text = os.pread(handle, MOST_BYTES, 0)
        yield LookLog(target, handle, _read(target, text))
    finally:
        os.close(handle)


def _read(path: Path, text: bytes) -> list[dict[str, Any]]:
    """The lines of a log, none of them trusted."""
    lines: list[dict[str, Any]] = []
    seen: dict[str, list[dict[str, Any]]] = {}
    for place, row in enumerate(text.split(b"\n"), start=1):
        if not row:
            continue
        try:
            line = json.loads(row)
            before = seen.setdefault(line["test_set"], [])
            sound = (
                line["fairweight"] == KIND
                and line["schema"] == SCHEMA
                and all(isinstance(line[name], str) for name in ("test_set", "look"))
                and type(line["number"]) is int
                and type(line["looks"]) is int
                and line["number"] == len(before) + 1 <= line["looks"]
                and all(
                    other["looks"] == line["looks"] and other["look"] != line["look"]
                    for other in before
                )
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            sound = False
        if not sound:
            raise InputError(
                f"--log '{path}' is not a log of looks: line {place:,} is none, or does not fit "
                "those before it. It was left as it is; name another file, or take the log from a "
                "backup."
            )
        before.append(line)
        lines.append(line)
    return lines


def check_looks(looks: int | None, log: str | Path | None) -> None:
    """Both or neither, and as many as there are limits for."""
    if (looks is None) != (log is None):
        raise InputError(
            "--looks N and --log FILE belong together: N looks are shared out, and the file counts "
            "them; give both or neither."
        )
    if looks is not None and not 1 <= looks <= DIVISORS[-1]:
        raise InputError(
            f"--looks (looks=) cannot be {looks!r}; give a whole number from 1 to {DIVISORS[-1]:,}."
        )


def _stated(policy: Policy) -> dict[str, Any]:
    """A policy without the keys of later versions that it does not use: it is the same look."""
    later = {one.name: one.default for one in fields(policy) if one.name in _LATER}
    return {
        name: value
        for name, value in asdict(policy).items()
        if name not in later or value != later[name]
    }


_LATER = ("small_groups", "exclude", "limit")


def look_key(result: AuditResult, policy: Policy) -> str:
    """What makes two runs one look: the same files, asked the same under the same policy."""
    digests = [given.get("sha256") for given in result.provenance.inputs]
    files: Any = sorted(map(str, digests))
    if not digests or None in digests:  # frames have no file: what is judged stands for them
        files = result.bounds.to_json(orient="values", double_precision=12)
    asked = {
        "files": files,
        "policy": _stated(policy),
        "baseline": result.baseline,
        "variants": result.variants,
        "groupings": result.groupings,
        "options": {name: result.provenance.options.get(name) for name in _OF_LIMITS},
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
