"""lm-evaluation-harness: the folder that `--output_path` and `--log_samples` write.

    MODEL/samples_TASK_TIME.jsonl   one JSON record per line, example and filter
        doc_id, doc (the record of the data set), target, arguments (the prompts), resps,
        filtered_resps, filter, doc_hash, prompt_hash, target_hash, metrics (names), and each
        metric by its name: a number, text that is one, or a list
    MODEL/results_TIME.json         one record
        results[TASK]["METRIC,FILTER"], configs[TASK], versions, n-shot, higher_is_better,
        config (limit, gen_kwargs, seeds), chat_template_sha, lm_eval_version

Written by lm-eval 0.4.13; older files lack the hashes and `filter`, and are read too. Of several
runs in a folder the newest is read. Perplexities are logged as pairs (log-likelihood, number of
words or bytes), or as a log-likelihood alone: they become a loss, per word or byte where it is a
pair. Other lists, as BBQ's scores have them, are no numbers of one example and are not offered; its
`acc` by the fields `category` and `context_condition` says what they say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.logs.log import (
    KNOWN_BETTER,
    Log,
    LogRequest,
    Metric,
    Sample,
    Samples,
    Side,
    TaskLog,
    chosen_tasks,
    common_values,
)
from fairweight.tables.logs.records import (
    digest,
    json_lines,
    mapping,
    number,
    plain_fields,
    read_json,
)

SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.\-:]+)\.jsonl")
UNPARSED = "[invalid]"
# Of a task, and of the whole run: what decides what a model is asked.
TASK_SETTINGS = ("num_fewshot", "generation_kwargs", "output_type", "repeats", "description",
                 "doc_to_text", "doc_to_target", "doc_to_choice")  # fmt: skip
RUN_SETTINGS = ("limit", "fewshot_seed", "random_seed")
SHA_SETTINGS = ("chat_template_sha", "system_instruction_sha", "fewshot_as_multiturn")
# How a task adds up what samples have: the report is their mean, or a perplexity.
LOSSES = frozenset(("perplexity", "weighted_perplexity", "bits_per_byte"))
LOSS_METRICS = frozenset(("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"))


def finds(path: Path) -> bool:
    """Whether a path is a file of samples, or a folder with some (its own, or a model's below)."""
    if path.is_file():
        return SAMPLES.fullmatch(path.name) is not None
    return path.is_dir() and bool(_sample_files(path))


def _sample_files(folder: Path) -> list[Path]:
    found = [p for p in sorted(folder.glob("samples_*.jsonl")) if SAMPLES.fullmatch(p.name)]
    return found or [
        p for p in sorted(folder.glob("*/samples_*.jsonl")) if SAMPLES.fullmatch(p.name)
    ]


def read(path: Path, request: LogRequest) -> Log:
    """Read the newest run of a folder, or one file of samples."""
    files = [path] if path.is_file() else _sample_files(path)
    folders = sorted({file.parent for file in files})
    if len(folders) > 1:
        names = ", ".join(f"'{folder.name}'" for folder in folders[:5])
        raise InputError(f"'{path}' holds the logs of several models ({names}); name one of them.")
    newest: dict[str, tuple[str, Path]] = {}
    for file in files:
        parts = SAMPLES.fullmatch(file.name)
        assert parts is not None
        newest[parts["task"]] = max(newest.get(parts["task"], ("", file)), (parts["time"], file))
    notes = []
    if len(files) > len(newest):
        notes.append(f"'{path}' holds several runs; the newest of each task is read.")
    wanted = chosen_tasks(request, newest, path)
    found, results = _results(folders[0], {newest[task][0] for task in wanted})
    tasks = {task: _task(task, newest[task][1], results, request, notes) for task in wanted}
    version = results.get("lm_eval_version")
    read = (*(newest[task][1] for task in wanted), *([found] if found is not None else []))
    return Log(path, f"lm-eval {version}" if version else "lm-eval", tasks, read, tuple(notes))


def _results(folder: Path, times: set[str]) -> tuple[Path | None, Mapping[str, Any]]:
    """The results beside the samples: of the same time, else the newest; {} without any."""
    found = sorted(folder.glob("results_*.json"))
    same = [file for file in found if file.stem.removeprefix("results_") in times]
    for file in reversed(same or found):
        held = read_json(file)
        if isinstance(held, Mapping):
            return file, held
    return None, {}


def _task(
    name: str, file: Path, results: Mapping[str, Any], request: LogRequest, notes: list[str]
) -> TaskLog:
    config = mapping(results, "configs", name)
    listed = [mapping(one) for one in config.get("metric_list") or ()]
    losses = {str(one.get("metric")) for one in listed if one.get("aggregation") in LOSSES}
    if not listed:
        losses = set(LOSS_METRICS)
    filters = [str(one.get("name")) for one in config.get("filter_list") or () if one]
    chosen = request.filter or (filters[0] if filters else None)
    samples, others, choices = Samples(request.named), dict[str, None](), False
    for line, record in json_lines(file):
        if not isinstance(record, Mapping) or "doc_id" not in record:
            raise InputError(f"'{file}', line {line:,}: no sample of lm-eval (it has no doc_id).")
        own = str(record.get("filter", "none"))
        chosen = chosen or own
        if own != chosen:
            others.setdefault(own)
            continue
        sample = _sample(record, file, line, losses, request)
        choices |= "gold" in sample.fields
        samples.append(sample)
    table = samples.table() if samples else None
    if table is None:
        raise InputError(
            f"'{file}' has no samples of the filter '{shown(chosen, 40)}'; it has: "
            f"{', '.join(others) or 'no samples'}. Name one of them (--log-filter), or leave tasks "
            "out (--log-tasks)."
        )
    if others:
        also = ", ".join(f"'{one}'" for one in others)
        notes.append(f"'{name}' is scored by the filter '{chosen}' (also there: {also}).")
    sides = mapping(results, "higher_is_better", name)
    ratios = set(common_values(table, "denominator"))
    there = common_values(table)
    first = [str(one.get("metric")) for one in listed]
    metrics = [
        Metric(one, "lower" if one in losses else _side(one, sides), one in ratios)
        for one in dict.fromkeys([*first, *there])
        if one in there
    ]
    settings = {key: config[key] for key in TASK_SETTINGS if key in config}
    settings["version"] = mapping(results, "versions").get(name)
    settings["gen_kwargs"] = mapping(results, "config").get("gen_kwargs") or None
    settings |= {key: results.get(key) for key in SHA_SETTINGS}
    # What is reported as the mean of samples, where the configuration says so.
    means = {str(one.get("metric")) for one in listed if one.get("aggregation", "mean") == "mean"}
    reported = {}
    for key, value in mapping(results, "results", name).items():
        metric, _, of = key.partition(",")
        said = number(value)
        if of == chosen and said is not None and metric in means:
            reported[metric] = said
    return TaskLog(
        name,
        table,
        metrics,
        {key: value for key, value in settings.items() if value is not None},
        {key: mapping(results, "config").get(key) for key in RUN_SETTINGS},
        positions=config.get("output_type") == "multiple_choice" or choices,
        reported=reported,
    )


def _side(name: str, sides: Mapping[str, Any]) -> Side | None:
    if isinstance(sides.get(name), bool):
        return "higher" if sides[name] else "lower"
    return KNOWN_BETTER.get(name)


def _sample(
    record: Mapping[str, Any], file: Path, line: int, losses: set[str], request: LogRequest
) -> Sample:
    values: dict[str, float] = {}
    denominators: dict[str, float] = {}
    listed = record.get("metrics")
    names = listed if isinstance(listed, Sequence) else [k for k in record if k not in FIXED]
    for name in map(str, names):
        value = record.get(name)
        if name in losses and isinstance(value, Sequence) and not isinstance(value, str):
            pair = [number(one) for one in value]
            if len(pair) == 2 and pair[0] is not None and pair[1] is not None and pair[1] > 0:
                values[name], denominators[name] = -pair[0], pair[1]
        elif (found := number(value)) is not None:
            values[name] = -found if name in losses else found
    if not values:
        raise InputError(
            f"'{file}', line {line:,}: the sample has no number that could be audited; its metrics "
            f"are {', '.join(map(str, names)) or 'none'}."
        )
    responses = record.get("filtered_resps")
    answer = _answer(responses)
    fields = plain_fields(record.get("doc"), request.named)
    gold = record.get("target")
    if _is_choice(responses) and number(gold) is not None:
        fields["gold"] = str(gold)
    # The tool's own digests where it has them; older versions log the texts alone.
    hashes = {part: record.get(f"{part}_hash") for part in ("doc", "target", "prompt")}
    texts = {"doc": record.get("doc"), "target": gold, "prompt": record.get("arguments")}
    parts = texts if None in hashes.values() else hashes
    return Sample(
        example=str(record["doc_id"]),
        asked=digest(parts["doc"], parts["target"]),
        prompt=digest(parts["prompt"]),
        values=values,
        denominators=denominators,
        answer=answer,
        label=None if gold is None else shown(gold, 200),
        state="unparsed" if answer == UNPARSED else "ok",
        fields=fields,
    )


FIXED = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
     "doc_hash", "prompt_hash", "target_hash")
)  # fmt: skip


def _is_choice(responses: Any) -> bool:
    """Whether the answers are log-likelihoods of several choices."""
    return (
        isinstance(responses, Sequence)
        and len(responses) > 1
        and all(
            isinstance(one, Sequence) and not isinstance(one, str) and len(one) == 2
            for one in responses
        )
    )


def _answer(responses: Any) -> str | None:
    """What a model answered: the likeliest of several choices by its position, else its text."""
    if _is_choice(responses):
        likely = [number(one[0]) for one in responses]
        if None in likely:
            return None
        return str(max(range(len(likely)), key=lambda place: likely[place] or 0.0))
    if isinstance(responses, Sequence) and not isinstance(responses, str) and responses:
        return shown(responses[0], 200)
    return None if responses is None else shown(responses, 200)
