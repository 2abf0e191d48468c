"""Which stage runs next: member by member, those first that the most work waits for."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from enum import Enum, auto

from fairweight.runs.stage import Stage

LEAST_WORK = 1e-3  # stages of unknown cost still count, so that long chains come first


class State(Enum):
    """The state of a stage."""

    WAITING = auto()  # for its inputs
    READY = auto()
    RUNNING = auto()
    DONE = auto()
    FAILED = auto()
    LEFT = auto()  # begun, and not to be tried again this time


class Schedule:
    """The stages of a study and the state of each.

    Ready stages are given out by their member, then by the longest path of work that begins with
    them, then in the order in which they were given, so that the same study runs in the same order
    every time.

    Parameters
    ----------
    stages
        In any order; a key that comes again is the same stage.
    done
        Keys that need not be done; others than those of `stages` are allowed.
    failed
        Keys that are not to be tried.
    """

    def __init__(
        self, stages: Iterable[Stage], done: Collection[str], failed: Collection[str] = ()
    ) -> None:
        self._stages: dict[str, Stage] = {}
        for stage in stages:
            self._stages.setdefault(stage.key, stage)
        self._place = {key: place for place, key in enumerate(self._stages)}
        self._dependants: dict[str, list[str]] = {key: [] for key in self._stages}
        for stage in self._stages.values():
            for key in stage.inputs:
                if key in self._dependants:
                    self._dependants[key].append(stage.key)
                elif key not in done:
                    raise ValueError(f"Stage '{stage.label}' needs {key}, which nothing makes.")
        self._state = {
            key: State.DONE if key in done else State.FAILED if key in failed else State.WAITING
            for key in self._stages
        }
        self._urgency: dict[str, float] = {}  # its work and the longest chain that needs it
        for key in reversed(self._topological()):
            after = (
                self._urgency[dependant]
                for dependant in self._dependants[key]
                if self._state[dependant] is not State.DONE
            )
            work = max(self._stages[key].work, LEAST_WORK)
            self._urgency[key] = work + max(after, default=0.0)
        self._missing: dict[str, int] = {}  # of waiting stages: inputs that are not done
        self._heap: list[tuple[int, float, int, str]] = []
        for key in self.keys(State.WAITING):
            self.again(key)

    def __len__(self) -> int:
        return len(self._stages)

    def __contains__(self, key: str) -> bool:
        return key in self._stages

    def __getitem__(self, key: str) -> Stage:
        return self._stages[key]

    def keys(self, *states: State) -> list[str]:
        """Keys of the stages in these states, in the order in which they were given."""
        return [key for key, state in self._state.items() if state in states]

    def next(self) -> Stage | None:
        """The most urgent ready stage, which is running from now on."""
        while self._heap:
            key = heapq.heappop(self._heap)[-1]
            # A stage that waits again, because its input was damaged, is still on the heap.
            if self._state[key] is State.READY:
                self._state[key] = State.RUNNING
                return self._stages[key]
        return None

    def finish(self, key: str) -> None:
        """The stage is done: those that waited only for it are ready."""
        self._state[key] = State.DONE
        for dependant in self._dependants[key]:
            if self._state[dependant] is State.WAITING:
                self._missing[dependant] -= 1
                if not self._missing[dependant]:
                    self._make_ready(dependant)

    def fail(self, key: str) -> None:
        """The stage failed: those that need it go on waiting."""
        self._state[key] = State.FAILED

    def leave(self, key: str) -> None:
        """The stage was stopped: it is not tried again."""
        self._state[key] = State.LEFT

    def again(self, key: str) -> None:
        """The stage is to be run (again), once its inputs are done."""
        inputs = [i for i in self._stages[key].inputs if i in self._stages]
        self._missing[key] = sum(self._state[i] is not State.DONE for i in inputs)
        self._state[key] = State.WAITING
        if not self._missing[key]:
            self._make_ready(key)

    def redo(self, key: str) -> None:
        """A stage that was done turned out not to be: those that need it wait again."""
        if self._state[key] is not State.DONE:
            return
        self.again(key)
        for dependant in self._dependants[key]:
            if self._state[dependant] is State.READY:
                self._state[dependant] = State.WAITING
                self._missing[dependant] = 0
            if self._state[dependant] is State.WAITING:
                self._missing[dependant] += 1

    def _make_ready(self, key: str) -> None:
        self._state[key] = State.READY
        member = self._stages[key].member
        heapq.heappush(self._heap, (member, -self._urgency[key], self._place[key], key))

    def _topological(self) -> list[str]:
        missing = {
            key: sum(i in self._stages for i in stage.inputs) for key, stage in self._stages.items()
        }
        order = [key for key, count in missing.items() if not count]
        for key in order:  # grows meanwhile
            for dependant in self._dependants[key]:
                missing[dependant] -= 1
                if not missing[dependant]:
                    order.append(dependant)
        if len(order) < len(missing):
            raise ValueError("Some stages need each other in a circle.")
        return order
