"""Files as SST writes them, of the networks that Merlin's Python builds: written anew from its rules."""

import json
from itertools import pairwise, product
from typing import Any

ROUTER = {
    "link_bw": "4GB/s", "flit_size": "8B", "xbar_bw": "40GB/s", "input_latency": "20ns", "output_latency": "10ns",
    "input_buf_size": "2560B", "output_buf_size": "1280B", "xbar_arb": "merlin.xbar_arb_lru",
}  # fmt: skip
LOAD = {
    "offered_load": "0.3", "message_size": "128B", "link_bw": "4GB/s", "warmup_time": "2us", "collect_time": "30us",
}  # fmt: skip


class Machine:
    """Routers, hosts and links of a file."""

    def __init__(self, kind: str, **params: object) -> None:
        self.kind, self.params = kind, {key: str(value) for key, value in params.items()}
        self.routers = 0
        self.hosts: list[tuple[int, int]] = []
        self.links: list[tuple[int, int, int, int, str]] = []
        self.pattern: tuple[str, dict[str, str]] = ("merlin.targetgen.uniform", {})
        self.load = dict(LOAD)
        self.router = dict(ROUTER)
        self._open: dict[str, tuple[int, int]] = {}

    def end(self, name: str, router: int, port: int, latency: str = "30ns") -> None:
        """Add an end of a link; the second one of a name makes it."""
        if name in self._open:
            self.links.append((*self._open.pop(name), router, port, latency))
        else:
            self._open[name] = (router, port)

    def data(self) -> dict[str, Any]:
        """Return what the file holds."""
        assert not self._open
        components: list[dict[str, Any]] = [
            {
                "name": f"rtr_{router}", "type": "merlin.hr_router", "params": {**self.router, "id": str(router)},
                "subcomponents": [
                    {"slot_name": "topology", "slot_number": 0, "type": f"merlin.{self.kind}", "params": self.params}
                ],
            }
            for router in range(self.routers)
        ]  # fmt: skip
        links = []
        for host, (router, port) in enumerate(self.hosts):
            inner = {"slot_name": "networkIF", "slot_number": 0, "type": "merlin.linkcontrol"}
            chosen = {"slot_name": "pattern", "slot_number": 0, "type": self.pattern[0], "params": self.pattern[1]}
            components.append({
                "name": f"offered_load_{host}", "type": "merlin.offered_load", "params": {"id": str(host)},
                "params_shared_sets": ["job"], "subcomponents": [inner, chosen],
            })  # fmt: skip
            links.append(_link(f"nic_{host}", f"offered_load_{host}:networkIF", "rtr_port", f"rtr_{router}",
                               f"port{port}", "10ns"))  # fmt: skip
        for number, (a, at, b, to, latency) in enumerate(self.links):
            links.append(_link(f"link_{number}", f"rtr_{a}", f"port{at}", f"rtr_{b}", f"port{to}", latency))
        return {
            "program_options": {"verbose": "0"}, "shared_params": {"job": self.load}, "statistics_options": {},
            "components": components, "statistics_group": None, "links": links,
        }  # fmt: skip

    def text(self) -> str:
        return json.dumps(self.data(), indent=2)


def _link(name: str, a: str, at: str, b: str, to: str, latency: str) -> dict[str, Any]:
    left = {"component": a, "port": at, "latency": latency}
    right = {"component": b, "port": to, "latency": latency}
    return {"name": name, "noCut": False, "nonlocal": False, "left": left, "right": right}


def grid(kind: str, sizes: list[int], hosts: int, width: int = 1) -> Machine:
    """A mesh or torus: ports + and − of each dimension, `width` of them, then those of the hosts."""
    made = Machine(kind, shape="x".join(map(str, sizes)), width="x".join([str(width)] * len(sizes)), local_ports=hosts)
    places = [place[::-1] for place in product(*(range(size) for size in sizes[::-1]))]
    made.routers = len(places)
    for number, place in enumerate(places):
        port = 0
        for dim, size in enumerate(sizes):
            for step in (1, -1):
                there = place[dim] + step
                if kind == "torus" or 0 <= there < size:
                    other = (*place[:dim], there % size, *place[dim + 1 :])
                    ends = (place, other) if step == 1 else (other, place)
                    for k in range(width):
                        made.end(f"{ends}{k}", number, port + k)
                port += width
        made.hosts += [(number, port + host) for host in range(hosts)]
    return made


