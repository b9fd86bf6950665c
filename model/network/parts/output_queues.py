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


@inner
def enter_queue(net: Net, p: int, when: int) -> None:
    """Note that a flit comes behind the crossbar of output port `p` in step, or cycle, `when`.

    ``queue_group`` of a port: when the last flits but one came, or come, and up to which cycle the channel is taken
    without them and those after them; then the same for the last ones.
    """
    group = int64s(net.queue_group + 32 * p)
    if group[2] != when:
        group[0], group[1] = group[2], group[3]
        group[2], group[3] = when, output_port(net, p).busy_until


@inner
def queue_is_full(net: Net, p: int, now: int) -> bool:
    """Whether as many flits wait behind the crossbar of output port `p` as may, without those still in it."""
    group = int64s(net.queue_group + 32 * p)
    step = net.steps if net.crossbar_cycles == 1 else now
    taken = int64(output_port(net, p).busy_until)
    if group[0] >= step:
        taken = int64(group[1])
    elif group[2] >= step:
        taken = int64(group[3])
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
    send_through(net, q * net.vcs + v, q, p, i * net.vcs + v, now, leaves, back)
    if router_at(net, router).drain_ports != 0:
        note_grant(net, p, i, now)
