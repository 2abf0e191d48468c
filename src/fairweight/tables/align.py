"""The seam: any prediction tables as one view with one row per example (and task).

The view's columns are named by role: `example_id, task, label, weight, cluster, g0 ...` (groups),
`x0 ...` (further columns, if asked for), `p0 ...` (predictions), `s0 ...` (score), `v0 ...`
(scores), `r0 ...` (label_rank), `count` (how many examples a row stands for). Identities were
checked: no duplicate, no example missing from a member, one label per example. Values are as given;
text with few values may be an ENUM, whole numbers may be narrower than in the file.

Where outcomes stand in the place of label and prediction, `p0 ...` are numbers, `d0 ...` their
denominators, `a0 ...` predictions beside them, and `label` is the better of 0 and 1 for everybody:
an outcome that is 0 or 1 is right or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fairweight.base.wording import counted
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.checks import Checked, check_values, double, probability, require_plain
from fairweight.tables.class_scores import as_probabilities
from fairweight.tables.companions import (
    TrainingTable,
    count_training,
    parents,
    stray_note,
    variants_table,
)
from fairweight.tables.connection import (
    Workspace,
    is_list,
    is_number,
    one_row,
    quote,
    reading,
    renamed,
    streaming,
)
from fairweight.tables.groups import GroupChoice, cluster_suggestion, unused_note
from fairweight.tables.identity import (
    OF_EXAMPLES,
    Attribute,
    Compact,
    Identity,
    check_examples,
    check_unique,
    same_text,
)
from fairweight.tables.joins import Assembly, LeftOutExamples, left_out_note
from fairweight.tables.layout import Layout, MemberColumns, recognise
from fairweight.tables.roles import (
    Alignment,
    choose_groups,
    find_column,
    find_identity,
    further_columns,
    offered_columns,
    order_members,
    taken_columns,
    without_varying,
)
from fairweight.tables.sources import Source, may_be_logs, open_source, summed_source
from fairweight.tables.spec import Better, Missing, OutcomeRole, TableSpec, are_distant

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


@dataclass(frozen=True)
class Member:
    """One model: a variant and seed, and the view's columns that are its own."""

    variant: str
    seed: str | int
    prediction: str
    score: str | None = None
    scores: str | None = None
    label_rank: str | None = None
    denominator: str | None = None  # of outcomes
    answer: str | None = None  # beside outcomes: predictions


@dataclass(frozen=True)
class Aligned:
    """What the audit counts: a view on a connection, and what its columns mean."""

    connection: duckdb.DuckDBPyConnection
    view: str
    members: tuple[Member, ...]  # of the baseline first, then variants in the order given
    baseline: str
    variants: tuple[str, ...]  # the compressed ones, in the order given
    group_columns: tuple[str, ...]  # names shown; g0, g1, ... in this order
    groupings: tuple[str, ...]  # "sex", "age", "sex*age"
    has_task: bool
    has_weight: bool
    has_cluster: bool
    has_id: bool  # False: example_id is the number of the row
    has_count: bool  # rows stand for `count` examples each; else for one
    score_classes: tuple[str, ...] | None
    n_examples: int
    n_rows: int  # of the view
    notes: tuple[str, ...]
    inputs: tuple[Source, ...]
    train: TrainingTable | None
    variants_table: pd.DataFrame | None
    release: Callable[[], None] = field(repr=False, compare=False)
    further_columns: tuple[str, ...] = ()  # names shown; x0, x1, ... in this order
    left_out: tuple[LeftOutExamples, ...] = ()  # what --missing drop left out
    # SQL for FROM: id, task and label of every row of the baseline; None without ids.
    identified: str | None = None
    has_label: bool = True  # else `label` is a constant
    has_second_cluster: bool = False  # examples are bound in two ways
    outcome: OutcomeRole | None = None  # predictions are outcomes

    def members_of(self, variant: str) -> tuple[Member, ...]:
        """The members of one variant, in the order of their seeds."""
        return tuple(member for member in self.members if member.variant == variant)

    def close(self) -> None:
        """Close the connection and remove its temporary files."""
        self.release()

    def __enter__(self) -> Aligned:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        import duckdb

        self.close()
        if isinstance(error, duckdb.Error):  # rows are read when they are counted
            with streaming(", ".join(table.shown for table in self.inputs)):
                raise error


