"""What an estimator makes: numbers with limits at any level, families of them, and their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import (
    MIN_CLUSTERS,
    Comparison,
    Names,
    Options,
    Slots,
    join_slots,
)
from fairweight.auditing.counts.cube import CubeMember
from fairweight.auditing.intervals.multiplicity import adjust
from fairweight.auditing.metrics.registry import Metric
from fairweight.auditing.result import (
    DIVISORS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
)
from fairweight.base.types import Floats, Limits

if TYPE_CHECKING:
    from fairweight.auditing.compare.simultaneous import FamilyDraws


LimitsAt: TypeAlias = Callable[[float | Floats], Limits]  # levels (L, 1) → (L, rows) each


@dataclass(frozen=True)
class Estimate:
    """One number per row: its value, limits at any level, and p.

    `corrected` are the limits at the small levels of a family and of the gate, which draws may not
    resolve; None where there are none.
    """

    value: Floats
    limits: LimitsAt
    p: Floats | None = None
    corrected: LimitsAt | None = None

    @staticmethod
    def closed(value: Floats, limits: LimitsAt, p: Floats | None = None) -> Estimate:
        """Limits that are the same formula at every level."""
        return Estimate(value, limits, p, limits)

    @staticmethod
    def alone(value: Floats, p: Floats | None = None) -> Estimate:
        """A value without limits."""
        return Estimate(value, limits_where(np.zeros(len(value), dtype=bool), None), p)


@dataclass(frozen=True)
class Family:
    """The rows of one metric that are tested together, as an estimator made them."""

    metric: Metric
    slots: Slots
    n: Floats
    compressed: Estimate
    baseline: Estimate | None = None  # a comparison of two models has neither this nor a shift
    shift: Estimate | None = None
    excess: Estimate | None = None
    n_clusters: Floats | None = None  # None: those of the slots
    status: Names | None = None  # None: by sizes alone
    sized: NDArray[np.bool_] | None = None  # rows that could be tested; None: those that are ok
    interval: Names | str | None = None  # how the limits of each row were made
    members: Floats | None = None  # (members, rows): every member's own value
    sums: Sums | None = None  # of a ratio of sums over examples
    columns: Mapping[str, Any] = field(default_factory=dict)  # of the results, as they are
    gate_status: str | None = None  # why no gate may lean on the limits of these rows

    @property
    def change(self) -> Estimate:
        """What an interval is about: the shift, or the value of a comparison."""
        return self.compressed if self.shift is None else self.shift

    @property
    def clusters(self) -> Floats:
        return self.slots.clusters if self.n_clusters is None else self.n_clusters


@dataclass(frozen=True)
class Sums:
    """What is known beside the estimates of a ratio of sums over examples."""

    zero_p: Floats  # the smallest level at which the limits of the shift exclude 0
    discordance: Floats
    design_effect: Floats


def limits_where(rows: NDArray[np.bool_], limits: LimitsAt | None) -> LimitsAt:
    """The limits of some rows, NaN of all others; of none, where there are no limits."""

    def at(alpha: float | Floats) -> Limits:
        if limits is None:
            missing = np.full(np.broadcast_shapes(np.shape(alpha), rows.shape), np.nan)
            return missing, missing
        low, high = limits(alpha)
        return np.where(rows, low, np.nan), np.where(rows, high, np.nan)

    return at


@dataclass(frozen=True)
class Formula:
    """Limits that are a function of columns, (rows,) or (rows, draws) each, and of levels.

    Rows do not depend on each other, so those of many estimates can be computed together.
    """

    function: Callable[..., Limits]
    columns: tuple[NDArray[Any], ...]

    def __call__(self, alpha: float | Floats) -> Limits:
        return self.function(*self.columns, alpha)


class Ends(NamedTuple):
    """Limits of an estimate at the audit's level, (rows,), and at further ones, (levels, rows)."""

    pointwise: Limits
    corrected: Limits | None


AT_ONCE = 200_000  # levels × rows of a formula: few calls, and what they hold stays small


