"""A traffic pattern of a user's file in the kernel: ours stands before it, calls it, and looks at what it returns.

The table of such a pattern begins with what its guard needs to know (`_FIRST` entries).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numba import int64

from hopforge.model.kernel.checked import call_checked
from hopforge.model.kernel.compile import kernel
from hopforge.model.network.core.net_record import PATTERN_SIGNATURE, Net
from hopforge.model.network.core.user_code import (
    DESTINATION,
    PATTERN_ARGUMENTS,
    Role,
    guard_user_function,
    make_table,
    note_exception,
    note_mistake,
    note_of,
    note_place,
)
from hopforge.model.routing.contract.user import PREPARE_LIMIT_S, UserFile, int32_table, whole_number
from hopforge.model.topology import Topology
from hopforge.sim.traffic.patterns import TrafficPlan

_ENTRIES, _HOSTS, _NUMBER, _FIRST = range(4)
_KEY = "traffic.pattern"


def user_traffic(
    topology: Topology, path: Path, options: dict[str, Any], generator: np.random.Generator
) -> TrafficPlan:
    """Make the pattern of a user's file ready for `topology`.

    Raises
    ------
    UserCodeError
        A mistake in the file.
    """
    file = UserFile(path, _KEY, options.get("prepare_limit_s", PREPARE_LIMIT_S))
    plan = file.prepare(TrafficPlan, "topology, options, generator", topology, options, generator)
    file.refuse_plain(plan.pattern, PATTERN.made_by)
    table = int32_table(plan.table, file)
    silent = plan.silent
    if silent is not None:
        silent = np.asarray(silent)
        if silent.dtype != bool or silent.shape != (topology.hosts,):
            file.refuse(f"silent must be a bool for each of the {topology.hosts} hosts")
    rounds = plan.round_packets
    if not isinstance(rounds, tuple) or len(rounds) != 2:
        file.refuse("round_packets must be the fewest and the most packets of a round")
    low, high = (whole_number(one, "round_packets", 1, 65535, file) for one in rounds)
    if low > high:
        file.refuse(f"round_packets must be the fewest and the most packets of a round, not {low} and {high}")
    limits = {"last_host": topology.hosts - 1}
    pattern, number = guard_user_function(plan.pattern, PATTERN, _KEY, limits)
    header = np.array([table.size, topology.hosts, number], np.int32)
    return replace(
        plan,
        pattern=pattern,
        table=np.concatenate([header, table]),
        silent=silent,
        round_packets=(low, high),
    )


_call_pattern = call_checked(PATTERN_ARGUMENTS)


#: the function of the user's that a guard calls: `guard_user_function` gives each guard its own
user_function: Any = None


def _guard_pattern(identity: str, most: int, phases: int) -> Callable[..., int]:
    def guard(host: int, number: int, net: Net, table: Any) -> int:
        """After a mistake host 0 is the destination of all, and the kernel stops."""
        if len(identity) == 0 or net.mistake != 0:
            return 0
        own, at = int64(table[_NUMBER]), note_of(net)
        goal, raised, size = _call_pattern(
            user_function, host, number, net, make_table(table, int64(_FIRST), int64(table[_ENTRIES]), at)
        )
        if raised != 0:
            note_exception(net, own, raised, size)
        elif goal < 0 or goal >= table[_HOSTS]:
            note_mistake(net, DESTINATION, own, int64(0), int64(0), goal)
        else:
            return goal
        note_place(net, host, number, int64(0), int64(0))
        return 0

    return guard


PATTERN = Role(
    PATTERN_ARGUMENTS, "host, number, net, table", "destination_rule(...)", _guard_pattern, kernel(PATTERN_SIGNATURE)
)