def align(tables: TableSpec, *, further: bool = False, alone: bool = False) -> Aligned:
    """Read, check and align prediction tables.

    Parameters
    ----------
    further
        Keep the columns that are no groups too (measurements, paths), as `x0, x1, ...`.
    alone
        Accept the baseline without any compressed variant.
    """
    if are_distant(tables):
        from fairweight.tables.engines import counted_there  # as for logs below: rarely needed

        tables = counted_there(tables)
    workspace = Workspace()
    try:
        if summed_source(workspace, tables) is not None:
            raise InputError(
                f"{tables.sources[0].path or 'The table'} holds sums of an outcome over many "
                "examples: audit, gate, plan and count take it. This command needs the examples "
                "themselves; run it where the rows are."
            )
        logged: tuple[str, ...] = ()
        if may_be_logs(tables):  # ten modules, which tables do without
            from fairweight.tables.logs.request import with_logs

            tables, logged = with_logs(workspace, tables)
        beside = {
            what: None if ref is None else open_source(workspace, ref.given)
            for what, ref in (
                ("examples", tables.examples), ("train", tables.train),
                ("variants", tables.variants),
            )
        }  # fmt: skip
        layout = recognise(workspace, tables, alone=alone, examples=beside["examples"])
        layout = replace(layout, notes=(*logged, *layout.notes))
        shown = ", ".join(table.shown for table in layout.inputs)
        with reading(shown):
            return _aligned(Alignment(workspace, tables, alone, further), layout, beside)
    except BaseException:
        workspace.close()
        raise


