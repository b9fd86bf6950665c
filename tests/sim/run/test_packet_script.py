"""The packets of a run as a list: a run with the list is the run with the traffic."""

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.sim.run.packet_script import draw_packets
from hopforge.sim.run.simulation import Simulation

TRAFFIC = {
    "uniform, one length": "{pattern: uniform}",
    "hosts that are silent, two lengths": "{pattern: transpose, packet_lengths: [1, 5], packet_weights: [2, 1]}",
    "bursts, a range": "{pattern: tornado, source: on_off, packet_range: [1, 4]}",
}


@pytest.mark.parametrize("name", list(TRAFFIC))
def test_a_run_with_the_list_is_the_run_with_the_traffic(name: str) -> None:
    config = parse_config(
        f"name: test\ntopology: {{kind: torus, radices: [4, 4]}}\nrouter: {{vcs: 2}}\ntraffic: {TRAFFIC[name]}\n"
    )
    cycles = 400
    want = Simulation(config, 0.3, 5, log_events=1 << 16)
    want.advance(cycles)
    packets = draw_packets(Simulation(config, 0.3, 5), cycles)
    got = Simulation(config, 0.3, 5, script=packets, log_events=1 << 16)
    got.advance(cycles)
    events = int(want.state["log_length"])
    assert events > 2000
    assert int(got.state["log_length"]) == events
    assert np.array_equal(want.state["log"][: 6 * events], got.state["log"][: 6 * events])


def test_only_a_run_that_has_not_begun() -> None:
    config = parse_config("name: test\ntopology: {kind: mesh, radices: [2, 2]}\n")
    run = Simulation(config, 0.1, 1)
    run.advance(1)
    with pytest.raises(ValueError, match=r"^run must be at cycle 0$"):
        draw_packets(run, 10)
