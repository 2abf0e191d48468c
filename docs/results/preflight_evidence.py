"""Write the evidence of the pre-flight check from the results of studies.

    python docs/results/preflight_evidence.py STUDY=FOLDER... [--out FILE]

A FOLDER is what `fairweight study` publishes: experiments, each with `predictions/`,
`variants.parquet` and `train.parquet` (or one of them itself; `predictions.parquet` will do). The
same STUDY may be given again: its folders count as one study. Every study counts once, and the
score that was best in all other studies is judged on the one left out.
"""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
from fairweight.auditing.preflight.evidence import (
    ScoreWorth,
    evidence_frame,
    hindsight,
    with_choices,
)
from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.spec import TableSpec, sources_of

HERE = Path(__file__).resolve()
EVIDENCE = HERE.parents[2] / "src/fairweight/auditing/preflight/evidence.csv"
DIGITS = 4
PREDICTIONS = ("predictions", "predictions.parquet")


def main(arguments: list[str] | None = None) -> None:
    """Read the folders, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", metavar="STUDY=FOLDER")
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked = parser.parse_args(arguments)
    found: dict[str, list[ScoreWorth]] = {}
    for given in asked.folders:
        study, equals, folder = given.partition("=")
        if not equals:
            raise InputError(f"{given!r} is not of the form STUDY=FOLDER.")
        for experiment in experiments(Path(folder)):
            rows = of_experiment(study, experiment)
            print(f"{study}, {experiment.name}: {len(rows)} scores judged")
            found.setdefault(study, []).extend(rows)
    merged = [row for rows in found.values() for row in means(rows)]
    frame = evidence_frame(with_choices(merged)).round({"value": DIGITS})
    frame.to_csv(asked.out, index=False, lineterminator="\n")
    print(f"{len(found)} studies, {len(frame)} rows: {asked.out.name}")


def experiments(folder: Path) -> list[Path]:
    """The experiments in a folder of results."""
    held = {path.parent for name in PREDICTIONS for path in folder.rglob(name)}
    if not held:
        raise InputError(f"{folder} holds no experiment: there are no predictions in it.")
    return sorted(held)


def of_experiment(study: str, folder: Path) -> list[ScoreWorth]:
    """What every score was worth in one experiment."""
    one = folder / "predictions.parquet"
    beside = {name: folder / f"{name}.parquet" for name in ("examples", "train", "variants")}
    aligned = align(
        TableSpec(
            sources_of(str(one if one.exists() else folder / "predictions" / "*" / "*.parquet")),
            **{name: str(path) for name, path in beside.items() if path.exists()},
        )
    )
    with closing(aligned):
        return hindsight(study, [from_aligned(aligned, task) for task in tasks_of(aligned)])


def means(rows: list[ScoreWorth]) -> list[ScoreWorth]:
    """One row per score of a study, weighted by comparisons."""
    held: dict[tuple[str, str, str], list[ScoreWorth]] = {}
    for row in rows:
        held.setdefault((row.level, row.members, row.score), []).append(row)
    merged = []
    for same in held.values():
        n = sum(row.n for row in same)
        value = sum(row.n * row.value for row in same) / n
        merged.append(replace(same[0], value=value, n=n))
    return merged


if __name__ == "__main__":
    main()
