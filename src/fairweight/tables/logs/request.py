"""A request about evaluation logs or detections as one about tables with outcomes or classes.

`fairweight audit dense=out/A int8=out/B` needs no option: the tool is found by its files, and the
log says what is scored, which side is better, and what examples are. Other options of tables
(`--cluster`, `--groups`, `--query`) go on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from fairweight.base.fields import options_of
from fairweight.errors import InputError
from fairweight.tables.connection import Workspace
from fairweight.tables.logs import coco
from fairweight.tables.logs.comparability import LogAudit, audit_of, group_columns
from fairweight.tables.logs.log import Log, LogRequest, read_log, reader_of
from fairweight.tables.sources import source_of_arrow
from fairweight.tables.spec import SourceRef, TableSpec

OF_LOGS = ("log_tasks", "log_filter", "allow_different")
OF_DETECTIONS = ("score_threshold",)
# What a log says itself: naming it beside one would be ignored.
SAID = ("id", "label", "predictions", "scores", "task", "count", "variant", "seed", "prediction",
        "score", "positive", "score_classes", "denominator", "labels_are", "repeat",
        "unlabelled")  # fmt: skip
FALSE_DETECTIONS = "false_detections"
OF_OBJECTS = ("example_id", "image_id", "label", "prediction", FALSE_DETECTIONS)  # no groups


def with_logs(workspace: Workspace, tables: TableSpec) -> tuple[TableSpec, tuple[str, ...]]:
    """The request about tables that were made of its logs, and notes; as it is without any."""
    paths = [None if ref.path is None else Path(ref.path) for ref in tables.sources]
    truth = tables.examples
    if truth is not None and truth.path is not None and coco.is_ground_truth(Path(truth.path)):
        _refuse(tables, (*SAID, *OF_LOGS), "detections")
        return _of_detections(workspace, tables, Path(truth.path))
    are_logs = [path is not None and reader_of(path) is not None for path in paths]
    if not any(are_logs):
        _refuse(tables, (*OF_LOGS, *OF_DETECTIONS), "tables")
        if paths and all(path is not None and coco.is_results(path) for path in paths):
            raise InputError(
                f"'{paths[0]}' holds detections; give the true objects too, in COCO's format "
                "(--examples instances.json)."
            )
        return tables, ()
    if not all(are_logs):
        log, other = (tables.sources[are_logs.index(held)] for held in (True, False))
        raise InputError(
            f"'{log.path}' is an evaluation log, and {other.path or 'a frame'} is none; give logs "
            "of the same tool for all models, or tables."
        )
    _refuse(tables, (*SAID, *OF_DETECTIONS), "evaluation logs")
    return _of_logs(workspace, tables)


def _refuse(tables: TableSpec, names: Sequence[str], what: str) -> None:
    for name in names:
        held, about = options_of(tables)[name]
        if getattr(tables, name) != held.default:
            raise InputError(
                f"{about.flag} ({name}=) is not for {what}; leave it out."
                if name in (*OF_LOGS, *OF_DETECTIONS)
                else f"{about.flag} ({name}=) cannot be used with {what}, which say it themselves; "
                "leave it out."
            )


def _variants(tables: TableSpec) -> list[str]:
    """A name for every source: NAME of NAME=PATH, else what the path is called."""
    names = [ref.variant or Path(str(ref.path)).resolve().stem for ref in tables.sources]
    for place, ref in enumerate(tables.sources):
        if ref.variant is None and names.count(names[place]) > 1:
            raise InputError(
                f"Two logs would be called '{names[place]}'; name them: NAME=PATH (the same NAME "
                "for runs of one model)."
            )
    return names


def _of_logs(workspace: Workspace, tables: TableSpec) -> tuple[TableSpec, tuple[str, ...]]:
    variants = _variants(tables)
    if len(variants) == 1:
        raise InputError(
            f"'{tables.sources[0].path}' is the log of one model; give the compressed model's too: "
            "dense=PATH int8=PATH."
        )
    named = frozenset(tables.column_names)
    wanted = LogRequest(tables.log_filter, tuple(tables.log_tasks or ()), named)
    logs: dict[str, Log] = {}
    for place, (variant, ref) in enumerate(zip(variants, tables.sources, strict=True)):
        again = variants[:place].count(variant)
        name = f"{variant} ({again + 1})" if again else variant
        logs[name] = read_log(str(ref.path), wanted)
    if isinstance(tables.outcome, Mapping):
        raise InputError("--outcome NAME=COL is for wide tables; of logs name the metric alone.")
    made = audit_of(logs, tables.outcome, tables.better, tables.allow_different or (), named)
    sources = tuple(
        SourceRef(
            variant=variant,
            frame=f"log of {log.tool}",
            held=source_of_arrow(workspace, _wanted(made, table, tables), str(ref.path), log.files),
        )
        for variant, ref, log, table in zip(
            variants, tables.sources, logs.values(), made.tables.values(), strict=True
        )
    )
    tools = ", ".join(dict.fromkeys(log.tool for log in logs.values()))
    return (
        replace(
            tables,
            sources=sources,
            outcome=made.outcome,
            better=made.better,
            denominator=made.denominator,
            repeat=made.repeat,
            groups=made.groups if tables.groups is None else tables.groups,
        ),
        (f"Read from logs of {tools}: the outcome is {made.outcome}.", *made.notes),
    )


def _wanted(made: LogAudit, table: pa.Table, tables: TableSpec) -> pa.Table:
    """Without columns that would be taken for a role that they do not have here."""
    if made.repeat is None:
        table = table.drop_columns(["repeat"])
    groups = made.groups if tables.groups is None else tables.column_names
    if "task" in table.schema.names and "task" not in groups and tables.query is None:
        table = table.drop_columns(["task"])
    return table


def _of_detections(
    workspace: Workspace, tables: TableSpec, path: Path
) -> tuple[TableSpec, tuple[str, ...]]:
    truth = coco.read_ground_truth(path)
    least = coco.SCORE if tables.score_threshold is None else tables.score_threshold
    by_image = tables.outcome == FALSE_DETECTIONS
    if tables.outcome is not None and not by_image:
        raise InputError(
            f"--outcome {tables.outcome}: of detections the outcome can be {FALSE_DETECTIONS} (per "
            "image, --better lower); without --outcome every true object is audited by its class."
        )
    sources: list[SourceRef] = []
    groups: tuple[str, ...] = ()
    for variant, ref in zip(_variants(tables), tables.sources, strict=True):
        if ref.path is None:
            raise InputError("Detections are read from files in COCO's format, not from frames.")
        found = coco.match(truth, ref.path, score=least)
        table = found.images if by_image else found.objects
        as_text = pa.schema([(name, pa.string()) for name in table.schema.names])
        groups, _ = group_columns(table.cast(as_text), OF_OBJECTS)
        files = (Path(ref.path), path)
        held = source_of_arrow(workspace, table, str(ref.path), files)
        sources.append(SourceRef(variant=variant, frame="COCO results", held=held))
    cluster = tables.cluster if tables.cluster is not None or by_image else "image_id"
    notes = [
        f"Detections with a score of at least {least:g}, matched with true objects at an IoU of at "
        f"least {coco.IOU:g}; an object that none took is '{coco.MISSED}'.",
        "No mean average precision: it is no sum over objects, so that it has no interval here.",
    ]
    if not by_image:
        notes.append("Objects of one image belong together (cluster image_id).")
        notes.append("For false detections per image: --outcome false_detections --better lower.")
    return (
        replace(
            tables,
            sources=tuple(sources),
            examples=None,
            cluster=cluster,
            groups=groups if tables.groups is None else tables.groups,
        ),
        tuple(notes),
    )
