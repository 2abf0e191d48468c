"""What `import fairweight as fw` offers: audit arrays or tables, and look at the result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairweight.auditing.counts.cube import compact, summed
from fairweight.auditing.counts.cube_file import read_cubes, write_cube
from fairweight.auditing.counts.group_by import count as count_view
from fairweight.auditing.counts.sums_table import read_sums
from fairweight.auditing.vocabulary import Vocabulary, joined, of_answers, of_cube
from fairweight.audits import Audit as Audit
from fairweight.audits import checked_policy, stored_audit
from fairweight.audits import load as load
from fairweight.base.fields import changed
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.audit import AuditOptions, the_margin
from fairweight.tables.align import align
from fairweight.tables.frames import digest_of_frame, wide_table
from fairweight.tables.spec import (
    ARRAYS,
    LAZY,
    Columns,
    SourceRef,
    TableSpec,
    are_distant,
    sources_of,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from fairweight.auditing.choose.choice import Choice
    from fairweight.auditing.exemplars.exemplars import Exemplars
    from fairweight.auditing.exemplars.largest_losses import LargestLosses
    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.auditing.gate.sample_size import Plan
    from fairweight.auditing.gate.verdict import Require, Verdict
    from fairweight.auditing.preflight.preflight import Preflight
    from fairweight.base.types import Progress
    from fairweight.report.images import Shown
    from fairweight.specs.policy import Policy
    from fairweight.tables.warehouse import WarehouseCount

Request = TypeVar("Request", TableSpec, AuditOptions)
EXEMPLAR_KINDS = ("modal", "unanimous", "taxicab", "surrogate")


def audit(
    y_true: ArrayLike | None = None,
    y_pred: Mapping[str, ArrayLike] | None = None,
    *,
    outcomes: Mapping[str, ArrayLike] | None = None,
    better: str | None = None,
    denominator: ArrayLike | Mapping[str, ArrayLike] | None = None,
    range: tuple[float, float] | None = None,
    baseline: str | None = None,
    sensitive_features: Any = None,
    sample_id: ArrayLike | None = None,
    y_score: Mapping[str, ArrayLike] | None = None,
    pos_label: Any = None,
    positive: Any = None,
    groups: str | Sequence[str] | None = None,
    train: Any = None,
    variants: Any = None,
    cluster: ArrayLike | Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    score_classes: Sequence[Any] | None = None,
    force: bool = False,
    alpha: float = AuditOptions.alpha,
    n_boot: int = AuditOptions.n_boot,
    correction: str = AuditOptions.correction,
    min_group: int = AuditOptions.min_group,
    random_state: int | None = None,
    drawn_limits: str = AuditOptions.drawn_limits,
    zero_baseline: str = AuditOptions.zero_baseline,
    margin: float | None = None,
    reference_shift: float | None = None,
    group_error: float = AuditOptions.group_error,
    exact: bool = False,
    members: str = AuditOptions.members,
    filters: bool = True,
    fixed_side: str | None = None,
    confirmatory: Sequence[tuple[str, str]] = (),
    explain: ExplainRequest | Sequence[str] | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Compare the predictions of compressed models with a baseline's on the same examples.

    Parameters
    ----------
    y_true
        True labels, (n,).
    y_pred
        Variant to predictions, (n,) or (n, seeds). The first is the baseline unless named. Of
        class probabilities, (n, classes) as `predict_proba` gives them, the most probable class is
        the prediction; columns are named by `score_classes`, by a DataFrame, or are the labels in
        sorted order.
    outcomes, better, denominator, range
        In place of labels and predictions: variant to a number per example (correct 0/1, loss,
        word errors), "higher" or "lower", what it is divided by once both are summed (an array, or
        variant to array), and the least and the largest value that it can have.
    baseline
        Which variant is the dense model.
    sensitive_features
        Groups: an array, a Series, a dict of arrays or a DataFrame, as in fairlearn.
    y_score
        Variant to scores: (n,) of the positive class (binary) or the predicted one, or (n, classes)
        with classes in sorted order.
    pos_label
        The positive class of binary labels, as in scikit-learn; 1, True, "1", "yes" and "true"
        need not be named. `positive` is another name for it.
    groups
        Features and intersections (`["sex", "sex*age"]`); by default every feature.
    train
        Training labels and groups as a table: signs of bias amplification and the rarer value.
    cluster
        Which examples belong together (one person, one writer). Two columns, as a dict, a
        DataFrame or (n, 2), where they are bound in two ways: both people of a pair.
    sample_weight
        Sampling weights.
    alpha, n_boot, correction, min_group, random_state
        Level of intervals, bootstrap replicates, "holm" | "bh" | "none", the least size of a group
        that is judged, and the seed of all random numbers (0 if None).

    The other arguments are those of `audit_table`.

    Examples
    --------
    >>> import fairweight as fw
    >>> result = fw.audit([0, 1] * 50, {"dense": [0, 1] * 50, "int8": [0, 1] * 49 + [1, 1]},
    ...                   sensitive_features={"half": ["first"] * 50 + ["second"] * 50}, n_boot=200)
    >>> row = result.overall.query("metric == 'accuracy'").iloc[0]
    >>> float(row["shift"])
    -0.01
    """
    given = dict(locals())
    if (outcomes is None) == (y_pred is None) or (outcomes is None) == (y_true is None):
        raise InputError(
            "Give either y_true= and y_pred= (classes), or outcomes= with better= (a number for "
            "every example and model)."
        )
    table, columns = wide_table(
        y_true,
        outcomes or y_pred or {},
        denominator=denominator,
        given_as="y_pred" if outcomes is None else "outcomes",
        sensitive_features=sensitive_features,
        sample_id=sample_id,
        y_score=y_score,
        cluster=cluster,
        sample_weight=sample_weight,
        score_classes=score_classes,
    )
    tables = TableSpec(
        (SourceRef(frame=ARRAYS, digest=digest_of_frame(table), held=table),),
        baseline=baseline if baseline is not None else next(iter(columns.predictions)),
        predictions=columns.predictions if outcomes is None else None,
        outcome=None if outcomes is None else columns.predictions,
        better=better,
        denominator=columns.denominator,
        range=range,
        scores=columns.scores or None,
        groups=columns.groups if groups is None else groups,
        weight="weight" if sample_weight is not None else None,
        cluster=columns.clusters or None,
        train=train,
        variants=variants,
        positive=_positive(pos_label, positive),
        score_classes=columns.score_classes or score_classes,
        force=force,
    )
    options = _statistics(given)
    made = audit_table(tables, options, explain=explain, command=command, progress=progress)
    result = made.result
    return Audit(replace(result, notes=(*columns.notes, *result.notes))) if columns.notes else made


