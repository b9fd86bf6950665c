"""What the ports of a golden router see in one cycle: flits and credits."""

from typing import NamedTuple

__all__ = ["BODY", "HEAD", "SINGLE", "TAIL", "Flit", "PortInputs", "PortOutputs"]

BODY, HEAD, TAIL, SINGLE = range(4)


class Flit(NamedTuple):
    """What a channel carries: kind, virtual channel, data."""

    kind: int
    vc: int
    data: int

    @property
    def is_head(self) -> bool:
        """First flit of a packet."""
        return self.kind in (HEAD, SINGLE)

    @property
    def is_tail(self) -> bool:
        """Last flit of a packet."""
        return self.kind in (TAIL, SINGLE)


class PortInputs(NamedTuple):
    """Inputs of a port in one cycle: a flit or None, and the VC of a returned credit or None."""

    flit: Flit | None = None
    credit: int | None = None


class PortOutputs(NamedTuple):
    """Outputs of a port in one cycle, and how many unroutable packets have been dropped at its input."""

    flit: Flit | None = None
    credit: int | None = None
    drops: int = 0
