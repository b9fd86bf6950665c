"""Every algorithm with too few virtual channels: one line says how many would do and why, and so many do."""

from functools import cache

import pytest

from hopforge.model.config import parse_config
from hopforge.model.errors import UserError
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.routing.contract.plan import ROUTING, TooFewVcsError
from hopforge.model.topology import Topology
from hopforge.model.topology.configured import network_topology

NETWORKS = (
    "{kind: mesh, radices: [4, 3]}", "{kind: torus, radices: [4, 4]}", "{kind: dragonfly, p: 1, a: 2, h: 1}",
    "{kind: dragonfly_plus, hosts_per_router: 1, leaves: 2, spines: 2, h: 1}",
    "{kind: cascade, hosts_per_router: 1, sizes: [2, 2], h: 1}", "{kind: slim_fly, q: 3}", "{kind: polarfly, q: 3}",
    "{kind: hyperx, sizes: [3, 3], hosts_per_router: 3}", "{kind: fat_tree, k: 2, n: 2}",
    "{kind: random_regular, routers: 12, degree: 3}", "{kind: butterfly, k: 2, n: 3}",
)  # fmt: skip
LAYERS = (
    "scheme: shortest, layers: lash", "scheme: shortest, layers: escape",
    "scheme: k_shortest, lmc: 1, layers: hop_indexed",
)  # fmt: skip
#: algorithms that any number of virtual channels will do for, or that ask for an even number
ANY = {
    "dest_tag", "d_mod_k", "nca", "anca", "up_down", "booksim_dor", "booksim_nca", "booksim_min", "booksim_val",
    "booksim_ugal_four", "booksim_ugal_pf", "booksim_min_by_hop", "booksim_xy_yx", "booksim_adaptive_xy_yx",
    "booksim_valiant", "booksim_romm", "booksim_ugal", "booksim_ugal_xy_yx",
}  # fmt: skip


@cache
def topology_of(network: str) -> Topology:
    return network_topology(parse_config(f"name: x\ntopology: {network}\n"))


def refused(network: str, routing: str, vcs: int, more: str) -> UserError | None:
    config = parse_config(f"name: x\ntopology: {network}\nrouting: {{{routing}}}\nrouter: {{vcs: {vcs}, {more}\n")
    try:
        routing_plan(config, topology_of(network))
    except UserError as problem:
        return problem
    return None


def check(network: str, routing: str, more: str) -> int:
    """Count the numbers of virtual channels that are too few: the line is whole, and what it names is enough."""
    found = 0
    for vcs in range(1, 6):
        problem = refused(network, routing, vcs, more)
        if isinstance(problem, TooFewVcsError):
            assert vcs < problem.least
            begin = f"router.vcs must be at least {problem.least} for "
            assert str(problem).startswith(begin) and "\n" not in str(problem)
            assert len(str(problem).split(f", not {vcs}: ")[1].split()) >= 4, problem
            assert refused(network, routing, problem.least, more) is None
            found += 1
    return found


@pytest.mark.parametrize("name", sorted(set(ROUTING) - {"tables"}))
def test_how_many_would_do_and_why(name: str) -> None:
    more = "switching: vct, buffer_flits: 8}" + ("\ntraffic: {acknowledge: {}}" if name == "dqn" else "")
    found = sum(check(network, f"algorithm: {name}", more) for network in NETWORKS)
    assert (found > 0) == (name not in ANY)


@pytest.mark.parametrize("tables", LAYERS)
def test_virtual_layers(tables: str) -> None:
    spread = ", spread: packet" if "k_shortest" in tables else ""
    more = f"switching: vct, buffer_flits: 8}}\ntables: {{{tables}}}"
    assert check("{kind: torus, radices: [5, 5]}", f"algorithm: tables{spread}", more) > 0
