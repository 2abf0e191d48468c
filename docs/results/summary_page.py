"""Write the page across the studies: who paid, what foretold it, what helped, what stays open.

    python docs/results/summary_page.py RESULTS/NAME... --out docs/results/summary.md

Every RESULTS/NAME is what `fairweight study run NAME` publishes. Notes by hand stand between two
comments on the page, and are kept when it is written again.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from study_notes import between_marks, kept_notes
from study_tables import markdown
from summary_harms import Harm, by_kind, each, harms
from summary_mitigations import cascades, tried

from fairweight.auditing.preflight.evidence import CHOSEN, read_evidence
from fairweight.studies.claims import CANNOT_TELL, DOES_NOT, REPRODUCES, SMALLER, Judged, judged
from fairweight.studies.library import claims, with_claims

# Weights of classes; and channels pruned while training on other data than the dense models saw.
APART = ("class-balanced-95", "worst-class-95", "imbalanced")
HARM = (
    "Changes are points of accuracy (of a class: of recall) against the dense models, paired on "
    "the same examples. Somebody *loses* where limits that hold for all groups and classes of an "
    "audit at once lie below 0; *beyond retraining* where they do so with members as a sample "
    "too, which takes four of them on each side, so the second count is of fewer variants. Ranges "
    "are the median (least to largest) of the variants of a row: different data and networks, so "
    "not a law of anything. Where nobody is shown to lose, the last column says which losses the "
    "limits exclude: an audit that could not see ten points has not shown that nobody pays. "
    "Variants with a teacher, with weights of classes, or trained on other data than their dense "
    "models (`imbalanced` of simon-says) are in the next tables only."
)
EACH = (
    "*Smaller* compares compressed files. *Had* is what those who lose most had before; they were "
    "picked after looking, and of many the worst looks worse than it is. *Lose, gain* count the "
    "groups and classes with limits below and above 0. *Of*: whether limits hold for these models "
    "(other examples), or for the method (other members too)."
)
FORETOLD = (
    "Scores of dense models alone, against what was lost afterwards. For single examples: the AUC "
    "of finding, among the right answers, those that compression loses (0.5 is chance). For "
    "classes and groups: the rank correlation with the loss beyond that of everybody else, scores "
    "and losses taken on different halves of the examples (0 is chance, below it is worse than "
    "chance). The score is the one that was best in all *other* data sets, so that nothing is "
    "picked on what it is judged on. Attributes were compared in one data set only: all scores are "
    "shown, and none was chosen."
)
TRIED = (
    "Judged like the papers' claims, against the same variant without the mitigation, but written "
    "after the runs had been read. Intervals of 95 %, line by line: over paired *members*, or "
    "for these models where nothing is said."
)
LEVELS = {
    "example": "single examples",
    "class": "classes",
    "group": "groups",
    "attribute": "attributes",
}
MEASURES = {"auc": "AUC", "rank_correlation": "rank correlation"}


def models(results: Path) -> int:
    """How many models a study made, dense ones included."""
    tables = [pd.read_parquet(path) for path in sorted(results.glob("*/variants.parquet"))
              if (path.parent / "predictions").is_dir()]  # fmt: skip
    return sum(len(table[["variant", "seed"]].drop_duplicates()) for table in tables)


def foretold() -> list[str]:
    """A row per level: what the score that the other data sets chose was worth in each."""
    table = read_evidence()
    rows = []
    for level, name in LEVELS.items():
        for members in ("one", "several"):
            own = table[(table["level"] == level) & (table["members"] == members)]
            chosen = own[own["score"] == CHOSEN]
            if own.empty:
                continue
            mean = f"{chosen['value'].mean():.2f}" if len(chosen) else ""
            told = [_worth(row) for row in (chosen if len(chosen) else own).to_dict("records")]
            rows.append([
                name, f"{members} dense model" + "s" * (members == "several"),
                MEASURES[str(own["measure"].iloc[0])], mean, ", ".join(told),
            ])  # fmt: skip
    return markdown(("of", "known", "measure", "mean:", "in each data set, by the score"), rows)


def _worth(row: dict[str, Any]) -> str:
    score = row["choice"] if row["score"] == CHOSEN else row["score"]
    return f"{row['study']} {round(row['value'], 2) + 0.0:.2f} ({str(score).replace('_', ' ')})"


def papers(found: Mapping[str, Sequence[Judged]]) -> list[str]:
    """How the claims of every paper came out."""
    rows = []
    for study, own in found.items():
        counted = Counter(one.verdict for one in own)
        rows.append([
            f"[{study}]({study}.md)", claims(study).paper,
            str(counted[REPRODUCES] + counted[SMALLER]), str(counted[DOES_NOT]),
            str(counted[CANNOT_TELL]),
        ])  # fmt: skip
    heads = ("study", "paper", "reproduce:", "do not:", "cannot be told:")
    return markdown(heads, rows)


def open_questions(found: Mapping[str, Sequence[Judged]], harmed: Sequence[Harm]) -> list[str]:
    """What these runs leave open, counted."""
    lines = [line for own in found.values() for one in own for line in one.lines]
    untold = [estimate for _, estimate, verdict in lines if verdict == CANNOT_TELL]
    reasons = Counter(estimate.reason for estimate in untold)
    wide = reasons.pop("", 0)
    common = "; ".join(f"{reason}, {n}" for reason, n in reasons.most_common(3))
    of_models = sum(harm.verdict.scope == "model" for harm in harmed)
    excluded = [100 * harm.excluded for harm in harmed if harm.hardest is None]
    reach = (
        f" The limits exclude losses beyond {min(excluded):.1f} points in the sharpest of these "
        f"audits, and beyond {max(excluded):.1f} in the bluntest."
        if excluded
        else ""
    )
    return [
        f"- Of {len(lines)} lines of claims {len(untold)} cannot be told: in {wide} the interval "
        f"is too wide, in {len(untold) - wide} there is none (most often: {common}).",
        f"- {of_models} of {len(harmed)} variants have fewer than four members on a side: what is "
        "said of them is said of these models, and training anew may change it.",
        f"- In {len(excluded)} variants nobody is shown to lose.{reach}",
    ]


def main(arguments: list[str] | None = None) -> None:
    """Read the folders of results, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results", type=Path, nargs="+", metavar="RESULTS/NAME", help="A study's published results."
    )
    parser.add_argument("--out", type=Path, required=True, help="The page, such as summary.md.")
    given = parser.parse_args(arguments)
    for path in given.results:
        if not any(path.glob("*/audit/audit.json")):
            parser.error(f"'{path}' holds no audited experiment; give RESULTS/NAME of a study.")
    studies = {path.name: path for path in given.results}
    harmed = {name: list(harms(path, APART)) for name, path in studies.items()}
    everybody = [harm for own in harmed.values() for harm in own]
    found = {name: judged(claims(name), studies[name]) for name in studies if name in with_claims()}
    made = sum(models(path) for path in studies.values())
    lines = [
        "# Across the papers: who paid in these runs",
        "",
        f"{made:,} models of {len(studies)} studies, {len(everybody)} compressed variants audited "
        "against their dense models. All are small networks, most of them on parts of the papers' "
        "data: [laptop presets](../how-to/run-a-study.md), each described on its page. Made by "
        "`python docs/results/summary_page.py` from the published results.",
        "",
    ]
    notes = kept_notes(given.out)
    if notes:
        lines += [*between_marks(notes), ""]
    lines += ["## Which compression, at which level", "", HARM, "", *by_kind(everybody), ""]
    lines += ["## Whom, variant by variant", "", EACH, ""]
    for name, own in harmed.items():
        lines += [f"### [{name}]({name}.md)", "", *each(own), ""]
    lines += ["## Was it to be seen in the dense models?", "", FORETOLD, "", *foretold(), ""]
    lines += [
        "## What helped, at which price",
        "",
        TRIED,
        "",
        *tried(studies),
        "",
        *cascades(studies),
    ]
    lines += ["## Whether the papers hold", "", *papers(found), ""]
    lines += ["## What nobody can tell yet", "", *open_questions(found, everybody), ""]
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
