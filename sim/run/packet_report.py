"""What a followed packet leaves behind: its events as a table, its life as text and as a picture."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from hopforge.model.output.plots import GREY, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.run.packet_life import PacketLife, arrival_cycles, vc_place
from hopforge.sim.run.packet_phases import PHASES, bars
from hopforge.sim.run.simulation import Simulation

#: most flits of a packet that a timing diagram shows
MAX_DRAWN_FLITS = 12

#: columns of the text
_TITLES = (
    "router", "port", "VC", "arrived", "RC", "VA asks", "VA grant", "SA grant", "tail", "link", "out port", "out VC",
)  # fmt: skip
#: events in the order in which they happen to a flit
EVENTS = (
    "created",
    "injected",
    "arrived",
    "route computation",
    "VC requested",
    "VC granted",
    "switch granted",
    "link",
    "ejected",
    "dropped",
)


def event_table(run: Simulation, lives: Iterable[PacketLife]) -> pd.DataFrame:
    """All events of the packets.

    Returns
    -------
    DataFrame
        Columns packet (HOST.NUMBER), cycle, event (`EVENTS`), flit (from 0), router, port, vc (of the input; −1 at a
        host), out_port, out_vc (−1: none yet). `arrived`: the flit stands on the router's input and is written into the
        buffer; `link`: it stands on the output. Sorted by packet, cycle and event.
    """
    rows = [row for life in lives for row in _events(run, life)]
    order = {event: rank for rank, event in enumerate(EVENTS)}
    columns = ["packet", "cycle", "event", "flit", "router", "port", "vc", "out_port", "out_vc"]
    table = pd.DataFrame(rows, columns=columns)
    rank, first = table["event"].map(order), {packet: k for k, packet in enumerate(table["packet"].unique())}
    keys = pd.DataFrame({"p": table["packet"].map(first), "c": table["cycle"], "f": table["flit"], "e": rank})
    return table.loc[keys.sort_values(["p", "c", "f", "e"], kind="stable").index].reset_index(drop=True)


def phase_table(run: Simulation, lives: Iterable[PacketLife]) -> pd.DataFrame:
    """Return where every flit waited and for what, as the timing diagrams show it.

    Columns packet (HOST.NUMBER), stop (0: source, then the routers of the way), router, port, vc, out_port, out_vc (−1:
    none), flit, phase (`PHASES`), start, end (first cycle after it).
    """
    rows = []
    for life in lives:
        nowhere = (-1, -1, -1, -1, -1)
        stops = [nowhere]
        for visit in life.visits:
            stops.append((*vc_place(run, visit.input_vc), *vc_place(run, visit.output_vc)[1:]))
        stops.append(nowhere)
        rows += [
            (str(life.key), bar.stop, *stops[bar.stop], bar.flit, bar.phase, bar.start, bar.end)
            for bar in bars(run, life)
        ]
    names = ["packet", "stop", "router", "port", "vc", "out_port", "out_vc", "flit", "phase", "start", "end"]
    return pd.DataFrame(rows, columns=names)


def _events(run: Simulation, life: PacketLife) -> Iterable[tuple[Any, ...]]:
    name = str(life.key)
    host = (-1, -1, -1, -1, -1)
    yield name, life.created, "created", 0, *host
    for flit, cycle in enumerate(life.sent):
        yield name, cycle, "injected", flit, *host
    arrivals = arrival_cycles(run, life)
    for visit, arrived in zip(life.visits, arrivals, strict=False):
        router, port, vc = vc_place(run, visit.input_vc)
        _, out_port, out_vc = vc_place(run, visit.output_vc)
        here = (router, port, vc)
        for flit, cycle in enumerate(arrived):
            yield name, cycle, "arrived", flit, *here, -1, -1
        if visit.routed is not None:
            yield name, visit.routed, "route computation", 0, *here, -1, -1
        if visit.requested is not None:
            yield name, visit.requested, "VC requested", 0, *here, out_port, -1
        if visit.granted is not None:
            yield name, visit.granted, "VC granted", 0, *here, out_port, out_vc
        for flit, cycle in enumerate(visit.grants):
            yield name, cycle, "switch granted", flit, *here, out_port, out_vc
            on_link = visit.on_link(flit)
            if on_link is not None:
                yield name, on_link, "link", flit, *here, out_port, out_vc
    for flit, cycle in enumerate(life.received):
        yield name, cycle, "ejected", flit, *host
    for flit, cycle in enumerate(life.dropped):
        yield name, cycle, "dropped", flit, *host


def life_text(run: Simulation, life: PacketLife) -> str:
    """Tell the life of a packet: a line for the whole, then one for each router with the cycles of the head."""
    head = f"packet {life.key}: host {life.key.host} to host {life.dst}, {life.flits} flits, created in {life.created}"
    if life.sent:
        head += f", sent from {life.sent[0]} on"
    if life.latency is not None:
        waited = life.sent[0] - life.created
        head += f", arrived in {life.received[-1]}: {life.latency} cycles, {waited} in the source queue"
    elif life.dropped:
        head += f", unroutable, dropped from {life.dropped[0]} on"
    else:
        head += ", has not arrived"
    rows: list[tuple[str, ...]] = [_TITLES]
    for visit, arrived in zip(life.visits, arrival_cycles(run, life), strict=False):
        router, port, vc = vc_place(run, visit.input_vc)
        _, out_port, out_vc = vc_place(run, visit.output_vc)
        tail = visit.grants[-1] if len(visit.grants) == life.flits else None
        first = visit.grants[0] if visit.grants else None
        cells = [router, port, vc, arrived[0], visit.routed, visit.requested, visit.granted, first, tail]
        cells += [None, None, None] if first is None else [visit.on_link(0), out_port, out_vc]
        rows.append(tuple("-" if cell is None else str(cell) for cell in cells))
    widths = [max(len(row[k]) for row in rows) for k in range(len(_TITLES))]
    lines = ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([head, *lines]) + "\n"


def plot_life(run: Simulation, life: PacketLife, path: Path) -> None:
    """Draw the timing diagram of a packet: cycles from left to right, the stops of its path from top to bottom.

    Every stop has a row per flit; of long packets the first ones and the tail. A wait in the source queue that is
    longer than the way is cut off.
    """
    shown = list(range(life.flits)) if life.flits <= MAX_DRAWN_FLITS else [*range(MAX_DRAWN_FLITS - 1), life.flits - 1]
    stops = [f"host {life.key.host}"]
    for visit in life.visits:
        router, port, _ = vc_place(run, visit.input_vc)
        leaves = "?" if visit.output_vc < 0 else vc_place(run, visit.output_vc)[1]
        stops.append(f"router {router}\nport {port} → {leaves}")
    stops.append(f"host {life.dst}")
    block = len(shown) + 1
    figure, (axes,) = new_figure(width_in=11.0, height_in=1.6 + 0.16 * max(block, 3) * len(stops))
    flits = "1 flit" if life.flits == 1 else f"{life.flits} flits"
    latency = "not arrived" if life.latency is None else f"{life.latency} cycles"
    # a long wait in the source queue would leave no room for the rest
    under_way = (
        max([*life.sent, *life.received, *(grant for visit in life.visits for grant in visit.grants)]) - life.sent[0]
    )
    waited = life.sent[0] - life.created
    cut = waited > under_way
    if cut:
        latency += f", {waited} of them in the source queue"
    few = "" if len(shown) == life.flits else f" (the first {len(shown) - 1} and the tail)"
    title = f"Packet {life.key} from host {life.key.host} to host {life.dst}: {flits}{few}, {latency}"
    style_axes(axes, title=title, x_label="cycle", y_label="")
    axes.grid(visible=False)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.8)
    used = []
    for bar in bars(run, life):
        if bar.flit not in shown:
            continue
        y = bar.stop * block + shown.index(bar.flit)
        axes.broken_barh([(bar.start, bar.end - bar.start)], (y + 0.08, 0.84), facecolor=PHASES[bar.phase])
        used.append(bar.phase)
    for phase, color in PHASES.items():
        if phase in used:
            axes.plot([], [], marker="s", linestyle="none", color=color, label=phase)
    for stop in range(1, len(stops)):
        axes.axhline(stop * block - 0.5, color=GREY, linewidth=0.4)
    if cut:
        axes.set_xlim(left=life.sent[0] - under_way // 20)
    axes.set_ylim(len(stops) * block - 0.5, -0.5)
    axes.set_yticks([stop * block + len(shown) / 2 for stop in range(len(stops))], labels=stops)
    axes.tick_params(axis="y", length=0)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save_figure(figure, path)


def write_trace(run: Simulation, lives: list[PacketLife], packets: pd.DataFrame, folder: Path) -> None:
    """Write events and packets (CSV, Parquet), the text, a timing diagram per packet (PNG) and the metadata (JSON)."""
    with staged(folder) as scratch:
        phases = phase_table(run, lives)
        write_tables(scratch, {"events": event_table(run, lives), "packets": packets, "phases": phases})
        (scratch / "trace.txt").write_text("\n".join(life_text(run, life) for life in lives), encoding="utf-8")
        for life in lives:
            plot_life(run, life, scratch / f"packet_{life.key}.png")
        write_metadata(scratch, run_metadata(run.config, seed=run.seed) | {"load": run.load})
