"""One Parquet file of encoded images, asked through DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairweight.data.official_files import AGAIN
from fairweight.errors import InputError, UnknownNameError


class ParquetTable:
    """The columns and rows of a file; every failure names the file."""

    def __init__(self, path: Path) -> None:
        import duckdb

        self.path = path
        self._connection = duckdb.connect()
        described = self._ask("DESCRIBE SELECT * FROM read_parquet(?)")
        self.columns: list[str] = [row[0] for row in described]
        self.n: int = self._ask("SELECT count(*) FROM read_parquet(?)")[0][0]

    def texts(self, columns: Sequence[str]) -> list[tuple[str | None, ...]]:
        """A row of text per row of the file; None where a value is missing."""
        asked = ", ".join(f"CAST({self._quoted(column)} AS VARCHAR)" for column in columns)
        return self._ask(f"SELECT {asked} FROM read_parquet(?)")

    def encoded(self, image: str, start: int, stop: int) -> list[bytes]:
        """Encoded images of the rows from `start` to `stop`."""
        rows = self._ask(
            f"SELECT {self._quoted(image)} FROM read_parquet(?, file_row_number = true) "
            "WHERE file_row_number >= ? AND file_row_number < ? ORDER BY file_row_number",
            start,
            stop,
        )
        for number, row in enumerate(rows, start=start):
            if not isinstance(row[0], bytes):
                raise InputError(
                    f"'{self.named(number)}' has no bytes of an image in the column '{image}'; "
                    "give the column that has (image=...), or remove the row."
                )
        return [row[0] for row in rows]

    def named(self, row: int) -> str:
        """A row as a message calls it."""
        return f"{self.path}, row {row}"

    def _ask(self, query: str, *values: Any) -> list[Any]:
        import duckdb

        try:
            return self._connection.execute(query, [str(self.path), *values]).fetchall()
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"'{self.path}' cannot be read as Parquet ({reason}); {AGAIN}."
            ) from error

    def _quoted(self, column: str) -> str:
        if column not in self.columns:
            raise UnknownNameError(f"Column of '{self.path}'", column, self.columns)
        return '"' + column.replace('"', '""') + '"'
