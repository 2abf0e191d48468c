"""Write the page across the studies: who pays more than the rest, what foretold it, what helped.

    python docs/results/summary_page.py RESULTS/NAME... --out docs/results/summary.md

Every RESULTS/NAME is what `fairweight study run NAME` publishes; a study that is not there yet is
judged from its authors' numbers alone. Every sentence is made from the tables.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from study_page import name_shared_folders, with_authors_data
from study_tables import markdown

from fairweight.auditing.archive import load
from fairweight.auditing.preflight.evidence import CHOSEN, read_evidence
from fairweight.base.wording import shown
from fairweight.report.finding import Change, ScopeFinding, find
from fairweight.specs.claims import Claims
from fairweight.specs.toml import read_spec
from fairweight.studies.claims import (
    CANNOT_TELL,
    DOES_NOT,
    NOT_REACHED,
    REPRODUCES,
    VERDICTS,
    WEAKER,
    Judged,
    judged,
)
from fairweight.studies.claims_page import counted, of_line
from fairweight.studies.estimates import ENOUGH_MEMBERS
from fairweight.studies.library import claims, with_claims

KINDS = {
    "int8-static": "int8", "int8-dynamic": "int8",
    "l1-unstructured": "smallest weights", "global-magnitude": "smallest weights",
    "n-of-m": "smallest weights",
    "l1-structured": "whole channels", "l2-structured": "whole channels",
    "agp-filters": "whole channels",
    "random-unstructured": "random weights", "control": "nothing removed",
}  # fmt: skip
ORDER = ("nothing removed", "int8", "smallest weights", "whole channels", "random weights")
BANDS = (50, 80, 90, 95, 100)  # per cent of zeros, up to
# Experiments in which something besides compression changed: other training data.
APART = ("imbalanced-leak",)
EVERYTHING = 100.0  # points: an excess of so much excludes nothing
HARM = (
    "Somebody *pays more* where a group or class loses and its *excess* (its change less that of "
    "everybody else) is below 0 after correction for all groups and classes of the audit. Where at "
    "least four models were trained on each side, models are a sample too (*the method*), else it "
    "is said of *these models*. Ranges are the median (least to largest) of the variants of a row: "
    "different data and networks, so no law of anything. Where nobody is shown to pay more, the "
    "last column says which excess the limits exclude: an audit that could not see ten points has "
    "not shown that nobody pays. *Nothing removed* is the control: trained on as long as the "
    "compressed models. Variants with a teacher, or of other data than their dense models, are in "
    "the next tables only."
)
EACH = (
    "*Smaller* compares compressed files. Who pays most beyond the rest was picked after looking, "
    "and of many the worst looks worse than it is; *had* is what they had before. *Pay more* "
    "counts groups and classes."
)
FORETOLD = (
    "Scores of dense models alone, against what was lost afterwards, in the first round of runs"
    " (small networks). For single examples: the AUC of finding, among the right answers, those"
    " that compression loses (0.5 is chance). For classes and groups: the rank correlation with"
    " the loss beyond that of everybody else, scores and losses taken on different halves of "
    "the examples (0 is chance, below it is worse than chance). The score is the one that was "
    "best in all *other* data sets, so that nothing is picked on what it is judged on. "
    "Attributes were compared in one data set only: all scores are shown, and none was chosen."
)
TRIED = (
    "Judged like the papers' claims, against the same variant without the mitigation. Intervals of "
    "95 %, line by line: over paired *members*, or for these models where nothing is said."
)
LEVELS = {
    "example": "single examples",
    "class": "classes",
    "group": "groups",
    "attribute": "attributes",
}
MEASURES = {"auc": "AUC", "rank_correlation": "rank correlation"}
MITIGATIONS = Path(__file__).with_name("mitigations.toml")
CASCADE = "*-cascade/cascade_curve.parquet"
WORDS = {
    REPRODUCES: "yes",
    WEAKER: "yes, less than what matters",
    DOES_NOT: "no",
    CANNOT_TELL: "cannot tell",
    NOT_REACHED: "not in this regime",
}


# Who pays more than the rest, variant by variant.


@dataclass(frozen=True)
class Harm:
    """What one variant of an audit shows, in the widest scope that it has the members for."""

    experiment: str
    variant: str
    kind: str
    apart: bool  # not compression alone: a teacher, other training data
    zeros: float
    smaller: float  # the dense file over this one, both compressed
    members: int
    finding: ScopeFinding

    @property
    def payer(self) -> Change | None:
        """Who pays most beyond the rest, if anybody is shown to."""
        return min(self.finding.pays_more, key=lambda payer: payer.shift, default=None)

    @property
    def excluded(self) -> float:
        """Nobody loses more than this beyond the rest: the lowest limit of all excesses."""
        return -min((one.low for one in self.finding.excesses), default=float("nan"))

    @property
    def had(self) -> float:
        """What the one who pays most had before."""
        shifts = {one.key: one for one in self.finding.shifts}
        return shifts[self.payer.key].baseline if self.payer else float("nan")

    @property
    def of_method(self) -> bool:
        return self.finding.scope == "method"


def harms(results: Path, apart: Sequence[str] = APART) -> Iterator[Harm]:
    """Every variant of every experiment of a study that was audited as a part of it."""
    for path in sorted(results.glob("*/audit/audit.json")):
        folder = path.parents[1]
        if not (folder / "predictions").is_dir():  # a mitigation that was tried later
            continue
        result = load(path)
        facts = pd.read_parquet(folder / "variants.parquet")
        dense = facts[facts["variant"] == result.baseline]
        for variant in result.variants:
            own = facts[facts["variant"] == variant]
            taught = "distillation" in own and bool(own["distillation"].notna().any())
            found = find(result, variant)
            few = min(len(own), len(dense)) < ENOUGH_MEMBERS
            method = str(own["method"].iloc[0])
            yield Harm(
                experiment=folder.name,
                variant=variant,
                kind=KINDS.get(method, method),
                apart=taught or folder.name in apart,
                zeros=float(own["sparsity"].mean()),
                smaller=float(dense["compressed_bytes"].mean() / own["compressed_bytes"].mean()),
                members=len(own),
                finding=found.model if few else found.verdicts[-1],
            )


@dataclass(frozen=True)
class Band:
    """Variants of one kind of compression and level, where nothing but compression changed."""

    kind: str
    zeros: str
    harms: tuple[Harm, ...]

    @property
    def paying(self) -> tuple[Harm, ...]:
        return tuple(one for one in self.harms if one.payer is not None)

    @property
    def excesses(self) -> list[float]:
        """Points that those who pay most lose beyond the rest."""
        return [-100 * one.payer.shift for one in self.paying if one.payer is not None]

    @property
    def changes(self) -> list[float]:
        """Points of accuracy."""
        overall = [one.finding.overall for one in self.harms]
        return [100 * one.shift for one in overall if one is not None]


def bands(found: Sequence[Harm]) -> list[Band]:
    """Kinds in their order, from few zeros to many."""
    made = []
    for kind in (*ORDER, *sorted({one.kind for one in found} - set(ORDER))):
        by_level = kind not in ("int8", "nothing removed")
        for low, high in zip((-1, *BANDS), BANDS, strict=False) if by_level else ((-1, 100),):
            own = tuple(
                one for one in found
                if one.kind == kind and not one.apart and low < round(100 * one.zeros) <= high
            )  # fmt: skip
            zeros = "" if not by_level else f"up to {high} %" if low < 0 else f"{low + 1}–{high} %"
            if own:
                made.append(Band(kind, zeros, own))
    return made


def by_kind(found: Sequence[Harm]) -> list[str]:
    """A row per kind of compression and level."""
    rows = []
    for band in bands(found):
        safe = [100 * one.excluded for one in band.harms if one.payer is None]
        of_method = [one for one in band.harms if one.of_method]
        rows.append([
            band.kind, band.zeros, str(len(band.harms)), _range(band.changes, signed=True),
            f"{len(band.paying)} ({sum(one.of_method for one in band.paying)} of {len(of_method)} "
            "for the method)",
            _range(band.excesses), "" if not safe else f"not in all {len(safe)}"
            if max(safe) >= EVERYTHING else f"{max(safe):.1f} in {len(safe)}",
        ])  # fmt: skip
    heads = ("compression", "zeros:", "variants:", "change of accuracy:", "somebody pays more:",
             "excess of who pays most:", "else excluded beyond:")  # fmt: skip
    return markdown(heads, rows)


def sentences(found: Sequence[Harm]) -> list[str]:
    """What the table of kinds says, one sentence for each of its rows."""
    lines = []
    for band in bands(found):
        where = f" with {band.zeros} zeros" if band.zeros else ""
        changes = _range(band.changes, signed=True)
        n, paying = len(band.harms), len(band.paying)
        what = f"{band.kind[0].upper()}{band.kind[1:]}{where}"
        variants = "1 variant" if n == 1 else f"{n} variants"
        told = f"*{what}* ({variants}): accuracy changes by {changes} points; "
        if paying == 0:
            widest = max(100 * one.excluded for one in band.harms)
            told += "nobody is shown to pay more than the rest, "
            told += (
                "and in some of them the limits exclude nothing"
                if widest >= EVERYTHING
                else f"and an excess beyond {widest:.1f} points is excluded in all of them"
            )
        else:
            told += (
                f"somebody pays more than the rest in {paying} of {n}, the hardest hit by "
                f"{_range(band.excesses)} points"
            )
        lines.append(f"- {told}.")
    return lines


def _range(values: Sequence[float], *, signed: bool = False) -> str:
    if not values:
        return ""
    shape = "+.1f" if signed else ".1f"
    three = (median(values), min(values), max(values))
    told = [f"{round(value, 1) + 0.0:{shape}}" for value in three]  # never "-0.0"
    return told[0] if len(values) == 1 else f"{told[0]} ({told[1]} to {told[2]})"


def each(found: Sequence[Harm]) -> list[str]:
    """A row per variant."""

    def place(one: Harm) -> tuple[str, int, float]:
        kind = ORDER.index(one.kind) if one.kind in ORDER else len(ORDER)
        return one.experiment, kind, one.zeros

    rows = []
    for harm in sorted(found, key=place):
        overall, payer = harm.finding.overall, harm.payer
        rows.append([
            harm.experiment, harm.variant, str(harm.members), f"{100 * harm.zeros:.1f} %",
            f"{harm.smaller:.1f}×",
            "" if overall is None else _points(overall.shift, overall.low, overall.high),
            _who(payer), "" if payer is None else f"{100 * harm.had:.1f} %",
            "" if payer is None else _points(payer.shift, payer.low, payer.high),
            f"{len(harm.finding.pays_more)} of {len(harm.finding.excesses)}",
            "the method" if harm.of_method else "these models",
        ])  # fmt: skip
    heads = ("experiment", "variant", "members:", "zeros:", "smaller:", "accuracy:",
             "who pays most beyond the rest", "had:", "excess:", "pay more:", "of")  # fmt: skip
    return markdown(heads, rows)


def _who(payer: Change | None) -> str:
    if payer is None:
        return "nobody shown"
    named = payer.name if payer.kind == "group" else f"class {payer.name}"
    return named if payer.task is None else f"{payer.task}: {named}"


def _points(value: float, low: float, high: float) -> str:
    """With the sign of every limit, also where it is nearly 0: it says who is shown to lose."""
    return f"{100 * value:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"


def models(results: Path) -> int:
    """How many models a study made, dense ones included."""
    tables = [pd.read_parquet(path) for path in sorted(results.glob("*/variants.parquet"))
              if (path.parent / "predictions").is_dir()]  # fmt: skip
    return sum(len(table[["variant", "seed"]].drop_duplicates()) for table in tables)


# What foretold it.


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


# What was tried against the losses.


def tried(studies: Mapping[str, Path]) -> list[str]:
    """A row per mitigation, what it should do, and line."""
    held = tomllib.loads(MITIGATIONS.read_text(encoding="utf-8"))
    rows: list[list[str]] = []
    for study in [name for name in held if name in studies]:
        asked = read_spec(Claims, held[study], f"'{MITIGATIONS.name}', {study}")
        for one in judged(asked, studies[study]):
            for line in one.lines:
                reason = f": {shown(line.estimate.reason)}" if line.estimate.reason else ""
                rows.append([
                    f"[{shown(one.claim.place)}]({study}.md)", shown(one.claim.statement),
                    shown(line.name or str(one.claim.where.get("variant", ""))), of_line(line),
                    f"{WORDS[line.verdict]}{reason}", shown(one.claim.why),
                ])  # fmt: skip
    heads = ("mitigation", "what it should do", "variant", "change:", "does it?", "its price")
    return markdown(heads, said_once(rows))


def said_once(rows: list[list[str]]) -> list[list[str]]:
    """Without what the row above says already of the mitigation, its purpose and its price."""
    shorter = rows[:1]
    for above, row in pairwise(rows):
        same = row[0] == above[0]
        purpose = "" if same and row[1] == above[1] else row[1]
        shorter.append(["", purpose, *row[2:-1], ""] if same else row)
    return shorter


def cascades(studies: Mapping[str, Path]) -> list[str]:
    """How much a cascade would send to the dense model, a sentence for every one that was tried."""
    lines = []
    for path in sorted(found for root in studies.values() for found in root.glob(CASCADE)):
        table = pd.read_parquet(path)
        own = table[table["task"].isna() & table["recommended"] & (table["part"] == "judging")]
        shares = own.groupby("variant", sort=False)["share_deferred"].first()
        told = ", ".join(f"{100 * share:.0f} % ({variant})" for variant, share in shares.items())
        lines += [
            "A *cascade* (the compressed model answers, the dense one where the first is unsure) "
            "was asked to keep every group of every attribute within 2 points of the dense model, "
            "by limits that hold at once. It sends this share of the images to the dense model: "
            f"{told}.",
            "",
        ]
    return lines


# Whether the papers hold.


def papers(found: Mapping[str, Sequence[Judged]], made: Mapping[str, Path]) -> list[str]:
    """How the claims of every paper came out, from the authors' numbers and from the run."""
    rows = []
    for study, judgements in found.items():
        own = [one for one in judgements if one.claim.twin_of is None]
        allowed = [one for one in own if one.claim.unjudged is None]
        authors = [one.authors_verdict for one in own if one.authors_verdict]
        told = Counter(one.verdict for one in allowed) if study in made else Counter[str]()
        asked = claims(study)
        rows.append([
            f"[{asked.title}]({study}.md)", asked.paper, str(len(own)),
            counted(authors) or "", str(len(allowed)),
            *(str(told[one]) if study in made else "" for one in VERDICTS),
        ])  # fmt: skip
    heads = ("paper", "by", "claims:", "from the authors' numbers", "allowed by the run:",
             *(f"{one}:" for one in VERDICTS))  # fmt: skip
    return markdown(heads, rows)


