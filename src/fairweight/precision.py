"""Which units of a network do the harm, and a mixed precision that spares them.

The lab makes predictions of one unit compressed alone and of all but one compressed; the audit of
the full compression gets a table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fairweight import lab
from fairweight.api import audit_table
from fairweight.auditing.intervals.proportion import tango_at
from fairweight.auditing.schema import frame
from fairweight.auditing.sensitivity import UnitAnswers, UnitCost, masks_of, with_sensitivity
from fairweight.audits import Audit, checked_policy
from fairweight.base.streams import generator
from fairweight.base.types import Progress
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.canonical import canonical
from fairweight.tables.spec import ARRAYS, SourceRef, TableSpec

if TYPE_CHECKING:
    from torch import nn

    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.data.dataset import Images
    from fairweight.lab.batches import Scaling
    from fairweight.lab.training import Method
    from fairweight.lab.unit_predictions import JudgedExamples, UnitPredictions
    from fairweight.lab.units import Level
    from fairweight.specs.policy import Policy


def sensitivity(
    model: nn.Module | str | Path,
    spec: Method,
    batches: Iterable[Any] | Images | None = None,
    *,
    groups: Sequence[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    ids: Any = None,
    calibration: Iterable[Any] | Images | None = None,
    unit: Level = "layer",
    cluster: str | None = None,
    task: str | None = None,
    classes: Sequence[str] | None = None,
    scaling: Scaling | None = None,
    part: str = "test",
    root: str | Path | None = None,
    store: str | Path | None = None,
    budget: float | None = None,
    latency: bool = True,
    options: AuditOptions | None = None,
    command: str | None = None,
    announce: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit a compression, and show which of its units hurts whom.

    Every unit is compressed alone, and left out of the full compression. The result is an ordinary
    audit of the full compression with one more table, `explanations["sensitivity"]`.

    Parameters
    ----------
    model, spec, batches, ids, calibration, unit, task, classes, scaling, part, root, store, budget,
    latency, announce
        As for `fairweight.lab.sensitivity`, which makes the predictions.
    groups
        Group columns and intersections (`["race", "race*gender"]`); by default every column.
        Without any, classes take their place.
    columns
        Group columns of all examples, beside those of the batches.
    cluster
        The column whose examples belong together.
    options
        The statistics of the audit.
    """
    made = lab.sensitivity(
        model,
        spec,
        batches,
        groups=columns,
        ids=ids,
        calibration=calibration,
        unit=unit,
        task=task,
        classes=classes,
        scaling=scaling,
        part=part,
        root=root,
        store=store,
        budget=budget,
        latency=latency,
        announce=announce,
        progress=progress,
    )
    return audited_units(
        made, groups=groups, cluster=cluster, options=options, command=command, progress=progress
    )


