"""Write the page of a paper: its tables and figures in its own order, the run beside them.

    python docs/results/study_page.py fairweight-runs/results/NAME --out docs/results/NAME.md

The paper's values come from specs/NAME/printed.toml, the claims from claims.toml. Without results
the page has the paper's and the authors' numbers alone, and says so. Figures are copied beside the
page, into a folder of its name. Notes by hand stand between two comments, and are kept.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from study_tables import (
    attribute_shares,
    attributes_among_exemplars,
    audited,
    by_data_set,
    by_group,
    class_coefficients,
    class_fits,
    dense_attributes,
    markdown,
    put,
    rewound,
    techniques,
    worst_individuals,
)

from fairweight.specs.claims import Cells, Claims, Exhibit, Part, Printed, PrintedColumn, PrintedRow
from fairweight.studies.claims import (
    NOT_RUN,
    ClaimLine,
    Judged,
    at_level,
    frame,
    judged,
    level_name,
)
from fairweight.studies.claims_page import HOW, SCOPES, counted, summary, table, written
from fairweight.studies.estimates import (
    Matched,
    NotReachedError,
    NotThereError,
    Stored,
    matched,
    stored_estimate,
)
from fairweight.studies.library import claims, printed, with_claims

NO_RUN = (
    "**The run is not made yet.** Below stand the paper's numbers, and what the authors' own "
    "numbers say of its claims. A first round with networks of 20,000 to 180,000 parameters, "
    "hardly trained, is withdrawn: its verdicts said more about those networks than about the "
    "paper."
)
AUDITS = (
    "Changes are points of accuracy against the dense population, paired on the same examples, "
    "with 95 % intervals: for these models, and for the method (models are a sample too). Beside "
    "them: what retraining alone moves (95 % of pairs of dense populations of that size move "
    "less). The last two columns are the largest excess: what a class or group loses beyond all "
    "others, picked after looking; the report has all limits."
)
INDIVIDUALS = (
    "The ten individuals who lose most, by their shrunken shift with 95 % credible limits, for "
    "these models. They were picked after looking."
)
FITS = (
    "The regression of class accuracy (as a share of 1) over all pruned models: with the paper's "
    "errors (`ols-hac`), without cross terms (`ols-linear`), with errors by lineage "
    "(`ols-cluster`), by lineage and class (`ols-two-way`), and as a binomial model in log odds "
    "(`glm-cluster`). A term with cross terms is its slope where those are 0."
)
TECHNIQUES = (
    "At the last round, against the lineage's own dense model: mean over lineages (a dense model "
    "and all that was made of it) with the 95 % interval of Student's t."
)
TABLES = ("class_coefficients.csv", "class_fits.csv")


# Notes by hand on a generated page: they outlive it.

BEGIN, END = "<!-- notes by hand: kept when this page is written again -->", "<!-- end of notes -->"


def kept_notes(page: Path) -> str:
    """What stands between the marks of a page; nothing where there is no page or no mark."""
    if not page.is_file():
        return ""
    _, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    notes, end, _ = rest.partition(END)
    if begin and not end:
        raise SystemExit(f"{page} has notes without an end; put '{END}' after them.")
    return notes.strip()


def between_marks(notes: str) -> list[str]:
    """Lines of the page that hold the notes."""
    return [BEGIN, "", notes, "", END]


# Figures of results, as files small enough to stand beside a page.

PICTURES = ("HK-F3", "SS-F1", "PA-F10")  # they hold images, which may be somebody else's
# They show every variant and mark one of them.
ALL_VARIANTS = ("SG-T1", "SG-F3", "SG-F4", "SG-F5", "SG-F6", "SS-F2")


def drawn(folder: Path, *, pictures: bool = False) -> list[Path]:
    """Those of single variants, and of those that show all variants one."""
    shown: dict[str, Path] = {}
    for path in sorted(folder.glob("*.svg")):
        if path.stem.startswith(PICTURES) and not pictures:
            continue
        id = next((id for id in ALL_VARIANTS if path.stem.startswith(f"{id}-")), path.stem)
        shown[id] = path
    return list(shown.values())


def figures(
    exhibit: Exhibit, results: Path, page: Path, variants: Sequence[str], pictures: bool
) -> list[str]:
    """The run's drawings of an exhibit, of these variants and of all together."""
    name = str(exhibit.folder)
    places = [results / name / "audit" / "figures", results / name / "figures" / "all",
              results / name / "figures", results / "classes" / "figures" / name]  # fmt: skip
    lines = []
    for id in exhibit.figures:
        found = [path for place in places for path in drawn(place, pictures=pictures)
                 if path.stem == id or path.stem.startswith(f"{id}-")]  # fmt: skip
        single = [path for path in found if any(path.stem == f"{id}-{one}" for one in variants)]
        for figure in single or found:
            place = put(figure, page.with_suffix("") / f"{name}-{figure.name}")
            where = place.relative_to(page.parent).as_posix()
            lines += [f"![{exhibit.name}, redrawn from the run: {figure.stem}]({where})", ""]
    return lines


