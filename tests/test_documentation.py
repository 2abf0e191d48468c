"""The documentation as a contract: everything is documented, and what is documented works."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from tests.scripts import loaded

import fairweight as fw
from fairweight import cli
from fairweight.auditing.metrics import metrics
from fairweight.auditing.metrics.registry import unregister
from fairweight.auditing.schema import AUDIT_TABLES
from fairweight.cli.app import NAMES, parser

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"
COMMANDS: dict[str, Any] = {name: parser(name) for name in NAMES}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def sections(page: Path) -> dict[str, str]:
    """Second-level headings and what stands below them."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# --- nothing is undocumented ---------------------------------------------------------------------


def generator() -> ModuleType:
    return loaded("docs/generate_reference.py")


@pytest.mark.parametrize("name", ["metrics.md", "command-line.md"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    made = generator().PAGES[name]()
    held = (DOCS / "reference" / name).read_text(encoding="utf-8")
    assert held == made, "run: python docs/generate_reference.py"


def test_every_metric_is_documented() -> None:
    page = (DOCS / "reference/metrics.md").read_text(encoding="utf-8")
    for entry in metrics():
        assert f"\n### {entry.name}\n" in page
    assert page.count("\n### ") == len(metrics())


def test_every_command_and_option_is_documented() -> None:
    found = sections(DOCS / "reference/command-line.md")
    for name, command in COMMANDS.items():
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("-") and not getattr(parameter, "hidden", False):
                    assert f"`{option}" in found[f"fairweight {name}"], (name, option)


@pytest.fixture(scope="module")
def small_audit() -> fw.Audit:
    """An audit that fills every frame."""
    n = 120
    label = np.arange(n) % 2
    other = np.where(np.arange(n) % 5 == 0, 1 - label, label)
    return fw.audit(
        label,
        {"dense": label, "int8": other},
        y_score={"dense": 0.1 + 0.8 * label, "int8": 0.2 + 0.6 * other},
        sensitive_features={"half": np.repeat(["a", "b"], n // 2)},
        n_boot=40,
        group_error=0.05,
    )


@pytest.mark.parametrize("frame", AUDIT_TABLES)
def test_every_column_is_documented(small_audit: fw.Audit, frame: str) -> None:
    """Both ways: a column without an entry fails, and so does an entry without a column."""
    documented = re.findall(
        r"^\| `([^`]+)` \|", sections(DOCS / "reference/results.md")[frame], re.MULTILINE
    )
    assert documented == list(getattr(small_audit, frame).columns)


def test_every_key_of_audit_json_is_documented(small_audit: fw.Audit) -> None:
    documented = re.findall(
        r"^\| `([^`]+)` \|", sections(DOCS / "reference/results.md")["audit.json"], re.MULTILINE
    )
    assert set(documented) == set(json.loads(small_audit.to_json()))


@pytest.mark.parametrize("index", [page for page in PAGES if page.name == "index.md"], ids=name_of)
def test_an_index_links_every_page_below_it(index: Path) -> None:
    """Of a folder that has an index of its own, it links that index instead."""
    folder, text = index.parent, index.read_text(encoding="utf-8")
    below = {page for page in folder.rglob("*.md") if page != index}
    inner = {page.parent for page in below if page.name == "index.md"}
    wanted = {p for p in below if p.name == "index.md" or not inner & set(p.parents)}
    missing = [name_of(p) for p in wanted if f"({p.relative_to(folder).as_posix()})" not in text]
    assert missing == []


# --- what is written holds -----------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Headings as GitHub names their anchors."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings]
    return set(plain)


OF_THE_CODE = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    DOCS / "how-a-number-is-made.md",
]


@pytest.mark.parametrize("page", [*PAGES, README, *OF_THE_CODE[:3]], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = page if not path else (page.parent / path).resolve()
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place), target


@pytest.mark.parametrize("page", OF_THE_CODE, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    """Paths in code, below the project or the package; what is named alone is found by name."""
    held = {path.name for part in ("src", "tests") for path in (ROOT / part).rglob("*.*")}
    found = re.findall(r"`([\w./]+\.(?:py|toml|j2))[`:]", page.read_text(encoding="utf-8"))
    assert len(found) > 5
    places = (ROOT, ROOT / "src/fairweight", ROOT / "src/fairweight/auditing")
    missing = [
        name
        for name in found
        if not any((place / name).exists() for place in places) and name not in held
    ]
    assert missing == []


def test_the_map_shows_the_tree_that_is_there() -> None:
    """Every folder of the package is in it, and no folder or module that is gone."""
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    package = ROOT / "src/fairweight"
    folders = {path.parent.name for path in package.rglob("*.py")}
    named = set(re.findall(r"(?<![\w/.*])(\w+)/(?!\w)", tree))
    assert folders - {package.name} <= named
    gone = {name for name in named if not any(package.rglob(name))}
    stems = {path.stem for path in package.rglob("*.py")}
    assert set(re.findall(r"\b[a-z0-9]+_\w+", tree)) <= stems  # such words are modules
    beside = {"src", "same", "fuzz", "simulations", "browser", "tests", "benchmarks"}
    assert gone <= beside | {package.name}


CLAIMS = re.compile(
    r"\b(is|are|be|provably|guaranteed|certified) fair\b|\bunbiased\b|\bde-?biased\b|\bbias-free\b"
    r"|\bfairer\b|\bsolves? bias\b",
    re.IGNORECASE,
)


def test_the_pattern_finds_claims_and_only_those() -> None:
    for text in ("the model is fair", "Unbiased results", "a debiased model", "are fair."):
        assert CLAIMS.search(text)
    for text in ("fairweight", "bias amplification", "a fair share of", "who pays"):
        assert not CLAIMS.search(text)


def templates() -> list[Path]:
    found = sorted((ROOT / "src/fairweight/report/templates").iterdir())
    assert len(found) > 2
    return found


@pytest.mark.parametrize("page", [*PAGES, README, *templates()], ids=name_of)
def test_no_claim_that_numbers_cannot_carry(page: Path) -> None:
    """Differences are measured; nothing is declared free of them. `debiased` names a column."""
    text = page.read_text(encoding="utf-8").replace("`debiased`", "").replace('"debiased"', "")
    assert [match.group() for match in CLAIMS.finditer(text)] == []


# --- what is written runs ------------------------------------------------------------------------


def commands(text: str) -> Iterator[list[str]]:
    """Every command of a fenced block: `$ fairweight …` or a line that begins with fairweight."""
    for language, body in FENCED.findall(text):
        if language in ("console", "sh", "bash"):
            for line in body.splitlines():
                words = line.removeprefix("$ ").split(" #")[0]
                if words.startswith("fairweight "):
                    yield shlex.split(words)[1:]


def parse(words: list[str]) -> None:
    """Parse a command without running it; raises what the parser does not understand."""
    with contextlib.suppress(typer.Exit), contextlib.redirect_stdout(io.StringIO()):  # --help
        COMMANDS[words[0]].make_context(words[0], list(words[1:]))


@pytest.mark.parametrize("page", [*PAGES, README, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_commands_parse(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for words in commands(text):
        parse(words)
    names = "audit|compress|count|datasets|demo|gate|methods|metrics|predict|train"
    for words in re.findall(rf"`(fairweight (?:{names}) [^`]*)`", text):
        if "COMMAND" not in words:
            parse(shlex.split(words)[1:])


def test_a_wrong_command_would_be_found() -> None:
    with pytest.raises(Exception, match="--group"):
        parse(["audit", "a.csv", "--group", "sex"])


def test_commands_of_docstrings_parse() -> None:
    found = 0
    for command in COMMANDS.values():
        for line in command.help.splitlines():
            if line.startswith("    fairweight "):
                parse(shlex.split(line)[1:])
                found += 1
    assert found >= 7


FEW = 40  # replicates; pages show 200 and the defaults
ROWS = 300  # of made tables that a page draws in thousands
RUN = [page for page in PAGES if "reference" not in page.parts and "```python" in page.read_text()]


@pytest.fixture
def few_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documentation shows defaults; the tests need no 2,000 replicates and no drawn page."""
    from fairweight.auditing import pipeline

    monkeypatch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
    audited = pipeline.audited

    def quickly(tables: fw.TableSpec, options: fw.AuditOptions, **more: Any) -> Any:
        return audited(tables, replace(options, n_boot=min(options.n_boot, FEW)), **more)

    monkeypatch.setattr(pipeline, "audited", quickly)


@pytest.fixture
def same_metrics() -> Iterator[None]:
    """A page that fails halfway must not leave its metric behind."""
    before = {entry.name for entry in metrics()}
    yield
    for entry in metrics():
        if entry.name not in before:
            unregister(entry.name)


def run_blocks(text: str, names: dict[str, Any]) -> int:
    """Run the Python and console blocks of a page from top to bottom; returns how many ran."""
    ran = 0
    text = re.sub(r"(--n-boot |n_boot=)\d+", rf"\g<1>{FEW}", text)
    text = re.sub(r"\bpredictions\(\d{4},", f"predictions({ROWS},", text)
    for language, body in FENCED.findall(text):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(body, "<documentation>", "exec"), names)
            ran += 1
        elif language == "console":
            for words in commands(f"```console\n{body}```"):
                from_tables = not any(word.endswith(".json") for word in words[1:2])
                drawn = words[0] in ("audit", "gate") and from_tables
                few = ["--n-boot", str(FEW)] if drawn else []
                assert cli.run([*words, *few]) == cli.DONE, words
                ran += 1
    return ran


@pytest.mark.parametrize("page", RUN, ids=name_of)
@pytest.mark.usefixtures("few_replicates", "same_metrics")
def test_pages_run_from_top_to_bottom(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    text = page.read_text(encoding="utf-8")
    if "FAIRWEIGHT_GOLDEN" in text:  # published numbers, which are not part of the repository
        monkeypatch.setenv("FAIRWEIGHT_GOLDEN", str(request.getfixturevalue("golden")))
    monkeypatch.chdir(tmp_path)
    assert run_blocks(text, {}) >= 2


def test_the_pages_that_must_run_are_among_those_that_do() -> None:
    assert {name_of(page) for page in RUN} >= {
        "docs/errata.md",
        "docs/guide.md",
        "docs/how-to/add-a-method.md",
        "docs/how-to/audit-a-population.md",
        "docs/how-to/audit-two-files.md",
        "docs/how-to/choose-a-policy.md",
        "docs/how-to/compare-representations.md",
        "docs/how-to/gate-a-release.md",
        "docs/how-to/run-a-study.md",
        "docs/how-to/share-counts-not-rows.md",
        "docs/how-to/train-and-compress.md",
        "docs/how-to/use-in-a-compression-loop.md",
        "docs/how-to/write-a-metric.md",
    }


@pytest.mark.usefixtures("few_replicates", "same_metrics")
def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the arrays and files that its text speaks of."""
    monkeypatch.chdir(tmp_path)
    n = 80
    label = np.arange(n) % 2
    people = pd.DataFrame({"sex": np.where(np.arange(n) % 3, "F", "M"), "age": label})
    people["age"] = np.where(np.arange(n) % 5 < 2, "old", "young")
    answers = {"dense": label, "int8": np.where(np.arange(n) % 9 == 0, 1 - label, label)}
    tables = []
    for name, prediction in answers.items():
        table = people.assign(example_id=np.arange(n), label=label, prediction=prediction)
        table.to_csv(f"{name}.csv", index=False)
        tables.append(table.assign(variant=name))
    pd.concat(tables).to_parquet("predictions.parquet")  # as `predict` writes it
    names = {f"{name}_predictions": prediction for name, prediction in answers.items()}
    ran = run_blocks(
        README.read_text(encoding="utf-8"), names | {"y_true": label, "people": people}
    )
    assert ran >= 1
    for words in commands(README.read_text(encoding="utf-8")):
        if words[0] == "audit":
            assert cli.run([*words, "--n-boot", "40"]) == cli.DONE
