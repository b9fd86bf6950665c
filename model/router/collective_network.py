"""Golden model of a plane of collective units: units, links of some cycles, hosts at the ends."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from hopforge.model.router.collective_params import Flit, PlaneParams
from hopforge.model.router.collective_unit import CollectiveUnit
from hopforge.model.router.links import End, Link

__all__ = ["CollectiveNetwork"]


class CollectiveNetwork:
    """Units and the links between them; a host stands at the port of its unit itself.

    A link of latency L carries in cycle x + L − 1 what stood at its source in cycle x, credits in the other direction
    as slowly. Units where nothing happens cost no time.

    Parameters
    ----------
    params : PlaneParams
        Of all units.
    ports : sequence of int
        Ports of each unit.
    links : sequence of Link
        At most one to and one from each port.
    hosts : sequence of End
        The port of each host.
    host_cycles : int
        Latency of the links to the hosts.
    """

    def __init__(
        self, params: PlaneParams, ports: Sequence[int], links: Sequence[Link], hosts: Sequence[End],
        host_cycles: int = 1,
    ) -> None:  # fmt: skip
        self.params = params
        self.units = [CollectiveUnit(params, count) for count in ports]
        self.to = {link.source: (link.target, link.latency_cycles - 1) for link in links}
        self.back = {link.target: (link.source, link.latency_cycles - 1) for link in links}
        self.hosts = tuple(hosts)
        self.host_at = {end: host for host, end in enumerate(hosts)}
        self.host_delay = host_cycles - 1
        self.now = 0
        #: cycle → unit → port → what stands at its input
        self._flits: dict[int, dict[int, dict[int, Flit]]] = defaultdict(lambda: defaultdict(dict))
        self._credits: dict[int, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
        #: cycle → host → what it gets
        self._results: dict[int, dict[int, Flit]] = defaultdict(dict)
        self._returned: dict[int, dict[int, int]] = defaultdict(dict)
        self._awake: set[int] = set()

    def outputs(self) -> tuple[dict[int, Flit], dict[int, int]]:
        """Return what stands at the hosts in this cycle: flits, and credits with a bit for each group."""
        for number in self._awake:
            unit = self.units[number]
            for port, (flit, credit) in enumerate(zip(unit.out, unit.credit, strict=True)):
                if flit is not None:
                    self._send(End(number, port), flit)
                if credit:
                    self._return(End(number, port), credit)
        return self._results.pop(self.now, {}), self._returned.pop(self.now, {})

    def _send(self, end: End, flit: Flit) -> None:
        if end in self.host_at:
            self._results[self.now + self.host_delay][self.host_at[end]] = flit
        elif end in self.to:
            target, delay = self.to[end]
            self._flits[self.now + delay][target.router][target.port] = flit

    def _return(self, end: End, credit: int) -> None:
        if end in self.host_at:
            self._returned[self.now + self.host_delay][self.host_at[end]] = credit
        elif end in self.back:
            source, delay = self.back[end]
            self._credits[self.now + delay][source.router][source.port] = credit

    def cycle(
        self,
        flits: Mapping[int, Flit],
        credits: Mapping[int, int],
        write: tuple[int, int, int, int] | None = None,
    ) -> None:
        """Go on to the next cycle, once `outputs` was asked.

        Parameters
        ----------
        flits, credits : mapping
            What hosts send in this cycle.
        write : tuple of int, optional
            Unit, group, children, parent.
        """
        for host, flit in flits.items():
            end = self.hosts[host]
            self._flits[self.now + self.host_delay][end.router][end.port] = flit
        for host, credit in credits.items():
            end = self.hosts[host]
            self._credits[self.now + self.host_delay][end.router][end.port] = credit
        arrived, given = self._flits.pop(self.now, {}), self._credits.pop(self.now, {})
        busy = self._awake | set(arrived) | set(given) | (set() if write is None else {write[0]})
        for number in busy:
            tree = write[1:] if write is not None and write[0] == number else None
            self.units[number].cycle(arrived.get(number, {}), given.get(number, {}), tree)
        self._awake = {number for number in busy if not self.units[number].idle}
        self.now += 1
