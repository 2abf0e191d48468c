"""lm-evaluation-harness: the folder that `--output_path` and `--log_samples` write.

    MODEL/samples_TASK_TIME.jsonl   one JSON record per line, example and filter
        doc_id, doc (the record of the data set), target, arguments (the prompts), resps,
        filtered_resps, filter, doc_hash, prompt_hash, target_hash, metrics (names), and each
        metric by its name: a number, text that is one, or a list
    MODEL/results_TIME.json         one record
        results[TASK]["METRIC,FILTER"], configs[TASK], versions, n-shot, higher_is_better,
        config (limit, gen_kwargs, seeds), chat_template_sha, lm_eval_version

Written by lm-eval 0.4.13; older files lack the hashes and `filter`, and are read too. Of several
runs in a folder the newest is read. A metric that is a pair (log-likelihood, number of words or
bytes), as perplexities have, becomes a loss with a denominator.
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
    Better,
    Log,
    Metric,
    Sample,
    TaskLog,
    digest,
    json_lines,
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


def read(path: Path, filter: str | None = None) -> Log:
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
    results = _results(folders[0], {time for time, _ in newest.values()})
    tasks = {task: _task(task, file, results, filter, notes) for task, (_, file) in newest.items()}
    version = results.get("lm_eval_version")
    return Log(path, f"lm-eval {version}" if version else "lm-eval", tasks, tuple(notes))


def _results(folder: Path, times: set[str]) -> Mapping[str, Any]:
    """The results beside the samples: of the same time, else the newest; {} without any."""
    found = sorted(folder.glob("results_*.json"))
    same = [file for file in found if file.stem.removeprefix("results_") in times]
    for file in reversed(same or found):
        held = read_json(file)
        if isinstance(held, Mapping):
            return held
    return {}


def _part(record: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A record inside records; {} where it is not there."""
    held: Any = record
    for name in names:
        held = held.get(name) if isinstance(held, Mapping) else None
    return held if isinstance(held, Mapping) else {}


def _task(
    name: str, file: Path, results: Mapping[str, Any], wanted: str | None, notes: list[str]
) -> TaskLog:
    config = _part(results, "configs", name)
    filters = [str(one.get("name")) for one in config.get("filter_list") or () if one]
    chosen, samples, order = wanted, [], []
    for line, record in json_lines(file):
        if not isinstance(record, Mapping) or "doc_id" not in record:
            raise InputError(f"'{file}', line {line:,}: no sample of lm-eval (it has no doc_id).")
        own = str(record.get("filter", "none"))
        if own not in order:
            order.append(own)
        if chosen is None:
            chosen = (
                next((one for one in filters if one == own), own) if not filters else filters[0]
            )
        if own == chosen:
            samples.append(_sample(record, file, line))
            names = record.get("metrics")
    if not samples:
        raise InputError(
            f"'{file}' has no samples of the filter '{shown(chosen, 40)}'; it has: "
            f"{', '.join(order)}. Name one of them (--filter)."
        )
    if len(order) > 1:
        others = ", ".join(f"'{one}'" for one in order if one != chosen)
        notes.append(f"'{name}' is scored by the filter '{chosen}' (also there: {others}).")
    listed = [str(one.get("metric")) for one in config.get("metric_list") or () if one]
    known = [str(one) for one in names] if isinstance(names, Sequence) else []
    sides = _part(results, "higher_is_better", name)
    metrics = []
    for one in dict.fromkeys([*listed, *known, *samples[0].values]):
        if all(one in sample.values for sample in samples):
            ratio = all(one in sample.denominators for sample in samples)
            metrics.append(Metric(one, _side(one, sides, ratio), ratio))
    settings = {key: config[key] for key in TASK_SETTINGS if key in config}
    settings["version"] = _part(results, "versions").get(name)
    settings["gen_kwargs"] = _part(results, "config").get("gen_kwargs") or None
    settings |= {key: results.get(key) for key in SHA_SETTINGS}
    reported = {}
    for key, value in _part(results, "results", name).items():
        metric, _, of = key.partition(",")
        said = number(value)
        if of == chosen and said is not None and not metric.endswith("_stderr"):
            reported[metric] = said
    ratios = {metric.name for metric in metrics if metric.has_denominator}
    means = _mean_metrics(config)
    return TaskLog(
        name,
        samples,
        metrics,
        {key: value for key, value in settings.items() if value is not None},
        {key: _part(results, "config").get(key) for key in RUN_SETTINGS},
        positions=config.get("output_type") == "multiple_choice" or "gold" in samples[0].fields,
        reported={
            k: v for k, v in reported.items() if k not in ratios and (means is None or k in means)
        },
    )


def _mean_metrics(config: Mapping[str, Any]) -> set[str] | None:
    """Metrics whose report is the mean over samples; None where the configuration does not say."""
    listed = [one for one in config.get("metric_list") or () if isinstance(one, Mapping)]
    if not listed:
        return set()
    return {str(one.get("metric")) for one in listed if one.get("aggregation", "mean") == "mean"}


def _side(name: str, sides: Mapping[str, Any], ratio: bool) -> Better | None:
    if ratio:
        return "lower"  # a loss per word, whatever the tool made of it
    if name in sides and isinstance(sides[name], bool):
        return "higher" if sides[name] else "lower"
    return KNOWN_BETTER.get(name)


def _sample(record: Mapping[str, Any], file: Path, line: int) -> Sample:
    values: dict[str, float] = {}
    denominators: dict[str, float] = {}
    listed = record.get("metrics")
    names = listed if isinstance(listed, Sequence) else [k for k in record if k not in FIXED]
    for name in names:
        value = record.get(name)
        if isinstance(value, Sequence) and not isinstance(value, str):
            pair = [number(one) for one in value]
            if len(pair) == 2 and pair[0] is not None and pair[1] is not None and pair[1] > 0:
                values[str(name)], denominators[str(name)] = -pair[0], pair[1]
        elif (found := number(value)) is not None:
            values[str(name)] = found
    responses = record.get("filtered_resps")
    answer = _answer(responses)
    fields = plain_fields(record.get("doc"))
    gold = record.get("target")
    if _is_choice(responses) and number(gold) is not None:
        fields["gold"] = str(gold)
    hashes = [record.get(f"{part}_hash") for part in ("doc", "prompt", "target")]
    if None in hashes:
        hashes = [record.get("doc"), record.get("arguments"), record.get("target")]
    if not values:
        raise InputError(
            f"'{file}', line {line:,}: the sample has no number that could be audited; its metrics "
            f"are {', '.join(map(str, names)) or 'none'}."
        )
    return Sample(
        example=str(record["doc_id"]),
        asked=digest(*hashes),
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
