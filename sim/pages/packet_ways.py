"""The ways of followed packets, stop by stop with what the packet waited for: from the tables of `hopforge trace`."""

from typing import Any

import pandas as pd

from hopforge.sim.pages.find import ResultSet
from hopforge.sim.run.packet_phases import PHASES

__all__ = ["packet_ways"]

_WHERE = ["router", "port", "vc", "out_port", "out_vc"]
_COLUMNS = {"packet", "stop", "flit", "phase", "start", "end", *_WHERE}


def packet_ways(result: ResultSet) -> list[dict[str, Any]]:
    """Return for every packet of a trace its name, latency and stops; none if the result has no phases.

    ``cycles`` is the latency as in the table of packets; None: not arrived, or not in that table. A stop: where
    (router −1: a host), its first and last cycle, and the phases of the packet's head there as [name, first cycle,
    cycles, colour].
    """
    table = result.tables.get("phases")
    if table is None or not set(table.columns) >= _COLUMNS:
        return []
    known = _latencies(result)
    return [_way(str(name), rows, known.get(str(name))) for name, rows in table.groupby("packet", sort=False)]


def _latencies(result: ResultSet) -> dict[str, int]:
    packets = result.tables.get("packets")
    if packets is None or not set(packets.columns) >= {"host", "number", "latency"}:
        return {}
    arrived = packets[packets["latency"] >= 0]
    return {
        f"{host}.{number}": int(latency)
        for host, number, latency in zip(arrived["host"], arrived["number"], arrived["latency"], strict=True)
    }


def _way(name: str, rows: pd.DataFrame, cycles: int | None) -> dict[str, Any]:
    stops = []
    for _, here in rows.groupby("stop", sort=True):
        head = here[here["flit"] == 0].sort_values("start", kind="stable")
        if head.empty:
            continue
        place = {column: int(head[column].iloc[0]) for column in _WHERE}
        phases = [
            [str(phase), int(start), int(end - start), PHASES.get(str(phase), "#888888")]
            for phase, start, end in zip(head["phase"], head["start"], head["end"], strict=True)
        ]
        stops.append({**place, "start": int(head["start"].min()), "end": int(here["end"].max()) - 1, "phases": phases})
    return {"name": name, "host": name.split(".", maxsplit=1)[0], "cycles": cycles, "stops": stops}
