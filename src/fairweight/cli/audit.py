"""`fairweight audit`: predictions in, report out."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from fairweight.cli import options as o
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.api import Audit
    from fairweight.auditing.counts.cube import Cube
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.specs.policy import Policy


def audit(
    context: typer.Context,
    files: o.Files,
    baseline: o.Baseline = None,
    examples: o.Examples = None,
    train: o.Train = None,
    variants: o.Variants = None,
    missing: o.Missing = "error",
    id_: o.Id = "example_id",
    label: o.Label = "label",
    prediction: o.Predictions = None,
    score: o.Scores = None,
    groups: o.Groups = None,
    task: o.Task = None,
    cluster: o.Cluster = None,
    weight: o.Weight = None,
    count: o.Count = None,
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    positive: o.Positive = None,
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    alpha: Annotated[
        float, typer.Option(help="Level of intervals and tests.", rich_help_panel=o.STATISTICS)
    ] = 0.05,
    members: o.Members = "retrained",
    n_boot: o.NBoot = 2000,
    correction: Annotated[
        str,
        typer.Option(
            metavar="holm|bh|none",
            help="Correction of the confirmatory families.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = "holm",
    min_group: o.MinGroup = 10,
    random_state: o.RandomState = 0,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Exact McNemar tests instead of mid-p.", rich_help_panel=o.STATISTICS
        ),
    ] = False,
    margin: Annotated[
        float,
        typer.Option(
            help="The loss that matters, as a fraction (0.02 is 2 points). The report says for "
            "whom it is ruled out, and how many examples that takes.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = 0.02,
    reference_shift: Annotated[
        float | None, typer.Option(hidden=True, help="The older name of --margin.")
    ] = None,
    group_error: Annotated[
        float,
        typer.Option(
            help="Share of group labels that may be wrong; prints the corrected excess.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = 0.0,
    zero_baseline: Annotated[
        str,
        typer.Option(
            metavar="drop|raise|epsilon|absolute",
            help="CEV and SDE: classes in which the baseline makes no errors.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = "drop",
    fixed_side: Annotated[
        str | None,
        typer.Option(
            metavar="COL=LEVEL",
            help="Bias amplification: the side that is always watched (backdoors).",
            rich_help_panel=o.STATISTICS,
        ),
    ] = None,
    no_filters: Annotated[
        bool,
        typer.Option(
            "--no-filters",
            help="Bias amplification without its skip rules.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A policy (TOML): its verdict follows the summary and is the exit code.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where the report goes.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-audit",
    suppress_small: Annotated[
        bool,
        typer.Option(
            "--suppress-small",
            help="Leave numbers of fewer than 10 examples out of everything that is written.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare compressed models with the dense one: who pays, and is it more than noise?

    Two files, one per model, joined on `example_id`:

        fairweight audit dense.csv int8.csv --groups sex,age,sex*age

    One wide table with a column per model:

        fairweight audit preds.csv --prediction dense=p0 --prediction int8=p1

    One long table (`example_id, variant, label, prediction`) with groups beside it:

        fairweight audit preds.parquet --examples people.csv --cluster person

    A counted table, one row per combination and the number of its examples:

        fairweight audit pairs.csv --count n --groups sex

    A population: several seeds of each variant (a column `seed`, or a NAME that
    is given again), and a table of which model each was made from:

        fairweight audit preds.parquet --variants variants.csv

    Writes `DIR/report.html`, `DIR/audit.json` and `DIR/tables/`. Exit code 0
    when the audit was made, 2 on bad input; with `--policy` that of the gate.
    """
    values = dict(locals())
    from rich.console import Console

    from fairweight.api import audit_table
    from fairweight.base.files import check_folder
    from fairweight.cli.progress import bar
    from fairweight.report.html import names
    from fairweight.report.terminal import show

    check_folder(out, inputs=o.inputs(values), overwrite=overwrite, names=names())
    asked = checked_policy(policy) if policy is not None else None
    with bar() as progress:
        made = audit_table(
            files if len(files) > 1 else files[0],
            **o.table_options(values),
            positive=positive,
            score_classes=o.split_names(score_classes, "--score-classes"),
            alpha=alpha,
            members=members,
            n_boot=n_boot,
            correction=correction,
            min_group=min_group,
            random_state=random_state,
            exact=exact,
            margin=margin,
            reference_shift=reference_shift,
            group_error=group_error,
            zero_baseline=zero_baseline,
            fixed_side=fixed_side,
            filters=not no_filters,
            force=force,
            confirmatory=asked.confirmatory() if asked else (),
            command=o.shell_command(context),
            progress=progress,
        )
        if suppress_small:
            made = made.suppressed()
        # Before anything is written: a policy that does not fit these data is bad input.
        verdict = made.gate(asked) if asked else None
        progress("writing the report", 1, 1)
        made.save(out, verdict=verdict, overwrite=overwrite)
    if not quiet:
        with reader_may_leave():
            show(made.result, Console(), report=str(Path(out, "report.html")))
    if verdict:
        leave(verdict, quiet=quiet)


