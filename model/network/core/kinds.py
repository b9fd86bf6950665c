"""Numbers that stand for something in the state: states, kinds and codes."""

#: states of an input VC (docs/definitions/router.md)
IDLE, RC, VA, ACTIVE, DRAIN = range(5)
#: kind bits of a flit
HEAD, TAIL = 1, 2
#: allocator kinds
INPUT_FIRST, OUTPUT_FIRST, WAVEFRONT, FREE_QUEUE, MAXIMUM, FAIR_WAVEFRONT, LONELY, DRAWN, INPUT_FIRST_PORTS = range(9)
#: switching
WORMHOLE, CUT_THROUGH, STORE_AND_FORWARD = range(3)
#: sources of packets
BERNOULLI, ON_OFF, SCRIPT, PROGRAM = range(4)
#: virtual channels that a host may take for a packet: any of its own; those of the destination, after the one before;
#: after the one before, be it of a request or a reply
ANY_VC, BY_DESTINATION, AFTER_LAST = range(3)
#: packet lengths
FIXED_LENGTH, UNIFORM_LENGTH, TABLE_LENGTH = range(3)
#: what classes of traffic are due (router.qos)
NO_QUALITY, STRICT, WEIGHTED = range(3)
#: bits of ``net.vc_class`` for each VC
CLASS_BITS = 3
#: events of the log
GRANTED, DRAINED, SENT, RECEIVED = range(4)
#: where a message is: its data, a request to send (rendezvous) on its way or waiting for the receive, or the answer
DATA, REQUEST, REQUESTED, ANSWER = range(4)
#: when a message starts: as soon as it is sent; when its receive is posted, which a request asks for and an answer
#: tells (rendezvous); or which the sender knows at once (matched)
AT_ONCE, RENDEZVOUS, MATCHED = range(3)
#: bits of a time in an entry of the heap of timers that are taken by the rank
RANK_BITS = 20
#: a host VC is the number host << HOST_VC_BITS | vc
HOST_VC_BITS = 4
HOST_VC_MASK = (1 << HOST_VC_BITS) - 1
#: a product with ``net.port_share`` is shifted by so many bits: exact for 13 bits of a VC number, 16 VCs a port
PORT_SHARE_BITS = 20
#: ``packet.user0`` of a packet that an agent has still to decide about (model.network.parts.agent_decisions)
UNDECIDED = -1
#: look-ahead: where the route in the next router comes from (0: no look-ahead)
AHEAD_TABLES, AHEAD_ENGINES = 1, 2
#: why the kernel came back
DONE, GROW, DEADLOCK, FINISHED, STUCK, MISTAKE, UNITS = range(7)
