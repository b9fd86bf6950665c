"""The lookup engine cycle by cycle: the golden model that the hardware is compared with.

Written from docs/lookup-engine.md alone, in the order of that page and for clarity. `model.lookup.fast` is the same
machine as a numba kernel, for long runs.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple

from hopforge.model.lookup.csr import COUNTERS, MODES, Register, csr_map
from hopforge.model.lookup.params import MEMBER_BITS, LookupParams
from hopforge.model.numbers.crc import crc_matrix
from hopforge.model.numbers.skew_matrices import skew_matrices

_WORD = (1 << 32) - 1
_SRAM_WRITE_CYCLES = 256
_GRID_LOCAL, _GRID_PLUS, _GRID_MINUS = 0, 1, 2
_TREE_UP, _TREE_DOWN = 1, 2
_DRAGONFLY_TERMINAL, _DRAGONFLY_ROUTER, _DRAGONFLY_GROUP = 0, 1, 2
_KIND_BITS = 2


class LookupInputs(NamedTuple):
    """Inputs of one cycle; the ``tcam_`` ones are used with an external TCAM only."""

    req_valid: int = 0
    req_dst: int = 0
    req_tag: int = 0
    resp_ready: int = 0
    csr_addr: int = 0
    csr_we: int = 0
    csr_re: int = 0
    csr_wdata: int = 0
    link_change: int = 0
    tcam_req_ready: int = 0
    tcam_resp_valid: int = 0
    tcam_resp_id: int = 0
    tcam_resp_match: int = 0
    tcam_resp_output: int = 0


class LookupOutputs(NamedTuple):
    """Outputs of one cycle; what means nothing in this cycle is 0."""

    req_ready: int = 0
    resp_valid: int = 0
    resp_tag: int = 0
    resp_output: int = 0
    resp_match: int = 0
    resp_hit: int = 0
    csr_rdata: int = 0
    tcam_req_valid: int = 0
    tcam_req_id: int = 0
    tcam_req_dst: int = 0


class ActiveConfig(NamedTuple):
    """Registers that key computation reads; out-of-range values are already replaced by what they act as."""

    enable: int
    mode: int
    chunk_bits: int
    up_choice: int
    member_hash: int
    members: int
    own: int
    level: int
    digits: int
    radices: tuple[int, ...]


class KeyFunctions:
    """Key, link-aggregation member and set index of a destination, for every register value.

    Parameters
    ----------
    params : LookupParams
        The engine.
    """

    def __init__(self, params: LookupParams) -> None:
        self.params = params
        self._masks, self._constant = crc_matrix(params.crc, params.address_bits)
        self._skew = skew_matrices(params.address_bits, params.index_bits, params.ways) if params.skewed else ()

    def config(
        self,
        *,
        enable: int = 1,
        mode: int = 0,
        chunk_select: int = 0,
        up_choice: int = 0,
        member_hash: int = 0,
        members: int = 1,
        own: int = 0,
        level: int = 0,
        digits: int = 0,
        radices: tuple[int, ...] = (),
    ) -> ActiveConfig:
        """Return the configuration that the fields of the registers ask for, with what impossible values act as.

        Parameters
        ----------
        enable, mode, chunk_select, up_choice, member_hash, members, own, level, digits : int
            Fields of CTRL, MODE, OWN and LEVEL.
        radices : tuple of int
            RADIX registers.
        """
        params = self.params
        return ActiveConfig(
            enable=enable,
            mode=mode if mode < len(MODES) and MODES[mode] in params.functions else 0,
            chunk_bits=params.chunk_bits[chunk_select if chunk_select < len(params.chunk_bits) else 0],
            up_choice=up_choice,
            member_hash=member_hash,
            members=members if 1 <= members <= params.max_members else 1,
            own=own,
            level=level,
            digits=digits,
            radices=radices,
        )

    def crc(self, word: int) -> int:
        """Return the CRC of an address or payload."""
        return _parities(self._masks, word) ^ self._constant

    def member(self, config: ActiveConfig, dst: int) -> int:
        """Return the link-aggregation member of `dst`: CRC(dst) or dst itself, modulo the number of members."""
        hashed = dst if config.member_hash else self.crc(dst)
        return hashed % config.members

    def key(self, config: ActiveConfig, dst: int) -> int:
        """Return the cache key of `dst` (docs/architecture.md, "Cache keys")."""
        a = self.params.address_bits
        if config.mode == MODES.index("arbitrary"):
            return dst
        if config.mode == MODES.index("fat_tree"):
            kind, value = self._fat_tree(config, dst)
        elif config.mode == MODES.index("dragonfly"):
            kind, value = self._dragonfly(config, dst)
        else:
            kind, value = self._grid(config, dst)
        payload = self.member(config, dst)
        payload = payload << _KIND_BITS | kind
        payload = payload << (a - MEMBER_BITS - _KIND_BITS) | value & (1 << self.params.value_bits) - 1
        return config.mode << a | payload

    def rows(self, key: int) -> tuple[int, ...]:
        """Return the row of each way in which the line of `key` may lie."""
        payload = key & (1 << self.params.address_bits) - 1
        if self.params.skewed:
            return tuple(_parities(masks, payload) for masks in self._skew)
        return (self.crc(payload) & self.params.sets - 1,) * self.params.ways

    def _digit(self, config: ActiveConfig, address: int, index: int) -> int:
        return address >> config.chunk_bits * index & (1 << config.chunk_bits) - 1

    def _grid(self, config: ActiveConfig, dst: int) -> tuple[int, int]:
        used = self.params.digits(config.chunk_bits)
        for i in range(min(config.digits, used)):
            d, c = self._digit(config, dst, i), self._digit(config, config.own, i)
            if d != c:
                return (_GRID_PLUS if self._plus(config, d, c, config.radices[i]) else _GRID_MINUS), i
        return _GRID_LOCAL, self._digit(config, dst, config.digits) if 1 <= config.digits <= used else 0

    def _plus(self, config: ActiveConfig, d: int, c: int, k: int) -> bool:
        """Return whether the short way from digit c to digit d ≠ c is the one with increasing digits."""
        if config.mode == MODES.index("mesh"):
            return d > c
        if c > k // 2:  # the interval (c, c + ⌊k/2⌋] of the ring wraps around
            return d > c or d <= c - k // 2 - 1
        return c < d <= c + k // 2

    def _fat_tree(self, config: ActiveConfig, dst: int) -> tuple[int, int]:
        used = self.params.digits(config.chunk_bits)
        differ = [
            i
            for i in range(config.level, config.digits)
            if i + 1 < used and self._digit(config, dst, i + 1) != self._digit(config, config.own, i)
        ]
        if differ and config.up_choice:
            return _TREE_UP, self._digit(config, dst, max(differ))
        value = self._digit(config, dst, config.level) if config.level < used else 0
        return (_TREE_UP if differ else _TREE_DOWN), value

    def _dragonfly(self, config: ActiveConfig, dst: int) -> tuple[int, int]:
        group = dst >> 2 * config.chunk_bits
        if group != config.own >> 2 * config.chunk_bits:
            return _DRAGONFLY_GROUP, group
        if self._digit(config, dst, 1) != self._digit(config, config.own, 1):
            return _DRAGONFLY_ROUTER, self._digit(config, dst, 1)
        return _DRAGONFLY_TERMINAL, self._digit(config, dst, 0)


def _parities(masks: Sequence[int], word: int) -> int:
    """Return the number whose bit i is the parity of ``word & masks[i]``."""
    return sum(((word & int(mask)).bit_count() & 1) << bit for bit, mask in enumerate(masks))


@dataclass
class _Line:
    valid: bool = False
    tag: int = 0
    output: int = 0
    epoch: int = 0


class _Kind(Enum):
    LOOKUP = auto()
    FILL = auto()
    INVALIDATE = auto()
    SCRUB = auto()


@dataclass
class _Operation:
    kind: _Kind
    fresh: bool = True
    key: int = 0
    dst: int = 0
    tag: int = 0
    mshr: int = 0
    row: int = 0


class _State(Enum):
    FREE = auto()
    WAIT_ISSUE = auto()
    ISSUED = auto()
    WAIT_PRIMARY = auto()
    DONE = auto()
    INJECTED = auto()


class TcamResult(NamedTuple):
    """Answer of the TCAM; without a match the output is 0."""

    match: int = 0
    output: int = 0


@dataclass
class _Mshr:
    state: _State = _State.FREE
    stale: bool = False
    primary: int = 0
    fresh: bool = False
    key: int = 0
    dst: int = 0
    tag: int = 0
    result: TcamResult = field(default_factory=TcamResult)


class _Response(NamedTuple):
    tag: int
    output: int
    match: int
    hit: int


class _Replacement:
    """Victims of one policy; the page's section "Replacement"."""

    def __init__(self, params: LookupParams) -> None:
        self._policy = params.policy
        self._ways = params.ways
        self._order = [list(range(params.ways)) for _ in range(params.sets)]  # LRU: the oldest first
        self._nodes = [[0] * params.ways for _ in range(params.sets)]  # PLRU: node n has children 2n and 2n + 1
        self._pointer = [0] * params.sets  # FIFO
        self._lfsr = params.random_seed

    def touch(self, row: int, way: int) -> None:
        if self._policy == "lru":
            self._order[row].remove(way)
            self._order[row].append(way)
        elif self._policy == "plru":
            node = 1
            for level in reversed(range(self._ways.bit_length() - 1)):
                side = way >> level & 1
                self._nodes[row][node] = 1 - side
                node = 2 * node + side

    def victim(self, row: int) -> int:
        """Return the way that policy gives up; all ways of the row are live."""
        if self._policy == "lru":
            return self._order[row][0]
        if self._policy == "plru":
            node = 1
            while node < self._ways:
                node = 2 * node + self._nodes[row][node]
            return node - self._ways
        if self._policy == "fifo":
            return self._pointer[row]
        return self._lfsr * self._ways >> 16

    def filled(self, row: int, way: int, *, evicted: bool) -> None:
        if self._policy == "fifo" and self._pointer[row] == way:
            self._pointer[row] = (way + 1) % self._ways
        elif self._policy == "random" and evicted:
            taps = (self._lfsr >> 15) ^ (self._lfsr >> 14) ^ (self._lfsr >> 12) ^ (self._lfsr >> 3)
            self._lfsr = (self._lfsr << 1 & 0xFFFF) | taps & 1
        self.touch(row, way)


