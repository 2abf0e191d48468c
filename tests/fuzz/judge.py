"""Whether what a command wrote is what the oracle computed: one function per kind of output.

Each takes the folder in which the command ran, what it wrote there, and the expectation, and
returns sentences; none is good.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.fuzz.cases import COMMANDS, Case, Step, options_of
from tests.fuzz.files import Style, Table
from tests.fuzz.oracle import Expected, Key, Meaning, canonical, expected, level_name
from tests.fuzz.outcomes import Place, sums

from fairweight.base.fields import options_of as described
from fairweight.tables.names import written_list
from fairweight.tables.spec import TableSpec

TOLERANCE = 1e-12
Found = dict[Key, list[tuple[float | None, float | None, int | None]]]


def same(one: float | None, other: float | None) -> bool:
    """Equal to 1e-12; undefined is written as null and computed as NaN."""
    nothing = [value is None or math.isnan(value) for value in (one, other)]
    if any(nothing):
        return all(nothing)
    return abs(float(one or 0) - float(other or 0)) <= TOLERANCE


def compared(
    found: Found, truth: Expected, *, n: bool = True, some: bool = False, small: bool = False
) -> list[str]:
    """Rows that the results hold, against those computed; `some`: they need not hold all.

    With `small`, numbers of fewer than ten examples may be left out, and must be.
    """
    problems = []
    for key, values in found.items():
        held = list(truth.rows.get(key, ()))
        for value in values:
            if small and (value[2] is None or value[2] < 10 or value[0] is None):
                continue
            match = next((h for h in held if _agrees(value, h, n and truth.exact_n)), None)
            if match is None:
                problems.append(f"{_shown(key)}: {value} where {held or 'nothing'} is right")
            else:
                held.remove(match)
    if not some:
        absent = [key for key in truth.required if key not in found]
        if absent and not small:
            problems.append(f"{len(absent)} rows are not there, such as {_shown(absent[0])}")
    return problems


def _agrees(value: tuple[Any, Any, Any], held: tuple[float, float, int], n: bool) -> bool:
    return (
        (value[0] is _NOT_TOLD or same(value[0], held[0]))
        and (value[1] is _NOT_TOLD or same(value[1], held[1]))
        and (not n or value[2] is None or value[2] == held[2])
    )


_NOT_TOLD: Any = object()


def _shown(key: Key) -> str:
    return " ".join(repr(part) for part in key if part is not None)


def _accuracies(results: Iterable[dict[str, Any]]) -> Found:
    found: Found = {}
    for row in results:
        if row["metric"] == "accuracy" and row["scope"] == "model":
            name = row["class"] if row["by"] == "class" else row["group"]
            key = (row["variant"], row["task"], row["by"], name)
            found.setdefault(key, []).append((row["baseline"], row["compressed"], row["n"]))
    return found


# --- outputs -------------------------------------------------------------------------------------


def audit(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """audit.json: accuracy overall, by class and by group; the command as it was typed."""
    place, truth = folder / step.out, _only_task(truth)
    made = json.loads((place / "audit.json").read_text(encoding="utf-8"))
    small = any("--suppress-small" in step.words for step in case.steps)
    found = _accuracies(_rows(place, "results"))
    if small and step.command != case.steps[0].command:  # of a cube without its small cells
        held = pq.ParquetFile(folder / case.steps[0].out).read()
        left = _added_up(held, truth)
        problems = compared(
            {k: v for k, v in found.items() if k in left}, replace(truth, rows=left), some=True
        )
        return problems
    problems = compared(found, truth, small=small)
    if made["n_examples"] != truth.n_examples and not small:
        problems.append(f"{made['n_examples']} examples where there are {truth.n_examples}")
    if made["baseline"] != truth.baseline:
        problems.append(f"the baseline is {made['baseline']!r}, not {truth.baseline!r}")
    told = made["provenance"].get("command")
    if told is not None and shlex.split(told) != ["fairweight", *step.argv]:
        problems.append(f"the command is told as {told!r}")
    if not small:
        problems += _members(_rows(place, "per_seed"), truth)
    names = {n for t in case.tables for n in t.names} | {v for v, _ in truth.members}
    names |= set(made["classes"]) | {n for g in made["groupings"] for n in (g, *g.split("*"))}
    for note in made["notes"]:
        problems += suggestion(note, names)
    if case.page and step is case.steps[0]:
        problems += _page(folder / step.out / "report.html", step)
    return problems


def _only_task(truth: Expected) -> Expected:
    """What an audit should hold: the only task has no name there."""
    tasks = {key[1] for key in truth.rows} - {None}
    if len(tasks) != 1:
        return truth
    unnamed = {
        (v, None, by, name): held for (v, task, by, name), held in truth.rows.items() if task
    }
    required = {(v, None, by, name) for v, _, by, name in truth.required}
    return replace(truth, rows={**truth.rows, **unnamed}, required=required)


def _rows(audit: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table of an audit."""
    rows: list[dict[str, Any]] = pq.read_table(audit / "tables" / f"{table}.parquet").to_pylist()
    return rows


