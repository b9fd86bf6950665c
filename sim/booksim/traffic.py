"""Traffic of BookSim 2: pattern, packets and injection as sections `traffic` and `simulation`."""

import re
from math import gcd
from typing import Any

from hopforge.sim.booksim.keys import Settings, items, with_parameters
from hopforge.sim.booksim.random_numbers import draw_permutation
from hopforge.sim.booksim.supplement import Supplement

_SAME = {
    "uniform": {"pattern": "uniform"}, "bitcomp": {"pattern": "bit_complement"},
    "transpose": {"pattern": "transpose"}, "bitrev": {"pattern": "bit_reverse"}, "shuffle": {"pattern": "shuffle"},
    "diagonal": {"pattern": "diagonal"}, "asymmetric": {"pattern": "asymmetric"}, "taper64": {"pattern": "taper64"},
}  # fmt: skip
_POWER_OF_TWO = ("bitcomp", "transpose", "bitrev", "shuffle")
_TAPERED_HOSTS = 64
_READ_WRITE = (
    "write_fraction", "read_request_begin_vc", "read_request_end_vc", "write_request_begin_vc", "write_request_end_vc",
    "read_reply_begin_vc", "read_reply_end_vc", "write_reply_begin_vc", "write_reply_end_vc", "read_request_subnet",
    "read_reply_subnet", "write_request_subnet", "write_reply_subnet", "read_request_size", "write_request_size",
    "read_reply_size", "write_reply_size",
)  # fmt: skip
_BURST = ("burst_alpha", "burst_beta", "burst_r1")
_MOST_FLITS = 65535
#: destinations in a configuration, which holds at most 1 MiB
_MOST_LISTED = 1 << 16


def translate_traffic(
    settings: Settings, hosts: int, beside: Supplement
) -> tuple[dict[str, Any], float]:
    """Translate pattern, packets and injection; return section `traffic` and the load in flits per host and cycle.

    Raises
    ------
    BooksimError
        What hopforge lacks, by its name.
    """
    settings.must_be("classes", 1, "hopforge has one class of traffic")
    settings.must_be("priority", "none", "hopforge's packets have no priorities")
    for key in ("use_read_write", "measure_stats"):
        value = _number(settings, key, 0 if key == "use_read_write" else 1)
        if key == "use_read_write" and value:
            settings.refuse(key, "hopforge does not translate BookSim's reads and writes; see traffic.reply")
        if key == "measure_stats" and not value:
            settings.refuse(key, "nothing would be measured")
    settings.no_effect("no reads and writes", *_READ_WRITE)
    traffic = _pattern(settings, hosts, beside)
    packets, mean = _packets(settings)
    load = _rate(settings) * (1.0 if settings.whole("injection_rate_uses_flits") else mean)
    return traffic | packets | _source(settings, load, mean), _checked_load(settings, load)


def _one(settings: Settings, key: str) -> list[str]:
    """Return the items of the first class of a list, none if the number counts."""
    classes = items(settings.text(key))
    if len(classes) > 1:
        settings.refuse(key, "hopforge has one class of traffic: one value, or {{a,b}} for sizes")
    return items(classes[0]) if classes else []


def _number(settings: Settings, key: str, least: int) -> int:
    """Return a whole number of at least 0 that may stand in a list of one."""
    found = _one(settings, key)
    if len(found) > 1 or (found and not found[0].isdecimal()):
        settings.refuse(key, "must be one whole number")
    return int(found[0][:9]) if found else settings.at_least(key, 0)


def _pattern(settings: Settings, hosts: int, beside: Supplement) -> dict[str, Any]:
    patterns = items(settings.text("traffic"))
    if len(patterns) != 1:
        settings.refuse("traffic", "hopforge has one class of traffic")
    name, parameters = with_parameters(patterns[0])
    if name not in ("tornado", "neighbor", "badperm_yarc") and settings.text("topology") not in ("flatfly", "cmesh"):
        settings.no_effect(f"traffic {name} has no such parameter", "xr")
    if beside.permutation is not None or name != "randperm" or parameters:
        given = "the permutation is given" if name == "randperm" else "for traffic randperm only"
        settings.no_effect(given, "perm_seed")
    if beside.permutation is not None:
        return _permutation(settings, name, hosts, beside.permutation)
    if name == "randperm":
        return _drawn_permutation(settings, parameters, hosts)
    if name in _POWER_OF_TWO:
        bits = hosts.bit_length() - 1
        if hosts != 1 << bits or (name == "transpose" and bits % 2):
            even = "an even " if name == "transpose" else "a "
            settings.refuse("traffic", f"BookSim needs {even}power of two of terminals, not {hosts}")
    if name == "asymmetric" and hosts % 2:
        settings.refuse("traffic", f"needs an even number of terminals, not {hosts}")
    if name == "taper64" and hosts != _TAPERED_HOSTS:
        settings.refuse("traffic", f"BookSim needs {_TAPERED_HOSTS} terminals, not {hosts}")
    if name in _SAME:
        return dict(_SAME[name])
    if name in ("tornado", "neighbor"):
        return _digit_shift(settings, name, parameters, hosts)
    if name == "bad_dragon":
        if parameters or settings.text("topology") != "dragonflynew":
            settings.refuse("traffic", "translated without parameters on topology dragonflynew only")
        return {"pattern": "adversarial", "shift": 1}
    if name == "badperm_yarc":
        return _column(settings, parameters, hosts)
    if name in ("hotspot", "background"):
        return _hotspot(settings, parameters, hosts) if name == "hotspot" else _background(settings, parameters, hosts)
    settings.refuse("traffic", "BookSim has no such pattern")


