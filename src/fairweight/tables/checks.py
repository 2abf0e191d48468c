"""What cannot be audited: columns that do not exist, missing labels, impossible scores, weights."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairweight.base.fields import options_of
from fairweight.base.wording import are, counted, have
from fairweight.errors import InputError, brief
from fairweight.tables.connection import (
    is_float,
    is_list,
    is_nested,
    is_text,
    missing,
    one_row,
    quote,
)
from fairweight.tables.identity import SHOWN_EXAMPLES, named
from fairweight.tables.names import split_grouping
from fairweight.tables.sources import Source
from fairweight.tables.spec import TEXTS, OutcomeRole, TableSpec

if TYPE_CHECKING:
    import duckdb

# Probabilities from single-precision softmax exceed 1 by rounding.
SCORE_TOLERANCE = 1e-6
LEAST_WEIGHT, MOST_WEIGHT = 1e-28, 1e28  # sums of all examples fit into single precision
MOST_EXAMPLES = 10**12  # sums of counts stay exact in doubles, with room to add them
NAN = ("nan", "NaN", "NAN", "Nan", "-nan")  # a text that may be a missing value
OF_CLASSES = {"label": "label", "p": "prediction", "g": "group"}  # columns of the view, by letter
SHOWN_TYPE = 60  # characters of a type in a message


@dataclass(frozen=True)
class Checked:
    """How many rows there are, and which optional columns hold nothing at all."""

    rows: int
    examples: int  # rows, or what they count
    empty: frozenset[str]
    list_length: int | None  # entries of the class-probability lists
    binary: bool = False  # outcomes: all are 0 or 1
    shared_denominator: bool = True  # outcomes: every example has one, whatever the model


def check_values(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    kinds: Mapping[str, str],
    numbers: Sequence[int],
    label: str,
    columns: Mapping[str, str],
    force: bool = False,
    outcome: bool = False,
    limits: tuple[float, float] | None = None,
) -> Checked:
    """One pass over the aligned view.

    `kinds` are the types of its columns, `numbers` the members, `columns` the user's names of the
    columns for messages; `force` takes the text `nan` as a name. `outcome`: predictions are numbers
    (with denominators `d0 ...`), and `limits` are the least and the largest that they can be.
    """
    asked = {"rows": "count(*)", "label": f"count(*) FILTER ({missing('label', kinds['label'])})"}
    asked["examples"] = 'sum("count")' if "count" in kinds else "count(*)"
    bad: dict[str, str] = {}
    if "weight" in kinds:
        bad["weight"] = "(weight IS NULL OR isnan(weight) OR weight < 0 OR isinf(weight))"
        asked["weight"] = f"count(*) FILTER ({bad['weight']})"
        asked["least_weight"] = "min(weight) FILTER (weight > 0)"
        asked["most_weight"] = "max(weight) FILTER (weight > 0)"
    binary = [f"p{number} IN (0, 1)" for number in numbers] if outcome else ["false"]
    shared = [f"d{n} = d0" for n in numbers if f"d{n}" in kinds and n] if outcome else []
    asked["other"] = f"count(*) FILTER (NOT ({' AND '.join(binary)}))"
    asked["unshared"] = f"count(*) FILTER (NOT ({' AND '.join(shared or ['true'])}))"
    for number in numbers if outcome else ():
        value, size = f"p{number}", f"d{number}"
        bad[value] = f"({value} IS NULL OR isnan({value}) OR isinf({value}))"
        asked[value] = f"count(*) FILTER ({bad[value]})"
        if limits is not None:
            bad[f"{value}_range"] = f"({value} < {limits[0]!r} OR {value} > {limits[1]!r})"
            asked[f"{value}_range"] = f"count(*) FILTER ({bad[f'{value}_range']})"
        if size in kinds:
            bad[size] = f"({size} IS NULL OR isnan({size}) OR isinf({size}) OR {size} < 0)"
            asked[size] = f"count(*) FILTER ({bad[size]})"
            asked[f"{size}_total"] = f"sum({size})"
    for number in numbers:
        predicted = f"NOT {missing(f'p{number}', kinds[f'p{number}'])}"
        score, scores, rank = f"s{number}", f"v{number}", f"r{number}"
        if rank in kinds:
            bad[rank] = f"({rank} < 1 OR {rank} <> trunc({rank}))"
            asked[rank] = f"count(*) FILTER ({bad[rank]})"
        if score in kinds:
            absent = f"({score} IS NULL OR isnan({score}))"
            bad[score] = (
                f"({score} < {-SCORE_TOLERANCE} OR {score} > {1 + SCORE_TOLERANCE}) "
                f"AND NOT {absent}"
            )
            asked[score] = f"count(*) FILTER ({bad[score]})"
            asked[f"{score}_absent"] = f"count(*) FILTER ({absent} AND {predicted})"
            asked[f"{score}_held"] = f"count(*) FILTER (NOT {absent})"
        if scores in kinds:
            bad[scores] = (
                f"(list_min({scores}) < {-SCORE_TOLERANCE} OR "
                f"list_max({scores}) > {1 + SCORE_TOLERANCE} OR "
                f"list_count({scores}) < len({scores}))"
            )
            asked[scores] = f"count(*) FILTER ({bad[scores]})"
            asked[f"{scores}_absent"] = f"count(*) FILTER ({scores} IS NULL AND {predicted})"
            asked[f"{scores}_held"] = f"count({scores})"
            asked[f"{scores}_least"] = f"min(len({scores}))"
            asked[f"{scores}_most"] = f"max(len({scores}))"
    texts = {
        name: role
        for name, kind in kinds.items()
        if (role := OF_CLASSES.get(name.rstrip("0123456789"))) and is_text(kind) and not force
    }
    for name in list(texts):
        plain = name
        if kinds[name] == '"NULL"':  # nothing but missing values
            del texts[name]
            continue
        if kinds[name] != "VARCHAR":  # an enumeration: its values are known without a look at rows
            held = one_row(connection, f"SELECT enum_range(NULL::{kinds[name]})::VARCHAR[]")[0]
            if not set(NAN) & set(held):
                del texts[name]
                continue
            plain = f"CAST({name} AS VARCHAR)"
        bad[f"{name}_nan"] = f"{plain} IN {NAN}"
        asked[f"{name}_nan"] = f"count(*) FILTER ({bad[f'{name}_nan']})"
    selected = ", ".join(f"{sql} AS {quote(name)}" for name, sql in asked.items())
    found = one_row(connection, f"SELECT {selected} FROM {quote(view)}")
    result: dict[str, Any] = dict(zip(asked, found, strict=True))

    def some(condition: str) -> str:
        rows = connection.execute(
            f"SELECT DISTINCT example_id FROM {quote(view)} WHERE {condition} "
            f"ORDER BY 1 LIMIT {SHOWN_EXAMPLES}"
        ).fetchall()
        return named([row[0] for row in rows])

    if not result["rows"]:
        raise InputError(
            "No example is left: the variants have no example in common; check the example ids."
        )
    refuse_too_many(int(result["examples"]))
    if result["label"]:
        examples = some(missing("label", kinds["label"]))
        raise InputError(
            f"{counted(result['label'], 'row')} {have(result['label'])} no label ('{label}'), "
            f"such as {examples}; fill the labels or leave those examples out."
        )
    for name, role in texts.items():
        if found_nan := result[f"{name}_nan"]:
            left = " or leave the column out of --groups," if role == "group" else ""
            raise InputError(
                f"The {role} column '{columns.get(name, label)}' has the text 'nan' in "
                f"{counted(found_nan, 'row')}, such as {some(bad[f'{name}_nan'])}, which may be a "
                "missing value or a name. If it is missing, leave the cell empty (null in JSON and "
                f"Parquet, None in Python),{left} else take it as a name with --force (force=True)."
            )
    if "weight" in bad:
        if result["weight"]:
            raise InputError(
                f"The weight column '{columns['weight']}' is negative, infinite or missing in "
                f"{counted(result['weight'], 'row')}, such as {some(bad['weight'])}; "
                "correct them: weights are numbers of at least 0."
            )
        least, most = result["least_weight"], result["most_weight"]
        if most is None:
            raise InputError(
                f"The weight column '{columns['weight']}' is zero everywhere; give weights above "
                "0, or leave the column out."
            )
        if least < LEAST_WEIGHT or most > MOST_WEIGHT:
            raise InputError(
                f"The weight column '{columns['weight']}' has weights from {least:g} to {most:g}, "
                "whose squares cannot be computed with; divide all weights by their mean."
            )
    for number in numbers if outcome else ():
        value, size = f"p{number}", f"d{number}"
        if result[value]:
            raise InputError(
                f"The outcome '{columns[value]}' is missing or infinite in "
                f"{counted(result[value], 'row')}, such as {some(bad[value])}; give the number "
                "that such an example deserves (a failure is often the worst value), or leave the "
                "example out for all models."
            )
        if result.get(f"{value}_range"):
            assert limits is not None
            raise InputError(
                f"The outcome '{columns[value]}' lies outside --range {limits[0]:g},{limits[1]:g} "
                f"in {counted(result[f'{value}_range'], 'row')}, such as "
                f"{some(bad[f'{value}_range'])}; correct the values, or the range."
            )
        if result.get(size):
            raise InputError(
                f"The denominator '{columns[size]}' is negative, infinite or missing in "
                f"{counted(result[size], 'row')}, such as {some(bad[size])}; correct them: "
                "denominators are numbers of at least 0."
            )
        if size in kinds and not result[f"{size}_total"]:
            raise InputError(
                f"The denominator '{columns[size]}' is zero everywhere; name another column."
            )
    empty: set[str] = set()
    lengths: set[int] = set()
    for number in numbers:
        rank = f"r{number}"
        if result.get(rank):
            raise InputError(
                f"The column '{columns[rank]}' has {counted(result[rank], 'value')} that "
                f"{are(result[rank])} no place, such as {some(bad[rank])}; it says which place the "
                "true label has among the predictions: 1, 2, 3 ..."
            )
        for name in (f"s{number}", f"v{number}"):
            if name not in kinds:
                continue
            if not result[f"{name}_held"]:
                empty.add(name)
                continue
            if result[name]:
                held = (
                    f"{counted(result[name], 'value')} outside [0, 1]"
                    if name[0] == "s"
                    else f"{counted(result[name], 'list')} with an entry outside [0, 1] or empty"
                )
                raise InputError(
                    f"The score column '{columns[name]}' has {held}, such as {some(bad[name])}; "
                    "give probabilities, not logits."
                )
            if result[f"{name}_absent"]:
                gap = "IS NULL" if name[0] == "v" else f"IS NULL OR isnan({name})"
                raise InputError(
                    f"The score column '{columns[name]}' is missing for "
                    f"{counted(result[f'{name}_absent'], 'prediction')}, such as "
                    f"{some(f'({name} {gap}) AND p{number} IS NOT NULL')}; give a score for every "
                    "prediction, or leave the column out."
                )
            if name[0] == "v":
                lengths |= {int(result[f"{name}_least"]), int(result[f"{name}_most"])}
    if len(lengths) > 1:
        raise InputError(
            f"The lists of class probabilities have different lengths ({min(lengths)} to "
            f"{max(lengths)}); give one probability per class, in one order."
        )
    return Checked(
        rows=int(result["rows"]),
        examples=int(result["examples"]),
        empty=frozenset(empty),
        list_length=lengths.pop() if lengths else None,
        binary=outcome and not result["other"] and not any(f"d{n}" in kinds for n in numbers),
        shared_denominator=not result["unshared"],
    )


def refuse_without_classes(role: OutcomeRole | None, *, labelled: bool) -> None:
    """Refuse what asks which predictions are right, where there are numbers or no labels."""
    if role is not None and not role.binary:
        raise InputError(
            f"'{role.name}' is a number, and this asks which predictions are right, how sure a "
            "model was of them, or what was voted. Numbers can be audited, gated, counted, chosen "
            "by and, one row per example, searched for slices and losses (fairweight audit, gate, "
            "count, choose, explain, exemplars); here give labels and predictions, or an outcome "
            "of 0 and 1."
        )
    if not labelled and role is None:
        raise InputError(
            "This command needs to know which predictions are right, and there are no labels. "
            "Without labels use fairweight audit --unlabelled; here name the labels (--label)."
        )


def refuse_two_clusters(*, crossed: bool) -> None:
    """Refuse what draws or holds out whole clusters, where two columns bind examples."""
    if crossed:
        raise InputError(
            "This command draws clusters whole, which clusters of two columns cannot be; give one "
            "--cluster (cluster=), the one that binds more examples. fairweight audit, gate and "
            "count take two."
        )


def refuse_too_many(examples: int) -> None:
    """An error where there are more examples than can be resampled."""
    if examples > MOST_EXAMPLES:
        raise InputError(
            f"There are {examples:,} examples, and at most {MOST_EXAMPLES:,} can be audited; take "
            "a random part of them."
        )


def require_plain(table: Source, column: str, role: str) -> None:
    """An error where a column holds lists, structures or maps: its rows have no single value."""
    kind = table.columns[column]
    if not is_nested(kind):
        return
    what, part = ("lists", "entry") if is_list(kind) else ("structures", "field")
    shown = kind if len(kind) <= SHOWN_TYPE else f"{kind[:SHOWN_TYPE]}…"
    raise InputError(
        f"The {role} column '{column}' of {table.shown} holds {what} (type {shown}), and each row "
        f"needs one value; make a column of the {part} that is meant, and name that."
    )


def double(expression: str, kind: str) -> str:
    """SQL for a number as DOUBLE."""
    return expression if kind == "DOUBLE" else f"CAST({expression} AS DOUBLE)"


def probability(expression: str, kind: str) -> str:
    """SQL for a probability as DOUBLE, with rounding beyond 0 and 1 taken off.

    Values further out stay as they are: `check_values` reports them.
    """
    number = double(expression, kind)
    if not is_float(kind):
        return number
    return (
        f"CASE WHEN {number} > 1 AND {number} <= {1 + SCORE_TOLERANCE} THEN 1.0::DOUBLE "
        f"WHEN {number} < 0 AND {number} >= {-SCORE_TOLERANCE} THEN 0.0::DOUBLE ELSE {number} END"
    )


def refuse_unknown(request: TableSpec, tables: Sequence[Source], examples: Source | None) -> None:
    """One error for all columns that were named and that no table has, where there are several.

    Of a single one the place that needs it knows more to say.
    """
    held = {c for t in (*tables, *([examples] if examples is not None else [])) for c in t.columns}
    named: dict[str, str] = {}  # column -> option
    options = options_of(request)
    for name in (*TEXTS, "cluster"):
        value, (default, about) = getattr(request, name), options[name]
        if value is not None and value != default.default:
            for column in (value,) if isinstance(value, str) else value:
                named.setdefault(column, about.flag)
    for name in ("predictions", "scores", "outcome", "denominator"):
        given = getattr(request, name) or {}
        for columns in ([given],) if isinstance(given, str) else given.values():
            named |= {c: options[name][1].flag for c in columns if c not in named}
    for grouping in request.groups or ():
        parts = [grouping.strip()] if {grouping, grouping.strip()} & held else None
        for column in parts or split_grouping(grouping.strip()):
            named.setdefault(column, options["groups"][1].flag)
    unknown = {column: flag for column, flag in named.items() if column not in held}
    if len(unknown) < 2:
        return
    said = []
    for column, flag in unknown.items():
        near = difflib.get_close_matches(column[:200], held, n=1, cutoff=0.6)
        hint = f" (did you mean '{near[0]}'?)" if near else ""
        said.append(f"{flag} '{brief(column)}'{hint}")
    shown = ", ".join(table.shown for table in tables[:3]) + (", …" if len(tables) > 3 else "")
    known = ", ".join(f"'{brief(c)}'" for c in list(dict.fromkeys(
        c for t in tables for c in t.columns))[:20])  # fmt: skip
    raise InputError(
        f"{len(unknown)} columns do not exist in {shown}: {', '.join(said)}. There are: {known}"
        f"{' and more' if len(held) > 20 else ''}."
    )
