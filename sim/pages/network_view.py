"""A network as data for the viewer of a page: places, links, values over time, failures, ways of packets."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.config.simulation import describe_failed
from hopforge.model.errors import UserError
from hopforge.model.output.colour_scale import NOTHING, STOPS
from hopforge.model.topology import Topology
from hopforge.model.topology.drawing import draw_places
from hopforge.model.topology.failed import failed_ports, failed_switches
from hopforge.model.topology.link_times import queued_times
from hopforge.sim.packet.settings import packet_settings
from hopforge.sim.pages.find import ResultSet
from hopforge.sim.pages.network_result import channel_values, network_of, result_config, table_columns
from hopforge.sim.pages.packet_ways import packet_ways
from hopforge.sim.pages.routed_paths import busy_links, link_paths, next_channels, way_bytes
from hopforge.sim.run.rate_time import rate_time

__all__ = ["MOST_BUFFERS", "network_view", "view_facts"]

#: rows of buffers that a page holds, and bytes of values over time
MOST_BUFFERS, MOST_FRAME_BYTES = 400_000, 12 << 20


def network_view(result: ResultSet) -> dict[str, Any]:
    """Return what the viewer draws of a result of one of `NETWORK_KINDS`, as plain data.

    Raises
    ------
    UserError
        A result without a network, or tables that do not fit it.
    """
    config = result_config(result)
    topology = network_of(result, config)
    view = _network(topology) | {"title": config.name, "scale": list(STOPS), "nothing": NOTHING, "notes": []}
    view["measures"] = _measures(result, config, topology, view["notes"])
    view["time"] = _time(result, config, topology)
    view["tables"] = _tables(result, view["notes"])
    view["packets"] = packet_ways(result)
    view["ways"] = _ways(result, config, topology, view["notes"])
    return view


def view_facts(view: Mapping[str, Any]) -> str:
    """Say what the picture holds, in one line."""
    return f"{view['name']}: {view['routers']} routers, {view['hosts']} hosts, {view['channels'] // 2} links."


def pack(values: ArrayLike, kind: str) -> dict[str, str]:
    """Return numbers as the viewer reads them: type (u1, u2, u4, f4) and bytes in base64."""
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(data).decode("ascii")}


def _network(topology: Topology) -> dict[str, Any]:
    drawing, ends = draw_places(topology), topology.channels()
    places = drawing.places - drawing.places.min(axis=0)
    return {
        "name": topology.name, "routers": topology.routers, "hosts": topology.hosts, "channels": len(ends.src_router),
        "ports": topology.max_ports, "how": drawing.words, "bend": drawing.bend, "spacing": _spacing(places),
        "x": pack(places[:, 0], "f4"), "y": pack(places[:, 1], "f4"), "group": pack(drawing.group, "u4"),
        "from": pack(ends.src_router, "u4"), "port": pack(ends.src_port, "u2"), "to": pack(ends.dst_router, "u4"),
        "far": pack(ends.dst_port, "u2"), "hostRouter": pack(topology.host_router, "u4"),
        "hostPort": pack(topology.host_port, "u2"),
    }  # fmt: skip


def _spacing(places: NDArray[np.float64]) -> float:
    """Return how far routers usually stand from the nearest other one."""
    if len(places) < 2:
        return 1.0
    from scipy.spatial import KDTree  # noqa: PLC0415 - slow to import (tests/sim/start/test_start_up.py)

    nearest, _ = KDTree(places).query(places, k=2)
    return max(float(np.median(nearest[:, 1])), 1e-6)


def _measure(
    of: str, name: str, unit: str, frames: ArrayLike, limits: tuple[float, float], words: str = "", *,
    whole: bool = False,
) -> Any:  # fmt: skip
    """Return a value of every link or router in each frame; what is not finite has no colour; `whole`: a count."""
    values = np.atleast_2d(np.asarray(frames, np.float64))
    low, high = limits
    known = np.isfinite(values)
    levels = np.clip((np.where(known, values, low) - low) / max(high - low, 1e-12), 0, 1)
    wide = values.size * 2 <= MOST_FRAME_BYTES // 4
    top = (1 << 16) - 2 if wide else (1 << 8) - 2
    data = np.where(known, np.rint(levels * top), top + 1)
    return {
        "of": of, "name": name, "unit": unit, "low": low, "high": high, "top": top, "frames": len(values),
        "values": pack(data, "u2" if wide else "u1"), "words": words, "whole": whole,
    }  # fmt: skip


def _nice(value: float) -> float:
    """Round up to 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten."""
    if not np.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return float(next(step * power for step in steps if step * power >= value * 0.999))


def _measures(result: ResultSet, config: Config, topology: Topology, notes: list[str]) -> list[Any]:
    if result.kind == "route":
        return _routed(result, config, topology)
    if result.kind == "app":
        busy = busy_links(result, topology)
        top = 0.0 if busy is None else min(100.0, _nice(float(busy.max(initial=0.0))))
        return [] if busy is None else [_measure("links", "busy", "%", busy, (0.0, top), "of the makespan")]
    unit = f"flits per {rate_time(config)}"
    found = [*_over_time(result, topology, notes, unit)]
    loads = None if found else channel_values(result, topology, "channels", ["load"])
    if loads is not None and loads.size:
        found.append(_measure("links", "load", unit, loads, (0.0, _nice(float(np.nanmax(loads))))))
    fill = _fill(result, topology)
    if fill is not None:
        top = min(100.0, _nice(float(np.nanmax(fill, initial=0.0))))
        found.append(_measure("routers", "buffers filled", "%", fill, (0.0, top), "mean of the samples"))
    rate = _hit_rate(result, topology)
    if rate is not None and np.isfinite(rate).any():
        lowest = float(np.nanmin(rate))
        step = 10.0 ** np.floor(np.log10(max(100.0 - lowest, 1e-3)))
        low = max(0.0, 100.0 - np.ceil((100.0 - lowest) / step) * step)
        found.append(_measure("routers", "hit rate", "%", rate, (float(low), 100.0), "route lookups of all its ports"))
    return found


def _routed(result: ResultSet, config: Config, topology: Topology) -> list[Any]:
    """Return paths over each link, and entries of routers where they differ."""
    found = []
    paths = link_paths(result, config, topology)
    if paths is not None and np.isfinite(paths).any():
        top = _nice(float(np.nanmax(paths)))
        found.append(_measure("links", "paths", "", paths, (0.0, top), "all to all", whole=True))
    routers = result.tables.get("routers")
    # with failures: what the tables then hold, and what was written into them
    for column, name in (("entries", "entries"), ("entries_after", "entries"), ("written", "entries written")):
        if routers is None or column not in routers:
            continue
        table = table_columns(result, "routers", ("router", column))
        assert table is not None
        _check_routers(result, "routers", table["router"].to_numpy(), topology)
        entries = np.full(topology.routers, np.nan)
        entries[table["router"].to_numpy(np.int64)] = table[column].to_numpy(np.float64)
        entries[failed_switches(topology, config.failed)] = np.nan
        if len(set(entries[np.isfinite(entries)].tolist())) > 1:
            found.append(_measure("routers", name, "", entries, (0.0, _nice(float(np.nanmax(entries)))), whole=True))
    return found


def _ways(result: ResultSet, config: Config, topology: Topology, notes: list[str]) -> list[Any]:
    """Return the channel by which each router leaves for each destination, a table for every path number."""
    if result.kind != "route":
        return []
    kind = "u1" if way_bytes(topology) == 1 else "u2"
    none = 255 if kind == "u1" else 65535
    return [
        pack(np.where(table < 0, none, table), kind) | {"none": none}
        for table in next_channels(result, config, topology, notes)
    ]


def _over_time(result: ResultSet, topology: Topology, notes: list[str], unit: str) -> list[Any]:
    """Return loads and flits of every frame of a series."""
    frames = result.metadata.get("frames")
    if not isinstance(frames, Mapping) or not isinstance(frames.get("until"), list):
        return []
    names = [f"frame_{number}" for number in range(len(frames["until"]))]
    if int(frames.get("bins_per_frame", 1)) > 1:
        notes.append(f"A moment is the mean of {frames['bins_per_frame']} bins of the run.")
    found = []
    loads = channel_values(result, topology, "link_loads", names)
    if loads is not None and loads.size:
        found.append(_measure("links", "load", unit, loads, (0.0, _nice(float(np.nanmax(loads))))))
    table = table_columns(result, "router_flits", ("router", *names))
    if table is not None:
        _check_routers(result, "router_flits", table["router"].to_numpy(), topology)
        flits = np.full((len(names), topology.routers), np.nan)
        flits[:, table["router"].to_numpy(np.int64)] = table[names].to_numpy(np.float64).T
        top = _nice(float(np.nanmax(flits)))
        found.append(_measure("routers", "flits in buffers", "flits", flits, (0.0, top), "at the end of the moment"))
    return found


def _check_routers(result: ResultSet, name: str, routers: NDArray[Any], topology: Topology) -> None:
    place = f"{result.folder}/{result.files.get(name, name)}"
    parts = routers[routers != np.floor(routers)]
    if len(parts):
        raise UserError(f"{place}: routers must be whole numbers, not {parts[0]:g}")
    if len(routers) and (routers.min() < 0 or routers.max() >= topology.routers):
        raise UserError(
            f"{place}: routers must be 0 to {topology.routers - 1}, those of "
            f"the {topology.name}, not {routers.min():.0f} to {routers.max():.0f}"
        )


def _sums(result: ResultSet, name: str, columns: tuple[str, str], topology: Topology) -> NDArray[np.float64] | None:
    """Return the quotient in % of two columns summed over each router; None without that table."""
    table = table_columns(result, name, ("router", *columns))
    if table is None:
        return None
    routers = table["router"].to_numpy()
    _check_routers(result, name, routers, topology)
    part, whole = (
        np.bincount(routers.astype(np.int64), table[column].to_numpy(np.float64), topology.routers)
        for column in columns
    )
    return np.where(whole > 0, 100.0 * part / np.where(whole > 0, whole, 1), np.nan)


def _fill(result: ResultSet, topology: Topology) -> NDArray[np.float64] | None:
    return _sums(result, "buffers", ("flits", "places"), topology)


def _hit_rate(result: ResultSet, topology: Topology) -> NDArray[np.float64] | None:
    name = "ports" if result.kind == "hits" else "lookups"
    return _sums(result, name, ("hits", "lookups"), topology)


def _time(result: ResultSet, config: Config, topology: Topology) -> dict[str, Any]:
    """Return the moments of the slider and what is down in each."""
    frames = result.metadata.get("frames")
    failures = config.simulation.failures if result.kind in ("net", "series", "trace") else ()
    flit_cycles, cycle_ns = _clock(config, topology)
    if isinstance(frames, Mapping) and isinstance(frames.get("until"), list):
        until, unit = [float(value) for value in frames["until"]], str(frames.get("time_unit", "cycles"))
        cycle_time = float(frames.get("cycle_time", 1.0))
        moments = [0.0, *until[:-1]]
    else:  # as the terminal says them
        unit, cycle_time = ("cycles", 1.0) if flit_cycles == 1 else ("µs", flit_cycles * cycle_ns / 1000)
        until = []
        ends = [failure.cycle + failure.repair_cycles for failure in failures if failure.repair_cycles is not None]
        begins = [failure.cycle for failure in failures]
        moments = sorted({cycle * cycle_time for cycle in (0, *begins, *ends)}) if failures else []
    down = []
    if not config.failed.none:
        down.append(_parts(topology, config.failed, 0.0, None, "failed from the start"))
    for failure in failures:
        end = None if failure.repair_cycles is None else (failure.cycle + failure.repair_cycles) * cycle_time
        down.append(_parts(topology, failure, failure.cycle * cycle_time, end, f"down: {describe_failed(failure)}"))
    tables = _new_tables(result, cycle_time / flit_cycles)
    return {"moments": moments, "until": until, "unit": unit, "down": down, "tables": tables}


def _clock(config: Config, topology: Topology) -> tuple[int, float]:
    """Return the simulator's cycles for each cycle of the file, and the length of one in ns (1 and 0: the same)."""
    if config.router.model == "packet":
        settings = packet_settings(config)
        return settings.send_cycles, settings.cycle_ns
    if config.router.model != "input_output_queued":
        return 1, 0.0
    times = queued_times(config.router, topology)
    return times.flit_cycles, times.cycle_ns


