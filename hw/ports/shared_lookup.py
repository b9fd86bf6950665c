"""A lookup engine for several input ports of a router."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.hw.lookup.base import LookupBase
from hopforge.hw.lookup.engine import lookup_engine
from hopforge.hw.parts.round_robin import RoundRobin
from hopforge.hw.ports.engine_ports import asking_signature, control_signature
from hopforge.model.router.params import RouterParams

__all__ = ["SharedLookup"]


class SharedLookup(wiring.Component):
    """One engine and the choice between the input units that ask it (docs/definitions/router.md, *Shared engines*).

    Latency: that of the engine; one request a cycle. Fair: of the members that ask, the first at or after a pointer,
    which moves behind it when its request is accepted. Back-pressure: whoever is not chosen, or chosen and not
    accepted, sees ``req_ready`` low and keeps asking; responses are always taken. Reset: pointer 0, engine as `Lookup`.

    - ``member[i]``: requests and responses of input unit i, its tags are numbers of VCs.
    - ``control``: register bus of the engine, and its TCAM port if the TCAM is outside.

    Parameters
    ----------
    params : RouterParams
        The router.
    members : int
        Input ports that the engine serves, 1 to ``params.ports_per_engine``.
    engine : callable
        Makes the engine, `lookup_engine`; a proof puts free signals in its place.

    Attributes
    ----------
    turn : RoundRobin
        The choice.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.
    """

    member: Sequence[Any]
    control: Any

    def __init__(self, *, params: RouterParams, members: int, engine: Callable[..., wiring.Component] = lookup_engine):
        if not 1 <= members <= params.ports_per_engine:
            raise ValueError(f"members must be in 1 to ports_per_engine={params.ports_per_engine}, not {members}")
        if params.lookup is None:
            raise ValueError("params must be those of a router with rc='lookup'")
        self.params = params
        self.members = members
        self._engine = engine
        self.turn = RoundRobin(width=members)
        super().__init__(
            {
                "member": In(asking_signature(params)).array(members),
                "control": Out(control_signature(params.lookup)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Put the engine behind the choice."""
        m = Module()
        p, members = self.params, self.member
        assert p.lookup is not None
        m.submodules.engine = engine = cast(LookupBase, self._engine(params=p.lookup))
        m.submodules.turn = turn = self.turn
        for name, member in self.control.signature.members.items():
            outside, inside = getattr(self.control, name), getattr(engine, name)
            m.d.comb += inside.eq(outside) if member.flow == In else outside.eq(inside)
        vc_bits = ceil_log2(p.vcs)  # of a tag; those of the member are above
        tags = [
            Cat(member.req_tag[:vc_bits], Const(number, max(1, ceil_log2(p.ports_per_engine))))
            for number, member in enumerate(members)
        ]
        m.d.comb += [
            turn.requests.eq(Cat(member.req_valid for member in members)),
            turn.advance.eq(engine.req_valid & engine.req_ready),
            engine.req_valid.eq(turn.requests.any()),
            engine.req_dst.eq(turn.select([member.req_dst for member in members])),
            engine.req_tag.eq(turn.select(tags)),
            engine.resp_ready.eq(Cat(member.resp_ready for member in members).all()),
        ]
        whose = engine.resp_tag[vc_bits:]
        for number, member in enumerate(members):
            m.d.comb += [
                member.req_ready.eq(turn.grant[number] & engine.req_ready),
                member.resp_valid.eq(engine.resp_valid & (whose == number)),
                member.resp_tag.eq(engine.resp_tag[:vc_bits]),
                member.resp_output.eq(engine.resp_output),
                member.resp_match.eq(engine.resp_match),
            ]
        return m
