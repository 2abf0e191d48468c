"""The one function that decides: for Python, the command line and CI alike.

One-sided α = 0.05, so the 90 % interval decides, of scope `model`. Pass: every lower limit is above
the threshold, uncorrected, because all must hold at once (intersection–union). Fail: an upper limit
is below it after Holm over all endpoints of the variant. Else: cannot tell. Nothing passes because
it is absent: missing group values are a group, and examples that were left out count as errors.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing.choose.objectives import numeric_columns
from fairweight.auditing.gate.endpoints import demands, endpoints, unjudged_levels
from fairweight.auditing.gate.looks import Look, check_looks, look_key, opened
from fairweight.auditing.metrics import metric
from fairweight.auditing.metrics.outcomes import ANY
from fairweight.auditing.result import DIVISORS, AuditResult
from fairweight.auditing.schema import BOUND, NOT_ESTIMABLE, Status, column_names, frame, typed
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.policy import Policy

# The decision about every single endpoint, with its reason in points and percent.
#
# Pass: the lower limit is above the threshold, uncorrected. Fail: the upper limit is below it
# after Holm's step-down correction over the endpoints of the variant. Limits are known at a few
# levels only; the next wider one is taken, so nothing passes or fails too easily. With several
# looks at one test set every level is divided by their number once more.

Outcome: TypeAlias = Literal["pass", "fail", "cannot tell"]
PASS: Outcome = "pass"
FAIL: Outcome = "fail"
CANNOT_TELL: Outcome = "cannot tell"

NO_WIDTH = 1e-12
MINUS = "\N{MINUS SIGN}"
NAMES = {"margin": "margin", "min": "floor", "max": "ceiling", "recovery": "recovery"}


def divisor(endpoints: int) -> int | None:
    """The least available divisor of α that is not below `endpoints`; None beyond the last.

    A larger divisor means a wider limit, so rounding up never fails a model too easily.

    >>> [divisor(m) for m in (1, 4, 5, 11, 1000, 1001)]
    [1, 4, 6, 20, 1000, None]
    """
    at = bisect_left(DIVISORS, endpoints)
    return DIVISORS[at] if at < len(DIVISORS) else None


def rejected(strength: Sequence[int] | NDArray[np.int_], looks: int = 1) -> NDArray[np.int_]:
    """At which divisor each endpoint is rejected by Holm's method; 0 where it is not.

    Parameters
    ----------
    strength
        The largest divisor of α at which the endpoint alone would be rejected; 0 for none. Every
        endpoint counts, so those that cannot be rejected are in it with 0.
    looks
        How many looks share α.

    Notes
    -----
    The i-th strongest of m is compared at (m − i + 1) × looks, and the first that does not hold
    ends it.

    Examples
    --------
    Three endpoints: 3 is needed first, then 2, then 1.

    >>> rejected([2, 4, 0]).tolist(), rejected([2, 2, 2]).tolist()
    ([2, 3, 0], [0, 0, 0])
    """
    found = np.zeros(len(strength), dtype=np.int_)
    order = np.argsort(-np.asarray(strength), kind="stable")
    for place, index in enumerate(order):
        needed = divisor((len(order) - place) * looks)
        if needed is None or strength[index] < needed:
            break
        found[index] = needed
    return found


def judged(declared: pd.DataFrame, looks: int = 1, closed: str | None = None) -> pd.DataFrame:
    """The endpoints (as `endpoints` returns them) with their decisions: the table `endpoints`.

    Parameters
    ----------
    looks
        How many looks at this test set share α.
    closed
        Why nothing may be judged at all: then every endpoint is `cannot tell`, without numbers.
    """
    if closed is not None:
        away = [name for name in declared.columns if name.startswith(("low_", "high_"))]
        declared = declared.assign(**dict.fromkeys([*away, "estimate"], np.nan))
    sign, threshold = declared["sign"].to_numpy(), declared["threshold"].to_numpy(dtype=float)
    # Limits at every divisor, (endpoints, divisors), on the scale on which more is better. They
    # hold the estimate at least: replicates of gaps lie above it, and a gap of 0 must not be found
    # too large because of that.
    smallest = declared[[f"low_{j}" for j in DIVISORS]].to_numpy(dtype=float, na_value=np.nan)
    largest = declared[[f"high_{j}" for j in DIVISORS]].to_numpy(dtype=float, na_value=np.nan)
    shift = declared["estimate"].to_numpy(dtype=float, na_value=np.nan)
    smallest = np.minimum(smallest, shift[:, None])
    largest = np.maximum(largest, shift[:, None])
    up = sign > 0
    low = np.where(up[:, None], smallest, -largest)
    high = np.where(up[:, None], largest, -smallest)
    at = DIVISORS.index(divisor(looks) or DIVISORS[-1])
    least, needed, baseline = _with_left_out(declared, low[:, at])
    unsound = _unsound(declared, low[:, at], high[:, at], closed)
    usable = np.array([reason is None for reason in unsound], dtype=bool)
    # The largest divisor up to which every upper limit is below the threshold; 0 for none.
    holds = np.cumprod(high < threshold[:, None], axis=1).sum(axis=1)
    strength = np.where(usable, np.array([0, *DIVISORS], dtype=np.int_)[holds], 0)
    # At which divisor each endpoint fails (0: not), among how many of its variant. Who counts
    # depends on sizes only; what is unusable for another reason counts with strength 0.
    failed_at, looked_at = np.zeros((2, len(declared)), dtype=np.int_)
    sized = declared["too_small"].isna().to_numpy(dtype=bool)
    variants = declared["variant"].to_numpy()
    for variant in dict.fromkeys(variants):
        counted = np.flatnonzero(sized & (variants == variant))
        failed_at[counted] = rejected(strength[counted], looks)
        looked_at[counted] = len(counted)
    stored = [DIVISORS.index(j) if j else at for j in failed_at.tolist()]
    limits = [
        Limits(*of)
        for of in zip(
            declared["criterion"].tolist(),
            declared["limit"].tolist(),
            needed.tolist(),
            baseline.tolist(),
            least.tolist(),
            high[np.arange(len(high)), stored].tolist(),
            declared["worst"].tolist(),
            [metric(name).unit != "number" for name in declared["metric"]],
            strict=True,
        )
    ]
    seen = usable & (low[:, at] > threshold)
    above = seen & (least > needed)
    absent = _told_left_out(declared)
    states = [Status.of(cell) for cell in declared["status"]]
    how = [state.reason if state.kind == BOUND else "" for state in states]
    decisions: list[Outcome] = []
    reasons: list[str] = []
    for i, (of, unusable) in enumerate(zip(limits, unsound, strict=True)):
        aside = "".join(f"; {told}" for told in (how[i], absent[i]) if told)
        if unusable is not None:
            decisions.append(CANNOT_TELL)
            reasons.append(unusable)
        elif above[i]:
            decisions.append(PASS)
            reasons.append(why_pass(of) + aside)
        elif failed_at[i]:
            decisions.append(FAIL)
            reasons.append(why_fail(of, int(looked_at[i])))
        else:
            decisions.append(CANNOT_TELL)
            why = why_cannot_tell(
                of, int(looked_at[i]), alone=bool(strength[i]), seen=bool(seen[i])
            )
            reasons.append(why + aside)
    failed = failed_at > 0
    deciding = np.array([of.high if f else of.low for of, f in zip(limits, failed, strict=True)])
    certified = np.array([of.certifiable for of in limits])
    of_margin = (declared["criterion"] == "margin").to_numpy()
    with np.errstate(invalid="ignore"):
        ratio = 1 + shift / declared["baseline"].to_numpy(dtype=float)
    made = declared.assign(
        by=declared["kind"],
        threshold=sign * needed,
        low=np.where(up, low[:, at], -high[:, at]),
        high=np.where(up, high[:, at], -low[:, at]),
        bound=np.where(usable, sign * deciding, np.nan),
        ratio=ratio,
        decision=decisions,
        equivalent=above & of_margin & (high[:, at] < declared["limit"].to_numpy(dtype=float)),
        certifiable=np.where(usable, certified, np.nan),
        reason=reasons,
    )
    return typed("endpoints", made[list(column_names("endpoints"))])


def _with_left_out(declared: pd.DataFrame, low: Floats) -> tuple[Floats, Floats, Floats]:
    """Lower limit, what it must exceed, and the baseline's value, with what was left out counted.

    Examples that were left out are errors of the compressed model alone: the baseline is right on
    all of them. Without any, everything stays as it is; where their effect has no bound the limit
    is NaN.
    """
    share = declared["share_left_out"].to_numpy(dtype=float)
    worst = declared["worst"].to_numpy(dtype=float)
    baseline = declared["baseline"].to_numpy(dtype=float)
    threshold = declared["threshold"].to_numpy(dtype=float)
    with np.errstate(invalid="ignore"):  # of numbers the worst has no bound
        least = np.where(share == 0, low, (1 - share) * low + share * worst)
    had = np.where(share == 0, baseline, (1 - share) * baseline + share)
    of_baseline = (declared["criterion"] == "recovery").to_numpy()
    limit = declared["limit"].to_numpy(dtype=float)
    return least, np.where(of_baseline, (limit - 1) * had, threshold), had


def _unsound(
    declared: pd.DataFrame, low: Floats, high: Floats, closed: str | None
) -> list[str | None]:
    """Why an endpoint has no limits that could decide; None where it has."""
    found: list[str | None] = []
    for too_small, status, n, least, width, threshold in zip(
        declared["too_small"],
        map(Status.of, declared["status"]),
        declared["n"].to_numpy(dtype=float, na_value=np.nan),
        low,
        high - low,
        declared["threshold"],
        strict=True,
    ):
        one_sided = status.kind == BOUND
        if closed is not None:
            found.append(closed)
        elif isinstance(too_small, str) and n != 0:
            found.append(too_small)
        elif not status.ok and not one_sided:
            found.append(_why_not(status))
        elif np.isnan(threshold):
            found.append("the audit does not hold the baseline's value")
        elif not np.isfinite(least if one_sided else width):
            found.append("it has no limits")
        elif width <= NO_WIDTH:
            # All replicates agree because no example differs: that is no knowledge of rare ones.
            found.append("its interval has no width, because no example differs")
        else:
            found.append(None)
    return found


def _why_not(status: Status) -> str:
    """A status as the reason of an endpoint.

    >>> _why_not(Status("not_estimable", "none below 1,000 examples per class"))
    'it has no limits below 1,000 examples per class'
    >>> _why_not(Status("not_estimable", "no scores"))
    'not estimable: no scores'
    """
    if status.kind == NOT_ESTIMABLE and status.reason.startswith("none"):
        return status.reason.replace("none", "it has no limits", 1).replace("_", " ")
    return str(status).replace("_", " ")


def _told_left_out(declared: pd.DataFrame) -> list[str | None]:
    """What was left out of each endpoint's row; None where nothing was."""
    found: list[str | None] = []
    columns = ("n_left_out", "lacks", "share_left_out", "metric")
    for n, lacks, share, name in zip(*(declared[key] for key in columns), strict=True):
        if n == 0:
            found.append(None)
            continue
        number = "an unknown number of" if np.isnan(n) else f"{n:,.0f}"
        effect = (
            f"and what they do to {name} has no bound: give their predictions"
            if np.isnan(share)
            else "and are counted as errors of the compressed model"
        )
        found.append(f"{number} examples were left out (missing from {lacks}) {effect}")
    return found


