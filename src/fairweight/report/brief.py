"""The first thing that is read of an audit: five lines, one line per variant, and caveats.

What was compared and how accuracy changed; who loses most; who loses more than the rest; which
loss is ruled out; who has too few examples. Every output begins with these lines and puts
everything else below. They speak of these models; the line of a variant says what holds beyond
retraining.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import is_ok, records, row_ok, rows_of, select
from fairweight.base.wording import are, counted, missing, shown
from fairweight.report.finding import (
    Change,
    Finding,
    Parts,
    ScopeFinding,
    Standing,
    ranked,
    unit_of_audit,
)
from fairweight.report.members import REPEATED, worded
from fairweight.report.numbers import (
    count,
    label_of,
    level,
    loss_that_matters,
    points,
    points_interval,
    size_in_points,
    unit,
    value_interval,
    value_of,
    written_in,
)
from fairweight.report.sentences import (
    INDEPENDENT,
    MANY,
    NAME,
    ONE_PAIR,
    TOO_FEW_MEMBERS,
    beyond_retraining,
    by_how_much,
    headline,
    joined,
    name_of,
    overall_accuracy,
    sentences,
)

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult

NAMED = 3  # variants, and classes and groups, that a line names; it counts the others
CAVEATS = 3
SEEDS = (
    "Several members of a variant are taken to be models that were trained again. If they are runs "
    "of one model, use --members repeated."
)

# What stands behind a caveat; the page has it under “how to read this”.
EXPLAINED = {
    "one-pair": "Two dense models that were trained alike differ by class and group too. So one "
    "dense and one compressed model show what happened to these two. What the compression method "
    "does takes several of each, from different dense models.",
    "retraining": "“Up to”: 95 % of pairs of retrained dense models differ by less. “Typically”: "
    "the median change with compression, with as many members on each side. Both are context. Who "
    "loses is decided by the limits alone.",
    "independent": "Limits assume that each example says something new. Ten pictures of one person "
    "say less than pictures of ten. With --cluster COLUMN they count together, and limits get "
    "wider.",
}


@dataclass(frozen=True)
class Line:
    """One of the lines: its heading, and what it says, of several variants in a part each."""

    heading: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """Everything in one piece."""
        return " ".join(self.parts)


@dataclass(frozen=True)
class Caveat:
    """A caveat, and what explains it: a key of `EXPLAINED`, or the notes."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Brief:
    """What is read first."""

    compared: str
    lines: tuple[Line, ...]
    variants: tuple[Line, ...]  # the baseline first, then the variants as they were given
    caveats: tuple[Caveat, ...]


def brief(result: AuditResult, found: Sequence[Finding], verdict: Verdict | None = None) -> Brief:
    """The five lines over all variants, a line for each of them, and at most three caveats."""
    with written_in(unit_of_audit(result)):
        return _brief(result, found, verdict)


def _brief(result: AuditResult, found: Sequence[Finding], verdict: Verdict | None) -> Brief:
    by_rank = [standing.finding for standing in ranked(found)]
    first = list(found) if len(found) <= NAMED else by_rank
    lines: tuple[Line, ...] = (
        Line("Overall", _overall(first)),
        Line("Loses most", _by_variant(first, _loses_most)),
        Line("More than the rest", _by_variant(first, _loses_more)),
        Line("Ruled out", _ruled_out(first)),
        Line("Too small", (_too_small(result, found),)),
    )
    if not result.labelled:
        lines = (
            Line("Changed", _by_variant(first, partial(_changed, result))),
            Line("Apart", _by_variant(first, partial(_apart, result)) if _apart(result, first[0])
                 else ()),
            Line("No labels", ("nothing here says whether a change is a loss",)),
        )  # fmt: skip
    elif not any(finding.model.shifts or finding.small for finding in found):
        nobody = "no class or group can be tested" if result.classes else "no group can be tested"
        if not result.classes and not result.groupings:
            nobody = "not known, because no group column is named (--groups)"
        lines = (lines[0], Line("Loses most", (nobody,)))
    # A policy that was set when the audit was made decided elsewhere: nothing is said of it here.
    unknown = verdict is None and bool(result.provenance.options.get("confirmatory"))
    change = found[0].model.overall
    reached = "not known"
    if change is not None and not missing(change.baseline):
        reached = level(change.baseline)
    own = [Line(shown(result.baseline, NAME), (f"baseline, {unit().name} {reached}.",))]
    for finding in found:
        policy = "no policy set"
        if verdict is not None:
            policy = f"policy: {verdict.variants.get(finding.variant, 'not checked')}"
        what = _shown_loss(finding.model)
        if finding.model.gained_less:
            names = joined([name_of(change, NAME) for change in finding.model.gained_less], NAMED)
            what += f"; {names} gained less than the rest"
        said = [what, *_beyond(finding), *_certain(finding)]
        if not result.labelled:
            said = [_changed(result, finding)]
        text = "; ".join([*said, *([] if unknown else [policy])])
        own.append(Line(shown(finding.variant, NAME), (f"{text}.",)))
    return Brief(
        compared=compared(result, found),
        lines=tuple(
            Line(line.heading, tuple(f"{part}." for part in line.parts))
            for line in lines
            if line.parts
        ),
        variants=tuple(own),
        caveats=tuple(_caveats(result, by_rank)[:CAVEATS]),
    )