def open_questions(found: Mapping[str, Sequence[Judged]], harmed: Sequence[Harm]) -> list[str]:
    """What these runs leave open, counted."""
    lines = [line for own in found.values() for one in own if one.claim.unjudged is None
             for line in one.lines]  # fmt: skip
    untold = [line.estimate for line in lines if line.verdict == CANNOT_TELL]
    wide = sum(not estimate.reason for estimate in untold)
    reached = [line.estimate.reason for line in lines if line.verdict == NOT_REACHED]
    of_models = sum(not harm.of_method for harm in harmed)
    said = [
        f"- Of {len(lines)} lines of claims {len(untold)} cannot be told: in {wide} the interval "
        f"is too wide, in {len(untold) - wide} there is none.",
        f"- {len(reached)} lines are out of the paper's regime.",
        f"- {of_models} of {len(harmed)} variants have fewer than four members on a side: what is "
        "said of them is said of these models, and training anew may change it.",
    ]
    blunt = [100 * harm.excluded for harm in harmed if harm.payer is None]
    if blunt:
        said.append(
            f"- In {len(blunt)} variants nobody is shown to pay more than the rest. The limits "
            f"exclude an excess beyond {min(blunt):.1f} points in the sharpest of these audits, "
            f"and {'nothing' if max(blunt) >= EVERYTHING else f'beyond {max(blunt):.1f}'} in the "
            "bluntest."
        )
    return said


