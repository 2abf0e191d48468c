"""Records of stages that failed, with their tracebacks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairweight.runs import paths
from fairweight.tables.write import atomic_file


def fail(root: Path, key: str, traceback: str, label: str = "") -> None:
    """Record why a stage failed; replaces an earlier record."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"key": key, "label": label, "when": when, "traceback": traceback}
    with atomic_file(paths.failure(root, key)) as stream:
        json.dump(record, stream)


def failed(root: Path) -> dict[str, dict[str, Any]]:
    """Records by key, of stages that are not done since."""
    try:
        names = sorted(os.listdir(paths.failures(root)))
    except FileNotFoundError:
        return {}
    records = {}
    for name in names:
        key = name.removesuffix(".json")
        if name.startswith(".") or key == name or paths.manifest(root, key).exists():
            continue
        with suppress(FileNotFoundError):  # forgotten just now
            records[key] = _record(root, key)
    return records


def forget_failures(root: Path, keys: Iterable[str]) -> None:
    for key in keys:
        paths.failure(root, key).unlink(missing_ok=True)


def _record(root: Path, key: str) -> dict[str, Any]:
    empty = {"key": key, "label": "", "when": "", "traceback": "(the record cannot be read)"}
    try:
        found = json.loads(paths.failure(root, key).read_text(encoding="utf-8"))
    except ValueError:
        return empty
    return {**empty, **found} if isinstance(found, dict) else empty