def _parts(topology: Topology, failed: Any, begin: float, end: float | None, words: str) -> dict[str, Any]:
    ports, ends = failed_ports(topology, failed), topology.channels()
    return {
        "from": begin, "to": end, "words": words,
        "links": np.flatnonzero(ports[ends.src_router, ends.src_port]).tolist(),
        "routers": np.flatnonzero(failed_switches(topology, failed)).tolist(),
    }  # fmt: skip


def _new_tables(result: ResultSet, cycle_time: float) -> list[list[Any]]:
    """Return when the tables of each failure or repair were in force: [begin, stopped, empty, new tables].

    With the time of one cycle of the simulator.
    """
    names: tuple[str, ...] = ("cycle", "stopped_cycle", "empty_cycle", "reprogrammed_cycle")
    if not len(result.tables.get("failures", ())):  # the run ended before them
        return []
    stops = "packets_on_links" not in result.tables["failures"]
    if not stops:  # packet routers: nothing stops and nothing becomes empty
        names = ("cycle", "reprogrammed_cycle")
    table = table_columns(result, "failures", names)
    if table is None:
        return []
    rows = table[list(names)].to_numpy().tolist()
    if not stops:
        rows = [[begin, -1, -1, ready] for begin, ready in rows]
    return [[value if value < 0 else value * cycle_time for value in row] for row in rows]


