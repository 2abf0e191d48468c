"""Tables and figures of a study's results, as Markdown and as files beside a page."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

LARGEST = 40_000  # bytes of a drawing; above it stands a picture of few colours
COLOURS = 128
WORST = 10
# The terms that the paper speaks of; PA-T2 has all of them.
TERMS = ("imbalance", "class_entropy", "sparsity", "np.exp(sparsity)", "accuracy0",
         "accuracy0_quartile", "weight_treatment[T.rewind]")  # fmt: skip
MODEL = ["dataset", "model", "pruning_technique", "weight_treatment", "variant", "seed", "root"]


def audited(folder: Path) -> list[str]:
    """One row per variant: accuracy, its shift in both scopes, the noise floor, the worst class."""
    results = pd.read_parquet(folder / "audit" / "tables" / "results.parquet")
    variants = pd.read_parquet(folder / "variants.parquet")
    zeros = variants.groupby("variant")["sparsity"].mean()
    overall = results[(results["by"] == "overall") & (results["metric"] == "accuracy")]
    overall = overall[overall["task"].isna()]
    dense = overall.iloc[0]
    rows = [
        ["dense", f"{dense['n_seeds_baseline']:.0f}", f"{100 * zeros['dense']:.1f} %",
         f"{100 * dense['baseline']:.2f} %", "", "", "", "", ""]
    ]  # fmt: skip
    for variant in results["variant"].unique():
        own = overall[overall["variant"] == variant].set_index("scope")
        model = own.loc["model"]
        floor = model["noise_floor"]
        rows.append(
            [
                variant,
                f"{model['n_seeds_compressed']:.0f}",
                f"{100 * zeros[variant]:.1f} %",
                f"{100 * model['compressed']:.2f} %",
                _shift(model),
                _shift(own.loc["method"]) if "method" in own.index else "",
                "" if pd.isna(floor) else f"{100 * floor:.2f}",
                _most_beyond(results, variant, "recall", "class"),
                _most_beyond(results, variant, "accuracy", "group"),
            ]
        )
    heads = ("variant", "members:", "zeros:", "accuracy:", "these models:", "the method:",
             "retraining moves:", "class beyond others:", "group beyond others:")  # fmt: skip
    return markdown(heads, rows)


def by_group(folder: Path) -> list[str]:
    """Accuracy of every group of the audited variants, and what it loses beyond the others."""
    results = pd.read_parquet(folder / "audit" / "tables" / "results.parquet")
    own = results[(results["by"] == "group") & (results["metric"] == "accuracy")]
    own = own[own["shift"].notna()]
    rows = [
        [
            str(row["variant"]),
            str(row["group"]),
            str(row["scope"]),
            f"{row['n']:,.0f}",
            f"{100 * row['baseline']:.2f} %",
            f"{100 * row['compressed']:.2f} %",
            _shift(row),
            _points(row["excess_shift"], row["excess_low"], row["excess_high"]),
        ]
        for row in own.to_dict("records")
    ]
    heads = ("variant", "group", "scope", "n:", "before:", "after:", "shift:", "beyond others:")
    return markdown(heads, rows)


def worst_individuals(folder: Path) -> list[str]:
    """Those with the largest shrunken loss; empty where nobody was looked at."""
    path = folder / "audit" / "tables" / "individuals.parquet"
    if not path.exists():
        return []
    table = pd.read_parquet(path)
    rows = []
    for variant, own in table.groupby("variant", sort=False):
        worst = own.nsmallest(WORST, "shift_shrunk")
        rows += [
            [
                str(variant),
                str(row["individual"]),
                "" if pd.isna(row["group"]) else str(row["group"]),
                f"{row['n']:,.0f}",
                f"{100 * row['baseline']:.1f} %",
                f"{100 * row['compressed']:.1f} %",
                _points(row["shift_shrunk"], row["shift_low"], row["shift_high"]),
            ]
            for row in worst.to_dict("records")
        ]
    heads = ("variant", "individual", "group", "n:", "before:", "after:", "shrunken shift:")
    return markdown(heads, rows)


def class_fits(tables: Path) -> list[str]:
    """How large each regression is, and how good."""
    rows = [
        [
            f"`{row['fit']}`",
            f"{row['n']:,.0f}",
            f"{row['n_parameters']:.0f}",
            f"{row['n_roots']:.0f}",
            f"{row['r2']:.3f}",
            "" if pd.isna(row["outside"]) else f"{100 * row['outside']:.1f} %",
            ""
            if pd.isna(row["f_against_linear"])
            else f"{row['f_against_linear']:.1f} ({_p(row['f_p'])})",
        ]
        for row in pd.read_parquet(tables / "class_fits.parquet").to_dict("records")
    ]
    heads = ("fit", "n:", "parameters:", "lineages:", "R²:", "fitted outside 0–1:",
             "F against linear:")  # fmt: skip
    return markdown(heads, rows)


def class_coefficients(tables: Path) -> list[str]:
    """The main terms in every fit, with 95 % intervals."""
    table = pd.read_parquet(tables / "class_coefficients.parquet")
    fits = list(dict.fromkeys(table["fit"]))
    held = table.set_index(["term", "fit"])
    rows = []
    for term in TERMS:
        cells = [
            _coefficient(held.loc[term, fit]) if (term, fit) in held.index else "" for fit in fits
        ]
        if any(cells):
            rows.append([f"`{term}`", *cells])
    return markdown(("term", *(f"{fit}:" for fit in fits)), rows)


def techniques(tables: Path) -> list[str]:
    """What every technique costs at its last round, over lineages: mean and t interval.

    A lineage is a dense model with all that was made of it. Only those with every technique of
    their architecture take part, so that techniques are compared on the same ones.
    """
    rows: list[list[str]] = []
    models = _models(tables)
    for architecture, own in models.groupby("model", sort=False):
        last = _last_rounds(own)
        wanted = last.groupby(["pruning_technique", "weight_treatment"]).ngroups
        whole = last.groupby("root").filter(lambda root, n=wanted: len(root) == n)
        ways = whole.groupby(["pruning_technique", "weight_treatment"], sort=False)
        for (technique, treatment), one in ways:
            rows.append(
                [
                    str(architecture),
                    str(technique),
                    str(treatment),
                    str(len(one)),
                    f"{100 * one['sparsity'].mean():.1f} %",
                    _points(*_mean_limits(one["shift"])),
                    _points(*_mean_limits(one["gap_shift"])),
                ]
            )
    heads = ("network", "technique", "treatment", "lineages:", "zeros:", "accuracy, points:",
             "class gap, points:")  # fmt: skip
    return markdown(heads, rows)


def rewound(tables: Path) -> list[str]:
    """Rewound less finetuned accuracy at the last round, paired by lineage."""
    rows = []
    for (architecture, technique), own in _models(tables).groupby(
        ["model", "pruning_technique"], sort=False
    ):
        last = _last_rounds(own).pivot_table(
            index="root", columns="weight_treatment", values=["accuracy", "gap"]
        )
        if not {"rewind", "finetune"} <= set(last["accuracy"].columns):
            continue
        cells = []
        for value in ("accuracy", "gap"):
            difference = (last[value]["rewind"] - last[value]["finetune"]).dropna()
            cells.append(_points(*_mean_limits(difference)))
        rows.append([str(architecture), str(technique), str(len(difference)), *cells])
    heads = ("network", "technique", "lineages:", "rewound − finetuned, points:",
             "class gap, points:")  # fmt: skip
    return markdown(heads, rows)


def by_data_set(tables: Path) -> list[str]:
    """Accuracy at the last round: mean of the seeds, a row per data set and network."""
    last = _last_rounds(_models(tables))
    ways = list(
        dict.fromkeys(zip(last["pruning_technique"], last["weight_treatment"], strict=True))
    )
    rows = []
    for (data, architecture), own in last.groupby(["dataset", "model"], sort=False):
        dense = own.groupby("root")["accuracy0"].first().mean()
        means = own.groupby(["pruning_technique", "weight_treatment"])["accuracy"].mean()
        cells = [f"{100 * means[way]:.1f}" if way in means.index else "" for way in ways]
        rows.append([f"{data}, {architecture}", f"{100 * dense:.1f}", *cells])
    return markdown(("", "dense:", *(f"{a}, {b}:" for a, b in ways)), rows)


def _models(tables: Path) -> pd.DataFrame:
    """One row per pruned model: accuracy of all examples, and the gap between its classes."""
    rows = pd.read_parquet(tables / "class_rows.parquet")
    rows = rows.assign(right=rows["accuracy"] * rows["n"], right0=rows["accuracy0"] * rows["n"])
    made = rows.groupby(MODEL, sort=False).agg(
        sparsity=("sparsity", "first"),
        n=("n", "sum"),
        right=("right", "sum"),
        right0=("right0", "sum"),
        best=("accuracy", "max"),
        least=("accuracy", "min"),
        best0=("accuracy0", "max"),
        least0=("accuracy0", "min"),
    )
    made = made.reset_index()
    made["accuracy"], made["accuracy0"] = made["right"] / made["n"], made["right0"] / made["n"]
    made["gap"], gap0 = made["best"] - made["least"], made["best0"] - made["least0"]
    return made.assign(shift=made["accuracy"] - made["accuracy0"], gap_shift=made["gap"] - gap0)


def _last_rounds(models: pd.DataFrame) -> pd.DataFrame:
    """By the number behind the name: few channels may leave nothing to prune in the last rounds."""
    rounds = models["variant"].str.extract(r"-r(\d+)$", expand=False).astype(float)
    in_order = models.assign(round=rounds).sort_values("round", kind="stable")
    return in_order.groupby(["root", "pruning_technique", "weight_treatment"], sort=False).tail(1)


def _mean_limits(values: pd.Series) -> tuple[float, float, float]:
    """The mean, with the limits of Student's t; without limits where no value differs."""
    from scipy.stats import t

    mean, n = float(values.mean()), len(values)
    if values.nunique() < 2:
        return mean, np.nan, np.nan
    reach = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean, mean - reach, mean + reach


