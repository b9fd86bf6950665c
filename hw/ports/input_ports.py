"""Ports of an input unit, and the registers that its parts share."""

from collections.abc import Callable

from amaranth.hdl import Signal, Value
from amaranth.lib import wiring
from amaranth.lib.data import StructLayout, View
from amaranth.lib.wiring import In, Member, Out
from amaranth.utils import ceil_log2

from hopforge.hw.allocation.free_queue import offered_masks, offers_ahead
from hopforge.hw.allocation.vc_request import VcRequest, credit_bits
from hopforge.hw.allocation.vc_turn import VcTurn
from hopforge.hw.ports.engine_ports import asking_signature, control_signature
from hopforge.hw.ports.flit_buffer import FlitBuffer
from hopforge.hw.ports.protected_buffer import FLIT_EVENTS
from hopforge.hw.ports.route_table import route_layout
from hopforge.hw.ports.spread_choice import KEY_BITS
from hopforge.model.router.params import RouterParams

__all__ = ["DROP_BITS", "HEAD", "TAIL", "InputPorts", "flit_layout", "label_bits"]

DROP_BITS = 32
"""Width of a drop counter; it wraps around."""

HEAD, TAIL = 0, 1
"""Bits of a flit's kind."""


def flit_layout(params: RouterParams) -> StructLayout:
    """Layout of a flit; in the data of a head destination, source, tag and (vct) length from bit 0 on."""
    return StructLayout({"kind": 2, "vc": max(1, ceil_log2(params.vcs)), "data": params.width_bits})


def label_bits(params: RouterParams) -> int:
    """Width of what a granted VC tells its output: the output VC, a tail, and where heads bring it along, a head."""
    return params.vcs + (2 if params.va == "free_queue" else 1)