def _members(rows: Iterable[dict[str, Any]], truth: Expected) -> list[str]:
    """Accuracy of every single member, over all examples."""
    frame = truth.frame
    weight = frame["weight"] * frame["count"]
    problems = []
    for row in rows:
        if row.get("metric") != "accuracy" or row.get("by") != "overall" or row.get("task"):
            continue
        member = (str(row["variant"]), str(row["seed"]))
        if member not in truth.members or frame["task"].notna().any():
            continue
        right = frame[f"p{truth.members.index(member)}"] == frame["label"]
        value = float((right * weight).sum() / weight.sum())
        if not same(row["value"], value):
            problems.append(f"member {member}: {row['value']} where {value} is right")
    return problems


def suggestion(text: str, names: set[str]) -> list[str]:
    """A note that says `--cluster X` must name X so that a shell and the option take it."""
    problems = []
    for option, rest in re.findall(
        r"(--(?:cluster|baseline|positive|id|label)) (\S.*)", text, re.S
    ):
        try:
            words = shlex.split(rest)
        except ValueError:
            words = []
        first = words[0] if words else ""
        cut = {first, first.rstrip("."), first.rstrip(";"), first.rstrip(",")}
        if not (cut & names or first.rstrip(".;,") in ("NAME", "COL", "COLUMN", "X")):
            problems.append(f"a suggestion cannot be typed: {option} {rest[:60]!r}")
    return problems


def _page(path: Path, step: Step) -> list[str]:
    """Commands that the page suggests can be typed, and read the tables as this one did."""
    problems = []
    page = path.read_text(encoding="utf-8")
    said = _asked(step.command, step.words)
    for shown in re.findall(r"<code[^>]*>(fairweight .*?)</code>", page, re.S):
        text = unescape(re.sub(r"<[^>]+>", "", shown))
        try:
            words = shlex.split(text.partition(" > ")[0])
        except ValueError:
            problems.append(f"the page suggests what no shell takes: {text[:200]!r}")
            continue
        command = tuple(words[1 : 3 if words[1] in ("mitigate", "report") else 2])
        if command not in COMMANDS or command[0] in ("report", "gate") or "PREDICTIONS" in words:
            continue
        held = options_of(command)
        _, options = parsed(command, words[1 + len(command) :])
        again = _asked(command, words[1 + len(command) :])
        flags = {name: about.flag for name, (_, about) in described(TableSpec).items()}
        lost = [n for n, flag in flags.items() if flag in held and said[n] != again[n]]
        lost += ["sources"] if said["sources"] != again["sources"] else []
        if lost and " ".join(step.words).isprintable():  # a line break in a name is written out
            problems.append(f"the page suggests {text[:200]!r} without {lost[0]!r}")
        if strange := [name for name, _ in options if name not in (*held, "-q")]:
            problems.append(f"the page suggests {strange[0]} for {' '.join(command)}")
    return problems


