"""Write constraints.txt: one version of everything that `make` installs.

    python -m tests.lock            # pins stay, what is missing is added, what is not needed goes
    python -m tests.lock --newer    # everything as new as it goes together, torch excepted

pip decides (`--dry-run --report`); nothing is installed. Only names and versions are written, no
place that they came from.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
HEAD = """\
# The versions with which fairweight is tested; pyproject.toml keeps open ranges.
# Made by `make lock`: do not edit by hand, but for torch.
# torch is pinned so that the CPU build is taken where the index has one.
"""
EXTRAS = ".[frames,lab,ray,sql,web]"
GROUPS = ("dev", "docs")
ALONE = ("torchdistill", "pytorch-cka")  # peers that come without what they ask for (Makefile)
HELD = "torch"


def resolved(*wanted: str, constraints: str) -> dict[str, str]:
    """Names and versions that pip would install into an empty environment.

    Without the mark of a build (`+cpu`), which other indexes do not have.
    """
    with tempfile.TemporaryDirectory() as folder:
        held, report = Path(folder, "held.txt"), Path(folder, "report.json")
        held.write_text(constraints)
        words = ["install", "--quiet", "--disable-pip-version-check", "--dry-run"]
        words += ["--ignore-installed", "--constraint", str(held), "--report", str(report)]
        subprocess.run([sys.executable, "-m", "pip", *words, *wanted], cwd=ROOT, check=True)
        document: dict[str, Any] = json.loads(report.read_text())
    found = (entry["metadata"] for entry in document["install"])
    return {entry["name"]: entry["version"].partition("+")[0] for entry in found}


def main() -> None:
    parser = argparse.ArgumentParser(description="write constraints.txt")
    parser.add_argument("--newer", action="store_true", help="take the newest versions")
    newer = parser.parse_args().newer
    pins = CONSTRAINTS.read_text()
    if newer:
        pins = "\n".join(re.findall(rf"^{HELD}==.*$", pins, re.MULTILINE))
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [word for group in GROUPS for word in ("--group", group)]
    build = document["build-system"]["requires"]
    found = resolved("-e", EXTRAS, *groups, "pip", *build, constraints=pins)
    found |= resolved("--no-deps", *ALONE, constraints=pins)
    del found["fairweight"]
    lines = [f"{name}=={version}" for name, version in sorted(found.items(), key=_key)]
    CONSTRAINTS.write_text(HEAD + "\n".join(lines) + "\n")


def _key(pin: tuple[str, str]) -> str:
    return re.sub(r"[-_.]+", "-", pin[0]).lower()


if __name__ == "__main__":
    main()
