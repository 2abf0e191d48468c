"""The label of most people."""

from fairweight.tables.annotations import Annotation, human_labels


def said(example: str, who: str, label: str, *, task: str = "", time: str = "") -> Annotation:
    return Annotation(example, "label_wrong", task=task, label=label, annotator=who, time=time)


def test_majority_tie_and_silence() -> None:
    found = human_labels(
        [
            said("1", "ann", "cat"), said("1", "bo", "cat"), said("1", "cy", "dog"),
            said("2", "ann", "cat"), said("2", "bo", "dog"),
            said("3", "ann", ""), Annotation("3", "ambiguous", annotator="bo"),
            said("4", "ann", "owl"), Annotation("4", "skip", annotator="bo"),
        ]
    )  # fmt: skip
    assert found.labels == {"": {"1": "cat", "4": "owl"}}
    assert (found.n_tied, found.n_without) == (1, 1)


def test_everybody_has_one_vote_the_latest() -> None:
    early, late = "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"
    found = human_labels(
        [
            said("1", "ann", "dog", time=late), said("1", "ann", "cat", time=early),
            said("2", "ann", "cat"), said("2", "ann", "dog"),
        ]
    )  # fmt: skip
    assert found.labels == {"": {"1": "dog", "2": "dog"}}


def test_taking_a_label_back_leaves_the_others() -> None:
    rows = [
        said("1", "ann", "cat"), said("1", "bo", "dog"),
        Annotation("1", "ambiguous", annotator="ann"),
    ]  # fmt: skip
    assert human_labels(rows).labels == {"": {"1": "dog"}}


def test_one_class_has_one_name() -> None:
    rows = [said("1", "ann", "1"), said("1", "bo", "1.0"), said("1", "cy", "0")]
    assert human_labels(rows).labels == {"": {"1": "1"}}


def test_tasks_are_apart() -> None:
    rows = [said("1", "ann", "yes", task="Smiling"), said("1", "ann", "no", task="Male")]
    assert human_labels(rows).labels == {"Smiling": {"1": "yes"}, "Male": {"1": "no"}}


def test_nothing_gives_nothing() -> None:
    found = human_labels([])
    assert (found.labels, found.n_tied, found.n_without) == ({}, 0, 0)
