"""Values for every option of every command that reads tables, by the option's name.

An option that the layout of the tables asks for (`--id`, `--prediction`, …) is on the command line
already and is not offered again. What is given here is mostly good, and now and then it is not:
then the draft knows that the command must be refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzz.files import Column, Style, Table
from tests.fuzz.oracle import canonical, level_name, quoted

if TYPE_CHECKING:
    from tests.fuzz.cases import Draft

Filler = Callable[["Draft", str], None]


def listed(*names: str) -> str:
    """Names as an option takes them: with commas, quoted where a name has a mark."""
    return ",".join(quoted(name, ",*=") for name in names)


def _number(share: float, good: tuple[object, ...], bad: tuple[object, ...] = ()) -> Filler:
    return lambda draft, option: draft.offer(option, share, good, bad)


def _flag(share: float) -> Filler:
    def fill(draft: Draft, option: str) -> None:
        if draft.chance(share):
            draft.add(option)

    return fill


def _unknown(share: float, value: str) -> Filler:
    """Options that only the layout can fill; by themselves they name what is not there."""

    def fill(draft: Draft, option: str) -> None:
        if draft.chance(share):
            draft.add(option, value)
            draft.must_refuse(f"{option} {value}")

    return fill


def _overwrite(draft: Draft, option: str) -> None:
    """By the number of the case, not by a draw: it changes nothing in an empty folder."""
    if draft.number % 20 == 7:
        draft.add(option)


def _scores(draft: Draft, option: str) -> None:
    """Class probabilities by a pattern; by the number of the case too."""
    if draft.number % 97 == 13:
        draft.add(option, (draft.number % 2 and "no such *") or "no star")
        draft.must_refuse("--scores matches nothing")


def _query(draft: Draft, option: str) -> None:
    """Also by the number of the case: a query for all rows changes nothing."""
    if draft.number % 20 == 11:
        draft.add(option, "SELECT * FROM data")


def _class_names(draft: Draft, option: str) -> None:
    """By the number of the case: names of the classes change no number."""
    if draft.number % 20 == 15:
        lines = [f"{i},name {i}" for i in range(3)]
        draft.texts["names.csv"] = "class,name\n" + "\n".join(lines) + "\n"
        draft.words += [option, "names.csv"]
        draft.may_refuse("names of classes, of which the table may have others")


def _verbose(draft: Draft, option: str) -> None:
    """By the number of the case too: more is printed."""
    if draft.number % 20 == 9:
        draft.words.append(option)


def _elsewhere(place: int, *value: str) -> Filler:
    """Options of logs and of warehouses, by the number of the case too: tables refuse them."""

    def fill(draft: Draft, option: str) -> None:
        if draft.number % 59 == place:
            draft.words.append("=".join((option, *value)))
            draft.must_refuse(f"{option}, which is not for tables")

    return fill


def _n_boot(draft: Draft, option: str) -> None:
    if draft.chance(0.02):
        draft.add(option, draft.rng.choice((0, 19, -1, "x")))
        draft.must_refuse("--n-boot below 20")
    else:
        draft.add(option, draft.rng.choice((20, 20, 25, 40)))


def _missing(draft: Draft, option: str) -> None:
    draft.offer(option, 0.08, ("drop", "drop", "error"), ("maybe",))
    draft.meaning.drop = draft.words[-1].endswith("drop") and draft._said(option)


def _labels(draft: Draft) -> list[str]:
    return sorted({canonical(code.texts[0]) or "" for code in draft.world.label})


def _positive(draft: Draft, option: str) -> None:
    if not draft.chance(0.07):
        return
    labels = _labels(draft)
    draft.add(option, draft.rng.choice((*labels, *labels, "never")))
    if len(labels) != 2 or draft.world.tasks[0] is not None:
        draft.may_refuse("--positive with other than two classes")
    if draft.words[-1].endswith("never") and draft.world.tasks[0] is None:
        draft.must_refuse("--positive names no label")


def _train(draft: Draft, option: str) -> None:
    if not draft.chance(0.1):
        return
    world, rng = draft.world, draft.rng
    n = world.n
    columns = [Column(draft.roles["label"], [code.texts[0] for code in world.label])]
    for name, codes in world.groups.items():
        if draft.chance(0.7) and name != draft.roles["label"]:
            texts = [None if code is None else code.texts[0] for code in codes]
            columns.append(Column(name, texts))
    if draft.chance(0.4) and "n" not in world.groups and draft.roles["label"] != "n":
        columns.append(Column("n", [rng.choice((1, 3, 10)) for _ in range(n)], "int"))
    draft.beside.append(Table("train.csv", columns, Style()))
    draft.add(option, "train.csv")
    names = {c.name.lower() for c in columns}
    if columns[0].name != columns[0].name.strip():
        draft.may_refuse("a label whose spaces CSV does not keep, while other formats do")
    if len(names) < len(columns) or {"count", "n", "label", "task"} & {*world.groups}:
        draft.may_refuse("names of the training table that clash")


def _variants(draft: Draft, option: str) -> None:
    if not draft.chance(0.35 if draft.command == ("choose",) else 0.1):
        return
    rng, members = draft.rng, draft.world.members
    columns = [
        Column(draft.roles["variant"], [variant for variant, _ in members]),
        Column(draft.roles["seed"], [seed for _, seed in members], "int"),
        Column("size_bytes", [rng.randint(1_000, 9_000) for _ in members], "int"),
        Column("latency_ms", [round(rng.uniform(1, 9), 2) for _ in members], "float"),
    ]
    first = members[0][0]
    if draft.chance(0.5):
        parents = [None if v == first else f"{first}:{s}" for v, s in members]
        columns.append(Column("parent", parents))
    draft.beside.append(Table("models.csv", columns, Style()))
    draft.add(option, "models.csv")
    # The names of the columns are those that the options give, or the default ones.
    for role in ("variant", "seed"):
        name = draft.roles[role]
        if name != role and not draft._said(f"--{role}-column"):
            draft.may_refuse(f"a variants table without a column '{role}'")
    if len({c.name.lower() for c in columns}) < len(columns):
        draft.may_refuse("a variants table with clashing names")


def _fixed_side(draft: Draft, option: str) -> None:
    if not draft.chance(0.05):
        return
    groups = draft.world.groups
    levels = [
        level_name(name, canonical(code.texts[0]))
        for name, codes in groups.items()
        for code in codes
        if code is not None
    ]
    if not levels or draft.chance(0.2):
        draft.add(option, "nobody=x")
        draft.must_refuse("--fixed-side names no level")
        return
    draft.add(option, draft.rng.choice(levels))
    draft.may_refuse("--fixed-side of a column that may be no group")


def _level(draft: Draft) -> str | None:
    """A group that is there beyond doubt: asked for by itself, of an example that is counted."""
    world = draft.world
    single = [g[0] for g in draft.meaning.groups or () if len(g) == 1]
    if not single or draft.meaning.drop or world.count is not None:
        return None
    name = draft.rng.choice(single)
    code = draft.rng.choice(world.groups[name])
    return level_name(name, None if code is None else canonical(code.texts[0]))


def policy(draft: Draft) -> str:
    """A policy as TOML; one whose rules any audit can answer, most of the time."""
    rng = draft.rng
    rules = [("accuracy", rng.choice(("overall", "class")), "margin", rng.choice((0.0, 0.02, 0.5)))]
    if draft.meaning.groups and draft.chance(0.6):
        rules.append(("accuracy", "group", "margin", 0.1))
        if all(len(grouping) > 1 for grouping in draft.meaning.groups):
            draft.may_refuse("a policy on groups, and no single column")
    if draft.chance(0.1):
        rules.append(("accuracy", "overall", "recovery", 0.9))
        draft.may_refuse("a recovery where the baseline is no better than chance")
    if draft.chance(0.15):
        rules.append((rng.choice(("recall", "worst_group", "fnr", "precision", "kappa", "auc")),
                      rng.choice(("overall", "class", "group", "grouping", "intersection")),
                      rng.choice(("margin", "min", "max")), 0.3))  # fmt: skip
        draft.may_refuse("a policy with any metric")
    lines = [f"min_group_size = {rng.choice((1, 5, 100))}"]
    level = _level(draft)
    if draft.chance(0.1):
        lines.append('require_groups = ["sex=nobody"]')
        draft.may_refuse("a policy that requires groups")
    elif level is not None and draft.chance(0.3):
        lines.append(f"require_groups = [{json.dumps(level, ensure_ascii=False)}]")
        if "." in level:
            draft.may_refuse("a required group that is a number, which formats write in many ways")
    for metric, by, criterion, limit in rules:
        lines += ["[[rule]]", f'metric = "{metric}"', f'by = "{by}"', f"{criterion} = {limit}"]
        if by == "group" and metric == "accuracy" and level is not None and draft.chance(0.3):
            lines.append(f"groups = [{json.dumps(level, ensure_ascii=False)}]")
    if draft.chance(0.04):
        lines.append("margins = 3")
        draft.must_refuse("a policy with an unknown key")
    return "\n".join(lines) + "\n"


def _policy(draft: Draft, option: str) -> None:
    if draft.command == ("gate",) or draft.chance(0.06):
        draft.texts["policy.toml"] = policy(draft)
        draft.add(option, "policy.toml")
        if draft.command == ("choose",):
            draft.may_refuse("a policy judges all examples, and some may be kept to confirm")


def _out(draft: Draft, option: str) -> None:
    command = draft.command
    if command == ("count",):
        draft.out = draft.rng.choice(("cube.parquet", "my cube.parquet", "deep/cube.parquet"))
    elif command == ("report", "write"):
        draft.out = "again.json" if "json" in draft.words else "again.txt"
    elif command == ("report", "figure"):
        draft.out = draft.rng.choice(("figure.csv", "figure.json", "figure.svg", "figure.gif"))
    elif command[0] != "choose" and command[0] != "preflight" and draft.chance(0.04):
        draft.out = f"fairweight-{ {'explain': 'explanation'}.get(command[-1], command[-1]) }"
        return
    else:
        draft.out = draft.rng.choice(("out", "out", "my out", "deep/out"))
        if draft.chance(0.02):
            draft.add(option, "")
            draft.must_refuse("--out without a name")
            return
    draft.add(option, draft.out)


def _quiet(draft: Draft, option: str) -> None:
    if draft.chance(0.4):
        draft.add(draft.rng.choice((option, "-q")))


def _form(draft: Draft, option: str) -> None:
    form = draft.rng.choice(("md", "json", "json", "junit", "card", "card", "card", "html", "docx"))
    draft.add(option, form)
    if form == "docx":
        draft.must_refuse("--format docx")
    if form in ("card", "html", "json"):
        draft.may_refuse("a card of one of several variants, a page that is printed, a policy")


def _conditional(share: float, *values: str) -> Filler:
    """Options that mean something only beside another one (a card, a data set)."""

    def fill(draft: Draft, option: str) -> None:
        if draft.chance(share):
            draft.add(option, draft.rng.choice(values))
            draft.may_refuse(f"{option}, which goes with another option")

    return fill


def _variant(draft: Draft, option: str) -> None:
    if not draft.chance(0.08):
        return
    if draft.command[0] == "report":
        draft.add(option, draft.rng.choice((draft.variants[-1], "nobody")))
    else:
        draft.add(option, listed(draft.rng.choice((draft.variants[-1], "nobody"))))
    draft.may_refuse("--variant")
    if draft.words[-1].endswith("nobody"):
        draft.must_refuse("--variant names no variant")


def _validation(draft: Draft, option: str) -> None:
    if draft.command[1] == "cascade":
        draft.may_refuse("a cascade, which needs large groups")
    if len(_labels(draft)) != 2 or draft.world.score is None or draft.world.tasks[0] is not None:
        draft.may_refuse("a mitigation, which needs scores of two classes")
    if not {"1", "true", "yes"} & set(_labels(draft)):
        draft.may_refuse("a mitigation, which needs a positive class")
    if draft._said("--rule") or draft._said("--threshold"):
        return
    needed = draft.command[1] == "thresholds"
    if not draft.chance(0.92 if needed else 0.25):
        if needed and not draft._said("--rule"):
            draft.must_refuse("thresholds without validation rows")
        return
    for word in draft.given_apart():
        draft.words += [option, word]
    if not needed:
        draft.may_refuse("validation rows on which there may be nothing to mitigate")


def _rule(draft: Draft, option: str) -> None:
    if draft.chance(0.05):
        draft.texts["rule.json"] = draft.rng.choice(
            ('{"kind": "x"}', "{", "[]", '{"kind": "cascade"}')
        )
        draft.add(option, "rule.json")
        draft.must_refuse("--rule that is none")


def _objective(draft: Draft, option: str) -> None:
    rng = draft.rng
    places = ["accuracy"] * 5 + ["recall", "worst_group_shift", "size_bytes", "accuracy:max"]
    if draft.meaning.groups:
        places += [f"worst_group@{draft.meaning.groups[0][0]}"]
    chosen = rng.sample(places, rng.choice((1, 1, 2)))
    if draft.chance(0.03):
        draft.may_refuse("--objective is missing")
        return
    for item in dict.fromkeys(chosen):
        draft.add(option, item)
        if not item.startswith("accuracy"):
            draft.may_refuse("an objective that these tables may not have")
    if len({item.partition(":")[0] for item in chosen}) < len(set(chosen)):
        draft.must_refuse("an objective that is given twice")


def _weight(draft: Draft, option: str) -> None:
    _unknown(0.03 if draft.command == ("choose",) else 0.008, "no such column")(draft, option)


def _gone(share: float, value: str) -> Filler:
    """An option of earlier versions, which is refused with its new name."""

    def fill(draft: Draft, option: str) -> None:
        if draft.chance(share):
            draft.add(option, value)
            draft.must_refuse(f"{option}, which is gone")

    return fill


def _worth(draft: Draft, option: str) -> None:
    if draft.chance(0.2):
        draft.add(option, draft.rng.choice(("accuracy=1", "accuracy=2.5", "accuracy", "kappa=1")))
        draft.may_refuse("--worth of something that is no objective")


def _choose_require(draft: Draft, option: str) -> None:
    if draft.command == ("gate",):
        draft.offer(option, 0.1, ("all", "any"), ("some",))
    else:
        draft.offer(option, 0.15, ("accuracy>=0.1", "accuracy>0.99"), ("accuracy", "accuracy=>1"))


def _exclude(draft: Draft, option: str) -> None:
    if draft.chance(0.2):
        draft.add(option, draft.rng.choice((*draft.variants, "nobody")))
        draft.may_refuse("--exclude")


def _confirm(draft: Draft, option: str) -> None:
    if draft.chance(0.18) and not draft._said("--confirm-share"):
        words = draft.given_apart()
        draft.add(option, words[0])
        draft.may_refuse("--confirm of rows apart")


def _parts_of(draft: Draft, option: str) -> None:
    if draft.chance(0.13):
        draft.add(option, draft.rng.choice((0, 2, 2)))
        draft.may_refuse("counting in parts reads long Parquet tables with --groups")
        if draft.words[-1].endswith("0"):
            draft.must_refuse("--parts 0")
        draft.add("--workers", "1")


def _ray(draft: Draft, option: str) -> None:
    # Starting Ray takes seconds: it is only asked for where it is refused before.
    if draft.chance(0.25) and not draft._said("--groups"):
        draft.add(option, "local")
        draft.must_refuse("--ray without --groups")


def _explained(draft: Draft, option: str) -> None:
    parts = ("exemplars", "slices", "properties", "individuals", "classes", "similarity")
    draft.offer(option, 0.9, [listed(*draft.rng.sample(parts, k)) for k in (1, 1, 2)], ("luck",))
    draft.may_refuse("explanations that these tables may not give")


def _individual(draft: Draft, option: str) -> None:
    names = list(draft.world.groups) or ["nobody"]
    if draft.chance(0.3):
        draft.add(option, draft.rng.choice(names))
        draft.may_refuse("individuals of a column")


def _dataset(draft: Draft, option: str) -> None:
    if draft.chance(0.12):
        draft.add(option, draft.rng.choice(("digits", "nothing")))
        draft.may_refuse("images of a data set")


def _labels_file(draft: Draft, option: str) -> None:
    if not draft.chance(0.55):
        return
    world = draft.world
    some = range(min(5, world.n))
    columns = [
        Column(draft.roles["id"], [world.ids[i].texts[0] for i in some]),
        Column("label", [world.label[i].texts[0] for i in some]),
    ]
    draft.beside.append(Table("people-said.csv", columns, Style()))
    draft.add(option, "people-said.csv")
    draft.may_refuse("labels of people")


def _identity(draft: Draft, option: str) -> None:
    if draft.chance(0.55):
        draft.add(option, draft.rng.choice([*draft.world.groups, *draft.world.groups, "nobody"]))
        draft.may_refuse("--identity of overrides by people")


FILLERS: dict[str, Filler] = {
    "baseline": _unknown(0.008, "nobody"),
    "examples": _unknown(0.008, "absent.csv"),
    "train": _train,
    "variants": _variants,
    "missing": _missing,
    "id": _unknown(0.008, "no such id"),
    "label": _unknown(0.008, "no such label"),
    "prediction": _unknown(0.008, "dense"),
    "score": _unknown(0.008, "dense"),
    "scores": _scores,
    "groups": _unknown(0.01, "no such group"),
    "task": lambda draft, option: _task(draft, option),
    "cluster": _unknown(0.008, "no such cluster"),
    "weight": _weight,
    "worth": _worth,
    "weight_column": _gone(0.15, "w"),
    "count": _unknown(0.008, "no such count"),
    "force": lambda draft, option: _force(draft, option),
    "members": _number(0.08, ("retrained", "repeated"), ("cloned",)),
    "variant_column": lambda draft, option: _of_long(draft, option),
    "seed_column": lambda draft, option: _of_long(draft, option),
    "prediction_column": lambda draft, option: _of_long(draft, option),
    "score_column": lambda draft, option: _of_long(draft, option),
    "positive": _positive,
    "score_classes": lambda draft, option: _score_classes(draft, option),
    "alpha": _number(0.08, (0.05, 0.1, 0.01), (0, 1, -0.5, 2, "x")),
    "n_boot": _n_boot,
    "correction": _number(0.07, ("holm", "bh", "none"), ("bonferroni",)),
    "min_group": _number(0.1, (1, 2, 5, 10, 40), (0, -3)),
    "random_state": _number(0.1, (0, 1, 7), (-1, "x")),
    "exact": _flag(0.06),
    "reference_shift": lambda draft, option: _reference_shift(draft, option),
    "margin": lambda draft, option: _margin(draft, option),
    "group_error": _number(0.06, (0.0, 0.05), (0.5, -0.1)),
    "drawn_limits": _number(0.05, ("some", "all"), ("none",)),
    "csv": _flag(0.06),
    "memory": _number(0.05, ("1GB", "800M"), ("much", "3")),
    "zero_baseline": lambda draft, option: _zero_baseline(draft, option),
    "fixed_side": _fixed_side,
    "no_filters": _flag(0.06),
    "overwrite": _overwrite,
    "query": _query,
    "class_names": _class_names,
    "verbose": _verbose,
    "log_tasks": _elsewhere(13, "law"),
    "log_filter": _elsewhere(14, "strict"),
    "allow_different": _elsewhere(15, "limit"),
    "score_threshold": _elsewhere(16, "0.3"),
    "sql": _elsewhere(17),
    "dialect": _elsewhere(18, "trino"),
    "policy": _policy,
    "out": _out,
    "suppress_small": _flag(0.06),
    "quiet": _quiet,
    "require": _choose_require,
    "init": lambda draft, option: None,  # a case of its own
    "looks": lambda draft, option: _looks(draft, option),
    "log": lambda draft, option: _log(draft, option),
    "json": lambda draft, option: _verdict_file(draft, option, 0.85, "verdict.json"),
    "junit": lambda draft, option: _verdict_file(draft, option, 0.25, "verdict.xml"),
    "markdown": lambda draft, option: _verdict_file(draft, option, 0.25, "verdict.md"),
    "unit_key": _number(0.15, ("secret", "é"), ()),
    "parts": _parts_of,
    "workers": _number(0.04, (1, 2), ()),
    "ray": _ray,
    "objective": _objective,
    "exclude": _exclude,
    "confirm": _confirm,
    "confirm_share": lambda draft, option: _confirm_share(draft, option),
    "part": _explained,
    "individual": _individual,
    "individual_group": _individual,
    "dataset": _dataset,
    "data": _conditional(0.15, "absent folder"),
    "dataset_option": _conditional(0.15, "size=1", "x", "a=b"),
    "variant": _variant,
    "kind": _number(0.2, ("modal", "unanimous,taxicab", "surrogate", "jaccard"), ("odd",)),
    "percentile": _number(0.2, ("95", "50,90", "99.5"), ("x", "0", "101")),
    "tie_rule": lambda draft, option: _tie_rule(draft, option),
    "fill": _number(0.25, ("random",), ("zeros",)),
    "images": _conditional(0.25, "look"),
    "most_images": _number(0.2, (1, 5), ()),
    "validation": _validation,
    "rule": _rule,
    "smooth": _flag(0.45),
    "budget": _number(0.5, (0.1, 0.0, 1.0, 0.5), (-0.1, 2)),
    "labels": _labels_file,
    "identity": _identity,
    "threshold": lambda draft, option: _threshold(draft, option),
    "format": _form,
    "base_model": _conditional(0.45, "owner/dense"),
    "relation": _conditional(0.45, "quantized", "finetune", "odd"),
}


def _of_long(draft: Draft, option: str) -> None:
    """The default name said aloud where the table has it, another one now and then."""
    role = option.removeprefix("--").removesuffix("-column")
    held = {name for table in draft.tables for name in table.names}
    if role in held and draft.roles[role] == role and draft.chance(0.12):
        draft.add(option, role)
    elif draft.layout == "long" and role != "variant" and draft.chance(0.03):
        draft.add(option, "no such column")
        draft.must_refuse(f"{option} names no column")


def _task(draft: Draft, option: str) -> None:
    if draft.command != ("report", "figure"):
        _unknown(0.008, "no such task")(draft, option)
    elif draft.chance(0.15):
        task = draft.world.tasks[0]
        draft.add(option, "nothing" if task is None else canonical(task.texts[0]) or "")
        draft.may_refuse("a figure of a task")


def _tie_rule(draft: Draft, option: str) -> None:
    draft.offer(option, 0.2, ("max", "min", "negative", "random", "baseline"), ("coin",))
    if draft.words[-1].endswith("negative"):
        draft.may_refuse("--tie-rule negative, which needs two classes")


def _confirm_share(draft: Draft, option: str) -> None:
    draft.offer(option, 0.18, (0.3, 0.5), (0, 1.5))
    if draft._said(option) and draft.world.n < 12:
        draft.may_refuse("a share of few examples, which may be none")


def _margin(draft: Draft, option: str) -> None:
    """A change of a rate; to choose, of any objective, so also of milliseconds."""
    bad = (-1, "x") if draft.command == ("choose",) else (1, 2, -1)
    draft.offer(option, 0.06, (0.01, 0.05), bad)


def _reference_shift(draft: Draft, option: str) -> None:
    """The older name of --margin: one of them may be given."""
    both = any(word.startswith("--margin") for word in draft.words)
    draft.offer(option, 0.06, (0.01, 0.05), (0, 1, 2))
    if both and any(word.startswith(option) for word in draft.words):
        draft.must_refuse("--margin under two names")


def _looks(draft: Draft, option: str) -> None:
    draft.offer(option, 0.18, (1, 3), (0, -1))


def _log(draft: Draft, option: str) -> None:
    looks = draft._said("--looks")
    if draft.chance(0.9 if looks else 0.03):
        draft.add(option, "looks.jsonl")
    if looks != draft._said(option):
        draft.must_refuse("one of --looks and --log without the other")


def _force(draft: Draft, option: str) -> None:
    if draft.chance(0.06):
        draft.add(option)
        draft.meaning.force = True


def _score_classes(draft: Draft, option: str) -> None:
    if draft.world.vectors and draft.world.score is not None:
        if draft.chance(0.6):
            draft.add(option, listed(*_labels(draft)))
        draft.may_refuse("score vectors, whose length and classes must fit every task")
    elif draft.chance(0.07):
        draft.add(option, listed(*_labels(draft)))
        draft.may_refuse("--score-classes without score vectors")


def _zero_baseline(draft: Draft, option: str) -> None:
    draft.offer(option, 0.08, ("drop", "epsilon", "absolute", "raise"), ("zero",))
    if draft.words[-1].endswith("raise"):
        draft.may_refuse("--zero-baseline raise")


def _verdict_file(draft: Draft, option: str, share: float, name: str) -> None:
    if draft.chance(share):
        draft.add(option, name)


def _threshold(draft: Draft, option: str) -> None:
    if not draft._said("--rule") and not draft._said("--validation"):
        draft.offer(option, 0.7, (0, 0.5, 1), (-0.1, 1.5))
