"""Anything that holds rows as a view on a DuckDB connection, with its name and its identity.

Parquet, DuckDB tables and Arrow stay where they are and are streamed; text (CSV, JSON) and
one-pass streams are read once into a temporary table, so that a fault on the last line is found
before anything is counted.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairweight.errors import InputError
from fairweight.tables.connection import (
    Workspace,
    first_line,
    is_float,
    is_integer,
    is_nested,
    is_number,
    literal,
    one_row,
    quote,
    reading,
)
from fairweight.tables.formats import copied, empty_nan, open_duckdb, open_sqlite, read_delimited
from fairweight.tables.frames import check_names, to_arrow
from fairweight.tables.spec import TableSpec, kind_of_frame
from fairweight.tables.sums import CENTRE

# Paths as users write them: files, globs, folders of Parquet, `file.duckdb::SELECT ...`.

# How packed files begin, as patterns of bytes.
_PACKED = {".gz": rb"\x1f\x8b", ".zst": rb"\x28\xb5\x2f\xfd", ".bz2": rb"BZh[1-9]1AY&SY"}
_ARCHIVES = {rb"PK\x03\x04": "a zip archive or an Excel workbook", rb"\xfd7zXZ": "packed by xz"}


@dataclass(frozen=True)
class Place:
    """A path as written, with the files it stands for."""

    text: str
    files: tuple[Path, ...]
    query: str | None = None
    hive: bool = False
    suffix: str = field(default="")


def find_files(text: str) -> Place:
    if not text.strip():
        raise InputError("An empty file name was given; name a file, a glob or a folder.")
    path, separator, query = text.partition("::")
    if "://" in path:
        raise InputError(
            f"'{path}' is a remote address; fairweight reads local files only: download it first."
        )
    given = Path(path).expanduser()
    asked = query.strip() if separator else None
    with reading(f"'{path}'"):
        if given.is_file():
            return Place(text, (given,), asked, suffix=_suffix(given))
        if given.is_dir():
            found = sorted(
                file
                for file in given.rglob("*")
                if file.suffix.lower() in FORMATS["Parquet"].suffixes
                and file.is_file()
                and not any(p.startswith((".", "_")) for p in file.relative_to(given).parts)
            )
            if not found:
                raise InputError(
                    f"The folder '{path}' holds no Parquet file; give a folder of Parquet files, "
                    "or name the files."
                )
            parts = {part for file in found for part in file.relative_to(given).parts[:-1]}
            hive = any("=" in part for part in parts)
            return Place(text, tuple(found), asked, hive=hive, suffix=".parquet")
        if any(mark in path for mark in "*?["):
            matched = sorted(Path(f) for f in glob.glob(str(given), recursive=True))
            found = [file for file in matched if file.is_file()]
            if not found:
                raise InputError(f"No file matches '{path}'; check the folder and the pattern.")
            kinds = {_suffix(file) for file in found}
            if len(kinds) > 1:
                raise InputError(
                    f"'{path}' matches files of several kinds ({', '.join(sorted(kinds))}); "
                    "narrow the pattern."
                )
            return Place(text, tuple(found), asked, "=" in path, kinds.pop())
    told, folder = f"The file '{path}' does not exist", given.parent
    if not folder.is_dir():
        raise InputError(f"{told}: there is no folder '{folder}'; check the path.")
    near = difflib.get_close_matches(given.name, [f.name for f in folder.iterdir()], 1, 0.6)
    hint = f". Did you mean '{folder / near[0]}'?" if near else "; check the path."
    raise InputError(told + hint)


def may_be_logs(tables: TableSpec) -> bool:
    """Whether evaluation logs or detections were asked for, or a path may hold some.

    Frames, CSV and Parquet are tables, but for the Parquet of lighteval, which says so by its name.
    """
    asked = (tables.log_tasks, tables.log_filter, tables.allow_different, tables.score_threshold)
    given = [ref.path for ref in (*tables.sources, tables.examples) if ref is not None]
    paths = [Path(path) for path in given if path is not None]
    return any(one is not None for one in asked) or any(
        path.suffix not in (".csv", ".parquet") or path.name.startswith("details_") or path.is_dir()
        for path in paths
    )


def _suffix(path: Path) -> str:
    """The suffix that tells the format, below a compression suffix."""
    name = path.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return Path(name).suffix


def format_of(place: Place) -> TableFormat:
    """The format of a file: as it begins, else as it is named."""
    heads = []
    for file in place.files:
        with reading(f"'{file}'"), file.open("rb") as stream:
            head = stream.read(16)
        heads.append(head)
        packed = next((end for end, magic in _PACKED.items() if re.match(magic, head)), "")
        named = next((end for end in _PACKED if file.name.lower().endswith(end)), "")
        archive = next((kind for magic, kind in _ARCHIVES.items() if re.match(magic, head)), None)
        if archive is not None:
            raise InputError(
                f"'{file}' is {archive}; unpack it, or save the table as CSV or Parquet."
            )
        if packed and packed != named:
            raise InputError(
                f"'{file}' is compressed ({packed}), but its name does not say so; rename it to "
                f"'{file.name}{packed}', or unpack it."
            )
        if named and not packed:
            raise InputError(
                f"'{file}' is named {named}, but it is not compressed; rename it to "
                f"'{file.name[: -len(named)]}'."
            )
    for known in FORMATS.values():
        if known.begins is not None and re.match(known.begins, heads[0], re.DOTALL):
            return known
    likely = next((known for known in FORMATS.values() if place.suffix in known.suffixes), None)
    if likely is not None and likely.database:
        raise InputError(f"'{place.files[0]}' is neither a DuckDB nor a SQLite file.")
    if likely is not None:
        return likely
    readable = ", ".join(known.shown for known in FORMATS.values())
    raise InputError(f"'{place.files[0]}' is of an unknown kind; fairweight reads {readable}.")


def file_list(files: Iterable[Path]) -> str:
    """The files as an SQL list; characters that DuckDB would take for a pattern are bracketed."""
    shown = []
    for file in files:
        text = "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(file))
        shown.append(literal(text))
    return "[" + ", ".join(shown) + "]"


CUBE_KEY = b"fairweight_cube"
CLASSES_KEYS = (b"fairweight_classes", b"score_classes")
ROW_NUMBER = "fw_row_number"
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Source:
    """One input: a view on the connection, and what is needed to say where it came from.

    Text files have text columns, also where every value is a number: a label or an id is its
    text. `number` is such a column in a role of numbers, `kind` what it looks like.
    """

    name: str  # as the user wrote it
    view: str
    columns: dict[str, str]  # name -> DuckDB type
    rows: int
    files: tuple[Path, ...] = ()  # () for frames
    score_classes: tuple[str, ...] | None = None
    row_number: str | None = None  # a hidden column of the view that counts its rows
    guessed: Mapping[str, str] = field(default_factory=dict)  # text column -> type of its values
    total: int | None = None  # examples that its rows stand for, where a column counts them

    @property
    def n_examples(self) -> int:
        """Rows, or what they count."""
        return self.rows if self.total is None else self.total

    @property
    def shown(self) -> str:
        return f"'{self.name}'" if self.files else f"the {self.name}"

    def kind(self, column: str) -> str:
        """The type of a column; of a text column the type that all its values have."""
        return self.guessed.get(column, self.columns[column])

    def number(self, column: str, prefix: str = "") -> str:
        """SQL for a column in a role of numbers: a score, a weight, a measurement."""
        name = prefix + quote(column)
        guess = self.guessed.get(column)
        return name if guess is None or not is_number(guess) else f"CAST({name} AS {guess})"


def open_source(workspace: Workspace, given: Any, *, name: str | None = None) -> Source:
    """Make a view of `given` and check that it has rows.

    Parameters
    ----------
    given
        A path (file, glob, folder of Parquet, `file.duckdb::SELECT ...`), a pandas, polars or
        pyarrow table, a DuckDB relation, or a dict of columns.
    name
        How messages call it; by default the path, or the kind of frame.
    """
    if isinstance(given, Source):
        return given
    if is_cube(given):
        raise InputError(
            f"'{given}' is a cube already, not a table; audit it as it is (fairweight audit "
            "CUBE...), or give the tables it was made from."
        )
    source = (
        _open_path(workspace, str(given), name)
        if isinstance(given, str | Path)
        else _open_frame(workspace, given, name)
    )
    if source.rows == 0:
        shown = source.shown[:1].upper() + source.shown[1:]
        raise InputError(f"{shown} has no rows; give a table with examples.")
    return source


def provenance(sources: Iterable[Source]) -> tuple[dict[str, Any], ...]:
    """Name, SHA-256 (None for frames) and rows of every input; reads the files once more.

    Several files of one source (a glob, a folder) are hashed as one, in the order of their names.
    """
    found = []
    for source in sources:
        digest = None
        if source.files:
            state = hashlib.sha256()
            for path in source.files:
                with reading(f"'{path}'"), path.open("rb") as stream:
                    while block := stream.read(BLOCK_BYTES):
                        state.update(block)
            digest = state.hexdigest()
        found.append({"name": source.name, "sha256": digest, "rows": source.rows})
    return tuple(found)


def is_cube(path: Any) -> bool:
    """Whether this is a cube written by `fairweight count`, told by the file's metadata alone."""
    if not isinstance(path, str | Path):
        return False
    text = str(path)
    files = [Path(text)] if Path(text).is_file() else [Path(f) for f in sorted(glob.glob(text))]
    return bool(files) and all(CUBE_KEY in _parquet_metadata(file) for file in files)