# --- in words ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits on the scale on which more is better, and what they are compared with."""

    criterion: str  # margin | min | max | recovery
    limit: float  # as the policy has it
    threshold: float  # what the lower limit must exceed
    baseline: float  # its value, where a share of it must be kept
    low: float  # uncorrected; what was left out is counted as errors
    high: float  # corrected where the endpoint fails, else uncorrected
    worst: float  # the least that is possible at all
    share: bool  # whether it is said in points and percent

    @property
    def certifiable(self) -> float:
        """The strictest limit that these data certify; NaN if none.

        A margin must be above it, a floor below it, a ceiling above it, a recovery below it.
        """
        if not self.low > self.worst:
            return math.nan
        if self.criterion == "margin":
            return max(0.0, -self.low)
        if self.criterion == "recovery":
            return min(1.0, 1 + self.low / self.baseline)
        return self.low if self.criterion == "min" else -self.low

    def level(self, value: float) -> str:
        """A value in the metric's unit."""
        return f"{plain(100 * value)} %" if self.share else plain(value)

    def size(self, value: float) -> str:
        """The size of a change."""
        if not self.share:
            return plain(value)
        number = plain(100 * value)
        return f"{number} point{'' if number == '1' else 's'}"

    @property
    def allowed(self) -> str:
        """The limit in words; of a recovery, the loss that it allows."""
        if self.criterion == "margin":
            return f"limit {self.size(self.limit)}"
        if self.criterion == "recovery":
            kept = f"{plain(100 * self.limit)} % of {self.level(self.baseline)}"
            return f"limit {self.size(-self.threshold)}, which keeps {kept}"
        return f"{NAMES[self.criterion]} {self.level(self.limit)}"

    @property
    def possible(self) -> str:
        """The worst that these data allow."""
        if self.criterion in ("margin", "recovery"):
            return f"the loss may be up to {self.size(-self.low)}"
        if self.criterion == "min":
            return f"it may be as low as {self.level(self.low)}"
        return f"it may be as high as {self.level(-self.low)}"


