"""`hopforge fpga run`: a run on a board, real or simulated, beside its twin."""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_
from pathlib import Path

from hopforge.gen.fpga.board_design import board_design, engine_on_board_parameters, network_on_board_design
from hopforge.model.board.registers import DesignKind
from hopforge.model.config import Config
from hopforge.model.errors import UserError
from hopforge.model.lookup.csr import COUNTERS, csr_map
from hopforge.model.output.results import write_text
from hopforge.model.progress import tell
from hopforge.model.router.csr import PORT_COUNTERS, ROUTER_CSR_ADDR_BITS
from hopforge.model.router.engine_program import engine_program
from hopforge.model.topology import build
from hopforge.sim.boards.client import BoardClient, open_board
from hopforge.sim.boards.simulated import SIMULATED_BAUD, SIMULATED_HZ, build_simulated, simulated_board
from hopforge.sim.boards.twin_engine import EngineRequests, twin_of_engine
from hopforge.sim.boards.twin_network import PacketRequests, twin_of_network

__all__ = ["Comparison", "HostReport", "RunOptions", "run_on_board"]

_COUNTS = 1 << 32
_MOST_TIMEOUT_S = 3600


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What a run is.

    Parameters
    ----------
    design : str
        ``engine`` or ``network``.
    count : int
        Lookups, or packets of each host.
    seed : int
        Where the random words begin.
    router : int
        Switch of which the engine is.
    period, lengths : int
        Of a network: cycles between packets of a host; what is added to one flit at most, 0, 1, 3 or 7.
    baud : int
        Rate of the line of a real board.
    timeout_s : float
        Longest wait for a reply.
    """

    design: DesignKind
    count: int
    seed: int = 1
    router: int = 0
    period: int = 4
    lengths: int = 3
    baud: int = 115_200
    timeout_s: float = 2.0


@dataclass(frozen=True)
class Comparison:
    """A number of the board beside that of the twin."""

    name: str
    board: int
    twin: int


@dataclass(frozen=True)
class HostReport:
    """What a run found.

    Attributes
    ----------
    board : str
        The port, or the simulated design.
    clock_hz : int
        Clock of the design, as the board says.
    options : RunOptions
        What was run.
    compared : tuple of Comparison
        Every number.
    operations : int
        Requests on the line.
    notes : tuple of str
        What is not as the configuration says.
    """

    board: str
    clock_hz: int
    options: RunOptions
    compared: tuple[Comparison, ...]
    operations: int
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every number is the twin's."""
        return all(one.board == one.twin for one in self.compared)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Return the report as (subject, words)."""
        yield "board", f"{self.board}, {self.clock_hz / 1e6:g} MHz, {self.operations} requests on the line"
        for note in self.notes:
            yield "note", note
        for one in self.compared:
            same = "" if one.board == one.twin else f"; the twin has {one.twin}"
            yield one.name, f"{one.board}{same}"
        wrong = sum(one.board != one.twin for one in self.compared)
        yield "compared", f"{len(self.compared)} counters, {wrong} differ from the twin"

    def keep(self, path: Path) -> None:
        """Write the report as JSON."""
        write_text(path, json.dumps(asdict(self) | {"passed": self.passed}, indent=2) + "\n")


def run_on_board(config: Config, options: RunOptions, *, port: str | None, output: Path) -> HostReport:
    """Run on the board at `port`; without one on the simulated design behind a pseudo-terminal.

    Raises
    ------
    UserError
        No such design, a tool is missing, the board does not answer, holds another design or goes away.
    """
    if not 1 <= options.count < _COUNTS:
        raise UserError(f"--count must be 1 to {_COUNTS - 1}, not {options.count}")
    if not 0 <= options.seed < _COUNTS:
        raise UserError(f"--seed must be 0 to {_COUNTS - 1}, not {options.seed}")
    if not 0 < options.timeout_s <= _MOST_TIMEOUT_S:
        raise UserError(f"--timeout-s must be above 0 and at most {_MOST_TIMEOUT_S}, not {options.timeout_s:g}")
    hz, baud = (SIMULATED_HZ, SIMULATED_BAUD) if port is None else (_ANY_CLOCK_HZ, options.baud)
    design = board_design(config, options.design, clock_hz=hz, baud=baud)
    run = _network_run(config, options) if options.design == "network" else _engine_run(config, options)
    with contextlib.ExitStack() as stack:
        name = port or f"{design.name} (simulated)"
        if port is None:
            program = build_simulated(design, output)
            path, _ = stack.enter_context(simulated_board(program))
            port = str(path)
        client = stack.enter_context(open_board(port, design.identity, name=name, timeout_s=options.timeout_s))
        client.check_design()
        client.reset()
        tell(f"running on {name}, and its twin")
        compared = tuple(run(client))
        clock_hz = client.show("CLOCK_HZ")
        if any(one.board != one.twin for one in compared):
            client.put("CTRL", client.map["CTRL"].encode(mismatch=1))
        return HostReport(name, clock_hz, options, compared, client.operations, design.notes)


_ANY_CLOCK_HZ = 1_000_000_000
"""The host does not know the clock of a real board before it asks; the line's rate is what counts."""


Run = Callable[[BoardClient], Iterator[Comparison]]
"""Runs a design that has been reset, and yields every number."""


def _engine_run(config: Config, options: RunOptions) -> Run:
    """Return what runs the engine of a router and yields the counters of the board, then those of the engine itself."""
    topology = build(config.topology, config.address)
    params, _ = engine_on_board_parameters(config)
    program = engine_program(config, topology, params, options.router)
    mask = reduce(or_, map(int, topology.host_address), 0)

    def run(client: BoardClient) -> Iterator[Comparison]:
        client.carry_out(program)
        _put(client, SEED=options.seed, COUNT=options.count, MASK_LO=mask & _COUNTS - 1, MASK_HI=mask >> 32)
        client.start()
        of_board, of_engine = twin_of_engine(params, program, EngineRequests(options.seed, options.count, mask))
        for name, value in of_board.items():
            yield Comparison(name, client.show(name), value % _COUNTS)
        registers = csr_map(params)
        for name, _ in COUNTERS:
            register = registers[f"COUNT_{name.upper()}"]
            yield Comparison(register.name, client.read(register.address), of_engine[name] % _COUNTS)

    return run


def _network_run(config: Config, options: RunOptions) -> Run:
    """Return what runs the network and yields the cycles, the words of every host, then the counters of every port."""
    design = network_on_board_design(config)

    def run(client: BoardClient) -> Iterator[Comparison]:
        _put(client, SEED=options.seed, COUNT=options.count, PERIOD=options.period, LENGTHS=options.lengths)
        client.start()
        twin = twin_of_network(design, PacketRequests(options.seed, options.count, options.period, options.lengths))
        yield Comparison("CYCLES", client.show("CYCLES"), twin.cycles)
        for number, host in enumerate(twin.hosts):
            client.put("HOST", number)
            for name, value in zip(host._fields, host, strict=True):
                yield Comparison(f"host {number} {name}", client.show(name.upper()), value)
        counters = {"FLITS_IN": twin.flits_in, "FLITS_OUT": twin.flits_out, "DROPS": twin.drops}
        for router in range(len(design.params)):
            for name, base, _ in PORT_COUNTERS:
                for port, value in enumerate(counters[name][router]):
                    word = client.read(router << ROUTER_CSR_ADDR_BITS | base + port)
                    yield Comparison(f"router {router} {name}{port}", word, value % _COUNTS)

    return run


def _put(client: BoardClient, **words: int) -> None:
    for name, word in words.items():
        client.put(name, word)
