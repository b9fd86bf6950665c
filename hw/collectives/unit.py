"""A unit beside a router that combines words on their way up a tree and copies them on their way down."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.collectives.word_combiner import WordCombiner
from hopforge.hw.parts.response_queue import ResponseQueue
from hopforge.hw.parts.round_robin import RoundRobin, lowest_one, select
from hopforge.hw.parts.shared import shared
from hopforge.model.router.collective_params import OPERATIONS, PlaneParams

__all__ = ["CollectiveUnit", "plane_channel", "tree_signature"]

_MULTICAST = OPERATIONS.index("multicast")


def plane_channel(params: PlaneParams) -> wiring.Signature:
    """Return a port of a unit: flits and credits in both directions, a credit bit for each group."""
    return wiring.Signature(
        {
            "in_valid": In(1),
            "in_flit": In(params.flit_bits),
            "in_credit": Out(params.groups),
            "out_valid": Out(1),
            "out_flit": Out(params.flit_bits),
            "out_credit": In(params.groups),
        }
    )


def tree_signature(params: PlaneParams, ports: int) -> dict[str, wiring.Member]:
    """Return the ports through which software writes trees."""
    return {
        "set_valid": In(1),
        "set_group": In(params.group_bits),
        "set_children": In(ports),
        "set_parent": In(ports),
    }


class CollectiveUnit(wiring.Component):
    """Collective unit (docs/definitions/network-collectives.md).

    A flit that stands at a child's input in cycle x leaves towards the root in x + 4 at the earliest, one from the
    parent towards the children in x + 2; one combined word a cycle, one flit a cycle at each output. All outputs come
    from registers. Reset: empty, no trees.

    Parameters
    ----------
    params : PlaneParams
        Of the plane.
    ports : int
        Of the router beside it.

    Raises
    ------
    ValueError
        No ports.
    """

    port: Sequence[Any]
    set_valid: Signal
    set_group: Signal
    set_children: Signal
    set_parent: Signal

    def __init__(self, *, params: PlaneParams, ports: int):
        if ports < 1:
            raise ValueError(f"ports must be at least 1, not {ports}")
        self.params, self.ports = params, ports
        super().__init__({"port": Out(plane_channel(params)).array(ports)} | tree_signature(params, ports))

    def elaborate(self, platform: object) -> Module:
        """Build buffers, combining, places, outputs."""
        m = Module()
        p, groups, ports = self.params, range(self.params.groups), range(self.ports)
        self._trees(m)
        queues = [[self._queue(m, platform, f"held{port}_{g}", p.buffer_flits) for g in groups] for port in ports]
        places = [self._queue(m, platform, f"place{g}", 3) for g in groups]
        self.freed = [[Signal(name=f"freed{port}_{g}") for g in groups] for port in ports]
        for port in ports:
            channel = self.port[port]
            for g in groups:
                group = channel.in_flit[p.held_bits :]
                m.d.comb += [
                    queues[port][g].push.eq(channel.in_valid & (group == g)),
                    queues[port][g].word.eq(channel.in_flit[: p.held_bits]),
                    queues[port][g].ready.eq(self.freed[port][g]),
                ]
            m.d.sync += channel.in_credit.eq(Cat(self.freed[port]))
        taken, sources = self._take(m, queues, places)
        self._combine(m, taken, places)
        done = self._send(m, queues, places)
        for port in ports:
            for g in groups:
                m.d.comb += self.freed[port][g].eq(
                    sources[g][port] | (done[g] & self.parent[g][port] & queues[port][g].valid)
                )
        return m

    def _trees(self, m: Module) -> None:
        """Hold the tree of each group."""
        p, ports = self.params, self.ports
        groups = range(p.groups)
        self.children = [Signal(ports, name=f"children{g}") for g in groups]
        self.parent = [Signal(ports, name=f"parent{g}") for g in groups]
        self.root = [Signal(name=f"root{g}") for g in groups]
        self.written = [Signal(name=f"written{g}") for g in groups]
        for g in groups:
            m.d.comb += [
                self.written[g].eq(self.set_valid & (self.set_group == g)),
                self.root[g].eq(~self.parent[g].any()),
            ]
            with m.If(self.written[g]):
                m.d.sync += [self.children[g].eq(self.set_children), self.parent[g].eq(self.set_parent)]

    def _queue(self, m: Module, platform: object, name: str, places: int) -> ResponseQueue:
        bits = self.params.held_bits
        queue = ResponseQueue(places=places, width_bits=bits)
        m.submodules[name] = shared(queue, platform, places, bits)
        return queue

    def _field(self, flit: Value, name: str) -> Value:
        """Return a field of a flit without its group."""
        at = 0
        for field, bits in self.params.fields:
            if field == name:
                return flit[at : at + bits]
            at += bits
        raise AssertionError(name)

    def _take(
        self, m: Module, queues: list[list[ResponseQueue]], places: list[ResponseQueue]
    ) -> tuple["_Taken", list[Value]]:
        """Take the first words of one group into registers; also returns the inputs they come from, by group."""
        p, groups, ports = self.params, range(self.params.groups), range(self.ports)
        taken = _Taken(p, self.ports)
        locked = [Signal(self.ports, name=f"locked{g}") for g in groups]
        sources = [Signal(self.ports, name=f"sources{g}") for g in groups]
        m.submodules.choose = choose = RoundRobin(width=p.groups)
        for g in groups:
            held = [queues[port][g] for port in ports]
            valid = Cat(queue.valid for queue in held)
            alone = Signal(self.ports, name=f"alone{g}")
            multicast = Cat(self._field(queue.first, "operation") == _MULTICAST for queue in held)
            m.d.comb += alone.eq(valid & self.children[g] & multicast)
            with m.If(locked[g].any()):
                m.d.comb += sources[g].eq(locked[g] & valid)
            with m.Elif(alone.any()):
                m.d.comb += sources[g].eq(lowest_one(alone))
            with m.Elif((self.children[g] & ~valid) == 0):
                m.d.comb += sources[g].eq(self.children[g])
            full = Mux(taken.group[g], places[g].held[1], places[g].held[2])
            m.d.comb += choose.requests[g].eq(sources[g].any() & ~full)
        m.d.comb += choose.advance.eq(choose.grant.any())
        heads = [select(choose.grant, [queues[port][g].first for g in groups]) for port in ports]
        used = select(choose.grant, sources)
        m.d.sync += [taken.group.eq(choose.grant), taken.used.eq(used)]
        with m.If(choose.grant.any()):
            m.d.sync += taken.locked.eq((choose.grant & Cat(each.any() for each in locked)).any())
            m.d.sync += [taken.heads[port].eq(heads[port]) for port in ports]
        for g in groups:
            first = select(lowest_one(sources[g]), [queues[port][g].first for port in ports])
            with m.If(self.written[g]):
                m.d.sync += locked[g].eq(0)
            with m.Elif(choose.grant[g]):
                stays = ~self._field(first, "last") & (
                    (self._field(first, "operation") == _MULTICAST) | locked[g].any()
                )
                m.d.sync += locked[g].eq(Mux(stays, sources[g], 0))
        return taken, [Mux(choose.grant[g], sources[g], 0) for g in groups]

    def _combine(self, m: Module, taken: "_Taken", places: list[ResponseQueue]) -> None:
        """Combine the words in the registers into a place of their group."""
        p, groups, ports = self.params, range(self.params.groups), range(self.ports)
        expected = [Signal(p.sequence_bits, name=f"expected{g}") for g in groups]
        first = Signal(p.held_bits)
        m.d.comb += first.eq(select(lowest_one(taken.used), taken.heads))
        operation, sequence, last = (self._field(first, name) for name in ("operation", "sequence", "last"))
        m.submodules.combiner = combiner = WordCombiner(words=self.ports, width_bits=p.width_bits)
        m.d.comb += [combiner.operation.eq(operation), combiner.used.eq(taken.used)]
        m.d.comb += [combiner.word[port].eq(self._field(taken.heads[port], "word")) for port in ports]
        *keys, wanted = [
            Cat(self._field(head, "operation"), self._field(head, "sequence"), self._field(head, "last"))
            for head in (*taken.heads, first)
        ]
        wrong = [taken.locked & (operation != _MULTICAST)]
        wrong += [
            taken.used[port] & (self._field(taken.heads[port], "error") | (keys[port] != wanted)) for port in ports
        ]
        wrong += [taken.group[g] & self.root[g] & (sequence != expected[g]) for g in groups]
        made = Cat(combiner.result, last, Cat(wrong).any(), operation, sequence)
        for g in groups:
            m.d.comb += [places[g].push.eq(taken.group[g]), places[g].word.eq(made)]
            with m.If(self.written[g]):
                m.d.sync += expected[g].eq(0)
            with m.Elif(taken.group[g] & self.root[g] & last):
                m.d.sync += expected[g].eq(sequence + 1)

    def _send(
        self, m: Module, queues: list[list[ResponseQueue]], places: list[ResponseQueue]
    ) -> list[Signal]:
        """Drive the outputs; return for each group whether its word on the way down is with all children."""
        p, groups, ports = self.params, range(self.params.groups), range(self.ports)
        served = [Signal(self.ports, name=f"served{g}") for g in groups]
        down_valid = [Signal(name=f"down_valid{g}") for g in groups]
        down = [Signal(p.held_bits, name=f"down{g}") for g in groups]
        grants = []
        for g in groups:
            held = [queues[port][g] for port in ports]
            with m.If(self.root[g]):
                m.d.comb += [down_valid[g].eq(places[g].valid & self.children[g].any()), down[g].eq(places[g].first)]
            with m.Else():
                m.d.comb += [
                    down_valid[g].eq(select(self.parent[g], [queue.valid for queue in held]) & self.children[g].any()),
                    down[g].eq(select(self.parent[g], [queue.first for queue in held])),
                ]
        for port in ports:
            choose = RoundRobin(width=p.groups)
            m.submodules[f"choose_out{port}"] = choose
            channel = self.port[port]
            words = []
            for g in groups:
                credits = Signal(range(p.buffer_flits + 1), init=p.buffer_flits, name=f"credits{port}_{g}")
                up = self.parent[g][port] & places[g].valid
                downward = self.children[g][port] & down_valid[g] & ~served[g][port]
                m.d.comb += choose.requests[g].eq((up | downward) & credits.any())
                m.d.sync += credits.eq(credits - choose.grant[g] + channel.out_credit[g])
                words.append(Mux(self.parent[g][port], places[g].first, down[g]))
            group = Cat(
                Cat(choose.grant[g] for g in groups if g >> bit & 1).any() if p.groups > 1 << bit else 0
                for bit in range(p.group_bits)
            )
            m.d.comb += choose.advance.eq(choose.grant.any())
            m.d.sync += channel.out_valid.eq(choose.grant.any())
            with m.If(choose.grant.any()):
                m.d.sync += channel.out_flit.eq(Cat(select(choose.grant, words), group))
            grants.append(choose.grant)
        done = [Signal(name=f"done{g}") for g in groups]
        for g in groups:
            granted = Cat(grants[port][g] for port in ports)
            reached = served[g] | (granted & self.children[g])
            m.d.comb += done[g].eq(down_valid[g] & (reached == self.children[g]))
            with m.If(done[g] | self.written[g]):
                m.d.sync += served[g].eq(0)
            with m.Else():
                m.d.sync += served[g].eq(reached)
            m.d.comb += places[g].ready.eq(Mux(self.root[g], done[g], (granted & self.parent[g]).any()))
        return done


class _Taken:
    """Registers between taking and combining: group as one bit of a word, inputs, first words of the inputs."""

    def __init__(self, params: PlaneParams, ports: int) -> None:
        self.group = Signal(params.groups, name="taken_group")
        self.used = Signal(ports, name="taken_used")
        self.locked = Signal(name="taken_locked", reset_less=True)
        self.heads = [Signal(params.held_bits, name=f"taken{port}", reset_less=True) for port in range(ports)]
