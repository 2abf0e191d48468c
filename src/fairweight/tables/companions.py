"""Tables beside the predictions: of training labels, and of variants with parents and leaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.checks import require_plain
from fairweight.tables.connection import (
    Workspace,
    is_nested,
    is_number,
    one_row,
    quote,
    reading,
    renamed,
)
from fairweight.tables.layout import Names, require, seed_of
from fairweight.tables.sources import Source, open_source

if TYPE_CHECKING:
    import pandas as pd

COUNT_NAMES = ("count", "n")


@dataclass(frozen=True)
class TrainingTable:
    """A small table of counts on the audit's connection.

    Columns: `label`, `task` (if `has_task`), one `g<i>` for each of `group_columns`, numbered as
    in the aligned view, and `n`, the number of training examples.
    """

    view: str
    has_task: bool
    group_columns: tuple[tuple[str, str], ...]  # (the user's name, g<i>)
    n_examples: float
    n_unlabelled: int  # rows without a label, which say nothing


def count_training(
    workspace: Workspace, table: Source, label: str, task: str | None, groups: Sequence[str]
) -> TrainingTable:
    """Group the training rows, or add their given counts."""
    if label not in table.columns:
        raise UnknownNameError(
            f"In the training table {table.shown}, the column",
            label,
            table.columns,
            remedy="It must be named as in the predictions.",
        )
    require_plain(table, label, "label")
    held = [(name, f"g{i}") for i, name in enumerate(groups) if name in table.columns]
    has_task = task is not None and task in table.columns
    for name, _ in held:
        require_plain(table, name, "group")
    for name in groups:
        if name in {"n", "label", *(["task"] if has_task else [])} - {label, task}:
            raise InputError(
                f"The group column '{name}' has a name that counts of the training table "
                f"{table.shown} use themselves; rename it, or leave --train (train=) out."
            )
    if has_task:
        require_plain(table, str(task), "task")
    keys = [renamed(quote(label), label, "label")]
    if has_task:
        keys.append(renamed(quote(str(task)), task, "task"))
    keys += [f"{quote(name)} AS {column}" for name, column in held]
    counted = next((c for c in COUNT_NAMES if c in table.columns and c not in groups), None)
    if counted is not None and not is_number(table.kind(counted)):
        raise InputError(
            f"The column '{counted}' of the training table {table.shown} holds no numbers; "
            "it is read as the number of training examples."
        )
    number = "1::DOUBLE" if counted is None else f"CAST({table.number(counted)} AS DOUBLE)"
    view = workspace.name("training")
    with reading(f"the training table {table.shown}"):
        workspace.connection.execute(
            f"CREATE TEMP TABLE {quote(view)} AS SELECT {', '.join(keys)}, "
            f"sum({number}) AS n FROM {quote(table.view)} "
            f"WHERE {quote(label)} IS NOT NULL GROUP BY ALL"
        )
        total, least = one_row(workspace.connection, f"SELECT sum(n), min(n) FROM {quote(view)}")
        unlabelled, unknown = one_row(
            workspace.connection,
            f"SELECT count(*) FILTER ({quote(label)} IS NULL), count(*) FILTER ({quote(label)} IS "
            f"NOT NULL AND ({number} IS NULL OR isnan({number}) OR isinf({number}))) "
            f"FROM {quote(table.view)}",
        )
    if unknown:
        raise InputError(
            f"The column '{counted}' of the training table {table.shown} is missing or infinite in "
            f"{unknown:,} rows; it is read as the number of training examples, so give counts of "
            "at least 0."
        )
    if not total or least < 0:
        raise InputError(
            f"The training table {table.shown} counts no examples"
            + (" or counts below zero" if total else "")
            + "; give labels, or counts of at least 0."
        )
    return TrainingTable(view, has_task, tuple(held), float(total), int(unlabelled))


# Which member each member was derived from, as the variants table says.
#
# Members that descend from different models vary independently, and those of one model do not:
# pairing and the number of distinct parents decide what can be said of a method.

Member: TypeAlias = tuple[str, str]  # variant and seed, both as canonical text

HOW = "write it as VARIANT:SEED, such as dense:3, or leave it empty for a model trained afresh"


def parents(variants_table: pd.DataFrame | None) -> dict[Member, Member]:
    """Member to the member that it was derived from; roots and unknown ones are left out.

    Read from a column `parent` (`dense:3`, split at the last colon; a bare `dense` means the same
    seed), or from `parent_variant` and `parent_seed`. An empty value is a root.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"variant": ["dense", "int8", "int8"], "seed": [0, 0, 1],
    ...                       "parent": [None, "dense", "dense:0"]})
    >>> parents(table)
    {('int8', '0'): ('dense', '0'), ('int8', '1'): ('dense', '0')}
    """
    if variants_table is None:
        return {}
    members = _members(variants_table)
    named = _named_parents(variants_table, {variant for variant, _ in members})
    found: dict[Member, Member] = {}
    for (variant, seed), parent in zip(members, named, strict=True):
        if parent is not None:
            found[variant, seed] = (parent[0], seed if parent[1] is None else parent[1])
    settled: set[Member] = set()
    for start in found:
        path: dict[Member, None] = {}
        member = start
        while member in found and member not in settled:
            if member in path:
                circle = [*list(path)[list(path).index(member) :], member]
                raise InputError(
                    "The variants table goes in a circle: "
                    f"{' descends from '.join(shown(m) for m in circle)}; correct the parents."
                )
            path[member] = None
            member = found[member]
        settled.update(path)
    return found


def members_in(variants_table: pd.DataFrame | None) -> frozenset[Member]:
    """The members that the variants table speaks of: with a row, or as somebody's parent."""
    if variants_table is None:
        return frozenset()
    return frozenset((*_members(variants_table), *parents(variants_table).values()))


