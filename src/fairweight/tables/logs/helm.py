"""HELM: the folder of one run (`helm-run`).

    run_spec.json             name, adapter_spec (shots, generation), metric_specs (their names)
    per_instance_stats.json   per instance: instance_id, train_trial_index, perturbation, and stats,
                              each with name {name, split, perturbation} and mean
    scenario_state.json       request_states: instance (id, input, references), request (prompt),
                              result (completions), output_mapping

Written by crfm-helm 0.5. Stats of perturbed instances are left out; trials are repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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

FILES = ("run_spec.json", "per_instance_stats.json", "scenario_state.json")
GENERATION = ("method", "instructions", "max_train_instances", "num_outputs", "temperature",
              "max_tokens", "stop_sequences", "num_trials", "reference_prefix",
              "output_prefix")  # fmt: skip


def finds(path: Path) -> bool:
    """Whether a folder holds a run."""
    return path.is_dir() and all((path / name).is_file() for name in FILES[:2])


def read(path: Path, filter: str | None = None) -> Log:
    """Read the folder of one run."""
    if filter is not None:
        raise InputError("HELM runs have no filters; leave --filter out, or use --metric.")
    spec = read_json(path / FILES[0])
    stats = read_json(path / FILES[1])
    if not isinstance(spec, Mapping) or not isinstance(stats, list):
        raise InputError(f"'{path}' is no run of HELM: its files have another form.")
    states: dict[tuple[str, int], Any] = {}
    if (path / FILES[2]).is_file():
        held = read_json(path / FILES[2])
        for one in held.get("request_states") or () if isinstance(held, Mapping) else ():
            key = (str(one["instance"].get("id")), int(one.get("train_trial_index") or 0))
            states.setdefault(key, one)
    samples = [_sample(record, states, path) for record in stats if not record.get("perturbation")]
    wanted = [
        str(name)
        for one in spec.get("metric_specs") or ()
        for name in (one.get("args") or {}).get("names") or ()
    ]
    common = set.intersection(*(set(one.values) for one in samples)) if samples else set()
    known = [name for name in KNOWN_BETTER if name in common and name not in wanted]
    adapter = spec.get("adapter_spec") or {}
    name = _task_name(str(spec.get("name", path.name)))
    task = TaskLog(
        name,
        samples,
        [Metric(one, KNOWN_BETTER.get(one)) for one in (*wanted, *known) if one in common],
        {key: adapter[key] for key in GENERATION if key in adapter},
        {"max_eval_instances": adapter.get("max_eval_instances")},
        positions=any("gold" in sample.fields for sample in samples),
    )
    return Log(path, "HELM", {name: task})


def _task_name(run: str) -> str:
    """The run's name without the model, which differs between the sides.

    >>> _task_name("commonsense:dataset=hellaswag,method=joint,model=a_b")
    'commonsense:dataset=hellaswag,method=joint'
    """
    scenario, _, options = run.partition(":")
    kept = [one for one in options.split(",") if one and not one.startswith("model")]
    return f"{scenario}:{','.join(kept)}" if kept else scenario


def _sample(record: Mapping[str, Any], states: Mapping[tuple[str, int], Any], path: Path) -> Sample:
    try:
        trial = int(record.get("train_trial_index") or 0)
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
    state = states.get((example, trial), {})
    instance, result = state.get("instance") or {}, state.get("result") or {}
    completions: list[Any] = result.get("completions") or [{}]
    answer = completions[0].get("text")
    references = instance.get("references") or ()
    right = [
        str(place) for place, one in enumerate(references) if "correct" in (one.get("tags") or ())
    ]
    fields = plain_fields(
        {key: instance.get(key) for key in ("split", "sub_split")}
        | (instance.get("extra_data") or {})
    )
    if len(references) > 1 and len(right) == 1:
        fields["gold"] = right[0]
    return Sample(
        example=example,
        asked=digest(instance.get("input"), references, (state.get("request") or {}).get("prompt")),
        values=values,
        answer=None if answer is None else shown(str(answer).strip(), 200),
        label=right[0] if right else None,
        state="failed" if result and not result.get("success", True) else "ok",
        repeat=trial + 1,
        fields=fields,
    )
