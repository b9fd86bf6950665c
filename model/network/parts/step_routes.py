"""RC of routers that make several steps in a cycle (router.md, internal_speedup): it begins and ends with steps."""

from numba import int64

from hopforge.model.kernel.compile import c_kernel
from hopforge.model.kernel.memory import int32s, int64s
from hopforge.model.network.core.events import batch_of, end_routing
from hopforge.model.network.core.hooks import HOOK_SIGNATURE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import input_vc


@c_kernel(HOOK_SIGNATURE)
def step_routes(net: Net, now: int, a: int, b: int) -> int:
    """Before the allocators of a step: heads whose RC ended in the step before enter VA, others begin RC.

    Those in RC stand in ``net.step_head``; ``net.step_end`` is the last cycle of their RC, −1 if it has not begun. RC
    ends with the first step of that cycle, or the step in which it began.
    """
    heads, ends = int32s(net.step_head), int64s(net.step_end)
    free, began = int64s(net.rc_free), int64s(net.rc_step)
    before = now - 1 + net.step_follows  # cycle of the step before
    kept = int64(0)
    for k in range(net.step_heads):
        n, end = int64(heads[k]), int64(ends[k])
        if 0 <= end <= before:
            end_routing(net, n)
            continue
        if end < 0:
            last, step = now + net.rc_cycles - 1, int64(net.steps) + 1
            place = batch_of(net, int64(input_vc(net, n).port))
            if net.stage_batches == 0:
                end = last
            elif began[place] == step or free[place] <= before + 1:
                end = last
                free[place], began[place] = last + 1, step
        heads[kept], ends[kept] = n, end
        kept += 1
    net.step_heads = kept
    return 0
