"""Try mitigations on a finished study and choose among its variants; write what came of it.

    python docs/results/mitigations.py RESULTS/joint --page docs/results/NAME.md \\
        --variant gmp-ri-95 --variant gmp-ri-99 --groups Male,Young

RESULTS/joint is a published experiment with `validation/`; folders such as RESULTS/joint-thresholds
are put beside it. Without variants nothing is mitigated, only chosen. The commands are those that
anyone would type; they are in the page. Prints the section, for `study_page.py --more`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from study_tables import markdown, put

OBJECTIVES = ("accuracy", "worst_group_shift", "sparsity")
WEIGHTS = ("accuracy=100", "unfairness=10", "sparsity=1")
# Where there are no groups, what the paper weighs: classes, at a hundred times their sparsity.
OF_CLASSES = ("sparsity", "unfairness", "accuracy")
VALUED = ("sparsity=1", "unfairness=100")
REPLICATES = "300"
REQUIRED = "worst_group_shift>=-0.02"
SHOWN = ("accuracy", "tcb", "bias_amplification", "worst_case_bias_amplification", "worst_group")
BUDGET = 0.1
MOST = 40  # variants from which only those are shown that may be taken
STANDING = ("frontier", "within noise")
CHOOSING = (
    "Variants are compared on the same draws of examples, and chosen on the rows on which they "
    "are shown: the best of many looks better than it is."
)
INTRODUCTION = (
    "Rules were fitted on the validation images and judged on the test images. Changes are against "
    "the same variant without the rule, means over the attributes, with 95 % intervals for these "
    "models. *Better* and *worse* count attributes with their groups and classes; limits hold for "
    "the whole family. A dash: not defined, for example because an attribute is never predicted."
)


def commands(folder: Path, variants: Sequence[str], groups: str | None) -> dict[str, list[str]]:
    """What is typed, by the name of the folder that it writes."""
    tables = [f"{folder}/predictions/*/*.parquet", "--variants", f"{folder}/variants.parquet"]
    if groups is None:
        words = {
            "frontier": ["choose", *tables, *_each("--objective", OF_CLASSES)],
            "value": ["choose", *tables, *_each("--weight", VALUED)],
        }
    else:
        tables += ["--task", "task", "--groups", groups]
        words = {
            **_mitigations(folder, tables, variants),
            "frontier": ["choose", *tables, *_each("--objective", OBJECTIVES)],
            "value": ["choose", *tables, *_each("--weight", WEIGHTS)],
            "smallest": ["choose", *tables, "--objective", "n_nonzero", "--require", REQUIRED],
        }
    return {
        name: [*own, "--n-boot", REPLICATES, "--out", f"{folder}-{name}"]
        for name, own in words.items()
    }


def _mitigations(folder: Path, tables: list[str], variants: Sequence[str]) -> dict[str, list[str]]:
    if not variants:
        return {}
    asked = [*tables, "--train", f"{folder}/train.parquet", "--variant", ",".join(variants)]
    asked += ["--validation", f"{folder}/validation/*/*.parquet"]
    return {
        "thresholds": ["mitigate", "thresholds", *asked],
        "overrides": ["mitigate", "overrides", *asked],
        "cascade": ["mitigate", "cascade", *asked, "--margin", "0.02"],
    }


def run(typed: dict[str, list[str]]) -> None:
    """Run what has no folder yet."""
    for words in typed.values():
        if not Path(words[-1]).exists():
            print("fairweight", shlex.join(words), file=sys.stderr)
            done = subprocess.run(
                [sys.executable, "-m", "fairweight", *words], capture_output=True, text=True
            )
            if done.returncode not in (0, 3):
                raise SystemExit(done.stderr)


def changed(folder: Path) -> list[str]:
    """One row per new variant and metric: before, after, and in how many places it is better."""
    table = pd.read_csv(folder / "mitigation.csv")
    rows = []
    for (variant, against), own in table.groupby(["variant", "against"], sort=False):
        if str(variant).partition("+")[0] != against:
            continue
        parts = own[own["by"].isin(["group", "class"]) & own["metric"].isin(["accuracy", "recall"])]
        counts = parts["verdict"].value_counts()
        for metric in SHOWN:
            whole = own[(own["metric"] == metric) & own["task"].isna()]
            whole = whole[whole["by"].isin(["overall", "grouping"])]
            for row in whole.to_dict("records"):
                rows.append([
                    str(variant), _name(row), _number(row["before"]), _number(row["after"]),
                    _change(row["shift"], row["low"], row["high"]), str(row["verdict"]),
                ])  # fmt: skip
        told = f"{counts.get('better', 0)} better, {counts.get('worse', 0)} worse of {len(parts)}"
        rows.append([str(variant), "groups and classes", "", "", "", told])
    return markdown(("variant", "metric", "before:", "after:", "change:", "verdict"), rows)


def overridden(folder: Path) -> list[str]:
    """What overrides change at one budget, and what is beyond a random choice."""
    table = pd.read_csv(folder / "override_curves.csv")
    table = table[table["task"].isna() & (table["budget"].round(6) == BUDGET)]
    table = table[table["metric"].isin(["accuracy", "bias_amplification", "worst_group_shift"])]
    rows = [
        [
            row["variant"], row["source"], _name(row),
            _change(row["change"], row["change_low"], row["change_high"]),
            _change(row["beyond_random"], row["beyond_low"], row["beyond_high"]),
        ]
        for row in table.to_dict("records")
    ]  # fmt: skip
    heads = ("variant", "labels", "metric", "change:", "beyond a random choice:")
    return markdown(heads, rows)


def cascaded(folder: Path) -> list[str]:
    """The recommended threshold of every variant, on the rows on which it is judged."""
    table = pd.read_csv(folder / "cascade_curve.csv")
    table = table[table["task"].isna() & table["recommended"] & (table["part"] == "judging")]
    table = table[table["metric"].isin(["accuracy", "bias_amplification", "worst_group_shift"])]
    rows = [
        [
            row["variant"], f"{row['threshold']:.3f}", f"{100 * row['share_deferred']:.1f} %",
            f"{row['cost_ms']:.3f}",
            _name(row),
            _change(row["value"], row["low"], row["high"]),
            _change(row["change"], row["change_low"], row["change_high"]),
        ]
        for row in table.to_dict("records")
    ]  # fmt: skip
    heads = ("variant", "threshold:", "asked twice:", "ms per image:", "metric", "value:",
             "change:")  # fmt: skip
    return markdown(heads, rows)


def chosen(folder: Path) -> list[str]:
    """The sentences of a choice, and those that may be the best; not the rest of very many."""
    held = json.loads((folder / "choice.json").read_text(encoding="utf-8"))
    table = held["tables"]["choice"]
    kept = [row for row in table if row["in_best_set"] or row["frontier"] in STANDING]
    left = len(table) - len(kept) if len(table) > MOST else 0
    rows = [
        [
            row["variant"], "yes" if row["qualifies"] else "no",
            row["frontier"] or "", _share(row["p_frontier"]), _share(row["p_best"]),
            {True: "yes", False: "no"}.get(row["in_best_set"], ""),
        ]
        for row in (kept if left else table)
    ]  # fmt: skip
    heads = ("variant", "qualifies", "stands", "P(frontier):", "P(best):", "in the 95 % set")
    rest = ["", f"{left} more are dominated."] if left else []
    return [*(f"- {line}" for line in held["sentences"]), "", *markdown(heads, rows), *rest]


def figures(folder: Path, name: str, page: Path) -> list[str]:
    """Figures of a mitigation's audit, or of a choice, put beside the page."""
    lines = []
    for made in [*_of_audit(folder, name), *sorted((folder / "figures").glob("*.svg"))]:
        place = put(made, page.with_suffix("") / f"{name}-{made.name}")
        where = place.relative_to(page.parent).as_posix()
        lines += [f"![{made.stem} of {name}]({where})", ""]
    return lines


