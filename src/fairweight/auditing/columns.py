"""Every column of every table: its type and its meaning, in one line each.

`auditing/schema.py` makes frames and checks of this list, docs/generate_reference.py the page
docs/reference/results.md. A new column is a line here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from inspect import cleandoc
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["text", "number", "whole", "truth", "mixed"]


@dataclass(frozen=True)
class Column:
    """A column; `required`: no cell is empty."""

    name: str
    kind: Kind
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class Table:
    """A table as it is documented, written and checked.

    about   what its rows are, in Markdown
    listed  a line per column: its name, its kind (`!`: never empty) and its meaning
    of      every `audit`, an `explanation` in it, or something beside audits
    more    which further columns stand behind or between these
    later   audits of version 0.1.0 do not have it
    """

    name: str
    about: str
    listed: str = field(repr=False)
    of: Literal["audit", "explanation", "other"] = "explanation"
    more: str = ""
    later: bool = False

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        joined: list[str] = []
        for line in cleandoc(self.listed).split("\n"):
            if line.startswith(" "):  # it goes on with the meaning before it
                joined[-1] += f" {line.strip()}"
            else:
                joined.append(line)
        made = []
        for line in joined:
            name, kind, meaning = line.split(None, 2)
            known: Any = kind.removesuffix("!")
            made.append(Column(name, known, meaning, kind.endswith("!")))
        return tuple(made)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        return {column.name: column.kind for column in self.columns}

    def of_kind(self, *kinds: Kind) -> frozenset[str]:
        """The columns of some kinds."""
        return frozenset(column.name for column in self.columns if column.kind in kinds)


# The gate's limits: one-sided errors of GATE_ALPHA / j, for Holm's steps down to j of DIVISORS.
GATE_ALPHA = 0.05
DIVISORS: tuple[int, ...] = (1, 2, 3, 4, 6, 10, 20, 50, 200, 1000)
# Of very many rows, or of many comparisons, fewer are computed: the next wider limits stand for
# those between, so that a gate passes and fails later, never sooner.
SOME_DIVISORS, FEW_DIVISORS = (1, 4, 20, 200, 1000), (1, 50, 1000)
_LIMITS = "\n        ".join(
    f"{side}_{j}  number  {end} limit with a one-sided error of 5 %{shared}"
    for j in DIVISORS
    for shared in (f" / {j:,}" if j > 1 else "",)
    for side, end in (("low", "lower"), ("high", "upper"))
)

LISTED: tuple[Table, ...] = (
    # Of every audit.
    Table(
        "results",
        "One row per variant, metric, group, class, task and scope. All columns are always "
        "there. `audit.overall`, `audit.by_class` and `audit.by_group` are filters of it; with "
        "`--csv` also on disk: `overall.csv`, `by_class.csv`, `by_group.csv` (with "
        "`group*class`) and `groupings.csv`.",
        """
        variant             text!   the compressed variant that is compared with the baseline
        metric              text!   a name from [Metrics](metrics.md)
        by                  text!   what the row is about: `overall`, `class`, `group`,
                                    `group*class`, or `grouping` (a property of a whole group
                                    column, such as a gap)
        group               text    which group: `sex=Female`, `sex=Female & age=old`; for
                                    `grouping` rows the column: `sex`, `sex*age`
        class               text    which class
        task                text    which of several labels; missing where there is one task, and in
                                    rows that hold the mean over tasks
        scope               text    `model`: these models are fixed, examples are sampled: does what
                                    is shipped treat anyone worse? `method`: the members are a
                                    sample too: does this compression do so beyond retraining? (With
                                    `--members repeated`: does it hold when the same models are run
                                    again?) Populations have every row in both scopes, one pair only
                                    in `model`
        aggregation         text    with several members (seeds): `seeds_first` computes per member
                                    and then averages, `rates_first` averages rates and then
                                    computes, `pairs` averages over pairs of members
        n                   whole   distinct examples in the denominator
        n_clusters          whole   clusters among them, with `--cluster`; of two columns that with
                                    fewer of them
        n_seeds_baseline    whole   members of the baseline
        n_seeds_compressed  whole   members of the compressed variant
        baseline            number  the metric in the baseline (missing for comparison metrics)
        baseline_low        number  lower end of its own interval
        baseline_high       number  upper end
        compressed          number  the metric in the compressed variant; for comparison metrics
                                    their value
        compressed_low      number  lower end of its own interval
        compressed_high     number  upper end
        shift               number  compressed − baseline, signed (missing for comparison metrics)
        ci_low              number  lower end of the interval of the shift, or of a comparison's
                                    value; it holds for this row alone
        ci_high             number  upper end
        interval            text    how the interval was made: `tango`, `wilson`, a bootstrap with
                                    its replicates, by clusters, …; or `none` and why. Of
                                    calibration errors it also says what a calibrated model of this
                                    size has
        p_value             number  paired test of "no shift", uncorrected
        p_adjusted          number  the same after the correction of its family
        family              text    which rows are corrected together, whether they are
                                    `confirmatory` or `exploratory`, and by which method; missing
                                    for rows outside families (small groups, missing values)
        n_family            whole   how many rows that is
        sim_low             number  lower end of the simultaneous interval: these limits hold for
                                    the whole family at once, so whatever is said about the *worst*
                                    row of a table uses them. Shifts of rates in scope `model`: the
                                    row's own interval at the level that random signs give for the
                                    largest of the family; everything else: the level α / `n_family`
        sim_high            number  upper end
        excess_shift        number  shift of this class or group − shift of all others in its
                                    column: who pays *more*
        excess_low          number  lower end of its interval
        excess_high         number  upper end
        excess_p            number  the least level at which these limits exclude 0; it assumes no
                                    equal churn of groups; uncorrected
        excess_p_adjusted   number  the same for the largest excess of the whole family, by random
                                    signs that keep every group's own churn (scope `method`: Holm)
        excess_sim_low      number  lower end of the simultaneous interval of the excess: in scope
                                    `model` it excludes 0 exactly where `excess_p_adjusted` is at
                                    most α
        excess_sim_high     number  upper end
        level               text    the group that `worst_group`, `worst_group_shift`,
                                    `heterogeneity` and the like speak of
        equivalent          truth   whether the simultaneous limits of the shift lie within ± the
                                    margin (`--margin`)
        loss_ruled_out      truth   whether a loss beyond the margin is ruled out, by a one-sided
                                    limit that holds for the whole family at once. False means
                                    *open*, not that the loss is there
        debiased            number  CEV, SDE and their `_pp` forms only: 2·value − mean of bootstrap
                                    replicates, which takes off most of the noise that these sums of
                                    squares collect in small samples; missing if negative
        matched             number  how far retraining with compression moves this number, whatever
                                    the direction: the median, over random choices, of its size
                                    between k baseline and k compressed members, k = min(half of the
                                    baseline's members, the compressed ones). Of `shift`, or of
                                    `compressed` where there is no shift; the same in both scopes;
                                    needs 5 members of the baseline
        noise_floor         number  how far retraining alone (with `--members repeated`: the same
                                    model run again) moves it: 95 % of changes between two sets of k
                                    baseline members are smaller. Context, it decides nothing; needs
                                    5 members of the baseline
        p_retraining        number  test that baseline and compressed members could be exchanged
                                    (paired ones within their pairs); uncorrected; needs 20 ways to
                                    relabel them. K pairs cannot give less than 2/2ᴷ: 0.06 for five,
                                    0.03 for six
        churn               number  share of predictions that became wrong or right: lost and gained
                                    together. Hard groups have more, in both directions
        status              text    `ok`; `small_group: n < N` (shown, not judged); `not_estimable:
                                    reason`. After `too few changed predictions (k)` and `N changed
                                    predictions count as k` the values are there, and limits of the
                                    shift are not ([why](../statistics.md#few-changed-predictions))
        """,
        of="audit",
    ),
    Table(
        "per_seed",
        "Every metric of every single member. Comparison metrics (`cev_pp`, `flips`, …) stand "
        "with each compressed member, against the baseline. Of one pair it holds the two "
        "models.",
        """
        variant  text!   the variant, the baseline too
        seed     text!   the member
        task     text    as in results
        metric   text!   as in results, where it can be estimated; all but `heterogeneity`
        by       text!   as in results
        group    text    the group
        class    text    the class
        n        whole   examples
        value    number  the metric of this member
        """,
        of="audit",
    ),
    Table(
        "confusion",
        "How often each class was predicted for each true class, by every member.",
        """
        variant     text!   the variant, the baseline too
        seed        text!   the member
        task        text    as in results
        label       text!   true class
        prediction  text    predicted class; missing for abstentions
        count       number  examples (weighted, with `--weight`)
        """,
        of="audit",
    ),
    Table(
        "reliability",
        "Scores against outcomes, in bins; only with scores.",
        """
        variant                   text!   the variant, the baseline too
        seed                      text!   the member
        task                      text    as in results
        definition                text    `ece` (probability of the positive class, ten buckets) or
                                          `ece_top_label` (confidence in the predicted class,
                                          fifteen bins)
        group                     text    the group; missing for all examples
        bin                       whole   number of the bin
        low                       number  its lower end
        high                      number  its upper end
        n                         number  examples in it
        mean_score                number  mean score
        mean_outcome              number  share of outcomes that happened
        contribution              number  what the bin adds to the calibration error: the error is
                                          their sum
        expected_if_calibrated    number  the calibration error that a calibrated model would show
                                          with this many examples
        calibration_in_the_large  number  mean score − mean outcome of the whole group
        """,
        of="audit",
    ),
    Table(
        "data",
        "How many examples of each class and group there are.",
        """
        split  text!   `test`: the examples audited; `train`: the training table, if given
        task   text    as in results
        by     text!   `overall`, `class`, `group` or `group*class`
        group  text    the group
        class  text    the class
        n      whole   examples
        share  number  share of the split
        """,
        of="audit",
    ),
    Table(
        "power",
        "What each confirmatory row could have found: from sizes and from the discordance of "
        "the whole variant, never from the row's own result (but for `largest_loss`).",
        """
        variant               text!   the compressed variant
        task                  text    as in results
        metric                text!   `accuracy` (overall and by group), `recall` (by class), or
                                      that of an outcome
        by                    text!   as in results
        group                 text    as in results
        class                 text    as in results
        n                     whole   examples
        discordance           number  share of all examples on which exactly one of the two models
                                      is right; of numbers, on which they differ
        design_effect         number  how many examples are worth one independent example: 1, or
                                      more with clusters and weights
        n_family              whole   rows tested together: the level is α / `n_family`
        min_detectable_shift  number  the least loss that this row's test finds with 80 % power
        reference_shift       number  the loss that matters: `--margin`
        n_needed              number  examples needed to find a loss of `reference_shift` with 80 %
                                      power
        largest_loss          number  the largest loss that the data do *not* rule out: the harmful
                                      limit, one-sided, for the whole family at once. Unlike the
                                      columns before, it depends on the row's own result
        status                text    as in results
        """,
        of="audit",
    ),
    Table(
        "concentration",
        "Who bears the lost answers: those that the baseline had right and the compressed model "
        "has wrong.",
        """
        variant             text!   the compressed variant
        task                text    as in results
        column              text    the group column, or the clusters
        part                text!   a group, or the hardest-hit share of clusters (`top 1 %`, `top 5
                                    %`, `top 10 %`)
        n                   whole   examples in it
        share_examples      number  its share of all examples
        lost                number  answers lost in it
        gained              number  answers gained in it
        share_lost          number  its share of all lost answers
        share_gained        number  its share of all gained answers
        share_lost_poisson  number  the share of lost answers if they fell at random, in proportion
                                    to examples
        """,
        of="audit",
    ),
    Table(
        "group_error",
        "Only with `--group-error`: the excess if that share of group labels is wrong.",
        """
        variant         text!   the compressed variant
        task            text    as in results
        group           text    the group
        error           number  the declared share of wrong labels
        excess_shift    number  as observed
        corrected_low   number  lower end of the range of the excess, corrected for wrong labels
        corrected_high  number  upper end
        """,
        of="audit",
    ),
    Table(
        "bounds",
        "One-sided limits for the [gate](policy.md#the-rule-that-decides), scope `model`: an "
        "error of 5 % on each side, shared by as many rows as the number behind the name says. "
        "`low_1` and `high_1` are the 90 % interval, by which a row passes; the others are what "
        "Holm's steps ask for before a row fails. There are rows of what a policy may demand: of "
        "metrics with a direction, and the values of ratios (`disparate_impact`, `ppv_ratio`). "
        "Limits that are withheld in `results` are missing here too, and `status` says why.\n\n"
        "An audit of more than 50 comparisons (variants × tasks) without a policy has limits at "
        "1, 4, 20, 200 and 1,000, a family of more than 2,000 rows at 1, 50 and 1,000: the next "
        "wider ones stand for those between. Columns that would repeat them in every row are "
        "stored empty, and `fw.load` fills them.\n\n"
        "Where fewer than 10 relevant predictions changed, a shift of precision, kappa, "
        "balanced accuracy, AUC, Brier score or of a mean recall, FNR or FPR over many classes "
        "has no interval, but a bound on its harmful side (`status`: `bound: …`): [few "
        "changes](policy.md#few-changed-predictions). Its other side is empty.",
        """
        variant   text!   the compressed variant
        task      text    as in results
        metric    text!   as in results
        by        text!   as in results
        kind      text    `overall`, `class`, `group`, `intersection` or `grouping`
        group     text    as in results
        class     text    as in results
        n         whole   distinct examples in the denominator
        quantity  text!   `shift`: compressed − baseline; `value`: of the compressed variant, or of
                          a comparison
        estimate  number  the shift or value itself
        status    text    as in results; `bound: …` where there is one bound instead of an interval
        """
        + _LIMITS,
        of="audit",
    ),
    Table(
        "lead",
        "What is read first, in page, terminal, Markdown and card: the shifts and excesses of "
        "the confirmatory families (accuracy overall and by group, recall by class) with limits "
        "and p that hold for all families and variants at once. `results` has the same numbers "
        "with the limits of their own families. Audits of version 0.1.0 have no such table.",
        """
        variant   text!   the compressed variant
        task      text    as in results
        scope     text    as in results; limits and p hold for all rows of one scope
        by        text!   `overall`, `group` or `class`
        column    text    the group column that the group belongs to: `sex`, `sex*age`
        group     text    as in results
        class     text    as in results
        n         whole   examples
        quantity  text!   `shift`, or `excess` over all others in the column
        estimate  number  the shift or the excess, as in results
        low       number  lower end; a group *loses* where `high` of its shift is below 0
        high      number  upper end
        p_lead    number  p for the largest deviation of everything in this table, by random signs
                          (scope `method`: Holm); in scope `model` at most α exactly where the
                          limits exclude 0
        n_tests   whole   how many shifts and excesses that is
        """,
        of="audit",
        later=True,
    ),
    Table(
        "left_out",
        "Examples that some variant lacks and that `--missing drop` therefore left out, in "
        "every row that they would be in. What no table says of them (their group, their label) "
        "is taken to be anything: they then count in every level or class. Empty where nothing "
        "was left out. The [gate](policy.md#nothing-passes-because-it-is-absent) counts them as "
        "errors.",
        """
        task        text    the task
        kind        text    `overall`, `class`, `group` or `intersection`
        group       text    the group; it may have no examples but these
        class       text    the class
        lacks       text    the variants that lack them; `(suppressed)`: cells that a published cube
                            does not tell of, at most so many examples
        n           whole   how many
        n_weighted  number  the same in examples of that row's mean weight
        """,
        of="audit",
        later=True,
    ),
    # Exemplars and explanations.
    Table(
        "exemplars",
        "The exemplars themselves, the furthest apart first.",
        """
        example_id        mixed   which example
        task              text    the task, if there are any
        variant           text    the compressed variant
        label             text    its true class
        distance          number  Taxicab distance of the two sides' votes, from 0 to 1
        distance_votes    number  the same in votes, where both sides have equally many members
        rank              whole   1 is the furthest apart; for a single pair by its surrogate
        modal             truth   whether it is a modal exemplar
        modal_baseline    text    the most frequent prediction of the baseline, several with a bar
        modal_compressed  text    the same of the compressed variant
        votes_baseline    text    all predictions of the baseline with their numbers
        votes_compressed  text    the same of the compressed variant
        score_baseline    number  mean score of the baseline's members
        score_compressed  number  the same of the compressed variant
        """,
        more="`top_10`, `top_5`, `top_1` (whether it is among the furthest apart, a column per "
        "percentile), your group columns and `image_path`",
    ),
    Table(
        "largest_losses",
        "Of outcomes that are numbers: the examples that lose most, the largest loss first.",
        """
        example_id              mixed   which example
        task                    text    the task, if there are any
        variant                 text    the compressed variant
        rank                    whole   1 is the largest loss
        loss                    number  what the example adds to the loss, in the outcome's unit:
                                        its mean over all examples is the loss of all
        share_of_losses         number  this loss and all larger ones, as a share of all losses
                                        (gains are not set off)
        baseline                number  the baseline's outcome on it, over its denominator; the
                                        mean of members
        compressed              number  the same of the compressed variant
        denominator_baseline    number  where there is a denominator: the baseline's
        denominator_compressed  number  the same of the compressed variant
        """,
        more="`top_10`, `top_5`, `top_1` (whether it is among the largest, a column per "
        "percentile) and your group columns",
    ),
    Table(
        "exemplar_counts",
        "How many exemplars of each kind, beside what retraining alone gives.",
        """
        variant                 text    the compressed variant
        task                    text    as in results
        kind                    text    `modal`, `unanimous`, `taxicab`, `jaccard` or `surrogate`
        percentile              number  the cut of a distance; missing where there is none
        threshold               number  the least distance among the exemplars of the cut
        n_examples              whole   examples
        n_asked                 whole   how many the percentile asks for
        n_exemplars             whole   how many there are: fewer, if fewer examples differ
        share                   number  their share of all examples
        n_baseline_members      whole   members of the baseline
        n_compressed_members    whole   members of the variant
        floor                   number  share of exemplars of dense against dense, mean over splits
                                        of the baseline's members; of a percentile, the share of
                                        examples at least as far apart as the cut of `matched`
        floor_low               number  lower end of the middle 95 % of splits
        floor_high              number  upper end
        matched                 number  the same of dense against compressed, with as many members
                                        as the splits have: compare `floor` with this, not with
                                        `share`
        p_retraining            number  test that baseline and compressed members could be exchanged
        n_undecided             whole   examples whose most frequent answer is shared by several
                                        classes
        uncertain_share         number  share of exemplars of which the baseline is unsure (a mean
                                        score between .1 and .9; with more than two classes below
                                        .9)
        uncertain_share_others  number  the same of all other examples
        status                  text    `ok`, or what is missing and why
        """,
    ),
    Table(
        "exemplar_accuracy",
        "How often both sides are right on exemplars. They are chosen for disagreement, so both "
        "are low there by construction.",
        """
        variant          text    the compressed variant
        task             text    as in results
        kind             text    as in exemplar_counts
        percentile       number  as in exemplar_counts
        part             text    `exemplars`, `others` or `all`
        n                whole   examples in it
        baseline         number  accuracy of the baseline, mean over members
        baseline_low     number  lower end
        baseline_high    number  upper end
        compressed       number  accuracy of the variant
        compressed_low   number  lower end
        compressed_high  number  upper end
        shift            number  compressed − baseline
        shift_low        number  lower end
        shift_high       number  upper end
        floor            number  the baseline's accuracy on exemplars of dense against dense
        status           text    `ok`, or why there is no number
        """,
    ),
    Table(
        "exemplar_overlap",
        "Which exemplars two variants share.",
        """
        task           text    as in results
        kind           text    as in exemplar_counts
        percentile     number  as in exemplar_counts
        first          text    one variant
        second         text    the other
        n_first        whole   exemplars of the one
        n_second       whole   exemplars of the other
        n_both         whole   exemplars of both
        jaccard        number  shared ones as a share of those of either
        expected_both  number  how many they would share if they were drawn independently
        """,
    ),
    Table(
        "exemplar_surrogate",
        "How well a single pair would have found the population's exemplars.",
        """
        variant        text    the compressed variant
        task           text    as in results
        percentile     number  the cut
        n              whole   examples
        agreement_auc  number  AUC of a pair's surrogate for the modal exemplars of all other
                               members, mean over pairs
        auc_low        number  lower end
        auc_high       number  upper end
        overlap        number  share of the pair's exemplars that are those of the others
        status         text    `ok`, or why there is no number
        """,
    ),
    Table(
        "enrichment",
        "Who is over-represented among exemplars, and whether that is more than difficulty.",
        """
        variant                text    the compressed variant
        task                   text    as in results
        kind                   text    as in exemplar_counts
        percentile             number  as in exemplar_counts
        by                     text    `class` or `group` (intersections too)
        group                  text    the group
        class                  text    the class
        n                      whole   examples
        n_exemplars            whole   exemplars among them
        share_exemplars        number  share of all exemplars
        share_test             number  share of all examples
        share_train            number  share of the training data, if given
        odds_ratio             number  odds of being an exemplar, inside against outside
        or_low                 number  lower end, over examples
        or_high                number  upper end
        matched_odds_ratio     number  the same with as many members as the splits have
        retraining_odds_ratio  number  the same of dense against dense
        retraining_low         number  lower end
        retraining_high        number  upper end
        ratio                  number  matched over retraining: over-representation beyond
                                       difficulty
        ratio_low              number  lower end, over members and examples
        ratio_high             number  upper end
        p_value                number  test of a ratio of 1
        p_adjusted             number  Holm's, within variant, kind and family
        status                 text    `ok`, or what cannot be told and why
        """,
    ),
    Table(
        "exemplar_images",
        "Images to look at; with `--dataset` only.",
        """
        variant           text    the compressed variant
        task              text    as in results
        part              text    `exemplar`, `non-exemplar` (of the same class), `shared` (by all
                                  variants), `one-only`, or `gallery` (up to 200 exemplars of all
                                  tasks, once each, small)
        example_id        mixed   which example
        label             text    its true class
        modal_baseline    text    the most frequent answer of the baseline
        modal_compressed  text    that of the variant
        image             text    a data URI: a PNG; in the gallery a PNG or JPEG of at most 96
                                  pixels
        """,
    ),
    Table(
        "risk",
        "How well the dense models alone find the modal exemplars.",
        """
        variant      text    the compressed variant
        task         text    as in results
        score        text    `disagreement` of the dense members, `low_confidence` or `entropy` of
                             their scores
        auc          number  its AUC for the exemplars; ties count half
        auc_low      number  lower end (DeLong's, on the logit)
        auc_high     number  upper end
        n            whole   examples with a score
        n_exemplars  whole   exemplars among them
        status       text    `ok`, or why there is no number
        """,
    ),
    Table(
        "class_rows",
        "One row per class of every pruned model: the table of the regressions. [Explain "
        "classes](../how-to/explain-classes.md) has the definitions.",
        """
        dataset               text    data set
        model                 text    architecture
        weight_treatment      text    `rewind`, `finetune` or `none`
        pruning_technique     text    the paper's name where it has one
        sparsity              number  measured share of zeros
        seed                  mixed   the member
        root                  mixed   the unpruned model that it descends from
        class                 mixed   the class
        accuracy              number  recall of the class
        accuracy0             number  the same of the unpruned model
        accuracy0_quartile    number  1 to 4
        imbalance             number  share of the class in the training images, less an equal share
        class_entropy         number  mean entropy of its training images, in bits
        n                     whole   test examples of the class
        intra_class_distance  number  mean distance of its training images to their mean image
        variant               text    the pruned variant
        status                text    `ok`, or why the row cannot enter a regression
        """,
    ),
    Table(
        "class_coefficients",
        "The regressions over classes, a row per fit and term.",
        """
        fit                text    `ols-hac`, `ols-linear`, `ols-cluster`, `ols-two-way` or
                                   `glm-cluster`
        term               text    as in the paper
        coefficient        number  of accuracy as a share of 1; in `glm-cluster` log odds
        std_error          number  its standard error
        statistic          number  t (or z)
        p_value            number  two-sided
        low                number  lower end
        high               number  upper end
        p_one_tailed       number  for the two hypotheses of the paper
        tail               text    `greater` or `less` than 0
        status             text    `ok`, or why the term was left out
        p_wild             number  of the wild cluster bootstrap; `ols-cluster` with fewer than 30
                                   roots
        p_wild_one_tailed  number  the same, one-tailed
        """,
    ),
    Table(
        "class_fits",
        "A row per fit.",
        """
        fit               text    as in class_coefficients
        n                 whole   rows
        n_parameters      whole   parameters
        df_residual       whole   rows less parameters
        r2                number  R²; of `glm-cluster` 1 − deviance / null deviance
        r2_adjusted       number  adjusted R²
        condition_number  number  of the design
        n_roots           whole   lineages
        f_against_linear  number  F test of all cross terms at once
        f_p               number  its p
        status            text    `ok`, and what was left out
        """,
        more="the diagnostics of the residuals, from `durbin_watson` to `outside`",
    ),
    Table(
        "class_residuals",
        "Of `ols-hac`.",
        """
        row        whole   index into class_rows
        predicted  number  fitted accuracy
        residual   number  measured − fitted
        """,
    ),
    Table(
        "individuals",
        "One row per person, writer or place. The models are fixed; limits speak of further "
        "examples of the same individual.",
        """
        variant            text    the compressed variant
        task               text    as in results
        individual         mixed   who
        group              text    the level of `--individual-group`; `(several)` where there is
                                   more than one
        n                  whole   examples
        baseline           number  accuracy in the baseline, mean over members
        baseline_shrunk    number  its posterior mean: few examples are drawn towards everyone
        baseline_low       number  lower credible limit
        baseline_high      number  upper limit
        compressed         number  accuracy in the variant
        compressed_shrunk  number  its posterior mean
        compressed_low     number  lower credible limit
        compressed_high    number  upper limit
        lost               number  share of examples whose right answer was lost, over pairs of
                                   members
        gained             number  share gained
        shift              number  gained − lost
        shift_shrunk       number  its posterior mean
        shift_low          number  lower credible limit
        shift_high         number  upper limit
        rank               whole   by `shift_shrunk`: 1 loses most, equal ones share a rank
        """,
        more="the individual's mean of every property and numeric column",
    ),
    Table(
        "individual_fits",
        "Lines through individuals, as in Table 1 of *Prune Responsibly*.",
        """
        variant       text    the compressed variant
        side          text    `baseline` or `compressed`: raw accuracy, as a share of 1
        group         text    the group; missing for all individuals
        property      text    what accuracy is regressed on
        slope         number  of the line
        slope_se      number  its standard error (HC3)
        intercept     number  of the line
        intercept_se  number  its standard error
        r2            number  R²
        n             whole   individuals, each counting once
        status        text    `ok`, or why there is no line
        """,
    ),
    Table(
        "tilt_example",
        "One tilted image and its line: column = slope × row + intercept, in pixels. Needs "
        "`--dataset`.",
        """
        image       text    a PNG as a data URI
        width       whole   its width
        height      whole   its height
        slope       number  of the line
        intercept   number  of the line
        example_id  mixed   which example
        """,
    ),
    Table(
        "example_properties",
        "What goes along with losing a right answer, one property at a time, within classes.",
        """
        variant     text    the compressed variant
        property    text    a number, or a level of a group column
        kind        text    `per standard deviation` or `level` (against the others of its column)
        n           whole   examples that the baseline has right, by any member
        effect      number  log odds of losing the answer
        low         number  lower end
        high        number  upper end
        p_value     number  of no effect
        p_adjusted  number  Benjamini and Hochberg's, over all rows
        mean_lost   number  mean where the answer was lost, in the property's own units
        mean_kept   number  mean where it was kept
        status      text    `ok`, or why it cannot be told
        """,
    ),
    Table(
        "slices",
        "Slices that pay (or gain) more than all others; an empty table means that none was "
        "found, and a note says what could have been.",
        """
        variant           text    the compressed variant
        slice             text    levels of one column or two
        columns           text    which columns
        n                 whole   examples
        n_discovery       whole   of them in the half in which slices are found
        excess_discovery  number  shift of the slice − shift of all others, in that half: flattered
        p_discovery       number  its p
        p_adjusted        number  Benjamini and Hochberg's, over all tested slices
        n_confirmation    whole   examples in the other half
        excess            number  the excess in the other half: believe this
        excess_low        number  lower end
        excess_high       number  upper end
        p_confirmation    number  its p
        parent            text    of a pair of levels: the one that it differs less clearly from
        status            text    `confirmed` or `not confirmed` by the other half, or why that
                                  cannot be told
        """,
    ),
    Table(
        "sensitivity",
        "Which unit of the network (a layer or a block) does the harm: a row per unit and group, "
        "from the command `sensitivity`. Units are ranked on one half of the examples, every "
        "number comes from the other; limits hold for all units and groups at once.",
        """
        variant                text    the full compression
        unit                   text    the layer or block
        rank                   whole   its place by what comes back without it, in the ranking half,
                                       for the group that loses most there
        group                  text    as in results; missing: everyone. Classes (`class=3`) where
                                       the audit has no groups
        scope                  text    `model`: these models are fixed
        n                      whole   examples of the group in the judged half
        shift                  number  accuracy of the full compression − baseline, in that half
        shift_alone            number  the same where only this unit is compressed
        shift_alone_low        number  lower end, simultaneous over units and groups
        shift_alone_high       number  upper end
        recovered              number  what comes back: accuracy with all but this unit compressed
                                       − with everything compressed, on the same examples
        recovered_low          number  lower end, simultaneous
        recovered_high         number  upper end
        recovered_excess       number  what comes back in the group − in everybody else
        recovered_excess_low   number  lower end, simultaneous
        recovered_excess_high  number  upper end
        contrast               number  what comes back with this unit − the mean of what comes back
                                       with each other unit
        contrast_low           number  lower end, simultaneous
        contrast_high          number  upper end
        stands_out             truth   the group is shown to lose, and the lower ends of what comes
                                       back and of the contrast are above 0
        bytes_saved            whole   bytes that compressing this unit alone saves; of pruning and
                                       of simulated bits as if zeros and rounded weights were packed
        share_of_saving        number  that, of what the full compression saves
        latency_saved_ms       number  milliseconds per example that compressing this unit saves;
                                       missing where it lies within the noise, or where none is
                                       claimed
        status                 text    `ok`, or why there are no numbers
        """,
    ),
    Table(
        "mixed_precision",
        "A model of which some units stay in float, chosen by group, beside others of its size "
        "(`compress` with a policy): on rows that none of them was chosen on.",
        """
        variant      text    `mixed`; `full`: everything compressed; `by-average`: units chosen by
                             average accuracy; `random-0` …: units chosen at random; `weaker`: every
                             unit compressed less
        float_units  text    units that stay in float
        n_float      whole   how many
        size_bytes   whole   of the file; as if packed where it is simulated
        simulated    truth   whether zeros or rounded weights are stored as floats
        group        text    the group that loses most under the full compression on the rows that
                             units were chosen on
        n            whole   its examples
        shift        number  accuracy in it − that of the baseline
        shift_low    number  lower end (Tango), of this row alone
        shift_high   number  upper end
        accuracy     number  of everyone
        against      number  accuracy of `mixed` in the group − that of this variant, on the same
                             examples
        against_low  number  lower end (Tango)
        against_high number  upper end
        """,
    ),
    Table(
        "mixed_precision_steps",
        "The search for a mixed precision, on the rows that it chose on: units in the order in "
        "which they returned to float.",
        """
        step        whole   how many units are in float
        unit        text    the last one of them
        recovered   number  what came back in the group when this unit alone was left out
        bytes       whole   that compressing the unit saves
        size_bytes  whole   of the model after the step
        group       text    the group that loses most under the full compression
        shift       number  its shift of accuracy after the step
        verdict     text    of the gate after the step
        """,
    ),
    Table(
        "bias_regression",
        "Compressed on dense bias amplification, over attributes and categories; with several "
        "tasks only.",
        """
        variant       text    the compressed variant
        n_attributes  whole   attributes (tasks)
        n_pairs       whole   attributes × categories
        slope         number  of the line; above 1: the compressed model amplifies more where the
                              dense one does
        slope_low     number  lower end, attributes being sampled
        slope_high    number  upper end
        intercept     number  of the line
        r2            number  R²
        r2_low        number  lower end
        r2_high       number  upper end
        status        text    `ok`, or what is missing and why
        """,
    ),
    Table(
        "similarity_points",
        "How far representations moved, beside how uneven errors are.",
        """
        measure   text    `svcca` or `cka`
        block     text    of the network
        variant   text    the compressed variant
        distance  number  to the member's own dense model, mean over members
        floor     number  mean distance of dense models to each other
        cev       number  CEV of the variant
        sde       number  SDE
        accuracy  number  accuracy
        sparsity  number  mean share of zeros
        """,
    ),
    Table(
        "similarity",
        "The lines through similarity_points.",
        """
        measure           text    `svcca` or `cka`
        block             text    of the network
        metric            text    `cev`, `sde` or `accuracy`
        n_variants        whole   points
        slope             number  of the metric on the distance
        slope_low         number  lower end
        slope_high        number  upper end
        correlation       number  Pearson's
        correlation_low   number  lower end (Fisher's)
        correlation_high  number  upper end
        p_value           number  of no association
        status            text    `ok`, or what is missing and why
        """,
    ),
    Table(
        "override_curves",
        "Of `fairweight mitigate overrides`: what overrides would do at every budget, beside a "
        "random choice of equal size. Rows without a task are the task itself, or means over "
        "those that are overridden.",
        """
        variant        text    whose predictions are overridden
        task           text    the attribute; empty: the only one, or the mean over them
        source         text    `dense`: the dense model's labels; `human`: those of annotation, else
                               the table's own
        metric         text    `accuracy`, `bias_amplification` (worst case over the column's
                               levels), `worst_group_shift` (against the dense model)
        group          text    the column, empty for accuracy; `everybody` where there is none
        budget         number  share of the examples that are overridden, those of which the dense
                               model is least sure first
        n              whole   examples
        n_overridden   whole   examples that the budget allows
        n_tasks        whole   tasks in the mean
        value          number  the metric with these overrides
        low            number  lower limit; of `worst_group_shift` the least simultaneous one of all
                               groups
        high           number  upper limit, likewise
        change         number  value less value without overrides
        change_low     number  its lower limit
        change_high    number  its upper limit
        random         number  the same with examples chosen at random: mean over 20 seeded draws
        random_low     number  its lower limit
        random_high    number  its upper limit
        beyond_random  number  value less `random`
        beyond_low     number  its lower limit
        beyond_high    number  its upper limit
        status         text    `ok`, or why there is no number
        """,
    ),
    Table(
        "cascade_curve",
        "Of `fairweight mitigate cascade`: what a cascade does at every threshold, and what it "
        "costs.",
        """
        variant         text    the compressed model that answers first
        task            text    the task; empty: the only one, or the mean over them
        part            text    `choosing`: the rows that chose the threshold; `judging`: the others
        metric          text    as in `override_curves`
        group           text    the column, empty for accuracy; `everybody` where there is none
        threshold       number  confidence below which an input goes to the dense model; 0: none, 1:
                                all
        share_deferred  number  share of inputs that go there
        cost_ms         number  mean cost of an input: latency of the compressed model, and of the
                                dense one for that share
        n               whole   examples
        n_tasks         whole   tasks in the mean
        value           number  the metric at this threshold
        low             number  lower limit; of `worst_group_shift` the least simultaneous one of
                                all groups
        high            number  upper limit, likewise
        change          number  value less value of the compressed model alone
        change_low      number  its lower limit
        change_high     number  its upper limit
        recommended     truth   whether this threshold is used
        status          text    `ok`, or why there is no number
        """,
    ),
    Table(
        "mitigation",
        "Of every mitigation: what changed on rows that it was not fitted on, against what it "
        "was made from and against the dense model.",
        """
        variant     text    the new variant, such as `int8+thresholds`
        against     text    what it is compared with: its origin, or the dense model
        task        text    the task, if there are any
        metric      text    name of the metric
        by          text    `overall`, `class`, `group` or `grouping`
        group       text    level or column
        class       text    class
        n           whole   examples
        before      number  value of `against`
        after       number  value of the new variant
        shift       number  after − before
        low         number  lower limit of the shift
        high        number  upper limit
        p_value     number  test of no change
        p_adjusted  number  corrected within its family
        n_family    whole   size of the family
        sim_low     number  lower limit that holds for the whole family at once
        sim_high    number  upper limit that holds for the whole family
        verdict     text    `better`, `worse` or `unchanged` by the simultaneous limits (nearer to 1
                            for TCB, to 0 for bias amplification), else `cannot tell`
        status      text    `ok`, or why there is no number
        """,
    ),
    Table(
        "attributes",
        "Every attribute of every variant, and the mean over attributes: what the boxes of IO's "
        "figures are drawn of. With several tasks only.",
        """
        variant    text    the variant, the baseline too
        method     text    of the variants table
        sparsity   number  of the variants table, the mean over members
        task       text    the attribute; null: the mean over all attributes that have the number
        metric     text    `accuracy`, `balanced_accuracy`, `auc`, `tcb`, `ece`, `uncertainty`,
                           `interrelation`, `bias_amplification`, `worst_case_bias_amplification`
        category   text    of bias amplification: the column that it is about
        n          whole   examples
        n_members  whole   members that have the number
        value      number  the mean over members
        low        number  lower limit of its interval, for these models
        high       number  upper limit
        shift      number  change against the baseline; null of the baseline itself
        sim_low    number  lower limit of the change; limits hold for its whole family
        sim_high   number  upper limit
        status     text    `ok`, or why there is no number
        """,
    ),
    Table(
        "settings",
        "The same of several experiments of a study, side by side: an attribute trained alone, "
        "jointly with others, as one of a pair, with a backdoor.",
        """
        setting    text    the experiment's `setting`
        variant    text    the variant, the baseline too
        method     text    of the variants table
        sparsity   number  of the variants table, the mean over members
        task       text    the attribute; null: the mean over all attributes that have the number
        metric     text    `accuracy`, `balanced_accuracy`, `auc`, `tcb`, `ece`, `uncertainty`,
                           `interrelation`, `bias_amplification`, `worst_case_bias_amplification`
        category   text    of bias amplification: the column that it is about
        n          whole   examples
        n_members  whole   members that have the number
        value      number  the mean over members
        low        number  lower limit of its interval, for these models
        high       number  upper limit
        shift      number  change against the baseline; null of the baseline itself
        sim_low    number  lower limit of the change; limits hold for its whole family
        sim_high   number  upper limit
        status     text    `ok`, or why there is no number
        """,
    ),
    Table(
        "label_interrelation",
        "How far the predictions of one attribute follow from those of all others; with several "
        "tasks only.",
        """
        variant    text    the variant, the baseline too
        seed       mixed   the member
        task       text    the attribute
        r2         number  R² of its predictions on all others'
        r2_labels  number  the same of the true labels
        n          whole   examples
        status     text    `ok`, or why there is no number
        """,
    ),
    Table(
        "choice",
        "What [`fairweight choose`](../how-to/choose.md) found: one row per variant, best first.",
        """
        rank                whole   place among those that qualify; null for others
        variant             text    the variant, the baseline too
        is_baseline         truth   whether it is the baseline
        qualifies           truth   whether it meets every requirement
        chosen              truth   whether it was chosen
        tied                truth   within noise of the chosen one, or of the frontier
        value               number  its value, with weights or a single objective (higher is better)
        value_low           number  lower end of the 95 % interval of the value over examples
        value_high          number  upper end
        value_shrunk        number  the value drawn towards the other variants: what to expect of it
        in_best_set         truth   whether it is in the 95 % set that contains the best
        p_within_margin     number  probability that it is within the margin (`--margin`, 2 points
                                    of a share) of the best of those that qualify; null without a
                                    margin
        p_best              number  probability that it is the best of them
        frontier            text    `frontier`, `within noise` (off it, but no variant is shown to
                                    dominate it) or `dominated`
        p_frontier          number  probability that it is on the frontier
        bootstrap_best      number  bootstrap frequency of being the best: too sure of the leader
        bootstrap_frontier  number  bootstrap frequency of being on the frontier
        status              text    `ok`, or why it has no rank
        """,
    ),
    Table(
        "choice_values",
        "The numbers of every variant that a choice was made by.",
        """
        variant  text    the variant
        term     text    the objective or required number, as it was written
        metric   text    the metric; null for a column of the variants table
        place    text    the group, class or column that it is of; null for everyone
        aim      text    `max`, `min`, `zero` or `one`; null for what is only required
        weight   number  its weight; null without a value function
        value    number  the value, mean over members
        low      number  lower end of its 95 % interval over examples; null for a column of the
                         variants table
        high     number  upper end
        """,
    ),
    Table(
        "choice_requirements",
        "How every variant stands to every requirement.",
        """
        variant      text    the variant
        requirement  text    the requirement
        value        number  the variant's value
        limit        number  the limit
        shortfall    number  by how much it is missed; 0 where it is met
        standing     text    `met`, `missed`, or either with `within noise`: more than 5 % of
                             replicates stand on the other side
        """,
    ),
    Table(
        "choice_weights",
        "With two objectives: over which weights each variant has the highest value.",
        """
        variant     text    the variant
        first       text    the first objective
        second      text    the second
        ratio_low   number  it wins from this weight of the second per unit of the first
        ratio_high  number  up to this one (null in JSON: without end)
        """,
    ),
    Table(
        "choice_confirmed",
        "The same numbers on rows that were not used for choosing.",
        """
        variant    text    a variant that qualified
        term       text    the objective or required number
        value      number  its value where the choice was made
        confirmed  number  its value on the other rows
        low        number  lower end of its 95 % interval there
        high       number  upper end
        standing   text    how it stands to its requirement there; null without one
        """,
    ),
    # Beside audits.
    Table(
        "endpoints",
        "`verdict.rows` in Python and `endpoints` in the JSON of a gate; one per endpoint.",
        """
        variant      text!   the compressed variant
        task         text    the task; null for single-task tables and for the mean over tasks
        metric       text!   the metric, or the column of the variants table
        by           text!   kind of row, in the words of the policy; `variant` where a limit of the
                             policy speaks of the variants table
        group        text    the group, or the column; null if there is none
        class        text    the class; null if there is none
        n            whole   examples in the denominator
        rule         whole   which rule of the policy, from 1; null of a limit
        criterion    text!   `margin`, `recovery`, `min` or `max`
        limit        number  its limit, as the policy has it
        threshold    number  the same in the unit of the estimate: −margin, −(1 − recovery) ×
                             baseline, a floor, a ceiling
        estimate     number  the shift (`margin`, `recovery`) or the compressed model's value
                             (`min`, `max`)
        low          number  lower end of its 90 % interval, of the examples seen; of several looks,
                             at 5 % / looks on each side
        high         number  upper end; empty where there is a bound instead of an interval, as the
                             other end is
        bound        number  the one limit that decides: what was left out is counted as errors; of
                             a fail, corrected by Holm's method
        ratio        number  compressed / baseline, where a recovery is asked; it has no limits
        n_left_out   number  examples that were left out of the row; null: suppressed
        decision     text!   `pass`, `fail` or `cannot tell`
        equivalent   truth   whether the interval lies inside ± margin
        certifiable  number  the strictest limit that these data certify: margins and ceilings above
                             it, floors and recoveries below it would pass; null if there is none
        reason       text!   why, in words
        """,
        of="other",
    ),
    Table(
        "plan",
        "`plan.rows` in Python and `rows` in the JSON of `fairweight plan`: how many examples a "
        "row of the gate needs; one per row of a pilot, or per margin and churn.",
        """
        variant        text    the variant of the pilot, by default the one that changes most
        task           text    the task
        metric         text!   `accuracy`, `recall` and what changes with them
        by             text!   kind of row, in the words of the policy
        group          text    the group
        class          text    the class
        margin         number  the loss to rule out; of a recovery, (1 − recovery) × baseline
        churn          number  share of examples on which just one of the models is right, that is
                               assumed; of a pilot, its own or that of all, whichever is larger
        design_effect  number  how many examples are worth one independent example
        n_pilot        whole   examples that the pilot has
        n_identical    whole   examples with which identical predictions pass
        n_needed       whole   examples with which all rows pass together with the power that was
                               asked for, if the model loses no more than expected
        n_missing      whole   how many more than the pilot has
        n_to_find      whole   examples with which an audit finds a loss as large as the margin with
                               that power, at 5 % / the rows tested together
        chance         number  chance that this row passes with the examples of the pilot
        """,
        of="other",
    ),
    Table(
        "plan_curve",
        "`plan.curve` in Python and `curve` in the JSON of `fairweight plan`: how probably all "
        "rows pass.",
        """
        margin  number  the loss to rule out
        churn   number  share of examples on which just one of the models is right
        n       whole   examples in each row
        chance  number  chance that all rows pass
        """,
        of="other",
    ),
    Table(
        "claims",
        "Of `fairweight study claims`: a row per line of every claim of a paper.",
        """
        claim           text!   its id
        statement       text!   what the paper says
        place           text    where it says so
        source          text!   `run`, or `authors`: from the authors' own numbers
        quantity        text    what is looked at
        line            text    which of several lines of one claim: a level, a group
        direction       text    which way it should go
        null            number  the value that stands for no effect
        smallest        number  the least effect that matters
        says            number  the number that the paper states, if any
        why             text    why that much
        value           number  what was measured
        low             number  lower end of its interval
        high            number  upper end
        interval        text    how the interval was made
        scope           text    as in results; `members`: other members, the same examples
        retraining      number  how far retraining alone moves it
        control         number  the same after as many epochs with nothing removed
        difficulty      number  the same of dense against dense
        verdict         text!   of the line: `reproduces`, `weaker than claimed`, `does not
                                reproduce`, `cannot tell` or `regime not reached`
        reason          text    why it cannot be told, or is not reached
        notes           text    what to know of the line, such as `within retraining noise`
        twin_of         text    the claim from which it follows by arithmetic: not counted
        written_before  truth   whether it was written down before the run began
        claim_verdict   text!   of the whole claim, from this source
        """,
        of="other",
    ),
    Table(
        "preflight",
        "Of `fairweight preflight`: a row per part of the data and risk score.",
        """
        task           text    the task, if there are any
        by             text!   `attribute`, `class` or `group`
        group          text    the group
        class          text    the class
        score          text!   which risk score
        n              whole   examples
        n_train        whole   training examples, where a training table was given
        value          number  the part's mean score
        low            number  lower end of its interval
        high           number  upper end
        excess         number  its distance from everybody else (from an even share for `rarity`)
        excess_low     number  lower limit, for all parts of its kind together
        excess_high    number  upper limit
        rank           whole   1 is the highest
        verdict        text    `at risk`, `not higher` or `cannot tell`
        evidence       number  what the score was worth in past studies
        evidence_low   number  lower end over studies
        evidence_high  number  upper end
        n_studies      whole   how many studies that is
        status         text    `ok`, or why there is no number
        """,
        of="other",
    ),
    Table(
        "evidence",
        "What each risk score was worth in past studies.",
        """
        study    text!   the study
        level    text!   `attribute`, `class`, `group` or `example`
        members  text!   `one` or `several` dense members that the score was made of
        score    text!   the risk score; `chosen`: the one that was best in all other studies
        measure  text!   `auc` (examples) or `rank_correlation` (parts)
        value    number  the mean over its comparisons
        n        whole   comparisons
        choice   text    for `chosen`: which score that was
        """,
        of="other",
    ),
    Table(
        "class_covariates",
        "What a class is like before anything is trained.",
        """
        class                 text!   the class
        n_train               whole   training examples
        share                 number  its share of them
        imbalance             number  its share less an equal share
        class_entropy         number  mean Shannon entropy of its images, in bits
        intra_class_distance  number  mean Euclidean distance of its images to their mean image
        """,
        of="other",
    ),
)

# The keys of audit.json before the rows of its tables.
AUDIT_KEYS: dict[str, str] = {
    "schema": "2; it changes when the meaning of a key does (1 held every row, and is still read)",
    "version": "of fairweight",
    "baseline": "name of the baseline",
    "variants": "names of the compressed variants",
    "classes": "classes among the labels; none of outcomes, or without labels",
    "outcome": "what stands in place of label and prediction (its name, better side, whether it is "
    "0 or 1, denominator, range), or null",
    "largest_losses": "of outcomes that are numbers: by variant, the largest loss of one example, "
    "over the mean denominator",
    "only_task": "the task, where there is a single one, which rows do not name; null otherwise",
    "labelled": "whether there are labels or outcomes; else only changed predictions are counted",
    "positive": "the positive class of binary labels, or null",
    "tasks": "names of the tasks, or an empty list",
    "groupings": "group columns and intersections: `sex`, `age`, `sex*age`",
    "single_columns": "those of them that are one column",
    "n_examples": "distinct examples",
    "test_set": "fingerprint of ids and labels (without ids: of the counts of groups and labels), "
    "by which looks are counted; null for more than 200,000 rows without a policy",
    "pairing": "how the members of each variant were paired with the baseline's: `parent`, `seed`, "
    "`independent`, or `single` (one model on each side)",
    "notes": "sentences: what was dropped, assumed, unused or not estimable",
    "provenance": "version, command, time, inputs (name, SHA-256, rows) and options: enough to "
    "make the audit again",
    "request": "what was asked for, as an object; null where that is not known",
    "finding": "what was found, in words: `headline`, `beyond_retraining` (null without enough "
    "members), `brief` (the lines that are read first), and under `variants` the sentences of "
    "each",
    "cube": "`why_not`: null where tables/cube.parquet holds the counts, else why it does not",
    "families": "a row per metric and kind of row (`by`): `rows`, how many there are; `held`, "
    "`stored` (in tables/results.parquet) or `computed` (the reader makes them again from the "
    "cube); `here`, how many are in this file; `limits` and `limits_here`, the same of bounds",
    "tables": "of every table: its `rows`, and how many of them are `here`, in this file",
}
