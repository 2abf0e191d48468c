"""Write metrics.md, command-line.md and figures.md of docs/reference from the code itself.

    python docs/generate_reference.py

A test fails when a page is not what the code says.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by docs/generate_reference.py from the code: do not edit. -->"

KINDS = {
    "rate": (
        "Rates",
        "Each model's rate has a Wilson interval; the shift has Tango's score interval and the "
        "mid-p McNemar test (with `--cluster` or `--weight` the interval column says what "
        "replaced them).",
    ),
    "value": (
        "Smooth functions of counts",
        "Percentile bootstrap over the cells of the count cube, from ten changed predictions on; "
        "the test exchanges the two predictions of examples at random.",
    ),
    "score": (
        "Metrics of scores",
        "They need a `score` column (or `scores`, the list of class probabilities). `auc` and "
        "`brier`: percentile bootstrap; the test exchanges the two scores of examples at random. "
        "`calibration_error_sq` and `calibration_gap`: t limits and t test of what every example "
        "adds. `ece` and `ece_top_label` have neither: they are biased upwards. "
        "[Why](../statistics.md#calibration).",
    ),
    "grouping": (
        "Differences between the groups of one column",
        "Rows with `by = grouping`. They run over the groups that are large enough; missing "
        "values are not a group here. Percentile bootstrap; the test exchanges predictions.",
    ),
    "identity": (
        "Metrics of a group as an identity",
        "Percentile bootstrap; sign and skip rules are fixed on the data.",
    ),
    "comparison": (
        "Comparisons of two models",
        "Only `compressed` is filled: it is the value of the comparison. Basic bootstrap cut at "
        "0; the test exchanges the two predictions of examples.",
    ),
    "table": (
        "Descriptions of a whole comparison",
        "Each has its own interval or test, which the interval column names.",
    ),
}
BETTER = {
    "higher": "higher is better",
    "lower": "lower is better",
    "zero": "0 is best",
    "one": "1 is best",
    "none": "neither direction is better",
}


def metrics_page() -> str:
    """Every metric of the registry, by kind."""
    from fairweight.auditing.metrics import metrics
    from fairweight.auditing.metrics.functions import offered

    entries = metrics()
    index = ", ".join(f"[`{e.name}`](#{e.name})" for e in sorted(entries, key=lambda e: e.name))
    lines = [
        MADE,
        "# Metrics",
        "Every number of an audit is a registered function of counts (or of scores). "
        "`fairweight metrics NAME` prints the same entry; [your own metric]"
        "(../how-to/write-a-metric.md) is one function more. Undefined is never 0: the row says "
        "`not_estimable` with the reason.",
        index,
    ]
    for kind, (title, text) in KINDS.items():
        lines += [f"## {title}", text]
        for entry in (e for e in entries if e.kind == kind):
            call = f"`fw.metrics.{entry.name}(...)`" if offered(entry) else "in audits only"
            rows = {
                "formula": cell(entry.formula),
                "direction": BETTER[entry.better],
                "range": f"{_end(entry.low)} to {_end(entry.high)}",
                "rows": ", ".join(f"`{by}`" for by in entry.by),
                "needs": ", ".join(sorted(entry.needs)) or "labels and predictions",
                "undefined": cell(entry.undefined),
                "source": cell(entry.source),
                "on arrays": call,
            }
            summary = entry.summary[0].upper() + entry.summary[1:]
            lines += [f"### {entry.name}", f"{plain(summary)}."]
            lines.append(table(("", ""), rows.items()))
    return "\n\n".join(lines) + "\n"


def figures_page() -> str:
    """Every figure of the registry, in the order of the report."""
    from fairweight.report.figures import figures

    lines = [
        MADE,
        "# Figures",
        "Every figure of the report, in its order; [the gallery](../gallery.md) shows them. The "
        "ids of the papers (`SS-F2`: figure 2 of Simon Says) are kept; `FW` figures are our own. "
        "A figure that an audit cannot fill is left out, and the report says why; some are folded "
        "under “More figures”. In all of them "
        "grey is the baseline or what retraining alone does; colours can be told apart by "
        "colour-blind readers, and every figure has an alternative text. Figures of the section "
        "“Which examples, and why” need exemplars or explanations.",
    ]
    for entry in figures():
        folded = " (Under “More figures”.)" if entry.more else ""
        if entry.explains:
            folded += " (In “Which examples, and why”.)"
        lines += [f"## {entry.id}", f"**{entry.title}.** {plain(entry.caption)}{folded}"]
    return "\n\n".join(lines) + "\n"


def command_line_page() -> str:
    """Every command with its options, as `--help` shows them."""
    import typer.main

    from fairweight.cli.app import app

    group: Any = typer.main.get_command(app)
    lines = [
        MADE,
        "# Command line",
        inspect.cleandoc(group.help),
        "| exit code | meaning |\n|---|---|\n"
        "| 0 | done; of a gate: pass |\n"
        "| 1 | of a gate: fail; of a study: some stages failed or are left |\n"
        "| 2 | bad input: one sentence on standard error says what and how to repair it |\n"
        "| 3 | of a gate: cannot tell |\n"
        "| 70 | an error of ours: please report it |\n"
        "| 130 | interrupted |",
        "Outputs appear whole or not at all: a run that is refused, interrupted or killed leaves "
        "no report that looks finished.",
        "`fairweight --version` shows the version, `fairweight COMMAND --help` the text below.",
    ]
    for name, command in _commands(group):
        lines += [f"## fairweight {name}", _help(command.help)]
        panels: dict[str, list[Any]] = {}
        for parameter in command.params:
            if getattr(parameter, "hidden", False):  # an older name of another option
                continue
            arguments = parameter.param_type_name == "argument"
            panel = "Arguments" if arguments else parameter.rich_help_panel or "Options"
            panels.setdefault(panel, []).append(parameter)
        for panel, parameters in panels.items():
            lines += [f"**{panel}**", _options(parameters)]
    return "\n\n".join(lines) + "\n"


def _commands(group: Any) -> Iterator[tuple[str, Any]]:
    """Every command, those of a group after it."""
    for name, command in group.commands.items():
        yield name, command
        for inner, own in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", own


def _help(text: str) -> str:
    """The command's own text, with its indented examples as fenced commands."""
    shown: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        if line.startswith("    "):
            shown += ["```console", f"$ {line.strip()}", "```"]
        else:
            shown.append(line)
    return "\n".join(shown)


