"""The GROUP BY of an audit, and its identity checks, as SQL of a warehouse.

Rows stay where they are: somebody runs the statements there, and the small result of the last one
is audited anywhere (`--count n`). Sources are names of tables there:

wide    `TABLE --prediction dense=p0 --prediction int8=p1`, one row per example
models  `dense=TABLE int8=OTHER`, a table per model, joined on the id
long    `dense=TABLE int8=TABLE`, twice the same: the variant column tells the models apart

Statements are built in sqlglot's tree and written in the warehouse's dialect. Columns are quoted
only where their name needs it (`"Label"` in quotes is taken as it is); the result's are always.
"""

from __future__ import annotations

import functools
import shlex
from dataclasses import dataclass
from importlib import util
from typing import TYPE_CHECKING, Any

from fairweight.base.fields import options_of
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.names import split_grouping
from fairweight.tables.spec import DIALECTS, TableSpec

if TYPE_CHECKING:
    from sqlglot import exp

COUNT = "n"
MOST = 20  # rows that a check shows
# What SQL cannot say here, or what a count cannot hold.
UNUSED = ("train", "variants", "task", "scores", "count", "query", "positive", "score_classes",
          "outcome", "repeat", "unlabelled")  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """One statement of a warehouse, and what it is for."""

    purpose: str
    sql: str


@dataclass(frozen=True)
class WarehouseCount:
    """What is run in a warehouse: checks that must give no rows, then the count itself."""

    checks: tuple[Statement, ...]
    count: Statement
    command: str  # the audit of what the count gives

    def __str__(self) -> str:
        parts = ["-- Each of the checks must give no rows; the counts of an audit hold only then."]
        for place, check in enumerate(self.checks, start=1):
            parts.append(f"-- {place}. {check.purpose}\n{check.sql};")
        parts.append(f"-- {self.count.purpose}\n{self.count.sql};")
        parts.append(f"-- Save the result as counts.csv, then:\n-- {self.command}")
        return "\n\n".join(parts) + "\n"


def warehouse_count(tables: TableSpec, dialect: str) -> WarehouseCount:
    """The statements that count predictions where they are.

    Parameters
    ----------
    tables
        Names of tables in the warehouse in place of files; columns as for an audit. Groups must be
        named, because nothing is read.
    dialect
        One of `DIALECTS`.
    """
    if util.find_spec("sqlglot") is None:
        raise InputError(
            "--sql needs sqlglot, which is not installed: pip install 'fairweight[sql]'"
        )
    if dialect not in DIALECTS:
        raise UnknownNameError("--dialect", dialect, DIALECTS)
    _refuse(tables)
    request = _Request.of(tables, dialect)
    return WarehouseCount(tuple(request.checks()), request.count(), request.command())


def _refuse(tables: TableSpec) -> None:
    """Options that the statements would not follow."""
    for name in UNUSED:
        held, about = options_of(tables)[name]
        if getattr(tables, name) != held.default:
            raise InputError(
                f"{about.flag} cannot be used with --sql; give it when the result is audited, or "
                "audit the rows themselves."
            )
    if any(ref.path is None for ref in tables.sources):
        raise InputError("--sql takes names of tables in the warehouse, not frames.")


@dataclass(frozen=True)
class _Model:
    """A model's predictions: which table, under which alias, and which rows of it."""

    variant: str
    alias: str
    table: str
    prediction: str
    only: str | None = None  # its name in the variant column


