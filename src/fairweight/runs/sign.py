"""A file in the store by which a runner speaks to all nodes of a cluster."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from fairweight.runs import paths, store_format
from fairweight.tables.write import writing

GO, STOP = "go", "stop"


@dataclass(frozen=True)
class Sign:
    """Nodes that do not see the file do not share the store.

    It is read rather than looked for: network file systems fetch what they open, and may take
    minutes to notice that a file has come or gone.
    """

    path: Path

    @classmethod
    def of_a_new_runner(cls, root: Path) -> Sign:
        store_format.prepare(root)
        sign = cls(paths.runner(root, uuid.uuid4().hex))
        sign.write(GO)
        return sign

    def write(self, word: str) -> None:
        with writing(self.path):
            self.path.write_text(word, encoding="utf-8")

    def read(self) -> str | None:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
