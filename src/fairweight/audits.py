"""An audit that was made: its frames of numbers, and the ways to show, save and load it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.auditing import archive
from fairweight.base.files import atomic_file, check_folder, settle
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.gate.verdict import Require, Verdict
    from fairweight.auditing.result import AuditResult
    from fairweight.report.before_after import By
    from fairweight.report.view_model import View
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
        """The rows of `results` over all examples."""
        return self._by("overall")

    @property
    def by_class(self) -> pd.DataFrame:
        """The rows of `results` of each class, by its true label."""
        return self._by("class")

    @property
    def by_group(self) -> pd.DataFrame:
        """The rows of `results` of each group, and of each intersection that was asked for."""
        return self._by("group")

    @property
    def per_seed(self) -> pd.DataFrame:
        """Accuracy and recall of every single member."""
        return self.result.per_seed

    @property
    def confusion(self) -> pd.DataFrame:
        """How often each class was predicted for each label, per variant and group."""
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
        if "exemplars" not in self.result.explanations:
            raise InputError("This audit has no exemplars; make it with explain=['exemplars'].")
        return self.result.explanations["exemplars"]

    @property
    def explanations(self) -> dict[str, pd.DataFrame]:
        """Every table of exemplars and explanations that was asked for, by its name."""
        return dict(self.result.explanations)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was dropped, assumed, unused or not estimable."""
        return self.result.notes

    def compare(
        self, metric: str = "accuracy", *, by: By = "group", variant: str | None = None
    ) -> pd.DataFrame:
        """A metric before and after compression, one row per group.

        Columns: `group, n, baseline, compressed, shift, low, high, finding`; before them `variant`
        and `task`, where there are several.

        Parameters
        ----------
        by
            "group", "class" or "overall".
        variant
            Only this one.

        Examples
        --------
        >>> import fairweight as fw
        >>> y, site = [0, 1] * 200, ["x"] * 200 + ["y"] * 200
        >>> made = fw.audit(y, {"dense": y, "int8": [0, 1] * 100 + [0, 0] * 100}, n_boot=100,
        ...                 sensitive_features={"site": site})
        >>> made.compare("accuracy")[["group", "n", "shift", "finding"]].values.tolist()
        [['site=x', 200, 0.0, 'no clear change'], ['site=y', 200, -0.5, 'loses more than the rest']]
        """
        from fairweight.report.before_after import before_after

        return before_after(self.result, metric, by=by, variant=variant)

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
        from fairweight.report.verdict import ShownVerdict

        verdict = decide(self.result, checked_policy(policy), require, looks=looks, log=log)
        return ShownVerdict.of(verdict)

    def save_html(self, path: str | Path, *, verdict: Verdict | None = None) -> Path:
        """Write the report as one page that needs no network, with a verdict of `gate` if given."""
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

    def eval_results(
        self,
        dataset_id: str,
        *,
        task_id: str = "default",
        variant: str | None = None,
        revision: str | None = None,
        source_url: str | None = None,
    ) -> str:
        """An entry for `.eval_results/NAME.yaml` of a model repository on Hugging Face, as YAML.

        Parameters
        ----------
        dataset_id
            The benchmark's id on the hub, such as "cais/hle"; an audit does not know it.
        task_id
            The task of the benchmark.
        variant
            Whose entry it is; needed where the audit has several.
        revision, source_url
            The commit of the benchmark, and where the report can be read, if known.
        """
        from fairweight.report.card import to_eval_results

        return to_eval_results(
            self.result, dataset_id, task_id, variant, revision=revision, source_url=source_url
        )

    def log_to(self, run: Any, *, verdict: Verdict | None = None) -> None:
        """Log the audit to an experiment tracker: numbers, a verdict, and the report.

        Parameters
        ----------
        run
            A run of MLflow (`mlflow.active_run()`; the store is the one that MLflow is set to) or
            of Weights & Biases (`wandb.init()`).
        verdict
            What `gate` decided, if anything; it becomes tags and leads the report.
        """
        from fairweight.report.tracking import log_to

        log_to(self.result, run, verdict)

    def to_json(self) -> str:
        """Everything as one JSON document: {"schema": 2, ..., "results": [every row]}.

        `load` reads it back without any other file. The `audit.json` that `save` writes is small:
        it leaves most rows to `tables/`.
        """
        from fairweight.report.brief import brief, finding_document
        from fairweight.report.finding import findings

        found = findings(self.result)
        return archive.to_json(self.result, finding_document(found, brief(self.result, found)))

    def save(
        self,
        directory: str | Path,
        *,
        verdict: Verdict | None = None,
        overwrite: bool = False,
        csv: bool = False,
    ) -> Path:
        """Write report.html, tables/ and audit.json; audit.json comes last and marks completion.

        Parameters
        ----------
        csv
            Write the tables as CSV too, beside Parquet.
        overwrite
            Replace files too that fairweight did not write, or that were changed since. Without
            it they are an error, and nothing is written.
        """
        from fairweight.report.html import save

        save(
            placed(self.result, directory),
            directory,
            verdict,
            lead=self.view,
            overwrite=overwrite,
            csv=csv,
        )
        return Path(directory)

    @cached_property
    def view(self) -> View:
        """What page, terminal and summaries show of it; made once."""
        from fairweight.report.view_model import view

        return view(self.result)

    def suppressed(self, least: int = 10) -> Audit:
        """The audit without numbers that rest on fewer than `least` examples, for publication."""
        from fairweight.auditing.suppression import suppressed

        return Audit(suppressed(self.result, least))

    def named(self, class_names: Mapping[str, str] | str | Path) -> Audit:
        """The audit with names of classes, for labels that are codes.

        Parameters
        ----------
        class_names
            Names by label, or a file of them: JSON, a CSV of two columns, or a text whose first
            line is the name of class 0.
        """
        from fairweight.tables.class_names import names_of_classes, read_class_names

        given = class_names if isinstance(class_names, Mapping) else read_class_names(class_names)
        known = names_of_classes(given, self.result.classes)
        origin = self.result.provenance
        options = {**origin.options, "class_names": known}
        return Audit(replace(self.result, provenance=replace(origin, options=options)))

    def _repr_html_(self) -> str:
        from fairweight.report.notebook import fragment

        return fragment(self.result)

    def __repr__(self) -> str:
        """What was compared, and the finding in one sentence."""
        from fairweight.report.finding import findings
        from fairweight.report.sentences import headline

        variants = ", ".join(self.result.variants)
        return (
            f"<Audit of {variants} against {self.result.baseline}, {self.result.n_examples:,} "
            f"examples: {headline(findings(self.result))}>"
        )


