"""A policy to start from, with the number of examples that each margin needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from fairweight.auditing.result import GATE_ALPHA, AuditResult
from fairweight.tables.names import is_missing

MARGINS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
POWER = 0.8  # how often an unchanged model should pass
_CHURN = 0.05  # share of answers lost or gained, where no table says it
_MIN_GROUP_SIZE = 100
COMMAND = "fairweight gate dense.csv int8.csv --groups sex,age --policy policy.toml"

_TEXT = """\
# What a compressed model may lose before it must not ship.
#
#   {command}
#
# Exit codes: 0 pass, 1 fail, 2 bad input, 3 cannot tell.
# Pass: for every row named below, a loss of `margin` is excluded with 95 % confidence.
# Fail: for some row, a loss of more than `margin` is shown, corrected for looking at all of them.
# Else the data cannot tell. The smaller the margin, the more examples each group needs:
#
#   margin   least n: identical      about n for an {power} chance that {who} with
#            predictions pass        no true loss and {churn} of answers lost or gained
{table}
{found}
schema = 1

# Rows of fewer examples are never judged: cannot tell.
min_group_size = {min_group_size}

# Groups that must be in the data; a run without them is refused.
{require_groups}

# {every} may lose at most 2 points of accuracy.
[[rule]]
metric = "accuracy"
by = {by}# overall | class | group | intersection | grouping
margin = 0.02
# recovery = 0.99           # and must keep 99 % of the dense model's accuracy
# groups = ["sex=Female"]   # only these; or columns = ["sex"]

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


def least_n(margin: float) -> int:
    """The least n at which identical predictions pass a margin on accuracy.

    Tango's lower limit without a discordant pair is −z² / (n + z²), which must be above −margin:
    n > z² (1 / margin − 1), with z of the one-sided gate.

    >>> least_n(0.02)
    133
    """
    return math.floor(_Z**2 * (1 / margin - 1)) + 1


def likely_n(margin: float, churn: float, power: float = POWER, groups: int = 1) -> int:
    """About how many examples a group needs for all groups to pass with that power.

    No group truly loses anything; `churn` ψ is the share of examples on which just one of the two
    models is right. Groups pass independently, so each must with probability power^(1/groups).
    Tango's statistic is normal with variance ψ / n, while its own error at a shift of −margin is
    (2q + margin (1 − margin)) / n, with q the share of gained answers that fits such a shift.

    >>> likely_n(0.02, 0.05), likely_n(0.02, 0.03, groups=17)
    (837, 1267)
    """
    linear = 2 * margin - churn
    root = math.sqrt(linear**2 + 4 * churn * margin * (1 - margin))
    q = (root - linear) / 4
    reach = _Z * math.sqrt(2 * q + margin * (1 - margin))
    reach += NormalDist().inv_cdf(power ** (1 / groups)) * math.sqrt(churn)
    return max(least_n(margin), math.ceil((reach / margin) ** 2))


def likely_margin(n: int, churn: float, power: float = POWER) -> float:
    """About the smallest margin that a group of n certifies with that power if it loses nothing.

    >>> round(likely_margin(837, 0.05), 3), round(likely_margin(132, 0.0), 4)
    (0.02, 0.0201)
    """
    low, high = 1e-6, 1 - 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if likely_n(middle, churn, power) <= n else (middle, high)
    return high


_Z = NormalDist().inv_cdf(1 - GATE_ALPHA)


@dataclass(frozen=True)
class _TableFacts:
    """What a table says that a policy should know."""

    sizes: dict[str, int]  # group → examples (of the task that has fewest)
    unnamed: int  # examples without a value in some group column
    churn: float  # of the variant that changes most
    variant: str

    @staticmethod
    def of(result: AuditResult) -> _TableFacts:
        bounds = result.bounds
        rows = bounds[
            (bounds["metric"] == "accuracy")
            & (bounds["quantity"] == "value")
            & bounds["kind"].isin(["group", "intersection"])
        ]
        sizes = {str(g): int(n) for g, n in rows.groupby("group", sort=False)["n"].min().items()}
        flips = result.results[
            result.results["metric"].isin(["harmful_flips", "helpful_flips"])
            & (result.results["by"] == "overall")
            & (result.results["scope"] == "model")
        ]
        # A change is harmful or helpful; of several tasks the one that changes most counts.
        churns: dict[tuple[str, str], float] = {}
        columns = (flips["variant"], flips["task"].fillna(""), flips["compressed"])
        for name, task, share in zip(*columns, strict=True):
            churns[name, task] = churns.get((name, task), 0.0) + float(share)
        (variant, _), churn = max(
            churns.items(), key=lambda item: item[1], default=((result.variants[0], ""), _CHURN)
        )
        return _TableFacts(
            sizes={name: n for name, n in sizes.items() if not is_missing(name)},
            unnamed=sum(n for name, n in sizes.items() if is_missing(name)),
            churn=churn,
            variant=variant,
        )


def starter_policy(result: AuditResult | None = None, command: str = COMMAND) -> str:
    """A commented TOML file that is itself a policy, for the table that was audited if one was."""
    found = None if result is None else _TableFacts.of(result)
    churn = _CHURN if found is None else found.churn
    groups = 1 if found is None else max(1, len(found.sizes))
    table = "\n".join(
        f"#   {margin:<8g} {least_n(margin):>7,}{'':17}{likely_n(margin, churn, groups=groups):>7,}"
        for margin in MARGINS
    )
    named = found is None or bool(found.sizes)
    required = '# require_groups = ["sex=Female", "sex=Male"]'
    if found is not None:
        names = "".join(f"  {toml_text(name)},\n" for name in found.sizes)
        none = "# (the table has no group column)"
        required = f"require_groups = [\n{names}]" if names else none
    return _TEXT.format(
        command=command if command.isprintable() else COMMAND,
        power=_percent(POWER),
        who="a row passes" if groups == 1 else f"all {groups:,} groups pass",
        churn=_percent(churn),
        table=table,
        found="" if found is None else _comments(found),
        min_group_size=_MIN_GROUP_SIZE,
        require_groups=required,
        every="Every group of every group column" if named else "The model as a whole",
        by='"group"            ' if named else '"overall"          ',
    )


def _comments(found: _TableFacts) -> str:
    """What was found, as comments: churn, sizes, and what the smallest group can certify."""
    lines = [f"Churn: {_shown(found.variant)} loses or gains {_percent(found.churn)} of answers."]
    if found.sizes:
        name, n = min(found.sizes.items(), key=lambda item: item[1])
        margins = (likely_margin(n, churn) for churn in (0.0, found.churn))
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
