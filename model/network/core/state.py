"""The state of a simulated network: its arrays, and the record of their addresses that the kernels get."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.network.core.candidates import candidate
from hopforge.model.network.core.layouts import PACKET
from hopforge.model.network.core.lookup_state import LookupState
from hopforge.model.network.core.net_record import ARRAYS, NET


class NetworkError(UserError, ValueError):
    """Parameters that no network can be built from: the message names parameter, limit and value."""


def _is_a(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether elements are of the type `wanted`, or begin with its fields (`input_vc` with its FIFO)."""
    if wanted.fields is None or given.fields is None:
        return given == wanted
    return all(given.fields.get(name) == field for name, field in wanted.fields.items())


class NetState:
    """The arrays of a network and the record that the kernels get; it keeps the arrays alive.

    Attributes
    ----------
    arrays : dict of ndarray
        By the names of `net_record.ARRAYS`.
    record : ndarray
        ``NET[1]``: settings, counters and the addresses of the arrays.
    lookup : LookupState or None
        Lookup engines, if they compute the routes.
    agents : AgentState or None
        Agents that learn to route (`model.network.parts.agent_state`).
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        #: what the addresses of functions in the record stand for
        self.functions: list[Any] = []
        self.record = np.zeros(1, NET)
        self.lookup: LookupState | None = None
        self.agents: Any = None
        self._followers: list[Callable[[NetState, int], None]] = []

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Set (or replace) the array `name`; its type must be that of `net_record.ARRAYS`."""
        if not _is_a(array.dtype, ARRAYS[name]) or not array.flags.c_contiguous:
            raise TypeError(f"array {name} must be contiguous {ARRAYS[name]}, not {array.dtype}")
        self.arrays[name] = array
        self.record[name] = array.ctypes.data

    def put_part(self, name: str, of: str) -> None:
        """Set the array `name` to the field of this name in the array `of`."""
        self.arrays[name] = self.arrays[of][name]
        self.record[name] = self.arrays[name].ctypes.data

    def put_function(self, name: str, function: Any) -> None:
        """Set the address `name` of a compiled C function."""
        self.functions.append(function)
        self.record[name] = function.address

    def __getitem__(self, name: str) -> Any:
        """Array `name`, or a setting or counter of the record."""
        return self.arrays[name] if name in self.arrays else self.record[name][0]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays; one that is a field of another counts there."""
        return sum(array.nbytes for array in self.arrays.values() if array.flags.c_contiguous)

    @property
    def candidates(self) -> NDArray[np.int64]:
        """Candidates that input VCs hold, packed, without their levels where each has one: int64[input VC, k]."""
        if self["vc_lists"]:
            return np.asarray(self["candidate"].reshape(-1, int(self["max_candidates"])))
        port, mask, need = (self["input_vc"][name].astype(np.int64) for name in ("out_port", "vc_mask", "need"))
        packed: Any = candidate.py_func(port, mask, 0, need)
        return np.asarray(packed)[:, None]

    def put_candidate(self, n: int, port: int, vc_mask: int) -> None:
        """Let input VC `n` have one candidate."""
        vcs = self["input_vc"]
        vcs["candidates"][n] = 1
        if self["vc_lists"]:
            self["candidate"][n * int(self["max_candidates"])] = candidate(port, vc_mask)
        else:
            vcs["out_port"][n], vcs["vc_mask"][n], vcs["need"][n] = port, vc_mask, 0

    @property
    def flits_in_flight(self) -> int:
        """Flits that hosts have sent and that have neither arrived nor been dropped, from the counters."""
        return int(self["flits_injected"] - self["flits_ejected"] - self["flits_dropped"])

    @property
    def flits_present(self) -> int:
        """Flits that stand in FIFOs or on links, or wait at hosts, counted one by one."""
        outside = self["outside_flits"].sum() if "outside_flits" in self.arrays else 0
        return int(self["input_vc"]["flits"].astype(np.int64).sum() + self["flit_events"].sum() + outside)

    @property
    def senders(self) -> Any:
        """Hosts that traffic knows, without service hosts: HOST[hosts], a view."""
        return self["host"][: int(self["hosts"])]

    def follow_pool(self, grow: "Callable[[NetState, int], None]") -> None:
        """Have ``grow(state, records)`` called when the pool of packets has grown to so many records."""
        self._followers.append(grow)

    def grow_packets(self) -> None:
        """Double the pool of packet records, and what parts keep for each of them."""
        old = len(self["packet"])
        packet, free = np.zeros(2 * old, PACKET), np.zeros(2 * old, np.int32)
        packet[:old] = self["packet"]
        used = int(self["free_packets"])
        free[:used] = self["free_packet"][:used]
        free[used : used + old] = np.arange(2 * old - 1, old - 1, -1)
        self.put("packet", packet)
        self.put("free_packet", free)
        for grow in self._followers:
            grow(self, 2 * old)
        self.record["free_packets"] = used + old
