"""Write the page of a finished study: what its audits found, in one table per experiment.

    python docs/results/study_page.py fairweight-runs/results/NAME --out docs/results/NAME.md

Figures of the audits are copied beside the page, into a folder of its name.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pandas as pd

# They hold images, which are not ours to publish.
PICTURES = ("HK-F3", "SS-F1", "PA-F10")
# They show every variant and mark one of them.
ALL_VARIANTS = ("SG-T1", "SG-F3", "SG-F4", "SG-F5", "SG-F6", "SS-F2")


def table(folder: Path) -> list[str]:
    """One row per variant: accuracy, its shift in both scopes, the noise floor, the worst class."""
    results = pd.read_parquet(folder / "audit" / "tables" / "results.parquet")
    variants = pd.read_parquet(folder / "variants.parquet")
    zeros = variants.groupby("variant")["sparsity"].mean()
    rows = [
        "| variant | members | zeros | accuracy | these models | the method | retraining moves | "
        "worst class | worst group |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    overall = results[(results["by"] == "overall") & (results["metric"] == "accuracy")]
    overall = overall[overall["task"].isna()]
    dense = overall.iloc[0]
    rows.append(
        f"| dense | {dense['n_seeds_baseline']:.0f} | {100 * zeros['dense']:.1f} % | "
        f"{100 * dense['baseline']:.2f} % | | | | | |"
    )
    for variant in results["variant"].unique():
        own = overall[overall["variant"] == variant].set_index("scope")
        model = own.loc["model"]
        method = own.loc["method"] if "method" in own.index else None
        floor = model["noise_floor"]
        rows.append(
            f"| {variant} | {model['n_seeds_compressed']:.0f} | {100 * zeros[variant]:.1f} % | "
            f"{100 * model['compressed']:.2f} % | {_points(model)} | "
            f"{'' if method is None else _points(method)} | "
            f"{'' if pd.isna(floor) else f'{100 * floor:.2f}'} | "
            f"{_least(results, variant, 'recall', 'class')} | "
            f"{_least(results, variant, 'accuracy', 'group')} |"
        )
    return rows


def _points(row: pd.Series) -> str:
    if pd.isna(row["ci_low"]):
        return f"{100 * row['shift']:+.2f}"
    return f"{100 * row['shift']:+.2f} [{100 * row['ci_low']:+.2f}, {100 * row['ci_high']:+.2f}]"


def _least(results: pd.DataFrame, variant: str, metric: str, by: str) -> str:
    rows = results[
        (results["variant"] == variant)
        & (results["metric"] == metric)
        & (results["by"] == by)
        & (results["scope"] == "model")
        & results["shift"].notna()
    ]
    if rows.empty:
        return ""
    worst = rows.loc[rows["shift"].idxmin()]
    return f"{worst['group' if by == 'group' else 'class']} {100 * worst['shift']:+.1f}"


def _figures(folder: Path) -> list[Path]:
    """Those of single variants, and of those that show all variants one."""
    shown: dict[str, Path] = {}
    for path in sorted(folder.glob("*.svg")):
        if path.stem.startswith(PICTURES):
            continue
        id = next((id for id in ALL_VARIANTS if path.stem.startswith(f"{id}-")), path.stem)
        shown[id] = path
    return list(shown.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--notes", type=Path, help="Markdown that follows the introduction.")
    given = parser.parse_args()
    lines = [
        f"# The study {given.results.name}",
        "",
        f"Made by `fairweight study run {given.results.name} --data DIR`, then "
        "`python docs/results/study_page.py`. Changes are points of accuracy against the dense "
        "population, paired on the same examples, with 95 % intervals: for these models, and for "
        "the method (models are a sample too). Beside them: what retraining alone moves (95 % of "
        "pairs of dense populations of that size move less). The worst class and group are the "
        "largest losses of these models, picked after looking; the report has their limits.",
        "",
    ]
    if given.notes is not None:
        lines += [given.notes.read_text(encoding="utf-8").strip(), ""]
    for folder in sorted(path for path in given.results.iterdir() if (path / "audit").is_dir()):
        lines += [f"## {folder.name}", "", *table(folder), ""]
        for figure in _figures(folder / "audit" / "figures"):
            target = given.out.with_suffix("") / f"{folder.name}-{figure.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(figure, target)
            place = target.relative_to(given.out.parent)
            lines += [f"![{figure.stem} of {folder.name}]({place.as_posix()})", ""]
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