# A table of the paper with the run beside it.


def together(*parts: Cells | None) -> Cells:
    """What the exhibit, the column and the row say of a cell, the last one first."""
    given = [part for part in parts if part is not None]
    where = {key: value for part in given for key, value in part.where.items()}

    def last(name: str) -> object:
        values = [getattr(part, name) for part in given if getattr(part, name) is not None]
        return values[-1] if values else None

    names = ("folder", "table", "level", "value", "times")
    return Cells(where=where, **{name: last(name) for name in names})  # type: ignore[arg-type]


def cells_of(exhibit: Exhibit, column: PrintedColumn, row: PrintedRow) -> Cells:
    """Where the run's value of a cell is; a column with a table of its own goes before the row."""
    own = column.run is not None and column.run.table is not None
    first, last = (row.run, column.run) if own else (column.run, row.run)
    return together(exhibit.run, first, last)


def run_value(cells: Cells, stored: Stored) -> tuple[float, Matched | None]:
    """The run's value of a cell and the level that it stands for; refuses what is not there."""
    where, level, folder = dict(cells.where), None, str(cells.folder)
    if cells.level is not None and cells.value != "baseline":
        task = where.get("task")
        level = matched(cells.level, folder, task if isinstance(task, str) else None, stored)
        where = at_level(where, level)
    part = Part(quantity="", direction="up", smallest=1.0, why="", folder=cells.folder,
                table=cells.table, value=cells.value)  # fmt: skip
    value = stored_estimate(part, where, stored).value
    return value * (cells.times or 1.0), level


def side_by_side(exhibit: Exhibit, stored: Stored | None) -> tuple[list[str], list[Matched]]:
    """The rows of a table twice, paper and run; and which variants stand for its levels."""
    if not exhibit.row:
        return [], []
    rows, levels = [], dict[str, Matched]()
    for row in exhibit.row:
        rows.append([row.name, "paper", *(_paper(row, n, one) for n, one in enumerate(
            exhibit.column))])  # fmt: skip
        if stored is None or row.run is None:
            continue
        cells = []
        for column in exhibit.column:
            try:
                if column.run is None and exhibit.run is None:
                    raise NotThereError("the run has no such column")
                value, level = run_value(cells_of(exhibit, column, row), stored)
                cells.append("" if value != value else f"{value:.{column.decimals}f}")
                if level is not None:
                    name = row.name if row.run.level else column.name
                    levels.setdefault(exhibit.name if exhibit.run and exhibit.run.level else name,
                                      level)  # fmt: skip
            except NotThereError:
                cells.append("")
            except NotReachedError:
                cells.append("not reached")
        rows.append(["", "**run**", *cells])
    heads = ("", "", *(f"{column.name}:" for column in exhibit.column))
    told = [f"{name}: {level_name(level)}" for name, level in levels.items()]
    lines = [*markdown(heads, rows), ""]
    if told:
        lines += [f"Levels of the run: {'; '.join(told)}.", ""]
    return lines, list(levels.values())


def _paper(row: PrintedRow, number: int, column: PrintedColumn) -> str:
    value = row.number(number)
    if value is not None:
        return f"{value:.{column.decimals}f}"
    recovered = row.recovered.get(column.name)
    return "" if recovered is None else f"*{recovered:.{column.decimals}f}*"


def attribute_table(exhibit: Exhibit, folder: Path, stored: Stored | None) -> list[str]:
    """All attributes of the run, folded: a table of 40 rows."""
    if exhibit.attributes is None or stored is None:
        return []
    head, lines = "All attributes", []
    if exhibit.attributes == "shares":
        lines = attribute_shares(folder)
    elif exhibit.run is not None and exhibit.run.level is not None:
        try:
            level = matched(exhibit.run.level, folder.name, None, stored)
        except (NotThereError, NotReachedError) as error:
            return [f"All attributes: {error}.", ""]
        head = f"All attributes among exemplars of {level_name(level)}"
        lines = attributes_among_exemplars(folder, level.variant)
    if not lines:
        return []
    return [f'<details markdown="1"><summary>{head}</summary>', "", *lines, "", "</details>", ""]


# The page.