def finding_document(found: Sequence[Finding], first: Brief) -> dict[str, Any]:
    """The finding in words, as audit.json holds it."""
    with written_in(found[0].unit):
        return {
            "headline": headline(found),
            "beyond_retraining": beyond_retraining(found),
            "brief": {
                "compared": first.compared,
                "lines": {line.heading: line.text for line in first.lines},
                "variants": {line.heading: line.text for line in first.variants},
                "caveats": [caveat.text for caveat in first.caveats],
            },
            "variants": {one.variant: [said.text for said in sentences(one)] for one in found},
        }


def compared(result: AuditResult, found: Sequence[Finding]) -> str:
    """What was compared with what, on how many examples."""
    names = [shown(finding.variant, NAME) for finding in found]
    variants = joined(names) if len(names) <= NAMED else f"{count(len(names))} variants"
    parts = [counted(result.n_examples, "example")]
    parts += [Parts(len(result.classes), 0).many] if result.classes else []
    if result.tasks:
        parts.append(counted(len(result.tasks), "task"))
    columns = [shown(name, 40) for name in result.groupings]
    parts.append(f"groups by {joined(columns, NAMED + 2)}" if columns else "no group column")
    sizes = {(f.members.baseline, f.members.compressed) for f in found if f.members.population}
    member = "run" if found[0].members.kind == REPEATED else "member"
    if len(sizes) == 1:
        dense, compressed = sizes.pop()
        of_each = f"{counted(compressed, member)} of each variant, {count(dense)} of the baseline"
        parts.append(f"{counted(dense, member)} each" if dense == compressed else of_each)
    elif sizes:
        parts.append(f"several {member}s each")
    return f"{variants} against {shown(result.baseline, NAME)}: {', '.join(parts)}"


# One line about all variants: what each of them says, those that say the same together.


def _by_variant(found: Sequence[Finding], said_of: Callable[[Finding], str]) -> tuple[str, ...]:
    """What is said of every variant, a part each; of many, of the first ones."""
    if len(found) == 1:
        return (said_of(found[0]),)
    same: dict[str, list[str]] = {}
    for finding in found:
        same.setdefault(said_of(finding), []).append(shown(finding.variant, NAME))
    parts = [
        f"{joined(names) if len(names) <= NAMED else f'{count(len(names))} variants'}: {text}"
        for text, names in same.items()
    ]
    left = sum(len(names) for names in list(same.values())[NAMED:])
    more = [f"{counted(left, 'more variant')}: see below"] if left else []
    return (*parts[:NAMED], *more)


def _overall(found: Sequence[Finding]) -> tuple[str, ...]:
    """How accuracy changed; of many variants, where most and where least."""
    if len(found) == 1:
        return (overall_accuracy(found[0].model.overall),)
    known = [
        (change.shift, f"{shown(f.variant, NAME)}: {points_interval(*ends)}")
        for f in found
        if (change := f.model.overall) is not None
        and not missing((ends := (change.shift, change.low, change.high))[0])
    ]
    if len(known) > NAMED:
        ordered = sorted(known)
        return (f"lowest, {ordered[0][1]}", f"highest, {ordered[-1][1]}")
    return tuple(said for _, said in known) or (overall_accuracy(None),)


def _changed(result: AuditResult, finding: Finding) -> str:
    """Without labels: how many predictions changed, and in which group most."""
    said = f"{_distance(result, finding, 'flips')} of predictions"
    group = select(result, finding.variant, "flips", "group")
    known = records(group[is_ok(group) & (group["scope"] == "model")])
    if len(known) > 1:
        most = max(known, key=lambda row: float(row["compressed"]))
        task = "" if missing(most["task"]) else f" ({shown(most['task'], NAME)})"
        said += f"; most in {shown(most['group'], 80)}{task}, {_with_limits(most)}"
    return said


