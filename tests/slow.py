"""The slow tests, a file at a time, with the time that each takes (`make test-slow`).

All of them take hours. What a file gave is kept in `--out` under the code that it ran on, so that
a run that was stopped goes on, and its table says how long the whole takes. Files that failed run
again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from .simulations.measured import STORE

ROOT = Path(__file__).resolve().parents[1]
CHOSEN = ["-m", "slow or hypothesis"]
NOTHING_CHOSEN = 5  # pytest's exit code
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


@dataclass(frozen=True)
class Outcome:
    """What the slow tests of one file gave."""

    file: str
    code: str  # digest of the source and the tests
    exit: int
    counts: dict[str, int]
    seconds: float
    cpu_seconds: float

    @property
    def passed(self) -> bool:
        return self.exit == 0


def code() -> str:
    """A digest of everything that the tests run on, as it lies in the working tree."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard", "src", "tests"],
        capture_output=True,
        check=True,
    )
    digest = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        path = ROOT / name
        digest.update(f"{name}\0".encode() + (path.read_bytes() if path.is_file() else b""))
    return digest.hexdigest()[:16]


def files(named: list[str]) -> list[str]:
    """Test files with slow tests, of those that are named (none: all), in their order."""
    command = [sys.executable, "-m", "pytest", *CHOSEN, "--collect-only", "-q", *named]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode not in (0, NOTHING_CHOSEN):
        raise SystemExit(found.stdout + found.stderr)
    return list(
        dict.fromkeys(line.split("::")[0] for line in found.stdout.splitlines() if "::" in line)
    )


def run(file: str, digest: str, out: Path) -> Outcome:
    """Run the slow tests of one file; its output is in `out`."""
    log = out / "logs" / (file.replace("/", ".") + ".txt")
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", *CHOSEN, "-p", "no:cacheprovider", "--durations=10"]
    begun = time.monotonic()
    with log.open("w") as stream:
        process = subprocess.Popen([*command, file], cwd=ROOT, stdout=stream, stderr=stream)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    summary = ""  # libraries may print more after it
    for line in log.read_text(errors="replace").splitlines():
        summary = line if line.startswith("=") and COUNTS.search(line) else summary
    counts = {kind: int(number) for number, kind in COUNTS.findall(summary)}
    cpu = usage.ru_utime + usage.ru_stime
    seconds = time.monotonic() - begun
    return Outcome(file, digest, process.returncode, counts, round(seconds, 1), round(cpu, 1))


def earlier(out: Path, digest: str) -> Iterator[Outcome]:
    """Outcomes of a run on the same code that was stopped."""
    if (out / "outcomes.jsonl").exists():
        for line in (out / "outcomes.jsonl").read_text().splitlines():
            outcome = Outcome(**json.loads(line))
            if outcome.code == digest and outcome.passed:
                yield outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.slow", description=__doc__)
    parser.add_argument("files", nargs="*", help="test files or folders; by default all")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "slow", metavar="DIR")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    # A shell starts what runs in the background deaf to Ctrl-C, and tests of interrupts with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault(STORE, str(asked.out.resolve() / "simulations"))
    os.environ.setdefault("FAIRWEIGHT_HYPOTHESIS", "thorough")
    asked.out.mkdir(parents=True, exist_ok=True)
    digest, wanted = code(), files(asked.files)
    done = {
        outcome.file: outcome for outcome in earlier(asked.out, digest) if outcome.file in wanted
    }
    left = [file for file in wanted if file not in done]
    print(f"{len(wanted)} files with slow tests, {len(done)} of them done on this code", flush=True)
    with ThreadPoolExecutor(asked.jobs) as pool, (asked.out / "outcomes.jsonl").open("a") as record:
        running = [pool.submit(run, file, digest, asked.out) for file in left]
        for finished in as_completed(running):
            outcome = done[finished.result().file] = finished.result()
            record.write(json.dumps(asdict(outcome)) + "\n")
            record.flush()
            counts = ", ".join(f"{number} {kind}" for kind, number in outcome.counts.items())
            print(f"{outcome.cpu_seconds:8.0f} CPU s  {outcome.file}: {counts}", flush=True)
    failed = [outcome.file for outcome in done.values() if not outcome.passed]
    cpu = sum(outcome.cpu_seconds for outcome in done.values()) / 3600
    for file in failed:
        print(f"FAILED {file}: {asked.out / 'logs' / (file.replace('/', '.') + '.txt')}")
    total = {
        kind: sum(o.counts.get(kind, 0) for o in done.values())
        for kind in ("passed", "failed", "skipped")
    }
    print(f"{cpu:.1f} CPU hours on code {digest}")
    print(", ".join(f"{number} {kind}" for kind, number in total.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