def hyperx(sizes: list[int], hosts: int, algorithm: str = "DOR") -> Machine:
    made = Machine("hyperx", shape="x".join(map(str, sizes)), width="x".join("1" for _ in sizes), local_ports=hosts,
                   algorithm=algorithm)  # fmt: skip
    places = [place[::-1] for place in product(*(range(size) for size in sizes[::-1]))]
    made.routers = len(places)
    for number, place in enumerate(places):
        port = 0
        for dim, size in enumerate(sizes):
            for there in range(size):
                if there != place[dim]:
                    made.end(str(sorted([place, (*place[:dim], there, *place[dim + 1 :])])), number, port)
                    port += 1
        made.hosts += [(number, port + host) for host in range(hosts)]
    return made


def dragonfly(
    p: int, a: int, g: int, between: int, routes: str = "absolute", algorithm: str = "minimal", far: str = "100ns"
) -> Machine:
    """Groups of `a` routers, `between` links for each pair of groups, dealt to the routers in order."""
    each = -(-(g - 1) * between // a)
    made = Machine("dragonfly", hosts_per_router=p, routers_per_group=a, intergroup_links=between, num_groups=g,
                   intergroup_per_router=each, algorithm=algorithm, global_routes=routes)  # fmt: skip
    made.routers = a * g
    empty = each * a - (g - 1) * between  # so many routers, the last ones, have a link less
    dealt = [router * each - max(0, router - (a - empty)) for router in range(a + 1)]
    for group, router in product(range(g), range(a)):
        number, port = group * a + router, p
        made.hosts += [(number, host) for host in range(p)]
        for other in range(a):
            if other != router:
                made.end(f"{group} {sorted([other, router])}", number, port)
                port += 1
        for k in range(dealt[router + 1] - dealt[router]):
            link, target = divmod(dealt[router] + k, g - 1)
            target = target + (target >= group) if routes == "absolute" else (target + group + 1) % g
            made.end(f"global {sorted([group, target])} {link}", number, port + k, far)
    return made


def fat_tree(downs: list[int], ups: list[int]) -> Machine:
    """Groups of switches: each has a link to each router of the group above it, dealt in turn."""
    shape = ":".join([f"{down},{up}" for down, up in zip(downs, ups, strict=False)] + [str(downs[-1])])
    made = Machine("fattree", shape=shape, routing_alg="adaptive")
    hosts = 1
    for down in downs:
        hosts *= down
    counts = [hosts // downs[0]]
    for up, down in zip(ups, downs[1:], strict=True):
        counts.append(counts[-1] * up // down)
    starts = [sum(counts[:level]) for level in range(len(counts))]
    groups = [hosts // downs[0]]
    for down in downs[1:-1]:
        groups.append(groups[-1] // down)
    groups.append(1)
    made.routers = sum(counts)
    made.hosts = [(host // downs[0], host % downs[0]) for host in range(hosts)]
    for low, high in pairwise(range(len(downs))):
        of_high, of_low = counts[high] // groups[high], counts[low] // groups[low]
        for group, router, child in product(range(groups[high]), range(of_high), range(downs[high])):
            name = f"{high} {group} {router} {child}"
            made.end(name, starts[high] + group * of_high + router, child)
            below = starts[low] + (group * downs[high] + child) * of_low + router % of_low
            made.end(name, below, downs[low] + router // of_low)
    return made


def graph(edges: list[tuple[int, int]], homes: list[int]) -> Machine:
    """Any graph: ports of the links first."""
    made = Machine("anytopo", num_routers=1 + max(map(max, edges)))
    made.routers = 1 + max(map(max, edges))
    used = [0] * made.routers
    for number, (a, b) in enumerate(edges):
        for router in (a, b):
            made.end(str(number), router, used[router])
            used[router] += 1
    for router in homes:
        made.hosts.append((router, used[router]))
        used[router] += 1
    return made
