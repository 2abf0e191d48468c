"""Made-up tables of exemplars and explanations: what the engine would put beside an audit."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names

WRITERS = 60
WAYS = (("modal", np.nan), ("taxicab", 90.0), ("taxicab", 95.0), ("taxicab", 99.0))
TERMS = ("Intercept", "sparsity", "imbalance", "class_entropy", "accuracy0")


def png(pixels: np.ndarray) -> str:
    """A grey image as a data URI."""
    height, width = pixels.shape
    raw = b"".join(b"\x00" + row.tobytes() for row in pixels.astype(np.uint8))

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def digit(tilt: float, size: int = 28) -> np.ndarray:
    """A bar that leans: column = tilt × row + intercept."""
    row, column = np.mgrid[:size, :size]
    middle = (size - 1) / 2
    inside = (abs(column - middle - tilt * (row - middle)) < 2.5) & (abs(row - middle) < 10)
    return np.where(inside, 255, 0)


def table(name: str, rows: list[dict[str, Any]], *more: str) -> pd.DataFrame:
    """Rows as a frame with the columns of the contract; what a row lacks is missing."""
    return pd.DataFrame(rows, columns=[*column_names(name), *more])


def explanations(audit: AuditResult, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Every table, for the variants, classes and groups of this audit."""
    call = lambda name: (names or {}).get(name, name)  # noqa: E731
    rng = np.random.default_rng(11)
    frames: dict[str, Any] = {
        **_exemplars(audit),
        **_images(audit),
        **_classes(),
        **_individuals(audit, call, rng),
        **_properties(audit, call),
        **_similarity(audit),
        **_attributes(audit),
        **_choice(audit),
        **_mitigations(audit, call),
    }
    return frames


def _attributes(audit: AuditResult) -> dict[str, pd.DataFrame]:
    """Three attributes, thresholds of the baseline, three settings and a backdoor."""
    shares = {"accuracy": 0.9, "balanced_accuracy": 0.85, "auc": 0.95, "uncertainty": 0.2,
              "tcb": 0.8, "ece": 0.05, "interrelation": 0.3,
              "worst_case_bias_amplification": 0.04}  # fmt: skip
    names = [audit.baseline, *audit.variants]
    names += [f"{audit.baseline}+thresholds", f"{audit.variants[0]}+thresholds"]

    def rows(task: str | None, more: float, **named: Any) -> list[dict[str, Any]]:
        found = []
        for i, variant in enumerate(names):
            base = {"variant": variant, "sparsity": 0.3 * i, "task": task, "n": 4000,
                    "n_members": 5, "status": "ok", **named}  # fmt: skip
            values = [(metric, None, middle) for metric, middle in shares.items()]
            values += [("bias_amplification", "sex", 0.02), ("bias_amplification", "age", 0.01)]
            for metric, category, middle in values:
                at = middle + more + 0.01 * i
                found.append(
                    {**base, "metric": metric, "category": category, "value": at, "low": at - 0.02,
                     "high": at + 0.02, "shift": 0.01 * i if i else np.nan,
                     "sim_low": 0.001 if i == 2 else -0.02, "sim_high": 0.04}
                )  # fmt: skip
        return found

    tasks = {"Smiling": 0.0, "Blond": 0.02, "Oval": 0.05}
    attributes = [row for task, more in tasks.items() for row in rows(task, more)]
    attributes += rows(None, 0.03)
    settings = [row for task, more in tasks.items() for row in rows(task, more, setting="joint")]
    settings += rows("Oval", 0.07, setting="single")
    marked = pd.DataFrame(rows("Blond", 0.2, setting="grayscale"))
    marked = marked[marked["metric"] == "bias_amplification"].assign(category="backdoor")
    return {
        "attributes": table("attributes", attributes),
        "settings": table("settings", [*settings, *marked.to_dict("records")]),
    }


