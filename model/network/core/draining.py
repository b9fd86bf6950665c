"""Packets without a route leave their input VCs flit by flit (docs/definitions/router.md, DRAIN)."""

from numba import int64, uint32, uint64

from hopforge.model.kernel.bits import trailing_zeros
from hopforge.model.kernel.compile import inner
from hopforge.model.kernel.memory import int64s, words
from hopforge.model.network.core.event_log import call_log
from hopforge.model.network.core.events import pop_flit
from hopforge.model.network.core.kinds import DRAINED, TAIL
from hopforge.model.network.core.net_record import Net
from hopforge.model.network.core.packet_ends import lose_packet
from hopforge.model.network.core.records import input_port, input_vc, router_at


@inner
def drain(net: Net, now: int, start: int, stop: int) -> None:
    """Unroutable packets in routers `start` up to, but without, `stop`.

    One flit leaves each input port that has no switch grant in this cycle.
    """
    ports, vcs = net.ports, net.vcs
    for word in range(start >> 6, (stop + 63) >> 6):
        routers = words(net.draining)[word]
        while routers != uint64(0):
            router = word * 64 + trailing_zeros(routers)
            routers &= routers - uint64(1)
            state = router_at(net, router)
            for i in range(ports):
                port = input_port(net, router * ports + i)
                if port.drain_mask == 0:
                    continue
                if int64s(net.granted_input)[router * ports + i] == now + 1:
                    continue
                for v in range(vcs):
                    n = (router * ports + i) * vcs + v
                    if (port.drain_mask >> uint32(v)) & 1 and input_vc(net, n).flits > 0:
                        flit = pop_flit(net, n, now)
                        net.flits_dropped += 1
                        if net.log_event != 0:
                            call_log(net.log_event, net, DRAINED, now, n, 0, flit)
                        if flit & TAIL != 0:
                            port.drops += 1
                            port.drain_mask = port.drain_mask & ~(uint32(1) << uint32(v))
                            lose_packet(net, int64(flit) >> 2, now)
                        break
                if port.drain_mask == 0:
                    state.drain_ports -= 1
            if state.drain_ports == 0:
                words(net.draining)[word] &= ~(uint64(1) << uint64(router & 63))
