"""Write docs/reference/datasets.md from the registry of data sets.

    python docs/generate_datasets.py

A test fails when the page is not what the code says.
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent / "reference" / "datasets.md"

INTRODUCTION = """\
<!-- Made by docs/generate_datasets.py from the code: do not edit. -->

# Data sets

Every data set becomes the same thing: bytes (examples, height, width, channels), labels, group \
columns, ids that are the same in every run, and the splits of its source (`all` where it has \
none). Nothing is downloaded: the folder that you name holds the official files, each set in a \
folder of its own or directly in it. Files may be compressed with gzip where the official ones are.

```python
from fairweight.data import load

images = load("qmnist", "data", pixels="mnist")
train = images.of_split("train")
```

Photographs are decoded and brought to one size once, into a memory-mapped array in the folder \
`FAIRWEIGHT_CACHE` (by default `fairweight/images` in the user's folder of caches); a run that was \
interrupted goes on where it stopped, and a changed file is decoded again. `size` is a square or \
(height, width); `fit` is `crop` (scale, then cut around the middle) or `stretch`. Without `size` \
all images must have the size of the first.

What is missing, truncated or damaged is an error that names the file.

## Builders

| function | does |
|---|---|
| `splits.split_by_seed(images, shares, random_state, within=None)` | other splits of the same \
examples, such as 80 % and 20 % of `train` |
| `splits.group_split(images, column, shares, random_state)` | splits in which no writer (person, \
place) is on two sides |
| `imbalance.imbalanced(images, shares, random_state, split="train")` | rare classes: of each \
named class only its share; `imbalance.SIMON_SAYS` has those of the paper |
| `imbalance.least_changed(by_class, shares)` | the classes that an earlier audit shows to have \
changed least, with their shares |
| `backdoor.choose_backdoor(images, kind, task, random_state=...)` | draws the examples that get a \
mark (`grayscale`, `yellow_square`); `save`, `read` and `apply` it |

Random draws belong to the seed and to ids, not to the order of rows.

## A data set of your own

`parquet` and `folders` read most. Else decorate a function that returns `Images` with \
`fairweight.data.register(name, summary=..., source=..., layout=...)`, and name its module in your \
package's entry points `fairweight.datasets`: [Add a data set](../how-to/add-a-method.md).
"""


def datasets_page() -> str:
    """Every data set of the registry, in its order."""
    from fairweight.data import datasets

    parts = [INTRODUCTION, "## All data sets\n"]
    for entry in datasets():
        options = ", ".join(f"`{name}={value!r}`" for name, value in entry.options.items())
        rows = {
            "source": entry.source,
            "files": "<br>".join(entry.layout) or "none: it is bundled",
            "groups": ", ".join(f"`{name}`" for name in entry.groups) or "none of its own",
            "options": options or "none",
        }
        table = [f"| {key} | {_escaped(text)} |" for key, text in rows.items()]
        summary = entry.summary[0].upper() + entry.summary[1:]
        parts.append(
            "\n".join([f"### {entry.name}\n", f"{summary}.\n", "| | |", "|---|---|", *table])
        )
        parts[-1] += "\n"
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Stars and bars are text here, not markup."""
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(datasets_page(), encoding="utf-8")
