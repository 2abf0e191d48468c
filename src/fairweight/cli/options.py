"""Options that several commands share: which columns of which tables are what."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import typer

from fairweight.errors import InputError

TABLES, COLUMNS, STATISTICS, OUTPUT = "Tables", "Columns", "Statistics", "Output"

Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Predictions: one table, or one file per model (`NAME=FILE`; the first is the "
        "baseline, a NAME given again is another seed). Parquet, CSV, Arrow, JSON lines, globs, "
        "`file.duckdb::SELECT ...`.",
        show_default=False,
    ),
]
Baseline: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The dense model's variant.", rich_help_panel=TABLES),
]
Examples: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Groups and labels, a row per example.", rich_help_panel=TABLES
    ),
]
Train: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Training labels and groups (or their counts): the sign of bias amplification.",
        rich_help_panel=TABLES,
    ),
]
Variants: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="One row per variant and seed; `parent` (dense:3) says what it was derived from.",
        rich_help_panel=TABLES,
    ),
]
Missing: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="error|drop",
        help="What to do about examples that some variant lacks.",
        rich_help_panel=TABLES,
    ),
]
Id: TypeAlias = Annotated[
    str,
    typer.Option("--id", metavar="COL", help="Identity of the example.", rich_help_panel=COLUMNS),
]
Label: TypeAlias = Annotated[
    str, typer.Option(metavar="COL", help="True class.", rich_help_panel=COLUMNS)
]
Predictions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--prediction",
        metavar="NAME=COL",
        help="In a wide table, the column with a variant's predictions; repeat it for every "
        "variant, and for every seed of a variant.",
        rich_help_panel=COLUMNS,
    ),
]
Scores: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--score",
        metavar="NAME=COL",
        help="The same for scores: probability of the positive class (two classes) or of the "
        "predicted one (more classes).",
        rich_help_panel=COLUMNS,
    ),
]
Groups: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="a,b,a*b",
        help="Group columns and intersections; by default every column that looks like one. "
        "A name with a comma or a star is quoted: '\"age, years\",sex'.",
        rich_help_panel=COLUMNS,
    ),
]
Task: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Which of several labels a row speaks of.", rich_help_panel=COLUMNS
    ),
]
Cluster: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Examples that belong together (one person, one writer): resampled whole.",
        rich_help_panel=COLUMNS,
    ),
]
Weight: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COL", help="Sampling weight.", rich_help_panel=COLUMNS)
]
Count: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="How many examples a row stands for (`GROUP BY ..., count(*)`); by default one.",
        rich_help_panel=COLUMNS,
    ),
]
Force: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Take labels and predictions that do not look like classes as they are.",
        rich_help_panel=COLUMNS,
    ),
]
VariantColumn: TypeAlias = Annotated[
    str,
    typer.Option(metavar="COL", help="Long tables: the variant.", rich_help_panel=COLUMNS),
]
SeedColumn: TypeAlias = Annotated[
    str,
    typer.Option(metavar="COL", help="Long tables: the member.", rich_help_panel=COLUMNS),
]
PredictionColumn: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="COL", help="Long tables, files per model: the answer.", rich_help_panel=COLUMNS
    ),
]
ScoreColumn: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="COL", help="Long tables, files per model: the score.", rich_help_panel=COLUMNS
    ),
]
Positive: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="X", help="Positive class of binary labels.", rich_help_panel=COLUMNS),
]
ScoreClasses: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="a,b,c",
        help="Class of each entry of the score vectors, if the file does not say.",
        rich_help_panel=COLUMNS,
    ),
]
Members: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="retrained|repeated",
        help="What several seeds are: models trained again, or the same model run again "
        "(decoding repeats, checkpoints).",
        rich_help_panel=STATISTICS,
    ),
]
NBoot: TypeAlias = Annotated[
    int, typer.Option(help="Bootstrap replicates.", rich_help_panel=STATISTICS)
]
MinGroup: TypeAlias = Annotated[
    int, typer.Option(help="Smaller groups are shown, not judged.", rich_help_panel=STATISTICS)
]
RandomState: TypeAlias = Annotated[
    int, typer.Option(help="Seed of all random numbers.", rich_help_panel=STATISTICS)
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no summary.", rich_help_panel=OUTPUT)
]


Overwrite: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files too that fairweight did not write, or that were changed since.",
        rich_help_panel=OUTPUT,
    ),
]
# Parameters that name files or folders which are read.
_READ = (
    "files", "examples", "train", "variants", "policy", "confirm", "validation", "rule", "labels",
    "audit", "models", "model", "teacher", "init", "training", "backdoor", "a", "b",
)  # fmt: skip


def inputs(values: dict[str, Any]) -> list[str]:
    """The files that a command reads, as they were given, from its parameters."""
    found: list[str] = []
    for held in (values.get(name) for name in _READ):
        found += held if isinstance(held, list) else [str(held)] if held else []
    return found


def split_names(text: str | None, option: str) -> list[str] | None:
    """`a,b,c` as names; a name with a comma is quoted: `"a,b"`.

    >>> split_names('cat,"dog, small"', "--score-classes")
    ['cat', 'dog, small']
    """
    if text is None:
        return None
    from fairweight.tables.names import unquoted

    return [unquoted(item) for item in _items(text, option)]


def _items(text: str, option: str) -> list[str]:
    """The items of a list as they are written; an empty list is refused."""
    from fairweight.tables.names import split_list

    items = split_list(text)
    if not items:
        raise InputError(f"{option} {text!r} names nothing; write names with commas: a,b,c")
    return items


def named_columns(given: list[str] | None, option: str) -> dict[str, list[str]] | None:
    """`NAME=COL` options as a dict; a name that is given again is another seed.

    >>> named_columns(["dense=a", "int8=b", "int8=c"], "--prediction")
    {'dense': ['a'], 'int8': ['b', 'c']}
    """
    if not given:
        return None
    from fairweight.tables.names import split_pair

    found: dict[str, list[str]] = {}
    for item in given:
        pair = split_pair(item)
        if pair is None:
            raise InputError(f"{option} {item!r} is not of the form NAME=COLUMN.")
        found.setdefault(pair[0], []).append(pair[1])
    return found


def table_options(values: dict[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `audit_table` and `align` from a command's parameters."""
    return {
        "baseline": values["baseline"],
        "predictions": named_columns(values["prediction"], "--prediction"),
        "scores": named_columns(values["score"], "--score"),
        "label": values["label"],
        "id": values["id_"],
        "groups": None if values["groups"] is None else _items(values["groups"], "--groups"),
        "task": values["task"],
        "examples": values["examples"],
        "train": values["train"],
        "variants": values.get("variants"),  # `count` keeps nothing of it, so it has no such option
        "cluster": values["cluster"],
        "weight": values["weight"],
        "count": values.get("count"),  # commands that look at single examples have no such option
        "missing": values["missing"],
        "variant": values["variant_column"],
        "seed": values["seed_column"],
        "prediction": values["prediction_column"],
        "score": values["score_column"],
    }


def shell_command(context: typer.Context) -> str:
    """The command as it was typed, quoted so that it can be typed again."""
    import shlex

    return shlex.join(["fairweight", *(context.obj or [])])
