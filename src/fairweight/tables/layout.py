"""Which of the three layouts a table has, and where each member's predictions are.

long   one row per example and variant: a `variant` and a `prediction` column
wide   one row per example, one prediction column per variant or member
files  one table per model, joined on the example's identity
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, canonical_sql, is_whole
from fairweight.tables.checks import refuse_unknown, require_plain
from fairweight.tables.class_scores import with_class_scores
from fairweight.tables.connection import (
    Workspace,
    is_integer,
    is_list,
    is_number,
    is_text,
    literal,
    quote,
    reading,
)
from fairweight.tables.frequencies import read_counts
from fairweight.tables.queries import open_tables
from fairweight.tables.sources import Source
from fairweight.tables.spec import Columns, TableSpec

# Where the column of predictions, or of outcomes, is named.
_PLACE = {
    False: "--prediction-column (prediction=), or a column per model with --prediction NAME=COLUMN",
    True: "--outcome (outcome=)",
}
_WIDE = {False: "--prediction NAME=COLUMN (predictions=)", True: "--outcome NAME=COLUMN (outcome=)"}
ALONE = "dense"  # what a model is called that nobody named


@dataclass(frozen=True)
class Names:
    """The names that the user's columns have."""

    label: str = "label"
    id: str = "example_id"
    variant: str = "variant"
    seed: str = "seed"
    prediction: str = "prediction"
    score: str = "score"
    scores: str = "scores"
    label_rank: str = "label_rank"
    count: str | None = None  # how many examples a row stands for; None: one
    outcome: bool = False  # `prediction` is the column of a number that says how well it went
    denominator: str | None = None
    answer: str | None = None  # beside an outcome: the column of predictions

    @classmethod
    def of(cls, tables: TableSpec) -> Names:
        names = cls(
            tables.label, tables.id, tables.variant, tables.repeat or tables.seed,
            tables.prediction, tables.score, count=tables.count,
        )  # fmt: skip
        if tables.outcome is None:
            return names
        single = isinstance(tables.outcome, str)
        return replace(
            names,
            prediction=str(tables.outcome) if single else tables.prediction,
            outcome=True,
            denominator=tables.denominator if isinstance(tables.denominator, str) else None,
            answer=tables.prediction if single and tables.prediction != tables.outcome else None,
        )


@dataclass(frozen=True)
class MemberColumns:
    """Where one member (a variant and seed) has its predictions."""

    variant: str
    seed: str | int
    source: Source
    prediction: str
    score: str | None = None
    scores: str | None = None
    label_rank: str | None = None
    where: str | None = None  # SQL condition on the source's rows; None for all rows
    outcome: bool = False  # `prediction` holds numbers that say how well it went
    denominator: str | None = None  # of an outcome
    answer: str | None = None  # beside an outcome: what was predicted


@dataclass(frozen=True)
class Layout:
    """The members in the order of appearance, and the columns that are spoken for."""

    kind: Literal["long", "wide", "files"]
    parts: tuple[MemberColumns, ...]
    inputs: tuple[Source, ...]
    used: frozenset[str]  # columns that are no candidates for groups
    notes: tuple[str, ...] = ()


def recognise(
    workspace: Workspace,
    request: TableSpec,
    *,
    alone: bool = False,
    examples: Source | None = None,
) -> Layout:
    """Open the source or sources and find the members in them; `alone`: one model will do."""
    names = Names.of(request)
    opened = open_tables(workspace, request)
    refuse_unknown(request, [table for _, table in opened], examples)
    notes: tuple[str, ...] = ()
    if request.class_scores is not None:
        tables = [table for _, table in opened]
        vectors = [
            with_class_scores(
                workspace,
                table,
                request.class_scores,
                prediction=names.prediction,
                scores=names.scores,
                known=frozenset(request.predictions or ()) | {v for v, _ in _recognised(table)},
            )
            for table in tables
        ]
        opened = [(name, table) for (name, _), (table, _) in zip(opened, vectors, strict=True)]
        notes = tuple(dict.fromkeys(note for _, note in vectors if note is not None))
    found = _recognised_layout(workspace, opened, request, names, alone=alone)
    return replace(found, notes=(*notes, *found.notes))


