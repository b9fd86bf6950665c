"""Where flits wait behind the crossbar for the channel, and credits for their turn (router.md, queues at outputs)."""

from numba import int64

from hopforge.model.kernel.compile import inlined, inner
from hopforge.model.kernel.memory import int64s
from hopforge.model.network.core.events import batch_of, batch_start
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import output_port, router_at
from hopforge.model.network.core.switch_allocation import note_grant, send_through


@inner
def through_crossbar(net: Net, q: int, now: int) -> int:
    """Last cycle in the crossbar, less one, of a flit of input port `q` that is granted now and takes several there."""
    if net.stage_batches != 0:
        start = batch_start(int64s(net.crossbar_free), batch_of(net, q), now + 1, net.crossbar_cycles)
        return start + net.crossbar_cycles - 2
    return now + net.crossbar_cycles - 1


@inlined
def first_step(net: Net, now: int, cycle: int) -> tuple[int, bool]:
    """Return the number of the first step of a later `cycle`, and whether that cycle has another one."""
    left, step = net.partial_steps, int64(net.steps)
    for _ in range(cycle - now):
        while left >= 1:
            left -= 1
            step += 1
        left += net.internal_speedup
    return step + 1, bool(left >= 2)


@inner
def through_steps(net: Net, q: int, now: int) -> tuple[int, int]:
    """As `through_crossbar` where a cycle has several steps, and the step in which the flit comes behind the crossbar.

    A batch begins in a step and ends with the first one of its last cycle; the next one begins in the step after that.
    """
    place, more = batch_of(net, q), net.crossbar_cycles - 1
    begins, cycles = int64s(net.crossbar_free), int64s(net.crossbar_start)
    if begins[place] <= net.steps:
        end = cycles[place] + more
        begins[place], cycles[place] = net.steps + 1, now + 1 - net.step_follows
        if end > now:
            last, another = first_step(net, now, end)
            begins[place], cycles[place] = last + 1, end + int64(not another)
    end = cycles[place] + more
    return end - 1, first_step(net, now, end)[0]


@inlined
def queue_groups(net: Net) -> int:
    """Count the groups of flits on their way behind a crossbar: in batches two, else one of each cycle."""
    return 2 if net.stage_batches != 0 or net.crossbar_cycles == 1 else int(net.crossbar_cycles + 1)


@inner
def enter_queue(net: Net, p: int, when: int) -> None:
    """Note that a flit comes behind the crossbar of output port `p` in step, or cycle, `when`.

    ``queue_group`` of a port: of the last groups of flits, oldest first, when they came, or come, and up to which cycle
    the channel is taken without them and those after them.
    """
    groups = queue_groups(net)
    group, last = int64s(net.queue_group + 16 * groups * p), 2 * groups - 2
    if group[last] != when:
        for k in range(last):
            group[k] = group[k + 2]
        group[last], group[last + 1] = when, output_port(net, p).busy_until


@inner
def queue_is_full(net: Net, p: int, now: int) -> bool:
    """Whether as many flits wait behind the crossbar of output port `p` as may, without those still in it."""
    groups = queue_groups(net)
    group = int64s(net.queue_group + 16 * groups * p)
    step = net.steps if net.crossbar_cycles == 1 or net.internal_speedup != 1 else now
    taken = int64(output_port(net, p).busy_until)
    for k in range(groups):
        if group[2 * k] >= step:
            taken = int64(group[2 * k + 1])
            break
    return bool(taken + 1 - now >= net.queue_flits)


@inlined
def leaving_cycle(net: Net, q: int, p: int, now: int) -> int:
    """Cycle of the grant as which a flit leaves that goes from input port `q` to output port `p` now.

    It waits for those before it.

    A grant passes the crossbar in the next step: in this cycle, if another step follows.
    """
    if net.output_queues == 0:
        return now
    through, step = now - net.step_follows, net.steps + 1
    if net.crossbar_cycles > 1:
        if net.internal_speedup != 1:
            through, step = through_steps(net, q, now)
        else:
            through = through_crossbar(net, q, now)
            step = through + 1
    if net.queue_flits != 0:
        enter_queue(net, p, step)
    return max(through, int64(output_port(net, p).busy_until))


@inlined
def credit_cycle(net: Net, q: int, now: int) -> int:
    """Cycle in which the credit of a flit leaves input port `q`: one a cycle, which holds all VCs of a step."""
    sent, step = int64s(net.credit_sent), int64s(net.credit_step)
    if step[q] != net.steps + 1:
        step[q] = net.steps + 1
        sent[q] = max(now, sent[q] + 1)
    return int64(sent[q])


@inlined
def can_take(net: Net, p: int, now: int) -> bool:
    """Whether output port `p` may be asked for: its channel is free, or what waits behind the crossbar may grow."""
    if net.output_queues == 0:
        return bool(output_port(net, p).busy_until <= now)
    return bool(net.queue_flits == 0 or not queue_is_full(net, p, now))


@inlined
def send_queued(net: Net, router: int, i: int, v: int, o: int, now: int) -> None:
    """Send a flit from input `i`, VC `v`, to output `o` and what waits behind the crossbar there."""
    q, p = router * net.ports + i, router * net.ports + o
    leaves, back = leaving_cycle(net, q, p, now), credit_cycle(net, q, now)
    net.last_move = now
    send_through(net, q * net.vcs + v, q, p, i * net.vcs + v, now, leaves, back)
    if router_at(net, router).drain_ports != 0:
        note_grant(net, p, i, now)
