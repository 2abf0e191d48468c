"""Class probabilities: those in a column each (`p_cat`, `p_dog`) as one list per row, and logs.

Lists of log-probabilities, of classes or of the tokens that stand for them, are told by their
values: none is above 0, and together they are no more than 1. They become probabilities that sum
to 1 over the list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.checks import SCORE_TOLERANCE
from fairweight.tables.connection import Workspace, is_number, literal, one_row, quote
from fairweight.tables.frames import SUM_TOLERANCE
from fairweight.tables.sources import Source

if TYPE_CHECKING:
    import duckdb


def with_class_scores(
    workspace: Workspace,
    table: Source,
    given: str | Mapping[str, str],
    *,
    prediction: str,
    scores: str,
    known: frozenset[str],
) -> tuple[Source, str | None]:
    """The table with lists of class probabilities in place of columns, and what to say of it.

    Without a column of predictions, the class of the highest probability is the prediction; of
    several equal ones the first in the order of the classes.

    Parameters
    ----------
    given
        A pattern of one model's columns, or of a wide table variant to pattern.
    prediction, scores
        How the columns of predictions and of lists are called.
    known
        Variants of a wide table that have predictions.
    """
    patterns = {None: given} if isinstance(given, str) else dict(given)
    taken: dict[str, None] = {}
    added: dict[str, str] = {}
    kinds: dict[str, str] = {}
    order: tuple[str, ...] | None = None
    derived: list[str] = []
    for variant, pattern in patterns.items():
        if pattern.count("*") != 1:
            raise InputError(
                f"--scores {pattern!r} (class_scores=) needs one star, which stands for the class: "
                "p_* for the columns p_cat and p_dog."
            )
        before, after = pattern.split("*")
        by_class = {
            canonical(c[len(before) : len(c) - len(after)]) or "": c
            for c in table.columns
            if len(c) > len(pattern) - 1 and c.startswith(before) and c.endswith(after)
        }
        if len(by_class) < 2:
            shown = ", ".join(f"'{c}'" for c in list(table.columns)[:20])
            raise InputError(
                f"--scores {pattern!r} (class_scores=) matches {len(by_class)} of the columns of "
                f"{table.shown}, and a probability of every class is needed; its columns are: "
                f"{shown}."
            )
        for column in by_class.values():
            if not is_number(table.kind(column)):
                raise InputError(
                    f"--scores {pattern!r} (class_scores=) matches the column '{column}' of "
                    f"{table.shown}, which holds no numbers; give a pattern of probabilities alone."
                )
        classes = class_order(by_class)
        if order is not None and classes != order:
            raise InputError(
                f"The patterns of --scores (class_scores=) name different classes: "
                f"{', '.join(order)}; {', '.join(classes)}. Every model needs all of them."
            )
        order = classes
        numbers = [f"CAST({table.number(by_class[name])} AS DOUBLE)" for name in classes]
        absent = " OR ".join(f"{n} IS NULL OR isnan({n})" for n in numbers)
        vector = f"CASE WHEN {absent} THEN NULL ELSE [{', '.join(numbers)}] END"
        column = scores if variant is None else f"scores:{variant}"
        if column in table.columns:
            raise InputError(
                f"{table.shown} has a column '{column}' beside those of --scores {pattern!r} "
                "(class_scores=); leave --scores out, or rename the column."
            )
        added[column], kinds[column] = vector, "DOUBLE[]"
        taken |= dict.fromkeys(by_class.values())
        if variant is None:
            predicted = prediction if prediction not in table.columns else None
        else:
            own = {variant, canonical(variant)}
            predicted = None if own & known else f"prediction:{variant}"
        if predicted is not None:
            listed = ", ".join(literal(name) for name in classes)
            added[predicted] = f"[{listed}][list_position({vector}, list_max({vector}))]"
            kinds[predicted] = "VARCHAR"
            derived.append(predicted)
    held = [c for c in table.columns if c not in taken]
    hidden = [table.row_number] if table.row_number is not None else []
    selected = [quote(c) for c in (*held, *hidden)]
    selected += [f"{sql} AS {quote(c)}" for c, sql in added.items()]
    view = workspace.name("scores")
    workspace.connection.execute(
        f"CREATE TEMP VIEW {quote(view)} AS SELECT {', '.join(selected)} FROM {quote(table.view)}"
    )
    columns = {c: table.columns[c] for c in held} | kinds
    made = replace(table, view=view, columns=columns, score_classes=order)
    note = None
    if derived:
        note = (
            "There is no column of predictions: the most probable class is predicted "
            f"(classes {', '.join((order or ())[:5])}{', …' if len(order or ()) > 5 else ''})."
        )
    return made, note


def as_probabilities(
    connection: duckdb.DuckDBPyConnection, view: str, columns: Mapping[str, str]
) -> tuple[dict[str, str], str | None]:
    """SQL for the lists of a view that hold log-probabilities, and what to say of it.

    Parameters
    ----------
    columns
        Lists of the view to what messages call them.
    """
    if not columns:
        return {}, None
    summed = "list_sum(list_transform({0}, lambda x: exp(least(x, 1))))"
    asked = [f"min(list_min({c})), max(list_max({c})), max({summed.format(c)})" for c in columns]
    found = one_row(connection, f"SELECT {', '.join(asked)} FROM {quote(view)}")
    logs: dict[str, str] = {}
    for place, (column, shown) in enumerate(columns.items()):
        least, most, whole = found[3 * place : 3 * place + 3]
        if least is None or most > SCORE_TOLERANCE:
            continue  # nothing, or probabilities
        if least >= -SCORE_TOLERANCE:
            raise InputError(
                f"The scores '{shown}' are all 0, which could be probabilities or their "
                "logarithms, and neither sum to 1; give one probability per class."
            )
        if whole > 1 + SUM_TOLERANCE:
            raise InputError(
                f"The scores '{shown}' are below 0, but no log-probabilities: in some row they "
                f"stand for probabilities that sum to {whole:.3g}. Give probabilities, or logits "
                "less their log-sum-exp."
            )
        top = f"list_max({column})"
        powers = f"list_transform({column}, lambda x: exp(x - {top}))"
        logs[column] = (
            f"CASE WHEN {top} > '-inf'::DOUBLE "
            f"THEN list_transform({powers}, lambda x: x / list_sum({powers})) END AS {column}"
        )
    if not logs:
        return {}, None
    named = ", ".join(f"'{name}'" for name in dict.fromkeys(columns[c] for c in logs))
    return logs, (
        f"The scores {named} are log-probabilities (none is above 0); probabilities that sum to 1 "
        "over the classes are made of them."
    )
