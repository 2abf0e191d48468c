"""Run the grid of where.toml, and write docs/results/where.md from what was measured.

    python docs/results/where.py run STORE DATA [--only METHOD] [--budget SECONDS]
    python docs/results/where.py tensors STORE DATA [--only METHOD]
    python docs/results/where.py peer STORE DATA
    python docs/results/where.py remedies STORE DATA
    python docs/results/where.py page

STORE holds a folder per network, as `train` wrote it; networks that are not there are named and
left out. Predictions are kept in STORE, so that an interrupted run goes on. `run`, `peer` and
`remedies` add what they find to where.json; `peer` exports what where_nncf.py needs, and judges
what that made. `page` writes the page from where.json alone.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
GRID, FACTS, PAGE = (HERE / f"where.{kind}" for kind in ("toml", "json", "md"))
DRAWS = 2000
COLLAPSED = 0.05  # a class is hardly answered any more: under this share of its frequency


def grid() -> dict[str, Any]:
    return tomllib.loads(GRID.read_text(encoding="utf-8"))


def facts() -> dict[str, Any]:
    return json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.is_file() else {}


def remember(path: Sequence[str], found: Any) -> None:
    """Add numbers to where.json."""
    held = facts()
    place = held
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = found
    FACTS.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")


# What is computed.


def run(store: Path, data: Path, only: str | None, budget: float | None) -> None:
    """Every network that is there, every method: units, claims, mixed precision."""
    import fairweight as fw
    from fairweight.lab.artifacts import load
    from fairweight.lab.compression.registry import spec_from
    from fairweight.lab.partition import prepare
    from fairweight.lab.training import variant_name
    from fairweight.precision import audited_units, mixed_precision
    from fairweight.specs.data import Data
    from fairweight.specs.toml import as_spec

    asked = grid()
    for network in asked["network"]:
        model = store / network["model"]
        if not model.is_dir():
            print(f"{network['name']}: no model in {model.name}, left out")
            continue
        prepared = prepare(as_spec(Data, load(model)[1].data, "The data", "name"), data)
        judged, chosen_on = judged_and_chosen(prepared, network)
        for method in network["methods"]:
            called = variant_name(method["method"], spec_from(method))
            if only not in (None, called):
                continue
            begun = time.process_time()
            made = fw.lab.sensitivity(
                model, method, judged, calibration=prepared.train, unit=network["unit"],
                task=network.get("task"), store=store / "units", latency=False, budget=budget,
                announce=print,
            )  # fmt: skip
            groups = None if network["groups"] == ["class"] else network["groups"]
            audit = audited_units(made, groups=groups)
            audit.save(store / f"audit-{network['name']}-{called}", overwrite=True)
            found = described(audit, made)
            found["sensitivity_cpu_seconds"] = round(time.process_time() - begun)
            found["alone"] = len(made.alone)
            remember([network["name"], called], found)
            begun = time.process_time()
            of_classes = network["mixed"] == ["class"]
            rule = (
                {"metric": "recall", "by": "class"}
                if of_classes
                else {"metric": "accuracy", "by": "group"}
            )
            rule["margin"] = asked["mixed"]["margin"]
            place = store / f"mixed-{network['name']}-{called}.onnx"
            sizes = found["bytes"]
            limit = sizes["full"] + asked["mixed"]["returned"] * (sizes["float"] - sizes["full"])
            mixed = mixed_precision(
                model, method, {"schema": 1, "rule": [rule]}, place, validation=chosen_on,
                judged=judged, groups=None if of_classes else network["mixed"],
                task=network.get("task"), calibration=prepared.train,
                unit=network["unit"], most_bytes=int(limit), store=store / "units",
            )  # fmt: skip
            if not hasattr(mixed, "float_units"):
                remember([network["name"], called, "mixed"], {"refused": str(mixed.outcome)})
                continue
            mixed.audit.save(place.with_suffix(""), verdict=mixed.verdict, overwrite=True)
            remember(
                [network["name"], called, "mixed"], of_mixed(mixed, time.process_time() - begun)
            )


def judged_and_chosen(prepared: Any, network: Mapping[str, Any]) -> tuple[Any, Any]:
    """The examples that judge, and those that mixed precision is chosen on; none is in both."""
    test = prepared.part("test")
    if network["chosen_on"] != "half of test":
        return test, prepared.part(network["chosen_on"])
    order = np.random.default_rng(26).permutation(len(test))
    middle = len(order) // 2
    return test.select(np.sort(order[:middle])), test.select(np.sort(order[middle:]))


def described(audit: Any, made: Any) -> dict[str, Any]:
    """The audit of the full compression, its units, and two claims about them."""
    from fairweight.auditing.sensitivity import masks_of
    from fairweight.precision import class_texts, group_texts

    result = audit.result
    lead = result.lead[result.lead["quantity"] == "shift"]
    kind = "group" if result.groupings else "class"  # classes are the groups where there are none
    shown = [
        {"group": {"group": row["group"], "class": f"class={row['class']}"}.get(row["by"]),
         "shift": row["estimate"], "low": row["low"], "high": row["high"]}
        for row in lead.to_dict("records") if row["high"] < 0 and row["by"] in (kind, "overall")
    ]  # fmt: skip
    table = audit.explanations["sensitivity"]
    ok = table[table["status"] == "ok"]
    groups = ok.dropna(subset=["group"]).drop_duplicates("group").set_index("group")["shift"]
    labels = made.examples.labels
    masks = masks_of(result, group_texts(made.examples), class_texts(made.examples)[labels])
    base, full = made.baseline == labels, made.full == labels
    shifts = {name: float((full[mask].astype(float) - base[mask]).mean())
              for name, mask in masks.items() if mask.sum() >= 20}  # fmt: skip
    losing = {row["group"]: row["shift"] for row in shown if row["group"]}
    worst = min(losing or shifts, key=lambda name: (losing or shifts)[name])
    keep = ("unit", "rank", "recovered", "recovered_low", "recovered_high", "contrast",
            "contrast_low", "contrast_high", "shift_alone", "stands_out", "share_of_saving",
            "bytes_saved")  # fmt: skip
    rows = [
        {name: plain(row[name]) for name in keep}
        for row in ok[ok["group"] == worst].to_dict("records")
    ]
    half = float(groups[worst])
    best = max(rows, key=lambda row: row["recovered"])
    out = [row for row in rows if row["stands_out"] and row["recovered"] >= 0.5 * -half]
    upper = max(row["recovered_high"] for row in rows)
    concentrated = "yes" if out else "no" if upper < 0.5 * -half else "cannot tell"
    overall = audit.overall[audit.overall["metric"] == "accuracy"].iloc[0]
    names = class_texts(made.examples)
    times = np.bincount(labels)
    given = np.bincount(made.full, minlength=len(times))[: len(times)]
    rarest = int(np.argmin(given / times))
    return {
        "n": len(labels),
        "hardly_answered": {"class": str(names[rarest]), "given": int(given[rarest]),
                            "times": int(times[rarest])},
        "accuracy": {"baseline": float(base.mean()), "full": float(full.mean()),
                     "shift": float(overall["shift"]), "low": float(overall["ci_low"]),
                     "high": float(overall["ci_high"])},
        "shown_to_lose": [{k: plain(v) for k, v in row.items()} for row in shown],
        "worst": {"group": worst, "n": int(masks[worst].sum()), "shift": shifts[worst],
                  "shown": worst in losing, "judged_shift": half},
        "stand_out": sorted({f"{row['unit']} for {plain(row['group']) or 'everyone'}"
                             for row in ok[ok["stands_out"]].to_dict("records")}),
        "units": rows,
        "concentrated": {"answer": concentrated, "best": best["unit"]},
        "groups_differ": groups_differ(made, masks, shifts),
        "bytes": {"float": made.float_bytes, "full": made.float_bytes - made.saved_bytes[""]},
    }  # fmt: skip


def plain(value: Any) -> Any:
    """A number or text that JSON has; what is undefined is null."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Mean ranks, ties shared."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place], dtype=np.float64)


