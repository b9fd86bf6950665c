"""What an agent of DQN routing sees of a router, and what a packet carries of a decision (docs/definitions/dqn.md).

A packet carries in ``user0`` what was decided at the last router: `PDOR`; the number of the proposed port + 1, shifted
by one; or `UNDECIDED`.
"""

from typing import Any

from numba import carray, int64

from hopforge.model.dqn.dense import part
from hopforge.model.dqn.observation import distance, minimal_actions, observe
from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import floats, int64s
from hopforge.model.network.core.kinds import ACTIVE
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.records import fifo_of, input_vc, output_port, output_vc, packet_at

__all__ = ["ACTION_BITS", "PDOR", "allowed_actions", "hops_to", "is_busy", "most_room", "port_of", "see"]

#: ``packet.user0``: the packet takes dimension order for good; number of the proposed port + 1
PDOR, ACTION_BITS = 1, 1


@inlined
def port_of(r: Any, action: int) -> int:
    """Port of an action, counted from the first one without a host; on a grid those of a dimension change places."""
    return action ^ r.swapped


@inlined
def flits_of_first(net: Net, n: int, head: int, flits: int) -> int:
    """Flits in the FIFO of input VC `n` of the packet in front: they stand together, so halving finds their end."""
    fifo, first = fifo_of(net, n), int64(fifo_of(net, n)[head]) >> 2
    low, high = 1, flits
    while low < high:
        middle = (low + high + 1) >> 1
        place = head + middle - 1
        place -= net.buffer if place >= net.buffer else 0
        if int64(fifo[place]) >> 2 == first:
            low = middle
        else:
            high = middle - 1
    return low


@inlined
def taken_action(net: Net, r: Any, n: int) -> int:
    """Return the action by whose channel the packet in front of input VC `n` leaves; −1: by the escape."""
    vc = input_vc(net, n)
    if int64(vc.out_vc) % net.vcs < r.escapes or int64(vc.out_vc) % net.vcs >= r.adaptive_end:
        return -1
    port = int64(vc.out_port) - r.first_port
    return port ^ r.swapped if 0 <= port < r.outputs else -1


@part
def count_local(net: Net, r: Any, router: int, newest: int, local: Any) -> None:
    """Count the flits in a router's adaptive input VCs that are to leave by each adaptive channel.

    `newest`: the input VC whose last flit is the head that has just come, about which nothing is decided. A packet that
    comes back to an input VC where its own tail still stands counts with that.
    """
    for action in range(r.outputs):
        local[action] = 0
    for port in range(router * net.ports, (router + 1) * net.ports):
        for v in range(r.escapes, r.adaptive_end):
            n = port * net.vcs + v
            vc = input_vc(net, n)
            head, left, first = int64(vc.head), int64(vc.flits) - (n == newest), True
            while left > 0:
                p = int64(fifo_of(net, n)[head]) >> 2
                packet = packet_at(net, p)
                here = flits_of_first(net, n, head, left) if first else min(left, int64(packet.length))
                if first and vc.state == ACTIVE:  # its head may be further on, and decided about there
                    action = taken_action(net, r, n)
                else:
                    action = (int64(packet.user0) >> ACTION_BITS) - 1
                if action >= 0 and packet.dst < net.hosts:
                    local[action] += here
                first = False
                left -= here
                head += here
                head -= net.buffer if head >= net.buffer else 0


@part
def count_remote(net: Net, r: Any, router: int, remote: Any) -> None:
    """Count the flits in the adaptive buffers behind each port of a router, as the credits say."""
    for action in range(r.outputs):
        first = (router * net.ports + r.first_port + port_of(r, action)) * net.vcs
        remote[action] = 0
        for v in range(r.escapes, r.adaptive_end):
            remote[action] += int64(output_vc(net, first + v).depth) - int64(output_vc(net, first + v).credits)


@inlined
def most_room(net: Net, r: Any, port: int) -> int:
    """Free flits of the emptiest adaptive buffer behind a port."""
    free = 0
    for v in range(r.escapes, r.adaptive_end):
        free = max(free, int(output_vc(net, port * net.vcs + v).credits))
    return free


@inlined
def is_busy(net: Net, r: Any, port: int) -> bool:
    """Whether all adaptive channels of a port are taken by packets."""
    adaptive = (1 << r.adaptive_end) - (1 << r.escapes)
    return int64(output_port(net, port).free_mask) & adaptive == 0


@part
def allowed_actions(net: Net, r: Any, router: int, p: int) -> int:
    """Mask of the actions that the agent may propose for packet `p`."""
    allowed, there = int64s(r.allowed)[router], int64s(r.home)[packet_at(net, p).dst]
    if r.minimal == 0:
        return allowed
    if r.listed != 0:
        return allowed & int64s(r.nearer)[router * r.routers + there]
    places = carray(int64s(r.coordinates), (r.routers, r.dimensions))
    radices = carray(int64s(r.radices), (r.dimensions,))
    return allowed & minimal_actions(radices, r.wraps != 0, places[router], places[there])


@part
def hops_to(r: Any, router: int, there: int) -> int:
    """Return the hops of a minimal way from a router to another."""
    if r.listed != 0:
        return int64s(r.ways)[router * r.routers + there]
    places = carray(int64s(r.coordinates), (r.routers, r.dimensions))
    radices = carray(int64s(r.radices), (r.dimensions,))
    return distance(radices, r.wraps != 0, places[router], places[there])


@part
def see(net: Net, r: Any, n: int, p: int, newest: int, observation: Any) -> None:
    """Write what the agent sees of packet `p` in input VC `n`.

    `newest`: `n` if the head of the packet has come in this cycle, else -1.
    """
    router, packet = int64(input_vc(net, n).router), packet_at(net, p)
    local, remote = carray(int64s(r.local), (r.outputs,)), carray(int64s(r.remote), (r.outputs,))
    count_local(net, r, router, newest, local)
    count_remote(net, r, router, remote)
    places = carray(int64s(r.coordinates), (r.routers, r.dimensions))
    radices, scales = carray(int64s(r.radices), (r.dimensions,)), carray(floats(r.scales), (3,))
    there = int64s(r.home)[packet.dst]
    payload = max(int64(packet.length) - 2, 0)
    observe(radices, places[router], places[there], payload, local, remote, scales, observation)
