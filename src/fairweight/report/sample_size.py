"""A plan of sample sizes: in sentences and a table, as a curve, and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairweight.auditing.gate.sample_size import Plan
from fairweight.auditing.result import records
from fairweight.auditing.table_files import plain_records
from fairweight.base.wording import counted, missing, shown
from fairweight.report.figures.forms.encoding import (
    DASHED,
    colors,
    layer,
    numbers,
    quantitative,
    reference,
)
from fairweight.report.figures.theme import CONFIG, SCHEMA, SERIES, Spec, heading
from fairweight.report.gate import subject
from fairweight.report.numbers import count

SHOWN = 20  # rows on a terminal
STEPS = 6  # of the curve there
WIDE = 30  # its longest bar


def lead(plan: Plan) -> str:
    """What it takes, in one sentence."""
    margins = sorted(set(plan.rows["margin"]))
    loss = f"a loss of {_points(margins[0])}"
    if len(margins) > 1:
        loss = "a loss of each margin" if plan.pilot is None else "the losses of the policy"
    where = "overall" if set(plan.rows["by"]) == {"overall"} else ""
    if not where:
        what = "row" if plan.pilot is not None else "group"
        where = f"in all {count(plan.n_rows)} {what}s" if plan.n_rows > 1 else f"in one {what}"
    return f"Examples needed to rule out {loss} {where}, with {_percent(plan.request.power)} power:"


def remarks(plan: Plan) -> list[str]:
    """What the numbers mean, and what was assumed."""
    asked = plan.request
    truly = "loses nothing"
    if asked.expected_loss:
        truly = f"truly loses {_points(asked.expected_loss)}"
    said = [
        f"Power: a model that {truly} passes the gate in {_percent(asked.power)} of such tests.",
        "Churn: the share of predictions that were right and are wrong now, or the other way "
        "round. More churn needs more examples.",
    ]
    if plan.pilot is not None:
        chance = plan.chance_now
        size = "under 1 %" if chance < 0.01 else _percent(chance)
        said.insert(0, f"With the examples of the pilot, the chance that all rows pass is {size}.")
    if asked.looks > 1:
        said.append(f"Each of {count(asked.looks)} looks errs with 5 % / {count(asked.looks)}.")
    return [*said, *plan.notes]


def show_plan(plan: Plan, console: Console) -> None:
    """Print what is needed, the curve, and what was assumed."""
    pilot = plan.pilot
    if pilot is not None:
        console.print(
            Text(
                f"Pilot: {shown(pilot.variant)} against {shown(pilot.baseline)}, "
                f"{counted(pilot.n_examples, 'example')}, churn {_percent(pilot.churn)}"
            )
        )
    console.print(Text(lead(plan), style="bold"), soft_wrap=True)
    console.print(_grid(plan))
    churn = float(plan.curve["churn"].median())
    churn = min(plan.curve["churn"], key=lambda one: abs(one - churn))
    rows = records(plan.curve[plan.curve["churn"] == churn])
    margin = rows[0]["margin"]
    together = f"that all {count(plan.n_rows)} pass" if plan.n_rows > 1 else "of a pass"
    console.print(
        Text(
            f"\nChance {together}, by examples of each (margin {_points(margin)}, "
            f"churn {_percent(churn)}):"
        )
    )
    every = max(1, len(rows) // STEPS)
    for row in rows[every - 1 :: every]:
        bar = "█" * round(WIDE * row["chance"])
        console.print(Text(f"  {count(row['n']):>9}  {bar} {_percent(row['chance'])}"))
    console.print()
    for said in remarks(plan):
        console.print(Text(said, style="dim"), soft_wrap=True)


def _grid(plan: Plan) -> Table:
    """The sizes: by row of a pilot, else by margin and churn."""
    grid = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    rows = records(plan.rows)
    if plan.pilot is not None:
        for title in ("", "limit", "churn", "have", "needed", "missing"):
            grid.add_column(title, justify="left" if not title else "right", no_wrap=True)
        ranked = sorted(rows, key=lambda row: -int(row["n_missing"]))
        for row in ranked[:SHOWN]:
            sizes = (row[name] for name in ("n_pilot", "n_needed", "n_missing"))
            parts = [_points(row["margin"]), _percent(row["churn"]), *map(count, sizes)]
            grid.add_row(Text(subject(row)), *parts)
        if len(rows) > SHOWN:
            grid.add_row(Text(f"{count(len(rows) - SHOWN)} more (--json)"))
        return grid
    churns = list(dict.fromkeys(row["churn"] for row in rows))
    titles = ("limit", "identical", *(f"churn {_percent(churn)}" for churn in churns))
    for title in (*titles, "to find such a loss"):
        grid.add_column(title, justify="right", no_wrap=True)
    for margin in dict.fromkeys(row["margin"] for row in rows):
        own = [row for row in rows if row["margin"] == margin]
        found = [int(row["n_to_find"]) for row in own]
        span = count(found[0]) if len(found) == 1 else f"{count(min(found))} to {count(max(found))}"
        grid.add_row(
            _points(margin),
            count(own[0]["n_identical"]),
            *(count(row["n_needed"]) for row in own),
            span,
        )
    return grid


def curve_spec(plan: Plan) -> Spec:
    """The chance that all rows pass against the examples of each, a line per churn."""
    values = [
        {"n": row["n"], "chance": row["chance"], "churn": f"churn {_percent(row['churn'])}"}
        for row in records(plan.curve)
    ]
    named = list(dict.fromkeys(value["churn"] for value in values))
    y = quantitative(
        "chance", title="chance that all rows pass", scale={"domain": [0, 1]},
        axis={"format": ".0%", "tickCount": 5},
    )  # fmt: skip
    at = {
        "x": quantitative("n", title="examples in each row", axis={"format": ",.0f"}),
        "y": y,
        "color": colors("churn", named, SERIES),
        "tooltip": [*numbers(",.0f", n="examples"), *numbers(".1%", chance="chance")],
    }
    margin = plan.curve["margin"].iloc[0]
    rows = counted(plan.n_rows, "row")
    return {
        "$schema": SCHEMA,
        "config": CONFIG,
        "title": heading(f"To rule out a loss of {_points(margin)} in {rows}"),
        "width": 420,
        "height": 240,
        "layer": [
            reference("y", plan.request.power, strokeDash=DASHED),
            layer("line", at, values=values, strokeWidth=2),
        ],
    }


def to_json(plan: Plan) -> str:
    """The request, the pilot, every row and the curve."""
    pilot = plan.pilot
    known = ("variant", "baseline", "n_examples", "churn")
    chance = plan.chance_now
    document: dict[str, Any] = {
        "schema": 1,
        "request": asdict(plan.request),
        "rows_together": plan.n_rows,
        "pilot": None if pilot is None else {name: getattr(pilot, name) for name in known},
        "chance_now": None if math.isnan(chance) else chance,
        "notes": list(plan.notes),
        "rows": plain_records(plan.rows),
        "curve": plain_records(plan.curve),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _points(share: float) -> str:
    """A margin, with the decimals that it has.

    >>> _points(0.02), _points(0.01), _points(0.0123456)
    ('2 points', '1 point', '1.23 points')
    """
    size = f"{100 * share:.3g}"
    return f"{size} point{'' if size == '1' else 's'}"


def _percent(share: float) -> str:
    return "—" if missing(share) else f"{100 * share:.2g} %"
