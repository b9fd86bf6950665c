"""Golden network: golden routers, links between them and hosts, one `step` per cycle (docs/definitions/router.md)."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.golden.build import GoldenEngine
from hopforge.model.lookup.golden.ports import LookupInputs, LookupOutputs
from hopforge.model.lookup.tcam import Tcam
from hopforge.model.router.allocators import first_at_or_after
from hopforge.model.router.flit import BODY, HEAD, SINGLE, TAIL, Flit, PortInputs, PortOutputs
from hopforge.model.router.golden import RouterModel
from hopforge.model.router.links import End, Link
from hopforge.model.router.params import RouterParams

__all__ = ["EngineSetup", "HostLink", "HostModel", "LinkModels", "NetworkModel", "Packet", "Sender"]


class EngineSetup(NamedTuple):
    """What the lookup engines of one router find at the start.

    Attributes
    ----------
    words : tuple
        Names of registers and what is written to them, in this order.
    tcam : Tcam, optional
        For ``tcam_kind: external``: the TCAM outside, one lookup per cycle and port.
    tcam_latency_cycles : int
        Its cycles from a request to the answer.
    member : callable, optional
        Link-aggregation member of an address, which a TCAM outside adds by itself where a row says so.
    """

    words: tuple[tuple[str, int], ...]
    tcam: Tcam | None = None
    tcam_latency_cycles: int = 1
    member: Callable[[int], int] = lambda address: 0


class _OutsideTcam:
    """The TCAM at the engine of one port: always ready, answers after a fixed time."""

    def __init__(self, tcam: Tcam, latency_cycles: int, member: Callable[[int], int]) -> None:
        self._tcam, self._member = tcam, member
        self._answers: deque[dict[str, int]] = deque({} for _ in range(latency_cycles))

    def inputs(self) -> LookupInputs:
        """Return the inputs of the engine in this cycle."""
        return LookupInputs(tcam_req_ready=1, **self._answers.popleft())

    def take(self, outputs: LookupOutputs) -> None:
        """Take a request, if there is one in this cycle."""
        answer: dict[str, int] = {}
        if outputs.tcam_req_valid:
            address = outputs.tcam_req_dst
            output = self._tcam.lookup(address, self._member(address))
            answer = {"tcam_resp_valid": 1, "tcam_resp_id": outputs.tcam_req_id}
            if output is not None:
                answer |= {"tcam_resp_match": 1, "tcam_resp_output": output}
        self._answers.append(answer)


class LinkModels:
    """Links between routers, and what is under way on them.

    Parameters
    ----------
    links : sequence of Link
        At most one to and one from each port.
    """

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = list(links)
        self._forward = [deque[Flit | None]([None] * (link.latency_cycles - 1)) for link in links]
        self._backward = [deque[int | None]([None] * (link.latency_cycles - 1)) for link in links]

    def carry(
        self, visible: Sequence[Sequence[PortOutputs]], outside: Mapping[End, PortInputs]
    ) -> list[list[PortInputs]]:
        """Go through one cycle.

        Parameters
        ----------
        visible : sequence
            What stands at the outputs of every router.
        outside : mapping
            Inputs of ports without a link; nothing at those that are not named.

        Returns
        -------
        list
            Inputs of every router.
        """
        flits: dict[End, Flit | None] = {end: given.flit for end, given in outside.items()}
        credits: dict[End, int | None] = {end: given.credit for end, given in outside.items()}
        for link, forward, backward in zip(self.links, self._forward, self._backward, strict=True):
            forward.append(visible[link.source.router][link.source.port].flit)
            backward.append(visible[link.target.router][link.target.port].credit)
            flits[link.target] = forward.popleft()
            credits[link.source] = backward.popleft()
        return [
            [PortInputs(flits.get(end), credits.get(end)) for end in map(partial(End, number), range(len(ports)))]
            for number, ports in enumerate(visible)
        ]


class NetworkModel:
    """Routers and the links between them; what is at a port without a link is up to the caller.

    Parameters
    ----------
    routers : sequence of RouterParams
        The routers.
    links : sequence of Link
        At most one to and one from each port.
    engines : sequence of EngineSetup
        In mode lookup one per router, for the engines that answer for it (with look-ahead some are at the outputs of
        its neighbours); the registers are written and the engines have come to rest before cycle 0.
    """

    def __init__(
        self, routers: Sequence[RouterParams], links: Sequence[Link], engines: Sequence[EngineSetup] = ()
    ) -> None:
        self.routers = [RouterModel(params) for params in routers]
        self._tcams: list[list[_OutsideTcam | None]] = [[None] * len(router.engines) for router in self.routers]
        behind = {link.source: link.target.router for link in links}
        for number, (router, tcams) in enumerate(zip(self.routers, self._tcams, strict=True)):
            for port, engine in enumerate(router.engines if engines else ()):
                answers_for = behind.get(End(number, port), number) if router.params.carries(port) else number
                setup = engines[answers_for]
                _set_up(engine, setup.words)
                if setup.tcam is not None:
                    tcams[port] = _OutsideTcam(setup.tcam, setup.tcam_latency_cycles, setup.member)
        self._links = LinkModels(links)
        #: what stood at the inputs of every router in the last cycle
        self.inputs: list[list[PortInputs]] = []

    def visible(self) -> list[list[PortOutputs]]:
        """Return what stands at the outputs of every router in this cycle."""
        return [router.visible() for router in self.routers]

    def step(self, outside: Mapping[End, PortInputs]) -> None:
        """Go through one cycle with these inputs at the ports without a link."""
        self.inputs = self._links.carry(self.visible(), outside)
        for router, tcams, ports in zip(self.routers, self._tcams, self.inputs, strict=True):
            given = [LookupInputs() if tcam is None else tcam.inputs() for tcam in tcams]
            _, answers = router.step(ports, given)
            for tcam, answer in zip(tcams, answers, strict=True):
                if tcam is not None:
                    tcam.take(answer)


def _set_up(engine: GoldenEngine, words: Sequence[tuple[str, int]]) -> None:
    """Write registers one after the other, and wait until nothing goes on in the engine."""
    registers = csr_map(engine.params)
    for name, word in words:
        engine.step(LookupInputs(csr_we=1, csr_addr=registers[name].address, csr_wdata=word))
        while not engine.idle:
            engine.step(LookupInputs())


class Packet(NamedTuple):
    """A packet to be sent: cycle of its creation, data of its head, flits, data of the others."""

    created: int
    head: int
    flits: int = 1
    body: int = 0


class HostLink:
    """Credits of a host, and which VCs its senders may take."""

    def __init__(self, params: RouterParams) -> None:
        self.params = params
        self.credits = [params.buffer_flits] * params.vcs
        self.free = [True] * params.vcs
        self._tail_sent = [False] * params.vcs

    def take_credit(self, vc: int) -> None:
        """Let a credit count; with ``vc_release: credits`` the last one frees the VC."""
        self.credits[vc] += 1
        if self._tail_sent[vc] and self.credits[vc] == self.params.buffer_flits:
            self.free[vc], self._tail_sent[vc] = True, False

    def release(self, vc: int) -> None:
        """Note that a tail has been sent."""
        self.free[vc] = self.params.vc_release == "tail"
        self._tail_sent[vc] = self.params.vc_release == "credits"


class Sender:
    """Packets in order of creation, sent one after the other on some VCs of a host.

    Parameters
    ----------
    link : HostLink
        Of the host.
    vcs : sequence of int
        VCs that it may use.
    """

    def __init__(self, link: HostLink, vcs: Sequence[int], packets: Iterable[Packet] = ()) -> None:
        self.queue = deque(packets)
        self._link, self._vcs = link, vcs
        self._choice = vcs
        self._left = 0  # flits of the packet under way
        self._vc = 0
        self._pointer = 0

    def start_after(self, vc: int) -> None:
        """Let the next packet take a VC after `vc`, or, if that is none of the sender's, the first of them only."""
        self._choice = self._vcs if vc in self._vcs else self._vcs[:1]
        self._pointer = (vc + 1) % self._link.params.vcs

    def is_due(self, cycle: int) -> bool:
        """Whether a packet has been created."""
        return bool(self.queue) and self.queue[0].created <= cycle

    def _open_vcs(self, cycle: int) -> list[int]:
        """Return the VCs that the packet at the head of the queue can take in this cycle."""
        link = self._link
        if not self.is_due(cycle):
            return []
        need = self.queue[0].flits if link.params.switching == "vct" else 1
        return [w for w in self._choice if link.free[w] and link.credits[w] >= need]

    def can_send(self, cycle: int) -> bool:
        """Whether `send` will send a flit in this cycle."""
        return bool(self._link.credits[self._vc] if self._left else self._open_vcs(cycle))

    def send(self, cycle: int) -> Flit | None:
        """Send a flit if there is one that can leave in this cycle."""
        link, p = self._link, self._link.params
        if not self._left:
            open_vcs = self._open_vcs(cycle)
            if not open_vcs:
                return None
            self._vc = first_at_or_after(self._pointer, open_vcs, p.vcs)
            self._pointer = (self._vc + 1) % p.vcs
            link.free[self._vc] = False
            self._left = self.queue[0].flits
        if not link.credits[self._vc]:
            return None
        packet = self.queue[0]
        first, last = self._left == packet.flits, self._left == 1
        kind = SINGLE if first and last else HEAD if first else TAIL if last else BODY
        link.credits[self._vc] -= 1
        self._left -= 1
        if last:
            self.queue.popleft()
            link.release(self._vc)
        return Flit(kind, self._vc, packet.head if first else packet.body)


