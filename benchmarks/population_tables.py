"""Tables of populations that behave like trained models: members agree on most examples.

An example has a difficulty that all members share, a class that it is taken for when an answer is
wrong, and noise of its own with every member; a compressed member keeps most of the noise of the
dense member that it came from. `python -m benchmarks.population_tables FOLDER` writes both tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

SHARED = 0.85  # correlation of the latent error of two members that share nothing but the example
KEPT = 0.8  # share of a parent's own noise that its child keeps
SCORE_STEPS = 10_000  # scores are rounded as they are in most files


@dataclass(frozen=True)
class Side:
    """One variant: how many members it has, and on what share of examples they err."""

    variant: str
    members: int
    error: float


@dataclass(frozen=True)
class Populations:
    """What a table holds; the first side is the baseline."""

    name: str
    rows: int
    classes: int
    sides: tuple[Side, ...]
    groups: tuple[tuple[str, int], ...]  # column and number of levels
    scores: bool = False

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.groups)


def thirty_and_thirty(rows: int = 100_000, *, scores: bool = False) -> Populations:
    """30 dense and 30 pruned members, 10 classes, two group columns."""
    sides = (Side("dense", 30, 0.08), Side("pruned-90", 30, 0.10))
    name = "thirty-and-thirty-scored" if scores else "thirty-and-thirty"
    return Populations(name, rows, 10, sides, (("site", 8), ("age", 4)), scores)


def one_teacher_ten_methods(rows: int = 10_000) -> Populations:
    """The shape of Simon Says, Table 3: one teacher, ten methods of four members, 100 classes."""
    methods = tuple(Side(f"method-{i}", 4, 0.21 + 0.004 * i) for i in range(10))
    sides = (Side("teacher", 1, 0.20), *methods)
    return Populations("one-teacher-ten-methods", rows, 100, sides, ())


def parquet(folder: Path, shape: Populations) -> tuple[Path, Path]:
    """The wide table and its variants table in `folder`, written on first use."""
    table = folder / f"{shape.name}-{shape.rows}.parquet"
    variants = folder / f"{shape.name}-{shape.rows}-variants.parquet"
    if not table.exists():
        _write(table, variants, shape)
    return table, variants


def _write(table: Path, variants: Path, shape: Populations) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    n = shape.rows
    # Every class has examples, as many as any other.
    label = rng.permutation(np.arange(n) % shape.classes).astype(np.uint8)
    columns: dict[str, object] = {"example_id": np.arange(n), "label": label}
    levels = {name: rng.integers(count, size=n) for name, count in shape.groups}
    for name, codes in levels.items():
        columns[name] = pa.array([f"{name} {code}" for code in codes])
    shift = (label.astype(np.float64) % 5 - 2) * 0.1  # some classes are harder
    pays = sum((codes == 0) * 0.15 for codes in levels.values()) + (label == 1) * 0.2
    for side, seed, answers, scores in _members(rng, shape, label, shift, np.asarray(pays)):
        columns[f"prediction:{side}:{seed}"] = answers
        if shape.scores:
            columns[f"score:{side}:{seed}"] = scores
    pq.write_table(pa.table(_parents(shape)), variants)
    pq.write_table(pa.table(columns), table)


def _members(
    rng: np.random.Generator,
    shape: Populations,
    label: NDArray[np.uint8],
    shift: NDArray[np.float64],
    pays: NDArray[np.float64],
) -> Iterator[tuple[str, int, NDArray[np.uint8], NDArray[np.float64]]]:
    """Every member's answers and scores; compressed ones find `pays` harder."""
    n, classes = shape.rows, shape.classes
    difficulty = rng.standard_normal(n) + shift
    taken_for = (label + rng.integers(1, classes, size=n)) % classes
    own = [rng.standard_normal(n) for _ in range(shape.sides[0].members)]
    for number, side in enumerate(shape.sides):
        cut = NormalDist().inv_cdf(1 - side.error)
        for seed in range(side.members):
            noise = own[seed % len(own)]
            if number:
                fresh = rng.standard_normal(n)
                noise = KEPT * noise + np.sqrt(1 - KEPT**2) * fresh
            latent = np.sqrt(SHARED) * difficulty + np.sqrt(1 - SHARED) * noise
            excess = latent + (pays if number else 0.0) - cut
            other = (label + rng.integers(1, classes, size=n)) % classes
            wrong = np.where(rng.random(n) < 0.8, taken_for, other)
            answers = np.where(excess > 0, wrong, label).astype(np.uint8)
            confident = 1 / classes + (1 - 1 / classes) * (1 - np.exp(-2 * np.abs(excess)))
            yield side.variant, seed, answers, np.round(confident * SCORE_STEPS) / SCORE_STEPS


def _parents(shape: Populations) -> dict[str, list[object]]:
    """The variants table: member i of a compressed variant comes from dense member i."""
    baseline = shape.sides[0]
    rows: dict[str, list[object]] = {"variant": [], "seed": [], "parent": []}
    for side in shape.sides:
        for seed in range(side.members):
            came_from = f"{baseline.variant}:{seed % baseline.members}"
            rows["variant"].append(side.variant)
            rows["seed"].append(seed)
            rows["parent"].append(None if side is baseline else came_from)
    return rows


def main(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for shape in (
        thirty_and_thirty(), thirty_and_thirty(scores=True), one_teacher_ten_methods()
    ):  # fmt: skip
        for path in parquet(Path(folder), shape):
            print(path)


if __name__ == "__main__":
    main(sys.argv[1])