def _recognised_layout(
    workspace: Workspace,
    opened: list[tuple[str | None, Source]],
    request: TableSpec,
    names: Names,
    *,
    alone: bool,
) -> Layout:
    """The layout of tables that are open."""
    predictions, scores = request.predictions, request.scores
    if isinstance(request.outcome, Mapping):
        predictions = request.outcome
    elif isinstance(request.denominator, Mapping):
        raise InputError(
            "--denominator names a column for every variant (NAME=COL), and --outcome one for all; "
            "say both in the same way."
        )
    if request.repeat is not None and predictions is not None:
        raise InputError(
            f"--repeat-column '{request.repeat}' (repeat=) tells rows of one model apart, and a "
            "wide table has one row for each example; give every run a column of its own: "
            "--prediction NAME=COL (or --outcome NAME=COL) again, and --members repeated."
        )
    if names.count is not None:
        opened = [(name, read_counts(workspace, table, names.count)) for name, table in opened]
    if len(opened) == 1:
        name, table = opened[0]
        one_model = names.prediction in table.columns and names.variant not in table.columns
        if alone and predictions is None and one_model:
            return _files(workspace, [(name or ALONE, table)], names)
        return _with_denominators(
            _single(workspace, table, names, predictions, scores), names, request.denominator
        )
    explicit = [name is not None for name, _ in opened]
    tables = [table for _, table in opened]
    long = all({names.variant, names.prediction} <= set(table.columns) for table in tables)
    if not any(explicit) and predictions is None and long:
        return _long(workspace, _union(workspace, tables), tuple(tables), names)
    wide = predictions is not None or (
        names.prediction == Names.prediction
        and all(
            names.prediction not in table.columns and len(_recognised(table)) > 1
            for table in tables
        )
    )
    if not any(explicit) and wide:
        found = _with_denominators(
            _wide(_union(workspace, tables), tuple(tables), names, predictions, scores),
            names,
            request.denominator,
        )
        said = f"{len(tables)} files were read as parts of one table."
        return Layout(found.kind, found.parts, tuple(tables), found.used, (*found.notes, said))
    if predictions is not None:
        raise InputError(
            "predictions= names columns of one wide table, but several named tables were given; "
            "give one table, or drop predictions= (--prediction)."
        )
    return _files(workspace, opened, names)


def _with_denominators(layout: Layout, names: Names, denominator: str | Columns | None) -> Layout:
    """A wide table whose outcomes have denominators: a column for all, or one for each variant."""
    if layout.kind != "wide" or not names.outcome:
        return layout
    table = layout.parts[0].source
    own: dict[tuple[str, str | int], str] = {}
    if isinstance(denominator, Mapping):
        own = _given(table, denominator, "--denominator NAME=COLUMN (denominator=)")
        members = {(part.variant, part.seed) for part in layout.parts}
        for variant, seed in members - {*own}:
            raise InputError(
                f"--denominator names no column for '{variant}' (member {seed}); name one for "
                "every column of --outcome, or one for all (--denominator COL)."
            )
    elif denominator is not None:
        require(table, denominator, "--denominator (denominator=)")
        own = {(part.variant, part.seed): denominator for part in layout.parts}
    parts = tuple(
        replace(part, outcome=True, denominator=own.get((part.variant, part.seed)))
        for part in layout.parts
    )
    used = {part.denominator for part in parts if part.denominator is not None}
    return replace(layout, parts=parts, used=layout.used | used)


# --- one table ---------------------------------------------------------------------------------


