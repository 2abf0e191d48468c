"""`fairweight report`: an audit that was made, in the form that somebody needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.table import Table

from fairweight.audits import checked_policy, load
from fairweight.base.files import atomic_file, check_file
from fairweight.cli import options as o
from fairweight.cli.screen import plain_console
from fairweight.errors import InputError

WRITE = "write"
FORMATS = ("html", "md", "json", "card", "eval-results", "junit")
CARD = o.panel("Model card")


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
    help="Write a stored audit as a page, a summary for a pull request, a model card or tests; "
    "single figures as files.\n\nStart with `fairweight report fairweight-audit --format md`.",
)

Audit = Annotated[
    str, typer.Argument(metavar="DIR", help="The folder of an audit, or its audit.json.")
]
Variant = Annotated[str | None, o.OPTION("Of which variant.", "NAME")]
Overwrite = Annotated[
    bool, o.OPTION("Replace a file that fairweight did not write.", flag="--overwrite")
]


@report.command()
def write(
    audit: Audit,
    form: Annotated[
        str, o.OPTION("What to write.", "html|md|json|card|eval-results|junit", flag="--format")
    ] = "html",
    out: Annotated[str | None, o.OPTION("Where it goes; by default it is printed.", "FILE")] = None,
    overwrite: Overwrite = False,
    policy: Annotated[
        str | None, o.OPTION("A policy (TOML) whose verdict leads (html, md, junit).", "FILE")
    ] = None,
    variant: Annotated[
        str | None,
        CARD("The variant that the card is about; needed where there are several.", "NAME"),
    ] = None,
    dataset_id: Annotated[
        str | None, CARD("Of an entry of eval-results: the benchmark on the hub.", "OWNER/NAME")
    ] = None,
    task_id: Annotated[
        str, CARD("Of eval-results: the task of the benchmark.", "NAME")
    ] = "default",
    base_model: Annotated[str | None, CARD("The dense model on the hub.", "OWNER/NAME")] = None,
    relation: Annotated[
        str | None,
        CARD(
            "How the model was made from it; by default what the variants table says.",
            "quantized|finetune|adapter|merge",
        ),
    ] = None,
) -> None:
    """Write an audit once more, in another form; nothing is computed again.

    A summary for a pull request, and a Hugging Face model card of one variant:

        fairweight report fairweight-audit --format md

        fairweight report fairweight-audit --format card --variant int8 --out README.md

    An entry for `.eval_results/` of its repository there, for a benchmark of the hub:

        fairweight report fairweight-audit --format eval-results --variant int8 --dataset-id OWNER/NAME

    Tests for a CI server, by a policy (without one every shown loss fails and
    whoever has too few examples is skipped):

        fairweight report fairweight-audit --format junit --policy policy.toml --out audit.xml

    The word `write` may be left out. Exit code 0 when it was written, whatever
    the verdict: `fairweight gate` gives exit codes.
    """  # noqa: E501  an example is one line
    if form not in FORMATS:
        raise InputError(f"--format cannot be {form!r}; use {', '.join(FORMATS)}.")
    given = {"--base-model": base_model, "--relation": relation}
    if form != "eval-results":
        given |= {} if form == "card" else {"--variant": variant}
    if form != "card" and (wrong := next((k for k, v in given.items() if v is not None), None)):
        raise InputError(f"{wrong} is about model cards; add --format card, or leave it out.")
    if (dataset_id is None) == (form == "eval-results"):
        raise InputError(
            "--dataset-id OWNER/NAME is needed with --format eval-results, and with no other form."
        )
    if policy is not None and form in ("json", "card", "eval-results"):
        raise InputError(f"--policy cannot go with --format {form}; use html, md or junit.")
    if form == "html" and out is None:
        raise InputError("A page is too long to print; say where it goes (--out report.html).")
    if out is not None:
        _check(out, audit, policy, overwrite=overwrite)
    made = load(audit)
    verdict = None if policy is None else made.gate(checked_policy(policy))
    if form == "html":
        from fairweight.report.html import render

        text = render(made.result, verdict)
    elif form == "md":
        text = made.to_markdown(verdict=verdict)
    elif form == "json":
        text = made.to_json() + "\n"
    elif form == "card":
        text = made.card(variant, base_model=base_model, relation=relation)
    elif dataset_id is not None:
        text = made.eval_results(dataset_id, task_id=task_id, variant=variant)
    else:
        from fairweight.report.junit import to_junit, verdict_to_junit

        text = to_junit(made.result) if verdict is None else verdict_to_junit(verdict)
    if out is None:
        typer.echo(text, nl=False)
        return
    with atomic_file(out, "w") as file:
        file.write(text)


def _check(out: str, audit: str, policy: str | None = None, *, overwrite: bool) -> None:
    """Refuse a file that must not be replaced, before the audit is read."""
    held = Path(audit, "audit.json") if Path(audit).is_dir() else Path(audit)
    check_file(out, inputs=[str(held), policy], overwrite=overwrite)


@report.command()
def figure(
    id_: Annotated[
        str, typer.Argument(metavar="ID", help="Which figure; `report figures DIR` lists them.")
    ],
    audit: Audit,
    out: Annotated[str, o.OPTION("Ends in .svg, .png, .csv (its data) or .json.", "FILE")],
    variant: Variant = None,
    task: Annotated[str | None, o.OPTION("Of which task.", "NAME")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one figure of an audit as a file.

        fairweight report figure FW-1 fairweight-audit --variant int8 --out losses.svg

    The suffix says as what: SVG, PNG, the numbers as CSV, or the Vega-Lite
    specification as JSON. Without --variant the first variant is drawn.
    """
    from fairweight.report.figures import figures
    from fairweight.report.figures.export import save_figure

    _check(out, audit, overwrite=overwrite)
    known = next((entry.id for entry in figures() if entry.id.lower() == id_.lower()), id_)
    save_figure(load(audit).result, known, out, variant=variant, task=task)


@report.command()
def figures(audit: Audit, variant: Variant = None) -> None:
    """List every figure, and whether this audit can fill it.

    fairweight report figures fairweight-audit
    """
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
        table.add_row(entry.id, entry.title, "yes" if reason is None else f"no: {reason}")
    plain_console().print(table)
