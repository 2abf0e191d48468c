"""Which member descends from which, and every way in which a table can fail to say so."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.companions import parents, read_variants, stray_note, variants_table
from fairweight.tables.connection import Workspace
from fairweight.tables.layout import Names
from fairweight.tables.sources import open_source
from fairweight.tables.spec import TableSpec, sources_of

from .conftest import wide_frame


def table(*rows: tuple[Any, ...], columns: str = "variant seed parent") -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns.split())


def test_no_table_and_no_parents() -> None:
    assert parents(None) == {}
    assert parents(table(("dense", 0), ("int8", 0), columns="variant seed")) == {}
    assert parents(table(("dense", 0, None), ("dense", 1, ""))) == {}


def test_a_parent_in_one_column() -> None:
    found = parents(
        table(
            ("dense", 3, None),
            ("int8", 0, "dense:3"),
            ("int8", 1, " dense : 3 "),
            ("int8", 3, "dense"),
            ("a:b", 1, "dense:3"),
            ("int4", 1, "a:b:1"),  # split at the last colon
            ("int4", 2, "a:b"),  # a variant of the table, so a bare name: its seed is 2 too
        )
    )
    assert found == {
        ("int8", "0"): ("dense", "3"),
        ("int8", "1"): ("dense", "3"),
        ("int8", "3"): ("dense", "3"),
        ("a:b", "1"): ("dense", "3"),
        ("int4", "1"): ("a:b", "1"),
        ("int4", "2"): ("a:b", "2"),
    }


def test_a_parent_in_two_columns() -> None:
    columns = "variant seed parent_variant parent_seed"
    rows = [("dense", 3, None, None), ("int8", 0, "dense", 3), ("int8", 1, "dense", None)]
    wanted = {("int8", "0"): ("dense", "3"), ("int8", "1"): ("dense", "1")}
    assert parents(table(*rows, columns=columns)) == wanted
    without_seeds = table(*rows, columns=columns).drop(columns="parent_seed")
    assert parents(without_seeds)["int8", "0"] == ("dense", "0")


@pytest.mark.parametrize("seeds", [[3, 4], [3.0, 4.0], ["3", "4.0"]])
def test_seeds_are_those_of_the_members(seeds: list[Any]) -> None:
    """However a file writes them, seeds are the text that members are known by."""
    frame = pd.DataFrame(
        {"variant": ["dense", "int8"], "seed": seeds, "parent": [None, "dense:3.0"]}
    )
    assert parents(frame) == {("int8", "4"): ("dense", "3")}
    wide = wide_frame().rename(
        columns={"pred_dense": "prediction:dense:3", "pred_int8": "prediction:int8:4"}
    )
    with align(TableSpec(sources_of(wide), variants=frame)) as aligned:
        members = {(member.variant, str(member.seed)) for member in aligned.members}
        found = parents(aligned.variants_table)
    assert members == {*found, *found.values()}


def test_without_a_seed_column_there_is_one_member() -> None:
    frame = pd.DataFrame({"variant": ["dense", "int8"], "parent": [None, "dense"]})
    assert parents(frame) == {("int8", "0"): ("dense", "0")}


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (table(("int8", 0, "dense:")), "parent 'dense:', which names no member; write it as"),
        (table(("int8", 0, ":3")), "parent ':3', which names no member"),
        (table(("int8", 0, 3)), "parent '3', which names no member.*such as dense:3"),
        (table((None, 0, "dense:3")), "a row without a variant"),
        (
            table(("int8", 0, "dense:0"), ("int8", 0.0, "dense:1")),
            r"two rows for 'int8' \(seed 0\); keep one row per variant and seed",
        ),
        (
            table(("int8", 0, None, 3), columns="variant seed parent_variant parent_seed"),
            "parent_seed '3' without a parent_variant",
        ),
        (
            table(("int8", 0, "dense", "dense"), columns="variant seed parent parent_variant"),
            "'parent' and 'parent_variant'; say it in one way",
        ),
        (
            table(("int8", 0, 1), columns="variant seed parent_seed"),
            "'parent_seed'; say it in one way",
        ),
    ],
)
def test_parents_that_cannot_be_read(frame: pd.DataFrame, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        parents(frame)
    assert "\n" not in str(caught.value)


def test_circles() -> None:
    with pytest.raises(InputError, match=r"'dense' \(seed 0\) descends from 'dense' \(seed 0\);"):
        parents(table(("dense", 0, "dense")))
    circle = r"'b' \(seed 1\) descends from 'c' \(seed 0\) descends from 'b' \(seed 1\); correct"
    with pytest.raises(InputError, match=f"in a circle: {circle}"):
        # a leads into the circle of b and c without being part of it
        parents(table(("a", 0, "b:1"), ("b", 1, "c:0"), ("c", 0, "b:1")))


def test_two_children_of_one_child_are_no_circle() -> None:
    found = parents(table(("b", 0, "a:0"), ("c", 0, "b:0"), ("d", 0, "b:0")))
    assert (found["c", "0"], found["d", "0"], found["b", "0"]) == (("b", "0"),) * 2 + (("a", "0"),)


def test_parents_without_predictions_are_told() -> None:
    members = [("dense", "0"), ("dense", "1"), ("tuned", "0"), ("tuned", "1"), ("int8", "1")]
    known = {
        ("tuned", "0"): ("pruned", "0"),  # not audited itself, but its own parent is
        ("pruned", "0"): ("dense", "0"),
        ("tuned", "1"): ("dens", "1"),
        ("int8", "1"): ("dens", "2"),
    }
    note = stray_note(known, members)
    assert note is not None
    assert "'tuned' (seed 1) descends from 'dens' (seed 1)" in note
    assert "and 1 more" in note
    assert (
        stray_note({("tuned", "0"): ("pruned", "0"), ("pruned", "0"): ("dense", "0")}, members)
        is None
    )
    models = table(("dense", 0, None), ("int8", 0, "dnese:0"))
    with align(TableSpec(sources_of(wide_frame()), variants=models)) as found:
        assert [n for n in found.notes if "descends from 'dnese' (seed 0)" in n]


# --- the table that holds them -------------------------------------------------------------------


def test_columns_get_the_names_of_their_roles(workspace: Workspace) -> None:
    given = pd.DataFrame({"model": ["int8"], "run": [2], "parent": ["dense:1"], "mb": [3.5]})
    source = open_source(workspace, given)
    frame = variants_table(workspace, source, Names(variant="model", seed="run"))
    assert frame.to_dict("list") == {
        "variant": ["int8"], "seed": [2], "parent": ["dense:1"], "mb": [3.5]
    }  # fmt: skip
    assert parents(frame) == {("int8", "2"): ("dense", "1")}


def test_a_table_is_refused_where_it_is_read(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="column 'variant' does not exist"):
        read_variants(pd.DataFrame({"model": ["int8"]}), Names())
    both = pd.DataFrame({"model": ["int8"], "variant": ["x"]})
    with pytest.raises(InputError, match="a column 'variant' beside 'model'"):
        read_variants(both, Names(variant="model"))
    with pytest.raises(InputError, match="two rows for 'int8'"):
        align(
            TableSpec(
                sources_of(wide_frame()), variants=table(("int8", 0, None), ("int8", 0, None))
            )
        )
