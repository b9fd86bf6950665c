"""Delay lines between two calls of the kernel: what is under way, taken out or put in."""

import numpy as np
from numpy.typing import NDArray

from hopforge.sim.queued.build import QueuedState

Numbers = NDArray[np.int64]


def line_contents(state: QueuedState, name: str, number: int) -> Numbers:
    """Entries of a delay line, what comes out next first."""
    line = state.queues[name][number]
    assert line["waiting"] == 0, "the inbox of a line is empty between two calls"
    places = np.arange(int(line["first"]), int(line["last"])) & int(line["mask"])
    return state.lines[name, number]["entries"][places]


def keep_entries(state: QueuedState, name: str, number: int, kept: NDArray[np.bool_]) -> None:
    """Take those of `line_contents` out of a line without notes that are not `kept`."""
    line, arrays = state.queues[name][number], state.lines[name, number]
    assert "notes" not in arrays
    entries = line_contents(state, name, number)[kept]
    now = int(state["cycle"])
    slots = np.arange(now, now + int(line["delay"]) + 1) & int(line["count_mask"])
    slot_of = np.repeat(slots, arrays["counts"][slots])
    arrays["counts"][:] = 0
    np.add.at(arrays["counts"], slot_of[kept], 1)
    arrays["entries"][: len(entries)] = entries
    line["first"], line["last"] = 0, len(entries)


def put_entry(state: QueuedState, name: str, number: int, what: int) -> None:
    """Put an entry into a line that stays in its part, at the start of the cycle that comes next."""
    line, arrays = state.queues[name][number], state.lines[name, number]
    assert line["far"] == 0
    arrays["entries"][int(line["last"]) & int(line["mask"])] = what
    line["last"] += 1
    arrays["counts"][int(state["cycle"]) + int(line["delay"]) & int(line["count_mask"])] += 1
