"""A choice on a terminal: the sentences, then the ranked table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.report.choice.words import chance, margin, sentences, term_value
from fairweight.report.numbers import NOTHING, count, missing, number, shown
from fairweight.report.rows import records

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.auditing.choose.chosen import Choice

LIMIT = 20
DIRECTIONS = {"max": "↑", "min": "↓", "zero": "→ 0", "one": "→ 1"}


def show_choice(choice: Choice, console: Console) -> None:
    """Print what was chosen and why, and at most `LIMIT` variants."""
    from rich.text import Text

    for at, sentence in enumerate(sentences(choice)):
        console.print(Text(sentence, style="bold" if at == 0 else ""))
    console.print()
    console.print(_table(choice))
    ranges = _ranges(choice)
    if ranges is not None:
        console.print(ranges)
    for note in choice.notes:
        console.print(Text(f"Note: {shown(note)}", style="yellow"))


def _table(choice: Choice) -> Any:
    from rich.table import Table

    rows = records(choice.tables["choice"])
    terms = choice.asked.terms
    aims = {o.term: DIRECTIONS[o.aim] for o in choice.asked.objectives}
    valued = choice.asked.weights is not None and len(choice.asked.objectives) > 1
    table = Table(box=None, padding=(0, 2, 0, 0))
    titles = ["", "variant", *(f"{t.name} {aims.get(t, '')}".strip() for t in terms)]
    titles += ["value"] if valued else []
    chances = _chances(choice)
    longest = max(len(shown(row["variant"], 40)) for row in rows[:LIMIT])
    for title in (*titles, *chances, ""):
        # Wrapped, not cut: variants often differ at the end of their names.
        least = min(longest, 16) if title == "variant" else None
        table.add_column(title, no_wrap=title.startswith("P("), overflow="fold", min_width=least)
    numbers = {
        (row["variant"], row["term"]): term_value(row)
        for row in records(choice.tables["choice_values"])
    }
    nearly = _nearly(choice) if choice.asked.requirements else set()
    for row in rows[:LIMIT]:
        table.add_row(
            NOTHING if missing(row["rank"]) else count(row["rank"]),
            shown(row["variant"], 40),
            *(numbers[row["variant"], term.name] for term in terms),
            *([number(row["value"])] if valued else []),
            *(chance(row[column]) for column in chances.values()),
            _remark(row, row["variant"] in nearly),
        )
    if len(rows) > LIMIT:
        table.caption = f"{count(len(rows) - LIMIT)} more: --out DIR writes all"
    return table


def _chances(choice: Choice) -> dict[str, str]:
    """Titles of the columns of probabilities, and the columns that they show."""
    found = {}
    if choice.asked.margin is not None:
        found[f"P({margin(choice).removesuffix(' of')})"] = "p_within_margin"
    if choice.asked.weights is not None:
        found["P(best)"] = "p_best"
    if len(choice.asked.objectives) > 1:
        found["P(frontier)"] = "p_frontier"
    return found


def _nearly(choice: Choice) -> set[str]:
    """Variants that miss requirements by no more than noise."""
    frame = choice.tables["choice_requirements"]
    missed = frame[frame["standing"].str.startswith("missed")]
    clearly = set(missed.loc[missed["standing"] == "missed", "variant"])
    return set(missed["variant"]) - clearly


def _remark(row: dict[str, Any], nearly: bool) -> str:
    if not row["qualifies"]:
        return "does not qualify, within noise" if nearly else "does not qualify"
    if row["chosen"]:
        return "chosen"
    if row["tied"]:
        return "may be the best" if row["in_best_set"] is True else "within noise"
    return "frontier" if row["frontier"] == "frontier" else ""


def _ranges(choice: Choice) -> Any:
    from rich.table import Table

    rows = records(choice.tables["choice_weights"])
    if len(rows) < 2:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0))
    first, second = rows[0]["first"], rows[0]["second"]
    table.add_column("wins")
    table.add_column(f"while {second} weighs, per unit of {first}")
    for row in rows:
        high = row["ratio_high"]
        end = "or more" if missing(high) or high == float("inf") else f"to {number(high)}"
        table.add_row(shown(row["variant"], 40), f"{number(row['ratio_low'])} {end}")
    return table
