"""A choice in sentences that somebody can read who has not seen the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records
from fairweight.auditing.table_files import plain_records
from fairweight.base.files import atomic_directory
from fairweight.base.wording import missing, shown
from fairweight.report.numbers import count, is_share, number, percent, value_of

if TYPE_CHECKING:
    from fairweight.auditing.choose.choice import Choice
    from fairweight.auditing.choose.objectives import Objective

AIMS = {"max": "highest", "min": "lowest", "zero": "nearest to 0", "one": "nearest to 1"}
NAMED = 5  # variants that a sentence lists
WORTH_NAMING = 0.05  # probability of being near the best
SELECTED = (
    "Selected on these data: the best of several looks better than it is. Confirm it on rows that "
    "were not used for choosing (--confirm, --confirm-share)."
)


def choice_sentences(choice: Choice) -> list[str]:
    """Who may be the best, who is near it, what was chosen, and what is not known."""
    if choice.none_qualifies:
        return [_nobody(choice)]
    told = [*_best(choice), _headline(choice), *_numbers(choice), *_sureness(choice)]
    told += _near(choice)
    told.append(_confirmed(choice) if choice.n_confirmed else SELECTED)
    return told


def _best(choice: Choice) -> list[str]:
    """The set that contains the best, and how probably each is within the margin of it."""
    if choice.asked.weights is None or len(choice.qualifying) == 1 or not _any_noise(choice):
        return []
    rows = [row for row in records(choice.tables["choice"]) if row["qualifies"]]
    among = [row for row in rows if row["in_best_set"] is True]
    told = f"The best is {_listed(among)} (95 %)."
    if len(among) > 1:
        told = f"The best is among {_listed(among)} (95 %): {count(len(among))} of "
        told += f"{count(len(rows))} variants."
    if choice.asked.margin is None:
        return [
            told,
            "Give --margin X, in units of the value, for the probability of each of being within X "
            "of the best.",
        ]
    may_be = [row for row in rows if row in among or row["p_within_margin"] >= WORTH_NAMING]
    near = [f"{shown(row['variant'])} {chance(row['p_within_margin'])}" for row in may_be[:NAMED]]
    more = f" and {count(len(may_be) - NAMED)} more" if len(may_be) > NAMED else ""
    return [told, f"Probability of being {margin(choice)} the best: {', '.join(near)}{more}."]


def margin(choice: Choice) -> str:
    """`within 2 points of`, in the unit of the value."""
    held = choice.asked.margin
    assert held is not None
    one = choice.asked.objectives[0].term
    plain = choice.asked.weights is not None and choice.asked.weights.tolist() == [1.0]
    if plain and one.metric is not None and is_share(one.metric):
        return f"within {points_text(held)} of"
    return f"within {number(held)} of"


def points_text(share: float) -> str:
    """
    >>> points_text(0.02), points_text(0.01), points_text(0.005)
    ('2 points', '1 point', '0.5 points')
    """
    held = f"{100 * share:g}"
    return f"{held} point{'' if held == '1' else 's'}"


def chance(share: float) -> str:
    """A probability in whole percent, never 0 or 100 where it is neither.

    >>> chance(0.412), chance(0.995), chance(0.0), chance(float("nan"))
    ('41 %', 'over 99 %', '0 %', '—')
    """
    if missing(share) or share in (0.0, 1.0):
        return percent(share, 0)
    return "over 99 %" if share >= 0.995 else "under 1 %" if share < 0.005 else percent(share, 0)


def _nobody(choice: Choice) -> str:
    assert choice.nearest is not None
    name, missed = choice.nearest
    by = ", ".join(f"{what} by {number(short)}" for what, short in missed.items())
    tried = len(choice.tables["choice"])
    which = f"None of {count(tried)} variants qualifies"
    if tried == 1:
        which = "The only variant does not qualify"
    return f"{which}. The nearest is {shown(name)}, which misses {by}."


def _headline(choice: Choice) -> str:
    tried, able = len(choice.tables["choice"]), len(choice.qualifying)
    among = f"{count(able)} of {count(tried)} variants that meet every requirement"
    if not choice.asked.requirements:
        among = "1 variant" if tried == 1 else f"{count(tried)} variants"
    if choice.chosen is not None:
        return f"Chosen: {shown(choice.chosen)}, of {among}, with the {_reason(choice)}."
    on = [row for row in records(choice.tables["choice"]) if row["frontier"] == "frontier"]
    near = [row for row in records(choice.tables["choice"]) if row["frontier"] == "within noise"]
    also = f" Within noise of it: {_listed(near)}." if near else ""
    return (
        f"Of {among}, {count(len(on))} are on the frontier of {_aims(choice)}: {_listed(on)}."
        f"{also} Which to take depends on what weighs how much (--weight)."
    )


def _reason(choice: Choice) -> str:
    objectives = choice.asked.objectives
    if len(objectives) == 1:
        return f"{AIMS[objectives[0].aim]} {objectives[0].name}"
    if choice.asked.weights is None:
        return f"best of every objective: {_aims(choice)}"
    parts = (
        f"{number(weight)} × {objective.name}"
        for objective, weight in zip(objectives, choice.asked.weights, strict=True)
    )
    return f"highest value ({' + '.join(parts)}, each in its own direction)"


def _aims(choice: Choice) -> str:
    return ", ".join(f"{AIMS[o.aim]} {o.name}" for o in choice.asked.objectives)


def _listed(rows: list[dict[str, Any]]) -> str:
    names = [shown(row["variant"]) for row in rows[:NAMED]]
    more = f" and {count(len(rows) - NAMED)} more" if len(rows) > NAMED else ""
    return ", ".join(names) + more


def term_value(row: dict[str, Any]) -> str:
    """A number of a variant in its own unit."""
    if missing(row["metric"]):
        return number(row["value"])
    return value_of(str(row["metric"]), row["value"])


def _numbers(choice: Choice) -> list[str]:
    if choice.chosen is None:
        return []
    frame = choice.tables["choice_values"]
    own = records(frame[frame["variant"] == choice.chosen])
    parts = [f"{shown(row['term'])} {term_value(row)}" for row in own]
    return [f"It has {', '.join(parts)}."]


def _sureness(choice: Choice) -> list[str]:
    if choice.chosen is None or not _any_noise(choice):
        return []
    rows = records(choice.tables["choice"])
    if choice.asked.weights is None:
        near = [row for row in rows if row["tied"]]
        return [f"Not shown to be worse in everything: {_listed(near)}."] if near else []
    if len(choice.qualifying) == 1:
        return []
    own = next(row for row in rows if row["chosen"])
    likely = max((row for row in rows if row["qualifies"]), key=lambda row: row["p_best"])
    told = f"The probability that it is the best of them is {chance(own['p_best'])}"
    if likely["p_best"] > own["p_best"]:
        told += f"; that of {shown(likely['variant'])} is higher, {chance(likely['p_best'])}"
    return [f"{told}."]


def _any_noise(choice: Choice) -> bool:
    return any(_noisy(objective) for objective in choice.asked.objectives)


def _noisy(objective: Objective) -> bool:
    return objective.term.noisy


def _near(choice: Choice) -> list[str]:
    """Requirements that the chosen one keeps by less than noise."""
    frame = choice.tables["choice_requirements"]
    own = frame[(frame["variant"] == choice.chosen) & (frame["standing"] == "met, within noise")]
    if own.empty:
        return []
    names = ", ".join(str(name) for name in own["requirement"])
    return [
        f"It keeps {names} by less than noise; fairweight gate decides about limits with a stated "
        "error."
    ]


def _confirmed(choice: Choice) -> str:
    frame = choice.tables["choice_confirmed"]
    rows = f"{count(choice.n_confirmed)} examples that were not used for choosing"
    if choice.chosen is None:
        return f"Looked at again on {rows}: table choice_confirmed."
    own = records(frame[frame["variant"] == choice.chosen])
    metrics = {row["term"]: row["metric"] for row in records(choice.tables["choice_values"])}
    told = ", ".join(
        f"{shown(row['term'])} "
        f"{term_value({'metric': metrics[row['term']], 'value': row['confirmed']})}"
        for row in own
        if not missing(metrics[row["term"]])
    )
    missed = [shown(row["term"]) for row in own if str(row["standing"]).startswith("missed")]
    there = f"On {rows} it has {told}"
    if missed:
        return f"Not confirmed: {there[0].lower()}{there[1:]}, and misses {', '.join(missed)}."
    kept = " and meets every requirement" if choice.asked.requirements else ""
    return f"{there}{kept}."


# A choice as JSON, for programs.

SCHEMA = 1


def to_json(choice: Choice, command: str | None = None) -> str:
    """What was asked, what was chosen, and every table."""
    from fairweight import __version__

    asked = choice.asked
    weights = [None] * len(asked.objectives) if asked.weights is None else asked.weights.tolist()
    best = [
        {"variant": row["variant"], "p_within_margin": row["p_within_margin"]}
        for row in plain_records(choice.tables["choice"])
        if row["in_best_set"] is True
    ]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": __version__,
        "command": command,
        "sentences": choice_sentences(choice),
        "best_is_among": best,
        "margin": asked.margin,
        "chosen": choice.chosen,
        "qualifying": list(choice.qualifying),
        "baseline": choice.baseline,
        "n_examples": choice.n_examples,
        "n_confirmed": choice.n_confirmed,
        "selected_on_these_data": choice.n_confirmed == 0,
        "objectives": [
            {"name": o.name, "metric": o.term.metric, "place": o.term.place or None, "aim": o.aim,
             "weight": weight}
            for o, weight in zip(asked.objectives, weights, strict=True)
        ],
        "requirements": [requirement.shown for requirement in asked.requirements],
        "nearest_miss": None
        if choice.nearest is None
        else {"variant": choice.nearest[0], "misses": choice.nearest[1]},
        "notes": list(choice.notes),
        "tables": {name: plain_records(frame) for name, frame in choice.tables.items()},
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


# A choice as a folder: choice.json, its tables, and the figures that it can fill.

FIGURES = ("PA-F4a", "PA-F4b", "FW-5")


def save(
    choice: Choice, folder: str | Path, command: str | None = None, *, overwrite: bool = False
) -> None:
    """Write everything, whole or not at all; files of others are replaced with `overwrite` only."""
    from fairweight.auditing.choose.tables import as_result
    from fairweight.auditing.table_files import write_frames
    from fairweight.report.figures import draw
    from fairweight.report.figures.export import rendered

    text = to_json(choice, command)
    result = as_result(choice)
    target = atomic_directory(folder, completion=("choice.json",), overwrite=overwrite)
    with target as unfinished:
        write_frames(choice.tables, unfinished / "tables")
        for name in FIGURES:
            drawing = draw(name, result)
            if drawing.spec is not None:
                place = unfinished / "figures" / f"{name}.svg"
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(rendered(drawing.spec, ".svg"))
        (unfinished / "choice.json").write_text(text, encoding="utf-8")
