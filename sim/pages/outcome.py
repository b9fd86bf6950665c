"""What came out of a result, in a card or a few: for the first screen of the report and its overview."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hopforge.model.config.traffic import TrafficConfig
from hopforge.model.output.times import time_words
from hopforge.sim.pages.bench_outcome import bench_facts
from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.network_result import variant_configs
from hopforge.sim.pages.report import Fact, thousands
from hopforge.sim.run.knee import knee_of, knee_words

__all__ = ["Deviations", "deviations", "outcome", "percent_words", "synthesized"]

_MOST = 6


def outcome(result: ResultSet) -> list[Fact]:
    """Return what came out, of the first kind of result that is known; none for results that say nothing about it.

    Raises
    ------
    ArithmeticError, AttributeError, KeyError, TypeError, ValueError
        A file holds something else than hopforge writes there.
    """
    return next((found for found in (list(tell(result)) for tell in _KINDS) if found), [])


def _table(result: ResultSet, name: str, *columns: str) -> pd.DataFrame | None:
    """Return a table that has rows and these columns."""
    table = result.tables.get(name)
    return table if table is not None and len(table) and set(columns) <= set(map(str, table.columns)) else None


def _sweep(result: ResultSet) -> Iterator[Fact]:
    """Say between which loads of a sweep each variant saturates."""
    curve = _table(result, "curve", "load", "saturated", "accepted")
    if curve is None:
        return
    groups = curve.fillna({"variant": ""}).groupby("variant", sort=False) if "variant" in curve else [("", curve)]
    for key, rows in list(groups)[:_MOST]:
        variant = str(key) if isinstance(key, str) else ""
        knee = knee_of(rows["load"].tolist(), rows["saturated"].astype(bool).tolist())
        value, known = knee_words(knee, _highest_load(result, variant))
        note = f"accepts at most {rows['accepted'].max():.4g}; {known}"
        yield Fact(f"{variant} saturates" if variant else "saturates", value, note)


def _highest_load(result: ResultSet, variant: str) -> float:
    """Return the most that the source of a variant offers; 1 where the result does not tell."""
    traffic = variant_configs(result).get(variant, {}).get("traffic", {})
    given = {key: traffic[key] for key in ("source", "burst_cycles", "burst_load") if key in traffic}
    return TrafficConfig.model_validate(given).highest_load


def _run(result: ResultSet) -> Iterator[Fact]:
    run = _table(result, "measurement", "latency", "accepted", "load")
    if run is None or len(run) != 1:
        return
    row = run.iloc[0]
    if bool(row.get("saturated", False)):
        yield Fact("accepted, saturated", f"{row['accepted']:.4g}", f"of {row['load']:.4g} offered")
    elif pd.isna(row["latency"]):
        yield Fact("latency", "–", f"no packet arrived at load {row['load']:.4g}")
    else:
        note = f"at load {row['load']:.4g}, below saturation; one load tells no knee (hopforge sweep)"
        yield Fact("latency", f"{row['latency']:.4g} cycles", note)


def _hits(result: ResultSet) -> Iterator[Fact]:
    totals = result.metadata.get("totals")
    if not isinstance(totals, Mapping) or not {"lookups", "hit_rate"} <= set(totals):
        return
    if totals["lookups"] == 0:
        yield Fact("lookups", "0", "no packet was looked up")
    else:
        yield Fact("hit rate", f"{100 * totals['hit_rate']:.4g} %", f"{thousands(totals['lookups'])} lookups")


def _program(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "app", "makespan_s", "messages", "engine")
    if table is not None and len(table) == 1:
        row = table.iloc[0]
        note = f"{thousands(row['messages'])} messages, engine {row['engine']}"
        yield Fact("makespan", time_words(row["makespan_s"]), note)


def _variants(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "variants", "variant", "makespan_s", "gain")
    for row in () if table is None else table.head(_MOST).to_dict("records"):
        yield Fact(f"makespan, {row['variant']}", time_words(row["makespan_s"]), f"gain {row['gain']:.4g}")


def _series(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "series", "time", "load", "accepted", "latency")
    if table is not None:
        row = table.iloc[-1]
        latency = "–" if pd.isna(row["latency"]) else f"{row['latency']:.4g}"
        note = f"of {row['load']:.4g} offered; mean latency {latency}; {len(table)} bins"
        yield Fact("accepted in the last bin", f"{row['accepted']:.4g}", note)


def _trace(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "packets", "created", "latency")
    if table is not None:
        arrived = table["latency"][table["latency"] >= 0]
        yield from _followed(result, table)
        note = f"of {thousands(len(arrived))} packets that arrived, of {thousands(len(table))}"
        yield Fact("longest latency", f"{thousands(arrived.max())} cycles" if len(arrived) else "–", note)


def _followed(result: ResultSet, packets: pd.DataFrame) -> Iterator[Fact]:
    """Say how long the packets took that were followed step by step."""
    phases = _table(result, "phases", "packet")
    if phases is None or not {"host", "number", "dst"} <= set(packets.columns):
        return
    names = packets["host"].astype(str) + "." + packets["number"].astype(str)
    for row in packets[names.isin(phases["packet"].astype(str).unique())].head(_MOST).to_dict("records"):
        value = f"{thousands(row['latency'])} cycles" if row["latency"] >= 0 else "did not arrive"
        note = f"host {row['host']} to host {row['dst']}, created in cycle {thousands(row['created'])}"
        yield Fact(f"packet {row['host']}.{row['number']}", value, note)


def _cosimulation(result: ResultSet) -> Iterator[Fact]:
    found = result.metadata.get("result", result.metadata)
    if isinstance(found, Mapping) and isinstance(found.get("mismatches"), int) and "cycles" in found:
        simulator = result.metadata.get("simulator", found.get("simulator", "?"))
        note = f"in {thousands(found['cycles'])} cycles, {simulator}"
        yield Fact("mismatches", thousands(found["mismatches"]), note)


def _mutants(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "blocks", "block", "mutants", "killed", "equivalent", "survived")
    if table is not None:
        row = table.iloc[-1]  # all
        note = f"{thousands(row['equivalent'])} equivalent, {thousands(row['survived'])} survived"
        yield Fact("mutants found", f"{thousands(row['killed'])} of {thousands(row['mutants'])}", note)


def _routing(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "summary", "subject", "value")
    if table is not None:
        said = dict(zip(table["subject"].astype(str), table["value"].astype(str), strict=True))
        for subject in ("path length", "entries", "virtual layers"):
            if subject in said:
                value, _, note = said[subject].partition(", " if subject != "virtual layers" else " ")
                yield Fact(subject, value, note)


def _bounds(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "bounds", "routing", "traffic_throughput")
    if table is not None and len(known := table.dropna(subset=["traffic_throughput"])):
        said = [f"{row['routing']} {row['traffic_throughput']:.4g}" for row in known.head(_MOST).to_dict("records")]
        note = f"flits per host and cycle: {', '.join(said)}"
        yield Fact("throughput at most", f"{known['traffic_throughput'].max():.4g}", note)


def _collectives(result: ResultSet) -> Iterator[Fact]:
    """Say how many times as long the best algorithm of the hosts takes, over all groups and sizes."""
    table = _table(result, "collectives", "group", "operation", "words", "by", "cycles")
    if table is None:
        return
    keys = ["operation", "group", "words"]
    inside = table["by"] == "network"
    best = table[~inside].groupby(keys, sort=False)["cycles"].min()
    ratio = (best / table[inside].groupby(keys, sort=False)["cycles"].min()).dropna()
    if len(ratio):
        each = ratio.groupby(level="operation", sort=False).agg(["min", "max"])
        said = ", ".join(f"{name} {low:.3g} to {high:.3g}" for name, low, high in each.itertuples())
        yield Fact("as fast as by hosts", f"{ratio.min():.3g} to {ratio.max():.3g} times", said)


def _jobs(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "schedules", "scheduler", "placement", "mean_wait", "utilisation")
    for row in () if table is None else table.head(_MOST).to_dict("records"):
        note = f"mean wait; utilisation {100 * row['utilisation']:.3g} %"
        yield Fact(f"{row['scheduler']}, {row['placement']}", f"{thousands(round(row['mean_wait']))} s", note)


def _rules(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "rule_caches", "policy", "entries", "hit_rate", "wrong")
    if table is not None:
        row = table.iloc[int(table["hit_rate"].to_numpy().argmax())]
        note = f"{row['policy']}, {thousands(row['entries'])} entries; {thousands(table['wrong'].sum())} wrong answers"
        yield Fact("best hit rate", f"{100 * row['hit_rate']:.4g} %", note)


def _wavelengths(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "arrangements", "lanes", "hit_rate")
    if table is not None:
        low, high = 100 * table["hit_rate"].min(), 100 * table["hit_rate"].max()
        yield Fact("hit rate", f"{low:.3g} to {high:.3g} %", f"{len(table)} arrangements of wavelengths and caches")
    cheapest = _table(result, "cheapest", "link_gbps", "arrangements", "keep_up")
    for row in () if cheapest is None else cheapest.drop_duplicates("link_gbps").head(_MOST).to_dict("records"):
        value = f"{row['keep_up']} of {row['arrangements']}"
        yield Fact(f"keep up with {row['link_gbps']:g} Gbit/s", value, "arrangements")


def _comparison(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "comparison", "figure", "verdict")
    if table is not None:
        differ = int((table["verdict"] == "differs").sum())
        changed = result.metadata.get("changed")
        keys = [str(key) for key in changed] if isinstance(changed, Mapping) else []
        more = f" and {len(keys) - 4} more" if len(keys) > 4 else ""
        unknown = table["verdict"][table["verdict"].isin(["no interval", "saturated"])].value_counts().sort_index()
        untold = "".join(f"{name}: {count}; " for name, count in unknown.items())
        note = untold + (f"changed: {', '.join(keys[:4])}{more}" if keys else "no key of the configuration was changed")
        yield Fact("figures that differ", f"{differ} of {len(table)}", note)


def _bench(result: ResultSet) -> Iterator[Fact]:
    table = _table(result, "bench")
    if table is not None:
        yield from bench_facts(table)


def synthesized(result: ResultSet) -> pd.DataFrame | None:
    """Return the best recipe of each block, the first of its rows, the largest block first; None for other results."""
    table = _table(result, "synth", "block", "recipe", "cells", "flops", "levels", "delay_ns", "sta_ns", "area_um2")
    if table is None:
        return None
    best = table.drop_duplicates("block")
    size = "cells" if best["area_um2"].isna().any() else "area_um2"
    return best.sort_values(size, ascending=False, kind="stable")


def _synth(result: ResultSet) -> Iterator[Fact]:
    """Say how fast the largest block is, and which one is the slowest."""
    best = synthesized(result)
    if best is None:
        return
    column = "levels" if best["delay_ns"].isna().all() else "time_ns"
    best = best.assign(time_ns=best["sta_ns"].fillna(best["delay_ns"]))
    slowest = best.iloc[int(np.nanargmax(best[column].to_numpy(float)))]
    for row, which in ((best.iloc[0], ""), (slowest, ", the slowest block")):
        if which and row["block"] == best.iloc[0]["block"]:
            continue
        if column == "levels":
            yield Fact(f"logic of {row['block']}{which}", f"{row['levels']:.0f} levels", "no cell library (--liberty)")
        elif row["flops"] and not pd.isna(row["sta_ns"]):
            aim = f" (aim {row['aim_ns']:g})" if not pd.isna(row.get("aim_ns")) else ""
            note = f"shortest period {row['sta_ns']:.4g} ns{aim}, recipe {row['recipe']}, ideal wires"
            yield Fact(f"clock of {row['block']}{which}", f"{1e3 / row['sta_ns']:.4g} MHz", note)
        else:
            note = f"recipe {row['recipe']}, ideal wires"
            yield Fact(f"delay of {row['block']}{which}", f"{row['time_ns']:.4g} ns", note)


@dataclass(frozen=True)
class Deviations:
    """How far a figure of a paper, or another reference, is from ours.

    Attributes
    ----------
    worst_percent : float
        The largest of all, with its sign; NaN if there is none.
    note : str
        Of what it is, and both values.
    compared, others : int
        Rows with a deviation, and without: bounds that are kept, or nothing to compare with.
    of_paper : bool
        Compared with a paper; else with another reference, such as the same router without a flood.
    """

    worst_percent: float
    note: str
    compared: int
    others: int
    of_paper: bool


def deviations(result: ResultSet) -> Deviations | None:
    """Return the deviations of a result of `hopforge reproduce`; None for other results."""
    table = _table(result, "comparison", "quantity", "ours", "deviation_percent")
    if table is None:
        return None
    percent = pd.to_numeric(table["deviation_percent"], errors="coerce").to_numpy(float)
    known = table[~np.isnan(percent)]
    others = len(table) - len(known)
    if known.empty:
        return Deviations(float("nan"), "", 0, others, "paper" in table)
    row = table.iloc[int(np.nanargmax(np.abs(percent)))]
    beside = next((f", {name} {row[name]:.4g}" for name in ("paper", "reference") if not pd.isna(row.get(name))), "")
    claim = "" if beside or pd.isna(row.get("claim")) else f", claim: {row['claim']}"
    note = f"{row['quantity']}: ours {row['ours']:.4g}{beside}{claim}"
    return Deviations(float(row["deviation_percent"]), note, len(known), others, "paper" in table)


def percent_words(percent: float) -> str:
    r"""Return a deviation with its sign.

    >>> [percent_words(value) for value in (1.4131, -56.88)], percent_words(1050.4) == "+1\u202f050 %"
    (['+1.41 %', '−56.9 %'], True)
    """
    size = f"{abs(percent):.3g}" if abs(percent) < 1000 or np.isinf(percent) else thousands(round(abs(percent)))
    return f"{'−' if percent < 0 else '+'}{size} %"


def _reproduction(result: ResultSet) -> Iterator[Fact]:
    found = deviations(result)
    if found is None:
        return
    if found.compared:
        less = f" of {found.compared + found.others}" if found.others else ""
        label = "worst deviation from the paper" if found.of_paper else "largest difference from the reference"
        yield Fact(label, percent_words(found.worst_percent), f"{found.note}; {found.compared}{less} compared")
    else:
        yield Fact("deviations", "none", f"{found.others} values: bounds that are kept, or nothing to compare with")


#: kinds of results, by the files that they have
_KINDS: tuple[Callable[[ResultSet], Iterator[Fact]], ...] = (
    _sweep, _run, _hits, _program, _variants, _series, _trace, _cosimulation, _mutants, _routing, _bounds,
    _collectives, _jobs, _rules, _wavelengths, _comparison, _reproduction, _synth, _bench,
)  # fmt: skip
