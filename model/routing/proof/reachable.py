"""All states that packets can reach from their sources, as far as the routing relation can tell them apart.

A *class* is such a state: a router, where the packet came in (if the relation looks at it), and the fields of the
packet that it reads. Every class is evaluated with every number that it may draw. Classes of packets with the same
destination (and source and length, where those are read) are explored together; that is a *group*. What is kept of all
groups is small: which channel may wait for which (`Exploration.depends`). A channel is one output VC.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import PROGRAM, SCRIPT, TABLE_LENGTH
from hopforge.model.network.core.layouts import PACKET
from hopforge.model.network.core.state import NetState
from hopforge.model.network.core.user_code import refuse_mistake
from hopforge.model.progress import tell
from hopforge.model.routing.contract.fields_read import FieldsRead
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.routing.proof.reachable_kernel import (
    ANSWER,
    ANSWERS,
    CLASS,
    CLASSES,
    COLUMNS,
    DENSE,
    FULL,
    HOPS_CAP,
    HOPS_ROOM,
    IN_PORT,
    IN_VC,
    INFO,
    KEEP,
    LENGTH,
    LIMIT,
    LONG,
    MANY_STATES,
    MAX_BOUNDED,
    MAX_CLASSES,
    MAX_DRAWS,
    MAX_EVALUATIONS,
    MAX_KEPT,
    MOST,
    MOST_EVALUATIONS,
    MOST_WORK,
    NEXT,
    NO_ROOM,
    OUTCOMES,
    PAUSE,
    PAUSED,
    PHASE_ROOM,
    PHASES,
    PORT_ROOM,
    PROOF_LIMIT_S,
    READS_HOPS,
    READS_PHASE,
    READS_PORT,
    READS_SRC,
    READS_USER0,
    READS_USER1,
    READS_VC,
    READS_VIA,
    RESENDS,
    ROUTER,
    SRC,
    STEPS,
    STRETCHED,
    VALUE,
    VC_ROOM,
    WALKED,
    WORK,
    settle,
    walk,
)

#: channels whose dependencies are listed at a time
BLOCK = 1 << 16
#: work between two looks at how far an exploration is, and destinations after which what is left is reckoned
LOOK, SURE = 2_000_000_000, 8
#: one that has done this share of its work, and would take so many times what it may, ends at once: destinations differ
TRIED, BEYOND = 0.2, 4


class StoppedError(Exception):
    """An exploration that is made again did not come to its end.

    Attributes
    ----------
    stop : Stop
        Why.
    """

    def __init__(self, stop: "Stop") -> None:
        super().__init__("the exploration did not end")
        self.stop = stop


@dataclass
class Stop:
    """Why an exploration did not come to its end.

    Attributes
    ----------
    code : int
        `NO_OUTPUT`, `BAD_PORT`, `BAD_PHASE`, `BAD_COUNT`, `MANY_DRAWS`, `MANY_STATES` or `LONG`.
    dst, src, length : int
        Of the packet; source and length where the relation reads them, else −1.
    router, port, vc : int
        Where it stands.
    value : int
        The port, phase or count; for `MANY_STATES` the most classes; for `LONG` seconds of all, −1: not known.
    """

    code: int
    dst: int
    src: int
    length: int
    router: int
    port: int
    vc: int
    value: int


class Exploration:
    """The states of packets in one network, explored for one or all destinations.

    Parameters
    ----------
    plan : RoutingPlan
        The routing.
    relation : jitted function
        Which of its relations to explore.
    state : NetState
        The network; what an evaluation changes in it is put back.
    reads : FieldsRead
        What `relation` looks at.
    destinations : list of int
        Hosts.
    lengths : ndarray, int64
        Lengths of packets in flits.
    resends : bool
        Whether another host than the source may send a packet again (failures during the run).
    seconds : float
        Most work, in about seconds of processor time; for more than `PROOF_LIMIT_S` more evaluations, too.
    """

    def __init__(
        self,
        plan: RoutingPlan,
        relation: Any,
        state: NetState,
        reads: FieldsRead,
        destinations: list[int],
        lengths: NDArray[np.int64],
        *,
        resends: bool = False,
        seconds: float = PROOF_LIMIT_S,
    ) -> None:
        self._relation, self._state = relation, state
        self._destinations = np.array(destinations, np.int64)
        record = state.record[0]
        self.channels = int(record["output_vcs"])
        self._words = (int(record["ports"] * record["vcs"]) + 63) // 64
        has = reads.state
        info = np.zeros(INFO, np.int64)
        info[READS_PORT], info[READS_VC] = reads.in_port, reads.in_vc
        for place, name in (
            (READS_HOPS, "hops"), (READS_PHASE, "phase"), (READS_VIA, "via"), (READS_USER0, "user0"),
            (READS_USER1, "user1"), (READS_SRC, "src"),
        ):  # fmt: skip
            info[place] = name in has
        info[HOPS_CAP] = 0
        if "hops" in has:
            info[HOPS_CAP] = np.iinfo(np.int32).max if reads.hops_cap is None else reads.hops_cap
        info[MOST_WORK] = int(seconds * 1e9)
        info[MOST_EVALUATIONS] = MAX_EVALUATIONS * max(1.0, seconds / PROOF_LIMIT_S)
        info[PHASES], info[RESENDS] = plan.phases, resends
        info[MOST] = max(plan.max_candidates, plan.every_candidates)
        bounded = not {"user0", "user1"} & has and ("hops" not in has or reads.hops_cap is not None)
        info[LIMIT] = MAX_BOUNDED if bounded else MAX_CLASSES
        info[PORT_ROOM] = int(record["ports"]) if reads.in_port else 1
        info[VC_ROOM] = int(record["vcs"]) if reads.in_vc else 1
        info[HOPS_ROOM], info[PHASE_ROOM] = info[HOPS_CAP] + 1, plan.phases if "phase" in has else 1
        places = int(record["routers"])
        for room in info[PORT_ROOM : PHASE_ROOM + 1].tolist():
            places *= room
        info[DENSE] = places <= MAX_KEPT and not {"via", "user0", "user1"} & has
        self._places = places if info[DENSE] else 0
        self._info = info
        self._lengths = lengths if "length" in has else np.ones(1, np.int64)
        self._names = has
        self.depends = np.zeros((self.channels, self._words), np.uint64)
        self._classes = np.zeros((0, COLUMNS), np.int32)
        self._wanted = np.zeros((0, self._words), np.uint64)
        self._outcomes, self._steps = np.zeros((0, 4), np.int32), np.zeros((0, 2), np.int32)
        self._slots, self._stamps = np.zeros(0, np.int32), np.zeros(0, np.int64)
        routers = int(record["routers"])
        self._kept = np.zeros((routers * ANSWERS, ANSWER), np.int64)
        self._masks = np.zeros((routers * ANSWERS + 1, self._words), np.uint64)  # the last: that of an evaluation
        self._whole = False
        self._grow(1 << 14, 1 << 16)

    def _grow(self, classes: int, steps: int) -> None:
        """Make room; what was entered stays."""
        for name, rows in (
            ("_classes", classes), ("_wanted", classes), ("_outcomes", steps), ("_steps", steps)
        ):  # fmt: skip
            old = getattr(self, name)
            new = np.zeros((rows, old.shape[1]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        slots = self._places or 2 << (classes - 1).bit_length()
        if slots > len(self._slots):
            self._slots, self._stamps = np.zeros(slots, np.int32), np.zeros(slots, np.int64)

    def walk(self, *, keep: bool = False) -> Stop | None:
        """Explore all destinations; what is found is kept, if wanted and if there is room. None: done."""
        for _ in self._batches(keep=keep):
            pass
        return self._stopped

    def _batches(self, *, keep: bool) -> Iterator[None]:
        """Explore the destinations in turn; stops where the room is full of what is kept, and at the end."""
        state, info = self._state, self._info
        self._stopped: Stop | None = None
        info[KEEP] = keep
        choices = np.zeros(3 + 2 * MAX_DRAWS, np.int64)
        choices[0] = MAX_DRAWS
        packet = np.zeros(1, PACKET)[0]
        info[CLASSES : STEPS + 1] = 0
        info[NEXT] = 0
        if len(self._destinations) * self._senders() > info[MOST_EVALUATIONS]:  # known beforehand
            self._stopped = Stop(MANY_STATES, -1, -1, -1, -1, -1, -1, int(info[LIMIT]))
            return
        saved = {key: state[key].copy() for key in ("router_rng", "memory", "table")}
        # answers stand at the beginning; all of it can be gigabytes
        answer = state["candidate"][: max(int(info[MOST]), int(state["max_candidates"]))]
        written = answer.copy()
        state.record["choices"] = choices.ctypes.data
        full, begun = False, int(info[WORK])
        try:
            code = NO_ROOM
            while code != WALKED:
                code = self._explore(packet, choices)
                if code == FULL:
                    full = True
                    yield
                    info[CLASSES : STEPS + 1] = 0
                elif code == PAUSED:
                    if self._look(begun):
                        self._stopped = self._stop(LONG, begun)
                        return
                elif code == NO_ROOM and len(self._classes) <= 2 * (MAX_BOUNDED + MAX_KEPT):
                    choices[1:] = 0
                    self._grow(2 * len(self._classes), 2 * len(self._steps))
                elif code != WALKED:
                    self._stopped = self._stop(MANY_STATES if code == NO_ROOM else code, begun)
                    return
            self._whole = keep and not full
            yield
        finally:
            state.record["choices"] = 0
            answer[:] = written
            for key, array in saved.items():
                state[key][:] = array

    def _look(self, begun: int) -> bool:
        """Say how far the exploration is that began at this work; True: it would take far more than there may be."""
        most, work = int(self._info[MOST_WORK]), int(self._info[WORK])
        left = self._left(begun)
        if left >= 0 and work - begun >= TRIED * most and work + left > BEYOND * most:
            return True
        seconds = f", about {left // 1_000_000_000 + 1} s left" if left >= 0 else ""
        done = f"{int(self._info[NEXT]):,} of {len(self._destinations):,} destinations"
        tell(f"proving freedom from deadlock: {done}{seconds}")
        return False

    def _left(self, begun: int) -> int:
        """Reckon the work for the destinations that are left from that for those done; −1: they are too few."""
        done = int(self._info[NEXT])
        return (int(self._info[WORK]) - begun) * (len(self._destinations) - done) // done if done >= SURE else -1

    def _senders(self) -> int:
        """Routers at which packets begin: for each destination the relation is evaluated there at least once."""
        host, record = self._state["host"], self._state.record[0]
        vcs = host["input_vc"][(host["inject_mask"] | host["reply_mask"]) != 0]
        return len(np.unique(vcs // int(record["ports"] * record["vcs"])))

    def _explore(self, packet: Any, choices: NDArray[np.int64]) -> int:
        """Explore the destinations that are left; one of the codes above."""
        self._info[PAUSE] = self._info[WORK] + LOOK
        code = walk(
            self._relation, self._state.record[0], packet, self._info, choices, self._destinations, self._lengths,
            self._classes, self._slots, self._stamps, self._wanted, self._outcomes, self._steps, self._kept,
            self._masks, self.depends,
        )  # fmt: skip
        refuse_mistake(self._state.record[0])
        return int(code)

    def stuck_channels(self, *, stretched: bool) -> NDArray[np.uint8]:
        """Largest set of channels in which packets can stand that ask for channels of the set alone: uint8[channel].

        Only where a packet that asks for channels can be given any of them, and has one for itself: cut-through, or
        wormhole with release by credits (`stretched`: its flits may stand in several channels). An empty set proves
        that no deadlock exists. Duato's condition implies it: the last channel of his order would have an escape
        outside.

        Raises
        ------
        StoppedError
            All that packets can come upon does not fit into the room, and going through it again takes too long.
        """
        closed = np.ones(self.channels, np.uint8)
        self._info[STRETCHED] = stretched
        possible = np.zeros(0, np.uint8)
        while closed.any():
            still = np.zeros_like(closed)
            whole = self._whole
            for _ in (None,) if whole else self._batches(keep=True):
                if not whole or len(possible) != len(self._classes):
                    possible = np.ones(len(self._classes), np.uint8)
                settle(self._info, self._outcomes, self._steps, closed, still, possible, np.zeros_like(possible))
                self._info[WORK] += 2 * int(self._info[STEPS])
            if self._stopped is not None:
                raise StoppedError(self._stopped)
            if (still == closed).all():
                break
            closed = still
        return closed

    def _stop(self, code: int, begun: int) -> Stop:
        info = self._info
        if code == MANY_STATES:
            info[VALUE] = info[LIMIT]
        if code == LONG:
            left = self._left(begun)
            info[VALUE] = (info[WORK] + left) // 1_000_000_000 + 1 if left >= 0 else -1
        at = self._classes[info[CLASS]]
        came = self._steps[self._steps[:, 1] == info[CLASS], 0]
        target = int(self._state["output_vc"]["target"][came[0]]) if len(came) else 0
        vcs = int(self._state["vcs"])
        return Stop(
            code,
            int(self._destinations[info[NEXT]]),
            int(info[SRC]) if "src" in self._names else -1,
            int(info[LENGTH]) if "length" in self._names else -1,
            int(at[ROUTER]),
            int(at[IN_PORT]) if info[READS_PORT] else target // vcs % int(self._state["ports"]),
            int(at[IN_VC]) if info[READS_VC] else target % vcs,
            int(info[VALUE]),
        )

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Dependencies: channel, and the channel that a packet in it may ask for."""
        blocks = list(self.edge_blocks())
        none = np.zeros(0, np.int64)
        source, target = (np.concatenate([none, *(block[k] for block in blocks)]) for k in (0, 1))
        return source, target

    def edge_blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the dependencies as of `edges`, those of some channels at a time: they need much room."""
        record = self._state.record[0]
        per_router = int(record["ports"] * record["vcs"])
        for begin in range(0, self.channels, BLOCK):
            source, word = np.nonzero(self.depends[begin : begin + BLOCK])
            words = self.depends[begin : begin + BLOCK][source, word]
            edge, bit = np.nonzero((words[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1))
            source = source + begin
            target = self._state["output_vc"]["target"][source[edge]].astype(np.int64)
            yield source[edge], target // per_router * per_router + 64 * word[edge] + bit

    @property
    def whole(self) -> bool:
        """Whether all that the last walk found was kept."""
        return self._whole

    @property
    def classes(self) -> int:
        """States of packets that are kept."""
        return int(self._info[CLASSES])

    def kept_steps(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return what is kept of each step: answer of the relation, state of the packet, channel, state behind it."""
        answers = self._outcomes[: self._info[OUTCOMES]].astype(np.int64)
        steps = self._steps[: self._info[STEPS]].astype(np.int64)
        counts = answers[:, 2] - answers[:, 1]
        number = np.repeat(np.arange(len(answers)), counts)
        first = answers[:, 1] - (np.cumsum(counts) - counts)  # answers that are alike have the same steps
        steps = steps[np.arange(len(number)) + first[number]]
        return number, answers[number, 0], steps[:, 0], steps[:, 1]

    def answers_that_stay(self) -> NDArray[np.int64]:
        """Answers that are kept by which a packet cannot go to its host: their numbers."""
        return np.flatnonzero(self._outcomes[: self._info[OUTCOMES], 3] == 0)


def packet_lengths(state: NetState) -> NDArray[np.int64]:
    """Lengths of packets that the hosts of a network can create, int64[...], in flits."""
    lengths = _source_lengths(state)
    if not state["replies"]:
        return lengths
    made = [int(state["reply_flits"])] if state["reply_flits"] else state["reply_length"]
    return np.setdiff1d(np.union1d(lengths, made), [0])


def _source_lengths(state: NetState) -> NDArray[np.int64]:
    record = state.record[0]
    if int(record["source_kind"]) == SCRIPT:
        return np.unique(state["script_length"]).astype(np.int64)
    if int(record["traffic_classes"]):
        return np.unique(state["traffic_class"]["flits"]).astype(np.int64)
    if int(record["source_kind"]) == PROGRAM:
        return np.arange(1, int(record["full_flits"]) + 1)
    if int(record["length_kind"]) == TABLE_LENGTH:
        share = np.diff(state["length_table"], prepend=0.0)
        return np.flatnonzero(share > 0).astype(np.int64) + 1
    return np.arange(max(1, int(record["length_low"])), max(1, int(record["length_high"])) + 1)