def audited_units(
    made: UnitPredictions,
    *,
    groups: Sequence[str] | None = None,
    cluster: str | None = None,
    options: AuditOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """The audit of predictions that `fairweight.lab.sensitivity` made."""
    predictions = {made.variant: made.baseline, made.compressed: made.full}
    audit = audit_of(
        made.examples,
        predictions,
        groups=groups,
        cluster=cluster,
        options=options,
        command=command,
        progress=progress,
    )
    labels = made.examples.labels
    right = {one: made.without[one] == labels for one in made.without}
    alone = [made.alone.get(one, made.baseline) == labels for one in right]
    answers = UnitAnswers(
        tuple(right),
        made.baseline == labels,
        made.full == labels,
        np.array(alone).reshape(len(right), len(labels)),
        np.array(list(right.values())).reshape(len(right), len(labels)),
        np.array([one in made.alone for one in right], dtype=bool),
    )
    texts = group_texts(made.examples)
    result = with_sensitivity(
        audit.result,
        answers,
        texts,
        class_texts(made.examples)[labels],
        {
            name: UnitCost(saved, made.latency_ms.get(name))
            for name, saved in made.saved_bytes.items()
        },
        not_reached=made.not_reached,
        cluster=None if cluster is None else np.asarray(texts[cluster], dtype=str),
        notes=made.notes,
    )
    return Audit(result)


def audit_of(
    examples: JudgedExamples,
    predictions: Mapping[str, NDArray[np.int64]],
    *,
    groups: Sequence[str] | None,
    cluster: str | None = None,
    options: AuditOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """The audit of several models' predictions; the first is the baseline."""
    names = class_texts(examples)
    texts = group_texts(examples)
    wanted = None if groups is None else tuple(groups)
    if wanted is None and not texts:
        wanted = ()
    columns: dict[str, Any] = {
        "example_id": pa.array(examples.ids),
        "label": pa.array(names[examples.labels].tolist(), pa.string()),
    }
    columns |= {name: pa.array(values.tolist(), pa.string()) for name, values in texts.items()}
    places = {name: f"prediction {number}" for number, name in enumerate(predictions)}
    for name, column in places.items():
        columns[column] = pa.array(names[predictions[name]].tolist(), pa.string())
    table = SourceRef.of(pa.table(columns))
    spec = TableSpec(
        (replace(table, frame=ARRAYS),),  # commands must not name columns that are made here
        predictions=places,
        baseline=next(iter(places)),
        groups=wanted,
        cluster=cluster,
    )
    return audit_table(spec, options or AuditOptions(), command=command, progress=progress)


def class_texts(examples: JudgedExamples) -> NDArray[Any]:
    """Names of classes by their places; numbers where no names are known."""
    names = examples.classes
    if names is None:
        names = tuple(str(place) for place in range(int(examples.labels.max(initial=0)) + 1000))
    return np.array([canonical(name) for name in names], dtype=object)


def group_texts(examples: JudgedExamples) -> dict[str, NDArray[Any]]:
    """Group columns as the audit reads them: canonical text, None where it is missing."""
    return {
        name: np.array([canonical(value) for value in values.tolist()], dtype=object)
        for name, values in examples.groups.items()
    }


# Mixed precision by group: units return to float until a policy is met.

RANDOM_CHOICES = 10
Z = 1.959963984540054
FULL, MIXED, BY_AVERAGE, WEAKER = "full", "mixed", "by-average", "weaker"
MIXED_TABLE, STEPS_TABLE = "mixed_precision", "mixed_precision_steps"


@dataclass(frozen=True)
class Mixed:
    """A model of which some units stay in float, and how it was chosen and judged.

    float_units  units that are not compressed, in the order in which they returned
    audit        of the mixed model on rows that it was not chosen on; its explanations have
                 `mixed_precision` (beside references of equal size) and `mixed_precision_steps`
    verdict      of the gate on these rows
    reason       why the search ended
    """

    float_units: tuple[str, ...]
    audit: Audit
    verdict: Verdict
    reason: str
    path: Path


def mixed_precision(
    model: nn.Module | str | Path,
    spec: Method,
    policy: Policy | str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    validation: Iterable[Any] | Images,
    judged: Iterable[Any] | Images,
    groups: Sequence[str] | None = None,
    columns: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
    calibration: Iterable[Any] | Images | None = None,
    unit: Level = "layer",
    classes: Sequence[str] | None = None,
    task: str | None = None,
    scaling: Scaling | None = None,
    most_bytes: int | None = None,
    store: str | Path | None = None,
    options: AuditOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Mixed | Verdict:
    """Compress a network, but leave units in float until a policy is met by every group.

    Units return in the order of the loss that comes back in the group that loses most, per byte,
    on validation rows, until the gate passes there or the size limit is reached. The result is
    judged on other rows, beside three references of the same size (to within one unit):
    compression that is weaker everywhere, units chosen by average accuracy, and random choices.

    Parameters
    ----------
    policy
        As for `fairweight.gate`.
    out
        The ONNX file. Its card lists the units that stay in float, and why.
    validation, judged
        Examples to choose on and to judge on, as for `fairweight.lab.sensitivity`; none in both.
    columns
        Group columns of both, where the batches do not hold them.
    most_bytes
        The largest size of the file.

    Returns
    -------
    `Mixed`, or the gate's verdict of the uncompressed model where not even that passes on the
    validation rows: it fails, or the rows are too few to tell.
    """
    from fairweight.lab.unit_predictions import JudgedExamples, opened_network, unit_predictors

    tell = progress or (lambda what, done, total: None)
    asked = checked_policy(policy)
    chosen = replace(options or AuditOptions(), confirmatory=asked.confirmatory())
    # The search looks at the gate alone, which needs no replicates where rates decide.
    quick = replace(chosen, n_boot=min(chosen.n_boot, 200))
    own = columns or (None, None)
    parts = [
        JudgedExamples.of(given, groups=held, classes=classes, task=task)
        for given, held in zip((validation, judged), own, strict=True)
    ]
    both = set(map(str, parts[0].ids.tolist())) & set(map(str, parts[1].ids.tolist()))
    if both and hasattr(validation, "example_id"):
        raise InputError(
            f"{len(both)} examples, such as '{min(both)}', are among those to choose on and those "
            "to judge on; give rows apart."
        )
    with opened_network(model, parts[0].batches[0].inputs, scaling=scaling) as network:
        choosing, judging = unit_predictors(
            network, spec, parts, calibration=calibration, level=unit, store=store
        )
        models = choosing.models
        names = [one.name for one in models.units]
        every = frozenset(names)

        def gate(predicted: NDArray[np.int64]) -> Verdict:
            held = {network.variant: choosing.of(()), MIXED: predicted}
            return audit_of(parts[0], held, groups=groups, options=quick).gate(asked)

        tell("asking the float model", 0, len(names) + 2)
        unchanged = gate(choosing.of(()))
        if not unchanged.passed:
            return unchanged
        full = choosing.of(every)
        labels = parts[0].labels
        first = audit_of(
            parts[0], {network.variant: choosing.of(()), MIXED: full}, groups=groups, options=quick
        )
        masks = masks_of(first.result, group_texts(parts[0]), class_texts(parts[0])[labels])
        masks = {name: mask for name, mask in masks.items() if mask.sum() >= chosen.min_group}
        if not masks:
            raise InputError(
                f"No group has {chosen.min_group:,} of the {len(labels):,} validation examples, so "
                "no unit can be chosen by group; name larger groups, or give more examples."
            )
        lost = choosing.right(()).astype(float) - choosing.right(every)
        worst = max(masks, key=lambda name: float(lost[masks[name]].mean()))
        back: dict[str, NDArray[Any]] = {}
        for place, name in enumerate(names):
            tell("leaving units out", place + 2, len(names) + 2)
            back[name] = choosing.right(every - {name}).astype(float) - choosing.right(every)
        saved = {name: models.saved_bytes([name]) for name in names}
        by_group = _order({n: float(back[n][masks[worst]].mean()) for n in names}, saved)
        by_average = _order({n: float(back[n].mean()) for n in names}, saved)

        def size_of(which: frozenset[str]) -> int:
            return models.float_bytes - models.saved_bytes(which)

        steps: list[dict[str, Any]] = []
        returned: list[str] = []
        reason = "the gate passes on the validation rows"
        while True:
            which = every - set(returned)
            verdict = gate(choosing.of(which))
            right = choosing.right(which).astype(float) - choosing.right(())
            steps.append(
                {
                    "step": len(returned),
                    "unit": returned[-1] if returned else None,
                    "recovered": float(back[returned[-1]][masks[worst]].mean())
                    if returned
                    else None,
                    "bytes": saved[returned[-1]] if returned else None,
                    "size_bytes": size_of(which),
                    "group": worst,
                    "shift": float(right[masks[worst]].mean()),
                    "verdict": str(verdict.outcome),
                }
            )
            tell("returning units", len(returned), len(names))
            if verdict.passed:
                break
            if len(returned) == len(names):
                reason = "no precision passes on the validation rows: every unit is in float"
                break
            following = by_group[len(returned)]
            if most_bytes is not None and size_of(which - {following}) > most_bytes:
                reason = f"the next unit would make the file larger than {most_bytes:,} bytes"
                break
            returned.append(following)
        mixed = every - set(returned)
        size = size_of(mixed)
        rng = generator(chosen.random_state, "mixed-precision")
        variants: dict[str, tuple[frozenset[str] | None, int, bool]] = {
            MIXED: (mixed, size, models.simulated),
            FULL: (every, size_of(every), models.simulated),
            BY_AVERAGE: (*_nearest(by_average, every, size, size_of), models.simulated),
        }
        for number in range(RANDOM_CHOICES):
            order = [names[place] for place in rng.permutation(len(names))]
            found = _nearest(order, every, size, size_of)
            variants[f"random-{number}"] = (*found, models.simulated)
        predictions = {
            name: judging.of(which) for name, (which, _, _) in variants.items() if which is not None
        }
        weaker = models.weaker(size)
        if weaker is not None:
            variants[WEAKER] = (None, models.float_bytes - weaker.saved_bytes, True)
            predictions[WEAKER] = judging.ask(weaker)
        held = {network.variant: judging.of(()), MIXED: predictions[MIXED]}
        audit = audit_of(
            parts[1], held, groups=groups, options=chosen, command=command, progress=progress
        )
        verdict = audit.gate(asked)
        rows = _references(parts[1], audit, worst, judging.of(()), predictions, variants, names)
        result = replace(
            audit.result,
            explanations={
                **audit.result.explanations,
                MIXED_TABLE: frame(MIXED_TABLE, rows),
                STEPS_TABLE: frame(STEPS_TABLE, steps),
            },
        )
        why = {
            step["unit"]: f"{100 * step['recovered']:.2f} points of {worst} came back for "
            f"{step['bytes']:,} bytes on the validation rows"
            for step in steps
            if step["unit"] is not None
        }
        path = judging.write(mixed, out, why)
    return Mixed(tuple(returned), Audit(result), verdict, reason, path)


def _order(recovered: Mapping[str, float], saved: Mapping[str, int]) -> list[str]:
    """Units by what comes back per byte; those that save nothing cost nothing.

    >>> _order({"a": 0.02, "b": 0.03, "c": 0.01}, {"a": 100, "b": 300, "c": -4})
    ['c', 'a', 'b']
    """
    return sorted(recovered, key=lambda name: -recovered[name] / max(saved[name], 1))


def _nearest(
    order: Sequence[str],
    every: frozenset[str],
    size: int,
    size_of: Callable[[frozenset[str]], int],
) -> tuple[frozenset[str], int]:
    """Units compressed when they return in this order until the model is nearest to a size."""
    found = [every - set(order[:number]) for number in range(len(order) + 1)]
    best = min(found, key=lambda which: abs(size_of(which) - size))
    return best, size_of(best)


def _references(
    examples: JudgedExamples,
    audit: Audit,
    worst: str,
    baseline: NDArray[np.int64],
    predictions: Mapping[str, NDArray[np.int64]],
    variants: Mapping[str, tuple[frozenset[str] | None, int, bool]],
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Rows of the table of references: the group that loses most, and everyone."""
    labels = examples.labels
    masks = masks_of(audit.result, group_texts(examples), class_texts(examples)[labels])
    mask = masks.get(worst, np.zeros(len(labels), dtype=bool))
    right = {name: predicted == labels for name, predicted in predictions.items()}
    rows = []
    for name, (which, size, simulated) in variants.items():
        kept = [] if which is None else [one for one in names if one not in which]
        row: dict[str, Any] = {"variant": name, "n_float": len(kept)}
        row["float_units"] = ", ".join(kept) or None
        row |= {"size_bytes": size, "simulated": simulated, "group": worst, "n": int(mask.sum())}
        row["accuracy"] = float(right[name].mean())
        before = baseline == labels
        for column, old, new in (
            ("shift", before, right[name]), ("against", right[name], right[MIXED]),
        ):  # fmt: skip
            value, low, high = paired_shift(old[mask], new[mask])
            row |= {column: value, f"{column}_low": low, f"{column}_high": high}
        rows.append(row)
    return rows


def paired_shift(old: NDArray[np.bool_], new: NDArray[np.bool_]) -> tuple[float, float, float]:
    """A paired difference of rates with Tango's limits."""
    n = float(len(old))
    if not n:
        return (np.nan,) * 3
    lost, gained = float((old & ~new).sum()), float((new & ~old).sum())
    low, high = tango_at(np.array([n]), np.array([lost]), np.array([gained]), Z)
    return (gained - lost) / n, float(low[0]), float(high[0])
