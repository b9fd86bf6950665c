"""A router behind a standard bus."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value

from hopforge.hw.buses.on_bus import OnBus
from hopforge.hw.lookup.row_write_watch import RowWriteWatch
from hopforge.hw.router.streamed import router_with_streams
from hopforge.model.lookup.csr import CSR_ADDR_BITS, csr_map
from hopforge.model.router.bus_space import finds_changed_bits, native_read_cycles, router_space
from hopforge.model.router.csr import ALL_ENGINES_PAGE, ENGINE_PAGE
from hopforge.model.router.params import RouterParams
from hopforge.model.router.stream_params import StreamParams

__all__ = ["RouterOnBus"]


class RouterOnBus(OnBus):
    """`ControlledRouter` with a standard bus in the place of its register bus, and an interrupt.

    A drop is what DROPS of an input, or a counter of an AXI-Stream adapter, counts.

    Parameters
    ----------
    params : RouterParams
        The router.
    bus : str
        One of `hopforge.hw.buses.on_bus.BRIDGES`.
    streams : sequence of StreamParams
        AXI-Stream adapters at its ports.
    """

    def __init__(self, *, params: RouterParams, bus: str, streams: Sequence[StreamParams] = ()):
        self.params = params
        ports = tuple(stream.port for stream in streams)
        self.router = router = router_with_streams(params, streams, events=True)
        native = {name: getattr(router.csr, name) for name in ("addr", "we", "re", "wdata", "rdata")}
        super().__init__(
            inner=router, native=native, hidden={"csr", "dropped", "memory_error"},
            space=router_space(params, ports), bus=bus, read_cycles=native_read_cycles(params.lookup),
        )  # fmt: skip

    def events(self, m: Module) -> dict[str, Value]:
        """Return drop, overrun, link_change and memory_error."""
        found: dict[str, Value] = {"drop": self.router.dropped}
        if finds_changed_bits(self.params):
            found["memory_error"] = self.router.memory_error
        lookup = self.params.lookup
        if lookup is None:
            return found
        found["link_change"] = self.router.link_change
        if lookup.tcam_kind == "sram":
            register, bus, engines = csr_map(lookup)["TCAM_WRITE"], self.router.csr, self.params.engines
            page = bus.addr[CSR_ADDR_BITS:]
            written = Signal()
            m.submodules.watch = watch = RowWriteWatch(engines=engines, rows=lookup.tcam_rows)
            m.d.comb += [
                written.eq(bus.we & (bus.addr[:CSR_ADDR_BITS] == register.address)),
                watch.row.eq(bus.wdata[register.field("row").lsb :]),
                watch.commit.eq(
                    Cat((page == ALL_ENGINES_PAGE) | (page == ENGINE_PAGE + engine) for engine in range(engines))
                    & written.replicate(engines)
                ),
            ]
            found["overrun"] = watch.overrun
        return found