class TcamRow(NamedTuple):
    """A row of the TCAM: a bit set in `mask` must equal that of `value`; `lag` adds the member to the output."""

    valid: int
    value: int
    mask: int
    output: int
    lag: int


@dataclass
class _TcamLookup:
    id: int
    dst: int
    member: int
    due: int  # cycles until the answer
    result: TcamResult | None = None


class InsideTcam:
    """The TCAM inside the engine, flops or sram; once per cycle call `answer`, then `accept`, `commit`, then `edge`.

    Parameters
    ----------
    params : LookupParams
        The engine.

    Attributes
    ----------
    row_effective : bool
        Whether this is the first cycle in which a committed row takes part.
    """

    def __init__(self, params: LookupParams) -> None:
        self._params = params
        self._rows = [TcamRow(0, 0, 0, 0, 0)] * params.tcam_rows
        self._pipeline: deque[_TcamLookup] = deque()
        self._write: tuple[int, TcamRow] | None = None
        self._busy_cycles = 0
        self.row_effective = False

    @property
    def busy(self) -> bool:
        """Whether a row is being written: no lookup can be accepted."""
        return self._busy_cycles > 0

    def answer(self) -> tuple[int, TcamResult] | None:
        """Compare and count down at the start of a cycle; return the answer of this cycle."""
        for lookup in self._pipeline:
            lookup.due -= 1
            if lookup.result is None:
                lookup.result = self._match(lookup)
        if self._pipeline and self._pipeline[0].due == 0:
            lookup = self._pipeline.popleft()
            assert lookup.result is not None
            return lookup.id, lookup.result
        return None

    def accept(self, mshr: int, dst: int, member: int) -> None:
        """Take the lookup of `dst` for an MSHR."""
        lookup = _TcamLookup(mshr, dst, member, self._params.tcam_latency_cycles)
        compares_later = self._params.tcam_kind == "flops" and self._params.tcam_latency_cycles > 1
        if not compares_later:
            lookup.result = self._match(lookup)
        self._pipeline.append(lookup)

    def commit(self, row: int, content: TcamRow) -> bool:
        """Begin to write a row; return whether that was an overrun."""
        if row >= self._params.tcam_rows:
            return False
        if self.busy:
            return True
        self._write = row, content
        return False

    def edge(self) -> None:
        """End the cycle."""
        self.row_effective = False
        if self._params.tcam_kind == "sram":
            if self._busy_cycles:
                self._busy_cycles -= 1
                if not self._busy_cycles:
                    self._take_effect()
            elif self._write:
                self._busy_cycles = _SRAM_WRITE_CYCLES
        elif self._write:
            self._take_effect()

    def _take_effect(self) -> None:
        assert self._write is not None
        row, content = self._write
        self._rows[row] = content
        self._write = None
        self.row_effective = True

    def _match(self, lookup: _TcamLookup) -> TcamResult:
        for row in self._rows:
            if row.valid and (lookup.dst ^ row.value) & row.mask == 0:
                output = row.output + (lookup.member if row.lag else 0)
                return TcamResult(1, output & (1 << self._params.output_bits) - 1)
        return TcamResult(0, 0)


