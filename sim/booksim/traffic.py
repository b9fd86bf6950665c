"""Traffic of BookSim 2: pattern, packets and injection as sections `traffic` and `simulation`."""

import re
from math import gcd
from typing import Any

from hopforge.model.config.traffic import CLASSES_MAX
from hopforge.sim.booksim import reads_writes
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
    classes = settings.at_least("classes", 1, CLASSES_MAX)
    settings.must_be("priority", "none", "hopforge's packets have no priorities")
    paired = reads_writes.asked(settings)
    if not paired:
        reads_writes.say_without_effect(settings)
    _say_without_effect(settings, classes, beside)
    measured = _numbers(settings, "measure_stats", classes)
    if not any(measured):
        settings.refuse("measure_stats", "nothing would be measured")
    if classes > 1:
        if not all(measured):
            settings.no_effect("every class has columns of its own", "measure_stats")
        return _classes(settings, hosts, beside, classes)
    traffic = _pattern(settings, 0, hosts, beside)
    if paired:
        packets, mean, counted = reads_writes.translate_reads_writes(settings)
    else:
        packets, mean = _packets(settings, 0)
        counted = mean
    load = _load(settings, 0, mean, counted)
    return traffic | packets | _source(settings, 0, load, mean), _checked_load(settings, load)


def _classes(settings: Settings, hosts: int, beside: Supplement, count: int) -> tuple[dict[str, Any], float]:
    """Translate several classes of traffic: each has a source of its own at every terminal, all have the same VCs."""
    settings.must_be("hold_switch_for_packet", 0, "with classes hopforge's hosts do not stay with that of a packet")
    if beside.permutation is not None:
        _check_permuted(settings, count)
    shared: dict[str, Any] = {}
    classes, loads = [], []
    for number in range(count):
        pattern, (packets, mean) = _pattern(settings, number, hosts, beside), _packets(settings, number)
        if "packet_flits" not in packets:
            settings.refuse("packet_size", "packets of a class have one size in hopforge")
        loads.append(_load(settings, number, mean, mean))
        if _source(settings, number, loads[-1], mean):
            settings.refuse("injection_process", "classes are bernoulli in hopforge")
        classes.append({"name": f"class{number}", "pattern": pattern.pop("pattern"), **packets})
        for key, value in pattern.items():
            if shared.setdefault(key, value) != value:
                settings.refuse("traffic", f"{key} of a pattern hold for all classes in hopforge; two of them differ")
    if min(loads) < 0:
        settings.refuse("injection_rate", "must not be negative")
    load = _checked_load(settings, sum(loads))
    for each, one in zip(classes, loads, strict=True):
        each.update({"share": one / sum(loads)} if one else {"load": 0.0})
    return {**shared, "classes": classes}, load


def _check_permuted(settings: Settings, count: int) -> None:
    """Refuse a given permutation unless classes draw one, and only one."""
    patterns = [with_parameters(_of_class(settings, "traffic", number) or "") for number in range(count)]
    other = settings.text("perm_seed") or str(settings.whole("perm_seed"))
    seeds = {parameters[0] if parameters else other for name, parameters in patterns if name == "randperm"}
    if not seeds:
        settings.refuse("traffic", "a permutation (--permutation) is for randperm")
    if len(seeds) > 1:
        settings.refuse("traffic", "classes draw several permutations (randperm); --permutation is one for all of them")


def _say_without_effect(settings: Settings, classes: int, beside: Supplement) -> None:
    """Say which keys no pattern of a class reads."""
    patterns = [with_parameters(_of_class(settings, "traffic", number) or "") for number in range(classes)]
    names = {name for name, _ in patterns}
    if not names & {"tornado", "neighbor", "badperm_yarc"} and settings.text("topology") not in ("flatfly", "cmesh"):
        settings.no_effect(f"traffic {', '.join(sorted(names))} has no such parameter", "xr")
    if "randperm" not in names:
        settings.no_effect("for traffic randperm only", "perm_seed")
    elif beside.permutation is not None:
        settings.no_effect("the permutation is given", "perm_seed")
    elif all(parameters for name, parameters in patterns if name == "randperm"):
        settings.no_effect("for traffic randperm only", "perm_seed")