def placed(result: AuditResult, directory: str | Path) -> AuditResult:
    """The result with the folder that it is saved in, for the commands that read it there."""
    request = {**result.provenance.request, "out": str(directory)}
    return replace(result, provenance=replace(result.provenance, request=request))


def check_report(
    directory: str | Path,
    below: str = "",
    *,
    inputs: Sequence[str | None] = (),
    overwrite: bool = False,
    known: Sequence[str] = (),
) -> None:
    """Refuse, before a long audit, the folder that `Audit.save` would refuse after it.

    The audit goes into the folder `below` the directory, which may hold files of `known` names.
    """
    from fairweight.report.html import names

    files = (*known, *(Path(below, name).as_posix() for name in names()))
    check_folder(str(directory), inputs=inputs, overwrite=overwrite, names=files)


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
    return Audit(archive.load(folder, lone=lone))


def stored_audit(paths: Sequence[str]) -> Path | None:
    """The audit.json among these, itself or by its folder; None for predictions."""
    for name in paths:
        settle(name)
    stored = [path for name in paths if (path := archive.stored_at(name)) is not None]
    if stored and len(paths) > 1:
        raise InputError(
            f"'{stored[0]}' is a stored audit; give it alone, or give predictions only."
        )
    return stored[0] if stored else None


def checked_policy(policy: Policy | str | Path | Mapping[str, Any]) -> Policy:
    """The policy, refused now and not after a long audit if a metric cannot carry its rules."""
    from fairweight.auditing.gate.endpoints import demands
    from fairweight.specs.policy import read_policy

    found = read_policy(policy)
    demands(found)
    return found