def why_pass(of: Limits) -> str:
    """Why an endpoint passes."""
    if of.criterion in ("margin", "recovery"):
        most = f"the loss is at most {of.size(-of.low)}" if of.low < 0 else "there is no loss"
        return f"{most} ({of.allowed})"
    if of.criterion == "min":
        return f"it is at least {of.level(of.low)} ({of.allowed})"
    return f"it is at most {of.level(-of.low)} ({of.allowed})"


def why_fail(of: Limits, endpoints: int) -> str:
    """Why an endpoint fails."""
    corrected = f"; Holm over {endpoints:,} checks" if endpoints > 1 else ""
    if of.criterion in ("margin", "recovery"):
        return f"the loss is at least {of.size(-of.high)} ({of.allowed}{corrected})"
    if of.criterion == "min":
        return f"it is at most {of.level(of.high)} ({of.allowed}{corrected})"
    return f"it is at least {of.level(-of.high)} ({of.allowed}{corrected})"


def why_cannot_tell(of: Limits, endpoints: int, *, alone: bool, seen: bool) -> str:
    """Why it is open.

    `alone`: the row by itself would fail, but not among all that were looked at. `seen`: it would
    pass, had nothing been left out.
    """
    what = f"{of.possible} ({of.allowed})"
    if alone:
        what += f"; by itself it would fail, but not as one of {endpoints:,} checks (Holm)"
    if seen:
        what += "; it would pass without the examples that were left out"
    if math.isnan(of.certifiable):
        return f"{what}; with these data no {of.criterion} would pass"
    upwards = of.criterion in ("min", "recovery")
    held = below(of.certifiable) if upwards else above(of.certifiable)
    return f"{what}; {of.criterion} = {held} would pass"