class HostModel:
    """A host with an unlimited source queue.

    Parameters
    ----------
    params : RouterParams
        The router at which it is.
    packets : sequence of Packet
        What it sends, in order of creation.
    latency_cycles : int
        Latency of its link.

    Attributes
    ----------
    sent, received : list of tuple
        (cycle, flit): when flits were sent, and when they were taken.
    """

    def __init__(self, params: RouterParams, packets: Sequence[Packet], latency_cycles: int = 1) -> None:
        self.params = params
        self.latency_cycles = latency_cycles
        self.sent: list[tuple[int, Flit]] = []
        self.received: list[tuple[int, Flit]] = []
        self._link = HostLink(params)
        self._sender = Sender(self._link, self._sender_vcs(), packets)
        # What is on the link: first in what leaves it in this cycle.
        self._flits: deque[Flit | None] = deque([None] * latency_cycles)
        self._credits_back: deque[int | None] = deque([None] * (latency_cycles - 1))
        self._arriving: deque[Flit | None] = deque([None] * latency_cycles)
        self._returned: deque[int | None] = deque()

    def _sender_vcs(self) -> Sequence[int]:
        """VCs of the source queue."""
        return range(self.params.vcs)

    @property
    def idle(self) -> bool:
        """Everything has been sent."""
        return not self._sender.queue and not any(self._flits)

    def step(self, cycle: int, router: PortOutputs) -> PortInputs:
        """Go through one cycle.

        Parameters
        ----------
        cycle : int
            Its number.
        router : PortOutputs
            What stands at the router's port in this cycle.

        Returns
        -------
        PortInputs
            Inputs of the router's port in this cycle.
        """
        self._credits_back.append(router.credit)
        credit = self._credits_back.popleft()
        # Taken L cycles after it stood at the router; the credit stands there L cycles after that.
        self._arriving.append(router.flit)
        taken = self._take(cycle, self._arriving.popleft())
        if taken is not None:
            self.received.append((cycle, taken))
        self._returned.append(None if taken is None else taken.vc)
        back = self._returned.popleft() if len(self._returned) > self.latency_cycles else None

        flit = self._send(cycle)
        if flit is not None:
            self.sent.append((cycle, flit))
        self._flits.append(flit)
        if credit is not None:  # it counts from the next cycle on
            self._link.take_credit(credit)
        return PortInputs(self._flits.popleft(), back)

    def _take(self, cycle: int, came: Flit | None) -> Flit | None:
        """Flit that the host takes in this cycle; `came`: what has come to it."""
        return came

    def _send(self, cycle: int) -> Flit | None:
        """Flit that the host sends in this cycle."""
        return self._sender.send(cycle)
