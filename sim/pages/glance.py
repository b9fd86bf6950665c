"""The first screen of the report: which network, which traffic, what came out, what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.outcome import outcome
from hopforge.sim.pages.report import Column, Fact, Section, Table

__all__ = ["glance"]

_MOST_ROWS = 40
_SHAPES = ("radices", "sizes", "k", "n", "p", "a", "h", "g", "q", "routers", "degree")
_WITH_CACHES = frozenset({"hits", "wavelengths"})
#: kinds of results that read neither buffers nor packets of the configuration
_WITHOUT_FLITS = _WITH_CACHES | {"app", "bounds", "collectives", "compare", "cosim", "jobs", "mutate", "route", "rules"}


def glance(sets: Sequence[ResultSet]) -> Section | None:
    """Return cards of a result, or a table of several; None if there is none that says what came out."""
    known = [(result, parts) for result in sets if (parts := _parts(result)) is not None]
    if not known:
        return None
    text = "" if any(cost for _, (*_, cost) in known) or not any(network for _, (network, *_) in known) else (
        "These results do not say what the hardware costs. “hopforge synth” measures area and delay, "
        "“hopforge energy” the energy of gates, “hopforge app” the energy of a program."
    )  # fmt: skip
    if len(known) == 1:
        return Section("At a glance", text, [fact for part in known[0][1] for fact in part])
    heads = [Column(name) for name in ("result", "network", "traffic", "what came out", "what it costs")]
    rows = [[result.folder, *map(_told, parts)] for result, parts in known[:_MOST_ROWS]]
    more = f"The first {_MOST_ROWS} of {len(known)}." if len(known) > _MOST_ROWS else ""
    return Section("At a glance", text, (), [Table("Networks, traffic, outcome", heads, rows, more)])


def _parts(result: ResultSet) -> tuple[list[Fact], ...] | None:
    """Return what is known of a result; None where nothing came out that is known, or its files hold something else."""
    try:
        found = outcome(result)
        return (list(_network(result)), list(_traffic(result)), found, list(_cost(result))) if found else None
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):  # of another version, or edited
        return None


def _told(facts: Sequence[Fact]) -> str:
    """Return cards as words in a cell."""
    words = []
    for fact in facts:
        label = "" if fact.label in ("network", "traffic", "hardware") else f"{fact.label} "
        words.append(f"{label}{fact.value}" + (f" ({fact.note})" if fact.note else ""))
    return "; ".join(words) or "–"


def _network(result: ResultSet) -> Iterator[Fact]:
    topology, router, lookup = (result.config.get(name, {}) for name in ("topology", "router", "lookup"))
    machine = result.metadata.get("machine")
    if result.kind == "jobs" and isinstance(machine, Mapping):
        yield Fact("network", f"{_plain(machine['dims'])} nodes", f"processors each: {machine['ppn']}")
    if not isinstance(topology, Mapping) or not topology:
        return
    words = [f"{key} {_plain(topology[key])}" for key in _SHAPES if topology.get(key) is not None]
    if topology.get("file"):
        words.append(PurePath(str(topology["file"])).name)
    if result.kind in _WITH_CACHES:
        words.append(f"caches of {lookup['cache']['entries']} entries")
    elif result.kind not in _WITHOUT_FLITS and isinstance(router, Mapping) and "vcs" in router:
        words.append(f"{router['vcs']} VCs")
        words += [f"buffers of {router['buffer_flits']} flits"] if "buffer_flits" in router else []
    yield Fact("network", f"{topology.get('kind', '?')}", ", ".join(words))


def _plain(value: Any) -> str:
    return " x ".join(map(str, value)) if isinstance(value, list) else str(value)


def _traffic(result: ResultSet) -> Iterator[Fact]:
    traffic, workload = result.config.get("traffic", {}), result.config.get("workload")
    ran = next((result.tables[name] for name in ("app", "runs") if "program" in result.tables.get(name, ())), None)
    if ran is not None:
        yield Fact("traffic", ", ".join(map(str, ran["program"].unique()[:4])), f"{ran['ranks'].iloc[0]} ranks")
    elif result.kind == "hits" and isinstance(workload, Mapping):
        replayed = result.metadata.get("workload", {})
        ranks = f", {replayed['ranks']} ranks" if replayed.get("ranks") else ""
        name = replayed.get("name") or workload.get("benchmark", workload.get("kind", "?"))
        yield Fact("traffic", str(name), f"replayed workload{ranks}")
    elif result.kind == "cosim":
        yield Fact("hardware", str(result.metadata.get("top", "?")), "random traffic, beside its golden model")
    elif result.kind not in _WITHOUT_FLITS and isinstance(traffic, Mapping) and traffic:
        routing = result.config.get("routing", {})
        note = f"packets of {_lengths(traffic)}, routing {routing.get('algorithm', '?')}"
        pattern = str(traffic.get("file") or traffic.get("pattern", "?"))
        classes = traffic.get("classes")
        if classes:
            pattern = ", ".join(str(each.get("pattern") or pattern) for each in classes)
            note = f"classes {', '.join(str(each.get('name')) for each in classes)}, {note.partition(', ')[2]}"
        yield Fact("traffic", pattern, note)
    elif result.kind == "bounds":
        yield Fact("traffic", str(traffic.get("file") or traffic.get("pattern", "?")), "")


def _lengths(traffic: Mapping[str, Any]) -> str:
    between, some = traffic.get("packet_range"), traffic.get("packet_lengths")
    said = " to ".join(map(str, between)) if between else ", ".join(map(str, some)) if some else ""
    said = said or str(traffic.get("packet_flits", "?"))
    return f"{said} flit" if said == "1" else f"{said} flits"


def _cost(result: ResultSet) -> Iterator[Fact]:
    totals = result.metadata.get("totals")
    if isinstance(totals, Mapping) and isinstance(totals.get("switch_power_w"), int | float):
        note = f"without cache {totals.get('conventional_switch_power_w', float('nan')):.3g} W"
        yield Fact("power of the lookups of a switch", f"{totals['switch_power_w']:.3g} W", note)
    ran = result.tables.get("app")
    if ran is not None and len(ran) == 1 and {"energy_j", "conventional_energy_j"} <= set(ran.columns):
        note = f"without caches {ran['conventional_energy_j'].iloc[0]:.4g} J"
        yield Fact("energy of all switches", f"{ran['energy_j'].iloc[0]:.4g} J", note)
