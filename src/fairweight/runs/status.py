"""How far a study is: counts by kind, and the time that is left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fairweight.runs.plan_file import Listed
from fairweight.runs.store import Store


@dataclass(frozen=True)
class Status:
    """Stages of a study by what became of them; `left` are neither done, running nor failed."""

    done: Counter[str]
    running: Counter[str]
    failed: Counter[str]
    left: Counter[str]
    seconds_left: float  # of one core, as estimated; 0 where nothing was estimated yet

    @property
    def total(self) -> int:
        return sum(part.total() for part in (self.done, self.running, self.failed, self.left))

    @property
    def finished(self) -> bool:
        return self.done.total() == self.total


def status(stages: Listed, store: Store) -> Status:
    """Look at the store: a few listings, however many stages there are."""
    done, running, failed = store.done(), store.running(), store.failed()
    found: dict[str, Counter[str]] = {n: Counter() for n in ("done", "running", "failed", "left")}
    seconds = 0.0
    for key, (kind, _, work) in stages.items():
        if key in done:
            found["done"][kind] += 1
            continue
        seconds += 0.0 if key in failed else work
        which = "running" if key in running else "failed" if key in failed else "left"
        found[which][kind] += 1
    return Status(**found, seconds_left=seconds)
