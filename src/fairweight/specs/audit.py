"""The statistics of an audit: every setting with its default, its meaning and its option."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from fairweight.base.fields import choice, option, plain, refuse
from fairweight.errors import InputError

STATISTICS = "Statistics"


MARGIN = 0.02  # the loss of a rate that matters, and of an outcome as a part of its range


def _read_margin(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} {text!r} is no number; give one such as 0.02.") from None


def the_margin(margin: float | None, reference_shift: float | None) -> float | None:
    """The margin, by its name or by that of version 0.1.0; both would be two margins."""
    if margin is not None and reference_shift is not None:
        raise InputError(
            "--margin (margin=) and --reference-shift (reference_shift=), its older name, were "
            "both given; give --margin alone."
        )
    return margin if reference_shift is None else reference_shift


class Correction(StrEnum):
    HOLM, BH, NONE = "holm", "bh", "none"


class Members(StrEnum):
    RETRAINED, REPEATED = "retrained", "repeated"


class DrawnLimits(StrEnum):
    SOME, ALL = "some", "all"


class ZeroBaseline(StrEnum):
    DROP, RAISE, EPSILON, ABSOLUTE = "drop", "raise", "epsilon", "absolute"


@dataclass(frozen=True)
class AuditOptions:
    """How an audit counts, compares and judges; every setting is part of its provenance.

    Parameters
    ----------
    alpha
        Level of intervals and tests.
    members
        What several seeds of a variant are: models that were trained again ("retrained"), or runs
        of the same model ("repeated": decoding repeats, checkpoints). These are averaged within
        each example, and nothing is said about the method.
    n_boot
        Bootstrap replicates.
    drawn_limits
        "some": where groups × classes exceed 5,000, bootstrapped metrics by group (precision,
        kappa, balanced accuracy, ...) and their gaps are given without limits and tests, but for
        those that a policy names; "all" computes every one.
    correction
        "holm", "bh" or "none": how the confirmatory families are corrected.
    min_group
        The least size of a group that is judged.
    random_state
        The seed of all random numbers.
    exact
        Exact McNemar tests instead of mid-p.
    margin
        The loss that matters: for it the report says whether it is ruled out, and how many
        examples that would take. A fraction of rates (0.02 by default), in the outcome's own unit
        of numbers; these have none by default, but 2 % of their range where that was said.
    group_error
        Share of group labels that may be wrong; the range of the corrected excess is then given.
    zero_baseline
        What CEV and SDE do with a class in which the baseline makes no errors: "drop", "raise",
        "epsilon" or "absolute".
    fixed_side, filters
        Of bias amplification: the level whose side is always watched, and its skip rules.
    confirmatory
        (metric, kind of row) pairs declared before looking, such as ("fnr", "group"): their
        families are corrected like accuracy by group (`Policy.confirmatory()`).
    """

    alpha: float = option(0.05, "Level of intervals and tests.", STATISTICS, "--alpha")
    members: Members | str = option(
        Members.RETRAINED,
        "What several seeds are: models trained again, or the same model run again (decoding "
        "repeats, checkpoints).",
        STATISTICS,
        "--members",
        "retrained|repeated",
    )
    n_boot: int = option(2000, "Bootstrap replicates.", STATISTICS, "--n-boot")
    drawn_limits: DrawnLimits | str = option(
        DrawnLimits.SOME,
        "Where groups × classes exceed 5,000, bootstrapped metrics by group have no limits (some), "
        "or all of them do (all).",
        STATISTICS,
        "--drawn-limits",
        "some|all",
    )
    correction: Correction | str = option(
        Correction.HOLM,
        "Correction of the confirmatory families.",
        STATISTICS,
        "--correction",
        "holm|bh|none",
    )
    min_group: int = option(10, "Smaller groups are shown, not judged.", STATISTICS, "--min-group")
    random_state: int = option(0, "Seed of all random numbers.", STATISTICS, "--random-state")
    exact: bool = option(False, "Exact McNemar tests instead of mid-p.", STATISTICS, "--exact")
    margin: float | None = option(
        None,
        "The loss that matters: a fraction of rates (0.02, or 2 points, by default), in the "
        "outcome's own unit of numbers. The report says for whom it is ruled out, and how many "
        "examples that takes.",
        STATISTICS,
        "--margin",
        "X",
        _read_margin,
    )
    group_error: float = option(
        0.0,
        "Share of group labels that may be wrong; prints the corrected excess.",
        STATISTICS,
        "--group-error",
    )
    zero_baseline: ZeroBaseline | str = option(
        ZeroBaseline.DROP,
        "CEV and SDE: classes in which the baseline makes no errors.",
        STATISTICS,
        "--zero-baseline",
        "drop|raise|epsilon|absolute",
    )
    fixed_side: str | None = option(
        None,
        "Bias amplification: the side that is always watched (backdoors).",
        STATISTICS,
        "--fixed-side",
        "COL=LEVEL",
    )
    filters: bool = option(
        True, "Bias amplification without its skip rules.", STATISTICS, "--no-filters"
    )
    confirmatory: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        def need(ok: bool, name: str, rule: str) -> None:
            if not ok:
                raise refuse(self, name, getattr(self, name), rule)

        need(_between(self.alpha, 0, 1), "alpha", "give a level between 0 and 1, such as 0.05")
        for name, least in (("n_boot", 20), ("min_group", 1), ("random_state", 0)):
            value = getattr(self, name)
            whole = hasattr(value, "__index__") and not isinstance(value, bool)
            need(whole and value >= least, name, f"give a whole number of at least {least}")
            object.__setattr__(self, name, int(value))
        for name, kind in (
            ("correction", Correction), ("members", Members), ("zero_baseline", ZeroBaseline),
            ("drawn_limits", DrawnLimits),
        ):  # fmt: skip
            choice(self, name, kind)
        known = self.margin is None or _between(self.margin, 0, math.inf)
        need(known, "margin", "give a number above 0, such as 0.02")
        wrong = self.group_error == 0 or _between(self.group_error, 0, 0.5)
        need(wrong, "group_error", "give a share of wrong labels below 0.5")
        pairs = tuple((str(metric), str(kind)) for metric, kind in self.confirmatory)
        object.__setattr__(self, "confirmatory", pairs)

    def for_rates(self) -> AuditOptions:
        """The same with the margin of rates, which is a fraction."""
        if self.margin is None:
            return replace(self, margin=MARGIN)
        if self.margin >= 1:
            meant = f" (did you mean {self.margin / 100:g}?)" if self.margin < 100 else ""
            rule = f"give a fraction between 0 and 1, such as 0.02{meant}"
            raise refuse(self, "margin", self.margin, rule)
        return self

    def for_numbers(self, span: tuple[float, float] | None) -> AuditOptions:
        """The same with the margin of an outcome in its own unit, which may have none."""
        if self.margin is not None or span is None:
            return self
        return replace(self, margin=MARGIN * (span[1] - span[0]))

    def to_json(self) -> dict[str, Any]:
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> AuditOptions:
        """What `to_json` wrote; fields that this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in held.items() if name in known})


def _between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low < value < high
