"""Request of an input virtual channel for the switch, foreseen for inputs that choose a cycle ahead."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hopforge.hw.allocation.switch_request import SwitchRequest

__all__ = ["ForeseenRequest"]


class ForeseenRequest(SwitchRequest):
    """`SwitchRequest` that says early whether the VC will be in turn in the next cycle (``sa`` input_ahead).

    ``next_granted``: if it is granted in this cycle, ``next_kept``: if it stays as it is, ``next_drained``: if it
    drains a flit. None of them waits for the grant.

    Parameters
    ----------
    ports, vcs : int
        Ports of the router, virtual channels of a port.
    """

    next_granted: Signal
    next_kept: Signal
    next_drained: Signal

    def _more_members(self) -> dict[str, wiring.Member]:
        return {name: Out(1) for name in ("next_granted", "next_kept", "next_drained")}

    def elaborate(self, platform: object) -> Module:
        """Prepare the requests of the next cycle, and tell of them."""
        m = Module()
        left, waits, credit_left, kept = self._request(m)
        m.d.comb += [
            self.next_granted.eq(left & Mux(self.tail, self.enable, credit_left)),
            self.next_kept.eq(waits & kept),
            self.next_drained.eq(self.tail & left & self.enable),
        ]
        return m