def rank_correlation(one: NDArray[Any], two: NDArray[Any]) -> float:
    a, b = ranks(np.asarray(one)), ranks(np.asarray(two))
    if a.std() == 0 or b.std() == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def groups_differ(
    made: Any, masks: Mapping[str, NDArray[np.bool_]], shifts: Mapping[str, float]
) -> dict[str, Any]:
    """Whether what comes back is ranked otherwise in two groups than in mixtures of them."""
    labels = made.examples.labels
    full = made.full == labels
    back = np.array([(made.without[one] == labels).astype(float) - full for one in made.without])
    order = sorted(shifts, key=lambda name: shifts[name])
    pairs = ((a, b) for i, a in enumerate(order) for b in order[i + 1 :]
             if shifts[b] < 0 and not (masks[a] & masks[b]).any())  # fmt: skip
    found = min(pairs, key=lambda pair: shifts[pair[0]] + shifts[pair[1]], default=None)
    if found is None:
        return {"groups": [], "answer": "cannot tell"}
    one, two = found
    rows = np.concatenate([np.flatnonzero(masks[one]), np.flatnonzero(masks[two])])
    n = int(masks[one].sum())

    def correlation(chosen: NDArray[np.intp]) -> float:
        first, second = back[:, chosen[:n]].mean(1), back[:, chosen[n:]].mean(1)
        return rank_correlation(first, second)

    observed = correlation(rows)
    rng = np.random.default_rng(26)
    drawn = np.array([correlation(rng.permutation(rows)) for _ in range(DRAWS)])
    p = (1 + int((drawn <= observed).sum())) / (1 + DRAWS)
    apart = float(np.nanmean(drawn) - observed)
    answer = "yes" if p <= 0.05 and apart >= 0.2 else "cannot tell"
    return {"groups": [one, two], "n": [n, len(rows) - n], "shifts": [shifts[one], shifts[two]],
            "correlation": observed, "mixed": float(np.nanmean(drawn)), "p": p,
            "answer": answer}  # fmt: skip


