"""One run on several threads: the state is dealt out to the parts, simulated, and put together again.

Between two calls the state is what one thread would have left, but for the numbers of packet records: one thread can
go on with it, and so can other numbers of parts and threads.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.kernel.arena import gather
from hopforge.model.network.core.kinds import DEADLOCK, DONE, GROW
from hopforge.model.network.core.loads_ahead import CHUNK
from hopforge.model.network.core.net_record import ARRAYS, NET
from hopforge.model.network.core.state import NetState
from hopforge.model.network.threads.alone import shared_part
from hopforge.model.network.threads.barrier import CONTROL_PLACES, GO_ON, LOST, STOP, STOP_ASKED
from hopforge.model.network.threads.deal import Arrays, Mask, collect, deal, masks_of
from hopforge.model.network.threads.kernel import parts_kernel
from hopforge.model.network.threads.ranges import Ranges, divide
from hopforge.model.network.threads.records import CREW, PART

__all__ = ["Crew"]

#: counters of a part that add up
SUMS = (
    "flits_created", "flits_injected", "flits_ejected", "flits_dropped", "packets_created", "packets_ejected",
    "packets_dropped", "measured", "latency_sum", "network_latency_sum", "network_latency_squares", "hops_sum",
    "lost_hops", "flit_hops", "route_calls",
)  # fmt: skip
#: ... of which the largest counts
LARGEST = ("network_latency_max", "latency_max", "last_move")
#: above this, sums of squares in floating point depend on their order: one thread goes on
EXACT_SQUARES = 2.0**52
#: arrays that every thread has for itself: nothing in them outlasts a cycle, but for the histograms
SCRATCH = (
    "offered", "offers", "granted", "released", "request_vc", "request_port", "request_mask", "winner_stamp",
    "winner_rank", "winner_request", "asking_inputs", "asking_outputs", "requested", "chosen", "representative",
    "match_input", "match_output", "match_vc", "pair_order", "pair_request", "pair_output", "taken_inputs",
    "taken_outputs",
)  # fmt: skip
HISTOGRAMS = ("histogram", "network_histogram")
KINDS = ("flit", "credit")


class Crew:
    """Threads that simulate the parts of a network.

    Parameters
    ----------
    state : NetState
        Of a network that `model.network.threads.alone.why_alone` finds nothing against.
    parts : int
        1 to `ranges.most_parts`.
    threads : int
        1 to `parts`.
    run_alone : callable
        ``run_alone(route, pattern, cycles) -> code``: the same on one thread.

    Raises
    ------
    ValueError
        Other numbers of parts or threads.
    """

    def __init__(self, state: NetState, parts: int, threads: int, run_alone: Callable[[Any, Any, int], int]) -> None:
        if not 1 <= threads <= parts:
            raise ValueError(f"threads must be 1 to {parts} (parts), not {threads}")
        self._state, self._run_alone, self.threads = state, run_alone, threads
        self.ranges = divide(state, parts)
        self._masks = masks_of(state)
        self._control = np.zeros(CONTROL_PLACES, np.int64)
        self._records = np.zeros(parts, NET)
        self._scratch = [_scratch(state) for _ in range(threads - 1)]
        self._parts = [_part_arrays(state, self.ranges, number, self._masks) for number in range(parts)]
        self._mail = _mailboxes(self.ranges)
        self._part_of_host = np.repeat(np.arange(parts, dtype=np.int32), np.diff(self.ranges.hosts))
        self._part_records = self._described_parts()
        self._record = self._described_crew()
        self._pool = 0
        self._compiled()  # before a sweep starts its processes

    def _compiled(self) -> Any:
        """Return what a thread runs: compiled before threads ask for it at once."""
        return parts_kernel(self._state.record[0]).compiled

    def _described_parts(self) -> NDArray[Any]:
        ranges, records = self.ranges, np.zeros(self.ranges.parts, PART)
        span = int(self._state["ports"]) * int(self._state["vcs"])
        records["first"], records["end"] = ranges.routers[:-1], ranges.routers[1:]
        records["first_host"], records["end_host"] = ranges.hosts[:-1], ranges.hosts[1:]
        records["first_vc"], records["own_vcs"] = ranges.routers[:-1] * span, np.diff(ranges.routers) * span
        for name in ("base", "marks", "filled"):
            records[name] = [arrays[name].ctypes.data for arrays in self._parts]
        return records

    def _described_crew(self) -> NDArray[Any]:
        ranges, record = self.ranges, np.zeros(1, CREW)
        record["parts"], record["threads"], record["window"] = ranges.parts, self.threads, ranges.window
        record["span"] = int(self._state["ports"]) * int(self._state["vcs"])
        record["lanes"] = len(ranges.lane_time)
        addresses: Arrays = {
            "lane_time": ranges.lane_time, "lane_host": ranges.lane_host, "part_of": ranges.part_of,
            "part_of_host": self._part_of_host,
            "part": self._part_records, "net": self._records, "control": self._control, **self._mail,
        }  # fmt: skip
        for name, array in addresses.items():
            record[name] = array.ctypes.data
        record["flit_half"], record["credit_half"] = (len(self._mail[f"{kind}_mail"]) // 2 for kind in KINDS)
        return record

    def run(self, route: Any, pattern: Any, cycles: int) -> int:
        """Simulate up to `cycles` cycles; parameters and result are those of `model.network.kernel.run_cycles`."""
        state = self._state
        end = int(state["cycle"]) + cycles
        while (now := int(state["cycle"])) < end:
            # what came after the threads were chosen, as the log of events does
            if float(state["network_latency_squares"]) > EXACT_SQUARES or shared_part(state):
                return self._run_alone(route, pattern, end - now)
            if int(state["free_packets"]) < 2 * self.ranges.window * int(state["hosts"]):
                return GROW
            still = max(int(state["last_move"]), now - 1 if state.flits_in_flight == 0 else 0)
            self._slice(route, pattern, min(end, still + int(state["deadlock_cycles"]) + 2))
            late = int(state["cycle"]) - 1 - int(state["last_move"]) > int(state["deadlock_cycles"])
            if late and state.flits_in_flight != 0:
                return DEADLOCK
        return DONE

    def part_times(self, route: Any, pattern: Any, cycles: int) -> NDArray[np.int64]:
        """Simulate up to `cycles` cycles, fewer than to a deadlock, and return int64[window, part]: ns of each part."""
        begin, window = int(self._state["cycle"]), self.ranges.window
        times = np.zeros((-(-cycles // window), self.ranges.parts), np.int64)
        self._record["times"] = times.ctypes.data
        try:
            self._slice(route, pattern, begin + cycles)
        finally:
            self._record["times"] = 0
        return times[: (int(self._state["cycle"]) - begin) // window]

    def _slice(self, route: Any, pattern: Any, end: int) -> None:
        """Simulate up to cycle `end`, or until a part has few free packets; no deadlock may be noticed before."""
        kernel = self._compiled()
        self._begin(end)
        results: SimpleQueue[BaseException | None] = SimpleQueue()
        threads = [
            threading.Thread(
                target=self._work,
                args=(kernel, route, pattern, number, results),
                name=f"hopforge {number}",
                daemon=True,
            )
            for number in range(self.threads)
        ]
        found: list[BaseException | None] = []
        try:
            for thread in threads:
                thread.start()
            while len(found) < self.threads:
                found.append(results.get())
        except BaseException:  # a signal came: all end with their window; or a thread could not be started
            self._control[STOP] = STOP_ASKED
            started = sum(thread.ident is not None for thread in threads)
            self._control[LOST] |= started < self.threads
            while len(found) < started:
                found.append(results.get())
            if not self._control[LOST]:
                self._finish()
            raise
        for error in found:
            if error is not None:
                raise error
        self._finish()

    def _work(
        self, kernel: Any, route: Any, pattern: Any, number: int, results: "SimpleQueue[BaseException | None]"
    ) -> None:
        """Run thread `number`; if it fails nobody waits for it, and the main thread raises why."""
        try:
            kernel(route, pattern, self._record[0], number)
        except BaseException as error:
            self._control[LOST] = 1
            results.put(error)
        else:
            results.put(None)

    def _begin(self, end: int) -> None:
        """Deal out the state, to be simulated up to cycle `end`."""
        state, records = self._state, self._records
        if len(state["packet"]) != self._pool:
            self._pool = len(state["packet"])
            for arrays in self._parts:
                arrays["free_packet"] = np.empty(self._pool, np.int32)
        records[:] = state.record[0]
        for name in SUMS:
            records[name] = 0
        for number, arrays in enumerate(self._parts):
            for name in arrays.keys() & ARRAYS.keys():
                records[name][number] = arrays[name].ctypes.data
            records["event_capacity"][number] = len(arrays["flit_event"]) // len(arrays["flit_events"])
            for mask in self._masks:  # addressed by the numbers of the whole network
                records[mask.name][number] -= 8 * (mask.span(self.ranges, number)[0] >> 6)
        for thread, scratch in enumerate(self._scratch, 1):
            mine = slice(*(self.ranges.parts * each // self.threads for each in (thread, thread + 1)))
            for name, array in scratch.items():
                records[name][mine] = array.ctypes.data
        deal(state, self._record[0], self.ranges, self._parts, records, self._masks)
        self._record["begin"], self._record["end"] = state["cycle"], end
        self._control[:] = GO_ON
        for kind in KINDS:
            self._mail[f"{kind}_mailed"][:] = 0

    def _finish(self) -> None:
        """Put the state together again."""
        record, records = self._state.record, self._records
        collect(self._state, self._record[0], self.ranges, self._parts, records, self._masks)
        for name in SUMS:
            record[name] += records[name].sum()
        for name in LARGEST:
            record[name] = records[name].max()
        record["latency_min"] = records["latency_min"].min()
        for scratch in self._scratch:
            for name in HISTOGRAMS:
                self._state[name][:] += scratch[name]
                scratch[name][:] = 0


def _scratch(state: NetState) -> Arrays:
    """Arrays of one more thread."""
    names = [*SCRATCH, *HISTOGRAMS] + ([] if state["vc_lists"] else ["candidate"])
    found = gather({}, {name: (len(state[name]), ARRAYS[name]) for name in names})
    found["winner_stamp"][:] = -1
    return found


def _part_arrays(state: NetState, ranges: Ranges, number: int, masks: list[Mask]) -> Arrays:
    """Arrays of one part: twice the events that its ports and hosts can send in a cycle, as others may be there."""
    routers, hosts = (int(np.diff(of)[number]) for of in (ranges.routers, ranges.hosts))
    wheel, ports = int(state["wheel_mask"]) + 1, routers * int(state["ports"])
    events = {f"{kind}_event": wheel * 2 * (ports + hosts) for kind in ("flit", "credit", "ready")}
    counts = {f"{kind}_events": wheel for kind in ("flit", "credit", "ready")}
    others = {
        "heads_next": 2 * ports + routers + CHUNK + 1, "awake": hosts + 1, "bodies": CHUNK + 1,
        "to_hosts": 2 * (ports + hosts) + 1,
    }  # fmt: skip
    for mask in masks:
        first, end = mask.span(ranges, number)
        others[mask.name] = ((end + 63) >> 6) - (first >> 6)
    sizes = {name: (size, ARRAYS[name]) for name, size in (events | counts | others).items()}
    sizes |= {
        "base": (wheel, np.dtype(np.int32)),
        "marks": (wheel * len(ranges.lane_time), np.dtype(np.int32)),
        "filled": (ranges.parts, np.dtype(np.int64)),
    }
    return gather({}, sizes)


def _mailboxes(ranges: Ranges) -> Arrays:
    """Mailboxes between all parts: a link brings a flit, and takes back a credit, in every cycle of a window."""
    parts, lanes, window = ranges.parts, len(ranges.lane_time), ranges.window
    found: Arrays = {}
    for kind, links, counts in (("flit", ranges.links, window * lanes), ("credit", ranges.links.T, window)):
        sizes = (links * window).reshape(-1)
        found[f"{kind}_place"] = np.cumsum(sizes) - sizes
        found[f"{kind}_mail"] = np.zeros(2 * max(int(sizes.sum()), 1), np.int64 if kind == "flit" else np.int32)
        found[f"{kind}_mailed"] = np.zeros(2 * parts * parts * counts, np.int32)
    return found
