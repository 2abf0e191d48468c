"""Run the blocks of two pages from top to bottom and write under each what it prints.

    python docs/generate_errata.py

The pages are errata.md and how-a-number-is-made.md; a test fails when one holds other numbers.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "errata.md"
NUMBER = PAGE.with_name("how-a-number-is-made.md")
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
    """Write both; the authors' counts are beside the repository unless the variable says so."""
    beside = PAGE.parents[2] / "shared"
    os.environ.setdefault("FAIRWEIGHT_GOLDEN", str(beside / "golden"))
    os.environ.setdefault("FAIRWEIGHT_REAL", str(beside / "real"))
    for page in (PAGE, NUMBER):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
