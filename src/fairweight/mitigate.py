"""New predictions from old ones, audited again on rows apart: thresholds, overrides, a cascade.

Each function returns a `Mitigation`: the rule, the audit of the new variants, and who got worse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from fairweight.api import tables_given
from fairweight.auditing.mitigate import apply_overrides
from fairweight.auditing.mitigate import cascade as cascades
from fairweight.auditing.mitigate import overrides as override_tables
from fairweight.auditing.mitigate import thresholds as fits
from fairweight.auditing.mitigate.cascade import (
    Cascade,
    apply_cascade,
    cascade_curve,
    cascade_name,
    check_whole_inputs,
    input_confidence,
    recommended,
    threshold_grid,
)
from fairweight.auditing.mitigate.mitigation import (
    NewVariant,
    RowsSeen,
    chosen_variants,
    item_latency,
    prediction_table,
    refuse_overlap,
    rows_seen,
    training_rows,
    two_parts,
    variants_with,
)
from fairweight.auditing.mitigate.override_curves import BUDGETS, override_curves
from fairweight.auditing.mitigate.overrides import (
    OverrideTable,
    amplified_tasks,
    apply_override_table,
    check_overrides,
    override_table,
    people_notes,
    read_labels,
    to_annotate,
)
from fairweight.auditing.mitigate.reaudit import reaudit
from fairweight.auditing.mitigate.thresholds import (
    Thresholds,
    apply_thresholds,
    fit_thresholds,
    left_alone,
)
from fairweight.auditing.prediction_matrix import Answers, answers_of
from fairweight.auditing.table_files import write_frames
from fairweight.auditing.vocabulary import joined, of_answers
from fairweight.audits import Audit, placed
from fairweight.base.files import atomic_directory
from fairweight.base.types import Progress
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.align import align
from fairweight.tables.spec import SourceRef, TableSpec, sources_of

T = TypeVar("T")
FITTED = "The thresholds would be judged on rows on which they were fitted"


@dataclass(frozen=True)
class Mitigation:
    """A rule, and what it changes on rows that it was not fitted on.

    kind         thresholds, overrides or cascade
    rule         what ships with the model, as JSON
    audit        origins and new variants against the dense model
    changes      what improved and who got worse: a row per metric and group
    predictions  of the new variants beside the old ones
    variants     the variants table with the new ones, if there was one
    curves       tables of its own: `cascade_curve`, `override_curves`
    notes        what was chosen, left out or assumed
    files        further files, as text
    """

    kind: str
    rule: Mapping[str, Any]
    audit: Audit
    changes: pd.DataFrame
    predictions: pd.DataFrame
    variants: pd.DataFrame | None
    curves: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]
    files: Mapping[str, str]

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write the rule, the tables, the predictions and the audit."""
        from fairweight.report.html import save

        complete = ("predictions.parquet",)
        result = placed(self.audit.result, Path(directory) / "audit")
        with atomic_directory(directory, completion=complete, overwrite=overwrite) as folder:
            rule = json.dumps(self.rule, indent=1, ensure_ascii=False, allow_nan=False)
            (folder / f"{self.kind}.json").write_text(rule + "\n", encoding="utf-8")
            for name, text in self.files.items():
                (folder / name).write_text(text, encoding="utf-8")
            write_frames({**self.curves, "mitigation": self.changes}, folder)
            self.predictions.to_parquet(folder / "predictions.parquet", index=False)
            if self.variants is not None:
                self.variants.to_parquet(folder / "variants.parquet", index=False)
            save(result, folder / "audit")
        return Path(directory)


