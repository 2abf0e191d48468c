"""What was tried against the losses: whether it did what it is for, and what it cost."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pandas as pd
from study_tables import markdown

from fairweight.base.wording import shown
from fairweight.specs.claims import Claims
from fairweight.specs.toml import read_spec
from fairweight.studies.claims import CANNOT_TELL, DOES_NOT, REPRODUCES, SMALLER, Judged, judged
from fairweight.studies.claims_page import told

TRIED = Path(__file__).with_name("mitigations.toml")
CASCADE = "*-cascade/cascade_curve.parquet"
WORDS = {
    REPRODUCES: "yes",
    SMALLER: "yes, less than what matters",
    DOES_NOT: "no",
    CANNOT_TELL: "cannot tell",
}


def tried(studies: Mapping[str, Path]) -> list[str]:
    """A row per mitigation, what it should do, and variant."""
    held = tomllib.loads(TRIED.read_text(encoding="utf-8"))
    rows: list[list[str]] = []
    for study in [name for name in held if name in studies]:
        table = held[study]
        for one in judged(read_spec(Claims, table, f"'{TRIED.name}', {study}"), studies[study]):
            rows += _rows(study, one)
    heads = ("mitigation", "what it should do", "variant", "change:", "does it?", "its price")
    return markdown(heads, _said_once(rows))


def _said_once(rows: list[list[str]]) -> list[list[str]]:
    """Without what the row above says already of the mitigation, its purpose and its price."""
    shorter = rows[:1]
    for above, row in pairwise(rows):
        same = row[0] == above[0]
        purpose = "" if same and row[1] == above[1] else row[1]
        shorter.append(["", purpose, *row[2:-1], ""] if same else row)
    return shorter


def _rows(study: str, one: Judged) -> list[list[str]]:
    claim = one.claim
    rows = []
    for line, estimate, verdict in one.lines:
        variant = line or str(claim.where["variant"])
        reason = f": {shown(estimate.reason)}" if estimate.reason else ""
        rows.append([
            f"[{shown(claim.place)}]({study}.md)", shown(claim.statement), shown(variant),
            told(estimate), f"{WORDS[verdict]}{reason}", shown(claim.why),
        ])  # fmt: skip
    return rows


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
