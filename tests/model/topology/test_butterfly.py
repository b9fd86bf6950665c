"""k-ary n-flies: wires by digits, one way for every pair, and what has no meaning on links that lead one way."""

from pathlib import Path

import numpy as np
import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.router.collective_trees import group_tree
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology import Topology, TopologyError
from hopforge.model.topology.configured import configured_network
from hopforge.model.topology.routing_table import distances, hop_statistics, shortest_path_ports
from hopforge.sim.pages.export import EXPORTS, describe, export_file
from hopforge.sim.run.simulation import Simulation


def network(k: int, n: int) -> Topology:
    return configured_network(parse_config(f"name: x\ntopology: {{kind: butterfly, k: {k}, n: {n}}}\n", keys=False))


def stage_router(topology: Topology, k: int, n: int, stage: int, place: int) -> tuple[int, int, int]:
    """Return number of a router, the first port of its inputs and the first of its outputs."""
    first, last = stage == 0, stage == n - 1
    number = place if first or last else stage * k ** (n - 1) + place
    return number, 0 if first else 2 * k if last else 0, 0 if last else k


@pytest.mark.parametrize(("k", "n"), [(2, 2), (3, 2), (2, 3), (3, 3), (2, 4)])
def test_a_walk_by_digits_ends_at_the_host(k: int, n: int) -> None:
    """Output o of stage s sets the digit of weight k^(n-s-2) to o and comes in at the digit that stood there."""
    topology = network(k, n)
    stage_routers = k ** (n - 1)
    assert (topology.hosts, topology.routers) == (k**n, (n - 1) * stage_routers)
    seen = set()
    for source in range(topology.hosts):
        for destination in range(topology.hosts):
            digits = np.base_repr(destination, k).zfill(n)
            place = source // k
            assert (topology.host_router[source], topology.host_port[source]) == (place, source % k)
            for stage in range(n - 1):
                here, _, outputs = stage_router(topology, k, n, stage, place)
                name = list(np.base_repr(place, k).zfill(n - 1))
                replaced, name[stage] = int(name[stage], k), digits[stage]
                place = int("".join(name), k)
                there, inputs, _ = stage_router(topology, k, n, stage + 1, place)
                port = outputs + int(digits[stage], k)
                seen.add((here, port))
                assert (topology.peer_router[here, port], topology.peer_port[here, port]) == (there, inputs + replaced)
            assert place * k + int(digits[-1], k) == destination
    assert len(seen) == (n - 1) * k**n  # every link is used, in one direction


def test_one_stage_is_one_router() -> None:
    topology = network(5, 1)
    assert (topology.routers, topology.hosts, topology.ports.tolist()) == (1, 5, [5])


@pytest.mark.parametrize(("k", "n"), [(3, 1), (2, 2), (3, 3)])
def test_every_packet_visits_all_stages(k: int, n: int) -> None:
    """Proved before the run; each of k^n hosts sends to each, itself too."""
    config = parse_config(
        f"name: x\ntopology: {{kind: butterfly, k: {k}, n: {n}}}\nrouter: {{vcs: 1, buffer_flits: 2}}\n"
        "routing: {algorithm: dest_tag}\nsimulation: {warmup_cycles: 100, min_cycles: 2000, max_cycles: 2000}\n"
    )
    found = Simulation(config, 0.1, 1).run()
    assert found.hops == n
    assert found.accepted == pytest.approx(0.1, rel=0.1)


def test_what_needs_links_in_both_directions_is_refused() -> None:
    topology = network(2, 3)
    for wanted in (distances, shortest_path_ports):
        with pytest.raises(TopologyError, match="links of a butterfly lead from its first stage to its last"):
            wanted(topology)
    with pytest.raises(TopologyError, match="links of a butterfly"):
        group_tree(topology, [0, 7])
    for algorithm in ("shortest", "minimal", "booksim_min", "tables"):
        config = parse_config(
            f"name: x\ntopology: {{kind: butterfly, k: 2, n: 3}}\nrouting: {{algorithm: {algorithm}}}\n", keys=False
        )
        with pytest.raises(UserError, match="links of a butterfly"):
            routing_plan(config, topology)
    own = parse_config(
        "name: x\ntopology: {kind: butterfly, k: 2, n: 3}\nrouting: {algorithm: file, file: mine.py}\n", keys=False
    )
    with pytest.raises(UserError, match="links of a butterfly"):
        routing_plan(own, topology)


@pytest.mark.parametrize(("k", "n"), [(3, 1), (2, 2), (2, 3)])
def test_sizes_without_a_search(k: int, n: int) -> None:
    """From every host to every other lead n - 1 links; a single router has no other to have a path to."""
    assert hop_statistics(network(k, n)) == (n - 1, n - 1, n - 1, k ** (n - 1))
    told = dict(describe(parse_config(f"name: x\ntopology: {{kind: butterfly, k: {k}, n: {n}}}\n", keys=False)))
    assert told["links"].split(",")[0] == str((n - 1) * k**n)
    assert told["diameter"] == f"{n - 1} links between routers with hosts"


@pytest.mark.parametrize("form", EXPORTS)
def test_formats_that_know_no_direction_are_refused(form: str, tmp_path: Path) -> None:
    """Whoever reads them goes back over the links."""
    config = parse_config("name: x\ntopology: {kind: butterfly, k: 2, n: 3}\n", keys=False)
    with pytest.raises(TopologyError, match=f"{form} cannot have a butterfly, whose links lead from .*; png can"):
        export_file(config, form, tmp_path / "file", tmp_path / "base")
    assert not list(tmp_path.iterdir())


def test_dest_tag_is_for_butterflies() -> None:
    config = parse_config("name: x\ntopology: {kind: fat_tree, k: 2, n: 2}\nrouting: {algorithm: dest_tag}\n")
    with pytest.raises(UserError, match="dest_tag needs a topology of kind butterfly, not fat_tree"):
        routing_plan(config, configured_network(config))
