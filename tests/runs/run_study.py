"""A runner in a process of its own: `python run_study.py STORE DATA CHAINS WORKERS [RAY]`."""

from __future__ import annotations

import sys
from pathlib import Path

from made_stages import study

from fairweight.runs.runner import run
from fairweight.runs.store import Store


def main(store: str, data: str, chains: str, workers: str, ray: str | None = None) -> None:
    print("ready", flush=True)
    sys.stdin.readline()  # those who start several let them go together
    made = run(study(int(chains)), Store(store), workers=int(workers), data=Path(data), ray=ray)
    assert made.complete, (made.failed, made.left)
    print(len(made.done), len(made.cached), f"{made.seconds:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
