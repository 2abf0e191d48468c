"""Fields of specs in words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from fairweight.specs.toml import SpecField, described, summary_of


@dataclass(frozen=True, kw_only=True)
class Base:
    """What all share.

    Parameters
    ----------
    first, second
        Both of them,
        on two lines.
    """

    first: int = 1
    second: Annotated[float, Field(gt=0, lt=1)] = 0.5


@dataclass(frozen=True, kw_only=True)
class Other(Base):
    """One more thing.

    In two paragraphs.

    Parameters
    ----------
    second
        Only the second.
    name
        What it is called.

    Notes
    -----
    Not a field.
    """

    name: str
    kind: Literal["other"] = "other"
    choice: Literal["a", "b"] | None = None
    layers: tuple[str, ...] = ("x",)


def test_types_defaults_and_meanings() -> None:
    both = "Both of them, on two lines."
    assert described(Other) == (
        SpecField("name", "text", None, True, "What it is called."),
        SpecField("first", "whole number", 1, False, both),
        SpecField("second", "number above 0 and below 1", 0.5, False, "Only the second."),
        SpecField("choice", '"a" or "b" or null', None, False, ""),
        SpecField("layers", "list of text", ["x"], False, ""),
    )
    assert [field.default_text for field in described(Other)][:2] == ["required", "1"]


def test_the_summary_ends_before_the_parameters() -> None:
    assert summary_of(Base) == "What all share."
    assert summary_of(Other).startswith("One more thing. In two paragraphs.")
    assert "called" not in summary_of(Other)
