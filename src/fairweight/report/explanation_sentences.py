"""Which examples, and why, in plain sentences: associations with their intervals, never causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.explain.slices import UNSEARCHED
from fairweight.auditing.result import records
from fairweight.auditing.schema import Status
from fairweight.base.wording import missing, real, shown, text
from fairweight.report.figures.inputs import (
    at_cut,
    correlation,
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
    label_of,
    number,
    p_value,
    percent,
    points,
    points_interval,
    shift_of,
    signed,
    value_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult


# How bias goes along with distances of representations, in sentences: over variants, no cause.

NO_CAUSE = (
    "These are associations over variants, which share dense models and differ in more than their "
    "distances; they name no cause."
)


def similarity_sentences(result: AuditResult) -> Iterator[str]:
    """Distances beside the floor, then a sentence per measure and bias metric; none without."""
    points = result.explanations.get("similarity_points")
    if points is not None and len(points):
        for measure in dict.fromkeys(points["measure"]):
            yield from _distances(points[points["measure"] == measure], str(measure))
    frame = result.explanations.get("similarity")
    if frame is None:
        return
    for measure in dict.fromkeys(frame["measure"]):
        for metric in ("cev", "sde"):
            own = frame[(frame["measure"] == measure) & (frame["metric"] == metric)]
            yield from _associated(records(own), str(measure), label_of(metric))
    if frame["correlation"].notna().any():
        yield NO_CAUSE


def _distances(points: pd.DataFrame, measure: str) -> Iterator[str]:
    said = []
    for block, own in points.groupby("block", sort=False):
        known = own["distance"].dropna()
        if known.empty:
            continue
        low, high = number(float(known.min())), number(float(known.max()))
        floor = real(own["floor"].iloc[0])
        alone = "not known" if missing(floor) else number(floor)
        span = low if low == high else f"{low} to {high}"
        said.append(f"{span} in {shown(block)} (between dense models: {alone})")
    if said:
        yield (
            f"{measure.upper()} distances of the variants' representations to their dense models: "
            f"{'; '.join(said)}."
        )


def _associated(rows: list[dict[str, Any]], measure: str, word: str) -> Iterator[str]:
    told = [row for row in rows if not missing(row["correlation"])]
    rest = [row for row in rows if missing(row["correlation"])]
    if told:
        sizes = sorted({int(row["n_variants"]) for row in told})
        span = count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
        each = ", ".join(f"{correlation(row)} in {shown(row['block'])}" for row in told)
        yield (
            f"Over {span} variants, the correlation of {word} with the {measure.upper()} distance "
            f"is {each}."
        )
    reasons: dict[str, list[str]] = {}
    for row in rest:
        reasons.setdefault(untold(row) or "cannot tell", []).append(shown(row["block"]))
    for reason, blocks in reasons.items():
        yield (
            f"How {word} goes with the {measure.upper()} distance in {', '.join(blocks)}: {reason}."
        )


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
        tables = {
            name: frame[frame["variant"] == variant] if "variant" in frame.columns else frame
            for name, frame in result.explanations.items()
        }
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
        alone = percent(floor)
        ends = [real(row[name]) for name in ("floor_low", "floor_high")]
        if not any(map(missing, ends)):
            alone += f" [{percent(ends[0])}, {percent(ends[1])}]"
        p = real(row["p_retraining"])
        if not missing(p):
            word = "more than retraining" if p <= alpha else "no evidence of more than retraining"
            alone += f"; {worded(word, members)} ({p_value(p)})"
        yield (
            f"{said}; in splits with fewer members compression gives {percent(matched)} and "
            f"{worded('retraining alone', members)} {alone}."
        )


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
        reasons = [reason for row in rows if (reason := Status.of(row["status"]).reason)]
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
    told = [row for row in rows if Status.of(row["status"]).kind == "confirmed"]
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


# What a mitigation did, in plain sentences: what it was for, what got better, who got worse.

SOME_GROUPS = 4
SPOKEN = ("accuracy", "recall", "bias_amplification", "tcb")  # the others say the same twice
ALL_DEFERRED = "+cascade-1"
NO_CASCADE = "every input goes to the dense model, so this cascade is no help."
# What each kind of mitigation is for; the first metric that a table has is spoken of.
AIMS: dict[str, tuple[str, ...]] = {
    "thresholds": ("tcb", "recall"),
    "overrides": ("bias_amplification", "accuracy"),
    "cascade": ("worst_group", "accuracy"),
}


def mitigation_sentences(mitigation: pd.DataFrame, kind: str) -> list[str]:
    """For each new variant: did it help against its origin, and who got worse?

    Parameters
    ----------
    mitigation
        The table of that name.
    kind
        thresholds, overrides or cascade.
    """
    said = []
    for variant in dict.fromkeys(mitigation["variant"]):
        own = mitigation[mitigation["variant"] == variant]
        origins = list(dict.fromkeys(own["against"]))
        changes = own[own["against"] == origins[0]]
        head = f"{shown(variant)} against {shown(origins[0])}: "
        everything = kind == "cascade" and str(variant).endswith(ALL_DEFERRED)
        said.append(head + (NO_CASCADE if everything else _helped(changes, kind)))
        said.append(head + _worse(changes))
        if len(origins) > 1:
            left = own[own["against"] == origins[1]]
            said.append(f"{shown(variant)} against {shown(origins[1])}: {_worse(left)}")
    return said


def _helped(changes: pd.DataFrame, kind: str) -> str:
    from fairweight.auditing.metrics import metric as registered

    present = changes[changes["shift"].notna()]
    metric = next((m for m in AIMS[kind] if (present["metric"] == m).any()), None)
    if metric is None:
        return "whether it helps cannot be told, what it is for is not estimable here."
    aim = present[present["metric"] == metric]
    whole = aim[aim["by"] == "overall"]
    rows = records(aim if whole.empty else whole)
    better = [row for row in rows if row["verdict"] == "better"]
    worse = [row for row in rows if row["verdict"] == "worse"]
    best = {"one": ", best at 1,", "zero": ", best at 0,"}.get(registered(metric).better, "")
    name = f"{label_of(metric)}{best}"
    right, wrong = (f"{count(len(part))} of {count(len(rows))} rows" for part in (better, worse))
    if better and not worse:
        return f"it helps, {name} moves the right way in {right}: {_some(better)}."
    if better:
        return (
            f"it helps some, {name} moves the right way in {right} ({_some(better)}) "
            f"and the wrong way in {wrong} ({_some(worse)})."
        )
    if worse:
        return f"it does not help, {name} moves the wrong way in {wrong}: {_some(worse)}."
    return (
        f"it is not shown to help, {name} is nowhere shown to be better on other examples too: "
        f"{_some(rows)}."
    )


def _worse(changes: pd.DataFrame) -> str:
    """Who lost: groups and classes first, then everybody."""
    changes = changes[changes["metric"].isin(SPOKEN)]
    rows = records(changes[changes["verdict"] == "worse"])
    parts = [row for row in rows if row["by"] in ("group", "class")]
    n = int(changes["by"].isin(["group", "class"]).sum())
    comparisons = "comparison" if n == 1 else "comparisons"
    if not parts:
        told = f"no group or class is shown to be worse in {count(n)} {comparisons}"
    else:
        told = f"worse in {count(len(parts))} of {count(n)} {comparisons} by group and class, " + (
            _some(parts)
        )
    whole = [row for row in rows if row["by"] == "overall"]
    return told + (f"; overall worse: {_some(whole)}" if whole else "") + "."


def _some(rows: list[dict[str, Any]]) -> str:
    ordered = sorted(rows, key=lambda row: -abs(float(row["shift"])))
    told = "; ".join(_row(row) for row in ordered[:SOME_GROUPS])
    left = len(ordered) - SOME_GROUPS
    return told + (f" and {count(left)} more" if left > 0 else "")


def _row(row: dict[str, Any]) -> str:
    metric = str(row["metric"])
    low, high = (row["low"], row["high"])
    if not missing(row["sim_low"]):
        low, high = row["sim_low"], row["sim_high"]
    where = [shown(part) for part in (text(row["group"]), text(row["class"])) if part is not None]
    task = text(row["task"])
    place = ", ".join([*([shown(task)] if task is not None else []), *where]) or "all"
    change = shift_of(metric, float(row["shift"]), real(low), real(high))
    return (
        f"{place}: {label_of(metric)} {value_of(metric, float(row['before']))} → "
        f"{value_of(metric, float(row['after']))} ({change})"
    )
