"""Make the fixed audits and runs again and compare every number with the stored one.

python -m tests.same            # compare; exit 1 where something differs
python -m tests.same pair gate  # only these
python -m tests.same --store    # store the numbers of now
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from .audits import AUDITS
from .comparison import VALUES, Made, by_column, first_of, made_again, store

# Sums in another order differ in their last digits, and libraries choose the order by the
# processor: x86 machines compute with what all of them with AVX2 have.
ARITHMETIC = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}


def make_all(names: Sequence[str], jobs: int) -> Iterator[Made]:
    """Make all, in the order of their names; the last ones, which take longest, are begun first."""
    if jobs == 1 or len(names) == 1:
        yield from (made_again(name, AUDITS[name]) for name in names)
        return
    with ProcessPoolExecutor(min(jobs, len(names)), get_context("spawn")) as pool:
        begun = {name: pool.submit(made_again, name, AUDITS[name]) for name in reversed(names)}
        for name in names:
            yield begun[name].result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare or store the audits that the command line names; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.same")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(AUDITS))
    parser.add_argument("--store", action="store_true", help="store the numbers of now")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.names) - set(AUDITS):
        parser.error(
            f"there is no audit {', '.join(sorted(unknown))}; there are {', '.join(AUDITS)}"
        )
    if asked.jobs < 1:
        parser.error(f"--jobs is {asked.jobs}; give 1 or more")

    begun, count, broken, found = time.monotonic(), 0, 0, []
    for made in make_all(asked.names or list(AUDITS), asked.jobs):
        if made.values is None or made.differing is None:
            print(f"{made.name}: could not be made\n{made.error}", flush=True)
            broken += 1
            continue
        count += len(made.values)
        if len(made.differing):
            found.append(made.differing)
            print(
                f"{made.name}: {len(made.differing):,} of {len(made.values):,} values differ; "
                f"the first:\n  {first_of(made.differing)}",
                flush=True,
            )
            if asked.store:
                store(made.name, made.values)
    surplus = [path for path in VALUES.glob("*.parquet") if path.stem not in AUDITS]
    for path in surplus:
        print(f"{path.stem}: values are stored, and there is no such audit")
        if asked.store:
            path.unlink()

    if found:
        print("Differences by column:")
        for line in by_column(found):
            print(f"  {line}")
    seconds = time.monotonic() - begun
    print(f"{len(asked.names or AUDITS)} audits and runs, {count:,} values, {seconds:.0f} s")
    if broken or (not asked.store and (found or surplus)):
        print("Not the same.")
        return 1
    print("Stored." if asked.store else "The same.")
    return 0


if __name__ == "__main__":
    alike = os.environ | (ARITHMETIC if platform.machine() == "x86_64" else {})
    if alike != os.environ:  # libraries read it once, when they are loaded
        os.execve(sys.executable, [sys.executable, "-m", "tests.same", *sys.argv[1:]], alike)
    sys.exit(main())
