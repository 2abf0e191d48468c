"""A synthetic audit of 10 classes, two group columns and two variants, counted from drawn answers.

The engine is not used: the report must work from the frames of the contract alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.intervals.multiplicity import holm
from fairweight.auditing.result import (
    BOOLEAN_COLUMNS,
    INTEGER_COLUMNS,
    LEAD_COLUMNS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
    AuditResult,
    Provenance,
)

from .made_explanations import explained as with_explanations

HOSTILE = {
    "Female": "<script>alert('x')</script>",
    "Male": 'a, "quoted"\nsecond line',
    "Other": "=HYPERLINK(1)",
    "old": "[red]o\x1b[31mld[/red]",
    "young": "</script><img src=x onerror=alert(1)>",
    "3": "{{ 7 * 7 }} & datum['x']",
    "int8": "int8 <b>'fast'</b>, \"v2\"",
    "sex": "sex.of[person]",
}
POWER_COLUMNS = (
    "variant", "task", "metric", "by", "group", "class", "n", "discordance", "design_effect",
    "n_family", "min_detectable_shift", "reference_shift", "n_needed", "largest_loss", "status",
)  # fmt: skip
MARGIN = 0.02


def _wilson(k: float, n: float, z: float = 1.96) -> tuple[float, float]:
    if n == 0:
        return math.nan, math.nan
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return centre - half, centre + half


def _p_of(t: float) -> float:
    return math.erfc(abs(t) / math.sqrt(2)) if math.isfinite(t) else math.nan


def build(
    names: dict[str, str] | None = None,
    *,
    n: int = 4000,
    n_classes: int = 10,
    seed: int = 0,
    with_scores: bool = True,
) -> AuditResult:
    """Draw answers in which sex=Female and class 3 pay more, and count them."""
    names = names or {}
    call = lambda name: names.get(name, name)  # noqa: E731
    rng = np.random.default_rng(seed)
    classes = tuple(call(str(c)) for c in range(n_classes))
    label = rng.integers(n_classes, size=n)
    sex = rng.choice(["Female", "Male", "Other"], size=n, p=[0.3, 0.699, 0.001])
    sex[:6] = "Other"
    age = rng.choice(["old", "young"], size=n, p=[0.25, 0.75])
    columns = {call("sex"): sex, "age": age}
    base_right = rng.random(n) < 0.93
    wrong = (label + rng.integers(1, n_classes, size=n)) % n_classes
    baseline_prediction = np.where(base_right, label, wrong)
    variants = (call("int8"), "pruned-90")
    predictions = {}
    for variant, strength in zip(variants, (1.0, 2.0), strict=True):
        lose = 0.01 * strength + 0.05 * strength * (sex == "Female") + 0.08 * (label == 3)
        draw = rng.random(n)
        right = np.where(base_right, draw >= lose, draw < 0.08)
        predictions[variant] = np.where(right, label, wrong)

    slices: dict[tuple[str, str], np.ndarray] = {}
    for name, values in columns.items():
        for level in np.unique(values):
            slices[name, f"{name}={call(str(level))}"] = values == level
    for a in np.unique(sex):
        for b in np.unique(age):
            key = f"{call('sex')}={call(str(a))} & age={call(str(b))}"
            slices[f"{call('sex')}*age", key] = (sex == a) & (age == b)

    rows: list[dict[str, Any]] = []
    power: list[dict[str, Any]] = []

    def rate(
        variant: str, metric: str, by: str, event: Any, given: np.ndarray, rest: np.ndarray,
        m: int, family: str, **where: str,
    ) -> None:  # fmt: skip
        b = event(baseline_prediction)[given].astype(float)
        c = event(predictions[variant])[given].astype(float)
        size = len(b)
        row: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS)
        row |= {"variant": variant, "metric": metric, "by": by, "scope": "model", "n": size}
        row |= {"aggregation": "seeds_first", "n_seeds_baseline": 1, "n_seeds_compressed": 1}
        row |= {"family": family, "n_family": m, "status": "ok", "interval": "tango", **where}
        if size == 0:
            row["status"] = "not_estimable: no examples"
        else:
            row["baseline"], row["compressed"] = b.mean(), c.mean()
            row["baseline_low"], row["baseline_high"] = _wilson(b.sum(), size)
            row["compressed_low"], row["compressed_high"] = _wilson(c.sum(), size)
        if 0 < size < 10:
            row["status"] = "small_group: n < 10"
        elif size:
            d = c - b
            shift, se = d.mean(), math.sqrt((d.var() + 1 / size) / size)
            z = 1.96 + 0.25 * math.log(max(m, 1))
            row |= {"shift": shift, "ci_low": shift - 1.96 * se, "ci_high": shift + 1.96 * se}
            row |= {"sim_low": shift - z * se, "sim_high": shift + z * se}
            row["p_value"] = _p_of(shift / se)
            row["p_adjusted"] = min(1.0, m * row["p_value"])
            reach = shift - (z - 0.3) * se  # one side needs less than two
            row |= {"equivalent": shift - z * se > -MARGIN and shift + z * se < MARGIN}
            row |= {"loss_ruled_out": reach > -MARGIN, "churn": abs(d).mean()}
            if len(rest) and by in ("class", "group") and rest.any():
                e = event(predictions[variant])[rest].astype(float)
                other = (e - event(baseline_prediction)[rest]).mean()
                row |= {"excess_shift": shift - other, "excess_low": shift - other - 1.96 * se}
                row |= {"excess_high": shift - other + 1.96 * se}
                row["excess_p"] = _p_of((shift - other) / se)
                row |= {"excess_sim_low": shift - other - z * se}
                row |= {"excess_sim_high": shift - other + z * se}
                # At most 0.05 exactly where these limits exclude 0.
                row["excess_p_adjusted"] = min(1.0, row["excess_p"] * 0.05 / _p_of(z))
            if metric in ("accuracy", "recall") and by in ("class", "group"):
                need = 0.08 * (2.8 + 0.2 * math.log(m)) ** 2 / 0.02**2
                one = dict.fromkeys(POWER_COLUMNS)
                one |= {"variant": variant, "metric": metric, "by": by, "n": size, "n_family": m}
                one |= {
                    "discordance": 0.08,
                    "design_effect": 1.0,
                    "reference_shift": 0.02,
                    "status": "ok",
                    **where,
                }
                one["n_needed"] = math.ceil(need)
                one["largest_loss"] = max(0.0, -reach)
                detectable = 0.02 * math.sqrt(need / size)
                one["min_detectable_shift"] = math.nan if size < 60 else detectable
                power.append(one)
        rows.append(row)

    def value(variant: str, metric: str, by: str, **fields: Any) -> None:
        row: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS)
        row |= {"variant": variant, "metric": metric, "by": by, "scope": "model", "n": n}
        row |= {"status": "ok", **fields}
        rows.append(row)

    everyone = np.ones(n, dtype=bool)
    nobody = ~everyone
    for variant in variants:
        events = {
            "accuracy": lambda p: p == label,
            "error_rate": lambda p: p != label,
        }
        for metric, event in events.items():
            rate(variant, metric, "overall", event, everyone, nobody, 1, f"{metric}:overall")
            for (column, name), inside in slices.items():
                others = ~inside
                m, part = (6, "crossed") if "*" in column else (5, "single")
                rate(
                    variant, metric, "group", event, inside, others, m, f"{metric}:{part}",
                    group=name,
                )  # fmt: skip
        for metric, happens in (("fpr", False), ("fnr", True)):
            for (_, name), inside in [(("", ""), everyone), *slices.items()]:
                pairs = []
                for p in (baseline_prediction, predictions[variant]):
                    rates = []
                    for c in range(n_classes):
                        given = inside & ((label == c) == happens)
                        hit = (p[given] != c) if happens else (p[given] == c)
                        rates.append(hit.mean() if given.any() else math.nan)
                    pairs.append(float(np.mean(rates)))
                low = "not_estimable: a class without examples"
                value(
                    variant, metric, "group" if name else "overall", group=name or None,
                    n=int(inside.sum()), baseline=pairs[0], compressed=pairs[1],
                    shift=pairs[1] - pairs[0], status=low if math.isnan(pairs[1]) else "ok",
                )  # fmt: skip
        for c, class_name in enumerate(classes):
            own = label == c
            rate(
                variant, "recall", "class", lambda p: p == label, own, ~own, n_classes,
                "recall:class", **{"class": class_name},
            )  # fmt: skip
            rate(
                variant, "fnr", "class", lambda p: p != label, own, nobody, n_classes,
                "fnr:class", **{"class": class_name},
            )  # fmt: skip
            rate(
                variant, "fpr", "class", lambda p, c=c: p == c, ~own, nobody, n_classes,
                "fpr:class", **{"class": class_name},
            )  # fmt: skip
        value(
            variant, "kappa", "overall", baseline=0.92, compressed=0.9, shift=-0.02,
            ci_low=-0.03, ci_high=-0.01, interval="percentile", p_value=0.001, p_adjusted=0.002,
        )  # fmt: skip
        value(variant, "cev_pp", "overall", compressed=3.2, debiased=1.1, p_value=0.2)
        value(
            variant, "heterogeneity", "grouping", group=call("sex"), compressed=5.1,
            p_value=0.0005, p_adjusted=0.0015,
        )  # fmt: skip
        value(
            variant, "heterogeneity", "grouping", group="age", compressed=0.8,
            p_value=0.4, p_adjusted=0.4,
        )  # fmt: skip
        value(
            variant, "heterogeneity", "grouping", group=f"{call('sex')}*age", compressed=None,
            status="not_estimable: one level",
        )  # fmt: skip
        value(
            variant, "worst_group", "grouping", group=call("sex"), level=call("Female"),
            baseline=0.93, compressed=0.88, shift=-0.05, ci_low=-0.07, ci_high=-0.03,
        )  # fmt: skip

    confusion = []
    reliability = []
    everything = {"dense": baseline_prediction, **predictions}
    for variant, answers in everything.items():
        pairs_of = pd.crosstab(label, answers)
        for i, row in pairs_of.iterrows():
            for j, k in row.items():
                if k:
                    confusion.append((variant, "0", None, classes[i], classes[j], int(k)))
        if with_scores:
            score = np.clip(rng.beta(6, 1, size=n), 0, 1)
            for definition in ("ece", "ece_top_label"):
                for b in range(10):
                    inside = (score >= b / 10) & (score < (b + 1) / 10)
                    if inside.any():
                        mean, hit = score[inside].mean(), (answers == label)[inside].mean()
                        share = inside.mean() * abs(mean - hit)
                        reliability.append(
                            (variant, "0", None, definition, None, b, b / 10, (b + 1) / 10,
                             int(inside.sum()), mean, hit, share, 0.01, mean - hit)
                        )  # fmt: skip
    data = [("test", None, "overall", None, None, n, 1.0)]
    data += [
        ("test", None, "class", None, name, int((label == c).sum()), float((label == c).mean()))
        for c, name in enumerate(classes)
    ]
    concentration = [
        (variants[0], None, call("sex"), call("Female"), 1200, 0.3, 70, 12, 0.7, 0.3, 0.35),
        (variants[0], None, "cluster", "top 1 %", 40, 0.01, 4, 1, 0.04, 0.02, 0.03),
    ]
    groupings = (call("sex"), "age", f"{call('sex')}*age")
    results = frame(rows, RESULT_COLUMNS)
    return AuditResult(
        baseline="dense",
        variants=variants,
        classes=classes,
        positive=None,
        tasks=(),
        groupings=groupings,
        n_examples=n,
        results=results,
        lead=lead_of(results, groupings),
        per_seed=pd.DataFrame(
            [(v, "0", None, "accuracy", "overall", None, None, n, 0.93) for v in everything],
            columns=["variant", "seed", "task", "metric", "by", "group", "class", "n", "value"],
        ),
        confusion=pd.DataFrame(
            confusion, columns=["variant", "seed", "task", "label", "prediction", "count"]
        ),
        reliability=pd.DataFrame(
            reliability,
            columns=[
                "variant",
                "seed",
                "task",
                "definition",
                "group",
                "bin",
                "low",
                "high",
                "n",
                "mean_score",
                "mean_outcome",
                "contribution",
                "expected_if_calibrated",
                "calibration_in_the_large",
            ],
        ),
        data=pd.DataFrame(data, columns=["split", "task", "by", "group", "class", "n", "share"]),
        power=frame(power, POWER_COLUMNS),
        concentration=pd.DataFrame(
            concentration,
            columns=[
                "variant",
                "task",
                "column",
                "part",
                "n",
                "share_examples",
                "lost",
                "gained",
                "share_lost",
                "share_gained",
                "share_lost_poisson",
            ],
        ),
        group_error=pd.DataFrame(
            columns=[
                "variant",
                "task",
                "group",
                "error",
                "excess_shift",
                "corrected_low",
                "corrected_high",
            ],
        ),
        notes=("Column 'notes' was not used: 4,000 values.", f"Group {call('Other')} is small."),
        provenance=Provenance(
            version="0.1.0",
            command="fairweight audit dense.csv int8.csv",
            created="2026-11-03T10:20:30Z",
            inputs=({"name": "dense.csv", "sha256": "ab" * 32, "rows": n},),
            options={"alpha": 0.05, "n_boot": 2000, "correction": "holm", "min_group": 10},
        ),
    )


def frame(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows as a frame whose columns have the types of the contract."""
    made = pd.DataFrame(rows, columns=list(columns))
    for column in columns:
        if column in TEXT_COLUMNS:
            made[column] = made[column].astype("str")
        elif column in INTEGER_COLUMNS:
            made[column] = made[column].astype("Int64")
        elif column in BOOLEAN_COLUMNS:
            made[column] = made[column].astype("boolean")
        else:
            made[column] = made[column].astype(float)
    return made


