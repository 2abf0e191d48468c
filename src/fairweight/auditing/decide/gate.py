"""The one function that decides: for Python, the command line and CI alike.

One-sided α = 0.05, so the 90 % interval decides, of scope `model`. Pass: every lower limit is above
the threshold, uncorrected, because all must hold at once (intersection–union). Fail: an upper limit
is below it after Holm over all endpoints of the variant. Else: cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from fairweight.auditing.decide.criteria import demands
from fairweight.auditing.decide.endpoints import endpoints, unjudged_levels
from fairweight.auditing.decide.holm import divisor
from fairweight.auditing.decide.judge import CANNOT_TELL, FAIL, PASS, Outcome, judged
from fairweight.auditing.result import DIVISORS
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult
    from fairweight.specs.policy import Policy

Require: TypeAlias = Literal["all", "any"]
EXIT_CODES: dict[Outcome, int] = {PASS: 0, FAIL: 1, CANNOT_TELL: 3}


@dataclass(frozen=True)
class Verdict:
    """What the gate decided and why.

    rows  `judge.ROW_COLUMNS`, one per endpoint: `estimate`, `low`, `high` are the shift (or the
          value) with its 90 % interval; `certifiable` is the strictest limit that they certify
    """

    outcome: Outcome
    variants: dict[str, Outcome]
    rows: pd.DataFrame
    require: Require
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome == PASS

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 cannot tell."""
        return EXIT_CODES[self.outcome]


def decide(result: AuditResult, policy: Policy, require: Require = "all") -> Verdict:
    """Hold every variant of an audit against a policy.

    Parameters
    ----------
    require
        "all" variants must pass, or "any" one of them.
    """
    if require not in ("all", "any"):
        raise InputError(f"--require (require=) cannot be {require!r}; use all or any.")
    declared = endpoints(result, policy, demands(policy))
    rows = judged(declared)
    by_variant = rows.groupby("variant", sort=False)["decision"]
    variants = {str(variant): _all(decisions) for variant, decisions in by_variant}
    outcome = _all(variants.values()) if require == "all" else _any(variants.values())
    return Verdict(outcome, variants, rows, require, _notes(result, policy, declared, require))


def _all(decisions: Iterable[str]) -> Outcome:
    """One failure fails; one doubt leaves doubt."""
    found = set(decisions)
    return FAIL if FAIL in found else CANNOT_TELL if CANNOT_TELL in found else PASS


def _any(decisions: Iterable[str]) -> Outcome:
    """One pass passes; it fails only if all do."""
    found = set(decisions)
    return PASS if PASS in found else CANNOT_TELL if CANNOT_TELL in found else FAIL


def _mean_notes(result: AuditResult) -> list[str]:
    """Populations are judged by their mean: whoever ships one member must know."""
    rows = result.results
    sizes = rows.groupby("variant", sort=False)[["n_seeds_baseline", "n_seeds_compressed"]].max()
    several = [
        f"{variant} ({after:,} against {before:,})"
        for variant, before, after in sizes.fillna(1).astype(int).itertuples()
        if max(before, after) > 1
    ]
    if not several:
        return []
    return [
        f"Judged is the mean of the members, not any one of them: {', '.join(several)}; gate the "
        "model that ships by itself too."
    ]


def _notes(
    result: AuditResult, policy: Policy, declared: pd.DataFrame, require: Require
) -> tuple[str, ...]:
    notes = []
    tried = len(result.variants)
    if require == "any" and tried > 1:
        notes.append(
            f"Selected on these data: the best of {tried} variants looks better than it is; "
            "confirm the chosen one on rows that were not used for choosing."
        )
    notes += _mean_notes(result)
    missing = unjudged_levels(result, policy)
    if missing:
        notes.append(
            f"Not judged, because they stand for missing values: {', '.join(missing)} (a rule "
            "judges them if its groups name them)."
        )
    sizes = declared["variant"][declared["too_small"].isna()].value_counts().tolist()
    if any(divisor(size) is None for size in sizes):
        notes.append(
            f"More than {DIVISORS[-1]:,} endpoints per variant: a failure cannot be shown among so "
            "many; name the groups, classes or tasks that matter."
        )
    return tuple(notes)