# `fairweight gate`: may this compressed model ship? An exit code for CI, with reasons.

POLICY = "Policy"
FEWEST_BOOT = 20
# Options that are about the verdict; all others are about making the audit.
_OF_THE_GATE = frozenset(
    {
        "files",
        "policy",
        "require",
        "init",
        "looks",
        "log",
        "json_file",
        "junit",
        "markdown",
        "overwrite",
        "quiet",
    }
)


def gate(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="An audit that was made (`audit.json`, or its folder), or predictions as `audit` "
            "takes them.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The policy (TOML).", rich_help_panel=POLICY),
    ] = None,
    require: Annotated[
        str,
        typer.Option(
            metavar="all|any",
            help="Whether all variants must pass, or any one of them.",
            rich_help_panel=POLICY,
        ),
    ] = "all",
    init: Annotated[
        bool,
        typer.Option(
            "--init",
            help="Print a policy to start from, and nothing else; with FILE, for the groups and "
            "sizes that are found there.",
            rich_help_panel=POLICY,
        ),
    ] = False,
    looks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How often these examples may be gated in all; each time errs with 5 % / N.",
            rich_help_panel=POLICY,
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where looks are counted (JSON lines).", rich_help_panel=POLICY
        ),
    ] = None,
    baseline: o.Baseline = None,
    examples: o.Examples = None,
    train: o.Train = None,
    variants: o.Variants = None,
    missing: o.Missing = "error",
    id_: o.Id = "example_id",
    label: o.Label = "label",
    prediction: o.Predictions = None,
    score: o.Scores = None,
    groups: o.Groups = None,
    task: o.Task = None,
    cluster: o.Cluster = None,
    weight: o.Weight = None,
    count: o.Count = None,
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    positive: o.Positive = None,
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    members: o.Members = "retrained",
    n_boot: o.NBoot = 2000,
    min_group: o.MinGroup = 10,
    random_state: o.RandomState = 0,
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json", metavar="FILE", help="Write the verdict as JSON.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
    junit: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write it as JUnit XML, one test per endpoint.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    markdown: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write it as a Markdown summary.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Check compressed models against a policy: pass, fail, or cannot tell.

    A policy to start from, then a verdict on predictions, or on an audit that
    was made:

        fairweight gate --init dense.csv int8.csv --groups sex,age > policy.toml

        fairweight gate dense.csv int8.csv --groups sex,age --policy policy.toml

        fairweight gate fairweight-audit/audit.json --policy policy.toml

    Pass: for every row that the policy names, a loss of its margin is excluded
    with 95 % confidence. Fail: a larger loss is shown, corrected for the number
    of rows. Small groups are never a pass, and neither is what is absent: missing
    group values are a group of their own, and examples that were left out
    (`--missing drop`) count as errors. Of several seeds the mean is judged.

    To gate one test set several times, say how often beforehand:

        fairweight gate dense.csv int8.csv --policy policy.toml --looks 5 --log looks.jsonl

    Exit code 0 pass, 1 fail, 2 bad input, 3 cannot tell.
    """
    values = dict(locals())
    if init:
        _print_starter(context, files or [], values)
        return
    if policy is None:
        raise InputError("--policy is missing; fairweight gate --init > policy.toml writes one.")
    if require not in ("all", "any"):
        raise InputError(f"--require cannot be {require!r}; use all or any.")
    if not files:
        raise InputError(
            "No FILE was given; give predictions as for fairweight audit, or audit.json."
        )
    from fairweight.auditing.gate.looks import check_looks
    from fairweight.base.files import check_file

    read = [*o.inputs(values), log, *(str(Path(name, "audit.json")) for name in files)]
    for option, target in (("--json", json_file), ("--junit", junit), ("--markdown", markdown)):
        if target is not None:
            check_file(target, inputs=read, overwrite=overwrite, option=option)
    check_looks(looks, log)
    asked = checked_policy(policy)
    made = _made(context, files, values, asked.confirmatory())
    verdict = made.gate(asked, require="all" if require == "all" else "any", looks=looks, log=log)
    _write(verdict, asked, json_file=json_file, junit=junit, markdown=markdown)
    leave(verdict, quiet=quiet)


def _print_starter(context: typer.Context, files: list[str], values: dict[str, Any]) -> None:
    """A policy to start from: for any table, or for the one that is given."""
    from fairweight.auditing.gate.starter import starter_policy

    if not files:
        typer.echo(starter_policy(), nl=False)
        return
    made = _made(context, files, values | {"n_boot": FEWEST_BOOT})  # it needs no replicates
    words = [word for word in shlex.split(o.shell_command(context)) if word != "--init"]
    typer.echo(
        starter_policy(made.result, shlex.join([*words, "--policy", "policy.toml"])), nl=False
    )


def _made(
    context: typer.Context,
    files: list[str],
    values: dict[str, Any],
    confirmatory: tuple[tuple[str, str], ...] = (),
) -> Audit:
    """The audit that was given, or that of the predictions that were given."""
    stored = _stored_audit(files)
    if stored is not None:
        from fairweight.api import load

        _refuse_table_options(context)
        return load(stored, lone=True)
    return _audited(files, values, confirmatory)


def _stored_audit(files: list[str]) -> Path | None:
    """The audit.json that was given, itself or by its folder; None for predictions."""
    from fairweight.auditing.archive import stored_at
    from fairweight.base.files import settle

    for name in files:
        settle(name)
    stored = [path for name in files if (path := stored_at(name)) is not None]
    if stored and len(files) > 1:
        raise InputError(
            f"'{stored[0]}' is an audit that was made; give it alone, or only predictions."
        )
    return stored[0] if stored else None


def _refuse_table_options(context: typer.Context) -> None:
    """What is said of tables cannot change an audit that was made."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in _OF_THE_GATE and source is not None and source.name == "COMMANDLINE":
            raise InputError(
                f"{parameter.opts[0]} cannot change an audit that was made; give the predictions, "
                "or leave it out."
            )


