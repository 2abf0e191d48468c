"""Draw every figure of the report from small real results, and write the page that shows them.

    python docs/generate_gallery.py              # the stored page and pictures, in docs/
    python docs/generate_gallery.py --text       # the page alone, around the stored pictures
    python docs/generate_gallery.py build/gallery    # those of a build of the site (make docs)

Networks of the bundled digits are trained in seconds, compressed and audited: see gallery_data.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gallery_data.attributes import audit_of_attributes, audit_of_thresholds
from gallery_data.classes import audit_of_classes
from gallery_data.decisions import audit_of_two_answers
from gallery_data.units import audit_of_units
from generate_reference import plain
from results.study_tables import put

from fairweight.report.figures import draw, figures
from fairweight.report.figures.export import rendered
from fairweight.studies.population_demo import in_processes

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult
    from fairweight.report.figures import Figure

MADE = "<!-- Made by docs/generate_gallery.py: do not edit. -->"
VARIANT = "pruned-60"  # it loses enough that there is something to see
PAPERS = {  # in the order of the page
    "FW": "Our own",
    "HK": "Characterising bias in compressed models",
    "PA": "Prune responsibly",
    "SG": "A resource-efficient comparative study",
    "SS": "Simon Says",
    "IO": "Bias in pruned vision models",
}
TOLD = {
    "FW": "What no paper has: limits that hold for all rows at once, noise floors, what to decide.",
    "HK": "Hooker, Moorosi, Clark, Bengio and Denton, 2020: which examples, and which subgroups.",
    "PA": "Paganini, 2020: classes and individuals against sparsity, and what goes with it.",
    "SG": "Sinha and Groover: tables before and after, by class and by group.",
    "SS": "Blakeney, Huish, Yan and Zong, 2021: how errors of classes move, and representations.",
    "IO": "Iofinova, Peste and Alistarh, 2023: many attributes, and their bias amplification.",
}
OF_ATTRIBUTES = ("IO-T1", "IO-F1a", "IO-F1b", "IO-F2", "IO-F3", "IO-F4", "IO-F5b", "IO-TJ")
OF_TWO_ANSWERS = ("HK-T3", "HK-T4", "SG-F3", "SG-F4", "SG-F5", "SG-F6", "FW-2", "FW-4", "IO-F6")
RESULTS: Mapping[Callable[[], AuditResult], tuple[str, ...]] = {
    audit_of_attributes: OF_ATTRIBUTES,
    audit_of_thresholds: ("IO-F5a",),
    audit_of_two_answers: OF_TWO_ANSWERS,
    audit_of_units: ("FW-8",),
}
FIRST = """# Gallery

Every figure that a report can hold, by the paper that it comes from: what it shows, how it is read, and what it looks like. The ids are those of the papers (`SS-F2`: figure 2 of Simon Says); `FW` figures are our own. `fairweight report figure ID DIR --out FILE.svg` writes one figure of an audit.

A figure that an audit cannot fill is left out, and the report says why. Some are folded under “More figures”. Those of the section “Which examples, and why” need exemplars or explanations. In all of them grey is the baseline, or what retraining alone does. Colour-blind readers can tell the colours apart, and every figure has an alternative text.

**These pictures show what a figure looks like. They are evidence of nothing.** Behind all of them are small networks (48 hidden units, trained for 7 epochs) of the 1,797 digits that come with scikit-learn (Alpaydin and Kaynak 1998, CC BY 4.0), their pruned copies, and 60 bootstrap replicates (2,000 are the default). Two digits were made rare in training. Attributes are yes-or-no questions about a digit (is it even?). Writers and latencies are made up, because the digits do not say who wrote them, and networks this small have no speed worth measuring. What real studies gave is in the [results](results/characterising-bias.md).
"""  # noqa: E501  a paragraph is one line
ENTRY = re.compile(
    r"^### (?P<id>[A-Z]{2}-\w+): (?P<title>.+)\n\n"
    r"!\[(?P<told>.+)\]\((?P<file>gallery/[\w.-]+)\)\n\n"
    r"(?P<caption>.+)\n\n> Alternative text: (?P<again>.+)\n",
    re.MULTILINE,
)


def main(folder: Path, workers: int) -> None:
    """Draw all figures, then write the page."""
    jobs = [partial(pictures, make, ids, folder / "gallery") for make, ids in by_result().items()]
    drawn = {id: made for found in in_processes(jobs, workers) for id, made in found.items()}
    keep = {path.name for path, _ in drawn.values()}
    for old in (folder / "gallery").iterdir():
        if old.name not in keep:
            old.unlink()
    (folder / "gallery.md").write_text(page(drawn), encoding="utf-8")


def stored(text: str) -> dict[str, tuple[Path, str]]:
    """The file and the alternative text of every figure on a page that was written before."""
    return {
        found["id"]: (Path(found["file"]), re.sub(r"\\([*_<])", r"\1", found["again"]))
        for found in ENTRY.finditer(text)
    }


def by_result() -> dict[Callable[[], AuditResult], tuple[str, ...]]:
    """Every figure of the registry, under what makes the result that it is drawn from."""
    special = {id for ids in RESULTS.values() for id in ids}
    return {
        audit_of_classes: tuple(entry.id for entry in figures() if entry.id not in special),
        **RESULTS,
    }


def pictures(
    make: Callable[[], AuditResult], ids: tuple[str, ...], folder: Path
) -> dict[str, tuple[Path, str]]:
    """Make one result, and draw these figures of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks that were not trained to the end
        result = make()
    return {id: picture(id, result, folder) for id in ids}


def picture(id: str, result: AuditResult, folder: Path) -> tuple[Path, str]:
    """Draw one figure into the folder; returns its file and its alternative text."""
    drawing = draw(id, result, VARIANT)
    if drawing.spec is None:
        raise SystemExit(f"{id} cannot be drawn for the gallery: {drawing.reason}.")
    with tempfile.TemporaryDirectory() as place:
        svg = Path(place, f"{id}.svg")
        svg.write_bytes(rendered(drawing.spec, ".svg"))
        return put(svg, folder / svg.name), str(drawing.spec["description"])


def page(drawn: Mapping[str, tuple[Path, str]]) -> str:
    """The page: a section per paper, an entry per figure."""
    order = ", ".join(f"[{entry.id}](#{_anchor(entry)})" for entry in figures())
    parts = [MADE, FIRST.strip(), f"In the order of the report: {order}."]
    for tag, title in PAPERS.items():
        parts += [f"## {tag}: {title}", TOLD[tag]]
        parts += [
            part
            for entry in figures()
            if entry.id.partition("-")[0] == tag
            for part in _entry(entry, *drawn[entry.id])
        ]
    return "\n\n".join(parts) + "\n"


def _anchor(entry: Figure) -> str:
    """The anchor of a heading, as Git hosts make it."""
    heading = f"{entry.id}: {entry.title}".lower()
    return re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-")


def _entry(entry: Figure, file: Path, told: str) -> list[str]:
    alternative = plain(told).replace("[", "\\[").replace("]", "\\]")
    place = " (Under “More figures”.)" if entry.more else ""
    place += " (In “Which examples, and why”.)" if entry.explains else ""
    return [
        f"### {entry.id}: {entry.title}",
        f"![{alternative}](gallery/{file.name})",
        plain(entry.caption) + place,
        f"> Alternative text: {plain(told)}",
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--text", action="store_true", help="draw nothing again")
    given = parser.parse_args()
    if given.text:
        held = given.folder / "gallery.md"
        held.write_text(page(stored(held.read_text(encoding="utf-8"))), encoding="utf-8")
    else:
        main(given.folder, given.workers)
