"""Runs with failures are what the events of all flits say (`flit_replay`)."""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import Config, parse_config
from hopforge.model.topology.configured import network_topology
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import run_series

sys.path.insert(0, str(Path(__file__).parent))
from flit_replay import BIN, CYCLES, Replay, logged_run, seeds

#: in the last four a host has a packet of its own to send while it keeps others
QUICK = (0, 1, 5, 9, 12, 30, 68, 98)
CYCLE_COLUMNS = ("stopped_cycle", "empty_cycle", "reprogrammed_cycle")


def drawn(seed: int) -> tuple[Config, list[dict[str, Any]]]:
    """Draw routers, packets and failures: in the first cycle, the last one, at ends of bins, two at once, again."""
    draw = random.Random(seed)
    algorithm, switching = draw.choice(["up_down", "tables"]), draw.choice(["wormhole", "vct", "saf"])
    latency = f"link_latency_cycles: {draw.choice([1, 3])}, host_latency_cycles: {draw.choice([1, 2])}"
    release = draw.choice(["tail", "credits"])
    base = (
        "name: x\ntopology: {kind: random_regular, routers: 8, degree: 4, hosts_per_router: 1, seed: 2}\n"
        f"routing: {{algorithm: {algorithm}}}\ntraffic: {{packet_flits: {draw.choice([1, 2, 5])}}}\n"
        f"router: {{vcs: 4, buffer_flits: 8, switching: {switching}, vc_release: {release}, {latency}}}\n"
    )
    ends = network_topology(parse_config(base)).channels()
    links = sorted({(int(a), int(b)) for a, b in zip(ends.src_router, ends.dst_router, strict=True) if a < b})
    failures: list[dict[str, Any]] = []
    for _ in range(draw.choice([1, 2, 3])):
        failure: dict[str, Any] = {"cycle": draw.choice([0, 1, 150, 200, 333, 500, CYCLES - 1])}
        failure |= {"detection_cycles": draw.choice([0, 10, 60]), "reprogram_cycles": draw.choice([0, 1, 100])}
        if failures and draw.random() < 0.5:
            failure["cycle"] = failures[0]["cycle"] + draw.choice([0, 40, failures[0].get("repair_cycles", 0)])
        if draw.random() < 0.6:
            known = failure["detection_cycles"] + failure["reprogram_cycles"]
            failure["repair_cycles"] = known + draw.choice([1, 30, 200])
        one = draw.choice(["links", "switches"])
        failure[one] = [draw.randrange(8)] if one == "switches" else [list(draw.choice(links))]
        failures.append(failure)
    simulation = {"load": draw.choice([0.1, 0.4, 0.8]), "failures": failures, "failure_series_cycles": BIN}
    simulation |= {"series_bins": 10, "warmup_cycles": 100, "min_cycles": CYCLES, "max_cycles": CYCLES}
    return parse_config(f"{base}simulation: {json.dumps(simulation)}\n"), failures


@pytest.mark.parametrize("seed", seeds(QUICK, 120))
def test_a_run_with_failures_is_what_its_events_say(seed: int) -> None:
    config, failures = drawn(seed)
    run, log = logged_run(config, 200_000)
    assert run.reconfiguration is not None
    replay = Replay(run, failures)
    replay.run(log)
    table = run.reconfiguration.table()
    wanted = pd.DataFrame(replay.records).reindex(columns=[*replay.records[0], *CYCLE_COLUMNS], fill_value=-1)
    wanted = wanted.loc[:, ~wanted.columns.duplicated()].fillna(-1)
    pd.testing.assert_frame_equal(table[wanted.columns], wanted, check_dtype=False)
    assert run.reconfiguration.series.to_numpy() == pytest.approx(np.array(replay.bins))
    series = run_series(Simulation(config, config.simulation.load, 1), lambda done, total: None, channels=True)
    assert series.bins["packets"].tolist() == np.histogram(replay.arrivals, np.arange(0, 1001, 100))[0].tolist()
    ends = run.topology.channels()
    for k in range(10):
        busy = [replay.busy[int(r), int(p), k] / 100 for r, p in zip(ends.src_router, ends.src_port, strict=True)]
        assert series.channels[k].tolist() == pytest.approx(busy)