def plain(value: float) -> str:
    """Four digits.

    >>> plain(-0.0123456), plain(0.02)
    ('−0.01235', '0.02')
    """
    return f"{value:.4g}".replace("-", MINUS)


def above(value: float) -> str:
    """The next number of four decimals (or digits) that is really larger, to copy into a policy.

    >>> above(0.0312345), above(0.02), above(12.3456)
    ('0.0313', '0.0201', '12.35')
    """
    step = _step(value)
    return plain((math.floor(value / step + 1e-9) + 1) * step)


def below(value: float) -> str:
    """The same downwards.

    >>> below(0.79996), below(0.8)
    ('0.7999', '0.7999')
    """
    step = _step(value)
    return plain((math.ceil(value / step - 1e-9) - 1) * step)


def _step(value: float) -> float:
    return float(10.0 ** (math.floor(math.log10(abs(value))) - 3)) if abs(value) >= 1 else 1e-4


Require: TypeAlias = Literal["all", "any"]
EXIT_CODES: dict[Outcome, int] = {PASS: 0, FAIL: 1, CANNOT_TELL: 3}


@dataclass(frozen=True)
class Verdict:
    """What the gate decided and why.

    rows  the table `endpoints`, one per endpoint: `estimate`, `low`, `high` are the shift (or the
          value) with its 90 % interval, or wider where looks are counted; `bound` is the one limit
          that decides, `certifiable` the strictest limit that the data certify
    """

    outcome: Outcome
    variants: dict[str, Outcome]
    rows: pd.DataFrame
    require: Require
    notes: tuple[str, ...] = ()
    look: Look | None = None  # which of several looks at these examples, if they are counted
    excluded: tuple[str, ...] = ()  # groups that the policy does not judge
    skipped: tuple[str, ...] = ()  # groups and classes that are too small, where it skips them

    @property
    def passed(self) -> bool:
        """Whether every requirement is shown to hold; false where the data cannot tell."""
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
    named = policy
    if result.outcome is not None:  # a rule may call the outcome just that; here it has its name
        rules = tuple(
            replace(rule, metric=result.primary) if rule.metric == ANY else rule
            for rule in policy.rule
        )
        named = replace(policy, rule=rules)
    declared = endpoints(result, named, demands(named))
    limits = limit_rows(result.variants_table, result.variants, named)
    if looks is None or log is None:
        return _decided(result, named, require, None, declared, limits)
    test_set, key = result.test_set, look_key(result, policy)
    if test_set is None:
        raise InputError(
            "The audit does not say which test set it is of, so its looks cannot be counted; make "
            "it again with --policy, or give the predictions themselves."
        )
    with opened(log) as book:
        look = book.look(test_set, key, looks)
        verdict = _decided(result, named, require, look, declared, limits)
        if not look.again and not look.spent:
            book.add(test_set, key, look, verdict.outcome, list(verdict.variants))
    return verdict


