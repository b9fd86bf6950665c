"""Search for settings of DQN routing and its scenes: every setting is a configuration, the bound is what it says."""

import pandas as pd
import pytest

from hopforge.sim.reproduce import REPRODUCTIONS, Options
from hopforge.sim.reproduce.agents import dqn_beyond, dqn_search


def test_every_setting_reaches_the_configuration() -> None:
    for name, setting in dqn_search.SETTINGS.items():
        config = dqn_search._config(setting, {}, first=32)
        given = {**config.routing.dqn.model_dump(), **config.traffic.acknowledge.model_dump()}
        wanted = {key: value for key, value in setting.items() if dqn_search._PLACES.get(key) != ""}
        assert {key: given[key] for key in wanted} == wanted, name
    assert len(dqn_search.SETTINGS) > 30
    assert dqn_search.BEST in dqn_search.SETTINGS


def test_every_scene_is_a_configuration() -> None:
    point = {"cycles": 1000, "warmup": 100}
    for name, scene in dqn_beyond.SCENES.items():
        for routing in dqn_beyond._NAMES:
            config = dqn_beyond._config(scene, routing, point, dict(dqn_beyond._AGENTS.get(routing, {})))
            assert (config.traffic.acknowledge is not None) == (routing in dqn_beyond._AGENTS)
            assert config.traffic.packet_range[1] <= config.router.buffer_flits, name


def test_least_latency_of_a_network_that_is_nearly_empty() -> None:
    """77 cycles of a hop, 2.13 hops (16 / 15 · 2), and 130 flits."""
    found = dqn_search.least_latency(0.005, 1, 2_000_000, 0)
    assert found == pytest.approx(77 * 32 / 15 + 130, rel=0.02)
    assert found < dqn_search.least_latency(0.4, 1, 100_000, 1000) < dqn_search.least_latency(0.8, 1, 100_000, 1000)


def rows(name: str) -> pd.DataFrame:
    points = REPRODUCTIONS[name].points(Options())
    values = {"network_latency": 100.0, "accepted": 0.5, "hops": 2.0, "saturated": False}
    return pd.DataFrame([{**point, **values, "network_latency": 100.0 + 10 * k} for k, point in enumerate(points)])


def test_what_they_say() -> None:
    found = REPRODUCTIONS["dqn.search"].compare(rows("dqn.search"), Options())
    assert [one.ours for one in found] == pytest.approx([1.0, 1.1, 1.2, 1.3])
    assert [one.paper for one in found] == [None, None, 0.52, None]
    full = pd.concat([rows("dqn.search").assign(seed=seed) for seed in (1, 2, 6, 7, 8)])
    full.loc[(full["seed"] == 2) & (full["setting"] == "document"), "network_latency"] = 140.0
    full = full[(full["seed"] < 6) | (full["setting"] != "nearer, asked again")]
    found = REPRODUCTIONS["dqn.search"].compare(full, Options(full=True))
    assert [one.ours for one in found] == pytest.approx([1.0, 1.1, 1.3, 1.3, 1.0, 1.1, 1.2])
    assert "2 seeds" in found[2].assumption and "3 seeds" in found[6].assumption
    assert [one.quantity.endswith("document, other seeds") for one in found] == 6 * [False] + [True]
    data = rows("dqn.beyond")
    found = REPRODUCTIONS["dqn.beyond"].compare(data, Options())
    assert len(found) == 4 * len(dqn_beyond.SCENES)
    assert found[0].ours == pytest.approx(120 / 100)
    for name, frame in (("dqn.search", rows("dqn.search")), ("dqn.beyond", data)):
        assert len(REPRODUCTIONS[name].draw(frame, Options()).axes) == 1
