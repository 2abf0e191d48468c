"""The reader of audit.json: every field and every table is checked before anybody uses it."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from fairweight.auditing import schema
from fairweight.auditing.result import Provenance
from fairweight.auditing.schema import AUDIT_TABLES, LARGEST_WHOLE, REMEDY, TABLES, other_form
from fairweight.auditing.table_files import read_parquet
from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.spec import Better, OutcomeRole, TableSpec

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 2
CUBE, VARIANTS = "cube", "variants"
STORED, COMPUTED = "stored", "computed"
_PLAIN = (str, bool, int, float)
_TABLE_NAME = re.compile("[a-z][a-z0-9_]*")
_OPTIONS: dict[str, type | tuple[type, ...]] = {
    "alpha": float, "margin": (int, float, NoneType), "group_error": (int, float),
    "reference_shift": float,
    "n_boot": int, "min_group": int, "random_state": int, "exact": bool, "filters": bool,
    "members": str, "correction": str, "zero_baseline": str, "confirmatory": list,
    "positive": (str, NoneType), "fixed_side": (str, NoneType),
}  # fmt: skip


def parsed(text: str) -> dict[str, Any]:
    def no_number(name: str) -> Any:
        raise InputError(f"The audit holds {name}, which is no number of JSON; {REMEDY}.")

    try:
        document = json.loads(text, parse_constant=no_number)
        if "\\ud" in text or "\\uD" in text:  # half a character, which no file can hold
            json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise InputError(
            f"The audit is not valid JSON (line {error.lineno}, column {error.colno}); {REMEDY}."
        ) from None
    except UnicodeEncodeError:
        raise InputError(f"The audit holds text that is no UTF-8; {REMEDY}.") from None
    except InputError:
        raise
    except (RecursionError, ValueError):
        raise InputError(
            f"The audit is not valid JSON (nested too deep, or too long a number); {REMEDY}."
        ) from None
    number = document.get("schema") if isinstance(document, dict) else None
    if type(number) is not int or not 1 <= number <= SCHEMA:
        raise InputError(
            f"The audit has the schema {shown(repr(number), 60)}, this version reads schemas 1 to "
            f"{SCHEMA}; make the audit again, or read it with the version of fairweight that wrote "
            "it."
        )
    return dict(document)


@dataclass(frozen=True)
class Fields:
    """The fields of a JSON object; whoever takes one says its type, and it is checked."""

    held: Mapping[str, Any]
    inside: str  # "provenance." for the fields of that object

    def take(self, name: str, kind: type | tuple[type, ...], form: str, later: bool = False) -> Any:
        if name not in self.held:
            if later:
                return None
            raise other_form(self.inside + name, "is missing")
        value = self.held[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, float)):
            raise other_form(self.inside + name, f"should be {form}")
        return value

    def text(self, name: str, *, empty: bool = False, later: bool = False) -> Any:
        kinds, form = ((str, NoneType), "text or null") if empty else (str, "text")
        return self.take(name, kinds, form, later)

    def texts(self, name: str, *, several: bool = False) -> tuple[str, ...]:
        """A list of texts; of names, each once, unless `several` may be alike."""
        found = self.take(name, list, "a list of texts")
        if not all(isinstance(item, str) for item in found):
            raise other_form(self.inside + name, "should be a list of texts")
        if not several and len(set(found)) < len(found):
            raise other_form(self.inside + name, "should hold every name once")
        return tuple(found)

    def whole(self, name: str) -> int:
        found: int = self.take(name, int, "a whole number")
        if not 0 <= found <= LARGEST_WHOLE:
            raise other_form(self.inside + name, "should be a whole number of at least 0")
        return found

    def object(self, name: str, later: bool = False) -> Mapping[str, Any]:
        return self.take(name, dict, "an object", later) or {}

    def rows(self, name: str, later: bool = False) -> list[dict[str, Any]]:
        found = self.take(name, list, "a list of rows", later) or []
        if not all(isinstance(row, dict) for row in found):
            raise other_form(self.inside + name, "should be a list of rows")
        return found


class StoredTables:
    """The tables of a stored audit: from the files beside it, or from the document itself."""

    def __init__(
        self,
        field: Fields,
        place: Path | None,
        lone: bool,
        known: Mapping[str, Collection[str]],
    ) -> None:
        self.field, self.known = field, known
        self.folder = None if place is None else place.parent
        self.lone = lone
        self.partial = False  # whether some rows are not here
        self.sizes: dict[str, tuple[int, int]] = {}  # rows, and how many are in the document
        if field.held["schema"] == 1:
            return
        listed = Fields(field.object("tables"), "tables.")
        for name in listed.held:
            if not _TABLE_NAME.fullmatch(name) or name == CUBE:  # it becomes the name of a file
                raise InputError(f"The audit has a table called '{shown(name, 60)}'; {REMEDY}.")
            size = Fields(listed.object(name), f"tables.{name}.")
            self.sizes[name] = size.whole("rows"), size.whole("here")
        if absent := [name for name in AUDIT_TABLES if name not in listed.held]:
            raise other_form(f"tables.{absent[0]}", "is missing")

    def frame(self, name: str, where: Fields, later: bool = False) -> pd.DataFrame:
        """One table, checked; `where` has its rows if the document has them."""
        place = f"{where.inside}{name}"
        rows, here = self.sizes.get(name, (None, 0))
        file = f"tables/{name}.parquet"
        if rows is not None and self.folder is not None and (self.folder / file).is_file():
            if name == "results":  # less what is left to the cube
                families = families_of(self.field)
                rows -= sum(one["rows"] for one in families if one["held"] == COMPUTED)
            held = read_parquet(self.folder, file, name, rows)
        else:
            if rows is not None and here < rows:
                if not self.lone:
                    raise InputError(
                        f"audit.json stands without its folder tables/ ({file}); give the folder "
                        "that fairweight audit wrote. Alone it serves fairweight gate, as far as "
                        "its rows reach."
                    )
                self.partial = True
            found = where.rows(name, later=later or rows is not None)
            if rows is not None and len(found) != here:
                raise other_form(place, f"has {len(found):,} rows in place of {here:,}")
            held = _from_rows(name, found, place)
        schema.check(name, held, self.known, place)
        return held

    def variants(self) -> pd.DataFrame | None:
        """The table of models that was given."""
        if not self.sizes:
            kinds = (list, NoneType)
            if self.field.take("variants_table", kinds, "a list of rows or null") is None:
                return None
        elif VARIANTS not in self.sizes:
            return None
        held = {**self.field.held, VARIANTS: self.field.held.get("variants_table", [])}
        found = self.frame(VARIANTS, Fields(held, ""))
        names = found.get("variant")
        if len(found) and (names is None or names.dtype != "str" or names.isna().any()):
            raise other_form("variants_table.variant", "should be text in every row")
        return found

    def explanations(self) -> dict[str, pd.DataFrame]:
        """Tables of exemplars and explanations."""
        held = Fields(self.field.object("explanations", later=True), "explanations.")
        names = [name for name in self.sizes if name not in (*AUDIT_TABLES, VARIANTS)]
        if not self.sizes:
            names = list(held.held)
        for name in names:
            if not _TABLE_NAME.fullmatch(name):
                raise InputError(
                    f"The audit has an explanation called '{shown(name, 60)}'; {REMEDY}."
                )
        return {name: self.frame(name, held) for name in names}


def _from_rows(table: str, rows: list[dict[str, Any]], place: str) -> pd.DataFrame:
    """Rows of JSON as a frame; all have the same columns, each of one kind (or null)."""
    import pandas as pd

    if rows:
        keys = rows[0].keys()
        schema.refuse(
            [row.keys() != keys for row in rows], place, "should have the same columns as before"
        )
    entry = TABLES.get(table)
    kinds: dict[str, Any] = {} if entry is None else entry.kinds
    known = entry.names if entry is not None else ()
    # Columns that an earlier version did not have are empty.
    own = list(rows[0]) if rows else []
    audit = entry is not None and entry.of == "audit"
    names = dict.fromkeys((*known, *own) if audit else (*own, *known))
    made = {}
    for name in names:
        values = [row.get(name) for row in rows]
        cell, kind = f"{place}.{name}", kinds.get(name)
        types, allowed = {type(value) for value in values} - {NoneType}, set(_ALLOWED[kind])
        if not types <= allowed:
            form = "texts, or numbers," if kind in (None, "mixed") else schema.FORMS[kind]
            strange = [value is not None and type(value) not in allowed for value in values]
            schema.refuse(strange, cell, f"should be {form} or null")
        if kind is None and len(types) > 1 and types != {int, float}:
            raise other_form(cell, "should be texts, or numbers, or null")
        if int in types:
            large = [type(value) is int and abs(value) > LARGEST_WHOLE for value in values]
            schema.refuse(large, cell, "holds a number that no audit has")
        made[name] = pd.Series(values, dtype=object)
    return schema.typed(table, pd.DataFrame(made, columns=list(names)))


_ALLOWED: dict[Any, tuple[type, ...]] = {
    "text": (str,), "number": (int, float), "whole": (int, float), "truth": (bool,),
    "mixed": _PLAIN, None: _PLAIN,
}  # fmt: skip


def outcome_of(field: Fields) -> OutcomeRole | None:
    """What stands in the place of labels and predictions; None of classes."""
    held = Fields(field.object("outcome") if field.held.get("outcome") else {}, "outcome.")
    if not held.held:
        return None
    better = held.text("better")
    if better not in list(Better):
        raise other_form("outcome.better", "should be higher or lower")
    span = held.take("range", (list, NoneType), "two numbers or null")
    if span is not None and not (
        len(span) == 2 and all(type(end) in (int, float) for end in span) and span[0] < span[1]
    ):
        raise other_form("outcome.range", "should be two numbers or null")
    return OutcomeRole(
        name=held.text("name"),
        better=Better(better),
        binary=held.take("binary", bool, "true or false"),
        denominator=held.text("denominator", empty=True),
        shared=held.take("shared", bool, "true or false"),
        range=None if span is None else (float(span[0]), float(span[1])),
    )


def pairing_of(field: Fields) -> dict[str, str]:
    found = dict(field.object("pairing"))
    if not all(isinstance(kind, str) for kind in found.values()):
        raise other_form("pairing", "should name a way of pairing for every variant")
    return found


def provenance_of(field: Fields) -> Provenance:
    """Where the audit came from; of schema 1 the request is read from the command."""
    origin = Fields(field.object("provenance"), "provenance.")
    options = Fields(origin.object("options"), "provenance.options.")
    for name, kind in _OPTIONS.items():
        options.take(name, kind, f"of the kind {getattr(kind, '__name__', 'number')}", later=True)
    most = math.inf if field.held.get("outcome") else 1
    for name, high in (("alpha", 1), ("margin", most)):
        if not 0 < (0.5 if (held := options.held.get(name)) is None else held) < high:
            raise other_form(f"provenance.options.{name}", "should lie between 0 and 1")
    inputs = origin.rows("inputs")
    for number, one in enumerate(inputs):
        given = Fields(one, f"provenance.inputs.{number}.")
        given.text("name"), given.text("sha256", empty=True), given.whole("rows")
    request = field.take("request", (dict, NoneType), "an object or null", later=True)
    command = origin.text("command", empty=True)
    tables = tables_of(None, command) if request is None and field.held["schema"] == 1 else None
    if tables is not None:
        words = shlex.split(command)
        out = {"out": words[words.index("--out") + 1]} if "--out" in words[:-1] else {}
        request = {"tables": tables.to_json(), **out}
    return Provenance(
        version=origin.text("version"),
        command=command,
        created=origin.text("created"),
        inputs=tuple(inputs),
        options=dict(options.held),
        request=dict(request or {}),
    )


# Options of the audit of version 0.1.0 that take no value and say nothing about tables.
_SWITCHES = ("--exact", "--no-filters", "--suppress-small", "--overwrite", "--quiet", "-q")


def tables_of(request: Any, command: Any = None) -> TableSpec | None:
    """The tables of a stored request; None where it names none that can be read.

    Audits of schema 1 have the command alone; it is read here and nowhere else.
    """
    try:
        if isinstance(request, Mapping) and request:
            return TableSpec.from_json(request["tables"])
        words = shlex.split(command or "")
        if words[:2] == ["fairweight", "audit"]:
            return TableSpec.from_words(words[2:], _SWITCHES)
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        pass  # not written by us
    return None


def families_of(field: Fields) -> list[dict[str, Any]]:
    """What the document says of every family; [] of schema 1, which has all rows."""
    if field.held["schema"] == 1:
        return []
    found = field.rows("families")
    for number, one in enumerate(found):
        of = Fields(one, f"families.{number}.")
        of.text("metric")
        if of.text("by") not in schema.WORDS["by"] or of.text("held") not in (STORED, COMPUTED):
            raise other_form(f"families.{number}", "is none that an audit has")
        for name in ("rows", "here", "limits", "limits_here"):
            of.whole(name)
    return found
