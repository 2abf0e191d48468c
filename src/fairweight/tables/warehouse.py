"""The GROUP BY of an audit, and its identity checks, as SQL of a warehouse.

Rows stay where they are: somebody runs the statements there, and the small result of the last one
is audited anywhere (`--count n`): counts, or of outcomes sums (`sums.py`). Sources are names of
tables there:

wide    `TABLE --prediction dense=p0 --prediction int8=p1`, one row per example
models  `dense=TABLE int8=OTHER`, a table per model, joined on the id
long    `dense=TABLE int8=TABLE`, twice the same: the variant column tells the models apart

Statements are built in sqlglot's tree and written in the warehouse's dialect. Columns are quoted
only where their name needs it (`"Label"` in quotes is taken as it is); the result's are always.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import util
from typing import Any

from fairweight.base.fields import options_of
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.names import split_grouping
from fairweight.tables.spec import DIALECTS, TableSpec
from fairweight.tables.sums import CENTRE, COUNT, DENOMINATOR, OUTCOME, Sums, result_name

with suppress(ImportError):  # an extra; `warehouse_count` says how to install it
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

MOST = 20  # rows that a check shows
# What SQL cannot say here, or what a count cannot hold.
UNUSED = ("train", "variants", "task", "scores", "count", "query", "positive", "score_classes",
          "repeat", "unlabelled")  # fmt: skip


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
    for name in UNUSED:
        held, about = options_of(tables)[name]
        if getattr(tables, name) != held.default:
            raise InputError(
                f"{about.flag} cannot be used with --sql; give it when the result is audited, or "
                "audit the rows themselves."
            )
    if any(ref.path is None for ref in tables.sources):
        raise InputError("--sql takes names of tables in the warehouse, not frames.")
    request = _Request.of(tables, dialect)
    return WarehouseCount(tuple(request.checks()), request.count(), request.command())


@dataclass(frozen=True)
class _Model:
    """A model's predictions: which table, under which alias, and which rows of it."""

    variant: str
    alias: str
    table: str
    prediction: str  # or its outcome
    only: str | None = None  # its name in the variant column
    denominator: str | None = None  # of an outcome


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
        sizes: Any = tables.denominator
        flag, several, single = "--prediction", tables.predictions, tables.prediction
        if tables.outcome is not None:
            flag, single = "--outcome", str(tables.outcome)
            several = tables.outcome if isinstance(tables.outcome, Mapping) else None
        if isinstance(sizes, Mapping) and (several is None or [*sizes] != [*several]):
            raise InputError(
                "--denominator NAME=COL needs --outcome NAME=COL for the same variants, in the "
                "same order."
            )
        if several is not None:
            if len(tables.sources) != 1:
                raise InputError(f"{flag} names columns of one wide table; give one table.")
            table = str(tables.sources[0].path)
            models = [
                _Model(
                    variant, "t", table, column,
                    denominator=sizes[variant][0] if isinstance(sizes, Mapping) else sizes,
                )
                for variant, columns in several.items()
                for column in columns
            ]  # fmt: skip
        else:
            if len(tables.sources) < 2 or any(ref.variant is None for ref in tables.sources):
                raise InputError(
                    f"--sql needs the models by name: one wide table with {flag} NAME=COL for "
                    "each, or NAME=TABLE for each (twice the same TABLE where a column "
                    f"'{tables.variant}' tells the models apart)."
                )
            places = [str(ref.path) for ref in tables.sources]
            models = [
                _Model(
                    str(ref.variant), f"m{place}", places[place], single,
                    str(ref.variant) if places.count(places[place]) > 1 else None,
                    sizes,
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
        named = (self.tables.predictions, self.tables.outcome)
        return any(isinstance(one, Mapping) for one in named)

    def table(self, name: str, alias: str) -> exp.Expr:
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
        plain = name[1:-1] if len(name) > 2 and name[0] == name[-1] == '"' else None
        identifier = exp.to_identifier(plain if plain is not None else name,
                                       quoted=True if plain is not None else None)  # fmt: skip
        return exp.column(identifier, table=exp.to_identifier(alias))

    def of_example(self, name: str) -> exp.Expr:
        """A column of examples: of the examples table where there is one, else of the baseline."""
        return self.column(name, "e" if self.tables.examples is not None else self.models[0].alias)

    def rows(self, model: _Model) -> exp.Select:
        """SELECT … FROM a model's rows; what is selected is added."""
        found = exp.select().from_(self.table(model.table, model.alias))
        if model.only is not None:
            own = self.column(self.tables.variant, model.alias)
            found = found.where(own.eq(exp.Literal.string(model.only)))
        return found

    def joined(self) -> exp.Select:
        """All models side by side, one row per example, and its facts beside them."""
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
        if self.tables.outcome is not None:
            return [*found, *self.number_checks(key)]
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

    def number_checks(self, key: exp.Expr) -> list[Statement]:
        """Outcomes and denominators that are missing, or cannot be what they are called."""
        found = []
        for model in self.models:
            value = self.column(model.prediction, model.alias)
            bad: exp.Condition = value.is_(exp.Null())
            said = f"Outcomes of {model.variant} that are missing"
            if self.tables.range is not None:
                low, high = (exp.Literal.number(end) for end in self.tables.range)
                bad = exp.or_(bad, value < low, value > high)
                said += " or outside the range"
            asked = [(said, bad)]
            if model.denominator is not None:
                size = self.column(model.denominator, model.alias)
                odd = exp.or_(size.is_(exp.Null()), size < 0)
                asked.append((f"Denominators of {model.variant} that are missing or negative", odd))
            for said, where in asked:
                rows = self.joined().select(key.copy(), value.as_("outcome", quoted=True))
                found.append(Statement(said, self.written(rows.where(where).limit(MOST))))
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
        if self.tables.outcome is not None:
            return self.sums()
        keys = self.keys()
        counted = exp.func("COUNT", exp.Star()).as_(COUNT, quoted=True)
        tree = (
            self.joined()
            .select(*(sql.as_(name, quoted=True) for name, sql in keys), counted)
            .group_by(*(sql.copy() for _, sql in keys))
        )
        return Statement("The count: examples that share groups, label and predictions",
                         self.written(tree))  # fmt: skip

    def sums(self) -> Statement:
        """Sums of outcomes by cell, of changes from the baseline."""
        first = self.tables.baseline or self.models[0].variant
        models = sorted(self.models, key=lambda model: model.variant != first)
        sums = Sums.of(self.tables, tuple(model.variant for model in models))
        facts = list(dict.fromkeys([*self.groups, *self.tables.clusters]))
        named = {name.strip('"'): self.of_example(name) for name in facts}

        def double(value: exp.Expr) -> exp.Expr:
            return exp.cast(value, "double")

        def own(name: str) -> exp.Expr:
            return exp.column(exp.to_identifier(name, quoted=True))

        def if_positive(test: exp.Expr, then: Any, other: Any) -> exp.Expr:
            return exp.Case().when(test > 0, exp.convert(then)).else_(exp.convert(other))

        def if_equal(one: exp.Expr, other: exp.Expr, then: Any, otherwise: Any) -> exp.Expr:
            return exp.Case().when(one.eq(other), exp.convert(then)).else_(exp.convert(otherwise))

        one = double(exp.Literal.number(1))
        numbers = {"fw_w": one}
        if self.tables.weight is not None:
            numbers["fw_w"] = double(self.of_example(self.tables.weight))
        for m, model in enumerate(models):
            numbers[f"fw_n{m}"] = double(self.column(model.prediction, model.alias))
            size = model.denominator
            numbers[f"fw_d{m}"] = one if size is None else double(self.column(size, model.alias))
        rows = self.joined().select(
            *(sql.copy().as_(name, quoted=True) for name, sql in (named | numbers).items())
        )
        zero, both = exp.Literal.number(0), [exp.Literal.number(value) for value in (0, 1)]
        weighted = exp.Sum(this=own("fw_d0") * own("fw_w"))
        ratio = exp.Sum(this=own("fw_n0") * own("fw_w")) / exp.func("NULLIF", weighted, zero)
        other = exp.or_(*(exp.not_(own(f"fw_n{m}").isin(*both)) for m in range(len(models))))
        about = exp.select(
            exp.func("COALESCE", ratio, zero).as_(CENTRE, quoted=True),
            exp.Max(this=exp.Case().when(other, exp.Literal.number(1)).else_(zero.copy())).as_(
                "fw_numeric", quoted=True
            ),
        ).from_("examples")
        plain = own("fw_numeric") < 1 if sums.denominator is None else exp.false()
        keys = {
            sums.own(m): exp.Case().when(plain.copy(), own(f"fw_n{m}")) for m in range(len(models))
        }
        by = [*named, *keys]
        if self.tables.weight is not None:  # of examples that are counted each one's own
            keys["fw_weight"] = exp.Case().when(plain.copy(), own("fw_w"))
        values = sums.values(own, if_positive, if_equal)
        values[CENTRE] = own(CENTRE)
        changes = (
            exp.select(
                *(own(name) for name in named),
                *(sql.as_(name, quoted=True) for name, sql in (keys | values).items()),
            )
            .from_("examples")
            .join("about", join_type="cross")
        )
        totals: dict[str, exp.Expr] = {
            name: exp.Sum(this=functools.reduce(lambda a, b: a * b, map(own, factors)))
            for name, factors in sums.totals().items()
        }
        totals |= {name: exp.Max(this=own(value)) for name, value in sums.largest().items()}
        tree = (
            exp.select(
                *(own(name) for name in by),
                exp.func("COUNT", exp.Star()).as_(COUNT, quoted=True),
                exp.Max(this=own(CENTRE)).as_(CENTRE, quoted=True),
                *(sql.as_(name, quoted=True) for name, sql in totals.items()),
            )
            .from_("changes")
            .group_by(*(own(name) for name in (*named, *keys)))
            .with_("examples", as_=rows)
            .with_("about", as_=about)
            .with_("changes", as_=changes)
        )
        return Statement("The sums of the outcome by cell", self.written(tree))

    def command(self) -> str:
        words: list[Any] = ["fairweight audit counts.csv --count", COUNT]
        if self.tables.outcome is not None:
            named = (("--outcome", self.tables.outcome, OUTCOME),
                     ("--denominator", self.tables.denominator, DENOMINATOR))  # fmt: skip
            for flag, held, otherwise in named:
                if held is not None:
                    words += [flag, shlex.quote(result_name(held, otherwise))]
            words += ["--better", str(self.tables.better)]
            if self.tables.range is not None:
                words += ["--range", ",".join(f"{end:g}" for end in self.tables.range)]
        if self.groups:
            words += ["--groups", shlex.quote(",".join(self.tables.groups or ()))]
        for flag, held in (("--baseline", self.tables.baseline or self.models[0].variant),
                           ("--weight", self.tables.weight)):  # fmt: skip
            words += [flag, shlex.quote(held.strip('"'))] if held is not None else []
        for name in self.tables.clusters:
            words += ["--cluster", shlex.quote(name.strip('"'))]
        return " ".join(map(str, words))
