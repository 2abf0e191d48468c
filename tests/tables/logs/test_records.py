"""JSON read member by member: the same values as read whole, however the text is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairweight.errors import InputError
from fairweight.tables.logs import records

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("records")) / "a.json"


@settings(max_examples=60)
@given(
    value=st.lists(VALUES, max_size=5) | st.dictionaries(st.text(max_size=2), VALUES, max_size=5),
    block=st.sampled_from([1, 2, 7, 2**20]),
    indent=st.sampled_from([None, 1]),
    cut=st.floats(0, 1, exclude_max=True),
)
def test_members_are_those_of_the_whole_value(
    file: Path, value: Any, block: int, indent: int | None, cut: float
) -> None:
    text = json.dumps(value, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "BLOCK", block)
        file.write_text(text)
        if isinstance(value, list):
            assert [one for _, one in records.json_members(file)] == value
        else:
            lists = {name for name, held in value.items() if isinstance(held, list)}
            found: dict[str, Any] = {name: [] for name in lists}
            for name, one in records.json_members(file, lists):
                assert name is not None
                if name in lists:
                    found[name].append(one)
                else:
                    found[name] = one
            assert found == value
        file.write_text(text[: int(cut * len(text))])
        with pytest.raises(InputError, match="cut off"):
            list(records.json_members(file))


@pytest.mark.parametrize("text", ["3", '"a"', "[1 2]", '{"a" 1}', '{"a": 1 "b": 2}', "", "[1}"])
def test_what_is_no_list_or_record_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match="cut off"):
        list(records.json_members(file))