def thresholds(
    source: Any,
    options: AuditOptions | None = None,
    *,
    validation: Any = None,
    variants: Sequence[str] | None = None,
    rule: str | Path | None = None,
    smooth: bool = False,
    command: str | None = None,
    progress: Progress | None = None,
) -> Mitigation:
    """Fit thresholds on validation rows, apply them, and audit the result.

    Per attribute, as Iofinova et al.: with k positive labels among the validation rows, the
    threshold is the k-th largest score. Groups are not used. With more than two classes, an offset
    per class.

    Parameters
    ----------
    source
        Predictions as `fairweight.audit_table` takes them, or a `TableSpec`.
    validation
        Predictions on validation rows, in the same layout. No example or cluster may be in both.
    variants
        Only these variants; by default all but the baseline.
    rule
        Apply and judge this file of an earlier run instead of fitting.
    smooth
        A smoothed quantile instead of the k-th largest score: steadier on few rows.
    """
    tables, chosen = tables_given(source), options or AuditOptions()
    if (validation is None) == (rule is None):
        raise InputError(
            "Thresholds are fitted on validation rows; give either --validation FILE, or --rule "
            "FILE.json with thresholds of an earlier run."
        )
    held = None if rule is None else read_rule(rule, fits.KIND, Thresholds.from_json)
    tasks = _read(tables, progress)
    names = chosen_variants(tasks[0], variants)
    if held is None:
        fitted = _read(replace(tables, sources=sources_of(validation)))
        chosen_variants(fitted[0], names, "In the validation rows, the variant")
        held = fit_thresholds(fitted, names, smooth=smooth)
    seen = held.fitted_on
    notes = refuse_overlap(seen, rows_seen(tasks, seen), FITTED)
    made = _Made(
        fits.KIND,
        held.as_json(),
        tasks,
        [[apply_thresholds(held, answers, name) for name in names] for answers in tasks],
        notes=[*left_alone(held, tasks), *notes],
    )
    return _judged(made, tables, chosen, command, progress)


