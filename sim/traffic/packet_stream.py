"""The packets, from host to host and in order, that a network's caches see."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError

__all__ = ["CHUNK_PACKETS", "Chunk", "Hosts", "PacketStream", "WorkloadError"]

CHUNK_PACKETS = 1 << 20

Hosts = NDArray[np.int32]
Chunk = tuple[Hosts, Hosts]


class WorkloadError(UserError, ValueError):
    """A workload that does not fit its network: the message names key, limit and value."""


@dataclass(frozen=True, eq=False)
class PacketStream:
    """Packets in the order in which they enter the network.

    Attributes
    ----------
    name : str
        For reports, for example ``uniform`` or ``is.A.64``.
    packets : int
        How many.
    make_chunks : callable
        Starts an iteration over (source host, destination host) arrays, int32[packet] each, the same every time.
    params : dict
        What is worth telling: ranks, messages, bytes, ...
    """

    name: str
    packets: int
    make_chunks: Callable[[], Iterator[Chunk]]
    params: dict[str, Any] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over the packets in pieces of about `CHUNK_PACKETS`."""
        return self.make_chunks()

    def all_packets(self) -> Chunk:
        """Return all packets as one pair of arrays."""
        parts = list(self.chunks())
        empty = np.empty(0, np.int32)
        return np.concatenate([empty, *(p[0] for p in parts)]), np.concatenate([empty, *(p[1] for p in parts)])
