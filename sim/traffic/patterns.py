"""Where packets go: synthetic traffic patterns as small jitted functions over a table.

A pattern is ``pattern(host, number, net, table) -> destination host``; `number` counts the packets of the host from 0.
`PATTERNS` maps a name to ``prepare(topology, options, generator) -> TrafficPlan``. Bits of a host number: b =
log2(hosts), bit 0 lowest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.kernel.compile import kernel
from hopforge.model.kernel.memory import words
from hopforge.model.kernel.rng import next_below, next_float
from hopforge.model.network.core.net_record import PATTERN_SIGNATURE, Net
from hopforge.model.network.core.user_code import is_ours, jit_when_used
from hopforge.model.topology import Topology
from hopforge.model.topology.groups import GROUPED_KINDS, router_groups

#: most entries of the table of a pattern, whose index has 32 bits
_MOST_ENTRIES = 2**31 - 1


class TrafficError(UserError, ValueError):
    """Traffic that does not fit the network: names the key, the limit and the value."""


@dataclass(frozen=True)
class TrafficPlan:
    """A pattern made ready for one network.

    Attributes
    ----------
    pattern : jitted function
        See the module.
    table : ndarray, int32
        Its data.
    silent : ndarray of bool, optional
        Hosts that send nothing.
    round_packets : tuple of int
        Fewest and most packets of a round (``source: rounds``): one for each partner of a host.
    """

    pattern: Any
    table: NDArray[np.int32]
    silent: NDArray[np.bool_] | None = None
    round_packets: tuple[int, int] = (1, 1)


#: name → prepare(topology, options, generator)
PATTERNS: dict[str, Callable[[Topology, dict[str, Any], np.random.Generator], TrafficPlan]] = {}


def register(name: str) -> Callable[[Callable[..., TrafficPlan]], Callable[..., TrafficPlan]]:
    """Enter the decorated ``prepare`` function in `PATTERNS` as `name`."""

    def enter(prepare: Callable[..., TrafficPlan]) -> Callable[..., TrafficPlan]:
        PATTERNS[name] = prepare
        return prepare

    return enter


def destination_rule(function: Callable[..., int]) -> Any:
    """Jit a pattern with the signature that the kernel calls (its machine code is kept on disk).

    That of a user's file is compiled by `sim.traffic.guard`, with checks.
    """
    return _of_ours(function) if is_ours(function) else jit_when_used(function)


@cache
def _of_ours(function: Callable[..., int]) -> Any:
    return kernel(PATTERN_SIGNATURE)(function)


@njit
def draw_host(net: Net, host: int, bound: int) -> int:
    """Random integer in [0, bound) from the stream of `host`, for use inside patterns."""
    return next_below(words(net.host_rng), host, bound)


@njit
def draw_share(net: Net, host: int) -> float:
    """Random float in [0, 1) from the stream of `host`."""
    return next_float(words(net.host_rng), host)


def _uniform(host: int, number: int, net: Any, table: Any) -> int:
    return draw_host(net, host, table[0])


def _uniform_others(host: int, number: int, net: Any, table: Any) -> int:
    chosen = draw_host(net, host, table[0] - 1)
    return chosen + 1 if chosen >= host else chosen


def _table(host: int, number: int, net: Any, table: Any) -> int:
    return table[host]


def _one_of_list(host: int, number: int, net: Any, table: Any) -> int:
    # table: beginning and end of the list of each host, then the lists
    first, last = table[2 * host], table[2 * host + 1]
    return table[first + draw_host(net, host, last - first)]


def _in_turn(host: int, number: int, net: Any, table: Any) -> int:
    first, last = table[2 * host], table[2 * host + 1]
    return table[first + number % (last - first)]


def _mixed(host: int, number: int, net: Any, table: Any) -> int:
    # table: hosts, share in 2^-30, then as in `_one_of_list`: with the share one of the list, else uniform
    if draw_share(net, host) * 1073741824.0 < table[1]:
        first, last = table[2 + 2 * host], table[3 + 2 * host]
        return table[first + draw_host(net, host, last - first)]
    return draw_host(net, host, table[0])


def _lists(lists: list[NDArray[Any]], offset: int = 0) -> NDArray[np.int32]:
    """Beginning and end of the list of each host, then the lists, shared ones once; `offset` entries stand before."""
    own = {id(one): one for one in lists}
    begins = np.cumsum([2 * len(lists) + offset, *(len(one) for one in own.values())])
    if begins[-1] > _MOST_ENTRIES:
        raise TrafficError(
            f"traffic.pattern: the lists of all hosts together must have at most {_MOST_ENTRIES} entries, "
            f"not {begins[-1]}"
        )
    begin = dict(zip(own, begins.tolist(), strict=False))
    index = [(begin[id(one)], begin[id(one)] + len(one)) for one in lists]
    return np.concatenate([np.array(index).ravel(), *own.values()]).astype(np.int32)


def _bits(topology: Topology, name: str) -> int:
    bits = topology.hosts.bit_length() - 1
    if topology.hosts != 1 << bits:
        raise TrafficError(f"traffic.pattern {name} needs a power of two of hosts, not {topology.hosts}")
    return bits


def permutation_plan(destination: NDArray[Any]) -> TrafficPlan:
    """Return the plan of hosts that always send to the same one."""
    return TrafficPlan(destination_rule(_table), destination.astype(np.int32))


def one_of_list_plan(lists: list[NDArray[Any]]) -> TrafficPlan:
    """Return the plan of hosts that draw each destination from a list of their own."""
    return TrafficPlan(destination_rule(_one_of_list), _lists(lists))


def mixed_plan(share: float, lists: list[NDArray[Any]]) -> TrafficPlan:
    """Return the plan of hosts that draw from a list of their own with probability `share`, else among all hosts."""
    head = np.array([len(lists), round(share * (1 << 30))])
    table = np.concatenate([head, _lists(lists, offset=2)])
    return TrafficPlan(destination_rule(_mixed), table.astype(np.int32))


@register("uniform")
def prepare_uniform(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Every host equally likely, the sender itself included (``include_self``)."""
    with_self = options.get("include_self", True)
    if not with_self and topology.hosts < 2:
        raise TrafficError(f"traffic.include_self: false needs at least 2 hosts, not {topology.hosts}")
    rule = _uniform if with_self else _uniform_others
    return TrafficPlan(destination_rule(rule), np.array([topology.hosts], np.int32))


