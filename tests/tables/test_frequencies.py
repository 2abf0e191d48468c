"""Counted tables: how their counts are read, and what is refused because it could be one."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.tables.align import Aligned, align
from fairweight.tables.spec import TableSpec, sources_of

from .conftest import long_frame, model_frames, wide_frame

# Two groups × two labels; 4 + 3 + 2 + 1 = 10 examples in four rows.
COUNTS = [4, 3, 2, 1]


def pairs(counts: Any = COUNTS, name: str = "n") -> pd.DataFrame:
    """What `SELECT label, pred_dense, pred_int8, sex, count(*) ... GROUP BY ALL` gives."""
    return pd.DataFrame(
        {
            "label": ["cat", "cat", "dog", "dog"],
            "pred_dense": ["cat", "cat", "dog", "dog"],
            "pred_int8": ["cat", "dog", "dog", "cat"],
            "sex": ["F", "M", "F", "M"],
            name: counts,
        }
    )


def counts_of(aligned: Aligned) -> list[int]:
    rows = aligned.connection.execute(f'SELECT "count" FROM {aligned.view} ORDER BY 1 DESC')
    return [row[0] for row in rows.fetchall()]


def refused(source: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        align(TableSpec(sources_of(source), **options))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "counts",
    [
        COUNTS,
        [4.0, 3.0, 2.0, 1.0],
        [decimal.Decimal(n) for n in COUNTS],
        ["4", "3", "2", "1"],
        pd.array(COUNTS, dtype="UInt64"),
    ],
    ids=["int", "float", "decimal", "text", "unsigned"],
)
def test_counts_of_any_type(counts: Any) -> None:
    with align(TableSpec(sources_of(pairs(counts)), count="n")) as aligned:
        assert aligned.has_count
        assert not aligned.has_id
        assert (aligned.n_rows, aligned.n_examples) == (4, 10)
        assert counts_of(aligned) == COUNTS
        assert aligned.group_columns == ("sex",)  # and not the counts
        assert any("'n' says: 10 in 4 rows" in note for note in aligned.notes)
        assert not any("taken as one example" in note for note in aligned.notes)


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        ([4, -3, 2, 1], "1 value is negative (such as '-3')"),
        ([4, 2.5, 2, 0.5], "2 values are no whole number (such as '0.5', '2.5')"),
        ([4, None, 2, 1], "1 value is missing"),
        ([4, float("nan"), 2, 1], "1 value is missing"),
        ([4, float("inf"), 2, 1], "1 value is too large (such as 'inf')"),
        (["4", "many", "2", "1"], "1 value is no number (such as 'many')"),
        (["4", "nan", "2", "1"], "1 value is missing"),
        ([True, False, True, True], "holds no numbers (type boolean)"),
        ([[4], [3], [2], [1]], "holds no numbers (type bigint[])"),
        ([0, 0, 0, 0], "is 0 in every row"),
        ([10**12 + 1, 1, 1, 1], "1 value is too large (such as '1000000000001')"),
    ],
)
def test_what_is_no_count_is_refused_by_name(counts: Any, fault: str) -> None:
    sentence = refused(pairs(counts), count="n")
    assert fault in sentence
    assert "count column 'n'" in sentence


def test_more_examples_than_can_be_resampled() -> None:
    sentence = refused(pairs([4 * 10**11] * 4), count="n")
    assert "1,600,000,000,000 examples" in sentence
    assert "at most 1,000,000,000,000" in sentence


def test_billions_of_examples_are_audited() -> None:
    few, many = (
        fw.audit_table(pairs([scale * n for n in (40, 3, 50, 7)]), count="n", n_boot=60)
        for scale in (1, 10**8)
    )
    assert many.result.n_examples == 10**10
    one, other = (made.overall.set_index("metric") for made in (few, many))
    assert one.loc["accuracy", "shift"] == other.loc["accuracy", "shift"]
    width = other["ci_high"] - other["ci_low"]
    assert 0 < width["accuracy"] < 1e-4
    assert 0 < width["kappa"] < 1e-4


def test_a_misspelt_count_column() -> None:
    assert "Did you mean 'freq'?" in refused(pairs(name="freq"), count="frq")


def test_rows_that_count_nobody_drop_out() -> None:
    """Also where groups are looked for: the only M rows count nobody, so sex has one value."""
    with align(TableSpec(sources_of(pairs([4, 0, 2, 0])), count="n")) as aligned:
        assert (aligned.n_rows, aligned.n_examples) == (2, 6)
        assert aligned.group_columns == ()
    unlabelled = pairs([4, 3, 2, 0]).assign(label=["cat", "cat", "dog", None])
    with align(TableSpec(sources_of(unlabelled), count="n")) as aligned:
        assert aligned.n_examples == 9


def test_what_looks_like_a_group_is_decided_by_examples_not_by_rows() -> None:
    """30 sites in 30 rows: an id if rows are examples, a group if each stands for 100 of them."""
    sites = pd.DataFrame(
        {
            "label": ["cat", "dog"] * 15,
            "pred_dense": ["cat", "dog"] * 15,
            "pred_int8": ["cat", "cat"] * 15,
            "site": [f"s{i}" for i in range(30)],
            "n": [100] * 30,
        }
    )
    with align(TableSpec(sources_of(sites), count="n")) as aligned:
        assert aligned.group_columns == ("site",)
        assert aligned.n_examples == 3000


# --- tables that may be counted ------------------------------------------------------------------

NAMES = ["n", "N", "count", "Count", "freq", "Freq", "frequency", "cnt", "num", "total", "size",
         "count(*)", "COUNT(*)", "count_star()", "count(1)", "n_examples", "row_count", "len",
         "0"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_may_be_counted_is_refused_with_both_remedies(name: str) -> None:
    sentence = refused(pairs(name=name))
    assert f"'{name}' holds whole numbers" in sentence
    assert f"(count={name!r};" in sentence
    assert "--id COLUMN" in sentence
    with align(TableSpec(sources_of(pairs(name=name)), count=name)) as aligned:
        assert aligned.n_examples == 10


def test_the_option_is_quoted_for_the_shell() -> None:
    assert "add --count 'count(*)' (" in refused(pairs(name="count(*)"))


def test_counts_given_as_weights_are_refused_with_both_remedies() -> None:
    sentence = refused(pairs(name="count"), weight="count")
    assert "add --count count (count='count'" in sentence
    assert "If 'count' is a sampling weight of single examples, name their id" in sentence


def test_groups_that_were_not_asked_for_keep_a_counted_table_counted() -> None:
    """Counted by sex and age, asked for by sex alone: label and predictions repeat."""
    twice = pd.concat([pairs().assign(age="old"), pairs().assign(age="young")])
    assert "add --count n" in refused(twice, groups=["sex"])


def test_parts_that_were_counted_apart(tmp_path: Path) -> None:
    """Two sites count the same combinations: no two rows of one are alike, those of both are."""
    files = [str(tmp_path / f"{site}.csv") for site in ("north", "south")]
    for file in files:
        pairs().to_csv(file, index=False)
    for given in (files, str(tmp_path / "*.csv")):
        assert "add --count n" in refused(given)
        with align(TableSpec(sources_of(given), count="n")) as aligned:
            assert (aligned.n_rows, aligned.n_examples) == (8, 20)


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (pairs().assign(example_id=range(4)), {}),
        (pairs().assign(case=range(4)), {"id": "case"}),
        (pairs([1, 1, 1, 1]), {}),  # read either way, these are four examples
        (pairs([2, 0, -1, 1]), {}),
        (pairs([1.5, 2, 3, 4]), {}),
        (pairs(["few", "2", "3", "4"]), {}),
        (pairs([f"1234567890123456789{k}" for k in range(4)]), {}),
        (pairs(), {"groups": ["n", "sex"]}),
        (pairs(), {"groups": ["sex*n"]}),
        (pairs(name="age"), {}),
        (pairs(name="weight"), {}),
        (pd.concat([pairs(), pairs().iloc[:1]]), {}),
    ],
    ids=["id", "named id", "all one", "negative", "fraction", "text", "codes", "group",
         "crossed group", "another name", "weight", "rows repeat"],
)  # fmt: skip
def test_what_is_no_counted_table(table: pd.DataFrame, options: dict[str, Any]) -> None:
    with align(TableSpec(sources_of(table), **options)) as aligned:
        assert not aligned.has_count
        assert aligned.n_examples == len(table)


def test_a_cube_without_its_metadata_is_recognised() -> None:
    cube = pairs(name="count").rename(
        columns={"pred_dense": "prediction:0", "pred_int8": "prediction:1", "sex": "group:sex"}
    )
    sentence = refused(cube)
    assert "add --count count" in sentence
    assert "looks like a cube" in sentence
    assert "--cluster unit" not in sentence
    assert "--cluster unit" in refused(cube.assign(unit=list("abcd")))
    members = {"dense": "prediction:0", "int8": "prediction:1"}
    with align(TableSpec(sources_of(cube), count="count", predictions=members)) as aligned:
        assert (aligned.baseline, aligned.n_examples) == ("dense", 10)


# --- other layouts -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"count": "n"}])
def test_counts_of_one_variant_at_a_time_cannot_be_paired(options: dict[str, Any]) -> None:
    long = pd.DataFrame(
        {
            "variant": ["dense", "dense", "int8", "int8"],
            "label": ["cat", "dog"] * 2,
            "prediction": ["cat", "dog", "cat", "cat"],
            "n": COUNTS,
        }
    )
    sentence = refused(long, **options)
    assert "cannot be paired" in sentence
    assert "one prediction column per variant" in sentence
    assert "--id COLUMN" in sentence
    files = {name: part.drop(columns="variant") for name, part in long.groupby("variant")}
    assert "cannot be paired" in refused(files, **options)


@pytest.mark.parametrize("layout", [long_frame, model_frames], ids=["long", "files"])
def test_identities_that_stand_for_several_examples(layout: Any) -> None:
    """Texts that were asked once, with how often each occurs: 1 + 2 + ... + 6 = 21."""
    wide = wide_frame().assign(times=[1, 2, 3, 4, 5, 6])
    given = layout(wide)
    if isinstance(given, dict):
        given["int8"]["times"] = wide["times"]
    with align(TableSpec(sources_of(given), count="times")) as aligned:
        assert (aligned.has_id, aligned.n_rows, aligned.n_examples) == (True, 6, 21)
        assert counts_of(aligned) == [6, 5, 4, 3, 2, 1]
        assert "times" not in aligned.group_columns
    if isinstance(given, dict):
        given["int8"].loc[0, "times"] = 7
        sentence = refused(given, count="times")
        assert "'times' differs between variants" in sentence
        assert "an example has one count" in sentence
        del given["int8"]["times"]
        assert "'times' does not exist" in refused(given, count="times")


def test_counts_and_tasks_are_refused() -> None:
    both = pd.concat([pairs().assign(task="a"), pairs().assign(task="b")])
    sentence = refused(both, count="n")
    assert "cannot be used with tasks (the column 'task')" in sentence
    assert "each task on its own" in sentence
