"""Which examples, and why, in plain sentences: associations with their intervals, never causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from fairweight.auditing.explain.slices import UNSEARCHED
from fairweight.auditing.metrics import metric as registered
from fairweight.auditing.result import records
from fairweight.auditing.schema import Status
from fairweight.base.wording import counted, missing, real, shown, text
from fairweight.report.figures.inputs import (
    at_cut,
    correlation,
    cut_name,
    cuts,
    property_label,
    usual_cut,
    why_unknown,
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
from fairweight.report.unit_sentences import mixed_sentences, unit_sentences

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
        for measure, of_measure in points.groupby("measure", sort=False):
            said = []
            for block, own in of_measure.groupby("block", sort=False):
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
                    f"{str(measure).upper()} distances of the variants' representations to their "
                    f"dense models: {'; '.join(said)}."
                )
    frame = result.explanations.get("similarity")
    if frame is None:
        return
    for measure, metric in product(dict.fromkeys(frame["measure"]), ("cev", "sde")):
        word, distance = label_of(metric), f"{str(measure).upper()} distance"
        rows = records(frame[(frame["measure"] == measure) & (frame["metric"] == metric)])
        told = [row for row in rows if not missing(row["correlation"])]
        if told:
            sizes = sorted({int(row["n_variants"]) for row in told})
            span = " to ".join(dict.fromkeys(count(n) for n in (sizes[0], sizes[-1])))
            each = ", ".join(f"{correlation(row)} in {shown(row['block'])}" for row in told)
            yield f"Over {span} variants, the correlation of {word} with the {distance} is {each}."
        reasons: dict[str, list[str]] = {}
        for row in rows:
            if missing(row["correlation"]):
                reasons.setdefault(why_unknown(row) or "cannot tell", []).append(
                    shown(row["block"])
                )
        for reason, blocks in reasons.items():
            yield f"How {word} goes with the {distance} in {', '.join(blocks)}: {reason}."
    if frame["correlation"].notna().any():
        yield NO_CAUSE


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
    numeric = result.outcome is not None and not result.outcome.binary
    losers: list[str] = []
    if "sensitivity" in result.explanations:
        from fairweight.auditing.sensitivity import shown_to_lose  # loads scipy

        losers = shown_to_lose(result)
    said: dict[str | None, list[str]] = {}
    for variant in result.variants:
        tables = {
            name: frame[frame["variant"] == variant] if "variant" in frame.columns else frame
            for name, frame in result.explanations.items()
        }
        said[variant] = [
            *_about_exemplars(tables, alpha, members),
            *_about_largest_losses(tables),
            *_about_losses(tables, variant, alpha, result.notes, numeric),
            *unit_sentences(tables.get("sensitivity"), losers),
            *mixed_sentences(result.explanations.get("mixed_precision")),
        ]
    said[None] = [*_about_classes(result), *similarity_sentences(result)]
    return {whose: sentences for whose, sentences in said.items() if sentences}


def _tasks(frame: pd.DataFrame | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each task with what a sentence says of it; none without a table."""
    if frame is None:
        return
    for task in dict.fromkeys(text(task) for task in frame["task"]):
        rows = frame[frame["task"].isna() if task is None else frame["task"] == task]
        yield ("" if task is None else f" ({shown(task)})"), rows


def _limits(low: Any, high: Any) -> str:
    """Limits in brackets, with a space before them; nothing where one is missing."""
    if missing(low) or missing(high):
        return ""
    return f" [{number(real(low))}, {number(real(high))}]"


