"""A Hugging Face model card of one compressed variant, its section on bias filled from the audit.

What an audit does not know (a licence, a use, the training) is left out rather than invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairweight.errors import InputError
from fairweight.report.card_metadata import RELATIONS, metadata, to_yaml, variant_row
from fairweight.report.finding import Finding, find
from fairweight.report.gate.markdown import escaped
from fairweight.report.lead_sentences import beyond_retraining, facts, headline
from fairweight.report.members import worded
from fairweight.report.numbers import (
    NOTHING,
    count,
    missing,
    number,
    p_value,
    percent,
    points_interval,
    shown,
    size_in_points,
)
from fairweight.report.sentences import SIDES, named, reading, scope, sentences
from fairweight.report.verdict import Payer

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

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
