"""Points in a plane."""

from __future__ import annotations

import math

import numpy as np

from fairweight.report.figures.forms.scatter import SIGMAS, ellipse, fitted_lines


def test_the_ellipse_holds_95_percent_of_a_normal_cloud() -> None:
    rng = np.random.default_rng(3)
    points = rng.multivariate_normal([5, -2], [[9, 4], [4, 4]], size=20_000)
    ring = ellipse(points[:, 0].tolist(), points[:, 1].tolist(), steps=360)
    outline = np.array([[p["fpr"], p["fnr"]] for p in ring])
    # Inside a convex outline: on the left of every edge.
    edges = np.roll(outline[:-1], -1, axis=0) - outline[:-1]
    offset = points[:, None, :] - outline[None, :-1, :]
    cross = edges[:, 0] * offset[..., 1] - edges[:, 1] * offset[..., 0]
    inside = np.abs(np.sign(cross).sum(axis=1)) == len(edges)
    assert abs(inside.mean() - 0.95) < 0.006
    assert math.isclose(SIGMAS, math.sqrt(-2 * math.log(0.05)), abs_tol=0.001)


def test_a_line_is_fitted_for_each_group_of_three_points() -> None:
    one = [{"group": "a", "x": float(x), "y": 2.0 * x + 1} for x in range(3)]
    two = [{"group": "b", "x": float(x), "y": 0.0} for x in range(2)]
    ends = fitted_lines(one + two, "x", "y")
    assert [end["group"] for end in ends] == ["a", "a"]
    assert [round(end["y"], 9) for end in ends] == [1.0, 5.0]
