"""Limits that no simulation may pass: uniform traffic against the bisection of meshes and tori.

k×k routers with one host each, destinations uniform with the sender among them: half of all flits change the half of
the network. A mesh has k channels in each direction across its middle, a torus 2k, so that the load λ in flits per
host and cycle is at most 4/k and 8/k (Dally and Towles 2004, section 3.3).
"""

import numpy as np
import pandas as pd
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.run.measurement import channel_columns
from hopforge.sim.run.simulation import Simulation

K = 8


def _run(kind, load, cycles=6000):
    text = (
        f"name: limits\ntopology: {{kind: {kind}, radices: [{K}, {K}]}}\nrouter: {{vcs: 8, buffer_flits: 8}}\n"
        f"simulation: {{warmup_cycles: 3000, min_cycles: {cycles}, max_cycles: {cycles}}}\n"
    )
    run = Simulation(parse_config(text, "test.yml"), load, 1)
    return run, run.run()


def _across_the_middle(kind, run, found):
    """Mean load of the channels in +x from column k/2 − 1 to k/2 (torus: and from k − 1 to 0)."""
    table = pd.DataFrame(channel_columns(run, found.cycles))
    x = table["router"] % K
    columns = [K // 2 - 1] if kind == "mesh" else [K // 2 - 1, K - 1]
    chosen = table[(table["port"] == 1) & np.isin(x, columns)]
    assert len(chosen) == K * len(columns)
    return float(chosen["load"].mean())


@pytest.mark.parametrize(("kind", "channels"), [("mesh", K), ("torus", 2 * K)])
@pytest.mark.parametrize("load", [0.1, 0.4])
def test_channels_across_the_middle_carry_half_of_the_traffic(kind, channels, load):
    run, found = _run(kind, load)
    assert not found.saturated
    assert found.accepted == pytest.approx(load, rel=0.02)
    # mesh: each half sends a half of its λ·k²/2 flits to the other half; torus: all channels of a ring are alike,
    # with hops of 1 to 4 in +x (ties go there), each for 1/8 of the flits
    hops = {"mesh": K * K / 4 / channels, "torus": (1 + 2 + 3 + 4) / 8}
    expected = load * hops[kind]
    assert _across_the_middle(kind, run, found) == pytest.approx(expected, rel=0.04)


def test_a_mesh_saturates_below_its_bisection_bound():
    bound = 4 / K
    assert not _run("mesh", 0.8 * bound)[1].saturated
    _, above = _run("mesh", 1.02 * bound, cycles=20000)
    assert above.saturated
    run, far_above = _run("mesh", 1.0)
    assert far_above.saturated
    assert _across_the_middle("mesh", run, far_above) <= 1