def _choice(audit: AuditResult) -> dict[str, pd.DataFrame]:
    """Three objectives: the first variant is chosen, the last does not qualify."""
    names = [*audit.variants, audit.baseline]
    ranked, values = [], []
    for i, variant in enumerate(names):
        able = i < len(names) - 1
        held = {"p_best": 0.7 - 0.4 * i, "p_within_margin": 0.95 - 0.4 * i,
                "p_frontier": 0.9 - 0.4 * i, "bootstrap_best": 0.8,
                "bootstrap_frontier": 0.95, "in_best_set": i == 0, "rank": i + 1,
                "frontier": "within noise" if i else "frontier"}  # fmt: skip
        ranked.append({"variant": variant, "qualifies": able, "chosen": i == 0,
                       "tied": False, **(held if able else {})})  # fmt: skip
        for term, metric, aim, at in (("accuracy", "accuracy", "max", 0.9),
                                      ("sparsity", None, "max", 0.5),
                                      ("unfairness", "class_gap", "min", 0.1)):  # fmt: skip
            noisy = metric is not None
            values.append({"variant": variant, "term": term, "metric": metric, "aim": aim,
                           "value": at - 0.1 * i, "low": at - 0.1 * i - 0.02 if noisy else None,
                           "high": at - 0.1 * i + 0.02 if noisy else None})  # fmt: skip
    choice = table("choice", ranked).astype({"in_best_set": "boolean"})
    return {"choice": choice, "choice_values": table("choice_values", values)}


def _mitigations(audit: AuditResult, call: Any) -> dict[str, pd.DataFrame]:
    """Overrides at three budgets and a cascade at three thresholds, for everybody and by sex."""
    measures = (("accuracy", None, 0.9, 0.2), ("bias_amplification", call("sex"), 0.05, -0.2),
                ("worst_group_shift", call("sex"), -0.06, 0.3))  # fmt: skip
    overrides, cascade = [], []
    for i, variant in enumerate(audit.variants):
        for metric, group, before, slope in measures:
            start = before - 0.01 * i
            named = {"variant": variant, "metric": metric, "group": group, "n": 4000,
                     "n_tasks": 1, "status": "ok"}  # fmt: skip
            for source in ("dense", "human"):
                for budget in (0.0, 0.1, 0.2):
                    gain = slope * budget * (1.5 if source == "human" else 1.0)
                    overrides.append(
                        {**named, "source": source, "budget": budget,
                         "n_overridden": 4000 * budget, **_around(start, gain),
                         "random": start + gain / 4, "random_low": start + gain / 4 - 0.01,
                         "random_high": start + gain / 4 + 0.01, "beyond_random": 0.75 * gain,
                         "beyond_low": 0.75 * gain - 0.01, "beyond_high": 0.75 * gain + 0.01}
                    )  # fmt: skip
            for part, luck in (("choosing", 0.002), ("judging", 0.0)):
                for threshold, share in ((0.0, 0.0), (0.35, 0.1), (1.0, 1.0)):
                    cascade.append(
                        {**named, "part": part, "threshold": threshold, "share_deferred": share,
                         "cost_ms": 3.0 + 12.0 * share, "recommended": threshold == 0.35,
                         **_around(start, slope * share / 5 + luck)}
                    )  # fmt: skip
    return {
        "override_curves": table("override_curves", overrides),
        "cascade_curve": table("cascade_curve", cascade),
    }


def _around(start: float, gain: float) -> dict[str, float]:
    return {"value": start + gain, "low": start + gain - 0.01, "high": start + gain + 0.01,
            "change": gain, "change_low": gain - 0.01, "change_high": gain + 0.01}  # fmt: skip


def _similarity(audit: AuditResult) -> dict[str, pd.DataFrame]:
    points = [
        {"measure": "svcca", "block": block, "variant": variant, "distance": at * (1 + i),
         "floor": 0.8 * at, "cev": 40.0 * (i + 1), "sde": 4.0 * (i + 1), "accuracy": 0.9 - 0.02 * i,
         "sparsity": 0.5 + 0.4 * i}
        for block, at in (("block1", 0.05), ("logits", 0.12))
        for i, variant in enumerate(audit.variants)
    ]  # fmt: skip
    lines = [
        {"measure": "svcca", "block": block, "metric": metric, "n_variants": len(audit.variants),
         "status": "not_estimable: 2 variants, 4 are needed"}
        for block in ("block1", "logits")
        for metric in ("cev", "sde", "accuracy")
    ]  # fmt: skip
    return {
        "similarity_points": table("similarity_points", points),
        "similarity": table("similarity", lines),
    }


