"""HELM: the folder of one run (`helm-run`).

    run_spec.json             name, adapter_spec (shots, generation), metric_specs (their names)
    per_instance_stats.json   per instance: instance_id, train_trial_index, perturbation, and stats,
                              each with name {name, split, perturbation} and mean
    scenario_state.json       request_states: instance (id, input, references), request (prompt),
                              result (completions), output_mapping

Written by crfm-helm 0.5. Stats of perturbed instances are left out; trials are repeats.
A completion that ended by its length was truncated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
    TaskLog,
    chosen_tasks,
    common_values,
)
from fairweight.tables.logs.records import (
    digest,
    json_members,
    mapping,
    number,
    plain_fields,
    read_json,
)

FILES = ("run_spec.json", "per_instance_stats.json", "scenario_state.json")
GENERATION = ("method", "instructions", "max_train_instances", "num_outputs", "temperature",
              "max_tokens", "stop_sequences", "num_trials", "reference_prefix",
              "output_prefix")  # fmt: skip


def finds(path: Path) -> bool:
    """Whether a folder holds a run."""
    return path.is_dir() and all((path / name).is_file() for name in FILES[:2])


def read(path: Path, request: LogRequest) -> Log:
    """Read the folder of one run."""
    if request.filter is not None:
        raise InputError("HELM runs have no filters; leave --log-filter out, or use --outcome.")
    spec = read_json(path / FILES[0])
    if not isinstance(spec, Mapping):
        raise InputError(f"'{path / FILES[0]}' is no specification of a run of HELM.")
    files = tuple(path / name for name in FILES if (path / name).is_file())
    states: dict[tuple[str, int], Sample] = {}
    if path / FILES[2] in files:
        for name, one in json_members(path / FILES[2], ("request_states",)):
            if name == "request_states" and "instance" in mapping(one):
                state = _state(one, request)
                states.setdefault((state.example, state.repeat), state)
    samples = Samples(request.named)
    for _, record in json_members(path / FILES[1]):
        if not mapping(record).get("perturbation"):
            samples.append(_sample(record, states, path))
    if not samples:
        raise InputError(f"'{path / FILES[1]}' has no instances.")
    table = samples.table()
    wanted = [
        str(name)
        for one in spec.get("metric_specs") or ()
        for name in mapping(one, "args").get("names") or ()
    ]
    there = common_values(table)
    known = [name for name in KNOWN_BETTER if name in there and name not in wanted]
    adapter = mapping(spec, "adapter_spec")
    name = _task_name(str(spec.get("name", path.name)))
    chosen_tasks(request, [name], path)
    task = TaskLog(
        name,
        table,
        [Metric(one, KNOWN_BETTER.get(one)) for one in (*wanted, *known) if one in there],
        {key: adapter[key] for key in GENERATION if key in adapter},
        {"max_eval_instances": adapter.get("max_eval_instances")},
        positions="field:gold" in table.schema.names,
    )
    return Log(path, "HELM", {name: task}, files)


def _task_name(run: str) -> str:
    """The run's name without the model, which differs between the sides.

    >>> _task_name("commonsense:dataset=hellaswag,method=joint,model=a_b")
    'commonsense:dataset=hellaswag,method=joint'
    """
    scenario, _, options = run.partition(":")
    kept = [one for one in options.split(",") if one and not one.startswith("model")]
    return f"{scenario}:{','.join(kept)}" if kept else scenario


def _state(state: Mapping[str, Any], request: LogRequest) -> Sample:
    """What the model was asked and said; how well it did stands in the other file."""
    instance, result = mapping(state, "instance"), mapping(state, "result")
    said = mapping((result.get("completions") or [{}])[0])
    references = [mapping(one) for one in instance.get("references") or ()]
    right = [str(place) for place, one in enumerate(references) if "correct" in one.get("tags", ())]
    fields = plain_fields(
        {key: instance.get(key) for key in ("split", "sub_split")}
        | dict(mapping(instance, "extra_data")),
        request.named,
    )
    if len(references) > 1 and len(right) == 1:
        fields["gold"] = right[0]
    condition = "ok"
    if result and not result.get("success", True):
        condition = "failed"
    elif mapping(said, "finish_reason").get("reason") == "length":
        condition = "truncated"
    return Sample(
        example=str(instance.get("id")),
        asked=digest(instance.get("input"), references),
        values={},
        prompt=digest(mapping(state, "request").get("prompt")),
        answer=None if said.get("text") is None else shown(str(said["text"]).strip(), 200),
        label=right[0] if right else None,
        state=condition,
        repeat=int(state.get("train_trial_index") or 0) + 1,
        fields=fields,
    )


def _sample(record: Any, states: Mapping[tuple[str, int], Sample], path: Path) -> Sample:
    try:
        repeat = int(record.get("train_trial_index") or 0) + 1
        example = str(record["instance_id"])
        values = {
            str(one["name"]["name"]): found
            for one in record["stats"]
            if not one["name"].get("perturbation")
            and (found := number(one.get("mean"))) is not None
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"'{path / FILES[1]}' has an instance of another form ({shown(str(error), 60)})."
        ) from None
    state = states.get((example, repeat), Sample(example, b"", {}, repeat=repeat))
    return replace(state, values=values)