def _positive(pos_label: Any, positive: Any) -> Any:
    """The positive class by either name."""
    if pos_label is not None and positive is not None and pos_label != positive:
        raise InputError(
            f"pos_label={pos_label!r} and positive={positive!r} name two positive classes; give "
            "pos_label alone."
        )
    return positive if pos_label is None else pos_label


def audit_table(
    source: Any,
    options: AuditOptions | None = None,
    *,
    baseline: str | None = None,
    predictions: Columns | str | None = None,
    label: str = TableSpec.label,
    id: str = TableSpec.id,
    groups: str | Sequence[str] | None = None,
    scores: Columns | str | None = None,
    task: str | None = None,
    examples: Any = None,
    train: Any = None,
    variants: Any = None,
    pos_label: Any = None,
    positive: Any = None,
    cluster: str | Sequence[str] | None = None,
    weight: str | None = None,
    count: str | None = None,
    variant: str = TableSpec.variant,
    seed: str = TableSpec.seed,
    prediction: str = TableSpec.prediction,
    score: str = TableSpec.score,
    score_classes: Sequence[Any] | None = None,
    class_scores: str | Mapping[str, str] | None = None,
    query: str | None = None,
    log_tasks: Sequence[str] | None = None,
    log_filter: str | None = None,
    allow_different: Sequence[str] | None = None,
    score_threshold: float | None = None,
    outcome: str | Columns | None = None,
    better: str | None = None,
    denominator: str | Columns | None = None,
    range: tuple[float, float] | None = None,
    labels_are: str = TableSpec.labels_are,
    repeat: str | None = None,
    unlabelled: bool = False,
    missing: str = TableSpec.missing,
    force: bool = False,
    alpha: float = AuditOptions.alpha,
    n_boot: int = AuditOptions.n_boot,
    correction: str = AuditOptions.correction,
    min_group: int = AuditOptions.min_group,
    random_state: int | None = None,
    drawn_limits: str = AuditOptions.drawn_limits,
    zero_baseline: str = AuditOptions.zero_baseline,
    margin: float | None = None,
    reference_shift: float | None = None,
    group_error: float = AuditOptions.group_error,
    exact: bool = False,
    members: str = AuditOptions.members,
    filters: bool = True,
    fixed_side: str | None = None,
    confirmatory: Sequence[tuple[str, str]] = (),
    explain: ExplainRequest | Sequence[str] | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit prediction tables: files, frames, queries, or cubes written by `fairweight count`.

    Parameters
    ----------
    source
        A path or frame, a list of paths (or `NAME=FILE`; a NAME given again is another seed), or
        a dict from name to path or frame, or to a list of them, one per seed. Or a `TableSpec`,
        which says everything about tables and columns itself.
    options
        All statistics at once, in place of the arguments from `alpha` to `confirmatory`.
    predictions, scores
        For wide tables: variant to column, or to one column per seed. A name alone is that of
        every model's own table, as `prediction` and `score`.
    label, id, variant, seed, prediction, score, task, cluster, weight
        Names of the columns.
    count
        The column that says how many examples a row stands for (`GROUP BY ..., count(*)`); without
        it each row is one example.
    groups
        Columns and intersections (`["sex", "age", "sex*age"]`); by default every column that looks
        like a group.
    class_scores
        A pattern of columns that hold the probability of each class: `"p_*"`, where the star is
        the class; in a wide table a dict from variant to pattern.
    examples, train, variants
        Tables beside the predictions: of examples (groups, labels), of training labels, of models.
    query
        One SELECT on the table `data`, the rows of each table given; its result is audited. It
        can read nothing else.
    log_tasks, log_filter, allow_different, score_threshold
        Of evaluation logs: only these tasks, the filter of lm-eval's answers, settings that may
        differ; of detections: those with a lower score are left out (0.5 by default).
    outcome, better, denominator, range
        A number per example and model in place of label and prediction: its column (of wide
        tables: variant to column), "higher" or "lower", the column that it is divided by once
        both are summed (words of word errors), and the least and largest value it can have.
    labels_are
        "positions": labels and predictions name answers of multiple choice, no classes.
    repeat
        The column that tells repeated runs of one model apart; they are averaged.
    unlabelled
        There are no labels: report how often predictions changed and, with class probabilities,
        how far these lie apart (total variation, Kullback–Leibler, agreement on the first choice).
    missing
        "error" or "drop": what to do about examples that some variant lacks.
    drawn_limits
        "some": where groups × classes exceed 5,000, bootstrapped metrics by group (precision,
        kappa, balanced accuracy, ...) and their gaps are given without limits and tests, but for
        those that a policy names; "all" computes every one.
    zero_baseline
        What CEV and SDE do with a class in which the baseline makes no errors: "drop", "raise",
        "epsilon" or "absolute".
    margin
        The loss that matters, as a fraction: for it the report says whether it is ruled out, and
        how many examples that would take. `reference_shift` is its older name.
    group_error
        Share of group labels that may be wrong; the range of the corrected excess is then given.
    exact
        Exact McNemar tests instead of mid-p.
    members
        What several seeds of a variant are: models that were trained again ("retrained"), or runs
        of the same model ("repeated": decoding repeats, checkpoints). These are averaged within
        each example, and nothing is said about the method.
    filters, fixed_side
        The skip rules of bias amplification, and the level whose side is always watched.
    force
        Audit labels and predictions that do not look like classes (measurements, scores, right or
        wrong) all the same.
    confirmatory
        (metric, kind of row) pairs declared before looking, such as ("fnr", "group"): their
        families are corrected like accuracy by group (`Policy.confirmatory()`).
    explain
        What to look for beyond the audit: "exemplars", "slices", "properties", "individuals",
        "similarity".

    The other options are those of `audit`.

    Examples
    --------
    >>> import fairweight as fw
    >>> table = {"example_id": range(40), "label": ["a", "b"] * 20, "pred_dense": ["a", "b"] * 20,
    ...          "pred_int8": ["a", "b"] * 19 + ["b", "b"], "site": ["x"] * 20 + ["y"] * 20}
    >>> result = fw.audit_table(table, n_boot=200)
    >>> result.by_group.query("metric == 'accuracy'")[["group", "shift"]].values.tolist()
    [['site=x', 0.0], ['site=y', -0.05]]
    """
    given = {**locals(), "positive": _positive(pos_label, positive)}
    from fairweight.auditing.pipeline import audited

    names = [field.name for field in fields(TableSpec) if field.name in given]
    sources = source.sources if isinstance(source, TableSpec) else sources_of(source)
    columns = TableSpec(sources, **{name: given[name] for name in names})
    statistics = _statistics(given)
    tables = _once(source, columns, "TableSpec") if isinstance(source, TableSpec) else columns
    chosen = statistics if options is None else _once(options, statistics, "AuditOptions")
    if explain is not None:
        from fairweight.auditing.explain.explanations import ExplainRequest

        if not isinstance(explain, ExplainRequest):
            parts = (explain,) if isinstance(explain, str) else tuple(explain)
            explain = ExplainRequest(
                parts=parts, alpha=chosen.alpha, random_state=chosen.random_state
            )
    return Audit(audited(tables, chosen, explain=explain, command=command, progress=progress))


def _statistics(given: Mapping[str, Any]) -> AuditOptions:
    """The statistics among the arguments of a function, which have the names of the fields."""
    values = {field.name: given[field.name] for field in fields(AuditOptions)}
    if values["random_state"] is None:
        values["random_state"] = 0
    values["margin"] = the_margin(values["margin"], given["reference_shift"])
    return AuditOptions(**{**values, "confirmatory": tuple(values["confirmatory"])})


def _once(whole: Request, named: Request, kind: str) -> Request:
    """A request that is given whole; what is named beside it would be lost."""
    for name in changed(named):
        raise InputError(
            f"{name}= was given beside a whole {kind}; say it there: "
            f"dataclasses.replace(..., {name}=...)."
        )
    return whole


def tables_given(source: Any) -> TableSpec:
    """A TableSpec as it is, or tables whose columns have their usual names."""
    return source if isinstance(source, TableSpec) else TableSpec(sources_of(source))


def opened(
    source: Any, options: AuditOptions | None = None, progress: Progress | None = None
) -> Audit:
    """The audit that was given: made already, stored, or of tables."""
    if isinstance(source, Audit):
        return source
    tables = tables_given(source)
    stored = stored_audit(tables.paths)
    if stored is not None:
        return load(stored, lone=True)
    return audit_table(tables, options or AuditOptions(), progress=progress)


def gate(
    source: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    options: AuditOptions | None = None,
    *,
    require: Require = "all",
    looks: int | None = None,
    log: str | Path | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """Check compressed models against a policy: pass, fail or cannot tell.

    Parameters
    ----------
    source
        An audit, the folder or the `audit.json` of one, or predictions as `audit_table` takes them
        (a `TableSpec` where columns have names of their own).
    policy
        The path of a TOML file, a dictionary with the same keys, or a Policy.
    options
        The statistics, where predictions are given. What the policy names is declared beforehand.
    require, looks, log
        As for `Audit.gate`.
    """
    asked = checked_policy(policy)
    chosen = replace(options or AuditOptions(), confirmatory=asked.confirmatory())
    made = opened(source, chosen, progress)
    return made.gate(asked, require=require, looks=looks, log=log)


def plan(
    source: Any = None,
    options: AuditOptions | None = None,
    *,
    margin: float | None = None,
    power: float = 0.8,
    churn: float | Sequence[float] | None = None,
    n_groups: int | None = None,
    expected_loss: float = 0.0,
    looks: int = 1,
    policy: Policy | str | Path | Mapping[str, Any] | None = None,
    variant: str | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Before collecting: how many examples of each group does a margin take?

    Parameters
    ----------
    source
        A pilot, whose groups, sizes and churn are used: an audit, the folder of one, or predictions
        as `audit_table` takes them. None: churn and number of groups are assumed.
    options
        The statistics, where predictions are given.
    margin
        The loss to rule out, a fraction; by default 0.02 (2 points).
    power
        The probability with which a model without a loss should pass everywhere.
    churn
        The share of predictions that compression changes from right to wrong or back, or several;
        by default the pilot's, else 1, 3 and 6 %.
    n_groups
        How many groups must pass together, without a pilot.
    expected_loss
        The loss that every group truly has, below the margin.
    looks
        How often the examples may be gated in all.
    policy
        Plan for the rules of this policy, which needs a pilot.
    variant
        Whose churn counts, of several in a pilot; by default that of the one that changes most.

    Returns
    -------
    Plan
        `rows` has the sizes, `curve` the chance that all rows pass by examples of each.

    Examples
    --------
    A 2-point margin, 17 groups, 3 % of predictions change:

    >>> import fairweight as fw
    >>> fw.plan(margin=0.02, churn=0.03, n_groups=17)
    <Plan: 1,231 examples for each of 17 rows, power 0.8>
    """
    from fairweight.auditing.gate.sample_size import PlanRequest, plan_of, planned

    churns = () if churn is None else (churn,) if isinstance(churn, int | float) else tuple(churn)
    request = PlanRequest(margin, power, churns, n_groups, expected_loss, looks)
    asked = None if policy is None else checked_policy(policy)
    if source is None:
        if asked is not None:
            raise InputError(
                "--policy (policy=) needs a pilot with the groups that it names; give predictions, "
                "or --margin and --n-groups."
            )
        if variant is not None:
            raise InputError("--variant (variant=) is one of a pilot; give one, or leave it out.")
        return planned(request)
    chosen = options or AuditOptions()
    if asked is not None:
        chosen = replace(chosen, confirmatory=asked.confirmatory())
    return plan_of(opened(source, chosen, progress).result, request, asked, variant)


@dataclass(frozen=True)
class CountedCube:
    """A cube that was written, in numbers."""

    path: Path
    n_examples: int
    n_cells: int
    left_out: int  # small cells that were suppressed


SUPPRESS = 10


def count(
    source: Any,
    out: str | Path,
    *,
    suppress_small: bool = False,
    unit_key: str = "",
    parts: int = 1,
    workers: int | None = None,
    ray: str | None = None,
    progress: Progress | None = None,
) -> CountedCube:
    """Count predictions into a cube: how many examples share groups, label and predictions.

    Parameters
    ----------
    source
        Predictions as `audit_table` takes them, or a `TableSpec`. Frames of Spark and ibis, and
        with named groups also polars LazyFrames and DuckDB relations, are counted (outcomes:
        summed) where they are.
    out
        The Parquet file to write.
    suppress_small
        Leave out cells with fewer than 10 examples: a changed data set.
    unit_key
        Secret that keeps cluster names from being guessed; the same for all parts.
    parts, workers, ray
        Count a large Parquet data set in so many parts, by id, in processes or on a Ray cluster.
    """
    tables = tables_given(source)
    if tables.groups is not None and are_distant(tables, LAZY):
        from fairweight.tables.engines import counted_there

        tables = counted_there(tables)
    suppress = SUPPRESS if suppress_small else 0
    from fairweight.auditing.pipeline import as_asked

    summed_table = read_sums(tables)
    if summed_table is not None:
        cube = summed_table.cube
        left_out = write_cube(
            cube,
            out,
            groupings=summed_table.groupings,
            baseline=summed_table.baseline,
            suppress=suppress,
            key=unit_key,
        )
        return CountedCube(Path(out), cube.n_examples, cube.n_cells - left_out, left_out)
    if parts == 1 and ray is None:
        with align(tables) as aligned:
            if progress is not None:
                progress("counting", 0, 1)
            cube, groupings = as_asked(count_view(aligned), aligned.groupings, tables)
            cube = compact(summed(cube, aligned.baseline))
            if cube.has_classes:
                of_cube(cube).check(aligned.baseline, force=tables.force)
            left_out = write_cube(
                cube,
                out,
                groupings=groupings,
                baseline=aligned.baseline,
                suppress=suppress,
                key=unit_key,
            )
        return CountedCube(Path(out), cube.n_examples, cube.n_cells - left_out, left_out)
    from fairweight.runs.parts import count_in_parts

    if parts < 1:
        raise InputError(f"--parts {parts} cannot be used; give at least 1.")
    place = Path(out).parent / f".{Path(out).name}.parts"
    begun = place.exists()
    try:
        cubes = count_in_parts(
            tables,
            parts=parts,
            store=place,
            unit_key=unit_key,
            workers=workers,
            ray=ray,
            progress=progress,
        )
        cube, baseline, groupings = read_cubes([str(path) for path in cubes])
        cube, groupings = as_asked(cube, groupings, tables)
        if cube.has_classes:
            of_cube(cube).check(baseline, force=tables.force)
    except InputError:  # other files have other parts: nothing here is of use to them
        if not begun:
            shutil.rmtree(place, ignore_errors=True)
        raise
    left_out = write_cube(
        cube, out, groupings=groupings, baseline=baseline, suppress=suppress, units="digests"
    )
    shutil.rmtree(place, ignore_errors=True)
    return CountedCube(Path(out), cube.n_examples, cube.n_cells - left_out, left_out)


def count_sql(source: Any, dialect: str = "duckdb") -> WarehouseCount:
    """The count of predictions, and checks of identity, as SQL of a warehouse: nothing is read.

    Parameters
    ----------
    source
        Names of tables in the warehouse, as `{"dense": "logs.dense", "int8": "logs.int8"}`, or a
        `TableSpec` with their columns; groups must be named.
    dialect
        bigquery, clickhouse, databricks, duckdb, postgres, snowflake or trino.
    """
    from fairweight.tables.warehouse import warehouse_count

    return warehouse_count(tables_given(source), dialect)


def explain(
    source: Any,
    options: AuditOptions | None = None,
    *,
    parts: Sequence[str] | None = None,
    individual: str = "cluster",
    individual_group: str | None = None,
    dataset: str | None = None,
    data: str | Path | None = None,
    dataset_options: Mapping[str, Any] | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit, and look for what lost examples have in common. Associations only.

    Parameters
    ----------
    source
        Predictions as `audit_table` takes them, or a `TableSpec`.
    parts
        What to look for: "exemplars", "slices", "properties", "individuals", "classes",
        "similarity"; by default everything.
    individual
        Whose an example is: "cluster", or a column.
    individual_group
        A column by which individuals are compared.
    dataset, data, dataset_options
        The data set of the examples, whose images are measured; the folder with data sets; options
        of the data set.
    """
    from fairweight.auditing.explain.explanations import PARTS, ExplainRequest

    chosen = options or AuditOptions()
    measure = covariates = images = None
    if dataset is not None:
        from fairweight.auditing.explain.images import measure_dataset, training_covariates
        from fairweight.data import load as load_data

        images = load_data(dataset, data, **dict(dataset_options or {}))
        measure, covariates = measure_dataset(images), training_covariates(images)
    asked = ExplainRequest(
        parts=PARTS if parts is None else tuple(parts),
        by=individual,
        group=individual_group,
        measure=measure,
        images=images,
        covariates=covariates,
        alpha=chosen.alpha,
        random_state=chosen.random_state,
    )
    return audit_table(
        tables_given(source), chosen, explain=asked, command=command, progress=progress
    )


def exemplars(
    source: Any,
    options: AuditOptions | None = None,
    *,
    variants: Sequence[str] | None = None,
    kinds: Sequence[str] = EXEMPLAR_KINDS,
    percentiles: Sequence[float] = (90, 95, 99),
    tie_rule: str = "disjoint",
    fill: str | None = None,
    images: str | Path | None = None,
    most_images: int = 500,
    dataset: str | None = None,
    data: str | Path | None = None,
    dataset_options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Exemplars | LargestLosses:
    """Find the examples on which compressed models predict otherwise than dense ones.

    Of outcomes that are numbers: the examples that lose most (`LargestLosses`, its frame `rows`).

    Parameters
    ----------
    source
        Predictions as `audit_table` takes them, or a `TableSpec`.
    options
        Of these `alpha` and `random_state` are used.
    variants
        Only these variants; by default all but the baseline.
    kinds
        "modal", "unanimous", "taxicab", "jaccard", "surrogate" (single pairs).
    percentiles
        Cuts of the distance: 95 keeps the 5 % of examples that lie furthest apart, or lose most.
    tie_rule
        Who wins equally many votes: "disjoint" (no common prediction), "max", "min", "negative",
        "random", "baseline".
    fill
        "random" fills a cut with examples on which nothing differs.
    images, most_images
        A folder for images of modal exemplars, and of as many others with the same labels; of at
        most so many exemplars per variant. `Exemplars.images` says which.
    dataset, data, dataset_options
        Take images from this data set, not from a column `image` or `image_path`.
    overwrite
        Replace images too that fairweight did not write.
    """
    from fairweight.auditing.exemplars.exemplars import find, join
    from fairweight.auditing.exemplars.largest_losses import join as join_losses
    from fairweight.auditing.exemplars.largest_losses import largest_losses
    from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
    from fairweight.report.images import images_of, shown_of, write_all_images

    tables, chosen = tables_given(source), options or AuditOptions()
    if images is not None and most_images < 1:
        raise InputError(f"--most-images {most_images} cannot be used; give at least 1.")
    if images is not None and "modal" not in kinds:
        raise InputError("--images shows modal exemplars; add modal to --kind.")
    if images is None and (dataset is not None or dataset_options):
        raise InputError("--dataset and --dataset-option need --images DIR.")
    with align(tables, further=True) as aligned:
        names = tasks_of(aligned)
        numeric = aligned.outcome is not None and not aligned.outcome.binary
        if numeric and (images is not None or fill is not None or tuple(kinds) != EXEMPLAR_KINDS):
            raise InputError(
                "--kind, --fill and --images are about predictions that differ; of numbers "
                "(--outcome) the examples that lose most are found, by --percentile alone."
            )
        positive = None if aligned.has_task else tables.positive
        losses: list[LargestLosses] = []
        spoken: list[Vocabulary] = []
        parts: list[Exemplars] = []
        shown: list[Shown] = []
        for number, name in enumerate(names):  # one task in memory at a time
            if progress is not None:
                progress("finding exemplars", number, len(names))
            answers = from_aligned(aligned, name, positive=positive, numeric=True)
            for variant in variants or ():
                if variant not in answers.variants:
                    raise UnknownNameError("Compressed variant", variant, answers.variants)
            if variants is not None:
                kept = tuple(variant for variant in answers.variants if variant in variants)
                answers = replace(answers, variants=kept)
            if numeric:
                losses.append(largest_losses(answers, percentiles=percentiles))
                continue
            spoken.append(of_answers(answers))
            parts.append(
                find(
                    answers,
                    percentiles=percentiles,
                    kinds=kinds,
                    tie_rule=tie_rule,
                    fill=fill,
                    random_state=chosen.random_state,
                    alpha=chosen.alpha,
                )
            )
            if images is not None:
                shown += shown_of(parts[-1], answers, most_images, chosen.random_state)
        if numeric:
            return join_losses(losses)
        joined(spoken).check(aligned.baseline, force=tables.force)
        found = join(parts)
        if images is not None:
            from fairweight.data import load as load_data

            held = None
            if dataset is not None:
                held = load_data(dataset, data, **dict(dataset_options or {}))
            encoded = images_of(shown, aligned, tables.id, held)
            write_all_images(images, shown, encoded, overwrite=overwrite)
    return replace(found, images=tuple(shown))


def preflight(source: Any, options: AuditOptions | None = None) -> Preflight:
    """Before compressing: which classes, groups and examples are at risk?

    Parameters
    ----------
    source
        Predictions of the dense model, as `audit_table` takes them, or a `TableSpec`; several
        seeds tell more.
    options
        Of these `alpha` and `min_group` are used.
    """
    from fairweight.auditing.preflight.preflight import preflight_of

    return preflight_of(tables_given(source), options or AuditOptions())


def choose(
    source: Any,
    options: AuditOptions | None = None,
    *,
    objectives: Sequence[str] = (),
    require: Sequence[str] = (),
    worth: Mapping[str, float] | Sequence[str] = (),
    exclude: Sequence[str] = (),
    margin: float | None = None,
    confirm: Any = None,
    confirm_share: float | None = None,
    policy: Policy | str | Path | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Choice:
    """Choose among variants: by one number, a frontier, or what each objective is worth.

    Parameters
    ----------
    source
        Predictions or cubes as `audit_table` takes them, or a `TableSpec`.
    options
        Of these `n_boot`, `min_group` and `random_state` are used.
    objectives
        What should be best: metrics ("accuracy", "worst_group@sex", "recall@class=3") and columns
        of the variants table ("size_bytes"), with ":min" or ":max" where it is not known.
    require
        What a variant must keep to be chosen: "accuracy>=0.9", "size_bytes<=2e5".
    worth
        What one unit of an objective is worth; unnamed ones are worth 1. Without any, several
        objectives give a frontier.
    exclude
        Variants that cannot be chosen.
    margin
        How far below the best still counts as near it; 0.02 where the value is a share.
    confirm, confirm_share
        Predictions on other examples, or the share of the examples held out, to look at the choice
        again.
    policy
        Only variants that pass this policy qualify, as `gate` decides it on the same examples.
    """
    from fairweight.auditing.choose.choice import Wishes, choice_from

    pairs = [f"{k}={v!r}" for k, v in worth.items()] if isinstance(worth, Mapping) else worth
    chosen, tables, verdicts = options or AuditOptions(), tables_given(source), None
    if policy is not None:
        from fairweight.auditing.gate.verdict import limit_rows

        if confirm_share is not None:
            raise InputError(
                "--policy judges all examples, so none would be left for --confirm-share; confirm "
                "on another table: --confirm FILE."
            )
        asked = checked_policy(policy)
        made = audit_table(
            tables, replace(chosen, confirmatory=asked.confirmatory()), progress=progress
        )
        # The baseline loses nothing against itself; its size and latency count.
        own = limit_rows(made.variants, [made.result.baseline], asked)["decision"]
        verdicts = {made.result.baseline: next((d for d in own if d != "pass"), "pass")}
        verdicts |= made.gate(asked).variants
    return choice_from(
        tables,
        Wishes(objectives, require, pairs, exclude, margin, verdicts),
        chosen,
        confirm=confirm,
        confirm_share=confirm_share,
        progress=progress,
    )


def worst_group_shift(
    y_true: ArrayLike,
    y_pred: Mapping[str, ArrayLike],
    *,
    sensitive_features: Any,
    baseline: str | None = None,
    min_group: int = 10,
) -> float:
    """The least shift of accuracy over groups, for tools that gate on one number.

    Negative where some group lost. Takes what `audit` takes; with several compressed variants, the
    worst of all. Groups below `min_group` do not count; NaN if none is left.

    Examples
    --------
    >>> import fairweight as fw
    >>> y = [0, 1] * 20
    >>> fw.worst_group_shift(y, {"dense": y, "int8": [1, *y[1:]]},
    ...                      sensitive_features=["a"] * 20 + ["b"] * 20)
    -0.05
    """
    from fairweight.auditing.metrics.arrays import least_shift

    return least_shift(y_true, y_pred, sensitive_features, baseline=baseline, min_group=min_group)
