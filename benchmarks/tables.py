"""Prediction tables of any size, made by DuckDB from hashes of row numbers: the same every time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Coprime to every size in use, so that multiplying by it shuffles the identities.
SHUFFLE = 1_000_003


@dataclass(frozen=True)
class Shape:
    """What a table holds: the dense model errs on 5 % of rows, int8 on 2 % more."""

    rows: int
    groups: int
    classes: int
    long: bool = False  # a row per example and variant instead of a row per example
    text_ids: bool = False  # shuffled text instead of whole numbers in order
    first: int = 0  # the number of the first row: several files make one data set

    @property
    def file_name(self) -> str:
        layout = "long" if self.long else "wide"
        ids = "text-ids" if self.text_ids else "whole-ids"
        part = f"-from-{self.first}" if self.first else ""
        return f"{layout}-{ids}-{self.rows}-{self.groups}-{self.classes}{part}.parquet"


def parquet(folder: Path, shape: Shape) -> Path:
    """The table as a Parquet file in `folder`, written on first use."""
    path = folder / shape.file_name
    if not path.exists():
        _write(path, shape)
    return path


def _write(path: Path, shape: Shape) -> None:
    import duckdb

    classes = shape.classes
    kind = "UTINYINT" if classes <= 256 else "USMALLINT"

    def wrong(bits: int) -> str:
        return f"(label + 1 + (h >> {bits}) % {classes - 1}) % {classes}"

    shuffled = f"'example-' || ((i * {SHUFFLE}) % {shape.rows})"
    wide = f"""
        SELECT example_id, grp, label::{kind} AS label,
            (CASE WHEN u0 < 0.05 THEN {wrong(40)} ELSE label END)::{kind} AS pred_dense,
            (CASE WHEN u1 < 0.02 THEN {wrong(28)} WHEN u0 < 0.05 THEN {wrong(40)}
                ELSE label END)::{kind} AS pred_int8
        FROM (
            SELECT {shuffled if shape.text_ids else "i"} AS example_id, h,
                'group ' || (h % {shape.groups}) AS grp, (h >> 16) % {classes} AS label,
                (hash(i, 1) % 1000000) / 1e6 AS u0, (hash(i, 2) % 1000000) / 1e6 AS u1
            FROM (
                SELECT i, hash(i) AS h FROM range({shape.first}, {shape.first + shape.rows}) AS t(i)
            )
        )"""
    members = " UNION ALL ".join(
        f"SELECT example_id, '{name}' AS variant, grp, label, pred_{name} AS prediction FROM wide"
        for name in ("dense", "int8")
    )
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        source = wide
        if shape.long:
            connection.execute(f"CREATE TABLE wide AS {wide}")
            source = members
        connection.execute(f"COPY ({source}) TO '{path}' (FORMAT parquet)")


def bare_count(path: Path, *, long: bool) -> tuple[str, str]:
    """The plain SQL that any count needs: a group-by, and whether identities are distinct."""
    by = "variant, grp, label, prediction" if long else "grp, label, pred_dense, pred_int8"
    per = "variant, " if long else ""
    return (
        f"SELECT {by}, count(*) FROM '{path}' GROUP BY ALL",
        f"SELECT {per}count(*), count(DISTINCT example_id) FROM '{path}' GROUP BY ALL",
    )
