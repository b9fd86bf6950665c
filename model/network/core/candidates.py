"""One candidate of a routing decision, packed in an int64: what RC hands to VA (docs/definitions/router.md)."""

from typing import Any

from numba import njit

from hopforge.model.kernel.compile import inlined
from hopforge.model.kernel.memory import int64s

#: from the lowest bit on: 10 bits of the port, 8 of the level, 16 of the VCs, 16 of the slots; `checked.VALUE_BITS`
#: are all of them
LEVEL_AT, MASK_AT, NEED_AT = 10, 18, 34
PORT_VALUES = 1 << LEVEL_AT


@njit
def candidate(port: int, vc_mask: int, level: int = 0, need_flits: int = 0) -> int:
    """Pack a candidate.

    Parameters
    ----------
    port : int
        Output port (`topology.limits.MAX_PORTS`).
    vc_mask : int
        Allowed output VCs, bit per VC (16 bits).
    level : int
        VA prefers candidates of level 0 to those of level 1 and so on (0–255).
    need_flits : int
        Free flit slots that the output VC must have (bubble rules; 0: only what the switching mode asks for).
    """
    return port | (level << LEVEL_AT) | (vc_mask << MASK_AT) | (need_flits << NEED_AT)


@njit
def with_port(packed: int, port: int) -> int:
    """Return a candidate with another output port."""
    return packed & ~(PORT_VALUES - 1) | port


@inlined
def candidate_port(packed: int) -> int:
    """Output port of a packed candidate."""
    return packed & (PORT_VALUES - 1)


@inlined
def candidate_level(packed: int) -> int:
    """Level of a packed candidate."""
    return (packed >> LEVEL_AT) & 255


@inlined
def candidate_mask(packed: int) -> int:
    """VC mask of a packed candidate."""
    return (packed >> MASK_AT) & 65535


@inlined
def candidate_need(packed: int) -> int:
    """Free flit slots that the candidate asks for; above them may stand the line that wrote it (`routing.guard`)."""
    return packed >> NEED_AT & 65535


@inlined
def blank_candidates(net: Any, first: int) -> None:
    """Hand a routing relation an empty answer: what it reads there is 0, never what an earlier packet got."""
    for k in range(net.max_candidates):
        int64s(net.candidate)[first + k] = 0