def _decided(
    result: AuditResult,
    policy: Policy,
    require: Require,
    look: Look | None,
    declared: pd.DataFrame,
    limits: pd.DataFrame,
) -> Verdict:
    """The verdict on every endpoint, every variant and all of them.

    What can be refused was refused before, so that a look is never begun for nothing.
    """
    excluded, skipped = (_names(declared[declared["aside"] == why]) for why in _ASIDE)
    declared = declared[declared["aside"].isna()].reset_index(drop=True)
    closed = None
    if look is not None and look.spent:
        closed = (
            f"all {look.of:,} looks at these examples are used up; gate on examples that were not "
            "looked at before"
        )
    rows = judged(declared, 1 if look is None else look.of, closed)
    if result.outcome is not None and not result.outcome.binary:
        # Every pass says what may stay unseen: losses that are rarer than 3 in n examples.
        reasons = []
        for decision, reason, variant, n in zip(
            rows["decision"], rows["reason"], rows["variant"], rows["n"], strict=True
        ):
            loss = result.largest_losses.get(variant, math.nan)
            if decision == PASS and loss > 0 and n:
                reason += (
                    f"; what is rarer than 3 in {int(n):,} examples stays unseen: at the largest "
                    f"loss seen that is up to {plain(3 / float(n) * loss)}"
                )
            reasons.append(reason)
        rows = rows.assign(reason=reasons)
    if policy.limit:
        rows = typed("endpoints", pd.concat([rows, limits], ignore_index=True))
    by_variant = rows.groupby("variant", sort=False)["decision"]
    variants = {str(variant): _all(decisions) for variant, decisions in by_variant}
    outcome = _all(variants.values())
    if require == "any":  # one pass passes; it fails only if all do
        found = set(variants.values())
        outcome = PASS if PASS in found else CANNOT_TELL if CANNOT_TELL in found else FAIL
    notes = _notes(result, policy, declared, look)
    return Verdict(outcome, variants, rows, require, notes, look, excluded, skipped)


