"""Members that are runs of one model: nothing that is shown speaks of retraining."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import fairweight as fw
from fairweight.auditing.archive import from_json, to_json
from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.card import to_card
from fairweight.report.explanation_sentences import explanation_sentences
from fairweight.report.figures import draw, figures
from fairweight.report.html import render
from fairweight.report.markdown import to_markdown
from fairweight.report.members import members_of, worded
from fairweight.report.notebook import fragment
from fairweight.report.terminal import show

NAME = "retraining alone, the method"  # a variant of a user who knows our words


def audited(
    members: str,
    n_seeds: int = 6,
    explain: Sequence[str] = ("exemplars", "properties"),
    **options: object,
) -> AuditResult:
    """Dense and pruned members on 240 examples; the pruned ones lose class `b` of the old."""
    rng = np.random.default_rng(5)
    n = 240
    label = np.array(["a", "b", "c"])[np.arange(n) % 3]
    age = np.where(np.arange(n) % 2 == 0, "old", "young")
    harmed = (label == "b") & (age == "old")
    parts = []
    for variant, wrong in (("dense", 0.05), (NAME, 0.2)):
        for seed in range(n_seeds):
            lost = rng.random(n) < np.where(harmed, 2 * wrong, wrong / 2)
            parts.append(
                pd.DataFrame(
                    {
                        "example_id": range(n),
                        "variant": variant,
                        "seed": seed,
                        "label": label,
                        "prediction": np.where(lost, "c", label),
                        "score": np.where(lost, 0.6, 0.95) - seed / 100,
                        "age": age,
                    }
                )
            )
    table = pd.concat(parts, ignore_index=True)
    return fw.audit_table(
        table, n_boot=40, members=members, explain=list(explain) or None, **options
    ).result


@pytest.fixture(scope="module")
def repeated() -> AuditResult:
    return audited("repeated")


@pytest.fixture(scope="module")
def retrained() -> AuditResult:
    return audited("retrained")


def visible(page: str) -> str:
    """What a reader of the page sees, without figures."""
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def strings(value: object) -> list[str]:
    """All texts of a specification that are not names of fields."""
    if isinstance(value, dict):
        return [s for key, held in value.items() if key != "field" for s in strings(held)]
    if isinstance(value, list):
        return [s for held in value for s in strings(held)]
    return [value] if isinstance(value, str) else []


@pytest.fixture(scope="module")
def of_repeated(repeated: AuditResult) -> dict[str, str]:
    return outputs(repeated)


def outputs(result: AuditResult) -> dict[str, str]:
    file = io.StringIO()
    show(result, Console(file=file, width=160), verbose=True)
    return {
        "terminal": file.getvalue(),
        "page": visible(render(result)),
        "markdown": to_markdown(result),
        "notebook": visible(fragment(result)),
        "card": to_card(result, result.variants[0]),
        "explanations": "\n".join(explanation_sentences(result)),
    }


def ours(text: str) -> str:
    """A text without the variant's name, which is the user's own."""
    return re.sub(r"\s+", " ", text).replace(NAME, "NAME")


def test_nothing_speaks_of_retraining(of_repeated: dict[str, str]) -> None:
    for where, text in of_repeated.items():
        said = ours(text)
        assert not re.search("retrain", said.replace("p_retraining", ""), re.IGNORECASE), where
        assert not re.search(r"\bthe method\b", said, re.IGNORECASE), where
        assert NAME in re.sub(r"\s+", " ", text), where
    for where in ("terminal", "page", "markdown", "card", "explanations"):
        assert "the same model run again" in ours(of_repeated[where]).lower(), where


def test_figures_do_not_either(repeated: AuditResult) -> None:
    drawn = 0
    for figure in figures():
        drawing = draw(figure.id, repeated, None if figure.once else NAME)
        texts = [worded(figure.title, "repeated"), worded(figure.caption, "repeated")]
        texts += strings(drawing.spec) if drawing.spec is not None else [drawing.reason or ""]
        drawn += drawing.spec is not None
        if drawing.spec is not None and not figure.once:
            assert NAME in json.dumps(drawing.spec, ensure_ascii=False), figure.id
        for text in texts:
            plain = re.sub(r"datum\.\w+", "", text.replace(NAME, ""))
            assert not re.search("retraining|the method", plain, re.IGNORECASE), (figure.id, text)
    assert drawn >= 10


def test_retrained_members_are_spoken_of_as_before(retrained: AuditResult) -> None:
    said = {where: ours(text) for where, text in outputs(retrained).items()}
    for where in ("terminal", "page", "markdown", "card", "explanations"):
        assert "retraining alone" in said[where].lower(), where
    assert "run again" not in said["markdown"]


def test_the_numbers_are_the_same(repeated: AuditResult, retrained: AuditResult) -> None:
    """Runs of one model say nothing about a method: those rows are absent."""
    assert set(repeated.results["scope"]) == {"model"}
    of_models = retrained.results[retrained.results["scope"] == "model"].reset_index(drop=True)
    pd.testing.assert_frame_equal(repeated.results, of_models)


def test_it_is_stored(repeated: AuditResult, retrained: AuditResult) -> None:
    assert repeated.provenance.options["members"] == "repeated"
    assert members_of(from_json(to_json(repeated))) == "repeated"
    document = json.loads(to_json(retrained))
    del document["provenance"]["options"]["members"]  # as version 0.1.0 wrote it
    assert members_of(from_json(json.dumps(document))) == "retrained"


def notes(result: AuditResult) -> list[str]:
    return [note for note in result.notes if "--members repeated" in note]


def test_one_caveat_where_no_variants_table_confirms(
    repeated: AuditResult, retrained: AuditResult
) -> None:
    assert len(notes(retrained)) == 1
    assert "taken to be models that were trained again" in notes(retrained)[0]
    assert len(notes(repeated)) == 1
    assert "averaged within each example" in notes(repeated)[0]
    members = [(v, s) for v in ("dense", NAME) for s in range(6)]
    table = pd.DataFrame(members, columns=["variant", "seed"])
    assert notes(audited("retrained", explain=(), variants=table)) == []
    assert len(notes(audited("retrained", explain=(), variants=table[:-1]))) == 1
    made_from = table[6:].assign(parent=[f"dense:{seed}" for seed in range(6)])
    assert notes(audited("retrained", explain=(), variants=made_from)) == []
    assert notes(audited("retrained", explain=(), n_seeds=1)) == []


def test_one_pair_of_runs() -> None:
    said = {where: ours(text) for where, text in outputs(audited("repeated", n_seeds=1)).items()}
    assert "one run of each does not show how far" in said["terminal"]
    assert "retrain" not in said["terminal"].lower()


def test_other_words_are_refused() -> None:
    with pytest.raises(InputError, match=r"--members \(members=\) cannot be 'seeds'; use"):
        audited("seeds")
