"""The tables of exemplars and explanations: which columns each of them has.

They stand in `AuditResult.explanations` under these names, are written to `tables/`, and are what
the figures of the papers read.
"""

from __future__ import annotations

from fairweight.auditing.result import (
    BOOLEAN_COLUMNS,
    BOUND_COLUMNS,
    INTEGER_COLUMNS,
    LEAD_COLUMNS,
    LEFT_OUT_COLUMNS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
)

COLUMNS: dict[str, tuple[str, ...]] = {
    "exemplar_counts": (
        "variant", "task", "kind", "percentile", "threshold", "n_examples", "n_asked",
        "n_exemplars", "share", "n_baseline_members", "n_compressed_members", "floor",
        "floor_low", "floor_high", "matched", "p_retraining", "n_undecided", "uncertain_share",
        "uncertain_share_others", "status",
    ),
    "exemplar_accuracy": (
        "variant", "task", "kind", "percentile", "part", "n", "baseline", "baseline_low",
        "baseline_high", "compressed", "compressed_low", "compressed_high", "shift", "shift_low",
        "shift_high", "floor", "status",
    ),
    "exemplar_overlap": (
        "task", "kind", "percentile", "first", "second", "n_first", "n_second", "n_both",
        "jaccard", "expected_both",
    ),
    "exemplar_surrogate": (
        "variant", "task", "percentile", "n", "agreement_auc", "auc_low", "auc_high", "overlap",
        "status",
    ),
    "enrichment": (
        "variant", "task", "kind", "percentile", "by", "group", "class", "n", "n_exemplars",
        "share_exemplars", "share_test", "share_train", "odds_ratio", "or_low", "or_high",
        "matched_odds_ratio", "retraining_odds_ratio", "retraining_low", "retraining_high",
        "ratio", "ratio_low", "ratio_high", "p_value", "p_adjusted", "status",
    ),
    "exemplar_images": (  # part: exemplar | non-exemplar | shared | one-only | gallery
        "variant", "task", "part", "example_id", "label", "modal_baseline", "modal_compressed",
        "image",  # a data URI: a PNG, in the gallery a PNG or JPEG of at most 96 pixels
    ),
    "risk": (
        "variant", "task", "score", "auc", "auc_low", "auc_high", "n", "n_exemplars", "status",
    ),
    "class_rows": (
        "dataset", "model", "weight_treatment", "pruning_technique", "sparsity", "seed", "root",
        "class", "accuracy", "accuracy0", "accuracy0_quartile", "imbalance", "class_entropy", "n",
    ),
    "class_coefficients": (
        "fit", "term", "coefficient", "std_error", "statistic", "p_value", "low", "high",
        "p_one_tailed", "tail", "status", "p_wild", "p_wild_one_tailed",
    ),
    "class_fits": (
        "fit", "n", "n_parameters", "df_residual", "r2", "r2_adjusted", "condition_number",
        "n_roots", "f_against_linear", "f_p", "status",
    ),  # and the diagnostics of residuals
    "class_residuals": ("row", "predicted", "residual"),
    "individuals": (
        "variant", "task", "individual", "group", "n", "baseline", "baseline_shrunk",
        "baseline_low", "baseline_high", "compressed", "compressed_shrunk", "compressed_low",
        "compressed_high", "lost", "gained", "shift", "shift_shrunk", "shift_low", "shift_high",
        "rank",
    ),  # and one column per property
    "individual_fits": (
        "variant", "side", "group", "property", "slope", "slope_se", "intercept", "intercept_se",
        "r2", "n", "status",
    ),
    "tilt_example": (  # of the line: column = slope × row + intercept, in pixels of the image
        "image", "width", "height", "slope", "intercept", "example_id",
    ),
    "example_properties": (
        "variant", "property", "kind", "n", "effect", "low", "high", "p_value", "p_adjusted",
        "mean_lost", "mean_kept", "status",
    ),
    "slices": (
        "variant", "slice", "columns", "n", "n_discovery", "excess_discovery", "p_discovery",
        "p_adjusted", "n_confirmation", "excess", "excess_low", "excess_high", "p_confirmation",
        "parent", "status",
    ),
    "bias_regression": (
        "variant", "n_attributes", "n_pairs", "slope", "slope_low", "slope_high", "intercept", "r2",
        "r2_low", "r2_high", "status",
    ),
    "similarity_points": (  # distances are means over members; floor: dense against dense
        "measure", "block", "variant", "distance", "floor", "cev", "sde", "accuracy", "sparsity",
    ),
    "similarity": (
        "measure", "block", "metric", "n_variants", "slope", "slope_low", "slope_high",
        "correlation", "correlation_low", "correlation_high", "p_value", "status",
    ),
    "override_curves": (  # of budgets; random: the mean of random choices of equal size
        "variant", "task", "source", "metric", "group", "budget", "n", "n_overridden", "n_tasks",
        "value", "low", "high", "change", "change_low", "change_high", "random", "random_low",
        "random_high", "beyond_random", "beyond_low", "beyond_high", "status",
    ),
    "cascade_curve": (  # part: choosing | judging
        "variant", "task", "part", "metric", "group", "threshold", "share_deferred", "cost_ms",
        "n", "n_tasks", "value", "low", "high", "change", "change_low", "change_high",
        "recommended", "status",
    ),
    "mitigation": (  # against: the origin, or the dense model
        "variant", "against", "task", "metric", "by", "group", "class", "n", "before", "after",
        "shift", "low", "high", "p_value", "p_adjusted", "n_family", "sim_low", "sim_high",
        "verdict", "status",
    ),
    "attributes": (  # task null: the mean over all; category: the column that a bias is about
        "variant", "method", "sparsity", "task", "metric", "category", "n", "n_members", "value",
        "low", "high", "shift", "sim_low", "sim_high", "status",
    ),
    "settings": (  # the same of several experiments: single, joint, a pair, a backdoor
        "setting", "variant", "method", "sparsity", "task", "metric", "category", "n", "n_members",
        "value", "low", "high", "shift", "sim_low", "sim_high", "status",
    ),
    "label_interrelation": ("variant", "seed", "task", "r2", "r2_labels", "n", "status"),
    "choice": (  # of `fairweight choose`, best first
        "rank", "variant", "is_baseline", "qualifies", "chosen", "tied", "value", "value_low",
        "value_high", "value_shrunk", "in_best_set", "p_within_margin", "p_best", "frontier",
        "p_frontier", "bootstrap_best", "bootstrap_frontier", "status",
    ),
    "choice_values": (
        "variant", "term", "metric", "place", "aim", "weight", "value", "low", "high",
    ),
    "choice_requirements": ("variant", "requirement", "value", "limit", "shortfall", "standing"),
    "choice_weights": ("variant", "first", "second", "ratio_low", "ratio_high"),
    "choice_confirmed": ("variant", "term", "value", "confirmed", "low", "high", "standing"),
}  # fmt: skip

