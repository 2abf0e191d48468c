"""Cases without classes: a number per example and model, positions of answers, no labels at all.

They are drawn from a generator of their own and have numbers of their own (every eighth), so that
all other cases stay what they are. `sums` is the second reading: it reads the files that were
written, knows nothing of the package, and adds up with `math.fsum`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.cases import (
    ACCEPT,
    COMMANDS,
    EITHER,
    REFUSE,
    Case,
    Command,
    Step,
    draw_style,
    options_of,
)
from tests.fuzz.files import SUFFIXES, Column, Style, Table, read
from tests.fuzz.oracle import level_name

Place = tuple[str | None, str, str | None]  # task, kind of row, group
NUMBERS = (("audit",), ("gate",), ("count",), ("choose",), ("explain",), ("exemplars",))


@dataclass
class Truth:
    """What a case means, for the reading of its files."""

    kind: str  # number, positions, unlabelled
    layout: str
    baseline: str
    variants: list[str]
    groups: list[tuple[str, ...]]
    better: str = "higher"
    outcome: str = "score"
    denominator: str | None = None
    weight: bool = False
    cluster: bool = False
    task: bool = False
    repeats: int = 1
    binary: bool = False
    doubt: str | None = None
    tables: list[Table] = field(default_factory=list)

    @property
    def metric(self) -> str:
        if self.kind == "positions":
            return "correct"
        if self.kind == "unlabelled":
            return "flips"
        if self.binary and self.denominator is None:
            return "correct" if self.better == "higher" else "failed"
        return "outcome" if self.better == "higher" else "cost"


def outcome_case(number: int) -> Case:
    """Case k of those that have no classes."""
    rng = Random(f"fairweight outcomes {number}")
    commands = list(COMMANDS)
    asked = rng.choices(commands, [COMMANDS[c] for c in commands])[0]
    command = ("audit",) if asked[0] == "report" else asked
    few = command in (("preflight",), ("explain",), ("exemplars",)) or command[0] == "mitigate"
    shares = (0.4, 0.3, 0.3) if few else (0.7, 0.15, 0.15)
    shares = (0.35, 0.25, 0.4) if command[0] == "mitigate" else shares
    truth = Truth(
        rng.choices(("number", "positions", "unlabelled"), shares)[0],
        rng.choice(("files", "files", "long", "wide")),
        "dense",
        rng.sample(("int8", "gmp-95", "tiny"), rng.choice((1, 1, 2))),
        rng.choice(([], [("sex",)], [("sex",), ("site",)], [("sex",), ("site",), ("sex", "site")])),
    )
    if truth.kind != "number" and truth.layout == "wide":
        truth.layout = "long"
    words = _draw(rng, truth, few)
    texts: dict[str, str] = {}
    expect, why = _flaw(rng, truth, words)
    if command not in NUMBERS and truth.metric in ("outcome", "cost"):
        expect, why = REFUSE, "numbers for a command that asks what is right"
    elif command[0] == "mitigate" or (truth.kind == "unlabelled" and command not in _CHURN):
        expect, why = REFUSE, "no validation rows, or no labels"
    elif command not in (("audit",), ("count",)) and expect == ACCEPT:
        if truth.kind != "number" or command in (("preflight",), ("exemplars",), ("explain",)):
            expect, why = EITHER, "a command on few examples, or without classes"
        elif command == ("gate",):
            expect, why = EITHER, "a margin, which these outcomes may not allow"
    words += _more(rng, command, truth, texts)
    if "--class-names" in words:
        expect, why = REFUSE, "names of classes, where there are none"
    elif "--weight-column" in words:
        expect, why = REFUSE, "--weight-column, which is --weight now"
    out = {("count",): "cube.parquet"}.get(command, "out")
    if "--out" in options_of(command):
        words += ["--out", out]
    checks = {("choose",): "chosen_outcome", ("exemplars",): "largest_losses", ("gate",): "nothing",
              ("count",): "nothing", ("preflight",): "nothing"}  # fmt: skip
    steps = [Step(command, words, checks.get(command, "outcomes"), out)]
    if command == ("count",) and expect != REFUSE:
        again = ["cube.parquet", "--n-boot", "20", "--out", "of-cube"]
        steps.append(Step(("audit",), again, "outcomes", "of-cube"))
    if asked[0] == "report" and expect != REFUSE:
        steps.append(_reported(rng, asked))
        expect, why = EITHER, "a form, or a figure, that this audit may not fill"
    return Case(number, truth.tables, texts, steps, None, expect, why, False, truth)


_CHURN = (("audit",), ("count",))


def _draw(rng: Random, truth: Truth, few: bool) -> list[str]:
    """Tables and the words that say what their columns are."""
    n = rng.choice((3, 12, 25, 60, 150))
    ids = [f"x{i}" for i in range(n)]
    held: dict[str, list[Any]] = {
        "sex": [rng.choice(("f", "m", None)) for _ in ids],
        "site": [rng.choice(("north", "a, b", "7")) for _ in ids],
    }
    words: list[str] = []
    if truth.kind == "number":
        truth.binary = rng.random() < 0.3
        truth.better = rng.choice(("higher", "lower"))
        truth.outcome = rng.choice(("score", "wer", "word errors"))
        truth.denominator = rng.choice((None, None, "words", "own words"))
        truth.repeats = rng.choice((1, 1, 1, 2, 3)) if truth.layout != "wide" else 1
    elif few and truth.layout != "wide":
        truth.repeats = rng.choice((1, 1, 2))
    truth.task = rng.random() < 0.12 and truth.layout != "wide"
    truth.weight = rng.random() < 0.15
    truth.cluster = rng.random() < 0.15
    if truth.weight:
        held["weight"] = [round(rng.uniform(0.2, 3), 2) for _ in ids]
        words += ["--weight", "weight"]
    if truth.cluster:
        held["person"] = [f"p{i % max(1, n // 3)}" for i in range(n)]
        words += ["--cluster", "person"]
    names = [truth.baseline, *truth.variants]
    models = {
        (name, run, task): _values(rng, truth, n)
        for name in names
        for run in range(truth.repeats)
        for task in (("a", "b") if truth.task else (None,))
    }
    # Of few examples all may be 0 or 1 by chance.
    truth.binary = truth.kind == "number" and {v for m in models.values() for v in m} <= {0, 1}
    sizes = [rng.choice((1, 2, 5, 11)) for _ in ids]
    labels = [rng.choice("ABCD") for _ in ids]

    def rows(keys: Sequence[tuple[str, int, str | None]], style: Style) -> list[Column]:
        """The rows of some models, one after the other, in an order of their own."""
        order = [(key, i) for key in keys for i in range(n)]
        if rng.random() < 0.5:
            rng.shuffle(order)
        columns = [Column("example_id", [ids[i] for _, i in order])]
        columns += [Column(name, [held[name][i] for _, i in order],
                           "float" if name == "weight" else "text") for name in held]  # fmt: skip
        if truth.task:
            columns.append(Column("task", [key[2] for key, _ in order]))
        if truth.kind == "positions":
            columns.append(Column("gold", [labels[i] for _, i in order]))
        if truth.kind == "number":
            whole = truth.binary and style.format not in ("csv", "tsv") and rng.random() < 0.5
            values = [models[key][i] for key, i in order]
            columns.append(
                Column(truth.outcome, [int(v) for v in values], "int") if whole
                else Column(truth.outcome, values, "float")
            )  # fmt: skip
            if truth.denominator is not None:
                more = [sizes[i] + (names.index(key[0]) if truth.denominator != "words" else 0)
                        for key, i in order]  # fmt: skip
                columns.append(Column(truth.denominator, more, "int"))
        else:
            columns.append(Column("prediction", [models[key][i] for key, i in order]))
        if truth.repeats > 1:
            columns.append(Column("epoch", [key[1] for key, _ in order], "int"))
        return columns

    style = draw_style(rng)
    suffix = SUFFIXES[style.format]
    if truth.layout == "files":
        for name in names:
            keys = [key for key in models if key[0] == name]
            truth.tables.append(Table(f"{name}{suffix}", rows(keys, style), style))
            words.insert(len(truth.tables) - 1, f"{name}={name}{suffix}")
    elif truth.layout == "long":
        columns = []
        for name in names:  # rows of every model stand together
            part = rows([key for key in models if key[0] == name], style)
            part.append(Column("variant", [name] * len(part[0].values)))
            columns.append(part)
        whole = [Column(first.name, [v for part in columns for v in part[at].values], first.kind)
                 for at, first in enumerate(columns[0])]  # fmt: skip
        truth.tables.append(Table(f"long{suffix}", whole, style))
        words.insert(0, f"long{suffix}")
    else:
        columns = [Column("example_id", ids), *(Column(k, v, "float" if k == "weight" else "text")
                                               for k, v in held.items())]  # fmt: skip
        for name in names:
            columns.append(Column(f"{name}: it", models[name, 0, None], "float"))
            words += ["--outcome", f"{name}={name}: it"]
            if truth.denominator is not None:
                more = names.index(name) if truth.denominator != "words" else 0
                columns.append(Column(f"{name} per", [s + more for s in sizes], "int"))
                words += ["--denominator", f"{name}={name} per"]
        truth.tables.append(Table(f"wide{suffix}", columns, style))
        words.insert(0, f"wide{suffix}")
    if truth.kind == "number":
        if truth.layout != "wide":
            words += ["--outcome", truth.outcome]
            words += [] if truth.denominator is None else ["--denominator", truth.denominator]
        words += ["--better", truth.better]
        if truth.denominator is None and rng.random() < 0.7:
            words += ["--range", rng.choice(("0,30", "-1,31.5"))]
    elif truth.kind == "positions":
        words += ["--labels-are", "positions", "--label", "gold"]
    else:
        words.append("--unlabelled")
    if truth.repeats > 1:
        words += ["--repeat-column", "epoch"]
    if truth.groups:
        words += ["--groups", ",".join("*".join(names) for names in truth.groups)]
    else:
        words += ["--groups", "sex"]
        truth.groups = [("sex",)]
    return words


def _values(rng: Random, truth: Truth, n: int) -> list[Any]:
    if truth.kind != "number":
        return [rng.choice("ABCD") for _ in range(n)]
    if truth.binary:
        return [float(rng.random() < 0.7) for _ in range(n)]
    pool: tuple[Any, ...] = (0.0, 0.5, 1.0, 2.25, 3.0, 17.0)
    return [rng.choice(pool) for _ in range(n)]


def _flaw(rng: Random, truth: Truth, words: list[str]) -> tuple[str, str]:
    """Now and then something is wrong, and must be refused."""
    if rng.random() > 0.2:
        return ACCEPT, ""
    first = truth.tables[0]
    if truth.kind == "number":
        flaws = ["no side", "text", "missing", "range", "absent", "negative"]
        which = rng.choice(flaws)
        if which == "no side":
            at = words.index("--better")
            del words[at : at + 2]
            return REFUSE, "an outcome of which nobody says which side is better"
        if which in ("text", "missing"):
            name = truth.outcome if truth.layout != "wide" else "dense: it"
            column = first.column(name)
            if which == "text":
                column.values = [*(str(v) for v in column.values[:-1]), "much"]
                column.kind = "text"
            else:
                column.values = [*column.values[:-1], None]
            return REFUSE, f"an outcome that is {which}"
        if which == "range" and truth.denominator is None and "--range" not in words:
            words += ["--range", "100,200"]
            return REFUSE, "a range beyond which every value lies"
        if which == "absent" and truth.layout != "wide":
            words[words.index("--outcome") + 1] = "nowhere"
            return REFUSE, "an outcome that is not there"
        if which == "negative" and truth.denominator is not None:
            name = truth.denominator if truth.layout != "wide" else "dense per"
            first.column(name).values[0] = -3
            return REFUSE, "a negative denominator"
        return ACCEPT, ""
    if rng.random() < 0.5:
        for column in first.columns:  # the first row stands there twice
            column.values = [*column.values, column.values[0]]
        return REFUSE, "a row that is there twice"
    if truth.kind == "positions":
        words.append("--unlabelled")
        return REFUSE, "positions without labels"
    words += ["--outcome", "prediction", "--better", "higher"]
    return REFUSE, "an outcome without labels"


def _more(rng: Random, command: Command, truth: Truth, texts: dict[str, str]) -> list[str]:
    """Options of the command itself."""
    words = []
    if "--n-boot" in options_of(command):
        words += ["--n-boot", "20"]
    if command == ("audit",):
        if rng.random() < 0.25:
            words.append("--verbose")
        if rng.random() < 0.1:
            texts["names.csv"] = "class,name\nA,first\nB,second\nC,third\nD,fourth\n"
            words += ["--class-names", "names.csv"]
    if command[0] == "mitigate" and rng.random() < 0.4:
        words.append("--force")
    if command == ("gate",):
        margin = rng.choice((0.05, 0.3)) if truth.metric in ("correct", "failed") else 2.5
        rule = ["[[rule]]", 'metric = "outcome"', 'by = "overall"', f"margin = {margin}"]
        texts["policy.toml"] = "\n".join(rule) + "\n"
        words += ["--policy", "policy.toml"]
    if command == ("choose",):
        words += ["--objective", "outcome" if truth.kind == "number" else "accuracy"]
        words += ["--weight-column", "weight"] if rng.random() < 0.25 else []
    return words


def _reported(rng: Random, asked: Command) -> Step:
    if asked == ("report", "write"):
        if rng.random() < 0.5:
            words = ["out", "--format", "eval-results", "--dataset-id", "owner/set"]
            words += ["--task-id", "one"] if rng.random() < 0.7 else []
            return Step(asked, words, "nothing")
        return Step(asked, ["out", "--format", rng.choice(("md", "card", "json"))], "nothing")
    if asked == ("report", "figure"):
        return Step(asked, [rng.choice(("FW-1", "FW-2")), "out", "--out", "f.json"], "nothing")
    return Step(asked, ["out", "--out", "figures"], "nothing")


# --- the second reading --------------------------------------------------------------------------


@dataclass
class Sums:
    """Of one row of the results: sums of both sides, and how many examples."""

    parts: dict[str, tuple[float, float]]  # variant → numerator, denominator
    changed: dict[str, float]  # variant → weight of predictions that changed
    weight: float
    n: int

    def ratio(self, variant: str) -> float:
        above, below = self.parts[variant]
        return above / below if below > 0 else math.nan


def sums(truth: Truth, folder: Path) -> dict[Place, Sums]:
    """Every row that an audit should have, from the files as they are on disk."""
    examples: dict[tuple[str | None, str], dict[str, Any]] = {}
    for table in truth.tables:
        _, records = read(table, folder)
        for record in records:
            of_task = record["task"] if truth.task else None
            held = examples.setdefault((of_task, str(record["example_id"])), {"of": {}, **record})
            if truth.layout == "wide":
                for name in (truth.baseline, *truth.variants):
                    size = float(record[f"{name} per"]) if truth.denominator else 1.0
                    held["of"].setdefault(name, []).append((float(record[f"{name}: it"]), size))
                continue
            stem = table.path.rpartition(".")[0]
            name = record["variant"] if truth.layout == "long" else stem
            if truth.kind == "number":
                size = float(record[truth.denominator]) if truth.denominator else 1.0
                held["of"].setdefault(name, []).append((float(record[truth.outcome]), size))
            elif truth.kind == "positions":
                right = float(record["prediction"] == record["gold"])
                held["of"].setdefault(name, []).append((right, 1.0))
            else:
                runs = held["of"].setdefault(name, {})
                runs[record.get("epoch", 0)] = record["prediction"]
    columns = [*truth.groups, *([("gold",)] if truth.kind == "positions" else [])]
    parts: dict[Place, list[dict[str, Any]]] = {}
    for (of_task, _), held in examples.items():
        parts.setdefault((of_task, "overall", None), []).append(held)
        for names in columns:
            level = " & ".join(level_name(n, _text(held[n])) for n in names)
            parts.setdefault((of_task, "group", level), []).append(held)
    return {place: _summed(truth, held) for place, held in parts.items()}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _summed(truth: Truth, rows: Iterable[dict[str, Any]]) -> Sums:
    rows = list(rows)
    weights = [float(row["weight"]) if truth.weight else 1.0 for row in rows]
    names = (truth.baseline, *truth.variants)
    if truth.kind == "unlabelled":
        changed = {}
        for name in truth.variants:
            shares = []
            for row in rows:
                one, other = row["of"][truth.baseline], row["of"][name]
                shares.append(sum(one[r] != other[r] for r in one) / len(one))
            changed[name] = math.fsum(w * s for w, s in zip(weights, shares, strict=True))
        return Sums({}, changed, math.fsum(weights), len(rows))
    parts = {}
    for name in names:
        sides = [
            math.fsum(
                w * math.fsum(run[side] for run in row["of"][name]) / len(row["of"][name])
                for w, row in zip(weights, rows, strict=True)
            )
            for side in (0, 1)
        ]
        parts[name] = (sides[0], sides[1])
    return Sums(parts, {}, math.fsum(weights), len(rows))
