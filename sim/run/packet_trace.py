"""The life of chosen packets in the network simulator: every event of every flit, as table, text and picture."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.network.core.event_log import put_log
from hopforge.model.network.core.records import ACTIVE, DRAINED, GRANTED, HEAD, RC, RECEIVED, SENT, TAIL, VA
from hopforge.model.network.settings import Script
from hopforge.model.output.plots import GREY, PALETTE, new_figure, save_figure, style_axes
from hopforge.model.output.results import run_metadata, staged, write_metadata, write_tables
from hopforge.sim.queued.build import QueuedState
from hopforge.sim.queued.records import LINKED, ROUTED, SENT_AGAIN
from hopforge.sim.run.router_models import router_model
from hopforge.sim.run.simulation import Simulation

#: most flits of a packet that a timing diagram shows
MAX_DRAWN_FLITS = 12
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
#: phases of the timing diagram and their colours
PHASES = {
    "source queue": "#c9c9c9",
    "buffer": "#e6e6e6",
    "route computation": PALETTE[3],
    "VC allocation": PALETTE[4],
    "switch allocation": PALETTE[1],
    "output queue": PALETTE[5],
    "crossbar and link": PALETTE[0],
    "ejected": PALETTE[2],
}


class TraceError(UserError):
    """A packet that cannot be followed: names it and says what there is."""


class PacketKey(NamedTuple):
    """A packet by its source host and its number there, from 0; people write ``HOST.NUMBER``."""

    host: int
    number: int

    def __str__(self) -> str:
        return f"{self.host}.{self.number}"

    @property
    def code(self) -> int:
        """The packet in the log of the kernel."""
        return (self.host << 40) | self.number


def packet_key(text: str) -> PacketKey:
    """Read ``HOST.NUMBER``.

    Raises
    ------
    TraceError
        It is something else.

    Examples
    --------
    >>> packet_key("5.12")
    PacketKey(host=5, number=12)
    """
    if not re.fullmatch(r"\d{1,9}\.\d{1,9}", text):
        raise TraceError(f"--packet: expected HOST.NUMBER, not {text!r}")
    host, number = text.split(".")
    return PacketKey(int(host), int(number))


@dataclass
class _Visit:
    """A packet in one input VC: cycles of the head, of every flit's switch grant, and of when it stands on the output.

    `links` is empty in input-queued routers, where that is always two cycles after the grant. `again`: the host of this
    router that has set the packet aside before a failed link, and when it sent each flit again.
    """

    input_vc: int
    output_vc: int
    grants: list[int]
    routed: int | None = None
    requested: int | None = None
    granted: int | None = None
    links: list[int] = field(default_factory=list)
    again: tuple[int, list[int]] | None = None

    def on_link(self, flit: int) -> int | None:
        """Cycle in which a granted flit stands on the output; None: it waits in an output queue, or was set aside."""
        if self.requested is not None or self.granted is not None:
            return self.grants[flit] + 2
        return self.links[flit] if flit < len(self.links) else None


@dataclass
class PacketLife:
    """What happened to one packet; cycles.

    Attributes
    ----------
    key, dst, flits, created
        The packet, its destination host, its length, its creation.
    sent, received : list of int
        Cycle in which each flit left the source and reached the destination (what has happened by the end of the run).
    visits : list
        Input VCs in the order of the path.
    dropped : list of int
        Cycles in which flits of an unroutable packet were drained.
    """

    key: PacketKey
    dst: int
    flits: int
    created: int
    sent: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    visits: list[_Visit] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    @property
    def latency(self) -> int | None:
        """Cycles from the creation to the arrival of the tail; None: not arrived."""
        return self.received[-1] - self.created if len(self.received) == self.flits else None


class _Stepper:
    """A simulation that is stepped cycle by cycle, with the log of each cycle."""

    def __init__(self, config: Config, load: float, seed: int, script: Script | None, *, check: bool) -> None:
        router_model(config, "trace")
        run = Simulation(config, load, seed, script=script, check=check)
        state = run.state
        # in a cycle a port grants, drains, sends and (at an arrival, after a grant) routes; a host sends and takes
        capacity = 6 * int(state["routers"]) * int(state["ports"]) + 2 * int(state["hosts"])
        put_log(state, capacity)
        self.run = run
        self.cycle = 0

    def step(self) -> NDArray[np.int64]:
        """Simulate one cycle; returns its events, int64[event, 6] (columns: `network.event_log.put_log`)."""
        state = self.run.state
        state.record["log_length"] = 0
        self.cycle = int(state["cycle"])
        self.run.advance(1)
        log: NDArray[np.int64] = state["log"].reshape(-1, 6)[: int(state["log_length"])].copy()
        return log


def list_packets(
    config: Config,
    load: float,
    seed: int,
    cycles: int,
    progress: Callable[[int, int], None] | None = None,
    script: Script | None = None,
) -> pd.DataFrame:
    """Run the network from its start and list the packets that were sent.

    Parameters
    ----------
    config, load, seed, script
        As for `Simulation`.
    cycles : int
        How long.
    progress : callable, optional
        Called with (cycles done, in all).

    Returns
    -------
    DataFrame
        Columns host, number, dst, flits, created, sent (head, the first time), arrived (tail; −1: not yet) and latency
        (−1), in the order of `sent`.
    """
    stepper = _Stepper(config, load, seed, script, check=True)
    rows: list[dict[str, int]] = []
    place: dict[int, int] = {}
    for done in range(cycles):
        log = stepper.step()
        pool = stepper.run.state["packet"]
        heads = log[(log[:, 1] == SENT) & (log[:, 5] & HEAD != 0)]
        if len(heads):
            fresh = np.flatnonzero((pool["sent"] == stepper.cycle) & (pool["length"] > 0))
            found = {(int(pool["src"][k]) << 40) | int(pool["number"][k]): int(k) for k in fresh}
            for code in heads[:, 4].tolist():
                if code in place:
                    continue  # a failure let another host send it again
                packet = pool[found[code]]
                place[code] = len(rows)
                rows.append(
                    {
                        "host": code >> 40, "number": code & ((1 << 40) - 1), "dst": int(packet["dst"]),
                        "flits": int(packet["length"]), "created": int(packet["created"]), "sent": stepper.cycle,
                        "arrived": -1, "latency": -1,
                    }
                )  # fmt: skip
        for code in log[(log[:, 1] == RECEIVED) & (log[:, 5] & TAIL != 0), 4].tolist():
            row = rows[place[code]]
            row["arrived"], row["latency"] = stepper.cycle, stepper.cycle - row["created"]
        if progress is not None and done % 100 == 99:
            progress(done + 1, cycles)
    return pd.DataFrame(rows, columns=["host", "number", "dst", "flits", "created", "sent", "arrived", "latency"])


def slowest(packets: pd.DataFrame, count: int, after: int = 0) -> list[PacketKey]:
    """Choose the packets of greatest latency among those created from cycle `after` on that have arrived.

    Raises
    ------
    TraceError
        None has arrived.
    """
    arrived = packets[(packets["arrived"] >= 0) & (packets["created"] >= after)]
    if arrived.empty:
        raise TraceError(f"--slowest: no packet that was created from cycle {after} on has arrived; more --cycles?")
    chosen = arrived.sort_values(["latency", "created", "host"], ascending=[False, True, True], kind="stable")[:count]
    return [PacketKey(int(host), int(number)) for host, number in zip(chosen["host"], chosen["number"], strict=True)]


def follow(
    config: Config,
    load: float,
    seed: int,
    cycles: int,
    packets: pd.DataFrame,
    keys: Iterable[PacketKey],
    script: Script | None = None,
) -> tuple[Simulation, list[PacketLife]]:
    """Run again what `list_packets` ran and note everything that happens to the packets `keys`.

    Returns
    -------
    Simulation
        At the end of the run.
    list of PacketLife
        In the order of `keys`.

    Raises
    ------
    TraceError
        A packet that was not sent.
    """
    keys = list(dict.fromkeys(keys))
    by_code: dict[int, PacketLife] = {}
    for key in keys:
        found = packets[(packets["host"] == key.host) & (packets["number"] == key.number)]
        if found.empty:
            sent = int((packets["host"] == key.host).sum())
            raise TraceError(f"--packet {key}: host {key.host} sent {sent} packets in {cycles} cycles")
        row = found.iloc[0]
        by_code[key.code] = PacketLife(key, int(row["dst"]), int(row["flits"]), int(row["created"]))
    codes = np.array(list(by_code))
    stepper = _Stepper(config, load, seed, script, check=False)
    queued = isinstance(stepper.run.state, QueuedState)
    open_visits: dict[tuple[int, int], _Visit] = {}
    for _ in range(cycles):
        log = stepper.step()
        for code, n, state in [] if queued else _heads(stepper.run, codes):
            visit = open_visits.setdefault((code, n), _Visit(n, -1, []))
            if visit.grants:
                continue
            if state == RC and visit.routed is None:
                visit.routed = stepper.cycle
            if state in (VA, ACTIVE) and visit.requested is None:
                visit.requested = stepper.cycle
            if state == ACTIVE and visit.granted is None:
                visit.granted = stepper.cycle
        for cycle, kind, source, target, code, _flit in log[np.isin(log[:, 4], codes)].tolist():
            life = by_code[code]
            if kind in (SENT, SENT_AGAIN):
                (life.sent if len(life.sent) < life.flits else _sent_again(life, source)).append(cycle)
            elif kind == RECEIVED:
                life.received.append(cycle)
            elif kind == DRAINED:
                life.dropped.append(cycle)
            elif kind == ROUTED:
                open_visits[code, source] = _Visit(source, target, [], routed=cycle)
            elif kind == LINKED:
                life.visits[-1].links.append(cycle)
            elif kind == GRANTED:
                visit = open_visits.setdefault((code, source), _Visit(source, -1, []))
                if queued:
                    life.visits.append(visit)
                elif not visit.grants:
                    visit.output_vc = target
                    # with speculation a head can get both in its first cycle
                    visit.requested = cycle if visit.requested is None else visit.requested
                    visit.granted = cycle if visit.granted is None else visit.granted
                    life.visits.append(visit)
                visit.grants.append(cycle)
                if len(visit.grants) == life.flits:
                    del open_visits[code, source]
        if all(len(life.received) + len(life.dropped) == life.flits for life in by_code.values()):
            break
    for (code, _), visit in open_visits.items():
        if not visit.grants:  # the head waits here at the end of the run
            by_code[code].visits.append(visit)
    return stepper.run, [by_code[key.code] for key in keys]


def _sent_again(life: PacketLife, host: int) -> list[int]:
    """Cycles in which `host` sends the flits again that it has set aside."""
    begun = (visit for visit in life.visits if visit.again is not None and len(visit.again[1]) < life.flits)
    visit = next(begun, life.visits[-1])
    if visit.again is None:
        visit.again = host, []
    return visit.again[1]


def _heads(run: Simulation, codes: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Return (packet, input VC, its state) of every chosen packet whose head is the first flit of an input VC."""
    state = run.state
    pool, vcs = state["packet"], state["input_vc"]
    chosen = np.flatnonzero(np.isin((pool["src"].astype(np.int64) << 40) | pool["number"], codes))
    if not len(chosen):
        return []
    waiting = np.flatnonzero(vcs["flits"] > 0)
    first = state["fifo"][waiting * int(state["buffer"]) + vcs["head"][waiting]].astype(np.int64)
    mine = (first & HEAD != 0) & np.isin(first >> 2, chosen)
    return [
        ((int(pool["src"][flit >> 2]) << 40) | int(pool["number"][flit >> 2]), int(n), int(vcs["state"][n]))
        for n, flit in zip(waiting[mine].tolist(), first[mine].tolist(), strict=True)
    ]


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