def _parquet_schema(path: Path) -> Any:
    """The schema of a Parquet file, with its metadata; None where the file is none."""
    try:
        with path.open("rb") as stream:
            if stream.read(4) != b"PAR1":
                return None
        import pyarrow.parquet as pq

        return pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return None


def _parquet_metadata(path: Path) -> Mapping[bytes, bytes]:
    schema = _parquet_schema(path)
    return {} if schema is None else schema.metadata or {}


def _classes_in(metadata: Mapping[bytes, bytes] | None) -> tuple[str, ...] | None:
    for key in CLASSES_KEYS:
        if metadata and key in metadata:
            try:
                return tuple(str(item) for item in json.loads(metadata[key]))
            except ValueError:
                return None
    return None


# --- frames ------------------------------------------------------------------------------------


def _open_frame(workspace: Workspace, given: Any, name: str | None) -> Source:
    kind = kind_of_frame(given)
    if kind is None:
        raise InputError(
            f"A table was given as {type(given).__name__}; give a path, a pandas, polars or "
            "pyarrow table, a DuckDB relation, or a dict of columns."
        )
    plain = "dict of columns" if kind == "mapping" else kind
    shown = f"{plain} '{name}'" if name else plain
    if kind in ("pyarrow RecordBatchReader", "DuckDB relation"):
        with reading(f"the {shown}"):
            # A stream can be read once, and a relation belongs to another connection: both are
            # copied, batch by batch, to a table of ours, which spills to disk if it must.
            stream = given.to_arrow_reader() if kind == "DuckDB relation" else given
            table = copied(workspace, stream)
            return source_of_view(workspace, table, shown, ())
    if kind == "pyarrow Dataset":
        return source_of_arrow(workspace, given, shown, (), _classes_in(given.schema.metadata))
    with reading(f"the {shown}"):
        table = to_arrow(given, kind, f"the {shown}")
    classes = _classes_in(table.schema.metadata)
    if classes is None and kind == "pandas DataFrame":
        held = given.attrs.get("score_classes")
        classes = tuple(str(item) for item in held) if held is not None else None
    if table.num_columns == 0:
        raise InputError(f"The {shown} has no columns; give a table with examples.")
    return source_of_arrow(workspace, table, shown, (), classes)