# Columns of text; every other column that is named above holds numbers or truth values.
EXPLANATION_TEXT: frozenset[str] = frozenset((
    "variant", "task", "kind", "part", "status", "first", "second", "by", "group", "class",
    "example_id", "label", "modal_baseline", "modal_compressed", "image", "score", "dataset",
    "model", "weight_treatment", "pruning_technique", "fit", "term", "tail", "individual",
    "side", "property", "slice", "columns", "parent", "measure", "block", "metric", "source",
    "against", "verdict", "method", "category", "setting", "place", "aim", "requirement",
    "standing", "frontier",
))  # fmt: skip
# Columns that may hold either: names which were numbers in the tables.
MIXED: frozenset[str] = frozenset(("example_id", "individual", "seed", "root", "slice", "columns"))


# The frames of an audit and the types of their columns, as AuditResult documents them.

FRAMES: dict[str, tuple[str, ...]] = {
    "results": RESULT_COLUMNS,
    "per_seed": ("variant", "seed", "task", "metric", "by", "group", "class", "n", "value"),
    "confusion": ("variant", "seed", "task", "label", "prediction", "count"),
    "reliability": (
        "variant", "seed", "task", "definition", "group", "bin", "low", "high", "n",
        "mean_score", "mean_outcome", "contribution", "expected_if_calibrated",
        "calibration_in_the_large",
    ),
    "data": ("split", "task", "by", "group", "class", "n", "share"),
    "power": (
        "variant", "task", "metric", "by", "group", "class", "n", "discordance", "n_family",
        "min_detectable_shift", "reference_shift", "n_needed", "largest_loss", "status",
    ),
    "concentration": (
        "variant", "task", "column", "part", "n", "share_examples", "lost", "gained",
        "share_lost", "share_gained", "share_lost_poisson",
    ),
    "group_error": (
        "variant", "task", "group", "error", "excess_shift", "corrected_low", "corrected_high",
    ),
    "bounds": BOUND_COLUMNS,
    "lead": LEAD_COLUMNS,
    "left_out": LEFT_OUT_COLUMNS,
}  # fmt: skip
TEXT = (
    TEXT_COLUMNS
    | {"seed", "label", "prediction", "definition", "split", "column", "part"}
    | {"kind", "quantity", "lacks"}
)
INTEGER = INTEGER_COLUMNS | {"bin", "n_tests"}
BOOLEAN = BOOLEAN_COLUMNS
LATER = frozenset({"lead", "left_out"})  # frames that audits of version 0.1.0 do not have
