"""Which unit of a network does the harm, in sentences: of the table `sensitivity`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records
from fairweight.auditing.schema import OK
from fairweight.base.wording import missing, real, shown
from fairweight.report.numbers import count, percent, signed, size_in_points

if TYPE_CHECKING:
    import pandas as pd

MOST = 3  # units that sentences name
NEXT = (
    "a weaker compression everywhere (a bit more, a lower sparsity), or several units together: "
    "fairweight compress … --policy policy.toml"
)


def unit_sentences(
    table: pd.DataFrame | None, shown_to_lose: Collection[str] = ()
) -> Iterator[str]:
    """What comes back with which unit, or that no single one explains the loss.

    Parameters
    ----------
    shown_to_lose
        Groups that the audit shows to lose (everyone: ""); the sentence is about them where there
        are any, and not about a group that happens to lose more in half of the examples.
    """
    if table is None or table.empty:
        return
    rows = records(table)
    known = [row for row in rows if row["status"] == OK]
    units = len({row["unit"] for row in rows})
    reached = len({row["unit"] for row in known if not missing(row["rank"])})
    found = [row for row in known if row["stands_out"] is True]
    found.sort(key=lambda row: (real(row["shift"]), -real(row["recovered"])))
    named: list[str] = []
    for row in found:
        if row["unit"] in named or len(named) == MOST:
            continue
        named.append(row["unit"])
        yield _comes_back(row)
    if not found:
        losing = [row for row in known if real(row["shift"]) < 0]
        shown_too = [row for row in losing if (row["group"] or "") in shown_to_lose]
        losing = shown_too or losing
        if not losing:
            yield "No group loses in the half that judges, so no unit is named."
        else:
            worst = min(losing, key=lambda row: real(row["shift"]))
            everyone = missing(worst["group"])
            same = (
                row
                for row in known
                if row["group"] == worst["group"] or (everyone and missing(row["group"]))
            )
            most = max(same, key=lambda row: real(row["recovered"]))
            yield (
                f"No single unit explains the loss: of the {_points(worst['shift'])} that "
                f"{_who(worst)} loses, leaving out {shown(most['unit'], 60)} gives "
                f"back most, {_with_limits(most, 'recovered')}, no more than other units do beyond "
                f"chance. The next thing to try is {NEXT}."
            )
    elif len({row["unit"] for row in found}) > MOST:
        more = len({row["unit"] for row in found}) - MOST
        yield f"{count(more)} more units stand out; the table has them all."
    if reached < units:
        yield (
            f"{count(units - reached)} of {count(units)} units were not reached within the budget."
        )


def mixed_sentences(table: pd.DataFrame | None) -> Iterator[str]:
    """What a mixed precision costs and keeps, beside others of its size."""
    if table is None or table.empty:
        return
    rows = {str(row["variant"]): row for row in records(table)}
    mixed, full = rows["mixed"], rows["full"]
    kept = f"Left in float: {shown(mixed['float_units'], 200)}"
    sizes = tuple(f"{count(row['size_bytes'])} bytes" for row in (mixed, full))
    yield (
        f"{kept if mixed['n_float'] else 'Nothing is left in float'} ({sizes[0]}; everything "
        f"compressed: {sizes[1]}). On rows that decided nothing, {_who(mixed)} changes by "
        f"{_with_limits(mixed, 'shift')} points; with everything compressed by "
        f"{_with_limits(full, 'shift')}."
    )
    others = {
        "by-average": "units chosen by average accuracy",
        "weaker": "weaker compression everywhere",
    }
    if not mixed["n_float"]:
        del others["by-average"]  # nothing was chosen, so it is the same model
        rows = {name: row for name, row in rows.items() if not name.startswith("random-")}
    for name, what in others.items():
        if name in rows:
            row = rows[name]
            note = ", simulated" if row["simulated"] is True and name == "weaker" else ""
            loses = real(row["against"]) < 0
            yield (
                f"Beside {what} at {count(row['size_bytes'])} bytes{note}, it "
                f"{'loses' if loses else 'keeps'} {_with_limits(row, 'against', turned=loses)} "
                "points more in that group."
            )
    random = [real(row["shift"]) for name, row in rows.items() if name.startswith("random-")]
    if random:
        low, high = (signed(100 * one, 1) for one in (min(random), max(random)))
        yield f"{len(random)} random choices of this size change it by {low} to {high} points."


def _comes_back(row: dict[str, Any]) -> str:
    saving = real(row["share_of_saving"])
    price = "" if missing(saving) else f"; that costs {percent(saving)} of the size saved"
    slower = real(row["latency_saved_ms"])
    if not missing(slower) and slower > 0:
        price += f" and {slower:.2g} ms per example"
    lost = f"Of the {_points(row['shift'])} that {_who(row)} loses"
    if not real(row["recovered_low"]) > 0:
        return (
            f"{lost}, {_with_limits(row, 'recovered')} come back when {shown(row['unit'], 60)} is "
            f"not compressed: more than with the other units, but perhaps nothing{price}."
        )
    return (
        f"{lost}, {_with_limits(row, 'recovered')} come back when {shown(row['unit'], 60)} is not "
        f"compressed{price}."
    )


def _who(row: dict[str, Any]) -> str:
    return "everyone together" if missing(row["group"]) else shown(row["group"], 80)


def _points(shift: Any) -> str:
    """The size of a loss.

    >>> _points(-0.142)
    '14.2 points'
    """
    return size_in_points(real(shift))


def _with_limits(row: dict[str, Any], name: str, *, turned: bool = False) -> str:
    """An estimate with its limits in points; turned: of a loss, the size of it.

    >>> row = {"against": -0.016, "against_low": -0.024, "against_high": -0.007}
    >>> _with_limits(row, "against"), _with_limits(row, "against", turned=True)
    ('−1.6 [−2.4, −0.7]', '1.6 [0.7, 2.4]')
    """
    value, low, high = (real(row[column]) for column in (name, f"{name}_low", f"{name}_high"))
    if turned:
        value, low, high = -value, -high, -low
    shown_, *ends = (signed(100 * one, 1).removeprefix("+") for one in (value, low, high))
    return f"{shown_} [{ends[0]}, {ends[1]}]"
