"""Find a traffic pattern: one of ours by name, or a user's own Python file."""

from pathlib import Path
from typing import Any

import numpy as np

from hopforge.model.topology import Topology
from hopforge.sim.traffic.patterns import PATTERNS, TrafficError, TrafficPlan


def prepare_traffic(
    topology: Topology, pattern: str, options: dict[str, Any], generator: np.random.Generator, folder: Path = Path()
) -> TrafficPlan:
    """Make `pattern` (a name of `PATTERNS`, or ``FILE.py`` with a function ``prepare``) ready for `topology`.

    Raises
    ------
    TrafficError
        Unknown name or unsuitable network.
    UserCodeError
        A mistake in a user's file.
    """
    if pattern.endswith(".py"):
        from hopforge.sim.traffic.guard import user_traffic  # noqa: PLC0415 - patterns of ours need none

        return user_traffic(topology, folder / pattern, options, generator)
    if pattern not in PATTERNS:
        raise TrafficError(
            f"traffic.pattern must be one of {', '.join(sorted(PATTERNS))} or file (traffic.file: FILE.py), "
            f"not {pattern}"
        )
    return PATTERNS[pattern](topology, options, generator)
