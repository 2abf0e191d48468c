"""A Hugging Face model card of one compressed variant, its section on bias filled from the audit.

What an audit does not know (a licence, a use, the training) is left out rather than invented.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, is_ok, records, select, variant_of
from fairweight.base.wording import missing, shown
from fairweight.errors import InputError
from fairweight.report.finding import ranked, unit_of_audit
from fairweight.report.markdown import escaped, rows_of
from fairweight.report.numbers import count, number
from fairweight.report.view_model import payer_row, payers_table, view

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


# The metadata of a Hugging Face model card, as YAML that holds whatever a name may be.

RELATIONS = ("quantized", "finetune", "adapter", "merge")  # what the hub accepts
MOST = 100  # classes and groups: the hub shows a list, not a table
LENGTH = 100


def metadata(
    result: AuditResult, variant: str, base_model: str | None, relation: str | None
) -> dict[str, Any]:
    """What the hub reads of a card; what an audit does not know is left out."""
    row = variant_row(result, variant)
    method = str(row.get("method", ""))
    own = None
    if method and method != "none":
        # The hub has no word for pruned models, which are derived all the same.
        own = "quantized" if "int8" in method else "finetune"
    made: dict[str, Any] = {}
    if base_model is not None:
        made["base_model"] = base_model
        if relation or own:
            made["base_model_relation"] = relation or own
    tags = {"quantized": ["quantized"], "finetune": ["pruned"]}.get(own or "", [])
    made["tags"] = ["fairweight", "model-compression", *tags]
    main = result.primary
    made["metrics"] = ["accuracy", "recall"] if result.classes else [main]
    first = next((given["name"] for given in result.provenance.inputs if given.get("name")), None)
    name = shown(row.get("dataset", first or "evaluation data"), LENGTH)
    # The lab's data are images; what others audit is not known.
    kind = "image-classification" if "dataset" in row else "other"
    metrics = []
    for metric, by in ((main, "overall"), (main, "group"), ("recall", "class")):
        rows = select(result, variant, metric, by)
        rows = at_task(rows, result, None) if by == "overall" else rows
        for row in records(rows[is_ok(rows) & rows["compressed"].notna()])[:MOST]:
            given = {key: value for key, value in row.items() if not missing(value)}
            places = [key for key in ("group", "class", "task") if key in given]
            where: dict[str, Any] = {key: shown(given[key], LENGTH) for key in places}
            of = ", ".join(where.values())
            extra = {
                key: round(float(given[key]), 6)
                for key in ("baseline", "shift", "sim_low", "sim_high", "noise_floor")
                if key in given
            }
            metrics.append(
                {
                    "type": metric,
                    "value": round(float(row["compressed"]), 6),
                    "name": f"{metric} ({of})" if of else metric,
                    "args": where | {"n": int(row["n"])} | extra,
                }
            )
    results = {
        "task": {"type": kind},
        "dataset": {"name": name, "type": name},
        "metrics": metrics,
    }
    made["model-index"] = [{"name": shown(variant, LENGTH), "results": [results]}]
    return made


def variant_row(result: AuditResult, variant: str) -> dict[str, Any]:
    """What the variants table says of the first member; nothing without one."""
    table = result.variants_table
    if table is None:
        return {}
    rows = records(table[table["variant"].astype(str) == variant])
    return {key: value for key, value in rows[0].items() if not missing(value)} if rows else {}


def to_yaml(value: Any, indent: int = 0) -> str:
    """Plain data as YAML: every text is quoted as JSON does, which YAML reads alike.

    >>> print(to_yaml({"tags": ["a: b"], "n": 1}), end="")
    tags:
    - "a: b"
    n: 1
    """
    space = " " * indent
    text = ""
    for key, held in value.items() if isinstance(value, Mapping) else ((None, v) for v in value):
        head = f"{space}-" if key is None else f"{space}{key}:"
        if isinstance(held, str) or not isinstance(held, Mapping | Sequence):
            text += f"{head} {json.dumps(held, ensure_ascii=False)}\n"
        elif key is None:
            text += f"{head} {to_yaml(held, indent + 2).lstrip()}"
        else:
            text += f"{head}\n{to_yaml(held, indent + 2 * isinstance(held, Mapping))}"
    return text


def to_eval_results(
    result: AuditResult,
    dataset_id: str,
    task_id: str = "default",
    variant: str | None = None,
    *,
    revision: str | None = None,
    source_url: str | None = None,
) -> str:
    """The accuracy of a variant as an entry for `.eval_results/NAME.yaml`, in percent.

    An entry has one number; what the audit knows beside it (both sides, the group that lost most)
    is in its notes.
    """
    name = one_variant(result, variant)
    if not dataset_id.strip() or "/" not in dataset_id:
        raise InputError(
            f"dataset_id (--dataset-id) cannot be '{dataset_id}'; give the id of a data set on the "
            "hub, such as cais/hle."
        )
    rows = at_task(select(result, name, result.primary, "overall"), result, None)
    rows = rows[rows["scope"] == "model"]
    if not len(rows) or not result.labelled or not unit_of_audit(result).share:
        raise InputError(
            "An entry holds the share of right predictions, and this audit has none; write another "
            "format (--format), or audit labels and predictions."
        )
    row = records(rows)[0]
    low, high = (100 * float(row[column]) for column in ("ci_low", "ci_high"))
    notes = (
        f"accuracy in percent of {shown(name, LENGTH)}, {count(row['n'])} examples; "
        f"{shown(result.baseline, LENGTH)} has {100 * row['baseline']:.2f}; change "
        f"{100 * row['shift']:+.2f} points, 95 % [{low:+.2f}, {high:+.2f}]"
    )
    groups = select(result, name, result.primary, "group")
    groups = groups[is_ok(groups) & (groups["scope"] == "model")]
    if len(groups):
        worst = records(groups.loc[[groups["shift"].idxmin()]])[0]
        notes += (
            f"; lowest change of a group: {shown(worst['group'], LENGTH)} "
            f"{100 * worst['shift']:+.2f} points, all groups at once "
            f"[{100 * worst['sim_low']:+.2f}, {100 * worst['sim_high']:+.2f}]"
        )
    entry: dict[str, Any] = {
        "dataset": {"id": dataset_id, "task_id": task_id}
        | ({"revision": revision} if revision else {}),
        "value": round(100 * float(row["compressed"]), 4),
        "date": result.provenance.created,
    }
    if source_url:
        entry["source"] = {"url": source_url, "name": "fairweight"}
    return to_yaml([entry | {"notes": notes}])


def one_variant(result: AuditResult, variant: str | None) -> str:
    """The variant that a card is about, which must be named where there are several."""
    if variant is None and len(result.variants) > 1:
        names = ", ".join(f"'{shown(name, 40)}'" for name in result.variants[:10])
        raise InputError(
            f"A card is about one variant, and this audit has {len(result.variants)} ({names}); "
            "say which (--variant NAME)."
        )
    return variant_of(result, variant)


ROWS = 30
_MEASURED = {
    "sparsity": "share of weights that are 0",
    "size_bytes": "size in bytes",
    "latency_ms": "latency in ms",
}
_TOPICS = ("leak", "pays more", "ruled out", "columns", "cannot tell")  # what a card says


def to_card(
    result: AuditResult,
    variant: str | None = None,
    *,
    base_model: str | None = None,
    relation: str | None = None,
) -> str:
    """The card of one variant as Markdown with YAML metadata.

    Parameters
    ----------
    variant
        Whose card it is; needed where the audit has several.
    base_model
        The id of the dense model on the hub; without one the metadata name none.
    relation
        One of `quantized`, `finetune`, `adapter`, `merge`; by default what the variants table says.
    """
    if relation is not None and relation not in RELATIONS:
        raise InputError(
            f"relation cannot be '{shown(relation, 40)}'; use what the hub accepts: "
            f"{', '.join(RELATIONS)}."
        )
    if base_model is not None and (not base_model.strip() or not base_model.isprintable()):
        raise InputError("base_model must be the id of a model on the hub; give OWNER/NAME.")
    made = view(result, [one_variant(result, variant)])
    section = made.sections[0]
    origin = f", made from {escaped(base_model)}" if base_model is not None else ""
    baseline = escaped(shown(section.baseline))
    lines = [
        f"# {escaped(shown(section.variant))}",
        "",
        f"A compressed model{origin}, compared with {baseline} on the same examples.",
    ]
    row = variant_row(result, section.variant)
    measured = {words: float(row[key]) for key, words in _MEASURED.items() if key in row}
    lines += [""] if measured else []
    lines += [f"- {words}: {number(value)}" for words, value in measured.items()]
    lines += ["", "## Bias, Risks, and Limitations", "", f"**{escaped(made.headline)}**", ""]
    sides = [("", section.said), *((f"{side.title}: ", side.said) for side in section.sides)]
    lines += [
        f"- {escaped(whose + line)}"
        for topic in _TOPICS
        for whose, said in sides
        for one in said
        if one.topic == topic
        for line in one.lines
    ]
    lines += ["", *(f"{escaped(line)}\n" for line in section.scope)]
    lines += ["## Evaluation", "", f"{escaped(made.brief.compared)}.", ""]
    (standing,) = ranked(made.findings)
    shifts = standing.verdict.shifts
    floors = any(not missing(change.noise_floor) for change in shifts)
    rows = [payer_row(standing, change, made.scale) for change in shifts[:ROWS]]
    lines += rows_of(payers_table(rows, made.members, variants=False, floors=floors))
    if len(shifts) > ROWS:
        left = count(len(shifts) - ROWS)
        lines += ["", f"… and {left} more classes and groups with smaller shifts."]
    version = escaped(result.provenance.version)
    lines += ["", f"Made with fairweight {version}. {escaped(made.reading)}"]
    front = to_yaml(metadata(result, section.variant, base_model, relation))
    return "\n".join([f"---\n{front}---\n", *lines, ""])
