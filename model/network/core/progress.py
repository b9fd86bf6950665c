"""When a kernel comes back to Python before its last cycle; shared by the kernels of all router models."""

from hopforge.model.kernel.compile import inlined
from hopforge.model.network.core.kinds import DEADLOCK, DONE, FINISHED, MISTAKE, SCRIPT, UNITS
from hopforge.model.network.core.net_record import Net


@inlined
def stop_reason(net: Net, now: int) -> int:
    """Why to stop after cycle `now`: FINISHED (all listed packets are there), DEADLOCK, MISTAKE, UNITS; DONE: none."""
    if net.mistake != 0:
        return MISTAKE
    in_flight = net.flits_injected - net.flits_ejected - net.flits_dropped
    if in_flight == 0:
        if net.source_kind == SCRIPT and net.flits_injected == net.script_flits + net.flits_added:
            return FINISHED
    elif now - net.last_move > net.deadlock_cycles:
        return DEADLOCK
    return DONE if net.calls_ready == 0 else UNITS
