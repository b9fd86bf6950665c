"""Parameters of an AXI-Stream adapter at a host port (docs/definitions/stream-adapter.md)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hopforge.model.lookup.csr import WORD_BITS, CsrMap, Field, Register
from hopforge.model.router.params import RouterParams

__all__ = ["STREAM_PAGE", "WAITING", "StreamParams", "stream_map"]

WAITING = 4
"""Packets of the host that wait at most, the one that is being sent included."""

STREAM_PAGE = 3
"""Page of the router's registers with the counters of the adapters."""

COUNTERS = (
    ("STREAM_LONG", 0x00, "packets of the host that were longer than the limit, and dropped"),
    ("STREAM_MALFORMED", 0x40, "malformed packets of the host that were dropped, and flits outside of a packet"),
)
"""Stem, first word on the page and meaning of the counters of an adapter."""

_BEATS = (1, 1024)


@dataclass(frozen=True, kw_only=True)
class StreamParams:
    """One adapter, everything decided.

    Parameters
    ----------
    router : RouterParams
        The router that it stands at.
    port : int
        Its port.
    own : int
        Destination that leads to this host: source of its packets.
    beats : int
        Longest packet.
    vcs_at_injection : int
        Mask of the VCs that its heads may take.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.
    """

    router: RouterParams
    port: int
    own: int = 0
    beats: int = 16
    vcs_at_injection: int = 1

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    @property
    def bytes(self) -> int:
        """Bytes of a beat."""
        return self.router.width_bits // 8

    @property
    def last_bits(self) -> int:
        """Bits of a tag that say how many bytes the last beat has."""
        return (self.bytes - 1).bit_length()

    @property
    def user_bits(self) -> int:
        """Bits of TUSER."""
        return self.router.tag_bits - self.last_bits

    @property
    def send_credits(self) -> int:
        """Credits of a VC at reset, towards the router."""
        return self.router.buffer_flits

    @property
    def receive_flits(self) -> int:
        """Depth of the queue of a VC."""
        return self.router.credits(self.port)

    def _problems(self) -> Iterator[str]:
        p, (low, high) = self.router, _BEATS
        if not 0 <= self.port < p.ports:
            yield f"port must be below {p.ports}, not {self.port}"
        if not low <= self.beats <= high:
            yield f"stream_beats must be in {low} to {high}, not {self.beats}"
        if p.width_bits % 8:
            yield f"width_bits must be a multiple of 8 for AXI-Stream, not {p.width_bits}"
        if self.user_bits < 0:
            yield f"tag_bits must be at least {self.last_bits} for AXI-Stream of {self.bytes} bytes, not {p.tag_bits}"
        if not 0 < self.vcs_at_injection < 1 << p.vcs:
            yield f"vcs_at_injection must be in 1 to {(1 << p.vcs) - 1}, not {self.vcs_at_injection}"
        if not 0 <= self.own < 1 << p.address_bits:
            yield f"own must be below 2**address_bits={1 << p.address_bits}, not {self.own}"
        flits = self.beats + 1
        for name, depth in (("buffer_flits", self.send_credits), (f"neighbour_flits[{self.port}]", self.receive_flits)):
            if p.switching == "vct" and flits > depth:
                yield f"stream_beats must be at most {name}={depth} - 1 with switching=vct, not {self.beats}"
        if p.switching == "vct" and flits >= 1 << p.length_bits:
            limit = f"2**length_bits={1 << p.length_bits} - 2 with switching=vct"
            yield f"stream_beats must be at most {limit}, not {self.beats}"


def stream_map(ports: tuple[int, ...]) -> CsrMap:
    """Return the registers of the adapters at `ports`, by words on their page."""
    return CsrMap(
        tuple(
            Register(
                name=f"{stem}{port}", address=base + port, description=f"Port {port}: {text}; wraps.",
                fields=(Field(name="value", lsb=0, width=WORD_BITS, access="ro", description=f"Port {port}: {text}."),),
            )
            for stem, base, text in COUNTERS
            for port in ports
        )
    )  # fmt: skip
