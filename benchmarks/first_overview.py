"""`python -m benchmarks.first_overview FOLDER`: the viewer's first page of an audit, as JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main(folder: str) -> None:
    from starlette.testclient import TestClient

    from fairweight.web.application import create_app
    from fairweight.web.items import find_items
    from fairweight.web.site import Settings

    loaded = time.process_time()
    items = find_items(Path(folder))
    app = create_app(items, settings=Settings())
    with TestClient(app, base_url="http://127.0.0.1") as client:
        taken = []
        for _ in range(2):
            start = time.process_time()
            answer = client.get(f"/audit/{items[0].key}", follow_redirects=True)
            answer.raise_for_status()
            taken.append(time.process_time() - start)
    print(json.dumps({"cpu": taken[0], "again": taken[1], "libraries": loaded}))


if __name__ == "__main__":
    main(sys.argv[1])
