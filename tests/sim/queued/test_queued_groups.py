"""Q-adaptive on groups of leaves and spines, and on grids, against a plain golden: cycles and estimates."""

from typing import Any

import numpy as np
import pytest

from hopforge.model.config.lookup import AddressConfig
from hopforge.model.config.router import RouterConfig
from hopforge.model.config.topology import CascadeConfig, DragonflyPlusConfig
from hopforge.model.network.core.kinds import DONE
from hopforge.model.routing import ROUTING
from hopforge.model.topology import Topology, build
from hopforge.model.topology.link_times import port_values
from hopforge.sim.queued.build import IntervalSource, QueueParameters
from hopforge.sim.queued.golden_groups import GoldenCascade, GoldenGroups

from .test_queued import kernel


def leaves_and_spines(leaves: int, spines: int, h: int, p: int, g: int | None = None) -> Topology:
    shape = {"leaves": leaves, "spines": spines, "h": h, "hosts_per_router": p, "g": g}
    return build(DragonflyPlusConfig(kind="dragonfly_plus", **shape), AddressConfig())


def compare(topology: Topology, golden_class: type[GoldenGroups], vcs: int, depth: int, interval: float) -> None:
    """Run kernel and golden side by side."""
    given = QueueParameters(
        vcs=vcs, input_packets=depth, output_packets=depth, nic_packets=3, packet_cycles=16, match_cycles=4,
        flight_cycles=port_values(topology, 25, 60, 9), wake_late=False,
    )  # fmt: skip
    golden = golden_class(topology, given, interval, 5)
    plan = ROUTING["q_adaptive"](topology, vcs, {"router": RouterConfig(model="input_output_queued"), "epsilon": 0.05})
    state, run = kernel(topology, plan, given, IntervalSource(interval_packets=interval), 5)
    for cycle in range(450):
        golden.step()
        assert run(1) == DONE
        lengths = [len(queue) for queue in golden.inputs.values()], [len(queue) for queue in golden.outputs.values()]
        for name, wanted in zip(("input_queue", "output_queue"), lengths, strict=True):
            assert state.queues[name]["length"].tolist() == wanted, (cycle, name)
        assert (state["latency_sum"], state["hops_sum"]) == (sum(golden.latencies), sum(golden.hops)), cycle
    assert len(golden.latencies) > 20
    assert max(golden.hops) > 4  # a detour
    assert plan.estimates is not None
    begin, shape = plan.estimates
    first, after = (memory[begin:].reshape(shape) for memory in (plan.memory, state["memory"]))
    groups, rows = topology.routers // golden.size, shape[1] * golden.size // topology.routers
    offset = topology.max_ports - shape[2]
    for r in range(topology.routers):
        for o in [*golden.local_ports(r), *golden.global_ports(r)]:
            for goal in set(range(groups)) - {golden.group(r)}:
                assert set(first[r, goal * rows : (goal + 1) * rows, o - offset]) == {golden.first(r, goal, o)}
    assert len(golden.q) > 20
    for (r, goal, number, o), value in golden.q.items():
        assert after[r, goal * rows + number, o - offset] == value
    assert np.count_nonzero(first != after) == sum(
        value != golden.first(r, goal, o) for (r, goal, _, o), value in golden.q.items()
    )


@pytest.mark.parametrize(
    ("shape", "vcs", "depth", "interval"),
    [
        ((2, 2, 1, 2), 2, 2, 1.0),
        ((2, 2, 2, 1), 5, 20, 1.25),  # classes of two and three channels
        ((3, 2, 2, 1, 3), 4, 3, 1.0),  # two links for each pair of groups
    ],
)
def test_every_cycle_as_the_golden(shape: tuple[int, ...], vcs: int, depth: int, interval: float) -> None:
    compare(leaves_and_spines(*shape), GoldenGroups, vcs, depth, interval)


@pytest.mark.parametrize(
    ("shape", "vcs", "depth", "interval"),
    [
        ({"sizes": (2, 2), "h": 1, "hosts_per_router": 2}, 3, 2, 1.0),
        ({"sizes": (3, 2), "links": (1, 2), "h": 1, "g": 3, "hosts_per_router": 1}, 7, 20, 1.25),  # parallel links
    ],
)
def test_every_cycle_on_cascade_as_the_golden(shape: dict[str, Any], vcs: int, depth: int, interval: float) -> None:
    topology = build(CascadeConfig(kind="cascade", **shape), AddressConfig())
    compare(topology, GoldenCascade, vcs, depth, interval)
