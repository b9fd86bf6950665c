"""Collective units, and the links between them."""

from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.collectives.unit import CollectiveUnit, plane_channel, tree_signature
from hopforge.hw.parts.shared import shared
from hopforge.model.router.collective_params import PlaneParams
from hopforge.model.router.links import End, Link

__all__ = ["CollectiveNetwork"]


class CollectiveNetwork(wiring.Component):
    """The collective plane of a network (docs/definitions/network-collectives.md).

    A link of latency L carries in cycle x + L − 1 what stood on its source in cycle x (L = 1: a wire), and credits as
    slowly in the other direction. ``host[h]`` is the port of the unit at which host h is. ``set_unit`` says which unit
    is written. Reset: empty, no trees.

    Parameters
    ----------
    params : PlaneParams
        Of all units.
    ports : sequence of int
        Ports of each unit.
    links : sequence of Link
        At most one to and one from each port.
    hosts : sequence of End
        The port of each host.

    Raises
    ------
    ValueError
        No units, or links and hosts that do not fit them or each other; it names the first of them.
    """

    host: Sequence[Any]
    set_valid: Signal
    set_unit: Signal
    set_group: Signal
    set_children: Signal
    set_parent: Signal

    def __init__(self, *, params: PlaneParams, ports: Sequence[int], links: Sequence[Link], hosts: Sequence[End]):
        self.params, self.ports = params, tuple(ports)
        self.links, self.hosts = tuple(links), tuple(hosts)
        for problem in self._problems():
            raise ValueError(problem)
        super().__init__(
            {
                "host": Out(plane_channel(params)).array(len(self.hosts)),
                "set_unit": In(max(1, ceil_log2(len(self.ports)))),
            }
            | tree_signature(params, max(self.ports))
        )

    def _problems(self) -> Iterator[str]:
        if not self.ports:
            yield "units must be at least 1, not 0"
        sides: dict[str, set[End]] = {"input": set(), "output": set()}
        ends = [(f"links[{n}]", {"output": link.source, "input": link.target}) for n, link in enumerate(self.links)]
        ends += [(f"hosts[{n}]", {"output": end, "input": end}) for n, end in enumerate(self.hosts)]
        for name, used in ends:
            for side, end in used.items():
                if not (0 <= end.router < len(self.ports) and 0 <= end.port < self.ports[end.router]):
                    yield f"{name}: unit {end.router} has no port {end.port}"
                if end in sides[side]:
                    yield f"{name}: the {side} of port {end.port} of unit {end.router} is in use"
                sides[side].add(end)
        for n, link in enumerate(self.links):
            if link.latency_cycles < 1:
                yield f"links[{n}].latency_cycles must be at least 1, not {link.latency_cycles}"

    def elaborate(self, platform: object) -> Module:
        """Connect the units."""
        m = Module()
        units: list[Any] = []
        for number, ports in enumerate(self.ports):
            unit = CollectiveUnit(params=self.params, ports=ports)
            m.submodules[f"unit{number}"] = shared(unit, platform, self.params, ports)
            units.append(unit)
            m.d.comb += [
                unit.set_valid.eq(self.set_valid & (self.set_unit == number)),
                unit.set_group.eq(self.set_group),
                unit.set_children.eq(self.set_children),
                unit.set_parent.eq(self.set_parent),
            ]
        for number, link in enumerate(self.links):
            source = units[link.source.router].port[link.source.port]
            target = units[link.target.router].port[link.target.port]
            delay = link.latency_cycles - 1
            m.d.comb += [
                target.in_valid.eq(_delayed(m, source.out_valid, delay, f"valid{number}")),
                target.in_flit.eq(_delayed(m, source.out_flit, delay, f"flit{number}", reset_less=True)),
                source.out_credit.eq(_delayed(m, target.in_credit, delay, f"credit{number}")),
            ]
        for host, end in enumerate(self.hosts):
            outside, inside = self.host[host], units[end.router].port[end.port]
            m.d.comb += [
                inside.in_valid.eq(outside.in_valid),
                inside.in_flit.eq(outside.in_flit),
                outside.in_credit.eq(inside.in_credit),
                outside.out_valid.eq(inside.out_valid),
                outside.out_flit.eq(inside.out_flit),
                inside.out_credit.eq(outside.out_credit),
            ]
        return m


def _delayed(m: Module, value: Value, cycles: int, name: str, *, reset_less: bool = False) -> Value:
    """Return `value` as it was some cycles ago."""
    for cycle in range(cycles):
        register = Signal(len(value), name=f"{name}_{cycle + 1}", reset_less=reset_less)
        m.d.sync += register.eq(value)
        value = register
    return value
