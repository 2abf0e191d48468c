"""The count as SQL: what it counts is what DuckDB counts from the rows, in every dialect."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from tests.auditing.counts.test_outcome_sums import same
from tests.tables.test_engines import (
    GROUPS,
    OUTCOMES,
    cells,
    expected,
    outcome_request,
    outcomes,
    rows,
    same_sums,
    summed_cube,
    wide,
)

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.spec import DIALECTS, TableSpec
from fairweight.tables.warehouse import WarehouseCount, warehouse_count

pytest.importorskip("sqlglot")
__all__ = ["expected", "rows"]  # fixtures

COLUMNS = {"dense": "dense", "int8": "int8"}
LAYOUTS = {
    "wide": TableSpec("wide_rows", groups=GROUPS, predictions=COLUMNS),
    "long": TableSpec({"dense": "all_rows", "int8": "all_rows"}, groups=GROUPS),
    "models": TableSpec({"dense": "of_dense", "int8": "of_int8"}, groups=GROUPS),
    "examples": TableSpec(
        {"dense": "of_dense", "int8": "of_int8"}, groups=GROUPS, examples="people"
    ),
}


def tables_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    split = {name: rows[rows["variant"] == name].drop(columns="variant")
             for name in ("dense", "int8")}  # fmt: skip
    people = split["dense"].drop(columns="prediction")
    return {
        "all_rows": rows, "wide_rows": wide(rows), "people": people,
        **{f"of_{name}": held for name, held in split.items()},
    }  # fmt: skip


def check(
    run: Callable[[str], pd.DataFrame],
    dialect: str,
    expected: dict[Any, int],
    folder: Path,
) -> None:
    """Every layout: checks give no rows, and the count gives the same cells."""
    for tables in LAYOUTS.values():
        made = warehouse_count(tables, dialect)
        for statement in made.checks:
            assert run(statement.sql).empty, statement.purpose
        counted = run(made.count.sql)
        # As the command that is printed reads it, from a file.
        counted.to_csv(folder / "counts.csv", index=False)
        assert cells(str(folder / "counts.csv"), folder, groups=GROUPS, count="n") == expected


def findings(run: Callable[[str], pd.DataFrame], made: WarehouseCount) -> dict[str, int]:
    return {one.purpose: len(found) for one in made.checks if not (found := run(one.sql)).empty}


@pytest.fixture
def database(rows: pd.DataFrame) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, held in tables_of(rows).items():
            connection.register("held", held)
            connection.execute(f"CREATE TABLE {name} AS FROM held")
        yield connection


def test_duckdb_counts_the_same_cells(
    database: duckdb.DuckDBPyConnection, expected: dict[Any, int], tmp_path: Path
) -> None:
    check(lambda sql: database.sql(sql).df(), "duckdb", expected, tmp_path)


def check_outcomes(run: Callable[[str], pd.DataFrame], dialect: str, folder: Path) -> None:
    """The sums of `scores`, a wide table, as the command that is printed reads them."""
    table, file = outcomes(), folder / "counts.csv"
    for name in OUTCOMES:
        expected = summed_cube(outcome_request(table, name), folder)
        made = warehouse_count(outcome_request("scores", name), dialect)
        for statement in made.checks:
            assert run(statement.sql).empty, statement.purpose
        run(made.count.sql).to_csv(file, index=False)
        words = shlex.split(made.command.replace("counts.csv", str(file)))[2:]
        same_sums(summed_cube(TableSpec.from_words(words), folder), expected, name)


def test_duckdb_sums_the_same_outcomes(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("scores", outcomes())
        check_outcomes(lambda sql: connection.sql(sql).df(), "duckdb", tmp_path)


def test_sums_of_a_warehouse_are_audited_and_nothing_else(tmp_path: Path) -> None:
    """The audit of the saved result is that of the rows; what needs rows says so."""
    table, file = outcomes(), tmp_path / "counts.csv"
    facts = table[["example_id", "sex", "age"]]
    request = TableSpec({"dense": "of_dense", "int8": "of_int8"}, outcome="wer", better="lower",
                        denominator="words", groups=GROUPS)  # fmt: skip
    made = warehouse_count(request, "duckdb")
    with duckdb.connect() as connection:
        for name, errors, words in (("dense", "errors", "words"), ("int8", "errors8", "more")):
            held = facts.assign(wer=table[errors], words=table[words])
            connection.register(f"of_{name}", held)
            held.to_csv(tmp_path / f"{name}.csv", index=False)
        connection.sql(made.count.sql).df().to_csv(file, index=False)
    words = shlex.split(made.command.replace("counts.csv", str(file)))[2:]
    files = {name: str(tmp_path / f"{name}.csv") for name in ("dense", "int8")}
    same(
        fw.audit_table(replace(request, sources=files)), fw.audit_table(TableSpec.from_words(words))
    )
    with pytest.raises(InputError, match="holds sums of an outcome"):
        fw.choose(TableSpec.from_words(words))
    with pytest.raises(InputError, match="The baseline of these sums"):
        fw.audit_table(replace(TableSpec.from_words(words), baseline="int8"))
    broken = pd.read_csv(file)
    broken.loc[0, "wer_int8_sum_1100"] = None
    broken.to_csv(file, index=False)
    with pytest.raises(InputError, match="some of them are missing or no numbers"):
        fw.audit_table(TableSpec.from_words(words))


def test_checks_of_outcomes_find_what_cannot_be_summed() -> None:
    table = outcomes()
    table.loc[[1, 2], "errors8"] = None
    table.loc[3, "words"] = -1
    made = warehouse_count(outcome_request("scores", "shared"), "duckdb")
    with duckdb.connect() as connection:
        connection.register("scores", table)
        found = findings(lambda sql: connection.sql(sql).df(), made)
    assert found == {
        "Denominators of dense that are missing or negative": 1,
        "Outcomes of int8 that are missing": 2,
        "Denominators of int8 that are missing or negative": 1,
    }


def test_the_checks_find_what_an_audit_would_refuse(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("INSERT INTO of_int8 FROM of_int8 WHERE example_id = 3")
    database.execute("UPDATE of_int8 SET label = 'cow' WHERE example_id = 4")
    database.execute("DELETE FROM of_int8 WHERE example_id = 5")
    database.execute("UPDATE of_dense SET label = NULL WHERE example_id IN (6, 7)")
    made = warehouse_count(LAYOUTS["models"], "duckdb")
    assert findings(lambda sql: database.sql(sql).df(), made) == {
        "Ids that occur more than once of int8": 1,
        "Ids of dense that int8 lacks": 1,
        "Examples without a label": 2,
        "Labels that differ between dense and int8": 1,
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_can_read_its_statements(dialect: str) -> None:
    """Names that need quotes are quoted as that dialect does; its own parser takes it all."""
    import sqlglot

    tables = TableSpec(
        {"dense": "logs.dense", "a b": "logs.other"}, groups=["age, years"], id='"Id"',
        cluster="person", weight="w",
    )  # fmt: skip
    made = warehouse_count(tables, dialect)
    summed = warehouse_count(
        replace(tables, outcome='"Loss"', denominator="tokens", better="lower"), dialect
    )
    for statement in (*made.checks, made.count, *summed.checks, summed.count):
        (tree,) = sqlglot.parse(statement.sql, dialect=dialect)
        assert tree is not None
    mark = "`" if dialect in ("bigquery", "databricks") else '"'
    assert f"m0.{mark}age, years{mark} AS {mark}age, years{mark}" in made.count.sql
    assert f"m0.{mark}Id{mark} = m1.{mark}Id{mark}" in made.count.sql
    assert f"AS {mark}pred_a b{mark}" in made.count.sql
    assert str(made).endswith(
        "-- fairweight audit counts.csv --count n --groups 'age, years' --baseline dense "
        "--weight w --cluster person\n"
    )


def test_what_cannot_be_said_in_sql_is_refused() -> None:
    for tables, said in (
        (TableSpec("t", predictions=COLUMNS, task="k"), "--task cannot be used with --sql"),
        (TableSpec("t"), "needs the models by name"),
        (TableSpec({"dense": "a", "int8": "b; DROP TABLE c"}), "no name of a table"),
        (TableSpec("t", predictions={"dense": ["a", "b"]}), "one member of each variant"),
        (TableSpec(pd.DataFrame({"a": [1]}), predictions=COLUMNS), "not frames"),
    ):
        with pytest.raises(InputError, match=said):
            fw.count_sql(tables, "trino")
    with pytest.raises(InputError, match="oracle"):
        fw.count_sql(TableSpec("t", predictions=COLUMNS), "oracle")


# --- PostgreSQL ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of its own on a socket in a folder, as Debian packages it."""
    psycopg = pytest.importorskip("psycopg")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if not places:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tmp_path_factory.mktemp("postgres"))
    data, log = folder / "data", folder / "log"
    user: list[str] = []
    if Path("/proc/self").owner() == "root":  # the server refuses to run as root
        runuser = shutil.which("runuser")
        if runuser is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        user = [runuser, "-u", "postgres", "--"]
        for place in (folder, *folder.parents):
            if place.owner() == "root" and "pytest" in str(place):
                place.chmod(0o711)
        shutil.chown(folder, "postgres")

    def run(*words: str) -> None:
        subprocess.run([*user, *words], check=True, stdout=subprocess.DEVNULL, timeout=120)

    run(str(places[0] / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres")
    settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    control = str(places[0] / "pg_ctl")
    run(control, "-D", str(data), "-l", str(log), "-o", settings, "-w", "start")
    try:
        with psycopg.connect(f"host={folder} user=postgres dbname=postgres") as connection:
            yield connection
    finally:
        run(control, "-D", str(data), "-m", "immediate", "stop")


@pytest.mark.slow
def test_postgresql_counts_the_same_cells(
    postgres: Any, rows: pd.DataFrame, expected: dict[Any, int], tmp_path: Path
) -> None:
    def run(sql: str) -> pd.DataFrame:
        found = postgres.execute(sql)
        return pd.DataFrame(found.fetchall(), columns=[c.name for c in found.description])

    for name, held in tables_of(rows).items():
        kinds = [f"{c} {'bigint' if c == 'example_id' else 'text'}" for c in held.columns]
        postgres.execute(f"CREATE TABLE {name} ({', '.join(kinds)})")
        plain = held.astype(object).where(held.notna(), None).values.tolist()
        marks = ", ".join(["%s"] * len(kinds))
        with postgres.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", plain)
    check(run, "postgres", expected, tmp_path)
    table = outcomes()
    sql_types = {"i": "bigint", "f": "double precision"}
    held = table.astype({"good": int})
    types = [f"{c} {sql_types.get(held[c].dtype.kind, 'text')}" for c in held.columns]
    postgres.execute(f"CREATE TABLE scores ({', '.join(types)})")
    plain = held.astype(object).where(held.notna(), None).values.tolist()
    with postgres.cursor() as cursor:
        cursor.executemany(f"INSERT INTO scores VALUES ({', '.join(['%s'] * len(types))})", plain)
    check_outcomes(run, "postgres", tmp_path)
    postgres.execute("DELETE FROM of_int8 WHERE example_id = 5")
    found = findings(run, warehouse_count(LAYOUTS["models"], "postgres"))
    assert found == {"Ids of dense that int8 lacks": 1}