def _union(workspace: Workspace, tables: Sequence[Source]) -> Source:
    """The parts as one table; a column that they hold in different types is text in it."""
    view = workspace.name("union")
    names = dict.fromkeys(column for table in tables for column in table.columns)
    guessed: dict[str, str] = {}
    as_text: set[str] = set()
    for column in names:
        holders = [table for table in tables if column in table.columns]
        held = {table.columns[column] for table in holders}
        looks = [table.kind(column) for table in holders]
        # As whole numbers beside floats, or as one of these beside text, values would be changed.
        mixed = len(held) > 1 and not all(is_integer(kind) for kind in held)
        if mixed and all(is_number(kind) or is_text(kind) for kind in held):
            as_text.add(column)
        if (column in as_text or held == {"VARCHAR"}) and all(map(is_number, looks)):
            guessed[column] = "BIGINT" if all(map(is_integer, looks)) else "DOUBLE"

    def selected(table: Source) -> str:
        return ", ".join(
            f"{canonical_sql(quote(c), kind)} AS {quote(c)}" if c in as_text else quote(c)
            for c, kind in table.columns.items()
        )

    parts = " UNION ALL BY NAME ".join(f"SELECT {selected(t)} FROM {quote(t.view)}" for t in tables)
    name = ", ".join(table.name for table in tables)
    with reading(f"the parts ({name})"):
        workspace.connection.execute(f"CREATE TEMP VIEW {quote(view)} AS {parts}")
        rows = workspace.connection.execute(f"DESCRIBE {quote(view)}").fetchall()
    columns = {str(row[0]): str(row[1]) for row in rows}
    files = tuple(file for table in tables for file in table.files)
    return Source(
        name,
        view,
        columns,
        rows=sum(table.rows for table in tables),
        files=files,
        score_classes=tables[0].score_classes,
        total=sum(table.n_examples for table in tables),
        guessed=guessed,
    )


def require(source: Source, column: str, option: str) -> str:
    """The column, if the table has it; else an error with the nearest name."""
    if column not in source.columns:
        raise UnknownNameError(
            f"In {source.shown}, the column",
            column,
            source.columns,
            remedy=f"Name the right one with {option}.",
        )
    return column


def _single(
    workspace: Workspace,
    table: Source,
    names: Names,
    predictions: Columns | None,
    scores: Columns | None,
) -> Layout:
    """The layout of one table, by its columns."""
    if predictions is not None:
        return _wide(table, (table,), names, predictions, scores)
    has_variant = names.variant in table.columns
    has_prediction = names.prediction in table.columns
    if has_variant and has_prediction:
        return _long(workspace, table, (table,), names)
    if not has_variant and names.variant != "variant":
        require(table, names.variant, "--variant-column (variant=)")
    if names.outcome and not has_variant:
        require(table, names.prediction, _PLACE[True])
        raise InputError(
            f"{table.shown} has one outcome ('{names.prediction}') and no '{names.variant}' "
            "column, so it is of one model only; give the compressed model's table too "
            "(dense=a.csv int8=b.csv), or name a column for each model: --outcome dense=COL "
            "--outcome int8=COL."
        )
    if names.prediction != Names.prediction:  # named: no other column is taken in its place
        require(table, names.prediction, _PLACE[names.outcome])
    elif _recognised(table) and not names.outcome:
        return _wide(table, (table,), names, None, scores)
    if has_variant:
        require(table, names.prediction, _PLACE[names.outcome])
    if has_prediction:
        raise InputError(
            f"{table.shown} has the predictions of one model only ('{names.prediction}', no "
            f"'{names.variant}' column); give the compressed model's table too, as in: "
            "dense=dense.csv int8=int8.csv. If the table has a column for every model, name each: "
            "--prediction dense=COLUMN --prediction int8=COLUMN."
        )
    raise InputError(
        f"{table.shown} has no recognisable predictions; its columns are: "
        f"{', '.join(repr(c) for c in table.columns)}. Say which column holds which model's "
        "predictions: --prediction dense=COLUMN --prediction int8=COLUMN "
        "(predictions={'dense': 'COLUMN', 'int8': 'COLUMN'})."
    )


