"""Stages that are not what was written: kept aside with the reason, and done again."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from fairweight.errors import FairweightError
from fairweight.runs import paths
from fairweight.tables.write import writing

REASON = "damage.json"


class Damaged(FairweightError):  # noqa: N818  says what the stage is
    """A stage that is missing or not what was written; it must be done again."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"Stage {key} must be done again: {reason}.")
        self.key = key
        self.reason = reason

    def __reduce__(self) -> tuple[type[Damaged], tuple[str, str]]:
        return type(self), (self.key, self.reason)


def set_aside(root: Path, key: str, reason: str) -> None:
    """Move a stage to `damaged/`, with the reason beside its files."""
    folder = paths.stage(root, key)
    with writing(folder):
        paths.damages(root).mkdir(exist_ok=True)
        for number in count(1):
            place = paths.damage(root, key, number)
            try:
                os.rename(folder, place)
                break
            except FileNotFoundError:
                return  # another process has moved it
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
    told = {"key": key, "reason": reason, "found": datetime.now(UTC).isoformat(timespec="seconds")}
    with suppress(OSError):  # on a full disk the stage is out of the way all the same
        (place / REASON).write_text(json.dumps(told), encoding="utf-8")
