"""`fairweight mitigate`: new answers from old ones, audited again on rows apart."""

from __future__ import annotations

import typer

from fairweight.cli.mitigate_cascade import cascade
from fairweight.cli.mitigate_overrides import overrides
from fairweight.cli.mitigate_thresholds import thresholds

mitigate = typer.Typer(
    name="mitigate",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="What helps: thresholds, overrides or a cascade, each audited again on rows that it was "
    "not fitted on, with who got worse.\n\nStart with "
    "`fairweight mitigate thresholds test.parquet --validation val.parquet`.",
)
mitigate.command()(thresholds)
mitigate.command()(overrides)
mitigate.command()(cascade)
