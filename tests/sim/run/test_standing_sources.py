"""Sources that stand still when their NICs are full: the run counts as saturated, and a sweep finds its knee."""

import pytest

import hopforge as hf
from hopforge.model.config import parse_config
from hopforge.sim.run.simulation import Simulation

#: all hosts of a mesh send to one, which takes a packet in 4 ns at most
TO_ONE = """
name: t
topology: {kind: mesh, radices: [3, 2]}
router: {model: input_output_queued, vcs: 2, flit_ns: 4, crossbar_ns: 0.4, link_ns: 4, host_ns: 2}
traffic: {pattern: destinations, destinations: [5, 5, 5, 5, 5, 5], SOURCE}
simulation: {warmup_cycles: 2000, min_cycles: 2000, max_cycles: 2000}
"""


def simulated(source: str, load: float) -> hf.SimulationResult:
    return hf.simulate(hf.loads(TO_ONE.replace("SOURCE", source)), load=load, progress=False)


@pytest.mark.parametrize("source", ["source: interval", "source: rounds", "source: rounds, nic_packets: 2"])
def test_hosts_that_stand_still_are_saturated(source: str) -> None:
    """Six hosts offer one packet of the link together at a load of 1/6."""
    below, above = simulated(source, 0.12), simulated(source, 0.2)
    assert below.accepted == pytest.approx(0.12, rel=0.02)
    assert not below.saturated
    assert above.accepted < 0.17
    assert above.saturated
    assert any("SATURATED" in words for _, words in above.rows)


def test_rounds_of_many_packets_that_arrive_are_not_saturated() -> None:
    """What is under way of a round at the begin and end of a measurement does not count."""
    text = TO_ONE.replace("destinations, destinations: [5, 5, 5, 5, 5, 5], SOURCE", "all_to_all, source: rounds")
    found = hf.simulate(hf.loads(text), load=0.3, progress=False)
    assert found.accepted == pytest.approx(0.3, rel=0.02)
    assert not found.saturated


@pytest.mark.parametrize("source", ["source: rounds, nic_packets: 3", "source: rounds, nic_packets: 2"])
def test_rounds_that_a_nic_does_not_hold_are_not_saturated(source: str) -> None:
    """The interval counts from the last packet of a round, which waits for those before: a host makes fewer of them."""
    text = TO_ONE.replace("destinations, destinations: [5, 5, 5, 5, 5, 5], SOURCE", f"all_to_all, {source}")
    text = text.replace("[3, 2]", "[7, 1]").replace("_cycles: 2000", "_cycles: 10000")
    found = hf.simulate(hf.loads(text), load=0.3, progress=False)
    assert found.accepted < 0.29
    assert not found.saturated


@pytest.mark.parametrize(("source", "load", "saturated"), [("", 0.3, False), (", nic_packets: 100", 0.6, True)])
def test_long_rounds_are_saturated_only_where_the_network_is(source: str, load: float, saturated: bool) -> None:
    """A NIC of 20 packets, whose router gives back 8 credits in 11 cycles of a packet, thins the first of them out."""
    rounds = f"all_to_all, source: rounds{source}"
    text = TO_ONE.replace("destinations, destinations: [5, 5, 5, 5, 5, 5], SOURCE", rounds)
    text = text.replace("[3, 2]", "[8, 8]").replace("_cycles: 2000", "_cycles: 20000")
    found = hf.simulate(hf.loads(text), load=load, progress=False)
    assert found.accepted < 0.9 * load
    assert found.saturated == saturated


@pytest.mark.parametrize(("hosts", "seed"), [(3, 903), (5, 643)])
def test_hosts_that_draw_short_rounds_are_not_saturated(hosts: int, seed: int) -> None:
    """Five or six of a thousand seeds make 4 to 6 % less packets by chance, in an idle network."""
    rounds = f"random_neighbours, partners: each_round, low: 1, high: {hosts - 1}, source: rounds"
    text = TO_ONE.replace("destinations, destinations: [5, 5, 5, 5, 5, 5], SOURCE", rounds).replace("3, 2", str(hosts))
    text = text.replace("warmup_cycles: 2000", "warmup_cycles: 100").replace("_cycles: 2000", "_cycles: 3000")
    found = Simulation(parse_config(text), 0.1, seed).run()
    assert found.accepted < 0.097
    assert not found.saturated


def test_a_sweep_finds_where_hosts_begin_to_stand_still() -> None:
    text = TO_ONE.replace("SOURCE", "source: interval").replace("{war", "{loads: [0.1, 0.4], knee_percent: 5, war")
    table = hf.sweep(hf.loads(text), workers=1, progress=False).table
    assert table.loc[table["load"] > 0.175, "saturated"].all()
    assert not table.loc[table["load"] < 0.14, "saturated"].any()
    assert len(table) > 2
