"""Inspect (inspect_ai): `.eval` archives, and logs as JSON.

    NAME.eval   a zip archive, its members deflated or compressed by Zstandard
        header.json                  eval (task, model, config), plan, results
        samples/ID_epoch_N.json      id, epoch, input, target, choices, scores, metadata, output
    NAME.json   the same as one record, with `samples` as a list

A score's value is a number, C (correct), I (incorrect), P (partly correct), N (no answer), true or
false, or a record of numbers (each then is a metric of its own, SCORER.KEY). Read from files of
inspect_ai 0.3.58 and 0.3.138. Members are read one by one: a log may be larger than memory.
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.logs.log import (
    KNOWN_BETTER,
    Log,
    Metric,
    Sample,
    TaskLog,
    digest,
    number,
    plain_fields,
    read_json,
)

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
ZSTANDARD = 93  # the archive's number for it, which Python learns with 3.14
LARGEST_MEMBER = 200 * 2**20
LARGEST_ARCHIVE = 50 * 2**30
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


def read(path: Path, filter: str | None = None) -> Log:
    """Read one log, or every task of a folder of logs."""
    if filter is not None:
        raise InputError("Inspect logs have no filters; leave --filter out, or use --metric.")
    files = sorted(path.glob("*.eval")) if path.is_dir() else [path]
    tasks: dict[str, TaskLog] = {}
    tool = "inspect_ai"
    for file in files:
        records = _records(file)
        header = next(records)
        evaluated = header.get("eval")
        if not isinstance(evaluated, Mapping) or "task" not in evaluated:
            raise InputError(f"'{file}' is no log of Inspect: its header names no task.")
        if header.get("status") != "success":
            raise InputError(
                f"'{file}' is of a run that ended with status '{shown(header.get('status'), 30)}'; "
                "only whole runs can be compared: evaluate again (inspect eval-retry)."
            )
        name = str(evaluated["task"])
        if name in tasks:
            raise InputError(
                f"'{path}' holds two logs of the task '{shown(name, 60)}'; name the file to read."
            )
        version = _mapping(evaluated.get("packages")).get("inspect_ai")
        tool = f"inspect_ai {version}" if version else tool
        tasks[name] = _task(name, header, [_sample(one, file) for one in records])
    return Log(path, tool, tasks)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _task(name: str, header: Mapping[str, Any], samples: list[Sample]) -> TaskLog:
    evaluated, config = header["eval"], _mapping(header["eval"].get("config"))
    plan = _mapping(header.get("plan"))
    generation = {
        **_mapping(evaluated.get("model_generate_config")),
        **_mapping(plan.get("config")),
    }
    settings = {
        "task_version": evaluated.get("task_version"),
        "task_args": evaluated.get("task_args") or None,
        "plan": [_mapping(step).get("solver") for step in plan.get("steps") or ()],
        "epochs": config.get("epochs") or 1,
        **{key: generation[key] for key in GENERATION if generation.get(key) is not None},
    }
    common = set.intersection(*(set(sample.values) for sample in samples)) if samples else set()
    listed = [str(_mapping(one).get("name")) for one in evaluated.get("scorers") or ()]
    order = dict.fromkeys([*listed, *(samples[0].values if samples else ())])
    return TaskLog(
        name,
        samples,
        [Metric(one, _side(one, samples)) for one in order if one in common],
        {key: value for key, value in settings.items() if value is not None},
        {
            "limit": config.get("limit"),
            "revision": _mapping(evaluated.get("revision")).get("commit"),
        },
        positions=any("gold" in sample.fields for sample in samples),
    )


def _side(name: str, samples: list[Sample]) -> Any:
    """Grades and yes or no are better when high; other numbers only where their name is known."""
    graded = all(sample.values[name] in (0.0, 0.5, 1.0) for sample in samples)
    return KNOWN_BETTER.get(name, "higher" if graded else None)


def _sample(record: Mapping[str, Any], file: Path) -> Sample:
    if "id" not in record or "scores" not in record:
        raise InputError(f"'{file}' has a sample without id or scores; the run was cut off.")
    values: dict[str, float] = {}
    answer = None
    for scorer, score in _mapping(record.get("scores")).items():
        held = _mapping(score)
        answer = answer if answer is not None else held.get("answer")
        value = held.get("value")
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, one in parts:
            graded = GRADES.get(one) if isinstance(one, str) else None
            found = graded if graded is not None else number(one)
            if found is not None:
                values[f"{scorer}.{key}" if key else str(scorer)] = found
    output = _mapping(record.get("output"))
    choices = output.get("choices")
    said = choices[0] if isinstance(choices, list) and choices else None
    stopped = _mapping(said).get("stop_reason")
    state = "ok"
    if record.get("error") is not None:
        state = "failed"
    elif record.get("limit") is not None or stopped in CUT:
        state = "truncated"
    elif answer is None and record.get("choices"):
        state = "unparsed"
    fields = plain_fields(record.get("metadata"))
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
        held = read_json(file)
        if not isinstance(held, Mapping):
            raise InputError(f"'{file}' is no log of Inspect.")
        yield {key: value for key, value in held.items() if key != "samples"}
        yield from (held.get("samples") or ())
        return
    try:
        with zipfile.ZipFile(file) as archive:
            members = {one.filename: one for one in archive.infolist()}
            samples = [n for n in members if n.startswith("samples/") and n.endswith(".json")]
            if sum(one.file_size for one in members.values()) > LARGEST_ARCHIVE:
                raise InputError(f"'{file}' would unpack to more than 50 GB; it is no log.")
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
        f"'{file}', {shown(member.filename, 80)}: more than {LARGEST_MEMBER // 2**20} MB, or other "
        "than the archive says; it is no sample of Inspect."
    )
    if member.file_size > LARGEST_MEMBER:
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