@dataclass(frozen=True)
class _Request:
    tables: TableSpec
    dialect: str
    models: tuple[_Model, ...]
    groups: tuple[str, ...]

    @classmethod
    def of(cls, tables: TableSpec, dialect: str) -> _Request:
        groups = tuple(
            dict.fromkeys(column for name in tables.groups or () for column in split_grouping(name))
        )
        if tables.predictions is not None:
            if len(tables.sources) != 1:
                raise InputError("--prediction names columns of one wide table; give one table.")
            table = str(tables.sources[0].path)
            models = [
                _Model(variant, "t", table, column)
                for variant, columns in tables.predictions.items()
                for column in columns
            ]
        else:
            if len(tables.sources) < 2 or any(ref.variant is None for ref in tables.sources):
                raise InputError(
                    "--sql needs the models by name: one wide table with --prediction NAME=COL for "
                    "each, or NAME=TABLE for each (twice the same TABLE where a column "
                    f"'{tables.variant}' tells the models apart)."
                )
            places = [str(ref.path) for ref in tables.sources]
            models = [
                _Model(
                    str(ref.variant), f"m{place}", places[place], tables.prediction,
                    str(ref.variant) if places.count(places[place]) > 1 else None,
                )
                for place, ref in enumerate(tables.sources)
            ]  # fmt: skip
        names = [model.variant for model in models]
        if len(set(names)) < len(names):
            raise InputError(
                "--sql counts one member of each variant; give members variants of their own."
            )
        return cls(tables, dialect, tuple(models), groups)

    # --- names as the tree has them

    @property
    def wide(self) -> bool:
        return self.tables.predictions is not None

    def table(self, name: str, alias: str) -> exp.Expr:
        from sqlglot import exp
        from sqlglot.errors import SqlglotError

        try:
            found = exp.to_table(name, dialect=self.dialect)
        except SqlglotError:
            found = exp.Table()
        held = {part: value for part, value in found.args.items() if value}
        plain = all(isinstance(value, exp.Identifier) for value in held.values())
        if not held or not plain or ";" in name:
            raise InputError(f"'{name}' is no name of a table in {self.dialect}.")
        return exp.alias_(found, alias, table=True)

    def column(self, name: str, alias: str) -> exp.Expr:
        from sqlglot import exp

        plain = name[1:-1] if len(name) > 2 and name[0] == name[-1] == '"' else None
        identifier = exp.to_identifier(plain if plain is not None else name,
                                       quoted=True if plain is not None else None)  # fmt: skip
        return exp.column(identifier, table=exp.to_identifier(alias))

    def of_example(self, name: str) -> exp.Expr:
        """A column of examples: of the examples table where there is one, else of the baseline."""
        return self.column(name, "e" if self.tables.examples is not None else self.models[0].alias)

    def rows(self, model: _Model) -> exp.Select:
        """SELECT … FROM a model's rows; what is selected is added."""
        from sqlglot import exp

        found = exp.select().from_(self.table(model.table, model.alias))
        if model.only is not None:
            own = self.column(self.tables.variant, model.alias)
            found = found.where(own.eq(exp.Literal.string(model.only)))
        return found

    def joined(self) -> exp.Select:
        """All models side by side, one row per example, and its facts beside them."""
        from sqlglot import exp

        first, *others = self.models
        found = self.rows(first)
        if not self.wide:
            for model in others:
                on: exp.Condition = self.key(first.alias).eq(self.key(model.alias))
                if model.only is not None:
                    own = self.column(self.tables.variant, model.alias)
                    on = exp.and_(on, own.eq(exp.Literal.string(model.only)))
                found = found.join(self.table(model.table, model.alias), on=on)
        if self.tables.examples is not None:
            facts = self.table(str(self.tables.examples.path), "e")
            found = found.join(facts, on=self.key(first.alias).eq(self.key("e")))
        return found

    def key(self, alias: str) -> exp.Expr:
        return self.column(self.tables.id, alias)

    def written(self, tree: exp.Expr) -> str:
        return str(tree.sql(dialect=self.dialect, pretty=True))

    # --- statements

    def checks(self) -> list[Statement]:
        from sqlglot import exp

        found = []
        several = {model.alias: model for model in self.models}
        keyed = [(self.rows(model), alias, model.variant) for alias, model in several.items()]
        if self.tables.examples is not None:
            table = str(self.tables.examples.path)
            keyed.append((exp.select().from_(self.table(table, "e")), "e", "the examples table"))
        count = functools.partial(exp.func, "COUNT")
        for rows, alias, name in keyed:
            of = "" if self.wide and alias != "e" else f" of {name}"
            key = self.key(alias)
            twice: exp.Expr = (
                rows.copy()
                .select(key.as_("id", quoted=True), count(exp.Star()).as_("times", quoted=True))
                .group_by(key)
                .having(exp.GT(this=count(exp.Star()), expression=exp.Literal.number(1)))
                .limit(MOST)
            )
            found.append(Statement(f"Ids that occur more than once{of}", self.written(twice)))
        first, *others = keyed
        for rows, alias, name in others:
            pairs = [(first, (rows, alias, name))]
            if alias != "e":
                pairs.append(((rows, alias, name), first))
            for (mine, own, holder), (theirs, other, lacking) in pairs:
                left = mine.copy().select(self.key(own).as_("id", quoted=True))
                right = theirs.copy().select(self.key(other).as_("id", quoted=True))
                missing = exp.except_(left, right).limit(MOST)
                found.append(
                    Statement(f"Ids of {holder} that {lacking} lacks", self.written(missing))
                )
        key = self.key(self.models[0].alias).as_("id", quoted=True)
        here = self.of_example(self.tables.label)
        empty = self.joined().select(key).where(here.is_(exp.Null())).limit(MOST)
        found.append(Statement("Examples without a label", self.written(empty)))
        if self.wide or self.tables.examples is not None:
            return found
        for model in self.models[1:]:
            stated = self.column(self.tables.label, model.alias)
            differ = (
                self.joined()
                .select(key.copy(), here.as_("label", quoted=True),
                        stated.as_("other_label", quoted=True))
                .where(here.copy().neq(stated.copy()))
                .limit(MOST)
            )  # fmt: skip
            said = f"Labels that differ between {self.models[0].variant} and {model.variant}"
            found.append(Statement(said, self.written(differ)))
        return found

    def keys(self) -> list[tuple[str, exp.Expr]]:
        """What is grouped by, under the names that the audit reads."""
        of_examples = [*self.groups, *self.tables.clusters, *filter(None, [self.tables.weight])]
        named = [(name.strip('"'), self.of_example(name)) for name in of_examples]
        named.append(("label", self.of_example(self.tables.label)))
        named += [
            (f"pred_{model.variant}", self.column(model.prediction, model.alias))
            for model in self.models
        ]
        return list(dict(named).items())

    def count(self) -> Statement:
        from sqlglot import exp

        keys = self.keys()
        counted = exp.func("COUNT", exp.Star()).as_(COUNT, quoted=True)
        tree = (
            self.joined()
            .select(*(sql.as_(name, quoted=True) for name, sql in keys), counted)
            .group_by(*(sql.copy() for _, sql in keys))
        )
        return Statement("The count: examples that share groups, label and predictions",
                         self.written(tree))  # fmt: skip

    def command(self) -> str:
        words: list[Any] = ["fairweight audit counts.csv --count", COUNT]
        if self.groups:
            words += ["--groups", shlex.quote(",".join(self.tables.groups or ()))]
        for flag, held in (("--baseline", self.tables.baseline or self.models[0].variant),
                           ("--weight", self.tables.weight)):  # fmt: skip
            words += [flag, shlex.quote(held)] if held is not None else []
        for name in self.tables.clusters:
            words += ["--cluster", shlex.quote(name)]
        return " ".join(map(str, words))
