"""One flaw in the tables of a case: what people's files have, and what nobody should believe.

A flaw changes tables that were laid out well. It says itself that the command must be refused, or
leaves that to the oracle, which reads the files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.fuzz.files import TEXT, Column, Table

if TYPE_CHECKING:
    from tests.fuzz.cases import Draft


def flaw(draft: Draft) -> None:
    """Now and then, one flaw; the first of a few that these tables can have."""
    if not draft.chance(0.26):
        return
    before = repr((draft.tables, draft.plan.examples, draft.words))
    for make in draft.rng.sample(FLAWS, 6):
        make(draft)
        if repr((draft.tables, draft.plan.examples, draft.words)) != before:
            return


def _any_table(draft: Draft) -> Table:
    return draft.rng.choice(draft.tables)


def _row(draft: Draft, table: Table) -> int:
    return draft.rng.randrange(table.rows)


def _duplicate_row(draft: Draft) -> None:
    table = _any_table(draft)
    row = _row(draft, table)
    for column in table.columns:
        column.values.append(column.values[row])


def _lost_rows(draft: Draft) -> None:
    """One table lacks some examples: an error, unless --missing drop is said."""
    table = draft.tables[-1]
    lost = {_row(draft, table) for _ in range(draft.rng.choice((1, 1, 3)))}
    if len(lost) >= table.rows:
        return
    for column in table.columns:
        column.values = [v for i, v in enumerate(column.values) if i not in lost]
    if draft.chance(0.6):
        draft.add("--missing", "drop")
        draft.meaning.drop = True
        draft.may_refuse("labels, groups or examples that only dropped rows have")


def _empty_cell(role: str) -> Callable[[Draft], None]:
    def make(draft: Draft) -> None:
        table = _any_table(draft)
        name = draft.roles[role]
        if name in table.names:
            table.column(name).values[_row(draft, table)] = None

    return make


def _other_label(draft: Draft) -> None:
    table = draft.tables[-1]
    name = draft.roles["label"]
    if name in table.names:
        column = table.column(name)
        column.values[_row(draft, table)] = draft.rng.choice(column.values)


def _bad_weight(draft: Draft) -> None:
    table = _any_table(draft)
    name = draft.roles["weight"]
    if draft.world.weight is None or name not in table.names:
        return
    column = table.column(name)
    bad = draft.rng.choice((-1.0, None, float("inf"), 0.0))
    for row in range(table.rows) if bad == 0.0 else (_row(draft, table),):
        column.values[row] = bad


def _damaged(draft: Draft) -> None:
    table = _any_table(draft)
    damages = ["empty", "garbage"]
    if table.style.format in TEXT:
        damages.append("ragged")
    if table.style.format in ("parquet", "arrow", "feather"):
        damages.append("cut")
    table.damage = draft.rng.choice(damages)
    draft.must_refuse(f"a damaged file ({table.damage})")


def _no_rows(draft: Draft) -> None:
    for table in draft.tables:
        for column in table.columns:
            column.values = []
    draft.must_refuse("tables without rows")


def _absent_file(draft: Draft) -> None:
    draft.words[0] = draft.rng.choice(
        ("absent.csv", "", "nowhere/x.parquet", "http://x/y.csv", "nowhere/")
    )
    draft.must_refuse("a file that is not there")


def _two_of_a_name(draft: Draft) -> None:
    table = _any_table(draft)
    if table.style.format in ("json", "jsonl"):
        return
    column = draft.rng.choice(table.columns)
    table.columns.append(replace(column, values=list(column.values)))
    draft.must_refuse("two columns of one name")


def _encoding(draft: Draft) -> None:
    table = _any_table(draft)
    if table.style.format not in TEXT:
        return
    encoding = draft.rng.choice(("utf-16", "latin-1", "cp1252"))
    texts = [str(v) for c in table.columns for v in (c.name, *c.values)]
    if encoding != "utf-16" and any(ord(mark) > 255 or 127 < ord(mark) < 160
                                    for text in texts for mark in text):  # fmt: skip
        return
    table.style = replace(table.style, encoding=encoding)
    if encoding == "utf-16" or not all(text.isascii() for text in texts):
        draft.may_refuse("a file that is not UTF-8")


def _predicted(draft: Draft) -> list[str]:
    """Columns that hold predictions."""
    if draft.layout != "wide":
        return [draft.roles["prediction"]]
    return list(dict.fromkeys(draft.plan.columns.values()))


def _measured_label(draft: Draft) -> None:
    """Ages as labels: as many classes as examples."""
    name = draft.roles["label"]
    drawn = {code.texts[0]: round(20 + 60 * draft.rng.random(), 2) for code in draft.world.ids}
    if not draft.plan.has_id or draft.plan.examples is not None or draft.world.tasks[0] is not None:
        return
    for table in draft.tables:
        ids = table.column(draft.roles["id"]).values
        if name in table.names and all(str(i) in drawn for i in ids):
            table.column(name).values = [drawn[str(i)] for i in ids]
            table.column(name).kind = "float"
            predicted = (
                [draft.roles["prediction"]]
                if draft.layout != "wide"
                else list(draft.plan.columns.values())
            )
            for column in predicted:
                held = table.column(column)
                held.values, held.kind = [drawn[str(i)] for i in ids], "float"
    draft.may_refuse("labels that other options do not know")


def _correctness_as_prediction(draft: Draft) -> None:
    """`acc` instead of predictions: 0 and 1 beside class names."""
    if any(
        c.name == draft.roles["label"] and c.kind == "bool" for t in draft.tables for c in t.columns
    ):
        return  # beside numbers, truth values are numbers
    for table in draft.tables:
        for name in _predicted(draft):
            if name in table.names:
                column = table.column(name)
                column.values = [draft.rng.choice((0, 1)) for _ in column.values]
                column.kind = "int"


def _nested_prediction(draft: Draft) -> None:
    table = _any_table(draft)
    if table.style.format in TEXT:
        return
    name = draft.rng.choice(_predicted(draft))
    if name in table.names:
        column = table.column(name)
        if draft.chance(0.6):
            column.values, column.kind = [[0.5, 0.5] for _ in column.values], "list"
        else:
            column.values, column.kind = [{"a": 1, "b": "x"} for _ in column.values], "struct"
        draft.must_refuse("predictions that are lists")


def _varying_group(draft: Draft) -> None:
    table = draft.tables[-1]
    held = [n for n in draft.world.groups if n in table.names]
    if held:
        column = table.column(draft.rng.choice(held))
        column.values[_row(draft, table)] = draft.rng.choice(column.values)


def _one_model(draft: Draft) -> None:
    if draft.layout != "files" or draft.command == ("preflight",):
        return
    del draft.words[1 : len(draft.given)]
    draft.must_refuse("predictions of one model")


def _unknown_option(draft: Draft) -> None:
    draft.words.append(draft.rng.choice(("--grups=sex", "--frobnicate", "-z")))
    draft.must_refuse("an unknown option")


def _score_beyond(draft: Draft) -> None:
    if draft.world.score is None:
        return
    table = _any_table(draft)
    scores = [c for c in table.columns if c.kind == "float" and _is_score(draft, c)]
    if scores:
        draft.rng.choice(scores).values[_row(draft, table)] = draft.rng.choice((1.5, -0.2, 17.0))
        if draft.world.count is None:
            draft.must_refuse("a score beyond 0 and 1")
        else:
            draft.may_refuse("a score beyond 0 and 1, of no example where the count is 0")


def _is_score(draft: Draft, column: Column) -> bool:
    if draft.layout != "wide":
        return column.name == draft.roles["score"]
    return "score" in column.name or column.name.startswith("prob ")


def _lacking_examples(draft: Draft) -> None:
    table = draft.plan.examples
    if table is not None:
        row = _row(draft, table)
        for column in table.columns:
            del column.values[row]
        if not table.rows:
            draft.must_refuse("an examples table without rows")


def _looks_counted(draft: Draft) -> None:
    """A table with one row per combination and their number, given without --count."""
    if draft.layout != "wide" or draft.plan.has_id or len(draft.tables) > 1:
        return
    table = draft.tables[0]
    kept: dict[str, int] = {}
    for row in range(table.rows):
        kept.setdefault(repr([c.values[row] for c in table.columns]), row)
    for column in table.columns:
        column.values = [column.values[row] for row in kept.values()]
    name = draft.rng.choice(("n", "count", "freq"))
    if name in table.names:
        return
    table.columns.append(
        Column(name, [draft.rng.randint(1, 500) for _ in range(table.rows)], "int")
    )


FLAWS = (
    _duplicate_row, _lost_rows, _lost_rows, _empty_cell("id"), _empty_cell("label"),
    _empty_cell("cluster"), _empty_cell("prediction"), _other_label, _bad_weight, _damaged,
    _no_rows, _absent_file, _two_of_a_name, _encoding, _encoding, *[_measured_label] * 3,
    _correctness_as_prediction, _nested_prediction, _varying_group, _one_model, _unknown_option,
    _score_beyond, _lacking_examples, *[_looks_counted] * 6,
)  # fmt: skip
