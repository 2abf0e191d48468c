"""Names with marks in them are written so that they are read back as what they are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.names import (
    group_name,
    grouping_columns,
    grouping_name,
    grouping_of,
    is_missing,
    known_group,
    level_name,
    split_group,
    split_grouping,
    split_list,
    split_names,
    unquoted,
    written_list,
)

HOSTILE = ("age, years", 'say "hi"', '"x"', "a*b", "a=b", "a & b", "[x]", " edge ", "x y", "ä'`$")
NAMES = st.text(st.sampled_from(' ,"*=&[]ab\n'), min_size=1, max_size=8) | st.sampled_from(HOSTILE)
COLUMNS = st.lists(NAMES, min_size=1, max_size=3)


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_a_list_of_groupings_is_read_back(groupings: list[list[str]]) -> None:
    names = [grouping_name(columns) for columns in groupings]
    assert [list(split_grouping(name)) for name in names] == groupings
    assert [list(split_grouping(item)) for item in split_list(written_list(names))] == groupings


@given(st.lists(st.tuples(NAMES, NAMES | st.none() | st.just("(missing)")), min_size=1, max_size=3))
@example([("a", "x &"), ("b", "c")])
@example([("a", "x & b=c")])
@example([("a", "x & y"), ("& b", "c")])
def test_a_group_is_read_back(levels: list[tuple[str, str | None]]) -> None:
    name = group_name(levels)
    assert split_group(name) == tuple(levels)
    assert grouping_of(name) == grouping_name([column for column, _ in levels])
    assert is_missing(name) == any(value is None for _, value in levels)
    assert known_group(name, [name]) == name


def test_names_without_marks_stay_as_they_are() -> None:
    assert grouping_name(["sex", "age, years"]) == "sex*age, years"
    assert level_name("age, years", "40 & older") == "age, years=40 & older"
    assert level_name('say "hi"', "[x]") == 'say "hi"=[x]'


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("sex,age,sex*age", ["sex", "age", "sex*age"]),
        ('"age, years",sex', ['"age, years"', "sex"]),
        (' "age, years" , sex ', ['"age, years"', "sex"]),
        ('"a*b"*sex,"a,b"*"c ""d"""', ['"a*b"*sex', '"a,b"*"c ""d"""']),
        ('say "hi",sex', ['say "hi"', "sex"]),
        ('"open,sex', ['"open', "sex"]),
        (",,sex,", ["sex"]),
    ],
)
def test_lists(text: str, items: list[str]) -> None:
    assert split_list(text) == items


def test_single_names() -> None:
    assert split_names('cat,"dog, small", "say ""hi"""') == ["cat", "dog, small", 'say "hi"']
    assert unquoted('"open') == '"open'


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("sex", ("sex",)),
        (" sex * age ", ("sex", "age")),
        ("p*q", ("p*q",)),  # there is no column p: the star is in the name
        ('"p*q"*sex', ("p*q", "sex")),
        ('"a*b"', ("a*b",)),
        ('"a"*"b"', ("a", "b")),
        ('a*"b"', ("a", "b")),
        ("age, years*sex", ("age, years", "sex")),
        ('"quoted"', ('"quoted"',)),
        (" edge ", (" edge ",)),
        ('" edge "*sex', (" edge ", "sex")),
    ],
)
def test_what_a_text_means_among_the_columns(text: str, columns: tuple[str, ...]) -> None:
    known = ["sex", "age", "age, years", "p*q", "a*b", "a", "b", '"quoted"', " edge "]
    assert grouping_columns(text, known, "--groups (groups=)") == columns


def test_a_text_that_means_two_things_is_refused_with_both_remedies() -> None:
    with pytest.raises(InputError, match=r'write "a\*b" for the column, "a"\*"b" for the inter'):
        grouping_columns("a*b", ["a", "b", "a*b"], "--groups (groups=)")


@pytest.mark.parametrize("text", ["", " ", "sex*", "*", '""', "sex**age"])
def test_empty_names_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="empty name"):
        grouping_columns(text, ["sex", "age"], "--groups (groups=)")


def test_unknown_and_repeated_columns_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="the column 'ages' does not exist"):
        grouping_columns("sex*ages", ["sex", "age"], "--groups (groups=)")
    with pytest.raises(InputError, match="names a column twice"):
        grouping_columns("sex*sex", ["sex", "age"], "--groups (groups=)")


def test_groups_are_known_by_canonical_text() -> None:
    known = ["site=1", "flag=true & site=1", "code=007", '"a=b"=yes']
    assert known_group("site=1.0", known) == "site=1"
    assert known_group("flag=TRUE & site=1.", known) == "flag=true & site=1"
    assert known_group("code=7", known) is None
    assert known_group('"site"=1', known) == "site=1"
    assert known_group("a=b=yes", known) is None
    assert known_group("nothing", known) is None