@dataclass
class _CycleEvents:
    """What happened in one cycle, for the registers that change at its end."""

    counts: dict[str, int] = field(default_factory=lambda: {name: 0 for name, _ in COUNTERS})
    scrub_done: bool = False
    response: _Response | None = None
    completed: _Operation | None = None
    allocated: tuple[int, _Mshr] | None = None
    freed: int | None = None

    def count(self, name: str) -> None:
        self.counts[name] += 1


class LookupEngine:
    """The lookup engine of docs/lookup-engine.md, one cycle per `step`.

    Parameters
    ----------
    params : LookupParams
        What the engine is built with.

    Attributes
    ----------
    counters : dict
        Value of every counter (`model.lookup.csr.COUNTERS`) at the start of the next cycle.

    Examples
    --------
    >>> engine = LookupEngine(LookupParams(tcam_latency_cycles=1))
    >>> engine.step(LookupInputs(req_valid=1, req_dst=5, req_tag=7, resp_ready=1)).req_ready
    1
    >>> answers = [engine.step(LookupInputs(resp_ready=1)) for _ in range(12)]
    >>> [(cycle, answer.resp_tag, answer.resp_match) for cycle, answer in enumerate(answers, 1) if answer.resp_valid]
    [(7, 7, 0)]
    """

    def __init__(self, params: LookupParams) -> None:
        self.params = params
        self.keys = KeyFunctions(params)
        self._map = csr_map(params)
        self._depth = params.pipeline_depth
        self.reset()

    def reset(self) -> None:
        """Bring every register and memory into the state after reset."""
        params = self.params
        self._shadow = {register.name: register.reset & register.write_mask for register in self._map}
        self._active = self._from_shadow()
        self._flush_request = False
        self._hold = False
        self._pending = False
        self._epoch = 0
        self._debt = 0
        self._scrub_active = False
        self._scrub_row = 0
        self._flush_wait = False
        self._invalidate_pending = False
        self._invalidate_busy = False
        self._invalidate_dst = 0
        self._a: list[_Operation | None] = [None] * max(0, self._depth - 2)  # the oldest last
        self._c: _Operation | None = None
        self._out: _Response | None = None
        self._lines = [[_Line() for _ in range(params.ways)] for _ in range(params.sets)]
        self._replacement = _Replacement(params)
        self._mshrs = [_Mshr() for _ in range(params.mshrs)]
        self._issue_pointer = 0
        self._fill_pointer = 0
        self._tcam = InsideTcam(params)
        self._overrun = False
        self._rdata = 0
        self.counters = {name: 0 for name, _ in COUNTERS}

    @property
    def idle(self) -> bool:
        """Whether no lookup is anywhere in the engine and nothing is going on in the background."""
        empty = self._c is None and self._out is None and not any(self._a)
        quiet = not (self._scrub_active or self._flush_wait or self._flush_request or self._invalidate_busy)
        return empty and quiet and not self._tcam.busy and all(m.state is _State.FREE for m in self._mshrs)

    def step(self, inputs: LookupInputs) -> LookupOutputs:
        """Return the outputs of this cycle and go on to the next.

        Parameters
        ----------
        inputs : LookupInputs
            Inputs of this cycle.

        Returns
        -------
        LookupOutputs
            Outputs of this cycle (``req_ready`` depends on ``resp_ready`` of the same cycle).
        """
        events = _CycleEvents()
        read_data = self._read(inputs.csr_addr)
        internal = self.params.tcam_kind != "external"
        answer = self._tcam.answer() if internal else _external_answer(inputs)
        request = self._flush_request or bool(self._tcam.row_effective and self._shadow["CTRL"])
        go, deferred = self._flush_decision(request)
        offer = self._offer()
        tcam_ready = (not self._tcam.busy) if internal else bool(inputs.tcam_req_ready)

        out_free = self._out is None or bool(inputs.resp_ready)
        chosen, req_ready = self._choose(inputs, out_free)
        outputs = self._outputs(req_ready, offer if not internal else None)

        # C, seen from the registers at the start of the cycle
        operation = chosen if self._depth == 1 else self._c
        if operation is not None and (out_free or operation.kind in {_Kind.INVALIDATE, _Kind.SCRUB}):
            self._complete(operation, answer, events)

        mshrs = self._next_mshrs(events, answer, offer, tcam_ready, chosen)
        self._move(inputs, chosen, req_ready=req_ready, out_free=out_free, events=events)
        self._mshrs = mshrs
        self._scrubber(events, go=go, deferred=deferred)
        if request or go:
            self._flush_event()
        if go:
            events.count("flushes")
        if offer is not None:
            self._issue_pointer = (offer + 1) % self.params.mshrs if tcam_ready else offer
            if tcam_ready and internal:
                dst = self._mshrs[offer].dst
                self._tcam.accept(offer, dst, self.keys.member(self._active, dst))
        self._registers(inputs, events, read_data)
        return outputs

    # ---- decisions from the registers at the start of the cycle

    def _flush_decision(self, request: bool) -> tuple[bool, bool]:
        """Return (go, deferred)."""
        most = (1 << self.params.epoch_bits) - 1
        if self._flush_wait:
            return self._debt == 0, False
        return request and self._debt < most, request and self._debt == most

    def _offer(self) -> int | None:
        """Return the MSHR that is offered to the TCAM."""
        if self._hold:
            return None
        return self._round_robin(_State.WAIT_ISSUE, self._issue_pointer)

    def _round_robin(self, state: _State, pointer: int) -> int | None:
        """Return the first MSHR in `state` at or after `pointer`."""
        count = self.params.mshrs
        for index in (*range(pointer, count), *range(pointer)):
            if self._mshrs[index].state is state:
                return index
        return None

    def _choose(self, inputs: LookupInputs, out_free: bool) -> tuple[_Operation | None, bool]:
        """Return (operation that B takes, req_ready)."""
        c_goes = self._c is not None and (out_free or self._c.kind in {_Kind.INVALIDATE, _Kind.SCRUB})
        c_free = self._c is None or c_goes
        free = sum(mshr.state is _State.FREE for mshr in self._mshrs)
        room = free > (self._c is not None and self._c.kind is _Kind.LOOKUP)
        may_scrub = self._scrub_active and not (self._c is not None and self._c.kind is _Kind.SCRUB)
        fill = self._round_robin(_State.DONE, self._fill_pointer)

        chosen: _Operation | None = None
        ready = False  # D ≤ 2 only
        if not c_free:
            pass
        elif self._flush_wait and may_scrub:
            chosen = self._scrub()
        elif fill is not None:
            mshr = self._mshrs[fill]
            chosen = _Operation(_Kind.FILL, mshr.fresh, mshr.key, mshr.dst, mshr.tag, fill)
        elif self._depth >= 3:
            last = self._a[-1]
            if last is not None and (last.kind is _Kind.INVALIDATE or room):
                chosen = last
        elif self._invalidate_pending:
            chosen = self._invalidate()
        else:
            ready = room and (out_free or self._depth == 2)
            if inputs.req_valid and room:
                chosen = self._lookup(inputs)
        if c_free and chosen is None and may_scrub:
            chosen = self._scrub()

        if self._depth >= 3:
            ready = not self._invalidate_pending and self._a_free(chosen)
        return chosen, ready

    def _a_free(self, chosen: _Operation | None) -> bool:
        """Return whether the first register of stage A is empty or moves (D ≥ 3)."""
        free = self._a[-1] is None or chosen is self._a[-1]
        for operation in reversed(self._a[:-1]):
            free = operation is None or free
        return free

    def _lookup(self, inputs: LookupInputs) -> _Operation:
        key = self.keys.key(self._active, inputs.req_dst)
        return _Operation(_Kind.LOOKUP, key=key, dst=inputs.req_dst, tag=inputs.req_tag)

    def _invalidate(self) -> _Operation:
        return _Operation(_Kind.INVALIDATE, key=self.keys.key(self._active, self._invalidate_dst))

    def _scrub(self) -> _Operation:
        return _Operation(_Kind.SCRUB, row=self._scrub_row)

    def _outputs(self, req_ready: bool, offer: int | None) -> LookupOutputs:
        outputs = LookupOutputs(req_ready=int(req_ready), csr_rdata=self._rdata)
        if self._out is not None:
            out = self._out
            outputs = outputs._replace(
                resp_valid=1, resp_tag=out.tag, resp_output=out.output, resp_match=out.match, resp_hit=out.hit
            )
        if offer is not None:
            outputs = outputs._replace(tcam_req_valid=1, tcam_req_id=offer, tcam_req_dst=self._mshrs[offer].dst)
        return outputs

    # ---- stage C

    def _complete(self, operation: _Operation, answer: tuple[int, TcamResult] | None, events: _CycleEvents) -> None:
        """Carry out what C does; MSHRs are only looked at, their changes go to `events`."""
        events.completed = operation
        rows = self.keys.rows(operation.key)
        if operation.kind is _Kind.LOOKUP:
            self._complete_lookup(operation, rows, answer, events)
        elif operation.kind is _Kind.FILL:
            self._complete_fill(operation, rows, events)
        elif operation.kind is _Kind.INVALIDATE:
            events.count("invalidations")
            for way, row in enumerate(rows):
                line = self._lines[row][way]
                if self._live(line) and line.tag == operation.key:
                    line.valid = False
        elif operation.fresh:
            for line in self._lines[operation.row]:
                if not self._live(line):
                    line.valid = False
            events.scrub_done = True

    def _usable(self, operation: _Operation) -> bool:
        return bool(self._active.enable) and not self._flush_wait and operation.fresh

    def _live(self, line: _Line) -> bool:
        return line.valid and line.epoch == self._epoch

    def _find(self, rows: tuple[int, ...], key: int) -> int | None:
        """Return the way of the live line with `key`."""
        for way, row in enumerate(rows):
            line = self._lines[row][way]
            if self._live(line) and line.tag == key:
                return way
        return None

    def _complete_lookup(
        self, operation: _Operation, rows: tuple[int, ...], answer: tuple[int, TcamResult] | None, events: _CycleEvents
    ) -> None:
        events.count("lookups")
        way = self._find(rows, operation.key) if self._usable(operation) else None
        if way is not None:
            line = self._lines[rows[way]][way]
            events.response = _Response(operation.tag, line.output, 1, 1)
            events.count("hits")
            self._replacement.touch(rows[way], way)
            return
        slot = next(index for index, mshr in enumerate(self._mshrs) if mshr.state is _State.FREE)
        entry = _Mshr(
            _State.WAIT_ISSUE, fresh=operation.fresh, key=operation.key, dst=operation.dst, tag=operation.tag
        )
        primary = self._mergeable(operation) if self._usable(operation) else None
        if primary is None:
            events.count("misses")
        else:
            events.count("merges")
            other = self._mshrs[primary]
            answered = other.state is _State.ISSUED and not other.stale and answer is not None and answer[0] == primary
            if other.state in {_State.DONE, _State.INJECTED}:
                entry = replace(entry, state=_State.DONE, result=other.result)
            elif answered:
                assert answer is not None
                entry = replace(entry, state=_State.DONE, result=answer[1])
            else:
                entry = replace(entry, state=_State.WAIT_PRIMARY, primary=primary)
        events.allocated = slot, entry

    def _mergeable(self, operation: _Operation) -> int | None:
        for index, mshr in enumerate(self._mshrs):
            waits_itself = mshr.state not in {_State.FREE, _State.WAIT_PRIMARY}
            if waits_itself and mshr.fresh and mshr.key == operation.key:
                return index
        return None

    def _complete_fill(self, operation: _Operation, rows: tuple[int, ...], events: _CycleEvents) -> None:
        mshr = self._mshrs[operation.mshr]
        if self._depth > 1 and mshr.state is not _State.INJECTED:
            return  # killed
        events.response = _Response(operation.tag, mshr.result.output, mshr.result.match, 0)
        events.freed = operation.mshr
        if not mshr.result.match:
            events.count("drops")
            return
        if not self._usable(operation):
            return
        way = self._find(rows, operation.key)
        if way is not None:
            self._replacement.touch(rows[way], way)
            return
        dead = [way for way, row in enumerate(rows) if not self._live(self._lines[row][way])]
        # with skewed association the policy is random, which does not look at the row
        way = dead[0] if dead else self._replacement.victim(rows[0])
        self._lines[rows[way]][way] = _Line(True, operation.key, mshr.result.output, self._epoch)
        self._replacement.filled(rows[way], way, evicted=not dead)
        events.count("fills")
        if not dead:
            events.count("evictions")

    # ---- registers at the end of the cycle

    def _next_mshrs(
        self,
        events: _CycleEvents,
        answer: tuple[int, TcamResult] | None,
        offer: int | None,
        tcam_ready: bool,
        chosen: _Operation | None,
    ) -> list[_Mshr]:
        """Return the MSHRs at the end of the cycle, without the effect of a flush."""
        old = self._mshrs
        new = [replace(mshr) for mshr in old]
        if events.allocated is not None:
            slot, entry = events.allocated
            new[slot] = entry
        if events.freed is not None:
            new[events.freed].state = _State.FREE
        if offer is not None and tcam_ready:
            new[offer].state, new[offer].stale = _State.ISSUED, False
        if self._depth > 1 and chosen is not None and chosen.kind is _Kind.FILL:
            new[chosen.mshr].state = _State.INJECTED

        invalidated = self._invalidated(events)
        for index in invalidated:
            if old[index].state is _State.ISSUED:
                new[index].stale = True
            else:
                new[index].state = _State.WAIT_ISSUE
        if answer is not None:
            index, result = answer
            assert old[index].state is _State.ISSUED, f"answer for MSHR {index}, which is {old[index].state.name}"
            if old[index].stale:
                events.count("retries")
            if old[index].stale or index in invalidated:
                new[index].state, new[index].stale = _State.WAIT_ISSUE, False
            else:
                for mshr in (new[index], *(m for m in new if m.state is _State.WAIT_PRIMARY and m.primary == index)):
                    mshr.state, mshr.result = _State.DONE, result
        return new

    def _invalidated(self, events: _CycleEvents) -> list[int]:
        """Return the MSHRs whose answer an INVALIDATE at C makes worthless."""
        operation = events.completed
        if operation is None or operation.kind is not _Kind.INVALIDATE:
            return []
        answered = {_State.ISSUED, _State.DONE, _State.INJECTED}
        return [
            index
            for index, mshr in enumerate(self._mshrs)
            if mshr.state in answered and mshr.fresh and mshr.key == operation.key
        ]

    def _move(
        self, inputs: LookupInputs, chosen: _Operation | None, *, req_ready: bool, out_free: bool, events: _CycleEvents
    ) -> None:
        """Move operations and the response on by one stage."""
        if out_free:
            self._out = events.response
        taken = events.completed if self._depth == 1 else chosen
        if taken is not None and taken.kind is _Kind.FILL:
            self._fill_pointer = (taken.mshr + 1) % self.params.mshrs
        if self._depth > 1:
            if self._c is events.completed:
                self._c = None
            if chosen is not None:
                self._c = chosen
        if self._depth < 3:
            if taken is not None and taken.kind is _Kind.INVALIDATE:
                self._invalidate_pending = False
        else:
            self._move_a(inputs, chosen, req_ready)

    def _move_a(self, inputs: LookupInputs, chosen: _Operation | None, req_ready: bool) -> None:
        enters: _Operation | None = None
        if self._invalidate_pending:
            if self._a_free(chosen):
                enters = self._invalidate()
                self._invalidate_pending = False
        elif req_ready and inputs.req_valid:
            enters = self._lookup(inputs)
        if chosen is self._a[-1]:
            self._a[-1] = None
        for stage in reversed(range(1, len(self._a))):
            if self._a[stage] is None:
                self._a[stage], self._a[stage - 1] = self._a[stage - 1], None
        if enters is not None:
            assert self._a[0] is None
            self._a[0] = enters

    def _scrubber(self, events: _CycleEvents, *, go: bool, deferred: bool) -> None:
        if events.scrub_done:
            self._scrub_row = (self._scrub_row + 1) % self.params.sets
            if self._scrub_row == 0 and not (go or deferred):
                self._scrub_active = False
                self._debt = 0
        if go:
            self._epoch = (self._epoch + 1) % (1 << self.params.epoch_bits)
            self._debt += 1
            self._scrub_active = True
            self._scrub_row = 0
            self._flush_wait = False
        elif deferred:
            self._flush_wait = True
            self._scrub_row = 0

    def _flush_event(self) -> None:
        for mshr in self._mshrs:
            mshr.fresh = False
            if mshr.state is _State.ISSUED:
                mshr.stale = True
            elif mshr.state is not _State.FREE:
                mshr.state = _State.WAIT_ISSUE
        for operation in (*self._a, self._c):
            if operation is not None:
                operation.fresh = False

    # ---- registers of the CSR bus

    def _from_shadow(self) -> ActiveConfig:
        """Return the configuration that the shadow registers ask for."""
        return self.keys.config(
            enable=self._shadow["CTRL"],
            own=self._wide("OWN"),
            radices=tuple(self._shadow[f"RADIX{index}"] for index in range(self.params.radices)),
            **self._map["MODE"].decode(self._shadow["MODE"]),
            **self._map["LEVEL"].decode(self._shadow["LEVEL"]),
        )

    def _wide(self, name: str) -> int:
        return self._shadow[f"{name}_LO"] | self._shadow.get(f"{name}_HI", 0) << 32

    def _read(self, address: int) -> int:
        """Return what the bus reads at `address` in this cycle."""
        register = self._map.by_address.get(address)
        if register is None:
            return 0
        if register.name == "STATUS":
            return register.encode(
                pending=self._pending, scrub_active=self._scrub_active, flush_wait=self._flush_wait,
                tcam_busy=self._tcam.busy, invalidate_busy=self._invalidate_busy, tcam_overrun=self._overrun,
                hold=self._hold, epoch=self._epoch,
            )  # fmt: skip
        if register.name.startswith("COUNT_"):
            return self.counters[register.name.removeprefix("COUNT_").lower()]
        return register.reset & ~register.write_mask | self._shadow[register.name]

    def _registers(self, inputs: LookupInputs, events: _CycleEvents, read_data: int) -> None:
        """Take the CSR bus and `link_change` of this cycle."""
        register = self._map.by_address.get(inputs.csr_addr)
        if inputs.csr_re:
            self._rdata = read_data
            if register is not None and register.name == "STATUS":
                self._overrun = False
        for name, count in events.counts.items():
            self.counters[name] = (self.counters[name] + count) & _WORD
        self._active = self._from_shadow()
        self._flush_request = False
        if inputs.csr_we and register is not None:
            self._write(register, inputs.csr_wdata)
        if inputs.link_change:
            self._topology_change()
        if events.completed is not None and events.completed.kind is _Kind.INVALIDATE:
            self._invalidate_busy = False  # after the write, which this cycle still ignores
        self._tcam.edge()

    def _write(self, register: Register, data: int) -> None:
        name = register.name
        if name == "CTRL":
            self._write_ctrl(register.decode(data))
            return
        self._shadow[name] = data & register.write_mask
        if name in {"MODE", "LEVEL", "OWN_LO", "OWN_HI"} or name.startswith("RADIX"):
            self._flush_request = True
        elif name == "INVALIDATE_LO" and not self._invalidate_busy:
            self._invalidate_busy = self._invalidate_pending = True
            self._invalidate_dst = register.decode(data)["value"] | self._shadow.get("INVALIDATE_HI", 0) << 32
        elif name == "TCAM_WRITE":
            fields = register.decode(data)
            row = TcamRow(
                fields["valid"], self._wide("TCAM_VALUE"), self._wide("TCAM_MASK"), self._wide("TCAM_OUTPUT"),
                fields["lag"],
            )  # fmt: skip
            if self._tcam.commit(fields["row"], row):
                self._overrun = True

    def _write_ctrl(self, fields: dict[str, int]) -> None:
        if fields["clear_counters"]:
            self.counters = {name: 0 for name in self.counters}
        if fields["enable"]:
            self._hold = self._pending = False
            self._flush_request |= not self._shadow["CTRL"]
        self._shadow["CTRL"] = fields["enable"]
        self._flush_request |= bool(fields["flush"])
        if fields["topology_change"]:
            self._topology_change()

    def _topology_change(self) -> None:
        self._flush_request = True
        self._hold = self._pending = True
        self._shadow["CTRL"] = 0
        mode = self._map["MODE"].field("mode")
        self._shadow["MODE"] = mode.insert(MODES.index("arbitrary"), self._shadow["MODE"])


def _external_answer(inputs: LookupInputs) -> tuple[int, TcamResult] | None:
    if not inputs.tcam_resp_valid:
        return None
    # the definition: without a match the output is 0
    output = inputs.tcam_resp_output if inputs.tcam_resp_match else 0
    return inputs.tcam_resp_id, TcamResult(inputs.tcam_resp_match, output)