def _asked(command: tuple[str, ...], words: Sequence[str]) -> dict[str, Any]:
    """What is asked of the tables, field by field."""
    switches = [name for name, option in options_of(command).items() if option.is_flag]
    found = TableSpec.from_words(words, [*switches, "-q"])
    groups = None if found.groups is None else written_list(found.groups)  # quotes as needed
    return {**found.to_json(), "groups": groups}


def parsed(command: tuple[str, ...], words: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Arguments and (option, value) pairs of a command line."""
    arguments: list[str] = []
    options: list[tuple[str, str]] = []
    held = options_of(command)
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            arguments.append(word)
        elif equals or name == "-q" or (name in held and held[name].is_flag):
            options.append((name, value))
        else:
            options.append((name, next(left, "")))
    return arguments, options


def verdict(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """The gate's JSON: the shift of every accuracy, and how many examples it rests on."""
    if not step.out:
        return []
    made = json.loads((folder / step.out).read_text(encoding="utf-8"))
    problems = []
    for row in made["endpoints"]:
        if row["metric"] != "accuracy" or row["criterion"] != "margin":
            continue
        by = "group" if row["by"] == "intersection" else row["by"]
        key = (row["variant"], row["task"], by, row["class"] if by == "class" else row["group"])
        shifts = [(c - b, n) for b, c, n in truth.rows.get(key, ())]
        if row["estimate"] is None:
            continue
        if not any(same(row["estimate"], shift) and n == row["n"] for shift, n in shifts):
            problems.append(f"{_shown(key)}: shift {row['estimate']}, n {row['n']}, not {shifts}")
    return problems


def cube(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """The cells of a cube, added up by group, class and overall."""
    held = pq.ParquetFile(folder / step.out).read()
    meta = json.loads(held.schema.metadata[b"fairweight_cube"])
    members = [tuple(map(str, member)) for member in meta["members"]]
    if sorted(members) != sorted(truth.members):
        return [f"the cube's members are {members}, not {truth.members}"]
    if "--suppress-small" in step.words:
        return [] if all(n >= 10 for n in held.column("count").to_pylist()) else ["small cells"]
    found = _added_up(held, truth)
    # A cube has no rows of intersections, nor of the mean over tasks.
    tasks = bool(truth.frame["task"].notna().any())
    kept = [
        key
        for key in truth.required
        if (key[2] != "group" or key in truth.columns) and not (tasks and key[1] is None)
    ]
    rows = {**truth.columns, **truth.rows}
    problems = compared(found, replace(truth, rows=rows), some=True)
    problems += [f"{_shown(key)} is not in the cube" for key in kept if key not in found][:1]
    return problems


def _added_up(held: Any, truth: Expected) -> dict[Key, list[Any]]:
    """Accuracy of both sides and the examples of the cells, by group, class and overall."""
    meta = json.loads(held.schema.metadata[b"fairweight_cube"])
    members = [tuple(map(str, member)) for member in meta["members"]]
    of = [variant for variant, _ in members]
    sums: dict[Key, list[float]] = {}
    single = [name for name in held.column_names if name.startswith("group:")]
    for row in held.to_pylist():
        weight = row["count"] * row.get("weight", 1.0)
        right = [row[f"prediction:{m}"] == row["label"] for m in range(len(members))]
        places: list[tuple[str, str | None]] = [("overall", None), ("class", row["label"])]
        places += [("group", level_name(name.removeprefix("group:"), row[name])) for name in single]
        for by, name in places:
            at = sums.setdefault((None, row.get("task"), by, name), [0.0] * (len(members) + 2))
            at[-1] += row["count"]
            at[-2] += weight
            for m, is_right in enumerate(right):
                at[m] += weight * is_right
    found: dict[Key, list[Any]] = {}
    for (_, task, by, name), at in sums.items():
        share = [at[m] / at[-2] if at[-2] else math.nan for m in range(len(members))]
        rates = {v: [x for x, own in zip(share, of, strict=True) if own == v] for v in of}
        for variant in truth.variants:
            sides = [sum(rates[v]) / len(rates[v]) for v in (truth.baseline, variant)]
            found.setdefault((variant, task, by, name), []).append((*sides, int(at[-1])))
    return found


def choice(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """Accuracy of every variant among the values of a choice."""
    if not step.out or any(word.startswith("--confirm-share") for word in step.words):
        return []
    made = json.loads((folder / step.out / "choice.json").read_text(encoding="utf-8"))
    overall = {variant: rows[0] for (variant, task, by, _), rows in truth.rows.items()
               if by == "overall" and task is None}  # fmt: skip
    problems = []
    for row in made["tables"]["choice_values"]:
        if row["metric"] != "accuracy" or row["place"] is not None:
            continue
        side = 0 if row["variant"] == truth.baseline else 1
        value = next(iter(overall.values()))[0] if side == 0 else overall[row["variant"]][1]
        if not same(row["value"], value):
            problems.append(f"{row['variant']}: accuracy {row['value']} where {value} is right")
    if made["n_examples"] != truth.n_examples:
        problems.append(f"{made['n_examples']} examples where there are {truth.n_examples}")
    return problems


def exemplars(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """Accuracy of both sides on all examples, which stands beside that on exemplars."""
    rows = pq.ParquetFile(folder / step.out / "exemplar_accuracy.parquet").read().to_pylist()
    found: Found = {}
    for row in rows:
        if row["part"] == "all":
            key = (row["variant"], row["task"], "overall", None)
            found[key] = [(row["baseline"], row["compressed"], row["n"])]
    return compared(found, truth, some=True)


def preflight(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """Error rates of the dense model by class and group."""
    if not step.out:
        return []
    text = (folder / step.out / "preflight.csv").read_text(encoding="utf-8")
    found: Found = {}
    for row in csv.DictReader(text.splitlines(keepends=True)):
        if row["score"] == "error_rate" and row["by"] in ("class", "group"):
            value = None if row["value"] == "" else 1 - float(row["value"])
            key = (truth.variants[0], row["task"] or None, row["by"], row[row["by"]])
            found.setdefault(key, []).append((value, _NOT_TOLD, int(float(row["n"]))))
    return compared(found, truth, some=True)


def mitigation(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """The predictions that were written: the given ones unchanged, the audit of all as computed."""
    place = folder / step.out
    path = f"{step.out}/predictions.parquet"
    table = Table(path, [], Style("parquet"))
    names = pq.ParquetFile(place / "predictions.parquet").schema_arrow.names
    made = _accuracies(_rows(place / "audit", "results"))
    meaning = Meaning(
        "long", [table], baseline=truth.baseline, task="task" if "task" in names else None,
        weight="weight" if "weight" in names else None,
        groups=None if case.meaning is None else case.meaning.groups,
        force=case.meaning is not None and case.meaning.force,
    )  # fmt: skip
    again = expected(meaning, folder)
    problems = compared(made, again, some=True)
    if not any(key[2] == "overall" for key in made):
        problems.append("the audit of a mitigation has no overall accuracy")
    if case.meaning is None or case.meaning.id is None:
        return problems  # rows without a name cannot be found again
    written, given = (held.set_axis(_keys(held)) for held in (again.frame, truth.frame))
    strangers = [key for key in written.index if key not in given.index]
    if strangers:
        return [*problems, f"examples that were not given, such as {strangers[0]}"]
    given = given.loc[written.index]
    if list(written["label"]) != list(given["label"]):
        problems.append("labels changed on the way")
    for number, member in enumerate(truth.members):
        if member in again.members:
            old, new = given[f"p{number}"], written[f"p{again.members.index(member)}"]
            if [*map(_text, old)] != [*map(_text, new)]:
                problems.append(f"predictions of {member} changed on the way")
    return problems


def _keys(frame: Any) -> list[str]:
    return [f"{task}/{name}" for name, task in zip(frame["id"], frame["task"], strict=True)]


def _text(value: Any) -> str | None:
    return None if value is None else canonical(value)


def report(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """An audit written again as JSON says the same."""
    path = folder / step.out
    if not path.exists():
        return []
    made = json.loads(path.read_text(encoding="utf-8"))
    small = "--suppress-small" in case.steps[0].words
    return compared(_accuracies(made["results"]), _only_task(truth), small=small)


# --- without classes: the reading of tests/fuzz/outcomes.py -----------------------------------


def outcomes(folder: Path, step: Step, truth: Any, case: Case) -> list[str]:
    """Ratios of sums, or shares of changed predictions, overall and by group, of every task."""
    rows = sums(truth, folder)
    problems = []
    told: set[tuple[str, Place]] = set()
    for row in _rows(folder / step.out, "results"):
        if row["metric"] != truth.metric or row["scope"] != "model":
            continue
        if truth.task and row["task"] is None:
            continue  # the mean over tasks
        by = "group" if row["by"] == "intersection" else row["by"]
        place: Place = (row["task"], by, row["group"])
        found = rows.get(place)
        if found is None:
            problems.append(f"a row of {place}, which nothing is in")
            continue
        told.add((row["variant"], place))
        if row["n"] != found.n:
            problems.append(f"{place}: {row['n']} examples where there are {found.n}")
        if truth.kind == "unlabelled":
            pairs = [("compressed", found.changed[row["variant"]] / found.weight)]
        else:
            pairs = [("baseline", found.ratio(truth.baseline)),
                     ("compressed", found.ratio(row["variant"]))]  # fmt: skip
            pairs.append(("shift", pairs[1][1] - pairs[0][1]))
        problems += [
            f"{row['variant']} {place}: {name} {row[name]} where {value} is right"
            for name, value in pairs
            if not same(row[name], value)
        ]
    absent = [(v, place) for v in truth.variants for place in rows if (v, place) not in told]
    if absent:
        problems.append(f"{len(absent)} rows are not there, such as {absent[0]}")
    return problems


def chosen_outcome(folder: Path, step: Step, truth: Any, case: Case) -> list[str]:
    """choice.json: the ratio of every variant, and the best of them first."""
    if truth.kind != "number" or truth.task:
        return []
    made = json.loads((folder / step.out / "choice.json").read_text(encoding="utf-8"))
    whole = sums(truth, folder)[None, "overall", None]
    problems = [
        f"{row['variant']}: {row['value']} where {whole.ratio(row['variant'])} is right"
        for row in made["tables"]["choice_values"]
        if not same(row["value"], whole.ratio(row["variant"]))
    ]
    best = (max if truth.better == "higher" else min)(whole.ratio(n) for n in whole.parts)
    if not same(whole.ratio(made["chosen"]), best):
        problems.append(f"{made['chosen']} was chosen, and {best} is the best")
    return problems


def largest_losses(folder: Path, step: Step, truth: Any, case: Case) -> list[str]:
    """largest_losses.parquet: the largest of each variant, and that none gains."""
    if truth.kind != "number" or truth.metric in ("correct", "failed"):
        return []
    rows = pq.read_table(folder / step.out / "largest_losses.parquet").to_pylist()
    problems = [f"{r['example_id']} loses {r['loss']}" for r in rows if not r["loss"] > 0]
    sign = 1 if truth.better == "higher" else -1
    worse = [r for r in rows if truth.denominator is None
             and not same(sign * (r["baseline"] - r["compressed"]), r["loss"])]  # fmt: skip
    return problems + [f"{r['example_id']}: a loss of {r['loss']}" for r in worse]


def starter(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    """A policy that was made for the tables asks for their groups."""
    text = (folder / step.out).read_text(encoding="utf-8")
    return [] if "[[rule]]" in text else ["the policy to start from has no rule"]


def nothing(folder: Path, step: Step, truth: Expected, case: Case) -> list[str]:
    return []


CHECKS: dict[str, Callable[[Path, Step, Expected, Case], list[str]]] = {
    f.__name__: f
    for f in (
        audit,
        verdict,
        cube,
        choice,
        exemplars,
        preflight,
        mitigation,
        report,
        starter,
        outcomes,
        chosen_outcome,
        largest_losses,
        nothing,
    )
}