def tensors(store: Path, data: Path, only: str | None) -> None:
    """ONNX Runtime's signal-to-noise ratio of a unit's weights beside its harm when alone.

    On the examples that mixed precision is chosen on, of which there are fewer.
    """
    from onnx import numpy_helper
    from onnxruntime.quantization import qdq_loss_debug as debug

    import fairweight as fw
    from fairweight.lab.artifacts import load
    from fairweight.lab.onnx_models import read_onnx, write_onnx
    from fairweight.lab.partition import prepare
    from fairweight.lab.unit_predictions import JudgedExamples, opened_network, unit_predictors
    from fairweight.specs.data import Data
    from fairweight.specs.toml import as_spec

    for network in grid()["network"]:
        model = store / network["model"]
        known = [one for one in network["methods"] if only in (None, variant_of(one))]
        if not model.is_dir() or not known:
            continue
        prepared = prepare(as_spec(Data, load(model)[1].data, "The data", "name"), data)
        _, part = judged_and_chosen(prepared, network)
        for method in known:
            if variant_of(method) not in facts().get(network["name"], {}):
                continue  # `run` says which group loses most
            made = fw.lab.sensitivity(
                model, method, part, calibration=prepared.train, unit=network["unit"],
                task=network.get("task"), store=store / "units", latency=False, announce=print,
            )  # fmt: skip
            few = JudgedExamples.of(part.select(np.arange(8)), task=network.get("task"))
            with opened_network(model, few.batches[0].inputs) as opened:
                (predictor,) = unit_predictors(
                    opened, method, [few], calibration=prepared.train, level=network["unit"],
                    store=None,
                )  # fmt: skip
                models = predictor.models
                names = [unit.name for unit in models.units]
                first = write_onnx(models.float_model, opened.folder / "debug-float.onnx")
                second = write_onnx(models.of(names).model, opened.folder / "debug-full.onnx")
                if models.simulated:
                    one, two = (
                        {
                            t.name: numpy_helper.to_array(t)
                            for t in read_onnx(file).graph.initializer
                        }
                        for file in (first, second)
                    )
                    match = {k: {"float": one[k], "dequantized": two[k]} for k in one}
                else:
                    match = debug.create_weight_matching(str(first), str(second))
                ratios = {}
                for unit in models.units:
                    both = [match[weight] for weight in unit.weights]
                    ratios[unit.name] = debug.compute_signal_to_quantization_noice_ratio(
                        [held["float"].reshape(-1) for held in both],
                        [held["dequantized"].reshape(-1) for held in both],
                    )
            called = variant_of(method)
            worst = facts()[network["name"]][called]["worst"]["group"]
            found = tensor_claim(made, ratios, worst)
            remember([network["name"], called, "tensor_error"], found)


def tensor_claim(made: Any, errors: Mapping[str, float], worst: str) -> dict[str, Any]:
    """Whether units with more noise in their weights lose more in the worst group when alone."""
    from fairweight.precision import class_texts, group_texts

    labels = made.examples.labels
    texts = group_texts(made.examples)
    mask = group_mask(worst, texts, class_texts(made.examples)[labels])
    base = made.baseline == labels
    harm = {
        one: float((base[mask].astype(float) - (made.alone[one] == labels)[mask]).mean())
        for one in made.alone
    }
    noise = np.array([-errors[one] for one in harm])
    lost = np.array(list(harm.values()))
    observed = rank_correlation(noise, lost)
    if math.isnan(observed):  # no unit does more harm than another
        return {"correlation": observed, "answer": "cannot tell", "units": len(lost),
                "n": int(mask.sum()), "ratio_db": dict(errors), "lost_alone": harm}  # fmt: skip
    rng = np.random.default_rng(27)
    drawn = np.array([rank_correlation(rng.permutation(noise), lost) for _ in range(10_000)])
    p = (1 + int((drawn >= observed).sum())) / (1 + len(drawn))
    again = [rng.integers(0, len(lost), len(lost)) for _ in range(DRAWS)]
    resampled = np.array([rank_correlation(noise[rows], lost[rows]) for rows in again])
    low, high = (float(x) for x in np.nanquantile(resampled, (0.025, 0.975)))
    # How well the harm itself is known: its ranks in two halves of the rows.
    each = np.array([base[mask].astype(float) - (made.alone[one] == labels)[mask] for one in harm])
    halves = [rng.permutation(each.shape[1]) for _ in range(200)]
    middle = each.shape[1] // 2
    repeated = float(
        np.nanmean(
            [
                rank_correlation(each[:, rows[:middle]].mean(1), each[:, rows[middle:]].mean(1))
                for rows in halves
            ]
        )
    )
    no = high < 0.5 <= repeated
    answer = "yes" if p <= 0.05 and observed >= 0.5 else "no" if no else "cannot tell"
    return {"repeated": repeated, "correlation": observed, "low": low, "high": high, "p": p,
            "answer": answer, "units": len(lost), "n": int(mask.sum()), "ratio_db": dict(errors),
            "lost_alone": harm}  # fmt: skip


