"""The report: one page that holds everything it needs and loads nothing.

The finding comes first, then who pays, what these data cannot show, why, what helps and what to
ship; every variant, the figures and all tables follow, folded. A Content-Security-Policy inside
the page forbids every connection and every script but the page's own, by their checksums: a name
in the data can never become code.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from fairweight.auditing.archive import file_names, write
from fairweight.base.files import atomic_directory, atomic_file, cache_folder
from fairweight.base.wording import shown
from fairweight.errors import FairweightError
from fairweight.report.brief import finding_document
from fairweight.report.figures import Spec, figures
from fairweight.report.figures.registry import DrawnFigure, draw_figure
from fairweight.report.figures.theme import CONFIG
from fairweight.report.finding import unit_of_audit
from fairweight.report.members import worded
from fairweight.report.numbers import count, written_in
from fairweight.report.sections import Section, answers, figure_command
from fairweight.report.view_model import View, judged, view
from fairweight.report.view_tables import (
    Cell,
    ShownTable,
    detail_tables,
    finding_tables,
    number_tables,
)

if TYPE_CHECKING:
    from jinja2 import Template

    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


# The JavaScript that draws figures offline: Vega, Vega-Lite and Vega-Embed in one string.
#
# vl-convert holds the libraries and takes about two seconds to bundle them, so the bundle is kept
# in the user's cache folder. It is named by the version that made it and carries its own checksum:
# a damaged copy is made again, and a folder that cannot be written costs time, not the report.

_MARK = "/* fairweight bundle sha256 "
_END = " */\n"
_HEADER_LENGTH = len(_MARK) + 64 + len(_END)


def javascript() -> str:
    """The bundle; `vegaEmbed` is then a global function of the page."""
    path = cache_folder() / f"vega-bundle-{version('vl-convert-python')}.js"
    try:
        kept = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        kept = ""
    body = kept[_HEADER_LENGTH:]
    if body and kept.startswith(_header(body)):
        return body
    made = vega_bundle()
    # In one step, so that another process never reads half of it; else it is made again.
    with suppress(OSError, FairweightError), atomic_file(path) as file:
        file.write(_header(made) + made)
    return made


def vega_bundle() -> str:
    """The bundle, made anew, as it may stand inside a script element."""
    import vl_convert

    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Inside <script> the text must not contain what ends or reopens a script.
    return made.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _header(text: str) -> str:
    return _MARK + hashlib.sha256(text.encode()).hexdigest() + _END


# From what and how the numbers were made, line by line: enough to make them again.

_PAIRING = {
    "parent": "by parent (each compressed member with the dense model that it was made from)",
    "seed": "by seed (equal seeds on both sides; parents are not known)",
    "independent": "independent (no pairs are known)",
    "single": "one model on each side",
}


@dataclass(frozen=True)
class OriginLine:
    """One fact about the origin of an audit; what is typed or compared is set as code."""

    key: str
    values: tuple[str, ...]
    code: bool = False


def provenance_lines(result: AuditResult) -> list[OriginLine]:
    """Version, time, command, inputs, random state, options and pairing."""
    origin = result.provenance
    command = origin.command or "none: called from Python"
    aside = ("random_state", "class_names")
    options = {k: v for k, v in origin.options.items() if k not in aside}
    inputs = []
    for given in origin.inputs:  # a file with its rows and checksum
        parts = [str(given.get("name", "—"))]
        parts += [f"{count(given['rows'])} rows"] if given.get("rows") else []
        known = {k: v for k, v in given.items() if k not in ("name", "rows") and v is not None}
        inputs.append(", ".join([*parts, *(f"{key} {value}" for key, value in known.items())]))
    lines = [
        OriginLine("fairweight", (origin.version,)),
        OriginLine("made", (origin.created,)),
        OriginLine("command", (command,), origin.command is not None),
        OriginLine("inputs", tuple(inputs) or ("—",), True),
        OriginLine("random state", (str(origin.options.get("random_state", "—")),)),
        OriginLine("options", ("; ".join(f"{k} = {v}" for k, v in options.items()) or "—",)),
    ]
    pairs = tuple(f"{variant}: {_PAIRING.get(how, how)}" for variant, how in result.pairing.items())
    if pairs:
        lines.append(OriginLine("members paired", pairs))
    return lines


FIRST = 8  # variants of the ranking that stand on the first screen; the others are folded
PRINTED = 3  # variants whose sections go on paper
DRAWN = 8  # variants whose figures are drawn: a page of forty would be too large to send


@dataclass(frozen=True)
class Fold:
    """A collapsible part of a variant's section, and its place in the contents."""

    anchor: str
    title: str
    table: ShownTable
    open: bool


@dataclass(frozen=True)
class VariantPart:
    """What the page shows of one variant."""

    anchor: str
    section: Section
    parts: tuple[Fold, ...]
    figures: tuple[DrawnFigure, ...]


def variant_parts(result: AuditResult, lead: View, specs: dict[str, Spec]) -> list[VariantPart]:
    """Every variant, the clearest loss first; figures are drawn of the first ones."""
    made = []
    for i, row in enumerate(lead.summary):
        finding, anchor = lead.findings[row.place - 1], f"variant-{row.place}"
        tables = finding_tables(finding) | number_tables(result, finding)
        counts = {key: f" ({table.total})" for key, table in tables.items()}
        counts |= dict.fromkeys(("numbers", "calibration"), "")
        if "unseen" in tables:
            watched = f"{finding.n_watched} classes and groups"
            counts["unseen"] = f" ({tables['unseen'].total} of {watched})"
        folded = ("unseen", "small", "calibration")
        parts = tuple(
            Fold(f"{anchor}-{key}", f"{table.title}{counts[key]}", table, key not in folded)
            for key, table in tables.items()
        )
        pictures = tuple(
            draw_figure(
                result, figure, finding.variant, f"figure-{row.place}-{figure.id.lower()}", specs
            )
            for figure in figures(explains=False)
            if i < DRAWN
        )
        made.append(VariantPart(anchor, lead.sections[row.place - 1], parts, pictures))
    return made