WIDER = 1.15  # limits of the lead beside those of a family


def lead_of(rows: pd.DataFrame, groupings: tuple[str, ...]) -> pd.DataFrame:
    """The lead that belongs to results: limits a little wider than those of the families.

    p is at most 0.05 exactly where the limits exclude 0.
    """
    made: list[dict[str, Any]] = []
    known = rows[(rows["status"] == "ok") & rows["family"].notna()]
    confirmatory = (known["metric"] == "accuracy") & known["by"].isin(["overall", "group"])
    confirmatory |= (known["metric"] == "recall") & (known["by"] == "class")
    by_length = sorted(groupings, key=lambda name: -name.count("*"))
    for row in known[confirmatory].to_dict("records"):
        group = row["group"] if isinstance(row["group"], str) else None
        column = group and next(
            name
            for name in by_length
            if group.startswith(f"{name.split('*')[0]}=") and (" & " in group) == ("*" in name)
        )
        for quantity, value, low, high in (
            ("shift", "shift", "sim_low", "sim_high"),
            ("excess", "excess_shift", "excess_sim_low", "excess_sim_high"),
        ):
            estimate = row[value]
            if math.isnan(estimate):
                continue
            ends = [estimate + WIDER * (row[end] - estimate) for end in (low, high)]
            half = ends[1] - estimate if estimate < 0 else estimate - ends[0]
            z = 3.2
            p = min(1.0, _p_of(z * estimate / half) * 0.05 / _p_of(z)) if half > 0 else 1.0
            one = {name: row[name] for name in ("variant", "task", "scope", "by", "n")}
            one |= {"column": column, "group": group, "class": row["class"], "quantity": quantity}
            one |= {"estimate": estimate, "low": ends[0], "high": ends[1], "p_lead": p}
            made.append(one | {"n_tests": 43})
    lead = pd.DataFrame(made, columns=list(LEAD_COLUMNS))
    text = ("variant", "task", "scope", "by", "column", "group", "class", "quantity")
    lead = lead.astype({**dict.fromkeys(text, "str"), "n": "Int64", "n_tests": "Int64"})
    return lead.astype(dict.fromkeys(("estimate", "low", "high", "p_lead"), float))


