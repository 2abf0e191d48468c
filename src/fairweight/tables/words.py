"""Numbers and the words that go with them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun, plural where there are more than one.

    >>> counted(1, "example"), counted(2500, "example")
    ('1 example', '2,500 examples')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def have(number: int) -> str:
    """The verb after a number of things.

    >>> have(1), have(3)
    ('has', 'have')
    """
    return "has" if number == 1 else "have"


def are(number: int) -> str:
    """The verb after a number of things.

    >>> are(1), are(3)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"