def _apart(result: AuditResult, finding: Finding) -> str:
    """Without labels: how far class probabilities lie apart; nothing where they are not known."""
    names = ("total_variation", "kl_divergence", "first_choice_agreement")
    found = [(label_of(name), _distance(result, finding, name)) for name in names]
    return "; ".join(f"{label} {said}" for label, said in found if said)


def _distance(result: AuditResult, finding: Finding, name: str) -> str:
    """The value of everybody with its limits; over several tasks from the least to the largest."""
    rows = select(result, finding.variant, name, "overall")
    known = records(rows[is_ok(rows) & (rows["scope"] == "model")])
    if len(known) < 2:
        return "".join(map(_with_limits, known))
    values = [float(row["compressed"]) for row in known]
    ends = " to ".join(value_of(name, end) for end in (min(values), max(values)))
    return f"{ends} over {counted(len(known), 'task')}"


def _with_limits(row: dict[str, Any]) -> str:
    values = (float(row[name]) for name in ("compressed", "ci_low", "ci_high"))
    return value_interval(str(row["metric"]), *values)


def _loses_most(finding: Finding) -> str:
    """Who loses most, which takes an excess; else who is shown to lose, if anybody."""
    scope = finding.model
    if scope.most is not None:
        size = points_interval(scope.most.shift, scope.most.low, scope.most.high)
        return f"{name_of(scope.most)}, {size}, {count(scope.most.n)} examples"
    if not scope.shifts:
        few = "no class or group has enough examples to be tested"
        return few if scope.reason is None else f"no class or group can be tested ({scope.reason})"
    one = Parts.of(scope.shifts).one
    if scope.loses:
        return f"no {one} stands out; {_losing(scope)}"
    if _falls(scope.overall):
        return f"no {one} stands out"
    return f"no {one} shows a clear loss"


def _losing(scope: ScopeFinding) -> str:
    """Who is shown to lose: by name where they are few."""
    losing = scope.loses
    if len(losing) > NAMED:
        return f"a loss is shown for {Parts.of(scope.shifts).share(len(losing))}"
    names = joined([f"{name_of(change)} ({points(change.shift)})" for change in losing])
    return f"a loss is shown for {names}"


def _falls(change: Change | None) -> bool:
    return change is not None and not missing(change.high) and change.gains[2] < 0


def _loses_more(finding: Finding) -> str:
    """Who loses more than the rest, and apart from them who gained less."""
    scope = finding.model
    if not scope.excesses:
        return "cannot be tested: there is nothing to compare with"
    own = {change.key for change in scope.loses}
    most = None if scope.most is None else scope.most.key
    names = [
        f"{name_of(change)}, by {by_how_much(change)}"
        + ("" if change.key in own else " (its own loss is not clear)")
        for change in sorted(scope.pays_more, key=lambda change: change.key != most)
    ]
    said = f"no {Parts.of(scope.excesses).one} is shown to lose more than the rest"
    if names:
        said = "; ".join(names[:NAMED])
        left = len(names) - NAMED
        said += f"; and {count(left)} more" if left > 0 else ""
    if scope.gained_less:
        less = [f"{name_of(c)}, by {size_in_points(c.shift)}" for c in scope.gained_less]
        said += f". Gained less than the rest: {joined(less, NAMED)}"
    return said


def _ruled_out(found: Sequence[Finding]) -> tuple[str, ...]:
    """For how many a loss beyond the margin is ruled out; of many variants, in which for all."""
    known = [f for f in found if f.ruled_out is not None]
    if len(known) <= NAMED:
        return _by_variant(known, _certain_and_open) if known else ()
    owns = [(shown(f.variant, NAME), f.ruled_out) for f in known if f.ruled_out is not None]
    every = [name for name, own in owns if own.number == own.of]
    where = f"none of {count(len(known))} variants"
    if every:
        where = f"{count(len(every))} of {count(len(known))} variants ({joined(every, NAMED)})"
    margin = loss_that_matters(owns[0][1].margin)
    return (f"a loss beyond {margin}, for every class and group: in {where}",)


