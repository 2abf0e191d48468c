"""A table of paired rates: both models, their shift and excess, and what limits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import MIN_CLUSTERS, Comparison, Options, Slots
from fairweight.auditing.counts.cube import CubeMember
from fairweight.auditing.result import (
    BOOLEAN_COLUMNS,
    BOUND_COLUMNS,
    DIVISORS,
    GATE_ALPHA,
    INTEGER_COLUMNS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
)
from fairweight.base.types import Floats, Limits

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.compare.simultaneous import FamilyDraws


@dataclass(frozen=True)
class RateEstimate:
    """Arrays over the rows of `slots`; limits are functions, so that any level can be asked for."""

    slots: Slots
    n: Floats
    n_clusters: Floats  # NaN without clusters
    baseline: Floats
    compressed: Floats
    shift: Floats
    p_value: Floats
    zero_p: Floats  # the smallest level at which `limits` exclude 0
    excess: Floats
    excess_p: Floats
    discordance: Floats
    design_effect: Floats
    baseline_limits: Callable[[float | Floats], Limits]
    compressed_limits: Callable[[float | Floats], Limits]
    limits: Callable[[float | Floats], Limits]
    excess_limits: Callable[[float], Limits]
    interval: str | None
    members: Floats  # (members, rows): every member's own rate
    assumed: NDArray[np.bool_] | None = None  # rows that take from others how changes clump

    @property
    def intervals(self) -> NDArray[np.object_] | str | None:
        """What the limits of each row are, and what they assume."""
        if self.interval is None or self.assumed is None:
            return self.interval
        longer = f"{self.interval}; assumes losses clump here as elsewhere"
        return np.where(self.assumed, longer, self.interval).astype(object)


def limits_where(
    rows: NDArray[np.bool_], limits: Callable[[float | Floats], Limits] | None
) -> Callable[[float | Floats], Limits]:
    """The limits of some rows, NaN of all others; of none, where there are no limits."""

    def at(alpha: float | Floats) -> Limits:
        if limits is None:
            missing = np.full(np.broadcast_shapes(np.shape(alpha), rows.shape), np.nan)
            return missing, missing
        low, high = limits(alpha)
        return np.where(rows, low, np.nan), np.where(rows, high, np.nan)

    return at


def without_limits(e: RateEstimate) -> RateEstimate:
    """The estimates alone, where nothing can be said about their precision."""
    nothing = np.full(len(e.n), np.nan)
    no_limits = limits_where(np.zeros(len(e.n), dtype=bool), None)
    return replace(
        e,
        p_value=nothing,
        zero_p=nothing,
        excess_p=nothing,
        baseline_limits=no_limits,
        compressed_limits=no_limits,
        limits=no_limits,
        excess_limits=no_limits,
        interval=None,
    )


# Rows of the results: blocks of arrays with the contract's columns, joined into one frame.

Block: TypeAlias = dict[str, Any]  # column → array of the block's length


def block(
    c: Comparison,
    metric: str,
    slots: Slots,
    *,
    scope: str = "model",
    sized: NDArray[np.bool_] | None = None,
    **columns: Any,
) -> Block:
    """One metric's rows for the slots; columns that are not given stay empty.

    `sized` says which rows could be tested, where the status also tells of results.
    """
    size = len(slots)
    members = (c.n_baseline, c.n_compressed)
    if scope == "method" and c.has_method:  # parents without children take no part
        members = (int((c.unit_weights[0] > 0).sum()), int((c.unit_weights[1] > 0).sum()))
    made: Block = {
        "variant": np.full(size, c.variant, dtype=object),
        "metric": np.full(size, metric, dtype=object),
        "by": np.full(size, slots.by, dtype=object),
        "group": slots.group,
        "class": slots.cls,
        "task": np.full(size, c.task, dtype=object),
        "scope": np.full(size, scope, dtype=object),
        "n_seeds_baseline": np.full(size, float(members[0])),
        "n_seeds_compressed": np.full(size, float(members[1])),
        "kind": np.full(size, slots.kind, dtype=object),
        "outside": slots.outside,
    }
    for name, value in columns.items():
        array = np.asarray(value, dtype=object if name in TEXT_COLUMNS else float)
        made[name] = np.broadcast_to(array, (size,)).copy()
    made.setdefault("n_clusters", slots.clusters)
    by_size = np.broadcast_to(status(c, made.get("n"), made["n_clusters"]), (size,))
    made.setdefault("status", by_size.copy())
    # Who belongs to a family is decided on sizes and on what a metric needs, never on results.
    made["sized"] = np.asarray(made["status"] == "ok") if sized is None else sized
    return made


def status(c: Comparison, n: Floats | None, n_clusters: Floats | None) -> NDArray[np.object_]:
    """`ok`, or why a row must not be leaned on; decided on sizes, never on results."""
    if n is None:
        return np.array(["ok"], dtype=object)
    found = np.full(len(n), "ok", dtype=object)
    found[n < c.options.min_group] = f"small_group: n < {c.options.min_group}"
    found[n == 0] = "not_estimable: no examples"
    if n_clusters is not None and c.cube.unit_is_cluster:
        few = (n_clusters < MIN_CLUSTERS) & (n > 0)
        for i in np.flatnonzero(few):
            found[i] = f"not_estimable: {int(n_clusters[i])} clusters"
    return found


def frame(blocks: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """All blocks as one frame with exactly the contract's columns and fixed types."""
    import pandas as pd

    sizes = [len(b["variant"]) for b in blocks]
    columns: dict[str, Any] = {}
    for name in RESULT_COLUMNS:
        empty: Any = None if name in TEXT_COLUMNS else np.nan
        kind: Any = object if name in TEXT_COLUMNS else float
        parts = [
            np.asarray(b[name], dtype=kind) if name in b else np.full(size, empty, dtype=kind)
            for b, size in zip(blocks, sizes, strict=True)
        ]
        joined = np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
        if name in INTEGER_COLUMNS:
            columns[name] = pd.array(joined, dtype="Int64")
        elif name in BOOLEAN_COLUMNS:
            known = [None if np.isnan(value) else bool(value) for value in joined]
            columns[name] = pd.array(known, dtype="boolean")
        elif name in TEXT_COLUMNS:
            columns[name] = pd.Series(joined, dtype=object)
        else:
            columns[name] = joined
    return pd.DataFrame(columns, columns=list(RESULT_COLUMNS))