def _aligned(
    request: Alignment,
    layout: Layout,
    beside: Mapping[str, Source | None],
) -> Aligned:
    outcome, unlabelled = request.names.outcome, request.tables.unlabelled
    for part in layout.parts:
        if layout.kind == "wide" and part.prediction == request.names.label and not outcome:
            raise InputError(
                f"The column '{part.prediction}' is both the label and the prediction of "
                f"'{part.variant}'; name the right one with --label or --prediction."
            )
    notes = list(layout.notes)
    parts, baseline = order_members(layout, request.tables.baseline, notes, alone=request.alone)
    examples = beside["examples"]
    tables = list({part.source.view: part.source for part in parts}.values())
    everywhere = [*tables, examples] if examples is not None else tables
    identity = find_identity(request, layout, tables, examples, notes)
    clusters = [
        find_column(everywhere, name, "--cluster (cluster=)", True)
        for name in request.tables.clusters
    ]
    columns = {
        "label": None
        if outcome or unlabelled
        else find_column(
            everywhere,
            request.names.label,
            "--label (label=); without labels (--unlabelled) only changed predictions are counted",
            True,
        ),
        "weight": find_column(everywhere, request.tables.weight, "--weight (weight=)", True)
        or find_column(everywhere, "weight", "", False),
        "cluster": clusters[0] if clusters else None,
        "second_cluster": clusters[1] if len(clusters) == 2 else None,
        "count": request.names.count,
    }
    choice = choose_groups(request, layout, identity, tables, examples, columns)
    roles = [(column, role) for role, column in columns.items() if column]
    roles += [(column, "group") for column in choice.columns]
    for table in everywhere:
        for column, role in roles:
            if column in table.columns:
                require_plain(table, column, role)
    for part in parts:
        require_plain(part.source, part.prediction, "outcome" if outcome else "prediction")
    attributes = [Attribute(role, column) for role, column in columns.items() if column]
    attributes += [Attribute(f"c{i}", column) for i, column in enumerate(choice.columns)]
    further: tuple[str, ...] = ()
    if request.further:
        further = further_columns(layout, identity, tables, examples, columns, choice)
        attributes += [Attribute(f"x{i}", column) for i, column in enumerate(further)]
    left_out: tuple[LeftOutExamples, ...] = ()
    if layout.kind == "wide":
        rows, kinds, varying = _wide(request, parts, identity, attributes, examples)
        everyone = rows
    else:
        compact = Compact(request.workspace)
        assembly = Assembly(
            request.workspace, identity, attributes, compact, request.tables.missing == Missing.DROP
        )
        found = assembly.run(parts, examples)
        rows, kinds, varying = found.rows, found.kinds, found.varying
        everyone, left_out = found.everyone, found.left_out
        notes.extend(left_out_note(left_out))
    if columns["label"] is not None:
        _check_examples_label(request, identity, tables, examples, rows, kinds["label"])
    choice = without_varying(choice, varying, request.tables.groups is not None)
    further = tuple(c for i, c in enumerate(further) if f"x{i}" not in varying)
    view, kinds = _role_view(request, rows, kinds, identity, parts, choice, further, attributes)
    shown = {role: column for role, column in columns.items() if column}
    for number, part in enumerate(parts):
        shown |= {f"{short}{number}": column for short, column in _values(part)}
    vectors = {name: column for name, column in shown.items() if name.startswith("v")}
    logs, said = as_probabilities(request.connection, view, vectors)
    if said is not None:
        notes.append(said)
        view = _replaced(request, view, logs.values())
    checked = check_values(
        request.connection,
        view,
        kinds=kinds,
        numbers=range(len(parts)),
        label=request.names.label,
        columns=shown | {f"g{i}": column for i, column in enumerate(choice.columns)},
        force=request.tables.force,
        outcome=outcome,
        limits=request.tables.range,
    )
    if outcome and checked.binary:
        names = [f"p{n}" for n in range(len(parts))]  # whole numbers, like predictions
        view = _replaced(request, view, [f"CAST({name} AS TINYINT) AS {name}" for name in names])
    members = []
    for number, part in enumerate(parts):
        if f"s{number}" in checked.empty:
            notes.append(f"The score column '{part.score}' is empty for '{part.variant}'.")
        if f"v{number}" in checked.empty:
            notes.append(f"The column '{part.scores}' is empty for '{part.variant}'.")
        held = {short: f"{short}{number}" for short, _ in _values(part)}
        members.append(
            Member(
                part.variant,
                part.seed,
                prediction=held["p"],
                score=None if held.get("s") in checked.empty else held.get("s"),
                scores=None if held.get("v") in checked.empty else held.get("v"),
                label_rank=held.get("r"),
                denominator=held.get("d"),
                answer=held.get("a"),
            )
        )
    notes.extend(choice.notes)
    unused = unused_note(choice.unused)
    notes.extend([unused] if unused is not None else [])
    if not clusters:
        taken = taken_columns(layout, identity, columns) | {*choice.columns}
        offers = offered_columns(layout, tables, examples)
        free = {column: offer for column, offer in offers.items() if column not in taken}
        suggestion = cluster_suggestion(request.connection, free)
        notes.extend([suggestion] if suggestion is not None else [])
    has_task = identity.task is not None
    training, models = beside["train"], beside["variants"]
    described = (
        None
        if training is None
        else count_training(
            request.workspace, training, request.names.label, identity.task, choice.columns
        )
    )
    described_models = (
        None if models is None else variants_table(request.workspace, models, request.names)
    )
    stray = stray_note(parents(described_models), ((m.variant, str(m.seed)) for m in members))
    notes.extend([stray] if stray is not None else [])
    n_named = checked.rows
    if has_task:
        distinct = f"SELECT count(DISTINCT example_id) FROM {quote(view)}"
        n_named = int(one_row(request.connection, distinct)[0])
    if described is not None and described.n_unlabelled:
        notes.append(f"{described.n_unlabelled:,} training rows without a label were not counted.")
    if examples is not None and examples.rows > n_named:
        notes.append(
            f"{examples.rows - n_named:,} examples of the examples table {examples.shown} "
            "have no predictions and were not used."
        )
    if examples is not None:
        first = {column for table in tables for column in table.columns}
        both = [c for c in choice.columns if c in first and c in examples.columns]
        if both:
            named = ", ".join(f"'{column}'" for column in both)
            notes.append(
                f"In the predictions and the examples table, taken from the first: {named}."
            )
    if columns["count"] is not None:
        notes.append(
            f"Each row stands for as many examples as '{columns['count']}' says: "
            f"{checked.examples:,} in {counted(checked.rows, 'row')}."
        )
    inputs = (*layout.inputs, *(table for table in beside.values() if table is not None))
    return Aligned(
        connection=request.connection,
        view=view,
        members=tuple(members),
        baseline=baseline,
        variants=tuple(dict.fromkeys(p.variant for p in parts if p.variant != baseline)),
        group_columns=choice.columns,
        groupings=choice.groupings,
        has_task=has_task,
        has_weight=columns["weight"] is not None,
        has_cluster=columns["cluster"] is not None,
        has_second_cluster=columns["second_cluster"] is not None,
        has_id=identity.column is not None,
        has_count=columns["count"] is not None,
        score_classes=_score_classes(layout, request.tables.score_classes, checked),
        n_examples=n_named if has_task else checked.examples,
        n_rows=checked.rows,
        notes=tuple(notes),
        inputs=inputs,
        train=described,
        variants_table=described_models,
        release=request.workspace.close,
        further_columns=further,
        left_out=left_out,
        identified=None if identity.column is None else everyone,
        has_label=columns["label"] is not None,
        outcome=_outcome_role(request.tables, parts, checked) if outcome else None,
    )


