"""A finding in words: the same sentences for the terminal, the page and the notebook.

They speak of association, never of cause; of a loss only where limits that hold for everything at
once exclude 0; and of what the data cannot show as plainly as of what they can.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from fairweight.auditing.result import Scope
from fairweight.base.wording import counted, missing, shown
from fairweight.report.finding import (
    Blind,
    Change,
    Finding,
    Open,
    Parts,
    ScopeFinding,
    Small,
    Standing,
    ranked,
)
from fairweight.report.members import worded
from fairweight.report.numbers import (
    count,
    level,
    loss_that_matters,
    p_value,
    percent,
    points,
    points_interval,
    size_in_points,
    unit,
)

Topic = Literal[
    "pair", "leak", "accuracy", "predictions", "most", "pays more", "gained less", "loses",
    "ruled out", "columns", "labels", "gains", "scale", "cannot tell", "scope",
]  # fmt: skip
TOPICS: tuple[Topic, ...] = get_args(Topic)

HEADINGS: dict[Topic, str] = {
    "leak": "Leak",
    "accuracy": "Overall",
    "predictions": "Predictions",
    "most": "Loses most",
    "pays more": "More than the rest",
    "gained less": "Gained less",
    "loses": "Loses",
    "ruled out": "Ruled out",
    "columns": "Differences",
    "labels": "Group labels",
    "gains": "Gains",
    "scale": "For scale",
    "cannot tell": "Too small",
}  # "pair" and "scope" stand above and below
SIDES: dict[Scope, str] = {"model": "These models", "method": "The method"}
QUESTIONS: dict[Scope, str] = {
    "model": "Does what is shipped treat anyone worse? The models are fixed, examples a sample.",
    "method": "Does this compression do so beyond retraining? The models are a sample too.",
}

ONE_PAIR = (
    "These lines are about these models, not about the method that made them. Retraining alone "
    "moves classes and groups too."
)
TWO_SIDES = (
    "“These models” are the ones in these tables. “The method” are all models that could be made "
    "in the same way."
)
TOO_FEW_MEMBERS = (
    "These lines are about these models. What the method does takes at least 4 members a side, "
    "from different dense models."
)
NO_VETO = (
    "What retraining alone moves is context: 95 % of pairs of retrained dense models move less. "
    "It does not decide who loses."
)
INDEPENDENT = (
    "Examples are assumed independent. If several come from one person, writer or scene, name "
    "that column (--cluster)."
)
PAIRED = {
    "parent": "Under “the method”, compressed members are paired with the dense models that they "
    "were made from.",
    "seed": "Under “the method”, members are paired by equal seeds, because no parents are given. "
    "A variants table with a column `parent` says who was made from whom.",
    "independent": "Under “the method”, members are not paired: not every compressed member has a "
    "known parent among the baseline's. A variants table with a column `parent` says who was made "
    "from whom.",
}
MOST_COLUMNS = 5  # of more columns the differences are one table
MANY = 50  # classes and groups: of more, a list would begin with the smallest
MOST_RUNS = 10  # members per side that are listed one by one
FLOOR_MEMBERS = 5  # baseline members from which a noise floor is told
FEW_MEMBERS = 5  # up to so many members a side the method's tests have little power
NAME = 60  # characters of a name in a headline or a short table
CHANCE = 6.5  # per cent of unchanged models got any line at alpha = 0.05, at most (simulations)


@dataclass(frozen=True)
class Sentence:
    """One statement, what it is about, and of which scope it is (None: of both, or of neither)."""

    topic: Topic
    text: str
    scope: Scope | None = None


def sentences(finding: Finding, *, limit: int = 5) -> tuple[Sentence, ...]:
    """The ten-second summary; lists longer than `limit` say how many they leave out."""
    once: dict[Topic, list[str]] = {
        "pair": [pair(finding)],
        "leak": [] if finding.leak is None else [shown(finding.leak)],
        "predictions": predictions_changed(finding),
        "ruled out": ruled_out(finding),
        "labels": wrong_labels(finding),
        "scale": [*retraining(finding, limit), *runs(finding)],
        "cannot tell": cannot_tell(finding, limit),
        "scope": scope(finding),
    }
    told: list[tuple[Scope | None, dict[Topic, list[str]]]] = [(None, once)]
    for verdict in finding.verdicts:
        own: dict[Topic, list[str]] = {
            "accuracy": [f"{capitalised(overall_accuracy(verdict.overall))}."],
            "most": [f"{name_of(c)}: {shift_and_n(c)}." for c in (verdict.most,) if c is not None],
            "pays more": pays_more(verdict, limit),
            "gained less": gained_less(verdict, limit),
            "loses": loses(verdict, limit),
            "columns": columns(verdict),
            "gains": [_listed([f"{name_of(c)} {shift_and_n(c)}" for c in verdict.gains], limit)]
            if verdict.gains
            else [],
        }
        if verdict.only_changes:  # nothing is a loss without labels
            own = {"accuracy": own["accuracy"]}
        told.append((verdict.scope, own))
    return tuple(
        Sentence(topic, line, scope)
        for topic in TOPICS
        for scope, lines in told
        for line in lines.get(topic, [])
    )


def pair(finding: Finding) -> str:
    """What was compared with what, on how many examples."""
    variant, baseline = shown(finding.variant), shown(finding.baseline)
    if finding.members.population:
        variant += f" ({counted(finding.members.compressed, 'member')})"
        baseline += f" ({count(finding.members.baseline)})"
    classes = f", {count(finding.n_classes)} classes" if finding.n_classes else ""
    return f"{variant} against {baseline} on {count(finding.n_examples)} examples{classes}."


def overall_accuracy(change: Change | None) -> str:
    """Accuracy before and after with the shift and its interval."""
    if change is not None and missing(change.shift) and not missing(change.compressed):
        return f"{percent(change.compressed)} of predictions changed; there are no labels"
    if change is None or missing(change.shift):
        return f"{unit().name} cannot be estimated"
    # A shift of −0.02 points beside 97.1 → 97.0 would look like a slip.
    digits = 2 if abs(change.compressed - change.baseline) < 0.001 else 1
    return (
        f"{unit().name} {level(change.baseline, digits)} → {level(change.compressed, digits)}: "
        f"{points_interval(change.shift, change.low, change.high)}"
    )


def predictions_changed(finding: Finding) -> list[str]:
    """Beside outcomes: how many predictions changed, which is not how many got worse."""
    change = finding.model.overall
    if missing(finding.predictions_changed) or change is None:
        return []
    said = f"{percent(finding.predictions_changed)} changed"
    if not missing(change.churn):
        said += f"; the outcome changed on {percent(change.churn)} of the examples"
    return [f"{said}."]


def runs(finding: Finding) -> list[str]:
    """Every member's accuracy beside the method's interval, where they are few."""
    few = all(len(side.seeds) <= MOST_RUNS for side in finding.runs)
    if len(finding.verdicts) < 2 or not few:
        return []
    sides = []
    for side in finding.runs:
        values = [
            level(value).removesuffix(" %")
            + (f" (member {shown(seed)}, far from the others)" if seed in side.far else "")
            for seed, value in zip(side.seeds, side.accuracy, strict=True)
        ]
        sides.append(f"{shown(side.variant)} {', '.join(values)}")
    return [
        f"{capitalised(unit().name)} of each member{', in %' if unit().share else ''}: "
        f"{'; '.join(sides)}. "
        + worded("Limits about the method assume", finding.members.kind)
        + " that no run fails: if runs sometimes fail, more members are needed."
    ]


def columns(verdict: ScopeFinding) -> list[str]:
    """Whether the change differs between groups (one line per column) and between classes."""
    lines = []
    if not any(column.kind == "group" for column in verdict.columns):
        lines.append("No group column was given.")
    paying = {payer.key for payer in verdict.pays_more}
    if len(verdict.columns) > MOST_COLUMNS:
        return [*lines, *_many_columns(verdict)]
    for column in verdict.columns:
        name = "By class" if column.kind == "class" else f"By {shown(column.name)}"
        name += f" ({shown(column.task)})" if column.task is not None else ""
        if column.differs is None:
            lines.append(f"{name}: cannot be tested ({column.reason}).")
            continue
        if not column.differs:
            lines.append(f"{name}: no difference shown ({p_value(column.p)}).")
            continue
        said = f"{name}: the change differs ({p_value(column.p)})"
        apart = verdict.apart(column)
        if apart and not any(payer.key in paying for payer in apart):
            # Nobody in the column loses more than the rest: who then makes the difference?
            first = next((payer for payer in apart if payer.gain > 0), apart[0])
            did = "did better" if first.gain > 0 else "gained less"
            said += f": {name_of(first)} {did} than the rest, by {size_in_points(first.shift)}"
        if not missing(column.within_p):
            within = p_value(column.within_p)
            if column.within_p <= verdict.alpha:
                said += f", also among examples of one class ({within})"
            else:
                said += f"; among examples of one class no difference is shown ({within}), so "
                said += "the mix of classes may explain it"
        lines.append(f"{said}.")
    return lines


def _many_columns(verdict: ScopeFinding) -> list[str]:
    """Many columns in a few lines; the page has a table of them."""
    every = [
        ("class" if c.kind == "class" else shown(c.name))
        + (f" ({shown(c.task)})" if c.task is not None else "")
        for c in verdict.columns
    ]
    lines = []
    for differs, words in ((True, "the change differs"), (False, "no difference is shown")):
        own = [(n, c) for n, c in zip(every, verdict.columns, strict=True) if c.differs is differs]
        if not own:
            continue
        least = p_value(min(column.p for _, column in own))
        least = f"least {least}" if len(own) > 1 else least
        names = f": {joined([name for name, _ in own], 2 * MOST_COLUMNS)}" if differs else ""
        whose = f"{count(len(own))} of {count(len(every))} columns"
        lines.append(f"By {whose} {words} ({least}){names}.")
    untested = [column for column in verdict.columns if column.differs is None]
    if untested:
        lines.append(f"{counted(len(untested), 'column')} cannot be tested ({untested[0].reason}).")
    return lines


def name_of(item: Change | Blind | Open | Small, limit: int = 80) -> str:
    """The name of a class or group in a sentence.

    >>> from fairweight.report.finding import Blind
    >>> name_of(Blind("class", "7", "digit", 40, 0.1, 0.02, 900.0))
    'class 7 (digit)'
    """
    name = shown(item.label or item.name, limit)
    body = f"class {name}" if item.kind == "class" else name
    task = None if isinstance(item, Small) else item.task
    return body + (f" ({shown(task)})" if task is not None else "")


def shift_and_n(change: Change) -> str:
    """The shift, its interval and the number of examples."""
    return f"{points_interval(change.shift, change.low, change.high)}, {count(change.n)} examples"


def joined(names: Sequence[str], limit: int | None = None) -> str:
    """Names as they stand in a sentence; those beyond a limit are counted.

    >>> joined(["a"]), joined(["a", "b", "c"]), joined(["a", "b", "c", "d"], 2)
    ('a', 'a, b and c', 'a, b and 2 more')
    """
    if limit is not None and len(names) > limit:
        return f"{', '.join(names[:limit])} and {count(len(names) - limit)} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def _and_more(total: int, limit: int) -> list[str]:
    """How many a list leaves out; nothing where it leaves out none."""
    return [f"… and {count(total - limit)} more."] if total > limit else []


def _listed(parts: Sequence[str], limit: int) -> str:
    """The first parts of a list, and how many more there are.

    >>> _listed(["a", "b", "c"], 2), _listed(["a", "b"], 2)
    ('a; b; … and 1 more.', 'a; b.')
    """
    more = _and_more(len(parts), limit)
    return "; ".join([*parts[:limit], *more]) + ("" if more else ".")


def loses(verdict: ScopeFinding, limit: int = 5) -> list[str]:
    """Who loses: limits below 0, accuracy of groups and recall of classes."""
    losing, every = verdict.loses, len(verdict.shifts)
    if not losing:
        return [f"No {Parts.of(verdict.shifts).one} shows a clear loss."]
    if len(losing) == every > 1 and not verdict.pays_more:
        sizes = sorted(abs(payer.shift) for payer in losing)
        least, most = (size_in_points(size) for size in (sizes[0], sizes[-1]))
        many = Parts.of(verdict.shifts).many
        return [f"All {many}, by {least.removesuffix(' points')} to {most}."]
    rest = [payer for payer in losing if payer != verdict.most]
    lines = [f"{name_of(payer)}: {shift_and_n(payer)}." for payer in rest[:limit]]
    return lines + _and_more(len(rest), limit)


def pays_more(verdict: ScopeFinding, limit: int = 5) -> list[str]:
    """Who loses more than all others in the same column: the excess over their change."""
    if not verdict.pays_more:
        return [f"No {Parts.of(verdict.excesses).one} is shown to lose more than the rest."]
    losing = {payer.key for payer in verdict.loses}
    lines = [
        f"{name_of(payer)}: by {by_how_much(payer)}, {p_value(payer.p)}"
        + ("." if payer.key in losing else "; its own loss is not clear.")
        for payer in verdict.pays_more[:limit]
    ]
    return lines + _and_more(len(verdict.pays_more), limit)


def gained_less(verdict: ScopeFinding, limit: int = 5) -> list[str]:
    """Who fell behind the rest without a loss: no loss, so they stand apart from those who pay."""
    if not verdict.gained_less:
        return []
    names = [f"{name_of(c)} by {size_in_points(c.shift)}" for c in verdict.gained_less]
    return [f"Less than the rest: {_listed(names, limit)}"]


def by_how_much(payer: Change) -> str:
    """A harmful excess as a size: how much more somebody loses than the rest."""
    gain, low, high = payer.gains
    return points_interval(-gain, -high, -low).replace("+", "")


def ruled_out(finding: Finding, limit: int = 3) -> list[str]:
    """For how many classes and groups a loss beyond the margin is ruled out, and who is open."""
    found = finding.ruled_out
    if found is None:
        return []
    said = f"A loss beyond {loss_that_matters(found.margin)} is ruled out for {found.whom}"
    if found.shown:
        said += f" and shown for {count(found.shown)}"
    if not found.open:
        return [f"{said}."]
    if found.of > MANY:
        return [f"{said}; for {count(len(found.open))} it is open."]
    names = ", ".join(
        name_of(o) + ("" if missing(o.largest) else f" (up to {size_in_points(o.largest)})")
        for o in found.open[:limit]
    )
    left = len(found.open) - limit
    return [f"{said}; open: {names}" + (f" and {count(left)} more." if left > 0 else ".")]


def wrong_labels(finding: Finding) -> list[str]:
    """What a declared share of wrong group labels may hide of an excess."""
    if not finding.label_error:
        return []
    if not finding.allowed:
        return ["No group loses more than the rest, so wrong group labels change nothing here."]
    some = "; ".join(
        f"{shown(a.name)} {points(a.low)} to {points(a.high)}" for a in finding.allowed[:3]
    )
    wrong = percent(finding.label_error, 0)
    return [f"If {wrong} of the group labels are wrong, the excess is: {some}."]


def retraining(finding: Finding, limit: int = 5) -> list[str]:
    """What retraining alone moves, beside what compression moves: a picture, no verdict."""
    members = finding.members
    if not members.population:
        return []
    overall = finding.model.overall
    known = [p for p in finding.model.shifts if not missing(p.noise_floor)]
    if not known and (overall is None or missing(overall.noise_floor)):
        given = counted(members.baseline, "member")
        return [
            f"{worded('What retraining alone moves is not known', members.kind)}: {given} of the "
            f"baseline; {FLOOR_MEMBERS} are needed."
        ]
    lines = []
    if overall is not None and not missing(overall.noise_floor):
        size = min(members.baseline // 2, members.compressed)
        lines.append(
            f"{worded('Retraining the dense model', members.kind)} moves {unit().name} by "
            f"{_moved(overall)}, {counted(size, 'member')} against {count(size)}."
        )
    losing = {change.key for verdict in finding.verdicts for change in verdict.loses}
    told = [f"{name_of(c)} by {_moved(c)}" for c in known if c.key in losing]
    if told:
        words = worded("Of those who lose, retraining moves", members.kind)
        lines.append(f"{words} {_listed(told, limit)}")
    if known:
        beyond = sum(p.matched > p.noise_floor for p in known)
        lines.append(
            f"With compression, {count(beyond)} of {count(len(known))} classes and groups "
            "typically move by more than that."
        )
    return lines


def _moved(item: Change) -> str:
    """How far retraining moves somebody, and how far this compression did."""
    floor, matched = item.noise_floor, item.matched
    return f"up to {size_in_points(floor)} (this compression: typically {size_in_points(matched)})"


def cannot_tell(finding: Finding, limit: int = 5) -> list[str]:
    """Where a loss may have been missed, how many examples it would take, who is too small."""
    lines = []
    if finding.method is not None and finding.method.reason is not None:
        tables = "; the tables have its limits" if len(finding.families) > 1 else ""
        lines.append(
            worded("Nothing is said here about the method", finding.members.kind)
            + f" ({shown(finding.method.reason)}{tables}): that takes "
            + worded(
                "at least 4 members a side, from different dense models.", finding.members.kind
            )
        )
    if finding.blind:
        reference = loss_that_matters(finding.blind[0].reference)
        said = _listed(
            [f"{name_of(b)} ({count(b.n)} examples{needed(b)})" for b in finding.blind], limit
        )
        sizes = [b.n for b in finding.blind if b.n is not None]
        if len(finding.blind) > MANY and sizes:
            kinds = [b.kind for b in finding.blind]
            parts = Parts(kinds.count("class"), kinds.count("group")).many
            said = f"{parts} of {count(min(sizes))} to {count(max(sizes))} examples."
        lines.append(f"Too few examples to find a loss of {reference} reliably: {said}")
    if finding.small:
        names = []
        for small in finding.small:
            name = name_of(small)
            too_few = small.n is not None and small.reason.startswith("n < ")
            why = f"n = {count(small.n)} {small.reason[2:]}" if too_few else shown(small.reason)
            names.append(f"{name} ({why})")
        sizes = [small.n for small in finding.small if small.n is not None]
        if len(names) > limit and sizes:  # a class of three leads no list
            whose = [small.kind for small in finding.small]
            parts = Parts(whose.count("class"), whose.count("group")).many
            lines.append(
                f"Not tested: {parts} of {count(min(sizes))} to {count(max(sizes))} examples."
            )
        else:
            lines.append(f"Not tested: {_listed(names, limit)}")
    return lines


def needed(blind: Blind) -> str:
    """How many examples it would take, where that is known."""
    known = math.isfinite(blind.n_needed)
    return f"; about {count(round(blind.n_needed))} needed" if known else ""


def scope(finding: Finding) -> list[str]:
    """What the numbers do not show."""
    lines = [TWO_SIDES if len(finding.verdicts) > 1 else ONE_PAIR]
    fewest = min(finding.members.baseline, finding.members.compressed)
    if len(finding.verdicts) > 1 and fewest <= FEW_MEMBERS:
        few = "Under “the method”: few members, so only large differences can be shown."
        lines.append(worded(few, finding.members.kind))
    if len(finding.verdicts) > 1 and finding.members.pairing in PAIRED:
        lines.append(PAIRED[finding.members.pairing])
    if any(not missing(p.noise_floor) for p in finding.model.shifts):
        lines.append(NO_VETO)
    lines = [worded(line, finding.members.kind) for line in lines]
    return lines if finding.clustered else [*lines, INDEPENDENT]


def reading(finding: Finding) -> str:
    """How to read the limits and p-values of a finding."""
    changes = "Changes are compressed minus baseline: associations in these data, not causes."
    if not finding.one_rate:  # an audit of version 0.1.0
        return (
            "Limits and p-values of the finding hold for all classes, or all groups, of one "
            f"variant at once, not for all variants. {changes}"
        )
    chance = (
        f"at most {CHANCE:g} %" if finding.alpha == 0.05 else f"about {100 * finding.alpha:g} %"
    )
    return (
        "Limits and p-values of the finding hold for all classes, groups and variants at once: of "
        f"models that did not change, {chance} get any line about a loss or a difference. “Ruled "
        f"out” holds for all classes, or all groups, of one variant at once. {changes}"
    )


def capitalised(sentence: str) -> str:
    """A sentence with a capital, unless it begins with a level: names stay as they are.

    >>> capitalised("no slice found."), capitalised("sex=f differs.")
    ('No slice found.', 'sex=f differs.')
    """
    is_level = "=" in sentence.partition(" ")[0]
    return sentence if is_level else sentence[0].upper() + sentence[1:]


def of_variant(variant: str, sentence: str, n_variants: int) -> str:
    """A sentence with the variant that it is about, where there are several.

    >>> of_variant("int8", "no slice found.", 2), of_variant("int8", "no slice found.", 1)
    ('int8: no slice found.', 'No slice found.')
    """
    return capitalised(sentence) if n_variants == 1 else f"{shown(variant, NAME)}: {sentence}"


# The finding in one sentence, over all variants.
#
# Somebody "loses most" only where they are shown to lose more than the rest: under a uniform drop
# a random group has the largest fall. Good news is said too: which loss is ruled out, and for how
# many.


def headline(found: Sequence[Finding]) -> str:
    """What happened to whom, in these models."""
    return _headline(ranked(found), len(found))


def beyond_retraining(found: Sequence[Finding]) -> str | None:
    """The same of the method; None where no variant has enough members to tell."""
    standings = ranked(found, "method")
    if not standings:
        return None
    said = _headline(standings, len(standings))
    if said.startswith(("Class ", "No loss ", "Overall ")):  # names stay as they are
        said = said[0].lower() + said[1:]
    return f"{worded('Beyond retraining (the method)', found[0].members.kind)}: {said}"


def _headline(standings: Sequence[Standing], n_variants: int) -> str:
    """What happened to whom, then in how many variants, or which loss is ruled out."""
    first = standings[0]
    verdict, change = first.verdict, first.verdict.overall
    where = f" in {shown(first.finding.variant, NAME)}"
    overall = "" if change is None else points_interval(change.shift, change.low, change.high)
    known = change is not None and not missing(change.shift)
    if change is not None and verdict.only_changes:
        return (
            f"{percent(change.compressed)} of predictions changed{where}; without labels nothing "
            "is said about losses."
        )
    if verdict.pays_more:
        most, payer = verdict.most, verdict.pays_more[0]
        said = f"{_begun(payer)} does worse than the rest, by {by_how_much(payer)}{where}"
        said += "; its own loss is not clear"
        if most is not None:
            size = points_interval(most.shift, most.low, most.high)
            said = f"{_begun(most)} loses most: {size}{where}"
            if change is not None and known:
                said += f", against {points(change.shift).removesuffix(' points')} overall"
        more = len(verdict.pays_more) - 1
        if more > 0 and n_variants == 1:
            others = "other class or group does" if more == 1 else "other classes and groups do"
            said += f"; {count(more)} {others} worse than the rest"
    elif first.loses_overall:
        said = f"Overall {overall}{where}; no class or group is shown to lose more than the rest"
    elif verdict.loses:
        losing = verdict.loses
        size = points_interval(losing[0].shift, losing[0].low, losing[0].high)
        said = f"{_begun(losing[0])} loses{where}: {size}"
        if len(losing) > 1:
            said = f"{count(len(losing))} classes and groups lose{where}"
        said += "; no class or group is shown to lose more than the rest"
    elif n_variants > 1:
        said = f"No loss is shown in any of {count(n_variants)} variants"
    elif not verdict.shifts and (change is None or missing(change.low)):
        why = "" if verdict.reason is None else f" ({shown(verdict.reason)})"
        said = f"A loss cannot be tested{where}{why}" + (f": overall {overall}" if known else "")
    else:
        said = f"No loss is shown{where}" + (f": overall {overall}" if known else "")

    found = first.finding.ruled_out
    if n_variants == 1:
        if found is None or verdict.scope == "method":
            return f"{said}."
        said += f"; a loss beyond {loss_that_matters(found.margin)} is ruled out for {found.whom}"
        left = found.of - found.number
        if left and not missing(found.largest):
            others = "the other one" if left == 1 else "the others"
            others = "which" if left == found.of else others
            said += f", {others} may lose up to {size_in_points(found.largest)}"
        return f"{said}."
    losing_in = sum(1 for s in standings if s.loses_overall or s.verdict.loses)
    paying_in = sum(1 for s in standings if s.verdict.pays_more)
    if losing_in:
        said += f"; a loss is shown in {count(losing_in)} of {count(n_variants)} variants"
        if paying_in:
            said += f", and in {count(paying_in)} a class or group does worse than the rest"
    elif paying_in:
        said += f"; a class or group does so in {count(paying_in)} of {count(n_variants)} variants"
    certain = [s.finding.ruled_out for s in standings if s.verdict.scope == "model"]
    every = [found for found in certain if found is not None and found.number == found.of]
    if every:
        said += (
            f"; in {count(len(every))} a loss beyond {loss_that_matters(every[0].margin)} is "
            "ruled out for every class and group"
        )
    return f"{said}."


def _begun(change: Change) -> str:
    """A name at the beginning of a sentence."""
    name = name_of(change, NAME)
    return f"C{name[1:]}" if change.kind == "class" else name
