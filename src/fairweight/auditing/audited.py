"""From given tables (or cubes) to the result of an audit, for `fw.audit_table` and for studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.explain.explained import Asked
    from fairweight.auditing.result import AuditResult
    from fairweight.tables.align import Aligned
    from fairweight.tables.sources import Source

Progress = Callable[[str, int, int], None]
# What a cube cannot be asked any more.
OF_TABLES = {
    "cluster": "cluster", "weight": "weight", "examples": "examples", "train": "train",
    "task": "task", "predictions": "prediction", "scores": "score", "count": "count",
}  # fmt: skip

# Ids of more rows are read for a fingerprint of the test set only where there is a policy: a
# million takes 0.6 s, as long as the audit of them.
FINGERPRINT_ROWS = 200_000

DEFAULTS: dict[str, Any] = {
    "alpha": 0.05, "n_boot": 2000, "correction": "holm", "min_group": 10, "random_state": None,
    "zero_baseline": "drop", "margin": 0.02, "group_error": 0.0, "exact": False,
    "members": "retrained", "confirmatory": (),
}  # fmt: skip


def audited(
    source: Any,
    tables: Mapping[str, Any],
    options: Mapping[str, Any],
    asked: Mapping[str, Any],
    progress: Progress | None = None,
    explain: Asked | None = None,
) -> AuditResult:
    """Audit prediction tables, or cubes.

    Parameters
    ----------
    source
        As for `fairweight.audit_table`.
    tables
        Keyword arguments of `fairweight.tables.align.align`.
    options
        Fields of `Options` other than their defaults, checked here; `random_state` may be None.
    asked
        Further fields of `Request`: positive, filters, fixed_side, force, command.
    explain
        Which examples and why: what to look for beyond the audit.
    """
    from fairweight.auditing.pipeline import silent

    checked = _options(**(DEFAULTS | dict(options)))
    report = progress or silent
    cubes = cube_paths(source)
    if cubes:
        refuse_table_options({told: tables.get(name) for name, told in OF_TABLES.items()})
        models = read_models(
            tables.get("variants"), tables.get("variant", "variant"), tables.get("seed", "seed")
        )
        return _audit_cubes(
            cubes,
            tables.get("baseline"),
            tables.get("groups"),
            models,
            checked,
            dict(asked),
            report,
            explain,
        )
    from fairweight.tables.align import align

    report("reading", 0, 1)
    with align(source, **tables, further=explain is not None) as aligned:
        result = _audit_aligned(aligned, checked, dict(asked), report)
        if explain is None:
            return result
        from fairweight.auditing.answers import from_aligned, tasks_of
        from fairweight.auditing.explain.explained import explained

        if aligned.has_count:  # without identities, as a cube is
            from fairweight.auditing.answers import from_cube
            from fairweight.auditing.counts.count import count

            return explained(result, [from_cube(count(aligned), aligned.baseline)], explain, report)
        tasks = [
            from_aligned(aligned, task, positive=_positive_of(asked, aligned))
            for task in tasks_of(aligned)
        ]
        return explained(result, tasks, explain, report)


def _positive_of(asked: Mapping[str, Any], aligned: Aligned) -> Any:
    """The positive class that was named; tasks may not all have it, and then it is looked up."""
    return None if aligned.has_task else asked.get("positive")


def _audit_aligned(
    aligned: Aligned, options: Any, asked: dict[str, Any], progress: Progress
) -> AuditResult:
    from fairweight.auditing.counts.count import count, has_scores, training_table
    from fairweight.auditing.counts.fingerprint import of_cells, of_rows
    from fairweight.auditing.pipeline import Request, run
    from fairweight.tables.sources import provenance

    progress("counting", 0, 1)
    cube = count(aligned)
    known = None
    if options.confirmatory or aligned.n_rows <= FINGERPRINT_ROWS:
        known = of_rows(aligned) or of_cells(cube)
    scored = count(aligned, scores=True) if has_scores(aligned) else None
    request = Request(
        baseline=aligned.baseline,
        variants=aligned.variants,
        groupings=aligned.groupings,
        options=options,
        notes=aligned.notes,
        inputs=provenance(aligned.inputs),
        test_set=known,
        **asked,
    )
    return run(
        cube,
        request,
        scored=scored,
        training=training_table(aligned, cube.label_classes),
        variants_table=aligned.variants_table,
        progress=progress,
    )


def _audit_cubes(
    paths: list[str],
    baseline: str | None,
    groups: str | Sequence[str] | None,
    models: tuple[pd.DataFrame, Source] | None,
    options: Any,
    asked: dict[str, Any],
    progress: Progress,
    explain: Asked | None,
) -> AuditResult:
    from fairweight.auditing.counts.fingerprint import of_cells
    from fairweight.auditing.counts.groupings import chosen_groupings
    from fairweight.auditing.counts.store import read_cubes
    from fairweight.auditing.pipeline import Request, run
    from fairweight.errors import UnknownNameError
    from fairweight.tables.parents import parents, stray_note
    from fairweight.tables.sources import Source, provenance

    cube, stored_baseline, groupings = read_cubes(paths)
    chosen = canonical(baseline) or stored_baseline
    names = list(dict.fromkeys(member.variant for member in cube.members))
    if chosen not in names:
        raise UnknownNameError("The baseline", chosen, names)
    if groups is not None:
        groupings = chosen_groupings(cube, groups)
    table, beside = (None, []) if models is None else (models[0], [models[1]])
    stray = stray_note(parents(table), ((m.variant, m.seed) for m in cube.members))
    inputs = [Source(path, "", {}, cube.n_cells, (Path(path),)) for path in paths]
    request = Request(
        baseline=chosen,
        variants=tuple(name for name in names if name != chosen),
        groupings=groupings,
        options=options,
        notes=() if stray is None else (stray,),
        inputs=provenance([*inputs, *beside]),
        test_set=of_cells(cube),
        **asked,
    )
    result = run(cube, request, variants_table=table, progress=progress)
    if explain is None:
        return result
    from fairweight.auditing.answers import from_cube
    from fairweight.auditing.explain.explained import explained

    tasks = [from_cube(cube, chosen, task) for task in cube.tasks or (None,)]
    return explained(result, tasks, explain, progress)


def read_models(given: Any, variant: str, seed: str) -> tuple[pd.DataFrame, Source] | None:
    from fairweight.tables.layout import Names
    from fairweight.tables.variants import read_variants

    return None if given is None else read_variants(given, Names(variant=variant, seed=seed))


def cube_paths(source: Any) -> list[str]:
    """Paths of cubes, globs expanded; [] if the source is anything else."""
    from glob import glob

    from fairweight.tables.sources import is_cube

    given = list(source) if isinstance(source, list | tuple) else [source]
    if not given or not all(isinstance(item, str | Path) for item in given):
        return []
    paths = [
        path
        for item in given
        for path in (sorted(glob(str(item))) if not Path(item).exists() else [str(item)])
    ]
    which = [is_cube(path) for path in paths]
    if not any(which):
        return []
    if not all(which):
        raise InputError(
            "Cubes and prediction tables were given together; audit the cubes alone, or count the "
            "tables too (fairweight count)."
        )
    return paths


def refuse_table_options(given: Mapping[str, Any]) -> None:
    """A cube is counted already: what concerns columns must be said when counting."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"--{name} cannot be applied to a cube, which is counted already; say it when "
                f"counting: fairweight count FILE --{name} ... --out cube.parquet"
            )


