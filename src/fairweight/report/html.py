"""The report: one page that holds everything it needs and loads nothing.

The finding comes first, then who pays, what cannot be told, why, what helps and what to ship;
every variant, the figures and all tables follow, folded. A Content-Security-Policy inside the page
forbids every connection and every script but the page's own, by their checksums: a name in the data
can never become code.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.base.wording import shown
from fairweight.report.examples import explanation, gallery, gallery_scripts, gallery_style
from fairweight.report.figures import Spec
from fairweight.report.figures.theme import CONFIG
from fairweight.report.finding import findings, ranked
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import count
from fairweight.report.sections import answers, figure_command, section
from fairweight.report.sentences import HEADINGS, finding_document, reading
from fairweight.report.view_model import FIRST, page_lead, page_unseen
from fairweight.report.view_tables import Cell, detail_tables
from fairweight.tables.companions import leak_notes, leaks

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


# The JavaScript that draws figures offline: Vega, Vega-Lite and Vega-Embed in one string.
#
# vl-convert holds the libraries and takes about two seconds to bundle them, so the bundle is kept
# in
# the user's cache folder. It is named by the version that made it and carries its own checksum: a
# damaged copy is made again, and a folder that cannot be written costs time, not the report.

_MARK = "/* fairweight bundle sha256 "
_END = " */\n"
_HEADER_LENGTH = len(_MARK) + 64 + len(_END)


def javascript() -> str:
    """The bundle; `vegaEmbed` is then a global function of the page."""
    path = cache_folder() / f"vega-bundle-{version('vl-convert-python')}.js"
    kept = _read(path)
    if kept is not None:
        return kept
    made = _make()
    _write(path, made)
    return made


def cache_folder() -> Path:
    """`FAIRWEIGHT_CACHE`, else `XDG_CACHE_HOME/fairweight`, else the system's usual place."""
    own = os.environ.get("FAIRWEIGHT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with suppress(RuntimeError):  # no home folder: a service account
        return (Path(base) if base else Path.home() / ".cache") / "fairweight"
    return _own_temporary()


@cache
def _own_temporary() -> Path:
    """A folder for temporary files that nobody else can have put anything into."""
    folder = Path(tempfile.gettempdir()) / f"fairweight-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = found.st_uid == os.getuid() and not found.st_mode & 0o022
        if stat.S_ISDIR(found.st_mode) and private:
            return folder
    return Path(tempfile.mkdtemp(prefix="fairweight-"))


def _make() -> str:
    import vl_convert

    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Inside <script> the text must not contain what ends or reopens a script.
    return made.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _header(text: str) -> str:
    return _MARK + hashlib.sha256(text.encode()).hexdigest() + _END


def _read(path: Path) -> str | None:
    try:
        kept = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    body = kept[_HEADER_LENGTH:]
    return body if body and kept.startswith(_header(body)) else None


def _write(path: Path, text: str) -> None:
    """Keep the bundle; in one step, so that another process never reads half of it."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(_header(text) + text)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


# From what and how the numbers were made, line by line: enough to make them again.

_PAIRING = {
    "parent": "by parent (each compressed member with the dense model that it was made from)",
    "seed": "by seed (equal seeds on both sides; parents are not known)",
    "independent": "independent (no pairs are known)",
    "single": "one model on each side",
}


@dataclass(frozen=True)
class Line:
    """One fact about the origin of an audit; what is typed or compared is set as code."""

    key: str
    values: tuple[str, ...]
    code: bool = False


def provenance_lines(result: AuditResult) -> list[Line]:
    """Version, time, command, inputs, random state, options and pairing."""
    origin = result.provenance
    command = origin.command or "none: called from Python"
    options = {k: v for k, v in origin.options.items() if k != "random_state"}
    lines = [
        Line("fairweight", (origin.version,)),
        Line("made", (origin.created,)),
        Line("command", (command,), origin.command is not None),
        Line("inputs", tuple(_input(given) for given in origin.inputs) or ("—",), True),
        Line("random state", (str(origin.options.get("random_state", "—")),)),
        Line("options", (", ".join(f"{k} = {v}" for k, v in options.items()) or "—",)),
    ]
    pairs = tuple(f"{variant}: {_PAIRING.get(how, how)}" for variant, how in result.pairing.items())
    if pairs:
        lines.append(Line("members paired", pairs))
    return lines


def _input(given: dict[str, object]) -> str:
    """A file with its rows and checksum.

    >>> _input({"name": "a.csv", "sha256": "ab12", "rows": 1200})
    'a.csv, 1,200 rows, sha256 ab12'
    """
    facts = [str(given.get("name", "—"))]
    facts += [f"{count(value)} rows" for key, value in given.items() if key == "rows" and value]
    facts += [
        f"{key} {value}"
        for key, value in given.items()
        if key not in ("name", "rows") and value is not None
    ]
    return ", ".join(facts)


PRINTED = 3  # variants whose sections go on paper
DRAWN = 8  # variants whose figures are drawn: a page of forty would be too large to send


def render(result: AuditResult, verdict: Verdict | None = None) -> str:
    """The report of an audit as one HTML page, with a gate's verdict where there is one."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

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
    specs: dict[str, Spec] = {}
    found = findings(result)
    order = [standing.place for standing in ranked(found)]
    drawn_variants = set(order[:DRAWN])
    by_place = {
        i: section(result, finding, i, specs, i in drawn_variants)
        for i, finding in enumerate(found, start=1)
    }
    sections = [by_place[place] for place in order]
    examples = explanation(result, specs, [found[place - 1].variant for place in order[:DRAWN]])
    scripts = [_resource("page.js"), _resource("sort.js")]
    if specs:
        scripts = [javascript(), *scripts, _resource("save.js")]
    pictures = gallery(result)
    scripts += gallery_scripts(pictures)
    lead = page_lead(result, found)
    members = members_of(result)
    template = environment.get_template("report.html.j2")
    return template.render(
        result=result,
        lead=lead,
        first=FIRST,
        unseen=page_unseen(found),
        answers=answers(result, found, lead, verdict),
        sections=sections,
        open_variants=len(sections) == 1,
        printed=PRINTED,
        undrawn=len(order) - len(drawn_variants),
        figure_command=figure_command(result),
        leaks=leak_notes(leaks(result.variants_table, result.variants)),
        reading=reading(found[0]),
        scope=list(dict.fromkeys(line for section in sections for line in section.scope)),
        headings={topic: worded(name, members) for topic, name in HEADINGS.items()},
        worded=lambda text: worded(text, members),
        examples=examples,
        gallery=pictures,
        tables=detail_tables(result),
        provenance=provenance_lines(result),
        style=Markup(_resource("shared.css") + _resource("page.css") + gallery_style(pictures)),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        specs=lighter(specs),
        theme=embedded(CONFIG),
    )


def embedded(value: Any) -> str:
    r"""JSON that may stand inside a script element.

    >>> embedded({"name": "</script>&"})
    '{"name":"\\u003c/script\\u003e\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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
    from markupsafe import Markup

    if cell.sort is None:
        return Markup(' data-sort=""')
    if isinstance(cell.sort, str):
        return "" if cell.sort == cell.shown else Markup(' data-sort="{}"').format(cell.sort)
    return Markup(f' data-sort="{cell.sort:.7g}"')


def _policy(scripts: list[str]) -> str:
    """Nothing is loaded, and only these scripts run."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() + "'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return (files("fairweight.report") / "templates" / name).read_text(encoding="utf-8")


# An audit as a folder: the page, the tables, and everything as JSON.


def names() -> tuple[str, ...]:
    """The files that every audit's folder has."""
    from fairweight.auditing.archive import file_names

    return ("report.html", *file_names())


def save(
    result: AuditResult,
    directory: str | Path,
    verdict: Verdict | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write report.html, tables/ and audit.json; audit.json comes last and marks completion.

    Parameters
    ----------
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    """
    from fairweight.auditing.archive import write
    from fairweight.base.files import atomic_directory

    target = atomic_directory(Path(directory), overwrite=overwrite)
    with target as room, ThreadPoolExecutor(1) as beside:
        # Arrow and DuckDB write the tables while the page is made.
        written = beside.submit(write, result, room, finding_document(result))
        (room / "report.html").write_text(render(result, verdict), encoding="utf-8")
        written.result()