_ASIDE = ("excluded", "skipped")


def _names(rows: pd.DataFrame) -> tuple[str, ...]:
    """Groups by their names, classes as `class 3`, each once."""
    names = (
        group if isinstance(group, str) else f"class {cls}"
        for group, cls in zip(rows["group"], rows["class"], strict=True)
    )
    return tuple(dict.fromkeys(names))


def limit_rows(table: pd.DataFrame | None, variants: Sequence[str], policy: Policy) -> pd.DataFrame:
    """An endpoint for every limit of every variant: its number as measured, without an interval.

    Of several members the one that is furthest out decides, because it may be the one that ships.
    """
    rows = []
    for number, limit in enumerate(policy.limit, start=1):
        known = [] if table is None else numeric_columns(table)
        if table is None or limit.column not in known:
            what = f"Limit {number} of the policy: the column"
            remedy = "Give a variants table with it: --variants variants.csv."
            raise UnknownNameError(what, limit.column, known, remedy=remedy)
        numbers = table.groupby("variant")[limit.column]
        for variant in variants:
            for criterion, bound in limit.criteria():
                own = numbers.get_group(variant) if variant in numbers.groups else None
                measured = math.nan
                if own is not None and own.notna().all():
                    measured = float(own.max() if criterion == "max" else own.min())
                kept = measured <= bound if criterion == "max" else measured >= bound
                decision: Outcome = PASS if kept else FAIL
                reason = f"{plain(measured)}, as the variants table has it"
                if math.isnan(measured):
                    decision = CANNOT_TELL
                    reason = f"the variants table does not have its {limit.column}"
                rows.append(
                    {
                        "variant": variant,
                        "metric": limit.column,
                        "by": "variant",
                        "criterion": criterion,
                        "limit": bound,
                        "threshold": bound,
                        "estimate": measured,
                        "bound": measured,
                        "n_left_out": 0,
                        "decision": decision,
                        "equivalent": False,
                        "reason": reason,
                    }
                )
    return frame("endpoints", rows)


def _all(decisions: Iterable[str]) -> Outcome:
    """One failure fails; one doubt leaves doubt."""
    found = set(decisions)
    return FAIL if FAIL in found else CANNOT_TELL if CANNOT_TELL in found else PASS


def _notes(
    result: AuditResult, policy: Policy, declared: pd.DataFrame, look: Look | None
) -> tuple[str, ...]:
    """What a reader of the verdict must know beside it."""
    notes = []
    tried = len(result.variants)
    if tried > 1:
        notes.append(
            f"Selected on these data: {tried} variants were tried, and the best of them looks "
            "better than it is. Confirm the one you ship on rows that were not used for choosing."
        )
    # Populations are judged by their mean: whoever ships one member must know.
    numbers = result.results.groupby("variant", sort=False)
    members = numbers[["n_seeds_baseline", "n_seeds_compressed"]].max().fillna(1).astype(int)
    several = [
        f"{variant} ({after:,} against {before:,})"
        for variant, before, after in members.itertuples()
        if max(before, after) > 1
    ]
    if several:
        notes.append(
            f"Judged is the mean of the members, not any one of them: {', '.join(several)}; gate "
            "the model that ships by itself too."
        )
    missing = unjudged_levels(result, policy)
    if missing:
        notes.append(
            f"Not judged, because the policy names its groups one by one: {', '.join(missing)}."
        )
    looks = 1 if look is None else look.of
    if look is not None and look.spent:
        notes.append(f"All {look.of:,} looks at these examples are used up.")
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
            f"More than {DIVISORS[-1]:,} checks per variant{' and look' if look else ''}: a "
            "failure cannot be shown among so many; name the groups, classes or tasks that matter."
        )
    return tuple(notes)
