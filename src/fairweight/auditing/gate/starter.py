"""A policy to start from, with the number of examples that each margin needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fairweight.auditing.gate.sample_size import (
    MARGINS,
    POWER,
    Pilot,
    PlanRequest,
    leading_metric,
    sizes_of,
)
from fairweight.auditing.intervals.power import margin_to_pass
from fairweight.auditing.result import AuditResult
from fairweight.tables.names import is_missing

CHURN = 0.05  # share of predictions lost or gained, where no table says it
_MIN_GROUP_SIZE = PlanRequest().min_group_size
COMMAND = "fairweight gate dense.csv int8.csv --groups sex,age --policy policy.toml"

_TEXT = """\
# What a compressed model may lose before it must not ship.
#
#   {command}
#
# Exit codes: 0 pass, 1 fail, 2 bad input, 3 cannot tell.
# Pass: for every row named below, a loss of `margin` is excluded with 95 % confidence.
# Fail: for some row, a loss of more than `margin` is shown, corrected for looking at all of them.
# Else the data cannot tell. The smaller the margin, the more examples each group needs{needed}
{found}
schema = 1

# Rows of fewer examples are never judged: cannot tell.
min_group_size = {min_group_size}

# Groups that must be in the data; a run without them is refused.
{require_groups}

# {every} may lose at most {margin}.
[[rule]]
metric = {metric}
by = {by}# overall | class | group | intersection | grouping
margin = 0.02
# recovery = 0.99           # and must keep 99 % of the dense model's value
# groups = ["sex=Female"]   # only these; or columns = ["sex"]
{classes}"""
_NEEDED = """:
#
#   margin   least n: identical      n for an {power} chance that {who} with
#            predictions pass        no true loss and {churn} of predictions lost or gained
{table}
#
# (fairweight plan gives these numbers for other margins, groups and churns.)"""
_CLASSES = """
# No class may lose more than 5 points of its recall.
[[rule]]
metric = "recall"
by = "class"
margin = 0.05
# min = 0.8                 # and none may be below 80 %, however bad the dense model was
# classes = ["3"]

# Lower-is-better metrics: a loss is an increase, and max is the ceiling.
# [[rule]]
# metric = "fnr"
# by = "group"
# margin = 0.02
# max = 0.2

# Gaps between the groups of a column may not widen by more than 3 points.
# [[rule]]
# metric = "group_gap"
# by = "grouping"
# margin = 0.03
"""


@dataclass(frozen=True)
class _TableFacts:
    """What a table says that a policy should know."""

    metric: str  # accuracy, or the outcome in its place
    classes: bool
    sizes: dict[str, int]  # group → examples (of the task that has fewest)
    unnamed: int  # examples without a value in some group column
    pilot: Pilot | None  # None: an outcome that is not right or wrong

    @property
    def design_effect(self) -> float:
        """How many examples are worth one, at most."""
        effects = {} if self.pilot is None else self.pilot.design_effects
        return max((effect for effect in effects.values() if math.isfinite(effect)), default=1.0)

    @staticmethod
    def of(result: AuditResult) -> _TableFacts:
        bounds, metric = result.bounds, leading_metric(result)
        rows = bounds[
            (bounds["metric"] == metric)
            & (bounds["quantity"] == "value")
            & bounds["kind"].isin(["group", "intersection"])
        ]
        sizes = {str(g): int(n) for g, n in rows.groupby("group", sort=False)["n"].min().items()}
        return _TableFacts(
            metric=metric,
            classes=bool((bounds["kind"] == "class").any()),
            sizes={name: n for name, n in sizes.items() if not is_missing(name)},
            unnamed=sum(n for name, n in sizes.items() if is_missing(name)),
            pilot=Pilot.of(result),
        )


def starter_policy(result: AuditResult | None = None, command: str = COMMAND) -> str:
    """A commented TOML file that is itself a policy, for the table that was audited if one was."""
    found = None if result is None else _TableFacts.of(result)
    groups = 1 if found is None else max(1, len(found.sizes))
    needed, margin = ".", "0.02, in the unit of the outcome: choose it"
    if found is None or found.pilot is not None:
        churn = CHURN if found is None or found.pilot is None else found.pilot.churn
        effect = 1.0 if found is None else found.design_effect
        rows = []
        for limit in MARGINS:
            sizes = sizes_of(PlanRequest(), groups, limit, churn, effect)
            rows.append(f"#   {limit:<8g} {sizes['n_identical']:>7,}{'':17}{sizes['n_needed']:>7,}")
        needed = _NEEDED.format(
            power=_percent(POWER),
            who="a row passes" if groups == 1 else f"all {groups:,} groups pass",
            churn=_percent(churn),
            table="\n".join(rows),
        )
        margin = "2 points of accuracy"
    named = found is None or bool(found.sizes)
    required = '# require_groups = ["sex=Female", "sex=Male"]'
    if found is not None:
        names = "".join(f"  {toml_text(name)},\n" for name in found.sizes)
        none = "# (the table has no group column)"
        required = f"require_groups = [\n{names}]" if names else none
    return _TEXT.format(
        command=command if command.isprintable() else COMMAND,
        needed=needed,
        margin=margin,
        metric=toml_text("accuracy" if found is None else found.metric),
        classes=_CLASSES if found is None or found.classes else "",
        found="" if found is None else _comments(found),
        min_group_size=_MIN_GROUP_SIZE,
        require_groups=required,
        every="Every group of every group column" if named else "The model as a whole",
        by='"group"            ' if named else '"overall"          ',
    )


def _comments(found: _TableFacts) -> str:
    """What was found, as comments: churn, sizes, and what the smallest group can certify."""
    lines, pilot = [], found.pilot
    if pilot is not None:
        lines.append(
            f"Churn: {_shown(pilot.variant)} loses or gains {_percent(pilot.churn)} of predictions."
        )
    if found.sizes and pilot is not None:
        name, n = min(found.sizes.items(), key=lambda item: item[1])
        worth = max(1.0, n / found.design_effect)
        margins = (margin_to_pass(worth, churn) for churn in (0.0, pilot.churn))
        best, likely = (f"{math.ceil(margin * 1e4) / 1e4:g}" for margin in margins)
        lines += [
            f"Smallest of {len(found.sizes):,} groups: {_shown(name)}, {n:,} examples.",
            f"It can certify a margin of {best} at best (identical predictions),",
            f"and about {likely} in {_percent(POWER)} of cases at this churn.",
        ]
        if n < _MIN_GROUP_SIZE:
            lines.append("It is smaller than min_group_size, so the gate cannot tell.")
    if found.unnamed:
        lines.append(f"Without a group value: {found.unnamed:,} examples, judged as a group.")
    return "#\n" + "".join(f"# {line}\n" for line in lines)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _shown(name: str) -> str:
    """A name in a comment: on one line, whatever it holds."""
    return name if name.isprintable() else toml_text(name)


def toml_text(text: str) -> str:
    r"""Text as a TOML string.

    >>> print(toml_text('a "b"\n\x7f'))
    "a \"b\"\n\u007f"
    """
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return (
        '"'
        + "".join(
            escapes.get(c, c if c.isprintable() or ord(c) > 0xFFFF else f"\\u{ord(c):04x}")
            for c in text
        )
        + '"'
    )
