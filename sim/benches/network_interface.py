"""What a network adds to its routers as a replay: links, hosts' ports, register bus, registers, counters.

Hosts send random packets, some of them unroutable, while software reads and writes registers of all routers, those that
do not exist among them. The outputs are those of the golden routers with registers (`model.router.controlled`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hopforge.gen.design.configured import NetworkDesign
from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.tcam import TcamRow
from hopforge.model.router.configured import network_links
from hopforge.model.router.controlled import BusInputs, ControlledNetworkModel
from hopforge.model.router.csr import (
    ROUTER_CSR_ADDR_BITS,
    address_space,
    all_engines_address,
    engine_address,
    router_csr_map,
)
from hopforge.model.router.flit import PortInputs, PortOutputs
from hopforge.model.router.links import topology_hosts
from hopforge.model.router.network import HostModel, Packet
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.program import BusOperation, row_operations
from hopforge.sim.benches.setup_writes import setup_writes
from hopforge.sim.drive.replay import Output, Replay, as_words

__all__ = ["InterfaceTraffic", "disagreeing", "network_interface_replay"]

_SWEEP_CYCLES = 500
_OVERRUNS = 0.01
"""Probability in a cycle that software begins to write a row of a TCAM twice."""
_READ_BACK = 0.5
"""Probability that software reads a register at once that it has written."""
_WORD_BITS = 32


@dataclass(frozen=True, kw_only=True)
class InterfaceTraffic:
    """What hosts and software do.

    Parameters
    ----------
    cycles : int
        Cycles after the set-up.
    seed : int
        Of everything random.
    load : float
        Packets of a host per cycle, of 1 to 4 flits.
    unroutable : float
        Share of the packets whose destination is any address.
    count_from : int
        What the counters of the ports and of the lookup engines begin with.
    """

    cycles: int
    seed: int
    load: float = 0.2
    unroutable: float = 0.2
    count_from: int = 0


def disagreeing(design: NetworkDesign) -> NetworkDesign:
    """Return the network with an address more for each router, which is the only one that has no route to it.

    Packets to it are dropped in that router, not in their first one. With lookup engines: the network itself.
    """
    if design.params[0].rc == "lookup":
        return design  # see `_lost`
    host_at = [int(np.flatnonzero(design.topology.host_router == k)[0]) for k in range(len(design.params))]
    params = [
        replace(p, routes=(*p.routes, *(Route(0) if k == r else p.routes[host] for k, host in enumerate(host_at))))
        for r, p in enumerate(design.params)
    ]
    return replace(design, params=tuple(params))


def network_interface_replay(design: NetworkDesign, traffic: InterfaceTraffic) -> Replay:
    """Return inputs and golden outputs of `hw.network.network.Network`; TCAMs are inside.

    Parameters
    ----------
    design : NetworkDesign
        The network; small, since the golden one is plain Python: some hundred cycles a second.
    traffic : InterfaceTraffic
        What hosts and software do.
    """
    params, rng = design.params, np.random.default_rng((traffic.seed, 16))
    ends = topology_hosts(design.topology)
    golden = ControlledNetworkModel(params, network_links(design.config, design.topology))
    for router in golden.routers:
        for name in ("flits_in", "flits_out", "drops"):
            setattr(router.router, name, [traffic.count_from] * params[0].ports)
        for engine in router.router.engines:
            engine.counters = dict.fromkeys(engine.counters, traffic.count_from)
    hosts = [HostModel(params[end.router], [*_packets(design, traffic, rng)]) for end in ends]
    names = [f"host__{number}" for number in range(len(hosts))]
    driven, expected = [], []
    for cycle, bus in enumerate(_software(design, traffic, rng)):
        change = 0
        if params[0].rc == "lookup":
            change = sum(int(rng.random() < 0.002) << number for number in range(len(params)))
        visible = golden.visible()
        shown = [visible[end.router][end.port] for end in ends]
        given = [host.step(cycle, seen) for host, seen in zip(hosts, shown, strict=True)]
        word = golden.step(dict(zip(ends, given, strict=True)), bus, change)
        driven.append([*bus, change, *(word for row in given for word in _columns(params[0], row))])
        expected.append([word, *(word for row in shown for word in _columns(params[0], row))])
    ins = [f"csr__{name}" for name in BusInputs._fields] + ["link_change"]
    outs = [Output("csr__rdata")]
    for name in names:
        ins += [f"{name}__{port}" for port in ("in_valid", "in_flit", "out_credit_valid", "out_credit_vc")]
        outs += [Output(f"{name}__out_valid"), Output(f"{name}__out_flit", f"{name}__out_valid")]
        outs += [Output(f"{name}__in_credit_valid"), Output(f"{name}__in_credit_vc", f"{name}__in_credit_valid")]
    columns = [column for column, name in enumerate(ins) if name != "link_change" or params[0].rc == "lookup"]
    return Replay(
        inputs=tuple(ins[column] for column in columns), outputs=tuple(outs),
        driven=as_words(driven)[:, columns], expected=as_words(expected),
    )  # fmt: skip


def _lost(design: NetworkDesign) -> list[TcamRow]:
    """Return a row for each router: an address that it sends to another one, which has no route to it.

    Packets to it are dropped on their way, not in their first router.
    """
    lookup = design.params[0].lookup
    assert lookup is not None
    last = (1 << lookup.address_bits) - 1
    exact = [next(row for row in program.rows if row.mask == last) for program in design.programs]
    return [row._replace(value=last - number) for number, row in enumerate(exact)]


def _lost_rows(design: NetworkDesign) -> list[list[BusOperation]]:
    """Return what writes the rows of `_lost`, for each router, behind those that are in use."""
    lookup = design.params[0].lookup
    assert lookup is not None
    programs = zip(design.programs, _lost(design), strict=True)
    return [[*row_operations(lookup, len(program.rows), row)] for program, row in programs]


def _packets(design: NetworkDesign, traffic: InterfaceTraffic, rng: np.random.Generator) -> Iterator[Packet]:
    """Yield the packets of a host."""
    p = design.params[0]
    known = np.arange(len(p.routes))
    if p.rc == "lookup":
        known = np.append(design.topology.host_address, [row.value for row in _lost(design)])
    for created in np.flatnonzero(rng.random(traffic.cycles) < traffic.load).tolist():
        dst = int(rng.choice(known))
        if rng.random() < traffic.unroutable:
            dst = int(rng.integers(1 << p.address_bits))
        rest = int(rng.integers(1 << p.width_bits - p.address_bits))
        yield Packet(
            created, dst | rest << p.address_bits, int(rng.integers(1, 5)), int(rng.integers(1 << p.width_bits))
        )


def _software(design: NetworkDesign, traffic: InterfaceTraffic, rng: np.random.Generator) -> Iterator[BusInputs]:
    """Yield what stands on the register bus: programs, then reads and writes, now and then of all registers."""
    params = design.params
    if params[0].rc == "lookup":
        for step in [*setup_writes(design), *setup_writes(design, _lost_rows(design))]:
            yield BusInputs() if step is None else BusInputs(step[0], 1, 0, step[1])
    own = [_at(number, register.address) for number, p in enumerate(params) for register in router_csr_map(p)]
    todo: list[BusInputs] = []
    share = 0.0
    for cycle in range(traffic.cycles):
        if cycle % _SWEEP_CYCLES == 0:
            todo = [BusInputs(address, 0, 1, 0) for address in own]
            share = float(rng.choice([0.05, 0.5, 1.0]))
        if not todo and params[0].lookup is not None and rng.random() < _OVERRUNS:
            todo = _overrun(params, rng)
        if todo:
            yield todo.pop(0)
        elif rng.random() < share:
            done = _operation(params, rng, calm=cycle < 2 * _SWEEP_CYCLES)
            if done.we and rng.random() < _READ_BACK:
                todo = [BusInputs(done.addr, 0, 1, 0)]
            yield done
        else:
            yield BusInputs()


def _overrun(params: Sequence[RouterParams], rng: np.random.Generator) -> list[BusInputs]:
    """Write a row that nobody uses while it is still being written, read something of the router, then STATUS twice."""
    number = int(rng.integers(len(params)))
    lookup = params[number].lookup
    assert lookup is not None
    engine, registers = int(rng.integers(params[number].engines)), csr_map(lookup)
    row = BusInputs(
        _at(number, engine_address(engine, registers["TCAM_WRITE"].address)), 1, 0,
        registers["TCAM_WRITE"].encode(row=lookup.tcam_rows - 1, valid=0),
    )  # fmt: skip
    others = rng.choice([address for address, _, _ in address_space(params[number])], 3)
    status = BusInputs(_at(number, engine_address(engine, registers["STATUS"].address)), 0, 1, 0)
    return [row, row, *(BusInputs(_at(number, int(address)), 0, 1, 0) for address in others), status, status]


def _operation(params: Sequence[RouterParams], rng: np.random.Generator, *, calm: bool) -> BusInputs:
    """Return a random operation; no counters are cleared while it is `calm`."""
    number = int(rng.integers(len(params)))
    p = params[number]
    registers = router_csr_map(p)
    data, re = int(rng.integers(1 << _WORD_BITS)), int(rng.random() < 0.3)
    kind = rng.choice(
        ["read", "read anywhere", "CTRL", "own", "engines", "anything", "beside"],
        p=[0.45, 0.1, 0.12, 0.1, 0.1, 0.08, 0.05],
    )
    if kind == "read":
        space = [address for address, _, _ in address_space(p)]
        return BusInputs(_at(number, int(rng.choice(space))), 0, 1, data)
    if kind == "read anywhere":
        return BusInputs(int(rng.integers(_at(1 << (len(params) - 1).bit_length(), 0))), 0, 1, data)
    if kind == "CTRL":
        ctrl = registers["CTRL"]
        clear = int(not calm and rng.random() < 0.01)
        word = ctrl.encode(enable=int(rng.random() < 0.85), clear_counters=clear)
        rest = data & ~(ctrl.field("enable").mask | ctrl.field("clear_counters").mask)
        return BusInputs(_at(number, ctrl.address), int(rng.random() < 0.8), re, word | rest)
    if kind in {"own", "beside"}:
        written = [register.address for register in registers if register.name.startswith(("OWN", "UNROUTABLE"))]
        places = written if kind == "own" else _beside(p, [registers["CTRL"].address, *written])
        return BusInputs(_at(number, places[int(rng.integers(len(places)))]), 1, re, data)
    if kind == "engines" and p.lookup is not None:
        engine = csr_map(p.lookup)
        if rng.random() < 0.3:
            return BusInputs(_at(number, all_engines_address(engine["CTRL"].address)), 1, re, 1)
        pages = [
            address for address, name, _ in address_space(p)
            if name.startswith("ENGINE") and name.rpartition(".")[2].startswith(_STORED)
        ]  # fmt: skip
        return BusInputs(_at(number, int(rng.choice(pages))), 1, re, data)
    # a write where there is nothing to be written
    target = (
        registers[str(rng.choice(["ID", "STATUS", "NUMBER", "FLITS_IN0"]))].address if rng.random() < 0.5 else 0x3FFF
    )
    return BusInputs(_at(int(rng.integers(1 << (len(params) - 1).bit_length())), target), 1, re, data)


def _beside(params: RouterParams, addresses: Sequence[int]) -> list[int]:
    """Return the addresses that differ in one bit from one of `addresses` and where nothing is to be written."""
    near = {address ^ 1 << bit for address in addresses for bit in range(ROUTER_CSR_ADDR_BITS)}
    registers = [(address, register) for address, _, register in address_space(params)]
    return sorted(near - {at for at, register in registers if any(field.access != "ro" for field in register.fields)})


_STORED = ("OWN_", "TCAM_VALUE_", "TCAM_MASK_", "TCAM_OUTPUT_")
"""Registers of an engine whose words have no effect on the rows that are in use."""


def _at(router: int, address: int) -> int:
    return router << ROUTER_CSR_ADDR_BITS | address


def _columns(params: RouterParams, row: PortInputs | PortOutputs) -> list[int]:
    """Return a channel as columns: valid, flit; valid, VC of the credit."""
    flit, vc_bits = 0, max(1, (params.vcs - 1).bit_length())
    if row.flit is not None:
        flit = row.flit.kind | row.flit.vc << 2 | row.flit.data << 2 + vc_bits
    return [int(row.flit is not None), flit, int(row.credit is not None), row.credit or 0]
