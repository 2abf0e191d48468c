"""One row per example out of tables with one row per example and model.

Every member (a variant and seed) is copied to a small table of its own. Where the members list
their examples in the same order, which is verified identity by identity, the tables are laid side
by side without any hashing; otherwise they are joined on the identity. Ten million examples of two
models take 2 s and 0.4 GB this way, against 5-7 s and 2.5 GB for one hash aggregate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairweight.base.wording import are, counted, have
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, canonical_sql
from fairweight.tables.connection import Workspace, one_row, quote
from fairweight.tables.identity import (
    OF_EXAMPLES,
    SHOWN_EXAMPLES,
    Attribute,
    Compact,
    Identity,
    check_examples,
    check_unique,
    named,
    same_text,
)
from fairweight.tables.layout import MemberColumns
from fairweight.tables.sources import Source

MEMBERS_APART = (
    "tell the members of a population apart by a seed column (--seed-column) or give each its file "
    "(dense=a.csv dense=b.csv)"
)
_VALUE_ROLES = (
    ("p", "prediction"), ("s", "score"), ("v", "scores"), ("r", "label_rank"),
    ("d", "denominator"), ("a", "answer"),
)  # fmt: skip


@dataclass(frozen=True)
class LeftOutExamples:
    """Equal examples that `--missing drop` left out: what is known of them, and who lacks them."""

    task: str | None
    label: str | None  # None: no table that has them says it
    groups: dict[str, str | None]  # column -> value; a column that no such table has is not in it
    lacks: tuple[str, ...]  # variants
    n: int
    weight: float  # the sum of their weights; n where there are none


def left_out_note(left_out: Sequence[LeftOutExamples]) -> list[str]:
    """How many examples some variant lacks, and which; nothing where there are none."""
    by_side: dict[str, int] = {}
    for part in left_out:
        if part.lacks:
            side = " and ".join(f"'{name}'" for name in part.lacks)
            by_side[side] = by_side.get(side, 0) + part.n
    if not by_side:
        return []
    sides = ", ".join(f"{n:,} missing from {side}" for side, n in by_side.items())
    return [
        f"{sum(by_side.values()):,} examples that some variant lacks were left out "
        f"(--missing drop): {sides}."
    ]


@dataclass
class Assembled:
    """The tables laid side by side, and what was found while doing so."""

    tables: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)  # role -> table that holds it
    kinds: dict[str, str] = field(default_factory=dict)  # role -> type it is stored in
    varying: dict[str, str] = field(default_factory=dict)  # role -> why it is not of the example
    partial: dict[str, int] = field(default_factory=dict)  # tables that lack rows -> their member
    left_out: tuple[LeftOutExamples, ...] = ()

    @property
    def everyone(self) -> str:
        """SQL for FROM: all tables side by side, with every row that the baseline has."""
        return " POSITIONAL JOIN ".join(quote(table) for table in self.tables)

    @property
    def rows(self) -> str:
        """The same without the rows that are to be left out."""
        return self.everyone + (
            f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        )


@dataclass(frozen=True)
class Assembly:
    """What is needed to put the members side by side."""

    workspace: Workspace
    identity: Identity
    attributes: Sequence[Attribute]
    compact: Compact
    drop_missing: bool

    def run(self, parts: Sequence[MemberColumns], examples: Source | None) -> Assembled:
        """Copy, verify and join every member; the first one decides the order of rows."""
        found = Assembled()
        extras: dict[int, str] = {}  # which members have rows that the first lacks, and where
        for number, part in enumerate(parts):
            table = self._copy(number, part, found)
            if number == 0:
                self._check_unique(table, part, parts)
                found.tables.append(table)
                self._own(found, table, part.source)
                continue
            table = self._beside(found, table, number, parts, extras)
            self._compare(found, table, part, parts)
            self._slim(found, table, number, part)
        if examples is not None:
            self._join_examples(found, examples)
        if self.drop_missing and found.conditions:
            lacked = self._lacked_by_others(found, parts)
            lacked += self._lacked_by_the_first(extras, parts, examples)
            found.left_out = tuple(sorted(lacked, key=str))  # in an order of their own
        return found

    def _execute(self, sql: str) -> Any:
        return self.workspace.connection.execute(sql)

    def _count(self, sql: str) -> int:
        return int(one_row(self.workspace.connection, sql)[0])

    def _kind(self, source: Source, attribute: Attribute) -> str:
        return self.compact.kind(source, attribute.column, numeric=attribute.numeric)

    def _select(self, source: Source, attribute: Attribute) -> str:
        return self.compact.select(
            source, attribute.column, attribute.role, numeric=attribute.numeric
        )

    def _held(self, source: Source) -> list[Attribute]:
        return [a for a in self.attributes if a.column in source.columns]

    def _copy(self, number: int, part: MemberColumns, found: Assembled) -> str:
        table = self.workspace.name("member")
        selected = [self.identity.select(part.source)]
        for attribute in self._held(part.source):
            selected.append(self._select(part.source, attribute))
        for short, role in _VALUE_ROLES:
            column = getattr(part, role)
            if column is None:
                continue
            name = f"{short}{number}"
            if role == "answer" or (role == "prediction" and not part.outcome):
                selected.append(self.compact.select(part.source, column, name))
                found.kinds[name] = self.compact.kind(part.source, column)
            else:
                selected.append(f"{part.source.number(column)} AS {quote(name)}")
                found.kinds[name] = part.source.kind(column)
        where = f" WHERE {part.where}" if part.where is not None else ""
        self._execute(
            f"CREATE TEMP TABLE {quote(table)} AS SELECT {', '.join(selected)} "
            f"FROM {quote(part.source.view)}{where}"
        )
        return table

    def _check_unique(
        self, table: str, part: MemberColumns, parts: Sequence[MemberColumns]
    ) -> None:
        alone = not _in_population(part, parts)
        member = f"variant '{part.variant}'" + ("" if alone else f", seed {part.seed}")
        keys = [self.identity.column or "", "variant", "seed"]
        if self.identity.task is not None:
            keys.append(self.identity.task)
        check_unique(
            self.workspace.connection,
            table,
            self.identity.kind(part.source),
            has_task=self.identity.task is not None,
            rows=self._count(f"SELECT count(*) FROM {quote(table)}"),
            where=f"{part.source.shown}, {member}",
            key=", ".join(keys[:-1]) + " and " + keys[-1],
            remedy=MEMBERS_APART if alone else "give every member a seed of its own",
        )

    def _own(self, found: Assembled, table: str, source: Source) -> None:
        for attribute in self._held(source):
            if attribute.role not in found.owners:
                found.owners[attribute.role] = table
                found.kinds[attribute.role] = self._kind(source, attribute)

    def _beside(
        self,
        found: Assembled,
        table: str,
        number: int,
        parts: Sequence[MemberColumns],
        extras: dict[int, str],
    ) -> str:
        """The member's table in the order of the first member."""
        part, base, keys = parts[number], found.tables[0], self.identity.keys
        rows = [self._count(f"SELECT count(*) FROM {quote(t)}") for t in (base, table)]
        differs = " OR ".join(f"a.{key} IS DISTINCT FROM b.{key}" for key in keys)
        if rows[0] == rows[1] and not self._count(
            f"SELECT count(*) FROM {quote(base)} AS a POSITIONAL JOIN {quote(table)} AS b "
            f"WHERE {differs}"
        ):
            return table  # in the same order
        self._check_unique(table, part, parts)
        placed = self._ordered(base, table, keys)
        matched = self._count(f"SELECT count(*) FROM {quote(placed)} WHERE present")
        if [matched, matched] == rows:
            # Both have every identity once, so as many matches as rows leave nothing out.
            self._execute(f"ALTER TABLE {quote(placed)} DROP COLUMN present")
        elif self.drop_missing:
            extras[number] = self.workspace.name("extra")  # rows that the base does not have
            self._execute(
                f"CREATE TEMP TABLE {quote(extras[number])} AS SELECT * FROM {quote(table)} "
                f"ANTI JOIN {quote(base)} USING ({', '.join(keys)})"
            )
        else:
            self._refuse_missing(base, table, _shown(parts[0], parts), _shown(part, parts))
        self._execute(f"DROP TABLE {quote(table)}")
        return placed

    def _ordered(self, base: str, table: str, keys: Sequence[str]) -> str:
        """The rows of a table in the order of the base, `present` where there is one."""
        placed = self.workspace.name("member")
        matched = " AND ".join(f"b.{key} = m.{key}" for key in keys)
        self._execute(
            f"CREATE TEMP TABLE {quote(placed)} AS SELECT m.* EXCLUDE ({', '.join(keys)}), "
            f"m.example_id IS NOT NULL AS present FROM {quote(base)} AS b LEFT JOIN "
            f"{quote(table)} AS m ON {matched} ORDER BY b.rowid"
        )
        return placed

    def _refuse_missing(self, base: str, table: str, first: str, other: str) -> None:
        key = ", ".join(self.identity.keys)
        for here, there, holder, lacker in (
            (base, table, first, other),
            (table, base, other, first),
        ):
            absent = f"FROM {quote(here)} ANTI JOIN {quote(there)} USING ({key})"
            total = self._count(f"SELECT count(*) {absent}")
            if not total:
                continue
            some = self._execute(
                f"SELECT DISTINCT example_id {absent} ORDER BY 1 LIMIT {SHOWN_EXAMPLES}"
            ).fetchall()
            what = counted(total, "example") + ("" if self.identity.task is None else " (per task)")
            raise InputError(
                f"{what} of {holder} {are(total)} missing from {lacker}, such as "
                f"{named([row[0] for row in some])}; add {'it' if total == 1 else 'them'}, or keep "
                "only the common ones "
                "with --missing drop (missing='drop')."
            )

    def _compare(
        self, found: Assembled, table: str, part: MemberColumns, parts: Sequence[MemberColumns]
    ) -> None:
        """What is said of an example must not depend on the model that looks at it."""
        for attribute in self._held(part.source):
            role = attribute.role
            owner = found.owners.get(role)
            if owner is None or role in found.varying:
                continue
            conflict = self._conflict(found, owner, table, attribute, part)
            if conflict is None:
                continue
            total, example, values = conflict
            told = (
                f"'{attribute.column}' differs between variants for "
                f"{counted(total, 'example')}: "
                f"{named([example])} has {values[0]!r} in one and {values[1]!r} in "
                f"'{part.variant}'"
            )
            if role == "label" and None in values:
                raise InputError(
                    f"{counted(total, 'row')} {have(total)} no label ('{attribute.column}'), "
                    f"such as {named([example])}; fill the labels or leave those examples out."
                )
            if role in OF_EXAMPLES:
                raise InputError(f"{told}; an example has one {role}: correct the tables.")
            found.varying[role] = "differs between variants of one example"

    def _conflict(
        self, found: Assembled, owner: str, table: str, attribute: Attribute, part: MemberColumns
    ) -> tuple[int, Any, tuple[Any, Any]] | None:
        name = quote(attribute.role)
        joined = f"{quote(owner)} AS a POSITIONAL JOIN {quote(table)} AS b"
        base = found.tables[0]
        if owner != base:
            joined = f"{quote(base)} AS k POSITIONAL JOIN {joined}"
        key = "k.example_id" if owner != base else "a.example_id"
        there = " AND b.present" if self._has_present(table) else ""
        if owner != base and self._has_present(owner):
            there += " AND a.present"
        kinds = (found.kinds[attribute.role], self._kind(part.source, attribute))
        if kinds[0] == kinds[1] and not self._count(
            f"SELECT count(*) FROM {joined} WHERE a.{name} IS DISTINCT FROM b.{name}{there}"
        ):
            return None
        # Types or spellings may differ (1, 1.0 and "1"): the few distinct pairs are compared by
        # their canonical text.
        pairs = self._execute(
            f"SELECT {canonical_sql('one', kinds[0])}, {canonical_sql('other', kinds[1])}, * FROM ("
            f"SELECT a.{name} AS one, b.{name} AS other, count(*), min({key}) AS first "
            f"FROM {joined} WHERE true{there} GROUP BY ALL) ORDER BY first"
        ).fetchall()
        differing = [row[2:] for row in pairs if not same_text(row[0], row[1])]
        if not differing:
            return None
        first = differing[0]
        return sum(int(row[2]) for row in differing), first[3], (first[0], first[1])

    def _has_present(self, table: str) -> bool:
        described = self._execute(f"DESCRIBE {quote(table)}").fetchall()
        return any(row[0] == "present" for row in described)

    def _slim(self, found: Assembled, table: str, number: int, part: MemberColumns) -> None:
        """Keep of a verified member only what the others do not have."""
        kept = [f"{short}{number}" for short, role in _VALUE_ROLES if getattr(part, role)]
        fresh = [a.role for a in self._held(part.source) if a.role not in found.owners]
        selected = [quote(name) for name in (*kept, *fresh)]
        slim = self.workspace.name("slim")
        if self._has_present(table):
            selected.append(f"present AS present{number}")
            found.conditions.append(f"present{number}")
            found.partial[slim] = number
        self._execute(
            f"CREATE TEMP TABLE {quote(slim)} AS SELECT {', '.join(selected)} FROM {quote(table)}"
        )
        self._execute(f"DROP TABLE {quote(table)}")
        self._own(found, slim, part.source)
        found.tables.append(slim)

    def _join_examples(self, found: Assembled, examples: Source) -> None:
        base = found.tables[0]
        check_examples(self.workspace, self.identity, examples, base)
        wanted = [a for a in self._held(examples) if a.role not in found.owners]
        if not wanted:
            return
        table = self.workspace.name("examples")
        selected = [f"{self.identity.example(examples)} AS example_id"]
        selected += [self._select(examples, a) for a in wanted]
        self._execute(
            f"CREATE TEMP TABLE {quote(table)} AS SELECT {', '.join(selected)} "
            f"FROM {quote(examples.view)}"
        )
        placed = self._ordered(base, table, ["example_id"])
        self._execute(f"ALTER TABLE {quote(placed)} DROP COLUMN present")
        self._execute(f"DROP TABLE {quote(table)}")
        for attribute in wanted:
            found.owners[attribute.role] = placed
            found.kinds[attribute.role] = self._kind(examples, attribute)
        found.tables.append(placed)

    def _lacked_by_others(
        self, found: Assembled, parts: Sequence[MemberColumns]
    ) -> list[LeftOutExamples]:
        """Rows of the first member that another one does not have."""
        roles = [role for role in self._counted_by() if role in found.owners]
        names = [*self.identity.keys[1:], *roles, *found.conditions]
        # What is no number is refused later, with a sentence of its own.
        weight = "sum(TRY_CAST(weight AS DOUBLE))" if "weight" in found.owners else "count(*)"
        rows = self._execute(
            f"SELECT {', '.join(map(quote, names))}, count(*), {weight} FROM {found.everyone} "
            f"WHERE NOT ({' AND '.join(found.conditions)}) GROUP BY ALL"
        ).fetchall()
        made = []
        for *values, n, total in rows:
            row = dict(zip(names, values, strict=True))
            absent = {table: m for table, m in found.partial.items() if not row[f"present{m}"]}
            known = {role: row[role] for role in roles if found.owners[role] not in absent}
            lacks = [parts[m].variant for m in absent.values()]
            made.append(self._left_out(known, row.get("task"), lacks, n, total))
        return made

    def _lacked_by_the_first(
        self, extras: dict[int, str], parts: Sequence[MemberColumns], examples: Source | None
    ) -> list[LeftOutExamples]:
        """Rows that other members have and the first does not, each once."""
        if not extras:
            return []
        columns = {a.role: a.column for a in self.attributes}
        asked = [role for role in (*self._counted_by(), "weight") if role in columns]
        beside = [r for r in asked if examples is not None and columns[r] in examples.columns]
        held = {m: [r for r in asked if columns[r] in parts[m].source.columns] for m in extras}
        keys = self.identity.keys
        # As text: members may write one column in different types.
        stacked = " UNION ALL BY NAME ".join(
            f"SELECT {', '.join([*keys, *(f'CAST({r} AS VARCHAR) AS {r}' for r in held[m])])}, "
            f"{m} AS member FROM {quote(extra)}"
            for m, extra in extras.items()
        )
        told = [r for r in asked if any(r in of for of in held.values())]
        once = (
            f"SELECT {', '.join([*keys, *(f'any_value({r}) AS {r}' for r in told)])}, "
            f"list_sort(list(member)) AS members FROM ({stacked}) GROUP BY {', '.join(keys)}"
        )
        joined, value = f"({once}) AS m", {r: f"m.{r}" for r in told}
        if beside and examples is not None:
            said = ", ".join(f"CAST({quote(columns[r])} AS VARCHAR) AS {r}" for r in beside)
            joined += (
                f" LEFT JOIN (SELECT {self.identity.example(examples)} AS example_id, {said} "
                f"FROM {quote(examples.view)}) AS e ON m.example_id = e.example_id"
            )
            value |= {r: f"coalesce({value[r]}, e.{r})" if r in told else f"e.{r}" for r in beside}
        roles = [r for r in value if r != "weight"]
        selected = [*(f"m.{key}" for key in keys[1:]), *(f"{value[r]} AS {r}" for r in roles)]
        weight = f"sum(TRY_CAST({value['weight']} AS DOUBLE))" if "weight" in value else "count(*)"
        rows = self._execute(
            f"SELECT {', '.join([*selected, 'm.members'])}, count(*), {weight} FROM {joined} "
            "GROUP BY ALL"
        ).fetchall()
        made = []
        for *values, members, n, total in rows:
            row = dict(zip([*keys[1:], *roles], values, strict=True))
            known = {r: row[r] for r in roles if r in beside or any(r in held[m] for m in members)}
            lacks = [part.variant for m, part in enumerate(parts) if m not in members]
            made.append(self._left_out(known, row.get("task"), lacks, n, total))
        return made

    def _counted_by(self) -> list[str]:
        """The roles by which examples that were left out are counted: label and groups."""
        roles = (a.role for a in self.attributes)
        return [role for role in roles if role == "label" or re.fullmatch(r"c\d+", role)]

    def _left_out(
        self, known: dict[str, Any], task: Any, lacks: Sequence[str], n: int, weight: float | None
    ) -> LeftOutExamples:
        return LeftOutExamples(
            task=canonical(task),
            label=canonical(known.get("label")),
            groups={
                a.column: canonical(known[a.role])
                for a in self.attributes
                if a.role != "label" and a.role in known
            },
            lacks=tuple(dict.fromkeys(lacks)),
            n=n,
            weight=float(n if weight is None else weight),
        )


def _in_population(part: MemberColumns, parts: Sequence[MemberColumns]) -> bool:
    return sum(other.variant == part.variant for other in parts) > 1


def _shown(part: MemberColumns, parts: Sequence[MemberColumns]) -> str:
    """A member as messages name it: with its seed where the variant alone would not tell."""
    named_by_seed = part.seed != 0 or _in_population(part, parts)
    return f"'{part.variant}'" + (f" (seed {part.seed})" if named_by_seed else "")
