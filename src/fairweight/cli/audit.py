"""`fairweight audit`, `gate` and `count`: predictions in; a report, a verdict or a cube out."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

import fairweight as fw
from fairweight.audits import check_report, checked_policy, load, stored_audit
from fairweight.base.files import atomic_file, check_file
from fairweight.base.memory import budgeted
from fairweight.cli import options as o
from fairweight.cli.screen import bar, reader_may_leave, show_audit
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions, the_margin
from fairweight.tables.spec import DIALECTS, TableSpec

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict

POLICY, PARTS, WAREHOUSE = map(o.panel, ("Policy", "Parts", "Warehouse"))


@o.takes
def audit(
    context: typer.Context,
    files: o.Files,
    tables: o.Tables,
    options: Annotated[AuditOptions, o.without()],
    reference_shift: Annotated[
        float | None, o.OPTION("The older name of --margin.", hidden=True)
    ] = None,
    policy: Annotated[
        str | None,
        o.OUTPUT("A policy (TOML): its verdict follows the summary and is the exit code.", "FILE"),
    ] = None,
    out: Annotated[str, o.OUTPUT("Where the report goes.", "DIR")] = "fairweight-audit",
    suppress_small: Annotated[
        bool,
        o.OUTPUT(
            "Leave numbers of fewer than 10 examples out of everything that is written.",
            flag="--suppress-small",
        ),
    ] = False,
    csv: Annotated[
        bool, o.OUTPUT("Write the tables as CSV too, beside Parquet.", flag="--csv")
    ] = False,
    memory: o.Memory = None,
    overwrite: o.Overwrite = False,
    class_names: Annotated[
        str | None,
        o.OUTPUT(
            "Names of classes whose labels are codes: JSON, CSV (label, name), or a text whose "
            "first line is class 0.",
            "FILE",
        ),
    ] = None,
    verbose: o.Verbose = False,
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
    read = [*tables.paths, *([policy] if policy else [])]
    check_report(out, inputs=read, overwrite=overwrite)
    options = replace(options, margin=the_margin(options.margin, reference_shift))
    asked = checked_policy(policy) if policy is not None else None
    if asked is not None:
        options = replace(options, confirmatory=asked.confirmatory())
    with budgeted(memory), bar() as progress:
        made = fw.api.audit_table(
            tables, options, command=o.shell_command(context), progress=progress
        )
        if suppress_small:
            made = made.suppressed()
        if class_names is not None:
            made = made.named(class_names)
        # Before anything is written: a policy that does not fit these data is bad input.
        verdict = made.gate(asked) if asked else None
        progress("writing the report", 1, 1)
        made.save(out, verdict=verdict, overwrite=overwrite, csv=csv)
    if not quiet:
        with reader_may_leave():
            report = str(Path(out, "report.html"))
            show_audit(made.result, report, made.view, verdict=verdict, verbose=verbose)
    if verdict:
        leave(verdict, quiet=quiet)


class Require(StrEnum):
    ALL, ANY = "all", "any"


@o.takes
def gate(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="A stored audit (`audit.json`, or its folder), or predictions as `audit` "
            "takes them.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[str | None, POLICY("The policy (TOML).", "FILE")] = None,
    require: Annotated[
        Require, POLICY("Whether all variants must pass, or any one of them.", "all|any")
    ] = Require.ALL,
    init: Annotated[
        bool,
        POLICY(
            "Print a policy to start from, and nothing else; with FILE, for the groups and "
            "sizes that are found there.",
            flag="--init",
        ),
    ] = False,
    looks: Annotated[
        int | None,
        POLICY("How often these examples may be gated in all; each time errs with 5 % / N.", "N"),
    ] = None,
    log: Annotated[str | None, POLICY("Where looks are counted (JSON lines).", "FILE")] = None,
    *,
    tables: o.Tables,
    options: o.OfAudit,
    json_file: Annotated[
        str | None, o.OUTPUT("Write the verdict as JSON.", "FILE", flag="--json")
    ] = None,
    junit: Annotated[
        str | None, o.OUTPUT("Write it as JUnit XML, one test per check.", "FILE")
    ] = None,
    markdown: Annotated[str | None, o.OUTPUT("Write it as a Markdown summary.", "FILE")] = None,
    memory: o.Memory = None,
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
    stored = stored_audit(tables.paths)
    if stored is not None:
        for parameter in context.command.params:
            name = parameter.name or ""
            source = context.get_parameter_source(name)
            given = source is not None and source.name == "COMMANDLINE"
            if name.startswith(("tables_", "options_")) and given:
                raise InputError(
                    f"{parameter.opts[0]} cannot change a stored audit; give the "
                    "predictions, or leave it out."
                )
    if init:
        from fairweight.auditing.gate.starter import starter_policy

        text = starter_policy()  # for any table
        if tables.sources:
            made = fw.api.opened(tables, replace(options, n_boot=20))  # it needs no replicates
            words = [word for word in shlex.split(o.shell_command(context)) if word != "--init"]
            text = starter_policy(made.result, shlex.join([*words, "--policy", "policy.toml"]))
        typer.echo(text, nl=False)
        return
    if policy is None:
        raise InputError("--policy is missing; fairweight gate --init > policy.toml writes one.")
    if not files:
        raise InputError(
            "No FILE was given; give predictions as for fairweight audit, or audit.json."
        )
    from fairweight.auditing.gate.looks import check_looks
    from fairweight.report.gate import to_json
    from fairweight.report.junit import verdict_to_junit
    from fairweight.report.markdown import verdict_to_markdown

    read = [*tables.paths, policy, log, *(str(Path(name, "audit.json")) for name in files)]
    for option, target in (("--json", json_file), ("--junit", junit), ("--markdown", markdown)):
        if target is not None:
            check_file(target, inputs=read, overwrite=overwrite, option=option)
    check_looks(looks, log)
    asked = checked_policy(policy)
    with budgeted(memory), bar() as progress:
        if stored is None:
            options = replace(options, confirmatory=asked.confirmatory())
            made = fw.api.audit_table(tables, options, progress=progress)
        else:
            made = load(stored, lone=True)
        verdict = made.gate(asked, require=require.value, looks=looks, log=log)
    written = {}
    if json_file is not None:
        written[json_file] = to_json(verdict, asked)
    if junit is not None:
        written[junit] = verdict_to_junit(verdict)
    if markdown is not None:
        written[markdown] = verdict_to_markdown(verdict)
    for target, text in written.items():
        with atomic_file(target, "w") as file:
            file.write(text)
    leave(verdict, quiet=quiet)


def leave(verdict: Verdict, *, quiet: bool) -> NoReturn:
    """Print the verdict and its reasons, and end with its exit code."""
    if not quiet:
        from fairweight.report.terminal import show_verdict

        with reader_may_leave():
            show_verdict(verdict, Console())
    raise typer.Exit(verdict.exit_code)


@o.takes
def count(
    files: o.Files,
    tables: Annotated[TableSpec, o.without("variants", "positive", "score_classes")],
    out: Annotated[
        str | None, o.OPTION("The cube, a Parquet file.", "FILE", show_default=False)
    ] = None,
    sql: Annotated[
        bool,
        WAREHOUSE(
            "Print the count as SQL, and read nothing: FILE is a table of a warehouse.",
            flag="--sql",
        ),
    ] = False,
    dialect: Annotated[
        str | None, WAREHOUSE("The SQL dialect; duckdb by default.", "|".join(DIALECTS))
    ] = None,
    suppress_small: Annotated[
        bool,
        o.OUTPUT(
            "Leave out cells with fewer than 10 examples (a changed data set: rates then "
            "are of the examples that remain).",
            flag="--suppress-small",
        ),
    ] = False,
    unit_key: Annotated[
        str,
        o.OUTPUT(
            "Secret that keeps cluster names from being guessed; the same for all parts.", "TEXT"
        ),
    ] = "",
    parts: Annotated[
        int, PARTS("Count a large Parquet data set in so many parts, by id; needs --groups.")
    ] = 1,
    workers: Annotated[
        int | None, PARTS("Processes that count parts; by default one per core.")
    ] = None,
    ray: Annotated[
        str | None,
        PARTS("Count parts on a Ray cluster that shares the folder of --out.", "local|ADDRESS"),
    ] = None,
    memory: o.Memory = None,
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

    Where rows must stay in a warehouse: the statements to run there (FILE is a table's name), with
    checks of identity; their small result is audited anywhere:

        fairweight count dense=logs.dense int8=logs.int8 --groups sex --sql --dialect bigquery

    Outcomes that are numbers (`--outcome`) become sums by cell, with `--sql` too; they give the
    limits of the rows.
    Scores are not in a cube, so AUC and calibration need the tables themselves. With `--cluster`,
    or with several tasks, a column `unit` tells clusters or examples apart by digests.
    """
    if sql:
        if out is not None:
            raise InputError("--sql prints statements and writes no cube; leave --out out.")
        typer.echo(str(fw.count_sql(tables, dialect or "duckdb")), nl=False)
        return
    if dialect is not None:
        raise InputError("--dialect goes with --sql; add it, or leave --dialect out.")
    if out is None:
        raise InputError("--out is missing; name the Parquet file that the cube goes to.")
    check_file(out, inputs=tables.paths, overwrite=overwrite)
    with budgeted(memory), bar() as progress:
        cube = fw.api.count(
            tables,
            out,
            suppress_small=suppress_small,
            unit_key=unit_key,
            parts=parts,
            workers=workers,
            ray=ray,
            progress=progress,
        )
    if not quiet:
        note = f", {cube.left_out:,} small cells left out" if cube.left_out else ""
        typer.echo(f"{cube.n_examples:,} examples in {cube.n_cells:,} cells{note}: {out}")
