"""lighteval: the folder that `--output-dir` and `--save-details` write.

    results/MODEL/results_TIME.json                   results[TASK][METRIC], config_tasks[TASK]
        (metrics with higher_is_better and corpus_level_fn, version, num_fewshots, generation_size,
        stop_sequence), config_general (model_config.generation_parameters, max_samples)
    details/MODEL/TIME/details_TASK_TIME.parquet      one row per example
        doc (id, query, choices, gold_index, specific, fewshot_samples), metric (a number each),
        model_response (input, text, logprobs, truncated_tokens_count)

TASK is `name|shots`. Written by lighteval 0.13.0. Of several runs in a folder the newest is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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
from fairweight.tables.logs.records import digest, mapping, number, plain_fields, read_json

DETAILS = re.compile(r"details_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.\-:]+)\.parquet")
BATCH = 512  # rows that are held at once
TASK_SETTINGS = ("version", "num_fewshots", "generation_size", "stop_sequence", "num_samples",
                 "hf_repo", "hf_subset", "hf_revision", "prompt_function",
                 "few_shots_select")  # fmt: skip


def finds(path: Path) -> bool:
    """Whether a path is a file of details, or a folder with some."""
    if path.is_file():
        return DETAILS.fullmatch(path.name) is not None
    return path.is_dir() and bool(_detail_files(path))


def _detail_files(folder: Path) -> list[Path]:
    """Of the folder itself, or of a model below `details`, whose name may have a slash."""
    for pattern in ("details_*.parquet", "*/details_*.parquet", "details/**/details_*.parquet"):
        found = [file for file in sorted(folder.glob(pattern)) if DETAILS.fullmatch(file.name)]
        if found:
            return found
    return []


def read(path: Path, request: LogRequest) -> Log:
    """Read the newest run of a folder, or one file of details."""
    if request.filter is not None:
        raise InputError("lighteval has no filters; leave --log-filter out, or use --outcome.")
    files = [path] if path.is_file() else _detail_files(path)
    models = sorted({file.parent.parent for file in files})
    if len(models) > 1:
        names = ", ".join(f"'{folder.name}'" for folder in models[:5])
        raise InputError(f"'{path}' holds the logs of several models ({names}); name one of them.")
    newest: dict[str, tuple[str, Path]] = {}
    for file in files:
        parts = DETAILS.fullmatch(file.name)
        assert parts is not None
        newest[parts["task"]] = max(newest.get(parts["task"], ("", file)), (parts["time"], file))
    notes = []
    if len(files) > len(newest):
        notes.append(f"'{path}' holds several runs; the newest of each task is read.")
    wanted = chosen_tasks(request, newest, path)
    tasks, read = {}, []
    for name in wanted:
        time, file = newest[name]
        found = _results(file, time)
        tasks[name] = _task(name, file, {} if found is None else mapping(read_json(found)), request)
        read += [file, *([] if found is None or found in read else [found])]
    return Log(path, "lighteval", tasks, tuple(read), tuple(notes))


def _results(file: Path, time: str) -> Path | None:
    """The results of the same run, which stand in a folder beside that of the details."""
    for folder in file.parents[:6]:
        if folder.name == "details":
            beside = folder.parent / "results" / file.parent.parent.relative_to(folder)
            place = beside / f"results_{time}.json"
            return place if place.is_file() else None
    return None


def _task(name: str, file: Path, results: Mapping[str, Any], request: LogRequest) -> TaskLog:
    samples = Samples(request.named)
    for row, record in enumerate(_rows(file), start=1):
        samples.append(_sample(record, file, row, request))
    if not samples:
        raise InputError(f"'{file}' has no rows; evaluate again.")
    table = samples.table()
    config = mapping(results, "config_tasks", name)
    listed = {str(mapping(one).get("metric_name")): mapping(one)
              for one in config.get("metrics") or ()}  # fmt: skip
    there = common_values(table)
    general = mapping(results, "config_general")
    generation = mapping(general, "model_config", "generation_parameters")
    settings = {key: config[key] for key in TASK_SETTINGS if config.get(key) is not None}
    settings |= {key: value for key, value in generation.items() if value is not None}
    settings["system_prompt"] = mapping(general, "model_config").get("system_prompt")
    said = mapping(results, "results", name)
    return TaskLog(
        name,
        table,
        [Metric(one, _side(one, listed)) for one in dict.fromkeys([*listed, *there])
         if one in there],
        {key: value for key, value in settings.items() if value is not None},
        {"max_samples": general.get("max_samples")},
        positions="field:gold" in table.schema.names,
        reported={
            one: value
            for one, about in listed.items()
            if about.get("corpus_level_fn") == "mean"
            and (value := number(said.get(one))) is not None
        },
    )  # fmt: skip


def _side(name: str, listed: Mapping[str, Mapping[str, Any]]) -> Side | None:
    said = listed.get(name, {}).get("higher_is_better")
    if isinstance(said, bool):
        return "higher" if said else "lower"
    return KNOWN_BETTER.get(name)


def _rows(file: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with pq.ParquetFile(file) as parquet:
            if not {"doc", "metric", "model_response"} <= set(parquet.schema_arrow.names):
                raise InputError(f"'{file}' has no columns doc, metric and model_response.")
            for batch in parquet.iter_batches(BATCH):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"'{file}' is no whole Parquet file ({shown(str(error), 80)}); copy it again."
        ) from None


def _sample(record: Mapping[str, Any], file: Path, row: int, request: LogRequest) -> Sample:
    doc, said = mapping(record, "doc"), mapping(record, "model_response")
    values = {
        str(name): found
        for name, value in mapping(record, "metric").items()
        if (found := number(value)) is not None
    }
    if "id" not in doc or not values:
        raise InputError(f"'{file}', row {row:,}: no id of the example, or no number to audit.")
    gold = doc.get("gold_index")
    right = gold if isinstance(gold, list) else [gold]
    choices = doc.get("choices") or []
    likely = [number(one) for one in said.get("logprobs") or ()]
    fields = plain_fields(doc.get("specific"), request.named)
    answer = None
    if len(choices) > 1 and len(likely) == len(choices) and None not in likely:
        answer = str(max(range(len(likely)), key=lambda place: likely[place] or 0.0))
        if len(right) == 1 and right[0] is not None:
            fields["gold"] = str(right[0])
    elif said.get("text"):
        answer = shown(said["text"][0], 200)
    cut = number(said.get("truncated_tokens_count")) or 0
    return Sample(
        example=str(doc["id"]),
        asked=digest(doc.get("original_query") or doc.get("query"), choices, gold),
        prompt=digest(doc.get("query"), doc.get("instruction"), doc.get("fewshot_samples"),
                      said.get("input")),
        values=values,
        answer=answer,
        label=None if gold is None else shown(gold, 200),
        state="truncated" if cut > 0 else "ok",
        fields=fields,
    )  # fmt: skip
