"""A policy to start from, with the number of examples that each margin needs."""

from __future__ import annotations

from fairweight.auditing.decide.least_n import least_n, likely_n

MARGINS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
_DISCORDANCE = 0.05

_TEXT = """\
# What a compressed model may lose before it must not ship.
#
#   fairweight gate dense.csv int8.csv --groups sex,age --policy policy.toml
#
# Exit codes: 0 pass, 1 fail, 2 bad input, 3 cannot tell.
# Pass: for every row named below, a loss of `margin` is excluded with 95 % confidence.
# Fail: for some row, a loss of more than `margin` is shown, corrected for looking at all of them.
# Else the data cannot tell. The smaller the margin, the more examples each group needs:
#
#   margin   least n: identical      about n for an 80 % chance that a row passes with
#            predictions pass        no true loss and {discordance} of answers lost or gained
{table}

schema = 1

# Rows of fewer examples are never judged: cannot tell.
min_group_size = 100

# Groups that must be in the data; a run without them is refused.
# require_groups = ["sex=Female", "sex=Male"]

# Every group of every group column may lose at most 2 points of accuracy.
[[rule]]
metric = "accuracy"
by = "group"            # overall | class | group | intersection | grouping
margin = 0.02
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


def starter_policy() -> str:
    """A commented TOML file that is itself a policy."""
    table = "\n".join(
        f"#   {margin:<8g} {least_n(margin):>7,}{'':17}{likely_n(margin, _DISCORDANCE):>7,}"
        for margin in MARGINS
    )
    return _TEXT.format(table=table, discordance=f"{100 * _DISCORDANCE:g} %")
