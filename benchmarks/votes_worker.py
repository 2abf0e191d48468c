"""`python -m benchmarks.votes_worker build STUDY INDEX` and `read INDEX`: one JSON object each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.measure import peak_memory_mb

GALLERIES = (
    {},
    {"kind": "modal"},
    {"kind": "taxicab-99", "group.sex": "female"},
    {"cell": "FN", "positive": "3", "group.site": "site 07"},
    {"cell": "FP", "positive": "3", "seed": "1"},
    {"confidence": "low", "label": "5", "side": "baseline"},
    {"changed": "lost", "percentile_min": "95"},
    {"changed": "yes", "seed": "2", "prediction": "2", "group.sex": "male"},
)


def build(study: str, index: str) -> dict[str, float]:
    """Read the predictions and write the index."""
    from fairweight.web.items import find_items
    from fairweight.web.votes.builder import build_index

    def told(words: str, done: int, total: int) -> None:
        print(f"{words} {done}/{total}", file=sys.stderr)

    taken = _seconds(lambda: build_index(find_items(study)[0], Path(index), told))
    return {"seconds": taken, "mb": peak_memory_mb()}


def read(index: str) -> dict[str, float]:
    """Open the index and ask for pages."""
    from fairweight.web.cards import examples
    from fairweight.web.votes import filters
    from fairweight.web.votes.filters import Filters, from_query, pairs, select
    from fairweight.web.votes.index import open_index

    def page(query: dict[str, str], order: str, offset: int) -> None:
        found = select(opened, from_query(query), order, offset=offset)
        examples(opened, found.places)

    start = time.process_time()
    opened = open_index(Path(index))
    page({}, "distance", 0)
    taken = {"open": time.process_time() - start, "new": 0.0, "again": 0.0}
    for order in ("random", "uncertain", "id", "distance"):
        for query in GALLERIES:
            page(query, order, 0)  # files come into memory, and what is drawn once is drawn
            filters._mask.cache_clear()
            taken["new"] = max(taken["new"], _seconds(partial(page, query, order, 0)))
            taken["again"] = max(taken["again"], _seconds(partial(page, query, order, 24)))
    taken["pairs"] = _seconds(lambda: pairs(opened, Filters(kind="taxicab-95")))
    return {**taken, "mb": peak_memory_mb()}


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    print(json.dumps({"build": build, "read": read}[command](*words)))
