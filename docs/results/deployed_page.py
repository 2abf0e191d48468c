"""Write the page of the deployed network: who pays when it is made smaller.

    python docs/results/deployed_page.py fairweight-runs/results/deployed-face-gender \\
        --out docs/results/deployed-face-gender.md

Every sentence and table is made from the published results. What is said of a group rests on the
limits that hold for all groups and variants at once (the table `lead` of the audit).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from study_tables import markdown

import fairweight as fw
from fairweight.audits import Audit

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
HOW = """\
Changes are points of accuracy. Limits in square brackets hold for all groups and all variants of this page at once: of unchanged models at most 6.5 % would get any line. "More than the rest" means that a group's change differs from that of everybody else in its column by more than chance. The check asks that no group of race, gender, age, or race and gender together loses more than 2 points; groups of fewer than 100 faces are never judged."""  # noqa: E501
AGAIN = """\
## Run it again

```
npm pack @vladmandic/face-api && tar xf vladmandic-face-api-*.tgz
fairweight study run deployed-face-gender --data DIR --weights package/model/age_gender_model-weights_manifest.json
python docs/results/deployed_page.py fairweight-runs/results/deployed-face-gender --out docs/results/deployed-face-gender.md
```

What every model predicted is in `docs/results/predictions/deployed-face-gender`; with `--packed` the study starts from there and trains nothing. Faces of single examples are shown by `fairweight view` where the data are, and nowhere else."""  # noqa: E501


@dataclass(frozen=True)
class Made:
    """One smaller network: its row of costs, its lines of the lead, its verdict."""

    name: str
    cost: pd.Series
    lead: pd.DataFrame
    results: pd.DataFrame
    verdict: str

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


def read(folder: Path) -> tuple[Audit, list[Made]]:
    """The audit, and every variant as it was given."""
    audit = fw.load(folder / "audit")
    costs = pd.read_parquet(folder / "variants.parquet").set_index("variant")
    verdict = audit.gate(POLICY)
    rows = audit.results
    rows = rows[(rows["metric"] == "accuracy") & (rows["by"] == "group")]
    made = [
        Made(
            name,
            costs.loc[name],
            audit.lead[(audit.lead["variant"] == name) & (audit.lead["scope"] == "model")],
            rows[(rows["variant"] == name) & (rows["scope"] == "model")],
            verdict.variants[name],
        )
        for name in rows["variant"].unique()
    ]
    return audit, made


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


def costs(made: Sequence[Made]) -> list[str]:
    """One row a variant: how small, how quick, what it costs, and whether it passes."""
    rows = []
    for one in made:
        most = one.losers.head(1)
        worst = one.largest_possible
        rows.append(
            [
                f"`{one.name}`",
                f"{one.cost['size_bytes'] / 1000:,.0f}",
                ""
                if pd.isna(one.cost["latency_ms"])
                else f"{one.cost['latency_ms'] / one.cost['batch_size']:.2f}",
                f"{100 * accuracy(one):.1f} %",
                points(one.overall),
                "no group" if most.empty else f"{most.iloc[0]['group']}: {points(most.iloc[0])}",
                f"{-100 * worst['sim_low']:.1f} ({worst['group']})",
                f"{one.ruled_out[0]} of {one.ruled_out[1]}",
                one.verdict.replace("_", " "),
            ]
        )
    heads = ("variant", "kB:", "ms a face:", "accuracy:", "change overall:", "loses most",
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
        for _, row in one.more.iterrows()
    ]  # fmt: skip
    if not rows:
        return ["No group is shown to lose more than the rest in any variant."]
    return markdown(("variant", "group", "faces:", "its change:", "more than the rest:"), rows)


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
    for prefix, words in KINDS.items():
        kin = [one for one in made if one.name.startswith(prefix)]
        if kin:
            said.append(f"- **{words[0].upper()}{words[1:]}.** " + " ".join(map(sentence, kin)))
    return said


def shipped_accuracy(made: Sequence[Made]) -> float:
    own = made[0].results
    own = own[own["group"].str.match(r"gender=[^&]*$")]
    return float((own["baseline"] * own["n"]).sum() / own["n"].sum())


def sentence(one: Made) -> str:
    ruled, of = one.ruled_out
    change = one.overall
    if one.more.empty:
        who = "no group is shown to lose more than the rest"
    else:
        row = one.more.iloc[0]
        others = len(one.more) - 1
        who = (
            f"{row['group']} loses {-100 * row['estimate']:.1f} points more than the rest"
            + (f", and {others} other groups lose more too" if others > 1 else "")
            + (", and one other group loses more too" if others == 1 else "")
        )
    whole = (
        "no change is shown overall"
        if change["low"] <= 0 <= change["high"]
        else f"{100 * change['estimate']:+.1f} points overall".replace("-", "−")
    )
    return f"`{one.name}`: {whole}; {who}; a loss beyond 2 points is ruled out for {ruled} of {of} groups."  # noqa: E501


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
        files = {name: next((predictions / name).glob("*.parquet")) for name in (plain, trained)}
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
    _, made = read(folder)
    shown = ("int8-static", "bits-4", "pruned-70", "finetuned-70", "channels-50")
    lines = [
        "# Who pays when a deployed gender network is made smaller",
        "", INTRO, "", "## What to take away", "", *sentences(made), "",
        "## How small, and at which price", "", HOW, "", *costs(made), "",
        "## Who loses more than the rest", "", *beyond(made), "",
        "## By race and gender", "",
        "Limits of a variant hold for all its groups of race and gender at once.", "",
        *by_race_and_gender(made, shown), "",
        "## Does training afterwards help?", "",
        "The finetuned network against the pruned one with as many zeros, on the same faces.", "",
        *finetuning(folder), "",
        "## What it gets wrong as shipped", "", *shipped(made), "", AGAIN, "",
    ]  # fmt: skip
    given.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
