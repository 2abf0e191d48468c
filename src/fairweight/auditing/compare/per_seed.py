"""Every member's own numbers, read off the blocks of all comparisons; who is far from the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.compare.rows import Block
from fairweight.auditing.counts.cube import CubeMember

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("variant", "seed", "task", "metric", "by", "group", "class", "n", "value")
KEYS = ("task", "metric", "by", "group", "class", "n")
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
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
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
                for name in KEYS:
                    columns[name].append(b[name])
                columns["value"].append(values[:, m])
    made = {
        name: np.concatenate(parts) if parts else np.zeros(0, dtype=object)
        for name, parts in columns.items()
    }
    return pd.DataFrame(made, columns=list(COLUMNS)).astype({"n": "Int64", "value": float})
