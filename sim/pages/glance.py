"""The first screen of the report: which network, which traffic, what came out, what it costs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

import pandas as pd

from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.network_result import variant_configs
from hopforge.sim.pages.outcome import Deviations, deviations, outcome, percent_words, synthesized
from hopforge.sim.pages.report import Column, Fact, Section, Table, thousands

__all__ = ["glance", "network_words"]

_MOST_ROWS, _MOST_RATES, _MOST_VARIANTS = 40, 3, 4
_SHAPES = ("radices", "sizes", "k", "n", "p", "a", "h", "g", "q", "routers", "degree")
_WITH_CACHES = frozenset({"hits", "wavelengths"})
#: kinds of results that read neither buffers nor packets of the configuration
_WITHOUT_FLITS = _WITH_CACHES | {
    "app", "bounds", "collectives", "compare", "cosim", "jobs", "mutate", "route", "rules", "synth",
}  # fmt: skip
_FIXED_BLOCKS = ("allocators", "inference")
_NOT_MEASURED = Fact(
    "cost of the hardware", "not measured",
    "hopforge synth: area and delay; hopforge energy: of gates; hopforge app: of a program",
)  # fmt: skip

_Said = TypeVar("_Said")


def glance(sets: Sequence[ResultSet]) -> Section | None:
    """Return cards of a result, or a table of several; None if there is none that says what came out."""
    known = [(result, parts) for result in sets if (parts := _parts(result)) is not None]
    if not known:
        return None
    told = any(cost for _, (*_, cost) in known) or not any(result.config.get("topology") for result, _ in known)
    if len(known) == 1:
        cards = [fact for part in known[0][1] for fact in part]
        return Section("At a glance", "", cards if told else [*cards, _NOT_MEASURED])
    what = "network" if any(fact.label == "network" for _, (facts, *_) in known for fact in facts) else "of what"
    heads = ["result", what, "traffic", "what came out", "what it costs"]
    rows = [[result.folder, *map(_told, parts)] for result, parts in known[:_MOST_ROWS]]
    full = [number for number in range(len(heads)) if any(row[number] != "–" for row in rows)]
    more = f"The first {_MOST_ROWS} of {len(known)}." if len(known) > _MOST_ROWS else ""
    if not told:
        more = " ".join(filter(None, (more, "What the hardware costs: hopforge synth, energy and app measure it.")))
    table = Table(
        "Networks, traffic, outcome" if what == "network" else "Outcome", [Column(heads[number]) for number in full],
        [[row[number] for number in full] for row in rows], more,
    )  # fmt: skip
    return Section("At a glance", "", _reproduced(sets), [table])


def _parts(result: ResultSet) -> tuple[list[Fact], ...] | None:
    """Return what is known of a result; None where nothing came out that is known, or its files hold something else."""
    found = _known(outcome, result)
    return (_known(_network, result), _known(_traffic, result), found, _known(_cost, result)) if found else None


def _known(tell: Callable[[ResultSet], Iterable[_Said]], result: ResultSet) -> list[_Said]:
    """Return what is told of a result; nothing where its files are of another version, or edited."""
    try:
        return list(tell(result))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return []


def _compared(result: ResultSet) -> Iterator[Deviations]:
    each = deviations(result)
    if each is not None and each.of_paper:
        yield each


def _told(facts: Sequence[Fact]) -> str:
    """Return cards as words in a cell."""
    words = []
    for fact in facts:
        label = "" if fact.label in ("network", "traffic", "hardware") else f"{fact.label} "
        words.append(f"{label}{fact.value}" + (f" ({fact.note})" if fact.note else ""))
    return "; ".join(words) or "–"


def _reproduced(sets: Sequence[ResultSet]) -> list[Fact]:
    """Return one card of all figures of papers, where there are several."""
    found = [(result, each) for result in sets if _known(outcome, result) for each in _known(_compared, result)]
    compared = [(result, each) for result, each in found if each.compared]
    if len(found) < 2 or not compared:
        return []
    worst, each = max(compared, key=lambda pair: abs(pair[1].worst_percent))
    count = sum(one.compared for _, one in compared)
    value = percent_words(each.worst_percent)
    return [
        Fact("figures of papers", thousands(len(found)), f"{thousands(count)} deviations"),
        Fact("worst deviation of all", value, f"{worst.metadata.get('name', worst.folder)}, {each.note}"),
    ]


def network_words(config: Mapping[str, Any], kind: str = "net") -> tuple[str, str]:
    """Return the kind of the network of a configuration, and its sizes; both empty if it has none.

    >>> network_words({"topology": {"kind": "torus", "radices": [8, 8]}, "router": {"vcs": 4}})
    ('torus', 'radices 8 x 8, 4 VCs')
    """
    topology, router, lookup = (config.get(name) for name in ("topology", "router", "lookup"))
    if not isinstance(topology, Mapping) or not topology:
        return "", ""
    words = [f"{key} {_plain(topology[key])}" for key in _SHAPES if topology.get(key) is not None]
    if topology.get("file"):
        words.append(PurePath(str(topology["file"])).name)
    if kind in _WITH_CACHES and isinstance(lookup, Mapping) and isinstance(lookup.get("cache"), Mapping):
        words.append(f"caches of {lookup['cache'].get('entries', '?')} entries")
    elif kind not in _WITHOUT_FLITS and isinstance(router, Mapping) and "vcs" in router:
        words.append(f"{router['vcs']} VCs")
        words += [f"buffers of {router['buffer_flits']} flits"] if "buffer_flits" in router else []
    return str(topology.get("kind", "?")), ", ".join(words)


def _network(result: ResultSet) -> Iterator[Fact]:
    machine, totals = (result.metadata.get(name) for name in ("machine", "totals"))
    networks, title = result.metadata.get("networks"), result.metadata.get("title")
    if result.kind == "jobs" and isinstance(machine, Mapping):
        yield Fact("network", f"{_plain(machine['dims'])} nodes", f"processors each: {machine['ppn']}")
    elif result.kind.startswith("bench") and isinstance(machine, str):
        note = f"{result.metadata['system']}, Python {result.metadata['python']}; {result.metadata['clock']}"
        yield Fact("machine", str(result.metadata.get("processor") or machine), note)
    elif result.kind == "reproduce" and isinstance(title, str):
        yield Fact("figure", str(result.metadata["name"]), f"{title} ({result.metadata['source']})")
    elif result.kind == "rules" and isinstance(totals, Mapping):
        note = f"{thousands(totals['rules'])} rules of {totals['width_bits']} bits"
        yield Fact("rules", PurePath(str(result.metadata["table"])).name, note)
    elif result.kind == "compare" and isinstance(networks, list):
        for which, words in zip(("first", "second"), networks, strict=True):
            called = str(result.metadata[which])
            note = f"of …{called[-40:]}" if len(called) > 40 else f"of {called}"
            yield Fact(f"{which} network", str(words[0] or "not known"), "; ".join(filter(None, (words[1], note))))
    elif not ("synth" in result.tables and set(_FIXED_BLOCKS) & set(result.command.split())):
        kind = "synth" if "synth" in result.tables else result.kind
        known = {name: network_words(each, kind) for name, each in variant_configs(result).items()}
        said = {name: (what.replace("_", " "), note) for name, (what, note) in known.items()}
        yield from _by_variant("network", said)


def _by_variant(label: str, said: Mapping[str, tuple[str, str]]) -> Iterator[Fact]:
    """Say something of all variants (value and note, which may stand on two lines), or of each where they differ."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, words in said.items():
        if words[0]:
            groups.setdefault(words, []).append(name)
    if len(groups) <= 1:
        yield from (Fact(label, *words) for words in groups)
        return
    notes = [f"{', '.join(names)}: {value}, {note}" for (value, note), names in groups.items()]
    more = [f"{len(notes) - _MOST_VARIANTS} others"] if len(notes) > _MOST_VARIANTS else []
    values = list(dict.fromkeys(value for value, _ in groups))
    shown = ", ".join(values[:_MOST_VARIANTS]) + ("" if len(values) <= _MOST_VARIANTS else ", …")
    yield Fact(label, shown, "; ".join([*notes[:_MOST_VARIANTS], *more]))


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
    elif result.kind == "rules":
        ran = result.tables["rule_caches"]
        zipfs = ", ".join(f"{value:g}" for value in ran["zipf"].unique()[:4])
        note = f"Zipf {zipfs}; {thousands(ran['updates'].max())} updates"
        yield Fact("traffic", f"{thousands(ran['lookups'].max())} lookups", note)
    elif result.kind == "wavelengths" and isinstance(totals := result.metadata.get("totals"), Mapping):
        note = f"{thousands(totals['lookups'])} lookups on {thousands(totals['links'])} links"
        yield Fact("traffic", str(totals["traffic"]), note)
    elif "synth" in result.tables:
        library = result.metadata.get("library")
        cells = f"{library['name']}, {library['corner']}" if isinstance(library, Mapping) else "generic gates"
        count = result.tables["synth"]["block"].nunique()
        yield Fact("hardware", str(result.config.get("name", "?")), f"{count} block{'s' if count > 1 else ''}; {cells}")
    elif result.kind == "cosim":
        yield Fact("hardware", str(result.metadata.get("top", "?")), "random traffic, beside its golden model")
    elif result.kind not in _WITHOUT_FLITS and isinstance(traffic, Mapping) and traffic:
        yield from _by_variant("traffic", {name: _sent(each) for name, each in variant_configs(result).items()})
    elif result.kind == "bounds":
        yield Fact("traffic", str(traffic.get("file") or traffic.get("pattern", "?")), "")


