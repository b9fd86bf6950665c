"""The cocotb bench that plays a `Replay`: a driver, a monitor and a scoreboard. Runs inside the simulator.

`sim.drive.runner.replay_cocotb` starts it; environment variables name the recorded replay, the file for the result and
the file in which the bench tells how far it is.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from hopforge.sim.drive.replay import (
    CYCLE_VARIABLE,
    REPLAY_VARIABLE,
    RESULT_VARIABLE,
    WORD_BITS,
    Replay,
    Scoreboard,
    joined,
    port_columns,
)

PERIOD_NS = 2
_RESET_CYCLES = 2
_REPORT_CYCLES = 1024
_WORD = (1 << WORD_BITS) - 1


class Driver:
    """Sets the inputs of a cycle; only those that change, since every write costs simulation time.

    Parameters
    ----------
    dut : handle
        Top level of the design.
    ports : sequence of str
        Input ports in the order of a row.
    """

    def __init__(self, dut: Any, ports: Sequence[str]) -> None:
        self._ports = [(getattr(dut, port.name), port.first, port.words) for port in port_columns(ports)]
        self._before: list[int] = []

    def drive(self, row: Sequence[int]) -> None:
        """Set the inputs to `row`."""
        before, self._before = self._before, list(row)
        for handle, first, words in self._ports:
            if words == 1:
                if not before or row[first] != before[first]:
                    handle.value = row[first]
            elif row[first : first + words] != before[first : first + words]:
                handle.value = joined(row[first : first + words])


class Monitor:
    """Reads the outputs.

    Parameters
    ----------
    dut : handle
        Top level of the design.
    ports : sequence of str
        Output ports in the order of a row.
    """

    def __init__(self, dut: Any, ports: Sequence[str]) -> None:
        self._columns = [
            (getattr(dut, port.name), place if port.words > 1 else None)
            for port in port_columns(ports)
            for place in range(port.words)
        ]

    def sample(self, columns: Sequence[int]) -> list[int | None]:
        """Return the outputs `columns`; None for a port with unknown bits."""
        row: list[int | None] = []
        for column in columns:
            handle, place = self._columns[column]
            value = handle.value
            if not value.is_resolvable:
                row.append(None)
            elif place is None:
                row.append(int(value))
            else:
                row.append(int(value) >> WORD_BITS * place & _WORD)
        return row


@cocotb.test()
async def replay(dut: Any) -> None:
    """Play all cycles; fail if an output differs in any of them."""
    recorded = Replay.load(Path(os.environ[REPLAY_VARIABLE]))
    driver = Driver(dut, recorded.inputs)
    monitor = Monitor(dut, [output.name for output in recorded.outputs])
    scoreboard = Scoreboard(recorded)
    if recorded.clocked:
        await _reset(dut, driver, recorded)
    counter = Path(os.environ[CYCLE_VARIABLE])
    for cycle, row in enumerate(recorded.driven.tolist()):
        if cycle % _REPORT_CYCLES == 0:
            counter.write_text(str(cycle))
        driver.drive(row)
        if recorded.clocked:
            await FallingEdge(dut.clk)
        else:
            await Timer(PERIOD_NS, "ns")
        columns = scoreboard.columns()
        scoreboard.compare(columns, monitor.sample(columns))
        if recorded.clocked:
            await RisingEdge(dut.clk)
    result = scoreboard.result
    target = Path(os.environ[RESULT_VARIABLE])
    part = target.with_suffix(".part")
    part.write_text(json.dumps(result._asdict()))
    part.rename(target)
    assert result.mismatches == 0, f"{result.mismatches} of {result.cycles} cycles differ; {result.first}"


async def _reset(dut: Any, driver: Driver, recorded: Replay) -> None:
    """Start the clock and reset the design; returns right after a rising edge."""
    Clock(dut.clk, PERIOD_NS, "ns").start()
    driver.drive([0] * len(recorded.inputs))
    dut.rst.value = 1
    for _ in range(_RESET_CYCLES):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