def edited(result: AuditResult, where: pd.Series, **values: object) -> AuditResult:
    """The same audit with other values in some rows, and the lead that belongs to them."""
    rows = result.results.copy()
    for column, value in values.items():
        rows.loc[where, column] = value
    return replace(result, results=rows, lead=lead_of(rows, result.groupings))


def of_version_0_1_0(result: AuditResult) -> AuditResult:
    """The same audit as version 0.1.0 would have stored it: without a lead and its columns."""
    later = ["excess_sim_low", "excess_sim_high", "equivalent", "loss_ruled_out", "churn"]
    rows = result.results.copy()
    for column in later:
        rows[column] = pd.array([None] * len(rows), dtype="Float64").astype(rows[column].dtype)
    power = result.power.assign(largest_loss=np.nan)
    return replace(result, results=rows, power=power, lead=result.lead.iloc[:0])


def with_corrected_excess(rows: pd.DataFrame) -> pd.DataFrame:
    """Holm's correction of the excess within each family of scope `method`."""
    rows = rows.copy()
    tested = rows[rows["excess_p"].notna() & rows["family"].notna() & (rows["status"] == "ok")]
    tested = tested[tested["scope"] == "method"]
    for _, family in tested.groupby(["variant", "scope", "family"]):
        rows.loc[family.index, "excess_p_adjusted"] = holm(family["excess_p"])
    return rows