def source_of_arrow(
    workspace: Workspace,
    table: Any,
    name: str,
    files: tuple[Path, ...],
    classes: tuple[str, ...] | None = None,
) -> Source:
    """A table of Arrow as a view of the connection; `files` are what it was made from."""
    view = workspace.name("source")
    with reading(f"'{name}'" if files else f"the {name}"):
        workspace.connection.register(view, table)
        return source_of_view(workspace, view, name, files, classes)


def source_of_view(
    workspace: Workspace,
    view: str,
    name: str,
    files: tuple[Path, ...],
    classes: tuple[str, ...] | None = None,
    row_number: str | None = None,
    guessed: Mapping[str, str] | None = None,
) -> Source:
    connection = workspace.connection
    described = connection.execute(f"DESCRIBE {quote(view)}").fetchall()
    columns = {str(row[0]): str(row[1]) for row in described if row[0] != row_number}
    rows = one_row(connection, f"SELECT count(*) FROM {quote(view)}")[0]
    return Source(name, view, columns, int(rows), files, classes, row_number, guessed or {})


# --- files -------------------------------------------------------------------------------------


def _open_path(workspace: Workspace, text: str, name: str | None) -> Source:
    place = find_files(text)
    shown = name or place.text
    for file in place.files:
        with reading(f"'{file}'"):
            if file.stat().st_size == 0:
                raise InputError(f"'{file}' is empty (0 bytes); write or copy it again.")
    found = format_of(place)
    if place.query is not None and not found.database:
        raise InputError(
            f"'{place.text}' is not a DuckDB or SQLite file, so a query after '::' cannot be "
            "run on it; give the path alone."
        )
    with reading(f"'{shown}'"):
        if found.open is not None:
            return found.open(workspace, place, shown)
        return _open_arrow_tables(workspace, place, shown, found)


