"""Designs behind a bus, as the tests build them and the benches know them."""

from hopforge.hw.buses.on_bus import OnBus
from hopforge.hw.lookup.on_bus import LookupOnBus
from hopforge.hw.router.on_bus import RouterOnBus
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.bus_space import AddressSpace, lookup_space, router_space
from hopforge.model.router.params import Route, RouterParams

ENGINE = LookupParams(
    address_bits=40, entries=8, ways=2, mshrs=2, tcam_kind="sram", tcam_rows=8, tcam_latency_cycles=3,
    functions=("arbitrary", "mesh"), chunk_bits=(4,), comparators=2,
)  # fmt: skip
"""Addresses wider than a word, and a TCAM that a row write keeps busy."""

ROUTERS = {
    "router_lookup": RouterParams(
        ports=3, vcs=2, buffer_flits=2, rc="lookup", lookup=ENGINE, address_bits=40, width_bits=96
    ),
    "router_table": RouterParams(
        ports=3, vcs=2, buffer_flits=2, routes=(Route(1), Route(2), Route(0), Route(4)), address_bits=2
    ),
}


def design_space(design: str) -> AddressSpace:
    """Return what the bus reaches."""
    return lookup_space(ENGINE) if design == "lookup" else router_space(ROUTERS[design])


def design_on(design: str, bus: str) -> OnBus:
    """Return a design behind a bus."""
    if design == "lookup":
        return LookupOnBus(params=ENGINE, bus=bus)
    return RouterOnBus(params=ROUTERS[design], bus=bus)
