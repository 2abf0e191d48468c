"""The one function that decides: for Python, the command line and CI alike.

One-sided α = 0.05, so the 90 % interval decides, of scope `model`. Pass: every lower limit is above
the threshold, uncorrected, because all must hold at once (intersection–union). Fail: an upper limit
is below it after Holm over all endpoints of the variant. Else: cannot tell. Nothing passes because
it is absent: missing group values are a group, and examples that were left out count as errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from fairweight.auditing.decide.criteria import demands
from fairweight.auditing.decide.endpoints import endpoints, unjudged_levels
from fairweight.auditing.decide.judge import CANNOT_TELL, FAIL, PASS, Outcome, divisor, judged
from fairweight.auditing.decide.looks import Look, check_looks, look_key, opened, test_set_of
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
          value) with its 90 % interval, or wider where looks are counted; `bound` is the one limit
          that decides, `certifiable` the strictest limit that the data certify
    """

    outcome: Outcome
    variants: dict[str, Outcome]
    rows: pd.DataFrame
    require: Require
    notes: tuple[str, ...] = ()
    look: Look | None = None  # which of several looks at these examples, if they are counted

    @property
    def passed(self) -> bool:
        return self.outcome == PASS

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 cannot tell."""
        return EXIT_CODES[self.outcome]


def decide(
    result: AuditResult,
    policy: Policy,
    require: Require = "all",
    *,
    looks: int | None = None,
    log: str | Path | None = None,
) -> Verdict:
    """Check every variant of an audit against a policy.

    Parameters
    ----------
    require
        "all" variants must pass, or "any" one of them.
    looks, log
        How many times these examples may be looked at, and the file that counts the looks.
    """
    if require not in ("all", "any"):
        raise InputError(f"--require (require=) cannot be {require!r}; use all or any.")
    check_looks(looks, log)
    if looks is None or log is None:
        return _decided(result, policy, require, None)
    test_set, key = test_set_of(result), look_key(result, policy)
    with opened(log) as book:
        look = book.look(test_set, key, looks)
        verdict = _decided(result, policy, require, look)
        if not look.again and not look.spent:
            book.add(test_set, key, look, verdict.outcome, list(verdict.variants))
    return verdict


def _decided(result: AuditResult, policy: Policy, require: Require, look: Look | None) -> Verdict:
    declared = endpoints(result, policy, demands(policy))
    closed = None
    if look is not None and look.spent:
        closed = (
            f"all {look.of:,} looks at these examples are spent; judge on examples that nobody has "
            "looked at"
        )
    rows = judged(declared, 1 if look is None else look.of, closed)
    by_variant = rows.groupby("variant", sort=False)["decision"]
    variants = {str(variant): _all(decisions) for variant, decisions in by_variant}
    outcome = _all(variants.values()) if require == "all" else _any(variants.values())
    notes = _notes(result, policy, declared, look)
    return Verdict(outcome, variants, rows, require, notes, look)


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
    result: AuditResult, policy: Policy, declared: pd.DataFrame, look: Look | None
) -> tuple[str, ...]:
    notes = []
    tried = len(result.variants)
    if tried > 1:
        notes.append(
            f"Selected on these data: {tried} variants were tried, and the best of them looks "
            "better than it is. Confirm the one you ship on rows that were not used for choosing."
        )
    notes += _mean_notes(result)
    missing = unjudged_levels(result, policy)
    if missing:
        notes.append(
            f"Not judged, because the policy names its groups one by one: {', '.join(missing)}."
        )
    looks = 1 if look is None else look.of
    if look is not None and look.spent:
        notes.append(f"All {look.of:,} looks at these examples are spent.")
    elif look is not None:
        level, before = divisor(looks), ", taken before" if look.again else ""
        stored = "" if level == looks else f"; limits are stored for 5 % / {level:,}"
        notes.append(
            f"Look {look.number:,} of {looks:,} at these examples{before}: each bound errs with "
            f"5 % / {looks:,}{stored}."
        )
    sizes = declared["variant"][declared["too_small"].isna()].value_counts().tolist()
    if any(divisor(size * looks) is None for size in sizes):
        notes.append(
            f"More than {DIVISORS[-1]:,} endpoints per variant{' and look' if look else ''}: a "
            "failure cannot be shown among so many; name the groups, classes or tasks that matter."
        )
    return tuple(notes)
