"""Which examples, and why, in plain sentences: associations with their intervals, never causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.explain.slices import UNSEARCHED
from fairweight.report.figures.inputs import (
    at_cut,
    cut_name,
    cuts,
    in_words,
    noted,
    untold,
    usual_cut,
)
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import (
    bracket,
    count,
    missing,
    number,
    p_value,
    percent,
    points,
    points_interval,
    real,
    shown,
    signed,
    text,
)
from fairweight.report.rows import records
from fairweight.report.similarity_sentences import similarity_sentences

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

SOME = 5  # groups, slices or properties that a sentence names
_ERRORS = {  # the most cautious fit that there is
    "ols-two-way": "errors clustered on lineages and classes",
    "ols-cluster": "errors clustered on lineages",
    "ols-hac": "HAC errors",
}
_TERMS = {
    "imbalance": "its share of the training data",
    "class_entropy": "the entropy of its images",
    "accuracy0": "its accuracy before compression",
}


def explanation_sentences(result: AuditResult) -> list[str]:
    """What the tables of exemplars and explanations say; nothing where there are none."""
    return [
        sentence if whose is None else f"{shown(whose)}: {sentence}"
        for whose, said in sentences_by_variant(result).items()
        for sentence in said
    ]


def sentences_by_variant(result: AuditResult) -> dict[str | None, list[str]]:
    """The same by variant; under None what is said of all models together."""
    alpha = float(result.provenance.options.get("alpha", 0.05))
    members = members_of(result)
    said: dict[str | None, list[str]] = {}
    for variant in result.variants:
        tables = {name: _own(frame, variant) for name, frame in result.explanations.items()}
        said[variant] = [
            *_exemplars(tables, alpha, members),
            *_accuracy(tables),
            *_enrichment(tables, alpha, members),
            *_risk(tables),
            *_slices(tables, variant, result.notes),
            *_individuals(tables),
            *_properties(tables, alpha),
        ]
    said[None] = [*_classes(result), *similarity_sentences(result)]
    return {whose: sentences for whose, sentences in said.items() if sentences}


def _own(frame: pd.DataFrame, variant: str) -> pd.DataFrame:
    return frame[frame["variant"] == variant] if "variant" in frame.columns else frame


def _tasks(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each task with what a sentence says of it."""
    for task in dict.fromkeys(text(task) for task in frame["task"]):
        rows = frame[frame["task"].isna() if task is None else frame["task"] == task]
        yield ("" if task is None else f" ({shown(task)})"), rows


def _limits(low: Any, high: Any) -> str:
    if missing(low) or missing(high):
        return ""
    return f" [{number(real(low))}, {number(real(high))}]"


def _exemplars(tables: dict[str, pd.DataFrame], alpha: float, members: str) -> Iterator[str]:
    frame = tables.get("exemplar_counts")
    for task, rows in [] if frame is None else _tasks(frame):
        way = cuts(rows)[0]
        row = records(at_cut(rows, way))[0]
        if missing(row["n_exemplars"]):
            yield f"exemplars{task}: {untold(row) or 'cannot tell'}."
            continue
        said = (
            f"{count(row['n_exemplars'])} of {count(row['n_examples'])} examples "
            f"({percent(real(row['share']))}) are exemplars{task}, {cut_name(*way)}"
        )
        floor, matched = real(row["floor"]), real(row.get("matched"))
        if missing(floor):
            why = noted(row)
            more = "" if why is None else f" ({shown(why)})"
            unknown = worded("how many retraining alone gives is not known", members)
            yield f"{said}; {unknown}{more}."
            continue
        alone = f"{percent(floor)}{_percents(row['floor_low'], row['floor_high'])}"
        yield (
            f"{said}; in splits with fewer members compression gives {percent(matched)} and "
            f"{worded('retraining alone', members)} "
            f"{alone}{_told(real(row['p_retraining']), alpha, members)}."
        )


def _percents(low: Any, high: Any) -> str:
    ends = [percent(real(end)) for end in (low, high)]
    return "" if missing(low) or missing(high) else f" [{ends[0]}, {ends[1]}]"