def _options(**given: Any) -> Any:
    """Checked options; every message names the argument, what was given and what is allowed."""
    from fairweight.auditing.compare.comparison import Options
    from fairweight.auditing.metrics.change import ZERO_BASELINE_POLICIES

    state = given.pop("random_state")
    seed = 0 if state is None else state

    def need(ok: bool, name: str, rule: str) -> None:
        if not ok:
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{flag} ({name}=) cannot be {given.get(name, seed)!r}; {rule}.")

    def number(value: Any, low: float, high: float) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low < value < high

    def whole(value: Any, least: int) -> bool:
        return hasattr(value, "__index__") and not isinstance(value, bool) and value >= least

    need(number(given["alpha"], 0, 1), "alpha", "give a level between 0 and 1, such as 0.05")
    need(whole(given["n_boot"], 20), "n_boot", "give a whole number of at least 20")
    need(given["correction"] in ("holm", "bh", "none"), "correction", "use holm, bh or none")
    need(given["members"] in ("retrained", "repeated"), "members", "use retrained or repeated")
    need(whole(given["min_group"], 1), "min_group", "give a whole number of at least 1")
    need(whole(seed, 0), "random_state", "give a whole number of at least 0")
    policies = ", ".join(ZERO_BASELINE_POLICIES)
    need(
        given["zero_baseline"] in ZERO_BASELINE_POLICIES, "zero_baseline", f"use one of {policies}"
    )
    points = given["margin"]
    hint = f" (did you mean {points / 100:g}?)" if number(points, 0.999, 100) else ""
    need(number(points, 0, 1), "margin", f"give a fraction between 0 and 1, such as 0.02{hint}")
    need(
        given["group_error"] == 0 or number(given["group_error"], 0, 0.5),
        "group_error",
        "give a share of wrong labels below 0.5",
    )
    return Options(random_state=int(seed), **given)
