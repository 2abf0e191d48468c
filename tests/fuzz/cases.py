"""Random command lines: case k is always the same tables, options and expectation.

A case is drawn from `Random(k)` alone. It names the files to write, the commands to run one after
the other, what they mean (for the oracle), and whether they must succeed, must be refused, or may
be either (input that the rules leave open).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from random import Random
from typing import Any

from tests.fuzz.files import SUFFIXES, Column, Style, Table
from tests.fuzz.flaws import flaw
from tests.fuzz.options import FILLERS, policy
from tests.fuzz.oracle import Meaning, Member, quoted
from tests.fuzz.world import (
    GROUP_NAMES,
    HOSTILE_NAMES,
    Code,
    World,
    column,
    drawn_scores,
    world,
)

ACCEPT, EITHER, REFUSE = "accept", "either", "refuse"
Command = tuple[str, ...]

# How often each command is drawn; `report` and `gate` also follow an audit.
COMMANDS: dict[Command, int] = {
    ("audit",): 30, ("gate",): 11, ("count",): 13, ("choose",): 10, ("explain",): 6,
    ("exemplars",): 8, ("preflight",): 8, ("mitigate", "thresholds"): 4,
    ("mitigate", "overrides"): 3, ("mitigate", "cascade"): 3,
    ("report", "write"): 4, ("report", "figure"): 3, ("report", "figures"): 2,
}  # fmt: skip


@cache
def options_of(command: Command) -> dict[str, Any]:
    """Every option of a command by its long name, as the command line itself declares it."""
    from fairweight.cli.app import parser

    found = parser(command[0])
    for word in command[1:]:
        found = found.commands[word]
    return {
        max(parameter.opts, key=len): parameter
        for parameter in found.params
        if parameter.param_type_name == "option" and "--help" not in parameter.opts
    }


@dataclass
class Step:
    """One command line, and how its outcome is judged."""

    command: Command
    words: list[str]  # what stands behind the command's name
    check: str  # which output is compared with the oracle: a function of tests/fuzz/judge.py
    out: str = ""  # the file or folder with it

    @property
    def argv(self) -> list[str]:
        return [*self.command, *self.words]


@dataclass
class Case:
    """Everything about case k before anything is written."""

    number: int
    tables: list[Table]
    texts: dict[str, str]
    steps: list[Step]
    meaning: Meaning | None  # None: nothing to compute
    expect: str
    why: str
    page: bool  # the report's page is made, and the commands that it suggests are looked at
    without_classes: Any = None  # what a case of tests/fuzz/outcomes.py means


# Every eighth case has no classes; it is drawn apart, so that all others stay what they are.
EVERY, WITHOUT_CLASSES = 8, 2


def case(number: int) -> Case:
    """Case k."""
    if number % EVERY == WITHOUT_CLASSES:
        from tests.fuzz.outcomes import outcome_case  # which draws with what stands here

        return outcome_case(number)
    draft = Draft(Random(f"fairweight {number}"), number)
    return draft.made()


@dataclass
class Draft:
    """A case in the making."""

    rng: Random
    number: int
    command: Command = ()
    tables: list[Table] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    expect: str = ACCEPT
    why: str = ""
    layout: str = ""
    roles: dict[str, str] = field(default_factory=dict)
    out: str = "out"

    # --- drawing ---------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def has(self, option: str) -> bool:
        return option in options_of(self.command)

    def add(self, option: str, *values: object) -> None:
        """Put an option on the command line, as one word or as two."""
        text = [str(value) for value in values]
        if text and (self.chance(0.15) or text[0].startswith("-")):
            self.words += [f"{option}={text[0]}"]
        else:
            self.words += [option, *text]

    def may_refuse(self, why: str) -> None:
        if self.expect == ACCEPT:
            self.expect, self.why = EITHER, why

    def must_refuse(self, why: str) -> None:
        if self.expect != REFUSE:
            self.expect, self.why = REFUSE, why

    # --- the whole -------------------------------------------------------------------------------

    def made(self) -> Case:
        rng = self.rng
        commands = list(COMMANDS)
        self.command = rng.choices(commands, [COMMANDS[c] for c in commands])[0]
        asked = self.command
        reported = asked[0] == "report"
        if reported or (asked == ("gate",) and self.chance(0.25)):
            self.command = ("audit",)
        self._tables()
        flaw(self)
        self._options()
        steps = [Step(self.command, self.words, *self._check())]
        if asked != self.command:
            steps.append(self._following(asked))
        elif asked == ("count",) and self.chance(0.6):
            steps.append(self._audit_of_cube(steps[0].out))
        elif asked[0] == "mitigate" and "--rule" not in self.words and self.chance(0.2):
            steps.append(self._rule_again(steps[0]))
        if self.command == ("gate",) and self.expect != REFUSE and self.chance(0.2):
            steps = self._starter(steps[0])
        page = self.command == ("audit",) and len(steps) == 1 and self.chance(0.06)
        return Case(
            self.number, [*self.tables, *self.beside], self.texts, steps, self.meaning,
            self.expect, self.why, page,
        )  # fmt: skip

    def _tables(self) -> None:
        """The world, its tables, and the words and meaning that go with them."""
        rng = self.rng
        mitigating = self.command[0] == "mitigate"
        self.layout = rng.choice(("files", "files", "long", "wide", "wide"))
        hostile = rng.choice((0.0, 0.0, 0.25))
        pool = list(GROUP_NAMES)
        rng.shuffle(pool)
        names: list[str] = []
        for _ in range(rng.choice((0, 1, 1, 2) if mitigating else (0, 1, 1, 2, 2, 3))):
            name = rng.choice(HOSTILE_NAMES) if self.chance(hostile) else pool.pop()
            if name not in names:
                names.append(name)
        self._roles(hostile)
        names = [n for n in names if n not in self.roles.values()]
        variants = [
            "dense",
            *rng.sample(("int8", "gmp-95", "half", "tiny"), rng.choice((1, 1, 1, 2))),
        ]
        if self.chance(0.1):
            variants[0] = rng.choice(("full", "fp32", "Baseline", "0"))
        if self.chance(0.06):
            variants[-1] = rng.choice(("a b", "é", "it's", "x,y", "\x1b[1mbold", "v" * 120))
        plain = 0.85 if mitigating else 0.5
        drawn = world(
            rng, names=names, variants=variants, plain=plain, scores=0.9 if mitigating else 0.25,
            tasks=0.16 if mitigating else 0.07, least=24 if mitigating else 1,
        )  # fmt: skip
        if self.layout == "wide" and drawn.vectors:
            drawn.vectors = False
            if drawn.score is not None:
                drawn.score = drawn_scores(rng, drawn.label, len(drawn.members), False)
        if self.has("--count") and drawn.tasks[0] is None and self.chance(0.12):
            drawn.count = [rng.choice((0, 1, 1, 2, 5, 40)) for _ in range(drawn.n)]
        self.world = drawn
        self.baseline = variants[0]
        self.variants = variants
        self.meaning = Meaning(self.layout, [], id=self.roles["id"], label=self.roles["label"],
                               variant=self.roles["variant"], seed=self.roles["seed"],
                               prediction=self.roles["prediction"])  # fmt: skip
        self.beside: list[Table] = []
        self.plan = Plan.draw(self)
        self.given = self._given(drawn, "")
        self._attributes()

    def _roles(self, hostile: float) -> None:
        """Names of the columns that have a role; most have the default one."""
        defaults = {
            "id": "example_id", "label": "label", "variant": "variant", "seed": "seed",
            "prediction": "prediction", "score": "score", "task": "task", "weight": "weight",
            "cluster": "person", "count": "count",
        }  # fmt: skip
        others = {
            "id": "uid", "label": "target", "variant": "model", "seed": "run",
            "prediction": "output", "score": "probability", "task": "attribute", "weight": "w",
            "cluster": "speaker id", "count": "number",
        }  # fmt: skip
        self.roles = {}
        for role, name in defaults.items():
            chosen = name
            if self.chance(0.4 if role == "seed" else 0.2):
                chosen = others[role]
                if self.chance(hostile / 2):
                    chosen = self.rng.choice(HOSTILE_NAMES)
            self.roles[role] = chosen if chosen not in self.roles.values() else name
        self.defaults = defaults

    def _given(self, drawn: World, prefix: str) -> list[str]:
        """The tables of a world in the plan's layout; returns the words that name them."""
        tables, words, members, names = self.plan.lay_out(self, drawn, prefix)
        if not prefix:
            self.tables = tables
            self.meaning.tables = tables
            self.meaning.members = members
            self.meaning.names = names
        else:
            self.beside += tables
        return words

    def _attributes(self) -> None:
        """Options that say which column is what, for names that are not the default."""
        roles, drawn = self.roles, self.world
        self.words = list(self.given)
        if roles["id"] != "example_id" and self.plan.has_id:
            self.add("--id", roles["id"])
        if not self.plan.has_id:
            self.meaning.id = None
            held = [name for table in self.tables for name in table.names]
            if get_close_matches("example_id", held, cutoff=0.8):
                self.may_refuse("a column that is called almost like the id")
        if roles["label"] != "label":
            self.add("--label", roles["label"])
        if self.layout == "long" and roles["variant"] != "variant":
            self.add("--variant-column", roles["variant"])
        if self.layout != "wide":
            if roles["prediction"] != "prediction":
                self.add("--prediction-column", roles["prediction"])
            if self.plan.seed_column and roles["seed"] != "seed":
                self.add("--seed-column", roles["seed"])
            elif not self.plan.seed_column:
                # A column of the default name would be taken for the member's.
                self.meaning.seed = "seed"
            if drawn.score is not None and roles["score"] != "score" and not drawn.vectors:
                self.add("--score-column", roles["score"])
        if drawn.tasks[0] is not None:
            self.meaning.task = roles["task"]
            if roles["task"] != "task" or self.chance(0.3):
                self.add("--task", roles["task"])
        if drawn.weight is not None:
            self.meaning.weight = roles["weight"]
            if roles["weight"] != "weight" or self.chance(0.6):
                self.add("--weight", roles["weight"])
        if drawn.cluster is not None:
            self.meaning.cluster = roles["cluster"]
            self.add("--cluster", roles["cluster"])
        if drawn.count is not None:
            self.meaning.count = roles["count"]
            self.add("--count", roles["count"])
        if self.plan.examples is not None:
            self.add("--examples", self.plan.examples.path)
            self.meaning.examples = self.plan.examples
            self.beside.append(self.plan.examples)
        # A long table's first variant is the baseline unless one is called so.
        obvious = self.layout == "files" or self.baseline.lower() in ("dense", "baseline")
        if not obvious or self.chance(0.1):
            self.add("--baseline", self.baseline)
            self.meaning.baseline = self.baseline
        self.meaning.alone = self.command == ("preflight",)
        self.meaning.weighted = self.command not in (("preflight",), ("exemplars",))
        self._groups()

    def _groups(self) -> None:
        held = list(self.world.groups)
        if not held or self.chance(0.35):
            return
        asked: list[tuple[str, ...]] = [
            (n,) for n in self.rng.sample(held, self.rng.randint(1, len(held)))
        ]
        if len(held) > 1 and self.chance(0.4):
            asked.append(tuple(self.rng.sample(held, 2)))
        self.meaning.groups = asked
        self.add("--groups", ",".join("*".join(quoted(n, ",*=") for n in g) for g in asked))

    def given_apart(self) -> list[str]:
        """Tables of other examples in the same layout: validation rows, rows to confirm on."""
        rng, old = self.rng, self.world
        if self.plan.examples is not None:
            self.may_refuse("an examples table that lacks the validation rows")
        ids = [
            Code(c.typed + 10**5, (str(c.typed + 10**5),))
            if isinstance(c.typed, int)
            else Code(f"v{c.texts[0]}", (f"v{c.texts[0]}",))
            for c in old.ids
        ]
        label = rng.sample(old.label, old.n)
        prediction = [
            [true if rng.random() < 0.7 else rng.choice(old.classes) for true in label]
            for _ in old.members
        ]
        score = None
        if old.score is not None:
            score = drawn_scores(rng, old.label, len(old.members), old.vectors)
        cluster = None if old.cluster is None else list(ids)
        drawn = replace(
            old, ids=ids, label=label, prediction=prediction, score=score, cluster=cluster
        )
        return self._given(drawn, "other-")

    # --- options of the commands -----------------------------------------------------------------

    def _options(self) -> None:
        for option in options_of(self.command):
            name = option.lstrip("-").replace("-", "_")
            filler = FILLERS.get(name)
            if filler is not None and not self._said(option):
                filler(self, option)
        if self.number % 3 == 1:
            self._shorten()

    def _shorten(self) -> None:
        """The other way to name a column of predictions: alone, where it is no NAME=COLUMN."""
        long = "--prediction-column"
        for place, word in enumerate(self.words):
            if word == long and "=" not in self.words[place + 1]:
                self.words[place] = "--prediction"
            elif word.startswith(f"{long}=") and word.count("=") == 1:
                self.words[place] = f"--prediction={word.partition('=')[2]}"

    def _said(self, option: str) -> bool:
        return any(word == option or word.startswith(option + "=") for word in self.words)

    def offer(
        self, option: str, share: float, good: Sequence[object], bad: Sequence[object]
    ) -> None:
        """With a chance, an option with a good value, or now and then a bad one."""
        if not self.chance(share):
            return
        if bad and self.chance(0.12):
            self.add(option, self.rng.choice(bad))
            self.must_refuse(f"{option} {self.words[-1]}")
        else:
            self.add(option, self.rng.choice(good))

    def _check(self) -> tuple[str, str]:
        """Which output is compared, and where it is."""
        said = {
            ("audit",): ("audit", self.out),
            ("explain",): ("audit", self.out),
            ("gate",): ("verdict", "verdict.json" if self._said("--json") else ""),
            ("count",): ("cube", self.out),
            ("choose",): ("choice", self.out if self._said("--out") else ""),
            ("exemplars",): ("exemplars", self.out),
            ("preflight",): ("preflight", self.out if self._said("--out") else ""),
        }
        return said.get(self.command, ("mitigation", self.out))

    # --- second commands -------------------------------------------------------------------------

    def _following(self, asked: Command) -> Step:
        """A command on the audit that the first one made."""
        first = self.words
        self.command, self.words = asked, []
        place = self.rng.choice((self.out, f"{self.out}/audit.json"))
        if asked == ("gate",):
            self.words = [place]
            file = "policy.toml" if "policy.toml" not in self.texts else "another.toml"
            self.texts[file] = policy(self)
            self.add("--policy", file)
            for option in ("--json", "--junit", "--markdown", "--require", "--quiet"):
                FILLERS[option.lstrip("-")](self, option)
            for option in ("--looks", "--log"):
                if self.has(option):
                    FILLERS[option.lstrip("-")](self, option)
            if self.chance(0.1):
                self.add("--n-boot", 20)
                self.must_refuse("options of tables for an audit that was made")
            step = Step(asked, self.words, *self._check())
        elif asked == ("report", "figure"):
            self.words = [self.rng.choice(("FW-1", "fw-2", "FW-3", "SS-F2", "nothing")), place]
            self.may_refuse("a figure that this audit may not fill")
            self._options()
            step = Step(asked, self.words, "nothing", "")
        else:
            self.words = [place]
            self._options()
            json_form = "--format" in self.words and "json" in self.words
            step = Step(asked, self.words, "report" if json_form else "nothing", "again.json")
        self.words = first
        return step

    def _starter(self, gated: Step) -> list[Step]:
        """A policy to start from, made for these tables most of the time, and used."""
        if self.chance(0.2):
            self.meaning, self.expect = None, ACCEPT
            return [Step(("gate",), ["--init"], "nothing")]
        of_gate = ("--policy", "--json", "--junit", "--markdown", "--require", "--looks", "--log")
        tables = [w for w in _without(self.words, of_gate) if w not in ("--quiet", "-q")]
        self.may_refuse("a policy for tables, which may have too few examples of a group")
        return [Step(("gate",), [*tables, "--init"], "starter", "policy.toml"), gated]

    def _audit_of_cube(self, cube: str) -> Step:
        if "--suppress-small" in self.words:
            self.may_refuse("a cube of which nothing is left")
        words = [cube, "--n-boot", "20", "--out", "of-cube", *(["-q"] if self.chance(0.5) else [])]
        return Step(("audit",), words, "audit", "of-cube")

    def _rule_again(self, first: Step) -> Step:
        rule = f"{first.out}/{self.command[1]}.json"
        kept = _without(first.words, ("--validation", "--threshold", "--labels", "--out"))
        return Step(self.command, [*kept, "--rule", rule, "--out", "again"], "mitigation", "again")


