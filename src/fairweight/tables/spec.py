"""Which tables an audit reads and what their columns mean: one typed request.

Python, the command line, studies, the report and the viewer all hold a `TableSpec`, and it is
stored with the audit. Every default stands here and nowhere else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from fairweight.base.fields import choice, option, options_of, plain, refuse, words
from fairweight.errors import InputError
from fairweight.tables.names import (
    quoted,
    split_grouping,
    split_list,
    split_names,
    split_pair,
    written_list,
)

TABLES, COLUMNS, LOGS = "Tables", "Columns", "Logs of evaluations"
Columns = Mapping[str, str | Sequence[str]]  # variant -> column, or one column per seed
# What may be given: paths, and frames of any library; kept as a SourceRef (a tuple of them).
AnyTable: TypeAlias = Any
AnyTables: TypeAlias = Any
ARRAYS = "arrays"  # what `fairweight.audit` makes a table of: its columns are ours
STORED = ("path", "variant", "frame", "digest")  # of a source
TEXTS = ("id", "label", "task", "weight", "count", "variant", "seed", "prediction", "score",
         "repeat")  # fmt: skip


class Missing(StrEnum):
    ERROR, DROP = "error", "drop"


class Better(StrEnum):
    """Which side of an outcome is better."""

    HIGHER, LOWER = "higher", "lower"


class LabelsAre(StrEnum):
    """What labels and predictions name: classes, or positions of answers (A, B, C, D)."""

    CLASSES, POSITIONS = "classes", "positions"


@dataclass(frozen=True)
class OutcomeRole:
    """What the outcomes in the place of predictions are.

    Parameters
    ----------
    name, denominator
        As the user's columns are called; of several columns just that.
    binary
        All are 0 or 1, and there is no denominator: shares of examples, with their estimators.
    shared
        Every example has one denominator, whatever the model.
    range
        The least and the largest value that it can have, where that was said.
    """

    name: str
    better: Better
    binary: bool
    denominator: str | None = None
    shared: bool = True
    range: tuple[float, float] | None = None

    @property
    def metric(self) -> str:
        """The metric that it is reported as (`auditing/metrics/outcomes.py`).

        >>> OutcomeRole("wer", Better.LOWER, False).metric, OutcomeRole("c", "higher", True).metric
        ('cost', 'correct')
        """
        higher = self.better == Better.HIGHER
        if self.binary:
            return "correct" if higher else "failed"
        return "outcome" if higher else "cost"

    def to_json(self) -> dict[str, Any]:
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True)
class SourceRef:
    """A table as it was given: a path, or the name and digest of a frame.

    The frame itself is carried along; it is neither compared nor stored.
    """

    path: str | None = None  # a file, a glob, a folder, `file.duckdb::SELECT ...`
    variant: str | None = None  # NAME of `NAME=FILE`
    frame: str | None = None  # what sort of frame it was
    digest: str | None = None  # of the frame's first rows; None for streams
    held: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, given: Any, variant: str | None = None) -> SourceRef:
        """A path, or anything in memory that holds rows."""
        if isinstance(given, SourceRef):
            return given
        if isinstance(given, str | Path):
            return cls(str(given), variant)
        from fairweight.tables.frames import digest_of_frame

        kind = kind_of_frame(given) or type(given).__name__
        return cls(None, variant, kind, digest_of_frame(given), given)

    @property
    def given(self) -> Any:
        """What is opened: the path, or the frame."""
        if self.path is None and self.held is None:
            raise InputError(
                f"This request is about a {self.frame} in memory, which is not stored with it; "
                "give the table again."
            )
        return self.path if self.path is not None else self.held

    def word(self, placeholder: str = "PREDICTIONS") -> str:
        """The word for it in a command; a frame has none, so that a placeholder stands there."""
        text = self.path if self.path is not None else placeholder
        return text if self.variant is None else f"{self.variant}={text}"

    def to_json(self) -> dict[str, Any]:
        return {name: held for name in STORED if (held := getattr(self, name)) is not None}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> SourceRef:
        """What `to_json` wrote."""
        known = {name: held[name] for name in STORED if name in held}
        named = "path" in known or "frame" in known
        if not named or not all(isinstance(value, str) for value in known.values()):
            raise InputError("A stored table has neither a path nor a frame's name; make it again.")
        return cls(**known)


# Tables in memory, by the package and the name of their class.
FRAMES = {
    ("pandas", "DataFrame"): "pandas DataFrame",
    ("polars", "DataFrame"): "polars DataFrame",
    ("polars", "LazyFrame"): "polars LazyFrame",
    ("pyarrow", "Table"): "pyarrow Table",
    ("pyarrow", "RecordBatch"): "pyarrow RecordBatch",
    ("pyarrow", "RecordBatchReader"): "pyarrow RecordBatchReader",
    ("pyarrow", "Dataset"): "pyarrow Dataset",
    ("duckdb", "DuckDBPyRelation"): "DuckDB relation",
    ("_duckdb", "DuckDBPyRelation"): "DuckDB relation",
    ("pyspark", "DataFrame"): "Spark DataFrame",
    ("ibis", "Table"): "ibis table",
}


def kind_of_frame(given: Any) -> str | None:
    """What sort of in-memory table this is; None if it is none. Imports nothing to find out."""
    for base in type(given).__mro__:
        found = FRAMES.get((base.__module__.partition(".")[0], base.__name__))
        if found is not None:
            return found
    return "mapping" if isinstance(given, Mapping) else None


# Frames of an engine. Some are never brought here as rows, the others not where they are counted.
DISTANT = ("Spark DataFrame", "ibis table")
LAZY = (*DISTANT, "polars LazyFrame", "DuckDB relation")
# Whose SQL a count can be written in.
DIALECTS = ("bigquery", "clickhouse", "databricks", "duckdb", "postgres", "snowflake", "trino")


def are_distant(tables: TableSpec, kinds: Sequence[str] = DISTANT) -> bool:
    """Whether the predictions are frames of an engine."""
    held = [ref.frame in kinds for ref in tables.sources]
    if any(held) and not all(held):
        raise InputError("Frames of an engine cannot be mixed with other tables; give one kind.")
    return bool(held) and all(held)


def split_name(text: str) -> tuple[str | None, str]:
    """`NAME=FILE` as its two parts; a path that has an equals sign of its own stays whole.

    >>> split_name("int8=runs/int8.csv")
    ('int8', 'runs/int8.csv')
    >>> split_name("runs/year=2020/int8.csv")
    (None, 'runs/year=2020/int8.csv')
    """
    name, separator, path = text.partition("=")
    if not separator or not name or not path or Path(text).exists():
        return None, text
    if any(mark in name for mark in ("/", "\\", "::", "*", "?")):
        return None, text
    return name.strip(), path


def sources_of(given: Any) -> tuple[SourceRef, ...]:
    """Every table of what users give as predictions; members of a population share a name.

    One table, a list of them (or of `NAME=FILE`), or a dict from name to a table or to a list.
    """
    if isinstance(given, Mapping) and _names_tables(given):
        return tuple(
            SourceRef.of(item, str(name))
            for name, held in given.items()
            for item in (held if isinstance(held, list | tuple) else [held])
        )
    if isinstance(given, list | tuple):
        if not given:
            raise InputError("No table was given; give at least one file or frame.")
        items: Sequence[Any] = given
    else:
        items = [given]
    found = []
    for item in items:
        name, what = split_name(item) if isinstance(item, str) else (None, item)
        found.append(SourceRef.of(what, name))
    return tuple(found)


def _names_tables(source: Mapping[Any, Any]) -> bool:
    """Whether a dict is from variant to a table, or to a list of them, and not one of columns.

    Lists of text may be either: they are files if one of them is there.
    """

    tables = (str, Path)
    evident = False
    for held in source.values():
        listed = list(held) if isinstance(held, list | tuple) and held else [held]
        if not all(isinstance(item, tables) or kind_of_frame(item) is not None for item in listed):
            return False
        evident |= listed[0] is held or not isinstance(listed[0], str) or Path(listed[0]).is_file()
    return evident


# How the fields that are more than one word are read from options, and written again.


def read_items(text: str, flag: str) -> tuple[str, ...]:
    """The items of a list as they are written; an empty list is refused."""
    items = split_list(text)
    if not items:
        raise InputError(f"{flag} {text!r} names nothing; write names with commas: a,b,c")
    return tuple(items)


def read_names(text: str, flag: str) -> tuple[str, ...]:
    """`a,b,c` as names; a name with a comma is quoted: `"a,b"`.

    >>> read_names('cat,"dog, small"', "--score-classes")
    ('cat', 'dog, small')
    """
    read_items(text, flag)
    return tuple(split_names(text))


def _write_names(names: Sequence[Any]) -> str:
    return ",".join(quoted(n) if "," in n or n != n.strip() else n for n in map(str, names))


def read_pairs(given: Sequence[str], flag: str) -> dict[str, tuple[str, ...]] | None:
    """`NAME=COL` options as a dict; a name that is given again is another seed.

    >>> read_pairs(["dense=a", "int8=b", "int8=c"], "--prediction")
    {'dense': ('a',), 'int8': ('b', 'c')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for item in given:
        pair = split_pair(item)
        if pair is None:
            raise InputError(f"{flag} {item!r} is not of the form NAME=COLUMN.")
        found[pair[0]] = (*found.get(pair[0], ()), pair[1])
    return found or None


def read_patterns(given: Sequence[str], flag: str) -> dict[str, str] | str | None:
    """`p_*` for tables of one model each, or `NAME=p_NAME_*` for every model of a wide table.

    >>> read_patterns(["p_*"], "--scores"), read_patterns(["int8=q_*"], "--scores")
    ('p_*', {'int8': 'q_*'})
    """
    found = read_columns(given, flag)
    if found is None or isinstance(found, str):
        return found
    for name, patterns in found.items():
        if len(patterns) > 1:
            raise InputError(
                f"{flag} gives two patterns for '{name}'; give one: class probabilities of several "
                "seeds need a table per seed."
            )
    return {name: patterns[0] for name, patterns in found.items()}


def _write_patterns(patterns: str | Mapping[str, str]) -> list[str]:
    if isinstance(patterns, str):
        return [patterns]
    return _write_pairs({name: (pattern,) for name, pattern in patterns.items()})


def _write_pairs(columns: Columns) -> list[str]:
    return [
        f"{quoted(name) if '=' in name else name}={column}"
        for name, held in columns.items()
        for column in held
    ]


def read_columns(given: Sequence[str], flag: str) -> str | dict[str, tuple[str, ...]] | None:
    """A column's name, or `NAME=COL` for every variant of a wide table.

    >>> read_columns(["wer"], "--outcome"), read_columns(["dense=a", "int8=b"], "--outcome")
    ('wer', {'dense': ('a',), 'int8': ('b',)})
    """
    whole = [item for item in given if split_pair(item) is None]
    if not whole or any("=" in item or not item.strip() for item in whole):
        return read_pairs(given, flag)  # which refuses what is neither
    if len(given) > 1:
        raise InputError(
            f"{flag} was given as {' and '.join(map(repr, given))}; give one column ({flag} COL), "
            f"or one for every variant of a wide table ({flag} NAME=COL)."
        )
    return whole[0]


def _write_columns(columns: str | Columns) -> list[str]:
    return [columns] if isinstance(columns, str) else _write_pairs(columns)


def read_range(text: str, flag: str) -> tuple[float, float]:
    """`LOW,HIGH` as two numbers.

    >>> read_range("1,5", "--range")
    (1.0, 5.0)
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{flag} {text!r} is not of the form LOW,HIGH, such as 1,5.") from None
    return low, high


def _write_range(held: Sequence[float]) -> str:
    return ",".join(f"{end:g}" for end in held)


def _read_several(given: Sequence[str], flag: str) -> str | tuple[str, ...]:
    return given[0] if len(given) == 1 else tuple(given)


def _write_several(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _read_number(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} {text!r} is no number.") from None


def _read_table(text: str, flag: str) -> SourceRef:
    return SourceRef(text)


def _write_table(table: SourceRef) -> str:
    return table.word("FILE")


@dataclass(frozen=True)
class TableSpec:
    """Which tables are read, and which column is what.

    Parameters
    ----------
    sources
        The predictions: a path or frame, a list or a dict of them, as `fairweight.audit_table`
        takes them; kept as a tuple of `SourceRef`.
    baseline
        The dense model; by default the first file, or the variant named dense or baseline, or the
        first variant of the table.
    examples, train, variants
        Tables beside the predictions: of examples (groups, labels), of training labels, of models;
        paths or frames, kept as a `SourceRef`.
    query
        One SELECT on the table `data`, the rows of each table of predictions; its result is
        audited in their place.
    log_tasks, log_filter, allow_different
        Of evaluation logs: only these tasks, the filter of lm-eval's answers, and settings that
        may differ between the models.
    score_threshold
        Of detections: those with a lower score are left out; 0.5 by default.
    missing
        "error" or "drop": what to do about examples that some variant lacks.
    id, label, task, cluster, weight
        Names of columns; `doc.subject` is a field of a column that holds records. `task` and
        `weight` are used by default where they exist.
    predictions, scores
        For wide tables: variant to column, or to one column per seed. A name alone is that of
        every model's own table, as `prediction` and `score`.
    groups
        Columns and intersections (`["sex", "age", "sex*age"]`); by default every column that looks
        like a group.
    count
        The column that says how many examples a row stands for (`GROUP BY ..., count(*)`); without
        it each row is one example.
    outcome, better, denominator, range
        A number per example and model in place of label and prediction: its column (of wide
        tables: variant to column), which side is better, the column of its denominator (words of
        word errors), and the least and largest value that it can have.
    labels_are
        "positions": labels and predictions name answers of multiple choice, no classes; whether
        they agree is the outcome, and the position of the right answer a group column.
    repeat
        The column that tells repeated runs of one model apart; they are averaged.
    unlabelled
        There are no labels: the audit says how often predictions changed and, with class
        probabilities, how far these lie apart.
    variant, seed, prediction, score
        Names of the columns of long tables, and of files per model.
    positive
        The positive class of binary labels; 1, True, "1", "yes" and "true" need not be named.
    score_classes
        The classes that lists of `scores` refer to, in their order.
    class_scores
        A pattern of columns that hold the probability of each class: `"p_*"`, where the star is
        the class; in a wide table a dict from variant to pattern.
    force
        Take labels and predictions that do not look like classes (measurements, scores, right or
        wrong) as they are.

    Examples
    --------
    >>> tables = TableSpec(["dense.csv", "int8.csv"], groups="sex", weight="w")
    >>> " ".join(tables.arguments())
    'dense.csv int8.csv --groups sex --weight w'
    >>> TableSpec.from_json(tables.to_json()) == tables
    True
    """

    sources: AnyTables
    baseline: str | None = option(None, "The dense model's variant.", TABLES, "--baseline", "NAME")
    examples: AnyTable = option(
        None,
        "Groups and labels, a row per example.",
        TABLES, "--examples", "FILE", _read_table, _write_table,
    )  # fmt: skip
    train: AnyTable = option(
        None,
        "Training labels and groups (or their counts): the sign of bias amplification.",
        TABLES, "--train", "FILE", _read_table, _write_table,
    )  # fmt: skip
    variants: AnyTable = option(
        None,
        "One row per variant and seed; `parent` (dense:3) says what it was derived from.",
        TABLES, "--variants", "FILE", _read_table, _write_table,
    )  # fmt: skip
    query: str | None = option(
        None,
        "One SELECT on the table `data`, the rows of each FILE: its result is audited. It can read "
        "nothing else.",
        TABLES, "--query", "SQL",
    )  # fmt: skip
    log_tasks: Sequence[str] | None = option(
        None, "Only these tasks of evaluation logs; by default all.",
        LOGS, "--log-tasks", "a,b", read_names, _write_names,
    )  # fmt: skip
    log_filter: str | None = option(
        None,
        "Where lm-eval scores answers by several filters: the one to take; by default a task's "
        "first.",
        LOGS, "--log-filter", "NAME",
    )  # fmt: skip
    allow_different: Sequence[str] | None = option(
        None,
        "Settings that may differ between the logs (`prompts` too); they become a note.",
        LOGS, "--allow-different", "a,b", read_names, _write_names,
    )  # fmt: skip
    score_threshold: float | None = option(
        None,
        "Detections with a lower score are left out; by default 0.5.",
        LOGS, "--score-threshold", "X", _read_number,
    )  # fmt: skip
    missing: Missing | str = option(
        Missing.ERROR, "What to do about examples that some variant lacks.", TABLES, "--missing",
        "error|drop",
    )  # fmt: skip
    id: str = option("example_id", "Identity of the example.", COLUMNS, "--id", "COL")
    label: str = option("label", "True class.", COLUMNS, "--label", "COL")
    predictions: Columns | None = option(
        None,
        "In a wide table, the column with a variant's predictions; repeat it for every variant, "
        "and for every seed of a variant. COL alone: the column in every model's own file.",
        COLUMNS, "--prediction", "[NAME=]COL", read_columns, _write_pairs, repeated=True,
    )  # fmt: skip
    scores: Columns | None = option(
        None,
        "The same for scores: probability of the positive class (two classes) or of the predicted "
        "one (more classes).",
        COLUMNS, "--score", "[NAME=]COL", read_columns, _write_pairs, repeated=True,
    )  # fmt: skip
    groups: str | Sequence[str] | None = option(
        None,
        "Group columns and intersections; by default every column that looks like one. A name "
        "with a comma or a star is quoted: '\"age, years\",sex'.",
        COLUMNS, "--groups", "a,b,a*b", read_items, written_list,
    )  # fmt: skip
    task: str | None = option(
        None, "Which of several labels a row is about.", COLUMNS, "--task", "COL"
    )
    cluster: str | Sequence[str] | None = option(
        None,
        "Examples that belong together (one person, one writer): resampled whole. Twice for the "
        "two people of a pair: nothing is resampled then.",
        COLUMNS, "--cluster", "COL", _read_several, _write_several, repeated=True,
    )  # fmt: skip
    weight: str | None = option(None, "Sampling weight.", COLUMNS, "--weight", "COL")
    count: str | None = option(
        None,
        "How many examples a row stands for (`GROUP BY ..., count(*)`); by default one.",
        COLUMNS, "--count", "COL",
    )  # fmt: skip
    variant: str = option(
        "variant", "Long tables: the variant.", COLUMNS, "--variant-column", "COL"
    )
    seed: str = option("seed", "Long tables: the member.", COLUMNS, "--seed-column", "COL")
    prediction: str = option(
        "prediction",
        "Long tables, files per model: the prediction; beside --outcome, how often it changed.",
        COLUMNS,
        "--prediction-column", "COL",
    )  # fmt: skip
    score: str = option(
        "score", "Long tables, files per model: the score.", COLUMNS, "--score-column", "COL"
    )
    positive: Any = option(None, "Positive class of binary labels.", COLUMNS, "--positive", "X")
    score_classes: Sequence[Any] | None = option(
        None,
        "Class of each entry of the score vectors, if the file does not say.",
        COLUMNS, "--score-classes", "a,b,c", read_names, _write_names,
    )  # fmt: skip
    class_scores: str | Mapping[str, str] | None = option(
        None,
        "Columns with the probability of each class, such as p_cat and p_dog: the star is the "
        "class. Log-probabilities are recognised by their values. Without a column of predictions "
        "the most probable class is predicted. In a wide table: dense=p_dense_*.",
        COLUMNS, "--scores", "[NAME=]p_*", read_patterns, _write_patterns, repeated=True,
    )  # fmt: skip
    outcome: str | Columns | None = option(
        None,
        "A number per example and model (correct 0/1, loss, word errors) in place of label and "
        "prediction; in a wide table NAME=COL for every variant.",
        COLUMNS, "--outcome", "COL", read_columns, _write_columns, repeated=True,
    )  # fmt: skip
    better: Better | str | None = option(
        None, "Which side of the outcome is better.", COLUMNS, "--better", "higher|lower"
    )
    denominator: str | Columns | None = option(
        None,
        "What the outcome is divided by, summed over examples (words, tokens, union); by default "
        "1.",
        COLUMNS, "--denominator", "COL", read_columns, _write_columns, repeated=True,
    )  # fmt: skip
    range: tuple[float, float] | None = option(
        None, "The least and the largest value that the outcome can have.",
        COLUMNS, "--range", "LOW,HIGH", read_range, _write_range,
    )  # fmt: skip
    labels_are: LabelsAre | str = option(
        LabelsAre.CLASSES,
        "What labels name: classes, or positions of answers (multiple choice).",
        COLUMNS, "--labels-are", "classes|positions",
    )  # fmt: skip
    repeat: str | None = option(
        None,
        "Repeated runs of one model (epochs of decoding), averaged within the example.",
        COLUMNS, "--repeat-column", "COL",
    )  # fmt: skip
    unlabelled: bool = option(
        False,
        "There are no labels: report how often predictions changed and, with class probabilities, "
        "how far these lie apart.",
        COLUMNS, "--unlabelled",
    )  # fmt: skip
    force: bool = option(
        False,
        "Take labels and predictions that do not look like classes as they are.",
        COLUMNS, "--force",
    )  # fmt: skip

    def __post_init__(self) -> None:
        becomes = functools.partial(object.__setattr__, self)
        given = self.sources
        if not isinstance(given, tuple) or not all(isinstance(one, SourceRef) for one in given):
            becomes("sources", sources_of(given))
        choice(self, "missing", Missing)
        choice(self, "labels_are", LabelsAre)
        if self.cluster is not None and not isinstance(self.cluster, str):
            names = tuple(self.cluster)
            becomes("cluster", names[0] if len(names) == 1 else names)
            if not 1 <= len(set(names)) == len(names) <= 2:
                raise refuse(self, "cluster", names, "give one column, or two different ones")
        for name, alone in (("predictions", "prediction"), ("scores", "score")):
            given = getattr(self, name)
            if isinstance(given, str):  # a column's name alone: that of every model's own table
                other = getattr(self, alone)
                if other not in (alone, given):
                    flag = options_of(self)[alone][1].flag
                    raise refuse(self, name, given, f"{flag} ({alone}=) says {other!r}; give one")
                becomes(alone, given)
                becomes(name, None)
        self._check_outcome(becomes)
        if self.repeat is not None and self.seed != options_of(self)["seed"][0].default:
            raise refuse(self, "repeat", self.repeat, "give it or --seed-column, not both")
        for name in TEXTS:
            given, usual = getattr(self, name), options_of(self)[name][0].default
            if not isinstance(given, str) and given is not usual:
                raise refuse(self, name, given, "give the name of a column, as text")
        for name in ("examples", "train", "variants"):
            if getattr(self, name) is not None:
                becomes(name, SourceRef.of(getattr(self, name)))
        for name in ("predictions", "scores", "outcome", "denominator"):
            held: Any = getattr(self, name)
            if held is not None and not isinstance(held, str):
                several = {k: [v] if isinstance(v, str) else v for k, v in held.items()}
                becomes(name, {str(k): tuple(map(str, v)) for k, v in several.items()})
        if self.groups is not None:
            groups = [self.groups] if isinstance(self.groups, str) else self.groups
            becomes("groups", tuple(str(group) for group in groups))
        patterns: Any = self.class_scores
        if isinstance(patterns, Mapping):
            texts = all(isinstance(one, str) for one in patterns.values())
            becomes("class_scores", {str(name): one for name, one in patterns.items()})
        else:
            texts = patterns is None or isinstance(patterns, str)
        if not texts:
            raise refuse(self, "class_scores", patterns, "give a pattern as text, such as p_*")
        for name in ("log_tasks", "allow_different"):
            held = getattr(self, name)
            if held is not None:
                becomes(name, (held,) if isinstance(held, str) else tuple(map(str, held)))
        if self.score_threshold is not None and not 0 <= float(self.score_threshold) <= 1:
            raise refuse(self, "score_threshold", self.score_threshold, "give 0 to 1")
        if self.score_classes is not None:
            becomes("score_classes", tuple(map(_scalar, self.score_classes)))
        becomes("positive", _scalar(self.positive))
        becomes("baseline", _scalar(self.baseline))

    def _check_outcome(self, becomes: Callable[[str, Any], None]) -> None:
        """What goes with an outcome, and what cannot stand beside it."""
        for name in ("better", "denominator", "range"):
            if self.outcome is None and getattr(self, name) is not None:
                raise refuse(self, name, getattr(self, name), "it needs --outcome COL (outcome=)")
        if self.unlabelled and (self.outcome is not None or self.labels_are != LabelsAre.CLASSES):
            raise refuse(self, "unlabelled", True, "an outcome, or positions, need no labels")
        if self.outcome is None:
            return
        if self.better is None:
            raise InputError(
                "--outcome (outcome=) does not say which side is better; add --better higher "
                "(correct, F1, a judge's score) or --better lower (loss, word errors)."
            )
        choice(self, "better", Better)
        if self.labels_are != LabelsAre.CLASSES:
            raise refuse(self, "labels_are", str(self.labels_are), "leave it out beside --outcome")
        if self.predictions is not None:
            raise refuse(
                self, "predictions", dict(self.predictions),
                "beside --outcome name the models by --outcome NAME=COL",
            )  # fmt: skip
        if self.class_scores is not None:
            raise refuse(self, "class_scores", self.class_scores, "leave it out beside --outcome")
        if self.range is None:
            return
        low, high = (float(end) for end in self.range)
        if not -math.inf < low < high < math.inf:
            raise refuse(self, "range", self.range, "give LOW,HIGH with LOW below HIGH")
        if self.denominator is not None:
            raise refuse(self, "range", self.range, "leave it out beside --denominator")
        becomes("range", (low, high))

    @property
    def clusters(self) -> tuple[str, ...]:
        """The cluster columns: none, one or two."""
        if self.cluster is None:
            return ()
        return (self.cluster,) if isinstance(self.cluster, str) else tuple(self.cluster)

    @property
    def paths(self) -> list[str]:
        """The files that are read, as they were given."""
        tables = (*self.sources, self.examples, self.train, self.variants)
        return [table.path for table in tables if table is not None and table.path is not None]

    @property
    def column_names(self) -> list[str]:
        """Names of columns that were given, each once: of roles, of groups, of members."""
        found = [*(getattr(self, name) for name in TEXTS), *self.clusters]
        for named in (self.predictions, self.scores, self.outcome, self.denominator):
            several = (
                {} if named is None else named if isinstance(named, Mapping) else {"": (named,)}
            )
            found += [column for held in several.values() for column in held]
        for group in self.groups or ():
            found += split_grouping(group)
        return list(dict.fromkeys(name for name in found if name is not None))

    def arguments(self, without: Sequence[str] = ()) -> list[str]:
        """The words behind `fairweight COMMAND` that read the same tables in the same way.

        Parameters
        ----------
        without
            Fields that the command does not have.
        """
        if any(source.frame == ARRAYS for source in self.sources):
            # The columns are those of a table that we made; what a file has is for the user to say.
            kept = TableSpec((SourceRef(frame=ARRAYS),), baseline=self.baseline, groups=self.groups)
            return ["PREDICTIONS", *words(kept)]
        left_out = {options_of(self)[name][0].name: options_of(self)[name][0].default
                    for name in without}  # fmt: skip
        shown = TableSpec(**{**_values(self), **left_out})
        given = [source.word() for source in self.sources]
        return [*given, *words(shown)]

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        return {name: plain(value) for name, value in _values(self).items()}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> TableSpec:
        """What `to_json` wrote; fields that this version does not know are left out."""
        known = {f.name for f in fields(cls)}
        values = {name: value for name, value in held.items() if name in known}
        values["sources"] = tuple(map(SourceRef.from_json, held["sources"]))
        for name in ("examples", "train", "variants"):
            if values.get(name) is not None:
                values[name] = SourceRef.from_json(values[name])
        return cls(**values)

    @classmethod
    def from_words(cls, given: Sequence[str], switches: Sequence[str] = ()) -> TableSpec:
        """The request in the words behind `fairweight audit`, as `arguments` writes them.

        Parameters
        ----------
        switches
            Options of other requests that take no value; of all others a value is skipped.

        Examples
        --------
        >>> TableSpec.from_words(["p.csv", "--alpha", "0.1", "--quiet", "--id=k"], ["--quiet"]).id
        'k'
        """
        flags = {about.flag: (name, held, about)
                 for name, (held, about) in options_of(cls).items()}  # fmt: skip
        files: list[str] = []
        values: dict[str, Any] = {}
        left = iter(given)
        for word in left:
            flag, equals, text = word.partition("=")
            if not word.startswith("-"):
                files.append(word)
            elif word in flags and isinstance(flags[word][1].default, bool):
                values[flags[word][0]] = True
            elif word not in switches:
                text = text if equals else next(left, "")
                if flag in flags:
                    name, _, about = flags[flag]
                    values.setdefault(name, []).append(text)
        for name, texts in values.items():
            about = options_of(cls)[name][1]
            if isinstance(texts, list):
                whole = texts if about.repeated else texts[-1]
                values[name] = whole if about.read is None else about.read(whole, about.flag)
        return cls(sources_of(files), **values)


def _values(tables: TableSpec) -> dict[str, Any]:
    return {f.name: getattr(tables, f.name) for f in fields(tables)}


def _scalar(value: Any) -> Any:
    """A value that JSON can hold: numbers of numpy as numbers, anything else as text."""
    value = value.item() if hasattr(value, "item") and not isinstance(value, str) else value
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