def _exemplars(audit: AuditResult) -> dict[str, pd.DataFrame]:
    counts, accuracy, enrichment = [], [], []
    groups = list(dict.fromkeys(audit.results["group"].dropna()))[:8]
    groups = [g for g in groups if "=" in g]
    for i, variant in enumerate(audit.variants):
        for kind, percentile in WAYS:
            n = 40 * (i + 1) if kind == "modal" else round(40 * (100 - percentile))
            way = {"variant": variant, "kind": kind, "percentile": percentile, "status": "ok"}
            counts.append(
                {**way, "n_examples": 4000, "n_asked": n, "n_exemplars": n, "share": n / 4000,
                 "n_baseline_members": 6, "n_compressed_members": 6, "floor": 0.0113,
                 "floor_low": 0.0075, "floor_high": 0.0155, "matched": 0.011 * (i + 1),
                  "p_retraining": 0.4 if i == 0 else 0.004,
                 "uncertain_share": 0.7, "uncertain_share_others": 0.1}
            )  # fmt: skip
            for part, size, before, after in (
                ("exemplars", n, 0.55, 0.5 - 0.05 * i),
                ("others", 4000 - n, 0.95, 0.94),
                ("all", 4000, 0.93, 0.91),
            ):
                accuracy.append(
                    {**way, "part": part, "n": size,
                     "floor": 0.6 if part == "exemplars" else np.nan, "baseline": before,
                     "baseline_low": before - 0.03, "baseline_high": before + 0.03,
                     "compressed": after, "compressed_low": after - 0.03,
                     "compressed_high": after + 0.03, "shift": after - before,
                     "shift_low": after - before - 0.02, "shift_high": after - before + 0.02}
                )  # fmt: skip
            for j, group in enumerate(groups):
                small = j == len(groups) - 1
                odds = np.nan if small else 0.6 + 0.4 * j
                enrichment.append(
                    {**way, "by": "group", "group": group, "n": 4 if small else 500,
                     "n_exemplars": 1 if small else 30 + i, "share_exemplars": 0.02 * (j + 1),
                     "share_test": 0.015 * (j + 1), "share_train": 0.01 * (j + 1),
                     "odds_ratio": odds, "or_low": odds * 0.7, "or_high": odds * 1.4,
                     "retraining_odds_ratio": 1.1, "retraining_low": 0.9, "retraining_high": 1.3,
                     "ratio": odds / 1.1, "ratio_low": odds / 1.1 * 0.8,
                     "ratio_high": odds / 1.1 * 1.25, "p_value": 0.2,
                     "p_adjusted": 0.001 if j == 3 else 0.8,
                     "status": "small_group: n < 10" if small else "ok"}
                )  # fmt: skip
    overlap = [
        {"kind": "modal", "first": audit.variants[0], "second": audit.variants[1], "n_first": 40,
         "n_second": 80, "n_both": 20, "jaccard": 0.2, "expected_both": 0.8}
    ]  # fmt: skip
    risk = [
        {"variant": variant, "score": "one minus the top score", "auc": 0.83, "auc_low": 0.8,
         "auc_high": 0.86, "n": 4000, "n_exemplars": 40, "status": "ok"}
        for variant in audit.variants
    ]  # fmt: skip
    return {
        "exemplar_counts": table("exemplar_counts", counts),
        "exemplar_accuracy": table("exemplar_accuracy", accuracy),
        "exemplar_overlap": table("exemplar_overlap", overlap),
        "enrichment": table("enrichment", enrichment),
        "risk": table("risk", risk),
    }


def _images(audit: AuditResult) -> dict[str, pd.DataFrame]:
    rows = []
    first, second = audit.classes[3 % len(audit.classes)], audit.classes[0]
    for v, variant in enumerate(audit.variants):
        for i, part in enumerate(
            ["exemplar"] * 3 + ["non-exemplar"] * 3 + ["shared"] * 2 + ["one-only"] * 3
        ):
            same = part == "non-exemplar"
            rows.append(
                {"variant": variant, "part": part, "label": first if i % 2 else second,
                 "example_id": f"e{i}" if part == "shared" else f"{v}-{i}",
                 "modal_baseline": first, "modal_compressed": first if same else second,
                 "image": png(digit(-0.5 + 0.1 * i + 0.05 * v))}
            )  # fmt: skip
    tilt = [{"image": png(digit(-0.4)), "width": 28, "height": 28, "slope": -0.4,
             "intercept": 13.5 + 0.4 * 13.5, "example_id": "q17"}]  # fmt: skip
    return {
        "exemplar_images": table("exemplar_images", rows),
        "tilt_example": table("tilt_example", tilt),
    }