def beside_outcomes(aligned: Aligned) -> Aligned | None:
    """The same rows with the predictions that stand beside outcomes, without a label.

    None where some model has none: then nobody knows whether a prediction changed.
    """
    if aligned.outcome is None or not all(member.answer for member in aligned.members):
        return None
    members = [
        replace(m, prediction=str(m.answer), denominator=None, answer=None) for m in aligned.members
    ]
    return replace(aligned, members=tuple(members), outcome=None, has_label=False)


def _replaced(request: Alignment, view: str, columns: Iterable[str]) -> str:
    """The view with other values in some columns (`SQL AS column`)."""
    made = request.workspace.name("aligned")
    request.connection.execute(
        f"CREATE TEMP VIEW {quote(made)} AS SELECT * REPLACE ({', '.join(columns)}) "
        f"FROM {quote(view)}"
    )
    return made


def _outcome_role(
    tables: TableSpec, parts: Sequence[MemberColumns], checked: Checked
) -> OutcomeRole:
    assert tables.better is not None
    return OutcomeRole(
        name=tables.outcome if isinstance(tables.outcome, str) else "outcome",
        better=Better(tables.better),
        binary=checked.binary,
        denominator=None
        if parts[0].denominator is None
        else tables.denominator
        if isinstance(tables.denominator, str)
        else "denominator",
        shared=checked.shared_denominator,
        range=tables.range,
    )


def _wide(
    request: Alignment,
    parts: Sequence[MemberColumns],
    identity: Identity,
    attributes: Sequence[Attribute],
    examples: Source | None,
) -> tuple[str, dict[str, str], dict[str, str]]:
    """The rows of a wide table as they are: nothing is copied, a projection over the file."""
    table = parts[0].source
    selected = [identity.select(table, "t.")]
    kinds: dict[str, str] = {}
    if identity.column is not None:
        keys = request.workspace.name("keys")
        request.connection.execute(
            f"CREATE TEMP VIEW {quote(keys)} AS SELECT {identity.select(table)} "
            f"FROM {quote(table.view)}"
        )
        check_unique(
            request.connection,
            keys,
            identity.kind(table),
            has_task=identity.task is not None,
            rows=table.rows,
            where=table.shown,
            key=" and ".join(c for c in (identity.column, identity.task) if c),
        )
        if examples is not None:
            check_examples(request.workspace, identity, examples, keys)

    def select(role: str, column: str, holder: Source, prefix: str, numeric: bool) -> None:
        value = holder.number(column, prefix) if numeric else prefix + quote(column)
        selected.append(renamed(value, column, role))
        kinds[role] = holder.kind(column) if numeric else holder.columns[column]

    for attribute in attributes:
        prefix, holder = ("t.", table) if attribute.column in table.columns else ("e.", examples)
        assert holder is not None
        select(attribute.role, attribute.column, holder, prefix, attribute.numeric)
    for number, part in enumerate(parts):
        for short, column in _values(part):
            numeric = part.outcome if short == "p" else short != "a"
            select(f"{short}{number}", column, table, "t.", numeric)
    joined = f"{quote(table.view)} AS t"
    if examples is not None:
        joined += (
            f" LEFT JOIN {quote(examples.view)} AS e ON {identity.example(table, 't.')} = "
            f"{identity.example(examples, 'e.')}"
        )
    return f"(SELECT {', '.join(selected)} FROM {joined})", kinds, {}


def _values(part: MemberColumns) -> list[tuple[str, str]]:
    held = (
        ("p", part.prediction),
        ("s", part.score),
        ("v", part.scores),
        ("r", part.label_rank),
        ("d", part.denominator),
        ("a", part.answer),
    )
    return [(short, column) for short, column in held if column is not None]


