"""Run the blocks of docs/errata.md from top to bottom and write under each what it prints.

    python docs/generate_errata.py

A test fails when the page holds other numbers.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "errata.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def filled(text: str) -> str:
    """The page with what its blocks print; they share one set of names."""
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(block[1], "<errata>", "exec"), names)
        return f"```python\n{block[1]}```\n\n```text\n{said.getvalue()}```\n"

    return BLOCK.sub(run, text)


def main() -> None:
    """Write the page; the authors' counts are beside the repository unless the variable says so."""
    beside = PAGE.parents[2] / "shared" / "golden"
    os.environ.setdefault("FAIRWEIGHT_GOLDEN", str(beside))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