def group_mask(group: str, texts: Mapping[str, Any], classes: Any) -> NDArray[np.bool_]:
    """The rows of one group by its name, such as race=Black & gender=Female."""
    mask = np.ones(len(classes), dtype=bool)
    for part in group.split(" & "):
        column, _, level = part.partition("=")
        mask &= classes == level if column == "class" else np.asarray(texts[column] == level)
    return mask


def of_mixed(mixed: Any, cpu_seconds: float) -> dict[str, Any]:
    """The model chosen by group beside those of its size."""
    table = mixed.audit.explanations["mixed_precision"]
    rows = {row["variant"]: {name: plain(value) for name, value in row.items()}
            for row in table.to_dict("records")}  # fmt: skip
    average = rows["by-average"]
    low, high, value = (average[f"against{end}"] for end in ("_low", "_high", ""))
    same = average["float_units"] == rows["mixed"]["float_units"]
    answer = "yes" if low > 0 else "no" if same or high < 0.01 else "cannot tell"
    return {"float_units": list(mixed.float_units), "reason": mixed.reason,
            "verdict": str(mixed.verdict.outcome), "rows": rows, "cpu_seconds": round(cpu_seconds),
            "beats_average": {"answer": answer, "same": same, "value": value, "low": low,
                              "high": high}}  # fmt: skip


def peer(store: Path, data: Path) -> None:
    """Export what NNCF needs; where it has been, judge its model on the test examples."""
    from fairweight.lab.artifacts import load
    from fairweight.lab.batches import as_floats
    from fairweight.lab.compression.registry import PartlyCompressed
    from fairweight.lab.onnx_models import read_onnx, write_onnx
    from fairweight.lab.partition import prepare
    from fairweight.lab.unit_predictions import JudgedExamples, opened_network, unit_predictors
    from fairweight.precision import class_texts, group_texts, paired_shift
    from fairweight.specs.data import Data
    from fairweight.specs.toml import as_spec

    network = grid()["network"][0]
    model, folder = store / network["model"], store / "peer"
    folder.mkdir(exist_ok=True)
    prepared = prepare(as_spec(Data, load(model)[1].data, "The data", "name"), data)
    of_judging, of_choosing = judged_and_chosen(prepared, network)
    judged = JudgedExamples.of(of_judging)
    with opened_network(model, judged.batches[0].inputs) as opened:
        (predictor,) = unit_predictors(
            opened, "int8-static", [judged], calibration=prepared.train, level=network["unit"],
            store=store / "units",
        )  # fmt: skip
        made = folder / "peer.onnx"
        if not made.is_file():
            validation = JudgedExamples.of(of_choosing)
            write_onnx(predictor.models.float_model, folder / "float.onnx")
            np.save(folder / "calibration.npy", predictor.calibration)
            inputs = [as_floats(one.inputs, opened.scaling, "The model").numpy()
                      for one in validation.batches]  # fmt: skip
            np.save(folder / "validation.npy", np.concatenate(inputs))
            np.save(folder / "labels.npy", validation.labels)
            print(f"Exported to {folder}; now run where_nncf.py.")
            return
        predicted = predictor.ask(PartlyCompressed(read_onnx(made), 0, {}))
        labels = judged.labels
        before, full = predictor.of(()), predictor.of([u.name for u in predictor.models.units])
        held = facts()[network["name"]]["int8-static"]
        worst = held["mixed"]["rows"]["mixed"]["group"]
        mask = group_mask(worst, group_texts(judged), class_texts(judged)[labels])
        found = json.loads((folder / "peer.json").read_text(encoding="utf-8"))
        rights = {"peer": predicted == labels, "full": full == labels}
        base = before == labels
        for name, right in rights.items():
            value, low, high = paired_shift(base[mask], right[mask])
            found[name] = {"shift": value, "low": low, "high": high,
                           "accuracy": float(right.mean())}  # fmt: skip
        quantised = read_onnx(made)
        found |= {
            "group": worst,
            "size_bytes": made.stat().st_size,
            "nodes": len(quantised.graph.node),
            "rounding": sum(n.op_type == "QuantizeLinear" for n in quantised.graph.node),
        }
    remember([network["name"], "peer"], found)


def remedies(store: Path, data: Path) -> None:
    """Other calibrations, ranges and finetunings of int8, judged in the group that it costs."""
    import pandas as pd

    import fairweight as fw
    from fairweight.lab.artifacts import load
    from fairweight.lab.partition import prepare
    from fairweight.specs.data import Data
    from fairweight.specs.toml import as_spec

    asked = grid()["remedies"]
    network = next(one for one in grid()["network"] if one["name"] == asked["network"])
    model, folder = store / network["model"], store / "remedies"
    folder.mkdir(exist_ok=True)
    prepared = prepare(as_spec(Data, load(model)[1].data, "The data", "name"), data)
    models: dict[str, Path] = {}
    for place, one in enumerate(asked["variant"]):
        called = one["name"]
        models[called] = folder / (f"{place}" if called == "control" else f"{place}.onnx")
        if not models[called].exists():
            training = asked["training"] | one.get("training", {}) if one.get("trains") else None
            fw.lab.compress(model, one["spec"], out=models[called], training=training,
                            variant=f"remedy-{place}", root=data, prepared=prepared)  # fmt: skip
            print(f"{called}: made", flush=True)
    table = fw.lab.predict(
        {"dense": model, **models}, prepared.part("test"), out=folder / "predictions.parquet"
    )
    remember([asked["network"], "remedies"], compared(pd.read_parquet(table), asked))