def _options(parameters: list[Any]) -> str:
    rows = []
    for p in parameters:
        argument = p.param_type_name == "argument"
        names = [p.metavar or p.name] if argument else p.opts
        value = "" if argument or p.is_flag else f" {p.metavar or 'NUMBER'}"
        told = ", ".join(f"`{name}{value}`" for name in names).replace("|", "\\|")
        default = "" if argument or p.is_flag or p.default in (None, ...) else f"`{p.default}`"
        rows.append((told, "required" if p.required else default, cell(p.help or "")))
    return table(("", "default", ""), rows)


def table(head: tuple[str, ...], rows: Any) -> str:
    shown = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    shown += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(shown)


def cell(text: str) -> str:
    return plain(text).replace("|", "\\|")


def plain(text: str) -> str:
    """Plain text in Markdown: what would be taken for markup outside `code` is escaped."""
    parts = " ".join(text.split()).split("`")
    for i in range(0, len(parts), 2):
        for mark in ("*", "_", "<"):
            parts[i] = parts[i].replace(mark, f"\\{mark}")
    return "`".join(parts)


def _end(end: float) -> str:
    if math.isinf(end):
        return "∞" if end > 0 else "−∞"
    return f"{end:g}".replace("-", "−")


PAGES: dict[str, Callable[[], str]] = {
    "metrics.md": metrics_page,
    "command-line.md": command_line_page,
    "figures.md": figures_page,
}


def main() -> None:
    """Write every page."""
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