def _about_exemplars(tables: dict[str, pd.DataFrame], alpha: float, members: str) -> Iterator[str]:
    """How many there are, how accurate models are on them, who is among them, who finds them."""
    alone = worded("retraining alone", members)
    for task, rows in _tasks(tables.get("exemplar_counts")):
        way = cuts(rows)[0]
        row = records(at_cut(rows, way))[0]
        if missing(row["n_exemplars"]):
            yield f"exemplars{task}: {why_unknown(row) or 'cannot tell'}."
            continue
        some = f"{count(row['n_exemplars'])} of {count(row['n_examples'])} examples"
        some += f" ({percent(real(row['share']))}){task}"
        said = f"on {some} the typical compressed model disagrees with the typical dense one"
        if way[0] != "modal":
            said = f"on {some} predictions differ most ({cut_name(*way)})"
        floor, matched = real(row["floor"]), real(row.get("matched"))
        if missing(floor):
            unknown = worded("cannot be compared with retraining", members)
            yield f"{said}; {unknown}: too few dense models."
            continue
        given = percent(floor)
        ends = [real(row[name]) for name in ("floor_low", "floor_high")]
        if not any(map(missing, ends)):
            given += f" [{percent(ends[0])}, {percent(ends[1])}]"
        p = real(row["p_retraining"])
        if not missing(p):
            word = "more than retraining" if p <= alpha else "not shown to be more than retraining"
            given += f"; {worded(word, members)} ({p_value(p)})"
        yield f"{said}; with fewer members: {percent(matched)}, {alone} {given}."
    for task, rows in _tasks(tables.get("exemplar_accuracy")):
        way = usual_cut(rows)
        parts = {row["part"]: row for row in records(at_cut(rows, way))}
        inside, others = parts.get("exemplars"), parts.get("others")
        if inside is None or others is None or missing(inside["shift"]):
            continue
        yield (
            f"accuracy on exemplars ({cut_name(*way)}, n = {count(inside['n'])}){task}: "
            f"{percent(real(inside['baseline']))} → {percent(real(inside['compressed']))}, "
            f"{_in_points(inside, 'shift')}; on the others {_in_points(others, 'shift')}."
        )
    for task, every in _tasks(tables.get("enrichment")):
        for by, of_kind in every.groupby("by", sort=False):
            way = usual_cut(of_kind)
            kind_rows = records(at_cut(of_kind, way))
            words = "groups" if by == "group" else "classes"
            among = f"among exemplars ({cut_name(*way)}){task}"
            known = [
                r for r in kind_rows if not missing(r["p_adjusted"]) and why_unknown(r) is None
            ]
            if not known:
                reasons = [reason for r in kind_rows if (reason := Status.of(r["status"]).reason)]
                because = f" ({shown(reasons[0])})" if reasons else ""
                if reasons and "exemplar" in reasons[0]:
                    yield f"{words} {among}: not compared ({shown(reasons[0])})."
                    continue
                yield (
                    f"{words} {among} cannot be compared with {alone}{because}; their shares may "
                    "reflect difficulty alone."
                )
                continue
            beyond = [row for row in known if real(row["p_adjusted"]) <= alpha]
            if not beyond:
                yield f"{words} {among}: no more than {alone} shows."
            for row in sorted(beyond, key=lambda row: real(row["p_adjusted"]))[:SOME]:
                more = "more" if real(row["ratio"]) > 1 else "less"
                name = row["group"] if words == "groups" else f"class {row['class']}"
                odds = f"{number(real(row['odds_ratio']))}{_limits(row['or_low'], row['or_high'])}"
                ratio = f"{number(real(row['ratio']))}"
                ratio += _limits(row["ratio_low"], row["ratio_high"])
                yield (
                    f"{shown(name, 80)} is {more} common {among} than with {alone}: odds ratio "
                    f"{odds}, n = {count(row['n_exemplars'])}; with as many members {ratio} times "
                    f"that of {worded('retraining', members)} "
                    f"({number(real(row['retraining_odds_ratio']))}), "
                    f"{p_value(real(row['p_adjusted']))} corrected."
                )
            yield from _more(len(beyond), "enrichment")
    for task, rows in _tasks(tables.get("risk")):
        scored = [row for row in records(rows) if not missing(row["auc"])]
        for row in sorted(scored, key=lambda row: -real(row["auc"]))[:1]:
            score = shown(str(row["score"]).replace("_", " "))
            yield (
                f"{score} best predicts which predictions change{task}: AUC "
                f"{number(real(row['auc']))}{_limits(row['auc_low'], row['auc_high'])}, "
                f"n = {count(row['n_exemplars'])}."
            )