def compared(frame: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Every remedy beside the dense model and int8-static, in the group and in everybody else."""
    from statistics import NormalDist

    from fairweight.auditing.intervals.proportion import tango_at

    column, _, level = asked["group"].partition("=")
    frame = frame.sort_values("example_id")
    right = frame["prediction"].astype(str) == frame["label"].astype(str)
    inside = frame[column].astype(str) == level
    rights = {
        name: {own: right[part][inside[part] == own].to_numpy() for own in (True, False)}
        for name, part in frame.groupby("variant").groups.items()
    }
    overall = right.groupby(frame["variant"]).mean()
    judged = [one["name"] for one in asked["variant"][1:] if not one.get("scale")]
    z = NormalDist().inv_cdf(1 - 0.025 / len(judged))

    def paired(old: str, new: str, own: bool = True) -> dict[str, float]:
        before, after = rights[old][own], rights[new][own]
        lost, gained = float((before & ~after).sum()), float((after & ~before).sum())
        n = float(len(before))
        low, high = tango_at(np.array([n]), np.array([lost]), np.array([gained]), z)
        return {"value": (gained - lost) / n, "low": float(low[0]), "high": float(high[0])}

    rows = {}
    for one in asked["variant"]:
        name = one["name"]
        rows[name] = {"accuracy": float(overall[name]), "shift": paired("dense", name),
                      "others": paired("dense", name, own=False)}  # fmt: skip
        if name != "int8-static":
            beside = rows[name]["beside"] = paired("int8-static", name)
            if name in judged:
                rows[name]["answer"] = (
                    "yes" if beside["low"] > 0
                    else "no" if beside["high"] < asked["smallest"] else "cannot tell"
                )  # fmt: skip
        if one.get("trains") and name != "control":
            rows[name]["beside_control"] = paired("control", name)
    return {"rows": rows, "n": int(inside[frame["variant"] == "dense"].sum()),
            "judged": len(judged), "z": z, "dense": float(overall["dense"])}  # fmt: skip


# What is said of it.


def points(value: float | None, digits: int = 1) -> str:
    if value is None:
        return "–"
    return f"{round(100 * value, digits) + 0.0:.{digits}f}".replace("-", "−")  # never −0


def limits(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "(too few changes for limits)"
    return f"[{points(low)}, {points(high)}]"


def page() -> str:
    """The page, from where.toml and where.json."""
    asked, held = grid(), facts()
    lines = [
        "# Where in the network",
        "",
        "Which layers do the harm when a network is compressed, for whom, and does it help to "
        "know? The grid, the claims and how each is judged were committed before the runs "
        "(`docs/results/where.toml`; what was added later stands there with its time and reason). "
        "`docs/results/where.py` runs it, goes on where it stopped, "
        "and writes this page from the numbers that it measured (`docs/results/where.json`).",
        "",
        *in_short(asked, held),
    ]
    for network in asked["network"]:
        own = held.get(network["name"], {})
        for method in network["methods"]:
            called = variant_of(method)
            if called in own:
                lines += section(network, called, own[called])
        if "peer" in own:
            lines += peer_section(asked["peer"], own)
        if "remedies" in own:
            lines += remedies_section(asked["remedies"], own["remedies"])
    lines += not_run(asked, held)
    return "\n".join(lines) + "\n"


def collapsed(found: Mapping[str, Any]) -> str | None:
    """What a network says that hardly answers one of its classes any more; None of any other."""
    rarest = found.get("hardly_answered")
    if rarest is None or rarest["given"] >= COLLAPSED * rarest["times"]:
        return None
    return (
        f"It answers “{rarest['class']}” {rarest['given']:,} times where {rarest['times']:,} "
        "would be right: it does not work any more, and who loses by that says nothing about "
        "groups or layers. No claim is judged."
    )


def in_short(asked: Mapping[str, Any], held: Mapping[str, Any]) -> list[str]:
    """The four answers of every run in one table, and what weaker compression did instead."""
    runs = [
        (network["name"], variant_of(method), held[network["name"]][variant_of(method)])
        for network in asked["network"]
        for method in network["methods"]
        if variant_of(method) in held.get(network["name"], {})
    ]
    lines = [
        "| network | compression | loses most | from few units? | other units for other groups? | "
        "by group better than by average? | ranked by the error of tensors? |",
        "|---|---|---|---|---|---|---|",
    ]
    better, judged = 0, 0
    for network, called, found in runs:
        worst, mixed = found["worst"], found.get("mixed", {})
        if collapsed(found):
            lines.append(f"| {network} | {called} | does not work any more | – | – | – | – |")
            continue
        shown = f"{worst['group']}, {points(worst['shift'])} points" if worst["shown"] else "nobody"
        beats = mixed["beats_average"]["answer"] if "rows" in mixed else "not run"
        error = found.get("tensor_error", {}).get("answer", "not run")
        lines.append(
            f"| {network} | {called} | {shown} | {found['concentrated']['answer']} | "
            f"{found['groups_differ']['answer']} | {beats} | {error} |"
        )
        if worst["shown"] and "weaker" in mixed.get("rows", {}):
            judged += 1
            better += mixed["rows"]["weaker"]["shift"] > mixed["rows"]["mixed"]["shift"]
    return [
        *lines,
        "",
        f"In {better} of the {judged} runs in which a group is shown to lose, weaker compression "
        "everywhere (for int8 simulated), at about the same size, kept more in the group that "
        "units were chosen for than these units did.",
        "",
    ]


def variant_of(method: Mapping[str, Any]) -> str:
    """What the lab calls it."""
    number = method.get("bits", round(100 * method["sparsity"]) if "sparsity" in method else None)
    return method["method"] if number is None else f"{method['method']}-{number}"


def section(network: Mapping[str, Any], called: str, found: Mapping[str, Any]) -> list[str]:
    """One method on one network: what is lost, what comes back, the answers, mixed precision."""
    overall, worst, units = found["accuracy"], found["worst"], found["units"]
    halved = network["chosen_on"] == "half of test"
    choosing = "the other half of the test examples" if halved else "the validation examples"
    best = max(units, key=lambda row: row["recovered"])
    losers = [row for row in found["shown_to_lose"] if row["group"]]
    named = "; ".join(
        f"{row['group']} {points(row['shift'])} {limits(row['low'], row['high'])}" for row in losers
    )
    head = f"## {network['title']}: {called}, by {network['unit']}"
    if broken := collapsed(found):
        return [
            head, "", f"Accuracy goes from {points(overall['baseline'])} % to "
            f"{points(overall['full'])} % of {found['n']:,} examples. {broken}", "",
        ]  # fmt: skip
    lines = [
        head,
        "",
        f"{found['n']:,} examples; {len(units)} {network['unit']}s, ranked on one half of the "
        "examples and judged on the other.",
        "",
        f"- Accuracy goes from {points(overall['baseline'])} % to {points(overall['full'])} %: "
        f"{points(overall['shift'])} points {limits(overall['low'], overall['high'])}. "
        + (f"Shown to lose: {named}." if losers else "No group is shown to lose."),
        f"- In {worst['group']} ({worst['n']:,} examples"
        + (", the group that is shown to lose most" if worst["shown"] else
           ", the group with the largest loss, which is not shown")
        + f"), {points(-worst['judged_shift'])} points are lost in the judged half. Most comes "
        f"back with `{best['unit']}` in float: {points(best['recovered'])} "
        f"{limits(best['recovered_low'], best['recovered_high'])}, for "
        f"{points(best['share_of_saving'])} % of the bytes saved. "
        + (f"Stands out: {', '.join(found['stand_out'])}." if found["stand_out"] else
           f"No {network['unit']} stands out for any group."),
        "",
        f"| {network['unit']} | comes back, {worst['group']} | more than the others' mean | "
        "share of the saving |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for row in sorted(units, key=lambda row: -row["recovered"])[:6]:
        lines.append(
            f"| `{row['unit']}` | {points(row['recovered'])} "
            f"{limits(row['recovered_low'], row['recovered_high'])} | {points(row['contrast'])} "
            f"{limits(row['contrast_low'], row['contrast_high'])} | "
            f"{points(row['share_of_saving'])} % |"
        )
    if len(units) > 6:
        lines += ["", f"The {len(units) - 6} others give back less."]
    lines += ["", "| claim | answer | by what |", "|---|---|---|"]
    lines.append(
        "| the loss of the group that loses most comes from few units | "
        f"{found['concentrated']['answer']} | of {points(-worst['judged_shift'])} points the best "
        f"single {network['unit']} gives back {points(best['recovered'])} "
        f"{limits(best['recovered_low'], best['recovered_high'])}; half would be "
        f"{points(-worst['judged_shift'] / 2)} |"
    )
    two = found["groups_differ"]
    said = "no two groups without a common row lose"
    if two["groups"]:
        said = (
            f"{two['groups'][0]} ({points(two['shifts'][0])} points) and {two['groups'][1]} "
            f"({points(two['shifts'][1])}): rank correlation {two['correlation']:.2f}; with rows "
            f"exchanged between them {two['mixed']:.2f} on average, p = {two['p']:.2f}"
        )
    lines.append(f"| different groups lose in different units | {two['answer']} | {said} |")
    mixed = found.get("mixed", {})
    if "rows" in mixed:
        versus = mixed["beats_average"]
        said = (
            "both choices are the same units"
            if versus["same"]
            else f"{points(versus['value'])} points {limits(versus['low'], versus['high'])} more "
            f"accuracy in {mixed['rows']['mixed']['group']}"
        )
        lines.append(
            "| choosing by group beats choosing by average accuracy at equal size | "
            f"{versus['answer']} | {said} |"
        )
    error = found.get("tensor_error")
    if error and math.isnan(error["correlation"]):
        lines.append(
            f"| the error of a tensor ranks units as the harm does | {error['answer']} | every "
            f"{network['unit']} alone does the same to {worst['group']} on {error['n']:,} of "
            f"{choosing}, so that there is nothing to rank |"
        )
    elif error and math.isnan(error["repeated"]):
        lines.append(
            f"| the error of a tensor ranks units as the harm does | {error['answer']} | nearly "
            f"every {network['unit']} alone does the same to {worst['group']} on "
            f"{error['n']:,} of {choosing}, so that there is hardly anything to rank: rank "
            f"correlation {error['correlation']:.2f}, p = {error['p']:.2f} |"
        )
    elif error:
        lines.append(
            f"| the error of a tensor ranks units as the harm does | {error['answer']} | rank "
            f"correlation {error['correlation']:.2f} [{error['low']:.2f}, {error['high']:.2f}] "
            f"over {error['units']} units, p = {error['p']:.2f}; harm in {worst['group']} on "
            f"{error['n']:,} of {choosing}, whose ranks in two halves of them agree by "
            f"{error['repeated']:.2f} |"
        )
    else:
        lines.append("| the error of a tensor ranks units as the harm does | not run | |")
    if "rows" in mixed:
        lines += mixed_section(mixed, worst["group"], choosing)
    elif "refused" in mixed:
        lines += ["", f"Mixed precision: the gate said “{mixed['refused']}” of the float model on "
                  f"{choosing}, so nothing was chosen."]  # fmt: skip
    return [*lines, ""]


def mixed_section(mixed: Mapping[str, Any], judged_worst: str, choosing: str) -> list[str]:
    """The model that was chosen by group, beside its references."""
    rows = mixed["rows"]
    worst = rows["mixed"]["group"]
    lines = [
        "",
        f"Mixed precision: units return to float by what comes back in {worst} per byte, on "
        f"{choosing}; the search ended because {mixed['reason']}. In float: "
        f"{', '.join(f'`{one}`' for one in mixed['float_units']) or 'nothing'}. On the examples "
        f"that judge, which decided nothing, the gate says: {mixed['verdict']}."
        + (
            ""
            if judged_worst == worst or not mixed["float_units"]
            else f" There {judged_worst}, a part of {worst}, loses most with everything compressed."
            if set(worst.split(" & ")) < set(judged_worst.split(" & "))
            else f" There {judged_worst} loses most with everything compressed, so that units were "
            "chosen for another group than the one that needed it."
        ),
        "",
        f"| model | bytes | accuracy | change in {worst} ({rows['mixed']['n']:,} examples) |",
        "|---|---|---|---|",
    ]
    titles = {"full": "everything compressed", "mixed": "chosen by group",
              "by-average": "chosen by average accuracy",
              "weaker": "weaker everywhere (simulated)"}  # fmt: skip
    for name, title in titles.items():
        if name in rows:
            row = rows[name]
            lines.append(
                f"| {title} | {row['size_bytes']:,} | {points(row['accuracy'])} % | "
                f"{points(row['shift'])} {limits(row['shift_low'], row['shift_high'])} |"
            )
    random = [row for name, row in rows.items() if name.startswith("random-")]
    shifts = sorted(row["shift"] for row in random)
    sizes = sorted(row["size_bytes"] for row in random)
    better = sum(shift > rows["mixed"]["shift"] for shift in shifts)
    lines += [
        f"| {len(random)} random choices, from worst to best | {sizes[0]:,} to {sizes[-1]:,} | | "
        f"{points(shifts[0])} to {points(shifts[-1])} |",
        "",
        f"{better} of the {len(random)} random choices lose less in {worst} than the choice by "
        "group.",
    ]
    return lines


def peer_section(asked: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    """NNCF beside the choice by group."""
    found = own["peer"]
    mixed = own["int8-static"]["mixed"]
    rows = mixed["rows"]
    lines = [
        f"### Beside {asked['name']}",
        "",
        f"On the same float file, with the same calibration examples; it may lose "
        f"{points(asked['max_drop'])} points of mean accuracy on the same validation examples. "
        "Installed in an environment of its own (`docs/results/where_nncf.py`). Times are "
        "processor time of the search: ours includes judging 13 references on the test examples.",
        "",
        f"| | bytes | accuracy | change in {found['group']} | CPU seconds |",
        "|---|---|---|---|---|",
        f"| int8-static, everything | {rows['full']['size_bytes']:,} | "
        f"{points(found['full']['accuracy'])} % | {points(found['full']['shift'])} "
        f"{limits(found['full']['low'], found['full']['high'])} | |",
        f"| chosen by group | {rows['mixed']['size_bytes']:,} | "
        f"{points(rows['mixed']['accuracy'])} % | {points(rows['mixed']['shift'])} "
        f"{limits(rows['mixed']['shift_low'], rows['mixed']['shift_high'])} | "
        f"{mixed['cpu_seconds']:,} |",
        f"| NNCF | {found['size_bytes']:,} | {points(found['peer']['accuracy'])} % | "
        f"{points(found['peer']['shift'])} {limits(found['peer']['low'], found['peer']['high'])} | "
        f"{found['cpu_seconds']:,.0f} |",
        "",
    ]
    return lines


def remedies_section(asked: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Each remedy beside int8-static."""
    group = asked["group"]
    lines = [
        "### Other ways to the same int8",
        "",
        f"Accuracy of {found['n']:,} faces of {group}, whom int8-static was shown to cost most, "
        f"with limits that hold for all {found['judged']} remedies together. int8-static has its "
        "ranges from 100 training faces drawn at random. The group was chosen after a look at "
        "these faces, so anything else gains a little by that alone: three other draws show how "
        f"much. Finetuning takes {asked['training']['epochs']} epochs; `control` trains as long "
        "and stays in float.",
        "",
        f"| | accuracy of all | change in everybody else | change in {group} | "
        "beside int8-static | loses less? |",
        "|---|---|---|---|---|---|",
        f"| as shipped | {points(found['dense'])} % | | | | |",
    ]
    rows = {one["name"]: found["rows"][one["name"]] for one in asked["variant"]}
    for name, row in rows.items():
        beside = row.get("beside")
        cells = [f"{points(one['value'])} {limits(one['low'], one['high'])}" if one else ""
                 for one in (row["others"], row["shift"], beside)]  # fmt: skip
        lines.append(
            f"| {name} | {points(row['accuracy'])} % | {' | '.join(cells)} | "
            f"{row.get('answer', '')} |"
        )
    helps = [name for name, row in rows.items() if row.get("answer") == "yes"]
    lines += ["", f"Shown to lose less than int8-static: {', '.join(helps) or 'none'}.", ""]
    for name in helps:
        others = rows[name]["others"]
        if others["high"] < 0:
            lines += [f"But {name} costs everybody else {points(-others['value'])} points "
                      f"{limits(-others['high'], -others['low'])}.", ""]  # fmt: skip
    for name, row in rows.items():
        if one := row.get("beside_control"):
            lines += [
                f"Beside the control, {name} changes {group} by {points(one['value'])} points "
                f"{limits(one['low'], one['high'])}.",
                "",
            ]
    return lines


def not_run(asked: Mapping[str, Any], held: Mapping[str, Any]) -> list[str]:
    """What the grid has and the numbers do not."""
    lines = ["## Not run", ""]
    for network in asked["network"]:
        own = held.get(network["name"], {})
        missing = [variant_of(one) for one in network["methods"] if variant_of(one) not in own]
        if missing:
            lines.append(f"- {network['title']}: {', '.join(missing)}.")
        for method in network["methods"]:
            found = own.get(variant_of(method))
            if found and "tensor_error" not in found and not collapsed(found):
                lines.append(
                    f"- {network['title']}: {network['unit']}s compressed alone with "
                    f"{variant_of(method)}, and so the claim about errors of tensors."
                    f"{network.get('gone', '')}"
                )
    if "remedies" not in held.get(asked["remedies"]["network"], {}):
        lines.append("- Other ways to int8 on the deployed network.")
    spent = held.get("cpu_seconds", {})
    if spent:
        total = sum(spent.values()) / 60
        parts = "; ".join(f"{name} {seconds / 60:.1f}" for name, seconds in sorted(spent.items()))
        lines += ["", f"All of it took {total:.0f} core-minutes ({parts})."]
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "tensors", "peer", "remedies", "page"))
    parser.add_argument("store", type=Path, nargs="?")
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--only", help="one method, such as int8-static")
    parser.add_argument("--budget", type=float, help="seconds for the units of a method")
    given = parser.parse_args()
    if given.what != "page" and (given.store is None or given.data is None):
        parser.error(f"{given.what} needs STORE and DATA")
    begun = time.process_time()
    if given.what != "page":
        import torch

        from fairweight.base.memory import keep_freed_blocks

        torch.set_num_threads(1)  # threads that wait for a busy core take its time
        keep_freed_blocks()
    if given.what == "run":
        run(given.store, given.data, given.only, given.budget)
    elif given.what == "tensors":
        tensors(given.store, given.data, given.only)
    elif given.what == "peer":
        peer(given.store, given.data)
    elif given.what == "remedies":
        remedies(given.store, given.data)
    if given.what != "page":
        label = " ".join(filter(None, (given.what, given.only)))
        spent = facts().get("cpu_seconds", {}).get(label, 0)
        remember(["cpu_seconds", label], round(spent + time.process_time() - begun))
    PAGE.write_text(page(), encoding="utf-8")