def _certain_and_open(finding: Finding) -> str:
    """For how many a loss beyond the margin is ruled out, for whom shown, and who is open."""
    own = finding.ruled_out
    assert own is not None
    said = f"a loss beyond {loss_that_matters(own.margin)} for {own.whom}"
    if own.shown:
        said += f"; {count(own.shown)} {are(own.shown)} shown to lose more than that"
    if not own.open or missing(own.open[0].largest):
        return said
    if own.of > MANY:  # the smallest of a thousand classes leads no list
        rest = "all" if len(own.open) == own.of else "the other"
        return f"{said}; for {rest} {count(len(own.open))} it is open"
    worst = f"up to {size_in_points(own.open[0].largest)} ({name_of(own.open[0], NAME)})"
    rest = f"the other {count(len(own.open))}" if len(own.open) > 1 else "the other one"
    rest = "they" if len(own.open) == own.of > 1 else rest
    return f"{said}; {rest} may lose {worst}"


def _too_small(result: AuditResult, found: Sequence[Finding]) -> str:
    """Who has too few examples to find a loss, and how many it would take."""
    untested = {(small.kind, small.name): small for f in found for small in f.small}
    needed: dict[tuple[str, str, str | None], tuple[str, int, float]] = {}
    for finding in found:
        for blind in finding.blind:
            if (blind.kind, blind.name) not in untested:
                key = (blind.kind, blind.name, blind.task)
                known = needed.get(key, ("", 0, 0.0))[2]
                least = blind.n_needed if math.isfinite(blind.n_needed) else 0.0
                needed[key] = (name_of(blind, NAME), blind.n or 0, max(known, least))
    parts = []
    if needed:
        rows = sorted(needed.values(), key=lambda row: -row[1])
        size = loss_that_matters(next(b.reference for f in found for b in f.blind))
        loss = f"to find a {size.removesuffix(' points')}-point loss"
        loss = loss if unit().share else f"to find a loss of {size}"
        takes = [float(f"{needs:.2g}") for _, _, needs in rows]
        if len(rows) <= NAMED:
            each = [
                f"{name} has {count(n)}" + (f" (needs about {count(needs)})" if needs else "")
                for (name, n, _), needs in zip(rows, takes, strict=True)
            ]
            parts.append(f"too few examples {loss}: {joined(each)}")
        else:
            whose = Parts.of(found[0].model.shifts).share(len(rows))
            about = _span([needs for needs in takes if needs])
            parts.append(
                f"{whose} have {_span([n for _, n, _ in rows])} examples"
                + (f"; about {about} are needed {loss}" if about else f", too few {loss}")
            )
    if untested:
        rest = sorted(untested.values(), key=lambda small: -(small.n or 0))
        names = [
            name_of(small, NAME) + ("" if small.n is None else f" ({counted(small.n, 'example')})")
            for small in rest
        ]
        named = joined(names)
        if len(rest) > NAMED:  # a class of three leads no list
            kinds = Parts(*(sum(s.kind == kind for s in rest) for kind in ("class", "group")))
            named = f"{kinds.many} of {_span([s.n for s in rest if s.n is not None])} examples"
        reasons = {small.reason for small in rest if not small.reason.startswith("n < ")}
        named += f" ({shown(reasons.pop())})" if len(reasons) == 1 else ""
        parts.append(f"not tested: {named}")
    return "; ".join(parts) or "none"


def _span(numbers: Sequence[float]) -> str:
    """From the least to the largest.

    >>> _span([79, 317, 88]), _span([960.0, 960.0]), _span([])
    ('79 to 317', '960', '')
    """
    if not numbers:
        return ""
    ends = [count(end) for end in (min(numbers), max(numbers))]
    return " to ".join(dict.fromkeys(ends))


# The line of one variant.


def _shown_loss(scope: ScopeFinding) -> str:
    if not scope.shifts and (scope.overall is None or missing(scope.overall.low)):
        why = "" if scope.reason is None else f" ({shown(scope.reason)})"
        return f"{overall_accuracy(scope.overall)}; a loss cannot be tested{why}"
    one = Parts.of(scope.shifts).one
    more = len(scope.pays_more) - 1
    others = f"; {count(more)} more {'loses' if more == 1 else 'lose'} more than the rest"
    others = others if more > 0 else ""
    if scope.most is not None:
        return f"{name_of(scope.most, NAME)} loses most, {points(scope.most.shift)}{others}"
    if scope.pays_more:
        name = name_of(scope.pays_more[0], NAME)
        return f"{name} does worse than the rest, but its own loss is not clear{others}"
    nobody = f"no {one} is shown to lose more than the rest"
    change = scope.overall
    if change is not None and _falls(change):
        return f"loses {size_in_points(change.shift)} overall; {nobody}"
    if scope.loses:
        return f"{_losing(scope)}; {nobody}"
    if change is not None and not missing(change.low) and change.gains[1] > 0:
        return f"no loss found; gains {size_in_points(change.shift)} overall"
    return "no loss found"


