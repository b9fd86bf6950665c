"""What software writes into routers with lookup engines before packets come, as cycles of the register bus."""

from collections.abc import Sequence
from itertools import zip_longest

from hopforge.gen.design.configured import NetworkDesign
from hopforge.model.lookup.golden.tcam import SRAM_WRITE_CYCLES
from hopforge.model.router.csr import ROUTER_CSR_ADDR_BITS
from hopforge.model.router.program import BusOperation

__all__ = ["setup_writes"]


def setup_writes(
    design: NetworkDesign, programs: Sequence[Sequence[BusOperation]] | None = None
) -> list[tuple[int, int] | None]:
    """Return the writes on the register bus, one a cycle, that fill keys and TCAMs and enable routers; None: idle.

    `programs`: of each router; default: what the design says.
    """
    lookup = design.params[0].lookup
    assert lookup is not None
    # Instead of a read until something is over: what it takes at most, a scrub of all sets or a write into the TCAM.
    wait = 4 * lookup.sets + 2 * lookup.tcam_latency_cycles + 64
    if lookup.tcam_kind == "sram":
        wait += SRAM_WRITE_CYCLES
    programs = [program.operations for program in design.programs] if programs is None else programs
    steps: list[tuple[int, int] | None] = []
    for operations in zip_longest(*programs):
        if any(operation is not None and operation.kind == "poll" for operation in operations):
            steps += [None] * wait
        for router, operation in enumerate(operations):
            if operation is not None and operation.kind == "write":
                steps.append((router << ROUTER_CSR_ADDR_BITS | operation.address, operation.data))
    flushes = max(sum(_flushes(operation) for operation in operations) for operations in programs)
    deferred = flushes >= 1 << lookup.epoch_bits  # one that waits for the scrubber, until when nothing hits
    return [*steps, *[None] * (wait if deferred else 2)]


def _flushes(operation: BusOperation) -> bool:
    """Tell whether an operation may request a flush (docs/definitions/lookup-engine.md, *Flush, epoch, scrub*)."""
    register = operation.name.rpartition(".")[2]
    return operation.kind == "write" and register.startswith(("CTRL", "MODE", "OWN", "LEVEL", "RADIX"))
