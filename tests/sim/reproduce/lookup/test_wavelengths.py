"""`hopforge reproduce lookup.wavelengths`: one engine beside what is known, and arrangements that keep up."""

import pandas as pd
import pytest

from hopforge.sim.reproduce.lookup import wavelengths as lookup_wavelengths
from hopforge.sim.reproduce.registry import Options


def test_one_engine_that_always_hits_has_the_rate_of_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"ring": ("{kind: torus, radices: [4]}", "{kind: uniform, packets_per_host: 3000}")}
    monkeypatch.setattr(lookup_wavelengths, "_TRAFFIC", short)
    points = lookup_wavelengths._points(Options())
    rows = [row for point in points for row in lookup_wavelengths._measure(point, Options())]
    found = {each.quantity: each for each in lookup_wavelengths._compare(pd.DataFrame(rows), Options())}
    one = found["ring, 0.41 ns: one engine"]
    assert one.paper == 1640.0
    assert one.ours == pytest.approx(84 * 8 / 0.41)  # 3 first accesses take less than 3000 hits
    assert found["ring, 1.0 ns: one engine"].ours == pytest.approx(672)
    assert found["ring, 1.0 ns: engines for 400 Gbps"].ours == 1
    assert found["ring, 1.0 ns: engines for 800 Gbps"].ours == 2
    assert found["ring, 0.41 ns: engines for 1600 Gbps"].ours == 1


def test_a_rate_that_nothing_keeps_up_with_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"ring": ("{kind: torus, radices: [4]}", "{kind: uniform, packets_per_host: 20}")}
    monkeypatch.setattr(lookup_wavelengths, "_TRAFFIC", short)
    rows = lookup_wavelengths._measure({"traffic": "ring", "cache_ns": 1.0}, Options())
    monkeypatch.setattr(lookup_wavelengths, "_CACHE_NS", (1.0,))
    found = {each.quantity: each for each in lookup_wavelengths._compare(pd.DataFrame(rows), Options())}
    slow = found["ring, 1.0 ns: engines for 1600 Gbps"]
    assert slow.ours is None
    assert "keeps up" in slow.assumption