# Families: which rows are tested together, and what correction they get.
#
# A family is variant × task × scope × metric × (classes | all levels of all single columns | all
# intersections). Who belongs to it depends on sizes alone. `accuracy` by group and `recall` by
# class
# are confirmatory (Holm), and so is what a policy names; everything else is exploratory
# (Benjamini–Hochberg) and says so.

CONFIRMATORY = frozenset(
    {
        ("accuracy", "overall"),
        ("accuracy", "group"),
        ("accuracy", "intersection"),
        ("recall", "class"),
    }
)
NAMES = {
    "overall": "overall",
    "class": "by class",
    "group": "by group",
    "intersection": "by intersection",
    "group*class": "by group and class",
    "grouping": "by column",
}


def family_size(block: Block) -> int:
    """Rows that are tested: large enough, and not of missing values; whatever came out."""
    return max(1, int(np.sum(_inside(block))))


def _inside(block: Block) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = block["sized"] & ~block["outside"]
    return inside


def corrected(block: Block, options: Options, draws: FamilyDraws | None = None) -> Block:
    """The block with `p_adjusted`, `family` and `n_family`; small groups stay outside.

    One block holds exactly one family. With `draws` the excess is corrected by random signs.
    """
    from fairweight.auditing.intervals.multiplicity import adjust

    metric, kind = str(block["metric"][0]), str(block["kind"][0])
    confirmatory = (metric, kind) in CONFIRMATORY or (metric, kind) in options.confirmatory
    correction = options.correction
    method = correction if confirmatory else ("bh" if correction != "none" else "none")
    inside = _inside(block)
    p = np.asarray(block.get("p_value", np.full(len(inside), np.nan)), dtype=float)
    tested = np.where(inside, p, np.nan)
    role = "confirmatory" if confirmatory else "exploratory"
    name = f"{role}: {metric} {NAMES[kind]} ({method})"
    if not np.isfinite(tested).any():  # nothing here is tested (shares of lost answers, flips)
        nothing = np.full(len(tested), np.nan)
        return {**block, "p_adjusted": tested, "excess_p_adjusted": tested, "n_family": nothing}
    excess = np.asarray(block.get("excess_p", np.full(len(inside), np.nan)), dtype=float)
    return {
        **block,
        "p_adjusted": adjust(tested, method),
        "excess_p_adjusted": adjust(np.where(inside, excess, np.nan), method)
        if draws is None
        else np.where(inside, draws.adjusted(excess), np.nan),
        "family": np.array([name if here else None for here in inside], dtype=object),
        "n_family": np.where(inside, float(family_size(block)), np.nan),
    }


# Limits for the gate: one-sided, at every level that Holm's steps may ask for.

MANY_ROWS = 2_000  # of more rows only some levels are computed
FEW_DIVISORS = (1, 50, 1000)
LEVELS: Floats = np.array([2 * GATE_ALPHA / j for j in DIVISORS])  # two-sided, for limits
BOUND_KEYS = ("variant", "task", "metric", "by", "kind", "group", "class", "n")


def rate_bounds(e: RateEstimate) -> dict[str, Floats]:
    """Limits of shift and compressed value, (rows, levels, 2).

    Where only some levels are computed, the next wider limits stand for those between: a gate
    then fails later, never sooner.
    """
    divisors = DIVISORS if len(e.n) <= MANY_ROWS else FEW_DIVISORS
    levels = np.array([[2 * GATE_ALPHA / j] for j in divisors])
    use = np.searchsorted(divisors, DIVISORS)
    made = {}
    for name, limits in (("shift", e.limits), ("value", e.compressed_limits)):
        low, high = limits(levels)
        made[f"bounds_{name}"] = np.stack([low[use].T, high[use].T], axis=-1)
    return made


