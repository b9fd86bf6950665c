"""Too few virtual channels for classes of messages: the number that the mistake names is that of all, and it helps."""

import re

import pytest

from hopforge.model.config import parse_config
from hopforge.model.routing import RoutingError
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.topology.configured import network_topology

TORUS = "topology: {kind: torus, radices: [4, 4]}"
MESH = "topology: {kind: mesh, radices: [3, 3]}"
DRAGONFLY = "topology: {kind: dragonfly, p: 2, a: 4, h: 2}"
HYPERX = "topology: {kind: hyperx, sizes: [3, 3], hosts_per_router: 2}"


def _mistake(network: str, algorithm: str, vcs: int, traffic: str) -> str:
    """Return what is wrong with the routing; "" if nothing is."""
    config = parse_config(
        f"name: t\n{network}\nrouter: {{vcs: {vcs}}}\nrouting: {{algorithm: {algorithm}}}\ntraffic: {traffic}\n"
    )
    try:
        routing_plan(config, network_topology(config))
    except RoutingError as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize(
    "network, algorithm, one",
    [
        (MESH, "dor", 1),
        (TORUS, "dor", 2),
        (TORUS, "valiant", 4),
        (TORUS, "minimal", 3),
        (DRAGONFLY, "dragonfly_min", 2),
        (HYPERX, "minimal", 2),
    ],
)
def test_the_number_named_counts_all_classes_of_messages(network: str, algorithm: str, one: int) -> None:
    own = "{reply: {vcs: own}}"
    for vcs in range(2, 2 * one, 2):
        assert _mistake(network, algorithm, vcs, own).startswith(f"router.vcs must be at least {2 * one} for "), vcs
        assert _mistake(network, algorithm, vcs, own).endswith("(traffic.reply.vcs: own gives each class half)")
    assert _mistake(network, algorithm, 2 * one, own) == ""


@pytest.mark.parametrize("network, algorithm", [(DRAGONFLY, "valiant_group"), (DRAGONFLY, "ugal_node")])
@pytest.mark.parametrize("vcs", [2, 4, 12])
def test_a_number_that_would_not_help_is_not_named(network: str, algorithm: str, vcs: int) -> None:
    found = _mistake(network, algorithm, vcs, "{reply: {vcs: own}}")
    assert "must be at least" not in found and re.search(r"traffic\.reply\.vcs.*shared", found), found


def test_the_number_of_a_class_of_traffic_is_told_by_its_name() -> None:
    traffic = "{classes: [{name: urgent, vcs: 1, share: 0.5}, {name: rest, vcs: 2, share: 0.5}]}"
    assert _mistake(TORUS, "dor", 3, traffic) == (
        "traffic.classes: vcs of urgent must be at least 2 for routing.algorithm dor on a torus, not 1: "
        "two of dimension order, so that no ring waits for itself"
    )


def test_another_mistake_of_a_number_says_what_a_class_has() -> None:
    """Rules of BookSim share the VCs of a class evenly: seven for each."""
    assert _mistake("topology: {kind: mesh, radices: [3, 3]}", "booksim_romm", 14, "{reply: {vcs: own}}") == (
        "router.vcs must be a multiple of 2 for routing.algorithm booksim_romm, not 7 "
        "(traffic.reply.vcs: own gives each class half of router.vcs=14)"
    )