def _tables(result: ResultSet, notes: list[str]) -> dict[str, Any]:
    """Return the rows that the panel of a router shows: its buffers and its lookup engines, by router."""
    found: dict[str, Any] = {}
    buffers = table_columns(result, "buffers", ("router", "port", "vc", "flits", "flits_max", "places"))
    if buffers is not None and len(buffers) > MOST_BUFFERS:
        notes.append(f"Buffers of single VCs are left out: {len(buffers)} are more than {MOST_BUFFERS}.")
    elif buffers is not None:
        rows = buffers.sort_values(["router", "port", "vc"], kind="stable")
        kinds = {"router": "u4", "port": "u2", "vc": "u1", "flits": "f4", "flits_max": "u4", "places": "u4"}
        found["buffers"] = {name: pack(rows[name], kind) for name, kind in kinds.items()}
    name = "ports" if result.kind == "hits" else "lookups"
    columns = ("router", "port", "lookups", "hits", "compulsory", "capacity", "conflict", "evictions")
    engines = table_columns(result, name, columns)
    if engines is not None and len(engines) <= MOST_BUFFERS:
        rows = engines.sort_values(["router", "port"], kind="stable")
        kinds = {"router": "u4", "port": "u2"}
        found["engines"] = {name: pack(rows[name], kinds.get(name, "u4")) for name in columns}
    return found
