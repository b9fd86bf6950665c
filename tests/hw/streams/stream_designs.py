"""Routers with AXI-Stream adapters, as the test builds them and the bench knows them."""

from typing import Any

from hopforge.hw.router.on_bus import RouterOnBus
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.stream_params import StreamParams

ROUTES = (Route(1), Route(2), Route(4), Route(0))
"""A host at every port; the last destination is unroutable."""

_BEATS = 5


def _streams(**changes: Any) -> tuple[StreamParams, ...]:
    parameters: dict[str, Any] = {"ports": 3, "vcs": 2, "buffer_flits": 3, "width_bits": 32, "address_bits": 2}
    router = RouterParams(**parameters | {"routes": ROUTES, "tag_bits": 6} | changes)
    mask = (1 << router.vcs) - 1
    return tuple(
        StreamParams(router=router, port=port, own=port, beats=_BEATS, vcs_at_injection=mask) for port in range(3)
    )


STREAMS = {
    "wormhole": _streams(),
    "vct": _streams(switching="vct", buffer_flits=6, length_bits=3, neighbour_flits=(6, 9, 7), va="free_queue"),
    "one_vc": _streams(vcs=1, width_bits=24, flit_buffers="flip_flops", vc_release="credits"),
}


def design_of(name: str) -> RouterOnBus:
    """Return a router with adapters."""
    return RouterOnBus(params=STREAMS[name][0].router, bus="axi4_lite", streams=STREAMS[name])