def _classes() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(2)
    accuracy = np.clip(rng.normal(0.8, 0.15, size=400), 0, 1)
    predicted = 0.2 + 0.75 * accuracy + 0.03 * rng.standard_normal(400)
    rows = [
        {"dataset": "mnist", "model": "lenet", "weight_treatment": "rewind",
         "pruning_technique": "l1", "sparsity": 0.5, "seed": "0", "root": "mnist/lenet/0",
         "class": str(i % 10), "accuracy": float(a), "accuracy0": 0.9, "accuracy0_quartile": 2.0,
         "imbalance": 0.01, "class_entropy": 1.5, "n": 100}
        for i, a in enumerate(accuracy)
    ]  # fmt: skip
    coefficients = []
    for fit, wide in (("ols-hac", 1.0), ("ols-linear", 1.2), ("ols-cluster", 3.0),
                      ("glm-cluster", 3.0)):  # fmt: skip
        for i, term in enumerate(TERMS):
            value, error = (0.5, -0.2, 1.2429, -0.03, 0.7)[i], 0.02 * wide * (i + 1)
            one_tailed = fit == "ols-hac" and term in ("imbalance", "class_entropy")
            coefficients.append(
                {"fit": fit, "term": term, "coefficient": value, "std_error": error,
                 "statistic": value / error, "p_value": 0.003, "low": value - 2 * error,
                 "high": value + 2 * error, "p_one_tailed": 0.0015 if one_tailed else np.nan,
                 "tail": {"imbalance": "greater", "class_entropy": "less"}[term]
                 if one_tailed else "", "status": "ok"}
            )  # fmt: skip
    fits = [{"fit": "ols-hac", "n": 400, "n_parameters": 5, "df_residual": 395, "r2": 0.78,
             "r2_adjusted": 0.77, "condition_number": 40.0, "n_roots": 12,
             "f_against_linear": 3.4, "f_p": 0.01, "status": "ok"}]  # fmt: skip
    residuals = pd.DataFrame(
        {"row": np.arange(400), "predicted": predicted, "residual": accuracy - predicted}
    )
    return {
        "class_rows": table("class_rows", rows),
        "class_coefficients": table("class_coefficients", coefficients),
        "class_fits": table("class_fits", fits),
        "class_residuals": residuals[list(column_names("class_residuals"))],
    }


def _individuals(
    audit: AuditResult, call: Any, rng: np.random.Generator
) -> dict[str, pd.DataFrame]:
    people, fits = [], []
    groups = [call("Female"), call("Male"), call("Other")]
    tilt = rng.normal(-0.2, 0.2, size=WRITERS)
    for v, variant in enumerate(audit.variants):
        before = np.clip(rng.normal(0.97, 0.02, size=WRITERS), 0.8, 1.0)
        shift = -0.05 * (v + 1) - 0.3 * abs(tilt) + 0.04 * rng.standard_normal(WRITERS)
        for i in range(WRITERS):
            n, after = 34 + i, float(np.clip(before[i] + shift[i], 0, 1))
            near = -0.1 + 0.5 * (after - before[i] + 0.1)
            people.append(
                {"variant": variant, "individual": f"w{i} {groups[i % 3]}", "group": groups[i % 3],
                 "n": n, "baseline": before[i], "baseline_shrunk": 0.97 + 0.3 * (before[i] - 0.97),
                 "baseline_low": 0.9, "baseline_high": 0.99, "compressed": after,
                 "compressed_shrunk": 0.97 + near, "compressed_low": 0.91 + near,
                 "compressed_high": 1.01 + near, "lost": 5, "gained": 1, "shift": after - before[i],
                 "shift_shrunk": near, "shift_low": near - 0.06, "shift_high": near + 0.06,
                 "rank": i + 1, "tilt": tilt[i], "abs_tilt": abs(tilt[i]),
                 "ink": 30 + 5 * rng.standard_normal(),
                 "distance": 1700 + 100 * rng.standard_normal(), call("stroke_width"): 2.0}
            )  # fmt: skip
        for side, slope in (("baseline", -0.02), ("compressed", -0.3)):
            for group in [*groups, None]:
                fits.append(
                    {"variant": variant, "side": side, "group": group, "property": "abs_tilt",
                     "slope": slope - 0.01 * v, "slope_se": 0.05, "intercept": 0.97,
                     "intercept_se": 0.004, "r2": 0.2, "n": 20, "status": "ok"}
                )  # fmt: skip
    more = ("tilt", "abs_tilt", "ink", "distance", call("stroke_width"))
    return {
        "individuals": table("individuals", people, *more),
        "individual_fits": table("individual_fits", fits),
    }