class InputPorts(wiring.Component):
    """What `InputUnit` (which see) is made with: ports, and what more than one of its parts reads or writes."""

    in_valid: Signal
    in_flit: View
    route: Signal
    credit_valid: Signal
    credit_vc: Signal
    drops: Signal
    dropped: Signal
    flit_wrong: Signal
    flit_repaired: Signal
    enable: Signal
    clear_drops: Signal
    free: Signal
    credits: Signal
    nonzero: Signal
    va_request: Signal
    va_port: Signal
    va_wanted_port: Signal
    va_granted: Signal
    va_granted_vc: Signal
    out_port: Signal
    out_vc: Signal
    sa_request: Signal
    guess_request: Signal
    guess_confirmed: Signal
    turn: Signal
    sa_grant: Signal
    label: Signal
    at_or_after: Signal
    offers: Signal
    offered: Signal
    stays: Signal
    follows: Signal
    spread_key: Signal
    ahead_asks: Signal
    ahead_dst: Signal
    ahead_accepted: Signal
    ahead_answered: Signal
    ahead_answer: Signal
    ahead_keys: Signal
    word: View

    def __init__(self, *, params: RouterParams, port: int, flit_buffer: Callable[..., FlitBuffer] = FlitBuffer):
        self.params = p = params
        self.port = port
        self._flit_buffer = flit_buffer
        self.masks: tuple[tuple[int, ...], ...] = ()  # behind each output, the sets of VCs that it makes offers for
        if p.va == "free_queue" and offers_ahead(p):
            self.masks = tuple(offered_masks(p, o) for o in range(p.ports))
        super().__init__({**self._flit_members(), **self._allocation_members(), **self._route_members()})
        if p.va == "free_queue":
            self.out_port = Signal(p.vcs * p.ports)
            self.out_vc = Signal(p.vcs * p.vcs)
        self._make_registers()

    def _flit_members(self) -> dict[str, Member]:
        """Ports of flits, credits and counters, and of the switch that every kind of allocation asks for."""
        p, flit = self.params, flit_layout(self.params)
        pairs = p.ports * p.vcs
        return {
            "in_valid": In(1),
            "in_flit": In(flit),
            "credit_valid": Out(1),
            "credit_vc": Out(max(1, ceil_log2(p.vcs))),
            "drops": Out(DROP_BITS),
            "dropped": Out(1),
            **({name: Out(1) for name in FLIT_EVENTS} if p.protection is not None else {}),
            "enable": In(1, init=1),
            "clear_drops": In(1),
            "free": In(pairs),
            "credits": In(pairs * credit_bits(p)),
            "nonzero": In(pairs),
            "sa_request": Out(p.vcs * p.ports),
            "sa_grant": In(p.vcs),
            "label": Out(p.vcs * label_bits(p)),
            "word": Out(flit),
        }

    def _allocation_members(self) -> dict[str, Member]:
        """Ports by which heads ask for an output VC."""
        p = self.params
        pairs = p.ports * p.vcs
        members: dict[str, Member]
        if p.va == "free_queue":
            members = {name: In(pairs) for name in ("at_or_after", "stays", "follows")}
            if p.sa == "input_ahead":
                members["turn"] = Out(p.vcs)
            offers = sum(len(of_output) for of_output in self.masks)
            members |= {"offers": In(p.vcs * offers), "offered": In(offers)}
        else:
            members = {
                "va_request": Out(p.vcs * pairs),
                "va_port": Out(p.vcs * p.ports),
                "va_granted": In(p.vcs),
                "va_granted_vc": In(p.vcs * p.vcs),
                "out_port": In(p.vcs * p.ports),
                "out_vc": In(p.vcs * p.vcs),
            }
        if p.va == "input_first":
            members["va_wanted_port"] = Out(p.vcs * p.ports)
        if p.speculation:
            members |= {"guess_request": Out(p.vcs * p.ports), "guess_confirmed": Out(p.vcs)}
        return members

    def _route_members(self) -> dict[str, Member]:
        """Ports by which a head learns where it may go, here and (``ahead_…``) at the next router."""
        p = self.params
        members: dict[str, Member] = {}
        if self.spreads:
            members["spread_key"] = In(KEY_BITS)
        if self.looks_up and p.lookup is not None:
            if p.ports_per_engine > 1:
                members["asking"] = Out(asking_signature(p))
            else:
                members["control"] = Out(control_signature(p.lookup))
        else:
            members["route"] = In(route_layout(p).size)
        if p.asks_ahead:
            members |= {
                "ahead_asks": Out(p.vcs * p.ports),
                "ahead_dst": Out(p.vcs * p.address_bits),
                "ahead_accepted": In(p.vcs),
                "ahead_answered": In(p.vcs),
                "ahead_answer": In(p.vcs * p.answer_bits),
            }
            if p.spread_router is not None:
                members["ahead_keys"] = In(p.ports * KEY_BITS)
        return members

    def _make_registers(self) -> None:
        """Make what several parts read or write and no port shows."""
        p = self.params
        self.nonempty = Signal(p.vcs)
        self.active = Signal(p.vcs)
        self.asks_head = Signal(p.vcs)
        self.may_leave = Signal(p.vcs)
        self.draining = Signal(p.vcs)
        vcs, depth = range(p.vcs), p.buffer_flits
        self.pop = Signal(p.vcs)
        self.word_kind = Signal(2, name="kind", reset_less=True)
        self.turns = VcTurn(vcs=p.vcs) if p.sa == "input_ahead" else None
        self.count = [Signal(range(depth + 1), name=f"count{v}") for v in vcs]
        self.several = [Signal(name=f"several{v}") for v in vcs]
        self.write = [Signal(range(depth), name=f"write{v}") for v in vcs]
        self.read = [Signal(range(depth), name=f"read{v}") for v in vcs]
        stored = {"kind": 2, "length": p.length_bits if p.switching == "vct" else 0}
        if p.rc == "lookup":
            stored["dst"] = p.address_bits
        if self.spreads:
            stored["src"] = p.address_bits
            if p.entropy_bits:
                stored["entropy"] = p.entropy_bits
        if not self.looks_up:
            stored["route"] = route_layout(p).size
        self._front_layout = StructLayout(stored)
        self.front = [
            View(self._front_layout, Signal(self._front_layout.size, name=f"front{v}", reset_less=True))
            for v in range(p.vcs)
        ]

    @property
    def rules(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """What `VcRequest.rules` says of each VC: the same for ports of which the hardware is the same."""
        return tuple(VcRequest.rules_of(self.params, self.port, v) for v in range(self.params.vcs))

    @property
    def looks_up(self) -> bool:
        """Whether it asks a lookup engine for this router, its own or (with ``asking``) one that it shares."""
        return self.params.rc == "lookup" and not self.params.carries(self.port)

    @property
    def spreads(self) -> bool:
        """Whether it takes one of the ports that its engine answers, by the hash of source and destination."""
        return self.looks_up and self.params.spread_router is not None

    def _pairs(self, word: Value, v: int) -> Value:
        return self._of(word, v, self.params.ports * self.params.vcs)

    def _of(self, word: Value, v: int, width: int) -> Value:
        """Return the part of a VC of a word that has as many bits for each."""
        return word[v * width : (v + 1) * width]
