"""A key of which a command says that it does not use it changes nothing that it makes; others do."""

import pytest

from hopforge.gen.design.configured import NetworkDesign, router_design, whole_network_design
from hopforge.model.config import Config, parse_config
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError

PATHS = "routing: {algorithm: tables, spread: entropy}\ntables: {scheme: k_shortest, lmc: 1, layers: fewest}\n"
ECMP = "routing: {algorithm: minimal, spread: entropy}\n"
ENGINES = "lookup: {reduction: false, cache: {entries: 4, ways: 2, output_kind: port_set}}\n"
LOOKUP = "lookup: {cache: {entries: 4, ways: 2}}\n"


def configured(routing: str, entropy: str) -> Config:
    computed = "lookup" if "lookup:" in routing else "table"
    return parse_config(
        f"name: x\ntopology: {{kind: torus, radices: [4]}}\n{routing}"
        f"router: {{vcs: 4, buffer_flits: 2, flit_bits: 96, route_computation: {computed}}}\n"
        f"traffic: {{entropy: {entropy}}}\n"
    )


def made(command: str, config: Config) -> str:
    """What a package follows from, but for the configuration itself: a router has no hosts, which choose paths."""
    if command == "gen router":
        return str(router_design(config).params[0])
    found: NetworkDesign = whole_network_design(config)
    return str((found.params, found.paths))


@pytest.mark.parametrize("command", ["gen router", "gen network"])
@pytest.mark.parametrize("routing", [PATHS, PATHS + LOOKUP, ECMP, ECMP + ENGINES])
def test_the_entropy(command: str, routing: str) -> None:
    once, again = (configured(routing, words) for words in ("{per: flow}", "{per: packet, values: 16}"))
    told = "traffic.entropy" in unused_sections(once, [command])
    assert told == ("traffic.entropy" in unused_sections(again, [command]))
    assert (
        (made(command, once) == made(command, again)) == told == (command == "gen router" and "k_shortest" in routing)
    )


@pytest.mark.parametrize("command", ["gen router", "gen network"])
@pytest.mark.parametrize(("section", "once", "again", "used"), [
    ("address", "{width_bits: 16}", "{width_bits: 20}", True),
    ("lookup", "{mshrs: 2}", "{mshrs: 4}", False),
    ("timing", "{cache_ns: 2}", "{cache_ns: 3}", False),
    ("traffic", "{packet_flits: 2}", "{packet_flits: 3}", False),
])  # fmt: skip
def test_a_section_that_is_told_as_unused_changes_nothing(
    command: str, section: str, once: str, again: str, used: bool
) -> None:
    text = "name: x\ntopology: {kind: torus, radices: [4]}\nrouter: {vcs: 2, buffer_flits: 4, flit_bits: 96}\n"
    one, other = (parse_config(f"{text}{section}: {values}\n") for values in (once, again))
    assert (made(command, one) != made(command, other)) == used == (section not in unused_sections(one, [command]))


def test_ports_of_a_lookup_are_refused_where_routes_have_several() -> None:
    config = configured(ECMP + LOOKUP, "{per: flow}")
    with pytest.raises(UserError, match=r"^lookup\.cache\.output_kind must be port_set .* several ports, not port$"):
        router_design(config)


def test_sets_of_ports_are_refused_where_routes_have_one() -> None:
    config = parse_config(
        "name: x\ntopology: {kind: mesh, radices: [2, 2]}\nlookup: {cache: {output_kind: port_set}}\n"
        "router: {route_computation: lookup, flit_bits: 64}\n"
    )
    told = r"^lookup\.cache\.output_kind must be port for routing\.algorithm dor, .* have one port, not port_set$"
    with pytest.raises(UserError, match=told):
        router_design(config)
