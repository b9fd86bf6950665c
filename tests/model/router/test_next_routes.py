"""What heads bring to the next router: the entry that its own table has, and nothing for a host."""

import pytest

from hopforge.gen.design.configured import network_design
from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.topology.configured import network_topology

NETWORKS = {
    "mesh": ("{kind: mesh, radices: [3, 2]}", "dor", "vcs: 2"),
    "torus": ("{kind: torus, radices: [4, 3]}", "dor", "vcs: 2, va: free_queue"),
    "dragonfly": ("{kind: dragonfly, p: 1, a: 2, h: 1}", "dragonfly_min", "vcs: 3, flit_bits: 80"),
    "up*/down*": ("{kind: mesh, radices: [2, 3]}", "up_down", "vcs: 2"),
}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_every_head_brings_the_entry_of_the_router_that_it_enters(name: str) -> None:
    """Walked from every router to every host, by what the heads bring along alone."""
    topology_text, algorithm, router = NETWORKS[name]
    config = parse_config(
        f"name: x\ntopology: {topology_text}\nrouting: {{algorithm: {algorithm}}}\n"
        f"router: {{{router}, rc_cycles: 1, lookahead: true}}\n"
    )
    topology, params = network_topology(config), network_design(config).params
    hops = 0
    for start in range(topology.routers):
        for host in range(topology.hosts):
            here, port = start, params[start].routes[host].ports.bit_length() - 1
            for _ in range(20):
                ahead = params[here].lookahead
                assert ahead is not None
                brought = ahead.next_routes[host]
                peer = int(topology.peer_router[here, port])
                if peer < 0:
                    assert int(topology.host_at[here, port]) == host
                    assert brought == 0
                    break
                assert params[peer].carries(int(topology.peer_port[here, port]))
                bits = params[peer].ports.bit_length()
                here, port = peer, brought & (1 << bits) - 1
                own = params[here].routes[host]
                assert (1 << port, brought >> bits) == (own.ports, own.route_class)
                hops += 1
            else:
                pytest.fail(f"host {host} not reached from router {start}")
    assert hops > topology.routers
    for host in range(topology.hosts):
        assert not params[int(topology.host_router[host])].carries(int(topology.host_port[host]))


@pytest.mark.parametrize(
    ("topology", "routing", "router", "message"),
    [
        ("{kind: mesh, radices: [3, 3]}", "algorithm: star_channel", "vcs: 2", "gives several ports for a destination"),
        ("{kind: mesh, radices: [3, 3]}", "algorithm: valiant", "vcs: 2", "drawn at the source"),
        ("{kind: dragonfly, p: 1, a: 2, h: 1}", "algorithm: ugal_group", "vcs: 4", "draws random numbers"),
        ("{kind: mesh, radices: [3, 3]}", "algorithm: dor", "flit_bits: 60", "flit_bits must be at least 63"),
    ],
)
def test_what_look_ahead_cannot_know_is_refused(topology: str, routing: str, router: str, message: str) -> None:
    config = parse_config(
        f"name: x\ntopology: {topology}\nrouting: {{{routing}}}\nrouter: {{{router}, rc_cycles: 1, lookahead: true}}\n"
    )
    with pytest.raises(UserError, match=message):
        network_design(config)


def test_inputs_that_choose_ahead_need_one_port() -> None:
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [3, 3]}\nrouting: {algorithm: star_channel}\n"
        "router: {vcs: 2, va: free_queue, sa: input_ahead}\n"
    )
    with pytest.raises(UserError, match="input_ahead needs one port for a destination; star_channel gives several"):
        network_design(config)
