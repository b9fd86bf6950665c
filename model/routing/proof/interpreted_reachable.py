"""The exploration for relations whose answers depend on queues or on what they learned."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.state import NetState
from hopforge.model.routing.contract.fields_read import FieldsRead
from hopforge.model.routing.contract.plan import RoutingPlan
from hopforge.model.routing.proof.every_answer import EveryAnswer
from hopforge.model.routing.proof.reachable import LOOK, Exploration
from hopforge.model.routing.proof.reachable_kernel import (
    BAD_PHASE,
    BAD_PORT,
    CLASS,
    CLASSES,
    EVALUATIONS,
    FULL,
    HOPS_CAP,
    KEEP,
    LENGTH,
    LONG,
    MANY_STATES,
    MAX_CLASSES,
    MAX_KEPT,
    MOST_EVALUATIONS,
    MOST_WORK,
    NEXT,
    NO_OUTPUT,
    OUTCOMES,
    PAUSE,
    PAUSED,
    PHASES,
    PROOF_LIMIT_S,
    READS_PHASE,
    READS_PORT,
    READS_SRC,
    READS_USER0,
    READS_USER1,
    READS_VC,
    READS_VIA,
    RESENDS,
    SRC,
    STEPS,
    VALUE,
    WALKED,
    WORK,
)

#: work of an evaluation and of a step, in the unit of `reachable_kernel.EVALUATION_WORK`
EVALUATION_WORK, STEP_WORK = 30_000, 4_000


class InterpretedExploration(Exploration):
    """The same for a relation whose answer depends on queues or on what it has learned: see `every_answer`.

    Raises
    ------
    NotCoveredError
        From `walk`: all answers cannot be found.
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
        super().__init__(plan, relation, state, reads, destinations, lengths, resends=resends, seconds=seconds)
        self._answers = EveryAnswer(relation, state, plan.table, plan.max_candidates)

    def _explore(self, packet: Any, choices: NDArray[np.int64]) -> int:
        info, host = self._info, self._state["host"]
        sources = np.flatnonzero(host["inject_mask"] | host["reply_mask"])
        info[PAUSE] = info[WORK] + LOOK
        while info[NEXT] < len(self._destinations):
            if info[WORK] > info[PAUSE]:
                return PAUSED
            if info[CLASSES] > MAX_KEPT:
                return FULL
            for src in sources.tolist() if info[READS_SRC] else [0]:
                starts = sources.tolist() if info[RESENDS] or not info[READS_SRC] else [src]
                for length in self._lengths.tolist():
                    info[SRC], info[LENGTH] = src, length
                    if not info[KEEP]:
                        info[CLASSES : STEPS + 1] = 0
                    code = self._explore_group(int(self._destinations[info[NEXT]]), src, length, starts)
                    if code != WALKED:
                        return code
            info[NEXT] += 1
        return WALKED

    def _key(self, n: int, hops: int, after: tuple[int, ...]) -> tuple[int, ...]:
        """Values of the class of a packet in input VC `n`."""
        info, record = self._info, self._state.record[0]
        port, vc = divmod(n, int(record["vcs"]))
        router, port = divmod(port, int(record["ports"]))
        reads = info[READS_PHASE], info[READS_VIA], info[READS_USER0], info[READS_USER1]
        values = (value if read else start for value, read, start in zip(after, reads, (0, -1, 0, 0), strict=True))
        port, vc = port * int(info[READS_PORT]), vc * int(info[READS_VC])
        return (router, port, vc, min(hops, int(info[HOPS_CAP])), *values)

    def _explore_group(self, dst: int, src: int, length: int, starts: list[int]) -> int:
        """As `_group`."""
        info, record, host = self._info, self._state.record[0], self._state["host"]
        ports, vcs, inputs = int(record["ports"]), int(record["vcs"]), int(record["input_vcs"])
        targets, depths = self._state["output_vc"]["target"], self._state["output_vc"]["depth"]
        base, begin = int(info[CLASSES]), int(info[STEPS])
        classes: dict[tuple[int, ...], int] = {}
        for h in starts:
            for v in range(vcs):
                if int(host["inject_mask"][h] | host["reply_mask"][h]) >> v & 1:
                    classes.setdefault(self._key(int(host["input_vc"][h]) + v, 0, (0, -1, 0, 0)), base + len(classes))
        queue, at = list(classes), 0
        while at < len(queue):
            key = queue[at]
            if base + len(queue) >= len(self._classes):
                self._grow(2 * len(self._classes), 2 * len(self._steps))
            self._classes[base + at], self._wanted[base + at] = key, 0
            info[CLASS] = base + at
            router, port, vc, hops, phase, via, user0, user1 = key
            fields = {
                "dst": dst, "src": src, "length": length, "hops": hops, "phase": phase, "via": via, "user0": user0,
                "user1": user1,
            }  # fmt: skip
            for found, after in sorted(self._answers(router, port, vc, fields)):
                info[EVALUATIONS] += 1
                info[WORK] += EVALUATION_WORK
                first_move, leaves, ways = int(info[STEPS]), 0, 0
                for o, mask, need in found:
                    info[VALUE] = o
                    if o >= ports:
                        return BAD_PORT
                    for w in range(vcs):
                        if not mask >> w & 1:
                            continue
                        m = (router * ports + o) * vcs + w
                        target = int(targets[m])
                        if target < 0:
                            return NO_OUTPUT
                        if need > int(depths[m]):
                            continue
                        ways += 1
                        if target >= inputs:
                            leaves = 1
                            continue
                        if info[READS_PHASE] and not 0 <= after[0] < info[PHASES]:
                            info[VALUE] = after[0]
                            return BAD_PHASE
                        following = self._key(target, hops + 1, after)
                        if following not in classes:
                            classes[following] = base + len(classes)
                            queue.append(following)
                        bit = o * vcs + w
                        self._wanted[base + at, bit >> 6] |= np.uint64(1 << (bit & 63))
                        if info[STEPS] >= len(self._steps) - 1:
                            self._grow(2 * len(self._classes), 2 * len(self._steps))
                        self._steps[info[STEPS]] = m, classes[following]
                        info[STEPS] += 1
                        info[WORK] += STEP_WORK
                if ways == 0:
                    return NO_OUTPUT
                if info[KEEP]:
                    if info[OUTCOMES] >= len(self._outcomes):
                        self._grow(2 * len(self._classes), 2 * len(self._steps))
                    self._outcomes[info[OUTCOMES]] = base + at, first_move, info[STEPS], leaves
                    info[OUTCOMES] += 1
            if info[EVALUATIONS] > info[MOST_EVALUATIONS] // 100 or len(queue) > MAX_CLASSES // 100:
                return MANY_STATES
            if info[WORK] > info[MOST_WORK]:
                return LONG
            at += 1
        steps = self._steps[begin : info[STEPS]]
        np.bitwise_or.at(self.depends, steps[:, 0], self._wanted[steps[:, 1]])
        info[CLASSES] = base + len(classes)
        return WALKED