@cache
def template() -> Template:
    """The page's template: compiled once, which takes a tenth of a small audit with its page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("fairweight.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    environment.filters["embedded"] = lambda value: Markup(embedded(value))
    environment.filters["sort_key"] = sort_key
    return environment.get_template("report.html.j2")


def render(result: AuditResult, verdict: Verdict | None = None, lead: View | None = None) -> str:
    """The report of an audit as one HTML page, with a gate's verdict where there is one.

    Parameters
    ----------
    lead
        What is shown of the audit, where it is known already.
    """
    with written_in(unit_of_audit(result)):
        return _render(result, verdict, lead or view(result))


def _render(result: AuditResult, verdict: Verdict | None, lead: View) -> str:
    specs: dict[str, Spec] = {}
    lead = judged(lead, result, verdict)
    variants = variant_parts(result, lead, specs)
    first = [part.section.variant for part in variants[:DRAWN]]
    examples = pictures = None
    if result.explanations:
        # Most audits have no such section and do without what it loads.
        from fairweight.report.examples import GALLERY_SCRIPTS, explanation, gallery

        examples, pictures = explanation(result, lead, specs, first), gallery(result)
    scripts = [resource("page.js"), resource("sort.js")]
    if specs:
        scripts = [javascript(), *scripts, resource("save.js")]
    if pictures is not None:
        scripts.append("\n".join(resource(name) for name in GALLERY_SCRIPTS))
    # Nothing is loaded, and only these scripts run.
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    styles = ["shared.css", "page.css", *(["gallery.css"] if pictures else [])]
    return template().render(
        result=result,
        lead=lead,
        first=FIRST,
        answers=answers(result, lead, verdict),
        variants=variants,
        printed=PRINTED,
        drawn_variants=DRAWN,
        figure_command=figure_command(result),
        worded=lambda text: worded(text, lead.members),
        examples=examples,
        gallery=pictures,
        tables=detail_tables(result),
        provenance=provenance_lines(result),
        style=Markup("".join(map(resource, styles))),
        scripts=[Markup(script) for script in scripts],
        policy=policy,
        specs=packed(lighter(specs)),
        theme=embedded(CONFIG),
    )


def resource(name: str) -> str:
    """A script, or a style, of the page."""
    return (files("fairweight.report") / "templates" / name).read_text(encoding="utf-8")


def embedded(value: Any) -> str:
    r"""JSON that may stand inside a script element.

    >>> embedded({"name": "</script>&"})
    '{"name":"\\u003c/script\\u003e\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(value: Any) -> str:
    """JSON as gzip in base64, which a browser unpacks: of many figures a tenth of their text.

    >>> len(packed({"data": [{"group": "sex=Female"}] * 1000})) < 300
    True
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def lighter(spec: Any) -> Any:
    """A specification as it is sent: numbers with nine digits, the common theme left to the page.

    >>> lighter({"config": CONFIG, "data": {"values": [{"shift": 0.1234567890123}]}})
    {'data': {'values': [{'shift': 0.123456789}]}}
    """
    if isinstance(spec, float):
        return float(f"{spec:.9g}")
    if isinstance(spec, list):
        return [lighter(part) for part in spec]
    if isinstance(spec, dict):
        return {key: lighter(part) for key, part in spec.items() if part is not CONFIG}
    return spec


def sort_key(cell: Cell) -> str:
    """The attribute by which a cell is sorted; none where that is the text that it shows.

    >>> sort_key(Cell("3.2 points", 0.0321)), sort_key(Cell("a", "a")), sort_key(Cell("—", None))
    (Markup(' data-sort="0.0321"'), '', Markup(' data-sort=""'))
    """
    if cell.value is None:
        return Markup(' data-sort=""')
    if isinstance(cell.value, str):
        return "" if cell.value == cell.shown else Markup(' data-sort="{}"').format(cell.value)
    return Markup(f' data-sort="{cell.value:.7g}"')


# An audit as a folder: the page, the tables, and everything as JSON.


def names() -> tuple[str, ...]:
    """The files that every audit's folder has."""
    return ("report.html", *file_names())


def save(
    result: AuditResult,
    directory: str | Path,
    verdict: Verdict | None = None,
    *,
    lead: View | None = None,
    overwrite: bool = False,
    csv: bool = False,
) -> None:
    """Write report.html, tables/ and audit.json; audit.json comes last and marks completion.

    Parameters
    ----------
    lead
        What is shown of the audit, where it is known already.
    csv
        Write the tables as CSV too.
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    """
    target = atomic_directory(Path(directory), overwrite=overwrite)
    with target as room, ThreadPoolExecutor(1) as beside:
        # Arrow and DuckDB write the tables while the page is made.
        lead = judged(lead or view(result), result, verdict)
        written = beside.submit(
            write, result, room, finding_document(lead.findings, lead.brief), csv=csv
        )
        (room / "report.html").write_text(render(result, verdict, lead), encoding="utf-8")
        written.result()