def _events(run: Simulation, life: PacketLife) -> Iterable[tuple[Any, ...]]:
    name = str(life.key)
    host = (-1, -1, -1, -1, -1)
    yield name, life.created, "created", 0, *host
    for flit, cycle in enumerate(life.sent):
        yield name, cycle, "injected", flit, *host
    arrivals = _arrivals(run, life)
    for visit, arrived in zip(life.visits, arrivals, strict=False):
        router, port, vc = _place(run, visit.input_vc)
        _, out_port, out_vc = _place(run, visit.output_vc)
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


def _place(run: Simulation, n: int) -> tuple[int, int, int]:
    """Router, port and VC of an input or output VC; −1 for none."""
    if n < 0:
        return -1, -1, -1
    vcs, ports = int(run.state["vcs"]), int(run.state["ports"])
    return n // vcs // ports, n // vcs % ports, n % vcs


def _arrivals(run: Simulation, life: PacketLife) -> list[list[int]]:
    """Cycles in which flits stand on the inputs of the path's routers (definitions/router.md, Stages of a flit)."""
    state = run.state
    if isinstance(state, QueuedState):
        delay = state.queues["packet_line"]["delay"]
        lines, from_host = state.queues["output_queue"]["packet_line"], state.queues["nic"]["packet_line"]
        arrived = [[cycle + int(delay[from_host[life.key.host]]) for cycle in life.sent]]
        for visit in life.visits:
            line, cycles = lines[visit.output_vc], visit.links
            if visit.again is not None:
                line, cycles = from_host[visit.again[0]], visit.again[1]
            arrived.append([cycle + int(delay[line]) for cycle in cycles])
        return arrived
    found = [[cycle + int(state["host"]["flit_time"][life.key.host]) - 1 for cycle in life.sent]]
    for visit in life.visits[:-1]:
        time, cycles = int(state["output_port"]["flit_time"][visit.output_vc // int(state["vcs"])]), visit.grants
        if visit.again is not None:
            time, cycles = int(state["host"]["flit_time"][visit.again[0]]), visit.again[1]
        found.append([cycle + time - 1 for cycle in cycles])
    return found


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
    lines = [head]
    titles = (
        "router",
        "port",
        "VC",
        "arrived",
        "RC",
        "VA asks",
        "VA grant",
        "SA grant",
        "tail",
        "link",
        "out port",
        "out VC",
    )
    rows: list[tuple[str, ...]] = [titles]
    for visit, arrived in zip(life.visits, _arrivals(run, life), strict=False):
        router, port, vc = _place(run, visit.input_vc)
        _, out_port, out_vc = _place(run, visit.output_vc)
        tail = visit.grants[-1] if len(visit.grants) == life.flits else None
        first = visit.grants[0] if visit.grants else None
        cells = [router, port, vc, arrived[0], visit.routed, visit.requested, visit.granted, first, tail]
        cells += [None, None, None] if first is None else [visit.on_link(0), out_port, out_vc]
        rows.append(tuple("-" if cell is None else str(cell) for cell in cells))
    widths = [max(len(row[k]) for row in rows) for k in range(len(titles))]
    lines += ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(lines) + "\n"


class Bar(NamedTuple):
    """A phase of one flit at one stop of its path: cycles [start, end)."""

    stop: int
    flit: int
    phase: str
    start: int
    end: int


def bars(run: Simulation, life: PacketLife) -> list[Bar]:
    """Phases of every flit; stop 0 is the source, 1 … the routers of the path, the last one the destination."""
    found: list[Bar] = []
    arrivals = _arrivals(run, life)
    for flit, cycle in enumerate(life.sent):
        found.append(Bar(0, flit, "source queue", life.created, cycle))
        found.append(Bar(0, flit, "crossbar and link", cycle, arrivals[0][flit]))
    for stop, (visit, arrived) in enumerate(zip(life.visits, arrivals, strict=False), start=1):
        if not visit.grants:
            now = int(run.state["cycle"])
            if isinstance(run.state, QueuedState):
                assert visit.routed is not None
                found.append(Bar(stop, 0, "buffer", arrived[0], visit.routed))
                found.append(Bar(stop, 0, "switch allocation", visit.routed, now))
            else:
                found += _waiting(visit, stop, arrived[0], now)
        following = arrivals[stop] if stop < len(life.visits) else life.received
        for flit, granted in enumerate(visit.grants):
            waits, on_link = arrived[flit], visit.on_link(flit)
            again = visit.again[1][flit] if visit.again is not None and flit < len(visit.again[1]) else None
            if visit.requested is None:  # queues at the output
                assert visit.routed is not None
                on_link = again if on_link is None else on_link
                leaves = int(run.state["cycle"]) if on_link is None else on_link
                found.append(Bar(stop, flit, "buffer", waits, visit.routed))
                found.append(Bar(stop, flit, "switch allocation", visit.routed, granted))
                found.append(Bar(stop, flit, "output queue", granted, leaves))
                if flit < len(following):
                    found.append(Bar(stop, flit, "crossbar and link", leaves, following[flit]))
                continue
            if flit == 0:
                assert visit.requested is not None
                assert visit.granted is not None
                routed = visit.requested if visit.routed is None else visit.routed
                found.append(Bar(stop, 0, "buffer", waits, routed))
                found.append(Bar(stop, 0, "route computation", routed, visit.requested))
                found.append(Bar(stop, 0, "VC allocation", visit.requested, visit.granted + 1))
                found.append(Bar(stop, 0, "switch allocation", visit.granted + 1, granted + 1))
            else:
                found.append(Bar(stop, flit, "buffer", waits, granted))
                found.append(Bar(stop, flit, "switch allocation", granted, granted + 1))
            leaves = granted + 1
            if again is not None:
                found.append(Bar(stop, flit, "source queue", leaves, again))
                leaves = again
            if flit < len(following):
                found.append(Bar(stop, flit, "crossbar and link", leaves, following[flit]))
    last = len(life.visits) + 1
    found += [Bar(last, flit, "ejected", cycle, cycle + 1) for flit, cycle in enumerate(life.received)]
    return [bar for bar in found if bar.end > bar.start]


def _waiting(visit: _Visit, stop: int, arrived: int, now: int) -> list[Bar]:
    """Phases up to now of a head that has no switch grant."""
    asked = now if visit.requested is None else visit.requested
    routed = asked if visit.routed is None else visit.routed
    granted = now if visit.granted is None else visit.granted + 1
    return [
        Bar(stop, 0, "buffer", arrived, routed),
        Bar(stop, 0, "route computation", routed, asked),
        Bar(stop, 0, "VC allocation", asked, granted),
        Bar(stop, 0, "switch allocation", granted, now),
    ]


def plot_life(run: Simulation, life: PacketLife, path: Path) -> None:
    """Draw the timing diagram of a packet: cycles from left to right, the stops of its path from top to bottom.

    Every stop has a row per flit; of long packets the first ones and the tail. A wait in the source queue that is
    longer than the way is cut off.
    """
    shown = list(range(life.flits)) if life.flits <= MAX_DRAWN_FLITS else [*range(MAX_DRAWN_FLITS - 1), life.flits - 1]
    stops = [f"host {life.key.host}"]
    for visit in life.visits:
        router, port, _ = _place(run, visit.input_vc)
        leaves = "?" if visit.output_vc < 0 else _place(run, visit.output_vc)[1]
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
        write_tables(scratch, {"events": event_table(run, lives), "packets": packets})
        (scratch / "trace.txt").write_text("\n".join(life_text(run, life) for life in lives), encoding="utf-8")
        for life in lives:
            plot_life(run, life, scratch / f"packet_{life.key}.png")
        write_metadata(scratch, run_metadata(run.config) | {"load": run.load, "run_seed": run.seed})