def bounds_frame(blocks: Sequence[Block]) -> pd.DataFrame:
    """All limits that the blocks carry as one frame with the contract's columns."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in BOUND_COLUMNS}
    for b in blocks:
        size = len(b["metric"])
        for quantity, estimate in (("shift", "shift"), ("value", "compressed")):
            limits = b.get(f"bounds_{quantity}")
            if limits is None or b["scope"][0] != "model":
                continue
            for name in BOUND_KEYS:
                columns[name].append(b[name])
            columns["status"].append(_status(b, quantity))
            columns["quantity"].append(np.full(size, quantity, dtype=object))
            columns["estimate"].append(b.get(estimate, np.full(size, np.nan)))
            for i, j in enumerate(DIVISORS):
                columns[f"low_{j}"].append(limits[:, i, 0])
                columns[f"high_{j}"].append(limits[:, i, 1])
    if not columns["metric"]:
        return schema.frame("bounds")
    made = pd.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
    return made.astype({"n": "Int64"})


def _status(b: Block, quantity: str) -> Any:
    """A row's status; what its limits are instead of an interval is said here alone."""
    state = b["status"].copy()
    for i, how in enumerate(b.get("interval", ())):
        if state[i] == "ok" and isinstance(how, str) and how.startswith("none"):
            state[i] = f"not_estimable: {how}"
    if quantity == "value" and "value_known" in b:
        state[b["value_known"]] = "ok"  # whatever the shift lacks
    for i, how in enumerate(b.get("bound_status", ()) if quantity == "shift" else ()):
        if how is not None:  # a bound of the shift
            state[i] = how
    return state


# Every member's own numbers, read off the blocks of all comparisons; who is far from the rest.

MEMBER_KEYS = ("task", "metric", "by", "group", "class", "n")
FAR = 3.0  # median absolute deviations beyond which a member is far from the others
AS_DEVIATION = 1.4826  # of a normal sample: its standard deviation / its median absolute deviation


@dataclass(frozen=True)
class Members:
    """The members of one variant and their overall accuracy (mean over tasks), in order of seeds.

    A t interval over few members takes it that no run fails: where 20 % of runs do, it covers 68 %
    at five pairs. `far` are the seeds beyond `FAR` median absolute deviations from the median, in
    the scaling that makes them standard deviations, and by more than as many examples. They are
    worth a look, no more: of populations of 3 to 10 members of which none failed, 20 to 33 % have
    such a member too.
    """

    variant: str
    seeds: tuple[str, ...]
    accuracy: tuple[float, ...]
    far: tuple[str, ...]


def members_of(per_seed: pd.DataFrame, variant: str) -> Members:
    """The members of a variant, from the table `per_seed`."""
    rows = per_seed[
        (per_seed["variant"] == variant)
        & (per_seed["metric"] == "accuracy")
        & (per_seed["by"] == "overall")
    ]
    means = rows.groupby("seed", sort=False)[["value", "n"]].mean()
    values = means["value"].to_numpy(dtype=float)
    seeds = tuple(str(seed) for seed in means.index)
    if not len(values):
        return Members(variant, (), (), ())
    away = np.abs(values - np.median(values))
    usual = max(AS_DEVIATION * float(np.median(away)), 1 / float(means["n"].max()))
    far = tuple(
        seed for seed, apart in zip(seeds, away, strict=True) if apart > FAR * usual + 1e-12
    )
    return Members(variant, seeds, tuple(values.tolist()), far)


def per_seed(
    compared: Iterable[tuple[Sequence[CubeMember], Sequence[Block]]], baseline: str
) -> pd.DataFrame:
    """One row per member and row of the results; the baseline's members once.

    Comparisons (flips, CEV) have a value for every compressed member: against its own partner, or
    against the baseline's mean rates.
    """

    columns: dict[str, list[Any]] = {name: [] for name in schema.column_names("per_seed")}
    seen: set[tuple[Any, ...]] = set()
    for members, blocks in compared:
        for b in blocks:
            values = b.get("members")
            if values is None:
                continue
            key = tuple(b[name][0] for name in ("task", "metric", "kind"))
            known, size = (key in seen), len(b["metric"])
            seen.add(key)
            for m, member in enumerate(members):
                if np.isnan(values[:, m]).all() or (known and member.variant == baseline):
                    continue
                columns["variant"].append(np.full(size, member.variant, dtype=object))
                columns["seed"].append(np.full(size, member.seed, dtype=object))
                for name in MEMBER_KEYS:
                    columns[name].append(b[name])
                columns["value"].append(values[:, m])
    made = {
        name: np.concatenate(parts) if parts else np.zeros(0, dtype=object)
        for name, parts in columns.items()
    }
    return schema.frame("per_seed", made)
