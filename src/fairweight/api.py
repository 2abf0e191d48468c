"""What `import fairweight as fw` offers: audit arrays or tables, and look at the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import ARRAYS, Columns, SourceRef, TableSpec, sources_of

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairweight.auditing.choose.choice import Choice
    from fairweight.auditing.exemplars.exemplars import Exemplars
    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.auditing.gate.verdict import Require, Verdict
    from fairweight.auditing.prediction_matrix import Answers
    from fairweight.auditing.preflight.preflight import Preflight
    from fairweight.auditing.result import AuditResult
    from fairweight.base.types import Progress
    from fairweight.report.images import Shown
    from fairweight.specs.policy import Policy

EXEMPLAR_KINDS = ("modal", "unanimous", "taxicab", "surrogate")


class Audit:
    """The result of an audit: frames of numbers, and ways to show them.

    `results` holds every number with its interval and test; `overall`, `by_class` and `by_group`
    are filters of it with the same columns.
    """

    def __init__(self, result: AuditResult) -> None:
        self.result = result

    @property
    def results(self) -> pd.DataFrame:
        """One row per variant, metric, group, class and task: the results contract."""
        return self.result.results

    def _by(self, *levels: str) -> pd.DataFrame:
        chosen = self.results["by"].isin(levels)
        return self.results[chosen].reset_index(drop=True)

    @property
    def overall(self) -> pd.DataFrame:
        return self._by("overall")

    @property
    def by_class(self) -> pd.DataFrame:
        return self._by("class")

    @property
    def by_group(self) -> pd.DataFrame:
        return self._by("group")

    @property
    def per_seed(self) -> pd.DataFrame:
        """Accuracy and recall of every single member."""
        return self.result.per_seed

    @property
    def confusion(self) -> pd.DataFrame:
        return self.result.confusion

    @property
    def reliability(self) -> pd.DataFrame:
        """Score against outcome in bins; the contributions of a group add up to its ECE."""
        return self.result.reliability

    @property
    def data(self) -> pd.DataFrame:
        """Examples per split, class and group."""
        return self.result.data

    @property
    def power(self) -> pd.DataFrame:
        """What each confirmatory row could find, the examples it takes, what is not ruled out."""
        return self.result.power

    @property
    def concentration(self) -> pd.DataFrame:
        """Who bears the lost answers."""
        return self.result.concentration

    @property
    def group_error(self) -> pd.DataFrame:
        """Excess shifts corrected for wrong group labels, if an error was declared."""
        return self.result.group_error

    @property
    def lead(self) -> pd.DataFrame:
        """Shifts and excesses with limits that hold for all families and variants at once."""
        return self.result.lead

    @property
    def bounds(self) -> pd.DataFrame:
        """One-sided limits of everything that a gate can ask for."""
        return self.result.bounds

    @property
    def left_out(self) -> pd.DataFrame:
        """Examples that some variant lacks, in the rows that they would be in."""
        return self.result.left_out

    @property
    def variants(self) -> pd.DataFrame | None:
        """The variants table that was given."""
        return self.result.variants_table

    @property
    def exemplars(self) -> pd.DataFrame:
        """The examples on which the populations differ most (`explain=["exemplars"]`)."""
        return self._explanation("exemplars", "exemplars")

    @property
    def explanations(self) -> dict[str, pd.DataFrame]:
        """Every table of exemplars and explanations that was asked for, by its name."""
        return dict(self.result.explanations)

    def _explanation(self, name: str, part: str) -> pd.DataFrame:
        if name not in self.result.explanations:
            raise InputError(
                f"Nobody asked for {part} in this audit; say explain=[{part!r}] when it is made."
            )
        return self.result.explanations[name]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was dropped, assumed, unused or not estimable."""
        return self.result.notes

    def worst_group_shift(self, variant: str | None = None) -> float:
        """The least shift of accuracy over all groups of all single columns."""
        from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT

        rows = self.results
        columns = [name for name in self.result.groupings if name in self.result.single_columns]
        chosen = rows[(rows["metric"] == WORST_GROUP_SHIFT) & rows["group"].isin(columns)]
        chosen = chosen[chosen["task"].isna()]
        if variant is not None:
            chosen = chosen[chosen["variant"] == variant]
        return float(chosen["compressed"].min())

    def gate(
        self,
        policy: Policy | str | Path | Mapping[str, Any],
        *,
        require: Require = "all",
        looks: int | None = None,
        log: str | Path | None = None,
    ) -> Verdict:
        """Check the audit against a policy: pass, fail or cannot tell, with a reason per row.

        Parameters
        ----------
        policy
            The path of a TOML file, a dictionary with the same keys, or a Policy.
        require
            "all" variants must pass, or "any" one of them.
        looks, log
            How often these examples may be gated in all, and the file that counts: each look errs
            with 5 % / looks.
        """
        from fairweight.auditing.gate.verdict import decide
        from fairweight.specs.policy import read_policy

        return decide(self.result, read_policy(policy), require, looks=looks, log=log)

    def save_html(self, path: str | Path, *, verdict: Verdict | None = None) -> Path:
        """Write the report as one page that needs no network, with a verdict of `gate` if given."""
        from fairweight.base.files import atomic_file
        from fairweight.report.html import render

        target = Path(path)
        page = render(self.result, verdict)
        with atomic_file(target, "w") as file:
            file.write(page)
        return target

    def to_markdown(self, *, verdict: Verdict | None = None) -> str:
        """A summary for a pull request; a verdict of `gate` leads where one is given."""
        from fairweight.report.markdown import to_markdown

        return to_markdown(self.result, verdict)

    def card(
        self,
        variant: str | None = None,
        *,
        base_model: str | None = None,
        relation: str | None = None,
    ) -> str:
        """A Hugging Face model card of one variant, as Markdown with YAML metadata.

        Parameters
        ----------
        variant
            Whose card it is; needed where the audit has several.
        base_model
            The id of the dense model on the hub.
        relation
            "quantized", "finetune", "adapter" or "merge"; by default what the variants table says.
        """
        from fairweight.report.card import to_card

        return to_card(self.result, variant, base_model=base_model, relation=relation)

    def to_json(self) -> str:
        """Everything as one JSON document: {"schema": 2, ..., "results": [every row]}.

        `load` reads it back without any other file. The `audit.json` that `save` writes is small:
        it leaves most rows to `tables/`.
        """
        from fairweight.auditing.archive import to_json
        from fairweight.report.finding import findings
        from fairweight.report.sentences import finding_document

        return to_json(self.result, finding_document(findings(self.result)))

    def save(
        self, directory: str | Path, *, verdict: Verdict | None = None, overwrite: bool = False
    ) -> Path:
        """Write report.html, tables/ and audit.json; audit.json comes last and marks completion.

        Parameters
        ----------
        overwrite
            Replace files too that fairweight did not write, or that were changed since. Without
            it they are an error, and nothing is written.
        """
        from fairweight.report.html import save

        save(placed(self.result, directory), directory, verdict, overwrite=overwrite)
        return Path(directory)

    def suppressed(self, least: int = 10) -> Audit:
        """The audit without numbers that rest on fewer than `least` examples, for publication."""
        from fairweight.auditing.suppression import suppressed

        return Audit(suppressed(self.result, least))

    def _repr_html_(self) -> str:
        from fairweight.report.notebook import fragment

        return fragment(self.result)

    def __repr__(self) -> str:
        variants = ", ".join(self.result.variants)
        return (
            f"<Audit of {variants} against {self.result.baseline}: "
            f"{self.result.n_examples:,} examples, {len(self.results):,} rows of results>"
        )


