"""Where everything of a store lies: every path is one function of the store's root."""

from __future__ import annotations

from pathlib import Path

DEFAULT = "fairweight-runs"
MANIFEST = "stage.json"


def about(root: Path) -> Path:
    """Says that the folder is a store, and of which format."""
    return root / "store.json"


def stages(root: Path) -> Path:
    return root / "stages"


def stage(root: Path, key: str) -> Path:
    """Outputs of a finished stage; 256 folders keep each listing short."""
    return root / "stages" / key[:2] / key


def manifest(root: Path, key: str) -> Path:
    return stage(root, key) / MANIFEST


def works(root: Path) -> Path:
    return root / "work"


def work(root: Path, key: str) -> Path:
    """Half-done work of a stage: checkpoints."""
    return root / "work" / key


def seconds(root: Path, key: str) -> Path:
    """How long the stage was worked on before it was interrupted."""
    return work(root, key) / ".seconds"


def locks(root: Path) -> Path:
    return root / "locks"


def lock(root: Path, key: str) -> Path:
    return root / "locks" / key


def studies_lock(root: Path) -> Path:
    """Held while references are changed or stages removed."""
    return root / "studies.lock"


def rooms(root: Path) -> Path:
    return root / "rooms"


def room(root: Path, name: str) -> Path:
    """Where a stage is written before it is renamed to its place."""
    return root / "rooms" / name


def room_lock(root: Path, name: str) -> Path:
    return root / "rooms" / f"{name}.lock"


def failures(root: Path) -> Path:
    return root / "failed"


def failure(root: Path, key: str) -> Path:
    return root / "failed" / f"{key}.json"


def damages(root: Path) -> Path:
    return root / "damaged"


def damage(root: Path, key: str, number: int) -> Path:
    return root / "damaged" / f"{key}.{number}"


def studies(root: Path) -> Path:
    return root / "studies"


def study(root: Path, name: str) -> Path:
    """Keys that a study refers to."""
    return root / "studies" / f"{name}.json"


def catalogue(root: Path) -> Path:
    """What the catalogue has read already; it may be deleted at any time."""
    return root / "catalogue.parquet"


def runners(root: Path) -> Path:
    return root / "runners"


def runner(root: Path, name: str) -> Path:
    """Tells the nodes of a cluster that they see the store, and whether to go on."""
    return root / "runners" / name
