"""Numbers and names as people read them: percent, signed points, p-values, printable text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from fairweight.auditing.metrics import Metric
from fairweight.auditing.metrics import metric as registered
from fairweight.base.wording import NOTHING, missing
from fairweight.errors import InputError

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Unit:
    """In what an audit writes its main number: shares in percent and points, else as it is."""

    name: str = "accuracy"
    share: bool = True

    @property
    def of_shift(self) -> str:
        """Behind the word shift, in a heading.

        >>> Unit().of_shift, Unit("wer", share=False).of_shift
        (' in points', '')
        """
        return " in points" if self.share else ""


_UNIT: ContextVar[Unit] = ContextVar("unit", default=Unit())  # noqa: B039


def unit() -> Unit:
    """The unit of the audit that is being written."""
    return _UNIT.get()


@contextmanager
def written_in(unit: Unit) -> Iterator[None]:
    """Write main numbers in the unit of one audit."""
    token = _UNIT.set(unit)
    try:
        yield
    finally:
        _UNIT.reset(token)


def level(value: float, decimals: int = 1) -> str:
    """The main number of a model, in the audit's unit.

    >>> level(0.9342)
    '93.4 %'
    >>> with written_in(Unit("wer", share=False)):
    ...     level(0.0535), size_in_points(-0.0026), points_interval(0.0026, 0.0009, 0.0047)
    ('0.0535', '0.00260', '+0.00260 [+0.000900, +0.00470]')
    """
    return percent(value, decimals) if unit().share else number(value)


def loss_that_matters(margin: float) -> str:
    """The margin in the audit's unit.

    >>> loss_that_matters(0.02)
    '2 points'
    """
    return f"{100 * margin:g} points" if unit().share else number(margin)


def _plus(value: float) -> str:
    """A number with its sign."""
    text = number(value)
    return f"+{text}" if value > 0 else text


def _entry(metric: str) -> Metric | None:
    """The registered metric; None of one that is not registered here."""
    try:
        return registered(metric)
    except InputError:
        return None


def unit_of(metric: str) -> str:
    """The unit of a registered metric; one that is not registered here is a plain number."""
    entry = _entry(metric)
    return "number" if entry is None else entry.unit


def label_of(metric: str) -> str:
    """The short title of a metric.

    >>> label_of("fpr"), label_of("balanced_accuracy")
    ('FPR', 'balanced accuracy')
    """
    entry = _entry(metric)
    return metric.replace("_", " ") if entry is None else entry.label


def axis_of(metric: str) -> str:
    """The title of an axis or a column; a share that may be below 0 is a difference of shares.

    >>> axis_of("accuracy"), axis_of("bias_amplification"), axis_of("cev")
    ('accuracy, %', 'bias amplification, points', 'CEV')
    """
    entry = _entry(metric)
    if entry is None or entry.unit == "number":
        return label_of(metric)
    return f"{entry.label}, {'points' if entry.low < 0 else '%'}"


def is_share(metric: str) -> bool:
    """Whether a metric is shown in percent and its shift in percentage points.

    >>> [is_share(m) for m in ("recall", "fpr_group_gap", "equalized_odds_difference", "kappa")]
    [True, True, True, False]
    """
    return unit_of(metric) != "number"


def signed(value: float, decimals: int) -> str:
    """A number with its sign, the minus as wide as the plus; zero has none.

    >>> signed(-3.21, 1), signed(0.0, 1), signed(2.0, 0)
    ('−3.2', '0.0', '+2')
    """
    body = f"{abs(value):.{decimals}f}"
    if float(body) == 0:
        return body
    return (MINUS if value < 0 else "+") + body


def _decimals(values: Iterable[float]) -> int:
    """Fewest decimals, of 1 to 3, at which no number that differs from zero is shown as zero."""
    finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
    return next((d for d in (1, 2) if all(round(v, d) > 0 for v in finite)), 3)


def points(share: float, *others: float) -> str:
    """A difference of shares in percentage points, with as many decimals as `others` need.

    >>> points(-0.0321), points(float("nan"))
    ('−3.2 points', '—')
    """
    if missing(share):
        return NOTHING
    if not unit().share:
        return _plus(share)
    scaled = [100 * v for v in (share, *others)]
    return f"{signed(scaled[0], _decimals(scaled))} points"


def size_in_points(share: float) -> str:
    """The size of a change in percentage points, whatever its direction.

    >>> size_in_points(0.0321), size_in_points(-0.0004)
    ('3.2 points', '0.04 points')
    """
    return points(abs(share)).removeprefix("+")


def bracket(low: float, high: float, *, scale: float = 1.0, decimals: int = 1) -> str:
    """An interval; an end that does not exist is a dash.

    >>> bracket(-0.05, -0.014, scale=100)
    '[−5.0, −1.4]'
    """
    if missing(low) and missing(high):
        return ""
    ends = [NOTHING if missing(v) else signed(scale * v, decimals) for v in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def points_interval(shift: float, low: float, high: float) -> str:
    """A shift with its interval.

    An end near zero gets the decimals it needs: `−0.0` would hide on which side of zero it is.

    >>> points_interval(-0.032, -0.05, -0.014)
    '−3.2 points [−5.0, −1.4]'
    >>> points_interval(-0.012, -0.024, -0.0002)
    '−1.20 points [−2.40, −0.02]'
    """
    if missing(shift):
        return NOTHING
    if not unit().share:
        known = not (missing(low) and missing(high))
        both = ", ".join(NOTHING if missing(v) else _plus(v) for v in (low, high))
        return _plus(shift) + (f" [{both}]" if known else "")
    scaled = [100 * v for v in (shift, low, high)]
    decimals = _decimals(scaled)
    ends = bracket(low, high, scale=100, decimals=decimals)
    return f"{signed(scaled[0], decimals)} points {ends}".rstrip()


def percent(share: float, decimals: int = 1) -> str:
    """A share in percent.

    >>> percent(0.9342), percent(float("nan"))
    ('93.4 %', '—')
    """
    return NOTHING if missing(share) else f"{100 * share:.{decimals}f} %".replace("-", MINUS)


def number(value: float) -> str:
    """Three significant digits, no exponent where a person would not write one.

    >>> [number(v) for v in (0.91234, 12345.6, -0.000123, 0.0, 1e-9, float("nan"))]
    ['0.912', '12,346', '−0.000123', '0', '1e−09', '—']
    """
    if missing(value):
        return NOTHING
    value = float(value)
    if not math.isfinite(value):
        return "∞" if value > 0 else MINUS + "∞"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        out = f"{value:,.0f}"
    elif abs(value) >= 1e-4:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        out = f"{value:.{digits}f}"
    else:
        out = f"{value:.3g}"
    return out.replace("-", MINUS)


def count(value: Any) -> str:
    """A number of examples.

    >>> count(12345), count(None), count(12.5)
    ('12,345', '—', '12.5')
    """
    if missing(value):
        return NOTHING
    value = float(value)
    if not math.isfinite(value):
        return NOTHING
    return f"{int(value):,}" if value.is_integer() else f"{value:,.1f}"


def p_value(p: float, *, bare: bool = False) -> str:
    """A p-value as it is written in a sentence, or `bare` in the cell of a table.

    >>> p_value(0.0312), p_value(0.00001), p_value(1.0), p_value(0.0312, bare=True)
    ('p = 0.031', 'p < 0.001', 'p = 1', '0.031')
    """
    if missing(p):
        return NOTHING
    if p < 0.001:
        return "< 0.001" if bare else "p < 0.001"
    body = "1" if p >= 0.995 else f"{p:.2g}" if p < 0.0995 else f"{p:.2f}"
    return body if bare else f"p = {body}"


def value_of(metric: str, value: float, shift: float = math.nan) -> str:
    """The value of a metric in its own unit, with the digits that a small shift beside it needs.

    >>> value_of("recall", 0.5), value_of("fpr", 0.0083), value_of("worst_group_shift", -0.031)
    ('50.0 %', '0.83 %', '−3.1 points')
    >>> value_of("recall", 0.9705, -0.0002), value_of("recall", 0.9703, -0.0002)
    ('97.05 %', '97.03 %')
    """
    if unit_of(metric) == "points":
        return points(value)
    if not is_share(metric):
        return number(value)
    return percent(value, 2 if abs(value) < 0.0995 or 0 < abs(shift) < 0.001 else 1)


def value_interval(metric: str, value: float, low: float, high: float) -> str:
    """The value of a metric with its own interval, both in its unit.

    >>> value_interval("flips", 0.031479, 0.023938, 0.039021)
    '3.15 % [2.39 %, 3.90 %]'
    >>> value_interval("worst_group_shift", -0.031, -0.05, -0.01)
    '−3.1 points [−5.0, −1.0]'
    """
    if unit_of(metric) == "points":
        return points_interval(value, low, high)
    return f"{value_of(metric, value)} [{value_of(metric, low)}, {value_of(metric, high)}]"


def shift_of(metric: str, shift: float, low: float, high: float) -> str:
    """The shift of a metric with its interval: in points for shares, else in the metric's unit.

    >>> shift_of("kappa", -0.0213, -0.03, -0.01)
    '−0.0213 [−0.0300, −0.0100]'
    """
    if is_share(metric):
        return points_interval(shift, low, high)
    if missing(shift):
        return NOTHING
    if missing(low) and missing(high):
        return number(shift)
    return f"{number(shift)} [{number(low)}, {number(high)}]"