def with_authors_data(found: Sequence[Judged]) -> Sequence[Judged]:
    """Judgements that have the authors' numbers; refuses to write a page that lacks some."""
    for one in found:
        for line in one.authors:
            if "is not there" in line.estimate.reason:
                raise SystemExit(f"'{one.claim.id}': {line.estimate.reason}; name its folder.")
    return found


def name_shared_folders() -> None:
    """The authors' files are beside the repository unless the variables say so."""
    shared = Path(__file__).resolve().parents[3] / "shared"
    os.environ.setdefault("FAIRWEIGHT_GOLDEN", str(shared / "golden"))
    os.environ.setdefault("FAIRWEIGHT_REAL", str(shared / "real"))


def brief(line: ClaimLine, points: bool) -> str:
    """An estimate within a sentence: the number, and its interval in brackets."""
    found = line.estimate
    shape, times, unit = ("+.2f", 100, " points") if points else (".3g", 1, "")
    text = f"{times * found.value:{shape}}{unit}"
    if found.low == found.low:
        text += f" [{times * found.low:{shape}}, {times * found.high:{shape}}]"
    return text.replace("-", "−")


def takeaways(paper: Printed, found: Sequence[Judged]) -> list[str]:
    """The sentences that a reader should take away; refuses one that the verdicts contradict."""
    by_id = {one.claim.id: one for one in found}
    lines = []
    for one in paper.takeaway:
        for name, expected in one.holds.items():
            id, _, source = name.partition(":")
            told = by_id[id].authors_verdict if source else by_id[id].verdict
            if told != expected:
                raise SystemExit(
                    f"A takeaway rests on '{name}' being '{expected}', and it is "
                    f"'{told or 'not told'}'; write it anew in printed.toml: {one.text}"
                )

        def put_in(match: re.Match[str]) -> str:
            name, _, form = match[1].partition("|")
            id, _, rest = name.partition(":")
            source, _, line = rest.partition(":")
            given = by_id[id].authors if source else by_id[id].lines
            return brief(next(own for own in given if not line or own.name == line), bool(form))

        lines.append(f"- {re.sub(r'[{]([^{}]+)[}]', put_in, one.text)}")
    return lines


def folded(found: Sequence[Judged], what: str = "") -> list[str]:
    """Claims behind a line that says how they came out."""
    if not found:
        return []
    n = len(found)
    allowed = [one.verdict for one in found if one.claim.unjudged is None and not one.claim.twin_of]
    parts = []
    if allowed and not any(line.estimate.reason == NOT_RUN for one in found for line in one.lines):
        parts.append(counted(allowed))
    known = [one.authors_verdict for one in found if one.authors_verdict and not one.claim.twin_of]
    if known:
        parts.append(f"from the authors' numbers {counted(known)}")
    told = f": {'; '.join(parts)}" if parts else ""
    which = what or ("rests on it" if n == 1 else "rest on it")
    head = f"{n} claim{'s' * (n > 1)} {which}"
    return [
        f'<details markdown="1"><summary>{head}{told}</summary>', "", *table(found), "",
        "</details>", "",
    ]  # fmt: skip


def exhibit_of(claim: Judged, paper: Printed) -> str:
    """The first table or figure that a claim names as its place; empty where it names none."""
    for place in claim.claim.place.split(";"):
        for one in paper.exhibit:
            if re.match(rf"{re.escape(one.name)}(?![0-9])", place.strip()):
                return one.name
    return ""


def in_order(paper: Printed) -> list[Exhibit]:
    """The paper's order, but its first table of results stands at the top."""
    first = next((one for one in paper.exhibit if one.row), paper.exhibit[0])
    return [first, *(one for one in paper.exhibit if one is not first)]


def paper_page(name: str, results: Path | None, page: Path, pictures: Sequence[str]) -> list[str]:
    """The page of a study that repeats a paper."""
    asked, paper = claims(name), printed(name)
    stored = None if results is None else Stored(results)
    found = with_authors_data(judged(asked, results))
    ran = "What was run" if results is not None else "What will be run"
    lines = [f"# {asked.title}", "", f"{asked.paper}. {paper.says}", "",
             f"**{ran}.** {paper.ran}", ""]  # fmt: skip
    if stored is None:
        lines += [NO_RUN, ""]
    lines += ["**What to take away**", "", *takeaways(paper, found), ""]
    at_levels: dict[str | None, list[str]] = {}  # of a folder: the variants that its tables show
    for exhibit in in_order(paper):
        own = [one for one in found if exhibit_of(one, paper) == exhibit.name]
        beside, levels = side_by_side(exhibit, stored)
        lines += [f"## {exhibit.name}", "", f"*{exhibit.caption}* {exhibit.note}".strip(), ""]
        lines += beside
        if results is not None and exhibit.folder is not None:
            known = at_levels.setdefault(exhibit.folder, [])
            known += [one.variant for one in levels if one.variant not in known]
            variants = [level.variant for level in levels] or known
            allowed = exhibit.folder in pictures
            lines += figures(exhibit, results, page, variants, allowed)
            lines += attribute_table(exhibit, results / exhibit.folder, stored)
        lines += folded(own)
    rest = [one for one in found if not exhibit_of(one, paper)]
    if rest:
        lines += ["## Claims of the text", "", *folded(rest, "of the text alone")]
    lines += ["## How claims are judged", "", written(asked, found), "", summary(found), "",
              f"{HOW} {SCOPES} `fairweight study claims {name}` makes the tables.", ""]  # fmt: skip
    if stored is not None:
        table = page.with_suffix("") / "claims.csv"
        table.parent.mkdir(parents=True, exist_ok=True)
        frame(found).to_csv(table, index=False, lineterminator="\n")
        lines += [f"Every line with its interval: [claims.csv]({table.parent.name}/claims.csv).",
                  "", *regime_lines(asked, stored)]  # fmt: skip
    return lines


