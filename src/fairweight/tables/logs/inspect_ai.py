"""Inspect (inspect_ai): `.eval` archives, and logs as JSON.

    NAME.eval   a zip archive, its members deflated or compressed by Zstandard
        header.json                  eval (task, model, config), plan, results
        samples/ID_epoch_N.json      id, epoch, input, target, choices, scores, metadata, output
    NAME.json   the same as one record, with `samples` as a list

A score's value is a number, C (correct), I (incorrect), P (partly correct), N (no answer), true or
false, or a record of numbers (each then is a metric of its own, SCORER.KEY). Read from files of
inspect_ai 0.3.58, 0.3.138 and 0.3.285 (Zstandard). Members are read one by one: a log may be larger
than memory.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

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
    LARGEST_RECORD,
    digest,
    json_members,
    mapping,
    number,
    plain_fields,
)

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
ZSTANDARD = 93  # the archive's number for it, which Python learns with 3.14
# Logs shrink to a fifth or a twentieth; what shrinks more, and is large, was made to do harm.
MOST_SHRUNK, LARGEST_UNCHECKED = 100, 2**30
CUT = ("max_tokens", "model_length")
GENERATION = ("temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "seed", "num_choices",
              "reasoning_effort", "system_message", "frequency_penalty",
              "presence_penalty")  # fmt: skip


def finds(path: Path) -> bool:
    """Whether a path is such a log, or a folder with exactly such logs."""
    if path.is_dir():
        return any(path.glob("*.eval"))
    if path.suffix == ".eval":
        return True
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return b'"eval"' in head and b'"status"' in head and b'"version"' in head


def read(path: Path, request: LogRequest) -> Log:
    """Read one log, or every task of a folder of logs."""
    if request.filter is not None:
        raise InputError("Inspect logs have no filters; leave --log-filter out, or use --outcome.")
    files = sorted(path.glob("*.eval")) if path.is_dir() else [path]
    tasks: dict[str, TaskLog] = {}
    there, read = [], []
    tool = "inspect_ai"
    for file in files:
        records = _records(file)
        header = next(records)
        evaluated = header.get("eval")
        if not isinstance(evaluated, Mapping) or "task" not in evaluated:
            raise InputError(f"'{file}' is no log of Inspect: its header names no task.")
        name = str(evaluated["task"])
        there.append(name)
        if request.tasks and name not in request.tasks:
            continue
        if header.get("status") != "success":
            raise InputError(
                f"'{file}' is of a run that ended with status '{shown(header.get('status'), 30)}'; "
                "only whole runs can be compared: evaluate again (inspect eval-retry)."
            )
        if name in tasks:
            raise InputError(
                f"'{path}' holds two logs of the task '{shown(name, 60)}'; name the file to read."
            )
        version = mapping(evaluated, "packages").get("inspect_ai")
        tool = f"inspect_ai {version}" if version else tool
        samples = Samples(request.named)
        for record in records:
            samples.append(_sample(record, file, request))
        if not samples:
            raise InputError(f"'{file}' has no samples; evaluate again with --log-samples.")
        tasks[name] = _task(name, header, samples.table())
        read.append(file)
    chosen_tasks(request, there, path)
    return Log(path, tool, tasks, tuple(read))


def _task(name: str, header: Mapping[str, Any], samples: pa.Table) -> TaskLog:
    evaluated, config = header["eval"], mapping(header, "eval", "config")
    plan = mapping(header, "plan")
    generation = {**mapping(evaluated, "model_generate_config"), **mapping(plan, "config")}
    settings = {
        "task_version": evaluated.get("task_version"),
        "task_args": evaluated.get("task_args") or None,
        "plan": [mapping(step).get("solver") for step in plan.get("steps") or ()],
        "epochs": config.get("epochs") or 1,
        **{key: generation[key] for key in GENERATION if generation.get(key) is not None},
    }
    there = common_values(samples)
    listed = [str(mapping(one).get("name")) for one in evaluated.get("scorers") or ()]
    return TaskLog(
        name,
        samples,
        [
            Metric(one, _side(one, samples))
            for one in dict.fromkeys([*listed, *there])
            if one in there
        ],
        {key: value for key, value in settings.items() if value is not None},
        {"limit": config.get("limit"), "revision": mapping(evaluated, "revision").get("commit")},
        positions="field:gold" in samples.schema.names,
    )


def _side(name: str, samples: pa.Table) -> Side | None:
    """Grades and yes or no are better when high; other numbers only where their name is known."""
    found = set(pc.unique(samples[f"value:{name}"]).to_pylist())
    return KNOWN_BETTER.get(name, "higher" if found <= {0.0, 0.5, 1.0} else None)


def _sample(record: Mapping[str, Any], file: Path, request: LogRequest) -> Sample:
    if "id" not in record or "scores" not in record:
        raise InputError(f"'{file}' has a sample without id or scores; the run was cut off.")
    values: dict[str, float] = {}
    answer = None
    for scorer, score in mapping(record, "scores").items():
        held = mapping(score)
        answer = answer if answer is not None else held.get("answer")
        value = held.get("value")
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, one in parts:
            graded = GRADES.get(one) if isinstance(one, str) else None
            found = graded if graded is not None else number(one)
            if found is not None:
                values[f"{scorer}.{key}" if key else str(scorer)] = found
    output = mapping(record, "output")
    choices = output.get("choices")
    said = choices[0] if isinstance(choices, list) and choices else None
    stopped = mapping(said).get("stop_reason")
    state = "ok"
    if record.get("error") is not None:
        state = "failed"
    elif record.get("limit") is not None or stopped in CUT:
        state = "truncated"
    elif answer is None and record.get("choices"):
        state = "unparsed"
    fields = plain_fields(record.get("metadata"), request.named)
    target = record.get("target")
    if record.get("choices") and isinstance(target, str) and len(target.strip()) == 1:
        fields["gold"] = target.strip()
    return Sample(
        example=str(record["id"]),
        asked=digest(record.get("input"), target, record.get("choices")),
        values=values,
        answer=None if answer is None else shown(answer, 200),
        label=None if target is None else shown(target, 200),
        state=state,
        repeat=int(record.get("epoch") or 1),
        fields=fields,
    )


# Records of a file: the header, then every sample.


def _records(file: Path) -> Iterator[Mapping[str, Any]]:
    if file.suffix == ".json":
        # The header's fields stand before and behind the samples.
        yield {str(k): v for k, v in json_members(file, ("samples",)) if k != "samples"}
        for name, value in json_members(file, ("samples",)):
            if name == "samples" and isinstance(value, Mapping):
                yield value
        return
    try:
        with zipfile.ZipFile(file) as archive:
            members = {one.filename: one for one in archive.infolist()}
            samples = [n for n in members if n.startswith("samples/") and n.endswith(".json")]
            whole = sum(one.file_size for one in members.values())
            if whole > max(LARGEST_UNCHECKED, MOST_SHRUNK * file.stat().st_size):
                raise InputError(
                    f"'{file}' would unpack to {whole / 2**30:.1f} GB, over {MOST_SHRUNK} times "
                    "its size; it is no log of Inspect."
                )
            if "header.json" not in members:
                raise InputError(
                    f"'{file}' has no header.json: the run was cut off. Evaluate again (inspect "
                    "eval-retry)."
                )
            for name in ("header.json", *samples):
                content = _content(archive, members[name], file)
                try:
                    record = json.loads(content)
                except (ValueError, RecursionError) as error:
                    raise InputError(
                        f"'{file}', {shown(name, 80)}: no whole JSON ({shown(str(error), 80)})."
                    ) from None
                yield record if isinstance(record, Mapping) else {}
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise InputError(
            f"'{file}' is no whole .eval archive ({shown(str(error), 80)}); copy it again."
        ) from None


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path) -> bytes:
    """The bytes of a member, never more than it may have, by Deflate or Zstandard."""
    refusal = InputError(
        f"'{file}', {shown(member.filename, 80)}: more than {LARGEST_RECORD // 2**20} MB, or other "
        "than the archive says; it is no sample of Inspect."
    )
    if member.file_size > LARGEST_RECORD:
        raise refusal
    if member.compress_type != ZSTANDARD:
        with archive.open(member) as stream:
            content = stream.read(member.file_size + 1)
    else:
        raw = archive.fp
        assert raw is not None
        raw.seek(member.header_offset)
        names, extra = struct.unpack("<26x2H", raw.read(30))
        raw.seek(names + extra, 1)
        packed = pa.BufferReader(raw.read(member.compress_size))
        with pa.CompressedInputStream(packed, "zstd") as unpacked:
            content = unpacked.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise refusal
    return content