def _without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    kept: list[str] = []
    held: Iterator[str] = iter(words)
    for word in held:
        if word in options:
            next(held)
        elif word.partition("=")[0] not in options:
            kept.append(word)
    return kept


# --- layouts -------------------------------------------------------------------------------------

_FORMATS = ("csv", "csv", "csv", "tsv", "jsonl", "json", "parquet", "parquet", "arrow", "feather",
            "stream")  # fmt: skip


def draw_style(rng: Random, format_: str | None = None) -> Style:
    """A format with its dialect."""
    format_ = format_ or rng.choice(_FORMATS)
    if format_ == "tsv":
        return Style("tsv", delimiter="\t")
    if format_ == "csv":
        return Style(
            "csv",
            encoding=rng.choice(("utf-8",) * 5 + ("utf-8-sig",)),
            newline=rng.choice(("\n", "\n", "\r\n")),
            delimiter=rng.choice((",", ",", ",", ";", "\t", "|")),
            quote_all=rng.random() < 0.15,
        )
    return Style(format_, row_group=rng.choice((None, None, 1, 7)), odd_numbers=rng.random() < 0.3)


@dataclass
class Plan:
    """How a world is laid out in tables; validation rows are laid out in the same way."""

    layout: str
    has_id: bool
    seed_column: bool
    same_style: Style | None
    vary: bool
    shuffle: bool
    parts: int
    glob: bool
    named: bool
    columns: dict[tuple[str, int], str]  # wide: the prediction column of each member
    said: bool  # wide: --prediction names the columns
    only_first: bool  # files: label and groups stand in the first one alone
    examples: Table | None = None
    beside: frozenset[str] = frozenset()  # columns of the examples table

    @classmethod
    def draw(cls, draft: Draft) -> Plan:
        rng, drawn = draft.rng, draft.world
        several = len({seed for _, seed in drawn.members}) > 1
        plan = cls(
            layout=draft.layout,
            has_id=draft.layout != "wide" or drawn.tasks[0] is not None or draft.chance(0.75),
            seed_column=several and draft.layout != "wide" and draft.chance(0.6),
            same_style=draw_style(rng) if draft.chance(0.6) else None,
            vary=draft.chance(0.3),
            shuffle=draft.chance(0.5),
            parts=rng.choice((1, 1, 1, 2, 3)),
            glob=draft.chance(0.3),
            named=draft.chance(0.5),
            columns={},
            said=draft.chance(0.5),
            only_first=draft.chance(0.15),
        )
        if several and draft.layout == "long":
            plan.seed_column = True
        if draft.layout == "wide":
            plan._name_columns(draft, several)
        if plan.has_id and draft.chance(0.2) and drawn.tasks[0] is None:
            plan._examples_table(draft)
        return plan

    def _name_columns(self, draft: Draft, several: bool) -> None:
        for number, (variant, seed) in enumerate(draft.world.members):
            if self.said:
                name = draft.rng.choice((
                    f"m{number}", f"p{number}", f"pred_{variant}_{seed}", f"out {number}",
                    f"x,{number}", f"a={number}",
                ))  # fmt: skip
            elif several:
                name = f"prediction:{variant}:{seed}"
            else:
                name = draft.rng.choice((f"pred_{variant}", f"{variant}_pred",
                                         f"prediction_{variant}"))  # fmt: skip
            self.columns[variant, seed] = name

    def _examples_table(self, draft: Draft) -> None:
        rng, drawn = draft.rng, draft.world
        style = draw_style(rng)
        held = [name for name in drawn.groups if rng.random() < 0.7]
        label = rng.random() < 0.2
        columns = [column(rng, draft.roles["id"], list(drawn.ids), style.format, vary=False)]
        columns += [column(rng, n, drawn.groups[n], style.format, vary=False) for n in held]
        if label:
            columns.append(
                column(rng, draft.roles["label"], list(drawn.label), style.format, vary=self.vary)
            )
        order = list(range(drawn.n))
        rng.shuffle(order)
        for one in columns:
            one.values = [one.values[i] for i in order]
        if "" in held:
            draft.may_refuse("a column without a name")
        self.examples = Table(f"people{SUFFIXES[style.format]}", columns, style)
        self.beside = frozenset(held if draft.chance(0.8) else ())
        if label and draft.chance(0.5):
            self.beside |= {draft.roles["label"]}

    # --- tables ----------------------------------------------------------------------------------

    def lay_out(
        self, draft: Draft, drawn: World, prefix: str
    ) -> tuple[list[Table], list[str], list[Member], dict[int, str]]:
        """Tables, the words that name them, and (wide, files) what each stands for."""
        return {"wide": self._wide, "long": self._long, "files": self._files}[self.layout](
            draft, drawn, prefix
        )

    def _style(self, draft: Draft) -> Style:
        return self.same_style or draw_style(draft.rng)

    def _own(self, draft: Draft, drawn: World, style: Style, order: Sequence[int],
             *, first: bool = True) -> list[Column]:  # fmt: skip
        """Columns of the examples, in an order of rows, as this table holds them."""
        rng, roles = draft.rng, draft.roles

        def made(name: str, codes: Sequence[Code | None], vary: bool = False) -> Column:
            return column(rng, name, [codes[i] for i in order], style.format, vary=vary)

        columns = []
        if self.has_id:
            columns.append(made(roles["id"], drawn.ids, self.vary))
        if drawn.tasks[0] is not None:
            columns.append(made(roles["task"], drawn.tasks))
        if self.only_first and self.layout == "files" and not first:
            return columns
        if roles["label"] not in self.beside:
            columns.append(made(roles["label"], drawn.label, self.vary))
        for name, codes in drawn.groups.items():
            if name not in self.beside:
                columns.append(made(name, codes, self.vary))
        if drawn.weight is not None:
            kind = "float"
            columns.append(Column(roles["weight"], [drawn.weight[i] for i in order], kind))
        if drawn.cluster is not None:
            columns.append(made(roles["cluster"], drawn.cluster))
        if drawn.count is not None:
            columns.append(Column(roles["count"], [drawn.count[i] for i in order], "int"))
        for further in drawn.further.values():
            if style.format in ("csv", "tsv") and further.kind in ("list", "struct"):
                continue
            columns.append(replace(further, values=[further.values[i] for i in order]))
        return columns

    def _scores(self, draft: Draft, drawn: World, rows: Sequence[tuple[int, int]]) -> Column:
        assert drawn.score is not None
        held = [drawn.score[member][row] for member, row in rows]
        if drawn.vectors:
            return Column("scores", held, "list")
        return Column(draft.roles["score"], held, "float")

    def _order(self, draft: Draft, n: int) -> list[int]:
        order = list(range(n))
        if self.shuffle:
            draft.rng.shuffle(order)
        return order

    def _arranged(self, draft: Draft, columns: list[Column]) -> list[Column]:
        names = [c.name for c in columns]
        kept = [c for i, c in enumerate(columns) if c.name not in names[:i]]
        if len({n.lower() for n in names}) < len(names):
            draft.may_refuse("column names that differ in case alone, or clash with a role")
        if "" in names:
            draft.may_refuse("a column without a name")
        if draft.chance(0.3):
            draft.rng.shuffle(kept)
        return kept

    def _wide(self, draft: Draft, drawn: World, prefix: str) -> Any:
        rng = draft.rng
        style = self._style(draft)
        order = self._order(draft, drawn.n)
        columns = self._own(draft, drawn, style, order)
        members = []
        words: list[str] = []
        for number, (variant, seed) in enumerate(drawn.members):
            name = self.columns[variant, seed]
            predicted = [drawn.prediction[number][i] for i in order]
            columns.append(column(rng, name, predicted, style.format, vary=self.vary))
            if self.said:
                words += ["--prediction", f"{variant}={name}"]
            if drawn.score is not None:
                of_score = name.replace("prediction", "score").replace("pred", "score")
                of_score = of_score if of_score != name else f"prob {name}"
                scores = [drawn.score[number][i] for i in order]
                columns.append(Column(of_score, scores, "float"))
                if self.said:
                    words += ["--score", f"{variant}={of_score}"]
        columns = self._arranged(draft, columns)
        tables = _split(columns, style, f"{prefix}wide", self.parts)
        for variant, seed in drawn.members:
            of_variant = [s for v, s in drawn.members if v == variant]
            shown = str(of_variant.index(seed)) if self.said else str(seed)
            members.append(Member(variant, shown, tables[0], self.columns[variant, seed]))
        given = _named(tables, f"{prefix}wide", self.glob, style)
        return tables, [*given, *words] if not prefix else given, members, {}

    def _long(self, draft: Draft, drawn: World, prefix: str) -> Any:
        rng, roles = draft.rng, draft.roles
        style = self._style(draft)
        rows = [(m, i) for m in range(len(drawn.members)) for i in range(drawn.n)]
        if self.shuffle:
            rng.shuffle(rows)
        columns = self._own(draft, drawn, style, [i for _, i in rows])
        names = [Code(v, (v,)) for v, _ in drawn.members]
        columns.append(
            column(rng, roles["variant"], [names[m] for m, _ in rows], style.format, vary=False)
        )
        if self.seed_column or (draft.meaning.seed == "seed" and draft.chance(0.2)):
            self.seed_column = True
            seeds = [drawn.members[m][1] for m, _ in rows]
            columns.append(Column(roles["seed"], seeds, "int"))
        predicted = [drawn.prediction[m][i] for m, i in rows]
        columns.append(column(rng, roles["prediction"], predicted, style.format, vary=self.vary))
        if drawn.score is not None:
            columns.append(self._scores(draft, drawn, rows))
        columns = self._arranged(draft, columns)
        tables = _split(columns, style, f"{prefix}long", self.parts)
        return tables, _named(tables, f"{prefix}long", self.glob, style), [], {}

    def _files(self, draft: Draft, drawn: World, prefix: str) -> Any:
        rng, roles = draft.rng, draft.roles
        tables: list[Table] = []
        words: list[str] = []
        names: dict[int, str] = {}
        variants = list(dict.fromkeys(v for v, _ in drawn.members))
        groups = (
            [[m for m, (v, _) in enumerate(drawn.members) if v == variant] for variant in variants]
            if self.seed_column
            else [[m] for m in range(len(drawn.members))]
        )
        population = len(groups) > len(variants)
        safe = all(v.isalnum() for v in variants) and not population
        for number, members in enumerate(groups):
            style = self._style(draft)
            variant = drawn.members[members[0]][0]
            order = self._order(draft, drawn.n)
            rows = [(m, i) for m in members for i in order]
            columns = self._own(draft, drawn, style, [i for _, i in rows], first=number == 0)
            if self.seed_column:
                columns.append(Column(roles["seed"], [drawn.members[m][1] for m, _ in rows], "int"))
            predicted = [drawn.prediction[m][i] for m, i in rows]
            columns.append(
                column(rng, roles["prediction"], predicted, style.format, vary=self.vary)
            )
            if drawn.score is not None:
                columns.append(self._scores(draft, drawn, rows))
            stem = variant if safe else rng.choice(("file", "my file", "it's", "ü")) + str(number)
            path = f"{prefix}{stem}{SUFFIXES[style.format]}"
            tables.append(Table(path, self._arranged(draft, columns), style))
            named = not safe or self.named or bool(prefix)
            words.append(f"{variant}={path}" if named else path)
            names[number] = variant
        return tables, words, [], names


def _split(columns: list[Column], style: Style, stem: str, parts: int) -> list[Table]:
    """A table as one file, or its rows as several."""
    n = len(columns[0].values)
    parts = min(parts, n)
    suffix = SUFFIXES[style.format]
    if parts < 2:
        return [Table(f"{stem}{suffix}", columns, style)]
    cuts = [n * part // parts for part in range(parts + 1)]
    return [
        Table(
            f"{stem}-{part}{suffix}",
            [replace(c, values=c.values[cuts[part] : cuts[part + 1]]) for c in columns],
            style,
        )
        for part in range(parts)
    ]


def _named(tables: list[Table], stem: str, glob: bool, style: Style) -> list[str]:
    if len(tables) > 1 and glob:
        return [f"{stem}-*{SUFFIXES[style.format]}"]
    return [table.path for table in tables]
