"""`fairweight plan`: how many examples a gate needs, before any are collected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import fairweight as fw
from fairweight.audits import checked_policy
from fairweight.base.files import atomic_file, check_file
from fairweight.cli import options as o
from fairweight.cli.screen import bar, reader_may_leave
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions

PLAN = o.panel("Plan")


@o.takes
def plan(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PILOT]",
            help="A pilot: predictions as `audit` takes them, or a stored audit. Its "
            "groups, sizes and churn are used, not whether it passes.",
            show_default=False,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        PLAN("The loss to rule out, a fraction; by default 0.02 (2 points).", "X"),
    ] = None,
    power: Annotated[
        float,
        PLAN("The probability with which a model without a loss should pass everywhere.", "SHARE"),
    ] = 0.8,
    churn: Annotated[
        str | None,
        PLAN(
            "The share of predictions that compression changes from right to wrong or back; "
            "several with commas. By default the pilot's, else 0.01,0.03,0.06.",
            "X,...",
        ),
    ] = None,
    n_groups: Annotated[
        int | None, PLAN("How many groups must pass together, without a pilot.", "N")
    ] = None,
    expected_loss: Annotated[
        float, PLAN("The loss that every group truly has, below the margin.", "X")
    ] = 0.0,
    looks: Annotated[
        int, PLAN("How often these examples may be gated in all (`gate --looks`).", "N")
    ] = 1,
    policy: Annotated[
        str | None, PLAN("Plan for the rules of this policy (TOML); needs a pilot.", "FILE")
    ] = None,
    variant: Annotated[
        str | None,
        PLAN(
            "Whose churn counts, of several in the pilot; by default the one that changes most.",
            "NAME",
        ),
    ] = None,
    *,
    tables: o.Tables,
    options: Annotated[AuditOptions, o.only("members", "min_group")],
    json_file: Annotated[
        str | None, o.OUTPUT("Write the plan as JSON.", "FILE", flag="--json")
    ] = None,
    figure: Annotated[
        str | None, o.OUTPUT("Write the curve (.svg, .png, .csv, .json).", "FILE")
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Before collecting: how many examples of each group does a margin take?

    For 17 groups, 2 points, and 1, 3 or 6 % of predictions that change:

        fairweight plan --margin 0.02 --n-groups 17

    With the groups and the churn of a pilot, for one margin or for a policy:

        fairweight plan dense.csv int8.csv --groups sex,age --margin 0.02

        fairweight plan dense.csv int8.csv --groups sex,age --policy policy.toml

    A gate passes where a loss of the margin is ruled out in every group. A model
    that loses nothing passes only with enough examples: the power says how often.
    The rules are those of `fairweight gate`.
    """
    for option, target in (("--json", json_file), ("--figure", figure)):
        if target is not None:
            check_file(target, inputs=[*tables.paths, policy], overwrite=overwrite, option=option)
    if figure is not None and Path(figure).suffix.lower() not in FORMATS:
        raise InputError(f"--figure '{figure}' must end in {', '.join(FORMATS)}; rename it.")
    asked = checked_policy(policy) if policy is not None else None
    if asked is not None:
        options = replace(options, confirmatory=asked.confirmatory())
    try:
        churns = tuple(float(part) for part in (churn or "").split(",") if part.strip())
    except ValueError:
        raise InputError(
            f"--churn {churn!r} cannot be used; give fractions with commas, such as 0.01,0.03."
        ) from None
    with bar() as progress:
        made = fw.api.plan(
            tables if tables.sources else None,
            replace(options, n_boot=20),  # a plan needs no replicates
            margin=margin,
            power=power,
            churn=churns,
            n_groups=n_groups,
            expected_loss=expected_loss,
            looks=looks,
            policy=asked,
            variant=variant,
            progress=progress,
        )
    from fairweight.report.figures.export import rendered
    from fairweight.report.sample_size import curve_spec, show_plan, to_json

    if json_file is not None:
        with atomic_file(json_file, "w") as file:
            file.write(to_json(made))
    if figure is not None:
        content = rendered(curve_spec(made), Path(figure).suffix.lower())
        with atomic_file(figure, "wb") as stream:
            stream.write(content)
    if not quiet:
        with reader_may_leave():
            show_plan(made, Console(highlight=False))


FORMATS = (".svg", ".png", ".csv", ".json")
