"""The decision about every single endpoint, with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.decide.holm import rejected
from fairweight.auditing.decide.reasons import Limits, why_cannot_tell, why_fail, why_pass
from fairweight.auditing.result import DIVISORS

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.counts.stats import Floats

Outcome: TypeAlias = Literal["pass", "fail", "cannot tell"]
PASS: Outcome = "pass"
FAIL: Outcome = "fail"
CANNOT_TELL: Outcome = "cannot tell"

NO_WIDTH = 1e-12
ROW_COLUMNS: tuple[str, ...] = (
    "variant", "task", "metric", "by", "group", "class", "n", "rule", "criterion", "limit",
    "estimate", "low", "high", "decision", "equivalent", "certifiable", "reason",
)  # fmt: skip


def judged(declared: pd.DataFrame) -> pd.DataFrame:
    """The endpoints (as `endpoints` returns them) with their decisions: ROW_COLUMNS."""
    sign, threshold = declared["sign"].to_numpy(), declared["threshold"].to_numpy(dtype=float)
    low, high = _oriented(declared, sign)
    unsound = _unsound(declared, low[:, 0], high[:, 0])
    usable = np.array([reason is None for reason in unsound], dtype=bool)
    strength = np.where(usable, _strength(high, threshold), 0)
    failed_at, looked_at = _failures(declared, strength)
    stored = [DIVISORS.index(j) if j else 0 for j in failed_at.tolist()]
    limits = [
        Limits(*of)
        for of in zip(
            declared["criterion"].tolist(),
            declared["limit"].tolist(),
            low[:, 0].tolist(),
            high[np.arange(len(high)), stored].tolist(),
            declared["worst"].tolist(),
            strict=True,
        )
    ]
    above = usable & (low[:, 0] > threshold)
    decisions: list[Outcome] = []
    reasons: list[str] = []
    for i, (of, unusable) in enumerate(zip(limits, unsound, strict=True)):
        if unusable is not None:
            decisions.append(CANNOT_TELL)
            reasons.append(unusable)
        elif above[i]:
            decisions.append(PASS)
            reasons.append(why_pass(of))
        elif failed_at[i]:
            decisions.append(FAIL)
            reasons.append(why_fail(of, int(looked_at[i])))
        else:
            decisions.append(CANNOT_TELL)
            reasons.append(why_cannot_tell(of, int(looked_at[i]), alone=bool(strength[i])))
    margin = declared["limit"].to_numpy(dtype=float)
    bounded = above & (declared["criterion"] == "margin").to_numpy()
    up = sign > 0
    made = declared.assign(
        by=declared["kind"],
        low=np.where(up, low[:, 0], -high[:, 0]),
        high=np.where(up, high[:, 0], -low[:, 0]),
        decision=decisions,
        equivalent=bounded & (high[:, 0] < margin),
        certifiable=[
            of.certifiable if ok else np.nan for of, ok in zip(limits, usable, strict=True)
        ],
        reason=reasons,
    )
    return made[list(ROW_COLUMNS)]


def _oriented(declared: pd.DataFrame, sign: NDArray[np.int_]) -> tuple[Floats, Floats]:
    """Limits at every divisor, (endpoints, divisors), on the scale on which more is better.

    They hold the estimate at least: replicates of gaps lie above it, and a gap of 0 must not be
    found too large because of that.
    """
    low = declared[[f"low_{j}" for j in DIVISORS]].to_numpy(dtype=float, na_value=np.nan)
    high = declared[[f"high_{j}" for j in DIVISORS]].to_numpy(dtype=float, na_value=np.nan)
    estimate = declared["estimate"].to_numpy(dtype=float, na_value=np.nan)[:, None]
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    up = (sign > 0)[:, None]
    return np.where(up, low, -high), np.where(up, high, -low)


def _strength(high: Floats, threshold: Floats) -> NDArray[np.int_]:
    """The largest divisor up to which every upper limit is below the threshold; 0 for none."""
    holds = np.cumprod(high < threshold[:, None], axis=1).sum(axis=1)
    divisors: NDArray[np.int_] = np.array([0, *DIVISORS], dtype=np.int_)[holds]
    return divisors


def _failures(
    declared: pd.DataFrame, strength: NDArray[np.int_]
) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """At which divisor each endpoint fails (0: not), among how many of its variant.

    Who counts depends on sizes only; what is unusable for another reason counts with strength 0.
    """
    failed_at, looked_at = np.zeros((2, len(declared)), dtype=np.int_)
    sized = declared["too_small"].isna().to_numpy(dtype=bool)
    variant = declared["variant"].to_numpy()
    for name in dict.fromkeys(variant):
        counted = np.flatnonzero(sized & (variant == name))
        failed_at[counted] = rejected(strength[counted])
        looked_at[counted] = len(counted)
    return failed_at, looked_at


def _why_not(status: str) -> str:
    """A status as the reason of an endpoint.

    >>> _why_not("not_estimable: none below 1,000 examples per class")
    'it has no limits below 1,000 examples per class'
    >>> _why_not("not_estimable: no scores")
    'not estimable: no scores'
    """
    return status.replace("not_estimable: none", "it has no limits").replace("_", " ")


def _unsound(declared: pd.DataFrame, low: Floats, high: Floats) -> list[str | None]:
    """Why an endpoint has no limits that could decide; None where it has."""
    found: list[str | None] = []
    for too_small, status, width in zip(
        declared["too_small"], declared["status"], high - low, strict=True
    ):
        if isinstance(too_small, str):
            found.append(too_small)
        elif status != "ok":
            found.append(_why_not(str(status)))
        elif not np.isfinite(width):
            found.append("it has no limits")
        elif width <= NO_WIDTH:
            # All replicates agree because no example differs: that is no knowledge of rare ones.
            found.append("its interval has no width, because no example differs")
        else:
            found.append(None)
    return found
