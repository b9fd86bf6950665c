"""The first screen of the report: which network, which traffic, what came out, what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.report import Column, Fact, Section, Table, thousands
from hopforge.sim.run.knee import knee_of, knee_words

__all__ = ["glance"]

_MOST_ROWS, _MOST_VARIANTS = 40, 6
_SHAPES = ("radices", "sizes", "k", "n", "p", "a", "h", "g", "q", "routers", "degree")


def glance(sets: Sequence[ResultSet]) -> Section | None:
    """Return cards of a run of a network, or a table of several; None if there is no such run."""
    known = [(result, parts) for result in sets if (parts := _parts(result)) is not None]
    if not known:
        return None
    text = "" if any(cost for _, (*_, cost) in known) else (
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
    """Return what is known of a run; None for no run of a network, or one whose files hold something else."""
    if not isinstance(result.config.get("topology"), Mapping):
        return None
    try:
        outcome = _outcome(result)
        network = [Fact("network", *_network(result))]
        return (network, list(_traffic(result)), outcome, _cost(result)) if outcome else None
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):  # of another version, or edited
        return None


def _told(facts: Sequence[Fact]) -> str:
    """Return cards as words in a cell."""
    words = []
    for fact in facts:
        label = "" if fact.label in ("network", "traffic") else f"{fact.label} "
        words.append(f"{label}{fact.value}" + (f" ({fact.note})" if fact.note else ""))
    return "; ".join(words) or "–"


def _network(result: ResultSet) -> tuple[str, str]:
    topology, router = result.config["topology"], result.config.get("router", {})
    shape = ", ".join(f"{key} {_plain(topology[key])}" for key in _SHAPES if topology.get(key) is not None)
    words = [f"{router['vcs']} VCs"] if isinstance(router, Mapping) and "vcs" in router else []
    words += [f"buffers of {router['buffer_flits']} flits"] if words and "buffer_flits" in router else []
    return f"{topology.get('kind', '?')}", ", ".join([shape, *words]).strip(", ")


def _plain(value: Any) -> str:
    return " x ".join(map(str, value)) if isinstance(value, list) else str(value)


def _traffic(result: ResultSet) -> Iterator[Fact]:
    traffic, workload = result.config.get("traffic", {}), result.config.get("workload")
    if result.kind == "hits" and isinstance(workload, Mapping):
        yield Fact("traffic", str(workload.get("benchmark", workload.get("kind", "?"))), "replayed workload")
    elif isinstance(traffic, Mapping):
        routing = result.config.get("routing", {})
        note = f"packets of {_lengths(traffic)} flits, routing {routing.get('algorithm', '?')}"
        pattern = str(traffic.get("file") or traffic.get("pattern", "?"))
        classes = traffic.get("classes")
        if classes:
            pattern = ", ".join(str(each.get("pattern") or pattern) for each in classes)
            note = f"classes {', '.join(str(each.get('name')) for each in classes)}, {note.partition(', ')[2]}"
        yield Fact("traffic", pattern, note)


def _lengths(traffic: Mapping[str, Any]) -> str:
    between, some = traffic.get("packet_range"), traffic.get("packet_lengths")
    if between:
        return " to ".join(map(str, between))
    return ", ".join(map(str, some)) if some else str(traffic.get("packet_flits", "?"))


def _outcome(result: ResultSet) -> list[Fact]:
    tables = result.tables
    curve = tables.get("curve")
    if curve is not None and {"load", "saturated", "accepted"} <= set(map(str, curve.columns)):
        return list(_knees(curve))
    run = tables.get("measurement")
    if run is not None and len(run) == 1 and {"latency", "accepted", "load"} <= set(map(str, run.columns)):
        row = run.iloc[0]
        if bool(row.get("saturated", False)):
            return [Fact("accepted, saturated", f"{row['accepted']:.4g}", f"of {row['load']:.4g} offered")]
        note = f"at load {row['load']:.4g}, below saturation; one load tells no knee (hopforge sweep)"
        if pd.isna(row["latency"]):
            return [Fact("latency", "–", f"no packet arrived at load {row['load']:.4g}")]
        return [Fact("latency", f"{row['latency']:.4g} cycles", note)]
    totals = result.metadata.get("totals")
    if isinstance(totals, Mapping) and totals.get("lookups"):
        return [Fact("hit rate", f"{100 * totals['hit_rate']:.4g} %", f"{thousands(totals['lookups'])} lookups")]
    return []


def _knees(curve: pd.DataFrame) -> Iterator[Fact]:
    """Say between which loads of a sweep each variant saturates."""
    groups = curve.fillna({"variant": ""}).groupby("variant", sort=False) if "variant" in curve else [("", curve)]
    for number, (key, rows) in enumerate(groups):
        variant = str(key) if isinstance(key, str) else ""
        if number == _MOST_VARIANTS:
            return
        label = f"{variant} saturates" if variant else "saturates"
        value, known = knee_words(knee_of(rows["load"].tolist(), rows["saturated"].astype(bool).tolist()))
        yield Fact(label, value, f"accepts at most {rows['accepted'].max():.4g}; {known}")


def _cost(result: ResultSet) -> list[Fact]:
    totals = result.metadata.get("totals")
    if isinstance(totals, Mapping) and isinstance(totals.get("switch_power_w"), int | float):
        note = f"without cache {totals.get('conventional_switch_power_w', float('nan')):.3g} W"
        return [Fact("power of the lookups of a switch", f"{totals['switch_power_w']:.3g} W", note)]
    return []