def _open_csv(workspace: Workspace, place: Place, name: str) -> Source:
    view, guessed = read_delimited(workspace, place.files, file_list(place.files))
    return source_of_view(workspace, view, name, place.files, guessed=guessed)


def _open_database(workspace: Workspace, place: Place, name: str) -> Source:
    with place.files[0].open("rb") as stream:
        sqlite = stream.read(6) == b"SQLite"
    opened = open_sqlite if sqlite else open_duckdb
    view = opened(workspace, place.files[0], place.query)
    return source_of_view(workspace, view, name, place.files)


def _open_parquet(workspace: Workspace, place: Place, name: str) -> Source:
    for file in place.files:
        schema = _parquet_schema(file)
        check_names([] if schema is None else schema.names, f"'{file}'")
    connection = workspace.connection
    view = workspace.name("source")
    by_name = "true" if len(place.files) > 1 else "false"
    reader = (
        f"read_parquet({file_list(place.files)}, union_by_name = {by_name}, "
        f"hive_partitioning = {'true' if place.hive else 'false'}, hive_types_autocast = {{}})"
    )
    # Values in the names of folders are text, as in a text file.
    looks, held = (
        {str(row[0]): str(row[1]) for row in connection.execute(f"DESCRIBE FROM {sql}").fetchall()}
        for sql in (reader.format("true"), reader.format("false"))
    )
    # Rows can be counted while they stream, but only within one file.
    hidden = {"file_row_number", ROW_NUMBER}
    countable = len(place.files) == 1 and hidden.isdisjoint(column.lower() for column in held)
    counting = f", file_row_number AS {ROW_NUMBER}" if countable else ""
    connection.execute(
        f"CREATE TEMP VIEW {quote(view)} AS SELECT *{counting} FROM {reader.format('false')}"
    )
    classes = _classes_in(_parquet_metadata(place.files[0]))
    counted = ROW_NUMBER if countable else None
    guessed = {column: kind for column, kind in looks.items() if kind != held[column]}
    return source_of_view(workspace, view, name, place.files, classes, counted, guessed)


def _open_json(workspace: Workspace, place: Place, name: str) -> Source:
    connection = workspace.connection
    table = workspace.name("source")
    reader = (
        f"read_json({file_list(place.files)}, sample_size = -1, "
        f"union_by_name = {'true' if len(place.files) > 1 else 'false'})"
    )
    described = connection.execute(f"DESCRIBE SELECT * FROM {reader}").fetchall()
    if [row[0] for row in described] == ["json"]:
        raise InputError(f"'{name}' has no columns: every line must be one JSON object.")
    # Text keeps what a number was written as. Whole numbers and truth values lose nothing.
    looks = {str(row[0]): str(row[1]) for row in described}
    if any(re.fullmatch(r".+_[0-9]+", column, re.DOTALL) for column in looks):
        # Of two names that differ in case alone, DuckDB would call the second one NAME_1.
        keys = connection.execute(
            "SELECT DISTINCT unnest(json_keys(json)) FROM "
            f"read_json_objects({file_list(place.files)}) ORDER BY 1"
        ).fetchall()
        check_names([str(key) for (key,) in keys], f"'{name}'")
    typed = {c for c, kind in looks.items() if is_integer(kind) or kind == "BOOLEAN"}
    typed |= {c for c, kind in looks.items() if is_nested(kind)}
    # A column of several types looks like JSON: it is text, unless some of its values are nested.
    mixed, lists = [column for column, kind in looks.items() if kind == "JSON"], ""
    if mixed:
        kinds = ", ".join(f"{literal(column)}: 'JSON'" for column in mixed)
        nested = ", ".join(f"bool_or(json_type({quote(c)}) IN ('ARRAY', 'OBJECT'))" for c in mixed)
        held = one_row(connection, f"SELECT {nested} FROM {reader[:-1]}, columns = {{{kinds}}})")
        found = [
            f"[{quote(c)}] AS {quote(c)}" for c, is_so in zip(mixed, held, strict=True) if is_so
        ]
        lists = f" REPLACE ({', '.join(found)})" if found else ""
    types = ", ".join(
        f"{literal(column)}: {literal(kind if column in typed else 'VARCHAR')}"
        for column, kind in looks.items()
    )
    connection.execute(
        f"CREATE TEMP TABLE {quote(table)} AS "
        f"SELECT *{lists} FROM {reader[:-1]}, columns = {{{types}}})"
    )
    for column in (c for c, kind in looks.items() if is_float(kind)):
        empty_nan(workspace, table, column)
    # Numbers only: a text that looks like a day or a UUID is a text, as in every other format.
    guessed = {c: kind for c, kind in looks.items() if c not in typed and is_number(kind)}
    return source_of_view(workspace, table, name, place.files, guessed=guessed)