MEMBERS = 6


def _with_cev(rows: pd.DataFrame) -> pd.DataFrame:
    """CEV and SDE of every variant, as the engine gives them; nothing is left of the first CEV."""
    made: list[dict[str, Any]] = []
    for i, variant in enumerate(rows["variant"].unique()):
        for metric, size in (("cev", 40.0), ("sde", 5.0)):
            row: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS)
            row |= {"variant": variant, "metric": metric, "by": "overall", "scope": "model"}
            row |= {"n": 4000, "compressed": size * (i + 1), "ci_low": 0.0, "status": "ok"}
            row |= {"ci_high": 1.5 * size * (i + 1), "p_value": 0.01}
            row["debiased"] = 0.7 * size * i if i else None
            made.append(row)
    return pd.concat([rows, frame(made, RESULT_COLUMNS)], ignore_index=True)


def _with_precision(rows: pd.DataFrame, single: AuditResult) -> pd.DataFrame:
    """Precision of every class, counted from the confusion matrices, and an AUC."""
    counts = single.confusion.pivot_table(
        index=["variant", "prediction"], columns="label", values="count", fill_value=0
    )
    made: list[dict[str, Any]] = []
    for variant in single.variants:
        row: dict[str, Any] = dict.fromkeys(RESULT_COLUMNS)
        row |= {"variant": variant, "scope": "model", "status": "ok", "interval": "percentile"}
        auc = {"baseline": 0.98, "compressed": 0.96, "shift": -0.02, "ci_low": -0.03}
        auc |= {"compressed_low": 0.95, "compressed_high": 0.97, "ci_high": -0.01}
        made.append(row | auc | {"metric": "auc", "by": "overall", "n": single.n_examples})
        for name in single.classes:
            sides = [counts.loc[model, name] for model in (single.baseline, variant)]
            before, after = (float(side[name] / side.sum()) for side in sides)
            ends = {"ci_low": after - before - 0.02, "ci_high": after - before + 0.02}
            ends |= {"sim_low": after - before - 0.03, "sim_high": after - before + 0.03}
            ends |= {"baseline_low": before - 0.02, "baseline_high": before + 0.02}
            ends |= {"compressed_low": after - 0.02, "compressed_high": after + 0.02}
            values = {"baseline": before, "compressed": after, "shift": after - before}
            of = {"metric": "precision", "by": "class", "class": name, "n": int(sides[1].sum())}
            made.append(row | ends | values | of)
    return pd.concat([rows, frame(made, RESULT_COLUMNS)], ignore_index=True)