def _of_audit(folder: Path, name: str) -> list[Path]:
    if name not in FIGURES:
        return []
    from fairweight.auditing.archive import load
    from fairweight.report.figures.export import save_figure

    result = load(folder / "audit")
    origins = dict.fromkeys(variant.partition("+")[0] for variant in result.variants)
    id = FIGURES[name]
    if id in TOGETHER:
        return [save_figure(result, id, folder / f"{id}.svg")]
    return [
        save_figure(result, id, folder / f"{id}-{variant}.svg", variant=variant)
        for variant in origins
    ]


def section(typed: dict[str, list[str]], page: Path) -> list[str]:
    """What the commands found, under the commands."""
    helped = not set(typed).isdisjoint(FIGURES)
    title = "What helps, and what to ship" if helped else "What to ship"
    lines = [f"## {title}", "", INTRODUCTION if helped else CHOOSING, ""]
    for name, words in typed.items():
        made = Path(words[-1])
        lines += [f"### {TITLES[name]}", "", "```console", f"$ fairweight {shlex.join(words)}",
                  "```", "", *TABLES[name](made), "", *figures(made, name, page)]  # fmt: skip
    return lines


TITLES = {
    "thresholds": "Thresholds",
    "overrides": "Overrides",
    "cascade": "A cascade",
    "frontier": "Choosing: nobody dominates these",
    "value": "Choosing: by what each objective is worth",
    "smallest": "Choosing: the smallest model that keeps every group within 2 points",
}
TABLES = {
    "thresholds": changed,
    "overrides": overridden,
    "cascade": cascaded,
    "frontier": chosen,
    "value": chosen,
    "smallest": chosen,
}
FIGURES = {"thresholds": "IO-F5a", "overrides": "IO-F6", "cascade": "FW-4"}
TOGETHER = ("IO-F5a", "IO-F6")  # one figure for all variants


def _each(option: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _name(row: dict[str, Any]) -> str:
    place = "" if pd.isna(row["group"]) else f" ({row['group']})"
    return str(row["metric"]).replace("_", " ") + place


def _number(value: float) -> str:
    return "—" if pd.isna(value) else f"{value:.3f}"


def _change(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return "—"
    return f"{value:+.4f}" + ("" if pd.isna(low) else f" [{low:+.4f}, {high:+.4f}]")


def _share(value: float | None) -> str:
    return "" if value is None or pd.isna(value) else f"{100 * value:.0f} %"


def main(arguments: list[str] | None = None) -> None:
    """Run what has not been run, and print the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("experiment", type=Path)
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--groups", metavar="a,b")
    given = parser.parse_args(arguments)
    typed = commands(given.experiment, given.variant, given.groups)
    run(typed)
    print("\n".join(section(typed, given.page)))


if __name__ == "__main__":
    main()