# --- long --------------------------------------------------------------------------------------


def _long(workspace: Workspace, table: Source, inputs: tuple[Source, ...], names: Names) -> Layout:
    has_seed = names.seed in table.columns
    for column, role in ((names.variant, "variant"), (names.seed, "seed")):
        if column in table.columns:
            require_plain(table, column, role)
    seed = quote(names.seed) if has_seed else "NULL"
    with reading(table.shown):
        rows = workspace.connection.execute(
            f"SELECT variant, seed, {canonical_sql('variant', table.columns[names.variant])}, "
            f"{canonical_sql('seed', table.columns[names.seed]) if has_seed else seed} FROM ("
            f"SELECT variant, seed, min(position) AS first FROM (SELECT {quote(names.variant)} "
            f"AS variant, {seed} AS seed, row_number() OVER () AS position "
            f"FROM {quote(table.view)}) GROUP BY ALL) ORDER BY first"
        ).fetchall()
    if not has_seed and names.seed != "seed":
        require(table, names.seed, "--seed-column (seed=), or --repeat-column (repeat=)")
    conditions: dict[tuple[str, str | int], list[str]] = {}
    for variant, seed_value, name, member in rows:
        if name is None:
            raise InputError(
                f"{table.shown} has rows without a value in '{names.variant}'; "
                "every row must say which model made the prediction."
            )
        where = f"{quote(names.variant)} IS NOT DISTINCT FROM {literal(variant)}"
        if has_seed:
            plain = isinstance(seed_value, str | int | float | None)
            seed_text = literal(seed_value if plain else str(seed_value))
            where += f" AND {quote(names.seed)} IS NOT DISTINCT FROM {seed_text}"
        conditions.setdefault((name, seed_of(member)), []).append(f"({where})")
    parts = tuple(
        MemberColumns(
            variant=name,
            seed=member_seed,
            source=table,
            prediction=names.prediction,
            **_score_columns(table, names),
            **_outcome_columns(table, names),
            where=" OR ".join(found),
        )
        for (name, member_seed), found in conditions.items()
    )
    return Layout("long", parts, inputs, _used(names))


def _used(names: Names) -> frozenset[str]:
    """Columns of long tables and of files per model that are no groups."""
    used = (names.variant, names.seed, names.prediction, names.score, names.scores,
            names.label_rank, names.denominator, names.answer)  # fmt: skip
    return frozenset(name for name in used if name is not None)


def seed_of(value: Any) -> str | int:
    """A seed by its canonical text, a whole number where it is one; 0 where there is none.

    >>> [seed_of(v) for v in (None, 3, 3.0, "3", "03", "a")]
    [0, 3, 3, 3, '03', 'a']
    """
    text = canonical(value)
    if text is None:
        return 0
    return int(text) if is_whole(text) else text


def _score_columns(table: Source, names: Names) -> dict[str, Any]:
    if names.outcome:  # what is called a score there is the outcome, or another one
        return {}
    score = names.score if names.score in table.columns else None
    scores = names.scores if names.scores in table.columns else None
    if score is None and names.score != "score":
        require(table, names.score, "--score-column (score=)")
    if score is not None and is_list(table.columns[score]):
        score, scores = None, score
    rank = names.label_rank if names.label_rank in table.columns else None
    return {"score": score, "scores": scores, "label_rank": rank}


def _outcome_columns(table: Source, names: Names) -> dict[str, Any]:
    """The columns that go with an outcome, of a long table or of a file per model."""
    if not names.outcome:
        return {}
    if names.denominator is not None:
        require(table, names.denominator, "--denominator (denominator=)")
    if names.answer is not None and names.answer not in table.columns:
        if names.answer != Names.prediction:
            require(table, names.answer, "--prediction-column (prediction=)")
        return {"outcome": True, "denominator": names.denominator}
    return {"outcome": True, "denominator": names.denominator, "answer": names.answer}


