"""The metadata of a Hugging Face model card, as YAML that holds whatever a name may be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairweight.report.finding import Finding
from fairweight.report.numbers import missing, shown
from fairweight.report.rows import at_task, is_ok, records, select

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

RELATIONS = ("quantized", "finetune", "adapter", "merge")  # what the hub accepts
MOST = 100  # classes and groups: the hub shows a list, not a table
LENGTH = 100


def metadata(
    result: AuditResult, finding: Finding, base_model: str | None, relation: str | None
) -> dict[str, Any]:
    """What the hub reads of a card; what an audit does not know is left out."""
    row = variant_row(result, finding.variant)
    made: dict[str, Any] = {}
    if base_model is not None:
        made["base_model"] = base_model
        told = relation or _relation(row)
        if told is not None:
            made["base_model_relation"] = told
    made["tags"] = ["fairweight", "model-compression", *_tags(row)]
    made["metrics"] = ["accuracy", "recall"]
    made["model-index"] = [{"name": _name(finding.variant), "results": _results(result, finding)}]
    return made


def variant_row(result: AuditResult, variant: str) -> dict[str, Any]:
    """What the variants table says of the first member; nothing without one."""
    table = result.variants_table
    if table is None:
        return {}
    rows = records(table[table["variant"].astype(str) == variant])
    return {key: value for key, value in rows[0].items() if not missing(value)} if rows else {}


def _relation(row: Mapping[str, Any]) -> str | None:
    """Quantised ones are told; the hub has no word for pruned ones, which are derived all the same.

    >>> [_relation({"method": m}) for m in ("int8-static", "gmp")], _relation({})
    (['quantized', 'finetune'], None)
    """
    method = str(row.get("method", ""))
    if not method or method == "none":
        return None
    return "quantized" if "int8" in method else "finetune"


def _tags(row: Mapping[str, Any]) -> list[str]:
    relation = _relation(row)
    return {"quantized": ["quantized"], "finetune": ["pruned"]}.get(relation or "", [])


def _results(result: AuditResult, finding: Finding) -> list[dict[str, Any]]:
    row = variant_row(result, finding.variant)
    known = row.get("dataset")
    first = next(
        (str(given["name"]) for given in result.provenance.inputs if given.get("name")), ""
    )
    name = _name(known) if known is not None else _name(first) if first else "evaluation data"
    kind = "image-classification" if known is not None else "other"  # the lab's data are images
    metrics = list(_metrics(result, finding.variant))
    return [
        {
            "task": {"type": kind},
            "dataset": {"name": name, "type": name},
            "metrics": metrics,
        }
    ]


def _metrics(result: AuditResult, variant: str) -> Iterator[dict[str, Any]]:
    for metric, by in (("accuracy", "overall"), ("accuracy", "group"), ("recall", "class")):
        rows = select(result, variant, metric, by)
        rows = at_task(rows, result, None) if by == "overall" else rows
        for row in records(rows[is_ok(rows) & rows["compressed"].notna()])[:MOST]:
            where = {key: _name(row[key]) for key in ("group", "class", "task") if _given(row[key])}
            of = ", ".join(where.values())
            extra = {
                key: round(float(row[key]), 6)
                for key in ("baseline", "shift", "sim_low", "sim_high", "noise_floor")
                if _given(row[key])
            }
            yield {
                "type": metric,
                "value": round(float(row["compressed"]), 6),
                "name": f"{metric} ({of})" if of else metric,
                "args": {**where, "n": int(row["n"]), **extra},
            }


def _given(value: Any) -> bool:
    return not missing(value)


def _name(value: Any) -> str:
    return shown(value, LENGTH)


def to_yaml(value: Any, indent: int = 0) -> str:
    """Plain data as YAML: every text is quoted as JSON does, which YAML reads alike.

    >>> print(to_yaml({"tags": ["a: b"], "n": 1}), end="")
    tags:
    - "a: b"
    n: 1
    """
    space = " " * indent
    if isinstance(value, Mapping):
        return "".join(_entry(f"{space}{key}:", held, indent) for key, held in value.items())
    return "".join(_item(space, held, indent) for held in value)


def _entry(head: str, held: Any, indent: int) -> str:
    if isinstance(held, Mapping):
        return f"{head}\n{to_yaml(held, indent + 2)}"
    if isinstance(held, Sequence) and not isinstance(held, str):
        return f"{head}\n{to_yaml(held, indent)}"
    return f"{head} {json.dumps(held, ensure_ascii=False)}\n"


def _item(space: str, held: Any, indent: int) -> str:
    if isinstance(held, Mapping):
        inner = to_yaml(held, indent + 2)
        return f"{space}- {inner.lstrip()}"
    return f"{space}- {json.dumps(held, ensure_ascii=False)}\n"
