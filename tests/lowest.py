"""Print constraints that hold every declared dependency at its lowest version.

    python tests/lowest.py > build/lowest.txt

Dependencies of dependencies are as new as pip likes: only what `pyproject.toml` declares is held.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("explain", "web")  # the lab has one version of torch alone


def lowest(requirements: list[str]) -> list[str]:
    """`name==version` of every `name>=version`.

    >>> lowest(["numpy>=2.0", "fairweight[explain]"])
    ['numpy==2.0']
    """
    found = (re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", text) for text in requirements)
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    print("\n".join(lowest([*project["dependencies"], *(r for e in EXTRAS for r in extras[e])])))
