"""A Hugging Face model card of one compressed variant, its section on bias filled from the audit.

What an audit does not know (a licence, a use, the training) is left out rather than invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import at_task, is_ok, records, select
from fairweight.base.wording import NOTHING, missing, shown
from fairweight.errors import InputError
from fairweight.report.finding import Finding, Payer, find
from fairweight.report.markdown import escaped
from fairweight.report.members import worded
from fairweight.report.numbers import (
    count,
    number,
    p_value,
    percent,
    points_interval,
    size_in_points,
)
from fairweight.report.sentences import (
    SIDES,
    beyond_retraining,
    facts,
    headline,
    named,
    reading,
    scope,
    sentences,
)

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult


# The metadata of a Hugging Face model card, as YAML that holds whatever a name may be.

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


ROWS = 30
_MEASURED = {
    "sparsity": "share of weights that are 0",
    "size_bytes": "size in bytes",
    "latency_ms": "latency in ms",
}


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
    if variant is None and len(result.variants) > 1:
        names = ", ".join(f"'{shown(name, 40)}'" for name in result.variants[:10])
        raise InputError(
            f"A card is about one variant, and this audit has {len(result.variants)} ({names}); "
            "say which (--variant NAME)."
        )
    if relation is not None and relation not in RELATIONS:
        raise InputError(
            f"relation cannot be '{shown(relation, 40)}'; the hub accepts {', '.join(RELATIONS)}."
        )
    if base_model is not None and (not base_model.strip() or not base_model.isprintable()):
        raise InputError("base_model must be the id of a model on the hub; give OWNER/NAME.")
    finding = find(result, variant)
    front = to_yaml(metadata(result, finding, base_model, relation))
    body = "\n".join(_body(result, finding, base_model))
    return f"---\n{front}---\n\n{body}\n"


def _body(result: AuditResult, finding: Finding, base_model: str | None) -> Iterator[str]:
    name, baseline = escaped(shown(finding.variant)), escaped(shown(finding.baseline))
    yield f"# {name}"
    yield ""
    origin = f", made from {escaped(base_model)}" if base_model is not None else ""
    yield f"A compressed model{origin}, compared with {baseline} on the same examples."
    row = variant_row(result, finding.variant)
    told = [f"{words}: {number(float(row[key]))}" for key, words in _MEASURED.items() if key in row]
    if told:
        yield ""
        yield from (f"- {line}" for line in told)
    yield ""
    yield "## Bias, Risks, and Limitations"
    yield ""
    yield f"**{escaped(headline([finding]))}**"
    beyond = beyond_retraining([finding])
    if beyond is not None:
        yield ""
        yield escaped(beyond)
    yield ""
    several = len(finding.verdicts) > 1
    for said in sentences(finding):
        if said.topic in ("leak", "pays more", "ruled out", "columns", "cannot tell"):
            side = ""
            if several and said.scope is not None:
                side = f"{worded(SIDES[said.scope], finding.members.kind)}: "
            yield f"- {escaped(side + said.text)}"
    yield ""
    yield from (f"{escaped(line)}\n" for line in scope(finding))
    yield "## Evaluation"
    yield ""
    yield escaped(facts(result, [finding]))
    yield ""
    yield from _table(finding)
    yield ""
    yield (
        f"Made with fairweight {escaped(result.provenance.version)}. {escaped(reading(finding))}"
    )


def _table(finding: Finding) -> Iterator[str]:
    shifts = finding.model.shifts
    floors = any(not missing(payer.context.noise_floor) for payer in shifts)
    heads = ["", "n", "baseline", "this model", "shift [limits]"]
    heads += [worded("retraining alone, up to", finding.members.kind)] if floors else []
    yield _row([*heads, "more than the rest?"])
    yield "|" + "---|" * (len(heads) + 1)
    excess = {payer.key: payer for payer in finding.model.excesses}
    for payer in shifts[:ROWS]:
        cells = [
            named(payer),
            count(payer.n),
            percent(payer.baseline),
            percent(payer.compressed),
            points_interval(payer.shift, payer.low, payer.high),
        ]
        floor = payer.context.noise_floor
        cells += [NOTHING if missing(floor) else size_in_points(floor)] if floors else []
        yield _row([*cells, _more(excess.get(payer.key), finding.alpha)])
    if len(shifts) > ROWS:
        yield ""
        yield f"… and {count(len(shifts) - ROWS)} more classes and groups with smaller shifts."


def _more(excess: Payer | None, alpha: float) -> str:
    if excess is None:
        return NOTHING
    if missing(excess.p) or excess.p > alpha:
        return f"not shown ({p_value(excess.p)})"
    return f"{'yes' if excess.shift < 0 else 'no, less'} ({p_value(excess.p)})"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"
