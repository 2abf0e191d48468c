"""What `import fairweight as fw` offers: audit arrays or tables, and look at the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairweight.base.types import Progress
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fairweight.auditing.explain.explanations import Asked
    from fairweight.auditing.gate.verdict import Require, Verdict
    from fairweight.auditing.result import AuditResult
    from fairweight.specs.policy import Policy


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
        from fairweight.report.sentences import finding_document

        return to_json(self.result, finding_document(self.result))

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

        save(self.result, directory, verdict, overwrite=overwrite)
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


def audit(
    y_true: ArrayLike,
    y_pred: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    sensitive_features: Any = None,
    sample_id: ArrayLike | None = None,
    y_score: Mapping[str, ArrayLike] | None = None,
    positive: Any = None,
    train: Any = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    alpha: float = 0.05,
    n_boot: int = 2000,
    correction: str = "holm",
    min_group: int = 10,
    random_state: int | None = None,
    **more: Any,
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
    train
        Training labels and groups as a table: signs of bias amplification and the rarer value.
    cluster
        Which examples belong together (one person, one writer).
    sample_weight
        Sampling weights.
    alpha, n_boot, correction, min_group, random_state
        Level of intervals, bootstrap replicates, "holm" | "bh" | "none", the least size of a group
        that is judged, and the seed of all random numbers (0 if None).
    **more
        Further options of `audit_table`: `groups`, `members`, `group_error`, ...

    Examples
    --------
    >>> import fairweight as fw
    >>> result = fw.audit([0, 1] * 50, {"dense": [0, 1] * 50, "int8": [0, 1] * 49 + [1, 1]},
    ...                   sensitive_features={"half": ["first"] * 50 + ["second"] * 50}, n_boot=200)
    >>> row = result.overall.query("metric == 'accuracy'").iloc[0]
    >>> float(row["shift"])
    -0.01
    """
    from fairweight.tables.frames import wide_table

    table, columns = wide_table(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_id=sample_id,
        y_score=y_score,
        cluster=cluster,
        sample_weight=sample_weight,
    )
    return audit_table(
        table,
        baseline=baseline if baseline is not None else next(iter(columns.predictions)),
        predictions=columns.predictions,
        scores=columns.scores or None,
        groups=more.pop("groups", columns.groups),
        weight="weight" if sample_weight is not None else None,
        cluster="cluster" if cluster is not None else None,
        positive=positive,
        train=train,
        alpha=alpha,
        n_boot=n_boot,
        correction=correction,
        min_group=min_group,
        random_state=random_state,
        **more,
    )


def audit_table(
    source: Any,
    *,
    baseline: str | None = None,
    predictions: Mapping[str, str | Sequence[str]] | None = None,
    label: str = "label",
    id: str = "example_id",
    groups: str | Sequence[str] | None = None,
    scores: Mapping[str, str | Sequence[str]] | None = None,
    task: str | None = None,
    examples: Any = None,
    train: Any = None,
    variants: Any = None,
    positive: Any = None,
    cluster: str | None = None,
    weight: str | None = None,
    count: str | None = None,
    variant: str = "variant",
    seed: str = "seed",
    prediction: str = "prediction",
    score: str = "score",
    score_classes: Sequence[Any] | None = None,
    missing: Literal["error", "drop"] = "error",
    alpha: float = 0.05,
    n_boot: int = 2000,
    correction: str = "holm",
    min_group: int = 10,
    random_state: int | None = None,
    zero_baseline: str = "drop",
    margin: float = 0.02,
    reference_shift: float | None = None,
    group_error: float = 0.0,
    exact: bool = False,
    members: str = "retrained",
    filters: bool = True,
    fixed_side: str | None = None,
    force: bool = False,
    confirmatory: Sequence[tuple[str, str]] = (),
    explain: Asked | Sequence[str] | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit prediction tables: files, frames, queries, or cubes written by `fairweight count`.

    Parameters
    ----------
    source
        A path or frame, a list of paths (or `NAME=FILE`; a NAME given again is another seed), or
        a dict from name to path or frame, or to a list of them, one per seed.
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

    result = audited(
        source,
        {
            "baseline": baseline,
            "predictions": predictions,
            "scores": scores,
            "label": label,
            "id": id,
            "variant": variant,
            "seed": seed,
            "prediction": prediction,
            "score": score,
            "task": task,
            "groups": groups,
            "weight": weight,
            "cluster": cluster,
            "count": count,
            "examples": examples,
            "train": train,
            "variants": variants,
            "missing": missing,
            "score_classes": score_classes,
        },
        {
            "alpha": alpha,
            "n_boot": n_boot,
            "correction": correction,
            "min_group": min_group,
            "random_state": random_state,
            "zero_baseline": zero_baseline,
            "margin": margin if reference_shift is None else reference_shift,
            "group_error": group_error,
            "exact": exact,
            "members": members,
            "confirmatory": tuple(confirmatory),
        },
        {
            "positive": positive,
            "filters": filters,
            "fixed_side": fixed_side,
            "force": force,
            "command": command,
        },
        progress,
        _looked_for(explain, alpha, random_state),
    )
    return Audit(result)


def _looked_for(
    explain: Asked | Sequence[str] | None, alpha: float, random_state: int | None
) -> Asked | None:
    if explain is None:
        return None
    from fairweight.auditing.explain.explanations import Asked

    if isinstance(explain, Asked):
        return explain
    parts = (explain,) if isinstance(explain, str) else tuple(explain)
    return Asked(parts=parts, alpha=alpha, random_state=random_state or 0)


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
