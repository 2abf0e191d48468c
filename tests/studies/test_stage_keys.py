"""Keys of all presets' stages: a spec that means the same must keep its stored runs.

`stage_keys.json` holds, by preset and kind of stage, how many there are and a digest of their keys
in the order of the plan. Where a preset is meant to change, write it again:

    python -m tests.studies.test_stage_keys
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from fairweight.runs.plan import plan
from fairweight.studies import library

FILE = Path(__file__).with_name("stage_keys.json")
STORED: dict[str, dict[str, list[int | str]]] = json.loads(FILE.read_text(encoding="utf-8"))


def presets() -> list[str]:
    return [f"{name}/{preset}" for name in library.names() for preset in library.presets(name)]


def keys_of(preset: str) -> dict[str, list[int | str]]:
    by_kind: dict[str, list[str]] = {}
    for stage in plan(library.study(*preset.split("/"))).stages.values():
        by_kind.setdefault(stage.kind, []).append(stage.key)
    return {
        kind: [len(keys), hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]]
        for kind, keys in sorted(by_kind.items())
    }


def test_every_preset_is_stored() -> None:
    assert sorted(presets()) == sorted(STORED)


@pytest.mark.parametrize("preset", presets())
def test_keys_are_the_stored_ones(preset: str) -> None:
    assert keys_of(preset) == STORED[preset]


if __name__ == "__main__":
    lines = [f"  {json.dumps(one)}: {json.dumps(keys_of(one))}" for one in sorted(presets())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