def _units(audit: AuditResult, call: Any) -> pd.DataFrame:
    """Of 12 points that women lose, 9 come back with the first layer; 1 with the other."""
    sex = f"{call('sex')}={call('Female')}"
    rows = []
    for unit, rank, back, out in ((call("stem"), 1, 0.09, True), (call("fc"), 2, 0.01, False)):
        for group, part in ((None, 0.3), (sex, 1.0)):
            row: dict[str, Any] = {"unit": unit, "rank": rank, "group": group, "scope": "model"}
            row |= {"n": 600, "shift": -0.12 * part, "status": "ok", "bytes_saved": 1200 * rank}
            row |= {"share_of_saving": 0.012 * rank, "latency_saved_ms": 0.25 if out else None}
            for name, value in (("recovered", back), ("shift_alone", -back), ("contrast", 0.08)):
                row |= {name: value * part, f"{name}_low": value * part - 0.04}
                row[f"{name}_high"] = value * part + 0.04
            rows.append(row | {"stands_out": out and group is not None})
    made = [
        {"variant": variant, **row, "recovered": row["recovered"] - 0.001 * place}
        for place, variant in enumerate(audit.variants)
        for row in rows
    ]
    return table("sensitivity", made)


def _properties(audit: AuditResult, call: Any) -> dict[str, pd.DataFrame]:
    properties, slices, bias = [], [], []
    for i, variant in enumerate(audit.variants):
        properties += [
            {"variant": variant, "property": "abs_tilt", "kind": "per standard deviation",
             "n": 3700, "effect": 0.4, "low": 0.25, "high": 0.55, "p_value": 0.0001,
             "p_adjusted": 0.0004, "mean_lost": 0.31, "mean_kept": 0.2, "status": "ok"},
            {"variant": variant, "property": "ink", "kind": "per standard deviation", "n": 3700,
             "effect": 0.02, "low": -0.1, "high": 0.14, "p_value": 0.7, "p_adjusted": 0.7,
             "mean_lost": 30.1, "mean_kept": 30.0, "status": "ok"},
        ]  # fmt: skip
        bias.append(
            {"variant": variant, "n_attributes": 10, "slope": 1.1, "slope_low": 0.9,
             "slope_high": 1.3, "intercept": 0.0, "r2": 0.8, "r2_low": 0.5, "r2_high": 0.9,
             "status": "ok"}
        )  # fmt: skip
        if i == 0:
            sex = f"{call('sex')}={call('Female')}"
            slices.append(
                {"variant": variant, "slice": sex, "columns": call("sex"), "n": 1200,
                 "n_discovery": 600, "excess_discovery": -0.08, "p_discovery": 1e-6,
                 "p_adjusted": 1e-5, "n_confirmation": 600, "excess": -0.05,
                 "excess_low": -0.08, "excess_high": -0.02, "p_confirmation": 0.001,
                 "status": "confirmed"}
            )  # fmt: skip
    return {
        "sensitivity": _units(audit, call),
        "example_properties": table("example_properties", properties),
        "slices": table("slices", slices),
        "bias_regression": table("bias_regression", bias),
    }


def explained(audit: AuditResult, names: Mapping[str, str] | None = None) -> AuditResult:
    """A population with every table, the gap between classes, and counts of the training data."""
    rows = audit.results[
        (audit.results["metric"] == "accuracy") & (audit.results["by"] == "overall")
    ]
    gaps = rows.assign(
        metric="class_gap", baseline=0.06, baseline_low=0.04, baseline_high=0.09,
        compressed=rows["compressed"] / 6, compressed_low=0.1, compressed_high=0.2,
        shift=0.09, noise_floor=0.02,
    )  # fmt: skip
    seeds = audit.per_seed
    own = seeds[(seeds["metric"] == "accuracy") & (seeds["by"] == "overall")]
    data = audit.data
    classes = data[data["by"] == "class"]
    groups = list(dict.fromkeys(g for g in audit.results["group"].dropna() if "=" in g))
    made = [
        {"split": split, "task": None, "by": by, "group": group, "class": cls,
         "n": 40 * (i + 1), "share": 0.01 * (i + 1)}
        for split in ("test", "train")
        for i, group in enumerate(groups)
        for by, cls in (("group", None), ("group*class", audit.classes[0]))
    ]  # fmt: skip
    trained = classes.assign(split="train", n=classes["n"] * 5)
    return replace(
        audit,
        results=pd.concat([audit.results, gaps], ignore_index=True),
        per_seed=pd.concat(
            [seeds, own.assign(metric="class_gap", value=own["value"] / 6)], ignore_index=True
        ),
        data=pd.concat([data, trained, pd.DataFrame(made)], ignore_index=True),
        explanations=explanations(audit, names),
    )