def main(arguments: list[str] | None = None) -> None:
    """Read the folders of results, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results", type=Path, nargs="*", metavar="RESULTS/NAME", help="A study's published results."
    )
    parser.add_argument("--out", type=Path, required=True, help="The page, such as summary.md.")
    given = parser.parse_args(arguments)
    for path in given.results:
        if not any(path.glob("*/audit/audit.json")):
            parser.error(f"'{path}' holds no audited experiment; give RESULTS/NAME of a study.")
    studies = {path.name: path for path in given.results}
    harmed = {name: list(harms(path)) for name, path in studies.items()}
    everybody = [harm for own in harmed.values() for harm in own]
    name_shared_folders()
    found = {
        name: with_authors_data(judged(claims(name), studies.get(name))) for name in with_claims()
    }
    run = {name: own for name, own in found.items() if name in studies}
    lines = ["# Across the papers: who pays more than the rest", ""]
    if studies:
        made = sum(models(path) for path in studies.values())
        lines += [
            f"{made:,} models of {len(studies)} {'study' if len(studies) == 1 else 'studies'}, "
            f"{len(everybody)} compressed variants "
            "audited against their dense models ([laptop presets](../how-to/run-a-study.md), each "
            "described on its page). Every sentence and table is made from the published results "
            "by `python docs/results/summary_page.py`.",
            "",
        ]
    missing = [name for name in with_claims() if name not in studies]
    if missing:
        titles = ", ".join(f"[{claims(name).title}]({name}.md)" for name in missing)
        lines += [f"Not run yet in the papers' regime: {titles}. These are judged from the "
                  "authors' own numbers alone.", ""]  # fmt: skip
    if everybody:
        lines += ["## In short", "", *sentences(everybody), ""]
    lines += ["## Whether the papers hold", "", *papers(found, studies), ""]
    if everybody:
        lines += ["## Which compression, at which level", "", HARM, "", *by_kind(everybody), ""]
        lines += ["## Whom, variant by variant", "", EACH, ""]
        for name, own in harmed.items():
            lines += [f"### [{name}]({name}.md)", "", *each(own), ""]
    lines += ["## Could you have known beforehand?", "", FORETOLD, "", *foretold(), ""]
    if everybody:
        if studies.keys() & tomllib.loads(MITIGATIONS.read_text(encoding="utf-8")).keys():
            lines += ["## What helped, at which price", "", TRIED, "", *tried(studies), ""]
        lines += cascades(studies)
        lines += ["## What these data cannot show", "", *open_questions(run, everybody), ""]
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
