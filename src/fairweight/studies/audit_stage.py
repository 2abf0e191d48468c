"""The audit of an experiment as a stage: predictions of all its models in, a report out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.runs.context import Context
from fairweight.runs.stages import PREDICTIONS, SIMILARITY, TRAINING, VARIANT
from fairweight.studies.drawings import draw_all

if TYPE_CHECKING:
    from fairweight.auditing.explain.explained import Asked

BASELINE = "dense"
TABLES = {"variants": "variants.parquet"}


def run(spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context) -> None:
    """Audit what the inputs' models answered; the report goes into the room."""
    from fairweight.auditing.audited import audited
    from fairweight.report.save import save

    place = context.work / "tables"
    trained, *others = inputs.values()
    models = spec["models"]
    gather(models, others[: len(models)], place, _distances(spec, others[len(models) :]))
    result = audited(
        str(place / "predictions" / "*" / "*.parquet"),
        {
            "baseline": BASELINE,
            "groups": spec["groups"],
            "cluster": spec["cluster"],
            "task": "task" if spec["tasks"] or _has_tasks(others[0]) else None,
            "train": str(trained / TRAINING),
            "variants": str(place / TABLES["variants"]),
        },
        {"random_state": 0, "n_boot": spec["n_boot"]},
        # The lab's own predictions are classes, whatever a model that has not learned says.
        {"positive": spec["positive"], "force": True, **_watched(spec)},
        lambda words, done, total: context.progress(done, total, words),
        _looked_for(spec, context),
    )
    save(result, room)
    draw_all(result, spec["figures"], result.variants, room / "figures")


def _looked_for(spec: Mapping[str, Any], context: Context) -> Asked | None:
    """What the experiment asks for beyond the audit; images are measured where that needs them."""
    parts = tuple(spec["explain"])
    if not parts:
        return None
    from fairweight.auditing.explain.explained import Asked
    from fairweight.auditing.explain.image_columns import measure
    from fairweight.lab.prepared_data import prepare
    from fairweight.specs.data import Data
    from fairweight.specs.read_spec import read_spec

    prepared = prepare(read_spec(Data, spec["data"], "The data"), context.data)
    measured = {"properties", "individuals"} & set(parts)
    return Asked(
        parts=parts,
        group=spec["individual_group"],
        measure=measure(prepared.test, prepared.train) if measured else None,
        images=prepared.test,
    )


def _has_tasks(folder: Path) -> bool:
    """Whether a model answered several attributes, also where all of a data set are taken."""
    import pyarrow.parquet as pq

    return "task" in pq.read_schema(folder / PREDICTIONS).names


def _watched(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Bias amplification towards one side, whatever the data say; by default as they say."""
    side = spec.get("fixed_side")
    return {} if side is None else {"fixed_side": side, "filters": False}


def _distances(spec: Mapping[str, Any], folders: list[Path]) -> list[dict[str, Any]]:
    """Of every model the columns that compare it with its dense member; none where it was not."""
    left = iter(folders)
    return [
        distances_in(next(left)) if compared else {}
        for compared in spec.get("compared", [False] * len(spec["models"]))
    ]


def distances_in(folder: Path) -> dict[str, Any]:
    """The columns that a stage of similarity wrote."""
    found: dict[str, Any] = json.loads((folder / SIMILARITY).read_text(encoding="utf-8"))
    return found


def gather(
    models: list[list[Any]],
    folders: list[Path],
    place: Path,
    further: list[dict[str, Any]] | None = None,
) -> None:
    """A folder that `fairweight audit` reads: predictions by variant and seed, variants beside.

    Files are linked where the file system can, so that nothing is stored twice. `further` are
    more columns of the variants table, by model.
    """
    rows = []
    columns = further or [{}] * len(models)
    for (variant, seed, parent), folder, more in zip(models, folders, columns, strict=True):
        row = json.loads((folder / VARIANT).read_text(encoding="utf-8")) | more
        rows.append({**row, "variant": variant, "seed": seed, "parent": parent})
        link(folder / PREDICTIONS, place / "predictions" / variant / f"{seed}.parquet")
    _write_rows(rows, place / TABLES["variants"])


def link(source: Path, target: Path) -> None:
    """The same file at a second place, or a copy of it."""
    import shutil

    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _write_rows(rows: list[dict[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fairweight.tables.write import atomic_file

    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    with atomic_file(path, "wb") as file:
        pq.write_table(table, file)
