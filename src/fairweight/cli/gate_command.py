"""`fairweight gate`: may this compressed model ship? An exit code for CI, with reasons."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.api import Audit
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.specs.policy import Policy

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
    from fairweight.auditing.decide.looks import check_looks
    from fairweight.cli.verdict import checked_policy, leave
    from fairweight.tables.write import check_file

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
    from fairweight.auditing.decide.starter import starter_policy

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
        return load(stored)
    return _audited(files, values, confirmatory)


def _stored_audit(files: list[str]) -> Path | None:
    """The audit.json that was given, itself or by its folder; None for predictions."""
    inside = (Path(name, "audit.json") for name in files)
    paths = [
        held if held.is_file() else Path(name) for held, name in zip(inside, files, strict=True)
    ]
    stored = [path for path in paths if _is_audit(path)]
    if stored and len(files) > 1:
        raise InputError(
            f"'{stored[0]}' is an audit that was made; give it alone, or only predictions."
        )
    return stored[0] if stored else None


def _is_audit(path: Path) -> bool:
    """By its name, or because it begins as our audits do: tables may be JSON as well."""
    if path.name == "audit.json":
        return True
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        return re.match(rb'\s*\{\s*"schema"\s*:', file.read(200)) is not None


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
    from fairweight.report.gate.junit import to_junit
    from fairweight.report.gate.machine import to_json
    from fairweight.report.gate.markdown import to_markdown
    from fairweight.tables.write import atomic_file

    written = {}
    if json_file is not None:
        written[json_file] = to_json(verdict, policy)
    if junit is not None:
        written[junit] = to_junit(verdict)
    if markdown is not None:
        written[markdown] = to_markdown(verdict)
    for target, text in written.items():
        with atomic_file(target, "w") as file:
            file.write(text)
