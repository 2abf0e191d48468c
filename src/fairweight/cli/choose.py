"""`fairweight choose`: which variant to ship, by what is wanted of it, and how surely."""

from __future__ import annotations

import re
from typing import Annotated

import typer
from rich.console import Console

import fairweight as fw
from fairweight.audits import checked_policy
from fairweight.base.files import check_folder
from fairweight.cli import options as o
from fairweight.cli.screen import bar, reader_may_leave
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions

CHOICE = o.panel("Choice")
NONE_QUALIFIES = 3


@o.takes
def choose(
    context: typer.Context,
    files: o.Files,
    objective: Annotated[
        list[str] | None,
        CHOICE(
            "What should be best: a metric (`accuracy`, `worst_group@sex`, `recall@class=3`) "
            "or a column of the variants table (`size_bytes`); repeat it for several.",
            "NAME[@PLACE][:min|max]",
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        CHOICE(
            "What a variant must keep to be chosen (`>=`, `<=`, `>`, `<`); repeat it for several.",
            "'NAME>=X'",
        ),
    ] = None,
    worth: Annotated[
        list[str] | None,
        CHOICE(
            "What one unit of an objective is worth; unnamed ones are worth 1. Without any "
            "worth several objectives give a frontier.",
            "NAME=W",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        CHOICE(
            "A variant that cannot be chosen (the baseline can, unless it is named here).", "NAME"
        ),
    ] = None,
    margin: Annotated[
        float | None,
        CHOICE(
            "How far below the best still counts as near it, in the unit of the objective or "
            "of the value; 0.02 (2 points) where that is a share.",
            "X",
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        CHOICE(
            "Predictions of the same variants on other examples, to check the choice again.",
            "FILE",
        ),
    ] = None,
    confirm_share: Annotated[
        float | None,
        CHOICE(
            "Hold out this share of the examples (clusters) to check the choice again.", "SHARE"
        ),
    ] = None,
    policy: Annotated[
        str | None, CHOICE("Only variants that pass this policy (TOML) can be chosen.", "FILE")
    ] = None,
    weight_column: Annotated[str | None, o.OPTION("Now --weight.", hidden=True)] = None,
    *,
    tables: o.Tables,
    options: Annotated[AuditOptions, o.only("n_boot", "min_group", "random_state")],
    out: Annotated[
        str | None, o.OUTPUT("Write `choice.json`, tables and figures here.", "DIR")
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Choose among variants: by one number, a frontier, or weights, with requirements.

    The smallest model that keeps what it must:

        fairweight choose preds.parquet --variants variants.parquet --objective size_bytes --require 'accuracy>=0.9' --require 'worst_group_shift>=-0.02'

    The smallest model that passes a policy:

        fairweight choose preds.parquet --variants variants.parquet --objective size_bytes --policy policy.toml

    The frontier of several objectives, or the best by what each is worth:

        fairweight choose preds.parquet --variants variants.parquet --objective sparsity --objective unfairness

        fairweight choose preds.parquet --variants variants.parquet --worth sparsity=1 --worth unfairness=100

    Variants are compared on the same draws of examples. What comes first is the set
    that contains the best (95 %), and how probably each is within --margin of it. All
    probabilities allow for the best of many looking better than it is.

    Exit code 0 chosen, 2 bad input, 3 no variant qualifies.
    """  # noqa: E501  an example is one line
    if weight_column is not None:
        raise InputError(
            f"--weight-column is --weight now, as in every command: --weight {weight_column}."
        )
    if re.fullmatch(r".+=[-+.0-9eE]+", tables.weight or ""):
        raise InputError(
            f"--weight {tables.weight}: --weight names the column of sampling weights, as in every "
            f"command. What an objective is worth is --worth {tables.weight}; a column of that "
            "name must be renamed."
        )
    asked = checked_policy(policy) if policy is not None else None
    if out is not None:
        read = [*tables.paths, *(name for name in (confirm, policy) if name)]
        check_folder(out, inputs=read, overwrite=overwrite, names=("choice.json",))
    with bar() as progress:
        found = fw.api.choose(
            tables,
            options,
            objectives=objective or (),
            require=require or (),
            worth=worth or (),
            exclude=exclude or (),
            margin=margin,
            confirm=confirm,
            confirm_share=confirm_share,
            policy=asked,
            progress=progress,
        )
        if out is not None:
            from fairweight.report.choice import save

            progress("writing", 1, 1)
            save(found, out, o.shell_command(context), overwrite=overwrite)
    if not quiet:
        from fairweight.report.choice import show_choice

        console = Console(highlight=False)
        with reader_may_leave():
            show_choice(found, console)
            if out is not None:
                console.print(f"Written to {out}", markup=False, soft_wrap=True)
    if found.none_qualifies:
        raise typer.Exit(NONE_QUALIFIES)
