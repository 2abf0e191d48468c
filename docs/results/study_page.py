"""Write the page of a finished study: the paper's claims, its audits, its tables and figures.

    python docs/results/study_page.py fairweight-runs/results/NAME --out docs/results/NAME.md

Figures are copied beside the page, into a folder of its name, and so are the regressions. Notes by
hand stand between two comments on the page, and are kept when it is written again.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from study_figures import kept, put
from study_notes import between_marks, kept_notes
from study_tables import (
    audited,
    by_data_set,
    by_group,
    class_coefficients,
    class_fits,
    rewound,
    techniques,
    worst_individuals,
)

AUDITS = (
    "Changes are points of accuracy against the dense population, paired on the same examples, "
    "with 95 % intervals: for these models, and for the method (models are a sample too). Beside "
    "them: what retraining alone moves (95 % of pairs of dense populations of that size move "
    "less). The worst class and group are the largest losses of these models, picked after "
    "looking; the report has their limits."
)
INDIVIDUALS = (
    "The ten individuals who lose most, by their shrunken shift with 95 % credible limits, for "
    "these models. They were picked after looking."
)
FITS = (
    "The regression of class accuracy (as a share of 1) over all pruned models: with the paper's "
    "errors (`ols-hac`), without cross terms (`ols-linear`), with errors by lineage "
    "(`ols-cluster`), by lineage and class (`ols-two-way`), and as a binomial model in log odds "
    "(`glm-cluster`). Claims about classes rest on `ols-two-way`: see [Explain classes]"
    "(../how-to/explain-classes.md). A term with cross terms is its slope where those are 0."
)
TECHNIQUES = (
    "At the last round, against the lineage's own dense model: mean over lineages (a dense model "
    "and all that was made of it) with the 95 % interval of Student's t. A new lineage here means "
    "one of these data sets, trained again."
)
TABLES = ("class_coefficients.csv", "class_fits.csv")


def claims_section(results: Path) -> list[str]:
    """What the paper claims, and whether this run shows it; nothing for a study of no paper."""
    from fairweight.studies.claims import judged
    from fairweight.studies.claims_page import markdown
    from fairweight.studies.library import claims, with_claims

    if results.name not in with_claims():
        return []
    asked = claims(results.name)
    text = markdown(asked, judged(asked, results)).rstrip()
    command = f"`fairweight study claims {results.name}`"
    return ["## The paper's claims", "", f"Made by {command}. {text}", ""]


def audit_section(folder: Path, page: Path, pictures: bool) -> list[str]:
    """What the audit of one experiment says."""
    lines = [f"## {folder.name}", "", *audited(folder), ""]
    worst = worst_individuals(folder)
    if worst:
        lines += [*by_group(folder), "", INDIVIDUALS, "", *worst, ""]
    return lines + figures(folder / "audit" / "figures", folder.name, page, pictures=pictures)


def class_section(folder: Path, page: Path) -> list[str]:
    """What the stage over the classes of all experiments says."""
    tables, drawn = folder / "tables", folder / "figures"
    beside = page.with_suffix("")
    beside.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        shutil.copyfile(tables / name, beside / name)
    links = " and ".join(f"[{name}]({beside.name}/{name})" for name in TABLES)
    lines = ["## Classes", "", FITS, "", *class_fits(tables), "", *class_coefficients(tables), ""]
    lines += [f"All coefficients: {links}.", "", *figures(drawn / "all", "classes", page)]
    lines += ["### Techniques", "", TECHNIQUES, "", *techniques(tables), ""]
    paired = rewound(tables)
    if len(paired) > 2:
        lines += ["Paired by lineage:", "", *paired, ""]
    lines += ["Accuracy at the last round, %, mean of the seeds:", "", *by_data_set(tables), ""]
    for experiment in sorted(path for path in drawn.iterdir() if path.name != "all"):
        shown = folder.parent / experiment.name / "audit" / "figures"  # by the audit's section
        own = figures(experiment, experiment.name, page, without=shown)
        lines += [f"### {experiment.name}", "", *own]
    return lines


def _experiment(folder: Path) -> bool:
    """Whether it was audited as a part of the study; mitigations tried later have a table alone."""
    return (folder / "audit").is_dir() and (folder / "predictions").is_dir()


def figures(
    folder: Path, name: str, page: Path, *, pictures: bool = False, without: Path | None = None
) -> list[str]:
    """The figures of a folder as lines of the page, which they are put beside."""
    lines = []
    for figure in kept(folder, pictures=pictures):
        if without is not None and (without / figure.name).exists():
            continue
        place = put(figure, page.with_suffix("") / f"{name}-{figure.name}")
        where = place.relative_to(page.parent).as_posix()
        lines += [f"![{figure.stem} of {name}]({where})", ""]
    return lines


def main(arguments: list[str] | None = None) -> None:
    """Read the folder of results, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--notes", type=Path, help="Markdown after the claims; by default what the page has."
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
    lines = [
        f"# The study {given.results.name}",
        "",
        f"Made by `fairweight study run {given.results.name} --data DIR`, then "
        f"`python docs/results/study_page.py`. {AUDITS}",
        "",
    ]
    lines += claims_section(given.results)
    notes = (
        kept_notes(given.out)
        if given.notes is None
        else given.notes.read_text(encoding="utf-8").strip()
    )
    if notes:
        lines += [*between_marks(notes), ""]
    for folder in sorted(path for path in given.results.iterdir() if _experiment(path)):
        lines += audit_section(folder, given.out, folder.name in given.pictures)
    settings = given.results / "settings" / "figures"
    if settings.is_dir():
        lines += ["## Settings side by side", "", *figures(settings, "settings", given.out)]
    classes = given.results / "classes"
    if classes.is_dir():
        lines += class_section(classes, given.out)
    if given.more is not None:
        lines += [given.more.read_text(encoding="utf-8").strip(), ""]
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