def _told(p: float, alpha: float, members: str) -> str:
    if missing(p):
        return ""
    word = "more than retraining" if p <= alpha else "no evidence of more than retraining"
    return f"; {worded(word, members)} ({p_value(p)})"


def _accuracy(tables: dict[str, pd.DataFrame]) -> Iterator[str]:
    frame = tables.get("exemplar_accuracy")
    for task, rows in [] if frame is None else _tasks(frame):
        way = usual_cut(rows)
        parts = {row["part"]: row for row in records(at_cut(rows, way))}
        inside, others = parts.get("exemplars"), parts.get("others")
        if inside is None or others is None or missing(inside["shift"]):
            continue
        yield (
            f"on exemplars ({cut_name(*way)}, n = {count(inside['n'])}){task} accuracy goes from "
            f"{percent(real(inside['baseline']))} to {percent(real(inside['compressed']))}, "
            f"{_shift(inside)}; on the others {_shift(others)}."
        )


def _shift(row: dict[str, Any]) -> str:
    return points_interval(real(row["shift"]), real(row["shift_low"]), real(row["shift_high"]))


def _enrichment(tables: dict[str, pd.DataFrame], alpha: float, members: str) -> Iterator[str]:
    frame = tables.get("enrichment")
    for task, every in [] if frame is None else _tasks(frame):
        for by in dict.fromkeys(every["by"]):
            rows = every[every["by"] == by]
            way = usual_cut(rows)
            yield from _over_indexed(
                records(at_cut(rows, way)),
                "groups" if by == "group" else "classes",
                f"among exemplars ({cut_name(*way)}){task}",
                alpha,
                members,
            )


def _over_indexed(
    rows: list[dict[str, Any]], words: str, among: str, alpha: float, members: str
) -> Iterator[str]:
    alone = worded("retraining alone", members)
    known = [row for row in rows if not missing(row["p_adjusted"]) and untold(row) is None]
    if not known:
        reasons = [reason for row in rows if (reason := _reason(row))]
        why = f" ({shown(reasons[0])})" if reasons else ""
        yield (
            f"{words} {among} cannot be compared with {alone}{why}; their shares may "
            "reflect difficulty alone."
        )
        return
    beyond = [row for row in known if real(row["p_adjusted"]) <= alpha]
    if not beyond:
        yield f"{words} {among}: as with {alone}."
    for row in sorted(beyond, key=lambda row: real(row["p_adjusted"]))[:SOME]:
        more = "more" if real(row["ratio"]) > 1 else "less"
        name = row["group"] if words == "groups" else f"class {row['class']}"
        odds = f"{number(real(row['odds_ratio']))}{_limits(row['or_low'], row['or_high'])}"
        ratio = f"{number(real(row['ratio']))}{_limits(row['ratio_low'], row['ratio_high'])}"
        yield (
            f"{shown(name, 80)} is {more} common {among} than with {alone}: odds ratio "
            f"{odds}; at equal numbers of members {ratio} times that of "
            f"{worded('retraining', members)} ({number(real(row['retraining_odds_ratio']))}), "
            f"{p_value(real(row['p_adjusted']))} corrected."
        )
    yield from _more(len(beyond), "enrichment")


def _reason(row: dict[str, Any]) -> str:
    """What stands behind the kind of a status: `not_estimable: no exemplars` → `no exemplars`."""
    return (text(row["status"]) or "").partition(": ")[2]


def _risk(tables: dict[str, pd.DataFrame]) -> Iterator[str]:
    frame = tables.get("risk")
    for task, rows in [] if frame is None else _tasks(frame):
        known = [row for row in records(rows) if not missing(row["auc"])]
        for row in sorted(known, key=lambda row: -real(row["auc"]))[:1]:
            yield (
                f"from the dense models alone, exemplars{task} are best found by "
                f"{shown(str(row['score']).replace('_', ' '))}, AUC {number(real(row['auc']))}"
                f"{_limits(row['auc_low'], row['auc_high'])}."
            )


