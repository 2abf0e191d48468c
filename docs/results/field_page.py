"""Write docs/results/field.md: audits of outputs that others published.

    python docs/results/field_page.py DIR

DIR is the folder with the published outputs (FAIRWEIGHT_REAL), each with a README on its source and
licence. Nothing of them is copied; the page has numbers only.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

import fairweight as fw
from fairweight.errors import InputError

PAGE = Path(__file__).with_name("field.md")
ONCE = 'QUALIFY row_number() OVER (PARTITION BY arm, id ORDER BY "row") = 1'
HEAD = (
    "# Outputs that others published\n\nCompressed models whose outputs their makers published, "
    "audited as they are. Nobody was asked, and nothing was run again. Made by "
    "`docs/results/field_page.py` from the files named; a shift is compressed minus baseline with "
    "its 95 % interval; “changed” is the share of examples to which the model gives another "
    "prediction, which is not how many got worse. A group is listed where its excess over "
    "everybody else is shown (adjusted p below 0.05 over the groups of its column).\n\n"
)


@dataclass(frozen=True)
class Published:
    """Outputs of one source, and how they are audited."""

    title: str
    source: str
    folder: str
    options: dict[str, Any] = field(default_factory=dict)
    query: str | None = None


SCORED = {"id": "id", "variant": "arm", "outcome": "score", "better": "higher",
          "prediction": "response"}  # fmt: skip
MATH = SCORED | {"outcome": "correct_simple", "baseline": "bf16", "groups": ["subject", "level"],
                 "prediction": "answer"}  # fmt: skip
ALL = (
    Published(
        "MMLU, Llama-3.1-8B in fp16, q8_0 and q4_K_M",
        "500 questions of 10 subjects through Ollama, of which one id occurs twice (its first "
        "occurrence is kept). As the file is, the audit refuses it and names the id.",
        "mmlu_ollama_fp16_q8_q4",
        SCORED | {"baseline": "fp16", "groups": ["subject"]},
        f"SELECT * FROM data WHERE task = 'mmlu' {ONCE}",
    ),
    Published(
        "Extraction, the same models",
        "300 items with an F1 each.",
        "mmlu_ollama_fp16_q8_q4",
        SCORED | {"baseline": "fp16", "groups": []},
        "SELECT * FROM data WHERE task = 'extraction'",
    ),
    Published(
        "LibriSpeech test-clean, Whisper large-v3 in F16, Q8_0, Q5_0 and Q4_0",
        "2,620 utterances of 40 speakers; the mean of the word error rates of utterances, which is "
        "not the rate over all words. Speakers are clusters. Lower is better.",
        "whisper_large_v3_ggml_librispeech",
        {"id": "id", "variant": "arm", "outcome": "wer", "better": "lower", "baseline": "f16",
         "cluster": "speaker", "groups": ["gender"], "prediction": "response"},
    ),
    Published(
        "MATH-500, R1-Distill-Qwen-1.5B in bf16 and 3 bits",
        "50 problems; our own match of the boxed answer.",
        "math500_r1distill_3bit", MATH, "SELECT * FROM data WHERE model = 'r1d'",
    ),
    Published(
        "MATH-500, DeepScaleR-1.5B in bf16 and 3 bits",
        "The same 50 problems.",
        "math500_r1distill_3bit", MATH, "SELECT * FROM data WHERE model = 'dsr'",
    ),
    Published(
        "Defect detection, CodeBERT: int8, int4, fp8, pruned, DistilBERT",
        "2,732 functions of Devign without labels: how many predictions changed, which is no loss.",
        "codebert_devign_compress",
        {"id": "id", "variant": "arm", "prediction": "pred", "baseline": "base", "groups": [],
         "unlabelled": True},
    ),
    Published(
        "ImageNet-X, ResNet-50 and three other networks",
        "48,868 validation images with 16 factors; no compressed models, but four that others "
        "compare: an audit of many classes and of factors that overlap.",
        "imagenet-x",
        {"id": "file_name", "baseline": "ResNet50", "groups": ["darker", "smaller", "partial_view",
         "style", "object_blocking"]},
    ),
)  # fmt: skip


def table(made: Any) -> list[str]:
    """The overall change of each variant, and groups that are shown to differ from the others."""
    metric = made.overall["metric"].iloc[0]
    rows = made.overall[made.overall["metric"] == metric]
    groups = made.by_group[made.by_group["metric"] == metric]
    changed = made.overall[made.overall["metric"] == "flips"].set_index("variant")["compressed"]
    lines = [
        f"| variant | n | {metric}: baseline → compressed | shift | changed | "
        "groups that differ from the rest |",
        "|---|---|---|---|---|---|",
    ]
    for _, row in rows.iterrows():
        own = groups[(groups["variant"] == row["variant"]) & (groups["excess_p_adjusted"] < 0.05)]
        named = "; ".join(
            f"{one['group']} {one['excess_shift']:+.4f} "
            f"[{one['excess_low']:+.4f}, {one['excess_high']:+.4f}]"
            for _, one in own.iterrows()
        )
        if pd.isna(row["shift"]):
            value = f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}]"
            lines.append(
                f"| {row['variant']} | {row['n']:,} | {row['compressed']:.4f} {value} | — "
                f"| {changed[row['variant']]:.4f} | — |"
            )
            continue
        limits = f"{row['shift']:+.4f} [{row['ci_low']:+.4f}, {row['ci_high']:+.4f}]"
        if pd.isna(row["ci_low"]):  # the reason follows the word
            limits = f"{row['shift']:+.4f}, no limits: {row['status'].partition(': ')[2]}"
        lines.append(
            f"| {row['variant']} | {row['n']:,} | {row['baseline']:.4f} → {row['compressed']:.4f} "
            f"| {limits} | {changed[row['variant']]:.4f} "
            f"| {named or ('none shown' if len(groups) else '—')} |"
        )
    return lines


def licence(folder: Path) -> str:
    """The line of a folder's README that names source and licence."""
    readme = folder / "README.md"
    if not readme.is_file():
        return "Source: facebookresearch/imagenetx, CC BY-NC 4.0."
    lines = readme.read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("Source:"))


def main(real: Path) -> None:
    parts = [HEAD]
    for one in ALL:
        path = str(real / one.folder / "predictions.parquet")
        try:
            made = fw.audit_table(path, query=one.query, n_boot=200, **one.options)
            lines = table(made)
        except InputError as error:
            print(one.title, error, file=sys.stderr)
            continue
        parts.append(f"## {one.title}\n\n{one.source} {licence(real / one.folder)}\n\n")
        parts.append("\n".join(lines) + "\n\n")
        print(one.title, *lines, sep="\n", flush=True)
    PAGE.write_text("".join(parts).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