def overrides(
    source: Any,
    options: AuditOptions | None = None,
    *,
    validation: Any = None,
    variants: Sequence[str] | None = None,
    rule: str | Path | None = None,
    budget: float = 0.1,
    labels: str | Path | None = None,
    identity: str | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Mitigation:
    """Override the predictions on which the dense model is least sure, and audit the result.

    Parameters
    ----------
    source
        Predictions as `fairweight.audit_table` takes them, or a `TableSpec`.
    validation
        Validation rows choose the attributes: those in which the dense model amplifies bias;
        without them all are overridden.
    variants
        Only these variants; by default all but the baseline.
    rule
        Apply and judge this file of an earlier run instead of making one.
    budget
        Share of the examples that the table overrides: 0.1 is 10 %.
    labels
        Labels of people: `annotations.csv` of the report or the viewer, its `.sqlite` file, or a
        table (example_id, label, and task if there are any); by default the dense model's.
    identity
        The column whose bias amplification chooses attributes; by default any.
    """
    tables, asked = tables_given(source), options or AuditOptions()
    if not 0 <= budget <= 1:
        raise InputError(f"--budget {budget:g} is no share of the examples; give 0 to 1.")
    if rule is not None and (labels is not None or validation is not None):
        raise InputError("--rule applies a table as it is; leave --labels and --validation out.")
    table = None if rule is None else read_rule(rule, override_tables.KIND, OverrideTable.from_json)
    tasks = _read(tables, progress)
    names = chosen_variants(tasks[0], variants)
    annotated = None if labels is None else read_labels(str(labels), tables.id, tasks)
    curves, notes, files = {}, [], {}
    if table is None:
        chosen, said = _overridden(tasks, validation, tables, identity, asked.min_group)
        notes += said
        if annotated is not None:  # people look at some attributes only
            chosen = [answers for answers in chosen if answers.task in annotated] or chosen
        table = override_table(chosen, budget, annotated)
        curves["override_curves"] = override_curves(
            chosen,
            names,
            labels=annotated,
            min_group=asked.min_group,
            n_boot=min(asked.n_boot, 500),
            alpha=asked.alpha,
            random_state=asked.random_state,
            progress=progress,
        )
        files["to_annotate.csv"] = to_annotate(chosen, BUDGETS[-1])
        if labels is not None:
            notes += people_notes(str(labels), annotated, table.overrides)
        else:
            notes.append(
                "In the curves, 'human' are the tables' own labels: people who are always "
                "right. What is written are dense labels; --labels FILE takes those of people."
            )
    notes += check_overrides(table, tasks)
    files["apply_overrides.py"] = Path(apply_overrides.__file__).read_text(encoding="utf-8")
    made = _Made(
        override_tables.KIND,
        table.as_json(),
        tasks,
        [[apply_override_table(table, a, name) for name in names] for a in tasks],
        curves,
        notes,
        files=files,
    )
    return _judged(made, tables, asked, command, progress)


def _overridden(
    tasks: Sequence[Answers],
    validation: Any,
    tables: TableSpec,
    identity: str | None,
    min_group: int,
) -> tuple[list[Answers], list[str]]:
    """The tasks to be overridden, and sentences on how they were chosen."""
    columns = [column.name for column in tasks[0].columns]
    if identity is not None and identity not in columns:
        raise UnknownNameError("--identity", identity, columns)
    if validation is None:
        return list(tasks), [
            "Every attribute is overridden: there are no validation rows (--validation) to choose "
            "those in which the dense model amplifies bias."
        ]
    apart = _read(replace(tables, sources=sources_of(validation)))
    seen = rows_seen(apart)
    notes = refuse_overlap(
        seen,
        rows_seen(tasks, seen),
        "The attributes would be judged on rows on which they were chosen",
    )
    amplified = amplified_tasks(apart, identity, min_group)
    chosen = [answers for answers in tasks if answers.task in amplified]
    if not chosen:
        raise InputError(
            "On the validation rows the dense model amplifies bias in no attribute, so there is "
            "nothing to override; leave --validation out to override all the same."
        )
    told = (
        f"{len(chosen)} of {len(tasks)} attributes are overridden: those in which the dense model "
        "amplifies bias on the validation rows."
    )
    return chosen, [told, *notes]


def cascade(
    source: Any,
    options: AuditOptions | None = None,
    *,
    validation: Any = None,
    variants: Sequence[str] | None = None,
    rule: str | Path | None = None,
    threshold: float | None = None,
    margin: float = 0.02,
    command: str | None = None,
    progress: Progress | None = None,
) -> Mitigation:
    """Let the compressed model answer, and send what it is unsure of to the dense one.

    Parameters
    ----------
    source
        Predictions as `fairweight.audit_table` takes them, or a `TableSpec`.
    validation
        Rows on which the threshold is chosen; by default half of the examples (whole clusters),
        and it is judged on the others.
    variants
        Only these variants; by default all but the baseline.
    rule
        Apply and judge this file of an earlier run instead of choosing.
    threshold
        Confidence below which an input goes to the dense model, 0 to 1.
    margin
        Choose the least threshold at which no group may lose more than this.
    """
    tables, chosen = tables_given(source), options or AuditOptions()
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold {threshold:g} cannot be used; give 0 to 1.")
    if not 0 <= margin < 1:
        raise InputError(f"--margin {margin:g} cannot be used; give a loss between 0 and 1.")
    if sum(given is not None for given in (rule, threshold, validation)) > 1:
        raise InputError("Give one of --rule, --threshold and --validation, not several.")
    held = None if rule is None else read_rule(rule, cascades.KIND, Cascade.from_json)
    tasks: Sequence[Answers] = _read(tables, progress)
    check_whole_inputs(tasks)
    names = chosen_variants(tasks[0], variants)
    for name in names:
        if held is not None and name not in held.thresholds:
            raise UnknownNameError("In the rule, the variant", name, held.thresholds)
    choosing: Sequence[Answers] = []
    notes: list[str] = []
    if threshold is not None:
        held = Cascade(dict.fromkeys(names, threshold), None, RowsSeen(frozenset()))
    elif held is None:
        if validation is None:
            choosing, tasks = two_parts(tasks, chosen.random_state)
        else:
            choosing = _read(replace(tables, sources=sources_of(validation)))
            chosen_variants(choosing[0], names, "In the validation rows, the variant")
        seen = rows_seen(choosing)
        notes += refuse_overlap(seen, rows_seen(tasks, seen), FITTED)
    else:
        seen = held.fitted_on
        notes += refuse_overlap(seen, rows_seen(tasks, seen), FITTED)
    held, curve = _curves(choosing, tasks, names, held, margin, chosen, progress)
    by_variant = [apply_cascade(held.thresholds[name], tasks, name) for name in names]
    said, measured = [], {}
    for name in names:
        chosen_rows = curve["recommended"] & (curve["part"] == "judging")
        own = curve[chosen_rows & (curve["variant"] == name)].iloc[0]
        cost, at = float(own["cost_ms"]), held.thresholds[name]
        told = "no latency was measured" if isnan(cost) else f"{cost:.3g} ms per item on average"
        note = f"{name}: at the threshold {at:.4g}, {own['share_deferred']:.1%} "
        note += f"of the inputs go to the dense model ({told})."
        if held.margin is not None and at >= 1:
            note += (
                f" No threshold below 1 keeps every group within {100 * held.margin:g} points with "
                "these examples: the dense model answers all, and the cascade does not help."
            )
        said.append(note)
        models = tasks[0].variants_table
        if models is not None and not isnan(cost):  # the latency of a batch, as of its origin
            slower = cost / item_latency(models, name)
            origin = models[models["variant"].astype(str) == name]
            columns = {"latency_ms": float(origin["latency_ms"].mean()) * slower}
            if "items_per_s" in origin:
                columns["items_per_s"] = float(origin["items_per_s"].mean()) / slower
            measured[cascade_name(name, at)] = columns
    if choosing and validation is None:
        said.append(
            "Thresholds were chosen on half of the examples (clusters) and judged on the others."
        )
    made = _Made(
        cascades.KIND,
        held.as_json(),
        tasks,
        [list(own) for own in zip(*by_variant, strict=True)],
        {"cascade_curve": curve},
        [*said, *notes],
        measured,
    )
    return _judged(made, tables, chosen, command, progress)


def _curves(
    choosing: Sequence[Answers],
    judging: Sequence[Answers],
    names: Sequence[str],
    held: Cascade | None,
    margin: float,
    options: AuditOptions,
    progress: Progress | None,
) -> tuple[Cascade, pd.DataFrame]:
    """The thresholds, chosen where they were not given, and curves on all rows that were used."""

    def curve_of(rows: Sequence[Answers], part: str) -> pd.DataFrame:
        return cascade_curve(
            rows,
            name,
            grid,
            part,
            alpha=options.alpha,
            min_group=options.min_group,
            random_state=options.random_state,
            n_boot=min(options.n_boot, 1000),
            progress=progress,
        )

    frames, chosen = [], {}
    for name in names:
        grid = threshold_grid(input_confidence(choosing or judging, name))
        if held is not None:
            chosen[name] = held.thresholds[name]
            grid = tuple(sorted({*grid, chosen[name]}))
        else:
            first = curve_of(choosing, "choosing")
            chosen[name] = recommended(first, margin)
            frames.append(first)
        frames.append(curve_of(judging, "judging"))
    curve = pd.concat(frames, ignore_index=True)
    curve["recommended"] = curve["threshold"] == curve["variant"].map(chosen)
    return held or Cascade(chosen, margin, rows_seen(choosing)), curve


# What every mitigation begins and ends with: its tables, the rule, the audit again.


def _read(tables: TableSpec, progress: Progress | None = None) -> list[Answers]:
    """The answers of every task of these tables."""
    if progress is not None:
        progress("reading", 0, 1)
    with align(tables) as aligned:
        tasks = answers_of(aligned, tables.positive)
    joined(map(of_answers, tasks)).check(tasks[0].baseline, force=tables.force)
    return tasks


def read_rule(path: str | Path, kind: str, from_json: Callable[[dict[str, Any]], T]) -> T:
    """A rule of an earlier run, checked to be of this kind and whole."""
    try:
        held = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--rule '{path}' cannot be read: {error.strerror}.") from None
    except ValueError:
        raise InputError(
            f"--rule '{path}' is no JSON; give the {kind}.json of an earlier run."
        ) from None
    found = held.get("kind") if isinstance(held, dict) else None
    if found != kind:
        raise InputError(
            f"--rule '{path}' is no rule of the kind {kind}"
            + (f", but of the kind {found}." if found else "; give the file of an earlier run.")
        )
    try:
        return from_json(held)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"--rule '{path}' is not whole; give the {kind}.json of an earlier run as it was "
            "written."
        ) from None


