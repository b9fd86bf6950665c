"""Keys by an expression (docs/definitions/key-expressions.md), for all switches of a network."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.expression.compile import Compiled
from hopforge.model.expression.golden import evaluate
from hopforge.model.lookup.csr import MODES
from hopforge.model.lookup.node_reduction import NodeReduction, Switch
from hopforge.model.lookup.params import MEMBER_BITS
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.topology import Topology, build
from hopforge.model.topology.limits import router_count

__all__ = ["ExpressionReduction", "configured_reduction"]


@dataclass(frozen=True)
class ExpressionReduction(NodeReduction):
    """The key function that an expression is; made by `configured_reduction`.

    Parameters
    ----------
    compiled : Compiled
        The expression.
    places : NodeReduction
        Of the network's kind, for the registers OWN and LEVEL of its switches; arbitrary: OWN is the router's number
        times `own_step`.
    own_step : int
        Hosts of a router where hosts are numbered, else 1.
    router_count : int
        Number of switches.
    """

    compiled: Compiled | None = None
    places: NodeReduction | None = None
    own_step: int = 1
    router_count: int = 0

    def __post_init__(self) -> None:
        """Check nothing: the configuration has been checked."""

    @property
    def _expression(self) -> Compiled:
        assert self.compiled is not None
        return self.compiled

    @property
    def _places(self) -> NodeReduction:
        assert self.places is not None
        return self.places

    @property
    def dimensions(self) -> int:
        """Digits of a switch in the register LEVEL."""
        return self._places.dimensions

    @property
    def routers(self) -> int:
        """Number of switches."""
        return self.router_count

    def switch(self, router: int) -> Switch:
        """Return the place of switch number `router` as the registers hold it."""
        if self._places.mode != "arbitrary":
            return self._places.switch(router)
        if not 0 <= router < self.routers:
            raise ValueError(f"router must be 0 to {self.routers - 1}, not {router}")
        return Switch(router * self.own_step, 0)

    def switches(self, routers: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of many switches."""
        if self._places.mode != "arbitrary":
            return self._places.switches(routers)
        number = np.asarray(routers, dtype=np.int64)
        if ((number < 0) | (number >= self.routers)).any():
            self.switch(int(number[(number < 0) | (number >= self.routers)].flat[0]))
        return number * self.own_step, np.zeros_like(number)

    def check_destination(self, destination: int) -> None:
        """Check that an address is one of the network."""
        self._places.check_destination(destination)

    def check_destinations(self, destinations: NDArray[np.int64]) -> None:
        """Check many addresses."""
        self._places.check_destinations(destinations)

    def value(self, router: int, destination: int) -> int:
        """Return the value of the expression, one at a time, as the definition says it."""
        place = self.switch(router)
        self.check_destination(destination)
        return evaluate(
            self._expression.expression, self._expression.names, dst=destination, own=place.own, level=place.level
        )

    def key(self, router: int, destination: int) -> int:
        """Return the encoded key of address `destination` at switch `router`, with its member."""
        return self._word(self.member(destination), self.value(router, destination))

    def keys(self, routers: ArrayLike, destinations: ArrayLike) -> NDArray[np.int64]:
        """Return encoded keys of arrays of switches and destinations, which are broadcast."""
        d = np.asarray(destinations, dtype=np.int64)
        self.check_destinations(d)
        own, level = self.switches(routers)
        shape = np.broadcast_shapes(own.shape, d.shape)
        flat = np.ascontiguousarray(np.broadcast_to(d, shape)).reshape(-1)
        if own.size > 1:
            own, level = (np.ascontiguousarray(np.broadcast_to(each, shape)) for each in (own, level))
        found = self._expression.program.values(own.reshape(-1), level.reshape(-1), flat)
        return np.asarray(self._word(self.member_array(flat), found)).reshape(shape)

    def _word(self, member: Any, value: Any) -> Any:
        a = self.address.width_bits
        return (MODES.index("expression") << a) | (member << a - MEMBER_BITS) | value


def configured_reduction(config: Config, topology: Topology | None = None) -> NodeReduction:
    """Return the key function of a configuration, also that of an expression.

    Parameters
    ----------
    config : Config
        The whole file.
    topology : Topology, optional
        Its network, if it is built already.

    Raises
    ------
    UserError
        More switches than the register OWN can number, or hosts with several addresses.
    """
    section = config.lookup.expression
    if section is None:
        return NodeReduction.from_config(config, topology)
    if config.lids > 1:
        raise UserError(
            f"routing.spread: {config.routing.spread} is not for keys by an expression, which know one way"
        )
    width, chunk = config.address.width_bits, config.address.chunk_bits
    lookup, address = config.lookup, AddressFormat(width, chunk)
    routers = router_count(config.topology)
    network = None
    if routers is None or config.topology.kind in ("mesh", "torus", "fat_tree", "dragonfly"):
        network = topology or build(config.topology, config.address)
        routers = network.routers
    places = NodeReduction.arbitrary(address=address)
    if network is not None:
        places = NodeReduction.of_topology(network, address)
    compiled = section.compiled(config.topology, width, chunk)
    own_step = int(compiled.names.constants.get("hosts_per_router", 1)) if compiled.names.d else 1  # type: ignore[arg-type]
    if places.mode == "arbitrary" and (routers - 1) * own_step >> width:
        raise UserError(f"address.width_bits: {width} bits are too few for the numbers of {routers} routers")
    return ExpressionReduction(
        "expression", address=address, members=lookup.lag.members, member_hash=lookup.lag.hash, crc=lookup.cache.crc,
        up_choice=lookup.up_choice, compiled=compiled, places=places, own_step=own_step, router_count=routers,
    )  # fmt: skip
