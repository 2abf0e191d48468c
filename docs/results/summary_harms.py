"""Who pays in a study's audits: a row per compressed variant, and those of one kind together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pandas as pd
from study_tables import markdown

from fairweight.auditing.archive import load
from fairweight.report.finding import Change, ScopeFinding, find
from fairweight.studies.claims import ENOUGH_MEMBERS

KINDS = {
    "int8-static": "int8", "int8-dynamic": "int8",
    "l1-unstructured": "smallest weights", "global-magnitude": "smallest weights",
    "n-of-m": "smallest weights",
    "l1-structured": "whole channels", "l2-structured": "whole channels",
    "random-unstructured": "random weights",
}  # fmt: skip
ORDER = ("int8", "smallest weights", "whole channels", "random weights")
BANDS = (50, 80, 90, 95, 100)  # per cent of zeros, up to


@dataclass(frozen=True)
class Harm:
    """What one variant of an audit shows, in the widest scope that it has the members for."""

    experiment: str
    variant: str
    kind: str
    apart: bool  # not compression alone: a teacher, weights of classes, other training data
    zeros: float
    smaller: float  # the dense file over this one, both compressed
    members: int
    verdict: ScopeFinding

    @property
    def hardest(self) -> Change | None:
        """The largest loss that is shown."""
        return min(self.verdict.loses, key=lambda payer: payer.shift, default=None)

    @property
    def excluded(self) -> float:
        """Nobody loses more than this: the lowest of the limits that hold for all at once."""
        return -min((p.low for p in self.verdict.shifts), default=float("nan"))

    @property
    def scope(self) -> str:
        return "the method" if self.verdict.scope == "method" else "these models"


def harms(results: Path, apart: Sequence[str] = ()) -> Iterator[Harm]:
    """Every variant of every experiment of a study that was audited as a part of it.

    `apart` names experiments, or variants of any, in which something besides compression changed.
    """
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
            yield Harm(
                experiment=folder.name,
                variant=variant,
                kind=KINDS[str(own["method"].iloc[0])],
                apart=taught or variant in apart or folder.name in apart,
                zeros=float(own["sparsity"].mean()),
                smaller=float(dense["compressed_bytes"].mean() / own["compressed_bytes"].mean()),
                members=len(own),
                verdict=found.model if few else found.verdicts[-1],
            )


def by_kind(found: Sequence[Harm]) -> list[str]:
    """A row per kind of compression and level, where nothing but compression changed."""
    rows = []
    for kind in ORDER:
        for low, high in zip((-1, *BANDS), BANDS, strict=False):
            own = [
                harm
                for harm in found
                if harm.kind == kind and not harm.apart and low < round(100 * harm.zeros) <= high
            ]
            if own:
                rows.append([kind, _band(kind, low, high), *_together(own)])
    heads = ("compression", "zeros:", "variants:", "change of accuracy:", "somebody loses:",
             "the worst hit lose:", "where nobody is shown to lose:")  # fmt: skip
    return markdown(heads, rows)


def _band(kind: str, low: int, high: int) -> str:
    if kind == "int8":
        return ""
    return f"up to {high} %" if low < 0 else f"{low + 1}–{high} %"


def _together(own: Sequence[Harm]) -> list[str]:
    shifts = [100 * h.verdict.overall.shift for h in own if h.verdict.overall is not None]
    hit = [harm for harm in own if harm.hardest is not None]
    beyond = sum(harm.verdict.scope == "method" for harm in hit)
    asked = sum(harm.verdict.scope == "method" for harm in own)
    losses = [-100 * harm.hardest.shift for harm in hit if harm.hardest is not None]
    safe = [100 * harm.excluded for harm in own if harm.hardest is None]
    return [
        str(len(own)),
        _range(shifts, signed=True),
        f"{len(hit)} ({beyond} of {asked} beyond retraining)",
        _range(losses),
        "" if not safe else f"less than {max(safe):.1f} in {len(safe)}",
    ]


def _range(values: Sequence[float], *, signed: bool = False) -> str:
    if not values:
        return ""
    shape = "+.1f" if signed else ".1f"
    three = (median(values), min(values), max(values))
    told = [f"{round(value, 1) + 0.0:{shape}}" for value in three]  # never "-0.0"
    return told[0] if len(values) == 1 else f"{told[0]} ({told[1]} to {told[2]})"


def each(found: Sequence[Harm]) -> list[str]:
    """A row per variant."""
    rows = []
    for harm in sorted(found, key=lambda h: (h.experiment, ORDER.index(h.kind), h.zeros)):
        overall = harm.verdict.overall
        worst = harm.hardest
        rows.append([
            harm.experiment, harm.variant, str(harm.members), f"{100 * harm.zeros:.1f} %",
            f"{harm.smaller:.1f}×",
            "" if overall is None else _points(overall.shift, overall.low, overall.high),
            _who(worst), "" if worst is None else f"{100 * worst.baseline:.1f} %",
            "" if worst is None else _points(worst.shift, worst.low, worst.high),
            f"{len(harm.verdict.loses)}, {len(harm.verdict.gains)} of {len(harm.verdict.shifts)}",
            harm.scope,
        ])  # fmt: skip
    heads = ("experiment", "variant", "members:", "zeros:", "smaller:", "accuracy:",
             "who loses most", "had:", "loses:", "lose, gain:", "of")  # fmt: skip
    return markdown(heads, rows)


def _who(payer: Change | None) -> str:
    if payer is None:
        return "nobody shown"
    named = payer.name if payer.kind == "group" else f"class {payer.name}"
    return named if payer.task is None else f"{payer.task}: {named}"


def _points(value: float, low: float, high: float) -> str:
    """With the sign of every limit, also where it is nearly 0: it says who is shown to lose."""
    return f"{100 * value:+.2f} [{100 * low:+.2f}, {100 * high:+.2f}]"