def _read_arrow(file: Path) -> pa.Table:
    """A file of either Arrow format, mapped: what is not compressed stays on disk until it is read.

    Not as a data set of Arrow, which reads ahead in threads of its own: where DuckDB leaves a scan
    early (`LIMIT 1`), such a thread may go on in a file that is closed, and the process dies.
    """
    mapped = pa.memory_map(str(file))
    opened = pa.ipc.open_file if mapped.read(6) == b"ARROW1" else pa.ipc.open_stream
    mapped.seek(0)
    return opened(mapped).read_all()


def _open_arrow_tables(workspace: Workspace, place: Place, name: str, found: TableFormat) -> Source:
    """Files that are read one by one as Arrow tables."""
    assert found.read is not None
    tables = []
    try:
        for file in place.files:
            tables.append(found.read(file))
            check_names(tables[-1].column_names, f"'{file}'")
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"'{name}' is not a complete {found.name} file (cut off, or of another kind: "
            f"{first_line(str(error)).rstrip('.')}); write or copy it again."
        ) from error
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"The files of '{name}' do not fit together ({first_line(str(error)).rstrip('.')}); "
            "write a column with one type in all of them."
        ) from error
    return source_of_arrow(workspace, table, name, place.files, _classes_in(table.schema.metadata))


# --- formats -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableFormat:
    """A kind of file that holds a table, and how it is read: one of `read` and `open`.

    name      as messages call it
    suffixes  how names of such files end
    begins    how such files begin, a pattern of bytes; None: only the name tells
    read      a file as an Arrow table
    open      files as a view of a connection, for what is streamed or checked otherwise
    database  holds several tables, told by its beginning alone, and can be asked with `::SELECT`
    """

    name: str
    suffixes: tuple[str, ...]
    begins: bytes | None = None
    read: Callable[[Path], pa.Table] | None = None
    open: Callable[[Workspace, Place, str], Source] | None = None
    database: bool = False

    @property
    def shown(self) -> str:
        return f"{self.name} ({', '.join(self.suffixes[:2])})"


FORMATS: dict[str, TableFormat] = {
    known.name: known
    for known in (
        TableFormat("Parquet", (".parquet", ".pq", ".parq"), rb"PAR1", open=_open_parquet),
        TableFormat("CSV or TSV", (".csv", ".tsv", ".txt", ".tab"), open=_open_csv),
        TableFormat(
            "Arrow", (".arrow", ".feather", ".ipc", ".arrows"), rb"ARROW1|FEA1", _read_arrow
        ),
        TableFormat("JSON lines", (".jsonl", ".ndjson", ".json"), open=_open_json),
        TableFormat(
            "DuckDB or SQLite",
            (".duckdb", ".sqlite", ".db", ".sqlite3", ".ddb"),
            rb"SQLite format 3|.{8}DUCK",
            open=_open_database,
            database=True,
        ),
    )
}


def summed_source(workspace: Workspace, tables: TableSpec) -> tuple[Source, list[str]] | None:
    """A table of sums and its compressed variants; None where the request is about others."""
    if tables.count is None or not isinstance(tables.outcome, str) or len(tables.sources) != 1:
        return None
    (ref,) = tables.sources
    if ref.variant is not None or (ref.path is None and ref.digest is None):  # one that flows by
        return None
    source = open_source(workspace, ref.given)
    of_model = re.compile(re.escape(tables.outcome) + "_(.+)_sum_1000")
    compressed = [found[1] for name in source.columns if (found := of_model.fullmatch(name))]
    return (source, compressed) if compressed and CENTRE in source.columns else None