def _register_bit_pattern(name: str, meaning: str, function: Callable[[NDArray[Any], int], NDArray[Any]]) -> None:
    def prepare(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
        return permutation_plan(function(np.arange(topology.hosts), _bits(topology, name)))

    prepare.__doc__ = meaning
    PATTERNS[name] = prepare


def _reverse(s: NDArray[Any], b: int) -> NDArray[Any]:
    return np.array([int(format(x, f"0{b}b")[::-1], 2) if b else 0 for x in s.tolist()])


_register_bit_pattern("bit_complement", "d_i = not s_i.", lambda s, b: ~s & ((1 << b) - 1))
_register_bit_pattern("bit_reverse", "d_i = s_(b−1−i).", _reverse)
_register_bit_pattern("shuffle", "Rotate left by one.", lambda s, b: ((s << 1) | (s >> max(b - 1, 0))) & ((1 << b) - 1))
_register_bit_pattern("bit_rotation", "Rotate right by one.", lambda s, b: (s >> 1) | ((s & 1) << max(b - 1, 0)))
_register_bit_pattern(
    "butterfly",
    "Exchange the highest and the lowest bit.",
    lambda s, b: s if b < 2 else (s & ~((1 << (b - 1)) | 1)) | ((s & 1) << (b - 1)) | (s >> (b - 1)),
)


@register("butterfly_stages")
def prepare_butterfly_stages(
    topology: Topology, options: dict[str, Any], generator: np.random.Generator
) -> TrafficPlan:
    """Host s sends to s with bit b exchanged, in turn for b = 0, 1, …: the stages of an FFT."""
    stages = 1 << np.arange(_bits(topology, "butterfly_stages"))
    if not len(stages):
        raise TrafficError(f"traffic.pattern butterfly_stages needs at least 2 hosts, not {topology.hosts}")
    return TrafficPlan(destination_rule(_in_turn), _lists([host ^ stages for host in range(topology.hosts)]))


@register("transpose")
def prepare_transpose(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Exchange the upper and the lower half of the digits: host x + k·y sends to y + k·x; k² hosts."""
    k = round(topology.hosts**0.5)
    if k * k != topology.hosts:
        raise TrafficError(f"traffic.pattern transpose needs a square number of hosts, not {topology.hosts}")
    s = np.arange(topology.hosts)
    return permutation_plan(s // k + k * (s % k))


@register("transpose3d")
def prepare_transpose3d(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """(x, y, z) sends to (y, z, x); k³ hosts."""
    k = round(topology.hosts ** (1 / 3))
    if k**3 != topology.hosts:
        raise TrafficError(f"traffic.pattern transpose3d needs a cubic number of hosts, not {topology.hosts}")
    s = np.arange(topology.hosts)
    x, y, z = s % k, s // k % k, s // (k * k)
    return permutation_plan(y + k * z + k * k * x)


def _coordinate_shift(topology: Topology, name: str, shift: Callable[[int], int]) -> TrafficPlan:
    if topology.kind not in ("mesh", "torus"):
        return permutation_plan((np.arange(topology.hosts) + shift(topology.hosts)) % topology.hosts)
    c = topology.hosts // topology.routers
    s = np.arange(topology.hosts)
    router, terminal = s // c, s % c
    goal, weight = np.zeros_like(s), 1
    for k in topology.params["radices"]:
        goal += (router // weight % k + shift(int(k))) % k * weight
        weight *= int(k)
    return permutation_plan(goal * c + terminal)


@register("tornado")
def prepare_tornado(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """⌈k/2⌉ − 1 hops further in every dimension (other networks: of the host number)."""
    return _coordinate_shift(topology, "tornado", lambda k: (k + 1) // 2 - 1)


@register("neighbour")
def prepare_neighbour(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """One hop further in every dimension (other networks: of the host number)."""
    return _coordinate_shift(topology, "neighbour", lambda k: 1 % k)


@register("permutation")
def prepare_permutation(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Draw a random permutation once from the seed."""
    return permutation_plan(generator.permutation(topology.hosts))


@register("destinations")
def prepare_destinations(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Send from every host to the one that the list ``destinations`` names."""
    goals = np.array(options.get("destinations") or (), np.int64)
    if len(goals) != topology.hosts:
        raise TrafficError(f"traffic.destinations must name one host for each of {topology.hosts}, not {len(goals)}")
    if goals.max() >= topology.hosts:
        raise TrafficError(f"traffic.destinations must be hosts from 0 to {topology.hosts - 1}, not {goals.max()}")
    return permutation_plan(goals)


def _share(options: dict[str, Any]) -> float:
    return float(options.get("share", 0.5))


@register("hotspot")
def prepare_hotspot(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """With probability ``share`` (β) one of ``targets`` (default: the last host), else uniform."""
    targets = np.array(options.get("targets") or [topology.hosts - 1])
    if targets.min() < 0 or targets.max() >= topology.hosts:
        raise TrafficError(f"traffic.targets must be hosts from 0 to {topology.hosts - 1}, not {targets.tolist()}")
    return mixed_plan(_share(options), [targets] * topology.hosts)


@register("local")
def prepare_local(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """With probability ``share`` (γ) a host of this or a neighbouring router (dragonfly: the group), else uniform."""
    lists = []
    for host in range(topology.hosts):
        router = int(topology.host_router[host])
        if topology.kind == "dragonfly":
            a = int(topology.params["a"])
            near = np.arange(router // a * a, router // a * a + a)
        else:
            near = np.unique([router, *(int(q) for q in topology.peer_router[router] if q >= 0)])
        lists.append(np.flatnonzero(np.isin(topology.host_router, near)))
    return mixed_plan(_share(options), lists)


@register("adversarial")
def prepare_adversarial(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """ADV+i on a network of groups: a random host of group G + ``shift``."""
    if topology.kind not in GROUPED_KINDS:
        kinds = f"{', '.join(GROUPED_KINDS[:-1])} or {GROUPED_KINDS[-1]}"
        raise TrafficError(f"traffic.pattern adversarial needs a topology of kind {kinds}, not {topology.kind}")
    groups = router_groups(topology)
    assert groups is not None, "all of these kinds have groups"
    group = groups[topology.host_router]
    goal = (group + int(options.get("shift", 1))) % (int(groups[-1]) + 1)
    inside = [np.flatnonzero(group == x) for x in range(int(groups[-1]) + 1)]
    return one_of_list_plan([inside[x] for x in goal.tolist()])


@register("stencil")
def prepare_stencil(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """Send to the neighbours on a wrapped grid of hosts ``grid`` (x fastest), in turn."""
    grid = [int(k) for k in options.get("grid") or ()]
    if int(np.prod(grid)) != topology.hosts or not grid:
        raise TrafficError(f"traffic.grid must have as many points as hosts ({topology.hosts}), not {grid}")
    lists = []
    for host in range(topology.hosts):
        near, weight = [], 1
        for k in grid:
            x = host // weight % k
            near += [host + ((x + 1) % k - x) * weight, host + ((x - 1) % k - x) * weight]
            weight *= k
        lists.append(np.array(near))
    return TrafficPlan(destination_rule(_in_turn), _lists(lists), round_packets=(2 * len(grid),) * 2)


@register("many_to_many")
def prepare_many_to_many(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """All-to-all inside lines of ``line`` hosts whose numbers differ by hosts / line (Z lines of a grid), in turn."""
    line = int(options.get("line", 0))
    if line < 2 or topology.hosts % line:
        raise TrafficError(f"traffic.line must divide the {topology.hosts} hosts and be at least 2, not {line}")
    step = topology.hosts // line
    lists = []
    for host in range(topology.hosts):
        mates = host % step + step * np.arange(line)
        lists.append(np.roll(mates, -(host // step))[1:])
    return TrafficPlan(destination_rule(_in_turn), _lists(lists), round_packets=(line - 1,) * 2)


@register("random_neighbours")
def prepare_random_neighbours(
    topology: Topology, options: dict[str, Any], generator: np.random.Generator
) -> TrafficPlan:
    """``low`` … ``high`` partners (6 … 20): each host draws them once and sends to a random one of them.

    With ``partners: each_round`` it draws how many, and each of them among all others, anew in each round.
    """
    low, high = int(options.get("low", 6)), int(options.get("high", 20))
    if not 1 <= low <= high < topology.hosts:
        raise TrafficError(
            f"traffic.low and high must satisfy 1 ≤ low ≤ high < {topology.hosts} hosts, not {low} and {high}"
        )
    if options.get("partners") == "each_round":
        return TrafficPlan(
            destination_rule(_uniform_others), np.array([topology.hosts], np.int32), round_packets=(low, high)
        )
    lists = []
    for host in range(topology.hosts):
        others = np.delete(np.arange(topology.hosts), host)
        lists.append(generator.choice(others, size=int(generator.integers(low, high + 1)), replace=False))
    return one_of_list_plan(lists)


@register("all_to_all")
def prepare_all_to_all(topology: Topology, options: dict[str, Any], generator: np.random.Generator) -> TrafficPlan:
    """All other hosts in turn: ``order`` cyclic (from the next number on) or random (one order per host)."""
    if topology.hosts < 2:
        raise TrafficError(f"traffic.pattern all_to_all needs at least 2 hosts, not {topology.hosts}")
    lists = [np.roll(np.arange(topology.hosts), -host)[1:] for host in range(topology.hosts)]
    if options.get("order", "cyclic") == "random":
        lists = [generator.permutation(one) for one in lists]
    rounds = (topology.hosts - 1,) * 2
    return TrafficPlan(destination_rule(_in_turn), _lists(lists), round_packets=rounds)