def _check_examples_label(
    request: Alignment,
    identity: Identity,
    tables: Sequence[Source],
    examples: Source | None,
    rows: str,
    kind: str,
) -> None:
    """Labels that stand in the predictions and in the examples table must agree."""
    label = request.names.label
    if examples is None or label not in examples.columns:
        return
    if not any(label in table.columns for table in tables):
        return
    given = canonical_sql("theirs", examples.columns[label])
    pairs = request.connection.execute(
        f"SELECT mine, theirs, n, first, {canonical_sql('mine', kind)}, {given} FROM ("
        f"SELECT a.label AS mine, e.{quote(label)} AS theirs, count(*) AS n, "
        f"min(a.example_id) AS first FROM (SELECT example_id, label FROM {rows}) AS a "
        f"JOIN {quote(examples.view)} AS e ON "
        f"a.example_id = {identity.example(examples, 'e.')} GROUP BY ALL)"
    ).fetchall()
    differing = [row for row in pairs if None not in row[4:] and not same_text(row[4], row[5])]
    if differing and identity.task is None:
        first = differing[0]
        raise InputError(
            f"The label differs between the predictions and the examples table {examples.shown} "
            f"for {counted(sum(row[2] for row in differing), 'example')}: example {first[3]!r} has "
            f"{first[0]!r} and {first[1]!r}; correct one of the tables."
        )


def _role_view(
    request: Alignment,
    rows: str,
    kinds: Mapping[str, str],
    identity: Identity,
    parts: Sequence[MemberColumns],
    choice: GroupChoice,
    further: Sequence[str],
    attributes: Sequence[Attribute],
) -> tuple[str, dict[str, str]]:
    """The final view, with columns named by role, and their types."""
    selected = ["example_id"] + (["task"] if identity.task is not None else [])
    held = {a.column: a.role for a in attributes if a.role not in OF_EXAMPLES}
    if "label" in kinds:
        selected.append("label")
    elif request.tables.better is not None:  # the better one of 0 and 1
        selected.append(f"{int(request.tables.better == Better.HIGHER)} AS label")
    else:
        selected.append("'(unlabelled)' AS label")
    if "count" in kinds:
        selected.append('CAST("count" AS BIGINT) AS "count"')
    if "weight" in kinds:
        column = next(a.column for a in attributes if a.role == "weight")
        _require_numbers(kinds["weight"], column, "weight")
        selected.append(f"{double('weight', kinds['weight'])} AS weight")
    selected += [role for role in ("cluster", "second_cluster") if role in kinds]
    selected += [f"{held[column]} AS g{i}" for i, column in enumerate(choice.columns)]
    selected += [f"{held[column]} AS x{i}" for i, column in enumerate(further)]
    for number, part in enumerate(parts):
        for short, column in _values(part):
            name, kind = f"{short}{number}", kinds[f"{short}{number}"]
            if short == "d" or (short == "p" and part.outcome):
                _require_numbers(kind, column, "outcome" if short == "p" else "denominator")
                selected.append(f"{double(name, kind)} AS {name}")
            elif short == "s":
                _require_numbers(kind, column, "score")
                selected.append(f"{probability(name, kind)} AS {name}")
            elif short == "v":
                if not is_list(kind) and kind != "VARCHAR":
                    raise InputError(
                        f"The column '{column}' must hold a list of class probabilities per row; "
                        f"it holds {kind.lower()}."
                    )
                selected.append(f"CAST({name} AS DOUBLE[]) AS {name}")
            else:
                if short == "r":
                    _require_numbers(kind, column, "label rank")
                selected.append(name)
    view = request.workspace.name("aligned")
    request.connection.execute(
        f"CREATE TEMP VIEW {quote(view)} AS SELECT {', '.join(selected)} FROM {rows}"
    )
    described = request.connection.execute(f"DESCRIBE {quote(view)}").fetchall()
    return view, {str(row[0]): str(row[1]) for row in described}


def _require_numbers(kind: str, column: str, role: str) -> None:
    if not is_number(kind) and kind != "BOOLEAN":
        raise InputError(
            f"The {role} column '{column}' must hold numbers; it holds "
            f"{'text' if kind == 'VARCHAR' else kind.lower()}."
        )


def _score_classes(
    layout: Layout, given: Sequence[Any] | None, checked: Checked
) -> tuple[str, ...] | None:
    if given is not None:
        classes: tuple[str, ...] | None = tuple(canonical(item) or "" for item in given)
    else:
        found = {t.score_classes for t in layout.inputs if t.score_classes is not None}
        if len(found) > 1:
            raise InputError(
                "The files disagree about the class order of their scores; "
                "give it with score_classes=."
            )
        classes = found.pop() if found else None
    if classes is not None and checked.list_length not in (None, len(classes)):
        raise InputError(
            f"The lists of class probabilities have {checked.list_length} entries, but "
            f"{len(classes)} classes are named for them (score_classes=)."
        )
    return classes