def limits_at(asked: Sequence[tuple[Estimate, float, Floats]]) -> list[Ends]:
    """Limits of many estimates, each at the audit's level and at further ones (or at none).

    A formula is computed of all that ask for it together: a search for a limit takes no more steps
    for a thousand rows than for one.
    """
    formulas: list[tuple[Formula, Floats]] = []
    for estimate, alpha, levels in asked:
        limits, corrected = estimate.limits, estimate.corrected
        if isinstance(limits, Formula):
            every = np.array([alpha, *(levels if corrected is limits else ())])
            formulas.append((limits, every))
        if isinstance(corrected, Formula) and corrected is not limits and len(levels):
            formulas.append((corrected, levels))
    computed = iter(_computed(formulas))
    ends = []
    for estimate, alpha, levels in asked:
        limits, corrected = estimate.limits, estimate.corrected
        known = isinstance(limits, Formula)
        if corrected is limits:
            every = np.array([alpha, *levels])
            ends.append(_ends(*(next(computed) if known else limits(every[:, None]))))
            continue
        pointwise = _ends(*next(computed)).pointwise if known else limits(alpha)
        further = None
        if corrected is not None and len(levels):
            known = isinstance(corrected, Formula)
            further = next(computed) if known else corrected(levels[:, None])
        ends.append(Ends(pointwise, further))
    return ends