# --- wide --------------------------------------------------------------------------------------

_STEMS = {"prediction": ("prediction", "pred"), "scores": ("scores",)}
_STEMS["score"] = ("score", "prob", "proba", "probability")
_STEMS["label_rank"] = ("label_rank",)


def _match(column: str, role: str) -> tuple[str, str | int] | None:
    """The variant and seed that a column's name speaks of.

    >>> _match("pred_int8", "prediction"), _match("prediction:gmp-95:3", "prediction")
    (('int8', 0), ('gmp-95', 3))
    >>> _match("int8_pred", "prediction"), _match("label", "prediction")
    (('int8', 0), None)
    """
    for stem in _STEMS[role]:
        colon = re.fullmatch(rf"{stem}:(.+?)(?::([^:]+))?", column, re.DOTALL)
        if colon:
            return canonical(colon.group(1)) or "", seed_of(colon.group(2))
        for pattern in (rf"{stem}[_ ](.+)", rf"(.+)[_ ]{stem}"):
            found = re.fullmatch(pattern, column, re.DOTALL)
            if found:
                return canonical(found.group(1)) or "", 0
    return None


def _recognised(table: Source, role: str = "prediction") -> dict[tuple[str, str | int], str]:
    found: dict[tuple[str, str | int], str] = {}
    for column in table.columns:
        member = _match(column, role)
        if member is not None:
            if member in found:
                seed = f" (seed {member[1]})" if ":" in column + found[member] else ""
                raise InputError(
                    f"{table.shown} has two columns for the {role} of '{member[0]}'{seed}: "
                    f"'{found[member]}' and '{column}'; say which with "
                    f"{'--prediction' if role == 'prediction' else '--score'} NAME=COLUMN."
                )
            found[member] = column
    return found


def _given(table: Source, columns: Columns, option: str) -> dict[tuple[str, str | int], str]:
    found: dict[tuple[str, str | int], str] = {}
    for variant, held in columns.items():
        listed = [held] if isinstance(held, str) else list(held)
        if not listed:
            raise InputError(f"{option} names no column for '{variant}'.")
        twice = next((column for column in listed if listed.count(column) > 1), None)
        if twice is not None:
            raise InputError(
                f"{option} names the column '{twice}' for two seeds of '{variant}'; "
                "give every member a column of its own."
            )
        for seed, column in enumerate(listed):
            found[canonical(variant) or "", seed] = require(table, column, option)
    return found


def _wide(
    table: Source,
    inputs: tuple[Source, ...],
    names: Names,
    predictions: Columns | None,
    scores: Columns | None,
) -> Layout:
    found = (
        _given(table, predictions, _WIDE[names.outcome])
        if predictions is not None
        else _recognised(table)
    )
    if names.score != Names.score and not names.outcome:
        require(table, names.score, "--score NAME=COLUMN (scores=)")
        raise InputError(
            f"{table.shown} has a column of predictions for every model, and '{names.score}' is "
            f"given as the scores of all of them; say whose they are: --score NAME={names.score}."
        )
    score = {} if names.outcome else _recognised(table, "score")
    vectors = {} if names.outcome else _recognised(table, "scores")
    if scores is not None:
        score, vectors = _given(table, scores, "--score NAME=COLUMN (scores=)"), {}
        known = {variant for variant, _ in found}
        for variant, _ in score:
            if variant not in known:
                raise UnknownNameError("In scores=, the variant", variant, sorted(known))
    lists = {member: c for member, c in score.items() if is_list(table.columns[c])}
    ranks = {} if names.outcome else _recognised(table, "label_rank")
    parts = tuple(
        MemberColumns(
            variant=variant,
            seed=seed,
            source=table,
            prediction=column,
            score=None if (variant, seed) in lists else score.get((variant, seed)),
            scores=lists.get((variant, seed), vectors.get((variant, seed))),
            label_rank=ranks.get((variant, seed)),
        )
        for (variant, seed), column in found.items()
    )
    held = {c for p in parts for c in (p.prediction, p.score, p.scores, p.label_rank)}
    used = {column for column in held if column is not None}
    # Predictions and scores of models that are not compared are no groups either.
    spare = {c for role in _STEMS for c in table.columns if _match(c, role) is not None} - used
    notes: tuple[str, ...] = ()
    if spare:
        shown = ", ".join(f"'{column}'" for column in sorted(spare))
        notes = (f"Not used, because they look like predictions or scores: {shown}.",)
    return Layout("wide", parts, inputs, frozenset(used | spare), notes)


