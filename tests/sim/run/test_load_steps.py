"""Changes of the offered load (`simulation.load_steps`): each packet is created at the rate of its cycle."""

import math

import pytest

from hopforge.model.config import parse_config
from hopforge.sim.run.simulation import Simulation
from hopforge.sim.run.time_series import TimeSeries, run_series

INPUT_QUEUED = "router: {vcs: 2}"
OUTPUT_QUEUED = "router: {model: input_output_queued, vcs: 2, flit_ns: 4, crossbar_ns: 0.4, link_ns: 4, host_ns: 4}"
CYCLES, BINS = 16000, 16


def series(router: str, traffic: str, first: float, *steps: tuple[int, float]) -> TimeSeries:
    return run_series(simulation(router, traffic, first, *steps), lambda done, total: None)


def simulation(router: str, traffic: str, first: float, *steps: tuple[int, float], failures: str = "") -> Simulation:
    text = f"""
name: t
topology: {{kind: mesh, radices: [3, 3]}}
{router}
traffic: {{{traffic}}}
simulation:
  max_cycles: {CYCLES}
  series_bins: {BINS}
  load_steps: [{", ".join(f"{{bin: {k}, load: {load}}}" for k, load in steps)}]
  failures: [{failures}]
"""
    return Simulation(parse_config(text), first, 1)


@pytest.mark.parametrize(("router", "traffic"), [(INPUT_QUEUED, "packet_flits: 16"), (OUTPUT_QUEUED, "")])
def test_a_higher_load_comes_at_once(router: str, traffic: str) -> None:
    """Hosts that have a packet in 80 000 (16) cycles do not wait for it before they send as many as they are to."""
    load, flits = 0.2, 16 if traffic else 1
    bins = series(router, traffic, 0.0002, (8, load)).bins
    assert bins["load"].tolist() == [0.0002] * 8 + [load] * 8
    packets = load * 9 * CYCLES / BINS / flits
    each = bins["packets"].to_numpy()[8:]
    assert each[1:].sum() == pytest.approx(7 * packets, abs=5 * math.sqrt(7 * packets))
    assert each[0] == pytest.approx(packets, abs=5 * math.sqrt(packets) + 10)  # the last ones are under way


@pytest.mark.parametrize("router", [INPUT_QUEUED, OUTPUT_QUEUED])
def test_what_waits_in_source_queues_was_created_at_the_load_before(router: str) -> None:
    """All hosts send to one: it takes a flit a cycle, and the rest waits in the hosts until the load is lower."""
    goals = ", ".join(["4"] * 9)
    bins = series(router, f"pattern: destinations, destinations: [{goals}]", 0.16, (4, 0.02), (12, 0.1)).bins
    created = 9 * CYCLES / BINS * (4 * 0.16 + 8 * 0.02 + 4 * 0.1)  # 1.44 a cycle at first: what waits leaves later
    assert bins["packets"].sum() == pytest.approx(created, abs=5 * math.sqrt(created))
    full = 0.6 * CYCLES / BINS  # no router passes on less
    assert (bins["packets"][:4] > full).all()
    assert bins["packets"][8:12].sum() == pytest.approx(4 * 9 * 0.02 * CYCLES / BINS, rel=0.25)
    assert bins["latency"][4] > bins["latency"][0]


def test_the_rates_of_a_run_of_one_load_are_drawn_as_ever() -> None:
    """A change to the same load redraws what comes after it, at the same rate."""
    bins = series(INPUT_QUEUED, "", 0.1, (8, 0.1)).bins
    packets = 0.1 * 9 * CYCLES
    assert bins["packets"].sum() == pytest.approx(packets, abs=5 * math.sqrt(packets))


@pytest.mark.parametrize("router", [INPUT_QUEUED, OUTPUT_QUEUED])
def test_a_repaired_host_sends_at_the_load_of_each_cycle(router: str) -> None:
    """It works again while there is hardly a packet, and does not wait for one when the load is higher."""
    load = 0.2
    failures = "{cycle: 500, switches: [4], detection_cycles: 5, reprogram_cycles: 5, repair_cycles: 2000}"
    routed = f"{router}\nrouting: {{algorithm: up_down}}"
    run = simulation(routed, "", 0.00001, (8, load), failures=failures)
    run_series(run, lambda done, total: None)
    packets = load * CYCLES / 2
    assert run.state.senders["flits_sent"].tolist() == pytest.approx([packets] * 9, abs=5 * math.sqrt(packets))