def _audited(
    files: list[str], values: dict[str, Any], confirmatory: tuple[tuple[str, str], ...]
) -> Audit:
    from fairweight.api import audit_table
    from fairweight.cli.progress import bar

    with bar() as progress:
        return audit_table(
            files if len(files) > 1 else files[0],
            **o.table_options(values),
            positive=values["positive"],
            score_classes=o.split_names(values["score_classes"], "--score-classes"),
            members=values["members"],
            n_boot=values["n_boot"],
            min_group=values["min_group"],
            random_state=values["random_state"],
            force=values["force"],
            confirmatory=confirmatory,
            progress=progress,
        )


def _write(
    verdict: Verdict,
    policy: Policy,
    *,
    json_file: str | None,
    junit: str | None,
    markdown: str | None,
) -> None:
    from fairweight.base.files import atomic_file
    from fairweight.report.gate import to_json
    from fairweight.report.junit import verdict_to_junit
    from fairweight.report.markdown import verdict_to_markdown

    written = {}
    if json_file is not None:
        written[json_file] = to_json(verdict, policy)
    if junit is not None:
        written[junit] = verdict_to_junit(verdict)
    if markdown is not None:
        written[markdown] = verdict_to_markdown(verdict)
    for target, text in written.items():
        with atomic_file(target, "w") as file:
            file.write(text)


# `fairweight count`: predictions to a count cube, so that others can audit without row data.

SUPPRESS = 10
PARTS = "Parts"


