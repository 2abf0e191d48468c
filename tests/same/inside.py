"""Everything that `make same` takes from inside the package: when modules move, only this changes.

All else goes through `import fairweight as fw`, the command line, and the files that it writes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

import fairweight as fw
from fairweight.auditing.sensitivity import UnitAnswers, UnitCost, with_sensitivity
from fairweight.cli import main
from fairweight.report.figures import draw, figures
from fairweight.runs.plan import plan
from fairweight.runs.store import Store
from fairweight.studies.library import names, presets, study
from fairweight.web import site
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.votes import builder

# ---------------------------------------------------------------- commands


def fairweight(*words: Any, code: int = 0) -> str:
    """Run a command, which must end with this exit code; what it printed."""
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            ended = end.code or 0
    if ended != code:
        raise RuntimeError(f"fairweight {words[0]} ended with {ended}: {told.getvalue()}")
    # Without lines of progress, which a slow machine has.
    return "".join(line for line in told.getvalue().splitlines(True) if line[:2] != "… ")


# ---------------------------------------------------------------- figures


def figure_ids() -> list[str]:
    """The ids of all figures."""
    return [figure.id for figure in figures()]


def figure_specs(
    audit: fw.Audit, **tables: pd.DataFrame
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Ids, variants and specifications of all figures that an audit can fill.

    With `tables` as its only explanations, if there are any.
    """
    result = replace(audit.result, explanations=tables) if tables else audit.result
    for figure in figures():
        for variant in result.variants[:1] if figure.once else result.variants:
            spec = draw(figure.id, result, variant).spec
            if spec is not None:
                yield figure.id, variant, spec


# ---------------------------------------------------------------- units of a network


def with_units(
    audit: fw.Audit, table: pd.DataFrame, units: Mapping[str, tuple[str, str]]
) -> fw.Audit:
    """An audit of a wide table with its units: the columns of all but one, and of one alone."""
    label = table["label"]
    right = {name: (table[name] == label).to_numpy() for name in table.columns}
    answers = UnitAnswers(
        tuple(units),
        right["pred_dense"],
        right["pred_int8"],
        np.array([right[alone] for _, alone in units.values()]),
        np.array([right[without] for without, _ in units.values()]),
    )
    costs = {name: UnitCost(100 * (place + 1), None) for place, name in enumerate(units)}
    costs[""] = UnitCost(100 * sum(range(len(units) + 1)), None)
    columns = {name: table[name].to_numpy(dtype=object) for name in ("sex", "age")}
    labels = label.to_numpy(dtype=object)
    return fw.Audit(with_sensitivity(audit.result, answers, columns, labels, costs))


# ---------------------------------------------------------------- studies


@dataclass(frozen=True)
class Member:
    """One model of a study and the keys of its stages, by what they do."""

    experiment: str
    variant: str
    seed: int
    stages: Mapping[str, str]


def all_presets() -> list[tuple[str, str]]:
    """Every study that comes with fairweight, with each of its presets."""
    return [(name, preset) for name in names() for preset in presets(name)]


def planned(name: str, preset: str) -> tuple[list[Member], list[tuple[str, str]]]:
    """The models of a study, and all of its stages in order: kind and key."""
    made = plan(study(name, preset))
    roles = {
        "made": "made_by",
        "asked": "asked_by",
        "compared": "compared_by",
        "validated": "validated_by",
    }
    members = [
        Member(
            one.experiment,
            one.variant,
            one.seed,
            {role: key for role, field in roles.items() if (key := getattr(one, field))},
        )
        for one in made.models
    ]
    return members, [(stage.kind, key) for key, stage in made.stages.items()]


def stage_folder(root: Path, key: str) -> Path:
    """Where the files of a finished stage are."""
    return Store(root).read(key)


def write_stages(
    root: Path, name: str, preset: str, files: Mapping[str, Mapping[str, bytes]]
) -> None:
    """Make stages finished ones of a store: of each key the files by their names."""
    store = Store(root)

    def fill(room: Path, contents: Mapping[str, bytes]) -> None:
        for file, content in contents.items():
            (room / file).write_bytes(content)

    for key, stage in plan(study(name, preset)).stages.items():
        if key in files:
            store.write(stage, lambda room, held=files[key]: fill(room, held))


# ---------------------------------------------------------------- the viewer


@contextmanager
def viewer(results: Path, cache: Path) -> Iterator[TestClient]:
    """The pages of a folder of results, asked without a network."""
    settings = site.Settings(annotations=cache / "said.sqlite", read_only=True)
    with (
        mock.patch.dict(os.environ, {"FAIRWEIGHT_CACHE": str(cache)}),
        mock.patch.object(site, "PATIENCE", 300.0),  # a busy machine changes no answer
        mock.patch.object(builder, "built_apart", builder.indexed),  # here, not in another process
        TestClient(
            create_app(find_items(results), settings=settings), base_url="http://127.0.0.1:8000"
        ) as client,
    ):
        yield client
