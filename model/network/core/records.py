"""How kernels reach the records of a network: each by its number."""

from typing import Any

import numba
from numba import int64

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int32s, record_reader
from hopforge.model.network.core.layouts import (
    CLASS_COUNT,
    CLASS_SOURCE,
    HOST,
    INPUT_PORT,
    INPUT_VC,
    MESSAGE,
    NOTE_RECORD,
    OUTPUT_PORT,
    OUTPUT_VC,
    PACKET_RECORD,
    RANK,
    REPLIER,
    ROUTER,
    TRAFFIC_CLASS,
    TRAIL,
)

_read_input_vc = record_reader(numba.from_dtype(INPUT_VC))
_read_output_vc = record_reader(numba.from_dtype(OUTPUT_VC))
_read_input_port = record_reader(numba.from_dtype(INPUT_PORT))
_read_output_port = record_reader(numba.from_dtype(OUTPUT_PORT))
_read_router = record_reader(numba.from_dtype(ROUTER))
_read_host = record_reader(numba.from_dtype(HOST))
_read_packet = record_reader(PACKET_RECORD)
_read_message = record_reader(numba.from_dtype(MESSAGE))
_read_replier = record_reader(numba.from_dtype(REPLIER))
_read_class_count = record_reader(numba.from_dtype(CLASS_COUNT))
_read_traffic_class = record_reader(numba.from_dtype(TRAFFIC_CLASS))
_read_class_source = record_reader(numba.from_dtype(CLASS_SOURCE))
_read_rank = record_reader(numba.from_dtype(RANK))
_read_trail = record_reader(numba.from_dtype(TRAIL))
_read_note = record_reader(NOTE_RECORD)


@inlined
def input_vc(net: Any, n: int) -> Any:
    """Input VC number `n`."""
    return _read_input_vc(net.input_vc + (n << net.vc_shift), 0)


@inlined
def vc_in_port(net: Any, vc: Any) -> int:
    """Return the number of input VC record `vc` among the VCs of its port."""
    return int64(vc.number) - (int64(vc.port) - int64(vc.router) * net.ports) * net.vcs


@inlined
def fifo_of(net: Any, n: int) -> Any:
    """FIFO of input VC number `n`: int32[B], packet << 2 | kind."""
    return int32s(net.fifo + n * net.fifo_bytes)


@inlined
def output_vc(net: Any, m: int) -> Any:
    """Output VC number `m`."""
    return _read_output_vc(net.output_vc, m)


@inlined
def input_port(net: Any, p: int) -> Any:
    """Input side of port number `p`."""
    return _read_input_port(net.input_port, p)


@inlined
def output_port(net: Any, p: int) -> Any:
    """Output side of port number `p`."""
    return _read_output_port(net.output_port, p)


@inlined
def router_at(net: Any, r: int) -> Any:
    """Router number `r`."""
    return _read_router(net.router, r)


@inlined
def host_at(net: Any, h: int) -> Any:
    """Host number `h`."""
    return _read_host(net.host, h)


@inlined
def packet_at(net: Any, k: int) -> Any:
    """Record `k` of the pool of packets."""
    return _read_packet(net.packet, k)


@inlined
def message_at(net: Any, m: int) -> Any:
    """Message number `m`."""
    return _read_message(net.message, m)


@inlined
def replier_at(net: Any, h: int) -> Any:
    """State of the replies of host `h`."""
    return _read_replier(net.replier, h)


@inlined
def class_count_at(net: Any, k: int) -> Any:
    """Counters of a class of packets, or of round trips."""
    return _read_class_count(net.class_count, k)


@inlined
def traffic_class_at(net: Any, c: int) -> Any:
    """Class number `c` of the traffic."""
    return _read_traffic_class(net.traffic_class, c)


@inlined
def class_source_at(net: Any, h: int, c: int) -> Any:
    """Source of class `c` at host `h`."""
    return _read_class_source(net.class_source, h * net.traffic_classes + c)


@inlined
def trail_at(net: Any, k: int) -> Any:
    """Record of acknowledges beside record `k` of the pool."""
    return _read_trail(net.trail, k)


@inlined
def rank_at(net: Any, r: int) -> Any:
    """Rank number `r`."""
    return _read_rank(net.rank, r)


@inlined
def note_at(net: Any, k: int) -> Any:
    """Entry `k` of the wheel of feedback."""
    return _read_note(net.note_event, k)