def _computed(asked: Sequence[tuple[Formula, Floats]]) -> list[Limits]:
    """Formulas at levels, (levels, rows) each: one call for all with as many levels."""
    together: dict[tuple[Any, ...], list[int]] = {}
    for i, (formula, levels) in enumerate(asked):
        # Draws of many rows are not copied to stand beside others.
        large = sum(column.size for column in formula.columns) > AT_ONCE
        key = formula.function, len(levels), i if large else None
        together.setdefault(key, []).append(i)
    found: dict[int, Limits] = {}
    for (function, number, _), places in together.items():
        every = [asked[i][0].columns for i in places]
        columns = [beside(column) for column in zip(*every, strict=True)]
        sizes = [len(own[0]) for own in every]
        levels = np.array([asked[i][1] for i in places])
        level = np.repeat(levels.T, sizes, axis=1)
        first: NDArray[Any] | None = None
        if level.shape[1] > MANY_ROWS and all(column.ndim == 1 for column in columns):
            # Thousands of small groups have few different counts: each is computed once.
            alike = np.unique(levels, axis=0, return_inverse=True)[1].reshape(-1)
            first, place = different([*columns, np.repeat(alike, sizes)])
            columns, level = [column[first] for column in columns], level[:, first]
        low, high = np.empty_like(level), np.empty_like(level)
        step = max(1, AT_ONCE // number)
        for start in range(0, level.shape[1], step):
            here = slice(start, start + step)
            made = function(*(column[here] for column in columns), level[:, here])
            low[:, here], high[:, here] = made
        if first is not None:
            low, high = low[:, place], high[:, place]
        for i, stop, size in zip(places, np.cumsum(sizes), sizes, strict=True):
            here = slice(stop - size, stop)
            found[i] = low[:, here], high[:, here]
    return [found[i] for i in range(len(asked))]


def beside(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows of several tables as one; of a single table no copy."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def different(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first of every different row of a table, and which of them each row is like.

    >>> [part.tolist() for part in different([np.array([3, 1, 3]), np.array([0, 0, 0])])]
    [[0, 1], [0, 1, 0]]
    """
    place = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        code, values = pd.factorize(column, use_na_sentinel=False)
        place = pd.factorize(place * len(values) + code)[0]
    # Codes are given in the order of their first rows.
    seen = np.maximum.accumulate(np.concatenate([[-1], place]))
    return np.flatnonzero(place > seen[:-1]), place


def _ends(low: Floats, high: Floats) -> Ends:
    """Limits at several levels, the audit's first."""
    return Ends((low[0], high[0]), (low[1:], high[1:]) if len(low) > 1 else None)


def without_limits(family: Family) -> Family:
    """The values alone, where nothing can be said about their precision."""

    def bare(estimate: Estimate | None) -> Estimate | None:
        if estimate is None:
            return None
        nothing = np.full(len(family.n), np.nan)
        return Estimate.alone(estimate.value, None if estimate.p is None else nothing)

    compressed = bare(family.compressed)
    assert compressed is not None
    return replace(
        family,
        compressed=compressed,
        baseline=bare(family.baseline),
        shift=bare(family.shift),
        excess=bare(family.excess),
        interval=None,
    )


def joined(parts: Sequence[Family]) -> Family:
    """Tables of several groupings as one, so that a family is one table."""
    if len(parts) == 1:
        return parts[0]
    first, sizes = parts[0], [len(part.n) for part in parts]
    ends = np.cumsum(sizes)

    def side(name: str) -> Estimate | None:
        found: list[Estimate | None] = [getattr(part, name) for part in parts]
        known = [estimate for estimate in found if estimate is not None]
        if not known:
            return None
        made = [
            Estimate.alone(np.full(size, np.nan)) if one is None else one
            for one, size in zip(found, sizes, strict=True)
        ]

        def limits(pick: str, alpha: float | Floats) -> Limits:
            # A level for every row is shared out; levels for all rows are not.
            own = np.shape(alpha)[-1:] == (ends[-1],)
            levels = np.split(alpha, ends[:-1], axis=-1) if own else [alpha] * len(parts)
            both = [
                (getattr(one, pick) or limits_where(np.zeros(size, dtype=bool), None))(level)
                for one, size, level in zip(made, sizes, levels, strict=True)
            ]
            low, high = (np.concatenate(ends, axis=-1) for ends in zip(*both, strict=True))
            return low, high

        value, p = np.concatenate([one.value for one in made]), None
        if any(one.p is not None for one in known):
            p = np.concatenate(
                [np.full(len(one.value), np.nan) if one.p is None else one.p for one in made]
            )

        def every(pick: str) -> LimitsAt:
            formulas = [f for f in (getattr(one, pick) for one in made) if isinstance(f, Formula)]
            if len(formulas) == len(made) and len({f.function for f in formulas}) == 1:
                columns = zip(*(f.columns for f in formulas), strict=True)
                return Formula(formulas[0].function, tuple(map(np.concatenate, columns)))
            return partial(limits, pick)

        if all(one.corrected is one.limits for one in made):
            return Estimate.closed(value, every("limits"), p)
        further = any(one.corrected is not None for one in known)
        return Estimate(value, every("limits"), p, every("corrected") if further else None)

    def column(name: str, empty: Any, values: Sequence[Any]) -> Any:
        text = name in TEXT_COLUMNS
        filled = [
            np.broadcast_to(np.asarray(empty if v is None else v, object if text else float), size)
            for v, size in zip(values, sizes, strict=True)
        ]
        return np.concatenate(filled)

    def names_of(kind: str) -> Names | None:
        values = [getattr(part, kind) for part in parts]
        return None if all(v is None for v in values) else column(kind, None, values)

    compressed = side("compressed")
    assert compressed is not None
    of_members = [part.members for part in parts if part.members is not None]
    known_sums = [part.sums for part in parts if part.sums is not None]
    return replace(
        first,
        slots=join_slots([part.slots for part in parts], first.slots.kind),
        n=np.concatenate([part.n for part in parts]),
        compressed=compressed,
        baseline=side("baseline"),
        shift=side("shift"),
        excess=side("excess"),
        n_clusters=np.concatenate([part.clusters for part in parts]),
        status=names_of("status"),
        sized=None
        if any(part.sized is None for part in parts)
        else np.concatenate([part.sized for part in parts if part.sized is not None]),
        interval=names_of("interval"),
        members=np.concatenate(of_members, axis=1) if len(of_members) == len(parts) else None,
        sums=None
        if len(known_sums) < len(parts)
        else Sums(
            *(
                np.concatenate([getattr(one, name) for one in known_sums])
                for name in ("zero_p", "discordance", "design_effect")
            )
        ),
        columns={
            name: column(
                name,
                None if name in TEXT_COLUMNS else np.nan,
                [part.columns.get(name) for part in parts],
            )
            for name in dict.fromkeys(name for part in parts for name in part.columns)
        },
    )


# Rows of the results: blocks of arrays with the contract's columns, joined into one frame.

Block: TypeAlias = dict[str, Any]  # column → array of the block's length


def block(c: Comparison, metric: str, slots: Slots, scope: str, **columns: Any) -> Block:
    """One metric's rows for the slots; columns that are not given stay empty."""
    size = len(slots)
    members = (c.n_baseline, c.n_compressed)
    if scope == "method" and c.has_method:  # parents without children take no part
        members = (int((c.unit_weights[0] > 0).sum()), int((c.unit_weights[1] > 0).sum()))
    made: Block = {
        "variant": repeated(c.variant, size),
        "metric": repeated(metric, size),
        "by": repeated(slots.by, size),
        "group": slots.group,
        "class": slots.cls,
        "task": repeated(c.task, size),
        "scope": repeated(scope, size),
        "n_seeds_baseline": repeated(float(members[0]), size),
        "n_seeds_compressed": repeated(float(members[1]), size),
        "kind": repeated(slots.kind, size),
        "outside": slots.outside,
    }
    for name, value in columns.items():
        array = np.asarray(value, dtype=object if name in TEXT_COLUMNS else float)
        if array.base is not None and array.base.nbytes > array.nbytes:
            array = array.copy()  # limits at other levels are let go
        made[name] = array if array.shape == (size,) else np.broadcast_to(array, size)
    return made


@lru_cache(maxsize=10_000)
def repeated(value: str | float | None, size: int) -> NDArray[Any]:
    """One value in every row, held once for all who ask; to be read only."""
    kind = float if isinstance(value, float) else object
    return np.broadcast_to(np.array(value, dtype=kind), size)


def status(c: Comparison, n: Floats | None, n_clusters: Floats | None) -> NDArray[np.object_]:
    """`ok`, or why a row must not be leaned on; decided on sizes, never on results."""
    if n is None:
        return np.array(["ok"], dtype=object)
    found = repeated("ok", len(n)).copy()
    found[n < c.options.min_group] = f"small_group: n < {c.options.min_group}"
    found[n == 0] = "not_estimable: no examples"
    if n_clusters is not None and c.cube.unit_is_cluster:
        few = (n_clusters < MIN_CLUSTERS) & (n > 0)
        for i in np.flatnonzero(few):
            found[i] = f"not_estimable: {int(n_clusters[i])} clusters"
    return found


FEW_CHANGED = "changed predictions"  # in the status of rows that have no limits for that reason


def few_changes(state: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Rows whose change has no limits because too little changed; their sides may have some."""
    return np.array([FEW_CHANGED in text for text in state], dtype=bool)


def frame(blocks: Sequence[Block]) -> pd.DataFrame:
    """All blocks as one frame with exactly the contract's columns and fixed types.

    The blocks are empty afterwards: columns go over one by one.
    """
    if not blocks:
        return schema.frame("results")
    sizes = [len(b["variant"]) for b in blocks]
    columns: dict[str, Any] = {}
    for name in RESULT_COLUMNS:
        text = name in TEXT_COLUMNS
        parts = [
            b.pop(name) if name in b else repeated(None if text else np.nan, size)
            for b, size in zip(blocks, sizes, strict=True)
        ]
        columns[name] = schema.text(parts) if text else np.concatenate(parts)
    return schema.frame("results", columns)


# Families: which rows are tested together, and what correction they get.
#
# A family is variant × task × scope × metric × (classes | all levels of all single columns | all
# intersections). Who belongs to it depends on sizes alone. What a registration calls confirmatory
# (`accuracy` by group, `recall` by class) is corrected by Holm, and so is what a policy names;
# everything else is exploratory (Benjamini–Hochberg) and says so.

NAMES = {
    "overall": "overall",
    "class": "by class",
    "group": "by group",
    "intersection": "by intersection",
    "group*class": "by group and class",
    "grouping": "by column",
}


def corrected_rows(
    block: Block, entry: Metric, options: Options, draws: FamilyDraws | None = None
) -> Block:
    """The block with `p_adjusted`, `family` and `n_family`; small groups stay outside.

    One block holds exactly one family. With `draws` the excess is corrected by random signs.
    """
    metric, kind = entry.name, str(block["kind"][0])
    confirmatory = kind in entry.confirmatory or (metric, kind) in options.confirmatory
    correction = options.correction
    method = correction if confirmatory else ("bh" if correction != "none" else "none")
    # Rows that are tested: large enough, and not of missing values; whatever came out.
    inside: NDArray[np.bool_] = block["sized"] & ~block["outside"]
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
        "family": np.where(inside, *(repeated(text, len(inside)) for text in (name, None))),
        "n_family": np.where(inside, float(max(1, inside.sum())), np.nan),
    }


# Limits for the gate: one-sided, at every level that Holm's steps may ask for.

MANY_ROWS = 2_000  # of more rows only some levels are computed
BOUND_KEYS = ("variant", "task", "metric", "by", "kind", "group", "class", "n")


def bounds_frame(blocks: Sequence[Block]) -> pd.DataFrame:
    """All limits that the blocks carry as one frame with the contract's columns.

    The blocks carry them no longer.
    """
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    ends: list[Floats] = []  # (rows, levels, 2) each
    for b in blocks:
        size = len(b["metric"])
        for quantity, estimate in (("shift", "shift"), ("value", "compressed")):
            limits = b.pop(f"bounds_{quantity}", None)
            if limits is None or b["scope"][0] != "model":
                continue
            for name in BOUND_KEYS:
                columns[name].append(b[name])
            # A row's status; what its limits are instead of an interval is said here alone.
            state = b["status"].copy()
            if "interval" in b:
                none = (state == "ok") & schema.of_kind(b["interval"], "none")
                state[none] = "not_estimable: " + b["interval"][none]
            if quantity == "value" and "value_known" in b:
                state[b["value_known"]] = "ok"  # whatever the shift lacks
            if quantity == "shift" and "bound_status" in b:
                bound = pd.notna(b["bound_status"])
                state[bound] = b["bound_status"][bound]
            columns["status"].append(state)
            columns["quantity"].append(repeated(quantity, size))
            columns["estimate"].append(b.get(estimate, repeated(np.nan, size)))
            ends.append(limits)
    if not ends:
        return schema.frame("bounds")
    made = {
        name: np.concatenate(parts) if name in ("n", "estimate") else schema.text(parts)
        for name, parts in columns.items()
    }
    for i, j in enumerate(DIVISORS):
        for side, end in enumerate(("low", "high")):
            made[f"{end}_{j}"] = np.concatenate([limits[:, i, side] for limits in ends])
    return schema.frame("bounds", made)


# Every member's own numbers, read off the blocks of all comparisons; who is far from the rest.

MEMBER_KEYS = ("task", "metric", "by", "group", "class", "n")
FAR = 3.0  # median absolute deviations beyond which a member is far from the others
AS_DEVIATION = 1.4826  # of a normal sample: its standard deviation / its median absolute deviation


@dataclass(frozen=True)
class RunValues:
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


def members_of(per_seed: pd.DataFrame, variant: str, metric: str = "accuracy") -> RunValues:
    """The members of a variant and their main number, from the table `per_seed`."""
    rows = per_seed[
        (per_seed["variant"] == variant)
        & (per_seed["metric"] == metric)
        & (per_seed["by"] == "overall")
    ]
    means = rows.groupby("seed", sort=False)[["value", "n"]].mean()
    values = means["value"].to_numpy(dtype=float)
    seeds = tuple(str(seed) for seed in means.index)
    if not len(values):
        return RunValues(variant, (), (), ())
    away = np.abs(values - np.median(values))
    usual = max(AS_DEVIATION * float(np.median(away)), 1 / float(means["n"].max()))
    far = tuple(
        seed for seed, apart in zip(seeds, away, strict=True) if apart > FAR * usual + 1e-12
    )
    return RunValues(variant, seeds, tuple(values.tolist()), far)


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
                columns["variant"].append(repeated(member.variant, size))
                columns["seed"].append(repeated(member.seed, size))
                for name in MEMBER_KEYS:
                    columns[name].append(b[name])
                columns["value"].append(values[:, m])
    if not columns["value"]:
        return schema.frame("per_seed")
    made = {
        name: np.concatenate(parts) if name in ("n", "value") else schema.text(parts)
        for name, parts in columns.items()
    }
    return schema.frame("per_seed", made)