def populations(single: AuditResult, *, members: int = MEMBERS, seed: int = 5) -> AuditResult:
    """The same audit as if each variant were a population: rows of both scopes, noise floors.

    The limits of scope `method` are half as wide again, so that some who lose among these models
    do not lose beyond retraining; the floor of every row is 1.5 points, `matched` its shift.
    """
    rng = np.random.default_rng(seed)
    model = _with_precision(_with_cev(single.results), single)
    model = model.assign(n_seeds_baseline=members, n_seeds_compressed=members)
    for column in ("n_seeds_baseline", "n_seeds_compressed"):
        model[column] = model[column].astype("Int64")
    if members >= 5:
        known = model["shift"].fillna(model["compressed"])
        model["matched"], model["noise_floor"] = known.abs(), known.notna() * 0.015
        model.loc[known.isna(), "noise_floor"] = np.nan
        model["p_retraining"] = known.notna() * 0.04
    method = model.assign(scope="method", interval="two-way t")
    for low, mid, high in (
        ("ci_low", "shift", "ci_high"),
        ("sim_low", "shift", "sim_high"),
        ("excess_low", "excess_shift", "excess_high"),
        ("excess_sim_low", "excess_shift", "excess_sim_high"),
    ):
        for end in (low, high):
            method[end] = method[mid] + 1.5 * (method[end] - method[mid])
    for p in ("p_value", "p_adjusted", "excess_p"):
        method[p] = (method[p] * 4).clip(upper=1.0)
    both = pd.concat([model, method], ignore_index=True)
    both["scope"] = both["scope"].astype("str")
    both = with_corrected_excess(both)
    seeds = []
    keys = ("task", "metric", "by", "group", "class", "n")
    of_rates = model[model["baseline"].notna() & model["by"].isin(["overall", "group", "class"])]
    for row in of_rates.to_dict("records"):
        first = row["variant"] == single.variants[0]
        for side in ("baseline", "compressed") if first else ("compressed",):
            variant = single.baseline if side == "baseline" else row["variant"]
            for member in range(members):
                drawn = row[side] + 0.005 * rng.standard_normal()
                seeds.append((variant, str(member), *(row[k] for k in keys), drawn))
    columns = ["variant", "seed", *keys, "value"]
    table = pd.DataFrame(
        [
            {"variant": v, "seed": s, "method": "gmp", "sparsity": level}
            for v, level in zip(single.variants, (0.5, 0.9), strict=True)
            for s in range(members)
        ]
    )
    return replace(
        single,
        results=both,
        lead=lead_of(both, single.groupings),
        per_seed=pd.DataFrame(seeds, columns=columns),
        variants_table=table,
        pairing=dict.fromkeys(single.variants, "parent"),
    )