# --- files -------------------------------------------------------------------------------------


def _files(
    workspace: Workspace, opened: Sequence[tuple[str | None, Source]], names: Names
) -> Layout:
    stems: dict[str, Source] = {}
    parts: list[MemberColumns] = []
    for name, table in opened:
        require(table, names.prediction, _PLACE[names.outcome])
        variant = canonical(name)
        if variant is None:
            if not table.files:
                raise InputError(
                    "Several frames were given without names; give a dict: "
                    "{'dense': frame, 'int8': frame}."
                )
            file = Path(table.name.partition("::")[0]).name
            for packed in (".gz", ".zst", ".bz2"):
                file = file.removesuffix(packed)
            variant = canonical(Path(file).stem) or ""
            if variant in stems:
                raise InputError(
                    f"{stems[variant].shown} and {table.shown} would both be called '{variant}'; "
                    "name them: NAME=FILE (the same NAME for members of one population)."
                )
            stems[variant] = table
        columns = _score_columns(table, names) | _outcome_columns(table, names)
        if names.seed in table.columns:
            view = workspace.name("named")
            others = ", ".join(quote(c) for c in table.columns if c != names.variant)
            workspace.connection.execute(
                f"CREATE TEMP VIEW {quote(view)} AS SELECT {others}, {literal(variant)} AS "
                f"{quote(names.variant)} FROM {quote(table.view)}"
            )
            kinds = {**table.columns, names.variant: "VARCHAR"}
            renamed = replace(table, view=view, columns=kinds, row_number=None)
            found = _long(workspace, renamed, (), names)
            parts.extend(
                MemberColumns(variant, p.seed, p.source, p.prediction, where=p.where, **columns)
                for p in found.parts
            )
        else:
            # The same NAME given twice: two members of one population.
            seed = sum(part.variant == variant for part in parts)
            parts.append(MemberColumns(variant, seed, table, names.prediction, **columns))
    _refuse_repeated_members(parts, names)
    tables = tuple(table for _, table in opened)
    return Layout("files", tuple(parts), tables, _used(names))


def _refuse_repeated_members(parts: Sequence[MemberColumns], names: Names) -> None:
    """Raise where one member is given twice, or where it cannot be told."""
    held: dict[tuple[str, str], Source] = {}
    for part in parts:
        for (variant, _), other in held.items():
            if variant != part.variant or other is part.source:
                continue
            if (names.seed in other.columns) != (names.seed in part.source.columns):
                raise InputError(
                    f"Of the tables of '{variant}', {other.shown} and {part.source.shown}, only "
                    f"one has a column '{names.seed}'; give it to all of them or to none."
                )
            if other.files and _place(other) == _place(part.source):
                raise InputError(
                    f"{other.shown} was given twice for '{variant}'; give each member once."
                )
        member = (part.variant, str(part.seed))
        if member in held:
            raise InputError(
                f"Seed {part.seed} of '{part.variant}' is in {held[member].shown} and in "
                f"{part.source.shown}; give each member once, with a seed of its own."
            )
        held[member] = part.source


def _place(table: Source) -> tuple[tuple[Path, ...], str]:
    """Where a table comes from, however it was written: its files, and the query asked of them."""
    return tuple(file.resolve() for file in table.files), table.name.partition("::")[2]