def stray_note(parents: Mapping[Member, Member], members: Iterable[Member]) -> str | None:
    """What to say of members whose parents cannot be found; None if all can.

    A misspelt parent would otherwise unpair a population in silence.

    >>> parents = {("int8", "0"): ("dense", "0"), ("int8", "1"): ("dens", "1")}
    >>> members = [("dense", "0"), ("dense", "1"), ("int8", "0"), ("int8", "1")]
    >>> print(stray_note(parents, members).partition(",")[0])
    The variants table says that 'int8' (seed 1) descends from 'dens' (seed 1)
    """
    known = list(members)
    stray: list[tuple[Member, Member]] = []
    for member in known:
        oldest = member
        while oldest in parents:
            oldest = parents[oldest]
            if oldest in known:
                break
        if oldest not in known:
            stray.append((member, oldest))
    if not stray:
        return None
    more = f" (and {len(stray) - 1:,} more have no known parent)" if len(stray) > 1 else ""
    return (
        f"The variants table says that {shown(stray[0][0])} descends from {shown(stray[0][1])}, "
        f"of which there are no predictions{more}."
    )


def _members(table: pd.DataFrame) -> list[Member]:
    """The member that each row speaks of, each once."""
    seeds = table["seed"] if "seed" in table.columns else [None] * len(table)
    members: dict[Member, None] = {}
    for given, seed in zip(table["variant"], seeds, strict=True):
        variant = canonical(given)
        if variant is None:
            raise InputError(
                "The variants table has a row without a variant; name the variant in every row."
            )
        member = (variant, str(seed_of(seed)))
        if member in members:
            raise InputError(
                f"The variants table has two rows for {shown(member)}; keep one row per variant "
                "and seed (columns 'variant' and 'seed')."
            )
        members[member] = None
    return list(members)


def _named_parents(table: pd.DataFrame, variants: set[str]) -> list[tuple[str, str | None] | None]:
    """What each row says of its parent: variant and seed (None: the same), or None for a root."""
    held = [name for name in ("parent", "parent_variant", "parent_seed") if name in table.columns]
    if not held:
        return [None] * len(table)
    if held == ["parent"]:
        return [_split(value, variants) for value in table["parent"]]
    if "parent" in held or "parent_variant" not in held:
        raise InputError(
            f"The variants table has the columns {' and '.join(repr(name) for name in held)}; say "
            "it in one way: 'parent' (dense:3), or 'parent_variant' and 'parent_seed'."
        )
    seeds = table["parent_seed"] if "parent_seed" in held else [None] * len(table)
    found: list[tuple[str, str | None] | None] = []
    for given, seed in zip(table["parent_variant"], seeds, strict=True):
        variant, number = canonical(given), canonical(seed)
        if variant is None and number is not None:
            raise InputError(
                f"The variants table has the parent_seed {number!r} without a parent_variant; "
                "name both, or neither for a model trained afresh."
            )
        same = None if number is None else str(seed_of(seed))
        found.append(None if variant is None else (variant, same))
    return found


