"""What libraries and the system say while reading, as one sentence that a user can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairweight.errors import LESS_MEMORY, InputError


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what DuckDB, Arrow and the system say while reading into one InputError."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.Error as error:
        raise InputError(_sentence(what, str(error))) from error
    except UnicodeDecodeError as error:
        raise InputError(encoding_sentence(what)) from error
    except PermissionError as error:
        raise InputError(f"{what} cannot be read: permission denied.") from error
    except OSError as error:
        raise InputError(f"{what} cannot be read: {first_line(str(error))}") from error


@contextmanager
def streaming(what: str) -> Iterator[None]:
    """`reading`, for the time after a table was opened: rows of Parquet are read when counted.

    A complaint about the SQL itself is ours and stays what it is; so do errors of other work.
    """
    import duckdb

    try:
        yield
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
        raise
    except duckdb.Error:
        with reading(what):
            raise


def first_line(message: str) -> str:
    """The first sentence of a library's message, without its kind."""
    line = message.strip().split("\n", 1)[0].strip()
    for kind in (
        "Invalid Input Error: ",
        "IO Error: ",
        "Binder Error: ",
        "Parser Error: ",
        "Out of Memory Error: ",
    ):
        line = line.removeprefix(kind)
    return line if line.endswith((".", "!", "?")) else line + "."


def encoding_sentence(what: str) -> str:
    return (
        f"{what} is not UTF-8 text; save it as UTF-8 "
        "(for example: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW)."
    )


def _sentence(what: str, message: str) -> str:
    lowered = message.lower()
    if "error when sniffing" in lowered:  # its advice lists every option of DuckDB
        return (
            f"{what} cannot be read: its lines do not have the columns of the header; look for "
            "lines with more or fewer columns, and for quotation marks that are never closed."
        )
    if "pytz" in lowered:
        return (
            f"{what} has moments with a time zone in a column of names (variant, seed, id or "
            "task); write them as text."
        )
    if "utf-8" in lowered or "utf8" in lowered or "unicode" in lowered:
        return encoding_sentence(what)
    if "magic bytes" in lowered or "too small to be a parquet" in lowered:
        return (
            f"{what} is not a complete Parquet file (cut off, or still being written); "
            "write or copy it again."
        )
    if "out of memory" in lowered or "no space left" in lowered:
        return (
            f"{what} needs more memory or temporary disk space than there is "
            f"({first_line(message).rstrip('.')}); {LESS_MEMORY}, or set TMPDIR to a larger disk."
        )
    lines = [line.strip() for line in message.strip().split("\n") if line.strip()]
    told = first_line(message)
    if "csv error" in lowered and len(lines) > 2:
        told = first_line(lines[0]).rstrip(".") + ": " + first_line(lines[2])
    return f"{what} cannot be read: {told}"
