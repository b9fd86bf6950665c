"""Golden router: one `step` per cycle, plain Python, from docs/definitions/router.md.

Slow and meant to be read. The hardware and the simulator's kernel are compared with it.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from hopforge.model.lookup.golden.build import golden_engine
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.router.allocators import Allocation, allocation, first_at_or_after, match_in_turns
from hopforge.model.router.flit import Flit, PortInputs, PortOutputs
from hopforge.model.router.head_routes import Candidate, HeadRoutes
from hopforge.model.router.params import CLASS_BITS, PORT_BITS, RouterParams
from hopforge.model.router.quality import SwitchQuality

__all__ = ["RouterModel"]


class _State(Enum):
    IDLE = "idle"
    RC = "rc"
    VA = "va"
    ACTIVE = "active"
    DRAIN = "drain"


@dataclass
class _InputVc:
    fifo: deque[Flit] = field(default_factory=deque)
    state: _State = _State.IDLE
    cycles: int = 0  # spent in RC
    asked: bool = False
    candidates: list[Candidate] = field(default_factory=list)
    output: tuple[int, int] | None = None
    asked_ahead: bool = False  # look-ahead with engines
    ahead: int | None = None  # field `route` for the next router
    head_left: bool = False


@dataclass
class _OutputVc:
    credits: int
    free: bool = True
    tail_sent: bool = False
    released: bool = False  # free_queue: by a grant of the last cycle


class RouterModel:
    """A router.

    Parameters
    ----------
    params : RouterParams
        What it is.

    Attributes
    ----------
    engines : list of GoldenEngine
        In mode lookup, one for `ports_per_engine` input ports.
    flits_in, flits_out, drops : list of int
        For each port: flits that have come in, flits that have stood on the output, unroutable packets of the input
        that have been dropped.
    dropped : list of int
        Inputs that dropped a packet in the last cycle.
    """

    def __init__(self, params: RouterParams) -> None:
        self.params = p = params
        self.inputs = [[_InputVc() for _ in range(p.vcs)] for _ in range(p.ports)]
        self.outputs = [[_OutputVc(p.credits(o)) for _ in range(p.vcs)] for o in range(p.ports)]
        self.engines = [golden_engine(p.lookup) for _ in range(p.engines)] if p.lookup else []
        self._routes = HeadRoutes(p)
        self._ask_pointer = [0] * p.ports
        self._member_pointer = [0] * p.engines
        self._ahead_pointer = [0] * p.ports
        self._queued = p.va == "free_queue"
        self._va = allocation("output_first" if self._queued else p.va, p.ports * p.vcs, p.vc_arbiter)
        self._next_vc = [0] * p.ports  # f
        self._sa = allocation(p.sa, p.ports, p.arbiter)
        self._speculative_sa = allocation(p.sa, p.ports, p.arbiter)
        self._quality = None if p.quality is None else SwitchQuality(p.quality, p.ports)
        self._vc_pointer = [0] * p.ports  # q
        self._waits = [0] * p.ports  # cycles in which an output accepts no flit
        self._crossing: list[Flit | None] = [None] * p.ports  # per output
        self._visible: list[Flit | None] = [None] * p.ports
        self._credit: list[int | None] = [None] * p.ports
        self._late_credits = [deque([None] * p.credit_delay_cycles) for _ in range(p.ports)]  # type: list[deque[int | None]]
        self._enabled = True
        self.flits_in = [0] * p.ports
        self.flits_out = [0] * p.ports
        self.drops = [0] * p.ports
        self.dropped: list[int] = []

    def visible(self) -> list[PortOutputs]:
        """Return what stands at the outputs in this cycle; all of them are registers."""
        return [PortOutputs(self._visible[i], self._credit[i], self.drops[i]) for i in range(self.params.ports)]

    def step(
        self,
        inputs: Sequence[PortInputs],
        engines: Sequence[LookupInputs] = (),
        *,
        enable: bool = True,
        clear_counters: bool = False,
    ) -> tuple[list[PortOutputs], list[LookupOutputs]]:
        """Go through one cycle.

        Parameters
        ----------
        inputs : sequence of PortInputs
            One per port.
        engines : sequence of LookupInputs
            In mode lookup one per engine; requests and ``resp_ready`` in them are replaced by the router's own.
        enable : bool
            0: from the next cycle on no packet begins RC.
        clear_counters : bool
            All counters of the ports are 0 in the next cycle.

        Returns
        -------
        list of PortOutputs
            What stands at the outputs in this cycle.
        list of LookupOutputs
            Outputs of the engines.
        """
        p = self.params
        outputs = self.visible()
        self._take_answers_ahead()

        requests = self._vc_requests()
        allocated, first_allocated = ({}, {}) if self._queued else match_in_turns(self._va, requests, p.va_iterations)
        asked = self._switch_requests()
        if self._queued:
            for n, members in requests.items():
                if self._may_leave(self.inputs[n // p.vcs][n % p.vcs]):
                    asked[n // p.vcs][n % p.vcs] = min(members) // p.vcs
        passed = self._choose_ahead(asked) if p.sa == "input_ahead" else {}
        asked = self._accepted(asked)
        if self._quality is not None:
            asked = self._quality.due(asked)
        sends, first_sends = self._switch(self._sa, asked)
        if self._queued:
            allocated = self._next_vcs(requests, sends)
        late = self._late_sends(requests, allocated, sends)
        drains = {i: v for i in range(p.ports) if i not in sends | late for v in self._draining(i)}
        asks = [self._asking(i) for i in range(p.ports)]
        asks_ahead = self._asking_ahead()

        # From here on the state changes.
        if not self._queued:
            self._va.take(first_allocated)
        self._sa.take(first_sends)
        if self._quality is not None:
            for o, v in sends.values():
                self._quality.sent(v, o)
        self._speculative_sa.take({i: o for i, (o, _) in late.items()})
        self._wait(o for o, _ in (sends | late).values())
        before = [[vc.state for vc in of_port] for of_port in self.inputs]
        for output in (output for of_port in self.outputs for output in of_port if output.released):
            output.free, output.released = True, False
        for n, m in allocated.items():
            self._allocate(n, m)
        for i, v in passed.items():
            self._vc_pointer[i] = (v + 1) % p.vcs
        popped = self._leave(sends | late, drains)
        self._arrive(inputs)

        answers = self._lookups(asks, asks_ahead, engines)
        for i, of_port in enumerate(self.inputs):
            for v, vc in enumerate(of_port):
                if i in popped and popped[i][0] == v and popped[i][1].is_tail:
                    self._begin(i, vc)
                else:
                    self._advance(i, v, before[i][v])
        self._count(inputs, outputs, clear_counters)
        self._enabled = enable
        return outputs, answers

    def _accepted(self, asked: list[dict[int, int]]) -> list[dict[int, int]]:
        """Return the requests for outputs whose channel accepts a flit."""
        return [{v: o for v, o in of_input.items() if not self._waits[o]} for of_input in asked]

    def _wait(self, granted: Iterable[int]) -> None:
        """Let a cycle go by at the outputs, some of which have been granted."""
        self._waits = [max(0, cycles - 1) for cycles in self._waits]
        for o in granted if self.params.cycles_per_flit else ():
            self._waits[o] = self.params.cycles_per_flit[o] - 1

    def _leave(self, granted: dict[int, tuple[int, int]], drains: dict[int, int]) -> dict[int, tuple[int, Flit]]:
        """Take from each input the flit that is granted or drained; return its VC and it."""
        p = self.params
        self._visible = self._crossing
        self._crossing = [None] * p.ports
        self._credit = [None] * p.ports
        popped: dict[int, tuple[int, Flit]] = {}
        for i, (o, v) in granted.items():
            self._vc_pointer[i] = (v + 1) % p.vcs
            popped[i] = v, self._send(i, v, o)
        for i, v in drains.items():
            popped[i] = v, self.inputs[i][v].fifo.popleft()
            self.drops[i] += popped[i][1].is_tail
        self.dropped = [i for i in drains if popped[i][1].is_tail]
        for i, (v, _) in popped.items():
            self._credit[i] = v
        return popped

    def _arrive(self, inputs: Sequence[PortInputs]) -> None:
        """Count the credits that come back, and put the flits that come into their FIFOs."""
        for o, port in enumerate(inputs):
            self._return_credit(o, port.credit)
        for i, port in enumerate(inputs):
            if port.flit is not None:
                fifo = self.inputs[i][port.flit.vc].fifo
                assert len(fifo) < self.params.buffer_flits, f"port {i} VC {port.flit.vc}: a flit without a credit"
                fifo.append(port.flit)

    def _count(self, inputs: Sequence[PortInputs], outputs: Sequence[PortOutputs], clear: bool) -> None:
        for i, (given, shown) in enumerate(zip(inputs, outputs, strict=True)):
            self.flits_in[i] += given.flit is not None
            self.flits_out[i] += shown.flit is not None
        if clear:
            self.flits_in, self.flits_out, self.drops = ([0] * self.params.ports for _ in range(3))

    def _held(self, i: int) -> bool:
        """Whether heads of input i in VA wait because there RC and VA are one stage."""
        return not self._enabled and self._at_once(i)

    def _at_once(self, i: int) -> bool:
        """Whether heads of input i have no cycle of RC."""
        p = self.params
        return p.carries(i) or (p.rc == "table" and p.rc_cycles == 0)

    # Decisions: what the state at the start of the cycle leads to.

    def _length(self, head: Flit) -> int:
        p = self.params
        return head.data >> (2 * p.address_bits + p.tag_bits) & (1 << p.length_bits) - 1

    def _vc_requests(self) -> dict[int, set[int]]:
        """Return A(n) for every input VC that requests."""
        p = self.params
        requests = {}
        for i, of_port in enumerate(self.inputs):
            for v, vc in enumerate(of_port):
                if vc.state is _State.VA and not self._held(i):
                    if not vc.candidates:  # r = 0: evaluated in the first VA cycle
                        vc.candidates = self._routes.of_table(i, v, vc.fifo[0].data)
                    chosen = self._choose(vc)
                    if chosen:
                        requests[i * p.vcs + v] = chosen
        return requests

    def _choose(self, vc: _InputVc) -> set[int]:
        """Return the available output VCs of the best candidate."""
        p = self.params
        need = self._length(vc.fifo[0]) if p.switching == "vct" else int(self._queued)
        options = []
        for number, (port, mask, level) in enumerate(vc.candidates):
            members = [w for w in range(p.vcs) if mask >> w & 1]
            of_port = self.outputs[port]
            available = {port * p.vcs + w for w in members if of_port[w].free and of_port[w].credits >= need}
            if available:
                options.append((level, -sum(of_port[w].credits for w in members), number, available))
        return min(options)[3] if options else set()

    def _next_vcs(self, requests: dict[int, set[int]], sends: dict[int, tuple[int, int]]) -> dict[int, int]:
        """Return the output VC of each head that the switch grants (free_queue)."""
        p = self.params
        taken = {}
        for i, (o, v) in sends.items():
            n = i * p.vcs + v
            if n in requests:
                w = first_at_or_after(self._next_vc[o], [m % p.vcs for m in requests[n]], p.vcs)
                taken[n] = o * p.vcs + w
        return taken

    def _switch_requests(self) -> list[dict[int, int]]:
        """Return, for each input, the output of each VC that requests one."""
        return [
            {
                v: vc.output[0]
                for v, vc in enumerate(of_port)
                if vc.state is _State.ACTIVE
                and vc.output is not None
                and vc.fifo
                and self.outputs[vc.output[0]][vc.output[1]].credits > 0
                and self._may_leave(vc)
            }
            for of_port in self.inputs
        ]

    def _choose_ahead(self, asked: list[dict[int, int]]) -> dict[int, int]:
        """Leave the VC that each input picks among those in turn (input_ahead).

        Returns, for each input whose VC requests nothing, that VC.
        """
        p = self.params
        passed = {}
        for i, of_port in enumerate(self.inputs):
            heads = [v for v, vc in enumerate(of_port) if vc.state is _State.VA and not self._held(i)]
            turn = sorted({*asked[i], *heads})
            if not turn:
                continue
            v = first_at_or_after(self._vc_pointer[i], turn, p.vcs)
            if v not in asked[i]:
                passed[i] = v
            asked[i] = {v: asked[i][v]} if v in asked[i] else {}
        return passed

    def _switch(
        self, allocator: Allocation, requests: list[dict[int, int]]
    ) -> tuple[dict[int, tuple[int, int]], dict[int, int]]:
        """Return (output, VC) of each matched input, and the output of those that the first iteration matches."""
        p = self.params
        representing: list[dict[int, int]] = []  # per input: the VC for each output
        for i, asked in enumerate(requests):
            pointer = self._vc_pointer[i]
            if p.sa in ("input_first", "input_ahead"):
                v = first_at_or_after(pointer, asked, p.vcs) if asked else None
                representing.append({} if v is None else {asked[v]: v})
            else:
                representing.append(
                    {
                        o: first_at_or_after(pointer, [v for v in asked if asked[v] == o], p.vcs)
                        for o in set(asked.values())
                    }
                )
        asks = {i: set(of_output) for i, of_output in enumerate(representing)}
        match, first = match_in_turns(allocator, asks, p.sa_iterations)
        return {i: (o, representing[i][o]) for i, o in match.items()}, first

    def _late_sends(
        self, requests: dict[int, set[int]], allocated: dict[int, int], sends: dict[int, tuple[int, int]]
    ) -> dict[int, tuple[int, int]]:
        """Return the speculative matches that are grants."""
        p = self.params
        if not p.speculation:
            return {}
        asked: list[dict[int, int]] = [{} for _ in range(p.ports)]
        for n, members in requests.items():
            if self._may_leave(self.inputs[n // p.vcs][n % p.vcs]):
                asked[n // p.vcs][n % p.vcs] = min(members) // p.vcs
        busy = {o for o, _ in sends.values()}
        late = {}
        matched, _ = self._switch(self._speculative_sa, self._accepted(asked))
        for i, (o, v) in matched.items():
            m = allocated.get(i * p.vcs + v)
            if i not in sends and o not in busy and m is not None and self.outputs[o][m % p.vcs].credits > 0:
                late[i] = o, v
        return late

    def _draining(self, i: int) -> list[int]:
        """Return the VC of input i that drains a flit if the port has no switch grant, or nothing."""
        return [v for v, vc in enumerate(self.inputs[i]) if vc.state is _State.DRAIN and vc.fifo][:1]

    def _asking(self, i: int) -> int | None:
        """Return the VC that asks the engine of its port."""
        p = self.params
        waiting = [v for v, vc in enumerate(self.inputs[i]) if vc.state is _State.RC and not vc.asked]
        if p.rc == "table" or not waiting or not self._enabled:
            return None
        return first_at_or_after(self._ask_pointer[i], waiting, p.vcs)

    # Look-ahead with lookup engines: that of a carried port is at the output.

    def _needs_answer(self, vc: _InputVc) -> bool:
        """Whether the head of a VC with a candidate takes a route along that an engine answers."""
        return self.params.rc == "lookup" and self.params.carries(vc.candidates[0].port)

    def _may_leave(self, vc: _InputVc) -> bool:
        """Whether the first flit of a VC waits for no answer."""
        return vc.head_left or vc.ahead is not None or not self._needs_answer(vc)

    def _asking_ahead(self) -> list[int | None]:
        """Return the input VC n that asks the engine of each output."""
        p = self.params
        waiting: list[list[int]] = [[] for _ in range(p.ports)]
        for i, of_port in enumerate(self.inputs):
            for v, vc in enumerate(of_port):
                beyond = vc.state is _State.ACTIVE or (vc.state is _State.VA and not self._held(i))
                if beyond and vc.candidates and self._needs_answer(vc) and not vc.asked_ahead:
                    waiting[vc.candidates[0].port].append(i * p.vcs + v)
        return [
            first_at_or_after(self._ahead_pointer[o], asking, p.ports * p.vcs) if asking else None
            for o, asking in enumerate(waiting)
        ]

    def _take_answers_ahead(self) -> None:
        """Give heads the answers that are visible in this cycle."""
        p = self.params
        for o, engine in enumerate(self.engines):
            response = engine.response
            if not p.carries(o) or response is None:
                continue
            port, route_class = p.ports, 0
            if p.spread_router is not None:
                asker = self.inputs[response.tag // p.vcs][response.tag % p.vcs]
                ports = response.output & (1 << p.ports) - 1 if response.match else 0
                port = self._routes.behind(ports, asker.fifo[0].data, o).bit_length() - 1 if ports else p.ports
            elif response.match:
                port = min(response.output & (1 << PORT_BITS) - 1, p.ports)
                route_class = response.output >> PORT_BITS & (1 << CLASS_BITS) - 1
            self.inputs[response.tag // p.vcs][response.tag % p.vcs].ahead = port | route_class << p.port_field_bits

    # Changes of state.

    def _allocate(self, n: int, m: int) -> None:
        vcs = self.params.vcs
        vc, (o, w) = self.inputs[n // vcs][n % vcs], divmod(m, vcs)
        vc.state, vc.output = _State.ACTIVE, (o, w)
        self.outputs[o][w].free = False
        self._next_vc[o] = (w + 1) % vcs  # read with free_queue only

    def _send(self, i: int, v: int, o: int) -> Flit:
        vc = self.inputs[i][v]
        assert vc.output is not None
        w = vc.output[1]
        flit = vc.fifo.popleft()
        if flit.is_head:
            flit = self._routes.with_next(flit, o, vc.ahead)
        vc.head_left = True
        self._crossing[o] = flit._replace(vc=w)
        out = self.outputs[o][w]
        out.credits -= 1
        if flit.is_tail and self.params.vc_release == "tail":
            out.free, out.released = not self._queued, self._queued
        elif flit.is_tail:
            out.tail_sent = True
        return flit

    def _return_credit(self, o: int, w: int | None) -> None:
        line = self._late_credits[o]
        line.append(w)
        counted = line.popleft()
        if counted is not None:
            vc, depth = self.outputs[o][counted], self.params.credits(o)
            vc.credits += 1
            assert vc.credits <= depth, f"port {o} VC {counted}: too many credits"
            if vc.tail_sent and vc.credits == depth:
                vc.free, vc.tail_sent = True, False

    def _begin(self, i: int, vc: _InputVc) -> None:
        """Enter the state that IDLE would reach from what is in the FIFO."""
        first = _State.VA if self._at_once(i) else _State.RC
        vc.state = first if vc.fifo else _State.IDLE
        vc.cycles, vc.asked, vc.candidates, vc.output = 0, False, [], None
        vc.asked_ahead, vc.ahead, vc.head_left = False, None, False

    def _advance(self, i: int, v: int, before: _State) -> None:
        """Move a VC whose packet has not ended in this cycle; `before` is its state at the start."""
        p, vc = self.params, self.inputs[i][v]
        if before is _State.IDLE:
            self._begin(i, vc)
        elif before is _State.RC and p.rc == "table" and self._enabled:
            vc.cycles += 1
            if vc.cycles == p.rc_cycles:
                vc.candidates = self._routes.of_table(i, v, vc.fifo[0].data)
                vc.state = _State.VA if vc.candidates else _State.DRAIN
        elif before is _State.VA and not vc.candidates and not self._held(i):
            vc.state = _State.DRAIN

    def _lookups(
        self, asks: list[int | None], asks_ahead: list[int | None], engines: Sequence[LookupInputs]
    ) -> list[LookupOutputs]:
        """Let the engines go through the cycle, and the VCs in RC with their answers."""
        p = self.params
        vc_bits = (p.vcs - 1).bit_length()
        answers = []
        for g, engine in enumerate(self.engines):
            if p.carries(g):
                answers.append(self._look_up_ahead(g, asks_ahead[g], engines[g]))
                continue
            members = p.engine_ports(g)
            asking = {member: asks[i] or 0 for member, i in enumerate(members) if asks[i] is not None}
            request = {"req_valid": 0, "req_dst": 0, "req_tag": 0}
            if asking:
                member = first_at_or_after(self._member_pointer[g], asking, p.ports_per_engine)
                i, v = members[member], asking[member]
                dst = self.inputs[i][v].fifo[0].data & (1 << p.address_bits) - 1
                request = {"req_valid": 1, "req_dst": dst, "req_tag": member << vc_bits | v}
            answer = engine.step(engines[g]._replace(**request, resp_ready=1))
            answers.append(answer)
            if asking and answer.req_ready:
                self.inputs[i][v].asked = True
                self._ask_pointer[i] = (v + 1) % p.vcs
                self._member_pointer[g] = (member + 1) % p.ports_per_engine
            if answer.resp_valid:
                self._answered(members[answer.resp_tag >> vc_bits], answer.resp_tag & (1 << vc_bits) - 1, answer)
        return answers

    def _look_up_ahead(self, o: int, n: int | None, inputs: LookupInputs) -> LookupOutputs:
        """Let the engine of an output go through the cycle; VC n asks it."""
        p = self.params
        if n is None:
            return self.engines[o].step(inputs._replace(req_valid=0, req_dst=0, req_tag=0, resp_ready=1))
        vc = self.inputs[n // p.vcs][n % p.vcs]
        dst = vc.fifo[0].data & (1 << p.address_bits) - 1
        answer = self.engines[o].step(inputs._replace(req_valid=1, req_dst=dst, req_tag=n, resp_ready=1))
        if answer.req_ready:
            vc.asked_ahead = True
            self._ahead_pointer[o] = (n + 1) % (p.ports * p.vcs)
        return answer

    def _answered(self, i: int, v: int, answer: LookupOutputs) -> None:
        vc = self.inputs[i][v]
        vc.candidates = self._routes.of_answer(i, v, vc.fifo[0].data, answer)
        vc.state = _State.VA if vc.candidates else _State.DRAIN