def regime_lines(asked: Claims, stored: Stored) -> list[str]:
    """The dense models beside the paper's."""
    lines = []
    for one in asked.regime:
        if one.accuracy is None:
            continue
        where = {"metric": "accuracy"} | ({} if one.task is None else {"task": one.task})
        try:
            cells = Cells(folder=one.folder, where=where, value="baseline", times=100.0)
            value, _ = run_value(cells, stored)
        except NotThereError:
            continue
        lines.append(f"- `{one.folder}`: dense accuracy {value:.1f} %, the paper's "
                     f"{100 * one.accuracy:.1f} %.")  # fmt: skip
    return ["## The dense models", "", *lines, ""] if lines else []


def audit_section(folder: Path) -> list[str]:
    """What the audit of one experiment says."""
    lines = [f"### {folder.name}", "", *audited(folder), ""]
    attributes = dense_attributes(folder)
    if attributes:
        head = "The dense models, attribute by attribute"
        lines += [f'<details markdown="1"><summary>{head}</summary>', "", *attributes, "",
                  "</details>", ""]  # fmt: skip
    worst = worst_individuals(folder)
    if worst:
        lines += [*by_group(folder), "", INDIVIDUALS, "", *worst, ""]
    return lines


def class_section(folder: Path, page: Path) -> list[str]:
    """What the stage over the classes of all experiments says."""
    tables = folder / "tables"
    beside = page.with_suffix("")
    beside.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        shutil.copyfile(tables / name, beside / name)
    links = " and ".join(f"[{name}]({beside.name}/{name})" for name in TABLES)
    lines = ["## Classes", "", FITS, "", *class_fits(tables), "", *class_coefficients(tables), ""]
    lines += [f"All coefficients: {links}.", "", "### Techniques", "", TECHNIQUES, "",
              *techniques(tables), ""]  # fmt: skip
    paired = rewound(tables)
    if len(paired) > 2:
        lines += ["Paired by lineage:", "", *paired, ""]
    return [*lines, "Accuracy at the last round, %, mean of the seeds:", "", *by_data_set(tables),
            ""]  # fmt: skip


def experiments(results: Path) -> list[Path]:
    """Those audited as a part of the study; mitigations tried later have a table alone."""
    return [path for path in sorted(results.iterdir())
            if (path / "audit").is_dir() and (path / "predictions").is_dir()]  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Read the folder of results, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="RESULTS/NAME; it need not be there yet.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--notes", type=Path, help="Markdown after the tables; by default what the page has."
    )
    parser.add_argument("--more", type=Path, help="Markdown that follows everything else.")
    parser.add_argument(
        "--pictures",
        nargs="*",
        default=[],
        metavar="EXPERIMENT",
        help="Experiments whose images may be published.",
    )
    given = parser.parse_args(arguments)
    name_shared_folders()
    name, results = given.results.name, given.results if given.results.is_dir() else None
    notes = (
        kept_notes(given.out)
        if given.notes is None
        else given.notes.read_text(encoding="utf-8").strip()
    )
    lines = [f"# The study {name}", ""]
    if name in with_claims():
        lines = paper_page(name, results, given.out, given.pictures)
    elif results is None:
        parser.error(f"There are no results in '{given.results}'; run the study first.")
    if notes:
        lines += [*between_marks(notes), ""]
    if results is not None:
        lines += ["## Variant by variant", "", AUDITS, ""]
        for folder in experiments(results):
            lines += audit_section(folder)
        if (results / "classes").is_dir():
            lines += class_section(results / "classes", given.out)
    if given.more is not None:
        lines += [given.more.read_text(encoding="utf-8").strip(), ""]
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
