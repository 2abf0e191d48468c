"""Random prediction tables, and short ways to audit them and to look rows up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import Phase, settings
from hypothesis import strategies as st

import fairweight as fw
from fairweight.api import Audit

# Names that break code which joins, splits, quotes or escapes names.
HOSTILE = (
    "<b>&amp;</b>",
    "a,b",
    'say "no"',
    "O'Neil",
    "two\nlines",
    "x=y",
    "p & q",
    "50 %",
    "ß€",
    "-",
)

KEYS = ["variant", "metric", "by", "group", "class", "task"]
ESTIMATES = ["baseline", "compressed", "shift", "excess_shift"]
# What is computed without random numbers for one pair of models on independent examples.
CLOSED_COLUMNS = [
    "n", "baseline", "baseline_low", "baseline_high", "compressed", "compressed_low",
    "compressed_high", "shift", "ci_low", "ci_high", "p_value", "p_adjusted", "n_family",
    "sim_low", "sim_high", "excess_shift", "excess_low", "excess_high", "excess_p",
]  # fmt: skip


@dataclass(frozen=True, repr=False)
class Predictions:
    """A wide table: labels, two models, group columns."""

    label: tuple[str, ...]
    dense: tuple[str | None, ...]
    small: tuple[str | None, ...]
    groups: dict[str, tuple[str | None, ...]]

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        """Short: `.frame()` of a failing example shows its rows."""
        levels = {name: sorted(map(str, set(values))) for name, values in self.groups.items()}
        return f"<{len(self)} examples of {sorted(set(self.label))}, groups {levels}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints."""
        printer.text(repr(self))

    def frame(self) -> pd.DataFrame:
        columns = {"label": self.label, "dense": self.dense, "small": self.small, **self.groups}
        made = pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in columns.items()})
        return made.assign(example_id=range(len(self)))

    def taken(self, rows: Sequence[int]) -> Predictions:
        """The rows at these positions, in this order; a position may come twice."""
        label, dense, small = (
            tuple(column[i] for i in rows) for column in (self.label, self.dense, self.small)
        )
        return Predictions(
            label,
            dense,
            small,
            {name: tuple(c[i] for i in rows) for name, c in self.groups.items()},
        )

    def renamed(self, classes: dict[str, str], levels: dict[str, str]) -> Predictions:
        def by(names: dict[str, str], values: Iterable[str | None]) -> tuple[str | None, ...]:
            return tuple(None if v is None else names[v] for v in values)

        return replace(
            self,
            label=by(classes, self.label),
            dense=by(classes, self.dense),
            small=by(classes, self.small),
            groups={name: by(levels, column) for name, column in self.groups.items()},
        )


def audited(
    table: Predictions, *, swap: bool = False, names: tuple[str, str] = ("dense", "small"),
    **options: Any,
) -> Audit:  # fmt: skip
    """Audit a table; with `swap` the two models change roles."""
    models = {names[0]: table.dense, names[1]: table.small}
    if swap:
        models = {names[0]: table.small, names[1]: table.dense}
    return fw.audit(
        list(table.label),
        {name: list(values) for name, values in models.items()},
        sensitive_features={name: list(values) for name, values in table.groups.items()} or None,
        **{"n_boot": 20, **options},
    )


@st.composite
def prediction_tables(
    draw: st.DrawFn,
    *,
    max_rows: int = 200,
    abstentions: bool = True,
    least_columns: int = 1,
) -> Predictions:
    """2–5 classes, 1–3 group columns with missing values, hostile names, 2 to `max_rows` rows.

    Sizes and names are drawn one by one, so that failures shrink; the cells come from one seed,
    so that a table of 200 rows costs one draw.
    """
    n_classes = draw(st.integers(2, 5))
    classes = draw(
        st.lists(st.sampled_from((*HOSTILE, "0", "1", "2", "cat", "dog")),
                 min_size=n_classes, max_size=n_classes, unique=True)
    )  # fmt: skip
    n = draw(st.integers(2, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    label = rng.integers(0, n_classes, n)
    label[0] = 0  # the first answer of both models is right: they speak the labels' language

    def model() -> tuple[str | None, ...]:
        wrong = rng.random(n) < draw(st.sampled_from([0.0, 0.1, 0.4]))
        code = np.where(wrong, rng.integers(0, n_classes, n), label)
        answers: list[str | None] = [classes[i] for i in code]
        if abstentions and draw(st.booleans()):
            answers = [None if rng.random() < 0.1 else a for a in answers]
        answers[0] = classes[0]
        return tuple(answers)

    columns: dict[str, tuple[str | None, ...]] = {}
    names = draw(
        st.lists(st.sampled_from(("sex", "age group", 'the "site"', "it's", "<i>")),
                 min_size=least_columns, max_size=3, unique=True)
    )  # fmt: skip
    for name in names:
        levels = draw(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4, unique=True))
        choices: list[str | None] = [*levels, *([None] if draw(st.booleans()) else [])]
        columns[name] = tuple(choices[i] for i in rng.integers(0, len(choices), n))
    return Predictions(tuple(classes[i] for i in label), model(), model(), columns)


# An audit takes some tenths of a second: few examples (more under the profile `explore`), and none
# spent on shrinking a failure.
FEW_AUDITS = settings(
    max_examples=max(3, settings.default.max_examples // 20),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def keyed(results: pd.DataFrame) -> pd.DataFrame:
    """Rows by what they speak of, in an order of their own."""
    frame = results.copy()
    frame[KEYS] = frame[KEYS].astype(object).where(frame[KEYS].notna(), "")
    assert not frame.duplicated(KEYS).any(), "two rows speak of the same thing"
    return frame.set_index(KEYS).sort_index()


def row(results: pd.DataFrame, metric: str, by: str = "overall", **where: Any) -> pd.Series:
    """The one row of a metric; `group=`, `cls=`, `task=`, `variant=`, `scope=` say which."""
    where = {"scope": "model", **where}
    chosen = results[(results["metric"] == metric) & (results["by"] == by)]
    for name, value in where.items():
        column = chosen["class" if name == "cls" else name]
        chosen = chosen[column.isna() if value is None else column == value]
    assert len(chosen) == 1, f"{len(chosen)} rows of {metric} by {by} {where}"
    return chosen.iloc[0]


def closed(results: pd.DataFrame) -> pd.DataFrame:
    """Rows whose every number is computed without random draws."""
    drawn = results["interval"].astype(object).fillna("").str.contains("bootstrap|welch|none")
    own = results["metric"].isin(
        ["heterogeneity", "heterogeneity_within_classes", "excess_shift_standardised"]
    )
    return results[~drawn & ~own]


def random_table(
    seed: int,
    n: int = 300,
    n_classes: int = 3,
    *,
    errors: tuple[float, float] = (0.15, 0.25),
    names: Sequence[str] | None = None,
) -> Predictions:
    """A table from one seed: two group columns, errors at the two rates."""
    rng = np.random.default_rng(seed)
    classes = list(names or (str(k) for k in range(n_classes)))
    label = rng.integers(0, n_classes, n)
    models = [
        np.where(rng.random(n) < rate, rng.integers(0, n_classes, n), label) for rate in errors
    ]
    return Predictions(
        tuple(classes[i] for i in label),
        tuple(classes[i] for i in models[0]),
        tuple(classes[i] for i in models[1]),
        {
            "sex": tuple(rng.choice(["F", "M"], n)),
            "site": tuple(rng.choice(["x", "y", "z"], n, p=[0.5, 0.3, 0.2])),
        },
    )