def _shift(row: pd.Series | dict[str, float]) -> str:
    return _points(row["shift"], row["ci_low"], row["ci_high"])


def _points(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return ""
    limits = "" if pd.isna(low) else f" [{100 * low:+.2f}, {100 * high:+.2f}]"
    return f"{100 * value:+.2f}{limits}"


def _coefficient(row: pd.Series) -> str:
    if pd.isna(row["coefficient"]):
        return "×"
    limits = "" if pd.isna(row["low"]) else f" [{row['low']:.3g}, {row['high']:.3g}]"
    return f"{row['coefficient']:.3g}{limits}"


def _p(value: float) -> str:
    return "p < .001" if value < 0.001 else f"p = {value:.3f}"


def _most_beyond(results: pd.DataFrame, variant: str, metric: str, by: str) -> str:
    """Who loses most beyond all others, with the limits of that excess."""
    rows = results[
        (results["variant"] == variant)
        & (results["metric"] == metric)
        & (results["by"] == by)
        & (results["scope"] == "model")
        & results["excess_shift"].notna()
    ]
    if rows.empty:
        return ""
    worst = rows.loc[rows["excess_shift"].idxmin()]
    name = worst["group" if by == "group" else "class"]
    return f"{name} {_points(worst['excess_shift'], worst['excess_low'], worst['excess_high'])}"


def dense_attributes(folder: Path) -> list[str]:
    """Of several attributes: dense accuracy, and of the rarer value its share and recall."""
    results = pd.read_parquet(folder / "audit" / "tables" / "results.parquet")
    rows = results[
        (results["by"] == "class") & results["metric"].isin(("recall", "selection_rate"))
    ]
    rows = rows[rows["task"].notna()].drop_duplicates(["task", "metric", "class"])
    made = []
    for task, own in rows.groupby("task"):
        recall = own[own["metric"] == "recall"].set_index("class")
        rate = own[own["metric"] == "selection_rate"].set_index("class")
        n = recall["n"].astype(float)
        if len(n) != 2:
            continue
        rare, share = n.idxmin(), n.min() / n.sum()
        accuracy = float((n * recall["baseline"]).sum() / n.sum())
        made.append([
            str(task), f"{100 * accuracy:.1f} %", f"{100 * share:.1f} %",
            f"{100 * recall['baseline'][rare]:.1f} %", f"{rate['baseline'][rare] / share:.2f}",
        ])  # fmt: skip
    heads = ("attribute", "accuracy:", "rarer value:", "its recall:", "TCB:")
    return markdown(heads, made) if made else []


def attribute_shares(folder: Path) -> list[str]:
    """How often each attribute is there in the training data, the most frequent first."""
    train = pd.read_parquet(folder / "train.parquet")
    if "task" not in train:
        return []
    by_task = train.groupby("task")["label"].agg(["mean", "sum"]).sort_values("mean")[::-1]
    rows = [
        [str(task), f"{100 * mean:.1f} %", f"{total:,.0f}"]
        for task, mean, total in by_task.itertuples()
    ]
    return markdown(("attribute", "share of training data:", "images:"), rows)


def attributes_among_exemplars(folder: Path, variant: str) -> list[str]:
    """Each attribute among the tenth of examples whose votes are furthest apart, and elsewhere.

    The odds ratio has Woolf's limits (with half an example added to every cell). Attributes of the
    same faces go together, so that they are no forty independent comparisons.
    """
    exemplars = pd.read_parquet(folder / "audit" / "tables" / "exemplars.parquet")
    own = exemplars[(exemplars["variant"] == variant) & exemplars["top_10"].fillna(False)]
    labels = pd.read_parquet(next((folder / "predictions" / "dense").glob("*.parquet")))
    train = pd.read_parquet(folder / "train.parquet")
    if "task" not in labels or own.empty:
        return []
    wide = labels.pivot_table(index="example_id", columns="task", values="label", aggfunc="first")
    chosen = wide.index.astype(str).isin(set(own["example_id"].astype(str)))
    shares = train.groupby("task")["label"].mean()
    rows = []
    for task in shares.sort_values().index:
        inside, outside = wide.loc[chosen, task], wide.loc[~chosen, task]
        cells = np.array([inside.sum(), len(inside) - inside.sum(), outside.sum(),
                          len(outside) - outside.sum()], float) + 0.5  # fmt: skip
        log_odds = np.log(cells[0] * cells[3] / (cells[1] * cells[2]))
        reach = 1.959964 * np.sqrt((1 / cells).sum())
        low, high = np.exp(log_odds - reach), np.exp(log_odds + reach)
        rows.append([
            str(task), f"{100 * shares[task]:.1f} %", f"{100 * inside.mean():.1f} %",
            f"{100 * outside.mean():.1f} %", f"{np.exp(log_odds):.2f} [{low:.2f}, {high:.2f}]",
        ])  # fmt: skip
    heads = ("attribute", "training data:", "exemplars:", "other test images:", "odds ratio:")
    return markdown(heads, rows)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; the columns whose head ends in a colon are numbers, on the right."""
    rule = "".join("---:|" if head.endswith(":") else "---|" for head in heads)
    lines = [f"| {' | '.join(head.removesuffix(':') for head in heads)} |", f"|{rule}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def put(figure: Path, target: Path) -> Path:
    """Copy a figure to `target`, as a PNG where it is large; returns where it went."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if figure.stat().st_size <= LARGEST:
        shutil.copyfile(figure, target)
        return target
    import vl_convert
    from PIL import Image

    image = vl_convert.svg_to_png(figure.read_text(encoding="utf-8"), scale=1.0)
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    # By coverage of colours: the median cut makes those of thin lines alike.
    picture = picture.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE)
    made = target.with_suffix(".png")
    picture.save(made, optimize=True)
    return made
