"""One candidate of a routing decision, packed in an int64: what RC hands to VA (docs/definitions/router.md)."""

from typing import Any

from numba import njit

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int64s


@njit
def candidate(port: int, vc_mask: int, level: int = 0, need_flits: int = 0) -> int:
    """Pack a candidate.

    Parameters
    ----------
    port : int
        Output port, 0–63.
    vc_mask : int
        Allowed output VCs, bit per VC (16 bits).
    level : int
        VA prefers candidates of level 0 to those of level 1 and so on (0–255).
    need_flits : int
        Free flit slots that the output VC must have (bubble rules; 0: only what the switching mode asks for).
    """
    return port | (level << 8) | (vc_mask << 16) | (need_flits << 32)


@inlined
def candidate_port(packed: int) -> int:
    """Output port of a packed candidate."""
    return packed & 255


@inlined
def candidate_level(packed: int) -> int:
    """Level of a packed candidate."""
    return (packed >> 8) & 255


@inlined
def candidate_mask(packed: int) -> int:
    """VC mask of a packed candidate."""
    return (packed >> 16) & 65535


@inlined
def candidate_need(packed: int) -> int:
    """Free flit slots that the candidate asks for; above them may stand the line that wrote it (`routing.guard`)."""
    return packed >> 32 & 65535


@inlined
def blank_candidates(net: Any, first: int) -> None:
    """Hand a routing relation an empty answer: what it reads there is 0, never what an earlier packet got."""
    for k in range(net.max_candidates):
        int64s(net.candidate)[first + k] = 0
