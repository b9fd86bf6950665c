"""A network of routers with a host at every port, for a board."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring

from hopforge.hw.boards.on_board import OnBoard
from hopforge.hw.network.network import Network
from hopforge.hw.network.traffic_host import HOST_COUNTERS, TrafficHost
from hopforge.model.board.random_words import SPREAD
from hopforge.model.board.registers import BoardIdentity
from hopforge.model.lookup.csr import WORD_BITS
from hopforge.model.router.links import End, Link
from hopforge.model.router.params import RouterParams

__all__ = ["NetworkOnBoard"]


class NetworkOnBoard(OnBoard):
    """Design "network" of docs/definitions/board-protocol.md. Reset: empty.

    Parameters
    ----------
    routers, links, hosts
        As for `hopforge.hw.network.network.Network`; routes from tables.
    identity : BoardIdentity
        What the board says that it is.
    """

    def __init__(
        self, *, routers: Sequence[RouterParams], links: Sequence[Link], hosts: Sequence[End], identity: BoardIdentity
    ):
        self.network = Network(routers=routers, links=links, hosts=hosts)
        super().__init__(identity=identity, bus_bits=len(self.network.csr.addr))
        count = len(hosts)
        self.hosts = [TrafficHost(params=routers[end.router], number=h, hosts=count) for h, end in enumerate(hosts)]

    @property
    def inner_rdata(self) -> Value:
        """Word of the routers' bus."""
        return self.network.csr.rdata

    def design(self, m: Module, platform: object) -> Mapping[str, Value]:
        """Build network and hosts."""
        m.submodules.network = network = self.network
        m.d.comb += [
            network.csr.addr.eq(self.addr),
            network.csr.wdata.eq(self.wdata),
            network.csr.we.eq(self.inner_we),
            network.csr.re.eq(self.inner_re),
        ]
        kept = self.kept
        start = Signal()  # a cycle later, from a register: it goes to every host
        m.d.sync += start.eq(self.start)
        for number, host in enumerate(self.hosts):
            m.submodules[f"host{number}"] = host
            wiring.connect(m, network.host[number], host.channel)
            m.d.comb += [
                host.start.eq(start),
                host.seed.eq(kept["SEED"] ^ Const(number * SPREAD % (1 << WORD_BITS), WORD_BITS)),
                host.count.eq(kept["COUNT"]),
                host.period.eq(kept["PERIOD"]),
                host.lengths.eq(kept["LENGTHS"]),
            ]
        self._end(m, start)
        shown = {}
        for name in HOST_COUNTERS:
            word = Signal(WORD_BITS, name=f"shown_{name}")
            with m.Switch(kept["HOST"]):
                for number, host in enumerate(self.hosts):
                    with m.Case(number):
                        m.d.sync += word.eq(getattr(host, name))
                with m.Default():
                    m.d.sync += word.eq(0)
            shown[name.upper()] = word
        return shown

    def _end(self, m: Module, start: Signal) -> None:
        """End a run a cycle after all is sent and nothing is under way; the look at all of it takes long."""
        going, begun, settled = Signal(), Signal(), Signal()
        flying = Signal(WORD_BITS)
        over = Cat(host.done for host in self.hosts).all() & (flying == 0)
        m.d.comb += [
            self.running.eq(start | (going & ~settled)),
            self.counting.eq(begun & ~settled),
            self.refused.eq(Cat(host.refuses for host in self.hosts).any()),
        ]
        m.d.sync += [begun.eq(going), settled.eq(going & over)]
        m.d.sync += flying.eq(flying + sum(h.sends for h in self.hosts) - sum(h.taken for h in self.hosts))
        with m.If(start):
            m.d.sync += going.eq(1)
        with m.Elif(settled):
            m.d.sync += going.eq(0)