def _beyond(finding: Finding) -> list[str]:
    """What holds of the method; nothing where too few members can tell."""
    if len(finding.verdicts) < 2:
        return []
    scope = finding.verdicts[1]
    standing = Standing(1, finding, scope)
    one = Parts.of(scope.shifts).one
    if scope.most is not None:
        who = f"{name_of(scope.most, NAME)} loses most, {points(scope.most.shift)}"
        return [f"{worded('beyond retraining', finding.members.kind)}, {who}"]
    if scope.loses and not standing.loses_overall:
        return [f"{worded('beyond retraining', finding.members.kind)}, {_losing(scope)}"]
    said = "beyond retraining, no loss is shown"
    if standing.loses_overall:
        said = "beyond retraining, a loss is shown overall"
        if not scope.pays_more and finding.model.pays_more:  # so few do not show what these do
            members = finding.members
            member = "run" if members.kind == REPEATED else "member"
            fewest = min(members.baseline, members.compressed)
            said += f", but {counted(fewest, member)} a side do not show who loses more"
        elif not scope.pays_more:
            said += f", but for no {one} more than the rest"
    return [worded(said, finding.members.kind)]


def _certain(finding: Finding) -> list[str]:
    own = finding.ruled_out
    if own is None:
        return []
    said = f"a loss beyond {loss_that_matters(own.margin)} is ruled out for {own.whom}"
    loses = bool(finding.model.loses) or _falls(finding.model.overall)
    if not own.number and not loses and own.open and not missing(own.open[0].largest):
        said += f" (up to {size_in_points(own.open[0].largest)} is possible)"
    return [said]


# Caveats: what a reader must know before acting, each once.


def _caveats(result: AuditResult, by_rank: Sequence[Finding]) -> list[Caveat]:
    """In the order of their weight: the first three are shown."""
    from fairweight.tables.companions import leak_notes, leaks, members_in  # with pyarrow

    first = by_rank[0]
    members, change = first.members, first.model.overall
    saw_more = leak_notes(leaks(result.variants_table, [f.variant for f in by_rank]))
    found = [Caveat(note, "notes") for note in (*saw_more[:1], *_absent(result))]
    if members.population and members.kind != REPEATED:
        seeds = result.per_seed[["variant", "seed"]].drop_duplicates().astype(str)
        if not set(zip(*seeds.to_numpy().T, strict=True)) <= members_in(result.variants_table):
            found.append(Caveat(SEEDS, "notes"))
    if not members.population:
        found.append(Caveat(worded(ONE_PAIR, members.kind), "one-pair"))
    elif change is not None and not missing(change.noise_floor):
        words = worded("For scale: retraining the dense model moves", members.kind)
        moved = f"{shown(first.variant, NAME)} typically moved it by"
        sizes = [size_in_points(size) for size in (change.noise_floor, change.matched)]
        found.append(
            Caveat(f"{words} {unit().name} by up to {sizes[0]}; {moved} {sizes[1]}.", "retraining")
        )
    elif len(first.verdicts) < 2:
        found.append(Caveat(worded(TOO_FEW_MEMBERS, members.kind), "one-pair"))
    if not first.clustered:
        found.append(Caveat(INDEPENDENT, "independent"))
    return found


def _absent(result: AuditResult) -> list[str]:
    """Examples that were left out, and predictions that are missing."""
    said = []
    lacking = result.left_out
    if len(lacking):
        number = int(lacking.loc[lacking["kind"] == "overall", "n"].sum())
        if number:
            said.append(
                f"{counted(number, 'example')} left out: some model has no prediction for them."
            )
    for variant in result.variants:
        for row in rows_of(result, variant, "abstention_rate", "overall"):
            if not row_ok(row) or not missing(row["task"]):
                continue
            parts = [
                f"{count(round(float(row[side]) * int(row['n'])))} of {shown(name, NAME)}"
                for side, name in (("baseline", result.baseline), ("compressed", variant))
                if not missing(row[side]) and float(row[side]) > 0
            ]
            if parts and not said:
                said.append(f"Missing predictions count as wrong: {joined(parts)}.")
    return said
