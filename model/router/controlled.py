"""Golden routers with their registers: `RouterModel`, and one register bus for it and its lookup engines."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS, Register, csr_map
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.router.csr import (
    ALL_ENGINES_PAGE,
    ENGINE_PAGE,
    PORT_COUNTERS,
    ROUTER_CSR_ADDR_BITS,
    router_csr_map,
)
from hopforge.model.router.flit import PortInputs, PortOutputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.links import End, Link
from hopforge.model.router.network import LinkModels
from hopforge.model.router.params import RouterParams

__all__ = ["BusInputs", "ControlledNetworkModel", "ControlledRouterModel"]

_WORD = (1 << WORD_BITS) - 1


class BusInputs(NamedTuple):
    """Register bus in one cycle."""

    addr: int = 0
    we: int = 0
    re: int = 0
    wdata: int = 0


class ControlledRouterModel:
    """A router and its registers (docs/guides/generate-a-router.md), one `step` per cycle.

    Parameters
    ----------
    params : RouterParams
        What it is.
    number : int
        Its number in the network.

    Attributes
    ----------
    router : RouterModel
        The router itself.
    """

    def __init__(self, params: RouterParams, number: int = 0) -> None:
        self.params = params
        self.number = number
        self.router = RouterModel(params)
        self.map = router_csr_map(params)
        self.enable = self.map["CTRL"].field("enable").reset
        self.own = 0
        self.unroutable = 0
        self._held = 0  # word that the router's own registers gave last
        self._source: int | None = None  # engine that was read last, if the last read was of one

    def visible(self) -> list[PortOutputs]:
        """Return what stands at the ports in this cycle."""
        return self.router.visible()

    def step(
        self,
        inputs: Sequence[PortInputs],
        bus: BusInputs = BusInputs(),  # noqa: B008  (immutable)
        *,
        link_change: int = 0,
        tcams: Sequence[LookupInputs] = (),
    ) -> tuple[list[PortOutputs], int, list[LookupOutputs]]:
        """Go through one cycle.

        Parameters
        ----------
        inputs : sequence of PortInputs
            One per port.
        bus : BusInputs
            Register bus.
        link_change : int
            Pulse for all engines.
        tcams : sequence of LookupInputs
            With a TCAM outside, its signals for each port; the other fields are ignored.

        Returns
        -------
        list of PortOutputs
            What stands at the ports in this cycle.
        int
            Word on the register bus in this cycle.
        list of LookupOutputs
            Outputs of the engines.
        """
        engines = self._engine_inputs(bus, link_change, tcams)
        word = self._read(bus.addr)
        written = self.map.by_address.get(bus.addr) if bus.we else None
        ctrl = self.map["CTRL"]
        clear = written is ctrl and ctrl.decode(bus.wdata)["clear_counters"]

        outputs, answers = self.router.step(inputs, engines, enable=bool(self.enable), clear_counters=bool(clear))
        rdata = answers[self._source].csr_rdata if self._source is not None else self._held

        if written is not None:
            self._write(written, bus.wdata)
        # The counters have been cleared together with what they counted in this cycle, the flags have not.
        self.unroutable |= sum(1 << i for i in self.router.dropped)
        if bus.re:
            engine = (bus.addr >> CSR_ADDR_BITS) - ENGINE_PAGE
            self._source = engine if 0 <= engine < len(self.router.engines) else None
            self._held = word
        return outputs, rdata, answers

    def _engine_inputs(self, bus: BusInputs, link_change: int, tcams: Sequence[LookupInputs]) -> list[LookupInputs]:
        page, address = bus.addr >> CSR_ADDR_BITS, bus.addr & (1 << CSR_ADDR_BITS) - 1
        register = self.map.by_address.get(bus.addr)
        forwarded = register is not None and register.name.startswith("OWN") and bool(bus.we)
        if forwarded and register is not None and self.params.lookup is not None:
            address = csr_map(self.params.lookup)[register.name].address
        rows = []
        for i in range(len(self.router.engines)):
            mine = page == ENGINE_PAGE + i
            given = tcams[i] if tcams else LookupInputs()
            rows.append(
                given._replace(
                    csr_addr=address,
                    csr_we=int(bus.we and (mine or page == ALL_ENGINES_PAGE or forwarded)),
                    csr_re=int(bus.re and mine),
                    csr_wdata=bus.wdata,
                    link_change=link_change,
                )
            )
        return rows

    def _read(self, address: int) -> int:
        register = self.map.by_address.get(address)
        if register is None:
            return 0
        for stem, base, _ in PORT_COUNTERS:
            if base <= address < base + self.params.ports:
                return int(getattr(self.router, stem.lower())[address - base]) & _WORD
        values = {
            "CTRL": register.fields[0].insert(self.enable) if register.name == "CTRL" else 0,
            "STATUS": int(self.unroutable != 0),
            "OWN_LO": self.own & _WORD,
            "OWN_HI": self.own >> WORD_BITS,
            "NUMBER": self.number,
            "UNROUTABLE_LO": self.unroutable & _WORD,
            "UNROUTABLE_HI": self.unroutable >> WORD_BITS,
        }
        return values.get(register.name, register.reset)

    def _write(self, register: Register, word: int) -> None:
        high = WORD_BITS if register.name.endswith("_HI") else 0
        if register.name == "CTRL":
            self.enable = register.decode(word)["enable"]
        elif register.name.startswith("OWN"):
            mask = register.write_mask << high
            self.own = self.own & ~mask | word << high & mask
        elif register.name.startswith("UNROUTABLE"):
            self.unroutable &= ~(word << high)


class ControlledNetworkModel:
    """Routers with their registers, the links between them, and one register bus for all.

    Parameters
    ----------
    routers : sequence of RouterParams
        The routers; with lookup engines, their TCAMs are inside.
    links : sequence of Link
        At most one to and one from each port.
    """

    def __init__(self, routers: Sequence[RouterParams], links: Sequence[Link]) -> None:
        self.routers = [ControlledRouterModel(params, number) for number, params in enumerate(routers)]
        self._links = LinkModels(links)
        self._source = len(self.routers)  # the router that was read last; there is none of this number

    def visible(self) -> list[list[PortOutputs]]:
        """Return what stands at the outputs of every router in this cycle."""
        return [router.visible() for router in self.routers]

    def step(self, outside: Mapping[End, PortInputs], bus: BusInputs, link_change: int = 0) -> int:
        """Go through one cycle; return the word on the register bus in it.

        Parameters
        ----------
        outside : mapping
            Inputs of the ports without a link.
        bus : BusInputs
            Register bus: bits from `ROUTER_CSR_ADDR_BITS` up are the number of the router.
        link_change : int
            A bit for every router.
        """
        where, address = divmod(bus.addr, 1 << ROUTER_CSR_ADDR_BITS)
        words = [0] * (len(self.routers) + 1)
        inputs = self._links.carry(self.visible(), outside)
        for number, (router, ports) in enumerate(zip(self.routers, inputs, strict=True)):
            asked = where == number
            mine = BusInputs(address, int(bus.we and asked), int(bus.re and asked), bus.wdata)
            _, words[number], _ = router.step(ports, mine, link_change=link_change >> number & 1)
        word = words[self._source]
        if bus.re:
            self._source = min(where, len(self.routers))
        return word