def _in_points(row: dict[str, Any], name: str) -> str:
    """A shift, or an excess, with its interval."""
    return points_interval(real(row[name]), real(row[f"{name}_low"]), real(row[f"{name}_high"]))


def _about_largest_losses(tables: dict[str, pd.DataFrame]) -> Iterator[str]:
    """Of outcomes that are numbers: how much the examples that lose most bear of all losses."""
    for task, rows in _tasks(tables.get("largest_losses")):
        listed = records(rows)
        if not listed:
            yield f"no example lost anything{task}."
            continue
        half = next((i for i, r in enumerate(listed, 1) if real(r["share_of_losses"]) >= 0.5), 0)
        bear = f"half of all losses{task} falls on {counted(half, 'example')}"
        if not half:
            share = percent(real(listed[-1]["share_of_losses"]), 0)
            whom = f"the {count(len(listed))} examples that lose most{task}"
            bear = f"{whom} account for {share} of all losses"
        largest, whose = number(real(listed[0]["loss"])), shown(listed[0]["example_id"])
        yield f"{bear}; the largest is {largest} (example {whose})."


def _about_losses(
    tables: dict[str, pd.DataFrame], variant: str, alpha: float, notes: Sequence[str], numeric: bool
) -> Iterator[str]:
    """Slices that pay, the range of individuals, and properties of what was lost."""
    frame = tables.get("slices")
    rows = [] if frame is None else records(frame)
    if frame is not None and not rows:
        unsearched = [note for note in notes if note.startswith(f"{variant}: {UNSEARCHED}")]
        for note in unsearched:
            said = note.removeprefix(f"{variant}: ")
            yield shown(said[0].lower() + said[1:], 200)
        if not unsearched:
            yield "no slice lost clearly more than the rest."
    confirmed = [row for row in rows if Status.of(row["status"]).kind == "confirmed"]
    for row in confirmed[:SOME]:
        value, low, high = (real(row[f"excess{end}"]) for end in ("", "_low", "_high"))
        by = shift_of("outcome" if numeric else "accuracy", value, low, high)
        yield (
            f"{shown(row['slice'], 80)} differs from the rest by {by} in "
            "the half of the data that was not searched "
            f"(n = {count(row['n_confirmation'])}, {p_value(real(row['p_confirmation']))})."
        )
    yield from _more(len(confirmed), "slices")
    if len(rows) > len(confirmed):
        yield (
            f"{count(len(rows) - len(confirmed))} of {count(len(rows))} slices found in one half "
            "of the data were not confirmed in the other."
        )
    for task, own in _tasks(tables.get("individuals")):
        shifts = [real(s) for s in own["shift_shrunk"].tolist() if not missing(s)]
        if not shifts:
            continue
        lost = int((own["shift_high"] < 0).sum())
        low, high = min(shifts), max(shifts)
        yield (
            f"{count(len(shifts))} individuals{task} change by {points(low, high)} to "
            f"{points(high, low)} (shrunken); a loss is shown for {count(lost)}."
        )
    frame = tables.get("example_properties")
    rows = [] if frame is None else [r for r in records(frame) if not missing(r["effect"])]
    told = [row for row in rows if real(row["p_adjusted"]) <= alpha]
    for row in sorted(told, key=lambda row: real(row["p_adjusted"]))[:SOME]:
        more = "more" if real(row["effect"]) > 0 else "less"
        scaled = row["kind"] == "per standard deviation"
        per = "per standard deviation" if scaled else "against the rest"
        ends = bracket(real(row["low"]), real(row["high"]), decimals=2)
        name = shown(property_label(str(row["property"])), 80)
        yield (
            f"{name}: examples that the dense models got right are lost {more} often; log odds "
            f"{signed(real(row['effect']), 2)} {ends} {per}, "
            f"{p_value(real(row['p_adjusted']))} corrected."
        )
    yield from _more(len(told), "example_properties")
    rest = [shown(property_label(str(row["property"])), 80) for row in rows if row not in told]
    if rest:
        some = ", ".join(rest[:SOME]) + (" …" if len(rest) > SOME else "")
        yield f"no clear link with lost predictions: {some}."