def count(
    files: o.Files,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The cube, a Parquet file.", show_default=False)
    ],
    baseline: o.Baseline = None,
    examples: o.Examples = None,
    train: o.Train = None,
    missing: o.Missing = "error",
    id_: o.Id = "example_id",
    label: o.Label = "label",
    prediction: o.Predictions = None,
    score: o.Scores = None,
    groups: o.Groups = None,
    task: o.Task = None,
    cluster: o.Cluster = None,
    weight: o.Weight = None,
    count: o.Count = None,
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    force: o.Force = False,
    suppress_small: Annotated[
        bool,
        typer.Option(
            "--suppress-small",
            help="Leave out cells with fewer than 10 examples (a changed data set: rates then "
            "speak of the examples that remain).",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    unit_key: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Secret that keeps cluster names from being guessed; the same for all parts.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = "",
    parts: Annotated[
        int,
        typer.Option(
            help="Count a large Parquet data set in so many parts, by id; needs --groups.",
            rich_help_panel=PARTS,
        ),
    ] = 1,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that count parts; by default one per core.", rich_help_panel=PARTS
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS",
            help="Count parts on a Ray cluster that shares the folder of --out.",
            rich_help_panel=PARTS,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Count predictions into a cube: how many examples share groups, label and predictions.

    Cubes add up, hold counts instead of rows, and are audited like tables:

        fairweight count part-1.parquet --groups sex,age --out cube-1.parquet

        fairweight audit cube-1.parquet cube-2.parquet

    A data set that is too large for one process, in parts, here or on a cluster:

        fairweight count 'predictions/*/*.parquet' --groups sex --parts 64 --out cube.parquet

    A table that is counted already (`GROUP BY ..., count(*) AS n`) becomes a cube too:

        fairweight count pairs.csv --count n --groups sex --out cube.parquet

    Scores are not in a cube, so AUC and calibration need the tables themselves. With `--cluster`,
    or with several tasks, a column `unit` tells clusters or examples apart by digests.
    """
    values = dict(locals())

    from fairweight.auditing.counts.cube_file import write_cube
    from fairweight.auditing.counts.group_by import count as count_view
    from fairweight.auditing.vocabulary import of_cube
    from fairweight.base.files import check_file
    from fairweight.cli.progress import bar
    from fairweight.tables.align import align

    check_file(out, inputs=o.inputs(values), overwrite=overwrite)
    options = o.table_options(values)
    if parts != 1 or ray is not None:
        _count_in_parts(
            files, options, out, parts, workers, ray, suppress_small, unit_key, force, quiet
        )
        return
    with (
        bar() as progress,
        align(files if len(files) > 1 else files[0], **options) as aligned,
    ):
        progress("counting", 0, 1)
        cube = count_view(aligned)
        of_cube(cube).check(aligned.baseline, force=force)
        left_out = write_cube(
            cube,
            out,
            groupings=aligned.groupings,
            baseline=aligned.baseline,
            suppress=SUPPRESS if suppress_small else 0,
            key=unit_key,
        )
    if not quiet:
        _tell(cube, left_out, out)


def _count_in_parts(
    files: list[str],
    options: dict[str, Any],
    out: str,
    parts: int,
    workers: int | None,
    ray: str | None,
    suppress_small: bool,
    unit_key: str,
    force: bool,
    quiet: bool,
) -> None:
    import shutil

    from fairweight.auditing.counts.cube_file import read_cubes, write_cube
    from fairweight.auditing.vocabulary import of_cube
    from fairweight.cli.progress import bar
    from fairweight.errors import InputError
    from fairweight.runs.stages import count_in_parts

    if parts < 1:
        raise InputError(f"--parts {parts} cannot be used; give at least 1.")
    place = Path(out).parent / f".{Path(out).name}.parts"
    with bar() as progress:
        cubes = count_in_parts(
            files,
            options,
            parts=parts,
            store=place,
            unit_key=unit_key,
            workers=workers,
            ray=ray,
            progress=progress,
        )
        cube, baseline, groupings = read_cubes([str(path) for path in cubes])
        of_cube(cube).check(baseline, force=force)
        left_out = write_cube(
            cube,
            out,
            groupings=groupings,
            baseline=baseline,
            suppress=SUPPRESS if suppress_small else 0,
            units="digests",
        )
    shutil.rmtree(place, ignore_errors=True)
    if not quiet:
        _tell(cube, left_out, out)


def _tell(cube: Cube, left_out: int, out: str) -> None:
    note = f", {left_out:,} small cells left out" if left_out else ""
    typer.echo(f"{cube.n_examples:,} examples in {cube.n_cells - left_out:,} cells{note}: {out}")


# What the commands with a policy share: reading it before work begins, leaving with its code.


def checked_policy(path: str) -> Policy:
    """The policy, refused now and not after a long audit if a metric cannot carry its rules."""
    from fairweight.auditing.gate.endpoints import demands
    from fairweight.specs.policy import read_policy

    policy = read_policy(path)
    demands(policy)
    return policy


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print on although the reader (head, less) has gone: the exit code stays the verdict's.

    Without it rich would end the program with 1, which here means `fail`.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def leave(verdict: Verdict, *, quiet: bool) -> NoReturn:
    """Print the verdict and its reasons, and end with its exit code."""
    if not quiet:
        from rich.console import Console

        from fairweight.report.terminal import show_verdict

        with reader_may_leave():
            show_verdict(verdict, Console())
    raise typer.Exit(verdict.exit_code)
