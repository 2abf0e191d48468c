"""Make the fixed audits again and compare every number with the stored one.

python -m tests.same            # compare; exit 1 where something differs
python -m tests.same pair gate  # only these audits
python -m tests.same --store    # store the numbers of now
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from .audits import AUDITS
from .comparison import VALUES, by_column, cells, differences, first_of, read, store


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare or store the audits that the command line names; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.same")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(AUDITS))
    parser.add_argument("--store", action="store_true", help="store the numbers of now")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.names) - set(AUDITS):
        parser.error(
            f"there is no audit {', '.join(sorted(unknown))}; there are {', '.join(AUDITS)}"
        )

    begun, count, broken, found = time.monotonic(), 0, 0, []
    for name in asked.names or AUDITS:
        try:
            with tempfile.TemporaryDirectory() as folder:
                new = cells(AUDITS[name](Path(folder)))
        except Exception:
            print(f"{name}: could not be made\n{traceback.format_exc()}")
            broken += 1
            continue
        count += len(new)
        stored = read(name)
        differing = differences(new[:0] if stored is None else stored, new)
        if len(differing):
            found.append(differing)
            print(f"{name}: {len(differing):,} of {len(new):,} values differ; the first:")
            print(f"  {first_of(differing)}")
            if asked.store:
                store(name, new)
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
    print(f"{len(asked.names or AUDITS)} audits, {count:,} values, {seconds:.0f} s")
    if broken or (not asked.store and (found or surplus)):
        print("Not the same.")
        return 1
    print("Stored." if asked.store else "The same.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
