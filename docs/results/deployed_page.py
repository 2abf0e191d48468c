"""Write the page of the deployed network: who pays when it is made smaller.

    python docs/results/deployed_page.py fairweight-runs/results/deployed-face-gender \\
        --out docs/results/deployed-face-gender.md

Every sentence and table is made from the published results. What is said of a group rests on the
limits that hold for all groups and variants at once (the table `lead` of the audit).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from study_tables import markdown

import fairweight as fw
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

EXPERIMENT = "fairface"
MARGIN = 0.02
GROUPS = ["race", "gender", "age", "race*gender"]
POLICY = {
    "min_group_size": 100,
    "rule": [
        {"metric": "accuracy", "by": "group", "margin": MARGIN},
        {"metric": "accuracy", "by": "intersection", "margin": MARGIN},
    ],
}
COLLAPSED = 0.95  # of all faces get the same answer
KINDS = {
    "int8-": "int8 in ONNX Runtime",
    "bits-": "weights rounded to fewer bits",
    "pruned-": "smallest weights set to 0",
    "finetuned-": "the same, then 3 epochs of training",
    "channels-": "channels removed, then 3 epochs",
    "control": "3 epochs of training alone",
}
INTRO = """\
The age and gender network of [face-api](https://github.com/vladmandic/face-api) runs in browsers: 421,218 parameters, shipped as 430 kB of 8-bit weights. It was made smaller in the ways people use, and every result was compared with the network as shipped, face by face, on the 5,000 validation faces of FairFace (64 × 64 pixels, enlarged to the network's 112). The question is who pays for the smaller network beyond what the shipped one already gets wrong.

**What this can say.** One network is shipped, so everything here is about these models, not about a method. Its weights come rounded to 8 bits: `dense` is that network, not the one its authors trained. FairFace's labels of race, gender and age are annotators' impressions. A network that guesses gender from a face should hardly be shipped at all; this one is, and that makes it worth a look."""  # noqa: E501
ONE_ANSWER = """\
Networks that give nearly all faces one answer are not listed: {names}. Whoever gets the other answer loses there, and that says nothing about groups."""  # noqa: E501
THRESHOLDS = """\
Rounding moves scores, and the threshold of one half stays where it was: this is one number, so it can be set again. On 2,000 other faces (the validation part of FairFace's training faces) it was set so that men are named as often as there are men, for each variant by itself and without looking at groups. Changes are against the network as shipped, on the 5,000 faces; limits hold for all rows and variants of this table at once."""  # noqa: E501
HOW = """\
Changes are points of accuracy. Limits in square brackets hold for all groups and all variants of this page at once: of unchanged models at most 6.5 % would get any line. "More than the rest" means that a group's change differs from that of everybody else in its column by more than chance. The check asks that no group of race, gender, age, or race and gender together loses more than 2 points; groups of fewer than 100 faces are never judged. Sizes are of float32 weights, zeros included, unless weights are rounded (int8: the ONNX file; fewer bits: as if packed). The shipped file packs its 8-bit weights into 430 kB, so the int8 files are no smaller than what is downloaded today. No speed is claimed."""  # noqa: E501
AGAIN = """\
## Run it again

```
npm pack @vladmandic/face-api && tar xf vladmandic-face-api-*.tgz
fairweight study run deployed-face-gender --data DIR --weights package/model/age_gender_model-weights_manifest.json
python docs/results/deployed_page.py fairweight-runs/results/deployed-face-gender --out docs/results/deployed-face-gender.md
```

What every model predicted is in `docs/results/predictions/deployed-face-gender`; with `--packed` the study starts from there and trains nothing. From the beginning it takes about an hour of one core. Faces of single examples are shown by `fairweight view` where the data are, and nowhere else."""  # noqa: E501


@dataclass(frozen=True)
class Made:
    """One smaller network: its row of costs, its lines of the lead, its verdict."""

    name: str
    cost: pd.Series
    lead: pd.DataFrame
    results: pd.DataFrame
    verdict: str
    answer: str  # the most frequent one
    share: float  # of faces that get it

    @property
    def collapsed(self) -> bool:
        return self.share >= COLLAPSED

    @property
    def overall(self) -> pd.Series:
        return self._of("overall", "shift").iloc[0]

    @property
    def losers(self) -> pd.DataFrame:
        """Groups that are shown to lose, the largest loss first."""
        own = self._of("group", "shift")
        return own[own["high"] < 0].sort_values("estimate")

    @property
    def more(self) -> pd.DataFrame:
        """Groups that lose, and lose more than the rest, the largest excess first."""
        own = self._of("group", "excess")
        lost = self._of("group", "shift").set_index("group")["estimate"]
        return own[(own["high"] < 0) & (own["group"].map(lost) < 0)].sort_values("estimate")

    @property
    def largest_possible(self) -> pd.Series:
        """The group whose loss may be the largest, by its simultaneous limit."""
        own = self.results[self.results["sim_low"].notna()]
        return own.loc[own["sim_low"].idxmin()]

    @property
    def ruled_out(self) -> tuple[int, int]:
        """For how many groups a loss beyond the margin is ruled out, and of how many."""
        return int(self.results["loss_ruled_out"].fillna(False).sum()), len(self.results)

    def _of(self, by: str, quantity: str) -> pd.DataFrame:
        return self.lead[(self.lead["by"] == by) & (self.lead["quantity"] == quantity)]


def read(folder: Path) -> list[Made]:
    """Every smaller network, kind by kind."""
    audit = fw.load(folder / "audit")
    costs = pd.read_parquet(folder / "variants.parquet").set_index("variant")
    verdict = audit.gate(POLICY)
    rows = audit.results
    rows = rows[(rows["metric"] == "accuracy") & (rows["by"] == "group")]
    made = []
    for name in costs.index:
        own = rows[(rows["variant"] == name) & (rows["scope"] == "model")]
        if own.empty:
            continue  # the baseline
        answers = pd.read_parquet(predicted(folder, "predictions", name), columns=["prediction"])
        shares = answers["prediction"].value_counts(normalize=True)
        lead = audit.lead[(audit.lead["variant"] == name) & (audit.lead["scope"] == "model")]
        made.append(Made(name, costs.loc[name], lead, own, verdict.variants[name],
                         str(shares.index[0]), float(shares.iloc[0])))  # fmt: skip
    kinds = list(KINDS)
    made.sort(key=lambda one: next(i for i, kind in enumerate(kinds) if one.name.startswith(kind)))
    return made


def predicted(folder: Path, part: str, name: str) -> Path:
    """What one model predicted on a part of the faces."""
    return next((folder / part / name).glob("*.parquet"))


def shipped(made: Sequence[Made]) -> list[str]:
    """What the network as shipped gets wrong, by race, gender and age."""
    own = made[0].results.sort_values("baseline")
    single = own[~own["group"].str.contains(" & ")]
    rows = [
        [str(row["group"]), f"{row['n']:,.0f}",
         f"{100 * row['baseline']:.1f} % [{100 * row['baseline_low']:.1f}, "
         f"{100 * row['baseline_high']:.1f}]"]
        for row in single.to_dict("records")
    ]  # fmt: skip
    return markdown(("group", "faces:", "accuracy as shipped:"), rows)


def costs(dense: pd.Series, made: Sequence[Made]) -> list[str]:
    """One row a variant: how small, what it costs, and whether it passes."""
    rows = [["as shipped", f"{dense['size_bytes'] / 1000:,.0f}",
             f"{100 * shipped_accuracy(made):.1f} %", "", "", "", "", ""]]  # fmt: skip
    for one in made:
        most = one.losers.head(1)
        worst = one.largest_possible
        rows.append(
            [
                f"`{one.name}`",
                f"{one.cost['size_bytes'] / 1000:,.0f}",
                f"{100 * accuracy(one):.1f} %",
                points(one.overall),
                "no group" if most.empty else f"{most.iloc[0]['group']}: {points(most.iloc[0])}",
                f"{-100 * worst['sim_low']:.1f} ({worst['group']})",
                f"{one.ruled_out[0]} of {one.ruled_out[1]}",
                one.verdict.replace("_", " "),
            ]
        )
    heads = ("variant", "kB:", "accuracy:", "change overall:", "loses most",
             "a group may lose up to:", "loss beyond 2 points ruled out:", "check")  # fmt: skip
    return markdown(heads, rows)


def accuracy(one: Made) -> float:
    """Of the smaller network on all faces: that of the groups of one column, by their sizes."""
    own = one.results[one.results["group"].str.startswith("gender=")]
    own = own[~own["group"].str.contains(" & ")]
    return float((own["compressed"] * own["n"]).sum() / own["n"].sum())


def points(row: pd.Series, names: Sequence[str] = ("estimate", "low", "high")) -> str:
    """A change with its limits, in points."""
    value, low, high = (f"{100 * row[name]:+.1f}".replace("-", "−") for name in names)
    return f"{value} [{low}, {high}]"


def beyond(made: Sequence[Made]) -> list[str]:
    """Who loses more than the rest, in which variant."""
    rows = [
        [f"`{one.name}`", str(row["group"]), f"{row['n']:,.0f}", points(loss_of(one, row)),
         points(row)]
        for one in made
        if not one.collapsed
        for _, row in one.more.iterrows()
    ]  # fmt: skip
    names = ", ".join(f"`{one.name}`" for one in made if one.collapsed)
    left_out = [ONE_ANSWER.format(names=names), ""] if names else []
    if not rows:
        return [*left_out, "No group is shown to lose more than the rest in any variant."]
    heads = ("variant", "group", "faces:", "its change:", "more than the rest:")
    return [*left_out, *markdown(heads, rows)]


def loss_of(one: Made, row: pd.Series) -> pd.Series:
    own = one.lead[(one.lead["quantity"] == "shift") & (one.lead["group"] == row["group"])]
    return own.iloc[0]


def sentences(made: Sequence[Made]) -> list[str]:
    """What to take away, each sentence from the limits of the lead."""
    own = made[0].results
    races = own[own["group"].str.match(r"race=[^&]*$")].sort_values("baseline")
    low, high = races.iloc[0], races.iloc[-1]
    said = [
        f"- As shipped it names gender rightly on {100 * shipped_accuracy(made):.1f} % of the "
        f"faces: {100 * low['baseline']:.1f} % for {low['group']}, "
        f"{100 * high['baseline']:.1f} % for {high['group']}."
    ]
    hidden = [
        one
        for one in made
        if one.overall["low"] <= 0 <= one.overall["high"] and not one.losers.empty
    ]
    if hidden:
        said.append(
            "- **The average hides who pays.** No change is shown overall with "
            + ", ".join(f"`{one.name}`" for one in hidden)
            + ", and yet: "
            + "; ".join(f"`{one.name}`: {', '.join(by_gender(one))}" for one in hidden)
            + "."
        )
    for prefix, words in KINDS.items():
        kin = [one for one in made if one.name.startswith(prefix)]
        if kin:
            said.append(f"- **{words[0].upper()}{words[1:]}.** " + " ".join(map(sentence, kin)))
    return said


def by_gender(one: Made) -> list[str]:
    """Who loses, and who gains, among women and men; where neither is shown, who loses most."""
    own = one.lead[(one.lead["by"] == "group") & (one.lead["quantity"] == "shift")]
    own = own[own["group"].str.match(r"gender=[^&]*$")]
    shown = own[(own["high"] < 0) | (own["low"] > 0)].sort_values("estimate")
    if shown.empty:
        shown = one.losers.head(1)
    return [
        f"{row['group']} {'loses' if row['estimate'] < 0 else 'gains'} "
        f"{limited(row, abs(row['estimate']))}"
        for row in shown.to_dict("records")
    ]


def limited(row: Mapping[str, Any], value: float) -> str:
    """A loss or a gain in points, with its limits."""
    low, high = sorted(abs(100 * row[name]) for name in ("low", "high"))
    return f"{100 * value:.1f} points [{low:.1f}, {high:.1f}]"


def shipped_accuracy(made: Sequence[Made]) -> float:
    own = made[0].results
    own = own[own["group"].str.match(r"gender=[^&]*$")]
    return float((own["baseline"] * own["n"]).sum() / own["n"].sum())


def sentence(one: Made) -> str:
    ruled, of = one.ruled_out
    change = one.overall
    if one.collapsed:
        return (
            f"`{one.name}` says {one.answer} to {100 * one.share:.1f} % of the faces and is right "
            f"on {100 * accuracy(one):.1f} %: it does not work."
        )
    if one.losers.empty:
        who = "no group shows a clear loss"
    else:
        row = one.losers.iloc[0]
        who = f"{row['group']} loses {limited(row, -row['estimate'])}"
        if len(one.losers) > 1:
            who += f", the most of {len(one.losers)} groups that are shown to lose"
    if one.more.empty:
        who += "; no group is shown to lose more than the rest"
    whole = (
        "no change is shown overall"
        if change["low"] <= 0 <= change["high"]
        else f"{100 * change['estimate']:+.1f} points overall".replace("-", "−")
    )
    return f"`{one.name}`: {whole}; {who}; a loss beyond 2 points is ruled out for {ruled} of {of} groups."  # noqa: E501


def named_men(folder: Path) -> str:
    """How often the network as shipped says that a face is a man's, and how often it is."""
    rows = pd.read_parquet(predicted(folder, "predictions", "dense"))
    said, true = ((rows[column] == "Male").mean() for column in ("prediction", "label"))
    return (
        f"As shipped, the network names men too often: {100 * said:.1f} % of the answers, "
        f"{100 * true:.1f} % of the faces. So the threshold that is set again corrects more than "
        "the rounding did: women gain by it, and men lose."
    )


def thresholds(folder: Path, names: Sequence[str]) -> list[str]:
    """Whether the threshold, set again on other faces, helps women and men."""
    parts = {
        part: {name: str(predicted(folder, part, name)) for name in ("dense", *names)}
        for part in ("predictions", "validation")
    }
    source = TableSpec(sources=parts["predictions"], groups=GROUPS, positive="Male")
    found = fw.mitigate.thresholds(source, AuditOptions(n_boot=200), validation=parts["validation"])
    lead = found.audit.lead[found.audit.lead["quantity"] == "shift"]
    rows = []
    for name in names:
        for shown, which in (("one half", name), ("set again", f"{name}+thresholds")):
            own = lead[lead["variant"] == which]
            whole = own[own["by"] == "overall"].iloc[0]
            women, men = (own[own["group"] == f"gender={g}"].iloc[0] for g in ("Female", "Male"))
            rows.append([f"`{name}`", shown, *(points(row) for row in (whole, women, men))])
    table = markdown(("variant", "threshold", "overall:", "women:", "men:"), rows)
    return [*table, "", named_men(folder)]


def by_race_and_gender(made: Sequence[Made], shown: Sequence[str]) -> list[str]:
    """Changes of every race and gender in some variants, with simultaneous limits of a variant."""
    chosen = [one for one in made if one.name in shown]
    own = chosen[0].results
    groups = own[own["group"].str.contains("race=.* & gender=")].sort_values("baseline")
    rows = []
    for group in groups.to_dict("records"):
        row = [str(group["group"]), f"{group['n']:,.0f}", f"{100 * group['baseline']:.1f} %"]
        for one in chosen:
            of = one.results[one.results["group"] == group["group"]].iloc[0]
            row.append(points(of, ("shift", "sim_low", "sim_high")))
        rows.append(row)
    heads = ("group", "faces:", "as shipped:", *(f"`{one.name}`:" for one in chosen))
    return markdown(heads, rows)


def finetuning(folder: Path) -> list[str]:
    """Pruned networks with and without training, face by face."""
    rows = []
    predictions = folder / "predictions"
    for level in (30, 50, 70, 90):
        plain, trained = f"pruned-{level}", f"finetuned-{level}"
        if not all((predictions / name).is_dir() for name in (plain, trained)):
            continue
        files = {name: predicted(folder, "predictions", name) for name in (plain, trained)}
        audit = fw.audit_table(files, baseline=plain, groups=GROUPS, n_boot=200, random_state=0)
        lead = audit.lead
        overall = lead[(lead["by"] == "overall") & (lead["quantity"] == "shift")].iloc[0]
        groups = lead[(lead["by"] == "group") & (lead["quantity"] == "shift")]
        better, worse = (groups["low"] > 0).sum(), (groups["high"] < 0).sum()
        rows.append([f"{level} %", points(overall), f"{better} of {len(groups)}",
                     f"{worse} of {len(groups)}"])  # fmt: skip
    return markdown(
        ("zeros", "training gives overall:", "groups that gain:", "groups that lose:"), rows
    )


def main(arguments: list[str] | None = None) -> None:
    """Read the results of the study, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, metavar="RESULTS/deployed-face-gender")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    folder = given.results / EXPERIMENT
    if not (folder / "audit" / "audit.json").is_file():
        parser.error(f"'{folder}' holds no audit; run the study deployed-face-gender first.")
    made = read(folder)
    dense = pd.read_parquet(folder / "variants.parquet").set_index("variant").loc["dense"]
    rounded = [one.name for one in made if one.name.startswith(("int8-", "bits-"))]
    shown = ("int8-static", "bits-6", "bits-4", "finetuned-50", "channels-50")
    lines = [
        "# Who pays when a deployed gender network is made smaller",
        "", INTRO, "", "## What to take away", "", *sentences(made), "",
        "## How small, and at which price", "", HOW, "", *costs(dense, made), "",
        "## Who loses more than the rest", "", *beyond(made), "",
        "## By race and gender", "",
        "Limits of a variant hold for all its groups of race and gender at once.", "",
        *by_race_and_gender(made, shown), "",
        "## Does another threshold help?", "", THRESHOLDS, "", *thresholds(folder, rounded), "",
        "## Does training afterwards help?", "",
        "The finetuned network against the pruned one with as many zeros, on the same faces.", "",
        *finetuning(folder), "",
        "## What it gets wrong as shipped", "", *shipped(made), "", AGAIN, "",
    ]  # fmt: skip
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