@dataclass(frozen=True)
class _Made:
    """A mitigation, before it is judged."""

    kind: str
    rule: Mapping[str, Any]  # as JSON
    tasks: Sequence[Answers]  # the rows on which it is judged
    variants: Sequence[Sequence[NewVariant]]  # by task
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notes: Sequence[str] = ()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _judged(
    made: _Made,
    tables: TableSpec,
    options: AuditOptions,
    command: str | None,
    progress: Progress | None,
) -> Mitigation:
    """Audit the new variants beside their origins."""
    first = made.tasks[0]
    pairs = [(new.name, new.origin) for new in made.variants[0]]
    table = prediction_table(made.tasks, made.variants)
    models = variants_with(first.variants_table, pairs, made.measured)
    train = training_rows(made.tasks)
    beside = replace(
        tables,
        baseline=first.baseline,
        groups=first.groupings,
        train=None if train is None else SourceRef.of(train),
        variants=None if models is None else SourceRef.of(models),
    )
    again = reaudit(
        table,
        pairs,
        beside,
        options,
        command=command,
        explanations=made.curves,
        progress=progress,
    )
    notes = tuple(dict.fromkeys((*again.result.notes, *made.notes)))
    return Mitigation(
        made.kind,
        made.rule,
        Audit(replace(again.result, notes=notes)),
        again.mitigation,
        table,
        models,
        made.curves,
        tuple(made.notes),
        made.files,
    )
