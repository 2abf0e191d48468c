"""`python -m benchmarks.view_client ADDRESS READERS SECONDS THINKING`: one JSON object."""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import httpx2

from benchmarks.votes import CLASSES

CLASS_NAMES = [str(i) for i in range(CLASSES)]
# One of each pair is drawn: a filter, and the values that it may have.
FILTERS: tuple[tuple[str, list[str]], ...] = (
    ("group.sex", ["female", "male"]),
    ("group.site", [f"site {i:02}" for i in range(20)]),
    ("label", CLASS_NAMES),
    ("prediction", CLASS_NAMES),
    ("kind", ["modal", "unanimous", "taxicab-90", "taxicab-95", "taxicab-99"]),
    ("changed", ["yes", "no", "lost", "gained"]),
    ("confidence", ["high", "low"]),
    ("percentile_min", ["50", "90", "99"]),
    ("seed", ["0", "1", "2"]),
    ("side", ["baseline", "compressed"]),
)
ORDERS = ("distance", "random", "id", "uncertain")
OVERVIEW = 6  # every so many pages


@dataclass
class Seen:
    """What readers waited for."""

    galleries: list[float] = field(default_factory=list)
    overviews: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def drawn_query(draw: random.Random) -> dict[str, str]:
    """Up to three filters, an order, and one of the first pages."""
    query = {name: draw.choice(values) for name, values in draw.sample(FILTERS, draw.randint(0, 3))}
    if draw.random() < 0.2:
        query |= {"cell": draw.choice(["TP", "FN", "FP", "TN"]), "positive": draw.choice("0123")}
    query["order"] = draw.choice(ORDERS)
    query["offset"] = str(24 * draw.choice([0, 0, 1, 2, 5]))
    return query


async def reader(
    client: httpx2.AsyncClient, address: str, number: int, until: float, rest: float
) -> Seen:
    """One person: asks, reads, asks again."""
    draw = random.Random(number)
    seen = Seen()
    await asyncio.sleep(rest * draw.random())  # people do not come all at once
    while time.perf_counter() < until:
        overview = draw.randrange(OVERVIEW) == 0
        query = None if overview else drawn_query(draw)
        start = time.perf_counter()
        answer = await client.get(address if overview else f"{address}/examples", params=query)
        taken = time.perf_counter() - start
        (seen.overviews if overview else seen.galleries).append(taken)
        if answer.status_code != 200:
            seen.failed.append(f"{answer.status_code} at {answer.url}")
        await asyncio.sleep(draw.uniform(0.5, 1.5) * rest)
    return seen


async def readers(address: str, number: int, seconds: float, rest: float) -> dict[str, Any]:
    """All of them at once."""
    limits = httpx2.Limits(max_connections=number, max_keepalive_connections=number)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
        until = time.perf_counter() + seconds
        people = (reader(client, address, i, until, rest) for i in range(number))
        all_seen = await asyncio.gather(*people)
    galleries = sorted(taken for seen in all_seen for taken in seen.galleries)
    overviews = sorted(taken for seen in all_seen for taken in seen.overviews)
    return {
        "n": len(galleries) + len(overviews),
        "p50": _quantile(galleries, 0.5),
        "p95": _quantile(galleries, 0.95),
        "overview_p95": _quantile(overviews, 0.95),
        "slowest": max(galleries[-1], overviews[-1]),
        "failed": [sentence for seen in all_seen for sentence in seen.failed],
        "processor": time.process_time(),
    }


def _quantile(ordered: list[float], share: float) -> float:
    """The smallest of the values that so large a share of them does not exceed."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


if __name__ == "__main__":
    address, number, seconds, rest = sys.argv[1:]
    print(json.dumps(asyncio.run(readers(address, int(number), float(seconds), float(rest)))))
