"""The scale of colours from low to high can be told apart by everyone, on white and on dark paper."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from hopforge.model.output.colour_scale import NOTHING, STOPS, colour_map

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SIGHT = {
    "all colours": np.eye(3),
    "no red": np.array([
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]),
    "no green": np.array([
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]),
    "no blue": np.array([
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    value = np.array(to_rgb(colour))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    x = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_stops_are_apart(sight: str) -> None:
    seen = [lab(SIGHT[sight] @ linear(colour)) for colour in STOPS]
    pairs = list(itertools.combinations(range(len(STOPS)), 2))
    assert len(pairs) == 10
    for a, b in pairs:
        assert np.linalg.norm(seen[a] - seen[b]) > 10, (STOPS[a], STOPS[b])


def test_all_are_seen_on_both_papers() -> None:
    for colour in (*STOPS, NOTHING):
        light = float((TO_XYZ @ linear(colour))[1])
        for paper in ("#ffffff", "#12161b"):
            other = float((TO_XYZ @ linear(paper))[1])
            contrast = (max(light, other) + 0.05) / (min(light, other) + 0.05)
            assert contrast > 2.2, (colour, paper)


def test_low_to_high() -> None:
    scale = colour_map()
    assert scale(0.0)[:3] == pytest.approx(to_rgb(STOPS[0]))
    assert scale(1.0)[:3] == pytest.approx(to_rgb(STOPS[-1]))
