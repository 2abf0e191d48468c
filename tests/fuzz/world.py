"""What is true in a case: examples, their labels and groups, and what every model predicted.

Classes, groups and identities come from alphabets of awkward codes. An entry of an alphabet is one
value with all the ways to write it, so that tables may spell the same class differently.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.fuzz.files import Column


@dataclass(frozen=True)
class Code:
    """One class, group or identity: as typed columns hold it, and as text files write it."""

    typed: Any
    texts: tuple[str, ...]


def _texts(*texts: str) -> list[Code]:
    return [Code(text, (text,)) for text in texts]


ALPHABETS: dict[str, list[Code]] = {
    "letters": _texts("a", "b", "c", "d", "e"),
    "words": _texts("cat", "dog", "emu", "cow"),
    "case": _texts("a", "A", "b", "B"),
    "whole": [Code(i, (str(i), f"{i}.0", f"{i}.")) for i in (0, 1, 2, 3, 4)],
    "negative": [Code(i, (str(i), f"{i}.00")) for i in (-1, 0, 1, 12)],
    "truth": [Code(True, ("true", "True", "TRUE")), Code(False, ("false", "False", "FALSE"))],
    "yes": _texts("yes", "no"),
    "codes": _texts("12345678901234567890", "12345678901234567891", "12345678901234567892"),
    "sixteen": [Code(10**16 + i, (str(10**16 + i),)) for i in (1, 2, 3)],
    "exponents": [Code("1e2", ("1e2",)), Code(100, ("100", "100.0")), *_texts("1E2", "1e02")],
    "hexadecimal": [Code("0x10", ("0x10",)), Code(16, ("16", "16.0")), *_texts("0X10", "10h")],
    "zeros": [Code("007", ("007",)), Code(7, ("7", "7.0")), *_texts("07", "0007.0")],
    "near": [Code(1, ("1", "1.0")), *_texts("01", "+1", "1e0", "1,0", "\uff11", "1_000", ".5")],
    "fractions": [Code(0.5, ("0.5",)), Code(1.5, ("1.5",)), Code(2.0, ("2.0", "2")),
                  Code(0.25, ("0.25",))],
    "zero fractions": _texts("0.50", "0.5", "0.500"),
    "dates": [Code(date(2020, 1, i), (f"2020-01-{i:02}",)) for i in (1, 2, 3)],
    "decimals": [Code(Decimal("1.50"), ("1.50",)), Code(Decimal("2.25"), ("2.25",)),
                 Code(Decimal("3.00"), ("3.00", "3"))],
    "missing words": _texts("NA", "null", "None", "nan", "NULL", "NaN", "N/A", "inf"),
    "hostile": _texts("a,b", 'say "a"', "it's", "\x1b[31mred", "=1+1", "a & b=c", "(missing)", "*",
                      "a\nb", "a;b", "a\tb", "é", "\U0001f600", "[bold]x", "--x", "overall",
                      "no answer"),
    "spaces": _texts("a", " a", "a ", "a  b", "a b"),
    "long": _texts("x" * 300, "x" * 301, "y" * 2000),
    "t and f": _texts("T", "F", "t"),
}  # fmt: skip
PLAIN = ("letters", "words", "whole", "truth", "yes")

GROUP_NAMES = ("sex", "age", "site", "camera", "region", "writer", "subject", "lang")
HOSTILE_NAMES = (
    "age, years", 'say "hi"', "it's", "a*b", "a=b", "x y", "select", "group", "order by", "É",
    "\U0001f600", "\x1b[31mred\x1b[0m", "p0", "g0", "v0", "s0", "Example_ID", "LABEL", "Label",
    "name_" * 60, "(missing)", "a & b", "*", ",", "--groups", "-x", "1", "a;b", "tab\there", "null",
    "rowid", "present", "fw_row_number", "file_row_number", "%s", "{x}", "[bold]", "count", "n",
    "freq", " lead", "trail ", "two\nlines", 'both "\' quotes', "cluster", "unit", "example_id2",
    "", "a,b*c", "*a", "overall", "class", "c0", "x0", "position", "first", "level",
    "patient id", "user's speaker",
)  # fmt: skip


def pick_alphabet(rng: Random, *, plain: float = 0.55) -> list[Code]:
    """An alphabet, more often a plain one, in an order of its own."""
    name = rng.choice(PLAIN) if rng.random() < plain else rng.choice(list(ALPHABETS))
    held = list(ALPHABETS[name])
    rng.shuffle(held)
    return held[: rng.choice((2, 2, 3, 3, 4, 6))] if len(held) > 2 else held


def identities(rng: Random, n: int) -> list[Code]:
    """So many different identities, of one style."""
    style = rng.choice(
        ("numbers", "numbers", "numbers", "text", "text", "shuffled", "zeros", "codes", "long",
         "hostile", "wholes", "negative", "hexadecimal", "case", "exponents")
    )  # fmt: skip
    start = rng.choice((0, 0, 1, 1000))
    made = {
        "numbers": lambda i: Code(start + i, (str(start + i),)),
        "shuffled": lambda i: Code(start + i, (str(start + i),)),
        "text": lambda i: Code(f"e{i}", (f"e{i}",)),
        "zeros": lambda i: Code(f"{i:04}", (f"{i:04}",)),
        "codes": lambda i: Code(str(2 * 10**19 + i), (str(2 * 10**19 + i),)),
        "long": lambda i: Code(10**16 + i, (str(10**16 + i),)),
        "hostile": lambda i: Code(f'a,"{i}"\n;é', (f'a,"{i}"\n;é',)),
        "wholes": lambda i: Code(start + i, (str(start + i), f"{start + i}.0")),
        "negative": lambda i: Code(-i, (str(-i),)),
        "hexadecimal": lambda i: Code(hex(i), (hex(i),)),
        "case": lambda i: Code(f"{'aA'[i % 2]}{i // 2}", (f"{'aA'[i % 2]}{i // 2}",)),
        "exponents": lambda i: Code(f"{i + 1}e2", (f"{i + 1}e2",)),
    }[style]
    held = [made(i) for i in range(n)]
    if style == "shuffled":
        rng.shuffle(held)
    return held


def kind_for(rng: Random, codes: list[Code], format_: str) -> str:
    """A type that a typed column may have for these codes; text files have text alone."""
    if format_ in ("csv", "tsv"):
        return "text"
    kinds = {type(code.typed) for code in codes}
    if kinds == {int}:
        big = any(abs(code.typed) >= 2**15 for code in codes)
        return rng.choice(("int", "int", "text") if big else ("int", "small", "float", "text"))
    if kinds == {bool}:
        return rng.choice(("bool", "text"))
    if kinds <= {int, float} and float in kinds:
        return rng.choice(("float", "float", "text"))
    if kinds == {date}:
        return rng.choice(("date", "text"))
    if kinds == {Decimal}:
        return rng.choice(("decimal", "text"))
    return rng.choice(("text", "text", "category"))


def column(rng: Random, name: str, codes: list[Code | None], format_: str, *, vary: bool) -> Column:
    """A column of codes in the types and spellings of a format; with `vary`, each cell its own."""
    kind = (
        kind_for(rng, [code for code in codes if code is not None], format_)
        if any(code is not None for code in codes)
        else "text"
    )
    values: list[Any] = []
    for code in codes:
        if code is None:
            values.append(None)
        elif kind in ("text", "category"):
            values.append(rng.choice(code.texts) if vary else code.texts[0])
        else:
            values.append(float(code.typed) if kind == "float" else code.typed)
    return Column(name, values, kind)


def drawn_scores(rng: Random, label: list[Code], members: int, vectors: bool) -> list[list[Any]]:
    """A probability per member and row, or a list with one per class that occurs as a label."""
    if not vectors:
        return [[round(rng.random(), 3) for _ in label] for _ in range(members)]
    length = len(set(label))
    made: list[list[Any]] = []
    for _ in range(members):
        cuts = [sorted(round(rng.random(), 3) for _ in range(length - 1)) for _ in label]
        made.append([[round(b - a, 6) for a, b in zip([0.0, *c], [*c, 1.0], strict=True)]
                     for c in cuts])  # fmt: skip
    return made


@dataclass
class World:
    """Examples (of tasks, where there are some) and members; lists run over rows."""

    ids: list[Code]
    tasks: list[Code | None]
    label: list[Code]
    groups: dict[str, list[Code | None]]
    weight: list[float] | None
    cluster: list[Code] | None
    members: list[tuple[str, int]]
    prediction: list[list[Code | None]]  # by member
    score: list[list[Any]] | None  # probabilities; with `vectors`, lists with one of every label
    classes: list[Code]
    further: dict[str, Column] = field(default_factory=dict)
    vectors: bool = False
    count: list[int] | None = None  # how many examples each row stands for

    @property
    def n(self) -> int:
        return len(self.label)


def world(
    rng: Random,
    *,
    names: list[str],
    variants: list[str],
    plain: float = 0.5,
    scores: float = 0.25,
    tasks: float = 0.08,
    least: int = 1,
) -> World:
    """Draw a world with these group columns and variants."""
    n = max(least, rng.choice((1, 2, 5, 12, 20, 24, 30, 30, 40, 40, 60, 90)))
    classes = pick_alphabet(rng, plain=plain)
    ids = identities(rng, n)
    of_task: list[Code | None] = [None] * n
    if rng.random() < tasks:
        named = pick_alphabet(rng, plain=0.8)[:2]
        ids, of_task = [i for i in ids for _ in named], [t for _ in ids for t in named]
        n = len(ids)
    constant = rng.random() < 0.05
    label = [classes[0] if constant else rng.choice(classes) for _ in range(n)]
    groups: dict[str, list[Code | None]] = {}
    by_id = {id_.texts[0]: number for number, id_ in enumerate(ids)}
    for name in names:
        alphabet: list[Code | None] = [*pick_alphabet(rng, plain=plain)]
        if rng.random() < 0.3:
            alphabet.append(None)
        drawn = [rng.choice(alphabet) for _ in range(n)]
        groups[name] = [drawn[by_id[id_.texts[0]]] for id_ in ids]
    weight = None
    if rng.random() < 0.15:
        drawn_weights = [rng.choice((0.5, 1.0, 1.0, 2.5, 0.1, 3.0)) for _ in range(n)]
        if rng.random() < 0.3:
            drawn_weights[0] = 0.0
        weight = [drawn_weights[by_id[id_.texts[0]]] for id_ in ids]
    cluster = None
    if rng.random() < 0.12:
        whose = identities(rng, max(1, n // 3))
        drawn_cluster = [rng.choice(whose) for _ in range(n)]
        cluster = [drawn_cluster[by_id[id_.texts[0]]] for id_ in ids]
    seeds = rng.choice((1, 1, 1, 1, 1, 2, 3))
    members = [(v, s) for v in variants for s in range(seeds)]
    if seeds > 1 and rng.random() < 0.3:
        members = members[:-1]
    silent = rng.choice((0.0, 0.0, 0.0, 0.1))
    prediction: list[list[Code | None]] = []
    for _ in members:
        right = rng.uniform(0.5, 1.0)
        prediction.append([
            None if rng.random() < silent else true if rng.random() < right else rng.choice(classes)
            for true in label
        ])  # fmt: skip
    if rng.random() < 0.05 and len(members) > 1:  # a compressed model that collapsed
        prediction[-1] = [classes[-1]] * n
    vectors = rng.random() < (0.25 if len(classes) == 2 else 0.6)
    score = drawn_scores(rng, label, len(members), vectors) if rng.random() < scores else None
    further: dict[str, Column] = {}
    if rng.random() < 0.25:
        name, made = rng.choice((
            ("height", Column("height", [round(rng.random() * 200, 3) for _ in range(n)], "float")),
            ("url", Column("url", [f"http://x/{i}" for i in range(n)])),
            ("constant", Column("constant", ["same"] * n)),
            ("day", Column("day", [date(2020, 1, 1) + timedelta(i % 9) for i in range(n)], "date")),
            ("vector", Column("vector", [[0.1, 0.2]] * n, "list")),
            ("meta", Column("meta", [{"a": i, "b": "x"} for i in range(n)], "struct")),
            ("pixels", Column("pixels", [i * 7 for i in range(n)], "int")),
        ))  # fmt: skip
        further[name] = made
        made.values = [made.values[by_id[id_.texts[0]]] for id_ in ids]
    return World(ids, of_task, label, groups, weight, cluster, members, prediction, score, classes,
                 further, vectors)  # fmt: skip