def _slices(tables: dict[str, pd.DataFrame], variant: str, notes: Sequence[str]) -> Iterator[str]:
    frame = tables.get("slices")
    if frame is None:
        return
    rows = records(frame)
    if not rows:
        unsearched = [note for note in notes if note.startswith(f"{variant}: {UNSEARCHED}")]
        for note in unsearched:
            said = note.removeprefix(f"{variant}: ")
            yield shown(said[0].lower() + said[1:], 200)
        if not unsearched:
            yield "no slice found that pays in excess."
        return
    told = [row for row in rows if str(row["status"]).startswith("confirmed")]
    for row in told[:SOME]:
        excess = points_interval(
            real(row["excess"]), real(row["excess_low"]), real(row["excess_high"])
        )
        yield (
            f"{shown(row['slice'], 80)} differs from the rest by {excess} in the half of the data "
            f"that was not searched (n = {count(row['n_confirmation'])}, "
            f"{p_value(real(row['p_confirmation']))})."
        )
    yield from _more(len(told), "slices")
    if len(rows) > len(told):
        yield (
            f"{count(len(rows) - len(told))} of {count(len(rows))} slices found in one half of the "
            "data are not confirmed in the other."
        )


def _individuals(tables: dict[str, pd.DataFrame]) -> Iterator[str]:
    frame = tables.get("individuals")
    for task, rows in [] if frame is None else _tasks(frame):
        shifts = [real(s) for s in rows["shift_shrunk"].tolist() if not missing(s)]
        if not shifts:
            continue
        lost = int((rows["shift_high"] < 0).sum())
        low, high = min(shifts), max(shifts)
        yield (
            f"shrunken shifts of {count(len(shifts))} individuals{task} lie between "
            f"{points(low, high)} and {points(high, low)}; the interval of {count(lost)} lies "
            "below 0."
        )


def _properties(tables: dict[str, pd.DataFrame], alpha: float) -> Iterator[str]:
    frame = tables.get("example_properties")
    if frame is None:
        return
    rows = [row for row in records(frame) if not missing(row["effect"])]
    told = [row for row in rows if real(row["p_adjusted"]) <= alpha]
    for row in sorted(told, key=lambda row: real(row["p_adjusted"]))[:SOME]:
        more = "more" if real(row["effect"]) > 0 else "less"
        per = (
            "per standard deviation"
            if row["kind"] == "per standard deviation"
            else "against the rest"
        )
        ends = bracket(real(row["low"]), real(row["high"]), decimals=2)
        yield (
            f"{_property(row['property'])} is associated with being lost {more} often among what "
            f"the dense models got right: log odds {signed(real(row['effect']), 2)} {ends} {per}, "
            f"{p_value(real(row['p_adjusted']))} corrected."
        )
    yield from _more(len(told), "example_properties")
    rest = [_property(row["property"]) for row in rows if row not in told]
    if rest:
        some = ", ".join(rest[:SOME]) + (" …" if len(rest) > SOME else "")
        yield f"no evidence of an association with being lost: {some}."


def _property(name: Any) -> str:
    return shown(in_words(str(name)), 80)


def _classes(result: AuditResult) -> Iterator[str]:
    frame = result.explanations.get("class_coefficients")
    if frame is None or frame.empty:
        return
    fit = next((fit for fit in _ERRORS if (frame["fit"] == fit).any()), None)
    if fit is None:
        return
    rows = {str(row["term"]): row for row in records(frame[frame["fit"] == fit])}
    errors = _ERRORS[fit]
    for term, words in _TERMS.items():
        row = rows.get(term)
        if row is None:
            continue
        if missing(row["coefficient"]) or missing(row["low"]):
            yield f"How class accuracy goes with {words}: {untold(row) or 'cannot tell'}."
            continue
        value = f"{number(real(row['coefficient']))}{_limits(row['low'], row['high'])}"
        if real(row["low"]) > 0 or real(row["high"]) < 0:
            yield (
                f"The accuracy of a class is associated with {words}: coefficient {value} "
                f"({errors}, other terms held equal)."
            )
        else:
            yield f"No evidence that the accuracy of a class goes with {words}: {value} ({errors})."


def _more(total: int, table: str) -> Iterator[str]:
    if total > SOME:
        yield f"… and {count(total - SOME)} more in the table {table}."
