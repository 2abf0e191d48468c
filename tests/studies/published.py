"""Published results written by hand, and claims about them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from fairweight.specs.claims import Claim, Claims, Regime
from fairweight.specs.toml import read_spec
from fairweight.studies.claims import Judged, judged
from fairweight.studies.estimates import ClaimedValue

ROW: dict[str, Any] = {
    "variant": "pruned-90", "metric": "accuracy", "by": "overall", "group": None, "class": None,
    "n": 1000,
    "task": None, "scope": "model", "n_seeds_baseline": 5, "n_seeds_compressed": 5,
    "baseline": 0.9, "baseline_low": 0.88, "baseline_high": 0.92,
    "compressed": 0.85, "compressed_low": 0.83, "compressed_high": 0.87,
    "shift": -0.05, "ci_low": -0.07, "ci_high": -0.03, "sim_low": -0.09, "sim_high": -0.01,
    "interval": "by hand", "noise_floor": 0.01, "status": "ok",
}  # fmt: skip


def publish(root: Path, table: str, rows: list[dict[str, Any]], folder: str = "digits") -> None:
    """A table of an experiment's audit."""
    place = root / folder / "audit" / "tables"
    place.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(place / f"{table}.parquet")


def results(root: Path, *rows: dict[str, Any], folder: str = "digits") -> None:
    """Rows of results that differ from ROW in these values."""
    publish(root, "results", [ROW | row for row in rows], folder)


def members(values: dict[str, list[float]], **more: Any) -> list[dict[str, Any]]:
    """Values of the members 0, 1, … of every variant, as `per_seed` has them."""
    key = {"task": None, "metric": "accuracy", "by": "overall", "group": None, "class": None}
    return [
        {"variant": variant, "seed": str(seed), **key, "n": 100, "value": value, **more}
        for variant, own in values.items()
        for seed, value in enumerate(own)
    ]


def claim(**fields: Any) -> Claim:
    """A claim about the accuracy of `pruned-90`, but for these fields."""
    given: dict[str, Any] = {
        "id": "c", "statement": "It falls.", "place": "1", "quantity": "accuracy",
        "direction": "down", "smallest": 0.02, "why": "two in a hundred", "folder": "digits",
        "where": {"metric": "accuracy", "variant": "pruned-90"},
    }  # fmt: skip
    return read_spec(Claim, given | fields, "The claim")


WRITTEN = datetime(2026, 11, 17, 19, tzinfo=UTC)


def claims(*given: Claim, regime: tuple[Regime, ...] = ()) -> Claims:
    return Claims(
        paper="P", title="T", written=WRITTEN, known="nothing", claim=given, regime=regime
    )


def judge(root: Path, *, regime: tuple[Regime, ...] = (), **fields: Any) -> Judged:
    (found,) = judged(claims(claim(**fields), regime=regime), root)
    return found


def only(root: Path, **fields: Any) -> tuple[ClaimedValue, str]:
    """The estimate and the verdict of a claim of one line."""
    (line,) = judge(root, **fields).lines
    return line.estimate, line.verdict
