"""A packet network whose hosts run the program of section `workload`."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from hopforge.model.config import Config
from hopforge.model.config.workload import ProgramWorkload
from hopforge.model.network.parts.program_arrays import MAX_CYCLES, ProgramError, ProgramSource, program_arrays
from hopforge.model.workload.program import waiting_text
from hopforge.sim.failures.epochs import unknown_cycles
from hopforge.sim.failures.program_messages import lost_text, refuse_failing_ranks
from hopforge.sim.packet import records as r
from hopforge.sim.packet.events import NEVER
from hopforge.sim.packet.network import RouterNetwork
from hopforge.sim.packet.program_kernel import run, run_with_credits
from hopforge.sim.packet.settings import packet_settings
from hopforge.sim.packet.state import HostProgram
from hopforge.sim.run.sources import program_source
from hopforge.sim.traffic.forecast import message_flits, refuse_many_carried, refuse_many_offers
from hopforge.sim.traffic.placed import PlacedProgram, place_program


class ProgramNetwork(RouterNetwork):
    """A packet network with a program on its hosts, at cycle 0.

    Parameters
    ----------
    config : Config
        With ``router.model: packet`` and ``traffic.source: program``.
    seed : int
        Of the mapping, and of generated graphs.
    check : bool
        Prove the escape network free of deadlock first.
    placed : PlacedProgram, optional
        The program, if it is not that of section `workload`.

    Attributes
    ----------
    placed : PlacedProgram
        The program on its hosts.
    message_packets : int
        Packets of all messages that go through the network.
    ranks, messages : NumPy records
        ``RANK[rank]`` and ``MESSAGE[message]`` (`model.network.core.layouts`).

    Raises
    ------
    PacketError, WorkloadError, TraceError, ProgramError, DeadlockError
        Settings or a program that do not fit, or that can deadlock.
    """

    KERNELS = (run, run_with_credits)

    def __init__(self, config: Config, seed: int, *, check: bool = True, placed: PlacedProgram | None = None) -> None:
        settings = packet_settings(config)
        # packets of a message are counted by the message; a host's link is all that slows it
        settings = dataclasses.replace(settings, messages=1, message_packets=1, feed_cycles=settings.host_send_cycles)
        super().__init__(config, seed, settings, check=check)
        assert isinstance(config.workload, ProgramWorkload), "checked by model.config"
        self.placed: PlacedProgram = placed or place_program(config.workload, self.topology, seed)
        if self.failures is not None:
            refuse_failing_ranks(self.failures.epochs, self.placed)
        source = packet_source(config, self.placed)
        self.message_packets = message_flits(source)  # a packet is a flit here
        refuse_many_carried(self.message_packets, config.workload.max_flits)
        if self.failures is not None and settings.queues == "sending":
            hosts = len(np.unique(self.placed.host))
            waits = unknown_cycles(self.failures.epochs)
            refuse_many_offers(hosts * (waits // settings.host_send_cycles), config.workload.max_flits)
        program = HostProgram(program_arrays(source), self.placed.program.ranks, source.interleaved)
        self._begin(program)
        self.ranks = self.state["rank"][: self.placed.program.ranks]
        self.messages = self.state["message"][: self.placed.program.messages]
        #: cycles for which entries of the heaps have room
        self._last = min(MAX_CYCLES, 1 << (62 - program.message_bits))

    def advance(self, until: int) -> bool:
        """Go on until cycle `until`; returns whether all ranks are at their end and nothing is under way.

        Raises
        ------
        DeadlockError
            A standstill.
        ProgramError
            Ranks that wait for ever, or more cycles than are counted.
        """
        last = min(until, self._last)
        code = self._through_failures(last)
        if code == r.WAITING:
            waiting = np.flatnonzero(self.ranks["finished"] < 0)
            placed, failures = self.placed, self.failures
            lost = "" if failures is None else lost_text(placed.program, failures.lost_messages)
            raise ProgramError(
                f"workload: the program cannot end: in cycle {self.cycle} nothing is under way and"
                f" {waiting_text(placed.program, placed.trace, waiting, self.ranks['at'])}{lost}"
            )
        if code == r.DONE and self.cycle >= self._last:
            raise ProgramError(f"workload: the program takes more than the {self._last} cycles that are counted")
        return code == r.EMPTY

    def _through_failures(self, until: int) -> int:
        """Run until cycle `until` or the end, with the failures and repairs on the way; returns why the kernel ended.

        Where nothing happens but packets wait before a failed link, what is due next lets them go on.
        """
        failures = self.failures
        if failures is None:
            return self._run(until)
        arrived = int(self.counters["messages_arrived"])
        while True:
            due = failures.next_cycle
            code = self._run(min(until, due))
            if self.counters["watched"] and self.counters["messages_arrived"] > arrived:
                return code
            if code != r.DONE and (self._inside() == 0 or due == NEVER):
                return code
            self.counters["now"] = min(until, due)
            if due >= until:
                return r.DONE
            failures.step()

    def advance_to_arrival(self, until: int) -> bool:
        """Go on until the cycle after a message has arrived, at most until cycle `until`.

        Ranks that have nothing to send may wait for ever: it is the caller who knows what they do.

        Returns
        -------
        bool
            Whether something can happen still.

        Raises
        ------
        DeadlockError
            A standstill.
        """
        self.counters["watched"] = 1
        return self._through_failures(min(until, self._last)) == r.DONE

    @property
    def local(self) -> NDArray[np.bool_]:
        """Whether a message stays within a host, bool[message]."""
        return self.placed.local


def packet_source(config: Config, placed: PlacedProgram) -> ProgramSource:
    """Return the program with packets of ``packet.packet_bytes``; what is left of a message fills a whole one."""
    size = config.packet.packet_bytes
    source = program_source(config, placed)
    return dataclasses.replace(source, mtu_bytes=size, flit_bytes=size, mtu_key="packet.packet_bytes")
