"""Put the simulated figures into the documentation.

    python -m tests.simulations.write_docs --out docs/statistics.md

Every table of the page stands between the markers `simulated: NAME` and `end`. The numbers are
those that the slow tests judge: same functions, same seeds. About half an hour on one core;
`--only NAME` makes one table anew.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from . import (
    choices,
    churn,
    class_regressions,
    composites,
    dependent,
    excesses,
    families,
    margins,
    mitigations,
    outcomes,
    people_shrunk,
    populations_figures,
    properties_found,
    slices,
    small_groups,
)
from .measured import Figures

SIZES = (100, 300, 1000)


def unequal_churn() -> Figures:
    found = {name: churn.judged(name) for name in churn.WORLDS}
    head = ("world", "excess of the hard group, p ≤ .05", "excess covered", "any excess found",
            "any line in the lead", "audits")  # fmt: skip
    return Figures("churn", head, churn.table(found))


def numeric_outcomes() -> Figures:
    found = {name: outcomes.figures(name) for name in outcomes.WORLDS}
    head = ("world", "gate passes at the margin", "shifts covered", "excesses covered",
            "all shifts at once", "any excess found", "audits")  # fmt: skip
    return Figures("outcomes", head, outcomes.table(found))


def null() -> Figures:
    rows = []
    for family in families.FAMILIES:
        found = families.all_null(family)
        rows.append((family, found["shift"], found["excess"]))
    return Figures("null", ("20 rows × 500", "any shift found", "any excess found"), rows)


def power() -> Figures:
    found = families.planted()
    delta = f"{100 * families.least_detectable():.1f} points"
    return Figures(
        "power",
        ("planted in one of 20 groups of 500", "test", "found"),
        [
            (f"a loss of {delta}", "shift ≠ 0, Holm", found["shift"]),
            (f"{delta} beyond everyone's 2", "excess, random signs", found["excess"]),
            (f"{delta} beyond everyone's 2", "heterogeneity", found["heterogeneity"]),
        ],
    )


def uniform() -> Figures:
    found = families.uniform_drop()
    return Figures(
        "uniform",
        ("everyone loses 2 points, 20 groups × 500", "share"),
        [
            ("groups with p ≤ .05 for shift ≠ 0", found["shift, rows"]),
            ("audits with a shift after Holm", found["shift, any"]),
            ("audits with an excess after Holm", found["excess, any"]),
            ("audits in which heterogeneity rejects", found["heterogeneity"]),
        ],
    )


def composition() -> Figures:
    found = families.composition()
    return Figures(
        "composition",
        ("groups differ in their labels alone, 4 × 1,000", "audits that find something"),
        [
            ("excess, random signs", found["excess, any"]),
            ("standardised excess, Benjamini–Hochberg", found["standardised excess, any"]),
            ("heterogeneity within classes", found["heterogeneity within classes"]),
        ],
    )


def bootstrap() -> Figures:
    names = [name for name, _ in composites.WANTED]
    rows = []
    for world in composites.WORLDS:
        for size in SIZES if world == "uneven" else SIZES[-1:]:
            found = composites.coverage(world, size)
            rows.append((world, f"{size:,}", *(found[name] for name in names)))
    return Figures("bootstrap", ("world", "per class", *(f"`{n}`" for n in names)), rows)


def small() -> Figures:
    rows = []
    for name in small_groups.WORLDS:
        for n in small_groups.SIZES:
            found = small_groups.shown(name, n)
            cells = [found[metric, "shift"] for metric in small_groups.METRICS]
            told = [f"{100 * s.shown:.0f} %: {s.covered}" if s.covered else "" for s in cells]
            sides = [s for (_, where), s in found.items() if where != "shift"]
            known = any(s.covered is not None for s in sides)
            rows.append((name, n, *told, small_groups.pooled(sides) if known else ""))
    head = ("world", "n", *(f"`{m}`" for m in small_groups.METRICS), "either side's value")
    note = "Share of groups with limits of the shift: how often these hold the truth. Empty: fewer than 30 groups have limits."  # noqa: E501
    return Figures("small groups", head, rows, note)


def calibration() -> Figures:
    rows = []
    for name in small_groups.CALIBRATED:
        for n in small_groups.LARGE:
            found = small_groups.shown(name, n)
            rows.append(
                (
                    name,
                    f"{n:,}",
                    *(
                        found[metric, where].covered or ""
                        for metric in small_groups.CALIBRATION
                        for where in ("shift", "compressed")
                    ),
                )
            )
    head = (
        "world",
        "n",
        "gap, shift",
        "gap, value",
        "squared error, shift",
        "squared error, value",
    )
    return Figures("calibration", head, rows)


def inflation() -> Figures:
    rows = []
    for size in SIZES:
        truth, plain, corrected = composites.inflation(size)
        rows.append((f"{size:,}", f"{truth:.0f}", f"{plain:.0f}", f"{corrected:.0f}"))
    return Figures(
        "inflation",
        ("per class", "true CEV", "mean of the estimates", "mean of 2T − mean(T*)"),
        rows,
    )


def swap() -> Figures:
    found = composites.swap_level()
    return Figures("swap", tuple(f"`{name}`" for name in found), [tuple(found.values())])


def worst() -> Figures:
    rows = []
    for name in composites.TEN_GROUPS:
        found = composites.worst_group(name)
        rows.append((name, found["simultaneous"], found["pointwise"]))
    head = ("ten groups of 500", "`worst_group_shift`", "plain interval of the observed worst")
    return Figures("worst", head, rows)


def clusters() -> Figures:
    rows = []
    for number in (20, 100):
        found, flips = dependent.clusters(number), dependent.sign_flips(number)
        kappa = dependent.cluster_kappa(number)
        rows += [
            (
                number,
                "with clusters",
                *(found[name] for name in ("accuracy", "shift")),
                kappa["whole clusters"],
                flips["sign flips"],
            ),
            (
                number,
                "as if independent",
                *(found[f"{name}, i.i.d."] for name in ("accuracy", "shift")),
                kappa["single examples"],
                flips["McNemar, i.i.d."],
            ),
        ]
    head = (
        "clusters",
        "examples taken",
        "accuracy",
        "shift",
        "shift of kappa",
        "level of the test",
    )
    return Figures("clusters", head, rows)


def two_columns() -> Figures:
    rows = []
    for people, n in (((25, 25), 1_000), ((40, 60), 2_400)):
        found = dependent.two_columns(people, n)
        for name, ending in (
            ("both columns", ""), ("the first alone", ", first column"), ("none", ", i.i.d."),
        ):  # fmt: skip
            values = [
                found.get(f"{what} {measure}{ending}", "")
                for what in ("rate", "number")
                for measure in ("covered", "level", "any excess")
            ]
            rows.append((f"{people[0]} × {people[1]}, {n:,} pairs", name, *values))
    head = (
        "people", "clusters given", "shift of accuracy covered", "level of its test", "any excess",
        "shift of a score covered", "level of its test", "any excess",
    )  # fmt: skip
    return Figures("two-columns", head, rows)


def cluster_heterogeneity() -> Figures:
    designs = {
        "100 clusters, each in one of 4 levels": (100, 4, False),
        "100 clusters with all 4 levels inside": (100, 4, True),
        "50 clusters, each in one of 2 levels": (50, 2, False),
    }
    rows = [(name, dependent.cluster_heterogeneity(*design)) for name, design in designs.items()]
    return Figures("cluster-heterogeneity", ("design", "rejections at 5 %"), rows)


def weights() -> Figures:
    rows = [(spread, dependent.weights(spread)) for spread in (0.5, 1.0)]
    return Figures("weights", ("standard deviation of log weight", "coverage of the shift"), rows)


def excess() -> Figures:
    rows = []
    for n in (300, 1000, 5000):
        found = excesses.excess_coverage(n)
        standardised = "" if n == 300 else excesses.standardised_coverage(n)
        rows.append((f"{n:,}", found["all rows"], found["smallest group"], standardised))
    head = ("examples", "excess, all groups", "smallest group (10 %)", "standardised excess")
    return Figures("excess", head, rows)


TABLES: dict[str, Callable[[], Figures]] = {
    "null": null,
    "power": power,
    "churn": unequal_churn,
    "uniform": uniform,
    "composition": composition,
    "excess": excess,
    "outcomes": numeric_outcomes,
    "bootstrap": bootstrap,
    "inflation": inflation,
    "swap": swap,
    "small groups": small,
    "calibration": calibration,
    "worst": worst,
    "clusters": clusters,
    "cluster-heterogeneity": cluster_heterogeneity,
    "two-columns": two_columns,
    "weights": weights,
    **margins.TABLES,
    **populations_figures.TABLES,
    "class-regression": class_regressions.class_regression,
    **people_shrunk.TABLES,
    **properties_found.TABLES,
    **slices.TABLES,
    **mitigations.TABLES,
    **choices.TABLES,
}


def with_figures(page: str, figures: Figures) -> str:
    """The page with this table between its markers."""
    start, end = f"<!-- simulated: {figures.name} -->", "<!-- end -->"
    pattern = re.compile(f"({re.escape(start)}\n).*?({re.escape(end)})", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no place for '{figures.name}': {start} … {end}")
    return pattern.sub(lambda m: f"{m[1]}{figures.markdown()}\n{m[2]}", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="the page to bring up to date")
    parser.add_argument("--only", choices=list(TABLES), action="append", help="just this table")
    options = parser.parse_args()
    for name in options.only or TABLES:
        figures = TABLES[name]()
        page = options.out.read_text(encoding="utf-8")
        options.out.write_text(with_figures(page, figures), encoding="utf-8")
        print(f"{name}\n{figures.markdown()}\n", flush=True)


if __name__ == "__main__":
    main()