def without_method(population: AuditResult, reason: str = "one baseline model") -> AuditResult:
    """The same with too few members: rows of scope `method` have estimates and no limits."""
    rows = population.results.copy()
    away = rows["scope"] == "method"
    gone = [c for c in rows.columns if c.endswith(("_low", "_high"))]
    gone += ["p_value", "p_adjusted", "excess_p", "excess_p_adjusted"]
    rows.loc[away, gone] = np.nan
    rows.loc[away, "status"] = f"not_estimable: {reason}"
    return replace(population, results=rows, lead=lead_of(rows, population.groupings))


@pytest.fixture(scope="session")
def population(result: AuditResult) -> AuditResult:
    return populations(result)


def binary(names: dict[str, str] | None = None) -> AuditResult:
    """Populations with two classes, the second positive, and a PPV ratio of every group."""
    both = populations(build(names, n_classes=2))
    rows = both.results
    ratios = rows[(rows["metric"] == "error_rate") & (rows["by"] == "group")].copy()
    ratios["metric"] = "ppv_ratio"
    for column in ("baseline", "compressed"):
        ratios[column] = 1 - ratios[column]
        low, high = ratios[f"{column}_low"], ratios[f"{column}_high"]
        ratios[f"{column}_low"], ratios[f"{column}_high"] = 1 - high, 1 - low
    rows = pd.concat([rows, ratios], ignore_index=True)
    columns = tuple(name for name in both.groupings if "*" not in name)
    return replace(both, results=rows, positive=both.classes[1], single_columns=columns)


@pytest.fixture(scope="session")
def binary_population() -> AuditResult:
    return binary()


@pytest.fixture(scope="session")
def hostile_binary_population() -> AuditResult:
    return binary({**HOSTILE, "1": HOSTILE["3"]})


@pytest.fixture(scope="session")
def make_population() -> Callable[..., AuditResult]:
    return populations


@pytest.fixture(scope="session")
def hostile_population(hostile: AuditResult) -> AuditResult:
    return populations(hostile)


@pytest.fixture(scope="session")
def no_method(population: AuditResult) -> AuditResult:
    return without_method(population)


@pytest.fixture(scope="session")
def make_result() -> Callable[..., AuditResult]:
    return build


@pytest.fixture(scope="session")
def result() -> AuditResult:
    return build()


@pytest.fixture(scope="session")
def hostile() -> AuditResult:
    return build(HOSTILE)


@pytest.fixture(scope="session")
def bare(result: AuditResult) -> AuditResult:
    """An audit with no groups, scores, power or confusion: every part must cope."""
    kept = result.results[
        result.results["by"].isin(["overall"]) & result.results["metric"].isin(["accuracy"])
    ]
    return replace(
        result,
        groupings=(),
        results=kept,
        lead=lead_of(kept, ()),
        confusion=result.confusion.iloc[:0],
        reliability=result.reliability.iloc[:0],
        power=result.power.iloc[:0],
        concentration=result.concentration.iloc[:0],
        per_seed=result.per_seed.iloc[:0],
        data=result.data.iloc[:0],
        notes=(),
    )


@pytest.fixture(scope="session")
def explained(population: AuditResult) -> AuditResult:
    """A population with every table of exemplars and explanations."""
    return with_explanations(population)


@pytest.fixture(scope="session")
def hostile_explained(hostile_population: AuditResult) -> AuditResult:
    return with_explanations(hostile_population, HOSTILE)