def _sent(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the pattern of a configuration, and its packets and routing."""
    traffic, routing = config["traffic"], config.get("routing", {})
    note = f"packets of {_lengths(traffic)}, routing {routing.get('algorithm', '?')}"
    pattern = str(traffic.get("file") or traffic.get("pattern", "?"))
    if classes := traffic.get("classes"):
        pattern = ", ".join(str(each.get("pattern") or pattern) for each in classes)
        note = f"classes {', '.join(str(each.get('name')) for each in classes)}, {note.partition(', ')[2]}"
    return pattern, note


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
    best = synthesized(result)
    if best is not None:
        row, count = best.iloc[0], len(best)
        which = f"; the largest of {count} blocks" if count > 1 else ""
        if pd.isna(row["area_um2"]):
            yield Fact(f"size of {row['block']}", f"{thousands(row['cells'])} gates",
                       f"{thousands(row['flops'])} flip-flops{which}; no cell library (--liberty)")  # fmt: skip
        else:
            yield Fact(f"area of {row['block']}", f"{thousands(round(row['area_um2']))} µm²",
                       f"{thousands(row['cells'])} cells, {thousands(row['flops'])} flip-flops{which}")  # fmt: skip
    cheapest = result.tables.get("cheapest")
    if result.kind == "wavelengths" and cheapest is not None:
        for each in cheapest[cheapest["least"] == "area"].head(_MOST_RATES).to_dict("records"):
            yield Fact(f"lookups of a switch at {each['link_gbps']:g} Gbit/s", f"{each['switch_area_mm2']:.3g} mm²",
                       f"{each['switch_power_w']:.3g} W; least area")  # fmt: skip
    ran = result.tables.get("app")
    if ran is not None and len(ran) == 1 and {"energy_j", "conventional_energy_j"} <= set(ran.columns):
        note = f"without caches {ran['conventional_energy_j'].iloc[0]:.4g} J"
        yield Fact("energy of all switches", f"{ran['energy_j'].iloc[0]:.4g} J", note)
