"""Parts of the simulation that only some runs need: compiled on their own, called by the kernel by their address.

A hook is a setting of the network, 0 if absent: then the kernel pays one comparison, and nothing of it is compiled.
`messages` tracks messages (`model.network.parts.messages`, `model.network.parts.programs`), `feedback` carries the
notes of learning routing algorithms (`model.network.parts.feedback`), `vc_lists` is VA by lists of requests
(`model.network.parts.vc_match`), `speculation` serves the switch requests of heads in VA, `vc_queue` gives VCs to heads
that have the switch, `replies` lets hosts answer (`model.network.parts.replies`),
`may_send` says whether a packet may leave its host (`model.network.parts.spraying`: event 0, packet, host),
`sources` sends what hosts with classes of traffic have (`model.network.parts.class_sources`),
`acks` acknowledges packets (`model.network.parts.acknowledges`), and tells an `agent` that learns from them.
They are functions ``hook(net, event, a, b)``. `vc_match` (of VA) is ``hook(net, router, requests, cycle)``,
`switch_match` (of SA) ``hook(net, first router, end, cycle)``, `step_routes` (of RC) ``hook(net, cycle, ..., ...)``.
"""

from numba import int64

from hopforge.model.kernel.memory import function_at
from hopforge.model.network.core.net_record import NET_RECORD

#: events of `messages`: a packet is created (packet, host); its tail leaves the host (packet); it has arrived (packet,
#: cycle); it is dropped (packet, cycle); a cycle of a program begins (cycle)
CREATED, DEPARTED, ARRIVED, LOST, CYCLE = range(5)
#: events of `feedback`: a head comes to a router (packet, cycle); it leaves the input VC (input VC, packet); notes are
#: written (cycle); notes arrive (cycle)
HEAD_IN, HEAD_OUT, WRITE, READ = range(4)
#: events of `speculation`: match the requests of a cycle (cycle); carry the matches out (cycle)
MATCH, GRANT = range(2)
#: events of `vc_lists`: VA of some routers of a block (the first one of the block, mask); who was granted asks for the
#: switch
ALLOCATE, ACTIVATE = range(2)
#: events of `vc_queue`: SA of some routers is over; the cycle is over (output VCs released in the cycle before it)
SETTLE, RELEASE = range(2)
#: events of `acks`: a head comes to a router (input VC, packet); a packet has arrived (packet, cycle); an acknowledge
#: has arrived whole (packet, cycle); tables are kept and acknowledges sent (cycle); of `agent`: the first, and an
#: acknowledge brings the reward of an episode (router, place of the episode), which is in ``net.reward``; decisions
#: that take time end and begin (cycle)
HEAD_HERE, DELIVERED, TAKEN, KEEP_TABLES, REWARDED, DECIDE = range(6)
#: events of `replies`: a flit comes to a host (host VC, flit); hosts take what waits and send replies (cycle)
TAKE, REPLY = range(2)

HOOK_SIGNATURE = int64(NET_RECORD, int64, int64, int64)
call_hook = function_at(HOOK_SIGNATURE)