def _about_classes(result: AuditResult) -> Iterator[str]:
    """What goes with the accuracy of a class over all models, by the most cautious fit."""
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
            yield f"How class accuracy goes with {words}: {why_unknown(row) or 'cannot tell'}."
            continue
        value = f"{number(real(row['coefficient']))}{_limits(row['low'], row['high'])}"
        if real(row["low"]) > 0 or real(row["high"]) < 0:
            yield (
                f"The accuracy of a class is associated with {words}: coefficient {value} "
                f"({errors}, other terms held constant)."
            )
        else:
            yield f"No clear link of class accuracy with {words}: {value} ({errors})."


def _more(total: int, table: str) -> Iterator[str]:
    """How many rows a sentence did not name, and where they are."""
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
        said.append(f"{head}{NO_CASCADE if everything else _helped(changes, kind)}")
        said.append(f"{head}{_worse(changes)}")
        if len(origins) > 1:
            left = own[own["against"] == origins[1]]
            said.append(f"{shown(variant)} against {shown(origins[1])}: {_worse(left)}")
    return said


def _helped(changes: pd.DataFrame, kind: str) -> str:
    """Whether what the mitigation is for moved the right way."""
    present = changes[changes["shift"].notna()]
    metric = next((m for m in AIMS[kind] if (present["metric"] == m).any()), None)
    if metric is None:
        return "cannot tell whether it helps: what it is meant to improve cannot be estimated here."
    aim = present[present["metric"] == metric]
    whole = aim[aim["by"] == "overall"]
    rows = records(aim if whole.empty else whole)
    better = [row for row in rows if row["verdict"] == "better"]
    worse = [row for row in rows if row["verdict"] == "worse"]
    best = {"one": " (best at 1)", "zero": " (best at 0)"}.get(registered(metric).better, "")
    name = f"{label_of(metric)}{best}"
    right, wrong = (f"{count(len(part))} of {count(len(rows))} rows" for part in (better, worse))
    if better and not worse:
        return f"it helps: {name} improves in {right}: {_some(better)}."
    if better:
        return (
            f"it helps some: {name} improves in {right} ({_some(better)}) "
            f"and gets worse in {wrong} ({_some(worse)})."
        )
    if worse:
        return f"it does not help: {name} gets worse in {wrong}: {_some(worse)}."
    return f"no clear improvement of {name}: {_some(rows)}."


def _worse(changes: pd.DataFrame) -> str:
    """Who lost: groups and classes first, then everybody."""
    changes = changes[changes["metric"].isin(SPOKEN)]
    rows = records(changes[changes["verdict"] == "worse"])
    parts = [row for row in rows if row["by"] in ("group", "class")]
    n = int(changes["by"].isin(["group", "class"]).sum())
    comparisons = counted(n, "comparison")
    if not parts:
        told = f"no group or class got clearly worse ({comparisons})"
    else:
        told = f"worse in {count(len(parts))} of {comparisons} by group and class, " + (
            _some(parts)
        )
    whole = [row for row in rows if row["by"] == "overall"]
    return told + (f"; overall worse: {_some(whole)}" if whole else "") + "."


def _some(rows: list[dict[str, Any]]) -> str:
    """The largest changes, each with its place, both values and the shift."""
    told = []
    for row in sorted(rows, key=lambda row: -abs(float(row["shift"])))[:SOME_GROUPS]:
        metric = str(row["metric"])
        low, high = row["low"], row["high"]
        if not missing(row["sim_low"]):
            low, high = row["sim_low"], row["sim_high"]
        parts = [text(row[key]) for key in ("task", "group", "class")]
        place = ", ".join(shown(part) for part in parts if part is not None) or "all"
        before, after = (value_of(metric, float(row[side])) for side in ("before", "after"))
        change = shift_of(metric, float(row["shift"]), real(low), real(high))
        told.append(f"{place}: {label_of(metric)} {before} → {after} ({change})")
    left = len(rows) - SOME_GROUPS
    return "; ".join(told) + (f" and {count(left)} more" if left > 0 else "")