def _split(value: Any, variants: set[str]) -> tuple[str, str | None] | None:
    text = (canonical(value) or "").strip()
    if not text:
        return None
    if text in variants:  # also a name that has a colon of its own
        return text, None
    variant, colon, seed = (part.strip() for part in text.rpartition(":"))
    if not colon and isinstance(value, str):
        return text, None
    if not variant or not seed:
        raise InputError(
            f"The variants table has the parent {text!r}, which names no member; {HOW}."
        )
    return variant, str(seed_of(seed))


def shown(member: Member) -> str:
    """A member as it is named in a message."""
    return f"'{member[0]}' (seed {member[1]})"


# The variants table: one row per variant and seed, with what is known of the model.

# Columns of names: text from a text file, whatever they look like. The others may be measured.
NAMES = frozenset(
    ("variant", "seed", "parent", "parent_variant", "parent_seed", "dataset", "model", "method",
     "treatment")
)  # fmt: skip


def variants_table(workspace: Workspace, table: Source, names: Names) -> pd.DataFrame:
    """The table as a frame, its columns `variant` and `seed` so named, its parents checked."""
    require(table, names.variant, "--variant-column (variant=)")
    for column in (names.variant, names.seed, "parent", "parent_variant", "parent_seed", "leak"):
        if column in table.columns:
            require_plain(table, column, column)
    selected = []
    for column in table.columns:
        role = {names.variant: "variant", names.seed: "seed"}.get(column, column)
        if role != column and role in table.columns:
            raise InputError(
                f"The variants table {table.shown} has a column '{role}' beside '{column}', which "
                f"is the {role}; rename the first."
            )
        # What is no plain value (lists, bytes) is shown as text; nothing is computed from it.
        plain = not is_nested(table.columns[column]) and table.columns[column] != "BLOB"
        value = quote(column) if role in NAMES else table.number(column)
        if not plain:
            value = f"CAST({quote(column)} AS VARCHAR)"
        elif role == "variant":
            value = canonical_sql(value, table.columns[column])
        selected.append(f"{value} AS {quote(role)}")
    with reading(f"the variants table {table.shown}"):
        frame = workspace.connection.execute(
            f"SELECT {', '.join(selected)} FROM {quote(table.view)}"
        ).df()
    parents(frame)
    return frame


def read_variants(given: Any, names: Names) -> tuple[pd.DataFrame, Source]:
    """A variants table by itself (of cubes, which need no connection), and where it came from."""
    with closing(Workspace()) as workspace:
        table = open_source(workspace, given)
        return variants_table(workspace, table, names), table


# What a variant's teacher saw beyond its own training set, as the variants table says.
#
# A model distilled from a teacher that was trained on more data than itself has seen those data
# through the teacher: it is no evidence about training without them.

COLUMN = "leak"


def leaks(variants_table: pd.DataFrame | None, variants: Sequence[str]) -> dict[str, str]:
    """The sentences about leaks of each variant that has any; equal ones of members once.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"variant": ["dense", "kd", "kd"], "seed": [0, 0, 1],
    ...                       "leak": [None, "The teacher saw 5 more.", "The teacher saw 5 more."]})
    >>> leaks(table, ["kd"])
    {'kd': 'The teacher saw 5 more.'}
    """
    if variants_table is None or COLUMN not in variants_table.columns:
        return {}
    said: dict[str, dict[str, None]] = {name: {} for name in variants}
    for name, given in zip(variants_table["variant"], variants_table[COLUMN], strict=True):
        text = (canonical(given) or "").strip()
        variant = canonical(name)
        if text and variant in said:
            said[variant][text] = None
    return {variant: " ".join(texts) for variant, texts in said.items() if texts}


def leak_notes(found: dict[str, str]) -> list[str]:
    """One note for each distinct leak, with the variants that have it.

    >>> leak_notes({"kd": "The teacher saw 5 more.", "at": "The teacher saw 5 more."})
    ['Leak in kd, at: The teacher saw 5 more.']
    """
    by_text: dict[str, list[str]] = {}
    for variant, text in found.items():
        by_text.setdefault(text, []).append(variant)
    return [f"Leak in {', '.join(names)}: {text}" for text, names in by_text.items()]
