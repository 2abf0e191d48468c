"""Class probabilities that stand in a column each (`p_cat`, `p_dog`), as one list per row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.connection import Workspace, is_number, literal, quote
from fairweight.tables.sources import Source


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
