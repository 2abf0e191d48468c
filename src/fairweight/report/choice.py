"""A choice among variants: in sentences, as a table on a terminal, as JSON and as a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairweight import __version__
from fairweight.auditing.choose.tables import as_result
from fairweight.auditing.result import records
from fairweight.auditing.table_files import plain_records, write_frames
from fairweight.base.files import atomic_directory
from fairweight.base.wording import NOTHING, counted, missing, shown
from fairweight.report.figures import draw, export
from fairweight.report.numbers import count, is_share, number, percent, value_of

if TYPE_CHECKING:
    from fairweight.auditing.choose.choice import Choice

AIMS = {"max": "highest", "min": "lowest", "zero": "nearest to 0", "one": "nearest to 1"}
NAMED = 5  # variants that a sentence lists
WORTH_NAMING = 0.05  # probability of being near the best
SELECTED = (
    "Selected on these data: the best of several looks better than it is. Confirm it on rows that "
    "were not used for choosing (--confirm, --confirm-share)."
)


def choice_sentences(choice: Choice) -> list[str]:
    """Who may be the best, who is near it, what was chosen, and what is not known."""
    asked, rows = choice.asked, records(choice.tables["choice"])
    if choice.none_qualifies:
        which = f"None of {count(len(rows))} variants qualifies."
        if len(rows) == 1:
            which = "The only variant does not qualify."
        told = [which, *_policy(choice)]
        if choice.nearest is not None:
            name, missed = choice.nearest
            by = ", ".join(f"{what} by {number(short)}" for what, short in missed.items())
            told.append(f"The nearest is {shown(name)}, which misses {by}.")
        return told

    told = []
    qualifying = [row for row in rows if row["qualifies"]]
    noisy = any(objective.term.noisy for objective in asked.objectives)
    several = asked.weights is not None and len(choice.qualifying) > 1 and noisy
    if several:  # the set that contains the best, and how probably each is near it
        among = [row for row in qualifying if row["in_best_set"] is True]
        best = f"The best is {_listed(among)} (95 %)."
        if len(among) > 1:
            best = f"The best is among {_listed(among)} (95 %): {count(len(among))} of "
            best += f"{count(len(qualifying))} variants."
        told.append(best)
        if asked.margin is None:
            told.append(
                "Give --margin X, in units of the value, for the probability of each of being "
                "within X of the best."
            )
        else:
            near = [r for r in qualifying if r in among or r["p_within_margin"] >= WORTH_NAMING]
            parts = [f"{shown(r['variant'])} {chance(r['p_within_margin'])}" for r in near[:NAMED]]
            more = f" and {count(len(near) - NAMED)} more" if len(near) > NAMED else ""
            told.append(
                f"Probability of being {margin(choice)} the best: {', '.join(parts)}{more}."
            )

    among_whom = counted(len(rows), "variant")
    demands = ["meet every requirement"] if asked.requirements else []
    demands += ["pass the policy"] if asked.verdicts is not None else []
    if demands:
        among_whom = f"{count(len(choice.qualifying))} of {count(len(rows))} variants that "
        among_whom += " and ".join(demands)
    aims = ", ".join(f"{AIMS[o.aim]} {o.name}" for o in asked.objectives)
    if choice.chosen is None:
        on = [row for row in rows if row["frontier"] == "frontier"]
        near = [row for row in rows if row["frontier"] == "within noise"]
        also = f" Within noise of it: {_listed(near)}." if near else ""
        told.append(
            f"Of {among_whom}, {count(len(on))} are on the frontier of {aims}: {_listed(on)}."
            f"{also} Which to take depends on what each objective is worth (--worth)."
        )
    else:
        reason = aims
        if len(asked.objectives) > 1:
            reason = f"best of every objective: {aims}"
            if asked.weights is not None:
                weighed = zip(asked.objectives, asked.weights, strict=True)
                value = " + ".join(f"{number(weight)} × {o.name}" for o, weight in weighed)
                reason = f"highest value ({value}, each in its own direction)"
        told.append(f"Chosen: {shown(choice.chosen)}, of {among_whom}, with the {reason}.")
        frame = choice.tables["choice_values"]
        own = records(frame[frame["variant"] == choice.chosen])
        parts = [f"{shown(row['term'])} {_value(row['metric'], row['value'])}" for row in own]
        told.append(f"It has {', '.join(parts)}.")
        if noisy and asked.weights is None:
            tied = [row for row in rows if row["tied"]]
            told += [f"Not shown to be worse in every objective: {_listed(tied)}."] if tied else []
        elif several:
            sure = next(row["p_best"] for row in rows if row["chosen"])
            likely = max(qualifying, key=lambda row: row["p_best"])
            said = f"The probability that it is the best of them is {chance(sure)}"
            if likely["p_best"] > sure:
                name = shown(likely["variant"])
                said += f"; that of {name} is higher, {chance(likely['p_best'])}"
            told.append(f"{said}.")
        frame = choice.tables["choice_requirements"]
        barely = (frame["variant"] == choice.chosen) & (frame["standing"] == "met, within noise")
        if barely.any():
            names = ", ".join(str(name) for name in frame.loc[barely, "requirement"])
            told.append(
                f"It meets {names}, but only within noise; fairweight gate decides about limits "
                "with a stated error."
            )
    told += _policy(choice)
    told.append(_confirmed(choice) if choice.n_confirmed else SELECTED)
    return told


def _policy(choice: Choice) -> list[str]:
    """Who does not pass the policy; the baseline is what the others are compared with."""
    verdicts = choice.asked.verdicts
    if verdicts is None:
        return []
    said = []
    for outcome, words in (("fail", "Fails the policy"), ("cannot tell", "The policy cannot tell")):
        names = [shown(name) for name, found in verdicts.items() if found == outcome]
        if names:
            said.append(f"{words}: {', '.join(names)}.")
    return said or ["Every variant passes the policy."]


def _confirmed(choice: Choice) -> str:
    """What the chosen variant does on rows that were not used for choosing."""
    rows = f"{count(choice.n_confirmed)} examples that were not used for choosing"
    if choice.chosen is None:
        return f"Checked again on {rows}: table choice_confirmed."
    frame = choice.tables["choice_confirmed"]
    own = records(frame[frame["variant"] == choice.chosen])
    metrics = {row["term"]: row["metric"] for row in records(choice.tables["choice_values"])}
    told = ", ".join(
        f"{shown(row['term'])} {_value(metrics[row['term']], row['confirmed'])}"
        for row in own
        if not missing(metrics[row["term"]])
    )
    missed = [shown(row["term"]) for row in own if str(row["standing"]).startswith("missed")]
    if missed:
        return f"Not confirmed: on {rows} it has {told}, and misses {', '.join(missed)}."
    kept = " and meets every requirement" if choice.asked.requirements else ""
    return f"On {rows} it has {told}{kept}."


def margin(choice: Choice) -> str:
    """How near the best counts as near, in the unit of the value: `within 2 points of`."""
    held, one = choice.asked.margin, choice.asked.objectives[0].term
    assert held is not None
    plain = choice.asked.weights is not None and choice.asked.weights.tolist() == [1.0]
    if plain and one.metric is not None and is_share(one.metric):
        points = f"{100 * held:g}"
        return f"within {points} point{'' if points == '1' else 's'} of"
    return f"within {number(held)} of"


def chance(share: float) -> str:
    """A probability in whole percent, never 0 or 100 where it is neither.

    >>> chance(0.412), chance(0.995), chance(0.0), chance(float("nan"))
    ('41 %', 'over 99 %', '0 %', '—')
    """
    if missing(share) or share in (0.0, 1.0):
        return percent(share, 0)
    return "over 99 %" if share >= 0.995 else "under 1 %" if share < 0.005 else percent(share, 0)


def _listed(rows: list[dict[str, Any]]) -> str:
    """The names of the first variants, and how many more there are."""
    names = [shown(row["variant"]) for row in rows[:NAMED]]
    more = f" and {count(len(rows) - NAMED)} more" if len(rows) > NAMED else ""
    return ", ".join(names) + more


def _value(metric: Any, value: float) -> str:
    """A number of a variant in the unit of its metric; a column of a table has none."""
    return number(value) if missing(metric) else value_of(str(metric), value)


# On a terminal: the sentences, then the ranked table.

LIMIT = 20
DIRECTIONS = {"max": "↑", "min": "↓", "zero": "→ 0", "one": "→ 1"}


def show_choice(choice: Choice, console: Console) -> None:
    """Print what was chosen and why, at most `LIMIT` variants, and who wins at which weights."""
    for at, sentence in enumerate(choice_sentences(choice)):
        console.print(Text(sentence, style="bold" if at == 0 else ""))
    console.print()
    console.print(_ranked_table(choice))
    rows = records(choice.tables["choice_weights"])
    if len(rows) > 1:
        table = Table(box=None, padding=(0, 2, 0, 0))
        table.add_column("wins")
        table.add_column(f"while {rows[0]['second']} weighs, per unit of {rows[0]['first']}")
        for row in rows:
            high = row["ratio_high"]
            end = "or more" if missing(high) or high == float("inf") else f"to {number(high)}"
            table.add_row(shown(row["variant"], 40), f"{number(row['ratio_low'])} {end}")
        console.print(table)
    for note in choice.notes:
        console.print(Text(f"Note: {shown(note)}", style="yellow"))


def _ranked_table(choice: Choice) -> Table:
    """Rank, values, probabilities and standing of the first variants."""
    asked, rows = choice.asked, records(choice.tables["choice"])
    aims = {o.term: DIRECTIONS[o.aim] for o in asked.objectives}
    valued = asked.weights is not None and len(asked.objectives) > 1
    table = Table(box=None, padding=(0, 2, 0, 0))
    titles = ["", "variant", *(f"{t.name} {aims.get(t, '')}".strip() for t in asked.terms)]
    titles += ["value"] if valued else []
    chances = {}  # titles of the columns of probabilities, and the columns that they show
    if asked.margin is not None:
        chances[f"P({margin(choice).removesuffix(' of')})"] = "p_within_margin"
    if asked.weights is not None:
        chances["P(best)"] = "p_best"
    if len(asked.objectives) > 1:
        chances["P(frontier)"] = "p_frontier"
    longest = max(len(shown(row["variant"], 40)) for row in rows[:LIMIT])
    for title in (*titles, *chances, ""):
        # Wrapped, not cut: variants often differ at the end of their names.
        least = min(longest, 16) if title == "variant" else None
        table.add_column(title, no_wrap=title.startswith("P("), overflow="fold", min_width=least)
    numbers = {
        (row["variant"], row["term"]): _value(row["metric"], row["value"])
        for row in records(choice.tables["choice_values"])
    }
    nearly: set[str] = set()  # who misses requirements by no more than noise
    if asked.requirements:
        frame = choice.tables["choice_requirements"]
        missed = frame[frame["standing"].str.startswith("missed")]
        clearly = set(missed.loc[missed["standing"] == "missed", "variant"])
        nearly = set(missed["variant"]) - clearly
    for row in rows[:LIMIT]:
        remark = "frontier" if row["frontier"] == "frontier" else ""
        if not row["qualifies"]:
            noise = ", within noise" if row["variant"] in nearly else ""
            remark = f"does not qualify{noise}"
            outcome = (asked.verdicts or {}).get(row["variant"], "pass")
            if outcome != "pass":
                remark = f"policy: {outcome}"
        elif row["chosen"]:
            remark = "chosen"
        elif row["tied"]:
            remark = "may be the best" if row["in_best_set"] is True else "within noise"
        table.add_row(
            NOTHING if missing(row["rank"]) else count(row["rank"]),
            shown(row["variant"], 40),
            *(numbers[row["variant"], term.name] for term in asked.terms),
            *([number(row["value"])] if valued else []),
            *(chance(row[column]) for column in chances.values()),
            remark,
        )
    if len(rows) > LIMIT:
        table.caption = f"{count(len(rows) - LIMIT)} more: --out DIR writes all"
    return table


# As JSON, for programs, and as a folder with its tables and the figures that it can fill.

SCHEMA = 1
FIGURES = ("PA-F4a", "PA-F4b", "FW-5")


def to_json(choice: Choice, command: str | None = None) -> str:
    """What was asked, what was chosen, and every table."""
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
        "verdicts": None if asked.verdicts is None else dict(asked.verdicts),
        "nearest_miss": None
        if choice.nearest is None
        else {"variant": choice.nearest[0], "misses": choice.nearest[1]},
        "notes": list(choice.notes),
        "tables": {name: plain_records(frame) for name, frame in choice.tables.items()},
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def save(
    choice: Choice, folder: str | Path, command: str | None = None, *, overwrite: bool = False
) -> None:
    """Write everything, whole or not at all; files of others are replaced with `overwrite` only."""
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
                place.write_bytes(export.rendered(drawing.spec, ".svg"))
        (unfinished / "choice.json").write_text(text, encoding="utf-8")
