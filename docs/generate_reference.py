"""Write metrics.md, results.md and command-line.md of docs/reference from the code.

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
    "outcome": (
        "Outcomes",
        "A number per example and model in place of label and prediction (`--outcome`). An audit "
        "has one of these four: shares where every outcome is 0 or 1 (intervals and tests are "
        "those of rates), else ratios of sums (t with a term for skewness).",
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


RESULTS = """
An audit is a set of tidy tables. In Python they are pandas frames (`audit.results`, `audit.power`,
…); on disk they are `tables/NAME.parquet` and, those of every audit, `tables/NAME.csv` too.
Exemplars and explanations, where they were asked for, are `audit.explanations[NAME]` and
`tables/NAME.parquet`; [below](#explanations) stand their columns. `fw.load(FOLDER)` reads all of
them back, with the types below. Names are exact in Parquet and JSON; in CSV, text that a
spreadsheet would run as a formula gets a leading apostrophe.

A number that cannot be had is missing (NaN in pandas, empty in CSV, null in JSON), never 0, and
`status` says why.
"""
EXPLANATIONS = """
Tables of `fairweight exemplars`, of `fairweight explain` and of `explain=` in Python, of choices
and of mitigations. Each is there only if it was asked for and if there is something to say. They
describe these models and are associations, never causes. Intervals are of level 1 − α, and `low`
and `high` are their ends.
"""
AUDIT_JSON = """
One small object, valid JSON throughout (null, never NaN). It appears last, so its presence says
that an output folder is complete. Of the tables it holds the rows that are read most, at most 2,000
of each: of the confirmatory metrics (accuracy, recall, and what a policy names) the rows overall,
by group and by class, their limits for the gate, and `left_out`. All rows are in `tables/`.

`fairweight gate audit.json` works without `tables/` where these rows suffice; else it ends with
exit code 2 and asks for the folder. Everything else needs the folder. `audit.to_json()` and
`fairweight report DIR --format json` give the same object with every row of every table in it
(explanations under `explanations`, the table given with `--variants` under `variants_table`), which
`fw.load` reads without any other file.

`tables/cube.parquet` holds the counts that all numbers but those of scores follow from. It names no
example and no cluster, but a cell of it may be a single example: `--suppress-small` leaves it out
unless every cell is large enough. It is also left out where it would have more than a million
cells.
"""
TYPES = {
    "text": "text",
    "number": "number",
    "whole": "whole number",
    "truth": "true or false",
    "mixed": "text or number",
}


def results_page() -> str:
    """Every table with its columns, and the keys of audit.json."""
    from fairweight.auditing.columns import AUDIT_KEYS, LISTED

    def told(mark: str, of: str) -> Iterator[str]:
        for entry in (entry for entry in LISTED if entry.of == of):
            yield f"{mark} {entry.name}"
            yield entry.about
            rows = [(f"`{c.name}`", TYPES[c.kind], c.meaning) for c in entry.columns]
            yield table(("column", "type", "meaning"), rows)
            if entry.more:
                yield f"Further columns: {entry.more}."

    keys = [(f"`{name}`", meaning) for name, meaning in AUDIT_KEYS.items()]
    keys += [
        (f"`{entry.name}`", f"rows of [{entry.name}](#{entry.name})")
        for entry in LISTED
        if entry.of == "audit"
    ]
    lines = [MADE, "# Results", *_paragraphs(RESULTS), *told("##", "audit")]
    lines += ["## Explanations", *_paragraphs(EXPLANATIONS), *told("###", "explanation")]
    lines += ["## audit.json", *_paragraphs(AUDIT_JSON), table(("key", "meaning"), keys)]
    lines += ["## Beside audits", *told("###", "other")]
    return "\n\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.strip().split("\n\n")]


def command_line_page() -> str:
    """Every command with its options, as `--help` shows them."""
    from fairweight.cli.app import app

    lines = [
        MADE,
        "# Command line",
        inspect.cleandoc(app.info.help),
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
    for name, command in _commands():
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


def _commands() -> Iterator[tuple[str, Any]]:
    """Every command, those of a group after it."""
    from fairweight.cli.app import NAMES, parser

    for name in NAMES:
        held = parser(name)
        yield name, held
        for inner, own in getattr(held, "commands", {}).items():
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
    "results.md": results_page,
    "command-line.md": command_line_page,
}


def main() -> None:
    """Write every page."""
    REFERENCE.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
