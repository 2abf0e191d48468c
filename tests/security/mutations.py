"""Files that are almost right: documents and bytes, changed at random and reproducibly.

A fuzzer is two functions: `make` draws a hostile input, `attempt` gives it to the product.

    tally = fuzz(attempt, lambda rng: mutated(rng.choice(GOOD), rng), cases=500)
    assert tally["refused"] and tally["accepted"]

`attempt` may return, or refuse by one sentence (`FairweightError`). Anything else fails with the
number of the case; `fuzz(..., only=number)` runs that one alone.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fairweight.errors import FairweightError

T = TypeVar("T")

# 500 cases in `make test`, 20,000 in `make test-slow`.
CASES = pytest.mark.parametrize("cases", [500, pytest.param(20_000, marks=pytest.mark.slow)])
CANARY = "fairweight_canary"  # a module that nobody may import
SLOWEST = 20.0  # seconds of one case, of the processor: others may be at work
LONGEST = 2000  # characters of a refusal

TEXTS = (
    "", " ", ".", "..", "../../../../escaped", "/etc/passwd", "a/../../b", "~root", "C:\\x",
    "a\0b", "a\nb", "\ud800", "\u202e", "é" * 300, "x" * 5000, "-rf", "{", "{0}", "{x!r:>99999}",
    "{sparsity.__class__}", "%s%n", "$(id)", "'; DROP TABLE x; --", "<script>alert(1)</script>",
    f"{CANARY}:run", f"{CANARY}.x:run.y", "subprocess:Popen", "os:system", "builtins:exec", ":",
    "nan", "inf", "-1", "1e999", "true", "null", "[]", "dense", "*", "a*b", "@last", "http://x/y",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2, 7, 0.5, 1e-300, 1e300, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30,
    math.nan, math.inf, -math.inf, -0.0,
)  # fmt: skip


def hostile(rng: random.Random) -> Any:
    """A value that somebody may put where another one belongs."""
    kind = rng.randrange(8)
    if kind < 3:
        return rng.choice(TEXTS)
    if kind < 5:
        return rng.choice(NUMBERS)
    if kind == 5:
        return rng.choice([None, True, False, [], {}])
    if kind == 6:
        return [hostile(rng) for _ in range(rng.randrange(1, 4))]
    return {rng.choice(TEXTS): hostile(rng) for _ in range(rng.randrange(1, 3))}


def mutated(document: Any, rng: random.Random) -> Any:
    """A copy of a document (dictionaries, lists, plain values) with one to three changes."""
    held = [_copy(document)]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        holder, key = rng.choice(_places(held))
        how = rng.randrange(8)
        if how < 4:
            holder[key] = hostile(rng)
        elif how == 4 and len(holder) and holder is not held:
            del holder[key]
        elif how == 5 and isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = holder[key]
        elif how == 6:
            holder[key] = _nested(rng.choice([3, 40, 150]), holder[key])
        else:
            other, place = rng.choice(_places(held))
            holder[key] = _copy(other[place])
    return held[0]


def mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes of a file with one to three changes: cut, flipped, repeated, filled."""
    held = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        start = rng.randrange(len(held) + 1)
        end = min(len(held), start + rng.choice([1, 1, 2, 8, 100]))
        how = rng.randrange(6)
        if how == 0:
            del held[start:]
        elif how == 1:
            del held[start:end]
        elif how == 2:
            held[start:end] = bytes(rng.randrange(256) for _ in range(end - start))
        elif how == 3:
            held[start:start] = held[start:end] * rng.choice([1, 50])
        elif how == 4:
            held[start:end] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
        else:
            held[start:start] = rng.choice([b"\0", b"\xff", b"[" * 2000, b'"', b"\xef\xbb\xbf"])
    return bytes(held)


def as_json(document: Any) -> bytes:
    """A document as a careless or hostile program would write it."""
    return json.dumps(document).encode("utf-8", "surrogatepass")


def fuzz(
    attempt: Callable[[T], object],
    make: Callable[[random.Random], T],
    cases: int,
    *,
    only: int | None = None,
) -> Counter[str]:
    """Try every case; how many were refused and how many accepted.

    Parameters
    ----------
    make
        Draws the input of a case; the same number gives the same input.
    only
        The number of the one case to run.
    """
    tally: Counter[str] = Counter()
    for number in range(cases) if only is None else [only]:
        given = make(random.Random(number))
        begun = time.process_time()
        try:
            attempt(given)
            tally["accepted"] += 1
        except FairweightError as refusal:
            sentence = str(refusal)
            assert sentence, f"case {number} is refused without a word: {given!r}"
            assert len(sentence) < LONGEST, f"case {number}: {sentence[:300]}…"
            assert "\0" not in sentence, f"case {number}: {sentence!r}"
            tally["refused"] += 1
        except Exception as error:
            shown = repr(given)[:2000]
            raise AssertionError(
                f"case {number} ends with {type(error).__name__}: {error}\n{shown}"
            ) from error
        taken = time.process_time() - begun
        assert taken < SLOWEST, f"case {number} takes {taken:.0f} s: {given!r}"
    return tally


def below(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder by its path: contents of files, ends of links."""
    return {
        path.relative_to(folder).as_posix(): (
            f"-> {path.readlink()}"
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else "folder"
        )
        for path in folder.rglob("*")
    }


def _copy(value: Any) -> Any:
    """A copy of a document, in a fraction of the time that `copy.deepcopy` takes."""
    if isinstance(value, dict):
        return {key: _copy(held) for key, held in value.items()}
    return [_copy(held) for held in value] if isinstance(value, list) else value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every holder and key of a value, however deep, from top to bottom."""
    found: list[tuple[Any, Any]] = []

    def look(holder: Any) -> None:
        for key, held in holder.items() if isinstance(holder, dict) else enumerate(holder):
            found.append((holder, key))
            if isinstance(held, dict | list):
                look(held)

    look(value)
    return found


def _nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = [value]
    return value
