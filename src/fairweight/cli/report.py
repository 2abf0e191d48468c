"""`fairweight report`: an audit that was made, in the form that somebody needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult

WRITE = "write"
FORMATS = ("html", "md", "json", "card", "junit")
CARD = "Model card"


class _WithDefault(typer.core.TyperGroup):
    """`fairweight report DIR` is `fairweight report write DIR`: an audit is no command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [WRITE, *args]
        return super().parse_args(ctx, args)


report = typer.Typer(
    name="report",
    cls=_WithDefault,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="An audit that was made as a page, a summary for a pull request, a model card or tests; "
    "single figures as files.\n\nStart with `fairweight report fairweight-audit --format md`.",
)

Audit = Annotated[
    str, typer.Argument(metavar="DIR", help="The folder of an audit, or its audit.json.")
]
Variant = Annotated[str | None, typer.Option(metavar="NAME", help="Of which variant.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that fairweight did not write.")
]


@report.command()
def write(
    audit: Audit,
    form: Annotated[
        str, typer.Option("--format", metavar="html|md|json|card|junit", help="What to write.")
    ] = "html",
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where it goes; by default it is printed."),
    ] = None,
    overwrite: Overwrite = False,
    policy: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A policy (TOML) whose verdict leads (html, md, junit)."),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of which variant the card is; needed where there are several.",
            rich_help_panel=CARD,
        ),
    ] = None,
    base_model: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME", help="The dense model on the hub.", rich_help_panel=CARD
        ),
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(
            metavar="quantized|finetune|adapter|merge",
            help="How the model was made from it; by default what the variants table says.",
            rich_help_panel=CARD,
        ),
    ] = None,
) -> None:
    """Write an audit once more, in another form; nothing is computed again.

    A summary for a pull request, and a Hugging Face model card of one variant:

        fairweight report fairweight-audit --format md

        fairweight report fairweight-audit --format card --variant int8 --out README.md

    Tests for a CI server, by a policy (without one every shown loss fails and
    whoever has too few examples is skipped):

        fairweight report fairweight-audit --format junit --policy policy.toml --out audit.xml

    The word `write` may be left out. Exit code 0 when it was written, whatever
    the verdict: `fairweight gate` gives exit codes.
    """
    if form not in FORMATS:
        raise InputError(f"--format cannot be {form!r}; use {', '.join(FORMATS)}.")
    given = {"--variant": variant, "--base-model": base_model, "--relation": relation}
    if form != "card" and (wrong := next((k for k, v in given.items() if v is not None), None)):
        raise InputError(f"{wrong} is about model cards; add --format card, or leave it out.")
    if policy is not None and form in ("json", "card"):
        raise InputError(f"--policy cannot go with --format {form}; use html, md or junit.")
    if form == "html" and out is None:
        raise InputError("A page is too long to print; say where it goes (--out report.html).")
    from fairweight.api import load

    if out is not None:
        _check(out, audit, policy, overwrite=overwrite)
    result = load(audit).result
    verdict = None if policy is None else _verdict(result, policy)
    if form == "card":
        from fairweight.report.card import to_card

        text = to_card(result, variant, base_model=base_model, relation=relation)
    else:
        text = _text(result, form, verdict)
    if out is None:
        typer.echo(text, nl=False)
        return
    from fairweight.base.files import atomic_file

    with atomic_file(out, "w") as file:
        file.write(text)


def _check(out: str, audit: str, policy: str | None = None, *, overwrite: bool) -> None:
    from fairweight.base.files import check_file

    held = Path(audit, "audit.json") if Path(audit).is_dir() else Path(audit)
    check_file(out, inputs=[str(held), policy], overwrite=overwrite)


def _verdict(result: AuditResult, policy: str) -> Verdict:
    from fairweight.auditing.gate.verdict import decide
    from fairweight.cli.audit import checked_policy

    return decide(result, checked_policy(policy), "all")


def _text(result: AuditResult, form: str, verdict: Verdict | None) -> str:
    if form == "html":
        from fairweight.report.html import render

        return render(result, verdict)
    if form == "md":
        from fairweight.report.markdown import to_markdown

        return to_markdown(result, verdict)
    if form == "json":
        from fairweight.api import Audit

        return Audit(result).to_json() + "\n"
    if verdict is not None:
        from fairweight.report.junit import verdict_to_junit as verdict_as_junit

        return verdict_as_junit(verdict)
    from fairweight.report.junit import to_junit

    return to_junit(result)


@report.command()
def figure(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="Which figure; `report figures DIR` lists them.")
    ],
    audit: Audit,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Ends in .svg, .png, .csv (its data) or .json.")
    ],
    variant: Variant = None,
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Of which task.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one figure of an audit as a file.

        fairweight report figure FW-1 fairweight-audit --variant int8 --out losses.svg

    The suffix says as what: SVG, PNG, the numbers as CSV, or the Vega-Lite
    specification as JSON. Without --variant the first variant is drawn.
    """
    from fairweight.api import load
    from fairweight.report.figures import save_figure

    _check(out, audit, overwrite=overwrite)
    save_figure(load(audit).result, _known(id_), out, variant=variant, task=task)


def _known(id_: str) -> str:
    """The id as it is registered, however it was typed.

    >>> _known("fw-1")
    'FW-1'
    """
    from fairweight.report.figures import figures

    return next((f.id for f in figures() if f.id.lower() == id_.lower()), id_)


@report.command()
def figures(audit: Audit, variant: Variant = None) -> None:
    """List every figure, and whether this audit can fill it.

    fairweight report figures fairweight-audit
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairweight.api import load
    from fairweight.auditing.result import variant_of
    from fairweight.report.figures import draw
    from fairweight.report.figures import figures as registered

    result = load(audit).result
    name = variant_of(result, variant)
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "figure", "can be drawn"):
        table.add_column(heading, overflow="fold")
    for entry in registered():
        reason = draw(entry.id, result, None if entry.once else name).reason
        told = "yes" if reason is None else f"no: {reason}"
        table.add_row(entry.id, Text(entry.title), Text(told))
    Console().print(table)
