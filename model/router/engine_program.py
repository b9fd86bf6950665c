"""What software writes into a lookup engine on a board before a run, as steps on its register bus."""

from collections.abc import Iterator, Sequence

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import WORD_BITS, CsrMap, csr_map
from hopforge.model.lookup.expression_reduction import configured_reduction
from hopforge.model.lookup.key_ports import KeyPorts
from hopforge.model.lookup.params import LookupParams
from hopforge.model.lookup.tcam import TcamRow, route_rows
from hopforge.model.router.program import BusOperation, engine_registers
from hopforge.model.topology import Topology

__all__ = ["engine_program"]

_WORD = (1 << WORD_BITS) - 1


def engine_program(config: Config, topology: Topology, params: LookupParams, router: int) -> tuple[BusOperation, ...]:
    """Return the steps that make the engine one of `router`; the cache is empty and the counters are 0 behind them.

    Raises
    ------
    UserError
        No such router, or more rows than the TCAM has.
    """
    if not 0 <= router < topology.routers:
        raise UserError(f"--router must be below {topology.routers}, the routers of the network, not {router}")
    registers, reduction = csr_map(params), configured_reduction(config, topology)
    rows = route_rows(KeyPorts(reduction, topology), router)
    if len(rows) > params.tcam_rows:
        raise UserError(f"lookup.tcam.rows must be at least {len(rows)} for router {router}, not {params.tcam_rows}")
    ctrl = registers["CTRL"]
    steps = [step for _ in range(2) for step in (_write(registers, "CTRL", ctrl.encode(flush=1)), _rest(registers))]
    steps += [
        _write(registers, name, word) for name, word in engine_registers(config, params, reduction, router).items()
    ]
    steps += _rows(registers, params, rows)
    steps += [_write(registers, "CTRL", ctrl.encode(enable=1)), _rest(registers)]
    return (*steps, _write(registers, "CTRL", ctrl.encode(enable=1, clear_counters=1)))


def _write(registers: CsrMap, name: str, word: int) -> BusOperation:
    return BusOperation("write", registers[name].address, word, 0, name)


def _rest(registers: CsrMap) -> BusOperation:
    """Wait for the end of a scrub, and of a row's write."""
    status = registers["STATUS"]
    idle = ("scrub_active", "flush_wait", "tcam_busy")
    mask = sum(status.field(name).mask for name in idle if any(field.name == name for field in status.fields))
    return BusOperation("poll", status.address, 0, mask, "STATUS")


def _rows(registers: CsrMap, params: LookupParams, rows: Sequence[TcamRow]) -> Iterator[BusOperation]:
    for number, row in enumerate(rows):
        for name, word in (("TCAM_VALUE", row.value), ("TCAM_MASK", row.mask), ("TCAM_OUTPUT", row.output)):
            yield _write(registers, f"{name}_LO", word & _WORD)
            if f"{name}_HI" in registers:
                yield _write(registers, f"{name}_HI", word >> WORD_BITS)
        write = registers["TCAM_WRITE"].encode(row=number, lag=int(row.lag), valid=int(row.valid))
        yield _write(registers, "TCAM_WRITE", write)
        if params.tcam_kind == "sram":
            yield _rest(registers)
