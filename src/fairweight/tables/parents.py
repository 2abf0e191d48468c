"""Which member each member was derived from, as the variants table says.

Members that descend from different models vary independently, and those of one model do not:
pairing and the number of distinct parents decide what can be said of a method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fairweight.errors import InputError
from fairweight.tables.canonical import canonical
from fairweight.tables.layout import seed_of

if TYPE_CHECKING:
    import pandas as pd

Member: TypeAlias = tuple[str, str]  # variant and seed, both as canonical text

HOW = "write it as VARIANT:SEED, such as dense:3, or leave it empty for a model trained afresh"


def parents(variants_table: pd.DataFrame | None) -> dict[Member, Member]:
    """Member to the member that it was derived from; roots and unknown ones are left out.

    Read from a column `parent` (`dense:3`, split at the last colon; a bare `dense` means the same
    seed), or from `parent_variant` and `parent_seed`. An empty value is a root.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"variant": ["dense", "int8", "int8"], "seed": [0, 0, 1],
    ...                       "parent": [None, "dense", "dense:0"]})
    >>> parents(table)
    {('int8', '0'): ('dense', '0'), ('int8', '1'): ('dense', '0')}
    """
    if variants_table is None:
        return {}
    members = _members(variants_table)
    named = _named_parents(variants_table, {variant for variant, _ in members})
    found: dict[Member, Member] = {}
    for (variant, seed), parent in zip(members, named, strict=True):
        if parent is not None:
            found[variant, seed] = (parent[0], seed if parent[1] is None else parent[1])
    _refuse_circles(found)
    return found


def members_in(variants_table: pd.DataFrame | None) -> frozenset[Member]:
    """The members that the variants table speaks of: with a row, or as somebody's parent."""
    if variants_table is None:
        return frozenset()
    return frozenset((*_members(variants_table), *parents(variants_table).values()))


def stray_note(parents: Mapping[Member, Member], members: Iterable[Member]) -> str | None:
    """What to say of members whose parents cannot be found; None if all can.

    A misspelt parent would otherwise unpair a population in silence.

    >>> parents = {("int8", "0"): ("dense", "0"), ("int8", "1"): ("dens", "1")}
    >>> members = [("dense", "0"), ("dense", "1"), ("int8", "0"), ("int8", "1")]
    >>> print(stray_note(parents, members).partition(",")[0])
    The variants table says that 'int8' (seed 1) descends from 'dens' (seed 1)
    """
    known = list(members)
    stray: list[tuple[Member, Member]] = []
    for member in known:
        oldest = member
        while oldest in parents:
            oldest = parents[oldest]
            if oldest in known:
                break
        if oldest not in known:
            stray.append((member, oldest))
    if not stray:
        return None
    more = f" (and {len(stray) - 1:,} more have no known parent)" if len(stray) > 1 else ""
    return (
        f"The variants table says that {shown(stray[0][0])} descends from {shown(stray[0][1])}, "
        f"of which there are no predictions{more}."
    )


def _members(table: pd.DataFrame) -> list[Member]:
    """The member that each row speaks of, each once."""
    seeds = table["seed"] if "seed" in table.columns else [None] * len(table)
    members: dict[Member, None] = {}
    for given, seed in zip(table["variant"], seeds, strict=True):
        variant = canonical(given)
        if variant is None:
            raise InputError(
                "The variants table has a row without a variant; name the variant in every row."
            )
        member = (variant, str(seed_of(seed)))
        if member in members:
            raise InputError(
                f"The variants table has two rows for {shown(member)}; keep one row per variant "
                "and seed (columns 'variant' and 'seed')."
            )
        members[member] = None
    return list(members)


def _named_parents(table: pd.DataFrame, variants: set[str]) -> list[tuple[str, str | None] | None]:
    """What each row says of its parent: variant and seed (None: the same), or None for a root."""
    held = [name for name in ("parent", "parent_variant", "parent_seed") if name in table.columns]
    if not held:
        return [None] * len(table)
    if held == ["parent"]:
        return [_split(value, variants) for value in table["parent"]]
    if "parent" in held or "parent_variant" not in held:
        raise InputError(
            f"The variants table has the columns {' and '.join(repr(name) for name in held)}; say "
            "it in one way: 'parent' (dense:3), or 'parent_variant' and 'parent_seed'."
        )
    seeds = table["parent_seed"] if "parent_seed" in held else [None] * len(table)
    return [_beside(*pair) for pair in zip(table["parent_variant"], seeds, strict=True)]


def _split(value: Any, variants: set[str]) -> tuple[str, str | None] | None:
    text = (canonical(value) or "").strip()
    if not text:
        return None
    if text in variants:  # also a name that has a colon of its own
        return text, None
    variant, colon, seed = (part.strip() for part in text.rpartition(":"))
    if not colon and isinstance(value, str):
        return text, None
    if not variant or not seed:
        raise InputError(
            f"The variants table has the parent {text!r}, which names no member; {HOW}."
        )
    return variant, str(seed_of(seed))


def _beside(variant: Any, seed: Any) -> tuple[str, str | None] | None:
    name, number = canonical(variant), canonical(seed)
    if name is not None:
        return name, None if number is None else str(seed_of(seed))
    if number is not None:
        raise InputError(
            f"The variants table has the parent_seed {number!r} without a parent_variant; "
            "name both, or neither for a model trained afresh."
        )
    return None


def _refuse_circles(parents: Mapping[Member, Member]) -> None:
    """Nobody descends from himself."""
    settled: set[Member] = set()
    for start in parents:
        path: dict[Member, None] = {}
        member = start
        while member in parents and member not in settled:
            if member in path:
                circle = [*list(path)[list(path).index(member) :], member]
                raise InputError(
                    "The variants table goes in a circle: "
                    f"{' descends from '.join(shown(m) for m in circle)}; correct the parents."
                )
            path[member] = None
            member = parents[member]
        settled.update(path)


def shown(member: Member) -> str:
    """A member as it is named in a message."""
    return f"'{member[0]}' (seed {member[1]})"
