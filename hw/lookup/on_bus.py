"""The lookup engine behind a standard bus."""

from amaranth.hdl import Module, Signal, Value

from hopforge.hw.buses.on_bus import OnBus
from hopforge.hw.lookup.row_write_watch import RowWriteWatch
from hopforge.hw.lookup.shallow import Lookup
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.bus_space import lookup_space, native_read_cycles

__all__ = ["LookupOnBus"]

MOST_DEPTH = 4
"""Pipeline depth of the engines that this builds."""


class LookupOnBus(OnBus):
    """`Lookup` with a standard bus in the place of its register bus, and an interrupt.

    A drop is a response that is taken with ``resp_match`` = 0.

    Parameters
    ----------
    params : LookupParams
        The engine.
    bus : str
        One of `hopforge.hw.buses.on_bus.BRIDGES`.

    Raises
    ------
    UserError
        An engine deeper than `MOST_DEPTH`.
    """

    resp_ready: Signal

    def __init__(self, *, params: LookupParams, bus: str):
        if params.pipeline_depth > MOST_DEPTH:
            raise UserError(
                f"lookup.pipeline_depth must be at most {MOST_DEPTH} behind csr.bus: {bus}, not {params.pipeline_depth}"
            )
        self.params = params
        self.engine = engine = Lookup(params=params)
        names = ("addr", "we", "re", "wdata", "rdata")
        native = {name: getattr(engine, f"csr_{name}") for name in names}
        hidden = {f"csr_{name}" for name in names} | {"line_error"}
        super().__init__(
            inner=engine, native=native, hidden=hidden, space=lookup_space(params), bus=bus,
            read_cycles=native_read_cycles(params),
        )  # fmt: skip

    def events(self, m: Module) -> dict[str, Value]:
        """Return drop, overrun, link_change and memory_error."""
        engine = self.engine
        found = {
            "drop": engine.resp_valid & self.resp_ready & ~engine.resp_match,
            "link_change": engine.link_change,
        }
        if self.params.protection is not None:
            found["memory_error"] = engine.line_error
        if self.params.tcam_kind == "sram":
            register = csr_map(self.params)["TCAM_WRITE"]
            m.submodules.watch = watch = RowWriteWatch(engines=1, rows=self.params.tcam_rows)
            m.d.comb += [
                watch.commit.eq(engine.csr_we & (engine.csr_addr == register.address)),
                watch.row.eq(engine.csr_wdata[register.field("row").lsb :]),
            ]
            found["overrun"] = watch.overrun
        return found
