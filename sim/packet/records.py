"""Numbers of the packet network's parameters, counters and codes, and where its queues stand in the arrays.

A link is node · PORT_STRIDE + port, with port 2i = (dimension i, +) and 2i + 1 = (dimension i, −); a queue is link ·
VC_STRIDE + VC. Rings of events have a power of two of places.
"""

#: virtual channels of a link: shared adaptive one, escape to the intermediate destination, escape to the destination
ADAPTIVE, ESCAPE_VIA, ESCAPE = range(3)
VCS = 3
#: most links of a node (of three dimensions: six), and most VCs of a link: powers of two, for short arithmetic
PORT_STRIDE, VC_STRIDE = 8, 4
#: port of the source's link, where queues stand at the receiving end
HOST_PORT = 6

#: parameters (int64 array)
(
    NODES,
    DIMENSIONS,
    QUEUE,  # packets of a queue
    SEND_CYCLES,  # of a packet on an external link
    LINK_CYCLES,  # latency of an external link
    HOST_SEND_CYCLES,  # the same two of an internal link
    HOST_CYCLES,
    FEED_CYCLES,  # between two packets that a source offers
    FEED_WAITS,  # a source waits for the answer to its last packet
    ENTER_SLOTS,  # free slots to enter a ring of the escape network
    INJECT_SLOTS,  # free slots in any queue for a packet from the source
    TORUS,
    ADAPTIVE_ONLY,  # congestion counts adaptive queues only
    IDLE_COUNTS_ONE,  # u*/u is 1 where u* = 0
    FULL_IS_WORTHLESS,  # no profit where all queues counted towards q are full
    KEEPS_DIRECTIONS,  # wraparound detours keep the directions of their orthant, instead of going through its middle
    ALGORITHM,
    DISTANCE,  # Δ
    ETA,  # numerator
    ETA_PARTS,  # denominator
    MESSAGE_PACKETS,
    MESSAGES,
    DEADLOCK_CYCLES,
    PARAMETERS,
) = range(24)

ABR, POR, OFR = range(3)

#: how a packet goes
MINIMAL, OUTFLANK, WRAPAROUND = range(3)

#: most intermediate destinations of a packet in three dimensions: 6 outflank, 7 wraparound
MOST_VIA = 13

#: counters (int64 array)
(
    NOW,
    NEXT_FEED,
    LAST_MOVE,
    FREE_COUNT,  # packet records on the stack of free ones
    INJECTED,
    DELIVERED,
    LIFETIME_SUM,
    LIFETIME_MAX,
    HOPS_SUM,
    DETOURS_OUTFLANK,
    DETOURS_WRAPAROUND,
    REFUSED,  # packets that a router sent back
    SENT,  # transmissions on external links
    FINISH,  # cycle of the last delivery
    COUNTERS,
) = range(15)

#: kinds of events
ARRIVALS, ANSWERS, FREES, OFFERS, SINKS, HOST_CREDITS = range(6)

#: why the kernel came back
DONE, EMPTY, STUCK = range(3)

#: bins of the lifetime histogram; the last one holds all above
BINS = 65536
#: cycles of a bin
BIN_CYCLES = 16