def placed(result: AuditResult, directory: str | Path) -> AuditResult:
    """The result with the folder that it is saved in, for the commands that read it there."""
    request = {**result.provenance.request, "out": str(directory)}
    return replace(result, provenance=replace(result.provenance, request=request))


def audit(
    y_true: ArrayLike,
    y_pred: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    sensitive_features: Any = None,
    sample_id: ArrayLike | None = None,
    y_score: Mapping[str, ArrayLike] | None = None,
    positive: Any = None,
    groups: str | Sequence[str] | None = None,
    train: Any = None,
    variants: Any = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    score_classes: Sequence[Any] | None = None,
    force: bool = False,
    alpha: float = AuditOptions.alpha,
    n_boot: int = AuditOptions.n_boot,
    correction: str = AuditOptions.correction,
    min_group: int = AuditOptions.min_group,
    random_state: int | None = None,
    zero_baseline: str = AuditOptions.zero_baseline,
    margin: float = AuditOptions.margin,
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
        Variant to predictions, (n,) or (n, seeds). The first is the baseline unless named.
    baseline
        Which variant is the dense model.
    sensitive_features
        Groups: an array, a Series, a dict of arrays or a DataFrame, as in fairlearn.
    y_score
        Variant to scores: (n,) of the positive class (binary) or the predicted one, or (n, classes)
        with classes in sorted order.
    positive
        The positive class of binary labels; 1, True, "1", "yes" and "true" need not be named.
    groups
        Features and intersections (`["sex", "sex*age"]`); by default every feature.
    train
        Training labels and groups as a table: signs of bias amplification and the rarer value.
    cluster
        Which examples belong together (one person, one writer).
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
    from fairweight.tables.frames import digest_of_frame, wide_table

    table, columns = wide_table(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_id=sample_id,
        y_score=y_score,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    tables = TableSpec(
        (SourceRef(frame=ARRAYS, digest=digest_of_frame(table), held=table),),
        baseline=baseline if baseline is not None else next(iter(columns.predictions)),
        predictions=columns.predictions,
        scores=columns.scores or None,
        groups=columns.groups if groups is None else groups,
        weight="weight" if sample_weight is not None else None,
        cluster="cluster" if cluster is not None else None,
        train=train,
        variants=variants,
        positive=positive,
        score_classes=score_classes,
        force=force,
    )
    options = AuditOptions(
        alpha=alpha,
        members=members,
        n_boot=n_boot,
        correction=correction,
        min_group=min_group,
        random_state=0 if random_state is None else random_state,
        exact=exact,
        margin=margin if reference_shift is None else reference_shift,
        group_error=group_error,
        zero_baseline=zero_baseline,
        fixed_side=fixed_side,
        filters=filters,
        confirmatory=tuple(confirmatory),
    )
    return audit_table(tables, options, explain=explain, command=command, progress=progress)


def audit_table(
    source: Any,
    options: AuditOptions | None = None,
    *,
    baseline: str | None = None,
    predictions: Columns | None = None,
    label: str = TableSpec.label,
    id: str = TableSpec.id,
    groups: str | Sequence[str] | None = None,
    scores: Columns | None = None,
    task: str | None = None,
    examples: Any = None,
    train: Any = None,
    variants: Any = None,
    positive: Any = None,
    cluster: str | None = None,
    weight: str | None = None,
    count: str | None = None,
    variant: str = TableSpec.variant,
    seed: str = TableSpec.seed,
    prediction: str = TableSpec.prediction,
    score: str = TableSpec.score,
    score_classes: Sequence[Any] | None = None,
    missing: str = TableSpec.missing,
    force: bool = False,
    alpha: float = AuditOptions.alpha,
    n_boot: int = AuditOptions.n_boot,
    correction: str = AuditOptions.correction,
    min_group: int = AuditOptions.min_group,
    random_state: int | None = None,
    zero_baseline: str = AuditOptions.zero_baseline,
    margin: float = AuditOptions.margin,
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
        For wide tables: variant to column, or to one column per seed.
    label, id, variant, seed, prediction, score, task, cluster, weight
        Names of the columns.
    count
        The column that says how many examples a row stands for (`GROUP BY ..., count(*)`); without
        it each row is one example.
    groups
        Columns and intersections (`["sex", "age", "sex*age"]`); by default every column that looks
        like a group.
    examples, train, variants
        Tables beside the predictions: of examples (groups, labels), of training labels, of models.
    missing
        "error" or "drop": what to do about examples that some variant lacks.
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
        of the same model ("repeated": decoding repeats, checkpoints). The numbers are the same;
        scope `method` is then about running these models again, not about training.
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
    from fairweight.auditing.pipeline import audited

    columns = TableSpec(
        source.sources if isinstance(source, TableSpec) else sources_of(source),
        baseline=baseline,
        examples=examples,
        train=train,
        variants=variants,
        missing=missing,
        id=id,
        label=label,
        predictions=predictions,
        scores=scores,
        groups=groups,
        task=task,
        cluster=cluster,
        weight=weight,
        count=count,
        variant=variant,
        seed=seed,
        prediction=prediction,
        score=score,
        positive=positive,
        score_classes=score_classes,
        force=force,
    )
    statistics = AuditOptions(
        alpha=alpha,
        members=members,
        n_boot=n_boot,
        correction=correction,
        min_group=min_group,
        random_state=0 if random_state is None else random_state,
        exact=exact,
        margin=margin if reference_shift is None else reference_shift,
        group_error=group_error,
        zero_baseline=zero_baseline,
        fixed_side=fixed_side,
        filters=filters,
        confirmatory=tuple(confirmatory),
    )
    tables = _once(source, columns, "TableSpec") if isinstance(source, TableSpec) else columns
    chosen = statistics if options is None else _once(options, statistics, "AuditOptions")
    looked_for = _looked_for(explain, chosen)
    return Audit(audited(tables, chosen, explain=looked_for, command=command, progress=progress))


Given = TypeVar("Given", TableSpec, AuditOptions)


def _once(whole: Given, named: Given, kind: str) -> Given:
    """A request that is given whole; what is named beside it would be lost."""
    from fairweight.base.fields import changed

    for name in changed(named):
        raise InputError(
            f"{name}= was given beside a whole {kind}; say it there: "
            f"dataclasses.replace(..., {name}=...)."
        )
    return whole


def _looked_for(
    explain: ExplainRequest | Sequence[str] | None, options: AuditOptions
) -> ExplainRequest | None:
    if explain is None:
        return None
    from fairweight.auditing.explain.explanations import ExplainRequest

    if isinstance(explain, ExplainRequest):
        return explain
    parts = (explain,) if isinstance(explain, str) else tuple(explain)
    return ExplainRequest(parts=parts, alpha=options.alpha, random_state=options.random_state)


def tables_given(source: Any) -> TableSpec:
    """A TableSpec as it is, or tables whose columns have their usual names."""
    return source if isinstance(source, TableSpec) else TableSpec(sources_of(source))


def load(folder: str | Path, *, lone: bool = False) -> Audit:
    """The audit that `fairweight audit` or `Audit.save` wrote to a folder.

    Parameters
    ----------
    folder
        The folder, one that holds it under the name `audit`, or the `audit.json` itself with its
        `tables/` beside it.
    lone
        Take an `audit.json` without its tables: enough for `gate`, as far as its rows reach.
    """
    from fairweight.auditing.archive import load

    return Audit(load(folder, lone=lone))


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


def stored_audit(paths: Sequence[str]) -> Path | None:
    """The audit.json among these, itself or by its folder; None for predictions."""
    from fairweight.auditing.archive import stored_at
    from fairweight.base.files import settle

    for name in paths:
        settle(name)
    stored = [path for name in paths if (path := stored_at(name)) is not None]
    if stored and len(paths) > 1:
        raise InputError(
            f"'{stored[0]}' is an audit that was made; give it alone, or only predictions."
        )
    return stored[0] if stored else None


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


def checked_policy(policy: Policy | str | Path | Mapping[str, Any]) -> Policy:
    """The policy, refused now and not after a long audit if a metric cannot carry its rules."""
    from fairweight.auditing.gate.endpoints import demands
    from fairweight.specs.policy import read_policy

    found = read_policy(policy)
    demands(found)
    return found


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
        Predictions as `audit_table` takes them, or a `TableSpec`.
    out
        The Parquet file to write.
    suppress_small
        Leave out cells with fewer than 10 examples: a changed data set.
    unit_key
        Secret that keeps cluster names from being guessed; the same for all parts.
    parts, workers, ray
        Count a large Parquet data set in so many parts, by id, in processes or on a Ray cluster.
    """
    from fairweight.auditing.counts.cube_file import read_cubes, write_cube
    from fairweight.auditing.counts.group_by import count as count_view
    from fairweight.auditing.vocabulary import of_cube
    from fairweight.tables.align import align

    tables = tables_given(source)
    suppress = SUPPRESS if suppress_small else 0
    if parts == 1 and ray is None:
        with align(tables) as aligned:
            if progress is not None:
                progress("counting", 0, 1)
            cube = count_view(aligned)
            of_cube(cube).check(aligned.baseline, force=tables.force)
            left_out = write_cube(
                cube,
                out,
                groupings=aligned.groupings,
                baseline=aligned.baseline,
                suppress=suppress,
                key=unit_key,
            )
        return CountedCube(Path(out), cube.n_examples, cube.n_cells - left_out, left_out)
    import shutil

    from fairweight.runs.parts import count_in_parts

    if parts < 1:
        raise InputError(f"--parts {parts} cannot be used; give at least 1.")
    place = Path(out).parent / f".{Path(out).name}.parts"
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
    of_cube(cube).check(baseline, force=tables.force)
    left_out = write_cube(
        cube, out, groupings=groupings, baseline=baseline, suppress=suppress, units="digests"
    )
    shutil.rmtree(place, ignore_errors=True)
    return CountedCube(Path(out), cube.n_examples, cube.n_cells - left_out, left_out)


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
    """Audit, and look for what goes along with the losses. Associations only.

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
) -> Exemplars:
    """Find the examples on which compressed models predict otherwise than dense ones.

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
        Cuts of the distance: 95 keeps the 5 % of examples that lie furthest apart.
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
    from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
    from fairweight.auditing.vocabulary import Vocabulary, joined, of_answers
    from fairweight.report.images import images_of, shown_of, write_all_images
    from fairweight.tables.align import align

    tables, chosen = tables_given(source), options or AuditOptions()
    if images is not None and most_images < 1:
        raise InputError(f"--most-images {most_images} cannot be used; give at least 1.")
    if images is not None and "modal" not in kinds:
        raise InputError("--images shows modal exemplars; add modal to --kind.")
    if images is None and (dataset is not None or dataset_options):
        raise InputError("--dataset and --dataset-option need --images DIR.")
    with align(tables, further=True) as aligned:
        names = tasks_of(aligned)
        positive = None if aligned.has_task else tables.positive
        spoken: list[Vocabulary] = []
        parts: list[Exemplars] = []
        shown: list[Shown] = []
        for number, name in enumerate(names):  # one task in memory at a time
            if progress is not None:
                progress("finding exemplars", number, len(names))
            answers = _only(from_aligned(aligned, name, positive=positive), variants)
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


def _only(answers: Answers, names: Sequence[str] | None) -> Answers:
    """The answers with these compressed variants alone."""
    if names is None:
        return answers
    for name in names:
        if name not in answers.variants:
            raise UnknownNameError("Compressed variant", name, answers.variants)
    return replace(answers, variants=tuple(v for v in answers.variants if v in names))


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
    """
    from fairweight.auditing.choose.choice import Wishes, choice_from

    pairs = [f"{k}={v!r}" for k, v in worth.items()] if isinstance(worth, Mapping) else worth
    return choice_from(
        tables_given(source),
        Wishes(objectives, require, pairs, exclude, margin),
        options or AuditOptions(),
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
