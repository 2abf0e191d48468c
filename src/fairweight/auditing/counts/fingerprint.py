"""Which test set an audit is about, whatever the models said: a digest that ignores row order."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.counts.sums import sums
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    from fairweight.auditing.counts.cube import Cube
    from fairweight.tables.align import Aligned


def of_rows(aligned: Aligned) -> str | None:
    """The digest of ids and labels (and tasks) of all examples of the baseline; None without ids.

    Examples that other models lack are in it, and group columns are not: neither a model that
    leaves rows out nor another choice of groups makes a test set a new one.
    """
    if aligned.identified is None:
        return None
    kind, of_label = aligned.connection.execute(
        f"SELECT typeof(example_id), typeof(label) FROM {aligned.identified} LIMIT 1"
    ).fetchone() or ("", "")
    text = "CAST(example_id AS VARCHAR)"
    if kind in ("DOUBLE", "FLOAT"):  # 7.0 in one file is 7 in another
        whole = "CAST(CAST(example_id AS DECIMAL(38, 0)) AS VARCHAR)"
        text = f"CASE WHEN example_id = trunc(example_id) THEN {whole} ELSE {text} END"
    task = "task" if aligned.has_task else "NULL"
    # DuckDB gives moments with a zone to Python only where a package of time zones is installed.
    label = "CAST(label AS VARCHAR)" if of_label == "TIMESTAMP WITH TIME ZONE" else "label"
    rows = aligned.connection.execute(
        f"SELECT {task} AS task, {label} AS label, count(*), "
        f"sum(md5_number_lower({text})::HUGEINT) "
        f"FROM {aligned.identified} GROUP BY ALL"
    ).fetchall()
    totals: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for of_task, of_label, n, digest in rows:  # 1, 1.0 and "1" are one label
        key = (canonical(of_task), canonical(of_label, truth_as_number=True))
        n_before, before = totals.get(key, (0, 0))
        totals[key] = n_before + n, before + int(digest)
    lines = sorted(json.dumps([*key, n, str(digest)]) for key, (n, digest) in totals.items())
    return "ids:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def of_cells(cube: Cube) -> str:
    """The digest of how many examples share task, groups and label, where there are no ids."""
    columns = sorted(cube.columns, key=lambda column: column.name)
    codes = [] if cube.task is None else [(cube.task, len(cube.tasks))]
    codes += [(column.code, len(column.values)) for column in columns]
    codes += [(cube.label, len(cube.label_classes))]
    place = np.zeros(cube.n_cells, dtype=np.int64)
    for code, size in codes:  # made dense at every step, so that it cannot overflow
        place = np.unique(place * size + code, return_inverse=True)[1].reshape(-1)
    first = np.unique(place, return_index=True)[1]
    names = [cube.tasks, [[c.name, c.values] for c in columns], cube.label_classes]
    found = hashlib.sha256(json.dumps(names).encode())
    for code, _ in codes:
        found.update(code[first].astype("<i8").tobytes())
    found.update(sums(place, cube.count, len(first)).astype("<i8").tobytes())
    return "cells:" + found.hexdigest()