def _of_class(settings: Settings, key: str, number: int) -> str | None:
    """Return the entry of a class in the list of a key, whose last one is for all others; None if there is no list."""
    entries = items(settings.text(key))
    return entries[min(number, len(entries) - 1)] if entries else None


def _one(settings: Settings, key: str, number: int) -> list[str]:
    """Return the items of a class in a list, none if the number counts."""
    return items(_of_class(settings, key, number) or "")


def _numbers(settings: Settings, key: str, classes: int) -> list[int]:
    """Return whole numbers of all classes, of at least 0, that may stand in a list."""
    entries = items(settings.text(key))
    if not entries:
        return [settings.at_least(key, 0)] * classes
    if not all(each.isdecimal() for each in entries):
        settings.refuse(key, "must be one whole number for each class")
    return [int(entries[min(number, len(entries) - 1)][:9]) for number in range(classes)]


def _pattern(settings: Settings, number: int, hosts: int, beside: Supplement) -> dict[str, Any]:
    name, parameters = with_parameters(_of_class(settings, "traffic", number) or "")
    if beside.permutation is not None and (name == "randperm" or settings.whole("classes") == 1):
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
        settings.refuse("traffic", "its parameters k, n, xr must be whole numbers, several of them as in ({4,2})")
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


def _packets(settings: Settings, number: int) -> tuple[dict[str, Any], float]:
    """Return keys about lengths, and the mean length."""
    sizes = [_whole(settings, "packet_size", one) for one in _one(settings, "packet_size", number)]
    if not sizes:
        sizes = [settings.at_least("packet_size", 1, _MOST_FLITS)]
    if len(sizes) == 1:
        settings.no_effect("packets of one size", "packet_size_rate")
        return {"packet_flits": sizes[0]}, float(sizes[0])
    rates = [_whole(settings, "packet_size_rate", one) for one in _one(settings, "packet_size_rate", number)]
    rates = rates or [settings.at_least("packet_size_rate", 1)]
    rates = (rates + [rates[-1]] * len(sizes))[: len(sizes)]
    mean = sum(size * rate for size, rate in zip(sizes, rates, strict=True)) / sum(rates)
    return {"packet_lengths": sizes, "packet_weights": rates}, mean


def _whole(settings: Settings, key: str, text: str) -> int:
    if not (text.isdecimal() and len(text) < 6 and 1 <= int(text) <= _MOST_FLITS):
        settings.refuse(key, f"{text} must be a whole number from 1 to {_MOST_FLITS}")
    return int(text)


def _load(settings: Settings, number: int, mean: float, counted: float) -> float:
    """Return what injection_rate offers, flits per terminal and cycle; BookSim counts packets as of `counted` flits."""
    found = _one(settings, "injection_rate", number)
    try:
        (rate,) = map(float, found) if found else (settings.number("injection_rate"),)
    except ValueError:
        settings.refuse("injection_rate", "must be one number for each class")
    return rate / counted * mean if settings.whole("injection_rate_uses_flits") else rate * mean


def _checked_load(settings: Settings, load: float) -> float:
    if not 0 < round(load, 12) <= 1:  # also: not a number
        settings.refuse("injection_rate", f"offers {load:.6g} flits per host and cycle; hopforge takes loads in (0, 1]")
    return round(load, 12)


def _source(settings: Settings, number: int, load: float, mean: float) -> dict[str, Any]:
    name, parameters = with_parameters(_of_class(settings, "injection_process", number) or "")
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
    if not packets:
        settings.no_effect("terminals that send nothing have no bursts", *_BURST)
        return {}
    if r1 < 0:
        r1 = packets * (alpha + beta) / alpha if alpha else 2.0
    elif beta < 0:
        beta = alpha * (r1 - packets) / packets if packets else 2.0
    if not 0 < beta <= 1 or not packets < r1 or r1 * mean > 1:
        settings.refuse("injection_process", f"bursts of {r1 * mean:.6g} flits per cycle, ending with probability "
                                             f"{beta:.6g}, do not give a load of {load:.6g}")  # fmt: skip
    return {"source": "on_off", "burst_cycles": 1 / beta, "burst_load": r1 * mean}
