"""`python -m tests.fuzz`: run cases of the fuzzer, one by its number or many in processes.

    python -m tests.fuzz --case 17
    python -m tests.fuzz --cases 20000 --out DIR --jobs 2
    python -m tests.fuzz --cases 5000 --defects

Progress is stored in DIR (outside the repository): a run that was stopped goes on where it was,
and cases that failed run again.
Folders of cases that failed stay in DIR, with the commands to type.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from tests.fuzz.defects import DEFECTS, Defect, put_back  # noqa: E402
from tests.fuzz.harness import command_line, run_case  # noqa: E402

CHUNK = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--case", type=int, help="run this one and show everything")
    parser.add_argument("--cases", type=int, default=200, help="run cases 0 to N - 1")
    parser.add_argument("--start", type=int, default=0, help="begin with this case")
    parser.add_argument("--out", type=Path, help="where progress and failing cases are kept")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--defects", action="store_true", help="put defects back: which case finds each?"
    )
    given = parser.parse_args()
    out = given.out or Path(tempfile.mkdtemp(prefix="fairweight-fuzz-"))
    out.mkdir(parents=True, exist_ok=True)
    if given.case is not None:
        return show(given.case, out)
    if given.defects:
        return search(range(given.start, given.cases), out)
    return many(range(given.start, given.cases), out, given.jobs)


def show(number: int, out: Path) -> int:
    """Run one case, say what it is, and keep its files."""
    folder = out / f"case-{number}"
    outcome = run_case(number, folder)
    print(f"cd {folder}\n{command_line(outcome.case)}")
    print(f"expected: {outcome.case.expect} {outcome.case.why}; exit codes: {outcome.codes}")
    for told in outcome.told:
        print(told.strip())
    for problem in outcome.problems:
        print(f"PROBLEM: {problem}")
    return 1 if outcome.problems else 0


def search(numbers: range, out: Path) -> int:
    """The first case that finds each defect, and nothing wrong without it."""
    unseen = 0
    for defect in DEFECTS:
        number = next((n for n in numbers if finds(defect, n, out / "case")), None)
        print(f"{defect.name}: {number}", flush=True)
        unseen += number is None
    return 1 if unseen else 0


def finds(defect: Defect, number: int, folder: Path) -> bool:
    with put_back(defect):
        found = run_case(number, folder).problems
    return bool(found) and not run_case(number, folder).problems


def chunk(numbers: list[int], out: str) -> list[dict[str, Any]]:
    """Run some cases; those that fail keep their folder."""
    rows = []
    for number in numbers:
        folder = Path(out) / f"case-{number}"
        outcome = run_case(number, folder)
        if not outcome.problems:
            shutil.rmtree(folder, ignore_errors=True)
        rows.append({
            "case": number, "command": " ".join(outcome.case.steps[0].command),
            "codes": outcome.codes, "problems": outcome.problems,
            "seconds": round(outcome.seconds, 4),
        })  # fmt: skip
    return rows


def many(numbers: range, out: Path, jobs: int) -> int:
    """Run every case that is not in the progress file yet."""
    progress = out / "progress.jsonl"
    rows = _stored(progress)
    done = {row["case"] for row in rows}
    left = [number for number in numbers if number not in done]
    chunks = [left[i : i + CHUNK] for i in range(0, len(left), CHUNK)]
    with progress.open("a", encoding="utf-8") as file, ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(chunk, part, str(out)) for part in chunks]):
            made = future.result()
            for row in made:
                file.write(json.dumps(row) + "\n")
                for problem in row["problems"]:
                    print(f"case {row['case']}: {problem}")
            file.flush()
            rows += made
    return summary([row for row in rows if row["case"] in numbers], out)


def _stored(path: Path) -> list[dict[str, Any]]:
    """Cases that went well: one that failed runs again, and so does one whose line was cut off."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if not row["problems"]]


def summary(rows: list[dict[str, Any]], out: Path) -> int:
    failed = [row for row in rows if row["problems"]]
    succeeded = sum(row["codes"][:1] != [2] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    by_command = Counter(row["command"] for row in rows)
    print(
        f"{len(rows):,} cases, {succeeded / max(1, len(rows)):.0%} of them succeeded, "
        f"{seconds / max(1, len(rows)):.3f} s each; {len(failed):,} with a problem"
    )
    print(", ".join(f"{name} {number:,}" for name, number in by_command.most_common()))
    for row in failed[:20]:
        print(f"case {row['case']}: {row['problems'][0][:300]}")
    if failed:
        print(f"Files and progress: {out}. One of them again: --case {failed[0]['case']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
