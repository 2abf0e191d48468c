"""Filters in addresses, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.errors import InputError
from fairweight.web.votes.filters import CHOICES, NAMES, Filters, from_query, to_query

text = st.text(min_size=1, max_size=20)
some_filters = st.builds(
    Filters,
    **{name: st.none() | text for name in NAMES},
    **{name: st.none() | st.sampled_from(held) for name, held in CHOICES.items() if name != "side"},
    side=st.sampled_from(CHOICES["side"]),
    percentile_min=st.none() | st.integers(0, 1000).map(lambda tenths: tenths / 10),
    groups=st.dictionaries(text, text, max_size=3).map(lambda d: tuple(sorted(d.items()))),
)


@given(some_filters)
def test_an_address_says_what_the_filters_say(filters: Filters) -> None:
    assert from_query(to_query(filters)) == filters


def test_fields_that_nobody_filled_in_ask_for_nothing() -> None:
    empty = dict.fromkeys((*NAMES, *CHOICES, "percentile_min", "group.sex"), "")
    assert from_query(empty | {"order": "random", "offset": "24", "group.": "x"}) == Filters()
    assert to_query(Filters()) == {}


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"cell": "tp"}, "The filter cell = 'tp' does not exist; there are: 'TP'"),
        ({"kind": "taxicab"}, "Did you mean 'taxicab-9"),
        ({"annotated": "maybe"}, "'label_wrong'"),
        ({"percentile_min": "101"}, "'101' is no percentile"),
        ({"percentile_min": "nan"}, "'nan' is no percentile"),
        ({"percentile_min": "x" * 9999}, "is no percentile"),
    ],
)
def test_what_cannot_be_asked_is_told(query: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        from_query(query)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 400