def _permutation(settings: Settings, name: str, hosts: int, goals: tuple[int, ...]) -> dict[str, Any]:
    if name != "randperm":
        settings.refuse("traffic", "a permutation (--permutation) is for randperm")
    if hosts > _MOST_LISTED:
        settings.refuse("traffic", f"{hosts} terminals are more than the {_MOST_LISTED} destinations that are written")
    if sorted(goals) != list(range(hosts)):
        settings.refuse("traffic", f"--permutation must name each terminal from 0 to {hosts - 1} once")
    return {"pattern": "destinations", "destinations": list(goals)}


def _digits(settings: Settings, parameters: list[str]) -> tuple[int, int, int]:
    """Return k, n, xr of a pattern on digits: its parameters, and the keys of that name for those that are missing."""
    if not all(one.isdecimal() and len(one) < 7 for one in parameters):
        settings.refuse("traffic", "its parameters k, n, xr must be whole numbers")
    asked = ("k", "n", "xr")[len(parameters) :]
    k, n, xr = ([int(one) for one in parameters] + [settings.whole(key) for key in asked])[:3]
    settings.has_effect(*asked)
    return k, n, xr


def _digit_shift(settings: Settings, name: str, parameters: list[str], hosts: int) -> dict[str, Any]:
    """Every digit of the terminal's number in base xr · k is moved on, n digits."""
    k, n, xr = _digits(settings, parameters)
    base = k * xr
    if n < 0 or base < 1 or base ** min(n, 64) > hosts:
        settings.refuse("traffic", f"(xr * k)^n = {base}^{n} is more than the {hosts} terminals")
    if settings.text("topology") in ("mesh", "torus") and not parameters and xr == 1:
        return {"pattern": "tornado" if name == "tornado" else "neighbour"}
    if hosts > _MOST_LISTED:
        settings.refuse("traffic", f"{hosts} terminals are more than the {_MOST_LISTED} destinations that are written")
    shift = (base + 1) // 2 - 1 if name == "tornado" else 1
    goals = []
    for source in range(hosts):
        goal, weight = 0, 1
        for _ in range(n):
            goal += weight * ((source // weight % base + shift) % base)
            weight *= base
        goals.append(goal)
    return {"pattern": "destinations", "destinations": goals}


def _hotspot(settings: Settings, parameters: list[str], hosts: int) -> dict[str, Any]:
    places = items(parameters[0]) if parameters else []
    if not places or not all(one.isdecimal() and len(one) < 10 and int(one) < hosts for one in places):
        settings.refuse("traffic", f"hot terminals must be given, {{0,…}} to {hosts - 1}: BookSim draws the others")
    rates = items(parameters[1]) if len(parameters) > 1 else ["1"]
    if not all(one.isdecimal() and len(one) < 7 and int(one) > 0 for one in rates):
        settings.refuse("traffic", "rates of hot terminals must be whole numbers from 1 to 999999")
    shares = [int(one) for one in rates + [rates[-1]] * len(places)][: len(places)]
    common = gcd(*shares)
    shares = [one // common for one in shares]
    if sum(shares) > _MOST_LISTED:
        settings.refuse("traffic", f"rates of hot terminals add up to {sum(shares)}, more than {_MOST_LISTED}")
    targets = [int(one) for one, share in zip(places, shares, strict=True) for _ in range(share)]
    return {"pattern": "hotspot", "share": 1.0, "targets": targets}


def _background(settings: Settings, parameters: list[str], hosts: int) -> dict[str, Any]:
    """Uniform traffic that leaves terminals out."""
    left_out = items(parameters[0]) if parameters else []
    if not left_out or not all(one.isdecimal() and len(one) < 10 and int(one) < hosts for one in left_out):
        settings.refuse("traffic", f"terminals that are left out must be given, {{0,…}} to {hosts - 1}")
    targets = sorted(set(range(hosts)) - {int(one) for one in left_out})
    if not 0 < len(targets) <= _MOST_LISTED:
        settings.refuse("traffic", f"{len(targets)} destinations remain; must be 1 to {_MOST_LISTED}")
    return {"pattern": "hotspot", "share": 1.0, "targets": targets}


def _column(settings: Settings, parameters: list[str], hosts: int) -> dict[str, Any]:
    """Any terminal of the column whose number is that of the row."""
    k, _, xr = _digits(settings, parameters)
    if (k * xr) ** 2 != hosts:
        settings.refuse("traffic", f"needs (xr * k)^2 = {(k * xr) ** 2} terminals, not {hosts}")
    return {"pattern": "badperm_yarc"}


def _drawn_permutation(settings: Settings, parameters: list[str], hosts: int) -> dict[str, Any]:
    """Draw the permutation with BookSim's random numbers."""
    if settings.text("perm_seed") == "time" and not parameters:
        settings.refuse("perm_seed", "time is another permutation each time; give what it drew with --permutation")
    if parameters and not re.fullmatch(r"-?[0-9]{1,9}", parameters[0]):
        settings.refuse("traffic", "its parameter, the seed, must be a whole number of at most 9 digits")
    if hosts > _MOST_LISTED:
        settings.refuse("traffic", f"{hosts} terminals are more than the {_MOST_LISTED} destinations that are written")
    seed = int(parameters[0]) if parameters else settings.whole("perm_seed")
    return {"pattern": "destinations", "destinations": draw_permutation(hosts, seed)}


def _packets(settings: Settings) -> tuple[dict[str, Any], float]:
    """Return keys about lengths, and the mean length."""
    sizes = [_whole(settings, "packet_size", one) for one in _one(settings, "packet_size")]
    if not sizes:
        sizes = [settings.at_least("packet_size", 1, _MOST_FLITS)]
    if len(sizes) == 1:
        settings.no_effect("packets of one size", "packet_size_rate")
        return {"packet_flits": sizes[0]}, float(sizes[0])
    rates = [_whole(settings, "packet_size_rate", one) for one in _one(settings, "packet_size_rate")]
    rates = rates or [settings.at_least("packet_size_rate", 1)]
    rates = (rates + [rates[-1]] * len(sizes))[: len(sizes)]
    mean = sum(size * rate for size, rate in zip(sizes, rates, strict=True)) / sum(rates)
    return {"packet_lengths": sizes, "packet_weights": rates}, mean


def _whole(settings: Settings, key: str, text: str) -> int:
    if not (text.isdecimal() and len(text) < 6 and 1 <= int(text) <= _MOST_FLITS):
        settings.refuse(key, f"{text} must be a whole number from 1 to {_MOST_FLITS}")
    return int(text)


def _rate(settings: Settings) -> float:
    """Return injection_rate, packets or flits per terminal and cycle."""
    found = _one(settings, "injection_rate")
    if not found:
        return settings.number("injection_rate")
    try:
        (rate,) = map(float, found)
    except ValueError:
        settings.refuse("injection_rate", "must be one number")
    return rate


def _checked_load(settings: Settings, load: float) -> float:
    if not 0 < load <= 1:  # also: not a number
        settings.refuse("injection_rate", f"offers {load:.6g} flits per host and cycle; hopforge takes loads in (0, 1]")
    return round(load, 12)


def _source(settings: Settings, load: float, mean: float) -> dict[str, Any]:
    processes = items(settings.text("injection_process"))
    name, parameters = with_parameters(processes[0]) if len(processes) == 1 else ("", [])
    if name == "bernoulli":
        settings.no_effect("injection_process bernoulli has no bursts", *_BURST)
        return {}
    settings.no_effect("injection_process says it in brackets", *_BURST[: len(parameters)])
    if name != "on_off" or len(parameters) > 3:
        settings.refuse("injection_process", "hopforge has bernoulli and on_off(alpha,beta,r1)")
    try:
        given = [float(one) for one in parameters]
    except ValueError:
        settings.refuse("injection_process", "its parameters alpha, beta, r1 must be numbers")
    missing = [-1.0 if key == "burst_r1" and settings.number(key) < 0 else settings.number(key)
               for key in _BURST[len(given):]]  # fmt: skip
    alpha, beta, r1 = given + missing
    if [alpha < 0, beta < 0, r1 < 0].count(True) != 1 or max(alpha, beta, r1) > 1:
        settings.refuse("injection_process", f"one of alpha, beta, r1 must be negative and none above 1: "
                                             f"{alpha:g}, {beta:g}, {r1:g}")  # fmt: skip
    packets = load / mean
    if r1 < 0:
        r1 = packets * (alpha + beta) / alpha if alpha else 2.0
    elif beta < 0:
        beta = alpha * (r1 - packets) / packets if packets else 2.0
    if not 0 < beta <= 1 or not packets < r1 or r1 * mean > 1:
        settings.refuse("injection_process", f"bursts of {r1 * mean:.6g} flits per cycle, ending with probability "
                                             f"{beta:.6g}, do not give a load of {load:.6g}")  # fmt: skip
    return {"source": "on_off", "burst_cycles": 1 / beta, "burst_load": r1 * mean}
